//! A Pod that signs its card when it starts: what the webhook put into it is run as it is there, with the SVID of the real SPIRE and the token of the Pod's
//! account, and the AgentCard is verified by what it published.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::{ControlPlane, Installation, Installing, Options, household, programs, wait_for};

use super::cards_cluster::{DOMAIN, NAME, account, agent, card, is, service};

/// What a Pod sees of its account, in a place of its own, and then the program; both folders and the program are arguments.
const IN_POD: &str = r#"mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount \
  && cp "$1"/token "$1"/ca.crt "$1"/namespace /run/secrets/kubernetes.io/serviceaccount/ && shift && exec "$@""#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_signs_its_card_when_it_starts_and_publishes_it_by_its_own_account() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let spire = Spire::start(SpireOptions { trust_domain: DOMAIN.to_owned(), ..SpireOptions::default() }).await?;
    let bundles = cp.namespace("bundles").await?;
    let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spire-bundle"},
        "data": {"bundle.spiffe": spire.bundle(BundleForm::Spiffe)?}});
    bundles.accepts(&bundle).await?;
    let platform = format!(
        "cards: {{audit: false, minimumPeriodSeconds: 5, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: spire-bundle, namespace: {}}}}}}}\n",
        bundles.name()
    );
    let _installation = Installation::start(&cp, &Installing { platform, ..Installing::default() }).await?;
    let ns = cp.namespace("signing").await?;
    // The program of the test runs as root.
    spire.entitle(&spire.account(ns.name(), "weather"), 0)?;
    let mut deployment = agent();
    deployment["spec"]["template"]["metadata"] = json!({
        "labels": {"app": NAME, "kagenti.io/type": "agent"},
        "annotations": {"agentcard.kagenti.dev/sign": "true"},
    });
    for object in [account(), service(), deployment] {
        ns.accepts(&object).await?;
    }
    let made = wait_for(&ns.api::<ConfigMap>(), &format!("{NAME}-card-signed"), |_| true).await?;
    ensure!(made.data.is_none(), "{made:?}");
    let signer = signer(&ns).await?;

    let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
    let path = |name: &str| folder.path().join(name);
    let unsigned =
        json!({"name": "Weather", "version": "1.0.0", "skills": [{"id": "echo"}], "protocolVersion": "0.3.0"});
    std::fs::write(path("agent.json"), unsigned.to_string())?;
    let asked = TokenRequest {
        spec: TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() },
        ..TokenRequest::default()
    };
    let token = ns.api::<ServiceAccount>().create_token_request("weather", &PostParams::default(), &asked).await?;
    std::fs::write(path("token"), token.status.context("a token")?.token)?;
    std::fs::write(path("ca.crt"), cp.authority())?;
    std::fs::write(path("namespace"), ns.name())?;
    let port = cp.server().rsplit(':').next().unwrap_or_default().to_owned();
    let mut command = tokio::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", IN_POD, "sh"]);
    command.arg(folder.path()).arg(programs::workspace("drawbridge")?);
    command.args(signer["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
    for variable in signer["env"].as_array().into_iter().flatten() {
        let value = variable["value"].as_str().unwrap_or(ns.name());
        command.env(variable["name"].as_str().unwrap_or_default(), value);
    }
    command.env("SPIFFE_ENDPOINT_SOCKET", format!("unix://{}", spire.socket().display()));
    command.env("UNSIGNED_CARD_PATH", path("agent.json")).env("AGENT_CARD_PATH", path("out/agent-card.json"));
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", port);
    let output = command.stdin(Stdio::null()).output().await?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && log.contains("the signed card is published"), "{log}");

    let written: Value = serde_json::from_slice(&std::fs::read(path("out/agent-card.json"))?)?;
    ensure!(written["protocolVersion"] == "0.3.0", "case 145: {written}");
    let signed = ns.api::<ConfigMap>().get(&format!("{NAME}-card-signed")).await?;
    ensure!(signed.uid() == made.uid() && signed.owner_references() == made.owner_references(), "{signed:?}");
    let good = card(&ns, "verified", |card| is(card, "Verified", "True")).await?;
    ensure!(good["status"]["cardSource"] == "ConfigMap" && good["status"]["card"]["name"] == "Weather", "{good:#}");
    Ok(())
}

/// The init container that the webhook put into the agent's Pod.
async fn signer(ns: &webhook_tests::TestNamespace) -> Result<Value> {
    let named = |pod: &Pod| {
        let mut inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        inits.find(|container| container.name == "sign-agentcard").cloned()
    };
    let config = kube::runtime::watcher::Config::default();
    let pods: kube::Api<Pod> = ns.api();
    let pods = webhook_tests::wait_until(&pods, config, |all| all.values().any(|pod| named(pod).is_some()));
    let found = pods.await?.iter().find_map(named).context("the signer")?;
    Ok(serde_json::to_value(found)?)
}
