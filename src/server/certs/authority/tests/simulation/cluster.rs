//! The API server's objects, and the replicas that work on them.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::Patch;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::{ENTRIES, Fake, lifetimes};
use crate::server::certs::authority::plan::{
    self, Authority as _, Content, Facts, Generations, Leaf, Secret, SecretStep,
};
use crate::server::certs::bundle::plan::{Configuration, Entry, Memory, Step, step};
use crate::server::certs::root::{Millis, RootCertificate};
use crate::server::certs::trust::{Observed, Trust};

/// What the API server holds.
pub(super) struct World {
    pub(super) now: Millis,
    version: u64,
    pub(super) secret: Option<(u64, Content<Fake>)>,
    configurations: [Value; 2],
    /// The same, as the real code reads them.
    pub(super) read: [Configuration; 2],
    /// Every authority ever made, by its fake DER.
    made: BTreeMap<Vec<u8>, Fake>,
    pub(super) writes: usize,
}

impl World {
    pub(super) fn new() -> World {
        let mut world = World {
            now: 1_000_000,
            version: 1,
            secret: None,
            configurations: [Value::Null, Value::Null],
            read: <[Configuration; 2]>::default(),
            made: BTreeMap::new(),
            writes: 0,
        };
        world.recreate(0);
        world.recreate(1);
        world
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub(super) fn found(&mut self) -> Fake {
        let id = u32::try_from(self.made.len()).unwrap();
        let fake = Fake::issued(id, self.now, &lifetimes());
        self.made.insert(id.to_be_bytes().to_vec(), fake);
        fake
    }

    fn certificate(&self, fake: Fake) -> RootCertificate {
        let (der, _) = self.made.iter().find(|(_, made)| **made == fake).unwrap();
        RootCertificate { root: fake.root(), der: CertificateDer::from(der.clone()) }
    }

    /// An installer deletes the configuration and applies its manifest again.
    pub(super) fn recreate(&mut self, kind: usize) {
        let version = self.next_version();
        let webhooks: Vec<Value> = ENTRIES.iter().map(|name| json!({"name": name, "clientConfig": {}})).collect();
        self.configurations[kind] = json!({
            "metadata": {"uid": format!("{kind}-{version}"), "resourceVersion": version.to_string()},
            "webhooks": webhooks,
        });
        self.read[kind] = self.configuration(kind);
    }

    /// What the real code reads out of a configuration.
    fn configuration(&self, kind: usize) -> Configuration {
        let object = &self.configurations[kind];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let hooks = object["webhooks"].as_array().unwrap().iter().enumerate();
        Configuration {
            uid: text(&object["metadata"]["uid"]),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            entries: hooks
                .map(|(index, hook)| Entry {
                    index,
                    name: text(&hook["name"]),
                    host: None,
                    roots: self.roots(hook),
                    writer: None,
                })
                .collect(),
            damaged: Vec::new(),
            published_by_other: false,
        }
    }

    fn roots(&self, hook: &Value) -> Vec<RootCertificate> {
        use base64::Engine as _;
        let Some(bundle) = hook["clientConfig"]["caBundle"].as_str() else { return Vec::new() };
        let pem = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap();
        CertificateDer::pem_slice_iter(&pem)
            .map(|der| der.unwrap())
            .map(|der| RootCertificate { root: self.made[der.as_ref()].root(), der })
            .collect()
    }

    fn patch(&mut self, kind: usize, patch: &Patch) {
        let mut changed = self.configurations[kind].clone();
        if json_patch::patch(&mut changed, patch).is_ok() {
            changed["metadata"]["resourceVersion"] = json!(self.next_version().to_string());
            self.configurations[kind] = changed;
            self.read[kind] = self.configuration(kind);
            self.writes += 1;
        }
    }

    /// Creation or replacement; who comes second changes nothing.
    fn write_secret(&mut self, expected: Option<u64>, generations: Generations<Fake>) {
        if self.secret.as_ref().map(|(version, _)| *version) != expected {
            return;
        }
        let Generations { current, next, previous } = generations;
        let content = Content { ours: true, current: Ok(current), next: next.map(Ok), previous };
        self.secret = Some((self.next_version(), content));
        self.writes += 1;
    }

    pub(super) fn edit_secret(&mut self, edit: impl FnOnce(&mut Content<Fake>)) {
        let version = self.next_version();
        if let Some((known, content)) = &mut self.secret {
            *known = version;
            edit(content);
        }
    }
}

/// One replica: the loops of the real sources, without their I/O.
pub(super) struct Replica {
    pub(super) secret: Secret<Fake>,
    secret_version: Option<u64>,
    configurations: [Option<Configuration>; 2],
    trust: Trust,
    held: Option<Generations<Fake>>,
    pub(super) leaf: Option<Leaf<Fake>>,
    memory: [Memory; 2],
    writing: Option<(Option<u64>, Generations<Fake>)>,
    patching: Option<(usize, Patch)>,
    /// It has seen that every bundle trusts what it serves: from then on it gets calls.
    pub(super) ready: bool,
}

impl Replica {
    pub(super) fn new() -> Replica {
        Replica {
            secret: Secret::Unread,
            secret_version: None,
            configurations: [None, None],
            trust: Trust::default(),
            held: None,
            leaf: None,
            memory: <[Memory; 2]>::default(),
            writing: None,
            patching: None,
            ready: false,
        }
    }

