//! What is published of a document: members × types, sizes, and that nothing of one card is in another.

use proptest::prelude::*;

use super::super::published::{NoCard, publish_at};
use super::*;
use crate::domain::printable::is_unseen;

const AUTHORITY: &str = "w.team.svc.cluster.local:8000";

fn of(document: Value) -> Value {
    publish(document.to_string().as_bytes(), AUTHORITY).unwrap().card
}

#[test]
fn known_members_stay_and_everything_else_goes() {
    let document = json!({
        "name": "A", "description": "line\none", "version": "1", "unknown": {"a": 1}, "iconUrl": "", "documentationUrl": null,
        "provider": {"organization": "O", "extra": 1}, "capabilities": {"streaming": false, "x": true, "extensions": []},
        "skills": [{"id": "s", "tags": ["t"], "z": 1, "parameters": [{"name": "p", "required": false}]}],
        "supportedInterfaces": [{"url": "http://x/", "protocolBinding": "GRPC"}],
        "securitySchemes": {"k": {"any": [1, {"b": null}]}}, "security": [{"k": ["scope"]}],
        "signatures": [{"protected": "p", "signature": "s"}],
    });
    assert_eq!(
        of(document),
        json!({
            "name": "A", "description": "line\none", "version": "1", "url": format!("http://{AUTHORITY}"),
            "provider": {"organization": "O"}, "capabilities": {"streaming": false},
            "skills": [{"id": "s", "tags": ["t"], "parameters": [{"name": "p", "required": false}]}],
            "supportedInterfaces": [{"url": "http://x/", "protocolBinding": "GRPC"}],
            "securitySchemes": {"k": {"any": [1, {"b": null}]}}, "security": [{"k": ["scope"]}],
        })
    );
}

#[test]
fn a_member_of_another_type_is_no_card() {
    for (document, path) in [
        (json!({"version": 1}), "version is not a string"),
        (json!({"capabilities": []}), "capabilities is not an object"),
        (json!({"capabilities": {"streaming": "yes"}}), "capabilities.streaming is not true or false"),
        (json!({"skills": {}}), "skills is not a list of objects"),
        (json!({"skills": [null]}), "skills is not a list of objects"),
        (json!({"skills": [{"tags": [1]}]}), "skills.tags is not a string"),
        (json!({"defaultInputModes": "text"}), "defaultInputModes is not a list of strings"),
        (json!({"securitySchemes": {"k": 1}}), "securitySchemes is not an object"),
        (json!({"signatures": [{"protected": 1}]}), "signatures.protected is not a string"),
    ] {
        let fault = publish(document.to_string().as_bytes(), AUTHORITY).unwrap_err();
        assert_eq!(fault.to_string(), path, "{document}");
    }
    for bytes in
        [&b"\xff{}"[..], b"[]", b"{\"a\":1,\"a\":2}", b"{\"name\":\"\\ud800\"}", b"{\"a\":1e400}", b"{\"a\":NaN}", b""]
    {
        assert!(matches!(publish(bytes, AUTHORITY), Err(NoCard::Unreadable(_))), "{}", String::from_utf8_lossy(bytes));
    }
    let deep =
        format!("{{\"securitySchemes\":{{\"k\":{}{}}}}}", "{\"a\":".repeat(126), "1".to_owned() + &"}".repeat(126));
    let fault = publish(deep.as_bytes(), AUTHORITY).unwrap_err();
    assert!(matches!(fault, NoCard::Unreadable(_)));
    let told = "the card is nested 128 deep; at most 127 levels of lists and objects are published";
    assert_eq!(fault.to_string(), told);
    let less = deep.replacen("{\"a\":", "", 1).replacen('}', "", 1);
    assert!(publish(less.as_bytes(), AUTHORITY).is_ok(), "a level less");
}

#[test]
fn no_text_moves_a_cursor_or_hides() {
    let bad = "a\u{1b}[2J\u{202e}b\u{200b}c\r\nd\0";
    let document = json!({"name": bad, "description": bad, "skills": [{"id": bad, "name": bad}],
        "securitySchemes": {bad: {bad: [bad]}}, "url": format!("http://{bad}/{bad}")});
    let published = publish(document.to_string().as_bytes(), AUTHORITY).unwrap();
    let all = format!("{:?}", published.endpoints) + &published.skills + published.served_url.as_deref().unwrap();
    let card = serde_json::to_string(&published.card).unwrap().replace("\\n", "");
    assert!(!all.chars().chain(card.chars()).any(is_unseen), "{all} {card}");
    assert!(!published.card["name"].as_str().unwrap().contains('\n'));
}

#[test]
fn a_card_that_is_too_large_is_shown_by_name_version_and_skill_ids() {
    let skills: Vec<_> =
        (0..3000).map(|number| json!({"id": format!("skill-{number}"), "description": "x".repeat(40)})).collect();
    let published =
        publish(json!({"name": "A", "version": "1", "skills": skills}).to_string().as_bytes(), AUTHORITY).unwrap();
    assert!(published.truncated && published.skills.len() <= 256);
    let members: Vec<_> = published.card.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["name", "skills", "url", "version"]);
    assert!(crate::api::agent_kagenti_dev::agent_card::fits(&published.card));
    assert_eq!(published.card["skills"][0], json!({"id": "skill-0"}));
    let escaped: Vec<_> = (0..500).map(|_| json!({"id": "\"\\".repeat(250)})).collect();
    let published = publish(json!({"skills": escaped}).to_string().as_bytes(), AUTHORITY).unwrap();
    assert!(published.truncated && crate::api::agent_kagenti_dev::agent_card::fits(&published.card));
}

