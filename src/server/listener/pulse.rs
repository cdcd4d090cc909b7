//! What the parts of one connection tell each other: the service counts requests, the wire sees bytes, the task
//! decides when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use std::task::Waker;

use futures::task::AtomicWaker;
use parking_lot::Mutex;

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
    retiring: AtomicBool,
    closing: AtomicBool,
    ending: Mutex<Option<Ending>>,
    waiting: AtomicWaker,
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

    /// Wakes the reading side after the next answer: hyper reads again by itself only when its last read got something,
    /// and the time of silence has to begin.
    pub(super) fn wake_when_answered(&self, waker: &Waker) {
        self.waiting.register(waker);
        if self.in_flight() == 0 {
            waker.wake_by_ref();
        }
    }

    /// From now on answers ask the client to reconnect.
    pub(super) fn retire(&self) {
        self.retiring.store(true, Ordering::Relaxed);
    }

    /// See [`Pulse::retire`].
    pub(super) fn retiring(&self) -> bool {
        self.retiring.load(Ordering::Relaxed)
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
