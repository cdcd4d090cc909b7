//! An AgentBuild of BeeAI as a request of the engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::login::{RegistryLogin, host, login, with_lower_host};
use super::{TEMPLATE, env, name, text};
use crate::api::owner::Owner;
use crate::domain::keys;
use crate::pipelines::request::{
    BEEAI, BEEAI_COMPAT, BuildRequest, FrontEnd, ImageParts, Parameter, SecretUse, Source, StepsFrom,
};
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::{TemplateEntry, TemplatesView};

/// User name that goes with a token when the build names none.
const TOKEN_USER: &str = "x-access-token";
/// Size of the claim where the template gives none: the image is there a second time, as an archive.
const WORKSPACE_SIZE: &str = "5Gi";
/// Parameter of the build step that names the Dockerfile.
const DOCKERFILE: &str = "DOCKERFILE";
/// Derived parameter: whether the registry is spoken to without TLS, which only the platform decides.
const REGISTRY_INSECURE: &str = "registry-insecure";

/// The words of that group.
#[must_use]
pub fn front(group: &str) -> &'static FrontEnd {
    if group == keys::GROUP_BEEAI_COMPAT { &BEEAI_COMPAT } else { &BEEAI }
}

/// The operator's template for these builds, in whatever state.
#[must_use]
pub fn template(view: &TemplatesView) -> Option<&TemplateEntry> {
    view.template(view.operator_namespace(), TEMPLATE).map(std::convert::AsRef::as_ref)
}

/// The request of an AgentBuild of that front end in that namespace, for its first attempt. Without a template that can be used it has no
/// steps.
#[must_use]
pub fn read(
    object: &Value,
    (front, namespace): (&FrontEnd, &str),
    view: &TemplatesView,
    settings: &Settings,
) -> BuildRequest {
    let template = template(view).and_then(|entry| entry.template.clone().ok());
    let registry = text(object, "imageRegistry");
    let git = env::source_token(object);
    let login = login(object, settings);
    let user = text(object, "repoUser");
    let of_token = if git.is_some() { TOKEN_USER } else { "" };
    let archive = vec![(".dockerconfigjson".to_owned(), "config.json".to_owned())];
    let of_registry =
        |secret: &str| SecretUse { secret: secret.to_owned(), items: archive.clone(), ..SecretUse::default() };
    let insecure = settings.insecure_registries.contains(&host(registry));
    let mut derived = vec![Parameter::new(REGISTRY_INSECURE, insecure.to_string())];
    let dockerfile = text(object, "dockerfile");
    if !dockerfile.is_empty() {
        derived.push(Parameter::new(DOCKERFILE, dockerfile));
    }
    BuildRequest {
        front: front.clone(),
        owner: Owner {
            name: name(object).to_owned(),
            namespace: namespace.to_owned(),
            uid: object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or("").to_owned(),
        },
        mode: String::new(),
        gated: false,
        source: Source {
            repository: text(object, "repoUrl").to_owned(),
            revision: text(object, "revision").to_owned(),
            subfolder: text(object, "sourceSubfolder").to_owned(),
            user: if user.is_empty() { of_token.to_owned() } else { user.to_owned() },
        },
        git_auth: git.map(|token| SecretUse {
            secret: token.secret,
            items: vec![(token.key, "token".to_owned())],
            as_parameter: false,
            optional: token.optional,
        }),
        image: Some(ImageParts {
            registry: match &login {
                RegistryLogin::Made(_) => with_lower_host(registry),
                // A Secret of the user's has whatever the user wrote.
                RegistryLogin::None | RegistryLogin::Named(_) => registry.to_owned(),
            },
            image: text(object, "image").to_owned(),
            tag: text(object, "imageTag").to_owned(),
        }),
        registry_auth: match &login {
            RegistryLogin::None => None,
            RegistryLogin::Named(secret) => Some(of_registry(secret)),
            RegistryLogin::Made(login) => Some(of_registry(&login.secret)),
        },
        login: match login {
            RegistryLogin::Made(login) => Some(login),
            RegistryLogin::None | RegistryLogin::Named(_) => None,
        },
        derived,
        steps: template.iter().flat_map(|template| template.steps_of_build()).collect(),
        template,
        steps_namespace: view.operator_namespace().to_owned(),
        steps_from: StepsFrom::Template,
        parameters: Vec::new(),
        build_arguments: env::arguments(object),
        workspace_size: WORKSPACE_SIZE.to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        identity: identity(object),
        attempt: 1,
        pinned_steps: BTreeMap::new(),
    }
}

/// Members of the spec that do not change the image.
const NO_INPUTS: [&str; 3] = ["agent", "deployAfterBuild", "cleanupAfterBuild"];

/// What identifies the inputs: the spec without what does not change the image, and the user's wish to build again.
fn identity(object: &Value) -> Value {
    let members = object.get("spec").and_then(Value::as_object).into_iter().flatten();
    let inputs = members.filter(|(key, _)| !NO_INPUTS.contains(&key.as_str()));
    let spec: Map<String, Value> = inputs.map(|(key, value)| (key.clone(), value.clone())).collect();
    let annotations = object.pointer("/metadata/annotations");
    let rebuild = annotations.and_then(|all| all.get(keys::ANNOTATION_BEEAI_REBUILD)).and_then(Value::as_str);
    json!({"spec": spec, "rebuild": rebuild.unwrap_or_default()})
}
