//! What comes out. Closed enums; each reason has a name for metrics and a sentence for people.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::card::CardFault;
use crate::jws::Algorithm;
use crate::limits;
use crate::profile::{Profile, ProfileFault};
use crate::spiffe::{SpiffeFault, SpiffeId};
use crate::x509::fingerprint;

/// The verdict on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// At least one signature is good.
    Verified(Verified),
    /// None is.
    NotVerified(NotVerified),
    /// It cannot be said: no trust bundle was ever loaded. Neither trust nor distrust follows from it.
    Unknown,
}

/// A card with at least one good signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The good signatures, in the order of their entries; at least one.
    pub(crate) good: Vec<Good>,
    /// Why the others are not.
    pub(crate) refused: Vec<EntryFault>,
    /// The profiles that were tried, in the order of the policy.
    pub(crate) profiles: Vec<Profile>,
}

/// A good signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Good {
    /// Which entry of `signatures`.
    pub entry: usize,
    /// Who signed.
    pub identity: SpiffeId,
    /// What the card is covered by.
    pub profile: Profile,
    /// What it is signed with.
    pub algorithm: Algorithm,
    /// The `kid` of the header; nobody vouches for it.
    pub key_id: Option<String>,
    /// The `kid` looks like a certificate's and is not the leaf's.
    pub key_id_differs: bool,
    /// SHA-256 of the leaf, in hex.
    pub leaf: String,
    /// The leaf's first second.
    pub leaf_from: i64,
    /// The leaf's last second.
    pub leaf_until: i64,
    /// SHA-256 of the authority, in hex.
    pub authority: String,
    /// The authority's last second.
    pub authority_until: i64,
    /// Whether the leaf is current.
    pub freshness: Freshness,
    /// The last second at which the same bytes have this verdict under the same bundle and policy.
    pub until: i64,
    /// What is covered: canonical JSON of the card, or its SHA-256 in a verdict that was [`Verdict::digested`]. Members that do not stand in it are unsigned and
    /// must not be published.
    pub covered: Arc<[u8]>,
}

/// Whether the certificate that signed is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is.
    Current,
    /// It ended, within the tolerance.
    Expired {
        /// Its last second.
        since: i64,
    },
}

/// Why a card is not verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotVerified {
    /// It is no card.
    #[error(transparent)]
    Card(#[from] CardFault),
    /// It is not signed.
    #[error("the card has no signatures")]
    NoSignatures,
    /// The trust bundle was last readable too long ago.
    #[error("the trust bundle was last readable {age} s ago, more than the {most} s for which it counts")]
    TrustBundleStale {
        /// How long ago.
        age: i64,
        /// How long it counts.
        most: i64,
    },
    /// No entry is good.
    #[error("{}", sentence(entries))]
    Entries {
        /// Why, per entry, in their order.
        entries: Vec<EntryFault>,
        /// The profiles under which the card has no canonical form.
        profiles: Vec<(Profile, ProfileFault)>,
    },
}

/// Why one entry of `signatures` is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("signature {entry}: {reason}")]
pub struct EntryFault {
    /// Which entry.
    pub entry: usize,
    /// Why.
    pub reason: EntryReason,
}

