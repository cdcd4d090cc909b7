//! What to do about one Deployment of KAOS.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::{Value, json};

use super::question::{ABSENT, VersionOf};
use crate::api::digest;
use crate::controllers::references::{References, references};
use crate::controllers::scaffold::lane::{Ask, Facts};
use crate::controllers::scaffold::plan::{Asked, AskingRow, Context, Name, Op, Plan};
use crate::domain::keys;
use crate::store::objects::CustomRef;
use crate::store::{Key, Kind, Store};
use crate::workloads::kaos::names::Role;

/// The controller's name.
pub const NAME: Name = Name::new("kaos-references");

/// The controller's row. Its items are Deployments.
pub const ROW: AskingRow<VersionOf> =
    AskingRow { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// How often each is asked for.
const PERIOD: u64 = 60;

const KINDS: [(Kind, Role); 3] =
    [(Kind::KaosAgent, Role::Agent), (Kind::ModelApi, Role::ModelApi), (Kind::McpServer, Role::McpServer)];

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    match kind {
        Kind::Namespace => of_namespace(store, &key.name),
        Kind::Deployment => {
            KINDS.iter().filter(|(_, role)| key.name.starts_with(role.prefix())).map(|_| key.clone()).collect()
        }
        kind => {
            let role = KINDS.iter().find(|(known, _)| *known == kind).map(|(_, role)| *role);
            role.map(|role| Key::new(&key.namespace, &role.object(&key.name))).into_iter().collect()
        }
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    let of = |(kind, role): &(Kind, Role)| {
        let role = *role;
        store.customs(*kind, namespace).map(move |one| Key::new(namespace, &role.object(one.name))).collect::<Vec<_>>()
    };
    KINDS.iter().flat_map(of).collect()
}

/// The object that has that Deployment.
fn object<'a>(cx: &Context<'a>) -> Option<(Kind, CustomRef<'a>)> {
    let Key { namespace, name } = cx.key;
    KINDS.iter().find_map(|(kind, role)| {
        let found = cx.store.custom(*kind, namespace, name.strip_prefix(role.prefix())?)?;
        Some((*kind, found))
    })
}

fn plan(cx: Context<'_>, facts: &Facts<VersionOf>) -> Asked<VersionOf> {
    let nothing = (Plan::nothing(), Vec::new());
    if !cx.facts.platform.kaos().roll_on_secret_change {
        return nothing;
    }
    let believed = cx.facts.platform.kaos().believed(cx.store.operator_namespace());
    if let Some(left) = cx.store.held_by_the_operator_before(cx.now, &believed) {
        return (Plan::later(left.min(Duration::from_secs(PERIOD))), Vec::new());
    }
    let namespace = &cx.key.namespace;
    let here = cx.store.namespace(namespace).is_some() && cx.facts.snapshot.namespace(namespace).is_some();
    let deployment = cx.store.workload(Kind::Deployment, namespace, &cx.key.name);
    let (Some((kind, object)), Some(deployment)) = (object(&cx).filter(|_| here), deployment) else { return nothing };
    let ours = deployment.seen.controller.as_ref().is_some_and(|owner| owner.uid == object.uid);
    if object.seen.deleting || deployment.seen.deleting || !ours {
        return nothing;
    }
    let References { asked: questions, required, .. } = references(&object.seen.spec, namespace);
    if questions.is_empty() {
        return nothing;
    }
    let (since, left) = turn(cx.now, object.uid);
    let asks = questions.iter().map(|question| Ask { question: question.clone(), since }).collect();
    let version = |question: &VersionOf| facts.get(question)?.value.as_ref().ok().cloned();
    let Some(versions) = questions.iter().map(version).collect::<Option<Vec<_>>>() else {
        return (Plan::later(left), asks);
    };
    // New Pods do not start without it: those that run go on, and once it is there again they follow it.
    let mut all = questions.iter().zip(&versions);
    if all.any(|(question, version)| &**version == ABSENT && required.contains(question)) {
        return (Plan::later(left), asks);
    }
    let now = seen(&questions, &versions);
    let before = object.seen.status.get("references").and_then(Value::as_str);
    let mut ops = Vec::new();
    if before != Some(&now) {
        if before.is_some_and(|before| rolls(before, &now)) {
            ops.push(roll(cx.key, deployment.uid, &now));
        }
        ops.push(status(kind, &cx, &object, &now));
    }
    (Plan { again: Some(left), ..Plan::of(ops) }, asks)
}

/// When the present turn of an object began, and how long it lasts: each has its own second of the minute.
pub(super) fn turn(now: Duration, uid: &str) -> (Duration, Duration) {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let offset = hasher.finish() % PERIOD;
    let passed = (now.as_secs() + offset) % PERIOD;
    let began = now.as_secs().saturating_sub(passed);
    (Duration::from_secs(began), Duration::from_secs(PERIOD - passed))
}

/// What is referred to, and in which version it is: two digests, since only a change of the second rolls.
pub(super) fn seen(questions: &BTreeSet<VersionOf>, versions: &[Box<str>]) -> String {
    let short = |text: String| digest::of_bytes(text.as_bytes()).chars().take(16).collect::<String>();
    let names: String = questions.iter().map(|one| format!("{}/{}\n", one.kind.as_str(), one.name)).collect();
    format!("{}.{}", short(names), short(versions.join("\n")))
}

fn rolls(before: &str, now: &str) -> bool {
    let names = |text: &str| text.split_once('.').map(|(names, _)| names.to_owned());
    before != now && names(before) == names(now)
}

fn roll(key: &Key, uid: &str, seen: &str) -> Op {
    let annotations = json!({keys::ANNOTATION_KAOS_REFERENCES: seen});
    let patch = json!({"metadata": {"uid": uid}, "spec": {"template": {"metadata": {"annotations": annotations}}}});
    Op::Merge { kind: Kind::Deployment, key: key.clone(), patch }
}

fn status(kind: Kind, cx: &Context<'_>, object: &CustomRef<'_>, seen: &str) -> Op {
    let metadata = json!({"uid": object.uid, "resourceVersion": object.version.to_string()});
    let key = Key::new(&cx.key.namespace, object.name);
    Op::Status { kind, key, patch: json!({"metadata": metadata, "status": {"references": seen}}) }
}
