//! What is wrong with a `podSpec` before anything is merged: entries without the key that they are merged by, two with one key, and lists that
//! are too long to be merged, wherever they stand.
//!
//! Kubernetes merges these lists by that key; with a key twice the result depends on the order, and a Deployment with it is refused.

use std::collections::BTreeMap;

use serde_json::Value;

use super::env;
use super::place::{FEWER, Found, Place, bounded};
use crate::api::findings::Fault;
use crate::api::kaos_tools::MOST_ITEMS;
use crate::domain::reason::Reason;

/// Lists of a Pod, and the members by which their entries are told apart.
const OF_POD: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
];
/// Lists of a container.
const OF_CONTAINER: &[(&str, &[&str])] = &[
    ("env", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("ports", &["containerPort", "protocol"]),
];

pub(super) fn check(pod: &Place<'_>, found: &mut Found) {
    OF_POD.iter().for_each(|(list, keys)| keyed(&pod.at(list), keys, found));
    for list in ["containers", "initContainers"] {
        let Some(items) = pod.at(list).value.and_then(Value::as_array) else { continue };
        for (index, item) in items.iter().take(MOST_ITEMS).enumerate() {
            let container = Place::new(Some(item), format!("{}.{list}[{index}]", pod.path));
            OF_CONTAINER.iter().for_each(|(list, keys)| keyed(&container.at(list), keys, found));
            sizes(&container.at("env"), found);
        }
    }
    if let Some(value) = pod.value {
        long(value, &mut pod.path.clone(), found);
    }
}

/// Lists that have more items than are read; the merge compares their items with each other, orders and directives included.
fn long(value: &Value, path: &mut String, found: &mut Found) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                path.push('.');
                path.push_str(name);
                long(member, path, found);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            bounded(path, items.len(), (MOST_ITEMS, FEWER), found);
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                long(item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Entries of a list by their key.
fn keyed(list: &Place<'_>, keys: &[&str], found: &mut Found) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in list.items(found).into_iter().enumerate() {
        // A directive of the merge, such as `$patch: replace`, needs no key.
        if !item.is_mapping(found) || item.at("$patch").is_there() {
            continue;
        }
        let (first, more) = (item.at(keys[0]), keys.get(1).map(|key| item.at(key)));
        let Some(key) = first.value.map(told).filter(|key| !key.is_empty()) else {
            found.required(&first.path, "entries of this list are told apart by it");
            continue;
        };
        // A protocol that is not said is TCP.
        let more = more.map(|place| place.value.map_or_else(|| "TCP".to_owned(), told));
        let whole = more.iter().fold(key.clone(), |whole, more| format!("{whole}/{more}"));
        if let Some(before) = seen.insert(whole, index) {
            let sentence = format!("repeats that of {}[{before}]", list.path);
            let fault = Fault::new(Reason::DuplicateName, &first.path, sentence, "keep one of the two");
            found.fault(fault.seeing(&key));
        }
    }
}

fn told(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn sizes(list: &Place<'_>, found: &mut Found) {
    for item in list.items(found) {
        let (name, value) = (item.at("name"), item.at("value"));
        if let (Some(Value::String(name)), Some(Value::String(text))) = (name.value, value.value) {
            env::fits(name, text, &value.path, found);
        }
    }
}
