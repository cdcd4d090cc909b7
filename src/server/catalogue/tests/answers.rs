//! What is answered, over the router alone.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::super::judged::Judged;
use super::super::metrics::CatalogueMetrics;
use super::super::routes::query;
use super::super::shelf::Query;
use super::super::{Catalogue, Options};
use super::callers::{NOW, api_server, of, token};
use super::{BASE, listed, three};
use crate::cluster::watch::Watching;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::server::config_watch::Settings;
use crate::server::snapshots::SnapshotCell;

fn settings(on: bool) -> Arc<Settings> {
    let text = format!("cards: {{catalogue: {{enabled: {on}}}}}");
    Arc::new(Settings { platform: Platform::parse(&text, "config.yaml").unwrap(), gates: Gates::default() })
}

/// A catalogue of which nothing was read, and the switch.
pub(super) fn unread(client: Client, namespaces: Vec<String>) -> (Catalogue, watch::Sender<Arc<Settings>>) {
    let (switch, settings) = watch::channel(settings(true));
    let snapshots = SnapshotCell::new();
    snapshots.store(three());
    let catalogue = Catalogue::new(Options {
        client,
        operator_namespace: "kagenti-system".to_owned(),
        namespaces,
        settings,
        snapshots,
        watching: Watching::default(),
        clock: Arc::new(|| UNIX_EPOCH + Duration::from_secs(NOW.unsigned_abs())),
        metrics: CatalogueMetrics::default(),
    });
    (catalogue, switch)
}

/// A catalogue as it is once everything was read, and the switch.
fn catalogue() -> (Catalogue, watch::Sender<Arc<Settings>>) {
    let (catalogue, switch) = unread(api_server(Arc::default(), Duration::ZERO), Vec::new());
    *catalogue.0.heard.lock() = vec![Some(Instant::now())];
    for namespace in ["a", "b", "c"] {
        for name in ["one", "two"] {
            catalogue.0.shelf.write().put(namespace, name, listed(namespace, name, &format!("skill {name}")));
        }
        catalogue.0.shelf.write().put(namespace, "bad", None);
    }
    (catalogue, switch)
}

