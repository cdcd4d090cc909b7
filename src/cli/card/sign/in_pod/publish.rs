//! The signed card in its ConfigMap. In: which, the text, how long it may take. Out: that it is there, or why not.
//!
//! Promises: of a ConfigMap that is there nothing is changed but the one key and the note that it awaits a signature, also where the account may
//! replace it and not patch it; one that is not there is made where the account may, as it may where somebody wrote the manifests by hand.

use std::time::Duration;

use anyhow::{Context, bail};
use kube::core::Request;
use kube::core::params::{GetParams, Patch, PatchParams, PostParams};
use kube::{Client, Config};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::api::refusal;
use crate::domain::keys;
use crate::store::Kind;

/// For so long what the operator makes ahead of the Pod may be on its way: the ConfigMap, and the right to write it.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// Until it is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Publishes by the Pod's own account. `made`: somebody makes the ConfigMap and the right ahead, so both are waited for.
///
/// # Errors
/// When the server refuses or does not answer in time.
pub(super) async fn publish(at: (&str, &str), text: &str, within: Duration, made: bool) -> anyhow::Result<()> {
    let client = client()?;
    let end = Instant::now() + within.min(if made { MADE_WITHIN } else { within });
    put(&client, at, text, end, made).await
}

/// What became of a card that is to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// It was written.
    Written,
    /// What was there is as good.
    Stood,
}

/// Publishes by the Pod's own account, once, unless the card that is there is as good by `stands`.
///
/// # Errors
/// When the server refuses.
pub(super) async fn settle(at: (&str, &str), text: &str, stands: impl Fn(&str) -> bool) -> anyhow::Result<Settled> {
    let client = client()?;
    if there(&client, at).await.is_some_and(|there| stands(&there)) {
        return Ok(Settled::Stood);
    }
    once(&client, at, text).await.map_err(|error| anyhow::anyhow!("{}", refusal::of_error(&error)))?;
    Ok(Settled::Written)
}

/// The card that is published; none where it awaits its signature, or where it cannot be read, which is no reason not to write it.
async fn there(client: &Client, (namespace, name): (&str, &str)) -> Option<String> {
    let request = Request::new(Kind::ConfigMap.path(namespace)).get(name, &GetParams::default()).ok()?;
    let mut found: Value = client.request(request).await.ok()?;
    let awaits = found["metadata"]["annotations"].get(keys::ANNOTATION_AWAITS_SIGNATURE).is_some();
    match found["data"][keys::KEY_SIGNED_CARD].take() {
        Value::String(card) if !awaits => Some(card),
        _ => None,
    }
}

fn client() -> anyhow::Result<Client> {
    let config = Config::incluster().context("the Pod has no token for the API server")?;
    Client::try_from(config).context("no client for the API server")
}

/// The same through that client.
async fn put(client: &Client, at: (&str, &str), text: &str, end: Instant, made: bool) -> anyhow::Result<()> {
    loop {
        let answer = match timeout_at(end, once(client, at, text)).await {
            Ok(answer) => answer,
            Err(_) => bail!("the API server did not answer in time"),
        };
        let error = match answer {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let passes = match &error {
            kube::Error::Api(status) => made && matches!(status.code, 403 | 404 | 429 | 500..),
            _ => made,
        };
        if !passes || timeout_at(end, sleep(PAUSE)).await.is_err() {
            bail!("{}", refusal::of_error(&error));
        }
    }
}

/// Writes the one key: into what is there, by a patch, or by putting it back where the account may do that alone, as may those of manifests for the Go
/// operator's signer; else it makes the ConfigMap.
async fn once(client: &Client, at: (&str, &str), text: &str) -> Result<(), kube::Error> {
    let (namespace, name) = at;
    let request = Request::new(Kind::ConfigMap.path(namespace));
    let manager = Some(keys::MANAGER_SIGNER.to_owned());
    let parameters = PatchParams { field_manager: manager.clone(), ..PatchParams::default() };
    let patch: Value = json!({
        "metadata": {"annotations": {keys::ANNOTATION_AWAITS_SIGNATURE: null}},
        "data": {keys::KEY_SIGNED_CARD: text},
    });
    let built = request.patch(name, &parameters, &Patch::Merge(&patch)).map_err(kube::Error::BuildRequest)?;
    let Err(refused) = client.request::<IgnoredAny>(built).await else { return Ok(()) };
    match code(&refused) {
        404 => return made(client, at, text).await,
        403 => {}
        _ => return Err(refused),
    }
    let built = request.get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    let mut object: Value = match client.request(built).await {
        Ok(object) => object,
        Err(error) if code(&error) == 404 => return made(client, at, text).await,
        // What it may not do with it says more than that it may not read it either.
        Err(_) => return Err(refused),
    };
    json_patch::merge(&mut object, &patch);
    let parameters = PostParams { field_manager: manager, ..PostParams::default() };
    let built = request.replace(name, &parameters, object.to_string().into_bytes());
    client.request::<IgnoredAny>(built.map_err(kube::Error::BuildRequest)?).await.map(|_| ())
}

/// Makes the ConfigMap.
async fn made(client: &Client, (namespace, name): (&str, &str), text: &str) -> Result<(), kube::Error> {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGER_SIGNER}},
        "data": {keys::KEY_SIGNED_CARD: text},
    });
    let manager = Some(keys::MANAGER_SIGNER.to_owned());
    let parameters = PostParams { field_manager: manager, ..PostParams::default() };
    let request = Request::new(Kind::ConfigMap.path(namespace));
    let built = request.create(&parameters, object.to_string().into_bytes()).map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(built).await.map(|_| ())
}

