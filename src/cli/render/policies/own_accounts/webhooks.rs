//! Webhook configurations: one that calls somebody else for everything would be cluster-admin. Only `caBundle` is written, of entries
//! that stay where they are.

use super::{Fence, both, holds, rule, same};
use crate::domain::keys;

pub(super) fn fence() -> Fence {
    let entries = "variables.OF.?webhooks.orValue([]).map(w, w.transformMap(k, v, k != 'clientConfig', v))";
    let clients = "variables.OF.?webhooks.orValue([]).map(w, w.clientConfig.transformMap(k, v, k != 'caBundle', v))";
    let equal = |list: &str| format!("{} == {}", list.replace("OF", "new"), list.replace("OF", "old"));
    let metadata = ["?labels", "?annotations", "?ownerReferences", "?finalizers"]
        .map(|member| same(&format!("metadata.{member}")))
        .join(" && ");
    let only = "writes nothing of a webhook configuration but caBundle";
    let validations = vec![
        holds(
            format!("request.operation == 'UPDATE' && request.?name.orValue('') == '{}'", keys::WEBHOOK_CONFIGURATION),
            "changes no webhook configuration but its own, and makes none",
        ),
        holds(equal(entries), only),
        holds(equal(clients), only),
        holds(metadata, only),
    ];
    let kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    Fence {
        variables: both().into(),
        ..Fence::new(
            "drawbridge-own-webhooks",
            vec![rule("admissionregistration.k8s.io", &kinds, &["CREATE", "UPDATE"])],
            validations,
        )
    }
}
