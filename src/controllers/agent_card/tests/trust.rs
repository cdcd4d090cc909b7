//! Trust in the status: it comes with a good signature, goes with a bad one, comes back with the second good answer, and ends in silence. The card is the known
//! answer of the specification, signed by spiffe://example.org/ns/team1/sa/weather.

use std::sync::atomic::AtomicI64;

use super::*;
use crate::config::gates::Gates;
use crate::config::inputs::NamespaceInputs;
use crate::config::view::namespace_view;
use crate::controllers::agent_card::judge::Under;
use crate::controllers::scaffold::signing::Stands;
use crate::crypto::TrustBundle;
use crate::store::{Observed, Over};

/// 15 January 2027.
const NOW: i64 = 1_800_000_000;

pub(super) fn kat(member: &str) -> String {
    let kat: Value = serde_json::from_str(include_str!("../../../crypto/tests/vectors/kat.json")).unwrap();
    kat[member].as_str().unwrap().to_owned()
}

pub(super) fn signed() -> Value {
    let mut card: Value = serde_json::from_str(&kat("card")).unwrap();
    card["signatures"] = json!([{"protected": kat("protected"), "signature": kat("signature")}]);
    card["unsigned"] = json!("nobody vouches for this");
    card
}

pub(super) fn tampered() -> Value {
    let mut card = signed();
    card["description"] = json!("another one");
    card
}

pub(super) fn authority() -> TrustBundle {
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", kat("ca"));
    TrustBundle::read(pem.as_bytes(), None).unwrap()
}

/// The snapshot knows the namespace that the signer names.
pub(super) fn serve(cluster: &mut Cluster) {
    let view = namespace_view(&cluster.facts.platform, "team1", &NamespaceInputs::default(), None);
    let mut snapshot = (*cluster.facts.snapshot).clone();
    snapshot.view.namespaces.insert("team1".into(), Arc::new(view));
    cluster.facts.snapshot = Arc::new(snapshot);
}

/// The workload, its Pod and its card, in the namespace that the signer names.
pub(super) struct Trial {
    pub(super) cluster: Cluster,
    pub(super) object: Value,
    pub(super) question: CardQuestion,
}

impl Trial {
    pub(super) fn new() -> Self {
        let mut cluster =
            Cluster::with("spiffe:\n  trustDomain: example.org\ncards:\n  audit: false\n", Gates::default());
        for kind in [Kind::AgentCard, Kind::Deployment, Kind::Service, Kind::Pod, Kind::ReplicaSet] {
            cluster.store.set_reach(kind, Reach::Listed);
        }
        serve(&mut cluster);
        cluster.see(Kind::Namespace, json!({"metadata": {"name": "team1", "uid": "team1"}}));
        let there = |mut object: Value| {
            object["metadata"]["namespace"] = json!("team1");
            object
        };
        let account = json!({"spec": {"template": {"spec": {"serviceAccountName": "weather"}}}});
        cluster.see(Kind::Deployment, there(deployment(account)));
        cluster.see(Kind::Service, there(service(json!([{"name": "http", "port": 8000}]))));
        cluster.see(Kind::ReplicaSet, there(replica_set("w-1")));
        cluster.see(Kind::Pod, there(pod("w-1-a", "w-1", "10.244.0.5", json!({}))));
        let object = there(card(json!({"spec": {"identityBinding": {}}})));
        cluster.see(Kind::AgentCard, object.clone());
        let mut trial = Self { cluster, object, question: CardQuestion::Fetch(none()) };
        trial.question = trial.plan(&Facts::default(), s(100)).1.remove(0).question;
        trial
    }

    pub(super) fn plan(&self, facts: &Facts<CardQuestion>, now: Duration) -> Asked {
        let key = Key::new("team1", CARD);
        self.cluster.asked_at(ROW, &key, facts, now)
    }

    pub(super) fn with(&self, value: Result<Fetched, AskError>, asked: Duration, failures: u32) -> Facts<CardQuestion> {
        Facts::default().with(self.question.clone(), Fact { value, asked, at: asked, failures })
    }

