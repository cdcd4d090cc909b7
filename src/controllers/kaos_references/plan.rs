//! What to do about one Deployment of KAOS.
//!
//! In: the object, its Deployment, and in which versions what it refers to is. Out: the write that has its Pods made again, a place among those
//! that wait, and what was seen last in the status. Promises: of a namespace five roll at a time for what has changed, or a tenth of its
//! objects, and no more once two have failed; who waits says so, once; what is being replaced already, or makes no Pods, waits for nobody.
//! The status follows once the Pods are there, so whoever leads next knows of whom that is still to be done.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::memory::{Context, Follows, Note, Part, Plan};
use super::question::{ABSENT, VersionOf};
use super::stands::{Stands, stands};
use crate::api::digest;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::references::{References, references};
use crate::controllers::scaffold::budget::{self, Turn};
use crate::controllers::scaffold::lane::{Ask, Facts};
use crate::controllers::scaffold::plan::{Asked, AskingRow, Name, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::objects::{CustomRef, WorkloadRef};
use crate::store::{Key, Kind, Store};
use crate::workloads::kaos::names::Role;

/// The controller's name.
pub const NAME: Name = Name::new("kaos-references");

/// The controller's row. Its items are Deployments.
pub const ROW: AskingRow<VersionOf, Follows> =
    AskingRow { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// How often each is asked for.
const PERIOD: u64 = 60;
/// How soon one that waits for its turn is looked at again: nobody tells it when one that rolls is done.
const SOON: Duration = Duration::from_secs(5);
/// The same while it is not known yet who rolls.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Condition of an object whose Pods are made again in their turn.
const PENDING: &str = "ReferencesPending";

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

/// What a plan is about.
struct Subject<'a> {
    cx: Context<'a>,
    kind: Kind,
    object: CustomRef<'a>,
    /// Its own Deployment.
    deployment: Option<WorkloadRef<'a>>,
}

fn plan(cx: Context<'_>, facts: &Facts<VersionOf>) -> Asked<VersionOf, Note> {
    let nothing = (Plan::nothing(), Vec::new());
    let kaos = cx.facts.platform.kaos();
    let Some(subject) = Subject::of(cx) else { return nothing };
    // What was said of a turn goes with the setting.
    if !kaos.roll_on_secret_change && !subject.says() {
        return nothing;
    }
    let believed = kaos.believed(cx.store.operator_namespace());
    if let Some(left) = cx.store.held_by_the_operator_before(cx.now, &believed) {
        return (Plan::later(left.min(Duration::from_secs(PERIOD))), Vec::new());
    }
    let found = kaos.roll_on_secret_change.then(|| references(&subject.object.seen.spec, &cx.key.namespace));
    let References { asked: questions, required, .. } = found.unwrap_or_default();
    let Some(deployment) = subject.deployment.filter(|_| !questions.is_empty()) else {
        return (Plan::of(subject.status(None, false)), Vec::new());
    };
    let (since, left) = turn(cx.now, subject.object.uid);
    let asks = questions.iter().map(|question| Ask { question: question.clone(), since }).collect();
    let version = |question: &VersionOf| facts.get(question)?.value.as_ref().ok().cloned();
    let versions = questions.iter().map(version).collect::<Option<Vec<_>>>();
    // New Pods do not start without it: those that run go on, and once it is there again they follow it.
    let lacks = |versions: &Vec<Box<str>>| {
        let mut all = questions.iter().zip(versions);
        all.any(|(question, version)| &**version == ABSENT && required.contains(question))
    };
    let plan = match versions.filter(|versions| !lacks(versions)) {
        Some(versions) => subject.follow(&deployment, &seen(&questions, &versions)),
        None => Plan { note: subject.unknown(&deployment), ..Plan::nothing() },
    };
    let again = plan.again.into_iter().chain([left]).min();
    (Plan { again, ..plan }, asks)
}

impl<'a> Subject<'a> {
    /// The object of the item, unless it goes or nothing of it can be read or made.
    fn of(cx: Context<'a>) -> Option<Self> {
        let (kind, object) = object(&cx)?;
        let namespace = &cx.key.namespace;
        let here = cx.store.namespace(namespace).is_some() && cx.facts.snapshot.namespace(namespace).is_some();
        if !here || object.seen.deleting || object.seen.over.is_some() {
            return None;
        }
        let deployment = cx.store.workload(Kind::Deployment, namespace, &cx.key.name);
        let deployment = deployment.filter(|deployment| {
            let ours = deployment.seen.controller.as_ref().is_some_and(|owner| owner.uid == object.uid);
            ours && !deployment.seen.deleting
        });
        Some(Self { cx, kind, object, deployment })
    }

    /// What to do once the versions are known.
    fn follow(&self, deployment: &WorkloadRef<'_>, now: &str) -> Plan {
        if !self.before().is_some_and(|before| rolls(before, now)) {
            return Plan::of(self.status(Some(now), false));
        }
        let noted = self.note();
        let written = noted.written && noted.rolls_for.as_deref() == Some(now);
        let goes_on = |part| Plan { note: Note { part, ..noted.clone() }, ..Plan::nothing() };
        let begins = |part, more: Vec<Op>| {
            let ops = std::iter::once(roll(self.cx.key, deployment.uid, now)).chain(more).collect();
            Plan { note: Note { part, rolls_for: Some(now.into()), written: false }, ..Plan::of(ops) }
        };
        match (stands(deployment.seen), written) {
            (Stands::Ended | Stands::Still, true) => Plan::of(self.status(Some(now), false)),
            (Stands::Failed, true) => goes_on(Part::Failed),
            (Stands::Rolls, true) => goes_on(Part::Rolls),
            (Stands::Still, false) => begins(Part::None, self.status(Some(now), false)),
            (Stands::Ended, false) if !self.has_turn(noted.part) => {
                let is_known = self.cx.memory.surveyed;
                let ops = if is_known { self.status(None, true) } else { Vec::new() };
                Plan { again: Some(if is_known { SOON } else { AT_ONCE }), ..Plan::of(ops) }
            }
            // Whoever led before may have written it: then this changes nothing, and it has failed already.
            (Stands::Failed, false) => begins(Part::Failed, Vec::new()),
            (Stands::Ended | Stands::Rolls, false) => begins(Part::Rolls, Vec::new()),
        }
    }

    /// What is noted while nobody can say what there is to do: who is being replaced keeps a place.
    fn unknown(&self, deployment: &WorkloadRef<'_>) -> Note {
        let noted = self.note();
        let part = match stands(deployment.seen) {
            Stands::Rolls if self.before().is_some() => Part::Rolls,
            Stands::Failed if noted.part == Part::Failed => Part::Failed,
            _ => Part::None,
        };
        Note { part, ..noted }
    }

    /// Whether its Pods may be replaced now, beside those of its namespace that are.
    fn has_turn(&self, own: Part) -> bool {
        let (Key { namespace, .. }, store) = (self.cx.key, self.cx.store);
        let all: usize = KINDS.iter().map(|(kind, _)| store.customs(*kind, namespace).count()).sum();
        let (rolling, failed) = self.cx.own.memory.besides(namespace, own);
        self.cx.memory.surveyed && budget::turn(budget::budget(all), rolling, failed) == Turn::Now
    }

    /// What was seen last, and its Pods follow.
    fn before(&self) -> Option<&'a str> {
        self.object.seen.status.get("references").and_then(Value::as_str)
    }

    fn note(&self) -> Note {
        self.cx.note().cloned().unwrap_or_default()
    }

    fn list(&self) -> &'a Value {
        self.object.seen.status.get("conditions").unwrap_or(&Value::Null)
    }

    /// Whether its status says that its Pods are made again in their turn.
    fn says(&self) -> bool {
        conditions::stored(self.list(), PENDING).is_some()
    }

    /// The write by which the status says what its Pods follow, where that is said anew, and whether they are made again in their turn.
    fn status(&self, follows: Option<&str>, waits: bool) -> Vec<Op> {
        let mut wanted = Map::new();
        if let Some(follows) = follows.filter(|follows| self.before() != Some(*follows)) {
            wanted.insert("references".to_owned(), follows.into());
        }
        if waits != self.says() {
            wanted.insert("conditions".to_owned(), self.conditions(waits));
        }
        if wanted.is_empty() {
            return Vec::new();
        }
        let object = &self.object;
        let metadata = json!({"uid": object.uid, "resourceVersion": object.version.to_string()});
        let patch = json!({"metadata": metadata, "status": wanted});
        vec![Op::Status { kind: self.kind, key: Key::new(&self.cx.key.namespace, object.name), patch }]
    }

    fn conditions(&self, waits: bool) -> Value {
        let Key { namespace, name } = self.cx.key;
        let text = || {
            format!(
                "its Pods are made again in their turn, because a Secret or ConfigMap that its environment refers to has changed: five objects of a \
                 namespace at a time, or a tenth, and no more once two did not become ready in time. To have it done at once: kubectl -n {namespace} \
                 rollout restart deployment {name}"
            )
        };
        let own = waits.then(|| Condition::new(PENDING, true, Reason::RolloutPending, text()));
        let own = own.as_slice();
        let mut all = conditions::merged(self.list(), own, &[PENDING], &[], self.object.seen.generation);
        // Behind those of whoever writes the others: in another order they would be written once more.
        if let Some(all) = all.as_array_mut() {
            all.rotate_left(own.len());
        }
        all
    }
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
