//! In which version a Secret or ConfigMap is, asked by name. In: which. Out: its uid and resourceVersion, or that there is none.
//!
//! Promise: nothing but metadata is asked for, so that no value of a Secret reaches this process.

use std::time::Duration;

use kube::Client;
use kube::core::params::GetParams;
use kube::core::{ObjectMeta, PartialObjectMeta, Request};

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
            Ok(Err(error)) => Err(open(format!("{title}: {error}"))),
        }
    }
}
