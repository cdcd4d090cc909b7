//! How many objects of the kinds that people make are kept, of one namespace and of all; pure.
//!
//! In: changes of one kind. Out: the same changes, in which what there is no room for is slim ([`What::slim`]). Of workloads, Services and
//! ServiceAccounts those alone are counted on which more is written than [`ORDINARY`]. Promises: one
//! namespace comes to no more than [`OBJECTS`], and to no more bytes than are left for all others then, so that whoever comes new finds room
//! however many fill theirs; the rooms of a process together have a bound, too ([`Account`]), which leaves each kind a floor; what is being deleted is left
//! out like everything, for it may never go, and its finalizers stay known, so that ours comes off; what cuts off agents is never left out, unless it is
//! larger than [`CUTS_OFF`]; who was read stays read while it does not grow, whatever
//! others have taken since, and so whatever is listed again in whichever order; what one selection leaves out counts as long as another delivers it; once something
//! goes, [`Room::admit`] and [`Room::made`] say that those without room are to be read anew, by every watch of the kind.

mod account;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::bounds::{CARD, OBJECT, OBJECTS, OBJECTS_KEPT, POLICY, RIGHT, RUNTIME, SIGNED, STATUS};
use crate::config::reading::{block, weight};
use crate::domain::keys;
use crate::store::{
    AgentCardSeen, AgentDeploymentSeen, AgentRuntimeSeen, Change, ClaimSeen, CustomSeen, Key, Kind, NetworkPolicySeen,
    Observed, Over, OwnerReference, RightSeen, SelectionId, ServiceAccountSeen, SignedCardSeen, What,
};
pub(super) use account::Account;
use account::{Entry, FLOOR};

/// Bytes that are kept of all objects of a kind of which no more is counted than who owns them and their fields: of Deployments, Services and
/// ServiceAccounts. Whoever may write one writes under any manager's name.
const OWNERSHIP_KEPT: usize = 16 * 1024 * 1024;
/// Bytes of the same that an object may take without being counted, so that an agent of the usual size depends on nobody else.
const ORDINARY: usize = 8 * 1024;
/// Bytes of a NetworkPolicy that cuts off agents for which there is always room: more than ours take with as many places of the API server as are named.
/// Of a larger one ours is put back, whether it is read or not.
const CUTS_OFF: usize = 256 * 1024;
/// Bytes that the finalizers of an object take which are among [`OBJECT`]: that ours is put on takes nobody's place.
const FINALIZERS: usize = 1024;

/// What one object holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    bytes: usize,
    over: Option<Over>,
    /// It would have room beside those of its kind, and has none beside those of all kinds.
    waits: bool,
    /// The selections that deliver it, each as its bit.
    from: u64,
}

impl Held {
    fn entry(self) -> Entry {
        Entry { bytes: self.bytes, waits: self.waits }
    }
}

/// The objects of one namespace.
#[derive(Debug, Default)]
struct Space {
    objects: HashMap<Arc<str>, Held>,
    bytes: usize,
    /// Those that are read.
    count: usize,
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(super) struct Room {
    spaces: HashMap<Arc<str>, Space>,
    /// Of all namespaces.
    held: usize,
    over: BTreeMap<Over, usize>,
    /// Those that have no room beside the objects of all kinds.
    waiting: usize,
    /// How often room was made for those that had none.
    made: u64,
    /// What all rooms of the process hold. Whoever has its lock asks for no other.
    account: Arc<Mutex<Account>>,
}

impl Room {
    /// The room of one of the kinds that share an account.
    pub(super) fn sharing(account: Arc<Mutex<Account>>) -> Self {
        Self { account, ..Self::default() }
    }

