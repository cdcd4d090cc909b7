//! What is said about a pair, for people and programs: one shape for every command.
//!
//! In: a world and what [`reach`](crate::policy::reach) found. Out: sentences and lists that name policies, rules and peers. Promise: lists are bounded, and
//! what is left out of one is counted.

use serde::Serialize;

use crate::policy::network_policy::{Direction, Port};
use crate::policy::ports::PortSet;
use crate::policy::reach::{Path, Reach};
use crate::policy::side::{Deciding, Miss, Side};
use crate::policy::world::World;

/// What every verdict rests on; a part of each output.
pub const BASIS: &str = "from objects, not from traffic";
/// Longest list of rules that let nothing through.
const MOST: usize = 20;

/// What one family of addresses says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathReport {
    /// `IPv4` or `IPv6`; absent where one of them has no address yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    /// The ports that are reached.
    pub ports: PortSet,
    /// What the Pod that sends lets out; absent when it is no Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<SideReport>,
    /// What the Pod that is sent to lets in; absent when it is no Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<SideReport>,
}

/// What one side says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SideReport {
    /// The direction.
    pub direction: Direction,
    /// The ports that are let through.
    pub ports: PortSet,
    /// The policies that isolate the Pod in this direction; none: everything is let through.
    pub isolated_by: Vec<String>,
    /// The rules that let something through.
    pub rules: Vec<RuleReport>,
    /// The rules that do not, as far as there is room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_rules: Vec<RuleReport>,
    /// How many of those are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_rules_left_out: usize,
    /// What ClusterNetworkPolicies decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<ClusterReport>,
    /// Where nothing is let through, the policies that would let through what is declared: nothing declares this.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
}

/// One rule and why it counts, or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// Namespace and name of the policy.
    pub policy: String,
    /// The rule's place in `ingress` or `egress`.
    pub rule: usize,
    /// The ports that it lets through.
    #[serde(skip_serializing_if = "PortSet::is_empty")]
    pub ports: PortSet,
    /// Why.
    pub why: String,
    /// What declares it, of a rule that a declaration made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
}

/// What a rule of a ClusterNetworkPolicy decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The policy's name.
    pub policy: String,
    /// The rule's place in `ingress` or `egress`.
    pub rule: usize,
    /// `accepts`, `denies`, or `leaves to NetworkPolicies`.
    pub decides: &'static str,
    /// The ports about which it decides.
    pub ports: PortSet,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl SideReport {
    /// Words for a side.
    #[must_use]
    pub fn of(world: &World, side: &Side) -> Self {
        let direction = side.direction;
        let rule =
            |policy: usize, rule: usize| world.policies()[policy].rules(direction).and_then(|rules| rules.get(rule));
        let title = |policy: usize| world.policies()[policy].title();
        let peers = |policy: usize, place: usize| {
            let namespace = &world.policies()[policy].namespace;
            let peers = rule(policy, place).and_then(|rule| rule.peers.as_deref()).unwrap_or_default();
            peers.iter().map(|peer| peer.words(namespace)).collect::<Vec<_>>()
        };
        let declared = |policy: usize, place: usize| {
            let says = world.policies()[policy].declared.as_ref()?;
            says.of(direction, place).map(str::to_owned)
        };
        let rules = side.allowing.iter().map(|one| RuleReport {
            policy: title(one.policy),
            rule: one.rule,
            ports: one.ports.clone(),
            why: match one.peer {
                None => "everybody is let through".to_owned(),
                Some(at) => peers(one.policy, one.rule).swap_remove(at),
            },
            declared: declared(one.policy, one.rule),
        });
        let other = side.missing.iter().take(MOST).map(|&(policy, place, miss)| RuleReport {
            policy: title(policy),
            rule: place,
            ports: PortSet::NONE,
            why: match miss {
                Miss::Peer => format!("is for others: {}", shortened(peers(policy, place))),
                Miss::Names => {
                    let ports = rule(policy, place).and_then(|rule| rule.ports.as_deref()).unwrap_or_default();
                    let ports = ports.iter().map(Port::to_string).collect();
                    format!("names ports that the Pod that is sent to does not have: {}", shortened(ports))
                }
            },
            declared: declared(policy, place),
        });
        let decides = |one: &Deciding| ClusterReport {
            policy: world.cluster()[one.policy].name.clone(),
            rule: one.rule,
            decides: one.action.words(),
            ports: one.ports.clone(),
        };
        let by_declarations = side.isolating.iter().filter(|&&policy| world.policies()[policy].declared.is_some());
        let undeclared = by_declarations.filter(|_| side.ports.is_empty()).map(|&policy| title(policy));
        Self {
            direction,
            ports: side.ports.clone(),
            isolated_by: side.isolating.iter().map(|&policy| title(policy)).collect(),
            rules: rules.collect(),
            other_rules: other.collect(),
            other_rules_left_out: side.missing.len().saturating_sub(MOST),
            cluster: side.deciding.iter().map(decides).collect(),
            undeclared: undeclared.collect(),
        }
    }
}

/// A list for a sentence.
fn shortened(list: Vec<String>) -> String {
    match list.len() {
        0..=3 => list.join("; "),
        more => format!("{}; and {} more", list[..3].join("; "), more - 3),
    }
}

impl PathReport {
    /// Words for a path.
    #[must_use]
    pub fn of(world: &World, path: &Path) -> Self {
        let side = |side: &Option<Side>| side.as_ref().map(|side| SideReport::of(world, side));
        Self {
            family: path.family.map(crate::policy::address::Family::as_str),
            ports: path.ports.clone(),
            egress: side(&path.egress),
            ingress: side(&path.ingress),
        }
    }

    /// Words for every path of a pair; none where it is not judged, or one Pod.
    #[must_use]
    pub fn all(world: &World, reach: &Reach) -> Vec<Self> {
        match reach {
            Reach::Itself | Reach::NotJudged(_) => Vec::new(),
            Reach::Paths(paths) => {
                let mut reports: Vec<Self> = paths.iter().map(|path| Self::of(world, path)).collect();
                // What both families say is said once.
                if let [one, other] = &mut reports[..] {
                    let family = std::mem::replace(&mut one.family, other.family);
                    if one == other {
                        one.family = None;
                        reports.truncate(1);
                    } else {
                        one.family = family;
                    }
                }
                reports
            }
        }
    }
}
