//! Schemas as JSON, and what the three definitions have in common.
//!
//! The texts are what `kubectl explain` prints. `podSpec`, `resources` and `env` have Kubernetes' whole schema without its descriptions, so
//! that wrong types are refused; unknown members there are kept, for a newer API server. No field is `nullable`: the API server drops an
//! explicit null. A default that an alias would be shadowed by is filled in by the reader, not here.

use k8s_openapi::api::core::v1::{EnvVar, PodSpec, ResourceRequirements};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

use super::{CATEGORY, MOST_ITEMS, VERSION};
use crate::api::agent_kagenti_dev::agent::plain_schema;
use crate::domain::keys;

/// A text.
pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Yes or no.
pub(super) fn boolean(description: &str, default: Option<bool>) -> Value {
    let mut schema = json!({"type": "boolean", "description": description});
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

/// A whole number.
pub(super) fn integer(description: &str, (least, most): (i64, Option<i64>), default: Option<i64>) -> Value {
    let mut schema = json!({"type": "integer", "format": "int32", "minimum": least, "description": description});
    if let Some(most) = most {
        schema["maximum"] = json!(most);
    }
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

/// An amount: a whole number, or a text with a point.
pub(super) fn amount(description: &str) -> Value {
    json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "description": description})
}

/// One of several words.
pub(super) fn word(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

/// A list of texts.
pub(super) fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

/// A list with no more items than that.
pub(super) fn at_most(most: usize, mut list: Value) -> Value {
    list["maxItems"] = json!(most);
    list
}

/// A list of texts that people write, with no more items than are read of one.
pub(super) fn listed(description: &str) -> Value {
    at_most(MOST_ITEMS, texts(description))
}

/// A mapping with these members.
pub(super) fn object(
    description: &str,
    required: &[&str],
    members: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let members: Map<String, Value> = members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = json!({"type": "object", "properties": members, "description": description});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

/// An environment.
pub(super) fn env(description: &str) -> Value {
    at_most(MOST_ITEMS, json!({"type": "array", "items": plain_schema::<EnvVar>(), "description": description}))
}

/// Requests and limits.
pub(super) fn resources(description: &str) -> Value {
    described(plain_schema::<ResourceRequirements>(), description)
}

/// Kubernetes' schema of a Pod, its containers optional.
pub(super) fn pod_spec() -> Value {
    let mut schema = plain_schema::<PodSpec>();
    if let Some(members) = schema.as_object_mut() {
        members.remove("required");
    }
    described(
        schema,
        "Merged over the generated Pod as kubectl patch does it: entries of a list by their name. Containers may be left out.",
    )
}

/// A key of a Secret or ConfigMap.
pub(super) fn key_ref(what: &str) -> Value {
    object(
        &format!("A key of a {what} of this namespace."),
        &["key"],
        [
            ("name", described(json!({"type": "string"}), "Its name.")),
            ("key", text("The key.")),
            ("optional", boolean("Whether it may be absent.", None)),
        ],
    )
}

/// `container`.
pub(super) fn container() -> Value {
    object(
        "The one container.",
        &[],
        [
            ("image", text("Image in place of the platform's.")),
            ("command", listed("Command in place of the image's.")),
            ("args", listed("Arguments in place of the generated ones.")),
            ("env", env("Environment, in order.")),
            ("resources", resources("Requests and limits.")),
        ],
    )
}

/// `telemetry`.
pub(super) fn telemetry() -> Value {
    object(
        "OpenTelemetry of this object; left out, the platform's setting counts.",
        &[],
        [
            ("enabled", boolean("Whether it is on.", Some(false))),
            ("endpoint", text("Where OTLP over gRPC is taken, such as http://collector.observability:4317.")),
        ],
    )
}

/// `gatewayRoute`.
pub(super) fn gateway_route() -> Value {
    let mut timeout =
        text("Timeout of a request, such as 90s or 1m30s; 0s for none. Left out, the platform's for the kind.");
    timeout["pattern"] = json!("^([0-9]{1,5}(h|m|s|ms)){1,4}$");
    object("The route, where the platform has a Gateway.", &[], [("timeout", timeout)])
}

/// What people and other programs read of every kind, with `more`.
pub(super) fn status(phases: &[&str], more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let count = |description: &str| json!({"type": "integer", "format": "int32", "description": description});
    let mut schema = object(
        "What was observed.",
        &[],
        [
            (
                "observedGeneration",
                json!({"type": "integer", "format": "int64", "description": "Generation of the spec that this status speaks of."}),
            ),
            ("phase", word("How it stands, in one word.", phases)),
            ("ready", boolean("Whether it serves.", None)),
            ("endpoint", text("Base URL, without a path.")),
            ("message", text("How it stands, in a sentence.")),
            (
                "deployment",
                object(
                    "Status of the Deployment.",
                    &[],
                    [
                        ("replicas", count("Pods that exist.")),
                        ("readyReplicas", count("Pods that are ready.")),
                        ("availableReplicas", count("Pods that are available.")),
                        ("updatedReplicas", count("Pods of the present template.")),
                        ("conditions", deployment_conditions()),
                    ],
                ),
            ),
            (
                "takeover",
                object(
                    "Of an object whose Deployment still is as the KAOS operator made it. Absent otherwise.",
                    &[],
                    [
                        (
                            "generation",
                            json!({"type": "integer", "format": "int64", "description": "Generation of the spec that was compared."}),
                        ),
                        ("template", text("Digest of the template that was wanted then.")),
                        ("configuration", text("Digest of the configuration that its Pods mount.")),
                        ("changes", texts("What else the next change does, or why the Pods are replaced.")),
                    ],
                ),
            ),
            (
                "references",
                text(
                    "Which Secrets and ConfigMaps its environment refers to, and in which versions they were seen: digests.",
                ),
            ),
            ("conditions", conditions()),
        ],
    );
    for (name, member) in more {
        schema["properties"][name] = member;
    }
    schema
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "Ready, and what else is to be known.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string"},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string"},
                "message": {"type": "string"},
            },
        },
    })
}

