//! `inject` and `uninject` as people use them: bytes in, bytes out.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::yaml::tree;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

struct Ran {
    exit: Exit,
    out: String,
    err: String,
}

fn run(arguments: &[&str], input: &str) -> Ran {
    let words = std::iter::once("drawbridge").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = cli.command.run(&mut io);
    let exit = conclude(result, &mut io);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").filter_map(|text| tree::parse(text).unwrap()).map(|node| node.to_json()).collect()
}

const FOREIGN: &str = "# who made this\n---\napiVersion:   v1   # odd spacing\nkind: Service\nmetadata: {name: x}\n";

fn workload(kind: &str, template: &str) -> String {
    let (api, indent) = match kind {
        "Job" => ("batch/v1", 4),
        "CronJob" => ("batch/v1", 8),
        _ => ("apps/v1", 4),
    };
    let pad = " ".repeat(indent);
    let body: String = template.lines().map(|line| format!("{pad}{line}\n")).collect();
    let above = if kind == "CronJob" {
        "spec:\n  schedule: \"* * * * *\"\n  jobTemplate:\n    spec:\n      template:\n"
    } else {
        "spec:\n  template:\n"
    };
    format!(
        "---\n# ours\napiVersion: {api}\nkind: {kind}\nmetadata:\n  name: weather\n  namespace: team1\n{above}{body}"
    )
}

const AGENT: &str = "metadata:\n  labels:\n    kagenti.io/type: agent\nspec:\n  containers:\n  - name: agent\n    image: agent:1\n    ports:\n    - containerPort: 8000\n";

const KINDS: &[&str] = &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];

#[test]
fn every_kind_is_injected_in_its_template_and_neighbours_stay_as_they_are() {
    for kind in KINDS {
        let input = format!("{FOREIGN}{}", workload(kind, AGENT));
        let ran = run(&["inject", "-f", "-"], &input);
        assert_eq!(ran.exit, Exit::Ok, "{kind}: {}", ran.err);
        assert!(ran.out.starts_with(FOREIGN), "{kind}: the Service changed:\n{}", ran.out);
        assert!(ran.out.contains("---\n# ours\napiVersion:"), "{kind}: the comment ahead of the document is gone");
        assert!(ran.out.contains("name: envoy-proxy"), "{kind}: {}\n{}", ran.err, ran.out);
        assert!(ran.err.contains(&format!("{kind} team1/weather  injected (Injected)")), "{}", ran.err);
    }
}

#[test]
fn injecting_twice_gives_the_same_bytes() {
    for kind in KINDS {
        for flags in [&["inject", "-f", "-"][..], &["inject", "-f", "-", "--spire-driver", "--server-version", "1.36"]]
        {
            let once = run(flags, &workload(kind, AGENT));
            let twice = run(flags, &once.out);
            assert_eq!(once.out, twice.out, "{kind}");
            assert!(twice.err.contains("AlreadyInjected"), "{kind}: {}", twice.err);
        }
    }
}

#[test]
fn uninject_takes_out_exactly_what_inject_put_in() {
    let odd = "metadata:\n  labels: {kagenti.io/type: agent}\n  annotations: {team: a}\nspec:\n  initContainers:\n  - {name: setup, image: i}\n  \
               serviceAccountName: own\n  securityContext: {fsGroup: 7}\n  volumes: [{name: tmp, emptyDir: {}}]\n  containers:\n  - {name: agent, image: a, env: [{name: A, value: \"1\"}]}\n";
    for kind in KINDS {
        for template in [AGENT, odd] {
            for more in [&[][..], &["--spire-driver"]] {
                let input = workload(kind, template);
                let injected = run(&[&["inject", "-f", "-"], more].concat(), &input);
                assert_ne!(injected.out, input, "{kind}: {}", injected.err);
                let back = run(&["uninject", "-f", "-"], &injected.out);
                assert_eq!(back.exit, Exit::Ok);
                assert_eq!(documents(&back.out), documents(&input), "{kind} {more:?}");
            }
        }
    }
}

