//! KAOS on a real control plane: the samples of every spelling as they stand, under the installation's own rights and policies. Numbers are
//! those of cases of KAOS (docs/cases.md).

mod fence;
mod live;
mod models;
mod outside;
mod routes;
mod settings;
mod takeover;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, PodSecurityContext, Service};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::patience::timeout;
use webhook_tests::{TestNamespace, wait_for, wait_gone};

use crate::agents::stage::{CONTROLLERS, kubectl, shared};

const HOSTED: [(&str, &str); 3] = [
    ("m", include_str!("../../../../manifests/samples/kaos-m-hosted.yaml")),
    ("s4", include_str!("../../../../manifests/samples/kaos-s4-hosted.yaml")),
    ("s3", include_str!("../../../../manifests/samples/kaos-s3-hosted.yaml")),
];
const SIMPLE: [(&str, &str); 3] = [
    ("m", include_str!("../../../../manifests/samples/kaos-m-simple.yaml")),
    ("s4", include_str!("../../../../manifests/samples/kaos-s4-simple.yaml")),
    ("s3", include_str!("../../../../manifests/samples/kaos-s3-simple.yaml")),
];
const TEAM: [(&str, &str); 3] = [
    ("m", include_str!("../../../../manifests/samples/kaos-m-team.yaml")),
    ("s4", include_str!("../../../../manifests/samples/kaos-s4-team.yaml")),
    ("s3", include_str!("../../../../manifests/samples/kaos-s3-team.yaml")),
];

fn objects(ns: &TestNamespace, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kaos.tools", "v1alpha1", kind));
    let resource = ApiResource { plural: format!("{}s", kind.to_lowercase()), ..resource };
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

fn ready(object: &DynamicObject) -> bool {
    object.data["status"]["phase"] == "Ready" && object.data["status"]["ready"] == true
}

/// Applies a sample as it stands and waits until every object of it is ready.
async fn applied(ns: &TestNamespace, sample: &str) -> Result<()> {
    let cp = shared().await?;
    let applied = cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], sample).await?;
    ensure!(applied.success, "{}", applied.stderr);
    for document in sample.split("\n---") {
        let line = |key: &str| document.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let (Some(kind), Some(name)) = (line("kind:"), line("  name:")) else { continue };
        if kind != "Secret" {
            wait_for(&objects(ns, kind), name, ready).await?;
        }
    }
    Ok(())
}

async fn environment(ns: &TestNamespace, deployment: &str) -> Result<Vec<(String, String)>> {
    let pod = ns.api::<Deployment>().get(deployment).await?.spec.unwrap().template.spec.unwrap();
    let env = pod.containers[0].env.clone().unwrap_or_default();
    Ok(env.into_iter().map(|one| (one.name, one.value.unwrap_or_default())).collect())
}

fn value<'e>(env: &'e [(String, String)], name: &str) -> Option<&'e str> {
    env.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
}

/// How many ReplicaSets there are in all: one each, so nothing was rolled twice.
async fn sets(ns: &TestNamespace) -> Result<(usize, usize)> {
    let sets = ns.api::<ReplicaSet>().list(&ListParams::default()).await?.items.len();
    Ok((sets, ns.api::<Deployment>().list(&ListParams::default()).await?.items.len()))
}

/// A hosted model and an Agent, in each spelling.
#[tokio::test]
async fn case_90_a_hosted_model_and_its_agent_come_up_in_every_spelling() -> Result<()> {
    let cp = shared().await?;
    for (spelling, sample) in HOSTED {
        let ns = cp.namespace(&format!("kaos-hosted-{spelling}")).await?;
        applied(&ns, sample).await?;
        let env = environment(&ns, "agent-local-agent").await?;
        let url = format!("http://modelapi-local-model.{}.svc.cluster.local:11434", ns.name());
        assert_eq!((value(&env, "MODEL_API_URL"), value(&env, "MODEL_NAME")), (Some(&*url), Some("smollm2:135m")));
        let model = environment(&ns, "modelapi-local-model").await?;
        assert_eq!(value(&model, "OLLAMA_KEEP_ALIVE"), Some("10m"), "{spelling}");
        let pod = ns.api::<Deployment>().get("modelapi-local-model").await?.spec.unwrap().template.spec.unwrap();
        let pull = pod.init_containers.unwrap().into_iter().find(|one| one.name == "pull-model").unwrap();
        assert_eq!(pull.args, Some(vec!["pull".to_owned(), "smollm2:135m".to_owned()]));
        // The API server writes an empty one.
        let stored = (pod.security_context.unwrap_or_default(), pod.automount_service_account_token);
        assert_eq!(stored, (PodSecurityContext::default(), None), "nothing is locked down");
        let ports = ns.api::<Service>().get("modelapi-local-model").await?.spec.unwrap().ports.unwrap();
        assert_eq!(ports[0].port, 11434);
        let (sets, deployments) = sets(&ns).await?;
        assert_eq!(sets, deployments, "{spelling}: each was rolled once");
    }
    Ok(())
}

