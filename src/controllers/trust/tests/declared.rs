//! Where only what is declared is open: who names whom, and who may say so.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Scene;
use crate::controllers::network_policy;
use crate::controllers::scaffold::fixtures::workload;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

const DECLARED: &str = "cards: {verifiedPeers: declared}\n";
const GOOD: &str = "good-signature-policy";

fn routes(namespace: &str, text: &str) -> Value {
    json!({"metadata": {"name": "authproxy-routes", "namespace": namespace, "uid": format!("routes-{namespace}")},
        "data": {"routes.yaml": text}})
}

fn service(namespace: &str, name: &str, port: u16) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}")}, "spec": {
        "selector": {"app": name}, "ports": [{"port": port, "targetPort": port + 1}, {"port": 9999}]}})
}

fn namespace(name: &str, enabled: bool) -> Value {
    let labels = if enabled { json!({"kagenti-enabled": "true"}) } else { json!({}) };
    json!({"metadata": {"name": name, "uid": name, "labels": labels}})
}

/// The rules of the good agent's policy for a direction.
fn rules(scene: &Scene, direction: &str) -> Vec<Value> {
    scene.spec(GOOD).unwrap()[direction].as_array().cloned().unwrap_or_default()
}

/// Which declarations made the good agent's rules.
fn says(scene: &Scene) -> Value {
    let annotations = &scene.objects[&(Kind::NetworkPolicy, GOOD.to_owned())]["metadata"]["annotations"];
    annotations
        .get("agent.kagenti.dev/declared")
        .map_or(Value::Null, |says| serde_json::from_str(says.as_str().unwrap()).unwrap())
}

fn enforced(platform: &str) -> Scene {
    let mut scene = Scene::new(platform);
    scene.level("enforced");
    scene.put(Kind::Service, service("kube-system", "kube-dns", 53));
    scene
}

#[test]
fn a_verified_agent_reaches_whom_its_namespace_names_and_what_every_agent_reaches() {
    let mut scene = enforced(DECLARED);
    scene.put(Kind::Service, service("shop", "pay", 8080));
    scene.put(Kind::Service, service("team", "stock", 80));
    scene.put(Kind::Service, service("iam", "kc", 8443));
    let text = "- {host: pay.shop.svc.cluster.local:8080, token_url: 'https://kc.iam:8443/t'}\n- {host: stock}\n- {host: 10.1.2.3}\n";
    scene.put(Kind::ConfigMap, routes("team", text));
    scene.settle();
    let said = json!(rules(&scene, "egress")).to_string();
    let to = |namespace: &str, app: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}, "podSelector": {"matchLabels": {"app": app}}});
    let egress = rules(&scene, "egress");
    let ports = |wanted: &Value| {
        let rule = egress.iter().find(|rule| rule["to"][0] == *wanted).unwrap_or_else(|| panic!("{wanted}: {said}"));
        let ports = rule["ports"].as_array().unwrap().iter().map(|port| port["port"].as_u64().unwrap());
        ports.collect::<Vec<_>>()
    };
    assert_eq!(ports(&to("shop", "pay")), [8081], "the port that is named, where it leads");
    assert_eq!(ports(&to("team", "stock")), [81, 9999], "all that it has, where none is named");
    assert_eq!(ports(&to("iam", "kc")), [8444]);
    assert_eq!(ports(&json!({"ipBlock": {"cidr": "10.1.2.3/32"}})), [80, 443]);
    assert!(!ports(&to("kube-system", "kube-dns")).is_empty(), "names are resolved");
    assert!(!egress.contains(&json!({})), "nothing opens all: {said}");
    assert!(!said.contains("app\":\"good\""));
    let by = says(&scene)["egress"].to_string();
    assert!(
        by.contains("route pay.shop:8080 in ConfigMap authproxy-routes") && by.contains("token_url at kc.iam:8443"),
        "{by}"
    );
    // Who is not verified gets nothing of it.
    let bad = scene.spec("bad-signature-policy").unwrap()["egress"].to_string();
    assert!(!bad.contains("shop") && !bad.contains("10.1.2.3"), "{bad}");
    assert_eq!(scene.settle(), Vec::<String>::new(), "at rest nothing is written");
    assert!(!scene.told.contains(&Reason::DeclaredNotOpened));
}

