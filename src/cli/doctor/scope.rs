//! Which namespaces are watched (`spec/agent-and-agentbuild.md` 15.2), and do processes, webhooks and namespaces agree?
//!
//! In: the Deployments and the webhook configurations as they are installed. Out: the list that every other check judges by (the
//! controllers' word, else the webhook's, else the selectors'), and a finding where they differ or a namespace is missing: then Agents
//! are admitted and never deployed, or the other way round.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Visit, text};
use crate::cli::cluster::Cluster;
use crate::cli::render::rbac::Role;
use crate::cli::render::selectors::LABEL_NAMESPACE_NAME;
use crate::cli::serve::flags::Namespaces;
use crate::domain::keys;

const NAME: &str = "watched namespaces";
const VARIABLE: &str = "NAMESPACES2WATCH";
const FLAG: &str = "--watch-namespaces";
const RENDER: &str = "drawbridge render --watch-namespaces NAMES | kubectl apply -f -, with the list that is meant";

/// What one part of the installation says.
#[derive(Debug, PartialEq)]
struct Says {
    /// Such as `Deployment drawbridge-webhook`.
    who: String,
    /// The namespaces, none for all; or what is wrong with the list.
    list: Result<Vec<String>, String>,
}

/// What every part of the installation says, the most decisive first.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scope {
    says: Vec<Says>,
}

impl Scope {
    /// The namespaces that are watched; none means all.
    pub(super) fn watched(&self) -> Vec<String> {
        let mut lists = self.says.iter().filter_map(|says| says.list.as_ref().ok());
        lists.next().cloned().unwrap_or_default()
    }
}

/// Asks every part of the installation that can be read; what cannot is a finding of other checks.
pub(super) async fn read(cluster: &Cluster, operator: &str) -> anyhow::Result<Scope> {
    let mut scope = Scope::default();
    for role in [Role::Controllers, Role::Webhook] {
        let path = format!("/apis/apps/v1/namespaces/{operator}/deployments/{}", role.name());
        let deployment = cluster.get(&path).await?.object();
        let list = deployment.as_ref().and_then(of_deployment);
        scope.says.extend(list.map(|list| Says { who: format!("Deployment {}", role.name()), list }));
    }
    for (kind, plural) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{}", keys::WEBHOOK_CONFIGURATION);
        let configuration = cluster.get(&path).await?.object().unwrap_or_default();
        let hooks = configuration["webhooks"].as_array().into_iter().flatten();
        scope.says.extend(hooks.map(|hook| Says {
            who: format!("{} of {kind} {}", text(hook, "/name"), keys::WEBHOOK_CONFIGURATION),
            list: Ok(selected(&hook["namespaceSelector"])),
        }));
    }
    Ok(scope)
}

/// What the process of a Deployment is told: the flag, else the variable, else nothing, which means all. `None` when the variable
/// comes from elsewhere, so that the Deployment does not tell.
fn of_deployment(deployment: &Value) -> Option<Result<Vec<String>, String>> {
    let container = deployment.pointer("/spec/template/spec/containers/0")?;
    let words = |member: &str| container[member].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut told = None;
    let mut words = words("command").chain(words("args"));
    while let Some(word) = words.next() {
        match word.strip_prefix(FLAG) {
            Some("") => told = words.next(),
            Some(rest) => told = rest.strip_prefix('=').or(told),
            None => {}
        }
    }
    let mut variables = container["env"].as_array().into_iter().flatten();
    let variable = variables.find(|one| one["name"] == VARIABLE);
    let list = match (told, variable) {
        (Some(list), _) => list,
        (None, Some(one)) if !one["valueFrom"].is_null() => return None,
        (None, Some(one)) => text(one, "/value"),
        (None, None) => "",
    };
    Some(list.parse().map(|Namespaces(names)| names))
}

/// The namespaces that a selector admits by name; none when it does not ask for names.
fn selected(selector: &Value) -> Vec<String> {
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let names = expressions.find(|one| one["key"] == LABEL_NAMESPACE_NAME && one["operator"] == "In");
    let values = names.and_then(|one| one["values"].as_array()).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) async fn check(visit: &mut Visit, scope: &Scope) -> anyhow::Result<()> {
    if let Some((seen, remedy)) = disagreement(scope) {
        visit.finding(NAME, seen, remedy);
        return Ok(());
    }
    let mut missing = Vec::new();
    for namespace in visit.watched.clone() {
        let checks = visit.checks.len();
        if visit.read(NAME, &format!("/api/v1/namespaces/{namespace}")).await?.is_none() {
            if visit.checks.len() > checks {
                return Ok(());
            }
            missing.push(namespace);
        }
    }
    if !missing.is_empty() {
        let remedy = format!("kubectl create namespace {}, then {RENDER}", missing[0]);
        visit.finding(NAME, format!("{} is watched and does not exist", missing.join(", ")), remedy);
    } else if visit.watched.is_empty() {
        visit.ok(NAME, "all of them");
    } else {
        visit.ok(NAME, format!("{}; what follows is about these", visit.watched.join(", ")));
    }
    Ok(())
}

