//! Agents of BeeAI on a real control plane: the sample as it stands, names that collide, Secrets, and the group of the original operator,
//! which is served while its definition is there. Numbers are those of cases of BeeAI (docs/cases.md).

use anyhow::{Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent as KagentiAgent;
use drawbridge::api::beeai_dev::agent::Agent;
use drawbridge::cli::render::{FailureMode, Install, compat};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{
    Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone, wait_served, wait_until,
};

use crate::agents::stage::{CONTROLLERS, agent as kagenti, condition, kubectl, leads, ready as kagenti_ready, shared};
use crate::one_name::warned;

mod builds;
mod handed_over;
mod switched;

const SAMPLE: &str = include_str!("../../../../manifests/samples/beeai-agent.yaml");
const NAME: &str = "sample-agent";

/// An Agent of that group.
fn agent(group: &str, name: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Agent", "metadata": {"name": name},
        "spec": {"image": "example.com/weather:v1"},
    });
    json_patch::merge(&mut object, more);
    object
}

/// Agents of that group, whatever their bindings.
fn agents(ns: &TestNamespace, group: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Agent"));
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

/// A condition as `status/reason`.
fn says(object: &DynamicObject, type_: &str) -> String {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("status"), text("reason"))
}

fn ready(object: &DynamicObject) -> bool {
    says(object, "Ready") == "True/DeploymentReady" && object.data["status"]["ready"] == true
}

async fn made(ns: &TestNamespace, name: &str) -> Result<(usize, Vec<String>)> {
    let selected = ListParams::default().labels(&format!("app={name},controller=agent-operator"));
    let sets = ns.api::<ReplicaSet>().list(&selected).await?.items.len();
    let pods = ns.api::<Pod>().list(&selected).await?.items;
    let names = pods.first().and_then(|pod| pod.spec.clone()).map(|spec| {
        let init = spec.init_containers.into_iter().flatten();
        init.chain(spec.containers).map(|container| container.name).collect()
    });
    Ok((sets, names.unwrap_or_default()))
}

/// Z1, Z2, Z6, Z7, Z11: the sample, applied with kubectl as it stands.
#[tokio::test]
async fn case_z01_the_sample_becomes_a_deployment_and_a_service() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-sample").await?;
    let applied = cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], SAMPLE).await?;
    ensure!(applied.success, "{}", applied.stderr);
    kubectl(cp, &ns, &["wait", "--for=condition=Ready", "agents.beeai.dev/sample-agent", &timeout()]).await?;
    let spec = ns.api::<Deployment>().get(NAME).await?.spec.unwrap();
    assert_eq!(spec.replicas, Some(1));
    let pod = spec.template.spec.unwrap();
    let container = &pod.containers[0];
    let env: Vec<_> = container.env.iter().flatten().map(|one| one.name.as_str()).collect();
    assert_eq!((container.name.as_str(), env), ("agent", vec!["LLM_MODEL", "LLM_URL", "PORT"]));
    assert_eq!(pod.automount_service_account_token, Some(false));
    assert_eq!(pod.image_pull_secrets, None, "Z4");
    let ports = ns.api::<Service>().get(NAME).await?.spec.unwrap().ports.unwrap();
    assert_eq!((ports[0].port, &ports[0].target_port), (8000, &Some(IntOrString::String("http".to_owned()))));
    let stored = ns.api::<Agent>().get(NAME).await?;
    let status = stored.status.unwrap();
    assert_eq!((status.ready, status.deployment_status.as_deref()), (Some(true), Some("Ready")));
    for shown in [&["get", "bagent", NAME][..], &["get", "beeai"]] {
        let all: Vec<&str> = shown.iter().copied().chain(["-n", ns.name()]).collect();
        let table = cp.kubectl(cp.admin(), &all, "").await?.stdout;
        ensure!(table.contains("hello-world-agent:v1") && table.contains("true"), "{table}");
    }

    let patch = json!({"spec": {"image": "example.com/weather:v2"}});
    ns.api::<Agent>().patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let follows = |object: &DynamicObject| object.data["status"]["image"] == "example.com/weather:v2" && ready(object);
    wait_for(&agents(&ns, keys::GROUP_BEEAI), NAME, follows).await?;
    assert_eq!(made(&ns, NAME).await?.0, 2, "Z6: one rollout");

    kubectl(cp, &ns, &["delete", "agents.beeai.dev/sample-agent", &timeout()]).await?;
    wait_gone(&ns.api::<Deployment>(), NAME).await?;
    wait_gone(&ns.api::<Service>(), NAME).await?;
    Ok(())
}

