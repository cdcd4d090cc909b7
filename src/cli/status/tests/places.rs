//! What the place of a workload, or its label, decides: bounds, namespaces that nobody watches, labels on workloads themselves.

use super::*;

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
    print::table(&mut out, &Report { workloads: vec![bare], builds: vec![waiting], ..Report::default() }, false)
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
