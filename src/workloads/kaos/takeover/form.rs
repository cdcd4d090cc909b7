//! A Pod's spec in the form in which two that mean the same are equal.
//!
//! In: the spec of a Pod template, as somebody wrote it or as the API server stores it. Out: the same without what the API server fills in
//! by itself, quantities as amounts, lists that have a key as objects of that key (of two items with one key the last). Promise: a spec
//! and what the API server makes of it have one form. Source: `SetDefaults_*` of Kubernetes' `pkg/apis/core/v1/defaults.go`, as
//! far as they concern Pod templates.

use serde_json::{Map, Value, json};

use crate::domain::quantity::quantity;

/// What the API server fills in: in which member an object stands (empty: the spec itself; a list's items stand in the list), which of its
/// members, and the value. Names stand for several as [`place`] has it.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("", "restartPolicy", "Always"),
    ("", "terminationGracePeriodSeconds", "30"),
    ("", "dnsPolicy", "ClusterFirst"),
    ("", "schedulerName", "default-scheduler"),
    ("containers", "terminationMessagePath", "/dev/termination-log"),
    ("containers", "terminationMessagePolicy", "File"),
    ("ports", "protocol", "TCP"),
    ("ports", "hostPort", "0"),
    ("probe", "initialDelaySeconds", "0"),
    ("probe", "timeoutSeconds", "1"),
    ("probe", "timeoutSeconds", "0"),
    ("probe", "periodSeconds", "10"),
    ("probe", "periodSeconds", "0"),
    ("probe", "successThreshold", "1"),
    ("probe", "successThreshold", "0"),
    ("probe", "failureThreshold", "3"),
    ("probe", "failureThreshold", "0"),
    ("httpGet", "path", "/"),
    ("httpGet", "scheme", "HTTP"),
    ("fieldRef", "apiVersion", "v1"),
    ("resourceFieldRef", "divisor", "0"),
    ("securityContext", "procMount", "Default"),
    ("secret", "defaultMode", "420"),
    ("configMap", "defaultMode", "420"),
    ("downwardAPI", "defaultMode", "420"),
    ("projected", "defaultMode", "420"),
    ("serviceAccountToken", "expirationSeconds", "3600"),
    ("spec", "volumeMode", "Filesystem"),
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];
/// Flags for which false means what absent does.
const FLAGS: &[&str] = &[
    "readOnly",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
    "optional",
    "shareProcessNamespace",
    "setHostnameAsFQDN",
];
/// Maps of texts of which every entry counts, an empty one too.
const TEXTS: &[&str] = &["nodeSelector", "matchLabels", "volumeAttributes", "options", "labels", "annotations"];
/// Members that select everything when they are empty, and nothing when they are absent.
const SELECTORS: &[&str] = &["labelSelector", "namespaceSelector"];
/// Maps of quantities, and quantities.
const AMOUNTS: &[&str] = &["limits", "requests", "overhead"];
const AMOUNT: &[&str] = &["sizeLimit", "divisor"];
/// Lists whose items have a key, as server-side apply merges them.
const KEYED: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
];
/// Where an init container stands among the others: they run one after the other.
pub(super) const PLACE: &str = "(place)";

/// The form of a Pod's spec.
pub(super) fn form(spec: &Value) -> Value {
    let mut spec = of("", spec);
    if let Some(members) = spec.as_object_mut() {
        // The API server writes the account under its old name besides.
        let old = members.remove("serviceAccount");
        if let (None, Some(old)) = (members.get("serviceAccountName"), old) {
            members.insert("serviceAccountName".to_owned(), old);
        }
    }
    spec
}

/// The name under which [`DEFAULTS`] has what stands in a member.
fn place(name: &str) -> &str {
    match name {
        "initContainers" => "containers",
        "livenessProbe" | "readinessProbe" | "startupProbe" => "probe",
        other => other,
    }
}

fn of(parent: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members {
                let member = match name.as_str() {
                    name if TEXTS.contains(&name) => member.clone(),
                    name if AMOUNTS.contains(&name) => amounts(member),
                    name if AMOUNT.contains(&name) => amount(member),
                    name => of(name, member),
                };
                if !is_nothing(parent, name, &member) {
                    kept.insert(name.clone(), member);
                }
            }
            if place(parent) == "containers" && kept.get("imagePullPolicy") == Some(&pull_policy(&kept)) {
                kept.remove("imagePullPolicy");
            }
            Value::Object(kept)
        }
        Value::Array(items) => list(parent, items),
        other => other.clone(),
    }
}

/// Whether a member says what its absence does.
fn is_nothing(parent: &str, name: &str, member: &Value) -> bool {
    let is = |default: &str| match member {
        Value::String(text) => text == default,
        Value::Number(number) => number.to_string() == default,
        _ => false,
    };
    let parent = place(parent);
    match member {
        Value::Null => true,
        Value::Bool(false) => FLAGS.contains(&name),
        Value::String(text) if text.is_empty() => true,
        Value::Array(items) if items.is_empty() => true,
        Value::Object(members) if members.is_empty() => !SELECTORS.contains(&name),
        _ => DEFAULTS.iter().any(|(place, own, default)| *place == parent && *own == name && is(default)),
    }
}

/// What the API server fills in where nobody says how an image is pulled.
fn pull_policy(container: &Map<String, Value>) -> Value {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or(image);
    let floats = !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    json!(if floats { "Always" } else { "IfNotPresent" })
}

fn amounts(map: &Value) -> Value {
    let members = map.as_object().into_iter().flatten();
    Value::Object(members.map(|(name, value)| (name.clone(), amount(value))).collect())
}

/// A quantity in billionths, which is as fine as quantities are; what is none stays as it is.
fn amount(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return other.clone(),
    };
    quantity(&text).map_or_else(|| value.clone(), |amount| json!(format!("{:.0}", (amount * 1e9).round())))
}

fn list(name: &str, items: &[Value]) -> Value {
    let keys = KEYED.iter().find(|(list, _)| *list == name).map(|(_, keys)| *keys);
    let key = |item: &Value| {
        let texts = keys?.iter().filter_map(|key| match item.get(*key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let key = texts.collect::<Vec<_>>().join("/");
        (!key.is_empty()).then_some(key)
    };
    let items: Vec<Value> = items.iter().filter(|item| !item.is_null()).map(|item| of(name, item)).collect();
    let mut all = Map::new();
    for (at, item) in items.iter().enumerate() {
        let Some(key) = key(item) else { return Value::Array(items) };
        let mut item = item.clone();
        if name == "initContainers" {
            item[PLACE] = json!(at);
        }
        all.insert(key, item);
    }
    Value::Object(all)
}
