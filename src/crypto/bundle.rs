//! Trust bundles: whom we believe, per trust domain. In: the text of a source (PEM, a SPIFFE bundle, a plain JWK Set, or a map of them by trust
//! domain). Out: authorities by trust domain, with a fingerprint that changes only when an authority does.
//!
//! A PEM or a single JWK Set names no trust domain: it is the configured one, else the one that all its certificates name in their URI.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json::{self, JsonFault, Members, Value};
use crate::spiffe::{SpiffeFault, TrustDomain};
use crate::x509::{Certificate, fingerprint, hex};
use crate::{limits, shown};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Authorities by trust domain. The default has none, and vouches for nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustBundle {
    domains: BTreeMap<TrustDomain, Vec<Authority>>,
    format: BundleFormat,
    skipped: usize,
}

/// One authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) domain: TrustDomain,
    pub(crate) certificate: Certificate,
    pub(crate) fingerprint: [u8; 32],
}

/// How a bundle was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BundleFormat {
    /// Certificates in PEM.
    #[default]
    Pem,
    /// A JWK Set, with or without SPIFFE's members.
    Jwks,
    /// JWK Sets by trust domain.
    ByTrustDomain,
}

/// Why a text is no trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    /// More bytes than are read.
    #[error("the trust bundle has {bytes} bytes; at most {} are read", limits::BUNDLE_BYTES)]
    TooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// No authority in it.
    #[error("the trust bundle holds no certificate of an authority")]
    Empty,
    /// Neither PEM nor JSON.
    #[error("the trust bundle is neither PEM nor acceptable JSON: {0}")]
    InvalidJson(JsonFault),
    /// JSON, but no JWK Set.
    #[error("the trust bundle is not a JWK Set: {0}")]
    NotAKeySet(&'static str),
    /// An `x5c` that is no base64.
    #[error("key {index} of the trust bundle is not base64")]
    InvalidBase64 {
        /// Which key.
        index: usize,
    },
    /// An `x5c` that is no certificate, or several.
    #[error("key {index} of the trust bundle is not exactly one certificate of an authority")]
    InvalidCertificate {
        /// Which key.
        index: usize,
    },
    /// More certificates than are kept.
    #[error("the trust bundle holds more than {} certificates", limits::AUTHORITIES)]
    TooManyCertificates,
    /// More trust domains than are kept.
    #[error("the trust bundle holds more than {} trust domains", limits::TRUST_DOMAINS)]
    TooManyTrustDomains,
    /// Whose authorities these are is said nowhere.
    #[error(
        "the trust domain of the trust bundle is not known: no setting names it, and its certificates do not agree on one"
    )]
    TrustDomainUnknown,
    /// A name in a map is no trust domain.
    #[error("{name} in the trust bundle is not a trust domain: {fault}")]
    InvalidTrustDomain {
        /// The name, escaped and cut.
        name: String,
        /// What is wrong with it.
        fault: SpiffeFault,
    },
}

impl BundleFault {
    /// Its name as a metric label.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Empty => "empty_bundle",
            Self::InvalidJson(_) | Self::NotAKeySet(_) => "invalid_json",
            Self::InvalidBase64 { .. } => "invalid_base64",
            Self::InvalidCertificate { .. } => "invalid_cert",
            Self::TooManyCertificates | Self::TooManyTrustDomains => "too_many",
            Self::TrustDomainUnknown | Self::InvalidTrustDomain { .. } => "trust_domain_unknown",
        }
    }
}

impl TrustBundle {
    /// The bundle in `text`. `configured` is whose it is, where the text does not say.
    pub fn read(text: &[u8], configured: Option<&TrustDomain>) -> Result<Self, BundleFault> {
        if text.len() > limits::BUNDLE_BYTES {
            return Err(BundleFault::TooLarge { bytes: text.len() });
        }
        // Certificates are ASCII; what people write between them need not even be UTF-8.
        let pem = String::from_utf8_lossy(text);
        if pem.contains(BEGIN) {
            let (certificates, skipped) = pem_certificates(&pem)?;
            let mut bundle = Self { domains: BTreeMap::new(), format: BundleFormat::Pem, skipped };
            bundle.add(certificates, configured)?;
            return Ok(bundle);
        }
        let Value::Object(members) =
            json::read(text, limits::BUNDLE_BYTES).map_err(|fault| match text.iter().all(u8::is_ascii_whitespace) {
                true => BundleFault::Empty,
                false => BundleFault::InvalidJson(fault),
            })?
        else {
            return Err(BundleFault::NotAKeySet("it is no object"));
        };
        if members.contains_key("keys") {
            let mut bundle = Self { domains: BTreeMap::new(), format: BundleFormat::Jwks, skipped: 0 };
            bundle.add(set_certificates(&members)?, configured)?;
            return Ok(bundle);
        }
        Self::by_trust_domain(&members)
    }

    fn by_trust_domain(members: &Members) -> Result<Self, BundleFault> {
        if members.len() > limits::TRUST_DOMAINS {
            return Err(BundleFault::TooManyTrustDomains);
        }
        let mut bundle = Self { domains: BTreeMap::new(), format: BundleFormat::ByTrustDomain, skipped: 0 };
        for (name, set) in members {
            let set = set.object().filter(|set| set.contains_key("keys"));
            let set =
                set.ok_or(BundleFault::NotAKeySet("it has no keys, and is not a map of key sets by trust domain"))?;
            let domain = TrustDomain::configured(name)
                .map_err(|fault| BundleFault::InvalidTrustDomain { name: shown(name), fault })?;
            let certificates = set_certificates(set)?;
            if !certificates.is_empty() {
                bundle.add(certificates, Some(&domain))?;
            }
        }
        if bundle.domains.is_empty() { Err(BundleFault::Empty) } else { Ok(bundle) }
    }

