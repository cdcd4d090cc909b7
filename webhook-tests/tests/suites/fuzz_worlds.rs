//! The worlds that fuzzing decides in: the fuzz targets are a workspace of their own, so that a change of the types they
//! start from would otherwise be noticed by nobody but the next person who fuzzes.

use std::collections::BTreeSet;

use drawbridge::domain::workload::WorkloadKind;

#[path = "../../../fuzz/src/worlds.rs"]
#[allow(unreachable_pub, dead_code, reason = "a module of another crate")]
mod worlds;

#[path = "../../../fuzz/src/builds.rs"]
#[allow(unreachable_pub, dead_code, reason = "a module of another crate")]
mod builds;

/// The templates and steps that those worlds speak of can be used, where they are not meant to be broken.
#[test]
fn every_world_of_builds_has_what_it_speaks_of() {
    let view = |number| &builds::world(number).builds.view;
    let usable = |number, namespace: &str, step: &str| {
        view(number).steps(namespace).get(step).map(|entry| entry.step.as_ref().map(|_| ()).map_err(Vec::len))
    };
    assert_eq!(usable(2, "team1", "scan-step"), Some(Ok(())));
    assert_eq!((usable(2, "team1", "no-step"), usable(3, "kagenti-system", "github-clone-step")), (Some(Err(1)), None));
    assert!(
        matches!(usable(2, "team1", "broken-step"), Some(Err(_))) && usable(1, "team1", "broken-step") == Some(Ok(()))
    );
    let template = |number, mode| view(number).template("team1", mode).map(|entry| entry.template.is_ok());
    assert_eq!((template(2, "dev-local"), template(2, "prod"), template(0, "dev")), (Some(true), Some(false), None));
}

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
