//! The generated Envoy bootstrap under the real Envoy: it is accepted for every choice of ports, the listener alone
//! decides the direction that ext_proc is told, and without ext_proc nothing passes.
//!
//! Envoy runs on loopback without iptables, so that it needs no rights: the cluster `original_destination` leads to a
//! fixed upstream, and addresses and ports are moved (`webhook_tests::envoy::on_loopback`). Everything that decides
//! about headers is the generated text. The interception itself is not part of this suite.

mod otel;
mod probes;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, bail};
use drawbridge::config::defaults::{config_map_data, config_map_data_in};
use drawbridge::config::envoy::bootstrap;
use drawbridge::config::inputs::{ConfigMapInput, NamespaceInputs};
use drawbridge::config::schema::Platform;
use drawbridge::config::view::namespace_view;
use drawbridge::domain::keys::{CONFIG_MAP_ENVOY, HEADER_DIRECTION, KEY_ENVOY};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use webhook_tests::Port;
use webhook_tests::envoy::ext_proc::ExtProc;
use webhook_tests::envoy::upstream::Upstream;
use webhook_tests::envoy::{Envoy, validate};
use webhook_tests::patience::patience;

fn platform(text: &str) -> Platform {
    Platform::parse(text, "config.yaml").unwrap_or_else(|error| panic!("{error}"))
}

/// Defaults, the edges of the allowed range, neighbours, and a scattered one.
const PORTS: [Option<(u16, u16, u16)>; 6] = [
    None,
    Some((1024, 65535, 1025)),
    Some((65535, 1024, 65534)),
    Some((16001, 16002, 16003)),
    Some((15001, 15006, 15000)),
    Some((40007, 3128, 20444)),
];

fn with_ports(ports: Option<(u16, u16, u16)>) -> Platform {
    ports.map_or_else(Platform::built_in, |(outbound, inbound, admin)| {
        platform(&format!("proxy: {{port: {outbound}, inboundProxyPort: {inbound}, adminPort: {admin}}}"))
    })
}

#[test]
fn envoy_accepts_the_bootstrap_for_every_choice_of_ports() {
    for ports in PORTS {
        let value = bootstrap(&with_ports(ports).resolved().proxy);
        validate(&value.to_string()).unwrap_or_else(|error| panic!("{ports:?}: {error:#}"));
        let admin = &value["admin"]["address"]["socket_address"]["port_value"];
        assert_eq!(*admin, json!(ports.map_or(9901, |(_, _, admin)| admin)), "the ports are the ones asked for");
    }
}

#[test]
fn envoy_accepts_what_the_config_map_of_a_namespace_holds() {
    for ports in PORTS {
        let data = config_map_data(CONFIG_MAP_ENVOY, &with_ports(ports)).unwrap();
        validate(&data[KEY_ENVOY]).unwrap_or_else(|error| panic!("{ports:?}: {error:#}"));
    }
}

#[test]
fn envoy_accepts_what_a_namespace_with_ports_of_its_own_gets() {
    let platform = platform("namespaceOverrides: [proxy.port, proxy.inboundProxyPort, proxy.adminPort]");
    let text = "proxy: {port: 17001, inboundProxyPort: 17002, adminPort: 17003}".to_owned();
    let defaults = ConfigMapInput {
        is_defaults: true,
        data: [("config.yaml".to_owned(), text)].into(),
        ..ConfigMapInput::default()
    };
    let inputs =
        NamespaceInputs { config_maps: [("defaults".to_owned(), defaults)].into(), ..NamespaceInputs::default() };
    let view = namespace_view(&platform, "team1", &inputs, None);
    let data = config_map_data_in(CONFIG_MAP_ENVOY, &platform, &view.resolved).unwrap();
    validate(&data[KEY_ENVOY]).unwrap_or_else(|error| panic!("{error:#}"));
    let value: Value = serde_json::from_str(&data[KEY_ENVOY]).unwrap();
    for (pointer, port) in [
        ("/static_resources/listeners/0/address", 17001),
        ("/static_resources/listeners/1/address", 17002),
        ("/admin/address", 17003),
    ] {
        assert_eq!(value.pointer(pointer).unwrap()["socket_address"]["port_value"], json!(port), "{pointer}");
    }
}

#[test]
fn envoy_refuses_a_bootstrap_with_a_wrong_type_or_an_unknown_field() {
    let good = bootstrap(&Platform::built_in().resolved().proxy);
    for (pointer, wrong) in [
        ("/static_resources/listeners/0/address", json!({"socket_address": {"address": "0.0.0.0", "port_value": "x"}})),
        ("/admin/address", json!({"socket_adress": {"address": "127.0.0.1", "port_value": 9901}})),
        ("/static_resources/listeners/0/listener_filters/0/typed_config/@type", json!("type.googleapis.com/x.Y")),
    ] {
        let mut broken = good.clone();
        *broken.pointer_mut(pointer).unwrap() = wrong;
        assert!(validate(&broken.to_string()).is_err(), "{pointer}");
    }
}

