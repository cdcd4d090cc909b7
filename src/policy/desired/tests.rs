use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn facts() -> Facts {
    let api_server = [(6443, "10.0.0.2"), (6443, "10.0.0.1"), (443, "::ffff:10.0.0.9"), (6443, "2001:db8::1")];
    Facts {
        operators: ["kagenti-system".to_owned()].into(),
        api_server: api_server.map(|(port, address)| (port, address.parse().unwrap())).into(),
        ..Facts::default()
    }
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "w"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})
}

#[test]
fn cases_129_and_137_the_restrictive_shape_leads_to_the_api_server_at_its_ports_and_nowhere_else() {
    let spec = restrictive(&selector(), &facts());
    let operator = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kagenti-system"}}});
    assert_eq!(spec["ingress"], json!([{"from": [operator]}]));
    assert_eq!(
        spec["egress"],
        json!([
            {"ports": [{"protocol": "TCP", "port": 443}], "to": [{"ipBlock": {"cidr": "10.0.0.9/32"}}]},
            {"ports": [{"protocol": "TCP", "port": 6443}], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}},
                {"ipBlock": {"cidr": "10.0.0.2/32"}}, {"ipBlock": {"cidr": "2001:db8::1/128"}}]},
        ])
    );
    assert_eq!(spec["podSelector"], selector());
}

#[test]
fn case_130_without_an_address_of_the_api_server_nothing_is_left_and_both_directions_are_named() {
    let none = Facts { api_server: BTreeSet::new(), ..facts() };
    for spec in [restrictive(&selector(), &none), default_deny(false, Held::Nobody, &none)] {
        assert_eq!((&spec["egress"], &spec["policyTypes"]), (&json!([]), &json!(["Ingress", "Egress"])));
        let stored = json!({"podSelector": spec["podSelector"], "policyTypes": ["Ingress", "Egress"], "ingress": spec["ingress"]});
        assert_eq!(normal(&spec), normal(&stored), "as the API server stores it");
    }
}

#[test]
fn who_is_in_quarantine_is_left_out_beside_what_a_selector_asks_for() {
    let held = json!({"key": "agent.kagenti.dev/quarantined", "operator": "DoesNotExist"});
    let less = without_held(&selector());
    assert_eq!(less["matchLabels"], selector()["matchLabels"]);
    assert_eq!(less["matchExpressions"], json!([selector()["matchExpressions"][0], held]));
    assert_eq!(without_held(&json!({})), json!({"matchExpressions": [held]}));
}

/// Case 128 counts two peers of the operator's; ours has one namespace, unless there is another.
#[test]
fn case_128_the_permissive_shape_selects_by_the_trust_label_besides() {
    let spec = permissive(&selector(), &facts());
    let mut wanted = selector();
    wanted["matchLabels"]["agent.kagenti.dev/signature-verified"] = "true".into();
    assert_eq!((&spec["podSelector"], &spec["egress"]), (&wanted, &json!([{}])));
    assert_eq!(spec["ingress"][0]["from"].as_array().unwrap().len(), 2);
    assert!(is_permissive(&spec) && !is_permissive(&restrictive(&selector(), &facts())));
    let two = Facts { operators: ["a".to_owned(), "b".to_owned()].into(), ..facts() };
    assert_eq!(permissive(&selector(), &two)["ingress"][0]["from"].as_array().unwrap().len(), 3);
}

/// Pods of every revision are selected: by what never changes, and not by the hash of one revision.
#[test]
fn case_136_every_revision_is_selected() {
    let own = json!({"matchLabels": {"app": "w"}});
    for spec in [permissive(&own, &facts()), restrictive(&own, &facts())] {
        let labels = spec["podSelector"]["matchLabels"].as_object().unwrap();
        let named: Vec<&str> = labels.keys().map(String::as_str).filter(|key| *key != "app").collect();
        assert!(named.is_empty() || named == ["agent.kagenti.dev/signature-verified"], "{named:?}");
        assert_eq!(spec["podSelector"].get("matchExpressions"), None);
    }
}

