//! `drawbridge card sign --in-pod --stay`: the program of the native sidecar `sign-agentcard`.
//!
//! In: the environment, the card as it changes, and the SVIDs of the Pod as the SPIFFE agent renews them. Out: the signed card as a file and in its ConfigMap, anew
//! for each of them; one JSON object per line on standard error. What is done next, [`machine`] says. Promises: until a signature stands, it behaves as the init container does: the agent waits,
//! and after SIGN_TIMEOUT the program ends with a failure, so that the kubelet starts it again; from then on it ends at SIGTERM alone, and at once; what
//! is published already by another Pod of the workload is not published again; a failure is told when it is another than the one before.

mod machine;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::publish::{self, Settled};
use super::{Settings, is_absent, log, write};
use crate::adapters::spiffe::{self, NoSvid, Svid};
use crate::cli::card::sign::{SKELETON, document, says_the_same, sign};
use crate::cli::io::Io;
use crate::crypto::{Good, Policy, Profile, Signer, Trust, TrustBundle, Verdict, peer, verify_bytes};
use machine::{Machine, Seen, Step, Work, pause};

/// The file beside the signed card that says that the agent may start.
const STARTED: &str = ".started";
/// Between two looks at the card: the kubelet takes up to a minute to show another one.
const LOOK: Duration = Duration::from_secs(5);
/// Longest pause until the agent is asked again.
const RECONNECT: Duration = Duration::from_secs(5);
/// How long the agent may take to answer a call, and the API server to take a card.
const ANSWER: Duration = Duration::from_secs(10);

/// Whether the signer of this Pod has let the agent start.
pub(super) fn has_started(settings: &Settings) -> bool {
    settings.signed.with_file_name(STARTED).exists()
}

/// Signs until the Pod ends.
pub(super) async fn stay(settings: &Settings, if_present: bool, io: &mut Io<'_>) -> anyhow::Result<()> {
    let mut ends = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (heard, svids) = mpsc::channel(1);
    let _follows = Following(tokio::spawn(follow(settings.socket.clone(), heard)).abort_handle());
    let mut signing = Signing::new(settings, if_present, io);
    tokio::select! {
        biased;
        _ = ends.0.recv() => Ok(()),
        _ = ends.1.recv() => Ok(()),
        outcome = signing.run(svids) => outcome,
    }
}

/// A task that ends with this.
struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells each SVID that the agent has for this process, and why there is none.
async fn follow(socket: PathBuf, heard: mpsc::Sender<Result<Svid, NoSvid>>) {
    let mut failures: u32 = 0;
    loop {
        let fault = match timeout(ANSWER, spiffe::renewals(&socket)).await {
            Err(_) => NoSvid::Timeout,
            Ok(Err(fault)) => fault,
            Ok(Ok(mut call)) => loop {
                match call.next().await {
                    Err(fault) => break fault,
                    Ok(svid) => {
                        failures = 0;
                        if heard.send(Ok(svid)).await.is_err() {
                            return;
                        }
                    }
                }
            },
        };
        failures = failures.saturating_add(1);
        if heard.send(Err(fault)).await.is_err() {
            return;
        }
        sleep(pause(failures, RECONNECT)).await;
    }
}

/// Whoever signs at the moment.
struct Current {
    signer: Signer,
    /// The authorities of its trust domain, as its SPIFFE agent says.
    authorities: Option<TrustBundle>,
}

struct Signing<'s, 'i, 'io> {
    settings: &'s Settings,
    io: &'i mut Io<'io>,
    machine: Machine,
    begun: Instant,
    current: Option<Current>,
    /// The card that was signed last.
    text: Arc<str>,
    /// What is wrong, as it was told last.
    told: BTreeMap<About, String>,
}

/// What something is wrong with; it is told once for as long as it stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// The agent and its SVIDs.
    Svid,
    /// The file with the card.
    Card,
    /// Signing, and the file for that.
    Signature,
    /// The ConfigMap.
    Publication,
}

