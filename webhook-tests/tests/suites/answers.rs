//! What the product says is true: condition `Protected`, the causes that `status` names, rights that are missing, and webhook
//! configurations that are gone, beside what a real API server does.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::cli::render::kinds::Kinds;
use drawbridge::cli::render::{self, FailureMode, Install};
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Mark, Options, TestNamespace, installation, programs,
    wait_until,
};

async fn control_plane() -> Result<&'static ControlPlane> {
    installation::shared().await
}

fn deployment(name: &str, labels: &Value) -> Value {
    let mut of_template = labels.clone();
    of_template["app"] = json!(name);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": of_template},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]},
            },
        },
    })
}

fn agent_runtime(name: &str, target: &str, type_: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": name},
        "spec": {"type": type_, "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    })
}

/// What `drawbridge` prints and how it ends, as the administrator or as somebody else.
async fn drawbridge(cp: &ControlPlane, args: &[&str]) -> Result<(String, Option<i32>)> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(args).arg("--kubeconfig").arg(cp.admin().kubeconfig()).kill_on_drop(true);
    let output = command.output().await?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((said, output.status.code()))
}

/// Waits until a condition of an AgentRuntime says that.
async fn says(ns: &TestNamespace, name: &str, type_: &str, wanted: &str) -> Result<()> {
    let holds = |runtime: &AgentRuntime| {
        let conditions = runtime.status.iter().flat_map(|status| &status.conditions);
        let mut of_type = conditions.filter(|one| one.type_ == type_);
        of_type.any(|one| format!("{}/{}", one.status, one.reason) == wanted)
    };
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_until(&ns.api::<AgentRuntime>(), named, |all| all.values().any(holds))
        .await
        .with_context(|| wanted.to_owned())?;
    Ok(())
}

