//! `{{.name}}` in a template's values: replaced once, never in a user's.

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
    /// What is filled in makes, with what stands beside it, the beginning of a reference that neither has.
    #[error(
        "fills in {0} where $ and ( meet, which Tekton would take for a reference; what stands for {0} there must neither end in $ nor begin with ("
    )]
    Joined(String),
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

/// The text with every placeholder replaced by what `value_of` its name is, in one pass: what a replacement contains is not looked at again.
///
/// # Errors
/// The first placeholder without a value, or that joins two texts to a reference, or `{{` that begins none.
pub fn filled<'v>(text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> Result<String, PlaceholderError> {
    let mut parts = text.split("{{");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        let (name, tail) = name(rest).ok_or(PlaceholderError::Malformed)?;
        let value = value_of(name).ok_or_else(|| PlaceholderError::Unknown(name.to_owned()))?;
        for piece in [value, tail] {
            if result.ends_with('$') && piece.starts_with('(') {
                return Err(PlaceholderError::Joined(name.to_owned()));
            }
            result.push_str(piece);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{PlaceholderError, names};

    fn filled(text: &str, values: &BTreeMap<&str, &str>) -> Result<String, PlaceholderError> {
        super::filled(text, |name| values.get(name).copied())
    }

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

    /// Neither text is a reference, and each is judged by itself: what they make together nobody would have looked at.
    #[test]
    fn two_texts_make_no_reference_where_they_meet() {
        let values = BTreeMap::from([("end", "5$"), ("begin", "(tasks.a.results.b)"), ("none", ""), ("both", "(a)$")]);
        for (text, name) in [
            ("{{.end}}(tasks.a.results.b)", "end"),
            ("{{.end}}{{.begin}}", "begin"),
            ("{{.end}}{{.none}}(x)", "none"),
            ("${{.begin}}", "begin"),
            ("{{.both}}{{.both}}", "both"),
        ] {
            assert_eq!(filled(text, &values), Err(PlaceholderError::Joined(name.to_owned())), "{text}");
        }
        for (text, result) in [
            ("{{.end}} (x)", "5$ (x)"),
            ("{{.end}}{x}", "5${x}"),
            ("$(tasks.a.results.b){{.end}}", "$(tasks.a.results.b)5$"),
            ("a{{.begin}}", "a(tasks.a.results.b)"),
            ("{{.end}}{{.end}}", "5$5$"),
        ] {
            assert_eq!(filled(text, &values).as_deref(), Ok(result), "{text}");
        }
    }
}
