//! Orders of the queue, and what it holds back.

use super::*;
use crate::controllers::scaffold::plan::Name;
use crate::store::Key;

const ONE: Name = Name::new("one");

fn item(name: &str) -> Item {
    Item { controller: ONE, key: Key::new("n", name) }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn fresh_changes_pass_the_backlog_of_a_start() {
    let mut queue = Queue::default();
    for name in ["a", "b", "c"] {
        queue.add(item(name), Priority::Backlog);
    }
    queue.add(item("new"), Priority::Fresh);
    queue.add(item("c"), Priority::Fresh);
    queue.add(item("c"), Priority::Backlog);
    assert_eq!(queue.depths().collect::<Vec<_>>(), [(ONE, 4)]);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop(9, s(0))).map(|item| item.key.name.to_string()).collect();
    assert_eq!(order, ["new", "c", "a", "b"]);
    assert_eq!(queue.depths().collect::<Vec<_>>(), [(ONE, 0)]);
    queue.add(item("x"), Priority::Fresh);
    queue.clear();
    assert_eq!((queue.depths().collect::<Vec<_>>(), queue.ready()), (vec![(ONE, 0)], 0));
}

fn of(namespace: &str, name: &str) -> Item {
    Item { controller: ONE, key: Key::new(namespace, name) }
}

#[test]
fn namespaces_take_turns_whatever_one_of_them_asks_for() {
    let mut queue = Queue::default();
    for number in 0..100 {
        queue.add(of("flood", &format!("{number:03}")), Priority::Fresh);
    }
    queue.add(of("b", "1"), Priority::Fresh);
    queue.add(of("c", "1"), Priority::Fresh);
    queue.add(of("c", "2"), Priority::Fresh);
    let mut order = Vec::new();
    for _ in 0..7 {
        let item = queue.pop(32, s(0)).unwrap();
        queue.done(&item, Ending::Done(None), s(0), 0.5);
        order.push(format!("{}/{}", item.key.namespace, item.key.name));
    }
    assert_eq!(order, ["b/1", "c/1", "flood/000", "c/2", "flood/001", "flood/002", "flood/003"]);
}

/// A flood whose items take two looks each: the second follows the first, and other namespaces lose no turn by it.
#[test]
fn what_was_begun_is_finished_before_more_of_its_namespace_is_begun() {
    let mut queue = Queue::default();
    for number in 0..1000 {
        queue.add(of("flood", &format!("{number:03}")), Priority::Fresh);
    }
    let mut order = Vec::new();
    let mut look = |queue: &mut Queue, ending| {
        let item = queue.pop(32, s(0)).unwrap();
        if ending == Ending::Done(None) && item.key.name.ends_with('1') {
            // Its own write is the change that asks for the next look.
            queue.add(item.clone(), Priority::Fresh);
        }
        queue.done(&item, ending, s(0), 0.5);
        order.push(format!("{}/{}", item.key.namespace, item.key.name));
    };
    look(&mut queue, Ending::Done(Some(s(0))));
    queue.add(of("other", "1"), Priority::Fresh);
    look(&mut queue, Ending::Done(Some(s(0))));
    look(&mut queue, Ending::Done(None));
    look(&mut queue, Ending::Done(Some(s(60))));
    look(&mut queue, Ending::Done(None));
    look(&mut queue, Ending::Done(None));
    assert_eq!(order, ["flood/000", "other/1", "flood/000", "other/1", "flood/001", "flood/001"]);
}

