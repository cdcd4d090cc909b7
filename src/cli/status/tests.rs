use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rows::{Seen, rows};
use super::shape::FIELDS;
use super::*;

fn world() -> World {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 36),
        spire_driver: false,
        operator_namespace: keys::OPERATOR_NAMESPACE.to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    world.observe(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team1"}}), "");
    world
}

fn deployment(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team1", "uid": name, "generation": 1},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": "a"}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    })
}

fn pod(name: &str, deployment: &str, annotations: Value) -> Value {
    let injected = annotations.get("kagenti.io/authbridge-status").is_some();
    let sidecars = if injected { json!([{"name": "envoy-proxy"}]) } else { json!([]) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team1", "labels": {"pod-template-hash": "x1", "kagenti.io/type": "agent"},
            "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{deployment}-x1"), "controller": true}]},
        "spec": {"initContainers": sidecars, "containers": [{"name": "agent"}]}, "status": {"phase": "Running"},
    })
}

fn agent_runtime(name: &str, target: &str, created: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime",
        "metadata": {"name": name, "namespace": "team1", "uid": name, "creationTimestamp": created},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    })
}

fn told(seen: &Seen) -> Vec<Row> {
    let mut world = world();
    seen.agent_runtimes.iter().for_each(|object| world.observe(object, "team1"));
    rows(seen, "team1", &world, &[]).unwrap()
}

/// The stamp of Pods that are made now.
fn hash() -> String {
    let labelled = deployment("w", json!({"kagenti.io/type": "agent"}));
    let subject = crate::cli::offline::workload::Subject::of(&labelled, "team1").unwrap();
    let verdict =
        crate::cli::offline::review::evaluate(&subject, &subject.pod(&labelled), &world().snapshot().unwrap()).unwrap();
    verdict.audit.iter().find(|(name, _)| *name == "config-hash").unwrap().1.clone()
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

#[test]
fn the_oldest_agent_runtime_enrols_and_the_others_are_named() {
    let seen = Seen {
        agent_runtimes: vec![
            agent_runtime("young", "w", "2026-01-02T00:00:00Z"),
            agent_runtime("old", "w", "2026-01-01T00:00:00Z"),
            agent_runtime("lost", "nowhere", "2026-01-01T00:00:00Z"),
        ],
        workloads: vec![deployment("w", json!({}))],
        ..Seen::default()
    };
    let rows = told(&seen);
    let [lost, found] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((lost.name.as_str(), lost.reason.as_str(), lost.attention), ("nowhere", "TargetNotFound", true));
    let by = &found.enrolled_by;
    assert_eq!(
        (by.by, by.agent_runtime.as_deref(), &by.duplicates[..]),
        (By::AgentRuntime, Some("old"), &["young".to_owned()][..])
    );
    assert_eq!((found.agent_type.as_deref(), found.mode.as_deref()), (Some("agent"), Some("envoy-sidecar")));
    assert_eq!((found.decision.as_str(), found.ready), ("injected", None));
}

#[test]
fn agent_runtimes_without_a_workload_have_a_row_of_their_own() {
    let said = |object: &mut Value, generation: i64, reason: &str| {
        let ready = json!({"type": "Ready", "status": "False", "reason": reason, "message": "why"});
        object["status"] = json!({"observedGeneration": generation, "conditions": [ready]});
    };
    let mut job = agent_runtime("job", "w", "2026-01-01T00:00:00Z");
    job["spec"]["targetRef"] = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "w"});
    let mut nothing = agent_runtime("nothing", "w", "2026-01-01T00:00:00Z");
    nothing["spec"].as_object_mut().unwrap().remove("targetRef");
    said(&mut nothing, 1, "FieldRequired");
    // Being deleted: just now, for long with a reason, with a reason from before, and with nothing to be taken off.
    let leaving = |name: &str, finalizer: &str| {
        let mut object = agent_runtime(name, "w", "2026-01-01T00:00:00Z");
        object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        object["metadata"]["generation"] = json!(2);
        object["metadata"]["finalizers"] = json!([finalizer]);
        object
    };
    let (just, mut held, mut before) =
        (leaving("just", keys::FINALIZER), leaving("held", keys::FINALIZER), leaving("before", keys::FINALIZER));
    said(&mut held, 2, "NotPermitted");
    said(&mut before, 1, "LabelConflict");
    let others = leaving("others", "somebody.else/cleanup");
    let rows = told(&Seen { agent_runtimes: vec![job, nothing, just, held, before, others], ..Seen::default() });
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.kind.as_str(), row.name.as_str(), row.reason.as_str(), row.ready, row.attention))
        .collect();
    let row = |name, reason, ready: Option<bool>| ("AgentRuntime", name, reason, ready, ready.is_some());
    assert_eq!(
        told,
        [
            row("before", "BeingDeleted", None),
            row("held", "NotPermitted", Some(false)),
            row("job", "UnsupportedTarget", Some(false)),
            row("just", "BeingDeleted", None),
            row("nothing", "FieldRequired", Some(false)),
        ]
    );
    assert!(rows[2].message.contains("Job"), "{}", rows[2].message);
    assert_eq!(rows[1].message, "why");
    assert!(rows.iter().all(|row| row.enrolled_by.agent_runtime.as_deref() == Some(&row.name)));
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

