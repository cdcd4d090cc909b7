//! Where an Agent or an AgentBuild names Secrets: one table for everybody who asks about them.
//!
//! In: an Agent or AgentBuild as JSON. Out: the names of the Secrets that it refers to, and those that it leaves to the Secrets' own
//! consent. The API server's policies ask for each of them by name and are written from these tables (`cli::render`), the webhook
//! lists what a template brings, and the controllers read what was left to consent before each use; so all mean the same names.
//! Promise: names only, never a value. A text with commas counts as several names, as it does in the policies.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::keys;

/// Members of a Pod's spec that name a Secret; `*` stands for every item of a list.
pub const OF_POD: &[&str] = &[
    "imagePullSecrets/*/name",
    "volumes/*/secret/secretName",
    "volumes/*/projected/sources/*/secret/name",
    "volumes/*/csi/nodePublishSecretRef/name",
    "volumes/*/azureFile/secretName",
    "volumes/*/cephfs/secretRef/name",
    "volumes/*/cinder/secretRef/name",
    "volumes/*/flexVolume/secretRef/name",
    "volumes/*/iscsi/secretRef/name",
    "volumes/*/rbd/secretRef/name",
    "volumes/*/scaleIO/secretRef/name",
    "volumes/*/storageos/secretRef/name",
];
/// Members of a container or init container that name a Secret.
pub const OF_CONTAINER: &[&str] = &["env/*/valueFrom/secretKeyRef/name", "envFrom/*/secretRef/name"];
/// Members of a BeeAI Agent's spec that name a Secret.
pub const OF_BEEAI_AGENT: &[&str] = &["env/*/valueFrom/secretKeyRef/name"];
/// Members of a BeeAI AgentBuild's spec that name a Secret: what it is built with, and what the Agent that it keeps is given.
pub const OF_BEEAI_BUILD: &[&str] = &["env/*/valueFrom/secretKeyRef/name", "agent/env/*/valueFrom/secretKeyRef/name"];
/// Lists of variables in a BeeAI AgentBuild's spec, some of which name a Secret by their value.
pub const ENVIRONMENTS: &[&str] = &["env", "agent/env"];
/// Variables in the environment of a BeeAI Agent or AgentBuild whose literal value names a Secret.
pub const VARIABLES: &[&str] = &[keys::ENV_IMAGE_REPO_SECRET];
/// Where an Agent has annotations that its Pods get.
pub const ANNOTATIONS: [&str; 2] = ["spec/annotations", "spec/podTemplateSpec/metadata/annotations"];
/// Annotations of a Pod that name a Secret.
pub const OF_ANNOTATIONS: &[&str] = &[keys::ANNOTATION_CREDENTIALS];
/// Members of the specs of KAOS's kinds that name a Secret, by kind, beside `podSpec`; `configYaml` names one where it is a mapping.
pub const OF_KAOS: &[(&str, &[&str])] = &[
    ("Agent", &["container/env/*/valueFrom/secretKeyRef/name", "config/env/*/valueFrom/secretKeyRef/name"]),
    (
        "ModelAPI",
        &[
            "container/env/*/valueFrom/secretKeyRef/name",
            "proxyConfig/env/*/valueFrom/secretKeyRef/name",
            "hostedConfig/env/*/valueFrom/secretKeyRef/name",
            "serverConfig/env/*/valueFrom/secretKeyRef/name",
            "proxyConfig/apiKey/valueFrom/secretKeyRef/name",
        ],
    ),
    (
        "MCPServer",
        &[
            "container/env/*/valueFrom/secretKeyRef/name",
            "config/env/*/valueFrom/secretKeyRef/name",
            "config/tools/fromSecretKeyRef/name",
        ],
    ),
];
/// Members of an AgentBuild's spec that name a Secret.
pub const OF_BUILD: &[&str] = &["source/sourceCredentials/name", "buildOutput/imageRepoCredentials/name"];
/// Lists of parameters in an AgentBuild's spec.
pub const PARAMETERS: &[&str] = &["pipeline/parameters", "pipeline/steps/*/parameters"];
/// A parameter whose name ends so, in any case, has the name of a Secret as its value.
pub const PARAMETER_SUFFIX: &str = "secret";

/// Whether the value of a parameter is the name of a Secret.
#[must_use]
pub fn names_secret(parameter: &str) -> bool {
    parameter.to_ascii_lowercase().ends_with(PARAMETER_SUFFIX)
}

