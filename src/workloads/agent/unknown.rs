//! Fields of the Pod template that the API server would not take: refused here with their path in the Agent, all of them,
//! before anything is made. The Deployment would be refused for them, one by one, after its Service was made.
//!
//! In: the template, its schema (of the oldest Kubernetes that is served) and the version of the API server. What later
//! versions added stands in a table. An API server that is newer than the table may know any field: there it is passed
//! on, and said. A member that is null is none.

use serde_json::Value;

use crate::api::agent_kagenti_dev::agent::pod_template_schema;
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;

/// Most fields that are named, each by its path; the rest is counted.
const LIMIT: usize = 100;

/// The newest version whose fields are known here: 1.37.
const NEWEST: u32 = 37;
/// Where fields of a Pod stand that are younger than the schema: end of the path, first and last minor version.
const YOUNGER: [(&str, u32, u32); 19] = [
    ("podTemplateSpec.spec.hostnameOverride", 34, NEWEST),
    (".containers.restartPolicyRules", 34, NEWEST),
    (".initContainers.restartPolicyRules", 34, NEWEST),
    (".valueFrom.fileKeyRef", 34, NEWEST),
    (".projected.sources.podCertificate", 34, NEWEST),
    ("podTemplateSpec.spec.workloadRef", 35, 35),
    ("podTemplateSpec.spec.schedulingGroup", 36, NEWEST),
    ("podTemplateSpec.spec.evictionResponders", 37, NEWEST),
    (".volumeMounts.bindMountOptions", 37, NEWEST),
    (".emptyDir.mode", 37, NEWEST),
    (".grpc.mode", 37, NEWEST),
    (".httpGet.protocol", 37, NEWEST),
    (".items.user", 37, NEWEST),
    (".configMap.defaultUser", 37, NEWEST),
    (".secret.defaultUser", 37, NEWEST),
    (".downwardAPI.defaultUser", 37, NEWEST),
    (".projected.defaultUser", 37, NEWEST),
    (".serviceAccountToken.user", 37, NEWEST),
    (".clusterTrustBundle.user", 37, NEWEST),
];

/// A member that the schema does not have.
struct Unknown {
    path: String,
    /// The known name that is nearest to it.
    meant: Option<String>,
    /// The API server takes it out before anybody else sees it.
    pruned: bool,
}

pub(super) fn check(object: &Value, server: (u32, u32), findings: &mut Findings) {
    let Some(template) = object.pointer("/spec/podTemplateSpec") else { return };
    let mut found = Search::default();
    found.walk(template, pod_template_schema(), &mut "spec.podTemplateSpec".to_owned());
    for one in found.unknown {
        judge(one, server, findings);
    }
    if found.more > 0 {
        let sentence = format!("has {} more fields that are not known", found.more);
        findings.fault(Fault::new(Reason::FieldUnknown, "spec.podTemplateSpec", sentence, REMEDY));
    }
}

const REMEDY: &str = "correct its name, or remove it";

fn judge(Unknown { path, meant, pruned }: Unknown, (_, minor): (u32, u32), findings: &mut Findings) {
    if pruned {
        let text = "no field of that name is kept in the template's metadata; the API server leaves it out";
        return findings.note(Note::new(Reason::UnknownField, path, text));
    }
    let plain = without_indexes(&path);
    let younger = YOUNGER.iter().find(|(end, ..)| plain.ends_with(end));
    let (sentence, remedy) = match younger {
        Some((_, first, last)) if (*first..=*last).contains(&minor) => return,
        _ if minor > NEWEST => {
            let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            let text =
                format!("no field of that name is known here; it is passed on to Kubernetes 1.{minor} as it is{hint}");
            return findings.note(Note::new(Reason::UnknownField, path, text));
        }
        Some((_, first, last)) => {
            let versions = if first == last { "alone" } else { "and later" };
            let sentence = format!("is a field of Kubernetes 1.{first} {versions}, and this cluster has 1.{minor}");
            (sentence, "remove it".to_owned())
        }
        None => {
            let remedy = meant.map_or(REMEDY.to_owned(), |meant| format!("did you mean {meant}? Else remove it"));
            ("is not a field that Kubernetes knows there".to_owned(), remedy)
        }
    };
    findings.fault(Fault::new(Reason::FieldUnknown, path, sentence, remedy));
}

/// A path without the places in lists.
fn without_indexes(path: &str) -> String {
    let mut inside = false;
    let keep = |letter: &char| {
        inside = *letter == '[' || (inside && *letter != ']');
        !inside && *letter != ']'
    };
    path.chars().filter(keep).collect()
}

#[derive(Default)]
struct Search {
    unknown: Vec<Unknown>,
    more: usize,
}

impl Search {
    fn walk(&mut self, value: &Value, schema: &Value, path: &mut String) {
        let length = path.len();
        match value {
            Value::Object(members) => {
                let known = schema.get("properties").and_then(Value::as_object);
                let values = schema.get("additionalProperties");
                for (key, member) in members {
                    path.push('.');
                    path.push_str(key);
                    match (known.and_then(|known| known.get(key)).or(values), known) {
                        (Some(schema), _) => self.walk(member, schema, path),
                        (None, Some(_)) if member.is_null() => {}
                        (None, Some(_)) if self.unknown.len() == LIMIT => self.more += 1,
                        (None, Some(known)) => {
                            let meant = nearest(key, known.keys().map(String::as_str)).map(str::to_owned);
                            let pruned = schema.get("x-kubernetes-preserve-unknown-fields").is_none();
                            self.unknown.push(Unknown { path: path.clone(), meant, pruned });
                        }
                        (None, None) => {}
                    }
                    path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    self.walk(item, schema, path);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }
}