#[test]
fn a_service_account_that_a_controller_makes_is_told_and_not_written() {
    let ran = run(&["inject", "-f", "-", "--spire-driver"], &workload("Deployment", AGENT));
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    assert!(ran.err.contains("a controller makes ServiceAccount team1/weather"), "{}", ran.err);
    assert!(ran.out.contains("serviceAccountName: weather"), "{}", ran.out);
    assert!(!ran.out.contains("kind: ServiceAccount"));
}

#[test]
fn objects_of_the_stream_shape_the_decision() {
    let foreign = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weather, namespace: team1}\n";
    let ran = run(&["inject", "-f", "-", "--spire-driver"], &format!("{foreign}{}", workload("Deployment", AGENT)));
    assert_eq!(ran.exit, Exit::Findings, "{}", ran.err);
    assert!(ran.err.contains("denied (ServiceAccountConflict)"), "{}", ran.err);

    let out = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team1, labels: {kagenti-enabled: \"false\"}}\n";
    let input = format!("{out}{}", workload("Deployment", AGENT));
    let ran = run(&["inject", "-f", "-"], &input);
    assert_eq!(ran.out, input, "nothing changes");
    assert!(ran.err.contains("skipped (NamespaceOptedOut)"), "{}", ran.err);

    let gates = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-feature-gates, namespace: kagenti-system}\ndata:\n  feature-gates.yaml: \"globalEnabled: false\"\n";
    let ran = run(&["inject", "-f", "-"], &format!("{gates}{}", workload("Deployment", AGENT)));
    assert!(ran.err.contains("skipped (GlobalDisabled)"), "{}", ran.err);
}

#[test]
fn json_stays_json_and_lists_are_opened() {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
        documents(&workload("Deployment", AGENT))[0],
    ]});
    let ran = run(&["inject", "-f", "-"], &list.to_string());
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(out["items"][0], list["items"][0]);
    assert_ne!(out["items"][1], list["items"][1]);
}

#[test]
fn what_is_not_a_manifest_is_an_error_with_its_line_and_nothing_comes_out() {
    for (input, says) in [("a: 1\n---\nb: [\n", "-:"), ("a: 1\na: 2\n", "-:2"), ("kind: \"\u{1}\n", "-:")] {
        let ran = run(&["inject", "-f", "-"], input);
        assert_eq!(ran.exit, Exit::Usage, "{input:?}");
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(run(&["inject", "-f", "/does/not/exist"], "").exit, Exit::Usage);
}

#[test]
fn streams_without_workloads_come_out_byte_for_byte() {
    for input in
        ["", "\n", "# only\n", FOREIGN, "---\n---\n", "a: 1", "{\"a\":1}\n{\"b\":2}\n", "%YAML 1.2\n---\na: 1\n...\n"]
    {
        assert_eq!(run(&["inject", "-f", "-"], input).out, input);
        assert_eq!(run(&["uninject", "-f", "-"], input).out, input);
    }
}

/// The quick start's option 1 and the workload that comes of it.
const OPTION_1: &str = include_str!("../../manifests/samples/weather-agent-runtime.yaml");

fn found<'d>(documents: &'d [Value], kind: &str) -> &'d Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {documents:?}"))
}

