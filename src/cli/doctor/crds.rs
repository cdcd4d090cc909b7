//! Are our CustomResourceDefinitions there, in force, and those of this version?

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Seen, Visit, text};
use crate::store::{Kind, KindOrigin};

const APPLY: &str = "kubectl apply -f manifests/crds (or install.yaml), of the version of this binary";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let served = visit.kinds;
    for wanted in Kind::definitions(KindOrigin::Ours).filter(|one| served.serves(&one.spec.group)) {
        let wanted = serde_json::to_value(&wanted)?;
        let name = format!("CustomResourceDefinition {}", text(&wanted, "/metadata/name"));
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", text(&wanted, "/metadata/name"));
        match visit.read(&name, &path).await? {
            Seen::Is(found) => judge(visit, &name, &found, &wanted),
            Seen::Hidden => {}
            Seen::Absent => visit.finding(&name, "does not exist: workloads can be enrolled by label only", APPLY),
        }
    }
    Ok(())
}

fn judge(visit: &mut Visit, name: &str, found: &Value, wanted: &Value) {
    let conditions = found.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let established = conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True");
    let refused = conditions.iter().find(|one| one["type"] == "NamesAccepted" && one["status"] == "False");
    if let Some(refused) = refused {
        let remedy = "another CustomResourceDefinition has these names; remove or rename that one";
        return visit.finding(name, format!("its names are not accepted: {}", text(refused, "/message")), remedy);
    }
    if !established {
        return visit.finding(name, "is not served yet", "wait a moment, then look at its conditions");
    }
    for version in versions(wanted) {
        let of = text(version, "/name");
        let Some(served) = versions(found).iter().find(|one| text(one, "/name") == of && one["served"] == true) else {
            return visit.finding(name, format!("version {of} is not served"), APPLY);
        };
        let (missing, foreign) = difference(served, version);
        if !missing.is_empty() {
            let seen = format!("version {of} lacks {}: the API server drops these fields", missing.join(", "));
            return visit.finding(name, seen, APPLY);
        }
        if !foreign.is_empty() {
            let seen = format!("version {of} has {}, which this version does not know", foreign.join(", "));
            return visit.finding(name, seen, "use the binary and the manifests of one version");
        }
    }
    visit.ok(name, "is served, with the fields of this version");
}

fn versions(definition: &Value) -> &[Value] {
    definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Fields that only `wanted`, and that only `served` has.
fn difference(served: &Value, wanted: &Value) -> (Vec<String>, Vec<String>) {
    let fields = |version: &Value| {
        let mut found = BTreeSet::new();
        collect("", &version["schema"]["openAPIV3Schema"], &mut found);
        found
    };
    let (there, ours) = (fields(served), fields(wanted));
    (ours.difference(&there).cloned().collect(), there.difference(&ours).cloned().collect())
}

/// The path of every field of a schema.
fn collect(path: &str, schema: &Value, found: &mut BTreeSet<String>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let below_path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(&below_path, below, found);
        found.insert(below_path);
    }
    if schema["items"].is_object() {
        collect(&format!("{path}[]"), &schema["items"], found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_another_version_is_told_field_by_field() {
        let ours = serde_json::to_value(crate::api::agent_kagenti_dev::agent_runtime::crd()).unwrap();
        let version = &versions(&ours)[0];
        assert_eq!(difference(version, version), (Vec::new(), Vec::new()));
        let mut other = version.clone();
        let spec = other.pointer_mut("/schema/openAPIV3Schema/properties/spec/properties").unwrap();
        let spec = spec.as_object_mut().unwrap();
        spec.remove("authBridgeMode").unwrap();
        spec.insert("mtlsMode".to_owned(), serde_json::json!({"type": "string"}));
        assert_eq!(
            difference(&other, version),
            (vec!["spec.authBridgeMode".to_owned()], vec!["spec.mtlsMode".to_owned()])
        );
    }
}
