//! `spec.models` of a ModelAPI: what it means, and everything that is wrong with it at once.

use serde_json::{Value, json};

use super::{model_api, sound};
use crate::api::kaos_tools::migrate::migrate;
use crate::api::kaos_tools::models;
use crate::api::kaos_tools::read::Looked;
use crate::api::kaos_tools::shape::{Budget, Dollars, ModelApi, Offer, Price};
use crate::domain::reason::Reason;

fn offers(models: Value) -> Looked<ModelApi> {
    model_api(json!({"mode": "Proxy", "proxyConfig": {"provider": "openai"}, "models": models}))
}

fn said(looked: &Looked<ModelApi>) -> Vec<(&str, &str)> {
    looked.faults.iter().map(|fault| (&*fault.path, &*fault.sentence)).collect()
}

#[test]
fn models_with_fallbacks_budgets_and_prices_are_offered_by_their_names() {
    let looked = sound(offers(json!([
        {"name": "fast", "model": "gpt-4o-mini", "fallbacks": ["slow", "last"], "budget": {"limit": "2.50", "period": "1d"}},
        {"name": "slow", "provider": "anthropic", "fallbacks": ["last"], "budget": {"limit": 10, "period": "1mo"}},
        {"name": "last", "pricePerMillionTokens": {"input": "0", "output": "0.6"}},
    ])));
    let proxy = looked.value.proxy.as_ref().unwrap();
    let dollars = |text: &str| Dollars::parse(text).unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        proxy.offers,
        [
            Offer {
                name: text("fast"),
                model: Some(text("gpt-4o-mini")),
                fallbacks: vec![text("slow"), text("last")],
                budget: Some(Budget { limit: dollars("2.5"), period: text("1d") }),
                ..Offer::default()
            },
            Offer {
                name: text("slow"),
                provider: Some(text("anthropic")),
                fallbacks: vec![text("last")],
                budget: Some(Budget { limit: dollars("10"), period: text("1mo") }),
                ..Offer::default()
            },
            Offer {
                name: text("last"),
                price: Some(Price { input: dollars("0"), output: dollars("0.6") }),
                ..Offer::default()
            },
        ]
    );
    assert_eq!(looked.value.offered(), ["fast", "slow", "last"]);
    assert!(looked.checks_model() && models::allows(&looked.value.offered(), "slow"));
    assert!(looked.old.is_empty() && looked.notes.is_empty(), "it is no old spelling: {:?}", looked.notes);
}

