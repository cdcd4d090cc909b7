//! The status of one AgentCard; pure.
//!
//! In: the status as stored, and what was found. Out: the operations that bring it up to date, and what people are told. Promises: equal findings
//! write nothing, even when a refusal is worded anew each time; `card` is replaced whole, so that nothing of an earlier one stays; the last good
//! card stays, with condition `Synced` false beside it; an Event when a judgement changes and not before; conditions of others stay; what is written is
//! never more than what is read of a status.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::judge::{Judgement, Said};
use super::published::Published;
use super::signed::{awaited, unread};
use super::subject::{Hindrance, PORT_TLS};
use super::trust::{Silence, Source, VERIFIED, binding, is_trusted};
use crate::api::agent_kagenti_dev::agent_card::is_within;
use crate::controllers::agent_card::memory::Context;
use crate::controllers::conditions::{self, Condition, stored};
use crate::controllers::scaffold::lane::AskError;
use crate::controllers::scaffold::plan::{NOW, Op, Report, escaped};
use crate::controllers::trust;
use crate::domain::printable::{cut, printable};
use crate::domain::reason::{Class, Reason};
use crate::store::Kind;
use crate::store::kinds::agent_card::LARGEST;
use crate::store::objects::{CardRef, WorkloadRef};

const SYNCED: &str = "Synced";
const REACHABLE: &str = "Reachable";
const READY: &str = "Ready";
const SIGNATURE: &str = "SignatureVerified";
const BOUND: &str = "Bound";
const SUSPENDED: &str = "FetchSuspended";
const DRIFT: &str = "CardDrift";
const SHARED: &str = "SharedServiceAccount";
const UNPROVED: &str = "FallbackToHTTP";
const OVERRIDDEN: &str = "PolicyOverridden";
const AWAITS: &str = "AwaitsSignature";
/// The condition types that are ours.
const OURS: [&str; 12] =
    [SYNCED, REACHABLE, READY, SIGNATURE, BOUND, VERIFIED, SUSPENDED, DRIFT, SHARED, UNPROVED, OVERRIDDEN, AWAITS];
/// Of these, those that stay when nothing is said about them because there is no answer.
const KEPT: [&str; 5] = [REACHABLE, SIGNATURE, BOUND, VERIFIED, SHARED];
/// Whether what is shown was covered by a good signature.
const COVERED: &str = "cardCovered";
/// Where what is shown was read.
const SOURCE: &str = "cardSource";
/// What is shown of a card, besides the card itself.
const CONTENT: [&str; 7] = ["cardId", COVERED, SOURCE, "lastSyncTime", "skills", "servedUrl", "endpoints"];
/// Bytes of a message.
const MESSAGE: usize = 1024;
/// Bytes of a status: what is read of one, less the times that stand in it once it is written.
const MOST: usize = LARGEST - 1024;
/// What of a status can be missed, the first first; of the endpoints as many stay as there is room for.
const SPARED: [&str; 3] = [ENDPOINTS, "servedUrl", "skills"];
const ENDPOINTS: &str = "endpoints";
/// Bytes of a refresh that are compared and recorded.
const REFRESH: usize = 256;

/// What was found about a card.
pub(super) enum Found<'a> {
    /// It was read.
    Card {
        workload: WorkloadRef<'a>,
        protocol: String,
        /// What is shown of it; `None`: what is shown stays.
        published: Option<Arc<Published>>,
        /// A good signature covers what is shown.
        covered: bool,
        /// Where it was read.
        source: Source,
        /// Whether the agent answers.
        reach: Reach,
        judgement: Box<Judgement>,
        /// It was to prove over TLS who it is, and its Service has no port for that.
        unproved: bool,
        /// The refresh that this answers.
        handled: Option<Box<str>>,
    },
    /// Somebody was asked, and there is no card.
    Failed {
        workload: WorkloadRef<'a>,
        protocol: String,
        error: AskError,
        /// What becomes of the trust in it.
        lost: Silence,
        /// The refresh that this answers.
        handled: Option<Box<str>>,
    },
    /// Nobody can be asked.
    Hindered {
        hindrance: Box<Hindrance<'a>>,
        /// What becomes of the trust in it.
        lost: Silence,
    },
}

