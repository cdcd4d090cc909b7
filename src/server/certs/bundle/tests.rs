//! What is written, when, and what never is.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::PatchOperation;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use proptest::prelude::*;
use serde_json::json;

use super::plan::{CONTEST_INTERVAL, Configuration, Entry, Memory, Overwritten, Step, step, tested};
use super::read;
use crate::server::certs::authority::mint::SigningAuthority;
use crate::server::certs::authority::plan::Lifetimes;
use crate::server::certs::root::{Fingerprint, Millis, Root, RootCertificate};
use crate::server::certs::trust_bundle::{read_bundle, write_bundle};

mod machine;
mod objects;
mod told;

const NOW: Millis = 1_000_000_000;

/// A certificate that needs no cryptography.
fn root(id: u8, not_after: Millis) -> RootCertificate {
    RootCertificate {
        root: Root { fingerprint: Fingerprint::of(&[id]), not_before: 0, not_after },
        der: vec![id].into(),
    }
}

fn good(id: u8) -> RootCertificate {
    root(id, NOW + 1_000_000_000)
}

fn configuration(entries: &[(&str, &[u8])]) -> Configuration {
    let entry = |(index, (name, roots)): (usize, &(&str, &[u8]))| Entry {
        index,
        name: (*name).to_owned(),
        host: None,
        roots: roots.iter().copied().map(good).collect(),
        writer: Some("kubectl".to_owned()),
    };
    Configuration {
        uid: "u".to_owned(),
        resource_version: "7".to_owned(),
        entries: entries.iter().enumerate().map(entry).collect(),
        damaged: Vec::new(),
        published_by_other: false,
    }
}

fn decided(memory: &mut Memory, seen: &Configuration, wanted: &[RootCertificate], now: Millis) -> Step {
    memory.observe(seen, wanted, now);
    step(seen, wanted, memory, now)
}

/// The entries a patch writes, with what it puts there.
fn writes(step: &Step) -> Vec<(String, Vec<u8>)> {
    let Step::Send(patch) = step else { return Vec::new() };
    let adds = patch.0.iter().filter_map(|operation| match operation {
        PatchOperation::Add(add) => Some(add),
        _ => None,
    });
    adds.map(|add| {
        let pem = String::from_utf8(STANDARD.decode(add.value.as_str().unwrap()).unwrap()).unwrap();
        let ids = pem.lines().filter(|line| !line.starts_with('-')).map(|line| STANDARD.decode(line).unwrap()[0]);
        (add.path.to_string(), ids.collect())
    })
    .collect()
}

#[test]
fn every_entry_gets_what_it_lacks_behind_tests_of_version_and_name() {
    let seen = configuration(&[("a", &[]), ("b", &[1]), ("c", &[9])]);
    let step = decided(&mut Memory::default(), &seen, &[good(1)], NOW);
    assert_eq!(
        writes(&step),
        [
            ("/webhooks/0/clientConfig/caBundle".to_owned(), vec![1]),
            ("/webhooks/2/clientConfig/caBundle".to_owned(), vec![1, 9])
        ],
        "what somebody else put in stays; what is complete is not touched"
    );
    let Step::Send(patch) = step else { unreachable!() };
    assert_eq!(tested(&patch), Some("7"));
    let patch = serde_json::to_value(patch).unwrap();
    assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
    assert_eq!(patch[1], json!({"op": "test", "path": "/webhooks/0/name", "value": "a"}));
    assert_eq!(patch[3], json!({"op": "test", "path": "/webhooks/2/name", "value": "c"}));
}

#[test]
fn nothing_is_sent_when_nothing_is_missing() {
    let rows: [(&[RootCertificate], &[u8]); 4] =
        [(&[], &[]), (&[good(1)], &[1]), (&[good(1)], &[2, 1, 3]), (&[good(1), good(2)], &[2, 1])];
    for (wanted, held) in rows {
        let seen = configuration(&[("a", held)]);
        assert_eq!(decided(&mut Memory::default(), &seen, wanted, NOW), Step::Keep, "{wanted:?} in {held:?}");
    }
}

#[test]
fn expired_roots_go_with_the_next_patch_or_once_a_minute() {
    let mut seen = configuration(&[("a", &[1])]);
    seen.entries[0].roots.push(root(5, NOW));
    let restarted = decided(&mut Memory::default(), &seen, &[good(1)], NOW);
    assert_eq!(restarted, Step::Wait(NOW + CONTEST_INTERVAL), "sweeping is no reason to write at a restart");
    let mut memory = Memory::default();
    memory.observe(&seen, &[good(1)], NOW - CONTEST_INTERVAL);
    assert_eq!(writes(&decided(&mut memory, &seen, &[good(1)], NOW - 1)), [], "valid a moment ago");
    assert_eq!(writes(&decided(&mut memory, &seen, &[good(1)], NOW))[0].1, [1], "expired now");
    memory.sent(NOW);
    let wait = decided(&mut memory, &seen, &[good(1)], NOW + 1_000);
    assert_eq!(wait, Step::Wait(NOW + CONTEST_INTERVAL), "somebody puts it back: no hurry");
    assert_eq!(
        writes(&decided(&mut memory, &seen, &[good(1), good(2)], NOW + 1_000))[0].1,
        [1, 2],
        "with the next one"
    );
    assert_eq!(decided(&mut memory, &seen, &[good(1), root(5, NOW)], NOW + 1), Step::Keep, "unless it is wanted");
}

