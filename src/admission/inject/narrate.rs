//! The decision as a tree for people (`drawbridge explain`); never on the path of a request.

use super::Received;
use super::assess::{Decided, Source, assess};
use super::containers::env;
use super::context::Context;
use super::decide::{self, Decision, Subject};
use super::effective::Effective;
use super::plan::InjectionPlan;
use super::pod::PodView;
use crate::admission::explanation::{Explanation, FieldLine, FilterLine, PartLine, ShadowedLine, SidecarLine};
use crate::config::layers::Field;
use crate::config::resolved::Resolved;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::workload::Workload;
use serde_json::Value;

/// Fills the tree for a Pod or template.
pub(super) fn tree(
    mut tree: Explanation,
    object: &Value,
    namespace: &str,
    snapshot: &Snapshot,
    source: Source<'_>,
) -> Explanation {
    let Ok(received) = Received::new(object) else { return tree };
    let Ok(pod) = PodView::new(&received.before) else { return tree };
    let subject = Subject { pod, namespace, snapshot };
    for filter in decide::PRE_FILTERS {
        let passed = !(filter.stops)(&subject);
        tree.filters.push(FilterLine { name: filter.name.to_owned(), seen: (filter.seen)(&subject), passed });
        if !passed {
            return tree;
        }
    }
    match assess(subject, source) {
        Decided::Skip(_, effective, _) => in_force(&mut tree, effective.as_ref(), None),
        Decided::Deny(refused) => in_force(&mut tree, refused.effective.as_ref(), refused.workload.as_ref()),
        Decided::Inject(decided) => {
            let (cx, plan) = *decided;
            in_force(&mut tree, Some(&cx.effective), Some(&cx.workload));
            parts(&mut tree, &cx, &plan);
        }
    }
    tree
}

fn in_force(tree: &mut Explanation, effective: Option<&Effective<'_>>, workload: Option<&Workload>) {
    tree.workload = workload.map(|workload| format!("{}/{}", workload.kind.as_str(), workload.name));
    let Some(effective) = effective else { return };
    let line = |name: &str, decision: Decision| SidecarLine {
        name: name.to_owned(),
        injected: decision.inject,
        layer: decision.by.as_str().to_owned(),
    };
    let sidecars = &effective.sidecars;
    if effective.mode.value == Mode::ProxySidecar {
        let by = decide::DecidedBy::Mode;
        tree.sidecars.push(line(keys::CONTAINER_AUTHBRIDGE_PROXY, Decision { inject: true, by }));
    }
    tree.sidecars.extend([
        line(keys::CONTAINER_ENVOY, sidecars.envoy),
        line(keys::CONTAINER_PROXY_INIT, sidecars.proxy_init),
        line(keys::CONTAINER_SPIFFE_HELPER, sidecars.spiffe),
        line(keys::CONTAINER_REGISTRATION, sidecars.registration),
    ]);
    tree.fields.push(field("mode", &effective.mode, |mode| mode.as_str().to_owned()));
    tree.fields.push(field("nativeSidecars", &effective.native_switch, |value| {
        format!("{} (in force: {})", format!("{value:?}").to_lowercase(), effective.native)
    }));
    resolved(&mut tree.fields, effective.resolved);
}

fn field<T>(name: &str, field: &Field<T>, show: impl Fn(&T) -> String) -> FieldLine {
    FieldLine {
        name: name.to_owned(),
        value: show(&field.value),
        layer: field.layer.to_string(),
        shadowed: field
            .shadowed
            .iter()
            .map(|lost| ShadowedLine { layer: lost.layer.to_string(), value: lost.value.clone() })
            .collect(),
    }
}

fn resolved(lines: &mut Vec<FieldLine>, from: &Resolved) {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let debug = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    let (images, resources, proxy, trace) = (&from.images, &from.resources, &from.proxy, &from.trace);
    let tokens = &from.token_exchange;
    lines.extend([
        field("spire", &from.spire, |value| debug(value)),
        field("spiffe.trustDomain", &from.trust_domain, Clone::clone),
        field("images.envoyProxy", &images.envoy_proxy, text),
        field("images.proxyInit", &images.proxy_init, text),
        field("images.spiffeHelper", &images.spiffe_helper, text),
        field("images.clientRegistration", &images.client_registration, text),
        field("images.authbridge", &images.authbridge, text),
        field("images.authbridgeLight", &images.authbridge_light, text),
        field("images.pullPolicy", &images.pull_policy, Clone::clone),
        field("proxy.port", &proxy.port, ToString::to_string),
        field("proxy.inboundProxyPort", &proxy.inbound_port, ToString::to_string),
        field("proxy.adminPort", &proxy.admin_port, ToString::to_string),
        field("proxy.uid", &proxy.uid, ToString::to_string),
        field("resources.envoyProxy", &resources.envoy_proxy, ToString::to_string),
        field("resources.proxyInit", &resources.proxy_init, ToString::to_string),
        field("resources.spiffeHelper", &resources.spiffe_helper, ToString::to_string),
        field("resources.clientRegistration", &resources.client_registration, ToString::to_string),
        field("resources.authbridge", &resources.authbridge, ToString::to_string),
        field("tokenExchange.tokenUrl", &tokens.token_url, Clone::clone),
        field("tokenExchange.defaultAudience", &tokens.default_audience, Clone::clone),
        field("tokenExchange.defaultScopes", &tokens.default_scopes, |scopes| {
            scopes.as_ref().map_or_else(|| "not set".to_owned(), |scopes| scopes.join(" "))
        }),
        field("trace.endpoint", &trace.endpoint, text),
        field("trace.protocol", &trace.protocol, |value| value.map_or_else(|| "not set".to_owned(), |v| debug(&v))),
        field("trace.sampling.rate", &trace.sampling_ratio, |value| {
            value.map_or_else(|| "not set".to_owned(), |ratio| ratio.to_string())
        }),
    ]);
}

fn parts(tree: &mut Explanation, cx: &Context<'_>, plan: &InjectionPlan<'_>) {
    let mut part = |kind: &str, name: &str, detail: String| {
        tree.parts.push(PartLine { kind: kind.to_owned(), name: name.to_owned(), detail });
    };
    for container in &plan.init {
        part("initContainer", container.name, container.image.clone().into_owned());
    }
    for container in &plan.containers {
        part("container", container.name, container.image.clone().into_owned());
    }
    for volume in &plan.volumes {
        let source = volume.value.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
        part("volume", volume.name, source.map_or_else(String::new, |(key, value)| format!("{key} {value}")));
    }
    if let Some(name) = &plan.service_account {
        let domain = &cx.effective.resolved.trust_domain.value;
        part("serviceAccount", name, format!("spiffe://{domain}/ns/{}/sa/{name}", cx.subject.namespace));
    }
    if plan.fs_group {
        part("fsGroup", "0", String::new());
    }
    for key in env::FROM_CONFIG {
        let used = plan.all_containers().flat_map(|container| &container.env).any(|variable| variable.name == key);
        if let Some(value) = env::value(cx, key).filter(|_| used) {
            part("env", key, value.into_owned());
        }
    }
    if let Some(text) = &plan.runtime_config {
        part("annotation", keys::ANNOTATION_RUNTIME_CONFIG, text.clone());
    }
    part("annotation", keys::ANNOTATION_CONFIG_HASH, plan.config_hash.clone());
    tree.edits = plan.edits.iter().map(super::edit::Edit::describe).collect();
}
