//! `drawbridge-trust-cards`: what an AgentCard's status says is believed, so nobody but us writes it. Finalizers of ours are ours, too, but
//! for taking them off a card that is being deleted: nobody is held up by an operator that is not there.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::Install;
use super::super::super::selectors::condition;
use super::super::{Refusal, listed, refusal, written};
use super::by_us;
use crate::domain::keys;

/// Its name.
const NAME: &str = "drawbridge-trust-cards";

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let finalizers = |of: &str| {
        let ours = listed([keys::FINALIZER_CARD, keys::FINALIZER_CARD_POLICY]);
        format!("{of}.metadata.?finalizers.orValue([]).filter(f, f in [{ours}])")
    };
    let rule = Refusal {
        applies: vec![condition("not-by-us", &format!("!({})", by_us(install)))],
        variables: Vec::new(),
        holds: format!(
            "request.?subResource.orValue('') != 'status' && (has(oldObject.metadata.deletionTimestamp) || {} == {})",
            finalizers("object"),
            finalizers("oldObject"),
        ),
        message: format!(
            "the status of an AgentCard and the finalizers {} and {} are written by Drawbridge alone: what agents may reach follows from them. \
             What to do: leave them to the operator; drawbridge explain agentcard/NAME shows what would change the status",
            keys::FINALIZER_CARD,
            keys::FINALIZER_CARD_POLICY
        ),
        message_expression: None,
    };
    refusal(install, NAME, matched(), rule)
}

fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        operations: Some(vec!["UPDATE".to_owned()]),
        resources: Some(["agentcards", "agentcards/status"].map(str::to_owned).into()),
        ..written("agentcards")
    }
}
