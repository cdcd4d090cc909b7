//! A case on a real API server: its fixture in namespaces of its own, and the judgement of what the server answers.
//!
//! `team1` and `team2` of a case become fresh namespaces, and the uids of its Jobs those that the server gave. The
//! answer differs from that of `evaluate` by what the server adds: defaults, names, the token volume. These are
//! tolerated or taken out; everything else is compared as in the other runners.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;

use super::Case;
use super::expect::{Expectation, ExpectedWarning};
use crate::objects::Answer;
use crate::{ControlPlane, TestNamespace};

/// Names of namespaces in the files of the corpus.
const TEAMS: [&str; 2] = ["team1", "team2"];

/// A case that was moved to a cluster.
pub struct Place {
    /// Where the object is created.
    pub namespace: TestNamespace,
    /// The object to create.
    pub object: Value,
    /// What must come out.
    pub expect: Expectation,
}

impl Place {
    /// Creates the namespaced objects of the case's fixture.
    ///
    /// # Errors
    /// When the API server refuses one of them.
    pub async fn prepare(cp: &ControlPlane, case: &Case) -> Result<Self> {
        let object = case.object.clone().context("there is no object to create")?;
        let mut words = BTreeMap::new();
        let namespace = team(cp, case, TEAMS[0]).await?;
        words.insert(TEAMS[0].to_owned(), namespace.name().to_owned());
        if case.fixture.objects.keys().any(|identity| identity.split('/').nth(1) == Some(TEAMS[1])) {
            words.insert(TEAMS[1].to_owned(), team(cp, case, TEAMS[1]).await?.name().to_owned());
        }
        for fixture in case.fixture.objects.values() {
            let mut fixture = replaced(fixture, &words);
            match fixture["kind"].as_str() {
                Some("Namespace" | "CSIDriver") => {}
                Some("ServiceAccount") if fixture["metadata"]["name"] == "default" => {}
                Some("Job") => {
                    if let Some((old, new)) = create_job(&namespace, &mut fixture).await? {
                        words.insert(old, new);
                    }
                }
                _ => {
                    namespace.accepts(&fixture).await?;
                }
            }
        }
        Ok(Self { object: replaced(&object, &words), expect: expectation(&case.expect, &words), namespace })
    }

    /// Asks for the object without storing it, and judges the answer.
    ///
    /// # Errors
    /// When the API server cannot be asked.
    pub async fn ask(&self) -> Result<Vec<String>> {
        judge(&self.expect, &self.namespace.create(&self.object, true).await?, &self.object)
    }
}

async fn team(cp: &ControlPlane, case: &Case, name: &str) -> Result<TestNamespace> {
    let labels =
        case.fixture.objects.get(&format!("Namespace//{name}")).and_then(|object| object.pointer("/metadata/labels"));
    let labels: Vec<(&str, &str)> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    cp.namespace_with("corpus", &labels).await
}

/// A Job that makes no Pods, with a real CronJob above it where the fixture names one; its uid in the files and here.
async fn create_job(namespace: &TestNamespace, job: &mut Value) -> Result<Option<(String, String)>> {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "example/job:v1"}]}});
    let spec = json!({"suspend": true, "template": template});
    if let Some(owner) = job.pointer("/metadata/ownerReferences/0").cloned() {
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": owner["name"]},
            "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": template}}}});
        let cron = serde_json::to_value(namespace.accepts(&cron).await?)?;
        job["metadata"]["ownerReferences"][0]["uid"] = cron["metadata"]["uid"].clone();
    }
    job["spec"] = spec;
    let uid = job["metadata"].as_object_mut().and_then(|metadata| metadata.remove("uid"));
    let stored = serde_json::to_value(namespace.accepts(job).await?)?;
    Ok(uid
        .zip(stored.pointer("/metadata/uid").cloned())
        .and_then(|(old, new)| Some((old.as_str()?.to_owned(), new.as_str()?.to_owned()))))
}

/// The value with each of the words replaced in every text.
fn replaced(value: &Value, words: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(in_text(text, words)),
        Value::Array(items) => Value::Array(items.iter().map(|item| replaced(item, words)).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, item)| (key.clone(), replaced(item, words))).collect())
        }
        other => other.clone(),
    }
}

fn in_text(text: &str, words: &BTreeMap<String, String>) -> String {
    words.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
}

