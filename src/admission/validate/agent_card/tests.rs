//! The review as a table, by the numbers of the cases of cards (docs/cases.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::evaluate;
use crate::admission::inject::fixtures;
use crate::admission::verdict::{Outcome, Verdict};
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::config::agent_card::{AgentCardInput, ManualCards};
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;

fn card(name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard",
        "metadata": {"name": name, "namespace": "team1"},
        "spec": {"syncPeriod": "30s", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
    });
    json_patch::merge(&mut object, &more);
    object
}

/// A snapshot that knows these cards.
fn knowing(objects: &[Value]) -> Snapshot {
    let named =
        |object: &Value| (Arc::from(object["metadata"]["name"].as_str().unwrap()), AgentCardInput::of_object(object));
    let cards: BTreeMap<Arc<str>, AgentCardInput> = objects.iter().map(named).collect();
    fixtures::snapshot_with(|_| {}, |view| view.cards = ManualCards::of(&cards))
}

fn reviewed(object: &Value, old: Option<&Value>, snapshot: &Snapshot) -> Verdict {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
    let (object, old) = (raw(object), old.map(raw));
    let kind =
        GroupVersionKind { group: "agent.kagenti.dev".into(), version: "v1alpha1".into(), kind: "AgentCard".into() };
    let request = Request {
        phase: Phase::Validate,
        uid: "review".into(),
        kind,
        sub_resource: None,
        name: None,
        namespace: Some(namespace.into()),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        dry_run: None,
        object: Some((&*object).into()),
        old_object: old.as_deref().map(Into::into),
    };
    evaluate(&request, snapshot)
}

