//! `explain` and `validate`: the engine's answer, for people and for programs.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

fn run(arguments: &[&str], input: &str) -> (Exit, String, String) {
    let words = std::iter::once("drawbridge").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = cli.command.run(&mut io);
    let exit = conclude(result, &mut io);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

const AGENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: weather
  namespace: team1
spec:
  template:
    metadata:
      labels:
        kagenti.io/type: agent
    spec:
      containers:
      - name: agent
        image: agent:1
        ports:
        - containerPort: 8000
";

fn explained(more: &[&str], input: &str) -> Value {
    let (exit, out, err) = run(&[&["explain", "-o", "json", "-f", "-"], more].concat(), input);
    assert_eq!(exit, Exit::Ok, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()[0].clone()
}

#[test]
fn the_tree_names_outcome_fields_layers_and_parts() {
    let told = explained(&[], AGENT);
    assert_eq!(told["subject"], "Deployment team1/weather");
    assert_eq!((&told["outcome"], &told["reason"]), (&"injected".into(), &"Injected".into()));
    let fields = told["fields"].as_array().unwrap();
    let image = fields.iter().find(|field| field["name"] == "images.envoyProxy").unwrap();
    assert_eq!(image["layer"], "platform file");
    let parts = told["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["name"] == "envoy-proxy"), "{parts:?}");
    assert!(!told["patch"]["paths"].as_array().unwrap().is_empty());
    assert!(told["filters"].as_array().unwrap().iter().all(|filter| filter["passed"] == true));
}

#[test]
fn a_shadowed_value_is_shown_with_the_layer_that_lost() {
    let defaults = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d\n  namespace: team1\n  labels: {kagenti.io/defaults: \"true\"}\ndata:\n  config.yaml: |\n    mode: proxy-sidecar\n---\n";
    let pod =
        AGENT.replace("      labels:\n", "      annotations: {kagenti.io/authbridge-mode: waypoint}\n      labels:\n");
    let told = explained(&[], &format!("{defaults}{pod}"));
    let fields = told["fields"].as_array().unwrap();
    let mode = fields.iter().find(|field| field["name"] == "mode").unwrap_or_else(|| panic!("{told:#}"));
    assert_eq!((&mode["value"], &mode["layer"]), (&"waypoint".into(), &"Pod annotation".into()));
    assert_eq!(mode["shadowed"][0]["value"], "proxy-sidecar");
}

#[test]
fn what_if_shows_what_would_change_and_nothing_else() {
    for (change, outcome) in [
        ("kagenti.io/inject=disabled", "skipped (OptedOut)"),
        ("kagenti.io/type=", "skipped (NoTypeLabel)"),
        ("globalEnabled=false", "skipped (GlobalDisabled)"),
        ("kagenti-enabled=false", "skipped (NamespaceOptedOut)"),
        ("kagenti.io/authbridge-mode=waypoint", "skipped (ModeWaypoint)"),
        ("images.pullPolicy=Always", "injected (Injected)"),
        ("label:app=x", "injected (Injected)"),
    ] {
        let told = explained(&["--what-if", change], AGENT);
        assert_eq!(told["whatIf"]["outcome"], outcome, "{change}");
        let changes = told["whatIf"]["changes"].as_array().unwrap();
        assert_eq!(changes.is_empty(), change == "label:app=x", "{change}: {changes:?}");
    }
    let told = explained(&["--what-if", "kagenti.io/inject=disabled", "--what-if", "kagenti.io/inject=enabled"], AGENT);
    assert_eq!(told["whatIf"]["outcome"], "injected (Injected)");
}

/// An empty value takes a key of the platform file, or a gate, out: what is built in counts again.
#[test]
fn an_empty_what_if_takes_the_key_out() {
    let config = |name: &str, key: &str, text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kagenti-system}}\ndata:\n  {key}: \"{text}\"\n---\n"
        )
    };
    let off = config("kagenti-feature-gates", "feature-gates.yaml", "globalEnabled: false");
    for change in ["globalEnabled=", "gate:globalEnabled="] {
        let told = explained(&["--what-if", change], &format!("{off}{AGENT}"));
        assert_eq!(
            (&told["reason"], &told["whatIf"]["outcome"]),
            (&"GlobalDisabled".into(), &"injected (Injected)".into())
        );
    }
    let told = explained(&["--what-if", "images.pullPolicy="], AGENT);
    assert_eq!(told["whatIf"]["outcome"], "injected (Injected)");
    let told = explained(&["--what-if", "platform:spire="], AGENT);
    assert_eq!(told["whatIf"]["outcome"], "injected (Injected)");
}

