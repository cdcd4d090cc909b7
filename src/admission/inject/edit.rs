//! Changes to a user's container: environment, a moved port, a probe that follows it, credential mounts.
//!
//! Each edit knows how to tell that it is in place, how to put itself there and how to take itself back, so that
//! the first call, a repair and `uninject` are the same code. The status annotation keeps edits in this form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::agent_env::without_credentials;
use super::pod::{items, text};
use crate::admission::patch::{self, Operation, PointerBuf};

/// One change to one container, addressed by the container's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "camelCase")]
pub(super) enum Edit {
    /// A variable that we set, to `value` or to what the reference `from` gives; `was` is what the user's entry of that name gave:
    /// `value`, `valueFrom`, or neither.
    #[serde(rename_all = "camelCase")]
    Env {
        container: String,
        name: String,
        value: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<Map<String, Value>>,
    },
    /// A port that moved; `moved` are the members that went to the proxy's container.
    #[serde(rename_all = "camelCase")]
    Port { container: String, index: usize, from: u16, to: u16, moved: Map<String, Value> },
    /// A probe or lifecycle hook that follows a moved port; `at` such as `livenessProbe.httpGet`.
    #[serde(rename_all = "camelCase")]
    Handler { container: String, at: String, was: Value, to: u16 },
    /// A read-only mount: of one file, or of the whole volume where `sub_path` is empty.
    #[serde(rename_all = "camelCase")]
    Mount { container: String, volume: String, path: String, sub_path: String },
}

impl Edit {
    /// Name of the container it changes.
    pub(super) fn container(&self) -> &str {
        match self {
            Edit::Env { container, .. }
            | Edit::Port { container, .. }
            | Edit::Handler { container, .. }
            | Edit::Mount { container, .. } => container,
        }
    }

    /// The variable that it adds beside the user's.
    pub(super) fn added(&self) -> Option<&str> {
        match self {
            Edit::Env { name, was: None, .. } => Some(name),
            Edit::Env { .. } | Edit::Port { .. } | Edit::Handler { .. } | Edit::Mount { .. } => None,
        }
    }

    /// About how many bytes its record takes.
    pub(super) fn weight(&self) -> usize {
        const RECORD: usize = 256;
        match self {
            Edit::Env { value, .. } => RECORD + value.len(),
            Edit::Port { .. } | Edit::Handler { .. } | Edit::Mount { .. } => RECORD,
        }
    }

    /// Leaves out what would give the container more than it was sent with: a reference in place of a text, a port of the node that
    /// none of `ports`, those of our containers, has.
    pub(super) fn distrust(&mut self, ports: &[&Value]) {
        match self {
            Edit::Env { value, was: Some(was), .. } if was.get("valueFrom").is_some_and(|from| !from.is_null()) => {
                *was = Map::from_iter([("value".to_owned(), value.as_str().into())]);
            }
            Edit::Port { moved, .. } => {
                let is_there =
                    ports.iter().any(|port| ["hostPort", "hostIP"].iter().all(|key| port.get(key) == moved.get(*key)));
                moved.retain(|key, _| key == "name" || (is_there && ["hostPort", "hostIP"].contains(&key.as_str())));
            }
            Edit::Env { .. } | Edit::Handler { .. } | Edit::Mount { .. } => {}
        }
    }

    /// Whether both change the same place.
    fn same_place(&self, other: &Edit) -> bool {
        self.container() == other.container()
            && match (self, other) {
                (Edit::Env { name: a, .. }, Edit::Env { name: b, .. })
                | (Edit::Handler { at: a, .. }, Edit::Handler { at: b, .. })
                | (Edit::Mount { path: a, .. }, Edit::Mount { path: b, .. }) => a == b,
                (Edit::Port { index: a, .. }, Edit::Port { index: b, .. }) => a == b,
                _ => false,
            }
    }

    /// The change in words; `all` are the changes it is one of.
    pub(super) fn describe(&self, all: &[Edit]) -> String {
        match self {
            Edit::Env { container, name, from: Some(from), .. } => format!("{container}: env {name} added from {from}"),
            Edit::Env { container, name, value, was: None, .. } => {
                format!("{container}: env {name}={} added", without_credentials(value))
            }
            Edit::Env { container, name, value, was: Some(_), .. } => format!("{container}: env {name} set to {value}"),
            Edit::Port { container, from, to, .. } => format!("{container}: port {from} moved to {to}"),
            Edit::Handler { container, at, was, to } => {
                let stays = |edit: &Edit| matches!(edit, Edit::Port { from, .. } if from == to);
                if all.iter().any(|edit| edit.container() == container && stays(edit)) {
                    format!(
                        "{container}: {at} asks another host for port {to} instead of {was}, a name that went to the proxy"
                    )
                } else {
                    format!("{container}: {at} follows to port {to}")
                }
            }
            Edit::Mount { container, path, .. } => format!("{container}: {path} mounted"),
        }
    }
}

