//! Does the API server reach the webhook, trust it, and send it the right Pods only?

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::selectors::matches;
use super::{Seen, Visit, gate_left, leftovers, policies, served, text};
use crate::cli::cluster::Answer;
use crate::cli::render::webhooks;
use crate::domain::keys;
use crate::server::certs::{RootCertificate, read_bundle};
use crate::server::guards::watch::APPLY;

/// A review that takes longer than this delays Pods noticeably.
const SLOW: Duration = Duration::from_millis(500);
/// What says which objects an entry is asked about.
const NARROWING: [&str; 4] = ["matchConditions", "namespaceSelector", "objectSelector", "rules"];

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let roots = authority(visit).await?;
    let (mut entries, mut injects) = (Vec::new(), false);
    for rendered in webhooks::objects(&visit.install()) {
        let kind = text(&rendered, "/kind");
        let name = format!("{kind} {}", keys::WEBHOOK_CONFIGURATION);
        let wanted = || rendered["webhooks"].as_array().into_iter().flatten();
        injects |= wanted().any(|one| text(one, "/name") == keys::WEBHOOK_INJECT);
        let resource = format!("{}s", kind.to_lowercase());
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}/{}", keys::WEBHOOK_CONFIGURATION);
        let configuration = match visit.read(&name, &path).await? {
            Seen::Is(configuration) => configuration,
            Seen::Hidden => continue,
            // Said before everything else.
            Seen::Absent => continue,
        };
        let hooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        for wanted in wanted() {
            let entry = text(wanted, "/name");
            let Some(hook) = hooks.iter().find(|hook| hook["name"] == entry) else {
                visit.finding(&name, format!("has no entry {entry}"), APPLY);
                continue;
            };
            bundle(visit, entry, hook, &roots);
            let pem = STANDARD.decode(text(hook, "/clientConfig/caBundle")).unwrap_or_default();
            let client = hook["clientConfig"].clone();
            entries.push(served::Entry { name: entry.to_owned(), client, bundle: pem });
            as_rendered(visit, (kind, entry), hook, wanted);
            match entry {
                keys::WEBHOOK_AGENT_RUNTIME => stands_aside(visit, entry, hook),
                keys::WEBHOOK_INJECT | keys::WEBHOOK_EXPLAIN => reach(visit, entry, hook),
                _ => {}
            }
            if entry == keys::WEBHOOK_INJECT {
                while_away(visit, hook).await?;
                gate_left::controllers(visit).await?;
            }
        }
    }
    served::check(visit, &entries).await?;
    leftovers::check(visit).await?;
    gate_left::waiting(visit).await?;
    // An installation that leaves out every kind that is enrolled injects nothing.
    if injects { try_a_pod(visit).await } else { Ok(()) }
}

/// The roots of our own authority; empty when certificates come from elsewhere, and for people who may not read its Secret: it holds the key as well, so
/// that nobody should who only looks. What it would tell, the certificate that is served tells, so nothing is left unseen.
async fn authority(visit: &mut Visit) -> anyhow::Result<Vec<RootCertificate>> {
    let name = format!("Secret {}", keys::SECRET_AUTHORITY);
    let path = format!("/api/v1/namespaces/{}/secrets/{}", visit.operator, keys::SECRET_AUTHORITY);
    let secret = match visit.cluster.get(&path).await? {
        Answer::Object(secret) => secret,
        Answer::Absent => return Ok(Vec::new()),
        Answer::Refused(403, _) => {
            let remedy = "nothing: the certificate that is served tells below whether every caBundle has the authority that signs";
            visit.unknown(&name, "you may not read it, which is as it should be: it holds the authority's key", remedy);
            return Ok(Vec::new());
        }
        Answer::Refused(code, message) => {
            visit.cluster.has_not_seen_all();
            visit.unknown(&name, format!("{code}: {message}"), "run doctor again");
            return Ok(Vec::new());
        }
    };
    let pem = STANDARD.decode(text(&secret, "/data/ca.crt")).unwrap_or_default();
    let roots = read_bundle(&pem).certificates;
    if roots.is_empty() {
        let remedy =
            format!("kubectl -n {} delete secret {}; a new authority is made", visit.operator, keys::SECRET_AUTHORITY);
        visit.finding(&name, "key ca.crt holds no certificate", remedy);
    }
    Ok(roots)
}

