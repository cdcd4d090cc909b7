use serde_json::json;

use super::*;
use crate::cli::render::rbac::Role;
use crate::config::cards::BundleConfigMap;
use crate::pipelines::catalogue::Values;

/// The ConfigMaps of an installation for one failure mode, with those steps.
fn settings(values: Values) -> Vec<Value> {
    let mut install = Install::new(FailureMode::Gate, "own", "");
    install.values = values;
    let objects = render::parts(&install).into_iter().flat_map(|part| part.objects);
    objects.filter(|object| object["kind"] == "ConfigMap").collect()
}

fn other_values() -> Vec<Values> {
    let mirror = Values::default().with_image("git", "mirror.example/git:1").unwrap();
    let mut openshift = Values::default();
    openshift.openshift = true;
    let mut unknown_hosts = Values::default();
    unknown_hosts.allow_unknown_git_hosts = true;
    vec![Values::default(), mirror, openshift, unknown_hosts]
}

#[test]
fn what_was_rendered_is_nobodys_edit_whatever_it_was_rendered_with() {
    for values in other_values() {
        let all = settings(values.clone());
        let editable: Vec<&Value> = all.iter().filter(|object| is_settings(object)).collect();
        assert_eq!(editable.len(), all.len());
        for object in editable {
            assert_eq!(edited(object), Some(false), "{object} with {values:?}");
        }
    }
}

#[test]
fn every_way_to_change_what_was_rendered_is_an_edit() {
    for values in other_values() {
        for object in settings(values).iter().filter(|object| is_settings(object)) {
            let key = object["data"].as_object().unwrap().keys().next().unwrap().clone();
            let changes: [fn(&mut Value, &str); 5] = [
                |object, key| object["data"][key] = json!("mine"),
                |object, _| object["data"]["more"] = json!("mine"),
                |object, key| drop(object["data"].as_object_mut().unwrap().remove(key)),
                |object, _| object["binaryData"] = json!({"more": "bWluZQ=="}),
                |object, _| object["metadata"]["annotations"][keys::ANNOTATION_CONTENT_DIGEST] = json!("another"),
            ];
            for change in changes {
                let mut changed = object.clone();
                change(&mut changed, &key);
                assert_eq!(edited(&changed), Some(true), "{changed}");
            }
            // What servers and people put beside the data is no edit of it.
            let mut stored = object.clone();
            stored["metadata"]["labels"]["mine"] = json!("kept");
            stored["metadata"]["uid"] = json!("u");
            assert_eq!(edited(&stored), Some(false));
            stored["metadata"]["annotations"] = json!({"mine": "kept"});
            assert_eq!(edited(&stored), None, "nothing tells");
        }
    }
}

