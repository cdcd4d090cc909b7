//! At which port of its Service an agent's card is asked for: annotation `kagenti.io/port`, on the Service before the workload; and by which name.

use super::*;
use crate::config::schema::Platform;

/// The address that is asked, and how the Service is named for it.
fn asked(cluster: &Cluster) -> Option<(String, String)> {
    let (_, asks) = plan_at(cluster, &Facts::default(), s(100));
    match &asks.first()?.question {
        CardQuestion::Fetch(fetch) => Some((fetch.address.to_string(), fetch.authority.to_string())),
        CardQuestion::Read(_) => None,
    }
}

fn cluster_of(ports: &Value, of_service: Option<&str>, of_workload: Option<&str>) -> Cluster {
    let mut cluster = cluster();
    let mut service = service(ports.clone());
    if let Some(port) = of_service {
        service["metadata"]["annotations"] = json!({"kagenti.io/port": port});
    }
    cluster.see(Kind::Service, service);
    if let Some(port) = of_workload {
        cluster.see(Kind::Deployment, deployment(json!({"metadata": {"annotations": {"kagenti.io/port": port}}})));
    }
    cluster
}

#[test]
fn the_service_says_at_which_of_its_ports_before_the_workload_does() {
    let two = json!([{"name": "http", "port": 8000}, {"name": "x", "port": 9000, "targetPort": 9100}]);
    let udp = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 8000}]);
    let (http, x) = (Some((8000, 8000)), Some((9100, 9000)));
    for (ports, of_service, of_workload, wanted) in [
        (&two, None, None, http),
        (&two, Some("9000"), None, x),
        (&two, Some("9000"), Some("8000"), x),
        (&two, Some("8000"), Some("x"), http),
        (&two, None, Some("x"), x),
        // What is no port's number says nothing: the workload's word counts.
        (&two, Some("x"), None, http),
        (&two, Some("0"), Some("9000"), x),
        (&two, Some("65536"), Some("9000"), x),
        (&two, Some(""), Some("9000"), x),
        // A port that the Service does not have is nobody's, whatever the workload says.
        (&two, Some("443"), None, None),
        (&two, Some("443"), Some("9000"), None),
        (&udp, Some("53"), None, None),
        (&udp, Some("8000"), None, http),
        (&json!([]), Some("9000"), None, Some((9000, 9000))),
    ] {
        let wanted = wanted.map(|(port, shown): (u16, u16)| {
            (format!("10.244.0.5:{port}"), format!("w.team.svc.cluster.local:{shown}"))
        });
        let found = asked(&cluster_of(ports, of_service, of_workload));
        assert_eq!(found, wanted, "{ports} {of_service:?} {of_workload:?}");
    }
}

/// A change of the annotation alone is news: the card is then asked for elsewhere.
#[test]
fn an_annotation_that_the_service_gets_later_counts() {
    let ports = json!([{"name": "http", "port": 8000}, {"name": "x", "port": 9000}]);
    let mut cluster = cluster_of(&ports, None, None);
    assert_eq!(asked(&cluster).unwrap().0, "10.244.0.5:8000");
    let mut service = service(ports);
    service["metadata"]["annotations"] = json!({"kagenti.io/port": "9000"});
    service["metadata"]["resourceVersion"] = json!("13");
    cluster.see(Kind::Service, service);
    assert_eq!(asked(&cluster).unwrap().0, "10.244.0.5:9000");
    assert_eq!(cluster.touched_of(ROW, Kind::Service, &Key::new("team", "w")), [Key::new("team", CARD)]);
}

/// In a cluster of another DNS domain a Service has no other name, for who is asked by it and for who is shown where the agent is.
#[test]
fn case_043_the_name_of_the_service_ends_with_the_domain_of_the_cluster() {
    for (keys, domain) in [("", "cluster.local"), ("kaos: {clusterDomain: corp.example}\n", "corp.example")] {
        let mut cluster = cluster();
        let text = format!("images: {{envoyProxy: e, proxyInit: i, spiffeHelper: s, clientRegistration: r}}\n{keys}");
        cluster.facts.platform = Arc::new(Platform::parse(&text, "config.yaml").unwrap());
        let authority = format!("w.team.svc.{domain}:8000");
        assert_eq!(asked(&cluster).unwrap().1, authority);
        // Whose card names it so names its own Service.
        let facts = answer(&cluster, s(100), Ok(json!({"name": "A", "url": format!("http://{authority}/rpc")})));
        let (told, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
        assert_eq!(told, [], "{domain}");
        assert_eq!(object["status"]["card"]["url"], format!("http://{authority}"));
        assert_eq!(object["status"]["endpoints"][0]["url"], format!("http://{authority}/rpc"));
    }
}