    /// The change as it goes on, and whether others may have room now that had none.
    pub(super) fn admit(&mut self, mut change: Change) -> (Change, bool) {
        if self.stays_with_others(&change) {
            return (change, false);
        }
        let mut account = self.account.lock();
        let namespace = &change.key.namespace;
        let space = self.spaces.entry(namespace.clone()).or_default();
        let known = space.objects.remove(&change.key.name);
        space.count -= usize::from(known.is_some_and(|known| known.over.is_none()));
        let before = known.unwrap_or_default();
        let from = before.from | change.via.selection().map_or(0, SelectionId::bit);
        (space.bytes, self.held) = (space.bytes - before.bytes, self.held - before.bytes);
        account.leaves(namespace, before.entry());
        let after = change.now.as_deref().and_then(measured).map(|seen| {
            let bytes = seen.bytes;
            // Twice: what it takes is not left for others.
            let fits = |all: usize| space.bytes + 2 * bytes <= all.saturating_sub(self.held);
            let is_in_kind = fits(most(change.kind));
            let was_read = known.is_some_and(|known| known.over.is_none() && bytes <= known.bytes);
            let over = seen.over.or(match () {
                () if was_read || (bytes <= CUTS_OFF && cuts_off(change.kind, &change.key)) => None,
                () if space.count >= OBJECTS => Some(Over::Count),
                () if is_in_kind && (fits(FLOOR) || account.has_room(namespace, bytes)) => None,
                () => Some(Over::Total),
            });
            let waits = over == Some(Over::Total) && is_in_kind;
            Held { bytes: if over.is_some() { 0 } else { bytes }, over, waits, from }
        });
        account.takes(namespace, before.entry(), after.unwrap_or_default().entry());
        drop(account);
        if let Some(held) = after {
            space.objects.insert(change.key.name.clone(), held);
            space.count += usize::from(held.over.is_none());
            (space.bytes, self.held) = (space.bytes + held.bytes, self.held + held.bytes);
        } else if space.objects.is_empty() {
            self.spaces.remove(namespace);
        }
        let after = after.unwrap_or_default();
        self.waiting = self.waiting - usize::from(before.waits) + usize::from(after.waits);
        for (over, more) in [(before.over, false), (after.over, true)] {
            let Some(over) = over else { continue };
            let count = self.over.entry(over).or_default();
            *count = if more { *count + 1 } else { count.saturating_sub(1) };
        }
        if let Some(over @ (Over::Count | Over::Total)) = after.over {
            change.now = change.now.map(|now| slim(&now, over));
        }
        let waits = [Over::Count, Over::Total].iter().any(|over| self.count(*over) > 0);
        let again = waits && after.bytes < before.bytes;
        self.made += u64::from(again);
        (change, again)
    }

    /// Whether a selection that has nothing of an object leaves it to another one, which delivers it as before.
    fn stays_with_others(&mut self, change: &Change) -> bool {
        let (None, Some(selection)) = (&change.now, change.via.selection()) else { return false };
        let space = self.spaces.get_mut(&change.key.namespace);
        let Some(held) = space.and_then(|space| space.objects.get_mut(&change.key.name)) else { return false };
        held.from &= !selection.bit();
        held.from != 0
    }

    /// A larger number each time that others may have room that had none: the first of room among those of the kind, the second of room among those of
    /// all kinds, which is 0 while nobody here waits for that. Whoever saw a smaller one reads everything anew.
    pub(super) fn made(&self) -> [u64; 2] {
        [self.made, if self.waiting > 0 { self.account.lock().made() } else { 0 }]
    }

    /// How many are over that bound.
    pub(super) fn count(&self, over: Over) -> usize {
        self.over.get(&over).copied().unwrap_or_default()
    }

