//! AgentCards as they are kept.

use serde_json::json;

use super::*;
use crate::store::{Kind, change_of};

fn card(object: &Value) -> AgentCardSeen {
    match change_of(Kind::AgentCard, &object.to_string()).unwrap().now.unwrap().what.clone() {
        What::AgentCard(seen) => *seen,
        other => panic!("{other:?}"),
    }
}

fn object() -> Value {
    json!({
        "metadata": {"name": "w-deployment-card", "namespace": "team", "uid": "u", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["agentcard.kagenti.dev/finalizer"],
            "labels": {"app.kubernetes.io/managed-by": "kagenti-operator"},
            "annotations": {"agentcard.kagenti.dev/refresh": "7"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "d", "controller": true}]},
        "spec": {"syncPeriod": "1m", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
            "identityBinding": {"trustDomain": "a.b"}},
        "status": {"cardId": "00", "card": {"name": "A"}, "conditions": [{"type": "Synced", "status": "True"}]},
    })
}

#[test]
fn everything_but_the_card_is_kept() {
    let seen = card(&object());
    assert_eq!((seen.generation, &*seen.created, seen.deleting), (2, "2026-01-01T00:00:00Z", false));
    assert!(seen.has_finalizer("agentcard.kagenti.dev/finalizer") && !seen.has_finalizer("other"));
    assert!(seen.is_automatic() && seen.is_owned_by("d") && seen.over.is_none());
    assert_eq!(seen.controller.as_ref().map(|owner| &*owner.name), Some("w"));
    assert_eq!(seen.refresh.as_deref(), Some("7"));
    let target = CardTarget::of_workload(WorkloadKind::Deployment, "w");
    assert_eq!(target.workload_kind(), Some(WorkloadKind::Deployment));
    assert_eq!(
        seen.spec,
        CardSpec {
            sync_period: Some("1m".into()),
            target: Some(target),
            identity_binding: Some(CardBinding { trust_domain: Some("a.b".into()) }),
        }
    );
    assert_eq!(*seen.status, json!({"cardId": "00", "conditions": [{"type": "Synced", "status": "True"}]}));
}

#[test]
fn what_is_absent_or_of_another_type_is_absent() {
    let bare = card(&json!({"metadata": {"name": "c"}}));
    assert_eq!((bare.spec, &*bare.status), (CardSpec::default(), &json!({})));
    assert!(
        !card(&json!({"metadata": {"name": "c", "labels": {"app.kubernetes.io/managed-by": "Helm"}}})).is_automatic()
    );
    for target in
        [json!("w"), json!({"kind": "Deployment", "name": "w"}), json!({"apiVersion": 1, "kind": [], "name": {}})]
    {
        assert_eq!(CardTarget::of_spec(&json!({"targetRef": target})), None, "{target}");
    }
    let odd = json!({"apiVersion": "apps/v2", "kind": "Deployment", "name": "w"});
    assert_eq!(CardTarget::of_spec(&json!({"targetRef": odd})).unwrap().workload_kind(), None);
}

/// A card is as large as an agent makes it, and its object as large as a tenant does.
#[test]
fn an_object_of_a_megabyte_is_kept_in_a_few_kilobytes() {
    let mut large = object();
    large["status"]["card"] = json!({"description": "x".repeat(1 << 20)});
    assert_eq!(card(&large), card(&object()), "the card itself makes no difference");
    large["metadata"]["finalizers"] = json!(vec!["f".repeat(100); 200]);
    large["metadata"]["annotations"]["agentcard.kagenti.dev/refresh"] = json!("é".repeat(100_000));
    large["spec"]["syncPeriod"] = json!("9".repeat(100_000));
    large["spec"]["targetRef"]["name"] = json!("w".repeat(100_000));
    large["status"]["signatureVerificationDetails"] = json!("y".repeat(100_000));
    let seen = card(&large);
    assert!(
        seen.over == Some(Over::Size)
            && seen.finalizers.is_empty()
            && seen.owners.is_empty()
            && seen.controller.is_none()
    );
    assert_eq!((&*seen.status, seen.spec.target.clone()), (&json!({}), None));
    let texts = [seen.refresh.as_deref(), seen.spec.sync_period.as_deref()];
    assert!(texts.into_iter().flatten().all(|text| text.len() <= LONGEST));
}

/// What the Go operator left on a card comes off when the card is deleted, whatever others have written beside it.
#[test]
fn of_a_card_over_a_bound_that_is_being_deleted_the_finalizers_are_kept_where_they_are_few() {
    let owner =
        |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x".repeat(100), "uid": format!("{at}")});
    let mut many = object();
    many["metadata"]["ownerReferences"] = (0..200).map(owner).collect();
    let living = card(&many);
    assert_eq!((living.over, living.finalizers.len(), living.owners.len()), (Some(Over::Size), 0, 0));
    many["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    let ending = card(&many);
    assert!(ending.over == Some(Over::Size) && ending.owners.is_empty() && ending.deleting);
    assert_eq!(ending.finalizers.iter().map(|name| &**name).collect::<Vec<_>>(), ["agentcard.kagenti.dev/finalizer"]);
    assert_eq!(ending.slim(Over::Count).finalizers, ending.finalizers);
    // The whole list or none: by its place in the list one comes off.
    let names: Vec<_> = (0..20).map(|at| format!("{}/{at}", "n".repeat(20))).collect();
    many["metadata"]["finalizers"] = json!(names);
    assert!(card(&many).finalizers.is_empty());
    many["metadata"]["ownerReferences"] = json!([]);
    let read = card(&many);
    assert_eq!((read.over, read.finalizers.len(), read.slim(Over::Total).finalizers.len()), (None, 20, 0));
}
