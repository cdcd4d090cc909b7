//! Whether what Pods of a workload serve counts as its card; pure.
//!
//! In: the answers of its Pods and of its ConfigMap, as whom the workload runs, what the platform file says, what the status says already. Out: one judgement and what is
//! published. Promises: one Pod whose card is not its workload's takes the trust of all, and is named; trust that was lost comes back with the second good
//! answer only; an authority that no bundle has yet costs a trusted agent nothing for five minutes, wherever its card was read; of an agent that no longer answers nothing is
//! believed for longer than ten periods, unless so many fail at once that it is rather ours; of one that can no longer be asked at all, neither. That
//! begins when none of its Pods has answered, or when for as long no attempt at any of them has brought an answer, however many they are. What is called
//! verified counts: once it counts for nobody any more and its agent cannot be asked, it is said to be unverified. That we lack what we need to ask is no
//! silence of an agent: it takes no trust, and none of that time counts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::judge::{AUTHORITY_PATIENCE, Asked, Judgement, Publish, Said, judge, proved};
use super::published::Published;
use super::question::{CardQuestion, Fetched};
use super::sharing::sharing;
use super::signed::{Signed, differs, neither, refused, signed};
use super::subject::Subject;
use crate::admission::inject::runs_as;
use crate::controllers::agent_card::memory::Context;
use crate::controllers::agent_card::note::{Note, Settling, Unanswered};
use crate::controllers::conditions::stored;
use crate::controllers::scaffold::lane::{AskFault, Fact, Facts};
use crate::controllers::scaffold::signing::{Signing, Stands};
use crate::domain::reason::Reason;
use crate::store::objects::{CardRef, WorkloadRef};
use crate::store::{Store, Trust};

pub(super) const VERIFIED: &str = "Verified";
/// Failed attempts before trust ends.
const ATTEMPTS: u32 = 5;
/// Time for which an agent that does not answer keeps its trust, at least and at most.
pub(super) const SILENCE: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(3_000));
/// For at most so long nothing is withdrawn because too many fail at once.
const SUSPENDED: Duration = Duration::from_secs(3_600);
/// So many trusted agents, in so many namespaces, have to fail before it is rather ours.
const MANY: (usize, usize) = (10, 2);

/// What counts.
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// What is shown; `None`: what is shown stays.
    pub(super) published: Option<Arc<Published>>,
    /// A good signature covers that.
    pub(super) covered: bool,
    /// Where it was read.
    pub(super) source: Source,
}

impl Judged {
    /// It gives no trust, and will give none: what was bad stays so when nobody answers any more.
    pub(super) fn is_refused(&self) -> bool {
        let verified = &self.judgement.verified;
        verified.status == Some(false) && verified.reason != Reason::Settling
    }
}

/// Where a card was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A Pod serves it.
    Agent,
    /// Somebody signed it into the workload's ConfigMap.
    ConfigMap,
}

/// What follows from the answers that are there.
#[derive(Default)]
pub(super) struct Conclusion {
    /// What counts; `None` where nothing does, because there is no answer, or because nothing may be concluded yet.
    pub(super) judged: Option<Judged>,
    /// The ConfigMap and what is served do not agree.
    pub(super) drift: Option<Said>,
}

