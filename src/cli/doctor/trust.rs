//! Is there anybody who enforces what NetworkPolicies say, and does each namespace that enforces trust have what cuts its agents off?
//!
//! In: Namespaces, NetworkPolicies, the names of definitions, by which network plugins are known, the platform file and the policy that makes
//! Pods wait. Out: a check for the plugin, one for what makes Pods wait, one for each namespace that enforces. Where none does, nothing is asked.

use serde_json::Value;

use super::{Seen, Visit, surroundings, text};
use crate::cli::survey::label;
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;
use crate::store::Kind;

const PLUGIN: &str = "network plugin";
const WAITING: &str = "agents wait for what cuts them off";

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
    if enforcing.is_empty() {
        return Ok(());
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definitions = visit.cluster.list(path, &mut notes).await?;
    plugin(visit, &definitions);
    waiting(visit, &trust).await?;
    for namespace in enforcing {
        of_namespace(visit, text(namespace, "/metadata/name")).await?;
    }
    Ok(())
}

fn level(trust: &Trust, own: &str, namespace: &Value) -> TrustLevel {
    trust.in_force(text(namespace, "/metadata/name"), own, label(namespace, keys::LABEL_TRUST))
}

fn plugin(visit: &mut Visit, definitions: &[Value]) {
    let is_there = |group: &str| definitions.iter().any(|one| text(one, "/metadata/name").ends_with(group));
    match PLUGINS.into_iter().find(|(group, ..)| is_there(group)) {
        Some((_, name, None)) => visit.ok(PLUGIN, format!("{name} enforces NetworkPolicies")),
        Some((_, name, Some(needs))) => visit.unknown(PLUGIN, format!("{name} enforces NetworkPolicies"), needs),
        None => visit.finding(
            PLUGIN,
            "none is known by its definitions, and without one NetworkPolicies cut off nobody",
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
            "apply what drawbridge render --platform-file FILE prints for the platform file in force",
        );
    } else {
        visit.ok(WAITING, "by the API server itself, wherever trust is enforced");
    }
    Ok(())
}

async fn of_namespace(visit: &mut Visit, namespace: &str) -> anyhow::Result<()> {
    let name = format!("trust in {namespace}");
    let path = format!("{}/{}", Kind::NetworkPolicy.path(namespace), keys::DEFAULT_DENY);
    match visit.read(&name, &path).await? {
        Seen::Hidden => {}
        Seen::Is(policy) if label(&policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE) => {
            visit.ok(&name, format!("NetworkPolicy {} cuts off who is not verified", keys::DEFAULT_DENY));
        }
        Seen::Is(_) => visit.finding(
            &name,
            format!("NetworkPolicy {} is somebody else's, so no Pod of an agent is made there", keys::DEFAULT_DENY),
            format!("kubectl -n {namespace} delete networkpolicy {}", keys::DEFAULT_DENY),
        ),
        Seen::Absent => visit.finding(
            &name,
            format!("NetworkPolicy {} is not there, so no Pod of an agent is made", keys::DEFAULT_DENY),
            "look at the log of the controllers: a quota for NetworkPolicies, or a right that is missing, keeps them from making it",
        ),
    }
    Ok(())
}
