//! The configuration of a LiteLLM proxy as a typed value, and as the text that is mounted.
//!
//! In: the models a ModelAPI offers and how they are reached. Out: YAML. Promises: a value is a value, whatever characters it holds: nothing
//! that a name contains can add a key; the text reads the same under YAML 1.1 (which LiteLLM's reader speaks) and 1.2.

use std::fmt::Write as _;

use crate::api::kaos_tools::shape::{Budget, Offer, Price, Proxy};

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
    /// Who answers in whose place, in order.
    pub fallbacks: Vec<(String, Vec<String>)>,
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
    /// What it may cost.
    pub budget: Option<Budget>,
    /// What it costs.
    pub price: Option<Price>,
}

impl Model {
    /// The entry of a model that a ModelAPI lists.
    #[must_use]
    pub fn listed(name: &str, provider: Option<&str>, (api_base, api_key): (bool, bool)) -> Self {
        let model = match provider.filter(|provider| !provider.is_empty()) {
            Some(provider) => format!("{provider}/{name}"),
            None => name.to_owned(),
        };
        let api_base = api_base.then(|| API_BASE.to_owned());
        Self { name: name.to_owned(), model, api_base, api_key, budget: None, price: None }
    }

    /// The entry of a model of `spec.models`; one of another provider has neither the proxy's address nor its key.
    #[must_use]
    pub fn offered(offer: &Offer, proxy: &Proxy) -> Self {
        let (provider, by) = match &offer.provider {
            Some(own) => (Some(&**own), (false, false)),
            None => (proxy.provider.as_deref(), (proxy.api_base.is_some(), proxy.api_key.is_some())),
        };
        let asked = offer.model.as_deref().unwrap_or(&offer.name);
        let entry = Self::listed(asked, provider, by);
        Self { name: offer.name.clone(), budget: offer.budget.clone(), price: offer.price, ..entry }
    }
}

/// What a proxy's configuration says where it is made of fields.
#[must_use]
pub fn of(proxy: &Proxy, telemetry: bool) -> Configuration {
    if proxy.offers.is_empty() {
        let by = (proxy.api_base.is_some(), proxy.api_key.is_some());
        let models = proxy.models.iter().map(|name| Model::listed(name, proxy.provider.as_deref(), by));
        return Configuration { models: models.collect(), fallbacks: Vec::new(), telemetry };
    }
    let models = proxy.offers.iter().map(|offer| Model::offered(offer, proxy)).collect();
    let fallbacks = proxy.offers.iter().filter(|offer| !offer.fallbacks.is_empty());
    let fallbacks = fallbacks.map(|offer| (offer.name.clone(), offer.fallbacks.clone())).collect();
    Configuration { models, fallbacks, telemetry }
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
            if let Some(Price { input, output }) = &model.price {
                let _ = writeln!(text, "    input_cost_per_token: {}", input.per_million());
                let _ = writeln!(text, "    output_cost_per_token: {}", output.per_million());
            }
            if let Some(Budget { limit, period }) = &model.budget {
                let _ = writeln!(text, "    max_budget: {}\n    budget_duration: {}", limit.text(), quoted(period));
            }
        }
        text.push_str("litellm_settings:\n  drop_params: true\n");
        if self.telemetry {
            text.push_str("  success_callback: [\"otel\"]\n  failure_callback: [\"otel\"]\n");
        }
        if !self.fallbacks.is_empty() {
            text.push_str("router_settings:\n  fallbacks:\n");
        }
        for (name, others) in &self.fallbacks {
            let others: Vec<_> = others.iter().map(|other| quoted(other)).collect();
            let _ = writeln!(text, "  - {}: [{}]", quoted(name), others.join(", "));
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
    use crate::api::kaos_tools::shape::Dollars;
    use crate::api::yaml;

    fn read(configuration: &Configuration) -> Value {
        yaml::parse(&configuration.text()).unwrap().to_json()
    }

    fn of(models: Vec<Model>) -> Configuration {
        Configuration { models, fallbacks: Vec::new(), telemetry: false }
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

    #[test]
    fn fallbacks_budgets_and_prices_are_typed_settings_of_the_router() {
        let proxy = Proxy {
            provider: Some("openai".to_owned()),
            api_base: Some("http://x".to_owned()),
            api_key: None,
            offers: vec![
                Offer {
                    name: "fast".to_owned(),
                    model: Some("gpt-4o-mini".to_owned()),
                    fallbacks: vec!["slow".to_owned(), "a: [b]".to_owned()],
                    budget: Some(Budget { limit: Dollars::parse("2.5").unwrap(), period: "1d".to_owned() }),
                    ..Offer::default()
                },
                Offer {
                    name: "slow".to_owned(),
                    provider: Some("anthropic".to_owned()),
                    price: Some(Price { input: Dollars::parse("0.15").unwrap(), output: Dollars::parse("1").unwrap() }),
                    ..Offer::default()
                },
                Offer { name: "a: [b]".to_owned(), ..Offer::default() },
            ],
            ..Proxy::default()
        };
        assert_eq!(
            read(&super::of(&proxy, false)),
            json!({
                "model_list": [
                    {"model_name": "fast", "litellm_params": {
                        "model": "openai/gpt-4o-mini", "api_base": API_BASE, "max_budget": 2.5, "budget_duration": "1d"}},
                    {"model_name": "slow", "litellm_params": {
                        "model": "anthropic/slow", "input_cost_per_token": 0.000_000_15, "output_cost_per_token": 0.000_001}},
                    {"model_name": "a: [b]", "litellm_params": {"model": "openai/a: [b]", "api_base": API_BASE}},
                ],
                "litellm_settings": {"drop_params": true},
                "router_settings": {"fallbacks": [{"fast": ["slow", "a: [b]"]}]},
            })
        );
    }

    proptest! {
        /// Whatever a name holds, it stays one value.
        #[test]
        fn a_name_adds_no_key(name in any::<String>(), base in any::<String>()) {
            let entry = Model::listed(&name, None, (false, false));
            let model = Model { api_base: Some(base.clone()), ..entry };
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
