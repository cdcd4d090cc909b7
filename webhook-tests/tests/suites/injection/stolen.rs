//! What a stolen token of ours is worth: the controllers' account tries what its rights allow, and the API server's own policies refuse
//! it; the webhook's account has no right to write at all. Everything is tried as a dry run, which policies judge like any request.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::domain::keys;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::patience;
use webhook_tests::{Objects, TestNamespace, sandbox};

use super::control_plane;

const OWN: &str = keys::OPERATOR_NAMESPACE;
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// One request: what it is, how, where, with what.
struct Attempt {
    what: &'static str,
    method: Method,
    path: String,
    content: &'static str,
    body: Value,
}

fn attempt(what: &'static str, method: Method, path: impl Into<String>, body: Value) -> Attempt {
    let content = if method == Method::PATCH { MERGE } else { "application/json" };
    Attempt { what, method, path: path.into(), content, body }
}

/// The answer to a dry run: `None` when it was taken, else the words of the refusal.
async fn tried(client: &Client, attempt: &Attempt) -> Result<Option<String>> {
    let query = if attempt.path.contains('?') { '&' } else { '?' };
    let request = Request::builder()
        .method(attempt.method.clone())
        .uri(format!("{}{query}dryRun=All", attempt.path))
        .header("content-type", attempt.content)
        .body(attempt.body.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
        Err(error) => Err(error).context(attempt.what),
    }
}

/// Waits until a policy of ours refuses it: the API server hears of a policy a moment after it was stored.
async fn is_refused(client: &Client, attempt: &Attempt, policy: &str) -> Result<String> {
    let begun = Instant::now();
    loop {
        let answer = tried(client, attempt).await?;
        match answer {
            Some(message) if message.contains(policy) => return Ok(message),
            answer if begun.elapsed() > patience() => {
                bail!("{} was to be refused by {policy}: {answer:?}", attempt.what)
            }
            _ => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn stolen(role: &str) -> Result<Client> {
    control_plane().await?.service_account(OWN, &format!("drawbridge-{role}")).await?.client().await
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "agent", "image": image}]}})
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template("example.com/team:1")}})
}

fn owned_by_an_agent(mut object: Value, kind: &str, uid: &str) -> Value {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"] =
        json!({"app.kubernetes.io/managed-by": "drawbridge", "agent.kagenti.dev/agentbuild": name});
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": kind, "name": name,
        "uid": uid, "controller": true}]);
    object
}

fn agent(name: &str) -> Value {
    json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": name}, "spec": {
        "replicas": 0, "imageSource": {"image": "ghcr.io/acme/weather:v1"},
        "podTemplateSpec": {"spec": {"containers": [{"name": "agent", "image": "set by operator"}]}}}})
}

fn apps(namespace: &str, rest: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/{rest}")
}

fn core(namespace: &str, rest: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{rest}")
}

/// A workload of each kind that enrolment writes to, and where it is.
fn workloads(namespace: &str) -> BTreeMap<&'static str, (Value, String)> {
    let meta = |name: &str| json!({"name": name, "labels": {"app": "x"}});
    let selector = json!({"matchLabels": {"app": "x"}});
    let job = json!({"restartPolicy": "Never", "containers": [{"name": "agent", "image": "example.com/team:1"}]});
    let pod = json!({"metadata": {"labels": {"app": "x"}}, "spec": job});
    let plain = template("example.com/team:1");
    let apps = |plural: &str, name: &str| apps(namespace, &format!("{plural}/{name}"));
    let batch = |plural: &str, name: &str| format!("/apis/batch/v1/namespaces/{namespace}/{plural}/{name}");
    BTreeMap::from([
        ("Deployment", (deployment(namespace, "d"), apps("deployments", "d"))),
        (
            "StatefulSet",
            (
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("s"),
                "spec": {"replicas": 0, "serviceName": "s", "selector": selector, "template": plain}}),
                apps("statefulsets", "s"),
            ),
        ),
        (
            "DaemonSet",
            (
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("a"),
                "spec": {"selector": selector, "template": {"metadata": plain["metadata"], "spec":
                    {"nodeSelector": {"none": "such"}, "containers": plain["spec"]["containers"]}}}}),
                apps("daemonsets", "a"),
            ),
        ),
        (
            "CronJob",
            (
                json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("c"),
                "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": pod}}}}),
                batch("cronjobs", "c"),
            ),
        ),
        (
            "Job",
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("j"),
                "spec": {"suspend": true, "template": pod}}),
                batch("jobs", "j"),
            ),
        ),
        (
            "Sandbox",
            (
                json!({"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": meta("b"),
                "spec": {"replicas": 1, "podTemplate": plain}}),
                format!("/apis/agents.x-k8s.io/v1alpha1/namespaces/{namespace}/sandboxes/b"),
            ),
        ),
    ])
}

