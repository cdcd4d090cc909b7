//! The Workload API by a server of our own over a Unix socket, and messages as tables. A real SPIRE agent stands in the suite of peers.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixListener;

use super::message::{first_svid, whole};
use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A field of bytes.
pub(in crate::adapters) fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut length = content.len();
    let mut out = vec![number << 3 | 2];
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(content);
    out
}

/// An SVID with those certificates and that key.
fn svid_of(chain: &[u8], key: &[u8]) -> Vec<u8> {
    [bytes(1, b"spiffe://example.org/a"), bytes(2, chain), bytes(3, key), bytes(4, b"bundle"), bytes(5, b"hint")]
        .concat()
}

pub(in crate::adapters) fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
}

/// How an agent answers one call: what it sends, and the status that it ends with; without one the call goes on.
pub(in crate::adapters) type Answer = (Vec<Vec<u8>>, Option<(&'static str, &'static str)>);

/// An agent that gives these answers, the last one for ever.
pub(in crate::adapters) fn agent(at: &Path, answers: Vec<Answer>) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(at).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answers[counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)].clone();
            let service = service_fn(move |request: Request<Incoming>| {
                assert_eq!(request.uri().path(), "/SpiffeWorkloadAPI/FetchX509SVID");
                assert_eq!(request.headers()["workload.spiffe.io"], "true");
                let (parts, status) = answer.clone();
                let frames = parts.into_iter().map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part))));
                let trailers = status.map(|(code, said)| {
                    let mut headers = HeaderMap::new();
                    headers.insert("grpc-status", code.parse().unwrap());
                    headers.insert("grpc-message", said.parse().unwrap());
                    Ok(Frame::trailers(headers))
                });
                let goes_on = usize::from(trailers.is_none());
                let body = futures_of(frames.chain(trailers).collect(), goes_on > 0);
                async move { Ok::<_, Infallible>(Response::new(StreamBody::new(body))) }
            });
            let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
        }
    });
    calls
}

/// Frames one after the other, and then the end or no end.
fn futures_of(
    frames: Vec<Result<Frame<Bytes>, Infallible>>,
    goes_on: bool,
) -> impl futures::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    use futures::StreamExt as _;
    let silence = futures::stream::pending().take(usize::from(goes_on));
    futures::stream::iter(frames).chain(silence)
}

#[tokio::test]
async fn the_first_svid_of_a_call_that_goes_on_is_read_in_whatever_pieces_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("agent.sock");
    let message = framed(&[bytes(1, &svid_of(&[7; 300], b"key")), bytes(1, &svid_of(b"other", b"other"))].concat());
    agent(&at, vec![(message.chunks(7).map(<[u8]>::to_vec).collect(), None)]);
    let svid = svid(&at, PATIENCE).await.unwrap();
    assert_eq!((svid.chain.len(), &svid.key[..]), (300, &b"key"[..]));
    assert!(!format!("{svid:?}").contains("key"), "{svid:?}");
}

#[tokio::test]
async fn who_has_no_entry_yet_is_waited_for_and_what_will_not_pass_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let good = (vec![framed(&bytes(1, &svid_of(b"chain", b"key")))], None);
    let at = folder.path().join("late.sock");
    let calls = agent(&at, vec![(Vec::new(), Some(("7", "no identity issued"))), good]);
    assert_eq!(svid(&at, PATIENCE).await.unwrap().chain, b"chain");
    assert_eq!(calls.load(Ordering::SeqCst), 2);

    let at = folder.path().join("never.sock");
    agent(&at, vec![(Vec::new(), Some(("7", "no identity issued")))]);
    let told = svid(&at, Duration::from_millis(300)).await.unwrap_err().to_string();
    assert!(told.contains("no identity issued") && told.contains("spire-server entry show"), "{told}");

    let at = folder.path().join("old.sock");
    let calls = agent(&at, vec![(Vec::new(), Some(("12", "unknown service")))]);
    let told = svid(&at, PATIENCE).await.unwrap_err();
    assert!(matches!(&told, NoSvid::Refused { code, .. } if &**code == "12"), "{told}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);

    let told = svid(&folder.path().join("none.sock"), Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(told, NoSvid::Connect(_) | NoSvid::Timeout), "{told}");
}