/// Where some namespaces are served, nobody keeps the trust label from being forged in the others.
#[test]
fn verified_agents_of_namespaces_that_are_not_served_are_let_in_nowhere() {
    let served = BTreeSet::from(["team1".to_owned(), "team2".to_owned()]);
    let named = json!([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team1", "team2"]}]);
    for (verified, wanted) in [
        (VerifiedPeers::Namespace, Value::Null),
        (VerifiedPeers::Enabled, json!({"matchLabels": {"kagenti-enabled": "true"}, "matchExpressions": named})),
        (VerifiedPeers::All, json!({"matchExpressions": named})),
    ] {
        let spec = permissive(&selector(), &Facts { verified, served: served.clone(), ..facts() });
        let peers = spec["ingress"][0]["from"].as_array().unwrap();
        let peer = peers
            .iter()
            .find(|peer| peer["podSelector"]["matchLabels"]["agent.kagenti.dev/signature-verified"] == "true");
        assert_eq!(peer.unwrap().get("namespaceSelector").cloned().unwrap_or_default(), wanted, "{verified:?}");
    }
}

#[test]
fn verified_agents_of_other_namespaces_are_let_in_as_the_platform_says() {
    for (verified, wanted) in [
        (VerifiedPeers::Namespace, None),
        (VerifiedPeers::Enabled, Some(json!({"matchLabels": {"kagenti-enabled": "true"}}))),
        (VerifiedPeers::All, Some(json!({}))),
    ] {
        let spec = permissive(&selector(), &Facts { verified, ..facts() });
        assert_eq!(spec["ingress"][0]["from"][1].get("namespaceSelector").cloned(), wanted);
    }
}

#[test]
fn peers_of_the_platform_are_rules_of_their_own() {
    let keycloak = Peer {
        whom: Whom::Pods { namespace: "keycloak".into(), labels: BTreeMap::from([("app".into(), "keycloak".into())]) },
        ports: vec![Port::tcp(8080)],
    };
    let outside = Peer { whom: Whom::Block("203.0.113.0/24".into()), ports: Vec::new() };
    let more = Facts { egress: vec![outside.clone(), keycloak.clone(), keycloak.clone()], ..facts() };
    let spec = restrictive(&selector(), &more);
    assert_eq!(
        spec["egress"].as_array().unwrap()[2..],
        [
            json!({"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keycloak"}},
                "podSelector": {"matchLabels": {"app": "keycloak"}}}], "ports": [{"protocol": "TCP", "port": 8080}]}),
            json!({"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]}),
        ]
    );
    let more = Facts { ingress: vec![keycloak], ..facts() };
    assert_eq!(permissive(&selector(), &more)["ingress"].as_array().unwrap().len(), 2);
    assert_eq!(restrictive(&selector(), &more), restrictive(&selector(), &facts()), "nobody calls who is not verified");
}

#[test]
fn the_deny_selects_every_agent_or_every_pod() {
    assert_eq!(
        default_deny(false, Held::Nobody, &facts())["podSelector"],
        json!({"matchLabels": {"kagenti.io/type": "agent"}})
    );
    assert_eq!(default_deny(true, Held::Nobody, &facts())["podSelector"], json!({}));
    assert_ne!(
        normal(&default_deny(true, Held::Nobody, &facts())),
        normal(&default_deny(false, Held::Nobody, &facts()))
    );
}

/// What is empty and what is absent mean different things in different places.
#[test]
fn the_normal_form_keeps_what_has_a_meaning() {
    let same = [
        (json!({"egress": []}), json!({})),
        (json!({"ingress": [{"from": []}]}), json!({"ingress": [{}]})),
        (
            json!({"egress": [{"ports": [{"port": 1}]}]}),
            json!({"egress": [{"ports": [{"port": 1, "protocol": "TCP"}]}]}),
        ),
        (json!({"podSelector": {"matchLabels": {}}}), json!({"podSelector": {}})),
        (json!({"policyTypes": ["Egress", "Ingress"]}), json!({"policyTypes": ["Ingress", "Egress"]})),
    ];
    for (one, other) in same {
        assert_eq!(normal(&one), normal(&other));
    }
    let different = [
        (json!({"egress": [{}]}), json!({"egress": []})),
        (
            json!({"ingress": [{"from": [{"podSelector": {}}]}]}),
            json!({"ingress": [{"from": [{"namespaceSelector": {}}]}]}),
        ),
        (
            json!({"ingress": [{"from": [{"podSelector": {}, "namespaceSelector": {}}]}]}),
            json!({"ingress": [{"from": [{"podSelector": {}}]}]}),
        ),
        (json!({"podSelector": {}}), json!({"podSelector": {"matchLabels": {"a": "b"}}})),
    ];
    for (one, other) in different {
        assert_ne!(normal(&one), normal(&other));
    }
}

proptest! {
    #[test]
    fn the_normal_form_is_its_own_and_no_order_matters(
        addresses in proptest::collection::vec((any::<u16>(), any::<IpAddr>()), 0..6)
    ) {
        let of = |all: Vec<(u16, IpAddr)>| Facts { api_server: all.into_iter().collect(), ..facts() };
        let mut backwards = addresses.clone();
        backwards.reverse();
        let (one, other) = (restrictive(&selector(), &of(addresses)), restrictive(&selector(), &of(backwards)));
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(normal(&normal(&one)), normal(&one));
        for cidr in one["egress"].as_array().unwrap().iter().flat_map(|rule| rule["to"].as_array().unwrap()) {
            let cidr = cidr["ipBlock"]["cidr"].as_str().unwrap();
            prop_assert!(cidr.ends_with("/32") || cidr.ends_with("/128"));
            prop_assert!(!cidr.starts_with("::ffff:"));
        }
    }
}

