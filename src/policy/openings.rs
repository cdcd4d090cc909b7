//! What foreign policies open that ours would not: the facts behind `PolicyOverridden`.
//!
//! In: an agent, our policies that select it, and the other policies of its namespace. Out: each rule of another policy that lets through what
//! none of ours does. Judged by what rules say, not by the Pods that are there now: whoever may create Pods can create those that a rule waits for. Promise:
//! no opening is overlooked; a rule that is covered only by several peers of ours together is named though it opens nothing.

use std::collections::BTreeSet;
use std::fmt;

use crate::policy::address::{Block, Family};
use crate::policy::network_policy::{Addresses, Direction, NetworkPolicy, Peer, Port, Rule, Which};
use crate::policy::pod::Pod;
use crate::policy::ports::{PortSet, Protocol};
use crate::policy::selector::{Labels, Selector};
use crate::policy::world::LABEL_NAMESPACE_NAME;

/// A rule that opens something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opening {
    /// The name of the policy, in the agent's namespace.
    pub policy: String,
    /// The direction.
    pub direction: Direction,
    /// The rule, by its place in the policy's list for the direction.
    pub rule: usize,
    /// To whom, in words.
    pub peer: String,
    /// Which ports, in words.
    pub ports: String,
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, rule, peer, ports, .. } = self;
        match self.direction {
            Direction::Ingress => write!(f, "{policy} ingress[{rule}] lets {peer} in on {ports}"),
            Direction::Egress => write!(f, "{policy} egress[{rule}] lets it out to {peer} on {ports}"),
        }
    }
}

/// The openings of `others` for an agent that `ours` select. `namespace` are the labels of the agent's Namespace. A direction in which none of ours isolates
/// the agent is open anyway, and so nothing opens it.
#[must_use]
pub fn openings<'p>(
    agent: &Pod,
    namespace: &Labels,
    ours: impl IntoIterator<Item = &'p NetworkPolicy>,
    others: impl IntoIterator<Item = &'p NetworkPolicy>,
) -> Vec<Opening> {
    judged((agent, Some(agent)), namespace, ours, others)
}

/// The same for an agent of which nothing is known but its labels: which port its containers call by a name nobody can say, so a rule's name stays a name.
#[must_use]
pub fn openings_by_labels<'p>(
    agent: &Pod,
    namespace: &Labels,
    ours: impl IntoIterator<Item = &'p NetworkPolicy>,
    others: impl IntoIterator<Item = &'p NetworkPolicy>,
) -> Vec<Opening> {
    judged((agent, None), namespace, ours, others)
}

/// The openings for `agent`, whose ports are called as `named` says.
fn judged<'p>(
    (agent, named): (&Pod, Option<&Pod>),
    namespace: &Labels,
    ours: impl IntoIterator<Item = &'p NetworkPolicy>,
    others: impl IntoIterator<Item = &'p NetworkPolicy>,
) -> Vec<Opening> {
    let selects =
        |policy: &&NetworkPolicy| policy.namespace == agent.namespace && policy.selects.matches(&agent.labels);
    let ours: Vec<_> = ours.into_iter().filter(selects).collect();
    let mut found = BTreeSet::new();
    for policy in others.into_iter().filter(selects) {
        for direction in Direction::ALL {
            let isolating: Vec<_> = ours.iter().filter_map(|own| own.rules(direction)).collect();
            if isolating.is_empty() {
                continue;
            }
            let own: Vec<&Rule> = isolating.into_iter().flatten().collect();
            for (at, rule) in policy.rules(direction).unwrap_or_default().iter().enumerate() {
                let within = Within { agent, named, namespace, direction, own: &own };
                found.extend(within.opened(rule).map(|(peer, ports)| Opening {
                    policy: policy.name.clone(),
                    direction,
                    rule: at,
                    peer,
                    ports,
                }));
            }
        }
    }
    found.into_iter().collect()
}

/// What of a policy still lets anybody in where the tier of administrators denies: what comes from addresses, which that tier does not know on the way in.
#[must_use]
pub fn from_outside(policy: NetworkPolicy) -> NetworkPolicy {
    let all = |family| Peer::Addresses(Addresses { block: Block::all_of(family), except: Vec::new() });
    let one = |rule: Rule| {
        let mut peers = rule.peers.unwrap_or_else(|| Family::ALL.map(all).into());
        peers.retain(|peer| matches!(peer, Peer::Addresses(_)));
        (!peers.is_empty()).then_some(Rule { peers: Some(peers), ports: rule.ports })
    };
    let ingress = policy.ingress.map(|rules| rules.into_iter().filter_map(one).collect());
    NetworkPolicy { ingress, egress: None, ..policy }
}

