//! Which cards are listed, within which bounds, and who sees them.

use serde_json::{Value, json};

use super::super::listed::{A2A, JSON, Listed, Wanted};
use super::super::shelf::{BYTES, BYTES_IN_ALL, CARDS, LINES, LOOKED, PAGE, Query, Shelf};
use super::{BASE, listed, object, snapshot, three};
use crate::config::bounds::OBJECTS;

/// Only what is verified now, of the very generation, for a workload that is known, under a signature that covers what is shown.
#[test]
fn a_card_is_listed_while_it_is_verified_and_no_longer() {
    let conditions = |verified: Value| json!([verified, {"type": "Bound", "status": "True"}]);
    let is = |status: &str| conditions(json!({"type": "Verified", "status": status, "observedGeneration": 3}));
    let table: [(&str, &str, Value, bool); 17] = [
        ("as it is", "/status/protocol", json!("a2a"), true),
        ("lost", "/status/conditions", is("False"), false),
        ("no bundle was ever read", "/status/conditions", is("Unknown"), false),
        ("never judged", "/status/conditions", json!([]), false),
        ("of another generation", "/metadata/generation", json!(4), false),
        ("of no generation", "/status/conditions", conditions(json!({"type": "Verified", "status": "True"})), false),
        ("of nobody", "/status/trustedAccount", Value::Null, false),
        ("of no workload", "/status/targetUID", Value::Null, false),
        ("of an empty one", "/status/targetUID", json!(""), false),
        ("not covered", "/status/cardCovered", Value::Null, false),
        ("covered in other words", "/status/cardCovered", json!("true"), false),
        (
            "bound to somebody else",
            "/status/conditions",
            json!([{"type": "Bound", "status": "False"}, {"type": "Verified", "status": "True", "observedGeneration": 3}]),
            false,
        ),
        (
            "nobody asked for a binding",
            "/status/conditions",
            json!([{"type": "Verified", "status": "True", "observedGeneration": 3}]),
            true,
        ),
        ("nothing is shown", "/status/card", Value::Null, false),
        ("being deleted", "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), false),
        ("not being deleted", "/metadata/deletionTimestamp", Value::Null, true),
        ("its target is no target", "/spec/targetRef", json!({}), false),
    ];
    for (what, pointer, value, wanted) in table {
        let mut card = object("team", "w", "echo");
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let parent = card.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(member);
        } else {
            parent.insert(member.to_owned(), value);
        }
        assert_eq!(Listed::of(&card, BASE).is_some(), wanted, "{what}");
    }
}

