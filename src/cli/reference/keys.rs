//! Every label and annotation a person may set, with the values that mean something.
//!
//! The generated reference, `validate` and
//! `explain --what-if` read this table.

use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;
use crate::domain::trust::TrustLevel;

/// What carries a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Label of a Pod (template).
    PodLabel,
    /// Annotation of a Pod (template).
    PodAnnotation,
    /// Label of a Namespace.
    NamespaceLabel,
    /// Label of a ConfigMap.
    ConfigMapLabel,
    /// Annotation of an AgentBuild.
    AgentBuildAnnotation,
    /// Annotation of an Agent.
    AgentAnnotation,
    /// Annotation of an Agent or AgentBuild.
    ConsentingAnnotation,
    /// Label of a ServiceAccount.
    ServiceAccountLabel,
    /// Annotation of a Secret.
    SecretAnnotation,
    /// Annotation of a Service.
    ServiceAnnotation,
    /// Annotation of an AgentCard.
    AgentCardAnnotation,
    /// Annotation of a Namespace.
    NamespaceAnnotation,
    /// Written by Drawbridge; people read it.
    Ours,
}

impl Carrier {
    /// The column of the reference table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Carrier::PodLabel => "Pod label",
            Carrier::PodAnnotation => "Pod annotation",
            Carrier::NamespaceLabel => "Namespace label",
            Carrier::ConfigMapLabel => "ConfigMap label",
            Carrier::AgentBuildAnnotation => "AgentBuild annotation",
            Carrier::AgentAnnotation => "Agent annotation",
            Carrier::ConsentingAnnotation => "Agent or AgentBuild annotation",
            Carrier::ServiceAccountLabel => "ServiceAccount label",
            Carrier::SecretAnnotation => "Secret annotation",
            Carrier::ServiceAnnotation => "Service annotation",
            Carrier::AgentCardAnnotation => "AgentCard annotation",
            Carrier::NamespaceAnnotation => "Namespace annotation",
            Carrier::Ours => "written by Drawbridge",
        }
    }
}

/// Which values mean something.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these; another one means nothing.
    OneOf(&'static [&'static str]),
    /// A comma list of port numbers.
    Ports,
    /// Any text.
    Any,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The key.
    pub key: &'static str,
    /// What carries it.
    pub carrier: Carrier,
    /// Its values.
    pub values: Values,
    /// What it does.
    pub help: &'static str,
}

const fn row(key: &'static str, carrier: Carrier, values: Values, help: &'static str) -> Row {
    Row { key, carrier, values, help }
}

const SWITCH: Values = Values::OneOf(&["true", "false"]);

/// The levels of trust, as the label spells them.
const LEVELS: &[&str] = &[
    TrustLevel::Off.as_str(),
    TrustLevel::Audit.as_str(),
    TrustLevel::Enforced.as_str(),
    TrustLevel::EnforcedAll.as_str(),
];