#[test]
fn an_unknown_what_if_is_refused_with_a_suggestion() {
    let (exit, _, err) = run(&["explain", "-f", "-", "--what-if", "injectTool=true"], AGENT);
    assert_eq!(exit, Exit::Usage);
    assert!(err.contains("did you mean injectTools?"), "{err}");
}

#[test]
fn a_what_if_where_no_mapping_stands_is_refused_in_words() {
    let runtime = "---\napiVersion: agent.kagenti.dev/v1alpha1\nkind: AgentRuntime\nmetadata: {name: weather, namespace: team1}\n\
                   spec: {type: agent, trace: text, targetRef: {apiVersion: apps/v1, kind: Deployment, name: weather}}\n";
    let text = AGENT.replace("    metadata:\n      labels:\n        kagenti.io/type: agent\n", "    metadata: text\n");
    for (change, input, says) in [
        (
            "spec.trace.sampling.rate=0.5",
            format!("{AGENT}{runtime}"),
            "above rate in AgentRuntime weather is not a mapping",
        ),
        ("spec.trace.endpoint=http://otel:4317", format!("{AGENT}{runtime}"), "above endpoint in AgentRuntime weather"),
        ("kagenti.io/type=agent", text, "labels of the Pod are not a mapping"),
        ("agent.kagenti.dev/rebuild=1", AGENT.to_owned(), "see drawbridge build explain"),
    ] {
        let (exit, _, err) = run(&["explain", "-f", "-", "--what-if", change], &input);
        assert_eq!(exit, Exit::Usage, "{change}");
        assert!(err.contains(says), "{change}: {err}");
    }
}

#[test]
fn an_injected_workload_is_explained_as_its_controller_would_send_it() {
    let (_, injected, _) = run(&["inject", "-f", "-"], AGENT);
    let (fresh, again) = (explained(&[], AGENT), explained(&[], &injected));
    assert_eq!(fresh["parts"], again["parts"]);
    assert_eq!(again["reason"], "Injected");
}

#[test]
fn nothing_to_explain_is_said() {
    let (exit, _, err) = run(&["explain", "-f", "-"], "kind: Service\n");
    assert_eq!(exit, Exit::Usage);
    assert!(err.contains("nothing that makes Pods"), "{err}");
}

fn findings(input: &str) -> Vec<(u64, String, String)> {
    let (exit, out, err) = run(&["validate", "-o", "json", "-f", "-"], input);
    let list: Vec<Value> = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!(exit == Exit::Findings, !list.is_empty());
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    list.iter().map(|f| (f["line"].as_u64().unwrap(), text(f, "code"), text(f, "text"))).collect()
}

#[test]
fn a_sound_manifest_has_no_findings() {
    assert_eq!(findings(AGENT), []);
}

#[test]
fn findings_have_the_line_of_what_is_wrong() {
    let two = format!("# c\n---\n{}", AGENT.replace("kagenti.io/type: agent", "kagenti.io/typ: agent"));
    let found = findings(&two);
    assert_eq!((found[0].0, found[0].1.as_str()), (12, "Key"), "{found:?}");
    assert!(found[0].2.contains("did you mean kagenti.io/type?"));

    let host = AGENT.replace("    spec:\n      containers", "    spec:\n      hostNetwork: true\n      containers");
    let found = findings(&host);
    assert_eq!((found[0].0, found[0].1.as_str()), (12, "HostNetwork"), "{found:?}");
    assert!(!found[0].2.contains("HostNetwork"), "the code stands beside it: {found:?}");

    let label = AGENT
        .replace("  name: weather\n", "  name: weather\n  labels: {kagenti.io/type: Agent}\n")
        .replace("kagenti.io/type: agent\n    spec", "app: x\n    spec");
    let found = findings(&label);
    assert_eq!((found[0].0, found[0].1.as_str()), (5, "UnknownValue"), "{found:?}");

    let found = findings("a: 1\n---\nb: {\n");
    assert_eq!(found[0].1, "Syntax");
}

