//! Every answer that there can be, and what it says of an edge.

use http::HeaderMap;
use serde_json::json;

use super::*;

fn target() -> Target {
    Target { service: "modelapi-m".to_owned(), port: 8000 }
}

fn reply(path: &'static str, status: u16, body: impl Into<Vec<u8>>) -> Reply {
    Reply {
        path,
        verb: "get",
        said: Ok(Said { status, headers: HeaderMap::new(), body: body.into(), end: End::Whole }),
    }
}

fn ended(path: &'static str, end: End) -> Reply {
    Reply { path, verb: "get", said: Ok(Said { status: 200, headers: HeaderMap::new(), body: b"{".to_vec(), end }) }
}

fn status(code: u16, message: &str) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code})
        .to_string()
}

fn listed(names: &[&str]) -> String {
    json!({"object": "list", "data": names.iter().map(|id| json!({"id": id, "object": "model"})).collect::<Vec<_>>()})
        .to_string()
}

/// What the API server says itself, whatever is asked for.
#[test]
fn what_the_api_server_says_in_place_of_a_service_is_explained() {
    for (code, message, outcome, words) in [
        (
            503,
            "no endpoints available for service \"http:modelapi-m:8000\"",
            Outcome::Broken,
            "no Pod behind Service modelapi-m is ready",
        ),
        (
            404,
            "services \"modelapi-m\" not found",
            Outcome::Broken,
            "there is no Service modelapi-m, or none with port 8000",
        ),
        (
            503,
            "error trying to reach service: dial tcp 10.0.0.1:8000: connect: connection refused",
            Outcome::Broken,
            "nobody listens at its port 8000",
        ),
        (
            503,
            "error trying to reach service: dial tcp 10.0.0.1:8000: i/o timeout",
            Outcome::Unknown,
            "a NetworkPolicy may keep it out and let agents in",
        ),
        (
            503,
            "error trying to reach service: dial tcp 10.0.0.1:8000: connect: no route to host",
            Outcome::Unknown,
            "does not reach the Pod",
        ),
        (503, "error trying to reach service: EOF", Outcome::Broken, "closed the connection without an answer"),
        (
            503,
            "error trying to reach service: read tcp 1.2.3.4:5: connection reset by peer",
            Outcome::Broken,
            "closed the connection",
        ),
        (
            503,
            "error trying to reach service: net/http: HTTP/1.x transport connection broken: malformed HTTP response \"x\"",
            Outcome::Broken,
            "is not HTTP",
        ),
        (
            403,
            "services \"http:modelapi-m:8000\" is forbidden: User \"a\" cannot get resource \"services/proxy\"",
            Outcome::Unknown,
            "you may not get services/proxy here",
        ),
        (429, "too many requests", Outcome::Unknown, "the API server answers 429"),
    ] {
        let tried = models(&target(), &reply(MODELS, code, status(code, message))).unwrap_err();
        assert_eq!(tried.outcome, outcome, "{message}: {tried:?}");
        assert!(tried.why.contains(words), "{message}: {tried:?}");
        assert_eq!(agent(&target(), &reply(CARD, code, status(code, message)), None), tried, "{message}");
        assert!(!tried.why.contains("10.0.0.1"), "nothing of the message is repeated: {tried:?}");
    }
    let silent = Reply { path: CARD, verb: "get", said: Err(Silent) };
    assert_eq!(agent(&target(), &silent, None).outcome, Outcome::Unknown);
}

