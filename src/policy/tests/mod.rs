//! What policies mean, tried on small worlds: by hand (`rules`), by what must hold of every world (`properties`), and against engines of others
//! (`oracle`).

mod cluster;
mod declared;
mod opening;
mod oracle;
mod properties;
mod reading;
mod rules;

use serde_json::{Value, json};

use super::network_policy::NetworkPolicy;
use super::pod::{Pod, labels};
use super::ports::Protocol;
use super::reach::{Reach, reach};
use super::side::Party;
use super::world::World;

/// A world of JSON objects; everything in them must be readable.
fn world(objects: &[Value]) -> World {
    let of = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    World::new(
        of("Namespace").map(|object| (name(object), labels(object))),
        of("Pod").map(Pod::read).collect(),
        of("NetworkPolicy").map(|object| NetworkPolicy::read(object, "default").unwrap()),
    )
}

/// A Pod with label `app` of its own name, that is called `http` on port 80 and `dns` on port 53 of UDP.
fn pod(namespace: &str, name: &str, addresses: &[&str]) -> Value {
    let addresses: Vec<_> = addresses.iter().map(|address| json!({"ip": address})).collect();
    json!({
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}},
        "spec": {"containers": [{"ports": [
            {"name": "http", "containerPort": 80},
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
        ]}]},
        "status": {"phase": "Running", "podIPs": addresses},
    })
}

fn policy(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"kind": "NetworkPolicy", "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

/// The Pod of that title.
fn find<'w>(world: &'w World, title: &str) -> &'w Pod {
    world.pods().iter().find(|pod| pod.title() == title).unwrap()
}

/// What is said from one Pod to another.
fn between(world: &World, from: &str, to: &str) -> Reach {
    reach(world, Party::Pod(find(world, from)), Party::Pod(find(world, to)))
}

/// The ports from one Pod to another, in words.
fn ports(world: &World, from: &str, to: &str) -> String {
    between(world, from, to).ports().map_or_else(|| "not judged".to_owned(), |ports| ports.to_string())
}

/// Whether that TCP port is reached.
fn tcp(world: &World, from: &str, to: &str, port: u16) -> bool {
    between(world, from, to).ports().unwrap().contains(Protocol::Tcp, port)
}