#[tokio::test]
async fn answers_01_protected_follows_the_pods_and_ready_the_enrolment() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("protected").await?;
    ns.accepts(&deployment("web", &json!({}))).await?;
    ns.accepts(&deployment("helper", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather", "web", "agent")).await?;
    ns.accepts(&agent_runtime("tool", "helper", "tool")).await?;
    let wait = ["wait", "--for=condition=Protected", "agentruntime/weather", &timeout(), "-n", ns.name()];
    let waited = cp.kubectl(cp.admin(), &wait, "").await?;
    ensure!(waited.success, "{}", waited.stderr);
    says(&ns, "weather", "Protected", "True/Protected").await?;
    says(&ns, "tool", "Ready", "True/Configured").await?;
    says(&ns, "tool", "Protected", "False/ToolsDisabled").await?;
    let columns = cp.kubectl(cp.admin(), &["get", "agentruntime", "-n", ns.name()], "").await?.stdout;
    let head = columns.lines().next().unwrap_or_default();
    ensure!(head.contains("PROTECTED") && head.contains("REASON") && columns.contains("ToolsDisabled"), "{columns}");
    Ok(())
}

#[tokio::test]
async fn answers_02_a_quota_without_room_is_the_cause_that_status_names() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("no-room").await?;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}});
    ns.accepts(&quota).await?;
    ns.until_full("small").await?;
    ns.accepts(&deployment("web", &json!({keys::LABEL_TYPE: "agent"}))).await?;
    ns.accepts(&deployment("pointed", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather", "pointed", "agent")).await?;
    says(&ns, "weather", "Protected", "False/QuotaExceeded").await?;
    let begun = Instant::now();
    loop {
        let (said, code) = drawbridge(cp, &["status", "-n", ns.name()]).await?;
        if said.contains("exceeded quota: small") && said.contains("QuotaExceeded") {
            ensure!(code == Some(1) && said.contains("raise the quota"), "{code:?} {said}");
            return Ok(());
        }
        ensure!(begun.elapsed() < patience(), "{said}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn answers_04_what_may_not_be_seen_is_said_and_ends_with_4() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("few-rights").await?;
    let (said, code) = drawbridge(cp, &["status", "-n", "no-such-namespace"]).await?;
    ensure!(code == Some(2) && said.contains("namespace no-such-namespace does not exist"), "{code:?} {said}");
    // Somebody with the cluster's own role `view` in one namespace sees our kinds there, and is told what else is missing.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}});
    ns.accepts(&account).await?;
    let reader = cp.service_account(ns.name(), "reader").await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": ns.name()}]});
    ns.accepts(&binding).await?;
    let who = format!("--as=system:serviceaccount:{}:reader", ns.name());
    let begun = Instant::now();
    for (verb, may) in [("list", "yes"), ("create", "no")] {
        loop {
            let asked = ["auth", "can-i", verb, "agentruntimes.agent.kagenti.dev", "-n", ns.name(), &who];
            let answer = cp.kubectl(cp.admin(), &asked, "").await?.stdout;
            if answer.trim() == may {
                break;
            }
            ensure!(begun.elapsed() < patience(), "{verb}: {answer}");
            sleep(Duration::from_millis(100)).await;
        }
    }
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(["status", "-n", ns.name(), "--kubeconfig"]).arg(reader.kubeconfig()).kill_on_drop(true);
    let output = command.output().await?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(4) && said.contains("note: "), "{:?} {said}", output.status.code());
    // What is seen is printed, and what is not is said; what a question is about and may not be read ends the same way.
    ns.accepts(&deployment("web", &json!({"kagenti.io/type": "agent"}))).await?;
    let asked = |args: &'static [&'static str]| {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        command.args(args).args(["-n", ns.name(), "--kubeconfig"]).arg(reader.kubeconfig()).kill_on_drop(true);
        Ok::<_, anyhow::Error>(command)
    };
    for (args, says, code) in [
        (&["explain", "deployment/web"][..], "Deployment", 4),
        (&["explain", "pod/absent"], "does not exist", 2),
        // It may be one of BeeAI's, which this person may not see.
        (&["build", "explain", "absent"], "cannot be read", 4),
    ] {
        let output = asked(args)?.output().await?;
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(
            output.status.code() == Some(code) && said.contains(says),
            "{args:?}: {:?} {said}",
            output.status.code()
        );
    }
    let stranger = cp.user("stranger", &[])?;
    for args in [&["explain", "deployment/web"][..], &["build", "explain", "web"], &["build", "logs", "web"]] {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        command.args(args).args(["-n", ns.name(), "--kubeconfig"]).arg(stranger.kubeconfig()).kill_on_drop(true);
        let output = command.output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(4) && said.contains("cannot be read"), "{args:?}: {output:?}");
    }
    for args in [&["explain", "deployment/web"][..], &["build", "explain", "web"], &["card", "list"]] {
        let (said, code) = drawbridge(cp, &[args, &["-n", "no-such-namespace"]].concat()).await?;
        ensure!(code == Some(2) && said.contains("no-such-namespace does not exist"), "{args:?}: {code:?} {said}");
    }
    Ok(())
}

/// Whether these warnings tell of a review that was held for as long as reviews are: what it waited for did not come to pass within that time, which is
/// the machine's doing, and nothing was tried.
async fn held_in_vain(cp: &ControlPlane, since: Mark, ns: &TestNamespace, warned: &[&Event]) -> Result<bool> {
    let tells =
        |event: &&Event, reason: Reason| event.message.as_deref().is_some_and(|text| text.contains(reason.code()));
    let of_account = warned.iter().any(|event| tells(event, Reason::ServiceAccountPending));
    let pending = [Reason::OwnerPending, Reason::ServiceAccountPending];
    let all_wait = warned.iter().all(|event| pending.iter().any(|reason| tells(event, *reason)));
    let held = if of_account { 3_000 } else { 500 };
    let tried = cp.audit().settled(since).await?.in_namespace(ns.name()).resource("pods").verb("create");
    for refused in tried.iter().filter(|request| request.code.is_some_and(|code| code >= 400)) {
        let (from, to): (Timestamp, Timestamp) = (refused.received.parse()?, refused.answered.parse()?);
        if to.as_millisecond() - from.as_millisecond() >= held {
            return Ok(all_wait);
        }
    }
    Ok(false)
}

