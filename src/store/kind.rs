//! What a kind is: its names, how its objects are decoded, which of them are watched and for whom, and what people call it.
//!
//! Promise: everything that is told of a kind alone stands in its [`Descriptor`], in the kind's own file in [`super::kinds`]:
//! watches, definitions, roles for people, words and the tables of commands follow from it. The identity of a kind is its group and its name
//! together: other operators have kinds of the same name.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::decode::{Bounded, Raw, TektonObject, Whole};
use super::kinds::What;
use super::{Key, Kind, Observed};
use crate::domain::workload::WorkloadKind;

/// Most objects per page of a list. Each list begins with pages of a few, which grow while their objects are small: whoever may write an object can
/// make it as large as the API server takes it, which is 1 MiB and more.
pub mod page {
    /// Of small objects.
    pub const SMALL: u32 = 500;
    /// Of objects that hold a Pod template or a status.
    pub const LARGE: u32 = 100;
    /// Of ConfigMaps, of which whoever may write one may write thousands: large ones come eight at a time, and small ones keep nobody waiting.
    pub const TEXTS: u32 = 64;
    /// Of metadata alone, whose annotations may be 256 KiB.
    pub const MARKS: u32 = 50;
    /// Tekton copies whole pipelines into its objects, and our own kinds hold whole Pod templates.
    pub const RUNS: u32 = 20;
}

/// Everything that is told of a kind.
#[derive(Debug)]
pub struct Descriptor {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version without the group.
    pub version: &'static str,
    /// The kind as manifests spell it.
    pub name: &'static str,
    /// Plural, as in paths and RBAC rules.
    pub plural: &'static str,
    /// What people call it on a command line.
    pub words: &'static [&'static str],
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Who defines it.
    pub origin: KindOrigin,
    /// How its objects are decoded, and what is kept of them.
    pub decode: Decode,
    /// Which of its objects are watched.
    pub selections: &'static [Selection],
    /// What admission reads of an object of that name, which is all that a process without controllers keeps of it. Of what is
    /// slim already nothing is taken out.
    pub slim: fn(&str, &Arc<Observed>) -> Arc<Observed>,
    /// People may make as many and as large of them as the API server takes: there is room for so many of a namespace.
    pub bounded: bool,
    /// Its definition, of a kind of ours.
    pub crd: Option<fn() -> CustomResourceDefinition>,
    /// Its name with its group, of a kind that has its name from another operator's kind.
    pub full: Option<&'static str>,
}

/// Admission reads no more of an object than that it is there.
pub(super) fn presence(_: &str, _: &Arc<Observed>) -> Arc<Observed> {
    Observed::known()
}

/// Admission reads everything that is kept of an object.
pub(super) fn whole(_: &str, now: &Arc<Observed>) -> Arc<Observed> {
    now.clone()
}

/// Who defines a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindOrigin {
    /// Kubernetes: it is always served.
    BuiltIn,
    /// We: the definition is part of the installation, and may come late.
    Ours,
    /// We, in a manifest beside the installation, with the rights and policies for it: whether the kind is served is whether that was
    /// applied.
    Compat,
    /// Others: the definition comes and goes.
    Optional,
}

/// How objects of a kind are decoded, and what is kept of them; `None`: the object does not concern us.
#[derive(Debug, Clone, Copy)]
pub enum Decode {
    /// Only the members that we read, whatever the kind: what Kubernetes itself defines.
    Common(fn(Kind, Raw) -> Option<What>),
    /// With `spec` and `status` as they are: what we act on.
    Whole(fn(Whole) -> Option<What>),
    /// With `spec` as it is where it is small: what Kubernetes itself defines, and people write.
    Bounded(fn(Bounded) -> Option<What>),
    /// As runs of Tekton, which are large and of which little is read.
    Tekton(fn(TektonObject) -> Option<What>),
    /// It is written, never read.
    Written,
}

/// Who reads what a selection delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedBy {
    /// Every process: admission needs it.
    Every,
    /// Role controllers.
    Controllers,
    /// Role controllers under failure mode gate.
    Gate,
}

/// Which objects of a kind one list-and-watch delivers.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    /// `metadata.name` it is limited to.
    pub name: Option<&'static str>,
    /// Label selector it is limited to.
    pub labels: Option<&'static str>,
    /// In the operator's own namespace only, otherwise in all.
    pub own: bool,
    /// Most objects per page of a list: few where they are large.
    pub page: u32,
    /// Objects that another selection delivers are left out here.
    pub keep: fn(&Key, &What) -> bool,
    /// Nothing but their metadata is sent.
    pub metadata: bool,
    /// A process that has no other use for them is to know their names: it follows their metadata.
    pub names: bool,
    /// Who needs it.
    pub used_by: UsedBy,
}

impl Selection {
    /// Every object of the kind.
    #[must_use]
    pub const fn all(page: u32, used_by: UsedBy) -> Self {
        Self { name: None, labels: None, own: false, page, keep: |_, _| true, metadata: false, names: false, used_by }
    }

    /// The objects of that name, one in each namespace.
    #[must_use]
    pub const fn named(name: &'static str, page: u32, used_by: UsedBy) -> Self {
        Self { name: Some(name), ..Self::all(page, used_by) }
    }

