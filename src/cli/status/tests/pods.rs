//! Pods beside what they would be now, and how far their rollout is.

use std::time::Duration;

use super::*;
use crate::admission::inject;
use crate::cli::offline::review;
use crate::cli::offline::workload::Subject;
use crate::domain::keys;
use crate::store::{Change, Kind, Store, Via, change_of};

/// Traces are told where to go, and the template brings the variables, as the Pod that it was copied from had them: to the API server they are the
/// requester's own, so that the stamp of its Pods does not cover them.
#[test]
fn pods_of_a_template_that_was_copied_from_an_injected_pod_are_not_outdated() {
    let mut world = world();
    world.platform.text.push_str("trace: {endpoint: 'http://otel:4317'}\n");
    let snapshot = world.snapshot().unwrap();
    let plain = deployment("w", json!({"kagenti.io/type": "agent"}));
    let subject = Subject::of(&plain, "team1").unwrap();
    let mut made = subject.pod(&plain);
    let verdict = review::evaluate(&subject, &made, &snapshot).unwrap();
    json_patch::patch(&mut made, &verdict.operations()).unwrap();
    let copy = subject.with_pod(&plain, &made);
    let mut store = Store::new(keys::OPERATOR_NAMESPACE);
    let change = change_of(Kind::Deployment, &copy.to_string()).unwrap();
    store.apply(&Change { via: Via::File, ..change }, Duration::ZERO);
    let kept = store.workload(Kind::Deployment, "team1", "w").unwrap().governed_template(&snapshot.labels).unwrap();
    let stamp = inject::needs("team1", &subject.workload, &kept, &snapshot).config_hash.unwrap();
    let current = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": stamp});
    let seen = Seen { workloads: vec![copy], pods: vec![pod("a", "w", current)], ..Seen::default() };
    let row = &rows(&seen, "team1", &world, &[]).unwrap()[0];
    assert_eq!((row.pods.injected, row.pods.outdated, row.drift), (1, 0, Drift::None));
}

#[test]
fn pods_are_counted_beside_what_they_would_be_now() {
    let current = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": hash()});
    let earlier = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": "0"});
    let mut finished = pod("f", "w", json!({}));
    finished["status"]["phase"] = json!("Succeeded");
    let mut leaving = pod("l", "w", json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut gated = pod("g", "w", json!({}));
    gated["spec"]["schedulingGates"] = json!([{"name": "drawbridge/injection"}]);
    let counts = |pods: Vec<Value>| {
        let workloads = vec![deployment("w", json!({"kagenti.io/type": "agent"})), deployment("plain", json!({}))];
        let rows = told(&Seen { workloads, pods, ..Seen::default() });
        assert_eq!(rows.len(), 1, "what nobody enrolled is not told: {rows:?}");
        let row = rows.into_iter().next().unwrap();
        (row.pods, row.drift, row.attention)
    };
    let some = |total, injected| Pods { total, running: total, injected, ..Pods::default() };
    assert_eq!(counts(vec![pod("a", "w", current.clone()), finished, leaving]), (some(1, 1), Drift::None, false));
    assert_eq!(counts(vec![pod("a", "plain", json!({}))]), (some(0, 0), Drift::None, false));
    assert_eq!(counts(vec![pod("a", "w", earlier)]), (Pods { outdated: 1, ..some(1, 1) }, Drift::Outdated, true));
    // The annotation without the parts: somebody wrote it, or copied it.
    let mut claims = pod("c", "w", current.clone());
    claims["spec"]["initContainers"] = json!([]);
    let all = counts(vec![claims]);
    assert_eq!(all, (Pods { unprotected: 1, ..some(1, 0) }, Drift::Unprotected, true));
    let bare = pod("b", "w", json!({}));
    let all = counts(vec![pod("a", "w", current), bare, gated.clone()]);
    assert_eq!(all, (Pods { unprotected: 1, gated: 1, ..some(3, 1) }, Drift::Unprotected, true));
    assert_eq!(counts(vec![gated]), (Pods { gated: 1, ..some(1, 0) }, Drift::Gated, true));
}

#[test]
fn pods_that_are_being_replaced_need_nobody() {
    let mut rolling = deployment("w", json!({"kagenti.io/type": "agent"}));
    rolling["status"]["updatedReplicas"] = json!(0);
    let seen = Seen { workloads: vec![rolling], pods: vec![pod("b", "w", json!({}))], ..Seen::default() };
    let row = &told(&seen)[0];
    assert_eq!((row.drift, row.rollout.state, row.attention), (Drift::Unprotected, RolloutState::Progressing, false));
}

/// Nothing is advised that would not replace them.
#[test]
fn what_a_partition_keeps_is_not_to_be_restarted() {
    let set = |partition: i64| {
        let mut set = deployment("w", json!({"kagenti.io/type": "agent"}));
        set["kind"] = json!("StatefulSet");
        set["spec"]["replicas"] = json!(3);
        set["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        set["status"] = json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentRevision": "a",
            "updateRevision": "b", "updatedReplicas": (3 - partition).max(0)});
        set
    };
    let earlier = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": "0"});
    let mut old = pod("w-0", "w", earlier);
    old["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "controller": true}]);
    for (partition, restarts, lower) in [(0, true, false), (1, true, true), (3, false, true), (9, false, true)] {
        let rows = told(&Seen { workloads: vec![set(partition)], pods: vec![old.clone()], ..Seen::default() });
        assert_eq!((rows[0].drift, rows[0].rollout.held), (Drift::Outdated, partition.min(3)));
        let report = Report {
            installation: vec![],
            workloads: rows,
            builds: vec![],
            cards: Vec::new(),
            kaos: Vec::new(),
            trust: Vec::new(),
            terminating: Vec::new(),
            notes: vec![],
        };
        let mut out = Vec::new();
        print::table(&mut out, &report, false).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            (text.contains("rollout restart statefulset/w"), text.contains("partition keeps")),
            (restarts, lower),
            "{partition}: {text}"
        );
    }
}

