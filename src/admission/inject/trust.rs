//! What trust means for a new Pod, before any question of injection.
//!
//! In: the Pod, and what is known of its namespace. Out: that it waits, because nothing cuts it off yet; and the trust label taken away that
//! somebody wrote into its template. Promises: what a template says of trust is never believed and never refused; the guarantee that an
//! agent's Pod waits is the API server's own policy's, this is the explanation.

use super::pod::PodView;
use crate::admission::patch::{self, pointer};
use crate::admission::verdict::{Denial, Outcome, Verdict, Warning};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::config::snapshot::Snapshot;
use crate::config::view::NamespaceView;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;
use crate::domain::workload::WorkloadKind;

/// The Pod has to prove first who it is, and nothing cuts it off yet.
pub(super) fn pending(
    pod: PodView<'_>,
    namespace: &str,
    known: &NamespaceView,
    snapshot: &Snapshot,
) -> Option<Box<Denial>> {
    let concerned = match known.trust {
        TrustLevel::Off | TrustLevel::Audit => false,
        TrustLevel::Enforced => pod.label(keys::LABEL_TYPE) == Some(AgentType::Agent.as_str()),
        TrustLevel::EnforcedAll => true,
    };
    if known.cut_off || !concerned || namespace == &*snapshot.view.operator_namespace {
        return None;
    }
    Some(Box::new(Denial::new(
        Reason::NetworkPolicyPending,
        409,
        format!(
            "namespace {namespace} cuts off agents until they have proved who they are, and NetworkPolicy {} does not exist yet",
            keys::DEFAULT_DENY
        ),
        "nothing; the controller makes it, and whoever makes the Pod tries again; if this lasts, drawbridge doctor shows why",
    )))
}

/// What people hear who apply a workload whose Pods will be cut off for good, or whose template says what counts for nothing.
pub(super) fn of_template(
    template: PodView<'_>,
    (whose, kind): (&str, WorkloadKind),
    known: &NamespaceView,
) -> Vec<Warning> {
    let mut told = Vec::new();
    let is_agent = template.label(keys::LABEL_TYPE) == Some(AgentType::Agent.as_str());
    if is_agent && known.trust.enforces() && matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob) {
        told.push(Warning::new(
            Reason::UntrustableKind,
            format!(
                "{whose} reach nothing but the operator and the API server: this namespace cuts off agents that are not verified, and a {} has no \
                 AgentCard. Open what they need with a NetworkPolicy of your own, or leave label {} out",
                kind.as_str(),
                keys::LABEL_TYPE
            ),
        ));
    }
    if template.label(keys::LABEL_VERIFIED).is_some() {
        told.push(Warning::new(
            Reason::TrustLabelIgnored,
            format!(
                "{whose} do not get label {} from their template: Drawbridge puts it on Pods of verified agents itself. Leave it out",
                keys::LABEL_VERIFIED
            ),
        ));
    }
    told
}

/// The answer without the trust label, which is ours to give.
pub(super) fn without_label(pod: PodView<'_>, mut verdict: Verdict) -> Verdict {
    if pod.label(keys::LABEL_VERIFIED).is_none() || !verdict.allowed() {
        return verdict;
    }
    let remove = patch::remove(pointer(["metadata", "labels", keys::LABEL_VERIFIED]));
    match &mut verdict.outcome {
        Outcome::Patch(operations) => operations.push(remove),
        outcome => *outcome = Outcome::Patch(vec![remove]),
    }
    verdict.warnings.push(Warning::new(
        Reason::TrustLabelIgnored,
        format!(
            "label {} was taken off the Pod: it says that an agent's card was verified, and Drawbridge puts it on Pods of verified agents itself. \
             Leave it out of the template",
            keys::LABEL_VERIFIED
        ),
    ));
    verdict
}
