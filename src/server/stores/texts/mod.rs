//! The ConfigMaps that configuration and builds read: what each said last, and which are still to be read; pure.
//!
//! ```text
//! Change ─► slot (digest, size) ─► within the bounds? ─► turn ─► Job ─► [read elsewhere] ─► Outcome, weighed ─► kept
//!                                       └─ no: named, and what it said before stays        └─ no room: waits ([`Crowd`])
//! ```
//!
//! In: changes of ConfigMaps, and what was read of them. Out: jobs, in fair turns ([`Turns`]), and what is known. Promises:
//! a text is read once per content, and kept only until then; what counts as over a bound of its namespace does not depend on the order of
//! events; what had no room beside all other namespaces is read once more when they leave it some; no call costs more for a large text than
//! for a small one, nor for one of many ConfigMaps than for one of few.

mod crowd;
mod slot;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::turns::Turns;
use crate::config::bounds::{Bound, KEPT_IN_ALL, Limits, TEXT, WAITING};
use crate::config::inputs::ConfigMapInput;
use crate::config::reading::{self, Known};
use crate::domain::keys;
use crate::pipelines::templates::Entry;
use crate::store::{Change, ConfigMapSeen, Key, What};
use crowd::Crowd;
pub(super) use slot::{Content, Data, Outcome};
use slot::{Slot, Space};

/// Texts that are to be read once more because of one event; the next event is that one of them was read.
const AGAIN: usize = 4;

/// Everything that is known.
#[derive(Debug)]
pub(super) struct Texts {
    own: Arc<str>,
    spaces: HashMap<Arc<str>, Space>,
    turns: Turns,
    /// Bytes kept of what was read.
    kept: usize,
    /// Bytes of texts that wait.
    waiting: usize,
    /// How many ConfigMaps are over which bound.
    over: BTreeMap<Bound, usize>,
    /// Those that are over the bound of all namespaces.
    crowd: Crowd,
    /// Namespaces of which a template or step has not been read yet.
    unread_builds: BTreeSet<Arc<str>>,
}

/// One text to be read.
#[derive(Debug)]
pub(super) struct Job {
    /// Whose.
    pub(super) key: Key,
    /// Which text.
    pub(super) content: Content,
    /// The text, where it is at hand; otherwise it has to be asked for.
    pub(super) text: Option<Arc<Data>>,
    /// The operator's own namespace.
    pub(super) own: Arc<str>,
}

/// What a change, or what was read, concerns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Concerns {
    /// The configuration of its namespace.
    pub(super) config: bool,
    /// Templates and steps of its namespace.
    pub(super) builds: bool,
    /// There is something to be read.
    pub(super) reading: bool,
}

/// Whether a ConfigMap of that name holds a template.
pub(super) fn is_template(name: &str) -> bool {
    name.starts_with(keys::PREFIX_TEMPLATE)
}

impl Texts {
    /// Nothing is known; `own` is the operator's namespace.
    pub(super) fn new(own: Arc<str>) -> Self {
        Self {
            own,
            spaces: HashMap::new(),
            turns: Turns::default(),
            kept: 0,
            waiting: 0,
            over: BTreeMap::new(),
            crowd: Crowd::default(),
            unread_builds: BTreeSet::new(),
        }
    }

    /// Takes note of a change of a ConfigMap.
    pub(super) fn apply(&mut self, change: &Change) -> Concerns {
        let concerns = self.changed(change);
        self.with_room(concerns)
    }

    fn changed(&mut self, change: &Change) -> Concerns {
        let Key { namespace, name } = &change.key;
        let seen = match change.now.as_deref().map(|observed| &observed.what) {
            Some(What::ConfigMap(seen)) if self.is_read(namespace, name, seen) => Some(seen),
            _ => None,
        };
        let own = *namespace == self.own;
        if seen.is_none() && !self.spaces.contains_key(namespace) {
            return Concerns::default();
        }
        let space = self.spaces.entry(namespace.clone()).or_default();
        let before = space.slots.get(name).map(|slot| (slot.concerns(name), slot.seen.clone()));
        let Some(seen) = seen else {
            let Some((concerns, _)) = before else { return Concerns::default() };
            self.remove(namespace, name);
            return self.settled(namespace, concerns, &BTreeSet::from([name.clone()]));
        };
        let slim = seen.without_text();
        if before.as_ref().is_some_and(|(_, known)| *known == slim) {
            return Concerns::default();
        }
        space.unfile(name);
        let slot = space.slots.entry(name.clone()).or_default();
        self.waiting -= slot.drop_text();
        (slot.seen, slot.own) = (slim, own);
        slot.take_template(name, seen);
        slot.refresh(name);
        if slot.wants && seen.size <= TEXT && self.waiting + seen.size <= WAITING {
            slot.text = Some(Arc::clone(&seen.data));
            self.waiting += seen.size;
        }
        let after = slot.concerns(name);
        space.file(name);
        let old = before.map(|(concerns, _)| concerns).unwrap_or_default();
        let concerns =
            Concerns { config: old.config || after.config, builds: old.builds || after.builds, reading: false };
        self.settled(namespace, concerns, &BTreeSet::from([name.clone()]))
    }