/// A path that no other request of this process has.
fn path() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("/request-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Sends `GET path` with these header lines, byte for byte; status and body, or `None` when the connection was closed
/// without an answer.
async fn send(address: SocketAddr, path: &str, lines: &str) -> Result<Option<(u16, String)>> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let close = if lines.to_ascii_lowercase().contains("connection:") { "" } else { "Connection: close\r\n" };
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: tool\r\n{close}{lines}\r\n").as_bytes()).await?;
        let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let count = stream.read(&mut chunk).await?;
            answer.extend_from_slice(&chunk[..count]);
            if let Some(parsed) = parsed(&answer) {
                return Ok(Some(parsed));
            }
            if count == 0 && answer.is_empty() {
                return Ok(None);
            }
            if count == 0 {
                bail!("the answer is cut short: {}", String::from_utf8_lossy(&answer));
            }
        }
    };
    tokio::time::timeout(patience(), exchange).await.context("no answer in time")?
}

/// The same for a request that must be answered.
async fn raw(address: SocketAddr, path: &str, lines: &str) -> Result<(u16, String)> {
    send(address, path, lines).await?.context("the connection was closed without an answer")
}

/// Status and body, once the answer is complete (every stub and Envoy itself send Content-Length).
fn parsed(answer: &[u8]) -> Option<(u16, String)> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    (body.len() >= length.unwrap_or(0)).then(|| (status, body.to_owned()))
}

/// The values of the direction header among these headers, whatever its case.
fn directions<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let is_direction = |(name, _): &(&str, &str)| name.eq_ignore_ascii_case(HEADER_DIRECTION);
    headers.into_iter().filter(is_direction).map(|(_, value)| value).collect()
}

/// Header lines that a client may send to have its way.
const ATTEMPTS: [(&str, &str); 14] = [
    ("absent", ""),
    ("once", "x-authbridge-direction: OTHER\r\n"),
    ("once, the listener's own", "x-authbridge-direction: OWN\r\n"),
    ("twice", "x-authbridge-direction: OTHER\r\nx-authbridge-direction: OWN\r\n"),
    ("twice, mixed case", "X-AuthBridge-Direction: OTHER\r\nx-authbridge-DIRECTION: OTHER\r\n"),
    ("upper case", "X-AUTHBRIDGE-DIRECTION: OTHER\r\n"),
    ("a list", "x-authbridge-direction: OTHER,OWN\r\n"),
    ("a list in two lines", "x-authbridge-direction: OTHER, OTHER\r\nX-Authbridge-Direction: OWN,OTHER\r\n"),
    ("empty", "x-authbridge-direction:\r\n"),
    ("empty, then a value", "x-authbridge-direction:\r\nx-authbridge-direction: OTHER\r\n"),
    ("named in Connection", "Connection: close, x-authbridge-direction\r\nx-authbridge-direction: OTHER\r\n"),
    ("named in Connection, absent", "Connection: close, X-AuthBridge-Direction\r\n"),
    ("with underscores", "x_authbridge_direction: OTHER\r\nX_AUTHBRIDGE-direction: OTHER\r\n"),
    (
        "many",
        concat!(
            "x-authbridge-direction: OTHER\r\nx-authbridge-direction: OTHER\r\nx-authbridge-direction: OTHER\r\n",
            "accept: */*\r\nx-authbridge-direction: OTHER\r\nx-authbridge-direction: OTHER\r\n",
        ),
    ),
];

/// Lines that no HTTP message may hold; Envoy may refuse them, but must not be talked round.
const MALFORMED: [(&str, &str); 5] = [
    ("blank before the colon", "x-authbridge-direction : OTHER\r\n"),
    ("blank in front", " x-authbridge-direction: OTHER\r\n"),
    ("folded into another header", "accept: a\r\n x-authbridge-direction: OTHER\r\n"),
    ("bare line feed", "accept: a\nx-authbridge-direction: OTHER\r\n"),
    ("NUL in the name", "x-authbridge-direction\0: OTHER\r\n"),
];

struct Parties {
    envoy: Envoy,
    ext_proc: ExtProc,
    upstream: Upstream,
}

impl Parties {
    async fn start() -> Result<Self> {
        let (ext_proc, upstream) = (ExtProc::start().await?, Upstream::start().await?);
        let generated = bootstrap(&Platform::built_in().resolved().proxy);
        let envoy = Envoy::start(&generated, ext_proc.address(), upstream.address()).await?;
        Ok(Self { envoy, ext_proc, upstream })
    }

    /// Own direction, the other one, and the address.
    fn listeners(&self) -> [(&'static str, &'static str, SocketAddr); 2] {
        [("outbound", "inbound", self.envoy.outbound()), ("inbound", "outbound", self.envoy.inbound())]
    }