    /// Bytes that are kept.
    pub(super) fn held(&self) -> usize {
        self.held
    }
}

/// Bytes that are kept of all objects of a kind.
fn most(kind: Kind) -> usize {
    match kind {
        Kind::Deployment | Kind::Service | Kind::ServiceAccount => OWNERSHIP_KEPT,
        _ => OBJECTS_KEPT,
    }
}

/// One object, as far as it counts here.
struct Measured {
    bytes: usize,
    over: Option<Over>,
}

/// `None` for kinds that are not bounded, and for objects that take no more than [`ORDINARY`].
fn measured(observed: &Observed) -> Option<Measured> {
    let counted = |bytes: usize| (bytes > ORDINARY).then_some(Measured { bytes, over: None });
    Some(match &observed.what {
        What::Workload(seen) => return counted(of_deployment(seen.agent.as_deref()?)),
        What::Service(seen) => return counted(of_fields(&seen.claim)),
        What::ServiceAccount(seen) => return counted(of_account(seen)),
        What::AgentRuntime(seen) => Measured { bytes: of_runtime(seen), over: seen.over },
        // One with more owners than are kept counts as one without any.
        What::AgentCard(seen) => Measured { bytes: of_card(seen), over: None },
        What::Right(seen) => Measured { bytes: of_right(seen), over: None },
        What::NetworkPolicy(seen) => Measured { bytes: of_policy(seen), over: seen.over },
        What::SignedCard(seen) => Measured { bytes: of_signed(seen), over: None },
        what => {
            let seen = what.custom()?;
            Measured { bytes: of_custom(seen), over: seen.over }
        }
    })
}

fn slim(observed: &Arc<Observed>, over: Over) -> Arc<Observed> {
    let Some(what) = observed.what.slim(over) else { return observed.clone() };
    Arc::new(Observed { uid: observed.uid.clone(), version: observed.version, what })
}

fn of_runtime(seen: &AgentRuntimeSeen) -> usize {
    let finalizers = of_finalizers(&seen.finalizers);
    let status = block(seen.status.text().len()).saturating_sub(STATUS);
    RUNTIME + weight(&seen.spec) + finalizers + status
}

fn of_card(seen: &AgentCardSeen) -> usize {
    CARD + weight(&seen.status) + of_finalizers(&seen.finalizers) + of_owners(&seen.owners)
}

fn of_finalizers(finalizers: &[Box<str>]) -> usize {
    finalizers.iter().map(|name| size_of::<Box<str>>() + block(name.len())).sum()
}

fn of_owners(owners: &[OwnerReference]) -> usize {
    let owner = |owner: &OwnerReference| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        size_of::<OwnerReference>() + texts.into_iter().map(|text| block(text.len())).sum::<usize>()
    };
    owners.iter().map(owner).sum()
}

fn of_fields(claim: &ClaimSeen) -> usize {
    claim.fields.as_ref().map_or(0, |fields| block(fields.len()))
}

fn of_deployment(seen: &AgentDeploymentSeen) -> usize {
    let fields = seen.fields.as_ref().map_or(0, |fields| block(fields.len()));
    fields + seen.conditions.as_ref().map_or(0, |conditions| weight(conditions))
}

fn of_account(seen: &ServiceAccountSeen) -> usize {
    of_owners(&seen.owners) + seen.claim.as_deref().map_or(0, of_fields)
}

fn of_right(seen: &RightSeen) -> usize {
    RIGHT + weight(&seen.gives)
}

fn of_policy(seen: &NetworkPolicySeen) -> usize {
    let claim = seen.claim.as_deref().map_or(0, of_fields);
    let declared = seen.declared.as_ref().map_or(0, |says| block(says.len()));
    POLICY + seen.spec.as_ref().map_or(0, |spec| weight(spec)) + claim + declared
}

fn of_signed(seen: &SignedCardSeen) -> usize {
    SIGNED + block(seen.version.len()) + seen.owner.as_ref().map_or(0, |owner| block(owner.len()))
}

/// What cuts off every agent of a namespace, or everybody: whatever others fill the namespace with, it is read.
fn cuts_off(kind: Kind, key: &Key) -> bool {
    kind == Kind::NetworkPolicy && [keys::DEFAULT_DENY, keys::QUARANTINE_POLICY].contains(&&*key.name)
}

/// What a status takes that says what statuses say is counted with the object; no more than this, so that one that changes frees no room.
const STATUS_OF_CUSTOM: usize = 16 * 1024;

fn of_custom(seen: &CustomSeen) -> usize {
    let texts = |map: &BTreeMap<String, String>| {
        map.iter().map(|(key, value)| 128 + block(key.len()) + block(value.len())).sum::<usize>()
    };
    let status = weight(&seen.status).saturating_sub(STATUS_OF_CUSTOM);
    let finalizers = of_finalizers(&seen.finalizers).saturating_sub(FINALIZERS);
    OBJECT + weight(&seen.spec) + status + finalizers + texts(&seen.labels) + texts(&seen.annotations)
}

#[cfg(test)]
mod tests;