/// Whether the agent answers, beside a card that may have been read elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// It does.
    Answers,
    /// It was asked, and does not.
    Fails(AskError),
    /// Nobody can be asked.
    Unready(Reason, String),
    /// It was not asked yet.
    Open,
}

/// The part of a refresh that is recorded.
pub(super) fn refresh_of(value: &str) -> String {
    printable(value, REFRESH)
}

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(cx: &Context<'_>, card: &CardRef<'_>, found: &Found<'_>, drift: Option<&Said>) -> Vec<Op> {
    let before = &*card.seen.status;
    let list = before.get("conditions").unwrap_or(&Value::Null);
    let unread = workload_of(found).and_then(|workload| unread(cx, workload));
    let drift = drift.or(unread.as_ref()).map(|said| of_said(DRIFT, said));
    let awaited = workload_of(found).and_then(|workload| awaited(cx, workload)).map(|said| of_said(AWAITS, &said));
    let more = drift.into_iter().chain(awaited).chain(overridden(cx, card, found));
    let said: Vec<_> = judged(card, found).into_iter().chain(more).collect();
    // What failed before may have been something else under the same reason: whether the agent answers tells them apart.
    let is_same = |said: &[Condition]| said.iter().all(|one| one.type_ != REACHABLE || !conditions::is_news(list, one));
    let again = matches!(found, Found::Failed { .. }) && is_same(&said);
    let wanted: Vec<_> = said.into_iter().map(|one| if again { steady(list, one) } else { one }).collect();
    let kept: Vec<_> = match found {
        Found::Card { .. } => vec![REACHABLE],
        _ if is_found_again(list, found) => KEPT.into_iter().filter(|type_| *type_ != BOUND).collect(),
        _ => KEPT.to_vec(),
    };
    let mut status = before.as_object().cloned().unwrap_or_default();
    status.insert("observedGeneration".to_owned(), card.seen.generation.into());
    fields(&mut status, before, card, found);
    let hidden = !may_be_shown(cx, before, found);
    if hidden {
        CONTENT.iter().for_each(|member| drop(status.remove(*member)));
    }
    status.insert("conditions".to_owned(), conditions::merged(list, &wanted, &OURS, &kept, card.seen.generation));
    let content = match found {
        Found::Card { published: Some(published), .. } if before.get("cardId") != Some(&json!(published.id)) => {
            Some(&**published)
        }
        _ => None,
    };
    let mut edits = edits(before, fitting(status), content);
    if hidden && before.get("cardId").is_some() {
        // Whether or not it is there.
        edits.push(json!({"op": "add", "path": "/status/card", "value": {}}));
        edits.push(json!({"op": "remove", "path": "/status/card"}));
    }
    if edits.is_empty() {
        return Vec::new();
    }
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": card.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": card.version.to_string()}),
    ];
    operations.extend(edits);
    let mut ops = told(cx, card, &wanted, content);
    ops.push(Op::Restate { kind: Kind::AgentCard, key: cx.key.clone(), operations: operations.into() });
    ops
}

fn workload_of<'f, 'a>(found: &'f Found<'a>) -> Option<&'f WorkloadRef<'a>> {
    match found {
        Found::Card { workload, .. } | Found::Failed { workload, .. } => Some(workload),
        Found::Hindered { hindrance, .. } => hindrance.workload.as_ref(),
    }
}

/// Somebody else's NetworkPolicies open the agent, although it is cut off; or one of them is not read, and nobody knows. It stands in an Event of the
/// policy that cuts it off as well.
fn overridden(cx: &Context<'_>, card: &CardRef<'_>, found: &Found<'_>) -> Option<Condition> {
    let verified = match found {
        Found::Card { judgement, .. } => judgement.verified.status == Some(true),
        Found::Failed { lost, .. } | Found::Hindered { lost, .. } => is_trusted(card) && *lost == Silence::Kept,
    };
    let workload = workload_of(found);
    let namespace = &*cx.key.namespace;
    let selector = workload?.seen.selector.as_ref().filter(|_| !verified)?;
    trust::level(cx, namespace).filter(|level| level.enforces())?;
    match trust::opened::by_others(cx.store, (namespace, &workload?.name[..]), &selector.value()) {
        Some(message) => Some(Condition::new(OVERRIDDEN, true, Reason::PolicyOverridden, cut(message, MESSAGE))),
        None => {
            let message = trust::opened::unread(cx.store, namespace)?;
            Some(Condition::unknown(OVERRIDDEN, Reason::ConfigUnknown, cut(message, MESSAGE)))
        }
    }
}

