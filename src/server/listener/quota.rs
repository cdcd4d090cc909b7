//! What the connections of one listener hold in memory, and which of them go before it is too much.
//!
//! In: connections with their addresses, bytes taken and given back, reviews that were understood. Out: refusals, and connections
//! that are told to end. Promises, whatever clients do:
//!
//! * every byte is counted from the first: what a connection costs by being there, handshakes, heads, bodies, answers;
//! * together they never take more than [`Bounds::memory`], one connection no more than half of it and, before its first valid
//!   review, an eighth; what of bodies and answers lies above [`SMALL`] has half in all, so that large ones never displace small ones, and on one
//!   connection less than that may hold: an API server sends the reviews of all its users over one;
//! * connections that never carried a valid review (unproven) have half of the memory in all, three quarters with those that are
//!   ending; when they come near it, the heaviest connection of the address that holds most of it ends;
//! * above half of the connections, the oldest unproven one of the address that has most of them ends, unless no more than
//!   an eighth are unproven: who comes new has to have time for a review;
//! * proven ones, and those that showed a certificate we asked for, are never ended. There is no fixed number for an address: all API
//!   servers may come from one, and without HTTP/2 they open a connection for each review.
//!
//! One lock for all of it: it is held for some ten instructions, a few times a review, and never across anything that waits.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Up to here a body or an answer is an ordinary one.
pub const SMALL: usize = 64 * 1024;

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections, as many as the listener lets in.
    pub connections: usize,
    /// Bytes.
    pub memory: usize,
}

impl Bounds {
    fn of_one(self, proven: bool) -> usize {
        self.memory / if proven { 2 } else { 8 }
    }

    fn of_large(self) -> usize {
        self.memory / 2
    }

    /// A sixteenth of all is left for small ones.
    fn of_large_of_one(self) -> usize {
        self.memory / 16 * 7
    }

    fn of_unproven(self) -> usize {
        self.memory / 2
    }

    /// Those that are told to end hold theirs for a moment.
    fn of_unproven_and_ending(self) -> usize {
        self.memory / 4 * 3
    }

    /// From here on unproven connections end, so that there is room while they do.
    fn relief(self) -> usize {
        self.memory / 16 * 7
    }
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much is under way; try again")]
pub struct Full;

/// Who is counted together: an address, for IPv6 the /64 that one machine usually has to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin(IpAddr);

impl Origin {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => Self(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
        }
    }
}

/// Unproven connections that are not told to end yet.
#[derive(Debug, Default)]
struct Unproven {
    bytes: usize,
    ids: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    origin: Origin,
    held: usize,
    /// Of that, what lies above [`SMALL`].
    large: usize,
    proven: bool,
    told: bool,
    end: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    held_by_proven: usize,
    large: usize,
    proven_count: usize,
    next: u64,
    entries: HashMap<u64, Entry>,
    unproven: HashMap<Origin, Unproven>,
    unproven_count: usize,
    unproven_bytes: usize,
}

/// What is looked for in an address that has to give something up.
#[derive(Debug, Clone, Copy)]
enum Scarce {
    Connections,
    Memory,
}