/// Z12, and what enrolment would write is there with the first write.
#[tokio::test]
async fn a_labelled_agent_is_enrolled_in_one_rollout_and_wrong_types_are_refused() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-enrolled").await?;
    let number = agent(keys::GROUP_BEEAI, "number", &json!({"spec": {"env": [{"name": "A", "value": 8000}]}}));
    let refused = ns.rejects(&number).await?;
    ensure!(refused.message.contains("spec.env[0].value"), "Z12: {}", refused.message);
    let baseline = json!({"metadata": {"annotations": {"beeai.dev/security-profile": "baseline"}}});
    let refused = ns.rejects(&agent(keys::GROUP_BEEAI, "baseline", &baseline)).await?;
    ensure!(refused.message.contains("beeai.allowBaseline"), "Z8: {}", refused.message);
    let port = json!({"spec": {"env": [{"name": "PORT", "value": "canary"}]}});
    let refused = ns.rejects(&agent(keys::GROUP_BEEAI, "port", &port)).await?;
    ensure!(
        refused.message.contains("spec.env[0].value") && !refused.message.contains("canary"),
        "{}",
        refused.message
    );
    let labels = json!({"metadata": {"labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}}});
    ns.accepts(&agent(keys::GROUP_BEEAI, "weather", &labels)).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "weather", ready).await?;
    let (sets, containers) = made(&ns, "weather").await?;
    assert_eq!(sets, 1, "one rollout");
    ensure!(containers.iter().any(|name| name == "envoy-proxy"), "{containers:?}");
    Ok(())
}

/// Z9 and Z10: whoever comes second says whose it is.
#[tokio::test]
async fn case_z10_the_second_agent_of_a_name_says_whose_it_is() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-names").await?;
    ns.accepts(&kagenti("weather", &json!({}))).await?;
    wait_for(&ns.api::<KagentiAgent>(), "weather", kagenti_ready).await?;
    let before = ns.api::<Deployment>().get("weather").await?.metadata.generation;
    ns.accepts(&agent(keys::GROUP_BEEAI, "weather", &json!({}))).await?;
    let conflict = |object: &DynamicObject| says(object, "Ready") == "False/NameConflict";
    let stored = wait_for(&agents(&ns, keys::GROUP_BEEAI), "weather", conflict).await?;
    let told = stored.data["status"].to_string();
    ensure!(told.contains("belongs to Agent weather of agent.kagenti.dev/v1alpha1"), "{told}");
    agents(&ns, keys::GROUP_BEEAI).delete("weather", &DeleteParams::default()).await?;
    wait_gone(&agents(&ns, keys::GROUP_BEEAI), "weather").await?;
    assert_eq!(ns.api::<Deployment>().get("weather").await?.metadata.generation, before);
    assert_eq!(condition(&ns.api::<KagentiAgent>().get("weather").await?, "Ready"), "True/DeploymentReady");
    Ok(())
}

/// Who may write Agents and not read Secrets gets none by either field, and the images of those who may are left alone.
#[tokio::test]
async fn an_agent_refers_to_a_secret_only_for_people_who_could_have_it() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-secrets").await?;
    let rights = json!({"apiGroups": ["beeai.dev"], "resources": ["agents"], "verbs": ["*"]});
    let tenant = cp.person(&ns, "beeai-tenant", &[rights]).await?;
    let apply = async |object: &Value| {
        cp.kubectl(
            &tenant,
            &["apply", "--server-side", "--force-conflicts", "-n", ns.name(), "-f", "-"],
            &object.to_string(),
        )
        .await
    };
    let plain = apply(&agent(keys::GROUP_BEEAI, "plain", &json!({}))).await?;
    ensure!(plain.success, "{}", plain.stderr);
    for (name, env) in [
        ("by-reference", json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "token"}}}])),
        ("by-literal", json!([{"name": "IMAGE_REPO_SECRET", "value": "theirs"}])),
    ] {
        let object = agent(keys::GROUP_BEEAI, name, &json!({"spec": {"env": env}}));
        let refused = apply(&object).await?;
        ensure!(!refused.success && refused.stderr.contains("Secret theirs"), "{name}: {}", refused.stderr);
        ns.accepts(&object).await?;
        // The reference stays, and another image would have what it refers to.
        let image =
            apply(&agent(keys::GROUP_BEEAI, name, &json!({"spec": {"image": "example.com/shell:v1", "env": env}})))
                .await?;
        ensure!(!image.success && image.stderr.contains("Secret theirs"), "{name}: {}", image.stderr);
    }
    Ok(())
}