    /// That document, judged by these authorities.
    pub(super) fn fetched(&self, document: &Value, bundle: TrustBundle) -> Fetched {
        let bundles = Arc::new(Bundles::loaded(Arc::new(bundle), Arc::new(AtomicI64::new(NOW))));
        let (policy, bytes) = (self.cluster.facts.platform.cards().policy(), document.to_string());
        let verdict = Arc::new(Under { bundles: &bundles, policy: &policy }.verdict(bytes.as_bytes(), NOW));
        let CardQuestion::Fetch(fetch) = &self.question else { panic!("a Pod is asked") };
        let show = |bytes: &[u8]| Arc::new(publish(bytes, &fetch.authority).unwrap());
        let good = verdict.verified().into_iter().flat_map(|verified| verified.good());
        let covered = good.map(|good| (good.covered.clone(), show(&good.covered))).collect();
        Fetched { served: show(bytes.as_bytes()), covered, verdict, bundles, read: NOW, peer: None }
    }

    /// The Pod serves that at that second, judged by these authorities.
    pub(super) fn served(&self, document: &Value, bundle: TrustBundle, asked: Duration) -> Facts<CardQuestion> {
        self.with(Ok(self.fetched(document, bundle)), asked, 0)
    }

    /// What is told once the plan is carried out.
    pub(super) fn after(&mut self, facts: &Facts<CardQuestion>, now: Duration) -> Vec<Reason> {
        let (plan, _) = self.plan(facts, now);
        let (told, object) = carried_out(&self.object, &plan);
        self.cluster.note::<Cards>(NAME, &Key::new("team1", CARD), plan.note);
        self.cluster.see(Kind::AgentCard, object.clone());
        self.object = object;
        told
    }

    pub(super) fn verified(&self) -> (&str, &str) {
        judged(&self.object, "Verified")
    }
}

fn none() -> super::super::Fetch {
    super::super::Fetch {
        namespace: "".into(),
        pod: "".into(),
        address: ([10, 0, 0, 1], 1).into(),
        authority: "".into(),
        injected: false,
        proves: false,
    }
}

pub(super) const TRUSTED: (&str, &str) = ("True", "SignatureVerified");

#[test]
fn a_good_signature_of_the_workloads_identity_is_verified_and_only_what_it_covers_is_shown() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    let told = trial.after(&facts, s(100));
    assert_eq!((trial.verified(), judged(&trial.object, "Bound")), (TRUSTED, ("True", "Bound")), "{}", trial.object);
    let status = &trial.object["status"];
    assert_eq!((&status["validSignature"], &status["trustedAccount"]), (&json!(true), &json!("weather")));
    assert_eq!(status["signatureSpiffeId"], "spiffe://example.org/ns/team1/sa/weather");
    assert_eq!((&status["bindingStatus"]["bound"], &status["signatureProfile"]), (&json!(true), &json!("kagenti-v2")));
    assert!(status["card"].get("unsigned").is_none() && status["card"].get("name").is_some());
    assert!(told.contains(&Reason::SignatureValid) && told.contains(&Reason::Bound), "{told:?}");
    assert_eq!(trial.plan(&facts, s(100)).0.ops, [], "nothing twice");
}

/// Case 156 as the rulings leave it: whoever else signed, or is asked for by nobody, `strict` loosens nothing.
#[test]
fn case_156_a_card_that_somebody_else_signed_is_never_verified_whatever_strict_says() {
    for binding in [json!({"strict": false}), json!({"strict": true}), json!({}), Value::Null] {
        let mut trial = Trial::new();
        trial.object["spec"]["identityBinding"] = binding.clone();
        trial.cluster.see(Kind::AgentCard, trial.object.clone());
        let mut other = deployment(json!({"spec": {"template": {"spec": {"serviceAccountName": "other"}}}}));
        other["metadata"]["namespace"] = json!("team1");
        trial.cluster.see(Kind::Deployment, other);
        let facts = trial.served(&signed(), authority(), s(100));
        trial.after(&facts, s(100));
        assert_eq!(trial.verified(), ("False", "NotBound"), "{binding}");
        let status = &trial.object["status"];
        assert_eq!((&status["validSignature"], status.get("trustedAccount")), (&json!(true), None), "{binding}");
    }
}

