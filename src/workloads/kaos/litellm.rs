//! The configuration of a LiteLLM proxy as a typed value, and as the text that is mounted.
//!
//! In: the models a ModelAPI offers and how they are reached. Out: YAML. Promises: a value is a value, whatever characters it holds: nothing
//! that a name contains can add a key; the text reads the same under YAML 1.1 (which LiteLLM's reader speaks) and 1.2.

use std::fmt::Write as _;

/// LiteLLM's own way of naming a variable of its environment.
pub const API_BASE: &str = "os.environ/PROXY_API_BASE";
/// The same of the key.
pub const API_KEY: &str = "os.environ/PROXY_API_KEY";
/// The variable without which a current LiteLLM does not start when there is no master key.
pub const OPEN: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";

/// A configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// What may be asked for, in order.
    pub models: Vec<Model>,
    /// Traces of requests are sent.
    pub telemetry: bool,
}

/// One entry of `model_list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// What clients ask for; with `*` a pattern.
    pub name: String,
    /// What the provider is asked for.
    pub model: String,
    /// Where; the literal address or [`API_BASE`].
    pub api_base: Option<String>,
    /// With which key: [`API_KEY`].
    pub api_key: bool,
}

impl Model {
    /// The entry of a model that a ModelAPI lists.
    #[must_use]
    pub fn listed(name: &str, provider: Option<&str>, (api_base, api_key): (bool, bool)) -> Self {
        let model = match provider.filter(|provider| !provider.is_empty()) {
            Some(provider) => format!("{provider}/{name}"),
            None => name.to_owned(),
        };
        Self { name: name.to_owned(), model, api_base: api_base.then(|| API_BASE.to_owned()), api_key }
    }
}

impl Configuration {
    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("model_list:\n");
        if self.models.is_empty() {
            text = String::from("model_list: []\n");
        }
        for model in &self.models {
            // Writing into a text cannot fail.
            let _ = writeln!(text, "- model_name: {}", quoted(&model.name));
            let _ = writeln!(text, "  litellm_params:\n    model: {}", quoted(&model.model));
            if let Some(base) = &model.api_base {
                let _ = writeln!(text, "    api_base: {}", quoted(base));
            }
            if model.api_key {
                let _ = writeln!(text, "    api_key: {}", quoted(API_KEY));
            }
        }
        text.push_str("litellm_settings:\n  drop_params: true\n");
        if self.telemetry {
            text.push_str("  success_callback: [\"otel\"]\n  failure_callback: [\"otel\"]\n");
        }
        text
    }
}

/// A text as a double-quoted scalar of YAML, in characters that every reader takes.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            ' '..='~' => quoted.push(letter),
            letter if u32::from(letter) <= 0xff => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(letter));
            }
            letter if u32::from(letter) <= 0xffff => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::yaml;

    fn read(configuration: &Configuration) -> Value {
        yaml::parse(&configuration.text()).unwrap().to_json()
    }

    fn of(models: Vec<Model>) -> Configuration {
        Configuration { models, telemetry: false }
    }

    #[test]
    fn cases_96_to_98_entries_of_listed_models() {
        let entries = |models: Vec<Model>| read(&of(models))["model_list"].clone();
        assert_eq!(
            entries(["a", "b"].map(|name| Model::listed(name, Some("p"), (true, true))).to_vec()),
            json!([
                {"model_name": "a", "litellm_params": {"model": "p/a", "api_base": API_BASE, "api_key": API_KEY}},
                {"model_name": "b", "litellm_params": {"model": "p/b", "api_base": API_BASE, "api_key": API_KEY}},
            ])
        );
        assert_eq!(
            entries(vec![Model::listed("*", Some("nebius"), (false, false))]),
            json!([{"model_name": "*", "litellm_params": {"model": "nebius/*"}}])
        );
        assert_eq!(
            entries(vec![Model::listed("openai/*", None, (false, false))]),
            json!([{"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}])
        );
    }

    #[test]
    fn case_108_telemetry_adds_both_callbacks_and_nothing_else_changes() {
        let without = of(vec![Model::listed("a", None, (false, false))]);
        let with = Configuration { telemetry: true, ..without.clone() };
        assert_eq!(read(&without)["litellm_settings"], json!({"drop_params": true}));
        let settings = json!({"drop_params": true, "success_callback": ["otel"], "failure_callback": ["otel"]});
        assert_eq!(read(&with)["litellm_settings"], settings);
        assert_eq!(read(&without)["model_list"], read(&with)["model_list"]);
    }

    proptest! {
        /// Whatever a name holds, it stays one value.
        #[test]
        fn a_name_adds_no_key(name in any::<String>(), base in any::<String>()) {
            let model = Model { name: name.clone(), model: name.clone(), api_base: Some(base.clone()), api_key: false };
            let configuration = of(vec![model]);
            prop_assert!(configuration.text().bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
            // No reader of ours takes a NUL, escaped or not, as a key; values are compared where it is none.
            if !name.contains('\0') && !base.contains('\0') {
                prop_assert_eq!(
                    read(&configuration),
                    json!({
                        "model_list": [{"model_name": name, "litellm_params": {"model": name, "api_base": base}}],
                        "litellm_settings": {"drop_params": true},
                    })
                );
            }
        }
    }
}