/// Runs of a flood are made before anything is said of those that are made already.
#[test]
fn what_is_left_once_something_is_made_takes_its_turn() {
    let mut queue = Queue::default();
    for name in ["a", "b", "c"] {
        queue.add(item(name), Priority::Fresh);
    }
    let mut order = Vec::new();
    for ending in [Ending::Done(None), Ending::Made, Ending::Made, Ending::Made, Ending::Made, Ending::Made] {
        let item = queue.pop(32, s(0)).unwrap();
        order.push(item.key.name.to_string());
        // Its own write.
        queue.add(item.clone(), Priority::Fresh);
        queue.done(&item, ending, s(0), 0.5);
    }
    assert_eq!(order, ["a", "a", "b", "c", "a", "b"]);
    let item = queue.pop(32, s(0)).unwrap();
    queue.done(&item, Ending::Made, s(0), 0.5);
    assert_eq!((&*item.key.name, queue.ready(), queue.due()), ("c", 2, None), "a look that nobody asked for");
}

/// One that changes whenever it was looked at does not keep its neighbours from ever being looked at.
#[test]
fn what_goes_on_for_ever_leaves_turns_to_its_neighbours() {
    let mut queue = Queue::default();
    queue.add(item("restless"), Priority::Fresh);
    queue.add(item("neighbour"), Priority::Fresh);
    let mut before = 0;
    while let Some(item) = queue.pop(32, s(0)).filter(|item| &*item.key.name == "restless") {
        before += 1;
        assert!(before <= 2 * IN_A_ROW, "the neighbour never has its turn");
        queue.add(item.clone(), Priority::Fresh);
        queue.done(&item, Ending::Done(None), s(0), 0.5);
    }
    assert_eq!(before, IN_A_ROW);
}

#[test]
fn a_slow_namespace_leaves_workers_to_the_others() {
    let workers = 32;
    let mut queue = Queue::default();
    let mut running = 0;
    let fill = |queue: &mut Queue, running: &mut usize, namespace: &str| {
        for number in 0..100 {
            queue.add(of(namespace, &number.to_string()), Priority::Fresh);
        }
        let before = *running;
        while let Some(item) = queue.pop(workers - *running, s(0)) {
            queue.begun(&item, s(0));
            *running += 1;
        }
        *running - before
    };
    // Nothing of what is begun ever ends.
    let got: Vec<_> = ["a", "b", "c", "d"].map(|name| fill(&mut queue, &mut running, name)).to_vec();
    assert_eq!(got, [16, SHARE, SHARE, SHARE]);
    queue.add(of("e", "1"), Priority::Backlog);
    assert_eq!(queue.pop(workers - running, s(0)), Some(of("e", "1")), "somebody new finds a worker at once");
    assert_eq!(queue.ready(), 400 - 16 - 3 * SHARE);
    queue.done(&of("a", "0"), Ending::Failed(s(0)), s(0), 0.5);
    assert_eq!(queue.pop(2, s(0)).map(|item| item.key.namespace.to_string()), None, "all have two or more under way");
}

/// What others wait for is not a worker but the API server, which a flood keeps busy with all that it has under way.
#[test]
fn while_others_work_a_flood_has_little_under_way() {
    let workers = 32;
    let mut queue = Queue::default();
    for number in 0..100 {
        queue.add(of("flood", &number.to_string()), Priority::Fresh);
    }
    let mut running = Vec::new();
    let fill = |queue: &mut Queue, running: &mut Vec<Item>, now| {
        while let Some(item) = queue.pop(workers - running.len(), now) {
            queue.begun(&item, now);
            running.push(item);
        }
        running.iter().filter(|item| &*item.key.namespace == "flood").count()
    };
    assert_eq!(fill(&mut queue, &mut running, s(0)), workers / 2, "alone it has half of the workers");
    let (once, other) = (Duration::from_millis(100), of("other", "1"));
    let look = |queue: &mut Queue| {
        queue.add(other.clone(), Priority::Fresh);
        assert_eq!(queue.pop(workers / 2, once), Some(other.clone()), "whoever comes has its turn at once");
    };
    look(&mut queue);
    queue.done(&other, Ending::Done(None), once, 0.5);
    queue.done(&running.pop().unwrap(), Ending::Done(None), once, 0.5);
    assert_eq!(fill(&mut queue, &mut running, once), workers / 2, "a look alone keeps nobody busy");
    look(&mut queue);
    queue.begun(&other, once);
    queue.done(&other, Ending::Done(None), once, 0.5);
    // What is under way ends; the other namespace may have its next turn any moment.
    for left in (SHARE..workers / 2).rev() {
        queue.done(&running.pop().unwrap(), Ending::Done(None), once, 0.5);
        assert_eq!(fill(&mut queue, &mut running, once), left, "nothing of the flood is begun meanwhile");
    }
    queue.done(&running.pop().unwrap(), Ending::Done(None), once, 0.5);
    assert_eq!(fill(&mut queue, &mut running, once), SHARE, "its share it has");
    queue.done(&running.pop().unwrap(), Ending::Done(None), once + WORKS, 0.5);
    assert_eq!(fill(&mut queue, &mut running, once + WORKS), workers / 2, "the others have ended");
}