fn bundle(visit: &mut Visit, entry: &str, hook: &Value, roots: &[RootCertificate]) {
    let name = format!("caBundle of {entry}");
    let pem = STANDARD.decode(text(hook, "/clientConfig/caBundle")).unwrap_or_default();
    let bundle = read_bundle(&pem);
    for section in &bundle.damaged {
        let told = format!("{section}; the API server leaves it out, and trusts the others");
        visit.finding(
            &name,
            told,
            "ask whoever wrote that section to repair or remove it; Drawbridge publishes its own certificate authority itself",
        );
    }
    let published: BTreeSet<_> = bundle.certificates.iter().map(|one| one.root.fingerprint).collect();
    let missing = roots.iter().filter(|certificate| !published.contains(&certificate.root.fingerprint)).count();
    let remedy = format!("look at the logs of the controllers in {}: they publish it", visit.operator);
    if published.is_empty() {
        visit.finding(&name, "is empty: the API server cannot trust the webhook", remedy);
    } else if missing > 0 {
        visit.finding(&name, format!("lacks {missing} root of Secret {}", keys::SECRET_AUTHORITY), remedy);
    } else if roots.is_empty() {
        visit.ok(&name, format!("{} roots; the handshake tells whether they are those that sign", published.len()));
    } else {
        visit.ok(&name, format!("{} roots, all that sign are among them", published.len()));
    }
}

/// What somebody has changed in an entry: Pods that it leaves out are not injected, and objects that it leaves out are stored
/// unjudged. Whom it calls is another check.
fn as_rendered(visit: &mut Visit, (kind, entry): (&str, &str), hook: &Value, wanted: &Value) {
    let name = format!("entry {entry}");
    let other = changed(hook, wanted);
    if other.is_empty() {
        return visit.ok(&name, "is as this version renders it");
    }
    let edit = format!("kubectl edit {} {}", kind.to_lowercase(), keys::WEBHOOK_CONFIGURATION);
    let seen = format!("not as this version renders it: {}", other.join(", "));
    visit.finding(&name, seen, policies::remedy(APPLY, &[edit]));
}

/// The fields of an entry that are not as rendered.
fn changed(hook: &Value, wanted: &Value) -> Vec<String> {
    let mut changed = policies::differences(hook, wanted, &NARROWING);
    changed.retain(|field| field != "clientConfig");
    let path = "/clientConfig/service/path";
    if hook.pointer("/clientConfig/service").is_some() && text(hook, path) != text(wanted, path) {
        changed.push("clientConfig.service.path".to_owned());
    }
    changed
}

/// Selectors that match our own or Kubernetes' namespaces could keep the cluster from ever starting us again.
fn reach(visit: &mut Visit, entry: &str, hook: &Value) {
    let name = format!("selectors of {entry}");
    let guarded: Vec<String> =
        keys::SYSTEM_NAMESPACES.iter().map(|name| (*name).to_owned()).chain([visit.operator.clone()]).collect();
    let hit: Vec<_> = guarded
        .iter()
        .filter(|namespace| {
            let labels = BTreeMap::from([
                ("kubernetes.io/metadata.name", namespace.as_str()),
                (keys::LABEL_NAMESPACE_ENABLED, "true"),
            ]);
            matches(&hook["namespaceSelector"], &labels)
        })
        .cloned()
        .collect();
    if !hit.is_empty() {
        let remedy = format!("exclude them by kubernetes.io/metadata.name NotIn; {APPLY}");
        visit.finding(&name, format!("match {}", hit.join(", ")), remedy);
    } else if entry == keys::WEBHOOK_INJECT && matches(&hook["objectSelector"], &BTreeMap::new()) {
        visit.finding(&name, format!("match Pods without label {}", keys::LABEL_TYPE), APPLY);
    } else {
        visit.ok(&name, "match neither the namespace of Drawbridge nor those of Kubernetes");
    }
}