/// Case 64 and B9: what is not signed is not shown, and what was lost comes back with the second good answer.
#[test]
fn case_064_a_bad_signature_takes_the_trust_and_a_second_good_answer_gives_it_back() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let shown = trial.object["status"]["card"].clone();
    let facts = trial.served(&tampered(), authority(), s(200));
    let told = trial.after(&facts, s(200));
    assert_eq!(
        (trial.verified(), judged(&trial.object, "Synced")),
        (("False", "SignatureInvalid"), ("False", "SignatureInvalid"))
    );
    assert_eq!((&trial.object["status"]["card"], trial.object["status"].get("trustedAccount")), (&shown, None));
    assert!(told.contains(&Reason::SignatureInvalid), "{told:?}");
    let facts = trial.served(&signed(), authority(), s(300));
    trial.after(&facts, s(300));
    assert_eq!(trial.verified(), ("False", "Settling"));
    assert_eq!(trial.object["status"].get("trustedAccount"), None);
    // The same answer, looked at again, is no second one.
    assert_eq!(trial.after(&facts, s(301)), []);
    assert_eq!(trial.verified(), ("False", "Settling"));
    let facts = trial.served(&signed(), authority(), s(400));
    trial.after(&facts, s(400));
    assert_eq!((trial.verified(), &trial.object["status"]["trustedAccount"]), (TRUSTED, &json!("weather")));
    assert_eq!(trial.plan(&facts, s(400)).0.ops, []);
}

/// A12: SPIRE publishes an authority later than it signs by it.
#[test]
fn an_authority_that_is_not_known_yet_costs_a_trusted_agent_nothing_for_five_minutes() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    for now in [200, 300, 499] {
        let facts = trial.served(&signed(), TrustBundle::default(), s(now));
        assert_eq!(trial.after(&facts, s(now)), [], "{now}");
        assert_eq!(trial.verified(), TRUSTED, "{now}");
    }
    let facts = trial.served(&signed(), TrustBundle::default(), s(500));
    trial.after(&facts, s(500));
    assert_eq!(trial.verified(), ("False", "SignatureInvalid"));
    // Nobody who was not trusted is waited for.
    let mut other = Trial::new();
    let facts = other.served(&signed(), TrustBundle::default(), s(100));
    other.after(&facts, s(100));
    assert_eq!(other.verified(), ("False", "SignatureInvalid"));
}

/// Case 63, S-07: five attempts and ten periods without an answer.
#[test]
fn case_063_silence_ends_trust() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let silent =
        |trial: &Trial, now, failures| trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(now), failures);
    for (now, failures, trusted) in [(200, 1, true), (300, 9, true), (499, 9, true), (500, 4, true), (500, 5, false)] {
        let facts = silent(&trial, now, failures);
        trial.after(&facts, s(now));
        assert_eq!(trial.verified() == TRUSTED, trusted, "{now} {failures}: {:?}", trial.verified());
    }
    assert_eq!((trial.verified(), trial.object["status"].get("trustedAccount")), (("False", "FetchFailed"), None));
    let facts = silent(&trial, 600, 6);
    assert_eq!(trial.plan(&facts, s(600)).0.ops, []);
}

/// S-07 of an agent that nobody can ask any more: whatever is in the way, what was believed ends as in silence, and not before.
#[test]
fn trust_ends_when_nobody_can_be_asked_any_more() {
    let gone = |kind, name: &str| {
        (
            kind,
            json!({"metadata": {"name": name, "namespace": "team1", "uid": "any", "resourceVersion": "99"}, "gone": true}),
        )
    };
    let no_label = json!({"metadata": {"labels": {"kagenti.io/type": null}}});
    let not_ready = json!({"status": {"conditions": [{"type": "Available", "status": "False"}]}});
    let no_protocol = json!({"metadata": {"labels": {"protocol.kagenti.io/a2a": null}}});
    let account = json!({"spec": {"template": {"spec": {"serviceAccountName": "weather"}}}});
    let changed = |more: Value| {
        let mut object = deployment(account.clone());
        json_patch::merge(&mut object, &more);
        object["metadata"]["namespace"] = json!("team1");
        (Kind::Deployment, object)
    };
    for (what, (kind, object), synced) in [
        ("no Service", gone(Kind::Service, "w"), "ServiceNotFound"),
        ("no workload", gone(Kind::Deployment, "w"), "WorkloadNotFound"),
        ("no Pod", gone(Kind::Pod, "w-1-a"), "FetchFailed"),
        ("no agent", changed(no_label), "NotAgentWorkload"),
        ("not ready", changed(not_ready), "WorkloadNotReady"),
        ("no protocol", changed(no_protocol), "NoProtocol"),
    ] {
        let mut trial = Trial::new();
        let facts = trial.served(&signed(), authority(), s(100));
        trial.after(&facts, s(100));
        assert_eq!(trial.verified(), TRUSTED);
        if object["gone"] == true {
            trial.cluster.lose(kind, object);
        } else {
            trial.cluster.see(kind, object);
        }
        let none = Facts::default();
        trial.after(&none, s(200));
        assert_eq!((judged(&trial.object, "Synced").1, trial.verified()), (synced, TRUSTED), "{what}");
        let (plan, asks) = trial.plan(&none, s(300));
        assert_eq!(
            (plan.ops, plan.again, asks),
            (vec![], Some(s(200)), vec![]),
            "{what}: looked at again when it ends"
        );
        trial.after(&none, s(499));
        assert_eq!(trial.verified(), TRUSTED, "{what}");
        let (plan, _) = trial.plan(&none, s(499));
        assert_eq!(plan.ops, [], "{what}");
        trial.after(&none, s(500));
        let account = trial.object["status"].get("trustedAccount");
        assert_eq!((trial.verified(), account), (("False", "FetchFailed"), None), "{what}");
        assert_eq!(trial.plan(&none, s(900)).0.ops, [], "{what}: nothing twice");
    }
}

