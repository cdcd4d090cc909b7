//! A1, A2, A5, B7, B8: what a client may send.

use axum::Router;
use drawbridge::server::admin;
use drawbridge::server::health::Readiness;
use drawbridge::server::listener::{Limits, Server, bind};
use drawbridge::server::shutdown::{Phase, Shutdown};
use drawbridge::server::telemetry::metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support::{PATH, PATIENCE, post, review, snapshots, start, turn};

const MIB: usize = 1024 * 1024;

fn head(more: &str) -> String {
    format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn a2_a_content_length_above_the_cap_is_413_without_reading() {
    let running = start(Limits::default());
    let answer = running.exchange(head(&format!("Content-Length: {}\r\n", 8 * MIB)).as_bytes()).await;
    assert_eq!(status(&answer), "413", "{answer}");
    for more in [format!("Content-Length: {}\r\n", u64::MAX), "Content-Length: 99999999999999999999\r\n".to_owned()] {
        let answer = running.exchange(head(&more).as_bytes()).await;
        assert!(matches!(status(&answer), "400" | "413" | "431"), "{answer}");
    }
    running.healthy().await;
}

#[tokio::test]
async fn a2_a_content_length_that_is_too_short_ends_the_connection_after_one_answer() {
    let running = start(Limits::default());
    let body = review("u-1");
    let lying = format!("{}{body}", head(&format!("Content-Length: {}\r\n", body.len() - 10)));
    let answer = running.exchange(lying.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "the cut body is refused with its uid: {answer}");
    assert!(answer.contains("\"allowed\":false"), "{answer}");
    assert!(answer.matches("HTTP/1.1 400").count() <= 1, "what follows is not a request: {answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2_endless_chunked_bodies_are_413_and_memory_is_bounded() {
    let _turn = turn().await;
    let running = start(Limits::default());
    running.healthy().await;
    let before = resident();
    let mut uploads = Vec::new();
    for _ in 0..16 {
        let stream = running.connect("http/1.1").await;
        uploads.push(tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let send = tokio::spawn(async move {
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                let mut sent = 0;
                writer.write_all(head("Transfer-Encoding: chunked\r\n").as_bytes()).await?;
                while sent < 64 * MIB {
                    writer.write_all(chunk.as_bytes()).await?;
                    sent += 0x10000;
                }
                Ok::<(), std::io::Error>(())
            });
            let mut answer = vec![0; 64];
            // One that was ended for the others' sake reads nothing more.
            let length = reader.read(&mut answer).await.unwrap_or(0);
            assert!(timeout(PATIENCE, send).await.unwrap().unwrap().is_err(), "64 MiB were taken");
            String::from_utf8_lossy(&answer[..length]).into_owned()
        }));
    }
    let mut peak = before;
    let mut refused = Vec::new();
    for upload in uploads {
        peak = peak.max(resident());
        let answer = timeout(PATIENCE, upload).await.unwrap().unwrap();
        assert!(answer.is_empty() || matches!(status(&answer), "413" | "503"), "{answer}");
        refused.push(status(&answer).to_owned());
    }
    assert!(refused.iter().any(|status| status == "413"), "{refused:?}");
    // What all connections share, and our own side of them.
    let most = Limits::default().memory + 32 * MIB;
    assert!(peak.saturating_sub(before) <= most, "grew by {} KiB", (peak - before) / 1024);
    running.healthy().await;
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn a5_expect_100_continue_is_granted_and_refused_before_the_body() {
    let running = start(Limits::default());
    let mut stream = running.connect("http/1.1").await;
    let body = review("u-1");
    let asking = head(&format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len()));
    stream.write_all(asking.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let length = timeout(PATIENCE, stream.read(&mut answer)).await.unwrap().unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&answer[..length]));
    stream.write_all(body.as_bytes()).await.unwrap();
    let length = timeout(PATIENCE, stream.read(&mut answer)).await.unwrap().unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"));

    let large = head(&format!("Content-Length: {}\r\nExpect: 100-continue\r\n", 8 * MIB));
    assert_eq!(status(&running.exchange(large.as_bytes()).await), "413");
}

