//! `migrate`, as people call it.

use crate::cli::io::Io;
use crate::cli::{Exit, conclude};

/// Standard output, standard error and the exit code for standard input.
fn migrate(what: &str, input: &str) -> (String, String, Exit) {
    use clap::Parser;
    let (mut out, mut err, mut stdin) = (Vec::new(), Vec::new(), input.as_bytes());
    let exit = {
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let cli = crate::cli::Cli::try_parse_from(["drawbridge", "migrate", what, "-f", "-"]).unwrap();
        let result = cli.command.run(&mut io);
        conclude(result, &mut io)
    };
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), exit)
}

#[test]
fn kaos_of_an_old_spelling_comes_out_as_today_and_everything_else_as_it_came() {
    let (out, err, exit) = migrate("kaos", include_str!("../../../manifests/samples/kaos-s4-simple.yaml"));
    assert_eq!(exit, Exit::Ok, "{err}");
    assert!(out.contains("runtime: python-string") && out.contains("model: openai/small"), "{out}");
    assert!(out.contains("kind: Secret\nmetadata:\n  name: model-provider"), "{out}");
    assert!(
        err.contains("MCPServer echo-tools  migrated") && err.contains("spec.config.tools.fromString -> runtime"),
        "{err}"
    );
    let today = include_str!("../../../manifests/samples/kaos-m-simple.yaml");
    let (out, err, _) = migrate("kaos", today);
    assert_eq!(out, today, "byte for byte");
    assert!(err.lines().all(|line| line.ends_with("unchanged") || line.starts_with("  ")), "{err}");
    let broken = "apiVersion: ethical.institute/v1alpha1\nkind: ModelAPI\nmetadata: {name: m}\nspec: {mode: Proxy}\n";
    let (out, err, exit) = migrate("kaos", broken);
    assert_eq!((&*out, exit), (broken, Exit::Findings));
    assert!(err.contains("error: spec.proxyConfig is required"), "{err}");
}

/// The group of before stayed in force for the items of a typed list, though the report said that it was changed.
#[test]
fn an_item_of_a_typed_list_says_its_new_type_itself() {
    let list = "apiVersion: ethical.institute/v1alpha1\nkind: ModelAPIList\nitems:\n- metadata:\n    name: m\n  spec:\n    mode: Hosted\n    \
                hostedConfig:\n      model: smollm2:135m\n";
    let (out, err, exit) = migrate("kaos", list);
    assert_eq!(exit, Exit::Ok, "{err}");
    assert!(err.contains("apiVersion ethical.institute/v1alpha1 -> kaos.tools/v1alpha1"), "{err}");
    let read = crate::api::yaml::parse(&out).unwrap().to_json();
    let item = &read["items"][0];
    assert!(item["apiVersion"] == "kaos.tools/v1alpha1" && item["kind"] == "ModelAPI", "{out}");
    let (again, err, _) = migrate("kaos", &out);
    assert!(again == out && err.contains("unchanged"), "a second run changes nothing: {err}");
}

#[test]
fn names_and_keys_of_the_input_never_become_lines_of_the_report() {
    let broken = "apiVersion: ethical.institute/v1alpha1\nkind: ModelAPI\nmetadata: {name: \"m\\nforged\\e[2J\"}\nspec: {mode: Proxy}\n";
    let (_, err, _) = migrate("kaos", broken);
    assert!(err.contains("ModelAPI m\\nforged\\u{1b}[2J") && !err.contains('\u{1b}'), "{err}");
    let (_, err, _) = migrate("values", "\"a\\nforged\": 1\n");
    assert!(err.contains("a\\nforged: Drawbridge has no setting"), "{err}");
}

#[test]
fn values_become_keys_of_the_platform_file() {
    let values = "defaultImages:\n  agentRuntime: axsauze/kaos-agent:0.1.4\n  mcpServer: x\n  mcpSlack: y\ngatewayAPI:\n  enabled: true\n  \
                  gatewayName: edge\n  gatewayClassName: envoy\ngateway:\n  defaultTimeouts: {agent: 300s}\nlogLevel: debug\n\
                  telemetry: {enabled: false, endpoint: \"\"}\nsecurity: {enabled: true}\nmcpRuntimes: {custom: {}}\n";
    let (out, err, exit) = migrate("values", values);
    assert_eq!(exit, Exit::Ok, "{err}");
    let read = crate::api::yaml::parse(&out).unwrap().to_json();
    let wanted = serde_json::json!({
        "images": {"kaosAgent": "axsauze/kaos-agent:0.1.4"},
        "kaos": {
            "gateway": {"enabled": true, "name": "edge", "timeouts": {"agent": "300s"}},
            "logLevel": "DEBUG",
            "telemetry": {"enabled": false},
        },
    });
    assert_eq!(read, wanted);
    for part in [
        "defaultImages.mcpServer: not taken over",
        "defaultImages.mcpSlack: stays in",
        "gatewayAPI.gatewayClassName: ",
        "security.enabled: Drawbridge has no setting",
    ] {
        assert!(err.contains(part), "{part} is missing in {err}");
    }
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kaos-operator-config}\ndata:\n  GATEWAY_API_ENABLED: \"True\"\n  \
               SYSTEM_NAMESPACE: kaos-system\n  KUBERNETES_CLUSTER_DOMAIN: corp.local\n";
    let (out, ..) = migrate("values", map);
    let read = crate::api::yaml::parse(&out).unwrap().to_json();
    let wanted = serde_json::json!({"kaos": {"gateway": {"enabled": false}, "registryNamespace": "kaos-system", "clusterDomain": "corp.local"}});
    assert_eq!(read, wanted, "only true was true");
}