/// The Secrets that an Agent refers to.
#[must_use]
pub fn of_agent(agent: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let pod = agent.pointer("/spec/podTemplateSpec/spec").unwrap_or(&Value::Null);
    OF_POD.iter().for_each(|path| look(pod, path, &mut names));
    for list in ["containers", "initContainers"] {
        for container in pod.get(list).and_then(Value::as_array).into_iter().flatten() {
            OF_CONTAINER.iter().for_each(|path| look(container, path, &mut names));
        }
    }
    for place in ANNOTATIONS {
        let annotations = agent.pointer(&format!("/{place}"));
        OF_ANNOTATIONS.iter().filter_map(|key| annotations?.get(*key)).for_each(|name| take(name, &mut names));
    }
    names
}

/// The Secrets that an Agent of BeeAI refers to.
#[must_use]
pub fn of_beeai_agent(agent: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let spec = agent.get("spec").unwrap_or(&Value::Null);
    OF_BEEAI_AGENT.iter().for_each(|path| look(spec, path, &mut names));
    named_by_variables(spec.get("env"), &mut names);
    names
}

/// The Secrets that an AgentBuild of BeeAI refers to, those of the Agent that it keeps included.
#[must_use]
pub fn of_beeai_build(build: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let spec = build.get("spec").unwrap_or(&Value::Null);
    OF_BEEAI_BUILD.iter().for_each(|path| look(spec, path, &mut names));
    ENVIRONMENTS.iter().for_each(|path| named_by_variables(spec.pointer(&format!("/{path}")), &mut names));
    names
}

/// The Secrets that variables name by their literal value.
fn named_by_variables(env: Option<&Value>, names: &mut BTreeSet<String>) {
    let env = env.and_then(Value::as_array).into_iter().flatten();
    let naming =
        env.filter(|one| one.get("name").and_then(Value::as_str).is_some_and(|name| VARIABLES.contains(&name)));
    naming.filter_map(|one| one.get("value")).for_each(|name| take(name, names));
}

/// The Secrets that an AgentBuild refers to, those of its template's steps included.
#[must_use]
pub fn of_build(build: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let spec = build.get("spec").unwrap_or(&Value::Null);
    OF_BUILD.iter().for_each(|path| look(spec, path, &mut names));
    for path in PARAMETERS {
        let mut lists = Vec::new();
        places(spec, &path.split('/').collect::<Vec<_>>(), &mut lists);
        lists.into_iter().for_each(|list| parameters(list, &mut names));
    }
    names
}

/// The Secrets that steps, as they stand in an AgentBuild, are given.
#[must_use]
pub fn of_steps(steps: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in steps.as_array().into_iter().flatten() {
        parameters(step.get("parameters").unwrap_or(&Value::Null), &mut names);
    }
    names
}

/// The Secrets whose own consent is to be asked at each use.
#[must_use]
pub fn by_consent(object: &Value) -> BTreeSet<String> {
    let annotations = object.pointer("/metadata/annotations");
    let listed = annotations.and_then(|all| all.get(keys::ANNOTATION_SECRETS_BY_CONSENT)).and_then(Value::as_str);
    listed_in(listed.unwrap_or_default()).map(str::to_owned).collect()
}

/// The items of a list with commas, as annotations hold it.
pub fn listed_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn parameters(list: &Value, names: &mut BTreeSet<String>) {
    let named = |one: &&Value| one.get("name").and_then(Value::as_str).is_some_and(names_secret);
    for value in list.as_array().into_iter().flatten().filter(named).filter_map(|one| one.get("value")) {
        take(value, names);
    }
}

fn look(of: &Value, path: &str, names: &mut BTreeSet<String>) {
    let mut found = Vec::new();
    places(of, &path.split('/').collect::<Vec<_>>(), &mut found);
    found.into_iter().for_each(|name| take(name, names));
}

fn take(value: &Value, names: &mut BTreeSet<String>) {
    let texts = value.as_str().unwrap_or_default().split(',');
    names.extend(texts.filter(|name| !name.is_empty()).map(str::to_owned));
}

