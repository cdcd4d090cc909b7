//! What is said ahead of the switch, and what holds after it: the same cluster asked before and after, by somebody who only looks.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::process::Command;
use webhook_tests::{Installation, Installing, Options, installation, programs, wait_for, wait_gone};

use super::*;

/// What a command prints as JSON, and its exit code.
pub(super) async fn asked(cp: &ControlPlane, args: &[&str]) -> Result<(Value, Option<i32>)> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(args).args(["-o", "json", "--kubeconfig"]).arg(cp.admin().kubeconfig()).kill_on_drop(true);
    let output = command.output().await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).with_context(|| format!("{args:?}: {words}"))?;
    Ok((answer, output.status.code()))
}

async fn switched(cp: &ControlPlane, ns: &TestNamespace, level: &str) -> Result<()> {
    let label = json!({"metadata": {"labels": {SWITCH: level}}});
    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    namespaces.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&label)).await?;
    Ok(())
}

/// From and to of everything that a preview says is cut, or opened.
fn pairs(preview: &Value, what: &str) -> Vec<(String, String)> {
    let name = |change: &Value, end: &str| change[end]["name"].as_str().unwrap_or_default().to_owned();
    let changes = preview["changes"].as_array().into_iter().flatten();
    changes.filter(|change| !change[what].is_null()).map(|change| (name(change, "from"), name(change, "to"))).collect()
}

#[tokio::test]
async fn what_the_preview_says_is_cut_is_cut_once_the_namespace_enforces() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("ahead").await?;
    for name in ["one", "two"] {
        ns.accepts(&agent(name)).await?;
        running(&ns, name).await?;
    }
    let (from, to) = (format!("{}/deployment/one", ns.name()), format!("{}/deployment/two", ns.name()));
    let reach = ["explain", "reach", &from, &to];
    let (answer, code) = asked(&cp, &reach).await?;
    ensure!(code == Some(0), "nothing is enforced: {code:?} {answer:#}");

    let (preview, _) = asked(&cp, &["policy", "preview", "-n", ns.name()]).await?;
    let both = pairs(&preview, "cut");
    ensure!(
        [("one", "two"), ("two", "one")].iter().all(|(from, to)| both.contains(&((*from).into(), (*to).into()))),
        "{preview:#}"
    );
    let mine = policies(&ns).list(&kube::api::ListParams::default()).await?;
    ensure!(mine.items.is_empty(), "a preview writes nothing: {mine:?}");

    switched(&cp, &ns, "enforced").await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let (answer, code) = asked(&cp, &reach).await?;
    ensure!(code == Some(1) && answer.to_string().contains(DENY), "{code:?} {answer:#}");
    let (preview, _) = asked(&cp, &["policy", "preview", "-n", ns.name()]).await?;
    ensure!(pairs(&preview, "cut").is_empty(), "it is cut already: {preview:#}");

    let (preview, _) = asked(&cp, &["policy", "preview", "-n", ns.name(), "--trust", "off"]).await?;
    ensure!(pairs(&preview, "opened").contains(&("one".into(), "two".into())), "{preview:#}");
    switched(&cp, &ns, "off").await?;
    // The policies of the agents go after the one that shuts everybody.
    for policy in [DENY, "one-signature-policy", "two-signature-policy"] {
        wait_gone(&policies(&ns), policy).await?;
    }
    let (answer, code) = asked(&cp, &reach).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    doctor_judges_by_the_level(&cp, &installation, &ns).await
}

/// The API server goes by one list where agents are cut off and by another where every Pod is; doctor reads the one that counts.
async fn doctor_judges_by_the_level(cp: &ControlPlane, installation: &Installation, ns: &TestNamespace) -> Result<()> {
    switched(cp, ns, "enforced").await?;
    let namespace = Api::<Namespace>::all(cp.client().await?).get(ns.name()).await?;
    let uid = namespace.uid().context("a uid")?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let names =
        |one: &ServiceAccount| one.annotations().get(keys::ANNOTATION_ARMED).is_some_and(|all| all.contains(&uid));
    wait_for(&accounts, keys::ARMED, names).await?;
    let says = async |words: &str| {
        let (answer, code) = asked(cp, &["doctor", "-n", ns.name()]).await?;
        ensure!(answer.to_string().contains(words), "{code:?} {answer:#}");
        anyhow::Ok(())
    };
    says("cuts off agents that are not verified").await?;
    for process in &installation.controllers {
        process.kill().await;
    }
    switched(cp, ns, "enforced-all").await?;
    says(&format!("annotation {} of ServiceAccount {} does not name", keys::ANNOTATION_ARMED_ALL, keys::ARMED)).await?;
    for process in &installation.controllers {
        process.start_again()?;
        process.ready().await?;
    }
    let names =
        |one: &ServiceAccount| one.annotations().get(keys::ANNOTATION_ARMED_ALL).is_some_and(|all| all.contains(&uid));
    wait_for(&accounts, keys::ARMED, names).await?;
    says("cuts off every Pod but verified agents").await
}
