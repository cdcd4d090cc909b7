use serde_json::Value;

use super::*;
use crate::cli::yaml::tree;
use crate::store::Kind;

fn install(failure_mode: FailureMode) -> Install {
    Install::new(failure_mode, keys::OPERATOR_NAMESPACE, "drawbridge:test")
}

fn objects(mode: FailureMode) -> Vec<Value> {
    parts(&install(mode)).into_iter().flat_map(|part| part.objects).collect()
}

fn one<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found: Vec<_> = objects.iter().filter(|o| o["kind"] == kind && o["metadata"]["name"] == name).collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found[0]
}

#[test]
fn case_010_the_registered_webhook_is_as_in_section_1() {
    for (mode, policy) in [(FailureMode::Fail, "Fail"), (FailureMode::Gate, "Ignore")] {
        let objects = objects(mode);
        let hook = &one(&objects, "MutatingWebhookConfiguration", "drawbridge")["webhooks"][0];
        assert_eq!(hook["name"], "inject.kagenti.io");
        assert_eq!(hook["clientConfig"]["service"]["path"], "/mutate-workloads-authbridge");
        assert_eq!(hook["clientConfig"]["service"]["port"], 443);
        assert_eq!(hook["clientConfig"].get("caBundle"), None, "a manifest never owns the bundle");
        assert_eq!(hook["admissionReviewVersions"], serde_json::json!(["v1"]));
        assert_eq!(
            hook["rules"],
            serde_json::json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"}])
        );
        // Design, deviations, "failure policy": Fail in mode `fail`, Ignore behind the gate.
        assert_eq!(hook["failurePolicy"], policy);
        assert_eq!(hook["reinvocationPolicy"], "IfNeeded");
        assert_eq!(hook["timeoutSeconds"], 10);
        assert_eq!(hook["sideEffects"], "None");
        assert_eq!(
            hook["objectSelector"]["matchExpressions"],
            serde_json::json!([
                {"key": "kagenti.io/type", "operator": "In", "values": ["agent", "tool"]},
                {"key": "kagenti.io/inject", "operator": "NotIn", "values": ["disabled"]},
            ])
        );
    }
}

#[test]
fn case_011_system_and_own_namespaces_are_never_called_and_an_opted_out_one_is_not_either() {
    // Design, deviations, "namespace label": the label is not required; `false` opts out.
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        let objects = objects(mode);
        let hook = &one(&objects, "MutatingWebhookConfiguration", "drawbridge")["webhooks"][0];
        assert_eq!(
            hook["namespaceSelector"]["matchExpressions"],
            serde_json::json!([
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                 "values": ["kube-system", "kube-public", "kube-node-lease", "kagenti-system"]},
                {"key": "kagenti-enabled", "operator": "NotIn", "values": ["false"]},
            ])
        );
    }
}

#[test]
fn the_gate_policy_reaches_exactly_the_pods_of_the_webhook() {
    let objects = objects(FailureMode::Gate);
    let hook = &one(&objects, "MutatingWebhookConfiguration", "drawbridge")["webhooks"][0];
    let policy = &one(&objects, "MutatingAdmissionPolicy", "drawbridge-gate")["spec"];
    let constraints = &policy["matchConstraints"];
    assert_eq!(constraints["namespaceSelector"], hook["namespaceSelector"]);
    assert_eq!(constraints["objectSelector"], hook["objectSelector"]);
    assert_eq!(constraints["matchPolicy"], hook["matchPolicy"]);
    assert_eq!(constraints["resourceRules"], hook["rules"]);
    assert_eq!(policy["matchConditions"], hook["matchConditions"]);
    assert_ne!(policy["matchConditions"], Value::Null);
}

