//! What people who hold `edit`, or everything, in one namespace try, and never as an administrator.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, TestNamespace, installation, wait_for, wait_gone};

use super::*;

/// A namespace that enforces, with one verified agent and one that is not; and who attacks it.
struct Stage {
    cp: &'static ControlPlane,
    ns: TestNamespace,
    tenants: Vec<(&'static str, Client)>,
}

impl Stage {
    async fn new(name: &str) -> Result<Self> {
        let cp = installation::shared().await?;
        let ns = cp.namespace_with(name, &[(SWITCH, "enforced")]).await?;
        wait_for(&policies(&ns), DENY, |_| true).await?;
        for name in ["good", "bad"] {
            ns.accepts(&agent(name)).await?;
        }
        card_says(cp, &ns, "good", true).await?;
        labelled(&ns, "good", true).await?;
        wait_for(&policies(&ns), "good-signature-policy", opens).await?;
        wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
        let mut tenants = Vec::new();
        for role in ["edit", "everything"] {
            tenants.push((role, tenant(cp, &ns, role).await?.client()));
        }
        Ok(Self { cp, ns, tenants })
    }

    fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.ns.name())
    }

    fn policy(&self, rest: &str) -> String {
        format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies{rest}", self.ns.name())
    }

    fn cards(&self, rest: &str) -> String {
        format!("/apis/agent.kagenti.dev/v1alpha1/namespaces/{}/agentcards/{rest}", self.ns.name())
    }
}

#[tokio::test]
async fn our_policies_are_neither_squatted_edited_deleted_nor_deleted_all_at_once() -> Result<()> {
    let stage = Stage::new("policies").await?;
    let words = "drawbridge-trust-networks";
    let open = json!({"spec": {"egress": [{}], "ingress": [{}]}});
    let unmarked = json!({"metadata": {"labels": {"managed-by": null}}});
    let named = |name: &str, labels: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": labels}, "spec": {"podSelector": {}}})
    };
    for (who, client) in &stage.tenants {
        for name in [DENY, "good-signature-policy", "bad-signature-policy"] {
            let path = stage.policy(&format!("/{name}"));
            for (what, method, body) in [
                ("an edit", "PATCH", Some(open.clone())),
                ("taking the mark away", "PATCH", Some(unmarked.clone())),
                ("a deletion", "DELETE", None),
            ] {
                refused(
                    &request(client, method, path.clone(), body).await?,
                    &format!("{who}: {what} of {name}"),
                    words,
                )?;
            }
        }
        let all = request(client, "DELETE", stage.policy(""), None).await?;
        refused(&all, &format!("{who}: all at once"), words)?;
        for (name, labels) in
            [("third-signature-policy", json!({})), ("mine", json!({"managed-by": "drawbridge"})), (DENY, json!({}))]
        {
            let made = request(client, "POST", stage.policy(""), Some(named(name, labels))).await?;
            ensure!(made.0 >= 400, "{who}: {name} was made");
        }
        let own = named(&format!("own-{who}"), json!({}));
        let made = request(client, "POST", stage.policy(""), Some(own)).await?;
        ensure!(made.0 == 200, "{who}: one of his own: {made:?}");
    }
    // Where nothing is enforced yet, neither.
    let quiet = stage.cp.namespace("squat").await?;
    let squatter = tenant(stage.cp, &quiet, "edit").await?.client();
    let path = format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", quiet.name());
    refused(&request(&squatter, "POST", path, Some(named(DENY, json!({})))).await?, "squatting", words)?;
    for name in [DENY, "good-signature-policy", "bad-signature-policy"] {
        ensure!(policies(&stage.ns).get(name).await?.labels()["managed-by"] == "drawbridge", "{name} stands");
    }
    Ok(())
}

