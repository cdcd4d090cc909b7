//! The plan: what a Pod gets, as typed parts. Builders in `modes` fill it, `render` writes it as operations.
//!
//! Nothing here knows the Pod; a part serialises to exactly what the Kubernetes API calls it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::edit::Edit;
use super::open_paths::Open;
use crate::admission::verdict::Warning;

/// A container of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container<'a> {
    pub(super) name: &'static str,
    pub(super) image: Cow<'a, str>,
    pub(super) image_pull_policy: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) command: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) args: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<Port>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) env: Vec<EnvVar<'a>>,
    pub(super) resources: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) restart_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) startup_probe: Option<Value>,
    pub(super) security_context: SecurityContext,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) volume_mounts: Vec<Mount>,
    /// The port that tells that this proxy listens; `None` for what is no proxy.
    #[serde(skip)]
    pub(super) listens_on: Option<u16>,
}

impl Container<'_> {
    /// The same container, on its own.
    pub(super) fn into_owned(self) -> Container<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Container {
            name: self.name,
            image: owned(self.image),
            image_pull_policy: owned(self.image_pull_policy),
            command: self.command.into_iter().map(owned).collect(),
            args: self.args.into_iter().map(owned).collect(),
            ports: self.ports,
            env: self.env.into_iter().map(|one| EnvVar { value: one.value.map(owned), ..one }).collect(),
            resources: Cow::Owned(self.resources.into_owned()),
            restart_policy: self.restart_policy,
            startup_probe: self.startup_probe,
            security_context: self.security_context,
            volume_mounts: self.volume_mounts,
            listens_on: self.listens_on,
        }
    }
}

/// A container port; TCP, as all of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Port {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) container_port: u16,
    pub(super) protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host_port: Option<Value>,
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub(super) host_ip: Option<Value>,
}

impl Port {
    /// A named TCP port.
    pub(super) fn tcp(name: &'static str, container_port: u16) -> Self {
        Self { name: Some(Cow::Borrowed(name)), container_port, protocol: "TCP", host_port: None, host_ip: None }
    }
}

/// An environment variable: a value, or where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvVar<'a> {
    pub(super) name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value_from: Option<ValueFrom>,
}

impl<'a> EnvVar<'a> {
    /// A literal value.
    pub(super) fn literal(name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        Self { name, value: Some(value.into()), value_from: None }
    }

    /// The container waits for what it refers to.
    pub(super) fn is_waited_for(&self) -> bool {
        match &self.value_from {
            Some(ValueFrom::ConfigMap(key) | ValueFrom::Secret(key)) => key.optional != Some(true),
            Some(ValueFrom::Field { .. }) | None => false,
        }
    }

    /// A reference.
    pub(super) fn from(name: &'static str, source: ValueFrom) -> Self {
        Self { name, value: None, value_from: Some(source) }
    }
}

/// Where the kubelet reads a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) enum ValueFrom {
    #[serde(rename = "configMapKeyRef")]
    ConfigMap(KeyRef),
    #[serde(rename = "secretKeyRef")]
    Secret(KeyRef),
    #[serde(rename = "fieldRef", rename_all = "camelCase")]
    Field { field_path: &'static str },
}

/// A key of a ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct KeyRef {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) optional: Option<bool>,
}

/// A container's security context; every one of ours drops all capabilities and uses the runtime's seccomp profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecurityContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_as_user: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_as_group: Option<i64>,
    pub(super) run_as_non_root: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) privileged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allow_privilege_escalation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read_only_root_filesystem: Option<bool>,
    pub(super) capabilities: Capabilities,
    pub(super) seccomp_profile: SeccompProfile,
}

impl SecurityContext {
    /// A sidecar that needs no privilege; the image's user unless one is given.
    pub(super) fn unprivileged(user: Option<i64>, group: Option<i64>) -> Self {
        Self {
            run_as_user: user,
            run_as_group: group,
            run_as_non_root: true,
            allow_privilege_escalation: Some(false),
            ..Self::default()
        }
    }
}

/// Added and dropped capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Capabilities {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) add: &'static [&'static str],
    pub(super) drop: [&'static str; 1],
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { add: &[], drop: ["ALL"] }
    }
}

/// The seccomp profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SeccompProfile {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

impl Default for SeccompProfile {
    fn default() -> Self {
        Self { kind: "RuntimeDefault" }
    }
}

/// A volume mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mount {
    pub(super) name: &'static str,
    pub(super) mount_path: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) read_only: bool,
}

impl Mount {
    /// Read and write.
    pub(super) fn writable(name: &'static str, mount_path: &'static str) -> Self {
        Self { name, mount_path, read_only: false }
    }

    /// Read only.
    pub(super) fn read_only(name: &'static str, mount_path: &'static str) -> Self {
        Self { name, mount_path, read_only: true }
    }
}

/// A volume.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Volume<'a> {
    pub(super) name: &'static str,
    pub(super) source: Source<'a>,
}

/// What a volume shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source<'a> {
    /// Nothing at first.
    Empty,
    /// The ConfigMap of the volume's name; the Pod waits for it unless it is optional.
    ConfigMap { optional: bool },
    /// The socket of the SPIFFE Workload API.
    SpiffeSocket,
    /// The runtime configuration in the Pod's own annotation.
    Annotation,
    /// The client credentials in the Secret of that name.
    Credentials(Cow<'a, str>),
    /// The card that is to be signed, in the ConfigMap of that name.
    UnsignedCard(Cow<'a, str>),
    /// Where the signed card is written.
    SignedCard,
    /// A token of the Pod's account, and whom it is for.
    ApiToken,
}

/// Everything that happens to one Pod.
#[derive(Debug, Default)]
pub(super) struct InjectionPlan<'a> {
    /// Init containers of ours, in order.
    pub(super) init: Vec<Container<'a>>,
    /// Regular containers of ours, in order.
    pub(super) containers: Vec<Container<'a>>,
    /// Our init containers come before the user's (native sidecars), or after them.
    pub(super) init_first: bool,
    /// Volumes, in order.
    pub(super) volumes: Vec<Volume<'a>>,
    /// Changes to the user's regular containers.
    pub(super) edits: Vec<Edit>,
    /// A port was looked for, to be taken over, and there was none.
    pub(super) portless: bool,
    /// The ServiceAccount to run under; `None` keeps the Pod's.
    pub(super) service_account: Option<String>,
    /// Set the Pod's fsGroup to 0, where it has none.
    pub(super) fs_group: bool,
    /// Paths that the token check lets through besides its own, because probes ask for them.
    pub(super) open: Vec<Open>,
    /// Text of annotation `kagenti.io/authbridge-config`.
    pub(super) runtime_config: Option<String>,
    /// Hash of everything that would change this result.
    pub(super) config_hash: String,
    /// What deserves attention.
    pub(super) warnings: Vec<Warning>,
}

impl<'a> InjectionPlan<'a> {
    /// Every container of ours, init containers first.
    pub(super) fn all_containers(&self) -> impl Iterator<Item = &Container<'a>> {
        self.init.iter().chain(&self.containers)
    }

    /// Nothing is added.
    pub(super) fn is_empty(&self) -> bool {
        self.init.is_empty() && self.containers.is_empty()
    }
}
