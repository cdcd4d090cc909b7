//! Agents of BeeAI against a namespace in memory: cases of BeeAI (Z; docs/cases.md) that plans decide.

use serde_json::{Value, json};

use super::{COMPAT_ROW, ROW};
use crate::controllers::agent::memory::Agents;
use crate::controllers::agent::plan::ROW as KAGENTI;
use crate::controllers::agent::tests::bench::{Bench, TEAM, owns};
use crate::controllers::enrolment::plan::ROW as ENROLMENT;
use crate::controllers::scaffold::answers::{SecretFact, SecretSeen};
use crate::controllers::scaffold::fixtures::{Rowed, s};
use crate::controllers::scaffold::plan::{Op, Row};
use crate::domain::keys;
use crate::store::{Key, Kind};

const NAME: &str = "weather";

fn agent(bench: &mut Bench, kind: Kind, more: Value) {
    let mut object = json!({
        "metadata": {"labels": {"team": "a"}, "creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {"image": "ghcr.io/beeai/agents/weather:v1", "env": [{"name": "A", "value": "b"}]},
    });
    json_patch::merge(&mut object, &more);
    bench.edit(kind, NAME, object);
}

fn status(bench: &Bench, kind: Kind) -> Value {
    bench.object(kind, NAME)["status"].clone()
}

fn condition(bench: &Bench, kind: Kind, type_: &str) -> Value {
    let status = status(bench, kind);
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|one| one["type"] == type_).unwrap_or_default()
}

fn says(bench: &Bench, kind: Kind, type_: &str) -> String {
    let entry = condition(bench, kind, type_);
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    if entry.is_null() { String::new() } else { format!("{}/{}", text("status"), text("reason")) }
}

fn running(row: Row<Agents>, kind: Kind) -> Bench {
    let mut bench = Bench::new();
    agent(&mut bench, kind, json!({}));
    bench.converge_with(&[&row]);
    bench.rolled_out(NAME);
    bench.converge_with(&[&row]);
    bench
}

#[test]
fn case_z01_and_z11_an_agent_of_either_group_is_made_and_says_how_it_stands() {
    for (row, kind) in [(ROW, Kind::BeeaiAgent), (COMPAT_ROW, Kind::BeeaiCompatAgent)] {
        let mut bench = Bench::new();
        agent(&mut bench, kind, json!({}));
        let ops = bench.converge_with(&[&row]);
        assert!(
            matches!(&ops[0], Op::Edit { operations, .. } if operations.to_string().contains(keys::FINALIZER_BEEAI))
        );
        assert_eq!(owns(&ops), [Kind::Service, Kind::Deployment]);
        let deployment = bench.object(Kind::Deployment, NAME);
        assert_eq!(deployment["metadata"]["ownerReferences"][0]["apiVersion"], kind.api_version());
        assert_eq!(deployment["metadata"]["labels"]["beeai.dev/group"], kind.group());
        assert_eq!(says(&bench, kind, "Ready"), "False/DeploymentNotReady");
        let told = status(&bench, kind);
        assert_eq!((&told["ready"], &told["deploymentStatus"]), (&json!(false), &json!("Creating")));

        let observed = json!({"status": {"observedGeneration": 1, "replicas": 1, "unavailableReplicas": 1}});
        bench.edit(Kind::Deployment, NAME, observed);
        bench.converge_with(&[&row]);
        assert_eq!(status(&bench, kind)["deploymentStatus"], "NotReady");
        bench.rolled_out(NAME);
        bench.converge_with(&[&row]);
        assert_eq!(says(&bench, kind, "Ready"), "True/DeploymentReady");
        let told = status(&bench, kind);
        assert_eq!((&told["ready"], &told["deploymentStatus"]), (&json!(true), &json!("Ready")));
        assert_eq!(
            (&told["observedGeneration"], &told["image"]),
            (&json!(1), &json!("ghcr.io/beeai/agents/weather:v1"))
        );
        assert!(bench.reasons().contains(&"DeploymentCreated") && bench.reasons().contains(&"ServiceCreated"));
        assert_eq!(bench.converge_with(&[&row]), [], "at rest nothing is written");
        let again = bench.cluster.plan_at(row, &Key::new(TEAM, NAME), bench.now);
        assert_eq!(again.ops, [], "nor after a restart, which forgets everything");
    }
}

