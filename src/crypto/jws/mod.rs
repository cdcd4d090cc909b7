//! JSON Web Signatures with a detached payload, as cards carry them. In: an entry of `signatures`. Out: its algorithm, key id, chain and signature,
//! or the reason why it is unusable. Verification is over the text of `protected` as it was received.

mod algorithm;
mod entry;

pub use algorithm::Algorithm;
pub(crate) use algorithm::{KeyKind, PublicKey};
pub(crate) use entry::Entry;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The signing input (RFC 7515, 5.1).
pub(crate) fn signing_input(protected: &str, payload: &[u8]) -> Vec<u8> {
    let mut input = String::with_capacity(protected.len() + 1 + payload.len().div_ceil(3) * 4);
    input.push_str(protected);
    input.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut input);
    input.into_bytes()
}
