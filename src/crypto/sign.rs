//! Signing a card as its agent would. In: the key and chain of an SVID, a card. Out: one entry of `signatures` per profile that gives other bytes than those before
//! it. Promises: a key that is not the leaf's signs nothing, and neither does a leaf that no verdict would accept; what is signed is what
//! verification reads; the key stands in no error and in no Debug, and its text is overwritten once it is read.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use crate::card::Card;
use crate::jws::{Algorithm, KeyKind, signing_input};
use crate::limits;
use crate::profile::{Profile, ProfileFault};
use crate::spiffe::SpiffeId;
use crate::verdict::EntryReason;
use crate::x509::{Certificate, key_id, leaf_identity};

/// Whoever can sign: a chain, and the key of its leaf.
pub struct Signer {
    algorithm: Algorithm,
    key: Key,
    chain: Vec<Vec<u8>>,
    identity: SpiffeId,
    until: i64,
}

enum Key {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// An entry of `signatures`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// What it covers.
    pub profile: Profile,
    /// `protected`.
    pub protected: String,
    /// `signature`.
    pub signature: String,
}

/// Why nothing is signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignFault {
    /// No certificate.
    #[error("the chain holds no certificate, or one that cannot be read")]
    NoChain,
    /// Too many certificates.
    #[error("the chain has more than {} certificates, and verifiers look at no more", limits::CHAIN)]
    ChainTooLong,
    /// No verdict would accept the leaf.
    #[error("the first certificate of the chain signs no cards: {0}")]
    Leaf(EntryReason),
    /// Not PEM of PKCS#8.
    #[error(
        "the key is not PKCS#8 in PEM (-----BEGIN PRIVATE KEY-----); openssl pkcs8 -topk8 -nocrypt makes it of other forms"
    )]
    NoKey,
    /// Encrypted.
    #[error("the key is encrypted; openssl pkcs8 -topk8 -nocrypt makes one that is not")]
    KeyEncrypted,
    /// The key of somebody else.
    #[error("the key is not that of the first certificate of the chain")]
    OtherKey,
    /// The card has no canonical form under any profile.
    #[error("the card has nothing that a signature would cover: {0}")]
    Card(ProfileFault),
    /// The library refused.
    #[error("the private key could not be used to sign")]
    Refused,
}

impl Signer {
    /// The signer with the key in `key` (PKCS#8 in PEM) and the certificates in `chain` (PEM, the leaf first).
    pub fn read(key: &[u8], chain: &[u8]) -> Result<Self, SignFault> {
        let chain = blocks(chain, "CERTIFICATE");
        let ders: Vec<Vec<u8>> = chain.iter().map(|der| der.to_vec()).collect();
        let key = || {
            if !blocks(key, "ENCRYPTED PRIVATE KEY").is_empty() {
                return Err(SignFault::KeyEncrypted);
            }
            blocks(key, "PRIVATE KEY").into_iter().next().ok_or(SignFault::NoKey)
        };
        Self::of(ders, key)
    }

    /// The signer with the key in `key` (PKCS#8) and the certificates in `chain` (DER, one behind the other, the leaf first): as SPIFFE's Workload API gives them.
    pub fn of_svid(key: &[u8], chain: &[u8]) -> Result<Self, SignFault> {
        Self::of(chain_of(chain)?, || Ok(Zeroizing::new(key.to_vec())))
    }

