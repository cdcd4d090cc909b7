//! A policy that goes is told: the API server asks nobody when one is deleted.

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher;
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::patience;
use webhook_tests::{Drawbridge, Installation, Installing, Options, installation, wait_until};

const LOST: &str = "drawbridge-own-webhooks";

async fn counts(process: &Drawbridge, part: &str, wanted: f64) -> Result<()> {
    let begun = Instant::now();
    loop {
        let metrics = process.metrics().await?;
        let found = metrics.select("drawbridge_policies_missing", &[("part", part)]).next().map(|sample| sample.value);
        if found == Some(wanted) {
            return Ok(());
        }
        ensure!(begun.elapsed() < patience(), "{part}: {found:?}, not {wanted}:\n{}", process.log());
        sleep(Duration::from_millis(20)).await;
    }
}

/// What is replaced within two seconds is no loss, so that a loss is told after them.
async fn says(process: &Drawbridge, text: &str) -> Result<()> {
    let begun = Instant::now();
    while !process.log().contains(text) {
        ensure!(begun.elapsed() < patience(), "{}", process.log());
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test]
async fn mend_14_a_lost_policy_is_counted_logged_and_told_and_so_is_its_return() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { failure_mode: FailureMode::Gate, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let client = cp.client().await?;
    let processes = || installation.webhooks.iter().chain(&installation.controllers);
    for process in processes() {
        counts(process, "Policy", 0.0).await?;
        counts(process, "Binding", 0.0).await?;
    }
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(client.clone());
    let policies = Api::<ValidatingAdmissionPolicy>::all(client.clone());
    let mut kept = bindings.get(LOST).await?;
    bindings.delete(LOST, &DeleteParams::default()).await?;
    policies.delete(LOST, &DeleteParams::default()).await?;
    for process in processes() {
        counts(process, "Policy", 1.0).await?;
        counts(process, "Binding", 1.0).await?;
        for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
            says(process, &format!("{kind} {LOST} is gone")).await?;
        }
    }
    let events = Api::<Event>::namespaced(client, keys::OPERATOR_NAMESPACE);
    let both = |all: &std::collections::BTreeMap<String, Event>| {
        let told = all.values().filter(|event| event.reason.as_deref() == Some("PolicyMissing"));
        let told: Vec<_> = told.filter_map(|event| event.message.as_deref()).collect();
        told.iter().any(|text| text.starts_with("ValidatingAdmissionPolicy "))
            && told.iter().any(|text| text.starts_with("ValidatingAdmissionPolicyBinding "))
    };
    let all = wait_until(&events, watcher::Config::default(), both).await.context("Events")?;
    for event in all.iter().filter(|event| event.reason.as_deref() == Some("PolicyMissing")) {
        ensure!(event.reporting_component.as_deref() == Some(keys::MANAGER_POLICIES), "{event:?}");
    }
    // What puts the gate on Pods is no less a guard, of the controllers.
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        for process in &installation.controllers {
            counts(process, if kind.ends_with("binding") { "MutatingBinding" } else { "MutatingPolicy" }, 0.0).await?;
        }
        let gone = cp.kubectl(cp.admin(), &["delete", kind, keys::GATE], "").await?;
        ensure!(gone.success, "{gone:?}");
    }
    for process in &installation.controllers {
        counts(process, "MutatingPolicy", 1.0).await?;
        counts(process, "MutatingBinding", 1.0).await?;
    }
    // Put on again under the same name, without what the API server wrote.
    kept.metadata = kube::core::ObjectMeta {
        name: kept.metadata.name.take(),
        labels: kept.metadata.labels.take(),
        ..Default::default()
    };
    bindings.create(&Default::default(), &kept).await?;
    for process in processes() {
        counts(process, "Binding", 0.0).await?;
        counts(process, "Policy", 1.0).await?;
    }
    // Who starts now finds it missing, and says so where people look.
    for process in &installation.controllers {
        process.stop(patience()).await?;
        process.start_again()?;
        process.ready().await?;
    }
    let absent = |event: &Event| {
        let about = format!("ValidatingAdmissionPolicy {LOST}: not installed");
        event.message.as_deref().is_some_and(|text| text.starts_with(&about))
    };
    let told = wait_until(&events, watcher::Config::default(), |all| all.values().any(absent));
    told.await.context("an Event about what was missing at the start")?;
    Ok(())
}
