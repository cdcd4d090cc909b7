//! What to write into a webhook configuration's `caBundle`s. Pure.
//!
//! In: one configuration as last seen, the roots that must be trusted, the memory of what was seen before, the time.
//! Out: nothing to do, a moment to wait for, or one JSON patch.
//!
//! A bundle only grows by roots that must be trusted, and only loses roots that have expired; what somebody else put
//! in stays. So a replica with an old view can never take away what another one depends on, whatever the order in
//! which their patches arrive. The patch tests the resourceVersion that was seen and each entry's name at its index;
//! if either has changed it fails as a whole, and the plan is made again from what is there then.
//!
//! Somebody who takes our roots out again is answered at once the first time and then at most once a minute, counting
//! the repairs of all replicas, because each of them sees the others' repairs.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, TestOperation};
use serde_json::Value;

use crate::server::certs::root::{Fingerprint, Millis, RootCertificate};
use crate::server::certs::trust_bundle::{Damaged, write_bundle};

/// The least time between two answers to somebody who keeps taking our roots out.
pub const CONTEST_INTERVAL: Millis = 60_000;

/// One entry of a webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the list.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The name under which it calls, which the certificate has to be valid for; none where its URL has none.
    pub host: Option<String>,
    /// The roots its bundle holds.
    pub roots: Vec<RootCertificate>,
    /// The field manager that wrote the bundle last, when the API server recorded one.
    pub writer: Option<String>,
}

impl Entry {
    fn fingerprints(&self) -> BTreeSet<Fingerprint> {
        self.roots.iter().map(|certificate| certificate.root.fingerprint).collect()
    }
}

/// A webhook configuration as last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Identity: another uid is another object, about which nothing is remembered.
    pub uid: String,
    /// Version.
    pub resource_version: String,
    /// The entries that call us.
    pub entries: Vec<Entry>,
    /// What was left out of their bundles because it cannot be read, by the entry's name. A patch puts the rest in its place.
    pub damaged: Vec<(String, Damaged)>,
    /// An annotation asks cert-manager's injector to publish here. Whether that is agreed is for the publisher to know.
    pub published_by_other: bool,
}

/// An entry that lost a root which we had seen there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overwritten {
    /// The entry's name.
    pub entry: String,
    /// Who wrote it last, when known.
    pub writer: Option<String>,
    /// An annotation of the configuration asks cert-manager's injector to write there.
    pub injected: bool,
}

/// What to do with one configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Everything is there.
    Keep,
    /// Somebody keeps overwriting; answer at this moment.
    Wait(Millis),
    /// Send this patch.
    Send(Patch),
}

#[derive(Debug, Clone, Default)]
struct EntryMemory {
    /// The wanted roots that were in the entry when it last held them all.
    agreed: BTreeSet<Fingerprint>,
    /// Whether one of them has gone since.
    lost: bool,
    /// When a loss was last seen to be repaired, by whomever.
    repaired: Option<Millis>,
}

/// What is remembered of one configuration.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    uid: String,
    entries: BTreeMap<String, EntryMemory>,
    /// When expired roots were last swept out: with every patch; counted from the first look.
    swept: Option<Millis>,
}

impl Memory {
    /// Takes in what is there now. Returns the entries that have lost a root since the last call.
    pub fn observe(&mut self, seen: &Configuration, wanted: &[RootCertificate], now: Millis) -> Vec<Overwritten> {
        if self.uid != seen.uid {
            // Sweeping alone is no reason to write at a restart.
            *self = Memory { uid: seen.uid.clone(), swept: Some(now), ..Memory::default() };
        }
        self.entries.retain(|name, _| seen.entries.iter().any(|entry| entry.name == *name));
        let wanted: BTreeSet<Fingerprint> = wanted.iter().map(|certificate| certificate.root.fingerprint).collect();
        let mut overwritten = Vec::new();
        for entry in &seen.entries {
            let held = entry.fingerprints();
            let memory = self.entries.entry(entry.name.clone()).or_default();
            let lost = memory.agreed.iter().any(|root| wanted.contains(root) && !held.contains(root));
            if lost && !memory.lost {
                overwritten.push(Overwritten {
                    entry: entry.name.clone(),
                    writer: entry.writer.clone(),
                    injected: seen.published_by_other,
                });
            }
            if memory.lost && !lost {
                memory.repaired = Some(now);
            }
            memory.lost = lost;
            if wanted.is_subset(&held) {
                memory.agreed = wanted.clone();
            }
        }
        overwritten
    }