#[test]
fn c6_a_fight_is_answered_at_once_and_then_once_a_minute() {
    let wanted = [good(1)];
    let (ours, theirs) = (configuration(&[("a", &[1])]), configuration(&[("a", &[9])]));
    let mut memory = Memory::default();
    assert_eq!(memory.observe(&ours, &wanted, NOW), []);
    let lost = Overwritten { entry: "a".to_owned(), writer: Some("kubectl".to_owned()), injected: false };
    assert_eq!(memory.observe(&theirs, &wanted, NOW), [lost]);
    assert!(memory.contested());
    assert_eq!(memory.observe(&theirs, &wanted, NOW), [], "reported once");
    assert_eq!(writes(&step(&theirs, &wanted, &memory, NOW)).len(), 1, "the first time at once");

    let mut sent = 1;
    for second in 0..300 {
        let now = NOW + second * 1000;
        // Whoever repaired it, this replica or another: it is seen, and a second later it is overwritten again.
        memory.observe(&ours, &wanted, now);
        assert!(!memory.contested());
        memory.observe(&theirs, &wanted, now);
        let mut wait = now;
        while let Step::Wait(moment) = step(&theirs, &wanted, &memory, wait) {
            assert!(moment > wait && moment <= now + CONTEST_INTERVAL);
            wait = moment;
        }
        assert_eq!(wait, now + CONTEST_INTERVAL, "a minute after the last repair");
        sent += 1;
    }
    assert_eq!(sent, 301);
}

#[test]
fn c6_a_new_root_is_never_held_up_by_a_fight_elsewhere() {
    let mut memory = Memory::default();
    memory.observe(&configuration(&[("a", &[1]), ("b", &[1])]), &[good(1)], NOW);
    let fought = configuration(&[("a", &[9]), ("b", &[1])]);
    memory.observe(&fought, &[good(1)], NOW);
    memory.observe(&configuration(&[("a", &[1]), ("b", &[1])]), &[good(1)], NOW);
    let step = decided(&mut memory, &fought, &[good(1), good(2)], NOW + 1);
    assert_eq!(writes(&step), [("/webhooks/1/clientConfig/caBundle".to_owned(), vec![1, 2])]);
}

#[test]
fn a_new_object_of_the_same_name_is_a_new_start() {
    let mut memory = Memory::default();
    memory.observe(&configuration(&[("a", &[1])]), &[good(1)], NOW);
    memory.observe(&configuration(&[("a", &[])]), &[good(1)], NOW);
    memory.observe(&configuration(&[("a", &[1])]), &[good(1)], NOW);
    let mut recreated = configuration(&[("a", &[])]);
    assert!(matches!(decided(&mut memory.clone(), &recreated, &[good(1)], NOW + 1), Step::Wait(_)));
    recreated.uid = "another".to_owned();
    assert_eq!(memory.observe(&recreated, &[good(1)], NOW + 1), []);
    assert_eq!(writes(&step(&recreated, &[good(1)], &memory, NOW + 1)).len(), 1);
}

#[test]
fn a_renamed_entry_is_written_and_a_gone_one_forgotten() {
    let mut memory = Memory::default();
    memory.observe(&configuration(&[("a", &[1]), ("b", &[1])]), &[good(1)], NOW);
    let renamed = configuration(&[("b", &[1]), ("new", &[])]);
    assert_eq!(memory.observe(&renamed, &[good(1)], NOW), []);
    let step = step(&renamed, &[good(1)], &memory, NOW);
    assert_eq!(writes(&step), [("/webhooks/1/clientConfig/caBundle".to_owned(), vec![1])]);
}

#[test]
fn a_clock_set_back_does_not_hold_a_repair_up() {
    let mut memory = Memory::default();
    memory.observe(&configuration(&[("a", &[1])]), &[good(1)], NOW);
    memory.observe(&configuration(&[("a", &[])]), &[good(1)], NOW);
    memory.observe(&configuration(&[("a", &[1])]), &[good(1)], NOW);
    let step = decided(&mut memory, &configuration(&[("a", &[])]), &[good(1)], NOW - 86_400_000);
    assert_eq!(writes(&step).len(), 1);
}