#[test]
fn what_another_version_wrote_is_found_and_a_persons_templates_are_not() {
    let known: Vec<Part> = settings(Values::default())
        .into_iter()
        .map(|object| Part { path: path(&object).unwrap(), object, always_ours: false, edited: false })
        .collect();
    let named = |name: &str, digest: Value| {
        let data = json!({"task-spec.yaml": "earlier"});
        let annotations = json!({keys::ANNOTATION_CONTENT_DIGEST: digest});
        let metadata = json!({"name": name, "namespace": "own", "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    };
    let written = digest(&[("task-spec.yaml".to_owned(), "earlier".to_owned())].into());
    let all = [
        known[0].object.clone(),
        named("earlier-step", json!(written)),
        named("edited-step", json!("another")),
        named("a-persons", Value::Null),
        named(keys::CONFIG_MAP_ENVOY, json!(written)),
        named(keys::GATE, Value::Null),
    ];
    let found = unknown_settings(&all, &known);
    let found: Vec<(&str, bool)> =
        found.iter().map(|part| (text(&part.object, "/metadata/name"), part.edited)).collect();
    assert_eq!(found, [("earlier-step", false), ("edited-step", true), (keys::GATE, false)]);
}

#[test]
fn every_rendered_object_has_a_path() {
    for failure_mode in [FailureMode::Gate, FailureMode::Fail] {
        let install = Install::new(failure_mode, "own", "");
        for object in render::parts(&install).into_iter().flat_map(|part| part.objects) {
            assert!(path(&object).is_some(), "kind {} is not in the table", object["kind"]);
        }
    }
}

fn options() -> Options {
    Options { operator_namespace: "own".to_owned(), crds: false, keep_policies: false, keep_pods: false }
}

/// Whatever was rendered beside the installation: nobody says at the end what was asked for at the beginning.
#[test]
fn what_manifests_of_their_own_added_goes_too() {
    let all: Vec<String> = rendered(&options()).into_iter().map(|(path, _)| path).collect();
    let install = Install::new(FailureMode::Fail, "own", "");
    let (catalogue, compat) = (render::rbac::catalogue(&install), render::compat::objects(&install));
    let gateway = [render::kinds::gateway(&install, "class")];
    assert!(catalogue.len() >= 4, "roles and bindings, of the cluster and of a namespace");
    for object in catalogue.iter().chain(&compat).chain(&gateway) {
        let path = path(object).unwrap();
        assert!(all.contains(&path), "{path} is left behind");
    }
}

/// What an earlier or a later version has rendered beside what this one knows goes by its name and its label, and in its turn.
#[test]
fn a_policy_of_another_version_is_found_by_its_name_and_has_a_path() {
    for (kind, of) in [
        (Guard::Policy, "ValidatingAdmissionPolicy"),
        (Guard::Binding, "ValidatingAdmissionPolicyBinding"),
        (Guard::MutatingPolicy, "MutatingAdmissionPolicy"),
        (Guard::MutatingBinding, "MutatingAdmissionPolicyBinding"),
    ] {
        let named = |name: &str| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": of, "metadata": {"name": name}});
        assert!(bears_our_name(&named("drawbridge-of-tomorrow")) && !bears_our_name(&named("team-drawbridge")));
        let root = format!("/apis/admissionregistration.k8s.io/v1/{}", kind.plural());
        assert_eq!(path(&named("drawbridge-of-tomorrow")), Some(format!("{root}/drawbridge-of-tomorrow")));
        assert!(!kind.is_webhook() && turn(&named("drawbridge-of-tomorrow")) < FIRST.len());
    }
    for object in crate::cli::render::policies::objects(&Install::new(FailureMode::Gate, "own", "")) {
        assert!(bears_our_name(&object), "{object}");
    }
}

#[test]
fn bindings_go_ahead_of_policies_and_rights_ahead_of_processes() {
    let order: Vec<String> =
        rendered(&options()).into_iter().map(|(_, object)| text(&object, "/kind").to_owned()).collect();
    let place = |kind: &str| order.iter().position(|known| known == kind).unwrap();
    assert!(place("MutatingAdmissionPolicyBinding") < place("MutatingAdmissionPolicy"));
    assert!(place("ClusterRoleBinding") < place("Deployment"));
}

#[test]
fn rights_in_namespaces_are_ours_when_they_are_our_operators_or_nobodys() {
    let role =
        |namespace: &str, name: &str| json!({"kind": "Role", "metadata": {"namespace": namespace, "name": name}});
    let binding = |namespace: &str, operator: &str| {
        let mut binding = role(namespace, "drawbridge-webhook");
        binding["kind"] = "RoleBinding".into();
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "drawbridge-webhook", "namespace": operator}]);
        binding
    };
    let bindings = vec![binding("team1", "own"), binding("team2", "other")];
    let roles = ["team1", "team2", "orphaned"].map(|namespace| role(namespace, "drawbridge-webhook"));
    let more = [role("team2", "drawbridge-controllers"), role("team1", "agent-reader")];
    let accounts = accounts(&rendered(&options()));
    let found = of_watched_namespaces(bindings, roles.into_iter().chain(more).collect(), "own", &accounts);
    let named: Vec<String> = found
        .iter()
        .map(|one| {
            format!("{} {}/{}", text(one, "/kind"), text(one, "/metadata/namespace"), text(one, "/metadata/name"))
        })
        .collect();
    assert_eq!(
        named,
        [
            "RoleBinding team1/drawbridge-webhook",
            "Role team1/drawbridge-webhook",
            "Role orphaned/drawbridge-webhook",
            "Role team2/drawbridge-controllers",
        ]
    );
}

