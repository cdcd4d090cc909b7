//! Probes of the Pod's own that pass the proxy.
//!
//! In mode envoy-sidecar the kubelet's probes reach the inbound listener, whose token check lets a few paths through and answers
//! 401 to the rest: an agent with `/health` would restart for ever. In: the Pod and the pipeline in force. Out: the paths that
//! are opened besides, each with the probe that asks for it, and warnings for what cannot be opened. Promise: a path is opened
//! only where nobody can reach more by it than by a probe: the check sees no method, so never one that the agent serves, and
//! nothing that is read as a pattern.

use serde_json::Value;

use super::context::Context;
use super::plan::InjectionPlan;
use super::pod::{HANDLERS, items, text};
use super::port_list;
use super::ports::tcp_port;
use super::runtime_config;
use crate::admission::verdict::Warning;
use crate::config::resolved::InboundExclusions;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// What the token check lets through by itself.
pub(super) const DEFAULT: [&str; 4] = ["/.well-known/*", "/healthz", "/readyz", "/livez"];
/// What a gRPC probe calls.
const GRPC_HEALTH: &str = "/grpc.health.v1.Health/Check";
/// Where agents and tools are served, and everything below: A2A, MCP in its two transports, the APIs of models.
const SERVED: [&str; 5] = ["/a2a", "/mcp", "/sse", "/messages", "/v1"];
/// Ports that the redirection leaves out (8, `PROXY_INBOUND`), besides Envoy's own.
const NOT_REDIRECTED: [u16; 4] = [22, 9090, 9901, 15008];
/// The longest path that is opened.
const LONGEST: usize = 256;

/// A path that is let through without a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    /// The path, as the check compares it.
    pub(super) path: String,
    /// Who asks for it, for people.
    pub(super) by: String,
}

/// The token checks of a pipeline that do check: for each its own list of what it lets through, `None` where it takes ours.
pub(super) struct Checks {
    lists: Vec<Option<Vec<String>>>,
}