#[test]
fn a_server_that_asks_for_more_time_gets_it() {
    let mut queue = Queue::default();
    queue.add(item("a"), Priority::Fresh);
    let running = queue.pop(1, s(0)).unwrap();
    queue.done(&running, Ending::Failed(s(30)), s(0), 0.5);
    assert_eq!(queue.due(), Some(s(30)));
    let running = queue.pop(1, s(30)).unwrap();
    queue.done(&running, Ending::Failed(s(1)), s(30), 0.5);
    assert_eq!(queue.due(), Some(s(32)), "the pause of a second failure is longer than that");
}

#[test]
fn a_change_during_the_work_is_not_lost_and_never_worked_on_twice_at_once() {
    let mut queue = Queue::default();
    queue.add(item("a"), Priority::Fresh);
    let running = queue.pop(1, s(0)).unwrap();
    queue.add(item("a"), Priority::Backlog);
    assert_eq!(queue.pop(1, s(0)), None);
    queue.done(&running, Ending::Done(Some(s(60))), s(1), 0.5);
    assert_eq!(queue.pop(1, s(1)), Some(item("a")), "the change wins over the timer");
    queue.done(&item("a"), Ending::Done(Some(s(60))), s(1), 0.5);
    assert_eq!((queue.pop(1, s(60)), queue.due()), (None, Some(s(61))));
    queue.add(item("a"), Priority::Fresh);
    assert_eq!(queue.pop(1, s(2)), Some(item("a")), "a timer does not hold a change back");
}

#[test]
fn failures_wait_longer_each_time_whatever_changes_arrive() {
    let mut queue = Queue::default();
    let mut now = s(0);
    let mut pauses = Vec::new();
    queue.add(item("a"), Priority::Fresh);
    for _ in 0..12 {
        let running = queue.pop(1, now).unwrap();
        queue.done(&running, Ending::Failed(s(0)), now, 0.5);
        queue.add(item("a"), Priority::Fresh);
        let due = queue.due().unwrap();
        assert_eq!(queue.pop(1, due - Duration::from_millis(1)), None, "a change does not shorten the pause");
        pauses.push((due - now).as_secs());
        now = due;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    let running = queue.pop(1, now).unwrap();
    queue.done(&running, Ending::Done(None), now, 0.5);
    queue.add(item("a"), Priority::Fresh);
    assert!(queue.pop(1, now).is_some(), "a success forgets");
    queue.done(&running, Ending::Conflict, now, 0.0);
    assert_eq!(queue.due().unwrap() - now, Duration::from_micros(37_500));
}

/// At a start every object of the cluster waits at once, and a table takes as much as it ever held.
#[test]
fn room_that_only_a_start_needs_is_given_back() {
    let mut queue = Queue::default();
    for number in 0..20 * ROOM {
        queue.add(item(&number.to_string()), Priority::Backlog);
    }
    assert!(queue.places.capacity() >= 20 * ROOM);
    while let Some(item) = queue.pop(1, s(0)) {
        queue.done(&item, Ending::Done(None), s(0), 0.5);
    }
    let room = queue.places.capacity();
    assert!((ROOM..=2 * ROOM).contains(&room), "{room}");
}
