//! Feature gates: which sidecars exist at all.
//!
//! In: the text of the gates file. Out: [`Gates`] and notices, or a [`SchemaError`]. A file that sets every gate to
//! false disables everything (docs/deviations.md; the Go operator takes it for an empty file).

use super::resolved::Notice;
use super::schema::{Fault, SchemaError};
use crate::api::yaml::{self, Content, Entry};
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;

/// The gates of the classic profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// Kill switch.
    pub global_enabled: bool,
    /// Envoy and proxy-init.
    pub envoy_proxy: bool,
    /// SPIRE parts.
    pub spiffe_helper: bool,
    /// Registration sidecar.
    pub client_registration: bool,
    /// Inject Pods of type tool.
    pub inject_tools: bool,
    /// Literal environment values read at admission instead of references.
    pub per_workload_config_resolution: bool,
    /// One combined container in mode envoy-sidecar.
    pub combined_sidecar: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            global_enabled: true,
            envoy_proxy: true,
            spiffe_helper: true,
            client_registration: true,
            inject_tools: false,
            per_workload_config_resolution: false,
            combined_sidecar: false,
        }
    }
}

impl Gates {
    /// Reads a gates file (ConfigMap `kagenti-feature-gates`, key `feature-gates.yaml`); `file` is its name in
    /// messages. Absent gates keep their default; the notices name gates that have no effect.
    ///
    /// # Errors
    /// Every fault with its line: text that is not one YAML mapping, values that are no booleans, unknown gates.
    pub fn parse(text: &str, file: &str) -> Result<(Self, Vec<Notice>), SchemaError> {
        let document = yaml::parse(text).map_err(|error| SchemaError::yaml(file, &error))?;
        let entries = match &document.content {
            Content::Null => &[][..],
            Content::Map(entries) => entries,
            _ => {
                let message = format!("a mapping of gates is expected at the top, {} was found", document.kind());
                let fault = Fault { line: document.line, field: String::new(), message };
                return Err(SchemaError::new(file, vec![fault]));
            }
        };
        let mut gates = Self::default();
        let (mut notices, mut faults) = (Vec::new(), Vec::new());
        for entry in entries {
            match gates.take(entry) {
                Ok(None) => {}
                Ok(Some(text)) => {
                    notices.push(Notice {
                        reason: Reason::KeyWithoutEffect,
                        text: format!("{file}:{}: {text}", entry.line),
                    });
                }
                Err(message) => faults.push(Fault { line: entry.line, field: entry.key.clone(), message }),
            }
        }
        if faults.is_empty() { Ok((gates, notices)) } else { Err(SchemaError::new(file, faults)) }
    }

    /// Every gate with its value, by the name users write.
    #[must_use]
    pub fn named(&self) -> [(&'static str, bool); 7] {
        GATES.map(|(name, gate)| (name, *gate(&mut self.clone())))
    }

    fn take(&mut self, entry: &Entry) -> Result<Option<String>, String> {
        if let Some((_, why)) = RETIRED.iter().find(|(name, _)| *name == entry.key) {
            return Ok(Some(format!("{} has no effect: {why}", entry.key)));
        }
        let Some((_, gate)) = GATES.iter().find(|(name, _)| *name == entry.key) else {
            let hint = nearest(&entry.key, GATES.map(|(name, _)| name));
            return Err(match hint {
                Some(near) => format!("is not a feature gate; did you mean {near}?"),
                None => format!("is not a feature gate; there are {}", GATES.map(|(name, _)| name).join(", ")),
            });
        };
        match &entry.value.content {
            Content::Bool(value) => *gate(self) = *value,
            Content::Null => {}
            _ => return Err(format!("true or false is expected, {} was found", entry.value.kind())),
        }
        Ok(None)
    }
}

type Gate = fn(&mut Gates) -> &mut bool;

/// Every gate, in documentation order.
const GATES: [(&str, Gate); 7] = [
    ("globalEnabled", |gates| &mut gates.global_enabled),
    ("envoyProxy", |gates| &mut gates.envoy_proxy),
    ("spiffeHelper", |gates| &mut gates.spiffe_helper),
    ("clientRegistration", |gates| &mut gates.client_registration),
    ("injectTools", |gates| &mut gates.inject_tools),
    ("perWorkloadConfigResolution", |gates| &mut gates.per_workload_config_resolution),
    ("combinedSidecar", |gates| &mut gates.combined_sidecar),
];

/// Gates that a later operator knew and nothing here reads.
const RETIRED: [(&str, &str); 1] = [("skillDiscovery", "skills are not looked up by this version")];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

    use super::{GATES, Gates};

    #[test]
    fn case_105_all_false_is_really_off() {
        let text: String = GATES.iter().map(|(name, _)| format!("{name}: false\n")).collect();
        let (gates, notices) = Gates::parse(&text, "f").unwrap();
        assert!(gates.named().iter().all(|(_, on)| !on));
        assert!(notices.is_empty());
    }

    #[test]
    fn case_105_empty_files_are_the_defaults() {
        for text in ["", "{}", "# nothing\n", "~", "globalEnabled:\n"] {
            assert_eq!(Gates::parse(text, "f").unwrap().0, Gates::default(), "{text:?}");
        }
    }

    #[test]
    fn each_gate_changes_exactly_itself() {
        let defaults = Gates::default().named();
        for (index, (name, value)) in defaults.into_iter().enumerate() {
            let (gates, _) = Gates::parse(&format!("{name}: {}\n", !value), "f").unwrap();
            let mut expected = defaults;
            expected[index].1 = !value;
            assert_eq!(gates.named(), expected);
        }
    }

    #[test]
    fn faults_are_all_listed_with_line_and_hint() {
        let error = Gates::parse("globalEnabled: yes\ninjecttools: true\nskillDiscovery: 3\ncolour: 1\n", "gates.yaml");
        let text = error.unwrap_err().to_string();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "gates.yaml:1: globalEnabled: true or false is expected, a string was found",
                "gates.yaml:2: injecttools: is not a feature gate; did you mean injectTools?",
                "gates.yaml:4: colour: is not a feature gate; there are globalEnabled, envoyProxy, spiffeHelper, \
                 clientRegistration, injectTools, perWorkloadConfigResolution, combinedSidecar",
            ]
        );
    }

    #[test]
    fn what_is_not_a_mapping_is_refused() {
        for text in ["[]", "a", "1", "- globalEnabled", "a: 1\n---\nb: 1", "\0", "{"] {
            assert!(Gates::parse(text, "f").is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_gate_nothing_reads_is_accepted_with_a_warning() {
        let (gates, notices) = Gates::parse("injectTools: true\nskillDiscovery: true\n", "f").unwrap();
        assert!(gates.inject_tools);
        assert_eq!(notices.len(), 1);
        assert_eq!(notices[0].reason, crate::domain::reason::Reason::KeyWithoutEffect);
        assert!(notices[0].text.starts_with("f:2: skillDiscovery has no effect"), "{}", notices[0].text);
    }
}
