//! Whether a card is signed, by whom, and whether that is whom its workload runs as; pure.
//!
//! In: the bytes that an agent serves, the authorities in force, what the platform file says, as whom the workload runs, the time. Out: a [`Judgement`], which
//! has everything that the status of an AgentCard says of it.
//!
//! Two steps. [`Verdicts`] judges bytes: bounded before any signature is checked, and once for the same bytes under the same authorities, as long as they hold.
//! It is for whoever has blocking workers; a plan never reads what a tenant wrote. [`judge`] is for plans: it holds the verdict against whom was expected.
//!
//! Promises: without a trust bundle nothing is verified and nothing is distrusted; who signed counts only when it is the identity that
//! `explain` shows for the workload, also where the AgentCard asks for no binding; audit mode claims nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::admission::inject::RunsAs;
use crate::config::cards::Cards;
use crate::controllers::scaffold::signing::Stands;
use crate::crypto::{
    Binding, Bundles, Freshness, Good, NotBound, NotVerified, Policy, Profile, SpiffeId, Trust, TrustDomain, Verdict,
    Verified, Wanted, bind, verify_bytes,
};
use crate::domain::reason::Reason;

/// Longest text in a condition, in bytes.
const MESSAGE: usize = 1024;
/// Verdicts that are kept of one card: its replicas sign with SVIDs of their own and are asked in turn.
const KEPT: usize = 8;
/// For how long a verdict holds at most, in seconds: what was not valid yet may be by then.
const HOLDS: i64 = 300;
/// For so long a trusted agent may be signed for by an authority that no bundle has yet, in seconds: SPIRE publishes later than it signs.
pub const AUTHORITY_PATIENCE: i64 = 300;
/// Names of other workloads in a message.
const NAMED: usize = 3;

/// Verdicts on bytes, by card, and how many signatures they are about.
#[derive(Debug, Default)]
pub struct Verdicts(HashMap<Arc<str>, VecDeque<Kept>>, usize);

#[derive(Debug)]
struct Kept {
    of: Of,
    from: i64,
    until: i64,
    verdict: Arc<Verdict>,
}

/// What a verdict is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Of {
    document: [u8; 32],
    bundle: Arc<str>,
    policy: Policy,
}

impl Verdicts {
    /// The verdict on a document with that SHA-256 which `card` (namespace and name) served, where it is known and holds at `now`.
    #[must_use]
    pub fn known(&self, card: &str, document: [u8; 32], under: Under<'_>, now: i64) -> Option<Arc<Verdict>> {
        if let Some(stale) = under.stale(now) {
            return Some(Arc::new(stale));
        }
        let of = under.of(document);
        let mut kept = self.0.get(card)?.iter();
        kept.find(|kept| kept.of == of && (kept.from..=kept.until).contains(&now)).map(|kept| kept.verdict.clone())
    }

    /// Keeps a verdict of that second.
    pub fn learn(&mut self, card: &Arc<str>, document: [u8; 32], under: Under<'_>, told: (Arc<Verdict>, i64)) {
        let (verdict, now) = told;
        if !matches!(under.bundles.trust(), Trust::Loaded { .. }) || under.stale(now).is_some() {
            return;
        }
        let of = under.of(document);
        let until = holds(&verdict, now).min(now.saturating_add(HOLDS));
        let kept = self.0.entry(card.clone()).or_default();
        let before = signatures(kept);
        kept.retain(|known| known.of != of && known.of.bundle == of.bundle);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Kept { of, from: now, until, verdict });
        self.1 = (self.1 + signatures(kept)).saturating_sub(before);
    }

    /// The card is gone, or is no longer asked about.
    pub fn forget(&mut self, card: &str) {
        let kept = self.0.remove(card);
        self.1 = self.1.saturating_sub(kept.as_ref().map_or(0, signatures));
    }

    /// How many signatures there are verdicts on, each verdict on a document being one more.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.1
    }

    /// How many cards there are verdicts on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How many signatures these verdicts are about, each verdict being one more: what they cost in memory.
fn signatures(kept: &VecDeque<Kept>) -> usize {
    kept.iter().map(|kept| kept.verdict.verified().map_or(0, |verified| verified.good().len()) + 1).sum()
}