/// What is to be said of the answers that are there.
pub(super) fn judged(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    (subject, period): (&Subject<'_>, Duration),
    facts: &Facts<CardQuestion>,
    note: &mut Note,
) -> Conclusion {
    let cards = cx.facts.platform.cards();
    let domain = &cx.facts.platform.resolved().trust_domain.value;
    let workload = &subject.workload;
    let template = workload.governed_template(&cx.facts.snapshot.labels);
    let namespace = &cx.key.namespace;
    let runs_as = template.and_then(|template| runs_as(namespace, &workload.identity(), &template, &cx.facts.snapshot));
    let account = runs_as.as_ref().map_or("", |runs_as| &runs_as.account);
    let others = sharing(cx, workload, account);
    let binding = card.seen.spec.identity_binding.as_ref();
    let asked = Asked {
        cards: &cards,
        trust_domain: domain,
        runs_as: runs_as.as_ref(),
        binding: binding.map(|binding| binding.trust_domain.as_deref()),
        shared_with: &others,
    };
    let of = |fetched: &Fetched| {
        let mut judgement = judge(&fetched.verdict, &fetched.bundles, &asked);
        if let Some(peer) = &fetched.peer {
            proved(&mut judgement, peer, &asked);
        }
        judgement
    };
    let mut pods = of_pods(subject, facts, &of);
    note.leaf = note.leaf.max(pods.as_ref().and_then(|pods| pods.leaf));
    note.signing = pods.as_ref().and_then(|pods| pods.signing.clone());
    let mut drift = None;
    match signed(subject, facts, of, (note.leaf, period)) {
        Signed::Absent if subject.signed.is_none() => note.open = None,
        Signed::Absent => {}
        Signed::Refused(why, signing) => {
            note.open = None;
            note.signing = note.signing.take().or(signing);
            drift = Some(refused(subject, &why));
        }
        Signed::Open(open) => {
            let (holds, bad) = (open.holds(cx.now, note), pods.as_mut().filter(|pods| is_bad(&pods.judgement)));
            note.signing = note.signing.take().or(open.signing);
            if let Some(pods) = bad {
                // What would count in its place is bad, which costs an agent nothing that is trusted, for a time.
                if holds && is_trusted(card) {
                    // The same authority may be missing for both: that time runs meanwhile.
                    waits(cx, card, &pods.judgement, note);
                    return Conclusion::default();
                }
                let why = open.why.map(|why| neither(subject, &why));
                pods.judgement.verified.message.push_str(&why.unwrap_or_default());
            }
        }
        Signed::Good(fact, fetched, mut judgement) => {
            (note.leaf, note.awaiting, note.open) = (note.leaf.max(judgement.leaf_from), None, None);
            note.signing = judgement.stands.map(|stands| fetched.signing(stands, fact.at));
            let drift = differs(subject, &fetched.served, pods.as_ref().map(|pods| &*pods.served));
            let published = shown(&judgement.publish, fetched);
            settle(card, &mut judgement, fact, note);
            let source = Source::ConfigMap;
            return Conclusion {
                judged: Some(Judged { judgement: *judgement, published, covered: true, source }),
                drift,
            };
        }
    }
    let judged = pods.filter(|pods| waits(cx, card, &pods.judgement, note)).map(|mut pods| {
        settle(card, &mut pods.judgement, pods.fact, note);
        let OfPods { judgement, published, covered, .. } = pods;
        Judged { judgement, published, covered, source: Source::Agent }
    });
    Conclusion { judged, drift }
}

/// What the Pods of a workload serve.
struct OfPods<'f> {
    judgement: Judgement,
    /// The answer that is judged.
    fact: &'f Fact<Fetched>,
    /// What is shown.
    published: Option<Arc<Published>>,
    covered: bool,
    /// What the first of them serves, signed or not.
    served: Arc<Published>,
    /// The first second of the youngest certificate among those that signed for whom the workload runs as.
    leaf: Option<i64>,
    /// How the signature stands that ends first.
    signing: Option<Signing>,
}

