//! Who reaches whom, for every pair of Pods at once, and what differs between two worlds.
//!
//! In: a world. Out: the ports of each pair. Pods that no policy can tell apart are judged once: those with the same namespace, the same labels as
//! far as any selector looks at them, the same names of ports, and addresses in the same blocks.

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::address::{Block, Family};
use crate::policy::network_policy::{Addresses, Direction, Peer};
use crate::policy::pod::{Judged, Pod};
use crate::policy::ports::{PortSet, Protocol};
use crate::policy::reach::{families, unjudged};
use crate::policy::selector::Selector;
use crate::policy::side::{self, Party};
use crate::policy::world::World;

/// What policies can tell of a Pod.
type Look<'w> = (
    &'w str,
    Judged,
    Vec<(&'w str, &'w str)>,
    &'w [(String, Protocol, u16)],
    // Per family: whether it has an address, and the blocks that hold one.
    [(bool, Vec<u32>); 2],
);

/// Pods that no policy of one world can tell apart, as numbers.
#[derive(Debug, Clone)]
pub struct Classes {
    /// The class of each Pod.
    of: Vec<u32>,
    /// One Pod of each class.
    sample: Vec<usize>,
}

impl Classes {
    /// The classes of a world.
    #[must_use]
    pub fn of(world: &World) -> Self {
        let (keys, blocks) = asked(world);
        let looks = world.pods().iter().map(|pod| look(pod, &keys, &blocks));
        let mut known: BTreeMap<Look<'_>, u32> = BTreeMap::new();
        let mut classes = Self { of: Vec::with_capacity(world.pods().len()), sample: Vec::new() };
        for (at, look) in looks.enumerate() {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let class = *known.entry(look).or_insert(next);
            if class == next {
                classes.sample.push(at);
            }
            classes.of.push(class);
        }
        classes
    }

    /// The classes that tell apart what either of two worlds of the same Pods does.
    fn of_both(one: &World, other: &World) -> Self {
        let (one, other) = (Self::of(one), Self::of(other));
        let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut classes = Self { of: Vec::with_capacity(one.of.len()), sample: Vec::new() };
        for (at, pair) in one.of.iter().copied().zip(other.of.iter().copied()).enumerate() {
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let class = *known.entry(pair).or_insert(next);
            if class == next {
                classes.sample.push(at);
            }
            classes.of.push(class);
        }
        classes
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sample.len()
    }

    /// Whether there is none, because there is no Pod.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sample.is_empty()
    }

    /// The class of the Pod at that place.
    #[must_use]
    pub fn class(&self, pod: usize) -> usize {
        self.of.get(pod).map_or(0, |&class| class as usize)
    }
}

/// The keys of labels, and the blocks, that any policy asks for.
fn asked(world: &World) -> (BTreeSet<&str>, BTreeSet<&Addresses>) {
    let (mut keys, mut blocks) = (BTreeSet::new(), BTreeSet::new());
    fn note<'p>(keys: &mut BTreeSet<&'p str>, selector: &'p Selector) {
        keys.extend(selector.requirements().map(super::selector::Requirement::key));
    }
    for policy in world.policies() {
        note(&mut keys, &policy.selects);
        let rules = Direction::ALL.into_iter().filter_map(|direction| policy.rules(direction)).flatten();
        for peer in rules.filter_map(|rule| rule.peers.as_ref()).flatten() {
            match peer {
                Peer::Own(pods) | Peer::In { pods, .. } => note(&mut keys, pods),
                Peer::Addresses(addresses) => {
                    blocks.insert(addresses);
                }
            }
        }
    }
    for policy in world.cluster() {
        note(&mut keys, &policy.pods);
        let rules = Direction::ALL.into_iter().flat_map(|direction| policy.rules(direction));
        for peer in rules.filter_map(|rule| rule.peers.as_ref()).flatten() {
            match peer {
                Peer::Own(pods) | Peer::In { pods, .. } => note(&mut keys, pods),
                Peer::Addresses(addresses) => {
                    blocks.insert(addresses);
                }
            }
        }
    }
    (keys, blocks)
}

