//! Cases of BeeAI (Z; docs/cases.md) that the front end decides: what is refused, what is composed, which login a push has, which Agent is kept.

use serde_json::{Value, json};

use super::deploy::agent;
use super::login::{RegistryLogin, login};
use super::{front, read, validate};
use crate::api::findings::Findings;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::catalogue::{Values, config_maps};
use crate::pipelines::compose::{Composition, Surroundings, compose};
use crate::pipelines::fixtures::{OPERATOR, TEAM, task, task_params, template_map};
use crate::pipelines::names;
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

fn view() -> TemplatesView {
    TemplatesView::new(OPERATOR, false).with(config_maps(OPERATOR, &Values::default()))
}

/// The fuller sample of 7.5, with `more` merged into its spec.
fn sample(more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "beeai.dev/v1", "kind": "AgentBuild",
        "metadata": {"name": "research-agent", "namespace": TEAM, "uid": "u-1", "labels": {"team": "a"}},
        "spec": {
            "repoUrl": "https://github.com/kagenti/agent-examples.git", "revision": "main",
            "sourceSubfolder": "beeai/ollama-deep-researcher", "repoUser": "octo",
            "imageRegistry": "ghcr.io/acme", "image": "research-agent", "imageTag": "v0.0.2",
            "env": [secret("SOURCE_REPO_SECRET", "github-token-secret", "token"), {"name": "PIP_INDEX", "value": "internal"}],
            "deployAfterBuild": true, "cleanupAfterBuild": true,
            "agent": {
                "name": "research-agent",
                "env": [{"name": "PORT", "value": "8000"}, {"name": "LLM_MODEL", "value": "llama3.2"}],
                "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "1Gi"}},
            },
        },
    });
    json_patch::merge(&mut object, &json!({"spec": more}));
    object
}

fn secret(variable: &str, name: &str, key: &str) -> Value {
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}})
}

fn judged(object: &Value) -> Findings {
    validate((object, None), (front(keys::GROUP_BEEAI), TEAM), &view(), &Settings::new(OPERATOR))
}

fn faults(object: &Value) -> Vec<String> {
    judged(object).faults.into_iter().map(|fault| fault.path).collect()
}

fn composed(object: &Value, settings: &Settings) -> Composition {
    let view = view();
    let request = read(object, (front(keys::GROUP_BEEAI), TEAM), &view, settings);
    compose(&request, Surroundings { steps: view.steps(OPERATOR), settings, accounts: None }).unwrap()
}

fn names_of(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

/// 7.4, Z14, Z25, Z27, Z42.
#[test]
fn case_z25_the_run_has_four_tasks_and_each_credential_one_of_them() {
    let Composition { run, claim, .. } = composed(&sample(json!({})), &Settings::new(OPERATOR));
    assert_eq!(run["metadata"]["labels"]["beeai.dev/agentbuild"], "research-agent");
    assert_eq!(run["metadata"]["labels"]["beeai.dev/group"], "beeai.dev");
    let annotations = &run["metadata"]["annotations"];
    assert_eq!(
        (annotations["beeai.dev/attempt"].as_str(), annotations["beeai.dev/build-hash"].as_str().map(str::len)),
        (Some("1"), Some(64))
    );
    let owner = &run["metadata"]["ownerReferences"][0];
    assert_eq!((owner["apiVersion"].as_str(), owner["kind"].as_str()), (Some("beeai.dev/v1"), Some("AgentBuild")));
    let spec = &run["spec"];
    assert_eq!(spec["timeouts"]["pipeline"], "30m");
    assert_eq!(names_of(&spec["pipelineSpec"]["tasks"]), ["pull", "check-subfolder", "build", "push"]);
    let binds = |task: &Value, workspace: &str| {
        task["workspaces"].as_array().into_iter().flatten().any(|one| one["name"] == workspace)
    };
    for name in ["pull", "check-subfolder", "build", "push"] {
        let task = task(&run, name);
        assert_eq!(binds(task, "git-auth"), name == "pull", "{name}");
        assert_eq!(binds(task, "registry-auth"), name == "push", "{name}");
    }
    let workspaces = spec["workspaces"].as_array().unwrap();
    let of = |name: &str| workspaces.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(of("shared-workspace")["persistentVolumeClaim"]["claimName"], "research-agent-beeai-workspace");
    let git = json!({"secretName": "github-token-secret", "items": [{"key": "token", "path": "token"}]});
    assert_eq!(of("git-auth")["secret"], git);
    let registry =
        json!({"secretName": "research-agent-docker", "items": [{"key": ".dockerconfigjson", "path": "config.json"}]});
    assert_eq!(of("registry-auth")["secret"], registry);
    assert_eq!(task_params(&run, "build")["BUILD_ARGS"], json!(["--build-arg=PIP_INDEX=internal"]));
    assert_eq!(task_params(&run, "pull")["repo-user"], "octo");
    assert_eq!(task_params(&run, "push")["image"], "ghcr.io/acme/research-agent:v0.0.2");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "5Gi");
    assert!(claim["spec"].get("storageClassName").is_none(), "Z42: the cluster's own default");
}

