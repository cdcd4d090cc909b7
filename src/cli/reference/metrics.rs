//! Every metric the process registers, with its help.
//!
//! The registry prints only families that have counted something, so the names are taken from its `Debug` output, where every descriptor
//! stands; a test fills every family and holds that the scan finds exactly what the registry prints then.

use std::collections::BTreeMap;

use crate::controllers;
use crate::controllers::agent_card::metrics::CardMetrics;
use crate::server::catalogue::CatalogueMetrics;
use crate::server::certs::CertificateMetrics;
use crate::server::config_watch::ConfigMetrics;
use crate::server::guards::GuardMetrics;
use crate::server::stores::WatchMetrics;
use crate::server::telemetry::metrics::Metrics;
use crate::server::trust_bundles::BundleMetrics;

/// Names and help texts, by name. Counters are exposed with `_total`.
#[must_use]
pub fn metrics() -> BTreeMap<String, String> {
    let metrics = Metrics::new();
    let mut found = BTreeMap::new();
    metrics.register(|registry| {
        let _ = CertificateMetrics::register(registry);
        WatchMetrics::default().register(registry);
        ConfigMetrics::default().register(registry);
        GuardMetrics::default().register(registry);
        BundleMetrics::default().register(registry);
        controllers::metrics().register(registry);
        CardMetrics::default().register(registry);
        CatalogueMetrics::default().register(registry);
        found = scan(&format!("{registry:?}"));
    });
    found
}

const PREFIX: &str = "prefix: Some(Prefix(";
const DESCRIPTOR: &str = "Descriptor { name: ";
const HELP: &str = ", help: ";

fn scan(debug: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut prefix = String::new();
    let mut rest = debug;
    // A registry prints its prefix, then its metrics, then the registries below it.
    loop {
        let (at_prefix, at_metric) = (rest.find(PREFIX), rest.find(DESCRIPTOR));
        match (at_prefix, at_metric) {
            (Some(place), metric) if metric.is_none_or(|metric| place < metric) => {
                rest = &rest[place + PREFIX.len()..];
                prefix = format!("{}_", string(&mut rest));
            }
            (_, Some(place)) => {
                rest = &rest[place + DESCRIPTOR.len()..];
                let name = string(&mut rest);
                rest = rest.strip_prefix(HELP).unwrap_or(rest);
                let help = string(&mut rest).trim_end_matches('.').to_owned();
                found.entry(format!("{prefix}{name}")).or_insert(help);
            }
            _ => return found,
        }
    }
}

/// The string literal `rest` begins with, which is taken off.
fn string(rest: &mut &str) -> String {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let text = values.next().and_then(Result::ok).unwrap_or_default();
    *rest = &rest[values.byte_offset()..];
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::reason::Reason;
    use crate::server::telemetry::metrics::{
        Cause, Decision, Name, Port, PortCause, ReasonValue, Webhook, WebhookCode,
    };

    const PAGE: &str = include_str!("../../../docs/reference/metrics.md");

    /// One series in every family.
    fn filled() -> String {
        let metrics = Metrics::new();
        let (watches, controllers) = (WatchMetrics::default(), controllers::metrics());
        let (guards, bundles) = (GuardMetrics::default(), BundleMetrics::default());
        let (cards, catalogue) = (CardMetrics::default(), CatalogueMetrics::default());
        metrics.register(|registry| {
            CertificateMetrics::register(registry).fill();
            ConfigMetrics::default().register(registry);
            guards.register(registry);
            bundles.register(registry);
            watches.register(registry);
            controllers.register(registry);
            cards.register(registry);
            catalogue.register(registry);
        });
        guards.fill();
        bundles.fill();
        watches.fill();
        controllers.fill();
        cards.fill();
        catalogue.fill();
        let (port, cause) = ("webhook", "timeout");
        let decision = Decision { reason: ReasonValue(Reason::Injected) };
        metrics.webhook_requests.get_or_create(&WebhookCode { webhook: "/", code: 200 }).inc();
        metrics.webhook_latency.get_or_create(&Webhook { webhook: "/" }).observe(0.001);
        metrics.webhook_in_flight.get_or_create(&Webhook { webhook: "/" }).set(0);
        metrics.decisions.get_or_create(&decision).inc();
        metrics.warnings.get_or_create(&decision).inc();
        metrics.shed.get_or_create(&Cause { cause }).inc();
        metrics.connections.get_or_create(&Port { port }).inc();
        metrics.connections_accepted.get_or_create(&Port { port }).inc();
        metrics.connections_ended.get_or_create(&PortCause { port, cause }).inc();
        metrics.handshake_failures.get_or_create(&PortCause { port, cause }).inc();
        metrics.accept_errors.get_or_create(&Port { port }).inc();
        metrics.leader.get_or_create(&Name { name: "lease" }).set(1);
        metrics.text().unwrap()
    }

    #[test]
    fn every_family_is_exposed_exactly_once_with_its_help_and_stands_in_the_reference() {
        let found = metrics();
        let text = filled();
        let mut exposed = BTreeSet::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
            let (name, help) = line.split_once(' ').unwrap();
            assert_eq!(found.get(name).map(String::as_str), Some(help.trim_end_matches('.')), "{name}");
            assert!(exposed.insert(name.to_owned()), "{name} is exposed twice");
            assert!(
                PAGE.contains(&format!("| `{name}` |")),
                "{name} is missing in docs/reference/metrics.md: make docs"
            );
        }
        let known: BTreeSet<_> = found.keys().cloned().collect();
        assert_eq!(known, exposed, "a family without a series here is not filled above");
        assert!(known.len() > 25, "{known:?}");
        assert!(known.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')), "{known:?}");
    }
}