/// A port of a Service leads to a port of the same protocol, by its number and by the name that the Pods give it.
#[test]
fn the_ports_of_a_service_are_open_over_the_protocol_that_each_has() {
    let mut scene = enforced(DECLARED);
    let ports = json!([
        {"name": "web", "port": 80, "targetPort": "http"}, {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "signal", "port": 3868, "targetPort": 3869, "protocol": "SCTP"},
        {"name": "named", "port": 3870, "targetPort": "peer", "protocol": "SCTP"}]);
    let mut stock = service("team", "stock", 80);
    stock["spec"]["ports"] = ports;
    scene.put(Kind::Service, stock);
    scene.put(Kind::ConfigMap, routes("team", "- {host: stock}\n"));
    scene.settle();
    let egress = rules(&scene, "egress");
    let rule = egress.iter().find(|rule| rule["to"][0]["podSelector"]["matchLabels"]["app"] == "stock").unwrap();
    let open: BTreeSet<String> =
        rule["ports"].as_array().unwrap().iter().map(|port| format!("{} {}", port["protocol"], port["port"])).collect();
    let wanted = [r#""SCTP" "peer""#, r#""SCTP" 3869"#, r#""TCP" "http""#, r#""UDP" 53"#];
    assert_eq!(open, BTreeSet::from(wanted.map(str::to_owned)), "{rule}");
    assert_eq!(scene.settle(), Vec::<String>::new(), "at rest nothing is written");
}

/// Behind the name of a headless Service are the Pods themselves, so a port that is named is one of theirs; behind an address it is the Service's alone.
#[test]
fn a_headless_service_is_reached_at_the_port_at_which_its_pods_listen_too() {
    for (headless, host, wanted) in [
        (true, "stock:80", &[80_u64, 81][..]),
        (true, "stock:81", &[81]),
        (true, "stock:9999", &[9999]),
        (true, "stock:82", &[]),
        (true, "stock", &[80, 81, 9999]),
        (false, "stock:80", &[81]),
        (false, "stock:81", &[]),
    ] {
        let mut scene = enforced(DECLARED);
        let mut stock = service("team", "stock", 80);
        if headless {
            stock["spec"]["clusterIP"] = "None".into();
        }
        scene.put(Kind::Service, stock);
        scene.put(Kind::ConfigMap, routes("team", &format!("- {{host: '{host}'}}\n")));
        scene.settle();
        let egress = rules(&scene, "egress");
        let to = egress.iter().filter(|rule| rule["to"][0]["podSelector"]["matchLabels"]["app"] == "stock");
        let ports = to.flat_map(|rule| rule["ports"].as_array().unwrap()).map(|port| port["port"].as_u64().unwrap());
        assert_eq!(ports.collect::<Vec<_>>(), wanted, "{headless} {host}");
        assert_eq!(scene.told.contains(&Reason::DeclaredNotOpened), wanted.is_empty(), "{headless} {host}");
    }
}

#[test]
fn what_names_no_place_stays_closed_and_is_told() {
    let mut scene = enforced(DECLARED);
    let before = {
        scene.settle();
        rules(&scene, "egress")
    };
    scene.told.clear();
    scene.put(
        Kind::ConfigMap,
        routes("team", "- {host: '*'}\n- {host: api.example.com}\n- {host: none}\n- {host: 169.254.169.254}\n- 5\n"),
    );
    assert_eq!(scene.settle(), Vec::<String>::new());
    assert_eq!(rules(&scene, "egress"), before);
    assert!(scene.told.contains(&Reason::DeclaredNotOpened), "{:?}", scene.told);
    // Nor is anything opened by a text that is no list, or by one that is too large.
    for text in ["routes: [{host: 10.0.0.1}]".to_owned(), format!("- {{host: 10.0.0.1}}\n#{}", "x".repeat(20_000))] {
        scene.put(Kind::ConfigMap, routes("team", &text));
        assert_eq!(scene.settle(), Vec::<String>::new());
    }
}

#[test]
fn who_names_an_agent_reaches_it_while_its_namespace_is_enabled_and_it_is_verified() {
    let mut scene = enforced(DECLARED);
    scene.put(Kind::Service, service("team", "good", 8000));
    scene.settle();
    let operator_alone = rules(&scene, "ingress");
    assert_eq!(operator_alone.len(), 1, "{operator_alone:?}");

    // Another namespace names it, and nobody who may decide for both has let it.
    scene.put(Kind::Namespace, namespace("shop", false));
    scene.put(Kind::ConfigMap, routes("shop", "- {host: good.team:8000}\n- {host: bad.team}\n"));
    assert_eq!(scene.settle(), Vec::<String>::new());

    scene.put(Kind::Namespace, namespace("shop", true));
    assert_eq!(scene.settle(), [format!("edit {GOOD} open")]);
    let caller = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop", "kagenti-enabled": "true"}},
        "podSelector": {"matchLabels": {"agent.kagenti.dev/signature-verified": "true"}},
    });
    let rule = json!({"from": [caller], "ports": [{"protocol": "TCP", "port": 8001}]});
    assert_eq!(rules(&scene, "ingress")[1], rule);
    assert_eq!(
        says(&scene)["ingress"]["1"],
        json!(["route good.team:8000 in ConfigMap authproxy-routes of namespace shop"])
    );
    assert_eq!(scene.settle(), Vec::<String>::new());

    // Its own namespace's agents, each of them, and no Pod that is not verified.
    scene.put(Kind::ConfigMap, routes("team", "- {host: good}\n"));
    assert_eq!(scene.settle(), [format!("edit {GOOD} open")]);
    let own =
        rules(&scene, "ingress").into_iter().find(|rule| rule["from"][0].get("namespaceSelector").is_none()).unwrap();
    assert_eq!(
        own["from"],
        json!([{"podSelector": {"matchLabels": {"agent.kagenti.dev/signature-verified": "true"}}}])
    );

    scene.put(Kind::ConfigMap, routes("shop", "[]"));
    scene.put(Kind::ConfigMap, routes("team", "[]"));
    assert_eq!(scene.settle(), [format!("edit {GOOD} open")]);
    assert_eq!(rules(&scene, "ingress"), operator_alone, "nobody names it any more");
}

