//! AgentBuilds of BeeAI against a namespace in memory: cases of BeeAI (Z; docs/cases.md) that plans decide.

mod attacked;
mod bad_input;

use serde_json::{Value, json};

use super::{COMPAT_ROW, ROW};
use crate::controllers::agent_build::memory::AgentBuilds;
use crate::controllers::agent_build::tests::bench::{Bench, NAME, TEAM, digest};
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::catalogue::{Values, config_maps};
use crate::store::{Kind, Reach};

fn build(group: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "AgentBuild",
        "metadata": {"name": NAME, "namespace": TEAM, "uid": "bu", "generation": 1, "creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {
            "repoUrl": "github.com/a/b.git", "revision": "v1.0.0", "imageRegistry": "ghcr.io/acme", "image": "weather", "imageTag": "v1",
            "env": [{"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "git", "key": "token"}}}],
        },
    });
    json_patch::merge(&mut object, &json!({"spec": more}));
    object
}

fn bench_of(row: (Kind, crate::controllers::scaffold::plan::Row<AgentBuilds>), build: Value) -> Bench {
    let mut bench = Bench::of((row.0, row.1, "buildStatus"), build);
    bench.maps = config_maps("kagenti-system", &Values::default());
    bench.configure();
    for kind in [Kind::BeeaiAgent, Kind::BeeaiCompatAgent] {
        bench.cluster.store.set_reach(kind, Reach::Listed);
    }
    has(&mut bench, "git", &["token"]);
    bench
}

fn bench(more: Value) -> Bench {
    bench_of((Kind::BeeaiBuild, ROW), build(keys::GROUP_BEEAI, more))
}

/// A Secret with those keys is there.
fn has(bench: &mut Bench, name: &str, keys: &[&str]) {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    bench.secrets.insert(name.to_owned(), SecretFact::Is(SecretSeen { keys, ..SecretSeen::default() }));
}

fn succeed(bench: &mut Bench, letter: &str) {
    for task in ["pull", "check-subfolder", "build"] {
        bench.task(task, true, json!([]), json!({}));
    }
    let image = json!({"name": "IMAGE_URL", "value": "ghcr.io/acme/weather:v1"});
    bench.task("push", true, json!([image, {"name": "IMAGE_DIGEST", "value": digest(letter)}]), json!({}));
    bench.run_is("True", "Succeeded", "Tasks Completed: 4");
    bench.settle();
}

fn built(more: Value) -> Bench {
    let mut bench = bench(more);
    bench.settle();
    succeed(&mut bench, "a");
    bench
}

fn says(bench: &Bench, type_: &str) -> String {
    let (status, reason) = bench.condition(type_);
    format!("{status}/{reason}")
}

/// The Agent that is kept runs its image.
fn runs(bench: &mut Bench, kind: Kind) {
    bench.edit(kind, NAME, |agent| {
        agent["status"] = json!({
            "ready": true, "deploymentStatus": "Ready", "observedGeneration": agent["metadata"]["generation"],
        });
    });
    bench.settle();
}

