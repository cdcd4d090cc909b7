//! The platform file as one value: what it sets, and what follows for a namespace that sets nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;

use super::builds::Distribution;
use super::keys::{Effect, key};
use super::{Fault, SchemaError, Settings, Walked, overrides, walk};
use crate::api::yaml;
use crate::config::builds::Settings as BuildSettings;
use crate::config::cards::{self, Cards};
use crate::config::content::Content;
use crate::config::defaults;
use crate::config::enrolment::WorkloadLabels;
use crate::config::inputs::ConfigMapInput;
use crate::config::layers::{self, Layer};
use crate::config::namespace;
use crate::config::resolved::{Notice, Resolved};
use crate::config::trust::VerifiedPeers;
use crate::domain::keys::{CONFIG_MAP_ENVOY, CONFIG_MAP_RUNTIME, KEY_CONFIG, NAMESPACE_CONFIG_MAPS};
use crate::domain::reason::Reason;
use crate::workloads::kaos::settings as kaos;

/// Where Keycloak is, for the ConfigMaps that are made for namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keycloak {
    /// Base URL inside the cluster, without a trailing slash.
    pub url: String,
    /// Realm.
    pub realm: String,
    /// Base URL that tokens carry as issuer; `None` when nobody said.
    pub public_url: Option<String>,
}

impl Keycloak {
    /// `<publicUrl>/realms/<realm>`: the issuer of every token, when the public URL is known.
    #[must_use]
    pub fn issuer(&self) -> Option<String> {
        self.public_url.as_ref().map(|url| format!("{url}/realms/{}", self.realm))
    }
}

/// What happens to enrolled workloads when a change concerns the whole fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnUpgrade {
    /// They roll, in waves.
    #[default]
    Auto,
    /// They are reported, and people roll them.
    Manual,
}

/// What happens to Pods that run unprotected or with another configuration than their enrolled workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repair {
    /// They are reported.
    #[default]
    Report,
    /// They are reported, and evicted one at a time.
    Evict,
}

/// In that time a changed ConfigMap is in every Pod that mounts it: the kubelet looks every minute, or half as late again, and
/// we look every two seconds.
const REACHES_ALL: Duration = Duration::from_secs(120);

/// What only the platform file sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessSettings {
    pub(super) require_namespace_label: bool,
    pub(super) namespace_overrides: Vec<String>,
    pub(super) keycloak: Keycloak,
    pub(super) on_upgrade: OnUpgrade,
    pub(super) rollout_delay: Duration,
    pub(super) repair: Repair,
    pub(super) by_workload_label: Option<bool>,
    pub(super) distribution: Distribution,
    /// Without what the process knows itself: its namespace and the kind of cluster.
    pub(super) builds: BuildSettings,
    pub(super) cards: cards::Keys,
    pub(super) kaos: kaos::Settings,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            require_namespace_label: false,
            namespace_overrides: overrides::DEFAULT.map(str::to_owned).to_vec(),
            keycloak: Keycloak {
                url: "http://keycloak-service.keycloak.svc:8080".to_owned(),
                realm: "kagenti".to_owned(),
                public_url: None,
            },
            on_upgrade: OnUpgrade::default(),
            rollout_delay: REACHES_ALL,
            repair: Repair::default(),
            by_workload_label: None,
            distribution: Distribution::default(),
            builds: BuildSettings::new(""),
            cards: cards::Keys::default(),
            kaos: kaos::Settings::default(),
        }
    }
}

/// The platform file over the built-in values.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    process: ProcessSettings,
    warnings: Vec<Notice>,
    resolved: Arc<Resolved>,
    /// The last good runtime configuration of the operator's namespace.
    template: Option<Value>,
    /// The operator's namespace's templates of the ConfigMaps that are made for agent namespaces.
    templates: BTreeMap<&'static str, Content>,
    /// What those ConfigMaps hold in a namespace that sets nothing itself.
    made: BTreeMap<&'static str, Content>,
}

impl Platform {
    /// Without a file.
    #[must_use]
    pub fn built_in() -> Self {
        static BUILT_IN: LazyLock<Platform> = LazyLock::new(|| Platform::bare().complete());
        BUILT_IN.clone()
    }

