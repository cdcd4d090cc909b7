//! AgentBuilds of BeeAI on a real control plane: from the sample to an Agent by digest, the login that is made of a token, and who gets a
//! Secret by none of their fields. Tekton is played: the digest is the test's, and no step runs here. Numbers are those of cases of BeeAI (docs/cases.md).

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::cli::render::{FailureMode, Install, compat};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod, Secret};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::patience::timeout;
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone,
};

use super::says;
use crate::agents::stage::kubectl;
use crate::builds::stage::{api, define, digest, tekton};

const SAMPLE: &str = include_str!("../../../../manifests/samples/beeai-agentbuild.yaml");
const DEPLOYED: &str = include_str!("../../../../manifests/samples/beeai-agentbuild-deployed.yaml");
const TOKEN: &str = "ghp_canary0123456789";

fn builds(ns: &TestNamespace, group: &str) -> Api<DynamicObject> {
    api(ns, &format!("{group}/v1"), "AgentBuild")
}

fn agents(ns: &TestNamespace, group: &str) -> Api<DynamicObject> {
    api(ns, &format!("{group}/v1"), "Agent")
}

fn status<'o>(object: &'o DynamicObject, key: &str) -> &'o str {
    object.data["status"][key].as_str().unwrap_or_default()
}

async fn token(ns: &TestNamespace, value: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "github-token-secret"}, "stringData": {"token": value},
    });
    let patch = PatchParams::apply("test").force();
    ns.api::<Secret>().patch("github-token-secret", &patch, &Patch::Apply(&secret)).await?;
    Ok(())
}

/// The run that the status names ends well and tells a digest.
async fn succeeds(ns: &TestNamespace, group: &str, name: &str) -> Result<Value> {
    let runs = api(ns, "tekton.dev/v1", "PipelineRun");
    let named = |build: &DynamicObject| !status(build, "pipelineRunName").is_empty();
    let build = wait_for(&builds(ns, group), name, named).await?;
    let run = wait_for(&runs, status(&build, "pipelineRunName"), |_| true).await?;
    let run_name = run.metadata.name.clone().context("a name")?;
    let image = run.data["spec"]["params"].as_array().into_iter().flatten().find(|one| one["name"] == "image");
    let image = image.map(|one| one["value"].clone()).unwrap_or_default();
    let mut children = Vec::new();
    for task in run.data["spec"]["pipelineSpec"]["tasks"].as_array().into_iter().flatten() {
        let task = task["name"].as_str().context("a task")?;
        let child = format!("{run_name}-{task}");
        let mut labels = run.metadata.labels.clone().unwrap_or_default();
        labels.insert("tekton.dev/pipelineRun".into(), run_name.clone());
        labels.insert("tekton.dev/pipelineTask".into(), task.to_owned());
        ns.accepts(&json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": child, "labels": labels, "ownerReferences": [{
                "apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": run_name, "uid": run.metadata.uid, "controller": true,
            }]},
        }))
        .await?;
        let results = match task {
            "push" => json!([{"name": "IMAGE_URL", "value": image}, {"name": "IMAGE_DIGEST", "value": digest()}]),
            "pull" => json!([{"name": "commit", "value": "0123abc4"}]),
            _ => json!([]),
        };
        let ended = json!({"status": {"results": results, "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]}});
        api(ns, "tekton.dev/v1", "TaskRun")
            .patch_status(&child, &PatchParams::default(), &Patch::Merge(&ended))
            .await?;
        children.push(json!({"kind": "TaskRun", "name": child, "pipelineTaskName": task}));
    }
    let ended = json!({"status": {
        "startTime": "2026-05-01T00:00:01Z", "completionTime": "2026-05-01T00:10:00Z", "childReferences": children,
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "Tasks Completed: 4"}],
    }});
    runs.patch_status(&run_name, &PatchParams::default(), &Patch::Merge(&ended)).await?;
    Ok(serde_json::to_value(run)?)
}