/// Z31, Z32, Z39 and Z46: from pull to an Agent by digest, in the group of the build, with no owner.
#[test]
fn case_z31_z32_z46_a_build_of_either_group_becomes_an_agent_by_digest() {
    for (kind, row, agent) in
        [(Kind::BeeaiBuild, ROW, Kind::BeeaiAgent), (Kind::BeeaiCompatBuild, COMPAT_ROW, Kind::BeeaiCompatAgent)]
    {
        let mut bench = bench_of((kind, row), build(kind.group(), json!({"deployAfterBuild": true})));
        bench.settle();
        assert_eq!(bench.build()["metadata"]["finalizers"], json!(["beeai.dev/finalizer"]));
        assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
        assert_eq!(bench.names(Kind::PersistentVolumeClaim), [format!("{NAME}-beeai-workspace")]);
        let login = &bench.logins[&format!("{NAME}-docker")];
        assert_eq!((login.source.as_str(), login.account.as_str()), ("git", "ghcr.io"), "Z22");
        assert_eq!(login.owners[0].api_version, kind.api_version());
        succeed(&mut bench, "a");
        let status = bench.status();
        let image = format!("ghcr.io/acme/weather@{}", digest("a"));
        assert_eq!((bench.phase().as_str(), &status["builtImage"]), ("Completed", &json!(image)));
        assert_eq!((&status["builtImageTag"], &status["agentName"]), (&json!("ghcr.io/acme/weather:v1"), &json!(NAME)));
        let kept = &bench.objects[&(agent, NAME.to_owned())];
        assert_eq!((&kept["spec"]["image"], kept["metadata"].get("ownerReferences")), (&json!(image), None));
        assert_eq!(kept["metadata"]["annotations"], json!({"beeai.dev/created-by-uid": "bu"}));
        assert_eq!(
            (says(&bench, "Deployed"), says(&bench, "Ready")),
            ("True/AgentCreated".into(), "False/AgentNotReady".into())
        );
        let login = &bench.logins[&format!("{NAME}-docker")];
        assert_eq!(login.owners.len(), 2, "the Agent owns the login, too");
        runs(&mut bench, agent);
        assert_eq!(says(&bench, "Ready"), "True/AgentReady");
        assert_eq!(bench.status()["deploymentStatus"], "Ready");
        assert!(
            !bench.names(Kind::PersistentVolumeClaim).is_empty(),
            "Z39: nothing is cleaned up unless it is asked for"
        );
        assert_eq!(bench.pass(3600), 0, "steady state writes nothing");
        bench.restart();
        assert_eq!(bench.pass(60), 0, "nor does a restart");
        assert_eq!((bench.told(Reason::AgentCreated), bench.told(Reason::BuildSucceeded)), (1, 1));
    }
}

#[test]
fn case_z22_and_z23_the_login_is_looked_at_again_every_five_minutes() {
    let mut bench = built(json!({}));
    assert_eq!((says(&bench, "Ready"), says(&bench, "Deployed")), ("True/BuildReady".into(), "/".into()));
    let before = bench.done.iter().filter(|op| matches!(op, Op::Login(_))).count();
    bench.pass(3600);
    let after = bench.done.iter().filter(|op| matches!(op, Op::Login(_))).count();
    assert!((10..=12).contains(&(after - before)), "{}", after - before);
    assert_eq!(bench.names(Kind::PipelineRun).len(), 1, "Z23: no build starts by that alone");
}

/// Z18, Z19: what is missing is named, and asked for again.
#[test]
fn case_z18_and_z19_a_missing_key_is_named_and_the_build_follows() {
    let mut bench = bench(json!({}));
    has(&mut bench, "git", &["other"]);
    bench.settle();
    assert_eq!((bench.phase().as_str(), says(&bench, "Ready").as_str()), ("Failed", "False/PrerequisitesMissing"));
    let message = bench.message();
    assert!(message.contains("git") && message.contains("token"), "{message}");
    assert!(bench.names(Kind::PipelineRun).is_empty());
    let writes = bench.writes();
    bench.pass(60);
    assert_eq!(bench.writes(), writes, "waiting writes nothing");
    has(&mut bench, "git", &["token"]);
    bench.pass(6);
    assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Building", 1), "Z19: within 5 s");
}

