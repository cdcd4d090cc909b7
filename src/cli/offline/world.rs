//! Facts for a snapshot, taken from objects instead of watches.
//!
//! In: flags, and any objects (from manifests, or read from a cluster). Out: the [`Snapshot`] a webhook replica would have that had
//! seen those objects: they take the way of watched ones, into a [`Store`]. Kinds that say nothing about admission are ignored.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::shipped::shipped;
use super::workload::{OFFLINE_UID, Subject, next_job};
use crate::api::place::mapping;
use crate::cli::given;
use crate::cli::render::platform;
use crate::cli::survey::{annotation, label};
use crate::config::agent_runtime::Governors;
use crate::config::builds::Builds;
use crate::config::content::digest;
use crate::config::enrolment::WorkloadLabels;
use crate::config::gates::Gates;
use crate::config::gather::{self, ClusterInputs};
use crate::config::inputs::{AgentRuntimeInput, ConfigMapInput, NamespaceInputs};
use crate::config::schema::Platform;
use crate::config::snapshot::Snapshot;
use crate::config::view::{ClusterView, NamespaceView, namespace_view};
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::pipelines::templates::ConfigMapText;
use crate::store::decode::wire::binary::Binary;
use crate::store::{Change, Key, Kind, NamespaceSeen, Observed, Store, Via, What, change_of};

/// Facts that manifests do not have.
#[derive(Debug, Clone, clap::Args)]
pub struct Facts {
    /// Platform file; default is ConfigMap kagenti-platform-config of the input, else the one that `render` ships.
    #[arg(long, value_name = "FILE")]
    pub platform_file: Option<std::path::PathBuf>,
    /// Feature gates file; default is ConfigMap kagenti-feature-gates of the input, else the built-in gates.
    #[arg(long, value_name = "FILE")]
    pub feature_gates_path: Option<std::path::PathBuf>,
    /// Version of the API server, such as 1.34.
    #[arg(long, value_name = "VERSION", value_parser = parse_version, default_value = "1.33")]
    pub server_version: (u32, u32),
    /// CSI driver csi.spiffe.io is there (also when the input has its CSIDriver).
    #[arg(long)]
    pub spire_driver: bool,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAME", default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub operator_namespace: String,
}

/// Reads `1.34`, `v1.34` or `1.34.2`.
fn parse_version(text: &str) -> Result<(u32, u32), String> {
    let mut numbers = text.trim_start_matches('v').split(['.', '+', '-']);
    match (numbers.next().and_then(|n| n.parse().ok()), numbers.next().and_then(|n| n.parse().ok())) {
        (Some(major), Some(minor)) => Ok((major, minor)),
        _ => Err(format!("{text} is not a version such as 1.34")),
    }
}

/// A configuration file and where it came from.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

fn shipped_platform() -> File {
    File { name: "the shipped platform file".to_owned(), text: platform::platform_file() }
}

fn built_in_gates() -> File {
    File { name: "the built-in gates".to_owned(), text: String::new() }
}

/// What is known.
#[derive(Debug, Clone)]
pub struct World {
    /// Platform file.
    pub platform: File,
    /// Feature gates file.
    pub gates: File,
    platform_given: bool,
    gates_given: bool,
    server_version: (u32, u32),
    /// A cluster was asked: what it does not have is not there.
    is_cluster: bool,
    /// The CSI driver is there, as the flags have it.
    spiffe_driver: bool,
    operator_namespace: String,
    store: Store,
    /// The namespaces that are known, also those of which there is no object.
    namespaces: BTreeSet<String>,
    config_maps: BTreeMap<String, BTreeMap<String, ConfigMapInput>>,
    /// Those of which a cluster said that what cuts off agents is not there.
    not_cut_off: BTreeSet<String>,
    made: BTreeSet<(String, String)>,
    agent_runtimes: BTreeMap<(String, String), Value>,
    pipelines: Vec<ConfigMapText>,
    read: RefCell<Option<Read>>,
}

/// What the last snapshot was made from: reading it again for every workload of a long stream would take minutes.
#[derive(Debug, Clone)]
struct Read {
    /// The texts it was read from.
    files: (String, String),
    platform: Platform,
    /// A snapshot without namespaces.
    base: Snapshot,
    /// The namespaces that have not changed since.
    namespaces: HashMap<Arc<str>, Arc<NamespaceView>>,
}