/// Why a signature is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryReason {
    /// No object with `protected` and `signature`.
    #[error("it is not an object with protected and signature")]
    EntryMalformed,
    /// A long header.
    #[error("its header is longer than {} bytes", limits::HEADER_BYTES)]
    HeaderTooLarge,
    /// The header is not base64url, not JSON, or has a member twice or of another type.
    #[error("its protected header is not base64url of a JSON object without duplicate members")]
    HeaderMalformed,
    /// A member stands in both headers, or in the one that is not signed although it must be.
    #[error("a member of its header stands outside of what is signed")]
    HeaderOverlap,
    /// No `alg`.
    #[error("its header names no algorithm")]
    AlgorithmMissing,
    /// Another algorithm.
    #[error("its algorithm is none of RS, PS and ES with 256, 384 or 512")]
    AlgorithmNotAllowed,
    /// `crit`.
    #[error("its header has crit, and no extension is understood")]
    CriticalHeader,
    /// `b64` is not true.
    #[error("its header asks for an unencoded payload")]
    UnencodedPayload,
    /// No `x5c`.
    #[error("its header has no x5c, and no other source of keys is asked")]
    NoTrustAnchor,
    /// An element of `x5c` is no certificate.
    #[error("its x5c is not a list of certificates in standard base64")]
    ChainMalformed,
    /// Too many certificates.
    #[error("its x5c has more than {} certificates", limits::CHAIN)]
    ChainTooLong,
    /// The leaf is an authority.
    #[error("its certificate may sign certificates, so it is not a workload's")]
    LeafIsAuthority,
    /// The leaf may not sign data.
    #[error("its certificate's key usage is without digitalSignature")]
    LeafKeyUsage,
    /// No URI in the leaf.
    #[error("its certificate has no SPIFFE ID")]
    SpiffeIdMissing,
    /// Several URIs in the leaf.
    #[error("its certificate has more than one URI")]
    SpiffeIdAmbiguous,
    /// The URI is no SPIFFE ID of a workload.
    #[error("its certificate's URI is not the SPIFFE ID of a workload: {0}")]
    SpiffeIdInvalid(SpiffeFault),
    /// The key's kind, size or exponent.
    #[error("its certificate's key is neither RSA of {}-{} bits nor P-256, P-384 or P-521", limits::RSA_BITS.0, limits::RSA_BITS.1)]
    KeyNotAllowed,
    /// The algorithm is for other keys.
    #[error("its algorithm does not fit its certificate's key")]
    KeyMismatch,
    /// Not base64url, or not of the algorithm's length.
    #[error("its signature is not base64url of the length that the algorithm has")]
    SignatureMalformed,
    /// The card has no canonical form.
    #[error("the card has no canonical form under the profiles that are tried")]
    NoCanonicalForm,
    /// The signature is not over this card.
    #[error("it is not a signature by its certificate's key over this card")]
    SignatureWrong,
    /// The leaf is not valid yet.
    #[error("its certificate is not valid yet")]
    NotYetValid,
    /// The leaf ended, beyond the tolerance.
    #[error("its certificate has expired")]
    Expired,
    /// An intermediate is not valid.
    #[error("an intermediate certificate of its chain has expired or is not valid yet")]
    IntermediateExpired,
    /// An issuer is no authority.
    #[error("a certificate that issued another one is not an authority")]
    IntermediateNotAuthority,
    /// A path length is exceeded.
    #[error("its chain has more intermediate certificates than an authority allows")]
    PathTooLong,
    /// Name constraints exclude a name.
    #[error("an authority's name constraints exclude it, or cannot be applied")]
    NameConstraint,
    /// A critical extension is not understood.
    #[error("a certificate has a critical extension that is not understood")]
    CriticalExtension,
    /// The authority ended.
    #[error("the authority that issued its certificate has expired")]
    AuthorityExpired,
    /// The authority begins later.
    #[error("the authority that issued its certificate is not valid yet")]
    AuthorityNotYetValid,
    /// Everything else is good: the signature, the leaf; but nobody in the bundle vouches for it.
    #[error("the signature is good, and no authority of the trust bundle vouches for its certificate")]
    AuthorityUnknown,
    /// Too many authorities of one name.
    #[error(
        "more than {} authorities have the issuer's name, and the certificate does not say which key it was",
        limits::CANDIDATES
    )]
    AuthorityAmbiguous,
    /// The authority is another trust domain's.
    #[error("the authority that issued its certificate is another trust domain's")]
    AuthorityOfOtherDomain,
}

/// Kinds of reasons, as the metric for chains counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Good.
    Ok,
    /// Not readable.
    ParseError,
    /// The chain.
    ChainInvalid,
    /// The identity in the leaf.
    SanInvalid,
    /// The signature.
    JwsInvalid,
}

impl Class {
    /// Its metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ParseError => "parse_error",
            Self::ChainInvalid => "chain_invalid",
            Self::SanInvalid => "san_invalid",
            Self::JwsInvalid => "jws_invalid",
        }
    }
}

impl EntryReason {
    /// Its kind.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::EntryMalformed
            | Self::HeaderTooLarge
            | Self::HeaderMalformed
            | Self::NoTrustAnchor
            | Self::ChainMalformed => Class::ParseError,
            Self::SpiffeIdMissing | Self::SpiffeIdAmbiguous | Self::SpiffeIdInvalid(_) => Class::SanInvalid,
            Self::HeaderOverlap
            | Self::AlgorithmMissing
            | Self::AlgorithmNotAllowed
            | Self::CriticalHeader
            | Self::UnencodedPayload
            | Self::KeyNotAllowed
            | Self::KeyMismatch
            | Self::SignatureMalformed
            | Self::NoCanonicalForm
            | Self::SignatureWrong => Class::JwsInvalid,
            Self::ChainTooLong
            | Self::LeafIsAuthority
            | Self::LeafKeyUsage
            | Self::NotYetValid
            | Self::Expired
            | Self::IntermediateExpired
            | Self::IntermediateNotAuthority
            | Self::PathTooLong
            | Self::NameConstraint
            | Self::CriticalExtension
            | Self::AuthorityExpired
            | Self::AuthorityNotYetValid
            | Self::AuthorityUnknown
            | Self::AuthorityAmbiguous
            | Self::AuthorityOfOtherDomain => Class::ChainInvalid,
        }
    }
}

