//! Parameters that other fields of the object give, in the order in which a run declares them.

use crate::pipelines::names;
use crate::pipelines::request::{BuildRequest, SecretUse};

/// Reserved: only derived, never set by a build.
pub const CANDIDATE_IMAGE: &str = "candidate-image";

/// A derived parameter, and the field that gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The field.
    pub path: String,
}

/// The field a user fills so that this parameter gets a value, when there is one: a Secret whose name is not passed on gives none.
#[must_use]
pub fn field_of(request: &BuildRequest, parameter: &str) -> Option<&'static str> {
    let paths = &request.front.paths;
    let gives = |secret: Option<&SecretUse>| secret.is_none_or(|secret| secret.as_parameter);
    match parameter {
        "repo-url" => Some(paths.repository),
        "revision" => Some(paths.revision),
        "subfolder-path" => Some(paths.subfolder),
        "repo-user" => Some(paths.user),
        "image" | CANDIDATE_IMAGE => Some(paths.output),
        "registry-secret" if gives(request.registry_auth.as_ref()) => Some(paths.registry_auth),
        "SOURCE_REPO_SECRET" if gives(request.git_auth.as_ref()) => Some(paths.git_auth),
        _ => None,
    }
}

/// The derived parameters of a request.
#[must_use]
pub fn derived(request: &BuildRequest, attempt_hash: &str) -> Vec<Derived> {
    let (paths, source) = (&request.front.paths, &request.source);
    let mut all = Vec::new();
    let mut add = |name: &str, value: String, path: &str| {
        if !value.is_empty() {
            all.push(Derived { name: name.to_owned(), value, path: path.to_owned() });
        }
    };
    add("repo-url", source.repository.clone(), paths.repository);
    add("revision", source.revision.clone(), paths.revision);
    let subfolder = if source.subfolder.is_empty() { "." } else { &source.subfolder };
    add("subfolder-path", subfolder.to_owned(), paths.subfolder);
    if let Some(image) = &request.image {
        add("image", image.reference(), paths.output);
        if request.gated {
            let tag = names::candidate_tag(&image.tag, attempt_hash);
            add(CANDIDATE_IMAGE, image.with_tag(&tag), paths.output);
        }
    }
    for (name, secret, path) in [
        ("registry-secret", &request.registry_auth, paths.registry_auth),
        ("SOURCE_REPO_SECRET", &request.git_auth, paths.git_auth),
    ] {
        if let Some(secret) = secret.as_ref().filter(|secret| secret.as_parameter) {
            add(name, secret.secret.clone(), path);
        }
    }
    add("repo-user", source.user.clone(), paths.user);
    for parameter in &request.derived {
        add(&parameter.name, parameter.value.clone(), paths.output);
    }
    all
}
