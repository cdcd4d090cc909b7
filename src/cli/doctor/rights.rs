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
        for right in rights(visit.mode).iter().filter(|right| right.role == role) {
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
            let remedy =
                "apply the install manifests again; they render every right from what the code asks for".to_owned();
            visit.finding(&name, format!("lacks {}", missing.join("; ")), remedy);
        }
    }
    Ok(())
}

/// One question per verb, with the words for a person.
fn questions(right: &Right, own: &str) -> Vec<(Value, String)> {
    let question = |verb: &&str| {
        let mut attributes = json!({"group": right.group, "resource": right.resource, "verb": verb});
        let mut words = format!("{verb} {}", right.resource);
        if let Some(name) = right.name {
            attributes["name"] = json!(name);
            words = format!("{words} {name}");
        }
        if right.scope == Scope::Own {
            attributes["namespace"] = json!(own);
            words = format!("{words} in {own}");
        }
        (attributes, words)
    };
    right.verbs.iter().map(question).collect()
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