/// A namespace with one workload of each kind.
async fn team() -> Result<TestNamespace> {
    let ns = control_plane().await?.namespace("team").await?;
    ns.apply(&sandbox::definition().to_string()).await?;
    let begun = Instant::now();
    for (object, _) in workloads(ns.name()).values() {
        // A kind is served a moment after its definition was stored.
        while let Err(error) = ns.apply(&object.to_string()).await {
            ensure!(begun.elapsed() < patience(), "{error:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(ns)
}

/// A merge patch that writes `value` at the template of a kind.
fn at_template(kind: &str, value: Value) -> Value {
    match kind {
        "CronJob" => json!({"spec": {"jobTemplate": {"spec": {"template": value}}}}),
        "Sandbox" => json!({"spec": {"podTemplate": value}}),
        _ => json!({"spec": {"template": value}}),
    }
}

/// The uid of no object.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// What says that it is made for something that there is not, in words that choose which policy is asked.
fn of_nothing(namespace: &str) -> [(&'static str, Attempt); 2] {
    let mut of_no_kind = owned_by_an_agent(deployment(namespace, "x"), "Agent", NOBODY);
    of_no_kind["metadata"]["labels"][keys::LABEL_KAOS_KIND] = json!("none");
    let kept = json!({"apiVersion": "beeai.dev/v1", "kind": "Agent", "spec": {"image": "example.com/team:1"}, "metadata": {"name": "kept",
        "labels": {keys::LABEL_APP_MANAGED_BY: keys::BEEAI_BUILD_CONTROLLER}, "annotations": {keys::ANNOTATION_CREATED_BY_UID: NOBODY}}});
    let agents = format!("/apis/beeai.dev/v1/namespaces/{namespace}/agents");
    [
        (
            "own-agents-new",
            attempt(
                "a Deployment of a kind that there is not",
                Method::POST,
                apps(namespace, "deployments"),
                of_no_kind,
            ),
        ),
        ("own-beeai-kept-new", attempt("an Agent of a build that does not exist", Method::POST, agents, kept)),
    ]
}

#[tokio::test]
async fn mend_14_nothing_is_written_where_the_operator_has_nothing_to_write() -> Result<()> {
    let ns = control_plane().await?.namespace("elsewhere").await?;
    let thief = stolen("controllers").await?;
    let nobody = NOBODY;
    let config = |namespace: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "drawbridge"}}, "data": {"a": "b"}})
    };
    let account = |annotations: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine", "annotations": annotations}});
    let mut hidden = owned_by_an_agent(account(json!({"eks.amazonaws.com/role-arn": "arn:admin"})), "Agent", nobody);
    hidden["metadata"]["labels"]["kagenti.io/managed-by"] = json!("webhook");
    let secret = |name: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "default"}}})
    };
    let token = "kubernetes.io/service-account-token";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}});
    let run = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}}});
    let post = |what, path: String, body| attempt(what, Method::POST, path, body);
    let attempts = [
        (
            "drawbridge-own-",
            post("a Deployment in kube-system", apps("kube-system", "deployments"), deployment("kube-system", "x")),
        ),
        (
            "drawbridge-own-",
            post(
                "a ConfigMap in kube-system",
                core("kube-system", "configmaps"),
                config("kube-system", "envoy-config"),
            ),
        ),
        ("own-workloads", post("a Deployment of nobody", apps(ns.name(), "deployments"), deployment(ns.name(), "x"))),
        (
            "own-agents-new",
            post(
                "a Deployment of an Agent that does not exist",
                apps(ns.name(), "deployments"),
                owned_by_an_agent(deployment(ns.name(), "x"), "Agent", nobody),
            ),
        ),
        (
            "own-agents-new",
            post(
                "the same in the operator's namespace, whose accounts it would run under",
                apps(OWN, "deployments"),
                owned_by_an_agent(deployment(OWN, "x"), "Agent", nobody),
            ),
        ),
        ("own-objects", post("a ConfigMap of another name", core(ns.name(), "configmaps"), config(ns.name(), "other"))),
        ("own-objects", post("a ConfigMap of the operator's", core(OWN, "configmaps"), config(OWN, "envoy-config"))),
        ("own-objects", post("an account without mark", core(ns.name(), "serviceaccounts"), account(json!({})))),
        ("own-objects", post("an account with a cloud role", core(ns.name(), "serviceaccounts"), hidden)),
        ("own-objects", post("a token Secret", core(OWN, "secrets"), secret("mine", token))),
        (
            "own-objects",
            post("a token Secret under our name", core(OWN, "secrets"), secret(keys::SECRET_AUTHORITY, token)),
        ),
        ("own-objects", post("any Secret", core(OWN, "secrets"), secret("mine", "Opaque"))),
        ("own-objects", post("a Lease", format!("/apis/coordination.k8s.io/v1/namespaces/{OWN}/leases"), lease)),
        ("own-objects", post("a claim of nobody", core(ns.name(), "persistentvolumeclaims"), run)),
        ("own-objects", post("a Service of nobody", core(ns.name(), "services"), service)),
    ];
    let admin = control_plane().await?.client().await?;
    for (policy, attempt) in attempts.into_iter().chain(of_nothing(ns.name())) {
        is_refused(&thief, &attempt, policy).await?;
        // A parameter that is missing is answered before anybody is asked who he is: whoever copies our labels is told so.
        if !policy.ends_with("-new") && !attempt.what.contains("under our name") {
            let answer = tried(&admin, &attempt).await?;
            ensure!(answer.is_none(), "{}: people are asked, too: {answer:?}", attempt.what);
        }
    }
    Ok(())
}

