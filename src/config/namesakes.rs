//! Which objects of a namespace want a Deployment and a Service of one name; pure.
//!
//! In: the objects of the kinds that are run so, by kind and name. Out: for one of them, the others that want the same. Promises: nothing is
//! kept of an object but its name; what its objects are run under is said of each kind here alone, and the controllers name them so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::store::Kind;
use crate::workloads::kaos::names::Role;

/// The kinds of which each object is run by a Deployment and a Service of its own.
pub const KINDS: [Kind; 6] =
    [Kind::Agent, Kind::BeeaiAgent, Kind::BeeaiCompatAgent, Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];

/// What stands before the name of an object of that kind, one of [`KINDS`], in the names of its Deployment and its Service.
#[must_use]
pub const fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::KaosAgent => Role::Agent.prefix(),
        Kind::ModelApi => Role::ModelApi.prefix(),
        Kind::McpServer => Role::McpServer.prefix(),
        _ => "",
    }
}

/// Name of the Deployment and the Service of an object of that kind, one of [`KINDS`].
#[must_use]
pub fn made(kind: Kind, name: &str) -> String {
    format!("{}{name}", prefix(kind))
}

/// The objects of a namespace that are run, by kind and name. A copy is a pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named(Arc<BTreeMap<Kind, BTreeSet<Arc<str>>>>);

impl Named {
    /// Takes note of whether there is an object of that kind and name; whether that is news.
    pub fn set(&mut self, kind: Kind, name: &Arc<str>, is_there: bool) -> bool {
        if self.0.get(&kind).is_some_and(|names| names.contains(name)) == is_there {
            return false;
        }
        let kinds = Arc::make_mut(&mut self.0);
        let names = kinds.entry(kind).or_default();
        if is_there {
            names.insert(name.clone());
        } else {
            names.remove(name);
            if names.is_empty() {
                kinds.remove(&kind);
            }
        }
        true
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is an object of that kind and name.
    #[must_use]
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        self.0.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// The objects of other kinds that want the Deployment that an object of that kind and name wants.
    #[must_use]
    pub fn namesakes(&self, kind: Kind, name: &str) -> Vec<(Kind, Arc<str>)> {
        let wanted = made(kind, name);
        let others = KINDS.into_iter().filter(|other| *other != kind);
        let namesake = |other: Kind| {
            let name = wanted.strip_prefix(prefix(other))?;
            Some((other, self.0.get(&other)?.get(name)?.clone()))
        };
        others.filter_map(namesake).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &[(Kind, &str)]) -> Named {
        let mut named = Named::default();
        for (kind, name) in all {
            assert!(named.set(*kind, &Arc::from(*name), true), "{kind:?} {name}");
        }
        named
    }

    /// (kind and name of whoever asks, who wants the same)
    #[test]
    fn whoever_is_run_under_one_name_is_a_namesake_whatever_its_own_name() {
        let all = [
            (Kind::Agent, "agent-x"),
            (Kind::BeeaiAgent, "agent-x"),
            (Kind::BeeaiCompatAgent, "agent-x"),
            (Kind::KaosAgent, "x"),
            (Kind::ModelApi, "x"),
            (Kind::McpServer, "x"),
            (Kind::Agent, "mcpserver-x"),
        ];
        let named = named(&all);
        let [kagenti, beeai, compat, kaos, api, server, other] = all;
        let table = [
            (kagenti, vec![beeai, compat, kaos]),
            (beeai, vec![kagenti, compat, kaos]),
            (compat, vec![kagenti, beeai, kaos]),
            (kaos, vec![kagenti, beeai, compat]),
            (api, vec![]),
            (server, vec![other]),
            (other, vec![server]),
            ((Kind::Agent, "x"), vec![]),
            ((Kind::BeeaiAgent, "modelapi-x"), vec![api]),
        ];
        for ((kind, name), wanted) in table {
            let found = named.namesakes(kind, name);
            let found: Vec<_> = found.iter().map(|(kind, name)| (*kind, &**name)).collect();
            assert_eq!(found, wanted, "{kind:?} {name}");
        }
    }

    #[test]
    fn whoever_is_gone_wants_nothing() {
        let mut named = named(&[(Kind::KaosAgent, "x")]);
        let before = named.clone();
        assert!(!named.set(Kind::KaosAgent, &"x".into(), true), "known");
        assert!(named.has(Kind::KaosAgent, "x") && !named.has(Kind::KaosAgent, "y") && !named.has(Kind::Agent, "x"));
        assert!(named.set(Kind::KaosAgent, &"x".into(), false));
        assert!(!named.set(Kind::KaosAgent, &"x".into(), false), "gone already");
        assert!(named.is_empty() && named.namesakes(Kind::Agent, "agent-x").is_empty());
        assert!(!named.has(Kind::KaosAgent, "x"));
        assert_eq!(before.namesakes(Kind::Agent, "agent-x").len(), 1, "a copy stays as it was");
    }
}