/// Ports as a rule says them: numbers, and names that cannot be looked up because they are those of somebody whose containers are not known.
#[derive(Debug, Clone, Default)]
struct Said {
    numbers: PortSet,
    names: BTreeSet<(Protocol, String)>,
}

impl Said {
    fn of(ports: Option<&[Port]>, target: Option<&Pod>) -> Self {
        let Some(ports) = ports else { return Self { numbers: PortSet::all(), names: BTreeSet::new() } };
        let mut said = Self::default();
        for port in ports {
            match (&port.which, target) {
                (Which::Every, _) => said.numbers.add(&PortSet::of_protocol(port.protocol)),
                (Which::Range(first, last), _) => said.numbers.add(&PortSet::range(port.protocol, *first, *last)),
                (Which::Named(name), Some(pod)) => said.numbers.add(&pod.named(name, port.protocol)),
                (Which::Named(name), None) => {
                    said.names.insert((port.protocol, name.clone()));
                }
            }
        }
        said
    }

    fn add(&mut self, other: &Self) {
        self.numbers.add(&other.numbers);
        self.names.extend(other.names.iter().cloned());
    }

    /// What of it is not in `other`, in words.
    fn without(&self, other: &Self) -> Option<String> {
        let numbers = self.numbers.without(&other.numbers);
        let covered = |(protocol, _): &(Protocol, String)| PortSet::of_protocol(*protocol).is_within(&other.numbers);
        let names = self.names.iter().filter(|name| !other.names.contains(name) && !covered(name));
        let mut words: Vec<String> = names.map(|(protocol, name)| format!("{name}/{}", protocol.as_str())).collect();
        if !numbers.is_empty() {
            words.insert(0, numbers.to_string());
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// What a rule is held against.
struct Within<'a> {
    agent: &'a Pod,
    /// The agent once more, where its containers are known.
    named: Option<&'a Pod>,
    namespace: &'a Labels,
    direction: Direction,
    own: &'a [&'a Rule],
}

impl Within<'_> {
    /// Every peer of the rule that is let through on ports on which ours do not, and those ports.
    fn opened(&self, rule: &Rule) -> impl Iterator<Item = (String, String)> {
        // Names of ports are those of the Pod that is sent to: the agent, when it is Ingress.
        let target = self.named.filter(|_| self.direction == Direction::Ingress);
        let said = Said::of(rule.ports.as_deref(), target);
        let peers: Vec<Option<&Peer>> = match &rule.peers {
            None => vec![None],
            Some(peers) => peers.iter().map(Some).collect(),
        };
        peers.into_iter().filter_map(move |peer| {
            if peer.is_some_and(is_nobody) {
                return None;
            }
            let mut ours = Said::default();
            for own in self.own.iter().filter(|own| self.covers(own, peer)) {
                ours.add(&Said::of(own.ports.as_deref(), target));
            }
            let words = peer.map_or_else(|| "everybody".to_owned(), |peer| peer.words(&self.agent.namespace));
            Some((words, said.without(&ours)?))
        })
    }

    /// Whether one peer of our rule is met by all whom `peer` means.
    fn covers(&self, own: &Rule, peer: Option<&Peer>) -> bool {
        match (&own.peers, peer) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(peer)) => own.iter().any(|own| self.is_within(peer, own)),
        }
    }

    fn is_within(&self, peer: &Peer, own: &Peer) -> bool {
        let here = || Selector::of_labels([(LABEL_NAMESPACE_NAME, self.agent.namespace.as_str())]);
        match (peer, own) {
            (Peer::Own(pods), Peer::Own(ours)) => pods.is_within(ours),
            (Peer::Own(pods), Peer::In { namespaces, pods: ours }) => {
                namespaces.matches(self.namespace) && pods.is_within(ours)
            }
            (Peer::In { namespaces, pods }, Peer::Own(ours)) => namespaces.is_within(&here()) && pods.is_within(ours),
            (Peer::In { namespaces, pods }, Peer::In { namespaces: own, pods: ours }) => {
                namespaces.is_within(own) && pods.is_within(ours)
            }
            (Peer::Addresses(addresses), Peer::Addresses(ours)) => addresses.are_within(ours),
            (Peer::Addresses(_), _) | (_, Peer::Addresses(_)) => false,
        }
    }
}

/// Whether nobody can be that peer.
fn is_nobody(peer: &Peer) -> bool {
    match peer {
        Peer::Own(pods) => pods.matches_nothing(),
        Peer::In { namespaces, pods } => namespaces.matches_nothing() || pods.matches_nothing(),
        Peer::Addresses(addresses) => addresses.except.contains(&addresses.block),
    }
}
