//! What is said of a card, by what the cluster has.

use serde_json::json;

use super::*;
use crate::cli::cluster::fake;

fn card(more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "c", "namespace": "team"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
        "status": {"conditions": [
            {"type": "Synced", "status": "True", "reason": "SyncSucceeded", "message": "read"},
            {"type": "Verified", "status": "True", "reason": "SignatureVerified", "message": "by its own SVID"},
            {"type": "Bound", "status": "True", "reason": "Bound", "message": ""}]},
    });
    json_patch::merge(&mut object, &more);
    object
}

fn workload(labels: Value) -> Value {
    json!({"kind": "Deployment", "metadata": {"name": "w", "labels": labels}})
}

fn pod(more: Value) -> Value {
    let mut object = json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}, "spec": {},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    json_patch::merge(&mut object, &more);
    object
}

/// A card of which everything is as it has to be.
fn good() -> Facts {
    let card = card(json!({}));
    Facts {
        workload: Some(workload(json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}))),
        service: Some(json!({"spec": {"ports": [{"port": 8000}]}})),
        pods: vec![pod(json!({}))],
        cards: vec![card.clone()],
        policies: Vec::new(),
        hidden: BTreeSet::new(),
        card,
    }
}

/// The names of what fails, and the whole text.
fn failing(facts: &Facts) -> (Vec<&'static str>, String) {
    let explained = Explained { subject: "AgentCard team/c".to_owned(), checks: checks(facts), notes: Vec::new() };
    let mut out = Vec::new();
    printed(&mut out, &explained, ["ok", "fails", "-"]).unwrap();
    let failed = explained.checks.iter().filter(|check| check.state == State::Failed);
    (failed.map(|check| check.name).collect(), String::from_utf8(out).unwrap())
}

#[test]
fn nothing_fails_of_a_card_that_is_as_it_has_to_be() {
    let (failed, text) = failing(&good());
    assert_eq!(failed, [""; 0], "{text}");
    for part in
        ["workload   Deployment/w exists", "protocol   a2a", "1 of 1 are ready", "w, port 8000", "by its own SVID"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn what_a_person_can_see_and_change_is_said_before_any_operator_has_looked() {
    let unread = || card(json!({"status": null}));
    let hosted = pod(json!({"spec": {"hostNetwork": true}}));
    let unlabelled = pod(json!({"metadata": {"labels": null}}));
    let waiting = pod(json!({"status": {"conditions": []}}));
    let odd =
        card(json!({"status": null, "spec": {"targetRef": {"kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"}}}));
    for (facts, name, words) in [
        (
            Facts { card: card(json!({"spec": null, "status": null})), ..Facts::default() },
            "workload",
            "kubectl -n team edit agentcard c",
        ),
        (Facts { workload: None, card: unread(), ..good() }, "workload", "Deployment/w (apps/v1) does not exist"),
        (Facts { workload: None, card: odd, ..good() }, "workload", "whose Pods are not known here"),
        (
            Facts { workload: Some(workload(json!({"protocol.kagenti.io/a2a": ""}))), card: unread(), ..good() },
            "type",
            "kubectl -n team label deployment/w kagenti.io/type=agent",
        ),
        (
            Facts { workload: Some(workload(json!({"kagenti.io/type": "agent"}))), card: unread(), ..good() },
            "protocol",
            "kubectl -n team label deployment/w protocol.kagenti.io/a2a=",
        ),
        (
            Facts {
                workload: Some(workload(json!({"kagenti.io/type": "agent", "kagenti.io/protocol": "mcp"}))),
                ..good()
            },
            "protocol",
            "mcp: only cards of a2a are read",
        ),
        (Facts { pods: vec![waiting], card: unread(), ..good() }, "Pods", "0 of 1 are ready"),
        (Facts { pods: vec![hosted], card: unread(), ..good() }, "Pods", "on the network of their node"),
        (Facts { pods: vec![unlabelled], card: unread(), ..good() }, "Pods", "on the Pod template"),
        (Facts { service: None, card: unread(), ..good() }, "Service", "expose deployment/w --port 8000"),
    ] {
        let (failed, text) = failing(&facts);
        assert_eq!(failed, [name], "{text}");
        assert!(text.contains(words), "{words:?} in {text}");
    }
}

#[test]
fn whether_each_pod_signs_anew_is_said_where_that_was_asked_for() {
    let asking = |value: &str| {
        let mut workload = workload(json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}));
        workload["spec"] = json!({"template": {"metadata": {"annotations": {"agentcard.kagenti.dev/sign": value}}}});
        Some(workload)
    };
    let signer = |more: Value| {
        let mut one = json!({"name": "sign-agentcard"});
        json_patch::merge(&mut one, &more);
        pod(json!({"spec": {"initContainers": [one]}}))
    };
    let (stays, ends) = (signer(json!({"restartPolicy": "Always"})), signer(json!({})));
    let both = || vec![stays.clone(), ends.clone()];
    for (what, facts, fails, words) in [
        (
            "all",
            Facts { workload: asking("sidecar"), pods: vec![stays.clone()], ..good() },
            false,
            "sidecar sign-agentcard of each",
        ),
        (
            "one is older",
            Facts { workload: asking("sidecar"), pods: both(), ..good() },
            true,
            "1 of 2 Pods have no sidecar",
        ),
        ("it was not asked for", Facts { workload: asking("true"), pods: both(), ..good() }, false, ""),
    ] {
        let (failed, text) = failing(&facts);
        assert_eq!(failed, if fails { vec!["signing"] } else { vec![] }, "{what}: {text}");
        assert_eq!(text.contains("sidecar sign-agentcard"), !words.is_empty(), "{what}: {text}");
        assert!(text.contains(words), "{what}: {text}");
    }
}

