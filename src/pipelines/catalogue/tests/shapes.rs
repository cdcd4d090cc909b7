//! The shape of every mode's run, and the part of C19 that needs no
//! Tekton: every template with and without credentials and build arguments composes.

use serde_json::{Value, json};

use super::shipped;
use crate::pipelines::agent_build::{Change, complete, read, validate};
use crate::pipelines::compose::{Composition, Surroundings, compose};
use crate::pipelines::fixtures::{OPERATOR, TEAM, task, task_params};
use crate::pipelines::settings::Settings;

const INTERNAL: &str = "registry.cr-system.svc.cluster.local:5000";

fn object(mode: &str, credentials: bool, arguments: bool) -> Value {
    let gated = matches!(mode, "preprod" | "prod");
    let registry = if mode == "dev-external" || gated { "ghcr.io/acme" } else { INTERNAL };
    let mut object = json!({
        "metadata": {"name": "weather-build", "namespace": TEAM, "uid": "5f0c6d4e-0000-4000-8000-000000000001"},
        "spec": {
            "mode": mode,
            "source": {
                "sourceRepository": "github.com/kagenti/agent-examples.git", "sourceRevision": "v1.4.2",
                "sourceSubfolder": "a2a/weather_service",
            },
            "buildOutput": {"imageRegistry": registry, "image": "weather-service", "imageTag": "v0.0.1"},
        },
    });
    if credentials {
        object["spec"]["source"]["sourceCredentials"] = json!({"name": "github-token-secret"});
        object["spec"]["buildOutput"]["imageRepoCredentials"] = json!({"name": "ghcr-secret"});
    }
    if arguments {
        object["spec"]["buildArgs"] = json!([{"name": "PY", "value": "3.13"}]);
    }
    if mode == "prod" {
        object["spec"]["pipeline"] = json!({"parameters": [
            {"name": "test-command", "value": "python -m pytest -q /app/tests"},
            {"name": "signing-secret", "value": "release-signing-key"}]});
    }
    object
}

/// From what a user applies to what Tekton gets.
fn run_of(mut object: Value) -> Composition {
    let (view, settings) = (shipped(), Settings::new(OPERATOR));
    let change = Change { namespace: TEAM, object: &object, old: None };
    let operations = complete(&change, &view, &settings);
    json_patch::patch(&mut object, &operations).unwrap();
    let change = Change { namespace: TEAM, object: &object, old: None };
    let findings = validate(&change, &view, &settings);
    assert_eq!((findings.faults, findings.notes), (vec![], vec![]));
    let (request, findings) = read(&object, TEAM, &view, 1);
    assert_eq!(findings.faults, []);
    let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
    compose(&request, around).unwrap_or_else(|findings| panic!("{findings:#?}"))
}

