//! Agents on a real control plane: what is made, how often, and what is never touched. Numbers are those of
//! Cases of agents (docs/cases.md); the test plays AgentBuild's controller.

mod commands;
mod marks;
mod mends;
mod secrets;
mod skew;
pub(crate) mod stage;
mod taken;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod, Service, ServiceAccount};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone, wait_until};

use drawbridge::api::agent_kagenti_dev::agent::Agent;
use stage::{
    CONTROLLERS, agent, build, condition, definitions, image, kubectl, leads, phase, ready, shared, succeeded,
};

/// ReplicaSets of an Agent's Deployment, and the container names of its first Pod.
async fn made(ns: &TestNamespace, name: &str) -> Result<(usize, Vec<String>)> {
    let selected = ListParams::default().labels(&format!("app.kubernetes.io/name={name}"));
    let sets = ns.api::<ReplicaSet>().list(&selected).await?.items.len();
    let pods = ns.api::<Pod>().list(&selected).await?.items;
    let names = pods.first().and_then(|pod| pod.spec.clone()).map(|spec| {
        let init = spec.init_containers.into_iter().flatten();
        init.chain(spec.containers).map(|container| container.name).collect()
    });
    Ok((sets, names.unwrap_or_default()))
}

/// A1, A12: an enrolled Agent is made once, with its sidecars.
#[tokio::test]
async fn case_a01_a_labelled_agent_is_made_in_one_rollout() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-made").await?;
    let labels = json!({"metadata": {"labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}}});
    ns.accepts(&agent("weather", &labels)).await?;
    // As people wait.
    kubectl(cp, &ns, &["wait", "--for=condition=Ready", "agent/weather", &timeout()]).await?;
    let (sets, containers) = made(&ns, "weather").await?;
    assert_eq!(sets, 1, "one rollout");
    assert!(
        containers.contains(&"envoy-proxy".to_owned()) && containers.contains(&"agent".to_owned()),
        "{containers:?}"
    );
    let stored = ns.api::<Agent>().get("weather").await?;
    for owners in [
        ns.api::<Deployment>().get("weather").await?.metadata.owner_references,
        ns.api::<Service>().get("weather").await?.metadata.owner_references,
        ns.api::<ServiceAccount>().get("weather").await?.metadata.owner_references,
    ] {
        let owners = owners.unwrap_or_default();
        assert_eq!(
            (owners.len(), owners[0].controller, Some(&owners[0].uid)),
            (1, Some(true), stored.metadata.uid.as_ref())
        );
    }
    // A12: the schema's defaults.
    assert_eq!(stored.spec.replicas, Some(1));
    let ports = ns.api::<Service>().get("weather").await?.spec.unwrap().ports.unwrap();
    assert_eq!((ports[0].port, &ports[0].target_port), (8080, &Some(IntOrString::Int(8000))));
    // A29: nothing is granted to it.
    let subject = format!("--as=system:serviceaccount:{}:weather", ns.name());
    let granted = cp.kubectl(cp.admin(), &["auth", "can-i", "list", "secrets", "-n", ns.name(), &subject], "").await?;
    assert_eq!(granted.stdout.trim(), "no");

    // The scale subresource.
    kubectl(cp, &ns, &["scale", "agent/weather", "--replicas=2"]).await?;
    let two = |stored: &Agent| stored.status.as_ref().is_some_and(|status| status.replicas == Some(2));
    wait_for(&ns.api::<Agent>(), "weather", |stored| two(stored) && ready(stored)).await?;
    assert_eq!(made(&ns, "weather").await?.0, 1);

    // A4: another image rolls, and only that.
    let patch = json!({"spec": {"imageSource": {"image": "example.com/weather:v2"}}});
    ns.api::<Agent>().patch("weather", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let follows = |stored: &Agent| {
        stored.status.as_ref().is_some_and(|status| status.image.as_deref() == Some("example.com/weather:v2"))
            && ready(stored)
    };
    wait_for(&ns.api::<Agent>(), "weather", follows).await?;
    assert_eq!(image(&ns.api::<Deployment>().get("weather").await?), "example.com/weather:v2");
    assert_eq!(made(&ns, "weather").await?.0, 2);
    Ok(())
}

/// Issue 5: an AgentRuntime that points at the Deployment of an Agent yet to be made.
#[tokio::test]
async fn an_agent_that_an_agent_runtime_governs_is_made_in_one_rollout_and_released_again() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-governed").await?;
    let runtime = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "art"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"}},
    });
    ns.accepts(&runtime).await?;
    // It has been seen: two watches keep no order between them.
    kubectl(cp, &ns, &["wait", "--for=condition=TargetResolved=False", "agentruntime/art", &timeout()]).await?;
    ns.accepts(&agent("weather", &json!({}))).await?;
    wait_for(&ns.api::<Agent>(), "weather", ready).await?;
    kubectl(cp, &ns, &["wait", "--for=condition=Ready", "agentruntime/art", &timeout()]).await?;
    let (sets, containers) = made(&ns, "weather").await?;
    assert_eq!(sets, 1, "one rollout");
    assert!(containers.contains(&"envoy-proxy".to_owned()), "{containers:?}");
    // Un-enrolment takes away what enrolment gave, and the Agent does not bring it back.
    kubectl(cp, &ns, &["delete", "agentruntime/art", &timeout()]).await?;
    let released = |deployment: &Deployment| {
        let template = deployment.spec.as_ref().unwrap().template.metadata.clone().unwrap_or_default();
        let labels = template.labels.unwrap_or_default();
        !labels.contains_key("kagenti.io/type")
            && !template.annotations.unwrap_or_default().contains_key("kagenti.io/config-hash")
    };
    wait_for(&ns.api::<Deployment>(), "weather", released).await?;
    wait_for(&ns.api::<Agent>(), "weather", ready).await?;
    assert!(released(&ns.api::<Deployment>().get("weather").await?));
    Ok(())
}

