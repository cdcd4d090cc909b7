//! The adapter against servers of its own: what agents serve, and what they should not.

use std::net::SocketAddr;
use std::sync::atomic::AtomicI64;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::adapters::http::Refused;
use crate::crypto::TrustBundle;

/// The tests' own servers.
#[derive(Debug, Clone, Copy)]
struct Here;

impl Addresses for Here {
    fn refuses(&self, address: std::net::IpAddr) -> Option<Refused> {
        (!address.is_loopback()).then_some(Refused::Reserved)
    }
}

/// Answers by path, and tells which paths it was asked for; an empty answer is none at all.
async fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let answer = answer(&path);
            let _ = sender.send(path);
            if answer == "…" {
                drop(stream.read_u8().await);
            } else {
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    (address, asked)
}

fn ok(card: &Value) -> String {
    let body = card.to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n")
}

fn fetch(address: SocketAddr) -> Fetch {
    let authority = "w.n.svc.cluster.local:8000".into();
    Fetch { namespace: "n".into(), pod: "pod".into(), address, authority, injected: false, proves: false }
}

/// No ConfigMap.
fn none() -> SignedCards {
    Arc::new(|read| {
        let message = format!("ConfigMap {} is not there", read.name).into();
        let error = AskError { fault: AskFault::Unreachable, reason: Reason::FetchFailed, message };
        Box::pin(async move { Err(error) })
    })
}

async fn ask(fetch: Fetch, attempt: Attempt) -> Result<Fetched, AskError> {
    let judging = Judging { under: Arc::new(InForce::default), now: Arc::new(|| 0) };
    Cards::new(Here, judging, none(), CardMetrics::default()).ask(CardQuestion::Fetch(fetch), attempt).await
}

async fn failed(answer: &'static str) -> (AskFault, Reason) {
    let (address, _asked) = serve(move |_| answer.to_owned()).await;
    let error = ask(fetch(address), Attempt::Patient).await.unwrap_err();
    assert!(error.message.len() <= MESSAGE, "{error}");
    (error.fault, error.reason)
}

#[tokio::test(start_paused = true)]
async fn case_042_043_a_card_is_read_and_its_url_is_the_one_inside_the_cluster() {
    let (address, _asked) = serve(|_| ok(&json!({"name": "A", "url": "http://0.0.0.0:8000"}))).await;
    let published = ask(fetch(address), Attempt::Quick).await.unwrap().served;
    assert_eq!(published.card, json!({"name": "A", "url": "http://w.n.svc.cluster.local:8000"}));
    assert_eq!(published.served_url.as_deref(), Some("http://0.0.0.0:8000"));
}

#[tokio::test(start_paused = true)]
async fn case_044_045_046_the_older_path_only_where_nothing_is_at_the_newer() {
    let (address, mut asked) = serve(|path| match path {
        "/.well-known/agent.json" => ok(&json!({"name": "old"})),
        _ => status("404 Not Found"),
    })
    .await;
    let card = ask(fetch(address), Attempt::Quick).await.unwrap().served;
    assert_eq!(card.card["name"], "old");
    assert_eq!([asked.recv().await.unwrap(), asked.recv().await.unwrap()], PATHS[..2]);

    let (address, mut asked) = serve(|_| status("404 Not Found")).await;
    let error = ask(fetch(address), Attempt::Quick).await.unwrap_err();
    assert_eq!(
        (error.reason, error.message.contains("agent-card.json: answered with HTTP status 404")),
        (Reason::AnswerRefused, true),
        "{error}"
    );
    let three = [asked.recv().await.unwrap(), asked.recv().await.unwrap(), asked.recv().await.unwrap()];
    assert_eq!(three, PATHS);

    for line in ["500 No", "403 No", "301 Moved"] {
        let (address, mut asked) = serve(move |_| status(line)).await;
        let error = ask(fetch(address), Attempt::Quick).await.unwrap_err();
        assert_eq!(error.reason, Reason::AnswerRefused, "{line}");
        assert_eq!(asked.recv().await.unwrap(), PATHS[0]);
        assert!(asked.try_recv().is_err(), "{line}: one path only");
    }

    let (address, _asked) =
        serve(|path| if path == PATHS[0] { status("404 Not Found") } else { status("500 No") }).await;
    let error = ask(fetch(address), Attempt::Quick).await.unwrap_err();
    assert!(error.message.contains("404"), "the first fault counts: {error}");
}