fn look<'w>(pod: &'w Pod, keys: &BTreeSet<&'w str>, blocks: &BTreeSet<&Addresses>) -> Look<'w> {
    let labels = pod.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let seen = labels.filter(|(key, _)| keys.contains(key)).collect();
    let within = Family::ALL.map(|family| {
        let own: Vec<_> = pod.addresses.iter().filter(|&&address| Family::of(address) == family).collect();
        let held = (0_u32..).zip(blocks).filter(|(_, block)| own.iter().any(|&&address| block.contain(address)));
        (!own.is_empty(), held.map(|(number, _)| number).collect())
    });
    (&pod.namespace, pod.judged, seen, &pod.names, within)
}

/// The policies that select one Pod of each class, for one direction.
fn selecting(world: &World, classes: &Classes, direction: Direction) -> Vec<Vec<usize>> {
    classes.sample.iter().map(|&pod| world.selecting(&world.pods()[pod], direction).collect()).collect()
}

/// One world, ready to be asked for pairs of classes.
struct Ready<'w> {
    world: &'w World,
    egress: Vec<Vec<usize>>,
    ingress: Vec<Vec<usize>>,
}

impl<'w> Ready<'w> {
    fn new(world: &'w World, classes: &Classes) -> Self {
        let [egress, ingress] = Direction::ALL.map(|direction| selecting(world, classes, direction));
        Self { world, egress, ingress }
    }

    /// The ports from one class to another; `None` when they are not judged. `to` is one of the class that is not the one that sends.
    fn ports<'p>(&'p self, classes: &Classes, from: End<'p>, to: End<'p>) -> Option<PortSet> {
        let party = |end: End<'p>| match end {
            End::Class(class) => Party::Pod(&self.world.pods()[classes.sample[class]]),
            End::Other(party) => party,
        };
        let (one, other) = (party(from), party(to));
        if unjudged(one, other).is_some() {
            return None;
        }
        let mut set = PortSet::NONE;
        for family in families(one, other).ok()? {
            let egress = match (from, one) {
                (End::Class(class), Party::Pod(pod)) => {
                    side::ports(self.world, Direction::Egress, pod, &self.egress[class], (other, family))
                }
                _ => PortSet::all(),
            };
            // What is not let out need not be let in.
            if egress.is_empty() {
                continue;
            }
            let ingress = match (to, other) {
                (End::Class(class), Party::Pod(pod)) => {
                    side::ports(self.world, Direction::Ingress, pod, &self.ingress[class], (one, family))
                }
                _ => PortSet::all(),
            };
            set.add(&egress.and(&ingress));
        }
        Some(set)
    }
}

/// One end of a pair: a class of Pods, or what is no Pod.
#[derive(Clone, Copy)]
enum End<'w> {
    Class(usize),
    Other(Party<'w>),
}

/// The ports of every pair of Pods of a world.
#[derive(Debug, Clone)]
pub struct Matrix {
    classes: Classes,
    /// Every set of ports that occurs, once.
    sets: Vec<Option<PortSet>>,
    /// For each pair of classes the set, by its place in `sets`.
    pairs: Vec<u32>,
}

impl Matrix {
    /// The matrix of a world.
    #[must_use]
    pub fn of(world: &World) -> Self {
        let classes = Classes::of(world);
        let ready = Ready::new(world, &classes);
        let mut known: BTreeMap<Option<PortSet>, u32> = BTreeMap::new();
        let mut matrix = Self { pairs: Vec::with_capacity(classes.len() * classes.len()), sets: Vec::new(), classes };
        for from in 0..matrix.classes.len() {
            for to in 0..matrix.classes.len() {
                let set = ready.ports(&matrix.classes, End::Class(from), End::Class(to));
                let next = u32::try_from(matrix.sets.len()).unwrap_or(u32::MAX);
                let place = *known.entry(set.clone()).or_insert(next);
                if place == next {
                    matrix.sets.push(set);
                }
                matrix.pairs.push(place);
            }
        }
        matrix
    }

    /// The ports that one Pod reaches of another one, by their places in [`World::pods`]; `None` when nothing is said about the pair, or there is
    /// no such Pod. A Pod reaches itself.
    #[must_use]
    pub fn ports(&self, from: usize, to: usize) -> Option<PortSet> {
        let (one, other) = (*self.classes.of.get(from)? as usize, *self.classes.of.get(to)? as usize);
        let set = self.sets[self.pairs[one * self.classes.len() + other] as usize].as_ref()?;
        Some(if from == to { PortSet::all() } else { set.clone() })
    }

