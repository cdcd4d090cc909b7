//! What the Go operator made: left as it is while it means what is wanted, and whole ours with the first change.

use serde_json::{Value, json};

use super::{
    AGENT_ROW, IMAGES, Item, Key, Kind, Op, ROWS, Reason, TEAM, agent, bench, condition, converge, hosted, made,
    running, s, status, variable,
};
use crate::controllers::agent::tests::bench::Bench;

/// Agents, and the Deployment of each as the Go operator leaves it: without our annotations, with its own hash, a variable twice and one that
/// nothing asks for any more, its own probe settings.
fn left_by_go(names: &[&str], image: &str) -> Bench {
    let made = running().object(Kind::Deployment, "agent-a");
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    for name in names {
        agent(&mut bench, name, json!({}));
        let text = made["spec"].to_string().replace("\"a\"", &format!("\"{name}\""));
        let mut spec: Value = serde_json::from_str(&text).unwrap();
        let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": name, "controller": true,
            "uid": bench.object(Kind::KaosAgent, name)["metadata"]["uid"]}]);
        spec["template"]["metadata"]["annotations"] = json!({"kaos.tools/pod-spec-hash": "0123456789abcdef"});
        let main = &mut spec["template"]["spec"]["containers"][0];
        main["image"] = json!(image);
        main["livenessProbe"]["initialDelaySeconds"] = json!(5);
        let env = main["env"].as_array_mut().unwrap();
        env.insert(0, json!({"name": "MODEL_NAME", "value": "before"}));
        env.push(json!({"name": "OLD", "value": "1"}));
        let labels = spec["template"]["metadata"]["labels"].clone();
        let deployment = format!("agent-{name}");
        bench.edit(
            Kind::Deployment,
            &deployment,
            json!({"metadata": {"labels": labels, "ownerReferences": owner}, "spec": spec}),
        );
        bench.rolled_out(&deployment);
    }
    bench
}

/// Writes of Deployments of Agents.
fn deployments(ops: &[Op]) -> usize {
    let is = |op: &&Op| matches!(op, Op::Own { kind: Kind::Deployment, key, .. } if key.name.starts_with("agent-"));
    ops.iter().filter(is).count()
}

fn message(bench: &Bench, name: &str) -> String {
    let all = status(bench, Kind::KaosAgent, name)["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["type"] == "TakeoverPending").unwrap_or_default();
    found["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn ruling_21_what_means_the_same_stays_until_something_that_counts_is_wanted() {
    let mut bench = left_by_go(&["a"], "agent:1");
    let before = bench.object(Kind::Deployment, "agent-a");
    assert_eq!(deployments(&converge(&mut bench)), 0);
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "TakeoverPending"), "True/TakeoverPending");
    let text = message(&bench, "a");
    assert!(
        text.contains("variables that nothing asks for are removed: OLD") && text.contains("probe settings"),
        "{text}"
    );
    let kept = status(&bench, Kind::KaosAgent, "a")["takeover"].clone();
    assert_eq!((&kept["generation"], kept["changes"].as_array().map(Vec::len)), (&json!(1), Some(3)), "{kept}");
    // At rest, and after a restart, which has forgotten what was read.
    assert_eq!(converge(&mut bench), []);
    bench.cluster.forget();
    bench.cluster.memory.surveyed = true;
    assert_eq!(converge(&mut bench), []);
    // Neither another log level of the platform nor a field that changes nothing of the template is a reason.
    bench.cluster.configure(&format!("{IMAGES}kaos: {{logLevel: DEBUG}}\n"));
    assert_eq!(deployments(&converge(&mut bench)), 0);
    assert!(message(&bench, "a").contains("log level of the platform file: LOG_LEVEL"), "{}", message(&bench, "a"));
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"gatewayRoute": {"timeout": "5m"}}}));
    assert_eq!(deployments(&converge(&mut bench)), 0);
    assert_eq!(bench.object(Kind::Deployment, "agent-a")["spec"], before["spec"], "byte for byte");
    // What its user changes is.
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"config": {"description": "changed"}}}));
    assert_eq!(deployments(&converge(&mut bench)), 1);
    assert_eq!(variable(&bench, "agent-a", "AGENT_DESCRIPTION").as_deref(), Some("changed"));
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "TakeoverPending"), "");
    assert_eq!(status(&bench, Kind::KaosAgent, "a").get("takeover"), None);
}

/// A change that the table alone would hide is its user's all the same.
#[test]
fn ruling_21_a_field_that_was_not_acted_on_is_once_its_user_writes_it() {
    let mut bench = left_by_go(&["a"], "agent:1");
    assert_eq!(deployments(&converge(&mut bench)), 0);
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"container": {"image": "mine:1"}}}));
    assert_eq!(deployments(&converge(&mut bench)), 1);
    assert_eq!(bench.container("agent-a", 0)["image"], "mine:1");
    // Of one that was written before anybody looked nobody knows whether it is a change.
    let mut bench = left_by_go(&["a"], "agent:1");
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"container": {"image": "mine:1"}}}));
    assert_eq!(deployments(&converge(&mut bench)), 0);
    assert!(message(&bench, "a").contains("had no effect so far: containers[agent].image"), "{}", message(&bench, "a"));
}