/// What a Service says, whatever it is asked for.
#[test]
fn an_answer_that_is_none_is_a_broken_edge_and_a_closed_door_is_none_that_can_be_told() {
    let large = ended(MODELS, End::TooLong);
    for (reply, outcome, words) in [
        (reply(MODELS, 401, "{}"), Outcome::Unknown, "answers 401 at /v1/models: it lives and wants a credential"),
        (reply(MODELS, 403, "no"), Outcome::Unknown, "answers 403"),
        (reply(MODELS, 302, ""), Outcome::Broken, "a redirect, and nobody follows it"),
        (reply(MODELS, 404, ""), Outcome::Broken, "answers 404 at /v1/models"),
        (reply(MODELS, 500, "sk-secret"), Outcome::Broken, "answers 500"),
        (large, Outcome::Broken, "is longer than 1 MiB"),
        (ended(MODELS, End::BrokeOff), Outcome::Broken, "broke off"),
        (reply(MODELS, 200, "<html>sk-secret</html>"), Outcome::Broken, "is not a list of models"),
        (reply(MODELS, 200, "[]"), Outcome::Broken, "is not a list of models"),
        (reply(MODELS, 200, r#"{"data": [{"id": 5}]}"#), Outcome::Broken, "is not a list of models"),
        (reply(MODELS, 200, "[".repeat(100_000)), Outcome::Broken, "is not a list of models"),
        (reply(MODELS, 200, "\u{0}"), Outcome::Broken, "is not a list of models"),
    ] {
        let tried = models(&target(), &reply).unwrap_err();
        assert_eq!(tried.outcome, outcome, "{tried:?}");
        assert!(tried.why.contains(words) && !tried.why.contains("secret"), "{tried:?}");
    }
    let tried = |heard| late(&target(), Duration::from_secs(10), heard);
    assert_eq!(tried(true), broken("Service modelapi-m gave no whole answer within 10 s"));
    assert_eq!(tried(false).outcome, Outcome::Unknown, "packets that a policy drops say nothing of agents");
}

#[test]
fn a_model_is_there_by_name_by_its_latest_tag_or_by_a_pattern() {
    let of = |names: &[&str]| models(&target(), &reply(MODELS, 200, listed(names))).unwrap();
    let takes = |pattern: &str| vec![pattern.to_owned()];
    for (names, asked, offers, outcome, words) in [
        (&["a", "b"][..], "a", vec![], Outcome::Works, "lists a"),
        (&["smollm2:latest"], "smollm2", vec![], Outcome::Works, "lists smollm2"),
        (&["openai/*"], "openai/x", vec![], Outcome::Works, "takes openai/x by a pattern"),
        (&["gpt-4o"], "other", takes("*"), Outcome::Works, "takes other by a pattern"),
        (&["a", "b"], "c", vec![], Outcome::Broken, "does not list c; it lists a, b"),
        (&["a"], "c", takes("c"), Outcome::Broken, "does not list c; it lists a"),
        (&[], "c", vec![], Outcome::Broken, "lists no model, so c is not there"),
        (&["a"], "", vec![], Outcome::Works, "which one is asked for is not written"),
    ] {
        let tried = of(names).has(asked, &offers);
        assert_eq!(tried.outcome, outcome, "{names:?} {asked}: {tried:?}");
        assert!(tried.why.contains(words), "{names:?} {asked}: {tried:?}");
    }
    let many: Vec<String> = (0..5000).map(|number| format!("\u{1b}[31m{number}{}", "x".repeat(200))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let said = of(&many).has("c", &[]).why;
    assert!(said.len() < 600 && said.contains("and 4994 more") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn an_agent_answers_with_a_card_or_that_it_lives() {
    let card = |body: &str| agent(&target(), &reply(CARD, 200, body), None);
    assert_eq!(card(r#"{"name": "a"}"#), works("answers with its card at /.well-known/agent"));
    for body in ["{}", "[]", r#"{"name": 5}"#, "ok"] {
        assert!(card(body).why.contains("is not the card of an agent"), "{body}");
    }
    let absent = reply(CARD, 404, "not here");
    assert!(is_absent(&absent));
    assert!(!is_absent(&reply(CARD, 404, status(404, "services \"x\" not found"))), "the Service itself is not there");
    let health = |code| agent(&target(), &absent, Some(&reply(HEALTH, code, "ok")));
    assert_eq!(health(200), works("answers at /health, and has no card at /.well-known/agent"));
    assert_eq!(health(503).why, "Service modelapi-m answers 503 at /health");
}

#[test]
fn tools_are_listed_or_it_is_said_what_was_answered_in_their_place() {
    let path = super::super::tools::PATH;
    let names =
        |names: &[&str], more| tools(&target(), Ok((names.iter().map(|&name| name.to_owned()).collect(), more)));
    assert_eq!(names(&["add", "echo"], false), works("lists 2 tools: add, echo"));
    assert_eq!(names(&["add"], true), works("lists at least 1 tools: add"));
    assert_eq!(names(&[], false), broken("Service modelapi-m speaks MCP and offers no tool"));
    for (why, outcome, words) in [
        (NoTools::Answer(NoAnswer::Error(-32601)), Outcome::Broken, "JSON-RPC error -32601"),
        (NoTools::Answer(NoAnswer::None), Outcome::Broken, "at /mcp is not MCP"),
        (NoTools::Answer(NoAnswer::Session), Outcome::Broken, "is not MCP"),
        (NoTools::Reply(reply(path, 404, "")), Outcome::Broken, "has nothing at /mcp"),
        (NoTools::Reply(reply(path, 401, "")), Outcome::Unknown, "wants a credential"),
        (NoTools::Reply(reply(path, 500, "")), Outcome::Broken, "answers 500 at /mcp"),
        (NoTools::Reply(ended(path, End::TooLong)), Outcome::Broken, "longer than 1 MiB"),
        (NoTools::Reply(reply(path, 503, status(503, "no endpoints available"))), Outcome::Broken, "no Pod behind"),
    ] {
        let tried = tools(&target(), Err(why));
        assert_eq!(tried.outcome, outcome, "{tried:?}");
        assert!(tried.why.contains(words), "{tried:?}");
    }
}