#[test]
fn the_quick_starts_agent_runtime_makes_of_its_deployment_what_the_cluster_would() {
    let ran = run(&["inject", "-f", "-"], OPTION_1);
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let (before, after) = (documents(OPTION_1), documents(&ran.out));
    assert_eq!(found(&before, "Service"), found(&after, "Service"));
    assert_eq!(found(&before, "AgentRuntime"), found(&after, "AgentRuntime"));
    let deployment = found(&after, "Deployment");
    let template = &deployment["spec"]["template"];
    assert_eq!(deployment["metadata"]["labels"]["kagenti.io/type"], "agent");
    assert_eq!(deployment["metadata"]["labels"]["kagenti.io/managed-by"], "drawbridge");
    assert_eq!(template["metadata"]["labels"]["kagenti.io/type"], "agent");
    assert_eq!(template["metadata"]["annotations"]["kagenti.io/config-hash"].as_str().unwrap().len(), 64);
    let sidecars = template["spec"]["initContainers"].as_array().unwrap();
    assert!(sidecars.iter().any(|container| container["name"] == "envoy-proxy"), "{template:#}");
    assert!(ran.err.contains("AgentRuntime default/weather-agent-runtime  enrols (TargetFound)"), "{}", ran.err);
    assert!(ran.err.contains("  Deployment default/weather-agent\n"), "{}", ran.err);

    let twice = run(&["inject", "-f", "-"], &ran.out);
    assert_eq!(twice.out, ran.out, "{}", twice.err);
    let back = run(&["uninject", "-f", "-"], &ran.out);
    assert_eq!(documents(&back.out), before, "{}", back.err);
}

fn runtime(name: &str, target: (&str, &str), more: &str) -> String {
    let (api, kind) = target;
    format!(
        "---\napiVersion: agent.kagenti.dev/v1alpha1\nkind: AgentRuntime\nmetadata: {{name: {name}, namespace: team1}}\nspec:\n  type: agent\n  \
         targetRef: {{apiVersion: {api}, kind: {kind}, name: weather}}\n{more}"
    )
}

/// A template without labels of ours.
const PLAIN: &str = "spec:\n  containers:\n  - name: agent\n    image: agent:1\n";

#[test]
fn every_kind_that_an_agent_runtime_can_point_at_is_enrolled() {
    for (api, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "CronJob"),
        ("agents.x-k8s.io/v1alpha1", "Sandbox"),
    ] {
        let workload = workload(kind, PLAIN)
            .replace("apps/v1", if kind == "Sandbox" { api } else { "apps/v1" })
            .replace("  template:", if kind == "Sandbox" { "  podTemplate:" } else { "  template:" });
        let input = format!("{}{workload}", runtime("weather-runtime", (api, kind), ""));
        let ran = run(&["inject", "-f", "-"], &input);
        assert_eq!(ran.exit, Exit::Ok, "{kind}: {}", ran.err);
        assert!(ran.out.contains("name: envoy-proxy"), "{kind}: {}\n{}", ran.err, ran.out);
        assert!(ran.err.contains(&format!("{kind} team1/weather  injected (Injected)")), "{kind}: {}", ran.err);
        assert_eq!(documents(&run(&["uninject", "-f", "-"], &ran.out).out), documents(&input), "{kind}");
    }
}

#[test]
fn what_is_in_the_way_of_an_agent_runtime_is_told_and_nothing_is_invented() {
    let deployment = workload("Deployment", PLAIN);
    let to = ("apps/v1", "Deployment");
    let labelled = deployment.replace("  name: weather\n", "  name: weather\n  labels: {kagenti.io/type: tool}\n");
    for (input, says, exit) in [
        (runtime("a", to, ""), "AgentRuntime team1/a  waits (TargetNotFound)", Exit::Ok),
        (format!("{}{labelled}", runtime("a", to, "")), "AgentRuntime team1/a  waits (LabelConflict)", Exit::Ok),
        (runtime("a", ("apps/v1", "CronJob"), ""), "AgentRuntime team1/a  denied (UnsupportedTarget)", Exit::Findings),
    ] {
        let ran = run(&["inject", "-f", "-"], &input);
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!((ran.exit, ran.out), (exit, input), "{says}");
    }
    let both = format!("{}{}{deployment}", runtime("b", to, ""), runtime("a", to, ""));
    let ran = run(&["inject", "-f", "-"], &both);
    assert!(ran.err.contains("AgentRuntime team1/a  enrols (TargetFound)"), "{}", ran.err);
    assert!(ran.err.contains("AgentRuntime team1/b  denied (DuplicateTarget)"), "{}", ran.err);
    assert!(ran.out.contains("name: envoy-proxy"), "one of them enrols all the same");
}

