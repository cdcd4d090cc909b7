//! Everyday work for a long time: Pods and Deployments come and go, connections are new, and nothing may grow.
//!
//! In: how long, or longer until there are enough samples. Out: what each process used, sample by sample. Judged: open files and tasks stay flat (the middle of
//! the last third against the middle of the second; the first third is for warming up), and, once an hour was watched,
//! memory grows by no more than 1 MiB an hour. The connections that others hold to the webhook are theirs to open and close, and are counted by
//! themselves: one that both ends have not closed is a file and a task of the process.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::server::certs::Lifetimes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::dialler::Dialler;
use super::load::{Fate, Load, injected};
use super::until_created;
use crate::port::accepted;
use crate::{Drawbridge, Installation, Installing, Options, TestNamespace, installation};

/// Pods a second.
const RATE: u32 = 10;
/// Looks at a process that it takes at least, three for each third: on a busy machine so many last longer than was asked for.
const LEAST: usize = 9;
/// How far files and tasks may wander: what pools of connections breathe. A leak per Pod, connection or watch is many
/// times that within a minute.
const BREATH: f64 = 8.0;
/// So many connections without a request the API server keeps to one host.
const IDLE: f64 = 25.0;
/// Growth of memory that is allowed, in MiB an hour.
const SLOPE: f64 = 1.0;
/// Below this, memory is not judged: allocators settle for a while.
const LONG: Duration = Duration::from_secs(3600);

/// One look at a process.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Since the beginning.
    pub at: Duration,
    /// Resident memory, in MiB.
    pub resident: f64,
    /// Open files, beyond those connections.
    pub files: f64,
    /// Tasks of the runtime that have not ended, beyond those of these connections.
    pub tasks: f64,
    /// Connections that others hold to where reviews are served.
    pub accepted: f64,
}

/// What one process used.
#[derive(Debug)]
pub struct Usage {
    /// Its role.
    pub role: &'static str,
    /// In order.
    pub samples: Vec<Sample>,
}

/// What all used.
#[derive(Debug)]
pub struct Report(Vec<Usage>);

/// Runs everyday work for `duration` on a control plane of its own.
///
/// # Errors
/// When something grew, a Pod was refused or a connection failed; the message has all numbers.
pub async fn run(duration: Duration) -> Result<Report> {
    let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("soak").await?;
    until_created(&ns, injected).await?;
    let dialler = Dialler::start(ns.client(), installation.balancer.address(), &Lifetimes::default());
    let load = Load::start(&ns, RATE);
    let report = Report(watch(&installation, &ns, duration).await?);
    let (tally, dialled) = (load.end().await?, dialler.end().await?);
    let numbers = report.to_string();
    let judged = || {
        ensure!(tally.refused.is_empty(), "refused: {:#?}", tally.refused);
        ensure!(tally.with(Fate::Protected).len() == tally.stored.len(), "not every Pod was injected");
        ensure!(tally.stored.len() as f64 > duration.as_secs_f64(), "too few Pods: {}", tally.stored.len());
        ensure!(dialled.failures.is_empty(), "new connections: {:#?}", dialled.failures);
        report.0.iter().try_for_each(Usage::holds)
    };
    judged().with_context(|| numbers)?;
    Ok(report)
}

/// Looks at every process once a second (rarer in a long run), while Deployments come and go.
async fn watch(installation: &Installation, ns: &TestNamespace, duration: Duration) -> Result<Vec<Usage>> {
    let mut all = vec![
        (&installation.webhooks[0], Usage { role: "webhook", samples: Vec::new() }),
        (&installation.controllers[0], Usage { role: "controllers", samples: Vec::new() }),
    ];
    let begun = Instant::now();
    let mut tick = tokio::time::interval((duration / 1000).max(Duration::from_secs(1)));
    for number in 0_usize.. {
        tick.tick().await;
        if number >= LEAST && begun.elapsed() >= duration {
            break;
        }
        ns.accepts(&deployment(number)).await?;
        if let Some(old) = number.checked_sub(5) {
            let deployments = ns.api::<k8s_openapi::api::apps::v1::Deployment>();
            deployments.delete(&format!("churn-{old}"), &kube::api::DeleteParams::default()).await?;
        }
        for (process, usage) in &mut all {
            usage.samples.push(look(process, begun.elapsed()).await?);
        }
    }
    Ok(all.into_iter().map(|(_, usage)| usage).collect())
}

/// A Deployment that the controllers have work with, and nobody else.
fn deployment(number: usize) -> Value {
    let name = format!("churn-{number}");
    let mut template = super::load::pod(Some(&name));
    let spec = template["spec"].take();
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": template["metadata"]["labels"] }, "spec": spec } } })
}

