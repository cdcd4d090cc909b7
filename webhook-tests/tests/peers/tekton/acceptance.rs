//! Whatever webhook and composition accept, real Tekton accepts.

use drawbridge::domain::keys;
use drawbridge::pipelines::agent_build::MODES;
use drawbridge::pipelines::templates::ConfigMapText;
use futures::StreamExt as _;
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Tekton};

use super::builds::{Platform, build};
use super::dice::Dice;
use super::generator;

#[tokio::test]
async fn every_mode_is_accepted_as_shipped() {
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("accepted").await.unwrap();
    let platform = Platform::shipped();
    for mode in MODES {
        let composition = platform.accepted(&build(ns.name(), &format!("weather-{mode}"), mode));
        let answer = ns.create(&composition.run, true).await.unwrap();
        assert!(answer.result.is_ok(), "{mode}: {}", answer.result.unwrap_err().message);
        assert_eq!(answer.warnings, Vec::<String>::new(), "{mode}");
    }
}

/// Seed of the generated builds; another one by variable `DRAWBRIDGE_SEED`.
const SEED: u64 = 20_261_121;
/// How many builds of each mode Tekton is asked about; custom ones differ most.
fn wanted(mode: &str) -> usize {
    if mode == "custom" { 400 } else { 110 }
}
/// Requests on their way at once.
const AT_ONCE: usize = 8;

/// What is asked about, for the message when it is refused, and the run.
type Asked = (String, Value);

/// No build that the review accepts and composition composes is refused by Tekton.
#[tokio::test]
async fn whatever_is_accepted_and_composed_tekton_accepts() {
    let seed = std::env::var("DRAWBRIDGE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("generated").await.unwrap();
    let mut dice = Dice::new(seed);
    let mut platform = generator::platform(&mut dice);
    let mut asked: Vec<Asked> = Vec::new();
    let single = generator::one_step_each(&mut dice, ns.name(), &platform);
    asked.extend(single.iter().filter_map(|object| composed(&platform, object)));
    println!("{} steps can be used, {} of them alone", single.len(), asked.len());
    for mode in MODES {
        let (mut taken, mut thrown) = (0, 0);
        while taken < wanted(mode) {
            platform.settings = generator::settings(&mut dice);
            let object = generator::agent_build(&mut dice, ns.name(), (mode, thrown), &platform);
            if let Some(one) = composed(&platform, &object) {
                asked.push(one);
                taken += 1;
            }
            thrown += 1;
            assert!(thrown < 40 * wanted(mode), "seed {seed}: hardly a build of mode {mode} is accepted");
        }
        println!("{mode}: {taken} of {thrown} composed");
    }
    assert!(asked.len() >= 1000, "seed {seed}: {}", asked.len());
    let answers = futures::stream::iter(asked.into_iter().map(|(title, run)| {
        let ns = &ns;
        async move {
            let answer = ns.create(&run, true).await.unwrap();
            answer.result.err().map(|status| format!("{}\n  {title}", status.message))
        }
    }));
    let refused: Vec<String> = answers.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
    let shown: Vec<_> = refused.iter().take(40).map(String::as_str).collect();
    assert!(refused.is_empty(), "seed {seed}: Tekton refuses {}:\n{}", refused.len(), shown.join("\n"));
}

/// The run of an object, when it is accepted and composes.
fn composed(platform: &Platform, object: &Value) -> Option<Asked> {
    let (stored, findings) = platform.reviewed(object);
    if !findings.faults.is_empty() {
        return None;
    }
    let composition = platform.composed(&stored).ok()?;
    Some((format!("{}: {}", stored["metadata"]["name"], stored["spec"]["pipeline"]), composition.run))
}

/// Case C19: every shipped template, with and without credentials and build arguments.
#[tokio::test]
async fn case_c19_every_template_with_and_without_everything() {
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("templates").await.unwrap();
    let platform = Platform::shipped();
    for mode in MODES {
        for (credentials, arguments) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut object = build(ns.name(), "weather", mode);
            if credentials {
                object["spec"]["source"]["sourceCredentials"] = json!({ "name": "git-token" });
                object["spec"]["buildOutput"]["imageRepoCredentials"] = json!({ "name": "ghcr-secret" });
            }
            if arguments {
                object["spec"]["buildArgs"] =
                    json!([{ "name": "PY", "value": "3.13" }, { "name": "X", "value": "a b" }]);
            }
            let answer = ns.create(&platform.accepted(&object).run, true).await.unwrap();
            let told = answer.result.err().map(|status| status.message);
            assert_eq!(told, None, "{mode}, credentials {credentials}, arguments {arguments}");
        }
    }
}

/// Case C20, where composition cannot know: a member that no version of Tekton has is kept, and Tekton's own words say
/// so before a run is claimed. What v1beta1 had (`resources`) is named by us already.
#[tokio::test]
async fn case_c20_tekton_names_what_composition_cannot_know() {
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("unknown").await.unwrap();
    let mut platform = Platform::shipped();
    let mut step = |text: &str| {
        platform.view.insert(&ConfigMapText {
            namespace: keys::OPERATOR_NAMESPACE.to_owned(),
            name: "mine".to_owned(),
            labels: [(keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned())].into(),
            data: [(keys::KEY_TASK_SPEC.to_owned(), text.to_owned())].into(),
        });
        let mut object = build(ns.name(), "weather", "custom");
        object["spec"]["pipeline"] = json!({ "steps": [{ "name": "one", "configMap": "mine" }] });
        let (stored, findings) = platform.reviewed(&object);
        assert_eq!(findings.faults, []);
        platform.composed(&stored)
    };
    let told = step("steps: [{image: i, resources: {}}]").unwrap_err().content;
    assert!(told[0].to_string().contains("refuses it as an unknown field"), "{told:?}");
    let run = step("steps: [{image: i, futureMember: 1}]").unwrap().run;
    let told = ns.create(&run, true).await.unwrap().result.unwrap_err();
    assert!(told.message.contains("unknown field") && told.message.contains("futureMember"), "{}", told.message);
}
