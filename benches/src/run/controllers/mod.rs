//! What the controllers cost: enrolments beside a bare loop that makes the same writes, one enrolment alone, memory, restarts,
//! and changes that are none of their business.
//!
//! On a control plane and an installation of its own. Workloads want no Pods, so that what is measured is the writing; what the
//! API server itself takes is measured by [`bare`], with the same account, the same watch and the same writes.

mod bare;
mod beeai;
mod fleet;
mod kaos;
mod running;
mod runs;
mod teams;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use webhook_tests::{ControlPlane, Drawbridge, Installation, Options, Process, Requests};

use super::world::as_shipped;
use super::{Size, memory, step};
use crate::cpu;
use crate::table::{Row, median, quantile};
use fleet::Fleet;

/// Under which the controllers write, and the bare loop as well.
const ACCOUNT: &str = "drawbridge-controllers";
const USER: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
/// Alternations of ours and bare per size.
const ROUNDS: usize = 3;
/// Status updates a second that are none of our business.
const UNRELATED: u32 = 200;
/// So many of them at once.
const AT_ONCE: usize = 32;
/// How long they last.
const UNRELATED_FOR: Duration = Duration::from_secs(10);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How others write a condition of theirs into the status of a Deployment.
#[derive(Clone, Copy)]
enum Others {
    /// Beside those that are there: nothing else is other than before.
    Add,
    /// In place of all, so that the Deployment is not available until its own controller has put its conditions back: two events, and each
    /// changes something that is kept.
    Replace,
}

struct Stage {
    cp: ControlPlane,
    installation: Installation,
}

/// Every row of enrolment, into `rows` as they come: what was measured stands, whatever fails later.
pub(super) async fn enrolment(size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    let stage = Stage::set(began).await?;
    for agents in [size.agents / 2, size.agents] {
        step(began, &format!("controllers: {agents} enrolments, ours and bare"));
        rows.extend(stage.enrolments(agents).await?);
    }
    step(began, "controllers: one enrolment after the other");
    rows.extend(stage.one_by_one(size.creations).await?);
    Ok(())
}

/// Every row of a fleet that stays: memory, changes that are none of our business, restarts.
pub(super) async fn rest(size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    let stage = Stage::set(began).await?;
    stage.resume().await?;
    step(began, &format!("controllers: {} AgentRuntimes stay", size.agents));
    let fleet = Fleet::make(&stage.cp, "stays", size.agents).await?;
    fleet.enrol().await?;
    fleet.configured().await?;
    rows.push(stage.memory(&fleet, size).await?);
    step(began, &format!("controllers: {UNRELATED} status updates a second"));
    rows.push(stage.statuses(&fleet, Others::Add).await?);
    rows.push(stage.statuses(&fleet, Others::Replace).await?);
    step(began, "controllers: restart, and lists that begin anew");
    rows.extend(stage.quiet(&fleet).await?);
    Ok(())
}

/// Every row of KAOS.
pub(super) async fn kaos(size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    let stage = Stage::set(began).await?;
    step(began, "controllers: Agents and MCPServers of KAOS, ours and bare");
    stage.kaos(size, rows).await
}

/// Every row of BeeAI.
pub(super) async fn beeai(size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    let stage = Stage::set(began).await?;
    step(began, &format!("controllers: {} Agents of BeeAI, ours and bare", size.agents / 5));
    rows.extend(beeai::rows(&stage, size.agents / 5).await?);
    step(began, &format!("controllers: {} AgentBuilds of BeeAI, and as many existing ones", size.agents / 10));
    rows.push(runs::row(&stage, size.agents / 10).await?);
    Ok(())
}

impl Stage {
    async fn set(began: Instant) -> Result<Self> {
        step(began, "controllers: control plane and installation");
        let cp = ControlPlane::start(Options { scheduling: false, ..Options::default() }).await?;
        let installation = Installation::start(&cp, &as_shipped()).await?;
        Ok(Self { cp, installation })
    }

    fn controllers(&self) -> Result<&Drawbridge> {
        self.installation.controllers.first().context("no process with role controllers")
    }