impl World {
    /// A cluster of which only the flags are known.
    ///
    /// # Errors
    /// When a file of the flags cannot be read.
    pub fn new(facts: &Facts) -> anyhow::Result<Self> {
        let read = |path: &Option<std::path::PathBuf>| -> anyhow::Result<Option<File>> {
            let Some(path) = path else { return Ok(None) };
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
            Ok(Some(File { name, text }))
        };
        let platform = read(&facts.platform_file)?;
        let gates = read(&facts.feature_gates_path)?;
        Ok(Self {
            platform_given: platform.is_some(),
            gates_given: gates.is_some(),
            platform: platform.unwrap_or_else(shipped_platform),
            gates: gates.unwrap_or_else(built_in_gates),
            server_version: facts.server_version,
            is_cluster: false,
            spiffe_driver: facts.spire_driver,
            operator_namespace: facts.operator_namespace.clone(),
            store: Store::new(&facts.operator_namespace),
            namespaces: BTreeSet::new(),
            config_maps: BTreeMap::new(),
            not_cut_off: BTreeSet::new(),
            made: BTreeSet::new(),
            agent_runtimes: BTreeMap::new(),
            pipelines: Vec::new(),
            read: RefCell::new(None),
        })
    }

    /// Sets the API server's version, when a cluster was asked.
    pub fn set_server_version(&mut self, version: (u32, u32)) {
        self.server_version = version;
        self.is_cluster = true;
    }

    /// A cluster was asked, and its API server does not say its version: that of the flags stays, and is given back.
    pub fn keep_server_version(&mut self) -> (u32, u32) {
        self.is_cluster = true;
        self.server_version
    }