#[test]
fn an_agent_runtime_of_a_tool_labels_and_injects_only_where_the_gate_is_on() {
    let runtime = runtime("a", ("apps/v1", "Deployment"), "").replace("type: agent", "type: tool");
    let ran = run(&["inject", "-f", "-"], &format!("{runtime}{}", workload("Deployment", PLAIN)));
    let after = documents(&ran.out);
    let template = &found(&after, "Deployment")["spec"]["template"];
    assert_eq!(template["metadata"]["labels"]["kagenti.io/type"], "tool");
    assert!(template["metadata"]["annotations"]["kagenti.io/config-hash"].is_string(), "as the controller writes it");
    assert_eq!(template["spec"]["initContainers"], Value::Null);
    assert!(ran.err.contains("skipped (ToolsDisabled)"), "{}", ran.err);
}

#[test]
fn the_items_of_typed_lists_are_what_the_list_says_they_are() {
    let pod = serde_json::json!({"metadata": {"name": "p", "labels": {"kagenti.io/type": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "a"}]}});
    let deployment = serde_json::json!({"metadata": {"name": "d"}, "spec": {"template": pod}});
    for (api, kind, item) in [("v1", "PodList", &pod), ("apps/v1", "DeploymentList", &deployment)] {
        let list = serde_json::json!({"apiVersion": api, "kind": kind, "items": [item]});
        let ran = run(&["inject", "-f", "-"], &list.to_string());
        assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
        assert!(ran.out.contains("\"envoy-proxy\"") && !ran.out.contains('\n'), "{kind}: {}", ran.err);
        let out: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(out["items"][0].get("kind"), None, "the list says it");
        assert_eq!(run(&["inject", "-f", "-"], &ran.out).out, ran.out, "{kind}");
        let back: Value = serde_json::from_str(&run(&["uninject", "-f", "-"], &ran.out).out).unwrap();
        assert_eq!(back, list, "{kind}");
    }
}

#[test]
fn a_replication_controller_makes_pods_that_are_injected() {
    let input = workload("Deployment", AGENT).replace("apps/v1", "v1").replace("Deployment", "ReplicationController");
    let ran = run(&["inject", "-f", "-", "--spire-driver"], &input);
    assert!(ran.err.contains("ReplicationController team1/weather  injected (Injected)"), "{}", ran.err);
    assert!(ran.err.contains("ServiceAccountKept"), "{}", ran.err);
    assert_eq!(documents(&run(&["uninject", "-f", "-"], &ran.out).out), documents(&input));
}

#[test]
fn a_name_that_the_api_server_makes_up_gives_nothing_its_name() {
    for kind in KINDS {
        let input = workload(kind, AGENT).replace("  name: weather\n", "  generateName: weather-\n");
        let ran = run(&["inject", "-f", "-", "--spire-driver"], &input);
        assert_eq!(ran.exit, Exit::Ok, "{kind}: {}", ran.err);
        assert!(ran.err.contains(&format!("{kind} team1/weather-  injected (Injected)")), "{}", ran.err);
        assert!(!ran.out.contains("serviceAccountName") && !ran.err.contains("controller makes"), "{}", ran.err);
        // Its kind is known; the name of its account is not.
        assert!(ran.err.contains("set spec.serviceAccountName"), "{}", ran.err);
        assert!(ran.err.contains(&format!("name of this {kind} (metadata.generateName)")), "{}", ran.err);
        assert_eq!(run(&["inject", "-f", "-", "--spire-driver"], &ran.out).out, ran.out);
    }
}

#[test]
fn a_changed_document_keeps_its_line_ends_and_the_digits_of_its_numbers() {
    let input = workload("Deployment", AGENT)
        .replace("spec:\n  template", "spec:\n  future: 0x1F\n  huge: 1234567890123456789012\n  template");
    let ran = run(&["inject", "-f", "-"], &input.replace('\n', "\r\n"));
    assert!(
        ran.out.contains("future: 0x1F\r\n") && ran.out.contains("huge: 1234567890123456789012\r\n"),
        "{}",
        ran.out
    );
    assert_eq!(ran.out.matches('\n').count(), ran.out.matches("\r\n").count());
}

