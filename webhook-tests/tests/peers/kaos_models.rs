//! `spec.models` of a ModelAPI with the published LiteLLM, started as its Deployment has it: a fallback answers when the provider refuses, and a model
//! whose budget is used up is refused, or its fallback answers.

use std::collections::BTreeMap;
use std::time::Duration;

use drawbridge::api::kaos_tools::read;
use drawbridge::workloads::kaos::model_api;
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::container::{Container, ask};
use webhook_tests::network::Network;
use webhook_tests::patience::patience;

use super::kaos::{KEY, container, identity, image, object, settings, upstream};

const HERE: &str = "http://127.0.0.1:9000/v1";
/// The key of the other provider, which has an address and a key of its own.
const OTHER_KEY: &str = "sk-of-the-other-provider";

/// Status, body, and the models that the providers were asked for, each with the key that it was asked with.
type Asked = (u16, String, Vec<(String, String)>);

#[tokio::test]
async fn a_fallback_answers_when_a_provider_refuses_and_a_budget_that_is_used_up_is_refused() {
    let spec = json!({
        "mode": "Proxy",
        "proxyConfig": {"provider": "openai", "apiBase": HERE, "apiKey": {"value": KEY}},
        "models": [
            {"name": "fast", "model": "first-refuses", "fallbacks": ["other"]},
            {"name": "other", "model": "second", "provider": "hosted_vllm"},
            {"name": "alone", "model": "third-refuses"},
            {"name": "dear", "model": "fourth", "budget": {"limit": "0.000001", "period": "1d"},
             "pricePerMillionTokens": {"input": "1", "output": 1}},
            {"name": "spent", "model": "fifth", "budget": {"limit": "0.000001", "period": "1d"},
             "pricePerMillionTokens": {"input": "1", "output": 1}, "fallbacks": ["other"]},
            {"name": "within", "model": "sixth", "budget": {"limit": "5", "period": "1d"},
             "pricePerMillionTokens": {"input": "1", "output": 1}},
        ],
        "container": {"env": [
            {"name": "HOSTED_VLLM_API_BASE", "value": HERE}, {"name": "HOSTED_VLLM_API_KEY", "value": OTHER_KEY},
        ]},
    });
    let looked = read::model_api(&object("ModelAPI", "m", spec));
    assert_eq!(looked.faults, []);
    let composed = model_api::compose(&identity("m"), &looked.value, &settings()).unwrap();
    let mut around = image(&["python3", "FOLDER/bin/litellm"]);
    around.files = BTreeMap::from([("/etc/litellm/config.yaml".to_owned(), composed.config.clone().unwrap())]);
    let network = Network::new().await.unwrap();
    let told = upstream(&network).await;
    let made = container(&composed);
    let running = Container::start(&network, &made, &around).await.unwrap();
    running.ready(&network, 8000, made["readinessProbe"]["httpGet"]["path"].as_str()).await.unwrap();
    let complete = async |model: &str| -> Asked {
        told.lock().clear();
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}).to_string();
        let (status, said) = ask(&network, 8000, ("POST", "/v1/chat/completions"), &[], &body).await.unwrap();
        // As it starts, LiteLLM lists what a provider has, which may come between.
        let asked = std::mem::take(&mut *told.lock()).into_iter().filter(|(path, ..)| path.ends_with("/completions"));
        let asked = asked.map(|(_, model, key)| (model, key)).collect();
        (status, said, asked)
    };
    let (own, other) = (format!("Bearer {KEY}"), format!("Bearer {OTHER_KEY}"));
    let is = |asked: &(String, String), model: &str, key: &str| asked.0 == model && asked.1 == key;

    let (status, said, asked) = complete("fast").await;
    let (last, before) = asked.split_last().unwrap();
    assert!(status == 200 && is(last, "second", &other), "{status} {said} {asked:?}\n{}", running.tail());
    assert!(!before.is_empty() && before.iter().all(|one| is(one, "first-refuses", &own)), "{asked:?}");

    let (status, said, asked) = complete("alone").await;
    assert!(status >= 400 && asked.iter().all(|one| one.0 == "third-refuses"), "{status} {said} {asked:?}");

    // What an answer cost is counted a moment after it was given.
    let spent = async |model: &str, is_over: &dyn Fn(&Asked) -> bool| -> Asked {
        let deadline = Instant::now() + patience();
        loop {
            let answer = complete(model).await;
            if is_over(&answer) || Instant::now() > deadline {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let (status, said, asked) = complete("dear").await;
    assert!(status == 200 && is(&asked[0], "fourth", &own), "{status} {said} {asked:?}\n{}", running.tail());
    let (status, said, asked) = spent("dear", &|(status, ..)| *status != 200).await;
    assert!(status >= 400 && asked.is_empty(), "{status} {said} {asked:?}\n{}", running.tail());
    assert!(said.to_lowercase().contains("budget"), "{status} {said}");

    let (status, said, asked) = complete("spent").await;
    assert!(status == 200 && is(&asked[0], "fifth", &own), "{status} {said} {asked:?}");
    let (status, said, asked) = spent("spent", &|(_, _, asked)| asked.iter().any(|one| one.0 == "second")).await;
    assert!(status == 200 && asked.len() == 1 && is(&asked[0], "second", &other), "{status} {said} {asked:?}");

    for _ in 0..5 {
        let (status, said, asked) = complete("within").await;
        assert!(status == 200 && is(&asked[0], "sixth", &own), "{status} {said} {asked:?}");
    }

    // What `graph --live` reads of a proxy.
    let (status, listed) = ask(&network, 8000, ("GET", "/v1/models"), &[], "").await.unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap_or_else(|error| panic!("{error}: {status} {listed}"));
    let mut names: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["alone", "dear", "fast", "other", "spent", "within"]);
}
