//! Deployments, settings, definitions and options of an installation.

use super::*;

#[test]
fn g12_our_own_pods_pass_the_restricted_level_and_are_never_enrolled() {
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        for object in objects(mode).iter().filter(|object| object["kind"] == "Deployment") {
            let template = &object["spec"]["template"];
            let labels = &template["metadata"]["labels"];
            assert_eq!(labels.get("kagenti.io/type"), None);
            assert_eq!(object["spec"]["selector"]["matchLabels"], *labels);
            let pod = &template["spec"];
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            for container in pod["containers"].as_array().unwrap() {
                let context = &container["securityContext"];
                assert_eq!(context["allowPrivilegeEscalation"], false);
                assert_eq!(context["readOnlyRootFilesystem"], true);
                assert_eq!(context["capabilities"]["drop"], serde_json::json!(["ALL"]));
            }
        }
    }
}

/// 13.3: on OpenShift nothing names a user; the cluster assigns one of the namespace's range.
#[test]
fn where_the_cluster_assigns_users_nothing_names_one() {
    let mut install = install(FailureMode::Gate);
    let text =
        |install: &Install| stream(&parts(install).into_iter().flat_map(|part| part.objects).collect::<Vec<_>>());
    let names =
        |text: &str| text.lines().filter(|line| line.contains("runAsUser: ") || line.contains("runAsGroup: ")).count();
    assert!(names(&text(&install)) > 4);
    install.values.openshift = true;
    assert_eq!(names(&text(&install)), 0);
}

#[test]
fn what_is_printed_reads_back_as_the_same_objects() {
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        for object in objects(mode) {
            let text = emit::document(&object, None);
            let read = |text: &str| tree::parse(text).unwrap().unwrap().to_json();
            // A float without a fraction is read as the integer that it is.
            assert_eq!(read(&text), read(&object.to_string()), "{text}");
        }
    }
}

#[test]
fn namespace_and_image_are_used_everywhere() {
    let install = Install::new(FailureMode::Gate, "elsewhere", "x/y:z");
    let text = stream(&parts(&install).into_iter().flat_map(|part| part.objects).collect::<Vec<_>>());
    assert!(!text.contains(keys::OPERATOR_NAMESPACE), "a name was left behind");
    assert!(!text.contains("image: drawbridge"));
    assert_eq!(text.matches("image: x/y:z").count(), 2);
}

#[test]
fn steps_and_templates_are_in_the_operators_namespace_with_the_images_of_the_installation() {
    let mut install = install(FailureMode::Fail);
    let mirrored = format!("mirror.example/git@sha256:{}", "0".repeat(64));
    install.values = install.values.with_image("git", &mirrored).unwrap();
    let objects = builds::objects(&install);
    assert!(objects.iter().all(|object| object["metadata"]["namespace"] == "kagenti-system"));
    let clone = one(&objects, "ConfigMap", "github-clone-step");
    assert_eq!(clone["metadata"]["labels"]["kagenti.operator.dev/tekton"], "step");
    assert!(clone["data"]["task-spec.yaml"].as_str().unwrap().contains(&mirrored));
    for mode in ["dev", "buildpack-dev", "dev-local", "dev-external", "preprod", "prod"] {
        let template = one(&objects, "ConfigMap", &format!("pipeline-template-{mode}"));
        assert_eq!(template["metadata"]["labels"]["app.kubernetes.io/component"], "pipeline-template");
        assert_eq!(template["metadata"]["labels"]["component.kagenti.ai/mode"], mode);
    }
}

#[test]
fn settings_of_ones_own_take_the_place_of_the_shipped_ones() {
    let own = Install {
        platform_file: Some("images: {envoyProxy: mirror/e}\n".to_owned()),
        feature_gates: Some("injectTools: true\n".to_owned()),
        ..install(FailureMode::Fail)
    };
    let objects = platform::objects(&own);
    assert_eq!(objects[0]["data"]["config.yaml"], "images: {envoyProxy: mirror/e}\n");
    assert_eq!(objects[1]["data"]["feature-gates.yaml"], "injectTools: true\n");
    let shipped = platform::objects(&install(FailureMode::Fail));
    let digest = |object: &Value| object["metadata"]["annotations"]["kagenti.io/content-digest"].clone();
    assert!(digest(&objects[0]) != digest(&shipped[0]), "what was rendered is no edit, whatever it was rendered from");
}

