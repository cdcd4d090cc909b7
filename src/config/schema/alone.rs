//! Keys that say more about what another key names. In: what a platform file sets. Out: those of them that stand alone, and so change nothing.

use super::{Fault, Settings};

const CONFIG_MAP: &str = "cards.trustBundle.configMap.name";
const FILE: &str = "cards.trustBundle.file";

/// A key, what has to be named beside it, and the keys that name it: one of them is enough.
const BESIDE: [(&str, &str, &[&str]); 4] = [
    ("cards.trustBundle.configMap.namespace", "ConfigMap", &[CONFIG_MAP]),
    ("cards.trustBundle.configMap.key", "ConfigMap", &[CONFIG_MAP]),
    ("cards.trustBundle.trustDomain", "trust bundle", &[CONFIG_MAP, FILE]),
    ("cards.trustBundle.maxAgeSeconds", "trust bundle", &[CONFIG_MAP, FILE]),
];

/// The keys that stand alone, with their lines, and what to do.
pub(super) fn alone(settings: &Settings) -> Vec<Fault> {
    let mut found = Vec::new();
    for (path, what, beside) in BESIDE {
        let is_named = beside.iter().any(|other| settings.line(other).is_some());
        if let Some(line) = settings.line(path).filter(|_| !is_named) {
            let message = format!("no {what} is named; set {}, too, or leave this key out", beside.join(" or "));
            found.push(Fault { line, field: path.to_owned(), message });
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::Platform;
    use crate::config::schema::keys::key;
    use crate::domain::reason::Reason;

    fn warnings(text: &str) -> Vec<String> {
        let platform = Platform::parse(text, "config.yaml").unwrap();
        assert!(platform.warnings().iter().all(|notice| notice.reason == Reason::KeyWithoutEffect));
        platform.warnings().iter().map(|notice| notice.text.clone()).collect()
    }

    #[test]
    fn a_key_without_the_one_that_it_goes_with_is_told_with_its_line() {
        for (text, says) in [
            ("configMap: {key: k}", &["configMap.key has no effect: no ConfigMap is named; set "][..]),
            ("configMap: {namespace: n}", &["configMap.namespace has no effect: no ConfigMap is named; set "]),
            (
                "configMap: {namespace: n, key: k}",
                &["configMap.key has no effect", "configMap.namespace has no effect"],
            ),
            ("{configMap: {key: k}, file: /b}", &["cards.trustBundle.configMap.name, too, or leave this key out"]),
            ("configMap: {name: b, namespace: n, key: k}", &[]),
            ("configMap: {name: ~, key: k}", &["cards.trustBundle.configMap.name, too"]),
            ("trustDomain: a.org", &["set cards.trustBundle.configMap.name or cards.trustBundle.file, too"]),
            ("maxAgeSeconds: 60", &["cards.trustBundle.maxAgeSeconds has no effect: no trust bundle is named"]),
            ("{trustDomain: a.org, maxAgeSeconds: 60, file: /b}", &[]),
            ("{trustDomain: a.org, maxAgeSeconds: 60, configMap: {name: b}}", &[]),
            ("", &[]),
        ] {
            let told = warnings(&format!("mode: waypoint\ncards:\n  trustBundle:\n    {text}\n"));
            assert_eq!(told.len(), says.len(), "{text}: {told:?}");
            for (told, says) in told.iter().zip(says) {
                assert!(told.starts_with("config.yaml:4: cards.trustBundle.") && told.contains(says), "{text}: {told}");
            }
        }
    }

    /// The sentence stands beside each of these warnings: keys of this table were never an earlier operator's.
    #[test]
    fn the_sentence_of_the_reason_holds_for_these_keys_as_well() {
        let sentence = Reason::KeyWithoutEffect.sentence();
        assert!(!sentence.contains("earlier") && sentence.contains("says more about"), "{sentence}");
    }

    #[test]
    fn every_key_of_the_table_is_one() {
        for (path, _, beside) in BESIDE {
            assert!(key(path).is_some(), "{path}");
            assert!(!beside.is_empty() && beside.iter().all(|other| key(other).is_some()), "{path}: {beside:?}");
        }
    }
}