/// What a verdict rests on besides the document.
#[derive(Debug, Clone, Copy)]
pub struct Under<'a> {
    /// The authorities in force.
    pub bundles: &'a Bundles,
    /// What counts as good.
    pub policy: &'a Policy,
}

impl Under<'_> {
    /// The verdict on `document` at `now`: for a blocking worker, once [`Verdicts::known`] had none.
    #[must_use]
    pub fn verdict(&self, document: &[u8], now: i64) -> Verdict {
        verify_bytes(document, self.bundles.trust(), self.policy, now)
    }

    fn of(&self, document: [u8; 32]) -> Of {
        Of { document, bundle: self.bundles.version(), policy: self.policy.clone() }
    }

    /// The verdict while the authorities are too old to count: it needs no document.
    fn stale(&self, now: i64) -> Option<Verdict> {
        let Trust::Loaded { read_at, .. } = self.bundles.trust() else { return None };
        let (age, most) = (now.saturating_sub(read_at), self.policy.bundle_age);
        (age > most).then_some(Verdict::NotVerified(NotVerified::TrustBundleStale { age, most }))
    }
}

/// The last second at which a verdict of `now` is the same, as far as time alone changes it.
fn holds(verdict: &Verdict, now: i64) -> i64 {
    let ends = verdict.verified().into_iter().flat_map(|verified| verified.good()).map(ends);
    ends.min().unwrap_or(i64::MAX).max(now)
}

/// The last second at which a signature is what it is now: good, and its SVID current or not.
fn ends(good: &Good) -> i64 {
    match good.freshness {
        Freshness::Current => good.until.min(good.leaf_until),
        Freshness::Expired { .. } => good.until,
    }
}

/// Whom a card is held against.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What the platform file says of cards.
    pub cards: &'a Cards,
    /// The platform file's own trust domain.
    pub trust_domain: &'a str,
    /// As whom the workload runs; none while that is not known.
    pub runs_as: Option<&'a RunsAs>,
    /// `identityBinding` of the AgentCard: none when absent, else the trust domain that it names.
    pub binding: Option<Option<&'a str>>,
    /// Other workloads of the namespace that run under the same ServiceAccount.
    pub shared_with: &'a [&'a str],
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// True, False, or none for Unknown.
    pub status: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

/// What may be published of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publish {
    /// This canonical JSON, which is what was signed, and nothing else.
    Covered(Arc<[u8]>),
    /// All that was served: nobody claims that it is signed.
    AsServed,
    /// Nothing: what was published before stays.
    Nothing,
}

/// What is to be said of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Condition `SignatureVerified`; none while signatures are not judged.
    pub signature: Option<Said>,
    /// Condition `Bound`; none when the AgentCard has no `identityBinding`.
    pub bound: Option<Said>,
    /// Condition `Verified`: signed, and by whom the workload runs as.
    pub verified: Said,
    /// `validSignature`.
    pub valid_signature: Option<bool>,
    /// `signatureIdentityMatch`.
    pub identity_match: Option<bool>,
    /// `signatureKeyId`: nobody vouches for it.
    pub key_id: Option<String>,
    /// `signatureSpiffeId`.
    pub spiffe_id: Option<String>,
    /// `signatureProfile`.
    pub profile: Option<Profile>,
    /// `expectedSpiffeID`.
    pub expected: Option<String>,
    /// `trustedAccount`: the ServiceAccount that is trusted with this card.
    pub trusted_account: Option<String>,
    /// `attestedAgentSpiffeId`: who the agent has proved to be over TLS.
    pub attested: Option<String>,
    /// Whether the SVID that signed is still valid.
    pub freshness: Option<Freshness>,
    /// The first second of the certificate that signed.
    pub leaf_from: Option<i64>,
    /// How its signature stands, of one whose workload can be made to sign anew.
    pub stands: Option<Stands>,
    /// When the same bytes are to be judged again at the latest, in seconds since 1970.
    pub again: Option<i64>,
    /// What may be published.
    pub publish: Publish,
    /// Whether the card fails to be in sync: its signature is not good, and it is not audit mode.
    pub refused: bool,
    /// Only an authority is missing: a trusted agent keeps its trust for [`AUTHORITY_PATIENCE`] while each new bundle is tried.
    pub awaits_authority: bool,
    /// What else people should hear.
    pub warnings: Vec<Said>,
}

