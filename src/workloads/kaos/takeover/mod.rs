//! Whether a Deployment that an earlier operator made means what is wanted of it, and what a takeover will change.
//!
//! In: that Deployment as it is stored, the template that is wanted, the object that asks. Out: each difference, with the row of the closed table
//! ([`Row`]) that says why it is none to roll for; what no row has counts. Promises: pure; what the API server fills in, how a quantity is
//! spelled, in which order a keyed list stands and what others add to labels and annotations is no difference; values of
//! variables are never told, since they may be secrets.

mod form;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

use super::compose::{ANNOTATION_DEFAULT_CONTAINER, Composed};
use super::litellm::OPEN;
use super::names::{ANNOTATION_CONFIG, ANNOTATION_HASH, Role};
use crate::domain::keys;
use crate::domain::printable::printable;

/// Why a difference is none to make Pods again for: it goes with the next change. Ruling 21, and what was measured besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A variable that stands there and that nothing asks for.
    LeftOver,
    /// How a hosted model is pulled.
    Pull,
    /// The variable without which a current LiteLLM ends at start.
    Open,
    /// A text of the user's in which the kubelet expands `$(NAME)` until then.
    Dollars,
    /// A field of the object that the earlier operator did not act on.
    NotActedOn,
    /// A digest of the configuration that is mounted.
    Configuration,
    /// The level of logs that the platform has.
    LogLevel,
    /// The numbers of a probe.
    Probes,
    /// What agents of the oldest spelling are told.
    DebugMemory,
    /// How a package is installed and run.
    Package,
    /// Annotations that are the operator's.
    Annotations,
}

impl Row {
    /// All of them.
    pub const ALL: [Row; 11] = [
        Row::LeftOver,
        Row::Pull,
        Row::Open,
        Row::Dollars,
        Row::NotActedOn,
        Row::Configuration,
        Row::LogLevel,
        Row::Probes,
        Row::DebugMemory,
        Row::Package,
        Row::Annotations,
    ];

    /// What else the next change does.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Row::LeftOver => "variables that nothing asks for are removed",
            Row::Pull => "the model is pulled without a fixed wait",
            Row::Open => "a current LiteLLM starts only with",
            Row::Dollars => "$ is escaped, so that the kubelet expands nothing in",
            Row::NotActedOn => "fields of the object that had no effect so far",
            Row::Configuration => "Pods follow their mounted configuration",
            Row::LogLevel => "log level of the platform file",
            Row::Probes => "probe settings",
            Row::DebugMemory => "variable of agents of the oldest spelling",
            Row::Package => "the package is installed by another command",
            Row::Annotations => "annotations that Drawbridge adds",
        }
    }
}

/// What is known of the object that asks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Of which kind it is.
    pub role: Role,
    /// The object.
    pub object: &'a Value,
    /// What is made of it.
    pub composed: &'a Composed,
    /// The package that it runs, of a tool server of a package.
    pub package: Option<&'a str>,
}

/// How what there is differs from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    /// Paths of what counts, in order.
    pub counts: Vec<String>,
    /// What goes with the next change: paths, or names of variables and annotations.
    pub later: BTreeMap<Row, Vec<String>>,
}

/// Most names that are told of one row.
const NAMES: usize = 8;
/// Bytes of what is told of one row, at most.
const LINE: usize = 256;

impl Differences {
    /// What else the next change does, a line for each row.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |(row, names): (&Row, &Vec<String>)| {
            let more = names.len().saturating_sub(NAMES);
            let mut all = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 {
                all.push_str(&format!(" and {more} more"));
            }
            printable(&format!("{}: {all}", row.words()), LINE)
        };
        self.later.iter().map(line).collect()
    }
}

/// One place where two forms differ.
struct Difference<'v> {
    path: Vec<String>,
    live: Option<&'v Value>,
    wanted: Option<&'v Value>,
}

