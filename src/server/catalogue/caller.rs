//! Who calls the catalogue; pure.
//!
//! In: a bearer token as it came, and what the API server says of it. Out: whether the API server is to be asked at all, and a caller with its namespace.
//! Promises: what a token says of itself lets nobody in, it only saves a question; a token that is not for [`AUDIENCE_CATALOGUE`] lets nobody in, whatever
//! else it is good for; who is no ServiceAccount has no namespace, and sees nothing.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use serde_json::Value;

use crate::domain::keys::AUDIENCE_CATALOGUE;

/// Bytes of the longest token that is looked at.
const LONGEST: usize = 8 * 1024;

/// Somebody whom the API server knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    /// The namespace of the ServiceAccount.
    pub(super) namespace: Arc<str>,
    /// Its name.
    pub(super) name: Arc<str>,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stranger {
    /// No token came.
    #[error(
        "the request has no token; send header Authorization: Bearer TOKEN with a token of your ServiceAccount for audience drawbridge-catalogue"
    )]
    Nobody,
    /// It is none that the API server could know.
    #[error(
        "the token is none of a ServiceAccount for audience drawbridge-catalogue that has not expired; mount one with a projected volume \
         (serviceAccountToken), or ask for one with kubectl create token ACCOUNT --audience drawbridge-catalogue"
    )]
    Implausible,
    /// The API server does not know it.
    #[error("the API server does not take the token for audience drawbridge-catalogue; mount or ask for a new one")]
    Unknown,
    /// It is somebody's who is no ServiceAccount.
    #[error(
        "the token is not that of a ServiceAccount, so there is no namespace whose agents could be shown; people use drawbridge card list"
    )]
    NoAccount,
}

/// What a token says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claims {
    /// It counts until then; seconds since 1970.
    pub(super) expires: i64,
}

/// The token in a header `Authorization`.
pub(super) fn bearer(header: Option<&str>) -> Result<&str, Stranger> {
    let (scheme, token) = header.and_then(|header| header.split_once(' ')).ok_or(Stranger::Nobody)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(Stranger::Nobody) }
}

/// Whether it is worth asking the API server about a token.
pub(super) fn plausible(token: &str, now: i64) -> Result<Claims, Stranger> {
    let read = || {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next().filter(|part| !part.is_empty())?);
        if token.len() > LONGEST || parts.next().is_some() {
            return None;
        }
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
        let audiences = match claims.get("aud")? {
            Value::String(one) => one == AUDIENCE_CATALOGUE,
            Value::Array(all) => all.iter().any(|one| one == AUDIENCE_CATALOGUE),
            _ => false,
        };
        let expires = claims.get("exp")?.as_i64()?;
        let is_account = claims.get("sub")?.as_str()?.starts_with(ACCOUNT);
        (audiences && is_account && expires > now).then_some(Claims { expires })
    };
    read().ok_or(Stranger::Implausible)
}

/// What stands before the namespace and the name of a ServiceAccount.
const ACCOUNT: &str = "system:serviceaccount:";

/// Whom the API server names.
pub(super) fn caller(status: &TokenReviewStatus) -> Result<Caller, Stranger> {
    let is_for_us = status.audiences.iter().flatten().any(|audience| audience == AUDIENCE_CATALOGUE);
    if status.authenticated != Some(true) || !is_for_us {
        return Err(Stranger::Unknown);
    }
    let user = status.user.as_ref().and_then(|user| user.username.as_deref()).unwrap_or_default();
    let account = user.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(Caller { namespace: namespace.into(), name: name.into() })
        }
        _ => Err(Stranger::NoAccount),
    }
}
