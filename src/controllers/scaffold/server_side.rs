//! Server-side applies: what stands in their way, and whether trying again helps.
//!
//! In: a whole object, or the fields of an enrolment. Out: the object as it is then, or a refusal. Promise: nothing of a user's is taken over
//! by force, except on objects that are ours as a whole.

use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::{Request as Builder, Status};
use serde_json::Value;

use super::apply::{ApplyError, Learned, absent, built, describe, failed, learned, refused};
use super::plan::Op;
use crate::api::refusal;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

/// Server-side apply; forced where nothing but annotations and the marker of ours is somebody else's.
pub(super) async fn enrol(
    client: &Client,
    (kind, key, body): (Kind, &Key, &Value),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let path = kind.path(&key.namespace);
    for force in [false, true] {
        let mut parameters = PatchParams::apply(keys::MANAGER_ENROLMENT);
        parameters.force = force;
        let request = Builder::new(&path).patch(&key.name, &parameters, &Patch::Apply(body));
        let status = match client.request_text(built(op, request)?).await {
            Ok(text) => return learned(kind, &text, op),
            Err(kube::Error::Api(status)) => status,
            Err(error) => return Err(failed(op, error)),
        };
        let refused = |reason| refused(op, reason, &status);
        match (status.code, foreign(&status)) {
            (404, _) => return absent(failed(op, kube::Error::Api(status)), kind, key),
            (409, Foreign::None) => return Err(failed(op, kube::Error::Api(status))),
            (409, Foreign::Ours) if !force => {}
            (409, _) => return Err(refused(Reason::LabelConflict)),
            _ if refusal::is_early(&status) => return Err(failed(op, kube::Error::Api(status))),
            _ => return Err(refusal_of(&status).map_or_else(|| failed(op, kube::Error::Api(status.clone())), refused)),
        }
    }
    Err(ApplyError::Conflict { what: describe(op) })
}

/// Why an enrolment is refused however often it is tried; `None` where another try may help.
fn refusal_of(status: &Status) -> Option<Reason> {
    match status.code {
        // Only the API server's own words about rights: admission forbids with the same code.
        401 => Some(Reason::NotPermitted),
        403 if status.message.contains("cannot patch resource") => Some(Reason::NotPermitted),
        422 if status.message.contains("`selector` does not match") => Some(Reason::ImmutableSelector),
        400 | 403 | 405..=428 => Some(Reason::ConfigApplyError),
        _ => None,
    }
}

/// Server-side apply of a whole object of ours: what others have set of it is taken back. What the API server will not
/// take however often it is tried is a refusal, with its words.
pub(super) async fn own(
    client: &Client,
    manager: &str,
    (kind, key, body): (Kind, &Key, &Value),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let parameters = PatchParams::apply(manager).force();
    let request = Builder::new(kind.path(&key.namespace)).patch(&key.name, &parameters, &Patch::Apply(body));
    let status = match client.request_text(built(op, request)?).await {
        Ok(text) => return learned(kind, &text, op),
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Err(failed(op, error)),
    };
    let refused = |reason| refused(op, reason, &status);
    let schema = ["field not declared in schema", "failed to create typed patch object", "duplicate entries for key"];
    match status.code {
        // Another object of that name than the one that was planned for.
        422 if status.message.contains("metadata.uid") => Err(ApplyError::Conflict { what: describe(op) }),
        404 => absent(failed(op, kube::Error::Api(status)), kind, key),
        // Only the API server's own words about rights: admission forbids with the same code.
        401 | 403 if status.message.contains("cannot patch resource") => Err(refused(Reason::NotPermitted)),
        _ if refusal::is_of_the_moment(&status) => Err(failed(op, kube::Error::Api(status))),
        // A namespace that is being deleted, or a quota that may be free in a moment.
        403 if status.message.contains("terminated") || status.message.contains("quota") => {
            Err(failed(op, kube::Error::Api(status)))
        }
        400 | 403 | 422 => Err(refused(Reason::InvalidSpec)),
        // Fields that this API server does not know.
        500 if schema.iter().any(|words| status.message.contains(words)) => Err(refused(Reason::InvalidSpec)),
        _ => Err(failed(op, kube::Error::Api(status))),
    }
}

/// Whose fields stood in the way of a server-side apply.
enum Foreign {
    /// Nobody's: the object is another one, or gone.
    None,
    /// Only keys that nobody but an operator writes.
    Ours,
    /// The user's type label.
    Type,
}

fn foreign(status: &Status) -> Foreign {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<_> =
        causes.filter(|cause| cause.reason == "FieldManagerConflict").map(|cause| &cause.field).collect();
    match () {
        () if fields.is_empty() => Foreign::None,
        () if fields.iter().any(|field| field.contains(keys::LABEL_TYPE)) => Foreign::Type,
        () => Foreign::Ours,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A policy that forbids is no missing right: the doctor would find none, and a deletion would wait for ever.
    #[test]
    fn what_admission_forbids_is_told_from_what_rights_do() {
        let status = |code: u16, message: &str| {
            let status = json!({"status": "Failure", "code": code, "reason": "r", "message": message});
            serde_json::from_value::<Status>(status).unwrap()
        };
        for (code, message, reason) in [
            (
                403,
                "deployments.apps \"web\" is forbidden: User \"u\" cannot patch resource \"deployments\" in API group \"apps\"",
                Some(Reason::NotPermitted),
            ),
            (
                403,
                "admission webhook \"validate.kyverno.svc\" denied the request: limits",
                Some(Reason::ConfigApplyError),
            ),
            (
                403,
                "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
                Some(Reason::ConfigApplyError),
            ),
            (422, "spec.template.metadata.labels: `selector` does not match", Some(Reason::ImmutableSelector)),
            (
                422,
                "ValidatingAdmissionPolicy 'p' denied request: nodeSelector is missing",
                Some(Reason::ConfigApplyError),
            ),
            (401, "Unauthorized", Some(Reason::NotPermitted)),
            (429, "slow down", None),
            (500, "failed calling webhook", None),
        ] {
            assert_eq!(refusal_of(&status(code, message)), reason, "{code} {message}");
        }
    }
}
