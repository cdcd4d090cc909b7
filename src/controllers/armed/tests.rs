use std::time::Duration;

use serde_json::{Value, json};

use super::memory::Armed;
use super::plan::{NAME, ROW};
use crate::controllers::parameters::is_told;
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::Controller as _;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, s};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::policy::desired::{Facts, Held, default_deny};
use crate::store::{Key, Kind, Reach, change_of};

fn deny(namespace: &str, spec: &Value) -> Value {
    let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    json!({"metadata": {"name": "drawbridge-default-deny", "namespace": namespace, "uid": format!("p-{namespace}"),
        "resourceVersion": "5", "labels": ours}, "spec": spec})
}

fn cuts(selector: &Value) -> Value {
    json!({"podSelector": selector, "policyTypes": ["Ingress", "Egress"]})
}

fn agents() -> Value {
    cuts(&json!({"matchLabels": {"kagenti.io/type": "agent"}}))
}

fn namespace(name: &str, uid: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": "3"}})
}

fn told(armed: &str, all: &str) -> Value {
    json!({"metadata": {"name": "drawbridge-trust", "namespace": OWN, "uid": "t", "resourceVersion": "9",
        "annotations": {"agent.kagenti.dev/armed": armed, "agent.kagenti.dev/armed-all": all}}})
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for kind in [Kind::NetworkPolicy, Kind::Namespace, Kind::ServiceAccount] {
        cluster.store.set_reach(kind, Reach::Listed);
    }
    for (name, uid) in [("team", "n-team"), ("all", "n-all"), ("open", "n-open")] {
        cluster.see(Kind::Namespace, namespace(name, uid));
    }
    cluster.see(Kind::NetworkPolicy, deny("team", &agents()));
    cluster.see(Kind::NetworkPolicy, deny("all", &cuts(&json!({}))));
    cluster
}

/// Everything that is cut off at once would else be written to everybody as often as there are namespaces.
#[test]
fn what_comes_to_the_list_is_gathered_and_what_goes_off_it_goes_at_once() {
    let mut cluster = cluster();
    cluster.see(Kind::ServiceAccount, told("n-team", ""));
    let wrote = |cluster: &mut Cluster, at: Duration| cluster.owns.of_mut::<Armed>(NAME).memory.wrote = Some(at);
    wrote(&mut cluster, s(100));
    assert_eq!(plan(&cluster), Plan::later(Duration::from_millis(4)), "two namespaces: 4 ms");
    wrote(&mut cluster, s(100) - Duration::from_millis(3));
    assert_eq!(plan(&cluster), Plan::later(Duration::from_millis(1)));
    wrote(&mut cluster, s(100) - Duration::from_millis(4));
    assert!(written(&cluster).is_some());
    wrote(&mut cluster, s(100));
    cluster.see(Kind::ServiceAccount, told("n-gone,n-team", ""));
    assert!(written(&cluster).is_some(), "one goes");
    cluster.see(Kind::ServiceAccount, told("n-team", ""));
    for at in 0..1000 {
        let name = format!("more-{at}");
        cluster.see(Kind::Namespace, namespace(&name, &format!("n-{name}")));
        cluster.see(Kind::NetworkPolicy, deny(&name, &agents()));
    }
    assert_eq!(plan(&cluster), Plan::later(s(1)), "a second at most");
    let (key, learned) = (Key::new(OWN, ""), Learned::Back(true));
    Armed::answered(cluster.owns.of_mut::<Armed>(NAME), &key, &learned, s(200));
    assert_eq!(cluster.owns.of_mut::<Armed>(NAME).memory.wrote, Some(s(100)), "nothing was written");
    let learned = Learned::Change(change_of(Kind::ServiceAccount, &told("n-team", "").to_string()).unwrap());
    Armed::answered(cluster.owns.of_mut::<Armed>(NAME), &key, &learned, s(200));
    assert_eq!(cluster.owns.of_mut::<Armed>(NAME).memory.wrote, Some(s(200)));
}

fn plan(cluster: &Cluster) -> Plan {
    cluster.plan_at(ROW, &Key::new(OWN, ""), s(100))
}

/// The lists that a plan writes.
fn written(cluster: &Cluster) -> Option<(String, String)> {
    let ops = plan(cluster).ops;
    let metadata = match &ops[..] {
        [] => return None,
        [Op::Create { kind: Kind::ServiceAccount, body, .. }] => &body["metadata"],
        [Op::Merge { kind: Kind::ServiceAccount, patch, .. }] => &patch["metadata"],
        other => panic!("{other:?}"),
    };
    let list = |key: &str| metadata["annotations"][key].as_str().unwrap().to_owned();
    Some((list("agent.kagenti.dev/armed"), list("agent.kagenti.dev/armed-all")))
}

