//! What is kept of a Pod template: the part that decides whether and how its Pods are injected.
//!
//! In: a template as decoded. Out: [`TemplateSeen`], and from it the template as admission reads it. Promises: a few hundred bytes, whatever
//! the template's size; a member that does not decide is not kept, so a change of it alters nothing; what admission says of it, it says of the whole
//! template, unless that is refused for what is not kept: ports, volumes, users, arguments and resources of containers, node affinity, and annotations of
//! others. Of that, enrolment asks the whole object before it writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::domain::keys;
use crate::store::decode::wire::{Container, Spec, Template};

/// Keys and values, in order: what a map of two entries costs, rather than a tree's node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs(Box<[(Box<str>, Box<str>)]>);

impl Pairs {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All of them, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Those that `keep` names, as far as their values can mean anything.
    pub(super) fn of(map: Option<&BTreeMap<String, String>>, keep: fn(&str) -> bool) -> Self {
        let kept = map.into_iter().flatten().filter(|(key, value)| keep(key) && value.len() <= longest(key));
        Self::of_texts(kept.map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Those keys and values, in the order in which they come.
    pub(in crate::store::kinds) fn of_texts<'t>(texts: impl Iterator<Item = (&'t str, &'t str)>) -> Self {
        Self(texts.map(|(key, value)| (key.into(), value.into())).collect())
    }

    fn object(&self) -> Map<String, Value> {
        self.iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
    }
}

/// Most bytes of a label's or annotation's value that is kept. What is longer means nothing where it is read; lists of ports may be long, and the
/// record of our parts is, on a template that somebody has copied from a Pod.
pub(super) fn longest(key: &str) -> usize {
    match key {
        keys::ANNOTATION_STATUS => 8 * 1024,
        keys::ANNOTATION_OUTBOUND_EXCLUDE | keys::ANNOTATION_INBOUND_EXCLUDE => 4 * 1024,
        _ => 1024,
    }
}

/// What is kept of a Pod template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateSeen {
    /// Labels of ours, and the hash that names a ReplicaSet's Deployment.
    pub labels: Pairs,
    /// Annotations of ours.
    pub annotations: Pairs,
    /// An init container of its own signs the card ([`keys::CONTAINER_SIGNER`]).
    pub signs: bool,
    /// That one is a native sidecar, which stays.
    pub signer_stays: bool,
    /// The members of `spec` that decide, as JSON text: a tenth of a tree's memory.
    pub(in crate::store) spec: Arc<str>,
}

impl TemplateSeen {
    /// `{metadata, spec}`, as admission reads it.
    #[must_use]
    pub fn value(&self) -> Value {
        let metadata = json!({"labels": self.labels.object(), "annotations": self.annotations.object()});
        let spec = serde_json::from_str(&self.spec).unwrap_or_else(|_| json!({}));
        json!({"metadata": metadata, "spec": spec})
    }

    /// The same with that value of `kagenti.io/type`.
    #[must_use]
    pub fn value_with_type(&self, agent_type: &str) -> Value {
        let mut value = self.value();
        value["metadata"]["labels"][keys::LABEL_TYPE] = agent_type.into();
        value
    }

    /// The ServiceAccount that `spec` names, by its present or its old name; `None` when it names none.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let Named { name, old } = serde_json::from_str(&self.spec).ok()?;
        [name, old].into_iter().flatten().find(|name| !name.is_empty())
    }

    /// The value of `kagenti.io/type`: with it, Pods are enrolled.
    #[must_use]
    pub fn agent_type(&self) -> Option<&str> {
        self.labels.get(keys::LABEL_TYPE)
    }
}

/// What of a Pod's spec names its ServiceAccount.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "serviceAccountName")]
    name: Option<String>,
    #[serde(rename = "serviceAccount")]
    old: Option<String>,
}