    /// Every object of the kind for role controllers, and its name for every process.
    #[must_use]
    pub const fn named_to_all(page: u32) -> Self {
        Self { names: true, ..Self::all(page, UsedBy::Controllers) }
    }

    /// The objects that the label selector selects.
    #[must_use]
    pub const fn labelled(labels: &'static str, page: u32, used_by: UsedBy) -> Self {
        Self { labels: Some(labels), ..Self::all(page, used_by) }
    }
}

impl Descriptor {
    /// A kind of Kubernetes itself, in namespaces, of which nothing is watched.
    #[must_use]
    pub const fn built_in(group: &'static str, plural: &'static str, name: &'static str, decode: Decode) -> Self {
        Self {
            group,
            version: "v1",
            name,
            plural,
            words: &[],
            namespaced: true,
            origin: KindOrigin::BuiltIn,
            decode,
            selections: &[],
            slim: presence,
            bounded: false,
            crd: None,
            full: None,
        }
    }

    /// A kind whose definition others bring along.
    #[must_use]
    pub const fn optional(
        (group, version): (&'static str, &'static str),
        plural: &'static str,
        name: &'static str,
        decode: Decode,
    ) -> Self {
        Self { version, origin: KindOrigin::Optional, ..Self::built_in(group, plural, name, decode) }
    }

    /// A kind of ours.
    #[must_use]
    pub const fn ours(
        (group, version): (&'static str, &'static str),
        plural: &'static str,
        name: &'static str,
        (decode, crd): (Decode, fn() -> CustomResourceDefinition),
    ) -> Self {
        let of_others = Self::optional((group, version), plural, name, decode);
        Self { origin: KindOrigin::Ours, bounded: true, crd: Some(crd), ..of_others }
    }

    /// A kind of ours that comes with a manifest of its own.
    #[must_use]
    pub const fn compat(
        (group, version): (&'static str, &'static str),
        plural: &'static str,
        name: &'static str,
        (decode, crd): (Decode, fn() -> CustomResourceDefinition),
    ) -> Self {
        Self { origin: KindOrigin::Compat, ..Self::ours((group, version), plural, name, (decode, crd)) }
    }
}

impl Kind {
    /// The kind of that group and name, where it is one of these.
    #[must_use]
    pub fn of(group: &str, name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.group() == group && kind.as_str() == name)
    }

    /// The definitions of the kinds of ours of that origin, in the order in which they are installed.
    pub fn definitions(origin: KindOrigin) -> impl Iterator<Item = CustomResourceDefinition> {
        let of_origin = Self::ALL.iter().map(|kind| kind.descriptor()).filter(move |kind| kind.origin == origin);
        of_origin.filter_map(|kind| kind.crd).map(|crd| crd())
    }

    /// The kind of ours that an object with that `apiVersion` and `kind` is of, and its definition.
    #[must_use]
    pub fn definition_of(api_version: &str, name: &str) -> Option<CustomResourceDefinition> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::of(group, name)?.descriptor().crd.map(|crd| crd())
    }

    /// API group, empty for core.
    #[must_use]
    pub const fn group(self) -> &'static str {
        self.descriptor().group
    }

    /// API version without the group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.descriptor().version
    }

    /// Plural, as in paths and RBAC rules.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        self.descriptor().plural
    }

    /// The kind as manifests spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.descriptor().name
    }

    /// What it is called where the name alone would be said of several kinds: in metrics, logs and names of roles.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self.descriptor().full {
            Some(full) => full,
            None => self.as_str(),
        }
    }

    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn api_version(self) -> String {
        if self.group().is_empty() { self.version().to_owned() } else { format!("{}/{}", self.group(), self.version()) }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        self.descriptor().namespaced
    }

    /// Path of the collection, in one namespace or (with an empty name) in all of them.
    #[must_use]
    pub fn path(self, namespace: &str) -> String {
        let Descriptor { group, version, plural, namespaced, .. } = *self.descriptor();
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        if namespaced && !namespace.is_empty() {
            format!("{root}/{version}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{version}/{plural}")
        }
    }

    /// The watched kind of a workload kind, where there is one.
    #[must_use]
    pub fn of_workload(kind: WorkloadKind) -> Option<Self> {
        Some(match kind {
            WorkloadKind::Deployment => Kind::Deployment,
            WorkloadKind::ReplicaSet => Kind::ReplicaSet,
            WorkloadKind::StatefulSet => Kind::StatefulSet,
            WorkloadKind::DaemonSet => Kind::DaemonSet,
            WorkloadKind::Job => Kind::Job,
            WorkloadKind::CronJob => Kind::CronJob,
            WorkloadKind::Sandbox => Kind::Sandbox,
            WorkloadKind::Pod | WorkloadKind::Unknown => return None,
        })
    }

    /// The workload kind of a watched kind, where it is one.
    #[must_use]
    pub fn workload(self) -> Option<WorkloadKind> {
        WorkloadKind::WITH_TEMPLATE.into_iter().find(|kind| Kind::of_workload(*kind) == Some(self))
    }
}