/// The validator of AgentRuntimes is everywhere, so it must hold up neither changes while no replica answers nor deletions ever.
fn stands_aside(visit: &mut Visit, entry: &str, hook: &Value) {
    let name = format!("{entry} blocks no object of others");
    let policy = text(hook, "/failurePolicy");
    let conditions = hook["matchConditions"].as_array().into_iter().flatten();
    let passes_deletions = conditions.into_iter().any(|one| text(one, "/expression").contains("deletionTimestamp"));
    if policy != "Ignore" {
        let seen = format!("failurePolicy is {policy}: no AgentRuntime can be changed while no replica answers");
        visit.finding(&name, seen, APPLY);
    } else if !passes_deletions {
        visit.finding(&name, "is asked about objects that are being deleted, too", APPLY);
    } else {
        visit.ok(&name, "failurePolicy is Ignore, and deletions pass it by: the controllers settle what it missed");
    }
}

/// What happens to enrolled Pods while no replica answers.
async fn while_away(visit: &mut Visit, hook: &Value) -> anyhow::Result<()> {
    let name = "while no replica answers";
    if text(hook, "/failurePolicy") == "Fail" {
        visit.ok(name, "enrolled Pods are refused");
        return Ok(());
    }
    let root = "/apis/admissionregistration.k8s.io/v1";
    let policy = visit.read(name, &format!("{root}/mutatingadmissionpolicies/{}", keys::GATE)).await?;
    let binding = visit.read(name, &format!("{root}/mutatingadmissionpolicybindings/{}", keys::GATE)).await?;
    let policy = match (policy, binding) {
        (Seen::Is(policy), Seen::Is(_)) => policy,
        (Seen::Hidden, _) | (_, Seen::Hidden) => return Ok(()),
        _ => {
            let remedy =
                format!("{APPLY}: mode gate with --failure-mode gate, which needs Kubernetes 1.36, mode fail without");
            let seen = "failurePolicy is Ignore and the gate policy is not in force: Pods would start unprotected";
            visit.finding(name, seen, remedy);
            return Ok(());
        }
    };
    let constraints = &policy["spec"]["matchConstraints"];
    let same = constraints["namespaceSelector"] == hook["namespaceSelector"]
        && constraints["objectSelector"] == hook["objectSelector"]
        && policy["spec"]["matchConditions"] == hook["matchConditions"];
    if !same {
        visit.finding(name, "gate policy and webhook do not select the same Pods", APPLY);
        return Ok(());
    }
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}", visit.operator, keys::GATE);
    let parameters = match visit.read(name, &path).await? {
        Seen::Is(parameters) => parameters,
        Seen::Absent => Value::Null,
        Seen::Hidden => return Ok(()),
    };
    if parameters["metadata"]["annotations"][keys::ANNOTATION_GATED_TYPES].is_string() {
        visit.ok(name, format!("enrolled Pods wait behind {}", keys::SCHEDULING_GATE));
    } else {
        let seen = format!(
            "every enrolled Pod is refused: ServiceAccount {} has no annotation {}, which tells the gate policy what to gate",
            keys::GATE,
            keys::ANNOTATION_GATED_TYPES
        );
        let remedy = format!(
            "the controllers write it as soon as one of them leads: kubectl -n {} logs deployment/drawbridge-controllers",
            visit.operator
        );
        visit.finding(name, seen, remedy);
    }
    Ok(())
}

/// Whether the selectors leave that namespace out, whatever is installed: a Pod that comes back from there without sidecars says nothing. Whoever
/// looks after the operator has its namespace in the context.
fn is_exempt(namespace: &str, operator: &str) -> bool {
    namespace == operator || keys::SYSTEM_NAMESPACES.contains(&namespace)
}

/// An agent's Pod that a hardened namespace takes: level restricted, and a ResourceQuota that has every container say what it needs. What is refused
/// then is refused for what was injected, or is told of in the message.
fn enrolled_pod() -> Value {
    let little = json!({"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "64Mi"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "drawbridge-doctor-", "labels": {keys::LABEL_TYPE: "agent"}},
        "spec": {"containers": [{
            "name": "agent", "image": "drawbridge.invalid/doctor", "ports": [{"containerPort": 8000}],
            "resources": {"requests": little, "limits": little},
            "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}},
        }]},
    })
}