#[test]
fn folders_are_read_without_what_is_hidden_and_not_round_in_circles() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str| std::fs::write(at(name), workload("Deployment", AGENT).replace("weather", "w")).unwrap();
    std::fs::create_dir_all(at("..2024")).unwrap();
    std::fs::create_dir_all(at("sub")).unwrap();
    write("..2024/a.yaml");
    write("sub/b.yml");
    write(".hidden.yaml");
    for (target, link) in
        [("..2024", "..data"), ("..data/a.yaml", "a.yaml"), (".", "sub/loop"), ("nowhere", "x.txt"), ("n", ".#a.yaml")]
    {
        std::os::unix::fs::symlink(target, at(link)).unwrap();
    }
    std::os::unix::fs::symlink(folder.path(), at("sub/up")).unwrap();
    let path = folder.path().display().to_string();
    let ran = run(&["inject", "-f", &path], "");
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let places: Vec<_> = ran.err.lines().filter(|line| line.contains("injected")).collect();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(places[0].contains("/a.yaml:3") && places[1].contains("/sub/b.yml:3"), "{places:?}");
}

#[test]
fn several_files_become_one_stream_that_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["inject".to_owned()];
    for (number, text) in ["a: 1", "# c\n%YAML 1.2\n---\nb: 2\n", "\u{feff}c: 3\n", "---\nd: 4\n...\n", "", "{\"e\":5}"]
        .iter()
        .enumerate()
    {
        let path = folder.path().join(format!("{number}.yaml"));
        std::fs::write(&path, text).unwrap();
        arguments.extend(["-f".to_owned(), path.display().to_string()]);
    }
    let ran = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
    assert_eq!(ran.out, "a: 1\n...\n# c\n%YAML 1.2\n---\nb: 2\n---\nc: 3\n---\nd: 4\n...\n---\n{\"e\":5}");
}

#[test]
fn input_that_cannot_be_read_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u.yaml");
    std::fs::write(&path, [0xff, 0xfe, b'a', 0, b':', 0]).unwrap();
    let path = path.display().to_string();
    for (arguments, input, says) in [
        (&["inject", "-f", "https://example.com/a.yaml"][..], "", "curl -fsSL https://example.com/a.yaml |"),
        (&["inject", "-f", &path], "", "is UTF-16"),
        (
            &["inject", "-f", "-"],
            "a: {{ .Values.a }}\n",
            "-:1: a key must be text, not a list or mapping; a Helm template",
        ),
        (&["inject", "-f", "-"], "a: 1\na: 2\n", "-:2: key \"a\" occurs twice"),
    ] {
        let ran = run(arguments, input);
        assert_eq!(ran.exit, Exit::Usage);
        assert!(ran.err.contains(says) && ran.out.is_empty(), "{}", ran.err);
    }
}