/// Ruling 25 of KAOS: its agents serve their card at a third path, which is asked for last.
#[tokio::test(start_paused = true)]
async fn the_path_of_kaos_is_asked_for_where_nothing_is_at_the_others() {
    let (address, mut asked) = serve(|path| match path {
        "/.well-known/agent" => ok(&json!({"name": "kaos"})),
        _ => status("404 Not Found"),
    })
    .await;
    let card = ask(fetch(address), Attempt::Quick).await.unwrap().served;
    assert_eq!(card.card["name"], "kaos");
    let three = [asked.recv().await.unwrap(), asked.recv().await.unwrap(), asked.recv().await.unwrap()];
    assert_eq!(three, PATHS);
}

#[tokio::test(start_paused = true)]
async fn case_047_what_is_no_card_is_a_fault() {
    for body in
        ["{", "[]", "{\"version\":1}", "{\"name\":\"a\",\"name\":\"b\"}", "{\"skills\":[{\"id\":7}]}", "nul", ""]
    {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let (address, _asked) = serve(move |_| answer.clone()).await;
        let error = ask(fetch(address), Attempt::Quick).await.unwrap_err();
        assert_eq!((error.fault, error.reason), (AskFault::Unusable, Reason::CardInvalid), "{body}: {error}");
    }
}

/// Case 56: within ten seconds, both paths together; a quick try is over after one, and is no verdict.
#[tokio::test(start_paused = true)]
async fn case_056_who_does_not_answer_is_left() {
    let begun = Instant::now();
    let (address, _asked) = serve(|path| if path == PATHS[0] { status("404 Not Found") } else { "…".to_owned() }).await;
    let error = ask(fetch(address), Attempt::Quick).await.unwrap_err();
    assert_eq!((error.fault, begun.elapsed().as_secs()), (AskFault::Slow, 1));
    let error = ask(fetch(address), Attempt::Patient).await.unwrap_err();
    assert_eq!((error.fault, error.reason, begun.elapsed().as_secs()), (AskFault::TimedOut, Reason::AnswerTooLate, 11));
}

#[tokio::test(start_paused = true)]
async fn every_fault_has_its_reason() {
    for (answer, wanted) in [
        ("", (AskFault::Refused, Reason::MeshRefused)),
        ("\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{28}", (AskFault::Refused, Reason::MeshRefused)),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nx", (AskFault::Unusable, Reason::AnswerUnreadable)),
        ("SMTP\r\n\r\n", (AskFault::Unusable, Reason::AnswerUnreadable)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", (AskFault::Unreachable, Reason::AgentUnreachable)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n{", (AskFault::Unusable, Reason::AnswerTooLarge)),
        ("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n", (AskFault::Refused, Reason::AnswerRefused)),
        ("HTTP/1.1 401 No\r\n\r\n", (AskFault::Refused, Reason::AnswerRefused)),
    ] {
        assert_eq!(failed(answer).await, wanted, "{answer:?}");
    }
    let outside = Fetch { address: "10.0.0.1:80".parse().unwrap(), ..fetch(([127, 0, 0, 1], 1).into()) };
    assert_eq!(ask(outside, Attempt::Quick).await.unwrap_err().reason, Reason::AddressRefused);
}

/// B24: what our own sidecar refuses is not the agent's fault.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_sidecar_is_told_from_one_of_the_agent() {
    for (answer, wanted) in [
        ("HTTP/1.1 401 No\r\n\r\n", Reason::BlockedBySidecar),
        ("HTTP/1.1 500 No\r\nServer: envoy\r\n\r\n", Reason::BlockedBySidecar),
        ("HTTP/1.1 500 No\r\nServer: uvicorn\r\n\r\n", Reason::AnswerRefused),
        ("HTTP/1.1 404 No\r\nServer: envoy\r\n\r\n", Reason::AnswerRefused),
    ] {
        let (address, _asked) = serve(move |_| answer.to_owned()).await;
        let injected = Fetch { injected: true, ..fetch(address) };
        assert_eq!(ask(injected, Attempt::Quick).await.unwrap_err().reason, wanted, "{answer}");
    }
}

