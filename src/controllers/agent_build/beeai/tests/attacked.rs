//! What becomes of a build that has ended when several things are refused at once, of the login that it made, and of Agents that it did not make.

use serde_json::{Value, json};

use super::*;

/// How often that was asked for.
fn asked(bench: &Bench, is: fn(&Op) -> bool) -> usize {
    bench.done.iter().filter(|op| is(op)).count()
}

fn is_login(op: &Op) -> bool {
    matches!(op, Op::Login(_))
}

fn is_consent(op: &Op) -> bool {
    matches!(op, Op::Consent { .. })
}

fn message(bench: &Bench, type_: &str) -> String {
    let status = bench.status();
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    one["message"].as_str().unwrap_or_default().to_owned()
}

/// A build that leaves those Secrets to their own consent.
fn consenting(secrets: &str, more: Value) -> Bench {
    let mut object = build(keys::GROUP_BEEAI, more);
    object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: secrets});
    bench_of((Kind::BeeaiBuild, ROW), object)
}

fn agent(bench: &Bench) -> Option<&Value> {
    bench.objects.get(&(Kind::BeeaiAgent, NAME.to_owned()))
}

/// Of what failed only the last is remembered: two refusals that follow each other must not make each other forgotten.
#[test]
fn a_refused_login_and_a_refused_consent_leave_each_other_their_pauses() {
    let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "model", "key": "k"}}}]);
    let mut bench = consenting("model", json!({"deployAfterBuild": true, "agent": {"env": env}}));
    has(&mut bench, "model", &["k"]);
    bench.settle();
    succeed(&mut bench, "a");
    has(&mut bench, "git", &[]);
    for restarts in [false, true] {
        if restarts {
            bench.restart();
        } else {
            bench.now += s(400);
        }
        bench.settle();
        assert_eq!(says(&bench, "Deployed"), "False/SecretNotAllowed", "{restarts}");
        assert_eq!(says(&bench, "LoginCurrent"), "False/PrerequisitesMissing", "{restarts}");
        let before = [is_login, is_consent].map(|is| asked(&bench, is));
        bench.pass(29);
        let after = [is_login, is_consent].map(|is| asked(&bench, is));
        assert_eq!(after, before, "{restarts}: either has its pause");
        bench.pass(300);
        let [logins, consents] = [is_login, is_consent].map(|is| asked(&bench, is));
        assert!(logins - before[0] <= 1 && (8..=12).contains(&(consents - before[1])), "{logins} {consents}");
    }
}

/// The pauses of a write that fails grow, and a login that is refused beside it does not begin them anew.
#[test]
fn a_refused_login_beside_an_agent_that_cannot_be_made_is_asked_for_once() {
    let mut bench = bench(json!({"deployAfterBuild": true}));
    bench.settle();
    bench.now += s(400);
    bench.refuses = |op| match op {
        Op::Login(_) => Some((Some(Reason::LoginRefused), "exceeded quota: secrets")),
        Op::Create { .. } => Some((None, "no answer")),
        _ => None,
    };
    for task in ["pull", "check-subfolder", "build"] {
        bench.task(task, true, json!([]), json!({}));
    }
    let image = json!({"name": "IMAGE_URL", "value": "ghcr.io/acme/weather:v1"});
    bench.task("push", true, json!([image, {"name": "IMAGE_DIGEST", "value": digest("a")}]), json!({}));
    bench.run_is("True", "Succeeded", "Tasks Completed: 4");
    let before = asked(&bench, is_login);
    for _ in 0..20 {
        bench.step(usize::MAX);
    }
    assert_eq!(asked(&bench, is_login) - before, 1);
    assert_eq!(says(&bench, "Deployed"), "False/CreateFailed");
}

