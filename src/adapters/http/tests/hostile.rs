//! Servers that mean harm: each is left after a bounded number of bytes or a bounded time, with the fault that it is.

use super::*;
use crate::adapters::http::places::SHARE;
use crate::adapters::http::{BODY, Bound, LARGE, Phase, SAID, SMALL};
use crate::domain::printable::is_unseen;

const OK: &str = "HTTP/1.1 200 OK\r\n";

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

#[tokio::test(start_paused = true)]
async fn more_than_is_read_is_a_fault_and_never_a_part() {
    let mib = " ".repeat(1 << 20);
    let header = format!("X: {}\r\n", "y".repeat(60));
    for (what, first, then, bound) in [
        ("endless body", format!("{OK}\r\n"), Then::Again(mib.clone().into()), Bound::Body),
        (
            "endless chunks",
            format!("{OK}Transfer-Encoding: chunked\r\n\r\n"),
            Then::Again(chunk(&mib).into()),
            Bound::Body,
        ),
        ("1 GiB announced", format!("{OK}Content-Length: 1073741824\r\n\r\n"), Then::Hold, Bound::Body),
        ("2^63 announced", format!("{OK}Content-Length: 9223372036854775807\r\n\r\n"), Then::Hold, Bound::Body),
        (
            "a byte per chunk",
            format!("{OK}Transfer-Encoding: chunked\r\n\r\n"),
            Then::Again("1\r\nx\r\n".repeat(4096).into()),
            Bound::Wire,
        ),
        ("headers without end", OK.to_owned(), Then::Again(header.into()), Bound::Head),
        ("one header of 100 MB", format!("{OK}X: "), Then::Again(mib.clone().into()), Bound::Head),
        ("a status line without end", "HTTP/1.1 200 ".to_owned(), Then::Again(mib.clone().into()), Bound::Head),
        ("65 headers", format!("{OK}{}\r\n{{}}", "X: y\r\n".repeat(65)), Then::Close, Bound::Head),
        (
            "interim answers without end",
            String::new(),
            Then::Again("HTTP/1.1 100 Continue\r\n\r\n".repeat(1024).into()),
            Bound::Wire,
        ),
    ] {
        assert_eq!(ask(first, then, PATIENCE).await, Err(HttpFault::TooLarge(bound)), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_with_more_beside_them_than_in_them_are_no_answer() {
    let first = format!("{OK}Transfer-Encoding: chunked\r\n\r\n");
    let then = Then::Again("1;a=b\r\nx\r\n".repeat(4096).into());
    assert_eq!(ask(first, then, PATIENCE).await, Err(HttpFault::Malformed));
}

#[tokio::test(start_paused = true)]
async fn who_drips_is_left_when_the_time_is_over() {
    let begun = tokio::time::Instant::now();
    for (what, first, drop, phase) in [
        ("body", format!("{OK}Content-Length: 1000000\r\n\r\n"), " ", Phase::Body),
        ("chunks", format!("{OK}Transfer-Encoding: chunked\r\n\r\n"), "1\r\n \r\n", Phase::Body),
        ("headers", OK.to_owned(), "X: y\r\n", Phase::Head),
        ("status line", "HTTP/1.1 200 ".to_owned(), "O", Phase::Head),
        ("refusal", "HTTP/1.1 500 No\r\n\r\n".to_owned(), "x", Phase::Body),
    ] {
        let before = begun.elapsed();
        assert_eq!(ask(first, Then::Drip(drop.into()), PATIENCE).await, Err(HttpFault::Timeout(phase)), "{what}");
        assert_eq!((begun.elapsed() - before).as_secs(), 10, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_is_broken_and_never_a_card() {
    for (what, first, fault) in [
        ("a byte too few", format!("{OK}Content-Length: 3\r\n\r\n{{}}"), HttpFault::Cut),
        ("no last chunk", format!("{OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n"), HttpFault::Cut),
        ("half a chunk", format!("{OK}Transfer-Encoding: chunked\r\n\r\n9\r\n{{}}"), HttpFault::Cut),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-".to_owned(), HttpFault::Cut),
        ("not a word", String::new(), HttpFault::Closed),
        ("a TLS alert", "\u{15}\u{3}\u{1}\0\u{2}\u{2}F".to_owned(), HttpFault::SpeaksTls),
        ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n".to_owned(), HttpFault::Malformed),
        ("two lengths", format!("{OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}"), HttpFault::Malformed),
        ("no number", format!("{OK}Content-Length: two\r\n\r\n{{}}"), HttpFault::Malformed),
        ("a chunk of no size", format!("{OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}"), HttpFault::Malformed),
        ("a header with a zero byte", format!("{OK}X: a\0b\r\n\r\n{{}}"), HttpFault::Malformed),
        ("gzip", format!("{OK}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}"), HttpFault::Encoded),
        (
            "br after identity",
            format!("{OK}Content-Encoding: identity\r\nContent-Encoding: br\r\n\r\n{{}}"),
            HttpFault::Encoded,
        ),
    ] {
        assert_eq!(ask(first, Then::Close, PATIENCE).await, Err(fault), "{what}");
    }
}

/// Case 55, E1: whatever a redirect names, nobody is asked there.
#[tokio::test(start_paused = true)]
async fn case_55_redirects_are_not_followed() {
    let (elsewhere, mut asked) = server(b"HTTP/1.1 200 OK\r\n\r\n{}".to_vec(), Then::Close).await;
    for code in [300, 301, 302, 303, 304, 307, 308] {
        for to in [
            format!("http://{elsewhere}/"),
            "http://169.254.169.254/".into(),
            "//x@y/".into(),
            "file:///etc/passwd".into(),
        ] {
            let first = format!("HTTP/1.1 {code} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(ask(first, Then::Close, PATIENCE).await, Err(HttpFault::Redirect(code)), "{code} {to}");
        }
    }
    assert!(asked.try_recv().is_err(), "nobody was asked elsewhere");
}

/// Case 54, E5: of what a refusal says, a short printable beginning.
#[tokio::test(start_paused = true)]
async fn case_54_a_refusal_is_repeated_in_a_few_printable_bytes() {
    let secret = "password=hunter2";
    let body = format!("\u{1b}[31m<script>\n\u{202e}{}{secret}", "x".repeat(100 << 10));
    let first = format!("HTTP/1.1 500 No\r\nServer: envoy\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let fault = ask(first, Then::Close, PATIENCE).await.unwrap_err();
    let HttpFault::Status { code: 500, said, envoy: true } = &fault else { panic!("{fault:?}") };
    assert!(said.len() <= SAID && said.starts_with("\\u{1b}[31m<script> \\u{202e}xxx"), "{said}");
    assert!(!fault.to_string().chars().any(is_unseen) && !fault.to_string().contains(secret));
    let gzip = "HTTP/1.1 503 No\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\u{1f}xyz";
    let fault = ask(gzip, Then::Close, PATIENCE).await.unwrap_err();
    assert_eq!(fault, HttpFault::Status { code: 503, said: "".into(), envoy: false });
    assert_eq!(fault.to_string(), "answered with HTTP status 503");
}

/// E6: however many agents send as much as they may and do not come to an end, few of them take memory, and the small pass.
#[tokio::test(start_paused = true)]
async fn few_large_bodies_are_in_memory_at_once_and_small_ones_do_not_wait_for_them() {
    let head = |bytes: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    let part = format!("{}{}", head(BODY), "x".repeat(2 * SMALL));
    let whole = format!("{}{}", head(2 * SMALL), "x".repeat(2 * SMALL));
    let client = Http::new(Here);
    let mut hold = tokio::task::JoinSet::new();
    for at in 0..LARGE {
        let ((address, _), client) = (server(part.clone().into_bytes(), Then::Hold).await, client.clone());
        let host = format!("w.n{}.svc.cluster.local:8000", at / SHARE);
        hold.spawn(async move { client.get(Get { address, host: &host, path: "/" }, PATIENCE).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.large.available_permits(), 0, "each has its place");
    let ask = async |first: &str, patience: Patience| {
        let (address, _) = server(first.as_bytes().to_vec(), Then::Close).await;
        client.get(Get { address, host: "h", path: "/" }, patience).await
    };
    let soon = Patience { head: Duration::from_secs(1), whole: Duration::from_secs(1) };
    assert_eq!(ask(&whole, soon).await, Err(HttpFault::Timeout(Phase::Body)), "no place");
    assert!(ask(&format!("{}{{}}", head(2)), soon).await.is_ok(), "small ones take none");
    hold.shutdown().await;
    let large = ask(&whole, soon).await.unwrap();
    assert_eq!((large.body.len(), client.large.available_permits()), (2 * SMALL, LARGE - 1), "kept with the body");
    drop(large);
    assert_eq!(client.large.available_permits(), LARGE);
}

/// Whoever has many agents that begin large bodies and do not come to an end takes no place of those of others: without an answer they would lose their trust.
#[tokio::test(start_paused = true)]
async fn large_bodies_of_one_namespace_leave_places_to_those_of_others() {
    let head = |bytes: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    let part = format!("{}{}", head(BODY), "x".repeat(2 * SMALL));
    let whole = format!("{}{}", head(2 * SMALL), "x".repeat(2 * SMALL));
    let client = Http::new(Here);
    let mut hold = tokio::task::JoinSet::new();
    for at in 0..2 * LARGE {
        let ((address, _), client) = (server(part.clone().into_bytes(), Then::Hold).await, client.clone());
        let host = format!("w{at}.attacker.svc.cluster.local:8000");
        hold.spawn(async move { client.get(Get { address, host: &host, path: "/" }, PATIENCE).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.large.available_permits(), LARGE - SHARE);
    let soon = Patience { head: Duration::from_secs(1), whole: Duration::from_secs(1) };
    let ask = async |host: &str| {
        let (address, _) = server(whole.clone().into_bytes(), Then::Close).await;
        client.get(Get { address, host, path: "/" }, soon).await
    };
    assert_eq!(ask("x.attacker.svc.cluster.local:8000").await, Err(HttpFault::Timeout(Phase::Body)), "its own wait");
    let other = ask("attacker.other.svc.cluster.local:8000").await.unwrap();
    assert_eq!((other.body.len(), client.large.known()), (2 * SMALL, 2));
    drop(other);
    hold.shutdown().await;
    assert!(ask("x.attacker.svc.cluster.local:8000").await.is_ok());
    assert_eq!((client.large.available_permits(), client.large.known()), (LARGE, 1), "who has no place is forgotten");
}
