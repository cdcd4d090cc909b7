//! Names and labels of an agent's NetworkPolicy; pure. Promise: each is one that the API server takes, and two workloads never share one
//! because their names are long.

use crate::domain::digest::of_bytes;
use crate::domain::keys;

/// Longest name of an object.
const NAME: usize = 253;
/// Longest value of a label.
const VALUE: usize = 63;
/// Hexadecimal digits that stand for what was cut.
const DIGITS: usize = 16;

/// `text` in at most `most` bytes: what is longer ends in a digest of the whole.
fn within(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most - DIGITS - 1);
    format!("{}-{}", &text[..end], &of_bytes(text.as_bytes())[..DIGITS])
}

/// The name of the NetworkPolicy of a workload.
pub(super) fn policy_of(workload: &str) -> String {
    let suffix = keys::SUFFIX_SIGNATURE_POLICY;
    format!("{}{suffix}", within(workload, NAME - suffix.len()))
}

/// Whether that may be the policy of a workload whose name did not fit, so that it cannot be read off it.
pub(super) fn is_shortened(policy: &str) -> bool {
    // A character that would have been cut in two is left out whole; it has at most four bytes.
    policy.len() + 3 >= NAME
}

/// The name of a card as the value of a label.
pub(super) fn label_of(card: &str) -> String {
    within(card, VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_125_long_names_are_shortened_to_what_the_api_server_takes() {
        assert_eq!(policy_of("weather"), "weather-signature-policy");
        assert_eq!(label_of("weather-deployment-card"), "weather-deployment-card");
        let (one, other) = (format!("{}a", "x".repeat(252)), format!("{}b", "x".repeat(252)));
        assert!(policy_of(&one).len() <= NAME && policy_of(&one) != policy_of(&other));
        assert!(is_shortened(&policy_of(&one)) && !is_shortened(&policy_of("weather")));
        assert!(is_shortened(&policy_of(&format!("a{}", "界".repeat(84)))), "cut where a character begins");
        let card = "c".repeat(70);
        assert!(label_of(&card).len() == VALUE && label_of(&card).starts_with(&"c".repeat(46)));
        assert_ne!(label_of(&card), label_of(&format!("{card}c")));
    }
}