    /// Whether every pair of this matrix reaches no more than the same pair of `other`, which is of the same Pods.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let pods = self.classes.of.len();
        (0..pods).all(|from| {
            (0..pods).all(|to| match (self.ports(from, to), other.ports(from, to)) {
                (Some(own), Some(others)) => own.is_within(&others),
                (own, others) => own.is_none() && others.is_none(),
            })
        })
    }
}

/// One end of what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Pods that whoever asks calls by that number.
    Pods(usize),
    /// Addresses that no policy of either world tells apart, by their place in [`Differences::blocks`].
    Block(usize),
    /// Addresses outside of the cluster that no policy names but as one of all.
    Outside(Family),
}

/// What one group reaches of another one in two worlds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Ports that are reached before and not after, for at least one pair of Pods.
    pub cut: PortSet,
    /// Ports that are reached after and not before, for at least one pair.
    pub opened: PortSet,
    /// Ports that are reached before and after, by every pair.
    pub kept: PortSet,
    /// Pairs of Pods, those that nothing is said about left out.
    pub pairs: usize,
    /// Those of them for which something is cut.
    pub pairs_cut: usize,
    /// The Pods of one of those, or of any pair when there is none, by their places in [`World::pods`]; `None` on the side that is no Pod.
    pub sample: (Option<usize>, Option<usize>),
}

/// What differs between two worlds of the same Pods, by groups of Pods.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// What differs, or does not, from the first group to the second.
    pub of: BTreeMap<(Group, Group), Difference>,
    /// Every block of addresses that policies name, as what is let through or as an exception, less those that are named within it; but for those of
    /// all addresses.
    pub blocks: Vec<Addresses>,
    /// Pods of each group that nothing is said about.
    pub unjudged: BTreeMap<usize, usize>,
}

impl Differences {
    /// Compares two worlds of the same Pods in the same order. `group` gives each Pod the number of its group; `of_interest` are those of which every pair is
    /// wanted in which they are either end.
    #[must_use]
    pub fn between(before: &World, after: &World, group: &[usize], of_interest: &BTreeSet<usize>) -> Self {
        let classes = Classes::of_both(before, after);
        let (ready_before, ready_after) = (Ready::new(before, &classes), Ready::new(after, &classes));
        let mut differences = Self { blocks: blocks(before, after), ..Self::default() };
        // How many Pods of each group are of each class.
        let mut counts: BTreeMap<usize, BTreeMap<usize, Alike>> = BTreeMap::new();
        for ((at, pod), &group) in before.pods().iter().enumerate().zip(group) {
            if pod.judged == Judged::Yes {
                counts.entry(group).or_default().entry(classes.class(at)).or_default().add(at);
            } else {
                *differences.unjudged.entry(group).or_default() += 1;
            }
        }
        let mut memory = BTreeMap::new();
        let mut pair = |from: usize, to: usize| {
            let compare = || {
                let ends = (End::Class(from), End::Class(to));
                Some((ready_before.ports(&classes, ends.0, ends.1)?, ready_after.ports(&classes, ends.0, ends.1)?))
            };
            memory.entry((from, to)).or_insert_with(compare).clone()
        };
        for (&own, classes_of_own) in counts.iter().filter(|(group, _)| of_interest.contains(group)) {
            for (&other, classes_of_other) in &counts {
                let both = of_interest.contains(&other);
                let mut ends = vec![(own, classes_of_own, other, classes_of_other)];
                if !both {
                    ends.push((other, classes_of_other, own, classes_of_own));
                }
                for (from, from_classes, to, to_classes) in ends {
                    let mut sum = Sum::default();
                    for (&one, senders) in from_classes {
                        for (&two, targets) in to_classes {
                            // A Pod and itself are no pair.
                            let is_own = from == to && one == two;
                            let pairs = senders.count * if is_own { senders.count - 1 } else { targets.count };
                            let target = if is_own { targets.second } else { targets.first };
                            if pairs > 0
                                && let Some((was, is)) = pair(one, two)
                            {
                                sum.add((&was, &is), pairs, (senders.first, target));
                            }
                        }
                    }
                    sum.settle((Group::Pods(from), Group::Pods(to)), &mut differences.of);
                }
            }
            differences.outside(own, classes_of_own, &classes, [&ready_before, &ready_after]);
        }
        differences
    }