    /// Without a file, and without what is made for namespaces.
    fn bare() -> Self {
        Self {
            process: ProcessSettings::default(),
            warnings: Vec::new(),
            resolved: Arc::new(Resolved::built_in()),
            template: None,
            templates: BTreeMap::new(),
            made: BTreeMap::new(),
        }
    }

    /// Works out what is made for namespaces, after a change of what it is made from.
    fn complete(mut self) -> Self {
        let content = |name| {
            let built_in = || defaults::config_map_data_in(name, &self, &self.resolved).map(Content::of);
            Some((name, self.templates.get(name).cloned().or_else(built_in)?))
        };
        self.made = NAMESPACE_CONFIG_MAPS.into_iter().filter_map(content).collect();
        self
    }

    /// Reads a platform file; `file` is its name in messages.
    ///
    /// # Errors
    /// Every fault with its line and field: text that is not one YAML mapping, unknown keys, wrong types and ranges,
    /// ports that collide, requests above limits.
    pub fn parse(text: &str, file: &str) -> Result<Self, SchemaError> {
        let document = yaml::parse(text).map_err(|error| SchemaError::yaml(file, &error))?;
        let Walked { settings, mut faults, left_out, retired } = walk(&document);
        let mut platform = Self::bare();
        let resolved = Arc::make_mut(&mut platform.resolved);
        layers::lay(resolved, &Layer::PlatformFile, &settings);
        faults.extend(layers::conflicts(resolved).into_iter().map(|conflict| Fault {
            line: settings.line(conflict.path).unwrap_or(1),
            field: conflict.path.to_owned(),
            message: conflict.message,
        }));
        if !faults.is_empty() {
            return Err(SchemaError::new(file, faults));
        }
        platform.process.take(&settings);
        platform.warnings = retired
            .into_iter()
            .map(|(key, line)| Notice {
                reason: Reason::KeyWithoutEffect,
                text: format!("{file}:{line}: {} has no effect: {}", key.path, key.help),
            })
            .chain(left_out.into_iter().map(|fault| Notice {
                reason: Reason::TraceEndpointInvalid,
                text: format!("{file}:{}: {}: {}; it is left out", fault.line, fault.field, fault.message),
            }))
            .collect();
        Ok(platform.complete())
    }

    /// The configuration of a namespace that sets nothing itself.
    #[must_use]
    pub fn resolved(&self) -> &Arc<Resolved> {
        &self.resolved
    }

    /// Keys that were accepted and have no effect, and values that were left out.
    #[must_use]
    pub fn warnings(&self) -> &[Notice] {
        &self.warnings
    }

