//! Traces arrive where the configuration says, sent by the real Python exporters with the variables that an injected Pod has.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use webhook_tests::corpus::answer::ask;
use webhook_tests::corpus::path::container;
use webhook_tests::corpus::{Case, load};
use webhook_tests::otel::{Collector, GRPC, HTTP, send_span};

/// The case of the corpus that gives an AgentRuntime a collector as `host:port`.
const CASE: &str = "agentruntime/mend_07_host_and_port";

/// The case, asking for that collector and protocol.
fn case(address: &str, protocol: &str) -> Result<Case> {
    let mut case = load()?.into_iter().find(|case| case.name == CASE).context("the corpus has lost its case")?;
    let runtime = case.fixture.objects.values_mut().find(|object| object["kind"] == "AgentRuntime");
    runtime.context("the case has lost its AgentRuntime")?["spec"]["trace"] =
        json!({"endpoint": address, "protocol": protocol, "sampling": {"rate": 1}});
    Ok(case)
}

/// The variables of OpenTelemetry that the agent's container has once it is injected.
fn variables(case: &Case) -> Result<Vec<(String, String)>> {
    let object = case.object.as_ref().context("the case has no Pod")?;
    let answer = ask(case, &case.review, &case.fixture.snapshot()?)?;
    let pod = answer.applied(object)?;
    let env = container(&pod, "agent").and_then(|agent| agent["env"].as_array()).context("no variables")?;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let ours = env.iter().filter(|entry| text(entry, "name").starts_with("OTEL_"));
    Ok(ours.map(|entry| (text(entry, "name"), text(entry, "value"))).collect())
}

#[tokio::test]
async fn mend_07_spans_arrive_over_both_protocols_where_only_host_and_port_are_given() -> Result<()> {
    for (protocol, path) in [("grpc", GRPC), ("http", HTTP)] {
        let collector = Collector::start().await?;
        let address = format!("localhost:{}", collector.address().port());
        let span = format!("weather-over-{protocol}");
        let variables = variables(&case(&address, protocol)?)?;
        send_span(&span, &variables).await.with_context(|| protocol.to_owned())?;
        let calls = collector.calls();
        let paths: BTreeSet<_> = calls.iter().map(|call| call.path.as_str()).collect();
        assert_eq!(paths, BTreeSet::from([path]), "{protocol}: with {variables:?}");
        assert!(calls.iter().any(|call| call.carries(&span)), "{protocol}: the span is in it");

        // As it was written, the very same process loses the span and ends well.
        let raw: Vec<_> = variables
            .into_iter()
            .map(|(name, value)| (name, value.strip_prefix("http://").map_or(value.clone(), str::to_owned)))
            .collect();
        assert!(raw.iter().any(|(_, value)| *value == address), "{protocol}: {raw:?}");
        send_span(&span, &raw).await.with_context(|| format!("{protocol}, without a scheme"))?;
        assert_eq!(
            collector.calls().len(),
            calls.len(),
            "{protocol}: exporters would find the collector by themselves"
        );
    }
    Ok(())
}
