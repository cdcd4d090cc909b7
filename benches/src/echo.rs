//! The bare TLS echo: our own server loop and TLS settings with a handler that only reads the body and answers as many
//! bytes as it is told to.

use std::path::Path;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::post;
use drawbridge::server::listener::{self, Limits, Server};
use drawbridge::server::shutdown::Shutdown;
use drawbridge::server::telemetry::metrics::Metrics;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;

use crate::tls;

/// Serves until the process is ended: `POST /` with any body is answered with `answer` bytes of JSON's media type.
///
/// # Errors
/// When the port or the certificate cannot be used.
pub async fn serve(port: u16, certificates: &Path, answer: usize) -> anyhow::Result<()> {
    let content = Bytes::from(vec![b'a'; answer]);
    let router = Router::new().route("/", post(move |request| echo(content.clone(), request)));
    listen(port, certificates, router).await
}

/// Serves `router` as the webhook's port is served.
///
/// # Errors
/// When the port or the certificate cannot be used.
pub async fn listen(port: u16, certificates: &Path, router: Router) -> anyhow::Result<()> {
    let socket = listener::bind(([127, 0, 0, 1], port).into())?;
    let server = Server {
        name: "webhook",
        router,
        tls: Some(listener::tls::server_config(tls::resolver(certificates).context("certificate")?)?),
        limits: Limits::default(),
        shutdown: Shutdown::new(),
        metrics: Metrics::new(),
    };
    server.serve(socket).await;
    Ok(())
}

async fn echo(content: Bytes, request: Request<Body>) -> Response<Body> {
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    let mut response = Response::new(Body::from(content));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
