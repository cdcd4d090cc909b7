//! What an enrolment waits for before it rolls Pods, and for how long: cases of AgentRuntimes (docs/cases.md) that plans decide.

use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, TEAM, WEB, enrolled};
use crate::controllers::enrolment::plan::ROW;
use crate::controllers::looks;
use crate::controllers::scaffold::fixtures::{account, s};
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

#[test]
fn nothing_is_written_before_the_snapshot_knows_the_agent_runtime() {
    let mut bench = Bench::new();
    let before = bench.cluster.facts.clone();
    bench.runtime("art", WEB, json!({}));
    let settled = std::mem::replace(&mut bench.cluster.facts, before);
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(!plan.ops.iter().any(|op| matches!(op, Op::Apply { .. })));
    bench.cluster.facts = settled;
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(plan.ops.iter().any(|op| matches!(op, Op::Apply { .. })));
}

#[test]
fn the_service_account_comes_first_and_pods_that_would_be_refused_are_not_rolled() {
    let mut bench = Bench::new();
    bench.cluster.lose(Kind::ServiceAccount, account("web", true, json!([])));
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })));
    bench.now = s(105);
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("False/ServiceAccountPending", "Pending"));
    let mut made = account("web", true, json!([]));
    made["metadata"]["resourceVersion"] = json!("9000");
    bench.cluster.see(Kind::ServiceAccount, made);
    assert_eq!(
        bench.cluster.touched(ROW, Kind::ServiceAccount, &Key::new(TEAM, "web")),
        [Key::new(TEAM, "deployments/web")]
    );
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");

    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({"spec": {"template": {"spec": {"hostNetwork": true}}}}));
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })));
    assert_eq!(bench.condition("art", "Ready"), "False/HostNetwork");
}

/// Whether Pods are refused for their account is the snapshot's to say, and the store knows first: what was planned in between is no last word.
#[test]
fn an_account_that_changes_hands_is_told_and_handing_it_back_helps() {
    let mut bench = enrolled();
    let is = |bench: &mut Bench, ours: bool, version: &str| {
        let mut object = account("web", ours, json!([]));
        object["metadata"]["resourceVersion"] = json!(version);
        bench.cluster.see(Kind::ServiceAccount, object);
    };
    is(&mut bench, false, "9000");
    assert_eq!(bench.converge(), [], "the snapshot has not heard of it");
    bench.settle();
    bench.converge();
    for type_ in ["Ready", "Stalled"] {
        assert!(bench.condition("art", type_).ends_with("/ServiceAccountConflict"), "{type_}");
    }
    assert!(bench.message("art", "Ready").contains("kagenti.io/managed-by=webhook"));
    is(&mut bench, true, "9001");
    assert_eq!(bench.converge(), [], "nor of that");
    bench.settle();
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), &*bench.condition("art", "Stalled")), ("True/Configured", ""));
}

#[test]
fn a_tool_waits_for_nothing_that_its_pods_do_not_ask_for() {
    let mut bench = Bench::new();
    let routes = json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM}});
    bench.cluster.lose(Kind::ConfigMap, routes);
    bench.runtime("art", WEB, json!({"spec": {"type": "tool"}}));
    bench.converge();
    assert_eq!(
        (&*bench.condition("art", "Ready"), &*bench.condition("art", "ConfigResolved")),
        ("True/Configured", "True/ConfigResolved")
    );
}

#[test]
fn case_040_config_maps_that_never_come_do_not_stop_an_enrolment() {
    let mut bench = Bench::new();
    let routes = json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM}});
    bench.cluster.lose(Kind::ConfigMap, routes);
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })), "they come first");
    bench.now = s(101) + Duration::from_millis(500);
    let again = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), bench.now).again;
    assert_eq!(again, Some(Duration::from_millis(500)), "looked at again when the time is up");
    bench.now = s(103);
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("True/Configured", "Active"));
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigResolved", "it may still come");
    let maker = Item { controller: looks::NAMESPACE_CONFIG, key: Key::new(TEAM, "") };
    let op = Op::Create { kind: Kind::ConfigMap, namespace: TEAM.into(), body: json!({}) };
    bench.cluster.memory.failure(&maker, s(103), (op, None, "exceeded quota".into()));
    bench.now = s(106);
    bench.converge();
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigWarning");
    let message = bench.message("art", "ConfigResolved");
    assert!(message.contains(keys::CONFIG_MAP_ROUTES) && message.contains("exceeded quota"), "{message}");
    assert!(bench.told.iter().any(|report| report.reason == Reason::ConfigWarning), "case 40 asks for an Event");
    bench.now = s(1_000);
    assert_eq!(bench.converge(), []);
    let routes =
        json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM, "uid": "r", "resourceVersion": "9"}});
    bench.cluster.see(Kind::ConfigMap, routes);
    bench.converge();
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigResolved");
}
