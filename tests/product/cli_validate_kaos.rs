//! `drawbridge validate` on the kinds of KAOS: every spelling, with file and line, without a cluster; and the bad input that really happens.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

use super::faults;

/// File, line, code and text of a finding.
type Finding = (String, u64, String, String);

/// Whether anything would be refused, and every finding.
fn of(args: &[&str], input: &str) -> (bool, Vec<Finding>) {
    let all = ["drawbridge", "validate", "-o", "json"].iter().chain(args);
    let cli = Cli::try_parse_from(all).unwrap();
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let exit = conclude(cli.command.run(&mut io), &mut io);
    let found: Vec<Value> =
        serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&err)));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let one = |one: &Value| (text(one, "file"), one["line"].as_u64().unwrap(), text(one, "code"), text(one, "text"));
    let refused = found.iter().any(|finding| finding["severity"] == "error");
    assert_eq!(exit, if found.is_empty() { Exit::Ok } else { Exit::Findings });
    (refused, found.iter().map(one).collect())
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    format!("apiVersion: kaos.tools/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: team}}\nspec:\n{spec}")
}

/// Whether a finding of that line and code says that.
fn says(found: &[Finding], line: u64, code: &str, words: &str) {
    let is = |(_, at, of, text): &Finding| *at == line && of == code && text.contains(words);
    assert!(found.iter().any(is), "{line} {code} {words}: {found:#?}");
}

#[test]
fn every_sample_of_every_spelling_is_in_order() {
    let folder = faults::root().join("manifests/samples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with("kaos-") {
            continue;
        }
        let (refused, found) = of(&["-f", path.to_str().unwrap()], "");
        assert!(!refused, "{}: {found:#?}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 9);
}

#[test]
fn what_is_wrong_has_its_file_and_line_in_every_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.yaml");
    let two = "  modelAPI: m\n  config:\n    reasoningLoopMaxSteps: 4\n    agenticLoop:\n      maxSteps: 5\n";
    std::fs::write(&path, format!("{}---\n{}", object("Agent", "a", two), object("ModelAPI", "m", "  mode: Proxy\n")))
        .unwrap();
    let (refused, found) = of(&["-f", path.to_str().unwrap()], "");
    assert!(refused);
    says(&found, 7, "SpellingConflict", "spec.config.reasoningLoopMaxSteps");
    assert!(found.iter().all(|(file, ..)| file.ends_with("old.yaml")), "{found:#?}");
    assert!(found.iter().any(|(_, line, code, _)| *line >= 10 && code == "FieldRequired"), "{found:#?}");
    let same = two.replace("maxSteps: 5", "maxSteps: 4");
    let (refused, found) = of(&["-f", "-"], &object("Agent", "a", &same));
    assert!(!refused && !found.iter().any(|(_, _, code, _)| code == "SpellingConflict"), "{found:#?}");
}

/// A configuration of LiteLLM whose aliases stand for 9 to the power of 10 texts.
fn bomb() -> String {
    let mut text = "  mode: Proxy\n  proxyConfig:\n    models: ['*']\n    configYaml:\n      fromString: |\n        a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        text += &format!("        a{level}: &a{level} [{aliases}]\n");
    }
    object("ModelAPI", "m", &text)
}