/// The login in the Secret of that build: host, and the pair behind it.
async fn login(ns: &TestNamespace, name: &str) -> Result<(String, String)> {
    let secret = ns.api::<Secret>().get(name).await?;
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
    let data = secret.data.unwrap_or_default();
    let config: Value = serde_json::from_slice(&data[".dockerconfigjson"].0)?;
    let accounts = config["auths"].as_object().context("auths")?;
    let (host, entry) = accounts.iter().next().context("an account")?;
    assert_eq!((accounts.len(), entry.as_object().map(serde_json::Map::len)), (1, Some(1)), "Z22: {host}");
    let pair = STANDARD.decode(entry["auth"].as_str().context("auth")?)?;
    Ok((host.clone(), String::from_utf8(pair)?))
}

/// Z13, Z14, Z18, Z19, Z20, Z22, Z23, Z25, Z31, Z32, Z37, Z41, Z46, Z48, in both groups; and the canary.
#[tokio::test]
async fn case_z31_the_samples_become_agents_by_digest_in_both_groups() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let objects = cp.objects().await?;
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let installation = Installation::start(&cp, &Installing::default()).await?;
    for object in compat::objects(&Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "")) {
        objects.apply(&object.to_string()).await?;
    }
    for group in [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT] {
        let ns = cp.namespace(&format!("builds-{}", group.matches('.').count())).await?;
        for text in [SAMPLE, DEPLOYED] {
            let text = text.replace("beeai.dev/v1", &format!("{group}/v1"));
            let applied = cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], &text).await?;
            ensure!(applied.success, "{}", applied.stderr);
        }
        let (first, second) = ("my-beeai-agent-build-v1", "research-agent");
        let waits = |build: &DynamicObject| says(build, "Ready") == "False/PrerequisitesMissing";
        let stored = wait_for(&builds(&ns, group), first, waits).await?;
        ensure!(status(&stored, "message").contains("github-token-secret"), "Z18: {}", status(&stored, "message"));
        token(&ns, TOKEN).await?;
        let run = succeeds(&ns, group, first).await?;
        let tasks: Vec<_> = run["spec"]["pipelineSpec"]["tasks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one["name"].clone())
            .collect();
        assert_eq!(tasks, ["pull", "check-subfolder", "build", "push"], "Z13, Z25");
        succeeds(&ns, group, second).await?;
        let completed = |build: &DynamicObject| status(build, "buildStatus") == "Completed";
        let stored = wait_for(&builds(&ns, group), first, completed).await?;
        assert_eq!(status(&stored, "builtImage"), format!("ghcr.io/beeai/agents/hello-world-agent@{}", digest()));
        let made = &stored.data["status"]["provenance"];
        assert_eq!((&made["commit"], &made["digest"]), (&json!("0123abc4"), &json!(digest())));
        assert_eq!(made["steps"][2]["dockerfile"], "Dockerfile", "{made:#}");
        let args = ["build", "provenance", first, "--group", group, "-o", "json"];
        let (code, told, err) = crate::builds::commands::run(&cp, &ns, &args).await?;
        let told: Value = serde_json::from_str(&told).with_context(|| err)?;
        assert_eq!((code, &told["facts"]["dockerfile"]["value"]), (Some(0), &json!("Dockerfile")), "{told:#}");
        assert_eq!(login(&ns, "my-beeai-agent-build-v1-docker").await?, ("ghcr.io".into(), format!("{first}:{TOKEN}")));

        let runs = |build: &DynamicObject| says(build, "Ready") == "True/AgentReady";
        let stored = wait_for(&builds(&ns, group), second, runs).await?;
        assert_eq!((status(&stored, "agentName"), status(&stored, "deploymentStatus")), (second, "Ready"));
        let agent = agents(&ns, group).get(second).await?;
        assert_eq!(
            (says(&agent, "Ready").as_str(), agent.metadata.owner_references),
            ("True/DeploymentReady", None),
            "Z32, Z46"
        );
        let pod = ns.api::<Deployment>().get(second).await?.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.containers[0].image, Some(format!("ghcr.io/acme/research-agent@{}", digest())), "by digest");
        let pulls = pod.image_pull_secrets.unwrap_or_default();
        assert_eq!(pulls[0].name, format!("{second}-docker"));

        // Z20: the token is in the Secret that was given and in the login, and nowhere else.
        let kinds = "agents.beeai.dev,agentbuilds.beeai.dev,agents.beeai.beeai.dev,agentbuilds.beeai.beeai.dev,pipelineruns,taskruns,\
                     deployments,pods,events,configmaps,persistentvolumeclaims";
        let all = cp.kubectl(cp.admin(), &["get", kinds, "-n", ns.name(), "-o", "json"], "").await?;
        ensure!(all.success, "{}", all.stderr);
        let all = all.stdout;
        let logs = installation
            .controllers
            .iter()
            .chain(&installation.webhooks)
            .map(|process| process.log())
            .collect::<String>();
        for hidden in [TOKEN.to_owned(), STANDARD.encode(TOKEN), STANDARD.encode(format!("{second}:{TOKEN}"))] {
            ensure!(!all.contains(&hidden) && !logs.contains(&hidden), "Z20: {hidden}");
        }

        nobody_else_says_what_runs(&cp, &ns, (group, second)).await?;
        what_is_changed_by_hand_is_taken_back(&cp, &ns, (group, second)).await?;

        // Z37: the build goes; the Agent and the Secret that it pulls with stay.
        kubectl(&cp, &ns, &["delete", &format!("agentbuilds.{group}/{second}"), &timeout()]).await?;
        wait_gone(&builds(&ns, group), second).await?;
        let kept = |secret: &Secret| {
            let owners = secret.metadata.owner_references.iter().flatten();
            owners.into_iter().all(|owner| owner.kind == "Agent")
        };
        wait_for(&ns.api::<Secret>(), &format!("{second}-docker"), kept).await?;
        assert_eq!(says(&agents(&ns, group).get(second).await?, "Ready"), "True/DeploymentReady");
        comes_again(&cp, &ns, (group, second)).await?;
    }
    one_name_in_both_groups(&cp).await?;
    a_login_outlives_its_token_and_its_build(&cp).await?;
    let volumes = Api::<PersistentVolume>::all(cp.client().await?).list(&ListParams::default()).await?;
    assert!(volumes.items.is_empty(), "Z41");
    Ok(())
}

