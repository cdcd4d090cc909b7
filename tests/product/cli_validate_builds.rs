//! `drawbridge validate` on AgentBuilds, Agents, templates and steps: what a cluster would say, with lines, without a cluster.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

fn validated(input: &str) -> (Exit, Vec<(u64, String, String, String)>) {
    let cli = Cli::try_parse_from(["drawbridge", "validate", "-o", "json", "-f", "-"]).unwrap();
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let exit = conclude(cli.command.run(&mut io), &mut io);
    let found: Vec<Value> =
        serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&err)));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let found = found
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), text(one, "severity"), text(one, "code"), text(one, "text")));
    (exit, found.collect())
}

fn tells(found: &[(u64, String, String, String)], line: u64, severity: &str, words: &str) {
    assert!(
        found.iter().any(|(at, how, _, text)| *at == line && how == severity && text.contains(words)),
        "{line} {severity} {words:?} is not among {found:#?}"
    );
}

const BUILD: &str = include_str!("../../manifests/samples/weather-agent-build.yaml");
const AGENT: &str = include_str!("../../manifests/samples/weather-built-agent.yaml");

#[test]
fn the_samples_are_in_order_with_the_templates_that_ship() {
    assert_eq!(validated(BUILD), (Exit::Ok, Vec::new()));
    assert_eq!(validated(AGENT), (Exit::Ok, Vec::new()));
}

const BEEAI_BUILDS: [&str; 2] = [
    include_str!("../../manifests/samples/beeai-agentbuild.yaml"),
    include_str!("../../manifests/samples/beeai-agentbuild-deployed.yaml"),
];

/// Z16: the value of a token is in no line of what is said.
#[test]
fn builds_of_beeai_are_judged_by_their_own_schema_and_rules_in_both_groups() {
    for text in BEEAI_BUILDS {
        for group in ["beeai.dev", "beeai.beeai.dev"] {
            let text = text.replace("beeai.dev/v1", &format!("{group}/v1"));
            assert_eq!(validated(&text), (Exit::Ok, Vec::new()));
            let literal = "  env:\n    - name: GITHUB_TOKEN\n      value: ghp_canary\n    - name:";
            let (exit, found) = validated(&text.replacen("  env:\n    - name:", literal, 1));
            assert_ne!(exit, Exit::Ok, "{found:#?}");
            assert!(!format!("{found:?}").contains("ghp_canary"), "{found:#?}");
        }
    }
}

const BEEAI: &str = include_str!("../../manifests/samples/beeai-agent.yaml");

/// Agents of three groups are judged each by its own rules.
#[test]
fn agents_of_beeai_are_judged_by_their_own_schema_and_rules_in_both_groups() {
    let compat = BEEAI.replace("beeai.dev/v1", "beeai.beeai.dev/v1");
    for text in [BEEAI, &compat] {
        assert_eq!(validated(text), (Exit::Ok, Vec::new()));
        let wrong = text.replace("name: LLM_URL", "name: PORT").replace("image:", "imagge:");
        let (exit, found) = validated(&wrong);
        assert_eq!(exit, Exit::Findings);
        tells(&found, 8, "warning", "image");
        assert!(found.iter().any(|(.., text)| text.contains("spec.image")), "{found:#?}");
        let port = text.replace("name: LLM_URL", "name: PORT");
        let (_, found) = validated(&port);
        assert!(found.iter().any(|(.., text)| text.contains("spec.env[1].value")), "{found:#?}");
    }
}

#[test]
fn every_fault_has_its_line_and_is_told_once() {
    let text = "apiVersion: agent.kagenti.dev/v1alpha1
kind: AgentBuild
metadata:
  name: weather
  namespace: team1
spec:
  mode: stagin
  model: prod
  source:
    sourceRepository: https://me:s3cret@host/r.git
    sourceSubfolder: ../x
  buildOutput:
    imageRegistry: ghcr.io/acme
    image: weather
    imageTag: 1
  pipeline:
    namespace: kagenti-system
    steps:
    - name: Git_Clone
      configMap: github-clone-step
    - name: b
      configMp: github-clone-step
";
    let (exit, found) = validated(text);
    assert_eq!(exit, Exit::Findings);
    tells(&found, 7, "error", "spec.mode: \"stagin\" is an unsupported value");
    tells(&found, 8, "warning", "spec.model: the API server knows no such field and drops it; did you mean mode?");
    tells(&found, 10, "error", "spec.source.sourceRepository must not contain credentials");
    tells(&found, 11, "error", "spec.source.sourceSubfolder ");
    tells(
        &found,
        15,
        "error",
        "spec.buildOutput.imageTag: a string is expected, an integer was found; put it in quotes",
    );
    tells(&found, 19, "error", "spec.pipeline.steps[0].name ");
    tells(&found, 21, "error", "spec.pipeline.steps[1].configMap: is required");
    tells(&found, 22, "warning", "did you mean configMap?");
    assert_eq!(found.iter().filter(|(.., text)| text.contains("spec.mode: ")).count(), 1, "{found:#?}");
    assert!(found.iter().all(|(.., text)| !text.contains("s3cret")), "{found:#?}");
}

