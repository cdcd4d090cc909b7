//! The Agent that a build keeps, as a desired state.
//!
//! In: a build that is completed, and the Agent of the name that it keeps. Out: the Agent's creation or correction, and conditions `Deployed`
//! and `Ready`. Promises: an Agent that carries another mark than this build's uid is never changed, and whose it is is said with what to do;
//! nothing is mounted that the check on the build has not seen: names that it left to the Secrets' own consent are asked for before each write,
//! by what the Agent will mount, whichever part of the build names it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::login as registry;
use crate::api::secrets;
use crate::controllers::agent_build::clean_up;
use crate::controllers::agent_build::face::Face;
use crate::controllers::agent_build::failure::cut;
use crate::controllers::agent_build::memory::Plan;
use crate::controllers::agent_build::note::Note;
use crate::controllers::agent_build::status::{self, READY, State};
use crate::controllers::agent_build::subject::Subject;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::answers::SecretFact;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{Op, escaped};
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::beeai_build::deploy::{Wanted, agent, target};
use crate::pipelines::beeai_build::login::{RegistryLogin, login};
use crate::store::objects::CustomRef;
use crate::store::{Key, Kind, Reach, Store};

/// Whether the Agent that the build asks for is there and is as it should be.
const DEPLOYED: &str = "Deployed";
/// Failures in a row that people are told of.
const FAILURES: u32 = 3;
/// How long a Secret that does not consent is not asked again: nobody tells when it does.
const UNUSABLE: Duration = Duration::from_secs(30);
/// Longest mark of somebody else's that is repeated: a uid is shorter.
const MARK: usize = 64;

/// The kind of Agent that builds of that face keep: of their own group.
fn kind_of(face: &Face) -> Kind {
    match face.kind {
        Kind::BeeaiCompatBuild => Kind::BeeaiCompatAgent,
        _ => Kind::BeeaiAgent,
    }
}

/// The builds that a change of an Agent may concern; `None` where the change is of something else.
pub(super) fn concerned(store: &Store, (kind, key): (Kind, &Key), face: &Face) -> Option<Vec<Key>> {
    if kind != kind_of(face) {
        return None;
    }
    let keeps = |spec: &Value, own: &str| {
        let named = spec.pointer("/agent/name").and_then(Value::as_str).filter(|name| !name.is_empty());
        spec.get("deployAfterBuild").and_then(Value::as_bool).unwrap_or(false) && named.unwrap_or(own) == &*key.name
    };
    let builds = store.customs(face.kind, &key.namespace).filter(|build| keeps(&build.seen.spec, build.name));
    Some(builds.map(|build| Key::new(&key.namespace, build.name)).collect())
}

/// The Agent of the name that the build keeps, and whether this build made it.
fn standing<'a>(subject: &Subject<'a>) -> Option<(CustomRef<'a>, bool)> {
    let agent = subject.cx.store.custom(kind_of(subject.face), subject.namespace(), target(&subject.object)?)?;
    let mark = agent.seen.annotations.get(keys::ANNOTATION_CREATED_BY_UID);
    Some((agent, mark.is_some_and(|uid| uid == subject.build.uid)))
}

/// The Agent of this build that pulls its image with that Secret.
pub(super) fn user_of(subject: &Subject<'_>, secret: &str) -> Option<(Kind, String, String)> {
    let (agent, _) = standing(subject).filter(|(agent, ours)| *ours && !agent.seen.deleting)?;
    let env = agent.seen.spec.get("env").and_then(Value::as_array).into_iter().flatten();
    let mut named = env.filter(|one| one["name"] == keys::ENV_IMAGE_REPO_SECRET);
    let uses = named.any(|one| one["value"] == secret);
    uses.then(|| (kind_of(subject.face), agent.name.to_string(), agent.uid.to_owned()))
}

/// Of a build that has just made its image and keeps an Agent: that the Agent follows.
pub(super) fn ready(subject: &Subject<'_>, state: &State) -> Option<Condition> {
    let agent = target(&subject.object)?;
    let image = state.ready.as_ref().unwrap_or(&state.message);
    Some(Condition::new(READY, false, Reason::AgentNotReady, format!("{image}; Agent {agent} follows")))
}

