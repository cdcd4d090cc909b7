use serde_json::{Value, json};

use super::*;

fn spec() -> Value {
    json!({
        "type": "agent",
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"}
    })
}

#[test]
fn of_two_on_one_workload_the_oldest_governs_then_the_smallest_uid() {
    let one = |uid: &str, created: &str, deleting| {
        let object = json!({
            "metadata": {"uid": uid, "creationTimestamp": created, "deletionTimestamp": deleting},
            "spec": spec()
        });
        Arc::new(AgentRuntimeInput::of_object(&object))
    };
    let all = |list: &[(&str, Arc<AgentRuntimeInput>)]| {
        Governors::of(&list.iter().map(|(name, says)| (Arc::from(*name), Arc::clone(says))).collect())
            .winner(WorkloadKind::Deployment, "weather")
            .map(|governor| governor.name.to_string())
    };
    let (old, new) = ("2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z");
    assert_eq!(all(&[("a", one("1", new, Value::Null)), ("b", one("2", old, Value::Null))]).as_deref(), Some("b"));
    assert_eq!(all(&[("a", one("9", old, Value::Null)), ("b", one("2", old, Value::Null))]).as_deref(), Some("b"));
    assert_eq!(all(&[("a", one("1", new, Value::Null)), ("b", one("2", old, json!(new)))]).as_deref(), Some("a"));
    assert_eq!(all(&[]), None);
    let index = Governors::of(&BTreeMap::from([(Arc::from("a"), one("1", new, Value::Null))]));
    assert_eq!(index.winner(WorkloadKind::StatefulSet, "weather"), None, "the kind counts");
}

#[test]
fn a_thousand_on_one_target_are_one_pass() {
    let many: BTreeMap<Arc<str>, Arc<AgentRuntimeInput>> = (0..1000)
        .map(|index| {
            let object = json!({
                "metadata": {"uid": format!("{index:04}"), "creationTimestamp": "2026-05-01T00:00:00Z"},
                "spec": spec()
            });
            (Arc::from(format!("ar-{:04}", 999 - index)), Arc::new(AgentRuntimeInput::of_object(&object)))
        })
        .collect();
    let winner = Governors::of(&many).winner(WorkloadKind::Deployment, "weather").cloned().unwrap();
    assert_eq!((&*winner.name, &*winner.says.uid), ("ar-0999", "0000"));
}
