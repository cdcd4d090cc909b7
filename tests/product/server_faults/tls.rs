//! B3: the TLS matrix.

use std::sync::Arc;

use drawbridge::server::listener::Limits;
use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support::{Client, PATIENCE, Running, eventually, start};

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

/// What a server picked from a hello, or `None` for an alert.
async fn picked(running: &Running, version: Version, suites: &[u16]) -> Option<u16> {
    const HANDSHAKE: u8 = 22;
    const SERVER_HELLO: u8 = 2;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(&modern_hello(version, suites)).await.unwrap();
    // Record header, message header, version, random, session id: the suite stands behind them.
    let mut start = [0; 5 + 4 + 2 + 32 + 1];
    let mut all = Vec::new();
    timeout(PATIENCE, async {
        let alert = |all: &[u8]| all.first() == Some(&21) && all.len() >= 7;
        while !alert(&all) && all.len() < start.len() + 34 && stream.read_buf(&mut all).await.unwrap_or(0) > 0 {}
    })
    .await
    .expect("an answer");
    if all.first() != Some(&HANDSHAKE) {
        assert_eq!((all.first(), all.len()), (Some(&21), 7), "neither a hello nor an alert: {all:x?}");
        return None;
    }
    start.copy_from_slice(&all[..44]);
    assert_eq!(start[5], SERVER_HELLO);
    let suite = 44 + usize::from(start[43]);
    Some(u16::from_be_bytes([all[suite], all[suite + 1]]))
}

/// Which of the versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Tls12,
    Tls13,
}

/// A ClientHello as a current client sends it (RFC 8446 4.1.2), with every extension that lets a suite be picked.
fn modern_hello(version: Version, suites: &[u16]) -> Vec<u8> {
    let list = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let extension = |kind: u16, content: &[u8]| [&kind.to_be_bytes()[..], &list(content)].concat();
    // secp256r1, x25519, secp384r1; ECDSA and RSA with SHA-256 and up; uncompressed points.
    let groups = extension(10, &list(&[0, 23, 0, 29, 0, 24]));
    let signatures = extension(13, &list(&[4, 3, 5, 3, 6, 3, 8, 4, 8, 5, 8, 6, 4, 1, 5, 1, 6, 1]));
    let mut extensions = [groups, signatures, extension(11, &[1, 0])].concat();
    if version == Version::Tls13 {
        // Any 32 bytes are a point of x25519.
        let share = list(&[&[0, 29][..], &list(&[9; 32])].concat());
        extensions.extend([extension(43, &[2, 3, 4]), extension(51, &share)].concat());
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend(list(&suites.iter().flat_map(|suite| suite.to_be_bytes()).collect::<Vec<u8>>()));
    body.extend([1, 0]);
    body.extend(list(&extensions));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1][..], &length[1..], &body].concat();
    message.chunks(16_000).flat_map(|part| [&[22, 3, 1][..], &list(part)].concat()).collect()
}

/// Every suite there is a number for is offered, the one picked is left out, until nothing is picked any more.
#[tokio::test]
async fn b3_of_all_cipher_suites_exactly_those_with_forward_secrecy_and_authenticated_encryption_are_accepted() {
    let running = start(Limits::default());
    // 0x5600 says that a fallback was made, 0x00ff that renegotiation would be safe: neither is a suite.
    let all: Vec<u16> = (0..=u16::MAX).filter(|suite| ![0x5600, 0x00ff].contains(suite)).collect();
    // TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, and ECDHE_ECDSA with the same.
    let golden = [(Version::Tls13, [0x1301, 0x1302, 0x1303]), (Version::Tls12, [0xc02b, 0xc02c, 0xcca9])];
    for (version, golden) in golden {
        let mut accepted = Vec::new();
        for part in all.chunks(4096) {
            let mut offered = part.to_vec();
            while let Some(suite) = picked(&running, version, &offered).await {
                assert!(offered.contains(&suite), "{suite:x} was not offered");
                offered.retain(|other| *other != suite);
                accepted.push(suite);
            }
        }
        accepted.sort_unstable();
        assert_eq!(accepted, golden, "{version:?}");
    }
    running.healthy().await;
}

/// One run of `openssl s_client`: what it printed, and whether the handshake succeeded.
async fn s_client(running: &Running, arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = tokio::process::Command::new("openssl");
    let address = running.address.to_string();
    command.args(["s_client", "-connect", &address]).args(arguments);
    let piped = std::process::Stdio::piped;
    command.stdin(piped()).stdout(piped()).stderr(piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("openssl was found before");
    let mut stdin = child.stdin.take().unwrap();
    // An openssl that has ended reads nothing any more.
    let _ = stdin.write_all(input.as_bytes()).await;
    let output = if input.is_empty() {
        drop(stdin);
        timeout(PATIENCE, child.wait_with_output()).await
    } else {
        // It stays open: openssl ends by itself when the server ends the connection.
        let output = timeout(PATIENCE, child.wait_with_output()).await;
        drop(stdin);
        output
    };
    let output = output.expect("openssl ends").unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (text.contains("\nSSL handshake has read") && !text.contains("Cipher is (NONE)"), text)
}

/// With the client that others test with; the machine may have none, and the product does not need it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b3_openssl_agrees_and_cannot_renegotiate() {
    if tokio::process::Command::new("openssl").arg("version").output().await.is_err() {
        return;
    }
    let running = start(Limits::default());
    // An openssl of today sends these only when told that security does not matter.
    let anything = ["-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"];
    for (version, spoken) in [("-tls1", false), ("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)] {
        let (agreed, text) = s_client(&running, &[&[version][..], &anything].concat(), "").await;
        assert_eq!(agreed, spoken, "{version}: {text}");
    }
    for (cipher, spoken) in [
        ("ECDHE-ECDSA-AES128-GCM-SHA256", true),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", true),
        ("ECDHE-ECDSA-AES128-SHA", false),
        ("ECDHE-ECDSA-AES256-SHA384", false),
        ("ECDHE-ECDSA-AES128-CCM", false),
        ("DHE-RSA-AES256-GCM-SHA384", false),
        ("AES128-GCM-SHA256", false),
        ("PSK-AES128-GCM-SHA256", false),
        ("ECDHE-ECDSA-NULL-SHA:NULL-SHA256:eNULL", false),
        ("aNULL", false),
    ] {
        let (agreed, text) = s_client(&running, &["-tls1_2", "-cipher", &format!("{cipher}:@SECLEVEL=0")], "").await;
        assert_eq!(agreed, spoken, "{cipher}: {text}");
    }
    // R alone in a line asks for a new handshake within the connection.
    let (agreed, text) = s_client(&running, &["-tls1_2"], "R\n").await;
    assert!(agreed && text.contains("RENEGOTIATING"), "{text}");
    assert!(text.contains("no renegotiation"), "{text}");
    running.healthy().await;
}
