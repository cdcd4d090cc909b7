//! Nothing is replaced before a probe came back; Jobs lose no try; ownerless Pods are reported.

use serde_json::{Value, json};

use super::memory::{Gate, Memory};
use super::plan::{NAME, ROW, types};
use crate::config::gates::Gates;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, s, workload};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

fn pod(name: &str, owner: Option<(&str, &str, &str)>) -> Value {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|(api, kind, name)| {
            json!({"apiVersion": api, "kind": kind, "name": name, "controller": true,
                "uid": format!("{}s-{name}", kind.to_lowercase())})
        })
        .collect();
    json!({"metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "5",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"kagenti.io/type": "agent"}, "ownerReferences": owners},
        "spec": {"schedulingGates": [{"name": "drawbridge/injection"}]}})
}

/// A cluster whose policy parameters are as they should be.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.see(Kind::ServiceAccount, parameters("agent"));
    cluster
}

fn parameters(types: &str) -> Value {
    json!({"metadata": {"name": "drawbridge-gate", "namespace": OWN, "uid": "g", "resourceVersion": "3",
        "annotations": {"kagenti.io/gated-types": types}}})
}

/// What the controller remembers.
fn remembered(cluster: &mut Cluster) -> &mut Memory {
    &mut cluster.owns.of_mut::<Gate>(NAME).memory
}

fn plan(cluster: &Cluster) -> Plan {
    cluster.plan_at(ROW, &Key::new(OWN, ""), s(100))
}

#[test]
fn the_policy_gates_what_the_gates_enrol() {
    let of = |global_enabled, inject_tools| types(&Gates { global_enabled, inject_tools, ..Gates::default() });
    assert_eq!(
        (of(true, false), of(true, true), of(false, true)),
        ("agent".into(), "agent,tool".into(), String::new())
    );
    assert_eq!(plan(&cluster()), Plan::nothing(), "steady state");
    let missing = plan(&Cluster::new());
    assert!(matches!(&missing.ops[..], [Op::Create { kind: Kind::ServiceAccount, body, .. }]
            if body["metadata"]["annotations"]["kagenti.io/gated-types"] == "agent" && body["automountServiceAccountToken"] == false));
    let mut stale = Cluster::new();
    stale.see(Kind::ServiceAccount, parameters("agent,tool"));
    assert!(matches!(&plan(&stale).ops[..], [Op::Merge { patch, .. }]
        if patch["metadata"]["annotations"]["kagenti.io/gated-types"] == "agent" && patch["metadata"]["uid"] == "g"));
    let long = "agent,".repeat(1000);
    stale.see(Kind::ServiceAccount, parameters(&long));
    assert!(matches!(&plan(&stale).ops[..], [Op::Merge { .. }]), "what is not kept is not believed");
}

#[test]
fn nothing_is_replaced_before_a_fresh_probe_came_back() {
    let mut cluster = cluster();
    cluster.see(Kind::Pod, pod("p", Some(("apps/v1", "ReplicaSet", "web-abc"))));
    let first = plan(&cluster);
    assert!(matches!(&first.ops[..], [Op::Probe { namespace, .. }] if namespace == "team"), "{first:?}");
    assert!(first.again.is_some());
    remembered(&mut cluster).proved = Some(s(99));
    let delete = Op::Delete { kind: Kind::Pod, key: Key::new("team", "p"), uid: "p".into() };
    assert_eq!(plan(&cluster).ops, [delete]);
    remembered(&mut cluster).proved = Some(s(50));
    assert!(matches!(plan(&cluster).ops[..], [Op::Probe { .. }]), "an old proof proves nothing");
}

#[test]
fn probes_that_are_refused_in_one_namespace_are_made_in_another() {
    let mut cluster = cluster();
    for namespace in ["a", "b"] {
        let mut pod = pod("p", Some(("apps/v1", "ReplicaSet", "web-abc")));
        pod["metadata"]["namespace"] = json!(namespace);
        cluster.see(Kind::Pod, pod);
    }
    let mut places = Vec::new();
    for probes in 0..4 {
        remembered(&mut cluster).probes = probes;
        let Op::Probe { namespace, .. } = plan(&cluster).ops.remove(0) else { panic!() };
        places.push(namespace);
    }
    assert_eq!(places, ["a", "b", "a", "b"]);
}

