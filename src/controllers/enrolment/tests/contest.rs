//! Another operator, or a tool, that takes what is ours away each time it is written: the hash, or the label; and one that puts its own marks back.

use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, TEAM, WEB, deployment, enrolled};
use crate::controllers::enrolment::memory::Enrolment;
use crate::controllers::enrolment::plan::{NAME, ROW};
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

/// As an update of the Go operator does it: its value, and its field manager's.
fn take_back(bench: &mut Bench) {
    let mut web = bench.object(Kind::Deployment, "web").clone();
    web["spec"]["template"]["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH] = json!("theirs");
    for entry in web["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        let annotations = entry.pointer_mut("/fieldsV1/f:spec/f:template/f:metadata/f:annotations");
        if let Some(annotations) = annotations.and_then(serde_json::Value::as_object_mut) {
            annotations.remove(&format!("f:{}", keys::ANNOTATION_CONFIG_HASH));
        }
    }
    bench.put(Kind::Deployment, web);
}

/// As whoever writes the template's labels whole takes it off.
fn take_label(bench: &mut Bench) {
    let gone = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}});
    bench.change(Kind::Deployment, "web", gone);
}

fn is_labelled(bench: &Bench) -> bool {
    let template = &bench.object(Kind::Deployment, "web")["spec"]["template"]["metadata"];
    template["labels"].get(keys::LABEL_TYPE).is_some()
}

fn applies(ops: &[Op]) -> usize {
    ops.iter().filter(|op| matches!(op, Op::Apply { .. })).count()
}

/// How often it was written again before it was left.
fn blows(bench: &mut Bench) -> usize {
    (0..20)
        .take_while(|_| {
            take_back(bench);
            bench.now += s(1);
            applies(&bench.converge()) > 0
        })
        .count()
}

#[test]
fn a_fight_over_the_hash_ends_and_is_said() {
    let mut bench = enrolled();
    let ours = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    assert_eq!(blows(&mut bench), 3);
    assert_eq!(bench.condition("art", "Ready"), "False/FieldsContested");
    let message = bench.message("art", "Ready");
    assert!(message.contains(keys::ANNOTATION_CONFIG_HASH) && message.contains("--show-managed-fields"), "{message}");
    assert_eq!(bench.converge(), [], "and nothing is written meanwhile");
    bench.now += s(600);
    assert_eq!(applies(&bench.converge()), 1, "whoever it was may be gone");
    assert_eq!(
        (bench.hash(Kind::Deployment, "web"), &*bench.condition("art", "Ready")),
        (Some(&*ours), "True/Configured")
    );
}

#[test]
fn a_change_now_and_then_is_put_right_however_often_and_so_is_the_label() {
    let mut bench = enrolled();
    for _ in 0..8 {
        take_back(&mut bench);
        bench.now += s(300);
        assert_eq!(applies(&bench.converge()), 1);
        bench.now += s(600);
    }
    for _ in 0..8 {
        take_label(&mut bench);
        assert_eq!(applies(&bench.converge()), 1);
        bench.now += s(60);
    }
    // Another configuration is another matter.
    blows(&mut bench);
    bench.cluster.configure("proxy: {uid: 2000}\n");
    assert_eq!(applies(&bench.converge()), 1);
}

