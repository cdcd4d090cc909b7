//! Who of a namespace is in quarantine, as its annotation says it. In: the annotation. Out: whether a name is meant. Promise: what is written with
//! spaces or twice means the same; a word that names nobody means nobody.

use std::collections::BTreeSet;

use super::digest::of_bytes;

/// What stands for the whole namespace.
pub const EVERYBODY: &str = "*";
/// Longest value of a label.
const VALUE: usize = 63;
/// Hexadecimal digits that stand for what was cut.
const DIGITS: usize = 16;

/// Who is in quarantine: names of workloads, or every Pod of the namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quarantine {
    /// Every Pod, whoever made it.
    pub everybody: bool,
    /// Names of workloads, of whatever kind.
    pub names: BTreeSet<Box<str>>,
}

impl Quarantine {
    /// What an annotation says: names, separated by commas; `*` for everybody.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut found = Self::default();
        for word in words {
            if word == EVERYBODY {
                found.everybody = true;
            } else {
                found.names.insert(word.into());
            }
        }
        found
    }

    /// Nobody is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.everybody && self.names.is_empty()
    }

    /// Whether the workload of that name is.
    #[must_use]
    pub fn holds(&self, workload: &str) -> bool {
        self.everybody || self.names.contains(workload)
    }

    /// Whether the one is whose Pods carry that value of the label.
    #[must_use]
    pub fn holds_label(&self, value: &str) -> bool {
        self.everybody || self.names.iter().any(|name| label_of(name) == value)
    }

    /// As the annotation spells it; empty for nobody.
    #[must_use]
    pub fn text(&self) -> String {
        let everybody = self.everybody.then_some(EVERYBODY);
        everybody.into_iter().chain(self.names.iter().map(|name| &**name)).collect::<Vec<_>>().join(",")
    }
}

/// The value of the label on Pods of the workload of that name: the name, or what is left of a long one and a digest of it.
#[must_use]
pub fn label_of(workload: &str) -> String {
    if workload.len() <= VALUE {
        return workload.to_owned();
    }
    let end = workload.floor_char_boundary(VALUE - DIGITS - 1);
    format!("{}-{}", &workload[..end], &of_bytes(workload.as_bytes())[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_names_workloads_or_everybody() {
        for (text, held, free, again) in [
            ("", None, Some("a"), ""),
            (" , ,", None, Some("a"), ""),
            ("a", Some("a"), Some("ab"), "a"),
            (" b ,a,a", Some("b"), Some("c"), "a,b"),
            ("*", Some("anybody"), None, "*"),
            ("b,*", Some("c"), None, "*,b"),
        ] {
            let found = Quarantine::parse(text);
            assert_eq!(found.text(), again, "{text}");
            assert_eq!(found.is_empty(), again.is_empty(), "{text}");
            assert!(held.is_none_or(|name| found.holds(name) && found.holds_label(&label_of(name))), "{text}");
            assert!(free.is_none_or(|name| !found.holds(name) && !found.holds_label(name)), "{text}");
        }
        let long = "x".repeat(80);
        assert!(label_of(&long).len() == VALUE && Quarantine::parse(&long).holds_label(&label_of(&long)));
    }
}
