//! Who governs whom, whose Pods are whose, and what an event costs.

use serde_json::{Value, json};

use super::*;
use crate::controllers::scaffold::fixtures::{change, s, workload};
use crate::domain::workload::WorkloadKind;

fn world() -> World {
    World::new("kagenti-system")
}

fn see(world: &mut World, kind: Kind, object: Value) -> bool {
    world.apply(&change(kind, object), s(0))
}

fn lose(world: &mut World, kind: Kind, object: Value) -> bool {
    let mut change = change(kind, object);
    change.now = None;
    change.listed = true;
    world.apply(&change, s(0))
}

fn runtime(name: &str, created: u32, target: (&str, &str, &str)) -> Value {
    let (api_version, kind, workload) = target;
    json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("u-{name}"), "resourceVersion": "5",
            "creationTimestamp": format!("2026-01-01T00:{:02}:{:02}Z", created / 60, created % 60)},
        "spec": {"type": "agent", "targetRef": {"apiVersion": api_version, "kind": kind, "name": workload}},
    })
}

const DEPLOYMENT: (&str, &str, &str) = ("apps/v1", "Deployment", "w");

fn deleting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    object["metadata"]["resourceVersion"] = json!("6");
    object
}

fn names(world: &World, kind: WorkloadKind, name: &str) -> Vec<String> {
    world.agent_runtimes_of("team", kind, name).map(|runtime| runtime.name.to_string()).collect()
}

fn winner(world: &World, kind: Kind, name: &str) -> Option<String> {
    Some(world.workload(kind, "team", name)?.winner?.name.to_string())
}

fn plain(kind: Kind, name: &str) -> Value {
    let mut object = workload(kind, name, json!({}));
    let path = if kind == Kind::CronJob { "/spec/jobTemplate/spec/template" } else { "/spec/template" };
    object.pointer_mut(path).unwrap()["metadata"] = json!({"labels": {"app": "x"}});
    object
}

#[test]
fn the_oldest_governs_then_the_smallest_uid_and_never_one_that_is_being_deleted() {
    let mut world = world();
    for (name, created) in [("young", 30), ("b", 10), ("a", 10)] {
        assert!(see(&mut world, Kind::AgentRuntime, runtime(name, created, DEPLOYMENT)));
    }
    assert_eq!(names(&world, WorkloadKind::Deployment, "w"), ["a", "b", "young"]);
    assert!(world.agent_runtimes_of("team", WorkloadKind::StatefulSet, "w").next().is_none());
    assert!(world.agent_runtimes_of("other", WorkloadKind::Deployment, "w").next().is_none());
    assert_eq!(winner(&world, Kind::Deployment, "w"), None, "there is no such workload yet");
    see(&mut world, Kind::Deployment, plain(Kind::Deployment, "w"));
    assert_eq!(winner(&world, Kind::Deployment, "w").as_deref(), Some("a"));

    see(&mut world, Kind::AgentRuntime, deleting(runtime("a", 10, DEPLOYMENT)));
    assert_eq!(names(&world, WorkloadKind::Deployment, "w"), ["b", "young", "a"]);
    assert_eq!(winner(&world, Kind::Deployment, "w").as_deref(), Some("b"));
    lose(&mut world, Kind::AgentRuntime, runtime("b", 10, DEPLOYMENT));
    assert_eq!(winner(&world, Kind::Deployment, "w").as_deref(), Some("young"));
    let mut elsewhere = runtime("young", 30, ("apps/v1", "Deployment", "v"));
    elsewhere["metadata"]["resourceVersion"] = json!("9");
    see(&mut world, Kind::AgentRuntime, elsewhere);
    assert_eq!(winner(&world, Kind::Deployment, "w"), None, "the only one left is being deleted");
    let found = world.agent_runtime("team", "young").unwrap();
    assert_eq!((found.uid, found.version, world.target_of("team", &found).is_none()), ("u-young", 9, true));
    assert_eq!(world.agent_runtimes("team").map(|found| found.name.to_string()).collect::<Vec<_>>(), ["a", "young"]);
}

