//! What a change of configuration on its way through a fleet tells, what the loss of an admission policy tells, and by which words kinds are
//! found: beside what a real API server does.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::cli::render::platform;
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher;
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::{lease, patience};
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Options, TestNamespace, installation, programs, wait_until,
};

use super::enrolment::{art, deployment};

/// More than roll at once, so that some wait.
const WORKLOADS: usize = 7;

fn name(number: usize) -> String {
    format!("agent-{number}")
}

/// Waits until so many AgentRuntimes say that of a condition.
async fn say(ns: &TestNamespace, least: usize, type_: &str, wanted: &str) -> Result<()> {
    let holds = |runtime: &AgentRuntime| {
        let conditions = runtime.status.iter().flat_map(|status| &status.conditions);
        let mut of_type = conditions.filter(|one| one.type_ == type_);
        of_type.any(|one| format!("{}/{}", one.status, one.reason) == wanted)
    };
    let api = ns.api::<AgentRuntime>();
    let said = wait_until(&api, watcher::Config::default(), |all| {
        all.values().filter(|runtime| holds(runtime)).count() >= least
    });
    said.await.with_context(|| format!("{type_} is not {wanted} {least} times"))?;
    Ok(())
}

/// Waits until a process says that in its log.
async fn logs(process: &Drawbridge, words: &str) -> Result<()> {
    let begun = Instant::now();
    while !process.log().contains(words) {
        ensure!(begun.elapsed() < patience(), "no line says {words:?}:\n{}", process.log());
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Waits for an Event with that reason about an object of that kind, in a namespace.
async fn event(cp: &ControlPlane, namespace: &str, kind: &str, reason: Reason) -> Result<()> {
    let events = Api::<Event>::namespaced(cp.client().await?, namespace);
    let told = |event: &Event| {
        event.reason.as_deref() == Some(reason.code()) && event.involved_object.kind.as_deref() == Some(kind)
    };
    let found = wait_until(&events, watcher::Config::default(), |all| all.values().any(told)).await;
    found.with_context(|| format!("no Event {} about a {kind}", reason.code()))?;
    Ok(())
}

/// The platform file that `render` ships, and more lines, as the kubelet would put it there.
fn configure(installation: &Installation, more: &str) -> Result<()> {
    let (file, new) = (installation.settings().join("config.yaml"), installation.settings().join("new"));
    std::fs::write(&new, format!("{}rollout: {{delaySeconds: 2}}\n{more}", platform::platform_file()))?;
    Ok(std::fs::rename(new, file)?)
}

/// Its new Pods are refused for want of room, so that rollouts fail; once there is room again, all of them end.
#[tokio::test]
async fn answers_08_a_wave_that_halts_and_goes_on_is_told_in_the_log_and_on_who_waits() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("waves").await?;
    configure(&installation, "")?;
    for number in 0..WORKLOADS {
        let mut web = deployment(&name(number), 1);
        // Short, but longer than a Pod takes that has room: four seconds, and as much longer as the machine is slower.
        web["spec"]["progressDeadlineSeconds"] = json!(lease().as_secs());
        ns.accepts(&web).await?;
        ns.accepts(&art(&name(number), "Deployment", &name(number), json!({}))).await?;
    }
    say(&ns, WORKLOADS, "Protected", "True/Protected").await?;
    let leader = &installation.controllers[0];

    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}});
    ns.accepts(&quota).await?;
    ns.until_full("full").await?;
    configure(&installation, "proxy: {uid: 2000}\n")?;
    logs(leader, "a change of configuration is being rolled").await?;
    logs(leader, "the wave halts").await?;
    say(&ns, 2, "Ready", "False/RolloutHalted").await?;
    event(&cp, ns.name(), "AgentRuntime", Reason::RolloutHalted).await?;

    ns.api::<ResourceQuota>().delete("full", &DeleteParams::default()).await?;
    logs(leader, "the wave goes on").await?;
    logs(leader, "the wave is over").await?;
    say(&ns, WORKLOADS, "Protected", "True/Protected").await?;

    policies(&cp, &installation).await
}

/// Row 5 of policies: a binding that goes is counted, logged and told, and comes back by the same manifests.
async fn policies(cp: &ControlPlane, installation: &Installation) -> Result<()> {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    bindings.delete("drawbridge-agent-pods", &DeleteParams::default()).await?;
    let words = "ValidatingAdmissionPolicyBinding drawbridge-agent-pods is gone";
    let process = installation.controllers.first().context("a process")?;
    let begun = Instant::now();
    while process.metrics().await?.sum("drawbridge_policies_missing", &[]) < 1.0 {
        ensure!(begun.elapsed() < patience(), "the binding that is gone is not counted:\n{}", process.log());
        sleep(Duration::from_millis(50)).await;
    }
    event(cp, keys::OPERATOR_NAMESPACE, "Deployment", Reason::PolicyMissing).await?;
    let said = |process: &Drawbridge| {
        process.log().contains(words) && process.log().contains("apply what `drawbridge render` prints")
    };
    let processes = || installation.webhooks.iter().chain(&installation.controllers);
    while !processes().any(said) {
        ensure!(begun.elapsed() < patience(), "no process says {words:?}");
        sleep(Duration::from_millis(50)).await;
    }
    let mut status = tokio::process::Command::new(programs::workspace("drawbridge")?);
    status.args(["status", "-A", "--kubeconfig"]).arg(cp.admin().kubeconfig());
    let status = status.output().await?;
    let (text, code) = (String::from_utf8_lossy(&status.stdout), status.status.code());
    let leads =
        text.lines().next().is_some_and(|line| line.contains("drawbridge-agent-pods") && line.contains("What to do: "));
    ensure!(leads && code == Some(1), "{code:?} {text}");
    Ok(())
}

#[tokio::test]
async fn answers_15_kinds_are_found_by_category_and_short_name_with_the_column_that_matters() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("columns").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    say(&ns, 1, "Protected", "True/Protected").await?;
    for word in ["kagenti", "art", "agentrt"] {
        let found = cp.kubectl(cp.admin(), &["get", word, "-n", ns.name()], "").await?;
        let head = found.stdout.lines().next().unwrap_or_default();
        ensure!(found.success && head.contains("PROTECTED") && found.stdout.contains("weather"), "{word}: {found:?}");
    }
    for (word, kind) in [("agb", "AgentBuild"), ("cards", "AgentCard")] {
        let explained = cp.kubectl(cp.admin(), &["explain", word], "").await?;
        ensure!(
            explained.success && explained.stdout.contains(&format!("KIND:       {kind}")),
            "{word}: {explained:?}"
        );
    }
    Ok(())
}