/// The table, in documentation order.
pub const ROWS: &[Row] = &[
    row(
        keys::LABEL_TYPE,
        Carrier::PodLabel,
        Values::OneOf(&["agent", "tool"]),
        "enrols the Pod; on a workload itself, enrols it through the controller (`enrolment.byWorkloadLabel`)",
    ),
    row(
        keys::LABEL_INJECT,
        Carrier::PodLabel,
        Values::OneOf(&["disabled", "enabled"]),
        "`disabled` opts the Pod out; every other value is as if absent",
    ),
    row(
        keys::LABEL_ENVOY_PROXY,
        Carrier::PodLabel,
        SWITCH,
        "`false` leaves out envoy-proxy and proxy-init (mode envoy-sidecar)",
    ),
    row(keys::LABEL_SPIFFE_HELPER, Carrier::PodLabel, SWITCH, "`false` leaves out the SPIRE parts"),
    row(keys::LABEL_CLIENT_REGISTRATION, Carrier::PodLabel, SWITCH, "`true` asks for the registration sidecar"),
    row(
        keys::ANNOTATION_MODE,
        Carrier::PodAnnotation,
        Values::OneOf(&["envoy-sidecar", "proxy-sidecar", "waypoint"]),
        "which sidecars; an AgentRuntime wins over it, the namespace's ConfigMaps lose",
    ),
    row(
        keys::ANNOTATION_OUTBOUND_EXCLUDE,
        Carrier::PodAnnotation,
        Values::Ports,
        "outbound ports that bypass the proxy",
    ),
    row(keys::ANNOTATION_INBOUND_EXCLUDE, Carrier::PodAnnotation, Values::Ports, "inbound ports that bypass the proxy"),
    row(
        keys::ANNOTATION_CREDENTIALS,
        Carrier::PodAnnotation,
        Values::Any,
        "Secret with the OAuth client's credentials, mounted into the sidecars",
    ),
    row(
        keys::ANNOTATION_NATIVE_SIDECARS,
        Carrier::PodAnnotation,
        Values::OneOf(&["auto", "disabled"]),
        "`disabled` makes the sidecars regular containers",
    ),
    row(
        keys::ANNOTATION_PORT_VARIABLE,
        Carrier::PodAnnotation,
        Values::Any,
        "the variable that tells the agent its port (mode proxy-sidecar); `PORT` when absent, `none` when nothing does: such a Pod is \
         refused there (`PortFixed`)",
    ),
    row(
        keys::ANNOTATION_SIGN,
        Carrier::PodAnnotation,
        Values::OneOf(&["true", keys::SIGN_SIDECAR, "false"]),
        "`true`: each Pod signs its agent's card when it starts, and publishes it in ConfigMap `WORKLOAD-card-signed`; `sidecar`: and again \
         whenever its SVID is renewed or the card changes, so that no restart is needed; where a Pod cannot have a native sidecar that is `true` (`SignsAtStart`)",
    ),
    row(
        keys::ANNOTATION_MOUNT_SIGNED,
        Carrier::PodAnnotation,
        SWITCH,
        "`true`, beside the one before: the agent's containers see the signed card as `/app/.well-known/agent-card.json`",
    ),
    row(
        keys::ANNOTATION_CARD_PORT,
        Carrier::ServiceAnnotation,
        Values::Any,
        "number of the Service's port at which the agent's card is asked for; where it says nothing, the workload's own annotation of that \
         name does (number or name of the port), else ports named `a2a` or `http`, then the first",
    ),
    row(
        keys::ANNOTATION_CARD_REFRESH,
        Carrier::AgentCardAnnotation,
        Values::Any,
        "a value other than the one handled last has the agent asked for its card at once, at most every 5 s",
    ),
    row(
        keys::ANNOTATION_RESIGN,
        Carrier::PodAnnotation,
        SWITCH,
        "`true`: its Pods sign their card when they start, though no init container `sign-agentcard` says so; they are restarted when the \
         card has to be signed anew (`cards.proactiveRestart`)",
    ),
    row(
        keys::LABEL_NAMESPACE_ENABLED,
        Carrier::NamespaceLabel,
        SWITCH,
        "`false` opts the namespace out; `true` is needed only with `requireNamespaceLabel`",
    ),
    row(
        keys::LABEL_TRUST,
        Carrier::NamespaceLabel,
        Values::OneOf(LEVELS),
        "what follows from what cards prove: `off` nothing, `audit` labels the Pods of verified agents, `enforced` cuts off agents that are \
         not verified, `enforced-all` does so with every Pod; another value counts as none, and what holds is never less than `cards.trustFloor`",
    ),
    row(
        keys::LABEL_CATALOGUE,
        Carrier::NamespaceLabel,
        Values::OneOf(&[keys::SHARED]),
        "`shared` shows the verified agents of the namespace to callers of the catalogue from every other one, too (`cards.catalogue.enabled`)",
    ),
    row(
        keys::LABEL_DEFAULTS,
        Carrier::ConfigMapLabel,
        SWITCH,
        "`true`: key `config.yaml` is a layer of the namespace's configuration",
    ),
    row(
        keys::LABEL_STEP,
        Carrier::ConfigMapLabel,
        Values::OneOf(&[keys::LABEL_STEP_VALUE]),
        "the ConfigMap holds a build step; not needed in the operator's namespace",
    ),
    row(
        keys::ANNOTATION_REBUILD,
        Carrier::AgentBuildAnnotation,
        Values::Any,
        "any change of the value starts a build (`drawbridge build run` and `retry` write it)",
    ),
    row(
        keys::ANNOTATION_CANCEL,
        Carrier::AgentBuildAnnotation,
        Values::Any,
        "a value other than the one handled last cancels the build that runs or waits (`drawbridge build cancel` writes it)",
    ),
    row(
        keys::ANNOTATION_REFRESH_TEMPLATE,
        Carrier::AgentBuildAnnotation,
        Values::Any,
        "a value other than the one handled last takes the template's steps anew",
    ),
    row(
        keys::ANNOTATION_REPLICAS_EXTERNAL,
        Carrier::AgentAnnotation,
        Values::OneOf(&["true"]),
        "`true`: an autoscaler, or somebody else, decides how many Pods there are",
    ),
    row(
        keys::ANNOTATION_SECURITY_PROFILE,
        Carrier::AgentAnnotation,
        Values::OneOf(&["restricted", "baseline"]),
        "of an Agent of beeai.dev: `baseline` lets it run as root and write to its own image, where the platform allows that \
         (`beeai.allowBaseline`); `restricted` when absent",
    ),
    row(
        keys::ANNOTATION_LOCKDOWN,
        Carrier::AgentAnnotation,
        Values::OneOf(&[keys::LOCKDOWN_NOW]),
        "of an Agent of beeai.dev: `now` locks down a Deployment of the original operator at once, and not when its Agent changes",
    ),
    row(
        keys::ANNOTATION_BEEAI_REBUILD,
        Carrier::AgentBuildAnnotation,
        Values::Any,
        "of an AgentBuild of beeai.dev: a new value builds the same inputs again",
    ),
    row(
        keys::ANNOTATION_BEEAI_CANCEL,
        Carrier::AgentBuildAnnotation,
        Values::Any,
        "of an AgentBuild of beeai.dev: a value other than the one handled last cancels the build that runs or waits",
    ),
    row(
        keys::LABEL_BUILD_ACCOUNT,
        Carrier::ServiceAccountLabel,
        Values::OneOf(&["true"]),
        "`true`: builds of the namespace may name this ServiceAccount",
    ),
    row(
        keys::ANNOTATION_GIT_HOSTS,
        Carrier::SecretAnnotation,
        Values::Any,
        "hosts, separated by commas, that a build may use these git credentials for; see `builds.requireGitHosts`",
    ),
    row(
        keys::ANNOTATION_REGISTRY_HOSTS,
        Carrier::SecretAnnotation,
        Values::Any,
        "registries, separated by commas, that a build may use these credentials for",
    ),
    row(
        keys::ANNOTATION_USABLE_BY,
        Carrier::SecretAnnotation,
        Values::Any,
        "`builds`, `agents` or both, separated by commas: they may use the Secret though whoever writes them has no right to it. For builds \
         the annotation of its hosts must be there, too",
    ),
    row(
        keys::ANNOTATION_SECRETS_BY_CONSENT,
        Carrier::ConsentingAnnotation,
        Values::Any,
        "Secrets, separated by commas, that are used by their own consent (`agent.kagenti.dev/usable-by`) instead of the rights of whoever \
         writes the object; what a template of the platform names is added",
    ),
    row(
        keys::ANNOTATION_QUARANTINE,
        Carrier::NamespaceAnnotation,
        Values::Any,
        "the workloads of it that are in quarantine, separated by commas, or `*` for every Pod (`drawbridge \
         quarantine` and `release` write it)",
    ),
    row(
        keys::ANNOTATION_CONFIG_HASH,
        Carrier::Ours,
        Values::Any,
        "hash of everything that would change the injected result",
    ),
    row(
        keys::ANNOTATION_STATUS,
        Carrier::Ours,
        Values::Any,
        "what was added, part by part; a second injection reads it",
    ),
    row(
        keys::ANNOTATION_RUNTIME_CONFIG,
        Carrier::Ours,
        Values::Any,
        "the sidecars' runtime configuration, mounted at `/etc/authbridge/config.yaml`",
    ),
    row(
        keys::LABEL_MANAGED_BY,
        Carrier::Ours,
        Values::Any,
        "`webhook` on ServiceAccounts made for injected Pods, `drawbridge` on workloads that an AgentRuntime enrols",
    ),
];