/// The Agent mounts what the build pushes with, and it is by the Agent's use that the Secret is asked for that.
#[test]
fn a_pull_secret_that_is_lent_to_builds_alone_reaches_no_agent() {
    for (usable_by, reaches) in [("builds", false), ("builds,agents", true)] {
        let env = json!([{"name": "IMAGE_REPO_SECRET", "value": "regcred"}]);
        let mut bench = consenting("regcred", json!({"deployAfterBuild": true, "env": env}));
        let seen = SecretSeen {
            type_: "kubernetes.io/dockerconfigjson".into(),
            keys: [".dockerconfigjson".to_owned()].into(),
            registries: Some("ghcr.io".into()),
            usable_by: Some(usable_by.into()),
            ..SecretSeen::default()
        };
        bench.secrets.insert("regcred".into(), SecretFact::Is(seen));
        bench.settle();
        succeed(&mut bench, "a");
        assert_eq!(bench.phase(), "Completed", "{usable_by}");
        if reaches {
            let made = agent(&bench).unwrap();
            assert_eq!(made["spec"]["env"], json!([{"name": "IMAGE_REPO_SECRET", "value": "regcred"}]));
            assert_eq!(made["metadata"]["annotations"][keys::ANNOTATION_SECRETS_BY_CONSENT], "regcred");
        } else {
            assert_eq!((says(&bench, "Deployed").as_str(), agent(&bench)), ("False/SecretNotAllowed", None));
            assert!(message(&bench, "Deployed").contains("regcred"), "{}", message(&bench, "Deployed"));
        }
    }
}

/// What is left alone is told from each other, and nobody is told to delete what was made for the very build.
#[test]
fn an_agent_that_is_left_alone_says_whose_it_is_and_how_the_build_would_keep_it() {
    let command = "kubectl -n team annotate agents.beeai.dev weather-build beeai.dev/created-by-uid=bu --overwrite";
    let of_this_name = json!({keys::LABEL_CREATED_BY: NAME});
    for (labels, mark, says_, keeps, deletes) in [
        (json!({}), "", "was not made by a build", true, true),
        (of_this_name.clone(), "", "was made for this build by an earlier operator", true, false),
        (
            of_this_name,
            "before",
            "by an earlier AgentBuild of this name (beeai.dev/created-by-uid: before)",
            true,
            false,
        ),
        (json!({}), "before", "by an AgentBuild that is gone (beeai.dev/created-by-uid: before)", true, false),
        (json!({}), "ou", "AgentBuild other keeps it", false, false),
    ] {
        let mut bench = bench(json!({"deployAfterBuild": true}));
        let mut other = build(keys::GROUP_BEEAI, json!({}));
        (other["metadata"]["name"], other["metadata"]["uid"]) = (json!("other"), json!("ou"));
        bench.put(Kind::BeeaiBuild, other);
        let annotations = if mark.is_empty() { json!({}) } else { json!({keys::ANNOTATION_CREATED_BY_UID: mark}) };
        let metadata = json!({"name": NAME, "namespace": TEAM, "uid": "au", "generation": 1, "labels": labels, "annotations": annotations});
        bench.put(Kind::BeeaiAgent, json!({"metadata": metadata, "spec": {"image": "theirs"}}));
        bench.settle();
        succeed(&mut bench, "a");
        let told = message(&bench, "Deployed");
        assert_eq!(says(&bench, "Deployed"), "False/AgentExists", "{mark}");
        assert!(told.contains(says_) && told.contains("spec.agent.name"), "{told}");
        assert_eq!((told.ends_with(command), told.contains("delete")), (keeps, deletes), "{told}");
        // As told, the build keeps it.
        bench.edit(Kind::BeeaiAgent, NAME, |agent| {
            agent["metadata"]["annotations"][keys::ANNOTATION_CREATED_BY_UID] = json!("bu");
        });
        bench.settle();
        assert!(says(&bench, "Deployed").starts_with("True/"), "{}", says(&bench, "Deployed"));
        assert_eq!(agent(&bench).unwrap()["spec"]["image"], bench.status()["builtImage"]);
    }
}

/// Of an Agent of which nothing is read it is not said that somebody else made it.
#[test]
fn an_agent_that_is_over_a_bound_is_said_to_be_so() {
    let mut bench = built(json!({"deployAfterBuild": true}));
    bench.edit(Kind::BeeaiAgent, NAME, |agent| agent["metadata"]["annotations"]["theirs"] = json!("x".repeat(70_000)));
    bench.settle();
    let told = message(&bench, "Deployed");
    assert!(told.contains("is larger than what is read of one object") && told.contains("write less on it"), "{told}");
    assert!(!told.contains("not made by") && !told.contains("kubectl"), "{told}");
    bench.edit(Kind::BeeaiAgent, NAME, |agent| agent["metadata"]["annotations"]["theirs"] = json!("x"));
    bench.settle();
    assert!(says(&bench, "Deployed").starts_with("True/"), "{}", says(&bench, "Deployed"));
}