/// Lists that cannot be read, or that differ.
fn disagreement(scope: &Scope) -> Option<(String, String)> {
    let wrong = scope.says.iter().find_map(|says| Some(format!("{}: {}", says.who, says.list.as_ref().err()?)));
    if let Some(seen) = wrong {
        return Some((format!("{seen}, so the process ends at its start"), RENDER.to_owned()));
    }
    let set = |says: &Says| says.list.iter().flatten().cloned().collect::<BTreeSet<_>>();
    let first = scope.says.first()?;
    let other = scope.says.iter().find(|says| set(says) != set(first))?;
    let words = |says: &Says| match says.list.as_deref() {
        Ok([]) | Err(_) => format!("{}: all", says.who),
        Ok(names) => format!("{}: {}", says.who, names.join(", ")),
    };
    Some((format!("they differ ({}; {})", words(first), words(other)), RENDER.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render::{self, FailureMode, Install};

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// What the rendered objects of an installation say.
    fn rendered(names: &[&str]) -> Scope {
        let mut install = Install::new(FailureMode::Fail, "own", "");
        install.namespaces = list(names);
        let mut scope = Scope::default();
        for object in render::parts(&install).into_iter().flat_map(|part| part.objects) {
            let who = text(&object, "/metadata/name").to_owned();
            match text(&object, "/kind") {
                "Deployment" => scope.says.push(Says { who, list: of_deployment(&object).unwrap() }),
                kind if kind.ends_with("WebhookConfiguration") => {
                    for hook in object["webhooks"].as_array().unwrap() {
                        let list = Ok(selected(&hook["namespaceSelector"]));
                        scope.says.push(Says { who: text(hook, "/name").to_owned(), list });
                    }
                }
                _ => {}
            }
        }
        scope
    }

    #[test]
    fn what_is_rendered_agrees_and_is_understood() {
        for names in [&[][..], &["team1"], &["team1", "team2"]] {
            let scope = rendered(names);
            assert!(scope.says.len() > 4, "{scope:?}");
            assert_eq!((scope.watched(), disagreement(&scope)), (list(names), None));
        }
    }

    #[test]
    fn lists_that_differ_and_lists_that_cannot_be_are_told() {
        let mut scope = rendered(&["team1"]);
        scope.says[1].list = Ok(list(&["team1", "team2"]));
        let (seen, _) = disagreement(&scope).unwrap();
        assert!(
            seen.contains("drawbridge-webhook: team1") && seen.contains("drawbridge-controllers: team1, team2"),
            "{seen}"
        );
        scope.says[1].list = Ok(Vec::new());
        assert!(disagreement(&scope).unwrap().0.contains("drawbridge-controllers: all"));
        scope.says[0].list = "Team_1".parse().map(|Namespaces(names)| names);
        assert!(disagreement(&scope).unwrap().0.contains("\"Team_1\" is not the name of a namespace"));
    }

    #[test]
    fn a_deployment_tells_by_flag_by_variable_or_not_at_all() {
        let told =
            |container: Value| of_deployment(&json!({"spec": {"template": {"spec": {"containers": [container]}}}}));
        let by_variable = json!({"name": "NAMESPACES2WATCH", "value": " b, b "});
        for (container, expected) in [
            (json!({"args": ["serve"]}), Some(Ok(list(&[])))),
            (json!({"env": [by_variable]}), Some(Ok(list(&["b"])))),
            (json!({"args": ["--watch-namespaces=a,c"], "env": [by_variable]}), Some(Ok(list(&["a", "c"])))),
            (json!({"command": ["drawbridge", "serve", "--watch-namespaces", "a"]}), Some(Ok(list(&["a"])))),
            (json!({"env": [{"name": "NAMESPACES2WATCH", "valueFrom": {"configMapKeyRef": {}}}]}), None),
        ] {
            assert_eq!(told(container.clone()), expected, "{container}");
        }
    }
}
