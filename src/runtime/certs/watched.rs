//! Small rules for objects watched by name.

/// Whether `known` is a newer version than `seen`: an event can arrive after the answer to a write that came later.
/// Versions that are not numbers are never called newer.
#[must_use]
pub(super) fn newer(known: Option<&str>, seen: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u64>().ok());
    matches!((number(known), number(seen)), (Some(known), Some(seen)) if known > seen)
}

#[cfg(test)]
mod tests {
    use super::newer;

    #[test]
    fn versions_are_compared_as_numbers_where_they_are_some() {
        assert!(newer(Some("100"), Some("99")));
        assert!(!newer(Some("99"), Some("100")));
        assert!(!newer(Some("99"), Some("99")));
        assert!(!newer(Some("b"), Some("a")));
        assert!(!newer(None, Some("1")));
    }
}