#[test]
fn case_z06_another_image_rolls_the_deployment() {
    let mut bench = running(ROW, Kind::BeeaiAgent);
    bench.edit(Kind::BeeaiAgent, NAME, json!({"spec": {"image": "ghcr.io/beeai/agents/weather:v2"}}));
    assert_eq!(owns(&bench.converge_with(&[&ROW])), [Kind::Deployment]);
    assert_eq!(bench.container(NAME, 0)["image"], "ghcr.io/beeai/agents/weather:v2");
    assert_eq!(status(&bench, Kind::BeeaiAgent)["image"], "ghcr.io/beeai/agents/weather:v2");
}

#[test]
fn case_z08_baseline_is_refused_at_reconcile_too_unless_the_platform_allows_it() {
    let annotated = json!({"metadata": {"annotations": {"beeai.dev/security-profile": "baseline"}}});
    let mut bench = Bench::new();
    agent(&mut bench, Kind::BeeaiAgent, annotated.clone());
    assert_eq!(owns(&bench.converge_with(&[&ROW])), []);
    assert_eq!(says(&bench, Kind::BeeaiAgent, "Ready"), "False/InvalidSpec");
    assert_eq!(status(&bench, Kind::BeeaiAgent)["deploymentStatus"], "Failed");

    let mut bench = Bench::with("beeai: {allowBaseline: true}\n");
    agent(&mut bench, Kind::BeeaiAgent, annotated);
    assert_eq!(owns(&bench.converge_with(&[&ROW])).len(), 2);
    assert_eq!(says(&bench, Kind::BeeaiAgent, "LockdownRelaxed"), "True/UserOverride");
}

#[test]
fn case_z09_what_is_somebody_elses_is_left_alone_and_outlives_the_agent() {
    let mut bench = Bench::new();
    bench.edit(Kind::Deployment, NAME, json!({"spec": {"template": {"spec": {"containers": [{"name": "x"}]}}}}));
    let before = bench.object(Kind::Deployment, NAME);
    agent(&mut bench, Kind::BeeaiAgent, json!({}));
    assert_eq!(owns(&bench.converge_with(&[&ROW])), []);
    assert_eq!(says(&bench, Kind::BeeaiAgent, "Ready"), "False/NameConflict");
    assert!(bench.reasons().contains(&"NameConflict"));
    bench.edit(Kind::BeeaiAgent, NAME, json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge_with(&[&ROW]);
    assert!(bench.find(Kind::BeeaiAgent, NAME).is_none());
    assert_eq!(bench.object(Kind::Deployment, NAME), before);
}

/// Whoever comes second says whose it is, and the first is not written again.
#[test]
fn case_z10_agents_of_several_groups_and_one_name_do_not_fight() {
    let all: [&dyn Rowed; 3] = [&KAGENTI, &ROW, &COMPAT_ROW];
    let mut bench = Bench::new();
    bench.agent(NAME, json!({}));
    bench.converge_with(&all);
    let before = bench.object(Kind::Deployment, NAME);
    for kind in [Kind::BeeaiAgent, Kind::BeeaiCompatAgent] {
        agent(&mut bench, kind, json!({}));
        assert_eq!(owns(&bench.converge_with(&all)), [], "{kind:?}");
        assert_eq!(says(&bench, kind, "Ready"), "False/NameConflict");
        let message = condition(&bench, kind, "Ready")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("belongs to Agent weather of agent.kagenti.dev/v1alpha1"), "{message}");
    }
    assert_eq!(bench.object(Kind::Deployment, NAME), before);
    // The owner goes, and what it made with it: the next one gets the name, and only one.
    bench.edit(Kind::Agent, NAME, json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge_with(&all);
    let owner = bench.object(Kind::Deployment, NAME)["metadata"]["ownerReferences"][0]["apiVersion"].clone();
    assert_eq!(owner, "beeai.dev/v1");
    let message = condition(&bench, Kind::BeeaiCompatAgent, "Ready")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("belongs to Agent weather of beeai.dev/v1"), "{message}");
}

