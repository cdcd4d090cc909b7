//! Whether who signed is who should have. In: the identity of a good signature, the trust domain and the workload's own id. Out: bound or not, and
//! why. A trust domain alone binds nothing: every workload in it could sign for every other.

use crate::shown;
use crate::spiffe::{SpiffeId, TrustDomain};

/// Who should have signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The trust domain; none when it is configured nowhere.
    pub domain: Option<TrustDomain>,
    /// The id that the workload runs as; none when every workload of the trust domain counts.
    pub workload: Option<SpiffeId>,
}

/// Whether an identity is the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It is.
    Bound(SpiffeId),
    /// It is not.
    NotBound(NotBound),
}

/// Why an identity is not bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBound {
    /// No signature is good, so nobody is identified.
    #[error("no verified chain of certificates gave a SPIFFE ID")]
    NoIdentity,
    /// No trust domain anywhere.
    #[error(
        "no trust domain is configured: neither spec.identityBinding.trustDomain nor the platform's trust domain is set"
    )]
    NoTrustDomain,
    /// The card asks for a trust domain that the platform does not list.
    #[error("trust domain {name} of the card is none that the platform allows")]
    TrustDomainNotAllowed {
        /// The name, escaped and cut.
        name: String,
    },
    /// Another trust domain.
    #[error("{found} is not of trust domain {wanted}")]
    OtherTrustDomain {
        /// Who signed.
        found: SpiffeId,
        /// Whose it should be.
        wanted: TrustDomain,
    },
    /// Another workload.
    #[error("it is signed by {found}, and the workload runs as {wanted}")]
    OtherWorkload {
        /// Who signed.
        found: SpiffeId,
        /// Who should have.
        wanted: SpiffeId,
    },
}

impl Wanted {
    /// The trust domain that counts for a card: its own, if it is the platform's or stands in `allowed`; else the platform's.
    pub fn domain(
        card: Option<&str>,
        platform: Option<&TrustDomain>,
        allowed: &[TrustDomain],
    ) -> Result<Option<TrustDomain>, NotBound> {
        let Some(card) = card.filter(|card| !card.is_empty()) else { return Ok(platform.cloned()) };
        match TrustDomain::configured(card) {
            Ok(domain) if platform == Some(&domain) || allowed.contains(&domain) => Ok(Some(domain)),
            _ => Err(NotBound::TrustDomainNotAllowed { name: shown(card) }),
        }
    }
}

impl Binding {
    /// Whether it is bound.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        matches!(self, Self::Bound(_))
    }

    /// The reason of the condition.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        if self.is_bound() { "Bound" } else { "NotBound" }
    }
}

/// Whether `identity`, of a good signature, is `wanted`. Ids are compared whole.
#[must_use]
pub fn bind(identity: Option<&SpiffeId>, wanted: &Wanted) -> Binding {
    let Some(found) = identity.cloned() else { return Binding::NotBound(NotBound::NoIdentity) };
    let Some(domain) = wanted.domain.clone() else { return Binding::NotBound(NotBound::NoTrustDomain) };
    if *found.trust_domain() != domain {
        return Binding::NotBound(NotBound::OtherTrustDomain { found, wanted: domain });
    }
    match &wanted.workload {
        Some(workload) if *workload != found => {
            Binding::NotBound(NotBound::OtherWorkload { found, wanted: workload.clone() })
        }
        _ => Binding::Bound(found),
    }
}
