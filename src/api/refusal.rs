//! What of an API server's answer may stand in a log.
//!
//! In: a failed request. Out: one line for a log. Promises: nothing in it repeats what was sent or read. The server's
//! sentences quote it: a field's value in a 422, a parameter in the words of somebody's admission webhook or policy, a
//! quantity in those of a quota, a piece of an object in a decoder's complaint. What is left is the code, the reason, the
//! fields with the reason for each, and the name of the webhook or policy. Only where the server says that a right is
//! missing its sentence is kept: it was written before the object was read, and without it nobody could help. The whole
//! words belong on the object, in a condition: who may read that may read what they quote.

use kube::core::Status;

use crate::domain::keys;

/// How many fields are named.
const FIELDS: usize = 8;
/// Bytes of a field's path that may be logged.
const PATH: usize = 160;
/// Bytes of a word that may be logged: longer ones are no reasons.
const WORD: usize = 64;
/// Bytes of the name of a webhook or policy.
const NAME: usize = 253;

/// A failed request, for a log.
#[must_use]
pub fn of_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => of_status(status),
        kube::Error::SerdeError(error) => of_decoder(error),
        kube::Error::FromUtf8(_) => "an answer that is not UTF-8".to_owned(),
        // Said by the connection, which knows no objects.
        other => other.to_string(),
    }
}

/// A refusal, for a log.
#[must_use]
pub fn of_status(status: &Status) -> String {
    let mut line = status.code.to_string();
    if let Some(reason) = word(&status.reason) {
        line.push(' ');
        line.push_str(reason);
    }
    if let Some(denial) = denied_by(&status.message) {
        line.push_str(", ");
        line.push_str(&denial);
    } else if lacks_a_right(status) {
        line.push_str(": ");
        line.push_str(&status.message);
    }
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<_> = causes.filter_map(|cause| at(&cause.field, &cause.reason)).collect();
    if !fields.is_empty() {
        line.push_str(": ");
        line.push_str(&fields[..fields.len().min(FIELDS)].join(", "));
    }
    if fields.len() > FIELDS {
        line.push_str(", …");
    }
    line
}

/// Whether a policy refused that compares with other objects, of which the API server may hear a moment after we did: another try may
/// pass.
#[must_use]
pub fn is_of_the_moment(status: &Status) -> bool {
    let policies = [
        keys::POLICY_OWN_AGENTS,
        keys::POLICY_OWN_AGENTS_NEW,
        keys::POLICY_OWN_BUILDS_NEW,
        keys::POLICY_OWN_BEEAI_AGENTS_NEW,
        keys::POLICY_OWN_BEEAI_COMPAT_AGENTS_NEW,
        keys::POLICY_OWN_KAOS_AGENTS_NEW,
        keys::POLICY_OWN_KAOS_MODEL_APIS_NEW,
        keys::POLICY_OWN_KAOS_MCP_SERVERS_NEW,
        keys::POLICY_OWN_BEEAI_BUILDS_NEW,
        keys::POLICY_OWN_BEEAI_COMPAT_BUILDS_NEW,
        keys::POLICY_OWN_BEEAI_KEPT_NEW,
        keys::POLICY_OWN_BEEAI_COMPAT_KEPT_NEW,
    ];
    let denied = denied_by(&status.message);
    denied
        .is_some_and(|by| policies.iter().any(|policy| by.strip_suffix(policy).is_some_and(|rest| rest.ends_with(' '))))
}

/// Whether such a policy could not be asked at all, because the API server has not looked up the kind of its parameters yet: it looks for
/// definitions again every half a minute, so that is how the first minute of an installation goes. Another try will pass.
#[must_use]
pub fn is_early(status: &Status) -> bool {
    const BEFORE: [&str; 2] = ["failed to configure policy: ", "failed to configure binding: "];
    const WORDS: [&str; 2] = ["failed to find resource referenced by paramKind: ", "paramKind kind `"];
    let cause = told(status).and_then(|told| BEFORE.into_iter().find_map(|before| told.strip_prefix(before)));
    is_of_the_moment(status) && cause.is_some_and(|cause| WORDS.into_iter().any(|words| cause.starts_with(words)))
}

/// Whether such a policy found nothing to compare with: no object of the namespace carries what it looks for, or the API server has not heard of
/// it yet.
#[must_use]
pub fn is_unheard(status: &Status) -> bool {
    const WORDS: &str = "failed to configure binding: no params found for policy binding";
    is_of_the_moment(status) && told(status).is_some_and(|told| told.starts_with(WORDS))
}

/// What stands behind the name of the policy that refused.
fn told(status: &Status) -> Option<&str> {
    status.message.split_once(" denied request: ").map(|(_, told)| told)
}

