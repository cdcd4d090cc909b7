//! The rows about KAOS.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use webhook_tests::Process;

use super::fleet::Fleet;
use super::kaos::{Team, bare};
use super::{ROUNDS, Stage, real};
use crate::cpu;
use crate::run::{Size, memory};
use crate::table::{Row, median};

/// How often a second the ModelAPI's status flaps.
const FLAPS: u32 = 100;
/// How long it does.
const FLAPS_FOR: Duration = Duration::from_secs(10);

impl Stage {
    /// Every row of KAOS: `agents` Agents, as many MCPServers and one ModelAPI.
    pub(super) async fn kaos(&self, size: Size, rows: &mut Vec<Row>) -> Result<()> {
        let agents = size.agents / 2;
        // For a minute after a kind is defined the API server does not find it for a policy and refuses: what is measured comes after that.
        self.resume().await?;
        let first = Team::make(&self.cp, "kaos-first", 1).await?;
        self.undisturbed(Box::pin(first.timed())).await?;
        first.remove(false).await?;
        let (mut ratios, mut note) = (Vec::new(), String::new());
        for round in 0..ROUNDS {
            self.halt().await?;
            let team = Team::make(&self.cp, &format!("kaos-bare-{round}"), agents).await?;
            team.mark().await?;
            let mut bare = bare(&self.cp, &team).await?;
            let theirs = async {
                tokio::select! {
                    took = team.timed() => took,
                    refused = bare.refused() => Err(refused.err().context("the bare loop ended by itself")?),
                }
            };
            let theirs = self.undisturbed(Box::pin(theirs)).await?;
            bare.end().await?;
            team.remove(true).await?;
            self.resume().await?;
            let team = Team::make(&self.cp, &format!("kaos-ours-{round}"), agents).await?;
            let ours = self.undisturbed(Box::pin(team.timed())).await?;
            team.remove(false).await?;
            ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
            note = format!("last of {ROUNDS} rounds: {:.2} ÷ {:.2} s", ours.as_secs_f64(), theirs.as_secs_f64());
        }
        let what = format!(
            "KAOS: {agents} Agents, {agents} MCPServers, one ModelAPI at once, all Deployments and Services there ÷ a bare loop writing the same"
        );
        rows.push(Row::at_most(what, (1.5, 1.2), median(ratios), "").noted(note));
        let team = Team::make(&self.cp, "kaos-stays", agents).await?;
        // Namespaces are made while their controller is there.
        let pulse = Fleet::make(&self.cp, "kaos-restarted", 1).await?;
        self.undisturbed(Box::pin(self.at_rest(&team, &pulse, rows))).await
    }

    /// A team that stays: a status that flaps, a restart, memory.
    async fn at_rest(&self, team: &Team, pulse: &Fleet, rows: &mut Vec<Row>) -> Result<()> {
        team.timed().await?;
        team.ready().await?;
        self.resume().await?;
        rows.push(self.flapping(team).await?);
        team.put_right().await?;
        let mark = self.cp.audit().mark()?;
        self.halt().await?;
        self.resume().await?;
        // One enrolment elsewhere: nobody says meanwhile whether its Pods are current.
        pulse.enrol().await?;
        pulse.patched().await?;
        let written = self.writes(mark).await?.in_namespace(team.namespace());
        let which = if written.is_empty() { String::new() } else { format!(": {written}") };
        rows.push(
            Row::at_most("KAOS: writes after a restart with nothing changed", (0.0, 0.0), real(written.len()), "")
                .noted(format!("audit log, {} objects{which}", team.all())),
        );
        let all = team.grow().await?;
        let (total, files) = memory::mib(self.controllers()?)?;
        let what = format!("RSS of the controllers, {all} objects of KAOS");
        rows.push(Row::at_most(what, (96.0, 48.0), total, " MiB").noted(format!("{files:.0} MiB of it code")));
        Ok(())
    }

    /// Does something while nobody else says whether Deployments are ready: there are no Pods, and their own controller would take back what the
    /// hand gives, so that whoever waits for a dependency waited for ever.
    async fn undisturbed<T>(&self, done: impl Future<Output = Result<T>>) -> Result<T> {
        self.cp.pause(Process::ControllerManager);
        let done = done.await;
        self.cp.resume(Process::ControllerManager);
        done
    }

    /// Writes on Agents and CPU, while the status of what all of them name flaps.
    async fn flapping(&self, team: &Team) -> Result<Row> {
        let pid = self.controllers()?.pid().context("the process has ended")?;
        let mark = self.cp.audit().mark()?;
        let (before, began) = (cpu::used(pid)?, Instant::now());
        let times = team.flap(FLAPS, FLAPS_FOR).await?;
        let (took, used) = (began.elapsed(), cpu::used(pid)? - before);
        let written = self.writes(mark).await?.in_namespace(team.namespace());
        // Its own status is put right, which is what flaps.
        let others = written.filter(|request| request.resource != "modelapis");
        ensure!(others.is_empty(), "{others}");
        let share = used.as_secs_f64() / took.as_secs_f64() * 100.0;
        let what = format!("KAOS: CPU while a ModelAPI's status flaps {FLAPS} times a second, no write on its Agents");
        Ok(Row::at_most(what, (60.0, 20.0), share, " % of a core")
            .noted(format!("{times} changes in {:.1} s", took.as_secs_f64())))
    }
}
