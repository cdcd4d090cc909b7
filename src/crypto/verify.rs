//! The judgement: every entry of `signatures` is tried, and one good one is enough. In: a card, trust, a policy, the time. Out: a [`Verdict`].

use std::cell::RefCell;
use std::sync::Arc;

use crate::bundle::TrustBundle;
use crate::card::Card;
use crate::json::Value;
use crate::jws::{Entry, signing_input};
use crate::profile::{Profile, ProfileFault};
use crate::verdict::{EntryFault, EntryReason, Freshness, Good, NotVerified, Verdict, Verified};
use crate::x509::{Certificate, Times, anchor, fingerprint, hex, leaf_identity};

/// What counts as good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The profiles to try, in this order; of good signatures that hold equally long the one whose profile stands first counts.
    pub profiles: Vec<Profile>,
    /// Seconds for which a leaf that has expired still counts: cards are signed once, when a Pod starts.
    pub tolerance: i64,
    /// Seconds for which a trust bundle counts after it was last readable.
    pub bundle_age: i64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { profiles: Profile::ALL.to_vec(), tolerance: 86_400, bundle_age: 86_400 }
    }
}

/// Whom we believe.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'t> {
    /// No trust bundle was ever loaded.
    NeverLoaded,
    /// The last good one.
    Loaded {
        /// The bundle.
        bundle: &'t TrustBundle,
        /// When its source was last readable and parsed, in seconds since 1970; not when it last changed.
        read_at: i64,
    },
}

/// The verdict on the card in `bytes` at `now`, in seconds since 1970.
#[must_use]
pub fn verify_bytes(bytes: &[u8], trust: Trust<'_>, policy: &Policy, now: i64) -> Verdict {
    match Card::read(bytes) {
        Ok(card) => verify(&card, trust, policy, now),
        Err(fault) => Verdict::NotVerified(fault.into()),
    }
}

/// The verdict on `card` at `now`, in seconds since 1970.
#[must_use]
pub fn verify(card: &Card, trust: Trust<'_>, policy: &Policy, now: i64) -> Verdict {
    let Trust::Loaded { bundle, read_at } = trust else { return Verdict::Unknown };
    let age = now.saturating_sub(read_at);
    if age > policy.bundle_age {
        return Verdict::NotVerified(NotVerified::TrustBundleStale { age, most: policy.bundle_age });
    }
    if card.entries().is_empty() {
        return Verdict::NotVerified(NotVerified::NoSignatures);
    }
    let times = Times { now, tolerance: policy.tolerance };
    let judge = Judge { card, policy, bundle, times, forms: RefCell::default() };
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for (entry, value) in card.entries().iter().enumerate() {
        match judge.entry(entry, value) {
            Ok(found) => good.push(found),
            Err(reason) => refused.push(EntryFault { entry, reason }),
        }
    }
    if good.is_empty() {
        let profiles = judge.forms.into_inner().faults();
        return Verdict::NotVerified(NotVerified::Entries { entries: refused, profiles });
    }
    Verdict::Verified(Verified { good, refused, profiles: policy.profiles.clone() })
}

struct Judge<'j> {
    card: &'j Card,
    policy: &'j Policy,
    bundle: &'j TrustBundle,
    times: Times,
    forms: RefCell<Forms>,
}

/// What a signature under a profile covers, or why nothing is.
type Form = Result<Arc<[u8]>, ProfileFault>;

/// The card's canonical forms, as far as somebody has asked for them: most signatures are good under the first.
#[derive(Default)]
struct Forms(Vec<(Profile, Form)>);

impl Forms {
    /// The form under the profile at that place; none when there is none, or an earlier profile has the same.
    fn at(&mut self, place: usize, card: &Card, profiles: &[Profile]) -> Option<(Profile, Arc<[u8]>)> {
        while self.0.len() <= place {
            let profile = *profiles.get(self.0.len())?;
            self.0.push((profile, card.canonical(profile).map(Into::into)));
        }
        let (before, rest) = self.0.split_at(place);
        let (profile, form) = rest.first()?;
        let form = form.as_ref().ok()?;
        let known = before.iter().any(|(_, other)| other.as_ref().is_ok_and(|other| other == form));
        (!known).then(|| (*profile, form.clone()))
    }

    /// Why there is none, per profile.
    fn faults(self) -> Vec<(Profile, ProfileFault)> {
        self.0.into_iter().filter_map(|(profile, form)| Some((profile, form.err()?))).collect()
    }
}

impl Judge<'_> {
    /// The JWS is checked before the chain: an unknown authority is then said only of a signature that is good.
    fn entry(&self, index: usize, value: &Value) -> Result<Good, EntryReason> {
        let entry = Entry::read(value)?;
        let chain: Option<Vec<Certificate>> = entry.chain.iter().map(|der| Certificate::read(der)).collect();
        let chain = chain.ok_or(EntryReason::ChainMalformed)?;
        let (leaf, others) = chain.split_first().ok_or(EntryReason::NoTrustAnchor)?;
        let identity = leaf_identity(leaf)?;
        let key = leaf.key.as_ref().ok_or(EntryReason::KeyNotAllowed)?;
        if key.kind != entry.algorithm.key() {
            return Err(EntryReason::KeyMismatch);
        }
        let profiles = &self.policy.profiles;
        let (mut signed, mut any) = (None, false);
        for place in 0..profiles.len() {
            let Some((profile, form)) = self.forms.borrow_mut().at(place, self.card, profiles) else { continue };
            any = true;
            if entry.algorithm.verifies(key, &signing_input(entry.protected, &form), &entry.signature) {
                signed = Some((profile, form));
                break;
            }
        }
        let without = if any { EntryReason::SignatureWrong } else { EntryReason::NoCanonicalForm };
        let (profile, covered) = signed.ok_or(without)?;
        let anchored = anchor(leaf, others, identity.trust_domain(), self.bundle, self.times)?;
        let leaf_print = fingerprint(&leaf.der);
        let own_id = hex(&leaf_print[..8]);
        let looks_ours = |id: &str| id.len() == own_id.len() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(Good {
            entry: index,
            identity,
            profile,
            algorithm: entry.algorithm,
            key_id_differs: entry.key_id.as_deref().is_some_and(|id| looks_ours(id) && id != own_id),
            key_id: entry.key_id,
            leaf: hex(&leaf_print),
            leaf_from: leaf.not_before,
            leaf_until: leaf.not_after,
            authority: hex(&anchored.authority),
            authority_until: anchored.authority_until,
            freshness: match self.times.now > leaf.not_after {
                true => Freshness::Expired { since: leaf.not_after },
                false => Freshness::Current,
            },
            until: anchored.until,
            covered,
        })
    }
}
