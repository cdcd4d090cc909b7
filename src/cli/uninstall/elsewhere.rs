//! Whether what is installed belongs to an operator in another namespace than the one that was named; pure.
//!
//! In: the objects of the installation. Out: that namespace, and what says so. What has no namespace goes by fixed names: with a wrong namespace it would
//! be taken from an operator whose processes then run on.

use serde_json::Value;

use super::found::Part;
use super::plan::{is_ours, title};
use crate::cli::render::rbac::Role;
use crate::cli::survey::text;

/// The operator's namespace, where that is not `own`, and the binding that names its account there. The first binding that there is decides: every
/// installation has both, and one that nobody renders any more may name an earlier place.
pub(super) fn operator(parts: &[Part], own: &str) -> Option<(String, String)> {
    let binding = [Role::Controllers, Role::Webhook].into_iter().find_map(|role| {
        let is_its = |part: &&Part| {
            text(&part.object, "/kind") == "ClusterRoleBinding"
                && text(&part.object, "/metadata/name") == role.name()
                && is_ours(part)
        };
        let part = parts.iter().find(is_its)?;
        Some((part, places(&part.object, role.name())))
    });
    let (part, places) = binding?;
    let another = places.first().filter(|_| !places.contains(&own))?;
    Some(((*another).to_owned(), title(&part.object)))
}

/// The namespaces of the accounts of that name which a binding gives rights to.
fn places<'b>(binding: &'b Value, account: &str) -> Vec<&'b str> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    let accounts = subjects.filter(|it| it["kind"] == "ServiceAccount" && it["name"] == account);
    accounts.map(|it| text(it, "/namespace")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(name: &str, by: &str, namespaces: &[&str]) -> Part {
        let subject = |namespace: &&str| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
        let subjects: Vec<Value> = namespaces.iter().map(subject).collect();
        let metadata = json!({"name": name, "labels": {"app.kubernetes.io/managed-by": by}});
        let object = json!({"kind": "ClusterRoleBinding", "metadata": metadata, "subjects": subjects});
        Part { path: format!("/{name}"), object, always_ours: false, edited: false }
    }

    #[test]
    fn an_operator_elsewhere_is_named_with_what_says_so() {
        let says = |parts: &[Part]| operator(parts, "own");
        let (controllers, webhook) = ("drawbridge-controllers", "drawbridge-webhook");
        let there = |binding: &str| Some(("there".to_owned(), format!("ClusterRoleBinding {binding}")));
        assert_eq!(says(&[binding(controllers, "drawbridge", &["there"])]), there(controllers));
        assert_eq!(says(&[binding(webhook, "drawbridge", &["there"])]), there(webhook), "what is left of one");
        for parts in [
            vec![],
            vec![binding(controllers, "drawbridge", &["own"])],
            vec![binding(controllers, "drawbridge", &["there", "own"])],
            vec![binding(controllers, "drawbridge", &[])],
            vec![binding(controllers, "somebody", &["there"])],
            // An earlier installation had a catalogue; today's has none.
            vec![
                binding(controllers, "drawbridge", &["own"]),
                binding("drawbridge-catalogue", "drawbridge", &["there"]),
            ],
        ] {
            assert_eq!(says(&parts), None, "{parts:?}");
        }
    }
}
