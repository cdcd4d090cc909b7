//! What is kept of a ConfigMap: digest, size and marks, and of `authproxy-routes` whom it names. Its text travels in a change to whoever reads it, and is
//! taken out then.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claim::ClaimSeen;
use super::{Kind, What};
use crate::api::routes::Routes;
use crate::domain::bounds::LARGEST_TEXT;
use crate::domain::digest::of_data;
use crate::domain::keys;
use crate::store::decode::wire::Raw;
use crate::store::decode::wire::binary::{BINARY, Binary};
use crate::store::kind::page::TEXTS;
use crate::store::{Decode, Descriptor, Key, Observed, Selection, UsedBy};

/// ConfigMaps: those that configure injection, by name or label, and templates and steps of builds.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[
        named(keys::CONFIG_MAP_AUTHBRIDGE),
        named(keys::CONFIG_MAP_RUNTIME),
        named(keys::CONFIG_MAP_SPIFFE_HELPER),
        named(keys::CONFIG_MAP_ENVOY),
        named(keys::CONFIG_MAP_ROUTES),
        labelled("kagenti.io/defaults=true"),
        named("pipeline-template-dev"),
        named("pipeline-template-buildpack-dev"),
        named("pipeline-template-dev-local"),
        named("pipeline-template-dev-external"),
        named("pipeline-template-preprod"),
        named("pipeline-template-prod"),
        named("pipeline-template-beeai"),
        labelled("kagenti.operator.dev/tekton=step"),
        // Of our own namespace a step needs no label; and when this installation was made stands there.
        Selection {
            own: true,
            keep: |key, what| !is_named(key) && (holds_step(what) || &*key.name == keys::CONFIG_MAP_ENROLMENT),
            ..Selection::all(TEXTS, UsedBy::Every)
        },
        // Which runtimes of tools a platform lists, and the configurations of proxies, which are ours.
        Selection::named(keys::CONFIG_MAP_MCP_RUNTIMES, TEXTS, UsedBy::Controllers),
        Selection { keep: |key, _| !is_named(key), ..Selection::labelled("app=modelapi", TEXTS, UsedBy::Controllers) },
    ],
    slim,
    ..Descriptor::built_in("", "configmaps", "ConfigMap", Decode::Common(project))
};

const fn named(name: &'static str) -> Selection {
    Selection::named(name, TEXTS, UsedBy::Every)
}

const fn labelled(labels: &'static str) -> Selection {
    Selection { keep: |key, _| !is_named(key), ..Selection::labelled(labels, TEXTS, UsedBy::Every) }
}

/// Those that selections by name deliver.
fn is_named(key: &Key) -> bool {
    keys::WATCHED_CONFIG_MAPS.contains(&&*key.name)
        || key.name.starts_with(keys::PREFIX_TEMPLATE)
        || &*key.name == keys::CONFIG_MAP_MCP_RUNTIMES
}

/// Admission reads when our installation was made; the texts of ConfigMaps go to others.
fn slim(name: &str, now: &Arc<Observed>) -> Arc<Observed> {
    match &now.what {
        What::ConfigMap(seen) if name == keys::CONFIG_MAP_ENROLMENT => {
            let seen = ConfigMapSeen { created: seen.created.clone(), ..ConfigMapSeen::default() };
            Arc::new(Observed::nobodys(What::ConfigMap(seen)))
        }
        _ => Observed::known(),
    }
}

fn holds_step(what: &What) -> bool {
    matches!(what, What::ConfigMap(seen) if seen.holds_step)
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    Some(What::ConfigMap(config_map(raw)))
}

/// The text of a ConfigMap that we wrote is kept until we write another, unless it is larger, in bytes.
const LARGEST_WRITTEN: usize = 16 * 1024;

