//! When policies that compare with objects of our kinds are bound: once the API server's discovery names these kinds.
//!
//! An API server that meets such a binding before it knows the kind refuses, for up to 30 s, whatever the policy matches: it keeps what it looked up for as
//! long. That happens where an installation is applied faster than definitions come to be served, and after some starts of an API server whose store holds
//! bindings already (3 of 17, measured on 1.36.3). The product waits such a time out, and `policies::an_installation_is_taken…` is its trial; every other
//! one would only be slower by half a minute now and then.
//!
//! In: what an installation applies. Out: in what order, and when.

use std::time::Duration;

use anyhow::{Context as _, Result};
use drawbridge::domain::keys;
use serde_json::Value;

use crate::Objects;
use crate::patience::patience;

/// The policy whose binding is applied last: once it refuses, all are in force.
pub(super) const LAST: &str = keys::POLICY_OWN_AGENTS_NEW;

/// Group, version and kind of a definition.
pub(crate) type Defined = (String, String, String);

/// Whether that is a binding by which a policy compares with other objects.
pub(super) fn compares(object: &Value) -> bool {
    object["spec"].get("paramRef").is_some()
}

/// The bindings, with that of [`LAST`] at the end.
pub(super) fn last_at_the_end(mut bindings: Vec<(String, Value)>) -> Vec<(String, Value)> {
    bindings.sort_by_key(|(_, binding)| binding["spec"]["policyName"] == LAST);
    bindings
}

/// What the definitions among `rendered` define.
pub(super) fn defined(rendered: &[(String, Value)]) -> Vec<Defined> {
    let definitions = rendered.iter().map(|(_, object)| object);
    let definitions = definitions.filter(|object| object["kind"] == "CustomResourceDefinition");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    definitions
        .flat_map(|object| {
            let (group, kind) = (text(&object["spec"]["group"]), text(&object["spec"]["names"]["kind"]));
            let versions = object["spec"]["versions"].as_array().into_iter().flatten();
            let versions = versions.filter(|version| version["served"] == true);
            versions.map(move |version| (group.clone(), text(&version["name"]), kind.clone()))
        })
        .collect()
}

/// Waits until discovery names all of `kinds`.
pub(crate) async fn served(objects: &Objects, kinds: &[Defined]) -> Result<()> {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let named = async {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tick.tick().await;
            let request = http::Request::get("/apis").header("accept", AGGREGATED).body(Vec::new())?;
            let groups: Value = objects.client().request(request).await?;
            if kinds.iter().all(|kind| names(&groups, kind)) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(patience(), named).await.with_context(|| format!("never served: {kinds:?}"))?
}

fn names(groups: &Value, (group, version, kind): &Defined) -> bool {
    let items = |value: &Value, member: &str| value[member].as_array().cloned().unwrap_or_default();
    let groups = items(groups, "items").into_iter().filter(|one| one["metadata"]["name"] == **group);
    let versions = groups.flat_map(|one| items(&one, "versions")).filter(|one| one["version"] == **version);
    versions.flat_map(|one| items(&one, "resources")).any(|one| one["responseKind"]["kind"] == **kind)
}
