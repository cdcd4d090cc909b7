//! What opens a verified agent where only what is declared is open, and how much of what an agent names itself one policy has room for.
//!
//! In: whom the agent's own declarations name, and who names it, each with the words of the declaration. Out: the `spec`, and for each of its rules which declarations
//! made it. Promises: what an agent reaches that is not verified, it reaches; nobody comes in but those whom every opening lets in and verified
//! Pods; the order of the declarations means nothing; what is declared takes at most [`LARGEST`] bytes, and what has no room is left closed and told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Facts, Peer, Port, Whom, both, needed, operators, trusted};
use crate::domain::printable::cut;

/// Bytes of JSON that the rules which are declared may take: with those that every opening has, a policy is still one that is kept.
pub const LARGEST: usize = 10 * 1024;
/// Bytes of the words of one declaration.
const WORDS: usize = 160;
/// Declarations of one rule that are told.
const TOLD: usize = 3;

/// Whom declarations open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Whom the agent names.
    pub egress: Vec<Declaration>,
    /// Who names the agent; each a [`Whom::Verified`].
    pub ingress: Vec<Declaration>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declaration {
    /// Whom it opens.
    pub peer: Peer,
    /// What declares it, in words.
    pub by: String,
}

/// What opens the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// The `spec`.
    pub spec: Value,
    /// Which declarations made which rule: by direction, then by the rule's place. A JSON object of objects of lists.
    pub says: Value,
    /// The declarations for which there was no room.
    pub left: Vec<String>,
}

/// What opens an agent to those whom it names and who name it; `selector` is its workload's.
#[must_use]
pub fn declared(selector: &Value, facts: &Facts, declared: &Declared) -> Opening {
    let besides: BTreeSet<_> = facts.ingress.iter().collect();
    let mut ingress = vec![operators(facts)];
    ingress.extend(besides.into_iter().map(|peer| peer.rule("from")));
    let mut egress = needed(facts);
    let mut room = Room { left: LARGEST, without: Vec::new() };
    let own = room.add(&declared.egress, "to", &mut egress);
    let others = room.add(&declared.ingress, "from", &mut ingress);
    let spec = both(trusted(selector), ingress, egress);
    Opening { spec, says: json!({"egress": own, "ingress": others}), left: room.without }
}

/// Those of the peers whom an agent reaches by what it names for which one policy has room, and how many have none. The order of the peers means nothing,
/// and they take at most [`LARGEST`] bytes.
#[must_use]
pub fn fitting(peers: impl IntoIterator<Item = Peer>) -> (Vec<Peer>, usize) {
    let all: BTreeSet<Peer> = peers.into_iter().collect();
    let (count, mut left) = (all.len(), LARGEST);
    let fits = |peer: &Peer| match left.checked_sub(peer.rule("to").to_string().len()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let fitting: Vec<Peer> = all.into_iter().filter(fits).collect();
    let without = count - fitting.len();
    (fitting, without)
}

/// What is left of the bytes that may be declared.
struct Room {
    left: usize,
    without: Vec<String>,
}

impl Room {
    /// Adds a rule for each peer, in their order, as long as there is room; what declares them, by their places.
    fn add(
        &mut self,
        declarations: &[Declaration],
        direction: &str,
        rules: &mut Vec<Value>,
    ) -> BTreeMap<String, Value> {
        let mut says = BTreeMap::new();
        for (peer, by) in merged(declarations) {
            let rule = peer.rule(direction);
            let words = told(&by);
            let size = rule.to_string().len() + words.to_string().len();
            match self.left.checked_sub(size) {
                Some(left) => {
                    self.left = left;
                    says.insert(rules.len().to_string(), words);
                    rules.push(rule);
                }
                None => self.without.extend(by.into_iter().map(|by| cut(by.to_owned(), WORDS))),
            }
        }
        says
    }
}

/// One peer for all declarations of the same Pods or addresses, with the ports of all of them; whoever is nearer comes first.
fn merged(declarations: &[Declaration]) -> Vec<(Peer, BTreeSet<&str>)> {
    let mut by_whom: BTreeMap<&Whom, (BTreeSet<&Port>, bool, BTreeSet<&str>)> = BTreeMap::new();
    for Declaration { peer, by } in declarations {
        let (ports, all, words) = by_whom.entry(&peer.whom).or_default();
        ports.extend(&peer.ports);
        *all |= peer.ports.is_empty();
        words.insert(by);
    }
    let mut all = Vec::with_capacity(by_whom.len());
    for (whom, (ports, every, words)) in by_whom {
        let ports = if every { Vec::new() } else { ports.into_iter().cloned().collect() };
        all.push((Peer { whom: whom.clone(), ports }, words));
    }
    all
}

fn told(by: &BTreeSet<&str>) -> Value {
    let mut words: Vec<String> = by.iter().take(TOLD).map(|&by| cut(by.to_owned(), WORDS)).collect();
    if let Some(more) = by.len().checked_sub(TOLD).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    words.into()
}
