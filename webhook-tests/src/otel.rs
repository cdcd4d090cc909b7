//! The real Python exporters of OpenTelemetry, and a collector that only tells what arrived.
//!
//! In: the environment that a Pod's container has. Out: one span, sent as these variables say ([`send_span`]), and what the
//! [`Collector`] received: OTLP over HTTP (`POST /v1/traces`) and over gRPC (`TraceService/Export`), both without TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use parking_lot::Mutex;

use crate::envoy::serving::Serving;
use crate::patience::patience;

/// What gRPC calls.
pub const GRPC: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// What HTTP posts to.
pub const HTTP: &str = "/v1/traces";

/// Sends one span called `$1`, with exporter, address and sampler as the environment says, and waits until it is sent or given up.
const PROGRAM: &str = "
import sys
from opentelemetry import trace
from opentelemetry.sdk._configuration import _OTelSDKConfigurator

_OTelSDKConfigurator().configure()
with trace.get_tracer('suite').start_as_current_span(sys.argv[1]):
    pass
trace.get_tracer_provider().shutdown()
";

/// The folder that the exporters are in.
///
/// # Errors
/// When they are not installed; the message names the command that installs them.
fn installed() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-otel");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Sends a span of that name from a process whose variables for OpenTelemetry are `environment` and no others. Whether it arrived
/// is for the [`Collector`] to say: an exporter that finds nobody gives up, and the process ends well.
///
/// # Errors
/// When the process does not run, or does not end in time.
pub async fn send_span(name: &str, environment: &[(String, String)]) -> Result<()> {
    let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()));
    for (key, _) in
        std::env::vars_os().filter(|(key, _)| key.to_string_lossy().to_ascii_uppercase().ends_with("_PROXY"))
    {
        command.env_remove(key);
    }
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("OTEL_")) {
        command.env_remove(key);
    }
    command
        .args(["-c", PROGRAM, name])
        .env("PYTHONPATH", installed()?)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // What `opentelemetry-instrument` sets, but for the signals that are not looked at.
        .envs([("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_METRICS_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")])
        // How long an exporter tries before it gives a span up.
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "5")
        .envs(environment.iter().map(|(key, value)| (key, value)));
    let run = tokio::task::spawn_blocking(move || command.output());
    let output = tokio::time::timeout(patience(), run).await.context("the exporter does not end")???;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("the exporter ended with {}: {said}", output.status);
    }
    Ok(())
}

/// One call that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its path.
    pub path: String,
    /// Its body, as sent.
    pub body: Bytes,
}

impl Call {
    /// Whether it carries that text; neither exporter compresses unless it is told to.
    #[must_use]
    pub fn carries(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|part| part == text.as_bytes())
    }
}

/// A running collector.
#[derive(Debug)]
pub struct Collector {
    serving: Serving,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Collector {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> Result<Self> {
        let calls = Arc::<Mutex<Vec<Call>>>::default();
        let shared = Arc::clone(&calls);
        let serving = Serving::start(move |request| answer(request, Arc::clone(&shared)));
        Ok(Self { serving: serving.await?, calls })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.serving.address
    }

    /// What arrived so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }
}

/// Notes the call and says that all of it was taken: an empty message of `ExportTraceServiceResponse`.
async fn answer(
    request: Request<Incoming>,
    calls: Arc<Mutex<Vec<Call>>>,
) -> Response<impl Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    calls.lock().push(Call { path: path.clone(), body });
    let header = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let (status, content, frames) = match path.as_str() {
        GRPC => {
            let trailers = HeaderMap::from_iter([header("grpc-status", "0")]);
            (
                StatusCode::OK,
                "application/grpc",
                vec![Frame::data(Bytes::from_static(&[0; 5])), Frame::trailers(trailers)],
            )
        }
        HTTP => (StatusCode::OK, "application/x-protobuf", Vec::new()),
        _ => (StatusCode::NOT_FOUND, "text/plain", Vec::new()),
    };
    let mut response = Response::new(StreamBody::new(stream::iter(frames.into_iter().map(Ok))));
    *response.status_mut() = status;
    response.headers_mut().extend([header("content-type", content)]);
    response
}