#[test]
fn namespaces_are_listed_by_whom_their_policy_cuts_off_and_at_rest_nothing_is_written() {
    let mut cluster = cluster();
    assert_eq!(written(&cluster), Some(("n-all,n-team".into(), "n-all".into())), "made where it is not there");
    cluster.see(Kind::ServiceAccount, told("n-team", ""));
    assert_eq!(written(&cluster), Some(("n-all,n-team".into(), "n-all".into())), "brought up to date");
    cluster.see(Kind::ServiceAccount, told("n-all,n-team", "n-all"));
    assert_eq!(plan(&cluster), Plan::nothing(), "at rest");
    for (namespace, all, is) in
        [("team", false, true), ("team", true, false), ("all", true, true), ("open", false, false)]
    {
        assert_eq!(is_told(&cluster.store, namespace, all), is, "{namespace} {all}");
    }
}

#[test]
fn what_does_not_cut_off_or_is_somebody_else_s_is_not_listed() {
    let open = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{}]});
    let mut foreign = deny("team", &agents());
    foreign["metadata"]["labels"] = json!({});
    let mut going = deny("team", &agents());
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (what, policy) in [("opens", deny("team", &open)), ("foreign", foreign), ("is deleted", going)] {
        let mut cluster = cluster();
        cluster.see(Kind::NetworkPolicy, policy);
        assert_eq!(written(&cluster), Some(("n-all".into(), "n-all".into())), "{what}");
    }
    // Of the same name, and another one.
    let mut cluster = cluster();
    cluster.see(Kind::ServiceAccount, told("n-all,n-team", "n-all"));
    cluster.see(Kind::Namespace, namespace("team", "n-other"));
    assert_eq!(written(&cluster), Some(("n-all,n-other".into(), "n-all".into())));
    assert!(!is_told(&cluster.store, "team", false), "as its predecessor was");
}

/// A deny that is larger than what is read of a policy would take its namespace off the list, and no Pod of an agent would be made there.
#[test]
fn however_many_addresses_a_slice_has_the_deny_is_one_that_is_read() {
    let mut cluster = cluster();
    let addresses: Vec<_> = (0..1000).map(|at| format!("2001:db8:1111:2222:3333:4444:5555:{at:x}")).collect();
    let ports: Vec<_> = (0..16).map(|at| json!({"port": 60_000 + at, "protocol": "TCP"})).collect();
    let slice = json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "slice", "resourceVersion": "7"},
        "endpoints": [{"addresses": addresses}], "ports": ports});
    cluster.see(Kind::EndpointSlice, slice);
    let api_server = cluster.store.api_server();
    assert_eq!(api_server.len(), 64);
    let facts = Facts { operators: [OWN.to_owned()].into(), api_server, ..Facts::default() };
    for (version, held) in [("6", Held::Nobody), ("7", Held::Labelled)] {
        let mut policy = deny("team", &default_deny(false, held, &facts));
        policy["metadata"]["resourceVersion"] = json!(version);
        cluster.see(Kind::NetworkPolicy, policy);
        assert_eq!(written(&cluster), Some(("n-all,n-team".into(), "n-all".into())), "still on the list: {held:?}");
    }
}

#[test]
fn nothing_is_taken_off_because_it_was_not_read() {
    for kind in [Kind::NetworkPolicy, Kind::Namespace, Kind::ServiceAccount] {
        let mut cluster = cluster();
        cluster.store.set_reach(kind, Reach::Unknown);
        let plan = plan(&cluster);
        assert!(plan.ops.is_empty() && plan.again.is_some(), "{kind:?}");
    }
}

#[test]
fn what_concerns_the_list_brings_its_only_item() {
    let cluster = cluster();
    let item = [Key::new(OWN, "")];
    for (kind, namespace, name, concerns) in [
        (Kind::NetworkPolicy, "open", "drawbridge-default-deny", true),
        (Kind::NetworkPolicy, "open", "other", false),
        (Kind::Namespace, "team", "team", true),
        (Kind::Namespace, "open", "open", false),
        (Kind::ServiceAccount, OWN, "drawbridge-trust", true),
        (Kind::ServiceAccount, "team", "drawbridge-trust", false),
    ] {
        let touched = cluster.touched(ROW, kind, &Key::new(namespace, name));
        assert_eq!(touched, if concerns { &item[..] } else { &[] }, "{kind:?} {namespace}/{name}");
    }
}