/// The clock of silence goes on when an agent that cannot be asked can be asked again and does not answer.
#[test]
fn an_agent_that_comes_and_goes_without_an_answer_does_not_keep_its_trust() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let service = || {
        let mut service = service(json!([{"name": "http", "port": 8000}]));
        service["metadata"]["namespace"] = json!("team1");
        service
    };
    for round in 0..3 {
        trial.cluster.lose(Kind::Service, service());
        trial.after(&Facts::default(), s(200 + round * 100));
        trial.cluster.see(Kind::Service, service());
        let facts = trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(250 + round * 100), 1);
        trial.after(&facts, s(250 + round * 100));
        assert_eq!(trial.verified(), TRUSTED, "{round}");
    }
    trial.cluster.lose(Kind::Service, service());
    trial.after(&Facts::default(), s(500));
    assert_eq!(trial.verified(), ("False", "FetchFailed"));
}

/// S-07 while no bundle can be read: what was concluded before stays, and ends in silence like everything else.
#[test]
fn silence_ends_what_stays_while_no_bundle_can_be_read() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let unread = Fetched {
        verdict: Arc::new(Verdict::Unknown),
        bundles: Arc::new(Bundles::never_loaded()),
        ..trial.fetched(&signed(), authority())
    };
    let facts = trial.with(Ok(unread), s(200), 0);
    trial.after(&facts, s(200));
    let unknown = ("Unknown", "TrustBundleUnavailable");
    assert_eq!(trial.verified(), unknown);
    for (now, verified) in [(300, unknown), (599, unknown), (600, ("False", "FetchFailed"))] {
        let facts = trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(now), 9);
        trial.after(&facts, s(now));
        assert_eq!(trial.verified(), verified, "{now}");
        assert_eq!(trial.plan(&facts, s(now)).0.ops, [], "{now}: nothing twice");
    }
}

/// The time for which an authority may be missing goes on while the agent cannot be asked.
#[test]
fn an_agent_that_comes_and_goes_does_not_stretch_the_time_for_its_authority() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let mut service = service(json!([{"name": "http", "port": 8000}]));
    service["metadata"]["namespace"] = json!("team1");
    let stranger = |trial: &Trial, now| trial.served(&signed(), TrustBundle::default(), s(now));
    let facts = stranger(&trial, 200);
    trial.after(&facts, s(200));
    trial.cluster.lose(Kind::Service, service.clone());
    trial.after(&Facts::default(), s(300));
    service["metadata"]["resourceVersion"] = json!("61");
    trial.cluster.see(Kind::Service, service);
    let facts = stranger(&trial, 350);
    trial.after(&facts, s(350));
    assert_eq!(trial.verified(), TRUSTED);
    let facts = stranger(&trial, 500);
    trial.after(&facts, s(500));
    assert_eq!(trial.verified(), ("False", "SignatureInvalid"));
}

/// Everything that is wrong but a missing authority ends trust at once, also where an authority is missing for a Pod that stands before it.
#[test]
fn a_pod_whose_card_is_wrong_takes_the_trust_at_once_whatever_another_waits_for() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let mut other = pod("w-1-b", "w-1", "10.244.0.6", json!({}));
    other["metadata"]["namespace"] = json!("team1");
    trial.cluster.see(Kind::Pod, other);
    let CardQuestion::Fetch(first) = trial.question.clone() else { panic!("a Pod is asked") };
    let address = "10.244.0.6:8000".parse().unwrap();
    let second = CardQuestion::Fetch(super::super::Fetch { pod: "pod-w-1-b".into(), address, ..first });
    let fact = |value: Fetched| Fact { value: Ok(value), asked: s(200), at: s(200), failures: 0 };
    let wrong = fact(trial.fetched(&tampered(), authority()));
    let facts = trial.served(&signed(), TrustBundle::default(), s(200)).with(second, wrong);
    trial.after(&facts, s(200));
    assert_eq!(trial.verified(), ("False", "SignatureInvalid"));
    assert!(trial.object["status"]["conditions"].to_string().contains("the Pod at 10.244.0.6: "), "{}", trial.object);
}

