//! KAOS in `drawbridge status`: a row per Agent, ModelAPI and MCPServer of `kaos.tools`, with who waits for whom.
//!
//! In: the objects of a namespace, or of all, as the cluster has them. Out: a row each. What an Agent waits for is looked up among the objects
//! themselves, so that it is true while no operator runs, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result, Write};

use serde::Serialize;
use serde_json::Value;

use super::print::printed;
use crate::api::kaos_tools::read;
use crate::api::kaos_tools::shape::{Mode, Model, Runtime};
use crate::cli::io::shown;
use crate::cli::scope::Scope;
use crate::cli::survey::text;
use crate::cli::tool_names;
use crate::domain::printable::printable;
use crate::store::Kind;
use crate::workloads::kaos::names::STATUS_TAKEOVER;

/// One object of KAOS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "every member is documented in `shape::FIELDS`, from which the reference is made")]
pub struct KaosRow {
    pub namespace: String,
    pub kind: &'static str,
    pub name: String,
    pub what: String,
    pub phase: String,
    pub ready: bool,
    pub endpoint: Option<String>,
    pub waits_for: Vec<String>,
    pub message: String,
    pub takeover: Vec<String>,
    pub attention: bool,
    pub watched: bool,
}

const HEAD: [&str; 6] = ["NAMESPACE", "KAOS", "WHAT", "PHASE", "READY", "WAITS FOR"];
/// Longest message on one line.
const LINE: usize = 300;
/// The kinds, agents last: what they name stands above them.
pub(super) const KINDS: [Kind; 3] = [Kind::ModelApi, Kind::McpServer, Kind::KaosAgent];

/// Objects by kind, namespace and name.
type Known<'a> = BTreeMap<(&'static str, &'a str, &'a str), &'a Value>;

/// The rows of all of them, by namespace and kind.
pub(super) fn rows(objects: &[(Kind, &Value)], scope: &Scope) -> Vec<KaosRow> {
    rows_beside(objects, &BTreeSet::new(), scope)
}