    /// Whether somebody has taken a root out that is not back yet.
    #[must_use]
    pub fn contested(&self) -> bool {
        self.entries.values().any(|entry| entry.lost)
    }

    /// Notes that a patch was sent, which swept expired roots out of every entry it wrote.
    pub fn sent(&mut self, now: Millis) {
        self.swept = Some(now);
    }

    /// When an entry may be written: at once, unless it answers somebody or only sweeps.
    fn earliest(&self, entry: &Entry, missing: bool, now: Millis) -> Millis {
        let remembered = self.entries.get(&entry.name);
        let last = match remembered {
            _ if !missing => self.swept,
            Some(remembered) if remembered.lost => remembered.repaired,
            _ => None,
        };
        // A moment in the future comes from a clock that was set back since; it holds nothing up.
        last.filter(|last| *last <= now).map_or(now, |last| last + CONTEST_INTERVAL)
    }
}

/// The next step for one configuration. `memory` must have observed `seen`.
#[must_use]
pub fn step(seen: &Configuration, wanted: &[RootCertificate], memory: &Memory, now: Millis) -> Step {
    if wanted.is_empty() {
        return Step::Keep;
    }
    let must: BTreeSet<Fingerprint> = wanted.iter().map(|certificate| certificate.root.fingerprint).collect();
    let mut wait: Option<Millis> = None;
    let mut writes = Vec::new();
    for entry in &seen.entries {
        let (held, desired) = (entry.fingerprints(), desired(entry, wanted, now));
        if desired.len() == held.len() && desired.iter().all(|certificate| held.contains(&certificate.root.fingerprint))
        {
            continue;
        }
        let earliest = memory.earliest(entry, !must.is_subset(&held), now);
        if now < earliest {
            wait = Some(wait.map_or(earliest, |wait| wait.min(earliest)));
        } else {
            writes.push((entry, desired));
        }
    }
    match wait {
        _ if !writes.is_empty() => Step::Send(patch(&seen.resource_version, &writes)),
        Some(moment) => Step::Wait(moment),
        None => Step::Keep,
    }
}

/// The roots an entry should hold: what must be trusted, then what is there and has not expired.
fn desired(entry: &Entry, wanted: &[RootCertificate], now: Millis) -> Vec<RootCertificate> {
    let mut known = BTreeSet::new();
    let kept = entry.roots.iter().filter(|certificate| !certificate.root.expired(now));
    let all = wanted.iter().chain(kept);
    all.filter(|certificate| known.insert(certificate.root.fingerprint)).cloned().collect()
}

fn pointer(path: &str) -> PointerBuf {
    PointerBuf::parse(path).expect("the path is made of fixed words and numbers")
}

/// The version of the configuration that a patch was made for: what its first operation tests.
pub(super) fn tested(patch: &Patch) -> Option<&str> {
    match patch.0.first() {
        Some(PatchOperation::Test(test)) => test.value.as_str(),
        _ => None,
    }
}

fn patch(resource_version: &str, writes: &[(&Entry, Vec<RootCertificate>)]) -> Patch {
    let test = |path: &str, value: &str| {
        PatchOperation::Test(TestOperation { path: pointer(path), value: Value::from(value) })
    };
    let mut operations = vec![test("/metadata/resourceVersion", resource_version)];
    for (entry, roots) in writes {
        operations.push(test(&format!("/webhooks/{}/name", entry.index), &entry.name));
        operations.push(PatchOperation::Add(AddOperation {
            path: pointer(&format!("/webhooks/{}/clientConfig/caBundle", entry.index)),
            value: Value::from(STANDARD.encode(write_bundle(roots))),
        }));
    }
    Patch(operations)
}
