//! What the self-managed authority does next. Pure.
//!
//! In: the Secret as last seen, what this replica remembers and serves, since when each root is in every webhook
//! configuration, and the time. Out: at most one change of the Secret and at most one new leaf.
//!
//! ```text
//! absent ──found──► current ──introduce──► current + next ──promote──► current(=next) + previous ──retire──► current
//!                   (due at ⅔ of its life)      (next is in every bundle,          (previous has expired)
//!                                                for the settling time)
//! ```
//!
//! Guarantees, with any number of replicas whose view of the cluster is arbitrarily old, as long as changes of the
//! Secret are compare-and-swap on its resourceVersion:
//! - one authority at first start: creation is create-if-absent, and a leaf is signed only by what the Secret holds;
//! - nobody signs with a root before it is in every bundle (unless there is nothing else to serve);
//! - a replica that serves nothing signs with no authority that is not valid yet: nobody would accept the leaf, and a replica that is ready
//!   with it would take the place of one that still serves a good one;
//! - a root leaves the Secret only when it has expired, and a leaf never outlives its root: nobody can be serving it;
//! - a Secret that is deleted or damaged comes back from memory, with the same authority.
//!
//! Assumption: clocks of replicas and API server differ by less than the back-dating.
//! Caveat: a Secret without our label is somebody's own; it is used while it is good and never written.

use std::fmt::Debug;

use crate::server::certs::root::{Millis, Root};
use crate::server::certs::trust::Trust;

/// An authority that can sign, as far as plans need it.
pub trait Authority: Clone + Debug {
    /// What is left of it once it no longer signs.
    type Retired: Clone + Debug;
    /// Its certificate's facts.
    fn root(&self) -> Root;
    /// Its certificate without the key.
    fn retire(&self) -> Self::Retired;
    /// The facts of a retired one.
    fn retired_root(retired: &Self::Retired) -> Root;
}

/// How long things live. All in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of a leaf; cut off where its authority ends.
    pub leaf: Millis,
    /// Of an authority.
    pub authority: Millis,
    /// How far validity begins before the moment of issue.
    pub backdate: Millis,
    /// For how long a root must have been in every bundle before anything depends on it.
    pub settle: Millis,
}

impl Lifetimes {
    /// Leaf and authority as asked for; back-dated by 25 hours (a day of clock difference and slack); settling for
    /// ten seconds, or a thirtieth of the authority's life where that is shorter.
    #[must_use]
    pub fn new(leaf: Millis, authority: Millis) -> Lifetimes {
        Lifetimes { leaf, authority, backdate: 25 * 3_600_000, settle: 10_000.min(authority / 30) }
    }

    /// How often the clock is to be looked at: often enough that renewal at two thirds of life is no late one.
    #[must_use]
    pub fn tick(&self) -> Millis {
        (self.leaf.min(self.authority) / 60).clamp(20, 10_000)
    }

    /// When an authority is due for renewal: two thirds of its life, counted from its issue. One that is valid for no
    /// longer than our back-dating was not made here, and is taken as not back-dated.
    fn due(&self, root: &Root) -> Millis {
        let back_dated = root.not_after - root.not_before > self.backdate;
        let issued = root.not_before + if back_dated { self.backdate } else { 0 };
        issued + (root.not_after - issued) / 3 * 2
    }
}

/// 7 days for leaves, 365 days for authorities.
impl Default for Lifetimes {
    fn default() -> Lifetimes {
        Lifetimes::new(7 * 86_400_000, 365 * 86_400_000)
    }
}

/// Why a slot of the Secret cannot be used. The words complete the sentence "the authority …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// A key of the Secret is absent.
    Missing,
    /// Not PEM, cut off, or not a certificate.
    Unreadable,
    /// The certificate is not one of an authority.
    NotAnAuthority,
    /// The key is not ECDSA P-256.
    WrongKeyType,
    /// The key belongs to another certificate.
    KeyMismatch,
    /// Its validity has ended.
    Expired,
    /// Its validity has not begun.
    Early,
}

impl Flaw {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Flaw::Missing => "is not in the Secret (keys ca.crt and ca.key)",
            Flaw::Unreadable => "cannot be read: not complete PEM, or not a certificate and a private key",
            Flaw::NotAnAuthority => "may not sign certificates (basic constraints or key usage)",
            Flaw::WrongKeyType => "has a key that is not ECDSA P-256",
            Flaw::KeyMismatch => "has a key that belongs to another certificate",
            Flaw::Expired => "has expired",
            Flaw::Early => "is not valid yet",
        }
    }
}

/// The three generations of authority: a good Secret's content, and a replica's memory of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generations<A: Authority> {
    /// Signs leaves.
    pub current: A,
    /// Is being introduced into the bundles, will sign next.
    pub next: Option<A>,
    /// No longer sign, and are still trusted until they expire.
    pub previous: Vec<A::Retired>,
}

