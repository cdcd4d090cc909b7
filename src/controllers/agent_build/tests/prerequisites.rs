//! What a build waits for: Secrets, ConfigMaps, templates, and whoever admits its run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bench::{Bench, NAME, SILENT, TEAM, TELLS, build};
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::fixtures::{step_map, template_map};
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::pipelines::templates::ConfigMapText;
use crate::store::Kind;

fn secret(type_: &str, keys: &[&str]) -> SecretFact {
    let keys: BTreeSet<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    SecretFact::Is(SecretSeen { type_: type_.to_owned(), keys, ..SecretSeen::default() })
}

/// What is wrong with an object.
type Edit = fn(&mut Value);

fn with_git() -> Bench {
    let mut object = build();
    object["spec"]["source"]["sourceCredentials"] = json!({"name": "git"});
    Bench::new(object)
}

fn failed(bench: &Bench, reason: &str, text: &str) {
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), reason.into()), "{}", bench.message());
    assert!(
        bench.message().starts_with("Validation failed: ") && bench.message().contains(text),
        "{}",
        bench.message()
    );
    assert!(bench.names(Kind::PipelineRun).is_empty() && bench.names(Kind::PersistentVolumeClaim).is_empty());
    assert_eq!(bench.status()["pipelineRunName"], Value::Null, "the status names no run");
    assert_eq!(bench.told(Reason::ValidationFailed), 1);
}

/// D-6 as corrected: no watch on Secrets; the one that is named is asked for every 5 s for 2 min, then every 30 s.
#[test]
fn case_d05_d06_a_missing_secret_is_asked_for_until_it_is_there() {
    let mut bench = with_git();
    bench.settle();
    failed(&bench, "PrerequisitesMissing", "sourceCredentials secret not found");
    let looks = |bench: &Bench| bench.done.iter().filter(|op| matches!(op, Op::Look { .. })).count();
    let before = looks(&bench);
    assert_eq!(bench.pass(120), 0, "no write");
    assert!((23..=24).contains(&(looks(&bench) - before)), "a question every 5 s: {}", looks(&bench) - before);
    let before = looks(&bench);
    bench.pass(300);
    assert!((9..=11).contains(&(looks(&bench) - before)), "{}", looks(&bench) - before);
    bench.secrets.insert("git".into(), secret("Opaque", &["token"]));
    bench.pass(30);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
    bench.secrets.clear();
    let before = looks(&bench);
    bench.pass(600);
    assert_eq!(looks(&bench), before, "a build that runs asks no more");
}

#[test]
fn case_d07_e19_keys_that_cannot_be_used_stop_a_build_before_any_pod() {
    for (keys, usable) in [
        (&["ssh-privatekey", "known_hosts"][..], true),
        (&["ssh-privatekey"], false),
        (&["username", "password"], true),
        (&["username"], false),
        (&["user", "token"], true),
        (&["token"], true),
        (&["user"], false),
        (&[], false),
    ] {
        let mut bench = with_git();
        bench.secrets.insert("git".into(), secret("Opaque", keys));
        bench.settle();
        if usable {
            assert_eq!(bench.phase(), "Building", "{keys:?}");
        } else {
            failed(&bench, "PrerequisitesMissing", "secret git has");
        }
    }
    let mut bench = with_git();
    let listing = |hosts: &str| {
        let keys = ["token".to_owned()].into();
        SecretFact::Is(SecretSeen { keys, hosts: Some(hosts.to_owned()), ..SecretSeen::default() })
    };
    bench.secrets.insert("git".into(), listing("git.acme.example"));
    bench.settle();
    failed(&bench, "PrerequisitesMissing", "the repository is at github.com");
    bench.secrets.insert("git".into(), listing("gitlab.com, GitHub.com"));
    bench.pass(6);
    assert_eq!(bench.phase(), "Building");
}

