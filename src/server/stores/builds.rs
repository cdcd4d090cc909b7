//! The [`Builds`] of a snapshot, from the last one and what is new; pure.
//!
//! In: the names of AgentBuilds that a namespace has now, and what was read of templates and steps ([`super::texts`]). Out: the [`Builds`] of
//! the next snapshot. Promise: where nothing is new it is the last one, by pointer.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::builds::Settings;
use crate::config::builds::{Builds, Names};
use crate::pipelines::templates::Entry;
use crate::store::Key;

/// What is other than in the last [`Builds`].
#[derive(Debug, Default)]
pub(super) struct News {
    /// Templates and steps; `None`: gone, or not read yet.
    pub(super) entries: Vec<(Key, Option<Entry>)>,
    /// The names of AgentBuilds, of the namespaces where they are others.
    pub(super) names: Names,
    /// Namespaces of which a template or step has not been read yet.
    pub(super) unread: BTreeSet<Arc<str>>,
}

/// What is known now; the very `last` when nothing has changed. Where [`is_other`], the news are everything that was read.
pub(super) fn builds(settings: Settings, last: Option<&Arc<Builds>>, news: News) -> Arc<Builds> {
    let mut builds = match last {
        Some(last) if !is_other(&settings, Some(last)) => {
            let same = last.settings == settings && news.entries.is_empty() && news.names.is_empty();
            if same && last.view.waits_for(&news.unread) {
                return Arc::clone(last);
            }
            Builds::clone(last)
        }
        last => {
            let names = last.and_then(|last| last.names.clone()).unwrap_or_default();
            Builds { names: Some(names), ..Builds::new(settings.clone()) }
        }
    };
    for (key, entry) in &news.entries {
        builds.view.put(&key.namespace, &key.name, entry.as_ref());
    }
    builds.view.wait_for(news.unread);
    builds.settings = settings;
    let known = builds.names.get_or_insert_default();
    for (namespace, names) in news.names {
        if names.is_empty() {
            known.remove(&namespace);
        } else {
            known.insert(namespace, names);
        }
    }
    Arc::new(builds)
}

/// Whether all templates and steps have to be taken anew: whether a step may be privileged is part of reading it.
pub(super) fn is_other(settings: &Settings, last: Option<&Arc<Builds>>) -> bool {
    last.is_none_or(|last| last.settings.pipelines.privileged_steps != settings.pipelines.privileged_steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_team(names: &[&str]) -> News {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        News { names: Names::from([("team".into(), names)]), ..News::default() }
    }

    #[test]
    fn agent_builds_are_known_by_name_and_what_is_not_new_makes_nothing_new() {
        let first = builds(Settings::new("own"), None, of_team(&["a", "b"]));
        assert_eq!(first.names("team").unwrap().len(), 2);
        assert!(Arc::ptr_eq(&first, &builds(Settings::new("own"), Some(&first), News::default())));
        let second = builds(Settings::new("own"), Some(&first), of_team(&["a"]));
        assert_eq!(second.names("team").unwrap().iter().collect::<Vec<_>>(), ["a"]);
        let mut enforced = Settings::new("own");
        enforced.pipelines.insecure_git = true;
        assert!(!is_other(&enforced, Some(&second)));
        let mut privileged = enforced.clone();
        privileged.pipelines.privileged_steps = true;
        assert!(is_other(&privileged, Some(&second)));
        let third = builds(privileged, Some(&second), News::default());
        assert_eq!(third.names("team").unwrap().len(), 1, "who is there does not depend on settings");
        assert!(builds(enforced, Some(&second), News::default()).settings.pipelines.insecure_git);
        let none = builds(Settings::new("own"), Some(&second), of_team(&[]));
        assert_eq!(none.names, Some(Names::new()), "nothing is left behind");
    }
}
