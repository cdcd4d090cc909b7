//! In which version a Secret or ConfigMap is, asked by name. In: which. Out: its uid and resourceVersion, or that there is none.
//!
//! Promise: nothing but metadata is asked for, so that no value of a Secret reaches this process.

use std::time::Duration;

use kube::Client;
use kube::core::params::GetParams;
use kube::core::{ObjectMeta, PartialObjectMeta, Request};

use crate::api::refusal;
use crate::controllers::kaos_references::question::{ABSENT, VersionOf};
use crate::controllers::scaffold::lane::{Adapter, AskError, AskFault, Attempt};
use crate::domain::printable::printable;
use crate::domain::reason::Reason;

/// How long the API server has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a message.
const MESSAGE: usize = 512;

/// Asks by that client.
pub(super) struct Versions(pub(super) Client);

impl Adapter<VersionOf> for Versions {
    async fn ask(&self, question: VersionOf, _: Attempt) -> Result<Box<str>, AskError> {
        let title = format!("{} {}", question.kind.as_str(), question.name);
        let failed =
            |fault, reason, message: String| AskError { fault, reason, message: printable(&message, MESSAGE).into() };
        let open = |message: String| failed(AskFault::Unreachable, Reason::FetchFailed, message);
        let request = Request::new(question.kind.path(&question.namespace));
        let request = request.get_metadata(&question.name, &GetParams::default());
        let request = request.map_err(|error| open(format!("{title}: {error}")))?;
        let asked = self.0.request::<PartialObjectMeta<()>>(request);
        match tokio::time::timeout(PATIENCE, asked).await {
            Err(_) => Err(open(format!("{title}: the API server did not answer in time"))),
            Ok(Ok(PartialObjectMeta { metadata: ObjectMeta { uid, resource_version, .. }, .. })) => {
                Ok(format!("{}/{}", uid.unwrap_or_default(), resource_version.unwrap_or_default()).into())
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(ABSENT.into()),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                Err(failed(AskFault::Refused, Reason::NotPermitted, format!("{title} may not be read")))
            }
            Ok(Err(error)) => Err(open(unanswered(&title, &error))),
        }
    }
}

/// What a status may say of a question that the API server did not answer: the client library's own words for a refusal are half a page of its
/// source, and those for an answer that cannot be read repeat it.
pub(super) fn unanswered(title: &str, error: &kube::Error) -> String {
    format!("{title}: {}", refusal::of_error(error))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn what_the_api_server_refuses_is_told_by_its_code_and_reason() {
        let api = |code, reason: &str| kube::Error::Api(Status::failure("canary", reason).with_code(code).boxed());
        let unread = serde_json::from_str::<u8>("\"canary\"").unwrap_err();
        for (error, words) in [
            (api(503, "ServiceUnavailable"), "Secret s: 503 ServiceUnavailable"),
            (api(502, "Failed to parse error data"), "Secret s: 502"),
            (kube::Error::SerdeError(unread), "Secret s: an answer that cannot be read (Data error, line 1, column 8)"),
        ] {
            assert_eq!(unanswered("Secret s", &error), words);
        }
    }
}
