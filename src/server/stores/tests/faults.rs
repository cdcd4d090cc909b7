//! Kinds that are missing, permissions that are missing, servers that lag or go back (docs/cases.md D8, D11, D12).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::protocol::{Answer, Notes, SOURCE, notes_of, scripted};
use crate::cluster::keeper::{Keeper, Keeps};
use crate::cluster::watch::{WatchError, Watching};
use crate::server::stores::sources::Source;
use crate::server::stores::watch::{Sink, run};
use crate::store::{Kind, Reach, Selection, UsedBy};

const FOR_CONTROLLERS: Selection = Selection { used_by: UsedBy::Controllers, ..SOURCE.selection };
const SANDBOXES: Source = Source { kind: Kind::Sandbox, selection: FOR_CONTROLLERS, optional: true, ..SOURCE };
const DEPLOYMENTS: Source = Source { kind: Kind::Deployment, selection: FOR_CONTROLLERS, ..SOURCE };

const LISTED: &str = "Listed";

fn many(count: usize, answer: fn() -> Answer) -> impl Iterator<Item = Answer> {
    std::iter::repeat_with(answer).take(count)
}

#[tokio::test(start_paused = true)]
async fn d11_a_kind_that_is_missing_holds_nobody_up_and_is_found_when_it_comes() {
    let mut script: Vec<_> = many(20, || Answer::Fails(404)).collect();
    script.extend([Answer::Page(&[("a", 4)], 5, false), Answer::Stuck(&[])]);
    let (notes, asked) = notes_of(SANDBOXES, script, 4).await;
    assert_eq!(notes, ["listed", "Absent", "+a@4", LISTED], "no failure is counted");
    let times: Vec<_> = asked.iter().map(|(at, _)| *at).collect();
    assert!(times[1] < Duration::from_secs(1), "a second look is soon, and nobody waits for more: {times:?}");
    // Every 5 s until the absence is certain, every 15 s from then on; half as long or half as long again.
    let certain = |at: Duration| at - times[0] >= Duration::from_secs(30);
    let (certain, before): (Vec<_>, Vec<_>) = times.windows(2).skip(1).take(18).partition(|pair| certain(pair[0]));
    for (pairs, (least, most)) in [(before, (2_500, 7_500)), (certain, (7_500, 22_500))] {
        let pauses: Vec<_> = pairs.iter().map(|pair| pair[1] - pair[0]).collect();
        assert!(
            pauses.len() > 3 && pauses.iter().all(|pause| (least..=most).contains(&pause.as_millis())),
            "{pauses:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_takes_its_objects_along_once_that_is_certain() {
    let mut script = vec![Answer::Page(&[("a", 4)], 5, false), Answer::Events(&[("MODIFIED", "a", 6)])];
    script.extend(many(60, || Answer::Fails(404)));
    let (notes, asked) = notes_of(SANDBOXES, script, 6).await;
    assert_eq!(notes, ["+a@4", LISTED, "listed", "+a@6", "-a@0", "Absent"]);
    let took = asked.last().unwrap().0 - asked[2].0;
    assert!((30..60).contains(&took.as_secs()), "a stuck finalizer would be let go within a minute: {took:?}");
}

/// That the kind is absent is of the history that the process follows by then, whether the cluster went back before the first 404 or after it.
#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_when_the_cluster_goes_back_takes_its_objects_along_as_well() {
    for watch in [Answer::Stuck(&[]), Answer::Events(&[("BOOKMARK", "", 6)])] {
        let mut script = vec![Answer::Page(&[("a", 4)], 5, false), watch];
        script.extend(many(60, || Answer::Fails(404)));
        let ((client, _), watching) = (scripted(script), Watching::default());
        let (history, keeper, (mut sink, mut told)) = (watching.history.clone(), Arc::new(keeper()), Notes::new());
        keeper.join(Box::new(sink.clone()));
        let known = keeper.clone();
        let task = tokio::spawn(async move { run((client, watching), &SANDBOXES, None, (&known, &mut sink)).await });
        let mut notes = Vec::new();
        while notes.len() < 5 {
            notes.push(told.recv().await.unwrap());
            if notes.len() == 3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                // Another watch notices, and tells of what there is now.
                history.went_back("Pod", 0, (900, 5));
                keeper.turn(1);
            }
        }
        task.abort();
        assert_eq!(notes, ["+a@4", LISTED, "listed", "-a@0", "Absent"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_and_errors_in_between_prove_nothing() {
    let script = vec![
        Answer::Page(&[("a", 4)], 5, false),
        // Another replica has not heard of the definition yet.
        Answer::Fails(404),
        Answer::Page(&[("a", 4)], 5, false),
        Answer::Fails(404),
        Answer::Fails(404),
        Answer::Fails(500),
        Answer::Fails(404),
        Answer::Fails(403),
        Answer::Page(&[("a", 4), ("b", 6)], 7, false),
    ];
    let (notes, _) = notes_of(SANDBOXES, script, 8).await;
    let failures = notes.iter().filter(|note| note.starts_with("failed")).count();
    assert_eq!((notes.iter().any(|note| note == "-a@0" || note == "Absent"), failures), (false, 2), "{notes:?}");
    assert!(notes.contains(&"+b@6".to_owned()), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_after_a_kind_has_gone_does_not_bring_anything_back() {
    let mut script: Vec<_> = many(20, || Answer::Fails(404)).collect();
    script.extend([Answer::Fails(500), Answer::Fails(403), Answer::Fails(404), Answer::Page(&[], 5, false)]);
    let (notes, _) = notes_of(SANDBOXES, script, 6).await;
    assert_eq!(notes[..2], ["listed", "Absent"]);
    assert!(notes[2..4].iter().all(|note| note.starts_with("failed")), "{notes:?}");
    assert_eq!(notes[4..], ["recovered", LISTED]);
}

fn keeper() -> Keeper {
    Keeper::new("own", Keeps::Projections)
}

/// Counts how often the server has confirmed what is known.
struct Confirmed(Arc<AtomicUsize>);

impl Sink for Confirmed {
    fn listed(&mut self) {}
    fn alive(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn reach(&mut self, _: Reach) {}
    fn failed(&mut self, _: &WatchError) {}
    fn recovered(&mut self) {}
}

/// That there is nothing of a kind is current as long as the server says that it does not serve it; of objects that were there it is
/// not, until it is certain.
#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_no_stale_one_unless_there_were_objects() {
    for (first, told) in [
        (vec![Answer::Fails(404)], 3..9),
        (vec![Answer::Page(&[("a", 4)], 5, false)], 1..2),
        (
            vec![Answer::Fails(403), Answer::Fails(403), Answer::Fails(403), Answer::Fails(403), Answer::Fails(403)],
            0..1,
        ),
    ] {
        let forbidden = matches!(first[0], Answer::Fails(403));
        let rest = many(60, if forbidden { || Answer::Fails(403) } else { || Answer::Fails(404) });
        let (client, _) = scripted(first.into_iter().chain(rest).collect());
        let counted = Arc::new(AtomicUsize::new(0));
        let mut sink = Confirmed(counted.clone());
        let task =
            tokio::spawn(
                async move { run((client, Watching::default()), &SANDBOXES, None, (&keeper(), &mut sink)).await },
            );
        tokio::time::sleep(Duration::from_secs(20)).await;
        task.abort();
        let counted = counted.load(Ordering::Relaxed);
        assert!(told.contains(&counted), "{counted} times, not {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_kubernetes_is_never_taken_for_missing() {
    let mut script = vec![Answer::Page(&[("a", 4)], 5, false)];
    script.extend(many(10, || Answer::Fails(404)));
    let (notes, _) = notes_of(DEPLOYMENTS, script, 10).await;
    assert_eq!(notes[..3], ["+a@4", LISTED, "listed"]);
    assert!(notes[3..].iter().all(|note| note.starts_with("failed")), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn d12_without_permission_the_others_go_on_and_it_is_asked_for_again_now_and_then() {
    let mut script: Vec<_> = many(70, || Answer::Fails(403)).collect();
    script.push(Answer::Page(&[("a", 4)], 5, false));
    let (notes, asked) = notes_of(DEPLOYMENTS, script, 74).await;
    let failures = notes.iter().take_while(|note| note.starts_with("failed")).count();
    assert_eq!(notes[failures], "listed", "nobody waits, and what is known is not all there is");
    assert!(asked[failures - 1].0 >= Duration::from_secs(10), "a right may be about to come");
    assert_eq!(notes[71..], ["+a@4", "recovered", LISTED], "granted at last");
    assert!(asked[70].0 >= Duration::from_secs(300), "no hot loop: {:?}", asked[70].0);
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_taken_away_ends_all_certainty() {
    let mut script = vec![Answer::Page(&[("a", 4)], 5, false)];
    script.extend(many(12, || Answer::Fails(403)));
    script.push(Answer::Stuck(&[("MODIFIED", "a", 9)]));
    let (notes, _) = notes_of(DEPLOYMENTS, script, 18).await;
    let changes: Vec<_> = notes.iter().filter(|note| !note.starts_with("failed")).map(String::as_str).collect();
    assert_eq!(changes, ["+a@4", LISTED, "listed", "Unknown", "recovered", "+a@9"]);
}

#[tokio::test(start_paused = true)]
async fn admission_never_goes_without_what_it_needs() {
    let script: Vec<_> = many(40, || Answer::Fails(403)).collect();
    let (notes, _) = notes_of(SOURCE, script, 40).await;
    assert!(notes.iter().all(|note| note.starts_with("failed")), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn mend_03_a_server_that_went_back_is_read_again() {
    let script = vec![
        Answer::Page(&[("a", 900)], 901, false),
        // No real server says that; one that did would say enough.
        Answer::Stuck(&[("BOOKMARK", "", 12)]),
        Answer::Page(&[("a", 3)], 12, false),
        Answer::Says(504, "Too large resource version: 12, current: 7", 0),
        Answer::Page(&[("a", 2)], 7, false),
    ];
    let (notes, asked) = notes_of(SOURCE, script, 6).await;
    assert_eq!(notes[..4], ["+a@900", LISTED, "listed", "+a@3"]);
    assert!(notes[4].starts_with("failed") && notes[5] == "+a@2", "{notes:?}");
    assert!(!asked[2].1.contains("watch=true") && !asked[4].1.contains("watch=true"), "{asked:?}");
}

/// A watch from a version that the server has not reached is answered, and silent until its end (measured).
#[tokio::test(start_paused = true)]
async fn mend_03_a_watch_that_ends_in_silence_proves_nothing_and_a_list_follows() {
    let script = vec![
        Answer::Page(&[("a", 900), ("b", 5)], 901, false),
        Answer::Quiet(25),
        // The same number is something else by now, and what has a lower one is no less true.
        Answer::Page(&[("a", 3), ("b", 5)], 12, true),
        Answer::Page(&[("c", 7)], 12, false),
        Answer::Events(&[("MODIFIED", "c", 13)]),
    ];
    let (notes, asked) = notes_of(SOURCE, script, 8).await;
    assert_eq!(notes, ["+a@900", "+b@5", LISTED, "listed", "+a@3", "+b@5", "+c@7", "+c@13"], "and no failure");
    assert!(!asked[2].1.contains("resourceVersion"), "a list that may take back asks for the truth: {asked:?}");
    assert!(asked[4].1.contains("resourceVersion=12"), "{asked:?}");
    assert!(asked[2].0 < Duration::from_secs(26), "{asked:?}");
}

/// Two pages of ConfigMaps at once are what the limits allow, whatever made a list necessary.
#[tokio::test(start_paused = true)]
async fn a_page_waits_for_its_turn_also_after_a_watch_that_ended_in_silence() {
    let source = Source { kind: Kind::ConfigMap, ..SOURCE };
    let (page, again) = (Answer::Page(&[("a", 4)], 5, false), Answer::Page(&[("a", 4)], 5, false));
    let (client, asked) = scripted(vec![page, Answer::Quiet(25), again, Answer::Stuck(&[])]);
    let mut sink = Confirmed(Arc::default());
    let task =
        tokio::spawn(async move { run((client, Watching::default()), &source, None, (&keeper(), &mut sink)).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    let turns = [source.page_turn().await, source.page_turn().await];
    tokio::time::sleep(Duration::from_secs(50)).await;
    let before = asked.lock().len();
    drop(turns);
    tokio::time::sleep(Duration::from_secs(1)).await;
    task.abort();
    assert_eq!((before, asked.lock().len()), (2, 4), "others had both turns, and then nobody");
}

/// A sink whose pages are read in turns.
struct InTurn(Arc<Semaphore>);

impl Sink for InTurn {
    fn pages(&self) -> Option<Arc<Semaphore>> {
        Some(self.0.clone())
    }
    fn listed(&mut self) {}
    fn alive(&mut self) {}
    fn reach(&mut self, _: Reach) {}
    fn failed(&mut self, _: &WatchError) {}
    fn recovered(&mut self) {}
}

/// At a start all kinds are listed at once: what is held of them at a time is bounded, and a watch that runs, or one that failed, keeps nobody waiting.
#[tokio::test(start_paused = true)]
async fn pages_of_other_kinds_are_read_in_turns_which_nobody_keeps() {
    let script = vec![
        Answer::Page(&[("a", 4)], 5, true),
        Answer::Page(&[("b", 4)], 5, false),
        Answer::Events(&[("ERROR", "too old", 410)]),
        Answer::Fails(500),
        Answer::Page(&[("a", 4)], 6, false),
        Answer::Stuck(&[]),
    ];
    let ((client, asked), turns) = (scripted(script), Arc::new(Semaphore::new(1)));
    let mut sink = InTurn(turns.clone());
    let taken = turns.clone().acquire_owned().await.unwrap();
    let task = tokio::spawn(async move {
        run((client, Watching::default()), &DEPLOYMENTS, None, (&keeper(), &mut sink)).await;
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(asked.lock().len(), 0, "somebody else reads a page");
    drop(taken);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(asked.lock().len(), 6, "two pages, a watch, a list that failed, one that did not, and a watch");
    assert_eq!(turns.available_permits(), 1, "while it watches, others read");
    task.abort();
}

/// Nothing but silence does not count as being heard of; a bookmark does.
#[tokio::test(start_paused = true)]
async fn mend_03_silence_confirms_nothing() {
    for (end, confirmed) in [(Answer::Quiet(20), 1), (Answer::Marked(901, 20), 3)] {
        let (client, _) = scripted(vec![Answer::Page(&[("a", 900)], 901, false), end]);
        let counted = Arc::new(AtomicUsize::new(0));
        let mut sink = Confirmed(counted.clone());
        let task = tokio::spawn(async move {
            run((client, Watching::default()), &DEPLOYMENTS, None, (&keeper(), &mut sink)).await
        });
        tokio::time::sleep(Duration::from_secs(24)).await;
        task.abort();
        assert_eq!(counted.load(Ordering::Relaxed), confirmed, "the page, and then bookmark and end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_event_does_not_bring_back_what_was_deleted() {
    let script = vec![
        Answer::Page(&[("a", 4)], 5, false),
        Answer::Events(&[("DELETED", "a", 9), ("MODIFIED", "a", 6), ("ADDED", "b", 7), ("ADDED", "a", 12)]),
        // The same again from another replica.
        Answer::Stuck(&[("ADDED", "a", 10), ("ADDED", "a", 12), ("MODIFIED", "a", 13)]),
    ];
    let (notes, asked) = notes_of(SOURCE, script, 6).await;
    assert_eq!(notes, ["+a@4", LISTED, "listed", "-a@9", "+a@12", "+a@13"]);
    assert!(asked[2].1.contains("resourceVersion=12"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn d8_without_bookmarks_an_old_version_ends_in_a_new_list() {
    let script = vec![
        Answer::Page(&[("a", 4)], 5, false),
        Answer::Stuck(&[]),
        Answer::Says(410, "too old resource version: 5 (800)", 0),
        Answer::Page(&[("a", 4), ("b", 801)], 802, false),
    ];
    let (notes, asked) = notes_of(SOURCE, script, 8).await;
    assert_eq!(notes[3], "failed: no answer within 30 s");
    assert!(notes[4].starts_with("failed") && notes[5..] == ["+a@4", "+b@801", "recovered"], "{notes:?}");
    assert!(asked[3].0 < Duration::from_secs(35), "silence and two pauses: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn d7_a_busy_server_is_left_alone_as_long_as_it_asks_for() {
    let (notes, asked) = notes_of(SOURCE, vec![Answer::Says(429, "busy", 20), Answer::Page(&[], 5, false)], 4).await;
    assert_eq!(notes[1..], ["recovered", LISTED, "listed"]);
    assert!((20..22).contains(&(asked[1].0 - asked[0].0).as_secs()), "{asked:?}");
}

/// Lines of the log while a source is in trouble.
#[derive(Clone, Default)]
struct Lines(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_that_lasts_is_not_told_more_than_once_a_minute() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    // A source that works now and then is the worst: every failure is a new one.
    let mut script = vec![Answer::Page(&[("a", 4)], 5, false)];
    for _ in 0..300 {
        script.extend([Answer::Fails(500), Answer::Events(&[("BOOKMARK", "", 6)])]);
    }
    let (_, asked) = notes_of(DEPLOYMENTS, script, 603).await;
    drop(guard);
    let minutes = asked.last().unwrap().0.as_secs() / 60 + 1;
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count() as u64;
    let interrupted = count("the watch of a kind is interrupted");
    assert!((1..=minutes).contains(&interrupted), "{interrupted} in {minutes} min");
    assert!(count("the watch works again") <= minutes, "{} in {minutes} min", count("the watch works again"));
}
