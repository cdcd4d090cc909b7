//! Does each process have every right it asks for? One review per rendered rule, verb and name.

use serde_json::{Value, json};

use super::Visit;
use crate::cli::cluster::Answer;
use crate::cli::render::rbac::{Right, Role, Scope, rights};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    for role in Role::ALL {
        let name = format!("ServiceAccount {}", role.name());
        let (mut asked, mut missing) = (0, Vec::new());
        for right in [Scope::Cluster, Scope::Own].into_iter().flat_map(|scope| rights(role, scope)) {
            for (attributes, words) in questions(right, &visit.operator) {
                match visit.cluster.post(REVIEWS, &review(visit, role, &attributes)).await? {
                    Answer::Object(answer) => {
                        asked += 1;
                        if answer.pointer("/status/allowed") != Some(&Value::Bool(true)) {
                            missing.push(words);
                        }
                    }
                    Answer::Absent | Answer::Refused(..) => {
                        visit.unknown(
                            &name,
                            "rights of others may not be asked for",
                            "run doctor as somebody who may create subjectaccessreviews",
                        );
                        return Ok(());
                    }
                }
            }
        }
        if missing.is_empty() {
            visit.ok(&name, format!("has all {asked} rights it asks for"));
        } else {
            let remedy = format!("kubectl apply -f manifests/rbac/{}.yaml", role.argument());
            visit.finding(&name, format!("lacks {}", missing.join("; ")), remedy);
        }
    }
    Ok(())
}

/// One question per resource, verb and name, with the words for a person.
fn questions(right: &Right, own: &str) -> Vec<(Value, String)> {
    let names: Vec<Option<&str>> =
        if right.names.is_empty() { vec![None] } else { right.names.iter().copied().map(Some).collect() };
    let mut questions = Vec::new();
    for resource in right.resources {
        for verb in right.verbs {
            for name in &names {
                let mut attributes = json!({"group": right.group, "resource": resource, "verb": verb});
                let mut words = format!("{verb} {resource}");
                if let Some(name) = name {
                    attributes["name"] = json!(name);
                    words = format!("{words} {name}");
                }
                if right.scope == Scope::Own {
                    attributes["namespace"] = json!(own);
                    words = format!("{words} in {own}");
                }
                questions.push((attributes, words));
            }
        }
    }
    questions
}

fn review(visit: &Visit, role: Role, attributes: &Value) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{}:{}", visit.operator, role.name()),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{}", visit.operator), "system:authenticated"],
            "resourceAttributes": attributes,
        },
    })
}
