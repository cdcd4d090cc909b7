//! What came of a quarantine or a release, read off the cluster.
//!
//! In: Pods and NetworkPolicies of one namespace. Out: how many Pods that run are cut off by now, by whom they are opened all the same, and which no
//! NetworkPolicy holds. Promises: what is not known to hold is said, and never counted; what may not be read is unknown, and not waited for; a release is
//! over when the policy of quarantine is gone, too, or holds others alone.

use std::collections::HashMap;
use std::io::{Result as Written, Write};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::Verb;
use super::record::Change;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::doctor::trust::plugin_of;
use crate::cli::io::shown;
use crate::cli::policy::overridden;
use crate::cli::survey::{self, annotation, label, text};
use crate::domain::keys;
use crate::domain::quarantine::Quarantine;
use crate::policy::network_policy::{Direction, NetworkPolicy};
use crate::policy::pod::labels;
use crate::store::Kind;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks in a row at which Pods or NetworkPolicies could not be read: whoever has no right to them has none in a minute either.
const BLIND: u32 = 5;

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
    /// Pods or NetworkPolicies could not be read, so that nobody knows whether it holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    /// NetworkPolicies of others that open them all the same, one sentence each.
    opened: Vec<String>,
    /// Pods that NetworkPolicies do not hold, with why.
    not_held: Vec<String>,
    /// The network plugin, by its definitions; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'static str>,
    /// Its definitions could not be read.
    #[serde(skip)]
    plugin_unread: bool,
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
    /// Pods or NetworkPolicies could not be read.
    unread: bool,
}