fn mount(volume: &str, path: &str, sub_path: &str) -> Value {
    let mut mount = json!({"name": volume, "mountPath": path, "readOnly": true});
    if !sub_path.is_empty() {
        mount["subPath"] = sub_path.into();
    }
    mount
}

/// Edits by container, one per place: so that a Pod with thousands of containers costs no more than its size.
pub(super) fn by_container(edits: &[Edit]) -> BTreeMap<&str, Vec<&Edit>> {
    let mut groups: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        let group = groups.entry(edit.container()).or_default();
        if !group.iter().any(|other| other.same_place(edit)) {
            group.push(edit);
        }
    }
    groups
}

/// What is done to one list of a container: in this order, so that indices stay true.
#[derive(Default)]
struct ListOperations {
    replaced: Vec<Operation>,
    removed: Vec<usize>,
    appended: Vec<Value>,
}

impl ListOperations {
    fn finish(mut self, container: &Value, at: &PointerBuf, key: &str, out: &mut Vec<Operation>) {
        let list = at.with_trailing_token(key);
        let existing = items(container, key).len();
        out.append(&mut self.replaced);
        self.removed.sort_unstable();
        self.removed.dedup();
        if existing > 0 && self.removed.len() == existing {
            out.push(if self.appended.is_empty() {
                patch::remove(list)
            } else {
                patch::replace(list, Value::Array(self.appended))
            });
            return;
        }
        out.extend(self.removed.iter().rev().map(|index| patch::remove(list.with_trailing_token(*index))));
        if self.appended.is_empty() {
            return;
        }
        if container.get(key).is_some_and(Value::is_array) {
            out.extend(self.appended.into_iter().map(|value| patch::add(list.with_trailing_token("-"), value)));
        } else {
            out.push(patch::add(list, Value::Array(self.appended)));
        }
    }
}

/// The last entry of that name, which is the one that counts.
pub(super) fn env_entry<'v>(container: &'v Value, name: &str) -> Option<(usize, &'v Value)> {
    items(container, "env").iter().enumerate().rev().find(|(_, entry)| text(entry, "name") == name)
}

/// The entry has that literal value; an absent value is an empty one.
pub(super) fn has_value(entry: &Value, value: &str) -> bool {
    text(entry, "value") == value && entry.get("valueFrom").is_none_or(Value::is_null)
}

/// The entry gives what we set: the reference, where there is one, else the text.
fn gives(entry: &Value, value: &str, from: Option<&Value>) -> bool {
    match from {
        Some(from) => entry.get("valueFrom") == Some(from) && text(entry, "value").is_empty(),
        None => has_value(entry, value),
    }
}

/// Where a variable's value comes from; what else stands in an entry is not ours.
const SOURCES: [&str; 2] = ["value", "valueFrom"];

/// What an entry gives.
pub(super) fn given(entry: &Value) -> Map<String, Value> {
    SOURCES.into_iter().filter_map(|key| Some((key.to_owned(), entry.get(key)?.clone()))).collect()
}

/// Lets an entry give `wanted` and nothing else.
fn set_members(entry: &Value, place: &PointerBuf, wanted: &Map<String, Value>, out: &mut Vec<Operation>) {
    for key in SOURCES {
        let at = place.with_trailing_token(key);
        match (entry.get(key), wanted.get(key)) {
            (seen, Some(value)) if seen != Some(value) => out.push(patch::add(at, value.clone())),
            (Some(_), None) => out.push(patch::remove(at)),
            _ => {}
        }
    }
}

/// Whether a handler may be addressed: `livenessProbe.httpGet`, never anything a forged annotation names.
fn handler_path(at: &str) -> Option<Vec<&str>> {
    let tokens: Vec<&str> = at.split('.').collect();
    let (action, handler) = tokens.split_last()?;
    (super::probes::ACTIONS.contains(action) && super::pod::HANDLERS.contains(&handler)).then_some(tokens)
}

fn handler_port<'v>(container: &'v Value, at: &str) -> Option<&'v Value> {
    handler_path(at)?.into_iter().try_fold(container, |value, token| value.get(token))?.get("port")
}

fn port_entry(container: &Value, index: usize) -> Option<&Value> {
    items(container, "ports").get(index)
}

fn is_port(value: Option<&Value>, port: u16) -> bool {
    value.and_then(Value::as_u64) == Some(u64::from(port))
}