/// A5 to A9.
#[tokio::test]
async fn case_a06_to_a09_the_image_of_a_build_is_deployed_kept_and_rolled() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-build").await?;
    let digest = |letter: &str| format!("registry.example/w@sha256:{}", letter.repeat(64));
    let source = json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": "b"}}}});
    ns.accepts(&agent("weather", &source)).await?;
    let agents = ns.api::<Agent>();
    let says = |type_: &'static str, wanted: &'static str| move |stored: &Agent| condition(stored, type_) == wanted;
    wait_for(&agents, "weather", says("ImageReady", "False/BuildNotFound")).await?;
    assert_eq!(phase(&agents.get("weather").await?), "Pending");
    assert!(ns.api::<Deployment>().get_opt("weather").await?.is_none());

    build(&ns, "b", &succeeded(&digest("a"))).await?;
    wait_for(&agents, "weather", ready).await?;
    assert_eq!(image(&ns.api::<Deployment>().get("weather").await?), digest("a"));

    let before = ns.api::<Deployment>().get("weather").await?.metadata.generation;
    for (status, wanted) in [
        (json!({"phase": "Building", "builtImage": digest("a")}), "False/BuildInProgress"),
        (json!({"phase": "Failed", "builtImage": digest("a"), "message": "test"}), "False/BuildFailed"),
    ] {
        build(&ns, "b", &status).await?;
        let stored = wait_for(&agents, "weather", says("ImageReady", wanted)).await?;
        assert!(ready(&stored), "{wanted}");
    }
    assert_eq!(ns.api::<Deployment>().get("weather").await?.metadata.generation, before, "untouched");
    build(&ns, "b", &succeeded(&digest("b"))).await?;
    let next = digest("b");
    let rolled = |stored: &Agent| {
        stored.status.as_ref().is_some_and(|status| status.image.as_deref() == Some(&next)) && ready(stored)
    };
    wait_for(&agents, "weather", rolled).await?;
    assert_eq!(image(&ns.api::<Deployment>().get("weather").await?), digest("b"));
    Ok(())
}

/// A14 and A37.
#[tokio::test]
async fn case_a37_foreign_edits_are_taken_back_and_additions_stay() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-drift").await?;
    ns.accepts(&agent("weather", &json!({}))).await?;
    wait_for(&ns.api::<Agent>(), "weather", ready).await?;
    let deployments: Api<Deployment> = ns.api();
    let edit = json!({
        "metadata": {"annotations": {"theirs": "stays"}},
        "spec": {"replicas": 5, "template": {"spec": {"containers": [{"name": "agent", "image": "example.com/evil:1"}]}}},
    });
    deployments.patch("weather", &PatchParams::default(), &Patch::Strategic(&edit)).await?;
    let restored = |deployment: &Deployment| {
        image(deployment) == "example.com/weather:v1" && deployment.spec.as_ref().unwrap().replicas == Some(1)
    };
    let deployment = wait_for(&deployments, "weather", restored).await?;
    assert_eq!(deployment.annotations().get("theirs").map(String::as_str), Some("stays"));

    let services: Api<Service> = ns.api();
    let address = services.get("weather").await?.spec.unwrap().cluster_ip;
    let ports = json!({"spec": {"servicePorts": [{"name": "http", "port": 9000, "targetPort": 8000}]}});
    ns.api::<Agent>().patch("weather", &PatchParams::default(), &Patch::Merge(&ports)).await?;
    let port = |service: &Service| service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0].port;
    let moved = wait_for(&services, "weather", |service| port(service) == 9000).await?;
    assert_eq!(moved.spec.unwrap().cluster_ip, address);
    services
        .patch("weather", &PatchParams::default(), &Patch::Merge(json!({"spec": {"selector": {"x": "y"}}})))
        .await?;
    let selector = |service: &Service| service.spec.as_ref().unwrap().selector.clone().unwrap_or_default();
    wait_for(&services, "weather", |service| selector(service).contains_key("app.kubernetes.io/name")).await?;
    Ok(())
}