/// It was said that there is no workload, and there is one again.
fn is_found_again(list: &Value, found: &Found<'_>) -> bool {
    let is_missing = matches!(found, Found::Hindered { hindrance, .. } if hindrance.is_nobody());
    let known = stored(list, BOUND).and_then(|known| known.get("reason")).and_then(Value::as_str);
    !is_missing && known == Some(Reason::AgentNotFound.code())
}

/// Whether what is shown may be: while signatures are asked for, that is what a good one has covered (S-08), or what somebody served who had proved over TLS
/// who he is, for as long as that counts.
fn may_be_shown(cx: &Context<'_>, before: &Value, found: &Found<'_>) -> bool {
    let cards = cx.facts.platform.cards();
    let counts = match found {
        Found::Card { published, .. } => published.is_some(),
        Found::Failed { lost, .. } | Found::Hindered { lost, .. } => cards.proof.is_some() && is_proved(before, lost),
    };
    counts || cards.audit || !cards.bundle.any() || before.get(COVERED) == Some(&Value::Bool(true))
}

/// Who served what is shown had proved over TLS who he is, and that counts.
fn is_proved(before: &Value, lost: &Silence) -> bool {
    let verified = before.get("conditions").and_then(|list| stored(list, VERIFIED));
    let counts = verified.and_then(|verified| verified.get("status")).is_some_and(|status| status == "True");
    counts && before.get("attestedAgentSpiffeId").is_some() && !matches!(lost, Silence::Ended(_))
}

/// A status that is larger than what is read of one would be known as none at all, and be written again at each look; how long its endpoints are, an agent
/// says.
fn fitting(status: Map<String, Value>) -> Map<String, Value> {
    let mut status = Value::Object(status);
    while !is_within(&status, MOST) {
        let Some(members) = status.as_object_mut() else { break };
        let endpoints = members.get_mut(ENDPOINTS).and_then(Value::as_array_mut);
        if let Some(endpoints) = endpoints.filter(|endpoints| endpoints.len() > 1) {
            endpoints.pop();
        } else if !SPARED.iter().any(|member| members.remove(*member).is_some()) {
            break;
        }
    }
    if let Value::Object(members) = status { members } else { Map::new() }
}

/// Member by member; a status that has nothing yet is written whole.
fn edits(before: &Value, mut status: Map<String, Value>, content: Option<&Published>) -> Vec<Value> {
    let empty = Map::new();
    let known = before.as_object().unwrap_or(&empty);
    if known.is_empty() {
        if let Some(published) = content {
            status.insert("card".to_owned(), published.card.clone());
        }
        return vec![json!({"op": "add", "path": "/status", "value": status})];
    }
    let path = |member: &str| format!("/status/{}", escaped(member));
    let gone = known.keys().filter(|member| !status.contains_key(*member));
    let mut edits: Vec<_> = gone.map(|member| json!({"op": "remove", "path": path(member)})).collect();
    let new = status.iter().filter(|(member, value)| known.get(*member) != Some(value));
    edits.extend(new.map(|(member, value)| json!({"op": "add", "path": path(member), "value": value})));
    edits.extend(content.map(|published| json!({"op": "add", "path": "/status/card", "value": published.card})));
    edits
}

