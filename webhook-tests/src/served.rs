//! When the API server serves the kind of a CustomResourceDefinition.
//!
//! In: its name, once it is applied. Out: the kind can be found and used by whatever client. `Established` does not say so: discovery, by which clients
//! find a kind, and the handler that serves it hear of the condition like everybody else, by watches of their own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use crate::installation::lookup;
use crate::objects::{Objects, wait_for};
use crate::patience::patience;

/// Waits until every served version of `definition` is established, named by discovery of either form, and answers.
///
/// # Errors
/// After [`patience`].
pub async fn wait_served(objects: &Objects, definition: &str) -> Result<()> {
    let client = objects.client();
    let spec = wait_for(&Api::all(client.clone()), definition, is_established).await?.spec;
    let (group, kind, plural) = (&spec.group, &spec.names.kind, &spec.names.plural);
    let versions: Vec<&String> = spec.versions.iter().filter(|one| one.served).map(|one| &one.name).collect();
    let defined: Vec<lookup::Defined> =
        versions.iter().map(|version| (group.clone(), (*version).clone(), kind.clone())).collect();
    lookup::served(objects, &defined).await?;
    let answered = async {
        for version in versions {
            while !answers(&client, &format!("/apis/{group}/{version}"), plural).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let answered = tokio::time::timeout(patience(), answered).await;
    answered.with_context(|| format!("{definition} is established and not served"))
}

fn is_established(one: &CustomResourceDefinition) -> bool {
    let conditions = one.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Established" && one.status == "True")
}

/// Whether the version names the kind, and a list of it is answered.
async fn answers(client: &Client, version: &str, plural: &str) -> bool {
    let Some(found) = asked(client, version.to_owned()).await else { return false };
    let mut named = found["resources"].as_array().into_iter().flatten();
    named.any(|one| one["name"] == *plural) && asked(client, format!("{version}/{plural}?limit=1")).await.is_some()
}

async fn asked(client: &Client, path: String) -> Option<Value> {
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    client.request(request).await.ok()
}