/// A ServiceAccount that parametrises a policy is made anew once it was deleted: with what that policy goes by, and with nothing else.
#[tokio::test]
async fn an_account_that_parametrises_policies_is_made_with_what_those_go_by_alone() -> Result<()> {
    let ns = control_plane().await?.namespace("parameters").await?;
    let thief = stolen("controllers").await?;
    let account = |name: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false, "metadata": {"name": name,
            "labels": {"app.kubernetes.io/managed-by": "drawbridge"}, "annotations": annotations}})
    };
    let post = |what: &'static str, namespace: &str, body: Value| {
        attempt(what, Method::POST, core(namespace, "serviceaccounts"), body)
    };
    let listed = json!({keys::ANNOTATION_ARMED: "u,v", keys::ANNOTATION_ARMED_ALL: ""});
    let gated = json!({keys::ANNOTATION_GATED_TYPES: "agent"});
    let with_a_role = json!({keys::ANNOTATION_ARMED: "u,v", "eks.amazonaws.com/role-arn": "arn:admin"});
    let nobody = "00000000-0000-0000-0000-000000000000";
    let mut of_a_workload = owned_by_an_agent(account("mine", listed.clone()), "Agent", nobody);
    of_a_workload["metadata"]["labels"]["kagenti.io/managed-by"] = json!("webhook");
    let owned = owned_by_an_agent(account(keys::ARMED, listed.clone()), "Agent", nobody);
    for one in [
        post("a list under another name", OWN, account("drawbridge-other", listed.clone())),
        post("a list in another namespace", ns.name(), account(keys::ARMED, listed.clone())),
        post("a list with a cloud role", OWN, account(keys::ARMED, with_a_role)),
        post("a list that an Agent owns", OWN, owned),
        post("a workload's account with a list", ns.name(), of_a_workload),
    ] {
        is_refused(&thief, &one, "own-objects").await?;
    }
    for (name, annotations) in [(keys::ARMED, listed), (keys::GATE, gated)] {
        let answer = tried(&thief, &post("what the leader writes", OWN, account(name, annotations))).await?;
        // The API server asks its policies before it looks whether the account is there.
        ensure!(answer.as_ref().is_none_or(|words| words.contains("already exists")), "{name}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn mend_14_of_a_foreign_workload_only_our_metadata_is_written() -> Result<()> {
    let ns = team().await?;
    let (thief, mut done) = (stolen("controllers").await?, 0);
    for (kind, (object, path)) in workloads(ns.name()) {
        let patch = |what, body| attempt(what, Method::PATCH, path.clone(), body);
        let containers = json!([{"name": "agent", "image": "example.com/evil:1"}]);
        let mut attempts = vec![
            patch("another label", json!({"metadata": {"labels": {"app": "y"}}})),
            patch("a label that opts out", json!({"metadata": {"labels": {keys::LABEL_INJECT: "disabled"}}})),
            patch("another annotation", json!({"metadata": {"annotations": {"example.com/a": "b"}}})),
            patch("a finalizer", json!({"metadata": {"finalizers": ["example.com/held"]}})),
            patch(
                "an owner",
                json!({"metadata": {"ownerReferences": [
                {"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": object["metadata"]["name"], "uid": "u",
                    "controller": true}]}}),
            ),
        ];
        if kind != "Job" {
            // The API server itself keeps a Job's template.
            attempts.push(patch("another image", at_template(kind, json!({"spec": {"containers": containers}}))));
            attempts.push(patch(
                "another label of the template",
                at_template(kind, json!({"metadata": {"labels": {"mine": "y"}}})),
            ));
            attempts.push(patch(
                "an annotation of the template",
                at_template(kind, json!({"metadata": {"annotations": {"example.com/a": "b"}}})),
            ));
            attempts.push(patch(
                "another Secret for its sidecars",
                at_template(kind, json!({"metadata": {"annotations": {keys::ANNOTATION_CREDENTIALS: "admin"}}})),
            ));
            attempts.push(patch(
                "the annotation that rolls what KAOS runs",
                at_template(kind, json!({"metadata": {"annotations": {keys::ANNOTATION_KAOS_REFERENCES: "a.b"}}})),
            ));
        }
        match kind {
            "Deployment" | "StatefulSet" | "Sandbox" => {
                attempts.push(patch("other replicas", json!({"spec": {"replicas": 7}})))
            }
            "DaemonSet" => attempts.push(patch("other pacing", json!({"spec": {"minReadySeconds": 7}}))),
            "CronJob" => {
                attempts.push(patch("another time", json!({"spec": {"schedule": "* * * * *"}})));
                let labelled = json!({"spec": {"jobTemplate": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}}});
                attempts.push(patch("labels of its Jobs", labelled));
                attempts
                    .push(patch("tries of its Jobs", json!({"spec": {"jobTemplate": {"spec": {"backoffLimit": 9}}}})));
            }
            _ => attempts.push(patch("a Job that was not suspended by us", json!({"spec": {"suspend": false}}))),
        }
        for attempt in &attempts {
            is_refused(&thief, attempt, "own-workloads").await.with_context(|| kind.to_owned())?;
            done += 1;
        }
        let delete = attempt("a deletion", Method::DELETE, path.clone(), json!({}));
        let answer = tried(&thief, &delete).await?.context("deleted")?;
        ensure!(answer.contains("own-workloads") || answer.contains("cannot delete"), "{kind}: {answer}");
    }
    ensure!(done > 40, "{done}");
    Ok(())
}

