//! Builds by content, on an installation whose platform file asks for them; and that nobody but its controllers can say what is known.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Installation, Installing, Objects, Options, TestNamespace, installation, wait_for};

use super::stage::{
    NAME, OPERATOR, active_run, begin, build, builds, define, digest, end, end_task, runs, status, succeeded, tekton,
};

const COMMIT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A build of that commit, or branch, by steps whose images are named by digest.
fn of(name: &str, revision: &str) -> Value {
    let mut object = build();
    object["metadata"]["name"] = json!(name);
    object["spec"]["source"]["sourceRevision"] = json!(revision);
    object["spec"]["pipeline"]["steps"] =
        json!([{"name": "clone", "configMap": "pinned-clone"}, {"name": "push", "configMap": "pinned-push"}]);
    object
}

async fn made(ns: &TestNamespace) -> Result<String> {
    let run = active_run(ns).await?;
    begin(ns, &run).await?;
    end_task(ns, &run, "clone", succeeded(json!([{"name": "commit", "type": "string", "value": COMMIT}]))).await?;
    let image = json!([{"name": "IMAGE_URL", "type": "string", "value": "registry.example.com/weather:v1"},
        {"name": "IMAGE_DIGEST", "type": "string", "value": digest()}]);
    end_task(ns, &run, "push", succeeded(image)).await?;
    let condition =
        json!({"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "Tasks Completed: 2"});
    end(ns, &run, condition, &["clone", "push"]).await?;
    Ok(run.name_any())
}

/// Steps that are content.
async fn pinned_steps(objects: &Objects) -> Result<()> {
    let image = format!("example.com/step@sha256:{}", "e".repeat(64));
    for (name, spec) in [
        (
            "pinned-clone",
            format!(
                "params: [{{name: revision}}]\nresults: [{{name: commit}}]\nsteps: [{{name: run, image: \"{image}\"}}]"
            ),
        ),
        (
            "pinned-push",
            format!(
                "results: [{{name: IMAGE_URL}}, {{name: IMAGE_DIGEST}}]\nsteps: [{{name: build, image: \"{image}\"}}]"
            ),
        ),
    ] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": OPERATOR, "labels": {"kagenti.operator.dev/tekton": "step"}},
            "data": {"task-spec.yaml": spec},
        });
        objects.apply(&map.to_string()).await?;
    }
    Ok(())
}

/// Who holds every right on AgentBuilds of the namespace plants nothing in what is believed, and may write the rest of the status.
async fn plants_nothing(cp: &ControlPlane, ns: &TestNamespace, record: &Value) -> Result<()> {
    let rights =
        json!({"apiGroups": ["agent.kagenti.dev"], "resources": ["agentbuilds", "agentbuilds/status"], "verbs": ["*"]});
    let planter = cp.person(ns, "planter", &[rights]).await?;
    let mut planted = record.clone();
    planted["digest"] = json!(format!("sha256:{}", "6".repeat(64)));
    for (member, value) in [
        ("provenance", planted.clone()),
        ("earlier", json!([planted])),
        ("inputs", planted),
        ("provenance", Value::Null),
    ] {
        let patch = json!({"status": {member: value}}).to_string();
        let args = [
            "patch",
            "agentbuilds.agent.kagenti.dev",
            "pinned",
            "-n",
            ns.name(),
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        let answer = cp.kubectl(&planter, &args, "").await?;
        ensure!(!answer.success && answer.stderr.contains("drawbridge-build-records"), "{member}: {}", answer.stderr);
    }
    let args = [
        "patch",
        "agentbuilds.agent.kagenti.dev",
        "pinned",
        "-n",
        ns.name(),
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"handledCancel":"x"}}"#,
    ];
    let answer = cp.kubectl(&planter, &args, "").await?;
    ensure!(answer.success, "{}", answer.stderr);

    // Who applies what he once read, status and all, changes nothing in it and is not held up, whatever the status says.
    let before = builds(ns).get("pinned").await?;
    let mut read = serde_json::to_value(&before)?;
    for member in ["resourceVersion", "managedFields"] {
        read["metadata"].as_object_mut().context("an object has metadata")?.remove(member);
    }
    for record in ["provenance", "inputs", "earlier"] {
        read["status"][record] = planted_elsewhere(record);
    }
    for verb in ["apply", "replace"] {
        read["metadata"]["labels"]["read-by"] = json!(verb);
        let answer = cp.kubectl(&planter, &[verb, "-n", ns.name(), "-f", "-"], &read.to_string()).await?;
        ensure!(answer.success, "{verb}: {}", answer.stderr);
        let after = builds(ns).get("pinned").await?;
        assert_eq!(after.labels().get("read-by").map(String::as_str), Some(verb));
        for record in ["provenance", "inputs", "earlier"] {
            assert_eq!(after.data["status"][record], before.data["status"][record], "{verb}");
        }
    }
    Ok(())
}

/// A member of the status as somebody else's object may have it.
fn planted_elsewhere(member: &str) -> Value {
    let record = json!({"digest": format!("sha256:{}", "7".repeat(64))});
    if member == "earlier" { json!([record]) } else { record }
}

#[tokio::test]
async fn an_image_that_is_known_needs_no_run_and_nobody_else_makes_one_known() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let objects = cp.objects().await?;
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let installing = Installing { platform: "builds:\n  byContent: true\n".to_owned(), ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    pinned_steps(&objects).await?;
    let ns = cp.namespace("by-content").await?;
    ns.accepts(&of(NAME, "main")).await?;
    let first = made(&ns).await?;
    status(&ns, |status| status["message"] == "Build complete, cleanup done").await?;

    // Another build, of the commit that the branch was: known, at its creation.
    ns.accepts(&of("pinned", COMMIT)).await?;
    let is_known = |object: &kube::api::DynamicObject| {
        let all = object.data["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["type"] == "BuildSucceeded" && one["reason"] == "ImageKnown")
    };
    let known = wait_for(&builds(&ns), "pinned", is_known).await?;
    let image = format!("registry.example.com/weather@{}", digest());
    assert_eq!(
        (&known.data["status"]["builtImage"], &known.data["status"]["phase"]),
        (&json!(image), &json!("Succeeded"))
    );
    ensure!(known.data["status"]["message"].to_string().contains(&first), "{}", known.data["status"]);
    let all = runs(&ns).list(&ListParams::default()).await?.items;
    assert_eq!(all.len(), 1, "no run was made");

    let record = known.data["status"]["provenance"].clone();
    plants_nothing(&cp, &ns, &record).await?;
    // A status that comes with a new object is dropped.
    let mut with_status = of("planted", &"b".repeat(40));
    with_status["status"] = json!({"provenance": record});
    ns.accepts(&with_status).await?;
    let stored = builds(&ns).get("planted").await?;
    ensure!(stored.data["status"]["provenance"].is_null(), "{}", stored.data["status"]);

    // Who asks gets a run.
    let wish = json!({"metadata": {"annotations": {keys::ANNOTATION_REBUILD: "now"}}});
    builds(&ns).delete("planted", &Default::default()).await?;
    webhook_tests::wait_gone(&builds(&ns), "planted").await?;
    builds(&ns).patch("pinned", &PatchParams::default(), &Patch::Merge(&wish)).await?;
    let again = active_run(&ns).await?;
    ensure!(again.name_any().starts_with("pinned-"), "{}", again.name_any());
    Ok(())
}
