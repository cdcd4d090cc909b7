//! Does each process have every right it asks for, wherever it asks? One review per rendered rule, verb, name and place; those of the compatible
//! group where its kinds are served, and those that OpenShift asks for where it is one. The right to read a trust bundle is asked for with the bundle.

use serde_json::{Value, json};

use super::Visit;
use crate::cli::cluster::Answer;
use crate::cli::render::Install;
use crate::cli::render::rbac::{Right, Role, compat_rights, grounds, owners_enforced, rights};
use crate::server::guards::watch::{APPLY, APPLY_COMPAT};
use crate::store::Kind;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// What is said where you may not ask, and what to do then.
pub(super) const MAY_NOT_ASK: (&str, &str) =
    ("you may not ask which rights other accounts have", "run doctor as somebody who may create subjectaccessreviews");

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let install = visit.install();
    let owners = if is_openshift(visit).await? { Vec::from(owners_enforced()) } else { Vec::new() };
    let all = [(rights(visit.mode), APPLY), (compat(visit).await?, APPLY_COMPAT), (owners, APPLY_OPENSHIFT)];
    for role in Role::ALL {
        let name = format!("ServiceAccount {}", role.name());
        let (mut asked, mut lacking) = (0, false);
        for (rights, remedy) in &all {
            let mut missing = Vec::new();
            for right in rights.iter().filter(|right| right.role == role && install.kinds.needs(right)) {
                for (attributes, words) in questions(right, &install) {
                    match allowed(visit, role, &attributes).await? {
                        Some(true) => {}
                        Some(false) => missing.push(words),
                        None => {
                            visit.unknown(&name, MAY_NOT_ASK.0, MAY_NOT_ASK.1);
                            return Ok(());
                        }
                    }
                    asked += 1;
                }
            }
            if !missing.is_empty() {
                lacking = true;
                visit.finding(&name, format!("lacks {}", missing.join("; ")), *remedy);
            }
        }
        if !lacking {
            visit.ok(&name, format!("has all {asked} rights it asks for"));
        }
    }
    Ok(())
}

/// What to do where the rights are missing that only some clusters ask for.
const APPLY_OPENSHIFT: &str = "add --openshift to the flags of this installation and apply what `drawbridge render` prints: this cluster asks \
                               whoever changes the owners of an object for the right to delete it";

/// Whether it is OpenShift, which runs admission plugin `OwnerReferencesPermissionEnforcement`; of other clusters nobody sees which plugins run.
async fn is_openshift(visit: &Visit) -> anyhow::Result<bool> {
    Ok(visit.cluster.get("/apis/config.openshift.io/v1").await?.object().is_some())
}

/// The rights on kinds of the original BeeAI operator's group, as far as these are served: then the processes ask for them.
async fn compat(visit: &Visit) -> anyhow::Result<Vec<Right>> {
    let of = Kind::BeeaiCompatAgent;
    if !visit.kinds.serves(of.group()) {
        return Ok(Vec::new());
    }
    // What is served is told to everybody.
    let group = visit.cluster.get(&format!("/apis/{}", of.api_version())).await?.object().unwrap_or_default();
    let mut rights = compat_rights(visit.mode);
    rights.retain(|right| is_served(&group, right));
    Ok(rights)
}

/// Whether that list of what a group serves has the kind that a right is on.
fn is_served(group: &Value, right: &Right) -> bool {
    let kind = right.resource.split('/').next();
    group["resources"].as_array().into_iter().flatten().any(|one| one["name"].as_str() == kind)
}

/// Whether the account of that process may do that; `None` where you may not ask.
pub(super) async fn allowed(visit: &Visit, role: Role, attributes: &Value) -> anyhow::Result<Option<bool>> {
    Ok(match visit.cluster.post(REVIEWS, &review(visit, role, attributes)).await? {
        Answer::Object(answer) => Some(answer.pointer("/status/allowed") == Some(&Value::Bool(true))),
        Answer::Absent | Answer::Refused(..) => None,
    })
}

