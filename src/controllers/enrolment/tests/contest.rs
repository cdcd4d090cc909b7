//! Another operator, or a tool, that puts its own hash back each time ours is written.

use serde_json::json;

use super::bench::{Bench, enrolled};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

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
        let gone = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}});
        bench.change(Kind::Deployment, "web", gone);
        assert_eq!(applies(&bench.converge()), 1);
    }
    // Another configuration is another matter.
    blows(&mut bench);
    bench.cluster.configure("proxy: {uid: 2000}\n");
    assert_eq!(applies(&bench.converge()), 1);
}