/// Z30: only the platform decides which registry is spoken to without TLS.
#[test]
fn case_z30_only_a_registry_that_the_platform_lists_is_spoken_to_without_tls() {
    let insecure = |registry: &str, settings: &Settings| {
        let object = sample(json!({"imageRegistry": registry}));
        task_params(&composed(&object, settings).run, "push")["REGISTRY_INSECURE"].clone()
    };
    let mut settings = Settings::new(OPERATOR);
    for (registry, is) in [
        ("registry.cr-system.svc.cluster.local:5000", "true"),
        ("registry.cr-system.svc.cluster.local:5000/team", "true"),
        ("registry.cr-system.svc.cluster.local:5001", "false"),
        ("ghcr.io/acme", "false"),
    ] {
        assert_eq!(insecure(registry, &settings), is, "{registry}");
    }
    settings.insecure_registries = ["reg.example:5000".to_owned()].into();
    assert_eq!(insecure("reg.example:5000", &settings), "true");
    assert_eq!(insecure("registry.cr-system.svc.cluster.local:5000", &settings), "false");
}

/// Z13, Z15, Z17: which token git gets.
#[test]
fn case_z15_the_source_token_wins_and_none_is_needed() {
    let git = |env: Value| {
        let object = sample(json!({"env": env, "repoUser": null}));
        let request = read(&object, (front(keys::GROUP_BEEAI), TEAM), &view(), &Settings::new(OPERATOR));
        (request.git_auth.map(|use_| (use_.secret, use_.items[0].0.clone())), request.source.user)
    };
    let one = |name: &str, key: &str| Some((name.to_owned(), key.to_owned()));
    let github = secret("GITHUB_TOKEN", "b", "t");
    assert_eq!(git(json!([github])), (one("b", "t"), "x-access-token".into()));
    assert_eq!(git(json!([github, secret("SOURCE_REPO_SECRET", "a", "k")])).0, one("a", "k"));
    for none in [json!(null), json!([])] {
        assert_eq!(git(none.clone()), (None, String::new()));
        assert_eq!(faults(&sample(json!({"env": none}))), Vec::<String>::new(), "Z17");
    }
    let run = composed(&sample(json!({"env": null})), &Settings::new(OPERATOR)).run;
    assert_eq!(names_of(&run["spec"]["workspaces"]), ["shared-workspace"]);
}

/// Z16: a literal token is refused, wherever it stands, and never repeated.
#[test]
fn case_z16_a_literal_token_is_refused_and_not_repeated() {
    for name in ["SOURCE_REPO_SECRET", "GITHUB_TOKEN", "IMAGE_REPO_TOKEN"] {
        for entry in [
            json!({"name": name, "value": "ghp_canary"}),
            json!({"name": name}),
            json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "ghp_canary"}}}),
            json!({"name": name, "valueFrom": {"secretKeyRef": {"name": "s"}}}),
            json!({"name": name, "value": "ghp_canary", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
        ] {
            let found = judged(&sample(json!({"env": [{"name": "A", "value": "b"}, entry]})));
            assert!(found.faults.iter().any(|fault| fault.path == "spec.env[1]"), "{entry}: {found:?}");
            assert!(!format!("{found:?}").contains("canary"), "{found:?}");
        }
    }
    let named = sample(json!({"env": [{"name": "IMAGE_REPO_SECRET", "value": "ghp_CANARY token"}]}));
    assert_eq!(faults(&named), ["spec.env[0].value"]);
    assert!(!format!("{:?}", judged(&named)).contains("CANARY"));
}

