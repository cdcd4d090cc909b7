//! Tenants who write as much into their ConfigMaps as the API server takes, and how long creations take elsewhere meanwhile.
//!
//! In: how many namespaces attack, and for how many creations it is watched. Out: the times of quiet and of attack, and
//! the memory of every process. Quiet and attack take turns, so that what else the machine does falls on both. Judged: the attack's p50, p90 and p99 elsewhere
//! are at most twice those of the quiet, in the same run and on the same machine, whose own slowing-down is taken from Pods that no webhook is asked about (no number of milliseconds is part of
//! the verdict). Each is said to be over when more creations are than chance explains: of 150, the two slowest would decide about a p99 otherwise, and what
//! else the machine does at that moment. Everything over a bound is counted; no process takes more than the 256 MiB it is given.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::load::{injected, pod};
use super::soak::look;
use super::until_created;
use crate::patience::patience;
use crate::{ControlPlane, Drawbridge, Installation, Installing, Options, TestNamespace, installation};

/// How much longer creations may take during the attack.
const RATIO: f64 = 2.0;
/// Of the creations: those that are at most so much slower.
const PARTS: [f64; 3] = [0.5, 0.9, 0.99];
/// What a process may take, in MiB: its limit in the manifests.
const MEMORY: f64 = 256.0;
/// How often each namespace edits one of its ConfigMaps, where the API server keeps up.
const EVERY: Duration = Duration::from_millis(500);
/// ConfigMaps of each attacking namespace that are over the bound of size, and their bytes.
const LARGE: (usize, usize) = (4, 560_000);
/// Turns of quiet and attack.
const TURNS: usize = 5;
/// Namespaces that are filled at once.
const AT_ONCE: usize = 8;
/// Those within the bounds, which are read, and their bytes.
const READ: (usize, usize) = (10, 20_000);

/// An attack.
#[derive(Debug, Clone, Copy)]
pub struct Tenants {
    /// Namespaces that attack.
    pub namespaces: usize,
    /// Creations that are timed, in quiet and during it.
    pub creations: usize,
}

/// What was measured.
#[derive(Debug)]
pub struct Report {
    tenants: Tenants,
    quiet: Times,
    attack: Times,
    edits: usize,
    memory: BTreeMap<&'static str, f64>,
}

/// Times of creations that are injected, and of others; sorted at the end.
#[derive(Debug, Default)]
struct Times {
    ours: Vec<Duration>,
    bare: Vec<Duration>,
}

/// What the attackers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Quiet,
    Attack,
    Over,
}

impl Tenants {
    /// Attacks an installation on a control plane of its own.
    ///
    /// # Errors
    /// When somebody else had to wait, or memory went; the message has all numbers.
    pub async fn run(self) -> Result<Report> {
        let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
        let installation = Installation::start(&cp, &Installing::default()).await?;
        let ns = cp.namespace("neighbour").await?;
        until_created(&ns, injected).await?;
        let (stage, edits) = (watch::Sender::new(Stage::Quiet), Arc::new(AtomicUsize::new(0)));
        // The attack begins once all are there, so how they come about is nobody's business but the clock's.
        let made = (0..self.namespaces).map(|_| hostile(&cp));
        let spaces: Vec<TestNamespace> = stream::iter(made).buffer_unordered(AT_ONCE).try_collect().await?;
        // All at once, once all are there.
        let mut attackers = JoinSet::new();
        for hostile in &spaces {
            attackers.spawn(edit(hostile.api::<ConfigMap>(), stage.subscribe(), edits.clone()));
        }
        let (mut quiet, mut attack) = (Times::default(), Times::default());
        for _ in 0..TURNS {
            for (_, process) in processes(&installation) {
                everything_is_read(process).await?;
            }
            measure(&ns, self.creations / TURNS, &mut quiet).await?;
            stage.send_replace(Stage::Attack);
            measure(&ns, self.creations / TURNS, &mut attack).await?;
            stage.send_replace(Stage::Quiet);
        }
        quiet.sort();
        attack.sort();
        let mut memory = BTreeMap::new();
        for (role, process) in processes(&installation) {
            memory.insert(role, look(process, Duration::ZERO).await?.resident);
        }
        let named = counted(&installation.webhooks[0], self.namespaces * LARGE.0).await;
        stage.send_replace(Stage::Over);
        while let Some(ended) = attackers.join_next().await {
            ended??;
        }
        let report = Report { tenants: self, quiet, attack, edits: edits.load(Ordering::Relaxed), memory };
        named.with_context(|| report.to_string())?;
        report.holds().with_context(|| report.to_string())?;
        Ok(report)
    }
}

