//! A write that was refused is no lost race, whatever the code of the answer.

use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;

use crate::domain::keys;
use crate::server::certs::authority::store::{Written, write};

/// An API server that answers every write with 409 and holds the Secret in this version, or not at all.
fn refusing(version: Option<&'static str>) -> Api<SecretObject> {
    let status = |code: u16, reason: &str| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": reason, "message": reason});
        (code, status)
    };
    let service = tower::service_fn(move |request: Request<Body>| async move {
        let (code, answer) = match version {
            _ if *request.method() != Method::GET => status(409, "Conflict"),
            Some(version) => {
                let metadata = json!({"name": keys::SECRET_AUTHORITY, "resourceVersion": version});
                (200, json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
            }
            None => status(404, "NotFound"),
        };
        Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()))
    });
    Api::namespaced(Client::new(service, "default"), "kagenti-system")
}

#[tokio::test]
async fn a_write_of_what_nobody_has_changed_was_refused_and_waits_before_it_is_tried_again() {
    for sent in [None, Some("7")] {
        for stored in [None, Some("7"), Some("8")] {
            let mut secret = SecretObject::default();
            secret.metadata.name = Some(keys::SECRET_AUTHORITY.to_owned());
            secret.metadata.resource_version = sent.map(str::to_owned);
            match write(refusing(stored), secret).await {
                Ok(Written::Theirs(now)) => {
                    assert_ne!(sent, stored);
                    assert_eq!(now.and_then(|now| now.metadata.resource_version).as_deref(), stored);
                }
                Err(error) => {
                    assert_eq!(sent, stored, "{error}");
                    assert!(error.to_string().contains("409 Conflict"), "{error}");
                }
                Ok(written) => unreachable!("{written:?}"),
            }
        }
    }
}