#[test]
fn configuration_in_the_input_is_checked_with_its_own_lines() {
    let platform = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-platform-config, namespace: kagenti-system}\ndata:\n  config.yaml: |\n    proxy:\n      prot: 1\n";
    let found = findings(platform);
    assert_eq!((found[0].0, found[0].1.as_str()), (7, "Config"), "{found:?}");
    assert!(found[0].2.contains("port"), "{found:?}");
    let gates = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-feature-gates, namespace: kagenti-system}\ndata:\n  feature-gates.yaml: |\n    globalEnabled: true\n    injectTool: true\n";
    let found = findings(gates);
    assert_eq!((found[0].0, found[0].1.as_str()), (7, "Config"), "{found:?}");
}

#[test]
fn a_cluster_that_is_not_there_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let text = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: u, user: {token: x}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n";
    std::fs::write(&config, text).unwrap();
    let config = config.display().to_string();
    let at = ["--kubeconfig", &config];
    for arguments in
        [&["doctor"][..], &["explain", "pod/x"], &["status"], &["build", "run", "x"], &["build", "logs", "x"]]
    {
        let (exit, _, err) = run(&[arguments, &at].concat(), "");
        assert_eq!(exit, Exit::Unreachable, "{err}");
        // What failed, where, and what next; another way only where there is one.
        for words in
            ["cluster unreachable: https://127.0.0.1:1 gave no answer to GET /", "refused", "kubectl reaches it"]
        {
            assert!(err.contains(words), "{arguments:?}: {words}: {err}");
        }
        assert_eq!(err.contains("-f"), arguments[0] == "explain", "{err}");
    }
    let missing = folder.path().join("nowhere").display().to_string();
    let (exit, _, err) = run(&["build", "cancel", "x", "--kubeconfig", &missing], "");
    assert_eq!(exit, Exit::Usage, "{err}");
    assert!(err.contains("no usable kubeconfig") && err.contains(&missing) && err.contains("get-contexts"), "{err}");
    let (exit, _, err) = run(&["build", "cancel", "x", "--kubeconfig", &config, "--context", "other"], "");
    assert_eq!(exit, Exit::Usage, "{err}");
    assert!(err.contains("no usable kubeconfig") && err.contains("other"), "{err}");
}

const KAGENTI: &str = "apiVersion: agent.kagenti.dev/v1alpha1
kind: Agent
metadata:
  name: weather
  labels: {kagenti.io/type: agent}
spec:
  imageSource: {image: agent:1}
  podTemplateSpec:
    spec:
      containers:
      - name: agent
        ports:
        - containerPort: 8000
";
const BEEAI: &str = "apiVersion: beeai.dev/v1
kind: Agent
metadata:
  name: weather
  labels: {kagenti.io/type: agent}
spec: {image: 'agent:1'}
";

/// Pods of an Agent's manifest are judged as those of the Deployment that a controller makes of it.
#[test]
fn pods_of_an_agent_in_a_manifest_are_explained_without_its_deployment() {
    for agent in [KAGENTI, BEEAI] {
        let told = explained(&["-n", "team1"], agent);
        let seen = (&told["subject"], &told["outcome"], &told["refused"]);
        assert_eq!(seen, (&"Deployment team1/weather".into(), &"injected".into(), &Value::Null), "{told}");
        let notes = told["notes"].to_string();
        assert!(notes.contains("Agent team1/weather: a controller makes this Deployment of it"), "{notes}");
        // The account that comes with the Agent is the Agent's own, and nobody's in the way.
        assert!(!told.to_string().contains("ServiceAccountConflict"), "{told}");
        let what_if = explained(&["-n", "team1", "--what-if", "kagenti.io/inject=disabled"], agent);
        assert!(what_if["whatIf"]["outcome"].as_str().unwrap().starts_with("skipped"), "{what_if}");
        // With the Deployment beside it, the Deployment itself counts.
        let both = format!("{}---\n{agent}", AGENT.replace("        image: agent:1\n", "        image: other:1\n"));
        let (exit, out, err) = run(&["explain", "-o", "json", "-f", "-", "-n", "team1"], &both);
        assert_eq!(
            (exit, serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().len()),
            (Exit::Ok, 1),
            "{err}"
        );
    }
}

