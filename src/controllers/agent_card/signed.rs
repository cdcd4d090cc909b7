//! Whether the signed card in a workload's ConfigMap counts; pure.
//!
//! In: what was read of it, by what it is judged, and the youngest certificate by which a card of the workload was accepted. Out: that it counts, or why
//! not. Promises: it counts only when its signature is good and its signer is whom the workload runs as, so that a ConfigMap which somebody
//! planted changes nothing; one that is older than what was accepted already is no source; that it cannot be read at the moment says nothing, for
//! a bounded time.

use std::time::Duration;

use super::judge::{AUTHORITY_PATIENCE, Judgement, Said};
use super::published::Published;
use super::question::{CardQuestion, Fetched};
use super::subject::Subject;
use super::trust::{SILENCE, patience};
use crate::controllers::agent_card::memory::Context;
use crate::controllers::agent_card::note::Note;
use crate::controllers::scaffold::lane::{AskFault, Fact, Facts};
use crate::controllers::scaffold::signing::Signing;
use crate::crypto::Verdict;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::objects::WorkloadRef;

/// What becomes of the ConfigMap.
pub(super) enum Signed<'f> {
    /// There is none, or it was not read yet.
    Absent,
    /// It cannot be read at the moment, or whether its signature is good is to be seen.
    Open(Open),
    /// It does not count, for that; how its signature stands, where that can be told.
    Refused(String, Option<Signing>),
    /// It counts.
    Good(&'f Fact<Fetched>, &'f Fetched, Box<Judgement>),
}

/// A ConfigMap of which it is to be seen whether it counts.
pub(super) struct Open {
    /// For how long that costs a trusted agent nothing.
    patience: Duration,
    /// What is wrong with its signature, where it was read.
    pub(super) why: Option<String>,
    /// How its signature stands, where that can be told.
    pub(super) signing: Option<Signing>,
}

impl Open {
    /// Whether it still costs a trusted agent nothing. The time begins with the first look at which it is open and ends with one at which it is not:
    /// whoever may write ConfigMaps could else keep the trust of an agent that serves a bad card.
    pub(super) fn holds(&self, now: Duration, note: &mut Note) -> bool {
        is_open(now, self.patience, note)
    }
}

/// Whether nothing is concluded yet because the ConfigMap's present version was not read, for as long as of an agent that does not answer: it may be new
/// at each look.
pub(super) fn is_unread(now: Duration, note: &mut Note) -> bool {
    is_open(now, SILENCE.1, note)
}

fn is_open(now: Duration, patience: Duration, note: &mut Note) -> bool {
    now.saturating_sub(*note.open.get_or_insert(now)) < patience
}

/// Whether the signed card of that workload counts. `period`: how often its agent is asked.
pub(super) fn signed<'f>(
    subject: &Subject<'_>,
    facts: &'f Facts<CardQuestion>,
    judged: impl Fn(&Fetched) -> Judgement,
    (accepted, period): (Option<i64>, Duration),
) -> Signed<'f> {
    let Some(fact) = subject.signed.as_ref().and_then(|question| facts.get(question)) else { return Signed::Absent };
    let fetched = match &fact.value {
        Ok(fetched) => fetched,
        Err(error) => {
            return match error.fault {
                AskFault::Slow | AskFault::TimedOut | AskFault::Unreachable | AskFault::NotAsked => {
                    Signed::Open(Open { patience: patience(period), why: None, signing: None })
                }
                AskFault::Refused | AskFault::Unusable => Signed::Refused(error.message.to_string(), None),
            };
        }
    };
    let judgement = judged(fetched);
    let signing = judgement.stands.map(|stands| fetched.signing(stands, fact.at));
    if judgement.awaits_authority || judgement.verified.status.is_none() {
        let patience = Duration::from_secs(AUTHORITY_PATIENCE.unsigned_abs());
        let why = judgement.awaits_authority.then_some(judgement.verified.message);
        return Signed::Open(Open { patience, why, signing });
    }
    if judgement.verified.status != Some(true) {
        return Signed::Refused(judgement.verified.message, signing);
    }
    if judgement.leaf_from < accepted {
        let why = "it is signed by an older certificate than the card that was accepted last";
        return Signed::Refused(why.to_owned(), None);
    }
    Signed::Good(fact, fetched, Box::new(judgement))
}

