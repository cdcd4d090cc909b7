//! Asks agents for their cards. In: a question of the controller of AgentCards. Out: what is published of the card, or why
//! there is none.
//!
//! Promises: every well-known path, an older one only where nothing is at the newer, and then the first fault counts; a quick try has a second to
//! the first byte and two in all, a patient one ten in all, both paths together; what was served is read off the threads that wait for
//! sockets, two documents at a time, and what is kept of it is what is published.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::http::{Addresses, Answer, Get, Http, HttpFault, Patience};
use super::spiffe::{NoIdentity, Own, Source};
use crate::controllers::agent_card::judge::{Under, Verdicts};
use crate::controllers::agent_card::metrics::{CardMetrics, From};
use crate::controllers::agent_card::published::{NoCard, Published, publish_at};
use crate::controllers::agent_card::question::PATHS;
use crate::controllers::agent_card::{CardQuestion, Fetch, Fetched, Read};
use crate::controllers::scaffold::lane::{Adapter, AskError, AskFault, Attempt};
use crate::crypto::{Bundles, Card, Policy, SpiffeId, Verdict};
use crate::domain::digest;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;

mod proved;

#[cfg(test)]
mod tests;

use proved::NotProved;

/// Documents that are read at once: the processors belong to everybody.
const READERS: usize = 2;
/// Bytes of a message.
const MESSAGE: usize = 512;

/// Cards of which verdicts are kept; with more all of them are judged anew.
const JUDGED: usize = 10_000;
/// Signatures on which verdicts are kept, of all cards, of which some may be gone; with more all of them are judged anew.
const SIGNATURES: usize = 64_000;

/// ConfigMaps that are read at once: each may be 1 MiB.
const CONFIG_MAPS: usize = 4;

/// Reads the signed card in a ConfigMap: its text, or why there is none.
pub type SignedCards =
    Arc<dyn Fn(Read) -> Pin<Box<dyn Future<Output = Result<String, AskError>> + Send>> + Send + Sync>;

/// What signatures are judged by.
#[derive(Clone, Default)]
pub struct InForce {
    /// The authorities.
    pub bundles: Arc<Bundles>,
    /// What counts as good.
    pub policy: Policy,
    /// Nothing follows from what is not.
    pub audit: bool,
    /// The socket of the SPIFFE agent, where agents are to prove over TLS who they are.
    pub proof: Option<PathBuf>,
}

/// By what signatures are judged, at this moment.
#[derive(Clone)]
pub struct Judging {
    /// What is in force.
    pub under: Arc<dyn Fn() -> InForce + Send + Sync>,
    /// The time, in seconds since 1970.
    pub now: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// What an agent answered, and who it has proved to be.
type Document = (Answer, Option<SpiffeId>);

/// Why there is no document.
#[derive(Debug)]
enum Fault {
    Http(HttpFault),
    Proof(NotProved),
    /// We cannot say who we are.
    Nobody(NoIdentity),
}

/// The adapter.
#[derive(Clone)]
pub struct Cards<A> {
    http: Http<A>,
    readers: Arc<Semaphore>,
    config_maps: Arc<Semaphore>,
    signed: SignedCards,
    own: Arc<Source>,
    judging: Judging,
    verdicts: Arc<Mutex<Verdicts>>,
    metrics: CardMetrics,
}

impl<A: Addresses> Cards<A> {
    /// One that connects where `addresses` lets it, and reads ConfigMaps by `signed`.
    pub fn new(addresses: A, judging: Judging, signed: SignedCards, metrics: CardMetrics) -> Self {
        let readers = Arc::new(Semaphore::new(READERS));
        let config_maps = Arc::new(Semaphore::new(CONFIG_MAPS));
        let http = Http::new(addresses);
        Self { http, readers, config_maps, signed, own: Arc::default(), judging, verdicts: Arc::default(), metrics }
    }

    /// Every path in turn, within one time.
    async fn document(&self, fetch: &Fetch, patience: Patience) -> Result<Document, (&'static str, Fault)> {
        let begun = Instant::now();
        let own = self.own(fetch).await.map_err(|nobody| (PATHS[0], Fault::Nobody(nobody)))?;
        let mut first = None;
        for path in PATHS {
            let get = Get { address: fetch.address, host: &fetch.authority, path };
            let passed = begun.elapsed();
            let left = |time: Duration| time.saturating_sub(passed);
            let patience = Patience { head: left(patience.whole).min(patience.head), whole: left(patience.whole) };
            match self.once(get, own.as_deref(), patience).await {
                Ok(document) => return Ok(document),
                Err(Fault::Http(HttpFault::NotFound)) => {
                    first.get_or_insert((path, Fault::Http(HttpFault::NotFound)));
                }
                Err(fault) => {
                    // Who is slow at a later path is asked again with more time.
                    let slow = matches!(fault, Fault::Http(HttpFault::Timeout(_)) | Fault::Proof(NotProved::Timeout));
                    return Err(first.filter(|_| !slow).unwrap_or((path, fault)));
                }
            }
        }
        Err(first.unwrap_or((PATHS[0], Fault::Http(HttpFault::NotFound))))
    }

