//! Secrets that an Agent leaves to their own consent are asked for it before each write of what runs, and at no other time.

use serde_json::json;

use super::bench::{Bench, owns};
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::fixtures::s;
use crate::domain::keys;
use crate::store::Kind;

fn consents(to: &str) -> SecretFact {
    SecretFact::Is(SecretSeen { usable_by: Some(to.to_owned()), ..SecretSeen::default() })
}

/// An Agent with two Secrets, of which one is left to consent.
fn agent(bench: &mut Bench) {
    let volume = |name: &str| json!({"name": name, "secret": {"secretName": name}});
    let annotations = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: "theirs,unused"});
    bench.agent(
        "weather",
        json!({"metadata": {"annotations": annotations},
            "spec": {"podTemplateSpec": {"spec": {"volumes": [volume("own"), volume("theirs")]}}}}),
    );
}

#[test]
fn mend_06_without_consent_nothing_is_written_and_with_it_all_is() {
    let mut bench = Bench::new();
    agent(&mut bench);
    assert_eq!(owns(&bench.converge()), []);
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Failed", "False/SecretNotUsable")
    );
    assert!(bench.message("weather", "Ready").contains("Secret theirs does not exist"));
    assert_eq!(bench.reasons().last(), Some(&"SecretNotUsable"));
    for kind in [Kind::Deployment, Kind::Service, Kind::ServiceAccount] {
        assert!(bench.find(kind, "weather").is_none(), "{kind:?}");
    }
    // For builds only; and a question every half minute, without a write.
    bench.secrets.insert("theirs".into(), consents("builds"));
    bench.now += s(31);
    bench.converge();
    assert!(bench.message("weather", "Ready").contains("does not give it to agents"));
    bench.secrets.insert("theirs".into(), consents("builds, agents"));
    let asked = bench.asked;
    bench.converge();
    assert_eq!(bench.asked, asked, "not at every turn");
    bench.now += s(31);
    assert!(owns(&bench.converge()).contains(&Kind::Deployment));
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(bench.condition("weather", "Ready"), "True/DeploymentReady");
}

#[test]
fn mend_06_consent_taken_back_keeps_what_runs_and_stops_what_is_new() {
    let mut bench = Bench::new();
    bench.secrets.insert("theirs".into(), consents("agents"));
    agent(&mut bench);
    bench.converge();
    bench.rolled_out("weather");
    bench.converge();
    let asked = bench.asked;
    bench.secrets.clear();
    for _ in 0..5 {
        bench.now += s(60);
        assert_eq!(bench.converge(), []);
    }
    assert_eq!((bench.asked, bench.condition("weather", "Ready")), (asked, "True/DeploymentReady".to_owned()));
    let before = bench.object(Kind::Deployment, "weather");
    bench.edit(Kind::Agent, "weather", json!({"spec": {"imageSource": {"image": "ghcr.io/mallory/shell:v1"}}}));
    assert_eq!(owns(&bench.converge()), []);
    assert_eq!(bench.object(Kind::Deployment, "weather"), before);
    assert_eq!(bench.condition("weather", "Ready"), "False/SecretNotUsable");
    // Another process, which remembers nothing, writes nothing either.
    bench.cluster.forget();
    bench.cluster.memory.surveyed = true;
    assert_eq!(bench.converge(), []);
    // Taken off the list, by somebody whom the policy has asked for his right, it goes on at once.
    bench.edit(
        Kind::Agent,
        "weather",
        json!({"metadata": {"annotations": {keys::ANNOTATION_SECRETS_BY_CONSENT: "unused"}}}),
    );
    assert_eq!(owns(&bench.converge()), [Kind::Deployment]);
    assert_eq!(bench.container("weather", 0)["image"], "ghcr.io/mallory/shell:v1");
}
