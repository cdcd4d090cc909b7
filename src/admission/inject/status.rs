//! The status annotation `kagenti.io/authbridge-status`: what we added, part by part.
//!
//! JSON. Users can write it, too; so it is read as a hint about what may be taken out or repaired, never as a proof
//! that something is there: only names of ours count, and the plan is made all the same.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::edit::Edit;
use super::parts::{Parts, Rendered};
use super::plan::InjectionPlan;
use super::pod::{Earlier, PodView, items, text};
use crate::admission::patch::Part;
use crate::domain::keys;
use crate::domain::mode::Mode;

/// The format's version.
const VERSION: u8 = 1;
/// Annotations that a thread remembers: those of some workloads.
const REMEMBERED: usize = 32;
/// Longest annotation that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

/// Most edits of one container that count: more than one of ours ever gets, which has its handlers, our variables, a port and some mounts.
const EDITS_MOST: usize = 64;

/// One part as we rendered it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Its name.
    pub(super) name: String,
    /// Digest of the whole part.
    #[serde(default)]
    pub(super) digest: String,
    /// The image of a container: when it is still what we would render, another one in the Pod is somebody's wish.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) image: String,
    /// Digest of a container's resources, for the same reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) resources: String,
}

/// The ServiceAccount we set, and what was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    /// What we set.
    pub(super) now: String,
    /// What the Pod had; absent when it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<String>,
}

impl Account {
    /// One that we may have recorded.
    fn is_likely(&self) -> bool {
        matches!(self.was.as_deref(), None | Some("" | "default"))
    }
}

/// Everything we added to one Pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status<'p> {
    /// Format version.
    pub(super) version: u8,
    /// The mode that was built.
    pub(super) mode: String,
    /// Init containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) init: Vec<Cow<'p, Record>>,
    /// Regular containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) containers: Vec<Cow<'p, Record>>,
    /// Volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) volumes: Vec<Cow<'p, Record>>,
    /// Changes to the user's containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) edits: Vec<Edit>,
    /// Regular containers among which none declared a port to take over: who comes later brings ports of his own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) portless: Vec<String>,
    /// The ServiceAccount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_account: Option<Account>,
    /// The Pod's fsGroup is ours.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) fs_group: bool,
    /// The annotation came with the object instead of from an earlier call of ours: the requester owns the field.
    #[serde(skip)]
    pub(super) brought: bool,
    /// The configuration hash that the template carried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) template_hash: Option<String>,
}

/// The API server notes who set which field before it asks the webhooks, and not again between them: an annotation
/// that is noted was in the object that the requester sent.
fn brought(pod: PodView<'_>) -> bool {
    let field = format!("f:{}", keys::ANNOTATION_STATUS);
    pod.managed_fields().iter().any(|entry| {
        ["fieldsV1", "f:metadata", "f:annotations", &field]
            .into_iter()
            .try_fold(entry, |value, key| value.get(key))
            .is_some()
    })
}

/// The names of the regular containers, as they were at our first call.
fn names(pod: PodView<'_>) -> Vec<String> {
    match pod.earlier() {
        Earlier::Portless(names) => names.to_vec(),
        Earlier::Nothing | Earlier::Moved(_) => {
            pod.list("containers").iter().map(|container| text(container, "name").to_owned()).collect()
        }
    }
}

impl<'p> Status<'p> {
    /// What the Pod's annotation says, as far as it can be read and names parts of ours; of each part the first record, and of a container no more
    /// edits than one of ours may have: whatever somebody else writes there, it costs no more than its length.
    pub(super) fn read(pod: PodView<'_>) -> Option<Self> {
        let mut status: Self = serde_json::from_str(pod.annotation(keys::ANNOTATION_STATUS)?).ok()?;
        for list in [&mut status.init, &mut status.containers] {
            list.retain(|part| keys::may_be_ours(&part.name));
        }
        status.volumes.retain(|part| keys::OUR_VOLUMES.contains(&part.name.as_str()));
        status.edits.retain(|edit| !keys::may_be_ours(edit.container()));
        // What we write is short: nothing more is done about it.
        for list in [&mut status.init, &mut status.containers, &mut status.volumes] {
            if list.len() > keys::OUR_VOLUMES.len() {
                let mut names = BTreeSet::new();
                list.retain(|part| names.insert(part.name.clone()));
            }
        }
        if status.edits.len() > EDITS_MOST {
            let mut counts: HashMap<String, usize> = HashMap::new();
            status.edits.retain(|edit| {
                let count = counts.entry(edit.container().to_owned()).or_default();
                *count += 1;
                *count <= EDITS_MOST
            });
        }
        status.portless.truncate(keys::CONTAINERS_MOST);
        // Only a Pod that named none, or the default, was given another.
        status.service_account = status.service_account.take().filter(Account::is_likely);
        status.brought = brought(pod);
        Some(status)
    }

