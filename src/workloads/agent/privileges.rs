//! What an Agent's Pod may ask for that is more than a plain agent needs: one table for everybody who judges it.
//!
//! In: an Agent as JSON. Out: the places that ask for something, and for what. The lock-down
//! reads the rows that relax it; the API server's policy asks for the right to create Pods at
//! the rows that are a power over others (docs/cases.md G3), and is written from these rows too (`cli::render`), so that both
//! mean the same. Types are the schema's to check: a value of another type asks for nothing here.

use serde_json::Value;

use crate::api::secrets::ANNOTATIONS;

/// One thing that a Pod may ask for.
#[derive(Debug)]
pub struct Privilege {
    /// Where it is looked for.
    pub of: Scope,
    /// Members below that, joined by `/`; `*` stands for every item of a list. Of annotations the beginning of the key.
    pub path: &'static str,
    /// What the value must be to ask for something.
    pub test: Test,
    /// What it gives, as the predicate of a sentence about the field.
    pub what: &'static str,
    /// Whom it concerns.
    pub weight: Weight,
}

/// Where the path of a [`Privilege`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// At the Pod's spec.
    Pod,
    /// At every container and init container.
    Container,
    /// At the annotations that the Pod gets.
    Annotations,
}

/// When a value asks for something. A place whose last member is absent is tested, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// `true`.
    True,
    /// `false`.
    False,
    /// The number 0.
    Zero,
    /// A number other than 0.
    NotZero,
    /// This text.
    Is(&'static str),
    /// A text that is none of these.
    NoneOf(&'static [&'static str]),
    /// A text with this beginning.
    StartsWith(&'static str),
    /// As [`Test::StartsWith`], or no text at all.
    AbsentOrStartsWith(&'static str),
    /// A text that is not empty.
    Text,
    /// Anything.
    Present,
    /// A mapping with a member that is none of these.
    MembersBeyond(&'static [&'static str]),
    /// A list without this text.
    ListLacks(&'static str),
}

/// Whom a privilege concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It relaxes the lock-down, to the agent's own harm only.
    Relaxes,
    /// It is a power over others, which only people may give who could create such a Pod themselves.
    Power,
    /// Both.
    Both,
}

impl Weight {
    /// Whether it relaxes the lock-down.
    #[must_use]
    pub fn relaxes(self) -> bool {
        self != Self::Power
    }

    /// Whether it takes the right to create Pods.
    #[must_use]
    pub fn needs_right(self) -> bool {
        self != Self::Relaxes
    }
}

impl Test {
    fn holds(self, value: Option<&Value>) -> bool {
        let text = value.and_then(Value::as_str);
        match self {
            Self::True => value == Some(&Value::Bool(true)),
            Self::False => value == Some(&Value::Bool(false)),
            Self::Zero => value.and_then(Value::as_i64) == Some(0),
            Self::NotZero => value.and_then(Value::as_i64).is_some_and(|number| number != 0),
            Self::Is(one) => text == Some(one),
            Self::NoneOf(allowed) => text.is_some_and(|text| !allowed.contains(&text)),
            Self::StartsWith(beginning) => text.is_some_and(|text| text.starts_with(beginning)),
            Self::AbsentOrStartsWith(beginning) => {
                text.is_none_or(|text| text.is_empty() || text.starts_with(beginning))
            }
            Self::Text => text.is_some_and(|text| !text.is_empty()),
            Self::Present => value.is_some_and(|value| !value.is_null()),
            Self::MembersBeyond(known) => value
                .and_then(Value::as_object)
                .is_some_and(|members| members.keys().any(|member| !known.contains(&&**member))),
            Self::ListLacks(item) => {
                value.and_then(Value::as_array).is_some_and(|list| !list.iter().any(|one| one == item))
            }
        }
    }
}

const fn pod(path: &'static str, test: Test, weight: Weight, what: &'static str) -> Privilege {
    Privilege { of: Scope::Pod, path, test, what, weight }
}

const fn container(path: &'static str, test: Test, weight: Weight, what: &'static str) -> Privilege {
    Privilege { of: Scope::Container, path, test, what, weight }
}

const fn annotation(path: &'static str, test: Test, weight: Weight, what: &'static str) -> Privilege {
    Privilege { of: Scope::Annotations, path, test, what, weight }
}

