//! How the Pods of an agent sign its card, where they do. In: the card, its workload and Pods. Out: that none has signed yet, or whether the sidecar that
//! was asked for is in each of them; nothing where they sign when they start, and have.

use serde_json::Value;

use super::{Check, Facts, check, unknown};
use crate::cli::card::row::condition;
use crate::cli::survey::text;
use crate::domain::keys;
use crate::domain::reason::Reason;

const NAME: &str = "signing";

pub(super) fn signing(facts: &Facts) -> Option<Check> {
    let awaited = condition(&facts.card, Reason::AwaitsSignature.code());
    if let Some(awaited) = awaited.filter(|awaited| text(awaited, "/status") == "True") {
        return Some(unknown(NAME, text(awaited, "/message")));
    }
    let (workload, signer) = (facts.workload.as_ref()?, keys::CONTAINER_SIGNER);
    let asks = |at: &str| {
        let asked = workload.pointer(at).and_then(|template| template.pointer("/metadata/annotations"));
        asked.and_then(|all| all.get(keys::ANNOTATION_SIGN)).and_then(Value::as_str) == Some(keys::SIGN_SIDECAR)
    };
    let all = facts.pods.len();
    if all == 0 || !["/spec/template", "/spec/podTemplate"].into_iter().any(asks) {
        return None;
    }
    let without = facts.pods.iter().filter(|pod| !stays(pod)).count();
    let place = super::place(facts);
    let remedy = format!(
        "kubectl {place} rollout restart replaces Pods that are older than the annotation; where new ones have none either, drawbridge explain {place} \
         KIND/NAME of the workload says why"
    );
    Some(check(
        NAME,
        match without {
            0 => {
                Ok(format!("sidecar {signer} of each of its Pods signs the card whenever the SVID is renewed ({all})"))
            }
            _ => Err((
                format!("{without} of {all} Pods have no sidecar {signer}, and do not sign the card anew"),
                remedy,
            )),
        },
    ))
}

/// The Pod has the signer as a native sidecar.
fn stays(pod: &Value) -> bool {
    let inits = pod.pointer("/spec/initContainers").and_then(Value::as_array);
    let is_signer =
        |one: &Value| text(one, "/name") == keys::CONTAINER_SIGNER && text(one, "/restartPolicy") == "Always";
    inits.into_iter().flatten().any(is_signer)
}