/// A real create of an enrolled Pod, not stored.
async fn try_a_pod(visit: &mut Visit) -> anyhow::Result<()> {
    let name = format!("an enrolled Pod in {}", visit.namespace);
    if is_exempt(&visit.namespace, &visit.operator) {
        let seen = "no Pod of a namespace of Kubernetes or of Drawbridge is ever injected, so none was tried";
        visit.unknown(&name, seen, "name a namespace of agents with -n, and an enrolled Pod is tried there");
        return Ok(());
    }
    if !visit.watches(&visit.namespace) {
        let remedy = format!(
            "name a watched namespace with -n ({}), or render the manifests with a list that has this one",
            visit.watched.join(", ")
        );
        visit.finding(&name, "would come back without sidecars: the namespace is not watched", remedy);
        return Ok(());
    }
    let began = Instant::now();
    let path = format!("/api/v1/namespaces/{}/pods", visit.namespace);
    let answer = visit.cluster.dry_run(&path, &enrolled_pod()).await?;
    let took = began.elapsed();
    match answer {
        Answer::Object(pod) => injected(visit, &name, &pod, took),
        Answer::Absent => visit.finding(&name, "the namespace does not exist", "name an existing namespace with -n"),
        Answer::Refused(403, message) if message.contains("cannot create resource") => {
            let remedy = format!("run doctor as somebody who may create Pods in {}", visit.namespace);
            visit.unknown(&name, message, remedy);
        }
        Answer::Refused(_, message) => {
            let remedy = after_refusal(&message);
            visit.finding(&name, format!("refused: {message}"), remedy);
        }
    }
    Ok(())
}

/// What to do about a Pod that is refused; the API server names the webhook that it could not call, which may be somebody else's.
fn after_refusal(message: &str) -> &'static str {
    let is_call = message.contains("failed calling webhook");
    // Our entries on Pods.
    let is_ours =
        [keys::WEBHOOK_INJECT, keys::WEBHOOK_TRUST].iter().any(|name| message.contains(&format!("\"{name}\"")));
    if is_call && !is_ours {
        "the webhook that the message names is not Drawbridge's, and holds up enrolled Pods as well: ask whoever runs it"
    } else if is_call && (message.contains("x509") || message.contains("certificate")) {
        "the API server does not trust the certificate that is served: see the checks of caBundle above, and the logs of the controllers, who publish it"
    } else if is_call {
        "no replica answers: see the Deployment's check above, its Service and its NetworkPolicy"
    } else {
        "the message says why; `drawbridge explain -f` shows the whole decision"
    }
}