/// One question per verb and place, with the words for a person.
fn questions(right: &Right, install: &Install) -> Vec<(Value, String)> {
    let question = |verb: &str, place: Option<&str>| {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        let mut attributes = json!({"group": right.group, "resource": resource, "verb": verb});
        // As the API server asks: a role that gives `*/status` gives it, and only so is that seen.
        if !subresource.is_empty() {
            attributes["subresource"] = json!(subresource);
        }
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::render::FailureMode;
    use crate::cli::render::rbac::{Scope, objects};

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

    /// (group, resource, verb) of every rule of the controllers.
    fn ruled(openshift: bool) -> BTreeSet<[String; 3]> {
        let mut install = Install::new(FailureMode::Fail, "own", "");
        install.values.openshift = openshift;
        let texts = |rule: &Value, key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut found = BTreeSet::new();
        for object in objects(&install, Role::Controllers) {
            for rule in object["rules"].as_array().into_iter().flatten() {
                for group in texts(rule, "apiGroups") {
                    for resource in texts(rule, "resources") {
                        for verb in texts(rule, "verbs") {
                            found.insert([group.clone(), resource.clone(), verb]);
                        }
                    }
                }
            }
        }
        found
    }

    #[test]
    fn what_openshift_asks_for_is_what_is_rendered_for_it() {
        let more: BTreeSet<_> = ruled(true).difference(&ruled(false)).cloned().collect();
        let asked =
            owners_enforced().map(|right| right.verbs.iter().map(move |verb| [right.group, right.resource, *verb]));
        let asked: BTreeSet<_> = asked.into_iter().flatten().map(|words| words.map(str::to_owned)).collect();
        assert_eq!(asked, more);
    }

    /// Every kind of ours that owns something which blocks its deletion.
    #[test]
    fn the_right_on_finalizers_of_owners_is_asked_for() {
        let install = Install::new(FailureMode::Fail, "own", "");
        let all: Vec<Right> = rights(FailureMode::Fail).into_iter().chain(compat_rights(FailureMode::Fail)).collect();
        let asked: BTreeSet<(String, String)> = all
            .iter()
            .flat_map(|right| questions(right, &install))
            .filter(|(attributes, _)| attributes["subresource"] == "finalizers" && attributes["verb"] == "update")
            .map(|(attributes, _)| (attributes["group"].to_string(), attributes["resource"].to_string()))
            .collect();
        for kind in [
            Kind::Agent,
            Kind::AgentBuild,
            Kind::BeeaiAgent,
            Kind::BeeaiBuild,
            Kind::BeeaiCompatAgent,
            Kind::BeeaiCompatBuild,
            Kind::KaosAgent,
            Kind::ModelApi,
            Kind::McpServer,
        ] {
            let owner = (json!(kind.group()).to_string(), json!(kind.plural()).to_string());
            assert!(asked.contains(&owner), "{kind:?}: {asked:?}");
        }
    }

    #[test]
    fn a_subresource_is_asked_for_as_the_api_server_asks_for_it() {
        let install = Install::new(FailureMode::Fail, "own", "");
        let all = rights(FailureMode::Gate);
        let questions: Vec<_> = all.iter().flat_map(|right| questions(right, &install)).collect();
        for (attributes, words) in &questions {
            let member = |name: &str| attributes[name].as_str().unwrap_or_default();
            assert!(!member("resource").contains('/'), "{words}: {attributes}");
            assert_eq!(words.contains('/'), !member("subresource").is_empty(), "{words}: {attributes}");
        }
        let evicts = questions.iter().find(|(_, words)| words == "create pods/eviction").unwrap();
        assert_eq!(evicts.0, json!({"group": "", "resource": "pods", "subresource": "eviction", "verb": "create"}));
    }

    #[test]
    fn rights_on_the_compatible_group_are_asked_for_where_its_kinds_are_served() {
        let served = |group: &Value| -> BTreeSet<&'static str> {
            let rights = [FailureMode::Fail, FailureMode::Gate].into_iter().flat_map(compat_rights);
            rights.filter(|right| is_served(group, right)).map(|right| right.resource).collect()
        };
        let agents = BTreeSet::from(["agents", "agents/finalizers", "agents/status"]);
        assert_eq!(served(&json!({"resources": [{"name": "agents"}, {"name": "agents/status"}]})), agents);
        assert_eq!(served(&json!({"resources": [{"name": "agents"}, {"name": "agentbuilds"}]})).len(), 6);
        for nothing in [json!(null), json!({}), json!({"resources": []})] {
            assert!(served(&nothing).is_empty(), "{nothing}");
        }
        assert!(rights(FailureMode::Gate).iter().all(|right| right.group != Kind::BeeaiCompatAgent.group()));
    }
}