    /// This bundle and `other`, of another source: each trust domain has the authorities of both.
    pub fn join(mut self, other: Self) -> Result<Self, BundleFault> {
        self.skipped += other.skipped;
        for (domain, authorities) in other.domains {
            self.add(authorities.into_iter().map(|authority| authority.certificate).collect(), Some(&domain))?;
        }
        Ok(self)
    }

    fn add(&mut self, certificates: Vec<Certificate>, domain: Option<&TrustDomain>) -> Result<(), BundleFault> {
        if certificates.is_empty() {
            return Err(BundleFault::Empty);
        }
        let domain = domain.cloned().or_else(|| named(&certificates)).ok_or(BundleFault::TrustDomainUnknown)?;
        let known = self.domains.entry(domain.clone()).or_default();
        for certificate in certificates {
            let fingerprint = fingerprint(&certificate.der);
            if known.iter().all(|authority| authority.fingerprint != fingerprint) {
                known.push(Authority { domain: domain.clone(), certificate, fingerprint });
            }
        }
        // The order of the source decides nothing.
        known.sort_by_key(|authority| authority.fingerprint);
        if self.domains.len() > limits::TRUST_DOMAINS {
            return Err(BundleFault::TooManyTrustDomains);
        }
        if self.domains.values().map(Vec::len).sum::<usize>() > limits::AUTHORITIES {
            return Err(BundleFault::TooManyCertificates);
        }
        Ok(())
    }

    /// The trust domains in it.
    pub fn domains(&self) -> impl Iterator<Item = &TrustDomain> {
        self.domains.keys()
    }

    /// How many authorities it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.domains.values().map(Vec::len).sum()
    }

    /// Whether it has none; a bundle that was read always has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// How many authorities of that trust domain are valid at `now`, in seconds since 1970: the others count for nothing, though they stay in it.
    #[must_use]
    pub fn valid(&self, domain: &TrustDomain, now: i64) -> usize {
        let valid = |authority: &&Authority| {
            (authority.certificate.not_before..=authority.certificate.not_after).contains(&now)
        };
        self.authorities(domain).iter().filter(valid).count()
    }

    /// How it was written.
    #[must_use]
    pub fn format(&self) -> BundleFormat {
        self.format
    }

    /// How many PEM blocks were no certificate of an authority, and count for nothing.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// SHA-256 over the sorted set of authorities, in hex. JWT keys, sequence numbers and order change nothing in it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut context = Context::new(&SHA256);
        let all = self.domains.values().flatten();
        let sorted: BTreeSet<(&TrustDomain, [u8; 32])> = all.map(|one| (&one.domain, one.fingerprint)).collect();
        for (domain, fingerprint) in sorted {
            context.update(domain.as_str().as_bytes());
            context.update(&[0]);
            context.update(&fingerprint);
        }
        hex(context.finish().as_ref())
    }

    pub(crate) fn authorities(&self, domain: &TrustDomain) -> &[Authority] {
        self.domains.get(domain).map_or(&[], Vec::as_slice)
    }
}

/// The one trust domain that the certificates name in their URI.
fn named(certificates: &[Certificate]) -> Option<TrustDomain> {
    let mut named = certificates.iter().flat_map(|certificate| &certificate.uris).map(|uri| TrustDomain::of_uri(uri));
    let first = named.next()?.ok()?;
    named.all(|other| other.as_ref() == Ok(&first)).then_some(first)
}

/// The authorities among the PEM blocks, and how many blocks were none.
fn pem_certificates(text: &str) -> Result<(Vec<Certificate>, usize), BundleFault> {
    let (mut certificates, mut skipped) = (Vec::new(), 0);
    for block in text.split(BEGIN).skip(1) {
        if certificates.len() + skipped == limits::AUTHORITIES {
            return Err(BundleFault::TooManyCertificates);
        }
        let body = block.split_once(END).map(|(body, _)| body.split_ascii_whitespace().collect::<String>());
        let der = body.and_then(|body| STANDARD.decode(body).ok());
        match der.and_then(|der| Certificate::read(&der)).filter(Certificate::is_authority) {
            Some(certificate) => certificates.push(certificate),
            None => skipped += 1,
        }
    }
    Ok((certificates, skipped))
}

/// The authorities of a JWK Set: keys whose `use` is `x509-svid`, or absent where there is an `x5c`.
fn set_certificates(set: &Members) -> Result<Vec<Certificate>, BundleFault> {
    let keys = set.get("keys").and_then(Value::list).ok_or(BundleFault::NotAKeySet("its keys are not a list"))?;
    let mut certificates = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let key = key.object().ok_or(BundleFault::NotAKeySet("a key is not an object"))?;
        match (key.get("use"), key.contains_key("x5c")) {
            (Some(Value::Text(purpose)), _) if purpose == "x509-svid" => {}
            (None, true) => {}
            _ => continue,
        }
        let Some([Value::Text(certificate)]) = key.get("x5c").and_then(Value::list) else {
            return Err(BundleFault::InvalidCertificate { index });
        };
        let der = STANDARD.decode(certificate).map_err(|_| BundleFault::InvalidBase64 { index })?;
        let certificate = Certificate::read(&der).filter(Certificate::is_authority);
        certificates.push(certificate.ok_or(BundleFault::InvalidCertificate { index })?);
        if certificates.len() > limits::AUTHORITIES {
            return Err(BundleFault::TooManyCertificates);
        }
    }
    Ok(certificates)
}