/// What enrolment, waiting and the gate write passes: so the policies are no lock without a key.
#[tokio::test]
async fn mend_14_what_we_write_on_workloads_passes() -> Result<()> {
    let ns = team().await?;
    let thief = stolen("controllers").await?;
    for (kind, (object, path)) in workloads(ns.name()) {
        let mut body = json!({"apiVersion": object["apiVersion"], "kind": kind, "metadata": {"name": object["metadata"]["name"],
            "labels": {keys::LABEL_TYPE: "agent", keys::LABEL_MANAGED_BY: "drawbridge"},
            "annotations": {keys::ANNOTATION_ROLLED_FOR: "h"}}});
        if kind != "Job" {
            let template = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent"},
                "annotations": {keys::ANNOTATION_CONFIG_HASH: "h"}}});
            body["spec"] = at_template(kind, template)["spec"].clone();
        }
        let applied = Attempt {
            what: "an enrolment",
            method: Method::PATCH,
            path: format!("{path}?fieldManager=drawbridge/enrolment"),
            content: APPLY,
            body,
        };
        let mut allowed = vec![
            applied,
            attempt(
                "a note",
                Method::PATCH,
                path.clone(),
                json!({"metadata": {"annotations": {keys::ANNOTATION_RETRY: "u"}}}),
            ),
        ];
        match kind {
            "Job" => {
                let noted =
                    json!({"metadata": {"annotations": {keys::ANNOTATION_SUSPENDED: "u"}}, "spec": {"suspend": true}});
                allowed.push(attempt("a suspension", Method::PATCH, path.clone(), noted));
            }
            "Sandbox" => {
                let noted = json!({"metadata": {"annotations": {keys::ANNOTATION_RESTART_PENDING: "true"}}, "spec": {"replicas": 0}});
                allowed.push(attempt("a restart", Method::PATCH, path.clone(), noted));
            }
            _ => {}
        }
        for attempt in &allowed {
            let answer = tried(&thief, attempt).await?;
            ensure!(answer.is_none(), "{kind}, {}: {answer:?}", attempt.what);
        }
    }
    Ok(())
}

