//! Which ConfigMaps a namespace lacks, and which of ours are out of date.
//!
//! In: the namespace's workloads and ConfigMaps, the templates of our own namespace, the configuration. Out: create or
//! refresh. Promises: a ConfigMap that is not ours, or that a person has edited since we wrote it, is left alone;
//! nothing is deleted; of a template texts alone are copied, so one that has nothing but `binaryData` changes no copy, and what is left out of one that
//! has both is told. What we wrote is remembered in the object itself, as a digest. Where all of them are there, changes of workloads,
//! which are most of what happens in a namespace, have nothing planned.

use std::collections::BTreeMap;

use serde_json::json;

use super::memory::{NamespaceConfig, Note};
use crate::admission::inject::needs;
use crate::config::content::digest;
use crate::config::defaults::config_map_data_in;
use crate::config::resolved::Resolved;
use crate::controllers::looks;
use crate::controllers::scaffold::controller::Own;
use crate::controllers::scaffold::plan::{self as scaffold, Name, Op, Report, Row, escaped};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::decode::wire::binary::BINARY;
use crate::store::{ConfigMapSeen, Key, Kind, LARGEST_TEXT, Observed, Store};

/// The controller's name.
pub const NAME: Name = looks::NAMESPACE_CONFIG;

type Context<'a> = scaffold::Context<'a, NamespaceConfig>;
type Plan = scaffold::Plan<Note>;

/// The controller's row. Its items are namespaces.
pub const ROW: Row<NamespaceConfig> = Row { controller: NAME, touched, of_namespace, plan };