fn of_pods<'f>(
    subject: &Subject<'_>,
    facts: &'f Facts<CardQuestion>,
    of: &impl Fn(&Fetched) -> Judgement,
) -> Option<OfPods<'f>> {
    let answers = subject.asked.iter().filter_map(|question| Some((question, facts.get(question)?)));
    let answers = answers.filter_map(|(question, fact)| Some((question, fact, fact.value.as_ref().ok()?)));
    let mut all: Vec<_> = answers.map(|(question, fact, fetched)| (question, fact, fetched, of(fetched))).collect();
    let (_, _, fetched, first) = all.first()?;
    let served = fetched.served.clone();
    let (published, covered) = (shown(&first.publish, fetched), matches!(first.publish, Publish::Covered(_)));
    let good = all.iter().filter(|(.., one)| one.verified.status == Some(true));
    let leaf = good.filter_map(|(.., one)| one.leaf_from).max();
    let ends = |stands: &Stands| match stands {
        Stands::Lost => i64::MIN,
        Stands::Until { leaf, authority, .. } => *leaf.min(authority),
    };
    let signings = all.iter().filter_map(|(_, fact, fetched, one)| Some((one.stands?, *fact, *fetched)));
    let signing = signings
        .min_by_key(|(stands, ..)| ends(stands))
        .map(|(stands, fact, fetched)| fetched.signing(stands, fact.at));
    // What the next bundle may mend waits for it; what is wrong for good does not wait beside it.
    let bad = |awaits: bool| all.iter().position(|(.., one)| is_bad(one) && one.awaits_authority == awaits);
    let counts = bad(false).or_else(|| bad(true)).unwrap_or_default();
    let (question, fact, _, mut judgement) = all.swap_remove(counts);
    if let CardQuestion::Fetch(fetch) = question
        && is_bad(&judgement)
        && subject.asked.len() > 1
    {
        judgement.verified.message.insert_str(0, &format!("the Pod at {}: ", fetch.address.ip()));
    }
    Some(OfPods { judgement, fact, published, covered, served, leaf, signing })
}

/// It is judged, and not good.
fn is_bad(judgement: &Judgement) -> bool {
    let is_judged = judgement.signature.is_some() || judgement.attested.is_some();
    is_judged && judgement.verified.status == Some(false)
}

fn shown(publish: &Publish, fetched: &Fetched) -> Option<Arc<Published>> {
    match publish {
        Publish::AsServed => Some(fetched.served.clone()),
        Publish::Covered(bytes) => {
            let found = fetched.covered.iter().find(|(covered, _)| covered == bytes);
            found.map(|(_, published)| published.clone())
        }
        Publish::Nothing => None,
    }
}

/// Whether trust that was lost is about to come back.
pub(super) fn is_settling(card: &CardRef<'_>) -> bool {
    condition(card, VERIFIED).is_some_and(|(_, reason)| reason == Reason::Settling.code())
}

fn condition<'a>(card: &'a CardRef<'_>, type_: &str) -> Option<(&'a str, &'a str)> {
    let known = stored(card.seen.status.get("conditions")?, type_)?;
    Some((known.get("status")?.as_str()?, known.get("reason")?.as_str()?))
}

pub(super) fn is_trusted(card: &CardRef<'_>) -> bool {
    condition(card, VERIFIED).is_some_and(|(status, _)| status == "True")
}

/// Whether it is trusted, or was when nothing could be said of it any more: what was concluded before stays meanwhile.
fn is_believed(card: &CardRef<'_>) -> bool {
    condition(card, VERIFIED).is_some_and(|(status, _)| status == "True" || status == "Unknown")
}

/// Whether the judgement counts now: a trusted agent whose authority is not known yet has some time.
fn waits(cx: &Context<'_>, card: &CardRef<'_>, judgement: &Judgement, note: &mut Note) -> bool {
    if !(judgement.awaits_authority && is_trusted(card)) {
        note.awaiting = None;
        return true;
    }
    let since = *note.awaiting.get_or_insert(cx.now);
    cx.now.saturating_sub(since) >= Duration::from_secs(AUTHORITY_PATIENCE.unsigned_abs())
}

/// Trust that was lost comes back with the second good answer.
fn settle(card: &CardRef<'_>, judgement: &mut Judgement, fact: &Fact<Fetched>, note: &mut Note) {
    const LOST: [Reason; 4] =
        [Reason::SignatureInvalid, Reason::SignatureInvalidAudit, Reason::NotBound, Reason::FetchFailed];
    let before = condition(card, VERIFIED);
    let was_lost =
        before.is_some_and(|(status, reason)| status == "False" && LOST.iter().any(|lost| lost.code() == reason));
    let settling = before.is_some_and(|(_, reason)| reason == Reason::Settling.code());
    if judgement.verified.status != Some(true) || !(was_lost || settling) {
        note.settling = None;
        return;
    }
    let first = match note.settling {
        Some(Settling(first)) if settling || first == fact.asked => first,
        _ => fact.asked,
    };
    note.settling = Some(Settling(first));
    if fact.asked > first && settling {
        return;
    }
    let message = "the card is good again; it counts once the next answer is good as well";
    judgement.verified = Said { status: Some(false), reason: Reason::Settling, message: message.to_owned() };
    judgement.trusted_account = None;
}

