//! Is there somebody whose word on agent cards counts?
//!
//! In: the platform file, the ConfigMap that it names, the rights of the controllers' account. Out: whether that account may read it, whether it is a trust
//! bundle, and whether it has a valid authority of the trust domain under which agents run. Promise: it is read as the operator reads it.

use std::time::UNIX_EPOCH;

use serde_json::json;

use super::{Seen, Status, Visit, rights, surroundings};
use crate::cli::render::rbac::{Role, TRUST_BUNDLE, TRUST_BUNDLE_VERBS};
use crate::config::cards::{BundleConfigMap, BundleSources};
use crate::config::schema::Platform;
use crate::crypto::{BundleFault, TrustBundle, TrustDomain};
use crate::server::clock;
use crate::server::guards::watch::APPLY;

const NAME: &str = "trust bundle";
const RIGHT: &str = "right to read the trust bundle";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let Some(platform) = surroundings::platform(visit, NAME).await? else { return Ok(()) };
    let sources = platform.cards().bundle;
    if !sources.any() {
        visit.ok(NAME, "none is configured (cards.trustBundle): signatures of agent cards are not judged");
        return Ok(());
    }
    if let Some(address) = &sources.config_map {
        readable(visit, address).await?;
        let path = format!("/api/v1/namespaces/{}/configmaps/{}", address.namespace, address.name);
        let found = match visit.read(NAME, &path).await? {
            Seen::Hidden => return Ok(()),
            Seen::Absent => None,
            Seen::Is(object) => {
                let data = object.pointer("/data").and_then(|data| data.get(&address.key));
                Some(data.and_then(serde_json::Value::as_str).map(str::to_owned))
            }
        };
        let now = i64::try_from(clock::now().duration_since(UNIX_EPOCH)?.as_secs())?;
        let (status, seen, remedy) = judge(address, found, &sources, &platform, now);
        visit.add(NAME, status, (seen, remedy));
    }
    if let Some(path) = &sources.file {
        let name = format!("{NAME} {}", path.display());
        let seen = "is a file that only the operator's Pods can read";
        visit.unknown(
            &name,
            seen,
            "metric kagenti_x5c_trust_bundle_age_seconds exists on each replica that reads it, and is small",
        );
    }
    Ok(())
}

/// Whether the controllers may read it: that you may says nothing about them.
async fn readable(visit: &mut Visit, address: &BundleConfigMap) -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for verb in TRUST_BUNDLE_VERBS {
        let attributes = json!({
            "group": "", "resource": "configmaps", "verb": verb, "namespace": address.namespace, "name": address.name,
        });
        match rights::allowed(visit, Role::Controllers, &attributes).await? {
            Some(true) => {}
            Some(false) => missing.push(verb),
            None => {
                visit.unknown(RIGHT, rights::MAY_NOT_ASK.0, rights::MAY_NOT_ASK.1);
                return Ok(());
            }
        }
    }
    let (status, seen, remedy) = right(address, &missing, !visit.watched.is_empty());
    visit.add(RIGHT, status, (seen, remedy));
    Ok(())
}

/// What is to be said of that right; `some_namespaces`: only those are watched, so that the right is one of its own.
fn right(address: &BundleConfigMap, missing: &[&str], some_namespaces: bool) -> (Status, String, Option<String>) {
    let BundleConfigMap { namespace, name, .. } = address;
    let account = format!("ServiceAccount {}", Role::Controllers.name());
    if missing.is_empty() {
        return (Status::Ok, format!("{account} may read ConfigMap {namespace}/{name}"), None);
    }
    let seen = format!(
        "{account} may not {} ConfigMap {namespace}/{name}: no agent card is verified, whatever the ConfigMap holds",
        missing.join(", ")
    );
    let remedy = if some_namespaces {
        format!("{APPLY}: with --platform-file it has Role {TRUST_BUNDLE} of namespace {namespace}")
    } else {
        APPLY.to_owned()
    };
    (Status::Finding, seen, Some(remedy))
}

