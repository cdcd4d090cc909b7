//! The label by which the API server's policies know that a namespace holds an Agent: who carries it, and when it is written.

use serde_json::json;

use super::bench::{Bench, TEAM, owns, running};
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

const POINTER: &str = "/metadata/labels/agent.kagenti.dev~1policy-parameter";

fn marks(ops: &[Op]) -> usize {
    let writes = |op: &&Op| match op {
        Op::Edit { operations: written, .. } | Op::Merge { patch: written, .. } => {
            written.to_string().contains("policy-parameter")
        }
        _ => false,
    };
    ops.iter().filter(writes).count()
}

fn is_marked(bench: &Bench, name: &str) -> bool {
    bench.object(Kind::Agent, name).pointer(POINTER) == Some(&json!("true"))
}

#[test]
fn the_first_agent_of_a_namespace_is_marked_with_its_finalizer_and_no_other() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    let ops = bench.converge();
    assert_eq!((marks(&ops[..1]), marks(&ops)), (1, 1), "{ops:#?}");
    assert!(is_marked(&bench, "weather"));
    assert_eq!(bench.object(Kind::Agent, "weather")["metadata"]["labels"]["team"], "weather", "others stay");
    bench.agent("news", json!({}));
    assert_eq!(marks(&bench.converge()), 0);
    assert!(!is_marked(&bench, "news") && bench.find(Kind::Deployment, "news").is_some());
}

#[test]
fn an_agent_without_labels_is_marked_too() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"metadata": {"labels": null}}));
    bench.converge();
    assert!(is_marked(&bench, "weather"));
}

/// As an earlier version left it, or once the marked one has gone: nothing is written until something is to be made, and then the mark comes
/// first, by itself.
#[test]
fn without_a_marked_one_nothing_is_written_until_something_is_made() {
    let mut bench = running();
    bench.agent("news", json!({}));
    bench.converge();
    bench.rolled_out("news");
    bench.converge();
    bench.remove(Kind::Agent, "weather");
    let ops = bench.converge();
    assert!(ops.is_empty(), "{ops:#?}");
    bench.remove(Kind::Service, "news");
    let plan = bench.plan("news");
    assert_eq!((plan.ops.len(), marks(&plan.ops)), (1, 1), "{:#?}", plan.ops);
    bench.converge();
    assert!(is_marked(&bench, "news") && bench.find(Kind::Service, "news").is_some());
}

/// One that is on its way out will not be there when something is made.
#[test]
fn one_that_goes_stands_for_nobody() {
    let mut bench = running();
    let away = json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z", "finalizers": ["example.com/stays"]}});
    bench.edit(Kind::Agent, "weather", away);
    bench.agent("news", json!({}));
    bench.converge();
    assert!(is_marked(&bench, "news"));
}

/// Somebody takes it off each time it is put on.
#[test]
fn a_mark_that_is_taken_off_each_time_is_put_on_less_and_less_often_and_that_is_said() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    let (began, mut at, mut all) = (bench.now, Vec::new(), Vec::new());
    for second in 0..1_000_u64 {
        bench.now = began + s(second);
        let ops = bench.round(&ROW);
        if marks(&ops) > 0 {
            at.push(second);
        }
        all.extend(ops);
        bench.unmark("weather");
    }
    assert_eq!(at, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812], "twice as long each time, and 5 minutes at most");
    assert_eq!(owns(&all), [], "nothing is sent that would be refused");
    assert!(all.len() <= at.len() + 3, "what waits writes nothing: {all:#?}");
    assert_eq!(bench.reasons(), ["FieldsContested"], "told once");
    assert_eq!(bench.condition("weather", "Ready"), "False/FieldsContested");
    assert!(bench.message("weather", "Ready").contains("agent.kagenti.dev/policy-parameter"));
    assert!(bench.plan("weather").again.is_some_and(|again| again > s(60)), "nor is it planned again meanwhile");

    // Once nobody does, everything is made; and what comes later begins anew.
    bench.now += s(300);
    bench.converge();
    assert!(is_marked(&bench, "weather") && bench.find(Kind::Deployment, "weather").is_some());
    bench.unmark("weather");
    bench.remove(Kind::Service, "weather");
    assert_eq!(marks(&bench.plan("weather").ops), 1);
    bench.converge();
    assert!(bench.find(Kind::Service, "weather").is_some());
}

/// The API server may hear of a mark late, and a newer version's policies look for another one.
#[test]
fn what_policies_have_not_heard_of_is_no_failure_of_the_agent() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.round(&ROW);
    let plan = |bench: &Bench| bench.plan("weather").ops;
    let op = plan(&bench).into_iter().find(|op| matches!(op, Op::Own { .. })).unwrap();
    let item = Item { controller: ROW.controller, key: Key::new(TEAM, "weather") };
    for times in 1..9 {
        bench.cluster.memory.unheard(&item, bench.now, (op.clone(), "not heard of".to_owned()));
        let ops = plan(&bench);
        assert!(ops.contains(&op), "tried again: {ops:#?}");
        let status =
            ops.iter().find_map(|op| if let Op::Status { patch, .. } = op { Some(patch.to_string()) } else { None });
        assert_eq!(status.is_some(), times >= 3, "{times}: {ops:#?}");
        let is_said =
            |status: &String| status.contains("DeploymentNotReady") && status.contains("once the new version leads");
        assert!(status.as_ref().is_none_or(is_said), "{status:?}");
        let failed = |op: &Op| matches!(op, Op::Report(report) if report.reason == Reason::DeploymentFailed);
        assert!(!ops.iter().any(failed), "nobody is called: {ops:#?}");
    }
}

/// Policies of a version from before the mark refuse it, and look for none.
#[test]
fn where_the_mark_is_refused_everything_is_made_without_it() {
    for labels in [json!({"team": "weather"}), json!(null)] {
        let mut bench = Bench::new();
        bench.agent("weather", json!({"metadata": {"labels": labels}}));
        let puts_on = |op: &Op| marks(std::slice::from_ref(op)) > 0;
        assert!(bench.round_that_fails(&ROW, puts_on), "with the finalizer");
        let ops = bench.round(&ROW);
        assert_eq!((ops.len(), marks(&ops)), (1, 0), "the finalizer alone: {ops:#?}");
        assert!(bench.round_that_fails(&ROW, puts_on), "before something is made");
        assert_eq!(owns(&bench.converge()), [Kind::ServiceAccount, Kind::Service, Kind::Deployment]);
        assert!(!is_marked(&bench, "weather"));
    }
}
