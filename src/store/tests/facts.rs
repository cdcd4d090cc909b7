//! What is kept so that an agent can be called: ports, addresses, readiness.

use serde_json::{Value, json};

use super::*;
use crate::domain::bounds::LARGEST_KAOS;
use crate::store::decode::{Small, Whole};

fn pod(object: &Value) -> PodSeen {
    match kept(Kind::Pod, object) {
        Some(What::Pod(seen)) => seen,
        other => panic!("{other:?}"),
    }
}

fn service(spec: Value) -> ServiceSeen {
    match kept(Kind::Service, &json!({"metadata": {"name": "w"}, "spec": spec})) {
        Some(What::Service(seen)) => *seen,
        other => panic!("{other:?}"),
    }
}

fn of_type(agent_type: &str) -> Value {
    json!({
        "metadata": {"name": "w-1", "labels": {"kagenti.io/type": agent_type}},
        "spec": {"serviceAccountName": "w", "hostNetwork": true,
            "containers": [
                {"name": "agent", "ports": [{"name": "http", "containerPort": 8000}, {"containerPort": 9000, "protocol": "UDP"},
                    {"name": "http", "containerPort": 8001}, {"name": "none"}, {"name": "high", "containerPort": 70_000}]}],
            "initContainers": [
                {"name": "once", "ports": [{"name": "early", "containerPort": 1}]},
                {"name": "proxy", "restartPolicy": "Always", "ports": [{"name": "proxy", "containerPort": 15_006}]}]},
        "status": {"podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}, {"ip": "nonsense"}],
            "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

#[test]
fn of_an_agent_s_pod_is_kept_where_it_is_reached() {
    let endpoint = pod(&of_type("agent")).endpoint.unwrap();
    assert!(endpoint.ready && endpoint.host_network);
    assert_eq!(endpoint.account.as_deref(), Some("w"));
    assert_eq!(endpoint.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.7", "fd00::7"]);
    let ports: Vec<_> = endpoint.ports.iter().map(|port| (&*port.name, port.number)).collect();
    assert_eq!(ports, [("http", 8000), ("http", 8001), ("proxy", 15_006)]);
    assert_eq!([endpoint.port("http"), endpoint.port("early"), endpoint.port("")], [Some(8000), None, None]);
    let bare =
        pod(&json!({"metadata": {"name": "p", "labels": {"kagenti.io/type": "agent"}}, "spec": null, "status": null}));
    assert_eq!(bare.endpoint.as_deref(), Some(&PodEndpoint::default()));
    let mut other = of_type("agent");
    other["status"]["conditions"][0]["status"] = json!("False");
    assert_ne!(pod(&other), pod(&of_type("agent")), "readiness is news");
}

/// There are ten Pods to a workload and more.
#[test]
fn what_the_pods_of_a_workload_have_alike_is_kept_once() {
    let mut pool = Pool::default();
    let mut kept = |name: &str| {
        let mut object = of_type("agent");
        object["metadata"]["name"] = name.into();
        let mut change = change(Kind::Pod, &object);
        pool.share(&mut change);
        match &change.now.unwrap().what {
            What::Pod(seen) => seen.clone(),
            other => panic!("{other:?}"),
        }
    };
    let (one, other) = (kept("w-1"), kept("w-2"));
    assert!(Arc::ptr_eq(&one.agent_type, &other.agent_type));
    let [one, other] = [one.endpoint.unwrap(), other.endpoint.unwrap()];
    assert!(Arc::ptr_eq(&one.ports, &other.ports) && Arc::ptr_eq(&one.account.unwrap(), &other.account.unwrap()));
}

#[test]
fn of_other_pods_nothing_of_it_is_kept() {
    for other in ["tool", "Agent"] {
        let mut object = of_type(other);
        let seen = pod(&object);
        assert!(seen.endpoint.is_none(), "{other}");
        object["status"]["conditions"][0]["status"] = json!("False");
        object["status"]["podIPs"] = json!([]);
        assert_eq!(pod(&object), seen, "{other}: no news");
    }
}

#[test]
fn ports_and_labels_of_a_pod_and_of_a_service_are_bounded() {
    let mut object = of_type("agent");
    let many: Vec<_> = (1..=1_000).map(|number| json!({"name": "x".repeat(100), "containerPort": number})).collect();
    object["spec"]["containers"] = json!([{"name": "a", "ports": many}]);
    assert!(pod(&object).endpoint.unwrap().ports.iter().all(|port| port.number == 15_006), "no name is that long");
    let many: Vec<_> = (1..=1_000).map(|number| json!({"containerPort": number})).collect();
    object["spec"]["containers"] = json!([{"name": "a", "ports": many}]);
    assert_eq!(pod(&object).endpoint.unwrap().ports.len(), crate::store::kinds::pod::PORTS);
    let ports: Vec<_> = (1..=1_000).map(|number| json!({"port": number})).collect();
    let labels: serde_json::Map<_, _> = (0..17).map(|at| (format!("k{at}"), json!("v"))).collect();
    let seen = service(json!({"ports": ports, "selector": labels}));
    assert_eq!(seen.ports.len(), crate::store::kinds::service::PORTS);
    assert_eq!(seen.selector, None, "a part of a selector selects more");
}

/// Of nothing but small parts, which as a tree are fifty times as large: of what may be written in one namespace, one would fill a process.
#[test]
fn a_policy_or_service_that_is_larger_than_anybodys_is_known_and_its_spec_is_not_built() {
    let rules = |count: usize| vec![json!({"from": [{"podSelector": {}}]}); count];
    let policy = |count: usize| {
        let object = json!({"metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": rules(count)}});
        match kept(Kind::NetworkPolicy, &object) {
            Some(What::NetworkPolicy(seen)) => (seen.spec.is_some(), seen.over),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([policy(1), policy(500)], [(true, None); 2]);
    assert_eq!([policy(1_000), policy(10_000)], [(false, Some(Over::Size)); 2], "as far as it is read, and beyond");
    let ports = |count: usize| -> Vec<_> {
        (1..=count).map(|port| json!({"port": port, "name": format!("p{port}")})).collect()
    };
    let of = |count: usize| service(json!({"selector": {"a": "1"}, "ports": ports(count)}));
    assert!(of(100).selector.is_some() && !of(100).ports.is_empty());
    assert_eq!(of(10_000), ServiceSeen::default(), "a part of it would be another");
}

/// The same of our own kinds, whose size admission bounds while it is there; one member of a status takes none of the others away.
#[test]
fn of_an_object_of_ours_that_is_larger_than_any_nothing_large_is_built() {
    let wide = format!("[{}]", vec![r#"{"b":1}"#; LARGEST_KAOS / 7].join(","));
    let text = format!(
        r#"{{"metadata": {{"name": "a"}}, "spec": {{"wide": {wide}}}, "status": {{"card": {wide}, "phase": "Ready"}}}}"#
    );
    let whole: Whole = serde_json::from_str(&text).unwrap();
    assert_eq!(whole.spec.as_ref().map(Small::value), Some(None), "that it was there is known");
    assert_eq!(Value::Object(whole.status.unwrap().into_members()), json!({"phase": "Ready"}));
    for kind in [Kind::Agent, Kind::AgentBuild, Kind::BeeaiAgent, Kind::KaosAgent] {
        let now = change_of(kind, &text).unwrap().now.unwrap();
        let seen = now.what.custom().unwrap();
        assert_eq!((seen.over, &*seen.status), (Some(Over::Size), &json!({"phase": "Ready"})), "{kind:?}");
    }
}

#[test]
fn a_service_leads_to_a_number_or_to_a_name() {
    let seen = service(json!({"selector": {"b": "2", "a": "1"}, "ports": [
        {"name": "x", "port": 9000}, {"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081, "protocol": "UDP"},
        {"port": 0.5}, {"name": "none"}, {"port": 82, "protocol": "SCTP"}, {"port": 83, "protocol": "IP"},
        {"port": 84, "protocol": null}]}));
    let port = |name: &str, port, target, protocol| ServicePort { name: name.into(), port, target, protocol };
    let number = TargetPort::Number;
    assert_eq!(
        *seen.ports,
        [
            port("x", 9000, number(9000), PortProtocol::Tcp),
            port("", 80, TargetPort::Name("http".into()), PortProtocol::Tcp),
            port("", 81, number(8081), PortProtocol::Udp),
            port("", 82, number(82), PortProtocol::Sctp),
            port("", 84, number(84), PortProtocol::Tcp),
        ]
    );
    assert_eq!(
        (seen.selector.unwrap().iter().collect::<Vec<_>>(), seen.leads),
        (vec![("a", "1"), ("b", "2")], Leads::Address)
    );
    assert_eq!(service(json!({"clusterIP": "None"})).leads, Leads::Pods);
    assert_eq!(service(json!({"clusterIP": "None", "type": "ExternalName"})).leads, Leads::Elsewhere);
    for none in
        [json!({}), json!({"selector": {}}), json!({"selector": {"a": 1}}), json!({"selector": [], "ports": {}})]
    {
        let seen = service(none.clone());
        assert_eq!((seen.selector, seen.ports.len()), (None, 0), "{none}");
    }
}

/// Cases 35 to 37: what a workload says of itself.
#[test]
fn cases_035_to_037_a_workload_can_serve_when_it_says_so() {
    let condition = |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status}]});
    for (kind, spec, status, ready) in [
        (Kind::Deployment, json!({}), condition("Available", "True"), true),
        (Kind::Deployment, json!({}), condition("Available", "False"), false),
        (Kind::Deployment, json!({}), json!({"readyReplicas": 1}), false),
        (Kind::StatefulSet, json!({"replicas": 0}), json!({"readyReplicas": 0}), false),
        (Kind::StatefulSet, json!({"replicas": 2}), json!({"readyReplicas": 1}), false),
        (Kind::StatefulSet, json!({"replicas": 2}), json!({"readyReplicas": 2}), true),
        (Kind::StatefulSet, json!({}), json!({"readyReplicas": 1}), true),
        (Kind::DaemonSet, json!({}), json!({"desiredNumberScheduled": 0, "numberReady": 0}), false),
        (Kind::DaemonSet, json!({}), json!({"desiredNumberScheduled": 3, "numberReady": 3}), true),
        (Kind::Sandbox, json!({}), condition("Ready", "True"), true),
        (Kind::Sandbox, json!({}), json!({}), false),
    ] {
        let object = json!({"metadata": {"name": "w"}, "spec": spec, "status": status});
        assert_eq!(workload(kind, &object).unwrap().ready, ready, "{kind:?} {spec} {status}");
    }
}

#[test]
fn the_labels_by_which_an_agent_says_its_protocols_are_kept_of_agents_only() {
    let object = |agent_type: &str| {
        json!({"metadata": {"name": "w", "labels": {"kagenti.io/type": agent_type, "protocol.kagenti.io/a2a": "",
            "app.kubernetes.io/name": "n", "team": "x"}}})
    };
    let keys = |agent_type: &str| {
        let seen = workload(Kind::Deployment, &object(agent_type)).unwrap();
        seen.labels.iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys("agent"), ["app.kubernetes.io/name", "kagenti.io/type", "protocol.kagenti.io/a2a"]);
    assert_eq!(keys("tool"), ["kagenti.io/type"]);
}
