//! The definition of KAOS's `Agent` v1alpha1, in every spelling.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::schema::{
    Definition, boolean, column, container, definition, env, gateway_route, integer, listed, object, pod_spec,
    resources, status, telemetry, text, word,
};

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    definition(Definition {
        kind: "Agent",
        plural: "agents",
        short: &["kaosagent"],
        description: "Agent is a Python process that asks one ModelAPI, uses MCPServers and calls other Agents: one Deployment, and a \
                      Service on port 8000, both called agent-<name>.",
        columns: vec![
            column("ModelAPI", "string", ".spec.modelAPI", "ModelAPI that it asks"),
            column("Model", "string", ".spec.model", "Model that it asks for"),
        ],
        spec: spec(),
        status: status(
            &["Pending", "Ready", "Failed", "Waiting"],
            [
                ("linkedResources", linked()),
                ("observedReplicas", json!({"type": "integer", "format": "int32", "description": "Pods that exist."})),
                ("selector", text("Selector of the Pods, for the scale subresource.")),
            ],
        ),
        scale: true,
    })
}

fn linked() -> Value {
    json!({
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "What it is wired to, by kind.",
    })
}

fn spec() -> Value {
    object(
        "What is wanted.",
        &["modelAPI"],
        [
            ("modelAPI", text("ModelAPI of this namespace that it asks.")),
            ("model", text("Model that it asks for; one that the ModelAPI offers. Without one smollm2:135m.")),
            ("mcpServers", listed("MCPServers of this namespace that it uses.")),
            ("agentNetwork", network()),
            ("config", config()),
            (
                "waitForDependencies",
                boolean("Whether it is created only once ModelAPI and MCPServers are ready.", Some(true)),
            ),
            ("replicas", integer("Pods that are wanted; left out, whoever scales it decides.", (0, None), None)),
            ("container", container()),
            ("gatewayRoute", gateway_route()),
            ("podSpec", pod_spec()),
            ("resources", resources("Old spelling of container.resources.")),
        ],
    )
}

fn network() -> Value {
    object(
        "Agents among themselves.",
        &[],
        [
            ("expose", boolean("Whether others can call it: a Service, and a route.", Some(true))),
            ("access", listed("Agents of this namespace that it may call.")),
        ],
    )
}

fn config() -> Value {
    object(
        "How it behaves.",
        &[],
        [
            ("description", text("What it is for; stands in its card.")),
            ("instructions", text("Instructions to the model.")),
            // Without a default here: it would shadow the old spelling.
            (
                "reasoningLoopMaxSteps",
                integer("Most steps of its loop; 5 where config is written without it.", (1, Some(20)), None),
            ),
            (
                "memory",
                object(
                    "What it remembers of a conversation, in its own process.",
                    &[],
                    [
                        ("enabled", boolean("Whether it remembers.", Some(true))),
                        ("type", defaulted(word("Where.", &["local"]), "local")),
                        (
                            "contextLimit",
                            integer("Messages that are passed on when it delegates.", (1, Some(100)), Some(6)),
                        ),
                        ("maxSessions", integer("Most sessions.", (1, Some(100_000)), Some(1000))),
                        ("maxSessionEvents", integer("Most events of a session.", (1, Some(10_000)), Some(500))),
                    ],
                ),
            ),
            ("telemetry", telemetry()),
            ("env", env("Old spelling of container.env; MODEL_NAME there is spec.model.")),
            (
                "agenticLoop",
                object(
                    "Old spelling of the loop's settings.",
                    &[],
                    [
                        ("maxSteps", integer("Old spelling of config.reasoningLoopMaxSteps.", (1, Some(20)), None)),
                        ("enableTools", boolean("Variable AGENTIC_LOOP_ENABLE_TOOLS, only if set.", None)),
                        ("enableDelegation", boolean("Variable AGENTIC_LOOP_ENABLE_DELEGATION, only if set.", None)),
                    ],
                ),
            ),
        ],
    )
}

fn defaulted(mut schema: Value, default: &str) -> Value {
    schema["default"] = json!(default);
    schema
}