/// Whether only an authority is missing for what was read of it, which the next bundle may bring.
pub(super) fn awaits_authority(facts: &Facts<CardQuestion>, question: &CardQuestion) -> bool {
    let fetched = facts.get(question).and_then(|fact| fact.value.as_ref().ok());
    fetched.is_some_and(|fetched| match &*fetched.verdict {
        Verdict::Unknown => true,
        Verdict::NotVerified(why) => why.awaits_authority(),
        Verdict::Verified(_) => false,
    })
}

/// That a workload's ConfigMap was made ahead of its signature, and holds none yet; nothing where it does, or is none of ours.
pub(super) fn awaited(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Said> {
    let namespace = &cx.key.namespace;
    let found = cx.store.signed_card(namespace, &format!("{}{}", workload.name, keys::SUFFIX_SIGNED_CARD))?;
    if !(found.seen.ours && found.seen.awaits && found.seen.owner.as_deref() == Some(workload.uid)) {
        return None;
    }
    let kind = workload.kind.as_str();
    let message = format!(
        "ConfigMap {} is empty: no Pod of {kind} {} has signed the card yet. What to do where that lasts: kubectl -n {namespace} logs {}/{} -c {} says \
         why; Pods without that container are older than the annotation, and kubectl -n {namespace} rollout restart replaces them",
        found.name,
        workload.name,
        kind.to_lowercase(),
        workload.name,
        keys::CONTAINER_SIGNER,
    );
    Some(Said { status: Some(true), reason: Reason::AwaitsSignature, message })
}

/// That a workload's ConfigMap is over a bound, so that nobody reads it; nothing where it is within, or where no signed card is read.
pub(super) fn unread(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Said> {
    let namespace = &cx.key.namespace;
    let found = cx.store.signed_card(namespace, &format!("{}{}", workload.name, keys::SUFFIX_SIGNED_CARD))?;
    let over = found.seen.over.filter(|_| !found.seen.awaits && cx.facts.platform.cards().bundle.any())?;
    Some(drift(format!(
        "ConfigMap {} is not read: it {}; what the agent serves is judged instead. What to do: kubectl -n {namespace} get configmaps shows those named …{}; \
         delete those that are not needed",
        found.name,
        over.sentence(),
        keys::SUFFIX_SIGNED_CARD,
    )))
}

/// What is said of a ConfigMap that does not count.
pub(super) fn refused(subject: &Subject<'_>, why: &str) -> Said {
    drift(format!("ConfigMap {} does not count: {why}; what the agent serves is judged instead", name(subject)))
}

/// What is said of a bad card where a better one may stand in a ConfigMap whose authority nobody knows.
pub(super) fn neither(subject: &Subject<'_>, why: &str) -> String {
    format!("; the card in ConfigMap {} does not count either: {why}", name(subject))
}

/// What is said when the agent serves another card than the ConfigMap that counts.
pub(super) fn differs(subject: &Subject<'_>, read: &Published, served: Option<&Published>) -> Option<Said> {
    let served = served.filter(|served| served.id != read.id)?;
    let name = name(subject);
    Some(drift(format!(
        "the agent serves another card ({}) than the signed one in ConfigMap {name} ({}), which counts",
        served.id, read.id
    )))
}

fn drift(message: String) -> Said {
    Said { status: Some(true), reason: Reason::CardDrift, message }
}

/// The name of the ConfigMap.
pub(super) fn name<'s>(subject: &'s Subject<'_>) -> &'s str {
    match &subject.signed {
        Some(CardQuestion::Read(read)) => &read.name,
        _ => "",
    }
}