fn put_back(
    edit: &Edit,
    container: &Value,
    at: &PointerBuf,
    lists: &mut [ListOperations; 2],
    out: &mut Vec<Operation>,
) {
    match edit {
        Edit::Env { name, value, from, was, .. } => {
            let Some((index, entry)) = env_entry(container, name) else { return };
            if !gives(entry, value, from.as_ref()) {
                return;
            }
            match was {
                Some(was) => {
                    let place = at.with_trailing_token("env").with_trailing_token(index);
                    set_members(entry, &place, was, &mut lists[0].replaced);
                }
                None => lists[0].removed.push(index),
            }
        }
        Edit::Mount { volume, path, .. } => {
            let found = items(container, "volumeMounts")
                .iter()
                .position(|mount| text(mount, "mountPath") == path && text(mount, "name") == volume);
            lists[1].removed.extend(found);
        }
        Edit::Port { index, from, to, moved, .. } => {
            let Some(entry) = port_entry(container, *index).filter(|entry| is_port(entry.get("containerPort"), *to))
            else {
                return;
            };
            let place = at.with_trailing_token("ports").with_trailing_token(*index);
            out.push(patch::replace(place.with_trailing_token("containerPort"), *from));
            for (key, value) in moved.iter().filter(|(key, _)| entry.get(key.as_str()).is_none()) {
                out.push(patch::add(place.with_trailing_token(key), value.clone()));
            }
        }
        Edit::Handler { at: handler, was, to, .. } => {
            if is_port(handler_port(container, handler), *to) {
                out.push(patch::replace(handler_pointer(at, handler), was.clone()));
            }
        }
    }
}

fn handler_pointer(at: &PointerBuf, handler: &str) -> PointerBuf {
    let mut pointer = at.clone();
    handler.split('.').chain(["port"]).for_each(|token| pointer.push_back(token));
    pointer
}

fn put_in_place(
    edit: &Edit,
    container: &Value,
    at: &PointerBuf,
    lists: &mut [ListOperations; 2],
    out: &mut Vec<Operation>,
) {
    match edit {
        Edit::Env { name, value, from, .. } => {
            let (key, wanted) = match from {
                Some(from) => ("valueFrom", from.clone()),
                None => ("value", value.as_str().into()),
            };
            match env_entry(container, name) {
                None => lists[0].appended.push(json!({"name": name, key: wanted})),
                Some((_, entry)) if gives(entry, value, from.as_ref()) => {}
                Some((index, entry)) => {
                    let place = at.with_trailing_token("env").with_trailing_token(index);
                    let wanted = Map::from_iter([(key.to_owned(), wanted)]);
                    set_members(entry, &place, &wanted, &mut lists[0].replaced);
                }
            }
        }
        Edit::Mount { volume, path, sub_path, .. } => {
            let mounts = items(container, "volumeMounts");
            if !mounts.iter().any(|mount| text(mount, "mountPath") == path) {
                lists[1].appended.push(mount(volume, path, sub_path));
            }
        }
        Edit::Port { index, to, moved, .. } => {
            // An entry without a number is that of another container of the same name; the API server refuses such a Pod later.
            let Some((entry, number)) =
                port_entry(container, *index).and_then(|it| Some((it, it.get("containerPort")?)))
            else {
                return;
            };
            let place = at.with_trailing_token("ports").with_trailing_token(*index);
            if !is_port(Some(number), *to) {
                out.push(patch::replace(place.with_trailing_token("containerPort"), *to));
            }
            for key in moved.keys().filter(|key| entry.get(key.as_str()).is_some()) {
                out.push(patch::remove(place.with_trailing_token(key)));
            }
        }
        Edit::Handler { at: handler, to, .. } => {
            if handler_port(container, handler).is_some_and(|port| !is_port(Some(port), *to)) {
                out.push(patch::replace(handler_pointer(at, handler), *to));
            }
        }
    }
}

/// The operations that put `wanted` in place in one container and take `recorded` edits back that are not wanted.
pub(super) fn operations(
    container: &Value,
    at: &PointerBuf,
    wanted: &[&Edit],
    recorded: &[&Edit],
    out: &mut Vec<Operation>,
) {
    let mut lists = [ListOperations::default(), ListOperations::default()];
    for edit in recorded.iter().filter(|old| !wanted.iter().any(|new| new.same_place(old))) {
        put_back(edit, container, at, &mut lists, out);
    }
    for edit in wanted {
        put_in_place(edit, container, at, &mut lists, out);
    }
    let [env, mounts] = lists;
    env.finish(container, at, "env", out);
    mounts.finish(container, at, "volumeMounts", out);
}