#[test]
fn what_was_judged_is_what_the_status_says_and_has_a_way_out() {
    let fails = |kind: &str, reason: &str| {
        json!({"status": {"expectedSpiffeID": "spiffe://d/ns/team/sa/w", "signatureSpiffeId": "spiffe://d/ns/x/sa/y",
            "conditions": [{"type": kind, "status": "False", "reason": reason, "message": "m\u{1b}[2J"}]}})
    };
    for (kind, reason, name, words) in [
        ("Synced", "FetchFailed", "card", "/.well-known/agent-card.json"),
        ("Synced", "Other", "card", "agentcard.kagenti.dev/refresh"),
        ("Verified", "SignatureInvalid", "signature", "drawbridge card verify"),
        (
            "Bound",
            "NotBound",
            "identity",
            "signed by spiffe://d/ns/x/sa/y; it has to be signed by spiffe://d/ns/team/sa/w",
        ),
    ] {
        let (failed, text) = failing(&Facts { card: card(fails(kind, reason)), ..good() });
        assert_eq!(failed, [name], "{text}");
        assert!(text.contains(words) && !text.contains('\u{1b}'), "{words:?} in {text}");
    }
    let (failed, text) = failing(&Facts { card: card(json!({"status": null})), ..good() });
    assert_eq!(failed, [""; 0]);
    assert!(text.contains("nobody has read the card yet") && text.contains("cards.trustBundle"), "{text}");
}

#[test]
fn another_card_of_the_same_workload_is_named_unless_it_does_not_count() {
    let other = |metadata: Value| {
        let mut other = card(json!({}));
        other["metadata"] = json!({"name": "other", "namespace": "team"});
        json_patch::merge(&mut other["metadata"], &metadata);
        other
    };
    let automatic = json!({"labels": {"app.kubernetes.io/managed-by": "drawbridge"}});
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    for (metadata, named) in [(json!({}), true), (automatic, false), (going, false)] {
        let facts = Facts { cards: vec![good().card, other(metadata)], ..good() };
        assert_eq!(failing(&facts).0, if named { vec!["one card"] } else { Vec::new() });
    }
}

/// That the workload does not exist, and a Service has to be made, was said to somebody who may see neither.
#[tokio::test]
async fn what_may_not_be_seen_is_not_called_absent() {
    let cluster = fake::cluster(|path| match path {
        "/apis/agent.kagenti.dev/v1alpha1/namespaces/team/agentcards" => {
            fake::list("AgentCard", "agent.kagenti.dev/v1alpha1", &[card(json!({}))])
        }
        _ => fake::refused(),
    })
    .await;
    let mut notes = Vec::new();
    let facts = read(&cluster, "team", "c", &mut notes).await.unwrap();
    let (failed, text) = failing(&facts);
    assert_eq!((failed, notes.len()), (vec![], 4), "{text}{notes:?}");
    for part in ["Deployment/w may not be seen", "w may not be seen", "what NetworkPolicies let it reach may not be"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("does not exist") && !text.contains("not enforced"), "{text}");
    assert_eq!(cluster.seen_all_or_partial(Exit::Ok), Exit::Partial);
    let hidden = Facts { pods: Vec::new(), hidden: BTreeSet::from([PODS]), ..good() };
    let (failed, text) = failing(&hidden);
    assert_eq!(failed, [""; 0], "{text}");
    assert!(text.contains("Pods       what runs of it may not be seen"), "{text}");
}