impl Verdict {
    /// The reason of the condition: `SignatureValid`, `SignatureInvalid`, or `TrustBundleUnavailable` while nothing can be said.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Verified(_) => "SignatureValid",
            Self::NotVerified(_) => "SignatureInvalid",
            Self::Unknown => "TrustBundleUnavailable",
        }
    }

    /// What each entry of `signatures` came to, as the metric for chains counts it.
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        match self {
            Self::Verified(verified) => {
                let good = verified.good.iter().map(|_| Class::Ok);
                good.chain(verified.refused.iter().map(|fault| fault.reason.class())).collect()
            }
            Self::NotVerified(NotVerified::Entries { entries, .. }) => {
                entries.iter().map(|fault| fault.reason.class()).collect()
            }
            Self::NotVerified(_) | Self::Unknown => Vec::new(),
        }
    }

    /// The same verdict with the SHA-256 of what each good signature covers in place of that ([`Good::covered`]): whoever keeps verdicts keeps little of
    /// them then, while what is covered may be several times as large as the card.
    #[must_use]
    pub fn digested(mut self) -> Self {
        if let Self::Verified(verified) = &mut self {
            for good in &mut verified.good {
                good.covered = fingerprint(&good.covered).as_slice().into();
            }
        }
        self
    }

    /// The verified card, if it is.
    #[must_use]
    pub fn verified(&self) -> Option<&Verified> {
        if let Self::Verified(verified) = self { Some(verified) } else { None }
    }
}

impl Verified {
    /// The good signatures, in the order of their entries.
    #[must_use]
    pub fn good(&self) -> &[Good] {
        &self.good
    }

    /// Why the other entries are not good.
    #[must_use]
    pub fn refused(&self) -> &[EntryFault] {
        &self.refused
    }

    /// The signature to go by among those of `wanted`, or all when none is its, as [`Verified::chosen`] has it.
    #[must_use]
    pub fn best(&self, wanted: Option<&SpiffeId>) -> Option<&Good> {
        self.chosen(|good| Some(&good.identity) == wanted)
    }

    /// The signature to go by: among those that are wanted, or all when none is, the one that holds longest; of several that hold as long the one
    /// whose profile the policy tries first. The order of entries decides nothing.
    #[must_use]
    pub fn chosen(&self, is_wanted: impl Fn(&Good) -> bool) -> Option<&Good> {
        let place =
            |good: &Good| self.profiles.iter().position(|profile| *profile == good.profile).unwrap_or(usize::MAX);
        // Behind the profile stands all else that is read of a signature: two that tie in all of it say the same, and either may be taken.
        self.good.iter().max_by_key(|good| {
            let tried = Reverse(place(good));
            (is_wanted(good), good.until, tried, &good.leaf, &good.authority, good.algorithm, &good.key_id)
        })
    }
}

impl NotVerified {
    /// Whether only an authority is missing, which a later bundle may bring: a signature is good, and nobody vouches for its certificate yet.
    #[must_use]
    pub fn awaits_authority(&self) -> bool {
        let Self::Entries { entries, .. } = self else { return false };
        entries.iter().any(|fault| fault.reason == EntryReason::AuthorityUnknown)
    }

    /// Whether a signature is good but for its authority, which is not in the bundle, or has expired: signed anew, it may count again.
    #[must_use]
    pub fn lacks_authority(&self) -> bool {
        let Self::Entries { entries, .. } = self else { return false };
        let lacks =
            |fault: &EntryFault| matches!(fault.reason, EntryReason::AuthorityUnknown | EntryReason::AuthorityExpired);
        entries.iter().any(lacks)
    }
}

/// The entries' sentences, the first three in full.
fn sentence(entries: &[EntryFault]) -> String {
    let mut parts: Vec<_> = entries.iter().take(3).map(ToString::to_string).collect();
    if entries.len() > 3 {
        parts.push(format!("and {} more", entries.len() - 3));
    }
    parts.join("; ")
}
