//! The templates and steps that the watches know, and which AgentBuilds exist; pure.
//!
//! In: [`Change`]s. Out: the [`Builds`] of a snapshot, made from the last one: only ConfigMaps that changed are read
//! anew. Promise: what comes out depends only on the last change of each object.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::api::observed::{Change, ConfigMapSeen, Key, Kind, What};
use crate::build::settings::Settings;
use crate::build::templates::ConfigMapText;
use crate::config::builds::{Builds, Names};
use crate::domain::keys;

/// Everything that is known, and what of it is not in the last [`Builds`].
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    config_maps: HashMap<Key, Text>,
    names: Names,
    dirty: BTreeSet<Key>,
    names_dirty: bool,
}

/// What is kept of a ConfigMap.
#[derive(Debug, PartialEq)]
struct Text {
    is_step: bool,
    data: Arc<BTreeMap<String, String>>,
}

/// Whether a ConfigMap of that name holds a template.
pub(super) fn is_template(name: &str) -> bool {
    name.starts_with(keys::PREFIX_TEMPLATE)
}

impl Pipelines {
    /// Takes note of a change; returns whether it concerns builds.
    pub(super) fn apply(&mut self, change: &Change) -> bool {
        let what = change.now.as_deref().map(|observed| &observed.what);
        match (change.kind, what) {
            (Kind::ConfigMap, Some(What::ConfigMap(seen))) => self.config_map(&change.key, Some(seen)),
            (Kind::ConfigMap, _) => self.config_map(&change.key, None),
            (Kind::AgentBuild, what) => self.name(&change.key, what.is_some()),
            _ => false,
        }
    }

    fn name(&mut self, key: &Key, exists: bool) -> bool {
        let names = self.names.entry(key.namespace.clone()).or_default();
        let changed = if exists { names.insert(key.name.to_string()) } else { names.remove(&*key.name) };
        if names.is_empty() {
            self.names.remove(&key.namespace);
        }
        self.names_dirty |= changed;
        changed
    }

    fn config_map(&mut self, key: &Key, seen: Option<&ConfigMapSeen>) -> bool {
        let concerns = |seen: &&ConfigMapSeen| {
            is_template(&key.name) || seen.is_step || seen.data.contains_key(keys::KEY_TASK_SPEC)
        };
        let text = seen.filter(concerns).map(|seen| Text { is_step: seen.is_step, data: Arc::clone(&seen.data) });
        if self.config_maps.get(key) == text.as_ref() {
            return false;
        }
        match text {
            Some(text) => drop(self.config_maps.insert(key.clone(), text)),
            None => drop(self.config_maps.remove(key)),
        }
        self.dirty.insert(key.clone());
        true
    }

    /// What is known now; the very `last` when nothing has changed.
    pub(super) fn builds(&mut self, settings: Settings, last: Option<&Arc<Builds>>) -> Arc<Builds> {
        let dirty = std::mem::take(&mut self.dirty);
        let names_dirty = std::mem::take(&mut self.names_dirty);
        let mut builds = match last {
            // Whether a step may be privileged is part of reading it.
            Some(last) if last.settings == settings && dirty.is_empty() && !names_dirty => return Arc::clone(last),
            Some(last) if last.settings.privileged_steps == settings.privileged_steps => {
                let mut builds = Builds::clone(last);
                for key in &dirty {
                    match self.config_maps.get(key) {
                        Some(text) => builds.view.insert(&config_map(key, text)),
                        None => builds.view.remove(&key.namespace, &key.name),
                    }
                }
                builds
            }
            _ => {
                let mut builds = Builds::new(settings.clone());
                self.config_maps.iter().for_each(|(key, text)| builds.view.insert(&config_map(key, text)));
                builds
            }
        };
        builds.settings = settings;
        builds.names = Some(self.names.clone());
        Arc::new(builds)
    }
}