#[test]
fn a_type_label_of_the_users_stays_where_an_agent_runtime_enrols_too() {
    let more = "  trace: {endpoint: \"http://otel:4318\"}\n";
    for kind in ["Deployment", "StatefulSet", "CronJob"] {
        let api = if kind == "CronJob" { "batch/v1" } else { "apps/v1" };
        let input = format!("{}{}", runtime("a", (api, kind), more), workload(kind, AGENT));
        let injected = run(&["inject", "-f", "-"], &input);
        assert!(injected.out.contains("http://otel:4318"), "the AgentRuntime counts: {}", injected.out);
        assert!(injected.out.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{}", injected.out);
        assert_eq!(run(&["inject", "-f", "-"], &injected.out).out, injected.out, "{kind}");
        let ran = run(&["uninject", "-f", "-"], &injected.out);
        assert_eq!(documents(&ran.out), documents(&input), "{kind}");
        assert!(!ran.err.contains("warning"), "{}", ran.err);
    }
}

#[test]
fn a_type_label_that_uninject_cannot_tell_from_an_enrolments_is_told() {
    // As read back from a cluster: who wrote the label is not in it any more.
    let input = format!("{}{}", runtime("a", ("apps/v1", "Deployment"), ""), workload("Deployment", PLAIN));
    let ran = run(&["uninject", "-f", "-"], &run(&["inject", "-f", "-"], &input).out);
    assert!(ran.err.contains("warning: label kagenti.io/type was taken out"), "{}", ran.err);
    let ran = run(&["uninject", "-f", "-"], &run(&["inject", "-f", "-"], &workload("Deployment", AGENT)).out);
    assert!(ran.err.contains("uninjected") && !ran.err.contains("warning"), "{}", ran.err);
}

/// A manifest may hold anything; the API server says what is wrong with it, and so do we.
#[test]
fn labels_that_are_no_mapping_are_told_of_and_not_written_into() {
    let runtime = "apiVersion: agent.kagenti.dev/v1alpha1\nkind: AgentRuntime\nmetadata: {name: weather, namespace: team1}\n\
                   spec: {type: agent, targetRef: {apiVersion: apps/v1, kind: Deployment, name: weather}}\n";
    for metadata in
        ["metadata: text", "metadata: {labels: [agent]}", "metadata: {labels: text}", "metadata: {annotations: 1}"]
    {
        let template = format!("{metadata}\nspec:\n  containers:\n  - name: agent\n    image: agent:1\n");
        let input = format!("{runtime}{}", workload("Deployment", &template));
        let ran = run(&["inject", "-f", "-"], &input);
        assert_eq!(ran.out, input, "{metadata}: what cannot be read is left as it is");
        assert!(ran.err.contains("Deployment team1/weather"), "{metadata}: {}", ran.err);
    }
    let input = format!("{runtime}{}", workload("Deployment", AGENT)).replace(
        "  name: weather\n  namespace: team1\nspec",
        "  name: weather\n  namespace: team1\n  labels: [agent]\nspec",
    );
    assert!(input.contains("labels: [agent]"));
    assert!(run(&["inject", "-f", "-"], &input).err.contains("Deployment team1/weather"));
}

#[test]
fn nothing_to_remove_is_a_reason_like_every_other() {
    let ran = run(&["uninject", "-f", "-"], &workload("Deployment", AGENT));
    assert!(ran.err.contains("skipped (NothingToRemove)"), "{}", ran.err);
    assert_eq!(ran.out, workload("Deployment", AGENT));
}

/// Z10: an Agent of each group under one name, and the tools of another.
#[test]
fn two_that_would_be_run_under_one_name_are_told_of_and_come_out_as_they_are() {
    let agents = "apiVersion: beeai.dev/v1\nkind: Agent\nmetadata: {name: agent-x, namespace: team1}\nspec: {image: a:1}\n\
                  ---\napiVersion: kaos.tools/v1alpha1\nkind: Agent\nmetadata: {name: x}\nspec: {modelAPI: m}\n";
    let alone = "---\napiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: x}\nspec: {runtime: r}\n";
    let ran = run(&["inject", "-n", "team1", "-f", "-"], &format!("{agents}{alone}"));
    assert_eq!((ran.exit, ran.out.as_str()), (Exit::Ok, format!("{agents}{alone}").as_str()));
    for (object, other) in
        [("Agent team1/agent-x", "Agent x of kaos.tools/v1alpha1"), ("Agent team1/x", "Agent agent-x of beeai.dev/v1")]
    {
        let told = ran.err.split_once(object).map(|(_, told)| told.lines().nth(1).unwrap_or_default());
        let warned = told.is_some_and(|told| told.contains("warning: NameConflict: ") && told.contains(other));
        assert!(warned, "{object}: {}", ran.err);
    }
    assert!(!ran.err.contains("MCPServer"), "nobody wants its name: {}", ran.err);
}