/// Section 6, row by row.
#[test]
fn every_rule_names_its_field() {
    for (more, path) in [
        (json!({"repoUrl": "https://u:ghp_x@github.com/a/b"}), "spec.repoUrl"),
        (json!({"repoUrl": ""}), "spec.repoUrl"),
        (json!({"revision": "a..b"}), "spec.revision"),
        (json!({"revision": "--upload-pack=x"}), "spec.revision"),
        (json!({"sourceSubfolder": "../x"}), "spec.sourceSubfolder"),
        (json!({"repoUser": "a b"}), "spec.repoUser"),
        (json!({"image": "Research"}), "spec.image"),
        (json!({"imageTag": "a b"}), "spec.imageTag"),
        (json!({"imageRegistry": "acme"}), "spec.imageRegistry"),
        (json!({"env": [{"value": "x"}]}), "spec.env[0].name"),
        (json!({"env": [{"name": "A-B", "value": "x"}]}), "spec.env[0].name"),
        (json!({"env": [{"name": "A", "value": "x\ny"}]}), "spec.env[0].value"),
        (json!({"env": [{"name": "A", "value": "$(params.x)"}]}), "spec.env[0].value"),
        (json!({"agent": {"name": "9x"}}), "spec.agent.name"),
        (json!({"agent": {"env": [{"name": "PORT", "value": "0"}]}}), "spec.agent.env[0].value"),
        (json!({"agent": {"env": [{"name": "PORT", "value": ""}]}}), "spec.agent.env[0].value"),
        (json!({"dockerfile": "../Dockerfile"}), "spec.dockerfile"),
    ] {
        let found = faults(&sample(more.clone()));
        assert!(found.iter().any(|one| one == path), "{more}: {found:?}");
    }
    let mut long = sample(json!({"agent": null, "deployAfterBuild": false}));
    long["metadata"]["name"] = json!("a".repeat(48));
    assert_eq!(faults(&long), Vec::<String>::new());
    long["metadata"]["name"] = json!("a".repeat(49));
    assert_eq!(faults(&long), ["metadata.name"]);
    assert_eq!(faults(&sample(json!({}))), Vec::<String>::new());
    assert_eq!(faults(&sample(json!({"agent": {"env": [secret("PORT", "s", "k")]}}))), Vec::<String>::new());
    assert_eq!(faults(&sample(json!({"repoUrl": "github.com/a/b.git"}))), Vec::<String>::new(), "Z14");
}

/// Section 6, warnings; Z28.
#[test]
fn case_z28_what_refers_to_something_else_is_no_build_argument() {
    let object =
        sample(json!({"env": [secret("X", "s", "k"), {"name": "Y", "value": "1"}], "deployAfterBuild": false}));
    let found = judged(&object);
    assert!(found.faults.is_empty(), "{found:?}");
    let said: Vec<_> = found.notes.iter().map(|note| note.path.as_str()).collect();
    assert!(said.contains(&"spec.env[0]") && said.contains(&"spec.agent"), "{said:?}");
    let run = composed(&object, &Settings::new(OPERATOR)).run;
    assert_eq!(task_params(&run, "build")["BUILD_ARGS"], json!(["--build-arg=Y=1"]));
}

/// Of entries of one name the last counts, whatever it means.
#[test]
fn the_last_of_several_entries_counts_and_the_others_are_named() {
    let env = json!([
        {"name": "A", "value": "1"}, {"name": "B", "value": "1"}, {"name": "A", "value": "2"}, secret("B", "s", "k"),
        {"name": "A", "value": "3"},
    ]);
    let object = sample(json!({"env": env}));
    let shadowed: Vec<_> =
        judged(&object).notes.into_iter().filter(|note| note.reason == Reason::ValueShadowed).collect();
    let paths: Vec<_> = shadowed.iter().map(|note| note.path.as_str()).collect();
    assert_eq!(paths, ["spec.env[0].name", "spec.env[1].name", "spec.env[2].name"]);
    let run = composed(&object, &Settings::new(OPERATOR)).run;
    assert_eq!(task_params(&run, "build")["BUILD_ARGS"], json!(["--build-arg=A=3"]));
}

