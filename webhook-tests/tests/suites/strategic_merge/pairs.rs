//! Pairs of a Pod's spec and a patch of one, made from a number: the same number makes the same pairs, on every machine.
//!
//! They have what real ones have and what nobody should write: keys that are missing or repeated, nulls, every directive, lists that mix kinds,
//! members that no Pod has. Numbers are small and whole, since the peer reads them as fractions.

use serde_json::{Map, Value, json};

/// A source of choices: SplitMix64, which is a few lines and the same everywhere.
pub(super) struct Choice(u64);

impl Choice {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<'v, T>(&mut self, of: &'v [T]) -> &'v T {
        &of[self.below(of.len())]
    }
}

/// Whether a spec or a patch is made: only a patch has nulls, directives, and mistakes.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Base,
    Patch,
}

type Make = fn(&mut Choice, Side) -> Value;

pub(super) fn pair(choice: &mut Choice) -> (Value, Value) {
    (pod(choice, Side::Base), pod(choice, Side::Patch))
}

fn object(choice: &mut Choice, side: Side, members: &[(&str, Make)], likely: usize) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, make) in members {
        if choice.below(10) >= likely {
            continue;
        }
        let value = match side {
            Side::Patch if choice.one_in(25) => Value::Null,
            side => make(choice, side),
        };
        object.insert((*name).to_owned(), value);
    }
    if side == Side::Patch && choice.one_in(60) {
        object.insert(
            "$patch".to_owned(),
            json!(
                choice
                    .pick(&["replace", "delete", "replace", "delete", "replace", "delete", "replace", "delete", "odd"])
            ),
        );
    }
    if side == Side::Patch && choice.one_in(80) {
        object.insert("noSuchMember".to_owned(), json!({"x": null, "y": 1}));
    }
    if side == Side::Patch && choice.one_in(60) {
        let mut names: Vec<Value> =
            object.keys().filter(|name| !name.starts_with('$')).map(|name| json!(name)).collect();
        if choice.one_in(4) {
            names.pop();
        }
        object.insert("$retainKeys".to_owned(), Value::Array(names));
    }
    object
}

/// A list whose items are found by `key`.
fn keyed(choice: &mut Choice, side: Side, (key, values): (&str, &[Value]), members: &[(&str, Make)]) -> Value {
    let mut items = Vec::new();
    for _ in 0..choice.below(4) {
        let value = choice.pick(values).clone();
        // A list that an API server has stored names each key once; one in a few is of somebody who did not care.
        let taken = items.iter().any(|item: &Value| item.get(key) == Some(&value));
        if taken && !choice.one_in(6) {
            continue;
        }
        let mut item = object(choice, side, members, 5);
        item.insert(key.to_owned(), value);
        if side == Side::Patch && choice.one_in(12) {
            item.insert(
                "$patch".to_owned(),
                json!(choice.pick(&[
                    "delete", "delete", "delete", "delete", "delete", "delete", "replace", "replace", "merge"
                ])),
            );
        }
        if choice.one_in(90) {
            item.remove(key);
        }
        items.push(Value::Object(item));
    }
    if side == Side::Patch && choice.one_in(150) {
        items.push(json!("no object"));
    }
    Value::Array(items)
}

fn text(choice: &mut Choice, _: Side) -> Value {
    json!(choice.pick(&["a", "b", "c", "", "$(A)"]))
}

fn number(choice: &mut Choice, _: Side) -> Value {
    json!(choice.below(5))
}

fn flag(choice: &mut Choice, _: Side) -> Value {
    json!(choice.one_in(2))
}

fn words(choice: &mut Choice, side: Side) -> Value {
    let count = choice.below(4);
    Value::Array((0..count).map(|_| text(choice, side)).collect())
}

/// Each once: of one that is there twice the peer's order depends on how its memory was laid out.
fn finalizers(choice: &mut Choice, _: Side) -> Value {
    let names = ["a", "b", "c"];
    json!(names.iter().filter(|_| choice.one_in(2)).collect::<Vec<_>>())
}

fn labels(choice: &mut Choice, side: Side) -> Value {
    Value::Object(object(choice, side, &[("x", text), ("y", text), ("z", text)], 5))
}