/// A26, A27, A28, 18.2 S2.
#[tokio::test]
async fn case_a26_and_a27_what_is_somebody_elses_is_never_touched() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-foreign").await?;
    let foreign = ns.accepts(&stage::foreign_deployment("weather")).await?;
    wait_for(&ns.api::<Deployment>(), "weather", |deployment| {
        deployment.status.as_ref().is_some_and(|status| status.available_replicas == Some(1))
    })
    .await?;
    let before = ns.api::<Deployment>().get("weather").await?;
    assert_eq!(before.metadata.uid, foreign.metadata.uid);
    ns.accepts(&agent("weather", &json!({}))).await?;
    let conflict = |stored: &Agent| condition(stored, "Ready") == "False/NameConflict";
    wait_for(&ns.api::<Agent>(), "weather", conflict).await?;
    let told = |event: &Event| event.reason.as_deref() == Some("NameConflict");
    wait_until(&ns.api::<Event>(), Default::default(), |all| all.values().any(told)).await?;
    ns.api::<Agent>().delete("weather", &DeleteParams::default()).await?;
    wait_gone(&ns.api::<Agent>(), "weather").await?;
    let after = ns.api::<Deployment>().get("weather").await?;
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    for absent in [
        ns.api::<Service>().get_opt("weather").await?.is_some(),
        ns.api::<ServiceAccount>().get_opt("weather").await?.is_some(),
    ] {
        assert!(!absent, "nothing was made beside it");
    }
    Ok(())
}

/// What the first apply rests on: with that version it makes an object, and never changes one that somebody has made
/// in between.
#[tokio::test]
async fn an_apply_of_what_must_not_exist_yet_leaves_what_does_exist_alone() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-unmade").await?;
    let accounts: Api<ServiceAccount> = ns.api();
    let parameters = PatchParams::apply("drawbridge/agent").force();
    let body = |name: &str, field: &str, value: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, field: value, "labels": {"a": "b"}}});
    let unmade = drawbridge::controllers::scaffold::plan::UNMADE;
    let made = accounts.patch("new", &parameters, &Patch::Apply(body("new", "resourceVersion", unmade))).await?;
    assert_ne!(made.metadata.resource_version.as_deref(), Some(unmade));
    let theirs =
        ns.accepts(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "old"}})).await?;
    for (field, value) in [("resourceVersion", unmade), ("uid", "another")] {
        let refused = accounts.patch("old", &parameters, &Patch::Apply(body("old", field, value))).await;
        assert!(
            matches!(&refused, Err(kube::Error::Api(status)) if [409, 422].contains(&status.code)),
            "{field}: {refused:?}"
        );
    }
    assert_eq!(accounts.get("old").await?.metadata.resource_version, theirs.metadata.resource_version);
    Ok(())
}

/// A35, and the deletion of one whose objects are gone already.
#[tokio::test]
async fn case_a35_what_an_agent_made_goes_with_it() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-ends").await?;
    ns.accepts(&agent("weather", &json!({}))).await?;
    wait_for(&ns.api::<Agent>(), "weather", ready).await?;
    kubectl(cp, &ns, &["delete", "agent/weather", &timeout()]).await?;
    wait_gone(&ns.api::<Deployment>(), "weather").await?;
    wait_gone(&ns.api::<Service>(), "weather").await?;
    // The account is the garbage collector's, which learns of a new kind's owners in its own time.
    wait_until(&ns.api::<Pod>(), Default::default(), std::collections::BTreeMap::is_empty).await?;
    Ok(())
}

/// A34, and a restart: on a control plane of its own, because every write counts.
#[tokio::test]
async fn case_a34_steady_state_and_a_restart_write_nothing() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    definitions(&cp).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("agent-steady").await?;
    let labels = json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}});
    ns.accepts(&agent("one", &json!({}))).await?;
    ns.accepts(&agent("two", &labels)).await?;
    for name in ["one", "two"] {
        wait_for(&ns.api::<Agent>(), name, ready).await?;
    }
    let process = &installation.controllers[0];
    let holder = leads(&cp, None).await?;
    process.stop(patience()).await?;
    let mark = cp.audit().mark()?;
    process.start_again()?;
    process.ready().await?;
    leads(&cp, Some(&holder)).await?;
    // Whoever comes last is served last: by then the others have been looked at.
    ns.accepts(&agent("zz-last", &json!({}))).await?;
    wait_for(&ns.api::<Agent>(), "zz-last", ready).await?;
    let asked = cp.audit().settled(mark).await?.by(CONTROLLERS).writes();
    let about = |name: &str| name == "one" || name == "two";
    let written = asked.filter(|request| request.namespace == ns.name() && about(&request.name));
    let shown: Vec<_> = written.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{shown:#?}");
    Ok(())
}
