//! A caBundle that an admission policy lets our controllers not write: tried ever less often, counted, and told of once
//! with who refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::time::{sleep, timeout};
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Mark, Options, Requests, installation, wait_for, wait_until,
};

use super::leadership::{CONTROLLERS, empty, published};

const POLICY: &str = "house-rules";
const WORDS: &str = "only installers change webhooks";
/// So many patches take 6.2 seconds, with pauses that double from 0.2.
const TRIES: usize = 6;

/// An administrator's policy, which names no reason: the controllers change none of our webhook configurations. Waits
/// until it is in force.
async fn freeze(cp: &ControlPlane) -> Result<()> {
    let version = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [keys::WEBHOOK_CONFIGURATION]});
    let expression = format!("request.userInfo.username != '{CONTROLLERS}'");
    let metadata = json!({"name": POLICY});
    let policy = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": WORDS}]}});
    let binding = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]}});
    let objects = cp.objects().await?;
    for object in [policy, binding] {
        objects.apply(&object.to_string()).await?;
    }
    // The one field that our own policies let this account write, tried only.
    let client = cp.service_account(keys::OPERATOR_NAMESPACE, "drawbridge-controllers").await?.client().await?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client);
    let hooks = mutating.get(keys::WEBHOOK_CONFIGURATION).await?.webhooks.unwrap_or_default();
    let mut bundle = hooks[0].client_config.ca_bundle.clone().unwrap_or_default().0;
    bundle.push(b'\n');
    let patch = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ByteString(bundle) }]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let in_force = async {
        loop {
            let answer = mutating.patch(keys::WEBHOOK_CONFIGURATION, &dry_run, &patch).await;
            if answer.is_err_and(|error| error.to_string().contains(WORDS)) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(patience(), in_force).await.context("the policy is never in force")
}

/// The controllers' patches of the configuration that lacks our root, once there are enough.
async fn tries(cp: &ControlPlane, from: Mark) -> Result<Requests> {
    let tried = async {
        loop {
            let requests = cp.audit().since(from)?.by(CONTROLLERS).verb("patch");
            let requests = requests.resource("mutatingwebhookconfigurations");
            if requests.len() >= TRIES {
                return anyhow::Ok(requests);
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(patience(), tried).await.context("it is not tried again")?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_that_a_policy_refuses_is_tried_ever_less_often_and_told_of_with_the_policy() -> Result<()> {
    let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
    let installing = Installing { flags: vec!["--drain-delay=0s".to_owned()], ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let stored = wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, published).await?;
    freeze(&cp).await?;

    let from = cp.audit().mark()?;
    empty(&mutating).await?;
    let patches = tries(&cp, from).await?;
    ensure!(patches.iter().all(|patch| patch.code.is_none_or(|code| code == 422)), "{patches}");
    let (first, last): (Timestamp, Timestamp) = (patches[0].received.parse()?, patches[TRIES - 1].received.parse()?);
    let took = last.as_millisecond() - first.as_millisecond();
    ensure!(took >= 5_000, "{TRIES} patches within {took} ms: {patches}");
    let controllers = &installation.controllers[0];
    let failures = controllers.metrics().await?.sum("drawbridge_bundle_write_failures_total", &[]);
    ensure!(failures > 0.0, "a refusal is a failure");

    let uid = stored.metadata.uid.context("a uid")?;
    let events: Api<Event> = Api::namespaced(cp.client().await?, "default");
    let about = format!("involvedObject.uid={uid},reason={}", Reason::BundleUnpublished.code());
    let about = watcher::Config::default().fields(&about);
    let told = wait_until(&events, about, |all: &BTreeMap<String, Event>| !all.is_empty()).await?;
    let messages: Vec<String> = told.into_iter().filter_map(|event| event.message).collect();
    let names = |message: &String| message.contains(&format!("refused by ValidatingAdmissionPolicy {POLICY}"));
    ensure!(messages.len() == 1 && messages.iter().all(names), "{messages:?}");

    // Once the policy is gone all is well.
    let client = cp.client().await?;
    let now = DeleteParams::default();
    Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()).delete(POLICY, &now).await?;
    Api::<ValidatingAdmissionPolicy>::all(client).delete(POLICY, &now).await?;
    wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, published).await?;
    installation.webhooks[0].ready().await
}
