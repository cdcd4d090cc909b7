//! The world around a case: platform file, feature gates, and what the cluster holds.
//!
//! `config.yaml` of a case lies over the file named by its `base` (default `base/cluster.yaml`): `platform`, `gates`
//! and `cluster` are merged key by key, an entry of `objects` replaces the one of equal kind and name, `without`
//! takes one out. Objects are ordinary manifests, so that the same fixture can be created on a real API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use drawbridge::api::review::Phase;
use drawbridge::config::gates::Gates;
use drawbridge::config::gather;
use drawbridge::config::inputs::{ConfigMapInput, NamespaceInputs};
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::config::view::{ClusterView, namespace_view};
use drawbridge::domain::keys;
use drawbridge::store::{Change, Kind, Store, Via, What, change_of};

/// One `config.yaml`, or one of the base files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Inputs {
    /// The base file this one lies over, without ending.
    #[serde(default)]
    pub base: Option<String>,
    /// Members of the platform file.
    #[serde(default)]
    platform: Option<Value>,
    /// The platform file as text, when its spelling is the point.
    #[serde(default)]
    platform_text: Option<String>,
    /// Members of the feature gates file.
    #[serde(default)]
    gates: Option<Value>,
    /// The feature gates file as text.
    #[serde(default)]
    gates_text: Option<String>,
    #[serde(default)]
    cluster: Option<Value>,
    #[serde(default)]
    objects: Vec<Value>,
    /// `Kind/name` of objects of the base that are not there.
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    request: Option<Value>,
}

/// Facts of the cluster that are no objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cluster {
    /// `major.minor`.
    pub server_version: String,
    /// The operator's own namespace.
    pub operator_namespace: String,
}

/// What is asked, besides the object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RequestFacts {
    /// `mutate` (the default) or `validate`.
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    dry_run: Option<bool>,
    /// The object sent is `null`, as at DELETE.
    #[serde(default)]
    without_object: bool,
}

/// Files and objects after the overlay.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// The platform file.
    pub platform: String,
    /// The feature gates file.
    pub gates: String,
    /// Facts of the cluster.
    pub cluster: Value,
    /// Manifests, by `Kind/namespace/name`.
    pub objects: BTreeMap<String, Value>,
    /// What is asked.
    pub request: RequestFacts,
}

impl Fixture {
    /// Each of the inputs lies over the ones before it.
    ///
    /// # Errors
    /// A member of `request` that nobody reads.
    pub fn overlaid(chain: impl Iterator<Item = Inputs>) -> anyhow::Result<Self> {
        let (mut platform, mut gates, mut cluster, mut request) = (json!({}), json!({}), json!({}), json!({}));
        let (mut platform_text, mut gates_text) = (None, None);
        let mut objects = BTreeMap::new();
        for inputs in chain {
            for (under, over) in [
                (&mut platform, inputs.platform),
                (&mut gates, inputs.gates),
                (&mut cluster, inputs.cluster),
                (&mut request, inputs.request),
            ] {
                if let Some(over) = over {
                    json_patch::merge(under, &over);
                }
            }
            platform_text = inputs.platform_text.or(platform_text);
            gates_text = inputs.gates_text.or(gates_text);
            objects.retain(|_, object: &mut Value| !inputs.without.contains(&kind_and_name(object)));
            objects.extend(inputs.objects.into_iter().map(|object| (identity(&object), object)));
        }
        Ok(Self {
            platform: platform_text.unwrap_or_else(|| platform.to_string()),
            gates: gates_text.unwrap_or_else(|| gates.to_string()),
            cluster,
            objects,
            request: serde_json::from_value(request).context("request")?,
        })
    }