fn places<'v>(of: &'v Value, path: &[&str], found: &mut Vec<&'v Value>) {
    match path {
        [] => found.push(of),
        ["*", rest @ ..] => of.as_array().into_iter().flatten().for_each(|item| places(item, rest, found)),
        [member, rest @ ..] => of.get(*member).into_iter().for_each(|value| places(value, rest, found)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The members in which `name` stands at `path`.
    fn standing(path: &[&str], name: &str) -> Value {
        match path {
            [] => json!(name),
            ["*", rest @ ..] => json!([{"name": "first"}, standing(rest, name)]),
            [member, rest @ ..] => json!({ *member: standing(rest, name) }),
        }
    }

    fn names(all: &BTreeSet<String>) -> Vec<&str> {
        all.iter().map(String::as_str).collect()
    }

    #[test]
    fn mend_06_every_place_of_an_agent_that_names_a_secret_is_found() {
        let of_pod = |pod: &Value| of_agent(&json!({"spec": {"podTemplateSpec": {"spec": pod}}}));
        for path in OF_POD {
            let mut pod = standing(&path.split('/').collect::<Vec<_>>(), "s");
            // The first item of `imagePullSecrets` has a name of its own.
            if path.starts_with("imagePullSecrets") {
                pod["imagePullSecrets"][0] = json!({});
            }
            assert_eq!(names(&of_pod(&pod)), ["s"], "{path}");
        }
        for path in OF_CONTAINER {
            for list in ["containers", "initContainers"] {
                let pod = json!({ list: [{}, standing(&path.split('/').collect::<Vec<_>>(), "s")] });
                assert_eq!(names(&of_pod(&pod)), ["s"], "{list} {path}");
            }
        }
        for place in ANNOTATIONS {
            let annotation = json!({keys::ANNOTATION_CREDENTIALS: "s"});
            let agent = place.rsplit('/').fold(annotation, |inner, name| json!({name: inner}));
            assert_eq!(names(&of_agent(&agent)), ["s"], "{place}");
        }
        let many = json!({
            "volumes": [{"name": "v", "secret": {"secretName": "b"}}, {"name": "w", "secret": {"secretName": "a,c"}}],
            "imagePullSecrets": [{"name": "b"}, {"name": ""}],
            "containers": [{"env": [{"name": "plain", "value": "x"}]}],
        });
        assert_eq!(names(&of_pod(&many)), ["a", "b", "c"], "each once; commas separate names");
        for nothing in [json!(null), json!({"volumes": 1, "containers": [{"env": "x"}], "imagePullSecrets": {}})] {
            assert!(of_pod(&nothing).is_empty());
        }
    }

    #[test]
    fn mend_06_every_place_of_a_build_that_names_a_secret_is_found() {
        for path in OF_BUILD {
            let build = json!({"spec": standing(&path.split('/').collect::<Vec<_>>(), "s")});
            assert_eq!(names(&of_build(&build)), ["s"], "{path}");
        }
        let parameters = json!([
            {"name": "signing-secret", "value": "key"}, {"name": "SOURCE_REPO_SECRET", "value": "git"},
            {"name": "secret-scan", "value": "no"}, {"name": "image", "value": "no"}, {"name": "x-secret"},
        ]);
        let run = json!({"spec": {"pipeline": {"parameters": parameters}}});
        let steps = json!([{"name": "a"}, {"name": "b", "parameters": parameters}]);
        assert_eq!(names(&of_build(&run)), ["git", "key"]);
        assert_eq!(names(&of_build(&json!({"spec": {"pipeline": {"steps": steps}}}))), ["git", "key"]);
        assert_eq!(names(&of_steps(&steps)), ["git", "key"]);
        assert!(of_build(&json!({"spec": {"pipeline": {"steps": 3}}})).is_empty());
    }

    /// Every field of a BeeAI AgentBuild that names a Secret.
    #[test]
    fn every_place_of_a_beeai_build_that_names_a_secret_is_found() {
        for path in OF_BEEAI_BUILD {
            let build = json!({"spec": standing(&path.split('/').collect::<Vec<_>>(), "s")});
            assert_eq!(names(&of_beeai_build(&build)), ["s"], "{path}");
        }
        for path in ENVIRONMENTS {
            let env = json!([{"name": "IMAGE_REPO_SECRET", "value": "s"}, {"name": "PLAIN", "value": "no"}]);
            let spec = path.rsplit('/').fold(env, |inner, name| json!({name: inner}));
            assert_eq!(names(&of_beeai_build(&json!({"spec": spec}))), ["s"], "{path}");
        }
        for nothing in [json!({}), json!({"spec": {"env": null}}), json!({"spec": {"env": 1, "agent": []}})] {
            assert!(of_beeai_build(&nothing).is_empty());
        }
    }

    #[test]
    fn mend_06_what_is_left_to_consent_is_a_list() {
        let key = keys::ANNOTATION_SECRETS_BY_CONSENT;
        assert_eq!(names(&by_consent(&json!({"metadata": {"annotations": {key: " b, a ,,a"}}}))), ["a", "b"]);
        assert!(by_consent(&json!({"metadata": {}})).is_empty());
    }
}