/// The refusal in full, and its code.
fn refused(verdict: &Verdict) -> (Reason, u16, String) {
    match &verdict.outcome {
        Outcome::Deny(denial) => (denial.reason, denial.code, denial.words()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn case_004_a_card_of_no_workload_is_refused() {
    let nothing = knowing(&[]);
    for spec in [json!({"targetRef": null}), json!({"targetRef": null, "syncPeriod": null})] {
        let object = card("c", json!({"spec": spec}));
        let moved = refused(&reviewed(&object, Some(&card("c", json!({}))), &nothing));
        for (reason, code, words) in [refused(&reviewed(&object, None, &nothing)), moved] {
            assert_eq!((reason, code), (Reason::FieldRequired, 403));
            assert!(words.contains("spec.targetRef is required"), "{words}");
        }
    }
}

#[test]
fn cases_005_to_008_a_workload_has_one_card_of_a_person() {
    let known = knowing(&[card("c1", json!({})), card("other", json!({"spec": {"targetRef": {"name": "x"}}}))]);
    let (reason, code, words) = refused(&reviewed(&card("c2", json!({})), None, &known));
    assert_eq!((reason, code), (Reason::DuplicateCard, 403));
    assert!(words.contains("an AgentCard already targets Deployment w in namespace team1: c1"), "5: {words}");
    for target in [json!({"kind": "StatefulSet"}), json!({"name": "w2"}), json!({"apiVersion": "apps/v2"})] {
        let other = card("c2", json!({"spec": {"targetRef": target}}));
        assert_eq!(reviewed(&other, None, &known).reason, Reason::Accepted, "6: {target}");
    }
    let elsewhere = card("c2", json!({"metadata": {"namespace": "team2"}}));
    assert_eq!(reviewed(&elsewhere, None, &known).reason, Reason::Accepted, "6: another namespace");
    let edited = card("c1", json!({"spec": {"syncPeriod": "1m"}}));
    assert_eq!(reviewed(&edited, Some(&card("c1", json!({}))), &known).reason, Reason::Accepted, "7");
    let before = card("other", json!({"spec": {"targetRef": {"name": "x"}}}));
    let moved = reviewed(&card("other", json!({})), Some(&before), &known);
    assert_eq!(refused(&moved).0, Reason::DuplicateCard, "8");
}

/// Case 9 is overridden: what is known is the snapshot, so there is no list that could fail.
#[test]
fn cases_009_to_011_what_cannot_be_judged_and_what_is_there_already_is_let_through() {
    assert_eq!(
        reviewed(&card("c", json!({"metadata": {"namespace": "unknown"}})), None, &knowing(&[])).reason,
        Reason::Accepted
    );
    let (one, two) = (card("c1", json!({})), card("c2", json!({})));
    let both = knowing(&[one, two.clone()]);
    let going = card("c2", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []}}));
    assert_eq!(reviewed(&going, Some(&two), &both).reason, Reason::BeingDeleted, "10");
    let labelled = card("c2", json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(reviewed(&labelled, Some(&two), &both).reason, Reason::SpecUnchanged, "11");
    let edited = card("c2", json!({"spec": {"syncPeriod": "1m"}}));
    assert_eq!(reviewed(&edited, Some(&two), &both).reason, Reason::Accepted, "11: it keeps its target");
}

#[test]
fn case_012_a_card_that_a_controller_made_and_one_that_goes_stand_in_nobodys_way() {
    for metadata in [
        json!({"labels": {"app.kubernetes.io/managed-by": "kagenti-operator"}}),
        json!({"labels": {"app.kubernetes.io/managed-by": "drawbridge"}}),
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ] {
        let known = knowing(&[card("c1", json!({"metadata": metadata}))]);
        assert_eq!(reviewed(&card("c2", json!({})), None, &known).reason, Reason::Accepted, "{metadata}");
    }
}

#[test]
fn periods_and_trust_domains_that_mean_nothing_are_refused_and_old_ones_are_told() {
    let known = knowing(&[]);
    let period = |text: &str| card("c", json!({"spec": {"syncPeriod": text}}));
    for good in ["", "5s", "30s", "1h30m", "24h", "1.5m"] {
        assert_eq!(reviewed(&period(good), None, &known).reason, Reason::Accepted, "{good:?}");
    }
    let domain = |text: &str| card("c", json!({"spec": {"identityBinding": {"trustDomain": text}}}));
    assert_eq!(reviewed(&domain("example.org"), None, &known).reason, Reason::Accepted);
    let bad_periods =
        ["0s", "-5s", "1ns", "4999ms", "24h1s", "garbage", "30"].map(|text| (period(text), "spec.syncPeriod", text));
    let bad_domains =
        ["Example.org", "a/b", "spiffe://a"].map(|text| (domain(text), "spec.identityBinding.trustDomain", text));
    for (object, field, seen) in bad_periods.into_iter().chain(bad_domains) {
        let (reason, _, words) = refused(&reviewed(&object, None, &known));
        assert_eq!(reason, Reason::FieldInvalid, "{seen}");
        assert!(words.contains(field) && words.contains(seen), "{words}");
        // It was so before: the update is about something else.
        let mut edited = object.clone();
        edited["spec"]["targetRef"]["name"] = json!("x");
        let verdict = reviewed(&edited, Some(&object), &known);
        assert_eq!(verdict.reason, Reason::Accepted, "{seen}");
        assert!(verdict.warnings.iter().any(|warning| warning.text.contains(field)), "{:?}", verdict.warnings);
    }
}

#[test]
fn every_fault_is_told_in_one_answer() {
    let object =
        card("c", json!({"spec": {"syncPeriod": "0s", "targetRef": null, "identityBinding": {"trustDomain": "A"}}}));
    let (_, _, words) = refused(&reviewed(&object, None, &knowing(&[])));
    for part in ["spec.targetRef", "spec.syncPeriod", "spec.identityBinding.trustDomain"] {
        assert!(words.contains(part), "{words}");
    }
}

/// B5: said at apply, and never refused.
#[test]
fn a_kind_whose_cards_are_not_read_is_allowed_with_a_warning() {
    for (version, kind, warned) in [
        ("apps/v1", "Deployment", false),
        ("apps/v1", "StatefulSet", false),
        ("apps/v1", "DaemonSet", false),
        ("agents.x-k8s.io/v1alpha1", "Sandbox", false),
        ("batch/v1", "Job", true),
        ("batch/v1", "CronJob", true),
        ("v1", "Pod", true),
        ("apps/v1", "ReplicaSet", true),
        ("example.org/v1", "Deployment", true),
    ] {
        let object = card("mine", json!({"spec": {"targetRef": {"apiVersion": version, "kind": kind}}}));
        let verdict = reviewed(&object, None, &knowing(&[]));
        assert!(!matches!(verdict.outcome, Outcome::Deny(_)), "{kind}");
        let is_told = verdict.warnings.iter().any(|warning| warning.reason == Reason::UntrustableKind);
        assert_eq!(is_told, warned, "{version} {kind}: {:?}", verdict.warnings);
    }
}
