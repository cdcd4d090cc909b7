//! What is known of each source, and what follows for the authorities in force; pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::cards::{BundleConfigMap, BundleSources};
use crate::crypto::{BundleFault, Bundles, TrustBundle, TrustDomain};

/// Where a bundle comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The ConfigMap.
    ConfigMap,
    /// The file.
    File,
    /// Both together.
    Joined,
}

/// Why a source cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no such ConfigMap or file.
    NotFound,
    /// The ConfigMap has no such key.
    KeyMissing,
    /// It cannot be read.
    Unreadable,
    /// What it says is no bundle.
    Bundle(BundleFault),
}

/// Whether content is to be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// It was parsed before, well or not.
    Known,
    /// It was not.
    New,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct State {
    address: Option<BundleConfigMap>,
    path: Option<std::path::PathBuf>,
    domain: Option<TrustDomain>,
    config_map: Source,
    file: Source,
    /// Why the two do not go together.
    conflict: Option<Fault>,
    /// What was put in force last, and when it was last readable.
    joined: Option<Joined>,
}

#[derive(Debug)]
struct Joined {
    parts: Vec<Arc<TrustBundle>>,
    bundle: Arc<TrustBundle>,
    read_at: Arc<AtomicI64>,
}

#[derive(Debug, Default)]
struct Source {
    good: Option<Arc<TrustBundle>>,
    read_at: i64,
    seen: Option<[u8; 32]>,
    fault: Option<Fault>,
}

impl Origin {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::File => "file",
            Self::Joined => "all",
        }
    }
}

impl Fault {
    /// Its name as a metric label.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::NotFound => "configmap_not_found",
            Self::KeyMissing => "empty_bundle",
            Self::Unreadable => "refresh_failed",
            Self::Bundle(fault) => fault.as_str(),
        }
    }
}

impl Source {
    /// Whether this is news.
    fn failed(&mut self, fault: Fault) -> Option<Fault> {
        if self.fault.as_ref() == Some(&fault) {
            return None;
        }
        self.fault = Some(fault.clone());
        Some(fault)
    }
}

impl State {
    /// What is configured now; what is something else than before is unknown.
    pub(super) fn adopt(&mut self, sources: &BundleSources) {
        let other_domain = self.domain != sources.trust_domain;
        if other_domain || self.address != sources.config_map {
            self.config_map = Source::default();
        }
        if other_domain || self.path != sources.file {
            self.file = Source::default();
        }
        self.address.clone_from(&sources.config_map);
        self.path.clone_from(&sources.file);
        self.domain.clone_from(&sources.trust_domain);
    }

    fn source(&mut self, origin: Origin) -> &mut Source {
        if origin == Origin::File { &mut self.file } else { &mut self.config_map }
    }

    /// The source was readable, and this is what it says.
    pub(super) fn content(&mut self, origin: Origin, text: &[u8], now: i64) -> Content {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let source = self.source(origin);
        if source.seen != Some(digest) {
            source.seen = Some(digest);
            return Content::New;
        }
        // What was good then is good now; an outage in between is over.
        match source.fault {
            Some(Fault::Bundle(_)) => {}
            _ => {
                source.fault = None;
                source.read_at = now;
            }
        }
        Content::Known
    }

    /// The watch hears the API server, and has told of no change.
    pub(super) fn unchanged(&mut self, origin: Origin, now: i64) {
        let source = self.source(origin);
        if source.fault == Some(Fault::Unreadable) {
            source.fault = None;
        }
        if source.fault.is_none() && source.good.is_some() {
            source.read_at = now;
        }
    }

    /// The source has not been readable for long; the fault, when that is news.
    pub(super) fn unreadable(&mut self, origin: Origin) -> Option<Fault> {
        let source = self.source(origin);
        if source.fault.is_some() { None } else { source.failed(Fault::Unreadable) }
    }

    /// The content is no bundle, or there is none; the fault, when that is news.
    pub(super) fn failed(&mut self, origin: Origin, fault: Fault) -> Option<Fault> {
        let source = self.source(origin);
        if !matches!(fault, Fault::Bundle(_)) {
            // The same content, when it is back, is to be taken as new.
            source.seen = None;
        }
        source.failed(fault)
    }

    /// The content is this bundle.
    pub(super) fn loaded(&mut self, origin: Origin, bundle: TrustBundle, now: i64) {
        let source = self.source(origin);
        source.fault = None;
        source.read_at = now;
        if source.good.as_deref() != Some(&bundle) {
            source.good = Some(Arc::new(bundle));
        }
    }

    /// The authorities in force, and why the sources do not go together when that is news. A source that is about to be too old leaves the others alone.
    pub(super) fn joined(&mut self, sources: &BundleSources, now: i64, slack: Duration) -> (Bundles, Option<Fault>) {
        if !sources.any() {
            self.joined = None;
            return (Bundles::default(), None);
        }
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let oldest = seconds(sources.max_age.saturating_sub(slack));
        let all = [&self.config_map, &self.file];
        let good: Vec<_> =
            all.iter().filter_map(|source| source.good.clone().map(|bundle| (bundle, source.read_at))).collect();
        let fresh: Vec<_> =
            good.iter().filter(|(_, read_at)| now.saturating_sub(*read_at) <= oldest).cloned().collect();
        // All too old: the judge says so, by their age.
        let counted = if fresh.is_empty() { good } else { fresh };
        let Some(read_at) = counted.iter().map(|(_, read_at)| *read_at).min() else {
            self.joined = None;
            return (Bundles::never_loaded(), None);
        };
        let parts: Vec<Arc<TrustBundle>> = counted.into_iter().map(|(bundle, _)| bundle).collect();
        let same = self.joined.as_ref().is_some_and(|joined| {
            joined.parts.len() == parts.len()
                && joined.parts.iter().zip(&parts).all(|(one, other)| Arc::ptr_eq(one, other))
        });
        let mut news = None;
        if !same {
            match join(&parts) {
                Ok(bundle) => {
                    self.conflict = None;
                    self.joined = Some(Joined { parts, bundle: Arc::new(bundle), read_at: Arc::default() });
                }
                Err(fault) => {
                    let fault = Fault::Bundle(fault);
                    if self.conflict.as_ref() != Some(&fault) {
                        self.conflict = Some(fault.clone());
                        news = Some(fault);
                    }
                    // What was in force stays, and grows old.
                    let bundles = self.joined.as_ref();
                    let bundles = bundles.map(|joined| Bundles::loaded(joined.bundle.clone(), joined.read_at.clone()));
                    return (bundles.unwrap_or_else(Bundles::never_loaded), news);
                }
            }
        }
        let bundles = self.joined.as_ref().map(|joined| {
            joined.read_at.store(read_at, Ordering::Release);
            Bundles::loaded(joined.bundle.clone(), joined.read_at.clone())
        });
        (bundles.unwrap_or_else(Bundles::never_loaded), news)
    }
}

fn join(parts: &[Arc<TrustBundle>]) -> Result<TrustBundle, BundleFault> {
    let mut parts = parts.iter();
    let Some(first) = parts.next() else { return Err(BundleFault::Empty) };
    parts.try_fold(first.as_ref().clone(), |joined, part| joined.join(part.as_ref().clone()))
}
