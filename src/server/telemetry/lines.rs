//! The log line of a review: written by hand, and handed to a thread that writes many at once.
//!
//! In: facts of one review. Out: a JSON object per line, with the fields and names that the JSON format of every other
//! line has. Promises: a review never waits for whoever reads the log; lines stand in order, whole, at most [`LINGER`]
//! later than decided; [`Lines::finish`] writes what is left; what does not fit into [`ROOM`], because nobody reads, is
//! counted and the count is logged. tracing's formatter with one write per line cost as much as the rest of a review
//! that is skipped.

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Where review lines say they come from, as tracing would.
pub const TARGET: &str = "drawbridge::reviews";
/// How long lines may wait for others.
const LINGER: Duration = Duration::from_millis(5);
/// Bytes from which nobody lingers.
const PLENTY: usize = 64 * 1024;
/// Bytes that wait at most.
const ROOM: usize = 4 * 1024 * 1024;

/// What a line says of one review.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields are those of the line")]
pub struct Reviewed<'a> {
    /// At level INFO; else at DEBUG.
    pub is_news: bool,
    pub webhook: &'a str,
    pub uid: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub generate_name: &'a str,
    pub owner: &'a str,
    pub kind: &'a str,
    pub dry_run: bool,
    pub allowed: bool,
    pub reason: &'a str,
    pub warnings: usize,
    pub operations: usize,
    pub micros: u64,
}

impl Reviewed<'_> {
    /// The line, without a time.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.is_news {
            true => br#","level":"INFO","message":"reviewed""#.as_slice(),
            false => br#","level":"DEBUG","message":"reviewed""#,
        });
        for (key, text) in [
            (r#","webhook":"#, self.webhook),
            (r#","uid":"#, self.uid),
            (r#","namespace":"#, self.namespace),
            (r#","name":"#, self.name),
            (r#","generate_name":"#, self.generate_name),
            (r#","owner":"#, self.owner),
            (r#","kind":"#, self.kind),
            (r#","reason":"#, self.reason),
        ] {
            out.extend_from_slice(key.as_bytes());
            quoted(out, text);
        }
        let (dry_run, allowed) = (self.dry_run, self.allowed);
        let (warnings, operations, micros) = (self.warnings, self.operations, self.micros);
        // Writing to a vector does not fail.
        let _ = write!(
            out,
            r#","dry_run":{dry_run},"allowed":{allowed},"warnings":{warnings},"operations":{operations},"micros":{micros}"#
        );
        out.extend_from_slice(br#","target":"#);
        quoted(out, TARGET);
        out.extend_from_slice(b"}\n");
    }

    /// The same through tracing, for formats that are for people.
    pub fn trace(&self) {
        let Self { namespace, name, generate_name, owner, kind, dry_run, allowed, reason, .. } = *self;
        let Self { webhook, uid, warnings, operations, micros, .. } = *self;
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: TARGET,
                    webhook, uid, namespace, name, generate_name, owner, kind, reason, dry_run, allowed, warnings, operations, micros,
                    "reviewed"
                )
            };
        }
        if self.is_news { line!(info) } else { line!(debug) }
    }
}

/// `text` as a JSON string.
fn quoted(out: &mut Vec<u8>, text: &str) {
    // A string always serialises, and a vector takes everything.
    let _ = serde_json::to_writer(out, text);
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    lost: u64,
    finished: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// A log that is written by a thread of its own.
#[derive(Debug)]
pub struct Lines {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Lines {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn start(out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let writer = std::thread::Builder::new().name("log".to_owned()).spawn(move || theirs.write_to(out))?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)) })
    }

    /// Hands a line over, with the time of now.
    pub fn push(&self, line: &Reviewed<'_>) {
        let mut bytes = Vec::with_capacity(512);
        // Writing to a vector does not fail.
        let _ = write!(bytes, r#"{{"timestamp":"{:.6}""#, jiff::Timestamp::now());
        line.write(&mut bytes);
        let mut waiting = self.shared.waiting.lock();
        if waiting.bytes.len() + bytes.len() > ROOM {
            waiting.lost += 1;
            return;
        }
        let first = waiting.bytes.is_empty();
        waiting.bytes.extend_from_slice(&bytes);
        let plenty = waiting.bytes.len() >= PLENTY;
        drop(waiting);
        if first || plenty {
            self.shared.arrived.notify_one();
        }
    }

    /// Writes what is left, and ends the thread.
    pub fn finish(&self) {
        self.shared.waiting.lock().finished = true;
        self.shared.arrived.notify_one();
        let writer = self.writer.lock().take();
        // A writer that panicked has nothing more to write.
        drop(writer.map(JoinHandle::join));
    }
}

impl Shared {
    fn write_to(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        loop {
            let mut waiting = self.waiting.lock();
            self.arrived.wait_while(&mut waiting, |waiting| waiting.bytes.is_empty() && !waiting.finished);
            if !waiting.finished {
                let few = |waiting: &mut Waiting| waiting.bytes.len() < PLENTY && !waiting.finished;
                self.arrived.wait_while_for(&mut waiting, few, LINGER);
            }
            std::mem::swap(&mut batch, &mut waiting.bytes);
            let (lost, finished) = (std::mem::take(&mut waiting.lost), waiting.finished);
            drop(waiting);
            // A log that cannot be written to leaves nobody to tell.
            let _ = out.write_all(&batch).and_then(|()| out.flush());
            batch.clear();
            if lost > 0 {
                tracing::warn!(lost, "log lines of reviews were dropped: whoever reads the log is too slow");
            }
            if finished {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
