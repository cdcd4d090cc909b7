//! From a webhook configuration to the facts that [`super::plan`] works on.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::ResourceExt;
use serde_json::Value;

use super::plan::{Configuration, Entry};
use crate::server::certs::trust_bundle::read_bundle;

/// Annotations by which cert-manager's injector is asked to fill in `caBundle`.
const INJECTOR_ANNOTATIONS: [&str; 3] =
    ["cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"];

/// The two kinds, seen alike.
pub(super) trait Hooks: ResourceExt {
    /// Name and client of each entry, in order.
    fn clients(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Hooks for MutatingWebhookConfiguration {
    fn clients(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

impl Hooks for ValidatingWebhookConfiguration {
    fn clients(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

/// The facts of a configuration. Entries that call another Service than `(name, namespace)` are not ours and left out.
pub(super) fn configuration(object: &impl Hooks, service: &(String, String)) -> Configuration {
    let ours = |client: &WebhookClientConfig| {
        client.service.as_ref().is_none_or(|called| (&called.name, &called.namespace) == (&service.0, &service.1))
    };
    let clients = object.clients();
    let called = clients.into_iter().enumerate().filter(|(_, (_, client))| ours(client));
    let (mut entries, mut damaged) = (Vec::new(), Vec::new());
    for (index, (name, client)) in called {
        let bundle = client.ca_bundle.as_ref().map(|bundle| read_bundle(&bundle.0)).unwrap_or_default();
        damaged.extend(bundle.damaged.into_iter().map(|section| (name.to_owned(), section)));
        let (name, roots) = (name.to_owned(), bundle.certificates);
        entries.push(Entry { index, writer: writer(object, &name), host: host(client), name, roots });
    }
    Configuration {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        entries,
        damaged,
        published_by_other: INJECTOR_ANNOTATIONS.iter().any(|name| object.annotations().contains_key(*name)),
    }
}

/// The name under which the API server calls: of a Service it asks for this one, whatever the domain of the cluster; of a URL for
/// its host.
fn host(client: &WebhookClientConfig) -> Option<String> {
    if let Some(service) = &client.service {
        return Some(format!("{}.{}.svc", service.name, service.namespace));
    }
    let url: http::Uri = client.url.as_deref()?.parse().ok()?;
    url.host().map(|host| host.trim_matches(['[', ']']).to_owned())
}

/// The field manager that wrote the entry's bundle last.
fn writer(object: &impl ResourceExt, entry: &str) -> Option<String> {
    let key = format!("k:{}", serde_json::json!({ "name": entry }));
    let path = ["f:webhooks", &key, "f:clientConfig", "f:caBundle"];
    let wrote = |fields: &Value| path.iter().try_fold(fields, |at, step| at.get(step)).is_some();
    let writers = object.managed_fields().iter();
    let writers = writers.filter(|managed| managed.fields_v1.as_ref().is_some_and(|fields| wrote(&fields.0)));
    writers.max_by_key(|managed| managed.time.as_ref().map(|time| time.0))?.manager.clone()
}
