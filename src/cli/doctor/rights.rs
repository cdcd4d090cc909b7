//! Does each process have every right it asks for, wherever it asks? One review per rendered rule, verb, name and place.

use serde_json::{Value, json};

use super::Visit;
use crate::cli::cluster::Answer;
use crate::cli::render::Install;
use crate::cli::render::rbac::{Right, Role, grounds, rights};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let mut install = Install::new(visit.mode, &*visit.operator, "");
    install.namespaces.clone_from(&visit.watched);
    install.kinds = visit.kinds;
    for role in Role::ALL {
        let name = format!("ServiceAccount {}", role.name());
        let (mut asked, mut missing) = (0, Vec::new());
        for right in rights(visit.mode).iter().filter(|right| right.role == role && install.kinds.needs(right)) {
            for (attributes, words) in questions(right, &install) {
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
                            "you may not ask which rights other accounts have",
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

/// One question per verb and place, with the words for a person.
fn questions(right: &Right, install: &Install) -> Vec<(Value, String)> {
    let question = |verb: &str, place: Option<&str>| {
        let mut attributes = json!({"group": right.group, "resource": right.resource, "verb": verb});
        let mut words = format!("{verb} {}", right.resource);
        if let Some(name) = right.name {
            attributes["name"] = json!(name);
            words = format!("{words} {name}");
        }
        if let Some(namespace) = place {
            attributes["namespace"] = json!(namespace);
            words = format!("{words} in {namespace}");
        }
        (attributes, words)
    };
    let places = grounds(install, right);
    places.into_iter().flat_map(|place| right.verbs.iter().map(move |verb| question(verb, place))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::FailureMode;
    use crate::cli::render::rbac::Scope;

    fn asked(right: &Right, watched: &[&str]) -> Vec<String> {
        let mut install = Install::new(FailureMode::Fail, "own", "");
        install.namespaces = watched.iter().map(|name| (*name).to_owned()).collect();
        questions(right, &install).into_iter().map(|(_, words)| words).collect()
    }

    #[test]
    fn rights_are_asked_for_where_they_are_rendered() {
        let right = |resource, scope| Right {
            role: Role::Controllers,
            scope,
            group: "",
            resource,
            name: None,
            verbs: &["list"],
        };
        let (pods, leases) = (right("pods", Scope::Cluster), right("secrets", Scope::Own));
        assert_eq!(asked(&pods, &[]), ["list pods"]);
        assert_eq!(asked(&pods, &["team1", "team2"]), ["list pods in team1", "list pods in team2"]);
        assert_eq!(asked(&leases, &["team1"]), ["list secrets in own"]);
        assert_eq!(asked(&right("namespaces", Scope::Cluster), &["team1"]), ["list namespaces"]);
        let templates = right("configmaps", Scope::Cluster);
        assert_eq!(asked(&templates, &["team1"]), ["list configmaps in own", "list configmaps in team1"]);
    }
}