/// A namespace with everything that an attacker writes there.
async fn hostile(cp: &ControlPlane) -> Result<TestNamespace> {
    let space = cp.namespace("hostile").await?;
    for (name, bytes) in config_maps() {
        space.accepts(&config_map(&name, &text(bytes, 0))).await?;
    }
    Ok(space)
}

fn processes(installation: &Installation) -> [(&'static str, &Drawbridge); 2] {
    [("webhook", &installation.webhooks[0]), ("controllers", &installation.controllers[0])]
}

/// A text that takes as long to read as it can: many keys, none of which exists.
fn text(bytes: usize, turn: usize) -> String {
    let mut text = format!("# {turn}\nspire: auto\n");
    for key in 0.. {
        text.push_str(&format!("key{key}: [1, 2, {{a: b}}]\n"));
        if text.len() >= bytes {
            break;
        }
    }
    text
}

fn config_map(name: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { keys::LABEL_DEFAULTS: "true" } }, "data": { "config.yaml": text } })
}

/// Names and sizes of what each attacking namespace writes.
fn config_maps() -> impl Iterator<Item = (String, usize)> {
    let sorts = [("large", LARGE), ("read", READ)].into_iter();
    sorts.flat_map(|(sort, (count, bytes))| (0..count).map(move |at| (format!("{sort}-{at}"), bytes)))
}