fn tasks(run: &Value) -> Vec<&str> {
    run["spec"]["pipelineSpec"]["tasks"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect()
}

fn workspaces(run: &Value, name: &str) -> Vec<String> {
    let bindings = task(run, name)["workspaces"].as_array().cloned().unwrap_or_default();
    let one = |binding: &Value| match binding["subPath"].as_str() {
        Some(folder) => {
            format!("{}={}/{folder}", binding["name"].as_str().unwrap(), binding["workspace"].as_str().unwrap())
        }
        None => format!("{}={}", binding["name"].as_str().unwrap(), binding["workspace"].as_str().unwrap()),
    };
    bindings.iter().map(one).collect()
}

const SOURCE: &str = "source=shared-workspace/source";
const ARTIFACTS: &str = "artifacts=shared-workspace/artifacts";

#[test]
fn dev_is_the_shape_of_9_6() {
    let composition = run_of(object("dev", true, true));
    let run = &composition.run;
    let name = run["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("weather-build-") && name.len() == "weather-build-".len() + 10, "{name}");
    assert_eq!(
        run["metadata"]["labels"],
        json!({
        "app.kubernetes.io/part-of": "kagenti-operator", "app.kubernetes.io/managed-by": "drawbridge",
        "app.kubernetes.io/component": "weather-build", "agent.kagenti.dev/agentbuild": "weather-build",
        "agent.kagenti.dev/mode": "dev"})
    );
    assert_eq!(run["metadata"]["annotations"]["agent.kagenti.dev/build-hash"], composition.build_hash);
    assert_eq!(run["metadata"]["annotations"]["agent.kagenti.dev/attempt"], "1");
    assert_eq!(run["metadata"]["ownerReferences"][0]["kind"], "AgentBuild");
    assert_eq!(run["spec"]["timeouts"], json!({"pipeline": "20m"}));
    assert_eq!(
        run["spec"]["taskRunTemplate"]["podTemplate"],
        json!({"automountServiceAccountToken": false, "securityContext": {"fsGroup": 65532}})
    );
    assert_eq!(
        run["spec"]["workspaces"],
        json!([
        {"name": "shared-workspace", "persistentVolumeClaim": {"claimName": "weather-build-workspace"}},
        {"name": "git-auth", "secret": {"secretName": "github-token-secret"}},
        {"name": "registry-auth", "secret": {"secretName": "ghcr-secret", "items": [{"key": ".dockerconfigjson", "path": "config.json"}]}}])
    );
    assert_eq!(
        run["spec"]["pipelineSpec"]["workspaces"],
        json!([{"name": "shared-workspace"}, {"name": "git-auth"}, {"name": "registry-auth"}])
    );
    assert_eq!(
        tasks(run),
        ["github-clone", "folder-verification", "dockerfile-check", "buildah-build", "buildpack-step"]
    );
    assert_eq!(workspaces(run, "github-clone"), [SOURCE, ARTIFACTS, "git-auth=git-auth"]);
    assert_eq!(workspaces(run, "folder-verification"), [SOURCE]);
    assert_eq!(workspaces(run, "buildah-build"), [SOURCE, ARTIFACTS, "registry-auth=registry-auth"]);
    let buildah = task(run, "buildah-build");
    assert_eq!(buildah["runAfter"], json!(["dockerfile-check"]));
    assert_eq!(
        buildah["when"],
        json!([{"input": "$(tasks.dockerfile-check.results.has-dockerfile)", "operator": "in", "values": ["true"]}])
    );
    let params = task_params(run, "buildah-build");
    assert_eq!(
        json!(params),
        json!({
        "image": format!("{INTERNAL}/weather-service:v0.0.1"), "DOCKERFILE": "$(tasks.dockerfile-check.results.dockerfile-name)",
        "subfolder-path": "a2a/weather_service", "SKIP_TLS_VERIFY": "true", "BUILD_ARGS": ["--build-arg=PY=3.13"]})
    );
    assert_eq!(composition.claim["metadata"]["name"], "weather-build-workspace");
    assert_eq!(composition.claim["spec"]["resources"]["requests"]["storage"], "1Gi");
}

#[test]
fn the_other_development_modes() {
    let (dev, local) = (run_of(object("dev", false, false)).run, run_of(object("dev-local", false, false)).run);
    assert_eq!(dev["spec"]["pipelineSpec"], local["spec"]["pipelineSpec"]);
    assert_eq!(local["metadata"]["labels"]["agent.kagenti.dev/mode"], "dev-local");
    let pack = run_of(object("buildpack-dev", false, false)).run;
    assert_eq!(tasks(&pack), ["github-clone", "folder-verification", "buildpack-step"]);
    assert!(task(&pack, "buildpack-step").get("when").is_none());
    let external = run_of(object("dev-external", true, false)).run;
    assert!(!task_params(&external, "buildah-build").contains_key("SKIP_TLS_VERIFY"), "certificates are verified");
    let names: Vec<_> =
        external["spec"]["params"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["repo-url", "revision", "subfolder-path", "image", "registry-secret", "SOURCE_REPO_SECRET"]);
}

#[test]
fn preprod_and_prod_are_the_lists_of_13_2() {
    let preprod = run_of(object("preprod", true, true)).run;
    assert_eq!(
        tasks(&preprod),
        [
            "github-clone",
            "folder-verification",
            "secret-scan",
            "dockerfile-check",
            "buildah-build",
            "buildpack-step",
            "image-reference",
            "sbom",
            "vulnerability-scan",
            "smoke-test",
            "promote",
        ]
    );
    let prod = run_of(object("prod", true, true)).run;
    assert_eq!(
        tasks(&prod),
        [
            "github-clone",
            "folder-verification",
            "secret-scan",
            "dockerfile-check",
            "buildah-build",
            "buildpack-step",
            "image-reference",
            "sbom",
            "vulnerability-scan",
            "container-test",
            "smoke-test",
            "policy-gate",
            "sign",
            "promote",
        ]
    );
    for (run, timeout, fail_on) in [(&preprod, "40m", "critical"), (&prod, "60m", "high")] {
        assert_eq!(run["spec"]["timeouts"]["pipeline"], timeout);
        assert_eq!(run["spec"]["taskRunTemplate"]["podTemplate"]["imagePullSecrets"], json!([{"name": "ghcr-secret"}]));
        let scan = task_params(run, "vulnerability-scan");
        assert_eq!((&scan["FAIL_ON"], &scan["FAIL_ON_UNFIXED"]), (&json!(fail_on), &json!("critical")));
        let hash = run["metadata"]["name"].as_str().unwrap().rsplit('-').next().unwrap();
        let candidate = format!("ghcr.io/acme/weather-service:v0.0.1-candidate-{hash}");
        for task in ["buildah-build", "buildpack-step"] {
            assert_eq!(task_params(run, task)["push-image"], json!(candidate));
        }
        let promote = task_params(run, "promote");
        assert_eq!(promote["image"], "ghcr.io/acme/weather-service:v0.0.1");
        assert_eq!(promote["image-ref"], "$(tasks.image-reference.results.IMAGE_REF)");
        for task in ["smoke-test", "container-test"].into_iter().filter(|name| tasks(run).contains(name)) {
            assert_eq!(workspaces(run, task), Vec::<String>::new(), "{task} sees no credential and no evidence");
        }
    }
    assert_eq!(workspaces(&prod, "sign"), [ARTIFACTS, "signing-key=signing-key", "registry-auth=registry-auth"]);
    let key = json!({"name": "signing-key", "secret": {"secretName": "release-signing-key", "items": [{"key": "cosign.key", "path": "cosign.key"}]}});
    assert!(prod["spec"]["workspaces"].as_array().unwrap().contains(&key));
    let gate = task_params(&prod, "policy-gate");
    assert_eq!(gate["commit"], "$(tasks.github-clone.results.commit)");
    assert_eq!(gate["test-command"], "python -m pytest -q /app/tests", "reviewers can see what was tested");
    // 10.3: everything behind the build hangs on one unconditional task.
    for name in tasks(&prod).into_iter().filter(|name| !name.starts_with("build")) {
        assert!(task(&prod, name).get("when").is_none(), "{name}");
    }
}

/// The half of C19 that needs no Tekton.
#[test]
fn case_c19_every_template_composes_with_and_without_everything() {
    // The template of BeeAI is no mode of this kind: `beeai_build` composes it.
    for mode in shipped().modes(OPERATOR).filter(|mode| *mode != "beeai") {
        for (credentials, arguments) in [(false, false), (false, true), (true, false), (true, true)] {
            // Buildpacks take no build arguments, and the user is told.
            let run = run_of(object(mode, credentials, arguments && mode != "buildpack-dev")).run;
            let used = run["spec"]["workspaces"].as_array().unwrap().len();
            let secrets = if credentials { 2 } else { 0 } + usize::from(mode == "prod");
            assert_eq!(used, 1 + secrets, "{mode} {credentials}");
            assert!(!run.to_string().contains("{{"), "{mode}");
        }
    }
}

/// BeeAI's sample comes out of the same core: its words are data.
#[test]
fn another_front_end_needs_no_change() {
    use crate::api::owner::Owner;
    use crate::pipelines::request::{FrontEnd, KAGENTI, Parameter, SecretUse, StepsFrom};
    let template = json!({"name": "BeeAI Pipeline", "customSteps": "forbidden", "requiredParameters": ["repo-url", "revision", "image"],
        "steps": [
            {"name": "pull", "configMap": "github-clone-step"},
            {"name": "check-subfolder", "configMap": "check-subfolder-step"},
            {"name": "build", "configMap": "buildah-build-step", "defaultParameters": [{"name": "SKIP_TLS_VERIFY", "value": "{{.registry-insecure}}"}]}],
        "globalParameters": [{"name": "pipeline-timeout", "value": "30m"}, {"name": "workspace-size", "value": "5Gi"}]});
    let mut request =
        crate::pipelines::fixtures::from_template(crate::pipelines::fixtures::request(Vec::new()), &template);
    assert_eq!(request.steps_from, StepsFrom::Template);
    request.front = FrontEnd {
        api_version: "beeai.dev/v1",
        kind: "AgentBuild",
        label_build: "beeai.dev/agentbuild",
        label_mode: None,
        label_name: None,
        label_group: None,
        annotation_hash: "beeai.dev/build-hash",
        annotation_attempt: "beeai.dev/attempt",
        annotation_rebuild: "beeai.dev/rebuild",
        annotation_cancel: "beeai.dev/cancel",
        prefix_step_hash: "step-hash.beeai.dev/",
        claim_suffix: "-beeai-workspace",
        paths: KAGENTI.paths,
    };
    request.owner = Owner { name: "research-agent".to_owned(), namespace: TEAM.to_owned(), uid: "u".to_owned() };
    request.mode = String::new();
    request.source.user = "octo".to_owned();
    request.git_auth = Some(SecretUse {
        secret: "github-token-secret".to_owned(),
        items: vec![("token".to_owned(), "token".to_owned())],
        as_parameter: false,
        optional: false,
    });
    request.derived = vec![Parameter::new("registry-insecure", "false")];
    let (view, settings) = (shipped(), Settings::new(OPERATOR));
    let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
    let composition = compose(&request, around).unwrap();
    let run = &composition.run;
    assert_eq!(run["metadata"]["labels"]["beeai.dev/agentbuild"], "research-agent");
    assert!(run["metadata"]["labels"].get("agent.kagenti.dev/mode").is_none());
    assert_eq!(run["metadata"]["annotations"]["beeai.dev/attempt"], "1");
    assert_eq!(run["spec"]["workspaces"][0]["persistentVolumeClaim"]["claimName"], "research-agent-beeai-workspace");
    assert_eq!(run["spec"]["workspaces"][1]["secret"]["items"], json!([{"key": "token", "path": "token"}]));
    assert_eq!(composition.claim["spec"]["resources"]["requests"]["storage"], "5Gi");
    assert_eq!(task_params(run, "build")["SKIP_TLS_VERIFY"], "false");
    assert_eq!(task_params(run, "pull")["repo-user"], "octo");
    let names: Vec<_> =
        run["spec"]["params"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"SOURCE_REPO_SECRET") && names.contains(&"repo-user"));
}

#[test]
fn provenance_says_where_every_parameter_came_from() {
    use crate::pipelines::params::Layer;
    let composition = run_of(object("preprod", true, true));
    let find = |step: &str, parameter: &str| {
        let one =
            composition.provenance.iter().find(|one| one.step.as_deref() == Some(step) && one.parameter == parameter);
        one.unwrap_or_else(|| panic!("{step} {parameter}")).origin.clone()
    };
    assert_eq!(find("github-clone", "repo-url").layer, Layer::Derived);
    assert_eq!(find("github-clone", "repo-url").path, "spec.source.sourceRepository");
    assert_eq!(find("github-clone", "depth").layer, Layer::TaskDefault);
    assert_eq!(find("buildah-build", "push-image").layer, Layer::TemplateStep);
    assert_eq!(find("buildah-build", "BUILD_ARGS").layer, Layer::BuildArguments);
    let timeout = composition.provenance.iter().find(|one| one.parameter == "pipeline-timeout").unwrap();
    assert_eq!((timeout.step.as_ref(), timeout.origin.layer), (None, Layer::TemplateGlobal));
}
