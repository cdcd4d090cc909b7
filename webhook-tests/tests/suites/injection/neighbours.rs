//! Foreign mutating webhooks before and after ours: a mirror that rewrites images, a mesh that adds a sidecar.

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Hook, Installation, Installing, Options, hook, installation};

use super::{PARTS, containers, control_plane, init_containers, labels, pod, typed};

/// Where the foreign webhook takes images from.
const MIRROR: &str = "mirror.example.com/";

/// Rewrites the image of every container that it has not rewritten yet.
fn rewrite(request: &Value) -> Value {
    let mut operations = Vec::new();
    for list in ["initContainers", "containers"] {
        let all = request["object"]["spec"][list].as_array().into_iter().flatten().enumerate();
        for (index, image) in all.filter_map(|(index, container)| Some((index, container["image"].as_str()?))) {
            if !image.starts_with(MIRROR) {
                let path = format!("/spec/{list}/{index}/image");
                operations.push(json!({ "op": "replace", "path": path, "value": format!("{MIRROR}{image}") }));
            }
        }
    }
    hook::patch(&json!(operations))
}

/// Adds a sidecar of its own behind the containers, unless it is there.
fn accompany(request: &Value) -> Value {
    let all = request["object"]["spec"]["containers"].as_array();
    if all.into_iter().flatten().any(|container| container["name"] == "neighbour") {
        return hook::allow();
    }
    let neighbour = json!({ "name": "neighbour", "image": "example.com/neighbour:1" });
    hook::patch(&json!([{ "op": "add", "path": "/spec/containers/-", "value": neighbour }]))
}

/// When a foreign webhook is called.
type Turn = (&'static str, hook::Kind);

const TURNS: [Turn; 4] = [
    ("a", hook::Kind::Mutating),
    ("a", hook::Kind::MutatingAgain),
    ("z", hook::Kind::Mutating),
    ("z", hook::Kind::MutatingAgain),
];

/// Whether every container (`Some(true)`) or none (`None`) has pull policy Always; `Some(false)` for anything between.
fn always_pulled(pod: &Pod) -> Option<bool> {
    let spec = pod.spec.clone().unwrap_or_default();
    let all: Vec<_> = spec.init_containers.unwrap_or_default().into_iter().chain(spec.containers).collect();
    let always = all.iter().filter(|container| container.image_pull_policy.as_deref() == Some("Always")).count();
    (always > 0).then_some(always == all.len())
}

/// One Pod between two foreign webhooks; `pulls` says whether the control plane makes every container pull always.
async fn among_neighbours(cp: &ControlPlane, pulls: bool, rewriting: Turn, accompanying: Turn) -> Result<()> {
    let ns = cp.namespace("neighbours").await?;
    let mirror = Hook::start(cp, ns.name(), "mirror", rewrite).await?;
    let mesh = Hook::start(cp, ns.name(), "mesh", accompany).await?;
    // Names before and after `drawbridge`.
    mirror.register_for_pods(&ns, &format!("{}-mirror-{}", rewriting.0, ns.name()), rewriting.1).await?;
    mesh.register_for_pods(&ns, &format!("{}-mesh-{}", accompanying.0, ns.name()), accompanying.1).await?;
    let stored: Pod = typed(&ns.accepts(&pod("agent", &labels("agent", true))).await?)?;
    let order = format!("mirror {rewriting:?}, mesh {accompanying:?}: {stored:?}");
    assert_eq!(always_pulled(&stored), pulls.then_some(true), "{order}");
    let expected: Vec<&str> = PARTS.into_iter().chain(["setup"]).collect();
    assert_eq!(init_containers(&stored), expected, "{order}");
    assert_eq!(containers(&stored), ["agent", "neighbour"], "{order}");
    // Called before ours and never again, it has not seen our containers.
    let saw_ours = rewriting != ("a", hook::Kind::Mutating);
    for container in stored.spec.context("a stored Pod has a spec")?.init_containers.unwrap_or_default() {
        let rewritten = container.image.as_deref().unwrap_or_default().starts_with(MIRROR);
        assert_eq!(rewritten, saw_ours || container.name == "setup", "{}: {order}", container.name);
    }
    Ok(())
}

#[tokio::test]
async fn a9_our_parts_are_there_once_and_images_stay_rewritten_among_foreign_webhooks_in_every_order() -> Result<()> {
    in_every_order(control_plane().await?, false).await
}

/// The API server's own plugin sets the policy before the webhooks, sets it again after a change, and refuses a Pod in
/// which anybody has put another one: our second call must leave it as it finds it.
#[tokio::test]
async fn the_same_pods_are_admitted_where_every_image_is_always_pulled() -> Result<()> {
    let always = Options::default().api_server_args(&["--enable-admission-plugins=AlwaysPullImages"]);
    let cp = installation::plane(always).await?;
    let _installation = Installation::start(&cp, &Installing::default()).await?;
    in_every_order(&cp, true).await
}

async fn in_every_order(cp: &ControlPlane, pulls: bool) -> Result<()> {
    let orders = TURNS.into_iter().flat_map(|first| TURNS.into_iter().map(move |second| (first, second)));
    let trial = |(first, second)| Box::pin(among_neighbours(cp, pulls, first, second));
    let ended: Vec<Result<()>> = futures::stream::iter(orders).map(trial).buffer_unordered(4).collect().await;
    ended.into_iter().collect()
}