/// Keys of other parts of the platform, or of earlier versions; nothing in this binary reads them of Pods.
pub const ELSEWHERE: &[&str] = &[
    "kagenti.io/spire",
    "kagenti.io/mtls-mode",
    "kagenti.io/skills",
    "kagenti.io/restart-pending",
    "kagenti.io/protocol",
    "kagenti.io/agent-protocol",
    "kagenti.io/istio-mesh",
    "kagenti.io/cleanup",
    "kagenti.io/otel-config-hash",
    "kagenti.io/framework",
    "kagenti.io/workload-type",
    "kagenti.io/transport",
];

/// Prefix of our keys.
const PREFIX: &str = "kagenti.io";

/// What is wrong with a key where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The webhook's own word for it; `None` where no review would ever speak of it.
    pub reason: Option<Reason>,
    /// What, and what was meant.
    pub text: String,
}

/// What is wrong with a key at that carrier; `None` when nothing is.
#[must_use]
pub fn fault(key: &str, value: &str, carrier: Carrier) -> Option<Fault> {
    let unspoken = |text: String| Fault { reason: None, text };
    if let Some(row) = ROWS.iter().find(|row| row.key == key) {
        let bad = || bad_value(row, value).map(|text| Fault { reason: Some(reason_of(row)), text });
        return misplaced(row, carrier).map(unspoken).or_else(bad);
    }
    misspelt(key).map(unspoken)
}