    /// Keys of the images that every installation needs and no layer names. `serve` refuses to start while there is
    /// one; offline tools say so and go on.
    #[must_use]
    pub fn missing_images(&self) -> Vec<&'static str> {
        let images = &self.resolved.images;
        [
            ("images.envoyProxy", &images.envoy_proxy),
            ("images.proxyInit", &images.proxy_init),
            ("images.spiffeHelper", &images.spiffe_helper),
            ("images.clientRegistration", &images.client_registration),
        ]
        .into_iter()
        .filter(|(_, image)| image.value.is_none())
        .map(|(path, _)| path)
        .collect()
    }

    /// Whether only namespaces labelled `kagenti-enabled=true` are served.
    #[must_use]
    pub fn require_namespace_label(&self) -> bool {
        self.process.require_namespace_label
    }

    /// Where Keycloak is.
    #[must_use]
    pub fn keycloak(&self) -> &Keycloak {
        &self.process.keycloak
    }

    /// What happens to enrolled workloads when a change concerns the whole fleet.
    #[must_use]
    pub fn on_upgrade(&self) -> OnUpgrade {
        self.process.on_upgrade
    }

    /// How long after a change of the settings the first wave begins.
    #[must_use]
    pub fn rollout_delay(&self) -> Duration {
        self.process.rollout_delay
    }

    /// What happens to Pods that are not as their enrolled workload wants them.
    #[must_use]
    pub fn repair(&self) -> Repair {
        self.process.repair
    }

    /// Which labels on workloads themselves enrol, in an installation of which nobody knows when it was made.
    #[must_use]
    pub fn workload_labels(&self) -> WorkloadLabels {
        WorkloadLabels::of_key(self.process.by_workload_label)
    }

    /// What is decided about signed agent cards.
    #[must_use]
    pub fn cards(&self) -> Cards {
        self.process.cards.settled()
    }

    /// The same with another value of `cards.verifiedPeers`.
    #[must_use]
    pub fn with_verified_peers(mut self, peers: VerifiedPeers) -> Self {
        self.process.cards.trust.verified_peers = peers;
        self
    }

    /// What is decided about the kinds of KAOS.
    #[must_use]
    pub fn kaos(&self) -> &kaos::Settings {
        &self.process.kaos
    }

    /// What is decided about builds and agents by an operator in `namespace`; `openshift`: what the API server serves.
    #[must_use]
    pub fn builds(&self, namespace: &str, openshift: bool) -> BuildSettings {
        let openshift = match self.process.distribution {
            Distribution::Auto => openshift,
            Distribution::Kubernetes => false,
            Distribution::OpenShift => true,
        };
        let mut settings = self.process.builds.clone();
        settings.pipelines.operator_namespace = namespace.to_owned();
        settings.pipelines.openshift = openshift;
        settings.workloads.openshift = openshift;
        settings
    }

    /// Whether a namespace may set the key at `path`.
    #[must_use]
    pub fn namespace_may_set(&self, path: &str) -> bool {
        key(path).is_some_and(super::keys::Key::is_overridable)
            && self.process.namespace_overrides.iter().any(|entry| overrides::covers(entry, path))
    }

    /// This configuration over ConfigMap `authbridge-runtime-config` of the operator's own namespace, the layer below
    /// every namespace's own. Unreadable, the content that `last` had serves, with a notice in every namespace.
    #[must_use]
    pub fn with_runtime_template(mut self, template: Option<&ConfigMapInput>, last: Option<&Platform>) -> Self {
        let Some(text) = template.and_then(|config_map| config_map.data.get(KEY_CONFIG)) else { return self };
        let place = format!("ConfigMap {CONFIG_MAP_RUNTIME} of the operator's namespace, key {KEY_CONFIG}");
        let resolved = Arc::make_mut(&mut self.resolved);
        let parsed = yaml::parse(text).map_err(|error| (error.line, error.message));
        self.template = match parsed.and_then(|document| namespace::runtime(&document)) {
            Ok(base) => Some(base),
            Err((line, message)) => {
                let base = last.and_then(|last| last.template.clone());
                let instead = if base.is_some() { "its last good content is used" } else { "nothing of it is used" };
                let text = format!("{place}, line {line}: {message}; {instead}");
                resolved.notices.push(Notice { reason: Reason::NamespaceConfigUnreadable, text });
                // Somebody who has looked before, and found none, knows that it said nothing.
                resolved.unread = base.is_none() && last.is_none_or(|last| last.resolved.unread);
                base
            }
        };
        if let Some(base) = &self.template {
            namespace::lay_template(resolved, base, &place);
        }
        self.complete()
    }

    /// This configuration over the ConfigMaps of the operator's own namespace: `authbridge-runtime-config` as in
    /// [`Platform::with_runtime_template`], the others as templates of what is made for agent namespaces.
    #[must_use]
    pub fn with_templates(mut self, own: &BTreeMap<String, ConfigMapInput>, last: Option<&Platform>) -> Self {
        let template = |name| Some((name, Content::of(own.get(name)?.data.clone())));
        self.templates = NAMESPACE_CONFIG_MAPS.into_iter().filter_map(template).collect();
        self.with_runtime_template(own.get(CONFIG_MAP_RUNTIME), last).complete()
    }

    /// What the ConfigMap `name` holds that a controller makes in a namespace whose configuration is `resolved` (it may have its
    /// own ports); `None` for a name that is not made.
    #[must_use]
    pub fn namespace_config_map(&self, name: &str, resolved: &Resolved) -> Option<Content> {
        if name == CONFIG_MAP_ENVOY && !self.templates.contains_key(name) && resolved.proxy != self.resolved.proxy {
            return defaults::config_map_data_in(name, self, resolved).map(Content::of);
        }
        self.made.get(name).cloned()
    }

    /// What `namespaceOverrides` lists.
    #[must_use]
    pub fn namespace_overrides(&self) -> &[String] {
        &self.process.namespace_overrides
    }
}

impl ProcessSettings {
    fn take(&mut self, settings: &Settings) {
        for (path, setting) in settings.iter() {
            if let Some(Effect::Process(take)) = key(path).map(|key| &key.effect) {
                take(self, &setting.value);
            }
        }
    }
}
