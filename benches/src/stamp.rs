//! A webhook that does nothing but answer: what the API server itself needs to have a Pod changed.
//!
//! In: reviews of Pods. Out: to the first review of a Pod the patch that Drawbridge answered to a Pod that differs in labels only,
//! with this Pod's token volume in it, and to a second, if there is one, none. It reads of a review no more than its uid, that
//! volume's name, and whether the Pod has been changed. What is stored is the same, so what a creation takes longer than without
//! any webhook is the API server's own part, and that of a process that is called.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use drawbridge::domain::keys;
use serde_json::{Value, json};

use crate::echo;
use crate::load::{Connection, Target};
use crate::tls::Trust;

const UID: &str = "\"uid\":\"";
/// How the name of the volume begins that the API server made for the Pod's token: another one for every Pod.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// What the handler knows.
struct Stamp {
    /// The product, which is asked once.
    ours: Target,
    patch: tokio::sync::OnceCell<Recorded>,
}

/// The answer that is repeated.
struct Recorded {
    /// The patch, as text.
    patch: String,
    /// The token volume of the Pod that it was made for.
    volume: String,
}

/// Where the product is asked for the patch.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// Address of the product's webhook.
    #[arg(long)]
    pub source: SocketAddr,
    /// Host name in its certificate.
    #[arg(long)]
    pub name: String,
    /// File with the certificates that it is trusted by.
    #[arg(long)]
    pub bundle: std::path::PathBuf,
}

/// Serves until the process is ended.
///
/// # Errors
/// When the port, the certificate or the bundle cannot be used.
pub async fn serve(port: u16, certificates: &Path, from: &Source) -> Result<()> {
    let bundle = std::fs::read(&from.bundle).with_context(|| from.bundle.display().to_string())?;
    let trust = Trust::new(&from.name, &bundle)?;
    let ours = Target { address: from.source, path: format!("{}?timeout=10s", keys::PATH_INJECT), trust };
    let stamp = Arc::new(Stamp { ours, patch: tokio::sync::OnceCell::new() });
    echo::listen(port, certificates, Router::new().route("/", post(answer)).with_state(stamp)).await
}

async fn answer(State(stamp): State<Arc<Stamp>>, review: Bytes) -> Result<String, String> {
    let text = std::str::from_utf8(&review).map_err(|error| error.to_string())?;
    let uid = text.split_once(UID).and_then(|(_, rest)| rest.split_once('"')).ok_or("no uid")?.0;
    let patch = if text.contains(keys::ANNOTATION_STATUS) {
        String::new()
    } else {
        let asked = stamp.patch.get_or_try_init(|| async { record(&stamp.ours, text) }).await;
        let recorded = asked.map_err(|error| format!("{error:#}"))?;
        let patch = recorded.patch.replace(&recorded.volume, token_volume(text).ok_or("no token volume")?);
        let patch = json!(k8s_openapi::ByteString(patch.into_bytes()));
        format!(r#","patchType":"JSONPatch","patch":{patch}"#)
    };
    let kind = r#""kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1""#;
    Ok(format!(r#"{{{kind},"response":{{"uid":"{uid}","allowed":true{patch}}}}}"#))
}

/// The name of the Pod's token volume.
fn token_volume(review: &str) -> Option<&str> {
    let from = review.find(TOKEN_VOLUME)?;
    review[from..].split('"').next()
}

/// What Drawbridge answers to this Pod.
fn record(ours: &Target, text: &str) -> Result<Recorded> {
    let mut review: Value = serde_json::from_str(text)?;
    let labels = review.pointer_mut("/request/object/metadata/labels").context("a Pod without labels")?;
    labels["kagenti.io/type"] = json!("agent");
    let mut connection = Connection::open(ours)?;
    let answer: Value = serde_json::from_slice(connection.ask(review.to_string().as_bytes())?)?;
    let patch = answer.pointer("/response/patch").with_context(|| format!("no patch: {answer}"))?;
    let patch: k8s_openapi::ByteString = serde_json::from_value(patch.clone())?;
    let volume = token_volume(text).context("a Pod without a token volume")?.to_owned();
    Ok(Recorded { patch: String::from_utf8(patch.0)?, volume })
}