/// The status says what holds: of a card that was changed, or whose workload was made anew, nothing counts until the agent has answered again.
#[test]
fn what_counts_for_nobody_any_more_is_not_called_verified() {
    let there = |more: Value| {
        let mut object = deployment(json!({"metadata": {"resourceVersion": "91"},
            "spec": {"template": {"spec": {"serviceAccountName": "weather"}}}}));
        json_patch::merge(&mut object, &more);
        object["metadata"]["namespace"] = json!("team1");
        object
    };
    let unready = json!({"status": {"conditions": [{"type": "Available", "status": "False"}]}});
    for (what, generation, seen, words) in [
        ("not ready", 2, there(unready.clone()), Some("this AgentCard was changed after it was verified")),
        ("silent", 2, there(json!({})), Some("this AgentCard was changed after it was verified")),
        (
            "made anew",
            1,
            there(json!({"metadata": {"uid": "another"}})),
            Some("the workload was made anew after it was verified"),
        ),
        ("the same, not ready", 1, there(unready), None),
        ("the same, silent", 1, there(json!({})), None),
    ] {
        let mut trial = Trial::new();
        let facts = trial.served(&signed(), authority(), s(100));
        trial.after(&facts, s(100));
        trial.object["metadata"]["generation"] = json!(generation);
        trial.object["metadata"]["resourceVersion"] = json!("60");
        trial.cluster.see(Kind::AgentCard, trial.object.clone());
        trial.cluster.see(Kind::Deployment, seen);
        let facts = trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(200), 1);
        trial.after(&facts, s(200));
        let Some(words) = words else {
            assert_eq!(trial.verified(), TRUSTED, "{what}");
            continue;
        };
        assert_eq!((trial.verified().0, trial.object["status"].get("trustedAccount")), ("False", None), "{what}");
        assert!(trial.object["status"]["conditions"].to_string().contains(words), "{what}: {}", trial.object);
        assert_eq!(trial.plan(&facts, s(210)).0.ops, [], "{what}: nothing twice");
        if what != "made anew" {
            trial.cluster.see(Kind::Deployment, there(json!({"metadata": {"resourceVersion": "92"}})));
            let facts = trial.served(&signed(), authority(), s(300));
            trial.after(&facts, s(300));
            assert_eq!(trial.verified(), TRUSTED, "{what}: one good answer is enough, for nothing was wrong");
        }
    }
}

/// S-07: five attempts are those at the agent. Each Pod that takes the place of one that did not answer is asked for the first time.
#[test]
fn pods_that_are_replaced_before_they_answer_keep_no_trust() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let there = |name: &str, address: &str| {
        let mut object = pod(name, "w-1", address, json!({}));
        object["metadata"]["namespace"] = json!("team1");
        object
    };
    let mut before = there("w-1-a", "10.244.0.5");
    for (now, trusted) in [(200, true), (260, true), (320, true), (380, true), (500, false)] {
        trial.cluster.lose(Kind::Pod, before);
        before = there(&format!("w-1-{now}"), "10.244.0.6");
        trial.cluster.see(Kind::Pod, before.clone());
        let question = trial.plan(&Facts::default(), s(now)).1.remove(0).question;
        assert_ne!(question, trial.question, "{now}: another Pod");
        let value = Err(refused(Reason::AgentUnreachable, "gone"));
        let facts = Facts::default().with(question, Fact { value, asked: s(now), at: s(now), failures: 1 });
        trial.after(&facts, s(now));
        assert_eq!(trial.verified() == TRUSTED, trusted, "{now}: {:?}", trial.verified());
    }
    assert_eq!((trial.verified(), trial.object["status"].get("trustedAccount")), (("False", "FetchFailed"), None));
}