fn env(choice: &mut Choice, side: Side) -> Value {
    let names = ["A", "B", "C", "D"].map(|name| json!(name));
    let from: Make = |choice, side| {
        let source: Make = |_, _| json!({"name": "s", "key": "k"});
        Value::Object(object(choice, side, &[("secretKeyRef", source), ("configMapKeyRef", source)], 5))
    };
    keyed(choice, side, ("name", &names), &[("value", text), ("valueFrom", from)])
}

fn ports(choice: &mut Choice, side: Side) -> Value {
    let numbers = [8000, 8001, 9000].map(|port| json!(port));
    let protocol: Make = |choice, _| json!(choice.pick(&["TCP", "UDP"]));
    keyed(choice, side, ("containerPort", &numbers), &[("name", text), ("protocol", protocol), ("hostPort", number)])
}

fn mounts(choice: &mut Choice, side: Side) -> Value {
    let paths = ["/a", "/b", "/c"].map(|path| json!(path));
    keyed(choice, side, ("mountPath", &paths), &[("name", text), ("readOnly", flag), ("subPath", text)])
}

fn devices(choice: &mut Choice, side: Side) -> Value {
    keyed(choice, side, ("devicePath", &["/d", "/e"].map(|path| json!(path))), &[("name", text)])
}

fn probe(choice: &mut Choice, side: Side) -> Value {
    let get: Make = |choice, side| Value::Object(object(choice, side, &[("path", text), ("port", number)], 7));
    let socket: Make = |choice, side| Value::Object(object(choice, side, &[("port", number)], 7));
    let members: [(&str, Make); 4] =
        [("httpGet", get), ("tcpSocket", socket), ("periodSeconds", number), ("initialDelaySeconds", number)];
    Value::Object(object(choice, side, &members, 4))
}

fn resources(choice: &mut Choice, side: Side) -> Value {
    let amounts: Make = |choice, side| {
        let amount: Make = |choice, _| choice.pick(&[json!("1"), json!(1), json!("500m"), json!("1Gi")]).clone();
        Value::Object(object(choice, side, &[("cpu", amount), ("memory", amount)], 6))
    };
    let claims: Make = |choice, _| if choice.one_in(2) { json!([{"name": "g"}]) } else { json!([]) };
    Value::Object(object(choice, side, &[("limits", amounts), ("requests", amounts), ("claims", claims)], 5))
}

fn context(choice: &mut Choice, side: Side) -> Value {
    let capabilities: Make = |choice, side| Value::Object(object(choice, side, &[("add", words), ("drop", words)], 5));
    Value::Object(object(
        choice,
        side,
        &[("runAsUser", number), ("privileged", flag), ("capabilities", capabilities)],
        5,
    ))
}

fn containers(choice: &mut Choice, side: Side) -> Value {
    let names = ["agent", "sidecar", "other", "more"].map(|name| json!(name));
    let members: [(&str, Make); 13] = [
        ("image", text),
        ("command", words),
        ("args", words),
        ("env", env),
        ("envFrom", |_, _| json!([{"configMapRef": {"name": "c"}}])),
        ("ports", ports),
        ("volumeMounts", mounts),
        ("volumeDevices", devices),
        ("livenessProbe", probe),
        ("readinessProbe", probe),
        ("resources", resources),
        ("securityContext", context),
        ("resizePolicy", |_, _| json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}])),
    ];
    let mut list = keyed(choice, side, ("name", &names), &members);
    for item in list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        order(choice, side, item, ("env", "name", &["A", "B", "C", "D"].map(|name| json!(name))));
    }
    list
}

/// Adds an order that a list is to have.
fn order(choice: &mut Choice, side: Side, to: &mut Map<String, Value>, (list, key, values): (&str, &str, &[Value])) {
    if side == Side::Base || !choice.one_in(30) {
        return;
    }
    let mut names: Vec<Value> = match to.get(list).and_then(Value::as_array) {
        Some(items) => items.iter().filter_map(|item| item.get(key).cloned()).collect(),
        None => Vec::new(),
    };
    for value in values {
        if !names.contains(value) && choice.one_in(2) {
            names.insert(choice.below(names.len() + 1), value.clone());
        }
    }
    if choice.one_in(6) {
        names.reverse();
    }
    to.insert(format!("$setElementOrder/{list}"), names.into_iter().map(|name| json!({key: name})).collect());
}

