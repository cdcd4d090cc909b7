//! The alerts as data: what is worth waking somebody for, and what that person does then.
//!
//! Metrics of ours stand here by the names the process registers (held by a test); `apiserver_*` is the API server's own. A counter that
//! is not there before its first event has no increase at that event, so that such rules look at the appearance, too. Both roles expose most
//! metrics, and other programs that elect a leader expose `leader_election_master_status`: a rule about one role goes by a series that only it
//! has, `WEBHOOK` or `leader()`, or the other role hides what it is about; and since a sum or a maximum over nothing is nothing, a rule about
//! replicas that are gone asks whether the series is absent.

use crate::domain::keys;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Somebody's agent runs unprotected, or cannot run.
    Critical,
    /// It will be bad, or somebody is told too little.
    Warning,
}

impl Severity {
    /// Value of label `severity`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
        }
    }
}

/// One alert.
#[derive(Clone, Copy)]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// PromQL; every result is an alert.
    pub expression: fn() -> String,
    /// How long it must hold.
    pub lasting: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter, with Prometheus' templates.
    pub summary: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Open connections of the webhook's port: there from the start wherever reviews are served, and nowhere else.
const WEBHOOK: &str = "drawbridge_connections{port=\"webhook\"}";

/// Every alert.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "DrawbridgeFailedOpen",
        expression: || happened(&fail_open(keys::WEBHOOK_INJECT)),
        lasting: "0s",
        severity: Severity::Critical,
        summary: "The API server admitted enrolled Pods without asking Drawbridge",
        remedy: "No replica answered in time and the webhook's failure policy is Ignore. With install-gate.yaml these Pods wait behind the \
                 scheduling gate and are replaced; without the gate policy they run unprotected: drawbridge doctor shows which, \
                 drawbridge status -A shows the Pods.",
    },
    Alert {
        name: "DrawbridgeAdviceLost",
        expression: || happened(&fail_open(&format!("{}|{}", keys::WEBHOOK_EXPLAIN, keys::WEBHOOK_AGENT_RUNTIME))),
        lasting: "0s",
        severity: Severity::Warning,
        summary: "The API server went on without the advice of Drawbridge's webhook {{ $labels.name }}",
        remedy: "Nothing ran unprotected; people who applied workloads or AgentRuntimes were not told what becomes of them, and \
                 conditions tell instead. Look at the webhook's replicas and at drawbridge doctor.",
    },
    Alert {
        name: "DrawbridgePodsGated",
        expression: || "time() - min(drawbridge_gated_pods_oldest_seconds > 0) > 60".to_owned(),
        lasting: "0s",
        severity: Severity::Critical,
        summary: "An enrolled Pod has waited behind the scheduling gate for more than a minute",
        remedy: "It was created while no webhook replica answered. Pods with a controller are replaced once one answers; Pods without one \
                 have to be made again: drawbridge status -A shows them.",
    },
    Alert {
        name: "DrawbridgePodsUnprotected",
        expression: || led("drawbridge_drifted_pods{state=\"unprotected\"} > 0"),
        lasting: "5m",
        severity: Severity::Critical,
        summary: "{{ $value }} Pods of enrolled workloads run without sidecars",
        remedy: "They are older than the enrolment, or were made while nothing held them back. drawbridge status -A shows their workloads; \
                 restart those, or set repair: evict in the platform file.",
    },
    Alert {
        name: "DrawbridgeAgentRuntimesUnprotected",
        expression: || led("drawbridge_agent_runtimes{state=\"unprotected\"} > 0"),
        lasting: "10m",
        severity: Severity::Warning,
        summary: "{{ $value }} AgentRuntimes say that their workloads are not protected",
        remedy: "Their Pods run without sidecars, or do not exist. kubectl get agentruntimes -A shows which (columns Protected and \
                 Reason); drawbridge status -A shows the cause and what to do.",
    },
    Alert {
        name: "DrawbridgeTrustNotArmed",
        expression: || led("drawbridge_trust_namespaces{state=\"waiting\"} > 0"),
        lasting: "5m",
        severity: Severity::Critical,
        summary: "{{ $value }} namespaces enforce trust and lack what cuts agents off, so no Pod of an agent is made there",
        remedy: "drawbridge doctor shows them and what is in the way: a NetworkPolicy of the same name that is somebody else's, a quota \
                 for NetworkPolicies, or a right that is missing.",
    },
    Alert {
        name: "DrawbridgeTrustBundleOld",
        expression: || "max(kagenti_x5c_trust_bundle_age_seconds) > 21600".to_owned(),
        lasting: "10m",
        severity: Severity::Warning,
        summary: "The trust bundle was last readable {{ $value | humanizeDuration }} ago",
        remedy: "Once it is older than cards.trustBundle.maxAgeSeconds (a day when unset), no agent stays verified, and where trust is enforced all are \
                 cut off. drawbridge doctor shows where it is looked for; kagenti_x5c_trust_bundle_load_errors_total shows why it is not read.",
    },
    Alert {
        name: "DrawbridgeRolloutsHalted",
        expression: || led("drawbridge_rollouts{state=\"failed\"} >= 2"),
        lasting: "1m",
        severity: Severity::Warning,
        summary: "A change of configuration is not rolled any further: {{ $value }} workloads failed with it",
        remedy: "Their new Pods did not become available in time. drawbridge status -A shows them (rollout stalled); repair or revert the \
                 change, and the wave goes on by itself.",
    },
    Alert {
        name: "DrawbridgeRolloutsSlow",
        expression: || {
            let (slow, waiting) = ("drawbridge_rollouts{state=\"slow\"}", "drawbridge_rollouts{state=\"waiting\"}");
            led(&format!("{slow} > 0 and on (instance) {waiting} > 0"))
        },
        lasting: "30m",
        severity: Severity::Warning,
        summary: "{{ $value }} workloads have rolled for long and keep others from a change of configuration",
        remedy: "They keep their places in the wave until they are done, and the others run with the old configuration. drawbridge \
            status -A shows them (rollout progressing); kubectl describe says what their new Pods wait for. One that can wait is paused or \
                 scaled to zero, and gives its place back.",
    },
    Alert {
        name: "DrawbridgeNoReplicaAnswers",
        expression: || format!("absent({WEBHOOK})"),
        lasting: "5m",
        severity: Severity::Critical,
        summary: "No replica of Drawbridge that serves the webhook is scraped",
        remedy: "Enrolled Pods are refused or gated, and nothing is judged at apply. Look at Deployment drawbridge-webhook, and at the scrape \
                 configuration of port 8081, path /metrics. Where nothing of Drawbridge is scraped, no other alert tells of \
                 drawbridge-controllers.",
    },
    Alert {
        name: "DrawbridgeNobodyLeads",
        // Where the webhook is not scraped either, the alert above says so.
        expression: || {
            let leader = leader();
            format!("sum({leader}) < 1\nor absent({leader}) and on () {WEBHOOK}")
        },
        lasting: "2m",
        severity: Severity::Critical,
        summary: "No replica of the controllers holds the Lease",
        remedy: "Nothing is enrolled, re-hashed or made ahead of Pods. Look at Deployment drawbridge-controllers and its logs, and at Lease \
                 drawbridge-controllers; where the Lease has a holder, at the scrape configuration of the controllers' port 8081.",
    },
    Alert {
        name: "DrawbridgeCertificateExpiring",
        expression: || {
            "drawbridge_certificate_not_after_seconds{part=~\"Leaf|Provided\"} - time() < 86400\n\
             or drawbridge_certificate_not_after_seconds{part=~\"Authority|Clients\"} - time() < 2592000"
                .to_owned()
        },
        lasting: "10m",
        severity: Severity::Critical,
        summary: "A certificate of the webhook ({{ $labels.part }}) is close to its end and was not renewed",
        remedy: "Drawbridge renews its own certificates at two thirds of their life, so it failed to renew this one: the log of that \
            replica says why. Certificates from files and from Secrets of others are renewed by whoever provides them. Of Clients, which signs \
            the certificates of the API servers: put its successor beside it into the file of --webhook-client-ca, or every review fails \
            when it ends.",
    },
    Alert {
        name: "DrawbridgeCertificateNotTrusted",
        // The controllers sign a certificate of their own, and tell of that.
        expression: || format!("max(drawbridge_bundle_published and on (instance) {WEBHOOK}) == 0"),
        lasting: "5m",
        severity: Severity::Critical,
        summary: "The webhook configurations do not trust the certificate that is served",
        remedy: "Every review fails. The controllers publish caBundle: look at their log and at drawbridge doctor; somebody else may be \
                 overwriting it, or only one of the Deployments drawbridge-webhook and drawbridge-controllers has --webhook-cert-secret.",
    },
    Alert {
        name: "DrawbridgeWebhookMissing",
        expression: || "max by (part) (drawbridge_webhook_configurations_missing) > 0".to_owned(),
        lasting: "0s",
        severity: Severity::Critical,
        summary: "The webhook configuration of Drawbridge ({{ $labels.part }}) is gone: the API server does not ask Drawbridge",
        remedy: "New Pods of enrolled workloads run without sidecars (in gate mode they wait), and nothing is judged at apply. The logs of \
                 the replicas and drawbridge doctor name the command that puts it back as this installation was rendered; find in the API \
                 server's audit log who deleted it.",
    },
    Alert {
        name: "DrawbridgePolicyMissing",
        expression: || "max by (part) (drawbridge_policies_missing) > 0".to_owned(),
        lasting: "0s",
        severity: Severity::Critical,
        summary: "{{ $value }} of the admission policies do not exist ({{ $labels.part }})",
        remedy: "What they refuse is accepted. The logs name them, and drawbridge doctor shows what differs: apply what drawbridge render \
                 prints for this installation (docs/tasks/upgrade.md says how to take its flags and settings along), and find in the API \
                 server's audit log who deleted them.",
    },
    Alert {
        name: "DrawbridgeCatalogueUnanswered",
        expression: || "sum(rate(drawbridge_catalogue_requests_total{code=\"503\"}[5m])) > 0".to_owned(),
        lasting: "15m",
        severity: Severity::Warning,
        summary: "Callers of the catalogue of verified agents are answered 503",
        remedy: "Agents that look for others find none. The answer says why, and so does drawbridge doctor: nobody holds the \
                 Lease and judges cards, AgentCards are not heard of, or the installation was rendered without --with-catalogue, so that nobody can be \
                 asked whose a token is.",
    },
    Alert {
        name: "DrawbridgeCatalogueFull",
        expression: || "max(drawbridge_catalogue_cards{state=\"NoRoom\"}) > 0".to_owned(),
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value }} verified agents are missing from the catalogue, which has no room for their cards",
        remedy: "A namespace has more verified cards, or larger ones, than are kept of one, or all together are over what is kept: docs/limits.md has \
                 the numbers, and drawbridge card list -A shows whose they are. They are listed once there is room.",
    },
    Alert {
        name: "DrawbridgeConfigurationStale",
        expression: || "drawbridge_config_stale == 1".to_owned(),
        lasting: "10m",
        severity: Severity::Warning,
        summary: "A settings file cannot be used; its last good content is in force",
        remedy: "The log of that replica names file, line and key; drawbridge validate -f on the ConfigMap says the same.",
    },
];

/// The API server's count of calls of those webhooks (`a|b`) that it let pass unanswered.
fn fail_open(webhooks: &str) -> String {
    let equals = if webhooks.contains('|') { "=~" } else { "=" };
    format!("apiserver_admission_webhook_fail_open_count{{name{equals}\"{webhooks}\"}}")
}

/// 1 at the replica of the controllers that holds the Lease, 0 at the others.
fn leader() -> String {
    format!("leader_election_master_status{{name=\"{}\"}}", keys::LEASE)
}

/// Only as the replica that holds the Lease tells it: the others' numbers are from when they held it.
fn led(condition: &str) -> String {
    format!("{condition} and on (instance) {} == 1", leader())
}

/// A counter went up, or appeared, within ten minutes.
fn happened(counter: &str) -> String {
    format!("increase({counter}[10m]) > 0\nor ({counter} > 0 unless {counter} offset 10m)")
}