#[test]
fn governed_are_the_roots_with_the_label_or_a_winner() {
    let mut world = world();
    let governed = |world: &World| {
        world
            .enrolled()
            .map(|(space, found)| format!("{space}/{}/{}", found.kind.as_str(), found.name))
            .collect::<Vec<_>>()
    };
    see(&mut world, Kind::Deployment, plain(Kind::Deployment, "w"));
    see(&mut world, Kind::CronJob, workload(Kind::CronJob, "labelled", json!({})));
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "x", "controller": true}]);
    see(
        &mut world,
        Kind::ReplicaSet,
        workload(Kind::ReplicaSet, "w-1", json!({"metadata": {"ownerReferences": owner}})),
    );
    see(&mut world, Kind::Job, workload(Kind::Job, "once", json!({})));
    assert_eq!(governed(&world), ["team/Job/once", "team/CronJob/labelled"]);
    see(&mut world, Kind::AgentRuntime, runtime("r", 1, DEPLOYMENT));
    assert_eq!(governed(&world), ["team/Job/once", "team/Deployment/w", "team/CronJob/labelled"]);
    see(&mut world, Kind::AgentRuntime, deleting(runtime("r", 1, DEPLOYMENT)));
    assert_eq!(governed(&world), ["team/Job/once", "team/CronJob/labelled"]);
    lose(&mut world, Kind::Job, workload(Kind::Job, "once", json!({})));
    lose(&mut world, Kind::CronJob, workload(Kind::CronJob, "labelled", json!({})));
    assert!(governed(&world).is_empty());
}

