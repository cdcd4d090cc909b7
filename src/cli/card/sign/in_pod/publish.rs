//! The signed card in its ConfigMap. In: which, the text, how long it may take. Out: that it is there, or why not.
//!
//! Promises: of a ConfigMap that is there nothing is changed but the one key and the note that it awaits a signature; one that is not there is
//! made where the account may, as it may where somebody wrote the manifests by hand.

use std::time::Duration;

use anyhow::{Context, bail};
use kube::core::Request;
use kube::core::params::{GetParams, Patch, PatchParams, PostParams};
use kube::{Client, Config};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::api::refusal;
use crate::domain::keys;
use crate::store::Kind;

/// For so long what the operator makes ahead of the Pod may be on its way: the ConfigMap, and the right to write it.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// Until it is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Publishes by the Pod's own account. `made`: somebody makes the ConfigMap and the right ahead, so both are waited for.
///
/// # Errors
/// When the server refuses or does not answer in time.
pub(super) async fn publish(at: (&str, &str), text: &str, within: Duration, made: bool) -> anyhow::Result<()> {
    let client = client()?;
    let end = Instant::now() + within.min(if made { MADE_WITHIN } else { within });
    put(&client, at, text, end, made).await
}

/// What became of a card that is to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// It was written.
    Written,
    /// What was there is as good.
    Stood,
}

/// Publishes by the Pod's own account, once, unless the card that is there is as good by `stands`.
///
/// # Errors
/// When the server refuses.
pub(super) async fn settle(at: (&str, &str), text: &str, stands: impl Fn(&str) -> bool) -> anyhow::Result<Settled> {
    let client = client()?;
    if there(&client, at).await.is_some_and(|there| stands(&there)) {
        return Ok(Settled::Stood);
    }
    once(&client, at, text).await.map_err(|error| anyhow::anyhow!("{}", refusal::of_error(&error)))?;
    Ok(Settled::Written)
}

/// The card that is published; none where it awaits its signature, or where it cannot be read, which is no reason not to write it.
async fn there(client: &Client, (namespace, name): (&str, &str)) -> Option<String> {
    let request = Request::new(Kind::ConfigMap.path(namespace)).get(name, &GetParams::default()).ok()?;
    let mut found: Value = client.request(request).await.ok()?;
    let awaits = found["metadata"]["annotations"].get(keys::ANNOTATION_AWAITS_SIGNATURE).is_some();
    match found["data"][keys::KEY_SIGNED_CARD].take() {
        Value::String(card) if !awaits => Some(card),
        _ => None,
    }
}

fn client() -> anyhow::Result<Client> {
    let config = Config::incluster().context("the Pod has no token for the API server")?;
    Client::try_from(config).context("no client for the API server")
}

/// The same through that client.
async fn put(client: &Client, at: (&str, &str), text: &str, end: Instant, made: bool) -> anyhow::Result<()> {
    loop {
        let answer = match timeout_at(end, once(client, at, text)).await {
            Ok(answer) => answer,
            Err(_) => bail!("the API server did not answer in time"),
        };
        let error = match answer {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let passes = match &error {
            kube::Error::Api(status) => made && matches!(status.code, 403 | 404 | 429 | 500..),
            _ => made,
        };
        if !passes || timeout_at(end, sleep(PAUSE)).await.is_err() {
            bail!("{}", refusal::of_error(&error));
        }
    }
}

async fn once(client: &Client, (namespace, name): (&str, &str), text: &str) -> Result<(), kube::Error> {
    let request = Request::new(Kind::ConfigMap.path(namespace));
    let manager = Some(keys::MANAGER_SIGNER.to_owned());
    let parameters = PatchParams { field_manager: manager.clone(), ..PatchParams::default() };
    let patch: Value = json!({
        "metadata": {"annotations": {keys::ANNOTATION_AWAITS_SIGNATURE: null}},
        "data": {keys::KEY_SIGNED_CARD: text},
    });
    let built = request.patch(name, &parameters, &Patch::Merge(&patch)).map_err(kube::Error::BuildRequest)?;
    match client.request::<IgnoredAny>(built).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        other => return other.map(|_| ()),
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGER_SIGNER}},
        "data": {keys::KEY_SIGNED_CARD: text},
    });
    let parameters = PostParams { field_manager: manager, ..PostParams::default() };
    let built = request.create(&parameters, object.to_string().into_bytes()).map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(built).await.map(|_| ())
}
