//! Whether one party reaches another: both sides, for each family of addresses that they share.
//!
//! Promise: a port is reached when the Pod that sends lets it out and the Pod that is sent to lets it in, over the same family. A Pod reaches
//! itself, whatever policies say, as the documentation of Kubernetes has it.

use crate::policy::address::Family;
use crate::policy::network_policy::Direction;
use crate::policy::pod::{Judged, Pod};
use crate::policy::ports::PortSet;
use crate::policy::side::{Party, Side, judge};
use crate::policy::world::World;

/// Why nothing is said about a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotJudged {
    /// The Pod that sends has the node's network.
    SourceHostNetwork,
    /// The Pod that is sent to has the node's network.
    TargetHostNetwork,
    /// The Pod that sends has ended.
    SourceFinished,
    /// The Pod that is sent to has ended.
    TargetFinished,
    /// They have addresses, but none of one family.
    NoCommonFamily,
}

impl NotJudged {
    /// One sentence for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            NotJudged::SourceHostNetwork => {
                "the Pod that sends has the node's network (hostNetwork), and what policies mean there depends on the network plugin"
            }
            NotJudged::TargetHostNetwork => {
                "the Pod that is sent to has the node's network (hostNetwork), and what policies mean there depends on the network plugin"
            }
            NotJudged::SourceFinished => "the Pod that sends has ended",
            NotJudged::TargetFinished => "the Pod that is sent to has ended",
            NotJudged::NoCommonFamily => "one has IPv4 addresses only and the other one IPv6 addresses only",
        }
    }
}

/// Both sides over one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The family; `None` where one of them has no address yet.
    pub family: Option<Family>,
    /// What the Pod that sends lets out; `None` when it is no Pod, and everything comes.
    pub egress: Option<Side>,
    /// What the Pod that is sent to lets in; `None` when it is no Pod, and everything is taken.
    pub ingress: Option<Side>,
    /// The ports that are reached.
    pub ports: PortSet,
}

/// What is said about a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is one and the same Pod.
    Itself,
    /// Nothing, and why.
    NotJudged(NotJudged),
    /// One path for each family they share, at least one.
    Paths(Vec<Path>),
}

impl Reach {
    /// The ports that are reached over any family; `None` when nothing is said.
    #[must_use]
    pub fn ports(&self) -> Option<PortSet> {
        match self {
            Reach::Itself => Some(PortSet::all()),
            Reach::NotJudged(_) => None,
            Reach::Paths(paths) => {
                let mut set = PortSet::NONE;
                paths.iter().for_each(|path| set.add(&path.ports));
                Some(set)
            }
        }
    }
}

/// The families over which two speak: `Ok` is never empty, and holds one `None` while one of them has no address.
pub(crate) fn families(from: Party<'_>, to: Party<'_>) -> Result<Vec<Option<Family>>, NotJudged> {
    let unknown = |party: Party<'_>| Family::ALL.iter().all(|&family| !party.has(family));
    if unknown(from) || unknown(to) {
        // What is not a Pod has an address; then the family is that one.
        let known = Family::ALL.into_iter().find(|&family| match (from.pod(), to.pod()) {
            (None, _) => from.has(family),
            (_, None) => to.has(family),
            _ => false,
        });
        return Ok(vec![known]);
    }
    let common: Vec<_> =
        Family::ALL.into_iter().filter(|&family| from.has(family) && to.has(family)).map(Some).collect();
    if common.is_empty() { Err(NotJudged::NoCommonFamily) } else { Ok(common) }
}

/// Why a pair is not judged, as far as each Pod says by itself.
pub(crate) fn unjudged(from: Party<'_>, to: Party<'_>) -> Option<NotJudged> {
    match (from.pod().map(|pod| pod.judged), to.pod().map(|pod| pod.judged)) {
        (Some(Judged::Finished), _) => Some(NotJudged::SourceFinished),
        (_, Some(Judged::Finished)) => Some(NotJudged::TargetFinished),
        (Some(Judged::HostNetwork), _) => Some(NotJudged::SourceHostNetwork),
        (_, Some(Judged::HostNetwork)) => Some(NotJudged::TargetHostNetwork),
        _ => None,
    }
}

/// Whether both are the same Pod.
fn same(from: &Pod, to: &Pod) -> bool {
    std::ptr::eq(from, to)
}

/// Judges a pair. Two Pods are the same when they are one entry of the world.
#[must_use]
pub fn reach(world: &World, from: Party<'_>, to: Party<'_>) -> Reach {
    if let Some(why) = unjudged(from, to) {
        return Reach::NotJudged(why);
    }
    if let (Some(one), Some(other)) = (from.pod(), to.pod())
        && same(one, other)
    {
        return Reach::Itself;
    }
    let families = match families(from, to) {
        Ok(families) => families,
        Err(why) => return Reach::NotJudged(why),
    };
    let path = |family: Option<Family>| {
        let egress = from.pod().map(|pod| judge(world, Direction::Egress, pod, to, family));
        let ingress = to.pod().map(|pod| judge(world, Direction::Ingress, pod, from, family));
        let ports = |side: &Option<Side>| side.as_ref().map_or_else(PortSet::all, |side| side.ports.clone());
        let ports = ports(&egress).and(&ports(&ingress));
        Path { family, egress, ingress, ports }
    };
    Reach::Paths(families.into_iter().map(path).collect())
}
