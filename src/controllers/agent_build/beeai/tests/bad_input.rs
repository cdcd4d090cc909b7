//! What tenants and quotas do to a build: marks that are not ours, names that are taken.

use serde_json::json;

use super::*;

/// The mark of the build that keeps an Agent is harmless in its own namespace, and another build's says nothing to this one.
#[test]
fn a_mark_that_a_tenant_wrote_counts_for_the_very_build_alone() {
    for (uid, untouched) in [("bu", false), ("of-another-build", true), ("", true)] {
        let mut bench = bench(json!({"deployAfterBuild": true}));
        let metadata = json!({"name": NAME, "namespace": TEAM, "uid": "au", "generation": 1, "annotations": {"beeai.dev/created-by-uid": uid}});
        bench.put(Kind::BeeaiAgent, json!({"metadata": metadata, "spec": {"image": "theirs"}}));
        bench.settle();
        succeed(&mut bench, "a");
        let image = bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())]["spec"]["image"].clone();
        assert_eq!(image == "theirs", untouched, "{uid:?}: {image}");
        assert_eq!(says(&bench, "Deployed") == "False/AgentExists", untouched, "{uid:?}");
    }
}

/// A claim of the name, of the build of the other group or of anybody: nothing is made, and it is said; once it is gone the build starts.
#[test]
fn a_foreign_claim_is_a_conflict_and_the_build_waits_for_the_name() {
    let mut bench = bench(json!({}));
    bench.refuses = |op| {
        let is_claim = matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
        is_claim.then_some((Some(Reason::NameConflict), "PersistentVolumeClaim weather-build-beeai-workspace exists"))
    };
    bench.settle();
    assert_eq!((bench.phase().as_str(), says(&bench, "Ready").as_str()), ("Failed", "False/NameConflict"));
    assert!(bench.message().contains("weather-build-beeai-workspace"), "{}", bench.message());
    assert!(bench.names(Kind::PipelineRun).is_empty());
    bench.refuses = |_| None;
    bench.pass(600);
    assert_eq!(bench.phase(), "Building");
}

/// A quota on claims is said in the server's words, and is no loop.
#[test]
fn a_quota_that_refuses_the_claim_is_no_loop() {
    let mut bench = bench(json!({}));
    let claims = |op: &Op| matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
    bench.refuses = |op| {
        let is_claim = matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
        is_claim.then_some((Some(Reason::RunRefused), "exceeded quota: claims"))
    };
    bench.settle();
    assert!(bench.message().contains("exceeded quota: claims"), "{}", bench.message());
    let tried = bench.done.iter().filter(|op| claims(op)).count();
    bench.pass(29);
    assert_eq!(bench.done.iter().filter(|op| claims(op)).count(), tried);
    bench.refuses = |_| None;
    bench.pass(600);
    assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Building", 1));
}

/// An object that no webhook has judged: what is wrong with its variables is said once, at their places, and no value is repeated, since people put
/// the token where its Secret's name belongs.
#[test]
fn the_status_says_of_variables_what_a_review_says() {
    let mut bench = bench(json!({"env": [
        {"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "git", "key": "token"}}},
        {"name": "A", "value": "canary\nx"}, {"name": "IMAGE_REPO_SECRET", "value": "ghp_canary token"},
    ]}));
    bench.settle();
    let (message, status) = (bench.message(), bench.status().to_string());
    assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Failed", 0));
    for place in ["spec.env[1].value", "spec.env[2].value"] {
        assert_eq!(message.matches(place).count(), 1, "{message}");
    }
    assert!(!message.contains("spec.env[0]") && !status.contains("canary"), "{status}");
}