/// A status is read up to a bound, and known as none at all beyond it: what an agent makes long would be written again at each look.
#[test]
fn a_card_with_many_long_endpoints_is_written_once_and_read() {
    let interface = |number: usize| json!({"transport": "T", "url": format!("http://w/{number}{}", "\"".repeat(1000))});
    let interfaces: Vec<_> = (0..16).map(interface).collect();
    let document = json!({"name": "A", "url": format!("http://w/{}", "\"".repeat(2000)), "additionalInterfaces": interfaces,
        "skills": [{"id": "\"".repeat(300)}]});
    let mut cluster = cluster();
    let facts = answer(&cluster, s(100), Ok(document));
    let (_, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
    let status = &object["status"];
    let endpoints = status["endpoints"].as_array().unwrap().len();
    assert!((1..16).contains(&endpoints), "{endpoints}");
    assert_eq!((&status["card"]["name"], status["targetUID"].as_str()), (&json!("A"), Some("deployments-w")));
    assert_eq!(plan_at(&cluster, &facts, s(100)).0.ops, [], "at rest nothing is written");
}

#[test]
fn urls_become_the_services_and_foreign_hosts_are_told() {
    for (url, endpoint, foreign) in [
        ("http://0.0.0.0:8000/", "", None),
        ("http://localhost:9999/rpc?x=1", "/rpc?x=1", None),
        ("https://w.team.svc/a", "/a", None),
        ("http://w:80/a", "/a", None),
        ("http://w.team.svc.cluster.local:8000", "", None),
        ("http://W.Team.svc.cluster.local.:8000/a", "/a", None),
        ("http://LOCALHOST/a", "/a", None),
        ("http://evil.example/a", "/a", Some("evil.example")),
        ("http://W.Evil./a", "/a", Some("W.Evil.")),
        ("http://w@evil.example:80", "", Some("evil.example")),
        ("http://169.254.169.254/latest", "/latest", Some("169.254.169.254")),
        ("http://w.evil/a", "/a", Some("w.evil")),
        ("/only/path", "/only/path", None),
        ("gopher://[::1]:70/x", "/x", None),
    ] {
        let published = publish(json!({"url": url}).to_string().as_bytes(), AUTHORITY).unwrap();
        assert_eq!(published.endpoints, [("JSONRPC".to_owned(), format!("http://{AUTHORITY}{endpoint}"))], "{url}");
        assert_eq!(published.foreign.as_deref(), foreign, "{url}");
        assert_eq!(published.card["url"], format!("http://{AUTHORITY}"));
    }
}

/// The port at which an agent proves over TLS who it is answers nobody by plain HTTP.
#[test]
fn of_a_port_for_tls_every_url_says_so() {
    let document =
        json!({"url": "http://0.0.0.0:8000/rpc", "supportedInterfaces": [{"url": "/grpc", "protocolBinding": "GRPC"}]});
    let published = publish_at(document.to_string().as_bytes(), ("https", AUTHORITY)).unwrap();
    assert_eq!(published.card["url"], format!("https://{AUTHORITY}"));
    let endpoint = |transport: &str, path: &str| (transport.to_owned(), format!("https://{AUTHORITY}{path}"));
    assert_eq!(published.endpoints, [endpoint("GRPC", "/grpc"), endpoint("JSONRPC", "/rpc")]);
    assert_eq!(published.foreign, None);
}

/// Any JSON with members that cards have.
fn document() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![Just(Value::Null), "[a-z]{0,4}".prop_map(Value::from)];
    let skill = (text(), text()).prop_map(|(id, name)| json!({"id": id, "name": name}));
    let object = (text(), text()).prop_map(|(one, other)| json!({"organization": one, "url": other}));
    let skills = prop::collection::vec(skill, 0..4).prop_map(Value::from);
    (text(), text(), object, skills, any::<bool>()).prop_map(|(name, icon, provider, skills, streams)| {
        let mut card = json!({"name": name, "iconUrl": icon, "skills": skills, "capabilities": {"streaming": streams}});
        if streams {
            card["provider"] = provider;
        }
        card
    })
}

proptest! {
    /// A second card leaves nothing of the first, whatever both are.
    #[test]
    fn nothing_of_one_card_is_left_in_the_next(first in document(), second in document()) {
        let mut cluster = cluster();
        let facts = answer(&cluster, s(100), Ok(first));
        let (_, object) = settle(&mut cluster, &card(json!({})), &facts, s(100));
        let facts = answer(&cluster, s(200), Ok(second.clone()));
        let (_, object) = settle(&mut cluster, &object, &facts, s(200));
        prop_assert_eq!(&object["status"]["card"], &of(second.clone()));
        let fresh = settle(&mut super::cluster(), &card(json!({})), &facts, s(200)).1;
        prop_assert_eq!(&object["status"], &fresh["status"]);
    }

    /// The id tells what is shown and nothing else: neither the order of members nor signatures.
    #[test]
    fn the_id_is_that_of_the_content(first in document(), second in document()) {
        let id = |document: &Value| publish(document.to_string().as_bytes(), AUTHORITY).unwrap().id;
        prop_assert_eq!(id(&first) == id(&second), of(first.clone()) == of(second.clone()));
        let mut signed = first.clone();
        signed["signatures"] = json!([{"protected": "e30", "signature": "x"}]);
        prop_assert_eq!(id(&first), id(&signed));
    }
}
