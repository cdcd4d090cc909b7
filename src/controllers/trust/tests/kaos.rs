//! What an Agent of KAOS reaches under enforcement follows from what it names.

use serde_json::{Value, json};

use super::Scene;
use crate::controllers::scaffold::fixtures::workload;
use crate::domain::reason::Reason;
use crate::store::Kind;

fn service(name: &str, port: u16) -> Value {
    json!({"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": {
        "selector": {"run": name}, "ports": [{"port": port, "targetPort": port}, {"port": 9999, "targetPort": 9999}]}})
}

fn egress(scene: &Scene, policy: &str) -> String {
    scene.spec(policy).unwrap()["egress"].to_string()
}

#[test]
fn ruling_26_what_an_agent_names_is_open_to_it_and_nothing_of_the_same_namespace_to_others() {
    let traces = "kaos: {telemetry: {enabled: true, endpoint: \"http://collector.watch.svc:4317\"}}\n";
    let mut scene = Scene::new(traces);
    let agent = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 1}, "spec": {
        "modelAPI": "llm", "model": "x", "mcpServers": ["stock", "none"], "agentNetwork": {"access": ["auditor"]}}});
    scene.put(Kind::KaosAgent, agent);
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk", "uid": "k", "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": {"app": "agent", "agent": "clerk"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
    scene.card("agent-clerk", false);
    for (name, port) in
        [("modelapi-llm", 8000), ("mcpserver-stock", 8000), ("agent-auditor", 8000), ("mcpserver-other", 8000)]
    {
        scene.put(Kind::Service, service(name, port));
    }
    let mut collector = service("collector", 4317);
    collector["metadata"]["namespace"] = "watch".into();
    scene.put(Kind::Service, collector);
    scene.level("enforced");
    scene.settle();
    let said = egress(&scene, "agent-clerk-signature-policy");
    for wanted in ["modelapi-llm", "mcpserver-stock", "agent-auditor", "collector"] {
        assert!(said.contains(&format!(r#""run":"{wanted}""#)), "{wanted}: {said}");
    }
    assert!(!said.contains("mcpserver-other") && !said.contains("9999"), "{said}");
    assert!(!egress(&scene, "bad-signature-policy").contains("modelapi"), "others get nothing of it");

    let changed = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 2}, "spec": {"modelAPI": "llm", "model": "x"}});
    scene.put(Kind::KaosAgent, changed);
    assert_eq!(scene.settle(), ["edit agent-clerk-signature-policy"]);
    assert!(
        !egress(&scene, "agent-clerk-signature-policy").contains("mcpserver"),
        "what it does not name any more is closed"
    );
    assert_eq!(scene.settle(), Vec::<String>::new());
}

/// Its Pods send their traces where the platform says, so that is open.
#[test]
fn ruling_26_an_endpoint_that_is_empty_opens_the_platforms() {
    let mut scene = Scene::new("kaos: {telemetry: {enabled: true, endpoint: \"http://collector.watch.svc:4317\"}}\n");
    let agent = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 1}, "spec": {
        "modelAPI": "llm", "model": "x", "config": {"telemetry": {"enabled": true, "endpoint": ""}}}});
    scene.put(Kind::KaosAgent, agent);
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk", "uid": "k", "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": {"app": "agent", "agent": "clerk"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
    scene.card("agent-clerk", false);
    let mut collector = service("collector", 4317);
    collector["metadata"]["namespace"] = "watch".into();
    scene.put(Kind::Service, collector);
    scene.level("enforced");
    scene.settle();
    let said = egress(&scene, "agent-clerk-signature-policy");
    assert!(said.contains(r#""run":"collector""#), "{said}");
}

#[test]
fn a_workload_that_only_has_the_name_gets_nothing() {
    let mut scene = Scene::new("");
    let agent = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k"}, "spec": {"modelAPI": "llm"}});
    scene.put(Kind::KaosAgent, agent);
    let more = json!({"spec": {"selector": {"matchLabels": {"app": "x"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
    scene.card("agent-clerk", false);
    scene.put(Kind::Service, service("modelapi-llm", 8000));
    scene.level("enforced");
    scene.settle();
    assert!(!egress(&scene, "agent-clerk-signature-policy").contains("modelapi"));
}

/// A policy that is larger than what is read of one would be written again with every plan.
#[test]
fn an_agent_that_names_very_many_has_a_policy_that_is_read_and_hears_what_has_no_room() {
    let mut scene = Scene::new("");
    let names: Vec<_> = (0..200).map(|at| format!("tool-with-a-rather-long-name-{at}")).collect();
    let agent = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 1}, "spec": {
        "modelAPI": "llm", "model": "x", "mcpServers": names}});
    scene.put(Kind::KaosAgent, agent);
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk", "uid": "k", "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": {"app": "agent", "agent": "clerk"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
    scene.card("agent-clerk", false);
    for name in &names {
        scene.put(Kind::Service, service(&format!("mcpserver-{name}"), 8000));
    }
    scene.level("enforced");
    scene.settle();
    let said = egress(&scene, "agent-clerk-signature-policy");
    assert!(said.contains("mcpserver-tool") && said.len() < 16 * 1024, "{}", said.len());
    assert_eq!(scene.settle(), Vec::<String>::new(), "at rest nothing is written");
    assert!(scene.told.contains(&Reason::DeclaredNotOpened), "{:?}", scene.told);
}

/// An API server may have stored a longer list under the definition of before: the environment names the first of it, and only those are opened.
#[test]
fn of_a_list_no_more_is_opened_than_the_environment_names() {
    for (before, is_open) in [(1023, true), (1024, false)] {
        let mut scene = Scene::new("");
        let servers: Vec<_> = (0..before).map(|at| format!("none-{at}")).chain(["stock".to_owned()]).collect();
        let agent = json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 1},
            "spec": {"modelAPI": "llm", "model": "x", "mcpServers": servers}});
        scene.put(Kind::KaosAgent, agent);
        let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk", "uid": "k", "controller": true}]);
        let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": {"app": "agent", "agent": "clerk"}}}});
        scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
        scene.card("agent-clerk", false);
        scene.put(Kind::Service, service("mcpserver-stock", 8000));
        scene.level("enforced");
        scene.settle();
        let said = egress(&scene, "agent-clerk-signature-policy");
        assert_eq!(said.contains("mcpserver-stock"), is_open, "{before} before it: {said}");
    }
}
