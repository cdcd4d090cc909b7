//! Certificates from mounted files (`--webhook-cert-path`, `-name`, `-key`).
//!
//! In: two files, read again and again. Out: pairs in the resolver. Promises: a missing or bad pair at start is an
//! error; one that is not valid yet or no longer is not served while nothing is; afterwards the last good pair is served until a
//! better one is there and valid; the two halves always belong together; a new pair is in use within a quarter of a second.
//!
//! Nobody here reads the webhook configurations, so that a first pair for another name than the Service's is served, with a
//! word of warning: they may call by URL. It takes no pair's place that is for that name.
//!
//! New content counts once two readings in a row agree ([`super::polled`]), so that a writer who is not atomic is not
//! caught half-way, even between two certificates of a chain.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use super::context::{self, Context};
use super::expiry::Announcements;
use super::metrics::Part;
use super::pair::{Pair, PairError};
use super::polled::{self, POLL, Polled};
use super::resolver::Resolver;
use super::root::Millis;
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
    /// The reading that is being served, if any.
    files: Polled<Reading>,
    served: Option<Pair>,
    /// A pair that nobody would accept now, and the reading it is from.
    waiting: Option<(Pair, Reading)>,
    /// The name under which the API server calls, where it is known.
    host: Option<String>,
    announcements: Announcements,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("certificate", &self.certificate).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Files {
    /// Reads the pair and serves it, unless nobody would accept it by its dates: then it waits, as the process does for readiness.
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
            polled::read(path).map_err(|error| FilesError::Read { path: path.display().to_string(), error })
        };
        context.metrics.read();
        let reading = Reading { certificate: read(&certificate)?, key: read(&key)? };
        let pair = Pair::read(&reading.certificate, &reading.key).map_err(|error| FilesError::Pair {
            certificate: certificate.display().to_string(),
            key: key.display().to_string(),
            error,
        })?;
        let mut files = Files {
            certificate,
            key,
            resolver,
            context,
            files: Polled::unused(),
            served: None,
            waiting: None,
            host: None,
            announcements: Announcements::default(),
        };
        // Else the first readings of `run` judge it, and tell.
        if pair.unfit(None, &files.names(), files.context.now()).is_none() {
            files.put(pair, reading);
        }
        Ok(files)
    }

    /// For the API server that calls this Service (name, namespace): a pair for its name is replaced by no other.
    #[must_use]
    pub fn dialled_as(mut self, (service, namespace): (&str, &str)) -> Files {
        self.host = Some(format!("{service}.{namespace}.svc"));
        self.served.iter().for_each(|served| self.compare(served));
        self
    }

    /// Tells when a pair that is served is not for the Service.
    fn compare(&self, pair: &Pair) {
        if let Some(name) = self.host.as_ref().filter(|name| !pair.is_for(name)) {
            tracing::warn!(
                name,
                certificate = %self.certificate.display(),
                "the certificate is not valid for the name under which the API server calls the webhook's Service \
                 (subjectAltName): it refuses it, unless the webhook configurations call by a URL that the certificate is for"
            );
        }
    }

    /// The names that a new pair must not lose. A first pair is taken as it is.
    fn names(&self) -> BTreeSet<String> {
        self.served.iter().flat_map(|_| self.host.clone()).collect()
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
        // One that is not served because it has expired is told of, too.
        let leaf = self.served.as_ref().or(self.waiting.as_ref().map(|(pair, _)| pair)).map(|pair| pair.leaf);
        if let Some(leaf) = leaf
            && let Some(threshold) = self.announcements.next(&leaf, now)
        {
            let about = context::configuration("MutatingWebhookConfiguration", None);
            self.context.expiring(Part::Provided, about, &leaf, threshold);
        }
        let (names, served) = (self.names(), self.served.as_ref());
        if let Some((pair, waited)) = self.waiting.take_if(|(pair, _)| pair.unfit(served, &names, now).is_none())
            && reading.as_ref().is_ok_and(|reading| *reading == waited)
        {
            return self.put(pair, waited);
        }
        let Some(reading) = self.files.settled(reading) else { return };
        self.waiting = None;
        self.context.metrics.read();
        self.judge(reading, now);
    }

    fn judge(&mut self, reading: Result<Reading, String>, now: Millis) {
        if let Err(error) = reading.and_then(|reading| self.serve(reading, now).map_err(|error| error.to_string())) {
            self.context.metrics.read_failed();
            let (certificate, key) = (self.certificate.display(), self.key.display());
            if self.served.is_some() {
                tracing::warn!(
                    error,
                    %certificate,
                    %key,
                    "the changed certificate files cannot be used; serving the last good pair"
                );
            } else {
                tracing::warn!(
                    error,
                    %certificate,
                    %key,
                    "the certificate files cannot be used, and there was no good pair before: nothing is served, and this replica \
                     stays unready until they hold one (where the dates are in order, compare the clocks of the nodes)"
                );
            }
        }
    }

    fn serve(&mut self, reading: Reading, now: Millis) -> Result<(), PairError> {
        let pair = Pair::read(&reading.certificate, &reading.key)?;
        if let Some(error) = pair.unfit(self.served.as_ref(), &self.names(), now) {
            self.waiting = Some((pair, reading));
            return Err(error);
        }
        self.put(pair, reading);
        Ok(())
    }

    /// Serves the pair.
    fn put(&mut self, pair: Pair, reading: Reading) {
        self.resolver.store(&pair, Vec::new());
        self.context.metrics.in_use(Part::Provided, &pair.leaf);
        tracing::info!(certificate = %pair.leaf.fingerprint, "serving a new certificate from files");
        self.compare(&pair);
        self.served = Some(pair);
        self.files.accept(reading);
    }
}

async fn read(certificate: &Path, key: &Path) -> Result<Reading, String> {
    let one = async |path: &Path| {
        polled::read_aside(path).await.map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    Ok(Reading { certificate: one(certificate).await?, key: one(key).await? })
}

#[cfg(test)]
mod tests;