    /// Takes out what would give the Pod more than it was sent with, where the annotation came with the object: an operator may let its
    /// users write annotations of Pods and nothing else. `dedicated`: whether a ServiceAccount of that name is one that we give to Pods.
    pub(super) fn distrust(&mut self, pod: PodView<'_>, dedicated: impl Fn(&str) -> bool) {
        if !self.brought {
            return;
        }
        let is_ours = |container: &&Value| keys::OUR_CONTAINERS.contains(&text(container, "name"));
        let ours: Vec<&Value> = pod.all_containers().map(|(_, _, container)| container).filter(is_ours).collect();
        if ours.is_empty() {
            // A manifest that was injected beforehand has containers of ours. Without one nothing was added and nothing changed: to take
            // that back would make of the user's containers what whoever wrote the annotation wants.
            *self = Self { template_hash: self.template_hash.take(), brought: true, ..Self::default() };
            return;
        }
        self.service_account = self.service_account.take().filter(|account| dedicated(&account.now));
        let ports: Vec<&Value> = ours.into_iter().flat_map(|container| items(container, "ports")).collect();
        self.edits.iter_mut().for_each(|edit| edit.distrust(&ports));
    }

    /// The status of a plan for the Pod as it was before us.
    pub(super) fn of(plan: &InjectionPlan<'_>, parts: &'p Parts, mode: Mode, before: PodView<'_>) -> Self {
        let records = |parts: &'p [Arc<Rendered>]| parts.iter().map(|part| Cow::Borrowed(&part.record)).collect();
        let was = before.spec("serviceAccountName").and_then(Value::as_str).map(str::to_owned);
        Self {
            version: VERSION,
            mode: mode.as_str().to_owned(),
            init: records(&parts.init),
            containers: records(&parts.containers),
            volumes: records(&parts.volumes),
            edits: plan.edits.clone(),
            portless: if plan.portless { names(before) } else { Vec::new() },
            service_account: plan.service_account.clone().map(|now| Account { now, was }),
            fs_group: plan.fs_group,
            brought: false,
            template_hash: before.annotation(keys::ANNOTATION_CONFIG_HASH).map(str::to_owned),
        }
    }

    /// The annotation's value. The Pods of a workload get the same one, and writing it was a tenth of a review: the last
    /// few are remembered, per thread, and found by everything that they say.
    pub(super) fn part(&self) -> Arc<Part> {
        thread_local! {
            static LAST: RefCell<VecDeque<(Status<'static>, Arc<Part>)>> = const { RefCell::new(VecDeque::new()) };
        }
        LAST.with_borrow_mut(|last| {
            if let Some((_, part)) = last.iter().find(|(known, _)| known == self) {
                return Arc::clone(part);
            }
            let text = serde_json::to_string(self).expect("the status has text keys and no failing serialiser");
            let length = text.len();
            let part = Arc::new(Part::new(text.into()));
            if length <= REMEMBERED_BYTES {
                last.truncate(REMEMBERED - 1);
                last.push_front((self.to_static(), Arc::clone(&part)));
            }
            part
        })
    }

    fn to_static(&self) -> Status<'static> {
        let owned = |records: &[Cow<'_, Record>]| records.iter().map(|one| Cow::Owned(Record::clone(one))).collect();
        Status {
            version: self.version,
            mode: self.mode.clone(),
            init: owned(&self.init),
            containers: owned(&self.containers),
            volumes: owned(&self.volumes),
            edits: self.edits.clone(),
            portless: self.portless.clone(),
            service_account: self.service_account.clone(),
            fs_group: self.fs_group,
            brought: self.brought,
            template_hash: self.template_hash.clone(),
        }
    }

    /// Where an earlier call of ours found the agent. A list that came with the object hides no port from us.
    pub(super) fn earlier(&self) -> Earlier<'_> {
        match self.edits.iter().find(|edit| matches!(edit, Edit::Port { .. })) {
            Some(edit) => Earlier::Moved(edit.container()),
            None if self.brought || self.portless.is_empty() => Earlier::Nothing,
            None => Earlier::Portless(&self.portless),
        }
    }

    /// The recorded containers of a list.
    pub(super) fn records(&self, list: &str) -> &[Cow<'p, Record>] {
        match list {
            "initContainers" => &self.init,
            "containers" => &self.containers,
            _ => &self.volumes,
        }
    }

    /// The record of that name in a list.
    pub(super) fn record(&self, list: &str, name: &str) -> Option<&Record> {
        self.records(list).iter().map(AsRef::as_ref).find(|record| record.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_that_of_its_status_however_many_came_before() {
        for round in 0..3 {
            for number in 0..2 * REMEMBERED {
                let name = "n".repeat(if number == 5 { 9_000 } else { number / 4 });
                let record = Record { name, digest: "d".to_owned(), ..Record::default() };
                let status = Status {
                    init: vec![Cow::Borrowed(&record)],
                    fs_group: number % 2 == 1,
                    template_hash: (number % 4 > 1).then(|| "hash".to_owned()),
                    ..Status::default()
                };
                let text = serde_json::to_string(&status).unwrap();
                assert_eq!(*status.part(), Part::new(text.into()), "round {round}");
            }
        }
    }
}
