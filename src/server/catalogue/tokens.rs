//! Callers by their tokens, as the API server knows them.
//!
//! In: a token and where it comes from. Out: the caller, or why there is none. Promises: a token that was good is asked about again after [`GOOD`] at the latest and
//! never counts longer than it says itself, one that was not after [`BAD`]; no token is kept, only its digest; no address asks more than [`REVIEWS`] lets it, so that no tenant
//! can burden the API server; never more than [`AT_ONCE`] questions are under way, and none waits for another.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::caller::{Caller, Stranger, bearer, caller, plausible};
use super::metrics::{CatalogueMetrics, Review};
use super::rate::{Rate, Rates};
use crate::domain::digest;
use crate::domain::keys::AUDIENCE_CATALOGUE;

/// For so long the API server's word counts on a token that is good.
pub(super) const GOOD: Duration = Duration::from_secs(30);
/// For so long that on one that is not.
pub(super) const BAD: Duration = Duration::from_secs(10);
/// Questions under way at once.
pub(super) const AT_ONCE: usize = 4;
/// Questions that the tokens of one address lead to.
pub(super) const REVIEWS: Rate = Rate { burst: 10.0, per_second: 0.5 };
/// Requests of one ServiceAccount.
pub(super) const REQUESTS: Rate = Rate { burst: 50.0, per_second: 10.0 };
/// Tokens that are known at once, of each sort.
const KNOWN: usize = 4096;
/// How long one answer of the API server is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// It is not known who asks.
    #[error(transparent)]
    Stranger(#[from] Stranger),
    /// Somebody asks too often.
    #[error("too many requests come from here; wait a little between them, and use one token for all of them")]
    TooOften,
    /// Too many tokens are looked at.
    #[error("too many tokens wait for the word of the API server; try again in a second")]
    Busy,
    /// Drawbridge may not ask.
    #[error("Drawbridge may not ask the API server about tokens; install it with drawbridge render --with-catalogue")]
    MayNot,
    /// It does not answer.
    #[error("the API server does not say whose the token is; try again in a second")]
    Silent,
}

/// What is known of one token.
type Word = Result<Caller, Stranger>;

/// Tokens that were looked at.
#[derive(Debug, Default)]
pub(super) struct Known {
    good: HashMap<[u8; 32], (Instant, Caller)>,
    bad: HashMap<[u8; 32], (Instant, Stranger)>,
}

impl Known {
    fn get(&self, token: &[u8; 32], now: Instant) -> Option<Word> {
        let good = self.good.get(token).filter(|(until, _)| now < *until);
        let bad = self.bad.get(token).filter(|(until, _)| now < *until);
        good.map(|(_, caller)| Ok(caller.clone())).or_else(|| bad.map(|(_, stranger)| Err(*stranger)))
    }

    fn put(&mut self, token: [u8; 32], until: Instant, now: Instant, word: Word) {
        match word {
            Ok(caller) => insert(&mut self.good, token, (until, caller), now),
            Err(stranger) => insert(&mut self.bad, token, (until, stranger), now),
        }
    }
}

/// What there is no room for is asked about again.
fn insert<T>(known: &mut HashMap<[u8; 32], (Instant, T)>, token: [u8; 32], entry: (Instant, T), now: Instant) {
    if known.len() >= KNOWN {
        known.retain(|_, (until, _)| now < *until);
    }
    if known.len() < KNOWN {
        known.insert(token, entry);
    }
}

/// Knows callers by their tokens.
pub(super) struct Tokens {
    reviews: Api<TokenReview>,
    metrics: CatalogueMetrics,
    begun: Instant,
    known: Mutex<Known>,
    by_address: Mutex<Rates<IpAddr>>,
    by_caller: Mutex<Rates<Caller>>,
    asking: Semaphore,
    may_not: Mutex<Option<Instant>>,
}

impl Tokens {
    pub(super) fn new(client: Client, metrics: CatalogueMetrics) -> Self {
        Self {
            reviews: Api::all(client),
            metrics,
            begun: Instant::now(),
            known: Mutex::default(),
            by_address: Mutex::new(Rates::new(REVIEWS)),
            by_caller: Mutex::new(Rates::new(REQUESTS)),
            asking: Semaphore::new(AT_ONCE),
            may_not: Mutex::default(),
        }
    }

    /// Whose the token is in a header `Authorization` of a request from `address`; `now` in seconds since 1970.
    pub(super) async fn caller(&self, header: Option<&str>, address: IpAddr, now: i64) -> Result<Caller, Refusal> {
        let token = bearer(header)?;
        let claims = plausible(token, now)?;
        let digest = digest::sha256(token.as_bytes());
        let known = self.known.lock().get(&digest, Instant::now());
        let caller = match known {
            Some(word) => word?,
            None => self.ask(token, digest, address, claims.expires.saturating_sub(now)).await?,
        };
        if self.by_caller.lock().may(caller.clone(), self.begun.elapsed()) {
            Ok(caller)
        } else {
            Err(Refusal::TooOften)
        }
    }

    async fn ask(&self, token: &str, digest: [u8; 32], address: IpAddr, lasts: i64) -> Result<Caller, Refusal> {
        if !self.by_address.lock().may(address, self.begun.elapsed()) {
            return Err(Refusal::TooOften);
        }
        let _turn = self.asking.try_acquire().map_err(|_| Refusal::Busy)?;
        let review = TokenReview {
            metadata: ObjectMeta::default(),
            spec: TokenReviewSpec {
                audiences: Some(vec![AUDIENCE_CATALOGUE.to_owned()]),
                token: Some(token.to_owned()),
            },
            status: None,
        };
        let parameters = PostParams::default();
        let status = match timeout(PATIENCE, self.reviews.create(&parameters, &review)).await {
            Ok(Ok(answer)) => answer.status.unwrap_or_default(),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => return Err(self.may_not()),
            Ok(Err(_)) | Err(_) => {
                self.metrics.reviewed(Review::Failed);
                return Err(Refusal::Silent);
            }
        };
        let word = caller(&status);
        self.metrics.reviewed(if word.is_ok() { Review::Accepted } else { Review::Refused });
        let own = Duration::from_secs(u64::try_from(lasts).unwrap_or_default());
        let now = Instant::now();
        let until = now + if word.is_ok() { GOOD.min(own) } else { BAD };
        self.known.lock().put(digest, until, now, word.clone());
        Ok(word?)
    }

    /// Told once a minute, since nobody but who installs can do something about it.
    fn may_not(&self) -> Refusal {
        self.metrics.reviewed(Review::Failed);
        let mut told = self.may_not.lock();
        if told.is_none_or(|at| at.elapsed() >= Duration::from_secs(60)) {
            tracing::warn!(
                "the catalogue answers nobody, because the API server refuses to say whose tokens are: {}",
                Refusal::MayNot
            );
            *told = Some(Instant::now());
        }
        Refusal::MayNot
    }
}
