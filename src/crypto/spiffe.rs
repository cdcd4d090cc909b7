//! SPIFFE IDs and trust domains, read strictly. In: text. Out: a name that compares by equality, or what is wrong with it.

use std::fmt;

use crate::limits;

/// A trust domain: `a-z 0-9 . - _`, at most 255 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustDomain(String);

/// The id of a workload: `spiffe://`, a trust domain and a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpiffeId {
    text: String,
    domain: TrustDomain,
}

/// Why a text is no SPIFFE ID or trust domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpiffeFault {
    /// Longer than the standard allows.
    #[error("it is too long")]
    TooLong,
    /// Does not begin with `spiffe://`.
    #[error("it does not begin with spiffe://")]
    Scheme,
    /// Not a trust domain: empty, capitals, a port, a user, or other characters.
    #[error("its trust domain is not made of a-z, 0-9, '.', '-' and '_' alone")]
    TrustDomain,
    /// No path, where a workload is named.
    #[error("it has no path, so it names a trust domain and no workload")]
    NoPath,
    /// An empty segment, `.`, `..`, or a slash at the end.
    #[error("a segment of its path is empty, '.' or '..'")]
    Segment,
    /// Other characters: a query, a fragment, an escape.
    #[error("its path is not made of A-Z, a-z, 0-9, '.', '-' and '_' alone")]
    PathCharacter,
}

impl TrustDomain {
    /// A trust domain as it stands in an id: exactly, in lower case.
    pub fn read(text: &str) -> Result<Self, SpiffeFault> {
        if text.len() > limits::TRUST_DOMAIN_BYTES {
            return Err(SpiffeFault::TooLong);
        }
        let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
        if text.is_empty() || !text.bytes().all(good) {
            return Err(SpiffeFault::TrustDomain);
        }
        Ok(Self(text.to_owned()))
    }

    /// A trust domain as people write it in a setting: capitals are lowered, and the URI form `spiffe://example.org` is taken, too.
    pub fn configured(text: &str) -> Result<Self, SpiffeFault> {
        let lowered = text.to_ascii_lowercase();
        Self::read(lowered.strip_prefix("spiffe://").unwrap_or(&lowered))
    }

    /// The trust domain that the URI of an authority names: `spiffe://example.org`, with or without a path.
    pub fn of_uri(text: &str) -> Result<Self, SpiffeFault> {
        split(text).map(|(domain, _)| domain)
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SpiffeId {
    /// The id in `text`.
    pub fn read(text: &str) -> Result<Self, SpiffeFault> {
        match split(text)? {
            (_, None) => Err(SpiffeFault::NoPath),
            (domain, Some(_)) => Ok(Self { text: text.to_owned(), domain }),
        }
    }

    /// The id of a ServiceAccount, as SPIRE registers workloads of Kubernetes by default.
    pub fn of_service_account(domain: &TrustDomain, namespace: &str, account: &str) -> Result<Self, SpiffeFault> {
        Self::read(&format!("spiffe://{domain}/ns/{namespace}/sa/{account}"))
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its trust domain.
    #[must_use]
    pub fn trust_domain(&self) -> &TrustDomain {
        &self.domain
    }
}

/// The trust domain, and the path with its slash when there is one.
fn split(text: &str) -> Result<(TrustDomain, Option<&str>), SpiffeFault> {
    if text.len() > limits::SPIFFE_ID_BYTES {
        return Err(SpiffeFault::TooLong);
    }
    let rest = text.strip_prefix("spiffe://").ok_or(SpiffeFault::Scheme)?;
    let (domain, path) = rest.find('/').map_or((rest, None), |slash| (&rest[..slash], Some(&rest[slash..])));
    let domain = TrustDomain::read(domain)?;
    for segment in path.unwrap_or_default().split('/').skip(1) {
        if matches!(segment, "" | "." | "..") {
            return Err(SpiffeFault::Segment);
        }
        if !segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')) {
            return Err(SpiffeFault::PathCharacter);
        }
    }
    Ok((domain, path))
}

impl fmt::Display for TrustDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