impl State {
    /// `delta` bytes more or less for one connection, wherever they are counted.
    fn book(&mut self, id: u64, from: usize, to: usize) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let moved = |sum: &mut usize| *sum = (*sum + to).saturating_sub(from);
        moved(&mut self.held);
        moved(&mut entry.held);
        for large in [&mut self.large, &mut entry.large] {
            *large = (*large + to.saturating_sub(SMALL)).saturating_sub(from.saturating_sub(SMALL));
        }
        if entry.proven {
            moved(&mut self.held_by_proven);
        } else if !entry.told {
            moved(&mut self.unproven_bytes);
            if let Some(sum) = self.unproven.get_mut(&entry.origin) {
                moved(&mut sum.bytes);
            }
        }
    }

    fn change(&mut self, bounds: Bounds, id: u64, from: usize, to: usize) -> Result<(), Full> {
        if to > from {
            let more = to - from;
            let entry = self.entries.get(&id).ok_or(Full)?;
            let more_large = to.saturating_sub(SMALL) - from.saturating_sub(SMALL);
            // A small one makes nothing large, whatever else is.
            let too_large = more_large > 0
                && (self.large + more_large > bounds.of_large() || entry.large + more_large > bounds.of_large_of_one());
            let over = entry.held + more > bounds.of_one(entry.proven) || too_large;
            let proven = entry.proven;
            if over || self.told(id) {
                return Err(Full);
            }
            if !proven {
                self.relieve(bounds, more);
                let with_ending = self.held - self.held_by_proven + more;
                let over = self.unproven_bytes + more > bounds.of_unproven();
                if over || with_ending > bounds.of_unproven_and_ending() || self.told(id) {
                    return Err(Full);
                }
            }
            if self.held + more > bounds.memory {
                return Err(Full);
            }
        }
        self.book(id, from, to);
        Ok(())
    }

    fn told(&self, id: u64) -> bool {
        self.entries.get(&id).is_none_or(|entry| entry.told)
    }

    /// Ends unproven connections until `more` bytes fit below the mark.
    fn relieve(&mut self, bounds: Bounds, more: usize) {
        while self.unproven_bytes + more > bounds.relief() {
            let Some(victim) = self.victim(Scarce::Memory) else { return };
            self.tell(victim);
        }
    }

    /// Ends unproven connections until there is room for new ones.
    fn thin_out(&mut self, bounds: Bounds) {
        let half = (bounds.connections / 2).saturating_sub(self.proven_count);
        let room = half.max(bounds.connections / 8).max(1);
        while self.unproven_count > room {
            let Some(victim) = self.victim(Scarce::Connections) else { return };
            self.tell(victim);
        }
    }

    fn victim(&self, scarce: Scarce) -> Option<u64> {
        let weight = |sum: &Unproven| match scarce {
            Scarce::Connections => sum.ids.len(),
            Scarce::Memory => sum.bytes,
        };
        let most = self.unproven.values().max_by_key(|sum| weight(sum))?;
        match scarce {
            Scarce::Connections => most.ids.first().copied(),
            Scarce::Memory => {
                // Not the heaviest: among many that are idle that would be the one with a review.
                let much = most.bytes / most.ids.len().max(1) / 2;
                most.ids.iter().find(|id| self.entries.get(id).is_some_and(|entry| entry.held >= much)).copied()
            }
        }
    }

    /// Takes a connection out of those that are unproven and stay.
    fn leave_unproven(&mut self, id: u64) {
        let Some(entry) = self.entries.get(&id).filter(|entry| !entry.proven && !entry.told) else { return };
        let Some(sum) = self.unproven.get_mut(&entry.origin) else { return };
        sum.bytes = sum.bytes.saturating_sub(entry.held);
        sum.ids.remove(&id);
        if sum.ids.is_empty() {
            self.unproven.remove(&entry.origin);
        }
        self.unproven_bytes = self.unproven_bytes.saturating_sub(entry.held);
        self.unproven_count = self.unproven_count.saturating_sub(1);
    }

    fn tell(&mut self, id: u64) {
        self.leave_unproven(id);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.told = true;
            entry.end.notify_one();
        }
    }
}

/// What the connections of one listener hold.
#[derive(Debug)]
pub struct Quota {
    bounds: Bounds,
    state: Mutex<State>,
}

impl Quota {
    /// Nothing held yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, state: Mutex::default() })
    }

    /// A connection from `address` that takes `cost` bytes by being there.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr, cost: usize) -> Result<Arc<Account>, Full> {
        let origin = Origin::of(address);
        let end = Arc::new(Notify::new());
        let mut state = self.state.lock();
        let id = state.next;
        state.next += 1;
        state.entries.insert(id, Entry { origin, held: 0, large: 0, proven: false, told: false, end: end.clone() });
        state.unproven.entry(origin).or_default().ids.insert(id);
        state.unproven_count += 1;
        state.thin_out(self.bounds);
        let opened = state.change(self.bounds, id, 0, cost);
        drop(state);
        let account = Account {
            quota: self.clone(),
            id,
            address,
            cost: AtomicUsize::new(0),
            proven: AtomicBool::new(false),
            end,
        };
        opened?;
        account.cost.store(cost, Ordering::Relaxed);
        Ok(Arc::new(account))
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state.lock().held
    }
}

