//! What the parts of one connection tell each other: the service counts requests, the wire sees bytes, the task
//! decides when it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Waker;

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Why a connection was ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// No request for too long.
    Idle,
    /// A head or frame was begun and not finished.
    Head,
    /// The client does not read its answers.
    Write,
    /// Too many bytes without a request.
    Chatter,
    /// Too many requests given up.
    Abandoned,
    /// Quiet while the server closes.
    Closing,
    /// Cut off when the grace was over.
    Grace,
    /// Others needed its room, or there was none for it.
    Shed,
}

impl Ending {
    /// The metric label.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Ending::Idle => "idle",
            Ending::Head => "head",
            Ending::Write => "write",
            Ending::Chatter => "chatter",
            Ending::Abandoned => "abandoned",
            Ending::Closing => "closing",
            Ending::Grace => "grace",
            Ending::Shed => "shed",
        }
    }
}

/// The state of one connection. The counters only steer deadlines, so relaxed order is enough.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    started: AtomicU32,
    in_flight: AtomicU32,
    answered: AtomicU32,
    head_seen: AtomicBool,
    retiring: AtomicBool,
    closing: AtomicBool,
    ending: Mutex<Option<Ending>>,
    waiting: AtomicWaker,
    moves_on: Notify,
    untaken: Mutex<Answers>,
}

/// Answers that the client has not taken yet, oldest first; each with its number and since when there is one.
#[derive(Debug, Default)]
struct Answers {
    next: u64,
    waiting: VecDeque<(u64, Instant)>,
}

impl Pulse {
    /// Requests whose head was read, so far (wraps around).
    pub(super) fn started(&self) -> u32 {
        self.started.load(Ordering::Relaxed)
    }

    /// Requests being answered.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Requests that were given up before they were answered.
    pub(super) fn abandoned(&self) -> u32 {
        self.started().wrapping_sub(self.in_flight()).wrapping_sub(self.answered.load(Ordering::Relaxed))
    }

    /// A whole HTTP/1 head has come while no request was being answered, and it was looked at.
    pub(super) fn see_head(&self) {
        self.head_seen.store(true, Ordering::Relaxed);
    }

    /// Whether the request that begins now has such a head; each serves one request.
    pub(super) fn take_head(&self) -> bool {
        self.head_seen.swap(false, Ordering::Relaxed)
    }

    /// Wakes the reading side after the next answer: hyper reads again by itself only when its last read got something,
    /// and the time of silence has to begin.
    pub(super) fn wake_when_answered(&self, waker: &Waker) {
        self.waiting.register(waker);
        if self.in_flight() == 0 {
            waker.wake_by_ref();
        }
    }

    /// There is an answer; until what is returned is dropped it is not taken.
    pub(super) fn untaken(self: &Arc<Self>) -> Untaken {
        let mut answers = self.untaken.lock();
        let number = answers.next;
        answers.next += 1;
        answers.waiting.push_back((number, Instant::now()));
        Untaken { pulse: self.clone(), number }
    }

    /// Since when the oldest answer waits that is not taken.
    pub(super) fn untaken_since(&self) -> Option<Instant> {
        self.untaken.lock().waiting.front().map(|(_, since)| *since)
    }

    /// From now on answers ask the client to reconnect.
    pub(super) fn retire(&self) {
        self.retiring.store(true, Ordering::Relaxed);
    }

    /// See [`Pulse::retire`].
    pub(super) fn retiring(&self) -> bool {
        self.retiring.load(Ordering::Relaxed)
    }

    /// The client is to be asked to go on with another connection.
    pub(super) fn move_on(&self) {
        self.moves_on.notify_one();
    }

    /// Returns once that was said.
    pub(super) async fn told_to_move_on(&self) {
        self.moves_on.notified().await;
    }

    /// From now on a quiet connection ends.
    pub(super) fn close(&self) {
        self.retire();
        self.closing.store(true, Ordering::Relaxed);
    }

    /// See [`Pulse::close`].
    pub(super) fn closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// We end the connection; the first reason counts.
    pub(super) fn end(&self, ending: Ending) {
        self.ending.lock().get_or_insert(ending);
    }

    /// Why we ended it, if we did.
    pub(super) fn ending(&self) -> Option<Ending> {
        *self.ending.lock()
    }
}

/// An answer on its way to the client.
#[derive(Debug)]
pub(super) struct Untaken {
    pulse: Arc<Pulse>,
    number: u64,
}

impl Drop for Untaken {
    fn drop(&mut self) {
        let mut answers = self.pulse.untaken.lock();
        if let Ok(at) = answers.waiting.binary_search_by_key(&self.number, |(number, _)| *number) {
            answers.waiting.remove(at);
        }
    }
}

/// One request under way; dropping it without [`InFlight::answered`] counts as given up.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Pulse>);

impl InFlight {
    /// A head was read.
    pub(super) fn begin(pulse: &Arc<Pulse>) -> Self {
        pulse.started.fetch_add(1, Ordering::Relaxed);
        pulse.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(pulse.clone())
    }

    /// There is an answer.
    pub(super) fn answered(self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.waiting.wake();
    }
}
