//! Quarantine and release: what holds, what people who hold `edit`, or everything, in the namespace can do about it, and how long it takes.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{ControlPlane, installation, programs, wait_for, wait_gone};

use super::*;

pub(super) const HELD: &str = "agent.kagenti.dev/quarantined";
pub(super) const QUARANTINE: &str = "drawbridge-quarantine";
const ANNOTATION: &str = "agent.kagenti.dev/quarantine";

/// A command of a person who runs the cluster: its answer and its exit code.
pub(super) async fn command(cp: &ControlPlane, args: &[&str]) -> Result<(Value, Option<i32>)> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(args).args(["-o", "json", "--kubeconfig"]).arg(cp.admin().kubeconfig()).kill_on_drop(true);
    if matches!(args.first(), Some(&"quarantine" | &"release")) {
        command.arg(timeout());
    }
    let output = command.output().await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).with_context(|| format!("{args:?}: {words}"))?;
    Ok((answer, output.status.code()))
}

/// Labels of Pods and specs of policies, as they are to come back.
async fn state(ns: &TestNamespace) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for policy in policies(ns).list(&ListParams::default()).await? {
        all.push(format!("{} {}", policy.name_any(), serde_json::to_string(&policy.spec)?));
    }
    for pod in ns.api::<Pod>().list(&ListParams::default()).await? {
        all.push(format!("{} {:?} {:?}", pod.name_any(), pod.uid(), pod.labels()));
    }
    all.sort();
    Ok(all)
}

/// Both ways of policies that select the Pod: none of ours opens anything.
fn is_shut(policy: &k8s_openapi::api::networking::v1::NetworkPolicy) -> bool {
    policy.spec.as_ref().is_some_and(|spec| {
        spec.ingress.as_ref().is_none_or(Vec::is_empty)
            && spec.egress.as_ref().is_none_or(Vec::is_empty)
            && spec.policy_types.as_ref().is_some_and(|types| types.len() == 2)
    })
}