/// A Job and its Pod are made within a millisecond; nobody is warned, and when it has ended nothing is found.
#[tokio::test]
async fn answers_03_a_new_job_gets_no_warning_and_an_ended_one_is_no_finding() -> Result<()> {
    let cp = control_plane().await?;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "import"},
        "spec": {"template": {
            "metadata": {"labels": {"kagenti.io/type": "agent"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "agent", "image": "example.com/agent:1"}]},
        }},
    });
    let begun = Instant::now();
    let ns = loop {
        let ns = cp.namespace("history").await?;
        let mark = cp.audit().mark()?;
        ns.accepts(&job).await?;
        let named = watcher::Config::default().fields("metadata.name=import");
        let ended = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded.is_some());
        wait_until(&ns.api::<Job>(), named, |all| all.values().any(ended)).await.context("the Job ends")?;
        let events = ns.api::<Event>().list(&Default::default()).await?.items;
        let warned: Vec<_> = events.iter().filter(|event| event.type_.as_deref() == Some("Warning")).collect();
        if warned.is_empty() {
            break ns;
        }
        ensure!(begun.elapsed() < patience() && held_in_vain(cp, mark, &ns, &warned).await?, "{warned:?}");
    };
    let (said, code) = drawbridge(cp, &["status", "-n", ns.name()]).await?;
    ensure!(code == Some(0) && !said.contains("import"), "{code:?} {said}");
    Ok(())
}