/// A9: how many Pods there are, which is a tenant's to say, stretches no limit. What one of them said long ago is no answer to those that were asked since;
/// one that answers meanwhile is.
#[test]
fn many_pods_keep_the_trust_of_a_silent_agent_no_longer() {
    for (pods, answers, ends) in [(12, None, 730), (12, Some(400), 1_030), (100, None, 730)] {
        let mut trial = Trial::new();
        let mut facts = trial.served(&signed(), authority(), s(100));
        let good = trial.fetched(&signed(), authority());
        let CardQuestion::Fetch(first) = trial.question.clone() else { panic!("a Pod is asked") };
        for number in 1..pods {
            let (name, address) = (format!("w-1-b{number}"), format!("10.244.1.{number}"));
            let mut object = pod(&name, "w-1", &address, json!({}));
            object["metadata"]["namespace"] = json!("team1");
            trial.cluster.see(Kind::Pod, object);
            let address = format!("{address}:8000").parse().unwrap();
            let fetch = super::super::Fetch { pod: format!("pod-{name}").into(), address, ..first.clone() };
            let value = Ok(good.clone());
            facts = facts.with(CardQuestion::Fetch(fetch), Fact { value, asked: s(100), at: s(100), failures: 0 });
        }
        trial.after(&facts, s(100));
        for now in (130..=ends).step_by(30) {
            let question = trial.plan(&facts, s(now)).1.remove(0).question;
            let answered = answers == Some(now);
            let value = match answered {
                true => Ok(good.clone()),
                false => Err(refused(Reason::AgentUnreachable, "gone")),
            };
            let fact = Fact { value, asked: s(now), at: s(now), failures: u32::from(!answered) };
            facts = facts.with(question, fact);
            trial.after(&facts, s(now));
            assert_eq!(trial.verified() == TRUSTED, now < ends, "{pods}, {now}: {:?}", trial.verified());
        }
        assert_eq!((trial.verified(), judged(&trial.object, "Synced").1), (("False", "FetchFailed"), "FetchFailed"));
        assert_eq!(trial.plan(&facts, s(ends)).0.ops, [], "{pods}: nothing twice");
    }
}

/// A card that another one of the same workload replaces counts for nothing from then on.
#[test]
fn the_trust_of_a_card_ends_with_its_counting() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    let older = json!({"metadata": {"name": "a", "uid": "older", "namespace": "team1", "creationTimestamp": "2020-01-01T00:00:00Z"}});
    let mut other = card(older);
    other["metadata"]["resourceVersion"] = json!("7");
    trial.object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    trial.cluster.see(Kind::AgentCard, trial.object.clone());
    trial.cluster.see(Kind::AgentCard, other);
    trial.after(&facts, s(101));
    assert_eq!((trial.verified(), trial.object["status"].get("trustedAccount")), (("False", "DuplicateCard"), None));
    assert_eq!(trial.plan(&facts, s(102)).0.ops, []);
}

/// One card more than a namespace may have proves nothing, is told so once, and counts again when there is room.
#[test]
fn mend_02_a_card_for_which_there_is_no_room_counts_for_nothing() {
    let mut trial = Trial::new();
    let facts = trial.served(&signed(), authority(), s(100));
    trial.after(&facts, s(100));
    assert_eq!(trial.verified(), TRUSTED);
    let see = |trial: &mut Trial, room: bool| {
        let mut change = change(Kind::AgentCard, trial.object.clone());
        if !room {
            let seen = change.now.take().unwrap();
            let what = seen.what.slim(Over::Count).unwrap();
            change.now = Some(Arc::new(Observed { uid: seen.uid.clone(), version: seen.version, what }));
        }
        trial.cluster.store.apply(&change, s(101));
    };
    trial.object["metadata"]["resourceVersion"] = json!("60");
    see(&mut trial, false);
    trial.after(&facts, s(101));
    assert_eq!((trial.verified(), trial.object["status"].get("trustedAccount")), (("False", "WorkloadError"), None));
    let (_, message) = (judged(&trial.object, "Synced"), trial.object["status"]["conditions"].to_string());
    assert!(message.contains("one too many") && message.contains("Delete AgentCards"), "{message}");
    trial.object["metadata"]["resourceVersion"] = json!("70");
    see(&mut trial, false);
    assert_eq!(trial.plan(&facts, s(102)), (Plan::nothing(), Vec::new()), "nobody is asked, nothing is written again");
    trial.object["metadata"]["resourceVersion"] = json!("80");
    see(&mut trial, true);
    assert!(!trial.plan(&facts, s(103)).1.is_empty(), "it is asked again");
}