#[tokio::test]
async fn mend_14_a_webhook_configuration_is_ours_to_write_but_for_its_authority() -> Result<()> {
    let (thief, admin) = (stolen("controllers").await?, control_plane().await?.client().await?);
    let root = "/apis/admissionregistration.k8s.io/v1";
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("{root}/{plural}/{}", keys::WEBHOOK_CONFIGURATION);
        let stored: Value = admin.request(Request::get(&path).body(Vec::new())?).await?;
        let webhooks = &stored["webhooks"];
        let with = |change: &dyn Fn(&mut Value)| {
            let mut changed = webhooks.clone();
            change(&mut changed);
            json!({"webhooks": changed})
        };
        let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
        let mut another = webhooks[0].clone();
        another["name"] = json!("other.example.com");
        another["rules"] = everything.clone();
        let attempts = [
            ("a webhook for everything", with(&|all| all.as_array_mut().unwrap().push(another.clone()))),
            ("a wider webhook", with(&|all| all[0]["rules"] = everything.clone())),
            ("no condition", with(&|all| drop(all[0].as_object_mut().unwrap().remove("matchConditions")))),
            ("somebody else's service", with(&|all| all[0]["clientConfig"]["service"]["namespace"] = json!("default"))),
            (
                "another policy",
                with(&|all| {
                    all[0]["failurePolicy"] = json!(if all[0]["failurePolicy"] == "Fail" { "Ignore" } else { "Fail" })
                }),
            ),
            ("a label", json!({"metadata": {"labels": {"a": "b"}}})),
            ("an annotation", json!({"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}}})),
        ];
        for (what, body) in attempts {
            is_refused(&thief, &attempt(what, Method::PATCH, path.clone(), body), "own-webhooks").await?;
        }
        let authority = with(&|all| all[0]["clientConfig"]["caBundle"] = json!("LS0tLS1CRUdJTg=="));
        let authority = attempt("an authority", Method::PATCH, path, authority);
        // Whether that is one, the API server judges after us, or not at all.
        let answer = tried(&thief, &authority).await?.unwrap_or_default();
        ensure!(!answer.contains("drawbridge-own"), "{answer}");
    }
    Ok(())
}

/// What is made for an Agent is as the Agent says; of the Agent itself nothing is written.
#[tokio::test]
async fn mend_14_an_agent_gets_what_it_says_and_keeps_its_spec() -> Result<()> {
    let ns = control_plane().await?.namespace("agents").await?;
    let thief = stolen("controllers").await?;
    let stored = ns.accepts(&agent("weather")).await?;
    let uid = stored.metadata.uid.clone().context("no uid")?;
    webhook_tests::wait_for(&ns.api::<k8s_openapi::api::apps::v1::Deployment>(), "weather", |_| true).await?;
    webhook_tests::wait_for(&ns.api::<k8s_openapi::api::core::v1::Service>(), "weather", |_| true).await?;
    let path = apps(ns.name(), "deployments/weather");
    let own = |members: Value| at_template("Deployment", json!({"spec": members}));
    let mut unmarked = owned_by_an_agent(deployment(ns.name(), "weather"), "Agent", &uid);
    unmarked["metadata"]["labels"] = json!({});
    let mut renamed = owned_by_an_agent(deployment(ns.name(), "other"), "Agent", &uid);
    renamed["spec"]["template"]["spec"]["serviceAccountName"] = json!("weather");
    renamed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("ghcr.io/acme/weather:v1");
    let kinds = format!("/apis/agent.kagenti.dev/v1alpha1/namespaces/{}", ns.name());
    let attempts = [
        (
            "own-agents'",
            attempt(
                "another image",
                Method::PATCH,
                &*path,
                own(json!({"containers": [{"name": "agent", "image": "a/evil:1"}]})),
            ),
        ),
        (
            "own-agents'",
            attempt("another account", Method::PATCH, &*path, own(json!({"serviceAccountName": "default"}))),
        ),
        ("own-agents'", attempt("another name", Method::POST, apps(ns.name(), "deployments"), renamed)),
        ("own-workloads", attempt("no mark", Method::POST, apps(ns.name(), "deployments"), unmarked)),
        ("own-workloads", attempt("no owner", Method::PATCH, &*path, json!({"metadata": {"ownerReferences": null}}))),
        (
            "own-kinds",
            attempt(
                "an Agent's image",
                Method::PATCH,
                format!("{kinds}/agents/weather"),
                json!({"spec": {"imageSource": {"image": "a/evil:1"}}}),
            ),
        ),
        (
            "own-kinds",
            attempt(
                "an Agent's labels",
                Method::PATCH,
                format!("{kinds}/agents/weather"),
                json!({"metadata": {"labels": {"a": "b"}}}),
            ),
        ),
        (
            "own-kinds",
            attempt(
                "somebody's finalizer",
                Method::PATCH,
                format!("{kinds}/agents/weather"),
                json!({"metadata": {"finalizers": ["example.com/held"]}}),
            ),
        ),
    ];
    for (policy, attempt) in &attempts {
        is_refused(&thief, attempt, policy).await?;
    }
    for (what, body) in [
        ("an address for an Agent's Service", json!({"spec": {"externalIPs": ["192.0.2.1"]}})),
        ("a way out for an Agent's Service", json!({"spec": {"type": "NodePort"}})),
    ] {
        let path = core(ns.name(), "services/weather");
        is_refused(&thief, &attempt(what, Method::PATCH, path, body), "own-objects").await?;
    }
    let builds = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild", "metadata": {"name": "weather"}, "spec": {
        "source": {"sourceRepository": "github.com/kagenti/agent-examples.git", "sourceSubfolder": "a2a/weather_service"},
        "buildOutput": {"imageRegistry": "registry.example.com", "image": "weather", "imageTag": "v0.0.1"}}});
    ns.accepts(&builds).await?;
    for (what, body) in [
        ("a build's repository", json!({"spec": {"source": {"sourceRepository": "github.com/evil/evil.git"}}})),
        (
            "a build's steps",
            json!({"spec": {"pipeline": {"steps": [{"name": "x", "configMap": "github-clone-step"}]}}}),
        ),
    ] {
        let path = format!("{kinds}/agentbuilds/weather");
        is_refused(&thief, &attempt(what, Method::PATCH, path, body), "own-kinds").await?;
    }
    Ok(())
}

