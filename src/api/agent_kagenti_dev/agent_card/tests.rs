//! The definition against what users of the Go operator write, and its bounds.

use serde_json::{Value, json};

use super::*;

fn version() -> Value {
    serde_json::to_value(crd()).unwrap()["spec"]["versions"][0].clone()
}

fn schema(path: &str) -> Value {
    version().pointer(&format!("/schema/openAPIV3Schema{path}")).unwrap_or_else(|| panic!("{path}")).clone()
}

#[test]
fn names_and_columns_are_those_of_the_quick_start() {
    let crd = serde_json::to_value(crd()).unwrap();
    assert_eq!(crd["metadata"]["name"], "agentcards.agent.kagenti.dev");
    assert_eq!((&crd["spec"]["scope"], &crd["spec"]["names"]["shortNames"]), (&json!("Namespaced"), &json!(["cards"])));
    let version = version();
    assert_eq!(version["subresources"], json!({"status": {}}));
    let columns: Vec<_> = version["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["jsonPath"].as_str().unwrap(), &column["priority"]))
        .collect();
    let always = &Value::Null;
    assert_eq!(
        columns,
        [
            ("Protocol", ".status.protocol", always),
            ("Kind", ".status.targetRef.kind", always),
            ("Target", ".status.targetRef.name", always),
            ("Agent", ".status.card.name", always),
            ("Verified", ".status.conditions[?(@.type=='Verified')].status", always),
            ("Bound", ".status.bindingStatus.bound", always),
            ("Synced", ".status.conditions[?(@.type=='Synced')].status", always),
            ("LastSync", ".status.lastSyncTime", always),
            ("Age", ".metadata.creationTimestamp", always),
            ("Skills", ".status.skills", &json!(1)),
        ]
    );
}

/// Cases 1 to 3: what the API server itself fills in and refuses.
#[test]
fn cases_001_to_003_defaults_and_refusals_of_the_schema() {
    let spec = schema("/properties/spec");
    assert_eq!(spec["properties"]["syncPeriod"]["default"], "30s");
    assert_eq!(spec["required"], Value::Null, "the webhook asks for targetRef");
    for member in ["apiVersion", "kind", "name"] {
        assert_eq!(spec["properties"]["targetRef"]["properties"][member]["minLength"], 1, "{member}");
    }
    assert_eq!(spec["properties"]["targetRef"]["required"], json!(["apiVersion", "kind", "name"]));
    let domain = &spec["properties"]["identityBinding"]["properties"]["trustDomain"];
    assert_eq!(domain["pattern"], r"^[a-zA-Z0-9]([a-zA-Z0-9\-\.]*[a-zA-Z0-9])?$");
}

#[test]
fn every_text_and_list_is_bounded_and_every_field_explained() {
    fn walk(path: &str, schema: &Value, faults: &mut Vec<String>) {
        let bounded = match schema["type"].as_str() {
            // Texts of conditions and times are bounded by the API machinery's own writers; a status is guarded.
            Some("string") => {
                path.contains(".conditions") || schema["format"] == "date-time" || schema["maxLength"].is_u64()
            }
            Some("array") => schema["maxItems"].is_u64(),
            _ => true,
        };
        if !bounded {
            faults.push(format!("{path} has no bound"));
        }
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if below["description"].as_str().is_none_or(str::is_empty) {
                faults.push(format!("{path} is not explained"));
            }
            walk(&path, below, faults);
        }
        for below in ["items", "additionalProperties"].map(|key| &schema[key]).into_iter().filter(|it| it.is_object()) {
            walk(&format!("{path}[]"), below, faults);
        }
    }
    let mut faults = Vec::new();
    for part in ["spec", "status"] {
        walk(part, &schema(&format!("/properties/{part}")), &mut faults);
    }
    assert_eq!(faults, Vec::<String>::new());
    let conditions = schema("/properties/status/properties/conditions");
    assert_eq!(
        (&conditions["x-kubernetes-list-type"], &conditions["x-kubernetes-list-map-keys"]),
        (&json!("map"), &json!(["type"]))
    );
}

/// What breaks a bound of the schema does not fit.
#[test]
fn what_fits_is_taken_by_the_schema() {
    let of_text = |bytes: usize| json!({"name": "x".repeat(bytes)});
    // Braces, quotes, colon and the name of the member.
    let around = r#"{"name":""}"#.len();
    assert!(fits(&of_text(CARD_BYTES - around)));
    assert!(!fits(&of_text(CARD_BYTES - around + 1)));
    let of_skills = |count: usize| json!({"skills": vec![json!({"id": "s"}); count]});
    assert!(fits(&of_skills(CARD_ITEMS)));
    assert!(!fits(&of_skills(CARD_ITEMS + 1)));
    let of_schemes = |count: usize| {
        let schemes: serde_json::Map<_, _> = (0..count).map(|at| (at.to_string(), json!({}))).collect();
        json!({"securitySchemes": schemes})
    };
    assert!(fits(&of_schemes(CARD_ITEMS)));
    assert!(!fits(&of_schemes(CARD_ITEMS + 1)));
}

#[test]
fn an_object_as_it_is_made_reads_and_writes_as_it_is() {
    let object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentCard",
        "metadata": {"name": "w-deployment-card", "namespace": "team"},
        "spec": {"syncPeriod": "30s", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
            "identityBinding": {}},
        "status": {"cardId": "00", "targetUID": "u", "card": {"name": "A", "skills": [{"id": "s"}]}, "skills": "s",
            "expectedSpiffeID": "spiffe://d/ns/team/sa/w", "bindingStatus": {"bound": true}},
    });
    let typed: AgentCard = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), object);
}
