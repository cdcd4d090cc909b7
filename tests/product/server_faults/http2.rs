//! B5: HTTP/2 floods, frame by frame.

use std::time::Duration;

use drawbridge::server::listener::Limits;
use drawbridge::server::telemetry::metrics::Webhook;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::support::{PATIENCE, Running, eventually, review, start, turn};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// POST of the webhook's path, from HPACK's static table and literals.
pub(crate) fn head() -> Vec<u8> {
    let path = b"/mutate-workloads-authbridge";
    let media = b"application/json";
    let mut block = vec![0x83, 0x87, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path);
    block.extend([0x01, 1, b'x', 0x0f, 0x10, u8::try_from(media.len()).unwrap()]);
    block.extend(media);
    block
}

/// What a flood sends, piece by piece.
type Pieces = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// What came of a flood.
struct Flood {
    /// The server ended the connection while there was still more to send, or right after.
    ended: bool,
    /// Kinds of the frames that came back.
    kinds: Vec<u8>,
}

/// Sends `pieces` for as long as the server takes them, and reads what it says.
async fn flood(running: &Running, pieces: Pieces) -> Flood {
    let (mut reader, mut writer) = tokio::io::split(running.connect("h2").await);
    let send = tokio::spawn(async move {
        let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        writer.write_all(&opening).await?;
        for piece in pieces {
            writer.write_all(&piece).await?;
        }
        writer.flush().await?;
        Ok::<_, std::io::Error>(writer)
    });
    let mut back = Vec::new();
    let ended = timeout(Duration::from_secs(5), async {
        // Reset or end: both are the end.
        let _ = reader.read_to_end(&mut back).await;
    })
    .await
    .is_ok();
    let sent = timeout(PATIENCE, send).await.expect("the server reads or ends").unwrap();
    drop(sent);
    Flood { ended, kinds: kinds(&back) }
}

/// The kinds of the frames in what came back.
fn kinds(back: &[u8]) -> Vec<u8> {
    let (mut kinds, mut rest) = (Vec::new(), back);
    while rest.len() >= 9 {
        kinds.push(rest[3]);
        let length = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    kinds
}

fn odd(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

#[tokio::test]
async fn b5_a_review_over_http2_is_answered() {
    let running = start(Limits::default());
    let body = review("u-1");
    let request = [frame(HEADERS, END_HEADERS, 1, &head()), frame(DATA, END_STREAM, 1, body.as_bytes())].concat();
    let (mut reader, mut writer) = tokio::io::split(running.connect("h2").await);
    writer.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &request].concat()).await.unwrap();
    let mut back = Vec::new();
    while !String::from_utf8_lossy(&back).contains("\"uid\":\"u-1\"") {
        assert_ne!(timeout(PATIENCE, reader.read_buf(&mut back)).await.unwrap().unwrap(), 0, "ended: {back:x?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b5_floods_end_the_connection_and_nobody_else_notices() {
    let _turn = turn().await;
    let running = start(Limits::default());
    let both = END_HEADERS | END_STREAM;
    let reset =
        odd(5_000).map(move |id| [frame(HEADERS, both, id, &head()), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat());
    let open_reset = odd(5_000)
        .map(|id| [frame(HEADERS, END_HEADERS, id, &head()), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat());
    let streams = odd(10_000).map(|id| frame(HEADERS, END_HEADERS, id, &head()));
    let pings = (0..40_000).map(|_| frame(PING, 0, 0, &[0; 8]));
    let settings = (0..60_000).map(|_| frame(SETTINGS, 0, 0, &[]));
    let empty =
        std::iter::once(frame(HEADERS, END_HEADERS, 1, &head())).chain((0..1_000_000).map(|_| frame(DATA, 0, 1, &[])));
    let bomb = std::iter::once(frame(HEADERS, 0, 1, &head()))
        .chain((0..10_000).map(|_| frame(CONTINUATION, 0, 1, &[0x40, 1, b'a', 1, b'b'].repeat(200))));
    let unknown = (0..100_000).map(|_| frame(0xee, 0, 0, &[0; 16]));
    let cases: Vec<(&str, Pieces)> = vec![
        ("rapid reset", Box::new(reset)),
        ("reset of open streams", Box::new(open_reset)),
        ("10,000 streams", Box::new(streams)),
        ("pings", Box::new(pings)),
        ("settings", Box::new(settings)),
        ("empty data", Box::new(empty)),
        ("header bomb", Box::new(bomb)),
        ("unknown frames", Box::new(unknown)),
    ];
    for (name, pieces) in cases {
        let outcome = flood(&running, pieces).await;
        let told = outcome.kinds.contains(&GOAWAY);
        assert!(outcome.ended || told, "{name}: the connection lives on");
        running.healthy().await;
    }
}

/// An API server sends the reviews of all its users over one connection, and resets a stream when the user behind it hangs up.
#[tokio::test]
async fn b5_who_gives_up_requests_costs_nobody_else_on_the_connection_an_answer() {
    let running = start(Limits { abandoned: 8, ..Limits::default() });
    let webhook = Webhook { webhook: "/mutate-workloads-authbridge" };
    let under_way = || running.metrics.webhook_in_flight.get_or_create(&webhook).get();
    let (mut reader, mut writer) = tokio::io::split(running.connect("h2").await);
    let heads: Vec<u8> = odd(13).flat_map(|id| frame(HEADERS, END_HEADERS, id, &head())).collect();
    writer.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &heads].concat()).await.unwrap();
    writer.flush().await.unwrap();
    eventually("all wait for their bodies", || under_way() == 13).await;
    let resets: Vec<u8> = odd(13).skip(1).flat_map(|id| frame(RST_STREAM, 0, id, &[0, 0, 0, 8])).collect();
    writer.write_all(&resets).await.unwrap();
    writer.flush().await.unwrap();
    eventually("all but one are given up", || under_way() == 1).await;
    let rest = [frame(PING, 0, 0, &[0; 8]), frame(DATA, END_STREAM, 1, review("u-1").as_bytes())].concat();
    writer.write_all(&rest).await.unwrap();
    writer.flush().await.unwrap();
    let mut back = Vec::new();
    while !String::from_utf8_lossy(&back).contains("\"uid\":\"u-1\"") || !kinds(&back).contains(&GOAWAY) {
        assert_ne!(timeout(PATIENCE, reader.read_buf(&mut back)).await.unwrap().unwrap(), 0, "ended: {back:x?}");
    }
}

#[tokio::test]
async fn b5_an_unfinished_header_block_ends_at_the_head_deadline() {
    let running = start(Limits { head: Duration::from_millis(500), ..Limits::default() });
    let outcome = flood(&running, Box::new(std::iter::once(frame(HEADERS, 0, 1, &head())))).await;
    assert!(outcome.ended);
    eventually("it is counted", || running.connections_ended("head") == 1).await;
}
