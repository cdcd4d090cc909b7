//! The Pod of a tool server that can be asked, found when it is asked. In: which server. Out: the name and the address of a Ready Pod.
//!
//! Promises: Pods are asked for by the labels that select them, at most [`PODS`] of them, and of each only what is needed is kept; a Pod on its
//! node's network is never asked, and neither is one that goes. Nothing is watched for it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::core::Request;
use kube::core::params::ListParams;
use serde::Deserialize;

use crate::adapters::tools::{Pod, Pods};
use crate::controllers::scaffold::lane::{AskError, AskFault};
use crate::controllers::tool_discovery::question::ToolsOf;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;
use crate::workloads::kaos::names::Role;

/// How long the API server has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pods of one server that are looked at.
const PODS: u32 = 5;

#[derive(Deserialize)]
struct Found {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    host_network: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    #[serde(rename = "podIPs")]
    addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[derive(Deserialize)]
struct Address {
    ip: IpAddr,
}

/// Finds by that client.
pub(super) fn tool_servers(client: Client) -> Pods {
    Arc::new(move |question| {
        let client = client.clone();
        Box::pin(async move { find(&client, &question).await })
    })
}

async fn find(client: &Client, question: &ToolsOf) -> Result<Option<Pod>, AskError> {
    // Words of a closed list: they stand in a status, which is not written for other words of the same fact.
    let failed = |fault, why: &str| AskError {
        fault,
        reason: Reason::ToolsNotListed,
        message: format!("its Pods cannot be read: {why}").into(),
    };
    let labels = Role::McpServer.labels(&question.name);
    let labels = labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let wanted = ListParams::default().labels(&labels).fields("status.phase=Running").limit(PODS);
    let request = Request::new(Kind::Pod.path(&question.namespace)).list(&wanted);
    let request = request.map_err(|_| failed(AskFault::Unusable, "the request for them is not valid"))?;
    match tokio::time::timeout(PATIENCE, client.request::<Found>(request)).await {
        Err(_) => Err(failed(AskFault::Unreachable, "the API server did not answer in time")),
        Ok(Ok(found)) => Ok(newest(found.items)),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            Err(failed(AskFault::Refused, "Drawbridge lacks the right"))
        }
        Ok(Err(_)) => Err(failed(AskFault::Unreachable, "the API server did not answer as it should")),
    }
}

/// The newest of those that can be asked.
fn newest(items: Vec<Item>) -> Option<Pod> {
    let mut found: Vec<_> = items.into_iter().filter_map(asked).collect();
    found.sort_by(|(made, pod), (other, that)| (other, &pod.name).cmp(&(made, &that.name)));
    found.into_iter().next().map(|(_, pod)| pod)
}

fn asked(item: Item) -> Option<(Option<String>, Pod)> {
    let Item { metadata, spec, status } = item;
    let status = status.unwrap_or_default();
    let on_node = spec.is_some_and(|spec| spec.host_network == Some(true));
    let ready = status.conditions.iter().any(|one| one.kind == "Ready" && one.status == "True");
    let address = status.addresses.first()?.ip;
    (ready && !on_node && metadata.deletion_timestamp.is_none()).then(|| {
        let injected = metadata.annotations.contains_key(keys::ANNOTATION_STATUS);
        (metadata.creation_timestamp, Pod { name: metadata.name, address, injected })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, more: &Value) -> Item {
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [{"name": "mcp-server"}]},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]},
        });
        merge(&mut pod, more);
        serde_json::from_value(pod).unwrap()
    }

    fn merge(into: &mut Value, more: &Value) {
        match (into.as_object_mut(), more.as_object()) {
            (Some(members), Some(more)) => {
                for (key, value) in more {
                    merge(members.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            _ => *into = more.clone(),
        }
    }

    #[test]
    fn the_newest_ready_pod_of_its_own_network_is_asked() {
        let none = json!({});
        let newer = json!({"metadata": {"creationTimestamp": "2026-02-01T00:00:00Z"}});
        let found = newest(vec![pod("old", &none), pod("new", &newer), pod("also", &none)]).unwrap();
        assert_eq!(found, Pod { name: "new".to_owned(), address: "10.1.2.3".parse().unwrap(), injected: false });
        for (what, more) in [
            ("not ready", json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})),
            ("without conditions", json!({"status": {"conditions": []}})),
            ("on its node's network", json!({"spec": {"hostNetwork": true}})),
            ("going", json!({"metadata": {"deletionTimestamp": "2026-02-01T00:00:00Z"}})),
            ("without an address", json!({"status": {"podIPs": []}})),
        ] {
            assert_eq!(newest(vec![pod("a", &more)]), None, "{what}");
        }
        let enrolled = json!({"metadata": {"annotations": {keys::ANNOTATION_STATUS: "{}"}}});
        assert!(newest(vec![pod("a", &enrolled)]).unwrap().injected);
    }
}