/// What to do about a build that is judged.
pub(super) fn settled(subject: &Subject<'_>) -> Plan {
    let login = registry::Standing::of(subject);
    let note = Note { login: login.as_ref().and_then(|login| login.tried.clone()), ..Note::default() };
    if let Some(login) = login.as_ref().filter(|login| login.due.is_zero()) {
        return Plan { ops: vec![login.wanted()], again: Some(Duration::ZERO), note };
    }
    let due = login.as_ref().map(|login| login.due);
    let said = registry::said(subject, login.as_ref());
    if !said.is_empty() {
        return Plan { ops: said, again: due, note };
    }
    let is_completed = subject.phase() == subject.face.words.succeeded;
    let (ops, mut again) = if is_completed { hook(subject) } else { (Vec::new(), None) };
    let mut plan = if ops.is_empty() { clean_up::plan(subject) } else { Plan::of(ops) };
    for one in [plan.again, due] {
        again = match (again, one) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    plan.again = again;
    plan.note = note;
    plan
}

/// How the Agent stands.
struct Deployed {
    holds: bool,
    reason: Reason,
    message: String,
    /// Condition `Ready` of the build.
    ready: (bool, Reason, String),
    /// The Agent's own words, where it is this build's.
    agent: Option<(String, Option<String>)>,
}

fn hook(subject: &Subject<'_>) -> (Vec<Op>, Option<Duration>) {
    let image = subject.recorded("builtImage");
    let Some(wanted) = agent(&subject.object, image, &pulls(subject)) else {
        return (store(subject, None), None);
    };
    let kind = kind_of(subject.face);
    if subject.cx.store.reach(kind) != Reach::Listed {
        let message = format!(
            "the API server does not serve Agents of {}; Agent {} follows once it does",
            kind.group(),
            wanted.name
        );
        return (store(subject, Some(&failed(Reason::CreateFailed, message))), None);
    }
    match standing(subject) {
        None => make(subject, &wanted, kind),
        Some((agent, _)) if agent.seen.deleting => {
            let message = format!("Agent {} is being deleted; a new one follows once it is gone", wanted.name);
            (store(subject, Some(&failed(Reason::AgentNotReady, message))), None)
        }
        Some((agent, true)) => keep(subject, &wanted, kind, &agent),
        Some((agent, false)) => {
            let message = left_alone(subject, kind, &agent);
            let deployed = failed(Reason::AgentExists, message.clone());
            let told = is_news(subject, &deployed).then(|| status::report(subject, Reason::AgentExists, message));
            (told.into_iter().chain(store(subject, Some(&deployed))).collect(), None)
        }
    }
}

/// Why an Agent of the name is not this build's, and what to do about it.
fn left_alone(subject: &Subject<'_>, kind: Kind, agent: &CustomRef<'_>) -> String {
    let (name, build, namespace) = (agent.name, &subject.build, subject.namespace());
    if let Some(over) = agent.seen.over {
        let remedy = match over {
            Over::Size => "write less on it",
            Over::Count | Over::Total => "delete Agents that nobody needs",
        };
        let sentence = over.sentence();
        return format!(
            "Agent {name} {sentence}. So it is not known which build it is of, and it is left alone. What to do: {remedy}; the build \
             follows by itself"
        );
    }
    let key = keys::ANNOTATION_CREATED_BY_UID;
    let mark = agent.seen.annotations.get(key).filter(|mark| !mark.is_empty());
    let is_of_this_name = agent.seen.labels.get(keys::LABEL_CREATED_BY).is_some_and(|by| **by == **build.name);
    let mut builds = subject.cx.store.customs(subject.face.kind, namespace);
    let keeper = mark.and_then(|mark| builds.find(|other| other.uid == mark));
    let whose = match (mark, keeper) {
        (Some(_), Some(keeper)) => format!("exists and AgentBuild {} keeps it", keeper.name),
        (Some(mark), None) if is_of_this_name => {
            format!("exists and was made by an earlier AgentBuild of this name ({key}: {})", cut(mark, MARK))
        }
        (Some(mark), None) => format!("exists and was made by an AgentBuild that is gone ({key}: {})", cut(mark, MARK)),
        (None, _) if is_of_this_name => {
            format!("exists and was made for this build by an earlier operator: it has no annotation {key}")
        }
        (None, _) => "exists and was not made by a build".to_owned(),
    };
    let another = "give spec.agent.name another name";
    let (plural, group, uid) = (kind.plural(), kind.group(), build.uid);
    let keep = format!(
        "have this build keep it: kubectl -n {namespace} annotate {plural}.{group} {name} {key}={uid} --overwrite"
    );
    let remedy = match (mark, keeper) {
        (_, Some(_)) => another.to_owned(),
        (None, None) if !is_of_this_name => format!("{another}, delete the Agent, or {keep}"),
        _ => format!("{another}, or {keep}"),
    };
    format!("Agent {name} {whose}; it is left alone. What to do: {remedy}")
}

fn failed(reason: Reason, message: String) -> Deployed {
    Deployed { holds: false, reason, message: message.clone(), ready: (false, reason, message), agent: None }
}

/// The Secret that the image is pulled with: none where the token that it is made from may be missing, and is.
fn pulls(subject: &Subject<'_>) -> RegistryLogin {
    let login = login(&subject.object, &subject.builds().settings.pipelines);
    let RegistryLogin::Made(made) = &login else { return login };
    let key = Key::new(subject.namespace(), &made.secret);
    let known = subject.cx.memory.answers.secret_fact(&key);
    let missing = made.optional && known.is_some_and(|(fact, _)| *fact == SecretFact::Absent);
    if missing { RegistryLogin::None } else { login }
}

/// The Secrets that the Agent would mount and that the build leaves to their own consent, as the Agent says itself.
fn consent(subject: &Subject<'_>, wanted: &Wanted) -> Option<Op> {
    let left = secrets::by_consent(&json!({"metadata": {"annotations": wanted.annotations}}));
    let demand = |secret| Demand { secret, by: keys::USABLE_BY[1], goes: Goes::Anywhere };
    let demands: Vec<_> = left.into_iter().map(demand).collect();
    (!demands.is_empty()).then(|| Op::Consent { namespace: subject.namespace().to_owned(), demands })
}

/// The trouble with one of these operations.
fn trouble<'a>(subject: &Subject<'a>, ops: &[Op]) -> Option<&'a Trouble> {
    subject.trouble().filter(|trouble| ops.contains(&trouble.op))
}