/// 14.2, `render --allow-unknown-git-hosts`: the step that clones takes any host, so the key alone will do.
#[test]
fn a_step_that_takes_unknown_hosts_needs_no_known_hosts() {
    let clone = |value: &str| {
        format!(
            "workspaces: [{{name: git-auth, optional: true}}]\nsteps: [{{name: run, image: i, env: [{{name: ALLOW_UNKNOWN_HOSTS, value: '{value}'}}]}}]\n"
        )
    };
    for (value, phase) in [("true", "Building"), ("false", "Failed")] {
        let mut bench = with_git();
        bench.maps.push(step_map("kagenti-system", "silent", &clone(value)));
        bench.configure();
        bench.secrets.insert("git".into(), secret("Opaque", &["ssh-privatekey"]));
        bench.settle();
        assert_eq!(bench.phase(), phase, "{}", bench.message());
    }
}

/// Platform key `builds.requireGitHosts` (14.2): a Secret without the annotation is not used either.
#[test]
fn a_platform_may_demand_that_secrets_list_their_hosts() {
    let with = |hosts: Option<&str>| {
        let mut bench = with_git();
        bench.decide(|settings| settings.require_git_hosts = true);
        let keys = ["ssh-privatekey".to_owned(), "known_hosts".to_owned()].into();
        let fact = SecretFact::Is(SecretSeen { keys, hosts: hosts.map(Into::into), ..SecretSeen::default() });
        bench.secrets.insert("git".into(), fact);
        bench.settle();
        bench
    };
    let mut bench = with(None);
    failed(&bench, "PrerequisitesMissing", "annotate it with agent.kagenti.dev/git-hosts: github.com");
    bench.decide(|settings| settings.require_git_hosts = false);
    bench.pass(6);
    assert_eq!(bench.phase(), "Building", "without the key the Secret is used as it is");
    failed(&with(Some("gitlab.com")), "PrerequisitesMissing", "the repository is at github.com");
    assert_eq!(with(Some("gitlab.com, github.com")).phase(), "Building");
}

#[test]
fn registry_secrets_of_each_layout() {
    let bench = |fact: Option<SecretFact>| {
        let mut object = build();
        object["spec"]["buildOutput"]["imageRepoCredentials"] = json!({"name": "reg"});
        let mut bench = Bench::new(object);
        let uses = "workspaces: [{name: registry-auth, optional: true}]\n";
        bench.maps = vec![
            step_map("kagenti-system", "silent", SILENT),
            step_map("kagenti-system", "tells", &format!("{uses}{TELLS}")),
        ];
        bench.configure();
        bench.secrets.extend(fact.map(|fact| ("reg".to_owned(), fact)));
        bench.settle();
        bench
    };
    let items = |bench: &Bench| {
        let run = &bench.objects[&(Kind::PipelineRun, bench.run())];
        run["spec"]["workspaces"].as_array().unwrap().iter().find(|one| one["name"] == "registry-auth").unwrap()["secret"]["items"].clone()
    };
    let docker = bench(Some(secret("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"])));
    assert_eq!(items(&docker), json!([{"key": ".dockerconfigjson", "path": "config.json"}]));
    let opaque = bench(Some(secret("Opaque", &["config.json", "else"])));
    assert_eq!(items(&opaque), json!([{"key": "config.json", "path": "config.json"}]));
    let by_key = bench(Some(secret("Opaque", &[".dockerconfigjson"])));
    assert_eq!(items(&by_key), json!([{"key": ".dockerconfigjson", "path": "config.json"}]), "the key counts (14.3)");
    failed(&bench(None), "PrerequisitesMissing", "imageRepoCredentials secret not found");
    failed(&bench(Some(secret("Opaque", &["password"]))), "PrerequisitesMissing", "no registry credentials");
    failed(&bench(Some(SecretFact::Forbidden)), "PrerequisitesMissing", "may not be read");
    let old = bench(Some(secret("kubernetes.io/dockercfg", &[".dockercfg"])));
    failed(&old, "PrerequisitesMissing", "secret reg has the old layout kubernetes.io/dockercfg");
    assert!(old.message().contains("it is not converted. What to do: name a Secret of type"), "{}", old.message());
    let both = bench(Some(secret("Opaque", &[".dockercfg", "config.json"])));
    assert_eq!(items(&both), json!([{"key": "config.json", "path": "config.json"}]), "what can be used is used");
}

