//! One ConfigMap, and those of one namespace; pure.
//!
//! In: the projection of the present content. Out: whether it is to be read, and what it said last.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::crowd::Crowded;
use super::{Concerns, is_template};
use crate::config::bounds::{Bound, Limits, Sort, TEXT};
use crate::config::inputs::ConfigMapInput;
use crate::config::reading::{self, Known, Read};
use crate::domain::keys;
use crate::pipelines::templates::{self, ConfigMapText, Entry};
use crate::store::decode::wire::binary::Binary;
use crate::store::{ConfigMapSeen, Key};

/// `data` of a ConfigMap.
pub(in super::super) type Data = BTreeMap<String, String>;

/// Everything that what is read depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Content {
    pub(super) digest: Arc<str>,
    pub(super) binary: Option<Arc<Binary>>,
    pub(super) is_defaults: bool,
    pub(super) is_step: bool,
    pub(super) kept: bool,
    pub(super) configures: bool,
    pub(super) builds: bool,
}

impl Content {
    /// Whether that is the text in question.
    pub(in super::super) fn is(&self, seen: &ConfigMapSeen) -> bool {
        self.digest == seen.digest && seen.size <= TEXT
    }

    /// `data`, joined by what counts of `binaryData`.
    pub(super) fn joined<'d>(&self, data: &'d Data) -> Cow<'d, Data> {
        self.binary.as_deref().map_or(Cow::Borrowed(data), |binary| Cow::Owned(join(data, binary)))
    }
}

fn join(data: &Data, binary: &Binary) -> Data {
    let mut joined = data.clone();
    joined.extend(binary.entries());
    joined
}

/// What was read of one ConfigMap.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Outcome {
    /// As configuration.
    pub(super) config: Option<Arc<Read>>,
    /// As template or step.
    pub(super) entry: Option<Entry>,
}

impl Outcome {
    /// Of a text whose reading failed for a reason that does not lie in it.
    pub(in super::super) fn unreadable(content: &Content) -> Self {
        let read = || Read { config: Some(Err((1, "it could not be read".to_owned()))), ..Read::default() };
        Self { config: content.configures.then(|| Arc::new(read())), entry: None }
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        let config = self.config.as_ref().map_or(0, |read| read.weight());
        config + self.entry.as_ref().map_or(0, |entry| entry.weight(reading::weight, reading::block))
    }
}

/// One ConfigMap.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Its present projection, without text.
    pub(super) seen: ConfigMapSeen,
    /// It lies in our own namespace.
    pub(super) own: bool,
    /// It is to be read.
    pub(super) wants: bool,
    /// Its text, until it is read; where there is no room for it, it is asked for.
    pub(super) text: Option<Arc<Data>>,
    /// Why it is not read.
    pub(super) over: Option<Bound>,
    /// The content that turned out to be too much to keep.
    heavy: Option<Heavy>,
    /// Where it stands among those that are over the bound of all namespaces.
    pub(super) crowded: Crowded,
    /// The last content that was read, and what it said.
    read: Option<(Content, Outcome)>,
    /// Its last text within the bounds, where it serves as a template of others, joined by what counts of its `binaryData`.
    template: Option<Arc<Data>>,
}

/// A content that turned out to be too much to keep.
#[derive(Debug)]
struct Heavy {
    content: Content,
    /// Why.
    bound: Bound,
    /// Bytes that it takes beyond those that are kept of the ConfigMap.
    needs: usize,
}

/// Whether a namespace's configuration depends on a ConfigMap; others hold templates and steps of builds.
pub(super) fn configures(name: &str, seen: &ConfigMapSeen) -> bool {
    seen.is_defaults || keys::WATCHED_CONFIG_MAPS.contains(&name)
}

/// Reads a template or step.
pub(super) fn entry(key: &Key, content: &Content, own: &str, data: &Data) -> Option<Entry> {
    let label = content.is_step.then(|| (keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned()));
    let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
    let text = ConfigMapText { namespace, name, labels: label.into_iter().collect(), data: data.clone() };
    templates::read(&text, own)
}

impl Slot {
    /// What it concerns, by its name and labels.
    pub(super) fn concerns(&self, name: &str) -> Concerns {
        let builds = is_template(name) || self.seen.is_step || (self.own && self.seen.holds_step);
        Concerns { config: configures(name, &self.seen), builds, reading: false }
    }

    fn content_of(&self, name: &str) -> Content {
        let (concerns, kept) = (self.concerns(name), self.seen.is_as_written());
        Content {
            digest: self.seen.digest.clone(),
            binary: self.seen.binary.clone(),
            is_defaults: self.seen.is_defaults,
            is_step: self.seen.is_step,
            kept,
            configures: concerns.config && reading::is_read(name, self.seen.is_defaults, kept),
            builds: concerns.builds,
        }
    }