/// What is to be said of a card with that verdict.
#[must_use]
pub fn judge(verdict: &Verdict, bundles: &Bundles, asked: &Asked<'_>) -> Judgement {
    let wanted = wanted(asked);
    let good = verdict.verified().and_then(|verified| chosen(verified, wanted.as_ref().ok()));
    let bound = bound(good, bundles, &wanted);
    let mut judgement = Judgement {
        signature: None,
        bound: asked.binding.is_some().then(|| bound.clone()),
        verified: bound.clone(),
        valid_signature: None,
        identity_match: None,
        key_id: None,
        spiffe_id: None,
        profile: None,
        expected: asked.runs_as.map(RunsAs::spiffe_id),
        trusted_account: None,
        attested: None,
        freshness: None,
        leaf_from: None,
        stands: None,
        again: None,
        publish: Publish::AsServed,
        refused: false,
        awaits_authority: false,
        warnings: shared(asked),
    };
    if bundles.configured() {
        judgement.of_signature(verdict, good, asked);
    } else {
        let message = "signatures are not judged: cards.trustBundle of the platform file names no trust bundle";
        judgement.verified = said(Some(false), Reason::NotVerified, message);
    }
    if let (Some(good), Some(true)) = (good, judgement.valid_signature) {
        judgement.identity_match = bound.status;
        judgement.verified = match bound.status {
            Some(true) => said(Some(true), Reason::SignatureVerified, &format!("signed by {}", good.identity)),
            _ => bound,
        };
        if judgement.verified.status == Some(true) {
            let (from, leaf, authority) = (good.leaf_from, good.leaf_until, good.authority_until);
            judgement.stands = Some(Stands::Until { from, leaf, authority });
            judgement.trusted_account = asked.runs_as.map(|runs_as| runs_as.account.clone());
        }
    }
    judgement
}

/// The same once the agent has proved over TLS who it is: that decides, whatever its signatures are. It is held against whom the workload runs as, like
/// a signer.
pub fn proved(judgement: &mut Judgement, peer: &SpiffeId, asked: &Asked<'_>) {
    judgement.attested = Some(peer.to_string());
    judgement.trusted_account = None;
    // That somebody else answers is certain, whoever may yet vouch for a signature.
    judgement.awaits_authority = false;
    judgement.verified = match wanted(asked) {
        Err(said) => said,
        Ok(wanted) => match bind(Some(peer), &wanted) {
            Binding::Bound(id) => {
                judgement.trusted_account = asked.runs_as.map(|runs_as| runs_as.account.clone());
                said(Some(true), Reason::mTLSVerified, &format!("the agent has proved over TLS that it is {id}"))
            }
            Binding::NotBound(why) => said(Some(false), Reason::NotBound, &format!("over TLS: {why}")),
        },
    };
    if judgement.verified.status == Some(true) {
        judgement.refused = false;
        if judgement.publish == Publish::Nothing {
            judgement.publish = Publish::AsServed;
        }
    }
}

impl Judgement {
    fn of_signature(&mut self, verdict: &Verdict, good: Option<&Good>, asked: &Asked<'_>) {
        match (verdict, good) {
            (Verdict::Unknown, _) => {
                let message = "no trust bundle was ever readable: drawbridge doctor shows what cards.trustBundle names";
                let unknown = said(None, Reason::TrustBundleUnavailable, message);
                self.signature = Some(unknown.clone());
                self.verified = unknown;
                self.publish = if asked.cards.audit { Publish::AsServed } else { Publish::Nothing };
            }
            (Verdict::Verified(_), Some(good)) => {
                self.signature = Some(said(Some(true), Reason::SignatureValid, &of_good(good)));
                self.valid_signature = Some(true);
                self.key_id.clone_from(&good.key_id);
                self.spiffe_id = Some(good.identity.to_string());
                self.profile = Some(good.profile);
                self.freshness = Some(good.freshness);
                self.leaf_from = Some(good.leaf_from);
                self.again = Some(ends(good).saturating_add(1));
                self.publish = Publish::Covered(good.covered.clone());
            }
            (verdict, _) => {
                let why = match verdict {
                    Verdict::NotVerified(why) => {
                        self.awaits_authority = why.awaits_authority();
                        self.stands = why.lacks_authority().then_some(Stands::Lost);
                        why.to_string()
                    }
                    _ => "no signature is good".to_owned(),
                };
                let (reason, message) = match asked.cards.audit {
                    true => (Reason::SignatureInvalidAudit, format!("{why} (audit mode: allowed)")),
                    false => (Reason::SignatureInvalid, why),
                };
                let failed = said(Some(false), reason, &message);
                self.signature = Some(failed.clone());
                self.verified = failed;
                self.valid_signature = Some(false);
                self.identity_match = Some(false);
                self.refused = !asked.cards.audit;
                self.publish = if asked.cards.audit { Publish::AsServed } else { Publish::Nothing };
            }
        }
    }
}

