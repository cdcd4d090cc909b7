//! A small cluster for tests: objects as the API server sends them, and what the controllers plan about it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller::{Controller, Own};
use super::lane::{Facts, Question};
use super::memory::Memory;
use super::plan::{Asked, AskingRow, Context, Item, Name, Op, Plan, Row};
use crate::config::gates::Gates;
use crate::config::inputs::{AgentRuntimeInput, ConfigMapInput, NamespaceInputs};
use crate::config::schema::Platform;
use crate::config::snapshot::{Published, Snapshot};
use crate::config::view::{ClusterView, namespace_view};
use crate::controllers::rbac;
use crate::domain::keys;
use crate::domain::written::{self, At};
use crate::pipelines::templates::ConfigMapText;
use crate::store::decode::change_of;
use crate::store::objects::RuntimeRef;
use crate::store::{Change, Key, Kind, Store, Via};

pub(in crate::controllers) const OWN: &str = "kagenti-system";

/// What every installation's platform file has: an image for each mode.
const IMAGES: &str = "images:\n  envoyProxy: e\n  proxyInit: i\n  spiffeHelper: s\n  clientRegistration: r\n  authbridgeLight: l\n  cardSigner: c\n";

/// Seconds.
pub(in crate::controllers) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An object of that kind, as a change.
pub(in crate::controllers) fn change(kind: Kind, object: Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

/// A ConfigMap with a step.
pub(in crate::controllers) fn step_map(namespace: &str, name: &str, text: &str) -> ConfigMapText {
    ConfigMapText {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: BTreeMap::from([(keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned())]),
        data: BTreeMap::from([(keys::KEY_TASK_SPEC.to_owned(), text.to_owned())]),
    }
}

/// A ConfigMap with the template of a mode.
pub(in crate::controllers) fn template_map(namespace: &str, mode: &str, text: &str) -> ConfigMapText {
    ConfigMapText {
        namespace: namespace.to_owned(),
        name: format!("{}{mode}", keys::PREFIX_TEMPLATE),
        labels: BTreeMap::new(),
        data: BTreeMap::from([(keys::KEY_TEMPLATE.to_owned(), text.to_owned())]),
    }
}

/// A workload in namespace `team` with an enrolled template; `more` is merged into the object.
pub(in crate::controllers) fn workload(kind: Kind, name: &str, more: Value) -> Value {
    let template = json!({
        "metadata": {"labels": {"kagenti.io/type": "agent"}},
        "spec": {"containers": [{"name": "app", "image": "i"}]},
    });
    let spec = match kind {
        Kind::CronJob => json!({"jobTemplate": {"spec": {"template": template}}}),
        _ => json!({"template": template}),
    };
    let mut object = json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("{}-{name}", kind.plural()), "resourceVersion": "10"},
        "spec": spec,
    });
    json_patch::merge(&mut object, &more);
    object
}