/// Who is in quarantine reaches neither the API server nor the operator: the deny opens those, so it leaves such Pods to the other policy.
#[test]
fn who_is_in_quarantine_is_selected_by_policies_that_open_nothing() {
    let exists = |operator: &str| json!([{"key": "agent.kagenti.dev/quarantined", "operator": operator}]);
    for all in [false, true] {
        let deny = default_deny(all, Held::Labelled, &facts());
        assert_eq!(deny["podSelector"]["matchExpressions"], exists("DoesNotExist"));
        assert_ne!(deny["ingress"], json!([]));
        let deny = default_deny(all, Held::Everybody, &facts());
        assert_eq!(deny["podSelector"], default_deny(all, Held::Nobody, &facts())["podSelector"]);
        assert_eq!((&deny["ingress"], &deny["egress"]), (&json!([]), &json!([])));
    }
    assert_eq!(quarantine(false)["podSelector"], json!({"matchExpressions": exists("Exists")}));
    assert_eq!(quarantine(true)["podSelector"], json!({}));
    for spec in [quarantine(false), quarantine(true), closed(&selector())] {
        assert_eq!((&spec["ingress"], &spec["egress"]), (&json!([]), &json!([])));
        assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
        assert!(!is_permissive(&spec));
    }
}

/// Ported from the expression that the API server evaluated: whatever we write is known as what cuts off, and nothing that opens more is.
#[test]
fn whom_a_deny_cuts_off_is_read_off_it_and_one_that_opens_more_cuts_off_nobody() {
    let own = facts().operators.first().unwrap().clone();
    for (all, whom) in [(false, Cut::Agents), (true, Cut::Everybody)] {
        for held in [Held::Nobody, Held::Labelled, Held::Everybody] {
            let spec = default_deny(all, held, &Facts { operators: [own.clone()].into(), ..facts() });
            assert_eq!(cut(&spec, &own), Some(whom), "{spec}");
            assert_eq!(cut(&normal(&spec), &own), Some(whom), "as it is stored");
            if !list_of(&spec, "ingress").is_empty() {
                assert_eq!(cut(&spec, "another"), None, "it opens the namespace of somebody else's operator");
            }
        }
    }
    let good = default_deny(false, Held::Nobody, &Facts { operators: [own.clone()].into(), ..facts() });
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 11] = [
        ("another selector", |spec| spec["podSelector"]["matchLabels"]["app"] = json!("web")),
        ("another type", |spec| spec["podSelector"]["matchLabels"] = json!({"kagenti.io/type": "tool"})),
        ("another expression", |spec| {
            spec["podSelector"]["matchExpressions"] = json!([{"key": "x", "operator": "Exists"}])
        }),
        ("one way", |spec| spec["policyTypes"] = json!(["Ingress"])),
        ("everybody in", |spec| spec["ingress"] = json!([{}])),
        ("some namespace in", |spec| spec["ingress"] = json!([{"from": [{"namespaceSelector": {}}]}])),
        ("everything out", |spec| spec["egress"] = json!([{}])),
        ("all ports of an address", |spec| spec["egress"] = json!([{"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}])),
        ("a network", |spec| {
            spec["egress"] = json!([{"ports": [{"port": 1}], "to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}]}])
        }),
        ("a network of IPv6 that is as long as an address of IPv4", |spec| {
            spec["egress"] = json!([{"ports": [{"port": 1}], "to": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}])
        }),
        ("no block", |spec| spec["egress"] = json!([{"ports": [{"port": 1}], "to": [{"ipBlock": {"cidr": "x/32"}}]}])),
    ];
    for (what, change) in changes {
        let mut spec = good.clone();
        change(&mut spec);
        assert_eq!(cut(&spec, &own), None, "{what}: {spec}");
    }
    assert_eq!((cut(&json!({}), &own), cut(&Value::Null, &own)), (None, None));
}

/// Whatever an agent names, its policy is one that is read, or it would be written again with every plan.
#[test]
fn whom_an_agent_names_takes_no_more_room_than_one_policy_has() {
    let peer = |at: u16| Peer {
        whom: Whom::Pods { namespace: "team".into(), labels: BTreeMap::from([("app".into(), format!("a{at}"))]) },
        ports: vec![Port::tcp(8000)],
    };
    let (few, left) = fitting((0..5).map(peer));
    assert_eq!((few.len(), left), (5, 0));
    let (many, left) = fitting((0..300).map(peer));
    assert_eq!((many.len() + left, many.is_empty()), (300, false));
    let spec = restrictive(&selector(), &Facts { egress: many.clone(), ..facts() });
    assert!(spec.to_string().len() < 16 * 1024, "{}", spec.to_string().len());
    assert_eq!(fitting((0..300).rev().map(peer)), (many, left), "the order means nothing");
}

fn list_of<'v>(spec: &'v Value, key: &str) -> &'v [Value] {
    spec.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