/// Who holds every right on builds, status included, gives an Agent no image by it.
async fn nobody_else_says_what_runs(cp: &ControlPlane, ns: &TestNamespace, (group, name): (&str, &str)) -> Result<()> {
    let rights = json!({"apiGroups": [group], "resources": ["agentbuilds", "agentbuilds/status"], "verbs": ["*"]});
    let planter = cp.person(ns, "beeai-planter", &[rights]).await?;
    let resource = format!("agentbuilds.{group}");
    let patch = async |status: Value| {
        let patch = json!({"status": status}).to_string();
        let args = ["patch", &resource, name, "-n", ns.name(), "--subresource=status", "--type=merge", "-p", &patch];
        cp.kubectl(&planter, &args, "").await
    };
    for member in ["builtImage", "builtImageTag", "imageDigest"] {
        for value in [json!("evil.example/x:1"), Value::Null] {
            let answer = patch(json!({member: value})).await?;
            ensure!(
                !answer.success && answer.stderr.contains("drawbridge-build-records"),
                "{member}: {}",
                answer.stderr
            );
        }
    }
    let answer = patch(json!({"handledCancel": "x"})).await?;
    ensure!(answer.success, "{}", answer.stderr);
    let image = agents(ns, group).get(name).await?.data["spec"]["image"].clone();
    assert_eq!(image, format!("ghcr.io/acme/research-agent@{}", digest()));
    Ok(())
}