#[test]
fn a_missing_parameter_denies_and_a_second_run_never_puts_the_gate_back() {
    let objects = objects(FailureMode::Gate);
    let policy = &one(&objects, "MutatingAdmissionPolicy", "drawbridge-gate")["spec"];
    assert_eq!(policy["failurePolicy"], "Fail");
    assert_eq!(policy["reinvocationPolicy"], "Never");
    let binding = &one(&objects, "MutatingAdmissionPolicyBinding", "drawbridge-gate")["spec"];
    assert_eq!(binding["paramRef"]["parameterNotFoundAction"], "Deny");
    let parameters = one(&objects, "ConfigMap", "drawbridge-gate");
    assert_eq!(parameters.get("data"), None, "the leader's field is in nobody's manifest");
}

#[test]
fn only_mode_gate_has_the_gate() {
    for kind in ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] {
        assert!(objects(FailureMode::Fail).iter().all(|object| object["kind"] != kind));
    }
    let names = |mode| -> Vec<String> {
        objects(mode)
            .iter()
            .filter(|object| object["kind"] == "ValidatingAdmissionPolicy")
            .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let gate_only: Vec<_> =
        names(FailureMode::Gate).into_iter().filter(|name| !names(FailureMode::Fail).contains(name)).collect();
    assert_eq!(gate_only, ["drawbridge-gate-removal"]);
    assert_eq!(names(FailureMode::Gate).len(), names(FailureMode::Fail).len() + 1);
}

/// Whoever debugs or resizes a Pod is told, and never stopped, by what the policy finds or by its failure.
#[test]
fn mend_08_the_policy_about_a_weakened_proxy_refuses_nobody() {
    let objects = objects(FailureMode::Fail);
    let name = "drawbridge-weakened-proxy";
    let policy = &one(&objects, "ValidatingAdmissionPolicy", name)["spec"];
    assert_eq!(policy["failurePolicy"], "Ignore");
    let resources = serde_json::json!(["pods/ephemeralcontainers", "pods/resize"]);
    assert_eq!(policy["matchConstraints"]["resourceRules"][0]["resources"], resources);
    let binding = &one(&objects, "ValidatingAdmissionPolicyBinding", name)["spec"];
    assert_eq!(binding["validationActions"], serde_json::json!(["Warn"]));
}

#[test]
fn the_runtime_configuration_is_kept_from_updates_of_the_status_too() {
    let objects = objects(FailureMode::Fail);
    let policy = &one(&objects, "ValidatingAdmissionPolicy", "drawbridge-runtime-config")["spec"];
    assert_eq!(policy["matchConstraints"]["resourceRules"][0]["resources"], serde_json::json!(["pods", "pods/status"]));
    let selector = serde_json::json!({"matchExpressions": [{"key": "kagenti.io/type", "operator": "Exists"}]});
    assert_eq!(policy["matchConstraints"]["objectSelector"], selector, "other Pods cost nothing");
}

