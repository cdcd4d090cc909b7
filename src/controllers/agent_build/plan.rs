//! Which AgentBuild a change concerns, and which part of its life it is in.

use serde_json::{Value, json};

use super::status::{self, Phase, State};
use super::subject::Subject;
use super::{clean_up, ending, follow, start};
use crate::api::findings::Fault;
use crate::controllers::scaffold::plan::{Context, Controller, Op, Plan, Row};
use crate::controllers::scaffold::world::{CustomRef, World};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, OwnerReference, What};

/// The controller's row. Its items are AgentBuilds.
pub const ROW: Row = Row { controller: Controller::AgentBuild, touched, of_namespace, plan };

fn touched(world: &World, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::AgentBuild => vec![key.clone()],
        Kind::PipelineRun | Kind::TaskRun | Kind::PersistentVolumeClaim | Kind::Pod => {
            let controller = world.controller_of(kind, namespace, name);
            controller.and_then(|owner| build_of(world, namespace, owner)).into_iter().collect()
        }
        Kind::ServiceAccount => {
            let concerned = world.service_account(namespace, name).is_some_and(|(seen, _, _)| seen.for_builds);
            if concerned { unjudged(world, namespace) } else { Vec::new() }
        }
        Kind::Namespace => of_namespace(world, name),
        _ => Vec::new(),
    }
}

/// The AgentBuild behind an owner: a build, a run of one, or a TaskRun of such a run.
fn build_of(world: &World, namespace: &str, owner: &OwnerReference) -> Option<Key> {
    let kind = match owner.kind.as_str() {
        "AgentBuild" => {
            let build = world.agent_build(namespace, &owner.name).filter(|build| build.uid == owner.uid)?;
            return Some(Key::new(namespace, build.name));
        }
        "PipelineRun" => Kind::PipelineRun,
        "TaskRun" => Kind::TaskRun,
        _ => return None,
    };
    build_of(world, namespace, world.controller_of(kind, namespace, &owner.name)?)
}

fn unjudged(world: &World, namespace: &str) -> Vec<Key> {
    let open = world.agent_builds(namespace).filter(|build| !status::is_judged(&build.seen.status));
    open.map(|build| Key::new(namespace, build.name)).collect()
}

fn of_namespace(world: &World, namespace: &str) -> Vec<Key> {
    world.agent_builds(namespace).map(|build| Key::new(namespace, build.name)).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    let Some(build) = cx.world.agent_build(namespace, name) else { return Plan::nothing() };
    if build.seen.deleting {
        return ending::plan(&cx, &build);
    }
    // In a namespace that goes, nothing can be made.
    if cx.world.namespace(namespace).is_none() {
        return Plan::nothing();
    }
    let subject = Subject::new(cx, build);
    if let Some(over) = build.seen.over {
        return start::wait(&subject, &[Fault::over(over)], false);
    }
    if !build.seen.has_finalizer() {
        return first_sight(&subject);
    }
    if subject.is_claimed() {
        if status::is_judged(&build.seen.status) { clean_up::plan(&subject) } else { follow::plan(&subject) }
    } else {
        match subject.other_active_run() {
            Some(run) => follow::supersede(&subject, &run),
            None => start::plan(&subject),
        }
    }
}

/// The finalizer, before anything is made; and a first word for people.
fn first_sight(subject: &Subject<'_>) -> Plan {
    let mut ops = vec![finalizer(&subject.cx, &subject.build, true)];
    if subject.build.seen.status.get("phase").is_none() {
        let mut state = State::new(Phase::Pending, Reason::BuildPending, "Build pending");
        state.members.insert("handledCancel".to_owned(), subject.cancel().map_or(Value::Null, Value::from));
        ops.extend(status::update(subject, &state).into_iter().map(without_version));
    }
    Plan::of(ops)
}

/// The finalizer that is written first makes a new version.
fn without_version(mut op: Op) -> Op {
    if let Op::Status { patch, .. } = &mut op
        && let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("resourceVersion");
    }
    op
}

/// Our finalizer on an AgentBuild, put on or taken off.
pub(super) fn finalizer(cx: &Context<'_>, build: &CustomRef<'_>, wanted: bool) -> Op {
    let others = build.seen.finalizers.iter().map(|name| &**name).filter(|name| *name != keys::FINALIZER_AGENT);
    let all: Vec<&str> = others.chain(wanted.then_some(keys::FINALIZER_AGENT)).collect();
    let patch = json!({"metadata": {
        "uid": build.uid,
        "resourceVersion": build.version.to_string(),
        "finalizers": if all.is_empty() { Value::Null } else { json!(all) },
    }});
    Op::Merge { kind: Kind::AgentBuild, key: Key::new(&cx.key.namespace, build.name), patch }
}

impl World {
    /// The owner that controls an object of those kinds for which that is looked up.
    fn controller_of(&self, kind: Kind, namespace: &str, name: &str) -> Option<&OwnerReference> {
        self.object(kind, namespace, name).map(|(_, observed)| &observed.what).and_then(What::controller)
    }
}