#[tokio::test]
async fn the_trust_label_is_put_on_no_pod_by_anybody_and_taken_off_by_nobody() -> Result<()> {
    let stage = Stage::new("label").await?;
    let ns = &stage.ns;
    let (good, bad) = (running(ns, "good").await?.name_any(), running(ns, "bad").await?.name_any());
    let label = |value: Value| json!({"metadata": {"labels": {VERIFIED: value}}});
    for (who, client) in &stage.tenants {
        for part in ["", "/status"] {
            let set =
                request(client, "PATCH", stage.core(&format!("pods/{bad}{part}")), Some(label(json!("true")))).await?;
            ensure!(set.0 >= 400, "{who}: put through pods{part}");
            let off =
                request(client, "PATCH", stage.core(&format!("pods/{good}{part}")), Some(label(Value::Null))).await?;
            ensure!(off.0 >= 400, "{who}: taken off through pods{part}");
        }
        // Directly, with and without the type of an agent.
        let name = format!("bare-{who}");
        let mut pod = bare(&name);
        pod["metadata"]["labels"][VERIFIED] = "true".into();
        request(client, "POST", stage.core("pods"), Some(pod)).await?;
        let mut plain = bare(&format!("plain-{who}"));
        plain["metadata"]["labels"] = json!({VERIFIED: "true"});
        request(client, "POST", stage.core("pods"), Some(plain)).await?;
        // As a Binding says.
        let mut unbound = bare(&format!("unbound-{who}"));
        unbound["spec"]["schedulerName"] = "nobody".into();
        ensure!(request(client, "POST", stage.core("pods"), Some(unbound)).await?.0 == 200, "{who}: a Pod of his own");
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": format!("unbound-{who}"), "labels": {VERIFIED: "true"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"}});
        let bound = request(client, "POST", stage.core(&format!("pods/unbound-{who}/binding")), Some(binding)).await?;
        ensure!(bound.0 >= 400, "{who}: through a Binding: {bound:?}");
        // It says that a ReplicaSet of a verified agent has made it.
        let set = owner_of(ns, &good).await?;
        let mut forged = bare(&format!("forged-{who}"));
        forged["metadata"]["labels"]["app"] = "other".into();
        forged["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set.name_any(),
            "uid": set.uid(), "controller": true}]);
        let made = request(client, "POST", stage.core("pods"), Some(forged)).await?;
        refused(&made, &format!("{who}: a forged owner"), "drawbridge-trust-owners")?;
        let mut boxed = bare(&format!("boxed-{who}"));
        boxed["metadata"]["ownerReferences"] = json!([{"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "name": "box",
            "uid": set.uid(), "controller": true}]);
        let made = request(client, "POST", stage.core("pods"), Some(boxed)).await?;
        refused(&made, &format!("{who}: a forged Sandbox"), "drawbridge-trust-owners")?;
        let owner = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set.name_any(),
            "uid": set.uid(), "controller": true}]}});
        let adopted = request(client, "PATCH", stage.core(&format!("pods/unbound-{who}")), Some(owner)).await?;
        refused(&adopted, &format!("{who}: an owner that comes later"), "drawbridge-trust-owners")?;
    }
    let all = ns.api::<Pod>().list(&Default::default()).await?;
    let wrong: Vec<_> =
        all.iter().filter(|pod| is_verified(pod) && pod.name_any() != good).map(|pod| pod.name_any()).collect();
    ensure!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}

async fn owner_of(ns: &TestNamespace, pod: &str) -> Result<ReplicaSet> {
    let pod = ns.api::<Pod>().get(pod).await?;
    let owner = pod.owner_references().first().context("an owner")?.name.clone();
    Ok(ns.api::<ReplicaSet>().get(&owner).await?)
}

