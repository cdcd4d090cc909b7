//! A text as a value of a declared type.

use serde_json::Value;

use crate::pipelines::reference::{self, Part, Target};
use crate::pipelines::step::Kind;

/// A text as a value of some type, or what that type needs.
pub type Fit = Result<Value, &'static str>;

/// The text as a value of that type: as it is for a string; a JSON list of strings, or one element, for an array;
/// a JSON object of strings for an object. A reference to a whole list or object stays the text it is.
///
/// # Errors
/// What an object needs.
pub fn fit(kind: Kind, text: &str) -> Fit {
    match kind {
        Kind::Text => Ok(Value::String(text.to_owned())),
        Kind::List | Kind::Map if is_whole_reference(text) => Ok(Value::String(text.to_owned())),
        Kind::List => Ok(match serde_json::from_str::<Vec<String>>(text) {
            Ok(items) => Value::from(items),
            Err(_) => Value::from(vec![text]),
        }),
        Kind::Map => match serde_json::from_str::<std::collections::BTreeMap<String, String>>(text) {
            Ok(members) => Ok(members.into_iter().map(|(key, value)| (key, Value::String(value))).collect()),
            Err(_) => Err("is passed to a parameter of type object and is not a JSON object of strings"),
        },
    }
}

/// Exactly one reference to all of a list or object.
fn is_whole_reference(text: &str) -> bool {
    matches!(
        reference::in_text(text).as_slice(),
        [one] if one.text == text && matches!(one.target, Target::Result { part: Part::All, .. })
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fit;
    use crate::pipelines::step::Kind;

    #[test]
    fn case_c08_lists_and_single_elements() {
        assert_eq!(fit(Kind::List, r#"["a","b"]"#), Ok(json!(["a", "b"])));
        assert_eq!(fit(Kind::List, "x"), Ok(json!(["x"])));
        assert_eq!(fit(Kind::List, "[1]"), Ok(json!(["[1]"])), "a list of something else is one text");
        assert_eq!(fit(Kind::List, "$(tasks.a.results.b[*])"), Ok(json!("$(tasks.a.results.b[*])")));
        assert_eq!(fit(Kind::Text, r#"["a"]"#), Ok(json!(r#"["a"]"#)));
        assert_eq!(fit(Kind::Map, r#"{"k":"v"}"#), Ok(json!({"k": "v"})));
        assert!(fit(Kind::Map, "x").is_err() && fit(Kind::Map, r#"{"k":1}"#).is_err());
    }
}