#[test]
fn a_configuration_is_read_as_the_api_server_sends_it() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let pem = write_bundle([authority.certificate()]);
    assert_eq!(read_bundle(pem.as_bytes()).certificates, [authority.certificate().clone()]);
    assert!(pem.lines().all(|line| line.len() <= 64));

    let hook = |name: &str, client: serde_json::Value| json!({"name": name, "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB\n".to_owned() + &pem;
    let service = |name: &str| json!({"service": {"name": name, "namespace": "kagenti-system", "path": "/x"}, "caBundle": STANDARD.encode(&cut)});
    let object: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {
            "name": "drawbridge", "uid": "u", "resourceVersion": "12",
            "annotations": {"cert-manager.io/inject-ca-from": "a/b"},
            "managedFields": [
                {"manager": "helm", "operation": "Update", "time": "2026-11-21T10:00:00Z", "fieldsType": "FieldsV1", "apiVersion": "v1",
                 "fieldsV1": {"f:webhooks": {"k:{\"name\":\"ours\"}": {"f:clientConfig": {"f:caBundle": {}}}}}},
                {"manager": "cainjector", "operation": "Update", "time": "2026-11-21T11:00:00Z", "fieldsType": "FieldsV1", "apiVersion": "v1",
                 "fieldsV1": {"f:webhooks": {"k:{\"name\":\"ours\"}": {"f:clientConfig": {"f:caBundle": {}}}}}},
                {"manager": "kubectl", "operation": "Update", "time": "2026-11-21T12:00:00Z", "fieldsType": "FieldsV1", "apiVersion": "v1",
                 "fieldsV1": {"f:webhooks": {"k:{\"name\":\"ours\"}": {"f:clientConfig": {"f:service": {}}}}}},
            ],
        },
        "webhooks": [
            hook("theirs", service("another-service")),
            hook("ours", service("drawbridge-webhook")),
            hook("by-url", json!({"url": "https://127.0.0.1:9443/x"})),
        ],
    }))
    .unwrap();
    let seen = read::configuration(&object, &("drawbridge-webhook".to_owned(), "kagenti-system".to_owned()));
    assert!(seen.published_by_other);
    assert_eq!(seen.resource_version, "12");
    let entries: Vec<_> =
        seen.entries.iter().map(|entry| (entry.index, entry.name.as_str(), entry.roots.len())).collect();
    assert_eq!(entries, [(1, "ours", 1), (2, "by-url", 0)], "an entry that calls another Service is not ours");
    let hosts: Vec<_> = seen.entries.iter().map(|entry| entry.host.as_deref()).collect();
    assert_eq!(
        hosts,
        [Some("drawbridge-webhook.kagenti-system.svc"), Some("127.0.0.1")],
        "what the certificate is for"
    );
    let damaged: Vec<_> = seen.damaged.iter().map(|(entry, section)| format!("{entry}: {section}")).collect();
    assert_eq!(damaged, ["ours: section 1 (line 1): section CERTIFICATE has no end"]);
    assert_eq!(seen.entries[0].writer.as_deref(), Some("cainjector"), "the last who wrote caBundle");
}

proptest! {
    #[test]
    fn a_patch_completes_every_entry_and_takes_nothing_valid_away(
        held in proptest::collection::vec(proptest::collection::btree_set(0_u8..8, 0..6), 1..4),
        wanted in proptest::collection::btree_set(0_u8..8, 1..5),
    ) {
        // Odd ones have expired.
        let certificate = |id: &u8| root(*id, if id % 2 == 1 { NOW } else { NOW + 1 });
        let mut seen = configuration(&[]);
        seen.entries = held.iter().enumerate().map(|(index, roots)| Entry {
            index, name: index.to_string(), host: None, roots: roots.iter().map(certificate).collect(), writer: None,
        }).collect();
        let wanted: Vec<RootCertificate> = wanted.iter().map(certificate).collect();
        let mut memory = Memory::default();
        memory.observe(&seen, &wanted, NOW - CONTEST_INTERVAL);
        let sent = decided(&mut memory, &seen, &wanted, NOW);
        for (path, ids) in writes(&sent) {
            let index: usize = path.split('/').nth(2).unwrap().parse().unwrap();
            seen.entries[index].roots = ids.iter().map(certificate).collect();
        }
        for (entry, before) in seen.entries.iter().zip(&held) {
            let after: BTreeSet<u8> = entry.roots.iter().map(|certificate| certificate.der[0]).collect();
            prop_assert_eq!(after.len(), entry.roots.len(), "each once");
            prop_assert!(wanted.iter().all(|certificate| after.contains(&certificate.der[0])));
            prop_assert!(before.iter().all(|id| id % 2 == 1 || after.contains(id)));
        }
        prop_assert_eq!(decided(&mut memory, &seen, &wanted, NOW), Step::Keep, "a second run sends nothing");
    }
}
