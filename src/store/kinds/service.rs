//! Services: whose they are, and what an Agent's controller compares of its own.

use std::sync::Arc;

use serde_json::Value;

use super::What;
use super::claim::ClaimSeen;
use crate::domain::keys;
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// Services.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::all(page::LARGE, UsedBy::Controllers)],
    ..Descriptor::built_in("", "services", "Service", Decode::Whole(|object| Some(What::Service(service(object)))))
};

/// A Service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceSeen {
    /// Whose it is.
    pub claim: ClaimSeen,
    /// `ports`, `selector` and `type` of its `spec`, as stored: what drifts from what was applied. Kept only of those
    /// that an object of our groups controls.
    pub spec: Option<Arc<Value>>,
}

fn service(object: Whole) -> ServiceSeen {
    let claim = ClaimSeen::of(&object.metadata);
    let ours = claim.controller.as_ref().is_some_and(|owner| owner.group() == keys::GROUP_AGENT);
    let spec = object.spec.filter(|_| ours).map(|spec| {
        let kept = ["ports", "selector", "type"].into_iter();
        Arc::new(Value::Object(kept.filter_map(|key| Some((key.to_owned(), spec.get(key)?.clone()))).collect()))
    });
    ServiceSeen { claim, spec }
}
