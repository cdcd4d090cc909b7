//! The Secrets that a build uses, what for, where they go, and which of them are used by their own consent.
//!
//! In: an AgentBuild with the steps and parameters it has in the end. Out: one row a Secret. Promise: what the API server's policy has not asked
//! for by name, because the build leaves it to consent or a template of the platform gives it, has a demand.

use super::subject::Subject;
use crate::api::secrets;
use crate::controllers::scaffold::answers::SecretFact;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::domain::keys;
use crate::pipelines::check::source::host;
use crate::pipelines::compose::signing_secret;
use crate::pipelines::params::Layers;
use crate::pipelines::params::control::SIGNING_SECRET;
use crate::pipelines::request::BuildRequest;

/// What a Secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Git,
    Registry,
    Signing,
    /// A step takes its name as a parameter.
    Parameter,
    /// A login of a registry is made from it.
    Token,
}

/// A Secret that a build names.
pub(super) struct Wanted {
    pub(super) what: Use,
    pub(super) name: String,
    pub(super) path: &'static str,
    pub(super) goes: Goes,
    /// Its own consent is needed.
    pub(super) demand: Option<Demand>,
    /// The keys that the build names; empty where any of several layouts will do.
    pub(super) keys: Vec<String>,
    /// The build goes without it where it is missing.
    pub(super) optional: bool,
}

impl Wanted {
    /// Whether what the build names is not there.
    pub(super) fn lacks(&self, fact: &SecretFact) -> bool {
        match fact {
            SecretFact::Absent => true,
            SecretFact::Forbidden => false,
            SecretFact::Is(seen) => self.keys.iter().any(|key| !seen.keys.contains(key)),
        }
    }

    /// The build without it.
    pub(super) fn leave_out(&self, request: &mut BuildRequest) {
        match self.what {
            Use::Git => request.git_auth = None,
            Use::Token => (request.login, request.registry_auth) = (None, None),
            Use::Registry | Use::Signing | Use::Parameter => {}
        }
    }
}

/// The Secrets of a build, those of its steps' parameters as far as their consent is needed.
pub(super) fn wanted(subject: &Subject<'_>) -> Vec<Wanted> {
    let request = &subject.request;
    let paths = &request.front.paths;
    let consented = secrets::by_consent(&subject.object);
    let asked = (subject.face.secrets)(&subject.object);
    let is_asked = |name: &str| asked.contains(name) && !consented.contains(name);
    let git = request.git_auth.as_ref().map(|secret| (Use::Git, secret.secret.clone(), paths.git_auth));
    // What is made from a token is no prerequisite; the token is.
    let made = request.login.as_ref();
    let registry = request.registry_auth.as_ref().filter(|_| made.is_none());
    let registry = registry.map(|secret| (Use::Registry, secret.secret.clone(), paths.registry_auth));
    let token = made.map(|login| (Use::Token, login.token.clone(), paths.registry_auth));
    let signs = request.steps.iter().any(|step| step.enabled && step.name == keys::TASK_SIGN);
    let signing = signing_secret(request).filter(|_| signs).map(|name| (Use::Signing, name, paths.parameters));
    let mut all: Vec<_> = [git, registry, token, signing].into_iter().flatten().collect();
    for name in of_parameters(subject).into_iter().filter(|name| !is_asked(name)) {
        if !all.iter().any(|(_, known, _)| *known == name) {
            all.push((Use::Parameter, name, paths.parameters));
        }
    }
    let row = |(what, name, path): (Use, String, &'static str)| {
        let goes = goes(what, request);
        let by = keys::USABLE_BY[0];
        let demand = (!is_asked(&name)).then(|| Demand { secret: name.clone(), by, goes: goes.clone() });
        let (keys, optional) = named(what, request);
        Wanted { what, name, path, goes, demand, keys, optional }
    };
    all.into_iter().filter(|(_, name, _)| !name.is_empty()).map(row).collect()
}

/// The keys that the build names in a Secret, and whether it goes without.
fn named(what: Use, request: &BuildRequest) -> (Vec<String>, bool) {
    match (what, &request.git_auth, &request.login) {
        (Use::Git, Some(git), _) => (git.items.iter().map(|(key, _)| key.clone()).collect(), git.optional),
        (Use::Token, _, Some(login)) => (vec![login.key.clone()], login.optional),
        _ => (Vec::new(), false),
    }
}

/// The names that the steps' parameters have in the end, from whichever layer.
fn of_parameters(subject: &Subject<'_>) -> Vec<String> {
    let request = &subject.request;
    let known = subject.builds().view.steps(subject.steps_namespace());
    let layers = Layers::new(request, "");
    let mut names = Vec::new();
    for (index, entry) in request.steps.iter().enumerate().filter(|(_, entry)| entry.enabled) {
        let Some(Ok(step)) = known.get(&entry.config_map).map(|entry| entry.step.as_ref()) else { continue };
        let declared = step.params.iter().filter(|one| secrets::names_secret(&one.name) && one.name != SIGNING_SECRET);
        let given = declared.filter_map(|one| layers.strongest(index, &one.name)?.text.ok());
        names.extend(given.filter(|name| !name.is_empty()));
    }
    names
}

fn goes(what: Use, request: &BuildRequest) -> Goes {
    match what {
        Use::Git => Goes::Repository(host(&request.source.repository).to_owned()),
        Use::Registry => Goes::Registries(registries(request)),
        Use::Token => Goes::Registries(request.login.iter().map(|login| login.host.clone()).collect()),
        Use::Signing | Use::Parameter => Goes::Anywhere,
    }
}

/// The parameters that say what is pushed.
const PUSHED: [&str; 2] = ["image", "push-image"];

/// Where images are pushed: as the output says, and as parameters say in its place.
fn registries(request: &BuildRequest) -> Vec<String> {
    let own = request.image.iter().map(|image| image.registry.as_str());
    let steps = request.steps.iter().filter(|step| step.enabled).flat_map(|step| &step.parameters);
    let given = request.parameters.iter().chain(steps).filter(|one| PUSHED.contains(&&*one.name));
    let given = given.map(|one| one.value.as_str()).filter(|image| image.contains('/'));
    let mut hosts: Vec<_> = own.chain(given).map(|image| image.split('/').next().unwrap_or(image).to_owned()).collect();
    hosts.sort();
    hosts.dedup();
    hosts.retain(|host| !host.is_empty());
    hosts
}