#[test]
fn an_agent_that_the_webhook_refuses_or_nobody_serves_is_told_so() {
    let refused = KAGENTI.replace("      - name: agent\n", "      - name: Agent_1\n");
    let (exit, out, err) = run(&["explain", "-f", "-"], &refused);
    assert_eq!(exit, Exit::Findings, "{out}{err}");
    assert!(out.contains("the webhook refuses it") && out.contains("containers[0].name"), "{out}");
    let off = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-platform-config, namespace: kagenti-system}\n\
        data: {config.yaml: 'beeai: {enabled: false}'}\n";
    let (exit, out, err) = run(&["explain", "-f", "-"], &format!("{BEEAI}{off}"));
    assert_eq!((exit, &*out), (Exit::Usage, ""), "{err}");
    assert!(err.contains("Agent default/weather of beeai.dev: no Deployment is made of it"), "{err}");
    let (exit, _, err) = run(&["explain", "-f", "-"], &KAGENTI.replace("  name: weather\n", ""));
    assert!(exit == Exit::Usage && err.contains("give it metadata.name"), "{err}");
}

/// What would become of an Agent's Pods `validate` says, too, at the line of the Agent's own template.
#[test]
fn pods_of_an_agent_that_would_be_refused_are_a_finding() {
    let (exit, out, err) = run(&["validate", "-f", "-"], KAGENTI);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    let taken = KAGENTI.replace("containerPort: 8000", "containerPort: 15123");
    let (exit, out, err) = run(&["validate", "-f", "-"], &taken);
    assert_eq!(exit, Exit::Findings, "{out}{err}");
    assert!(out.contains("-:13: error: PortCollision: Deployment default/weather: "), "{out}");
}

/// The quick start's option 1.
const OPTION_1: &str = include_str!("../../manifests/samples/weather-agent-runtime.yaml");

#[test]
fn the_quick_starts_agent_runtime_is_valid_and_its_deployment_explained_with_it() {
    let (exit, out, err) = run(&["validate", "-f", "-"], OPTION_1);
    assert_eq!(exit, Exit::Ok, "{out}{err}");
    let told = explained(&[], OPTION_1);
    assert_eq!((&told["subject"], &told["reason"]), (&"Deployment default/weather-agent".into(), &"Injected".into()));
}

/// An AgentRuntime of 11 lines and the lines of its fields.
const RUNTIME: &str = "apiVersion: agent.kagenti.dev/v1alpha1
kind: AgentRuntime
metadata:
  name: runtime
  namespace: team1
spec:
  type: agent
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: weather
";

/// AGENT without its own label.
fn plain() -> String {
    AGENT.replace("      labels:\n        kagenti.io/type: agent\n", "      labels:\n        app: weather\n")
}

