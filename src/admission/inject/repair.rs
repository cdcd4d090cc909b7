//! A surviving container of ours: others may have been here.
//!
//! In: the container as it is, and as we would render it. Out: operations that put the protected fields back
//! (command, args, restart policy, our ports, environment and mounts, user, group, capabilities). Image, resources,
//! startup probe, pull policy and whatever was added stay, unless we ourselves would now render another image, other
//! resources or another probe.
//! A container that came with the object (a manifest injected beforehand, or a forged marker) gets no such credit:
//! nobody but the requester was there, so it is as we render it or it is rendered anew.

use serde_json::{Map, Value};

use super::containers::env;
use super::parts::Rendered;
use super::pod::{items, list, text};
use super::status::Record;
use super::token;
use crate::admission::patch::{self, Operation, PointerBuf};
use crate::domain::keys;

/// `present` says everything that `ours` says; what defaulting added does not matter, empty texts may be dropped.
fn covers(present: Option<&Value>, ours: &Value) -> bool {
    match (present, ours) {
        (None | Some(Value::Null), Value::String(text)) => text.is_empty(),
        (Some(Value::Object(present)), Value::Object(ours)) => {
            ours.iter().all(|(key, value)| covers(present.get(key), value))
        }
        (Some(Value::Array(present)), Value::Array(ours)) => {
            present.len() == ours.len() && present.iter().zip(ours).all(|(present, ours)| covers(Some(present), ours))
        }
        (Some(present), ours) => present == ours,
        (None, _) => false,
    }
}

/// What decides nothing about a container of ours.
const INCIDENTAL: [&str; 2] = ["imagePullPolicy", "resources"];
/// What defaulting adds to a container. At any other path the kubelet would lay its own empty file over one of the image or of a mount.
const DEFAULTED: [(&str, &str); 2] =
    [("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File")];
/// What OpenShift's admission adds to a security context.
const ASSIGNED: [&str; 2] = ["runAsUser", "seLinuxOptions"];

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The container is what we would render, give or take what the API server itself adds.
pub(super) fn is_as_rendered(present: &Value, ours: &Value) -> bool {
    let (Some(seen), Some(wanted)) = (present.as_object(), ours.as_object()) else { return false };
    let all = seen.keys().chain(wanted.keys()).filter(|key| !INCIDENTAL.contains(&key.as_str()));
    all.into_iter().all(|key| match (seen.get(key), wanted.get(key)) {
        (Some(extra), None) => is_nothing(extra) || DEFAULTED.contains(&(key.as_str(), extra.as_str().unwrap_or(""))),
        (Some(seen), Some(wanted)) => match key.as_str() {
            "env" | "ports" => same_entries(list(seen).iter(), list(wanted)),
            // The signer's own mount of a token is one of ours.
            "volumeMounts" => same_entries(list(seen).iter().filter(|mount| !token::is_plugins(mount)), list(wanted)),
            "securityContext" => same_context(seen, wanted),
            _ => covers(Some(seen), wanted),
        },
        (None, _) => false,
    })
}

fn same_entries<'v>(seen: impl Iterator<Item = &'v Value>, wanted: &[Value]) -> bool {
    let seen: Vec<&Value> = seen.collect();
    seen.len() == wanted.len()
        && seen.into_iter().zip(wanted).all(|(seen, wanted)| {
            matches(seen, wanted)
                && seen
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(key, value)| wanted.get(key).is_some() || is_nothing(value) || key == "recursiveReadOnly")
        })
}

fn same_context(seen: &Value, wanted: &Value) -> bool {
    let Some(context) = seen.as_object() else { return false };
    same_capabilities(context, &wanted["capabilities"])
        && wanted
            .as_object()
            .into_iter()
            .flatten()
            .all(|(key, value)| key == "capabilities" || covers(context.get(key), value))
        && context
            .iter()
            .all(|(key, value)| wanted.get(key).is_some() || ASSIGNED.contains(&key.as_str()) || is_nothing(value))
}

/// The operations on the container at `at`.
pub(super) fn operations(
    present: &Value,
    ours: &Rendered,
    recorded: &Record,
    at: &PointerBuf,
    out: &mut Vec<Operation>,
) {
    for key in ["command", "args", "restartPolicy"] {
        match (present.get(key).filter(|value| !value.is_null()), ours.value().get(key)) {
            (Some(seen), Some(wanted)) if seen == wanted => {}
            (_, Some(wanted)) => out.push(patch::add(at.with_trailing_token(key), wanted.clone())),
            (Some(_), None) => out.push(patch::remove(at.with_trailing_token(key))),
            (None, None) => {}
        }
    }
    replaceable(present, ours, recorded, at, out);
    startup_probe(present, ours, recorded, at, out);
    security_context(present, ours, at, out);
    entries(present, ours.value(), at, &PORTS, out);
    entries(present, ours.value(), at, &ENV, out);
    entries(present, ours.value(), at, &MOUNTS, out);
}

/// Image and resources: somebody else's wish stays while ours has not changed.
fn replaceable(present: &Value, ours: &Rendered, recorded: &Record, at: &PointerBuf, out: &mut Vec<Operation>) {
    let unchanged = [recorded.image == ours.record.image, recorded.resources == ours.record.resources];
    for (key, unchanged) in ["image", "resources"].into_iter().zip(unchanged) {
        let seen = present.get(key).filter(|value| !value.is_null());
        let wanted = ours.value().get(key);
        if let Some(wanted) = wanted
            && (seen.is_none() || !unchanged)
            && seen != Some(wanted)
        {
            out.push(patch::add(at.with_trailing_token(key), wanted.clone()));
        }
    }
}