/// Each of the two wakes the other: without pauses both would write as fast as the API server answers.
#[test]
fn a_fight_over_the_label_has_growing_pauses_no_end_and_is_said_once() {
    let mut bench = enrolled();
    let begun = bench.now;
    let mut blows = Vec::new();
    while bench.now < begun + s(600) {
        if is_labelled(&bench) {
            take_label(&mut bench);
        }
        if applies(&bench.converge()) > 0 {
            blows.push(bench.now - begun);
        }
        bench.now += Duration::from_millis(500);
    }
    let pauses: Vec<_> = blows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.windows(2).skip(1).take(7).all(|pair| pair[0] < pair[1]), "{pauses:?}");
    assert_eq!((pauses.first(), pauses.last()), (Some(&Duration::from_millis(500)), Some(&s(60))), "{pauses:?}");
    assert!(blows.len() <= 20, "{blows:?}");
    assert_eq!(bench.condition("art", "Ready"), "False/FieldsContested");
    assert_eq!(
        bench.condition("art", "Protected"),
        "False/FieldsContested",
        "Pods that are made meanwhile have no sidecars"
    );
    let message = bench.message("art", "Ready");
    assert!(message.contains("label kagenti.io/type of its Pod template"), "{message}");
    assert!(message.contains("replaces its Pods") && message.contains("--show-managed-fields"), "{message}");
    let told = bench.told.iter().filter(|report| report.reason == Reason::FieldsContested).count();
    assert_eq!(told, 1, "{:?}", bench.told);
    // Whoever it was is gone.
    bench.now += s(60);
    bench.converge();
    assert!(is_labelled(&bench));
    assert_eq!(bench.condition("art", "Ready"), "False/FieldsContested", "it may be taken off again at once");
    bench.now += s(1);
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    assert_eq!(bench.converge(), []);
}

/// Whoever takes an enrolment away and asks for it again fights nobody.
#[test]
fn an_agent_runtime_that_comes_and_goes_is_enrolled_at_once_each_time() {
    let mut bench = enrolled();
    for _ in 0..6 {
        bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
        bench.converge();
        assert!(!is_labelled(&bench));
        bench.runtime("art", WEB, json!({}));
        assert_eq!(applies(&bench.converge()), 1);
        assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    }
}

/// As `kubectl replace --force` does it, before anybody has looked at the place between: it comes without what stood on the one before.
#[test]
fn a_workload_that_is_made_again_and_again_has_taken_nothing_back() {
    let mut bench = enrolled();
    for number in 0..6 {
        bench.remove(Kind::Deployment, "web");
        let mut web = deployment("web");
        web["metadata"]["uid"] = json!(format!("web-{number}"));
        bench.put(Kind::Deployment, web);
        assert_eq!(applies(&bench.converge()), 1, "{number}");
        assert!(is_labelled(&bench), "{number}");
        assert_eq!(bench.condition("art", "Ready"), "True/Configured", "{number}");
    }
}

/// In the first minute of an installation the API server takes nothing, and nothing is wrong: nobody has taken anything back.
#[test]
fn what_came_to_nothing_is_tried_again_and_is_no_fight() {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let key = Key::new(TEAM, "deployments/web");
    for times in 0..10 {
        let plan = bench.cluster.plan_at(ROW, &key, bench.now);
        let [op @ Op::Apply { .. }] = &plan.ops[..] else { panic!("{times}: {:?}", plan.ops) };
        bench.cluster.note::<Enrolment>(NAME, &key, plan.note.clone());
        Enrolment::failed(bench.cluster.owns.of_mut(NAME), &key, op);
        bench.now += s(3);
    }
}

/// A Go operator that still runs puts its label on again whenever it is taken off. Nothing else is wanted of the workload.
#[test]
fn what_the_go_operator_puts_back_is_taken_off_a_few_times_and_then_left_for_a_while() {
    let mut bench = enrolled();
    let puts_back = |bench: &mut Bench| {
        let mut web = bench.object(Kind::Deployment, "web").clone();
        web["metadata"]["labels"][keys::LABEL_APP_MANAGED_BY] = json!(keys::MANAGED_BY_UPSTREAM);
        let entries = web["metadata"]["managedFields"].as_array_mut().unwrap();
        entries.retain(|entry| entry["manager"] != keys::MANAGER_UPSTREAM);
        entries.push(json!({"manager": keys::MANAGER_UPSTREAM, "operation": "Update",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}}}}));
        bench.put(Kind::Deployment, web);
        let ops = bench.converge();
        ops.iter().filter(|op| matches!(op, Op::Edit { .. })).count()
    };
    let mut edits = 0;
    for _ in 0..20 {
        edits += puts_back(&mut bench);
        bench.now += s(1);
    }
    assert_eq!(edits, 3);
    assert_eq!(bench.condition("art", "Ready"), "True/Configured", "its enrolment stands");
    bench.now += s(600);
    assert_eq!(puts_back(&mut bench), 1, "it may have been stopped meanwhile");
}