#[test]
fn what_is_wrong_with_an_agent_runtime_is_found_with_its_line() {
    let add = |more: &str| format!("{RUNTIME}{more}");
    for (runtime, finding) in [
        (
            add("  authbridgemode: waypoint\n"),
            "-:12: warning: UnknownField: spec.authbridgemode: the API server knows no such field and drops it; did you mean authBridgeMode?",
        ),
        (
            add("  trace:\n    sampling: {rate: 2}\n"),
            "-:13: error: InvalidSpec: AgentRuntime team1/runtime: spec.trace.sampling.rate",
        ),
        (
            add("  trace:\n    sampling: {rat: 1}\n"),
            "-:13: warning: UnknownField: spec.trace.sampling.rat: the API server knows no such field and drops it; did you mean rate?",
        ),
        (
            add("  trace:\n    protocol: udp\n"),
            "-:13: error: InvalidSpec: AgentRuntime team1/runtime: spec.trace.protocol: grpc or http is expected (udp was found)",
        ),
        (
            add("  authBridgeMode: \"\"\n"),
            "-:12: error: InvalidSpec: spec.authBridgeMode: the API server refuses an empty value; leave the field out, or write",
        ),
        (add("  trace:\n    protocol: ''\n"), "-:13: error: InvalidSpec: spec.trace.protocol: the API server refuses"),
        (add("  trace: off\n"), "-:12: error: UnknownField: spec.trace: a mapping is expected"),
        (add("  identity:\n    spiffe:\n      trustDomain: -bad-\n"), "-:14: error: InvalidSpec: "),
        (add("  authBridgeMode: lite\n"), "-:12: error: ModeNotAvailable: "),
        (
            RUNTIME.replace("type: agent", "type: service"),
            "-:7: error: InvalidSpec: AgentRuntime team1/runtime: spec.type",
        ),
        (RUNTIME.replace("kind: Deployment", "kind: Deploiment"), "-:10: error: UnsupportedTarget: "),
        (RUNTIME.replace("apps/v1", "extensions/v1beta1"), "error: UnsupportedTarget: "),
        (
            RUNTIME.replace("name: weather", "name: \"\""),
            "-:11: error: InvalidSpec: AgentRuntime team1/runtime: spec.targetRef.name: a string that is not empty is expected (an empty \
             string was found)",
        ),
        (
            RUNTIME.replace("name: weather", "name: whether"),
            "-:11: warning: TargetNotFound: AgentRuntime team1/runtime: Deployment team1/whether is not in the input",
        ),
        (
            RUNTIME.replace("v1alpha1", "v1"),
            "-:1: error: UnknownField: apiVersion: version v1 does not exist; there is v1alpha1",
        ),
    ] {
        let (exit, out, err) = run(&["validate", "-f", "-"], &format!("{runtime}---\n{}", plain()));
        assert_eq!(exit, Exit::Findings, "{runtime}{out}{err}");
        assert!(out.contains(finding), "{finding}\n{out}");
    }
}

#[test]
fn an_agent_runtime_without_its_target_and_two_for_one_are_findings() {
    let (exit, out, _) = run(&["validate", "-f", "-"], RUNTIME);
    assert_eq!(exit, Exit::Findings);
    assert!(out.contains("TargetNotFound"), "{out}");
    let both = format!("{RUNTIME}---\n{}---\n{}", RUNTIME.replace("name: runtime", "name: another"), plain());
    let (exit, out, _) = run(&["validate", "-f", "-"], &both);
    assert_eq!(exit, Exit::Findings);
    let says = "-:8: error: DuplicateTarget: AgentRuntime team1/runtime: AgentRuntime another points at Deployment team1/weather, too";
    assert!(out.contains(says) && out.matches("DuplicateTarget").count() == 1, "{out}");
}

#[test]
fn a_label_on_the_workload_alone_is_no_finding_when_an_agent_runtime_enrols_it() {
    let labelled = plain().replace("  namespace: team1\n", "  namespace: team1\n  labels: {kagenti.io/type: agent}\n");
    let platform = platform_without_labels();
    let (exit, out, _) = run(&["validate", "--platform-file", platform.to_str().unwrap(), "-f", "-"], &labelled);
    assert!(exit == Exit::Findings && out.contains("NoTypeLabel"), "{out}");
    let (exit, out, _) = run(&["validate", "-f", "-"], &format!("{RUNTIME}---\n{labelled}"));
    assert_eq!(exit, Exit::Ok, "{out}");
    let contradicts = labelled.replace("type: agent", "type: tool");
    let (exit, out, _) = run(&["validate", "-f", "-"], &format!("{RUNTIME}---\n{contradicts}"));
    assert!(exit == Exit::Findings && out.contains("-:7: warning: LabelConflict"), "{out}");
}