#[tokio::test]
async fn b7_what_two_readers_could_understand_differently_is_400_and_the_end() {
    let running = start(Limits::default());
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let both = head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + smuggled;
    let both_swapped = head("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n" + smuggled;
    let cases = [
        ("content-length and transfer-encoding", both),
        ("transfer-encoding and content-length", both_swapped),
        ("two lengths", head("Content-Length: 5\r\nContent-Length: 6\r\n") + "01234" + smuggled),
        ("a signed length", head("Content-Length: +5\r\n") + "01234" + smuggled),
        ("a list of lengths", head("Content-Length: 5, 6\r\n") + "01234" + smuggled),
        ("an unknown coding", head("Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n" + smuggled),
        ("chunked not last", head("Transfer-Encoding: chunked, gzip\r\n") + "0\r\n\r\n" + smuggled),
        ("bare LF", head("Content-Length: 5\r\n").replace("Host: x\r\n", "Host: x\n") + "01234" + smuggled),
        ("bare LF at the end", head("Content-Length: 5\r\n").replace("\r\n\r\n", "\n\n") + "01234" + smuggled),
        ("a folded line", head("X-A: b\r\n c\r\nContent-Length: 5\r\n") + "01234" + smuggled),
        ("space before the colon", head("Content-Length : 5\r\n") + "01234" + smuggled),
        ("NUL in a value", head("X-A: \0\r\nContent-Length: 5\r\n") + "01234" + smuggled),
        ("no version", format!("GET {PATH}\r\n\r\n{smuggled}")),
    ];
    for (name, bytes) in cases {
        let answer = running.exchange(bytes.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: one answer, not the smuggled one: {answer}");
        assert_eq!(status(&answer), "400", "{name}: {answer}");
    }
    assert_eq!(running.exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await, "", "HTTP/2 that was not agreed on");
    let chunked = head("Transfer-Encoding: chunked\r\n") + &format!("{:x}\r\n", review("u").len()) + &review("u");
    let bad_chunk = chunked + "\r\nffffffffffffffff1\r\n";
    assert_eq!(status(&running.exchange(bad_chunk.as_bytes()).await), "400", "an overflowing chunk");
    running.healthy().await;
}

#[tokio::test]
async fn b7_heads_without_measure_are_refused() {
    let running = start(Limits::default());
    let long = head(&format!("X-A: {}\r\nContent-Length: 0\r\n", "a".repeat(MIB)));
    let many = head(&format!("{}Content-Length: 0\r\n", "X-A: b\r\n".repeat(100_000)));
    let path = format!("POST /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(MIB));
    for (name, bytes) in [("1 MiB header", long), ("100,000 headers", many), ("1 MiB path", path)] {
        let answer = running.exchange(bytes.as_bytes()).await;
        assert!(matches!(status(&answer), "400" | "414" | "431"), "{name}: {answer}");
    }
    running.healthy().await;
}

#[tokio::test]
async fn b8_the_webhook_port_shows_nothing_else_and_nothing_echoes_a_body() {
    let running = start(Limits::default());
    for path in ["/metrics", "/debug/pprof/", "/healthz", "/readyz", "/", "/..%2fmetrics"] {
        let answer =
            running.exchange(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await;
        assert_eq!(status(&answer), "404", "{path}: {answer}");
    }
    let canary = "canary-4711";
    for body in
        [format!("[\"{canary}\"]"), format!("{{\"{canary}\":"), review("u").replace("{}", &format!("\"{canary}\""))]
    {
        let close = String::from_utf8(post(&body)).unwrap().replace("Host: x\r\n", "Host: x\r\nConnection: close\r\n");
        let answer = running.exchange(close.as_bytes()).await;
        assert!(!answer.contains(canary), "{answer}");
    }
    assert!(!running.metrics.text().unwrap().contains(canary));
}

#[tokio::test]
async fn b8_the_admin_port_answers_probes_and_metrics_without_tls() {
    let (metrics, shutdown, readiness) = (Metrics::new(), Shutdown::new(), Readiness::new());
    let latch = readiness.latch("snapshot");
    let router: Router = admin::probes(readiness.clone()).merge(admin::metrics(metrics.clone(), snapshots()));
    let socket = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    let until = shutdown.clone();
    let server = Server { name: "admin", router, tls: None, limits: Limits::default(), shutdown: until, metrics };
    let ended = tokio::spawn(server.serve(socket));
    let get = async |path: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    assert_eq!(status(&get("/healthz").await), "200");
    assert_eq!(status(&get("/healthz/ping").await), "200");
    assert_eq!(status(&get("/readyz").await), "503");
    assert!(get("/readyz?verbose=1").await.contains("[-]snapshot failed\n[+]draining ok\n"));
    assert_eq!(status(&get("/readyz/snapshot").await), "503");
    latch.release();
    assert!(get("/readyz").await.ends_with("\r\n\r\nok"));
    assert!(get("/readyz?verbose").await.contains("[+]snapshot ok\n"));
    assert_eq!(status(&get("/readyz/nothing").await), "404");
    let text = get("/metrics").await;
    assert!(text.contains("application/openmetrics-text") && text.ends_with("# EOF\n"), "{text}");
    let staleness = text.lines().find_map(|line| line.strip_prefix("drawbridge_snapshot_staleness_seconds ")).unwrap();
    assert!((0.0..30.0).contains(&staleness.parse::<f64>().unwrap()), "{staleness}");
    readiness.drain();
    assert_eq!(status(&get("/readyz").await), "503");
    assert_eq!(status(&get("/healthz").await), "200", "a draining process lives");
    shutdown.advance(Phase::Closing);
    assert_eq!(timeout(PATIENCE, ended).await.unwrap().unwrap(), 0);
}