/// `kubectl get kagenti` shows our kinds, each once; a short name means one kind in the whole cluster; what tells protected from not
/// stands in a column that is there without `-o wide`.
#[test]
fn answers_15_kinds_have_categories_short_names_of_their_own_and_the_column_that_matters() {
    let own = Install::new(FailureMode::Fail, "own", "");
    let all = parts(&own).into_iter().flat_map(|part| part.objects).chain(super::super::compat::objects(&own));
    let definitions: Vec<Value> = all.filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    let mut taken: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    // What Kubernetes itself, Tekton, the Gateway API and cert-manager call their own.
    let others = [
        "po", "svc", "deploy", "rs", "sts", "ds", "cj", "cm", "ns", "no", "sa", "pr", "tr", "gtw", "cert", "certs",
        "cr", "issuer",
    ];
    for definition in &definitions {
        let (group, names) = (definition["spec"]["group"].as_str().unwrap(), &definition["spec"]["names"]);
        let kind = format!("{}.{group}", names["kind"].as_str().unwrap());
        let list = |key: &str| -> Vec<String> {
            names[key].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        if group == "agent.kagenti.dev" {
            assert!(list("categories").contains(&"kagenti".to_owned()), "{kind}");
        }
        assert!(!list("categories").is_empty(), "{kind}");
        for name in list("shortNames") {
            assert!(!others.contains(&name.as_str()), "{kind}: {name} is somebody else's");
            let before = taken.insert(name.clone(), kind.clone());
            assert_eq!(before, None, "{name} is {kind}, too");
        }
    }
    assert!(definitions.len() >= 8 && taken.len() >= 4, "{taken:?}");
    let runtime = definitions.iter().find(|one| one["spec"]["names"]["kind"] == "AgentRuntime").unwrap();
    let columns = runtime["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let shown = |column: &&Value| column["priority"].as_u64().unwrap_or(0) == 0;
    assert!(columns.iter().filter(shown).any(|column| column["name"] == "Protected"), "{columns:?}");
}

/// Who scrapes has to come from a namespace with the label that the NetworkPolicies ask for; the page of the installation says so.
#[test]
fn answers_16_a_pod_monitor_is_an_option_and_the_label_of_its_namespace_is_documented() {
    let own = Install::new(FailureMode::Fail, "own", "");
    let monitor = deploy::pod_monitor(&own);
    assert_eq!(
        (monitor["kind"].as_str(), monitor["metadata"]["namespace"].as_str()),
        (Some("PodMonitor"), Some("own"))
    );
    let policies = parts(&own).into_iter().flat_map(|part| part.objects);
    let policies: Vec<Value> = policies.filter(|object| object["kind"] == "NetworkPolicy").collect();
    assert!(
        !policies.is_empty() && policies.iter().all(|policy| policy.to_string().contains(r#""metrics":"enabled""#))
    );
    let page = include_str!("../../../../docs/tasks/install.md");
    for words in ["kubectl label namespace monitoring metrics=enabled", "--pod-monitor"] {
        assert!(page.contains(words), "docs/tasks/install.md does not say {words}");
    }
}

/// What `render` prints with these flags, or why it prints nothing.
fn asked(more: &[&str]) -> anyhow::Result<Vec<Value>> {
    let words = ["drawbridge", "render", "-o", "json"].iter().chain(more);
    let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    use clap::Parser as _;
    crate::cli::Cli::try_parse_from(words)?.command.run(&mut io)?;
    let list: Value = serde_json::from_slice(&out)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn rendered(more: &[&str]) -> Vec<Value> {
    asked(more).unwrap()
}

/// Its policies refuse its own account whatever it writes there, its Lease first; and its Pod Security label would keep out the cluster's own Pods.
#[test]
fn a_namespace_of_kubernetes_itself_is_not_the_operators() {
    for namespace in keys::SYSTEM_NAMESPACES {
        let told = asked(&["--namespace", namespace]).unwrap_err().to_string();
        assert!(told.contains(&format!("--namespace {namespace}: ")) && told.contains("name another one"), "{told}");
    }
    assert!(!rendered(&["--namespace", "platform"]).is_empty());
}

/// A port and two rights, and only where they are asked for: the right to ask about tokens reaches the whole cluster, whatever is served.
#[test]
fn the_catalogue_has_a_port_and_its_rights_only_where_it_is_asked_for() {
    let words = |object: &Value| object.to_string().contains("catalogue\"");
    let plain = rendered(&[]);
    assert!(!plain.iter().any(|object| words(object) && object["kind"] != "CustomResourceDefinition"));
    for more in [&["--with-catalogue"][..], &["--with-catalogue", "--watch-namespaces=team1"]] {
        let with = rendered(more);
        let spec = |kind: &str| one(&with, kind, "drawbridge-webhook")["spec"].clone();
        let ports = serde_json::json!([{"name": "webhook", "port": 443, "targetPort": "webhook-server"},
            {"name": "catalogue", "port": 8443, "targetPort": "catalogue"}]);
        assert_eq!(spec("Service")["ports"], ports);
        let container = spec("Deployment")["template"]["spec"]["containers"][0].clone();
        assert!(
            container["ports"]
                .as_array()
                .unwrap()
                .contains(&serde_json::json!({"name": "catalogue", "containerPort": 9444}))
        );
        assert_eq!(container["resources"]["limits"]["memory"], "320Mi");
        let rule = serde_json::json!({"ports": [{"port": 9444}], "from": [{"namespaceSelector": {}}]});
        assert!(spec("NetworkPolicy")["ingress"].as_array().unwrap().contains(&rule));
        let rules = |kind: &str| one(&with, kind, "drawbridge-catalogue")["rules"].clone();
        let reviews = serde_json::json!([{"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}]);
        assert_eq!(rules("ClusterRole"), reviews);
        let lease = serde_json::json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "resourceNames": ["drawbridge-controllers"], "verbs": ["get"]}]);
        assert_eq!(rules("Role"), lease);
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            assert_eq!(one(&with, kind, "drawbridge-catalogue")["subjects"][0]["name"], "drawbridge-webhook");
        }
    }
}

/// Without SPIRE a Pod with its socket never starts, so none has it unless that is asked for.
#[test]
fn the_spiffe_agents_socket_is_in_the_controllers_pods_alone_and_only_where_it_is_asked_for() {
    let with_socket = |object: &Value| object["kind"] == "Deployment" && object.to_string().contains("\"csi\":{");
    assert!(!rendered(&[]).iter().any(with_socket));
    for object in rendered(&["--with-spire"]) {
        let ours = object["kind"] == "Deployment" && object["metadata"]["name"] == "drawbridge-controllers";
        assert_eq!(with_socket(&object), ours, "{object}");
        if ours {
            let mounts = &object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
            let mount = mounts.as_array().unwrap().iter().find(|mount| mount["name"] == "spire-agent-socket").unwrap();
            assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&"/spiffe-workload-api".into(), &true.into()));
        }
    }
}
