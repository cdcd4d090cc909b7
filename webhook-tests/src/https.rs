//! HTTPS servers that a control plane calls: the connections of one listener, with a certificate of its own authority.
//!
//! In: a listener, a certificate with its key, and what answers a request. Promise: connections end with the server, which is
//! a future to be dropped; a broken one ends by itself.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::pki::Pair;

/// TLS with that certificate.
///
/// # Errors
/// When certificate or key cannot be read.
pub fn acceptor(pair: &Pair) -> Result<TlsAcceptor> {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes());
    let (certificate, key) = (certificate.ok().context("a certificate")?, key.ok().context("a key")?);
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Answers whoever connects, for as long as it is polled.
pub async fn serve<B, F, A>(listener: TcpListener, acceptor: TlsAcceptor, answer: F)
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
{
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (acceptor, answer) = (acceptor.clone(), answer.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // A broken connection is the API server's to report.
            let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
