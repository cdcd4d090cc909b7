use serde_json::json;

use super::*;
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

/// Whatever was rendered beside the installation: nobody says at the end what was asked for at the beginning.
#[test]
fn what_manifests_of_their_own_added_goes_too() {
    let options = Options { operator_namespace: "own".to_owned(), crds: false, keep_policies: false, keep_pods: false };
    let all: Vec<String> = rendered(&options).into_iter().map(|(path, _)| path).collect();
    let install = Install::new(FailureMode::Fail, "own", "");
    let (catalogue, compat) = (render::rbac::catalogue(&install), render::compat::objects(&install));
    assert!(catalogue.len() >= 4, "roles and bindings, of the cluster and of a namespace");
    for object in catalogue.iter().chain(&compat) {
        let path = path(object).unwrap();
        assert!(all.contains(&path), "{path} is left behind");
    }
}

#[test]
fn bindings_go_ahead_of_policies_and_rights_ahead_of_processes() {
    let order: Vec<String> = rendered(&Options {
        operator_namespace: "own".to_owned(),
        crds: false,
        keep_policies: false,
        keep_pods: false,
    })
    .into_iter()
    .map(|(_, object)| text(&object, "/kind").to_owned())
    .collect();
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
    let found = of_watched_namespaces(bindings, roles.into_iter().chain(more).collect(), "own");
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