/// How the `spec` of a Deployment differs from the template that is wanted, and from the number of Pods where that is wanted.
#[must_use]
pub fn differences(live: &Value, wanted: &Value, asker: &Asker<'_>) -> Differences {
    let mut found = Differences::default();
    let template = live.get("template").unwrap_or(&Value::Null);
    let nothing = Value::Null;
    let spec = |template: &Value| form::form(template.get("spec").unwrap_or(&nothing));
    let (own, asked) = (spec(template), spec(wanted));
    let mut all = Vec::new();
    walk(&mut Vec::new(), (Some(&own), Some(&asked)), &mut all);
    for one in &all {
        match asker.row(one) {
            Some(row) => found.later.entry(row).or_default().push(name(one, row)),
            None => found.counts.push(printed(&one.path)),
        }
    }
    for map in ["labels", "annotations"] {
        let texts = |template: &Value| template.pointer(&format!("/metadata/{map}")).cloned().unwrap_or_default();
        let (own, asked) = (texts(template), texts(wanted));
        // What others have added there is nobody's business here, and stays.
        for (key, value) in asked.as_object().into_iter().flatten().filter(|(key, value)| own.get(*key) != Some(*value))
        {
            let row = match key.as_str() {
                ANNOTATION_CONFIG => Some(Row::Configuration),
                ANNOTATION_HASH | keys::ANNOTATION_PORT_VARIABLE | ANNOTATION_DEFAULT_CONTAINER => {
                    Some(Row::Annotations)
                }
                _ => None,
            };
            match row.filter(|_| map == "annotations" && value.is_string()) {
                Some(row) => found.later.entry(row).or_default().push(key.clone()),
                None => found.counts.push(format!("metadata.{map}[{key}]")),
            }
        }
    }
    if let Some(replicas) = asker.composed.request.replicas
        && live.get("replicas").and_then(Value::as_i64).unwrap_or(1) != replicas
    {
        found.later.entry(Row::NotActedOn).or_default().push("replicas".to_owned());
    }
    found
}

fn walk<'v>(path: &mut Vec<String>, pair: (Option<&'v Value>, Option<&'v Value>), found: &mut Vec<Difference<'v>>) {
    let (live, wanted) = pair;
    if live == wanted {
        return;
    }
    // A variable is one thing, whatever of it differs.
    let whole = path.len() == 4 && path[2] == "env";
    match (live, wanted) {
        (Some(Value::Object(own)), Some(Value::Object(asked))) if !whole => {
            let names = own.keys().chain(asked.keys().filter(|name| !own.contains_key(*name)));
            for name in names {
                path.push(name.clone());
                walk(path, (own.get(name), asked.get(name)), found);
                path.pop();
            }
        }
        _ => {
            // All variables of a container, or all members of a probe: one by one, so that each is judged by itself.
            let splits = path.len() == 3 && path[2] == "env";
            if splits {
                for (at, side) in [live, wanted].into_iter().enumerate() {
                    for (name, value) in side.and_then(Value::as_object).into_iter().flatten() {
                        let mut path = path.clone();
                        path.push(name.clone());
                        let value = Some(value);
                        let (live, wanted) = if at == 0 { (value, None) } else { (None, value) };
                        found.push(Difference { path, live, wanted });
                    }
                }
            } else {
                found.push(Difference { path: path.clone(), live, wanted });
            }
        }
    }
}

/// Lists whose items are told by their key in brackets.
const LISTS: [&str; 8] =
    ["containers", "initContainers", "env", "ports", "volumes", "volumeMounts", "volumeDevices", "imagePullSecrets"];

fn printed(path: &[String]) -> String {
    let mut text = String::new();
    for (at, part) in path.iter().enumerate() {
        match at.checked_sub(1).map(|before| &*path[before]) {
            Some(before) if LISTS.contains(&before) => text.push_str(&format!("[{part}]")),
            Some(_) => text.push_str(&format!(".{part}")),
            None => text.push_str(part),
        }
    }
    printable(&text, LINE)
}