fn fields(status: &mut Map<String, Value>, before: &Value, card: &CardRef<'_>, found: &Found<'_>) {
    let mut set = |member: &str, value: Option<Value>| match value {
        Some(value) => drop(status.insert(member.to_owned(), value)),
        None => drop(status.remove(member)),
    };
    match found {
        Found::Card { workload, protocol, published, covered, source, judgement, handled, .. } => {
            if let Some(published) = published {
                set_content(&mut set, published, before);
                set(COVERED, covered.then(|| json!(true)));
                set(SOURCE, Some(json!(source.as_str())));
            }
            set_judgement(&mut set, judgement, before);
            set_workload(&mut set, workload, protocol);
            // What is trusted is the workload of that uid, so it changes with an answer of that workload alone.
            set("targetUID", Some(json!(workload.uid)));
            handled.iter().for_each(|handled| set("handledRefresh", Some(json!(handled))));
        }
        Found::Failed { workload, protocol, handled, .. } => {
            set_workload(&mut set, workload, protocol);
            handled.iter().for_each(|handled| set("handledRefresh", Some(json!(handled))));
        }
        Found::Hindered { hindrance, .. } if hindrance.is_nobody() && card.seen.spec.identity_binding.is_some() => {
            let said = nobody(&hindrance.message);
            let binding = binding(&said, before.get("bindingStatus").unwrap_or(&Value::Null));
            set("bindingStatus", Some(binding));
        }
        Found::Hindered { hindrance, .. } => {
            if let Some((workload, protocol)) = hindrance.workload.as_ref().zip(hindrance.protocol.as_deref()) {
                set_workload(&mut set, workload, protocol);
            }
        }
    }
    if is_found_again(before.get("conditions").unwrap_or(&Value::Null), found) && !matches!(found, Found::Card { .. }) {
        set("bindingStatus", None);
    }
    if matches!(found, Found::Failed { lost: Silence::Ended(_), .. } | Found::Hindered { lost: Silence::Ended(_), .. })
    {
        set("trustedAccount", None);
        set("attestedAgentSpiffeId", None);
    }
}

impl Source {
    /// As `status.cardSource` has it.
    fn as_str(self) -> &'static str {
        match self {
            Source::Agent => "Agent",
            Source::ConfigMap => "ConfigMap",
        }
    }
}

fn nobody(message: &str) -> Said {
    Said { status: Some(false), reason: Reason::AgentNotFound, message: cut(message.to_owned(), MESSAGE) }
}

fn set_content(set: &mut dyn FnMut(&str, Option<Value>), published: &Published, before: &Value) {
    if before.get("cardId") != Some(&json!(published.id)) {
        set("cardId", Some(json!(published.id)));
        set("lastSyncTime", Some(json!(NOW)));
    }
    set("skills", Some(json!(published.skills)).filter(|_| !published.skills.is_empty()));
    set("servedUrl", published.served_url.as_ref().map(|url| json!(url)));
    let endpoint = |(transport, url): &(String, String)| json!({"transport": transport, "url": url});
    let endpoints: Vec<_> = published.endpoints.iter().map(endpoint).collect();
    set("endpoints", Some(json!(endpoints)).filter(|_| !published.endpoints.is_empty()));
}

/// Bytes of a text about signatures.
const SHORT: usize = 256;

fn set_judgement(set: &mut dyn FnMut(&str, Option<Value>), judgement: &Judgement, before: &Value) {
    let short = |text: &Option<String>| text.as_ref().map(|text| json!(printable(text, SHORT)));
    let details = judgement.signature.as_ref().map(|said| json!(printable(&said.message, MESSAGE)));
    set("validSignature", judgement.valid_signature.map(Value::from));
    set("signatureVerificationDetails", details);
    set("signatureKeyId", short(&judgement.key_id));
    set("signatureSpiffeId", judgement.spiffe_id.as_ref().map(|id| json!(id)));
    set("signatureProfile", judgement.profile.map(|profile| json!(profile.as_str())));
    set("signatureIdentityMatch", judgement.identity_match.map(Value::from));
    set("expectedSpiffeID", judgement.expected.as_ref().map(|id| json!(id)));
    set("trustedAccount", judgement.trusted_account.as_ref().map(|account| json!(account)));
    set("attestedAgentSpiffeId", judgement.attested.as_ref().map(|id| json!(id)));
    let stored = before.get("bindingStatus").unwrap_or(&Value::Null);
    set("bindingStatus", judgement.bound.as_ref().map(|said| binding(said, stored)));
}