    /// What a group reaches of addresses that are no Pod's, and they of it.
    fn outside(
        &mut self,
        own: usize,
        own_classes: &BTreeMap<usize, Alike>,
        classes: &Classes,
        worlds: [&Ready<'_>; 2],
    ) {
        let blocks = self
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(at, block)| Some((Group::Block(at), Party::Address(first_of(block)?))));
        let outside = Family::ALL.map(|family| (Group::Outside(family), Party::Outside(family)));
        let others: Vec<_> = blocks.chain(outside).collect();
        for (group, party) in others {
            for sends in [true, false] {
                let mut sum = Sum::default();
                for (&class, alike) in own_classes {
                    let ends = match sends {
                        true => (End::Class(class), End::Other(party)),
                        false => (End::Other(party), End::Class(class)),
                    };
                    let [was, is] = worlds.map(|world| world.ports(classes, ends.0, ends.1));
                    if let (Some(was), Some(is)) = (was, is) {
                        let own = alike.first;
                        sum.add((&was, &is), alike.count, if sends { (own, None) } else { (None, own) });
                    }
                }
                let own = Group::Pods(own);
                sum.settle(if sends { (own, group) } else { (group, own) }, &mut self.of);
            }
        }
    }
}

/// Pods of one group that no policy can tell apart.
#[derive(Debug, Clone, Copy, Default)]
struct Alike {
    count: usize,
    first: Option<usize>,
    second: Option<usize>,
}

impl Alike {
    fn add(&mut self, pod: usize) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(pod);
        } else if self.second.is_none() {
            self.second = Some(pod);
        }
    }
}

/// A difference that grows pair by pair.
#[derive(Default)]
struct Sum {
    of: Difference,
    kept: Option<PortSet>,
}

impl Sum {
    fn add(&mut self, (was, is): (&PortSet, &PortSet), pairs: usize, sample: (Option<usize>, Option<usize>)) {
        let cut = was.without(is);
        if self.of.pairs == 0 {
            self.of.sample = sample;
        }
        self.of.pairs += pairs;
        if !cut.is_empty() {
            if self.of.pairs_cut == 0 {
                self.of.sample = sample;
            }
            self.of.pairs_cut += pairs;
        }
        self.of.cut.add(&cut);
        self.of.opened.add(&is.without(was));
        let both = was.and(is);
        self.kept = Some(match self.kept.take() {
            Some(kept) => kept.and(&both),
            None => both,
        });
    }

    fn settle(self, key: (Group, Group), into: &mut BTreeMap<(Group, Group), Difference>) {
        if self.of.pairs > 0 {
            into.insert(key, Difference { kept: self.kept.unwrap_or_default(), ..self.of });
        }
    }
}

/// The blocks that policies of either world name, exceptions among them, each less those within it: of two addresses of one no policy says anything
/// different, so that one of them speaks for all. Those of all addresses are left out.
fn blocks(before: &World, after: &World) -> Vec<Addresses> {
    let mut named: BTreeSet<Block> = BTreeSet::new();
    for addresses in [before, after].into_iter().flat_map(|world| asked(world).1) {
        named.insert(addresses.block);
        named.extend(&addresses.except);
    }
    // Blocks are apart or within each other, and in this order each comes before those within it.
    let mut all: Vec<Addresses> = Vec::with_capacity(named.len());
    let mut around: Vec<usize> = Vec::new();
    for block in named {
        while around.last().is_some_and(|&at| !block.is_within(all[at].block)) {
            around.pop();
        }
        if let Some(&at) = around.last() {
            all[at].except.push(block);
        }
        around.push(all.len());
        all.push(Addresses { block, except: Vec::new() });
    }
    all.retain(|one| !Family::ALL.iter().any(|&family| one.are_all_of(family)));
    all
}

/// The first address of a block that is in none of its exceptions; `None` where they leave none.
#[must_use]
pub fn first_of(addresses: &Addresses) -> Option<std::net::IpAddr> {
    let mut holes: Vec<Block> = addresses.except.clone();
    holes.sort_unstable();
    let mut at = addresses.block.first();
    // In this order none that was passed holds an address behind it.
    for hole in holes {
        if hole.contains(at) {
            at = crate::policy::address::next(hole.last())?;
        }
    }
    addresses.block.contains(at).then_some(at)
}