/// The HTTP status of a refusal; 0 where the server did not answer.
fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;

    use super::*;

    const AT: (&str, &str) = ("team1", "weather-card-signed");

    /// An API server that gives these answers, one a connection; and method, path and body of what it was asked.
    async fn server(answers: Vec<(u16, Value)>) -> (Client, JoinHandle<Vec<(String, Value)>>) {
        // The client has TLS, whatever it is asked by.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let mut asked = Vec::new();
            for (code, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut sent = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut sent).await.unwrap();
                let line = head.split('?').next().unwrap_or_default().split(" http").next().unwrap_or_default();
                asked.push((line.to_owned(), serde_json::from_slice(&sent).unwrap_or_default()));
                let body = body.to_string();
                let answer = format!(
                    "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
            asked
        });
        (Client::try_from(Config::new(url.parse().unwrap())).unwrap(), asked)
    }

    fn refusal(code: u16) -> (u16, Value) {
        (
            code,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "X", "code": code}),
        )
    }

    /// Cases 143 and 144, with the rights of the Go operator's manifests, too: get, create and update.
    #[tokio::test]
    async fn case_144_the_key_is_written_by_what_the_account_may() {
        let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"other": "x", "agent-card.json": "old"},
            "metadata": {"name": AT.1, "resourceVersion": "7", "annotations": {keys::ANNOTATION_AWAITS_SIGNATURE: "true", "a": "b"}}});
        let (list, one) =
            ("/api/v1/namespaces/team1/configmaps", format!("/api/v1/namespaces/team1/configmaps/{}", AT.1));
        let (patch, get, put, post) =
            (format!("patch {one}"), format!("get {one}"), format!("put {one}"), format!("post {list}"));
        for (what, answers, wanted, ends) in [
            ("patch", vec![(200, json!({}))], vec![&patch], 0),
            ("none there", vec![refusal(404), (201, json!({}))], vec![&patch, &post], 0),
            ("update", vec![refusal(403), (200, there.clone()), (200, json!({}))], vec![&patch, &get, &put], 0),
            ("create", vec![refusal(403), refusal(404), (201, json!({}))], vec![&patch, &get, &post], 0),
            ("nothing", vec![refusal(403), refusal(403)], vec![&patch, &get], 403),
            (
                "changed meanwhile",
                vec![refusal(403), (200, there.clone()), refusal(409)],
                vec![&patch, &get, &put],
                409,
            ),
            ("invalid", vec![refusal(422)], vec![&patch], 422),
        ] {
            let (client, asked) = server(answers).await;
            let ended = once(&client, AT, "new").await;
            assert_eq!(ended.map_or_else(|error| code(&error), |()| 0), ends, "{what}");
            let asked = asked.await.unwrap();
            assert_eq!(asked.iter().map(|(line, _)| line).collect::<Vec<_>>(), wanted, "{what}");
            let Some((line, body)) = asked.last().filter(|_| ends == 0) else { continue };
            assert_eq!(body["data"]["agent-card.json"], "new", "{what}");
            if *line == put {
                let mut wanted = there.clone();
                wanted["data"]["agent-card.json"] = json!("new");
                wanted["metadata"]["annotations"] = json!({"a": "b"});
                assert_eq!(*body, wanted, "nothing else changes, and only of the version that was read");
            }
        }
    }
}