#[test]
fn only_what_the_policy_holds_back_proves_that_the_webhook_answers() {
    let mut cluster = cluster();
    let set = Some(("apps/v1", "ReplicaSet", "web-abc"));
    // Types that nobody gates: somebody put the gate on these himself.
    for (namespace, agent_type) in [("a", "tool"), ("b", "other"), ("c", "")] {
        let mut pod = pod(&format!("p-{namespace}"), set);
        (pod["metadata"]["namespace"], pod["metadata"]["labels"]["kagenti.io/type"]) =
            (namespace.into(), agent_type.into());
        cluster.see(Kind::Pod, pod);
    }
    let places = |cluster: &mut Cluster| {
        (0..4)
            .map(|probes| {
                remembered(cluster).probes = probes;
                let Op::Probe { namespace, .. } = plan(cluster).ops.remove(0) else { panic!() };
                namespace
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&mut cluster), ["a", "b", "c", "a"], "nothing else waits");
    cluster.see(Kind::Pod, pod("real", set));
    assert_eq!(places(&mut cluster), ["team"; 4]);
}

#[test]
fn a_limited_number_at_a_time_the_oldest_first() {
    let mut cluster = cluster();
    for number in 0..30 {
        let mut pod = pod(&format!("p{number}"), Some(("apps/v1", "ReplicaSet", "web-abc")));
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:{:02}Z", 59 - number));
        cluster.see(Kind::Pod, pod);
    }
    remembered(&mut cluster).proved = Some(s(99));
    let names: Vec<_> = plan(&cluster)
        .ops
        .into_iter()
        .map(|op| match op {
            Op::Delete { uid, .. } => uid,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, (20..30).rev().map(|number| format!("p{number}")).collect::<Vec<_>>());
}

#[test]
fn jobs_are_suspended_and_resumed_once_their_pods_are_gone() {
    let mut cluster = cluster();
    cluster.see(Kind::Job, workload(Kind::Job, "j", json!({"status": {"active": 2}})));
    for name in ["j-1", "j-2"] {
        cluster.see(Kind::Pod, pod(name, Some(("batch/v1", "Job", "j"))));
    }
    remembered(&mut cluster).proved = Some(s(99));
    let ops = plan(&cluster).ops;
    let [Op::Merge { kind: Kind::Job, patch, .. }] = &ops[..] else { panic!("once per Job, Pods stay: {ops:?}") };
    assert_eq!(patch["spec"]["suspend"], json!(true));
    assert_eq!(patch["metadata"]["uid"], "jobs-j");

    let suspended = |version: u64, active: i64| {
        workload(
            Kind::Job,
            "j",
            json!({"metadata": {"resourceVersion": version.to_string(),
            "annotations": {"kagenti.io/suspended-for-gate": "j-1"}},
            "spec": {"suspend": true}, "status": {"active": active}}),
        )
    };
    cluster.see(Kind::Job, suspended(11, 2));
    assert_eq!(plan(&cluster).ops, [], "its Pods are still going");
    for name in ["j-1", "j-2"] {
        cluster.lose(Kind::Pod, pod(name, None));
    }
    cluster.see(Kind::Job, suspended(12, 0));
    let ops = plan(&cluster).ops;
    let [Op::Merge { patch, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(
        (&patch["spec"]["suspend"], &patch["metadata"]["annotations"]["kagenti.io/suspended-for-gate"]),
        (&json!(false), &Value::Null)
    );

    cluster.see(
        Kind::Job,
        workload(Kind::Job, "j", json!({"metadata": {"resourceVersion": "13"}, "spec": {"suspend": true}})),
    );
    assert_eq!(plan(&cluster), Plan::nothing(), "suspended by a person: not ours to resume");
}

#[test]
fn ownerless_pods_are_only_reported() {
    let mut cluster = cluster();
    cluster.see(Kind::Pod, pod("bare", None));
    remembered(&mut cluster).proved = Some(s(99));
    let plan = plan(&cluster);
    let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
    assert_eq!((report.reason, report.kind, plan.again), (Reason::GatedWithoutController, Kind::Pod, None));
    assert!(report.message.len() <= 1024 && report.message.contains("kubectl"));
}
