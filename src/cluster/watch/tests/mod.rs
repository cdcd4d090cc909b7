//! The rule for lists, watches and versions, against an API server in memory, with the clock paused.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::json;
use tokio::time::Instant;

use super::follow::{Following, Selection, Step};
use super::named::{Known, named};
use super::{History, Watching};
use lines::Lines;
use server::Server;

mod alike;
pub(crate) mod lines;
pub(crate) mod server;

fn followed(server: &Server, watching: &Watching) -> (Known, BoxStream<'static, Option<ConfigMap>>) {
    let api = Api::<ConfigMap>::namespaced(server.client(), "ns");
    named(api, "one", "ConfigMap", watching)
}

fn holding(word: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"word": word}})
}

fn word(object: Option<&ConfigMap>) -> String {
    let data = object.and_then(|object| object.data.as_ref());
    data.and_then(|data| data.get("word")).cloned().unwrap_or_default()
}

/// What comes next, and after how long.
async fn next(objects: &mut BoxStream<'static, Option<ConfigMap>>) -> (String, Duration) {
    let before = Instant::now();
    let object = tokio::time::timeout(Duration::from_secs(120), objects.next()).await;
    let object = object.expect("something is told within two minutes").unwrap();
    (word(object.as_ref()), before.elapsed())
}

/// The client gives a connection up after 35 s without a byte; each end was a warning and a longer pause.
#[tokio::test(start_paused = true)]
async fn mend_03_an_hour_of_silence_is_renewals_and_nothing_else() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let server = Server::new("ConfigMap");
    server.put("one", holding("a"));
    let (_, mut objects) = followed(&server, &Watching::default());
    assert_eq!(next(&mut objects).await.0, "a");
    let silent = tokio::time::timeout(Duration::from_secs(3600), objects.next()).await;
    assert!(silent.is_err(), "nothing happened: {silent:?}");
    let asked = server.asked();
    let watches: Vec<_> = asked.iter().filter(|(_, asked)| asked.contains("watch=true")).collect();
    assert_eq!(asked.len() - watches.len(), 2, "one list and one read, at the start: {asked:#?}");
    assert!((144..=146).contains(&watches.len()), "one in 25 s: {}", watches.len());
    assert!(watches.iter().all(|(_, asked)| asked.contains("timeoutSeconds=25")), "{watches:#?}");
    let gaps = watches.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.clone().all(|gap| gap < Duration::from_millis(25_100)), "no pause between two");
    assert!(lines.text().is_empty(), "{}", lines.text());
    server.put("one", holding("b"));
    let (heard, took) = next(&mut objects).await;
    assert!(heard == "b" && took < Duration::from_millis(10), "{heard} after {took:?}");
}

/// Whoever has a turn for each page has one for the first page of a list, too, that silence or the turn of an epoch makes necessary.
#[tokio::test(start_paused = true)]
async fn no_page_is_read_that_was_not_announced() {
    let (server, watching) = (Server::new("ConfigMap"), Watching::default());
    server.put("one", holding("a"));
    let api = Api::<ConfigMap>::namespaced(server.client(), "ns");
    let mut following = Following::new(api, "ConfigMap", Selection::default(), watching.clone());
    let (mut pages, mut watches, mut announced) = (0, 0, 0);
    while pages < 3 {
        let lists = following.lists();
        match following.next_in_turn().await.unwrap() {
            Some(Step::Page { .. }) => {
                assert!(lists, "page {pages}");
                pages += 1;
            }
            Some(Step::Begun) if watches == 0 => {
                watches += 1;
                // From now on the cache stands still: nothing comes until the end, not even a bookmark.
                server.restore(server.backup(), false);
            }
            Some(Step::Begun) => watching.history.went_back("another", 0, (9, 5)),
            Some(Step::Listed) => {}
            Some(other) => panic!("{other:?}"),
            None => {
                assert!(!lists && following.lists());
                announced += 1;
            }
        }
    }
    assert_eq!(announced, 2);
}

/// Whoever may write an object may write it as often as they like: that nobody can read all of it costs no list of its kind.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_deep_is_listed_once_and_then_heard_of_like_others() {
    let (server, watching) = (Server::new("ConfigMap"), Watching::default());
    // Who owns which field is for whoever writes an object to say, and as deep as they like.
    let fields = (0..150).fold(json!({}), |below, _| json!({"f:a": below}));
    let deep = |word: &str| {
        let mut object = holding(word);
        object["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Apply", "fieldsV1": fields}]);
        object
    };
    server.put("one", deep("listed"));
    let api = Api::<ConfigMap>::namespaced(server.client(), "ns");
    let mut following = Following::new(api, "ConfigMap", Selection::default(), watching);
    let mut told = Vec::new();
    while told.len() < 5 {
        match following.next().await.expect("no failure") {
            Step::Page { items, .. } => told.extend(items.iter().map(|one| word(Some(one)))),
            Step::Begun => {
                for word in ["first", "second", "third"] {
                    server.put("one", deep(word));
                }
                server.delete("one");
            }
            Step::Changed(object) => told.push(word(Some(&object))),
            Step::Deleted(object) => told.push(format!("{} is gone", word(Some(&object)))),
            Step::Listed | Step::Alive | Step::Renewed => {}
        }
    }
    assert_eq!(told, ["listed", "first", "second", "third", "third is gone"]);
    let lists = server.asked().into_iter().filter(|(_, asked)| !asked.contains("watch=true")).count();
    assert_eq!(lists, 1);
}