#[test]
fn the_proxy_itself_may_be_left_out_where_each_model_says_enough() {
    let looked = sound(model_api(json!({"mode": "Proxy", "models": [{"name": "a", "provider": "anthropic"}]})));
    assert_eq!(looked.value.offered(), ["a"]);
    let empty = sound(model_api(json!({"mode": "Proxy", "proxyConfig": {}, "models": [{"name": "a"}]})));
    assert_eq!(empty.value.proxy.unwrap().models, ["a"], "not what an empty proxyConfig meant once");
    let hosted = sound(model_api(json!({"mode": "Hosted", "hostedConfig": {"model": "x"}, "models": [{"name": "a"}]})));
    assert_eq!(hosted.value.offered(), ["x"]);
    assert_eq!((hosted.notes[0].reason, &*hosted.notes[0].path), (Reason::FieldUnused, "spec.models"));
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_path() {
    let looked = offers(json!([
        {"name": "a", "fallbacks": ["a", "b", "b", "bb", "", 5]},
        {"name": "b", "budget": {"limit": "0", "period": "day"}},
        {"name": "a"},
        {"name": "gpt-*"},
        {"model": "x"},
        {"name": "c", "budget": {"limit": -1}},
        {"name": "d", "budget": {"limit": true, "period": "0d"}, "pricePerMillionTokens": {"input": "1,5"}},
        "text",
        {"name": 7},
    ]));
    let found = said(&looked);
    for (path, words) in [
        ("spec.models[0].fallbacks[0]", "names the model itself"),
        ("spec.models[0].fallbacks[2]", "names b twice"),
        ("spec.models[0].fallbacks[3]", "is no name of spec.models; did you mean b?"),
        ("spec.models[0].fallbacks[4]", ""),
        ("spec.models[0].fallbacks[5]", "must be a string, and is"),
        ("spec.models[1].budget.limit", "has to be more than nothing"),
        ("spec.models[1].budget.period", "is no period"),
        ("spec.models[2].name", "a is the name of spec.models[0] as well"),
        ("spec.models[3].name", "is a pattern"),
        ("spec.models[4].name", ""),
        ("spec.models[5].budget.limit", "is no amount"),
        ("spec.models[5].budget.period", ""),
        ("spec.models[6].budget.limit", "must be an amount, and is"),
        ("spec.models[6].budget.period", "is no period"),
        ("spec.models[6].pricePerMillionTokens.input", "is no amount"),
        ("spec.models[6].pricePerMillionTokens.output", ""),
        ("spec.models[7]", "must be a mapping"),
        ("spec.models[8].name", "must be a string"),
    ] {
        assert!(found.iter().any(|(at, said)| *at == path && said.contains(words)), "{path} {words:?}: {found:#?}");
    }
    assert_eq!(found.len(), 18, "{found:#?}");
    assert_eq!(said(&offers(json!([]))), [("spec.models", "is empty")]);
    let many: Vec<_> = (0..101).map(|number| json!({"name": format!("m{number}")})).collect();
    assert_eq!(said(&offers(json!(many))), [("spec.models", "has 101 items; 100 are the most")]);
    assert_eq!(said(&offers(json!({"name": "a"})))[0].0, "spec.models");
}

#[test]
fn fallbacks_that_lead_back_are_told_once_with_their_way() {
    let circle = offers(json!([
        {"name": "first", "fallbacks": ["a"]},
        {"name": "a", "fallbacks": ["b", "end"]},
        {"name": "b", "fallbacks": ["end", "c"]},
        {"name": "c", "fallbacks": ["a"]},
        {"name": "end"},
        {"name": "x", "fallbacks": ["y"]},
        {"name": "y", "fallbacks": ["x"]},
    ]));
    assert_eq!(
        said(&circle),
        [
            ("spec.models[1].fallbacks", "lead back to where they began: a -> b -> c -> a"),
            ("spec.models[5].fallbacks", "lead back to where they began: x -> y -> x"),
        ]
    );
    // Two ways to one end are no circle, however many there are.
    let wide: Vec<_> = (0..100)
        .map(|number| json!({"name": format!("m{number}"), "fallbacks": (number + 1..100).map(|to| format!("m{to}")).collect::<Vec<_>>()}))
        .collect();
    sound(offers(json!(wide)));
}

#[test]
fn two_lists_of_models_are_refused_and_neither_changes_its_meaning_alone() {
    for other in [
        json!({"models": ["a"]}),
        json!({"model": "a"}),
        json!({"configYaml": "model_list: []"}),
        json!({"models": ["*"], "apiBase": "http://x", "provider": "openai"}),
    ] {
        let both = model_api(json!({"mode": "Proxy", "proxyConfig": other, "models": [{"name": "a"}]}));
        let found = said(&both);
        let is =
            |(path, said): &(&str, &str)| *path == "spec.models" && said.ends_with("both say which models are offered");
        assert!(found.iter().any(is), "{other}: {found:?}");
        sound(model_api(json!({"mode": "Proxy", "proxyConfig": other})));
    }
}

#[test]
fn migrate_leaves_the_models_as_they_are() {
    let written = super::object(
        "ModelAPI",
        "m",
        json!({"mode": "Proxy", "proxyConfig": {"env": [{"name": "A", "value": "1"}]}, "models": [{"name": "a", "fallbacks": ["b"]}, {"name": "b"}]}),
    );
    let new = migrate(&written);
    assert_eq!(new.object["spec"]["models"], written["spec"]["models"]);
    assert_eq!(new.object["spec"].pointer("/proxyConfig/models"), None, "{}", new.object);
    assert_eq!(sound(crate::api::kaos_tools::read::model_api(&new.object)).value.offered(), ["a", "b"]);
}
