//! Inject or not, and which sidecars: two tables.
//!
//! In: a [`Subject`]. Out: the first pre-filter that ends the decision, and per sidecar who decided what. Labels and
//! gates only; SPIRE's presence, the mode and the credentials annotation are laid over it in `effective`.

use std::sync::Arc;

use super::pod::PodView;
use crate::config::gates::Gates;
use crate::config::resolved::Resolved;
use crate::config::snapshot::Snapshot;
use crate::config::view::NamespaceView;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// What a decision is taken from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The Pod or template.
    pub(super) pod: PodView<'a>,
    /// The namespace of the request.
    pub(super) namespace: &'a str,
    /// Everything admission may know.
    pub(super) snapshot: &'a Snapshot,
    /// What is known of the namespace: looked up once, asked for a dozen times.
    known: Option<&'a NamespaceView>,
}

impl<'a> Subject<'a> {
    /// That Pod or template in that namespace.
    pub(super) fn new(pod: PodView<'a>, namespace: &'a str, snapshot: &'a Snapshot) -> Self {
        Self { pod, namespace, snapshot, known: snapshot.namespace(namespace).map(Arc::as_ref) }
    }

    /// What is known of the namespace; what holds in a fresh one where nothing is.
    pub(super) fn view(&self) -> &'a NamespaceView {
        self.known.unwrap_or(&self.snapshot.fresh)
    }

    /// The namespace was made a moment ago, or its news is late.
    pub(super) const fn is_new_here(&self) -> bool {
        self.known.is_none()
    }

    /// The configuration in force in the namespace.
    pub(super) fn resolved(&self) -> &'a Resolved {
        &self.view().resolved
    }

    /// Value of label `kagenti.io/type`, empty when absent.
    fn kind(&self) -> &'a str {
        self.pod.label(keys::LABEL_TYPE).unwrap_or("")
    }
}

/// One pre-filter: what is asked, what was found, and whether it ends the decision.
pub(super) struct Filter {
    /// What is asked, for people.
    pub(super) name: &'static str,
    /// The reason it gives when it ends the decision.
    pub(super) reason: Reason,
    /// What was found, for people.
    pub(super) seen: fn(&Subject<'_>) -> String,
    /// Whether it ends the decision.
    pub(super) stops: fn(&Subject<'_>) -> bool,
}

fn shown(value: Option<&str>) -> String {
    value.map_or_else(|| "absent".to_owned(), |value| format!("\"{value}\""))
}

fn namespace_label(subject: &Subject<'_>) -> String {
    let value = subject.view().enabled_label.as_deref();
    let is_read = matches!(value, None | Some("true" | "false"));
    shown(value) + if is_read { "" } else { ", which is neither true nor false" }
}

/// First hit decides.
pub(super) const PRE_FILTERS: &[Filter] = &[
    Filter {
        name: "namespace",
        reason: Reason::SystemNamespace,
        seen: |s| s.namespace.to_owned(),
        stops: |s| {
            keys::SYSTEM_NAMESPACES.contains(&s.namespace) || s.namespace == &*s.snapshot.view.operator_namespace
        },
    },
    Filter {
        name: "annotation kubernetes.io/config.mirror",
        reason: Reason::MirrorPod,
        seen: |s| shown(s.pod.annotation(keys::ANNOTATION_MIRROR)),
        stops: |s| s.pod.annotation(keys::ANNOTATION_MIRROR).is_some(),
    },
    Filter {
        name: "label kagenti.io/type",
        reason: Reason::NoTypeLabel,
        seen: |s| shown(s.pod.label(keys::LABEL_TYPE)),
        stops: |s| !matches!(s.kind(), "agent" | "tool"),
    },
    Filter {
        name: "gate globalEnabled",
        reason: Reason::GlobalDisabled,
        seen: |s| s.snapshot.gates.global_enabled.to_string(),
        stops: |s| !s.snapshot.gates.global_enabled,
    },
    Filter {
        name: "gate injectTools",
        reason: Reason::ToolsDisabled,
        seen: |s| s.snapshot.gates.inject_tools.to_string(),
        stops: |s| s.kind() == "tool" && !s.snapshot.gates.inject_tools,
    },
    Filter {
        name: "label kagenti.io/inject",
        reason: Reason::OptedOut,
        seen: |s| shown(s.pod.label(keys::LABEL_INJECT)),
        stops: |s| s.pod.label(keys::LABEL_INJECT) == Some(keys::INJECT_DISABLED),
    },
    Filter {
        name: "namespace label kagenti-enabled",
        reason: Reason::NamespaceOptedOut,
        seen: namespace_label,
        stops: |s| s.view().enabled_label.as_deref() == Some("false"),
    },
    Filter {
        name: "requireNamespaceLabel",
        reason: Reason::NamespaceNotEnrolled,
        seen: |s| format!("{}, label kagenti-enabled {}", s.snapshot.require_namespace_label, namespace_label(s)),
        stops: |s| s.snapshot.require_namespace_label && s.view().enabled_label.as_deref() != Some("true"),
    },
    Filter {
        name: "containers",
        reason: Reason::NoContainers,
        seen: |s| s.pod.list("containers").len().to_string(),
        stops: |s| s.pod.list("containers").is_empty(),
    },
];

/// The pre-filter that ends the decision, if any.
pub(super) fn stopped(subject: &Subject<'_>) -> Option<&'static Filter> {
    PRE_FILTERS.iter().find(|filter| (filter.stops)(subject))
}

/// Who decided about a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecidedBy {
    /// A feature gate.
    FeatureGate,
    /// A label of the Pod.
    WorkloadLabel,
    /// An annotation of the Pod.
    WorkloadAnnotation,
    /// Nobody said otherwise.
    Default,
    /// The mode has its own proxy, or none.
    Mode,
    /// The SPIRE switch, or the absence of its driver.
    Spire,
    /// The credentials annotation.
    Credentials,
}

impl DecidedBy {
    /// The layer's name, as reported.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            DecidedBy::FeatureGate => "feature-gate",
            DecidedBy::WorkloadLabel => "workload-label",
            DecidedBy::WorkloadAnnotation => "workload-annotation",
            DecidedBy::Default => "default",
            DecidedBy::Mode => "mode",
            DecidedBy::Spire => "spire",
            DecidedBy::Credentials => "credentials",
        }
    }
}

