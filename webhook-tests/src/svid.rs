//! An authority of one's own whose SVIDs sign agent cards, for trials in which SPIRE is not what is tried.
//!
//! In: a trust domain, SPIFFE IDs. Out: signed cards, and the trust bundle in every form in which it is published.

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge_crypto::{Card, Profile, Signer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType};
use serde_json::{Value, json};

/// An authority of a trust domain.
pub struct Authority {
    domain: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

fn params(uri: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(uri.try_into()?)];
    Ok(params)
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// When the name is none.
    pub fn new(domain: &str) -> Result<Self> {
        Self::made(domain, params(&format!("spiffe://{domain}"))?)
    }

    /// A new one that vouches for nobody after that time, counted from the beginning of 1970.
    ///
    /// # Errors
    /// When the name is none.
    pub fn until(domain: &str, end: Duration) -> Result<Self> {
        let mut params = params(&format!("spiffe://{domain}"))?;
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
        Self::made(domain, params)
    }

    fn made(domain: &str, mut params: CertificateParams) -> Result<Self> {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { domain: domain.to_owned(), issuer })
    }

    /// The trust bundle in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn key(&self) -> Value {
        json!({"kty": "EC", "crv": "P-256", "x5c": [STANDARD.encode(self.issuer.der())]})
    }

    /// The trust bundle as SPIFFE defines it, a key for JWT-SVIDs beside the authority.
    #[must_use]
    pub fn spiffe(&self) -> String {
        let mut key = self.key();
        key["use"] = json!("x509-svid");
        let other = json!({"kty": "EC", "use": "jwt-svid", "kid": "j"});
        json!({"keys": [other, key], "spiffe_sequence": 1, "spiffe_refresh_hint": 60}).to_string()
    }

    /// The trust bundle as SPIRE publishes a plain JWK Set.
    #[must_use]
    pub fn jwks(&self) -> String {
        json!({"keys": [self.key()]}).to_string()
    }

    /// The trust bundle in a map by trust domain.
    #[must_use]
    pub fn by_trust_domain(&self) -> String {
        let mut key = self.key();
        key["use"] = json!("x509-svid");
        json!({&self.domain: {"keys": [key]}}).to_string()
    }

    /// Whoever has that path in the trust domain, such as `/ns/team/sa/weather`.
    ///
    /// # Errors
    /// When the path is none of a SPIFFE ID.
    pub fn signer(&self, path: &str) -> Result<Signer> {
        let (chain, key) = self.svid(path)?;
        Ok(Signer::read(key.as_bytes(), chain.as_bytes())?)
    }

    /// The SVID of that path, in PEM: certificate and key.
    ///
    /// # Errors
    /// When the path is none of a SPIFFE ID.
    pub fn svid(&self, path: &str) -> Result<(String, String)> {
        let (mut leaf, key) = (params(&format!("spiffe://{}{path}", self.domain))?, KeyPair::generate()?);
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok((leaf.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

/// `card` with one signature of `signer` under the first profile; another one every time.
///
/// # Errors
/// When it is no card.
pub fn signed(card: &Value, signer: &Signer) -> Result<String> {
    let entries = signer.sign(&Card::read(card.to_string().as_bytes())?, &[Profile::KagentiV2])?;
    let entry = entries.first().context("a signature")?;
    let mut card = card.clone();
    card["signatures"] = json!([{"protected": entry.protected, "signature": entry.signature}]);
    Ok(card.to_string())
}
