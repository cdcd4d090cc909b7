//! Certificates from mounted files (`--webhook-cert-path`, `-name`, `-key`).
//!
//! In: two files, read again and again. Out: pairs in the resolver. Promises: a missing or bad pair at start is an
//! error; afterwards the last good pair is served until a better one is there and valid; the two halves always belong together;
//! a new pair is in use within a quarter of a second.
//!
//! New content counts once two readings in a row agree ([`super::polled`]), so that a writer who is not atomic is not
//! caught half-way, even between two certificates of a chain.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use super::context::{self, Context};
use super::expiry::Announcements;
use super::metrics::Part;
use super::pair::{Pair, PairError};
use super::polled::{POLL, Polled};
use super::resolver::Resolver;
use super::root::{Millis, Root};
use crate::server::shutdown::{Phase, Shutdown};

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Read {
        /// Which one.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// They can be read but not served.
    #[error("{certificate} and {key}: {error}")]
    Pair {
        /// The certificate file.
        certificate: String,
        /// The key file.
        key: String,
        /// Why.
        error: PairError,
    },
}

/// The bytes of one reading.
#[derive(Clone, PartialEq, Eq)]
struct Reading {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// A source that follows two files. Spawn [`Files::run`].
pub struct Files {
    certificate: PathBuf,
    key: PathBuf,
    resolver: Arc<Resolver>,
    context: Context,
    /// The reading that is being served.
    files: Polled<Reading>,
    /// A good reading that is not valid before that moment.
    early: Option<(Millis, Reading)>,
    leaf: Root,
    announcements: Announcements,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("certificate", &self.certificate).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Files {
    /// Reads the pair and serves it.
    ///
    /// # Errors
    /// When a file is missing or the pair cannot be served: the process should not start.
    pub fn open(
        directory: &Path,
        names: (&str, &str),
        resolver: Arc<Resolver>,
        context: Context,
    ) -> Result<Files, FilesError> {
        let (certificate, key) = (directory.join(names.0), directory.join(names.1));
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| FilesError::Read { path: path.display().to_string(), error })
        };
        context.metrics.read();
        let served = Reading { certificate: read(&certificate)?, key: read(&key)? };
        let pair = Pair::read(&served.certificate, &served.key).map_err(|error| FilesError::Pair {
            certificate: certificate.display().to_string(),
            key: key.display().to_string(),
            error,
        })?;
        resolver.store(&pair, Vec::new());
        context.metrics.in_use(Part::Provided, &pair.leaf);
        Ok(Files {
            certificate,
            key,
            resolver,
            context,
            files: Polled::new(served),
            early: None,
            leaf: pair.leaf,
            announcements: Announcements::default(),
        })
    }

    /// Follows the files until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            tokio::select! {
                () = &mut closing => return,
                _ = poll.tick() => {}
            }
            let reading = read(&self.certificate, &self.key).await;
            self.take(reading, self.context.now());
        }
    }

    /// Judges one reading.
    fn take(&mut self, reading: Result<Reading, String>, now: Millis) {
        if let Some(threshold) = self.announcements.next(&self.leaf, now) {
            let about = context::configuration("MutatingWebhookConfiguration", None);
            self.context.expiring(Part::Provided, about, &self.leaf, threshold);
        }
        if let Some((_, early)) = self.early.take_if(|(from, _)| *from <= now)
            && reading.as_ref().is_ok_and(|reading| *reading == early)
        {
            return self.judge(Ok(early), now);
        }
        let Some(reading) = self.files.settled(reading) else { return };
        self.early = None;
        self.context.metrics.read();
        self.judge(reading, now);
    }

    fn judge(&mut self, reading: Result<Reading, String>, now: Millis) {
        if let Err(error) = reading.and_then(|reading| self.serve(reading, now).map_err(|error| error.to_string())) {
            self.context.metrics.read_failed();
            tracing::warn!(
                error,
                certificate = %self.certificate.display(),
                key = %self.key.display(),
                "the changed certificate files cannot be used; serving the last good pair"
            );
        }
    }

    fn serve(&mut self, reading: Reading, now: Millis) -> Result<(), PairError> {
        let pair = Pair::read(&reading.certificate, &reading.key)?;
        if pair.leaf.expired(now) && !self.leaf.expired(now) {
            return Err(PairError::Expired);
        }
        if now < pair.leaf.not_before && self.leaf.valid(now) {
            self.early = Some((pair.leaf.not_before.min(self.leaf.not_after), reading));
            return Err(PairError::Early);
        }
        self.resolver.store(&pair, Vec::new());
        self.context.metrics.in_use(Part::Provided, &pair.leaf);
        tracing::info!(certificate = %pair.leaf.fingerprint, "serving a new certificate from files");
        self.leaf = pair.leaf;
        self.files.accept(reading);
        Ok(())
    }
}

async fn read(certificate: &Path, key: &Path) -> Result<Reading, String> {
    let one = async |path: &Path| {
        tokio::fs::read(path).await.map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    Ok(Reading { certificate: one(certificate).await?, key: one(key).await? })
}

#[cfg(test)]
mod tests;
