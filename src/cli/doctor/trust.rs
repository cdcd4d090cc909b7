//! Is there anybody who enforces what NetworkPolicies say, and does each namespace that enforces trust, or holds somebody in
//! quarantine, have what cuts its agents off, and does nobody else open them?
//!
//! In: Namespaces, NetworkPolicies, the names of definitions, by which network plugins are known, the platform file and the policy that makes
//! Pods wait. Out: a check for the plugin, one for what makes Pods wait, one for each namespace that enforces or holds somebody. Where none does, nothing is asked.

use serde_json::Value;

use super::{Seen, Visit, surroundings, text};
use crate::cli::policy::left::left;
use crate::cli::policy::overridden;
use crate::cli::policy::population::cluster_policies;
use crate::cli::quarantine;
use crate::cli::survey::{annotation, label};
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;

const PLUGIN: &str = "network plugin";
const TIER: &str = "tier of administrators";
const WAITING: &str = "agents that wait for their NetworkPolicy";

/// Network plugins: the group of their definitions, their name, and what they need.
const PLUGINS: [(&str, &str, Option<&str>); 5] = [
    (
        ".cilium.io",
        "Cilium",
        Some(
            "an agent reaches the API server by its address, which Cilium does not match to nodes unless policyCIDRMatchMode is nodes \
             (cilium#20550): set it, or no unverified agent reaches the API server",
        ),
    ),
    (".crd.projectcalico.org", "Calico", None),
    (".k8s.ovn.org", "OVN-Kubernetes", None),
    (".antrea.io", "Antrea", None),
    (".kubeovn.io", "Kube-OVN", None),
];

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let Some(platform) = surroundings::platform(visit, PLUGIN).await? else { return Ok(()) };
    let trust = platform.cards().trust;
    let mut notes = Vec::new();
    let namespaces = visit.cluster.list(&Kind::Namespace.path(""), &mut notes).await?;
    let enforcing: Vec<_> = namespaces.iter().filter(|one| level(&trust, &visit.operator, one).enforces()).collect();
    let held: Vec<_> = namespaces.iter().filter(|one| quarantine::holds_any(one, &visit.operator)).collect();
    if enforcing.is_empty() && held.is_empty() {
        return Ok(());
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definitions = visit.cluster.list(path, &mut notes).await?;
    plugin(visit, &definitions);
    waiting(visit, &trust).await?;
    for namespace in &enforcing {
        let all = level(&trust, &visit.operator, namespace) == TrustLevel::EnforcedAll;
        of_namespace(visit, (namespace, all)).await?;
    }
    if let Some(all) = cluster_policies(&visit.cluster, &mut notes).await? {
        let names: Vec<_> = enforcing.iter().map(|one| text(one, "/metadata/name")).collect();
        tier(visit, &names, &all);
    }
    let is_enforced = |one: &&&Value| level(&trust, &visit.operator, one) == TrustLevel::Enforced;
    let names: Vec<_> = enforcing.iter().filter(is_enforced).map(|one| text(one, "/metadata/name")).collect();
    for name in names {
        left_by(visit, name).await?;
    }
    for namespace in &held {
        of_quarantine(visit, namespace).await?;
    }
    for namespace in namespaces.iter().filter(|one| enforcing.contains(one) || held.contains(one)) {
        opened(visit, namespace).await?;
    }
    Ok(())
}

/// Whether the deny stands in the tier of administrators, too, where there is one.
fn tier(visit: &mut Visit, namespaces: &[&str], all: &[Value]) {
    let without = without_deny(namespaces, all);
    match without.is_empty() {
        true => visit.ok(TIER, "the deny stands there as well, so no NetworkPolicy of a namespace opens another Pod's way to agents that are cut off"),
        false => visit.finding(
            TIER,
            format!("ClusterNetworkPolicies are served, and Drawbridge's does not stand for namespace {}", without.join(", ")),
            format!(
                "look at the log of the controllers: a right on clusternetworkpolicies that is missing, or a policy of somebody else named {}NAMESPACE, keeps them from making it",
                keys::PREFIX_CLUSTER_DENY
            ),
        ),
    }
}

/// The namespaces whose deny does not stand among ClusterNetworkPolicies, or is somebody else's.
fn without_deny<'n>(namespaces: &[&'n str], all: &[Value]) -> Vec<&'n str> {
    let is_there = |namespace: &str| {
        let name = format!("{}{namespace}", keys::PREFIX_CLUSTER_DENY);
        let ours = Some(keys::MANAGED_BY_DRAWBRIDGE);
        all.iter().any(|one| text(one, "/metadata/name") == name && label(one, keys::LABEL_POLICY_MANAGED_BY) == ours)
    };
    namespaces.iter().copied().filter(|namespace| !is_there(namespace)).collect()
}

