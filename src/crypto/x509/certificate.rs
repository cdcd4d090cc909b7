//! One certificate, read once. In: DER, exactly. Out: its facts; nothing is judged here but what makes a certificate unreadable: other versions
//! than 3, duplicate extensions, two signature algorithms, names that are no names.

use aws_lc_rs::signature::{self, VerificationAlgorithm};
use x509_parser::asn1_rs::{FromDer, Oid, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::x509::{AlgorithmIdentifier, X509Version};

use super::constraints::Constraints;
use crate::jws::{KeyKind, PublicKey};
use crate::limits;

/// The facts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    /// What is signed.
    signed: Vec<u8>,
    signature: Vec<u8>,
    hash: Option<Hash>,
    pub(crate) subject: Vec<u8>,
    pub(crate) issuer: Vec<u8>,
    /// Seconds since 1970.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// None: of a kind or size that is not allowed.
    pub(crate) key: Option<PublicKey>,
    pub(crate) ca: bool,
    pub(crate) path_length: Option<u32>,
    pub(crate) usage: Option<Usage>,
    pub(crate) key_identifier: Option<Vec<u8>>,
    pub(crate) authority_identifier: Option<Vec<u8>>,
    pub(crate) uris: Vec<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) addresses: Vec<Vec<u8>>,
    /// Names of other kinds stand beside these.
    pub(crate) other_names: bool,
    pub(crate) constraints: Option<Constraints>,
    /// A critical extension that we do not understand.
    pub(crate) critical: bool,
}

/// The uses of a key that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) signs_data: bool,
    pub(crate) signs_certificates: bool,
    pub(crate) signs_revocations: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    RsaSha256,
    RsaSha384,
    RsaSha512,
    EcdsaSha256,
    EcdsaSha384,
    EcdsaSha512,
}

impl Certificate {
    /// The certificate in `der`; none when it cannot be read, or something follows it.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        if der.len() > limits::CERTIFICATE_BYTES {
            return None;
        }
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        let body = &parsed.tbs_certificate;
        let whole = rest.is_empty()
            && body.version == X509Version::V3
            && body.signature == parsed.signature_algorithm
            && parsed.signature_value.unused_bits == 0
            && body.extensions_map().is_ok();
        if !whole {
            return None;
        }
        let mut certificate = Self {
            der: der.to_vec(),
            signed: body.as_ref().to_vec(),
            signature: parsed.signature_value.data.to_vec(),
            hash: hash(&parsed.signature_algorithm),
            subject: body.subject.as_raw().to_vec(),
            issuer: body.issuer.as_raw().to_vec(),
            not_before: body.validity.not_before.timestamp(),
            not_after: body.validity.not_after.timestamp(),
            key: PublicKey::read(&body.subject_pki).ok(),
            ca: false,
            path_length: None,
            usage: None,
            key_identifier: None,
            authority_identifier: None,
            uris: Vec::new(),
            hosts: Vec::new(),
            addresses: Vec::new(),
            other_names: false,
            constraints: None,
            critical: false,
        };
        for extension in body.extensions() {
            certificate.extend(extension.parsed_extension(), extension.critical)?;
        }
        Some(certificate)
    }

    /// Takes what one extension says; none when it cannot be read.
    fn extend(&mut self, extension: &ParsedExtension<'_>, critical: bool) -> Option<()> {
        match extension {
            ParsedExtension::BasicConstraints(basic) => {
                self.ca = basic.ca;
                self.path_length = basic.path_len_constraint;
            }
            ParsedExtension::KeyUsage(usage) => {
                self.usage = Some(Usage {
                    signs_data: usage.digital_signature(),
                    signs_certificates: usage.key_cert_sign(),
                    signs_revocations: usage.crl_sign(),
                });
            }
            ParsedExtension::SubjectKeyIdentifier(id) => self.key_identifier = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                self.authority_identifier = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            ParsedExtension::SubjectAlternativeName(names) => {
                for name in &names.general_names {
                    match name {
                        GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
                        GeneralName::DNSName(host) => self.hosts.push((*host).to_owned()),
                        GeneralName::IPAddress(address) => self.addresses.push(address.to_vec()),
                        GeneralName::Invalid(..) => return None,
                        _ => self.other_names = true,
                    }
                }
            }
            ParsedExtension::NameConstraints(constraints) => self.constraints = Some(Constraints::of(constraints)),
            // Any use is accepted: issuers of SVIDs set both, one or none. Policies are not asked for.
            ParsedExtension::ExtendedKeyUsage(_) | ParsedExtension::CertificatePolicies(_) => {}
            ParsedExtension::ParseError { .. } => return None,
            _ => self.critical |= critical,
        }
        Some(())
    }

    /// Whether `self` is signed by the key of `issuer`.
    pub(crate) fn is_signed_by(&self, issuer: &Self) -> bool {
        let (Some(hash), Some(key)) = (self.hash, issuer.key.as_ref()) else { return false };
        hash.verifier(key.kind).is_some_and(|by| key.verifies(by, &self.signed, &self.signature))
    }

    /// Whether names and key identifiers allow that `issuer` signed `self`.
    pub(crate) fn names_issuer(&self, issuer: &Self) -> bool {
        let same_key = match (&self.authority_identifier, &issuer.key_identifier) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        self.issuer == issuer.subject && same_key
    }

    /// Whether it may sign certificates.
    pub(crate) fn is_authority(&self) -> bool {
        self.ca && self.usage.is_none_or(|usage| usage.signs_certificates) && self.key.is_some()
    }
}

