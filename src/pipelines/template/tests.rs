//! Bad templates, each with its fault.

use serde_json::json;

use super::parse;
use crate::api::findings::printed;

fn faults(text: &str) -> String {
    parse("ns/pipeline-template-x", text).err().map(|faults| printed(&faults)).unwrap_or_default()
}

#[test]
fn what_is_refused_and_how_it_is_named() {
    let many: Vec<_> = (0..1000).map(|index| json!({"name": format!("s{index}"), "configMap": "c"})).collect();
    let step = |step: serde_json::Value| json!({"name": "t", "steps": [step]}).to_string();
    for (text, expected) in [
        ("{", "is not JSON"),
        ("name: yaml", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{\"steps\": [{\"name\": \"a\", \"configMap\": \"c\"}]}", "name is required"),
        ("{\"name\": \"t\"}", "steps is missing or empty"),
        ("{\"name\": \"t\", \"steps\": []}", "steps is missing or empty"),
        ("{\"name\": \"t\", \"steps\": {}}", "steps is not a list"),
        (&json!({"name": "t", "steps": many}).to_string(), "steps has 1000 entries"),
        (&step(json!("x")), "steps[0] is not an object"),
        (&step(json!({"configMap": "c"})), "steps[0].name is required"),
        (&step(json!({"name": "A", "configMap": "c"})), "steps[0].name is not a DNS label"),
        (&step(json!({"name": "a"})), "steps[0].configMap is required"),
        (&step(json!({"name": "a", "configMap": "C"})), "steps[0].configMap is not a DNS subdomain"),
        (&step(json!({"name": "a", "configMap": "c", "enabled": "yes"})), "steps[0].enabled is neither"),
        (&step(json!({"name": "a", "configMap": "c", "enabled": false})), "steps has no enabled entry"),
        (&step(json!({"name": "a", "configMap": "c", "defaultParameters": [{"value": "x"}]})), "defaultParameters[0].name is required"),
        (&step(json!({"name": "a", "configMap": "c", "defaultParameters": [{"name": "x", "value": ["y"]}]})), "value is not a string; a list"),
        (&step(json!({"name": "a", "configMap": "c", "whenExpressions": [{"input": "a", "operator": "eq", "values": ["b"]}]})), "operator is neither in nor notin"),
        (&step(json!({"name": "a", "configMap": "c", "whenExpressions": [{"input": "a", "operator": "in", "values": []}]})), "values is empty"),
        (&step(json!({"name": "a", "configMap": "c", "lockedParameters": ["$x"]})), "lockedParameters[0] is not a parameter name"),
        (&json!({"name": "t", "customSteps": "maybe", "steps": [{"name": "a", "configMap": "c"}]}).to_string(), "customSteps is neither"),
        (&json!({"name": "t", "globalParameters": [{"name": "a"}, {"name": "a"}], "steps": [{"name": "a", "configMap": "c"}]}).to_string(), "globalParameters[1].name occurs twice"),
        (&json!({"name": "t", "steps": [{"name": "a", "configMap": "c"}, {"name": "a", "configMap": "c"}]}).to_string(), "steps[1].name occurs twice"),
    ] {
        let told = faults(text);
        assert!(told.contains(expected) && told.contains("ConfigMap ns/pipeline-template-x: "), "{text:.100} gave {told:?}");
    }
}

#[test]
fn what_a_template_gives() {
    let text = json!({
        "name": "t", "namespace": "ignored", "unknown": {"a": 1}, "customSteps": "forbidden", "requiredParameters": ["image"],
        "globalParameters": [{"name": "pipeline-timeout", "value": "20m"}, {"name": "port", "value": 8000}],
        "steps": [
            {"name": "a", "configMap": "c", "lockedParameters": ["x"], "defaultParameters": [{"name": "flag", "value": true}]},
            {"name": "b", "configMap": "d", "enabled": false, "lockedParameters": ["y"], "requiredParameters": ["z"]},
        ],
    });
    let template = parse("ns/x", &text.to_string()).unwrap();
    assert!(!template.custom_steps);
    assert_eq!(template.globals[1].value, "8000");
    assert_eq!(template.steps_of_build().len(), 1);
    assert_eq!(template.steps_of_build()[0].parameters[0].value, "true");
    assert_eq!(template.locked().collect::<Vec<_>>(), [("x", "a")], "a disabled step locks nothing");
}