/// Where a decoder stopped; its words quote what it stopped at.
fn of_decoder(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("an answer that cannot be read ({:?} error, line {line}, column {column})", error.classify())
}

/// Who refused, when it was not the API server itself. Those names are put in front by the API server.
fn denied_by(message: &str) -> Option<String> {
    let named = |kind: &str, (_, rest): (&str, &str), end| {
        let name = rest.split(end).next().filter(|name| name.len() <= NAME && name.bytes().all(of_a_name));
        name.map_or_else(|| format!("refused by {kind}"), |name| format!("refused by {kind} {name}"))
    };
    let webhook = message.split_once("admission webhook \"").map(|parts| (parts, '"', "admission webhook"));
    let policy =
        message.split_once("ValidatingAdmissionPolicy '").map(|parts| (parts, '\'', "ValidatingAdmissionPolicy"));
    // The earlier of the two is the API server's; the other one may be quoted.
    let first = webhook.into_iter().chain(policy).min_by_key(|((before, _), ..)| before.len());
    first.map(|(parts, end, kind)| named(kind, parts, end))
}

fn of_a_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
}

/// Whether the API server says that the user may not do that. Its authorisers speak before the object is read.
fn lacks_a_right(status: &Status) -> bool {
    let words = status.message.split_once(" is forbidden: User \"").map(|(_, words)| words);
    status.code == 403 && words.is_some_and(|words| words.contains("\" cannot ") && words.contains(" resource \""))
}

/// A field and the reason for it.
fn at(field: &str, reason: &str) -> Option<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'[' | b']');
    let field = Some(field).filter(|field| !field.is_empty() && field.len() <= PATH && field.bytes().all(known));
    match (field, word(reason)) {
        (Some(field), Some(reason)) => Some(format!("{field} ({reason})")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => None,
    }
}

