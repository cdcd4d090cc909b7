//! A NetworkPolicy as it is judged: whom it selects, and in either direction whom its rules let through.
//!
//! In: JSON ([`NetworkPolicy::read`]). Out: selectors, peers and ports in one form. Promise: what a policy says about a direction that is not
//! among its types is not there, as on a cluster.

mod cluster;
mod declared;
mod read;

use std::fmt;

use crate::policy::address::{Block, Family};
use crate::policy::ports::Protocol;
use crate::policy::selector::Selector;

pub use cluster::{Action, ClusterPolicy, ClusterRule, Tier};
pub use declared::Declarations;
pub use read::{Fault, MAX_PARTS, MAX_TEXT};

/// One of the two directions, seen from the Pods that a policy selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// What they send.
    Egress,
    /// What is sent to them.
    Ingress,
}

impl Direction {
    /// Both, in the order in which traffic meets them.
    pub const ALL: [Direction; 2] = [Direction::Egress, Direction::Ingress];

    /// Its name, as in `policyTypes`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Egress => "Egress",
            Direction::Ingress => "Ingress",
        }
    }
}

/// A NetworkPolicy of the group `networking.k8s.io`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which Pods of its namespace it selects.
    pub selects: Selector,
    /// What it lets through to them; `None` when it says nothing about this direction, and so isolates nothing.
    pub ingress: Option<Vec<Rule>>,
    /// What it lets them send; `None` likewise.
    pub egress: Option<Vec<Rule>>,
    /// Which declarations made its rules, of one of ours that opens only what is declared.
    pub declared: Option<Declarations>,
}

impl NetworkPolicy {
    /// Its rules for a direction; `None` when it isolates nothing there.
    #[must_use]
    pub fn rules(&self, direction: Direction) -> Option<&[Rule]> {
        match direction {
            Direction::Ingress => self.ingress.as_deref(),
            Direction::Egress => self.egress.as_deref(),
        }
    }

    /// Namespace and name, as people write them.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// One entry of `ingress` or `egress`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Who is let through; `None` is everybody, outside of the cluster included.
    pub peers: Option<Vec<Peer>>,
    /// On which ports; `None` is all of them.
    pub ports: Option<Vec<Port>>,
}

/// One entry of `from` or `to`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Pods of the policy's own namespace.
    Own(Selector),
    /// Pods of the namespaces with these labels.
    In {
        /// The labels of the namespaces.
        namespaces: Selector,
        /// The labels of the Pods.
        pods: Selector,
    },
    /// Addresses.
    Addresses(Addresses),
}

/// A block of addresses, less others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addresses {
    /// The block.
    pub block: Block,
    /// Blocks within it that do not belong: in their order, and none within another.
    pub except: Vec<Block>,
}

impl Addresses {
    /// Whether the address, as [`crate::policy::address::read`] makes it, is among them.
    #[must_use]
    pub fn contain(&self, address: std::net::IpAddr) -> bool {
        // The last of those that begin before the address decides: they are apart from each other.
        let begun = self.except.partition_point(|except| except.first() <= address);
        let is_excepted = begun.checked_sub(1).is_some_and(|last| self.except[last].contains(address));
        self.block.contains(address) && !is_excepted
    }

    /// Whether they are, but for exceptions, every address of a family.
    #[must_use]
    pub fn are_all_of(&self, family: Family) -> bool {
        self.block == Block::all_of(family)
    }

    /// Whether all of them are among `others`. Never yes when it is not so.
    #[must_use]
    pub fn are_within(&self, others: &Self) -> bool {
        self.block.is_within(others.block)
            && others.except.iter().all(|hole| {
                let apart = !hole.is_within(self.block) && !self.block.is_within(*hole);
                apart || self.except.iter().any(|own| hole.is_within(*own))
            })
    }
}

/// One entry of `ports`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Port {
    /// Its protocol; an absent one is TCP.
    pub protocol: Protocol,
    /// Which ports of the protocol.
    pub which: Which,
}

/// Which ports of a protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Which {
    /// All.
    Every,
    /// From the first to the last.
    Range(u16, u16),
    /// Those that containers of the Pod that is sent to call so.
    Named(String),
}

impl Peer {
    /// Words for it; `namespace` is that of the policy.
    #[must_use]
    pub fn words(&self, namespace: &str) -> String {
        let of = |pods: &Selector| match pods.is_empty() {
            true => "every Pod".to_owned(),
            false => format!("Pods {pods}"),
        };
        match self {
            Peer::Own(pods) => format!("{} of namespace {namespace}", of(pods)),
            Peer::In { namespaces, pods } if namespaces.is_empty() => format!("{} of every namespace", of(pods)),
            Peer::In { namespaces, pods } => format!("{} of namespaces {namespaces}", of(pods)),
            Peer::Addresses(addresses) => format!("addresses {addresses}"),
        }
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.block)?;
        for (at, except) in self.except.iter().enumerate() {
            write!(f, "{} {except}", if at == 0 { " except" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol.as_str();
        match &self.which {
            Which::Every => write!(f, "*/{protocol}"),
            Which::Range(first, last) if first == last => write!(f, "{first}/{protocol}"),
            Which::Range(first, last) => write!(f, "{first}-{last}/{protocol}"),
            Which::Named(name) => write!(f, "{name}/{protocol}"),
        }
    }
}