/// A8: more than half of the trusted agents at once, ten of them in two namespaces, for an hour; those that have no Ready Pod do not count.
#[test]
fn so_many_that_fail_at_once_are_rather_our_own_fault_for_an_hour() {
    const TOLD: &str = "FetchSuspended";
    let others = |trial: &mut Trial, failing: usize, trusted: usize, reason: &str| {
        trial.cluster.see(Kind::Namespace, json!({"metadata": {"name": "team2", "uid": "team2"}}));
        for number in 0..trusted {
            let reachable = if number < failing { "False" } else { "True" };
            trial.cluster.see(
                Kind::AgentCard,
                json!({"metadata": {"name": format!("other-{number}"), "namespace": "team2", "uid": format!("other-{number}"),
                    "resourceVersion": "5", "generation": 1},
                    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("o-{number}")}},
                    "status": {"conditions": [{"type": "Verified", "status": "True", "reason": "SignatureVerified"},
                        {"type": "Reachable", "status": reachable, "reason": reason}]}}),
            );
        }
    };
    for (what, failing, trusted, reason, suspended) in [
        ("ten of ten", 9, 9, "AgentUnreachable", true),
        ("nine of nine", 8, 8, "AgentUnreachable", false),
        ("half of twenty", 9, 19, "AgentUnreachable", false),
        ("no Ready Pod", 9, 9, "NoReadyPod", false),
    ] {
        let mut trial = Trial::new();
        others(&mut trial, failing, trusted, reason);
        let facts = trial.served(&signed(), authority(), s(100));
        trial.after(&facts, s(100));
        let silent = |trial: &Trial, now| trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(now), 9);
        let facts = silent(&trial, 200);
        trial.after(&facts, s(200));
        let facts = silent(&trial, 500);
        let told = trial.after(&facts, s(500));
        assert_eq!(trial.verified() == TRUSTED, suspended, "{what}: {:?}", trial.verified());
        assert_eq!(judged(&trial.object, TOLD) == ("True", TOLD), suspended, "{what}");
        assert_eq!(told.contains(&Reason::FetchSuspended), suspended, "{what}");
        if !suspended {
            continue;
        }
        let facts = silent(&trial, 3_799);
        assert_eq!(trial.after(&facts, s(3_799)), [], "told once");
        assert_eq!(trial.verified(), TRUSTED, "{what}");
        let facts = silent(&trial, 3_800);
        trial.after(&facts, s(3_800));
        assert_eq!((trial.verified(), judged(&trial.object, TOLD)), (("False", "FetchFailed"), ("", "")), "{what}");
    }
}

/// S-08: what was shown while nobody's word was asked for goes when it is.
#[test]
fn what_nobody_signed_goes_from_the_status_when_audit_mode_ends() {
    let audited = "spiffe:\n  trustDomain: example.org\ncards:\n  audit: true\n  trustBundle:\n    configMap:\n      name: spire-bundle\n";
    let enforced = &audited.replace("audit: true", "audit: false");
    for (what, document, stays) in [("signed", signed(), true), ("not signed", tampered(), false)] {
        let mut trial = Trial::new();
        trial.cluster.configure(audited);
        serve(&mut trial.cluster);
        let facts = trial.served(&document, authority(), s(100));
        trial.after(&facts, s(100));
        assert!(trial.object["status"].get("card").is_some(), "{what}");
        assert_eq!(trial.object["status"].get("cardCovered").is_some(), stays, "{what}");
        trial.cluster.configure(enforced);
        serve(&mut trial.cluster);
        let silent = trial.with(Err(refused(Reason::AgentUnreachable, "gone")), s(200), 1);
        for facts in [silent, trial.served(&tampered(), authority(), s(300))] {
            trial.after(&facts, s(300));
            let shown: Vec<_> = ["card", "cardId", "skills", "lastSyncTime", "servedUrl", "endpoints"]
                .into_iter()
                .filter(|member| trial.object["status"].get(member).is_some())
                .collect();
            assert_eq!(shown.contains(&"card"), stays, "{what}: {}", trial.object);
            assert!(stays || shown.is_empty(), "{what}: {shown:?}");
            assert_eq!(trial.plan(&facts, s(300)).0.ops, [], "{what}");
        }
        let facts = trial.served(&signed(), authority(), s(400));
        trial.after(&facts, s(400));
        assert!(trial.object["status"].get("card").is_some(), "{what}: shown again");
    }
}