impl<'s, 'i, 'io> Signing<'s, 'i, 'io> {
    fn new(settings: &'s Settings, if_present: bool, io: &'i mut Io<'io>) -> Self {
        let publishes = settings.config_map.is_some();
        Self {
            settings,
            io,
            machine: Machine::new(settings.timeout, if_present, publishes, has_started(settings)),
            begun: Instant::now(),
            current: None,
            text: Arc::default(),
            told: BTreeMap::new(),
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    async fn run(&mut self, mut svids: mpsc::Receiver<Result<Svid, NoSvid>>) -> anyhow::Result<()> {
        let shown = |path: &Path| path.display().to_string();
        let fields = [("socket", shown(&self.settings.socket)), ("unsigned_path", shown(&self.settings.unsigned))];
        log(self.io, "info", "the card is signed whenever the SVID is renewed or the card changes", &fields)?;
        if self.settings.config_map.is_none() {
            log(self.io, "warn", super::NOBODYS, &[])?;
        }
        let mut look = Instant::now();
        loop {
            if look <= Instant::now() {
                self.look()?;
                look = Instant::now() + LOOK;
            }
            let now = self.now();
            match self.machine.step(now, Timestamp::now().as_second()) {
                Step::Sign(work) => {
                    let is_done = self.sign(&work)?;
                    self.machine.signed(work, is_done, (now, self.now()));
                }
                Step::Publish(work) => {
                    let is_done = self.publish().await?;
                    self.machine.published(work, is_done, (now, self.now()));
                }
                Step::Release => {
                    write(&self.settings.signed.with_file_name(STARTED), b"")?;
                    self.machine.released();
                }
                Step::GiveUp => bail!("{}", self.none_yet()),
                Step::Wait(until) => {
                    let then = until.map_or(look, |until| look.min(self.begun + until));
                    tokio::select! {
                        heard = svids.recv() => match heard {
                            Some(heard) => self.heard(heard)?,
                            None => bail!("nobody asks the SPIFFE agent any more"),
                        },
                        () = sleep_until(then) => {}
                    }
                }
            }
        }
    }

    /// Why no signature stands.
    fn none_yet(&self) -> String {
        let why = self.told.values().map(String::as_str).collect::<Vec<_>>().join("; ");
        if why.is_empty() { "no card was signed within SIGN_TIMEOUT".to_owned() } else { why }
    }

    /// Tells that, unless it was what was told last.
    fn tell(&mut self, about: About, message: &str, why: String) -> anyhow::Result<()> {
        let told = format!("{message}: {why}");
        if self.told.get(&about) != Some(&told) {
            log(self.io, "warn", message, &[("error", why)])?;
            self.told.insert(about, told);
        }
        Ok(())
    }

    fn look(&mut self) -> anyhow::Result<()> {
        let path = &self.settings.unsigned;
        let (seen, wrong) = if is_absent(path) {
            (
                Seen::Absent,
                Some(("there is no card to sign; it is signed when it is there", path.display().to_string())),
            )
        } else {
            match document(path, self.io) {
                Ok(card) => (Seen::Card(card.into()), None),
                Err(error) => (Seen::Unread, Some(("the card cannot be read", format!("{error:#}")))),
            }
        };
        self.machine.looked(seen);
        match wrong {
            Some((message, why)) => self.tell(About::Card, message, why),
            None => {
                self.told.remove(&About::Card);
                Ok(())
            }
        }
    }

    fn heard(&mut self, heard: Result<Svid, NoSvid>) -> anyhow::Result<()> {
        let usable = heard.map_err(|why| why.to_string()).and_then(|svid| {
            let signer = Signer::of_svid(&svid.key, &svid.chain).map_err(|why| why.to_string())?;
            Ok((svid, signer))
        });
        let (svid, signer) = match usable {
            Ok(usable) => usable,
            Err(why) => {
                let why = format!("{}: {why}", self.settings.socket.display());
                return self.tell(About::Svid, "there is no SVID to sign with; the agent is asked again", why);
            }
        };
        self.told.remove(&About::Svid);
        // The authorities may be others for the same SVID.
        let authorities = peer::authorities(&svid.bundle, signer.identity().trust_domain());
        self.machine.renewed(svid.chain.as_slice().into(), signer.until());
        self.current = Some(Current { signer, authorities });
        Ok(())
    }

    fn sign(&mut self, work: &Work) -> anyhow::Result<bool> {
        let Some(Current { signer, .. }) = &self.current else { return Ok(false) };
        let signed = sign(&work.card, signer, Profile::ALL)
            .and_then(|signed| write(&self.settings.signed, signed.text.as_bytes()).map(|()| signed));
        let signed = match signed {
            Ok(signed) => signed,
            Err(error) => {
                self.tell(About::Signature, "the card is not signed; it is tried again", format!("{error:#}"))?;
                return Ok(false);
            }
        };
        let written = [
            ("spiffe_id", signer.identity().to_string()),
            ("key", signer.key_id()),
            ("until", Timestamp::from_second(signer.until()).unwrap_or_default().to_string()),
        ];
        self.told.remove(&About::Signature);
        log(self.io, "info", "the card is signed", &written)?;
        if !signed.has_skills {
            log(self.io, "warn", SKELETON, &[])?;
        }
        self.text = signed.text.into();
        Ok(true)
    }

    async fn publish(&mut self) -> anyhow::Result<bool> {
        let (Some((namespace, name)), Some(current)) = (&self.settings.config_map, &self.current) else {
            return Ok(true);
        };
        let whose = ("configMap", format!("{namespace}/{name}"));
        let (text, now) = (self.text.clone(), Timestamp::now().as_second());
        let is_good = |published: &str| stands(published, &text, current, now);
        let settled = timeout(ANSWER, publish::settle((namespace, name), &text, is_good)).await;
        match settled.context("the API server did not answer in time").and_then(|settled| settled) {
            Ok(settled) => {
                let message = match settled {
                    Settled::Written => "the signed card is published",
                    Settled::Stood => "the card that is published says the same and is signed for long enough",
                };
                self.told.remove(&About::Publication);
                log(self.io, "info", message, &[whose])?;
                Ok(true)
            }
            Err(error) => {
                self.tell(
                    About::Publication,
                    "the signed card is not published; it is tried again",
                    format!("{}: {error:#}", whose.1),
                )?;
                Ok(false)
            }
        }
    }
}

/// Whether what is published says the same as the card that was signed here, by whom it was signed here, and for about as long.
fn stands(published: &str, signed: &str, current: &Current, now: i64) -> bool {
    let Some(bundle) = &current.authorities else { return false };
    let signer = &current.signer;
    if !says_the_same(published, signed) {
        return false;
    }
    let Verdict::Verified(verified) =
        verify_bytes(published.as_bytes(), Trust::Loaded { bundle, read_at: now }, &Policy::default(), now)
    else {
        return false;
    };
    let slack = signer.until().saturating_sub(now) / 4;
    let is_good =
        |good: &Good| good.identity == *signer.identity() && good.leaf_until.saturating_add(slack) >= signer.until();
    verified.good().iter().any(is_good)
}

#[cfg(test)]
mod tests;
