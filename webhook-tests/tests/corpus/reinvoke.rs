//! Every case that injects, after somebody else had the Pod (fault A9 in docs/cases.md): parts taken away, parts
//! rewritten, parts tampered with, a second injector before and behind ours.

use std::sync::Arc;

use drawbridge::admission::inject::uninject;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use libtest_mimic::Trial;
use serde_json::{Map, Value, json};
use webhook_tests::corpus::Case;
use webhook_tests::corpus::answer::ask;
use webhook_tests::corpus::matching::{differences, strict};
use webhook_tests::corpus::reinvoke::defaulted;

use super::verdict;

/// One injected case.
struct Injected {
    case: Case,
    snapshot: Snapshot,
    object: Value,
    /// The object after the first call.
    result: Value,
}

type Property = fn(&Injected) -> anyhow::Result<Vec<String>>;

const PROPERTIES: [(&str, Property); 7] = [
    ("containers_come_back", containers_come_back),
    ("volumes_come_back", volumes_come_back),
    ("rewritten_fields_stay", rewritten_fields_stay),
    ("protected_fields_are_put_back", protected_fields_are_put_back),
    ("second_injector", second_injector),
    ("status_alone_protects_nothing", status_alone_protects_nothing),
    ("taken_out_again", taken_out_again),
];

/// What holds instead of [`PROPERTIES`] of these names where the marker came with the object: nobody but the requester was there, so that
/// what our containers have other than as rendered is his, and goes (`admission::inject::repair`).
const IF_BROUGHT: (&[&str], (&str, Property)) = (
    &["rewritten_fields_stay", "protected_fields_are_put_back"],
    ("what_the_requester_wrote_goes", what_the_requester_wrote_goes),
);

/// The object came with our marker, as its managed fields tell.
fn is_brought(case: &Case) -> bool {
    let marker = format!("f:{}", keys::ANNOTATION_STATUS);
    let mut managed = case.object.iter().flat_map(|object| items(object, "/metadata/managedFields"));
    managed.any(|entry| entry["fieldsV1"]["f:metadata"]["f:annotations"].get(&marker).is_some())
}

pub(crate) fn trials(cases: Vec<Case>) -> Vec<Trial> {
    cases.into_iter().filter(|case| case.expect.injects()).flat_map(of_case).collect()
}

fn of_case(case: Case) -> Vec<Trial> {
    let name = case.name.clone();
    let brought = is_brought(&case);
    let injected = Arc::new(inject(case).map_err(|error| format!("{error:#}")));
    PROPERTIES
        .into_iter()
        .filter(|(property, _)| !brought || !IF_BROUGHT.0.contains(property))
        .chain(brought.then_some(IF_BROUGHT.1))
        .map(|(property, run)| {
            let injected = Arc::clone(&injected);
            Trial::test(format!("reinvoke::{name}::{property}"), move || match injected.as_ref() {
                Err(error) => Err(error.as_str().into()),
                Ok(injected) => verdict(run(injected)),
            })
        })
        .collect()
}

fn inject(case: Case) -> anyhow::Result<Injected> {
    let snapshot = case.fixture.snapshot()?;
    let object = case.object.clone().unwrap_or_default();
    let result = ask(&case, &case.review, &snapshot)?.applied(&object)?;
    Ok(Injected { case, snapshot, object, result })
}

impl Injected {
    /// The object after another call.
    fn again(&self, object: &Value) -> anyhow::Result<Value> {
        let answer = ask(&self.case, &self.case.fixture.request.review("again", object), &self.snapshot)?;
        if let Some((code, text)) = &answer.denial {
            anyhow::bail!("refused with {code}: {text}");
        }
        answer.applied(object)
    }

    /// Paths of our containers in the result: list and index.
    fn ours(&self) -> Vec<(&'static str, usize)> {
        let mut found = Vec::new();
        for list in ["/spec/containers", "/spec/initContainers"] {
            for (index, container) in items(&self.result, list).iter().enumerate() {
                if is_ours(container)
                    && !items(&self.object, list).iter().any(|users| users["name"] == container["name"])
                {
                    found.push((list, index));
                }
            }
        }
        found
    }
}

fn items<'o>(object: &'o Value, list: &str) -> &'o [Value] {
    object.pointer(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn items_of<'o>(object: &'o mut Value, list: &str) -> Option<&'o mut Vec<Value>> {
    object.pointer_mut(list).and_then(Value::as_array_mut)
}

fn is_ours(container: &Value) -> bool {
    container["name"].as_str().is_some_and(keys::may_be_ours)
}

fn names(object: &Value, list: &str) -> Vec<String> {
    items(object, list).iter().filter_map(|item| item["name"].as_str()).map(str::to_owned).collect()
}

