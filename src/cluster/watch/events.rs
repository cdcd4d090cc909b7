//! What a watch says, line by line.
//!
//! In: the request for a watch. Out: its events. Promises: an object is read of an event as it is read of a list ([`nesting`]), so that whoever writes one
//! that is too deep, as often as they like, makes no list necessary; a line that a connection breaks off in is no event, and the end of a connection is
//! the end of the watch, whole or not.
//!
//! Not the client library's `request_events`: of a line that cannot be decoded it hands nothing on, and so everything would have to be listed again.

use std::error::Error;
use std::io;

use futures::stream::{BoxStream, unfold};
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::Client;
use kube::core::{Status, WatchEvent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::store::decode::nesting;

/// A watch that runs.
pub(super) type Events<R> = BoxStream<'static, kube::Result<WatchEvent<R>>>;

/// Causes of an error that are looked through: HTTP and TLS have a handful.
const CAUSES: usize = 16;

/// Begins a watch.
pub(super) async fn of<R>(client: Client, mut request: Request<Vec<u8>>) -> kube::Result<Events<R>>
where
    R: DeserializeOwned + Send + 'static,
{
    // From 1.37 on an API server compresses each event by itself, of which decoders of streams read the first alone.
    request.headers_mut().entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    let lines = Box::pin(client.request_stream(request).await?).lines();
    let events = unfold(lines, |mut lines| async move {
        loop {
            let event = match lines.next().await {
                None => return None,
                Some(Ok(line)) => said::<R>(&line),
                Some(Err(error)) if is_broken_off(&error) => return None,
                Some(Err(error)) => Some(Err(kube::Error::ReadEvents(error))),
            };
            if let Some(event) = event {
                return Some((event, lines));
            }
        }
    });
    Ok(Box::pin(events))
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Happened {
    Added,
    Modified,
    Deleted,
}

/// An event of an object whose text is not looked into.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(rename = "type")]
    happened: Happened,
    #[serde(borrow)]
    object: &'l RawValue,
}

impl Line<'_> {
    fn event<R: DeserializeOwned>(self) -> Option<WatchEvent<R>> {
        let object = nesting::read(self.object.get()).ok()?;
        Some(match self.happened {
            Happened::Added => WatchEvent::Added(object),
            Happened::Modified => WatchEvent::Modified(object),
            Happened::Deleted => WatchEvent::Deleted(object),
        })
    }
}

/// What a line says; nothing, where it is not whole. Of a line that is no event whatever its depth the error is that of the client library: the status
/// that it may be, whose members may all be absent, or what is wrong with it.
pub(super) fn said<R: DeserializeOwned>(line: &str) -> Option<kube::Result<WatchEvent<R>>> {
    let error = match serde_json::from_str(line) {
        Ok(event) => return Some(Ok(event)),
        Err(error) => error,
    };
    let whole = serde_json::from_str::<Line<'_>>(line);
    // What lies too deep is noticed before the end that a line lacks.
    if error.is_eof() || whole.as_ref().is_err_and(serde_json::Error::is_eof) {
        return None;
    }
    Some(match whole.ok().and_then(Line::event) {
        Some(event) => Ok(event),
        None => Err(match serde_json::from_str::<Status>(line) {
            Ok(status) => kube::Error::Api(status.boxed()),
            Err(_) => kube::Error::SerdeError(error),
        }),
    })
}

/// The connection ended in the middle of an answer, as it does when an API server goes.
fn is_broken_off(error: &io::Error) -> bool {
    let is_end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
    let mut cause = error.get_ref().map(|cause| cause as &(dyn Error + 'static));
    for _ in 0..CAUSES {
        let Some(one) = cause else { break };
        if one.downcast_ref::<io::Error>().is_some_and(is_end) {
            return true;
        }
        cause = one.source();
    }
    is_end(error)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn deep(levels: usize) -> String {
        format!("{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{}{}}}", "[".repeat(levels), "]".repeat(levels))
    }

    /// What is said of an object: the word for it, and the object.
    fn of_object(line: &str) -> Option<(&'static str, Value)> {
        match said::<Value>(line)?.ok()? {
            WatchEvent::Added(object) => Some(("ADDED", object)),
            WatchEvent::Modified(object) => Some(("MODIFIED", object)),
            WatchEvent::Deleted(object) => Some(("DELETED", object)),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        }
    }

    #[test]
    fn an_event_of_an_object_that_is_too_deep_is_one_of_what_can_be_read() {
        for word in ["ADDED", "MODIFIED", "DELETED"] {
            for levels in [1, 99, 125, 126, 127, 128, 5_000] {
                let object = deep(levels);
                let read: Value = nesting::read(&object).unwrap();
                assert_eq!(read["metadata"]["name"], "a");
                for line in [
                    format!("{{\"type\":\"{word}\",\"object\":{object}}}"),
                    format!("{{ \"object\" : {object}, \"more\": 1, \"type\":\"{word}\" }}"),
                ] {
                    assert_eq!(of_object(&line), Some((word, read.clone())), "{levels}");
                    // The connection breaks off in it.
                    for end in [line.len() / 4, line.len() / 2, line.len() - 1] {
                        assert!(said::<Value>(&line[..end]).is_none(), "{levels}, {end} of {}", line.len());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_event_is_an_error_and_what_is_of_no_object_stays_as_it_was() {
        for line in ["", " ", "{", "{\"type\":\"ADDED\""] {
            assert!(said::<Value>(line).is_none(), "{line:?}");
        }
        let bookmark =
            r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}}"#;
        let Some(Ok(WatchEvent::Bookmark(marked))) = said::<Value>(bookmark) else { panic!("no bookmark") };
        assert_eq!(marked.metadata.resource_version, "12");
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        let Some(Ok(WatchEvent::Error(status))) = said::<Value>(gone) else { panic!("no error") };
        assert_eq!(status.code, 410);
        let refused = r#"{"kind":"Status","code":429,"message":"busy"}"#;
        let Some(Err(kube::Error::Api(status))) = said::<Value>(refused) else { panic!("no refusal") };
        assert_eq!(status.code, 429);
        // An object of another shape, at whatever depth, and a word that nobody knows: everything is to be read again.
        for line in [
            "{\"type\":\"ADDED\",\"object\":[1,-2]}".to_owned(),
            format!("{{\"type\":\"ADDED\",\"object\":{}}}", deep(300)),
            "{\"type\":\"MOVED\",\"object\":{}}".to_owned(),
        ] {
            let error = said::<Vec<u8>>(&line).expect("a whole line").expect_err("no event");
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 0), "{line:.40}: {error}");
        }
        assert!(matches!(said::<Value>("[1]"), Some(Err(kube::Error::SerdeError(_)))));
    }

    #[test]
    fn an_answer_that_breaks_off_is_the_end_and_every_other_failure_is_one() {
        let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "in the middle of a chunk");
        assert!(is_broken_off(&end()));
        assert!(is_broken_off(&io::Error::other(kube::Error::ReadEvents(end()))));
        assert!(is_broken_off(&io::Error::other(kube::Error::Service(Box::new(kube::Error::ReadEvents(end()))))));
        assert!(!is_broken_off(&io::Error::other("reset")));
        assert!(!is_broken_off(&io::Error::from(io::ErrorKind::ConnectionReset)));
        let late = io::Error::from(io::ErrorKind::TimedOut);
        assert!(!is_broken_off(&io::Error::other(kube::Error::ReadEvents(late))));
    }
}