/// Pods that start later pull with the login: that it cannot be brought up to date is said on the build, once, until it can.
#[test]
fn a_login_that_is_refused_after_the_build_is_said_until_it_is_made() {
    let mut bench = built(json!({"deployAfterBuild": true}));
    runs(&mut bench, Kind::BeeaiAgent);
    bench.refuses = |op| matches!(op, Op::Login(_)).then_some((Some(Reason::LoginRefused), "exceeded quota: secrets"));
    bench.pass(400);
    assert_eq!(
        (says(&bench, "LoginCurrent"), says(&bench, "Ready")),
        ("False/LoginRefused".into(), "True/AgentReady".into())
    );
    let told = message(&bench, "LoginCurrent");
    assert!(told.contains("weather-build-docker") && told.contains("exceeded quota: secrets"), "{told}");
    let before = asked(&bench, is_login);
    assert_eq!((bench.pass(3600), bench.told(Reason::LoginRefused)), (0, 1), "waiting writes nothing");
    assert!((10..=12).contains(&(asked(&bench, is_login) - before)));
    bench.restart();
    assert_eq!((bench.pass(60), bench.told(Reason::LoginRefused)), (0, 1), "nor does a restart");
    bench.refuses = |_| None;
    bench.pass(400);
    assert_eq!((says(&bench, "LoginCurrent"), says(&bench, "Ready")), ("/".into(), "True/AgentReady".into()));
    assert_eq!(bench.pass(3600), 0);
}

/// It goes with the login that is wanted no more, too.
#[test]
fn what_is_said_of_a_login_goes_with_it() {
    let mut bench = built(json!({}));
    has(&mut bench, "git", &[]);
    bench.pass(400);
    assert_eq!(says(&bench, "LoginCurrent"), "False/PrerequisitesMissing");
    bench.user(|build| build["spec"]["env"] = json!([]));
    bench.settle();
    succeed(&mut bench, "b");
    assert_eq!((says(&bench, "LoginCurrent"), says(&bench, "Ready")), ("/".into(), "True/BuildReady".into()));
}

/// The Agent that has come since is an owner that the last try did not name: it is asked for at once, and not in some minutes.
#[test]
fn an_agent_becomes_an_owner_of_the_login_at_once_though_the_token_is_gone() {
    let mut bench = bench(json!({"deployAfterBuild": true}));
    bench.settle();
    bench.now += s(400);
    has(&mut bench, "git", &[]);
    succeed(&mut bench, "a");
    let owners = bench.done.iter().filter_map(|op| match op {
        Op::Login(login) => Some(login.owners.len()),
        _ => None,
    });
    assert_eq!(owners.collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(says(&bench, "LoginCurrent"), "False/PrerequisitesMissing");
}

/// A token that may be missing, and is, is asked for no consent.
#[test]
fn an_optional_token_that_is_left_to_consent_may_be_missing() {
    for keys in [None, Some(["other"])] {
        let reference = json!({"name": "git", "key": "token", "optional": true});
        let env = json!([{"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": reference}}]);
        let mut bench = consenting("git", json!({"env": env}));
        bench.secrets.remove("git");
        if let Some(keys) = keys {
            has(&mut bench, "git", &keys);
        }
        bench.settle();
        assert_eq!(
            (bench.phase().as_str(), asked(&bench, is_consent)),
            ("Building", 0),
            "{keys:?}: {}",
            bench.message()
        );
        let run = &bench.objects[&(Kind::PipelineRun, bench.run())];
        assert_eq!(run["spec"]["workspaces"].as_array().map(Vec::len), Some(1), "{keys:?}");
        succeed(&mut bench, "a");
        assert_eq!(bench.phase(), "Completed", "{keys:?}");
    }
}

/// Nobody is told of fields that his object has not.
#[test]
fn a_build_of_beeai_is_told_what_to_do_in_its_own_words() {
    let mut bench = bench(json!({"env": [{"name": "IMAGE_REPO_SECRET", "value": "regcred"}]}));
    bench.settle();
    let told = bench.message();
    assert!(told.contains("IMAGE_REPO_SECRET secret not found") && !told.contains("imageRepoCredentials"), "{told}");

    let mut bench = super::bench(json!({}));
    bench.settle();
    bench.run_is("False", "PipelineRunTimeout", "it took too long");
    bench.settle();
    let told = bench.message();
    assert_eq!(bench.phase(), "Failed");
    assert!(told.contains("ConfigMap pipeline-template-beeai") && !told.contains("raise parameter"), "{told}");
}
