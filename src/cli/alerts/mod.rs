//! `drawbridge alerts`: the alert rules, for Prometheus as it is or for its operator.
//!
//! In: [`rules::ALERTS`]. Out: a rule file (`manifests/monitoring/alerts.yaml` is this output), or the same groups as a
//! PrometheusRule. The suite `webhook-tests/tests/suites/alerts.rs` has promtool check the file and run a unit test of every alert.

pub mod rules;

use serde_json::{Value, json};

use super::given;
use super::io::{self, Io};
use super::{Exit, Format};
use crate::domain::keys;
use rules::ALERTS;

/// Arguments of `alerts`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print a PrometheusRule (monitoring.coreos.com/v1) instead of a rule file.
    #[arg(long)]
    pub prometheus_rule: bool,
    /// Namespace of the PrometheusRule.
    #[arg(short, long, default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub namespace: String,
    /// Output format; `table` lists the alerts.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: Format,
}

/// First line of `manifests/monitoring/alerts.yaml`.
pub const GENERATED: &str =
    "# Made by `drawbridge alerts`; change the code under src/cli/alerts, then `make manifests`.\n";

/// The rule file, as Prometheus reads it.
#[must_use]
pub fn rule_file() -> Value {
    let rules: Vec<Value> = ALERTS
        .iter()
        .map(|alert| {
            json!({
                "alert": alert.name,
                "expr": (alert.expression)(),
                "for": alert.lasting,
                "labels": {"severity": alert.severity.as_str()},
                "annotations": {"summary": alert.summary, "description": alert.remedy},
            })
        })
        .collect();
    json!({"groups": [{"name": "drawbridge", "rules": rules}]})
}

/// The same rules for the Prometheus operator.
#[must_use]
pub fn prometheus_rule(namespace: &str) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "metadata": {
            "name": "drawbridge", "namespace": namespace,
            "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE, "app.kubernetes.io/name": "drawbridge"},
        },
        "spec": rule_file(),
    })
}

/// Prints the rules.
///
/// # Errors
/// When standard output is closed.
pub fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let rules = if args.prometheus_rule { prometheus_rule(&args.namespace) } else { rule_file() };
    io::print(args.output, &rules, io.out, |out| {
        for alert in ALERTS {
            writeln!(out, "{:<34} {:<9} {}", alert.name, alert.severity.as_str(), alert.summary)?;
        }
        Ok(())
    })?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests;