    fn limits(&self, namespace: &str) -> Limits {
        if *namespace == *self.own { Limits::OWN } else { Limits::AGENT }
    }

    fn is_read(&self, namespace: &Arc<str>, name: &str, seen: &ConfigMapSeen) -> bool {
        slot::configures(name, seen) || is_template(name) || seen.is_step || (*namespace == self.own && seen.holds_step)
    }

    fn remove(&mut self, namespace: &Arc<str>, name: &Arc<str>) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        let Some(mut slot) = space.remove(name) else { return };
        self.waiting -= slot.drop_text();
        self.crowd.leave(&mut slot);
        let weight = slot.weight();
        space.kept -= weight;
        self.kept -= weight;
        if let Some(bound) = slot.over {
            count(&mut self.over, bound, false);
        }
        space.freed(weight, name);
    }

    /// Judges the bounds of a namespace anew, after `concerns` was found out about its ConfigMaps `changed`.
    fn settled(&mut self, namespace: &Arc<str>, mut concerns: Concerns, changed: &BTreeSet<Arc<str>>) -> Concerns {
        let limits = self.limits(namespace);
        let Some(space) = self.spaces.get_mut(namespace) else {
            self.turns.rests(namespace);
            self.turns.forget(namespace);
            return concerns;
        };
        for (name, bound) in space.over(limits, changed) {
            let Some(slot) = space.slots.get_mut(&name) else { continue };
            if slot.over == bound {
                self.crowd.judge(slot, (namespace, &name));
                continue;
            }
            for (one, more) in [(slot.over, false), (bound, true)] {
                if let Some(bound) = one {
                    count(&mut self.over, bound, more);
                }
            }
            slot.over = bound;
            let of = slot.concerns(&name);
            (concerns.config, concerns.builds) = (concerns.config || of.config, concerns.builds || of.builds);
            if of.builds {
                space.changed.insert(name.clone());
            }
            slot.refresh(&name);
            if !slot.wants {
                self.waiting -= slot.drop_text();
            }
            self.crowd.judge(slot, (namespace, &name));
        }
        if concerns.builds {
            space.changed.extend(changed.iter().cloned());
        }
        // Whoever is not looked at is over a bound, and not read.
        let wants = space.looked(limits).filter(|(_, slot)| slot.wants);
        let (waits, unread) = wants.fold((None, false), |(bytes, unread): (Option<usize>, bool), (name, slot)| {
            let is_build = slot.concerns(name).builds && slot.is_waited_for();
            (Some(bytes.unwrap_or_default() + slot.seen.size), unread || is_build)
        });
        match waits {
            Some(bytes) => self.turns.waits(namespace, bytes),
            None => self.turns.rests(namespace),
        }
        let was = self.unread_builds.contains(namespace);
        if unread {
            self.unread_builds.insert(namespace.clone());
        } else {
            self.unread_builds.remove(namespace);
        }
        concerns.builds |= was != unread;
        concerns.reading = waits.is_some();
        if space.slots.is_empty() && space.changed.is_empty() {
            self.spaces.remove(namespace);
        }
        if waits.is_none() && !self.spaces.contains_key(namespace) {
            self.turns.forget(namespace);
        }
        concerns
    }

    /// The same, after those have their turn for which there is room by now beside all other namespaces. Until they are read they stay over
    /// the bound, so nothing of their namespaces is other than before.
    fn with_room(&mut self, mut concerns: Concerns) -> Concerns {
        for _ in 0..AGAIN {
            let Some(key) = self.crowd.first().cloned() else { break };
            let space = self.spaces.get_mut(&key.namespace);
            let Some(slot) = space.and_then(|space| space.slots.get_mut(&key.name)) else { break };
            if self.kept + self.crowd.promised() + slot.needs() > KEPT_IN_ALL {
                break;
            }
            self.crowd.promise(slot);
            slot.refresh(&key.name);
            concerns.reading |= self.settled(&key.namespace, Concerns::default(), &BTreeSet::new()).reading;
        }
        concerns
    }

    /// The next text to be read; [`Texts::done`] has to follow.
    pub(super) fn next(&mut self, now: Duration) -> Option<Job> {
        loop {
            let namespace = self.turns.next(now)?;
            match self.job(&namespace) {
                Some(job) => return Some(job),
                None => self.turns.cancelled(&namespace),
            }
        }
    }

    fn job(&mut self, namespace: &Arc<str>) -> Option<Job> {
        let limits = self.limits(namespace);
        let space = self.spaces.get_mut(namespace)?;
        let name = space.next(limits)?;
        let slot = space.slots.get_mut(&name)?;
        let (text, content) = (slot.text.clone(), slot.content(&name));
        self.waiting -= slot.drop_text();
        Some(Job { key: Key { namespace: namespace.clone(), name }, content, text, own: self.own.clone() })
    }

    /// When the next turn comes, where that is a matter of time alone.
    pub(super) fn due(&self) -> Option<Duration> {
        self.turns.due()
    }

    /// A reading has ended. What was read counts only while its text is still the present one.
    pub(super) fn done(
        &mut self,
        of: (&Key, &Content),
        outcome: Option<Outcome>,
        (spent, now): (Duration, Duration),
    ) -> Concerns {
        self.turns.ended(&of.0.namespace, spent, outcome.is_some(), now);
        let concerns = self.weighed(of, outcome);
        self.with_room(concerns)
    }

    fn weighed(&mut self, (key, content): (&Key, &Content), outcome: Option<Outcome>) -> Concerns {
        let Key { namespace, name } = key;
        let limits = self.limits(namespace);
        let space = self.spaces.get_mut(namespace);
        let found = space.and_then(|space| {
            let slot = space.slots.get(name).filter(|slot| slot.content(name) == *content && slot.wants)?;
            Some((space.kept - slot.weight(), slot.weight()))
        });
        let (Some(outcome), Some((others, before))) = (outcome, found) else {
            return self.settled(namespace, Concerns::default(), &BTreeSet::new());
        };
        let weight = outcome.weight();
        let bound = match () {
            () if others + weight > limits.kept => Some(Bound::Kept),
            () if self.kept - before + weight > KEPT_IN_ALL => Some(Bound::Total),
            () => None,
        };
        let Some(space) = self.spaces.get_mut(namespace) else { return Concerns::default() };
        let Some(slot) = space.slots.get_mut(name) else { return Concerns::default() };
        match bound {
            Some(bound) => {
                slot.too_heavy(content.clone(), bound, weight.saturating_sub(before));
                space.heavy.insert(name.clone());
            }
            None => {
                slot.take(content.clone(), outcome);
                space.read.insert(name.clone());
                space.kept = others + weight;
                self.kept = self.kept - before + weight;
                if weight < before {
                    space.freed(before - weight, name);
                }
            }
        }
        let concerns = space.slots.get(name).map(|slot| slot.concerns(name)).unwrap_or_default();
        self.settled(namespace, concerns, &BTreeSet::from([name.clone()]))
    }

    /// What is known of the configuration of a namespace. Of those that are too many, the oldest: enough to say so.
    pub(super) fn known(&self, namespace: &str) -> BTreeMap<Arc<str>, Known> {
        let limits = self.limits(namespace);
        let slots = self.spaces.get(namespace).into_iter().flat_map(|space| space.told(limits));
        slots
            .filter(|(name, slot)| slot.concerns(name).config)
            .map(|(name, slot)| (name.clone(), slot.known()))
            .collect()
    }

    /// The ConfigMaps of our own namespace that serve as templates of others.
    pub(super) fn templates(&self) -> BTreeMap<String, ConfigMapInput> {
        let slots = self.spaces.get(&self.own).into_iter().flat_map(|space| &space.slots);
        let input = |(name, slot): (&Arc<str>, &Slot)| Some((name.to_string(), slot.as_template(name)?));
        slots.filter_map(input).collect()
    }

    /// Templates and steps that changed since the last time; with `all`, every one.
    pub(super) fn entries(&mut self, all: bool) -> Vec<(Key, Option<Entry>)> {
        let mut found = Vec::new();
        for (namespace, space) in &mut self.spaces {
            let changed = std::mem::take(&mut space.changed);
            let names: Vec<Arc<str>> =
                if all { space.slots.keys().cloned().chain(changed).collect() } else { changed.into_iter().collect() };
            for name in names {
                let entry = space.slots.get(&name).and_then(|slot| slot.entry(namespace, &name));
                found.push((Key { namespace: namespace.clone(), name }, entry));
            }
        }
        let turns = &mut self.turns;
        self.spaces.retain(|namespace, space| {
            let stays = !space.slots.is_empty();
            if !stays {
                turns.rests(namespace);
                turns.forget(namespace);
            }
            stays
        });
        found
    }

    /// Namespaces of which a template or step has not been read yet.
    pub(super) fn unread_builds(&self) -> &BTreeSet<Arc<str>> {
        &self.unread_builds
    }

    /// How many namespaces have something to be read.
    pub(super) fn waiting(&self) -> usize {
        self.turns.waiting()
    }

    /// Bytes that are kept, and how many ConfigMaps are over which bound.
    pub(super) fn totals(&self) -> (usize, BTreeMap<Bound, usize>) {
        (self.kept, self.over.clone())
    }
}

fn count(over: &mut BTreeMap<Bound, usize>, bound: Bound, more: bool) {
    let number = over.entry(bound).or_default();
    *number = if more { *number + 1 } else { number.saturating_sub(1) };
}

/// Reads one text: all that takes time.
pub(super) fn read(key: &Key, content: &Content, own: &str, data: &Data) -> Outcome {
    let config = content.configures.then(|| {
        let how = (content.is_defaults, content.kept);
        Arc::new(reading::read(&key.name, how, &content.joined(data)))
    });
    let entry = content.builds.then(|| slot::entry(key, content, own, data)).flatten();
    Outcome { config, entry }
}

#[cfg(test)]
mod tests;