    /// Starts the controllers again and waits until one leads and has nothing to do.
    async fn resume(&self) -> Result<()> {
        let process = self.controllers()?;
        if process.pid().is_none() {
            process.start_again()?;
        }
        process.ready().await?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let metrics = process.metrics().await?;
            let leads = metrics.sum("leader_election_master_status", &[]) > 0.0;
            if leads && metrics.sum("drawbridge_controller_ready_items", &[]) == 0.0 {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the controllers are never done");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn halt(&self) -> Result<()> {
        self.controllers()?.stop(Duration::from_secs(30)).await.map(drop)
    }

    /// Everything by [`USER`] that changes something, Leases aside.
    async fn writes(&self, mark: webhook_tests::Mark) -> Result<Requests> {
        let written = self.cp.audit().settled(mark).await?.by(USER).writes();
        Ok(written.filter(|request| request.resource != "leases"))
    }

    /// `agents` enrolments at once: until all are configured, ours over bare.
    async fn enrolments(&self, agents: usize) -> Result<Vec<Row>> {
        let (mut times, mut rates) = (Vec::new(), Vec::new());
        let mut note = String::new();
        for round in 0..ROUNDS {
            self.halt().await?;
            let (bare, bare_writes) = self.enrolment(agents, true).await?;
            self.resume().await?;
            let (ours, our_writes) = self.enrolment(agents, false).await?;
            let per_second = |writes: usize, took: Duration| real(writes) / took.as_secs_f64();
            times.push(ours.as_secs_f64() / bare.as_secs_f64());
            rates.push(per_second(our_writes, ours) / per_second(bare_writes, bare));
            if round + 1 == ROUNDS {
                note = format!(
                    "last of {ROUNDS} rounds: {:.2} ÷ {:.2} s; {our_writes} and {bare_writes} writes, {:.0} and {:.0} a second",
                    ours.as_secs_f64(),
                    bare.as_secs_f64(),
                    per_second(our_writes, ours),
                    per_second(bare_writes, bare),
                );
            }
        }
        let what =
            format!("{agents} AgentRuntimes with Deployments, all configured ÷ a bare loop writing the same objects");
        let rate = format!("writes a second of {agents} enrolments ÷ those of the bare loop");
        Ok(vec![
            Row::at_most(what, (1.5, 1.1), median(times), "").noted(note),
            Row::at_least(rate, (0.67, 0.9), median(rates), "").noted("the same rounds"),
        ])
    }

    /// One round: from the first AgentRuntime until the last is configured, and the writes that took.
    async fn enrolment(&self, agents: usize, bare: bool) -> Result<(Duration, usize)> {
        let fleet = Fleet::make(&self.cp, if bare { "bare" } else { "ours" }, agents).await?;
        let mut reactor = if bare { Some(bare::start(&self.cp, &fleet).await?) } else { None };
        let enrolled = async {
            fleet.warm().await?;
            let mark = self.cp.audit().mark()?;
            let began = Instant::now();
            let (made, configured) = tokio::join!(fleet.enrol(), fleet.configured());
            made?;
            configured?;
            anyhow::Ok((mark, began.elapsed()))
        };
        let refused = async {
            match &mut reactor {
                Some(reactor) => reactor.refused().await,
                None => std::future::pending().await,
            }
        };
        let (mark, took) = tokio::select! {
            enrolled = Box::pin(enrolled) => enrolled?,
            refused = Box::pin(refused) => return Err(refused.err().context("the bare loop ended by itself")?),
        };
        let writes = self.writes(mark).await?.in_namespace(fleet.namespace()).len();
        if let Some(reactor) = reactor {
            reactor.end().await?;
        }
        fleet.remove(bare).await?;
        Ok((took, writes))
    }

    /// From the answer to an AgentRuntime's creation until a watch shows the workload patched, one after the other.
    async fn one_by_one(&self, count: usize) -> Result<Vec<Row>> {
        self.halt().await?;
        let bare = self.latencies(count, true).await?;
        self.resume().await?;
        let ours = self.latencies(count, false).await?;
        let row = |name: &str, share: f64| {
            let (ours, bare) = (quantile(&ours, share) / 1000.0, quantile(&bare, share) / 1000.0);
            Row::at_most(
                format!("AgentRuntime created → workload patched, beyond the API's own time, {name}"),
                (100.0, 20.0),
                ours - bare,
                " ms",
            )
            .noted(format!("{ours:.1} against {bare:.1} ms of a bare watch that makes the same writes, {count} each"))
        };
        Ok(vec![row("p50", 0.5), row("p99", 0.99)])
    }

    async fn latencies(&self, count: usize, bare: bool) -> Result<Vec<Duration>> {
        let fleet = Fleet::make(&self.cp, "single", count).await?;
        let reactor = if bare { Some(bare::start(&self.cp, &fleet).await?) } else { None };
        fleet.warm().await?;
        let mut times = fleet.one_by_one().await?;
        if let Some(reactor) = reactor {
            reactor.end().await?;
        }
        fleet.remove(bare).await?;
        times.sort_unstable();
        Ok(times)
    }

    /// Resident memory of the leader that knows the fleet, and as many Pods as there was time for.
    async fn memory(&self, fleet: &Fleet, size: Size) -> Result<Row> {
        let pods =
            memory::pods(&self.cp.objects().await?, size, |index| (fleet.namespace(), fleet.name(index))).await?;
        self.resume().await?;
        let (total, files) = memory::mib(self.controllers()?)?;
        let what = format!("RSS of the controllers, {} AgentRuntimes with Deployments and Pods", fleet.size());
        Ok(Row::at_most(what, (64.0, 32.0), total, " MiB")
            .noted(format!("{pods} injected Pods; {files:.0} MiB of it code")))
    }

    /// CPU while others update statuses in that way.
    async fn statuses(&self, fleet: &Fleet, others: Others) -> Result<Row> {
        let api: Api<Deployment> = Api::namespaced(self.cp.client().await?, fleet.namespace());
        fleet.at_rest().await?;
        self.resume().await?;
        let pid = self.controllers()?.pid().context("the process has ended")?;
        let mark = self.cp.audit().mark()?;
        let (before, began) = (cpu::used(pid)?, Instant::now());
        let mut tick = tokio::time::interval(Duration::from_secs(1) / UNRELATED);
        let mut under_way = tokio::task::JoinSet::new();
        let mut updates = 0;
        while began.elapsed() < UNRELATED_FOR {
            tick.tick().await;
            // A machine that cannot take them all is given no backlog: the row says how many there were.
            if under_way.len() >= AT_ONCE
                && let Some(done) = under_way.join_next().await
            {
                done??;
            }
            updates += 1;
            let (api, name) = (api.clone(), fleet.name(updates % fleet.size()));
            let condition = json!({"type": "example.com/Unrelated", "status": "True", "reason": "Turn", "message": updates.to_string()});
            let status = json!({"status": {"conditions": [condition]}});
            under_way.spawn(async move {
                let patch = match others {
                    Others::Add => Patch::Strategic(status),
                    Others::Replace => Patch::Merge(status),
                };
                api.patch_status(&name, &PatchParams::default(), &patch).await.map(drop)
            });
        }
        for done in under_way.join_all().await {
            done?;
        }
        let (took, used) = (began.elapsed(), cpu::used(pid)? - before);
        let writes = self.writes(mark).await?.len();
        ensure!(writes == 0, "{writes} writes because of them");
        let stored = self.cp.audit().settled(mark).await?.writes().accepted().in_namespace(fleet.namespace()).len();
        let share = used.as_secs_f64() / took.as_secs_f64() * 100.0;
        let what = match others {
            Others::Add => format!("CPU under {UNRELATED} unrelated status updates a second"),
            Others::Replace => {
                format!("CPU under {UNRELATED} status updates a second that take conditions away, which come back")
            }
        };
        Ok(Row::at_most(what, (10.0, 3.0), share, " % of a core")
        .noted(format!(
            "{updates} updates in {:.1} s of Deployments that are enrolled, {stored} writes with those of others, none of ours",
            took.as_secs_f64()
        )))
    }

    /// Writes after a restart of the controllers, and after one of the API server.
    async fn quiet(&self, fleet: &Fleet) -> Result<Vec<Row>> {
        let mark = self.cp.audit().mark()?;
        self.halt().await?;
        self.resume().await?;
        self.pulse("restarted").await?;
        let restart = self.writes(mark).await?.in_namespace(fleet.namespace()).len();
        let mark = self.cp.audit().mark()?;
        self.cp.restart(Process::ApiServer).await?;
        self.pulse("relisted").await?;
        self.resume().await?;
        let listed = self.cp.audit().settled(mark).await?.by(USER).verb("list").len();
        let relist = self.writes(mark).await?.in_namespace(fleet.namespace()).len();
        let note = format!("audit log, {} AgentRuntimes, Leases aside", fleet.size());
        Ok(vec![
            Row::at_most("writes after a restart with nothing changed", (0.0, 0.0), real(restart), "")
                .noted(note.clone()),
            Row::at_most("writes after the API server went away and came back", (0.0, 0.0), real(relist), "")
                .noted(format!("{note}; {listed} lists began anew, the other watches went on")),
        ])
    }

    /// One enrolment elsewhere: whatever was to be done before has been done.
    async fn pulse(&self, name: &str) -> Result<()> {
        self.begun(name).await?.configured().await
    }

    async fn begun(&self, name: &str) -> Result<Fleet> {
        let fleet = Fleet::make(&self.cp, name, 1).await?;
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = fleet.enrol().await {
            ensure!(Instant::now() < deadline, "{error:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(fleet)
    }
}

#[expect(clippy::cast_precision_loss, reason = "thousands")]
fn real(count: usize) -> f64 {
    count as f64
}
