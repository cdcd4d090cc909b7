//! Writing the authority's Secret: create if absent, replace if unchanged.
//!
//! In: the Secret to write. Out: what the API server holds afterwards, whoever wrote it. Losing a race is no error:
//! the winner's Secret is read and returned. Where nobody has written since, the write was refused, whatever the code
//! of the answer.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::Api;
use kube::api::PostParams;

use crate::api::refusal;
use crate::domain::keys;

/// How long a write may take before it is given up and tried again.
const DEADLINE: Duration = Duration::from_secs(10);

/// What a write came to.
#[derive(Debug)]
pub(super) enum Written {
    /// Ours is there.
    Ours(Box<SecretObject>),
    /// Another writer was faster; this is there now, or nothing.
    Theirs(Option<Box<SecretObject>>),
}

/// Why a write came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// The API server's answer.
    #[error("the API server refused or could not be reached: {}", refusal::of_error(.0))]
    Api(#[from] kube::Error),
    /// No answer.
    #[error("the API server did not answer within {} seconds", DEADLINE.as_secs())]
    Deadline(#[from] tokio::time::error::Elapsed),
}

/// Writes the Secret: a replacement when it carries a resourceVersion, else a creation.
pub(super) async fn write(api: Api<SecretObject>, secret: SecretObject) -> Result<Written, WriteError> {
    tokio::time::timeout(DEADLINE, attempt(api, secret)).await?.map_err(WriteError::Api)
}

async fn attempt(api: Api<SecretObject>, secret: SecretObject) -> Result<Written, kube::Error> {
    let params = PostParams { field_manager: Some(keys::MANAGER_AUTHORITY.to_owned()), ..PostParams::default() };
    let replace = secret.metadata.resource_version.is_some();
    let answer = if replace {
        api.replace(keys::SECRET_AUTHORITY, &params, &secret).await
    } else {
        api.create(&params, &secret).await
    };
    match answer {
        Ok(secret) => Ok(Written::Ours(Box::new(secret))),
        // 409: it exists, or it changed; 404: it was deleted.
        Err(kube::Error::Api(status)) if status.code == 409 || (replace && status.code == 404) => {
            let now = api.get_opt(keys::SECRET_AUTHORITY).await?;
            let version = now.as_ref().and_then(|now| now.metadata.resource_version.as_ref());
            if version == secret.metadata.resource_version.as_ref() {
                return Err(kube::Error::Api(status));
            }
            Ok(Written::Theirs(now.map(Box::new)))
        }
        Err(error) => Err(error),
    }
}