    /// Who we are, where the agent is to prove who it is.
    async fn own(&self, fetch: &Fetch) -> Result<Option<Arc<Own>>, NoIdentity> {
        let socket = if fetch.proves { (self.judging.under)().proof } else { None };
        match socket {
            Some(socket) => self.own.own(&socket, (self.judging.now)()).await.map(Some),
            None => Ok(None),
        }
    }

    /// One path; over TLS where we say who we are.
    async fn once(&self, get: Get<'_>, own: Option<&Own>, patience: Patience) -> Result<Document, Fault> {
        let Some(own) = own else {
            return Ok((self.http.get(get, patience).await.map_err(Fault::Http)?, None));
        };
        if let Some(refused) = self.http.refuses(get.address) {
            return Err(Fault::Http(refused));
        }
        let begun = Instant::now();
        let at = ((self.judging.now)(), begun + patience.head);
        let (stream, peer) = proved::connect(get.address, own, at).await.map_err(Fault::Proof)?;
        let left = |time: Duration| time.saturating_sub(begun.elapsed());
        let patience = Patience { head: left(patience.head), whole: left(patience.whole) };
        let answer = self.http.get_over(stream, get, patience).await.map_err(Fault::Http)?;
        Ok((answer, Some(peer)))
    }

    async fn fetch(&self, fetch: Fetch, attempt: Attempt) -> Result<Fetched, AskError> {
        let document = self.document(&fetch, patience(attempt)).await;
        let (answer, peer) = document.map_err(|(path, fault)| error(&fetch, attempt, path, &fault))?;
        // Who has proved who it is was asked over TLS, and is not to be had otherwise at that port.
        let scheme = if peer.is_some() { "https" } else { "http" };
        let (at, from) = ((scheme, fetch.authority.clone()), format!("what {} serves", fetch.address));
        let (body, place) = answer.apart();
        Ok(Fetched { peer, ..self.read_document(body, place, at, from).await? })
    }

    /// The signed card in a ConfigMap.
    async fn read(&self, read: Read) -> Result<Fetched, AskError> {
        let turn = self.config_maps.clone().acquire_owned().await;
        let (at, from) = (("http", read.authority.clone()), format!("what ConfigMap {} holds", read.name));
        let text = (self.signed)(read).await?;
        self.read_document(text.into_bytes(), turn, at, from).await
    }