/// Whoever takes the label off a Pod, or off the template it was made from, does not take the Pod out of sight.
#[test]
fn mend_05_status_loses_no_pod_because_somebody_took_a_label_off() {
    let current = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": hash()});
    let unlabelled = |mut pod: Value| {
        pod["metadata"]["labels"].as_object_mut().unwrap().remove("kagenti.io/type");
        pod
    };
    let alone = |mut pod: Value| {
        pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        pod
    };
    let plain = || vec![deployment("w", json!({}))];
    let kinds = |workloads: Vec<Value>, pods: Vec<Value>| -> Vec<(String, usize)> {
        let seen = Seen { workloads, pods, ..Seen::default() };
        let rows: Vec<_> = told(&seen).into_iter().map(|row| (row.kind, row.pods.injected)).collect();
        assert_eq!(concerns(&seen), !rows.is_empty());
        rows
    };
    let injected = || pod("a", "w", current.clone());
    assert_eq!(kinds(plain(), vec![injected()]), [("Deployment".to_owned(), 1)]);
    assert_eq!(kinds(plain(), vec![unlabelled(injected())]), [("Deployment".to_owned(), 1)]);
    assert_eq!(kinds(Vec::new(), vec![alone(unlabelled(injected()))]), [("Pod".to_owned(), 1)]);
    assert_eq!(kinds(plain(), vec![unlabelled(pod("a", "w", json!({})))]), []);
}

/// Nobody reads Rollouts of Argo: who asked for them was shown nothing, though their Pods are enrolled like others.
#[test]
fn the_replica_set_of_a_controller_that_is_not_read_stands_for_it_while_it_has_pods() {
    let replica_set = |name: &str, owner: &str, replicas: u8| {
        let mut object = deployment(name, json!({"kagenti.io/type": "agent"}));
        object["kind"] = json!("ReplicaSet");
        object["spec"]["replicas"] = json!(replicas);
        let group = if owner == "Rollout" { "argoproj.io/v1alpha1" } else { "apps/v1" };
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": group, "kind": owner, "name": "web", "uid": "o", "controller": true}]);
        object
    };
    let mut seen = BTreeMap::new();
    for (name, owner, replicas) in [
        ("web-new", "Rollout", 2),
        ("web-old", "Rollout", 0),
        ("api-new", "Deployment", 2),
        ("api-old", "Deployment", 0),
    ] {
        keep(&mut seen, replica_set(name, owner, replicas));
    }
    let rows = told(&seen["team1"]);
    let names: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.name.as_str())).collect();
    assert_eq!(names, [("ReplicaSet", "web-new")]);
}