#[test]
fn neither_an_update_beside_the_spec_nor_what_goes_is_refused() {
    let wrong = sample(json!({"revision": ""}));
    let mut changed = wrong.clone();
    changed["metadata"]["labels"] = json!({"x": "y"});
    let judge = |object: &Value, old: Option<&Value>| {
        validate((object, old), (front(keys::GROUP_BEEAI), TEAM), &view(), &Settings::new(OPERATOR)).faults.len()
    };
    assert!(judge(&wrong, None) > 0 && judge(&wrong, Some(&sample(json!({})))) > 0);
    assert_eq!(judge(&changed, Some(&wrong)), 0);
    changed["metadata"]["deletionTimestamp"] = json!("2026-05-01T00:00:00Z");
    assert_eq!(judge(&changed, None), 0);
}

/// Without the platform's template a build is taken, and told what it waits for.
#[test]
fn a_missing_template_is_the_platforms_affair() {
    let view = TemplatesView::new(OPERATOR, false);
    let settings = Settings::new(OPERATOR);
    let found = validate((&sample(json!({})), None), (front(keys::GROUP_BEEAI), TEAM), &view, &settings);
    assert!(found.faults.is_empty(), "{found:?}");
    assert!(found.notes.iter().any(|note| note.path.contains("pipeline-template-beeai")), "{found:?}");
}

/// The platform's template may ask for credentials: the review says what the build would not start without, and no more.
#[test]
fn what_a_template_asks_of_the_variables_is_said_by_the_review_as_at_the_start() {
    let asking = |parameter: &str| {
        let mut template: Value = serde_json::from_str(include_str!("../catalogue/templates/beeai.json")).unwrap();
        template["requiredParameters"] = json!([parameter]);
        view().with([template_map(OPERATOR, super::TEMPLATE, &template.to_string())])
    };
    let (settings, whose) = (Settings::new(OPERATOR), (front(keys::GROUP_BEEAI), TEAM));
    for (parameter, env, is_open) in [
        ("SOURCE_REPO_SECRET", json!(null), true),
        ("SOURCE_REPO_SECRET", json!([secret("GITHUB_TOKEN", "s", "k")]), false),
        ("registry-secret", json!([{"name": "A", "value": "b"}]), true),
        ("registry-secret", json!([{"name": "IMAGE_REPO_SECRET", "value": "s"}]), false),
    ] {
        let (view, object) = (asking(parameter), sample(json!({"env": env})));
        let reviewed = validate((&object, None), whose, &view, &settings).faults;
        let request = read(&object, whose, &view, &settings);
        let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
        let started = compose(&request, around).map_or_else(|found| found.faults, |_| Vec::new());
        assert_eq!(reviewed, started, "{env}");
        let open: Vec<_> = reviewed.iter().map(|fault| (&*fault.path, fault.parameter.as_deref())).collect();
        assert_eq!(open, [("spec.env", Some(parameter))][..usize::from(is_open)], "{env}");
    }
}

/// What the platform's template keeps to itself no variable sets; the review says so, and so does the status of a build that no review saw.
#[test]
fn a_template_may_lock_build_arguments() {
    let mut template: Value = serde_json::from_str(include_str!("../catalogue/templates/beeai.json")).unwrap();
    template["steps"][2]["lockedParameters"] = json!(["BUILD_ARGS"]);
    let view = view().with([template_map(OPERATOR, super::TEMPLATE, &template.to_string())]);
    let (settings, whose) = (Settings::new(OPERATOR), (front(keys::GROUP_BEEAI), TEAM));
    for (env, is_locked) in [(json!([{"name": "A", "value": "b"}]), true), (json!(null), false)] {
        let object = sample(json!({"env": env}));
        let reviewed = validate((&object, None), whose, &view, &settings).faults;
        let told: Vec<_> = reviewed.iter().map(|fault| (&*fault.path, fault.reason)).collect();
        assert_eq!(told, [("spec.env", Reason::ParameterLocked)][..usize::from(is_locked)], "{env}");
        let request = read(&object, whose, &view, &settings);
        let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
        assert_eq!(compose(&request, around).is_err(), is_locked, "{env}");
    }
}