/// What the restart for a signature goes by: the end of whoever signed, that nobody vouches any more, and nothing of a card that is simply wrong.
#[test]
fn how_long_a_signature_counts_is_noted() {
    let trial = Trial::new();
    let noted = |document: &Value, bundle: TrustBundle| {
        let facts = trial.served(document, bundle, s(100));
        trial.plan(&facts, s(130)).0.note.signing
    };
    let signing = noted(&signed(), authority()).unwrap();
    let Stands::Until { from, leaf, authority: end } = signing.stands else { panic!("{signing:?}") };
    assert!(from < NOW && NOW < leaf.min(end) && !signing.bundle.is_empty(), "{signing:?}");
    assert_eq!((signing.read, signing.at), (NOW, s(100)));
    assert_eq!(noted(&signed(), TrustBundle::default()).map(|signing| signing.stands), Some(Stands::Lost));
    assert_eq!(noted(&tampered(), authority()), None);
}

/// Where trust is enforced, who is cut off and open all the same has it on his card, once, and no longer than it is so.
#[test]
fn what_somebody_else_opens_of_an_agent_that_is_cut_off_stands_on_its_card() {
    let mut trial = Trial::new();
    let there = |kind: Kind, mut object: Value, trial: &mut Trial| {
        object["metadata"]["namespace"] = json!("team1");
        trial.cluster.see(kind, object);
    };
    let more = json!({"metadata": {"resourceVersion": "91"}, "spec": {"selector": {"matchLabels": {"app": "w"}},
        "template": {"spec": {"serviceAccountName": "weather"}}}});
    there(Kind::Deployment, deployment(more), &mut trial);
    let policy = |name: &str, labels: Value, spec: Value| json!({"metadata": {"name": name, "uid": name, "resourceVersion": "40", "labels": labels}, "spec": spec});
    let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    let deny = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    let open = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]});
    there(Kind::NetworkPolicy, policy("drawbridge-default-deny", ours, deny), &mut trial);
    there(Kind::NetworkPolicy, policy("open", json!({}), open.clone()), &mut trial);
    let condition = |trial: &Trial| {
        let list = trial.object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        list.into_iter().find(|one| one["type"] == "PolicyOverridden")
    };
    let bad = trial.served(&tampered(), authority(), s(100));
    trial.after(&bad, s(100));
    assert_eq!(condition(&trial), None, "nobody is cut off where trust is not enforced");

    let namespace =
        json!({"metadata": {"name": "team1", "uid": "team1", "labels": {"agent.kagenti.dev/trust": "enforced"}}});
    trial.cluster.see(Kind::Namespace, namespace);
    trial.after(&bad, s(110));
    let told = condition(&trial).expect("it is cut off, and open");
    assert_eq!((&told["status"], &told["reason"]), (&json!("True"), &json!("PolicyOverridden")));
    assert!(told["message"].as_str().unwrap().contains("delete networkpolicy open"), "{told}");
    assert_eq!(trial.plan(&bad, s(111)).0.ops, [], "at rest nothing is written");
    let touched = trial.cluster.touched_of(ROW, Kind::NetworkPolicy, &Key::new("team1", "open"));
    assert_eq!(touched, [Key::new("team1", CARD)]);

    // Padded until nobody reads it, it opens what it opened.
    let padding: Vec<_> =
        (0..600).map(|at| json!({"ipBlock": {"cidr": format!("10.0.{}.{}/32", at / 250, at % 250)}})).collect();
    let mut padded = policy("open", json!({}), open.clone());
    padded["metadata"]["resourceVersion"] = json!("41");
    padded["spec"]["ingress"] = json!([{}, {"from": padding}]);
    there(Kind::NetworkPolicy, padded, &mut trial);
    trial.after(&bad, s(112));
    let told = condition(&trial).expect("nobody knows whether it is open");
    assert_eq!((&told["status"], &told["reason"]), (&json!("Unknown"), &json!("ConfigUnknown")));
    assert!(told["message"].as_str().unwrap().contains("NetworkPolicy open is larger than"), "{told}");
    assert_eq!(trial.plan(&bad, s(113)).0.ops, [], "at rest nothing is written");

    let mut gone = policy("open", json!({}), open);
    gone["metadata"]["namespace"] = json!("team1");
    gone["metadata"]["resourceVersion"] = json!("42");
    trial.cluster.lose(Kind::NetworkPolicy, gone);
    trial.after(&bad, s(114));
    assert_eq!(condition(&trial), None);
}
