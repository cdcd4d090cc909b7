//! List and watch as an API server may answer: pages, duplicates, late events, 410, silence, errors.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::cluster::keeper::{Keeper, Keeps, Witness};
use crate::cluster::watch::{WatchError, Watching};
use crate::server::stores::Client;
use crate::server::stores::sources::Source;
use crate::server::stores::watch::{Sink, run};
use crate::store::{Change, Kind, Reach, Selection, SelectionId, Store, Taken, UsedBy};

/// How one request is answered.
pub(super) enum Answer {
    /// A page: items as (name, version), the list's version, and whether there is more.
    Page(&'static [(&'static str, u64)], u64, bool),
    /// A page of version 7 with that object, and one behind it that is none.
    Half(&'static str, u64),
    /// So many bytes of a page, which goes on for ever.
    Endless(usize),
    /// Watch events as (type, name, version), then the end.
    Events(&'static [(&'static str, &'static str, u64)]),
    /// Watch events, then silence.
    Stuck(&'static [(&'static str, &'static str, u64)]),
    /// Nothing for so many seconds, then the end.
    Quiet(u64),
    /// A bookmark of that version after so many seconds, then the end.
    Marked(u64, u64),
    /// A status.
    Fails(u16),
    /// A status with those words, and how long to wait.
    Says(u16, &'static str, u32),
}

/// What was asked, and when.
pub(super) type Asked = Vec<(Duration, String)>;

/// Answers in order, and writes down what was asked. When the script is over, it is silent.
pub(super) fn scripted(script: Vec<Answer>) -> (Client, Arc<Mutex<Asked>>) {
    let asked = Arc::new(Mutex::new(Asked::new()));
    let (log, script) = (asked.clone(), Arc::new(Mutex::new(VecDeque::from(script))));
    let begun = tokio::time::Instant::now();
    let service = tower::service_fn(move |request: Request<Body>| {
        log.lock().push((begun.elapsed(), request.uri().to_string()));
        let answer = script.lock().pop_front();
        async move {
            match answer {
                Some(answer) => Ok::<_, Infallible>(respond(answer)),
                None => std::future::pending().await,
            }
        }
    });
    (Client::new(service, "default"), asked)
}

fn object(name: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string()}})
}

fn line((kind, name, version): &(&str, &str, u64)) -> String {
    let object = match *kind {
        "ERROR" => json!({"kind": "Status", "code": version, "message": name, "reason": "Gone", "status": "Failure"}),
        UNREADABLE => return format!("{}\n", json!({"type": "MODIFIED", "object": {"metadata": version}})),
        DEEP => {
            let fields = (0..150).fold(json!({}), |below, _| json!({"f:a": below}));
            let mut deep = object(name, *version);
            deep["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": fields}]);
            return format!("{}\n", json!({"type": "MODIFIED", "object": deep}));
        }
        _ => object(name, *version),
    };
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// The type of an event whose object is none.
const UNREADABLE: &str = "UNREADABLE";
/// The type of an event whose object is deeper than any decoder goes.
const DEEP: &str = "DEEP";

