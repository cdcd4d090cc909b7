//! Who is meant by what was written.

use serde_json::{Value, json};

use super::population::Population;
use super::target::{Found, Wanted, absent, find};

fn pod(namespace: &str, name: &str, labels: &Value, owner: Option<(&str, &str)>) -> Value {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|(kind, name)| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true, "uid": format!("{kind}-{name}")}))
        .collect();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1", "labels": labels, "ownerReferences": owners},
        "spec": {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIPs": [{"ip": format!("10.0.0.{}", name.len())}]}})
}

fn set(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("StatefulSet-{name}"), "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": labels},
            "spec": {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i"}]}}}})
}

fn everybody() -> Population {
    let mut population = Population::default();
    let service = |name: &str, target: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "team", "name": name},
            "spec": {"selector": {"app": "db"}, "ports": [{"name": "sql", "port": 5432, "targetPort": target}]}})
    };
    for object in [
        pod("team", "db-0", &json!({"app": "db"}), Some(("StatefulSet", "db"))),
        pod("team", "db-1", &json!({"app": "db"}), Some(("StatefulSet", "db"))),
        pod("team", "both", &json!({}), None),
        pod("team", "both-0", &json!({}), Some(("StatefulSet", "both"))),
        set("team", "empty", &json!({"app": "empty"})),
        set("team", "db", &json!({"app": "db"})),
        service("data", json!("http")),
        service("data2", json!(9000)),
    ] {
        population.observe(&object, "");
    }
    population
}

/// What is found, in words: kind, name and ports of each Pod.
fn found(text: &str) -> Result<String, String> {
    let population = everybody();
    let settled = population.settle();
    let wanted = Wanted::read(text, "team").map_err(|error| error.to_string())?;
    let found = find(&wanted, &settled, &population).map_err(|error| error.to_string())?;
    Ok(match found {
        None => return Err(absent(&wanted, &settled)),
        Some(Found::Address(address, ports)) => {
            format!("{address} {}", ports.map_or_else(|| "any".to_owned(), |p| p.to_string()))
        }
        Some(Found::Pods { of, pods }) => {
            let ports = |ports: &Option<crate::policy::ports::PortSet>| {
                ports.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string)
            };
            let each: Vec<_> = pods
                .iter()
                .map(|(pod, wanted)| format!("{} {}", settled.world.pods()[*pod].name, ports(wanted)))
                .collect();
            format!("{} {}: {}", of.1, of.2, each.join("; "))
        }
    })
}

#[test]
fn names_kinds_services_and_addresses_are_found() {
    for (text, wanted) in [
        ("db", "StatefulSet db: db-0 any; db-1 any"),
        ("team/db:8080", "StatefulSet db: db-0 8080/TCP; db-1 8080/TCP"),
        ("team/db-0:53/udp", "Pod db-0: db-0 53/UDP"),
        ("team/db-0:http", "Pod db-0: db-0 8080/TCP"),
        ("team/sts/both", "StatefulSet both: both-0 any"),
        ("team/pod/both", "Pod both: both any"),
        ("team/empty", "StatefulSet empty: empty any"),
        ("team/data:5432", "Service data: db-0 8080/TCP; db-1 8080/TCP"),
        ("team/svc/data2:sql", "Service data2: db-0 9000/TCP; db-1 9000/TCP"),
        ("10.0.0.1:443", "10.0.0.1 443/TCP"),
        ("[fd00::1]:53/UDP", "fd00::1 53/UDP"),
        ("fd00::1", "fd00::1 any"),
    ] {
        assert_eq!(found(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn what_cannot_be_meant_is_said() {
    for (text, wanted) in [
        ("team/both", "say which: team/statefulset/both, team/pod/both"),
        ("team/bd", "did you mean team/db?"),
        ("team/deployment/db", "no deployment is called team/db"),
        ("elsewhere/db", "namespace elsewhere has no Pods"),
        ("team/db:htpp", "calls a port htpp"),
        ("team/data:80", "it has 5432/TCP"),
        ("team/data:0", "is not a port"),
        ("team/data:1/ICMP", "is not a protocol"),
        ("team/node/x", "node is not a type that makes Pods"),
        ("a/b/c/d", "is not NAMESPACE/NAME"),
        ("team/", "is not NAMESPACE/NAME"),
        ("10.0.0.1:http", "an address has no port called http"),
        ("[fd00::1", "the bracket is not closed"),
    ] {
        let said = found(text).unwrap_err();
        assert!(said.contains(wanted), "{text}: {said}");
    }
}