/// What has no effect, as the review says, has none in the run.
#[test]
fn a_variable_that_refers_to_something_names_no_login() {
    let both =
        json!({"name": "IMAGE_REPO_SECRET", "value": "no secret", "valueFrom": {"fieldRef": {"fieldPath": "x"}}});
    let object = sample(json!({"env": [both]}));
    assert_eq!(login(&object, &Settings::new(OPERATOR)), RegistryLogin::None);
    assert_eq!(faults(&object), Vec::<String>::new());
    let run = composed(&object, &Settings::new(OPERATOR)).run;
    assert_eq!(names_of(&run["spec"]["workspaces"]), ["shared-workspace"]);
}

/// What composition says of the entries is left to the review, which therefore names all of it.
#[test]
fn whatever_composition_finds_in_an_entry_the_review_finds_at_its_place() {
    let text = |name: &str, value: &str| json!({"name": name, "value": value});
    for entry in [
        text("", "x"),
        text("A-B", "x"),
        text("A", "x\ny"),
        text("A", "x\0"),
        text("A", "$("),
        text("A", &"x".repeat(64 * 1024 + 1)),
        text("IMAGE_REPO_SECRET", "no secret"),
        secret("GITHUB_TOKEN", "no secret", "k"),
        secret("IMAGE_REPO_TOKEN", "no secret", "k"),
    ] {
        let object = sample(json!({"env": [text("FIRST", "x"), entry]}));
        let found = judged(&object);
        assert!(!found.faults.is_empty(), "{entry}");
        assert!(found.faults.iter().all(|fault| fault.path.starts_with("spec.env[1]")), "{found:?}");
    }
}

/// 8.2, first match; Z21, Z22.
#[test]
fn case_z21_a_git_token_is_a_login_only_where_the_platform_trusts_the_host() {
    let git = secret("SOURCE_REPO_SECRET", "git", "token");
    let of = |registry: &str, env: Value, settings: &Settings| {
        login(&sample(json!({"imageRegistry": registry, "env": env})), settings)
    };
    let settings = Settings::new(OPERATOR);
    let made = |login: RegistryLogin| match login {
        RegistryLogin::Made(login) => Some((login.token, login.account, login.user)),
        _ => None,
    };
    let git_at = |account: &str| Some(("git".to_owned(), account.to_owned(), "octo".to_owned()));
    assert_eq!(made(of("ghcr.io/acme", json!([git]), &settings)), git_at("ghcr.io"));
    assert_eq!(made(of("GHCR.io/acme", json!([git]), &settings)), git_at("ghcr.io"));
    assert_eq!(of("evil.example/x", json!([git]), &settings), RegistryLogin::None, "Z21");
    assert_eq!(of("ghcr.io.evil.example/x", json!([git]), &settings), RegistryLogin::None);
    assert_eq!(of("ghcr.io:444/x", json!([git]), &settings), RegistryLogin::None, "another port is another registry");
    let token = secret("IMAGE_REPO_TOKEN", "reg", "t");
    let of_hub = Some(("reg".to_owned(), "https://index.docker.io/v1/".to_owned(), "octo".to_owned()));
    assert_eq!(made(of("docker.io/acme", json!([git, token]), &settings)), of_hub);
    let named = json!({"name": "IMAGE_REPO_SECRET", "value": "mine"});
    assert_eq!(of("ghcr.io/acme", json!([git, token, named]), &settings), RegistryLogin::Named("mine".into()));
    let off = Settings { registry_secrets: false, ..Settings::new(OPERATOR) };
    assert_eq!(of("ghcr.io/acme", json!([git, token]), &off), RegistryLogin::None);
    let anonymous = composed(&sample(json!({"imageRegistry": "evil.example/x"})), &settings).run;
    assert_eq!(names_of(&anonymous["spec"]["workspaces"]), ["shared-workspace", "git-auth"], "an anonymous push");
    let nameless = sample(json!({"repoUser": null}));
    assert_eq!(made(login(&nameless, &settings)).unwrap().2, "research-agent", "the build's own name");
}