#[test]
fn an_agent_runtime_is_the_strongest_layer_and_its_fields_can_be_tried() {
    let runtime = format!("{RUNTIME}  authBridgeMode: proxy-sidecar\n");
    let told = explained(&[], &format!("{runtime}---\n{}", plain()));
    let fields = told["fields"].as_array().unwrap();
    let mode = fields.iter().find(|field| field["name"] == "mode").unwrap();
    assert_eq!((&mode["value"], &mode["layer"]), (&"proxy-sidecar".into(), &"AgentRuntime runtime".into()));

    let governed = format!("{RUNTIME}---\n{}", plain());
    for (input, change, outcome, touches) in [
        (&governed, "spec.authBridgeMode=waypoint", "skipped (ModeWaypoint)", "fields.mode.value"),
        (&governed, "spec.type=tool", "skipped (ToolsDisabled)", "outcome"),
        (&governed, "spec.trace.endpoint=http://collector:4317", "injected (Injected)", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (&governed, "spec.identity.spiffe.trustDomain=example.org", "injected (Injected)", "example.org"),
        (&plain(), "spec.type=agent", "injected (Injected)", "outcome"),
    ] {
        let told = explained(&["--spire-driver", "--what-if", change], input);
        assert_eq!(told["whatIf"]["outcome"], outcome, "{change}: {:#}", told["whatIf"]);
        let changes = told["whatIf"]["changes"].to_string();
        assert!(changes.contains(touches), "{change}: {changes}");
    }
    let (exit, _, err) = run(&["explain", "-f", "-", "--what-if", "spec.trace.protocol=udp"], &governed);
    assert!(exit == Exit::Usage && err.contains("grpc or http is expected"), "{err}");
    let (exit, _, err) = run(&["explain", "-f", "-", "--what-if", "spec.authbridgemode=waypoint"], &governed);
    assert!(exit == Exit::Usage && err.contains("did you mean spec.authBridgeMode?"), "{err}");
}

#[test]
fn a_setting_of_pods_on_the_workload_itself_is_a_finding() {
    let marked = AGENT.replace(
        "  name: weather\n",
        "  name: weather\n  labels:\n    kagenti.io/inject: disabled\n  annotations:\n    kagenti.io/authbridge-mode: waypoint\n    other: x\n",
    );
    let found = findings(&marked);
    assert_eq!(
        found.iter().map(|(line, code, _)| (*line, code.as_str())).collect::<Vec<_>>(),
        [(6, "Key"), (8, "Key")]
    );
    assert!(found[0].2.contains("is on the Deployment and not on its Pod template"), "{found:?}");
    assert!(found[1].2.ends_with("move it to spec.template.metadata.annotations"), "{found:?}");
    let both =
        marked.replace("        kagenti.io/type", "        kagenti.io/inject: disabled\n        kagenti.io/type");
    assert_eq!(findings(&both).len(), 1, "the label is on both");
}

#[test]
fn a_misspelt_key_hides_no_warning_of_the_next_document() {
    let defaults = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: authbridge-runtime-config, namespace: team1}\ndata:\n  config.yaml: \"mode: bogus\"\n---\n";
    let alone = findings(&format!("{defaults}{AGENT}"));
    let misspelt = AGENT.replace("kagenti.io/type: agent", "kagenti.io/typ: agent");
    let after = findings(&format!("{defaults}{misspelt}---\n{AGENT}"));
    assert!(alone.iter().any(|(_, code, _)| code == "UnknownMode"), "{alone:?}");
    assert!(after.iter().any(|(_, code, _)| code == "UnknownMode"), "{after:?}");
}

#[test]
fn a_namespaces_configuration_is_judged_without_a_workload_beside_it() {
    let config_map = |name: &str, label: &str, content: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: team1\n  labels: {{kagenti.io/defaults: {label}}}\ndata:\n  config.yaml: |\n    {content}\n"
        )
    };
    for (name, content, code, word) in [
        ("mine", "foo: 1", "NamespaceConfigUnreadable", "foo"),
        ("mine", "images: {envoyProxy: mirror/e}", "OverrideNotAllowed", "images.envoyProxy"),
        ("authbridge-runtime-config", "mode: proxy_sidecar", "UnknownMode", "proxy_sidecar"),
    ] {
        let found = findings(&config_map(name, "\"true\"", content));
        assert!(found.iter().any(|(line, seen, text)| *line == 9 && seen == code && text.contains(word)), "{found:?}");
    }
    assert_eq!(findings(&config_map("mine", "\"true\"", "mode: proxy-sidecar")), []);
    // A label without its quotes is no label.
    let found = findings(&config_map("mine", "true", "mode: proxy-sidecar"));
    assert!(matches!(&found[..], [(6, code, text)] if code == "Undecodable" && text.contains("quotes")), "{found:?}");
}