/// Signatures on certificates that are checked: SHA-2 only.
fn hash(algorithm: &AlgorithmIdentifier<'_>) -> Option<Hash> {
    let known: [(Oid<'_>, Hash); 6] = [
        (oid!(1.2.840.113549.1.1.11), Hash::RsaSha256),
        (oid!(1.2.840.113549.1.1.12), Hash::RsaSha384),
        (oid!(1.2.840.113549.1.1.13), Hash::RsaSha512),
        (oid!(1.2.840.10045.4.3.2), Hash::EcdsaSha256),
        (oid!(1.2.840.10045.4.3.3), Hash::EcdsaSha384),
        (oid!(1.2.840.10045.4.3.4), Hash::EcdsaSha512),
    ];
    known.into_iter().find(|(oid, _)| *oid == algorithm.algorithm).map(|(_, hash)| hash)
}

impl Hash {
    fn verifier(self, key: KeyKind) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match (self, key) {
            (Self::RsaSha256, KeyKind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Self::RsaSha384, KeyKind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Self::RsaSha512, KeyKind::Rsa) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (Self::EcdsaSha256, KeyKind::P256) => &signature::ECDSA_P256_SHA256_ASN1,
            (Self::EcdsaSha384, KeyKind::P256) => &signature::ECDSA_P256_SHA384_ASN1,
            (Self::EcdsaSha512, KeyKind::P256) => &signature::ECDSA_P256_SHA512_ASN1,
            (Self::EcdsaSha256, KeyKind::P384) => &signature::ECDSA_P384_SHA256_ASN1,
            (Self::EcdsaSha384, KeyKind::P384) => &signature::ECDSA_P384_SHA384_ASN1,
            (Self::EcdsaSha512, KeyKind::P384) => &signature::ECDSA_P384_SHA512_ASN1,
            (Self::EcdsaSha256, KeyKind::P521) => &signature::ECDSA_P521_SHA256_ASN1,
            (Self::EcdsaSha384, KeyKind::P521) => &signature::ECDSA_P521_SHA384_ASN1,
            (Self::EcdsaSha512, KeyKind::P521) => &signature::ECDSA_P521_SHA512_ASN1,
            _ => return None,
        })
    }
}
