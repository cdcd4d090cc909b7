//! Verdicts of others, stored in `vectors/`: the truth tables of Kubernetes' own suite of network policies, and 600 worlds made at random with what the Cyclonus
//! engine says of each pair and port. `webhook-tests/peers/reach/vectors` makes the files anew.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::policy::address;
use crate::policy::matrix::Matrix;
use crate::policy::network_policy::Direction;
use crate::policy::ports::PortSet;

#[derive(Deserialize)]
struct Suite {
    expectations: Vec<Expectation>,
}

#[derive(Deserialize)]
struct Expectation {
    case: String,
    namespaces: Vec<Value>,
    pods: Vec<Value>,
    policies: Vec<Value>,
    protocol: String,
    port: u16,
    table: Vec<String>,
}

/// Every truth table of the suite, but for what a Pod says to itself, which the suite leaves open as well.
#[test]
fn truth_tables_of_the_kubernetes_suite() {
    let suite: Suite = serde_json::from_str(include_str!("vectors/kubernetes.json")).unwrap();
    assert!(suite.expectations.len() >= 45, "{}", suite.expectations.len());
    let mut cut = 0;
    for one in suite.expectations {
        let typed = |kind: &str, objects: Vec<Value>| {
            let kind = kind.to_owned();
            objects.into_iter().map(move |mut object| {
                object["kind"] = json!(kind);
                object
            })
        };
        let objects: Vec<_> = typed("Namespace", one.namespaces)
            .chain(typed("Pod", one.pods))
            .chain(typed("NetworkPolicy", one.policies))
            .collect();
        let world = world(&objects);
        let protocol = Protocol::of(&one.protocol).unwrap();
        let matrix = Matrix::of(&world);
        for (from, row) in one.table.iter().enumerate() {
            for (to, expected) in row.chars().enumerate().filter(|&(to, _)| to != from) {
                let (a, b) = (&world.pods()[from], &world.pods()[to]);
                let said = reach(&world, Party::Pod(a), Party::Pod(b)).ports().unwrap();
                let reached = said.contains(protocol, one.port);
                assert_eq!(reached, expected == '.', "{}: {} to {}:{}", one.case, a.title(), b.title(), one.port);
                assert_eq!(matrix.ports(from, to), Some(said), "{}: {} to {}", one.case, a.title(), b.title());
                cut += usize::from(!reached);
            }
        }
    }
    assert!(cut > 100, "{cut} pairs are cut");
}

#[derive(Deserialize)]
struct Random {
    clusters: Vec<Cluster>,
    probes: Vec<Probe>,
    worlds: Vec<RandomWorld>,
}

#[derive(Deserialize)]
struct Cluster {
    namespaces: Value,
    pods: Vec<Value>,
    outside: Vec<String>,
}

#[derive(Deserialize)]
struct Probe {
    protocol: String,
    port: u16,
}

#[derive(Deserialize)]
struct RandomWorld {
    cluster: usize,
    policies: Vec<Value>,
    egress: String,
    ingress: String,
}

fn bit(hex: &str, at: usize) -> bool {
    let digit = u8::from_str_radix(&hex[at / 4..=at / 4], 16).unwrap();
    digit & (8 >> (at % 4)) != 0
}

fn objects(cluster: &Cluster, policies: &[Value]) -> Vec<Value> {
    let namespaces = cluster.namespaces.as_object().unwrap().iter();
    let namespaces =
        namespaces.map(|(name, labels)| json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
    let pods = cluster.pods.iter().map(|pod| {
        json!({"kind": "Pod", "metadata": {"namespace": pod["namespace"], "name": pod["name"], "labels": pod["labels"]},
               "spec": {"containers": [{"ports": pod["ports"]}]}, "status": {"podIPs": [{"ip": pod["address"]}]}})
    });
    let policies = policies.iter().cloned().map(|mut policy| {
        policy["kind"] = json!("NetworkPolicy");
        policy
    });
    namespaces.chain(pods).chain(policies).collect()
}

/// Both sides of every pair of Pods and addresses, for every probed port, are what the Cyclonus engine says.
#[test]
fn random_worlds_of_the_cyclonus_engine() {
    let random: Random = serde_json::from_str(include_str!("vectors/cyclonus.json")).unwrap();
    assert!(random.worlds.len() >= 500, "{}", random.worlds.len());
    let (mut allowed, mut cut) = (0, 0);
    for (number, one) in random.worlds.iter().enumerate() {
        let cluster = &random.clusters[one.cluster];
        let world = world(&objects(cluster, &one.policies));
        let outside = cluster.outside.iter().map(|text| Party::Address(address::read(text).unwrap()));
        let parties: Vec<_> = world.pods().iter().map(Party::Pod).chain(outside).collect();
        let matrix = Matrix::of(&world);
        let mut at = 0;
        for (from, &sender) in parties.iter().enumerate() {
            for (to, &target) in parties.iter().enumerate() {
                if from == to || (sender.pod().is_none() && target.pod().is_none()) {
                    continue;
                }
                let Reach::Paths(paths) = reach(&world, sender, target) else {
                    panic!("world {number}: {from} to {to}")
                };
                let [path] = &paths[..] else { panic!("world {number}: {from} to {to}: one family") };
                let side = |side: &Option<crate::policy::side::Side>| {
                    side.as_ref().map_or_else(PortSet::all, |side| side.ports.clone())
                };
                let (out, into) = (side(&path.egress), side(&path.ingress));
                if sender.pod().is_some() && target.pod().is_some() {
                    assert_eq!(matrix.ports(from, to).as_ref(), Some(&path.ports), "world {number}: {from} to {to}");
                }
                for probe in &random.probes {
                    let protocol = Protocol::of(&probe.protocol).unwrap();
                    for (direction, hex, own) in
                        [(Direction::Egress, &one.egress, &out), (Direction::Ingress, &one.ingress, &into)]
                    {
                        let wanted = bit(hex, at);
                        assert_eq!(
                            own.contains(protocol, probe.port),
                            wanted,
                            "world {number}, {direction:?} from {from} to {to} on {}/{}: {}",
                            probe.port,
                            probe.protocol,
                            json!(one.policies)
                        );
                        if wanted { allowed += 1 } else { cut += 1 }
                    }
                    at += 1;
                }
            }
        }
    }
    assert!(allowed > 100_000 && cut > 50_000, "{allowed} let through, {cut} not");
}