#[test]
fn an_optional_token_may_be_missing() {
    let env = json!([{"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "token", "optional": true}}}]);
    let mut bench = bench(json!({"env": env, "deployAfterBuild": true}));
    bench.settle();
    let run = &bench.objects[&(Kind::PipelineRun, bench.run())];
    let workspaces: Vec<_> =
        run["spec"]["workspaces"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!((workspaces, bench.logins.len()), (vec![json!("shared-workspace")], 0));
    succeed(&mut bench, "a");
    assert!(bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())]["spec"].get("env").is_none(), "and no login is named");
    assert_eq!(bench.pass(3600), 0);
}

/// Z24: what is somebody else's is left alone, and said.
#[test]
fn case_z24_a_foreign_secret_of_the_logins_name_is_a_conflict() {
    let mut bench = bench(json!({}));
    bench.refuses =
        |op| matches!(op, Op::Login(_)).then_some((Some(Reason::NameConflict), "Secret weather-build-docker exists"));
    bench.settle();
    assert_eq!((bench.phase().as_str(), says(&bench, "Ready").as_str()), ("Failed", "False/NameConflict"));
    assert!(bench.names(Kind::PipelineRun).is_empty() && bench.logins.is_empty());
}

/// A quota that refuses the login is said in the server's words, and tried again after a pause.
#[test]
fn a_quota_that_refuses_the_login_is_no_loop() {
    let mut bench = bench(json!({}));
    bench.refuses = |op| matches!(op, Op::Login(_)).then_some((Some(Reason::LoginRefused), "exceeded quota: secrets"));
    bench.settle();
    assert_eq!(says(&bench, "Ready"), "False/LoginRefused");
    assert!(bench.message().contains("exceeded quota: secrets"), "{}", bench.message());
    let tried = bench.done.iter().filter(|op| matches!(op, Op::Login(_))).count();
    bench.pass(29);
    assert_eq!(bench.done.iter().filter(|op| matches!(op, Op::Login(_))).count(), tried);
    bench.refuses = |_| None;
    bench.pass(300);
    assert_eq!(bench.phase(), "Building");
}

/// Z33: what failed is tried again.
#[test]
fn case_z33_an_agent_that_could_not_be_made_is_made_later() {
    let mut bench = bench(json!({"deployAfterBuild": true}));
    bench.settle();
    bench.refuses = |op| matches!(op, Op::Create { .. }).then_some((None, "no answer"));
    for task in ["pull", "check-subfolder", "build"] {
        bench.task(task, true, json!([]), json!({}));
    }
    let image = json!({"name": "IMAGE_URL", "value": "ghcr.io/acme/weather:v1"});
    bench.task("push", true, json!([image, {"name": "IMAGE_DIGEST", "value": digest("a")}]), json!({}));
    bench.run_is("True", "Succeeded", "Tasks Completed: 4");
    for _ in 0..8 {
        bench.step(usize::MAX);
    }
    assert_eq!((bench.phase().as_str(), says(&bench, "Deployed").as_str()), ("Completed", "False/CreateFailed"));
    bench.refuses = |_| None;
    bench.settle();
    assert_eq!(says(&bench, "Deployed"), "True/AgentCreated");
}

/// Z34: an Agent of somebody else's is left alone; the build stays completed.
#[test]
fn case_z34_an_unrelated_agent_is_untouched() {
    let mut bench = bench(json!({"deployAfterBuild": true}));
    let theirs =
        json!({"metadata": {"name": NAME, "namespace": TEAM, "uid": "au", "generation": 1}, "spec": {"image": "x"}});
    bench.put(Kind::BeeaiAgent, theirs);
    let before = bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())].clone();
    bench.settle();
    succeed(&mut bench, "a");
    assert_eq!((bench.phase().as_str(), says(&bench, "Deployed").as_str()), ("Completed", "False/AgentExists"));
    assert_eq!(says(&bench, "Ready"), "False/AgentExists");
    assert_eq!(
        (bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())].clone(), bench.told(Reason::AgentExists)),
        (before, 1)
    );
    assert_eq!(bench.pass(3600), 0);
    bench.lose(Kind::BeeaiAgent, NAME);
    bench.settle();
    assert_eq!(says(&bench, "Deployed"), "True/AgentCreated", "the name is free: the Agent follows");
}