#[tokio::test]
async fn a_quarantine_holds_against_its_tenants_and_release_gives_back_exactly_what_was() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace_with("quarantine", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    for name in ["good", "bad"] {
        ns.accepts(&agent(name)).await?;
    }
    card_says(cp, &ns, "good", true).await?;
    let pod = labelled(&ns, "good", true).await?.name_any();
    wait_for(&policies(&ns), "good-signature-policy", opens).await?;
    wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
    running(&ns, "bad").await?;
    let before = state(&ns).await?;

    let (answer, code) =
        command(cp, &["quarantine", "agent/good", "-n", ns.name(), "--reason", "token leaked"]).await?;
    let held = &answer["namespaces"][0];
    ensure!(code == Some(0) && held["settled"] == 1 && held["pods"] == 1, "{code:?} {answer:#}");
    eprintln!("quarantine of one agent held after {} ms", held["afterMs"]);
    let now = ns.api::<Pod>().get(&pod).await?;
    ensure!(!is_verified(&now) && now.labels().get(HELD).map(String::as_str) == Some("good"), "{:?}", now.labels());
    wait_for(&policies(&ns), "good-signature-policy", is_shut).await?;
    ensure!(is_shut(&policies(&ns).get(QUARANTINE).await?));
    wait_for(&policies(&ns), DENY, |deny| serde_json::to_string(deny).is_ok_and(|text| text.contains("DoesNotExist")))
        .await?;
    // Others go on, and get new Pods.
    let scale = json!({"spec": {"replicas": 2}});
    let deployments = ns.api::<Deployment>();
    deployments.patch("bad", &PatchParams::default(), &Patch::Merge(&scale)).await?;
    wait_for(&deployments, "bad", |found| found.status.as_ref().and_then(|status| status.ready_replicas) == Some(2))
        .await?;
    deployments.patch("bad", &PatchParams::default(), &Patch::Merge(&json!({"spec": {"replicas": 1}}))).await?;

    for role in ["edit", "everything"] {
        attacked(&ns, role, &tenant(cp, &ns, role).await?.client(), &pod).await?;
    }
    // Made again under its name it gets no Pod.
    let client = tenant(cp, &ns, "edit").await?.client();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", ns.name());
    let mut scaled = Patch::Merge(json!({"spec": {"replicas": 2}}));
    deployments.patch("good", &PatchParams::default(), &scaled).await?;
    let fails = |found: &Deployment| {
        let conditions = found.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| {
            one.type_ == "ReplicaFailure" && one.message.as_deref().unwrap_or_default().contains("Quarantined")
        })
    };
    wait_for(&deployments, "good", fails).await?;
    scaled = Patch::Merge(json!({"spec": {"replicas": 1}}));
    deployments.patch("good", &PatchParams::default(), &scaled).await?;
    let mut twin = agent("good");
    twin["metadata"]["name"] = "good".into();
    ensure!(request(&client, "POST", path, Some(twin)).await?.0 == 409, "it is there");

    // What was tried meanwhile under its name would get its Pod now.
    let jobs = ns.api::<k8s_openapi::api::batch::v1::Job>();
    drop(jobs.delete("good", &kube::api::DeleteParams::background()).await);
    wait_gone(&jobs, "good").await?;
    let (answer, code) = command(cp, &["release", "agent/good", "-n", ns.name()]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    labelled(&ns, "good", true).await?;
    wait_for(&policies(&ns), "good-signature-policy", opens).await?;
    wait_gone(&policies(&ns), QUARANTINE).await?;
    webhook_tests::wait_until(&ns.api::<Pod>(), kube::runtime::watcher::Config::default(), |all| all.len() == 2)
        .await?;
    let pods: Vec<_> = before.iter().filter(|line| line.contains("bad-") && !line.contains("policy")).collect();
    // The second Pod of `bad` came and went; whichever of the two stayed, everything else is as it was.
    let same = |all: &[String]| {
        all.iter().filter(|line| !line.starts_with("bad-") || line.contains("policy")).cloned().collect::<Vec<_>>()
    };
    let begun = Instant::now();
    let after = loop {
        let after = state(&ns).await?;
        if same(&before) == same(&after) || begun.elapsed() > patience() {
            break after;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    ensure!(same(&before) == same(&after) && pods.len() == 1, "{before:#?}\n{after:#?}");
    Ok(())
}

/// What somebody with rights in the namespace alone tries.
async fn attacked(ns: &TestNamespace, who: &str, client: &kube::Client, pod: &str) -> Result<()> {
    let core = |rest: &str| format!("/api/v1/namespaces/{}{rest}", ns.name());
    let networks = |rest: &str| format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies{rest}", ns.name());
    for part in ["", "/status"] {
        let lifted =
            request(client, "PATCH", core(part), Some(json!({"metadata": {"annotations": {ANNOTATION: null}}})))
                .await?;
        ensure!(lifted.0 == 403, "{who}: the annotation through namespaces{part}: {lifted:?}");
        if who == "everything" {
            refused(&lifted, who, "drawbridge-trust-switch")?;
        }
        for (what, labels) in [
            ("the label taken off", json!({HELD: null})),
            ("another value", json!({HELD: "other"})),
            ("no agent any more", json!({"kagenti.io/type": null})),
            ("trusted again", json!({VERIFIED: "true"})),
        ] {
            let path = core(&format!("/pods/{pod}{part}"));
            let tried = request(client, "PATCH", path, Some(json!({"metadata": {"labels": labels}}))).await?;
            ensure!(tried.0 >= 400, "{who}: {what} through pods{part}");
        }
    }
    let open = json!({"spec": {"egress": [{}], "ingress": [{}]}});
    for (what, method, path, body) in [
        ("an edit", "PATCH", networks(&format!("/{QUARANTINE}")), Some(open)),
        ("a deletion", "DELETE", networks(&format!("/{QUARANTINE}")), None),
        ("all at once", "DELETE", networks(""), None),
    ] {
        refused(&request(client, method, path, body).await?, &format!("{who}: {what}"), "drawbridge-trust-networks")?;
    }
    // A Pod of its name, and one that says that it is in quarantine, which the deny would leave to the other policy.
    let named = request(client, "POST", core("/pods"), Some(bare("good"))).await?;
    refused(&named, &format!("{who}: a Pod of its name"), "Quarantined")?;
    let mut labelled = bare(&format!("posing-{who}"));
    labelled["metadata"]["labels"][HELD] = "good".into();
    let posing = request(client, "POST", core("/pods"), Some(labelled)).await?;
    refused(&posing, &format!("{who}: a Pod that says so"), "drawbridge-trust-quarantined")?;
    // Its own labels are the tenant's: whoever takes the Pod away from its workload keeps it where it is.
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "good"}, "spec": {"backoffLimit": 3, "template": {
        "metadata": {"labels": {"app": "job"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example.com/a:1"}]}}}});
    let path = format!("/apis/batch/v1/namespaces/{}/jobs", ns.name());
    request(client, "POST", path, Some(job)).await?;
    let pods = ns.api::<Pod>().list(&ListParams::default().labels("app=job")).await?;
    ensure!(pods.items.is_empty(), "{who}: a Job of its name got a Pod");
    Ok(())
}

/// Where nothing is enforced: a whole namespace, and agents by a skill.
#[tokio::test]
async fn a_namespace_that_enforces_nothing_is_held_as_well_and_evicted_pods_do_not_come_back() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("held").await?;
    ns.accepts(&agent("one")).await?;
    let pod = running(&ns, "one").await?.name_any();
    let before = state(&ns).await?;
    let target = format!("namespace/{}", ns.name());
    let (answer, code) = command(cp, &["quarantine", &target, "--reason", "incident 7", "--evict"]).await?;
    ensure!(code == Some(0) && answer["namespaces"][0]["evicted"] == 1, "{code:?} {answer:#}");
    ensure!(is_shut(&policies(&ns).get(QUARANTINE).await?) && !before.is_empty());
    wait_gone(&ns.api::<Pod>(), &pod).await?;
    let fails = |found: &Deployment| {
        let conditions = found.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "ReplicaFailure")
    };
    wait_for(&ns.api::<Deployment>(), "one", fails).await?;
    let mut plain = bare("plain");
    plain["metadata"]["labels"] = json!({});
    let refused_pod =
        request(&cp.client().await?, "POST", format!("/api/v1/namespaces/{}/pods", ns.name()), Some(plain)).await?;
    refused(&refused_pod, "any Pod", "Quarantined")?;
    let (status, _) = command(cp, &["status", "-n", ns.name()]).await?;
    ensure!(status["trust"][0]["quarantined"][0] == "every Pod (incident 7)", "{status:#}");
    let (answer, code) = command(cp, &["release", &target]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    wait_gone(&policies(&ns), QUARANTINE).await?;
    // Its controller waits longer after each Pod that was refused; a change of the workload has it try at once.
    let scale = Patch::Merge(json!({"spec": {"replicas": 2}}));
    ns.api::<Deployment>().patch("one", &PatchParams::default(), &scale).await?;
    running(&ns, "one").await?;
    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    ensure!(!namespaces.get(ns.name()).await?.annotations().keys().any(|key| key.starts_with(ANNOTATION)));
    // In quarantine a namespace goes as fast as any.
    command(cp, &["quarantine", &target, "--reason", "again"]).await?;
    namespaces.delete(ns.name(), &DeleteParams::default()).await?;
    wait_gone(&namespaces, ns.name()).await?;
    Ok(())
}