/// An Agent that lost the label of its maker, and with it its image, gets both back.
async fn what_is_changed_by_hand_is_taken_back(
    cp: &ControlPlane,
    ns: &TestNamespace,
    (group, name): (&str, &str),
) -> Result<()> {
    let image = format!("ghcr.io/acme/research-agent@{}", digest());
    let patch =
        json!({"metadata": {"labels": {keys::LABEL_APP_MANAGED_BY: "me"}}, "spec": {"image": "example.com/mine:v1"}})
            .to_string();
    kubectl(cp, ns, &["patch", &format!("agents.{group}"), name, "--type=merge", "-p", &patch]).await?;
    let restored = |agent: &DynamicObject| {
        let label = agent.metadata.labels.as_ref().and_then(|all| all.get(keys::LABEL_APP_MANAGED_BY));
        label.is_some_and(|label| label == keys::BEEAI_BUILD_CONTROLLER) && agent.data["spec"]["image"] == *image
    };
    wait_for(&agents(ns, group), name, restored).await?;
    let runs = |build: &DynamicObject| {
        says(build, "Deployed") == "True/AgentUpdated" && says(build, "Ready") == "True/AgentReady"
    };
    wait_for(&builds(ns, group), name, runs).await?;
    Ok(())
}

/// The same build again, as a tool makes it that replaces objects: it pushes with the login that was left to its Agent, and says what lets it
/// keep that Agent.
async fn comes_again(cp: &ControlPlane, ns: &TestNamespace, (group, name): (&str, &str)) -> Result<()> {
    let text = DEPLOYED.replace("beeai.dev/v1", &format!("{group}/v1"));
    let applied = cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], &text).await?;
    ensure!(applied.success, "{}", applied.stderr);
    succeeds(ns, group, name).await?;
    let left = |build: &DynamicObject| says(build, "Deployed") == "False/AgentExists";
    let build = wait_for(&builds(ns, group), name, left).await?;
    let uid = build.metadata.uid.clone().context("a uid")?;
    let owners = ns.api::<Secret>().get(&format!("{name}-docker")).await?.metadata.owner_references.unwrap_or_default();
    let owned = |kind: &str, is: Option<bool>| owners.iter().any(|owner| owner.kind == kind && owner.controller == is);
    ensure!(owners.len() == 2 && owned("AgentBuild", Some(true)) && owned("Agent", None), "{owners:?}");
    let command = format!("annotate agents.{group} {name} beeai.dev/created-by-uid={uid} --overwrite");
    let told = build.data["status"]["conditions"].to_string();
    ensure!(told.contains(&format!("kubectl -n {} {command}", ns.name())), "{told}");
    kubectl(cp, ns, &command.split(' ').collect::<Vec<_>>()).await?;
    let runs = |build: &DynamicObject| says(build, "Ready") == "True/AgentReady";
    wait_for(&builds(ns, group), name, runs).await?;
    Ok(())
}

/// The token goes while the build runs: the Agent owns the login all the same, and the build says that it is not brought up to date; then the build
/// goes, and the Agent pulls on.
async fn a_login_outlives_its_token_and_its_build(cp: &ControlPlane) -> Result<()> {
    let ns = cp.namespace("builds-without-token").await?;
    token(&ns, TOKEN).await?;
    let (group, name) = (keys::GROUP_BEEAI, "research-agent");
    ns.apply(DEPLOYED).await?;
    let begun = |build: &DynamicObject| says(build, "PipelineRunExists") == "True/PipelineRunFound";
    wait_for(&builds(&ns, group), name, begun).await?;
    kubectl(cp, &ns, &["delete", "secret", "github-token-secret"]).await?;
    succeeds(&ns, group, name).await?;
    let docker = format!("{name}-docker");
    let of_the_agent =
        |secret: &Secret| secret.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Agent");
    wait_for(&ns.api::<Secret>(), &docker, of_the_agent).await?;
    let stale = |build: &DynamicObject| says(build, "LoginCurrent") == "False/PrerequisitesMissing";
    let build = wait_for(&builds(&ns, group), name, stale).await?;
    ensure!(build.data["status"]["conditions"].to_string().contains("github-token-secret"), "{}", build.data["status"]);
    assert_eq!(login(&ns, &docker).await?, ("ghcr.io".into(), format!("octo:{TOKEN}")), "what it holds is as before");
    kubectl(cp, &ns, &["delete", &format!("agentbuilds.{group}/{name}"), &timeout()]).await?;
    wait_gone(&builds(&ns, group), name).await?;
    let left = |secret: &Secret| {
        let owners = secret.metadata.owner_references.as_deref().unwrap_or_default();
        !owners.is_empty() && owners.iter().all(|owner| owner.kind == "Agent")
    };
    wait_for(&ns.api::<Secret>(), &docker, left).await?;
    Ok(())
}