/// What became of it was the text of a JSON object as the name of an image.
#[test]
fn a_mapping_or_list_where_a_text_belongs_is_named_and_not_taken_over() {
    let values = "defaultImages: {ollama: {repository: ollama/ollama, tag: 0.12.6}, litellm: {}}\nlogLevel: [debug]\ntelemetry: {enabled: {a: b}, endpoint: e:1}\n";
    let (out, err, exit) = migrate("values", values);
    assert_eq!(exit, Exit::Ok, "{err}");
    let read = crate::api::yaml::parse(&out).unwrap().to_json();
    assert_eq!(read, serde_json::json!({"kaos": {"telemetry": {"endpoint": "e:1"}}}));
    for part in [
        "defaultImages.ollama: a text is expected, a mapping was found, so that nothing is taken over; write what is meant as images.kaosOllama",
        "logLevel: a text is expected, a list was found",
        "telemetry.enabled: a text is expected, a mapping was found",
    ] {
        assert!(err.contains(part), "{part} is missing in {err}");
    }
    assert!(!err.contains("litellm"), "what is empty says nothing: {err}");
}

/// A dot in a key is a part of the key: Helm reads `"a.b"` as one name, which the chart does not know.
#[test]
fn a_key_with_a_dot_is_no_path() {
    let values = "\"gatewayAPI.enabled\": true\ntelemetry: {\"endpoint.x\": a, enabled: true}\n\"defaultImages.ollama\": {a: b}\n\"\": system\n\
                  serviceAccount: {annotations: {eks.amazonaws.com/role-arn: r}}\n";
    let (out, err, exit) = migrate("values", values);
    assert_eq!(exit, Exit::Ok, "{err}");
    let read = crate::api::yaml::parse(&out).unwrap().to_json();
    assert_eq!(read, serde_json::json!({"kaos": {"telemetry": {"enabled": true}}}));
    for part in [
        "\"gatewayAPI.enabled\": Drawbridge has no setting",
        "telemetry.\"endpoint.x\": Drawbridge has no setting",
        "\"defaultImages.ollama\".a: Drawbridge has no setting",
        "\"\": Drawbridge has no setting",
        "serviceAccount.annotations.\"eks.amazonaws.com/role-arn\": is a matter of Drawbridge's own manifests",
    ] {
        assert!(err.contains(part), "{part} is missing in {err}");
    }
}

/// Where the Go operator runs, its Lease must count, or two operators write: the ConfigMap says where it lies, and values do not.
#[test]
fn the_namespace_of_the_go_operator_becomes_a_key() {
    const NOTE: &str = "kaos.operatorNamespaces: the input does not say in which namespace the Go operator runs";
    let map = |name: &str, namespace: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{namespace}}}\ndata: {{{data}}}\n")
    };
    let own = "kaos-operator-config";
    for (input, wanted, is_told) in [
        (map(own, ", namespace: charts", ""), serde_json::json!({"kaos": {"operatorNamespaces": ["charts"]}}), false),
        (
            map(own, ", namespace: charts", "SYSTEM_NAMESPACE: registry"),
            serde_json::json!({"kaos": {"operatorNamespaces": ["charts"], "registryNamespace": "registry"}}),
            false,
        ),
        (
            map(own, ", namespace: charts", "SYSTEM_NAMESPACE: charts"),
            serde_json::json!({"kaos": {"registryNamespace": "charts"}}),
            false,
        ),
        (map(own, ", namespace: kaos-system", ""), serde_json::Value::Null, false),
        (map(own, "", ""), serde_json::Value::Null, true),
        (map("other", ", namespace: charts", ""), serde_json::Value::Null, true),
        ("logLevel: debug\n".to_owned(), serde_json::json!({"kaos": {"logLevel": "DEBUG"}}), true),
    ] {
        let (out, err, exit) = migrate("values", &input);
        assert_eq!(exit, Exit::Ok, "{err}");
        let read =
            if out.is_empty() { serde_json::Value::Null } else { crate::api::yaml::parse(&out).unwrap().to_json() };
        assert_eq!((read, err.contains(NOTE)), (wanted, is_told), "{input}{err}");
    }
}