/// Somebody is in quarantine: whether the policy is there that cuts him off.
async fn of_quarantine(visit: &mut Visit, namespace: &Value) -> anyhow::Result<()> {
    let name = text(namespace, "/metadata/name");
    let check = format!("quarantine in {name}");
    let who = quarantine::held(namespace).join(", ");
    let path = format!("{}/{}", Kind::NetworkPolicy.path(name), keys::QUARANTINE_POLICY);
    match visit.read(&check, &path).await? {
        Seen::Hidden => {}
        Seen::Is(policy) if label(&policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE) => {
            visit.ok(&check, format!("{who}: NetworkPolicy {} cuts them off", keys::QUARANTINE_POLICY));
        }
        _ => visit.finding(
            &check,
            format!("{who}: Drawbridge's NetworkPolicy {} does not exist, so nobody is cut off; no new Pod is made",
                keys::QUARANTINE_POLICY),
            "look at the log of the controllers: a quota for NetworkPolicies, or a policy of somebody else under that name, keeps them from making it",
        ),
    }
    Ok(())
}

/// Who was an agent and is none: nothing cuts such Pods off.
async fn left_by(visit: &mut Visit, namespace: &str) -> anyhow::Result<()> {
    let (mut notes, mut objects) = (Vec::new(), Vec::new());
    for kind in [Kind::AgentCard, Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet] {
        objects.extend(visit.cluster.list(&kind.path(namespace), &mut notes).await?);
    }
    let found = left(objects.iter());
    if !found.is_empty() {
        visit.finding(
            &format!("former agents in {namespace}"),
            found.join("; "),
            format!(
                "put the label, or the AgentRuntime, back; or cut off every Pod: kubectl label namespace {namespace} {}=enforced-all --overwrite",
                keys::LABEL_TRUST
            ),
        );
    }
    Ok(())
}

/// What NetworkPolicies of others open of agents that ours cut off.
async fn opened(visit: &mut Visit, namespace: &Value) -> anyhow::Result<()> {
    let name = text(namespace, "/metadata/name");
    let mut notes = Vec::new();
    let mut policies = visit.cluster.list(&Kind::NetworkPolicy.path(name), &mut notes).await?;
    policies.extend(cluster_policies(&visit.cluster, &mut notes).await?.into_iter().flatten());
    let agents = format!("{}?labelSelector={}", Kind::Pod.path(name), keys::LABEL_TYPE);
    let pods = visit.cluster.list(&agents, &mut notes).await?;
    let found = overridden::words(namespace, &pods, &policies);
    let check = format!("policies of others in {name}");
    if !found.is_empty() {
        visit.finding(
            &check,
            format!("{}: they open agents that are cut off: {}", Reason::PolicyOverridden.code(), found.join("; ")),
            format!("take that out of them, or delete them: kubectl -n {name} get networkpolicies"),
        );
    } else if notes.is_empty() {
        visit.ok(&check, "none opens an agent that is cut off");
    }
    Ok(())
}

/// The network plugin, by the definitions that it brings.
#[must_use]
pub(in crate::cli) fn plugin_of(definitions: &[Value]) -> Option<&'static str> {
    known(definitions).map(|(_, name, _)| name)
}

fn known(definitions: &[Value]) -> Option<(&'static str, &'static str, Option<&'static str>)> {
    let is_there = |group: &str| definitions.iter().any(|one| text(one, "/metadata/name").ends_with(group));
    PLUGINS.into_iter().find(|(group, ..)| is_there(group))
}

fn level(trust: &Trust, own: &str, namespace: &Value) -> TrustLevel {
    trust.in_force(text(namespace, "/metadata/name"), own, label(namespace, keys::LABEL_TRUST))
}

fn plugin(visit: &mut Visit, definitions: &[Value]) {
    match known(definitions) {
        Some((_, name, None)) => visit.ok(PLUGIN, format!("{name} enforces NetworkPolicies")),
        Some((_, name, Some(needs))) => visit.unknown(PLUGIN, format!("{name} enforces NetworkPolicies"), needs),
        None => visit.finding(
            PLUGIN,
            "no network plugin is recognised by its CustomResourceDefinitions, and without one NetworkPolicies cut off nobody",
            "install one that enforces NetworkPolicies, or make sure that the cluster's own does",
        ),
    }
}

