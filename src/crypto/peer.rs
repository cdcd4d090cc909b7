//! Who presents a chain over TLS. In: the certificates of a peer, its own first, the authorities, the time. Out: its SPIFFE id, or why it has none that
//! counts. Promise: the rules are those of a card's chain, without any tolerance; that the peer holds the key is what the handshake proves.

use crate::bundle::TrustBundle;
use crate::limits;
use crate::spiffe::SpiffeId;
use crate::verdict::EntryReason;
use crate::x509::{Certificate, Times, anchor, leaf_identity};

/// Who presents these certificates (DER, its own first) at `now`, in seconds since 1970.
pub fn peer(chain: &[&[u8]], bundle: &TrustBundle, now: i64) -> Result<SpiffeId, EntryReason> {
    if chain.len() > limits::CHAIN {
        return Err(EntryReason::ChainMalformed);
    }
    let chain: Option<Vec<Certificate>> = chain.iter().map(|der| Certificate::read(der)).collect();
    let chain = chain.ok_or(EntryReason::ChainMalformed)?;
    let (leaf, others) = chain.split_first().ok_or(EntryReason::NoTrustAnchor)?;
    let identity = leaf_identity(leaf)?;
    anchor(leaf, others, identity.trust_domain(), bundle, Times { now, tolerance: 0 })?;
    Ok(identity)
}

/// The last second of a certificate (DER), in seconds since 1970; none of what is no certificate.
#[must_use]
pub fn ends(leaf: &[u8]) -> Option<i64> {
    Some(Certificate::read(leaf)?.not_after)
}

/// The identity in a certificate (DER) that is one's own, whoever vouches for it.
pub fn identity(leaf: &[u8]) -> Result<SpiffeId, EntryReason> {
    leaf_identity(&Certificate::read(leaf).ok_or(EntryReason::ChainMalformed)?)
}

/// Authorities of that trust domain, from certificates in DER that stand one behind the other; none where that is no list of certificates.
#[must_use]
pub fn authorities(ders: &[u8], domain: &crate::spiffe::TrustDomain) -> Option<TrustBundle> {
    use base64::Engine as _;
    let all = crate::sign::certificates(ders, AUTHORITIES).ok()?;
    let block = |der: &Vec<u8>| {
        let body = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    };
    let text: String = all.iter().map(block).collect();
    TrustBundle::read(text.as_bytes(), Some(domain)).ok()
}

/// Authorities that are read of a Workload API's answer.
const AUTHORITIES: usize = 64;

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};

    use super::*;
    use crate::spiffe::TrustDomain;

    fn params(uri: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        params
    }

    /// An authority of that trust domain, and a leaf by it.
    fn chain(domain: &str, id: &str) -> (Vec<u8>, Vec<u8>) {
        let mut authority = params(&format!("spiffe://{domain}"));
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = authority.self_signed(&key).unwrap().der().to_vec();
        let mut leaf = params(id);
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let own = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&own, &Issuer::new(authority, key)).unwrap().der().to_vec();
        (root, leaf)
    }

    #[test]
    fn who_is_vouched_for_by_its_own_domain_is_told_and_nobody_else() {
        let domain = TrustDomain::read("example.org").unwrap();
        let id = "spiffe://example.org/ns/n/sa/w";
        let (root, leaf) = chain("example.org", id);
        let (other_root, other_leaf) = chain("example.org", id);
        let (_, foreign) = chain("other.org", "spiffe://other.org/ns/n/sa/w");
        let now = ends(&leaf).unwrap() - 60;
        let bundle = authorities(&root, &domain).unwrap();
        assert_eq!(peer(&[&leaf], &bundle, now).unwrap().as_str(), id);
        assert_eq!(identity(&leaf).unwrap().as_str(), id);
        let both = authorities(&[root.clone(), other_root].concat(), &domain).unwrap();
        assert_eq!(both.len(), 2);
        assert!(peer(&[&other_leaf], &both, now).is_ok());
        for (what, chain, now) in [
            ("another authority", vec![&other_leaf[..]], now),
            ("another domain", vec![&foreign[..]], now),
            ("the authority itself", vec![&root[..]], now),
            ("nobody", vec![], now),
            ("no certificate", vec![&b"x"[..]], now),
            ("too many", vec![&leaf[..]; 4], now),
            ("it has ended, and nothing is tolerated", vec![&leaf[..]], ends(&leaf).unwrap() + 1),
        ] {
            assert!(peer(&chain, &bundle, now).is_err(), "{what}");
        }
        assert!(authorities(b"x", &domain).is_none());
    }
}