/// A ServiceAccount in namespace `team`.
pub(in crate::controllers) fn account(name: &str, ours: bool, owners: Value) -> Value {
    let labels = if ours { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
    json!({"metadata": {"name": name, "namespace": "team", "uid": format!("sa-{name}"), "resourceVersion": "20",
        "labels": labels, "ownerReferences": owners}})
}

/// A cluster with namespaces `team` and our own, SPIRE's driver, and the given settings.
pub(in crate::controllers) struct Cluster {
    pub(in crate::controllers) store: Store,
    pub(in crate::controllers) memory: Memory,
    pub(in crate::controllers) facts: Published,
    /// What controllers remember, by their names.
    pub(in crate::controllers) owns: Owns,
    /// What the ConfigMaps of namespace `team` say, as the snapshot has it.
    pub(in crate::controllers) config_maps: BTreeMap<String, ConfigMapInput>,
}

/// What controllers remember, each its own type, by their names.
#[derive(Default)]
pub(in crate::controllers) struct Owns(BTreeMap<Name, Box<dyn Any>>);

impl Owns {
    pub(in crate::controllers) fn of<C: Controller>(&self, controller: Name) -> Option<&Own<C>> {
        self.0.get(&controller).map(|own| own.downcast_ref().unwrap())
    }

    pub(in crate::controllers) fn of_mut<C: Controller>(&mut self, controller: Name) -> &mut Own<C> {
        let own = self.0.entry(controller).or_insert_with(|| Box::new(Own::<C>::default()));
        own.downcast_mut().unwrap()
    }
}

/// A row of any controller, for rounds over several of them.
pub(in crate::controllers) trait Rowed {
    fn controller(&self) -> Name;
    fn keys(&self, cluster: &Cluster, namespace: &str) -> Vec<Key>;
    /// The items that a change of an object may concern.
    fn touched(&self, cluster: &Cluster, kind: Kind, key: &Key) -> Vec<Key>;
    /// The plan about one item, whose note is taken.
    fn planned(&self, cluster: &mut Cluster, key: &Key, now: Duration) -> Plan;
}

impl<C: Controller> Rowed for Row<C> {
    fn controller(&self) -> Name {
        self.controller
    }

    fn keys(&self, cluster: &Cluster, namespace: &str) -> Vec<Key> {
        (self.of_namespace)(&cluster.store, namespace)
    }

    fn touched(&self, cluster: &Cluster, kind: Kind, key: &Key) -> Vec<Key> {
        cluster.touched(*self, kind, key)
    }

    fn planned(&self, cluster: &mut Cluster, key: &Key, now: Duration) -> Plan {
        let (plan, note) = cluster.plan_at(*self, key, now).apart();
        cluster.note::<C>(self.controller, key, note);
        plan
    }
}

impl Cluster {
    pub(in crate::controllers) fn new() -> Self {
        Self::with("", Gates::default())
    }

    pub(in crate::controllers) fn with(platform: &str, gates: Gates) -> Self {
        let platform = Platform::parse(&format!("{IMAGES}{platform}"), "config.yaml").unwrap();
        let view = |name: &str| {
            let view = namespace_view(&platform, name, &NamespaceInputs::default(), None);
            (Arc::from(name), Arc::new(view))
        };
        let view = ClusterView {
            operator_namespace: OWN.into(),
            server_version: (1, 36),
            spiffe_driver: true,
            namespaces: [view("team"), view(OWN)].into(),
        };
        let snapshot = Arc::new(Snapshot::new(&platform, gates, view));
        let mut store = Store::new(OWN);
        for name in ["team", OWN] {
            store.apply(&change(Kind::Namespace, json!({"metadata": {"name": name, "uid": name}})), s(0));
        }
        let settled = Arc::clone(&snapshot);
        let facts = Published { settled, snapshot, platform: Arc::new(platform), spreading: false };
        Self { store, memory: Memory::default(), facts, owns: Owns::default(), config_maps: BTreeMap::new() }
    }

    /// Something appears or changes.
    pub(in crate::controllers) fn see(&mut self, kind: Kind, object: Value) {
        self.store.apply(&change(kind, object), s(0));
    }

    /// The snapshot learns of the AgentRuntimes and ServiceAccounts that the store knows.
    pub(in crate::controllers) fn settle(&mut self) {
        let of = |runtime: RuntimeRef<'_>| {
            let input = AgentRuntimeInput {
                uid: runtime.uid.into(),
                created: Arc::from(&*runtime.seen.created),
                deleting: runtime.seen.deleting,
                ..AgentRuntimeInput::of_seen(runtime.seen)
            };
            (runtime.name.clone(), Arc::new(input))
        };
        let agent_runtimes = self.store.agent_runtimes("team").map(of).collect();
        let service_accounts = NamespaceInputs::of(&self.store, "team").service_accounts;
        let config_maps = self.config_maps.clone();
        let inputs = NamespaceInputs { agent_runtimes, service_accounts, config_maps, ..NamespaceInputs::default() };
        let mut snapshot = (*self.facts.snapshot).clone();
        let view = namespace_view(&self.facts.platform, "team", &inputs, None);
        snapshot.view.namespaces.insert("team".into(), Arc::new(view));
        let known = self.facts.settled.view.spiffe_driver;
        self.facts.snapshot = Arc::new(snapshot);
        self.facts.settled = Arc::clone(&self.facts.snapshot);
        if known != self.facts.snapshot.view.spiffe_driver {
            Arc::make_mut(&mut self.facts.settled).view.spiffe_driver = known;
        }
    }

    /// CSIDriver `csi.spiffe.io` comes or goes; hashes do not know of it yet.
    pub(in crate::controllers) fn spiffe_driver(&mut self, exists: bool) {
        let mut snapshot = (*self.facts.snapshot).clone();
        snapshot.view.spiffe_driver = exists;
        self.facts.snapshot = Arc::new(snapshot);
    }

    /// Another platform file comes into force.
    pub(in crate::controllers) fn configure(&mut self, platform: &str) {
        let fresh = Self::with(platform, self.facts.snapshot.gates);
        self.facts = fresh.facts;
        self.memory.epoch += 1;
        self.settle();
    }

    /// Something goes away.
    pub(in crate::controllers) fn lose(&mut self, kind: Kind, object: Value) {
        let mut change = change(kind, object);
        change.now = None;
        change.via = Via::File;
        self.store.apply(&change, s(0));
    }

    /// The items of that row that a change of an object may concern.
    pub(in crate::controllers) fn touched<C: Controller>(&self, row: Row<C>, kind: Kind, key: &Key) -> Vec<Key> {
        (row.touched)(&self.store, self.owns.of(row.controller).unwrap_or(&Own::default()), kind, key)
    }

    /// The same of a row that asks.
    pub(in crate::controllers) fn touched_of<Q: Question, C: Controller>(
        &self,
        row: AskingRow<Q, C>,
        kind: Kind,
        key: &Key,
    ) -> Vec<Key> {
        (row.touched)(&self.store, self.owns.of(row.controller).unwrap_or(&Own::default()), kind, key)
    }

    /// Takes the note of a plan of that controller; returns the items for which that may change something.
    pub(in crate::controllers) fn note<C: Controller>(&mut self, by: Name, key: &Key, note: C::Note) -> Vec<Item> {
        let item = Item { controller: by, key: key.clone() };
        self.memory.is_signed(&item, C::signing(&note).cloned());
        let woken = self.memory.takes_part(&item, C::rollout(&note));
        self.owns.of_mut::<C>(by).note(key, note);
        woken
    }

    /// The process ends and another one starts: what was only remembered is gone.
    pub(in crate::controllers) fn forget(&mut self) {
        (self.memory, self.owns) = (Memory::default(), Owns::default());
    }

    /// The plan about one item; every operation in it must be declared.
    pub(in crate::controllers) fn plan_at<C: Controller>(
        &self,
        row: Row<C>,
        key: &Key,
        now: Duration,
    ) -> Plan<C::Note> {
        let (store, memory, facts) = (&self.store, &self.memory, &self.facts);
        let (own, nothing) = (self.owns.of(row.controller), Own::default());
        let own = own.unwrap_or(&nothing);
        let plan = (row.plan)(Context { store, memory, facts, key, now, own });
        for op in &plan.ops {
            let (verb, kind, _) = op.asks();
            assert!(rbac::declared(verb, kind, op.subresource()), "{verb} {kind:?} is planned and not declared");
            assert_eq!(undeclared(op), Vec::<String>::new(), "written on somebody else's object, and not in the table");
        }
        plan
    }

    /// The plan of a row that asks about one item, by these answers.
    pub(in crate::controllers) fn asked_at<Q: Question, C: Controller>(
        &self,
        row: AskingRow<Q, C>,
        key: &Key,
        facts: &Facts<Q>,
        now: Duration,
    ) -> Asked<Q, C::Note> {
        let (own, nothing) = (self.owns.of(row.controller), Own::default());
        let own = own.unwrap_or(&nothing);
        (row.plan)(Context { store: &self.store, memory: &self.memory, facts: &self.facts, key, now, own }, facts)
    }

    /// The operations about every item of `row` in all namespaces, once each.
    pub(in crate::controllers) fn plan<C: Controller>(&self, row: Row<C>) -> Vec<Op> {
        let names: Vec<_> = self.store.namespaces().cloned().collect();
        let mut keys: Vec<_> = names.iter().flat_map(|name| (row.of_namespace)(&self.store, name)).collect();
        keys.sort();
        keys.dedup();
        keys.iter().flat_map(|key| self.plan_at(row, key, s(100)).ops).collect()
    }
}