/// Each is refused, or taken with the words that it deserves.
#[test]
fn bad_input_that_really_happens_is_refused_at_its_line() {
    let long = "x".repeat(58);
    let large = "a".repeat(200 * 1024);
    let agent = |spec: &str| object("Agent", "a", &format!("  modelAPI: m\n  model: x\n{spec}"));
    let proxy = |config: &str| object("ModelAPI", "m", &format!("  mode: Proxy\n  proxyConfig:\n{config}"));
    let wrong = [
        ("a name of 58 characters", object("Agent", &long, "  modelAPI: m\n"), 3, "FieldInvalid", "57"),
        (
            "a variable twice in podSpec",
            agent(
                "  podSpec:\n    containers:\n    - name: agent\n      env:\n      - {name: A, value: '1'}\n      - {name: A, value: '2'}\n",
            ),
            12,
            "DuplicateName",
            "env[1]",
        ),
        (
            "params of 200 KiB",
            object("MCPServer", "t", &format!("  runtime: python-string\n  params: {large}\n")),
            6,
            "FieldInvalid",
            "128 KiB",
        ),
        (
            "configYaml as a list",
            proxy("    models: [a]\n    configYaml: [a]\n"),
            8,
            "FieldInvalid",
            "spec.proxyConfig.configYaml",
        ),
        (
            "configYaml as a number",
            proxy("    models: [a]\n    configYaml: 7\n"),
            8,
            "FieldInvalid",
            "spec.proxyConfig.configYaml",
        ),
        (
            "configYaml that is no YAML",
            proxy("    models: ['*']\n    configYaml: {fromString: 'a: ['}\n"),
            8,
            "FieldInvalid",
            "configYaml",
        ),
        ("a bomb in configYaml", bomb(), 9, "FieldInvalid", "once its aliases are expanded"),
        (
            "a quantity that is a fraction without quotes",
            agent("  container: {resources: {limits: {memory: 0.5}}}\n"),
            7,
            "FieldInvalid",
            "an integer or a text is expected",
        ),
        (
            "a variable's name with =",
            agent("  container:\n    env: [{name: 'A=B', value: x}]\n"),
            8,
            "FieldInvalid",
            "name",
        ),
        (
            "a timeout that Gateway API does not take",
            agent("  gatewayRoute: {timeout: 1.5s}\n"),
            7,
            "FieldInvalid",
            "Gateway API",
        ),
        ("no tools", object("MCPServer", "t", "  config: {}\n"), 4, "FieldRequired", "runtime"),
    ];
    for (what, text, line, code, words) in wrong {
        let (refused, found) = of(&["-f", "-"], &text);
        assert!(refused, "{what}: {found:#?}");
        let is = |(_, at, of, text): &Finding| *at == line && of == code && text.contains(words);
        assert!(
            found.iter().any(is),
            "{what}, line {line}, {code}, {words}: {:?}",
            found
                .iter()
                .map(|(_, line, code, text)| (line, code, text.chars().take(200).collect::<String>()))
                .collect::<Vec<_>>()
        );
    }
    let taken = [
        ("quantities as numbers", agent("  container: {resources: {limits: {cpu: 1, memory: 1073741824}}}\n")),
        ("hyphens and lower case in a variable", agent("  container: {env: [{name: my-var.x, value: 1x}]}\n")),
        (
            "null lists",
            agent("  mcpServers: null\n  agentNetwork: {access: null}\n  podSpec: {containers: null, volumes: null}\n"),
        ),
        ("model names that are YAML", proxy("    models: ['- a: b', '{x}', 'yes', \"a\\nb: c\"]\n")),
        ("wildcards with and without a provider", proxy("    models: ['*', 'openai/*']\n    provider: openai\n")),
        ("references and dollars in texts", agent("  config: {instructions: '$(AGENT_NAME) $$ $x'}\n")),
        ("a peer that is itself", agent("  agentNetwork: {access: [a, a]}\n")),
    ];
    for (what, text) in taken {
        let (refused, found) = of(&["-f", "-"], &text);
        assert!(!refused, "{what}: {found:#?}");
    }
}

#[test]
fn a_field_that_nobody_knows_is_told_with_what_was_meant() {
    let text = object("Agent", "a", "  modelAPI: m\n  podSpec:\n    contaners: []\n");
    let (_, found) = of(&["-f", "-"], &text);
    assert!(
        found.iter().any(|(_, line, code, text)| *line == 7 && code == "UnknownField" && text.contains("containers")),
        "{found:#?}"
    );
}