/// A ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigMapSeen {
    /// `data`, on its way to whoever reads it; empty where it was taken out ([`ConfigMapSeen::without_text`]) or is larger than
    /// [`LARGEST_TEXT`].
    pub data: Arc<BTreeMap<String, String>>,
    /// What counts of `binaryData`; `None` where it has no key.
    pub binary: Option<Arc<Binary>>,
    /// SHA-256 of the whole `data` and of what counts of `binaryData`, as [`crate::domain::digest::of_data`] has it.
    pub digest: Arc<str>,
    /// Size of the same: keys and values, in bytes.
    pub size: usize,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Option<Arc<str>>,
    /// Has key `task-spec.yaml`.
    pub holds_step: bool,
    /// Carries `kagenti.io/defaults=true`.
    pub is_defaults: bool,
    /// Carries `kagenti.operator.dev/tekton: step`.
    pub is_step: bool,
    /// Carries `app.kubernetes.io/managed-by: drawbridge`.
    pub ours: bool,
    /// [`Self::digest`], where what we wrote last is what stands there; `None` also of one that a person has made immutable, which stays as it is.
    pub written: Option<Arc<str>>,
    /// Whose it is, of one that an object of our groups controls or that has the name of such a one.
    pub claim: Option<Box<ClaimSeen>>,
    /// Whom the agents of the namespace call, of `authproxy-routes`; `None` where it names nobody.
    pub routes: Option<Arc<Routes>>,
}

impl ConfigMapSeen {
    /// The projection of one that holds `data` and carries no label.
    #[must_use]
    pub fn of(data: BTreeMap<String, String>) -> Self {
        Self::of_both(data, None)
    }

    /// The same with `binaryData` beside it.
    fn of_both(mut data: BTreeMap<String, String>, binary: Option<Binary>) -> Self {
        let binary = binary.filter(|binary| !binary.is_empty());
        data.extend(binary.iter().flat_map(Binary::entries));
        let digest = of_data(&data).into();
        let size = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        if binary.is_some() {
            data.retain(|key, _| !key.starts_with(BINARY));
        }
        let holds_step = data.contains_key(keys::KEY_TASK_SPEC);
        let data = Arc::new(if size > LARGEST_TEXT { BTreeMap::new() } else { data });
        Self { data, binary: binary.map(Arc::new), digest, size, holds_step, ..Self::default() }
    }

    /// The same without its text: what is kept of it for as long as it exists.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self { data: Arc::default(), ..self.clone() }
    }

    /// It is ours, and nobody has edited it since we wrote it.
    #[must_use]
    pub fn is_as_written(&self) -> bool {
        self.ours && self.written.as_ref() == Some(&self.digest)
    }
}

impl ConfigMapSeen {
    /// What is kept of the ConfigMap `key`, where that is not all of it: the text goes, but for what our own namespace `own` keeps ready for others
    /// (templates of what is made in agent namespaces), and for what we wrote and nobody has changed, while it is small.
    pub(super) fn kept(&self, own: &str, key: &Key) -> Option<Self> {
        let is_made = keys::NAMESPACE_CONFIG_MAPS.contains(&&*key.name);
        let stays = match *key.namespace == *own {
            true => is_made,
            // A refresh names what it replaces, so that others who write beside us never win against it.
            false => is_made && self.is_as_written() && self.size <= LARGEST_WRITTEN,
        };
        // Where runtimes of tools are listed is a setting, and a controller reads the list.
        let stays = stays || (*key.name == *keys::CONFIG_MAP_MCP_RUNTIMES && self.size <= LARGEST_TEXT);
        (!stays && !self.data.is_empty()).then(|| self.without_text())
    }
}

/// Whom the agents of a namespace call, as its ConfigMap of that name says.
fn routes(raw: &Raw) -> Option<Arc<Routes>> {
    raw.metadata.name.as_deref().filter(|name| *name == keys::CONFIG_MAP_ROUTES)?;
    let routes = Routes::read(raw.data.as_ref()?.get(keys::KEY_ROUTES)?);
    (!routes.is_empty()).then(|| Arc::new(routes))
}

fn config_map(raw: Raw) -> ConfigMapSeen {
    let frozen = raw.immutable == Some(true);
    let routes = routes(&raw);
    let content = ConfigMapSeen::of_both(raw.data.unwrap_or_default(), raw.binary_data);
    // What else the annotation may say, up to 256 KiB of it, says the same: a person has edited it.
    let says = raw.metadata.annotation(keys::ANNOTATION_CONTENT_DIGEST).filter(|_| !frozen);
    let written = says.filter(|says| **says == *content.digest).map(|_| content.digest.clone());
    ConfigMapSeen {
        is_defaults: raw.metadata.label(keys::LABEL_DEFAULTS) == Some("true"),
        is_step: raw.metadata.label(keys::LABEL_STEP) == Some(keys::LABEL_STEP_VALUE),
        ours: raw.metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE),
        written,
        claim: raw.metadata.label("app").map(|_| Box::new(ClaimSeen::of_few_fields(&raw.metadata))),
        created: raw.metadata.creation_timestamp.as_deref().map(Into::into),
        routes,
        ..content
    }
}