/// A Pod that runs and a claim that is used are nobody's to delete; and what no right is given for stays so.
#[tokio::test]
async fn mend_14_what_others_run_is_not_deleted_and_rights_end_where_they_end() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("others").await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs"},
        "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]}}))
        .await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
        .await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": {"ports": [{"port": 80}]}}))
        .await?;
    let (controllers, webhook) = (stolen("controllers").await?, stolen("webhook").await?);
    let post = |what, path: String, body| attempt(what, Method::POST, path, body);
    for one in [
        attempt("a Pod", Method::DELETE, core(ns.name(), "pods/runs"), json!({})),
        attempt("a claim", Method::DELETE, core(ns.name(), "persistentvolumeclaims/data"), json!({})),
        attempt("a Service", Method::DELETE, core(ns.name(), "services/front"), json!({})),
        attempt(
            "its Pods",
            Method::PATCH,
            core(ns.name(), "services/front"),
            json!({"spec": {"selector": {"app": "x"}}}),
        ),
    ] {
        is_refused(&controllers, &one, "own-objects").await?;
    }
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mine"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/drawbridge-own-reach";
    let authority = core(OWN, &format!("secrets/{}", keys::SECRET_AUTHORITY));
    for (client, one) in [
        (&controllers, post("a ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(), role)),
        (&controllers, post("a token", core(OWN, "serviceaccounts/default/token"), token)),
        (&controllers, post("a shell", core(ns.name(), "pods/runs/exec?command=sh&stdout=true"), json!({}))),
        (&controllers, attempt("a policy", Method::DELETE, policies, json!({}))),
        (&controllers, attempt("a policy", Method::PATCH, policies, json!({"spec": {"failurePolicy": "Ignore"}}))),
        (
            &webhook,
            attempt("the authority, by the webhook", Method::PATCH, authority.as_str(), json!({"data": {"a": "Yg=="}})),
        ),
        (&webhook, attempt("the authority, by the webhook", Method::DELETE, authority.as_str(), json!({}))),
    ] {
        let answer = tried(client, &one).await?;
        ensure!(answer.as_ref().is_some_and(|words| words.contains(" cannot ")), "{}: {answer:?}", one.what);
    }
    Ok(())
}

/// ConfigMaps and accounts that are not ours stay as they are, whatever their name.
#[tokio::test]
async fn mend_14_what_has_our_name_and_not_our_mark_is_left() -> Result<()> {
    let ns = control_plane().await?.namespace("marks").await?;
    ns.accepts(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "envoy-config"}, "data": {"a": "b"}}),
    )
    .await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine"}})).await?;
    let thief = stolen("controllers").await?;
    for one in [
        attempt(
            "a user's ConfigMap",
            Method::PATCH,
            core(ns.name(), "configmaps/envoy-config"),
            json!({"data": {"a": "evil"}}),
        ),
        attempt(
            "a mark on a user's ConfigMap",
            Method::PATCH,
            core(ns.name(), "configmaps/envoy-config"),
            json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "drawbridge"}}}),
        ),
        attempt(
            "a user's account",
            Method::PATCH,
            core(ns.name(), "serviceaccounts/mine"),
            json!({"secrets": [{"name": "x"}]}),
        ),
        attempt(
            "the operator's settings",
            Method::PATCH,
            core(OWN, &format!("configmaps/{}", keys::CONFIG_MAP_PLATFORM)),
            json!({"data": {"config.yaml": "{}"}}),
        ),
    ] {
        is_refused(&thief, &one, "own-objects").await?;
    }
    let settings = Objects::new(control_plane().await?.client().await?, OWN);
    settings.get("v1", "ConfigMap", keys::CONFIG_MAP_PLATFORM).await.map(drop)
}
