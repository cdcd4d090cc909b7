//! The definition of `ModelAPI` v1alpha1, in every spelling.
//!
//! `configYaml` was a text and is a mapping: the property has no type at all, which is structural and stores both; admission and
//! controllers take nothing else.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::schema::{
    Definition, column, container, definition, env, gateway_route, key_ref, object, pod_spec, resources, status,
    telemetry, text, word,
};

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

fn proxy() -> Value {
    let mut models = json!({
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
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
