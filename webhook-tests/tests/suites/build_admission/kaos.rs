//! KAOS's kinds at the door of a real API server: what the schema takes of both spellings, what is refused at once, and whose word code and
//! Secrets need.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::{Objects, TestNamespace};

use super::people::{self, rule};
use super::team;

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn agent(more: Value) -> Value {
    let mut object = object("Agent", "a", json!({"modelAPI": "m", "model": "x"}));
    json_patch::merge(&mut object["spec"], &more);
    object
}

fn proxy(config: Value) -> Value {
    object("ModelAPI", "m", json!({"mode": "Proxy", "proxyConfig": config}))
}

/// The same object with these members of its spec as well.
fn with(mut object: Value, more: &Value) -> Value {
    json_patch::merge(&mut object["spec"], more);
    object
}

/// A container.
fn with_name(name: &str, more: &Value) -> Value {
    let mut container = json!({"name": name});
    json_patch::merge(&mut container, more);
    container
}

/// It as the one of a `podSpec`.
fn container(name: &str, more: &Value) -> Value {
    json!({"podSpec": {"containers": [with_name(name, more)]}})
}

fn tools(spec: Value) -> Value {
    object("MCPServer", "t", spec)
}

fn api(objects: &Objects, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kaos.tools", "v1alpha1", kind));
    let resource = ApiResource { plural: format!("{}s", kind.to_lowercase()), ..resource };
    Api::namespaced_with(objects.client(), objects.namespace(), &resource)
}

/// Somebody who may write the kinds of KAOS, and what `more` says.
async fn person(ns: &TestNamespace, name: &str, more: Option<Value>) -> Result<Objects> {
    let all = &["get", "create", "update", "patch", "delete"];
    let mut rules: Vec<_> = ["agents", "modelapis", "mcpservers"].map(|kind| rule("kaos.tools", kind, all)).into();
    rules.extend(more);
    people::person(ns, name, &rules, &agent(json!({}))).await
}

