//! A pair from a Secret without its authority, as some issuers and people make it: whoever made it keeps caBundle.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use webhook_tests::patience::patience;
use webhook_tests::pki::{Authority, Pair};
use webhook_tests::{ControlPlane, Installation, Installing, Options, dial, installation};

use super::mutual::try_a_pod;

const SECRET: &str = "by-hand";
const PACE: Duration = Duration::from_millis(50);

/// The Secret, and the right of both processes to read it, as an administrator makes them before the installation.
async fn provide(cp: &ControlPlane, pair: &Pair) -> Result<()> {
    let objects = cp.objects().await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": keys::OPERATOR_NAMESPACE}});
    if let Err(refusal) = objects.create(&namespace, false).await?.result {
        ensure!(refusal.code == 409, "{}", refusal.message);
    }
    let metadata = json!({"name": SECRET, "namespace": keys::OPERATOR_NAMESPACE});
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
        "verbs": ["get", "list", "watch"]});
    let account = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": keys::OPERATOR_NAMESPACE});
    let subjects: Vec<Value> = ["drawbridge-webhook", "drawbridge-controllers"].map(account).into();
    let version = "rbac.authorization.k8s.io/v1";
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": SECRET});
    for object in [
        json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]}),
        json!({"apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": subjects,
            "roleRef": reference}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata,
            "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key}}),
    ] {
        objects.apply(&object.to_string()).await?;
    }
    Ok(())
}

/// The administrator writes who signed the pair into both webhook configurations.
async fn trust(cp: &ControlPlane, authority: &Authority) -> Result<()> {
    let bundle = ByteString(authority.certificate().into_bytes());
    let trusts = |client: &mut WebhookClientConfig| client.ca_bundle = Some(bundle.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let mut object = mutating.get(keys::WEBHOOK_CONFIGURATION).await?;
    object.webhooks.iter_mut().flatten().for_each(|hook| trusts(&mut hook.client_config));
    mutating.replace(keys::WEBHOOK_CONFIGURATION, &PostParams::default(), &object).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cp.client().await?);
    let mut object = validating.get(keys::WEBHOOK_CONFIGURATION).await?;
    object.webhooks.iter_mut().flatten().for_each(|hook| trusts(&mut hook.client_config));
    validating.replace(keys::WEBHOOK_CONFIGURATION, &PostParams::default(), &object).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_without_its_authority_is_served_and_whoever_made_it_keeps_the_bundles() -> Result<()> {
    let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
    let authority = Authority::new("somebody else")?;
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    provide(&cp, &authority.server(&host, &[&host])?).await?;
    let from = cp.audit().mark()?;
    let flags = vec!["--drain-delay=0s".to_owned(), format!("--webhook-cert-secret={SECRET}")];
    // Every process becomes ready, or this fails.
    let installation = Installation::start(&cp, &Installing { flags, ..Installing::default() }).await?;
    let (webhook, controllers) = (&installation.webhooks[0], &installation.controllers[0]);
    let (code, checks) = dial::get(webhook.health(), "/readyz?verbose=1").await?;
    ensure!(code == 200, "{checks}");
    ensure!(webhook.log().contains("the Secret has no certificate in ca.crt"), "{}", webhook.log());

    trust(&cp, &authority).await?;
    let pods: Api<Pod> = Api::namespaced(cp.client().await?, "default");
    let called = async {
        while try_a_pod(&pods).await.is_err() {
            sleep(PACE).await;
        }
    };
    timeout(patience(), called).await.context("the API server never calls the webhook")?;
    let no_alert = async {
        while controllers.metrics().await?.sum("drawbridge_bundle_published", &[]) < 1.0 {
            sleep(PACE).await;
        }
        anyhow::Ok(())
    };
    timeout(patience(), no_alert).await.context("the controllers say that nothing is published")??;
    let asked = cp.audit().settled(from).await?.writes();
    let ours = format!("system:serviceaccount:{}:", keys::OPERATOR_NAMESPACE);
    let written = asked.filter(|one| one.user.starts_with(&ours) && one.resource.ends_with("webhookconfigurations"));
    ensure!(written.is_empty(), "the bundles are somebody else's: {written}");
    Ok(())
}