    /// Decides anew whether it is to be read.
    pub(super) fn refresh(&mut self, name: &str) {
        let content = self.content_of(name);
        self.heavy = self.heavy.take().filter(|heavy| heavy.content == content);
        let is_known = self.read.as_ref().is_some_and(|(read, _)| *read == content);
        let has_room = self.over.is_none() && self.heavy.is_none();
        self.wants = (has_room || self.is_tried_again()) && !is_known && (content.configures || content.builds);
    }

    /// There may be room for it by now beside all other namespaces; until it is read it stays over the bound.
    fn is_tried_again(&self) -> bool {
        let is_over = self.over == Some(Bound::Total) && self.heavy.is_some();
        is_over && matches!(self.crowded, Crowded::Again(_))
    }

    /// The present content.
    pub(super) fn content(&self, name: &str) -> Content {
        self.content_of(name)
    }

    /// Takes note of the present content, `seen`, of one that others may go by.
    pub(super) fn take_template(&mut self, name: &str, seen: &ConfigMapSeen) {
        if self.own && keys::WATCHED_CONFIG_MAPS.contains(&name) && seen.size <= TEXT {
            let joined = seen.binary.as_deref().map(|binary| Arc::new(join(&seen.data, binary)));
            self.template = Some(joined.unwrap_or_else(|| Arc::clone(&seen.data)));
        }
    }

    /// What others go by. Of one that is larger than is read, and was never anything else since this process sees it, nobody knows what it said before:
    /// that is another thing than one that is not there.
    pub(super) fn as_template(&self, name: &str) -> Option<ConfigMapInput> {
        let Some(data) = &self.template else {
            let is_large = self.own && keys::WATCHED_CONFIG_MAPS.contains(&name) && self.seen.size > TEXT;
            return is_large.then(ConfigMapInput::too_large);
        };
        let (is_defaults, kept) = (self.seen.is_defaults, self.seen.is_as_written());
        Some(ConfigMapInput { is_defaults, kept, data: BTreeMap::clone(data), ..ConfigMapInput::default() })
    }

    /// Lets go of the text; returns its size.
    pub(super) fn drop_text(&mut self) -> usize {
        self.text.take().map_or(0, |_| self.seen.size)
    }

    /// Bytes that are kept of it.
    pub(super) fn weight(&self) -> usize {
        self.read.as_ref().map_or(0, |(_, outcome)| outcome.weight())
    }

    /// Bytes that have to be free for what turned out to be too much.
    pub(super) fn needs(&self) -> usize {
        self.heavy.as_ref().map_or(0, |heavy| heavy.needs)
    }

    /// Nothing of it has been read yet, and it will be.
    pub(super) fn is_waited_for(&self) -> bool {
        self.wants && self.read.is_none() && self.over.is_none()
    }

    /// What was read of it counts from now on.
    pub(super) fn take(&mut self, content: Content, outcome: Outcome) {
        self.read = Some((content, outcome));
        self.heavy = None;
        self.wants = false;
    }

    /// What was read of it is too much to keep: so many bytes more than are kept of it.
    pub(super) fn too_heavy(&mut self, content: Content, bound: Bound, needs: usize) {
        self.heavy = Some(Heavy { content, bound, needs });
        self.wants = false;
    }

    /// What is known of it as configuration.
    pub(super) fn known(&self) -> Known {
        Known {
            is_defaults: self.seen.is_defaults,
            kept: self.seen.is_as_written(),
            digest: self.seen.digest.clone(),
            read: self.read.as_ref().and_then(|(_, outcome)| outcome.config.clone()),
            over: self.over,
        }
    }

    /// What is known of it as template or step. A build is what its ConfigMaps say: one that is over a bound serves nothing.
    pub(super) fn entry(&self, namespace: &str, name: &str) -> Option<Entry> {
        if !self.concerns(name).builds {
            return None;
        }
        match self.over {
            Some(bound) => Some(templates::over(namespace, name, &bound.to_string())),
            None => self.read.as_ref()?.1.entry.clone(),
        }
    }

    fn sort(&self, name: &str) -> Sort {
        match reading::sort(name, self.seen.is_defaults) {
            Sort::Defaults => Sort::Defaults,
            _ if self.concerns(name).builds => Sort::Builds,
            other => other,
        }
    }
}

/// A ConfigMap by its age: when it was made, and its name.
type Aged = (Option<Arc<str>>, Arc<str>);

