//! Derived parameters, and the parameters of the run.

use super::Layers;
use crate::pipelines::fixtures::{parameters, request};
use crate::pipelines::request::{Parameter, SecretUse};

#[test]
fn derived_parameters_in_their_order() {
    let mut request = request(Vec::new());
    request.gated = true;
    request.source.user = "octo".to_owned();
    let secret = |name: &str| {
        Some(SecretUse { secret: name.to_owned(), items: Vec::new(), as_parameter: true, optional: false })
    };
    request.registry_auth = secret("ghcr-secret");
    request.git_auth = secret("github-token-secret");
    request.derived = vec![Parameter::new("registry-insecure", "false")];
    let all: Vec<_> = Layers::new(&request, "3f9c1a7be2").run_parameters();
    let expected = [
        ("repo-url", "github.com/kagenti/agent-examples.git"),
        ("revision", "main"),
        ("subfolder-path", "a2a/weather"),
        ("image", "reg:5000/weather:v1"),
        ("candidate-image", "reg:5000/weather:v1-candidate-3f9c1a7be2"),
        ("registry-secret", "ghcr-secret"),
        ("SOURCE_REPO_SECRET", "github-token-secret"),
        ("repo-user", "octo"),
        ("registry-insecure", "false"),
    ];
    assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn the_users_parameters_are_laid_over_in_place() {
    let mut request = request(Vec::new());
    request.source.subfolder = String::new();
    request.image = None;
    request.parameters = parameters(&[("FOO", "bar"), ("revision", "v2"), ("workspace-size", "2Gi")]);
    let all = Layers::new(&request, "x").run_parameters();
    let names: Vec<_> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(names, ["repo-url=github.com/kagenti/agent-examples.git", "revision=v2", "subfolder-path=.", "FOO=bar"]);
}