/// The same beside kinds that may not be seen: that none of them is here says nothing.
pub(super) fn rows_beside(objects: &[(Kind, &Value)], unread: &BTreeSet<&'static str>, scope: &Scope) -> Vec<KaosRow> {
    let place = |kind: Kind, object: &'_ Value| -> (&'static str, String, String) {
        (kind.as_str(), text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
    };
    let known: Known<'_> = objects
        .iter()
        .map(|(kind, object)| {
            ((kind.as_str(), text(object, "/metadata/namespace"), text(object, "/metadata/name")), *object)
        })
        .collect();
    let mut rows: Vec<_> = objects
        .iter()
        .map(|(kind, object)| (place(*kind, object), row(*kind, object, (&known, unread), scope)))
        .collect();
    let order = |kind: &str| KINDS.iter().position(|one| one.as_str() == kind);
    rows.sort_by(|((kind, space, name), _), ((other, elsewhere, called), _)| {
        (space, order(kind), name).cmp(&(elsewhere, order(other), called))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(kind: Kind, object: &Value, (known, unread): (&Known<'_>, &BTreeSet<&'static str>), scope: &Scope) -> KaosRow {
    let namespace = text(object, "/metadata/namespace");
    let at = |pointer: &str| text(object, pointer).to_owned();
    let watched = scope.watches(namespace);
    let (what, waits_for) = match kind {
        Kind::KaosAgent => {
            let agent = read::agent(object).value;
            let model = match agent.model {
                Model::Named(model) => model,
                Model::Variable => "a model of a variable".to_owned(),
            };
            let names = std::iter::once((Kind::ModelApi, &agent.model_api))
                .chain(agent.mcp_servers.iter().map(|name| (Kind::McpServer, name)));
            let seen = names.filter(|(kind, _)| !unread.contains(kind.as_str()));
            let lacks = seen.filter_map(|(kind, name)| lack(known, kind, namespace, name)).collect();
            (format!("{model} of {}", agent.model_api), lacks)
        }
        Kind::ModelApi => {
            let api = read::model_api(object).value;
            let mode = if api.mode == Mode::Hosted { "Hosted" } else { "Proxy" };
            let offered = api.offered();
            let what = if offered.is_empty() { mode.to_owned() } else { format!("{mode}: {}", offered.join(", ")) };
            (what, Vec::new())
        }
        _ => {
            let what = match read::mcp_server(object).value.runtime {
                Runtime::Registered(name) => name,
                Runtime::Custom => "custom".to_owned(),
                Runtime::Package(package) => format!("package {package}"),
            };
            (tool_names::beside(what, object), Vec::new())
        }
    };
    let told = at("/status/phase");
    let nobody = !watched && told.is_empty();
    let phase = if told.is_empty() { "Pending".to_owned() } else { told };
    let ready = object.pointer("/status/ready").and_then(Value::as_bool).unwrap_or(false);
    let stalled = is_true(object, "Stalled");
    let missing = waits_for.iter().any(|one: &String| one.ends_with(MISSING));
    KaosRow {
        namespace: namespace.to_owned(),
        kind: kind.label(),
        name: at("/metadata/name"),
        what,
        message: if nobody { super::rows::not_watched(scope) } else { message(object) },
        attention: nobody || phase == "Failed" || stalled || missing,
        phase,
        ready,
        endpoint: Some(at("/status/endpoint")).filter(|endpoint| !endpoint.is_empty()),
        waits_for,
        takeover: if is_true(object, "TakeoverPending") { takeover(object) } else { Vec::new() },
        watched,
    }
}

/// What else the next change of an object does whose Deployment the KAOS operator made.
fn takeover(object: &Value) -> Vec<String> {
    let all = object.pointer(&format!("/status/{STATUS_TAKEOVER}/changes")).and_then(Value::as_array);
    let changes: Vec<_> =
        all.into_iter().flatten().filter_map(Value::as_str).map(|change| printable(change, LINE)).collect();
    if changes.is_empty() { vec![NOTHING_BESIDES.to_owned()] } else { changes }
}

/// What is said where only the digest and the owner of fields become others.
const NOTHING_BESIDES: &str = "nothing besides";

/// What is said of a name that nothing has.
const MISSING: &str = " (does not exist)";

/// What an Agent that names it waits for; `None`: it is there and ready.
fn lack(known: &Known<'_>, kind: Kind, namespace: &str, name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let called = format!("{}/{name}", kind.as_str());
    match known.get(&(kind.as_str(), namespace, name)) {
        None => Some(called + MISSING),
        Some(object) if object.pointer("/status/ready").and_then(Value::as_bool) == Some(true) => None,
        Some(_) => Some(called),
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    all.into_iter().any(|one| one["type"] == kind && one["status"] == "True")
}

/// What its status says: what keeps its Pods away, where that is known.
fn message(object: &Value) -> String {
    let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let stalled = all.into_iter().find(|one| one["type"] == "Stalled" && one["status"] == "True");
    let said = stalled.map_or_else(|| text(object, "/status/message"), |one| text(one, "/message"));
    printable(said, LINE)
}

/// A row in the columns of the workloads.
pub(super) fn beside_workloads(row: &KaosRow) -> [String; 10] {
    let dash = || "-".to_owned();
    let says = match (&row.waits_for[..], row.attention, &row.endpoint) {
        ([_, ..], ..) => format!("waits for {}", row.waits_for.join(", ")),
        ([], false, Some(endpoint)) if row.ready => endpoint.clone(),
        _ if row.message.is_empty() => dash(),
        _ => row.message.clone(),
    };
    [
        row.namespace.clone(),
        format!("{}/{}", row.kind, row.name),
        dash(),
        printable(&row.what, 44),
        dash(),
        dash(),
        dash(),
        dash(),
        row.phase.clone(),
        says,
    ]
}

/// The objects, and below them what those say that need a person; nothing when there are none.
pub(super) fn table(out: &mut dyn Write, rows: &[KaosRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let cut = |text: &str| printable(text, 44);
    let line = |row: &KaosRow| {
        let waits = if row.waits_for.is_empty() { "-".to_owned() } else { row.waits_for.join(", ") };
        let ready = if row.ready { "yes" } else { "no" };
        let called = format!("{}/{}", row.kind, row.name);
        printed(&[row.namespace.clone(), called, cut(&row.what), row.phase.clone(), ready.to_owned(), waits])
    };
    let lines: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(line)).collect();
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    writeln!(out)?;
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    for row in rows.iter().filter(|row| !row.takeover.is_empty()) {
        let (kind, name, namespace) = (row.kind, &row.name, &row.namespace);
        writeln!(
            out,
            "{kind}/{name} in {namespace} runs as the KAOS operator made it; its next change replaces its Pods and also changes: {}",
            row.takeover.join("; ")
        )?;
    }
    for row in rows.iter().filter(|row| row.attention) {
        let (kind, name, namespace) = (row.kind, &row.name, &row.namespace);
        let waits = match row.waits_for.first() {
            Some(_) if row.message.is_empty() => format!("waits for {}", row.waits_for.join(", ")),
            _ => row.message.clone(),
        };
        writeln!(
            out,
            "{kind}/{name} in {namespace}: {}; drawbridge explain {}/{name} -n {namespace}",
            shown(&waits),
            kind.to_lowercase()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: Kind, name: &str, spec: Value, status: Value) -> (Kind, Value) {
        (kind, json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status}))
    }

    fn of(objects: &[(Kind, Value)]) -> Vec<KaosRow> {
        let all: Vec<_> = objects.iter().map(|(kind, object)| (*kind, object)).collect();
        rows(&all, &Scope::default())
    }

    #[test]
    fn who_waits_for_whom_is_looked_up_among_the_objects_themselves() {
        let ready = json!({"phase": "Ready", "ready": true, "endpoint": "http://x"});
        let waits = json!({"phase": "Waiting", "ready": false, "message": "MCPServer none not found"});
        let clerk = json!({"modelAPI": "llm", "model": "fast", "mcpServers": ["stock", "none"]});
        let objects = [
            object(Kind::KaosAgent, "clerk", clerk, waits),
            object(Kind::KaosAgent, "auditor", json!({"modelAPI": "llm"}), ready.clone()),
            object(Kind::McpServer, "stock", json!({"runtime": "slack"}), json!({"phase": "Pending"})),
            object(Kind::ModelApi, "llm", json!({"mode": "Proxy", "proxyConfig": {"models": ["fast"]}}), ready),
        ];
        let rows = of(&objects);
        let told: Vec<_> =
            rows.iter().map(|row| (&*row.name, &*row.what, row.attention, row.waits_for.join(", "))).collect();
        assert_eq!(
            told,
            [
                ("llm", "Proxy: fast", false, String::new()),
                ("stock", "slack", false, String::new()),
                ("auditor", "smollm2:135m of llm", false, String::new()),
                ("clerk", "fast of llm", true, "MCPServer/stock, MCPServer/none (does not exist)".to_owned()),
            ]
        );
        let mut out = Vec::new();
        table(&mut out, &rows).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains("Agent.kaos.tools/clerk in shop: MCPServer none not found; drawbridge explain agent.kaos.tools/clerk -n shop"), "{said}");
        assert!(said.lines().any(|line| line.starts_with("shop       MCPServer/stock")), "{said}");
    }

    #[test]
    fn of_a_kind_that_may_not_be_seen_nothing_is_called_absent() {
        let clerk = object(
            Kind::KaosAgent,
            "clerk",
            json!({"modelAPI": "llm", "mcpServers": ["stock"]}),
            json!({"phase": "Ready", "ready": true}),
        );
        let unread = BTreeSet::from([Kind::ModelApi.as_str()]);
        let rows = rows_beside(&[(clerk.0, &clerk.1)], &unread, &Scope::default());
        assert_eq!(rows[0].waits_for, ["MCPServer/stock (does not exist)"]);
        let unread = BTreeSet::from([Kind::ModelApi.as_str(), Kind::McpServer.as_str()]);
        let rows = rows_beside(&[(clerk.0, &clerk.1)], &unread, &Scope::default());
        assert!(rows[0].waits_for.is_empty() && !rows[0].attention, "{rows:?}");
    }

    #[test]
    fn what_the_operator_before_made_and_which_tools_there_are_is_told() {
        let pending = |changes: Value| {
            json!({"phase": "Ready", "ready": true, "takeover": {"changes": changes},
                "conditions": [{"type": "TakeoverPending", "status": "True"}]})
        };
        let listed = json!({"phase": "Ready", "ready": true, "availableTools": ["add", "echo"]});
        let rows = of(&[
            object(
                Kind::McpServer,
                "a",
                json!({"runtime": "x"}),
                pending(json!(["log level: LOG_LEVEL", "probe settings: p"])),
            ),
            object(Kind::McpServer, "b", json!({"runtime": "x"}), pending(Value::Null)),
            object(Kind::McpServer, "c", json!({"runtime": "x"}), listed),
        ]);
        let told: Vec<_> = rows.iter().map(|row| (&*row.what, row.takeover.len(), row.attention)).collect();
        assert_eq!(told, [("x", 2, false), ("x", 1, false), ("x: add, echo", 0, false)]);
        let mut out = Vec::new();
        table(&mut out, &rows).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains("MCPServer/a in shop runs as the KAOS operator made it; its next change replaces its Pods and also changes: log level: LOG_LEVEL; probe settings: p"), "{said}");
        assert!(said.contains("changes: nothing besides"), "{said}");
    }

    #[test]
    fn what_stalls_or_failed_needs_a_person_with_its_own_words() {
        let stalled = json!({"phase": "Pending", "message": "0/1", "conditions": [{"type": "Stalled", "status": "True", "message": "Pods are refused"}]});
        let failed = json!({"phase": "Failed", "message": "wrong"});
        let rows = of(&[
            object(Kind::McpServer, "a", json!({"runtime": "x"}), stalled),
            object(Kind::McpServer, "b", json!({"runtime": "x"}), failed),
        ]);
        let told: Vec<_> = rows.iter().map(|row| (row.attention, &*row.message)).collect();
        assert_eq!(told, [(true, "Pods are refused"), (true, "wrong")]);
    }
}
