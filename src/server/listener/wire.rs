//! The byte stream under hyper, with a deadline for each phase.
//!
//! In: a stream (TLS already taken off). Out: the same bytes. Promises:
//!
//! * silence between requests ends the connection after `idle`, a head or frame once begun must be complete after
//!   `head`, an answer must be taken within `write`, whether the client stops reading or HTTP/2's window keeps it back; while a
//!   request is answered nothing else is timed here, since its body has the review's own deadline;
//! * a connection cannot send more than its requests need plus `chatter` bytes;
//! * requests that are given up cost no other one: an API server sends those of all its users over one connection, and any of them may hang up as
//!   often as they like. The client is asked to move on, and is cut off only when it goes on all the same;
//! * the part of a head that is not whole yet is charged to the connection, and so is what waits for a client that does not read;
//! * an ambiguous HTTP/1 head reaches hyper spoilt, so that it is answered with 400 and the connection closed; a head that comes before
//!   the answer to the request ahead of it stands somewhere in what may be a body, is not looked at, and is refused by its service.
//!
//! Ending is shown to hyper as the end of the stream, so that what is under way is still answered.
//! hyper's own `header_read_timeout` also runs while a connection is idle, hence this file.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::Limits;
use super::metered::{COVERED, Undelivered};
use super::pulse::{Ending, Pulse};
use super::quota::{Account, Charge};
use super::scan::{FrameScan, HeadScan, Progress};

/// How requests are framed on this connection.
#[derive(Debug)]
pub(super) enum Framing {
    /// HTTP/1.1; the head being read.
    Heads(HeadScan),
    /// HTTP/2.
    Frames(FrameScan),
}

/// So many times the requests that may be given up before the client is asked to move on end the connection with whatever is on it: a client that
/// was asked sends no others.
const CUT_OFF: u32 = 4;
/// What TLS may hold of answers that the client does not take.
const UNSENT: usize = 64 * 1024;

/// What the reading side waits for, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The next request.
    Idle(Instant),
    /// The rest of a head or frame.
    Head(Instant),
    /// Nothing: a request is being answered.
    Serving,
}