fn of_said(type_: &'static str, said: &Said) -> Condition {
    let message = printable(&said.message, MESSAGE);
    match said.status {
        Some(holds) => Condition::new(type_, holds, said.reason, message),
        None => Condition::unknown(type_, said.reason, message),
    }
}

/// Whether the agent answers.
fn of_reach(reach: &Reach) -> Option<Condition> {
    Some(match reach {
        Reach::Answers => Condition::new(REACHABLE, true, Reason::Answered, "the agent answers"),
        Reach::Fails(error) if error.reason == Reason::CardInvalid => return of_reach(&Reach::Answers),
        Reach::Fails(error) => Condition::new(REACHABLE, false, error.reason, cut(error.message.to_string(), MESSAGE)),
        Reach::Unready(reason, message) if is_of_pods(*reason) => {
            Condition::new(REACHABLE, false, *reason, cut(message.clone(), MESSAGE))
        }
        Reach::Unready(..) | Reach::Open => return None,
    })
}

/// That reason is about the Pods of a workload.
fn is_of_pods(reason: Reason) -> bool {
    matches!(reason, Reason::NoReadyPod | Reason::PodsNotLabelled)
}

/// What is said of a card that was read.
fn of_card(
    published: Option<&Published>,
    judgement: &Judgement,
    (source, reach): (Source, &Reach),
    list: &Value,
) -> Vec<Condition> {
    let read = match source {
        Source::Agent => "the card was read",
        Source::ConfigMap => "the card was read in the ConfigMap with the workload's signed card",
    };
    let shown = match published {
        Some(published) if published.truncated => format!("{read}; it is too large to be shown whole"),
        Some(_) => read.to_owned(),
        None => format!("{read}; it is not shown, because its signature is not good"),
    };
    // A refusal that is worded anew each time is the same one.
    let reachable = of_reach(reach).map(|one| steady(list, one));
    let ready = match reach {
        Reach::Unready(reason, message) => Condition::new(READY, false, *reason, cut(message.clone(), MESSAGE)),
        _ => Condition::new(READY, true, Reason::ReadyToServe, "the agent can serve, and its card is shown"),
    };
    let mut judged = match judgement.signature.as_ref().filter(|_| judgement.refused) {
        Some(said) => vec![of_said(SYNCED, said), of_said(READY, said)],
        None => vec![Condition::new(SYNCED, true, Reason::SyncSucceeded, shown), ready],
    };
    judged.splice(1..1, reachable);
    if judgement.signature.is_some() {
        let holds = |said: &Said| of_said(SHARED, &Said { status: Some(true), ..said.clone() });
        judged.extend(judgement.warnings.iter().map(holds));
    }
    judged.extend(judgement.signature.iter().map(|said| of_said(SIGNATURE, said)));
    judged.extend(judgement.bound.iter().map(|said| of_said(BOUND, said)));
    judged.push(of_said(VERIFIED, &judgement.verified));
    judged
}

fn set_workload(set: &mut dyn FnMut(&str, Option<Value>), workload: &WorkloadRef<'_>, protocol: &str) {
    let kind = workload.seen.kind;
    let target = json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": &**workload.name});
    set("targetRef", Some(target));
    set("protocol", Some(json!(protocol)));
}

fn judged(card: &CardRef<'_>, found: &Found<'_>) -> Vec<Condition> {
    let no = |type_, reason, message: &str| Condition::new(type_, false, reason, cut(message.to_owned(), MESSAGE));
    match found {
        Found::Card { published, judgement, source, reach, unproved, .. } => {
            let list = card.seen.status.get("conditions").unwrap_or(&Value::Null);
            let mut judged = of_card(published.as_deref(), judgement, (*source, reach), list);
            judged.extend(unproved.then(fallback));
            judged
        }
        Found::Failed { error, lost, .. } => {
            let reachable = match error.reason {
                Reason::CardInvalid => Condition::new(REACHABLE, true, Reason::Answered, "the agent answers"),
                reason => no(REACHABLE, reason, &error.message),
            };
            let stays = match card.seen.status.get("cardId") {
                Some(_) => "; the card that is shown is the last one that could be read",
                None => "",
            };
            let message = format!("{}{stays}", error.message);
            let mut judged =
                vec![no(SYNCED, Reason::FetchFailed, &message), reachable, no(READY, Reason::FetchFailed, &message)];
            judged.extend(of_silence(lost));
            judged
        }
        Found::Hindered { hindrance, lost } => {
            let Hindrance { reason, message, .. } = &**hindrance;
            let mut judged = match reason {
                reason if is_of_pods(*reason) => vec![
                    no(SYNCED, Reason::FetchFailed, message),
                    no(REACHABLE, *reason, message),
                    no(READY, Reason::FetchFailed, message),
                ],
                reason => vec![no(SYNCED, *reason, message), no(READY, *reason, message)],
            };
            if hindrance.is_nobody() && card.seen.spec.identity_binding.is_some() {
                judged.push(no(BOUND, Reason::AgentNotFound, message));
            }
            judged.extend(of_silence(lost));
            judged
        }
    }
}

