//! From exec to the first review that is answered, with the authority's Secret in place.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::Size;
use super::world::World;
use crate::peers;
use crate::table::{Row, median};
use drawbridge_counts::fixture::{self, Review};

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn row(world: &World, size: Size) -> Result<Row> {
    let process = world.webhook()?;
    let target = world.target(process);
    let mut review = Review::of(&fixture::pod(world.namespace.name(), 8 * 1024));
    let mut times = Vec::new();
    for _ in 0..size.rounds {
        process.kill().await;
        let began = Instant::now();
        process.start_again()?;
        loop {
            let body = review.numbered(1).to_vec();
            let asked = target.clone();
            let answered = tokio::task::spawn_blocking(move || peers::answer(&asked, &body)).await?;
            if answered.is_ok() {
                break;
            }
            ensure!(began.elapsed() < PATIENCE, "no answer after {PATIENCE:?}\n{}", process.log());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    process.ready().await?;
    Ok(Row::at_most("exec → first answered review, CA Secret present", (500.0, 100.0), median(times), " ms"))
}