/// The types of SELinux that any Pod may name (Pod Security Standards, baseline).
const SELINUX_TYPES: &[&str] = &["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Kinds of volumes that hold nothing of others, or that rows of their own judge; Secrets are asked for by name
/// ([`crate::api::secrets`]).
const VOLUMES: &[&str] = &[
    "name",
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "hostPath",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
/// What a claim that is made for the Pod may be filled with.
const CLAIM: &str = "fills a claim with the data of another";
/// Probes and hooks with a host: the kubelet calls them, from the node's network.
const PROBES: &str = "sends the node's requests to another host";

/// Every privilege that is looked for.
pub const PRIVILEGES: &[Privilege] = &[
    pod("hostNetwork", Test::True, Weight::Both, "shares the node's network"),
    pod("hostPID", Test::True, Weight::Both, "sees the node's processes"),
    pod("hostIPC", Test::True, Weight::Both, "shares the node's memory"),
    pod("securityContext/runAsNonRoot", Test::False, Weight::Both, "lets containers run as root"),
    pod("securityContext/runAsUser", Test::Zero, Weight::Both, "lets containers run as root"),
    pod("securityContext/seccompProfile/type", Test::Is("Unconfined"), Weight::Both, "allows every system call"),
    pod("securityContext/seccompProfile/type", Test::Is("Localhost"), Weight::Power, "takes a profile of the node"),
    pod("securityContext/appArmorProfile/type", Test::Is("Unconfined"), Weight::Both, "lifts AppArmor's limits"),
    pod("securityContext/appArmorProfile/type", Test::Is("Localhost"), Weight::Power, "takes a profile of the node"),
    pod("securityContext/seLinuxOptions/user", Test::Text, Weight::Both, "leaves the containers' SELinux limits"),
    pod("securityContext/seLinuxOptions/role", Test::Text, Weight::Both, "leaves the containers' SELinux limits"),
    pod(
        "securityContext/seLinuxOptions/type",
        Test::NoneOf(SELINUX_TYPES),
        Weight::Both,
        "leaves the containers' SELinux limits",
    ),
    pod("securityContext/windowsOptions/hostProcess", Test::True, Weight::Both, "runs as a process of the node"),
    pod("volumes/*/hostPath", Test::Present, Weight::Both, "mounts files of the node"),
    pod("volumes/*", Test::MembersBeyond(VOLUMES), Weight::Power, "mounts what is not of this namespace"),
    pod(
        "volumes/*/persistentVolumeClaim/claimName",
        Test::Text,
        Weight::Power,
        "mounts a claim, whoever's data it holds",
    ),
    pod("volumes/*/ephemeral/volumeClaimTemplate/spec/dataSource/name", Test::Text, Weight::Power, CLAIM),
    pod("volumes/*/ephemeral/volumeClaimTemplate/spec/dataSourceRef/name", Test::Text, Weight::Power, CLAIM),
    pod("volumes/*/ephemeral/volumeClaimTemplate/spec/volumeName", Test::Text, Weight::Power, CLAIM),
    pod("resourceClaims/*/resourceClaimName", Test::Text, Weight::Power, "takes the devices of a claim"),
    pod("securityContext/sysctls/*", Test::Present, Weight::Power, "sets a parameter of the kernel"),
    pod("serviceAccountName", Test::Text, Weight::Power, "takes the rights of another ServiceAccount"),
    pod("serviceAccount", Test::Text, Weight::Power, "takes the rights of another ServiceAccount"),
    pod("automountServiceAccountToken", Test::True, Weight::Power, "has a token of the Kubernetes API"),
    // The same, past that switch: a source of this kind needs nobody's leave.
    pod(
        "volumes/*/projected/sources/*/serviceAccountToken",
        Test::Present,
        Weight::Power,
        "has a token of its ServiceAccount",
    ),
    pod("nodeName", Test::Text, Weight::Power, "passes the scheduler by"),
    pod("nodeSelector", Test::Present, Weight::Power, "chooses its nodes"),
    pod("affinity/nodeAffinity", Test::Present, Weight::Power, "chooses its nodes"),
    pod("runtimeClassName", Test::Text, Weight::Power, "chooses how the node runs it"),
    pod(
        "tolerations/*/key",
        Test::AbsentOrStartsWith("node-role.kubernetes.io/"),
        Weight::Power,
        "may run on nodes of the control plane",
    ),
    pod("priorityClassName", Test::Text, Weight::Power, "drives other Pods away"),
    pod("shareProcessNamespace", Test::True, Weight::Power, "sees the processes of its sidecars"),
    container("securityContext/privileged", Test::True, Weight::Both, "has all rights on the node"),
    container("securityContext/allowPrivilegeEscalation", Test::True, Weight::Relaxes, "may gain rights"),
    container("securityContext/readOnlyRootFilesystem", Test::False, Weight::Relaxes, "may change its own image"),
    container("securityContext/runAsNonRoot", Test::False, Weight::Both, "may run as root"),
    container("securityContext/runAsUser", Test::Zero, Weight::Both, "runs as root"),
    container("securityContext/seccompProfile/type", Test::Is("Unconfined"), Weight::Both, "allows every system call"),
    container(
        "securityContext/seccompProfile/type",
        Test::Is("Localhost"),
        Weight::Power,
        "takes a profile of the node",
    ),
    container("securityContext/appArmorProfile/type", Test::Is("Unconfined"), Weight::Both, "lifts AppArmor's limits"),
    container(
        "securityContext/appArmorProfile/type",
        Test::Is("Localhost"),
        Weight::Power,
        "takes a profile of the node",
    ),
    container("securityContext/seLinuxOptions/user", Test::Text, Weight::Both, "leaves a container's SELinux limits"),
    container("securityContext/seLinuxOptions/role", Test::Text, Weight::Both, "leaves a container's SELinux limits"),
    container(
        "securityContext/seLinuxOptions/type",
        Test::NoneOf(SELINUX_TYPES),
        Weight::Both,
        "leaves a container's SELinux limits",
    ),
    container("securityContext/windowsOptions/hostProcess", Test::True, Weight::Both, "runs as a process of the node"),
    container(
        "securityContext/procMount",
        Test::NoneOf(&["", "Default"]),
        Weight::Both,
        "sees parts of the node's kernel",
    ),
    container(
        "securityContext/capabilities/add/*",
        Test::NoneOf(&["NET_BIND_SERVICE"]),
        Weight::Both,
        "adds a capability",
    ),
    container(
        "securityContext/capabilities/drop",
        Test::ListLacks("ALL"),
        Weight::Relaxes,
        "keeps capabilities that an agent does not need",
    ),
    container("ports/*/hostPort", Test::NotZero, Weight::Both, "takes a port of the node"),
    container("livenessProbe/httpGet/host", Test::Text, Weight::Power, PROBES),
    container("livenessProbe/tcpSocket/host", Test::Text, Weight::Power, PROBES),
    container("readinessProbe/httpGet/host", Test::Text, Weight::Power, PROBES),
    container("readinessProbe/tcpSocket/host", Test::Text, Weight::Power, PROBES),
    container("startupProbe/httpGet/host", Test::Text, Weight::Power, PROBES),
    container("startupProbe/tcpSocket/host", Test::Text, Weight::Power, PROBES),
    container("lifecycle/postStart/httpGet/host", Test::Text, Weight::Power, PROBES),
    container("lifecycle/postStart/tcpSocket/host", Test::Text, Weight::Power, PROBES),
    container("lifecycle/preStop/httpGet/host", Test::Text, Weight::Power, PROBES),
    container("lifecycle/preStop/tcpSocket/host", Test::Text, Weight::Power, PROBES),
    // The API server makes a container's profile of it, where the container names none.
    annotation(
        "container.apparmor.security.beta.kubernetes.io/",
        Test::Is("unconfined"),
        Weight::Both,
        "lifts AppArmor's limits",
    ),
    annotation(
        "container.apparmor.security.beta.kubernetes.io/",
        Test::StartsWith("localhost/"),
        Weight::Power,
        "takes a profile of the node",
    ),
];

/// A place that asks for something.
#[derive(Debug)]
pub struct Asked<'v> {
    /// The row.
    pub privilege: &'static Privilege,
    /// The field, as a person writes it: `spec.podTemplateSpec.spec.containers[0].securityContext.privileged`.
    pub at: String,
    /// What stands there; `None` where a member that is not there asks for something.
    pub value: Option<&'v Value>,
}

/// Everything that `agent` asks for: first its Pod, then the containers in their order, then the annotations.
#[must_use]
pub fn asked(agent: &Value) -> Vec<Asked<'_>> {
    const AT: &str = "spec.podTemplateSpec.spec";
    let pod = super::pod(agent);
    let mut found = Vec::new();
    look(pod, AT, Scope::Pod, &mut found);
    for kind in ["containers", "initContainers"] {
        for (index, container) in super::list(pod, &format!("/{kind}")).iter().enumerate() {
            look(container, &format!("{AT}.{kind}[{index}]"), Scope::Container, &mut found);
        }
    }
    for place in ANNOTATIONS {
        let annotations = agent.pointer(&format!("/{place}")).and_then(Value::as_object).into_iter().flatten();
        for (key, value) in annotations {
            let rows = rows(Scope::Annotations).filter(|row| key.starts_with(row.path) && row.test.holds(Some(value)));
            let at = format!("{}[{key}]", place.replace('/', "."));
            found.extend(rows.map(|privilege| Asked { privilege, at: at.clone(), value: Some(value) }));
        }
    }
    found
}