/// Writes `ops`, unless a Secret has just refused; then says so.
fn written(subject: &Subject<'_>, (wanted, ops, reason): (&Wanted, Vec<Op>, Reason)) -> (Vec<Op>, Option<Duration>) {
    if let Some(trouble) = trouble(subject, &ops) {
        let since = subject.cx.now.saturating_sub(trouble.at);
        if trouble.refused == Some(Reason::SecretNotUsable) && since < UNUSABLE {
            let message = format!("Agent {} is not written: {}", wanted.name, trouble.message);
            return (
                store(subject, Some(&failed(Reason::SecretNotAllowed, message))),
                Some(UNUSABLE.saturating_sub(since)),
            );
        }
        if trouble.refused.is_none() && trouble.times >= FAILURES {
            let message =
                format!("Agent {} cannot be written at present, and is tried again: {}", wanted.name, trouble.message);
            let said = store(subject, Some(&failed(Reason::CreateFailed, message)));
            if !said.is_empty() {
                return (said, Some(Duration::ZERO));
            }
        }
    }
    let words = if reason == Reason::AgentCreated { "was made" } else { "follows the build" };
    let message = format!("Agent {} {words}, with image {}", wanted.name, subject.recorded("builtImage"));
    let deployed = Deployed {
        holds: true,
        reason,
        message: message.clone(),
        ready: (false, Reason::AgentNotReady, format!("Agent {} has not said yet how it stands", wanted.name)),
        agent: Some((wanted.name.clone(), None)),
    };
    let told = status::report(subject, reason, message);
    (ops.into_iter().chain([told]).chain(store(subject, Some(&deployed))).collect(), None)
}

fn make(subject: &Subject<'_>, wanted: &Wanted, kind: Kind) -> (Vec<Op>, Option<Duration>) {
    let body = json!({
        "metadata": {
            "name": wanted.name, "namespace": subject.namespace(), "labels": wanted.labels, "annotations": wanted.annotations,
        },
        "spec": wanted.spec,
    });
    let create = Op::Create { kind, namespace: subject.namespace().to_owned(), body };
    let ops = consent(subject, wanted).into_iter().chain([create]).collect();
    written(subject, (wanted, ops, Reason::AgentCreated))
}

