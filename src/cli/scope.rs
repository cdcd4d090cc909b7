//! Which namespaces are watched, and which kinds are served: for `doctor`, `status` and `explain`.
//!
//! In: the Deployments and the webhook configurations as they are installed. Out: what each of them says, and the list to judge by: the
//! controllers' word, else the webhook's, else the selectors'. Where nobody says anything, all namespaces are taken to be watched.

use clap::ValueEnum as _;
use serde_json::Value;

use super::cluster::{Answer, Cluster};
use super::render::kinds::Kinds;
use super::render::rbac::Role;
use super::render::selectors::LABEL_NAMESPACE_NAME;
use super::render::{FailureMode, Install};
use super::serve::flags::Namespaces;
use super::survey::text;
use crate::domain::keys;

const VARIABLE: &str = "NAMESPACES2WATCH";
const FLAG: &str = "--watch-namespaces";
const KINDS: &str = "--kinds";
/// How a Deployment is called among those who say something.
const DEPLOYMENT: &str = "Deployment ";

/// What one part of the installation says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Says {
    /// Such as `Deployment drawbridge-webhook`.
    pub(super) who: String,
    /// The namespaces, none for all; or what is wrong with the list.
    pub(super) list: Result<Vec<String>, String>,
}

/// What every part of the installation says, the most decisive first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Scope {
    pub(super) says: Vec<Says>,
    /// The kinds that the processes serve; every kind where nobody says anything else.
    pub(super) kinds: Kinds,
    /// Why a part could not be asked.
    refused: Option<String>,
}

impl Scope {
    /// The namespaces that are watched; none means all.
    pub(super) fn watched(&self) -> &[String] {
        let mut lists = self.says.iter().filter_map(|says| says.list.as_deref().ok());
        lists.next().unwrap_or_default()
    }

    /// Whether that namespace is watched.
    pub(super) fn watches(&self, namespace: &str) -> bool {
        let watched = self.watched();
        watched.is_empty() || watched.iter().any(|name| name == namespace)
    }

    /// Nobody could be asked, so that [`Scope::watches`] is a guess: why.
    pub(super) fn is_guessed(&self) -> Option<String> {
        let refused = self.refused.as_ref().filter(|_| self.says.is_empty())?;
        Some(format!("which namespaces are watched could not be read ({refused}); treated as all of them"))
    }

    /// What was installed, as far as its processes tell: where none of them is found in that namespace, nobody knows where they are, and the
    /// namespace is empty.
    pub(super) fn install(&self, mode: FailureMode, operator: &str) -> Install {
        let is_there = self.says.iter().any(|says| says.who.starts_with(DEPLOYMENT));
        let namespace = if is_there { operator } else { "" };
        let install = Install::new(mode, namespace, "");
        Install { namespaces: self.watched().to_vec(), kinds: self.kinds, ..install }
    }

    /// The namespaces as a list for people.
    pub(super) fn words(&self) -> String {
        self.watched().join(", ")
    }

    /// The object, when it may be read and is there.
    async fn ask(&mut self, cluster: &Cluster, path: &str) -> anyhow::Result<Option<Value>> {
        Ok(match cluster.get(path).await? {
            Answer::Object(object) => Some(object),
            Answer::Absent => None,
            Answer::Refused(code, message) => {
                self.refused.get_or_insert_with(|| format!("{code}: {message}"));
                None
            }
        })
    }
}