/// One category and short names in one group alone, Z46 as far as Agents go, and nothing is written at a restart; on a control plane of its own.
#[tokio::test]
async fn case_z46_the_group_of_the_original_operator_is_served_while_its_definition_is_there() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("beeai-compat").await?;
    ns.accepts(&agent(keys::GROUP_BEEAI, "one", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "one", ready).await?;

    let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "");
    let objects = cp.objects().await?;
    for object in compat::objects(&install) {
        objects.apply(&object.to_string()).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(cp.client().await?);
    wait_served(&objects, "agents.beeai.beeai.dev").await?;
    ns.accepts(&agent(keys::GROUP_BEEAI_COMPAT, "two", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI_COMPAT), "two", ready).await?;
    let owner = ns.api::<Deployment>().get("two").await?.metadata.owner_references.unwrap_or_default();
    assert_eq!(owner[0].api_version, "beeai.beeai.dev/v1");
    // Until the API server has looked up a definition, which takes it up to half a minute, it refuses what policies compare with objects of
    // that kind: nobody is alarmed about it.
    let log = installation.controllers[0].log();
    ensure!(!log.contains("refused by ValidatingAdmissionPolicy drawbridge-own"), "{log}");
    let events = ns.api::<k8s_openapi::api::core::v1::Event>().list(&ListParams::default()).await?.items;
    let alarm = events.iter().find(|event| {
        event.involved_object.name.as_deref() == Some("two") && event.type_.as_deref() == Some("Warning")
    });
    ensure!(alarm.is_none(), "{alarm:?}");
    let baseline = json!({"metadata": {"annotations": {"beeai.dev/security-profile": "baseline"}}});
    let refused = ns.rejects(&agent(keys::GROUP_BEEAI_COMPAT, "baseline", &baseline)).await?;
    ensure!(refused.message.contains("beeai.allowBaseline"), "{}", refused.message);
    // One name in both groups: whoever applies the second is told so, and the second says whose it is.
    let one = agent(keys::GROUP_BEEAI_COMPAT, "one", &json!({}));
    warned(&ns, &one, true).await?;
    ns.accepts(&one).await?;
    warned(&ns, &agent(keys::GROUP_BEEAI, "two", &json!({})), true).await?;
    let conflict = |object: &DynamicObject| says(object, "Ready") == "False/NameConflict";
    wait_for(&agents(&ns, keys::GROUP_BEEAI_COMPAT), "one", conflict).await?;
    let table = cp.kubectl(cp.admin(), &["get", "beeai", "-A"], "").await?.stdout;
    ensure!(table.contains("agent.beeai.dev/one") && table.contains("agent.beeai.beeai.dev/two"), "{table}");

    // 0 writes at a restart: whoever comes last is served last, and by then the others have been looked at.
    let process = &installation.controllers[0];
    let holder = leads(&cp, None).await?;
    process.stop(patience()).await?;
    let mark = cp.audit().mark()?;
    process.start_again()?;
    process.ready().await?;
    leads(&cp, Some(&holder)).await?;
    for group in [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT] {
        let last = format!("zz-{}", group.matches('.').count());
        ns.accepts(&agent(group, &last, &json!({}))).await?;
        wait_for(&agents(&ns, group), &last, ready).await?;
    }
    let asked = cp.audit().settled(mark).await?.by(CONTROLLERS);
    let secrets = asked.iter().filter(|one| one.resource == "secrets" && ["list", "watch"].contains(&&*one.verb));
    let foreign: Vec<_> = secrets.filter(|one| one.name != keys::SECRET_AUTHORITY).map(ToString::to_string).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    let about = |name: &str| name == "one" || name == "two";
    let written = asked.writes().filter(|request| request.namespace == ns.name() && about(&request.name));
    let shown: Vec<_> = written.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{shown:#?}");

    // The definition goes, and with it the Agents; the finalizer is taken off, and the other group is served on.
    cp.kubectl(cp.admin(), &["delete", "crd", "agents.beeai.beeai.dev", &timeout()], "").await?;
    wait_gone(&definitions, "agents.beeai.beeai.dev").await?;
    wait_until(&ns.api::<Deployment>(), Default::default(), |all| !all.contains_key("two")).await?;
    // The webhook forgets the names of a kind that is not served.
    warned(&ns, &agent(keys::GROUP_BEEAI, "two", &json!({})), false).await?;
    ns.accepts(&agent(keys::GROUP_BEEAI, "three", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "three", ready).await?;
    Ok(())
}
