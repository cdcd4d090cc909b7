//! `validate` on its own: keys and values with their words, and input that holds nothing.

use clap::Parser;
use serde_json::{Value, json};

use crate::cli::io::Io;
use crate::cli::{Cli, Exit, conclude};

fn run(path: &str, input: &str) -> (Exit, String, String) {
    let cli = Cli::try_parse_from(["drawbridge", "validate", "-o", "json", "-f", path]).unwrap();
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = cli.command.run(&mut io);
    let exit = conclude(result, &mut io);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// Code and text of what is found in one object.
fn found(object: &Value) -> Vec<(String, String)> {
    let (_, out, err) = run("-", &object.to_string());
    let list: Vec<Value> = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    list.iter().map(|finding| (text(finding, "code"), text(finding, "text"))).collect()
}

fn has(found: &[(String, String)], code: &str, words: &str) -> bool {
    found.iter().any(|(seen, text)| seen == code && text.contains(words))
}

#[test]
fn a_misspelt_enrolment_of_what_a_deployment_is_made_for_is_told() {
    let marks = json!({
        "name": "a", "namespace": "team1", "labels": {"kagenti.io/type": "agnet", "kagenti.io/injekt": "disabled"},
        "annotations": {"kagenti.io/authbridge-mode": "foo"},
    });
    for (api, kind) in [
        ("agent.kagenti.dev/v1alpha1", "Agent"),
        ("beeai.dev/v1", "Agent"),
        ("beeai.beeai.dev/v1", "Agent"),
        ("kaos.tools/v1alpha1", "Agent"),
        ("kaos.tools/v1alpha1", "ModelAPI"),
        ("kaos.tools/v1alpha1", "MCPServer"),
    ] {
        let seen = found(&json!({"apiVersion": api, "kind": kind, "metadata": marks, "spec": {}}));
        assert!(has(&seen, "UnknownValue", "did you mean agent?"), "{api} {kind}: {seen:?}");
        assert!(has(&seen, "UnknownMode", "kagenti.io/authbridge-mode"), "{api} {kind}: {seen:?}");
        assert!(has(&seen, "Key", "did you mean kagenti.io/inject?"), "{api} {kind}: {seen:?}");
    }
    let of_template = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "team1"},
        "spec": {"podTemplateSpec": {"metadata": {
            "labels": {"kagenti.io/type": "agnet"}, "annotations": {"kagenti.io/authbridge-mode": "foo"},
        }}},
    });
    let seen = found(&of_template);
    assert!(has(&seen, "UnknownValue", "agnet") && has(&seen, "UnknownMode", "foo"), "{seen:?}");
}

#[test]
fn what_is_read_of_an_agent_itself_is_no_setting_that_went_astray() {
    let agent = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent",
        "metadata": {"name": "a", "namespace": "team1", "labels": {"kagenti.io/type": "agent"}, "annotations": {
            "agent.kagenti.dev/replicas-managed-externally": "true", "agent.kagenti.dev/secrets-by-consent": "s",
            "kagenti.io/port": "8000",
        }},
        "spec": {},
    });
    let seen = found(&agent);
    assert!(seen.iter().all(|(code, _)| !["Key", "UnknownValue"].contains(&code.as_str())), "{seen:?}");
    // A build carries nothing for Pods that run.
    let build = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
        "metadata": {"name": "a", "namespace": "team1", "annotations": {"agent.kagenti.dev/rebuild": "1"}}, "spec": {},
    });
    let seen = found(&build);
    assert!(!has(&seen, "Key", ""), "{seen:?}");
}

#[test]
fn a_value_that_means_nothing_has_its_own_word_and_is_told_once() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "team1"},
        "spec": {"template": {
            "metadata": {"labels": {"kagenti.io/type": "agent", "kagenti.io/inject": "no"}, "annotations": {
                "kagenti.io/authbridge-mode": "envoy-sidecart", "kagenti.io/outbound-ports-exclude": "80,x",
            }},
            "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
        }},
    });
    let seen = found(&deployment);
    for (code, words) in [
        ("UnknownValue", "values are disabled, enabled"),
        ("UnknownMode", "did you mean envoy-sidecar?"),
        ("PortDropped", "x is not a port"),
    ] {
        assert!(has(&seen, code, words), "{code}: {seen:?}");
        assert_eq!(seen.iter().filter(|(seen, _)| seen == code).count(), 1, "{code}: {seen:?}");
    }
    assert!(!has(&seen, "Key", ""), "{seen:?}");
    let mut misspelt = deployment;
    misspelt["spec"]["template"]["metadata"] =
        json!({"labels": {"kagenti.io/type": "agent", "kagenti.io/injekt": "disabled"}});
    assert!(has(&found(&misspelt), "Key", "did you mean kagenti.io/inject?"));
}