/// Looks at one process.
///
/// # Errors
/// When it is not running, or does not answer.
pub async fn look(process: &Drawbridge, at: Duration) -> Result<Sample> {
    let pid = process.pid().context("the process has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let resident: f64 = resident.trim().trim_end_matches(" kB").parse()?;
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    let tasks = process.metrics().await?.sum("drawbridge_tasks", &[]);
    let accepted = accepted(process.webhook())? as f64;
    Ok(Sample { at, resident: resident / 1024.0, files: files as f64 - accepted, tasks: tasks - accepted, accepted })
}

impl Usage {
    fn holds(&self) -> Result<()> {
        let tasks = self.thirds(|sample| sample.tasks);
        ensure!(tasks.2 > 0.0, "{}: tasks are not counted", self.role);
        for (what, (_, second, last)) in [("open files", self.thirds(|sample| sample.files)), ("tasks", tasks)] {
            ensure!(last <= second + BREATH, "{}: {what} grow, from {second} to {last}", self.role);
        }
        let (_, second, last) = self.thirds(|sample| sample.accepted);
        ensure!(last <= second + BREATH + IDLE, "{}: connections of others grow, from {second} to {last}", self.role);
        let watched = self.samples.last().map(|sample| sample.at).unwrap_or_default();
        let slope = self.slope();
        ensure!(watched < LONG || slope <= SLOPE, "{}: memory grows by {slope:.2} MiB an hour", self.role);
        Ok(())
    }

    /// The middle value of each third.
    fn thirds(&self, value: impl Fn(&Sample) -> f64) -> (f64, f64, f64) {
        let length = self.samples.len() / 3;
        let middle = |from: usize| {
            let mut values: Vec<f64> = self.samples.iter().skip(from).take(length).map(&value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        (middle(0), middle(length), middle(2 * length))
    }

    /// Growth of memory after the first third, in MiB an hour (least squares).
    fn slope(&self) -> f64 {
        let after = &self.samples[self.samples.len() / 3..];
        let count = after.len() as f64;
        let hours = |sample: &Sample| sample.at.as_secs_f64() / 3600.0;
        let (mean_at, mean) = (
            after.iter().map(hours).sum::<f64>() / count,
            after.iter().map(|sample| sample.resident).sum::<f64>() / count,
        );
        let above: f64 = after.iter().map(|sample| (hours(sample) - mean_at) * (sample.resident - mean)).sum();
        let below: f64 = after.iter().map(|sample| (hours(sample) - mean_at).powi(2)).sum();
        above / below
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for usage in &self.0 {
            let ((_, f2, f3), (_, t2, t3)) = (usage.thirds(|sample| sample.files), usage.thirds(|sample| sample.tasks));
            let (_, c2, c3) = usage.thirds(|sample| sample.accepted);
            let (first, last) = (usage.samples.first(), usage.samples.last());
            let resident = |sample: Option<&Sample>| sample.map_or(0.0, |sample| sample.resident);
            writeln!(
                f,
                "{}: {} samples in {:.0?}; open files {f2} then {f3}, tasks {t2} then {t3}, connections of others {c2} then {c3}, memory {:.1} to {:.1} MiB \
                 ({:+.1} MiB an hour after the first third)",
                usage.role,
                usage.samples.len(),
                last.map(|sample| sample.at).unwrap_or_default(),
                resident(first),
                resident(last),
                usage.slope(),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hours, a sample a minute.
    fn usage(of: impl Fn(f64) -> (f64, f64, f64)) -> Usage {
        let sample = |minute: u32| {
            let (resident, files, tasks) = of(f64::from(minute));
            Sample { at: Duration::from_secs(u64::from(minute) * 60), resident, files, tasks, accepted: 5.0 }
        };
        Usage { role: "webhook", samples: (0..120).map(sample).collect() }
    }

    fn with_connections(of: impl Fn(usize) -> f64) -> Usage {
        let mut usage = usage(|_| (20.0, 30.0, 40.0));
        usage.samples.iter_mut().enumerate().for_each(|(minute, sample)| sample.accepted = of(minute));
        usage
    }

    #[test]
    fn what_breathes_holds_and_what_grows_does_not() {
        let breath = |minute: f64| (minute % 7.0) - 3.0;
        assert!(usage(|m| (20.0 + breath(m) / 10.0, 30.0 + breath(m), 40.0 + breath(m))).holds().is_ok());
        assert!(with_connections(|minute| if minute < 80 { 2.0 } else { 27.0 }).holds().is_ok(), "a busy hour");
        // Warming up is not growing.
        assert!(usage(|m| (20.0 + m.min(30.0), 30.0 + m.min(39.0), 40.0)).holds().is_ok());
        for (grows, word) in [
            (usage(|m| (20.0, 30.0 + m / 3.0, 40.0)), "open files"),
            (usage(|m| (20.0, 30.0, 40.0 + m / 3.0)), "tasks"),
            (usage(|m| (20.0 + m / 50.0, 30.0, 40.0)), "memory"),
            (usage(|_| (20.0, 30.0, 0.0)), "not counted"),
            (with_connections(|minute| minute as f64), "connections of others"),
        ] {
            let objection = grows.holds().map_or_else(|error| error.to_string(), |()| "it holds".to_owned());
            assert!(objection.contains(word), "{word}: {objection}");
        }
    }
}