impl Checks {
    /// Those of the runtime configuration whose base is `base`; one without a pipeline gets a check that takes ours.
    fn of(base: &Value) -> Self {
        if !runtime_config::has_pipeline(base) {
            return Self { lists: vec![None] };
        }
        let own = |entry: &Value| {
            let list = entry.get("config")?.get(runtime_config::BYPASS_PATHS)?.as_array()?;
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        let lists = runtime_config::token_checks(base).into_iter().filter(|entry| checks(entry)).map(own).collect();
        Self { lists }
    }

    /// Whether a list of somebody's own does not let the path through.
    fn is_closed(&self, path: &str) -> bool {
        self.lists.iter().flatten().any(|list| !list.iter().any(|pattern| matches(pattern, path)))
    }

    /// Whether a check that takes our list needs the path in it.
    fn needs(&self, path: &str) -> bool {
        self.lists.iter().any(Option::is_none) && !DEFAULT.iter().any(|pattern| matches(pattern, path))
    }
}

/// An entry of the pipeline that refuses requests.
fn checks(entry: &Value) -> bool {
    !matches!(text(entry, "on_error"), "off" | "observe")
}

/// Whether the check's pattern lets the path through; a pattern that is more than text and `*` may, for all that is known here.
fn matches(pattern: &str, path: &str) -> bool {
    if pattern.contains(['?', '[', '\\']) {
        return true;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    // A star stands for anything but a slash.
    for piece in pieces {
        match rest.find(piece) {
            Some(at) if !rest[..at].contains('/') => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    rest.strip_suffix(last).is_some_and(|between| !between.contains('/'))
}

/// A path as the check sees it: without empty parts, `.` and `..` (Go's `path.Clean`).
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Why a path is not opened; `None` when it is.
fn unsafe_because(path: &str) -> Option<&'static str> {
    // `$` is read as a variable by the proxy, the others as a pattern, an escape or the end of the path.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/-._~:@+,=".contains(letter);
    if !path.chars().all(is_plain) {
        return Some("it contains a character that the token check reads as a pattern");
    }
    if path.len() > LONGEST {
        return Some("it is longer than 256 bytes");
    }
    let path = cleaned(path).to_ascii_lowercase();
    let is_below =
        |served: &&str| path.strip_prefix(*served).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (path == "/" || SERVED.iter().any(is_below)).then_some("the agent serves requests there")
}

/// The number that a handler's port means.
fn port(container: &Value, target: &Value) -> Option<u16> {
    match target.get("port")? {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        Value::String(name) => name
            .parse()
            .ok()
            .or_else(|| items(container, "ports").iter().find(|entry| text(entry, "name") == name).and_then(tcp_port)),
        _ => None,
    }
}

/// One question of the kubelet's that reaches the proxy.
struct Asked<'v> {
    /// Where it stands, for people.
    by: String,
    /// The handler's action.
    action: &'static str,
    target: &'v Value,
    /// A lifecycle hook: it does something, rather than ask.
    is_hook: bool,
}

/// Everything that the kubelet asks of the Pod through the proxy.
fn asked<'v>(cx: &Context<'v>) -> Vec<Asked<'v>> {
    let pod = cx.subject.pod;
    let proxy = &cx.effective.resolved.proxy;
    let mut left_out = vec![proxy.port.value, proxy.inbound_port.value];
    left_out.extend(NOT_REDIRECTED);
    if cx.effective.resolved.proxy.inbound_exclusions.value == InboundExclusions::Any {
        left_out
            .extend(pod.annotation(keys::ANNOTATION_INBOUND_EXCLUDE).map(port_list::parse).unwrap_or_default().ports);
    }
    let mut all = Vec::new();
    for (_, _, container) in pod.all_containers() {
        for path in HANDLERS {
            let Some(handler) = path.iter().try_fold(container, |value, key| value.get(*key)) else { continue };
            for action in super::probes::ACTIONS {
                let Some(target) = handler.get(action).filter(|target| target.is_object()) else { continue };
                let is_here = text(target, "host").is_empty();
                if is_here && port(container, target).is_none_or(|port| !left_out.contains(&port)) {
                    let by = format!("{} of container {}", path.join("."), text(container, "name"));
                    all.push(Asked { by, action, target, is_hook: path.len() > 1 });
                }
            }
        }
    }
    all
}

/// Fills the plan's open paths, which the runtime configuration is then made with, and says what cannot be opened. `rendered`: the
/// configuration is ours to write.
pub(super) fn fill(cx: &Context<'_>, plan: &mut InjectionPlan<'_>, rendered: bool) {
    let checks = Checks::of(&cx.effective.resolved.runtime_base);
    if checks.lists.is_empty() {
        return;
    }
    for asked in asked(cx) {
        match asked.action {
            "tcpSocket" => plan.warnings.push(always_green(&asked)),
            "grpc" => path(cx, plan, (&checks, rendered), &asked, GRPC_HEALTH),
            _ if text(asked.target, "scheme").eq_ignore_ascii_case("HTTPS") => {
                plan.warnings.push(behind(&asked, "asks over TLS, and the proxy takes plain HTTP only", REMEDY_PORT));
            }
            _ => path(cx, plan, (&checks, rendered), &asked, text(asked.target, "path")),
        }
    }
}

/// How to keep a probe out of the proxy.
const REMEDY_PORT: &str = "let it ask a port of its own, named in annotation kagenti.io/inbound-ports-exclude";
/// How to get a path that may be opened.
const REMEDY_PATH: &str = "give the probe a path for health alone, such as /healthz, or a port of its own, named in annotation kagenti.io/inbound-ports-exclude";

