//! What does not go as planned: somebody else writes, too; the API server refuses or is away; the namespace goes.

use serde_json::json;

use super::bench::{Bench, TEAM, owns, running};
use super::images::from_build;
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

#[test]
fn what_is_taken_each_time_is_given_up_and_said() {
    let mut bench = running();
    let fight = |bench: &mut Bench| bench.edit(Kind::Deployment, "weather", json!({"spec": {"replicas": 7}}));
    fight(&mut bench);
    assert_eq!(owns(&bench.round(&ROW)), [Kind::Deployment]);
    fight(&mut bench);
    let ops = bench.round(&ROW);
    assert_eq!(owns(&ops), [], "not written a second time");
    assert_eq!(bench.told.last().map(|report| report.reason), Some(Reason::FieldsContested));
    assert!(bench.told.last().unwrap().message.contains("Deployment spec.replicas"));
    for _ in 0..5 {
        bench.now += s(1);
        assert_eq!(owns(&bench.round(&ROW)), []);
    }
    assert_eq!(bench.plan("weather").again, None, "nor is it planned again and again");
    // Once the Agent says something else, it is tried again.
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 2}}));
    bench.converge();
    assert_eq!(bench.object(Kind::Deployment, "weather")["spec"]["replicas"], 2);
}

#[test]
fn d14_a_write_that_is_refused_is_said_and_not_repeated_until_something_changes() {
    let mut bench = running();
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 3}}));
    let op = bench.plan("weather").ops.into_iter().find(|op| matches!(op, Op::Own { .. })).unwrap();
    let item = Item { controller: ROW.controller, key: Key::new(TEAM, "weather") };
    let words = "spec.selector: field is immutable".to_owned();
    bench.cluster.memory.failure(&item, bench.now, (op.clone(), Some(Reason::InvalidSpec), words));
    assert_eq!(owns(&bench.converge()), []);
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Failed", "False/InvalidSpec")
    );
    assert!(bench.message("weather", "Ready").contains("immutable"));
    assert_eq!(bench.status("weather")["image"], "ghcr.io/acme/weather:v1", "what runs");
    assert!(bench.plan("weather").again.is_some_and(|again| again > s(60)));
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 2}}));
    assert_eq!(owns(&bench.converge()), [Kind::Deployment], "another spec is another try");
}

#[test]
fn d14_a_write_that_fails_over_and_over_is_said_and_tried_again() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.round(&ROW);
    let op = bench.plan("weather").ops.into_iter().find(|op| matches!(op, Op::Own { .. })).unwrap();
    let item = Item { controller: ROW.controller, key: Key::new(TEAM, "weather") };
    for _ in 0..5 {
        bench.cluster.memory.failure(&item, bench.now, (op.clone(), None, "etcd is away".to_owned()));
    }
    let ops = bench.plan("weather").ops;
    let status = ops.iter().position(|op| matches!(op, Op::Status { .. }));
    let own = ops.iter().position(|op| matches!(op, Op::Own { .. }));
    assert!(status.is_some() && status < own, "said before it fails again: {ops:#?}");
}

#[test]
fn d13_in_a_namespace_that_goes_nothing_is_made_and_deletion_waits_for_nothing() {
    let mut bench = running();
    let namespace = json!({"metadata": {"name": TEAM, "uid": TEAM, "deletionTimestamp": "2026-05-02T00:00:00Z"}});
    bench.cluster.see(Kind::Namespace, namespace);
    bench.remove(Kind::Deployment, "weather");
    assert_eq!(bench.converge(), []);
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert!(bench.find(Kind::Agent, "weather").is_none());
}

/// A right that was revoked, or a policy that forbids it: everything is owned, and the garbage collector has rights of its own.
#[test]
fn d12_d13_an_agent_goes_though_what_it_made_may_not_be_deleted() {
    for kind in [Kind::Deployment, Kind::Service] {
        let mut bench = running();
        bench.edit(Kind::Agent, "weather", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
        let is_it = |op: &Op| matches!(op, Op::Delete { kind: its, .. } if *its == kind);
        assert!(bench.round_that_fails(&ROW, is_it), "{kind:?}");
        assert!(bench.find(Kind::Agent, "weather").is_some(), "{kind:?}: what it made is to go first");
        bench.converge();
        assert!(bench.find(Kind::Agent, "weather").is_none(), "{kind:?}");
        assert!(bench.find(kind, "weather").is_some(), "{kind:?}: left to the garbage collector");
    }
}

#[test]
fn builds_that_cannot_be_read_are_no_builds_that_do_not_exist() {
    let mut bench = Bench::new();
    for (reach, words) in
        [(Reach::Unknown, "cannot be read"), (Reach::Absent, "does not serve"), (Reach::Listed, "create it")]
    {
        bench.cluster.store.set_reach(Kind::AgentBuild, reach);
        if bench.find(Kind::Agent, "weather").is_none() {
            bench.agent("weather", from_build());
        }
        bench.converge();
        assert!(bench.message("weather", "ImageReady").contains(words), "{reach:?}");
    }
}

/// Of an Agent that is over a bound nothing is read: what runs stays, and the Agent says why.
#[test]
fn mend_02_an_agent_that_is_too_large_says_so_and_what_runs_stays() {
    let mut bench = running();
    let before = bench.object(Kind::Deployment, "weather");
    let large = "x".repeat(70 * 1024);
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"annotations": {"a": large}}, "spec": {"replicas": 3}}));
    assert_eq!(owns(&bench.converge()), []);
    assert_eq!(bench.object(Kind::Deployment, "weather"), before);
    assert_eq!(bench.condition("weather", "Ready"), "False/InvalidSpec");
    let message = bench.message("weather", "Ready");
    assert!(message.contains("64 KiB") && message.contains("what was made of it before stays"), "{message}");
    assert!(bench.told.iter().any(|report| report.reason == Reason::InvalidSpec && report.message.contains("64 KiB")));
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"annotations": {"a": null}}}));
    assert_eq!(owns(&bench.converge()), [Kind::Deployment], "small again, it counts");
    assert_eq!(bench.object(Kind::Deployment, "weather")["spec"]["replicas"], 3);
    // Neither is its end held up.
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"annotations": {"a": "x".repeat(70 * 1024)}}}));
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"deletionTimestamp": "2026-05-01T01:00:00Z"}}));
    bench.converge();
    assert!(bench.find(Kind::Agent, "weather").is_none(), "our finalizer is taken off");
}
