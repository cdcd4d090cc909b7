//! A loopback HTTP server whose connections end with it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// Serves until dropped; then the port and every connection are closed.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Serving {
    /// Answers each request, over HTTP/1.1 or HTTP/2 without TLS, with what `answer` returns.
    pub(crate) async fn start<B, F>(answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static) -> Result<Self>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for a stub")?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Connections end with the server: the set is dropped with this task.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let answer = answer.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let answering = answer(request);
                        async move { Ok::<_, Infallible>(answering.await) }
                    });
                    // A broken connection is the caller's to report.
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { address, task })
    }

    /// Closes the port, then returns; connections end at once.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        // Cancelled is what was asked for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}