/// Its status is written meanwhile, and says the generation that the write was refused for.
#[test]
fn ruling_21_a_change_that_is_refused_at_first_is_written_once_it_may_be() {
    let mut bench = left_by_go(&["a"], "agent:1");
    assert_eq!(deployments(&converge(&mut bench)), 0);
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"container": {"image": "mine:1"}}}));
    let item = Item { controller: AGENT_ROW.controller, key: Key::new(TEAM, "a") };
    let planned = |bench: &Bench| {
        let ops = bench.cluster.plan_at(AGENT_ROW, &item.key, bench.now).ops;
        ops.into_iter().find(|op| matches!(op, Op::Own { kind: Kind::Deployment, .. }))
    };
    if planned(&bench).is_none() {
        // It is read first.
        bench.round(&AGENT_ROW);
    }
    let refusal = (planned(&bench).unwrap(), Some(Reason::InvalidSpec), "a policy refuses it".to_owned());
    bench.cluster.memory.failure(&item, bench.now, refusal);
    for _ in 0..2 {
        assert_eq!(deployments(&converge(&mut bench)), 0);
        assert_eq!(condition(&bench, Kind::KaosAgent, "a", "Ready"), "False/InvalidSpec");
        let status = status(&bench, Kind::KaosAgent, "a");
        assert_eq!((&status["observedGeneration"], &status["takeover"]["generation"]), (&json!(2), &json!(1)));
        assert!(message(&bench, "a").contains("has changed since"), "{}", message(&bench, "a"));
    }
    bench.now += s(300);
    assert_eq!(deployments(&converge(&mut bench)), 1);
    assert_eq!(bench.container("agent-a", 0)["image"], "mine:1");
    assert_eq!(status(&bench, Kind::KaosAgent, "a").get("takeover"), None);
}

#[test]
fn ruling_21_what_was_changed_while_nobody_looked_rolls_five_at_a_time() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut bench = left_by_go(&names, "agent:0");
    let rolled = |bench: &Bench| {
        let is = |name: &&&str| bench.container(&format!("agent-{name}"), 0)["image"] == "agent:1";
        names.iter().filter(is).count()
    };
    converge(&mut bench);
    assert_eq!(rolled(&bench), 5);
    let waiting: Vec<_> = names.iter().filter(|name| !message(&bench, name).is_empty()).collect();
    assert_eq!(waiting.len(), 3, "who waits says so");
    assert!(message(&bench, waiting[0]).contains("differs from what is wanted at containers[agent].image"));
    for name in names {
        bench.rolled_out(&format!("agent-{name}"));
    }
    converge(&mut bench);
    assert_eq!(rolled(&bench), 8);
}

/// Neither before its Deployment was read nor before it rolls: what Pods read at their start goes with their template.
#[test]
fn ruling_21_the_configuration_that_go_wrote_stays_until_the_deployment_takes_its_turn() {
    let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    let mut by_us = bench(IMAGES);
    made(&mut by_us, Kind::ModelApi, "m", spec.clone());
    converge(&mut by_us);
    let mut deployment = by_us.object(Kind::Deployment, "modelapi-m")["spec"].clone();
    deployment["template"]["metadata"]["annotations"] = json!({"kaos.tools/pod-spec-hash": "0123456789abcdef"});
    deployment["template"]["spec"]["containers"][0]["image"] = json!("litellm:0");
    let mut bench = bench(IMAGES);
    made(&mut bench, Kind::ModelApi, "m", spec);
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "name": "m", "controller": true,
        "uid": bench.object(Kind::ModelApi, "m")["metadata"]["uid"]}]);
    let metadata = json!({"labels": {"app": "modelapi", "modelapi": "m"}, "ownerReferences": owner});
    bench.edit(Kind::Deployment, "modelapi-m", json!({"metadata": metadata, "spec": deployment}));
    bench.edit(Kind::ConfigMap, "litellm-config-m", json!({"metadata": metadata, "data": {"config.yaml": "before"}}));
    bench.rolled_out("modelapi-m");
    let there = |bench: &Bench| {
        let text = bench.object(Kind::ConfigMap, "litellm-config-m")["data"]["config.yaml"].clone();
        (bench.container("modelapi-m", 0)["image"].clone(), text == "before")
    };
    // Nobody rolls before it is known who does.
    bench.cluster.memory.surveyed = false;
    converge(&mut bench);
    assert_eq!(there(&bench), (json!("litellm:0"), true));
    bench.cluster.memory.surveyed = true;
    converge(&mut bench);
    assert_eq!(there(&bench), (json!("litellm:1"), false));
}

/// Nobody answers for a while: it is asked again, and nothing is written or taken back.
#[test]
fn ruling_21_what_cannot_be_read_is_left() {
    let mut bench = left_by_go(&["a"], "agent:1");
    assert!(
        bench.round_that_fails(&AGENT_ROW, |op| matches!(op, Op::Template { .. })) || {
            // The finalizer stands first.
            bench.round_that_fails(&AGENT_ROW, |op| matches!(op, Op::Template { .. }))
        }
    );
    let said = bench.converge_with(&ROWS);
    assert_eq!(deployments(&said), 0);
    bench.now += std::time::Duration::from_secs(5);
    converge(&mut bench);
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "TakeoverPending"), "True/TakeoverPending");
}
