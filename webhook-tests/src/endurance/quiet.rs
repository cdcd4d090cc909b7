//! An installed system that is left alone, and what it does when something happens at last.
//!
//! In: how long it is left alone, and how often. Out: [`Report`]: what the product asked, and how long each repair took.
//! Judged of the quiet: no line at WARN, every watch renewed and none more often than that, no list but after a watch that the API
//! server ended without a word, no write but that of the Lease. Judged of the repairs: each within [`repairs::SOON`], or, on a
//! machine that does other things as well, within so many times what a plain write takes there; the times are in the report.

pub mod repairs;
mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use serde_json::Value;
use tokio::time::Instant;

use crate::patience::patience;
use crate::{Drawbridge, Request};
use repairs::Repair;
use system::{SECRET, System};

/// Whom the product writes as.
const US: &str = "system:serviceaccount:kagenti-system:drawbridge-";
/// What is logged, at DEBUG, before a watch becomes a list: nothing that came on it was at its position or past it.
const SILENT: [&str; 2] =
    ["a watch ended without saying up to where it had come", "a bookmark is older than what was read"];
/// Of so many watches one may have ended like that: the API server sends its last bookmark two seconds before the end, and one that
/// has no processor then sends it too late.
const SPOKEN: usize = 2;

/// How long a quiet time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So long.
    Time(Duration),
    /// Until every watch has been renewed so often.
    Renewals(usize),
}

/// One trial.
#[derive(Debug, Clone)]
pub struct Quiet {
    /// How long the system is left alone, each time.
    pub length: Length,
    /// How often.
    pub times: u32,
    /// How long one watch lasts, in seconds.
    pub period: u32,
    /// How long the Lease lasts, in seconds: beside other work an API server may be away for longer than that of a real system.
    pub lease: u32,
}

/// What one quiet time was.
#[derive(Debug, Clone, Default)]
pub struct Silence {
    /// How long.
    pub lasted: Duration,
    /// Watches begun, by who and what.
    pub watches: BTreeMap<String, usize>,
    /// Renewals of the Lease.
    pub renewals: usize,
    /// Lists, by who and what.
    pub lists: BTreeMap<String, usize>,
    /// How long each repair took after it.
    pub repairs: Vec<Repair>,
}

/// The numbers of a trial that held.
#[derive(Debug)]
pub struct Report(Vec<Silence>);

impl Quiet {
    /// Runs the trial on a control plane of its own.
    ///
    /// # Errors
    /// When the system was not quiet, or a repair did not come in time; the message says what.
    pub async fn run(&self) -> Result<Report> {
        let system = System::start(self.period, self.lease).await?;
        let mut all = Vec::new();
        for round in 0..self.times {
            let watches = system.settled(self.period).await?;
            let mut silence =
                self.listen(&system, &watches).await.with_context(|| format!("quiet time {}", round + 1))?;
            silence.repairs = system.disturbed(round).await?;
            for repair in &silence.repairs {
                ensure!(repair.is_soon(), "{repair}; all of them: {:?}", silence.repairs);
            }
            all.push(silence);
        }
        Ok(Report(all))
    }

    /// Leaves the system alone, and looks at what it did meanwhile; `known` are its watches.
    async fn listen(&self, system: &System, known: &BTreeSet<String>) -> Result<Silence> {
        let logs: Vec<usize> = system.processes().map(|process| process.log().len()).collect();
        let before = system.failures().await?;
        // What is logged comes before what is asked.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (mark, begun) = (system.cp.audit().mark()?, Instant::now());
        match self.length {
            Length::Time(duration) => tokio::time::sleep(duration).await,
            Length::Renewals(count) => {
                let renewed = || async {
                    // The log has everything, also what comes while nobody reads it.
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    let silence = Silence::of(system.cp.audit().since(mark)?)?;
                    Ok(known.iter().all(|watch| silence.watches.get(watch).is_some_and(|begun| *begun >= count)))
                };
                until(renewed).await.context("not every watch is renewed")?;
            }
        }
        let mut silence = Silence::of(system.cp.audit().settled(mark).await?)?;
        silence.lasted = begun.elapsed();
        ensure!(system.failures().await? == before, "watches failed");
        let mut silent = 0;
        for (process, from) in system.processes().zip(logs) {
            silent += unspoken(process, from)?;
        }
        self.judge(&silence, silent, known)?;
        Ok(silence)
    }

