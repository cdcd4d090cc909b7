//! The writing client: nothing leaves it while the fence is closed.
//!
//! ```text
//! Api ─► retries ─► fence (closed? deadline) ─► credentials ─► TLS ─► fence (closed?) ─► socket
//! ```
//!
//! The outer check gives each request a deadline that ends before the lease does, and tells the API server the same by
//! `?timeout=`, so that a request which waits there in a queue is dropped too. The inner check stands at the socket: a
//! process that is stopped while it connects, and resumed after its lease ran out, finds it closed. Every retry passes
//! both again.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, Service, ServiceBuilder};

use super::fence::{Fence, Fenced};

/// Longest time for one request, however long the lease still lasts.
const LONGEST: Duration = Duration::from_secs(5);

/// A client whose requests pass `fence`.
///
/// # Errors
/// When certificates, tokens or the address in `config` cannot be used.
pub(super) fn writing(config: &Config, fence: &Fence) -> kube::Result<Client> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    let tls = config.rustls_https_connector_with_connector(FencedConnector { tcp, fence: fence.clone() })?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(tls);
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(crate::cluster::client::retries()))
        .layer(FenceLayer { fence: fence.clone() })
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Puts [`Fencing`] before a service.
#[derive(Debug, Clone)]
pub(super) struct FenceLayer {
    pub(super) fence: Fence,
}

impl<S> Layer<S> for FenceLayer {
    type Service = Fencing<S>;

    fn layer(&self, inner: S) -> Fencing<S> {
        Fencing { inner, fence: self.fence.clone() }
    }
}

/// Refuses requests while the fence is closed, and ends those under way before it closes.
#[derive(Debug, Clone)]
pub(super) struct Fencing<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<Body>> for Fencing<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let left = match self.fence.left() {
            Ok(left) => left.min(LONGEST),
            Err(fenced) => return Box::pin(std::future::ready(Err(fenced.into()))),
        };
        *request.uri_mut() = with_timeout(request.uri(), left);
        let under_way = self.fence.enter();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = tokio::time::timeout(left, answer).await;
            drop(under_way);
            match answer {
                Ok(answer) => answer.map_err(Into::into),
                Err(elapsed) => Err(elapsed.into()),
            }
        })
    }
}

/// `uri` with `timeout=<whole seconds>`, so that the API server gives up no later than we do.
fn with_timeout(uri: &Uri, left: Duration) -> Uri {
    let seconds = left.as_secs().max(1);
    let separator = if uri.query().is_some() { '&' } else { '?' };
    format!("{uri}{separator}timeout={seconds}s").parse().unwrap_or_else(|_| uri.clone())
}

/// Connections whose writes pass the fence.
#[derive(Debug, Clone)]
struct FencedConnector {
    tcp: HttpConnector,
    fence: Fence,
}

type Tcp = <HttpConnector as Service<Uri>>::Response;

impl Service<Uri> for FencedConnector {
    type Response = FencedStream<Tcp>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<FencedStream<Tcp>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.tcp.call(uri);
        let fence = self.fence.clone();
        Box::pin(async move { Ok(FencedStream { io: connecting.await?, fence }) })
    }
}

/// A connection that takes no byte while the fence is closed.
#[derive(Debug)]
struct FencedStream<T> {
    io: T,
    fence: Fence,
}

impl<T> FencedStream<T> {
    fn check(&self) -> io::Result<()> {
        self.fence.left().map(drop).map_err(|fenced: Fenced| io::Error::new(io::ErrorKind::PermissionDenied, fenced))
    }
}

impl<T: Connection> Connection for FencedStream<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

impl<T: Read + Unpin> Read for FencedStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: Write + Unpin> Write for FencedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
