//! `{{.name}}` in a template's values: replaced once, never in a user's.

use std::collections::BTreeMap;

/// Why a text cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// Nothing of that name has a value.
    #[error("names {0}, which has no value")]
    Unknown(String),
    /// What has that name in the template is to be filled in itself.
    #[error(
        "names {0}, whose own value has a placeholder; a placeholder is replaced once, so write out what it stands for"
    )]
    Nested(String),
    /// `{{` begins something else.
    #[error("contains {{{{ that is not a placeholder of the form {{{{.name}}}}")]
    Malformed,
}

/// Whether a text has a placeholder.
#[must_use]
pub fn mentions(text: &str) -> bool {
    text.contains("{{")
}

/// The names in a text, as far as it is well formed.
#[must_use]
pub fn names(text: &str) -> Vec<&str> {
    text.split("{{").skip(1).filter_map(|rest| name(rest).map(|(name, _)| name)).collect()
}

/// What stands between `{{` and `}}`, and what follows.
fn name(rest: &str) -> Option<(&str, &str)> {
    let (inner, tail) = rest.split_once("}}")?;
    let name = inner.trim().strip_prefix('.')?;
    crate::api::syntax::is_parameter(name).then_some((name, tail))
}

/// The text with every placeholder replaced, in one pass: what a replacement contains is not looked at again.
///
/// # Errors
/// The first placeholder without a value, or `{{` that begins none.
pub fn filled(text: &str, values: &BTreeMap<&str, &str>) -> Result<String, PlaceholderError> {
    let mut parts = text.split("{{");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let (name, tail) = name(rest).ok_or(PlaceholderError::Malformed)?;
        let value = values.get(name).ok_or_else(|| PlaceholderError::Unknown(name.to_owned()))?;
        result.push_str(value);
        result.push_str(tail);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{PlaceholderError, filled, names};

    #[test]
    fn case_c06_replaced_once_and_never_again() {
        let values = BTreeMap::from([("image", "{{.tag}}"), ("tag", "v1"), ("a.b", "x")]);
        assert_eq!(filled("{{.image}}:{{ .tag }}-{{.a.b}}", &values).as_deref(), Ok("{{.tag}}:v1-x"));
        assert_eq!(filled("plain }} text", &values).as_deref(), Ok("plain }} text"));
    }

    #[test]
    fn case_c07_unknown_and_malformed_ones_are_errors() {
        let values = BTreeMap::from([("tag", "v1")]);
        assert_eq!(filled("{{.unknown}}", &values), Err(PlaceholderError::Unknown("unknown".to_owned())));
        for text in ["{{.tag", "{{tag}}", "{{.}}", "{{}}", "{{ .a b }}", "a{{"] {
            assert_eq!(filled(text, &values), Err(PlaceholderError::Malformed), "{text}");
        }
        assert_eq!(names("{{.a}} {{.b}} {{c}}"), ["a", "b"]);
    }
}
