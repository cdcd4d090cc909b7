//! Whatever the review of a BeeAI build accepts and composition makes of it, real Tekton accepts; in both groups.

use drawbridge::domain::keys;
use drawbridge::pipelines::beeai_build::{front, read, validate};
use drawbridge::pipelines::compose::{Surroundings, compose};
use futures::StreamExt as _;
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Tekton};

use super::builds::{Platform, of_no_build};
use super::dice::Dice;
use super::generator::{self, HOSTILE};

/// The samples as they are shipped.
const SAMPLES: [&str; 2] = [
    include_str!("../../../../manifests/samples/beeai-agentbuild.yaml"),
    include_str!("../../../../manifests/samples/beeai-agentbuild-deployed.yaml"),
];
const SEED: u64 = 20_261_124;
/// How many builds Tekton is asked about.
const WANTED: usize = 300;
/// Requests on their way at once.
const AT_ONCE: usize = 8;

/// The run of an object, `None` when the review refuses it; and what is wrong when it does not compose.
fn composed(platform: &Platform, group: &str, namespace: &str, object: &Value) -> Option<Value> {
    let whose = (front(group), namespace);
    if !validate((object, None), whose, &platform.view, &platform.settings).faults.is_empty() {
        return None;
    }
    let request = read(object, whose, &platform.view, &platform.settings);
    let steps = platform.view.steps(keys::OPERATOR_NAMESPACE);
    let around = Surroundings { steps, settings: &platform.settings, accounts: None };
    let composition = compose(&request, around);
    let composed =
        composition.unwrap_or_else(|findings| panic!("accepted, and does not compose: {object}: {findings:#?}"));
    let mut run = composed.run;
    of_no_build(&mut run);
    Some(run)
}

/// Z13, Z14, Z25: the samples, as they stand, in both groups.
#[tokio::test]
async fn case_z25_the_samples_are_accepted_in_both_groups() {
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("beeai-samples").await.unwrap();
    let platform = Platform::shipped();
    for group in [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT] {
        for sample in SAMPLES {
            let mut object: Value = serde_saphyr::from_str(sample).unwrap();
            object["metadata"]["uid"] = json!("uid-of-the-build");
            let run = composed(&platform, group, ns.name(), &object).unwrap();
            assert_eq!(run["metadata"]["ownerReferences"][0]["apiVersion"], format!("{group}/v1"));
            let answer = ns.create(&run, true).await.unwrap();
            assert!(answer.result.is_ok(), "{group}: {}", answer.result.unwrap_err().message);
            assert_eq!(answer.warnings, Vec::<String>::new(), "{group}");
        }
    }
}

/// An AgentBuild, mostly right.
fn thrown(dice: &mut Dice, index: usize) -> Value {
    let secret = |name: &str, key: &str| json!({"secretKeyRef": {"name": name, "key": key}});
    let entries = dice.some(5, |dice| {
        let name = dice.text(
            &["SOURCE_REPO_SECRET", "GITHUB_TOKEN", "IMAGE_REPO_TOKEN", "IMAGE_REPO_SECRET", "PIP_INDEX", "X", "PORT", "_y"],
            HOSTILE,
            8,
        );
        let by_reference = if name.ends_with("TOKEN") || name.starts_with("SOURCE") { 96 } else { 12 };
        if dice.chance(by_reference) {
            json!({"name": name, "valueFrom": secret(dice.pick(&["git-token", "a.b-c"]), dice.pick(&["token", "a_b.c"]))})
        } else {
            json!({"name": name, "value": dice.text(&["internal", "a b", "", "registry-login"], HOSTILE, 20)})
        }
    });
    let mut spec = json!({
        "repoUrl": dice.text(
            &["github.com/acme/agents.git", "https://github.com/acme/agents.git", "ssh://git@code.example:2222/a/b", "git@github.com:a/b"],
            HOSTILE, 5),
        "revision": dice.text(&["main", "v1.4.2", "feature/x", "0123456789abcdef0123456789abcdef01234567"], HOSTILE, 5),
        "imageRegistry": dice.text(&["ghcr.io/acme", "localhost:5000", "docker.io", "REG.example.com/a/b"], HOSTILE, 5),
        "image": dice.text(&["weather", "a/b", "a-b_c"], HOSTILE, 5),
        "imageTag": dice.text(&["v1", "latest", "0.0.1-rc.1"], HOSTILE, 5),
        "env": if dice.chance(10) { Value::Null } else { Value::Array(entries) },
        "deployAfterBuild": dice.chance(50),
    });
    for (member, usual) in [
        ("sourceSubfolder", ["beeai/ollama", "."]),
        ("dockerfile", ["Dockerfile.agent", "docker/Dockerfile"]),
        ("repoUser", ["octo", "x-access-token"]),
    ] {
        if dice.chance(50) {
            spec[member] = json!(dice.text(&usual, HOSTILE, 8));
        }
    }
    json!({"metadata": {"name": format!("build-{index}"), "uid": format!("uid-{index}")}, "spec": spec})
}

/// No build that the review accepts is refused by Tekton, whatever the platform's settings are.
#[tokio::test]
async fn whatever_of_beeai_is_accepted_tekton_accepts() {
    let seed = std::env::var("DRAWBRIDGE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    println!("seed {seed}");
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("beeai-generated").await.unwrap();
    let mut dice = Dice::new(seed);
    let mut platform = Platform::shipped();
    let mut asked = Vec::new();
    let mut index = 0;
    while asked.len() < WANTED {
        platform.settings = generator::settings(&mut dice);
        platform.settings.registry_secrets = dice.chance(80);
        let object = thrown(&mut dice, index);
        let group = dice.take([keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT]);
        asked.extend(composed(&platform, group, ns.name(), &object).map(|run| (object["spec"].to_string(), run)));
        index += 1;
        assert!(index < 40 * WANTED, "seed {seed}: hardly a build is accepted");
    }
    println!("{WANTED} of {index} composed");
    let answers = futures::stream::iter(asked.into_iter().map(|(title, run)| {
        let ns = &ns;
        async move {
            let answer = ns.create(&run, true).await.unwrap();
            answer.result.err().map(|status| format!("{}\n  {title}", status.message))
        }
    }));
    let refused: Vec<String> = answers.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
    let shown: Vec<_> = refused.iter().take(20).map(String::as_str).collect();
    assert!(refused.is_empty(), "seed {seed}: Tekton refuses {}:\n{}", refused.len(), shown.join("\n"));
}
