//! Digests of data that travel between rooms.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// SHA-256 of bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256, in hex, of bytes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256, in hex, of a ConfigMap's data; lengths are counted in, so that no two data sets read the same.
#[must_use]
pub fn of_data(data: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for part in data.iter().flat_map(|(key, value)| [key, value]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
