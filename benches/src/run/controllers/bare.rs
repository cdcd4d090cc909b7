//! The bare loop: a watch on AgentRuntimes that makes, for each new one, the writes that an enrolment is made of, and asks
//! nothing. What it takes is the API's own time.

use std::sync::Arc;

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use webhook_tests::ControlPlane;

use super::ACCOUNT;
use super::fleet::Fleet;
use super::running::Running;

/// As many at once as the controllers work on.
const WORKERS: usize = 32;

#[derive(Clone)]
struct Hands {
    runtimes: Api<AgentRuntime>,
    workloads: Api<Deployment>,
    accounts: Api<ServiceAccount>,
    events: Api<Event>,
}

/// Begins the bare loop: it watches, under the account of the controllers.
pub(super) async fn start(cp: &ControlPlane, fleet: &Fleet) -> Result<Running> {
    let client = cp.service_account(keys::OPERATOR_NAMESPACE, ACCOUNT).await?.client().await?;
    let hands = Hands::new(&client, fleet.namespace());
    Ok(Running::begin(|mut stopped| async move {
        let free = Arc::new(Semaphore::new(WORKERS));
        let mut known = std::collections::HashSet::new();
        let mut workers: JoinSet<Result<()>> = JoinSet::new();
        let watching = watcher(hands.runtimes.clone(), watcher::Config::default());
        let mut events = std::pin::pin!(watching.default_backoff().applied_objects());
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(ended) = workers.join_next() => ended??,
                Some(Ok(art)) = events.next() => {
                    if known.insert(art.name_any()) {
                        let (hands, free) = (hands.clone(), free.clone());
                        workers.spawn(async move {
                            let _one = free.acquire().await?;
                            hands.enrol(&art).await
                        });
                    }
                }
            }
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }))
}

impl Hands {
    fn new(client: &Client, namespace: &str) -> Self {
        Self {
            runtimes: Api::namespaced(client.clone(), namespace),
            workloads: Api::namespaced(client.clone(), namespace),
            accounts: Api::namespaced(client.clone(), namespace),
            events: Api::namespaced(client.clone(), namespace),
        }
    }

    /// The writes of one enrolment, in the controllers' order.
    async fn enrol(&self, art: &AgentRuntime) -> Result<()> {
        let name = art.name_any();
        // The policies that fence the account take no ServiceAccount but that of a workload.
        let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "name": name, "uid": art.uid()}]);
        let account = json!({"metadata": {"name": name, "ownerReferences": owner,
            "labels": {keys::LABEL_MANAGED_BY: keys::MANAGED_BY_WEBHOOK, keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE}}});
        self.accounts.create(&PostParams::default(), &typed(account)?).await?;
        let finalizer = json!({"metadata": {"finalizers": [keys::FINALIZER]}});
        self.runtimes.patch(&name, &PatchParams::default(), &Patch::Merge(finalizer)).await?;
        let labels = json!({keys::LABEL_TYPE: "agent"});
        let fields = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": {keys::LABEL_TYPE: "agent", keys::LABEL_MANAGED_BY: "drawbridge"}},
            "spec": {"template": {"metadata": {"labels": labels, "annotations": {keys::ANNOTATION_CONFIG_HASH: keys::HASH_OF_NOTHING}}}}});
        self.workloads.patch(&name, &PatchParams::apply("bare"), &Patch::Apply(fields)).await?;
        let about = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "name": name,
            "namespace": art.namespace(), "uid": art.uid()});
        let event = json!({"metadata": {"name": format!("{name}.bare")}, "involvedObject": about, "reason": "Configured",
            "message": "Deployment is configured", "type": "Normal",
            // The policies that fence the account take no Event of anybody else.
            "reportingComponent": "drawbridge/bare", "reportingInstance": "bare"});
        self.events.create(&PostParams::default(), &typed(event)?).await?;
        let moment = "2026-05-01T00:00:00Z";
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "Configured", "message": "Deployment is configured",
                "lastTransitionTime": moment, "observedGeneration": 1})
        };
        let status = json!({"status": {"phase": "Active", "observedGeneration": 1, "configHash": keys::HASH_OF_NOTHING,
            "conditions": [condition("TargetResolved", "True"), condition("ConfigResolved", "True"),
                condition("RolloutProgressing", "False"), condition("PodsCurrent", "True"), condition("Ready", "True")]}});
        self.runtimes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}

fn typed<K: DeserializeOwned>(object: Value) -> Result<K> {
    Ok(serde_json::from_value(object)?)
}