#[test]
fn case_d08_a_missing_step_is_named_and_the_build_follows_it() {
    let mut bench = Bench::new(build());
    bench.maps.retain(|map| map.name != "tells");
    bench.configure();
    bench.settle();
    failed(&bench, "PrerequisitesMissing", "step ConfigMap tells not found");
    bench.maps.push(ConfigMapText {
        data: [("else".to_owned(), "x".to_owned())].into(),
        ..step_map("kagenti-system", "tells", "")
    });
    bench.configure();
    bench.settle();
    assert!(bench.message().contains("task-spec.yaml not found in ConfigMap tells"), "{}", bench.message());
    bench.maps.pop();
    bench.maps.push(step_map("kagenti-system", "tells", TELLS));
    bench.configure();
    bench.settle();
    assert_eq!(bench.phase(), "Building");
}

#[test]
fn case_c05_and_the_texts_of_11_3() {
    let with = |edit: fn(&mut Value)| {
        let mut object = build();
        edit(&mut object);
        let mut bench = Bench::new(object);
        bench.settle();
        bench
    };
    failed(
        &with(|build| build["spec"]["source"]["sourceRepository"] = json!("")),
        "CompositionFailed",
        "sourceRepository is required",
    );
    failed(
        &with(|build| build["spec"]["buildOutput"]["image"] = json!("")),
        "CompositionFailed",
        "buildOutput.image is required",
    );
    let mut bench = Bench::new(build());
    bench.maps.push(step_map("kagenti-system", "tells", &format!("params: [{{name: needed}}]\n{TELLS}")));
    bench.configure();
    bench.settle();
    failed(&bench, "CompositionFailed", "needed");
    assert!(bench.message().contains("push"), "{}", bench.message());
}

/// A name from a ConfigMap stands in what is said as often as steps have it; a status of megabytes is one that no API server takes.
#[test]
fn however_long_the_names_are_what_is_said_can_be_stored() {
    let mut object = build();
    let steps: Vec<Value> = (0..32).map(|index| json!({"name": format!("s{index}"), "configMap": "silent"})).collect();
    object["spec"]["pipeline"]["steps"] = json!(steps);
    let mut bench = Bench::new(object);
    let text = format!("params: [{{name: {}}}]\n{SILENT}", "a".repeat(60_000));
    bench.maps.push(step_map("kagenti-system", "silent", &text));
    bench.configure();
    bench.settle();
    failed(&bench, "CompositionFailed", "cannot run: step s0: parameter aaa");
    assert!(bench.status().to_string().len() < 64 * 1024, "{}", bench.status().to_string().len());
    assert_eq!(bench.pass(600), 0, "it is said once");
}

/// G1, G3, G4: what admission refuses does not run either when nobody was there to refuse it.
#[test]
fn g1_g3_g4_what_the_webhook_would_refuse_is_not_run() {
    let with = |edit: fn(&mut Value)| {
        let mut object = build();
        edit(&mut object);
        let mut bench = Bench::new(object);
        bench.maps.extend([step_map("elsewhere", "silent", SILENT), step_map("elsewhere", "tells", TELLS)]);
        bench.maps.push(step_map(TEAM, "silent", SILENT));
        bench.maps.push(step_map(TEAM, "root", "steps: [{name: run, image: i, securityContext: {privileged: true}}]"));
        bench.maps.push(step_map(
            TEAM,
            "host",
            "steps: [{name: run, image: i}]\nvolumes: [{name: v, hostPath: {path: /}}]",
        ));
        bench.configure();
        bench.settle();
        bench
    };
    let wrong: [(Edit, &str); 8] = [
        (|build| build["spec"]["pipeline"]["namespace"] = json!("elsewhere"), "spec.pipeline.namespace"),
        (|build| build["spec"]["mode"] = json!("prod"), "spec.pipeline.steps"),
        (|build| build["spec"]["source"]["sourceRepository"] = json!("ext::sh -c x"), "spec.source.sourceRepository"),
        (|build| build["spec"]["source"]["sourceRepository"] = json!("file:///etc"), "spec.source.sourceRepository"),
        (|build| build["spec"]["source"]["sourceRevision"] = json!("--upload-pack=x"), "spec.source.sourceRevision"),
        (
            |build| build["spec"]["pipeline"]["parameters"] = json!([{"name": "service-account", "value": "admin"}]),
            "admin",
        ),
        (
            |build| {
                build["spec"]["pipeline"] = json!({"namespace": TEAM, "steps": [{"name": "x", "configMap": "root"}]})
            },
            "privileged",
        ),
        (
            |build| {
                build["spec"]["pipeline"] = json!({"namespace": TEAM, "steps": [{"name": "x", "configMap": "host"}]})
            },
            "hostPath",
        ),
    ];
    for (edit, text) in wrong {
        let bench = with(edit);
        assert_eq!(
            (bench.phase(), bench.names(Kind::PipelineRun).len()),
            ("Failed".into(), 0),
            "{text}: {}",
            bench.message()
        );
        assert!(bench.message().contains(text), "{text}: {}", bench.message());
    }
    let mut bench = with(|build| {
        build["spec"]["pipeline"]["parameters"] = json!([{"name": "service-account", "value": "builder"}])
    });
    assert_eq!(bench.phase(), "Failed");
    let account = json!({"metadata": {"name": "builder", "namespace": TEAM, "uid": "sa", "labels": {"agent.kagenti.dev/build-account": "true"}}});
    bench.put(Kind::ServiceAccount, account);
    bench.settle();
    assert_eq!(bench.phase(), "Building", "{}", bench.message());
}