/// The ConfigMaps of one namespace.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub(super) slots: BTreeMap<Arc<str>, Slot>,
    /// Bytes kept of what was read.
    pub(super) kept: usize,
    /// Templates and steps that changed since they were last taken.
    pub(super) changed: BTreeSet<Arc<str>>,
    /// Those of which something was read.
    pub(super) read: BTreeSet<Arc<str>>,
    /// Those that turned out to be too much, and maybe some that no longer are.
    pub(super) heavy: BTreeSet<Arc<str>>,
    /// Those with a fixed name, about a dozen at most.
    named: BTreeSet<Arc<str>>,
    /// Those with defaults, and those with templates and steps, oldest first.
    aged: [BTreeSet<Aged>; 2],
    /// ConfigMaps that were looked at so far: what changes cost.
    #[cfg(test)]
    pub(super) visits: std::cell::Cell<usize>,
}

impl Space {
    /// Those of which more decides than their size, and of each sort the next one behind them. However many a namespace has, no change
    /// goes through more of them: each moves one over that border at most.
    pub(super) fn looked(&self, limits: Limits) -> impl Iterator<Item = (&Arc<str>, &Slot)> {
        let oldest = self.aged.iter().zip(limits.looked());
        let oldest = oldest.flat_map(|(aged, most)| aged.iter().take(most + 1).map(|(_, name)| name));
        let all = self.named.iter().chain(oldest).filter_map(move |name| self.slots.get_key_value(name));
        #[cfg(test)]
        let all = all.inspect(move |_| self.visits.set(self.visits.get() + 1));
        all
    }

    /// Those that are told of: those that are looked at, and of which something was read.
    pub(super) fn told(&self, limits: Limits) -> impl Iterator<Item = (&Arc<str>, &Slot)> {
        self.looked(limits).chain(self.read.iter().filter_map(move |name| self.slots.get_key_value(name)))
    }

    /// Which bound each is over that is looked at, and each of those that `changed`.
    pub(super) fn over(&self, limits: Limits, changed: &BTreeSet<Arc<str>>) -> Vec<(Arc<str>, Option<Bound>)> {
        let looked: Vec<_> = self.looked(limits).collect();
        let counted = |(name, slot): &(&Arc<str>, &Slot)| {
            let content = slot.content(name);
            (content.configures || content.builds).then(|| (slot.sort(name), slot.seen.size))
        };
        let over = limits.over(looked.iter().map(counted));
        let over = looked
            .iter()
            .zip(over)
            .map(|((name, slot), over)| ((*name).clone(), over.or(slot.heavy.as_ref().map(|heavy| heavy.bound))));
        let mut over: Vec<_> = over.collect();
        let is_behind = |name: &&Arc<str>| looked.iter().all(|(other, _)| *other != *name);
        let behind = changed.iter().filter(is_behind).filter_map(|name| self.slots.get_key_value(name));
        over.extend(
            behind.map(|(name, slot)| {
                (name.clone(), Some(if slot.seen.size > TEXT { Bound::Size } else { Bound::Count }))
            }),
        );
        over
    }

    /// The one to be read next: the oldest.
    pub(super) fn next(&self, limits: Limits) -> Option<Arc<str>> {
        let waits = self.looked(limits).filter(|(_, slot)| slot.wants);
        let oldest = waits.min_by(|(a, one), (b, other)| (&one.seen.created, a).cmp(&(&other.seen.created, b)));
        oldest.map(|(name, _)| name.clone())
    }

    /// Takes one out of the order, before its projection becomes another one.
    pub(super) fn unfile(&mut self, name: &Arc<str>) {
        let Some(slot) = self.slots.get(name) else { return };
        match aged(slot.sort(name)) {
            None => self.named.remove(name),
            Some(at) => self.aged[at].remove(&(slot.seen.created.clone(), name.clone())),
        };
    }

    /// Puts it in again.
    pub(super) fn file(&mut self, name: &Arc<str>) {
        let Some(slot) = self.slots.get(name) else { return };
        match aged(slot.sort(name)) {
            None => self.named.insert(name.clone()),
            Some(at) => self.aged[at].insert((slot.seen.created.clone(), name.clone())),
        };
    }

    /// One is gone.
    pub(super) fn remove(&mut self, name: &Arc<str>) -> Option<Slot> {
        self.unfile(name);
        self.read.remove(name);
        self.heavy.remove(name);
        self.slots.remove(name)
    }

    /// That many bytes are free again, which were those of `name`: others that were too heavy are read once more.
    pub(super) fn freed(&mut self, bytes: usize, name: &str) {
        if bytes == 0 {
            return;
        }
        let (stays, again): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.heavy).into_iter().partition(|other| **other == *name);
        self.heavy = stays;
        for other in again {
            if let Some(slot) = self.slots.get_mut(&other) {
                slot.heavy = None;
            }
        }
    }
}

/// In which order of age a sort stands; what has a fixed name stands in none.
fn aged(sort: Sort) -> Option<usize> {
    match sort {
        Sort::Named => None,
        Sort::Defaults => Some(0),
        Sort::Builds => Some(1),
    }
}
