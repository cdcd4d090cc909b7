//! An AgentBuild of BeeAI as an AgentBuild of `agent.kagenti.dev`, and the Agent that it keeps as one of its own.

use serde_json::{Map, Value, json};

use super::{Remark, agent, metadata, title};
use crate::cli::survey::text;
use crate::domain::keys;
use crate::pipelines::beeai_build::login::{RegistryLogin, host, login};
use crate::pipelines::beeai_build::{deploy, front, read};
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

/// The key under which the other group looks for a token.
const TOKEN: &str = "token";

/// What it becomes; and the Agent that runs its image, where it keeps one.
pub(super) fn of(object: &Value, remarks: &mut Vec<Remark>) -> (Value, Option<Value>) {
    let settings = Settings::new(keys::OPERATOR_NAMESPACE);
    let view = TemplatesView::new(keys::OPERATOR_NAMESPACE, false);
    let request = read(object, (front(keys::GROUP_BEEAI), text(object, "/metadata/namespace")), &view, &settings);
    let title = title(object);
    let mut add = |path: &str, text: String| {
        remarks.push(Remark { object: title.clone(), path: path.to_owned(), text });
    };
    let mut source = Map::from_iter([
        ("sourceRepository".to_owned(), json!(request.source.repository)),
        ("sourceRevision".to_owned(), json!(request.source.revision)),
    ]);
    for (member, value) in [("sourceSubfolder", &request.source.subfolder), ("repoUser", &request.source.user)] {
        if !value.is_empty() {
            source.insert(member.to_owned(), json!(value));
        }
    }
    if let Some(git) = &request.git_auth {
        source.insert("sourceCredentials".to_owned(), json!({"name": git.secret}));
        let key = git.items.first().map_or(TOKEN, |(key, _)| key);
        if key != TOKEN {
            add(
                "spec.env",
                format!("Secret {} holds the token under key {key}; give it the same under key {TOKEN}", git.secret),
            );
        }
        if git.optional {
            add("spec.env", format!("the token of Secret {} is optional here and is needed there", git.secret));
        }
    }
    let image = request.image.unwrap_or_default();
    let mut output = json!({"imageRegistry": image.registry, "image": image.image, "imageTag": image.tag});
    match login(object, &settings) {
        RegistryLogin::None => {}
        RegistryLogin::Named(secret) => output["imageRepoCredentials"] = json!({"name": secret}),
        RegistryLogin::Made(login) => add(
            "spec.env",
            format!(
                "the login of {} is made from a token here; there it is a Secret that you make: kubectl create secret docker-registry NAME \
                 --docker-server={} --docker-username={} --docker-password=…, named by spec.buildOutput.imageRepoCredentials.name",
                login.host, login.account, login.user
            ),
        ),
    }
    let insecure = settings.insecure_registries.contains(&host(&image.registry));
    let mut spec = json!({
        "source": source,
        "buildOutput": output,
        "mode": if insecure { "dev" } else { "dev-external" },
        "cleanupAfterBuild": object.pointer("/spec/cleanupAfterBuild").and_then(Value::as_bool).unwrap_or(false),
    });
    if !request.build_arguments.is_empty() {
        let arguments = request.build_arguments.iter().map(|one| json!({"name": one.name, "value": one.value}));
        spec["buildArgs"] = arguments.collect();
    }
    if let Some(file) = object.pointer("/spec/dockerfile").and_then(Value::as_str).filter(|file| !file.is_empty()) {
        let parameters = json!([{"name": "DOCKERFILE", "value": file}]);
        spec["pipeline"] = json!({"namespace": keys::OPERATOR_NAMESPACE, "parameters": parameters});
    }
    let manifest = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild", "metadata": metadata(object), "spec": spec,
    });
    (manifest, kept(object, &settings, remarks))
}

/// The Agent that runs the image: there it names the build, here the build makes it.
fn kept(object: &Value, settings: &Settings, remarks: &mut Vec<Remark>) -> Option<Value> {
    // A login that is made from a token has no counterpart, so neither has its name.
    let pulls = match login(object, settings) {
        RegistryLogin::Named(secret) => RegistryLogin::Named(secret),
        RegistryLogin::None | RegistryLogin::Made(_) => RegistryLogin::None,
    };
    let wanted = deploy::agent(object, "", &pulls)?;
    let mut labels = wanted.labels;
    for key in [keys::LABEL_PART_OF, keys::LABEL_APP_MANAGED_BY, keys::LABEL_CREATED_BY] {
        labels.remove(key);
    }
    let agent = json!({
        "apiVersion": "beeai.dev/v1", "kind": "Agent",
        "metadata": {"name": wanted.name, "namespace": text(object, "/metadata/namespace"), "labels": labels},
        "spec": wanted.spec,
    });
    Some(agent::of_build(&agent, text(object, "/metadata/name"), remarks))
}