/// What `render --watch-namespaces` makes there, with what it makes beside an installation: nothing of it stays, whoever is listed today.
#[test]
fn everything_that_is_rendered_into_a_watched_namespace_is_found() {
    let watched = |operator: &str| {
        let mut install = Install::new(FailureMode::Gate, operator, "");
        install.namespaces = vec!["team1".to_owned()];
        let parts = render::parts(&install).into_iter().flat_map(|part| part.objects);
        let objects = parts.chain(render::compat::objects(&install)).chain(render::rbac::catalogue(&install));
        let there: Vec<Value> = objects.filter(|object| object["metadata"]["namespace"] == "team1").collect();
        there.into_iter().partition::<Vec<Value>, _>(|object| object["kind"] == "RoleBinding")
    };
    let accounts = accounts(&rendered(&options()));
    let named = |object: &Value| format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
    let (bindings, roles) = watched("own");
    let wanted: BTreeSet<String> = bindings.iter().chain(&roles).map(named).collect();
    for role in Role::ALL {
        for name in [role.name().to_owned(), format!("{}-beeai-compat", role.name())] {
            assert!(wanted.contains(&format!("RoleBinding {name}")), "{name} in {wanted:?}");
            assert_eq!(accounts[&name], role.name());
        }
    }
    let found: BTreeSet<String> = of_watched_namespaces(bindings, roles, "own", &accounts).iter().map(named).collect();
    assert_eq!(found, wanted);
    let (bindings, roles) = watched("other");
    assert_eq!(of_watched_namespaces(bindings, roles, "own", &accounts), Vec::<Value>::new(), "another operator's");
}

/// The rights on a trust bundle stand in its namespace, which need not be a watched one.
#[test]
fn the_rights_on_a_trust_bundle_are_found_wherever_it_is() {
    let of = |operator: &str| {
        let install = Install::new(FailureMode::Fail, operator, "");
        let bundle = BundleConfigMap { namespace: "team9".to_owned(), name: "b".to_owned(), key: "k".to_owned() };
        let objects: Vec<Value> = render::rbac::trust_bundle(&install, &bundle).into_iter().collect();
        objects.into_iter().partition::<Vec<Value>, _>(|object| object["kind"] == "RoleBinding")
    };
    let accounts = accounts(&rendered(&options()));
    let (bindings, roles) = of("own");
    assert_eq!((bindings.len(), roles.len()), (1, 1));
    assert_eq!(of_watched_namespaces(bindings, roles, "own", &accounts).len(), 2);
    let (bindings, roles) = of("other");
    assert_eq!(of_watched_namespaces(bindings, roles, "own", &accounts), Vec::<Value>::new(), "another operator's");
}

#[test]
fn a_network_policy_is_a_model_apis_by_its_owner() {
    let of = |kind: &str, version: &str, controls: bool| {
        let owner = json!({"apiVersion": version, "kind": kind, "name": "m", "uid": "u", "controller": controls});
        json!({"kind": "NetworkPolicy", "metadata": {"name": "modelapi-m", "ownerReferences": [owner]}})
    };
    assert!(is_of_model_api(&of("ModelAPI", "kaos.tools/v1alpha1", true)));
    for other in [
        of("ModelAPI", "kaos.tools/v1alpha1", false),
        of("ModelAPI", "example.com/v1", true),
        of("AgentCard", "agent.kagenti.dev/v1alpha1", true),
        json!({"kind": "NetworkPolicy", "metadata": {"name": "modelapi-m"}}),
    ] {
        assert!(!is_of_model_api(&other), "{other}");
    }
}

#[test]
fn every_way_to_name_a_config_map_counts_as_use() {
    let spec = json!({
        "serviceAccountName": "s",
        "volumes": [{"configMap": {"name": "a"}}, {"projected": {"sources": [{"configMap": {"name": "b"}}]}}],
        "containers": [{"envFrom": [{"configMapRef": {"name": "c"}}], "env": [{"valueFrom": {"configMapKeyRef": {"name": "d"}}}]}],
    });
    let mut users = BTreeMap::new();
    uses(&json!({"template": {"spec": spec}}), "ns", "me", &mut users);
    let named: Vec<String> = users.keys().map(|(kind, _, name)| format!("{kind} {name}")).collect();
    assert_eq!(named, ["ConfigMap a", "ConfigMap b", "ConfigMap c", "ConfigMap d", "ServiceAccount s"]);
}
