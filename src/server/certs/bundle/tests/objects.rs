//! What a patch came to, by what the API server answers and by what is there then.

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;

use super::super::objects::{Failure, Kind, send_patch};
use super::*;
use crate::domain::keys;

/// An API server that refuses every patch with this code and holds the configuration in this version, or not at all.
pub(super) fn refusing(code: u16, version: Option<&'static str>) -> Client {
    let status = |code: u16, reason: &str, message: &str| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": reason, "message": message});
        (code, status)
    };
    let service = tower::service_fn(move |request: Request<Body>| async move {
        let (code, answer) = match version {
            _ if *request.method() == Method::PATCH => {
                let says = "mutatingwebhookconfigurations.admissionregistration.k8s.io \"drawbridge\" is forbidden: \
                            ValidatingAdmissionPolicy 'house-rules' with binding 'all' denied request: not a canary";
                status(code, "Invalid", says)
            }
            Some(version) => {
                let metadata = json!({"name": keys::WEBHOOK_CONFIGURATION, "uid": "u", "resourceVersion": version});
                let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "MutatingWebhookConfiguration", "metadata": metadata, "webhooks": []});
                (200, object)
            }
            None => status(404, "NotFound", "there is none"),
        };
        Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()))
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_patch_of_what_has_not_changed_was_refused_and_not_late_whatever_the_code() {
    let seen = configuration(&[("a", &[])]);
    let Step::Send(patch) = decided(&mut Memory::default(), &seen, &[good(1)], NOW) else { unreachable!() };
    for code in [404, 409, 422] {
        for stored in [Some("7"), Some("8"), Some("6"), None] {
            let service = ("drawbridge-webhook".to_owned(), "kagenti-system".to_owned());
            let client = refusing(code, stored);
            let (kind, answer) = send_patch(client, Kind::Mutating, patch.clone(), service).await;
            assert_eq!(kind, Kind::Mutating);
            match answer {
                Err(Failure::Failed(why)) => {
                    assert_eq!(stored, Some("7"), "{code}: {why}");
                    assert_eq!(why, format!("{code} Invalid, refused by ValidatingAdmissionPolicy house-rules"));
                }
                Err(Failure::Changed(now)) => {
                    assert_ne!(stored, Some("7"), "{code}");
                    assert_eq!(now.map(|now| now.resource_version), stored.map(str::to_owned), "{code}");
                }
                Ok(written) => unreachable!("{written:?}"),
            }
        }
    }
}
