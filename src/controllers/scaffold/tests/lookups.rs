//! Who governs whom, whose Pods are whose, and what an event costs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::controllers::scaffold::controller::Own;
use crate::controllers::scaffold::fixtures::{change, s, workload};
use crate::domain::workload::WorkloadKind;
use crate::store::{Kind, Reach, Store, Via};

fn store() -> Store {
    Store::new("kagenti-system")
}

fn see(store: &mut Store, kind: Kind, object: Value) -> bool {
    store.apply(&change(kind, object), s(0))
}

fn lose(store: &mut Store, kind: Kind, object: Value) -> bool {
    let mut change = change(kind, object);
    change.now = None;
    change.via = Via::File;
    store.apply(&change, s(0))
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

fn names(store: &Store, kind: WorkloadKind, name: &str) -> Vec<String> {
    store.agent_runtimes_of("team", kind, name).map(|runtime| runtime.name.to_string()).collect()
}

fn winner(store: &Store, kind: Kind, name: &str) -> Option<String> {
    Some(store.workload(kind, "team", name)?.winner?.name.to_string())
}

fn plain(kind: Kind, name: &str) -> Value {
    let mut object = workload(kind, name, json!({}));
    let path = if kind == Kind::CronJob { "/spec/jobTemplate/spec/template" } else { "/spec/template" };
    object.pointer_mut(path).unwrap()["metadata"] = json!({"labels": {"app": "x"}});
    object
}

#[test]
fn the_oldest_governs_then_the_smallest_uid_and_never_one_that_is_being_deleted() {
    let mut store = store();
    for (name, created) in [("young", 30), ("b", 10), ("a", 10)] {
        assert!(see(&mut store, Kind::AgentRuntime, runtime(name, created, DEPLOYMENT)));
    }
    assert_eq!(names(&store, WorkloadKind::Deployment, "w"), ["a", "b", "young"]);
    assert!(store.agent_runtimes_of("team", WorkloadKind::StatefulSet, "w").next().is_none());
    assert!(store.agent_runtimes_of("other", WorkloadKind::Deployment, "w").next().is_none());
    assert_eq!(winner(&store, Kind::Deployment, "w"), None, "there is no such workload yet");
    see(&mut store, Kind::Deployment, plain(Kind::Deployment, "w"));
    assert_eq!(winner(&store, Kind::Deployment, "w").as_deref(), Some("a"));

    see(&mut store, Kind::AgentRuntime, deleting(runtime("a", 10, DEPLOYMENT)));
    assert_eq!(names(&store, WorkloadKind::Deployment, "w"), ["b", "young", "a"]);
    assert_eq!(winner(&store, Kind::Deployment, "w").as_deref(), Some("b"));
    lose(&mut store, Kind::AgentRuntime, runtime("b", 10, DEPLOYMENT));
    assert_eq!(winner(&store, Kind::Deployment, "w").as_deref(), Some("young"));
    let mut elsewhere = runtime("young", 30, ("apps/v1", "Deployment", "v"));
    elsewhere["metadata"]["resourceVersion"] = json!("9");
    see(&mut store, Kind::AgentRuntime, elsewhere);
    assert_eq!(winner(&store, Kind::Deployment, "w"), None, "the only one left is being deleted");
    let found = store.agent_runtime("team", "young").unwrap();
    assert_eq!((found.uid, found.version, store.target_of("team", &found).is_none()), ("u-young", 9, true));
    assert_eq!(store.agent_runtimes("team").map(|found| found.name.to_string()).collect::<Vec<_>>(), ["a", "young"]);
}

#[test]
fn governed_are_the_roots_with_the_label_or_a_winner() {
    let mut store = store();
    let governed = |store: &Store| {
        store
            .enrolled()
            .map(|(space, found)| format!("{space}/{}/{}", found.kind.as_str(), found.name))
            .collect::<Vec<_>>()
    };
    see(&mut store, Kind::Deployment, plain(Kind::Deployment, "w"));
    see(&mut store, Kind::CronJob, workload(Kind::CronJob, "labelled", json!({})));
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "x", "controller": true}]);
    see(
        &mut store,
        Kind::ReplicaSet,
        workload(Kind::ReplicaSet, "w-1", json!({"metadata": {"ownerReferences": owner}})),
    );
    see(&mut store, Kind::Job, workload(Kind::Job, "once", json!({})));
    assert_eq!(governed(&store), ["team/Job/once", "team/CronJob/labelled"]);
    see(&mut store, Kind::AgentRuntime, runtime("r", 1, DEPLOYMENT));
    assert_eq!(governed(&store), ["team/Job/once", "team/Deployment/w", "team/CronJob/labelled"]);
    see(&mut store, Kind::AgentRuntime, deleting(runtime("r", 1, DEPLOYMENT)));
    assert_eq!(governed(&store), ["team/Job/once", "team/CronJob/labelled"]);
    lose(&mut store, Kind::Job, workload(Kind::Job, "once", json!({})));
    lose(&mut store, Kind::CronJob, workload(Kind::CronJob, "labelled", json!({})));
    assert!(governed(&store).is_empty());
}

