//! What an AgentRuntime's status says of its workload's card.

use serde_json::{Value, json};

use super::bench::{Bench, enrolled};
use crate::controllers::enrolment::plan::ROW;
use crate::store::{Key, Kind};

fn card(name: &str, created: &str, conditions: Value) -> Value {
    json!({
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        "status": {"conditions": conditions},
    })
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": ""})
}

fn shown(bench: &Bench) -> Value {
    bench.object(Kind::AgentRuntime, "art")["status"]["card"].clone()
}

#[test]
fn the_card_of_the_workload_is_shown_in_a_few_words_and_goes_with_it() {
    let mut bench = enrolled();
    assert_eq!(shown(&bench), Value::Null);
    let early = "2026-01-01T00:00:00Z";
    for (conditions, wanted) in [
        (json!([]), json!({"name": "c"})),
        (json!([condition("Synced", "True", "SyncSucceeded")]), json!({"name": "c", "reason": "SyncSucceeded"})),
        (
            json!([condition("Synced", "True", "SyncSucceeded"), condition("Verified", "True", "SignatureVerified")]),
            json!({"name": "c", "verified": true, "reason": "SignatureVerified"}),
        ),
        (
            json!([condition("Synced", "False", "FetchFailed"), condition("Verified", "False", "SignatureInvalid")]),
            json!({"name": "c", "verified": false, "reason": "FetchFailed"}),
        ),
        (json!([condition("Verified", "Unknown", "TrustUnavailable")]), json!({"name": "c"})),
    ] {
        bench.put(Kind::AgentCard, card("c", early, conditions));
        bench.converge();
        assert_eq!(shown(&bench), wanted);
        assert_eq!(bench.converge(), [], "{wanted}: at rest nothing is written");
    }
    let touched = bench.cluster.touched(ROW, Kind::AgentCard, &Key::new("team", "c"));
    assert_eq!(touched, [Key::new("team", "deployments/web")]);

    // Of several the one that counts: a person's before a controller's, then the oldest.
    bench.put(Kind::AgentCard, card("younger", "2026-02-01T00:00:00Z", json!([])));
    let mut automatic = card("automatic", "2025-01-01T00:00:00Z", json!([]));
    automatic["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "drawbridge"});
    bench.put(Kind::AgentCard, automatic);
    bench.converge();
    assert_eq!(shown(&bench)["name"], "c");
    bench.remove(Kind::AgentCard, "c");
    bench.converge();
    assert_eq!(shown(&bench)["name"], "younger");
    for name in ["younger", "automatic"] {
        bench.remove(Kind::AgentCard, name);
    }
    bench.converge();
    assert_eq!(shown(&bench), Value::Null);
}