#[tokio::test]
async fn a_call_says_each_renewal_however_it_is_cut_and_then_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("renews.sock");
    let all: Vec<u8> =
        [b"one", b"two", b"six"].iter().flat_map(|key| framed(&bytes(1, &svid_of(*key, *key)))).collect();
    for size in [1, 7, all.len()] {
        let at = folder.path().join(format!("{size}.sock"));
        agent(&at, vec![(all.chunks(size).map(<[u8]>::to_vec).collect(), Some(("14", "going away")))]);
        let mut call = renewals(&at).await.unwrap();
        for key in [b"one", b"two", b"six"] {
            assert_eq!(call.next().await.unwrap().key[..], key[..], "{size}");
        }
        let told = call.next().await.unwrap_err();
        assert!(matches!(&told, NoSvid::Refused { code, .. } if &**code == "14"), "{told}");
    }
    // Who does not wait for the end of a message loses nothing of it.
    agent(&at, vec![(vec![all[..20].to_vec()], None)]);
    let mut call = renewals(&at).await.unwrap();
    for _ in 0..3 {
        let waited = tokio::time::timeout(Duration::from_millis(50), call.next()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
    drop(call);
    assert!(renewals(&folder.path().join("nobody.sock")).await.is_err());
}

#[tokio::test]
async fn an_answer_without_end_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("endless.sock");
    let mut endless = vec![vec![0, 0, 0xf, 0xff, 0xff]];
    endless.extend(std::iter::repeat_n(vec![8; 1 << 16], 17));
    agent(&at, vec![(endless, None)]);
    assert_eq!(svid(&at, PATIENCE).await.unwrap_err(), NoSvid::TooLarge);
}

#[test]
fn messages_are_read_as_far_as_they_are_there_and_any_bytes_have_an_answer() {
    let message = framed(b"abc");
    for length in 0..message.len() {
        assert_eq!(whole(&message[..length]).unwrap(), None, "{length}");
    }
    assert_eq!(whole(&message).unwrap(), Some(&b"abc"[..]));
    assert!(matches!(whole(&[1, 0, 0, 0, 0]), Err(NoSvid::NotWorkloadApi(_))));
    assert_eq!(whole(&[0, 0xff, 0xff, 0xff, 0xff]), Err(NoSvid::TooLarge));
    // Members that are not asked for, of every type, stand before it.
    let others = [&[1 << 3, 0xff, 0x01][..], &[9 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0], &[9 << 3 | 5, 0, 0, 0, 0]].concat();
    let svid = [others, bytes(1, &svid_of(b"chain", b"key"))].concat();
    assert_eq!(first_svid(&svid).unwrap().chain, b"chain");
    for (message, told) in [
        (Vec::new(), "no SVID"),
        (bytes(1, &svid_of(b"", b"key")), "without certificates"),
        (bytes(1, &svid_of(b"chain", b"")), "without a key"),
        (vec![1 << 3 | 2, 200], "a protobuf number without an end"),
        (vec![1 << 3 | 2, 20, 0], "truncated protobuf field"),
        (vec![1 << 3 | 3], "protobuf field of an unknown type"),
        (vec![0xff; 30], "a protobuf number without an end"),
    ] {
        let fault = first_svid(&message).unwrap_err().to_string();
        assert!(fault.contains(told), "{message:?}: {fault}");
    }
}

#[test]
fn sockets_are_named_as_spiffe_names_them() {
    for (named, wanted) in [
        ("unix:///run/agent.sock", Some("/run/agent.sock")),
        ("unix:/run/agent.sock", Some("/run/agent.sock")),
        ("agent.sock", Some("agent.sock")),
        ("unix://agent.sock", None),
        ("tcp://127.0.0.1:8000", None),
        ("", None),
        ("unix:", None),
    ] {
        assert_eq!(socket(named).as_deref(), wanted.map(Path::new), "{named}");
    }
}

/// Those who ask together while there is no agent wait for it once, and whoever comes right after them not at all.
#[tokio::test(start_paused = true)]
async fn who_asks_for_an_identity_that_nobody_gives_does_not_wait_for_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let source = Source::default();
    let asked = || async {
        let begun = tokio::time::Instant::now();
        let answers = futures::future::join_all((0..10).map(|_| source.own(&socket, 0))).await;
        assert!(answers.iter().all(Result::is_err));
        begun.elapsed()
    };
    let once = asked().await;
    assert!(once > Duration::ZERO, "the agent gets its time");
    assert_eq!(asked().await, Duration::ZERO);
    tokio::time::advance(Duration::from_secs(5)).await;
    let later = asked().await;
    assert!(later > once / 2 && later < once * 2, "asked anew, and once: {later:?} after {once:?}");
}