    /// What passed carried the listener's direction to ext_proc, once, and none to the upstream.
    fn judge(&self, what: &str, path: &str, direction: &str, body: &str) {
        let seen = self.ext_proc.seen(path);
        assert_eq!(seen.len(), 1, "{what}: ext_proc is shown each request once");
        let shown = directions(seen[0].iter().map(|(name, value)| (name.as_str(), value.as_str())));
        assert_eq!(shown, [direction], "{what}: what ext_proc saw in {:?}", seen[0]);
        let received: Vec<(String, String)> = serde_json::from_str(body).unwrap();
        assert!(received.iter().any(|(name, _)| name == "host"), "{what}: the upstream answered: {body}");
        let left = directions(received.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        assert_eq!(left, [""; 0], "{what}: the header leaves the Pod: {received:?}");
    }
}

#[tokio::test]
async fn a_client_never_chooses_the_direction() -> Result<()> {
    let parties = Parties::start().await?;
    for (own, other, address) in parties.listeners() {
        for (attempt, lines) in ATTEMPTS {
            let what = format!("{own} listener, {attempt}");
            let (path, lines) = (path(), lines.replace("OWN", own).replace("OTHER", other));
            let (status, body) = raw(address, &path, &lines).await.with_context(|| what.clone())?;
            assert_eq!(status, 200, "{what}: {body}");
            parties.judge(&what, &path, own, &body);
        }
        for (attempt, lines) in MALFORMED {
            let what = format!("{own} listener, {attempt}");
            let (path, before) = (path(), parties.upstream.received());
            let lines = lines.replace("OTHER", other);
            match send(address, &path, &lines).await.with_context(|| what.clone())? {
                Some((200, body)) => parties.judge(&what, &path, own, &body),
                refused => {
                    let status = refused.map_or(400, |(status, _)| status);
                    assert_eq!(status, 400, "{what}: refused as malformed or closed, nothing else");
                    assert_eq!(parties.ext_proc.seen(&path).len(), 0, "{what}");
                    assert_eq!(parties.upstream.received(), before, "{what}");
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_client_never_chooses_the_direction_on_a_kept_connection_either() -> Result<()> {
    let parties = Parties::start().await?;
    for (own, other, address) in parties.listeners() {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        for values in [&[][..], &[other], &[other, other], &[own, other]] {
            let path = path();
            let mut request = http::Request::get(&path).header("host", "tool");
            for value in values {
                request = request.header(HEADER_DIRECTION, *value);
            }
            let answering = sender.send_request(request.body(Empty::<Bytes>::new())?);
            let response = tokio::time::timeout(patience(), answering).await??;
            assert_eq!(response.status(), 200);
            let body = response.into_body().collect().await?.to_bytes();
            parties.judge(&format!("{own} listener, {values:?}"), &path, own, std::str::from_utf8(&body)?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_client_never_chooses_the_direction_over_http_2() -> Result<()> {
    let parties = Parties::start().await?;
    for (own, other, address) in parties.listeners() {
        let stream = TcpStream::connect(address).await?;
        let executor = TokioExecutor::new();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let list = format!("{other}, {other}");
        for values in [&[][..], &[other], &[own], &[other, other], &[other, own], &[&list, other], &["", other]] {
            let path = path();
            let mut request = http::Request::get(format!("http://tool{path}"));
            for value in values {
                request = request.header(HEADER_DIRECTION, *value);
            }
            let answering = sender.send_request(request.body(Empty::<Bytes>::new())?);
            let response = tokio::time::timeout(patience(), answering).await??;
            assert_eq!(response.status(), 200);
            let body = response.into_body().collect().await?.to_bytes();
            parties.judge(&format!("{own} listener, HTTP/2, {values:?}"), &path, own, std::str::from_utf8(&body)?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn without_ext_proc_nothing_passes() -> Result<()> {
    let (nobody, upstream) = (Port::reserve()?, Upstream::start().await?);
    let generated = bootstrap(&Platform::built_in().resolved().proxy);
    let envoy = Envoy::start(&generated, nobody.address(), upstream.address()).await?;
    for address in [envoy.outbound(), envoy.inbound()] {
        let (status, body) = raw(address, &path(), "").await?;
        assert!((500..600).contains(&status), "{address}: {status} {body}");
    }
    assert_eq!(upstream.received(), 0, "no request reached its destination");
    Ok(())
}

#[tokio::test]
async fn when_ext_proc_goes_away_nothing_passes_any_more() -> Result<()> {
    let Parties { envoy, ext_proc, upstream } = Parties::start().await?;
    for address in [envoy.outbound(), envoy.inbound()] {
        assert_eq!(raw(address, &path(), "").await?.0, 200);
    }
    let before = upstream.received();
    assert_eq!((before, ext_proc.count()), (2, 2));
    ext_proc.stop().await;
    for address in [envoy.outbound(), envoy.inbound()] {
        let (status, body) = raw(address, &path(), "").await?;
        assert!((500..600).contains(&status), "{address}: {status} {body}");
    }
    assert_eq!(upstream.received(), before, "no request reached its destination");
    Ok(())
}
