//! What becomes of BeeAI's manifests, and that it says the same in the other group.

use serde_json::{Value, json};

use super::{Migrated, all};
use crate::cli::yaml::tree;
use crate::workloads::{agent, beeai_agent};

const AGENT: &str = include_str!("../../../../manifests/samples/beeai-agent.yaml");
const BUILD: &str = include_str!("../../../../manifests/samples/beeai-agentbuild.yaml");
const DEPLOYED: &str = include_str!("../../../../manifests/samples/beeai-agentbuild-deployed.yaml");

fn value(text: &str) -> Value {
    tree::parse(text).unwrap().unwrap().to_json()
}

/// Round trip: both front ends ask the workload engine for the same container and the same port.
#[test]
fn an_agent_asks_for_the_same_container_in_the_other_group() {
    for group in ["beeai.dev", "beeai.beeai.dev"] {
        let mut object = value(AGENT);
        object["apiVersion"] = json!(format!("{group}/v1"));
        let Migrated { manifests, remarks } = all(&[object.clone()], None);
        assert_eq!((manifests.len(), remarks.len()), (1, 0), "{remarks:?}");
        let ours = beeai_agent::workload(&object, "beeai.dev");
        let theirs = agent::workload(&manifests[0], None);
        assert_eq!(ours.image, theirs.image);
        let of = |template: &Value, member: &str| template["spec"]["containers"][0][member].clone();
        for member in ["env", "resources", "name", "imagePullPolicy"] {
            assert_eq!(of(&ours.pod_template, member), of(&theirs.pod_template, member), "{member}");
        }
        assert_eq!((ours.container_port, ours.replicas), (theirs.container_port, theirs.replicas));
        assert_eq!(theirs.service_ports[0]["port"], 8000);
        assert_eq!(manifests[0]["kind"], "Agent");
    }
}

#[test]
fn a_build_names_what_has_no_counterpart() {
    let Migrated { manifests, remarks } = all(&[value(BUILD)], Some("team"));
    assert_eq!(manifests.len(), 1);
    let build = &manifests[0];
    assert_eq!(
        (build["metadata"]["namespace"].as_str(), build["spec"]["mode"].as_str()),
        (Some("team"), Some("dev-external"))
    );
    assert_eq!(build["spec"]["source"]["sourceCredentials"]["name"], "github-token-secret");
    assert_eq!(build["spec"]["cleanupAfterBuild"], false, "the other group's default is true");
    assert!(remarks.iter().any(|one| one.text.contains("docker-registry")), "{remarks:?}");

    let Migrated { manifests, .. } = all(&[value(DEPLOYED)], None);
    let kinds: Vec<_> = manifests.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["AgentBuild", "Agent"]);
    assert_eq!(manifests[0]["spec"]["buildArgs"], json!([{"name": "PIP_INDEX", "value": "internal"}]));
    assert_eq!(manifests[1]["spec"]["imageSource"], json!({"buildRef": {"name": "research-agent"}}));
    let labels = manifests[1]["metadata"].get("labels");
    assert!(labels.is_none_or(|labels| labels.get("app.kubernetes.io/created-by").is_none()), "{labels:?}");
}

/// An Agent that a build keeps comes from the build, once.
#[test]
fn an_agent_of_a_build_is_not_there_twice() {
    let mut build = value(DEPLOYED);
    build["metadata"]["uid"] = json!("u");
    let agent = json!({
        "apiVersion": "beeai.dev/v1", "kind": "Agent",
        "metadata": {"name": "research-agent", "annotations": {"beeai.dev/created-by-uid": "u"}}, "spec": {"image": "x"},
    });
    assert_eq!(all(&[build, agent.clone()], None).manifests.len(), 2);
    assert_eq!(all(&[agent], None).manifests.len(), 1);
    assert_eq!(all(&[json!({"apiVersion": "v1", "kind": "Agent"})], None), Migrated::default());
}
