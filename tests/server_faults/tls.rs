//! B3: the TLS matrix.

use std::sync::Arc;

use drawbridge::runtime::server::Limits;
use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Client, PATIENCE, Running, eventually, start};

/// A ClientHello as an old client sends it (RFC 5246 7.4.1.2): version, cipher suites, no extensions.
fn hello(version: [u8; 2], suites: &[u16]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(u16::try_from(suites.len() * 2).unwrap().to_be_bytes());
    body.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
    body.extend([1, 0]);
    let mut message = vec![1, 0];
    message.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    message.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
    record.extend(message);
    record
}

/// All that comes back for `bytes` before the server closes.
async fn answer(running: &Running, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut all = Vec::new();
    // A reset is an end as well.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("the server closes");
    all
}

#[tokio::test]
async fn b3_old_versions_and_weak_suites_get_an_alert_and_the_end() {
    const RC4: u16 = 0x0005;
    const TRIPLE_DES: u16 = 0x000a;
    const CBC: u16 = 0x002f;
    const EXPORT: u16 = 0x0003;
    const ECDHE_GCM: u16 = 0xc02b;
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    let running = start(Limits::default());
    let old = [[3, 0], [3, 1], [3, 2]].map(|version| hello(version, &[ECDHE_GCM, CBC]));
    let weak = [RC4, TRIPLE_DES, CBC, EXPORT].map(|suite| hello([3, 3], &[suite]));
    for bytes in old.iter().chain(&weak) {
        let back = answer(&running, bytes).await;
        assert_eq!((back.first(), back.get(5), back.len()), (Some(&ALERT), Some(&FATAL), 7), "{bytes:x?}: {back:x?}");
    }
    let sslv2 = [0x80, 0x1c, 1, 0, 2, 0, 3, 0, 0, 0, 16, 1, 0, 0x80, 2, 0, 0x80, 3, 0, 0x80];
    let sslv2: Vec<u8> = sslv2.into_iter().chain([9; 12]).collect();
    for garbage in [sslv2, vec![0; 64], vec![0xff; 64], b"\x16\x03\x01\xff\xff".repeat(2000)] {
        let back = answer(&running, &garbage).await;
        assert!(back.is_empty() || (back[0] == ALERT && back.len() == 7), "{back:x?}");
    }
    eventually("all are counted", || running.handshakes_failed("refused") == 11).await;
    running.healthy().await;
}

#[tokio::test]
async fn b3_plain_http_is_told_so() {
    let running = start(Limits::default());
    for request in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /mutate HTTP/1.0\r\n\r\n{}"] {
        let back = String::from_utf8(answer(&running, request.as_bytes()).await).unwrap();
        assert!(back.starts_with("HTTP/1.1 400 "), "{back}");
        assert!(back.ends_with("\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"), "{back}");
    }
    eventually("both are counted", || running.handshakes_failed("plain_http") == 2).await;
}

#[tokio::test]
async fn b3_current_versions_are_served_with_any_or_no_name_and_any_or_no_protocol() {
    let running = start(Limits::default());
    for versions in [&[&TLS12][..], &[&TLS13]] {
        for (alpn, agreed) in [(&["http/1.1"][..], Some("http/1.1")), (&[], None), (&["h2", "http/1.1"], Some("h2"))] {
            // For an address no server name is sent.
            for name in ["localhost", "127.0.0.1", "other.example"] {
                let config = Arc::new(running.client_config(versions, alpn));
                let stream = running.connect_as(config, name).await.unwrap();
                let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                assert_eq!(protocol.as_deref(), agreed.map(str::as_bytes));
                if agreed != Some("h2") {
                    assert_eq!(Client::over(stream).review("u-1").await.unwrap().0, 200);
                }
            }
        }
    }
    let unknown = Arc::new(running.client_config(rustls::ALL_VERSIONS, &["spdy/3"]));
    assert!(running.connect_as(unknown, "localhost").await.is_err(), "no protocol in common");
}

#[tokio::test]
async fn b3_sessions_are_resumed_and_early_data_is_not_taken() {
    let running = start(Limits::default());
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let mut config = running.client_config(versions, &["http/1.1"]);
        config.enable_early_data = true;
        let config = Arc::new(config);
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let stream = running.connect_as(config.clone(), "localhost").await.unwrap();
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(expected));
            assert!(!stream.get_ref().1.is_early_data_accepted());
            // The ticket comes with the first answer.
            assert_eq!(Client::over(stream).review("u-1").await.unwrap().0, 200);
        }
    }
}