    /// Takes note of one object as a replica of the webhook would that watches it; `namespace` is where it is applied when it does not
    /// say. What no API server would store says nothing.
    pub fn observe(&mut self, object: &Value, namespace: &str) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let (api_version, name) = (text("/apiVersion"), text("/metadata/name"));
        let place = match text("/metadata/namespace") {
            "" => namespace,
            own => own,
        };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        match Kind::of(group, text("/kind")).filter(|kind| kind.api_version() == api_version) {
            Some(Kind::ConfigMap) => self.config_map(object, name, place),
            Some(Kind::CsiDriver) if name == keys::CSI_DRIVER_SPIFFE => self.keep(Kind::CsiDriver, object, ""),
            Some(kind) if gather::KINDS.contains(&kind) => self.take(kind, object, place),
            _ => {}
        }
    }

    fn take(&mut self, kind: Kind, object: &Value, place: &str) {
        let Ok(mut change) = change_of(kind, &object.to_string()) else { return };
        let place = if kind == Kind::Namespace { change.key.name.to_string() } else { place.to_owned() };
        if kind != Kind::Namespace {
            change.key.namespace = place.as_str().into();
        }
        if let (Kind::Job, Some(job)) = (kind, &mut change.now) {
            // A manifest has no uid, and its Pods are made with that of every owner that is known from manifests alone.
            let job = Arc::make_mut(job);
            job.uid = if job.uid.is_empty() { OFFLINE_UID.into() } else { job.uid.clone() };
        }
        if kind == Kind::AgentRuntime {
            self.agent_runtimes.insert((place.clone(), change.key.name.to_string()), object.clone());
        }
        self.apply(&place, change);
    }

    /// Takes note of an object that says something about the cluster as a whole.
    fn keep(&mut self, kind: Kind, object: &Value, place: &str) {
        let Ok(mut change) = change_of(kind, &object.to_string()) else { return };
        change.key.namespace = place.into();
        *self.read.get_mut() = None;
        self.store.apply(&Change { via: Via::File, ..change }, Duration::ZERO);
    }

    /// What is of the cluster as a whole.
    fn cluster(&self) -> ClusterInputs {
        let inputs = gather::cluster(&self.store);
        ClusterInputs { spiffe_driver: self.spiffe_driver || inputs.spiffe_driver, ..inputs }
    }

    /// What a file says is the truth, whatever was known before.
    fn apply(&mut self, place: &str, change: Change) {
        self.touch(place);
        self.store.apply(&Change { via: Via::File, ..change }, Duration::ZERO);
    }

    /// What is known of a namespace.
    fn inputs(&self, name: &str) -> NamespaceInputs {
        let mut inputs = NamespaceInputs::of(&self.store, name);
        inputs.config_maps = self.config_maps.get(name).cloned().unwrap_or_default();
        // What cuts off agents a controller makes before anything else: a namespace of a cluster has it.
        let is_made = self.store.network_policy(name, keys::DEFAULT_DENY).is_none() && !self.not_cut_off.contains(name);
        inputs.cut_off |= is_made;
        inputs
    }

    /// Sets a field of the AgentRuntime that governs a workload, by its path from the object; a workload without one gets one. An empty
    /// value takes the field out.
    ///
    /// # Errors
    /// When the field cannot have that value.
    pub fn set_agent_runtime(&mut self, subject: &Subject, path: &str, value: Value) -> anyhow::Result<()> {
        let kind = subject.workload.kind;
        let inputs = self.inputs(&subject.namespace).agent_runtimes;
        let name =
            Governors::of(&inputs).winner(kind, &subject.workload.name).map(|governor| governor.name.to_string());
        let name = name.unwrap_or_else(|| "what-if".to_owned());
        let made = || {
            json!({
                "metadata": {"name": name, "namespace": subject.namespace},
                "spec": {"type": "agent", "targetRef": {
                    "apiVersion": kind.api_version(), "kind": kind.as_str(), "name": subject.workload.name}},
            })
        };
        let known = self.agent_runtimes.get(&(subject.namespace.clone(), name.clone()));
        let mut object = known.cloned().unwrap_or_else(made);
        let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
        let members = mapping(&mut object, above.split('.').filter(|step| !step.is_empty()))
            .with_context(|| format!("{path}: what stands above {last} in AgentRuntime {name} is not a mapping"))?;
        if value == json!("") {
            drop(members.remove(last))
        } else {
            drop(members.insert(last.to_owned(), value))
        }
        if let Some(fault) = AgentRuntimeInput::of_object(&object).faults.first() {
            bail!("{}: {} ({} was given)", fault.field, fault.message, fault.seen);
        }
        self.take(Kind::AgentRuntime, &object, &subject.namespace);
        Ok(())
    }

    fn config_map(&mut self, object: &Value, name: &str, place: &str) {
        let data = strings(object.get("data"));
        if place == self.operator_namespace {
            let file = |key: &str| {
                data.get(key).map(|text| File { name: format!("ConfigMap {name}, key {key}"), text: text.clone() })
            };
            match name {
                keys::CONFIG_MAP_PLATFORM if !self.platform_given => {
                    self.platform = file(platform::KEY_PLATFORM).unwrap_or_else(|| self.platform.clone());
                }
                keys::CONFIG_MAP_GATES if !self.gates_given => {
                    self.gates = file(platform::KEY_GATES).unwrap_or_else(|| self.gates.clone());
                }
                keys::CONFIG_MAP_ENROLMENT => self.keep(Kind::ConfigMap, object, place),
                _ => {}
            }
        }
        *self.read.get_mut() = None;
        // What is neither template nor step is left out where they are read.
        self.pipelines.push(ConfigMapText {
            namespace: place.to_owned(),
            name: name.to_owned(),
            labels: strings(object.pointer("/metadata/labels")),
            data: data.clone(),
        });
        let is_defaults =
            object.pointer("/metadata/labels/kagenti.io~1defaults").and_then(Value::as_str) == Some("true");
        let ours = label(object, keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE);
        let frozen = object["immutable"] == json!(true);
        let mut content = data;
        content.extend(Binary::of(object.get("binaryData")).entries());
        let kept = ours && !frozen && annotation(object, keys::ANNOTATION_CONTENT_DIGEST) == Some(&*digest(&content));
        if is_defaults || keys::WATCHED_CONFIG_MAPS.contains(&name) {
            let created =
                object.pointer("/metadata/creationTimestamp").and_then(Value::as_str).unwrap_or_default().into();
            let input = ConfigMapInput { is_defaults, kept, created, data: content, ..ConfigMapInput::default() };
            self.touch(place);
            self.config_maps.entry(place.to_owned()).or_default().insert(name.to_owned(), input);
        }
    }

    /// The Job that a CronJob makes next.
    pub fn observe_next_job(&mut self, namespace: &str, cron_job: &str) {
        let kind = WorkloadKind::CronJob;
        let owner = json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": cron_job, "uid": OFFLINE_UID,
            "controller": true});
        let job = json!({"metadata": {"name": next_job(cron_job), "namespace": namespace, "ownerReferences": [owner]}});
        self.take(Kind::Job, &job, namespace);
    }

    /// The ServiceAccount a controller would make ahead of the Pods; false when one of that name is there.
    pub fn make_service_account(&mut self, namespace: &str, name: &str) -> bool {
        if self.store.service_account(namespace, name).is_some() {
            return false;
        }
        let labels = json!({keys::LABEL_MANAGED_BY: keys::MANAGED_BY_WEBHOOK});
        let account = json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}});
        self.take(Kind::ServiceAccount, &account, namespace);
        self.made.insert((namespace.to_owned(), name.to_owned()));
        true
    }

    /// The ServiceAccounts that only [`World::make_service_account`] made: a cluster has them when a controller was there.
    #[must_use]
    pub fn is_made(&self, namespace: &str, name: &str) -> bool {
        self.made.contains(&(namespace.to_owned(), name.to_owned()))
    }

    /// The operator's namespace.
    #[must_use]
    pub fn operator_namespace(&self) -> &str {
        &self.operator_namespace
    }

    /// Something about a namespace is other than before.
    fn touch(&mut self, name: &str) {
        let read = self.read.get_mut();
        if name == self.operator_namespace {
            // Its ConfigMaps are templates for all the others.
            *read = None;
        } else if let Some(read) = read {
            read.namespaces.remove(name);
        }
        if !self.namespaces.contains(name) {
            self.namespaces.insert(name.to_owned());
        }
    }

    /// Whether Pods of a namespace have to prove first who they are.
    ///
    /// # Errors
    /// When the platform file or the gates file has a fault.
    pub fn enforces_trust(&self, namespace: &str) -> anyhow::Result<bool> {
        Ok(self.snapshot()?.namespace(namespace).is_some_and(|view| view.trust.enforces()))
    }

    /// The policy that cuts off agents is not there: a cluster says so, and manifests never do.
    pub fn is_not_cut_off(&mut self, namespace: &str) {
        self.touch(namespace);
        self.not_cut_off.insert(namespace.to_owned());
    }

    /// Sets a label of a namespace; an empty value removes it.
    pub fn label_namespace(&mut self, name: &str, key: &str, value: &str) {
        let mut seen = match self.store.object(Kind::Namespace, name, name).map(|(_, known)| &known.what) {
            Some(What::Namespace(known)) => known.clone(),
            _ => NamespaceSeen::default(),
        };
        if value.is_empty() {
            seen.labels.remove(key);
        } else {
            seen.labels.insert(key.to_owned(), value.to_owned());
        }
        self.apply(name, namespace_of(name, seen));
    }

    /// Makes sure that the namespace is known, also when no object said so.
    pub fn know_namespace(&mut self, name: &str) {
        if !self.namespaces.contains(name) {
            self.touch(name);
        }
    }

    /// The platform file as read, and what the operator's own namespace adds to it.
    ///
    /// # Errors
    /// When the platform file has a fault.
    pub fn platform(&self) -> anyhow::Result<Platform> {
        let parsed = Platform::parse(&self.platform.text, &self.platform.name)?;
        let nothing = BTreeMap::new();
        let own = self.config_maps.get(&self.operator_namespace).unwrap_or(&nothing);
        Ok(parsed.with_templates(own, None))
    }

    /// What a replica that had seen all this would decide from. ConfigMaps that controllers make in an agent namespace are
    /// there, with the content they would have.
    ///
    /// # Errors
    /// When the platform file or the gates file has a fault.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut kept = self.read.borrow_mut();
        let current = kept.take().filter(|read| read.files == (self.platform.text.clone(), self.gates.text.clone()));
        let read = kept.insert(match current {
            Some(read) => read,
            None => self.read()?,
        });
        for name in &self.namespaces {
            if !read.namespaces.contains_key(name.as_str()) {
                let view = namespace_view(&read.platform, name, &self.inputs(name), None);
                read.namespaces.insert(Arc::from(name.as_str()), Arc::new(view));
            }
        }
        let view = ClusterView {
            server_version: self.server_version,
            spiffe_driver: self.cluster().spiffe_driver,
            namespaces: read.namespaces.clone(),
            ..read.base.view.clone()
        };
        let snapshot = Snapshot { view, ..read.base.clone() };
        Ok(if self.is_cluster {
            snapshot.installed(self.cluster().installed)
        } else {
            // A manifest says nothing about its age, and neither does anybody else.
            let labels = match snapshot.labels {
                WorkloadLabels::Since(_) => WorkloadLabels::All(None),
                said => said,
            };
            Snapshot { labels, ..snapshot }
        })
    }

    /// Leaves out what cannot be used of the files that a cluster holds, each with a note: its processes go on, with what they read
    /// last, and so does whoever wants to know about them.
    pub fn leave_out_faulty(&mut self, notes: &mut Vec<String>) {
        let mut note = |error: &dyn std::fmt::Display, instead: &File| {
            notes.push(format!(
                "{error}; judged by {} instead, while the processes go on with what they read last",
                instead.name
            ));
        };
        if let (false, Err(error)) = (self.platform_given, Platform::parse(&self.platform.text, &self.platform.name)) {
            self.platform = shipped_platform();
            note(&error, &self.platform);
        }
        if let (false, Err(error)) = (self.gates_given, Gates::parse(&self.gates.text, &self.gates.name)) {
            self.gates = built_in_gates();
            note(&error, &self.gates);
        }
        *self.read.get_mut() = None;
    }

    /// Everything but the namespaces.
    fn read(&self) -> anyhow::Result<Read> {
        let platform = self.platform()?;
        let (gates, _) = Gates::parse(&self.gates.text, &self.gates.name)?;
        let view = ClusterView {
            operator_namespace: self.operator_namespace.as_str().into(),
            server_version: self.server_version,
            spiffe_driver: self.cluster().spiffe_driver,
            namespaces: HashMap::new(),
        };
        let mut builds = Builds::new(platform.builds(&self.operator_namespace, false));
        for (name, entry) in shipped(&self.operator_namespace).iter() {
            builds.view.put(&self.operator_namespace, name, entry.as_ref());
        }
        builds.view = builds.view.with(self.pipelines.iter().cloned());
        Ok(Read {
            files: (self.platform.text.clone(), self.gates.text.clone()),
            base: Snapshot::new(&platform, gates, view).with_builds(Arc::new(builds)),
            platform,
            namespaces: HashMap::new(),
        })
    }

    /// Sets a key of the platform file, or a gate, by its dotted path; an empty value takes it out.
    ///
    /// # Errors
    /// When the file cannot be read as a mapping, or a part of the path is not one.
    pub fn set(file: &mut File, path: &str, value: Value) -> anyhow::Result<()> {
        let parsed = crate::api::yaml::parse(&file.text).map_err(|error| anyhow::anyhow!("{}: {error}", file.name))?;
        let mut root = match parsed.to_json() {
            Value::Null => Value::Object(serde_json::Map::new()),
            other => other,
        };
        put(&mut root, path, value).with_context(|| path.to_owned())?;
        file.text = crate::cli::yaml::emit::document(&root, None);
        Ok(())
    }
}

/// A Namespace that says this.
fn namespace_of(name: &str, seen: NamespaceSeen) -> Change {
    let now = Some(Arc::new(Observed { uid: "".into(), version: 0, what: What::Namespace(seen) }));
    Change { kind: Kind::Namespace, key: Key::new("", name), version: 0, via: Via::File, now }
}

fn put(place: &mut Value, path: &str, value: Value) -> anyhow::Result<()> {
    if place.is_null() {
        *place = json!({});
    }
    let (name, below) = path.split_once('.').map_or((path, None), |(name, below)| (name, Some(below)));
    let Some(map) = place.as_object_mut() else { bail!("what stands above {name} is not a mapping") };
    match below {
        Some(below) => return put(map.entry(name).or_insert(Value::Null), below, value),
        None if value == json!("") => drop(map.remove(name)),
        None => drop(map.insert(name.to_owned(), value)),
    }
    Ok(())
}

fn strings(map: Option<&Value>) -> BTreeMap<String, String> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
