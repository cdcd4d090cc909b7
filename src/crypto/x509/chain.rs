//! From a leaf to an authority of its own trust domain. In: the certificates of one entry, a bundle, the time. Out: the authority that vouches for
//! the leaf and until when; or the reason why none does.
//!
//! The time: while the leaf is valid, every certificate is judged now. A leaf that ended within the tolerance is judged, with its intermediates, at
//! its end; the authority then and now. An authority that is expired now never counts.

use super::Certificate;
use crate::bundle::{Authority, TrustBundle};
use crate::limits::{CANDIDATES, SKEW};
use crate::spiffe::{SpiffeId, TrustDomain};
use crate::verdict::EntryReason;

/// When a chain is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Seconds since 1970.
    pub(crate) now: i64,
    /// Seconds for which an expired leaf still counts.
    pub(crate) tolerance: i64,
}

/// A chain that ends at an authority.
#[derive(Clone, Debug)]
pub(crate) struct Anchored {
    pub(crate) authority: [u8; 32],
    /// The last second at which this chain is accepted.
    pub(crate) until: i64,
    /// The end of the authority.
    pub(crate) authority_until: i64,
}

/// What a leaf must be, whoever signed it; and who it is.
pub(crate) fn leaf_identity(leaf: &Certificate) -> Result<SpiffeId, EntryReason> {
    if leaf.ca || leaf.usage.is_some_and(|usage| usage.signs_certificates || usage.signs_revocations) {
        return Err(EntryReason::LeafIsAuthority);
    }
    if leaf.usage.is_some_and(|usage| !usage.signs_data) {
        return Err(EntryReason::LeafKeyUsage);
    }
    if leaf.critical {
        return Err(EntryReason::CriticalExtension);
    }
    match leaf.uris.as_slice() {
        [] => Err(EntryReason::SpiffeIdMissing),
        [uri] => SpiffeId::read(uri).map_err(EntryReason::SpiffeIdInvalid),
        _ => Err(EntryReason::SpiffeIdAmbiguous),
    }
}

/// The authority in `bundle` that vouches for `leaf`.
pub(crate) fn anchor(
    leaf: &Certificate,
    others: &[Certificate],
    domain: &TrustDomain,
    bundle: &TrustBundle,
    times: Times,
) -> Result<Anchored, EntryReason> {
    let now = times.now;
    if now.saturating_add(SKEW) < leaf.not_before {
        return Err(EntryReason::NotYetValid);
    }
    if now > leaf.not_after.saturating_add(times.tolerance.max(0)) {
        return Err(EntryReason::Expired);
    }
    let at = now.min(leaf.not_after);
    if at.saturating_add(SKEW) < leaf.not_before {
        return Err(EntryReason::NotYetValid);
    }
    let mut search = Search { leaf, others, domain, bundle, times, at, path: Vec::new(), fault: None };
    search.from(leaf).ok_or(search.fault.unwrap_or(EntryReason::AuthorityUnknown))
}

struct Search<'s> {
    leaf: &'s Certificate,
    others: &'s [Certificate],
    domain: &'s TrustDomain,
    bundle: &'s TrustBundle,
    times: Times,
    at: i64,
    /// Intermediates from the leaf's issuer upwards, by their place in `others`.
    path: Vec<usize>,
    /// The first thing that was wrong with a chain whose signatures are good.
    fault: Option<EntryReason>,
}

impl<'s> Search<'s> {
    fn note(&mut self, fault: EntryReason) {
        self.fault.get_or_insert(fault);
    }

    /// Goes on from `subject`, which is the leaf or an intermediate whose signature on the path is good.
    fn from(&mut self, subject: &'s Certificate) -> Option<Anchored> {
        for authority in self.candidates(subject) {
            if subject.is_signed_by(&authority.certificate) {
                match self.judge(authority) {
                    Ok(anchored) => return Some(anchored),
                    Err(fault) => self.note(fault),
                }
            }
        }
        let others = self.others;
        for (place, other) in others.iter().enumerate() {
            if self.path.contains(&place) || !subject.names_issuer(other) || !subject.is_signed_by(other) {
                continue;
            }
            if !other.is_authority() {
                self.note(EntryReason::IntermediateNotAuthority);
                continue;
            }
            self.path.push(place);
            let found = self.from(other);
            self.path.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The authorities that may have signed `subject`: those of the leaf's trust domain, and then a few of others, for the sake of the reason.
    fn candidates(&mut self, subject: &Certificate) -> Vec<&'s Authority> {
        let bundle = self.bundle;
        let named = |authority: &&Authority| subject.names_issuer(&authority.certificate);
        let mut candidates: Vec<_> = bundle.authorities(self.domain).iter().filter(named).collect();
        if candidates.len() > CANDIDATES {
            self.note(EntryReason::AuthorityAmbiguous);
            candidates.clear();
        }
        let foreign = bundle.domains().filter(|domain| *domain != self.domain);
        let foreign = foreign.flat_map(|domain| bundle.authorities(domain)).filter(named).take(CANDIDATES);
        candidates.extend(foreign);
        candidates
    }

    /// The path from the leaf to `authority`, whose signatures are good.
    fn judge(&self, authority: &Authority) -> Result<Anchored, EntryReason> {
        if authority.domain != *self.domain {
            return Err(EntryReason::AuthorityOfOtherDomain);
        }
        let root = &authority.certificate;
        let chain: Vec<&Certificate> = self.path.iter().map(|place| &self.others[*place]).collect();
        for certificate in &chain {
            if self.at.saturating_add(SKEW) < certificate.not_before || self.at > certificate.not_after {
                return Err(EntryReason::IntermediateExpired);
            }
        }
        if self.times.now > root.not_after || self.at > root.not_after {
            return Err(EntryReason::AuthorityExpired);
        }
        if self.at.saturating_add(SKEW) < root.not_before {
            return Err(EntryReason::AuthorityNotYetValid);
        }
        if !root.is_authority() {
            return Err(EntryReason::IntermediateNotAuthority);
        }
        for (below, issuer) in chain.iter().copied().chain([root]).enumerate() {
            if issuer.critical {
                return Err(EntryReason::CriticalExtension);
            }
            // `below` intermediates stand between this issuer and the leaf.
            if issuer.path_length.is_some_and(|most| below > most as usize) {
                return Err(EntryReason::PathTooLong);
            }
            if let Some(constraints) = &issuer.constraints {
                let subjects = [self.leaf].into_iter().chain(chain[..below].iter().copied());
                if !subjects.into_iter().all(|subject| constraints.allow(subject)) {
                    return Err(EntryReason::NameConstraint);
                }
            }
        }
        let intermediates = chain.iter().map(|certificate| certificate.not_after).min().unwrap_or(i64::MAX);
        let end = self.leaf.not_after.saturating_add(self.times.tolerance.max(0));
        // An intermediate that ends before the leaf ends the chain: afterwards, the leaf's end is judged, and it was gone by then.
        let chain_end = if intermediates < self.leaf.not_after { intermediates } else { end };
        let until = chain_end.min(root.not_after);
        Ok(Anchored { authority: authority.fingerprint, until, authority_until: root.not_after })
    }
}
