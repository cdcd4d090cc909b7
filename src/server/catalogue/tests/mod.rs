//! The catalogue without sockets and without a cluster: what is listed, who sees it, who is let in, what is answered.

mod answers;
mod callers;
mod cards;
mod pages;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::listed::Listed;
use crate::config::gates::Gates;
use crate::config::inputs::NamespaceInputs;
use crate::config::schema::Platform;
use crate::config::snapshot::Snapshot;
use crate::config::view::{ClusterView, namespace_view};
use crate::domain::keys::{LABEL_CATALOGUE, SHARED};
use crate::domain::quarantine::Quarantine;

const BASE: &str = "https://drawbridge-webhook.kagenti-system.svc:8443";

/// A verified AgentCard with that skill.
fn object(namespace: &str, name: &str, skill: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "generation": 3},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
        "status": {
            "targetUID": "u", "trustedAccount": "weather", "cardCovered": true, "protocol": "a2a", "cardId": "abc123",
            "signatureSpiffeId": "spiffe://example.org/ns/team/sa/weather", "lastSyncTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": "Verified", "status": "True", "observedGeneration": 3},
                {"type": "Bound", "status": "True", "observedGeneration": 3}],
            "card": {"name": "Weather Agent", "description": "tells the weather", "version": "1.2", "url": "http://w.team.svc:8000",
                "skills": [{"id": skill, "tags": ["Sky"]}]},
        },
    })
}

fn listed(namespace: &str, name: &str, skill: &str) -> Option<Listed> {
    Listed::of(&object(namespace, name, skill), BASE)
}

/// Namespaces, each with the value of the label and who of it is in quarantine.
fn snapshot(namespaces: &[(&str, Option<&str>, &str)]) -> Snapshot {
    let platform = Platform::built_in();
    let view = |(name, label, held): &(&str, Option<&str>, &str)| {
        let labels = label.map(|value| (LABEL_CATALOGUE.to_owned(), value.to_owned()));
        let quarantine = Some(Quarantine::parse(held)).filter(|held| !held.is_empty()).map(Arc::new);
        let inputs = NamespaceInputs { labels: BTreeMap::from_iter(labels), quarantine, ..NamespaceInputs::default() };
        (Arc::from(*name), Arc::new(namespace_view(&platform, name, &inputs, None)))
    };
    let view = ClusterView {
        operator_namespace: "kagenti-system".into(),
        server_version: (1, 36),
        spiffe_driver: false,
        namespaces: namespaces.iter().map(view).collect(),
    };
    Snapshot::new(&platform, Gates::default(), view)
}

/// Three namespaces: `a` has a word that means nothing, `b` is shared, `c` is neither.
fn three() -> Snapshot {
    snapshot(&[("a", Some("yes"), ""), ("b", Some(SHARED), ""), ("c", None, "")])
}

/// The table of docs/limits.md says what holds.
#[test]
fn the_limits_page_says_what_the_catalogue_may_cost() {
    use super::shelf::{BYTES, BYTES_IN_ALL, CARDS, LINES, LOOKED, PAGE};
    use super::tokens::{AT_ONCE, BAD, GOOD, REQUESTS, REVIEWS};
    let page = include_str!("../../../../docs/limits.md");
    let (_, table) = page.split_once("## The catalogue of verified agents").unwrap();
    let mib = |bytes: usize| bytes >> 20;
    for row in [
        format!("kept of a namespace | {CARDS}, together {} MiB |", mib(BYTES)),
        format!("of all namespaces | {} MiB;", mib(BYTES_IN_ALL)),
        format!("verified ones are listed | {} |", crate::config::bounds::OBJECTS),
        format!("of a page | {}, together {} KiB; {} where", LINES.0, PAGE >> 10, LINES.1),
        format!("looked through for one page | {LOOKED} |"),
        format!("from one address | {} at once, then one in {} s |", REVIEWS.burst, 1.0 / REVIEWS.per_second),
        format!("under way at a replica | {AT_ONCE} |"),
        format!("at a replica | {} at once, then {} a second |", REQUESTS.burst, REQUESTS.per_second),
        format!("{} s on a good one, {} s on another", GOOD.as_secs(), BAD.as_secs()),
        format!("| {} minutes |", super::SILENCE.as_secs() / 60),
    ] {
        assert!(table.contains(&row), "docs/limits.md lacks {row:?}");
    }
}
