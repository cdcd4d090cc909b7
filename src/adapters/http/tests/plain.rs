//! What is asked, what is taken, and where nobody connects to.

use super::*;
use crate::adapters::http::{Bound, Phase, PodAddresses};

#[tokio::test(start_paused = true)]
async fn one_request_with_these_headers_and_its_body() {
    let first = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"name\":\"A\"}";
    let (address, mut asked) = server(first.into(), Then::Hold).await;
    let get = Get { address, host: "w.n.svc.cluster.local:8000", path: "/.well-known/agent-card.json" };
    let answer = Http::new(Here).get(get, PATIENCE).await.unwrap();
    assert_eq!(answer.body, br#"{"name":"A"}"#);
    let asked = asked.recv().await.unwrap();
    let mut lines: Vec<_> = asked.trim_end().split("\r\n").map(str::to_ascii_lowercase).collect();
    assert_eq!(lines.remove(0), "get /.well-known/agent-card.json http/1.1");
    lines.sort();
    assert_eq!(
        lines,
        [
            "accept-encoding: identity",
            "accept: application/json",
            "connection: close",
            "host: w.n.svc.cluster.local:8000",
            concat!("user-agent: drawbridge/", env!("CARGO_PKG_VERSION")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_by_length_in_chunks_and_until_the_end() {
    for first in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        // What comes after the body is not looked at.
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500 No\r\n\r\n",
    ] {
        assert_eq!(
            ask(first, Then::Close, PATIENCE).await,
            Ok(Answer { body: b"{}".to_vec(), _place: None }),
            "{first:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn case_53_a_body_of_the_bound_is_taken_and_one_byte_more_is_not() {
    for (bytes, taken) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let mut by_length = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
        by_length.resize(by_length.len() + bytes, b' ');
        let mut until_end = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        until_end.resize(until_end.len() + bytes, b' ');
        for first in [by_length, until_end] {
            let answer = ask(first, Then::Close, PATIENCE).await.map(|answer| answer.body.len());
            assert_eq!(answer, if taken { Ok(bytes) } else { Err(HttpFault::TooLarge(Bound::Body)) });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_there_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let get = Get { address, host: "h", path: "/" };
    assert_eq!(Http::new(Here).get(get, PATIENCE).await, Err(HttpFault::Connect("nothing listens on the port")));
}

#[tokio::test(start_paused = true)]
async fn each_phase_has_its_time() {
    let patience = |head, whole| Patience { head: Duration::from_secs(head), whole: Duration::from_secs(whole) };
    let begun = tokio::time::Instant::now();
    assert_eq!(ask("", Then::Hold, patience(1, 10)).await, Err(HttpFault::Timeout(Phase::Head)));
    assert_eq!(begun.elapsed().as_secs(), 1);
    let first = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{";
    assert_eq!(ask(first, Then::Hold, patience(1, 10)).await, Err(HttpFault::Timeout(Phase::Body)));
    assert_eq!(begun.elapsed().as_secs(), 11);
}

/// What the binary has: whatever is asked, these are not connected to.
#[tokio::test(start_paused = true)]
async fn addresses_that_no_pod_has_are_never_connected_to() {
    let (address, mut asked) = server(b"HTTP/1.1 200 OK\r\n\r\n{}".to_vec(), Then::Close).await;
    let get = Get { address, host: "h", path: "/" };
    assert_eq!(Http::new(PodAddresses).get(get, PATIENCE).await, Err(HttpFault::AddressRefused(Refused::Loopback)));
    assert!(asked.try_recv().is_err(), "nobody connected");
    let refused = |text: &str| PodAddresses.refuses(text.parse().unwrap());
    for (text, why) in [
        ("127.0.0.1", Refused::Loopback),
        ("127.255.0.9", Refused::Loopback),
        ("::1", Refused::Loopback),
        ("::ffff:127.0.0.1", Refused::Loopback),
        ("::127.0.0.1", Refused::Loopback),
        ("64:ff9b::7f00:1", Refused::Loopback),
        ("2002:7f00:1::", Refused::Loopback),
        ("0.0.0.0", Refused::Unspecified),
        ("0.1.2.3", Refused::Unspecified),
        ("::", Refused::Unspecified),
        ("::ffff:0.0.0.0", Refused::Unspecified),
        ("169.254.169.254", Refused::LinkLocal),
        ("::ffff:169.254.169.254", Refused::LinkLocal),
        ("64:ff9b::a9fe:a9fe", Refused::LinkLocal),
        ("fe80::1", Refused::LinkLocal),
        ("febf::1", Refused::LinkLocal),
        ("fd00:ec2::254", Refused::Metadata),
        ("fd20:ce::254", Refused::Metadata),
        ("100.100.100.200", Refused::Metadata),
        ("192.0.0.192", Refused::Metadata),
        ("168.63.129.16", Refused::Metadata),
        ("::ffff:168.63.129.16", Refused::Metadata),
        ("224.0.0.1", Refused::Multicast),
        ("239.255.255.250", Refused::Multicast),
        ("ff02::1", Refused::Multicast),
        ("255.255.255.255", Refused::Reserved),
        ("240.0.0.1", Refused::Reserved),
    ] {
        assert_eq!(refused(text), Some(why), "{text}");
    }
    for text in
        ["10.244.0.5", "192.168.1.9", "100.64.0.7", "172.17.0.2", "fd00:10::5", "2001:db8::1", "::ffff:10.0.0.1"]
    {
        assert_eq!(refused(text), None, "{text}");
    }
}
