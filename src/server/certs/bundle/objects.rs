//! The webhook configurations as they are at the API server: followed, and patched.
//!
//! In: a client, a patch. Out: configurations as facts, at every change; what a patch came to. Promises: a patch counts
//! as late only where the configuration is another one than it was made for; else it was refused, whatever the code of
//! the answer.

use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use json_patch::Patch as Operations;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::plan::{self, Configuration};
use super::read::{self, Hooks};
use crate::api::refusal;
use crate::cluster::watch::Watching;
use crate::cluster::watch::named::{Known, named};
use crate::domain::keys;

const DEADLINE: Duration = Duration::from_secs(10);

/// What is followed and patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes objects.
    Mutating,
    /// Judges them.
    Validating,
}

impl Kind {
    /// Both.
    pub(super) const ALL: [Kind; 2] = [Kind::Mutating, Kind::Validating];

    /// As manifests spell it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Kind::Mutating => "MutatingWebhookConfiguration",
            Kind::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

/// Why a patch came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// The configuration is not what it was when the patch was made; what it is, or that there is none, was read.
    Changed(Option<Box<Configuration>>),
    /// Anything else.
    Failed(String),
}

/// The configuration of one kind, at every change.
pub(super) fn seen<K>(
    service: (String, String),
    client: &Client,
    watching: &Watching,
) -> (Known, impl Stream<Item = Option<Configuration>> + use<K>)
where
    K: Hooks + Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let what = std::any::type_name::<K>().rsplit(':').next().unwrap_or_default();
    let (known, objects) = named(Api::<K>::all(client.clone()), keys::WEBHOOK_CONFIGURATION, what, watching);
    (known, objects.map(move |object| object.map(|object| read::configuration(&object, &service))))
}

/// Sends the patch; what it came to.
pub(super) async fn send_patch(
    client: Client,
    kind: Kind,
    patch: Operations,
    service: (String, String),
) -> (Kind, Result<Configuration, Failure>) {
    let sent = async {
        match kind {
            Kind::Mutating => send_to::<MutatingWebhookConfiguration>(client, patch, &service).await,
            Kind::Validating => send_to::<ValidatingWebhookConfiguration>(client, patch, &service).await,
        }
    };
    let answer = match tokio::time::timeout(DEADLINE, sent).await {
        Ok(Ok(Ok(configuration))) => Ok(configuration),
        Ok(Ok(Err(now))) => Err(Failure::Changed(now.map(Box::new))),
        Ok(Err(error)) => Err(Failure::Failed(refusal::of_error(&error))),
        Err(_) => Err(Failure::Failed(format!("no answer within {} seconds", DEADLINE.as_secs()))),
    };
    (kind, answer)
}

/// The configuration as patched; or, where it is not what it was when the patch was made, as it is.
async fn send_to<K>(
    client: Client,
    patch: Operations,
    service: &(String, String),
) -> Result<Result<Configuration, Option<Configuration>>, kube::Error>
where
    K: Hooks + Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let params = PatchParams { field_manager: Some(keys::MANAGER_BUNDLE.to_owned()), ..PatchParams::default() };
    let tested = plan::tested(&patch).map(str::to_owned);
    let api = Api::<K>::all(client);
    match api.patch(keys::WEBHOOK_CONFIGURATION, &params, &Patch::<()>::Json(patch)).await {
        Ok(object) => Ok(Ok(read::configuration(&object, service))),
        // 422: a test of the patch failed, or an admission policy refuses; 404: gone; 409: changed meanwhile.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {
            let now = api.get_opt(keys::WEBHOOK_CONFIGURATION).await?;
            let now = now.map(|object| read::configuration(&object, service));
            match now {
                Some(now) if Some(now.resource_version.as_str()) == tested.as_deref() => Err(kube::Error::Api(status)),
                now => Ok(Err(now)),
            }
        }
        Err(error) => Err(error),
    }
}