/// Z35 and Z36.
#[test]
fn case_z35_and_z36_the_agent_follows_the_build_and_its_own_section() {
    let mut bench = built(json!({"deployAfterBuild": true}));
    runs(&mut bench, Kind::BeeaiAgent);
    let runs_before = bench.names(Kind::PipelineRun).len();
    bench.user(|build| build["spec"]["agent"] = json!({"env": [{"name": "A", "value": "b"}]}));
    bench.settle();
    let env = bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())]["spec"]["env"].clone();
    assert_eq!((&env[0]["name"], says(&bench, "Deployed").as_str()), (&json!("A"), "True/AgentUpdated"));
    assert_eq!(bench.names(Kind::PipelineRun).len(), runs_before, "Z36: no build");

    bench.user(|build| build["spec"]["revision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    succeed(&mut bench, "b");
    let image = bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())]["spec"]["image"].clone();
    assert_eq!(image, json!(format!("ghcr.io/acme/weather@{}", digest("b"))), "Z35");

    // What somebody changes by hand is as the build says again.
    bench.edit(Kind::BeeaiAgent, NAME, |agent| agent["spec"]["image"] = json!("other"));
    bench.settle();
    assert_eq!(bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())]["spec"]["image"], image);
    bench.user(|build| build["spec"]["deployAfterBuild"] = json!(false));
    bench.settle();
    assert_eq!((says(&bench, "Deployed"), says(&bench, "Ready")), ("/".into(), "True/BuildReady".into()));
    assert!(bench.objects.contains_key(&(Kind::BeeaiAgent, NAME.to_owned())), "an Agent in use stays");
}

/// Z37: the build goes; what it made for others stays.
#[test]
fn case_z37_the_agent_survives_the_build() {
    let mut bench = built(json!({"deployAfterBuild": true}));
    bench.edit(Kind::BeeaiBuild, NAME, |build| build["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z"));
    bench.settle();
    assert!(!bench.objects.contains_key(&(Kind::BeeaiBuild, NAME.to_owned())));
    assert!(bench.objects.contains_key(&(Kind::BeeaiAgent, NAME.to_owned())));
    assert!(bench.names(Kind::PersistentVolumeClaim).is_empty() && bench.names(Kind::PipelineRun).is_empty());
}

/// Z38, Z40, Z44.
#[test]
fn case_z38_z40_and_z44_ended_builds_are_left_alone_and_cleaned_up_when_asked() {
    let mut bench = built(json!({"cleanupAfterBuild": true}));
    assert!(bench.names(Kind::PersistentVolumeClaim).is_empty(), "Z40");
    let status = bench.status();
    let run = bench.run();
    bench.lose(Kind::PipelineRun, &run);
    assert_eq!(bench.pass(3600), 0, "Z38");
    assert_eq!(bench.status(), status);

    let mut bench = self::bench(json!({}));
    bench.settle();
    let failed = json!({"status": {"steps": [{"name": "check", "terminated": {"exitCode": 2, "reason": "Error"}}]}});
    bench.task("pull", true, json!([]), json!({}));
    bench.task("check-subfolder", false, json!([]), failed);
    bench.run_is("False", "Failed", "Tasks Completed: 2");
    bench.settle();
    let message = bench.message();
    assert_eq!(bench.phase(), "Failed", "Z29");
    assert!(message.contains("check-subfolder") && message.contains("exit 2"), "Z44: {message}");
    assert_eq!((bench.pass(600), bench.names(Kind::PipelineRun).len()), (0, 1));
}

/// Z43: the process ends after the run was created.
#[test]
fn case_z43_one_run_whatever_ends_the_process() {
    for most in 0..12 {
        let mut bench = bench(json!({}));
        for _ in 0..4 {
            bench.step(most);
            bench.restart();
        }
        bench.settle();
        assert_eq!(bench.names(Kind::PipelineRun).len(), 1, "{most}");
    }
}

/// What the build left to a Secret's own consent is asked again before the Agent is written.
#[test]
fn a_secret_that_does_not_consent_reaches_no_agent() {
    let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "model", "key": "k"}}}]);
    let mut object = build(keys::GROUP_BEEAI, json!({"deployAfterBuild": true, "agent": {"env": env}}));
    object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: "model"});
    let mut bench = bench_of((Kind::BeeaiBuild, ROW), object);
    has(&mut bench, "model", &["k"]);
    bench.settle();
    succeed(&mut bench, "a");
    assert_eq!((bench.phase().as_str(), says(&bench, "Deployed").as_str()), ("Completed", "False/SecretNotAllowed"));
    assert!(!bench.objects.contains_key(&(Kind::BeeaiAgent, NAME.to_owned())));
    let seen = SecretSeen { keys: ["k".to_owned()].into(), usable_by: Some("agents".into()), ..SecretSeen::default() };
    bench.secrets.insert("model".into(), SecretFact::Is(seen));
    bench.now += s(60);
    bench.settle();
    assert_eq!(says(&bench, "Deployed"), "True/AgentCreated");
    let kept = &bench.objects[&(Kind::BeeaiAgent, NAME.to_owned())];
    assert_eq!(kept["metadata"]["annotations"][keys::ANNOTATION_SECRETS_BY_CONSENT], "model");
}