#[test]
fn mend_02_a_config_map_over_a_bound_is_named() {
    let mut world = world();
    let seen = Seen { workloads: vec![deployment("w", json!({"kagenti.io/type": "agent"}))], ..Seen::default() };
    assert!(!rows(&seen, "team1", &world, &[]).unwrap()[0].attention);
    let text = "#".repeat(70_000);
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "big", "namespace": "team1", "labels": {"kagenti.io/defaults": "true"}},
        "data": {"config.yaml": text}});
    world.observe(&large, "team1");
    let row = rows(&seen, "team1", &world, &[]).unwrap().remove(0);
    assert_eq!((row.attention, &*row.reason), (true, "ConfigUnknown"), "nobody knows what it said before");
    assert!(row.message.contains("ConfigMap team1/big is larger than 64 KiB"), "{}", row.message);
}

#[test]
fn a_condition_that_is_false_is_the_reason() {
    let mut refused = agent_runtime("old", "w", "2026-01-01T00:00:00Z");
    refused["status"]["conditions"] =
        json!([{"type": "Ready", "status": "False", "reason": "LabelConflict", "message": "somebody says tool"}]);
    let seen = Seen { agent_runtimes: vec![refused], workloads: vec![deployment("w", json!({}))], ..Seen::default() };
    let row = &told(&seen)[0];
    assert_eq!(
        (row.ready, row.reason.as_str(), row.message.as_str()),
        (Some(false), "LabelConflict", "somebody says tool")
    );
    assert!(row.attention);
}

/// Every path of a value, lists as `[]`.
fn paths(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            paths(&below, value, found);
        }),
        Value::Array(items) => items.iter().for_each(|value| paths(&format!("{path}[]"), value, found)),
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn what_is_printed_as_json_is_what_is_documented() {
    let seen = Seen {
        agent_runtimes: vec![agent_runtime("a", "w", "1"), agent_runtime("b", "w", "2")],
        workloads: vec![deployment("w", json!({}))],
        ..Seen::default()
    };
    let report = Report {
        installation: vec!["x".to_owned()],
        workloads: told(&seen),
        builds: vec![BuildRow::of(&json!({}), &Scope::default())],
        cards: vec![CardRow::of(&json!({"status": {"card": {"skills": [{"tags": ["x"]}]}}}))],
        kaos: super::kaos::rows(
            &[(crate::store::Kind::KaosAgent, &json!({"metadata": {"name": "a"}, "spec": {"modelAPI": "m"}}))],
            &Scope::default(),
        ),
        trust: vec![TrustRow {
            namespace: "team".to_owned(),
            kind: "Namespace",
            level: "enforced",
            cuts_off: true,
            open: 0,
            cut_off: 0,
            quarantined: vec!["x".to_owned()],
            opened_by_others: vec!["x".to_owned()],
            attention: false,
        }],
        terminating: vec!["x".to_owned()],
        notes: vec!["x".to_owned()],
    };
    let mut printed = BTreeSet::new();
    paths("", &serde_json::to_value(&report).unwrap(), &mut printed);
    let documented: BTreeSet<String> = FIELDS.iter().map(|(path, ..)| (*path).to_owned()).collect();
    assert_eq!(printed, documented);
}

