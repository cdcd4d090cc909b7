//! What the controllers of trust would write, were the label of a Namespace another one.
//!
//! In: objects of a cluster. Out: the same objects after the plans of the label on Pods and of NetworkPolicies have been carried out here, again and again
//! until they plan nothing more. Promise: the plans are those of the running operator, so both cannot disagree; nothing is written to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::offline;
use crate::cli::survey::text;
use crate::config::schema::Platform;
use crate::config::snapshot::Published;
use crate::config::trust::VerifiedPeers;
use crate::controllers::scaffold::memory::Memory;
use crate::controllers::scaffold::plan::Op;
use crate::controllers::scaffold::runner::{Runner, Scene};
use crate::controllers::{network_policy, trust_label};
use crate::domain::reason::Reason;
use crate::store::decode::change_of;
use crate::store::{Key, Kind, Reach, Store, Via};

/// Whose plans are carried out.
fn rows() -> [Box<dyn Runner>; 2] {
    [network_policy::plan::ROW.runner(), trust_label::plan::ROW.runner()]
}

/// Most rounds over every item; each round is one step of the order in which trust is switched.
const ROUNDS: usize = 50;
/// Versions of what is written here begin above those of every cluster.
const FIRST_VERSION: u64 = 1 << 60;
/// When the plans are made, long after everything was seen.
const NOW: Duration = Duration::from_secs(3600);

/// The platform file of those settings; `peers`: with another value of `cards.verifiedPeers`.
///
/// # Errors
/// When it cannot be used.
pub(super) fn platform(settings: &offline::world::World, peers: Option<VerifiedPeers>) -> anyhow::Result<Platform> {
    let platform = Platform::parse(&settings.platform.text, &settings.platform.name);
    let platform = platform.with_context(|| settings.platform.name.clone())?;
    Ok(match peers {
        Some(peers) => platform.with_verified_peers(peers),
        None => platform,
    })
}

/// A cluster on which plans are carried out.
pub(super) struct Rehearsal {
    store: Store,
    memory: Memory,
    facts: Published,
    objects: BTreeMap<(Kind, Key), Value>,
    version: u64,
    /// What the plans report, such as a name that is somebody else's.
    pub(super) reports: Vec<String>,
}

impl Rehearsal {
    /// A cluster with the settings of that one, without objects; `peers`: with another value of `cards.verifiedPeers`.
    ///
    /// # Errors
    /// When its platform file cannot be used.
    pub(super) fn new(settings: &offline::world::World, peers: Option<VerifiedPeers>) -> anyhow::Result<Self> {
        let snapshot = Arc::new(settings.snapshot()?);
        let platform = platform(settings, peers)?;
        let settled = Arc::clone(&snapshot);
        let facts = Published { snapshot, settled, platform: Arc::new(platform), spreading: false };
        let mut store = Store::new(settings.operator_namespace());
        for kind in Kind::ALL {
            store.set_reach(*kind, Reach::Listed);
        }
        store.set_reach(Kind::ClusterNetworkPolicy, Reach::Absent);
        Ok(Self {
            store,
            memory: Memory::default(),
            facts,
            objects: BTreeMap::new(),
            version: FIRST_VERSION,
            reports: Vec::new(),
        })
    }

    /// The API server serves that kind as well.
    pub(super) fn serves(&mut self, kind: Kind) {
        self.store.set_reach(kind, Reach::Listed);
    }

    /// Takes note of an object.
    ///
    /// # Errors
    /// When it is not one of that kind.
    pub(super) fn observe(&mut self, kind: Kind, object: Value) -> anyhow::Result<()> {
        let name = text(&object, "/metadata/name").to_owned();
        let mut change = change_of(kind, &object.to_string()).with_context(|| format!("{} {name}", kind.as_str()))?;
        change.via = Via::File;
        self.store.apply(&change, Duration::ZERO);
        self.objects.insert((kind, Key::new(text(&object, "/metadata/namespace"), &name)), object);
        Ok(())
    }

    /// Carries out every plan about that namespace until none is left.
    ///
    /// # Errors
    /// When a plan cannot be carried out, or they never end.
    pub(super) fn play(&mut self, namespace: &str) -> anyhow::Result<()> {
        let mut rows = rows();
        for _ in 0..ROUNDS {
            let mut written = false;
            for row in &mut rows {
                for key in row.of_namespace(&self.store, namespace) {
                    let (store, memory, facts) = (&self.store, &self.memory, &self.facts);
                    for op in row.plan(Scene { store, memory, facts, key: &key, now: NOW }).plan.ops {
                        written |= self.carry_out(op)?;
                    }
                }
            }
            if !written {
                return Ok(());
            }
        }
        anyhow::bail!("the plans for namespace {namespace} do not come to an end; this is a defect in Drawbridge")
    }

    /// Whether something was written.
    fn carry_out(&mut self, op: Op) -> anyhow::Result<bool> {
        match op {
            Op::Create { kind, namespace, mut body } => {
                body["apiVersion"] = kind.api_version().into();
                body["kind"] = kind.as_str().into();
                body["metadata"]["namespace"] = namespace.into();
                body["metadata"]["uid"] = format!("rehearsed-{}", self.version).into();
                self.put(kind, body)?;
            }
            Op::Edit { kind, key, operations } => {
                let object = self.objects.get(&(kind, key.clone())).cloned();
                let mut object = object.with_context(|| format!("{} {} is not there", kind.as_str(), key.name))?;
                let patch: json_patch::Patch = serde_json::from_value(operations).context("a patch")?;
                json_patch::patch(&mut object, &patch).context("a patch does not apply")?;
                self.put(kind, object)?;
            }
            Op::Delete { kind, key, .. } => {
                let Some(object) = self.objects.remove(&(kind, key)) else { return Ok(false) };
                let mut change = change_of(kind, &object.to_string()).context("an object")?;
                (change.now, change.via) = (None, Via::File);
                self.store.apply(&change, NOW);
            }
            Op::Report(report) => {
                // How long Pods have waited behind what stands is told elsewhere, and no consequence of the change.
                if report.reason != Reason::NotReadyBehindDeny && !self.reports.contains(&report.message) {
                    self.reports.push(report.message);
                }
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put(&mut self, kind: Kind, mut object: Value) -> anyhow::Result<()> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.observe(kind, object)
    }

    /// The object of that kind and name as it is now.
    pub(super) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, Key::new(namespace, name)))
    }

    /// Every object of a kind in a namespace.
    pub(super) fn of<'r>(&'r self, kind: Kind, namespace: &'r str) -> impl Iterator<Item = &'r Value> + 'r {
        let here = move |(of, key): &&(Kind, Key)| *of == kind && &*key.namespace == namespace;
        self.objects.iter().filter(move |(at, _)| here(at)).map(|(_, object)| object)
    }
}