fn injected(visit: &mut Visit, name: &str, pod: &Value, took: Duration) {
    let milliseconds = took.as_millis();
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).into_iter().flatten();
    let gated = gates.into_iter().any(|gate| gate["name"] == keys::SCHEDULING_GATE);
    let annotation = pod.pointer("/metadata/annotations").and_then(|map| map.get(keys::ANNOTATION_STATUS));
    if gated {
        visit.finding(
            name,
            format!("came back gated after {milliseconds} ms: no replica answered"),
            "see the Deployment's check above",
        );
    } else if annotation.is_none() {
        // A webhook that is not asked, or is passed over while nobody answers, leaves no word either.
        let remedy = format!(
            "see the checks of the webhook and of its Deployment above; where they are in order: kubectl label namespace {} {}-, if it says false, and \
             check the gates; `drawbridge explain -f` shows why",
            visit.namespace,
            keys::LABEL_NAMESPACE_ENABLED
        );
        visit.finding(name, format!("came back without sidecars after {milliseconds} ms"), remedy);
    } else if took > SLOW {
        visit.finding(
            name,
            format!("came back injected, but took {milliseconds} ms"),
            "look at the webhook's CPU limit and at other webhooks",
        );
    } else {
        visit.ok(name, format!("came back injected after {milliseconds} ms; nothing was stored"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::selectors::enrolled_pods;
    use crate::cli::render::{FailureMode, Install};

    /// With a ResourceQuota on requests or limits the API server refuses a Pod with a container that says nothing of them, whatever is injected.
    #[test]
    fn the_pod_that_is_tried_says_what_a_quota_wants_to_hear() {
        let pod = enrolled_pod();
        let container = &pod["spec"]["containers"][0];
        for part in ["requests", "limits"] {
            for resource in ["cpu", "memory", "ephemeral-storage"] {
                assert!(container["resources"][part][resource].is_string(), "{part}.{resource}");
            }
        }
        assert_eq!(container["securityContext"]["runAsNonRoot"], true, "and is one of level restricted");
        assert_eq!(pod["metadata"]["labels"][keys::LABEL_TYPE], "agent");
    }

    /// As API servers word it.
    #[test]
    fn a_refusal_by_somebody_elses_webhook_is_not_told_as_ours() {
        let call = |name: &str, why: &str| {
            format!(
                "Internal error occurred: failed calling webhook \"{name}\": failed to call webhook: Post \"https://x.y.svc:443/z\": {why}"
            )
        };
        let untrusted = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
        for (message, begins) in [
            (call(keys::WEBHOOK_INJECT, "context deadline exceeded"), "no replica answers"),
            (call(keys::WEBHOOK_INJECT, untrusted), "the API server does not trust"),
            (call(keys::WEBHOOK_TRUST, "connection refused"), "no replica answers"),
            (call("other.inject.kagenti.io", "connection refused"), "the webhook that the message names is not"),
            (call("sidecar-injector.istio.io", "connection refused"), "the webhook that the message names is not"),
            (call("sidecar-injector.istio.io", untrusted), "the webhook that the message names is not"),
            ("admission webhook \"x\" denied the request: no certificate".to_owned(), "the message says why"),
        ] {
            assert!(after_refusal(&message).starts_with(begins), "{message}");
        }
    }

    /// (namespace, whether a Pod is tried there), as the selectors have it.
    #[test]
    fn a_pod_is_tried_where_the_webhook_is_asked_and_nowhere_else() {
        let selector = serde_json::to_value(enrolled_pods("own").namespaces).unwrap();
        for (namespace, tried) in [("default", true), ("team1", true), ("own", false), ("kube-system", false)] {
            assert_eq!(is_exempt(namespace, "own"), !tried, "{namespace}");
            let labels = BTreeMap::from([("kubernetes.io/metadata.name", namespace)]);
            assert_eq!(matches(&selector, &labels), tried, "{namespace}");
        }
    }

    #[test]
    fn whatever_has_an_entry_be_asked_less_is_a_change_also_where_nothing_is_rendered() {
        let rendered = webhooks::objects(&Install::new(FailureMode::Fail, "own", ""));
        let entries: Vec<&Value> = rendered.iter().flat_map(|one| one["webhooks"].as_array().unwrap()).collect();
        for entry in &entries {
            assert!(changed(entry, entry).is_empty(), "{entry}");
        }
        let with = |name: &str, path: &str, value: Value| {
            let entry = entries.iter().find(|entry| entry["name"] == name).unwrap();
            let mut hook = (*entry).clone();
            let (parent, member) = path.rsplit_once('/').unwrap();
            hook.pointer_mut(parent).unwrap()[member] = value;
            changed(&hook, entry)
        };
        let never = json!([{"name": "x", "expression": "false"}]);
        for (name, path, value, says) in [
            (keys::WEBHOOK_TRUST, "/matchConditions", never.clone(), "matchConditions"),
            (keys::WEBHOOK_INJECT, "/matchConditions", never, "matchConditions"),
            (keys::WEBHOOK_INJECT, "/objectSelector/matchLabels", json!({"team": "x"}), "objectSelector"),
            (keys::WEBHOOK_AGENT, "/namespaceSelector", json!({"matchLabels": {"team": "x"}}), "namespaceSelector"),
            (keys::WEBHOOK_AGENT, "/rules/0/operations", json!(["CREATE"]), "rules"),
            (keys::WEBHOOK_AGENT, "/failurePolicy", json!("Ignore"), "failurePolicy"),
            (keys::WEBHOOK_AGENT, "/clientConfig/service/path", json!("/other"), "clientConfig.service.path"),
        ] {
            assert_eq!(with(name, path, value), [says], "{name} {path}");
        }
        for (name, path, value) in [
            (keys::WEBHOOK_TRUST, "/matchConditions", json!([])),
            (keys::WEBHOOK_AGENT, "/clientConfig/caBundle", json!("eA==")),
            (keys::WEBHOOK_AGENT, "/clientConfig/service/port", json!(8443)),
        ] {
            assert_eq!(with(name, path, value), [""; 0], "{name} {path}");
        }
    }
}
