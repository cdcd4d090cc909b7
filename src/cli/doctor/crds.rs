//! Are our CustomResourceDefinitions there, in force, and those of this version? Those of a group that is served where it is installed are
//! judged where they are.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Seen, Visit, text};
use crate::server::guards::watch::APPLY_COMPAT;
use crate::store::{Kind, KindOrigin};

/// Where definitions come from.
const ORIGINS: [KindOrigin; 2] = [KindOrigin::Ours, KindOrigin::Compat];

/// What to do about a definition that is not as it should be. Those of ours have a file each, in which there is nothing else; the others come
/// with rights and policies, which are rendered for an installation.
fn remedy(origin: KindOrigin, name: &str) -> String {
    match origin {
        KindOrigin::Compat => APPLY_COMPAT.to_owned(),
        _ => format!("kubectl apply -f manifests/crds/{name}.yaml, of the version of this binary"),
    }
}

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let served = visit.kinds;
    for origin in ORIGINS {
        for wanted in Kind::definitions(origin).filter(|one| served.serves(&one.spec.group)) {
            let wanted = serde_json::to_value(&wanted)?;
            let name = format!("CustomResourceDefinition {}", text(&wanted, "/metadata/name"));
            let apply = remedy(origin, text(&wanted, "/metadata/name"));
            let path =
                format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", text(&wanted, "/metadata/name"));
            match visit.read(&name, &path).await? {
                Seen::Is(found) => judge(visit, &name, (&found, &wanted), &apply),
                Seen::Absent if origin == KindOrigin::Ours => {
                    visit.finding(&name, "does not exist: workloads can be enrolled by label only", apply);
                }
                Seen::Absent | Seen::Hidden => {}
            }
        }
    }
    Ok(())
}

fn judge(visit: &mut Visit, name: &str, (found, wanted): (&Value, &Value), apply: &str) {
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
            return visit.finding(name, format!("version {of} is not served"), apply);
        };
        let lacks = subresources(served, version);
        if !lacks.is_empty() {
            return visit.finding(name, format!("version {of} {}", lacks.join("; ")), apply);
        }
        let (missing, foreign) = difference(served, version);
        if !missing.is_empty() {
            let seen = format!("version {of} lacks {}: the API server drops these fields", missing.join(", "));
            return visit.finding(name, seen, apply);
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

/// Each subresource that only `wanted` has, with what follows.
fn subresources(served: &Value, wanted: &Value) -> Vec<String> {
    let names = wanted["subresources"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let lacks = names.filter(|name| !served["subresources"][*name].is_object());
    let told = |name: &str| {
        let follows = match name {
            "status" => "who may write these objects writes their status, too, and Drawbridge cannot write it",
            _ => "kubectl scale and autoscalers do not reach these objects",
        };
        format!("lacks subresource {name}: {follows}")
    };
    lacks.map(told).collect()
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
    fn every_subresource_of_every_kind_of_ours_is_missed() {
        let mut missed = std::collections::BTreeMap::new();
        for definition in ORIGINS.into_iter().flat_map(Kind::definitions) {
            let definition = serde_json::to_value(&definition).unwrap();
            let name = text(&definition, "/metadata/name");
            for ours in versions(&definition) {
                assert_eq!(subresources(ours, ours), Vec::<String>::new(), "{name}");
                let has: Vec<String> = ours["subresources"].as_object().unwrap().keys().cloned().collect();
                for one in &has {
                    let mut other = ours.clone();
                    other["subresources"].as_object_mut().unwrap().remove(one).unwrap();
                    let told = subresources(&other, ours);
                    assert!(told.len() == 1 && told[0].starts_with(&format!("lacks subresource {one}: ")), "{told:?}");
                }
                let mut none = ours.clone();
                none.as_object_mut().unwrap().remove("subresources").unwrap();
                assert_eq!(subresources(&none, ours).len(), has.len(), "{name}");
                missed.insert(name.to_owned(), has);
            }
        }
        assert!(missed.values().all(|has| has.iter().any(|one| one == "status")), "{missed:?}");
        assert!(missed["agents.agent.kagenti.dev"].iter().any(|one| one == "scale"), "{missed:?}");
        assert!(missed.contains_key("agentbuilds.beeai.beeai.dev"), "{missed:?}");
    }

    #[test]
    fn a_definition_is_put_back_by_its_own_file_and_that_of_the_compatible_group_with_what_belongs_to_it() {
        let tree = crate::cli::render::tree("own", "a/b:1");
        for definition in Kind::definitions(KindOrigin::Ours) {
            let name = definition.metadata.name.unwrap();
            let file = format!("manifests/crds/{name}.yaml");
            assert!(remedy(KindOrigin::Ours, &name).contains(&file), "{name}");
            assert!(tree.iter().any(|(path, _)| format!("manifests/{path}") == file), "{name}");
        }
        assert!(remedy(KindOrigin::Compat, "agents.beeai.beeai.dev").contains("--beeai-compat"));
    }

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
