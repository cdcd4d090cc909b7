//! Reading a body with a cap, a deadline and its connection's quota.
//!
//! Promises: nothing is allocated because a header announced it; every byte of the buffer is charged before it is there; no piece of
//! the connection's own buffer is kept while more is awaited; room is given back when the body is dropped.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::BODY_LIMIT;
use crate::server::listener::quota::Charge;

/// The least that a buffer of several pieces grows to.
const LEAST: usize = 4 * 1024;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the body is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    #[error("the body did not arrive in the time the caller waits")]
    Late,
    #[error("the body broke off")]
    Broken,
    #[error("too much is being read; try again")]
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

/// A whole body, and what it is charged.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Bytes,
    room: Room,
}

impl Held {
    /// What the request is charged.
    pub(super) fn charge(&self) -> &Charge {
        &self.room.charge
    }
}

impl std::ops::Deref for Held {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body's part of the request's charge.
#[derive(Debug)]
struct Room {
    charge: Arc<Charge>,
    taken: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.charge.take(bytes).map_err(|_| Fault::NoRoom)?;
        self.taken += bytes;
        Ok(())
    }

    /// Makes `buffer` large enough for `total` bytes. Old and new exist at once for a moment, and so both are charged.
    fn reserve(&mut self, buffer: &mut Vec<u8>, total: usize) -> Result<(), Fault> {
        let before = buffer.capacity();
        if total > before {
            let capacity = total.next_power_of_two().clamp(LEAST, BODY_LIMIT);
            self.take(capacity)?;
            buffer.reserve_exact(capacity - buffer.len());
            self.charge.give(before);
            self.taken -= before;
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.charge.give(self.taken);
    }
}

/// Reads `body`, announced as `declared` bytes, until `deadline`.
pub(super) async fn collect(
    body: Body,
    declared: Option<u64>,
    charge: Arc<Charge>,
    deadline: Instant,
) -> Result<Held, Fault> {
    if declared.is_some_and(|declared| usize::try_from(declared).map_or(true, |declared| declared > BODY_LIMIT)) {
        return Err(Fault::TooLarge);
    }
    let room = Room { charge, taken: 0 };
    tokio::time::timeout_at(deadline, gather(body, declared, room)).await.map_err(|_| Fault::Late)?
}

async fn gather(mut body: Body, declared: Option<u64>, mut room: Room) -> Result<Held, Fault> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        // Trailers say nothing to us.
        let Ok(piece) = frame.map_err(|_| Fault::Broken)?.into_data() else { continue };
        let total = all.len() + piece.len();
        if total > BODY_LIMIT {
            return Err(Fault::TooLarge);
        }
        if all.is_empty() && (declared == Some(total as u64) || body.is_end_stream()) {
            // Most reviews arrive in one piece, and then are never copied.
            room.take(total)?;
            return Ok(Held { bytes: piece, room });
        }
        room.reserve(&mut all, total)?;
        all.extend_from_slice(&piece);
    }
    Ok(Held { bytes: Bytes::from(all), room })
}