/// Of a Deployment: a reason may be absent or empty there, and must not cost the whole status.
fn deployment_conditions() -> Value {
    json!({
        "type": "array",
        "description": "Its conditions.",
        "items": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "status": {"type": "string"},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "lastTransitionTime": {"type": "string"},
                "reason": {"type": "string"},
                "message": {"type": "string"},
            },
        },
    })
}

/// A column of `kubectl get`.
pub(super) fn column(name: &str, kind: &str, path: &str, description: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path, "description": description})
}

/// What tells the kinds apart.
pub(super) struct Definition {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) description: &'static str,
    pub(super) columns: Vec<Value>,
    pub(super) spec: Value,
    pub(super) status: Value,
    pub(super) scale: bool,
}

/// The definition.
pub(super) fn definition(of: Definition) -> CustomResourceDefinition {
    let mut columns = of.columns;
    columns.push(column("Ready", "boolean", ".status.ready", "Whether it serves"));
    columns.push(column("Phase", "string", ".status.phase", "How it stands"));
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let mut subresources = json!({"status": {}});
    if of.scale {
        subresources["scale"] = json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.observedReplicas",
            "labelSelectorPath": ".status.selector",
        });
    }
    let schema = json!({
        "type": "object",
        "description": of.description,
        "required": ["spec"],
        "properties": {"spec": of.spec, "status": of.status},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", of.plural, keys::GROUP_KAOS)},
        "spec": {
            "group": keys::GROUP_KAOS,
            "scope": "Namespaced",
            "names": {
                "kind": of.kind, "listKind": format!("{}List", of.kind), "plural": of.plural,
                "singular": of.kind.to_ascii_lowercase(), "shortNames": of.short, "categories": [CATEGORY],
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "additionalPrinterColumns": columns,
                "subresources": subresources,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    serde_json::from_value(definition).expect("the definition has the members of its type")
}