/// A Service whose labels are not those of the agent's selector, and that has another name, is not the agent's.
#[test]
fn a_service_that_leads_elsewhere_names_nobody() {
    let mut scene = enforced(DECLARED);
    let mut other = service("team", "front", 8000);
    scene.put(Kind::Service, other.clone());
    scene.put(Kind::ConfigMap, routes("team", "- {host: front}\n"));
    scene.settle();
    assert_eq!(rules(&scene, "ingress").len(), 1);
    other["spec"]["selector"] = json!({"app": "good"});
    scene.put(Kind::Service, other);
    assert_eq!(scene.settle(), [format!("edit {GOOD} open")]);
    assert_eq!(rules(&scene, "ingress").len(), 2);
}

#[test]
fn another_value_and_back_is_one_write_of_the_same_policy_and_nobody_is_cut_in_between() {
    let mut scene = enforced("");
    scene.put(Kind::Service, service("team", "good", 8000));
    scene.put(Kind::ConfigMap, routes("team", "- {host: good}\n"));
    scene.settle();
    let uid = |scene: &Scene| scene.objects[&(Kind::NetworkPolicy, GOOD.to_owned())]["metadata"]["uid"].clone();
    let before = (scene.spec(GOOD).cloned(), uid(&scene));
    assert_eq!(says(&scene), Value::Null);
    for platform in [DECLARED, ""] {
        scene.cluster.configure(platform);
        assert_eq!(scene.settle(), [format!("edit {GOOD} open")]);
        scene.nobody_verified_is_cut();
        assert_eq!(scene.settle(), Vec::<String>::new());
        assert_eq!(uid(&scene), before.1);
        assert_eq!(says(&scene).is_null(), platform.is_empty());
    }
    assert_eq!(scene.spec(GOOD).cloned(), before.0);
}

#[test]
fn who_is_not_verified_any_more_has_nothing_of_what_is_declared() {
    let mut scene = enforced(DECLARED);
    scene.put(Kind::Service, service("shop", "pay", 8080));
    scene.put(Kind::ConfigMap, routes("team", "- {host: pay.shop}\n"));
    scene.settle();
    assert!(json!(rules(&scene, "egress")).to_string().contains("shop"));
    scene.card("good", false);
    scene.settle();
    assert!(!json!(rules(&scene, "egress")).to_string().contains("shop"));
    assert_eq!(says(&scene), Value::Null);
    assert_eq!(scene.settle(), Vec::<String>::new());
}

