//! The tools of an MCPServer of KAOS, as its status lists them.
//!
//! In: an MCPServer as the cluster has it. Out: the names in one line, bounded and printable; nothing where it was not asked, or offers none.

use serde_json::Value;

use crate::domain::printable::printable;

/// Most names on a line.
const NAMES: usize = 6;
/// Bytes of one name, at most.
const NAME: usize = 40;

/// What runs, and behind it the tools that were listed.
pub(in crate::cli) fn beside(what: String, server: &Value) -> String {
    let all = server.pointer("/status/availableTools").and_then(Value::as_array);
    let names: Vec<_> = all.into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        return what;
    }
    let mut list = names.iter().take(NAMES).map(|name| printable(name, NAME)).collect::<Vec<_>>().join(", ");
    if names.len() > NAMES {
        list.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    format!("{what}: {list}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_that_were_listed_stand_behind_what_runs() {
        let of = |names: Value| beside("python-string".to_owned(), &json!({"status": {"availableTools": names}}));
        assert_eq!(of(Value::Null), "python-string");
        assert_eq!(of(json!([])), "python-string");
        assert_eq!(of(json!(["add", "echo"])), "python-string: add, echo");
        assert_eq!(
            of(json!(["a\u{1b}[2J", "b", "c", "d", "e", "f", "g", "h"])).chars().filter(|c| c.is_control()).count(),
            0
        );
        assert!(of(json!(["a", "b", "c", "d", "e", "f", "g", "h"])).ends_with("f and 2 more"));
    }
}
