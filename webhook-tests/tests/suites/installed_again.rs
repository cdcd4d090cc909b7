//! An installation that goes and comes back on an API server that has been up all the time. Of built-in kinds that nothing else of it watches, an API
//! server stops hearing for good once no policy takes them as parameters: so what our policies go by must not be of such a kind.

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use serde_json::json;
use webhook_tests::{ControlPlane, Installation, Installing, Options, installation};

use super::trust::{SWITCH, agent, running};
use super::uninstall::{agent_runtime, deployment, settled, uninstall};

/// Installed, an agent enrolled; then uninstalled, by which nothing of ours judges Pods any more: the agent's Pod is made anew without sidecars.
async fn comes_and_goes(cp: &ControlPlane, installing: &Installing) -> Result<()> {
    let installation = Installation::start(cp, installing).await?;
    let ns = cp.namespace("before").await?;
    ns.accepts(&deployment("weather", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather-runtime", "weather")).await?;
    settled(&ns, "weather", true).await.context("enrolled")?;
    let person = cp.user("leaving", &["system:masters"])?;
    let ran = uninstall(&person, &["--yes", "--crds"]).await?;
    ensure!(ran.code == Some(0), "{}", ran.text);
    settled(&ns, "weather", false).await.context("released")?;
    drop(installation);
    Ok(())
}

#[tokio::test]
async fn enrolled_pods_start_behind_a_gate_that_was_installed_before() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { failure_mode: FailureMode::Gate, ..Installing::default() };
    comes_and_goes(&cp, &installing).await?;
    let _installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("again").await?;
    ns.accepts(&deployment("weather", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather-runtime", "weather")).await?;
    settled(&ns, "weather", true).await
}

/// Where trust is enforced, agents start once they are cut off: in a namespace that was there before as in one that comes later.
#[tokio::test]
async fn agents_start_where_trust_is_enforced_by_an_installation_that_was_there_before() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    comes_and_goes(&cp, &Installing::default()).await?;
    let _installation = Installation::start(&cp, &Installing::default()).await?;
    for at in ["one", "another"] {
        let ns = cp.namespace_with(at, &[(SWITCH, "enforced")]).await?;
        ns.accepts(&agent("a")).await?;
        running(&ns, "a").await.context(at)?;
    }
    Ok(())
}

/// What the policies go by is in the operator's own namespace, which is not among those that are served.
#[tokio::test]
async fn agents_start_where_trust_is_enforced_and_only_listed_namespaces_are_served() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let ns = cp.namespace_with("served", &[(SWITCH, "enforced")]).await?;
    let installing = Installing { namespaces: ns.name().to_owned(), ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    ns.accepts(&agent("a")).await?;
    running(&ns, "a").await?;
    Ok(())
}