#[test]
fn templates_and_steps_of_the_stream_are_used() {
    let own = BUILD.replace("  mode: dev\n", "  mode: dev\n  pipeline:\n    namespace: default\n");
    let (_, found) = validated(&own);
    assert!(
        found.iter().any(|(_, severity, code, text)| {
            severity == "error" && code == "TemplateMissing" && text.contains("default/pipeline-template-dev")
        }),
        "{found:#?}"
    );
    let template = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: pipeline-template-dev\n  namespace: default\ndata:\n  template.json: |\n    {\"name\": \"own\", \"steps\": [{\"name\": \"only\", \"configMap\": \"own-step\"}]}\n---\n";
    let (_, found) = validated(&format!("{template}{own}"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].2, "StepMissing");
    let step = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own-step\n  namespace: default\n  labels: {kagenti.operator.dev/tekton: step}\ndata:\n  task-spec.yaml: |\n    steps:\n    - name: run\n      image: docker.io/library/alpine:3.22\n      script: \"true\"\n";
    assert_eq!(validated(&format!("{step}{template}{own}")), (Exit::Ok, Vec::new()));
}

#[test]
fn pod_templates_are_checked_against_kubernetes_own_schema() {
    let text = AGENT.replace(
        "      - name: agent\n",
        "      - name: agent\n        imagePullPolcy: Always\n        ports:\n        - containerPort: http\n",
    );
    let (exit, found) = validated(&text);
    assert_eq!(exit, Exit::Findings);
    assert!(
        found.iter().any(|(_, severity, _, text)| {
            severity == "error" && text.contains("containers[0].ports[0].containerPort: an integer is expected")
        }),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|(_, severity, _, text)| severity == "error" && text.contains("did you mean imagePullPolicy?")),
        "{found:#?}"
    );
    let both = AGENT.replace("    buildRef:\n", "    image: a/b:1\n    buildRef:\n");
    let (_, found) = validated(&both);
    assert!(
        found.iter().any(|(_, severity, _, text)| severity == "error" && text.contains("spec.imageSource")),
        "{found:#?}"
    );
}

#[test]
fn settings_of_the_platform_file_in_the_stream_count() {
    let platform = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kagenti-platform-config\n  namespace: kagenti-system\ndata:\n  config.yaml: |\n    agents: {lockdown: enforce}\n---\n";
    let relaxed =
        AGENT.replace("      - name: agent\n", "      - name: agent\n        securityContext: {privileged: true}\n");
    let (_, found) = validated(&relaxed);
    assert!(found.iter().all(|(_, severity, ..)| severity == "warning") && !found.is_empty(), "{found:#?}");
    let (_, found) = validated(&format!("{platform}{relaxed}"));
    assert!(found.iter().any(|(_, severity, code, _)| severity == "error" && code == "LockdownViolated"), "{found:#?}");
}

/// The API server asks the schema about what the webhook has filled in, not about what was written.
#[test]
fn what_the_webhook_fills_in_may_be_left_out() {
    for (written, read) in [
        (
            "  mode: dev\n",
            "  mode: \"\"\n  pipeline:\n    parameters:\n    - {name: DOCKERFILE, value: Containerfile}\n",
        ),
        ("  mode: dev\n", "  mode: dev\n  pipeline: {namespace: \"\"}\n"),
        ("  mode: dev\n", "  pipeline: {}\n"),
    ] {
        assert_eq!(validated(&BUILD.replace(written, read)), (Exit::Ok, Vec::new()), "{read}");
    }
    let text = BUILD.replace("  mode: dev\n", "  mode: dev\n  pipeline:\n    steps:\n    - {name: a}\n");
    let (_, found) = validated(&text);
    assert!(
        found.iter().any(|(.., text)| text.contains("spec.pipeline.steps[0].configMap: is required")),
        "{found:#?}"
    );
    assert!(found.iter().all(|(.., text)| !text.contains("spec.pipeline.namespace")), "{found:#?}");
}

/// A pipeline that makes a build per commit lets the API server choose the name.
#[test]
fn a_name_may_be_left_to_the_api_server() {
    let text = BUILD.replacen("  name: ", "  generateName: ", 1);
    assert_eq!(validated(&text), (Exit::Ok, Vec::new()));
    let text = BUILD.replacen("  name: ", "  generateName: Not.A.Name-", 1);
    assert!(validated(&text).1.iter().any(|(.., text)| text.contains("metadata.name is not a DNS label")));
}

/// C14: the linter reports what readers of YAML disagree about; and nobody needs a build to hear of a broken template.
#[test]
fn templates_and_steps_are_judged_without_a_build() {
    let map = |name: &str, key: &str, text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: team1\n  labels: {{kagenti.operator.dev/tekton: step}}\ndata:\n  {key}: |\n    {text}\n"
        )
    };
    let (exit, found) = validated(&map("pipeline-template-dev", "template.json", "{\"name\": \"own\", \"steps\": []}"));
    assert_eq!(exit, Exit::Findings);
    tells(&found, 9, "error", "ConfigMap team1/pipeline-template-dev: steps is missing or empty");
    let (_, found) = validated(&map("own", "task-spec.yaml", "steps: [{name: a, image: i, resources: {}}]"));
    tells(&found, 9, "error", "ConfigMap team1/own: steps[0].resources is not a field");
    let (_, found) =
        validated(&map("own", "task-spec.yaml", "{params: [{name: a, default: yes}], steps: [{image: i}]}"));
    tells(&found, 9, "warning", "yes is a string here and a boolean to readers of YAML 1.1");
    assert_eq!(validated(&map("own", "task-spec.yaml", "steps: [{image: i}]")), (Exit::Ok, Vec::new()));
    assert_eq!(validated(&map("other", "any", "steps: [")).0, Exit::Findings, "a step without its key");
    let plain = map("other", "task-spec.yaml", "steps: [").replace("kagenti.operator.dev/tekton", "other");
    assert_eq!(validated(&plain), (Exit::Ok, Vec::new()), "what carries no label is no step");
}
