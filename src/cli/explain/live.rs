//! A question about an object of a cluster: the object, and the facts a webhook replica would have.

use anyhow::bail;
use serde_json::Value;

use super::Question;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::offline::world::{Facts, World};
use crate::config::schema::nearest;
use crate::domain::keys;

/// Words for the kinds, and where their objects are.
const TYPES: &[(&[&str], &str, &str, &str)] = &[
    (&["pod", "pods", "po"], "/api/v1", "pods", "Pod"),
    (&["deployment", "deployments", "deploy"], "/apis/apps/v1", "deployments", "Deployment"),
    (&["statefulset", "statefulsets", "sts"], "/apis/apps/v1", "statefulsets", "StatefulSet"),
    (&["daemonset", "daemonsets", "ds"], "/apis/apps/v1", "daemonsets", "DaemonSet"),
    (&["replicaset", "replicasets", "rs"], "/apis/apps/v1", "replicasets", "ReplicaSet"),
    (&["job", "jobs"], "/apis/batch/v1", "jobs", "Job"),
    (&["cronjob", "cronjobs", "cj"], "/apis/batch/v1", "cronjobs", "CronJob"),
];

/// Reads the object and everything its decision depends on.
pub(super) async fn question(
    cluster: &Cluster,
    object: &str,
    namespace: &str,
    facts: &Facts,
) -> anyhow::Result<Question> {
    let Some((kind, name)) = object.split_once('/') else { bail!("{object} is not TYPE/NAME, such as pod/{object}") };
    let Some((_, root, resource, kind)) = TYPES.iter().find(|(words, ..)| words.contains(&kind)) else {
        let words = TYPES.iter().flat_map(|(words, ..)| words.iter().copied());
        match nearest(kind, words) {
            Some(near) => bail!("{kind} is not a type that makes Pods; did you mean {near}?"),
            None => bail!("{kind} is not a type that makes Pods"),
        }
    };
    let mut world = World::new(facts)?;
    world.set_server_version(cluster.version().await?);
    let found = match cluster.get(&format!("{root}/namespaces/{namespace}/{resource}/{name}")).await? {
        Answer::Object(found) => found,
        Answer::Absent => bail!("{kind} {namespace}/{name} does not exist; name the namespace with -n"),
        Answer::Refused(code, message) => bail!("{kind} {namespace}/{name} cannot be read ({code}): {message}"),
    };
    let mut notes = Vec::new();
    observe(cluster, &mut world, namespace, &mut notes).await?;
    if *kind == "Pod" {
        notes.extend(recorded(&found));
    }
    Ok(Question { world, object: found, namespace: namespace.to_owned(), notes })
}

async fn observe(cluster: &Cluster, world: &mut World, namespace: &str, notes: &mut Vec<String>) -> anyhow::Result<()> {
    let operator = world.operator_namespace().to_owned();
    for path in [
        format!("/api/v1/namespaces/{namespace}"),
        format!("/apis/storage.k8s.io/v1/csidrivers/{}", keys::CSI_DRIVER_SPIFFE),
    ] {
        match cluster.get(&path).await? {
            Answer::Object(object) => world.observe(&object, namespace),
            Answer::Absent => {}
            Answer::Refused(code, message) => notes.push(format!("{path} could not be read ({code}: {message})")),
        }
    }
    for path in [
        format!("/api/v1/namespaces/{operator}/configmaps"),
        format!("/api/v1/namespaces/{namespace}/configmaps"),
        format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
    ] {
        for object in cluster.list(&path, notes).await? {
            world.observe(&object, namespace);
        }
    }
    for job in cluster.list(&format!("/apis/batch/v1/namespaces/{namespace}/jobs"), notes).await? {
        let text = |pointer: &str| job.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        let cron_job = owners
            .filter(|owner| owner["controller"] == true && owner["kind"] == "CronJob")
            .find_map(|owner| owner["name"].as_str());
        world.observe_job(namespace, text("/metadata/name"), text("/metadata/uid"), cron_job);
    }
    Ok(())
}

/// What the live Pod says about its own injection.
fn recorded(pod: &Value) -> Vec<String> {
    let annotation =
        |key: &str| pod.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
    let mut notes = vec![match annotation(keys::ANNOTATION_STATUS) {
        Some(_) => {
            "the live Pod carries our parts; the decision is for a Pod made now from the same template".to_owned()
        }
        None => "the live Pod carries none of our parts; the decision is for a Pod made now from the same template"
            .to_owned(),
    }];
    if let Some(hash) = annotation(keys::ANNOTATION_CONFIG_HASH) {
        notes.push(format!("the live Pod was made with configuration {hash}"));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).into_iter().flatten();
    if gates.filter_map(|gate| gate["name"].as_str()).any(|name| name == keys::SCHEDULING_GATE) {
        notes.push(format!(
            "the live Pod waits behind {}: it was created while no webhook answered; delete it if nothing controls it",
            keys::SCHEDULING_GATE
        ));
    }
    notes
}