/// A Secret's content, slot by slot.
#[derive(Debug, Clone)]
pub struct Content<A: Authority> {
    /// Whether the Secret carries our label.
    pub ours: bool,
    /// The signing authority.
    pub current: Result<A, Flaw>,
    /// The one being introduced, when there is one.
    pub next: Option<Result<A, Flaw>>,
    /// Retired ones that can be read.
    pub previous: Vec<A::Retired>,
}

impl<A: Authority> Content<A> {
    /// The content as generations, when its signing authority is good.
    #[must_use]
    pub fn good(&self) -> Option<Generations<A>> {
        let next = self.next.as_ref().and_then(|next| next.as_ref().ok()).cloned();
        let current = self.current.as_ref().ok()?.clone();
        Some(Generations { current, next, previous: self.previous.clone() })
    }
}

/// The Secret as last seen.
#[derive(Debug, Clone)]
pub enum Secret<A: Authority> {
    /// Not read yet.
    Unread,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(Content<A>),
}

/// What this replica serves.
#[derive(Debug, Clone)]
pub struct Leaf<A> {
    /// Who signed it; with its key, so that it can be renewed whatever becomes of the Secret.
    pub issuer: A,
    /// When it was signed, by this replica's clock.
    pub issued: Millis,
    /// Validity.
    pub not_before: Millis,
    /// Validity.
    pub not_after: Millis,
}

/// Everything a plan depends on.
#[derive(Debug, Clone)]
pub struct Facts<'a, A: Authority> {
    /// This replica's wall clock.
    pub now: Millis,
    /// The Secret as last seen.
    pub secret: &'a Secret<A>,
    /// The last good content seen.
    pub held: Option<&'a Generations<A>>,
    /// What is being served.
    pub leaf: Option<&'a Leaf<A>>,
    /// What the bundles hold.
    pub trust: &'a Trust,
    /// How long things live.
    pub lifetimes: &'a Lifetimes,
}

/// A change of the Secret. Each says what becomes of the generations; see [`apply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// A new authority, where there is none to continue with.
    Found,
    /// What is held, as it is.
    Restore,
    /// What is held, and a new `next` beside it: deleting the Secret asks for a new authority.
    RestoreAndRotate,
    /// A new `next`.
    Introduce,
    /// `next` becomes `current`, `current` becomes `previous`.
    Promote,
    /// Expired `previous` ones and an unusable `next` go.
    Tidy,
}

/// What to do with the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretStep {
    /// Nothing.
    Keep,
    /// Create it; losing the race is success.
    Create(Change),
    /// Replace the content that was seen, and only that.
    Replace(Change),
}

/// What is wrong with the Secret, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// It is ours and is being repaired.
    Repaired(Flaw),
    /// It is not ours and is left alone; nothing of it is used.
    Refused(Flaw),
    /// It is ours, not valid yet by this replica's clock, and this replica has nothing else to serve.
    Early,
}

/// What to do next.
#[derive(Debug, Clone)]
pub struct Plan<A> {
    /// With the Secret.
    pub secret: SecretStep,
    /// Sign a leaf with this authority and serve it.
    pub sign: Option<A>,
    /// Tell people.
    pub complaint: Option<Complaint>,
}

/// The next step.
#[must_use]
pub fn plan<A: Authority>(facts: &Facts<'_, A>) -> Plan<A> {
    let (secret, complaint) = secret_step(facts);
    Plan { secret, sign: signer(facts), complaint }
}

/// What memory can still offer: nothing when it has expired.
fn usable<A: Authority>(held: Option<&Generations<A>>, now: Millis) -> bool {
    held.is_some_and(|held| !held.current.root().expired(now))
}

fn secret_step<A: Authority>(facts: &Facts<'_, A>) -> (SecretStep, Option<Complaint>) {
    let remembered = usable(facts.held, facts.now);
    match facts.secret {
        Secret::Unread => (SecretStep::Keep, None),
        Secret::Absent if remembered => (SecretStep::Create(Change::RestoreAndRotate), None),
        Secret::Absent => (SecretStep::Create(Change::Found), None),
        Secret::Present(content) => match &content.current {
            Ok(current) => good_secret(facts, content, &current.root()),
            Err(flaw) if !content.ours => (SecretStep::Keep, Some(Complaint::Refused(*flaw))),
            Err(flaw) => {
                let next_usable = matches!(&content.next, Some(Ok(next)) if !next.root().expired(facts.now));
                let change = match (remembered, next_usable) {
                    (true, _) => Change::Restore,
                    (false, true) => Change::Promote,
                    (false, false) => Change::Found,
                };
                (SecretStep::Replace(change), Some(Complaint::Repaired(*flaw)))
            }
        },
    }
}