/// Edits one ConfigMap of a namespace after the other.
async fn edit(api: Api<ConfigMap>, mut stage: watch::Receiver<Stage>, edits: Arc<AtomicUsize>) -> Result<()> {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let all: Vec<_> = config_maps().collect();
    for (turn, (name, bytes)) in all.iter().cycle().enumerate() {
        tick.tick().await;
        if *stage.wait_for(|stage| *stage != Stage::Quiet).await? == Stage::Over {
            break;
        }
        let change = json!({ "data": { "config.yaml": text(*bytes, turn + 1) } });
        api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
        edits.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Times creations (nothing is stored), those that are injected and others in turns.
async fn measure(ns: &TestNamespace, creations: usize, times: &mut Times) -> Result<()> {
    let mut bare = pod(None);
    bare["metadata"]["labels"].as_object_mut().context("labels")?.remove(keys::LABEL_TYPE);
    for _ in 0..creations {
        for (object, times) in [(&pod(None), &mut times.ours), (&bare, &mut times.bare)] {
            let begun = Instant::now();
            let answer = ns.create(object, true).await?;
            times.push(begun.elapsed());
            answer.result.map_err(|status| anyhow::anyhow!("refused: {}", status.message))?;
        }
    }
    Ok(())
}

/// How long it may take until everything of a turn is read, of which a namespace has a tenth of a thread: only ends what is hopeless.
const READ_AT_LAST: Duration = Duration::from_secs(600);

/// Waits until nothing of the attack is left to be read.
async fn everything_is_read(process: &Drawbridge) -> Result<()> {
    let deadline = Instant::now() + READ_AT_LAST.max(patience());
    while process.metrics().await?.sum("drawbridge_config_waiting_namespaces", &[]) > 0.0 {
        ensure!(Instant::now() < deadline, "what was written is not read");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Waits until as many ConfigMaps are said to be over the bound of size.
async fn counted(webhook: &Drawbridge, wanted: usize) -> Result<()> {
    let deadline = Instant::now() + patience();
    loop {
        let metrics = webhook.metrics().await?;
        let over = metrics.sum("drawbridge_config_over_bound", &[("bound", "size")]);
        if over as usize == wanted {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{over} ConfigMaps are said to be over the bound, {wanted} are");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Times {
    fn sort(&mut self) {
        self.ours.sort();
        self.bare.sort();
    }

    fn at(times: &[Duration], part: f64) -> Duration {
        let place = (times.len() as f64 * part) as usize;
        times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// The most of `count` that are on the wrong side by chance where each is with this `probability`: once in a thousand runs it is more.
fn by_chance(count: usize, probability: f64) -> usize {
    const ONCE_IN: f64 = 1_000.0;
    let odds = (probability / (1.0 - probability)).ln();
    // Logarithms, since half to the power of a thousand is nothing.
    let (mut exactly, mut more) = ((1.0 - probability).ln() * count as f64, 1.0);
    for at in 0..count {
        more -= exactly.exp();
        if more * ONCE_IN <= 1.0 {
            return at;
        }
        exactly += odds + ((count - at) as f64 / (at + 1) as f64).ln();
    }
    count
}

impl Report {
    /// How much slower everything has become that we have nothing to do with.
    fn machine(&self) -> f64 {
        let [before, during] = [&self.quiet, &self.attack].map(|times| Times::at(&times.bare, 0.5).as_secs_f64());
        (during / before.max(1e-6)).max(1.0)
    }

    /// For that part of the creations: of what they took in quiet, on the machine as it is now; or of what those take at the same time that nobody
    /// asks us about, since the machine serves the attack itself, too.
    fn allowed(&self, part: f64) -> Duration {
        let in_quiet = Times::at(&self.quiet.ours, part).mul_f64(self.machine());
        in_quiet.max(Times::at(&self.attack.bare, part)).mul_f64(RATIO)
    }

    fn holds(&self) -> Result<()> {
        ensure!(self.edits > self.tenants.namespaces, "nobody attacked");
        let times = &self.attack.ours;
        for part in PARTS {
            let (took, allowed) = (Times::at(times, part), self.allowed(part));
            let slower = times.iter().filter(|took| **took > allowed).count();
            let chance = by_chance(times.len(), 1.0 - part);
            ensure!(
                slower <= chance,
                "creations elsewhere took {took:.0?} (p{:.0}), {allowed:.0?} are allowed: {slower} of {} were slower, {chance} may be",
                100.0 * part,
                times.len()
            );
        }
        for (role, resident) in &self.memory {
            ensure!(*resident <= MEMORY, "{role} takes {resident:.0} MiB of {MEMORY}");
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} namespaces, {} edits", self.tenants.namespaces, self.edits)?;
        for (when, times) in [("quiet", &self.quiet), ("attack", &self.attack)] {
            let [p50, p99] = [0.5, 0.99].map(|part| Times::at(&times.ours, part));
            let [bare, worst] = [0.5, 0.99].map(|part| Times::at(&times.bare, part));
            writeln!(
                f,
                "{when}: creations p50 {p50:.1?}, p99 {p99:.1?}; those we are not asked about p50 {bare:.1?}, p99 {worst:.1?}"
            )?;
        }
        for (role, resident) in &self.memory {
            writeln!(f, "{role}: {resident:.1} MiB")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (probability, creations, those that may be slower): by the binomial distribution.
    #[test]
    fn as_many_may_be_slower_as_chance_explains() {
        for (probability, count, most) in [
            (0.01, 1, 1),
            (0.01, 10, 2),
            (0.01, 150, 6),
            (0.01, 1_000, 21),
            (0.1, 150, 27),
            (0.5, 150, 94),
            (0.5, 3_000, 1_585),
        ] {
            assert_eq!(by_chance(count, probability), most, "{probability} of {count}");
        }
    }

    /// (creations that take so many milliseconds, whether the verdict is that it holds); the others take as long as in quiet.
    #[test]
    fn what_holds_many_up_a_little_or_few_for_long_is_found_and_two_outliers_are_not() {
        let times = |slow: &[(usize, u64)]| {
            let mut all: Vec<u64> = (0..150).map(|number| 40 + number % 7).collect();
            let mut at = 0;
            for (count, millis) in slow {
                all[at..at + count].fill(*millis);
                at += count;
            }
            let ours = all.into_iter().map(Duration::from_millis).collect();
            let mut times = Times { ours, bare: vec![Duration::from_millis(15); 150] };
            times.sort();
            times
        };
        for (slow, holds) in [
            (&[][..], true),
            (&[(2, 521)], true),
            (&[(6, 521)], true),
            (&[(7, 521)], false),
            (&[(40, 100)], false),
            (&[(100, 100)], false),
        ] {
            let (quiet, attack) = (times(&[]), times(slow));
            let tenants = Tenants { namespaces: 1, creations: 150 };
            let report = Report { tenants, quiet, attack, edits: 9, memory: BTreeMap::new() };
            assert_eq!(report.holds().is_ok(), holds, "{slow:?}");
        }
    }
}