/// Every kind that makes Pods, an earlier revision, and a ReplicaSet whose Deployment was taken from under it: what a template says of trust
/// reaches no Pod.
#[tokio::test]
async fn what_a_template_says_of_trust_reaches_no_pod_and_refuses_nobody() -> Result<()> {
    let stage = Stage::new("templates").await?;
    let (ns, client) = (&stage.ns, &stage.tenants[0].1);
    let trusting = |name: &str| {
        let mut template = template(name);
        template["metadata"]["labels"][VERIFIED] = "true".into();
        template
    };
    let selector = |name: &str| json!({"matchLabels": {"app": name}});
    let mut job = trusting("job");
    job["spec"]["restartPolicy"] = "Never".into();
    let objects = [
        (
            "deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "dep"},
            "spec": {"selector": selector("dep"), "template": trusting("dep")}}),
        ),
        (
            "statefulsets",
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "sts"},
            "spec": {"serviceName": "sts", "selector": selector("sts"), "template": trusting("sts")}}),
        ),
        (
            "replicasets",
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs"},
            "spec": {"replicas": 1, "selector": selector("rs"), "template": trusting("rs")}}),
        ),
    ];
    for (plural, object) in objects {
        let path = format!("/apis/apps/v1/namespaces/{}/{plural}", ns.name());
        let made = request(client, "POST", path, Some(object)).await?;
        ensure!(made.0 == 200, "{plural}: {made:?}");
    }
    let path = format!("/apis/batch/v1/namespaces/{}/jobs", ns.name());
    let object =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": job}});
    ensure!(request(client, "POST", path, Some(object)).await?.0 == 200, "a Job");
    for name in ["dep", "sts", "rs"] {
        ensure!(!is_verified(&running(ns, name).await?), "{name}");
    }
    // Back to a template of before, which says it, too.
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), ns.name());
    let plain = json!({"spec": {"template": {"metadata": {"labels": {VERIFIED: null}, "annotations": {"a": "b"}}}}});
    deployments.patch("dep", &PatchParams::default(), &Patch::Merge(&plain)).await?;
    let again = json!({"spec": {"template": {"metadata": {"labels": {VERIFIED: "true"}, "annotations": {"a": "c"}}}}});
    deployments.patch("dep", &PatchParams::default(), &Patch::Merge(&again)).await?;
    // Of a verified agent, orphaned: its Pod is nobody's, and loses what it had.
    let good = running(ns, "good").await?.name_any();
    let orphan =
        DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..DeleteParams::default() };
    let set = owner_of(ns, &good).await?.name_any();
    deployments.delete("good", &orphan).await?;
    let patch = json!({"spec": {"template": {"metadata": {"labels": {VERIFIED: "true"}}}}});
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), ns.name());
    sets.patch(&set, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    wait_for(&ns.api::<Pod>(), &good, |pod| !is_verified(pod)).await?;
    // Made again under its name, once the first is gone, it is another one.
    wait_gone(&ns.api::<Deployment>(), "good").await?;
    let mut again = agent("good");
    again["spec"]["replicas"] = 2.into();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", ns.name());
    ensure!(request(client, "POST", path, Some(again)).await?.0 == 200, "made again");
    wait_for(&ns.api::<Deployment>(), "good", |deployment| {
        deployment.status.as_ref().and_then(|status| status.ready_replicas) == Some(2)
    })
    .await?;
    let all = ns.api::<Pod>().list(&Default::default()).await?;
    let wrong: Vec<_> = all.iter().filter(|pod| is_verified(pod)).map(|pod| pod.name_any()).collect();
    ensure!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}

/// Two workloads with overlapping labels: who is selected by another one's selector is opened by nobody's policy.
#[tokio::test]
async fn who_looks_like_a_verified_agent_is_not_opened_with_it() -> Result<()> {
    let stage = Stage::new("overlap").await?;
    let mut evil = agent("evil");
    evil["spec"]["selector"] = json!({"matchLabels": {"who": "evil"}});
    evil["spec"]["template"]["metadata"]["labels"] =
        json!({"who": "evil", "app": "good", "kagenti.io/type": "agent", "kagenti.io/inject": "disabled"});
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", stage.ns.name());
    ensure!(request(&stage.tenants[0].1, "POST", path, Some(evil)).await?.0 == 200, "it is legal");
    let pods = ns_pods(&stage.ns, "who=evil").await?;
    let open = policies(&stage.ns).get("good-signature-policy").await?;
    let selector =
        open.spec.and_then(|spec| spec.pod_selector).and_then(|selector| selector.match_labels).context("labels")?;
    let selected = |pod: &Pod| selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value));
    ensure!(!pods.iter().any(selected), "{selector:?}");
    ensure!(selected(&running_good(&stage.ns).await?), "and the verified one is");
    Ok(())
}

async fn running_good(ns: &TestNamespace) -> Result<Pod> {
    let pods = ns_pods(ns, "app=good,!who").await?;
    pods.into_iter().next().context("a Pod")
}

async fn ns_pods(ns: &TestNamespace, labels: &str) -> Result<Vec<Pod>> {
    let config = kube::runtime::watcher::Config::default().labels(labels);
    webhook_tests::wait_until(&ns.api::<Pod>(), config, |all| !all.is_empty()).await
}

