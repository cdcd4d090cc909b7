//! Which objects are watched: what the descriptors of [`crate::store::kinds`] select.

use std::sync::{Arc, LazyLock};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::store::{Kind, KindOrigin, Selection, SelectionId, UsedBy};

/// One list-and-watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Its number in the table.
    pub(super) id: SelectionId,
    /// What is watched.
    pub(super) kind: Kind,
    /// Which of its objects.
    pub(super) selection: Selection,
    /// The API server may not serve the kind, now or at times: its definition is not part of Kubernetes.
    pub(super) optional: bool,
}

/// Pages of ConfigMaps that are read at once, in the whole process: each may be as large as eight of them can be.
static PAGES: Semaphore = Semaphore::const_new(2);

/// Pages of other kinds that are read at once, of those that are part of Kubernetes, and as many of those that are not.
const PAGES_OF_OTHERS: usize = 4;

/// Whose pages of other kinds are read next: at a start, and whenever an API server comes back, every kind is listed at the same time, and a page of
/// each may be as large as eight objects can be. A kind that only its conversion holds up takes no turn from those that are part of Kubernetes.
#[derive(Debug)]
pub(super) struct PageTurns {
    built_in: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

impl PageTurns {
    /// Nothing is read.
    pub(super) fn new() -> Self {
        let turns = || Arc::new(Semaphore::new(PAGES_OF_OTHERS));
        Self { built_in: turns(), others: turns() }
    }

    /// The turns in which the pages of a source are read; `None` of one that has others ([`Source::page_turn`]).
    pub(super) fn of(&self, source: &Source) -> Option<Arc<Semaphore>> {
        let turns = if source.optional { &self.others } else { &self.built_in };
        (!source.is_of_texts()).then(|| turns.clone())
    }
}

impl Source {
    /// The same as a process follows it of which that much is used; `None`: it has no use for it.
    pub(super) fn wanted(&self, used_by: UsedBy) -> Option<Self> {
        if self.selection.used_by <= used_by {
            return Some(*self);
        }
        let selection = Selection { metadata: true, ..self.selection };
        self.selection.names.then_some(Self { selection, ..*self })
    }

    /// Nothing but the names of the objects is made use of, which no bound of a namespace takes away.
    pub(super) fn is_of_names(&self) -> bool {
        self.selection.names && self.selection.metadata
    }

    /// Waits until a page may be read; to be held until nothing of it is left.
    pub(super) async fn page_turn(&self) -> Option<SemaphorePermit<'static>> {
        if self.is_of_texts() { PAGES.acquire().await.ok() } else { None }
    }

    fn is_of_texts(&self) -> bool {
        matches!(self.kind, Kind::ConfigMap | Kind::SignedCard)
    }

    /// Its definition and the rights on it come together, and later; or neither of them, where an installation leaves out what it does not
    /// serve (`render --kinds`).
    pub(super) fn is_compat(&self) -> bool {
        self.kind.descriptor().origin == KindOrigin::Compat || self.is_of_names()
    }

    /// The namespaces it is watched in, each by a watch of its own; `None` for all at once. When only `served` namespaces are, ConfigMaps
    /// and ServiceAccounts of our `own` are followed all the same: they hold templates and steps, and what parametrises policies.
    pub(super) fn places(&self, own: &Arc<str>, served: &[Arc<str>]) -> Vec<Option<Arc<str>>> {
        if self.selection.own {
            return vec![Some(own.clone())];
        }
        if served.is_empty() || !self.kind.is_namespaced() {
            return vec![None];
        }
        let mut places = served.to_vec();
        if matches!(self.kind, Kind::ConfigMap | Kind::ServiceAccount) && !served.contains(own) {
            places.push(own.clone());
        }
        places.into_iter().map(Some).collect()
    }
}

/// Every source, in the order in which they are started: what the descriptors of the kinds select.
pub(super) static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let of_kind = |kind: &Kind| {
        let (kind, optional) = (*kind, kind.descriptor().origin != KindOrigin::BuiltIn);
        kind.selected().map(move |(id, selection)| Source { id, kind, selection: *selection, optional })
    };
    Kind::ALL.iter().flat_map(of_kind).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::agent_kagenti_dev::agent_build::MODES;
    use crate::config::namesakes;
    use crate::domain::keys;
    use crate::pipelines::agent_build::CUSTOM;
    use crate::server::stores::texts::is_template;

    #[test]
    fn only_served_namespaces_are_watched_and_config_maps_and_service_accounts_of_our_own() {
        let (own, served): (Arc<str>, Vec<Arc<str>>) = ("own".into(), vec!["team1".into(), "team2".into()]);
        for source in SOURCES.iter() {
            assert_eq!(source.places(&own, &[]), [source.selection.own.then(|| own.clone())]);
            let places = source.places(&own, &served);
            let names: Vec<_> = places.iter().map(|place| place.as_deref().unwrap_or("*")).collect();
            let expected: &[&str] = match source.kind {
                _ if source.selection.own => &["own"],
                Kind::Namespace | Kind::CsiDriver | Kind::ClusterNetworkPolicy => &["*"],
                Kind::ConfigMap | Kind::ServiceAccount => &["team1", "team2", "own"],
                _ => &["team1", "team2"],
            };
            assert_eq!(names, expected, "{:?}", source.kind);
        }
    }

    #[test]
    fn a_process_without_controllers_follows_the_metadata_of_what_it_is_to_know_by_name() {
        for source in SOURCES.iter() {
            let (alone, all) = (source.wanted(UsedBy::Every), source.wanted(UsedBy::Gate));
            assert_eq!(all.map(|all| all.selection.metadata), Some(source.selection.metadata), "{:?}", source.kind);
            let named = namesakes::KINDS.contains(&source.kind);
            match alone {
                Some(alone) if named => assert!(alone.selection.metadata && alone.is_of_names(), "{:?}", source.kind),
                Some(alone) => assert!(alone.selection.used_by == UsedBy::Every && !alone.is_of_names()),
                None => assert!(!named && source.selection.used_by > UsedBy::Every, "{:?}", source.kind),
            }
        }
    }

    /// Whoever waits for one never waits for the other as well, so nobody holds what somebody waits for.
    #[test]
    fn every_source_has_turns_of_one_sort() {
        let turns = PageTurns::new();
        for source in SOURCES.iter() {
            let of_all = turns.of(source);
            assert_eq!(
                of_all.is_none(),
                matches!(source.kind, Kind::ConfigMap | Kind::SignedCard),
                "{:?}",
                source.kind
            );
            let is_built_in = of_all.is_some_and(|of_all| Arc::ptr_eq(&of_all, &turns.built_in));
            assert!(!(is_built_in && source.optional), "{:?}", source.kind);
        }
    }

    #[test]
    fn every_mode_that_may_have_a_template_is_watched() {
        let mut watched: Vec<_> = SOURCES
            .iter()
            .filter_map(|source| is_template(source.selection.name?).then_some(source.selection.name?))
            .collect();
        let modes = MODES.into_iter().filter(|mode| *mode != CUSTOM);
        // The template of BeeAI's builds is no mode that anybody chooses.
        let mut wanted: Vec<_> =
            modes.chain(["beeai"]).map(|mode| format!("{}{mode}", keys::PREFIX_TEMPLATE)).collect();
        watched.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(watched, wanted);
        assert!(SOURCES.len() <= 64, "an entry has one bit for each selection");
        assert!(SOURCES.iter().map(|source| source.id).eq((0..).map(SelectionId::new).take(SOURCES.len())), "in order");
    }
}