#[tokio::test(start_paused = true)]
async fn mend_03_a_cluster_that_went_back_is_followed_and_told_of_once() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let (server, watching) = (Server::new("ConfigMap"), Watching::default());
    server.put("one", holding("old"));
    let backup = server.backup();
    let mut all: Vec<_> = (0..5).map(|_| followed(&server, &watching).1).collect();
    for objects in &mut all {
        assert_eq!(next(objects).await.0, "old");
    }
    server.put("one", holding("new"));
    server.pass(1000);
    for objects in &mut all {
        assert_eq!(next(objects).await.0, "new");
    }
    // The positions are where the last bookmarks were.
    for objects in &mut all {
        assert!(tokio::time::timeout(Duration::from_secs(60), objects.next()).await.is_err());
    }
    server.restore(backup, true);
    for objects in &mut all {
        let (heard, took) = next(objects).await;
        assert!(heard == "old" && took < Duration::from_secs(30), "{heard} after {took:?}");
    }
    assert_eq!(watching.history.epoch(), 1);
    assert_eq!(lines.text().matches("the cluster went back").count(), 1, "{}", lines.text());
    // Numbers that were given before are given again.
    server.put("one", holding("newer"));
    for objects in &mut all {
        assert_eq!(next(objects).await.0, "newer");
    }
    assert_eq!(lines.text().lines().count(), 1, "{}", lines.text());
}

/// Then lists and watches come from a cache that stopped, for ever.
#[tokio::test(start_paused = true)]
async fn mend_03_where_the_server_was_not_restarted_reads_by_name_are_believed() {
    let (server, watching) = (Server::new("ConfigMap"), Watching::default());
    server.put("one", holding("old"));
    let backup = server.backup();
    let (_, mut objects) = followed(&server, &watching);
    assert_eq!(next(&mut objects).await.0, "old");
    server.put("one", holding("new"));
    assert_eq!(next(&mut objects).await.0, "new");
    server.pass(1000);
    server.restore(backup, false);
    let (heard, took) = next(&mut objects).await;
    assert!(heard == "old" && took < Duration::from_secs(60), "{heard} after {took:?}");
    assert_eq!(watching.history.epoch(), 1, "a read by name below what is known");
    server.put("one", holding("newer"));
    let (heard, took) = next(&mut objects).await;
    assert!(heard == "newer" && took < Duration::from_secs(60), "{heard} after {took:?}");
    server.restore(server.backup(), true);
    server.put("one", holding("newest"));
    while next(&mut objects).await.0 != "newest" {}
    assert_eq!(watching.history.epoch(), 2, "the list of the server that was restarted is below its old cache");
}

#[tokio::test(start_paused = true)]
async fn mend_03_a_restart_or_a_server_that_was_behind_turns_no_page() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let (server, watching) = (Server::new("ConfigMap"), Watching::default());
    server.put("one", holding("a"));
    let (_, mut objects) = followed(&server, &watching);
    assert_eq!(next(&mut objects).await.0, "a");
    for _ in 0..3 {
        assert!(tokio::time::timeout(Duration::from_secs(10), objects.next()).await.is_err(), "nothing happens");
        server.restart();
        assert!(tokio::time::timeout(Duration::from_secs(60), objects.next()).await.is_ok(), "read again by name");
    }
    assert_eq!(watching.history.epoch(), 0);
    assert!(!lines.text().contains("went back"), "{}", lines.text());
}

/// The answer to a write counts at once: an older event that was under way does not undo it, and one that is lower than
/// what was known when it was sent tells that the cluster went back.
#[tokio::test(start_paused = true)]
async fn mend_03_answers_to_writes_and_reads_are_held_against_what_was_known() {
    let history = History::default();
    let known = Known::new("x", history.clone());
    known.wrote(0, Some("100"));
    known.wrote(100, Some("105"));
    assert_eq!((known.version(), history.epoch()), (105, 0));
    assert!(!known.read(100, 103), "an answer that was overtaken");
    assert!(!known.read(100, 0), "also that there is none");
    assert_eq!((known.version(), history.epoch()), (105, 0));
    assert!(known.read(105, 0), "gone");
    assert_eq!(known.version(), 0);
    known.wrote(0, Some("120"));
    assert!(known.read(120, 50), "a backup");
    assert_eq!((known.version(), history.epoch()), (50, 1));
    known.wrote(50, Some("40"));
    assert_eq!((known.version(), history.epoch()), (40, 2), "a write that came out below: another backup");
}

#[tokio::test(start_paused = true)]
async fn mend_03_trouble_is_told_once_a_minute_and_its_end_once() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let server = Server::new("ConfigMap");
    server.put("one", holding("a"));
    let (_, mut objects) = followed(&server, &Watching::default());
    assert_eq!(next(&mut objects).await.0, "a");
    server.breaks(&[http::Method::GET]);
    server.restart();
    assert!(tokio::time::timeout(Duration::from_secs(600), objects.next()).await.is_err());
    let told = lines.text().lines().filter(|line| line.contains("cannot be watched")).count();
    assert!((9..=11).contains(&told), "{told} in ten minutes");
    server.breaks(&[]);
    let (heard, took) = next(&mut objects).await;
    assert!(heard == "a" && took <= Duration::from_secs(15), "{heard} after {took:?}");
    assert!(tokio::time::timeout(Duration::from_secs(60), objects.next()).await.is_err());
    assert_eq!(lines.text().matches("works again").count(), 1, "{}", lines.text());
}