/// G4: the ConfigMap of a step was swapped after the review.
#[test]
fn a_step_that_changed_since_the_review_is_drift() {
    let mut object = build();
    object["spec"]["pipeline"]["namespace"] = json!(TEAM);
    object["metadata"]["annotations"] =
        json!({"agent.kagenti.dev/step-hashes": json!({"tells": "0".repeat(64)}).to_string()});
    let mut bench = Bench::new(object);
    bench.maps = vec![step_map(TEAM, "silent", SILENT), step_map(TEAM, "tells", TELLS)];
    bench.configure();
    bench.settle();
    failed(&bench, "StepDrift", "whose content changed since the review");
    assert_eq!(bench.pass(3600), 0);
}

/// G4: a step that came after the review starts the build once, as it is then; whatever takes its place was seen by nobody.
#[test]
fn a_step_that_came_after_the_review_is_pinned_to_what_ran() {
    let mut object = build();
    object["spec"]["pipeline"]["namespace"] = json!(TEAM);
    object["metadata"]["annotations"] = json!({"agent.kagenti.dev/step-hashes": "{}"});
    let mut bench = Bench::new(object);
    bench.configure();
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun).len(), 0, "{}", bench.message());
    let came = |tells: &str| vec![step_map(TEAM, "silent", SILENT), step_map(TEAM, "tells", tells)];
    bench.maps = came(TELLS);
    bench.configure();
    bench.settle();
    assert_eq!(bench.phase(), "Building", "{}", bench.message());
    bench.succeed("a");
    bench.settle();
    assert_eq!(bench.phase(), "Succeeded", "{}", bench.message());
    // The same once more is the same; another one is not.
    let again = |bench: &mut Bench, wish: &str| {
        bench.user(|build| build["metadata"]["annotations"]["agent.kagenti.dev/rebuild"] = json!(wish));
        bench.settle();
    };
    again(&mut bench, "1");
    assert_eq!(bench.phase(), "Building", "{}", bench.message());
    bench.succeed("b");
    bench.settle();
    let swapped = TELLS.replace("image: i", "image: other");
    bench.maps = came(&swapped);
    bench.configure();
    again(&mut bench, "2");
    assert_eq!(
        (bench.phase(), bench.condition("Ready").1),
        ("Failed".into(), "StepDrift".into()),
        "{}",
        bench.message()
    );
    assert_eq!(bench.names(Kind::PipelineRun).len(), 2);
    // Accepted: what is reviewed now counts.
    let hash = crate::pipelines::step::parse("team/tells", &swapped, false).unwrap().hash;
    bench.user(|build| {
        build["metadata"]["annotations"]["agent.kagenti.dev/step-hashes"] = json!(json!({"tells": hash}).to_string());
    });
    bench.settle();
    assert_eq!(bench.phase(), "Building", "{}", bench.message());
}

