//! What came of a quarantine or a release, read off the cluster.
//!
//! In: Pods and NetworkPolicies of one namespace. Out: how many Pods that run are cut off by now, by whom they are opened all the same, and which no
//! NetworkPolicy holds. Promises: what is not known to hold is said, and never counted; a release is over when the policy of quarantine is gone, too,
//! or holds others alone.

use std::collections::HashMap;
use std::io::{Result as Written, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::record::Change;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::doctor::trust::plugin_of;
use crate::cli::policy::overridden;
use crate::cli::survey::{self, annotation, label, text};
use crate::domain::keys;
use crate::domain::quarantine::Quarantine;
use crate::policy::network_policy::{Direction, NetworkPolicy};
use crate::policy::pod::labels;
use crate::store::Kind;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// One namespace.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Holding {
    namespace: String,
    /// Who it is about.
    who: String,
    /// In quarantine, rather than released.
    quarantined: bool,
    /// Pods of them that run.
    pods: usize,
    /// Of those, how many are cut off, or after a release are not any more.
    settled: usize,
    /// Milliseconds until all of them were; absent where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_ms: Option<u128>,
    /// NetworkPolicies of others that open them all the same, one sentence each.
    opened: Vec<String>,
    /// Pods that NetworkPolicies do not hold, with why.
    not_held: Vec<String>,
    /// The network plugin, by its definitions; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'static str>,
    /// After a release: the policy of quarantine is still there, though nobody is in quarantine any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    still_there: bool,
    /// Pods that were evicted; absent without `--evict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted: Option<usize>,
    #[serde(skip)]
    running: Vec<String>,
}

/// What the cluster shows.
struct Look {
    /// Pods of those that are meant.
    pods: Vec<Value>,
    policies: Vec<Value>,
    /// Those of them that are ours.
    ours: Vec<NetworkPolicy>,
    /// After a release: somebody of the namespace is in quarantine still.
    held: bool,
}

/// Waits until it holds, for `patience` at most.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn wait(
    cluster: &Cluster,
    (namespace, change): (&str, &Change),
    holds: bool,
    patience: Duration,
    notes: &mut Vec<String>,
) -> anyhow::Result<Holding> {
    let begun = Instant::now();
    let wanted = (holds, change.everybody);
    let mut look = seen(cluster, namespace, (change, holds), notes).await?;
    while !is_complete(&look, wanted) {
        if begun.elapsed() > patience {
            break;
        }
        tokio::time::sleep(LOOK).await;
        look = seen(cluster, namespace, (change, holds), notes).await?;
    }
    let after = is_complete(&look, wanted).then(|| begun.elapsed().as_millis());
    let count = look.pods.iter().filter(|pod| is_settled(pod, &look, wanted)).count();
    let definitions = cluster
        .list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &mut Vec::new())
        .await
        .unwrap_or_default();
    let (opened, not_held) = if holds {
        let here =
            cluster.get(&format!("{}/{namespace}", Kind::Namespace.path(""))).await?.object().unwrap_or_default();
        let words = look
            .pods
            .iter()
            .filter_map(|pod| Some(format!("{}: {}", text(pod, "/metadata/name"), why_not(pod, change)?)));
        (overridden::words(&here, &look.pods, &look.policies), words.collect())
    } else {
        (Vec::new(), Vec::new())
    };
    Ok(Holding {
        namespace: namespace.to_owned(),
        who: change.to_string(),
        quarantined: holds,
        pods: look.pods.len(),
        settled: count,
        after_ms: after,
        opened,
        not_held,
        plugin: plugin_of(&definitions),
        still_there: !holds && is_left(&look),
        evicted: None,
        running: look.pods.iter().map(|pod| text(pod, "/metadata/name").to_owned()).collect(),
    })
}

