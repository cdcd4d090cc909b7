//! The switch of a namespace, label `kagenti-enabled`: what is said of a value that switches nothing.

use crate::domain::keys;
use crate::domain::suggest::nearest;

/// What people write in place of `false`, in small letters.
const OFF: [&str; 6] = ["0", "no", "off", "disable", "disabled", "never"];
/// What they write in place of `true`.
const ON: [&str; 6] = ["1", "yes", "on", "enable", "enabled", "always"];

/// What was meant, as far as that can be told.
fn meant(value: &str) -> Option<&'static str> {
    let small = value.to_ascii_lowercase();
    match &*small {
        off if OFF.contains(&off) => Some("false"),
        on if ON.contains(&on) => Some("true"),
        other => nearest(other, ["true", "false"]),
    }
}

/// Why the value of the label does nothing, and the command that puts it right; `None` where it switches, and where there is none.
#[must_use]
pub fn unread(namespace: &str, value: Option<&str>) -> Option<String> {
    let value = value.filter(|value| !matches!(*value, "true" | "false"))?;
    let key = keys::LABEL_NAMESPACE_ENABLED;
    let wanted = meant(value).unwrap_or("false");
    let end = if meant(value).is_some() { "" } else { ", if that was meant" };
    Some(format!(
        "label {key} of namespace {namespace} is {value:?}, which switches nothing: values are true and false, in small letters. What to do: \
         kubectl label namespace {namespace} {key}={wanted} --overwrite{end}"
    ))
}

#[cfg(test)]
mod tests {
    use super::unread;

    #[test]
    fn a_value_that_switches_nothing_is_told_with_what_was_meant() {
        for (value, says) in [
            (None, None),
            (Some("true"), None),
            (Some("false"), None),
            (Some("False"), Some("kagenti-enabled=false --overwrite")),
            (Some("FALSE"), Some("kagenti-enabled=false --overwrite")),
            (Some("flase"), Some("kagenti-enabled=false --overwrite")),
            (Some("no"), Some("kagenti-enabled=false --overwrite")),
            (Some("Off"), Some("kagenti-enabled=false --overwrite")),
            (Some("disabled"), Some("kagenti-enabled=false --overwrite")),
            (Some("True"), Some("kagenti-enabled=true --overwrite")),
            (Some("yes"), Some("kagenti-enabled=true --overwrite")),
            (Some(""), Some("--overwrite, if that was meant")),
            (Some("team-a"), Some("--overwrite, if that was meant")),
        ] {
            let told = unread("team1", value);
            assert_eq!(told.is_some(), says.is_some(), "{value:?}: {told:?}");
            assert!(told.is_none_or(|told| told.ends_with(says.unwrap_or_default())), "{value:?}");
        }
    }
}
