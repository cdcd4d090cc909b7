//! Who is asked: Pods of the workload by uid, Ready, with a network of their own, in turn.

use super::*;

fn asked(cluster: &Cluster, now: Duration) -> String {
    let (_, asks) = plan_at(cluster, &Facts::default(), now);
    asks.first()
        .map(|ask| match &ask.question {
            CardQuestion::Fetch(fetch) => fetch.address.to_string(),
            CardQuestion::Read(read) => read.name.to_string(),
        })
        .unwrap_or_default()
}

/// A15: the address of a Pod that is none of the workload's is never asked, whatever it says.
#[test]
fn only_ready_pods_of_the_workload_with_a_network_of_their_own_are_asked() {
    let mut none = empty();
    none.see(Kind::Deployment, deployment(json!({})));
    none.see(Kind::Service, service(json!([{"port": 8000}])));
    none.see(Kind::ReplicaSet, replica_set("w-1"));
    none.see(Kind::AgentCard, card(json!({})));
    for (what, seen) in [
        ("nobody", None),
        ("not ready", Some(json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}))),
        ("on the node's network", Some(json!({"spec": {"hostNetwork": true}}))),
        ("without an address", Some(json!({"status": {"podIPs": []}}))),
        ("going", Some(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))),
        (
            "of another ReplicaSet of the name",
            Some(json!({"metadata": {"ownerReferences": owned("ReplicaSet", "w-1", "other")}})),
        ),
        ("of nobody", Some(json!({"metadata": {"ownerReferences": null}}))),
    ] {
        if let Some(more) = seen {
            none.see(Kind::Pod, pod("w-1-a", "w-1", "10.244.0.5", more));
        }
        assert_eq!(asked(&none, s(100)), "", "{what}");
        let (_, stored) = carried_out(&card(json!({})), &plan(&none).0);
        assert_eq!(
            (judged(&stored, "Synced"), judged(&stored, "Reachable")),
            (("False", "FetchFailed"), ("False", "NoReadyPod")),
            "{what}"
        );
    }
    none.see(Kind::Pod, pod("w-1-a", "w-1", "10.244.0.5", json!({})));
    assert_eq!(asked(&none, s(100)), "10.244.0.5:8000");
    assert_eq!(none.touched_of(ROW, Kind::Pod, &Key::new("team", "w-1-a")), [Key::new("team", CARD)]);
    none.see(Kind::Pod, pod("w-1-a", "w-1", "fd00::5", json!({})));
    assert_eq!(asked(&none, s(100)), "[fd00::5]:8000");
}

/// A Pod of two families is asked at the address to which its Service leads: an agent that listens at 0.0.0.0 alone has no other.
#[test]
fn a_pod_is_asked_at_the_address_of_its_services_family() {
    let (four, six) = ("10.244.0.5:8000", "[fd00::5]:8000");
    for (families, addresses, wanted) in [
        (json!(null), ["fd00::5", "10.244.0.5"], six),
        (json!([]), ["10.244.0.5", "fd00::5"], four),
        (json!(["IPv4"]), ["fd00::5", "10.244.0.5"], four),
        (json!(["IPv4", "IPv6"]), ["fd00::5", "10.244.0.5"], four),
        (json!(["IPv6"]), ["fd00::5", "10.244.0.5"], six),
        (json!(["IPv6", "IPv4"]), ["10.244.0.5", "fd00::5"], six),
        (json!(["IPv4"]), ["fd00::5", "fd00::6"], six),
        (json!(["IPv5"]), ["10.244.0.5", "fd00::5"], four),
        (json!("IPv6"), ["10.244.0.5", "fd00::5"], four),
    ] {
        let mut cluster = cluster();
        let mut service = service(json!([{"port": 8000}]));
        service["spec"]["ipFamilies"] = families.clone();
        cluster.see(Kind::Service, service);
        let [first, second] = addresses.map(|ip| json!({"ip": ip}));
        let more = json!({"status": {"podIPs": [first, second]}});
        cluster.see(Kind::Pod, pod("w-1-a", "w-1", "10.0.0.1", more));
        assert_eq!(asked(&cluster, s(100)), wanted, "{families} {addresses:?}");
    }
}