#[test]
fn agent_runtimes_are_judged_unless_they_are_being_deleted() {
    let objects = objects(FailureMode::Fail);
    let hook = &one(&objects, "ValidatingWebhookConfiguration", "drawbridge")["webhooks"][1];
    assert_eq!(hook["name"], "agentruntime.kagenti.io");
    assert_eq!(hook["clientConfig"]["service"]["path"], "/validate-agent-kagenti-dev-v1alpha1-agentruntime");
    assert_eq!((&hook["failurePolicy"], &hook["sideEffects"]), (&"Ignore".into(), &"None".into()));
    assert_eq!(
        hook["rules"],
        serde_json::json!([{"apiGroups": ["agent.kagenti.dev"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["agentruntimes"], "scope": "Namespaced"}])
    );
    assert_eq!(hook["matchConditions"][0]["expression"], "!has(object.metadata.deletionTimestamp)");
    let first = &parts(&install(FailureMode::Fail))[0].objects[0];
    assert_eq!(first["kind"], "CustomResourceDefinition", "ahead of what speaks of its kind");
}

#[test]
fn the_warning_webhook_never_stands_in_the_way() {
    let objects = objects(FailureMode::Fail);
    let hook = &one(&objects, "ValidatingWebhookConfiguration", "drawbridge")["webhooks"][0];
    assert_eq!(hook["failurePolicy"], "Ignore");
    assert_eq!(hook["sideEffects"], "None");
    let resources: Vec<_> = hook["rules"].as_array().unwrap().iter().map(|rule| rule["resources"].clone()).collect();
    assert!(resources.iter().all(|names| names.as_array().unwrap().iter().all(|name| name != "pods")));
}

#[test]
fn g9_rights_have_no_wildcard_and_no_way_up() {
    const NEVER: &[&str] = &["*", "escalate", "bind", "impersonate", "deletecollection"];
    for right in [FailureMode::Fail, FailureMode::Gate].into_iter().flat_map(rbac::rights) {
        assert!(right.verbs.iter().all(|verb| !NEVER.contains(verb)), "{right:?}");
        assert!(!right.group.contains('*') && !right.resource.contains('*'), "{right:?}");
        assert!(!["pods/exec", "serviceaccounts/token"].contains(&right.resource), "{right:?}");
        if right.resource == "secrets" && right.verbs == ["get"] && right.scope == rbac::Scope::Cluster {
            // Which keys a Secret has that a build names: by name, never listed or watched.
            assert_eq!(right.role, rbac::Role::Controllers, "{right:?}");
        } else if right.resource == "secrets" && right.verbs == ["create", "patch"] {
            // The login that a build of BeeAI pushes with; which Secrets those are is bound by the policy for our own account.
            assert_eq!(right.role, rbac::Role::Controllers, "{right:?}");
        } else if right.resource == "secrets" {
            assert_eq!(right.scope, rbac::Scope::Own, "Secrets only at home: {right:?}");
            assert!(right.name.is_some() || right.verbs == ["create"], "Secrets only by name: {right:?}");
        }
    }
}

#[test]
fn only_mode_gate_may_make_pods_and_builds_only_take_theirs_away() {
    let writes = |verb: &&'static str| !["get", "list", "watch"].contains(verb);
    let on_pods = |mode| {
        let rights = rbac::rights(mode).into_iter().filter(|right| right.resource == "pods");
        rights.flat_map(|right| right.verbs).copied().filter(writes).collect::<Vec<_>>()
    };
    // The trust label is patched, and by the API server's own policy nothing else.
    assert_eq!(on_pods(FailureMode::Fail), ["delete", "patch"]);
    assert_eq!(on_pods(FailureMode::Gate), ["delete", "patch", "create", "delete"]);
}

#[test]
fn the_webhook_only_reads() {
    for right in rbac::rights(FailureMode::Gate).into_iter().filter(|right| right.role == rbac::Role::Webhook) {
        assert!(right.verbs.iter().all(|verb| ["get", "list", "watch"].contains(verb)), "{right:?}");
    }
}

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
fn whatever_the_watches_and_controllers_ask_for_is_granted() {
    use crate::controllers::rbac::ASKS;
    use crate::store::{Kind, UsedBy};
    let (installed, compat) = (objects(FailureMode::Gate), compat::objects(&install(FailureMode::Gate)));
    for ask in ASKS {
        let is_compat =
            Kind::ALL.iter().any(|kind| kind.group() == ask.group && kind.descriptor().origin == KindOrigin::Compat);
        let (objects, of) = if is_compat { (&compat, "-beeai-compat") } else { (&installed, "") };
        let roles: &[&str] = match ask.asker {
            UsedBy::Every => &["drawbridge-webhook", "drawbridge-controllers"],
            UsedBy::Controllers | UsedBy::Gate => &["drawbridge-controllers"],
        };
        let kind = if ask.own_namespace { "Role" } else { "ClusterRole" };
        for role in roles {
            let rules = one(objects, kind, &format!("{role}{of}"))["rules"].as_array().unwrap();
            for verb in ask.verbs {
                let has = |rule: &Value, key: &str, word: &str| {
                    rule[key].as_array().is_some_and(|words| words.iter().any(|seen| seen == word))
                };
                let granted = rules.iter().any(|rule| {
                    has(rule, "apiGroups", ask.group)
                        && has(rule, "resources", ask.resource)
                        && has(rule, "verbs", verb)
                        && (rule.get("resourceNames").is_none()
                            || ask.name.is_some_and(|name| has(rule, "resourceNames", name)))
                });
                assert!(granted, "{role} may not {verb} {}", ask.resource);
            }
        }
    }
}

#[test]
fn builds_and_agents_are_registered_as_their_page_says() {
    let objects = objects(FailureMode::Fail);
    let mutating = &one(&objects, "MutatingWebhookConfiguration", "drawbridge")["webhooks"];
    let validating = &one(&objects, "ValidatingWebhookConfiguration", "drawbridge")["webhooks"];
    for (hooks, name, path, resource) in [
        (mutating, "magentbuild.kb.io", "/mutate-agent-kagenti-dev-v1alpha1-agentbuild", "agentbuilds"),
        (validating, "vagentbuild.kb.io", "/validate-agent-kagenti-dev-v1alpha1-agentbuild", "agentbuilds"),
        (validating, "vagent.kb.io", "/validate-agent-kagenti-dev-v1alpha1-agent", "agents"),
    ] {
        let hook = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap();
        assert_eq!(hook["clientConfig"]["service"]["path"], path);
        assert_eq!(
            hook["rules"],
            serde_json::json!([{"apiGroups": ["agent.kagenti.dev"], "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"], "resources": [resource], "scope": "Namespaced"}])
        );
        assert_eq!((&hook["failurePolicy"], &hook["sideEffects"]), (&"Fail".into(), &"None".into()));
        assert_eq!(hook["timeoutSeconds"], 10);
        assert_eq!(hook["matchConditions"][0]["expression"], "!has(object.metadata.deletionTimestamp)");
    }
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
fn roles_for_people_are_three_for_each_of_our_kinds_and_have_no_wildcard() {
    for (origin, least) in [(KindOrigin::Ours, 3), (KindOrigin::Compat, 1)] {
        let names: Vec<_> = rbac::people(origin, super::kinds::Kinds::All)
            .iter()
            .map(|role| role["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        let ours = || Kind::ALL.iter().filter(|kind| kind.descriptor().origin == origin);
        let name = |kind: &Kind, who: &str| format!("{}-{who}-role", kind.label().to_lowercase());
        let mut wanted: Vec<_> =
            ours().flat_map(|kind| ["admin", "editor", "viewer"].map(|who| name(kind, who))).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        assert!(ours().count() >= least, "the table is not empty");
        assert!(!rbac::people(origin, super::kinds::Kinds::All).iter().any(|role| role.to_string().contains('*')));
    }
}

#[test]
fn answers_04_people_get_our_kinds_by_the_roles_they_have_and_may_look_without_secrets() {
    let people = rbac::people(KindOrigin::Ours, super::kinds::Kinds::All);
    for role in &people {
        let name = role["metadata"]["name"].as_str().unwrap();
        let labels = role["metadata"]["labels"].to_string();
        let (view, edit) = (labels.contains("aggregate-to-view"), labels.contains("aggregate-to-edit"));
        assert_eq!((view, edit), (name.contains("-viewer-"), name.contains("-editor-")), "{name}");
    }
    let looks = rbac::diagnosis(super::kinds::Kinds::All);
    for rule in looks["rules"].as_array().unwrap() {
        let text = rule.to_string();
        assert!(!text.contains("secrets") && !text.contains('*'), "{text}");
        let asks = text.contains("subjectaccessreviews");
        assert!(
            asks || !["create", "update", "patch", "delete"].iter().any(|verb| text.contains(&format!("\"{verb}\""))),
            "{text}"
        );
    }
}

/// What serves the original operator's group stands in a manifest of its own, rights included.
#[test]
fn nothing_of_an_installation_gives_a_right_on_the_compatible_group_and_its_manifest_gives_all() {
    let install = install(FailureMode::Fail);
    let installed: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
    let granting = |objects: &[Value]| {
        let rules = objects.iter().flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default());
        rules.filter(|rule| rule["apiGroups"].to_string().contains("beeai.beeai.dev")).count()
    };
    let definitions = |objects: &[Value]| {
        let all = objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        all.filter(|object| object["spec"]["group"] == "beeai.beeai.dev").count()
    };
    let compat = compat::objects(&install);
    assert_eq!((granting(&installed), definitions(&installed)), (0, 0));
    assert!(granting(&compat) > 3 && definitions(&compat) == 2);
    assert_eq!(compat[0]["kind"], "CustomResourceDefinition", "ahead of everything that speaks of it");
    let wide = compat.iter().any(|object| object["rules"].to_string().contains('*'));
    assert!(!wide, "no wildcard");
}

#[test]
fn in_namespaced_scope_no_right_on_namespaced_kinds_is_held_in_the_cluster() {
    let mut install = install(FailureMode::Fail);
    install.namespaces = vec!["team1".to_owned(), "team2".to_owned()];
    let objects: Vec<Value> = parts(&install).into_iter().flat_map(|part| part.objects).collect();
    for role in ["drawbridge-webhook", "drawbridge-controllers"] {
        for rule in one(&objects, "ClusterRole", role)["rules"].as_array().unwrap() {
            let resource = rule["resources"][0].as_str().unwrap();
            assert!(
                [
                    "namespaces",
                    "csidrivers",
                    "mutatingwebhookconfigurations",
                    "validatingwebhookconfigurations",
                    "validatingadmissionpolicies",
                    "validatingadmissionpolicybindings",
                ]
                .contains(&resource),
                "{rule}"
            );
        }
        let of = |kind: &str| -> Vec<&str> {
            let all = objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == role);
            all.map(|object| object["metadata"]["namespace"].as_str().unwrap()).collect()
        };
        assert_eq!(of("Role"), ["kagenti-system", "team1", "team2"]);
        assert_eq!(of("RoleBinding"), ["kagenti-system", "team1", "team2"]);
    }
    let selector = serde_json::json!(
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team1", "team2"]});
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for hook in one(&objects, kind, "drawbridge")["webhooks"].as_array().unwrap() {
            let expressions = hook["namespaceSelector"]["matchExpressions"].as_array().unwrap();
            assert!(expressions.contains(&selector), "{hook}");
        }
    }
    for name in ["drawbridge-custom-steps", "drawbridge-agent-pods"] {
        let policy = one(&objects, "ValidatingAdmissionPolicy", name);
        let expressions = &policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"];
        assert_eq!(*expressions, serde_json::json!([selector]));
    }
    let deployment = one(&objects, "Deployment", "drawbridge-webhook");
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[1], serde_json::json!({"name": "NAMESPACES2WATCH", "value": "team1,team2"}));
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
    let all = parts(&own).into_iter().flat_map(|part| part.objects).chain(super::compat::objects(&own));
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
    let page = include_str!("../../../docs/tasks/install.md");
    for words in ["kubectl label namespace monitoring metrics=enabled", "--pod-monitor"] {
        assert!(page.contains(words), "docs/tasks/install.md does not say {words}");
    }
}

/// Without SPIRE a Pod with its socket never starts, so none has it unless that is asked for.
#[test]
fn the_spiffe_agents_socket_is_in_the_controllers_pods_alone_and_only_where_it_is_asked_for() {
    let rendered = |more: &[&str]| {
        let words = ["drawbridge", "render", "-o", "json"].iter().chain(more);
        let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        use clap::Parser as _;
        crate::cli::Cli::try_parse_from(words).unwrap().command.run(&mut io).unwrap();
        let list: Value = serde_json::from_slice(&out).unwrap();
        list["items"].as_array().unwrap().clone()
    };
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