fn rows(scope: Scope) -> impl Iterator<Item = &'static Privilege> {
    PRIVILEGES.iter().filter(move |privilege| privilege.of == scope)
}

fn look<'v>(of: &'v Value, at: &str, scope: Scope, found: &mut Vec<Asked<'v>>) {
    for privilege in rows(scope) {
        let path: Vec<_> = privilege.path.split('/').collect();
        let mut places = Vec::new();
        places_of(of, &path, at.to_owned(), &mut places);
        let asking = places.into_iter().filter(|(_, value)| privilege.test.holds(*value));
        found.extend(asking.map(|(at, value)| Asked { privilege, at, value }));
    }
}

/// The places that `path` names: of a list every item, and of an object also a last member that is not there.
fn places_of<'v>(of: &'v Value, path: &[&str], at: String, places: &mut Vec<(String, Option<&'v Value>)>) {
    match path {
        [] => places.push((at, Some(of))),
        ["*", rest @ ..] => {
            for (index, item) in of.as_array().into_iter().flatten().enumerate() {
                places_of(item, rest, format!("{at}[{index}]"), places);
            }
        }
        [member, rest @ ..] => match of.get(*member) {
            Some(value) => places_of(value, rest, format!("{at}.{member}"), places),
            None if rest.is_empty() && of.is_object() => places.push((format!("{at}.{member}"), None)),
            None => {}
        },
    }
}