fn volumes(choice: &mut Choice, side: Side) -> Value {
    let names = ["data", "config", "cache"].map(|name| json!(name));
    let ephemeral: Make = |choice, side| {
        let template: Make = |choice, side| {
            let metadata: Make = |choice, side| {
                let owners: Make =
                    |choice, side| keyed(choice, side, ("uid", &[json!("u"), json!("v")]), &[("name", text)]);
                let mut metadata = object(
                    choice,
                    side,
                    &[("finalizers", finalizers), ("labels", labels), ("ownerReferences", owners)],
                    6,
                );
                if side == Side::Patch && !metadata.contains_key("finalizers") && choice.one_in(3) {
                    metadata.insert("$deleteFromPrimitiveList/finalizers".to_owned(), json!(["a"]));
                }
                Value::Object(metadata)
            };
            Value::Object(object(choice, side, &[("metadata", metadata)], 9))
        };
        Value::Object(object(choice, side, &[("volumeClaimTemplate", template)], 9))
    };
    let members: [(&str, Make); 4] = [
        ("emptyDir", |choice, side| Value::Object(object(choice, side, &[("medium", text)], 5))),
        ("configMap", |choice, side| {
            let items: Make = |_, _| json!([{"key": "k", "path": "p"}]);
            Value::Object(object(choice, side, &[("name", text), ("items", items)], 6))
        }),
        ("persistentVolumeClaim", |choice, side| Value::Object(object(choice, side, &[("claimName", text)], 9))),
        ("ephemeral", ephemeral),
    ];
    keyed(choice, side, ("name", &names), &members)
}

fn affinity(choice: &mut Choice, side: Side) -> Value {
    let node: Make = |choice, side| {
        let preferred: Make = |choice, _| json!([{"weight": choice.below(9), "preference": {}}]);
        Value::Object(object(choice, side, &[("preferredDuringSchedulingIgnoredDuringExecution", preferred)], 8))
    };
    Value::Object(object(choice, side, &[("nodeAffinity", node)], 8))
}

fn pod(choice: &mut Choice, side: Side) -> Value {
    let members: [(&str, Make); 14] = [
        ("containers", containers),
        ("initContainers", containers),
        ("volumes", volumes),
        ("nodeSelector", labels),
        ("tolerations", |choice, _| json!([{"key": choice.pick(&["k", "l"]), "operator": "Exists"}])),
        ("affinity", affinity),
        ("securityContext", |choice, side| {
            Value::Object(object(
                choice,
                side,
                &[("runAsUser", number), ("runAsNonRoot", flag), ("supplementalGroups", words)],
                5,
            ))
        }),
        ("serviceAccountName", text),
        ("imagePullSecrets", |choice, side| keyed(choice, side, ("name", &[json!("r"), json!("s")]), &[])),
        ("hostAliases", |choice, side| {
            keyed(choice, side, ("ip", &[json!("10.0.0.1"), json!("10.0.0.2")]), &[("hostnames", words)])
        }),
        ("topologySpreadConstraints", |choice, side| {
            keyed(choice, side, ("topologyKey", &[json!("zone"), json!("host")]), &[("maxSkew", number)])
        }),
        ("schedulingGates", |choice, side| keyed(choice, side, ("name", &[json!("g"), json!("h")]), &[])),
        ("terminationGracePeriodSeconds", number),
        ("dnsConfig", |choice, side| {
            Value::Object(object(choice, side, &[("nameservers", words), ("searches", words)], 6))
        }),
    ];
    let likely = if side == Side::Base { 6 } else { 4 };
    let mut pod = object(choice, side, &members, likely);
    if side == Side::Base || choice.below(10) < 8 {
        pod.insert("containers".to_owned(), containers(choice, side));
    }
    let names = ["agent", "sidecar", "other"].map(|name| json!(name));
    order(choice, side, &mut pod, ("containers", "name", &names));
    Value::Object(pod)
}
