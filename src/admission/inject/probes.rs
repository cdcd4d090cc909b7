//! Probes and lifecycle hooks that address a port which moves.
//!
//! In: a container of the Pod, the agent's or one beside it, and the port's number. Out: one edit per handler that uses it, by number, by the
//! number written as text, or by a name that means it. A handler that asks another host keeps the number: the name goes to the proxy.

use serde_json::Value;

use super::edit::Edit;
use super::pod::{HANDLERS, items, text};
use super::ports::tcp_port;

/// The actions of a handler that have a port.
pub(super) const ACTIONS: [&str; 3] = ["httpGet", "tcpSocket", "grpc"];

fn is_here(host: &str) -> bool {
    matches!(host, "" | "localhost" | "127.0.0.1" | "::1")
}

/// Whether a handler of the container means that port; a container may give one number several names.
fn uses(container: &Value, port: &Value, number: u16) -> bool {
    match port {
        Value::Number(value) => value.as_u64() == Some(u64::from(number)),
        Value::String(value) => {
            let mut entries = items(container, "ports").iter().filter(|entry| text(entry, "name") == value);
            value.parse() == Ok(number) || entries.any(|entry| tcp_port(entry) == Some(number))
        }
        _ => false,
    }
}

fn is_name(port: &Value) -> bool {
    port.as_str().is_some_and(|text| text.parse::<u16>().is_err())
}

/// The edits that make every handler follow the port from `from` to `to`.
pub(super) fn follow(container: &Value, from: u16, to: u16) -> Vec<Edit> {
    let mut edits = Vec::new();
    for keys in HANDLERS {
        let Some(handler) = keys.iter().try_fold(container, |value, key| value.get(*key)) else { continue };
        for action in ACTIONS {
            let Some(target) = handler.get(action) else { continue };
            let Some(port) = target.get("port").filter(|port| uses(container, port, from)) else { continue };
            let stays = !is_here(text(target, "host"));
            if stays && !is_name(port) {
                continue;
            }
            edits.push(Edit::Handler {
                container: text(container, "name").to_owned(),
                at: format!("{}.{action}", keys.join(".")),
                was: port.clone(),
                to: if stays { from } else { to },
            });
        }
    }
    edits
}
