//! Why a list or watch ended early.

use std::time::Duration;

use kube::core::Status;

use crate::api::refusal;

/// Why a list or watch ended early. Its text holds nothing of the object, which may be a Secret.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The request failed, or the stream broke.
    #[error("{}", refusal::of_error(.0))]
    Request(#[from] kube::Error),
    /// The server reported an error within the stream, or refused the version to go on from.
    #[error("{}", refusal::of_status(.0))]
    Status(Box<Status>),
    /// No answer in that time.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The server ends watches at once.
    #[error("the API server ended the watch as soon as it had begun")]
    TooShort,
    /// A list without a version: there is nothing to go on from.
    #[error("the list has no resourceVersion")]
    NoVersion,
}

impl WatchError {
    /// The status code, where there was an answer.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            WatchError::Request(kube::Error::Api(status)) => Some(status.code),
            WatchError::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Everything has to be read again: a list is the truth whatever was known.
    #[must_use]
    pub fn gone(&self) -> bool {
        // A version that the server has not come to yet is a timeout by its own account.
        let ahead = |message: &str| message.contains("Too large resource version");
        match self {
            WatchError::TooShort => true,
            // What came cannot be decoded: from where it stopped the server says the same again, and nothing of what came since is heard. Of a line of a
            // watch the client library then makes a status without a code, because every member of a status may be absent.
            WatchError::Request(kube::Error::SerdeError(_)) => true,
            WatchError::Request(kube::Error::Api(status)) if status.code == 0 => true,
            WatchError::Request(kube::Error::Api(status)) if ahead(&status.message) => true,
            WatchError::Status(status) if ahead(&status.message) => true,
            _ => matches!(self.code(), Some(404 | 410)),
        }
    }

    /// How long the server wants to be left alone.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let WatchError::Request(kube::Error::Api(status)) = self else { return Duration::ZERO };
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(u64::from(seconds).min(60))
    }
}