fn expectation(expect: &Expectation, words: &BTreeMap<String, String>) -> Expectation {
    let mut expect = expect.clone();
    expect.golden = expect.golden.map(|golden| replaced(&golden, words));
    expect.holds = expect.holds.into_iter().map(|(path, value)| (path, replaced(&value, words))).collect();
    let all = |says: &mut Vec<String>| says.iter_mut().for_each(|part| *part = in_text(part, words));
    if let Some(denial) = &mut expect.denial {
        all(&mut denial.says);
    }
    for warning in &mut expect.warnings {
        if let ExpectedWarning::Words { says, .. } = warning {
            all(says);
        }
    }
    expect
}

fn judge(expect: &Expectation, answer: &Answer, sent: &Value) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let wanted = expect.reason.as_deref().unwrap_or_default();
    match &answer.result {
        Err(status) => {
            wrong.extend(expect.judge_denial(status.code, &status.message));
            if !status.message.contains(&format!("{wanted}: ")) {
                wrong.push(format!("reason: {wanted} is not in {:?}", status.message));
            }
        }
        Ok(_) if expect.denial.is_some() => wrong.push("let in, expected a refusal".to_owned()),
        Ok(stored) => {
            let result = without_additions(&serde_json::to_value(stored)?, sent);
            let record =
                ["metadata", "annotations", keys::ANNOTATION_STATUS].iter().try_fold(&result, |at, key| at.get(key));
            let injected = expect.injects();
            if injected != record.is_some() {
                wrong.push(format!("injected: {}, expected {injected} ({wanted})", record.is_some()));
            }
            wrong.extend(expect.judge_object(&result, added_by_server)?);
        }
    }
    expect.judge_warnings(&our_warnings(&answer.warnings), &mut wrong);
    Ok(wrong)
}

/// Ours among the warnings; the API server has some of its own.
fn our_warnings(texts: &[String]) -> Vec<(String, String)> {
    let known = |code: &str| Reason::ALL.iter().any(|reason| reason.code() == code);
    texts
        .iter()
        .filter_map(|text| text.split_once(": "))
        .filter(|(code, _)| known(code))
        .map(|(code, text)| (code.to_owned(), text.to_owned()))
        .collect()
}

/// The stored object without what the API server's own plugins put beside our changes.
fn without_additions(stored: &Value, sent: &Value) -> Value {
    let mut result = stored.clone();
    for (parent, members) in [
        ("metadata", &["name", "uid", "creationTimestamp", "managedFields", "generation", "resourceVersion"][..]),
        ("spec", &["tolerations", "priority", "preemptionPolicy", "nodeName"][..]),
    ] {
        for member in members {
            if sent[parent].get(member).is_none()
                && let Some(map) = result[parent].as_object_mut()
            {
                map.remove(*member);
            }
        }
    }
    if sent.get("status").is_none()
        && let Some(map) = result.as_object_mut()
    {
        map.remove("status");
    }
    let token = |item: &Value| item["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
    without(&mut result["spec"], "volumes", token);
    for list in ["containers", "initContainers"] {
        for container in result["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            without(container, "volumeMounts", token);
            for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                // An empty value is not stored.
                if variable.get("value").is_none() && variable.get("valueFrom").is_none() {
                    variable["value"] = json!("");
                }
            }
            let own = super::path::container(sent, container["name"].as_str().unwrap_or_default());
            if let (Some(own), Some(map)) = (own, container.as_object_mut()) {
                map.retain(|key, value| own.get(key).is_some() || !added_by_server(key, value));
            }
        }
    }
    result
}

fn without(holder: &mut Value, list: &str, unwanted: impl Fn(&Value) -> bool) {
    let Some(items) = holder.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(|item| !unwanted(item));
    if items.is_empty()
        && let Some(map) = holder.as_object_mut()
    {
        map.remove(list);
    }
}

/// Defaults of the Pod API.
fn added_by_server(key: &str, value: &Value) -> bool {
    let default = match key {
        "serviceAccount" => return value.is_string(),
        "terminationMessagePath" => json!("/dev/termination-log"),
        "terminationMessagePolicy" => json!("File"),
        "imagePullPolicy" => json!("IfNotPresent"),
        "protocol" => json!("TCP"),
        "apiVersion" => json!("v1"),
        "defaultMode" => json!(420),
        "timeoutSeconds" | "successThreshold" => json!(1),
        "periodSeconds" => json!(10),
        "failureThreshold" => json!(3),
        "terminationGracePeriodSeconds" => json!(30),
        "scheme" => json!("HTTP"),
        "service" => json!(""),
        "resources" | "securityContext" => json!({}),
        "restartPolicy" => json!("Always"),
        "dnsPolicy" => json!("ClusterFirst"),
        "schedulerName" => json!("default-scheduler"),
        "enableServiceLinks" => json!(true),
        _ => return false,
    };
    *value == default
}