fn same(what: &str, wanted: &Value, actual: &Value, wrong: &mut Vec<String>) {
    wrong.extend(differences(wanted, actual, what, strict));
}

fn containers_come_back(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (list, index) in injected.ours() {
        let mut less = injected.result.clone();
        let taken = items_of(&mut less, list).map(|containers| containers.remove(index)).unwrap_or_default();
        same(&format!("without {}: ", taken["name"]), &injected.result, &injected.again(&less)?, &mut wrong);
    }
    Ok(wrong)
}

fn what_the_requester_wrote_goes(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let again = injected.again(&rewritten(injected))?;
    let mut wrong = Vec::new();
    for (list, index) in injected.ours() {
        let (wanted, actual) = (&items(&injected.result, list)[index], &items(&again, list)[index]);
        same(&format!("{}: ", wanted["name"]), wanted, actual, &mut wrong);
    }
    Ok(wrong)
}

fn volumes_come_back(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let users = names(&injected.object, "/spec/volumes");
    for name in names(&injected.result, "/spec/volumes").into_iter().filter(|name| !users.contains(name)) {
        let mut less = injected.result.clone();
        if let Some(volumes) = items_of(&mut less, "/spec/volumes") {
            volumes.retain(|volume| volume["name"] != name.as_str());
        }
        let mut again = injected.again(&less)?;
        let mut wanted = injected.result.clone();
        for object in [&mut again, &mut wanted] {
            if let Some(volumes) = items_of(object, "/spec/volumes") {
                volumes.sort_by_key(|volume| volume["name"].to_string());
            }
        }
        same(&format!("without volume {name}: "), &wanted, &again, &mut wrong);
    }
    Ok(wrong)
}

/// What other webhooks and the API server's plugins do to every container.
fn rewritten(injected: &Injected) -> Value {
    let mut other = defaulted(&injected.result);
    for (list, index) in injected.ours() {
        let Some(container) = items_of(&mut other, list).and_then(|containers| containers.get_mut(index)) else {
            continue;
        };
        container["image"] = json!("mirror.example/copy/of@sha256:0123");
        container["imagePullPolicy"] = json!("Always");
        container["resources"] = json!({"limits": {"cpu": "2"}});
        push(container, "env", json!({"name": "ADDED_BY_OTHERS", "value": "1"}));
        push(container, "volumeMounts", json!({"name": "kube-api-access-x", "mountPath": "/var/run/secrets/token"}));
    }
    push(&mut other["spec"], "volumes", json!({"name": "kube-api-access-x", "emptyDir": {}}));
    other
}

fn push(holder: &mut Value, list: &str, item: Value) {
    match holder.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => holder[list] = json!([item]),
    }
}

fn rewritten_fields_stay(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let other = rewritten(injected);
    same("rewritten: ", &other, &injected.again(&other)?, &mut wrong);
    Ok(wrong)
}

fn protected_fields_are_put_back(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let other = rewritten(injected);
    for (list, index) in injected.ours() {
        let pointer = format!("{list}/{index}");
        let part = other.pointer(&pointer).cloned().unwrap_or_default();
        let mut attempts = vec![
            ("command", json!(["/bin/evil"])),
            ("args", json!(["--evil"])),
            (
                "securityContext",
                json!({"runAsUser": 31337, "runAsGroup": 31337, "capabilities": {"add": ["SYS_ADMIN"]}}),
            ),
        ];
        for field in ["env", "ports", "volumeMounts"] {
            if part[field].as_array().is_some_and(|items| items.len() > 1) {
                let kept: Vec<Value> = part[field].as_array().into_iter().flatten().skip(1).cloned().collect();
                attempts.push((field, Value::Array(kept)));
            }
        }
        for (field, value) in attempts {
            let mut tampered = other.clone();
            if let Some(container) = tampered.pointer_mut(&pointer) {
                container[field] = value;
            }
            let again = injected.again(&tampered)?;
            let mut found = Vec::new();
            protected(&part, defaulted(&again).pointer(&pointer).unwrap_or(&Value::Null), field, &mut found);
            wrong.extend(found.into_iter().map(|text| format!("{} {field}: {text}", part["name"])));
            let third = injected.again(&again)?;
            same(&format!("{} {field}, third call: ", part["name"]), &again, &third, &mut wrong);
        }
    }
    Ok(wrong)
}