/// What becomes of the trust in an agent of which there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nothing yet, or there is none.
    Kept,
    /// It would end, if it were not that so many fail at once.
    Suspended(Said),
    /// It ends.
    Ended(Said),
}

/// Nobody was asked, for want of something of ours.
fn is_ours(fact: &Fact<Fetched>) -> bool {
    fact.value.as_ref().is_err_and(|error| error.fault == AskFault::NotAsked)
}

/// What becomes of the trust in an agent that was asked and does not answer: `fact`.
pub(super) fn silence(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    fact: &Fact<Fetched>,
    period: Duration,
    note: &mut Note,
) -> Silence {
    if is_ours(fact) {
        (note.failing, note.unanswered) = (None, None);
        let unasked = note.unasked.map_or(Duration::ZERO, |since| cx.now.saturating_sub(since));
        if !is_believed(card) || unasked < SUSPENDED {
            return Silence::Kept;
        }
        // What nobody looks at any more is no proof, whoever is to blame.
        let message = format!(
            "Drawbridge could ask no agent over TLS for {} s, for want of an identity of its own",
            unasked.as_secs()
        );
        return Silence::Ended(Said { status: Some(false), reason: Reason::FetchFailed, message });
    }
    let silent = silent_for(cx, note);
    // At one Pod, or at all together: one that is new, or one of many, was asked but once.
    let failures = fact.failures.max(note.unanswered.map_or(0, |unanswered| unanswered.attempts));
    if !is_believed(card) || failures < ATTEMPTS || silent < patience(period) {
        return Silence::Kept;
    }
    if silent < SUSPENDED && many_fail(cx.store) {
        let message = "many trusted agents fail to answer at once, which points at the network: they keep their trust for an hour at most";
        return Silence::Suspended(Said {
            status: Some(true),
            reason: Reason::FetchSuspended,
            message: message.to_owned(),
        });
    }
    let message = format!("the agent has not answered for {} s and {failures} attempts", silent.as_secs());
    Silence::Ended(Said { status: Some(false), reason: Reason::FetchFailed, message })
}

/// What becomes of the trust in an agent that nobody can ask, and when to look again. That is nothing that a network of ours could be the cause of:
/// however many it concerns, it ends.
pub(super) fn unaskable(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    why: &str,
    period: Duration,
    note: &mut Note,
) -> (Silence, Option<Duration>) {
    if !is_believed(card) {
        note.failing = None;
        return (Silence::Kept, None);
    }
    let (silent, patience) = (silent_for(cx, note), patience(period));
    if silent < patience {
        return (Silence::Kept, Some(patience - silent));
    }
    let message = format!("nobody could be asked for {} s: {why}", silent.as_secs());
    (Silence::Ended(Said { status: Some(false), reason: Reason::FetchFailed, message }), None)
}

/// What a card that counts no more leaves: another one is of the same workload.
pub(super) fn no_longer(card: &CardRef<'_>, reason: Reason, why: &str) -> Silence {
    if !is_trusted(card) {
        return Silence::Kept;
    }
    Silence::Ended(Said { status: Some(false), reason, message: why.to_owned() })
}

