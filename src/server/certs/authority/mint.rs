//! Making and reading authorities, and signing leaves: the only place that touches private keys.
//!
//! In: lifetimes, names, PEM. Out: [`SigningAuthority`], [`Pair`]. Promises: ECDSA P-256 throughout; validity starts
//! `backdate` before the moment of issue; a leaf never outlives its authority. Keys are never printed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::plan::{Authority, Flaw, Leaf, Lifetimes, leaf_end, whole_second_up};
use crate::domain::keys;
use crate::server::certs::pair::{Pair, PairError};
use crate::server::certs::root::{Millis, Root, RootCertificate};

/// Why nothing could be signed: a defect, since every input is ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MintError {
    /// The certificate library refused.
    #[error("the certificate could not be made")]
    Generate(#[from] rcgen::Error),
    /// What was made cannot be served.
    #[error("the certificate that was made cannot be used")]
    Pair(#[from] PairError),
    /// What was made cannot be read back.
    #[error("the authority that was made {}", .0.words())]
    Flawed(Flaw),
}

struct Inner {
    certificate: RootCertificate,
    issuer: Issuer<'static, KeyPair>,
    key_pem: String,
}

/// An authority with its key; clones share it.
#[derive(Clone)]
pub struct SigningAuthority(Arc<Inner>);

impl fmt::Debug for SigningAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningAuthority").field(&self.0.certificate.root).finish()
    }
}

impl Authority for SigningAuthority {
    type Retired = RootCertificate;

    fn root(&self) -> Root {
        self.0.certificate.root
    }

    fn retire(&self) -> RootCertificate {
        self.0.certificate.clone()
    }

    fn retired_root(retired: &RootCertificate) -> Root {
        retired.root
    }
}

impl SigningAuthority {
    /// A new authority.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn found(lifetimes: &Lifetimes, now: Millis) -> Result<SigningAuthority, MintError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // A name of its own for each: a verifier that looks roots up by name never meets two of the same.
        params.distinguished_name.push(DnType::CommonName, format!("{} {now}", keys::SECRET_AUTHORITY));
        valid(&mut params, now - lifetimes.backdate, whole_second_up(now + lifetimes.authority));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?;
        SigningAuthority::assemble(certificate.der().clone(), key.serialize_pem(), key).map_err(MintError::Flawed)
    }

    /// Reads `ca.crt` (the first certificate counts) and `ca.key`.
    ///
    /// # Errors
    /// The flaw, when it cannot sign leaves as we want them.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<SigningAuthority, Flaw> {
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(|_| Flaw::Unreadable)?;
        let key_pem = std::str::from_utf8(key).map_err(|_| Flaw::Unreadable)?;
        // Of several sections the key: openssl writes the parameters of the curve before it.
        let der = PrivateKeyDer::from_pem_slice(key).map_err(|_| Flaw::Unreadable)?;
        let pair = KeyPair::try_from(&der).map_err(|_| Flaw::WrongKeyType)?;
        SigningAuthority::assemble(certificate.into_owned(), key_pem.to_owned(), pair)
    }

    fn assemble(der: CertificateDer<'static>, key_pem: String, key: KeyPair) -> Result<SigningAuthority, Flaw> {
        if key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
            return Err(Flaw::WrongKeyType);
        }
        check(&der, key.public_key_raw())?;
        let certificate = RootCertificate::read(der).ok_or(Flaw::Unreadable)?;
        let issuer = Issuer::from_ca_cert_der(&certificate.der, key).map_err(|_| Flaw::Unreadable)?;
        Ok(SigningAuthority(Arc::new(Inner { certificate, issuer, key_pem })))
    }

    /// Its certificate.
    #[must_use]
    pub fn certificate(&self) -> &RootCertificate {
        &self.0.certificate
    }

    /// Its key as PEM, for the Secret and nothing else.
    pub(super) fn key_pem(&self) -> &str {
        &self.0.key_pem
    }

    /// A leaf for `names` (DNS names and addresses), with a new key.
    ///
    /// # Errors
    /// When a name is not one, or the cryptographic library fails.
    pub fn sign(
        &self,
        names: &[String],
        lifetimes: &Lifetimes,
        now: Millis,
    ) -> Result<(Pair, Leaf<SigningAuthority>), MintError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, keys::SERVICE_WEBHOOK);
        valid(&mut params, now - lifetimes.backdate, leaf_end(lifetimes, &self.root(), now));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.0.issuer)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let pair = Pair::new(vec![certificate.der().clone()], key)?;
        let leaf = Leaf {
            issuer: self.clone(),
            issued: now,
            not_before: pair.leaf.not_before,
            not_after: pair.leaf.not_after,
        };
        Ok((pair, leaf))
    }
}

/// Sets the validity, in whole seconds. (A function, because the library's moments are of a type from a crate that
/// we do not depend on.) Moments before 1970 become 1970.
fn valid(params: &mut CertificateParams, from: Millis, to: Millis) {
    let after_epoch = |at: Millis| Duration::from_secs(u64::try_from(at.div_euclid(1000)).unwrap_or(0));
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + after_epoch(from);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + after_epoch(to);
}

fn check(der: &[u8], public_key: &[u8]) -> Result<(), Flaw> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).map_err(|_| Flaw::Unreadable)?;
    if certificate.public_key().subject_public_key.data.as_ref() != public_key {
        return Err(Flaw::KeyMismatch);
    }
    let may_sign =
        certificate.key_usage().map_err(|_| Flaw::Unreadable)?.is_none_or(|usage| usage.value.key_cert_sign());
    if !certificate.is_ca() || !may_sign {
        return Err(Flaw::NotAnAuthority);
    }
    Ok(())
}
