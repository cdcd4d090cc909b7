//! Everything that Drawbridge writes on objects that are somebody else's, once.
//!
//! docs/reference/written.md is made from it, `uninstall` takes off what it lists, and the plans of all controllers are held
//! against it in their tests: a key that is written and does not stand here fails them. Not in it: objects of our own
//! (ConfigMaps, ServiceAccounts, what an Agent runs), and what the Pod webhook adds besides metadata.

use super::keys;

/// What it is written on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Whatever can be enrolled.
    Workload,
    /// What replaces its Pods when its template changes, and has a card.
    Rolling,
    /// What makes Pods itself: a ReplicaSet, StatefulSet, DaemonSet or Job.
    Maker,
    /// A Job.
    Job,
    /// A Sandbox.
    Sandbox,
    /// A Pod.
    Pod,
    /// An object of our own kinds, which a person has made.
    Custom,
    /// A Namespace.
    Namespace,
}

impl On {
    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            On::Workload => "Deployment, StatefulSet, DaemonSet, CronJob, Sandbox",
            On::Rolling => "Deployment, StatefulSet",
            On::Maker => "ReplicaSet, StatefulSet, DaemonSet, Job",
            On::Job => "Job",
            On::Sandbox => "Sandbox",
            On::Pod => "Pod",
            On::Custom => "AgentRuntime, Agent, AgentBuild, ModelAPI, MCPServer",
            On::Namespace => "Namespace",
        }
    }
}

/// Where it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
    /// A label of the Pod template.
    TemplateLabel,
    /// An annotation of the Pod template.
    TemplateAnnotation,
    /// A finalizer.
    Finalizer,
    /// A field of the spec.
    Field,
}

impl At {
    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            At::Label => "label",
            At::Annotation => "annotation",
            At::TemplateLabel => "label of the Pod template",
            At::TemplateAnnotation => "annotation of the Pod template",
            At::Finalizer => "finalizer",
            At::Field => "field",
        }
    }
}

/// How it comes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// With everything else of its field manager, by a server-side apply of nothing, when the enrolment ends.
    Released,
    /// By the controller that wrote it, once what it notes is over; what is left of it `uninstall` takes off.
    Noted,
    /// By `uninstall` alone: it tells of what was done.
    Uninstalled,
    /// With a Pod that is replaced, or an object of our kinds that is deleted.
    Gone,
    /// By a person who takes back what a person said; `uninstall` names it and leaves it.
    Said,
}

impl Off {
    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Off::Released => "when the enrolment ends: server-side apply of nothing by the same manager",
            Off::Noted => "by the same controller once that is over",
            Off::Uninstalled => "by `drawbridge uninstall`",
            Off::Gone => "with the object",
            Off::Said => "by `drawbridge release`; a person's word, which `drawbridge uninstall` names and leaves",
        }
    }
}

/// One thing that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// On what.
    pub on: On,
    /// Where.
    pub at: At,
    /// Its key, or the path of the field.
    pub key: &'static str,
    /// Field manager, or who else writes it.
    pub by: &'static str,
    /// When, and what for.
    pub when: &'static str,
    /// How it comes off.
    pub off: Off,
}

/// Field manager of the controller that has waiting workloads tried again.
pub const MANAGER_WAITING: &str = "drawbridge/waiting";
/// Field manager of the controller of the scheduling gate.
pub const MANAGER_GATE: &str = "drawbridge/gate";
/// Field manager of the controller that has cards signed anew.
pub const MANAGER_RESIGN: &str = "drawbridge/resign";
/// Field manager of the builds' controller.
pub const MANAGER_BUILD: &str = "drawbridge/agent-build";
/// Field manager of the controller that labels Pods of verified and of quarantined agents.
pub const MANAGER_TRUST_LABEL: &str = "drawbridge/trust-label";
const WEBHOOK: &str = "the webhook";
const QUARANTINE: &str = "`drawbridge quarantine`";

