//! Certificates of workloads and of their authorities. In: DER. Out: the few facts a chain is judged by, and the judgement.

mod certificate;
mod chain;
mod constraints;

pub(crate) use certificate::Certificate;
pub(crate) use chain::{Times, anchor, leaf_identity};

use aws_lc_rs::digest::{SHA256, digest};

/// SHA-256 of a certificate.
pub(crate) fn fingerprint(der: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, der).as_ref());
    out
}

/// The key id that signers give a leaf: the first 16 hex characters of SHA-256 over its DER.
#[must_use]
pub fn key_id(leaf: &[u8]) -> String {
    hex(&fingerprint(leaf)[..8])
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|half| char::from_digit(half.into(), 16)).collect()
}