/// Reads the Pods that are meant; after a release those that are held for another reason are not.
async fn seen(
    cluster: &Cluster,
    namespace: &str,
    (change, holds): (&Change, bool),
    notes: &mut Vec<String>,
) -> anyhow::Result<Look> {
    let mut fresh = Vec::new();
    let mut still = Quarantine::default();
    if !holds {
        let here = cluster.get(&format!("{}/{namespace}", Kind::Namespace.path(""))).await?.object();
        let said = here.as_ref().and_then(|here| annotation(here, keys::ANNOTATION_QUARANTINE));
        still = said.map(Quarantine::parse).unwrap_or_default();
    }
    let jobs = cluster.list(&format!("/apis/batch/v1/namespaces/{namespace}/jobs"), &mut fresh).await?;
    let jobs: HashMap<&str, &Value> = jobs.iter().map(|job| (text(job, "/metadata/name"), job)).collect();
    let quarantine = change.quarantine();
    let mut pods = cluster.list(&Kind::Pod.path(namespace), &mut fresh).await?;
    pods.retain(|pod| {
        let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        let labelled = label(pod, keys::LABEL_QUARANTINED).is_some_and(|value| quarantine.holds_label(value));
        let owner = survey::owner(pod, &jobs).name;
        !is_over && !still.holds(&owner) && (labelled || quarantine.holds(&owner))
    });
    let policies = cluster.list(&Kind::NetworkPolicy.path(namespace), &mut fresh).await?;
    let ours = policies.iter().filter(|policy| is_ours(policy));
    let ours = ours.filter_map(|policy| NetworkPolicy::read(policy, namespace).ok()).collect();
    fresh.retain(|note| !notes.contains(note));
    notes.extend(fresh);
    Ok(Look { pods, policies, ours, held: !still.is_empty() })
}

fn is_ours(policy: &Value) -> bool {
    label(policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE)
}

/// A policy of ours still opens something of the Pod, if only the way to the API server.
fn is_opened(pod: &Value, look: &Look) -> bool {
    let labels = labels(pod);
    let opens = |policy: &NetworkPolicy| {
        Direction::ALL.into_iter().any(|direction| policy.rules(direction).is_some_and(|rules| !rules.is_empty()))
    };
    look.ours.iter().any(|policy| opens(policy) && policy.selects.matches(&labels))
}

/// The policy of quarantine is there.
fn stands(look: &Look) -> bool {
    let is_it = |policy: &Value| text(policy, "/metadata/name") == keys::QUARANTINE_POLICY && is_ours(policy);
    look.policies.iter().any(is_it)
}

/// It is there, and nobody is to be held by it.
fn is_left(look: &Look) -> bool {
    stands(look) && !look.held
}

/// Pods that are waited for: those with the label by which the controllers watch them.
fn held(look: &Look) -> impl Iterator<Item = &Value> {
    look.pods.iter().filter(|pod| label(pod, keys::LABEL_TYPE).is_some())
}

/// Nothing is to be waited for any more.
fn is_complete(look: &Look, wanted @ (holds, _): (bool, bool)) -> bool {
    held(look).all(|pod| is_settled(pod, look, wanted)) && if holds { stands(look) } else { !is_left(look) }
}

fn is_settled(pod: &Value, look: &Look, (holds, everybody): (bool, bool)) -> bool {
    let labelled = label(pod, keys::LABEL_QUARANTINED).is_some();
    if !holds {
        // That of a whole namespace selects Pods without the label, too.
        let own = labels(pod);
        let selects = |policy: &NetworkPolicy| policy.name == keys::QUARANTINE_POLICY && policy.selects.matches(&own);
        return !labelled && !look.ours.iter().any(selects);
    }
    let trusted = label(pod, keys::LABEL_VERIFIED).is_some();
    let watched = label(pod, keys::LABEL_TYPE).is_some();
    stands(look) && !trusted && !is_opened(pod, look) && (labelled || (everybody && !watched))
}

/// Why no NetworkPolicy holds a Pod.
fn why_not(pod: &Value, change: &Change) -> Option<&'static str> {
    if pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true) {
        return Some("it has the network of its node, which NetworkPolicies do not hold");
    }
    (label(pod, keys::LABEL_TYPE).is_none() && !change.everybody)
        .then_some("it has no label kagenti.io/type, so it is not watched; quarantine the namespace, or delete it")
}

impl Holding {
    /// Nothing is left open that is known of.
    pub(super) fn is_complete(&self) -> bool {
        self.after_ms.is_some() && self.opened.is_empty() && self.not_held.is_empty()
    }

