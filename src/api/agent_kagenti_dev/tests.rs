//! The CustomResourceDefinition against what users of the Go operator write, as a table.

use serde_json::{Value, json};

use super::*;
use crate::domain::workload::WorkloadKind;

fn crd() -> Value {
    serde_json::to_value(agent_runtime::crd()).unwrap()
}

fn schema() -> Value {
    let mut schema = crd().pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone();
    without_descriptions(&mut schema);
    schema
}

fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("description").is_some_and(Value::is_string) {
                members.remove("description");
            }
            members.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

/// `spec.versions[0].schema` of the reference.
fn reference() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": reference_spec(), "status": reference_status()}
    })
}

/// `spec` of the reference (2.2).
fn reference_spec() -> Value {
    let word = || json!({"type": "string", "minLength": 1});
    json!({
        "type": "object",
        "required": ["targetRef", "type"],
        "properties": {
            "type": {"type": "string", "enum": ["agent", "tool"]},
            "targetRef": {
                "type": "object",
                "required": ["apiVersion", "kind", "name"],
                "properties": {"apiVersion": word(), "kind": word(), "name": word()}
            },
            "identity": {
                "type": "object",
                "properties": {
                    "spiffe": {
                        "type": "object",
                        "properties": {
                            "trustDomain": {"type": "string", "pattern": r"^[a-zA-Z0-9]([a-zA-Z0-9\-\.]*[a-zA-Z0-9])?$"}
                        }
                    }
                }
            },
            "trace": {
                "type": "object",
                "properties": {
                    "endpoint": {"type": "string"},
                    "protocol": {"type": "string", "enum": ["grpc", "http"]},
                    "sampling": {
                        "type": "object",
                        "required": ["rate"],
                        "properties": {"rate": {"type": "number", "minimum": 0.0, "maximum": 1.0}}
                    }
                }
            },
            "authBridgeMode": {"type": "string", "enum": ["proxy-sidecar", "envoy-sidecar", "lite", "waypoint"]}
        }
    })
}

/// `status` of the reference (2.3) with the conditions of the Kubernetes API; what is marked is ours.
fn reference_status() -> Value {
    let text = || json!({"type": "string"});
    let values = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["field"],
        "items": {
            "type": "object",
            "required": ["field", "from", "value"],
            "properties": {
                "field": text(),
                "from": text(),
                "value": text(),
                "shadowed": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["from", "value"],
                        "properties": {"from": text(), "value": text()}
                    }
                }
            }
        }
    });
    json!({
        "type": "object",
        "properties": {
            "phase": {"type": "string", "enum": ["Pending", "Active", "Error"]},
            "configuredPods": {"type": "integer", "format": "int32"},
            "conditions": {"type": "array", "items": condition()},
            // Ours, from here on.
            "observedGeneration": {"type": "integer", "format": "int64"},
            "configHash": text(),
            "effective": {"type": "object", "properties": {"mode": text(), "spiffeID": text(), "values": values}},
            "appliedTarget": {
                "type": "object",
                "required": ["apiVersion", "kind", "name"],
                "properties": {"apiVersion": text(), "kind": text(), "name": text(), "uid": text()}
            },
            "card": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": text(), "verified": {"type": "boolean"}, "reason": text()}
            }
        }
    })
}

/// `metav1.Condition`.
fn condition() -> Value {
    json!({
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "reason": {
                "type": "string", "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
            },
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "type": {
                "type": "string", "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            }
        }
    })
}

/// What ours has and the reference has not, inside what both have: place, member, why.
const ACCEPTED: &[(&str, &str, &str)] = &[
    ("/properties/spec/properties/targetRef", "x-kubernetes-validations", "S4: pairs of apiVersion and kind"),
    (
        "/properties/status/properties",
        "runningPods",
        "Protected counts the Pods that carry their parts out of those that run",
    ),
    ("/properties/status/properties/conditions", "x-kubernetes-list-type", "conditions are a map by type"),
    ("/properties/status/properties/conditions", "x-kubernetes-list-map-keys", "conditions are a map by type"),
];

#[test]
fn the_schema_is_the_reference_and_what_is_listed() {
    let mut ours = schema();
    for (place, member, why) in ACCEPTED {
        let object = ours.pointer_mut(place).and_then(Value::as_object_mut).unwrap_or_else(|| panic!("{place}"));
        assert!(object.remove(*member).is_some(), "{place} no longer has {member} ({why})");
    }
    // Numbers compare by value, not by how they are written.
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap().replace(".0", "");
    assert_eq!(text(&ours), text(&reference()));
}

#[test]
fn names_scope_and_columns_are_the_reference_s() {
    let crd = crd();
    assert_eq!(crd["metadata"]["name"], "agentruntimes.agent.kagenti.dev");
    assert_eq!(crd["spec"]["group"], GROUP);
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let names = &crd["spec"]["names"];
    assert_eq!(names["plural"], "agentruntimes");
    assert_eq!(names["singular"], "agentruntime");
    assert_eq!(names["kind"], "AgentRuntime");
    assert_eq!(names["shortNames"], json!(["art", "agentrt"]));
    let version = &crd["spec"]["versions"][0];
    assert_eq!(crd["spec"]["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&version["name"], &version["served"], &version["storage"]),
        (&json!("v1alpha1"), &json!(true), &json!(true))
    );
    assert_eq!(version["subresources"], json!({"status": {}}));
    let columns: Vec<_> = version["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|column| column.get("priority").is_none_or(|priority| priority == 0))
        .map(|column| {
            (column["name"].as_str().unwrap(), column["jsonPath"].as_str().unwrap(), column["type"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("Type", ".spec.type", "string"),
            ("Target", ".spec.targetRef.name", "string"),
            ("Phase", ".status.phase", "string"),
            ("Protected", ".status.conditions[?(@.type=='Protected')].status", "string"),
            ("Reason", ".status.conditions[?(@.type=='Protected')].reason", "string"),
            ("Age", ".metadata.creationTimestamp", "date"),
        ]
    );
}

#[test]
fn the_rule_on_pairs_names_every_target_kind() {
    let schema = crd();
    let rule = schema
        .pointer(
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/targetRef/x-kubernetes-validations/0",
        )
        .unwrap();
    for kind in WorkloadKind::TARGETS {
        for text in [rule["rule"].as_str().unwrap(), rule["message"].as_str().unwrap()] {
            assert!(text.contains(kind.as_str()) && text.contains(kind.api_version()), "{kind:?} in {text}");
        }
    }
}

#[test]
fn every_field_has_a_text_for_kubectl_explain() {
    fn walk(path: &str, schema: &Value, missing: &mut Vec<String>) {
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if below.get("description").is_none() && !matches!(path.as_str(), ".spec" | ".status") {
                missing.push(path.clone());
            }
            walk(&path, below, missing);
            walk(&path, &below["items"], missing);
        }
    }
    let mut missing = Vec::new();
    walk("", crd().pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap(), &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn an_object_of_the_quick_start_reads_and_writes_as_it_is() {
    let object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentRuntime",
        "metadata": {"name": "weather-agent-runtime", "namespace": "default"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"}}
    });
    let typed: AgentRuntime = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), object);
}