#[test]
fn the_winners_type_is_laid_on_unless_the_label_is_somebody_elses() {
    let mut store = store();
    let mut tool = runtime("r", 1, DEPLOYMENT);
    tool["spec"]["type"] = json!("tool");
    see(&mut store, Kind::AgentRuntime, tool);
    let agent_type = |store: &Store| {
        let template = store
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
    let with_hash = |manager: &str| {
        let mut entries = entry(manager, "Update");
        entries[0]["fieldsV1"]["f:spec"]["f:template"]["f:metadata"]["f:annotations"] =
            json!({"f:kagenti.io/config-hash": {}});
        entries
    };
    let labelled = |version: &str, fields: Value| {
        workload(Kind::Deployment, "w", json!({"metadata": {"resourceVersion": version, "managedFields": fields}}))
    };
    see(&mut store, Kind::Deployment, plain(Kind::Deployment, "w"));
    assert_eq!(agent_type(&store).as_deref(), Some("tool"), "ahead of the label");
    see(&mut store, Kind::Deployment, labelled("11", json!([])));
    assert_eq!(agent_type(&store).as_deref(), Some("agent"), "the user's own");
    see(&mut store, Kind::Deployment, labelled("12", entry("drawbridge/enrolment", "Apply")));
    assert_eq!(agent_type(&store).as_deref(), Some("tool"), "ours, of before the type was changed");
    see(&mut store, Kind::Deployment, labelled("13", entry("manager", "Update")));
    assert_eq!(agent_type(&store).as_deref(), Some("agent"), "of an operator whose manager has no name of its own");
    see(&mut store, Kind::Deployment, labelled("14", with_hash("manager")));
    assert_eq!(agent_type(&store).as_deref(), Some("tool"), "the Go operator's, which is taken over");
    lose(&mut store, Kind::AgentRuntime, runtime("r", 1, DEPLOYMENT));
    assert_eq!(agent_type(&store).as_deref(), Some("agent"));
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

fn pods(store: &Store, kind: Kind, name: &str) -> Vec<String> {
    let workload = store.workload(kind, "team", name).unwrap();
    let mut names: Vec<_> = store.pods_of("team", &workload).map(|pod| pod.name.to_string()).collect();
    names.sort();
    names
}

#[test]
fn case_009_010_pods_belong_by_kind_and_uid_of_their_controllers_in_any_order_of_arrival() {
    let mut store = store();
    // Pods first: watches of different kinds deliver in any order.
    see(&mut store, Kind::Pod, pod("d-1-x", ("apps/v1", "ReplicaSet", "w-1", "replicasets-w-1")));
    see(&mut store, Kind::Pod, pod("d-2-x", ("apps/v1", "ReplicaSet", "w-2", "replicasets-w-2")));
    see(&mut store, Kind::Pod, pod("longer", ("apps/v1", "ReplicaSet", "w-b-1", "replicasets-w-b-1")));
    see(&mut store, Kind::Pod, pod("s-0", ("apps/v1", "StatefulSet", "w", "statefulsets-w")));
    see(&mut store, Kind::Pod, pod("former", ("apps/v1", "StatefulSet", "w", "statefulsets-former")));
    see(&mut store, Kind::Pod, pod("c-1-x", ("batch/v1", "Job", "c-1", "jobs-c-1")));
    see(
        &mut store,
        Kind::Pod,
        json!({"metadata": {"name": "bare", "namespace": "team", "labels": {"kagenti.io/type": "agent"}}}),
    );
    for (name, owner) in [("w-1", "w"), ("w-2", "w"), ("w-b-1", "w-b")] {
        let uid = format!("deployments-{owner}");
        see(&mut store, Kind::ReplicaSet, owned(Kind::ReplicaSet, name, ("apps/v1", "Deployment", owner, &uid)));
    }
    see(&mut store, Kind::Job, owned(Kind::Job, "c-1", ("batch/v1", "CronJob", "c", "cronjobs-c")));
    for (kind, name) in
        [(Kind::Deployment, "w"), (Kind::Deployment, "w-b"), (Kind::StatefulSet, "w"), (Kind::CronJob, "c")]
    {
        see(&mut store, kind, workload(kind, name, json!({})));
    }
    assert_eq!(pods(&store, Kind::Deployment, "w"), ["d-1-x", "d-2-x"]);
    assert_eq!(pods(&store, Kind::Deployment, "w-b"), ["longer"]);
    assert_eq!(pods(&store, Kind::StatefulSet, "w"), ["s-0"], "not the Deployment's, nor its namesake's of before");
    assert_eq!(pods(&store, Kind::CronJob, "c"), ["c-1-x"]);

    let root = |name: &str| {
        let controller = store.pod("team", name)?.seen.controller.clone()?;
        let root = store.root_of("team", &controller)?;
        Some(format!("{}/{}", root.kind.as_str(), root.name))
    };
    assert_eq!(root("d-2-x").as_deref(), Some("Deployment/w"));
    assert_eq!(root("s-0").as_deref(), Some("StatefulSet/w"));
    assert_eq!(root("c-1-x").as_deref(), Some("CronJob/c"));
    assert_eq!((root("former"), root("bare")), (None, None));

    lose(&mut store, Kind::Pod, pod("d-1-x", ("apps/v1", "ReplicaSet", "w-1", "replicasets-w-1")));
    lose(&mut store, Kind::ReplicaSet, owned(Kind::ReplicaSet, "w-2", ("apps/v1", "Deployment", "w", "deployments-w")));
    assert!(pods(&store, Kind::Deployment, "w").is_empty());
}

#[test]
fn nothing_is_concluded_from_absence_before_a_kind_was_read() {
    let mut store = store();
    assert!(!store.is_certain(Kind::Sandbox));
    assert!(store.set_reach(Kind::Sandbox, Reach::Absent) && !store.set_reach(Kind::Sandbox, Reach::Absent));
    assert!(store.is_certain(Kind::Sandbox) && !store.is_certain(Kind::Deployment));
    assert!(store.set_reach(Kind::Sandbox, Reach::Unknown) && !store.is_certain(Kind::Sandbox));
}

/// References given out while a change is taken in and what it concerns is looked up.
fn visits(store: &mut Store, kind: Kind, object: Value) -> usize {
    use crate::controllers::{namespace_config, service_account, waiting};
    let change = change(kind, object);
    let before = store.visits();
    assert!(store.apply(&change, s(1)));
    for row in [service_account::plan::ROW, waiting::plan::ROW] {
        assert!((row.touched)(store, &Own::default(), kind, &change.key).len() <= 1);
    }
    assert!((namespace_config::plan::ROW.touched)(store, &Own::default(), kind, &change.key).len() <= 1);
    store.workload(Kind::Deployment, "team", "w-0").unwrap();
    store.agent_runtimes_of("team", WorkloadKind::Deployment, "w-0").next().unwrap();
    store.visits() - before
}

/// A namespace with that many workloads, AgentRuntimes on one of them, and Pods elsewhere.
fn crowd(count: u32) -> Store {
    let mut store = store();
    for at in 0..count {
        see(&mut store, Kind::Deployment, plain(Kind::Deployment, &format!("w-{at}")));
        see(&mut store, Kind::AgentRuntime, runtime(&format!("r-{at}"), at % 3600, ("apps/v1", "Deployment", "w-0")));
        see(&mut store, Kind::Pod, pod(&format!("p-{at}"), ("apps/v1", "StatefulSet", "s", "statefulsets-s")));
    }
    store
}

#[test]
fn an_event_costs_the_same_among_few_and_among_many() {
    let costs = |count: u32| {
        let mut store = crowd(count);
        let newer = |mut object: Value| {
            object["metadata"]["resourceVersion"] = json!("77");
            object
        };
        let mut not_enrolled = newer(plain(Kind::Deployment, "w-9"));
        not_enrolled["metadata"]["annotations"] = json!({"changed": "since"});
        not_enrolled["spec"]["replicas"] = json!(7);
        let deployment = |name: &str| newer(workload(Kind::Deployment, name, json!({"status": {"replicas": 1}})));
        [
            visits(&mut store, Kind::Deployment, deployment("w-0")),
            visits(&mut store, Kind::Deployment, deployment("w-7")),
            visits(&mut store, Kind::Deployment, not_enrolled),
            visits(&mut store, Kind::AgentRuntime, deleting(runtime("r-5", 5, ("apps/v1", "Deployment", "w-0")))),
            visits(&mut store, Kind::AgentRuntime, deleting(runtime("r-0", 0, ("apps/v1", "Deployment", "w-0")))),
            visits(&mut store, Kind::Pod, newer(pod("p-new", ("apps/v1", "ReplicaSet", "w-7-1", "replicasets-w-7-1")))),
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
    let mut store = store();
    see(&mut store, Kind::AgentBuild, json!({"metadata": {"name": "b", "namespace": "team", "uid": "bu"}}));
    see(&mut store, Kind::PipelineRun, controlled(Kind::PipelineRun, "one", "bu"));
    see(&mut store, Kind::PipelineRun, controlled(Kind::PipelineRun, "two", "bu"));
    see(&mut store, Kind::PipelineRun, controlled(Kind::PipelineRun, "foreign", "other"));
    see(&mut store, Kind::TaskRun, controlled(Kind::TaskRun, "one-t", "pipelineruns-one"));
    see(&mut store, Kind::PersistentVolumeClaim, controlled(Kind::PersistentVolumeClaim, "b-workspace", "bu"));
    let runs = |store: &Store| store.runs_of("team", "bu").map(|run| run.name.to_string()).collect::<Vec<_>>();
    assert_eq!(runs(&store), ["one", "two"]);
    assert_eq!(store.owned("team", "bu").count(), 3);
    assert_eq!(store.task_runs_of("team", "pipelineruns-one").map(|run| &**run.name).collect::<Vec<_>>(), ["one-t"]);
    assert!(store.claim("team", "b-workspace").is_some_and(|claim| claim.seen.is_controlled_by("bu")));
    assert_eq!(store.agent_build("team", "b").map(|build| build.uid), Some("bu"));
    lose(&mut store, Kind::PipelineRun, controlled(Kind::PipelineRun, "one", "bu"));
    assert_eq!(runs(&store), ["two"]);

    for (name, build) in [("a", "b"), ("z", "b"), ("y", "other")] {
        see(&mut store, Kind::Agent, agent(name, build));
    }
    let of = |store: &Store| store.agents_of_build("team", "b").map(|agent| agent.name.to_string()).collect::<Vec<_>>();
    assert_eq!(of(&store), ["a", "z"]);
    let mut moved = agent("a", "other");
    moved["metadata"]["resourceVersion"] = json!("6");
    see(&mut store, Kind::Agent, moved);
    lose(&mut store, Kind::Agent, agent("z", "b"));
    assert_eq!((of(&store).len(), store.agents("team").count()), (0, 2));
}

#[test]
fn a_gated_pod_that_comes_goes_or_is_made_again_is_another_number_and_nothing_else_is() {
    let mut store = store();
    let pod = |created: &str, version: u32, gated: bool| {
        let gates = if gated { json!([{"name": "drawbridge/injection"}]) } else { json!([]) };
        json!({"metadata": {"name": "p", "namespace": "team", "uid": created, "creationTimestamp": created,
            "resourceVersion": version.to_string(), "labels": {"kagenti.io/type": "agent"}}, "spec": {"schedulingGates": gates}})
    };
    let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
    let mut told = vec![store.gatings()];
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
        see(&mut store, kind, object);
        let now = store.gatings();
        assert_eq!(told.contains(&now), !is_new, "{told:?}, {now}");
        told.push(now);
    }
    see(&mut store, Kind::Pod, pod(second, 9, true));
    let waits = store.gatings();
    lose(&mut store, Kind::Pod, pod(second, 10, true));
    assert_ne!(store.gatings(), waits);
}

#[test]
fn mend_03_after_the_cluster_went_back_versions_of_before_hide_nothing() {
    let of = |uid: &str, version: u64, name: &str| {
        let version = version.to_string();
        let metadata = json!({"name": name, "namespace": "team", "uid": uid, "resourceVersion": version});
        change(Kind::ServiceAccount, json!({"metadata": metadata}))
    };
    let at = |version: u64, name: &str| of("u", version, name);
    let mut store = Store::new("own");
    let mut gone = at(1200, "gone");
    store.apply(&gone, Duration::ZERO);
    gone.now = None;
    store.apply(&gone, Duration::ZERO);
    store.apply(&at(1227, "written"), Duration::ZERO);
    assert!(!store.apply(&at(940, "gone"), Duration::ZERO), "a late answer does not bring it back");
    store.turn_to(1);
    assert!(store.apply(&at(940, "gone"), Duration::ZERO), "made again, under a number of before its deletion");
    assert!(store.apply(&of("other", 941, "written"), Duration::ZERO), "another object, under a lower number");
    assert!(!store.apply(&at(900, "written"), Duration::ZERO), "from then on, versions count again");
}

#[test]
fn who_names_an_account_is_found_until_it_names_another_one_or_is_gone() {
    let mut store = store();
    let naming = |account: &str, version: &str| {
        let mut object = plain(Kind::Deployment, "w");
        object["spec"]["template"]["spec"]["serviceAccountName"] = json!(account);
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let found = |store: &Store, account: &str| store.naming("team", account).count();
    see(&mut store, Kind::Deployment, naming("a", "20"));
    assert_eq!((found(&store, "a"), found(&store, "b"), found(&store, "w")), (1, 0, 0));
    see(&mut store, Kind::Deployment, naming("b", "21"));
    assert_eq!((found(&store, "a"), found(&store, "b")), (0, 1));
    lose(&mut store, Kind::Deployment, naming("b", "22"));
    assert_eq!((found(&store, "a"), found(&store, "b")), (0, 0));
}