/// The webhook's word for a value of that key that means nothing.
fn reason_of(row: &Row) -> Reason {
    match row.values {
        Values::Ports => Reason::PortDropped,
        _ if row.key == keys::ANNOTATION_MODE => Reason::UnknownMode,
        _ => Reason::UnknownValue,
    }
}

/// What is wrong with a key that is not in the table.
fn misspelt(key: &str) -> Option<String> {
    if ELSEWHERE.contains(&key) {
        return None;
    }
    let known = ROWS.iter().map(|row| row.key);
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let meant = nearest(key, known);
    if prefix == PREFIX {
        let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        return Some(format!("{key} is not a key that means anything{hint}"));
    }
    // Another prefix is somebody else's, unless both halves are nearly ours.
    let near_prefix = prefix.is_empty() || nearest(prefix, [PREFIX]).is_some();
    let meant = meant.filter(|meant| near_prefix && (!prefix.is_empty() || !meant.contains('/')))?;
    Some(format!("{key} is not a key that means anything; did you mean {meant}?"))
}

fn misplaced(row: &Row, carrier: Carrier) -> Option<String> {
    (row.carrier != carrier && row.carrier != Carrier::Ours).then(|| {
        format!("{} belongs elsewhere ({}) and has no effect as a {}", row.key, row.carrier.as_str(), carrier.as_str())
    })
}