/// What an operation writes on what makes Pods, or on an object of our kinds that a person made, and the table of such things does not
/// list. An Agent's Deployment ([`Op::Own`]) is no stranger's, and what is set to null goes.
pub(in crate::controllers) fn undeclared(op: &Op) -> Vec<String> {
    if let Op::Edit { kind: Kind::Pod, operations, .. } = op {
        let added = operations.as_array().into_iter().flatten().filter(|one| one["op"] == "add");
        let keys = added.filter_map(|one| one["path"].as_str()?.strip_prefix("/metadata/labels/"));
        let keys = keys.map(|key| key.replace("~1", "/").replace("~0", "~"));
        return keys.filter(|key| !written::is_declared(At::Label, key)).collect();
    }
    let (Op::Apply { kind, body, .. } | Op::Merge { kind, patch: body, .. }) = op else { return Vec::new() };
    let Some(workload) = kind.workload() else {
        let finalizers = body.pointer("/metadata/finalizers").and_then(Value::as_array);
        let ours = finalizers.into_iter().flatten().filter_map(Value::as_str).filter(|name| name.contains("kagenti"));
        return ours.filter(|name| !written::is_declared(At::Finalizer, name)).map(str::to_owned).collect();
    };
    let template: String = workload.template_path().iter().map(|part| format!("/{part}")).collect();
    let places = [
        ("/metadata/labels".to_owned(), At::Label),
        ("/metadata/annotations".to_owned(), At::Annotation),
        (format!("{template}/metadata/labels"), At::TemplateLabel),
        (format!("{template}/metadata/annotations"), At::TemplateAnnotation),
    ];
    let of_maps = places.iter().flat_map(|(pointer, at)| {
        let map = body.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        map.filter(|(_, value)| !value.is_null()).map(|(key, _)| (*at, key.clone()))
    });
    let fields = body.pointer("/spec").and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter(|(key, _)| workload.template_path().get(1) != Some(&key.as_str()));
    let of_spec = fields.map(|(key, _)| (At::Field, format!("spec.{key}")));
    of_maps.chain(of_spec).filter(|(at, key)| !written::is_declared(*at, key)).map(|(_, key)| key).collect()
}
