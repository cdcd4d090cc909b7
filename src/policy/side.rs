//! One side of a connection: what the policies of the Pod that sends let out, or those of the Pod that is sent to let in.
//!
//! In: a world, the Pod on this side, who is on the other one, and the family of addresses they speak over. Out: the ports that are let through,
//! every rule that lets some through, and why the other rules do not.

use std::net::IpAddr;

use crate::policy::address::Family;
use crate::policy::network_policy::{Action, Direction, Peer, Port, Rule, Tier, Which};
use crate::policy::pod::Pod;
use crate::policy::ports::PortSet;
use crate::policy::selector::Labels;
use crate::policy::world::World;

/// Who is on the other side.
#[derive(Debug, Clone, Copy)]
pub enum Party<'w> {
    /// A Pod.
    Pod(&'w Pod),
    /// An address that is no Pod's.
    Address(IpAddr),
    /// Every address of a family that is outside of the cluster and that no block but that of all addresses names.
    Outside(Family),
}

impl<'w> Party<'w> {
    /// The Pod, when it is one.
    #[must_use]
    pub fn pod(self) -> Option<&'w Pod> {
        match self {
            Party::Pod(pod) => Some(pod),
            Party::Address(_) | Party::Outside(_) => None,
        }
    }

    /// Whether it has an address of that family.
    #[must_use]
    pub fn has(self, family: Family) -> bool {
        match self {
            Party::Pod(pod) => pod.has(family),
            Party::Address(address) => Family::of(address) == family,
            Party::Outside(own) => own == family,
        }
    }
}

/// A rule that lets ports through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowing {
    /// The policy, by its place in [`World::policies`].
    pub policy: usize,
    /// The rule, by its place in the policy's list for the direction.
    pub rule: usize,
    /// The peer of the rule that is met; `None` when the rule is for everybody.
    pub peer: Option<usize>,
    /// The ports.
    pub ports: PortSet,
}

/// Why a rule lets nothing through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// It is for others.
    Peer,
    /// It is for this peer, on ports that it names, which no container of the Pod that is sent to calls so.
    Names,
}

/// A rule of a ClusterNetworkPolicy that decides about ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deciding {
    /// The policy, by its place in [`World::cluster`].
    pub policy: usize,
    /// The rule, by its place in the policy's list for the direction.
    pub rule: usize,
    /// What it decides.
    pub action: Action,
    /// About which ports, of those about which none before it has decided.
    pub ports: PortSet,
}

/// What one side says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The direction.
    pub direction: Direction,
    /// The policies that isolate the Pod in this direction, by their places in [`World::policies`]; where there is none, everything is let
    /// through.
    pub isolating: Vec<usize>,
    /// The rules that let something through.
    pub allowing: Vec<Allowing>,
    /// The rules that do not: policy, rule, why.
    pub missing: Vec<(usize, usize, Miss)>,
    /// What ClusterNetworkPolicies decide before these, and where none of these isolates the Pod after them.
    pub deciding: Vec<Deciding>,
    /// The ports that are let through.
    pub ports: PortSet,
}

/// Judges one side. `family` is `None` where a Pod has no address yet: then no block of addresses is met.
#[must_use]
pub fn judge(world: &World, direction: Direction, own: &Pod, other: Party<'_>, family: Option<Family>) -> Side {
    let isolating: Vec<usize> = world.selecting(own, direction).collect();
    let (allowing, missing, deciding) = (Vec::new(), Vec::new(), Vec::new());
    let mut side = Side { direction, isolating, allowing, missing, deciding, ports: PortSet::NONE };
    let before = decided(world, (Tier::Admin, direction), own, (other, family), &mut side.deciding);
    if side.isolating.is_empty() {
        let after = decided(world, (Tier::Baseline, direction), own, (other, family), &mut side.deciding);
        side.ports = before.over(&after.over(&PortSet::all()));
        return side;
    }
    // A port is called by its name by the Pod that is sent to.
    let target = match direction {
        Direction::Egress => other.pod(),
        Direction::Ingress => Some(own),
    };
    for &at in &side.isolating {
        let policy = &world.policies()[at];
        for (place, rule) in policy.rules(direction).unwrap_or_default().iter().enumerate() {
            let Some(peer) = met(world, rule, &policy.namespace, other, family) else {
                side.missing.push((at, place, Miss::Peer));
                continue;
            };
            let ports = resolved(rule.ports.as_deref(), target);
            if ports.is_empty() {
                side.missing.push((at, place, Miss::Names));
            } else {
                side.ports.add(&ports);
                side.allowing.push(Allowing { policy: at, rule: place, peer, ports });
            }
        }
    }
    side.ports = before.over(&side.ports);
    side
}

/// What a tier has decided.
struct Decided {
    accepted: PortSet,
    denied: PortSet,
}