#[test]
fn the_winners_type_is_laid_on_unless_the_label_is_somebody_elses() {
    let mut world = world();
    let mut tool = runtime("r", 1, DEPLOYMENT);
    tool["spec"]["type"] = json!("tool");
    see(&mut world, Kind::AgentRuntime, tool);
    let agent_type = |world: &World| {
        let template = world
            .workload(Kind::Deployment, "team", "w")
            .unwrap()
            .governed_template(&crate::config::enrolment::WorkloadLabels::Ignored)
            .unwrap();
        template.pointer("/metadata/labels/kagenti.io~1type").and_then(Value::as_str).map(str::to_owned)
    };
    let entry = |manager: &str, operation: &str| {
        json!([{"manager": manager, "operation": operation,
            "fieldsV1": {"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}}])
    };
    let labelled = |version: &str, fields: Value| {
        workload(Kind::Deployment, "w", json!({"metadata": {"resourceVersion": version, "managedFields": fields}}))
    };
    see(&mut world, Kind::Deployment, plain(Kind::Deployment, "w"));
    assert_eq!(agent_type(&world).as_deref(), Some("tool"), "ahead of the label");
    see(&mut world, Kind::Deployment, labelled("11", json!([])));
    assert_eq!(agent_type(&world).as_deref(), Some("agent"), "the user's own");
    see(&mut world, Kind::Deployment, labelled("12", entry("drawbridge/enrolment", "Apply")));
    assert_eq!(agent_type(&world).as_deref(), Some("tool"), "ours, of before the type was changed");
    see(&mut world, Kind::Deployment, labelled("13", entry("manager", "Update")));
    assert_eq!(agent_type(&world).as_deref(), Some("tool"), "the Go operator's, which is taken over");
    lose(&mut world, Kind::AgentRuntime, runtime("r", 1, DEPLOYMENT));
    assert_eq!(agent_type(&world).as_deref(), Some("agent"));
}

fn pod(name: &str, owner: (&str, &str, &str, &str)) -> Value {
    let (api_version, kind, owner, uid) = owner;
    json!({"metadata": {"name": name, "namespace": "team", "uid": format!("p-{name}"), "resourceVersion": "30",
        "labels": {"kagenti.io/type": "agent"},
        "ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid, "controller": true}]}})
}

fn owned(kind: Kind, name: &str, owner: (&str, &str, &str, &str)) -> Value {
    let (api_version, owner_kind, owner, uid) = owner;
    let owner = json!([{"apiVersion": api_version, "kind": owner_kind, "name": owner, "uid": uid, "controller": true}]);
    workload(kind, name, json!({"metadata": {"ownerReferences": owner}}))
}

fn pods(world: &World, kind: Kind, name: &str) -> Vec<String> {
    let workload = world.workload(kind, "team", name).unwrap();
    let mut names: Vec<_> = world.pods_of("team", &workload).map(|pod| pod.name.to_string()).collect();
    names.sort();
    names
}

#[test]
fn case_009_010_pods_belong_by_kind_and_uid_of_their_controllers_in_any_order_of_arrival() {
    let mut world = world();
    // Pods first: watches of different kinds deliver in any order.
    see(&mut world, Kind::Pod, pod("d-1-x", ("apps/v1", "ReplicaSet", "w-1", "replicasets-w-1")));
    see(&mut world, Kind::Pod, pod("d-2-x", ("apps/v1", "ReplicaSet", "w-2", "replicasets-w-2")));
    see(&mut world, Kind::Pod, pod("longer", ("apps/v1", "ReplicaSet", "w-b-1", "replicasets-w-b-1")));
    see(&mut world, Kind::Pod, pod("s-0", ("apps/v1", "StatefulSet", "w", "statefulsets-w")));
    see(&mut world, Kind::Pod, pod("former", ("apps/v1", "StatefulSet", "w", "statefulsets-former")));
    see(&mut world, Kind::Pod, pod("c-1-x", ("batch/v1", "Job", "c-1", "jobs-c-1")));
    see(
        &mut world,
        Kind::Pod,
        json!({"metadata": {"name": "bare", "namespace": "team", "labels": {"kagenti.io/type": "agent"}}}),
    );
    for (name, owner) in [("w-1", "w"), ("w-2", "w"), ("w-b-1", "w-b")] {
        let uid = format!("deployments-{owner}");
        see(&mut world, Kind::ReplicaSet, owned(Kind::ReplicaSet, name, ("apps/v1", "Deployment", owner, &uid)));
    }
    see(&mut world, Kind::Job, owned(Kind::Job, "c-1", ("batch/v1", "CronJob", "c", "cronjobs-c")));
    for (kind, name) in
        [(Kind::Deployment, "w"), (Kind::Deployment, "w-b"), (Kind::StatefulSet, "w"), (Kind::CronJob, "c")]
    {
        see(&mut world, kind, workload(kind, name, json!({})));
    }
    assert_eq!(pods(&world, Kind::Deployment, "w"), ["d-1-x", "d-2-x"]);
    assert_eq!(pods(&world, Kind::Deployment, "w-b"), ["longer"]);
    assert_eq!(pods(&world, Kind::StatefulSet, "w"), ["s-0"], "not the Deployment's, nor its namesake's of before");
    assert_eq!(pods(&world, Kind::CronJob, "c"), ["c-1-x"]);

    let root = |name: &str| {
        let controller = world.pod("team", name)?.seen.controller.clone()?;
        let root = world.root_of("team", &controller)?;
        Some(format!("{}/{}", root.kind.as_str(), root.name))
    };
    assert_eq!(root("d-2-x").as_deref(), Some("Deployment/w"));
    assert_eq!(root("s-0").as_deref(), Some("StatefulSet/w"));
    assert_eq!(root("c-1-x").as_deref(), Some("CronJob/c"));
    assert_eq!((root("former"), root("bare")), (None, None));

    lose(&mut world, Kind::Pod, pod("d-1-x", ("apps/v1", "ReplicaSet", "w-1", "replicasets-w-1")));
    lose(&mut world, Kind::ReplicaSet, owned(Kind::ReplicaSet, "w-2", ("apps/v1", "Deployment", "w", "deployments-w")));
    assert!(pods(&world, Kind::Deployment, "w").is_empty());
}

#[test]
fn nothing_is_concluded_from_absence_before_a_kind_was_read() {
    let mut world = world();
    assert!(!world.is_certain(Kind::Sandbox));
    assert!(world.set_reach(Kind::Sandbox, Reach::Absent) && !world.set_reach(Kind::Sandbox, Reach::Absent));
    assert!(world.is_certain(Kind::Sandbox) && !world.is_certain(Kind::Deployment));
    assert!(world.set_reach(Kind::Sandbox, Reach::Unknown) && !world.is_certain(Kind::Sandbox));
}

/// References given out while a change is taken in and what it concerns is looked up.
fn visits(world: &mut World, kind: Kind, object: Value) -> usize {
    use crate::controllers::{namespace_config, service_account, waiting};
    let change = change(kind, object);
    let before = world.visits();
    assert!(world.apply(&change, s(1)));
    for row in [service_account::plan::ROW, namespace_config::plan::ROW, waiting::plan::ROW] {
        assert!((row.touched)(world, kind, &change.key).len() <= 1);
    }
    world.workload(Kind::Deployment, "team", "w-0").unwrap();
    world.agent_runtimes_of("team", WorkloadKind::Deployment, "w-0").next().unwrap();
    world.visits() - before
}

/// A namespace with that many workloads, AgentRuntimes on one of them, and Pods elsewhere.
fn crowd(count: u32) -> World {
    let mut world = world();
    for at in 0..count {
        see(&mut world, Kind::Deployment, plain(Kind::Deployment, &format!("w-{at}")));
        see(&mut world, Kind::AgentRuntime, runtime(&format!("r-{at}"), at % 3600, ("apps/v1", "Deployment", "w-0")));
        see(&mut world, Kind::Pod, pod(&format!("p-{at}"), ("apps/v1", "StatefulSet", "s", "statefulsets-s")));
    }
    world
}

#[test]
fn an_event_costs_the_same_among_few_and_among_many() {
    let costs = |count: u32| {
        let mut world = crowd(count);
        let newer = |mut object: Value| {
            object["metadata"]["resourceVersion"] = json!("77");
            object
        };
        let deployment = |name: &str| newer(workload(Kind::Deployment, name, json!({"status": {"replicas": 1}})));
        [
            visits(&mut world, Kind::Deployment, deployment("w-0")),
            visits(&mut world, Kind::Deployment, deployment("w-7")),
            visits(&mut world, Kind::AgentRuntime, deleting(runtime("r-5", 5, ("apps/v1", "Deployment", "w-0")))),
            visits(&mut world, Kind::AgentRuntime, deleting(runtime("r-0", 0, ("apps/v1", "Deployment", "w-0")))),
            visits(&mut world, Kind::Pod, newer(pod("p-new", ("apps/v1", "ReplicaSet", "w-7-1", "replicasets-w-7-1")))),
        ]
    };
    let (few, many) = (costs(100), costs(10_000));
    assert_eq!(few, many);
    assert!(many.iter().all(|visits| *visits <= 24), "{many:?}");
}

fn controlled(kind: Kind, name: &str, owner: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("{}-{name}", kind.plural()), "resourceVersion": "5",
            "ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": owner, "controller": true}]},
    })
}

fn agent(name: &str, build: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "5"},
        "spec": {"imageSource": {"buildRef": {"name": build}}}})
}

