//! The closed list of algorithms, and the keys that fit them. In: a SubjectPublicKeyInfo, a name. Out: a key whose kind and size are allowed.

use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_parser::asn1_rs::{FromDer, Oid};
use x509_parser::oid_registry as oid;
use x509_parser::public_key::RSAPublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::limits;

/// What a card may be signed with (RFC 7518, 3.1; the asymmetric ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// RSA PKCS#1 v1.5, SHA-256.
    Rs256,
    /// RSA PKCS#1 v1.5, SHA-384.
    Rs384,
    /// RSA PKCS#1 v1.5, SHA-512.
    Rs512,
    /// RSA PSS, SHA-256, salt of 32 bytes.
    Ps256,
    /// RSA PSS, SHA-384, salt of 48 bytes.
    Ps384,
    /// RSA PSS, SHA-512, salt of 64 bytes.
    Ps512,
    /// ECDSA on P-256, SHA-256.
    Es256,
    /// ECDSA on P-384, SHA-384.
    Es384,
    /// ECDSA on P-521, SHA-512.
    Es512,
}

/// Kinds of keys that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Rsa,
    P256,
    P384,
    P521,
}

/// A key of an allowed kind and size: the bits of its SubjectPublicKeyInfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey {
    pub(crate) kind: KeyKind,
    bytes: Vec<u8>,
}

/// Why a key is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyFault;

impl Algorithm {
    /// Every algorithm.
    pub const ALL: &'static [Self] = &[
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
    ];

    /// Its name in a header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    /// The algorithm of exactly that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.as_str() == name)
    }

    /// The one kind of key it works with.
    pub(crate) fn key(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => KeyKind::Rsa,
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::Es512 => KeyKind::P521,
        }
    }

    /// Bytes of a signature, where the algorithm fixes them.
    pub(crate) fn signature_bytes(self) -> Option<usize> {
        match self {
            Self::Es256 => Some(64),
            Self::Es384 => Some(96),
            Self::Es512 => Some(132),
            _ => None,
        }
    }

    fn verifier(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            Self::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Self::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }

    /// Whether `signature` over `input` is by `key`. False also when the key is of another kind.
    pub(crate) fn verifies(self, key: &PublicKey, input: &[u8], signature: &[u8]) -> bool {
        key.kind == self.key() && key.verifies(self.verifier(), input, signature)
    }
}

impl PublicKey {
    /// The key of a certificate.
    pub(crate) fn read(info: &SubjectPublicKeyInfo<'_>) -> Result<Self, KeyFault> {
        let bits = &info.subject_public_key;
        if bits.unused_bits != 0 {
            return Err(KeyFault);
        }
        let bytes: &[u8] = &bits.data;
        let kind = if info.algorithm.algorithm == oid::OID_PKCS1_RSAENCRYPTION {
            rsa_is_allowed(bytes)?;
            KeyKind::Rsa
        } else if info.algorithm.algorithm == oid::OID_KEY_TYPE_EC_PUBLIC_KEY {
            let parameters = info.algorithm.parameters.as_ref().ok_or(KeyFault)?;
            let curve = Oid::try_from(parameters).map_err(|_| KeyFault)?;
            let (kind, coordinate) = if curve == oid::OID_EC_P256 {
                (KeyKind::P256, 32)
            } else if curve == oid::OID_NIST_EC_P384 {
                (KeyKind::P384, 48)
            } else if curve == oid::OID_NIST_EC_P521 {
                (KeyKind::P521, 66)
            } else {
                return Err(KeyFault);
            };
            if bytes.first() != Some(&4) || bytes.len() != 1 + 2 * coordinate {
                return Err(KeyFault);
            }
            kind
        } else {
            return Err(KeyFault);
        };
        Ok(Self { kind, bytes: bytes.to_vec() })
    }

    /// Whether these are its bits.
    pub(crate) fn is(&self, bits: &[u8]) -> bool {
        self.bytes == bits
    }

    pub(crate) fn verifies(&self, by: &'static dyn VerificationAlgorithm, input: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(by, &self.bytes).verify(input, signature).is_ok()
    }
}

fn rsa_is_allowed(bytes: &[u8]) -> Result<(), KeyFault> {
    let (rest, key) = RSAPublicKey::from_der(bytes).map_err(|_| KeyFault)?;
    let unsigned = |integer: &[u8]| integer.iter().position(|byte| *byte != 0).map(|first| integer[first..].to_vec());
    let negative = |integer: &[u8]| integer.first().is_none_or(|byte| byte & 0x80 != 0);
    let modulus = unsigned(key.modulus).ok_or(KeyFault)?;
    let bits = modulus.len() * 8 - modulus[0].leading_zeros() as usize;
    let exponent = key.try_exponent().map_err(|_| KeyFault)?;
    let (least, most) = limits::RSA_BITS;
    let (low, high) = limits::RSA_EXPONENT;
    let allowed = rest.is_empty()
        && !negative(key.modulus)
        && (least..=most).contains(&bits)
        && (low..=high).contains(&exponent)
        && exponent % 2 == 1;
    if allowed { Ok(()) } else { Err(KeyFault) }
}
