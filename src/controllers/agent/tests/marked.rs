//! The label by which the API server's policies know that a namespace holds an Agent: who carries it, and when it is written.

use serde_json::json;

use super::bench::{Bench, running};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

const POINTER: &str = "/metadata/labels/agent.kagenti.dev~1policy-parameter";

fn marks(ops: &[Op]) -> usize {
    let writes = |op: &&Op| matches!(op, Op::Edit { operations, .. } if operations.to_string().contains(keys::LABEL_POLICY_PARAMETER.rsplit('/').next().unwrap()));
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