/// A body that says `text` after so many seconds, and ends.
fn after(seconds: u64, text: String) -> UnsyncBoxBody<Bytes, Infallible> {
    let frames = futures::stream::once(async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from(text)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A body that begins so, and of which nothing more comes and no end.
fn endless(first: Bytes) -> UnsyncBoxBody<Bytes, Infallible> {
    let frames = futures::stream::unfold(Some(first), |bytes| async move {
        match bytes {
            Some(bytes) => Some((Ok::<_, Infallible>(Frame::data(bytes)), None)),
            None => std::future::pending().await,
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn respond(answer: Answer) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let (code, body) = match answer {
        Answer::Page(items, version, more) => {
            let items: Vec<_> = items.iter().map(|(name, version)| object(name, *version)).collect();
            let metadata = json!({"resourceVersion": version.to_string(), "continue": if more { "next" } else { "" }});
            let list = json!({"kind": "ServiceAccountList", "apiVersion": "v1", "metadata": metadata, "items": items});
            (200, Full::new(Bytes::from(list.to_string())).boxed_unsync())
        }
        Answer::Half(name, version) => {
            let items = [object(name, version), json!({"metadata": 5})];
            let list = json!({"kind": "ServiceAccountList", "metadata": {"resourceVersion": "7"}, "items": items});
            (200, Full::new(Bytes::from(list.to_string())).boxed_unsync())
        }
        Answer::Events(events) => {
            (200, Full::new(Bytes::from(events.iter().map(line).collect::<String>())).boxed_unsync())
        }
        Answer::Stuck(events) => (200, endless(Bytes::from(events.iter().map(line).collect::<String>()))),
        Answer::Endless(bytes) => (200, endless(Bytes::from(vec![b' '; bytes]))),
        Answer::Quiet(seconds) => (200, after(seconds, String::new())),
        Answer::Marked(version, seconds) => (200, after(seconds, line(&("BOOKMARK", "", version)))),
        Answer::Fails(404) => (404, Full::new(Bytes::from_static(b"404 page not found")).boxed_unsync()),
        Answer::Fails(code) => {
            let status = json!({"kind": "Status", "code": code, "message": "m", "reason": "r", "status": "Failure"});
            (code, Full::new(Bytes::from(status.to_string())).boxed_unsync())
        }
        Answer::Says(code, message, seconds) => {
            let status = json!({"kind": "Status", "code": code, "message": message, "reason": "r", "status": "Failure",
                "details": {"retryAfterSeconds": seconds}});
            (code, Full::new(Bytes::from(status.to_string())).boxed_unsync())
        }
    };
    Response::builder().status(code).body(body).unwrap()
}

/// Writes everything down, compactly.
#[derive(Clone)]
pub(super) struct Notes(mpsc::UnboundedSender<String>);

impl Notes {
    /// With where they can be read.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl Witness for Notes {
    fn before(&mut self, _: &Store, _: &Change, _: bool) {}

    fn after(&mut self, _: &Store, change: &Change, _: Taken) {
        let sign = if change.now.is_some() { '+' } else { '-' };
        self.0.send(format!("{sign}{}@{}", change.key.name, change.version)).unwrap();
    }
}

impl Sink for Notes {
    fn reach(&mut self, reach: Reach) {
        self.0.send(format!("{reach:?}")).unwrap();
    }

    fn listed(&mut self) {
        self.0.send("listed".to_owned()).unwrap();
    }

    fn alive(&mut self) {}

    fn failed(&mut self, error: &WatchError) {
        self.0.send(format!("failed: {error}")).unwrap();
    }

    fn recovered(&mut self) {
        self.0.send("recovered".to_owned()).unwrap();
    }
}

pub(super) const SOURCE: Source = Source {
    id: SelectionId::new(7),
    kind: Kind::ServiceAccount,
    selection: Selection::named("only", 2, UsedBy::Every),
    optional: false,
};

/// Runs the loop over the script until `count` notes are there. That all is known is left out.
async fn notes(script: Vec<Answer>, count: usize) -> (Vec<String>, Vec<String>) {
    let (notes, asked) = notes_of(SOURCE, script, count + 1).await;
    let notes = notes.into_iter().filter(|note| note != "Listed").collect();
    (notes, asked.into_iter().map(|(_, uri)| uri).collect())
}

/// The same of another source, with everything.
pub(super) async fn notes_of(source: Source, script: Vec<Answer>, count: usize) -> (Vec<String>, Asked) {
    let (client, asked) = scripted(script);
    let (mut notes, mut receiver) = Notes::new();
    let keeper = Keeper::new("own", Keeps::Projections);
    keeper.join(Box::new(notes.clone()));
    let task =
        tokio::spawn(async move { run((client, Watching::default()), &source, None, (&keeper, &mut notes)).await });
    let mut notes = Vec::new();
    while notes.len() < count {
        notes.push(receiver.recv().await.unwrap());
    }
    task.abort();
    let asked = asked.lock().clone();
    (notes, asked)
}

#[tokio::test(start_paused = true)]
async fn pages_then_events_duplicates_and_late_ones_dropped() {
    let script = vec![
        Answer::Page(&[("a", 1), ("b", 2)], 5, true),
        Answer::Page(&[("c", 3)], 5, false),
        Answer::Stuck(&[
            ("MODIFIED", "b", 2),
            ("MODIFIED", "a", 7),
            ("MODIFIED", "a", 6),
            ("DELETED", "b", 8),
            ("DELETED", "a", 4),
            ("ADDED", "d", 9),
        ]),
    ];
    let (notes, asked) = notes(script, 7).await;
    assert_eq!(notes, ["+a@1", "+b@2", "+c@3", "listed", "+a@7", "-b@8", "+d@9"]);
    assert!(asked[0].contains("fieldSelector=metadata.name%3Donly") && asked[0].contains("limit=2"), "{asked:?}");
    assert!(asked[1].contains("continue=next"), "{asked:?}");
    assert!(asked[2].contains("watch=true") && asked[2].contains("resourceVersion=5"), "{asked:?}");
    assert!(asked[2].contains("timeoutSeconds=25") && asked[2].contains("allowWatchBookmarks=true"), "{asked:?}");
}

/// An API server counts objects, whatever they weigh: of a page that is larger than a few of the largest the rest is not even waited for.
#[tokio::test(start_paused = true)]
async fn pages_grow_while_they_are_small_and_one_that_is_too_large_is_asked_for_again_of_few_objects() {
    const FEW: &[(&str, u64)] = &[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6), ("g", 7), ("h", 8)];
    let source = Source { selection: Selection::named("only", 100, UsedBy::Every), ..SOURCE };
    let script = vec![
        Answer::Page(FEW, 20, true),
        Answer::Endless((12 << 20) + 1),
        Answer::Page(&[("i", 9)], 20, true),
        Answer::Page(&[("j", 10)], 20, false),
        Answer::Stuck(&[]),
    ];
    let (notes, asked) = notes_of(source, script, 12).await;
    let read: String = notes.iter().filter_map(|note| note.strip_prefix('+')?.split('@').next()).collect();
    assert_eq!(read, "abcdefghij", "{notes:?}");
    assert!(notes.iter().all(|note| !note.starts_with("failed")), "{notes:?}");
    let pages = asked.iter().take(4).map(|(_, uri)| {
        let limit = uri.split(['?', '&']).find_map(|part| part.strip_prefix("limit="));
        (limit.unwrap_or_default(), uri.contains("continue=next"))
    });
    assert_eq!(pages.collect::<Vec<_>>(), [("8", false), ("16", true), ("8", true), ("16", true)], "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn gone_means_a_new_list_and_what_it_lacks_is_gone() {
    let script = vec![
        Answer::Page(&[("a", 1), ("b", 2)], 5, false),
        Answer::Events(&[("ERROR", "too old", 410)]),
        Answer::Page(&[("a", 1), ("c", 9)], 10, false),
        Answer::Stuck(&[]),
    ];
    let (notes, _) = notes(script, 8).await;
    assert_eq!(notes, ["+a@1", "+b@2", "listed", "failed: 410 Gone", "+a@1", "+c@9", "-b@0", "recovered"]);
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_moves_the_cache_back_because_lists_are_the_truth() {
    let script = vec![
        Answer::Page(&[("a", 900)], 901, false),
        Answer::Events(&[("ERROR", "too large", 410)]),
        Answer::Page(&[("a", 3)], 10, false),
    ];
    let (notes, _) = notes(script, 4).await;
    assert_eq!(notes, ["+a@900", "listed", "failed: 410 Gone", "+a@3"]);
}

#[tokio::test(start_paused = true)]
async fn failures_change_nothing_and_the_watch_goes_on_where_it_stopped() {
    let script = vec![
        Answer::Fails(403),
        Answer::Page(&[("a", 1)], 5, false),
        Answer::Stuck(&[("BOOKMARK", "", 40)]),
        Answer::Fails(500),
        Answer::Stuck(&[("MODIFIED", "a", 41)]),
    ];
    let (notes, asked) = notes(script, 8).await;
    assert_eq!(notes[1..4], ["+a@1", "recovered", "listed"]);
    assert!(notes[0].starts_with("failed: "), "{notes:?}");
    assert_eq!(notes[4], "failed: no answer within 30 s");
    assert!(notes[5].starts_with("failed: "), "{notes:?}");
    assert_eq!(notes[6..], ["recovered", "+a@41"]);
    assert!(asked[4].contains("resourceVersion=40"), "the bookmark counts: {asked:?}");
}

/// The server would say it again and again, and nothing that came since would be heard of.
#[tokio::test(start_paused = true)]
async fn after_an_event_that_cannot_be_decoded_everything_is_read_again() {
    let script = vec![
        Answer::Page(&[("a", 1)], 5, false),
        Answer::Events(&[(UNREADABLE, "b", 6), ("ADDED", "c", 7)]),
        Answer::Page(&[("a", 1), ("b", 8)], 9, false),
        Answer::Stuck(&[("ADDED", "d", 10)]),
    ];
    let (notes, asked) = notes(script, 7).await;
    assert_eq!(notes[..2], ["+a@1", "listed"]);
    assert!(notes[2].starts_with("failed: "), "{notes:?}");
    assert_eq!(notes[3..], ["+a@1", "+b@8", "recovered", "+d@10"]);
    assert!(asked[2].contains("limit=2") && !asked[2].contains("watch=true"), "{asked:?}");
    assert!(asked[3].contains("resourceVersion=9"), "{asked:?}");
}

/// Whoever may write an object may write it as often as they like: nothing of its kind is read again because of one that nobody can read to its end.
#[tokio::test(start_paused = true)]
async fn an_event_of_an_object_that_is_too_deep_is_one_like_others() {
    let script = vec![
        Answer::Page(&[("a", 1)], 5, false),
        Answer::Stuck(&[(DEEP, "b", 6), (DEEP, "b", 7), ("ADDED", "c", 8), (DEEP, "a", 9)]),
    ];
    let (notes, asked) = notes(script, 6).await;
    assert_eq!(notes, ["+a@1", "listed", "+b@6", "+b@7", "+c@8", "+a@9"]);
    assert_eq!(asked.len(), 2, "a list and a watch: {asked:?}");
}

/// What is built of an object may take a hundred times its text: of a page one is built after the other.
#[tokio::test(start_paused = true)]
async fn an_object_is_told_of_before_the_next_one_is_decoded_and_half_a_page_takes_nothing_away() {
    let script = vec![
        Answer::Page(&[("a", 1), ("b", 2)], 5, false),
        Answer::Events(&[("ERROR", "too old", 410)]),
        Answer::Half("c", 6),
        Answer::Page(&[("a", 1), ("c", 6)], 8, false),
        Answer::Stuck(&[]),
    ];
    let (notes, asked) = notes(script, 10).await;
    assert_eq!(notes[..5], ["+a@1", "+b@2", "listed", "failed: 410 Gone", "+c@6"]);
    assert!(notes[5].starts_with("failed: "), "{notes:?}");
    assert_eq!(notes[6..], ["+a@1", "+c@6", "-b@0", "recovered"]);
    assert!(asked[3].contains("limit=2") && !asked[3].contains("watch=true"), "everything is read again: {asked:?}");
}