/// Whoever puts the label where nobody reads it hears of it as it is applied, with the command.
#[tokio::test]
async fn answers_07_a_label_in_the_wrong_place_is_said_when_it_is_applied() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("misplaced").await?;
    let workload = |kind: &str, labels: Value, of_template: Value| {
        let mut object = deployment("web", &of_template);
        object["kind"] = json!(kind);
        object["metadata"]["labels"] = labels;
        object
    };
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "labels": {"kagenti.io/type": "agent"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "agent", "image": "example.com/agent:1"}]}}},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "misplaced-label", "labels": {"kagenti.io/type": "agent"}}});
    let (label, misspelt) = (json!({"kagenti.io/type": "agent"}), json!({"kagenti/type": "agent"}));
    for (object, says) in [
        (job, "write kagenti.io/type: agent under spec.template.metadata.labels of its manifest"),
        (workload("ReplicaSet", label, json!({})), "patch replicaset web --type merge -p"),
        (
            workload("Deployment", json!({}), misspelt.clone()),
            "label kagenti/type=agent of its Pods is not one that is read",
        ),
        (workload("Deployment", misspelt, json!({})), "label kagenti/type=agent of the workload itself is not one"),
        (
            workload("Deployment", json!({}), json!({"kagenti.io/type": "Agent"})),
            "patch deployment web --type merge -p",
        ),
        (namespace, "kubectl label namespace misplaced-label kagenti.io/type-"),
    ] {
        let arguments = ["apply", "--dry-run=server", "-n", ns.name(), "-f", "-"];
        let arguments =
            if object["kind"] == "Namespace" { &["apply", "--dry-run=server", "-f", "-"][..] } else { &arguments };
        let ran = cp.kubectl(cp.admin(), arguments, &object.to_string()).await?;
        ensure!(ran.success && ran.stderr.contains("Warning: ") && ran.stderr.contains(says), "{says}: {ran:?}");
    }
    let plain = workload("Deployment", json!({"app": "web", "example.com/type": "agent"}), json!({}));
    let ran =
        cp.kubectl(cp.admin(), &["apply", "--dry-run=server", "-n", ns.name(), "-f", "-"], &plain.to_string()).await?;
    ensure!(ran.success && !ran.stderr.contains("Warning"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn answers_10_a_review_is_logged_by_what_its_pod_is_made_from_and_by_its_owner() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("logged").await?;
    let mut web = deployment("web", &json!({"kagenti.io/type": "agent"}));
    web["spec"]["replicas"] = json!(3);
    ns.accepts(&web).await?;
    let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    wait_until(&ns.api::<Pod>(), watcher::Config::default().labels("app=web"), |all| {
        all.values().filter(|pod| running(pod)).count() == 3
    })
    .await?;
    let log: String = installation.webhooks.iter().map(|process| process.log()).collect();
    let reviews = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_pods: Vec<Value> = reviews.filter(|line| line["message"] == "reviewed" && line["kind"] == "Pod").collect();
    let injected: Vec<&Value> = of_pods.iter().filter(|line| line["reason"] == "Injected").collect();
    ensure!(injected.len() == 1, "three Pods of one ReplicaSet are one line: {of_pods:#?}");
    for line in &of_pods {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        ensure!(text("name").starts_with("web-") && text("name") == text("generate_name"), "{line}");
        ensure!(text("owner").starts_with("ReplicaSet/web-") && text("level") == "INFO", "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn answers_06_a_config_map_that_cannot_be_read_is_told_to_everyone_it_would_reach() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("bad-yaml").await?;
    ns.accepts(&deployment("pointed", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather", "pointed", "agent")).await?;
    says(&ns, "weather", "ConfigResolved", "True/ConfigResolved").await?;
    let broken = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mine", "labels": {keys::LABEL_DEFAULTS: "true"}}, "data": {"config.yaml": "mode: [waypoint"}});
    ns.accepts(&broken).await?;
    says(&ns, "weather", "ConfigResolved", "False/NamespaceConfigUnreadable").await?;
    says(&ns, "weather", "Ready", "True/Configured").await?;
    // A workload that knows only its label is warned when it is applied.
    let labelled = deployment("late", &json!({keys::LABEL_TYPE: "agent"})).to_string();
    // The webhook reads it for itself, and only its answer tells that it has.
    let begun = Instant::now();
    loop {
        let dry_run = ["apply", "--dry-run=server", "-n", ns.name(), "-f", "-"];
        let tried = cp.kubectl(cp.admin(), &dry_run, &labelled).await?;
        if tried.stderr.contains("NamespaceConfigUnreadable") {
            break;
        }
        ensure!(begun.elapsed() < patience(), "{}{}", tried.stdout, tried.stderr);
        sleep(Duration::from_millis(100)).await;
    }
    let applied = cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], &labelled).await?;
    ensure!(applied.stderr.contains("NamespaceConfigUnreadable"), "{}{}", applied.stdout, applied.stderr);
    let (said, code) = drawbridge(cp, &["status", "-n", ns.name()]).await?;
    ensure!(
        code == Some(1) && said.contains("ConfigMap") && said.contains("/mine, key config.yaml"),
        "{code:?} {said}"
    );
    Ok(())
}

async fn missing(process: &Drawbridge, part: &str, wanted: f64) -> Result<()> {
    let begun = Instant::now();
    loop {
        let metrics = process.metrics().await?;
        let found = metrics.select("drawbridge_webhook_configurations_missing", &[("part", part)]).next();
        let found = found.map(|sample| sample.value);
        if found == Some(wanted) {
            return Ok(());
        }
        ensure!(begun.elapsed() < patience(), "{part}: {found:?}, not {wanted}:\n{}", process.log());
        sleep(Duration::from_millis(20)).await;
    }
}

/// The shipped file is for the shipped installation: over another one it would have webhooks and policies speak of a namespace that is not there.
async fn names_the_way_back_of_that_installation(cp: &ControlPlane) -> Result<()> {
    let says = async |operator: &str, words: &str, is_shipped: bool| -> Result<()> {
        for command in [&["status", "-A"][..], &["doctor"]] {
            let (said, code) = drawbridge(cp, &[command, &["--operator-namespace", operator]].concat()).await?;
            ensure!(said.contains(words) && code == Some(1), "{command:?}: {words:?} is not said: {code:?} {said}");
            let names = said.contains("kubectl apply -f manifests/webhooks/");
            ensure!(names == is_shipped, "{command:?} names the shipped file: {names}: {said}");
        }
        Ok(())
    };
    // Without its Deployments nobody knows where the installation is.
    says(keys::OPERATOR_NAMESPACE, "drawbridge render --namespace NAME", false).await?;
    let elsewhere = cp.namespace("elsewhere").await?;
    let objects = cp.objects().await?;
    for namespace in [elsewhere.name(), keys::OPERATOR_NAMESPACE] {
        let install = Install::new(FailureMode::Fail, namespace, "drawbridge.invalid/drawbridge:test");
        for object in render::parts(&install).into_iter().flat_map(|part| part.objects) {
            if object["kind"] == "Deployment" {
                objects.apply(&object.to_string()).await?;
            }
        }
    }
    says(elsewhere.name(), &format!("drawbridge render --namespace {}", elsewhere.name()), false).await?;
    says(keys::OPERATOR_NAMESPACE, "kubectl apply -f manifests/webhooks/fail.yaml", true).await
}

#[tokio::test]
async fn answers_05_who_serves_some_kinds_alone_is_told_to_render_these() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { kinds: Kinds::Kaos, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let processes = || installation.webhooks.iter().chain(&installation.controllers);
    for process in processes() {
        missing(process, "ValidatingWebhook", 0.0).await?;
    }
    let gone = cp.kubectl(cp.admin(), &["delete", "validatingwebhookconfiguration", "drawbridge"], "").await?;
    ensure!(gone.success, "{gone:?}");
    for process in processes() {
        missing(process, "ValidatingWebhook", 1.0).await?;
    }
    let events = Api::<Event>::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let told = |event: &Event| {
        let note = event.message.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some("WebhookMissing") && note.contains("drawbridge render --kinds=kaos")
    };
    wait_until(&events, watcher::Config::default(), |all| all.values().any(told)).await.context("an Event")?;
    for process in processes() {
        ensure!(!process.log().contains("manifests/webhooks/"), "{}", process.log());
    }
    Ok(())
}

#[tokio::test]
async fn answers_05_a_webhook_configuration_that_is_deleted_is_counted_logged_and_told_with_the_way_back() -> Result<()>
{
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let processes = || installation.webhooks.iter().chain(&installation.controllers);
    for process in processes() {
        missing(process, "MutatingWebhook", 0.0).await?;
        missing(process, "ValidatingWebhook", 0.0).await?;
    }
    let (said, _) = drawbridge(&cp, &["status", "-A"]).await?;
    ensure!(!said.contains("is gone"), "{said}");
    let get = ["get", "mutatingwebhookconfiguration", "drawbridge", "-o", "json"];
    let kept = cp.kubectl(cp.admin(), &get, "").await?.stdout;
    let gone = cp.kubectl(cp.admin(), &["delete", "mutatingwebhookconfiguration", "drawbridge"], "").await?;
    ensure!(gone.success, "{gone:?}");
    for process in processes() {
        missing(process, "MutatingWebhook", 1.0).await?;
    }
    let events = Api::<Event>::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let told = |event: &Event| event.reason.as_deref() == Some("WebhookMissing");
    wait_until(&events, watcher::Config::default(), |all| all.values().any(told)).await.context("an Event")?;
    // Told a moment after it is counted, and before the Event, by whoever told it.
    let told = |log: &str| {
        log.contains("MutatingWebhookConfiguration drawbridge is gone")
            && log.contains("kubectl apply -f manifests/webhooks/fail.yaml")
    };
    ensure!(processes().any(|process| told(&process.log())), "no process says in its log what is gone");
    let (said, code) = drawbridge(&cp, &["status", "-A"]).await?;
    ensure!(said.starts_with("MutatingWebhookConfiguration drawbridge is gone") && code == Some(1), "{code:?} {said}");
    let (said, code) = drawbridge(&cp, &["doctor"]).await?;
    let first = said.lines().find(|line| line.contains("finding")).unwrap_or_default();
    ensure!(first.contains("MutatingWebhookConfiguration drawbridge") && code == Some(1), "{code:?} {said}");
    names_the_way_back_of_that_installation(&cp).await?;
    let mut kept: Value = serde_json::from_str(&kept)?;
    for member in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        kept["metadata"].as_object_mut().context("metadata")?.remove(member);
    }
    let back = cp.kubectl(cp.admin(), &["create", "-f", "-"], &kept.to_string()).await?;
    ensure!(back.success, "{back:?}");
    for process in processes() {
        missing(process, "MutatingWebhook", 0.0).await?;
    }
    Ok(())
}