/// Waits until it holds, for `patience` at most; not for what nobody will see, unless Pods are to be evicted once that time is over.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn wait(
    cluster: &Cluster,
    (namespace, change): (&str, &Change),
    Verb { holds, evict }: Verb,
    patience: Duration,
    notes: &mut Vec<String>,
) -> anyhow::Result<Holding> {
    let begun = Instant::now();
    let wanted = (holds, change.everybody);
    let mut look = seen(cluster, namespace, (change, holds), notes).await?;
    let mut blind = u32::from(look.unread);
    while !is_complete(&look, wanted) {
        if begun.elapsed() > patience || (blind >= BLIND && !evict) {
            break;
        }
        tokio::time::sleep(LOOK).await;
        look = seen(cluster, namespace, (change, holds), notes).await?;
        blind = if look.unread { blind + 1 } else { 0 };
    }
    let after = is_complete(&look, wanted).then(|| begun.elapsed().as_millis());
    let count = look.pods.iter().filter(|pod| is_settled(pod, &look, wanted)).count();
    let mut unread = Vec::new();
    // After a release nobody asks who enforces it.
    let definitions = if holds { cluster.list(DEFINITIONS, &mut unread).await } else { Ok(Vec::new()) };
    let plugin_unread = definitions.is_err() || !unread.is_empty();
    let definitions = definitions.unwrap_or_default();
    unread.retain(|note| !notes.contains(note));
    notes.extend(unread);
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
        unknown: look.unread,
        opened,
        not_held,
        plugin: plugin_of(&definitions),
        plugin_unread,
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
    let told = fresh.len();
    let mut pods = cluster.list(&Kind::Pod.path(namespace), &mut fresh).await?;
    pods.retain(|pod| {
        let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        let labelled = label(pod, keys::LABEL_QUARANTINED).is_some_and(|value| quarantine.holds_label(value));
        let owner = survey::owner(pod, &jobs).name;
        !is_over && !still.holds(&owner) && (labelled || quarantine.holds(&owner))
    });
    let policies = cluster.list(&Kind::NetworkPolicy.path(namespace), &mut fresh).await?;
    let unread = fresh.len() > told;
    let ours = policies.iter().filter(|policy| is_ours(policy));
    let ours = ours.filter_map(|policy| NetworkPolicy::read(policy, namespace).ok()).collect();
    fresh.retain(|note| !notes.contains(note));
    notes.extend(fresh);
    Ok(Look { pods, policies, ours, held: !still.is_empty(), unread })
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
    let stands_as_wanted = if holds { stands(look) } else { !is_left(look) };
    !look.unread && stands_as_wanted && held(look).all(|pod| is_settled(pod, look, wanted))
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

/// Where network plugins are known by.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Why nobody knows what came of it.
const UNREAD: &str = "Pods or NetworkPolicies of the namespace could not be read";

impl Holding {
    /// Nothing is left open that is known of.
    pub(super) fn is_complete(&self) -> bool {
        (self.after_ms.is_some() || self.unknown) && self.opened.is_empty() && self.not_held.is_empty()
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
        let Self { namespace, pods, settled, .. } = self;
        let who = shown(&self.who);
        let after = self.after_ms.map_or_else(|| "so far".to_owned(), |millis| format!("after {millis} ms"));
        if !self.quarantined {
            let came = if self.unknown {
                format!("whether it holds Pods still is unknown: {UNREAD}")
            } else {
                format!("{settled} of {pods} Pods are held by it no more {after}")
            };
            writeln!(out, "{namespace}: {who} released; {came}")?;
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
        let came = if self.unknown {
            format!("whether Pods that run are cut off is unknown: {UNREAD}; no new one is made")
        } else {
            format!("{settled} of {pods} Pods that run are cut off {after}, and no new one is made")
        };
        writeln!(out, "{namespace}: {who} in quarantine; {came}")?;
        for opened in &self.opened {
            writeln!(out, "  opened all the same: {}", shown(opened))?;
        }
        for pod in &self.not_held {
            writeln!(out, "  not cut off: Pod {}", shown(pod))?;
        }
        match self.plugin {
            Some(name) => writeln!(out, "  {name} enforces it; connections that are open may last until the Pods go")?,
            None if self.plugin_unread => writeln!(
                out,
                "  which network plugin enforces it is unknown, since CustomResourceDefinitions could not be read: without one nobody is cut off"
            )?,
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
    use crate::cli::Exit;
    use crate::cli::cluster::fake;

    fn look(pods: Value, policy: Option<Value>, held: bool) -> Look {
        let metadata =
            json!({"name": keys::QUARANTINE_POLICY, "namespace": "team", "labels": {"managed-by": "drawbridge"}});
        let both = ["Ingress", "Egress"];
        let policies: Vec<Value> = policy
            .into_iter()
            .map(|selector| json!({"metadata": metadata, "spec": {"podSelector": selector, "policyTypes": both}}))
            .collect();
        let ours = policies.iter().filter_map(|policy| NetworkPolicy::read(policy, "team").ok()).collect();
        Look { pods: pods.as_array().cloned().unwrap_or_default(), policies, ours, held, unread: false }
    }

    /// Without a right to NetworkPolicies the whole time was waited out, and "so far" said that there was something to wait for; after a release that
    /// nobody was held any more.
    #[tokio::test]
    async fn what_may_not_be_read_is_unknown_and_not_waited_for() {
        let change = Change { everybody: true, ..Change::default() };
        let labels = json!({"kagenti.io/type": "agent"});
        for (unread, holds, says) in [
            ("/apis/networking.k8s.io/v1/namespaces/team/networkpolicies", true, "cut off is unknown: "),
            ("/api/v1/namespaces/team/pods", true, "cut off is unknown: "),
            ("/apis/networking.k8s.io/v1/namespaces/team/networkpolicies", false, "holds Pods still is unknown: "),
        ] {
            let pod = json!({"metadata": {"name": "w-1", "namespace": "team", "labels": labels}});
            let cluster = fake::cluster(move |path| match path {
                _ if path == unread || path == "/apis/networking.k8s.io/v1" => fake::refused(),
                "/api/v1/namespaces/team/pods" => fake::list("Pod", "v1", std::slice::from_ref(&pod)),
                _ => fake::absent(),
            })
            .await;
            let (begun, mut notes) = (Instant::now(), Vec::new());
            let verb = Verb { holds, evict: false };
            let patience = Duration::from_secs(60);
            let holding = wait(&cluster, ("team", &change), verb, patience, &mut notes).await.unwrap();
            assert!(begun.elapsed() < patience / 2 && holding.unknown && holding.after_ms.is_none(), "{holding:?}");
            assert_eq!(notes.len(), 1, "{notes:?}");
            let exit = if holding.is_complete() { Exit::Ok } else { Exit::Findings };
            assert_eq!(cluster.seen_all_or_partial(exit), Exit::Partial, "{unread}");
            let mut out = Vec::new();
            holding.table(&mut out).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert!(out.contains(says) && !out.contains("so far"), "{out}");
        }
    }

    /// The exit code was 4, and no note said why; and that there is no network plugin was said of one that could not be looked for.
    #[tokio::test]
    async fn definitions_that_may_not_be_read_are_named_where_they_count() {
        let change = Change { everybody: true, ..Change::default() };
        for holds in [true, false] {
            let policy = json!({
                "metadata": {"name": keys::QUARANTINE_POLICY, "namespace": "team",
                    "labels": {keys::LABEL_POLICY_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE}},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
            });
            let policies = if holds { vec![policy] } else { Vec::new() };
            let cluster = fake::cluster(move |path| match path {
                _ if path.starts_with("/apis/apiextensions.k8s.io/v1") => fake::refused(),
                "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies" => {
                    fake::list("NetworkPolicy", "networking.k8s.io/v1", &policies)
                }
                _ => fake::absent(),
            })
            .await;
            let mut notes = Vec::new();
            let verb = Verb { holds, evict: false };
            let holding = wait(&cluster, ("team", &change), verb, Duration::ZERO, &mut notes).await.unwrap();
            assert!(holding.is_complete() && holding.after_ms.is_some(), "{holding:?}");
            assert_eq!(notes.len(), usize::from(holds), "{notes:?}");
            assert_eq!(cluster.seen_all_or_partial(Exit::Ok), if holds { Exit::Partial } else { Exit::Ok });
            let mut out = Vec::new();
            holding.table(&mut out).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out.contains("which network plugin enforces it is unknown"), holds, "{out}");
            assert!(!out.contains("no network plugin is recognised"), "{out}");
        }
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