/// The decision about one sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    /// Whether it is injected.
    pub(super) inject: bool,
    /// Who said so.
    pub(super) by: DecidedBy,
}

/// How the label of a sidecar is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// `"false"` leaves it out.
    OptOut,
    /// `"true"` asks for it.
    OptIn,
}

/// One sidecar with its gate and label.
struct Row {
    gate: fn(&Gates) -> bool,
    label: &'static str,
    reading: Reading,
}

const ENVOY: Row = Row { gate: |g| g.envoy_proxy, label: keys::LABEL_ENVOY_PROXY, reading: Reading::OptOut };
const SPIFFE: Row = Row { gate: |g| g.spiffe_helper, label: keys::LABEL_SPIFFE_HELPER, reading: Reading::OptOut };
const REGISTRATION: Row =
    Row { gate: |g| g.client_registration, label: keys::LABEL_CLIENT_REGISTRATION, reading: Reading::OptIn };

impl Row {
    fn decide(&self, pod: PodView<'_>, gates: &Gates) -> Decision {
        let label = pod.label(self.label);
        let (inject, by) = match self.reading {
            _ if !(self.gate)(gates) => (false, DecidedBy::FeatureGate),
            Reading::OptOut if label == Some("false") => (false, DecidedBy::WorkloadLabel),
            Reading::OptOut => (true, DecidedBy::Default),
            Reading::OptIn if label == Some("true") => (true, DecidedBy::WorkloadLabel),
            Reading::OptIn => (false, DecidedBy::Default),
        };
        Decision { inject, by }
    }
}

/// The decision per sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decisions {
    /// `envoy-proxy`.
    pub(super) envoy: Decision,
    /// `proxy-init`, which follows envoy-proxy.
    pub(super) proxy_init: Decision,
    /// `spiffe-helper` and every other SPIRE part.
    pub(super) spiffe: Decision,
    /// `kagenti-client-registration`.
    pub(super) registration: Decision,
    /// `sign-agentcard`.
    pub(super) signer: Decision,
}

impl Decisions {
    /// None of them, by that layer's word.
    pub(super) fn none(by: DecidedBy) -> Self {
        let none = Decision { inject: false, by };
        Self { envoy: none, proxy_init: none, spiffe: none, registration: none, signer: none }
    }
}

/// Gate, then label.
pub(super) fn sidecars(pod: PodView<'_>, gates: &Gates) -> Decisions {
    let envoy = ENVOY.decide(pod, gates);
    Decisions {
        envoy,
        proxy_init: envoy,
        spiffe: SPIFFE.decide(pod, gates),
        registration: REGISTRATION.decide(pod, gates),
        // Decided last, by what SPIRE comes to.
        signer: Decision { inject: false, by: DecidedBy::Default },
    }
}

#[cfg(test)]
mod tests;