#[test]
fn where_traces_go_is_declared_by_the_agent_runtime() {
    let mut scene = enforced(DECLARED);
    scene.put(Kind::Service, service("watch", "collector", 4317));
    let runtime = |endpoint: &str| {
        json!({"metadata": {"name": "r", "namespace": "team", "uid": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {
            "type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "good"}, "trace": {"endpoint": endpoint}}})
    };
    scene.put(Kind::AgentRuntime, runtime("http://collector.watch.svc:4317"));
    scene.settle();
    let by = says(&scene)["egress"].to_string();
    assert!(by.contains("trace.endpoint of AgentRuntime r"), "{by}");
    assert!(json!(rules(&scene, "egress")).to_string().contains("4318"));
    scene.told.clear();
    scene.put(Kind::AgentRuntime, runtime("http://169.254.169.254:80"));
    scene.settle();
    assert!(!json!(rules(&scene, "egress")).to_string().contains("169.254.169.254"));
    assert!(scene.told.contains(&Reason::DeclaredNotOpened));
}

#[test]
fn the_links_of_kaos_open_both_ends_and_those_alone() {
    let mut scene = enforced(DECLARED);
    let agent = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "team", "uid": format!("k-{name}"), "generation": 1}, "spec": spec});
    for (name, spec) in [
        ("clerk", json!({"modelAPI": "llm", "model": "x", "agentNetwork": {"access": ["auditor"]}})),
        ("auditor", json!({"modelAPI": "llm", "model": "x"})),
    ] {
        scene.put(Kind::KaosAgent, agent(name, spec));
        let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": name, "uid": format!("k-{name}"), "controller": true}]);
        let labels = json!({"app": "agent", "agent": name});
        let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": labels}}});
        scene.put(Kind::Deployment, workload(Kind::Deployment, &format!("agent-{name}"), more));
        scene.card(&format!("agent-{name}"), true);
        let mut service = service("team", &format!("agent-{name}"), 8000);
        service["spec"]["selector"] = labels;
        scene.put(Kind::Service, service);
    }
    scene.settle();
    let ingress =
        |scene: &Scene, name: &str| scene.spec(&format!("agent-{name}-signature-policy")).unwrap()["ingress"].clone();
    let caller = json!({"podSelector": {"matchLabels": {"app": "agent", "agent": "clerk", "agent.kagenti.dev/signature-verified": "true"}}});
    assert_eq!(ingress(&scene, "auditor")[1], json!({"from": [caller], "ports": [{"protocol": "TCP", "port": 8001}]}));
    assert_eq!(ingress(&scene, "clerk").as_array().unwrap().len(), 1, "nobody names it");
    let egress = scene.spec("agent-clerk-signature-policy").unwrap()["egress"].to_string();
    assert!(egress.contains("auditor"), "{egress}");

    // Both hear of a link that goes.
    let key = Key::new("team", "clerk");
    let touched = scene.cluster.touched(network_policy::plan::ROW, Kind::KaosAgent, &key);
    let policy = |name: &str| Key::new("team", &format!("agent-{name}-signature-policy"));
    assert_eq!(touched, [policy("clerk"), policy("auditor")]);
    scene.put(Kind::KaosAgent, agent("clerk", json!({"modelAPI": "llm", "model": "x"})));
    scene.settle();
    assert_eq!(ingress(&scene, "auditor").as_array().unwrap().len(), 1);
}

/// A change of routes has those looked at again whom they name, there and here, and nobody else.
#[test]
fn who_is_named_hears_of_a_change_of_routes() {
    let mut scene = enforced(DECLARED);
    scene.put(Kind::Service, service("team", "good", 8000));
    scene.settle();
    scene.put(Kind::Namespace, namespace("shop", true));
    scene.put(Kind::ConfigMap, routes("shop", "- {host: good.team}\n- {host: none.nowhere}\n"));
    let touched = |scene: &Scene, kind: Kind, key: &Key| scene.cluster.touched(network_policy::plan::ROW, kind, key);
    let of_shop = Key::new("shop", "authproxy-routes");
    assert_eq!(touched(&scene, Kind::ConfigMap, &of_shop), [Key::new("team", GOOD)]);
    assert!(touched(&scene, Kind::Namespace, &Key::new("", "shop")).contains(&Key::new("team", GOOD)));
    assert_eq!(touched(&scene, Kind::ConfigMap, &Key::new("shop", "other")), Vec::<Key>::new());
    assert!(touched(&scene, Kind::ConfigMap, &Key::new("team", "authproxy-routes")).contains(&Key::new("team", GOOD)));
}
