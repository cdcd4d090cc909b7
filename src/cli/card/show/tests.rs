//! Rows, and the text of one card.

use serde_json::json;

use super::*;

fn card(name: &str, more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
        "status": {
            "protocol": "a2a", "bindingStatus": {"bound": true},
            "card": {"name": "Weather Agent", "version": "1.0", "url": "http://w.team.svc.cluster.local:8000",
                "skills": [{"id": "get_weather", "name": "Weather", "tags": ["Forecast"], "description": "tells it"}]},
            "conditions": [
                {"type": "Synced", "status": "True", "reason": "SyncSucceeded", "message": "read"},
                {"type": "Verified", "status": "True", "reason": "SignatureVerified", "message": ""}],
        },
    });
    json_patch::merge(&mut object, &more);
    object
}

fn fails(kind: &str, reason: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "False", "reason": reason, "message": "why"}]}})
}

#[test]
fn a_row_is_that_of_the_quick_start() {
    let row = CardRow::of(&card("w-deployment-card", json!({})));
    let wanted =
        ["team", "w-deployment-card", "Weather Agent", "a2a", "Deployment/w", "True", "True", "True", "get_weather"];
    assert_eq!(row.cells(), wanted);
    assert!(!row.attention && row.reason.is_none());
    let new = CardRow::of(&card("c", json!({"status": null})));
    assert_eq!(new.cells(), ["team", "c", "-", "-", "Deployment/w", "-", "-", "-", "-"]);
    assert!(!new.attention, "nobody has looked yet");
}

#[test]
fn what_fails_first_is_said_and_what_passes_by_itself_needs_nobody() {
    for (more, reason, attention) in [
        (fails("Synced", "FetchFailed"), "FetchFailed", true),
        (fails("Verified", "SignatureInvalid"), "SignatureInvalid", true),
        (fails("Bound", "NotBound"), "NotBound", true),
        (fails("Synced", "WorkloadNotReady"), "WorkloadNotReady", false),
        (fails("Verified", "Settling"), "Settling", false),
    ] {
        let row = CardRow::of(&card("c", more));
        assert_eq!((row.reason.as_deref(), row.attention), (Some(reason), attention));
        assert!(row.words().contains("drawbridge explain agentcard/c -n team"));
    }
    let hostile = CardRow::of(&card("c", fails("Synced", "Fetch\u{1b}[2J\nFailed")));
    assert!(!hostile.words().contains(['\u{1b}', '\n']), "{:?}", hostile.words());
    let both = json!([{"type": "Verified", "status": "False", "reason": "V", "message": ""},
        {"type": "Synced", "status": "False", "reason": "S", "message": ""}]);
    assert_eq!(CardRow::of(&card("c", json!({"status": {"conditions": both}}))).reason.as_deref(), Some("S"));
}

#[test]
fn cards_are_chosen_by_skill_and_by_whether_they_are_verified() {
    let cooks = json!({"status": {"card": {"skills": [{"id": "cook", "tags": []}]}}});
    let objects = [card("b", json!({})), card("a", cooks), card("c", fails("Verified", "SignatureInvalid"))];
    let names = |skills: &[&str], verified| {
        let skills: Vec<String> = skills.iter().map(|skill| (*skill).to_owned()).collect();
        chosen(&objects, &skills, verified).into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[], false), ["a", "b", "c"]);
    assert_eq!(names(&["get_weather"], false), ["b", "c"]);
    assert_eq!(names(&["forecast", "GET_WEATHER"], true), ["b"], "by tag, and every one that is asked for");
    assert_eq!(names(&["weather"], false), Vec::<String>::new(), "no part of a word");
}

#[test]
fn one_card_is_told_in_full_and_its_words_cannot_move_a_cursor() {
    let hostile = json!({"status": {"servedUrl": "http://0.0.0.0:8000", "card": {"name": "A\u{1b}[2J\u{202e}gnp", "description": "x\ny"}}});
    let mut object = card("c", hostile);
    let more = json!({"type": "Sync\u{1b}]0;ed", "status": "False", "reason": "R\u{1b}", "message": ""});
    object["status"]["conditions"].as_array_mut().unwrap().push(more);
    let mut out = Vec::new();
    told(&mut out, &object, &CardRow::of(&object)).unwrap();
    let text = String::from_utf8(out).unwrap();
    for part in [
        "AgentCard team/c\n",
        "get_weather (Weather) [Forecast] tells it",
        "http://0.0.0.0:8000",
        "Verified           True SignatureVerified\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("x y"), "{text:?}");
    assert!(!CardRow::of(&object).cells().concat().contains(['\u{1b}', '\u{202e}']));
    let value = serde_json::to_value(whole(&object)).unwrap();
    assert_eq!(
        (&value["name"], &value["card"]["version"], &value["status"]["protocol"]),
        (&json!("c"), &json!("1.0"), &json!("a2a"))
    );
    assert_eq!(value["status"].get("card"), None);
}

/// What is no name asked for something else: an empty one for the list of all cards, which was shown as a card without a name.
#[test]
fn what_is_no_name_is_not_asked_for() {
    use clap::Parser as _;
    let reads = |name: &str| crate::cli::Cli::try_parse_from(["drawbridge", "card", "get", name]).is_ok();
    for name in ["", "agentcard/w", "w?watch=true", "../pods/w", "W"] {
        assert!(!reads(name), "{name:?}");
    }
    assert!(reads("weather-deployment-card") && reads("a.b"));
}

#[test]
fn an_empty_list_says_what_would_make_it_longer() {
    let of = |all, notes: &[&str]| {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        let mut out = Vec::new();
        super::printed(&mut out, &Listed { cards: Vec::new(), notes }, all).unwrap();
        String::from_utf8(out).unwrap()
    };
    let printed = |all| of(all, &["half"]);
    assert!(printed(0).contains("protocol.kagenti.io/a2a") && printed(0).ends_with("note: half\n"));
    let hostile = of(0, &["/apis/x (503: \u{1b}[2Jno\nnote: all is well)"]);
    assert!(hostile.ends_with("note: /apis/x (503: \\u{1b}[2Jno\\nnote: all is well)\n"), "{hostile:?}");
    assert!(printed(3).starts_with("none of 3 AgentCards"));
    // Cards that may not be read are not none.
    assert!(printed(0).starts_with("no AgentCard that could be read here: "), "{}", printed(0));
    assert!(of(0, &[]).starts_with("no AgentCard here: "), "{}", of(0, &[]));
}