/// The API server's own policy goes by what it was rendered for.
async fn waiting(visit: &mut Visit, trust: &Trust) -> anyhow::Result<()> {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/drawbridge-trust-pods";
    let Seen::Is(binding) = visit.read(WAITING, path).await? else { return Ok(()) };
    let expressions =
        binding.pointer("/spec/matchResources/namespaceSelector/matchExpressions").and_then(Value::as_array);
    let by_label =
        expressions.into_iter().flatten().any(|one| one["key"] == keys::LABEL_TRUST && one["operator"] == "In");
    if by_label && (trust.default.enforces() || trust.floor.enforces()) {
        visit.finding(
            WAITING,
            "the installed admission policies hold agents back in namespaces with the label alone, and the platform file enforces in others, too",
            APPLY,
        );
    } else {
        visit.ok(WAITING, "by the API server itself, wherever trust is enforced");
    }
    Ok(())
}

/// One namespace that enforces, and whether every Pod is cut off there, not agents alone.
async fn of_namespace(visit: &mut Visit, (object, all): (&Value, bool)) -> anyhow::Result<()> {
    let (namespace, pods) = (text(object, "/metadata/name"), cut_off(all));
    let name = format!("trust in {namespace}");
    let path = format!("{}/{}", Kind::NetworkPolicy.path(namespace), keys::DEFAULT_DENY);
    match visit.read(&name, &path).await? {
        Seen::Hidden => {}
        Seen::Is(policy) if label(&policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE) => {
            return told(visit, &name, (object, all)).await;
        }
        Seen::Is(_) => visit.finding(
            &name,
            format!("NetworkPolicy {} is somebody else's, so no {pods} is made there", keys::DEFAULT_DENY),
            format!("kubectl -n {namespace} delete networkpolicy {}", keys::DEFAULT_DENY),
        ),
        Seen::Absent => visit.finding(
            &name,
            format!("NetworkPolicy {} does not exist, so no {pods} is made", keys::DEFAULT_DENY),
            "look at the log of the controllers: a quota for NetworkPolicies, or a right that is missing, keeps them from making it",
        ),
    }
    Ok(())
}

/// Which Pods are not made before they are cut off.
fn cut_off(all: bool) -> &'static str {
    if all { "Pod" } else { "Pod of an agent" }
}

/// Whether the API server's own policy has been told that the namespace cuts off agents, or every Pod.
async fn told(visit: &mut Visit, name: &str, (object, all): (&Value, bool)) -> anyhow::Result<()> {
    let annotation_of = if all { keys::ANNOTATION_ARMED_ALL } else { keys::ANNOTATION_ARMED };
    let path = format!("{}/{}", Kind::ServiceAccount.path(&visit.operator), keys::ARMED);
    let list = match visit.read(name, &path).await? {
        Seen::Hidden => return Ok(()),
        Seen::Is(account) => annotation(&account, annotation_of).unwrap_or_default().to_owned(),
        Seen::Absent => String::new(),
    };
    let uid = text(object, "/metadata/uid");
    if list.split(',').any(|one| one == uid) {
        let whom = if all { "every Pod but verified agents" } else { "agents that are not verified" };
        visit.ok(name, format!("NetworkPolicy {} cuts off {whom}", keys::DEFAULT_DENY));
    } else {
        let seen = format!(
            "NetworkPolicy {} stands, and annotation {annotation_of} of ServiceAccount {} does not name the namespace by its uid, so no {} is made",
            keys::DEFAULT_DENY,
            keys::ARMED,
            cut_off(all)
        );
        let remedy = format!(
            "the controllers write it as soon as one of them leads, unless that NetworkPolicy opens more than Drawbridge's does: kubectl -n {} logs \
             deployment/drawbridge-controllers",
            visit.operator
        );
        visit.finding(name, seen, remedy);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_drawbridge_s_own_deny_counts_in_the_tier_of_administrators() {
        let policy = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
        let ours = json!({keys::LABEL_POLICY_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE});
        let all = [
            policy("drawbridge-deny-good", ours.clone()),
            policy("drawbridge-deny-squatted", json!({})),
            policy("drawbridge-quarantine-held", ours.clone()),
            policy("drawbridge-deny-good-too", ours),
        ];
        assert_eq!(without_deny(&["good", "squatted", "held", "absent"], &all), ["squatted", "held", "absent"]);
        assert!(without_deny(&[], &all).is_empty());
    }
}
