//! Probes and lifecycle hooks that address a port which moves.
//!
//! In: a container, the port's number and name. Out: one edit per handler that uses it, by number, by the number
//! written as text, or by name. A handler that names another host is left alone.

use serde_json::Value;

use super::edit::Edit;
use super::pod::{HANDLERS, text};

/// The actions of a handler that have a port.
pub(super) const ACTIONS: [&str; 3] = ["httpGet", "tcpSocket", "grpc"];

fn is_here(host: &str) -> bool {
    matches!(host, "" | "localhost" | "127.0.0.1" | "::1")
}

fn uses(port: &Value, number: u16, name: Option<&str>) -> bool {
    match port {
        Value::Number(value) => value.as_u64() == Some(u64::from(number)),
        Value::String(value) => Some(value.as_str()) == name || value.parse() == Ok(number),
        _ => false,
    }
}

/// The edits that make every handler follow the port from `from` to `to`.
pub(super) fn follow(container: &Value, from: u16, name: Option<&str>, to: u16) -> Vec<Edit> {
    let mut edits = Vec::new();
    for keys in HANDLERS {
        let Some(handler) = keys.iter().try_fold(container, |value, key| value.get(*key)) else { continue };
        for action in ACTIONS {
            let Some(target) = handler.get(action) else { continue };
            let Some(port) = target.get("port").filter(|port| uses(port, from, name)) else { continue };
            if is_here(text(target, "host")) {
                edits.push(Edit::Handler {
                    container: text(container, "name").to_owned(),
                    at: format!("{}.{action}", keys.join(".")),
                    was: port.clone(),
                    to,
                });
            }
        }
    }
    edits
}