/// What could only fail in the first task is said when the build is applied.
#[test]
fn a_token_for_a_repository_that_is_read_over_ssh_is_said_to_have_no_effect() {
    let notes = |url: &str, env: Value| {
        let found = judged(&sample(json!({"repoUrl": url, "env": env})));
        assert_eq!(found.faults, [], "{url}");
        let of_url = found.notes.into_iter().filter(|note| note.path == "spec.repoUrl");
        of_url.map(|note| note.text).collect::<Vec<_>>()
    };
    let token = json!([secret("GITHUB_TOKEN", "git", "token")]);
    for url in ["git@github.com:acme/agents.git", "ssh://git@github.com:22/acme/agents.git"] {
        let told = notes(url, token.clone());
        assert!(told.len() == 1 && told[0].contains("write https://github.com/ and the path"), "{url}: {told:?}");
        assert_eq!(notes(url, json!(null)), Vec::<String>::new(), "{url}");
    }
    assert_eq!(notes("github.com/acme/agents.git", token), Vec::<String>::new());
}

/// Tools that push, and the kubelet, look a login up by the letters of the image's host.
#[test]
fn a_login_that_is_made_is_found_however_the_host_is_written() {
    let git = secret("SOURCE_REPO_SECRET", "git", "token");
    let named = json!({"name": "IMAGE_REPO_SECRET", "value": "mine"});
    for (registry, env, image) in [
        ("GHCR.io/acme", json!([git]), "ghcr.io/acme/research-agent:v0.0.2"),
        ("GHCR.IO", json!([git]), "ghcr.io/research-agent:v0.0.2"),
        ("ghcr.io/acme", json!([git]), "ghcr.io/acme/research-agent:v0.0.2"),
        ("GHCR.io/acme", json!([git, named]), "GHCR.io/acme/research-agent:v0.0.2"),
        ("GHCR.io/acme", json!(null), "GHCR.io/acme/research-agent:v0.0.2"),
    ] {
        let run = composed(&sample(json!({"imageRegistry": registry, "env": env})), &Settings::new(OPERATOR)).run;
        assert_eq!(task_params(&run, "push")["image"], image, "{registry} {env}");
    }
}

/// 10.1, Z36: what is deployed does not change what is built.
#[test]
fn case_z36_only_what_is_built_makes_another_build() {
    let hash = |object: &Value| {
        names::build_hash(&read(object, (front(keys::GROUP_BEEAI), TEAM), &view(), &Settings::new(OPERATOR)))
    };
    let first = hash(&sample(json!({})));
    for same in [
        json!({"agent": {"env": [{"name": "LLM_MODEL", "value": "other"}]}}),
        json!({"deployAfterBuild": false}),
        json!({"cleanupAfterBuild": false}),
    ] {
        assert_eq!(hash(&sample(same.clone())), first, "{same}");
    }
    for other in
        [json!({"revision": "v2"}), json!({"env": null}), json!({"imageTag": "v3"}), json!({"dockerfile": "x"})]
    {
        assert_ne!(hash(&sample(other.clone())), first, "{other}");
    }
    let mut again = sample(json!({}));
    again["metadata"]["annotations"] = json!({"beeai.dev/rebuild": "1"});
    assert_ne!(hash(&again), first);
    let mut another = sample(json!({}));
    another["metadata"]["uid"] = json!("u-2");
    assert_ne!(hash(&another), first, "an object that was made anew is another one");
}