/// Over TLS an agent proves who it is whatever its signatures are: then nothing needs to be covered.
#[test]
fn an_agent_that_proves_who_it_is_over_tls_needs_no_signature() {
    let mut card = object("team", "w", "echo");
    let status = card["status"].as_object_mut().unwrap();
    for gone in ["cardCovered", "signatureSpiffeId"] {
        status.remove(gone);
    }
    assert_eq!(Listed::of(&card, BASE), None);
    card["status"]["attestedAgentSpiffeId"] = json!("spiffe://example.org/ns/team/sa/weather");
    card["status"]["conditions"][1]["status"] = json!("False");
    let line: Value = serde_json::from_str(&Listed::of(&card, BASE).unwrap().line).unwrap();
    assert_eq!(line["metadata"]["identity"], "spiffe://example.org/ns/team/sa/weather");
    card["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(Listed::of(&card, BASE), None, "and it loses its place like everybody");
}

#[test]
fn a_line_says_where_the_card_is_and_who_vouches_for_it() {
    let one = listed("team", "w", "echo").unwrap();
    let line: Value = serde_json::from_str(&one.line).unwrap();
    assert_eq!(
        line,
        json!({
            "identifier": "urn:x-agentcard:team:w", "displayName": "Weather Agent", "description": "tells the weather",
            "type": A2A, "mediaType": A2A, "url": format!("{BASE}/agents/team/w/agent-card.json"), "version": "1.2",
            "updatedAt": "2026-01-01T00:00:00Z", "tags": ["echo"],
            "metadata": {"namespace": "team", "agentCard": "w", "serviceAccount": "weather", "endpoint": "http://w.team.svc:8000",
                "identity": "spiffe://example.org/ns/team/sa/weather"},
        })
    );
    assert_eq!(*one.card, *object("team", "w", "echo")["status"]["card"].to_string().as_bytes());
    for (skill, wanted) in
        [("echo", true), ("ECHO", true), ("sky", true), ("Weather Agent", false), ("ech", false), ("", false)]
    {
        assert_eq!(one.has(&Wanted::each_of(&[skill.to_owned()])), wanted, "{skill:?}");
    }
    let mut other = object("team", "w", "echo");
    other["status"]["protocol"] = json!("acp");
    assert_eq!(Listed::of(&other, BASE).unwrap().media, JSON);
}

/// Whatever an agent writes, its line is small and moves no cursor.
#[test]
fn a_line_is_bounded_however_long_the_texts_of_a_card_are() {
    let mut card = object("team", "w", "echo");
    let long = "x\u{202e}\u{7}".repeat(4_000);
    let skills: Vec<_> = (0..1_000)
        .map(|at| json!({"id": format!("skill-{at}-{}", "y".repeat(90)), "tags": [&long, 7, null]}))
        .collect();
    card["status"]["card"] =
        json!({"name": &long, "description": &long, "version": &long, "url": &long, "skills": skills});
    card["status"]["signatureSpiffeId"] = json!(&long);
    let one = Listed::of(&card, BASE).unwrap();
    assert!(one.line.len() < 4 * 1024, "{}", one.line.len());
    assert!(!one.line.contains(['\u{202e}', '\u{7}']) && one.bytes() < one.card.len() + 32 * 1024);
    let line: Value = serde_json::from_str(&one.line).unwrap();
    assert!(line["metadata"].get("endpoint").is_none(), "half of an address is another one");
    for odd in [json!({"skills": 7}), json!({"skills": [7, null, {"id": 3, "tags": "x"}]}), json!([]), json!("card")] {
        card["status"]["card"] = odd.clone();
        assert!(Listed::of(&card, BASE).is_some(), "{odd}");
    }
}

/// The names that a caller of a namespace sees.
fn seen(shelf: &Shelf, own: &str, snapshot: &crate::config::snapshot::Snapshot, query: &Query) -> Vec<String> {
    let page = shelf.page(own, snapshot, query);
    let lines: Value = serde_json::from_str(&format!("[{}]", page.lines)).unwrap();
    let name = |line: &Value| {
        let text = |member: &str| line["metadata"][member].as_str().unwrap().to_owned();
        format!("{}/{}", text("namespace"), text("agentCard"))
    };
    lines.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_caller_sees_its_own_namespace_and_those_that_are_shared() {
    let mut shelf = Shelf::default();
    for namespace in ["a", "b", "c", "unknown"] {
        shelf.put(namespace, "w", listed(namespace, "w", "echo"));
        shelf.put(namespace, "bad", None);
    }
    let all = Query::default();
    for (own, wanted) in [
        ("a", vec!["a/w", "b/w"]),
        ("b", vec!["b/w"]),
        ("c", vec!["b/w", "c/w"]),
        ("elsewhere", vec!["b/w"]),
        ("unknown", vec!["b/w"]),
    ] {
        assert_eq!(seen(&shelf, own, &three(), &all), wanted, "{own}");
        for namespace in ["a", "b", "c", "unknown", "nowhere"] {
            let card = shelf.card(own, &three(), (namespace, "w"));
            assert_eq!(card.is_some(), wanted.contains(&format!("{namespace}/w").as_str()), "{own} {namespace}");
            assert!(shelf.card(own, &three(), (namespace, "bad")).is_none());
        }
    }
    // Trust is withdrawn, the sharing ends, or somebody is put into quarantine.
    shelf.put("a", "w", None);
    assert_eq!(seen(&shelf, "a", &three(), &all), ["b/w"]);
    let shared = |held: &'static str| snapshot(&[("a", None, ""), ("b", Some("shared"), held)]);
    assert_eq!(seen(&shelf, "a", &shared("x"), &all), ["b/w"]);
    for held in ["w", "*"] {
        assert!(
            seen(&shelf, "a", &shared(held), &all).is_empty() && shelf.card("b", &shared(held), ("b", "w")).is_none()
        );
    }
    assert!(seen(&shelf, "a", &snapshot(&[("b", Some("Shared"), "")]), &all).is_empty());
}

/// Some of them were not judged, and nobody can tell which.
#[test]
fn a_namespace_with_more_cards_than_are_read_shows_none() {
    let mut shelf = Shelf::default();
    shelf.put("b", "w", listed("b", "w", "echo"));
    for at in 1..OBJECTS {
        shelf.put("b", &format!("x{at}"), None);
    }
    assert_eq!(seen(&shelf, "a", &three(), &Query::default()), ["b/w"]);
    shelf.put("b", "more", None);
    assert!(seen(&shelf, "a", &three(), &Query::default()).is_empty());
    assert!(shelf.card("b", &three(), ("b", "w")).is_none());
    shelf.forget("b", "x7");
    assert_eq!(seen(&shelf, "a", &three(), &Query::default()), ["b/w"]);
}

#[test]
fn pages_have_every_line_once_and_in_order() {
    let mut shelf = Shelf::default();
    let mut wanted = Vec::new();
    for namespace in ["a", "b"] {
        for at in 0..7 {
            let (name, skill) = (format!("w{at}"), if at % 2 == 0 { "even" } else { "odd" });
            shelf.put(namespace, &name, listed(namespace, &name, skill));
            wanted.push((format!("{namespace}/{name}"), at % 2 == 0));
        }
    }
    for (skills, limit) in [
        (vec![], 1),
        (vec![], 3),
        (vec![], 14),
        (vec![], 500),
        (vec!["even"], 2),
        (vec!["even", "sky"], 5),
        (vec!["even", "odd"], 5),
    ] {
        let mut query =
            Query { skills: skills.iter().map(ToString::to_string).collect(), limit: Some(limit), after: None };
        let mut found = Vec::new();
        for turn in 0.. {
            assert!(turn < 20, "{skills:?} {limit}");
            let page = seen(&shelf, "a", &three(), &query);
            assert!(page.len() <= limit.min(LINES.0));
            found.extend(page);
            let Some((namespace, name)) = shelf.page("a", &three(), &query).last else { break };
            query.after = Some((namespace.to_string(), name.to_string()));
        }
        let fits = |even: bool| skills.iter().all(|skill| *skill == "sky" || (*skill == "even") == even);
        let expected: Vec<_> = wanted.iter().filter(|(_, even)| fits(*even)).map(|(name, _)| name.clone()).collect();
        assert_eq!(found, expected, "{skills:?} {limit}");
    }
    // Behind a card that is gone meanwhile, and behind everything.
    let behind = |namespace: &str, name: &str| Query {
        after: Some((namespace.to_owned(), name.to_owned())),
        ..Query::default()
    };
    assert_eq!(
        seen(&shelf, "a", &three(), &behind("a", "w5x")),
        ["a/w6", "b/w0", "b/w1", "b/w2", "b/w3", "b/w4", "b/w5", "b/w6"]
    );
    assert!(seen(&shelf, "a", &three(), &behind("z", "")).is_empty());
}

/// However many ids and tags a card has, in whatever order and letters, each of them is found, and nothing else.
#[test]
fn a_card_with_many_skills_is_found_by_each_of_them() {
    let mut card = object("team", "w", "echo");
    let names: Vec<_> = (0..200).rev().map(|at| format!("Straße-{at}-Ä")).collect();
    card["status"]["card"]["skills"] = names.iter().map(|name| json!({"id": name, "tags": ["same", "Same"]})).collect();
    let one = Listed::of(&card, BASE).unwrap();
    let has = |skills: &[&str]| one.has(&Wanted::each_of(&skills.iter().map(ToString::to_string).collect::<Vec<_>>()));
    for name in &names {
        assert!(has(&[name]) && has(&[&name.to_uppercase().replace("SS", "ß"), "SAME", name]), "{name}");
        assert!(!has(&[&format!("{name}x")]) && !has(&[name, "other"]), "{name}");
    }
    assert!(has(&[]) && has(&["same"]) && !has(&["straße"]));
}

/// Whoever asks for a skill that nobody has does not make a thread that answers reviews go through all cards of a cluster at once.
#[test]
fn a_page_is_bounded_in_the_cards_that_are_looked_through() {
    let mut shelf = Shelf::default();
    let names: Vec<String> = (0..=LOOKED / CARDS).map(|at| format!("n{at:02}")).collect();
    let shared: Vec<_> = names.iter().map(|name| (name.as_str(), Some("shared"), "")).collect();
    for namespace in &names {
        for at in 0..CARDS {
            let name = format!("w{at:03}");
            shelf.put(namespace, &name, listed(namespace, &name, "echo"));
        }
        // Of what is not shown no page says a name.
        shelf.put(namespace, "w255x", None);
    }
    let last = names.last().unwrap();
    shelf.put(last, "w255", listed(last, "w255", "rare"));
    assert_eq!(shelf.counts().0, (LOOKED / CARDS + 1) * CARDS);
    let known = snapshot(&shared);
    let mut query = Query { skills: vec!["rare".to_owned()], ..Query::default() };
    let first = shelf.page("a", &known, &query);
    let (namespace, name) = first.last.unwrap();
    assert_eq!(
        (&*first.lines, &*namespace, &*name),
        ("", &*names[LOOKED / CARDS - 1], "w255"),
        "an empty page, and where to go on"
    );
    query.after = Some((namespace.to_string(), name.to_string()));
    assert_eq!(shelf.page("a", &known, &query).last, None);
    assert_eq!(seen(&shelf, "a", &known, &query), [format!("{last}/w255")]);
}

/// A card of that many bytes.
fn large(namespace: &str, name: &str, bytes: usize) -> Option<Listed> {
    let mut card = object(namespace, name, "echo");
    card["status"]["card"]["description"] = json!("d".repeat(bytes));
    Listed::of(&card, BASE)
}

#[test]
fn a_page_is_bounded_in_bytes() {
    let mut shelf = Shelf::default();
    for namespace in ["a", "b"] {
        for at in 0..CARDS {
            shelf.put(namespace, &format!("w{at:03}"), large(namespace, &format!("w{at:03}"), 2_000));
        }
    }
    let page = shelf.page("a", &three(), &Query { limit: Some(usize::MAX), ..Query::default() });
    assert!(page.lines.len() <= PAGE && page.last.is_some());
    assert_eq!(seen(&shelf, "a", &three(), &Query { limit: Some(usize::MAX), ..Query::default() }).len(), LINES.0);
}

#[test]
fn a_namespace_keeps_so_much_and_never_what_is_left_for_others() {
    let mut shelf = Shelf::default();
    for at in 0..=CARDS {
        shelf.put("many", &format!("w{at}"), listed("many", &format!("w{at}"), "echo"));
    }
    assert_eq!((shelf.counts().0, shelf.counts().1), (CARDS, 1));
    assert!(shelf.forget("many", "w3"), "the one without room is to be read anew");
    assert!(!shelf.put("many", &format!("w{CARDS}"), listed("many", "w", "echo")));
    assert_eq!((shelf.counts().0, shelf.counts().1), (CARDS, 0));
    assert!(!shelf.forget("many", "w4"), "nobody waits");

    let mut shelf = Shelf::default();
    let mut of_each = Vec::new();
    for namespace in 0..60 {
        let namespace = format!("n{namespace}");
        let before = shelf.counts().2;
        for at in 0..40 {
            let name = format!("w{at}");
            shelf.put(&namespace, &name, large(&namespace, &name, 60_000));
        }
        of_each.push(shelf.counts().2 - before);
    }
    let (_, waiting, held) = shelf.counts();
    assert!(of_each.iter().all(|bytes| *bytes <= BYTES) && held <= BYTES_IN_ALL && waiting > 0, "{of_each:?}");
    shelf.put("new", "w", listed("new", "w", "echo"));
    assert!(
        shelf.card("new", &snapshot(&[("new", None, "")]), ("new", "w")).is_some(),
        "whoever comes new finds room: {of_each:?}"
    );
    let names: Vec<_> = shelf.names().map(|(namespace, name)| (namespace.to_string(), name.to_string())).collect();
    for (namespace, name) in names {
        shelf.forget(&namespace, &name);
    }
    assert_eq!((shelf.counts(), shelf.names().count()), ((0, 0, 0), 0), "nothing is left behind");
}
