//! How AgentCards are read: what of a page is built at a time, and how many pages.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::super::PAGES;
use super::answers::unread;
use super::callers::api_server;
use super::object;
use crate::cluster::watch::WatchError;
use crate::cluster::watch::follow::Step;
use crate::store::decode::Whole;

fn read(card: &Value) -> Result<Whole, WatchError> {
    serde_json::from_str(&card.to_string()).map_err(|error| kube::Error::SerdeError(error).into())
}

/// Of a page of the largest cards the text alone takes megabytes, and what is built of one of them may take a hundred times its text.
#[tokio::test]
async fn of_a_page_one_card_is_built_after_the_other() {
    let (catalogue, _switch) = unread(api_server(Arc::default(), Duration::ZERO), Vec::new());
    let shared = &catalogue.0;
    let (mut before, mut listed) = (Vec::new(), HashSet::new());
    let mut cards: Vec<Value> = ["x", "y", "z"].map(|name| object("a", name, "echo")).into();
    let items = cards.iter().map(|card| {
        before.push(shared.shelf.read().counts().0);
        read(card)
    });
    assert!(!shared.step("", Step::Page { items, again: false }, &mut listed).unwrap());
    assert_eq!(
        (before, listed.len()),
        (vec![0, 1, 2], 3),
        "whoever asks for the next one has done with the one before"
    );
    // Where one cannot be read, those before it are known, and the list is no list.
    cards[0]["status"] = json!({});
    cards[1]["metadata"] = json!(7);
    let items = cards.iter().map(read);
    assert!(shared.step("", Step::Page { items, again: true }, &mut listed).is_err());
    assert_eq!(shared.shelf.read().counts().0, 2);
}

/// Whoever may write an object writes more on it than anybody of ours does.
#[tokio::test]
async fn of_a_card_nothing_is_built_that_is_larger_than_what_is_written_on_any() {
    let (catalogue, _switch) = unread(api_server(Arc::default(), Duration::ZERO), Vec::new());
    let kept = |card: &Value| {
        catalogue.0.put(read(card).unwrap());
        catalogue.0.shelf.read().counts().0
    };
    let mut card = object("a", "x", "echo");
    let wide: Vec<_> = (0..60_000).map(|_| json!({"b": 1})).collect();
    card["status"]["other"] = json!(wide);
    assert_eq!(kept(&card), 1, "what is not read makes no difference");
    card["status"]["card"]["more"] = json!(wide);
    assert_eq!(kept(&card), 0, "a card of 480 KiB");
}

/// An API server that has no AgentCards, and takes its time for a page; how many it was asked for at once, and in all.
fn slow(most: &Arc<AtomicUsize>, pages: &Arc<AtomicUsize>) -> Client {
    let (most, pages, now) = (most.clone(), pages.clone(), Arc::<AtomicUsize>::default());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (most, pages, now) = (most.clone(), pages.clone(), now.clone());
        async move {
            let asked = request.uri().to_string();
            if !asked.contains("/agentcards") || asked.contains("watch=true") {
                std::future::pending::<()>().await;
            }
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            pages.fetch_add(1, Ordering::Relaxed);
            let page = json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(page.into_bytes())))
        }
    });
    Client::new(service, "default")
}

/// Where namespaces are listed each has a watch of its own, and a page may be as large as 12 MiB.
#[tokio::test(start_paused = true)]
async fn few_pages_are_read_at_once_however_many_namespaces_are_followed() {
    let (most, pages) = (Arc::default(), Arc::default());
    let namespaces: Vec<String> = (0..7).map(|at| format!("n{at}")).collect();
    let (catalogue, _switch) = unread(slow(&most, &pages), namespaces);
    let followed = tokio::time::timeout(Duration::from_secs(5), catalogue.0.follow()).await;
    assert!(followed.is_err(), "it never ends");
    assert_eq!((most.load(Ordering::Relaxed), pages.load(Ordering::Relaxed)), (PAGES, 7));
}