#[test]
fn a_level_of_trust_that_there_is_not_is_told() {
    let namespace = |level: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team1", "labels": {"agent.kagenti.dev/trust": level}}});
    let seen = found(&namespace("enforce"));
    assert!(has(&seen, "UnknownValue", "did you mean enforced?"), "{seen:?}");
    assert_eq!(found(&namespace("enforced")), []);
}

#[test]
fn a_folder_without_manifests_is_refused_and_a_stream_without_documents_is_not() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "a: 1").unwrap();
    let path = folder.path().display().to_string();
    let (exit, out, err) = run(&path, "");
    assert_eq!((exit, &*out), (Exit::Usage, ""), "{err}");
    assert!(err.contains(&path) && err.contains("has no .yaml, .yml or .json"), "{err}");
    // As `inject`, to which a chart that renders nothing is none of a mistake.
    assert_eq!(run("-", "# nothing\n").0, Exit::Ok);
}

/// An Agent of kagenti without a label of its own.
fn agent() -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "weather", "namespace": "team1"},
        "spec": {"imageSource": {"image": "agent:1"}, "podTemplateSpec": {"spec": {
            "containers": [{"name": "agent", "ports": [{"containerPort": 8000}]}]}}},
    })
}

#[test]
fn an_agent_runtime_may_point_at_the_deployment_that_is_made_of_an_agent() {
    let runtime = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "r", "namespace": "team1"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"}},
    });
    let mut elsewhere = agent();
    elsewhere["metadata"]["namespace"] = json!("team2");
    for (agent, there) in [(agent(), true), (elsewhere, false), (json!({"kind": "Nothing"}), false)] {
        let seen = found(&json!({"apiVersion": "v1", "kind": "List", "items": [runtime, agent]}));
        assert_eq!(!has(&seen, "TargetNotFound", "Deployment team1/weather"), there, "{agent}: {seen:?}");
    }
}

/// A key `spec.type` is no member of `spec`: it is not called by that member's name, and no word about that one stands for it.
#[test]
fn a_key_with_a_dot_is_told_as_one_key() {
    let mut agent = agent();
    agent["spec.replicas"] = json!(3);
    let runtime = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "r", "namespace": "team1"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"}}, "spec.type": "agent",
    });
    for (object, words) in [(agent, "Agent weather: [spec.replicas]: "), (runtime, "[spec.type]: ")] {
        let seen = found(&object);
        assert!(has(&seen, "UnknownField", &format!("{words}the API server knows no such field")), "{seen:?}");
    }
}

/// Readers of YAML take them for numbers and booleans, and the API server reads no object that is called so.
#[test]
fn names_that_are_no_text_are_told_as_they_were_written() {
    for kind in ["Service", "Pod"] {
        for (written, says) in [
            ("name: 123", "metadata.name must be a string; put 123 in quotes"),
            ("name: on", "metadata.name must be a string; put on in quotes"),
            ("generateName: 0x1F", "metadata.generateName must be a string; put 0x1F in quotes"),
            ("name: a\n  namespace: 007", "metadata.namespace must be a string; put 007 in quotes"),
            ("name: [a]", "metadata.name must be a string; a list was found"),
        ] {
            let (exit, out, err) = run("-", &format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  {written}\n"));
            assert_eq!(exit, Exit::Findings, "{kind} {written}: {err}");
            assert!(out.contains(says) && out.contains("\"Undecodable\""), "{kind} {written}: {out}");
        }
        let quoted = format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: \"123\", namespace: 'on'}}\n");
        assert!(!run("-", &quoted).1.contains("in quotes"), "{kind}");
    }
    let labelled = "apiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {app: yes}}\n";
    let (_, out, _) = run("-", labelled);
    assert!(out.contains("metadata.labels[app] must be a string; put yes in quotes"), "{out}");
}

