//! Nothing is replaced before a probe came back; Jobs lose no try; ownerless Pods are reported, and those that their owner gates himself.

use serde_json::{Value, json};

use super::memory::{Gate, Memory, Plan};
use super::plan::{NAME, ROW, types};
use crate::config::gates::Gates;
use crate::controllers::scaffold::controller::Controller as _;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, s, workload};
use crate::controllers::scaffold::plan::Op;
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

/// The webhook never sees a Pod that opted out, so it would come back gated for ever.
#[test]
fn a_pod_that_opted_out_is_told_and_neither_replaced_nor_asked_about() {
    let mut cluster = cluster();
    for number in 0..3 {
        let mut pod = pod(&format!("own-{number}"), Some(("apps/v1", "ReplicaSet", "own")));
        pod["metadata"]["labels"]["kagenti.io/inject"] = json!("disabled");
        cluster.see(Kind::Pod, pod);
    }
    for proved in [None, Some(s(99))] {
        remembered(&mut cluster).proved = proved;
        let plan = plan(&cluster);
        let [Op::Report(report)] = &plan.ops[..] else { panic!("once for their owner, and no probe: {plan:?}") };
        assert_eq!((report.reason, plan.again), (Reason::PodsGated, None));
        assert!(report.message.contains("ReplicaSet own") && report.message.len() <= 1024, "{}", report.message);
    }
    // Who waits beside them is served.
    cluster.see(Kind::Pod, pod("real", Some(("apps/v1", "ReplicaSet", "web-abc"))));
    let deletes = plan(&cluster).ops.into_iter().filter_map(|op| match op {
        Op::Delete { uid, .. } => Some(uid),
        _ => None,
    });
    assert_eq!(deletes.collect::<Vec<_>>(), ["real"]);
}

/// Pods whose template has the gate come back gated however often they are deleted.
#[test]
fn pods_that_come_back_gated_are_left_alone_after_three_times_and_again_after_an_hour() {
    let mut cluster = cluster();
    let set = Some(("apps/v1", "ReplicaSet", "own"));
    let key = Key::new(OWN, "");
    let came = |at: u64| {
        let mut pod = pod(&format!("own-{at}"), set);
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:{:02}:00Z", at % 60));
        pod["metadata"]["resourceVersion"] = json!((at + 10).to_string());
        pod
    };
    cluster.see(Kind::Pod, came(0));
    // Each pass, and the Pod that is made in place of the one that it deleted.
    let mut passed = Vec::new();
    for at in 0..6 {
        let now = s(100 + 2 * at);
        remembered(&mut cluster).proved = Some(now);
        let plan = cluster.plan_at(ROW, &key, now);
        cluster.note::<Gate>(NAME, &key, plan.note.clone());
        let deletes = matches!(&plan.ops[..], [Op::Delete { .. }]);
        passed.push(deletes);
        if deletes {
            cluster.lose(Kind::Pod, came(at));
            cluster.see(Kind::Pod, came(at + 1));
        } else {
            let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
            assert!(report.reason == Reason::PodsGated && report.message.contains("three times"), "{}", report.message);
            assert!(plan.again.is_some_and(|again| again <= s(3_600) && again > s(3_500)), "{plan:?}");
        }
    }
    assert_eq!(passed, [true, true, true, true, false, false]);
    remembered(&mut cluster).proved = Some(s(100 + 4_000));
    let plan = cluster.plan_at(ROW, &key, s(100 + 4_000));
    assert!(matches!(&plan.ops[..], [Op::Delete { .. }]), "{plan:?}");
}

/// However many of one namespace wait, and however long, the others' first come in the same pass.
#[test]
fn no_namespace_waits_for_the_many_of_another_one() {
    let mut cluster = cluster();
    for number in 0..200 {
        cluster.see(Kind::Pod, pod(&format!("p{number}"), Some(("apps/v1", "ReplicaSet", "many"))));
    }
    let mut late = pod("late", Some(("apps/v1", "ReplicaSet", "few")));
    late["metadata"]["namespace"] = json!("other");
    late["metadata"]["creationTimestamp"] = json!("2026-01-01T00:10:00Z");
    cluster.see(Kind::Pod, late);
    remembered(&mut cluster).proved = Some(s(99));
    let ops = plan(&cluster).ops;
    assert_eq!(ops.len(), 10);
    assert!(ops.iter().any(|op| matches!(op, Op::Delete { uid, .. } if uid == "late")), "{ops:?}");
}