/// Cases 50 and 51: what is read in a ConfigMap is a card like any other, or none.
#[tokio::test]
async fn case_050_051_the_card_in_a_config_map_is_read_as_one_that_is_served() {
    let read = || Read {
        namespace: "n".into(),
        name: "w-card-signed".into(),
        uid: "u".into(),
        version: "1".into(),
        authority: "w.n.svc.cluster.local:8000".into(),
    };
    let judging = || Judging { under: Arc::new(InForce::default), now: Arc::new(|| 7) };
    let holds = |text: &'static str| -> SignedCards { Arc::new(move |_| Box::pin(async move { Ok(text.to_owned()) })) };
    let metrics = CardMetrics::default();
    let cards = Cards::new(Here, judging(), holds("{\"name\": \"A\", \"url\": \"http://0.0.0.0\"}"), metrics.clone());
    let fetched = cards.ask(CardQuestion::Read(read()), Attempt::Quick).await.unwrap();
    assert_eq!(fetched.served.card, json!({"name": "A", "url": "http://w.n.svc.cluster.local:8000"}));
    for text in ["", "{", "[]", "{\"version\": 1}", "{\"name\": \"A\", \"name\": \"B\"}"] {
        let cards = Cards::new(Here, judging(), holds(text), metrics.clone());
        let error = cards.ask(CardQuestion::Read(read()), Attempt::Quick).await.unwrap_err();
        assert_eq!((error.fault, error.reason), (AskFault::Unusable, Reason::CardInvalid), "{text}");
        assert!(error.message.contains("ConfigMap w-card-signed"), "{error}");
    }
    let error = Cards::new(Here, judging(), none(), metrics).ask(CardQuestion::Read(read()), Attempt::Quick).await;
    assert_eq!(error.unwrap_err().fault, AskFault::Unreachable);
}

/// Cards change between looks and several are kept of each agent: what is kept of one is what is published, and no document.
#[tokio::test]
async fn what_is_covered_of_a_signed_card_is_published_and_only_its_digest_is_kept() {
    const NOW: i64 = 1_800_000_000;
    let kat: Value = serde_json::from_str(include_str!("../../crypto/tests/vectors/kat.json")).unwrap();
    let text = |member: &str| kat[member].as_str().unwrap().to_owned();
    let mut card: Value = serde_json::from_str(&text("card")).unwrap();
    card["signatures"] = json!([{"protected": text("protected"), "signature": text("signature")}]);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", text("ca"));
    let bundle = TrustBundle::read(pem.as_bytes(), None).unwrap();
    let bundles = Arc::new(Bundles::loaded(Arc::new(bundle), Arc::new(AtomicI64::new(NOW))));
    let under = move || InForce { bundles: bundles.clone(), ..InForce::default() };
    let judging = Judging { under: Arc::new(under), now: Arc::new(|| NOW) };
    let document = card.to_string();
    let holds: SignedCards = Arc::new(move |_| {
        let document = document.clone();
        Box::pin(async move { Ok(document) })
    });
    let cards = Cards::new(Here, judging, holds, CardMetrics::default());
    let read = || Read {
        namespace: "n".into(),
        name: "w-card-signed".into(),
        uid: "u".into(),
        version: "1".into(),
        authority: "w.n.svc.cluster.local:8000".into(),
    };
    // The second time the verdict is known, and what is covered is read anew.
    for _ in 0..2 {
        let fetched = cards.ask(CardQuestion::Read(read()), Attempt::Quick).await.unwrap();
        let [good] = fetched.verdict.verified().unwrap().good() else { panic!("{:?}", fetched.verdict) };
        assert_eq!(*good.covered, digest::sha256(text("canonical").as_bytes()));
        let [(covered, published)] = &fetched.covered[..] else { panic!("{:?}", fetched.covered) };
        assert_eq!((covered, &published.card["name"]), (&good.covered, &json!("Weather Agent")));
        assert_eq!(published.card["url"], "http://w.n.svc.cluster.local:8000");
    }
    assert_eq!(cards.verdicts.lock().signatures(), 2);
}