/// A build of a name that one of the other group has already: the second is told whose the login is, and gets no run; the first goes on.
async fn one_name_in_both_groups(cp: &ControlPlane) -> Result<()> {
    let ns = cp.namespace("builds-of-one-name").await?;
    token(&ns, TOKEN).await?;
    let (first, second) = (keys::GROUP_BEEAI_COMPAT, keys::GROUP_BEEAI);
    let name = "my-beeai-agent-build-v1";
    ns.apply(&SAMPLE.replace("beeai.dev/v1", &format!("{first}/v1"))).await?;
    succeeds(&ns, first, name).await?;
    ns.apply(SAMPLE).await?;
    let conflict = |build: &DynamicObject| says(build, "Ready") == "False/NameConflict";
    let told = wait_for(&builds(&ns, second), name, conflict).await?;
    ensure!(status(&told, "message").contains(name), "{}", status(&told, "message"));
    let runs = api(&ns, "tekton.dev/v1", "PipelineRun").list(&ListParams::default()).await?.items;
    assert_eq!(runs.len(), 1);
    let completed = |build: &DynamicObject| status(build, "buildStatus") == "Completed";
    wait_for(&builds(&ns, first), name, completed).await?;
    assert_eq!(login(&ns, &format!("{name}-docker")).await?.0, "ghcr.io");
    Ok(())
}

