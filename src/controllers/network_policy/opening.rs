//! What the policy of an agent is to be; pure.
//!
//! In: whether the agent is in quarantine, or somebody else of its namespace, and whether it is verified. Out: the `spec`, and where only what is declared
//! is open, which declarations made it. Promise: what an agent that is not verified may reach is no way out for a Pod in quarantine, whatever labels that
//! has; what a verified one may, asks for the trust label, which such a Pod has not.

use serde_json::Value;

use super::facts::Made;
use super::{declared, facts};
use crate::config::trust::VerifiedPeers;
use crate::controllers::network_policy::memory::Context;
use crate::controllers::trust;
use crate::policy::desired::{self, Facts, closed, permissive, restrictive, without_held};
use crate::store::objects::{PolicyRef, WorkloadRef};

/// What an agent's policy is to be.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) spec: Value,
    /// Annotation `agent.kagenti.dev/declared`, where only what is declared is open.
    pub(super) says: Option<String>,
    /// What is declared and opens nobody.
    pub(super) left: Vec<String>,
}

impl Wanted {
    fn of(spec: Value) -> Self {
        Self { spec, says: None, left: Vec::new() }
    }

    /// Whether the policy says the same of its declarations.
    pub(super) fn says_the_same(&self, policy: &PolicyRef<'_>) -> bool {
        policy.seen.declared.as_deref() == self.says.as_deref()
    }
}

/// Whether a verified agent is opened by its declarations alone.
pub(super) fn is_by_declaration(cx: &Context<'_>) -> bool {
    cx.facts.platform.cards().trust.verified_peers == VerifiedPeers::Declared
}

/// The policy of the agent whose workload selects by `selector`; `held`: it is in quarantine, `opens`: it is verified.
pub(super) fn of(
    cx: &Context<'_>,
    (workload, selector): (&WorkloadRef<'_>, &Value),
    (held, opens): (bool, bool),
    made: &Made,
) -> Wanted {
    match (held, opens) {
        (true, _) => Wanted::of(closed(selector)),
        (false, false) => {
            let less = trust::quarantine(cx.store, &cx.key.namespace).map(|_| without_held(selector));
            let selector = less.as_ref().unwrap_or(selector);
            Wanted { left: made.left(), ..Wanted::of(restrictive(selector, &made.facts)) }
        }
        (false, true) if is_by_declaration(cx) => by_declaration(cx, workload, selector),
        (false, true) => Wanted::of(permissive(selector, &made.facts)),
    }
}

fn by_declaration(cx: &Context<'_>, workload: &WorkloadRef<'_>, selector: &Value) -> Wanted {
    // Its links are among what it declares.
    let Made { facts, .. } = facts::facts(cx, &cx.key.namespace, &[]);
    // Whoever is verified resolves names, as under every other value.
    let facts = Facts { dns: facts::dns(cx.store), ..facts };
    let declared::Found { declared, mut left } = declared::of(cx, workload);
    let opening = desired::declared(selector, &facts, &declared);
    left.extend(opening.left.into_iter().map(|by| format!("{by}: one policy has no room for so many")));
    Wanted { spec: opening.spec, says: Some(opening.says.to_string()), left }
}