/// G4: so was the template, whose global parameters count when the build starts.
#[test]
fn a_tenants_template_that_changed_since_the_review_is_drift() {
    let mut object = build();
    object["spec"]["mode"] = json!("dev");
    object["spec"]["pipeline"]["namespace"] = json!(TEAM);
    object["metadata"]["annotations"] = json!({
        "agent.kagenti.dev/pipeline-origin": "template/dev",
        "agent.kagenti.dev/step-hashes": json!({"pipeline-template-dev": "0".repeat(64)}).to_string(),
    });
    let mut bench = Bench::new(object);
    bench.maps = vec![step_map(TEAM, "silent", SILENT), step_map(TEAM, "tells", TELLS)];
    bench.configure();
    bench.settle();
    failed(&bench, "TemplateDrift", "is gone since the review");
    assert_eq!(bench.pass(3600), 0);
    let template = json!({"name": "t", "steps": [{"name": "clone", "configMap": "silent"}, {"name": "push", "configMap": "tells"}]});
    bench.maps.push(template_map(TEAM, "dev", &template.to_string()));
    bench.configure();
    bench.settle();
    assert!(bench.message().contains("content changed since the review"), "{}", bench.message());
}

#[test]
fn case_d29_d30_a_gated_build_must_have_the_steps_of_its_template_as_it_is() {
    let steps = json!([{"name": "clone", "configMap": "silent"}, {"name": "push", "configMap": "tells"}]);
    let template = |steps: &Value| json!({"name": "t", "namespace": "kagenti-system", "steps": steps});
    for (mode, drifts) in [("prod", true), ("preprod", true), ("dev", false)] {
        let mut object = build();
        object["spec"]["mode"] = json!(mode);
        object["metadata"]["annotations"] = json!({"agent.kagenti.dev/pipeline-origin": format!("template/{mode}"),
            "agent.kagenti.dev/pipeline-template": format!("kagenti-system/pipeline-template-{mode}@abc")});
        let mut bench = Bench::new(object.clone());
        bench.template(mode, &template(&steps));
        bench.settle();
        assert_eq!(
            (bench.phase(), bench.condition("TemplateResolved").0),
            ("Building".into(), "True".into()),
            "{mode}: {}",
            bench.message()
        );
        let mut bench = Bench::new(object);
        bench.template(mode, &template(&json!([{"name": "other", "configMap": "tells"}])));
        bench.settle();
        if drifts {
            failed(&bench, "TemplateDrift", "agent.kagenti.dev/refresh-template");
            assert_eq!(bench.condition("TemplateResolved").0, "False");
        } else {
            assert_eq!(bench.phase(), "Building", "{}", bench.message());
        }
    }
}

/// D-31, C20: whoever admits runs refuses this one.
#[test]
fn case_d31_c20_a_refusal_is_said_in_its_words_and_not_hammered() {
    let mut bench = Bench::new(build());
    bench.refuses =
        |op| matches!(op, Op::Try { .. }).then_some((Some(Reason::RunRefused), "unknown field \"resources\""));
    bench.settle();
    failed(&bench, "RunRefused", "unknown field \"resources\"");
    let tries = |bench: &Bench| bench.done.iter().filter(|op| matches!(op, Op::Try { .. })).count();
    let before = tries(&bench);
    assert_eq!(bench.pass(600), 0);
    assert!(
        (3..=5).contains(&(tries(&bench) - before)),
        "30 s, 60 s, 120 s, 240 s, then every 5 min: {}",
        tries(&bench) - before
    );
    // Another text is another run, and is tried at once.
    bench.refuses = |_| None;
    bench.maps.push(step_map("kagenti-system", "tells", &TELLS.replace("image: i", "image: j")));
    bench.configure();
    bench.settle();
    assert_eq!(bench.phase(), "Building");
}

