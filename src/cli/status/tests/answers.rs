//! What is said is true: Protected, finished Jobs, a damaged installation, a ConfigMap that cannot be read.

use super::*;

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
