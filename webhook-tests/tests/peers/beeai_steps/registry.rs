//! Debian's docker-registry on loopback, behind TLS that writes down who told it what.
//!
//! In: an authority, and the login that it asks for, if any. Out: a host that images are pushed to, every `Authorization` header that arrived
//! there, and what the registry holds. Promise: both end with their handle.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use webhook_tests::household::{self, Child};
use webhook_tests::patience::patience;
use webhook_tests::pki::Authority;
use webhook_tests::{Port, https};

/// A registry.
pub(crate) struct Registry {
    process: Child,
    plain: Port,
    secure: u16,
    seen: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
    _front: JoinSet<()>,
}

impl Registry {
    /// Starts one. `user` is a line of its password file; with none it takes everybody.
    pub(crate) async fn start(tools: &Path, authority: &Authority, user: Option<&str>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let plain = Port::reserve()?;
        let at = |name: &str| folder.path().join(name);
        let login = match user {
            None => String::new(),
            Some(line) => {
                std::fs::write(at("htpasswd"), format!("{line}\n"))?;
                format!("auth:\n  htpasswd:\n    realm: images\n    path: {}\n", at("htpasswd").display())
            }
        };
        let settings = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{}\", relativeurls: true}}\n{login}",
            at("images").display(),
            plain.address(),
        );
        std::fs::write(at("config.yml"), settings)?;
        let mut command = Command::new(tools.join("usr/bin/docker-registry"));
        command.arg("serve").arg(at("config.yml")).env("LD_LIBRARY_PATH", tools.join("usr/lib/x86_64-linux-gnu"));
        let process = household::spawn("docker-registry", command, &at("log"))?;
        let answers = async {
            while TcpStream::connect(plain.address()).await.is_err() {
                anyhow::ensure!(process.ended().is_none(), "docker-registry ended: {}", process.tail(20));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        tokio::time::timeout(patience(), answers).await.context("docker-registry does not answer")??;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let secure = listener.local_addr()?.port();
        let acceptor = https::acceptor(&authority.server("localhost", &["localhost", "127.0.0.1"])?)?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, upstream) = (Arc::clone(&seen), plain.address());
        let forwards = move |request: Request<Incoming>| {
            let told = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
            log.lock().push(told.to_owned());
            async move { forward(request, upstream).await.unwrap_or_else(|error| broken(&error)) }
        };
        let mut front = JoinSet::new();
        front.spawn(https::serve(listener, acceptor, forwards));
        Ok(Self { process, plain, secure, seen, _folder: folder, _front: front })
    }

    /// Host and port with TLS.
    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.secure)
    }

    /// Host and port without.
    pub(crate) fn plain(&self) -> String {
        format!("localhost:{}", self.plain.number())
    }

    /// The `Authorization` headers that arrived with TLS, empty where there was none.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// The digest of what stands under a tag, as the registry says it to whoever has that header; `None` when nothing does.
    pub(crate) async fn digest(&self, image: &str, tag: &str, authorization: &str) -> Result<Option<String>> {
        let mut request = Request::get(format!("/v2/{image}/manifests/{tag}")).header("host", self.plain());
        for kind in
            ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"]
        {
            request = request.header("accept", kind);
        }
        if !authorization.is_empty() {
            request = request.header("authorization", authorization);
        }
        let answer = ask(request.body(Empty::<Bytes>::new())?, self.plain.address()).await?;
        let digest = answer.headers().get("docker-content-digest").and_then(|value| value.to_str().ok());
        Ok(digest.filter(|_| answer.status() == StatusCode::OK).map(str::to_owned))
    }

    /// What the registry wrote about its requests.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

async fn ask<B>(request: Request<B>, upstream: SocketAddr) -> Result<Response<Incoming>>
where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
{
    let stream = TcpStream::connect(upstream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the answer.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

async fn forward(request: Request<Incoming>, upstream: SocketAddr) -> Result<Response<Full<Bytes>>> {
    let (parts, body) = ask(request, upstream).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(parts, Full::from(body)))
}

fn broken(error: &anyhow::Error) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{error:#}")));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

/// A docker configuration with one login, as the operator makes it and as `kubectl create secret docker-registry` does.
pub(crate) fn config(account: &str, user: &str, token: &str) -> BTreeMap<String, String> {
    let header = webhook_tests::git_server::basic(user, token);
    let pair = header.trim_start_matches("Basic ");
    let text = serde_json::json!({"auths": {account: {"auth": pair}}}).to_string();
    BTreeMap::from([(".dockerconfigjson".to_owned(), text)])
}