/// The part of a Pod template that decides about injection.
pub(super) fn reduced(template: &Template) -> TemplateSeen {
    fn of_template(key: &str) -> bool {
        keys::is_of_template(key) || key == keys::LABEL_POD_TEMPLATE_HASH
    }
    // A Pod that says it is a mirror is left alone, whatever else is on it.
    fn of_copy(key: &str) -> bool {
        of_template(key) || keys::is_of_signer(key) || key == keys::ANNOTATION_MIRROR
    }
    fn of_pod(key: &str) -> bool {
        of_copy(key) && key != keys::ANNOTATION_STATUS
    }
    let (metadata, spec) = (template.metadata.as_ref(), template.spec.as_deref());
    let inits = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let regular = spec.and_then(|spec| spec.containers.as_deref()).unwrap_or_default();
    let signer = inits.iter().find(|one| one.name == keys::CONTAINER_SIGNER);
    // The record of our parts says of a template without any what anybody who may write an annotation wants: admission takes nothing back by it
    // either, in the Pods.
    let is_copy = regular.iter().chain(inits).any(|one| keys::OUR_CONTAINERS.contains(&one.name.as_str()));
    let kept: fn(&str) -> bool = if is_copy { of_copy } else { of_pod };
    TemplateSeen {
        labels: Pairs::of(metadata.and_then(|metadata| metadata.labels.as_ref()), of_template),
        annotations: Pairs::of(metadata.and_then(|metadata| metadata.annotations.as_ref()), kept),
        signs: signer.is_some(),
        signer_stays: signer.is_some_and(|signer| signer.restart_policy.as_deref() == Some(STAYS)),
        spec: pod_spec(spec),
    }
}

/// The members of a Pod's spec that decide about injection: what [`TemplateSeen::spec`] is the text of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deciding<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_network: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    os: Option<Called<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<Vec<Part<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_policy: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    node_selector: BTreeMap<&'static str, &'a str>,
}

/// Something of which the name alone decides.
#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
}

/// A container as far as it decides.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    name: &'a str,
    /// Of init containers, where it lets them stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_policy: Option<&'static str>,
    /// The variables that it sets itself and that it would get from us, where it stays: nothing else gets any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<Called<'static>>,
}

impl<'a> Part<'a> {
    fn regular(container: &'a Container) -> Self {
        let env = container.env.names().map(|name| Called { name }).collect();
        Self { name: short(&container.name), restart_policy: None, env }
    }

    fn init(container: &'a Container) -> Self {
        match container.restart_policy.as_deref() {
            Some(STAYS) => Self { restart_policy: Some(STAYS), ..Self::regular(container) },
            _ => Self { name: short(&container.name), restart_policy: None, env: Vec::new() },
        }
    }
}

/// The restart policy of init containers that stay, and the usual one of Pods.
const STAYS: &str = "Always";
/// The labels of nodes by which admission tells on which system a Pod runs.
const SYSTEM_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
/// Containers that are kept, init containers included: one more than a Pod that is injected may have.
const CONTAINERS: usize = keys::CONTAINERS_MOST + 1;
/// Bytes that are kept of a name: one more than any may have, so that what is too long stays no name.
const NAME: usize = 254;

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME)]
}

/// It is written at every event of a workload: without a tree between.
fn pod_spec(spec: Option<&Spec>) -> Arc<str> {
    let Some(spec) = spec else { return "{}".into() };
    let inits = spec.init_containers.as_deref().unwrap_or_default();
    let room = CONTAINERS.saturating_sub(spec.containers.as_ref().map_or(0, Vec::len));
    let deciding = Deciding {
        service_account_name: spec.service_account_name.as_deref().map(short),
        service_account: spec.service_account.as_deref().map(short),
        host_network: spec.host_network,
        os: spec.os.as_ref().map(|os| Called { name: short(&os.name) }),
        containers: spec.containers.as_ref().map(|all| all.iter().take(CONTAINERS).map(Part::regular).collect()),
        init_containers: inits.iter().take(room).map(Part::init).collect(),
        // What is usual is what an absent one means.
        restart_policy: spec.restart_policy.as_deref().filter(|policy| *policy != STAYS).map(short),
        node_selector: systems(spec.node_selector.as_ref()),
    };
    serde_json::to_string(&deciding).expect("texts, a truth value and a map of texts can be written as JSON").into()
}

/// On nodes of which system it runs, as far as its selector says.
fn systems(selector: Option<&BTreeMap<String, String>>) -> BTreeMap<&'static str, &str> {
    let said = |label: &'static str| Some((label, short(selector?.get(label)?)));
    SYSTEM_LABELS.into_iter().filter_map(said).collect()
}
