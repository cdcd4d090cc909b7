//! Agents that prove over TLS who they are, by the numbers of the cases of cards (docs/cases.md).

use super::trust::{Trial, authority, signed, tampered};
use super::*;
use crate::config::schema::Platform;
use crate::crypto::{SpiffeId, TrustBundle};

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

/// An authority that no bundle has yet is waited for where signatures decide, and nowhere else.
#[test]
fn who_has_proved_to_be_somebody_else_is_not_waited_for() {
    let mut trial = trial(PROOF, with_tls());
    let good = trial.with(Ok(by(&trial, &signed(), OWN)), s(100), 0);
    trial.after(&good, s(100));
    let peer = Some(SpiffeId::read("spiffe://example.org/ns/team1/sa/other").unwrap());
    let bad = Fetched { peer, ..trial.fetched(&signed(), TrustBundle::default()) };
    let bad = trial.with(Ok(bad), s(130), 0);
    trial.after(&bad, s(130));
    assert_eq!((trial.verified(), field(&trial, "trustedAccount")), (("False", "NotBound"), &Value::Null));
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

/// A leader that has no SVID of its own asks nobody who is to prove who it is: that is no silence of an agent, however long it lasts.
#[test]
fn that_we_cannot_say_who_we_are_takes_trust_from_nobody() {
    let ours = || AskError {
        fault: AskFault::NotAsked,
        reason: Reason::FetchFailed,
        message: "agents cannot be asked over TLS, because Drawbridge has no identity of its own".into(),
    };
    let gone = || refused(Reason::AgentUnreachable, "gone");
    let mut trial = trial(PROOF, with_tls());
    let good = trial.with(Ok(by(&trial, &signed(), OWN)), s(100), 0);
    trial.after(&good, s(100));
    // The agent is silent for a time before, and for one after it.
    for (second, error, failures, kept) in [
        (200, gone(), 1, true),
        (300, ours(), 1, true),
        (1_000, ours(), 9, true),
        (3_800, ours(), 9, true),
        (3_860, gone(), 10, true),
        (4_100, gone(), 14, true),
        (4_161, gone(), 15, false),
    ] {
        let facts = trial.with(Err(error), s(second), failures);
        trial.after(&facts, s(second));
        assert_eq!(trial.verified().0 == "True", kept, "{second}: {}", trial.object);
        assert_eq!(judged(&trial.object, "Synced"), ("False", "FetchFailed"), "{second}: it is said");
        assert_eq!(*field(&trial, "trustedAccount") == "weather", kept, "{second}");
    }
}

/// A proof that nobody has looked at for an hour is none, whoever is to blame; an agent that could be asked in between begins anew.
#[test]
fn trust_outlives_an_identity_of_our_own_by_an_hour_at_most() {
    let ours = || AskError { fault: AskFault::NotAsked, reason: Reason::FetchFailed, message: "no identity".into() };
    let mut trial = trial(PROOF, with_tls());
    for (second, is_answer, kept) in [
        (100, true, true),
        (200, false, true),
        (3_700, false, true),
        (3_760, true, true),
        (3_820, false, true),
        (7_419, false, true),
        (7_420, false, false),
    ] {
        let answer = if is_answer { Ok(by(&trial, &signed(), OWN)) } else { Err(ours()) };
        let facts = trial.with(answer, s(second), 0);
        trial.after(&facts, s(second));
        assert_eq!(trial.verified().0 == "True", kept, "{second}: {}", trial.object);
    }
    assert_eq!(trial.verified(), ("False", "FetchFailed"));
}

/// Of several Pods none has answered since one that could be asked did; then what it said counts as long as we cannot ask.
#[test]
fn what_a_pod_answered_counts_while_we_cannot_ask_the_others() {
    let mut trial = trial(PROOF, with_tls());
    let mut other = pod("w-1-b", "w-1", "10.244.0.6", json!({}));
    other["metadata"]["namespace"] = json!("team1");
    trial.cluster.see(Kind::Pod, other);
    let CardQuestion::Fetch(first) = trial.question.clone() else { panic!("a Pod is asked") };
    let second = super::super::Fetch {
        pod: "pod-w-1-b".into(),
        address: std::net::SocketAddr::new("10.244.0.6".parse().unwrap(), first.address.port()),
        ..first.clone()
    };
    let answered = Fact { value: Ok(by(&trial, &signed(), OWN)), asked: s(100), at: s(100), failures: 0 };
    for at in (130..2_000).step_by(60) {
        let (fault, reason, message) = (AskFault::NotAsked, Reason::FetchFailed, "no identity".into());
        let not_asked = Fact { value: Err(AskError { fault, reason, message }), asked: s(at), at: s(at), failures: 0 };
        let facts = Facts::default()
            .with(CardQuestion::Fetch(first.clone()), answered.clone())
            .with(CardQuestion::Fetch(second.clone()), not_asked);
        trial.after(&facts, s(at));
        assert_eq!(trial.verified(), ("True", "mTLSVerified"), "{at}: {}", trial.object);
    }
}

/// The last good card of an agent that proves who it is stays for as long as its trust, though nobody signed it and signatures are asked for.
#[test]
fn what_somebody_showed_who_had_proved_who_he_is_stays_as_long_as_that_counts() {
    let file = "  proof: {enabled: true}\n  trustBundle:\n    configMap:\n      name: spire-bundle\n";
    let mut trial = trial(file, with_tls());
    let document = json!({"name": "no signature at all", "version": "1"});
    let facts = trial.with(Ok(by(&trial, &document, OWN)), s(100), 0);
    trial.after(&facts, s(100));
    for (second, failures) in [(130, 1), (500, 9)] {
        let facts = trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(second), failures);
        trial.after(&facts, s(second));
        let is_trusted = failures < 5;
        assert_eq!(trial.verified().0 == "True", is_trusted, "{second}");
        assert_eq!(field(&trial, "card")["name"] == document["name"], is_trusted, "{second}: {}", trial.object);
        assert_eq!(!field(&trial, "cardId").is_null(), is_trusted, "{second}");
        assert_eq!(trial.plan(&facts, s(second)).0.ops, [], "{second}: nothing twice");
    }
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
