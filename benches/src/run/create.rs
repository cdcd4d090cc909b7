//! What the webhook adds to the creation of a Pod through the API server.
//!
//! On and off are the same manifest but for the value of one label, which decides whether the API server asks at all;
//! so "on" also pays for storing the sidecars, and for the second call that follows the first. How much of that is the API
//! server's own is shown by a third lane, whose webhook only answers ([`super::stamp`]). Where that one alone takes longer than the
//! row allows, what ours takes beyond it is held to the same number.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::world::World;
use super::{Size, stamp};
use crate::table::{Row, median, quantile};
use drawbridge_counts::fixture;

pub(super) async fn rows(world: &World, size: Size) -> Result<Vec<Row>> {
    let on = fixture::manifest(world.namespace.name(), 4096);
    let mut off = on.clone();
    off["metadata"]["labels"]["kagenti.io/type"] = json!("other");
    let mut stamped = off.clone();
    stamped["metadata"]["labels"][stamp::LABEL] = json!("true");
    let _answering = stamp::start(world, &stamped).await?;
    let metrics = world.webhook()?.metrics().await?;
    let reviews = |metrics: &webhook_tests::Metrics| metrics.sum("drawbridge_decisions_total", &[]);
    let before = reviews(&metrics);
    let mark = world.cp.audit().mark()?;
    let (mut added, mut floor) = (Vec::new(), Vec::new());
    let [mut all_on, mut all_off, mut all_stamped] = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..size.rounds {
        let [with, without, bare] = creations(world, [&on, &off, &stamped], size).await?;
        let [with_p50, without_p50, bare_p50] = [&with, &without, &bare].map(|times| quantile(times, 0.5));
        added.push(with_p50 - without_p50);
        floor.push(bare_p50 - without_p50);
        all_on.extend(with);
        all_off.extend(without);
        all_stamped.extend(bare);
    }
    for all in [&mut all_on, &mut all_off, &mut all_stamped] {
        all.sort_unstable();
    }
    let p99 = |all: &[Duration]| (quantile(all, 0.99) - quantile(&all_off, 0.99)) / 1000.0;
    let floor = [median(floor) / 1000.0, p99(&all_stamped)];
    let (p50, longest) = ((1.0, 0.4), (5.0, 2.0));
    let here = |must: f64, floor: f64| if floor > must { floor + must } else { must };
    let bare = |floor: f64| format!("a webhook that only answers the same patch adds {floor:.2} ms");
    let decided = reviews(&world.webhook()?.metrics().await?) - before;
    let asked = world.cp.audit().settled(mark).await?.by("system:serviceaccount:kagenti-system:drawbridge-webhook");
    let asked = asked.filter(|request| request.verb != "watch").len();
    let on_p50 = quantile(&all_on, 0.5) / 1000.0;
    let off_p50 = quantile(&all_off, 0.5) / 1000.0;
    Ok(vec![
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        Row::at_most("API requests caused by reviews of created Pods", (0.0, 0.0), asked as f64, "")
            .noted(format!("{} Pods, {decided:.0} reviews", all_on.len())),
        Row::at_most("added to a Pod CREATE, p50", p50, median(added) / 1000.0, " ms")
            .here(here(p50.0, floor[0]))
            .noted(format!(
                "{on_p50:.2} against {off_p50:.2} ms; {:.1} reviews a Pod; {}",
                decided / all_on.len() as f64,
                bare(floor[0])
            )),
        Row::at_most("added to a Pod CREATE, p99", longest, p99(&all_on), " ms")
            .here(here(longest.0, floor[1]))
            .noted(bare(floor[1])),
    ])
}

/// Which manifest is created first, second and third, in turns: each comes after each of the others as often.
const ORDERS: [[usize; 3]; 2] = [[0, 1, 2], [0, 2, 1]];

/// Creates Pods one after the other, of each manifest in turns, so that a slow second of the machine hits all alike; the times of
/// the creation of each manifest's, sorted.
async fn creations(world: &World, pods: [&Value; 3], size: Size) -> Result<[Vec<Duration>; 3]> {
    let mut times = [(); 3].map(|()| Vec::with_capacity(size.creations));
    for turn in 0..size.creations {
        for which in ORDERS[turn % ORDERS.len()] {
            let began = Instant::now();
            let answer = world.namespace.create(pods[which], false).await?;
            times[which].push(began.elapsed());
            answer.result.map_err(|status| anyhow!("a Pod is refused: {}", status.message))?;
        }
    }
    for times in &mut times {
        times.sort_unstable();
    }
    Ok(times)
}