/// Who should have signed: the id that the workload runs as, of a trust domain that the platform file names. An AgentCard may say which one of
/// these it has to be, and thereby only that it is another one.
fn wanted(asked: &Asked<'_>) -> Result<Wanted, Said> {
    let Some(runs_as) = asked.runs_as else {
        let message = "what the workload runs as is not known: its namespace's configuration has not been read";
        return Err(said(None, Reason::IdentityUnknown, message));
    };
    let not_bound = |why: &NotBound| said(Some(false), Reason::NotBound, &why.to_string());
    let platform = TrustDomain::configured(asked.trust_domain).ok();
    let domain = |named: Option<&str>| {
        Wanted::domain(named, platform.as_ref(), &asked.cards.trust_domains).map_err(|why| not_bound(&why))
    };
    let own = domain(Some(&runs_as.trust_domain))?;
    let named = match asked.binding.flatten().filter(|named| !named.is_empty()) {
        None => own,
        named => domain(named)?,
    };
    let workload = SpiffeId::read(&runs_as.spiffe_id()).map_err(|fault| {
        said(Some(false), Reason::NotBound, &format!("the workload's own SPIFFE ID is not valid: {fault}"))
    })?;
    Ok(Wanted { domain: named, workload: Some(workload) })
}

/// The signature to go by: of those of whom was expected, else of all, the one that holds longest; then the one whose profile `cards.profiles` has first.
fn chosen<'v>(verified: &'v Verified, wanted: Option<&Wanted>) -> Option<&'v Good> {
    verified.chosen(|good| wanted.is_some_and(|wanted| bind(Some(&good.identity), wanted).is_bound()))
}

fn bound(good: Option<&Good>, bundles: &Bundles, wanted: &Result<Wanted, Said>) -> Said {
    let wanted = match wanted {
        Err(said) => return said.clone(),
        Ok(wanted) => wanted,
    };
    if bundles.configured() && matches!(bundles.trust(), Trust::NeverLoaded) {
        return said(
            None,
            Reason::TrustBundleUnavailable,
            "no trust bundle was ever readable, so nobody is identified",
        );
    }
    match bind(good.map(|good| &good.identity), wanted) {
        Binding::Bound(id) => said(Some(true), Reason::Bound, &format!("signed by {id}, as whom the workload runs")),
        Binding::NotBound(why) => said(Some(false), Reason::NotBound, &why.to_string()),
    }
}

fn of_good(good: &Good) -> String {
    let expired = match good.freshness {
        Freshness::Current => "",
        Freshness::Expired { .. } => "; its certificate has expired and still counts (cards.expiredSvidSeconds)",
    };
    let (algorithm, profile) = (good.algorithm.as_str(), good.profile.as_str());
    format!("{algorithm} by {}, profile {profile}{expired}", good.identity)
}

fn shared(asked: &Asked<'_>) -> Vec<Said> {
    let (Some(runs_as), [_, ..]) = (asked.runs_as, asked.shared_with) else { return Vec::new() };
    let more = asked.shared_with.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = asked.shared_with.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let message = format!(
        "ServiceAccount {} is also {names}'s{more}: each of them can sign for the others; give each its own with spec.serviceAccountName",
        runs_as.account
    );
    vec![said(None, Reason::SharedServiceAccount, &message)]
}

fn said(status: Option<bool>, reason: Reason, message: &str) -> Said {
    Said { status, reason, message: message[..message.floor_char_boundary(MESSAGE)].to_owned() }
}

#[cfg(test)]
mod tests;
