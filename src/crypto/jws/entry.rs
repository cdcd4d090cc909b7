//! One entry of `signatures`, read strictly: `protected` and `signature` in base64url without padding, a header without duplicates, and no
//! extension of JWS that we would have to understand.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::Algorithm;
use crate::json::{self, Members, Value};
use crate::limits;
use crate::verdict::EntryReason;

/// Bytes of the longest signature: RSA with the longest modulus.
const SIGNATURE_BYTES: usize = limits::RSA_BITS.1 / 8;

/// An entry that can be judged.
#[derive(Debug)]
pub(crate) struct Entry<'c> {
    pub(crate) protected: &'c str,
    pub(crate) signature: Vec<u8>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key_id: Option<String>,
    /// The chain as DER, leaf first.
    pub(crate) chain: Vec<Vec<u8>>,
}

impl<'c> Entry<'c> {
    pub(crate) fn read(entry: &'c Value) -> Result<Self, EntryReason> {
        let members = entry.object().ok_or(EntryReason::EntryMalformed)?;
        let text = |name| members.get(name).and_then(Value::text).ok_or(EntryReason::EntryMalformed);
        let (protected, signature) = (text("protected")?, text("signature")?);
        if protected.len() > limits::HEADER_BYTES {
            return Err(EntryReason::HeaderTooLarge);
        }
        let header = URL_SAFE_NO_PAD.decode(protected).map_err(|_| EntryReason::HeaderMalformed)?;
        let Ok(Value::Object(header)) = json::read(&header, limits::HEADER_BYTES) else {
            return Err(EntryReason::HeaderMalformed);
        };
        match members.get("header") {
            None | Some(Value::Null) => {}
            Some(Value::Object(open)) => {
                if open.keys().any(|name| header.contains_key(name) || matches!(name.as_str(), "crit" | "b64")) {
                    return Err(EntryReason::HeaderOverlap);
                }
            }
            Some(_) => return Err(EntryReason::EntryMalformed),
        }
        let algorithm = algorithm(&header)?;
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::Text(id)) if id.len() <= limits::KEY_ID_BYTES => Some(id.clone()),
            Some(_) => return Err(EntryReason::HeaderMalformed),
        };
        let chain = chain(&header)?;
        if signature.len() > SIGNATURE_BYTES.div_ceil(3) * 4 {
            return Err(EntryReason::SignatureMalformed);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| EntryReason::SignatureMalformed)?;
        if signature.is_empty() || algorithm.signature_bytes().is_some_and(|bytes| bytes != signature.len()) {
            return Err(EntryReason::SignatureMalformed);
        }
        Ok(Self { protected, signature, algorithm, key_id, chain })
    }
}

fn algorithm(header: &Members) -> Result<Algorithm, EntryReason> {
    if header.contains_key("crit") {
        return Err(EntryReason::CriticalHeader);
    }
    if header.get("b64").is_some_and(|b64| *b64 != Value::Bool(true)) {
        return Err(EntryReason::UnencodedPayload);
    }
    match header.get("alg") {
        None => Err(EntryReason::AlgorithmMissing),
        Some(name) => name.text().and_then(Algorithm::named).ok_or(EntryReason::AlgorithmNotAllowed),
    }
}

/// The certificates of `x5c`: standard base64 with padding, the leaf first.
fn chain(header: &Members) -> Result<Vec<Vec<u8>>, EntryReason> {
    let certificates = match header.get("x5c") {
        None => return Err(EntryReason::NoTrustAnchor),
        Some(x5c) => x5c.list().ok_or(EntryReason::ChainMalformed)?,
    };
    if certificates.is_empty() {
        return Err(EntryReason::NoTrustAnchor);
    }
    if certificates.len() > limits::CHAIN {
        return Err(EntryReason::ChainTooLong);
    }
    let decode = |certificate: &Value| {
        let text = certificate.text().filter(|text| text.len() <= limits::CERTIFICATE_BYTES.div_ceil(3) * 4)?;
        STANDARD.decode(text).ok()
    };
    certificates.iter().map(|certificate| decode(certificate).ok_or(EntryReason::ChainMalformed)).collect()
}