const fn row(on: On, (at, key): (At, &'static str), by: &'static str, off: Off, when: &'static str) -> Written {
    Written { on, at, key, by, when, off }
}

const fn enrolled(at: At, key: &'static str, when: &'static str) -> Written {
    row(On::Workload, (at, key), keys::MANAGER_ENROLMENT, Off::Released, when)
}

const fn of_sandbox(at: At, key: &'static str, when: &'static str) -> Written {
    row(On::Sandbox, (at, key), keys::MANAGER_ENROLMENT, Off::Noted, when)
}

const fn resigned(at: At, key: &'static str, when: &'static str) -> Written {
    // Taken off a template, its Pods would be replaced.
    let off = if matches!(at, At::Annotation) { Off::Uninstalled } else { Off::Gone };
    row(On::Rolling, (at, key), MANAGER_RESIGN, off, when)
}

const fn of_pod(key: &'static str, when: &'static str) -> Written {
    row(On::Pod, (At::Annotation, key), WEBHOOK, Off::Gone, when)
}

const fn of_trust(key: &'static str, when: &'static str) -> Written {
    row(On::Pod, (At::Label, key), MANAGER_TRUST_LABEL, Off::Noted, when)
}

const fn of_namespace(key: &'static str, when: &'static str) -> Written {
    row(On::Namespace, (At::Annotation, key), QUARANTINE, Off::Said, when)
}

const fn of_build(key: &'static str, when: &'static str) -> Written {
    row(On::Custom, (At::Annotation, key), WEBHOOK, Off::Gone, when)
}

const fn of_kaos(finalizer: &'static str, by: &'static str, when: &'static str) -> Written {
    row(On::Custom, (At::Finalizer, finalizer), by, Off::Noted, when)
}

/// Everything.
pub const WRITTEN: &[Written] = &[
    enrolled(At::Label, keys::LABEL_TYPE, "an AgentRuntime enrols it"),
    enrolled(At::Label, keys::LABEL_MANAGED_BY, "an AgentRuntime enrols it, and nobody else has a value there"),
    enrolled(At::TemplateLabel, keys::LABEL_TYPE, "an AgentRuntime enrols it, or a label on the workload itself"),
    enrolled(
        At::TemplateAnnotation,
        keys::ANNOTATION_CONFIG_HASH,
        "an AgentRuntime enrols it, or a label on the workload itself; and a workload whose template its user labelled, once a change \
            of configuration must roll it",
    ),
    enrolled(
        At::Annotation,
        keys::ANNOTATION_ROLLED_FOR,
        "it is rolled in a wave. The Deployment controller copies it to the ReplicaSet, from where `drawbridge/waiting` takes it",
    ),
    row(
        On::Maker,
        (At::Annotation, keys::ANNOTATION_RETRY),
        MANAGER_WAITING,
        Off::Noted,
        "its Pods were refused until their ServiceAccount was there: its controller tries again at once",
    ),
    row(
        On::Job,
        (At::Annotation, keys::ANNOTATION_SUSPENDED),
        MANAGER_GATE,
        Off::Noted,
        "its Pod waits behind the scheduling gate and is made again",
    ),
    row(
        On::Job,
        (At::Field, "spec.suspend"),
        MANAGER_GATE,
        Off::Noted,
        "its Pods wait behind the scheduling gate and are made again",
    ),
    of_sandbox(At::Annotation, keys::ANNOTATION_RESTART_PENDING, "its Pod is made again with another configuration"),
    of_sandbox(
        At::Annotation,
        keys::ANNOTATION_RESTART_REPLICAS,
        "its Pod is made again with another configuration: the number of \
        replicas before",
    ),
    of_sandbox(
        At::Field,
        "spec.replicas",
        "its Pod is made again with another configuration: 0 until the Pod is gone, then as before",
    ),
    resigned(
        At::TemplateAnnotation,
        keys::ANNOTATION_RESIGN_TRIGGER,
        "it is restarted so that its card is signed anew: when",
    ),
    resigned(
        At::TemplateAnnotation,
        keys::ANNOTATION_RESIGN_EXPIRY,
        "it is restarted so that its card is signed anew: the end of the certificate or authority for which",
    ),
    resigned(At::Annotation, keys::ANNOTATION_RESIGN_CAUSE, "it is restarted so that its card is signed anew: why"),
    resigned(
        At::Annotation,
        keys::ANNOTATION_BUNDLE_HASH,
        "it is restarted so that its card is signed anew, because no authority vouched for the signature: the authorities then",
    ),
    of_pod(keys::ANNOTATION_STATUS, "it is injected: which parts"),
    of_pod(keys::ANNOTATION_RUNTIME_CONFIG, "it is injected: the configuration of its sidecars"),
    of_pod(keys::ANNOTATION_CONFIG_HASH, "it is injected: the hash of its configuration"),
    of_trust(
        keys::LABEL_VERIFIED,
        "it runs under the account that the card of its agent proves, and trust is at least audited",
    ),
    of_trust(
        keys::LABEL_QUARANTINED,
        "its agent is in quarantine, and the NetworkPolicy is there that cuts off by it: the agent",
    ),
    of_namespace(keys::ANNOTATION_QUARANTINE, "a person puts agents into quarantine: which"),
    of_namespace(keys::ANNOTATION_QUARANTINE_RECORD, "a person puts agents into quarantine: who, when and why"),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER),
        keys::MANAGER_ENROLMENT,
        Off::Noted,
        "an AgentRuntime governs a workload: its enrolment is taken away first",
    ),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_AGENT),
        keys::MANAGER_AGENT,
        Off::Noted,
        "an Agent has a Deployment",
    ),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_AGENT),
        MANAGER_BUILD,
        Off::Noted,
        "an AgentBuild has a run or a claim",
    ),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_BEEAI),
        keys::MANAGER_BEEAI_AGENT,
        Off::Noted,
        "an Agent of beeai.dev has a Deployment",
    ),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_BEEAI),
        keys::MANAGER_BEEAI_COMPAT_AGENT,
        Off::Noted,
        "an Agent of beeai.beeai.dev has a Deployment",
    ),
    of_kaos(
        keys::FINALIZER_KAOS_AGENT,
        keys::MANAGER_KAOS_AGENT,
        "an Agent of kaos.tools is there: readers look for it",
    ),
    of_kaos(keys::FINALIZER_MODEL_API, keys::MANAGER_MODEL_API, "a ModelAPI is there: readers look for it"),
    of_kaos(keys::FINALIZER_MCP_SERVER, keys::MANAGER_MCP_SERVER, "an MCPServer is there: readers look for it"),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_BEEAI),
        keys::MANAGER_BEEAI_BUILD,
        Off::Noted,
        "an AgentBuild of beeai.dev has a run or a claim",
    ),
    row(
        On::Custom,
        (At::Finalizer, keys::FINALIZER_BEEAI),
        keys::MANAGER_BEEAI_COMPAT_BUILD,
        Off::Noted,
        "an AgentBuild of beeai.beeai.dev has a run or a claim",
    ),
    row(
        On::Custom,
        (At::Label, keys::LABEL_POLICY_PARAMETER),
        keys::MANAGER_AGENT,
        Off::Uninstalled,
        "the first objects are made for an Agent, ModelAPI or MCPServer of its namespace: the API server's policies look at one that carries it",
    ),
    of_build(keys::ANNOTATION_PIPELINE_ORIGIN, "an AgentBuild is reviewed: whose its steps are"),
    of_build(keys::ANNOTATION_PIPELINE_TEMPLATE, "an AgentBuild is completed from a template"),
    of_build(keys::ANNOTATION_STEP_HASHES, "an AgentBuild names step ConfigMaps of its own"),
    of_build(keys::ANNOTATION_REFRESH_HANDLED, "an AgentBuild asks for the template's steps anew"),
];

/// The annotations by which controllers note on somebody's workload what they have begun, each once.
pub fn notes() -> impl Iterator<Item = &'static str> {
    let notes =
        WRITTEN.iter().filter(|row| matches!(row.off, Off::Noted | Off::Uninstalled) && row.at == At::Annotation);
    notes.map(|row| row.key)
}

/// What enrolment writes on a workload, as place and key.
pub fn released() -> impl Iterator<Item = (At, &'static str)> {
    WRITTEN.iter().filter(|row| row.off == Off::Released).map(|row| (row.at, row.key))
}

/// Whether that is written there, on whatever object.
#[must_use]
pub fn is_declared(at: At, key: &str) -> bool {
    WRITTEN.iter().any(|row| row.at == at && row.key == key)
}
