//! What it costs to judge a signed agent card, against the signatures alone that it needs.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use drawbridge_crypto::{Card, Policy, Profile, Signer, Trust, TrustBundle, verify_bytes};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use serde_json::{Value, json};

use super::Size;
use crate::cpu;
use crate::table::{Row, median};

/// Bytes of the card, with its signature and certificates.
const CARD: usize = 8 << 10;
/// Verdicts, and triples of bare verifications, in a round.
const TIMES: u32 = 400;
/// 15 January 2027.
const NOW: i64 = 1_800_000_000;

fn certificate(uri: &str, ca: bool) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(uri.try_into()?)];
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("{uri} {ca}"));
    params.use_authority_key_identifier_extension = true;
    if ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    } else {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    }
    Ok(params)
}

/// A card of [`CARD`] bytes, ES256, with a leaf and what issued it; and the bundle with what issued that.
fn signed() -> Result<(Vec<u8>, TrustBundle)> {
    let keys = [KeyPair::generate()?, KeyPair::generate()?, KeyPair::generate()?];
    let root = certificate("spiffe://example.org", true)?;
    let bundle = TrustBundle::read(root.self_signed(&keys[0])?.pem().as_bytes(), None)?;
    let mut middle = certificate("spiffe://example.org", true)?;
    middle.distinguished_name.push(rcgen::DnType::CommonName, "below");
    let middle_pem = middle.signed_by(&keys[1], &Issuer::from_params(&root, &keys[0]))?.pem();
    let leaf = certificate("spiffe://example.org/ns/team1/sa/weather", false)?;
    let chain = leaf.signed_by(&keys[2], &Issuer::from_params(&middle, &keys[1]))?.pem() + &middle_pem;
    let signer = Signer::read(keys[2].serialize_pem().as_bytes(), chain.as_bytes())?;
    let mut skills: Vec<Value> = Vec::new();
    loop {
        let at = skills.len();
        skills.push(json!({"id": format!("skill_{at}"), "name": format!("Skill {at}"), "tags": ["weather", "wind"],
            "description": "Says what the weather is & will be, wherever it is asked for", "examples": ["Will it rain?"]}));
        let mut card = json!({"name": "Weather Agent", "description": "Forecasts & alerts", "version": "1.0.0",
            "url": "http://weather-agent.team1.svc.cluster.local:8000", "capabilities": {"streaming": false},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": skills});
        let read = Card::read(card.to_string().as_bytes())?;
        let entries = signer.sign(&read, &[Profile::KagentiV2])?;
        let entry = entries.first().context("no signature")?;
        card["signatures"] = json!([{"protected": entry.protected, "signature": entry.signature}]);
        let text = card.to_string();
        if text.len() >= CARD {
            return Ok((text.into_bytes(), bundle));
        }
    }
}

/// CPU time of one call, in microseconds.
fn timed(mut call: impl FnMut() -> bool) -> Result<f64> {
    let before = cpu::of_this_thread()?;
    for _ in 0..TIMES {
        ensure!(black_box(call()), "what is measured fails");
    }
    let used: Duration = cpu::of_this_thread()? - before;
    Ok(used.as_secs_f64() * 1e6 / f64::from(TIMES))
}

/// The row.
pub(super) fn row(size: Size) -> Result<Row> {
    let (card, bundle) = signed()?;
    let policy = Policy::default();
    let trust = Trust::Loaded { bundle: &bundle, read_at: NOW };
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).context("a key")?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref()).context("a key")?;
    let message = [7; 400];
    let signature = key.sign(&random, &message).context("a signature")?;
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.public_key().as_ref());
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds.max(9) {
        bare.push(timed(|| (0..3).all(|_| public.verify(black_box(&message), signature.as_ref()).is_ok()))?);
        ours.push(timed(|| verify_bytes(black_box(&card), trust, &policy, NOW).verified().is_some())?);
    }
    let (ours, bare) = (median(ours), median(bare));
    let what = "a verdict on a signed agent card of 8 KiB (ES256, two certificates) ÷ three bare P-256 verifications";
    Ok(Row::at_most(what, (2.0, 1.3), ours / bare, "").noted(format!(
        "{ours:.0} µs against {bare:.0} µs of processor time; {} bytes, good under the first profile",
        card.len()
    )))
}
