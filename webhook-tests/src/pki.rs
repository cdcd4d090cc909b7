//! Throw-away certificates: one authority per control plane, ECDSA P-256 throughout.
//!
//! Nothing here prints a key: [`Pair`] has no `Debug`.

use anyhow::{Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate and its key, PEM.
pub struct Pair {
    /// Certificate.
    pub certificate: String,
    /// PKCS#8 key.
    pub key: String,
}

/// A certificate authority that exists only in memory.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new self-signed authority.
    ///
    /// # Errors
    /// When the crypto library fails.
    pub fn new(common_name: &str) -> Result<Self> {
        let mut params = named(common_name, &[], Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// The authority's certificate, PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// The authority's own pair, for what must sign with it.
    #[must_use]
    pub fn pair(&self) -> Pair {
        Pair { certificate: self.certificate(), key: self.issuer.key().serialize_pem() }
    }

    /// A serving certificate for host names and IP addresses.
    ///
    /// # Errors
    /// When a name is not a valid subject alternative name.
    pub fn server(&self, common_name: &str, hosts: &[&str]) -> Result<Pair> {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        self.issue(named(common_name, &[], hosts)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate; Kubernetes reads the user from the common name and the groups from the organisations.
    ///
    /// # Errors
    /// With more than two groups, or when the crypto library fails.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Pair> {
        self.issue(named(user, groups, Vec::new())?, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// The key pair of ServiceAccount tokens: public and private half, PEM.
///
/// # Errors
/// When the crypto library fails.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.public_key_pem(), key.serialize_pem()))
}

fn named(common_name: &str, organisations: &[&str], hosts: Vec<String>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    // rcgen keeps one value per attribute type; the spelt-out OID of "organisation" is a second type to it.
    let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    ensure!(organisations.len() <= types.len(), "a test user has at most {} groups: {organisations:?}", types.len());
    for (kind, organisation) in types.into_iter().zip(organisations) {
        params.distinguished_name.push(kind, *organisation);
    }
    Ok(params)
}
