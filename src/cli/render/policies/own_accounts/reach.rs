//! What is written at all: the table of rights once more, so that a right that somebody adds by another role gives nothing, and the
//! namespaces in which nothing is.
//!
//! Reviews of rights and tokens are questions and write nothing; they stay out.

use super::super::super::Install;
use super::super::super::rbac::{Role, all_rights};
use super::{Fence, holds, listed, rule, variable};
use crate::cli::render::selectors::condition;
use crate::domain::keys;

/// What may be written in an exempt namespace: what tells people about an object of ours there.
const SAID: &str = "CREATE /events";

pub(super) fn fence(install: &Install) -> Fence {
    let written = written(install);
    let what = "request.operation + ' ' + request.resource.group + '/' + request.resource.resource + \
                (request.?subResource.orValue('') == '' ? '' : '/' + request.subResource)";
    let validations = vec![
        holds(
            format!("variables.what in [{}]", listed(written.iter().map(String::as_str))),
            "writes nothing that the table of its rights does not name",
        ),
        holds(
            format!(
                "!(request.?namespace.orValue('') in [{}]) || variables.what == '{SAID}' || request.resource.group in [{}]",
                listed(keys::SYSTEM_NAMESPACES),
                listed([keys::GROUP_AGENT, keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT, keys::GROUP_KAOS]),
            ),
            "writes nothing in a namespace of the system",
        ),
    ];
    Fence {
        applies: vec![condition(
            "is-a-write",
            "!(request.resource.group in ['authorization.k8s.io', 'authentication.k8s.io'])",
        )],
        variables: vec![variable("what", what)],
        ..Fence::new("drawbridge-own-reach", vec![rule("*", &["*/*"], &["*"])], validations)
    }
}

/// Operation, group and resource of every right to write, each once.
fn written(install: &Install) -> Vec<String> {
    let mut written = Vec::new();
    for right in all_rights(install.mode()).filter(|right| right.role == Role::Controllers) {
        for operation in right.verbs.iter().filter_map(|verb| operation(verb)) {
            let one = format!("{operation} {}/{}", right.group, right.resource);
            if !written.contains(&one) {
                written.push(one);
            }
        }
    }
    written.sort();
    written
}

/// What the API server calls it once a right was asked for it.
fn operation(verb: &str) -> Option<&'static str> {
    match verb {
        "create" => Some("CREATE"),
        "update" | "patch" => Some("UPDATE"),
        "delete" => Some("DELETE"),
        _ => None,
    }
}
