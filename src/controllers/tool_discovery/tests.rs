//! When an MCPServer is asked for its tools, and what is written of the answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::memory::Note;
use super::plan::{ROW, turn};
use super::question::{NAMES, Tools, ToolsOf};
use crate::config::gates::Gates;
use crate::controllers::scaffold::fixtures::{Cluster, s, workload};
use crate::controllers::scaffold::lane::{AskError, AskFault, Fact, Facts};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

const ON: &str = "kaos: {toolDiscovery: true}\n";
/// A time at which the first period of every server is over.
const NOW: u64 = 1000;

fn status(more: Value) -> Value {
    let mut status = json!({"ready": true, "phase": "Ready"});
    status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    status
}

fn cluster(platform: &str, status: Value, owner: &str) -> Cluster {
    let mut cluster = Cluster::with(platform, Gates::default());
    let metadata = json!({"name": "t", "namespace": "team", "uid": "u", "resourceVersion": "9"});
    cluster.see(Kind::McpServer, json!({"metadata": metadata, "spec": {"runtime": "x"}, "status": status}));
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "name": "t", "uid": owner, "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner, "generation": 3}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "mcpserver-t", more));
    cluster
}

fn question(rolled: bool) -> ToolsOf {
    ToolsOf {
        namespace: "team".into(),
        name: "t".into(),
        authority: "mcpserver-t.team.svc.cluster.local:8000".into(),
        deployment: "deployments-mcpserver-t".into(),
        generation: 3,
        rolled,
    }
}

fn tools(names: &[&str]) -> Result<Tools, AskError> {
    Ok(Tools::of(names.iter().map(|name| (*name).to_owned()), false))
}

fn failed() -> Result<Tools, AskError> {
    let message = "Pod t-1, /mcp at port 8000: answered with HTTP status 500".into();
    Err(AskError { fault: AskFault::Refused, reason: Reason::ToolsNotListed, message })
}

fn planned(cluster: &Cluster, answer: Option<(Result<Tools, AskError>, u32)>) -> (Plan<Note>, Vec<ToolsOf>) {
    let mut facts = Facts::default();
    if let Some((value, failures)) = answer {
        facts = facts.with(question(true), Fact { value, asked: s(NOW), at: s(NOW), failures });
    }
    let key = Key::new("team", "t");
    let (plan, asks) = cluster.asked_at(ROW, &key, &facts, s(NOW));
    (plan, asks.into_iter().map(|ask| ask.question).collect())
}

fn written(cluster: &Cluster, answer: (Result<Tools, AskError>, u32)) -> Option<Value> {
    let (plan, _) = planned(cluster, Some(answer));
    match &plan.ops[..] {
        [] => None,
        [Op::Status { kind: Kind::McpServer, patch, .. }] => {
            assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "9"}));
            Some(patch["status"].clone())
        }
        ops => panic!("{ops:?}"),
    }
}

#[test]
fn ruling_18_a_ready_server_is_asked_where_the_platform_has_it_so_and_nobody_else() {
    let ready = || status(json!({}));
    let asked = |platform: &str, status: Value, owner: &str| planned(&cluster(platform, status, owner), None).1;
    assert_eq!(asked("", ready(), "u"), [], "it is off by default");
    assert_eq!(asked(ON, ready(), "u"), [question(true)]);
    assert_eq!(asked(ON, json!({"ready": false}), "u"), [], "one that is not ready is not asked");
    assert_eq!(asked(ON, Value::Null, "u"), []);
    assert_eq!(asked(ON, ready(), "somebody-else"), [], "a Deployment of somebody else is not asked");
}

#[test]
fn ruling_18_what_is_answered_is_listed_and_at_rest_nothing_is_written() {
    let nothing = cluster(ON, status(json!({})), "u");
    let listed = json!({"availableTools": ["add", "echo"], "toolDiscovery": null});
    assert_eq!(written(&nothing, (tools(&["echo", "add", "echo", ""]), 0)), Some(listed));
    let known = cluster(ON, status(json!({"availableTools": ["add", "echo"]})), "u");
    assert_eq!(written(&known, (tools(&["echo", "add"]), 0)), None, "whatever the order");
    let gone = json!({"availableTools": [], "toolDiscovery": null});
    assert_eq!(written(&known, (tools(&[]), 0)), Some(gone), "a server that offers nothing says so");
}