#[test]
fn runs_are_found_by_who_controls_them_and_agents_by_their_build() {
    let mut world = world();
    see(&mut world, Kind::AgentBuild, json!({"metadata": {"name": "b", "namespace": "team", "uid": "bu"}}));
    see(&mut world, Kind::PipelineRun, controlled(Kind::PipelineRun, "one", "bu"));
    see(&mut world, Kind::PipelineRun, controlled(Kind::PipelineRun, "two", "bu"));
    see(&mut world, Kind::PipelineRun, controlled(Kind::PipelineRun, "foreign", "other"));
    see(&mut world, Kind::TaskRun, controlled(Kind::TaskRun, "one-t", "pipelineruns-one"));
    see(&mut world, Kind::PersistentVolumeClaim, controlled(Kind::PersistentVolumeClaim, "b-workspace", "bu"));
    let runs = |world: &World| world.runs_of("team", "bu").map(|run| run.name.to_string()).collect::<Vec<_>>();
    assert_eq!(runs(&world), ["one", "two"]);
    assert_eq!(world.owned("team", "bu").count(), 3);
    assert_eq!(world.task_runs_of("team", "pipelineruns-one").map(|run| &**run.name).collect::<Vec<_>>(), ["one-t"]);
    assert!(world.claim("team", "b-workspace").is_some_and(|claim| claim.seen.is_controlled_by("bu")));
    assert_eq!(world.agent_build("team", "b").map(|build| build.uid), Some("bu"));
    lose(&mut world, Kind::PipelineRun, controlled(Kind::PipelineRun, "one", "bu"));
    assert_eq!(runs(&world), ["two"]);

    for (name, build) in [("a", "b"), ("z", "b"), ("y", "other")] {
        see(&mut world, Kind::Agent, agent(name, build));
    }
    let of = |world: &World| world.agents_of_build("team", "b").map(|agent| agent.name.to_string()).collect::<Vec<_>>();
    assert_eq!(of(&world), ["a", "z"]);
    let mut moved = agent("a", "other");
    moved["metadata"]["resourceVersion"] = json!("6");
    see(&mut world, Kind::Agent, moved);
    lose(&mut world, Kind::Agent, agent("z", "b"));
    assert_eq!((of(&world).len(), world.agents("team").count()), (0, 2));
}