/// That what is called verified counts for nobody any more, of an agent of which there is no answer: its AgentCard was changed since, its workload was made
/// anew, or another operator said so. `None` where it counts, or nothing is called verified.
pub(super) fn outdated(
    card: &CardRef<'_>,
    workload: &WorkloadRef<'_>,
    (reason, why): (Reason, &str),
) -> Option<Silence> {
    if !is_trusted(card) || matches!(card.seen.trust(workload.uid), Trust::Account(_)) {
        return None;
    }
    let verified = stored(card.seen.status.get("conditions")?, VERIFIED)?;
    let generation = verified.get("observedGeneration").and_then(Value::as_i64);
    let uid = card.seen.status.get("targetUID").and_then(Value::as_str);
    let what = if uid.is_some_and(|uid| uid != workload.uid) {
        "the workload was made anew"
    } else if generation.is_some_and(|generation| generation != card.seen.generation) {
        "this AgentCard was changed"
    } else {
        "Drawbridge took this AgentCard over"
    };
    let message = format!(
        "{what} after it was verified, so that counts no more; it is judged with its agent's next answer: {why}"
    );
    Some(Silence::Ended(Said { status: Some(false), reason, message }))
}

/// Whether what its Pods answered before counts no more, since every attempt has failed for as long as an agent may be silent: of many Pods each is asked
/// seldom, and what one said last is old. It counts as one that does not answer from then on.
pub(super) fn is_past(
    cx: &Context<'_>,
    subject: &Subject<'_>,
    facts: &Facts<CardQuestion>,
    period: Duration,
    note: &mut Note,
) -> bool {
    let last = |of: fn(&Fact<Fetched>) -> bool| {
        let all = subject.asked.iter().filter_map(|question| facts.get(question));
        all.filter(|fact| of(fact)).map(|fact| fact.asked).max()
    };
    let answered = last(|fact| fact.value.is_ok());
    let failed = last(|fact| fact.value.is_err() && !is_ours(fact));
    if last(is_ours) > answered.max(failed) {
        note.unanswered = None;
        return cx.now.saturating_sub(*note.unasked.get_or_insert(cx.now)) >= SUSPENDED;
    }
    note.unasked = None;
    let Some(failed) = failed.filter(|failed| answered.is_none_or(|answered| answered < *failed)) else {
        if answered.is_some() {
            note.unanswered = None;
        }
        return false;
    };
    let Unanswered { since, attempts, last } =
        note.unanswered.unwrap_or(Unanswered { since: cx.now, attempts: 1, last: failed });
    let attempts = if last < failed { attempts.saturating_add(1) } else { attempts };
    note.unanswered = Some(Unanswered { since, attempts, last: last.max(failed) });
    attempts >= ATTEMPTS && cx.now.saturating_sub(since) >= patience(period)
}

fn silent_for(cx: &Context<'_>, note: &mut Note) -> Duration {
    cx.now.saturating_sub(*note.failing.get_or_insert(cx.now))
}

pub(super) fn patience(period: Duration) -> Duration {
    (period * 10).clamp(SILENCE.0, SILENCE.1)
}

/// More than half of the trusted agents do not answer, and they are many, of several namespaces.
fn many_fail(store: &Store) -> bool {
    let (mut trusted, mut failing, mut namespaces) = (0_usize, 0_usize, 0_usize);
    for namespace in store.namespaces() {
        let before = failing;
        for card in store.agent_cards(namespace).filter(is_trusted) {
            trusted += 1;
            let reachable = condition(&card, "Reachable");
            // That nobody is Ready is no network's fault.
            let fails = |(status, reason): (&str, &str)| status == "False" && reason != Reason::NoReadyPod.code();
            failing += usize::from(reachable.is_some_and(fails));
        }
        namespaces += usize::from(failing > before);
    }
    failing >= MANY.0 && namespaces >= MANY.1 && failing * 2 > trusted
}

/// The details of a binding, as the status has them.
pub(super) fn binding(said: &Said, before: &Value) -> Value {
    let mut binding = serde_json::json!({"bound": said.status == Some(true), "reason": said.reason.code(),
        "message": said.message});
    let is_same = |key: &str| before.get(key) == binding.get(key);
    let since = match before.get("lastEvaluationTime") {
        Some(since) if ["bound", "reason", "message"].into_iter().all(is_same) => since.clone(),
        _ => crate::controllers::scaffold::plan::NOW.into(),
    };
    binding["lastEvaluationTime"] = since;
    binding
}