#[tokio::test]
async fn nobody_writes_the_status_of_a_card_turns_the_switch_or_stops_to_be_an_agent() -> Result<()> {
    let stage = Stage::new("forgers").await?;
    let ns = &stage.ns;
    let bad = running(ns, "bad").await?.name_any();
    for (who, client) in &stage.tenants {
        let forged = json!({"status": {"trustedAccount": "default", "conditions": [{"type": "Verified", "status": "True", "reason": "x",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let answer = request(client, "PATCH", stage.cards("bad-deployment-card/status"), Some(forged)).await?;
        // To `edit` it is no right at all.
        ensure!(answer.0 == 403, "{who}: {answer:?}");
        if *who == "everything" {
            refused(&answer, who, "drawbridge-trust-cards")?;
            let held = json!({"metadata": {"finalizers": ["agentcard.kagenti.dev/network-policy"]}});
            let answer = request(client, "PATCH", stage.cards("bad-deployment-card"), Some(held)).await?;
            refused(&answer, "a finalizer of ours", "drawbridge-trust-cards")?;
            its_namespace_opens_nothing(&stage, client).await?;
        }
        for part in ["", "/status"] {
            let off = json!({"metadata": {"labels": {"kagenti.io/type": null}}});
            let answer = request(client, "PATCH", stage.core(&format!("pods/{bad}{part}")), Some(off)).await?;
            ensure!(answer.0 >= 400, "{who}: no agent any more, through pods{part}");
        }
        if *who == "everything" {
            let ended = json!({"status": {"phase": "Succeeded"}});
            let answer = request(client, "PATCH", stage.core(&format!("pods/{bad}/status")), Some(ended)).await?;
            ensure!(answer.0 == 200, "{answer:?}");
            let off = json!({"metadata": {"labels": {"kagenti.io/type": null}}});
            let answer = request(client, "PATCH", stage.core(&format!("pods/{bad}")), Some(off)).await?;
            ensure!(answer.0 == 403, "no agent any more, since it says that it has ended: {answer:?}");
        }
    }
    // Whoever runs the cluster may, in words that mean something.
    let all: Api<Namespace> = Api::all(stage.cp.client().await?);
    let patch = |word: &str| Patch::Merge(json!({"metadata": {"labels": {SWITCH: word}}}));
    let wrong = all.patch(ns.name(), &PatchParams::default(), &patch("enforce")).await;
    ensure!(wrong.is_err_and(|error| error.to_string().contains("drawbridge-trust-switch")));
    all.patch(ns.name(), &PatchParams::default(), &patch("enforced-all")).await?;
    wait_for(&policies(ns), DENY, |policy| {
        policy.spec.as_ref().is_some_and(|spec| spec.pod_selector.as_ref().is_none_or(|all| all.match_labels.is_none()))
    })
    .await?;
    Ok(())
}

/// The labels by which a Namespace ends what is enforced, lets its verified agents in elsewhere, and shows them to everybody.
const OPENING: [(&str, &str); 3] =
    [(SWITCH, "off"), (keys::LABEL_NAMESPACE_ENABLED, "true"), (keys::LABEL_CATALOGUE, keys::SHARED)];

/// To the API server `*` in a namespace is a right to write the Namespace itself, by each of three ways.
async fn its_namespace_opens_nothing(stage: &Stage, client: &Client) -> Result<()> {
    let (all, name): (Api<Namespace>, _) = (Api::all(stage.cp.client().await?), stage.ns.name());
    for (label, value) in OPENING {
        for part in ["", "/status", "/finalize"] {
            let (method, body) = if part == "/finalize" {
                let mut now = serde_json::to_value(all.get(name).await?)?;
                now["metadata"]["labels"][label] = value.into();
                now["apiVersion"] = "v1".into();
                now["kind"] = "Namespace".into();
                ("PUT", now)
            } else {
                ("PATCH", json!({"metadata": {"labels": {label: value}}}))
            };
            let path = format!("/api/v1/namespaces/{name}{part}");
            let answer = request(client, method, path, Some(body)).await?;
            refused(&answer, &format!("{label}={value} through namespaces{part}"), "drawbridge-trust-switch")?;
        }
    }
    let labels = all.get(name).await?.metadata.labels.unwrap_or_default();
    let opened = OPENING.iter().find(|(label, value)| labels.get(*label).is_some_and(|said| said == value));
    ensure!(opened.is_none(), "{opened:?}");
    Ok(())
}

/// What shuts, and what says nothing of trust, whoever may write the Namespace writes as before; and what opens, whoever runs the cluster.
#[tokio::test]
async fn a_namespace_is_opened_by_whoever_runs_the_cluster_and_shut_by_whoever_may_write_it() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("opened").await?;
    let everything = tenant(cp, &ns, "everything").await?.client();
    let all: Api<Namespace> = Api::all(cp.client().await?);
    let path = || format!("/api/v1/namespaces/{}", ns.name());
    for (label, value) in OPENING.into_iter().filter(|(label, _)| *label != SWITCH) {
        let says = |value: Value| json!({"metadata": {"labels": {label: value}}});
        let opened = says(json!(value));
        let early = request(&everything, "PATCH", path(), Some(opened.clone())).await?;
        refused(&early, &format!("{label} by a tenant"), "drawbridge-trust-switch")?;
        all.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&opened)).await?;
        let noted = json!({"metadata": {"labels": {"team": "a", label: value}, "annotations": {"note": label}}});
        for (what, body) in
            [("another label", noted), ("another value", says(json!("no"))), ("none", says(Value::Null))]
        {
            let answer = request(&everything, "PATCH", path(), Some(body)).await?;
            ensure!(answer.0 == 200, "{label}, {what}: {answer:?}");
        }
        let again = request(&everything, "PATCH", path(), Some(opened)).await?;
        refused(&again, &format!("{label} again"), "drawbridge-trust-switch")?;
    }
    Ok(())
}

/// A guard that named its objects by the request held such a namespace up for ever.
#[tokio::test]
async fn a_namespace_that_enforces_goes_in_seconds() -> Result<()> {
    let stage = Stage::new("going").await?;
    let all: Api<Namespace> = Api::all(stage.cp.client().await?);
    let begun = std::time::Instant::now();
    all.delete(stage.ns.name(), &DeleteParams::default()).await?;
    wait_gone(&all, stage.ns.name()).await?;
    eprintln!("a namespace that enforces went in {:?}", begun.elapsed());
    Ok(())
}

/// A Pod that is no agent's may say whom it likes as its owner; it becomes no agent's Pod with that. The ReplicaSet's controller takes it away as one
/// too many: a request that found it gone says nothing, and is made of the next one.
#[tokio::test]
async fn a_forged_owner_of_before_makes_no_agent_s_pod() -> Result<()> {
    let stage = Stage::new("later-label").await?;
    let ns = &stage.ns;
    let set = owner_of(ns, &running(ns, "good").await?.name_any()).await?;
    let deadline = tokio::time::Instant::now() + webhook_tests::patience::patience();
    for (who, client) in &stage.tenants {
        let mut number = 0;
        // To `edit` the status is no right at all.
        for part in ["", "/status"].into_iter().filter(|part| part.is_empty() || *who == "everything") {
            let labelled = loop {
                number += 1;
                let name = format!("labelled-{who}-{number}");
                let mut forged = bare(&name);
                forged["metadata"]["labels"] =
                    json!({"app": "good", "pod-template-hash": set.labels().get("pod-template-hash")});
                forged["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                    "name": set.name_any(), "uid": set.uid(), "controller": true}]);
                forged["spec"]["schedulerName"] = "nobody".into();
                let made = request(client, "POST", stage.core("pods"), Some(forged)).await?;
                ensure!(made.0 < 300, "{who}: a Pod that is no agent's: {made:?}");
                let agent = json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}});
                let path = stage.core(&format!("pods/{name}{part}"));
                let labelled = request(client, "PATCH", path, Some(agent)).await?;
                if labelled.0 != 404 {
                    break labelled;
                }
                ensure!(tokio::time::Instant::now() < deadline, "{who}: the Pod is gone before each request");
            };
            refused(&labelled, &format!("{who}: the label through pods{part}"), "drawbridge-trust-owners")?;
        }
    }
    let all = ns.api::<Pod>().list(&Default::default()).await?;
    let wrong: Vec<_> = all.iter().filter(|pod| pod.name_any().starts_with("labelled-") && is_verified(pod)).collect();
    ensure!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}
