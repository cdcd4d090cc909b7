//! What the schema of an AgentBuild holds.

use serde_json::json;

use super::crd;
use crate::api::agent_kagenti_dev::agent::tests::{spec_of, structural};

#[test]
fn the_schema_is_structural() {
    let mut wrong = Vec::new();
    structural(&spec_of(&crd()), "", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn required(schema: &serde_json::Value) -> Vec<String> {
    let mut names: Vec<String> = serde_json::from_value(schema["required"].clone()).unwrap();
    names.sort();
    names
}

#[test]
fn defaults_and_enumerations() {
    let schema = spec_of(&crd());
    let spec = &schema["properties"]["spec"];
    let field = |name: &str| spec["properties"][name].clone();
    assert_eq!(field("mode")["default"], "dev");
    assert_eq!(field("mode")["enum"].as_array().unwrap().len(), 7);
    assert_eq!(
        field("cleanupAfterBuild"),
        json!({"type": "boolean", "default": true, "description": field("cleanupAfterBuild")["description"]})
    );
    assert_eq!(required(spec), ["source"]);
    assert_eq!(required(&field("source")), ["sourceRepository"]);
    assert_eq!(required(&field("buildOutput")), ["image", "imageRegistry", "imageTag"]);
    assert_eq!(required(&field("pipeline")), ["namespace"]);
    let step = field("pipeline")["properties"]["steps"]["items"].clone();
    assert_eq!(required(&step), ["configMap", "name"]);
    let when = &step["properties"]["whenExpressions"]["items"];
    assert_eq!(when["properties"]["operator"]["enum"], json!(["in", "notin"]));
    assert_eq!(required(when), ["input", "operator", "values"]);
    assert_eq!(field("source")["properties"]["sourceCredentials"].get("required"), None, "the webhook names it");
}
