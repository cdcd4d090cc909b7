//! AgentRuntimes: which one governs, and what they say of themselves.

use super::*;

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

/// Somebody with role `view` sees AgentRuntimes and no Sandboxes: that is no news of the Sandbox.
#[test]
fn what_may_not_be_seen_is_not_called_absent() {
    let says = |status: &str, reason: &str| {
        let mut object = agent_runtime("r", "w", "2026-01-01T00:00:00Z");
        object["status"] =
            json!({"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "why"}]});
        object
    };
    for (object, may_see, reason, attention) in [
        (agent_runtime("r", "w", "2026-01-01T00:00:00Z"), false, "TargetUnreadable", false),
        (says("True", "Configured"), false, "TargetUnreadable", false),
        (says("False", "TargetNotFound"), false, "TargetNotFound", true),
        (says("False", "LabelConflict"), false, "LabelConflict", true),
        (agent_runtime("r", "w", "2026-01-01T00:00:00Z"), true, "TargetNotFound", true),
    ] {
        let unread = if may_see { BTreeSet::new() } else { BTreeSet::from(["Deployment"]) };
        let seen = Seen { agent_runtimes: vec![object], unread, ..Seen::default() };
        let row = told(&seen).pop().unwrap();
        assert_eq!((row.reason.as_str(), row.attention), (reason, attention), "{row:?}");
    }
    let agent = || vec![deployment("w", json!({"kagenti.io/type": "agent"}))];
    for (unread, protected) in [(BTreeSet::new(), Some(false)), (BTreeSet::from(["Pod"]), None)] {
        let row = told(&Seen { workloads: agent(), unread, ..Seen::default() }).pop().unwrap();
        assert_eq!((row.decision.as_str(), row.protected), ("injected", protected), "{row:?}");
    }
}
