//! Which login of the registry a build has: the first rule that matches.
//!
//! A Git token is sent to a registry only where the platform trusts that host with it: without that, whoever may write builds could send a
//! Secret that he cannot read to a host that he chooses.

use serde_json::Value;

use super::{env, name, text};
use crate::domain::keys;
use crate::pipelines::request::Login;
use crate::pipelines::settings::Settings;

/// Docker Hub by its host, and how its login is looked up.
const HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");

/// The login of a build's push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryLogin {
    /// None: the push is anonymous.
    None,
    /// A Secret that is there already, by the name that the build gives.
    Named(String),
    /// One that is made from a token.
    Made(Login),
}

/// The login of a build.
#[must_use]
pub fn login(object: &Value, settings: &Settings) -> RegistryLogin {
    if let Some(secret) = env::registry_secret(object) {
        return RegistryLogin::Named(secret.to_owned());
    }
    if !settings.registry_secrets {
        return RegistryLogin::None;
    }
    let host = host(text(object, "imageRegistry"));
    let of_git = || env::source_token(object).filter(|_| settings.token_registries.contains(&*host));
    match env::registry_token(object).or_else(of_git) {
        None => RegistryLogin::None,
        Some(token) => RegistryLogin::Made(Login {
            secret: secret_name(name(object)),
            token: token.secret,
            key: token.key,
            optional: token.optional,
            user: Some(text(object, "repoUser")).filter(|user| !user.is_empty()).unwrap_or(name(object)).to_owned(),
            account: if host == HUB.0 { HUB.1.to_owned() } else { host.clone() },
            host,
        }),
    }
}

/// The Secret that holds a login that is made for the build of that name.
#[must_use]
pub fn secret_name(build: &str) -> String {
    format!("{build}{}", keys::SUFFIX_LOGIN)
}

/// The Secret that images of the build are pulled with.
#[must_use]
pub fn pull_secret(login: &RegistryLogin) -> Option<&str> {
    match login {
        RegistryLogin::None => None,
        RegistryLogin::Named(secret) => Some(secret),
        RegistryLogin::Made(login) => Some(&login.secret),
    }
}

/// The registry with its host in lower case. Either case names the same host, and whoever looks a login up compares the letters: what is made
/// for a build is under [`host`].
#[must_use]
pub(super) fn with_lower_host(registry: &str) -> String {
    let end = registry.find('/').unwrap_or(registry.len());
    format!("{}{}", registry[..end].to_ascii_lowercase(), &registry[end..])
}

/// The host of a registry, with its port, in lower case; Docker Hub under its one name.
#[must_use]
pub fn host(registry: &str) -> String {
    let host = registry.split('/').next().unwrap_or(registry).to_ascii_lowercase();
    if matches!(&*host, "index.docker.io" | "registry-1.docker.io") { HUB.0.to_owned() } else { host }
}
