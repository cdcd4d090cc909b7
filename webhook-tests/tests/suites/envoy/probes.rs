//! Probes of an injected Pod pass the real Envoy and a token check that applies the configuration inside the Pod; nothing else does.

use anyhow::{Context as _, Result};
use drawbridge::config::envoy::bootstrap;
use drawbridge::config::schema::Platform;
use drawbridge::domain::keys::ANNOTATION_RUNTIME_CONFIG;
use serde_json::Value;
use webhook_tests::corpus::answer::ask;
use webhook_tests::corpus::load;
use webhook_tests::envoy::Envoy;
use webhook_tests::envoy::ext_proc::ExtProc;
use webhook_tests::envoy::upstream::Upstream;

use super::raw;

/// The case of the corpus whose Pod has probes of every kind.
const CASE: &str = "envoy/mend_15_probe_paths";

/// The runtime configuration that the Pod of the case gets.
fn runtime_config() -> Result<Value> {
    let case = load()?.into_iter().find(|case| case.name == CASE).context("the corpus has lost its case")?;
    let object = case.object.as_ref().context("the case has no Pod")?;
    let pod = ask(&case, &case.review, &case.fixture.snapshot()?)?.applied(object)?;
    let text = pod["metadata"]["annotations"][ANNOTATION_RUNTIME_CONFIG].as_str().context("no configuration")?;
    Ok(serde_saphyr::from_str(text)?)
}

#[tokio::test]
async fn mend_15_probes_pass_the_token_check_and_nothing_that_is_served_does() -> Result<()> {
    let (ext_proc, upstream) = (ExtProc::applying(&runtime_config()?).await?, Upstream::start().await?);
    let generated = bootstrap(&Platform::built_in().resolved().proxy);
    let envoy = Envoy::start(&generated, ext_proc.address(), upstream.address()).await?;
    let probed = [
        "/x/../health",
        "/health",
        "/ready",
        "/started/",
        "/grpc.health.v1.Health/Check",
        "/healthz",
        "/health?full=1",
    ];
    for path in probed {
        assert_eq!(raw(envoy.inbound(), path, "").await?.0, 200, "{path}: the kubelet has no token");
    }
    let arrived = upstream.received();
    assert_eq!(arrived, probed.len() as u64);
    for path in
        ["/", "/health/..", "/health/deep", "/ready/../v1/models", "/healthy", "/x", "/grpc.health.v1.Health/Watch"]
    {
        assert_eq!(raw(envoy.inbound(), path, "").await?.0, 401, "{path}");
    }
    assert_eq!(upstream.received(), arrived, "nothing without a token arrived");
    assert_eq!(raw(envoy.inbound(), "/", "Authorization: Bearer token\r\n").await?.0, 200, "a token opens the rest");
    assert_eq!(raw(envoy.outbound(), "/x", "").await?.0, 200, "what the agent asks is another matter");
    Ok(())
}
