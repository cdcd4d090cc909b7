//! The authority's Secret: its keys, read and written.
//!
//! ```text
//! ca.crt   ca.key      signs leaves
//! next.crt next.key    is being introduced                     (absent outside a rotation)
//! previous.crt         no longer sign, trusted until they expire (PEM bundle)
//! ```
//!
//! In: a Secret. Out: [`Content`], slot by slot, or a Secret with new slots in which everything else is as it was.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::api::ObjectMeta;

use super::mint::SigningAuthority;
use super::plan::{Content, Flaw, Generations};
use crate::domain::keys;
use crate::server::certs::trust_bundle::{read_bundle, write_bundle};

const CURRENT: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");
const PREVIOUS: &str = "previous.crt";

/// Reads a Secret.
#[must_use]
pub fn read(secret: &SecretObject) -> Content<SigningAuthority> {
    let labels = secret.metadata.labels.as_ref();
    let ours = labels.and_then(|labels| labels.get(keys::LABEL_APP_MANAGED_BY)).map(String::as_str);
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    let get = |key: &str| data.get(key).map(|value| value.0.as_slice()).filter(|value| !value.is_empty());
    let slot = |(certificate, key): (&str, &str)| match (get(certificate), get(key)) {
        (Some(certificate), Some(key)) => SigningAuthority::read(certificate, key),
        _ => Err(Flaw::Missing),
    };
    let next_exists = get(NEXT.0).is_some() || get(NEXT.1).is_some();
    Content {
        ours: ours == Some(keys::MANAGED_BY_DRAWBRIDGE),
        current: slot(CURRENT),
        next: next_exists.then(|| slot(NEXT)),
        previous: get(PREVIOUS).map(read_bundle).unwrap_or_default().certificates,
    }
}

/// The Secret with these generations; `base` gives everything else, its resourceVersion included, so that replacing
/// it fails when somebody was faster.
#[must_use]
pub fn write(
    base: Option<&SecretObject>,
    namespace: &str,
    generations: &Generations<SigningAuthority>,
) -> SecretObject {
    let mut secret = base.cloned().unwrap_or_else(|| SecretObject {
        metadata: ObjectMeta {
            name: Some(keys::SECRET_AUTHORITY.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        ..SecretObject::default()
    });
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(keys::LABEL_APP_MANAGED_BY.to_owned(), keys::MANAGED_BY_DRAWBRIDGE.to_owned());
    let data = secret.data.get_or_insert_default();
    let mut set = |key: &str, value: Option<String>| match value {
        Some(value) => drop(data.insert(key.to_owned(), ByteString(value.into_bytes()))),
        None => drop(data.remove(key)),
    };
    let certificate = |authority: &SigningAuthority| write_bundle([authority.certificate()]);
    let next = generations.next.as_ref();
    set(CURRENT.0, Some(certificate(&generations.current)));
    set(CURRENT.1, Some(generations.current.key_pem().to_owned()));
    set(NEXT.0, next.map(certificate));
    set(NEXT.1, next.map(|next| next.key_pem().to_owned()));
    set(PREVIOUS, Some(write_bundle(&generations.previous)).filter(|bundle| !bundle.is_empty()));
    secret
}
