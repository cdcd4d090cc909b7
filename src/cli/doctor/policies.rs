//! Do the API server's own policies hold what this version promises of them? They refuse what no webhook may decide: what depends on
//! the rights of the person, and what must hold while no replica is there. A missing one is silent everywhere else.
//!
//! In: the policies and bindings as installed. Out: one check a policy, compared with what `render` writes for this installation;
//! what the API server fills in besides is no difference.

use serde_json::Value;

use super::{Seen, Visit, text};
use crate::cli::render::{FailureMode, Install, policies};

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let mut install = Install::new(visit.mode, &*visit.operator, "");
    install.namespaces.clone_from(&visit.watched);
    install.kinds = visit.kinds;
    let rendered = policies::objects(&install);
    let of_kind = |kind: &'static str| rendered.iter().filter(move |object| object["kind"] == kind);
    for policy in of_kind("ValidatingAdmissionPolicy") {
        let name = text(policy, "/metadata/name");
        let binding =
            of_kind("ValidatingAdmissionPolicyBinding").find(|binding| text(binding, "/metadata/name") == name);
        let check = format!("policy {name}");
        let seen = visit.checks.len();
        let mut wrong = Vec::new();
        for (plural, wanted) in
            [("validatingadmissionpolicies", Some(policy)), ("validatingadmissionpolicybindings", binding)]
        {
            let Some(wanted) = wanted else { continue };
            match visit.read(&check, &format!("{ROOT}/{plural}/{name}")).await? {
                Seen::Is(installed) if holds(&installed["spec"], &wanted["spec"]) => {}
                Seen::Is(_) => wrong.push(format!("{} is not as this version renders it", text(wanted, "/kind"))),
                Seen::Hidden => {}
                Seen::Absent => wrong.push(format!("there is no {}", text(wanted, "/kind"))),
            }
        }
        if wrong.is_empty() && visit.checks.len() == seen {
            visit.ok(&check, "in force");
        } else if !wrong.is_empty() {
            let file = if visit.mode == FailureMode::Gate { "install-gate.yaml" } else { "install.yaml" };
            let remedy =
                format!("kubectl apply -f manifests/{file} of this version (or what you rendered in its place)");
            visit.finding(&check, wrong.join("; "), remedy);
        }
    }
    Ok(())
}

/// Whether `installed` says everything that `rendered` says.
pub(super) fn holds(installed: &Value, rendered: &Value) -> bool {
    match (installed, rendered) {
        // What is empty is not stored.
        (Value::Null, Value::Array(rendered)) => rendered.is_empty(),
        (Value::Null, Value::Object(rendered)) => rendered.is_empty(),
        (Value::Object(installed), Value::Object(rendered)) => {
            rendered.iter().all(|(key, value)| holds(installed.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(installed), Value::Array(rendered)) => {
            installed.len() == rendered.len() && installed.iter().zip(rendered).all(|(one, other)| holds(one, other))
        }
        _ => installed == rendered,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_api_server_fills_in_is_no_difference() {
        let rendered = json!({"validations": [{"expression": "a"}], "rules": ["x"]});
        for (installed, expected) in [
            (json!({"validations": [{"expression": "a", "reason": "r"}], "rules": ["x"], "more": {}}), true),
            (json!({"validations": [{"expression": "true"}], "rules": ["x"]}), false),
            (json!({"validations": [{"expression": "a"}], "rules": ["x", "y"]}), false),
            (json!({"validations": [{"expression": "a"}]}), false),
            (json!({"validations": [{"expression": "a"}], "rules": []}), false),
            (json!(null), false),
        ] {
            assert_eq!(holds(&installed, &rendered), expected, "{installed}");
        }
    }
}
