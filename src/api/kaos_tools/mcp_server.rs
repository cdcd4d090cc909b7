//! The definition of `MCPServer` v1alpha1, in every spelling.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::schema::{
    Definition, column, container, definition, env, gateway_route, key_ref, object, pod_spec, resources, status,
    telemetry, text, texts, word,
};

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    definition(Definition {
        kind: "MCPServer",
        plural: "mcpservers",
        short: &["mcp", "mcps"],
        description: "MCPServer is a tool server that speaks the Model Context Protocol over HTTP on port 8000: one Deployment and one \
                      Service, both called mcpserver-<name>.",
        columns: vec![column("Runtime", "string", ".spec.runtime", "Runtime of the registry, or custom")],
        spec: spec(),
        status: status(
            &["Pending", "Ready", "Failed"],
            [
                (
                    "availableTools",
                    texts(
                        "Tools that it offers, as it answered last. Asked for where kaos.toolDiscovery of the platform file is true.",
                    ),
                ),
                (
                    "toolDiscovery",
                    object(
                        "Why availableTools is not newer, or not whole; absent when it is both.",
                        &[],
                        [("reason", text("A word for it.")), ("message", text("The facts."))],
                    ),
                ),
            ],
        ),
        scale: false,
    })
}

fn spec() -> Value {
    let old = |mut schema: Value, means: &str| {
        schema["description"] = json!(means);
        schema
    };
    object(
        "What is wanted.",
        &[],
        [
            (
                "runtime",
                text("Runtime of the platform's registry, such as python-string, or custom with container.image."),
            ),
            (
                "params",
                text("Handed to the runtime in the variable that it declares: for python-string the tools, as Python."),
            ),
            ("serviceAccountName", text("ServiceAccount of its Pods.")),
            ("telemetry", telemetry()),
            ("container", container()),
            ("gatewayRoute", gateway_route()),
            ("podSpec", pod_spec()),
            ("type", word("Old spelling: follows from the source of the tools.", &["python-runtime", "node-runtime"])),
            (
                "config",
                object(
                    "Old spelling of where the tools come from.",
                    &[],
                    [
                        (
                            "tools",
                            object(
                                "Source of the tools.",
                                &[],
                                [
                                    (
                                        "fromString",
                                        text("Tools as Python; runtime python-string with params means the same."),
                                    ),
                                    ("fromPackage", text("Python package that is installed and run.")),
                                    ("fromSecretKeyRef", old(key_ref("Secret"), "Tools as Python, from a Secret.")),
                                ],
                            ),
                        ),
                        ("mcp", text("Old spelling of config.tools.fromPackage.")),
                        ("toolsString", text("Old spelling of config.tools.fromString.")),
                        ("env", env("Old spelling of container.env.")),
                    ],
                ),
            ),
            ("resources", resources("Old spelling of container.resources.")),
        ],
    )
}