#[tokio::test]
async fn ruling_05_code_and_powers_are_taken_from_people_who_could_run_them_themselves() -> Result<()> {
    let ns = team().await?;
    let plain = person(&ns, "plain", None).await?;
    let runs = person(&ns, "runs", Some(rule("apps", "deployments", &["create"]))).await?;
    let (agents, apis, servers) =
        ("drawbridge-kaos-agent-powers", "drawbridge-kaos-modelapi-powers", "drawbridge-kaos-mcpserver-powers");
    people::refusal_begins(agents, &plain, &agent(json!({"container": {"image": "i"}}))).await?;
    people::refusal_begins(apis, &plain, &proxy(json!({"models": ["a"], "configYaml": "a: 1"}))).await?;
    people::refusal_begins(servers, &plain, &tools(json!({"runtime": "custom", "container": {"image": "i"}}))).await?;
    let python = |more: Value| with(tools(json!({"runtime": "python-string"})), &more);
    let model = |more: Value| with(proxy(json!({"models": ["a"]})), &more);
    let exec = json!({"exec": {"command": ["sh", "-c", "x"]}});
    let filled = json!({"envFrom": [{"configMapRef": {"name": "mine"}}]});
    let mounted = json!({"volumeMounts": [{"name": "mine", "mountPath": "/app/main.py", "subPath": "main.py"}]});
    let env = |name: &str| json!([{"name": "A", "value": "1"}, {"name": name, "value": "x"}]);
    let bucket = env("LITELLM_CONFIG_BUCKET_NAME");
    for (policy, powerful) in [
        (agents, agent(json!({"container": {"command": ["x"]}}))),
        (agents, agent(json!({"container": {"args": ["x"]}}))),
        (agents, agent(json!({"podSpec": {"containers": [{"name": "agent", "image": "x"}]}}))),
        (agents, agent(json!({"podSpec": {"hostNetwork": true}}))),
        (agents, agent(json!({"podSpec": {"nodeSelector": {"gpu": "true"}}}))),
        (agents, agent(json!({"podSpec": {"serviceAccountName": "other"}}))),
        (apis, proxy(json!({"models": ["a"], "configYaml": {"fromString": "a: 1"}}))),
        (servers, python(json!({"params": "x"}))),
        (servers, python(json!({"container": {"env": [{"name": "MCP_TOOLS_STRING", "value": "x"}]}}))),
        (servers, tools(json!({"config": {"toolsString": "x"}}))),
        (servers, tools(json!({"config": {"tools": {"fromString": "x"}}}))),
        (servers, tools(json!({"config": {"mcp": "x"}}))),
        (servers, tools(json!({"config": {"tools": {"fromPackage": "x"}}}))),
        (servers, tools(json!({"runtime": "kubernetes", "serviceAccountName": "sa"}))),
        // Code comes by whatever starts a process, and by whatever its files and variables are filled from.
        (agents, agent(container("agent", &json!({"livenessProbe": exec})))),
        (agents, agent(container("agent", &json!({"readinessProbe": exec})))),
        (apis, model(container("model-api", &json!({"startupProbe": exec})))),
        (servers, python(container("mcp-server", &json!({"livenessProbe": exec})))),
        (servers, python(container("mcp-server", &filled))),
        (agents, agent(container("agent", &filled))),
        (agents, agent(container("agent", &mounted))),
        (apis, model(json!({"podSpec": {"initContainers": [with_name("pull-model", &mounted)]}}))),
        (servers, python(container("mcp-server", &mounted))),
        (apis, model(json!({"podSpec": {"volumes": [{"name": "litellm-config", "configMap": {"name": "mine"}}]}}))),
        (apis, model(json!({"container": {"env": bucket}}))),
        (apis, model(json!({"serverConfig": {"env": bucket}}))),
        (apis, model(container("model-api", &json!({"env": bucket})))),
        // A loader, a shell or an interpreter is told by a variable what to run before any program of the image.
        (agents, agent(json!({"container": {"env": env("PYTHONPATH")}}))),
        (agents, agent(json!({"config": {"env": env("BASH_ENV")}}))),
        (apis, model(json!({"serverConfig": {"env": env("LD_PRELOAD")}}))),
        (servers, python(container("mcp-server", &json!({"env": env("NODE_OPTIONS")})))),
        (servers, python(json!({"container": {"env": env("BASH_FUNC_ls%%")}}))),
    ] {
        people::refused_by(policy, people::tried(&plain, &powerful).await?).with_context(|| powerful.to_string())?;
        people::tried(&runs, &powerful).await?.with_context(|| powerful.to_string())?;
    }
    for harmless in [
        agent(
            json!({"container": {"env": [{"name": "A", "value": "1"}]}, "podSpec": {"terminationGracePeriodSeconds": 5}}),
        ),
        agent(container("agent", &json!({"livenessProbe": {"initialDelaySeconds": 60}, "envFrom": []}))),
        agent(json!({"podSpec": {"volumes": [{"name": "mine", "emptyDir": {}}]}})),
        proxy(json!({"models": ["a"]})),
        proxy(json!({"apiBase": "http://b"})),
        model(json!({"container": {"env": [{"name": "LITELLM_LOG", "value": "DEBUG"}]}})),
        agent(json!({"container": {"env": env("PYTHONUNBUFFERED")}, "config": {"env": env("NODE_ENV")}})),
        tools(json!({"runtime": "kubernetes"})),
    ] {
        people::tried(&plain, &harmless).await?.with_context(|| harmless.to_string())?;
    }
    // Neither finalizers nor labels of what others wrote, nor its end.
    runs.accepts(&agent(json!({"container": {"image": "i"}}))).await?;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"config": {"description": "x"}}});
    api(&plain, "Agent").patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    api(&plain, "Agent").delete("a", &kube::api::DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn ruling_05_secrets_are_taken_from_people_who_may_have_them() -> Result<()> {
    let ns = team().await?;
    let plain = person(&ns, "plain", None).await?;
    let named = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["mine"]});
    let named = person(&ns, "named", Some(named)).await?;
    let of = |secret: &str| json!([{"name": "K", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]);
    let (agents, apis, servers) =
        ("drawbridge-kaos-agent-secrets", "drawbridge-kaos-modelapi-secrets", "drawbridge-kaos-mcpserver-secrets");
    type Row = (&'static str, fn(Value) -> Value);
    let rows: [Row; 7] = [
        (agents, |env| agent(json!({"container": {"env": env}}))),
        (agents, |env| agent(json!({"config": {"env": env}}))),
        (agents, |env| {
            agent(
                json!({"podSpec": {"volumes": [{"name": "v", "secret": {"secretName": env[0]["valueFrom"]["secretKeyRef"]["name"]}}]}}),
            )
        }),
        (apis, |env| proxy(json!({"models": ["a"], "env": env}))),
        (apis, |env| proxy(json!({"models": ["a"], "apiKey": {"valueFrom": env[0]["valueFrom"]}}))),
        (apis, |env| object("ModelAPI", "m", json!({"mode": "Hosted", "serverConfig": {"model": "x", "env": env}}))),
        (servers, |env| tools(json!({"runtime": "kubernetes", "config": {"env": env}}))),
    ];
    for (policy, make) in rows {
        people::refusal_begins(policy, &plain, &make(of("mine"))).await?;
        people::tried(&named, &make(of("mine"))).await?.with_context(|| make(of("mine")).to_string())?;
        people::refused_by(policy, people::tried(&named, &make(of("theirs"))).await?)?;
    }
    // Who keeps the reference and says whom it is sent to has the Secret, in whatever member that stands.
    let from = of("mine")[0]["valueFrom"].clone();
    let keyed = json!({"mode": "Proxy", "proxyConfig": {"apiKey": {"valueFrom": from}}, "models": [{"name": "fast", "model": "openai/gpt-4o"}]});
    ns.accepts(&object("ModelAPI", "keyed", keyed)).await?;
    ns.accepts(&object("Agent", "keyed", json!({"modelAPI": "m", "model": "x", "container": {"env": of("mine")}})))
        .await?;
    ns.accepts(&object("MCPServer", "keyed", json!({"runtime": "kubernetes", "container": {"env": of("mine")}})))
        .await?;
    ns.accepts(&object("Agent", "plain", json!({"modelAPI": "m", "model": "x"}))).await?;
    let elsewhere = json!({"spec": {"models": [{"name": "fast", "model": "oobabooga/https://attacker.example"}]}});
    let traced = json!({"spec": {"telemetry": {"enabled": true, "endpoint": "http://attacker.example:4317"}}});
    let annotated = json!({"metadata": {"annotations": {keys::ANNOTATION_CREDENTIALS: "mine"}}});
    for (policy, kind, name, patch) in [
        (apis, "ModelAPI", "keyed", &elsewhere),
        (apis, "ModelAPI", "keyed", &traced),
        (servers, "MCPServer", "keyed", &traced),
        (agents, "Agent", "keyed", &json!({"spec": {"modelAPI": "theirs"}})),
        (agents, "Agent", "keyed", &json!({"spec": {"mcpServers": ["theirs"]}})),
        (agents, "Agent", "keyed", &json!({"spec": {"agentNetwork": {"access": ["theirs"]}}})),
        // It names no Secret anywhere else, and nothing of its spec changes: a label is all that it lacks to be given these.
        (agents, "Agent", "plain", &annotated),
    ] {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let answer = api(&plain, kind).patch(name, &params, &patch).await;
        people::refused_by(policy, answer).with_context(|| format!("{kind} {name}: {patch:?}"))?;
        api(&named, kind).patch(name, &params, &patch).await.with_context(|| format!("{kind} {name}: {patch:?}"))?;
    }
    // What no Secret gets anywhere by is not asked about.
    for (kind, patch) in [
        ("ModelAPI", json!({"spec": {"gatewayRoute": {"timeout": "90s"}}})),
        ("Agent", json!({"spec": {"model": "y", "replicas": 2}})),
        ("Agent", json!({"metadata": {"labels": {"team": "a"}}})),
    ] {
        api(&plain, kind).patch("keyed", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    // A configuration that is a text names no Secret, and is no error of the policy.
    ns.accepts(&proxy(json!({"models": ["a"], "configYaml": "a: 1"}))).await?;
    let patch = json!({"spec": {"hostedConfig": {"model": "later"}}});
    api(&plain, "ModelAPI").patch("m", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn ruling_06_both_spellings_are_stored_and_what_is_wrong_is_refused_at_once() -> Result<()> {
    let ns = team().await?;
    // Case 126, by the schema.
    let timeout = ns.rejects(&agent(json!({"gatewayRoute": {"timeout": "1.5s"}}))).await?;
    ensure!(timeout.code == 422 && timeout.message.contains("spec.gatewayRoute.timeout"), "{timeout:?}");
    let old = agent(json!({"model": null, "replicas": 2, "resources": {"limits": {"cpu": 1}}, "config": {
        "agenticLoop": {"maxSteps": 3, "enableTools": true}, "env": [{"name": "my-var", "value": "1"}],
    }}));
    let stored = ns.accepts(&old).await?.data["spec"].clone();
    assert_eq!((&stored["config"], &stored["resources"]), (&old["spec"]["config"], &old["spec"]["resources"]));
    assert_eq!(stored["waitForDependencies"], true);
    for yaml in [json!("a: 1"), json!({"fromString": "a: 1"}), json!({"fromSecretKeyRef": {"name": "s", "key": "k"}})] {
        ns.create(&proxy(json!({"models": ["a"], "configYaml": yaml})), true)
            .await?
            .result
            .map_err(|status| anyhow::anyhow!(status.message))?;
    }
    let wrong = agent(json!({
        "config": {"env": [{"name": "MODEL_NAME", "value": "y"}]},
        "podSpec": {"containers": [{"name": "agent", "env": [{"name": "A"}, {"name": "A"}]}]},
    }));
    let refused = ns.rejects(&wrong).await?;
    for part in ["spec.podSpec.containers[0].env[1].name", "spec.model and spec.config.env[0] say different things"] {
        ensure!(refused.message.contains(part), "{part}: {}", refused.message);
    }
    let scale = json!({"spec": {"replicas": 0}});
    let scaled = api(&ns, "Agent").patch_scale("a", &PatchParams::default(), &Patch::Merge(&scale)).await?;
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas).unwrap_or_default(), 0);
    // An empty reason in a condition of the Deployment must not cost the status.
    let status = json!({"status": {"phase": "Pending", "deployment": {"conditions": [{"type": "Available", "status": "True", "reason": ""}]}}});
    api(&ns, "Agent").patch_status("a", &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}
