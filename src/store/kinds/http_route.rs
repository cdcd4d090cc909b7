//! HTTPRoutes of Gateway API, where its definitions are installed: whose they are, and what became of them.

use serde_json::{Map, Value};

use super::What;
use super::claim::ClaimSeen;
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// HTTPRoutes with the labels of what KAOS makes.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::labelled("app in (agent,mcpserver,modelapi)", page::LARGE, UsedBy::Controllers)],
    ..Descriptor::optional(
        ("gateway.networking.k8s.io", "v1"),
        "httproutes",
        "HTTPRoute",
        Decode::Whole(|object| Some(What::HttpRoute(Box::new(route(object))))),
    )
};

/// An HTTPRoute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpRouteSeen {
    /// Whose it is.
    pub claim: ClaimSeen,
    /// What its Gateway says of it; `None` while nobody has said anything.
    pub accepted: Option<Accepted>,
}

/// Condition `Accepted` of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Whether it holds.
    pub holds: bool,
    /// Why, as a word.
    pub reason: Box<str>,
    /// Why, for people.
    pub message: Box<str>,
}

/// Bytes of a message that are kept.
const LONGEST: usize = 512;

fn accepted(status: &Map<String, Value>) -> Option<Accepted> {
    let parents = status.get("parents")?.as_array()?.iter();
    let conditions = parents.filter_map(|parent| parent.get("conditions")?.as_array()).flatten();
    let all: Vec<_> = conditions.filter(|one| one.get("type").is_some_and(|name| name == "Accepted")).collect();
    let holds = |one: &Value| one.get("status").is_some_and(|status| status == "True");
    // Of several Gateways' controllers one is enough.
    let one = all.iter().find(|one| holds(one)).or(all.first())?;
    let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = text("message");
    let message = &message[..message.floor_char_boundary(LONGEST)];
    Some(Accepted { holds: holds(one), reason: text("reason").into(), message: message.into() })
}

fn route(object: Whole) -> HttpRouteSeen {
    HttpRouteSeen {
        claim: ClaimSeen::of_few_fields(&object.metadata),
        accepted: object.status.and_then(|status| accepted(&status.into_members())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_gateway_that_accepts_is_enough_and_none_says_why() {
        let parent = |status: &str, reason: &str| json!({"conditions": [{"type": "Accepted", "status": status, "reason": reason, "message": "m"}]});
        let of = |parents: Value| {
            accepted(&Map::from_iter([("parents".to_owned(), parents)]))
                .map(|found| (found.holds, found.reason.to_string()))
        };
        assert_eq!(of(json!([])), None);
        assert_eq!(
            of(json!([parent("False", "NotAllowedByListeners")])),
            Some((false, "NotAllowedByListeners".to_owned()))
        );
        assert_eq!(of(json!([parent("False", "x"), parent("True", "Accepted")])), Some((true, "Accepted".to_owned())));
    }
}