/// A proxy, text tools and an Agent, in each spelling; then everything goes.
#[tokio::test]
async fn case_89_a_proxy_tools_and_an_agent_come_up_in_every_spelling_and_go_without_a_rest() -> Result<()> {
    let cp = shared().await?;
    for (spelling, sample) in SIMPLE {
        let ns = cp.namespace(&format!("kaos-simple-{spelling}")).await?;
        applied(&ns, sample).await?;
        let env = environment(&ns, "agent-simple").await?;
        let tools = format!("http://mcpserver-echo-tools.{}.svc.cluster.local:8000", ns.name());
        assert_eq!(value(&env, "MCP_SERVER_echo-tools_URL"), Some(&*tools), "{spelling}");
        assert_eq!(value(&env, "AGENTIC_LOOP_MAX_STEPS"), Some("4"));
        let text = environment(&ns, "mcpserver-echo-tools").await?;
        ensure!(value(&text, "MCP_TOOLS_STRING").is_some_and(|text| text.contains("def echo")), "{text:?}");
        let config = ns.api::<ConfigMap>().get("litellm-config-gateway-models").await?.data.unwrap();
        ensure!(config["config.yaml"].contains("model_list"), "{config:?}");
        if spelling == "s3" {
            let pod = ns.api::<Deployment>().get("agent-simple").await?.spec.unwrap().template.spec.unwrap();
            assert_eq!(pod.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap()["cpu"].0, "500m");
            assert_eq!(value(&env, "AGENTIC_LOOP_ENABLE_DELEGATION"), Some("false"));
        }
        kubectl(cp, &ns, &["delete", "agents.kaos.tools,modelapis,mcpservers", "--all", &timeout()]).await?;
        for name in ["agent-simple", "modelapi-gateway-models", "mcpserver-echo-tools"] {
            wait_gone(&ns.api::<Deployment>(), name).await?;
        }
    }
    Ok(())
}

/// A team that names itself comes up with every peer in the first round; a peer that goes and comes changes its template
/// once; a dependency that flaps changes nothing.
#[tokio::test]
async fn case_36_a_team_comes_up_in_every_spelling_and_at_rest_nothing_is_written() -> Result<()> {
    let cp = shared().await?;
    for (spelling, sample) in TEAM {
        let ns = cp.namespace(&format!("kaos-team-{spelling}")).await?;
        applied(&ns, sample).await?;
        let env = environment(&ns, "agent-coordinator").await?;
        assert_eq!(value(&env, "PEER_AGENTS"), Some("fact-checker,researcher"), "{spelling}");
        let card = format!("http://agent-fact-checker.{}.svc.cluster.local:8000", ns.name());
        assert_eq!(value(&env, "PEER_AGENT_FACT_CHECKER_CARD_URL"), Some(&*card));
    }
    let ns = cp.namespace("kaos-flap").await?;
    applied(&ns, TEAM[0].1).await?;
    let before = ns.api::<Deployment>().list(&ListParams::default()).await?;
    let log = cp.audit();
    let mark = log.mark()?;
    let apis = objects(&ns, "ModelAPI");
    for round in 0..50 {
        let patch = json!({"status": {"message": format!("round {round}")}});
        apis.patch_status("team-models", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    wait_for(&apis, "team-models", |api| api.data["status"]["message"] == "Deployment ready replicas: 1/1").await?;
    let written = log.settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let others = written.filter(|request| request.resource != "modelapis");
    ensure!(others.is_empty(), "{others}");
    let after = ns.api::<Deployment>().list(&ListParams::default()).await?;
    let generations = |all: &kube::core::ObjectList<Deployment>| -> Vec<_> {
        all.items.iter().map(|one| one.metadata.generation).collect()
    };
    assert_eq!(generations(&before), generations(&after));
    Ok(())
}

/// One rollout, with sidecars, and its probes are let through.
#[tokio::test]
async fn ruling_22_a_labelled_agent_is_enrolled_in_one_rollout() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-enrolled").await?;
    let api = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
    });
    let agent = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "weather", "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
        "spec": {"modelAPI": "m", "model": "openai/x"},
    });
    ns.accepts(&api).await?;
    ns.accepts(&agent).await?;
    wait_for(&objects(&ns, "Agent"), "weather", ready).await?;
    let selected = ListParams::default().labels("app=agent,agent=weather");
    let sets = ns.api::<ReplicaSet>().list(&selected).await?.items.len();
    assert_eq!(sets, 1, "one rollout");
    let pod = ns.api::<k8s_openapi::api::core::v1::Pod>().list(&selected).await?.items.remove(0);
    let spec = pod.spec.unwrap();
    let names: Vec<_> = spec.init_containers.into_iter().flatten().chain(spec.containers).map(|one| one.name).collect();
    ensure!(names.iter().any(|name| name == "envoy-proxy") && names.iter().any(|name| name == "agent"), "{names:?}");
    let config = pod.metadata.annotations.unwrap_or_default();
    let runtime: &Value = &json!(config.get("kagenti.io/authbridge-config"));
    ensure!(runtime.to_string().contains("/health") && runtime.to_string().contains("/ready"), "{runtime}");
    Ok(())
}

