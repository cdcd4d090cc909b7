//! Reading a body with a cap, a deadline and a shared budget.
//!
//! Promises: nothing is allocated because a header announced it; the first [`FREE`] bytes of a body always have
//! room, so a few huge bodies cannot push out the ordinary ones; room is given back when the body is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::BODY_LIMIT;

/// What a body may hold without using the budget, in bytes.
pub(super) const FREE: usize = 64 * 1024;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the body is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    #[error("the body did not arrive in the time the caller waits")]
    Late,
    #[error("the body broke off")]
    Broken,
    #[error("too many large bodies are being read; try again")]
    NoRoom,
}

impl Fault {
    /// The metric label.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Fault::TooLarge => "body_too_large",
            Fault::Late => "body_late",
            Fault::Broken => "body_broken",
            Fault::NoRoom => "body_budget",
        }
    }
}

/// Bytes that all bodies may hold together.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }

    fn take(&self, bytes: usize) -> Result<(), Fault> {
        let take = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map(drop).map_err(|_| Fault::NoRoom)
    }
}

/// A whole body, and its part of the budget.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Bytes,
    _room: Room,
}

impl std::ops::Deref for Held {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Debug)]
struct Room {
    budget: Arc<Budget>,
    taken: usize,
}

impl Room {
    /// Room for a body of `total` bytes.
    fn grow(&mut self, total: usize) -> Result<(), Fault> {
        let wanted = total.saturating_sub(FREE);
        if wanted > self.taken {
            self.budget.take(wanted - self.taken)?;
            self.taken = wanted;
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}

/// Reads `body`, announced as `declared` bytes, until `deadline`.
pub(super) async fn collect(
    body: Body,
    declared: Option<u64>,
    budget: &Arc<Budget>,
    deadline: Instant,
) -> Result<Held, Fault> {
    if declared.is_some_and(|declared| usize::try_from(declared).map_or(true, |declared| declared > BODY_LIMIT)) {
        return Err(Fault::TooLarge);
    }
    let room = Room { budget: budget.clone(), taken: 0 };
    tokio::time::timeout_at(deadline, gather(body, declared, room)).await.map_err(|_| Fault::Late)?
}

async fn gather(mut body: Body, declared: Option<u64>, mut room: Room) -> Result<Held, Fault> {
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        // Trailers say nothing to us.
        let Ok(piece) = frame.map_err(|_| Fault::Broken)?.into_data() else { continue };
        let total = first.len() + all.len() + piece.len();
        if total > BODY_LIMIT {
            return Err(Fault::TooLarge);
        }
        room.grow(total)?;
        if first.is_empty() && all.is_empty() {
            // Most reviews arrive in one piece, and then are never copied.
            first = piece;
            if declared.is_some_and(|declared| first.len() as u64 == declared) {
                break;
            }
        } else {
            if all.is_empty() {
                all.reserve(total.max(FREE));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&piece);
        }
    }
    let bytes = if all.is_empty() { first } else { Bytes::from(all) };
    Ok(Held { bytes, _room: room })
}
