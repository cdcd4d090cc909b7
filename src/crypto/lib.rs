//! Signed agent cards, judged. In: the bytes of a card, a trust bundle, a policy and the time. Out: a [`Verdict`]: who signed, by which
//! profile, until when it holds; or why not, per signature.
//!
//! Promises:
//! - Pure: no clock, file, environment, network or async. The same input has the same verdict.
//! - Bounded: bytes, depth, members, signatures, chain, key sizes and the number of signature checks ([`limits`]), before the first check.
//! - The trust root never comes from the card: `jku`, `jwk` and `x5u` are not looked at. The algorithm is taken from a closed list and must
//!   fit the key of the leaf.
//! - Nothing that a card's author wrote stands in an error unescaped or at length.

mod binding;
mod bundle;
mod bundles;
mod card;
mod json;
mod jws;
pub mod limits;
pub mod peer;
mod profile;
mod sign;
mod spiffe;
mod verdict;
mod verify;
mod x509;

#[cfg(test)]
mod tests;

pub use binding::{Binding, NotBound, Wanted, bind};
pub use bundle::{BundleFault, BundleFormat, TrustBundle};
pub use bundles::Bundles;
pub use card::{Card, CardFault};
pub use json::{JsonFault, jcs};
pub use jws::Algorithm;
pub use profile::{Profile, ProfileFault};
pub use sign::{SignFault, Signature, Signer, chain_of};
pub use spiffe::{SpiffeFault, SpiffeId, TrustDomain};
pub use verdict::{Class, EntryFault, EntryReason, Freshness, Good, NotVerified, Verdict, Verified};
pub use verify::{Policy, Trust, verify, verify_bytes};
pub use x509::key_id;

/// `text` as it may stand in a sentence: at most 64 characters, and everything that could move a cursor or hide is escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        out.push('…');
    }
    out
}