/// What tells that the container has started, and belongs to one that stays: it asks for a port, which is another one where the agent has moved
/// since, and nobody would ever answer at the old one. The API server refuses it on an init container that ends.
const STARTUP_PROBE: &str = "startupProbe";

/// The startup probe: somebody else's wish stays while ours has not changed.
fn startup_probe(present: &Value, ours: &Rendered, recorded: &Record, at: &PointerBuf, out: &mut Vec<Operation>) {
    if recorded.digest == ours.record.digest {
        return;
    }
    let seen = present.get(STARTUP_PROBE).filter(|value| !value.is_null());
    let stayed = present.get("restartPolicy").is_some_and(|policy| *policy == "Always");
    let ends = stayed && ours.value().get("restartPolicy").is_none();
    match (seen, ours.value().get(STARTUP_PROBE)) {
        (seen, Some(wanted)) if !covers(seen, wanted) => {
            out.push(patch::add(at.with_trailing_token(STARTUP_PROBE), wanted.clone()));
        }
        (Some(_), None) if ends => out.push(patch::remove(at.with_trailing_token(STARTUP_PROBE))),
        _ => {}
    }
}

fn security_context(present: &Value, ours: &Rendered, at: &PointerBuf, out: &mut Vec<Operation>) {
    let at = at.with_trailing_token("securityContext");
    let Some(wanted) = ours.value().get("securityContext") else { return };
    let Some(seen) = present.get("securityContext").and_then(Value::as_object) else {
        out.push(patch::add(at, wanted.clone()));
        return;
    };
    for key in ["runAsUser", "runAsGroup"] {
        if let Some(wanted) = wanted.get(key).filter(|wanted| seen.get(key) != Some(*wanted)) {
            out.push(patch::add(at.with_trailing_token(key), wanted.clone()));
        }
    }
    if let Some(wanted) = wanted.get("capabilities").filter(|wanted| !same_capabilities(seen, wanted)) {
        out.push(patch::add(at.with_trailing_token("capabilities"), wanted.clone()));
    }
}

/// The same are added, and at least ours are dropped.
fn same_capabilities(context: &Map<String, Value>, wanted: &Value) -> bool {
    let Some(seen) = context.get("capabilities") else { return false };
    let all_in = |these: &[Value], those: &[Value]| these.iter().all(|value| those.contains(value));
    all_in(items(seen, "add"), items(wanted, "add"))
        && all_in(items(wanted, "add"), items(seen, "add"))
        && all_in(items(wanted, "drop"), items(seen, "drop"))
}

/// How entries of a list are told apart, and which of those we did not render are ours all the same.
struct EntryList {
    key: &'static str,
    same: fn(&Value, &Value) -> bool,
    stale: fn(&Value) -> bool,
}

const PORTS: EntryList = EntryList {
    key: "ports",
    same: |seen, ours| {
        text(seen, "name") == text(ours, "name") && (!text(ours, "name").is_empty() || covers(Some(seen), ours))
    },
    stale: |_| false,
};
const ENV: EntryList = EntryList {
    key: "env",
    same: |seen, ours| text(seen, "name") == text(ours, "name"),
    stale: |seen| {
        let name = text(seen, "name");
        env::FROM_CONFIG.contains(&name) || env::FIXED.contains(&name)
    },
};
const MOUNTS: EntryList = EntryList {
    key: "volumeMounts",
    same: |seen, ours| text(seen, "mountPath") == text(ours, "mountPath"),
    stale: |seen| keys::OUR_VOLUMES.contains(&text(seen, "name")),
};

/// Members that make another entry of one of ours: a literal beside a reference, a part of a volume instead of all of it,
/// a mount that cannot be written, a way in from the node.
const DECISIVE: [&str; 7] = ["value", "valueFrom", "subPath", "subPathExpr", "readOnly", "hostPort", "hostIP"];

/// The entry says what ours says, and nothing that makes another one of it.
fn matches(seen: &Value, ours: &Value) -> bool {
    let says_nothing = |value: &Value| is_nothing(value) || *value == false || *value == 0;
    let decides_otherwise = |(key, value): (&String, &Value)| {
        DECISIVE.contains(&key.as_str()) && ours.get(key).is_none() && !says_nothing(value)
    };
    covers(Some(seen), ours) && !seen.as_object().is_some_and(|members| members.iter().any(decides_otherwise))
}

/// Puts our entries back, once each; entries that others added stay.
fn entries(present: &Value, ours: &Value, at: &PointerBuf, kind: &EntryList, out: &mut Vec<Operation>) {
    let (seen, wanted) = (items(present, kind.key), items(ours, kind.key));
    let at = at.with_trailing_token(kind.key);
    let mut placed = vec![false; wanted.len()];
    let mut extra = Vec::new();
    for (index, entry) in seen.iter().enumerate() {
        match wanted.iter().position(|wanted| (kind.same)(entry, wanted)) {
            Some(which) if placed[which] => extra.push(index),
            Some(which) => {
                placed[which] = true;
                if !matches(entry, &wanted[which]) {
                    out.push(patch::replace(at.with_trailing_token(index), wanted[which].clone()));
                }
            }
            None if (kind.stale)(entry) => extra.push(index),
            None => {}
        }
    }
    out.extend(extra.into_iter().rev().map(|index| patch::remove(at.with_trailing_token(index))));
    let missing: Vec<Value> =
        wanted.iter().zip(&placed).filter(|(_, placed)| !**placed).map(|(entry, _)| entry.clone()).collect();
    if missing.is_empty() {
        return;
    }
    if present.get(kind.key).is_some_and(Value::is_array) {
        out.extend(missing.into_iter().map(|entry| patch::add(at.with_trailing_token("-"), entry)));
    } else {
        out.push(patch::add(at, Value::Array(missing)));
    }
}
