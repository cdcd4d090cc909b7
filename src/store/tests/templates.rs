//! What is kept of a Pod template, so that admission says of it what it says of the whole.

use serde_json::{Value, json};

use super::*;

fn template(template: &Value) -> TemplateSeen {
    let object = json!({"metadata": {"name": "w"}, "spec": {"template": template}});
    workload(Kind::Deployment, &object).unwrap().template.unwrap()
}

/// What is kept of a template's `spec`.
fn spec(spec: Value) -> Value {
    template(&json!({"spec": spec})).value()["spec"].clone()
}

#[test]
fn of_a_container_its_name_is_kept_whether_it_stays_and_which_variables_of_ours_it_sets() {
    let theirs =
        json!([{"name": "MINE", "value": "x"}, {"name": "port", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]);
    let ours = json!([{"name": "no_proxy"}, {"name": "MINE"}, {"value": "a\"b", "name": "PORT"}, {"name": "PORT"}]);
    let sets = json!([{"name": "PORT"}, {"name": "no_proxy"}]);
    for (whole, kept) in [
        (json!({"containers": []}), json!({"containers": []})),
        (json!({"containers": [], "initContainers": []}), json!({"containers": []})),
        (json!({"containers": [{"name": "a", "image": "i", "env": theirs}]}), json!({"containers": [{"name": "a"}]})),
        (json!({"containers": [{"name": "a", "env": null}]}), json!({"containers": [{"name": "a"}]})),
        (
            json!({"containers": [{"name": "a", "env": []}, {"name": "b", "env": ours}]}),
            json!({"containers": [{"name": "a"}, {"name": "b", "env": sets}]}),
        ),
        (
            json!({"containers": null, "initContainers": [{"name": "once", "env": ours, "restartPolicy": "Never"},
                {"name": "stays", "env": ours, "restartPolicy": "Always"}]}),
            json!({"initContainers": [{"name": "once"}, {"name": "stays", "restartPolicy": "Always", "env": sets}]}),
        ),
        // What a regular container says of its restarts decides nothing.
        (json!({"containers": [{"name": "a", "restartPolicy": "Always"}]}), json!({"containers": [{"name": "a"}]})),
    ] {
        assert_eq!(spec(whole.clone()), kept, "{whole}");
    }
}

/// A Pod of more containers is not injected, whatever stands in them.
#[test]
fn of_a_template_no_more_containers_are_kept_than_tell_that_there_are_too_many() {
    let mut variables: Vec<Value> = keys::AGENT_VARIABLES.map(|name| json!({"name": name})).into();
    variables.extend((0..20).map(|at| json!({"name": format!("MINE_{at}"), "value": "x".repeat(100)})));
    let many = |count: usize| -> Vec<_> {
        (0..count).map(|at| json!({"name": format!("c{at}"), "restartPolicy": "Always", "env": variables})).collect()
    };
    let most = keys::CONTAINERS_MOST + 1;
    for (regular, init, kept) in
        [(110, 110, (most, 0)), (60, 110, (60, most - 60)), (most - 1, 1, (most - 1, 1)), (60, 3, (60, 3))]
    {
        let seen = template(&json!({"spec": {"containers": many(regular), "initContainers": many(init)}}));
        let value = seen.value();
        let count = |list: &str| value["spec"][list].as_array().map_or(0, Vec::len);
        assert_eq!((count("containers"), count("initContainers")), kept, "{regular} {init}");
        let first = if kept.1 > 0 { &value["spec"]["initContainers"] } else { &value["spec"]["containers"] };
        let variables = keys::AGENT_VARIABLES.map(|name| json!({"name": name}));
        assert_eq!(first[0]["env"], json!(variables), "each of ours once, and no other");
        assert!(seen.spec.len() < 48 * 1024, "{}", seen.spec.len());
    }
}

/// Anybody who may write an annotation writes that record, too; where it stands beside parts of ours, the template was copied from a Pod.
#[test]
fn the_record_of_our_parts_is_kept_only_beside_parts_of_ours() {
    let of = |list: &str, name: &str| {
        let annotations =
            json!({keys::ANNOTATION_STATUS: "{}", keys::ANNOTATION_MODE: "waypoint", keys::ANNOTATION_MIRROR: "m"});
        let mut whole = json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "app"}]}});
        whole["spec"][list] = json!([{"name": name}]);
        let seen = template(&whole);
        let others = [keys::ANNOTATION_MODE, keys::ANNOTATION_MIRROR].map(|key| seen.annotations.get(key));
        assert_eq!(others, [Some("waypoint"), Some("m")], "{list} {name}");
        seen.annotations.get(keys::ANNOTATION_STATUS).is_some()
    };
    for list in ["containers", "initContainers"] {
        assert!(keys::OUR_CONTAINERS.into_iter().all(|name| of(list, name)), "{list}");
        assert!(!of(list, "app2") && !of(list, keys::CONTAINER_SIGNER), "{list}: people bring a signer of their own");
    }
}
