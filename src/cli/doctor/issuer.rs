//! Do sidecars know who issues the tokens that agents are called with? One answer for all namespaces.
//!
//! In: the platform file, the Pods that have sidecars, and ConfigMap `authbridge-config` of their namespaces. Out: one finding, however many
//! namespaces lack the issuer, with the two lines of the platform file that give it to all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Visit, surroundings, text};
use crate::cli::survey;
use crate::domain::keys;

const NAME: &str = "issuer of tokens";

/// `pods`: those that carry the type label.
pub(super) async fn check(visit: &mut Visit, pods: &[Value]) -> anyhow::Result<()> {
    let Some(platform) = surroundings::platform(visit, NAME).await? else { return Ok(()) };
    let namespaces = concerned(pods);
    if platform.keycloak().issuer().is_some() || namespaces.is_empty() {
        visit.ok(
            NAME,
            if namespaces.is_empty() { "nothing is enrolled that needs it" } else { "keycloak.publicUrl is set" },
        );
        return Ok(());
    }
    let mut notes = Vec::new();
    let of_name = format!("/api/v1/configmaps?fieldSelector=metadata.name%3D{}", keys::CONFIG_MAP_AUTHBRIDGE);
    let config_maps = visit.cluster.list(&of_name, &mut notes).await?;
    if !notes.is_empty() {
        visit.unknown(NAME, notes.join("; "), "run doctor as somebody who may list ConfigMaps");
        return Ok(());
    }
    let without = lacking(&namespaces, &config_maps);
    match told(&without, &visit.operator) {
        Some((seen, remedy)) => visit.finding(NAME, seen, remedy),
        None => visit.ok(NAME, "every namespace with enrolled Pods has its own"),
    }
    Ok(())
}

/// The namespaces in which a sidecar has tokens to validate. Of a Pod that opted out, or whose namespace did, nobody misses an issuer.
fn concerned(pods: &[Value]) -> BTreeSet<&str> {
    pods.iter().filter(|pod| survey::is_injected(pod)).map(|pod| text(pod, "/metadata/namespace")).collect()
}

/// The namespaces whose ConfigMap has no issuer.
fn lacking<'n>(namespaces: &BTreeSet<&'n str>, config_maps: &[Value]) -> Vec<&'n str> {
    let has = |namespace: &str| {
        let mut of_it = config_maps.iter().filter(|one| text(one, "/metadata/namespace") == namespace);
        of_it.any(|one| !text(one, "/data/ISSUER").is_empty())
    };
    namespaces.iter().copied().filter(|namespace| !has(namespace)).collect()
}

/// What is wrong, and the lines that put it right.
fn told(without: &[&str], operator: &str) -> Option<(String, String)> {
    let (first, more) = (without.first()?, without.len() - 1);
    let others = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let seen = format!(
        "keycloak.publicUrl is not set, and namespace {first}{others} has no ISSUER in ConfigMap {}: its sidecars can validate no token",
        keys::CONFIG_MAP_AUTHBRIDGE
    );
    let remedy = format!(
        "kubectl -n {operator} edit configmap {}, and write under config.yaml the two lines\n    keycloak:\n      publicUrl: \
         https://keycloak.example.com\n  with the address that users log in at; without Keycloak nothing has to be set as long as nobody calls the \
         agents with tokens",
        keys::CONFIG_MAP_PLATFORM
    );
    Some((seen, remedy))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn where_no_pod_has_sidecars_no_issuer_is_missed() {
        let pod = |namespace: &str, annotations: Value, sidecar: &str| {
            json!({"metadata": {"namespace": namespace, "annotations": annotations, "labels": {keys::LABEL_TYPE: "agent"}},
                "spec": {"containers": [{"name": "agent"}, {"name": sidecar}]}})
        };
        let noted = || json!({keys::ANNOTATION_STATUS: "{}"});
        let pods = [
            pod("injected", noted(), keys::CONTAINER_ENVOY),
            pod("opted-out", json!({}), "own"),
            pod("copied", noted(), "own"),
        ];
        assert_eq!(concerned(&pods), BTreeSet::from(["injected"]));
        assert!(concerned(&pods[1..]).is_empty());
    }

    #[test]
    fn answers_13_one_finding_names_the_two_lines_however_many_namespaces_lack_them() {
        let config =
            |namespace: &str, issuer: &str| json!({"metadata": {"namespace": namespace}, "data": {"ISSUER": issuer}});
        let namespaces: BTreeSet<&str> = ["a", "b", "c"].into();
        let without = lacking(&namespaces, &[config("a", "https://kc/realms/x"), config("b", "")]);
        assert_eq!(without, ["b", "c"]);
        let (seen, remedy) = told(&without, "kagenti-system").unwrap();
        assert!(seen.contains("namespace b and 1 more") && seen.contains("keycloak.publicUrl"), "{seen}");
        assert!(remedy.contains("keycloak:\n      publicUrl: https://"), "{remedy}");
        assert_eq!(told(&[], "kagenti-system"), None);
    }
}