/// One question for all builds of a template; whatever is refused without being asked about is told the same way.
#[test]
fn a_shape_that_was_taken_is_not_asked_about_again_and_a_refusal_gives_up_the_attempt() {
    let tries = |bench: &Bench| bench.done.iter().filter(|op| matches!(op, Op::Try { .. })).count();
    let again = |bench: &mut Bench, wish: &str| {
        bench.user(|build| build["metadata"]["annotations"]["agent.kagenti.dev/rebuild"] = json!(wish));
        bench.settle();
    };
    let mut bench = Bench::new(build());
    bench.settle();
    bench.succeed("a");
    bench.settle();
    assert_eq!(tries(&bench), 1);
    again(&mut bench, "1");
    assert_eq!((bench.phase(), tries(&bench)), ("Building".into(), 1));
    bench.succeed("b");
    bench.settle();
    // A rule about what the shape leaves out.
    bench.refuses = |op| {
        let is_run = matches!(op, Op::Try { .. } | Op::Ensure { kind: Kind::PipelineRun, .. });
        is_run.then_some((Some(Reason::RunRefused), "this repository is not allowed"))
    };
    let runs = bench.names(Kind::PipelineRun);
    again(&mut bench, "2");
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "RunRefused".into()));
    assert!(bench.message().contains("this repository is not allowed"), "{}", bench.message());
    assert_eq!((bench.status().get("pipelineRunName"), bench.status().get("attempts")), (None, None));
    assert_eq!((bench.names(Kind::PipelineRun), tries(&bench)), (runs.clone(), 1));
    // From now on it is asked about, and claims nothing.
    assert_eq!(bench.pass(120), 0);
    assert!(tries(&bench) > 1);
    bench.refuses = |_| None;
    bench.pass(300);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), runs.len() + 1));
    assert_eq!(bench.status()["attempts"], json!(1));
}

/// Other builds come before what is still to be said of this one; until its run exists it goes on.
#[test]
fn one_plan_makes_the_run_and_leaves_the_rest_for_later() {
    let mut bench = Bench::new(build());
    let plans: Vec<_> = (0..10).map(|_| bench.step(usize::MAX).0).collect();
    let making: Vec<_> = plans.iter().filter(|plan| plan.makes()).collect();
    let is_run = |op: &Op| matches!(op, Op::Ensure { kind: Kind::PipelineRun, .. });
    assert!(making.len() == 1 && making[0].ops.iter().any(is_run), "{making:?}");
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.told(Reason::BuildStarted)), (1, 1));
}

#[test]
fn tekton_that_does_not_answer_is_said_after_three_times_and_waited_for() {
    let mut bench = Bench::new(build());
    bench.refuses =
        |op| matches!(op, Op::Try { .. }).then_some((None, "failed calling webhook: no endpoints available"));
    for _ in 0..8 {
        bench.step(usize::MAX);
    }
    assert_eq!(
        (bench.phase(), bench.condition("TektonAvailable")),
        ("Pending".into(), ("False".into(), "TektonUnreachable".into()))
    );
    let before = bench.writes();
    for _ in 0..5 {
        bench.step(usize::MAX);
    }
    assert_eq!(bench.writes(), before);
    bench.refuses = |_| None;
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("TektonAvailable").0), ("Building".into(), "True".into()));
}

#[test]
fn a_foreign_workspace_is_a_conflict_of_names_and_stays_as_it_is() {
    let mut bench = Bench::new(build());
    let name = format!("{NAME}-workspace");
    let foreign = json!({"metadata": {"name": name, "namespace": TEAM, "uid": "f"}});
    bench.objects.insert((Kind::PersistentVolumeClaim, name.clone()), foreign.clone());
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.condition("Ready").1, bench.names(Kind::PipelineRun).len()),
        ("Failed".into(), "NameConflict".into(), 0)
    );
    assert_eq!(bench.objects[&(Kind::PersistentVolumeClaim, name.clone())], foreign);
    assert_eq!(bench.status()["pipelineRunName"], Value::Null);
    bench.objects.remove(&(Kind::PersistentVolumeClaim, name));
    bench.pass(40);
    assert_eq!(bench.phase(), "Building");
}

#[test]
fn a_build_that_waits_can_be_cancelled_and_started_again() {
    let mut bench = with_git();
    bench.settle();
    bench.user(|build| build["metadata"]["annotations"] = json!({"agent.kagenti.dev/cancel": "1"}));
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "Cancelled".into()));
    bench.secrets.insert("git".into(), secret("Opaque", &["token"]));
    assert_eq!((bench.pass(600), bench.names(Kind::PipelineRun).len()), (0, 0));
    bench.user(|build| build["metadata"]["annotations"]["agent.kagenti.dev/rebuild"] = json!("1"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    assert!(bench.now > s(0));
}
