//! Foreign admission webhooks: the neighbours that other people install, with behaviour given by a closure.
//!
//! In: a function from the `request` of a review to its `response`. Out: an HTTPS server on 127.0.0.1, published as a
//! Service, registered for the Pods of one namespace, and called by the API server by the time
//! [`Hook::register_for_pods`] returns.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::objects::Objects;
use crate::patience::patience;
use crate::{ControlPlane, background, https};

/// What a webhook does: the `request` of the review in, its `response` (without uid) out.
pub type Behaviour = dyn Fn(&Value) -> Value + Send + Sync;

/// A foreign webhook; stops serving when dropped (its registration stays).
pub struct Hook {
    namespace: String,
    name: String,
    address: SocketAddr,
    authority: String,
    calls: Arc<AtomicU64>,
    serving: JoinHandle<()>,
}

/// How a webhook is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Mutating, called once.
    Mutating,
    /// Mutating, called again when a later one changed the object (`reinvocationPolicy: IfNeeded`).
    MutatingAgain,
    /// Validating.
    Validating,
}

/// The response that lets the object pass.
#[must_use]
pub fn allow() -> Value {
    json!({ "allowed": true })
}

/// The response that refuses the object.
#[must_use]
pub fn deny(message: &str) -> Value {
    json!({ "allowed": false, "status": { "code": 403, "message": message } })
}

/// The response that changes the object by a JSON patch.
#[must_use]
pub fn patch(operations: &Value) -> Value {
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string()) })
}

impl Hook {
    /// Serves `behaviour` as Service `name` in `namespace`.
    ///
    /// # Errors
    /// When there is no port or the Service cannot be applied.
    pub async fn start(
        cp: &ControlPlane,
        namespace: &str,
        name: &str,
        behaviour: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Result<Self> {
        let tls = cp.serving_certificate(&format!("{name}.{namespace}.svc"))?;
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        let behaviour: Arc<Behaviour> = Arc::new(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            behaviour(request)
        });
        let starting = async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let acceptor = https::acceptor(&tls)?;
            let answering = move |request| answer(request, Arc::clone(&behaviour));
            Ok((address, tokio::spawn(https::serve(listener, acceptor, answering))))
        };
        let (address, serving) = background::run(starting).await?;
        cp.publish_service(namespace, name, address.port()).await?;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Self { namespace, name, address, authority: cp.authority(), calls, serving })
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls answered so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The `clientConfig` of a registration.
    #[must_use]
    pub fn client_config(&self) -> Value {
        json!({
            "service": { "namespace": self.namespace, "name": self.name, "port": self.address.port(), "path": "/" },
            "caBundle": STANDARD.encode(&self.authority),
        })
    }

    /// Registers it as configuration `configuration` (the API server calls in the order of these names) for the creation
    /// of Pods in namespace `objects` writes to, and waits until the API server calls it.
    ///
    /// # Errors
    /// When it is refused, or not called after a while.
    pub async fn register_for_pods(&self, objects: &Objects, configuration: &str, kind: Kind) -> Result<()> {
        let mut webhook = json!({
            "name": format!("{}.example.com", self.name),
            "clientConfig": self.client_config(),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 30,
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": objects.namespace() } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"] }],
        });
        let kind_name = match kind {
            Kind::Validating => "ValidatingWebhookConfiguration",
            Kind::Mutating => "MutatingWebhookConfiguration",
            Kind::MutatingAgain => {
                webhook["reinvocationPolicy"] = json!("IfNeeded");
                "MutatingWebhookConfiguration"
            }
        };
        let document = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind_name,
            "metadata": { "name": configuration },
            "webhooks": [webhook],
        });
        objects.apply(&document.to_string()).await?;
        self.called(objects).await
    }

    /// The API server learns of a registration by a watch of its own: only a call tells that it has.
    async fn called(&self, objects: &Objects) -> Result<()> {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "is-the-webhook-called" },
            "spec": { "containers": [{ "name": "app", "image": "example.com/app:1" }] } });
        let before = self.calls();
        let deadline = Instant::now() + patience();
        while self.calls() == before {
            if Instant::now() > deadline {
                bail!("the API server does not call webhook {} after {:?}", self.name, patience());
            }
            objects.create(&pod, true).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(request: Request<Incoming>, behaviour: Arc<Behaviour>) -> Response<Full<Bytes>> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut response = Response::new(Full::default());
    let Some(asked) = review.get("request") else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let mut said = behaviour(asked);
    said["uid"] = asked["uid"].clone();
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said });
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    *response.body_mut() = Full::from(review.to_string());
    response
}
