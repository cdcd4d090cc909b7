//! What is asked of every answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::admission::patch::PatchOperation;
use drawbridge::admission::verdict::{Outcome, Verdict};
use drawbridge::api::review::{self, Encoded, Operation, Phase, Request, Response, Status};
use serde_json::Value;
use serde_json::value::to_raw_value;

/// Longest refusal and longest single warning, in bytes: people read them, and the API server passes them on.
const LONGEST: usize = 32 * 1024;

/// What is said is said in a length that people can read, whatever was sent.
pub fn short(verdict: &Verdict) {
    if let Outcome::Deny(denial) = &verdict.outcome {
        let length = denial.to_string().len();
        assert!(length <= LONGEST, "a refusal of {length} bytes");
    }
    let longest = verdict.warnings.iter().map(|warning| warning.to_string().len()).max().unwrap_or(0);
    assert!(longest <= LONGEST, "a warning of {longest} bytes");
    let longest = verdict.audit.iter().map(|(_, value)| value.len()).max().unwrap_or(0);
    assert!(longest <= LONGEST, "an audit annotation of {longest} bytes");
}

/// The object with these operations applied, each of which must apply.
#[must_use]
pub fn applied(object: &Value, operations: &[PatchOperation]) -> Value {
    let mut object = object.clone();
    json_patch::patch(&mut object, operations).unwrap_or_else(|error| panic!("{error} in {operations:?}"));
    object
}

/// The same request about another object.
pub fn with_object<T>(request: &Request<'_>, object: &Value, call: impl FnOnce(&Request<'_>) -> T) -> T {
    let raw = to_raw_value(object).expect("a value serialises");
    call(&Request { object: Some((&*raw).into()), ..in_phase(request, request.phase) })
}

/// The same request about other objects: an update where there is an old one, else a creation.
pub fn with_objects<T>(
    request: &Request<'_>,
    object: &Value,
    old: Option<&Value>,
    call: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let raw = to_raw_value(object).expect("a value serialises");
    let old = old.map(|old| to_raw_value(old).expect("a value serialises"));
    call(&Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        object: Some((&*raw).into()),
        old_object: old.as_deref().map(Into::into),
        ..in_phase(request, request.phase)
    })
}

/// The same request, as the webhook of that phase gets it.
#[must_use]
pub fn in_phase<'r>(request: &Request<'r>, phase: Phase) -> Request<'r> {
    Request {
        phase,
        uid: request.uid.clone(),
        kind: request.kind.clone(),
        sub_resource: request.sub_resource.clone(),
        name: request.name.clone(),
        namespace: request.namespace.clone(),
        operation: request.operation,
        dry_run: request.dry_run,
        object: request.object.clone(),
        old_object: request.old_object.clone(),
    }
}

/// Writes the answer as the server does, and reads it again: it is JSON that carries the uid and says what was decided.
pub fn encoded(request: &Request<'_>, verdict: &Verdict) {
    let patch = match &verdict.outcome {
        Outcome::Patch(operations) => {
            assert!(!operations.is_empty(), "a patch without operations");
            Some(serde_json::to_vec(operations).expect("a patch serialises"))
        }
        Outcome::Allow | Outcome::Deny(_) => None,
    };
    let (code, message) = match &verdict.outcome {
        Outcome::Deny(denial) => {
            assert!((400..600).contains(&denial.code), "code {}", denial.code);
            (denial.code, denial.to_string())
        }
        _ => (200, verdict.reason.code().to_owned()),
    };
    let warnings: Vec<String> = verdict.warnings.iter().map(ToString::to_string).collect();
    let audit: Vec<(&str, &str)> = verdict.audit.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let encoded = patch.as_deref().map(Encoded::of);
    let response = Response {
        version: review::API_VERSION,
        uid: &request.uid,
        allowed: verdict.allowed(),
        status: Status { code, message: &message },
        patch: encoded.as_ref(),
        warnings: &warnings,
        audit: &audit,
    };
    let bytes = review::encode(&response).expect("a verdict serialises");
    let answer: Value = serde_json::from_slice(&bytes).expect("an answer is JSON");
    let response = &answer["response"];
    assert_eq!(response["uid"], request.uid.as_ref());
    assert_eq!(response["allowed"], verdict.allowed());
    assert_eq!(response["status"]["code"], code);
    assert!(bytes.len() < 64 * 1024 * 1024);
    let sent = response["patch"].as_str().map(|patch| STANDARD.decode(patch).expect("the patch is base64"));
    let sent: Option<Value> = sent.map(|patch| serde_json::from_slice(&patch).expect("the patch is JSON"));
    assert_eq!(sent, patch.map(|patch| serde_json::from_slice(&patch).expect("a patch is JSON")));
}