#[test]
fn the_table_names_what_a_person_should_do() {
    let seen = Seen {
        workloads: vec![deployment("w", json!({"kagenti.io/type": "agent"}))],
        pods: vec![pod("b", "w", json!({}))],
        ..Seen::default()
    };
    let report = Report {
        installation: vec![],
        workloads: told(&seen),
        builds: Vec::new(),
        cards: Vec::new(),
        kaos: Vec::new(),
        trust: Vec::new(),
        terminating: Vec::new(),
        notes: vec!["half".to_owned()],
    };
    let mut out = Vec::new();
    print::table(&mut out, &report, false).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("NAMESPACE  WORKLOAD "), "{text}");
    assert!(
        lines[1].contains("Deployment/w") && lines[1].contains("0/1") && lines[1].contains("1 unprotected"),
        "{text}"
    );
    assert!(lines[2].contains("kubectl -n team1 rollout restart deployment/w"), "{text}");
    assert_eq!(lines[3], "note: half");
}

#[test]
fn builds_have_a_table_of_their_own_and_a_failure_needs_a_person() {
    let build = |name: &str, status: Value| {
        BuildRow::of(
            &json!({"metadata": {"name": name, "namespace": "team1"}, "spec": {"mode": "dev"}, "status": status}),
            &Scope::default(),
        )
    };
    let builds = vec![
        build("bad", json!({"phase": "Failed", "message": "task clone, step clone: exit 128"})),
        build("good", json!({"phase": "Succeeded", "builtImage": "r/w@sha256:0", "pipelineRunName": "good-1"})),
        build("new", json!({})),
    ];
    let needs: Vec<bool> = builds.iter().map(|row| row.attention).collect();
    assert_eq!(needs, [true, false, false]);
    let mut out = Vec::new();
    print::table(
        &mut out,
        &Report {
            installation: vec![],
            workloads: Vec::new(),
            builds,
            cards: Vec::new(),
            kaos: Vec::new(),
            trust: Vec::new(),
            terminating: Vec::new(),
            notes: Vec::new(),
        },
        false,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    for part in [
        "team1      good   dev   Succeeded  r/w@sha256:0",
        "new    dev   Pending    -",
        "exit 128",
        "drawbridge build logs bad -n team1",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn outside_of_the_watched_namespaces_nothing_is_missing_and_the_place_is_named() {
    let scope = scope::tests::rendered(&["team2", "team3"]);
    let labels = json!({"kagenti.io/type": "agent"});
    let sidecars = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": "another operator's"});
    let placed = |workload: Value, pods: Vec<Value>| {
        let seen = Seen { workloads: vec![workload], pods, ..Seen::default() };
        let row = told(&seen).remove(0);
        assert_eq!(rows::placed(row.clone(), &scope::tests::rendered(&["team1"])), row);
        assert_eq!(rows::placed(row.clone(), &Scope::default()), row);
        rows::placed(row, &scope)
    };
    let bare = placed(deployment("w", labels.clone()), vec![pod("b", "w", json!({}))]);
    assert_eq!((bare.watched, bare.drift, bare.pods.unprotected, bare.mode.as_deref()), (false, Drift::None, 0, None));
    assert_eq!((bare.decision.as_str(), bare.reason.as_str()), ("skipped", "NamespaceNotWatched"));
    assert!(bare.attention && bare.message.contains("(watched: team2, team3)"), "{}", bare.message);
    let served = placed(deployment("w", labels.clone()), vec![pod("a", "w", sidecars)]);
    assert_eq!((served.attention, served.drift, served.pods.injected), (false, Drift::None, 1), "by another operator");
    let mut out_of_it = labels;
    out_of_it["kagenti.io/inject"] = json!("disabled");
    let out_of_it = placed(deployment("w", out_of_it), vec![pod("b", "w", json!({}))]);
    assert_eq!((out_of_it.reason.as_str(), out_of_it.watched, out_of_it.attention), ("OptedOut", false, false));

    let build = |status: Value| {
        BuildRow::of(&json!({"metadata": {"name": "w", "namespace": "team1"}, "status": status}), &scope)
    };
    let (waiting, elsewhere) = (build(json!({})), build(json!({"phase": "Building", "message": "m"})));
    assert_eq!(
        (waiting.watched, waiting.attention, elsewhere.watched, elsewhere.attention),
        (false, true, false, false)
    );
    assert_eq!(elsewhere.message, "m");
    let mut out = Vec::new();
    print::table(
        &mut out,
        &Report {
            installation: vec![],
            workloads: vec![bare],
            builds: vec![waiting],
            cards: Vec::new(),
            kaos: Vec::new(),
            trust: Vec::new(),
            terminating: Vec::new(),
            notes: Vec::new(),
        },
        false,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in
        ["Deployment/w in team1: the operator watches other", "AgentBuild/w in team1: the operator watches other"]
    {
        let line =
            text.lines().find(|told| told.starts_with(line)).unwrap_or_else(|| panic!("{line} is not in {text}"));
        assert!(line.ends_with("or move it to one of those"), "{line}");
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

/// Rows of a cluster whose installation was made then.
fn told_of(workloads: Vec<Value>, platform: &str) -> Vec<Row> {
    let mut world = world();
    world.set_server_version((1, 36));
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": keys::CONFIG_MAP_ENROLMENT,
        "namespace": keys::OPERATOR_NAMESPACE, "creationTimestamp": "2026-05-02T00:00:00Z"}});
    world.observe(&record, "");
    world.platform.text.push_str(platform);
    let seen = Seen { workloads, ..Seen::default() };
    assert!(concerns(&seen));
    rows(&seen, "team1", &world, &[]).unwrap()
}

#[test]
fn mend_17_labels_on_workloads_are_told_with_what_became_of_them() {
    let labelled = |name: &str, value: &str, time: &str| {
        let mut object = deployment(name, json!({}));
        object["metadata"]["labels"] = json!({keys::LABEL_TYPE: value});
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["managedFields"] = json!([{"manager": "kubectl-label", "operation": "Update", "time": time,
            "fieldsV1": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}]);
        object
    };
    let (old, new) = ("2026-05-01T00:00:00Z", "2026-05-03T00:00:00Z");
    let mut done = labelled("done", "agent", new);
    done["spec"]["template"]["metadata"]["labels"] = json!({keys::LABEL_TYPE: "agent"});
    let ours = json!({"manager": keys::MANAGER_ENROLMENT, "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {
        "f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}});
    done["metadata"]["managedFields"].as_array_mut().unwrap().push(ours);
    let all = || {
        vec![
            done.clone(),
            labelled("fresh", "agent", new),
            labelled("odd", "Agent", new),
            labelled("old", "agent", old),
        ]
    };
    let told = |platform| {
        let rows = told_of(all(), platform);
        assert!(rows.iter().all(|row| row.enrolled_by.by == By::WorkloadLabel), "{rows:?}");
        let told = rows.iter().map(|row| (row.name.clone(), row.reason.clone(), row.attention));
        told.collect::<Vec<_>>()
    };
    let row = |name: &str, reason: &str, attention| (name.to_owned(), reason.to_owned(), attention);
    let (injected, pending, unknown) = ("Injected", "EnrolmentPending", "UnknownValue");
    assert_eq!(
        told(""),
        [
            row("done", injected, false),
            row("fresh", pending, true),
            row("odd", unknown, true),
            row("old", pending, true)
        ]
    );
    let old = told_of(all(), "").pop().unwrap();
    assert!(old.message.contains("kubectl -n team1 label deployment old kagenti.io/type=agent"), "{}", old.message);
    assert_eq!((old.decision.as_str(), old.agent_type), ("skipped", None));
    assert_eq!(told("enrolment: {byWorkloadLabel: true}\n")[3], row("old", pending, true), "about to be enrolled");
    assert_eq!(
        told("enrolment: {byWorkloadLabel: false}\n"),
        [row("done", injected, false)],
        "the others are for discovery"
    );
}

#[test]
fn answers_01_protected_is_what_the_pods_carry() {
    let current = json!({"kagenti.io/authbridge-status": "{}", "kagenti.io/config-hash": hash()});
    let labelled = |labels: Value| deployment("w", labels);
    let of = |workload: Value, pods: Vec<Value>| {
        told(&Seen { workloads: vec![workload], pods, ..Seen::default() }).pop().unwrap().protected
    };
    let agent = json!({"kagenti.io/type": "agent"});
    let mut pending = pod("p", "w", current.clone());
    pending["status"]["phase"] = json!("Pending");
    let mut rolling = labelled(agent.clone());
    rolling["status"]["updatedReplicas"] = json!(0);
    let mut nobody = labelled(agent.clone());
    nobody["spec"]["replicas"] = json!(0);
    nobody["status"] = json!({"observedGeneration": 1});
    for (what, workload, pods, expected) in [
        ("it runs with its sidecars", labelled(agent.clone()), vec![pod("a", "w", current.clone())], Some(true)),
        (
            "one of two does",
            labelled(agent.clone()),
            vec![pod("a", "w", current.clone()), pod("b", "w", json!({}))],
            Some(false),
        ),
        ("its Pod does not run", labelled(agent.clone()), vec![pending], Some(false)),
        ("it is being replaced", rolling, vec![pod("a", "w", current.clone())], None),
        (
            "tools get nothing",
            labelled(json!({"kagenti.io/type": "tool"})),
            vec![pod("a", "w", json!({}))],
            Some(false),
        ),
        ("it wants no Pods", nobody, vec![], Some(true)),
    ] {
        assert_eq!(of(workload, pods), expected, "{what}");
    }
}

#[test]
fn answers_03_finished_jobs_are_no_rows() {
    let job = |name: &str, status: Value| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "team1", "uid": name},
            "spec": {"template": {"metadata": {"labels": {"kagenti.io/type": "agent"}}, "spec": {"containers": [{"name": "a"}]}}},
            "status": status,
        })
    };
    let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let workloads = vec![job("done", done), job("runs", json!({"active": 1}))];
    let mut ended = pod("alone", "w", json!({}));
    ended["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    ended["status"]["phase"] = json!("Succeeded");
    let rows = told(&Seen { workloads, pods: vec![ended], ..Seen::default() });
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["runs"]);
}

#[test]
fn answers_05_what_is_missing_of_the_installation_comes_first() {
    let report = Report {
        installation: vec!["MutatingWebhookConfiguration drawbridge is gone".to_owned()],
        workloads: vec![],
        builds: vec![],
        cards: vec![],
        kaos: vec![],
        trust: vec![],
        terminating: Vec::new(),
        notes: vec![],
    };
    let mut out = Vec::new();
    print::table(&mut out, &report, false).unwrap();
    assert!(String::from_utf8(out).unwrap().starts_with("MutatingWebhookConfiguration drawbridge is gone\n"));
}

#[test]
fn answers_06_a_config_map_that_cannot_be_read_is_told_for_everything_that_it_would_reach() {
    let mut world = world();
    let broken = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mine", "namespace": "team1", "labels": {"kagenti.io/defaults": "true"}},
        "data": {"config.yaml": "mode: [waypoint"}});
    world.observe(&broken, "team1");
    let labelled = deployment("w", json!({"kagenti.io/type": "agent"}));
    let tool = deployment("t", json!({"kagenti.io/type": "tool"}));
    let rows = rows(&Seen { workloads: vec![labelled, tool], ..Seen::default() }, "team1", &world, &[]).unwrap();
    let [tool, agent] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((agent.attention, &*agent.reason), (true, "NamespaceConfigUnreadable"));
    assert!(agent.message.contains("ConfigMap team1/mine, key config.yaml, line 1"), "{}", agent.message);
    assert_eq!(tool.reason, "ToolsDisabled", "it reaches nothing there");
}