/// The agent was asked without a proof of who it is.
fn fallback() -> Condition {
    let message = format!(
        "agents are to prove over TLS who they are (cards.proof.enabled), and the agent's Service has no port named {PORT_TLS}: it was asked over \
         plain HTTP, so its signature decides"
    );
    Condition::new(UNPROVED, true, Reason::FallbackToHTTP, message)
}

fn of_silence(silence: &Silence) -> Option<Condition> {
    match silence {
        Silence::Kept => None,
        Silence::Suspended(said) => Some(of_said(SUSPENDED, said)),
        Silence::Ended(said) => Some(of_said(VERIFIED, said)),
    }
}

/// A refusal that is worded anew each time is the same one: its first words stay.
fn steady(list: &Value, mut condition: Condition) -> Condition {
    let known = stored(list, condition.type_).and_then(|known| known.get("message")).and_then(Value::as_str);
    if let Some(known) = known.filter(|_| !condition.holds && !conditions::is_news(list, &condition)) {
        known.clone_into(&mut condition.message);
    }
    condition
}

fn told(cx: &Context<'_>, card: &CardRef<'_>, wanted: &[Condition], content: Option<&Published>) -> Vec<Op> {
    let status = &card.seen.status;
    let list = status.get("conditions").unwrap_or(&Value::Null);
    let report = |reason: Reason, message: String, since: &Value| {
        let (about, uid) = (cx.key.clone(), card.uid.to_owned());
        let since = since.as_str().unwrap_or_default().to_owned();
        Op::Report(Report { kind: Kind::AgentCard, about, uid, reason, message, since })
    };
    let mut ops = Vec::new();
    let is_told = |one: &&Condition| match one.type_ {
        SYNCED => one.reason.class() == Class::Warning,
        // That a platform judges no signatures is no news of an agent.
        SIGNATURE | BOUND | SUSPENDED | DRIFT | SHARED | UNPROVED => true,
        _ => false,
    };
    let mut reasons = Vec::new();
    for one in wanted.iter().filter(is_told).filter(|one| conditions::is_news(list, one)) {
        if !reasons.contains(&one.reason) {
            let since = stored(list, one.type_).and_then(|known| known.get("lastTransitionTime"));
            ops.push(report(one.reason, one.message.clone(), since.unwrap_or(&Value::Null)));
            reasons.push(one.reason);
        }
    }
    let Some(published) = content else { return ops };
    let since = status.get("lastSyncTime").unwrap_or(&Value::Null);
    let before = status.get("cardId").and_then(Value::as_str).filter(|id| !id.is_empty());
    if let Some(before) = before {
        let message = format!("the agent serves another card: {} instead of {before}", published.id);
        ops.push(report(Reason::CardContentChanged, message, since));
    }
    if published.truncated {
        let message = "the card is larger than 64 KiB or has a list of more than 1024 items; its name, version and the ids of its skills are shown";
        ops.push(report(Reason::CardTruncated, message.to_owned(), since));
    }
    if let Some(host) = &published.foreign {
        let message = format!(
            "the card names the host {host}, which is not the agent's Service; the url that is shown is the Service's"
        );
        ops.push(report(Reason::UrlMismatch, message, since));
    }
    ops
}