fn bad_value(row: &Row, value: &str) -> Option<String> {
    match row.values {
        Values::OneOf(known) if !known.contains(&value) => {
            let hint = match nearest(value, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("values are {}", known.join(", ")),
            };
            Some(format!("{}: value {value:?} means nothing; {hint}", row.key))
        }
        Values::Ports => {
            let wrong: Vec<_> = value
                .split(',')
                .map(str::trim)
                .filter(|port| !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0))
                .collect();
            (!wrong.is_empty()).then(|| format!("{}: {} is not a port", row.key, wrong.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_keys_and_values_are_told() {
        for (key, value, carrier, says) in [
            ("kagenti.io/typ", "agent", Carrier::PodLabel, Some("did you mean kagenti.io/type?")),
            ("kagneti.io/type", "agent", Carrier::PodLabel, Some("did you mean kagenti.io/type?")),
            ("kagenti.io/type", "Agent", Carrier::PodLabel, Some("did you mean agent?")),
            ("kagenti.io/type", "agent", Carrier::PodLabel, None),
            (
                "kagenti.io/authbridge-mode",
                "proxy-sidecart",
                Carrier::PodAnnotation,
                Some("did you mean proxy-sidecar?"),
            ),
            ("kagenti.io/authbridge-mode", "waypoint", Carrier::PodLabel, Some("has no effect as a Pod label")),
            (
                "agent.kagenti.dev/rebuild",
                "1",
                Carrier::PodAnnotation,
                Some("(AgentBuild annotation) and has no effect"),
            ),
            ("kagenti.operator.dev/tekton", "step", Carrier::ConfigMapLabel, None),
            (
                "kagenti.io/outbound-ports-exclude",
                "80, x,70000",
                Carrier::PodAnnotation,
                Some("x, 70000 is not a port"),
            ),
            ("kagenti-enable", "true", Carrier::NamespaceLabel, Some("did you mean kagenti-enabled?")),
            ("kagenti.io/whatever-else", "", Carrier::PodLabel, Some("not a key that means anything")),
            ("kagenti.io/protocol", "a2a", Carrier::PodLabel, None),
            (
                "kagenti.io/port",
                "8000",
                Carrier::PodAnnotation,
                Some("(Service annotation) and has no effect as a Pod annotation"),
            ),
            ("app.kubernetes.io/name", "x", Carrier::PodLabel, None),
            ("protocol.kagenti.io/a2a", "", Carrier::PodLabel, None),
            ("sidecar.istio.io/inject", "false", Carrier::PodAnnotation, None),
            ("app", "x", Carrier::PodLabel, None),
            ("type", "x", Carrier::PodLabel, None),
        ] {
            let fault = fault(key, value, carrier).map(|fault| fault.text);
            match says {
                None => assert_eq!(fault, None, "{key}"),
                Some(says) => assert!(fault.as_deref().unwrap_or("").contains(says), "{key}: {fault:?}"),
            }
        }
    }

    #[test]
    fn a_value_that_means_nothing_has_the_word_of_the_webhook() {
        for (key, value, carrier, reason) in [
            ("kagenti.io/type", "agnet", Carrier::PodLabel, Some(Reason::UnknownValue)),
            ("kagenti.io/inject", "no", Carrier::PodLabel, Some(Reason::UnknownValue)),
            ("kagenti.io/authbridge-mode", "foo", Carrier::PodAnnotation, Some(Reason::UnknownMode)),
            ("kagenti.io/inbound-ports-exclude", "x", Carrier::PodAnnotation, Some(Reason::PortDropped)),
            ("agent.kagenti.dev/trust", "enforce", Carrier::NamespaceLabel, Some(Reason::UnknownValue)),
            ("kagenti.io/typ", "agent", Carrier::PodLabel, None),
            ("kagenti.io/authbridge-mode", "foo", Carrier::PodLabel, None),
        ] {
            let fault = fault(key, value, carrier).unwrap();
            assert_eq!(fault.reason, reason, "{fault:?}");
        }
    }

    #[test]
    fn the_keys_of_trust_and_of_beeai_are_known_where_they_are_read() {
        for (key, value, carrier) in [
            ("agent.kagenti.dev/trust", "enforced-all", Carrier::NamespaceLabel),
            ("agent.kagenti.dev/quarantine", "weather", Carrier::NamespaceAnnotation),
            ("agentcard.kagenti.dev/resign", "true", Carrier::PodAnnotation),
            ("beeai.dev/security-profile", "baseline", Carrier::AgentAnnotation),
            ("beeai.dev/lockdown", "now", Carrier::AgentAnnotation),
            ("beeai.dev/rebuild", "1", Carrier::AgentBuildAnnotation),
            ("beeai.dev/cancel", "1", Carrier::AgentBuildAnnotation),
        ] {
            assert!(ROWS.iter().any(|row| row.key == key && row.carrier == carrier), "{key}");
            assert_eq!(fault(key, value, carrier), None, "{key}");
        }
        // Every level, and no other word.
        for level in TrustLevel::ALL {
            assert_eq!(fault(keys::LABEL_TRUST, level.as_str(), Carrier::NamespaceLabel), None);
        }
    }

    #[test]
    fn no_key_stands_twice() {
        let mut seen = std::collections::BTreeSet::new();
        assert!(ROWS.iter().map(|row| row.key).chain(ELSEWHERE.iter().copied()).all(|key| seen.insert(key)));
    }
}
