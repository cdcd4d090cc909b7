//! The definition of `ModelAPI` v1alpha1, in every spelling.
//!
//! `configYaml` was a text and is a mapping: the property has no type at all, which is structural and stores both; admission and
//! controllers take nothing else.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::MOST_ITEMS;
use super::schema::{
    Definition, amount, at_most, column, container, definition, env, gateway_route, key_ref, object, pod_spec,
    resources, status, telemetry, text, texts, word,
};

/// Most models with fallbacks of one proxy, and most fallbacks of one of them.
pub(super) const MOST_MODELS: usize = 100;

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    definition(Definition {
        kind: "ModelAPI",
        plural: "modelapis",
        short: &["api", "apis"],
        description: "ModelAPI is what Agents ask: LiteLLM in front of a provider (port 8000), or a model that Ollama runs in the cluster \
                      (port 11434); one Deployment and one Service, both called modelapi-<name>.",
        columns: vec![column("Mode", "string", ".spec.mode", "Proxy or Hosted")],
        spec: spec(),
        status: status(&["Pending", "Ready", "Failed"], []),
        scale: false,
    })
}

fn spec() -> Value {
    object(
        "What is wanted.",
        &["mode"],
        [
            ("mode", word("A proxy in front of a provider, or a hosted model.", &["Proxy", "Hosted"])),
            ("proxyConfig", proxy()),
            ("models", models()),
            (
                "hostedConfig",
                object(
                    "The hosted model, in mode Hosted.",
                    &["model"],
                    [("model", text("Its tag, such as smollm2:135m.")), ("env", env("Old spelling of container.env."))],
                ),
            ),
            ("telemetry", telemetry()),
            ("container", container()),
            ("gatewayRoute", gateway_route()),
            ("podSpec", pod_spec()),
            (
                "serverConfig",
                object(
                    "Old spelling of hostedConfig.",
                    &[],
                    [
                        ("model", text("Old spelling of hostedConfig.model.")),
                        ("env", env("Old spelling of container.env.")),
                        ("resources", resources("Old spelling of container.resources.")),
                    ],
                ),
            ),
        ],
    )
}

fn models() -> Value {
    let budget = object(
        "What it may cost: once that much was spent it is refused, or a fallback answers, until the period is over. Each Pod of the proxy counts what \
         it spends itself, from its start.",
        &["limit", "period"],
        [
            ("limit", amount("US dollars, such as \"2.50\".")),
            ("period", text("A number and s, m (minutes), h, d, w or mo, such as 1d.")),
        ],
    );
    let price = object(
        "What it costs, in US dollars; left out, what LiteLLM knows of it. A model of unknown price costs nothing, so no budget of it is ever used up.",
        &["input", "output"],
        [
            ("input", amount("A million tokens of what is asked.")),
            ("output", amount("A million tokens of what is answered.")),
        ],
    );
    let item = object(
        "A model that agents may ask for.",
        &["name"],
        [
            ("name", text("What agents ask for; no pattern.")),
            ("model", text("What the provider is asked for; left out, the name.")),
            (
                "provider",
                text(
                    "Another provider than proxyConfig.provider, such as anthropic. proxyConfig.apiBase and apiKey are not its own: LiteLLM takes address and \
                     key of it from container.env, such as ANTHROPIC_API_KEY.",
                ),
            ),
            (
                "fallbacks",
                at_most(
                    MOST_MODELS,
                    texts(
                        "Names of other models here that answer in its place, in order, while its provider refuses or its budget is used up.",
                    ),
                ),
            ),
            ("budget", budget),
            ("pricePerMillionTokens", price),
        ],
    );
    json!({
        "type": "array", "items": item, "minItems": 1, "maxItems": MOST_MODELS,
        "description": "In mode Proxy, in place of proxyConfig.models: the models with fallbacks and budgets.",
    })
}

fn proxy() -> Value {
    let mut models = json!({
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": MOST_ITEMS,
    });
    models["description"] = json!("Models that agents may ask for, in order; * and <provider>/* stand for any.");
    let from = object(
        "Where the key comes from.",
        &[],
        [("secretKeyRef", key_ref("Secret")), ("configMapKeyRef", key_ref("ConfigMap"))],
    );
    object(
        "The proxy, in mode Proxy.",
        &[],
        [
            ("models", models),
            ("provider", text("LiteLLM's prefix of every model, such as openai.")),
            ("apiBase", text("Address of the provider. Alone, without models: any model at that address.")),
            (
                "apiKey",
                object(
                    "Key of the provider.",
                    &[],
                    [
                        ("value", text("The key itself, which everybody reads who may read this object.")),
                        ("valueFrom", from),
                    ],
                ),
            ),
            (
                "configYaml",
                json!({
                    "x-kubernetes-preserve-unknown-fields": true,
                    "description": "LiteLLM's whole configuration, in place of a generated one: a text, or fromString, or fromSecretKeyRef \
                                    (name, key).",
                }),
            ),
            ("model", text("Old spelling of models with that one item.")),
            ("env", env("Old spelling of container.env.")),
        ],
    )
}