/// Z32, Z48 and 10.4.
#[test]
fn case_z32_the_agent_that_is_kept_says_who_made_it() {
    let settings = Settings::new(OPERATOR);
    let object = sample(json!({}));
    let image = "ghcr.io/acme/research-agent@sha256:00";
    let kept = agent(&object, image, &login(&object, &settings)).unwrap();
    assert_eq!(kept.name, "research-agent");
    assert_eq!(kept.labels["app.kubernetes.io/part-of"], "agent-operator");
    assert_eq!(kept.labels["app.kubernetes.io/managed-by"], "agent-build-controller");
    assert_eq!(
        (kept.labels["app.kubernetes.io/created-by"].as_str(), kept.labels["team"].as_str()),
        (Some("research-agent"), Some("a"))
    );
    assert_eq!(kept.annotations, *json!({"beeai.dev/created-by-uid": "u-1"}).as_object().unwrap());
    let env = kept.spec["env"].as_array().unwrap();
    assert_eq!(env.last().unwrap(), &json!({"name": "IMAGE_REPO_SECRET", "value": "research-agent-docker"}));
    assert_eq!((kept.spec["image"].as_str(), &kept.spec["resources"]["limits"]["cpu"]), (Some(image), &json!("500m")));

    let own = sample(json!({"agent": {"name": "other", "env": [{"name": "IMAGE_REPO_SECRET", "value": "mine"}]}}));
    let kept = agent(&own, image, &login(&own, &settings)).unwrap();
    assert_eq!((kept.name.as_str(), kept.spec["env"].as_array().unwrap().len()), ("other", 1), "the user's own");
    let bare = sample(json!({"agent": null, "env": null}));
    let kept = agent(&bare, image, &login(&bare, &settings)).unwrap();
    assert_eq!((kept.name.as_str(), kept.spec), ("research-agent", json!({"image": image})));
    let mut consenting = sample(json!({"agent": {"env": [secret("A", "left", "k"), secret("B", "asked", "k")]}}));
    consenting["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: "left,github-token-secret"});
    let kept = agent(&consenting, image, &RegistryLogin::None).unwrap();
    assert_eq!(kept.annotations[keys::ANNOTATION_SECRETS_BY_CONSENT], "left");
    assert_eq!(agent(&sample(json!({"deployAfterBuild": false})), image, &RegistryLogin::None), None);
}

/// Whatever part of the build brings a Secret into the Agent, its consent is the Agent's to ask for; the login that the build makes is the
/// build's own, unless its text names it as if it were another's.
#[test]
fn what_the_build_pulls_with_is_left_to_consent_as_what_its_agent_names() {
    let settings = Settings::new(OPERATOR);
    let left = |env: Value, of_agent: Value, consented: &str| {
        let mut object = sample(json!({"env": env, "agent": {"env": of_agent}}));
        object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: consented});
        let kept = agent(&object, "i", &login(&object, &settings)).unwrap();
        kept.annotations.get(keys::ANNOTATION_SECRETS_BY_CONSENT).cloned()
    };
    let (named, git) =
        (json!([{"name": "IMAGE_REPO_SECRET", "value": "regcred"}]), json!([secret("GITHUB_TOKEN", "git", "t")]));
    let made = "research-agent-docker";
    assert_eq!(left(named.clone(), json!(null), "regcred"), Some(json!("regcred")));
    assert_eq!(left(named, json!([{"name": "IMAGE_REPO_SECRET", "value": "own"}]), "regcred"), None);
    assert_eq!(left(git.clone(), json!(null), &format!("{made},git")), None);
    assert_eq!(left(git.clone(), json!([secret("A", made, ".dockerconfigjson")]), made), Some(json!(made)));
    assert_eq!(left(git, json!([{"name": "IMAGE_REPO_SECRET", "value": made}]), made), Some(json!(made)));
}

/// Z48: nothing of a build of BeeAI has the name of something of another group's build.
#[test]
fn case_z48_builds_of_several_groups_and_one_name_have_names_of_their_own() {
    let settings = Settings::new(OPERATOR);
    let ours = composed(&sample(json!({})), &settings);
    let theirs = crate::pipelines::request::KAGENTI.claim_suffix;
    assert_ne!(ours.claim["metadata"]["name"].as_str().unwrap(), format!("research-agent{theirs}"));
    let view = view();
    let request = read(&sample(json!({})), (front(keys::GROUP_BEEAI_COMPAT), TEAM), &view, &settings);
    let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
    let compat = compose(&request, around).unwrap().run;
    assert_eq!(compat["metadata"]["ownerReferences"][0]["apiVersion"], "beeai.beeai.dev/v1");
    assert_eq!(compat["metadata"]["labels"]["beeai.dev/group"], "beeai.beeai.dev");
}
