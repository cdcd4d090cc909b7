//! The Deployment that a controller makes of an Agent of kagenti or BeeAI, from the Agent's manifest.
//!
//! In: the object, and what the platform decides about agents. Out: the Deployment and the ServiceAccount as they would be applied to a
//! cluster that has neither. Promise: the functions that the controllers use make them; Agents of KAOS are told of elsewhere, since more
//! than their own manifest goes into them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::workload::Subject;
use crate::api::json::without_nulls;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;
use crate::workloads::settings::Settings;
use crate::workloads::{agent, beeai_agent, workload};

/// What a controller makes of an Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The Deployment.
    pub deployment: Value,
    /// The ServiceAccount; `None` where the Pods name one of their own.
    pub account: Option<Value>,
}

/// The kind of an Agent of which a Deployment of its name is made; `None` for every other object.
#[must_use]
pub fn kind_of(object: &Value) -> Option<Kind> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    Kind::of(group, text("kind")).filter(|kind| KINDS.contains(kind) && kind.api_version() == text("apiVersion"))
}

/// The kinds of Agent of which a Deployment of their name is made.
pub const KINDS: [Kind; 3] = [Kind::Agent, Kind::BeeaiAgent, Kind::BeeaiCompatAgent];

/// Namespace and name of an Agent; `namespace` is where it is applied when it does not say.
#[must_use]
pub fn place<'v>(object: &'v Value, namespace: &'v str) -> (&'v str, &'v str) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (Some(text("/metadata/namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace), text("/metadata/name"))
}

/// Namespace and name of the Deployments among objects: what is there itself is not made of an Agent's manifest.
pub fn deployments<'v>(objects: impl IntoIterator<Item = &'v Value>, namespace: &str) -> BTreeSet<(String, String)> {
    let subjects = objects.into_iter().filter_map(|object| Subject::of(object, namespace));
    let found = subjects.filter(|subject| subject.workload.kind == WorkloadKind::Deployment);
    found.map(|subject| (subject.namespace, subject.workload.name)).collect()
}

/// What is made of the Agents among objects, where the objects do not have the Deployment itself.
pub fn all(objects: &[&Value], namespace: &str, settings: &Settings) -> Vec<Made> {
    let there = deployments(objects.iter().copied(), namespace);
    let is_there = |object: &Value| {
        let (place, name) = place(object, namespace);
        there.contains(&(place.to_owned(), name.to_owned()))
    };
    let absent = objects.iter().filter(|object| !is_there(object));
    absent.filter_map(|object| made(object, namespace, settings)).collect()
}

/// What is made of the object; `None` when it is no such Agent, has no name, or nobody serves its kind. The image of a build that has not
/// run is not known, and empty.
#[must_use]
pub fn made(object: &Value, namespace: &str, settings: &Settings) -> Option<Made> {
    let kind = kind_of(object)?;
    let (namespace, name) = place(object, namespace);
    if name.is_empty() || (kind != Kind::Agent && !settings.beeai) {
        return None;
    }
    let mut placed = object.clone();
    placed["metadata"]["namespace"] = json!(namespace);
    let request = match kind {
        Kind::Agent => agent::workload(&placed, None),
        kind => beeai_agent::workload(&placed, kind.group()),
    };
    let image = request.image.clone().unwrap_or_default();
    let mut rendered = workload::render(&request, &image, settings.openshift);
    without_nulls(&mut rendered.deployment);
    Some(Made { deployment: rendered.deployment, account: rendered.account })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(namespace: &str) -> Value {
        json!({
            "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent",
            "metadata": {"name": "weather", "namespace": namespace, "labels": {"kagenti.io/type": "agent"}},
            "spec": {"imageSource": {"image": "agent:1"}, "podTemplateSpec": {"spec": {
                "nodeName": null, "containers": [{"name": "agent"}]}}},
        })
    }

    #[test]
    fn an_agent_becomes_a_deployment_that_makes_pods_and_its_account() {
        for (given, other) in [("", "team1"), ("team1", "elsewhere")] {
            let made = made(&agent(given), other, &Settings::default()).unwrap();
            let template = &made.deployment["spec"]["template"];
            assert_eq!(made.deployment["metadata"]["namespace"], "team1");
            assert_eq!(template["metadata"]["labels"]["kagenti.io/type"], "agent");
            assert_eq!(template["spec"]["containers"][0]["image"], "agent:1");
            assert_eq!(template["spec"].get("nodeName"), None, "what is null is not there");
            assert_eq!(made.account.unwrap()["metadata"]["name"], "weather");
        }
    }

    #[test]
    fn agents_of_beeai_are_made_where_they_are_served() {
        let object = json!({"apiVersion": "beeai.dev/v1", "kind": "Agent", "metadata": {"name": "chat"}, "spec": {"image": "chat:1"}});
        let served = made(&object, "team1", &Settings::default()).unwrap();
        assert_eq!(served.deployment["spec"]["template"]["spec"]["containers"][0]["image"], "chat:1");
        assert_eq!(made(&object, "team1", &Settings { beeai: false, ..Settings::default() }), None);
    }

    #[test]
    fn nothing_is_made_of_what_is_no_such_agent() {
        let mut kaos = agent("team1");
        kaos["apiVersion"] = json!("kaos.tools/v1alpha1");
        let mut later = agent("team1");
        later["apiVersion"] = json!("agent.kagenti.dev/v9");
        let mut unnamed = agent("team1");
        unnamed["metadata"] = json!({});
        for object in [kaos, later, unnamed, json!({"kind": "Agent"}), json!("Agent"), Value::Null] {
            assert_eq!(made(&object, "team1", &Settings::default()), None, "{object}");
        }
        // What is no mapping where one belongs makes no panic.
        for broken in [json!([]), json!("x"), json!(3)] {
            let mut object = agent("team1");
            object["spec"] = broken.clone();
            assert!(made(&object, "team1", &Settings::default()).is_some(), "{object}");
            object["metadata"] = broken;
            assert_eq!(made(&object, "team1", &Settings::default()), None, "{object}");
        }
    }
}