impl Decided {
    /// The ports that are let through where those after it let `others` through.
    fn over(&self, others: &PortSet) -> PortSet {
        let mut set = others.without(&self.denied);
        set.add(&self.accepted);
        set
    }
}

/// What the ClusterNetworkPolicies of a tier decide, each rule about what none before it has.
fn decided(
    world: &World,
    (tier, direction): (Tier, Direction),
    own: &Pod,
    (other, family): (Party<'_>, Option<Family>),
    by: &mut Vec<Deciding>,
) -> Decided {
    let mut decided = Decided { accepted: PortSet::NONE, denied: PortSet::NONE };
    if world.cluster().is_empty() {
        return decided;
    }
    let mut open = PortSet::all();
    for (at, policy) in world.about(tier, own) {
        for (place, rule) in policy.rules(direction).iter().enumerate() {
            let is_for = |peers: &Vec<Peer>| peers.iter().any(|peer| is_met(world, peer, "", other, family));
            if !rule.peers.as_ref().is_none_or(is_for) {
                continue;
            }
            let ports = rule.ports.and(&open);
            if ports.is_empty() {
                continue;
            }
            open = open.without(&ports);
            match rule.action {
                Action::Accept => decided.accepted.add(&ports),
                Action::Deny => decided.denied.add(&ports),
                Action::Pass => {}
            }
            by.push(Deciding { policy: at, rule: place, action: rule.action, ports });
        }
    }
    decided
}

/// The ports that one side lets through, without the rules.
#[must_use]
pub fn ports(
    world: &World,
    direction: Direction,
    own: &Pod,
    selecting: &[usize],
    other: (Party<'_>, Option<Family>),
) -> PortSet {
    let mut by = Vec::new();
    let before = decided(world, (Tier::Admin, direction), own, other, &mut by);
    if selecting.is_empty() {
        let after = decided(world, (Tier::Baseline, direction), own, other, &mut by);
        return before.over(&after.over(&PortSet::all()));
    }
    before.over(&by_rules(world, direction, own, selecting, other))
}

/// The ports that the rules of these policies let through.
fn by_rules(
    world: &World,
    direction: Direction,
    own: &Pod,
    selecting: &[usize],
    other: (Party<'_>, Option<Family>),
) -> PortSet {
    let target = match direction {
        Direction::Egress => other.0.pod(),
        Direction::Ingress => Some(own),
    };
    let mut set = PortSet::NONE;
    for policy in selecting.iter().map(|&at| &world.policies()[at]) {
        for rule in policy.rules(direction).unwrap_or_default() {
            if set.is_all() {
                return set;
            }
            if met(world, rule, &policy.namespace, other.0, other.1).is_some() {
                set.add(&resolved(rule.ports.as_deref(), target));
            }
        }
    }
    set
}

/// Whether a rule of a policy of that namespace is for that party: `None` when it is not, else the first peer that is met, or everybody.
fn met(world: &World, rule: &Rule, namespace: &str, other: Party<'_>, family: Option<Family>) -> Option<Option<usize>> {
    match &rule.peers {
        None => Some(None),
        Some(peers) => peers.iter().position(|peer| is_met(world, peer, namespace, other, family)).map(Some),
    }
}

fn is_met(world: &World, peer: &Peer, namespace: &str, other: Party<'_>, family: Option<Family>) -> bool {
    let empty = Labels::new();
    match (peer, other) {
        (Peer::Own(pods), Party::Pod(pod)) => pod.namespace == namespace && pods.matches(&pod.labels),
        (Peer::In { namespaces, pods }, Party::Pod(pod)) => {
            pods.matches(&pod.labels) && namespaces.matches(world.namespace(&pod.namespace).unwrap_or(&empty))
        }
        (Peer::Own(_) | Peer::In { .. }, Party::Address(_) | Party::Outside(_)) => false,
        (Peer::Addresses(addresses), Party::Pod(pod)) => family
            .is_some_and(|family| pod.addresses.iter().any(|&one| Family::of(one) == family && addresses.contain(one))),
        (Peer::Addresses(addresses), Party::Address(one)) => family == Some(Family::of(one)) && addresses.contain(one),
        (Peer::Addresses(addresses), Party::Outside(own)) => family == Some(own) && addresses.are_all_of(own),
    }
}

/// The ports of a rule, with names as the Pod that is sent to has them.
fn resolved(ports: Option<&[Port]>, target: Option<&Pod>) -> PortSet {
    let Some(ports) = ports else { return PortSet::all() };
    let mut set = PortSet::NONE;
    for port in ports {
        set.add(&match &port.which {
            Which::Every => PortSet::of_protocol(port.protocol),
            Which::Range(first, last) => PortSet::range(port.protocol, *first, *last),
            Which::Named(name) => target.map(|pod| pod.named(name, port.protocol)).unwrap_or_default(),
        });
    }
    set
}
