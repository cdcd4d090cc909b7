//! The last act of `make demo WITH=spire`: an agent is put into quarantine, and released.

use anyhow::Result;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use webhook_tests::{Access, wait_for, wait_gone};

use super::{drawbridge, kubectl, say, step, tell};

const AGENT: &str = "agent/weather-agent";
const POLICY: &str = "drawbridge-quarantine";

/// Into quarantine and out, with the policies and the status in between.
pub(super) async fn show(access: &Access, namespace: &str) -> Result<()> {
    let policies: Api<NetworkPolicy> = Api::namespaced(access.client().await?, namespace);
    step(
        "its token has leaked: nobody is let in to the agent or out of it any more, its card notwithstanding, and no Pod of it is made",
    )?;
    let reason = ["quarantine", AGENT, "-n", namespace, "--reason", "token leaked"];
    say(&drawbridge(access, &reason).await?)?;
    wait_for(&policies, POLICY, |_| true).await?;
    tell(&kubectl(access, &["get", "pods", "-n", namespace, "-L", "agent.kagenti.dev/quarantined"], "").await?)?;
    say(&drawbridge(access, &["status", "-n", namespace]).await?)?;
    step("and released: what was before holds again")?;
    say(&drawbridge(access, &["release", AGENT, "-n", namespace]).await?)?;
    wait_gone(&policies, POLICY).await?;
    tell(&kubectl(access, &["get", "networkpolicies", "-n", namespace], "").await?)
}