    fn judge(&self, silence: &Silence, silent: usize, known: &BTreeSet<String>) -> Result<()> {
        let period = u64::from(self.period);
        let (least, most) = (silence.lasted.as_secs() / (period + LATE), silence.lasted.as_secs() / period + 2);
        for (what, count) in &silence.watches {
            ensure!(*count as u64 <= most, "{what}: {count} watches in {:?}, {most} at most", silence.lasted);
        }
        for what in known {
            let count = silence.watches.get(what).copied().unwrap_or_default();
            ensure!(count as u64 >= least, "{what}: {count} watches in {:?}, {least} at least", silence.lasted);
        }
        let lists: usize = silence.lists.values().sum();
        let watches: usize = silence.watches.values().sum();
        ensure!(
            lists <= silent,
            "{lists} lists, and {silent} watches that had ended without a word: {:#?}",
            silence.lists
        );
        ensure!(lists * SPOKEN <= watches, "{lists} lists beside {watches} watches: {:#?}", silence.lists);
        ensure!(silence.renewals > 0 && !known.is_empty(), "nobody watched or led: {silence:?}");
        Ok(())
    }
}

/// How much longer than its period a watch may last until the next one is seen, in seconds: also on a machine that is busy.
const LATE: u64 = 10;

/// How many watches a process says have ended without a word; an error, if it says anything at WARN.
fn unspoken(process: &Drawbridge, from: usize) -> Result<usize> {
    let log = process.log();
    let lines = || log.get(from..).unwrap_or_default().lines();
    let told: Vec<_> = lines().filter(|line| is_warning(line)).collect();
    ensure!(told.is_empty(), "told while nothing happened:\n{}", told.join("\n"));
    Ok(lines().filter(|line| SILENT.iter().any(|said| line.contains(said))).count())
}

impl Silence {
    /// Files requests under what they are; anything that has no place in a quiet time is an error.
    fn of(requests: impl IntoIterator<Item = Request>) -> Result<Self> {
        let mut silence = Self::default();
        let ours: Vec<_> = requests.into_iter().filter(|request| request.user.starts_with(US)).collect();
        // A group whose definitions are not there may not be listed either: only discovery tells that from a right that is missing.
        let absent: Vec<_> = ours.iter().filter_map(undiscovered).collect();
        for request in &ours {
            let is_absent = undiscovered(request).is_some()
                || request.verb == "list" && request.code == Some(403) && absent.contains(&request.group.as_str());
            if !is_absent {
                silence.file(request)?;
            }
        }
        Ok(silence)
    }

    fn file(&mut self, request: &Request) -> Result<()> {
        match request.verb.as_str() {
            "watch" => *self.watches.entry(asked_for(request)).or_default() += 1,
            "update" if request.resource == "leases" => self.renewals += 1,
            // A kind that is not served is asked for now and then.
            "list" if request.code.is_none_or(|code| code == 404) => {}
            // The rest of a list is no other list.
            "list" if request.uri.contains("continue=") => {}
            "list" => *self.lists.entry(asked_for(request)).or_default() += 1,
            // The object that was listed by name is read, too.
            "get"
                if [keys::SECRET_AUTHORITY, keys::WEBHOOK_CONFIGURATION, keys::LEASE, SECRET]
                    .contains(&&*request.name) => {}
            _ => anyhow::bail!("while nothing happened: {request}"),
        }
        Ok(())
    }
}

/// The group that a request asked for and that is not served, as far as it was answered.
fn undiscovered(request: &Request) -> Option<&str> {
    let is_missing = request.code.is_none_or(|code| code == 404);
    let asked = request.verb == "get" && is_missing && request.resource.is_empty();
    request.uri.strip_prefix("/apis/").filter(|_| asked)?.split('/').next()
}

/// Who asks for what, however often.
fn asked_for(request: &Request) -> String {
    let (path, query) = request.uri.split_once('?').unwrap_or((request.uri.as_str(), ""));
    let selectors: Vec<_> = query.split('&').filter(|pair| pair.contains("Selector")).collect();
    let who = request.user.rsplit(':').next().unwrap_or_default();
    format!("{who} {} {path} {}", request.credential, selectors.join("&"))
}

/// WARN or ERROR, in a JSON log.
fn is_warning(line: &str) -> bool {
    serde_json::from_str::<Value>(line).map_or(true, |line| !matches!(line["level"].as_str(), Some("INFO" | "DEBUG")))
}

/// Asks again and again, 20 ms apart.
async fn until<F: Future<Output = Result<bool>>>(mut so: impl FnMut() -> F) -> Result<()> {
    let deadline = Instant::now() + patience();
    while !so().await? {
        ensure!(Instant::now() < deadline, "not within {:?}", patience());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, silence) in self.0.iter().enumerate() {
            let most = silence.watches.values().max().copied().unwrap_or_default();
            writeln!(
                f,
                "quiet time {} of {:.0?}: no warning, {} lists, no write but {} renewals of the Lease; {} watches, each begun at most \
                 {most} times",
                number + 1,
                silence.lasted,
                silence.lists.values().sum::<usize>(),
                silence.renewals,
                silence.watches.len(),
            )?;
            for repair in &silence.repairs {
                writeln!(f, "  {repair}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
