//! The platform file as one value: what it sets, and what follows for a namespace that sets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;

use super::builds::Distribution;
use super::keys::{Effect, key};
use super::{Fault, SchemaError, Settings, Walked, alone, overrides, walk};
use crate::api::yaml;
use crate::config::bounds::Bound;
use crate::config::builds::Settings as BuildSettings;
use crate::config::cards::{self, Cards};
use crate::config::content::Content;
use crate::config::defaults;
use crate::config::enrolment::WorkloadLabels;
use crate::config::inputs::ConfigMapInput;
use crate::config::layers::{self, Layer};
use crate::config::namespace;
use crate::config::reading;
use crate::config::resolved::{Notice, Resolved};
use crate::config::trust::VerifiedPeers;
use crate::domain::keys::{
    CONFIG_MAP_ENVOY, CONFIG_MAP_RUNTIME, KEY_CONFIG, MOUNTED_CONFIG_MAPS, NAMESPACE_CONFIG_MAPS,
};
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
    /// Those ConfigMaps of the operator's namespace that cannot be read, and of which nobody knows what they said before.
    unread: BTreeSet<&'static str>,
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
            unread: BTreeSet::new(),
            made: BTreeMap::new(),
        }
    }

    /// Works out what is made for namespaces, after a change of what it is made from. Of what is mounted nothing is made from a template that nobody
    /// knows: what was made from it before stays, and counts as it is.
    fn complete(mut self) -> Self {
        let content = |name| {
            let built_in = || defaults::config_map_data_in(name, &self, &self.resolved).map(Content::of);
            Some((name, self.templates.get(name).cloned().or_else(built_in)?))
        };
        let is_known = |name: &&'static str| !self.unread.contains(*name) || !MOUNTED_CONFIG_MAPS.contains(name);
        self.made = NAMESPACE_CONFIG_MAPS.into_iter().filter(is_known).filter_map(content).collect();
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
            .chain(alone::alone(&settings).into_iter().map(|fault| Notice {
                reason: Reason::KeyWithoutEffect,
                text: format!("{file}:{}: {} has no effect: {}", fault.line, fault.field, fault.message),
            }))
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
    /// every namespace's own. Unreadable or too large, the content that `last` had serves, with a notice in every namespace. One that holds other keys
    /// than the one that is read says nothing, and a notice tells so.
    #[must_use]
    pub fn with_runtime_template(mut self, template: Option<&ConfigMapInput>, last: Option<&Platform>) -> Self {
        let says = |template: &&ConfigMapInput| template.is_too_large() || !template.data.is_empty();
        let Some(template) = template.filter(says) else {
            return self;
        };
        let of_template = own(CONFIG_MAP_RUNTIME);
        let place = format!("{of_template}, key {KEY_CONFIG}");
        let before = || last.and_then(|last| last.template.clone());
        if template.is_too_large() {
            self.template = before();
            self.too_large(CONFIG_MAP_RUNTIME, self.template.is_some());
        } else {
            let Some(said) = reading::document(&template.data) else {
                let text = format!("{of_template} {}", namespace::no_key(reading::keys(&template.data)));
                self.notice(Reason::NamespaceConfigUnreadable, text);
                return self;
            };
            self.template = match said.and_then(|document| namespace::runtime(&document)) {
                Ok(base) => Some(base),
                Err((line, message)) => {
                    let base = before();
                    let instead =
                        if base.is_some() { "its last good content is used" } else { "nothing of it is used" };
                    let text = format!("{place}, line {line}: {message}; {instead}");
                    self.notice(Reason::NamespaceConfigUnreadable, text);
                    // Somebody who has looked before, and found none, knows that it said nothing.
                    if base.is_none() && last.is_none_or(|last| last.unread.contains(CONFIG_MAP_RUNTIME)) {
                        self.mark_unread(CONFIG_MAP_RUNTIME);
                    }
                    base
                }
            };
        }
        if let Some(base) = &self.template {
            namespace::lay_template(Arc::make_mut(&mut self.resolved), base, &place);
        }
        self.complete()
    }

    /// This configuration over the ConfigMaps of the operator's own namespace: `authbridge-runtime-config` as in
    /// [`Platform::with_runtime_template`], the others as templates of what is made for agent namespaces. One that is too large, or has nothing but
    /// `binaryData`, changes nothing: what `last` knew of it serves.
    #[must_use]
    pub fn with_templates(mut self, own: &BTreeMap<String, ConfigMapInput>, last: Option<&Platform>) -> Self {
        self.templates.clear();
        for name in NAMESPACE_CONFIG_MAPS {
            let Some(template) = own.get(name) else { continue };
            let before = last.and_then(|last| last.templates.get(name)).cloned();
            let texts = reading::texts(&template.data);
            let content = if template.is_too_large() {
                self.too_large(name, before.is_some());
                before
            } else if texts.is_empty() && !template.data.is_empty() {
                // Somebody who has looked before, and found none, knows that it said nothing.
                let said_nothing = last.is_some_and(|last| !last.unread.contains(name));
                self.in_binary_data(name, before.is_some(), said_nothing);
                before
            } else {
                Some(Content::of(texts))
            };
            self.templates.extend(content.map(|content| (name, content)));
        }
        self.with_runtime_template(own.get(CONFIG_MAP_RUNTIME), last).complete()
    }

    /// A ConfigMap of the operator's namespace is larger than is read; whether what it said before is known.
    fn too_large(&mut self, name: &'static str, is_known: bool) {
        let instead = if is_known {
            "what it said before is used"
        } else {
            "what it said before is not known, so workloads that run stay as they are"
        };
        let text = format!("{} {}; {instead}; make it smaller, or delete what is not needed", own(name), Bound::Size);
        self.notice(Reason::ConfigOverBound, text);
        if !is_known {
            self.mark_unread(name);
        }
    }

    /// A ConfigMap of the operator's namespace has no key but those of `binaryData`, of which nothing is copied; whether what it said before is known,
    /// and if not, whether it said nothing.
    fn in_binary_data(&mut self, name: &'static str, is_known: bool, said_nothing: bool) {
        let instead = match (is_known, said_nothing) {
            (true, _) => "its last good content is used",
            (false, true) => "nothing of it is used",
            (false, false) => "what it said before is not known, so workloads that run stay as they are",
        };
        let text = format!(
            "{} has its keys in binaryData, which is not read (kubectl puts a file there that is no UTF-8 text); {instead}; save the file as \
             UTF-8 and make the ConfigMap from it anew",
            own(name)
        );
        self.notice(Reason::NamespaceConfigUnreadable, text);
        if !is_known && !said_nothing {
            self.mark_unread(name);
        }
    }

    /// Pods may run with what that ConfigMap of the operator's namespace said before, which nobody knows.
    fn mark_unread(&mut self, name: &'static str) {
        self.unread.insert(name);
        Arc::make_mut(&mut self.resolved).unread = true;
    }

    fn notice(&mut self, reason: Reason, text: String) {
        Arc::make_mut(&mut self.resolved).notices.push(Notice { reason, text });
    }

    /// What the ConfigMap `name` holds that a controller makes in a namespace whose configuration is `resolved` (it may have its
    /// own ports); `None` for a name that is not made.
    #[must_use]
    pub fn namespace_config_map(&self, name: &str, resolved: &Resolved) -> Option<Content> {
        let is_built_in = !self.templates.contains_key(name) && !self.unread.contains(name);
        if name == CONFIG_MAP_ENVOY && is_built_in && resolved.proxy != self.resolved.proxy {
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

/// A ConfigMap of the operator's namespace, in a sentence.
fn own(name: &str) -> String {
    format!("ConfigMap {name} of the operator's namespace")
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
