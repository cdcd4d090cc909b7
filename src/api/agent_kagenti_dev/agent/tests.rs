//! What the schema of an Agent holds.

use serde_json::{Value, json};

use super::{crd, pod_template_schema};

pub(crate) fn spec_of(
    crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
) -> Value {
    let crd = serde_json::to_value(crd).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Kubernetes' rules for structural schemas: a type everywhere but where an integer or a string may stand.
pub(crate) fn structural(schema: &Value, path: &str, wrong: &mut Vec<String>) {
    let int_or_string = schema.get("x-kubernetes-int-or-string").is_some();
    if schema.get("type").is_none() != int_or_string {
        wrong.push(format!("{path}: {schema:.100}"));
    }
    for forbidden in ["$ref", "nullable", "oneOf", "title"] {
        if schema.get(forbidden).is_some() {
            wrong.push(format!("{path}: {forbidden}"));
        }
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
        wrong.push(format!("{path}: properties and additionalProperties"));
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        structural(property, &format!("{path}.{name}"), wrong);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            structural(inner, &format!("{path}.{key}"), wrong);
        }
    }
}

#[test]
fn the_schema_is_structural_and_small() {
    let crd = crd();
    let mut wrong = Vec::new();
    structural(&spec_of(&crd), "", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let size = serde_json::to_string(&crd).unwrap().len();
    assert!(
        size < 80 * 1024,
        "{size} bytes: client-side apply stores them once more, in an annotation of at most 256 KiB"
    );
    assert!(size > 40 * 1024, "{size} bytes: is the Pod's schema there?");
}

#[test]
fn the_pod_template_catches_wrong_types_and_keeps_the_unknown() {
    let schema = pod_template_schema();
    let container = schema.pointer("/properties/spec/properties/containers/items").unwrap();
    assert_eq!(container["properties"]["ports"]["items"]["properties"]["containerPort"]["type"], "integer");
    assert_eq!(container["required"], json!(["name"]));
    assert_eq!(container["x-kubernetes-preserve-unknown-fields"], true);
    let limits = container.pointer("/properties/resources/properties/limits/additionalProperties").unwrap();
    assert_eq!(limits, &json!({"x-kubernetes-int-or-string": true}));
    assert_eq!(schema["properties"]["metadata"]["properties"].as_object().unwrap().len(), 2, "labels and annotations");
    let mut objects = (0, 0);
    count(&schema["properties"]["spec"], &mut objects);
    assert!(objects.0 > 80 && objects.0 == objects.1, "{objects:?}: every object keeps what it does not know");
    assert!(!schema.to_string().contains("\"description\":\""));
}

fn count(schema: &Value, (objects, keeping): &mut (usize, usize)) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        *objects += 1;
        *keeping += usize::from(schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true)));
        for property in properties.values() {
            let mut inner = (0, 0);
            count(property, &mut inner);
            *objects += inner.0;
            *keeping += inner.1;
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            let mut counted = (0, 0);
            count(inner, &mut counted);
            *objects += counted.0;
            *keeping += counted.1;
        }
    }
}

/// A12: replicas and a port whose target is where the container listens.
#[test]
fn case_a12_defaults() {
    let schema = spec_of(&crd());
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["properties"]["replicas"]["default"], 1);
    assert_eq!(spec["properties"]["replicas"]["minimum"], json!(0.0));
    let ports = &spec["properties"]["servicePorts"]["default"];
    assert_eq!(ports, &json!([{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}]));
    assert_eq!(spec["required"], json!(["podTemplateSpec"]), "the image may stand in two places");
}

#[test]
fn exactly_one_source_is_a_rule_of_the_schema() {
    let schema = spec_of(&crd());
    let spec = &schema["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-validations"][0]["rule"], "has(self.image) != has(self.imageSource)");
    let source = &spec["properties"]["imageSource"];
    assert_eq!(source["x-kubernetes-validations"][0]["rule"], "has(self.image) != has(self.buildRef)");
    let crd = serde_json::to_value(crd()).unwrap();
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"]["scale"]["specReplicasPath"], ".spec.replicas");
    assert!(version["subresources"].get("status").is_some());
}