/// Asks every part of the installation that can be read.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn read(cluster: &Cluster, operator: &str) -> anyhow::Result<Scope> {
    let mut scope = Scope::default();
    for role in [Role::Controllers, Role::Webhook] {
        let path = format!("/apis/apps/v1/namespaces/{operator}/deployments/{}", role.name());
        let deployment = scope.ask(cluster, &path).await?;
        let kinds = deployment.as_ref().and_then(|deployment| flag(deployment, KINDS));
        if let Some(kinds) = kinds.and_then(|word| Kinds::from_str(word, false).ok()) {
            scope.kinds = kinds;
        }
        let list = deployment.as_ref().and_then(of_deployment);
        scope.says.extend(list.map(|list| Says { who: format!("{DEPLOYMENT}{}", role.name()), list }));
    }
    for (kind, plural) in [
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{}", keys::WEBHOOK_CONFIGURATION);
        let configuration = scope.ask(cluster, &path).await?.unwrap_or_default();
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
    let told = flag(deployment, FLAG);
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

/// The value of a flag that the process of a Deployment is given; the last counts.
pub(super) fn flag<'a>(deployment: &'a Value, name: &str) -> Option<&'a str> {
    let container = deployment.pointer("/spec/template/spec/containers/0")?;
    let words = |member: &str| container[member].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut told = None;
    let mut words = words("command").chain(words("args"));
    while let Some(word) = words.next() {
        match word.strip_prefix(name) {
            Some("") => told = words.next(),
            Some(rest) => told = rest.strip_prefix('=').or(told),
            None => {}
        }
    }
    told
}

/// The namespaces that a selector admits by name; none when it does not ask for names.
fn selected(selector: &Value) -> Vec<String> {
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let names = expressions.find(|one| one["key"] == LABEL_NAMESPACE_NAME && one["operator"] == "In");
    let values = names.and_then(|one| one["values"].as_array()).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render;

    pub(in crate::cli) fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// What the rendered objects of an installation say.
    pub(in crate::cli) fn rendered(names: &[&str]) -> Scope {
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
    fn what_is_rendered_is_understood() {
        for names in [&[][..], &["team1"], &["team1", "team2"]] {
            let scope = rendered(names);
            assert!(scope.says.len() > 4, "{scope:?}");
            assert_eq!(scope.watched(), names);
            assert_eq!(scope.watches("elsewhere"), names.is_empty());
            assert!(names.iter().all(|name| scope.watches(name)));
            assert_eq!(scope.is_guessed(), None);
        }
    }

    #[test]
    fn where_an_installation_is_its_processes_tell() {
        let told =
            |who: &str| Scope { says: vec![Says { who: who.to_owned(), list: Ok(list(&["a"])) }], ..Scope::default() };
        for (who, namespace) in [
            ("Deployment drawbridge-webhook", "own"),
            ("inject.kagenti.io of MutatingWebhookConfiguration drawbridge", ""),
        ] {
            let install = told(who).install(FailureMode::Gate, "own");
            assert_eq!(
                (install.namespace.as_str(), install.namespaces, install.kinds),
                (namespace, list(&["a"]), Kinds::All)
            );
        }
        assert_eq!(Scope::default().install(FailureMode::Fail, "own").namespace, "");
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

    #[test]
    fn where_nobody_may_be_asked_it_is_a_guess() {
        let refused = Some("403: no".to_owned());
        let scope = Scope { refused: refused.clone(), ..Scope::default() };
        assert!(scope.watches("any") && scope.is_guessed().unwrap().contains("403: no"));
        assert_eq!(Scope { refused, ..rendered(&["team1"]) }.is_guessed(), None, "somebody else has said it");
    }

    #[test]
    fn the_kinds_that_are_served_stand_among_the_arguments_of_what_render_prints() {
        for (kinds, said) in [(Kinds::All, None), (Kinds::Kaos, Some("kaos")), (Kinds::Beeai, Some("beeai"))] {
            let install = Install { kinds, ..Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "a/b:1") };
            let objects: Vec<Value> = render::parts(&install).into_iter().flat_map(|part| part.objects).collect();
            let deployments: Vec<_> = objects.iter().filter(|object| object["kind"] == "Deployment").collect();
            assert_eq!(deployments.len(), 2);
            for deployment in deployments {
                assert_eq!(flag(deployment, KINDS), said);
                assert_eq!(said.map_or(Ok(Kinds::All), |word| Kinds::from_str(word, false)), Ok(kinds));
            }
        }
    }
}