/// Cases 40 and 41, and the annotation.
#[test]
fn case_040_041_the_port_is_the_services_and_where_it_leads_is_the_pods() {
    for (ports, annotation, wanted) in [
        (json!([]), None, "10.244.0.5:8000"),
        (json!([{"port": 80, "targetPort": 8080}]), None, "10.244.0.5:8080"),
        (json!([{"name": "x", "port": 9000}, {"name": "http", "port": 8000}]), None, "10.244.0.5:8000"),
        (json!([{"name": "http", "port": 8000}, {"name": "a2a", "port": 7000}]), None, "10.244.0.5:7000"),
        (json!([{"name": "x", "port": 9000}, {"name": "y", "port": 8000}]), None, "10.244.0.5:9000"),
        (json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "y", "port": 8000}]), None, "10.244.0.5:8000"),
        (json!([{"name": "a2a", "port": 80, "targetPort": "a2a"}]), None, "10.244.0.5:9001"),
        (json!([{"name": "a2a", "port": 80, "targetPort": "none"}]), None, ""),
        (json!([{"name": "x", "port": 9000}, {"name": "http", "port": 8000}]), Some("9000"), "10.244.0.5:9000"),
        (json!([{"name": "x", "port": 9000}, {"name": "http", "port": 8000}]), Some("x"), "10.244.0.5:9000"),
        (json!([{"name": "x", "port": 9000}]), Some("443"), ""),
        (json!([{"name": "dns", "port": 53, "protocol": "UDP"}]), None, ""),
    ] {
        let mut cluster = cluster();
        cluster.see(Kind::Service, service(ports.clone()));
        if let Some(port) = annotation {
            cluster.see(Kind::Deployment, deployment(json!({"metadata": {"annotations": {"kagenti.io/port": port}}})));
        }
        assert_eq!(asked(&cluster, s(100)), wanted, "{ports} {annotation:?}");
    }
}

/// B6: one Pod per period, in turn; the card that is shown is the newest revision's.
#[test]
fn pods_are_asked_in_turn_and_the_newest_revision_is_shown() {
    let mut cluster = cluster();
    cluster.see(Kind::ReplicaSet, replica_set("w-2"));
    let newer = json!({"metadata": {"creationTimestamp": "2026-02-01T00:00:00Z"}});
    cluster.see(Kind::Pod, pod("w-2-b", "w-2", "10.244.0.7", newer.clone()));
    cluster.see(Kind::Pod, pod("w-2-a", "w-2", "10.244.0.6", newer));
    let turns: Vec<_> = (0..60).map(|turn| asked(&cluster, s(turn * 10))).collect();
    let mut order = turns.clone();
    order.dedup();
    for window in order.windows(3) {
        let mut three = window.to_vec();
        three.sort();
        assert_eq!(three, ["10.244.0.5:8000", "10.244.0.6:8000", "10.244.0.7:8000"], "each once in three periods");
    }
    // Whoever answered first, the newest revision's first Pod by uid is shown.
    let (_, first) = plan_at(&cluster, &Facts::default(), s(100));
    let CardQuestion::Fetch(now) = &first[0].question else { panic!("a Pod is asked") };
    let mut facts = Facts::default();
    for (address, name) in [("10.244.0.5:8000", "old"), ("10.244.0.6:8000", "new"), ("10.244.0.7:8000", "other")] {
        let pod = match name {
            "old" => "pod-w-1-a",
            "new" => "pod-w-2-a",
            _ => "pod-w-2-b",
        };
        let fetch = super::super::Fetch { address: address.parse().unwrap(), pod: pod.into(), ..now.clone() };
        let value = Ok(unsigned(&json!({"name": name}), &fetch.authority));
        facts = facts.with(CardQuestion::Fetch(fetch), Fact { value, asked: s(100), at: s(100), failures: 0 });
    }
    for now in [100, 130, 160, 190] {
        let (plan, asks) = plan_at(&cluster, &facts, s(now));
        assert_eq!(carried_out(&card(json!({})), &plan).1["status"]["card"]["name"], "new", "{now}");
        assert_eq!(asks.len(), 3, "what each said last is kept");
        assert_eq!(asks.iter().filter(|ask| ask.since == s(0)).count(), 2, "one is asked");
    }
}