fn path(
    cx: &Context<'_>,
    plan: &mut InjectionPlan<'_>,
    (checks, rendered): (&Checks, bool),
    asked: &Asked<'_>,
    path: &str,
) {
    // The kubelet cuts a fragment off and sends the query along; the check sees neither.
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let seen = cleaned(&path[..end]);
    let closed = checks.is_closed(&seen);
    if !closed && !checks.needs(&seen) {
        return;
    }
    let shown = if path.is_empty() { "/" } else { path };
    let asks = format!("asks for {}", shown.chars().take(LONGEST).collect::<String>());
    let by_hand = format!("put {seen} into {} of ConfigMap {}", runtime_config::BYPASS_PATHS, keys::CONFIG_MAP_RUNTIME);
    if closed {
        let why = format!("{asks}, which {} of the namespace's configuration leaves out", runtime_config::BYPASS_PATHS);
        plan.warnings.push(behind(asked, &why, &by_hand));
    } else if asked.is_hook {
        let why = format!("{asks}, and the path of a lifecycle hook is opened to nobody without a token");
        plan.warnings.push(behind(asked, &why, REMEDY_PORT));
    } else if let Some(because) = unsafe_because(path) {
        plan.warnings.push(behind(asked, &format!("{asks}; {because}, so it is not opened"), REMEDY_PATH));
    } else if cx.effective.resolved.proxy.inbound_exclusions.value == InboundExclusions::None {
        let why = format!("{asks}, and the platform opens nothing (proxy.inboundExclusions: none)");
        plan.warnings.push(behind(asked, &why, "let the probe ask for /healthz, /readyz or /livez"));
    } else if !rendered {
        let why =
            format!("{asks}, and with feature gate combinedSidecar only the namespace's configuration can open it");
        plan.warnings.push(behind(asked, &why, &by_hand));
    } else if !plan.open.iter().any(|open| open.path == seen) {
        plan.open.push(Open { path: seen, by: asked.by.clone() });
    }
}

fn behind(asked: &Asked<'_>, why: &str, remedy: &str) -> Warning {
    let text = format!("{} {why}: the proxy answers 401, or not at all; {remedy}", asked.by);
    Warning::new(Reason::ProbeBehindToken, text)
}

fn always_green(asked: &Asked<'_>) -> Warning {
    Warning::new(
        Reason::ProbeAlwaysSucceeds,
        format!(
            "{} opens a connection, which the proxy takes whether the container listens or not; ask with httpGet, grpc or exec, \
             or {REMEDY_PORT}",
            asked.by
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_15_a_path_is_opened_only_where_it_is_text_and_nothing_is_served() {
        for path in [
            "/health",
            "/ready",
            "/api/health",
            "health",
            "/health/",
            "/x//y/../ready",
            "/status-1.0~a",
            "/v1alpha/health",
            "/mcp-health",
        ] {
            assert_eq!(unsafe_because(path), None, "{path}");
        }
        for path in [
            "",
            "/",
            "//",
            "/.",
            "/x/..",
            "/*",
            "/he?lth",
            "/health?full=1",
            "/health#x",
            "/[ab]",
            "/a]",
            "/a\\b",
            "/%68ealth",
            "/$HOME",
            "/${X}",
            "/a b",
            "/ä",
            "/a;b",
            "/v1",
            "/v1/models",
            "/V1/models",
            "/mcp",
            "/mcp/",
            "/x/../mcp",
            "/sse",
            "/messages/",
            "/a2a",
            "/a2a/weather",
        ] {
            assert!(unsafe_because(path).is_some(), "{path}");
        }
        assert!(unsafe_because(&format!("/{}", "a".repeat(LONGEST))).is_some());
    }

    #[test]
    fn mend_15_patterns_are_those_of_the_token_check() {
        for (pattern, path, expected) in [
            ("/.well-known/*", "/.well-known/agent-card.json", true),
            ("/.well-known/*", "/.well-known/a/b", false),
            ("/.well-known/*", "/.well-known", false),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz2", false),
            ("/health*", "/health", true),
            ("/*/health", "/api/health", true),
            ("/*/health", "/api/x/health", false),
            ("/a*b*c", "/aXbYc", true),
            ("/a*b*c", "/aXbY", false),
            ("/[h]ealth", "/other", true),
            ("/x/", "/x", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
        for (path, expected) in
            [("", "/"), ("health", "/health"), ("/a/./b//c/", "/a/b/c"), ("/a/../../b", "/b"), ("/..", "/")]
        {
            assert_eq!(cleaned(path), expected);
        }
    }
}
