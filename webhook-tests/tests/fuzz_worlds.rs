//! The worlds that fuzzing decides in: the fuzz targets are a workspace of their own, so that a change of the types they
//! start from would otherwise be noticed by nobody but the next person who fuzzes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeSet;

use drawbridge::domain::workload::WorkloadKind;

#[path = "../../fuzz/src/worlds.rs"]
#[allow(unreachable_pub, dead_code, reason = "a module of another crate")]
mod worlds;

#[test]
fn every_world_can_be_built_and_no_two_are_the_same() {
    let shown: BTreeSet<String> = (0..6).map(|number| format!("{:?}", worlds::world(number))).collect();
    assert_eq!(shown.len(), 6);
    let governed = |number| {
        let namespace = worlds::world(number).namespace("team1");
        namespace.is_some_and(|view| view.governors.winner(WorkloadKind::Deployment, "weather-agent").is_some())
    };
    assert_eq!((0..6).map(governed).collect::<Vec<_>>(), [true, false, true, false, false, false]);
}