fn touched(store: &Store, own: &Own<NamespaceConfig>, kind: Kind, key: &Key) -> Vec<Key> {
    let namespace = || Key::new(&key.namespace, "");
    let unsettled = |namespace: &Key| !own.of(namespace).is_some_and(|note| note.settled);
    match kind {
        // A template of our own namespace concerns everybody.
        Kind::ConfigMap if *key.namespace == *store.operator_namespace() => {
            store.namespaces().map(|name| Key::new(name, "")).collect()
        }
        Kind::ConfigMap => vec![namespace()],
        Kind::Namespace => vec![Key::new(&key.name, "")],
        kind if kind == Kind::AgentRuntime || kind.workload().is_some() => {
            Some(namespace()).filter(unsettled).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn of_namespace(_: &Store, namespace: &str) -> Vec<Key> {
    vec![Key::new(namespace, "")]
}

fn plan(cx: Context<'_>) -> Plan {
    let namespace = &*cx.key.namespace;
    if namespace == cx.store.operator_namespace() {
        return Plan::of(keys::NAMESPACE_CONFIG_MAPS.into_iter().filter_map(|name| left_out(&cx, name)).collect());
    }
    let Some(view) = cx.facts.snapshot.namespace(namespace) else { return Plan::nothing() };
    if cx.store.namespace(namespace).is_none() || !enrolled(&cx, namespace) {
        return Plan::nothing();
    }
    let desired = |name: &str| {
        let template = cx.store.config_map(cx.store.operator_namespace(), name);
        let built_in = || config_map_data_in(name, &cx.facts.platform, &view.resolved);
        match template {
            // Too large to be kept: what was made from it before stays, and who comes now gets the same; what is built in never takes its place.
            Some((seen, _)) if seen.size > LARGEST_TEXT => {
                said_before(&cx, name, &view.resolved).filter(|data| built_in().as_ref() != Some(data))
            }
            Some((seen, _)) if seen.binary.is_some() && seen.data.is_empty() => said_before(&cx, name, &view.resolved),
            Some((seen, _)) => Some((*seen.data).clone()),
            None => built_in(),
        }
    };
    let ops = keys::NAMESPACE_CONFIG_MAPS.into_iter().filter_map(|name| {
        let data = desired(name)?;
        match cx.store.config_map(namespace, name) {
            None => Some(create(namespace, name, &data)),
            Some((seen, observed)) => refresh(namespace, name, (seen, observed), &data),
        }
    });
    let ops: Vec<_> = ops.collect();
    // A failure is forgotten by a plan that has nothing to say, so that one comes first.
    let settled = ops.is_empty() && looks::failure_of_config_maps(cx.memory, namespace).is_none();
    Plan { note: Note { settled }, ..Plan::of(ops) }
}

/// What counts in place of a template that has nothing to copy, as admission goes by it; nothing where nobody knows what it said before.
fn said_before(cx: &Context<'_>, name: &str, resolved: &Resolved) -> Option<BTreeMap<String, String>> {
    let platform = &cx.facts.platform;
    let content = platform.namespace_config_map(name, resolved).filter(|_| !platform.resolved().unread);
    content.map(|content| (*content.data).clone())
}

/// Says which keys of a template no agent namespace gets. One that has nothing to copy at all is told with the configuration.
fn left_out(cx: &Context<'_>, name: &str) -> Option<Op> {
    let (seen, observed) = cx.store.config_map(&cx.key.namespace, name)?;
    let binary = seen.binary.as_deref().filter(|_| !seen.data.is_empty())?;
    let keys: Vec<String> = binary
        .entries()
        .filter_map(|(key, _)| key.strip_prefix(BINARY).filter(|key| !key.is_empty()).map(str::to_owned))
        .collect();
    let message = format!(
        "ConfigMap {name} is the template of those that agent namespaces get, and its keys in binaryData ({}) are not read, so none of them has these. \
         kubectl puts a file there that is no UTF-8 text. What to do: save the file as UTF-8 and make the ConfigMap from it anew, or mount what has to \
         be binary from a ConfigMap of another name",
        keys.join(", ")
    );
    Some(Op::Report(Report {
        kind: Kind::ConfigMap,
        about: Key::new(&cx.key.namespace, name),
        uid: observed.uid.to_string(),
        reason: Reason::NamespaceConfigUnreadable,
        message,
        since: seen.digest.to_string(),
    }))
}

/// Whether a Pod of the namespace is, or is about to be, injected.
fn enrolled(cx: &Context<'_>, namespace: &str) -> bool {
    cx.store.governed(namespace).chain(cx.store.asking(namespace)).any(|workload| {
        let template = workload.governed_template(&cx.facts.snapshot.labels);
        template.is_some_and(|template| needs(namespace, &workload.identity(), &template, &cx.facts.snapshot).enrolled)
    })
}

fn create(namespace: &str, name: &str, data: &BTreeMap<String, String>) -> Op {
    let body = json!({
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE},
            "annotations": {keys::ANNOTATION_CONTENT_DIGEST: digest(data)},
        },
        "data": data,
    });
    Op::Create { kind: Kind::ConfigMap, namespace: namespace.to_owned(), body }
}

/// A patch that brings ours up to date, unless a person has edited it or edits it before the patch arrives.
fn refresh(
    namespace: &str,
    name: &str,
    (seen, observed): (&ConfigMapSeen, &Observed),
    data: &BTreeMap<String, String>,
) -> Option<Op> {
    let wanted = digest(data);
    if !seen.is_as_written() || *seen.digest == *wanted {
        return None;
    }
    let label = format!("/metadata/labels/{}", escaped(keys::LABEL_APP_MANAGED_BY));
    let annotation = format!("/metadata/annotations/{}", escaped(keys::ANNOTATION_CONTENT_DIGEST));
    let unchanged = if seen.data.is_empty() {
        // That a map is not there cannot be tested, and a large text is not kept: the version stands for it.
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": observed.version.to_string()})
    } else {
        json!({"op": "test", "path": "/data", "value": &*seen.data})
    };
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": &*observed.uid},
        {"op": "test", "path": label, "value": keys::MANAGED_BY_DRAWBRIDGE},
        {"op": "test", "path": annotation, "value": seen.written.as_deref()},
        unchanged,
        {"op": "add", "path": annotation, "value": wanted},
        {"op": "add", "path": "/data", "value": data},
    ]);
    Some(Op::Edit { kind: Kind::ConfigMap, key: Key::new(namespace, name), operations })
}
