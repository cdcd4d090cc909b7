//! The dedicated ServiceAccount.
//!
//! Asked for only when the plan has SPIRE parts and the Pod names none. The webhook makes nothing: it assigns what
//! the view knows as ours, asks the caller to try again while it is missing, and refuses somebody else's.

use super::context::Context;
use crate::admission::verdict::{Denial, Warning};
use crate::config::view::Ownership;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};

/// The account of whoever names none.
const DEFAULT: &str = "default";

/// What the Pod's ServiceAccount comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Demand {
    /// The Pod keeps the one it names, or needs no identity.
    None,
    /// A dedicated one is wanted and nobody makes one for this owner.
    Kept,
    /// The dedicated one of that name.
    Dedicated(String),
}

/// What is asked for, whether or not it exists.
pub(super) fn demand(pod_account: &str, spire: bool, workload: &Workload) -> Demand {
    if !spire || !matches!(pod_account, "" | DEFAULT) {
        return Demand::None;
    }
    if WorkloadKind::WITH_TEMPLATE.contains(&workload.kind) {
        Demand::Dedicated(workload.service_account().to_owned())
    } else {
        Demand::Kept
    }
}

/// The warning that the Pod shares an identity.
pub(super) fn kept(workload: &Workload) -> Warning {
    let owner = match workload.kind {
        WorkloadKind::Pod => "a Pod that nobody controls".to_owned(),
        WorkloadKind::Unknown => "a Pod whose controller is of a kind that Drawbridge does not know".to_owned(),
        kind => format!("a Pod of a {}", kind.as_str()),
    };
    Warning::new(
        Reason::ServiceAccountKept,
        format!(
            "{owner} keeps its ServiceAccount, so its SPIFFE identity is shared with whatever runs under it; set \
             spec.serviceAccountName to give it its own"
        ),
    )
}

/// The ServiceAccount may be assigned, or why not.
pub(super) fn check(cx: &Context<'_>, name: &str) -> Result<(), Box<Denial>> {
    let namespace = cx.subject.namespace;
    match (name, cx.subject.view().service_accounts.get(name)) {
        // Every namespace has `default`, and a label of ours on it changes nothing.
        (DEFAULT, _) | (_, Some(Ownership::Foreign)) => Err(Box::new(
            Denial::new(
                Reason::ServiceAccountConflict,
                409,
                format!(
                    "ServiceAccount {namespace}/{name} exists and was not made by Drawbridge, and running under it would give the Pod \
                     its permissions"
                ),
                // Every Pod that names none runs under that one: it counts as none, and is nobody's to be handed over.
                if name == DEFAULT {
                    format!("set spec.serviceAccountName to another one than {DEFAULT}, or give the workload another name")
                } else {
                    format!(
                        "set spec.serviceAccountName yourself (to {name}, if that is what you want), or hand it over with: \
                         kubectl label serviceaccount {name} -n {namespace} {}={}",
                        keys::LABEL_MANAGED_BY,
                        keys::MANAGED_BY_WEBHOOK
                    )
                },
            )
            .at("spec.serviceAccountName", shown(cx)),
        )),
        (_, Some(Ownership::Ours)) => Ok(()),
        (_, None) => Err(Box::new(
            Denial::new(
                Reason::ServiceAccountPending,
                409,
                format!("ServiceAccount {namespace}/{name} does not exist yet; Drawbridge is making it"),
                "nothing, the controller of the Pod tries again by itself; if this stays, drawbridge doctor shows \
                 whether the controllers run and may make it",
            )
            .at("spec.serviceAccountName", shown(cx)),
        )),
    }
}

fn shown(cx: &Context<'_>) -> String {
    format!("\"{}\"", cx.subject.pod.service_account())
}