/// Whoever makes Pods and Jobs may put our marks on any number of them: each costs a request, and all of them are one plan.
#[test]
fn whatever_one_namespace_fills_the_gate_with_costs_the_others_no_more_than_a_pass() {
    let mut cluster = cluster();
    let opted_out = |number: usize| {
        let mut pod = pod(&format!("own-{number}"), Some(("apps/v1", "ReplicaSet", &format!("own-{number}"))));
        pod["metadata"]["labels"]["kagenti.io/inject"] = json!("disabled");
        pod
    };
    let marked = json!({"metadata": {"annotations": {"kagenti.io/suspended-for-gate": "p"}}});
    for number in 0..50 {
        cluster.see(Kind::Pod, pod(&format!("bare-{number:02}"), None));
        cluster.see(Kind::Pod, opted_out(number));
        cluster.see(Kind::Job, workload(Kind::Job, &format!("j-{number}"), marked.clone()));
    }
    let of_other = |name: &str, owner| {
        let mut pod = pod(name, owner);
        pod["metadata"]["namespace"] = json!("other");
        pod
    };
    cluster.see(Kind::Pod, of_other("lost", None));
    cluster.see(Kind::Pod, of_other("late", Some(("apps/v1", "ReplicaSet", "few"))));
    remembered(&mut cluster).proved = Some(s(99));
    let told = |cluster: &Cluster| -> Vec<String> {
        let reports = plan(cluster).ops.into_iter().filter_map(|op| match op {
            Op::Report(report) => Some(format!("{}/{}", report.about.namespace, report.about.name)),
            _ => None,
        });
        reports.collect()
    };
    let ops = plan(&cluster).ops;
    let resumed = ops.iter().filter(|op| matches!(op, Op::Merge { .. })).count();
    assert_eq!((told(&cluster).len(), resumed, ops.len()), (11, 10, 22), "{ops:?}");
    assert!(told(&cluster).contains(&"other/lost".to_owned()), "{ops:?}");
    assert!(ops.iter().any(|op| matches!(op, Op::Delete { uid, .. } if uid == "late")), "{ops:?}");
    // Those behind have their turn once somebody has done what was told.
    let next = "team/bare-10".to_owned();
    assert!(!told(&cluster).contains(&next));
    cluster.lose(Kind::Pod, pod("bare-00", None));
    assert!(told(&cluster).contains(&next), "{:?}", told(&cluster));
}

/// Who may make policies in a namespace of his own can have Pods kept or a Job left there: all namespaces are served by one plan, which ends with the
/// first failure.
#[test]
fn what_fails_in_one_namespace_holds_no_other_up() {
    let mut cluster = cluster();
    let marked = json!({"metadata": {"annotations": {"kagenti.io/suspended-for-gate": "p"}}});
    cluster.see(Kind::Job, workload(Kind::Job, "j", marked));
    cluster.see(Kind::Pod, pod("kept", Some(("apps/v1", "ReplicaSet", "own"))));
    let mut late = pod("late", Some(("apps/v1", "ReplicaSet", "few")));
    late["metadata"]["namespace"] = json!("other");
    cluster.see(Kind::Pod, late);
    remembered(&mut cluster).proved = Some(s(99));
    let key = Key::new(OWN, "");
    let pass = |cluster: &mut Cluster, at: u64| {
        remembered(cluster).proved = Some(s(at));
        let plan = cluster.plan_at(ROW, &key, s(at));
        cluster.note::<Gate>(NAME, &key, plan.note.clone());
        plan
    };
    let namespaces = |plan: &Plan| plan.ops.iter().map(|op| op.asks().2.to_owned()).collect::<Vec<_>>();
    let first = pass(&mut cluster, 100);
    assert_eq!(namespaces(&first), ["team", "other", "team"], "by turns, after the Job: {first:?}");
    Gate::failed(cluster.owns.of_mut::<Gate>(NAME), &Key::new(OWN, ""), &first.ops[0]);
    assert_eq!(namespaces(&pass(&mut cluster, 101)), ["other"]);
    let late = json!({"metadata": {"name": "late", "namespace": "other", "uid": "late", "resourceVersion": "6"}});
    cluster.lose(Kind::Pod, late);
    let rest = pass(&mut cluster, 102);
    assert_eq!((namespaces(&rest), rest.again), (Vec::new(), Some(s(28))), "looked at again once it has rested");
    assert_eq!(namespaces(&pass(&mut cluster, 130)), ["team", "team"]);
}
