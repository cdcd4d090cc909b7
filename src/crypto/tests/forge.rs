//! Authorities, SVIDs and signed cards, made anew for a test. Verdicts are never taken from here: it only signs.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::{NOW, card};
use crate::Profile;

pub(super) const ID: &str = "spiffe://example.org/ns/team1/sa/weather";
const HOUR: i64 = 3600;

/// A certificate, and what signs by it.
pub(super) struct Party {
    pub(super) certificate: Certificate,
    params: CertificateParams,
    key: KeyPair,
}

pub(super) fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

pub(super) fn host(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

/// From `from` until `until`, in seconds since 1970.
pub(super) fn valid(params: &mut CertificateParams, from: i64, until: i64) {
    let day = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = day + std::time::Duration::from_secs(u64::try_from(from).unwrap());
    params.not_after = day + std::time::Duration::from_secs(u64::try_from(until).unwrap());
}

fn params(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, NOW - HOUR, NOW + HOUR);
    change(&mut params);
    params
}

/// An authority of that name, which `change` makes another one; signed by `issuer`, or by itself.
pub(super) fn authority(name: &str, issuer: Option<&Party>, change: impl FnOnce(&mut CertificateParams)) -> Party {
    let params = params(name, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        change(params);
    });
    Party::new(params, issuer)
}

/// An SVID of [`ID`], which `change` makes another one.
pub(super) fn svid(issuer: &Party, change: impl FnOnce(&mut CertificateParams)) -> Party {
    let params = params("svid", |params| {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.subject_alt_names = vec![uri(ID)];
        change(params);
    });
    Party::new(params, Some(issuer))
}

/// An SVID of [`ID`] with an RSA key of that many bits, whose other half nobody has.
pub(super) fn svid_of_rsa(issuer: &Party, bits: usize) -> Vec<u8> {
    let tagged = |tag: u8, content: &[u8]| {
        let length = content.len().to_be_bytes();
        let first = length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1);
        let short = &length[first..];
        let head = if content.len() < 128 { Vec::new() } else { vec![0x80 | u8::try_from(short.len()).unwrap()] };
        [&[tag], head.as_slice(), short, content].concat()
    };
    let modulus = [vec![0], vec![0xc1; bits / 8]].concat();
    let key = tagged(0x30, &[tagged(2, &modulus), tagged(2, &[1, 0, 1])].concat());
    let algorithm = tagged(0x30, &[tagged(6, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]), tagged(5, &[])].concat());
    let info = tagged(0x30, &[algorithm, tagged(3, &[vec![0], key].concat())].concat());
    let key = rcgen::SubjectPublicKeyInfo::from_der(&info).unwrap();
    let params = params("svid", |params| params.subject_alt_names = vec![uri(ID)]);
    params.signed_by(&key, &Issuer::from_params(&issuer.params, &issuer.key)).unwrap().der().to_vec()
}

impl Party {
    fn new(params: CertificateParams, issuer: Option<&Self>) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = match issuer {
            None => params.self_signed(&key).unwrap(),
            Some(issuer) => params.signed_by(&key, &Issuer::from_params(&issuer.params, &issuer.key)).unwrap(),
        };
        Self { certificate, params, key }
    }

    pub(super) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// `document`, signed under `profile`; `others` go along.
    pub(super) fn signs(&self, document: serde_json::Value, others: &[&Self], profile: Profile) -> serde_json::Value {
        let payload = card(&document).canonical(profile).unwrap();
        let chain: Vec<_> = [self].iter().chain(others).map(|party| STANDARD.encode(party.certificate.der())).collect();
        let header = serde_json::json!({"alg": "ES256", "x5c": chain});
        let protected = URL_SAFE_NO_PAD.encode(header.to_string());
        let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, self.key.serialized_der()).unwrap();
        let signature = pair.sign(&SystemRandom::new(), input.as_bytes()).unwrap();
        let mut document = document;
        document["signatures"] =
            serde_json::json!([{"protected": protected, "signature": URL_SAFE_NO_PAD.encode(signature)}]);
        document
    }
}