/// What one connection holds.
#[derive(Debug)]
pub struct Account {
    quota: Arc<Quota>,
    id: u64,
    address: IpAddr,
    cost: AtomicUsize,
    proven: AtomicBool,
    end: Arc<Notify>,
}

impl Account {
    /// One that belongs to no connection, for a router that is called without one.
    #[must_use]
    pub fn alone(bounds: Bounds) -> Arc<Self> {
        let (quota, end) = (Quota::new(bounds), Arc::default());
        let entry = Entry {
            origin: Origin(std::net::Ipv4Addr::LOCALHOST.into()),
            held: 0,
            large: 0,
            proven: true,
            told: false,
            end: Arc::clone(&end),
        };
        let mut state = quota.state.lock();
        state.entries.insert(0, entry);
        state.proven_count = 1;
        drop(state);
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        Arc::new(Self { quota, id: 0, address, cost: AtomicUsize::new(0), proven: AtomicBool::new(true), end })
    }

    /// A review that we understood came here, or a certificate that we asked for: this connection is not ended for others' sake.
    pub fn prove(&self) {
        if self.proven.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut state = self.quota.state.lock();
        state.leave_unproven(self.id);
        let Some(entry) = state.entries.get_mut(&self.id).filter(|entry| !entry.told) else { return };
        entry.proven = true;
        let held = entry.held;
        state.held_by_proven += held;
        state.proven_count += 1;
    }

    /// Where it comes from.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address.to_canonical()
    }

    /// Whether it carried a valid review, or showed a certificate that we asked for.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// From now on the connection costs `cost` by being there.
    pub(super) fn cost(&self, cost: usize) -> Result<(), Full> {
        let before = self.cost.load(Ordering::Relaxed);
        self.quota.state.lock().change(self.quota.bounds, self.id, before, cost)?;
        self.cost.store(cost, Ordering::Relaxed);
        Ok(())
    }

    /// Tells the connection to end: it needs what there is no room for.
    pub(super) fn give_up(&self) {
        self.quota.state.lock().tell(self.id);
    }

    /// Returns when the connection has to end.
    pub(super) async fn told_to_end(&self) {
        self.end.notified().await;
    }

    /// Nothing yet, to grow.
    #[must_use]
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { account: self.clone(), held: AtomicUsize::new(0) }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut state = self.quota.state.lock();
        state.book(self.id, self.cost.load(Ordering::Relaxed), 0);
        state.leave_unproven(self.id);
        if state.entries.remove(&self.id).is_some_and(|entry| entry.proven) {
            state.proven_count = state.proven_count.saturating_sub(1);
        }
    }
}

/// Bytes held for one purpose; given back when dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    held: AtomicUsize,
}

impl Charge {
    /// The connection it belongs to.
    #[must_use]
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Exactly `bytes` from now on.
    ///
    /// # Errors
    /// When that is more than there is room for; what was held stays held.
    pub fn resize(&self, bytes: usize) -> Result<(), Full> {
        self.change(|_| bytes)
    }

    /// `bytes` more.
    ///
    /// # Errors
    /// As [`Charge::resize`].
    pub fn take(&self, bytes: usize) -> Result<(), Full> {
        self.change(|held| held.saturating_add(bytes))
    }

    /// `bytes` less.
    pub fn give(&self, bytes: usize) {
        // Less is never refused.
        let _ = self.change(|held| held.saturating_sub(bytes));
    }

    /// Under the lock from beginning to end, since a review that was given up may still give back what its request goes on with.
    fn change(&self, to: impl FnOnce(usize) -> usize) -> Result<(), Full> {
        let quota = &self.account.quota;
        let mut state = quota.state.lock();
        let before = self.held.load(Ordering::Relaxed);
        let bytes = to(before);
        state.change(quota.bounds, self.account.id, before, bytes)?;
        self.held.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let _ = self.resize(0);
    }
}