#[test]
fn ruling_18_the_last_list_stays_while_nobody_answers_and_why_is_said_once() {
    let known = cluster(ON, status(json!({"availableTools": ["echo"]})), "u");
    assert_eq!(written(&known, (failed(), 1)), None, "a Pod that has just begun may not listen yet");
    let said =
        json!({"reason": "ToolsNotListed", "message": "Pod t-1, /mcp at port 8000: answered with HTTP status 500"});
    assert_eq!(written(&known, (failed(), 2)), Some(json!({"toolDiscovery": said})));
    let told = cluster(ON, status(json!({"availableTools": ["echo"], "toolDiscovery": said})), "u");
    assert_eq!(written(&told, (failed(), 9)), None);
    let mended = json!({"availableTools": ["echo"], "toolDiscovery": null});
    assert_eq!(written(&told, (tools(&["echo"]), 0)), Some(mended));
}

#[test]
fn ruling_18_the_list_is_bounded_and_says_that_there_are_more() {
    let many: Vec<_> = (0..NAMES + 1).map(|number| format!("tool-{number:04}")).collect();
    let exact = Tools::of(many[..NAMES].to_vec(), false);
    assert_eq!((exact.names.len(), exact.more), (NAMES, false));
    let tools = Tools::of(many, false);
    assert_eq!((tools.names.len(), tools.more), (NAMES, true));
    let written = written(&cluster(ON, status(json!({})), "u"), (Ok(tools), 0)).unwrap();
    assert_eq!(written["availableTools"].as_array().unwrap().len(), NAMES);
    assert_eq!(written["toolDiscovery"]["reason"], "ToolsTruncated");
}

#[test]
fn what_is_listed_already_waits_for_its_turn_in_a_new_term() {
    let known = cluster(ON, status(json!({"availableTools": ["echo"]})), "u");
    let (plan, asked) = planned(&known, None);
    assert_eq!(asked, []);
    let (_, next) = turn(s(NOW), "u");
    assert_eq!((plan.note.first, plan.again), (Some(next), Some(next - s(NOW))));
}

#[test]
fn a_server_whose_pods_come_and_go_keeps_both_answers() {
    let cluster = cluster(ON, status(json!({})), "u");
    let fact = Fact { value: tools(&["echo"]), asked: s(NOW), at: s(NOW), failures: 0 };
    let facts = Facts::default().with(question(false), fact);
    let key = Key::new("team", "t");
    let (plan, asks) = cluster.asked_at(ROW, &key, &facts, s(NOW));
    let named: Vec<_> = asks.into_iter().map(|ask| (ask.question.rolled, ask.since.is_zero())).collect();
    assert_eq!((plan.ops, named), (Vec::new(), vec![(true, false), (false, true)]));
}

#[test]
fn a_server_that_fails_is_asked_again_after_a_minute() {
    let cluster = cluster(ON, status(json!({})), "u");
    let fact = Fact { value: failed(), asked: s(NOW), at: s(NOW), failures: 1 };
    let facts = Facts::default().with(question(true), fact);
    let key = Key::new("team", "t");
    let (_, next) = turn(s(NOW), "u");
    for (now, since) in [(NOW + 59, None), (NOW + 60, Some(s(NOW + 60)))] {
        if s(now) >= next {
            continue;
        }
        let (plan, asks) = cluster.asked_at(ROW, &key, &facts, s(now));
        let due = (asks[0].since > s(NOW)).then_some(asks[0].since);
        assert_eq!(due, since, "at {now}");
        assert!(plan.again.is_some_and(|again| !again.is_zero()));
    }
}

#[test]
fn each_server_has_its_own_second_of_the_period() {
    let mut seconds = BTreeSet::new();
    for number in 0..200 {
        let uid = format!("uid-{number}");
        let (began, next) = turn(s(NOW), &uid);
        assert!(began <= s(NOW) && next > s(NOW) && next - began == s(300), "{began:?} {next:?}");
        assert_eq!(turn(next, &uid).0, next, "the next turn begins where this one ends");
        seconds.insert(next);
    }
    assert!(seconds.len() > 100, "{}", seconds.len());
}