/// Who may write AgentBuilds and not read Secrets gets none by any field.
#[tokio::test]
async fn a_build_refers_to_a_secret_only_for_people_who_could_have_it() -> Result<()> {
    let cp = crate::agents::stage::shared().await?;
    let ns = cp.namespace("beeai-build-secrets").await?;
    let rights = json!({"apiGroups": ["beeai.dev"], "resources": ["agentbuilds"], "verbs": ["*"]});
    let tenant = cp.person(&ns, "beeai-builder", &[rights]).await?;
    let object = |name: &str, more: &Value| {
        let mut object = json!({
            "apiVersion": "beeai.dev/v1", "kind": "AgentBuild", "metadata": {"name": name},
            "spec": {"repoUrl": "github.com/a/b", "revision": "v1.0.0", "imageRegistry": "reg.example.com", "image": "w", "imageTag": "v1"},
        });
        json_patch::merge(&mut object, &json!({"spec": more}));
        object
    };
    let apply = async |object: &Value| {
        cp.kubectl(
            &tenant,
            &["apply", "--server-side", "--force-conflicts", "-n", ns.name(), "-f", "-"],
            &object.to_string(),
        )
        .await
    };
    let plain = apply(&object("plain", &json!({}))).await?;
    ensure!(plain.success, "{}", plain.stderr);
    let reference =
        |name: &str| json!([{"name": name, "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "token"}}}]);
    let literal = json!([{"name": "IMAGE_REPO_SECRET", "value": "theirs"}]);
    for (name, more) in [
        ("git", json!({"env": reference("SOURCE_REPO_SECRET")})),
        ("registry", json!({"env": reference("IMAGE_REPO_TOKEN")})),
        ("ignored", json!({"env": reference("ANYTHING")})),
        ("literal", json!({"env": literal})),
        ("agent", json!({"deployAfterBuild": true, "agent": {"env": reference("KEY")}})),
        ("agent-pulls", json!({"deployAfterBuild": true, "agent": {"env": literal}})),
        ("later", json!({"agent": {"env": reference("KEY")}})),
    ] {
        let attack = object(name, &more);
        let refused = apply(&attack).await?;
        ensure!(!refused.success && refused.stderr.contains("Secret theirs"), "{name}: {}", refused.stderr);
        ns.accepts(&attack).await?;
        // The reference stays, and what is built with it would have it.
        let mut moved = attack;
        moved["spec"]["repoUrl"] = json!("evil.example/a/b");
        let refused = apply(&moved).await?;
        ensure!(!refused.success && refused.stderr.contains("Secret theirs"), "{name}: {}", refused.stderr);
    }
    let literal = ns.rejects(&object("token", &json!({"env": [{"name": "GITHUB_TOKEN", "value": TOKEN}]}))).await?;
    ensure!(literal.message.contains("spec.env[0]") && !literal.message.contains("canary"), "Z16: {}", literal.message);
    Ok(())
}

/// The Deployment of a running Agent gets another owner, and its Pod does not notice.
#[tokio::test]
async fn a_running_agent_is_handed_over_without_a_restart() -> Result<()> {
    let cp = crate::agents::stage::shared().await?;
    let ns = cp.namespace("beeai-handed-over").await?;
    ns.accepts(&super::agent(keys::GROUP_BEEAI, "weather", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "weather", super::ready).await?;
    let pods = ListParams::default().labels("app=weather,controller=agent-operator");
    let uids = async || -> Result<Vec<_>> {
        let all = ns.api::<Pod>().list(&pods).await?.items;
        Ok(all.into_iter().map(|pod| pod.metadata.uid).collect())
    };
    let before = (uids().await?, ns.api::<Deployment>().get("weather").await?.metadata.generation);
    let program = webhook_tests::programs::workspace("drawbridge")?;
    let hand_over = async |more: &[&str]| {
        let mut command = tokio::process::Command::new(&program);
        command.args(["migrate", "beeai", "--hand-over", "-n", ns.name()]).args(more);
        command.env("KUBECONFIG", cp.admin().kubeconfig());
        let output = command.output().await?;
        anyhow::Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let (_, plan) = hand_over(&[]).await?;
    ensure!(plan.contains("planned") && plan.contains("Deployment weather"), "{plan}");
    agents(&ns, keys::GROUP_BEEAI).get("weather").await.context("a plan changes nothing")?;
    let (success, done) = hand_over(&["--yes"]).await?;
    ensure!(success && !done.contains("refused"), "{done}");
    wait_gone(&agents(&ns, keys::GROUP_BEEAI), "weather").await?;
    let kagenti = api(&ns, "agent.kagenti.dev/v1alpha1", "Agent");
    wait_for(&kagenti, "weather", |agent| says(agent, "Ready") == "True/DeploymentReady").await?;
    let after = (uids().await?, ns.api::<Deployment>().get("weather").await?.metadata.generation);
    assert_eq!(after, before, "neither a Pod nor the template is another one");
    let owners = ns.api::<Deployment>().get("weather").await?.metadata.owner_references.unwrap_or_default();
    assert_eq!((owners.len(), owners[0].api_version.as_str()), (1, "agent.kagenti.dev/v1alpha1"));
    // Once the Agent changes, it rolls, under the selector that it has.
    let patch = json!({"spec": {"imageSource": {"image": "example.com/weather:v2"}}});
    kagenti.patch("weather", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let rolled = |deployment: &Deployment| {
        let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        pod.is_some_and(|pod| pod.containers[0].image.as_deref() == Some("example.com/weather:v2"))
    };
    let deployment = wait_for(&ns.api::<Deployment>(), "weather", rolled).await?;
    let selector = deployment.spec.unwrap().selector.match_labels.unwrap_or_default();
    assert_eq!(selector.get("controller").map(String::as_str), Some("agent-operator"));
    Ok(())
}
