//! The definitions, as people see them.

use serde_json::{Value, json};

use super::agent;

fn of(crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition) -> Value {
    serde_json::to_value(crd).unwrap()
}

/// One category, and short names in one group alone.
#[test]
fn both_groups_have_one_shape_one_category_and_one_set_of_short_names() {
    let (ours, compat) = (of(agent::crd()), of(agent::compat_crd()));
    assert_eq!(ours["metadata"]["name"], "agents.beeai.dev");
    assert_eq!(compat["metadata"]["name"], "agents.beeai.beeai.dev");
    assert_eq!(compat["spec"]["group"], "beeai.beeai.dev");
    for crd in [&ours, &compat] {
        assert_eq!(crd["spec"]["names"]["categories"], json!(["beeai"]));
        assert_eq!(crd["spec"]["names"]["kind"], "Agent");
    }
    assert_eq!(ours["spec"]["names"]["shortNames"], json!(["bagent"]));
    assert!(compat["spec"]["names"]["shortNames"].as_array().is_none_or(Vec::is_empty));
    assert_eq!(ours["spec"]["versions"], compat["spec"]["versions"]);
}

/// What users of the original operator write.
#[test]
fn the_schema_asks_for_an_image_and_knows_the_columns() {
    let crd = of(agent::crd());
    let version = &crd["spec"]["versions"][0];
    let columns: Vec<_> = version["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["jsonPath"].as_str().unwrap()))
        .collect();
    let wanted = [("Image", ".spec.image"), ("Ready", ".status.ready"), ("Age", ".metadata.creationTimestamp")];
    assert_eq!(columns, wanted);
    let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(schema["required"], json!(["image"]));
    let env = &schema["properties"]["env"]["items"];
    assert_eq!((&env["properties"]["value"]["type"], &env["required"]), (&json!("string"), &json!(["name"])));
    assert!(!crd.to_string().contains("nullable"), "the API server drops an explicit null");
}