/// A reason code, not a sentence.
fn word(reason: &str) -> Option<&str> {
    let is_word = !reason.is_empty() && reason.len() <= WORD && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then_some(reason)
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn status(code: u16, reason: &str, message: &str, causes: &[(&str, &str)]) -> Status {
        let cause = |(field, reason): &(&str, &str)| StatusCause {
            reason: (*reason).to_owned(),
            message: "Invalid value: \"canary\"".to_owned(),
            field: (*field).to_owned(),
        };
        let causes: Vec<_> = causes.iter().map(cause).collect();
        let details = StatusDetails {
            name: "canary".to_owned(),
            group: String::new(),
            kind: "pods".to_owned(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        };
        Status {
            status: None,
            code,
            message: message.to_owned(),
            metadata: None,
            reason: reason.to_owned(),
            details: Some(details),
        }
    }

    #[test]
    fn a_refusal_is_code_reason_and_fields() {
        let message = "Deployment.apps \"a\" is invalid: spec.x: Invalid value: \"canary\": no";
        let causes = [("spec.x[0].y", "FieldValueInvalid"), ("metadata.labels[a.b/c]", "FieldValueNotSupported")];
        let told = of_status(&status(422, "Invalid", message, &causes));
        assert_eq!(
            told,
            "422 Invalid: spec.x[0].y (FieldValueInvalid), metadata.labels[a.b/c] (FieldValueNotSupported)"
        );
    }

    #[test]
    fn who_refused_is_named_and_not_what_was_said() {
        let webhook = "admission webhook \"validation.webhook.pipeline.tekton.dev\" denied the request: validation \
                       failed: non-existent variable in \"canary\": ValidatingAdmissionPolicy 'canary' with";
        assert_eq!(
            of_status(&status(400, "BadRequest", webhook, &[])),
            "400 BadRequest, refused by admission webhook validation.webhook.pipeline.tekton.dev"
        );
        let policy = "pipelineruns.tekton.dev \"a\" is forbidden: ValidatingAdmissionPolicy 'house.rules' with binding \
                      'b' denied request: not \"canary\": admission webhook \"canary\"";
        assert_eq!(
            of_status(&status(422, "Invalid", policy, &[])),
            "422 Invalid, refused by ValidatingAdmissionPolicy house.rules"
        );
        let odd = "admission webhook \"Canary \" denied";
        assert_eq!(of_status(&status(400, "", odd, &[])), "400, refused by admission webhook");
    }

    #[test]
    fn a_missing_right_is_told_in_full() {
        let message = "pods is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"pods\" in API group \
                       \"\" at the cluster scope";
        assert_eq!(of_status(&status(403, "Forbidden", message, &[])), format!("403 Forbidden: {message}"));
        let quota = "persistentvolumeclaims \"a\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, \
                     but request is canary";
        assert_eq!(of_status(&status(403, "Forbidden", quota, &[])), "403 Forbidden");
        let claimed = "admission webhook \"a.b\" denied the request: x is forbidden: User \"u\" cannot create resource \
                       \"canary\"";
        assert_eq!(
            of_status(&status(403, "Forbidden", claimed, &[])),
            "403 Forbidden, refused by admission webhook a.b"
        );
    }

    #[test]
    fn mend_14_what_a_policy_compares_with_may_be_known_in_a_moment() {
        let says = |policy: &str| {
            let message = format!(
                "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: \
                 failed to configure binding: no params found"
            );
            is_of_the_moment(&status(422, "Invalid", &message, &[]))
        };
        assert!(
            says("drawbridge-own-agents") && says("drawbridge-own-agents-new") && says("drawbridge-own-builds-new")
        );
        assert!(says("drawbridge-own-beeai-kept-new") && says("drawbridge-own-beeai-compat-kept-new"));
        assert!(!says("drawbridge-own-workloads") && !says("other-drawbridge-own-agents"));
    }

    /// (policy, what stands behind that it denied, whether that is over in a minute)
    #[test]
    fn a_policy_whose_parameters_kind_is_not_looked_up_yet_is_known_by_its_words() {
        let unread = "failed to find resource referenced by paramKind: 'agent.kagenti.dev/v1alpha1, Kind=Agent'";
        let table = [
            ("drawbridge-own-agents", format!("failed to configure binding: {unread}"), true),
            ("drawbridge-own-agents-new", format!("failed to configure policy: {unread}"), true),
            ("drawbridge-own-builds-new", "failed to configure binding: paramKind kind `x` not known".to_owned(), true),
            (
                "drawbridge-own-beeai-kept-new",
                "failed to configure binding: paramKind kind `x` not known".to_owned(),
                true,
            ),
            (
                "drawbridge-own-kaos-agents-new",
                "failed to configure binding: paramKind kind `x` not yet synced to use for admission".to_owned(),
                true,
            ),
            (
                "drawbridge-own-agents",
                "failed to configure binding: no params found for policy binding".to_owned(),
                false,
            ),
            (
                "drawbridge-own-agents",
                format!("the image is not the Agent's: failed to configure binding: {unread}"),
                false,
            ),
            ("house-rules", format!("failed to configure binding: {unread}"), false),
        ];
        for (policy, told, is) in table {
            let message = format!(
                "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {told}"
            );
            assert_eq!(is_early(&status(422, "Invalid", &message, &[])), is, "{policy}: {told}");
        }
    }

    /// (policy, what stands behind that it denied, whether it only found nothing)
    #[test]
    fn a_policy_that_finds_nothing_to_compare_with_is_known_by_its_words() {
        let nothing =
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
        let table = [
            ("drawbridge-own-agents-new", nothing.to_owned(), true),
            ("drawbridge-own-kaos-mcpservers-new", nothing.to_owned(), true),
            ("drawbridge-own-builds-new", nothing.to_owned(), true),
            ("drawbridge-own-beeai-compat-kept-new", nothing.to_owned(), true),
            ("drawbridge-own-agents", "runs the image that the Agent names".to_owned(), false),
            ("drawbridge-own-agents", format!("it says: {nothing}"), false),
            ("house-rules", nothing.to_owned(), false),
        ];
        for (policy, told, is) in table {
            let message = format!(
                "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {told}"
            );
            let status = status(422, "Invalid", &message, &[]);
            assert_eq!((is_unheard(&status), is_early(&status)), (is, false), "{policy}: {told}");
        }
    }

    /// A webhook writes reason, fields and causes as it likes.
    #[test]
    fn what_is_neither_code_nor_path_is_left_out() {
        let causes = [("canary of a field", "canary of a reason"), ("<nil>", "x"), ("", "")];
        assert_eq!(of_status(&status(422, "canary of a reason", "canary", &causes)), "422: x");
        let long = "c".repeat(PATH + 1);
        assert_eq!(of_status(&status(422, &"c".repeat(WORD + 1), "", &[(&long, "")])), "422");
        let many = [("a", "b"); FIELDS + 1];
        assert_eq!(of_status(&status(422, "", "", &many)).matches("a (b)").count(), FIELDS);
        assert!(of_status(&status(422, "", "", &many)).ends_with(", …"));
    }

    #[test]
    fn what_a_decoder_quotes_is_left_out() {
        let error = serde_json::from_str::<u8>("\n\"canary\"").unwrap_err();
        assert!(error.to_string().contains("canary"));
        assert_eq!(
            of_error(&kube::Error::SerdeError(error)),
            "an answer that cannot be read (Data error, line 2, column 8)"
        );
        let status = status(409, "Conflict", "canary", &[(".spec.image", "FieldManagerConflict")]);
        let told = of_error(&kube::Error::Api(Box::new(status)));
        assert_eq!(told, "409 Conflict: .spec.image (FieldManagerConflict)");
    }
}
