//! Roles and RoleBindings by which Pods publish their signed card: the ones that we made, by their label and name.
//!
//! In: the object. Out: whose it is, and what it gives to whom. Promise: no other right of the cluster is kept, and of one that somebody wrote under
//! such a name and label no more than 4 KiB.

use serde_json::{Value, json};

use super::signed_card::is_signed_card;
use super::{Kind, What};
use crate::store::decode::identity::owner;
use crate::store::decode::wire::Raw;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Over, Selection, UsedBy};

const GROUP: &str = "rbac.authorization.k8s.io";
/// What we make, of whatever kind.
const OURS: &str = "app.kubernetes.io/managed-by=drawbridge";

/// Longest text of what is given that is kept, in bytes: what we make takes less than a quarter of it, and what is longer is not ours.
const KEPT: usize = 4096;

const SELECTED: Selection =
    Selection { keep: |key, _| is_signed_card(key), ..Selection::labelled(OURS, page::SMALL, UsedBy::Controllers) };

/// Roles.
pub(super) const ROLE: Descriptor = Descriptor {
    selections: &[SELECTED],
    bounded: true,
    ..Descriptor::built_in(GROUP, "roles", "Role", Decode::Common(project))
};

/// RoleBindings.
pub(super) const ROLE_BINDING: Descriptor = Descriptor {
    selections: &[SELECTED],
    bounded: true,
    ..Descriptor::built_in(GROUP, "rolebindings", "RoleBinding", Decode::Common(project))
};

/// A Role or RoleBinding.
#[derive(Debug, Clone, PartialEq)]
pub struct RightSeen {
    /// The owner that controls it, by its uid.
    pub owner: Option<Box<str>>,
    /// What it gives: `rules` of a Role; `roleRef` and `subjects` of a RoleBinding; null where that is longer than 4 KiB or not read.
    pub gives: Value,
    /// A bound that it is over: what it gives was not read.
    pub over: Option<Over>,
}

impl RightSeen {
    /// The same of which nothing is known but whose it is, because it is `over` a bound.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { owner: self.owner.clone(), gives: Value::Null, over: Some(over) }
    }
}

fn project(kind: Kind, raw: Raw) -> Option<What> {
    let gives = match kind {
        Kind::Role => json!({"rules": raw.rules}),
        _ => json!({"roleRef": raw.role_ref, "subjects": raw.subjects}),
    };
    let is_kept = serde_json::to_vec(&gives).is_ok_and(|text| text.len() <= KEPT);
    let gives = if is_kept { gives } else { Value::Null };
    let owner = owner(&raw.metadata).map(|owner| owner.uid.as_str().into());
    Some(What::Right(Box::new(RightSeen { owner, gives, over: None })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::decode::change_of;

    #[test]
    fn what_a_right_gives_is_kept_and_whose_it_is() {
        let metadata = json!({"name": "w-card-signed", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "d", "controller": true}]});
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
        let role = json!({"metadata": metadata, "rules": rules});
        let reference = json!({"apiGroup": GROUP, "kind": "Role", "name": "w-card-signed"});
        let subjects = json!([{"kind": "ServiceAccount", "name": "w", "namespace": "n"}]);
        let binding = json!({"metadata": metadata, "roleRef": reference, "subjects": subjects});
        for (kind, object, gives) in [
            (Kind::Role, role, json!({"rules": rules})),
            (Kind::RoleBinding, binding, json!({"roleRef": reference, "subjects": subjects})),
        ] {
            let change = change_of(kind, &object.to_string()).unwrap();
            let seen = RightSeen { owner: Some("d".into()), gives, over: None };
            assert_eq!(change.now.unwrap().what, What::Right(Box::new(seen)), "{kind:?}");
        }
    }

    #[test]
    fn of_a_right_that_is_longer_than_ours_can_be_nothing_is_kept_but_whose_it_is() {
        let role = |verbs: usize| {
            json!({"metadata": {"name": "w-card-signed", "namespace": "n", "uid": "u", "resourceVersion": "7"},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": vec!["get"; verbs]}]})
        };
        let gives = |verbs| match &change_of(Kind::Role, &role(verbs).to_string()).unwrap().now.unwrap().what {
            What::Right(seen) => seen.gives.clone(),
            other => unreachable!("{other:?}"),
        };
        assert_eq!(gives(2)["rules"][0]["verbs"], json!(["get", "get"]));
        assert_eq!(gives(KEPT), Value::Null);
    }
}
