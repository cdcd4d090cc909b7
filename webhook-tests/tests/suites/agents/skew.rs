//! While the operator is updated: the policies of the new version are in force, and the older one still leads. What it makes is refused, and tried
//! again without a word that would frighten anybody; what stands is kept up; and once the new one leads everything is made.
//!
//! Both sides are tried with a real process: once it is the older one, under policies that look for another mark; once it is the newer one, and the older
//! one is played, which knows of no mark.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent;
use drawbridge::api::refusal;
use drawbridge::controllers::scaffold::plan::UNMADE;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Mark, Objects, Options, Requests, TestNamespace, installation, wait_for,
};

use super::marks::{POLICY, carriers, copied, ours, set_mark, tries_within, until_tried};
use super::stage::{CONTROLLERS, agent, condition, image, ready};

/// What the policy looks for from now on.
async fn looks_for(cp: &ControlPlane, value: &str) -> Result<()> {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    let selector = json!({"matchLabels": {keys::LABEL_POLICY_PARAMETER: value}});
    let patch = json!({"spec": {"paramRef": {"selector": selector}}});
    bindings.patch(POLICY, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// The Lease says that this one holds it.
async fn led_by(cp: &ControlPlane, holder: &str, seconds: u32) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let patch = json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}});
    leases.patch(keys::LEASE, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Creates of Services and Deployments by our account that were refused.
async fn refused(cp: &ControlPlane, ns: &TestNamespace, mark: Mark) -> Result<Requests> {
    let is = |request: &webhook_tests::Request| {
        ["services", "deployments"].contains(&request.resource.as_str())
            && request.code == Some(422)
            && !request.uri.contains("dryRun")
    };
    Ok(cp.audit().settled(mark).await?.by(CONTROLLERS).in_namespace(ns.name()).filter(is))
}

/// Warnings of that namespace.
async fn warnings(ns: &TestNamespace) -> Result<Vec<String>> {
    let events = ns.api::<Event>().list(&ListParams::default()).await?.items;
    let ours = |event: &&Event| {
        event.type_.as_deref() == Some("Warning") && event.involved_object.kind.as_deref() == Some("Agent")
    };
    Ok(events.iter().filter(ours).map(|event| format!("{:?}: {:?}", event.reason, event.message)).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_version_makes_under_newer_policies_waits_quietly_for_the_new_one() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let controllers = installation.controllers.first().context("controllers")?;
    let ns = cp.namespace("skew").await?;
    let agents: Api<Agent> = ns.api();
    ns.accepts(&agent("first", &json!({}))).await?;
    wait_for(&agents, "first", ready).await?;
    let ours = ours(&cp, &ns).await?;
    // What stands already under its name: policies are asked before the API server finds that out.
    // The Service, since another policy compares the image of a Deployment and may be the one that answers.
    let [_, probe] = copied(&ns, "first", &agents.get("first").await?).await?;

    // Our process is the older one: it puts on a mark that the policies in force do not look for.
    looks_for(&cp, "later").await?;
    in_force(&ours, &probe, true).await?;
    let (mark, begun, said) = (cp.audit().mark()?, Instant::now(), controllers.log().len());
    ns.accepts(&agent("second", &json!({}))).await?;
    let patch = json!({"spec": {"imageSource": {"image": "example.com/weather:v2"}}});
    agents.patch("first", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let follows = |deployment: &Deployment| image(deployment) == "example.com/weather:v2";
    wait_for(&ns.api::<Deployment>(), "first", follows).await.context("what stands is kept up")?;
    let waits = |agent: &Agent| condition(agent, "Ready") == "False/DeploymentNotReady";
    let message = |agent: &Agent| serde_json::to_string(&agent.status).unwrap_or_default();
    let told = wait_for(&agents, "second", |agent: &Agent| {
        waits(agent) && message(agent).contains("once the new version leads")
    });
    told.await.context("it says what it waits for")?;
    let most = tries_within(begun.elapsed()).max(5);
    let tries = refused(&cp, &ns, mark).await?;
    ensure!((3..=most).contains(&tries.len()), "after 1, 2 and 4 s: {tries}");
    let warned = warnings(&ns).await?;
    ensure!(warned.is_empty(), "{warned:#?}");
    let log = controllers.log()[said..].to_owned();
    let loud: Vec<_> = log.lines().filter(|line| ["WARN", "ERROR"].iter().any(|level| line.contains(level))).collect();
    ensure!(loud.is_empty(), "{loud:#?}");
    let metrics = controllers.metrics().await?;
    let early = metrics.sum("drawbridge_controller_writes_total", &[("controller", "agent"), ("result", "early")]);
    ensure!(early > 2.5, "{early}");

    // The new version leads, whose policies they are.
    controllers.stop(patience()).await?;
    looks_for(&cp, keys::POLICY_PARAMETER).await?;
    in_force(&ours, &probe, false).await?;
    let mark = cp.audit().mark()?;
    controllers.start_again()?;
    wait_for(&agents, "second", ready).await?;
    let tries = refused(&cp, &ns, mark).await?;
    ensure!(tries.is_empty(), "it goes on at once: {tries}");

    // The other way round: an older version, which knows of no mark, leads while our process waits for the Lease.
    controllers.stop(patience()).await?;
    for name in carriers(&ns).await? {
        set_mark(&agents, &name, false).await?;
    }
    led_by(&cp, "older", 3600).await?;
    controllers.start_again()?;
    controllers.ready().await?;
    // It names the image that is copied below: another policy compares that, and either may be the one that answers.
    let third = json!({"spec": {"imageSource": {"image": "example.com/weather:v2"}}});
    ns.accepts(&agent("third", &third)).await?;
    let finalizer = json!({"metadata": {"finalizers": [keys::FINALIZER_AGENT]}});
    let by_older: Api<Agent> = Api::namespaced(ours.client(), ns.name());
    by_older.patch("third", &PatchParams::default(), &Patch::Merge(&finalizer)).await?;
    let third = agents.get("third").await?;
    for mut object in copied(&ns, "first", &third).await? {
        until_tried(&ours, &object, false).await?;
        object["metadata"]["resourceVersion"] = json!(UNMADE);
        let status = ours.apply_one(&object, false).await?.result.err().context("made under the new policies")?;
        // By that every version knows that it may try again, and says nothing on the Agent yet.
        ensure!(refusal::is_of_the_moment(&status) && refusal::is_unheard(&status), "{}", status.message);
    }
    let mut standing = json!({"spec": {"replicas": 2}});
    standing["metadata"] = json!({"annotations": {"agent.kagenti.dev/older": "true"}});
    let deployments: Api<Deployment> = Api::namespaced(ours.client(), ns.name());
    deployments
        .patch("second", &PatchParams::default(), &Patch::Merge(&standing))
        .await
        .context("what stands is kept up")?;
    ensure!(carriers(&ns).await?.is_empty(), "whoever does not lead marks nothing");
    led_by(&cp, "", 1).await?;
    wait_for(&agents, "third", ready).await?;
    ensure!(carriers(&ns).await? == ["third"], "one mark, where something was to be made");
    let warned = warnings(&ns).await?;
    ensure!(warned.is_empty(), "{warned:#?}");
    policies_that_stay_behind(&cp).await
}

/// A new version under the policies of one from before the mark, as where only the image of a Deployment was changed: nobody may put the mark on, and
/// nobody looks for it.
async fn policies_that_stay_behind(cp: &ControlPlane) -> Result<()> {
    const KINDS: &str = "drawbridge-own-kinds";
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cp.client().await?);
    let kinds = serde_json::to_value(policies.get(KINDS).await?)?;
    let validations = kinds["spec"]["validations"].as_array().context("validations")?;
    let allowed = format!("k == '{}'", keys::LABEL_POLICY_PARAMETER);
    let at = validations.iter().position(|one| one["expression"].as_str().is_some_and(|text| text.contains(&allowed)));
    let at = at.context("who may write the label")?;
    let before = validations[at]["expression"].as_str().unwrap_or_default().replace(&allowed, "false");
    let before = json!([{"op": "replace", "path": format!("/spec/validations/{at}/expression"), "value": before}]);
    policies.patch(KINDS, &PatchParams::default(), &Patch::Json::<()>(serde_json::from_value(before)?)).await?;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    let every = json!([{"op": "replace", "path": "/spec/paramRef/selector", "value": {}}]);
    bindings.patch(POLICY, &PatchParams::default(), &Patch::Json::<()>(serde_json::from_value(every)?)).await?;

    let ns = cp.namespace("skew-behind").await?;
    let agents: Api<Agent> = ns.api();
    let paused = json!({"metadata": {"annotations": {keys::ANNOTATION_PAUSED: "true"}}});
    ns.accepts(&agent("tried", &paused)).await?;
    let ours: Api<Agent> = Api::namespaced(ours(cp, &ns).await?.client(), ns.name());
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let label = json!({"metadata": {"labels": {keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER}}});
    let refused = async {
        while ours.patch("tried", &params, &Patch::Merge(&label)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(patience(), refused).await.context("the older policy is not in force")?;
    ns.accepts(&agent("made", &json!({}))).await?;
    wait_for(&agents, "made", ready).await?;
    ensure!(carriers(&ns).await?.is_empty());
    Ok(())
}

/// Waits until the policy in force finds no mark in the namespace, or finds one.
async fn in_force(ours: &Objects, standing: &Value, refuses: bool) -> Result<()> {
    let trying = async {
        loop {
            let status = ours.create(standing, true).await?.result.err().context("a second one of that name")?;
            if refusal::is_unheard(&status) == refuses {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(patience(), trying).await.context("the policy is not in force")?
}