/// As what a difference is told: a variable by its name.
fn name(one: &Difference<'_>, row: Row) -> String {
    match row {
        Row::LeftOver | Row::Open | Row::Dollars | Row::LogLevel | Row::DebugMemory => {
            one.path.last().cloned().unwrap_or_default()
        }
        _ => printed(&one.path),
    }
}

const NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"];
const PROBES: [&str; 2] = ["livenessProbe", "readinessProbe"];

impl Asker<'_> {
    /// The row that has a difference.
    fn row(&self, one: &Difference<'_>) -> Option<Row> {
        let path: Vec<&str> = one.path.iter().map(String::as_str).collect();
        let main = self.role.container();
        match path[..] {
            ["initContainers", "pull-model" | "pull-server", ..] if self.role == Role::ModelApi => Some(Row::Pull),
            ["containers", container, "env", name] if container == main => self.variable(name, one),
            ["containers", container, probe, number]
                if container == main && PROBES.contains(&probe) && NUMBERS.contains(&number) =>
            {
                (!self.patches(probe)).then_some(Row::Probes)
            }
            ["containers", container, "command" | "args", ..] if container == main && self.installs(one.live) => {
                Some(Row::Package)
            }
            ["containers", container, member, ..] if container == main => {
                self.not_acted_on(member).then_some(Row::NotActedOn)
            }
            _ => None,
        }
    }

    fn variable(&self, name: &str, one: &Difference<'_>) -> Option<Row> {
        let literal = |side: Option<&Value>| side?.get("value")?.as_str().map(str::to_owned);
        let made = self.composed.variables.iter().find(|made| made.name == name);
        let from = made.map(|made| &*made.from).unwrap_or_default();
        // What the user wrote as a variable is compared as it stands.
        let generated = made.is_some() && !from.contains(".env");
        match (one.live, one.wanted) {
            (Some(_), None) => Some(Row::LeftOver),
            (None, Some(_)) if name == OPEN && generated => Some(Row::Open),
            (None, Some(_)) if name == "AGENT_DEBUG_MEMORY_ENDPOINTS" && generated => Some(Row::DebugMemory),
            _ if generated && from.starts_with("kaos.logLevel") => Some(Row::LogLevel),
            (Some(live), Some(wanted)) if generated => {
                let doubled = literal(Some(live)).map(|text| text.replace('$', "$$"));
                (doubled.is_some() && doubled == literal(Some(wanted))).then_some(Row::Dollars)
            }
            _ => None,
        }
    }

    /// Whether the object's own `podSpec` says something of that member of the container: then it is the user's.
    fn patches(&self, member: &str) -> bool {
        let containers = self.object.pointer("/spec/podSpec/containers").and_then(Value::as_array);
        let own = containers.into_iter().flatten().filter(|one| one["name"] == self.role.container());
        own.into_iter().any(|one| one.get(member).is_some())
    }

    /// Whether the container runs a script that installs the package.
    fn installs(&self, live: Option<&Value>) -> bool {
        let Some(package) = self.package.filter(|package| !package.is_empty()) else { return false };
        // Arguments that were not there, or are not wanted, are part of the same change.
        live.is_none_or(|words| {
            let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
            words.into_iter().any(|word| word.contains(package))
        })
    }

    /// Whether the object sets that member of the container in a field that was accepted and not acted on.
    fn not_acted_on(&self, member: &str) -> bool {
        if self.role == Role::McpServer || self.patches(member) {
            return false;
        }
        let says = |pointer: &str| self.object.pointer(pointer).is_some_and(|value| !value.is_null());
        match member {
            "image" | "command" | "args" => says(&format!("/spec/container/{member}")),
            "resources" => {
                ["/spec/container/resources", "/spec/resources", "/spec/serverConfig/resources"].into_iter().any(says)
            }
            _ => false,
        }
    }
}