#[test]
fn a_kind_that_is_nearly_ours_and_labels_of_a_job_template_are_told() {
    let found = findings(&RUNTIME.replace("kind: AgentRuntime", "kind: Agentruntime"));
    assert!(
        found.iter().any(|(_, code, text)| code == "UnknownKind" && text.ends_with("did you mean AgentRuntime?")),
        "{found:?}"
    );
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  jobTemplate:\n    metadata:\n      labels:\n        kagenti.io/type: agent\n    spec: {template: {spec: {containers: [{name: c, image: i}]}}}\n";
    let found = findings(cron);
    assert!(
        matches!(&found[..], [(8, code, text)] if code == "Key" && text.contains("on the Job template of the CronJob")),
        "{found:?}"
    );
}

#[test]
fn what_if_sees_a_change_inside_a_sidecar() {
    for (change, path) in [
        ("kagenti.io/inbound-ports-exclude=9000", "parts.initContainer.proxy-init.env.INBOUND_PORTS_EXCLUDE.value"),
        ("kagenti.io/outbound-ports-exclude=5432", "parts.initContainer.proxy-init.env.OUTBOUND_PORTS_EXCLUDE.value"),
    ] {
        let told = explained(&["--what-if", change], AGENT);
        let changes = told["whatIf"]["changes"].as_array().unwrap();
        assert!(changes.iter().any(|changed| changed["path"] == path), "{change}: {changes:?}");
    }
    let (exit, _, err) = run(&["explain", "-f", "-", "--what-if", "mode=bogus"], AGENT);
    assert!(exit == Exit::Usage && err.contains("--what-if mode=bogus: "), "{err}");
}

#[test]
fn what_an_agent_runtime_has_to_do_with_a_label_is_told() {
    let notes = |workload: &str| explained(&[], &format!("{RUNTIME}---\n{workload}"))["notes"].to_string();
    let given = notes(&plain());
    assert!(
        given.contains("AgentRuntime runtime governs it, and gives its Pods label kagenti.io/type=agent"),
        "{given}"
    );
    let other = notes(&AGENT.replace("type: agent", "type: tool"));
    assert!(
        other.contains("LabelConflict: AgentRuntime runtime has no effect: Deployment team1/weather carries"),
        "{other}"
    );
    assert!(!notes(AGENT).contains("AgentRuntime"), "the user's own label says the same");
}

/// A platform file under which labels on workloads themselves are for discovery alone.
fn platform_without_labels() -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("labels-{:?}.yaml", std::thread::current().id()));
    let text = "images: {envoyProxy: e, proxyInit: i, spiffeHelper: s, clientRegistration: r}\nenrolment: {byWorkloadLabel: false}\n";
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn mend_17_a_label_on_the_workload_itself_enrols_offline_as_on_a_cluster() {
    let labelled = plain().replace("  namespace: team1\n", "  namespace: team1\n  labels: {kagenti.io/type: agent}\n");
    let (exit, out, _) = run(&["validate", "-f", "-"], &labelled);
    assert_eq!(exit, Exit::Ok, "{out}");
    let told = explained(&[], &labelled);
    assert_eq!(told["reason"], "Injected");
    assert!(told["notes"].to_string().contains("on the Deployment itself enrols it"), "{told:#}");
    let odd = labelled.replace("type: agent", "type: Agent");
    let (exit, out, _) = run(&["validate", "-f", "-"], &odd);
    assert!(exit == Exit::Findings && out.contains("UnknownValue") && out.contains("agent or tool"), "{out}");
    assert!(explained(&[], &odd)["notes"].to_string().contains("enrols nothing"));

    let (_, injected, err) = run(&["inject", "-f", "-"], &labelled);
    assert!(injected.contains("envoy-proxy") && injected.contains("kagenti.io/config-hash"), "{injected}{err}");
    assert!(!injected.contains("kagenti.io/managed-by"), "{injected}");
    assert_eq!(run(&["inject", "-f", "-"], &injected).1, injected, "twice as once");
    let (_, back, _) = run(&["uninject", "-f", "-"], &injected);
    let parsed = |text: &str| drawbridge::api::yaml::parse(text).unwrap().to_json();
    assert_eq!(parsed(&back), parsed(&labelled), "and back");

    let platform = platform_without_labels();
    let (_, same, _) = run(&["inject", "--platform-file", platform.to_str().unwrap(), "-f", "-"], &labelled);
    assert_eq!(same, labelled, "the platform leaves such labels to discovery");
}