    fn of(ders: Vec<Vec<u8>>, key: impl FnOnce() -> Result<Zeroizing<Vec<u8>>, SignFault>) -> Result<Self, SignFault> {
        if ders.len() > limits::CHAIN {
            return Err(SignFault::ChainTooLong);
        }
        let certificates: Option<Vec<Certificate>> = ders.iter().map(|der| Certificate::read(der)).collect();
        let certificates = certificates.ok_or(SignFault::NoChain)?;
        let leaf = certificates.first().ok_or(SignFault::NoChain)?;
        let identity = leaf_identity(leaf).map_err(SignFault::Leaf)?;
        let public = leaf.key.as_ref().ok_or(SignFault::Leaf(EntryReason::KeyNotAllowed))?;
        let pkcs8 = key()?;
        let ec = |by: &'static EcdsaSigningAlgorithm| EcdsaKeyPair::from_pkcs8(by, &pkcs8).map(Key::Ec);
        let (algorithm, key) = match public.kind {
            KeyKind::Rsa => (Algorithm::Rs256, RsaKeyPair::from_pkcs8(&pkcs8).map(Key::Rsa)),
            KeyKind::P256 => (Algorithm::Es256, ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)),
            KeyKind::P384 => (Algorithm::Es384, ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING)),
            KeyKind::P521 => (Algorithm::Es512, ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING)),
        };
        // A key of another kind or curve is somebody else's as well.
        let key = key.map_err(|_| SignFault::OtherKey)?;
        let own = match &key {
            Key::Rsa(key) => public.is(key.public_key().as_ref()),
            Key::Ec(key) => public.is(key.public_key().as_ref()),
        };
        if !own {
            return Err(SignFault::OtherKey);
        }
        let until = leaf.not_after;
        Ok(Self { algorithm, key, chain: ders, identity, until })
    }

    /// Who signs.
    #[must_use]
    pub fn identity(&self) -> &SpiffeId {
        &self.identity
    }

    /// The last second of its certificate.
    #[must_use]
    pub fn until(&self) -> i64 {
        self.until
    }

    /// The key id of its entries.
    #[must_use]
    pub fn key_id(&self) -> String {
        self.chain.first().map(|leaf| key_id(leaf)).unwrap_or_default()
    }

    /// Whether an entry of `signatures` with that `protected` is by this certificate, so that a new one takes its place.
    #[must_use]
    pub fn is_own(&self, protected: &str) -> bool {
        let leaf = self.chain.first().map(|leaf| format!("\"{}\"", STANDARD.encode(leaf))).unwrap_or_default();
        let header = URL_SAFE_NO_PAD.decode(protected).unwrap_or_default();
        std::str::from_utf8(&header).is_ok_and(|header| header.contains(&leaf))
    }

    /// Entries over `card`: one per profile of `profiles` that gives other bytes than those before it. A profile under which the card has no canonical
    /// form is left out, as long as there is another.
    pub fn sign(&self, card: &Card, profiles: &[Profile]) -> Result<Vec<Signature>, SignFault> {
        let (mut forms, mut fault): (Vec<(Profile, Vec<u8>)>, _) = (Vec::new(), ProfileFault::Nothing);
        for profile in profiles {
            match card.canonical(*profile) {
                Ok(form) if forms.iter().any(|(_, known)| *known == form) => {}
                Ok(form) => forms.push((*profile, form)),
                Err(why) => fault = why,
            }
        }
        if forms.is_empty() {
            return Err(SignFault::Card(fault));
        }
        let chain: Vec<String> = self.chain.iter().map(|der| format!("\"{}\"", STANDARD.encode(der))).collect();
        let (alg, kid, x5c) = (self.algorithm.as_str(), self.key_id(), chain.join(","));
        let header = format!("{{\"alg\":\"{alg}\",\"typ\":\"JOSE\",\"kid\":\"{kid}\",\"x5c\":[{x5c}]}}");
        let protected = URL_SAFE_NO_PAD.encode(header);
        let entry = |(profile, form): (Profile, Vec<u8>)| {
            let signature = URL_SAFE_NO_PAD.encode(self.over(&signing_input(&protected, &form))?);
            Ok(Signature { profile, protected: protected.clone(), signature })
        };
        forms.into_iter().map(entry).collect()
    }

    fn over(&self, input: &[u8]) -> Result<Vec<u8>, SignFault> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Ec(key) => Ok(key.sign(&random, input).map_err(|_| SignFault::Refused)?.as_ref().to_vec()),
            Key::Rsa(key) => {
                let mut out = vec![0; key.public_modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA256, &random, input, &mut out).map_err(|_| SignFault::Refused)?;
                Ok(out)
            }
        }
    }
}

/// The certificates of a chain in DER that stand one behind the other, as SPIFFE's Workload API gives them; at most one more than a chain has.
pub fn chain_of(ders: &[u8]) -> Result<Vec<Vec<u8>>, SignFault> {
    certificates(ders, limits::CHAIN + 1)
}

/// Certificates in DER that stand one behind the other; the first `most` of them.
pub(crate) fn certificates(mut ders: &[u8], most: usize) -> Result<Vec<Vec<u8>>, SignFault> {
    let mut found = Vec::new();
    while !ders.is_empty() && found.len() < most {
        // A SEQUENCE, and its length in one byte or in up to three behind it.
        let [0x30, length, rest @ ..] = ders else { return Err(SignFault::NoChain) };
        let (head, length) = match *length {
            short @ 0..=0x7f => (2, usize::from(short)),
            long @ 0x81..=0x83 => {
                let bytes = rest.get(..usize::from(long & 0x7f)).ok_or(SignFault::NoChain)?;
                (2 + bytes.len(), bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
            }
            _ => return Err(SignFault::NoChain),
        };
        let (der, behind) = ders.split_at_checked(head + length).ok_or(SignFault::NoChain)?;
        found.push(der.to_vec());
        ders = behind;
    }
    Ok(found)
}

/// The blocks of that kind in a PEM text, decoded; at most one more than a chain has.
fn blocks(text: &[u8], kind: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let Ok(text) = std::str::from_utf8(text) else { return Vec::new() };
    let (begin, end) = (format!("-----BEGIN {kind}-----"), format!("-----END {kind}-----"));
    let bodies = text.split(begin.as_str()).skip(1).filter_map(|block| Some(block.split_once(end.as_str())?.0));
    let decode = |body: &str| {
        let mut compact = Zeroizing::new(String::with_capacity(body.len()));
        compact.extend(body.chars().filter(|char| !char.is_ascii_whitespace()));
        STANDARD.decode(compact.as_bytes()).ok().map(Zeroizing::new)
    };
    bodies.take(limits::CHAIN + 1).map(|body| decode(body).unwrap_or_default()).collect()
}
