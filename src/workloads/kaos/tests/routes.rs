//! What a route makes of a request's path.

use super::*;
use crate::workloads::kaos::compose::route;
use crate::workloads::kaos::names::Role;
use crate::workloads::kaos::settings::Gateway;

/// What a request is forwarded as by a rule with `PathPrefix` and `ReplacePrefixMatch`; `None`: the rule does not match. As Gateway API defines
/// both (`HTTPPathModifier`), for no implementation of it runs here.
fn forwarded(path: &str, prefix: &str, replaced: &str) -> Option<String> {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
    let matches = rest.is_empty() || rest.starts_with('/');
    let forwarded = format!("{}{rest}", replaced.trim_end_matches('/'));
    matches.then(|| if forwarded.is_empty() { "/".to_owned() } else { forwarded })
}

#[test]
fn case_129_an_agent_sees_the_path_behind_its_own() {
    // The table of Gateway API's own documentation.
    for (path, prefix, replaced, wanted) in [
        ("/foo/bar", "/foo", "/xyz", Some("/xyz/bar")),
        ("/foo/bar", "/foo", "/xyz/", Some("/xyz/bar")),
        ("/foo/bar", "/foo/", "/xyz", Some("/xyz/bar")),
        ("/foo", "/foo", "/xyz", Some("/xyz")),
        ("/foo/", "/foo", "/xyz", Some("/xyz/")),
        ("/foo/bar", "/foo", "", Some("/bar")),
        ("/foo/", "/foo", "", Some("/")),
        ("/foo", "/foo", "/", Some("/")),
        ("/foobar", "/foo", "/", None),
    ] {
        assert_eq!(forwarded(path, prefix, replaced).as_deref(), wanted, "{path} {prefix} {replaced}");
    }
    let gateway = Gateway { enabled: true, name: "edge".to_owned(), ..Gateway::clone(&settings().gateway) };
    let mut clerk = identity("a");
    clerk.owner.namespace = "ns".to_owned();
    let route = route(Role::Agent, &clerk, (8000, None), (&gateway, "infra"));
    let text = |pointer: &str| route.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let (prefix, replaced) =
        (text("/rules/0/matches/0/path/value"), text("/rules/0/filters/0/urlRewrite/path/replacePrefixMatch"));
    let kinds = (text("/rules/0/matches/0/path/type"), text("/rules/0/filters/0/urlRewrite/path/type"));
    assert_eq!(kinds, ("PathPrefix".to_owned(), "ReplacePrefixMatch".to_owned()));
    for (path, wanted) in [
        ("/ns/agent/a/health", Some("/health")),
        ("/ns/agent/a/v1/chat/completions", Some("/v1/chat/completions")),
        ("/ns/agent/a", Some("/")),
        ("/ns/agent/ab/health", None),
        ("/ns/mcp/a/health", None),
    ] {
        assert_eq!(forwarded(path, &prefix, &replaced).as_deref(), wanted, "{path}");
    }
}