/// The protected part of `field` in `actual` is what it was in `wanted`.
fn protected(wanted: &Value, actual: &Value, field: &str, wrong: &mut Vec<String>) {
    match field {
        "securityContext" => {
            // What we left open, a platform may have filled in (a user id of the namespace's range).
            for key in
                ["runAsUser", "runAsGroup", "capabilities"].into_iter().filter(|key| !wanted[field][key].is_null())
            {
                same(key, &wanted[field][key], &actual[field][key], wrong);
            }
        }
        "env" | "ports" | "volumeMounts" => {
            let key = if field == "volumeMounts" { "mountPath" } else { "name" };
            let sorted = |value: &Value| {
                let mut items = value[field].as_array().cloned().unwrap_or_default();
                items.sort_by_key(|item| item[key].to_string());
                Value::Array(items)
            };
            same(field, &sorted(wanted), &sorted(actual), wrong);
        }
        _ => same(field, &wanted[field], &actual[field], wrong),
    }
}

fn second_injector(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let native = injected.ours().iter().all(|(list, _)| *list == "/spec/initContainers");
    for front in [true, false] {
        let mut fought = injected.result.clone();
        for (list, name) in [("containers", "mesh"), ("initContainers", "mesh-init"), ("volumes", "mesh-data")] {
            let item = if list == "volumes" {
                json!({"name": name, "emptyDir": {}})
            } else {
                let port = if list == "containers" {
                    json!([{"name": "mesh-stats", "containerPort": 15090}])
                } else {
                    Value::Null
                };
                json!({"name": name, "image": "mesh/x", "ports": port, "securityContext": {"runAsUser": 5005}, "volumeMounts": [{"name": "mesh-data", "mountPath": "/mesh"}]})
            };
            let held = &mut fought["spec"];
            match held.get_mut(list).and_then(Value::as_array_mut) {
                Some(items) if front => items.insert(0, item),
                _ => push(held, list, item),
            }
        }
        let second = injected.again(&fought)?;
        let third = injected.again(&second)?;
        same("third call: ", &second, &third, &mut wrong);
        // The mesh's own port is not the agent's, wherever its container stands.
        let others = |pod: &Value| -> Vec<Value> {
            let users = items(pod, "/spec/containers")
                .iter()
                .filter(|container| !is_ours(container) && container["name"] != "mesh");
            users.map(|container| container["ports"].clone()).collect()
        };
        same("ports of the agent: ", &others(&injected.result).into(), &others(&second).into(), &mut wrong);
        let inits = names(&second, "/spec/initContainers");
        let mut all = names(&second, "/spec/containers");
        all.extend(inits.clone());
        let total = all.len();
        all.sort();
        all.dedup();
        if all.len() != total {
            wrong.push(format!("a container occurs twice: {inits:?}"));
        }
        let ours = |name: &String| keys::may_be_ours(name);
        if native && inits.iter().skip_while(|name| ours(name)).any(ours) {
            wrong.push(format!("our init containers are not in front: {inits:?}"));
        }
        if !native
            && inits.iter().any(|name| name == "proxy-init")
            && inits.last().is_none_or(|name| name != "proxy-init")
        {
            wrong.push(format!("proxy-init is not the last init container: {inits:?}"));
        }
    }
    Ok(wrong)
}

/// A Pod that only carries our annotations is injected as if it carried none.
fn status_alone_protects_nothing(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut forged = injected.object.clone();
    forged["metadata"]["annotations"] = injected.result["metadata"]["annotations"].clone();
    let mut wrong = Vec::new();
    same("forged: ", &injected.result, &injected.again(&forged)?, &mut wrong);
    Ok(wrong)
}

/// `uninject` gives back what came in.
fn taken_out_again(injected: &Injected) -> anyhow::Result<Vec<String>> {
    let mut back = injected.result.clone();
    json_patch::patch(&mut back, &uninject(&injected.result))?;
    let mut wrong = Vec::new();
    same("uninjected: ", &without_ours(&injected.object), &without_ours(&back), &mut wrong);
    Ok(wrong)
}

/// The object without what was ours before it came (forged annotations, our gate), and without nulls.
fn without_ours(object: &Value) -> Value {
    let mut object = without_nulls(object);
    let mut drop_from = |parent: &str, key: &str, members: &[&str]| {
        let Some(holder) = object[parent].get_mut(key) else { return };
        match holder {
            Value::Object(map) => map.retain(|key, _| !members.contains(&key.as_str())),
            Value::Array(items) => items.retain(|item| !members.iter().any(|name| item["name"] == *name)),
            _ => {}
        }
        let empty = holder.as_object().is_some_and(Map::is_empty) || holder.as_array().is_some_and(Vec::is_empty);
        if empty && let Some(map) = object[parent].as_object_mut() {
            map.remove(key);
        }
    };
    drop_from("metadata", "annotations", &[keys::ANNOTATION_STATUS, keys::ANNOTATION_RUNTIME_CONFIG]);
    drop_from("spec", "schedulingGates", &[keys::SCHEDULING_GATE]);
    object
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let members = map.iter().filter(|(_, member)| !member.is_null());
            Value::Object(members.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