/// Three kinds that want one Deployment, in every order: one has it, and the others say whose it is.
#[test]
fn case_z10_three_kinds_and_one_deployment() {
    use crate::controllers::agent::kaos::{AGENT_ROW, MODEL_API_ROW};
    let all: [&dyn Rowed; 4] = [&KAGENTI, &AGENT_ROW, &MODEL_API_ROW, &ROW];
    for first in [Kind::Agent, Kind::KaosAgent, Kind::BeeaiAgent] {
        let mut bench = Bench::with("  kaosAgent: agent:1\n  kaosLitellm: litellm:1\n");
        let model = json!({"spec": {"mode": "Proxy", "proxyConfig": {"models": ["x"]}}});
        bench.edit(Kind::ModelApi, "m", model);
        let make = |bench: &mut Bench, kind: Kind| match kind {
            Kind::Agent => bench.agent("agent-x", json!({})),
            Kind::KaosAgent => {
                bench.edit(kind, "x", json!({"spec": {"modelAPI": "m", "model": "x", "waitForDependencies": false}}))
            }
            _ => bench.edit(kind, "agent-x", json!({"spec": {"image": "ghcr.io/beeai/agents/x:v1"}})),
        };
        make(&mut bench, first);
        bench.converge_with(&all);
        let before = bench.object(Kind::Deployment, "agent-x");
        let owner = before["metadata"]["ownerReferences"][0].clone();
        assert_eq!(owner["apiVersion"], first.api_version(), "{owner}");
        for other in [Kind::Agent, Kind::KaosAgent, Kind::BeeaiAgent].into_iter().filter(|kind| *kind != first) {
            make(&mut bench, other);
            bench.converge_with(&all);
            let name = if other == Kind::KaosAgent { "x" } else { "agent-x" };
            let told = bench.object(other, name)["status"].to_string();
            let whose = format!("belongs to Agent {} of {}", owner["name"].as_str().unwrap(), first.api_version());
            assert!(told.contains("NameConflict") && told.contains(&whose), "{first:?}, {other:?}: {told}");
        }
        assert_eq!(bench.object(Kind::Deployment, "agent-x"), before, "{first:?}");
    }
}

/// What the Go operator left: the very selector, no security context, running as root.
fn left_by_go(bench: &mut Bench, image: &str) {
    left_by_go_as(bench, NAME, image);
}

fn left_by_go_as(bench: &mut Bench, name: &str, image: &str) {
    let labels = json!({"app": name, "controller": "agent-operator"});
    let uid = format!("Agent.beeai.dev-{name}");
    let owner = json!([{"apiVersion": "beeai.dev/v1", "kind": "Agent", "name": name, "uid": uid, "controller": true}]);
    let container = json!({"name": "agent", "image": image, "ports": [{"containerPort": 8000, "name": "http"}]});
    bench.edit(
        Kind::Deployment,
        name,
        json!({
            "metadata": {"labels": labels, "ownerReferences": owner},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [container]}}},
        }),
    );
    bench.rolled_out(name);
}

/// The day of the switch breaks nothing; the Agent's next change locks it down, in one write.
#[test]
fn what_the_go_operator_made_runs_on_as_it_is_until_the_agent_changes() {
    let mut bench = Bench::new();
    left_by_go(&mut bench, "ghcr.io/beeai/agents/weather:v0");
    let before = bench.object(Kind::Deployment, NAME);
    agent(&mut bench, Kind::BeeaiAgent, json!({}));
    assert_eq!(owns(&bench.converge_with(&[&ROW])), []);
    assert_eq!(bench.object(Kind::Deployment, NAME), before, "not a byte");
    assert_eq!(says(&bench, Kind::BeeaiAgent, "LockdownPending"), "True/LockdownPending");
    assert_eq!(says(&bench, Kind::BeeaiAgent, "Ready"), "True/DeploymentReady");
    let message = condition(&bench, Kind::BeeaiAgent, "LockdownPending")["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("runs image ghcr.io/beeai/agents/weather:v0") && message.contains("beeai.dev/lockdown: now")
    );
    assert_eq!(status(&bench, Kind::BeeaiAgent)["image"], "ghcr.io/beeai/agents/weather:v0");
    assert_eq!(bench.converge_with(&[&ROW]), []);
    assert_eq!(bench.cluster.plan_at(ROW, &Key::new(TEAM, NAME), bench.now).ops, [], "nor after a restart");

    bench.edit(Kind::BeeaiAgent, NAME, json!({"spec": {"image": "ghcr.io/beeai/agents/weather:v2"}}));
    let written = owns(&bench.converge_with(&[&ROW]));
    assert_eq!(written.iter().filter(|kind| **kind == Kind::Deployment).count(), 1, "one rollout: {written:?}");
    let pod = &bench.object(Kind::Deployment, NAME)["spec"]["template"]["spec"].clone();
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &pod["automountServiceAccountToken"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(says(&bench, Kind::BeeaiAgent, "LockdownPending"), "");
}

/// What an Agent's user has changed is not forgotten because its first write was refused: it is said for as long as it is so, and written then.
#[test]
fn a_change_that_is_refused_at_first_is_written_once_it_may_be() {
    let mut bench = Bench::new();
    left_by_go(&mut bench, "ghcr.io/beeai/agents/weather:v1");
    let before = bench.object(Kind::Deployment, NAME);
    agent(&mut bench, Kind::BeeaiAgent, json!({}));
    bench.converge_with(&[&ROW]);
    assert_eq!(says(&bench, Kind::BeeaiAgent, "LockdownPending"), "True/LockdownPending");
    let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "model", "key": "k"}}}]);
    bench.edit(
        Kind::BeeaiAgent,
        NAME,
        json!({
            "metadata": {"annotations": {keys::ANNOTATION_SECRETS_BY_CONSENT: "model"}},
            "spec": {"image": "ghcr.io/beeai/agents/weather:v2", "env": env},
        }),
    );
    for _ in 0..2 {
        assert_eq!(owns(&bench.converge_with(&[&ROW])), []);
        assert_eq!(says(&bench, Kind::BeeaiAgent, "Ready"), "False/SecretNotUsable");
        let of = condition(&bench, Kind::BeeaiAgent, "LockdownPending")["observedGeneration"].clone();
        assert_eq!((of, bench.object(Kind::Deployment, NAME)), (json!(1), before.clone()));
    }
    let seen = SecretSeen { keys: ["k".to_owned()].into(), usable_by: Some("agents".into()), ..SecretSeen::default() };
    bench.secrets.insert("model".into(), SecretFact::Is(seen));
    bench.now += s(31);
    let written = owns(&bench.converge_with(&[&ROW]));
    assert_eq!(written.iter().filter(|kind| **kind == Kind::Deployment).count(), 1, "{written:?}");
    assert_eq!(bench.container(NAME, 0)["image"], "ghcr.io/beeai/agents/weather:v2");
    assert_eq!(says(&bench, Kind::BeeaiAgent, "LockdownPending"), "");
}

