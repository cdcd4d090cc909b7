//! Why there is no answer: a closed list, each with what people are told.

use super::address::Refused;
use super::{BODY, HEAD, HEADERS, WIRE};

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A connection.
    Connect,
    /// Status line and headers.
    Head,
    /// The body.
    Body,
}

/// What was more than is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Status line and headers.
    Head,
    /// The body.
    Body,
    /// Everything that came, with what is around the body.
    Wire,
}

/// Why a question was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    /// The address may not be connected to.
    #[error("Drawbridge never connects to {}", .0.as_str())]
    AddressRefused(Refused),
    /// Nobody listens, or nobody is there.
    #[error("no connection: {0}")]
    Connect(&'static str),
    /// It took too long.
    #[error("{}", match .0 {
        Phase::Connect => "no connection was made in time",
        Phase::Head => "no answer came in time",
        Phase::Body => "the answer began in time and did not end in time",
    })]
    Timeout(Phase),
    /// There was too much of it.
    #[error("{}", too_large(*.0))]
    TooLarge(Bound),
    /// Nothing is at that path.
    #[error("answered with HTTP status 404")]
    NotFound,
    /// It says where else to ask, which nobody does.
    #[error("answered with a redirect (HTTP status {0}), and redirects are not followed")]
    Redirect(u16),
    /// Another status than 200.
    #[error("answered with HTTP status {code}{}{said}", if said.is_empty() { "" } else { ": " })]
    Status {
        /// The status.
        code: u16,
        /// How the body begins, as it may stand in a sentence.
        said: Box<str>,
        /// The header Server is Envoy's.
        envoy: bool,
    },
    /// The body is compressed, though that was not asked for.
    #[error("the answer is compressed, which Drawbridge does not ask for and does not read")]
    Encoded,
    /// The connection was taken and closed without a word.
    #[error("the connection was accepted and then closed without an answer")]
    Closed,
    /// It speaks TLS.
    #[error("the port answers with TLS, not with HTTP")]
    SpeaksTls,
    /// The answer ended before its end.
    #[error("the connection broke in the middle of the answer")]
    Cut,
    /// It is not HTTP/1.1.
    #[error("the answer is not readable HTTP/1.1")]
    Malformed,
}

fn too_large(bound: Bound) -> String {
    match bound {
        Bound::Head => format!("the answer has more than {HEAD} bytes or {HEADERS} lines of headers"),
        Bound::Body => format!("the answer is larger than {BODY} bytes"),
        Bound::Wire => {
            format!("the answer takes more than {WIRE} bytes on the wire; at most {BODY} bytes of content are read")
        }
    }
}
