//! The signed card in a ConfigMap beside what the Pods serve, and first looks of a term. The documents are those of [`super::trust`].

use super::trust::{TRUSTED, Trial, authority, serve, signed, tampered};
use super::*;
use crate::controllers::agent_card::note::Note;
use crate::controllers::scaffold::lane::Question;
use crate::controllers::scaffold::signing::Stands;
use crate::crypto::TrustBundle;
use crate::store::{Observed, Over};

const ENFORCED: &str = "spiffe:\n  trustDomain: example.org\ncards:\n  audit: false\n  trustBundle:\n    configMap:\n      name: spire-bundle\n";

fn config_map(version: &str) -> Value {
    json!({"metadata": {"name": "w-card-signed", "namespace": "team1", "uid": "signed", "resourceVersion": version}})
}

/// A platform that judges signatures, and a ConfigMap.
fn trial() -> Trial {
    let mut trial = Trial::new();
    trial.cluster.configure(ENFORCED);
    serve(&mut trial.cluster);
    trial.cluster.see(Kind::SignedCard, config_map("50"));
    trial
}

fn read(trial: &Trial, now: Duration) -> Option<CardQuestion> {
    let asks = trial.plan(&Facts::default(), now).1;
    asks.into_iter().map(|ask| ask.question).find(|question| matches!(question, CardQuestion::Read(_)))
}

/// The Pod serves one and the ConfigMap holds the other.
fn both(
    trial: &Trial,
    served: Result<Fetched, AskError>,
    held: Result<Fetched, AskError>,
    at: Duration,
) -> Facts<CardQuestion> {
    let question = read(trial, at).expect("the ConfigMap is asked for");
    let failures = u32::from(served.is_err());
    trial.with(served, at, failures).with(question, Fact { value: held, asked: at, at, failures: 0 })
}

fn good(trial: &Trial) -> Result<Fetched, AskError> {
    Ok(trial.fetched(&signed(), authority()))
}

fn bad(trial: &Trial) -> Result<Fetched, AskError> {
    Ok(trial.fetched(&tampered(), authority()))
}

fn no_card() -> Result<Fetched, AskError> {
    let message = "ConfigMap w-card-signed has no key agent-card.json".into();
    Err(AskError { fault: AskFault::Unusable, reason: Reason::CardInvalid, message })
}

fn silent() -> Result<Fetched, AskError> {
    Err(refused(Reason::MeshRefused, "TLS"))
}

const DRIFT: (&str, &str) = ("True", "CardDrift");

/// Case 50: the signed card counts when it verifies, and what is served is compared with it. Case 51: else HTTP counts.
#[test]
fn case_050_051_a_config_map_counts_only_if_it_verifies_and_differences_are_told() {
    type Answer = fn(&Trial) -> Result<Fetched, AskError>;
    let cases: [(&str, Answer, Answer, _, _, _); 7] = [
        ("both good", good, good, TRUSTED, "ConfigMap", false),
        ("served tampered with", bad, good, TRUSTED, "ConfigMap", true),
        ("behind a mesh", |_| silent(), good, TRUSTED, "ConfigMap", false),
        ("held tampered with", good, bad, TRUSTED, "Agent", true),
        ("no key", good, |_| no_card(), TRUSTED, "Agent", true),
        ("both tampered with", bad, bad, ("False", "SignatureInvalid"), "", true),
        (
            "nobody's authority",
            bad,
            |trial| Ok(trial.fetched(&signed(), TrustBundle::default())),
            ("False", "SignatureInvalid"),
            "",
            false,
        ),
    ];
    for (what, served, held, verified, source, drift) in cases {
        let mut trial = trial();
        let facts = both(&trial, served(&trial), held(&trial), s(100));
        let told = trial.after(&facts, s(100));
        assert_eq!(trial.verified(), verified, "{what}");
        assert_eq!(trial.object["status"]["cardSource"].as_str().unwrap_or_default(), source, "{what}");
        assert_eq!(judged(&trial.object, "CardDrift") == DRIFT, drift, "{what}");
        assert_eq!(told.contains(&Reason::CardDrift), drift, "{what}: {told:?}");
        assert_eq!(trial.plan(&facts, s(100)).0.ops, [], "{what}: nothing twice");
        if what == "behind a mesh" {
            assert_eq!(judged(&trial.object, "Reachable"), ("False", "MeshRefused"));
        }
    }
}