struct Answered {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Answered {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn asked(catalogue: &Catalogue, path: &str, headers: &[(&str, &str)]) -> Answered {
    let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let response = catalogue.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    Answered { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

async fn get(catalogue: &Catalogue, path: &str, namespace: &str) -> Answered {
    asked(catalogue, path, &[("authorization", &format!("Bearer {}", of(namespace)))]).await
}

const CATALOGUE: &str = "/.well-known/ai-catalog.json";

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_answered_page_by_page_to_whoever_may_see_it() {
    let (catalogue, _switch) = catalogue();
    let whole = get(&catalogue, CATALOGUE, "a").await;
    assert_eq!((whole.status, whole.header("content-type")), (StatusCode::OK, "application/json"));
    assert_eq!((whole.header("cache-control"), whole.header("vary")), ("private, no-cache", "authorization"));
    let read = |answer: &Answered| -> (Value, Vec<String>) {
        let read: Value = serde_json::from_str(&answer.text).unwrap();
        let ids =
            read["entries"].as_array().unwrap().iter().map(|line| line["identifier"].as_str().unwrap().to_owned());
        (read.clone(), ids.collect())
    };
    let (value, ids) = read(&whole);
    assert_eq!(value["specVersion"], "1.0");
    assert_eq!(
        ids,
        ["urn:x-agentcard:a:one", "urn:x-agentcard:a:two", "urn:x-agentcard:b:one", "urn:x-agentcard:b:two"]
    );
    assert_eq!(value.get("next"), None);

    let first = get(&catalogue, &format!("{CATALOGUE}?skill=Skill%20one&skill=sky&limit=1&more=x"), "a").await;
    let (value, ids) = read(&first);
    assert_eq!(ids, ["urn:x-agentcard:a:one"]);
    let next = value["next"].as_str().unwrap();
    assert_eq!(first.header("link"), format!("<{next}>; rel=\"next\""));
    let rest = next.strip_prefix(BASE).unwrap();
    let (value, ids) = read(&get(&catalogue, rest, "a").await);
    assert_eq!((ids.as_slice(), value.get("next")), (&["urn:x-agentcard:b:one".to_owned()][..], None));
}

#[tokio::test(start_paused = true)]
async fn a_card_is_answered_as_it_is_shown_and_one_that_may_not_be_seen_as_if_it_were_not_there() {
    let (catalogue, _switch) = catalogue();
    let path = |namespace: &str, name: &str| format!("/agents/{namespace}/{name}/agent-card.json");
    let card = get(&catalogue, &path("b", "one"), "a").await;
    assert_eq!((card.status, card.header("content-type")), (StatusCode::OK, "application/a2a-agent-card+json"));
    assert_eq!(
        serde_json::from_str::<Value>(&card.text).unwrap(),
        super::object("b", "one", "skill one")["status"]["card"]
    );
    let tag = card.header("etag").to_owned();
    let header = format!("Bearer {}", of("a"));
    let same = asked(&catalogue, &path("b", "one"), &[("authorization", &header), ("if-none-match", &tag)]).await;
    assert_eq!((same.status, same.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let not_seen = get(&catalogue, &path("c", "one"), "a").await;
    assert_eq!(not_seen.status, StatusCode::NOT_FOUND);
    for (namespace, name) in [("c", "nothing"), ("nowhere", "one"), ("a", "bad"), ("a", "..")] {
        let absent = get(&catalogue, &path(namespace, name), "a").await;
        assert_eq!((absent.status, &absent.text), (not_seen.status, &not_seen.text), "{namespace}/{name}");
    }
    assert!(not_seen.text.starts_with("CardNotListed: "), "{}", not_seen.text);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_before_it_is_known_who_asks() {
    let (catalogue, _switch) = catalogue();
    let person = token(&serde_json::json!({"aud": ["drawbridge-catalogue"], "exp": NOW + 9, "sub": "alice"}));
    let other = token(&serde_json::json!({"aud": ["other"], "exp": NOW + 9, "sub": "system:serviceaccount:a:me"}));
    for path in [CATALOGUE, "/agents/a/one/agent-card.json", "/agents/nowhere/x/agent-card.json"] {
        let nobody = asked(&catalogue, path, &[]).await;
        assert_eq!((nobody.status, nobody.header("www-authenticate")), (StatusCode::UNAUTHORIZED, "Bearer"), "{path}");
        assert!(nobody.text.starts_with("CallerRefused: "), "{}", nobody.text);
        for stranger in [&person, &other] {
            let answer = asked(&catalogue, path, &[("authorization", &format!("Bearer {stranger}"))]).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}: {}", answer.text);
        }
    }
    let post = Request::post(CATALOGUE).body(Body::empty()).unwrap();
    assert_eq!(catalogue.router().oneshot(post).await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get(&catalogue, "/", "a").await.status, StatusCode::NOT_FOUND);
}

/// What is known counts while it is heard of, and while somebody judges; and only where it was asked for.
#[tokio::test(start_paused = true)]
async fn the_catalogue_is_closed_while_nobody_can_stand_by_it() {
    let (catalogue, switch) = catalogue();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let refused = async |words: &str| {
        let answer = get(&catalogue, CATALOGUE, "a").await;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (StatusCode::SERVICE_UNAVAILABLE, "1"),
            "{}",
            answer.text
        );
        assert!(answer.text.contains(words), "{}", answer.text);
    };
    for heard in [vec![], vec![None], vec![Some(Instant::now()), None]] {
        *catalogue.0.heard.lock() = heard;
        refused("have not been read yet").await;
    }
    let heard = || *catalogue.0.heard.lock() = vec![Some(Instant::now())];
    heard();
    assert_eq!(get(&catalogue, CATALOGUE, "a").await.status, StatusCode::OK);
    tokio::time::sleep(minutes(4)).await;
    assert_eq!(get(&catalogue, CATALOGUE, "a").await.status, StatusCode::OK);
    tokio::time::sleep(minutes(1)).await;
    refused("have not been heard of").await;
    heard();
    refused("nobody judges").await;
    *catalogue.0.judged.lock() = Judged::new(Instant::now());
    assert_eq!(get(&catalogue, CATALOGUE, "a").await.status, StatusCode::OK);
    switch.send_replace(settings(false));
    for (path, headers) in [(CATALOGUE, vec![]), ("/agents/a/one/agent-card.json", vec![("authorization", "Bearer x")])]
    {
        let off = asked(&catalogue, path, &headers).await;
        assert_eq!(off.status, StatusCode::NOT_FOUND);
        assert!(off.text.contains("cards.catalogue.enabled"), "{}", off.text);
    }
}

#[test]
fn a_query_is_read_or_refused_in_words() {
    let after = |namespace: &str, name: &str| Some((namespace.to_owned(), name.to_owned()));
    for (text, skills, limit, behind) in [
        ("", vec![], None, None),
        ("skill=a&skill=b+c%2Bd", vec!["a", "b c+d"], None, None),
        ("limit=7&after=team%2Fw", vec![], Some(7), after("team", "w")),
        ("&&", vec![], None, None),
        ("flag&skill=%C3%A4", vec!["ä"], None, None),
    ] {
        let skills = skills.into_iter().map(str::to_owned).collect();
        assert_eq!(query(text), Ok(Query { skills, limit, after: behind }), "{text}");
    }
    for (text, words) in [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("after=team", "after"),
        ("skill=%f", "percent-encoded"),
        ("skill=%ff", "percent-encoded"),
        ("skill=%zz", "percent-encoded"),
        (&"skill=a&".repeat(9), "at most 8"),
        (&"x".repeat(3_000), "longer"),
    ] {
        assert!(query(text).is_err_and(|said| said.contains(words)), "{text:.30}");
    }
}