    /// Which of our webhooks is called.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.request.phase.as_deref() {
            Some("validate") => Phase::Validate,
            _ => Phase::Mutate,
        }
    }

    /// What the product makes of files and objects.
    ///
    /// # Errors
    /// The words in which the product refuses one of the files, or a fixture that makes no sense.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let platform = Platform::parse(&self.platform, "config.yaml")?;
        let missing = platform.missing_images();
        if !missing.is_empty() {
            bail!("the platform file names no image: {}", missing.join(", "));
        }
        let (gates, _) = Gates::parse(&self.gates, "feature-gates.yaml")?;
        let cluster: Cluster = serde_json::from_value(self.cluster.clone()).context("cluster")?;
        let inputs = self.namespaces(&cluster.operator_namespace)?;
        let own = inputs.get(&cluster.operator_namespace);
        let platform = match own {
            Some(own) => platform.with_templates(&own.config_maps, None),
            None => platform,
        };
        let mut namespaces = std::collections::HashMap::new();
        for (name, inputs) in inputs {
            let view = namespace_view(&platform, &name, &inputs, None);
            namespaces.insert(Arc::from(name), Arc::new(view));
        }
        let (major, minor) = cluster.server_version.split_once('.').context("serverVersion: major.minor")?;
        let view = ClusterView {
            operator_namespace: Arc::from(cluster.operator_namespace.as_str()),
            server_version: (major.parse()?, minor.parse()?),
            spiffe_driver: self.objects.contains_key(&format!("CSIDriver//{}", keys::CSI_DRIVER_SPIFFE)),
            namespaces,
        };
        Ok(Snapshot::new(&platform, gates, view))
    }

    /// The manifests as the watches would deliver them: into a store, of which the inputs are gathered by namespace.
    fn namespaces(&self, own: &str) -> anyhow::Result<BTreeMap<String, NamespaceInputs>> {
        let mut store = Store::new(own);
        let mut config_maps: BTreeMap<String, BTreeMap<String, ConfigMapInput>> = BTreeMap::new();
        for object in self.objects.values() {
            let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
            let Some(kind) = Kind::of(group, text(object, "/kind")) else {
                bail!("objects of kind {} are no input of admission", text(object, "/kind"));
            };
            let change = change_of(kind, &object.to_string())?;
            let namespace = if kind == Kind::Namespace { &change.key.name } else { &change.key.namespace };
            if kind == Kind::CsiDriver {
                continue;
            }
            let of_namespace = config_maps.entry(namespace.to_string()).or_default();
            match change.now.as_deref().map(|observed| &observed.what) {
                Some(What::ConfigMap(seen)) => {
                    // A projection leaves out a text that is over the bounds, of which reading it tells.
                    let data = object.get("data").map(|data| serde_json::from_value(data.clone())).transpose()?;
                    let (is_defaults, data) = (seen.is_defaults, data.unwrap_or_default());
                    let input = ConfigMapInput { is_defaults, data, ..ConfigMapInput::default() };
                    of_namespace.insert(change.key.name.to_string(), input);
                }
                _ if gather::KINDS.contains(&kind) => {
                    store.apply(&Change { via: Via::File, ..change }, Duration::ZERO);
                }
                _ => bail!("objects of kind {} are no input of admission", kind.as_str()),
            }
        }
        let of = |(name, config_maps): (String, _)| {
            let inputs = NamespaceInputs { config_maps, ..NamespaceInputs::of(&store, &name) };
            (name, inputs)
        };
        Ok(config_maps.into_iter().map(of).collect())
    }
}

impl RequestFacts {
    /// An AdmissionReview of `object`, as the API server words it.
    #[must_use]
    pub fn review(&self, uid: &str, object: &Value) -> String {
        let (group, version) = match text(object, "/apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text(object, "/apiVersion")),
        };
        let kind = text(object, "/kind");
        let resource = format!("{}s", kind.to_lowercase());
        let mut request = json!({
            "uid": uid,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "requestKind": {"group": group, "version": version, "kind": kind},
            "requestResource": {"group": group, "version": version, "resource": resource},
            "name": text(object, "/metadata/name"),
            "namespace": self.namespace.as_deref().unwrap_or("team1"),
            "operation": self.operation.as_deref().unwrap_or("CREATE"),
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
            "object": if self.without_object { &Value::Null } else { object },
            "oldObject": null,
            "dryRun": self.dry_run.unwrap_or(false),
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        });
        if let Some(sub_resource) = &self.sub_resource {
            request["subResource"] = json!(sub_resource);
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
    }
}

fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn kind_and_name(object: &Value) -> String {
    format!("{}/{}", text(object, "/kind"), text(object, "/metadata/name"))
}

/// Several groups have kinds of one name.
fn identity(object: &Value) -> String {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text(object, "/kind");
    let kind = Kind::of(group, kind).map_or(kind, |known| known.label());
    format!("{kind}/{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}
