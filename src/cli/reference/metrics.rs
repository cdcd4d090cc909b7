//! Every metric the process registers, with its help.
//!
//! The registry prints only families that have counted something, so the names are taken from its `Debug` output, where every descriptor
//! stands; a test holds that the scan finds what the registry prints.

use std::collections::BTreeMap;

use crate::controllers::ControllerMetrics;
use crate::runtime::certs::CertificateMetrics;
use crate::runtime::config_watch::ConfigMetrics;
use crate::runtime::stores::WatchMetrics;
use crate::runtime::telemetry::metrics::Metrics;

/// Names and help texts, by name. Counters are exposed with `_total`.
#[must_use]
pub fn metrics() -> BTreeMap<String, String> {
    let metrics = Metrics::new();
    let mut found = BTreeMap::new();
    metrics.register(|registry| {
        let _ = CertificateMetrics::register(registry);
        WatchMetrics::default().register(registry);
        ConfigMetrics::default().register(registry);
        ControllerMetrics::default().register(registry);
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
    use super::*;

    #[test]
    fn every_printed_metric_is_found_with_its_help() {
        let found = metrics();
        let text = Metrics::new().text().unwrap();
        let helps: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")).collect();
        assert!(!helps.is_empty(), "{text}");
        for line in helps {
            let (name, help) = line.split_once(' ').unwrap();
            assert_eq!(found.get(name).map(String::as_str), Some(help.trim_end_matches('.')), "{name}");
        }
        assert!(
            found.contains_key("drawbridge_decisions")
                && found.contains_key("drawbridge_certificate_not_after_seconds")
        );
        assert!(found.keys().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')), "{found:?}");
    }
}
