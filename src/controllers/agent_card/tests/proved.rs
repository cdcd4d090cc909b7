//! Agents that prove over TLS who they are, by the numbers of the cases of cards (docs/cases.md).

use super::trust::{Trial, authority, signed, tampered};
use super::*;
use crate::config::schema::Platform;
use crate::crypto::SpiffeId;

const OWN: &str = "spiffe://example.org/ns/team1/sa/weather";

/// The trial under that platform file besides, and with these ports of its Service.
fn trial(more: &str, ports: Value) -> Trial {
    let mut trial = Trial::new();
    let text = format!(
        "images: {{envoyProxy: e, proxyInit: i, spiffeHelper: s, clientRegistration: r}}\nspiffe: {{trustDomain: example.org}}\n\
         cards:\n  audit: false\n{more}"
    );
    trial.cluster.facts.platform = Arc::new(Platform::parse(&text, "config.yaml").unwrap());
    let mut service = service(ports);
    service["metadata"]["namespace"] = json!("team1");
    service["metadata"]["resourceVersion"] = json!("90");
    trial.cluster.see(Kind::Service, service);
    trial.question = trial.plan(&Facts::default(), s(100)).1.remove(0).question;
    trial
}

const PROOF: &str = "  proof: {enabled: true}\n";

fn with_tls() -> Value {
    json!([{"name": "http", "port": 8000}, {"name": "agent-tls", "port": 8443, "targetPort": 9443}])
}

/// The same answer by an agent that has proved to be `id`.
fn by(trial: &Trial, document: &Value, id: &str) -> Fetched {
    Fetched { peer: Some(SpiffeId::read(id).unwrap()), ..trial.fetched(document, authority()) }
}

fn field<'v>(trial: &'v Trial, name: &str) -> &'v Value {
    trial.object["status"].get(name).unwrap_or(&Value::Null)
}

fn asked(trial: &Trial) -> (u16, bool) {
    let CardQuestion::Fetch(fetch) = &trial.question else { panic!("a Pod is asked") };
    (fetch.address.port(), fetch.proves)
}

#[test]
fn case_153_who_has_proved_to_be_whom_the_workload_runs_as_is_verified_whatever_its_signature_is() {
    for document in [signed(), tampered(), json!({"name": "no signature at all", "version": "1"})] {
        let mut trial = trial(PROOF, with_tls());
        assert_eq!(asked(&trial), (9443, true));
        let facts = trial.with(Ok(by(&trial, &document, OWN)), s(100), 0);
        trial.after(&facts, s(100));
        assert_eq!(trial.verified(), ("True", "mTLSVerified"));
        assert_eq!(*field(&trial, "attestedAgentSpiffeId"), OWN);
        assert_eq!(*field(&trial, "trustedAccount"), "weather");
        assert_eq!(*field(&trial, "card")["name"].to_string(), document["name"].to_string());
        let (plan, _) = trial.plan(&facts, s(110));
        assert_eq!(plan.ops, [], "at rest nothing is written");
    }
}

#[test]
fn who_has_proved_to_be_somebody_else_loses_at_once_even_with_a_good_signature() {
    for other in ["spiffe://example.org/ns/team1/sa/other", "spiffe://example.org/ns/team2/sa/weather"] {
        let mut trial = trial(PROOF, with_tls());
        let good = trial.with(Ok(by(&trial, &signed(), OWN)), s(100), 0);
        trial.after(&good, s(100));
        let bad = trial.with(Ok(by(&trial, &signed(), other)), s(130), 0);
        trial.after(&bad, s(130));
        assert_eq!(trial.verified(), ("False", "NotBound"));
        assert_eq!(*field(&trial, "trustedAccount"), Value::Null);
        assert_eq!(*field(&trial, "attestedAgentSpiffeId"), other);
    }
}

#[test]
fn case_154_who_proves_nothing_is_not_verified_and_keeps_for_a_while_what_it_had() {
    let error = || AskError {
        fault: AskFault::Refused,
        reason: Reason::FetchFailed,
        message: "the TLS handshake failed".into(),
    };
    let mut fresh = trial(PROOF, with_tls());
    let facts = fresh.with(Err(error()), s(100), 1);
    fresh.after(&facts, s(100));
    assert_eq!(judged(&fresh.object, "Synced"), ("False", "FetchFailed"));
    assert_eq!(*field(&fresh, "attestedAgentSpiffeId"), Value::Null);

    let mut known = trial(PROOF, with_tls());
    let good = known.with(Ok(by(&known, &signed(), OWN)), s(100), 0);
    known.after(&good, s(100));
    for (second, failures) in [(130, 1), (500, 9)] {
        let facts = known.with(Err(error()), s(second), failures);
        known.after(&facts, s(second));
        let kept = failures < 5;
        assert_eq!(known.verified().0, if kept { "True" } else { "False" }, "{second}");
        assert_eq!(field(&known, "attestedAgentSpiffeId").is_null(), !kept);
    }
    assert_eq!(known.verified(), ("False", "FetchFailed"));
}

#[test]
fn case_155_without_the_port_it_is_asked_over_http_and_told_once() {
    let mut trial = trial(PROOF, json!([{"name": "http", "port": 8000}]));
    assert_eq!(asked(&trial), (8000, false));
    let facts = trial.served(&signed(), authority(), s(100));
    let told = trial.after(&facts, s(100));
    assert!(told.contains(&Reason::FallbackToHTTP), "{told:?}");
    assert_eq!(trial.verified(), ("True", "SignatureVerified"), "by its signature");
    assert_eq!(*field(&trial, "attestedAgentSpiffeId"), Value::Null);
    let (plan, _) = trial.plan(&facts, s(110));
    assert_eq!(plan.ops, [], "told once");
}

#[test]
fn case_157_what_was_proved_goes_with_the_setting() {
    let mut trial = trial(PROOF, with_tls());
    let good = trial.with(Ok(by(&trial, &signed(), OWN)), s(100), 0);
    trial.after(&good, s(100));
    let off = Trial::new();
    trial.cluster.facts.platform = off.cluster.facts.platform.clone();
    trial.question = trial.plan(&Facts::default(), s(200)).1.remove(0).question;
    assert_eq!(asked(&trial), (8000, false), "the port for TLS is one like others");
    let facts = trial.served(&tampered(), authority(), s(200));
    trial.after(&facts, s(200));
    assert_eq!(trial.verified().0, "False");
    assert_eq!(*field(&trial, "attestedAgentSpiffeId"), Value::Null);
}
