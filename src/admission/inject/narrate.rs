//! The decision as a tree for people (`drawbridge explain`); never on the path of a request.

use super::agent_env;
use super::assess::{Decided, Source, assess};
use super::containers::env;
use super::context::Context;
use super::decide::{self, Decision, Subject};
use super::effective::Effective;
use super::plan::InjectionPlan;
use super::{Received, known};
use crate::admission::explanation::{Explanation, FilterLine, PartLine, SidecarLine};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::userinfo::without_userinfo;
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
    // As the review read it: otherwise the tree would be that of another Pod where somebody forged the status annotation.
    let known = known(namespace, snapshot);
    let received = match source {
        Source::Pod => Received::of_pod(object, None, known),
        Source::Template(workload) => Received::of_template(object, workload, known),
    };
    let Ok(received) = received else { return tree };
    let Ok(pod) = received.before() else { return tree };
    let subject = Subject::new(pod, namespace, snapshot);
    for filter in decide::PRE_FILTERS {
        let passed = !(filter.stops)(&subject);
        tree.filters.push(FilterLine { name: filter.name.to_owned(), seen: (filter.seen)(&subject), passed });
        if !passed {
            return tree;
        }
    }
    match assess(subject, source) {
        Decided::Skip(_, effective, _) => in_force(&mut tree, effective.as_deref(), None),
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
    if sidecars.signer.inject || sidecars.signer.by != decide::DecidedBy::Default {
        tree.sidecars.push(line(keys::CONTAINER_SIGNER, sidecars.signer));
    }
    tree.fields = effective.fields();
}

fn parts(tree: &mut Explanation, cx: &Context<'_>, plan: &InjectionPlan<'_>) {
    let mut part = |kind: &str, name: &str, detail: String| {
        tree.parts.push(PartLine { kind: kind.to_owned(), name: name.to_owned(), detail });
    };
    for container in &plan.init {
        let stays = cx.effective.signer_stays && container.name == keys::CONTAINER_SIGNER;
        let anew = if stays { ", signs anew whenever the SVID is renewed" } else { "" };
        part("initContainer", container.name, format!("{}{anew}", container.image));
    }
    for container in &plan.containers {
        part("container", container.name, container.image.clone().into_owned());
    }
    for volume in &plan.volumes {
        let value = volume.value();
        let source = value.as_object().into_iter().flatten().find(|(key, _)| *key != "name");
        part("volume", volume.name, source.map_or_else(String::new, |(key, value)| format!("{key} {value}")));
    }
    let id = cx.spiffe_id(plan);
    match (&plan.service_account, id) {
        (Some(name), id) => part("serviceAccount", name, id.unwrap_or_default()),
        (None, Some(id)) => part("spiffeId", &id, String::new()),
        (None, None) => {}
    }
    if plan.fs_group {
        part("fsGroup", "0", String::new());
    }
    for key in env::FROM_CONFIG {
        let used = plan.all_containers().flat_map(|container| &container.env).any(|variable| variable.name == key);
        if let Some(value) = env::value(cx, key).filter(|_| used) {
            part("env", key, without_userinfo(&value));
        }
    }
    if let Some(text) = &plan.runtime_config {
        part("annotation", keys::ANNOTATION_RUNTIME_CONFIG, without_userinfo(text));
    }
    for open in &plan.open {
        part("openPath", &open.path, format!("without a token, for {}", open.by));
    }
    part("annotation", keys::ANNOTATION_CONFIG_HASH, plan.config_hash.clone());
    tree.edits = plan.edits.iter().map(|edit| edit.describe(&plan.edits)).collect();
    tree.edits.extend(agent_env::hidden(cx.subject.pod, &plan.edits));
}