    pub(super) fn see_secret(&mut self, world: &World) {
        match &world.secret {
            None => (self.secret, self.secret_version) = (Secret::Absent, None),
            Some((version, content)) => {
                self.held = content.good().or(self.held.take());
                (self.secret, self.secret_version) = (Secret::Present(content.clone()), Some(*version));
            }
        }
    }

    fn observed(&self) -> Observed {
        let entries = self.configurations.iter().flatten().flat_map(|configuration| &configuration.entries);
        let roots = |entry: &Entry| entry.roots.iter().map(|certificate| certificate.root.fingerprint).collect();
        let synced = self.configurations.iter().all(Option::is_some);
        Observed { synced, entries: entries.map(roots).collect(), ..Observed::default() }
    }

    pub(super) fn see_configuration(&mut self, world: &World, kind: usize) {
        self.configurations[kind] = Some(world.read[kind].clone());
        let now_there =
            (0..2).all(|kind| self.configurations[kind].as_ref().is_some_and(|seen| seen.uid == world.read[kind].uid));
        if now_there && let Some(leaf) = &self.leaf {
            let root = leaf.issuer.root().fingerprint;
            self.ready |= self.observed().entries.iter().all(|entry| entry.contains(&root));
        }
    }

    /// `leads`: whether it may change the Secret; everybody may create it.
    pub(super) fn turn(&mut self, world: &mut World, leads: bool) {
        let now = world.now;
        self.trust.observe(&self.observed(), now);
        let plan = plan::plan(&Facts {
            now,
            secret: &self.secret,
            held: self.held.as_ref(),
            leaf: self.leaf.as_ref(),
            trust: &self.trust,
            lifetimes: &lifetimes(),
        });
        if let Some(issuer) = plan.sign {
            // When what was served has expired no call could succeed any more: this is a new start.
            self.ready &= self.leaf.as_ref().is_some_and(|leaf| now < leaf.not_after);
            let not_after = plan::leaf_end(&lifetimes(), &issuer.root(), now);
            self.leaf = Some(Leaf { issuer, issued: now, not_before: now - 1_000, not_after });
        }
        let change = match plan.secret {
            SecretStep::Create(change) => Some(change),
            SecretStep::Replace(change) => Some(change).filter(|_| leads),
            SecretStep::Keep => None,
        };
        if let Some(change) = change
            && self.writing.is_none()
        {
            let seen = match &self.secret {
                Secret::Present(content) => Some(content),
                Secret::Unread | Secret::Absent => None,
            };
            let fresh = world.found();
            let after = plan::apply(change, seen, self.held.as_ref(), fresh, now);
            self.writing = Some((self.secret_version, after.expect("the plan fits what it was made from")));
        }
    }

    pub(super) fn land_secret(&mut self, world: &mut World, answered: bool) {
        if let Some((expected, generations)) = self.writing.take() {
            world.write_secret(expected, generations);
            if answered {
                self.see_secret(world);
            }
        }
    }

    fn wanted(&self, world: &World) -> Vec<RootCertificate> {
        let mut wanted: Vec<Fake> = Vec::new();
        if let Some(held) = &self.held {
            wanted.push(held.current);
            wanted.extend(held.next);
            wanted.extend(&held.previous);
        }
        wanted.extend(self.leaf.as_ref().map(|leaf| leaf.issuer));
        let mut known = BTreeSet::new();
        wanted.retain(|fake| known.insert(fake.root().fingerprint));
        wanted.into_iter().map(|fake| world.certificate(fake)).collect()
    }

    pub(super) fn publish(&mut self, world: &World, leads: bool) {
        let wanted = self.wanted(world);
        for kind in 0..2 {
            let Some(seen) = &self.configurations[kind] else { continue };
            self.memory[kind].observe(seen, &wanted, world.now);
            if let Step::Send(patch) = step(seen, &wanted, &self.memory[kind], world.now)
                && leads
                && self.patching.is_none()
            {
                self.memory[kind].sent(world.now);
                self.patching = Some((kind, patch));
            }
        }
    }

    /// The fence: what is under way when leadership ends goes nowhere.
    pub(super) fn deposed(&mut self) {
        self.patching = None;
        self.writing.take_if(|(replaced, _)| replaced.is_some());
    }

    pub(super) fn land_patch(&mut self, world: &mut World) {
        if let Some((kind, patch)) = self.patching.take() {
            world.patch(kind, &patch);
        }
    }
}