/// `beeai.enabled`: what was made stays, and what goes is let go.
#[test]
fn a_platform_that_does_not_serve_beeai_makes_nothing() {
    let mut bench = bench(json!({}));
    let snapshot = (*bench.cluster.facts.snapshot).clone();
    let mut builds = (*snapshot.builds).clone();
    builds.settings.workloads.beeai = false;
    bench.cluster.facts.snapshot = std::sync::Arc::new(snapshot.with_builds(std::sync::Arc::new(builds)));
    bench.settle();
    assert_eq!(bench.done, []);
}

/// On the day of the switch nothing is built again; whoever changes what is built gets a run.
#[test]
fn what_the_original_operator_has_ended_is_taken_over_and_not_built_again() {
    let image = "ghcr.io/acme/weather:v0";
    for (before, phase, ready) in [
        (json!({"buildStatus": "Completed", "builtImage": image}), "Completed", "True/BuildReady"),
        (json!({"buildStatus": "Failed"}), "Failed", "False/BuildFailed"),
    ] {
        let mut object = build(keys::GROUP_BEEAI, json!({}));
        object["metadata"]["finalizers"] = json!([keys::FINALIZER_BEEAI]);
        object["status"] = before;
        object["status"]["pipelineRunName"] = json!("weather-8f3c5d0a");
        object["status"]["observedGeneration"] = json!(1);
        let mut bench = bench_of((Kind::BeeaiBuild, ROW), object);
        bench.settle();
        assert_eq!((bench.phase().as_str(), says(&bench, "Ready").as_str()), (phase, ready));
        assert_eq!(bench.names(Kind::PipelineRun), Vec::<String>::new(), "never by itself");
        assert_eq!(bench.status()["builtImage"], if phase == "Completed" { json!(image) } else { Value::Null });
        bench.restart();
        assert_eq!(bench.pass(60), 0, "nor after a restart");
        bench.edit(Kind::BeeaiBuild, NAME, |build| build["spec"]["revision"] = json!("v2.0.0"));
        bench.settle();
        assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Building", 1));
    }
}

/// The compat group is served only where it is installed.
#[test]
fn without_tekton_a_build_waits_and_starts_when_it_is_there() {
    let mut bench = bench(json!({}));
    bench.cluster.store.set_reach(Kind::PipelineRun, Reach::Absent);
    bench.settle();
    assert_eq!(says(&bench, "TektonAvailable"), "False/TektonAbsent");
    bench.cluster.store.set_reach(Kind::PipelineRun, Reach::Listed);
    bench.settle();
    assert_eq!(bench.phase(), "Building");
}

/// `beeai.dev/rebuild` and `beeai.dev/cancel`, and not the words of another group.
#[test]
fn a_build_is_started_anew_and_cancelled_by_the_annotations_of_its_group() {
    let mut bench = built(json!({}));
    bench.user(|build| build["metadata"]["annotations"] = json!({"agent.kagenti.dev/rebuild": "1"}));
    bench.settle();
    assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Completed", 1));
    bench.user(|build| build["metadata"]["annotations"] = json!({"beeai.dev/rebuild": "1"}));
    bench.settle();
    assert_eq!((bench.phase().as_str(), bench.names(Kind::PipelineRun).len()), ("Building", 2));
    bench.user(|build| build["metadata"]["annotations"]["beeai.dev/cancel"] = json!("1"));
    bench.settle();
    let run = bench.run();
    assert_eq!(bench.objects[&(Kind::PipelineRun, run)]["spec"]["status"], "Cancelled");
}