/// Where a connection is counted.
#[derive(Debug)]
pub(super) struct Counted {
    /// Its requests.
    pub(super) pulse: Arc<Pulse>,
    /// What it holds.
    pub(super) account: Arc<Account>,
    /// What TLS holds of it.
    pub(super) undelivered: Undelivered,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    pulse: Arc<Pulse>,
    limits: Limits,
    framing: Framing,
    stage: Stage,
    started: u32,
    credit: usize,
    undelivered: Undelivered,
    head: usize,
    unread: Charge,
    unsent: Charge,
    read_timer: Option<Pin<Box<Sleep>>>,
    write_timer: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Wire<S> {
    /// A fresh connection.
    pub(super) fn new(stream: S, framing: Framing, limits: Limits, counted: Counted) -> Self {
        let Counted { pulse, account, undelivered } = counted;
        Self {
            stream,
            pulse,
            limits,
            framing,
            stage: Stage::Idle(Instant::now()),
            started: 0,
            credit: limits.chatter,
            undelivered,
            head: 0,
            unread: account.charge(),
            unsent: account.charge(),
            read_timer: None,
            write_timer: None,
        }
    }

    /// Follows what the service has counted since the last read.
    fn follow(&mut self) {
        let (started, in_flight) = (self.pulse.started(), self.pulse.in_flight());
        if started != self.started {
            self.started = started;
            let under_way = usize::try_from(in_flight.max(1)).unwrap_or(1);
            self.credit = self.limits.chatter + under_way * (self.limits.body_size + self.limits.head_size);
            self.stage = Stage::Serving;
            // From here on the request itself is charged.
            if std::mem::take(&mut self.head) > COVERED {
                self.unread.give(usize::MAX);
            }
        }
        if in_flight == 0 && self.stage == Stage::Serving {
            self.stage = Stage::Idle(Instant::now());
            if let Framing::Heads(scan) = &mut self.framing {
                *scan = HeadScan::default();
            }
        }
    }

    /// Looks at bytes that have just arrived, and spoils the one that makes a head ambiguous. Whether there is room for them.
    fn arrived(&mut self, bytes: &mut [u8]) -> bool {
        self.undelivered.delivered();
        match &mut self.framing {
            Framing::Heads(_) if self.stage == Stage::Serving => {}
            Framing::Heads(scan) => {
                if let Stage::Idle(_) = self.stage {
                    self.stage = Stage::Head(Instant::now());
                }
                match scan.feed(bytes) {
                    Progress::Refused(offset) => bytes[offset] = 0,
                    Progress::Complete => self.pulse.see_head(),
                    Progress::Begun => {}
                }
                self.head += bytes.len();
                return self.head <= COVERED || self.unread.resize(self.head - COVERED).is_ok();
            }
            Framing::Frames(scan) => {
                scan.feed(bytes);
                self.stage = match (scan.unfinished(), self.stage) {
                    (true, Stage::Head(since)) => Stage::Head(since),
                    (true, _) => Stage::Head(Instant::now()),
                    (false, Stage::Head(_)) if self.pulse.in_flight() > 0 => Stage::Serving,
                    (false, Stage::Head(_)) => Stage::Idle(Instant::now()),
                    (false, other) => other,
                };
            }
        }
        true
    }

    /// Whether the connection is to end now, and otherwise a wake-up for when it may be.
    fn overdue(&mut self, cx: &mut Context<'_>) -> Option<Ending> {
        let stage = match self.stage {
            Stage::Idle(since) if self.pulse.closing() => Some((since + self.limits.quiet, Ending::Closing)),
            Stage::Idle(since) => Some((since + self.limits.idle, Ending::Idle)),
            Stage::Head(since) => Some((since + self.limits.head, Ending::Head)),
            Stage::Serving => {
                self.pulse.wake_when_answered(cx.waker());
                None
            }
        };
        // Without a window nothing is written that could stall. HTTP/1.1 writes an answer as far as the socket takes it.
        let untaken = match &self.framing {
            Framing::Frames(_) => self.pulse.untaken_since().map(|since| (since + self.limits.write, Ending::Write)),
            Framing::Heads(_) => None,
        };
        let (deadline, ending) = stage.into_iter().chain(untaken).min_by_key(|(deadline, _)| *deadline)?;
        let timer = self.read_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        // The timer may stand at the deadline of an earlier request: it is moved only when it has run out.
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Some(ending);
            }
            timer.as_mut().reset(deadline);
        }
        None
    }

    /// A write that could not go on: an error once it has waited for too long.
    fn stalled(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let write = self.limits.write;
        if self.write_timer.is_none() && self.unsent.resize(UNSENT).is_err() {
            self.unsent.account().give_up();
        }
        let (_, timer) = self.write_timer.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + write)))
        });
        if timer.as_mut().poll(cx).is_ready() {
            self.pulse.end(Ending::Write);
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// The client takes what is written.
    fn moving(&mut self) {
        if self.write_timer.take().is_some() {
            self.unsent.give(UNSENT);
        }
    }

    /// The end of a write attempt: pending ones are timed, others stop the clock.
    fn timed<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match result {
            Poll::Pending => match self.stalled(cx) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            ready => {
                self.moving();
                ready
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.follow();
        let (abandoned, most) = (this.pulse.abandoned(), this.limits.abandoned);
        if abandoned > most.saturating_mul(CUT_OFF) {
            this.pulse.end(Ending::Abandoned);
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if abandoned > most && !this.pulse.retiring() {
            this.pulse.end(Ending::Abandoned);
            this.pulse.move_on();
        }
        let before = buffer.filled().len();
        let Poll::Ready(result) = Pin::new(&mut this.stream).poll_read(cx, buffer) else {
            return match this.overdue(cx) {
                Some(ending) => {
                    this.pulse.end(ending);
                    Poll::Ready(Ok(()))
                }
                None => Poll::Pending,
            };
        };
        result?;
        let bytes = &mut buffer.filled_mut()[before..];
        if bytes.len() > this.credit {
            this.pulse.end(Ending::Chatter);
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        this.credit -= bytes.len();
        if !bytes.is_empty() && !this.arrived(bytes) {
            // The task that is told to end drops this: nothing has to wake it.
            this.unread.account().give_up();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.timed(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        self.moving();
        Poll::Ready(result)
    }
}