/// Rulings 7, 23 and 24: in mode proxy-sidecar an agent and tools that are text are told their new port, a proxy cannot be; in
/// mode envoy-sidecar the probes of each pass; and no template is closed by us.
#[tokio::test]
async fn rulings_07_23_and_24_an_agent_tools_and_a_proxy_are_enrolled_in_both_modes() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-modes").await?;
    let object = |kind: &str, name: &str, mode: &str, spec: Value| {
        json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": kind, "spec": spec, "metadata": {
                "name": name, "labels": {"kagenti.io/type": "agent"}, "annotations": {"kagenti.io/authbridge-mode": mode}},
        })
    };
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    let tools = json!({"runtime": "python-string", "params": "def f(): pass"});
    for (mode, short) in [("envoy-sidecar", "e"), ("proxy-sidecar", "p")] {
        ns.accepts(&object("ModelAPI", &format!("m{short}"), mode, proxy.clone())).await?;
        ns.accepts(&object("MCPServer", &format!("t{short}"), mode, tools.clone())).await?;
        let agent = json!({"modelAPI": "me", "model": "x", "waitForDependencies": false});
        ns.accepts(&object("Agent", &format!("a{short}"), mode, agent)).await?;
    }
    wait_for(&objects(&ns, "Agent"), "ae", ready).await?;
    wait_for(&objects(&ns, "Agent"), "ap", ready).await?;
    wait_for(&objects(&ns, "MCPServer"), "tp", ready).await?;
    wait_for(&objects(&ns, "MCPServer"), "te", ready).await?;
    wait_for(&objects(&ns, "ModelAPI"), "me", ready).await?;
    let pods = ns.api::<k8s_openapi::api::core::v1::Pod>();
    let pod = async |label: &str| -> Result<k8s_openapi::api::core::v1::Pod> {
        let mut found = pods.list(&ListParams::default().labels(label)).await?.items;
        ensure!(!found.is_empty(), "no Pod with {label}");
        Ok(found.remove(0))
    };
    for (label, container, variable) in
        [("agent=ap", "agent", "AGENT_PORT"), ("mcpserver=tp", "mcp-server", "MCP_PORT")]
    {
        let spec = pod(label).await?.spec.unwrap();
        let app = spec.containers.iter().find(|one| one.name == container).unwrap();
        let port = app.env.iter().flatten().find(|one| one.name == variable).and_then(|one| one.value.clone());
        ensure!(port.as_deref().is_some_and(|port| port != "8000"), "{label}: {variable} is {port:?}");
    }
    for (label, path) in [("agent=ae", "/health"), ("modelapi=me", "/health/liveliness")] {
        let annotations = pod(label).await?.metadata.annotations.unwrap_or_default();
        let config = annotations.get("kagenti.io/authbridge-config").cloned().unwrap_or_default();
        ensure!(config.contains(path), "{label}: {path} is not let through: {config}");
    }
    let refused = |api: &DynamicObject| api.data["status"].to_string().contains("PortFixed");
    wait_for(&objects(&ns, "ModelAPI"), "mp", refused).await?;
    for deployment in ns.api::<Deployment>().list(&ListParams::default()).await?.items {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let spec = deployment.spec.unwrap().template.spec.unwrap();
        let closed = spec.containers.iter().any(|one| one.security_context.is_some())
            || spec.automount_service_account_token.is_some()
            || spec.service_account_name.is_some_and(|account| !account.is_empty());
        ensure!(!closed, "{name}: a template of KAOS gets no security context, no account and no automount from us");
    }
    Ok(())
}
