//! What cuts off agents and what opens them, once nobody looks after it: the deny goes first, then the policies of
//! agents, then the label of their Pods; or with `--keep-policies` all of it stays.
//!
//! In: NetworkPolicies of ours, and Pods. Out: steps, each of which says how many Pods it opens. Assumes that the guards of the API server are gone
//! by then.

use serde_json::{Value, json};

use super::found::{Found, Part, part};
use super::plan::{Action, Kept, Options, Phase, Plan, Step, delete, title};
use crate::cli::cluster::Cluster;
use crate::cli::survey::{annotation, label, text};
use crate::domain::keys;
use crate::store::Kind;

/// NetworkPolicies of ours in the namespaces of agents, and Pods that carry the trust label or that of quarantine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Trust {
    pub(super) policies: Vec<Part>,
    pub(super) verified: Vec<Part>,
    /// ClusterNetworkPolicies of ours.
    pub(super) cluster: Vec<Part>,
    /// Namespaces that hold somebody in quarantine.
    pub(super) held: Vec<Part>,
    /// What Pods publish their signed card by: RoleBindings, Roles, and the ConfigMaps.
    pub(super) signing: Vec<Part>,
}

/// Reads them.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn read(cluster: &Cluster, notes: &mut Vec<String>) -> anyhow::Result<Trust> {
    let selector = format!("labelSelector={}%3D{}", keys::LABEL_POLICY_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
    let parts = |kind: Kind, objects: Vec<Value>| {
        let of = move |object: Value| part(&kind.path(text(&object, "/metadata/namespace")), object);
        objects.into_iter().map(of).collect::<Vec<_>>()
    };
    let policies = cluster.list(&format!("{}?{selector}", Kind::NetworkPolicy.path("")), notes).await?;
    let beside = cluster.list(&format!("{}?{selector}", Kind::ClusterNetworkPolicy.path("")), notes).await?;
    let mut verified =
        cluster.list(&format!("{}?labelSelector={}", Kind::Pod.path(""), keys::LABEL_VERIFIED), notes).await?;
    let held =
        cluster.list(&format!("{}?labelSelector={}", Kind::Pod.path(""), keys::LABEL_QUARANTINED), notes).await?;
    verified.extend(held.into_iter().filter(|pod| label(pod, keys::LABEL_VERIFIED).is_none()));
    let mut namespaces = cluster.list(&Kind::Namespace.path(""), notes).await?;
    namespaces.retain(is_held);
    let mut signing = Vec::new();
    let ours = format!("{}%3D{}", keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
    for kind in [Kind::RoleBinding, Kind::Role, Kind::SignedCard] {
        let mut found = cluster.list(&format!("{}?labelSelector={ours}", kind.path("")), notes).await?;
        found.retain(is_of_signing);
        signing.extend(parts(kind, found));
    }
    Ok(Trust {
        policies: parts(Kind::NetworkPolicy, policies),
        cluster: parts(Kind::ClusterNetworkPolicy, beside),
        verified: parts(Kind::Pod, verified),
        held: parts(Kind::Namespace, namespaces),
        signing,
    })
}

/// Somebody is in quarantine there.
pub(super) fn is_held(namespace: &Value) -> bool {
    annotation(namespace, keys::ANNOTATION_QUARANTINE).is_some()
}

/// What a person said of a Namespace, and where the record of it stands.
fn said(namespace: &Value) -> String {
    let who = annotation(namespace, keys::ANNOTATION_QUARANTINE).unwrap_or_default();
    let record = annotation(namespace, keys::ANNOTATION_QUARANTINE_RECORD)
        .map(|_| format!(" (record: annotation {})", keys::ANNOTATION_QUARANTINE_RECORD));
    format!("annotation {}: {who}{}", keys::ANNOTATION_QUARANTINE, record.unwrap_or_default())
}

/// One of the objects by which the Pods of a workload publish their signed card, and ours.
pub(super) fn is_of_signing(object: &Value) -> bool {
    text(object, "/metadata/name").ends_with(keys::SUFFIX_SIGNED_CARD)
        && label(object, keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE)
}

/// The steps, in their order.
pub(super) fn plan(plan: &mut Plan, found: &Found, options: &Options) {
    let trust = &found.trust;
    for part in &trust.signing {
        plan.steps.push(delete(Phase::Trust, part, "deleted: no Pod publishes a signed card by it any more"));
    }
    // Whom to hold is said by people with the right to say it, and it holds again with the next installation.
    plan.stays.extend(trust.held.iter().map(|part| Kept {
        object: title(&part.object),
        why: format!(
            "{} is a person's word; nothing cuts off who is in that quarantine any more, and the next installation does again. drawbridge release \
             takes it back",
            said(&part.object)
        ),
        planned: true,
    }));
    if options.keep_policies {
        plan.stays.extend(trust.cluster.iter().chain(&trust.policies).chain(&trust.verified).map(|part| {
            Kept {
                object: title(&part.object),
                why: "--keep-policies: it cuts off or opens agents as it does now, and nobody changes that any more"
                    .to_owned(),
                planned: true,
            }
        }));
        return;
    }
    // Ahead of the label of those whom it does not mean.
    for part in &trust.cluster {
        plan.steps.push(delete(Phase::Trust, part, "deleted: NetworkPolicies decide again by themselves"));
    }
    let is_deny =
        |part: &&Part| [keys::DEFAULT_DENY, keys::QUARANTINE_POLICY].contains(&text(&part.object, "/metadata/name"));
    for part in trust.policies.iter().filter(is_deny) {
        let pods = found.pods.iter().filter(|pod| is_cut(part, pod)).count();
        let effect =
            format!("deleted: {pods} Pods that run there reach, and are reached by, whatever nothing else cuts off");
        plan.steps.push(delete(Phase::Trust, part, &effect));
    }
    for part in trust.policies.iter().filter(|part| !is_deny(part)) {
        plan.steps.push(delete(Phase::Trust, part, "deleted: nothing cuts its agent off that it would have to open"));
    }
    for part in &trust.verified {
        let labels = json!({keys::LABEL_VERIFIED: null, keys::LABEL_QUARANTINED: null});
        let patch = json!({"metadata": {"uid": text(&part.object, "/metadata/uid"), "labels": labels}});
        plan.steps.push(Step {
            phase: Phase::Trust,
            object: title(&part.object),
            path: part.path.clone(),
            action: Action::Merge { patch },
            effect: "the trust label, or that of quarantine, is taken off; nothing rolls".to_owned(),
        });
    }
}

/// A Pod that runs and that the deny selects.
fn is_cut(deny: &Part, pod: &Part) -> bool {
    let selector = &deny.object["spec"]["podSelector"];
    let by_label = |operator: &str| {
        let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        expressions.any(|one| one["key"] == keys::LABEL_QUARANTINED && one["operator"] == operator)
    };
    let is_held = label(&pod.object, keys::LABEL_QUARANTINED).is_some();
    if (by_label("Exists") && !is_held) || (by_label("DoesNotExist") && is_held) {
        return false;
    }
    let every = selector.get("matchLabels").is_none();
    let over = matches!(text(&pod.object, "/status/phase"), "Succeeded" | "Failed");
    text(&pod.object, "/metadata/namespace") == text(&deny.object, "/metadata/namespace")
        && !over
        && (every || label(&pod.object, keys::LABEL_TYPE) == Some("agent"))
}