/// Case 52.
#[test]
fn case_052_without_verification_the_config_map_is_not_read() {
    let mut trial = Trial::new();
    trial.cluster.see(Kind::SignedCard, config_map("50"));
    assert_eq!(read(&trial, s(100)), None);
}

/// A tampered ConfigMap alone changes nothing but reports drift; without it what is served counts.
#[test]
fn a_tampered_config_map_alone_takes_no_trust() {
    let mut trial = trial();
    let facts = both(&trial, good(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    trial.cluster.see(Kind::SignedCard, config_map("51"));
    // Until the new version was read, nothing is concluded.
    assert_eq!(trial.plan(&facts, s(101)).0.ops, []);
    let facts = both(&trial, good(&trial), bad(&trial), s(102));
    assert_eq!(trial.after(&facts, s(102)), [Reason::CardDrift]);
    assert_eq!((trial.verified(), judged(&trial.object, "CardDrift")), (TRUSTED, DRIFT));
    trial.cluster.lose(Kind::SignedCard, config_map("52"));
    let facts = trial.served(&tampered(), authority(), s(103));
    trial.after(&facts, s(103));
    assert_eq!(
        (trial.verified(), judged(&trial.object, "Bound").0, judged(&trial.object, "CardDrift")),
        (("False", "SignatureInvalid"), "False", ("", ""))
    );
}

/// Somebody fills the namespace with such ConfigMaps: nobody reads one more, and what the agent serves counts.
#[test]
fn a_signed_card_that_is_over_a_bound_is_not_read_and_that_is_told() {
    let mut trial = trial();
    let facts = both(&trial, good(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    let mut more = change(Kind::SignedCard, config_map("51"));
    let now = more.now.take().expect("it is there");
    let what = now.what.slim(Over::Count).expect("they are bounded");
    more.now = Some(Arc::new(Observed { uid: now.uid.clone(), version: now.version, what }));
    assert!(trial.cluster.store.apply(&more, s(101)));
    assert_eq!(read(&trial, s(101)), None);
    let facts = trial.with(good(&trial), s(101), 0);
    assert_eq!(trial.after(&facts, s(101)), [Reason::CardDrift]);
    assert_eq!((trial.verified(), judged(&trial.object, "CardDrift")), (TRUSTED, DRIFT));
    assert_eq!(trial.object["status"]["cardSource"], "Agent");
    assert_eq!(trial.plan(&facts, s(102)).0.ops, [], "nothing twice");
}

/// Readiness governs what is asked of Pods alone.
#[test]
fn a_signed_card_counts_before_its_workload_is_ready() {
    let mut trial = trial();
    let account = json!({"metadata": {"namespace": "team1"}, "spec": {"template": {"spec": {"serviceAccountName": "weather"}}},
        "status": {"conditions": [{"type": "Available", "status": "False"}]}});
    trial.cluster.see(Kind::Deployment, deployment(account));
    let (_, asks) = trial.plan(&Facts::default(), s(100));
    assert!(matches!(&asks[..], [Ask { question: CardQuestion::Read(_), .. }]), "no Pod is asked: {asks:?}");
    let facts = Facts::default()
        .with(asks[0].question.clone(), Fact { value: good(&trial), asked: s(100), at: s(100), failures: 0 });
    trial.after(&facts, s(100));
    assert_eq!((trial.verified(), judged(&trial.object, "Ready")), (TRUSTED, ("False", "WorkloadNotReady")));
    // One that does not verify leaves what is said of a workload that is not ready.
    let facts = Facts::default()
        .with(asks[0].question.clone(), Fact { value: bad(&trial), asked: s(101), at: s(101), failures: 0 });
    trial.after(&facts, s(101));
    assert_eq!(judged(&trial.object, "Synced"), ("False", "WorkloadNotReady"));
    assert_eq!(trial.verified(), TRUSTED, "kept as in silence");
    let facts = Facts::default()
        .with(asks[0].question.clone(), Fact { value: bad(&trial), asked: s(401), at: s(401), failures: 0 });
    trial.after(&facts, s(401));
    assert_eq!(trial.verified(), ("False", "FetchFailed"));
}

/// Ruling 9: of a kind whose Pods do not stay, or are not known, no card counts: not one that its own account has signed into a ConfigMap, either.
#[test]
fn a_card_of_a_kind_that_is_never_trusted_is_not_read() {
    let labels = json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""});
    for (version, kind, seen) in [
        ("batch/v1", "Job", Some(Kind::Job)),
        ("batch/v1", "CronJob", Some(Kind::CronJob)),
        ("apps/v1", "ReplicaSet", Some(Kind::ReplicaSet)),
        ("v1", "Pod", None),
    ] {
        let mut trial = trial();
        if let Some(seen) = seen {
            trial.cluster.store.set_reach(seen, Reach::Listed);
            let more = json!({"metadata": {"namespace": "team1", "labels": labels}});
            trial.cluster.see(seen, workload(seen, "w", more));
        }
        trial.object["spec"]["targetRef"] = json!({"apiVersion": version, "kind": kind, "name": "w"});
        trial.cluster.see(Kind::AgentCard, trial.object.clone());
        assert_eq!(trial.plan(&Facts::default(), s(100)).1, [], "{kind}: nobody is asked, and nothing is read");
        let told = trial.after(&Facts::default(), s(100));
        assert_eq!(judged(&trial.object, "Synced"), ("False", "UntrustableKind"), "{kind}");
        assert!(told.contains(&Reason::UntrustableKind), "{kind}: {told:?}");
    }
}

/// That the API server cannot be read at the moment takes nobody's trust.
#[test]
fn a_config_map_that_cannot_be_read_at_the_moment_says_nothing() {
    let mut trial = trial();
    let facts = both(&trial, bad(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    let open = |_: &Trial| {
        let message = "503".into();
        Err(AskError { fault: AskFault::Unreachable, reason: Reason::FetchFailed, message })
    };
    let facts = both(&trial, bad(&trial), open(&trial), s(200));
    assert_eq!((trial.after(&facts, s(200)), trial.verified()), (vec![], TRUSTED));
    // Of one that was never trusted, what is served counts.
    let mut other = super::signed::trial();
    let facts = both(&other, bad(&other), open(&other), s(100));
    other.after(&facts, s(100));
    assert_eq!(other.verified(), ("False", "SignatureInvalid"));
}

/// What is said of a condition.
fn message<'o>(object: &'o Value, type_: &str) -> &'o str {
    let all = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|one| one["type"] == type_).and_then(|one| one["message"].as_str()).unwrap_or_default()
}

/// Ruling 4: a missing authority costs a trusted agent nothing for five minutes, also where its card stands in a ConfigMap. Then what its Pods serve
/// counts: an authority that was taken out of the bundle closes, and so does a bad card beside a ConfigMap that somebody signed by an authority of his own.
#[test]
fn case_111_a_config_map_without_an_authority_keeps_trust_for_five_minutes_and_no_longer() {
    let stranger = |trial: &Trial| Ok(trial.fetched(&signed(), TrustBundle::default()));
    type Answer = fn(&Trial) -> Result<Fetched, AskError>;
    let same: Answer = |trial| Ok(trial.fetched(&signed(), TrustBundle::default()));
    for (what, served) in [("a bad card", bad as Answer), ("the same card", same)] {
        let mut trial = trial();
        let facts = both(&trial, served(&trial), good(&trial), s(100));
        trial.after(&facts, s(100));
        assert_eq!(trial.verified(), TRUSTED, "{what}");
        for second in [200, 350, 499] {
            let facts = both(&trial, served(&trial), stranger(&trial), s(second));
            assert_eq!(trial.after(&facts, s(second)), [], "{what}, {second}");
            assert_eq!(trial.verified(), TRUSTED, "{what}, {second}");
        }
        let facts = both(&trial, served(&trial), stranger(&trial), s(501));
        trial.after(&facts, s(501));
        assert_eq!(trial.verified(), ("False", "SignatureInvalid"), "{what}");
        let told = message(&trial.object, "Verified");
        assert!(told.contains("ConfigMap w-card-signed does not count either"), "{what}: {told}");
        assert_eq!(trial.plan(&facts, s(502)).0.ops, [], "{what}: nothing twice");
        // The authority is there again in time: nothing ends, and the next time begins anew.
        let mut other = super::signed::trial();
        for (second, held) in [(100, good as Answer), (200, same), (450, good), (460, same), (740, same)] {
            let facts = both(&other, served(&other), held(&other), s(second));
            other.after(&facts, s(second));
            assert_eq!(other.verified(), TRUSTED, "{what}, {second}");
        }
    }
}

/// A Pod that serves a good card has its own five minutes, however long somebody's ConfigMap beside it has lacked an authority.
#[test]
fn a_planted_config_map_shortens_nobodys_time() {
    let mut trial = trial();
    let stranger = |trial: &Trial| Ok(trial.fetched(&signed(), TrustBundle::default()));
    for second in [100, 600, 1_100] {
        let facts = both(&trial, good(&trial), stranger(&trial), s(second));
        trial.after(&facts, s(second));
        assert_eq!(trial.verified(), TRUSTED, "{second}");
    }
    for second in [1_200, 1_499] {
        let facts = both(&trial, stranger(&trial), stranger(&trial), s(second));
        trial.after(&facts, s(second));
        assert_eq!(trial.verified(), TRUSTED, "{second}");
    }
    let facts = both(&trial, stranger(&trial), stranger(&trial), s(1_501));
    trial.after(&facts, s(1_501));
    assert_eq!(trial.verified(), ("False", "SignatureInvalid"));
}

/// What cannot be read, or is another at each look, keeps the trust of an agent that serves a bad card no longer than silence does.
#[test]
fn a_config_map_that_is_never_read_keeps_no_trust() {
    let open = || {
        let message = "503".into();
        Err(AskError { fault: AskFault::Unreachable, reason: Reason::FetchFailed, message })
    };
    let mut trial = trial();
    let facts = both(&trial, bad(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    for (second, verified) in [(200, TRUSTED), (499, TRUSTED), (501, ("False", "SignatureInvalid"))] {
        let facts = both(&trial, bad(&trial), open(), s(second));
        trial.after(&facts, s(second));
        assert_eq!(trial.verified(), verified, "{second}");
    }
    let mut other = super::signed::trial();
    let facts = both(&other, bad(&other), good(&other), s(100));
    other.after(&facts, s(100));
    for (version, second, verified) in [
        ("51", 200, TRUSTED),
        ("52", 1_000, TRUSTED),
        ("53", 3_199, TRUSTED),
        ("54", 3_201, ("False", "SignatureInvalid")),
    ] {
        other.cluster.see(Kind::SignedCard, config_map(version));
        let facts = other.with(bad(&other), s(second), 0);
        other.after(&facts, s(second));
        assert_eq!(other.verified(), verified, "{second}");
    }
}

/// How its signature stands is noted of a card in a ConfigMap, too, where the Pods serve none that is signed: who signs is restarted.
#[test]
fn that_nobody_vouches_for_a_card_in_a_config_map_is_noted() {
    let trial = trial();
    let stands = |served: Result<Fetched, AskError>, held: Result<Fetched, AskError>| {
        let facts = both(&trial, served, held, s(100));
        trial.plan(&facts, s(100)).0.note.signing.map(|signing| signing.stands)
    };
    let stranger = || Ok(trial.fetched(&signed(), TrustBundle::default()));
    assert_eq!(stands(bad(&trial), stranger()), Some(Stands::Lost));
    assert!(matches!(stands(good(&trial), stranger()), Some(Stands::Until { .. })), "what the Pods serve goes first");
    assert_eq!(stands(bad(&trial), bad(&trial)), None);
}

/// What only lacks an authority is read again within the card's own period: SPIRE publishes later than it signs, and a bundle may come after the card.
#[test]
fn a_signed_card_that_lacks_an_authority_is_read_again_soon() {
    type Answer = fn(&Trial) -> Result<Fetched, AskError>;
    let stranger: Answer = |trial| Ok(trial.fetched(&signed(), TrustBundle::default()));
    let never: Answer =
        |trial| Ok(Fetched { verdict: Arc::new(Verdict::Unknown), ..trial.fetched(&signed(), authority()) });
    for (what, answer, soon) in [("good", good as Answer, false), ("stranger", stranger, true), ("never", never, true)]
    {
        let trial = trial();
        let question = read(&trial, s(100)).unwrap();
        let again = |begun: u64| {
            let facts = both(&trial, good(&trial), answer(&trial), s(begun));
            let asks = trial.plan(&facts, s(begun + 70)).1;
            asks.iter().any(|ask| ask.question == question && ask.since > s(begun))
        };
        let all: Vec<bool> = (100..700).step_by(50).map(again).collect();
        assert!(if soon { all.iter().all(|again| *again) } else { all.contains(&false) }, "{what}: {all:?}");
    }
}

/// A host that fails again and again is left alone: ConfigMaps that hold no card are, and keep nobody from reading the others of their namespace.
#[test]
fn each_config_map_fails_for_itself() {
    let mut trial = trial();
    let host = |trial: &Trial| read(trial, s(100)).expect("the ConfigMap is asked for").host();
    let first = host(&trial);
    trial.cluster.see(Kind::SignedCard, config_map("51"));
    assert_eq!(host(&trial), first, "another version is the same ConfigMap");
    let Some(CardQuestion::Read(own)) = read(&trial, s(100)) else { panic!("the ConfigMap is asked for") };
    let other = super::super::Read { name: "other-card-signed".into(), ..own };
    assert_ne!(CardQuestion::Read(other).host(), first);
}

/// B18: one that is signed by an older certificate than what was accepted is no source.
#[test]
fn an_older_signature_is_drift() {
    let mut trial = trial();
    let key = Key::new("team1", CARD);
    trial.cluster.note::<Cards>(NAME, &key, Note { leaf: Some(i64::MAX), ..Note::default() });
    let facts = both(&trial, good(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    assert_eq!((trial.verified(), judged(&trial.object, "CardDrift")), (TRUSTED, DRIFT));
    assert_eq!(trial.object["status"]["cardSource"], "Agent");
}

/// What the term before knew is looked at again in turn, and what is new at once.
#[test]
fn first_looks_of_a_term_are_spread_over_one_period() {
    let mut trial = trial();
    let facts = both(&trial, good(&trial), good(&trial), s(100));
    trial.after(&facts, s(100));
    let key = Key::new("team1", CARD);
    let mut seconds = std::collections::BTreeSet::new();
    for uid in 0..100 {
        trial.object["metadata"]["uid"] = json!(format!("card-{uid}"));
        trial.cluster.see(Kind::AgentCard, trial.object.clone());
        trial.cluster.note::<Cards>(NAME, &key, Note::default());
        let (plan, asks) = trial.plan(&Facts::default(), s(1_000));
        let wait = plan.again.unwrap();
        assert!(plan.ops.is_empty() && asks.is_empty() && wait <= s(33), "{wait:?}");
        trial.cluster.note::<Cards>(NAME, &key, plan.note);
        assert_eq!(trial.plan(&Facts::default(), s(1_000) + wait).1.len(), 2, "then it is asked");
        seconds.insert(wait.as_secs());
    }
    assert!(seconds.len() > 20, "{seconds:?}");
    let mut wished = trial.object.clone();
    wished["metadata"]["annotations"] = json!({"agentcard.kagenti.dev/refresh": "now"});
    trial.cluster.see(Kind::AgentCard, wished);
    trial.cluster.note::<Cards>(NAME, &key, Note::default());
    assert_eq!(trial.plan(&Facts::default(), s(2_000)).1.len(), 2, "a person does not wait");
}

/// A9: of a new revision one Pod is asked at once, whoever's turn it is.
#[test]
fn a_new_revision_is_asked_at_once() {
    let mut cluster = cluster();
    let CardQuestion::Fetch(old) = plan(&cluster).1.remove(0).question else { panic!("a Pod is asked") };
    cluster.see(Kind::ReplicaSet, replica_set("w-2"));
    for (name, address) in [("w-2-a", "10.244.0.6"), ("w-2-b", "10.244.0.7")] {
        let newer = json!({"metadata": {"creationTimestamp": "2026-02-01T00:00:00Z"}});
        cluster.see(Kind::Pod, pod(name, "w-2", address, newer));
    }
    for second in (0..200).step_by(7) {
        let value = Ok(unsigned(&json!({"name": "old"}), &old.authority));
        let fact = Fact { value, asked: s(second), at: s(second), failures: 0 };
        let facts = Facts::default().with(CardQuestion::Fetch(old.clone()), fact);
        let CardQuestion::Fetch(asked) = &plan_at(&cluster, &facts, s(second)).1[0].question else { panic!("a Pod") };
        assert_eq!(asked.address.to_string(), "10.244.0.6:8000", "{second}");
    }
}

/// Who shares its account is told, once.
#[test]
fn a_shared_account_is_told() {
    let mut trial = trial();
    let mut other = deployment(json!({"metadata": {"name": "weather", "uid": "other", "namespace": "team1"}}));
    other["metadata"]["resourceVersion"] = json!("9");
    trial.cluster.see(Kind::Deployment, other);
    let facts = both(&trial, good(&trial), good(&trial), s(100));
    let told = trial.after(&facts, s(100));
    assert!(told.contains(&Reason::SharedServiceAccount), "{told:?}");
    assert_eq!(judged(&trial.object, "SharedServiceAccount"), ("True", "SharedServiceAccount"));
    assert_eq!(trial.plan(&facts, s(101)).0.ops, []);
}

/// Ruling 8: a workload shares the account that its template names, by either of its names, enrolled or not, and whatever it is called itself.
#[test]
fn who_names_the_account_in_its_template_shares_it() {
    let named = |key: &str, account: &str, kind: Option<&str>| {
        json!({"metadata": {"name": "cron", "uid": "other", "namespace": "team1", "resourceVersion": "9"}, "spec": {"template": {
            "metadata": {"labels": {"kagenti.io/type": kind}}, "spec": {key: account}}}})
    };
    let agent = Some("agent");
    for (other, told) in [
        (named("serviceAccountName", "weather", agent), true),
        (named("serviceAccountName", "weather", None), true),
        (named("serviceAccount", "weather", None), true),
        (named("serviceAccountName", "forecast", agent), false),
        (named("serviceAccountName", "forecast", None), false),
    ] {
        let mut trial = trial();
        trial.cluster.see(Kind::Deployment, deployment(other.clone()));
        let facts = both(&trial, good(&trial), good(&trial), s(100));
        assert_eq!(trial.after(&facts, s(100)).contains(&Reason::SharedServiceAccount), told, "{other}");
    }
}

/// A15: whose Pods are not labelled is told what to do.
#[test]
fn pods_without_the_label_have_a_reason_of_their_own() {
    let mut cluster = empty();
    let none = json!({"spec": {"template": {"metadata": {"labels": {"kagenti.io/type": null}}}}});
    cluster.see(Kind::Deployment, deployment(none));
    cluster.see(Kind::Service, service(json!([{"port": 8000}])));
    cluster.see(Kind::AgentCard, card(json!({})));
    let (_, stored) = carried_out(&card(json!({})), &plan(&cluster).0);
    assert_eq!(
        (judged(&stored, "Synced"), judged(&stored, "Reachable")),
        (("False", "FetchFailed"), ("False", "PodsNotLabelled"))
    );
}

/// A ConfigMap concerns the cards of the workload whose name it bears.
#[test]
fn a_config_map_touches_the_cards_of_its_workload() {
    let cluster = cluster();
    let touched = |name: &str| cluster.touched_of(ROW, Kind::SignedCard, &Key::new("team", name));
    assert_eq!(touched("w-card-signed"), [Key::new("team", CARD)]);
    assert_eq!(touched("x-card-signed"), []);
}

/// A ConfigMap that was made ahead of the signature says so on the card until it is signed; one of somebody else, or of a workload of that name that is gone, does not.
#[test]
fn a_config_map_that_awaits_its_signature_is_told_until_it_is_signed() {
    let ahead = |version: &str, label: &str, owner: &str| {
        let mut object = config_map(version);
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": label});
        object["metadata"]["annotations"] = json!({"agentcard.kagenti.dev/awaits-signature": "true"});
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": owner, "controller": true}]);
        object
    };
    let awaits = |trial: &Trial| judged(&trial.object, "AwaitsSignature").0 == "True";
    let mut without = trial();
    without.cluster.lose(Kind::SignedCard, config_map("51"));
    let facts = without.with(bad(&without), s(100), 0);
    let usual = without.after(&facts, s(101));
    let mut trial = trial();
    let uid = trial.cluster.store.workload(Kind::Deployment, "team1", "w").unwrap().uid.to_owned();
    let bad = trial.with(bad(&trial), s(100), 0);
    trial.cluster.see(Kind::SignedCard, ahead("60", "drawbridge", &uid));
    assert_eq!(trial.after(&bad, s(101)), usual, "it is no Event of its own");
    assert!(awaits(&trial));
    assert_eq!(trial.plan(&bad, s(101)).0.ops, [], "at rest nothing is written");
    for (version, label, owner) in [("61", "somebody", &*uid), ("63", "drawbridge", "another")] {
        trial.cluster.see(Kind::SignedCard, ahead(version, label, owner));
        trial.after(&bad, s(102));
        assert!(!awaits(&trial), "{label} {owner}");
    }
    trial.cluster.see(Kind::SignedCard, ahead("64", "drawbridge", &uid));
    trial.after(&bad, s(103));
    assert!(awaits(&trial));
    let mut signed = ahead("65", "drawbridge", &uid);
    signed["metadata"]["annotations"] = json!({});
    trial.cluster.see(Kind::SignedCard, signed);
    let facts = both(&trial, self::bad(&trial), good(&trial), s(104));
    trial.after(&facts, s(104));
    assert!(!awaits(&trial));
}