fn keep(subject: &Subject<'_>, wanted: &Wanted, kind: Kind, agent: &CustomRef<'_>) -> (Vec<Op>, Option<Duration>) {
    let changes = changes(wanted, agent);
    if !changes.is_empty() {
        let uid = json!({"op": "test", "path": "/metadata/uid", "value": agent.uid});
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": agent.version.to_string()});
        let operations = [uid, version].into_iter().chain(changes).collect();
        let edit = Op::Edit { kind, key: Key::new(subject.namespace(), agent.name), operations };
        let ops = consent(subject, wanted).into_iter().chain([edit]).collect();
        return written(subject, (wanted, ops, Reason::AgentUpdated));
    }
    let name = &wanted.name;
    let text = |key: &str| agent.seen.status.get(key).and_then(Value::as_str);
    let is_current = agent.seen.status.get("observedGeneration").and_then(Value::as_i64) == Some(agent.seen.generation);
    let runs = agent.seen.status.get("ready").and_then(Value::as_bool) == Some(true) && is_current;
    let ready = if runs {
        (true, Reason::AgentReady, format!("Agent {name} runs {}", subject.recorded("builtImage")))
    } else {
        let list = agent.seen.status.get("conditions").unwrap_or(&Value::Null);
        let said = conditions::stored(list, READY).filter(|_| is_current).and_then(|one| one.get("message")?.as_str());
        (false, Reason::AgentNotReady, format!("Agent {name}: {}", said.unwrap_or("it has not said yet how it stands")))
    };
    let stored = status::stored_reason(&subject.build.seen.status, DEPLOYED);
    let updated = stored == Some(Reason::AgentUpdated.code());
    let (reason, words) =
        if updated { (Reason::AgentUpdated, "follows the build") } else { (Reason::AgentCreated, "was made") };
    let deployed = Deployed {
        holds: true,
        reason,
        message: format!("Agent {name} {words}, with image {}", subject.recorded("builtImage")),
        ready,
        agent: Some((name.clone(), text("deploymentStatus").map(str::to_owned))),
    };
    (store(subject, Some(&deployed)), None)
}

/// What has to be written of an Agent of this build: it is kept as the build says, whoever changed it.
fn changes(wanted: &Wanted, agent: &CustomRef<'_>) -> Vec<Value> {
    let mut changes = Vec::new();
    if *agent.seen.spec != wanted.spec {
        changes.push(json!({"op": "add", "path": "/spec", "value": wanted.spec}));
    }
    let labels =
        wanted.labels.iter().filter(|(key, value)| agent.seen.labels.get(*key).map(String::as_str) != value.as_str());
    let mut labels = labels.peekable();
    // An object without labels has no map that one could be put into.
    if labels.peek().is_some() && agent.seen.labels.is_empty() {
        changes.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
    }
    for (key, value) in labels {
        changes.push(json!({"op": "add", "path": format!("/metadata/labels/{}", escaped(key)), "value": value}));
    }
    let key = keys::ANNOTATION_SECRETS_BY_CONSENT;
    let path = format!("/metadata/annotations/{}", escaped(key));
    match (wanted.annotations.get(key).and_then(Value::as_str), agent.seen.annotations.get(key).map(String::as_str)) {
        (wanted, stored) if wanted == stored => {}
        (None, _) => changes.push(json!({"op": "remove", "path": path})),
        (Some(wanted), _) => changes.push(json!({"op": "add", "path": path, "value": wanted})),
    }
    changes
}

fn is_news(subject: &Subject<'_>, deployed: &Deployed) -> bool {
    let list = subject.build.seen.status.get("conditions").unwrap_or(&Value::Null);
    conditions::is_news(list, &Condition::new(DEPLOYED, deployed.holds, deployed.reason, ""))
}

/// The operations that store how the Agent stands, or that there is none to be kept.
fn store(subject: &Subject<'_>, deployed: Option<&Deployed>) -> Vec<Op> {
    let image = subject.recorded("builtImage");
    let mut members = Map::new();
    let agent = deployed.and_then(|deployed| deployed.agent.as_ref());
    members.insert("agentName".to_owned(), agent.map_or(Value::Null, |(name, _)| json!(name)));
    members.insert(
        "deploymentStatus".to_owned(),
        agent.and_then(|(_, words)| words.as_ref()).map_or(Value::Null, |words| json!(words)),
    );
    let wanted: Vec<Condition> = match deployed {
        None => vec![Condition::new(READY, true, Reason::BuildReady, format!("{image} is ready"))],
        Some(Deployed { holds, reason, message, ready, .. }) => vec![
            Condition::new(READY, ready.0, ready.1, ready.2.clone()),
            Condition::new(DEPLOYED, *holds, *reason, message.clone()),
        ],
    };
    status::amend(subject, &members, (&wanted, &[READY, DEPLOYED]))
}