/// What is to be said of the ConfigMap; `found`: there is one, and it has the key.
fn judge(
    address: &BundleConfigMap,
    found: Option<Option<String>>,
    sources: &BundleSources,
    platform: &Platform,
    now: i64,
) -> (Status, String, Option<String>) {
    let BundleConfigMap { namespace, name, key } = address;
    let called = format!("ConfigMap {namespace}/{name}");
    let finding = |seen: String, remedy: &str| (Status::Finding, seen, Some(remedy.to_owned()));
    let publish =
        "have SPIRE publish its bundle there (BundlePublisher k8s_configmap), or correct cards.trustBundle.configMap";
    let text = match found {
        None => return finding(format!("{called} does not exist: no agent card is verified"), publish),
        Some(None) => return finding(format!("{called} has no key {key}: no agent card is verified"), publish),
        Some(Some(text)) => text,
    };
    let bundle = match TrustBundle::read(text.as_bytes(), sources.trust_domain.as_ref()) {
        Ok(bundle) => bundle,
        Err(BundleFault::TrustDomainUnknown) => {
            return finding(
                format!("{called}: {}", BundleFault::TrustDomainUnknown),
                "set cards.trustBundle.trustDomain",
            );
        }
        Err(fault) => return finding(format!("{called}: {fault}"), publish),
    };
    let own = &platform.resolved().trust_domain.value;
    let domains: Vec<_> = bundle.domains().map(ToString::to_string).collect();
    let listed = domains.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let Some(domain) = TrustDomain::read(own).ok().filter(|domain| bundle.domains().any(|known| known == domain))
    else {
        let seen = format!("{called} is of {listed}, and agents run under {own}: no card of theirs is verified");
        return finding(seen, "set spiffe.trustDomain of the platform file to SPIRE's trust domain");
    };
    match bundle.valid(&domain, now) {
        0 => finding(format!("{called}: every authority of {own} has expired, or begins later"), publish),
        valid => (Status::Ok, format!("{called} has {valid} valid authorities of {own}"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn said(cards: &str, found: Option<Option<&str>>, now: i64) -> (Status, String) {
        let cards = format!("{{trustBundle: {{configMap: {{name: bundle}}{cards}}}}}");
        let platform = Platform::parse(&format!("spiffe: {{trustDomain: example.org}}\ncards: {cards}"), "f").unwrap();
        let sources = platform.cards().bundle;
        let address = sources.config_map.clone().unwrap();
        let found = found.map(|text| text.map(str::to_owned));
        let (status, seen, remedy) = judge(&address, found, &sources, &platform, now);
        assert_eq!(remedy.is_some(), status != Status::Ok);
        (status, seen)
    }

    /// An authority of example.org, valid from 2026 to 2046.
    fn authority() -> String {
        let known: serde_json::Value =
            serde_json::from_str(include_str!("../../crypto/tests/vectors/kat.json")).unwrap();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", text(&known, "/ca"))
    }

    #[test]
    fn a_bundle_is_good_when_it_vouches_for_agents_and_each_fault_says_what_to_do() {
        let good = authority();
        assert_eq!(said("", Some(Some(&good)), NOW).0, Status::Ok);
        for (cards, found, now, says) in [
            ("", None, NOW, "ConfigMap spire-system/bundle does not exist"),
            ("", Some(None), NOW, "no key bundle.spiffe"),
            ("", Some(Some("")), NOW, "no certificate"),
            ("", Some(Some("rubbish")), NOW, "neither PEM nor acceptable JSON"),
            (
                ", trustDomain: other.org",
                Some(Some(good.as_str())),
                NOW,
                "is of other.org, and agents run under example.org",
            ),
            ("", Some(Some(good.as_str())), 1_700_000_000, "begins later"),
            ("", Some(Some(good.as_str())), 2_500_000_000, "has expired"),
        ] {
            let (status, seen) = said(cards, found, now);
            assert!(status == Status::Finding && seen.contains(says), "{seen}");
        }
    }

    #[test]
    fn a_right_that_the_controllers_lack_is_a_finding_that_names_the_role_where_it_has_one() {
        let [namespace, name, key] = ["spire", "bundle", "k"].map(str::to_owned);
        let address = BundleConfigMap { namespace, name, key };
        assert_eq!(right(&address, &[], true).0, Status::Ok);
        for some_namespaces in [true, false] {
            let (status, seen, remedy) = right(&address, &["list", "watch"], some_namespaces);
            assert!(status == Status::Finding && seen.contains("may not list, watch ConfigMap spire/bundle"), "{seen}");
            let remedy = remedy.unwrap();
            assert_eq!(remedy.contains("Role drawbridge-trust-bundle of namespace spire"), some_namespaces, "{remedy}");
        }
    }
}