#[test]
fn an_annotation_locks_down_at_once_and_somebody_who_strips_our_mark_wins_nothing() {
    let mut bench = Bench::new();
    left_by_go(&mut bench, "ghcr.io/beeai/agents/weather:v1");
    agent(&mut bench, Kind::BeeaiAgent, json!({}));
    bench.converge_with(&[&ROW]);
    bench.edit(Kind::BeeaiAgent, NAME, json!({"metadata": {"annotations": {"beeai.dev/lockdown": "now"}}}));
    assert!(owns(&bench.converge_with(&[&ROW])).contains(&Kind::Deployment));

    let mut bench = running(ROW, Kind::BeeaiAgent);
    bench.edit(Kind::Deployment, NAME, json!({"metadata": {"annotations": {"kagenti.io/content-digest": null}}}));
    assert_eq!(owns(&bench.converge_with(&[&ROW])), [Kind::Deployment], "it is applied again, not taken for another's");
}

/// Agents of before us on a platform that has all of them locked down.
fn to_be_locked_down() -> (Bench, Vec<String>) {
    let mut bench = Bench::with("beeai: {takeover: lockdown}\n");
    let names: Vec<String> = (0..12).map(|index| format!("weather-{index:02}")).collect();
    for name in &names {
        left_by_go_as(&mut bench, name, "ghcr.io/beeai/agents/weather:v1");
        let object = json!({"metadata": {"creationTimestamp": "2026-05-01T00:00:00Z"}, "spec": {"image": "ghcr.io/beeai/agents/weather:v1"}});
        bench.edit(Kind::BeeaiAgent, name, object);
    }
    (bench, names)
}

fn deployments(ops: &[Op]) -> usize {
    owns(ops).iter().filter(|kind| **kind == Kind::Deployment).count()
}

/// Another process leads, and looks at everything once before it knows who rolls.
fn led_by_another(bench: &mut Bench) -> usize {
    bench.cluster.forget();
    let before = deployments(&bench.converge_with(&[&ROW]));
    bench.cluster.memory.surveyed = true;
    before + deployments(&bench.converge_with(&[&ROW]))
}

/// What rolls, and what failed, is read from the Agents: a leader who knows nothing goes on where another one was.
#[test]
fn another_leader_rolls_no_more_than_the_one_before_and_halts_where_that_one_did() {
    let (mut bench, names) = to_be_locked_down();
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 5);
    let written = |name: &&String| {
        let deployment = bench.object(Kind::Deployment, name);
        deployment["metadata"]["annotations"]["kagenti.io/content-digest"].is_string()
    };
    let first: Vec<String> = names.iter().filter(written).cloned().collect();
    assert_eq!(led_by_another(&mut bench), 0, "five are under way");
    // Two of them never become available; the others do.
    for name in &first {
        bench.rolled_out(name);
    }
    for name in &first[..2] {
        let progress = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
        let counts =
            json!({"updatedReplicas": 0, "readyReplicas": 0, "availableReplicas": 0, "conditions": [progress]});
        bench.edit(Kind::Deployment, name, json!({"status": counts}));
    }
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 0, "two that failed end it");
    assert_eq!(led_by_another(&mut bench), 0, "whoever leads");
    // What an Agent's user does about it is his own; with one that failed three places are free.
    bench.edit(Kind::BeeaiAgent, &first[0], json!({"spec": {"image": "ghcr.io/beeai/agents/weather:v2"}}));
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 1 + 3);
    assert_eq!(bench.container(&first[0], 0)["image"], "ghcr.io/beeai/agents/weather:v2");
}