fn good_secret<A: Authority>(
    facts: &Facts<'_, A>,
    content: &Content<A>,
    current: &Root,
) -> (SecretStep, Option<Complaint>) {
    let now = facts.now;
    let early = now < current.not_before;
    if !content.ours {
        let flaw = if current.expired(now) { Some(Flaw::Expired) } else { early.then_some(Flaw::Early) };
        return (SecretStep::Keep, flaw.map(Complaint::Refused));
    }
    let complaint = (early && facts.leaf.is_none()).then_some(Complaint::Early);
    let next = match &content.next {
        Some(Ok(next)) if !next.root().expired(now) => Some(next.root()),
        _ => None,
    };
    let due = now >= facts.lifetimes.due(current) || early;
    let change = match next {
        Some(_) if current.expired(now) => Some(Change::Promote),
        Some(next) if facts.trust.settled(&[next.fingerprint], facts.lifetimes.settle, now) => Some(Change::Promote),
        Some(_) => None,
        None if current.expired(now) => Some(Change::Found),
        None if due => Some(Change::Introduce),
        None => None,
    };
    let untidy = (content.next.is_some() && next.is_none())
        || content.previous.iter().any(|previous| A::retired_root(previous).expired(now));
    let change = change.or_else(|| untidy.then_some(Change::Tidy));
    (change.map_or(SecretStep::Keep, SecretStep::Replace), complaint)
}

/// The authority that the Secret, or else memory, says should sign.
fn wanted<'a, A: Authority>(facts: &Facts<'a, A>) -> Option<&'a A> {
    let seen = match facts.secret {
        Secret::Present(content) => content.current.as_ref().ok(),
        Secret::Unread | Secret::Absent => None,
    };
    seen.or_else(|| facts.held.map(|held| &held.current)).filter(|authority| !authority.root().expired(facts.now))
}

fn signer<A: Authority>(facts: &Facts<'_, A>) -> Option<A> {
    let now = facts.now;
    let wanted = wanted(facts);
    let Some(leaf) = facts.leaf else {
        return wanted.filter(|authority| now >= authority.root().not_before).cloned();
    };
    if let Some(wanted) = wanted {
        let root = wanted.root();
        let other = root.fingerprint != leaf.issuer.root().fingerprint;
        // Somebody's own may begin later, as a clock that is ahead makes it: until then nobody accepts what it signs.
        let trusted = now >= root.not_before && facts.trust.settled(&[root.fingerprint], facts.lifetimes.settle, now);
        if other && (trusted || now >= leaf.not_after) {
            return Some(wanted.clone());
        }
    }
    renewal(facts, leaf).then(|| leaf.issuer.clone())
}

/// Whether the leaf should be signed anew by the same authority: at two thirds of its life, when that makes it last
/// longer, or when the clock was set back so far that the leaf would not be valid yet.
fn renewal<A: Authority>(facts: &Facts<'_, A>, leaf: &Leaf<A>) -> bool {
    let issuer = leaf.issuer.root();
    if issuer.expired(facts.now) {
        return false;
    }
    let due = leaf.issued + (leaf.not_after - leaf.issued) / 3 * 2;
    let lasts_longer = leaf_end(facts.lifetimes, &issuer, facts.now) > leaf.not_after;
    (facts.now >= due && lasts_longer) || facts.now < leaf.not_before
}

/// When a leaf signed at `now` ends: certificates count whole seconds, so the end is rounded up to one, and it never
/// lies behind its authority's end.
#[must_use]
pub fn leaf_end(lifetimes: &Lifetimes, issuer: &Root, now: Millis) -> Millis {
    whole_second_up(now + lifetimes.leaf).min(issuer.not_after)
}

/// The next whole second.
#[must_use]
pub fn whole_second_up(moment: Millis) -> Millis {
    (moment + 999).div_euclid(1000) * 1000
}

/// The generations after a change. `seen`: the content that is replaced; `held`: memory; `fresh`: a new authority,
/// used by the changes that need one. Nothing when the change does not fit, which a plan never asks for.
#[must_use]
pub fn apply<A: Authority>(
    change: Change,
    seen: Option<&Content<A>>,
    held: Option<&Generations<A>>,
    fresh: A,
    now: Millis,
) -> Option<Generations<A>> {
    let unexpired = |mut previous: Vec<A::Retired>| {
        previous.retain(|retired| !A::retired_root(retired).expired(now));
        previous
    };
    let previous = unexpired(seen.map(|content| content.previous.clone()).unwrap_or_default());
    let next = seen.and_then(|content| content.next.as_ref()?.as_ref().ok()).filter(|next| !next.root().expired(now));
    let current = seen.and_then(|content| content.current.as_ref().ok());
    match change {
        Change::Found => Some(Generations { current: fresh, next: None, previous }),
        Change::Restore => held.cloned(),
        Change::RestoreAndRotate => {
            let held = held?.clone();
            Some(Generations { next: Some(held.next.unwrap_or(fresh)), ..held })
        }
        Change::Introduce => Some(Generations { current: current?.clone(), next: Some(fresh), previous }),
        Change::Promote => {
            let mut previous = previous;
            previous.extend(current.map(Authority::retire));
            Some(Generations { current: next?.clone(), next: None, previous: unexpired(previous) })
        }
        Change::Tidy => Some(Generations { current: current?.clone(), next: next.cloned(), previous }),
    }
}
