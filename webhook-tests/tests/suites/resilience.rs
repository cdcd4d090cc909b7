//! Losing replicas, with the real binary behind a balancer that plays kube-proxy: killed, rolled, all away.
//!
//! The judge is the API server: its counts of webhook calls that failed, and the Pods it stored. What was in flight on
//! an instance when it was killed cannot be saved (see `webhook_tests::endurance::judge`). Nothing else may fail.

#![allow(clippy::print_stdout, reason = "what a run has cost is its result, shown with --nocapture")]

use std::time::Duration;

use anyhow::{Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::endurance::chaos::{Chaos, RATE};
use webhook_tests::endurance::load::{Fate, Load, gated, injected, pod};
use webhook_tests::endurance::quiet::{Length, Quiet};
use webhook_tests::endurance::{counted, soak, until_created};
use webhook_tests::patience::patience;
use webhook_tests::{BalancerOptions, Installation, Installing, Options, installation, trial, wait_for, wait_until};

/// Each of these keeps a small machine busy; together they would measure each other.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn workload(kind: &str, name: &str) -> Value {
    let mut template = pod(Some(name));
    template["metadata"].as_object_mut().unwrap().remove("name");
    let mut template = json!({ "metadata": template["metadata"], "spec": template["spec"] });
    let selector = json!({ "matchLabels": { "app": name } });
    let (api, spec) = match kind {
        "Job" => {
            template["spec"]["restartPolicy"] = "Never".into();
            ("batch/v1", json!({ "backoffLimit": 0, "template": template }))
        }
        "StatefulSet" => ("apps/v1", json!({ "serviceName": name, "selector": selector, "template": template })),
        _ => ("apps/v1", json!({ "selector": selector, "template": template })),
    };
    json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The short form of `make chaos`: two kills, and whatever else is enough.
async fn chaos(failure_mode: FailureMode) -> Result<()> {
    let _turn = TURN.lock().await;
    let (duration, kill_every) = (Duration::from_secs(12), Duration::from_secs(5));
    println!("{}", Chaos { failure_mode, duration, kill_every }.run().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d2_killed_replicas_under_rotation_cost_only_what_was_in_flight() -> Result<()> {
    chaos(FailureMode::Fail).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d2_killed_replicas_in_gate_mode_leave_only_what_was_in_flight_behind_the_gate() -> Result<()> {
    chaos(FailureMode::Gate).await
}

/// The short form of `make soak`; it is light enough to run beside the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d17_files_and_tasks_stay_flat_under_everyday_work() -> Result<()> {
    println!("{}", soak::run(Duration::from_secs(trial::size(12, 60) as u64)).await?);
    Ok(())
}

/// The short form of `make test-quiet`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_03_what_is_left_alone_is_quiet_and_what_happens_at_last_is_answered_at_once() -> Result<()> {
    println!("{}", Quiet { length: Length::Renewals(2), times: 1, period: 6, lease: 20 }.run().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d2_d3_a_rolling_restart_costs_nothing_and_losing_all_replicas_costs_only_enrolled_pods() -> Result<()> {
    let _turn = TURN.lock().await;
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing {
        webhooks: 2,
        // Longer than whoever plays kube-proxy needs to notice, on a crowded machine, too.
        flags: vec!["--drain-delay=6s".to_owned()],
        // New connections still arrive for a while after the instance has said that it is leaving.
        balancer: BalancerOptions { endpoint_delay: Duration::from_millis(500), ..BalancerOptions::default() },
        ..Installing::default()
    };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("rolling").await?;
    let client = ns.client();
    until_created(&ns, injected).await?;

    let before = counted(&client).await?;
    let load = Load::start(&ns, RATE);
    for webhook in &installation.webhooks {
        let ended = webhook.stop(patience()).await?;
        ensure!(ended.success(), "a drain ended with {ended}:\n{}", webhook.log());
        installation.balancer.wait_for_endpoints(1).await?;
        webhook.start_again()?;
        webhook.ready().await?;
        installation.balancer.wait_for_endpoints(2).await?;
    }
    let deadline = tokio::time::Instant::now() + patience();
    while load.stored() < 100 {
        ensure!(tokio::time::Instant::now() < deadline, "only {} Pods were stored", load.stored());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let tally = load.end().await?;
    let (balancer, refused) = (&installation.balancer, &tally.refused);
    let (lost, unserved) = (balancer.losses(), balancer.unserved());
    ensure!(refused.is_empty(), "refused: {refused:#?}; lost: {lost:#?}; {unserved} connections found no endpoint");
    let protected = tally.with(Fate::Protected).len();
    ensure!(protected == tally.stored.len(), "{protected} protected of {:?}", tally.stored);
    assert_eq!(counted(&client).await?, before, "counted by the API server");

    // Nobody is left: whoever is not enrolled does not notice, and the judge's counts do move.
    for webhook in &installation.webhooks {
        webhook.kill().await;
    }
    let refused = ns.rejects(&pod(Some("enrolled"))).await?;
    assert!(refused.message.contains(keys::WEBHOOK_INJECT), "{}", refused.message);
    let mut other = pod(Some("other"));
    other["metadata"]["labels"].as_object_mut().unwrap().remove(keys::LABEL_TYPE);
    ns.accepts(&other).await?;
    assert_eq!(counted(&client).await?, (before.0 + 1.0, before.1), "counted by the API server");
    Ok(())
}

/// The answer to a change of a Pod that must not be made.
async fn refused(pods: &Api<Pod>, name: &str, change: &Value) -> Result<String> {
    match pods.patch(name, &PatchParams::default(), &Patch::Merge(change)).await {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("{change} was accepted"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d3_behind_the_gate_nothing_runs_unprotected_and_all_that_has_a_controller_comes_back() -> Result<()> {
    let _turn = TURN.lock().await;
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { failure_mode: FailureMode::Gate, webhooks: 2, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("gated").await?;
    let pods: Api<Pod> = ns.api();
    until_created(&ns, |pod| injected(pod) && !gated(pod)).await?;

    for webhook in &installation.webhooks {
        webhook.kill().await;
    }
    installation.balancer.wait_for_endpoints(0).await?;
    until_created(&ns, gated).await?;
    let before = counted(&ns.client()).await?;
    for (kind, name) in [("Deployment", "web"), ("StatefulSet", "store"), ("Job", "once")] {
        ns.accepts(&workload(kind, name)).await?;
    }
    ns.accepts(&pod(Some("bare"))).await?;
    let waiting = |pod: &Pod| gated(pod) && !injected(pod) && phase(pod) == "Pending";
    let all = wait_until(&pods, watcher::Config::default(), |all| all.len() == 4 && all.values().all(waiting)).await?;
    ensure!(all.iter().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())), "bound: {all:?}");
    ensure!(counted(&ns.client()).await?.1 >= before.1 + 4.0, "the API server let them pass without the webhook");
    let told = |event: &Event| {
        event.reason.as_deref() == Some("GatedWithoutController")
            && event.involved_object.name.as_deref() == Some("bare")
    };
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(told)).await?;

    let message = refused(&pods, "bare", &json!({ "spec": { "schedulingGates": null } })).await?;
    ensure!(message.contains(keys::SCHEDULING_GATE), "{message}");

    for webhook in &installation.webhooks {
        webhook.start_again()?;
        webhook.ready().await?;
    }
    installation.balancer.wait_for_endpoints(2).await?;
    for name in ["web", "store"] {
        let ours = watcher::Config::default().labels(&format!("app={name}"));
        let runs = |pod: &Pod| injected(pod) && !gated(pod) && phase(pod) == "Running";
        wait_until(&pods, ours, |all| all.len() == 1 && all.values().all(runs)).await?;
    }
    let over = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
    let job = wait_for(&ns.api::<Job>(), "once", over).await?;
    ensure!(job.status.as_ref().and_then(|status| status.failed).unwrap_or_default() == 0, "failed: {:?}", job.status);
    let ours = watcher::Config::default().labels("app=once");
    wait_until(&pods, ours, |all| all.len() == 1 && all.values().all(|pod| injected(pod) && !gated(pod))).await?;
    ensure!(waiting(&pods.get("bare").await?), "the bare Pod is only reported");

    let web = wait_until(&pods, watcher::Config::default().labels("app=web"), |all| all.len() == 1).await?;
    let name = web[0].name_any();
    let edit = json!({ "metadata": { "annotations": { keys::ANNOTATION_RUNTIME_CONFIG: "mode: waypoint" } } });
    let message = refused(&pods, &name, &edit).await?;
    ensure!(message.contains(keys::ANNOTATION_RUNTIME_CONFIG), "{message}");
    // Every other change of the same Pod is the user's business.
    let edit = json!({ "metadata": { "annotations": { "example.com/seen": "yes" } } });
    pods.patch(&name, &PatchParams::default(), &Patch::Merge(&edit)).await?;
    Ok(())
}

/// Somebody takes both webhook configurations away, and later puts them back from the manifests, which know no caBundle. Nobody but
/// that somebody makes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_without_the_webhook_configuration_the_next_pod_is_nobody_s_and_with_it_ours_again() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let (ns, client) = (cp.namespace("configuration").await?, cp.client().await?);
    until_created(&ns, injected).await?;
    let (mark, pids) =
        (cp.audit().mark()?, [&installation.webhooks[0], &installation.controllers[0]].map(|one| one.pid()));
    let gone = DeleteParams::default();
    Api::<MutatingWebhookConfiguration>::all(client.clone()).delete(keys::WEBHOOK_CONFIGURATION, &gone).await?;
    Api::<ValidatingWebhookConfiguration>::all(client.clone()).delete(keys::WEBHOOK_CONFIGURATION, &gone).await?;
    until_created(&ns, |pod| !injected(pod)).await?;
    // The Pods that there are, and those to come, are told apart by what they carry, not by a memory of the configuration.
    ns.accepts(&pod(Some("meanwhile"))).await?;
    let made = ns.api::<Pod>().get("meanwhile").await?;
    ensure!(!injected(&made) && !made.annotations().contains_key(keys::ANNOTATION_STATUS), "{made:?}");
    let everything = installation.balancer.address().port();
    installation::apply(&cp.objects().await?, FailureMode::Fail, everything).await?;
    until_created(&ns, injected).await?;
    ns.accepts(&pod(Some("afterwards"))).await?;
    ensure!(injected(&ns.api::<Pod>().get("afterwards").await?));
    let ours = cp.audit().settled(mark).await?.writes().resource("mutatingwebhookconfigurations");
    let ours = ours.filter(|write| write.user.contains(":drawbridge-") && write.verb != "patch");
    ensure!(ours.is_empty(), "we make no configuration: {ours}");
    let still = [&installation.webhooks[0], &installation.controllers[0]].map(|one| one.pid());
    ensure!(still == pids, "a process was restarted");
    Ok(())
}