/// No other check looks at them, so that they passed for manifests in order.
#[test]
fn a_workload_of_a_type_that_no_api_server_knows_is_a_finding_with_the_line_of_the_field() {
    for (head, line, says) in [
        (
            "apiVersion: extensions/v1beta1\nkind: Deployment",
            1,
            "apiVersion: the API server knows no Deployment of extensions/v1beta1;",
        ),
        (
            "apiVersion: apps/v1\nkind: deployment",
            2,
            "kind: the API server knows no deployment of apps/v1; write kind: Deployment",
        ),
        ("apiVersion: v1\nkind: AgentRuntime", 1, "did you mean agent.kagenti.dev/v1alpha1?"),
    ] {
        let (exit, out, err) = run("-", &format!("{head}\nmetadata: {{name: a}}\n"));
        assert_eq!(exit, Exit::Findings, "{head}: {err}");
        let found: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (found.len(), &found[0]["code"], &found[0]["line"]),
            (1, &json!("UnknownKind"), &json!(line)),
            "{out}"
        );
        assert!(found[0]["text"].as_str().is_some_and(|text| text.contains(says)), "{out}");
    }
    // A type of somebody else, and a file that says of no version that it is: values of a chart may have such a word.
    for head in ["apiVersion: example.com/v1\nkind: Deployment", "kind: Deployment"] {
        assert_eq!(run("-", &format!("{head}\nmetadata: {{name: a}}\n")).0, Exit::Ok, "{head}");
    }
}

#[test]
fn standard_input_is_no_two_things_at_once() {
    let words = ["drawbridge", "validate", "-f", "-", "--cluster-objects", "-"];
    let cli = Cli::try_parse_from(words).unwrap();
    let (mut stdin, mut out, mut err) = (&b"kind: [\n"[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let ran = cli.command.run(&mut io);
    assert_eq!(conclude(ran, &mut io), Exit::Usage);
    assert!(out.is_empty() && String::from_utf8_lossy(&err).contains("named twice"), "{out:?} {err:?}");
}

/// Nothing of them reaches an agent namespace, and they passed for content that does.
#[test]
fn binary_data_of_a_template_is_told() {
    let template = |name: &str, namespace: &str, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data,
            "binaryData": {"logo.png": "//4="}})
    };
    let texts = || json!({"envoy.yaml": "a: 1"});
    for (object, says) in [
        (template("envoy-config", "kagenti-system", texts()), Some("in binaryData (logo.png) reaches none of them")),
        (template("envoy-config", "kagenti-system", json!({})), Some("has its keys in binaryData, which is not read")),
        (template("mine", "kagenti-system", texts()), None),
        (template("envoy-config", "team1", texts()), None),
    ] {
        let seen = found(&object);
        match says {
            Some(says) => assert!(has(&seen, "NamespaceConfigUnreadable", says), "{object}: {seen:?}"),
            None => assert!(seen.iter().all(|(_, text)| !text.contains("binaryData")), "{object}: {seen:?}"),
        }
    }
}

/// Whatever is no object among the items of a List was passed over without a word.
#[test]
fn items_that_are_no_objects_are_findings() {
    let input =
        "apiVersion: v1\nkind: List\nitems:\n- text\n- {apiVersion: v1, kind: Service, metadata: {name: a}}\n- [1]\n";
    let (exit, out, err) = run("-", input);
    let found: Vec<Value> = serde_json::from_str(&out).unwrap();
    let lines: Vec<_> = found.iter().map(|finding| (&finding["code"], &finding["line"])).collect();
    assert_eq!(exit, Exit::Findings, "{err}");
    assert_eq!(lines, [(&json!("Syntax"), &json!(4)), (&json!("Syntax"), &json!(6))], "{out}");
}

/// kubectl reads nothing of them, and they passed for documents in order.
#[test]
fn a_document_that_is_no_object_is_a_finding() {
    let pod = "apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n";
    for (input, line, says) in [
        (format!("- {pod}- {pod}"), 1, "an object is expected and a list was found; write each of its objects"),
        ("a: 1\n---\n[{}]\n".to_owned(), 3, "an object is expected and a list was found"),
        ("just text\n".to_owned(), 1, "an object is expected and a string was found"),
    ] {
        let (exit, out, err) = run("-", &input);
        assert_eq!(exit, Exit::Findings, "{input}{err}");
        let found: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!((found.len(), &found[0]["code"], &found[0]["line"]), (1, &json!("Syntax"), &json!(line)), "{out}");
        assert!(found[0]["text"].as_str().is_some_and(|text| text.contains(says)), "{out}");
    }
}