fn config_map(key: &Key, text: &Text) -> ConfigMapText {
    let label = text.is_step.then(|| (keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned()));
    ConfigMapText {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        labels: label.into_iter().collect(),
        data: (*text.data).clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::observed::Observed;

    const STEP: &str = "steps:\n  - name: run\n    image: alpine:3.22\n    script: 'true'\n";

    fn change(namespace: &str, name: &str, is_step: bool, (key, text): (&str, &str)) -> Change {
        let data = Arc::new(BTreeMap::from([(key.to_owned(), text.to_owned())]));
        let what = What::ConfigMap(ConfigMapSeen { data, is_step, ..ConfigMapSeen::default() });
        let now = Some(Arc::new(Observed { uid: "u".into(), version: 1, what }));
        Change { kind: Kind::ConfigMap, key: Key::new(namespace, name), version: 1, listed: false, now }
    }

    fn gone(namespace: &str, name: &str) -> Change {
        Change { kind: Kind::ConfigMap, key: Key::new(namespace, name), version: 2, listed: false, now: None }
    }

    fn settings() -> Settings {
        Settings::new("own")
    }

    #[test]
    fn templates_by_name_steps_by_label_and_in_our_own_namespace_by_key() {
        let mut pipelines = Pipelines::default();
        let template = r#"{"name": "t", "steps": [{"name": "a", "configMap": "b"}]}"#;
        assert!(pipelines.apply(&change("team", "pipeline-template-dev", false, ("template.json", template))));
        assert!(pipelines.apply(&change("team", "labelled", true, ("task-spec.yaml", STEP))));
        assert!(pipelines.apply(&change("own", "plain", false, ("task-spec.yaml", STEP))));
        assert!(!pipelines.apply(&change("team", "authbridge-config", false, ("KEYCLOAK_URL", "x"))));
        let builds = pipelines.builds(settings(), None);
        assert!(builds.view.template("team", "dev").is_some_and(|entry| entry.template.is_ok()));
        assert!(builds.view.steps("team").contains_key("labelled"));
        assert!(builds.view.steps("own").contains_key("plain"));
    }

    #[test]
    fn only_what_changed_is_read_anew() {
        let mut pipelines = Pipelines::default();
        pipelines.apply(&change("team", "a", true, ("task-spec.yaml", STEP)));
        pipelines.apply(&change("team", "b", true, ("task-spec.yaml", STEP)));
        let first = pipelines.builds(settings(), None);
        assert!(Arc::ptr_eq(&first, &pipelines.builds(settings(), Some(&first))));
        assert!(!pipelines.apply(&change("team", "a", true, ("task-spec.yaml", STEP))), "the same again");
        pipelines.apply(&change("team", "b", true, ("task-spec.yaml", "steps: []")));
        let second = pipelines.builds(settings(), Some(&first));
        assert!(Arc::ptr_eq(&first.view.steps("team")["a"], &second.view.steps("team")["a"]));
        assert!(second.view.steps("team")["b"].step.is_err());
        assert!(pipelines.apply(&gone("team", "b")));
        let third = pipelines.builds(settings(), Some(&second));
        assert!(!third.view.steps("team").contains_key("b") && third.view.steps("team").contains_key("a"));
    }

    #[test]
    fn a_setting_that_steps_are_judged_by_reads_all_of_them_anew() {
        let mut pipelines = Pipelines::default();
        let privileged =
            "steps:\n  - name: run\n    image: a\n    script: x\n    securityContext: {privileged: true}\n";
        pipelines.apply(&change("team", "a", true, ("task-spec.yaml", privileged)));
        let first = pipelines.builds(settings(), None);
        assert!(first.view.steps("team")["a"].step.is_err());
        let allowed = Settings { privileged_steps: true, ..settings() };
        let second = pipelines.builds(allowed, Some(&first));
        assert!(second.view.steps("team")["a"].step.is_ok());
        let enforced = Settings { insecure_git: true, ..second.settings.clone() };
        let third = pipelines.builds(enforced, Some(&second));
        assert!(third.settings.insecure_git);
        assert!(Arc::ptr_eq(&second.view.steps("team")["a"], &third.view.steps("team")["a"]));
    }

    #[test]
    fn agent_builds_are_known_by_name_and_their_changes_make_nothing_new() {
        use crate::api::observed::object::change_of;
        let build = |name: &str| {
            let object = serde_json::json!({"metadata": {"namespace": "team", "name": name}, "spec": {}});
            change_of(Kind::AgentBuild, &object.to_string()).unwrap()
        };
        let mut pipelines = Pipelines::default();
        assert!(pipelines.apply(&build("a")) && pipelines.apply(&build("b")));
        assert!(!pipelines.apply(&build("a")), "its spec is not kept");
        let first = pipelines.builds(settings(), None);
        assert_eq!(first.names("team").unwrap().len(), 2);
        assert!(pipelines.apply(&Change { kind: Kind::AgentBuild, ..gone("team", "b") }));
        let second = pipelines.builds(settings(), Some(&first));
        assert_eq!(second.names("team").unwrap().iter().collect::<Vec<_>>(), ["a"]);
    }
}