    /// Evicts the Pods that run.
    pub(super) async fn evict(&mut self, cluster: &Cluster, notes: &mut Vec<String>) -> anyhow::Result<()> {
        let mut evicted = 0;
        for pod in &self.running {
            let path = format!("{}/{pod}/eviction", Kind::Pod.path(&self.namespace));
            let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}});
            match cluster.post(&path, &body).await? {
                Answer::Object(_) | Answer::Absent => evicted += 1,
                Answer::Refused(code, message) => {
                    notes.push(format!("{}: Pod {pod} was not evicted ({code}): {message}", self.namespace))
                }
            }
        }
        self.evicted = Some(evicted);
        Ok(())
    }

    /// For people.
    pub(super) fn table(&self, out: &mut dyn Write) -> Written<()> {
        let Self { namespace, who, pods, settled, .. } = self;
        let after = self.after_ms.map_or_else(|| "so far".to_owned(), |millis| format!("after {millis} ms"));
        if !self.quarantined {
            writeln!(out, "{namespace}: {who} released; {settled} of {pods} Pods are held by it no more {after}")?;
            if self.still_there {
                writeln!(
                    out,
                    "  NetworkPolicy {policy} is still there, and holds whom it selects; the controllers delete it: kubectl -n {namespace} describe \
                     networkpolicy {policy} shows whom, drawbridge doctor whether they run",
                    policy = keys::QUARANTINE_POLICY
                )?;
            }
            return Ok(());
        }
        writeln!(
            out,
            "{namespace}: {who} in quarantine; {settled} of {pods} Pods that run are cut off {after}, and no new one is made"
        )?;
        for opened in &self.opened {
            writeln!(out, "  opened all the same: {opened}")?;
        }
        for pod in &self.not_held {
            writeln!(out, "  not cut off: Pod {pod}")?;
        }
        match self.plugin {
            Some(name) => writeln!(out, "  {name} enforces it; connections that are open may last until the Pods go")?,
            None => writeln!(
                out,
                "  no network plugin is recognised by its CustomResourceDefinitions: without one that enforces NetworkPolicies nobody \
                    is cut off"
            )?,
        }
        match self.evicted {
            Some(count) => writeln!(out, "  {count} Pods were evicted"),
            None => writeln!(out, "  Pods that run are kept as evidence (--evict ends them)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(pods: Value, policy: Option<Value>, held: bool) -> Look {
        let metadata =
            json!({"name": keys::QUARANTINE_POLICY, "namespace": "team", "labels": {"managed-by": "drawbridge"}});
        let both = ["Ingress", "Egress"];
        let policies: Vec<Value> = policy
            .into_iter()
            .map(|selector| json!({"metadata": metadata, "spec": {"podSelector": selector, "policyTypes": both}}))
            .collect();
        let ours = policies.iter().filter_map(|policy| NetworkPolicy::read(policy, "team").ok()).collect();
        Look { pods: pods.as_array().cloned().unwrap_or_default(), policies, ours, held }
    }

    /// The policy of a whole namespace cuts off every Pod of it, labelled or not.
    #[test]
    fn a_release_is_over_when_no_policy_of_quarantine_holds_anybody() {
        let pod = |labels: Value| json!([{"metadata": {"name": "w-1", "namespace": "team", "labels": labels}}]);
        let agent = || pod(json!({"kagenti.io/type": "agent"}));
        let labelled = pod(json!({"kagenti.io/type": "agent", "agent.kagenti.dev/quarantined": "w"}));
        let everybody = || Some(json!({}));
        let label =
            || Some(json!({"matchExpressions": [{"key": "agent.kagenti.dev/quarantined", "operator": "Exists"}]}));
        for (what, pods, policy, held, complete, settled) in [
            ("gone", agent(), None, false, true, 1),
            ("of the whole namespace", agent(), everybody(), false, false, 0),
            ("a label is left", labelled.clone(), None, false, false, 0),
            ("both", labelled, label(), false, false, 0),
            ("nobody runs", json!([]), label(), false, false, 0),
            ("it holds others", agent(), label(), true, true, 1),
            ("it holds everybody on", agent(), everybody(), true, false, 0),
        ] {
            let look = look(pods, policy, held);
            assert_eq!(is_complete(&look, (false, true)), complete, "{what}");
            let count = look.pods.iter().filter(|pod| is_settled(pod, &look, (false, true))).count();
            assert_eq!((count, is_left(&look)), (settled, stands(&look) && !held), "{what}");
        }
    }
}
