//! Which workspace of a task is filled with what.

use serde_json::{Value, json};

use crate::api::findings::{Fault, Findings};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::params::Layers;
use crate::pipelines::params::control::SIGNING_SECRET;
use crate::pipelines::request::{BuildRequest, SecretUse};
use crate::pipelines::settings::Settings;
use crate::pipelines::step::Step;

/// One workspace of a task.
pub(super) struct Binding {
    /// Its name in the TaskSpec.
    pub(super) name: String,
    /// The workspace of the run.
    pub(super) workspace: &'static str,
    /// Folder of the claim.
    pub(super) folder: Option<&'static str>,
}

impl Binding {
    pub(super) fn render(&self) -> Value {
        match self.folder {
            Some(folder) => json!({"name": self.name, "workspace": self.workspace, "subPath": folder}),
            None => json!({"name": self.name, "workspace": self.workspace}),
        }
    }
}

/// What can fill a workspace of that name, for a task: the workspace of the run and the folder of the claim.
type Filling = (&'static str, Option<&'static str>);

/// The bindings of one step; a workspace that it needs and nothing fills is a fault.
pub(super) fn bindings(
    request: &BuildRequest,
    (index, step): (usize, &Step),
    settings: &Settings,
    findings: &mut Findings,
) -> Vec<Binding> {
    let path = format!("{}[{index}]", request.front.paths.steps);
    let task = &request.steps[index].name;
    let mut bindings = Vec::with_capacity(step.workspaces.len());
    for declared in &step.workspaces {
        let name = declared.name.as_str();
        if name == keys::WORKSPACE_SIGNING_KEY && task != keys::TASK_SIGN {
            let sentence = format!("uses workspace {name} in step {task}; only step {} may", keys::TASK_SIGN);
            let remedy = "take the workspace out of the TaskSpec";
            findings.content(Fault::new(Reason::WorkspaceUnknown, path.clone(), sentence, remedy).seeing(name));
            continue;
        }
        match filling(request, settings, name) {
            Some((workspace, folder)) => bindings.push(Binding { name: name.to_owned(), workspace, folder }),
            None if declared.optional => {}
            None => {
                let sentence = format!("needs workspace {name} in step {task}, and nothing fills it");
                let fault = Fault::new(Reason::WorkspaceUnknown, path.clone(), sentence, remedy(request, name));
                let fault =
                    if name == keys::WORKSPACE_SIGNING_KEY { fault.of_parameter(SIGNING_SECRET) } else { fault };
                findings.content(fault.seeing(name));
            }
        }
    }
    bindings
}

fn filling(request: &BuildRequest, settings: &Settings, name: &str) -> Option<Filling> {
    let when = |present: bool, workspace| present.then_some((workspace, None));
    match name {
        keys::WORKSPACE_SOURCE => Some((keys::WORKSPACE_SHARED, Some(keys::WORKSPACE_SOURCE))),
        keys::WORKSPACE_ARTIFACTS => Some((keys::WORKSPACE_SHARED, Some(keys::WORKSPACE_ARTIFACTS))),
        keys::WORKSPACE_GIT_AUTH => when(request.git_auth.is_some(), keys::WORKSPACE_GIT_AUTH),
        keys::WORKSPACE_REGISTRY_AUTH => when(request.registry_auth.is_some(), keys::WORKSPACE_REGISTRY_AUTH),
        keys::WORKSPACE_SIGNING_KEY => when(signing_secret(request).is_some(), keys::WORKSPACE_SIGNING_KEY),
        keys::WORKSPACE_TRUST_BUNDLE => when(settings.trust_bundle.is_some(), keys::WORKSPACE_TRUST_BUNDLE),
        _ => None,
    }
}

fn remedy(request: &BuildRequest, name: &str) -> String {
    let paths = &request.front.paths;
    match name {
        keys::WORKSPACE_GIT_AUTH => format!("fill {}", paths.git_auth),
        keys::WORKSPACE_REGISTRY_AUTH => format!("fill {}", paths.registry_auth),
        keys::WORKSPACE_SIGNING_KEY => format!("add parameter {SIGNING_SECRET} to {}", paths.parameters),
        keys::WORKSPACE_TRUST_BUNDLE => "let the platform name a trust bundle for builds".to_owned(),
        _ => "use one of the known workspaces, or make it optional".to_owned(),
    }
}

/// The Secret with the signing key, when the request names one: the one that the step which signs is given.
#[must_use]
pub fn signing_secret(request: &BuildRequest) -> Option<String> {
    let layers = Layers::new(request, "");
    let given = match request.steps.iter().position(|step| step.enabled && step.name == keys::TASK_SIGN) {
        Some(sign) => layers.strongest(sign, SIGNING_SECRET),
        None => layers.strongest_of_run(SIGNING_SECRET),
    };
    given?.text.ok().filter(|name| !name.is_empty())
}

/// The workspaces of the run: the claim, then what any task uses.
pub(super) fn of_run(request: &BuildRequest, claim: &str, settings: &Settings, used: &[&'static str]) -> Vec<Value> {
    let mut all = vec![json!({"name": keys::WORKSPACE_SHARED, "persistentVolumeClaim": {"claimName": claim}})];
    for name in [keys::WORKSPACE_GIT_AUTH, keys::WORKSPACE_REGISTRY_AUTH, keys::WORKSPACE_SIGNING_KEY] {
        if !used.contains(&name) {
            continue;
        }
        let secret = match name {
            keys::WORKSPACE_GIT_AUTH => request.git_auth.as_ref().map(source),
            keys::WORKSPACE_REGISTRY_AUTH => request.registry_auth.as_ref().map(source),
            _ => signing_secret(request).map(|secret| source(&signing_key(secret))),
        };
        if let Some(secret) = secret {
            all.push(json!({"name": name, "secret": secret}));
        }
    }
    if let Some(bundle) = settings.trust_bundle.as_ref().filter(|_| used.contains(&keys::WORKSPACE_TRUST_BUNDLE)) {
        all.push(json!({"name": keys::WORKSPACE_TRUST_BUNDLE, "configMap": {"name": bundle}}));
    }
    all
}

fn signing_key(secret: String) -> SecretUse {
    let items = vec![("cosign.key".to_owned(), "cosign.key".to_owned())];
    SecretUse { secret, items, as_parameter: false, optional: false }
}

fn source(secret: &SecretUse) -> Value {
    if secret.items.is_empty() {
        return json!({"secretName": secret.secret});
    }
    let items: Vec<_> = secret.items.iter().map(|(key, path)| json!({"key": key, "path": path})).collect();
    json!({"secretName": secret.secret, "items": items})
}