    /// Reads a document off the threads that wait; `place` is given back once nothing of it is left.
    async fn read_document(
        &self,
        body: Vec<u8>,
        place: impl Send + 'static,
        at: (&'static str, Arc<str>),
        from: String,
    ) -> Result<Fetched, AskError> {
        // The semaphore is never closed, and a reader does not panic on any bytes; if it does, that is one question's failure.
        let permit = self.readers.clone().acquire_owned().await;
        let (judging, verdicts, metrics) = (self.judging.clone(), self.verdicts.clone(), self.metrics.clone());
        let read = tokio::task::spawn_blocking(move || {
            let fetched = judging.read(&body, (at.0, &at.1), &verdicts, &metrics);
            drop((permit, body, place));
            fetched
        });
        let fetched = read.await.map_err(|_| AskError {
            fault: AskFault::Unusable,
            reason: Reason::InternalError,
            message: "Drawbridge failed to read the card: a defect, whose trace is in its log".into(),
        })?;
        match fetched {
            Ok(fetched) => Ok(fetched),
            Err(no_card) => Err(AskError {
                fault: AskFault::Unusable,
                reason: Reason::CardInvalid,
                message: printable(&format!("{from} is not a card: {no_card}"), MESSAGE).into(),
            }),
        }
    }
}

impl Judging {
    /// What is published of a document, and by whom it is signed. The same document under the same authorities is judged once.
    fn read(
        &self,
        bytes: &[u8],
        (scheme, authority): (&str, &Arc<str>),
        verdicts: &Mutex<Verdicts>,
        metrics: &CardMetrics,
    ) -> Result<Fetched, NoCard> {
        let served = Arc::new(publish_at(bytes, (scheme, authority))?);
        let (InForce { bundles, policy, audit, .. }, now) = ((self.under)(), (self.now)());
        if !bundles.configured() {
            return Ok(Fetched {
                served,
                covered: Vec::new(),
                verdict: Arc::new(Verdict::Unknown),
                bundles,
                read: now,
                peer: None,
            });
        }
        let (under, document) = (Under { bundles: &bundles, policy: &policy }, digest::sha256(bytes));
        let known = verdicts.lock().known(authority, document, under, now);
        let verdict = known.unwrap_or_else(|| {
            let begun = Instant::now();
            // It is kept, here and with the answer, for longer than the document: without what is as large.
            let verdict = Arc::new(under.verdict(bytes, now).digested());
            metrics.judged(&verdict, audit, begun.elapsed());
            let mut verdicts = verdicts.lock();
            if verdicts.len() >= JUDGED || verdicts.signatures() >= SIGNATURES {
                *verdicts = Verdicts::default();
            }
            verdicts.learn(authority, document, under, (verdict.clone(), now));
            verdict
        });
        let covered = covered(bytes, &verdict, (scheme, authority))?;
        Ok(Fetched { served, covered, verdict, bundles, read: now, peer: None })
    }
}

/// The digest of what a signature covers, and what is published of that.
type Covered = (Arc<[u8]>, Arc<Published>);

/// What is published of what the good signatures of a document cover.
fn covered(bytes: &[u8], verdict: &Verdict, at: (&str, &str)) -> Result<Vec<Covered>, NoCard> {
    let mut covered: Vec<Covered> = Vec::new();
    let Some(verified) = verdict.verified() else { return Ok(covered) };
    let card = Card::read(bytes)?;
    for good in verified.good() {
        if covered.iter().any(|(known, _)| *known == good.covered) {
            continue;
        }
        // Under a profile by which the card has no form no signature is good.
        if let Ok(form) = card.canonical(good.profile) {
            covered.push((good.covered.clone(), Arc::new(publish_at(&form, at)?)));
        }
    }
    Ok(covered)
}

impl<A: Addresses> Adapter<CardQuestion> for Cards<A> {
    async fn ask(&self, question: CardQuestion, attempt: Attempt) -> Result<Fetched, AskError> {
        let begun = Instant::now();
        let (from, value) = match question {
            CardQuestion::Fetch(fetch) => (From::Agent, Box::pin(self.fetch(fetch, attempt)).await),
            CardQuestion::Read(read) => (From::ConfigMap, Box::pin(self.read(read)).await),
        };
        let fault = value.as_ref().err().map(|error| error.fault);
        self.metrics.asked(from, fault, begun.elapsed(), (self.judging.now)());
        value
    }
}

fn patience(attempt: Attempt) -> Patience {
    let seconds = Duration::from_secs;
    match attempt {
        Attempt::Quick => Patience { head: seconds(1), whole: seconds(2) },
        Attempt::Patient => Patience { head: seconds(10), whole: seconds(10) },
    }
}

fn error(fetch: &Fetch, attempt: Attempt, path: &str, fault: &Fault) -> AskError {
    let fault = match fault {
        Fault::Http(fault) => fault,
        Fault::Proof(fault) => return unproved(fetch, attempt, fault),
        Fault::Nobody(why) => {
            let message =
                format!("agents cannot be asked over TLS, because Drawbridge has no identity of its own: {why}");
            return failed(AskFault::NotAsked, Reason::FetchFailed, &message);
        }
    };
    let (kind, reason) = match fault {
        HttpFault::AddressRefused(_) => (AskFault::Refused, Reason::AddressRefused),
        HttpFault::Connect(_) | HttpFault::Cut => (AskFault::Unreachable, Reason::AgentUnreachable),
        HttpFault::Timeout(_) if attempt == Attempt::Quick => (AskFault::Slow, Reason::AnswerTooLate),
        HttpFault::Timeout(_) => (AskFault::TimedOut, Reason::AnswerTooLate),
        HttpFault::TooLarge(_) => (AskFault::Unusable, Reason::AnswerTooLarge),
        // Our sidecar refuses by these, and says who it is when the fault is its own.
        HttpFault::Status { code: 401 | 403, .. } if fetch.injected => (AskFault::Refused, Reason::BlockedBySidecar),
        HttpFault::Status { code: 500.., envoy: true, .. } if fetch.injected => {
            (AskFault::Refused, Reason::BlockedBySidecar)
        }
        HttpFault::NotFound | HttpFault::Redirect(_) | HttpFault::Status { .. } => {
            (AskFault::Refused, Reason::AnswerRefused)
        }
        HttpFault::Closed | HttpFault::SpeaksTls => (AskFault::Refused, Reason::MeshRefused),
        HttpFault::Encoded | HttpFault::Malformed => (AskFault::Unusable, Reason::AnswerUnreadable),
    };
    let more = match reason {
        Reason::BlockedBySidecar => "; its sidecar lets /.well-known/ through unless bypass_paths is overridden",
        Reason::MeshRefused => {
            "; a service mesh that requires mTLS does this: exclude the port from the mesh, or publish a signed card in ConfigMap \
                <workload>-card-signed"
        }
        _ => "",
    };
    let scheme = if fetch.proves { "https" } else { "http" };
    failed(kind, reason, &format!("{scheme}://{}{path}: {fault}{more}", fetch.address))
}

fn unproved(fetch: &Fetch, attempt: Attempt, fault: &NotProved) -> AskError {
    let (kind, reason) = match fault {
        NotProved::Connect(_) => (AskFault::Unreachable, Reason::AgentUnreachable),
        NotProved::Timeout if attempt == Attempt::Quick => (AskFault::Slow, Reason::AnswerTooLate),
        NotProved::Timeout => (AskFault::TimedOut, Reason::AnswerTooLate),
        NotProved::Handshake(_) => (AskFault::Refused, Reason::FetchFailed),
    };
    failed(kind, reason, &format!("https://{}: {fault}", fetch.address))
}

fn failed(fault: AskFault, reason: Reason, message: &str) -> AskError {
    AskError { fault, reason, message: printable(message, MESSAGE).into() }
}