/// What is not complete for a reason of its own counts for nothing: neither for the wave nor against it.
#[test]
fn an_agent_whose_user_broke_it_holds_up_no_lock_down() {
    let (mut bench, names) = to_be_locked_down();
    bench.converge_with(&[&ROW]);
    for _ in 0..3 {
        names.iter().for_each(|name| bench.rolled_out(name));
        bench.converge_with(&[&ROW]);
    }
    for name in &names[..3] {
        bench.edit(Kind::BeeaiAgent, name, json!({"spec": {"image": "ghcr.io/beeai/agents/broken:v1"}}));
        bench.converge_with(&[&ROW]);
        let progress = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
        let generation = bench.object(Kind::Deployment, name)["metadata"]["generation"].clone();
        let status = json!({"observedGeneration": generation, "updatedReplicas": 0, "availableReplicas": 0, "conditions": [progress]});
        bench.edit(Kind::Deployment, name, json!({"status": status}));
    }
    assert_eq!(led_by_another(&mut bench), 0);
    assert_eq!((bench.cluster.memory.failed(), bench.cluster.memory.rolling()), (0, 0));
}

/// A Deployment that somebody holds still replaces no Pod, however long: others do not wait for it.
#[test]
fn deployments_that_are_paused_hold_up_no_lock_down() {
    let (mut bench, names) = to_be_locked_down();
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 5);
    let written = |name: &&String| {
        let deployment = bench.object(Kind::Deployment, name);
        deployment["metadata"]["annotations"]["kagenti.io/content-digest"].is_string()
    };
    let first: Vec<String> = names.iter().filter(written).cloned().collect();
    for name in &first {
        bench.edit(Kind::Deployment, name, json!({"spec": {"paused": true}}));
    }
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 5);
}

/// `beeai.takeover: lockdown` locks down what is there, a few Agents at a time; whoever waits says so.
#[test]
fn takeover_lockdown_rolls_what_is_there_a_few_at_a_time() {
    let (mut bench, names) = to_be_locked_down();
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 5, "five at a time");
    let waiting = |bench: &Bench| {
        let pending = |name: &&String| {
            let status = bench.object(Kind::BeeaiAgent, name)["status"].clone();
            let all = status["conditions"].as_array().cloned().unwrap_or_default();
            all.iter()
                .any(|one| one["type"] == "LockdownPending" && one["message"].to_string().contains("being locked down"))
        };
        names.iter().filter(pending).count()
    };
    assert_eq!(waiting(&bench), 7);
    assert_eq!(deployments(&bench.converge_with(&[&ROW])), 0, "nobody follows before one is done");
    for round in [5, 2] {
        for name in &names {
            bench.rolled_out(name);
        }
        assert_eq!(deployments(&bench.converge_with(&[&ROW])), round);
    }
    assert_eq!(waiting(&bench), 0);
}

#[test]
fn deleting_an_agent_takes_what_it_made_and_the_finalizer_last() {
    let mut bench = running(ROW, Kind::BeeaiAgent);
    bench.edit(Kind::BeeaiAgent, NAME, json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    let kinds: Vec<_> = bench.converge_with(&[&ROW]).iter().map(|op| op.asks().1).collect();
    assert_eq!(kinds, [Kind::Deployment, Kind::Service, Kind::BeeaiAgent]);
}

/// What enrolment would write is there with the first write.
#[test]
fn a_labelled_agent_is_enrolled_by_its_first_write() {
    let mut bench = Bench::new();
    agent(&mut bench, Kind::BeeaiAgent, json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}}));
    let ops = bench.converge_with(&[&ROW, &ENROLMENT]);
    assert_eq!(owns(&ops).iter().filter(|kind| **kind == Kind::Deployment).count(), 1, "{ops:#?}");
    let template = &bench.object(Kind::Deployment, NAME)["spec"]["template"]["metadata"].clone();
    assert_eq!(template["labels"]["kagenti.io/type"], "agent");
    assert!(template["annotations"]["kagenti.io/config-hash"].is_string(), "{template}");
    assert_eq!(bench.converge_with(&[&ROW, &ENROLMENT]), []);
}