#[test]
fn a_gated_pod_that_comes_goes_or_is_made_again_is_another_number_and_nothing_else_is() {
    let mut world = world();
    let pod = |created: &str, version: u32, gated: bool| {
        let gates = if gated { json!([{"name": "drawbridge/injection"}]) } else { json!([]) };
        json!({"metadata": {"name": "p", "namespace": "team", "uid": created, "creationTimestamp": created,
            "resourceVersion": version.to_string(), "labels": {"kagenti.io/type": "agent"}}, "spec": {"schedulingGates": gates}})
    };
    let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
    let mut told = vec![world.gatings()];
    for (object, is_new) in [
        (plain(Kind::Deployment, "w"), false),
        (pod(first, 5, true), true),
        (pod(first, 5, true), false),
        // A list that has the next one of that name, whose predecessor's end nobody saw.
        (pod(second, 6, true), true),
        (pod(second, 7, false), true),
        (pod(second, 8, false), false),
    ] {
        let kind = if object["spec"]["schedulingGates"].is_array() { Kind::Pod } else { Kind::Deployment };
        see(&mut world, kind, object);
        let now = world.gatings();
        assert_eq!(told.contains(&now), !is_new, "{told:?}, {now}");
        told.push(now);
    }
    see(&mut world, Kind::Pod, pod(second, 9, true));
    let waits = world.gatings();
    lose(&mut world, Kind::Pod, pod(second, 10, true));
    assert_ne!(world.gatings(), waits);
}

#[test]
fn mend_03_after_the_cluster_went_back_versions_of_before_hide_nothing() {
    let of = |uid: &str, version: u64, name: &str| {
        let version = version.to_string();
        let metadata = json!({"name": name, "namespace": "team", "uid": uid, "resourceVersion": version});
        change(Kind::ServiceAccount, json!({"metadata": metadata}))
    };
    let at = |version: u64, name: &str| of("u", version, name);
    let mut world = World::new("own");
    let mut gone = at(1200, "gone");
    world.apply(&gone, Duration::ZERO);
    gone.now = None;
    world.apply(&gone, Duration::ZERO);
    world.apply(&at(1227, "written"), Duration::ZERO);
    assert!(!world.apply(&at(940, "gone"), Duration::ZERO), "a late answer does not bring it back");
    world.forget_versions();
    assert!(world.apply(&at(940, "gone"), Duration::ZERO), "made again, under a number of before its deletion");
    assert!(world.apply(&of("other", 941, "written"), Duration::ZERO), "another object, under a lower number");
    assert!(!world.apply(&at(900, "written"), Duration::ZERO), "from then on, versions count again");
}

#[test]
fn who_names_an_account_is_found_until_it_names_another_one_or_is_gone() {
    let mut world = world();
    let naming = |account: &str, version: &str| {
        let mut object = plain(Kind::Deployment, "w");
        object["spec"]["template"]["spec"]["serviceAccountName"] = json!(account);
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let found = |world: &World, account: &str| world.naming("team", account).count();
    see(&mut world, Kind::Deployment, naming("a", "20"));
    assert_eq!((found(&world, "a"), found(&world, "b"), found(&world, "w")), (1, 0, 0));
    see(&mut world, Kind::Deployment, naming("b", "21"));
    assert_eq!((found(&world, "a"), found(&world, "b")), (0, 1));
    lose(&mut world, Kind::Deployment, naming("b", "22"));
    assert_eq!((found(&world, "a"), found(&world, "b")), (0, 0));
}
