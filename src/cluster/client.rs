//! Clients of the API server: one for reading, and (in [`super::lease`]) one for writing behind the fence.
//!
//! In: a kubeconfig (and context) or the in-cluster ServiceAccount. Out: a client configuration and a reading client.
//! Promises: no client-side throttling (kube has none); every wait has an end (connect 5 s, write 10 s, no byte for
//! 35 s); 429, 503 and 504 are tried again at most three times, after the server's `Retry-After` when it names one, and
//! never later than after 8 s. The library's own default would wait up to 1,000 s within one call, and its policy for as
//! long as whoever answers names, which would outlive every deadline here.

use std::time::Duration;

use http::{Request, Response};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;
use tower::buffer::BufferLayer;
use tower::retry::{Policy, RetryLayer};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for the kernel to take bytes.
const WRITE: Duration = Duration::from_secs(10);
/// Longest silence on a connection that owes us bytes. Watches are renewed more often than that.
const SILENCE: Duration = Duration::from_secs(35);
/// Longest pause before a request is sent again. A load balancer in maintenance asks for an hour, and the call that waits for it holds a worker
/// of the controllers, or the version that readiness waits for. Three of them are shorter than a watch waits for a page, so that what is told is
/// the server's refusal and not silence.
const PAUSE: Duration = Duration::from_secs(8);
/// Requests that may be on their way to the connection pool at once; more wait.
const BUFFER: usize = 1024;

/// No client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A context was asked for and the kubeconfig cannot give it.
    #[error("kubeconfig, context {context}: cannot be used")]
    Context {
        /// As asked for.
        context: String,
        /// Why.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// Neither a kubeconfig nor the in-cluster environment.
    #[error("no cluster: neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a ServiceAccount mounted in this Pod")]
    Nowhere(#[source] Box<kube::config::InferConfigError>),
    /// The configuration cannot be turned into a client (certificate, token file, proxy).
    #[error("the client configuration of {server} cannot be used")]
    Unusable {
        /// Address of the API server.
        server: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Reads the client configuration: `context` of the kubeconfig when given, else the kubeconfig's current context, else
/// the ServiceAccount of the Pod.
///
/// # Errors
/// When the context does not exist, or nothing at all is configured.
pub async fn configuration(context: Option<&str>) -> Result<Config, ClientError> {
    let mut config = match context {
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
            let fail = |source| ClientError::Context { context: context.to_owned(), source };
            let file = Kubeconfig::read().map_err(fail)?;
            Config::from_custom_kubeconfig(file, &options).await.map_err(fail)?
        }
        None => Config::infer().await.map_err(|source| ClientError::Nowhere(Box::new(source)))?,
    };
    harden(&mut config);
    Ok(config)
}

/// Gives `config` our deadlines and takes the library's own retries away; ours are in [`client`].
pub fn harden(config: &mut Config) {
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(WRITE);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config.default_retry = false;
}

/// A client for reading.
///
/// # Errors
/// When certificates, tokens or the address in `config` cannot be used.
pub fn client(config: &Config) -> Result<Client, ClientError> {
    let fail = |source| ClientError::Unusable { server: config.cluster_url.to_string(), source: Box::new(source) };
    let builder = ClientBuilder::try_from(config.clone()).map_err(fail)?;
    Ok(builder.with_layer(&BufferLayer::new(BUFFER)).with_layer(&RetryLayer::new(retries())).build())
}

/// Three more tries, 0.1 s to 2 s apart, or as far apart as the server asks for, up to [`PAUSE`].
pub(super) fn retries() -> Retries {
    let policy = RetryPolicy::new(Duration::from_millis(100), Duration::from_secs(2), 3, true);
    Retries(policy.expect("the shortest delay is below the longest"))
}

/// The library's policy, which waits for no longer than [`PAUSE`].
#[derive(Clone)]
pub(super) struct Retries(RetryPolicy);

impl<R> Policy<Request<Body>, Response<R>, BoxError> for Retries {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        answer: &mut Result<Response<R>, BoxError>,
    ) -> Option<Self::Future> {
        let pause = self.0.retry(request, answer)?;
        let latest = Instant::now() + PAUSE;
        Some(if pause.deadline() > latest { sleep_until(latest) } else { pause })
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<Request<Body>, Response<R>, BoxError>::clone_request(&mut self.0, request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tower::Layer as _;

    use super::*;

    /// How often one call asks a server that is in maintenance and names that time, and how long it takes.
    async fn asked(named: Option<&'static str>) -> (usize, Duration) {
        let count = Arc::<AtomicUsize>::default();
        let counted = count.clone();
        let server = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = Response::builder().status(503);
            let answer = named.into_iter().fold(answer, |answer, named| answer.header("Retry-After", named));
            std::future::ready(Ok::<_, BoxError>(answer.body(Body::empty()).unwrap()))
        });
        let client = Client::new(RetryLayer::new(retries()).layer(server), "default");
        let begun = Instant::now();
        client.apiserver_version().await.unwrap_err();
        (count.load(Ordering::Relaxed), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn d7_whoever_asks_for_time_gets_it_within_bounds() {
        let s = Duration::from_secs;
        for (named, least, most) in [
            (None, s(0), s(6)),
            (Some("0"), s(0), s(6)),
            (Some("Fri, 31 Dec 2027 23:59:59 GMT"), s(0), s(6)),
            (Some("3"), s(9), s(10)),
            (Some("32"), s(24), s(25)),
            (Some("3600"), s(24), s(25)),
            (Some("31536000"), s(24), s(25)),
        ] {
            let (count, took) = asked(named).await;
            assert_eq!(count, 4, "{named:?}");
            assert!(took >= least && took <= most, "{named:?}: {took:?}");
        }
    }

    #[tokio::test]
    async fn a_context_that_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, "apiVersion: v1\nkind: Config\ncontexts: []\nclusters: []\nusers: []\n").unwrap();
        let file = Kubeconfig::read_from(&path).unwrap();
        let options = KubeConfigOptions { context: Some("nowhere".to_owned()), ..KubeConfigOptions::default() };
        let source = Config::from_custom_kubeconfig(file, &options).await.unwrap_err();
        let error = ClientError::Context { context: "nowhere".to_owned(), source };
        assert!(error.to_string().contains("nowhere"), "{error}");
    }

    #[tokio::test]
    async fn d7_every_wait_has_an_end() {
        let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
        harden(&mut config);
        assert!(config.connect_timeout.is_some() && config.read_timeout.is_some() && config.write_timeout.is_some());
        assert!(!config.default_retry, "the library would wait up to 1,000 s between two tries");
        client(&config).unwrap();
    }
}
