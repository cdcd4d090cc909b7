//! Which AgentBuilds exist, and the [`Builds`] of a snapshot; pure.
//!
//! In: [`Change`]s, and what was read of templates and steps ([`super::texts`]). Out: the [`Builds`] of a snapshot, made from the
//! last one. Promise: what comes out depends only on the last change of each object.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::builds::Settings;
use crate::config::builds::{Builds, Names};
use crate::pipelines::templates::Entry;
use crate::store::{Change, Key, Kind};

/// The names of AgentBuilds, and whether they are other than in the last [`Builds`].
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    names: Names,
    dirty: bool,
}

/// What is other than in the last [`Builds`].
#[derive(Debug, Default)]
pub(super) struct News {
    /// Templates and steps; `None`: gone, or not read yet.
    pub(super) entries: Vec<(Key, Option<Entry>)>,
    /// The names of AgentBuilds.
    pub(super) names: Option<Names>,
    /// Namespaces of which a template or step has not been read yet.
    pub(super) unread: BTreeSet<Arc<str>>,
}

impl Pipelines {
    /// Takes note of a change; returns whether it concerns builds.
    pub(super) fn apply(&mut self, change: &Change) -> bool {
        if change.kind != Kind::AgentBuild {
            return false;
        }
        let Key { namespace, name } = &change.key;
        let names = self.names.entry(namespace.clone()).or_default();
        let changed = if change.now.is_some() { names.insert(name.to_string()) } else { names.remove(&**name) };
        if names.is_empty() {
            self.names.remove(namespace);
        }
        self.dirty |= changed;
        changed
    }

    /// The names, where they changed since the last time.
    pub(super) fn names(&mut self) -> Option<Names> {
        std::mem::take(&mut self.dirty).then(|| self.names.clone())
    }
}

/// What is known now; the very `last` when nothing has changed. Where [`is_other`], the news are everything that was read.
pub(super) fn builds(settings: Settings, last: Option<&Arc<Builds>>, news: News) -> Arc<Builds> {
    let mut builds = match last {
        Some(last) if !is_other(&settings, Some(last)) => {
            let same = last.settings == settings && news.entries.is_empty() && news.names.is_none();
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
    builds.names = news.names.or(builds.names);
    Arc::new(builds)
}

/// Whether all templates and steps have to be taken anew: whether a step may be privileged is part of reading it.
pub(super) fn is_other(settings: &Settings, last: Option<&Arc<Builds>>) -> bool {
    last.is_none_or(|last| last.settings.pipelines.privileged_steps != settings.pipelines.privileged_steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, exists: bool) -> Change {
        use crate::store::decode::change_of;
        let object = serde_json::json!({"metadata": {"namespace": "team", "name": name}, "spec": {}});
        let change = change_of(Kind::AgentBuild, &object.to_string()).unwrap();
        Change { now: change.now.filter(|_| exists), ..change }
    }

    #[test]
    fn agent_builds_are_known_by_name_and_their_changes_make_nothing_new() {
        let mut pipelines = Pipelines::default();
        assert!(pipelines.apply(&change("a", true)) && pipelines.apply(&change("b", true)));
        assert!(!pipelines.apply(&change("a", true)), "its spec is not kept");
        let mut news = || News { names: pipelines.names(), ..News::default() };
        let first = builds(Settings::new("own"), None, news());
        assert_eq!(first.names("team").unwrap().len(), 2);
        assert!(Arc::ptr_eq(&first, &builds(Settings::new("own"), Some(&first), news())));
        assert!(pipelines.apply(&change("b", false)));
        let second = builds(Settings::new("own"), Some(&first), News { names: pipelines.names(), ..News::default() });
        assert_eq!(second.names("team").unwrap().iter().collect::<Vec<_>>(), ["a"]);
        let mut enforced = Settings::new("own");
        enforced.pipelines.insecure_git = true;
        assert!(!is_other(&enforced, Some(&second)));
        let mut privileged = enforced.clone();
        privileged.pipelines.privileged_steps = true;
        assert!(is_other(&privileged, Some(&second)));
        assert!(builds(enforced, Some(&second), News::default()).settings.pipelines.insecure_git);
    }
}
