//! Webhook configurations and admission policies.

use super::*;
use crate::cli::render::webhooks::repair;

/// The shipped file is named to nobody whose installation it would undo.
#[test]
fn a_lost_webhook_configuration_is_put_back_as_the_installation_was_rendered() {
    let trust = |cards: &str| Platform::parse(&format!("cards: {{{cards}}}\n"), "file").unwrap().cards().trust;
    let elsewhere = |name: &str| Install::new(FailureMode::Fail, name, "drawbridge:test");
    let of_some = Install { namespaces: vec!["team1".to_owned()], ..install(FailureMode::Fail) };
    let of_kaos = Install { kinds: Kinds::Kaos, ..install(FailureMode::Gate) };
    let off = trust("");
    for (install, trust, says) in [
        (install(FailureMode::Fail), Some(&off), "kubectl apply -f manifests/webhooks/fail.yaml"),
        (install(FailureMode::Gate), Some(&off), "kubectl apply -f manifests/webhooks/gate.yaml"),
        // Labels of Pods are the leader's, and no policy says anything of them.
        (install(FailureMode::Fail), Some(&trust("trust: audit")), "kubectl apply -f manifests/webhooks/fail.yaml"),
        (elsewhere("own"), Some(&off), "drawbridge render --namespace own …"),
        (elsewhere(""), Some(&off), "drawbridge render --namespace NAME …"),
        (of_some, Some(&off), "drawbridge render --watch-namespaces NAMES …"),
        (of_kaos, Some(&off), "drawbridge render --failure-mode gate --kinds=kaos …"),
        (install(FailureMode::Fail), Some(&trust("trust: enforced")), "drawbridge render --platform-file FILE …"),
        (
            install(FailureMode::Fail),
            Some(&trust("trustFloor: enforced-all")),
            "drawbridge render --platform-file FILE …",
        ),
        (install(FailureMode::Fail), None, "drawbridge render --platform-file FILE …"),
    ] {
        let said = repair(&install, trust);
        assert!(said.contains(says), "{says}: {said}");
        let is_shipped = says.contains("manifests/webhooks/");
        assert_eq!(said.contains("manifests/"), is_shipped, "{said}");
        assert_eq!(said.contains("docs/tasks/upgrade.md"), !is_shipped, "{said}");
    }
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

/// Else AKS has the webhooks leave out every namespace with label `control-plane`, and undoes whatever puts that right.
#[test]
fn no_controller_of_a_cloud_rewrites_whom_the_webhooks_are_about() {
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        let objects = objects(mode);
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let annotations = &one(&objects, kind, "drawbridge")["metadata"]["annotations"];
            assert_eq!(*annotations, serde_json::json!({"admissions.enforcer/disabled": "true"}), "{kind}");
        }
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
    let parameters = one(&objects, "ServiceAccount", "drawbridge-gate");
    assert_eq!(parameters["metadata"].get("annotations"), None, "the leader's field is in nobody's manifest");
    assert_eq!(parameters["automountServiceAccountToken"], false, "nothing runs under it");
}

/// Of other built-in kinds an API server stops hearing for good once no policy takes them as parameters (measured on 1.36, with NetworkPolicies: what had
/// been stored before counted for ever, and what came later was not found): so an uninstall would leave it deaf to the next installation.
#[test]
fn policies_take_no_built_in_kind_as_parameter_but_one_that_is_watched_anyway() {
    let ours = |version: &str| {
        Kind::ALL.iter().any(|kind| kind.api_version() == version && kind.descriptor().origin != KindOrigin::BuiltIn)
    };
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        let objects = objects(mode);
        let kinds = objects.iter().filter_map(|object| object["spec"].get("paramKind"));
        let kinds: Vec<_> = kinds.filter(|kind| !ours(kind["apiVersion"].as_str().unwrap())).collect();
        let account = serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount"});
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| **kind == account), "{kinds:?}");
    }
}

/// Such a policy refuses all that it matches, whoever writes it, until the API server has looked up the kind of its parameters: up to 30 s after a first
/// installation, and after some starts of an API server. An installation that is applied then must be taken all the same.
#[test]
fn no_policy_that_compares_with_our_kinds_matches_anything_of_the_installation() {
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        let objects = objects(mode);
        let ours = |spec: &&Value| spec["paramKind"]["apiVersion"].as_str().is_some_and(|version| version != "v1");
        let policies: Vec<_> = objects.iter().map(|object| &object["spec"]).filter(ours).collect();
        assert_eq!(policies.len(), 12);
        for spec in policies {
            let constraints = &spec["matchConstraints"];
            let rules = constraints["resourceRules"].as_array().unwrap();
            let plurals: Vec<_> = rules.iter().flat_map(|rule| rule["resources"].as_array().unwrap()).collect();
            let kinds = [
                ("deployments", "Deployment"),
                ("services", "Service"),
                ("pipelineruns", "PipelineRun"),
                ("agents", "Agent"),
            ];
            let kinds = plurals.iter().map(|plural| kinds.iter().find(|(one, _)| plural == one).unwrap().1);
            for kind in kinds {
                for object in objects.iter().filter(|object| object["kind"] == kind) {
                    let needed = constraints["objectSelector"]["matchLabels"].as_object().unwrap();
                    let labels = &object["metadata"]["labels"];
                    let matches = needed.iter().all(|(key, value)| labels.get(key) == Some(value));
                    assert!(!matches, "{kind} {} is matched by {needed:?}", object["metadata"]["name"]);
                }
            }
        }
    }
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

/// What is registered to be passed over where nobody answers refuses nothing that it could not look at, either.
#[test]
fn who_only_advises_is_who_is_registered_with_policy_ignore() {
    let advisory: Vec<_> = crate::server::routes::advisory().collect();
    let objects = objects(FailureMode::Fail);
    let mut seen = 0;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for hook in one(&objects, kind, "drawbridge")["webhooks"].as_array().unwrap() {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap();
            assert_eq!(advisory.contains(&path), hook["failurePolicy"] == "Ignore", "{path}");
            seen += usize::from(advisory.contains(&path));
        }
    }
    assert_eq!(seen, advisory.len());
}
