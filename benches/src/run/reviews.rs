//! What one review costs: beside the echo and the Go injector, small and large, alone and at sixteen connections.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Size;
use super::world::World;
use crate::cpu;
use crate::load::{self, Target};
use crate::peers::{self, Peers};
use crate::table::{Row, median, quantile};
use drawbridge_counts::fixture::{self, NAMESPACE, Review};

/// Connections of the busy rows.
const BUSY: usize = 16;
/// What a review may cost beside an echo; by it, what is absolute is judged on a machine whose echo alone takes more than
/// its part of it.
const BESIDE_ECHO: f64 = 3.0;

/// One process and what it is asked.
pub(super) struct Lane<'a> {
    target: &'a Target,
    id: i32,
    review: &'a Review,
    connections: usize,
    /// Microseconds of CPU per review, one per round.
    cpu: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(target: &'a Target, id: i32, review: &'a Review, connections: usize) -> Self {
        Self { target, id, review, connections, cpu: Vec::new(), p50: Vec::new(), p99: Vec::new() }
    }

    fn round(&mut self, requests: usize) -> Result<()> {
        let mut used = Vec::new();
        let times =
            load::drive(self.target, self.review, self.connections, requests, || used.push(cpu::used(self.id)))?;
        let used: Vec<Duration> = used.into_iter().collect::<Result<_>>()?;
        let [before, after] = used[..] else { anyhow::bail!("the CPU time is read before and after") };
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        self.cpu.push((after - before).as_secs_f64() * 1e6 / times.len() as f64);
        self.p50.push(quantile(&times, 0.5));
        self.p99.push(quantile(&times, 0.99));
        Ok(())
    }

    /// Microseconds of CPU per review: the median of the rounds.
    pub(super) fn cpu(&self) -> f64 {
        median(self.cpu.clone())
    }
}

/// Every lane once per round.
pub(super) fn rounds(lanes: &mut [Lane<'_>], size: Size) -> Result<()> {
    for _ in 0..size.rounds {
        for lane in lanes.iter_mut() {
            lane.round(size.requests)?;
        }
    }
    Ok(())
}

pub(super) async fn rows(world: &World, peers: &Peers, size: Size) -> Result<Vec<Row>> {
    let namespace = world.namespace.name();
    let mut small = Review::of(&fixture::pod(namespace, 8 * 1024));
    let large = Review::of(&fixture::pod(namespace, 88 * 1024));
    let process = world.webhook()?;
    let ours = world.target(process);
    let id = process.pid().ok_or_else(|| anyhow::anyhow!("the webhook has ended"))?;
    let answer = peers::answer(&ours, small.numbered(1))?;
    ensure!(contains(&answer, "\"JSONPatch\""), "the Pod is not injected: {}", String::from_utf8_lossy(&answer));
    let (echo, go) = (peers.echo(answer.len())?, peers.go()?);
    let theirs = peers::answer(&go.target, small.numbered(1))?;
    ensure!(contains(&theirs, "\"JSONPatch\""), "the Go injector: {}", String::from_utf8_lossy(&theirs));
    let before = world.cp.audit().mark()?;
    let lanes = tokio::task::block_in_place(|| {
        let mut lanes = [
            Lane::new(&echo.target, echo.id, &small, 1),
            Lane::new(&ours, id, &small, 1),
            Lane::new(&ours, id, &large, 1),
            Lane::new(&go.target, go.id, &small, 1),
            Lane::new(&echo.target, echo.id, &small, BUSY),
            Lane::new(&ours, id, &small, BUSY),
            Lane::new(&go.target, go.id, &small, BUSY),
        ];
        rounds(&mut lanes, size).map(|()| lanes.map(|lane| (lane.cpu(), median(lane.p50), median(lane.p99))))
    })?;
    let asked = world.cp.audit().settled(before).await?.by("system:serviceaccount:kagenti-system:drawbridge-webhook");
    let asked = asked.filter(|request| request.verb != "watch").len();
    let [
        (echo, echo_p50, echo_p99),
        (one, p50, p99),
        (large, ..),
        (go, ..),
        (busy_echo, ..),
        (busy, ..),
        (busy_go, ..),
    ] = lanes;
    let bytes = format!("body {} bytes, answer {} bytes", small.size(), answer.len());
    Ok(vec![
        Row::at_most("CPU of an injecting review (8 KiB Pod) ÷ bare TLS echo", (BESIDE_ECHO, 2.2), one / echo, "").noted(format!(
            "{one:.1} ÷ {echo:.1} µs, one connection, {bytes}; at {BUSY} connections {:.2}; the Go injector takes {go:.0} µs, {:.1} times ours",
            busy / busy_echo, go / one
        )),
        Row::at_least("reviews per second and core, 16 connections", (8000.0, 15000.0), 1e6 / busy, "/s")
            .here(1e6 / busy_echo / BESIDE_ECHO)
            .noted(format!(
                "{busy:.1} µs of CPU each; an echo {:.0}/s, the Go injector {:.0}/s",
                1e6 / busy_echo,
                1e6 / busy_go
            )),
        Row::at_most("loopback p50, one connection", (150.0, 100.0), p50, " µs")
            .here(BESIDE_ECHO * echo_p50)
            .noted(format!("an echo {echo_p50:.0} µs")),
        Row::at_most("loopback p99, one connection", (400.0, 200.0), p99, " µs")
            .here(BESIDE_ECHO * echo_p99)
            .noted(format!("an echo {echo_p99:.0} µs")),
        Row::at_most("CPU of an 88 KiB Pod ÷ 8 KiB Pod", (8.0, 6.0), large / one, "")
            .noted(format!("{large:.0} ÷ {one:.1} µs")),
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        Row::at_most("API requests during these reviews", (0.0, 0.0), asked as f64, "")
            .noted("audit log, by the webhook's ServiceAccount, without renewed watches"),
    ])
}

/// The cost of a review when many agents are known, over that when none is.
pub(super) fn known(peers: &Peers, size: Size) -> Result<Row> {
    let review = Review::of(&fixture::pod(NAMESPACE, 8 * 1024));
    let (none, many) = (peers.offline(0)?, peers.offline(10_000)?);
    let mut lanes = [Lane::new(&none.target, none.id, &review, 1), Lane::new(&many.target, many.id, &review, 1)];
    rounds(&mut lanes, Size { rounds: size.rounds + 4, ..size })?;
    let [none, many] = lanes.map(|lane| lane.cpu());
    Ok(Row::at_most("cost with 10,000 agents known ÷ with none", (1.10, 1.03), many / none, "")
        .noted(format!("{many:.1} ÷ {none:.1} µs, endpoints over a made-up snapshot")))
}

/// Whether an answer says so.
pub(super) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
