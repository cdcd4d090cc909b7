//! Who is asked when, and what is known then: the pure state, and the tasks around it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::state::{BREAKS, Begun, PATIENT_SHARE, PER_HOST, SHARE};
use super::*;
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Item, Name};
use crate::store::Key;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Hello {
    namespace: &'static str,
    port: u16,
    number: u32,
}

impl Question for Hello {
    type Fact = u32;

    fn host(&self) -> Host {
        Host::At(([10, 0, 0, 1], self.port).into())
    }

    fn namespace(&self) -> Arc<str> {
        self.namespace.into()
    }
}

const fn hello(port: u16, number: u32) -> Hello {
    Hello { namespace: "team", port, number }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn one(question: &Hello) -> &[Hello] {
    std::slice::from_ref(question)
}

fn asks(questions: &[Hello], since: Duration) -> Vec<Ask<Hello>> {
    questions.iter().map(|question| Ask { question: question.clone(), since }).collect()
}

fn item(name: &str) -> Key {
    Key::new("team", name)
}

fn error(fault: AskFault) -> Result<u32, AskError> {
    Err(AskError { fault, reason: Reason::InternalError, message: "why".into() })
}

fn all(state: &mut State<Hello>, now: Duration) -> Vec<Begun<Hello>> {
    std::iter::from_fn(|| state.next(now)).collect()
}

#[test]
fn a_question_of_several_items_is_asked_once_and_wakes_them_all() {
    let mut state = State::default();
    let question = hello(1, 1);
    state.ask(&item("a"), asks(one(&question), s(0)), s(1));
    state.ask(&item("b"), asks(one(&question), s(0)), s(1));
    let begun = all(&mut state, s(2));
    assert_eq!(begun.len(), 1);
    assert_eq!(state.ended(&begun[0], Ok(7), s(3)), [item("a"), item("b")]);
    let fact = Fact { value: Ok(7), asked: s(2), at: s(3), failures: 0 };
    assert_eq!(state.facts.get(&question), Some(&fact));
    // The same plans again: what is known is new enough.
    state.ask(&item("a"), asks(one(&question), s(2)), s(4));
    assert_eq!(all(&mut state, s(4)), []);
    // A plan that needs a younger answer has it asked for, and keeps the old one until then.
    let younger = Ask { question: question.clone(), since: s(4) };
    state.ask(&item("a"), vec![younger.clone()], s(5));
    assert_eq!((state.facts.fresh(&younger), state.facts.get(&question)), (None, Some(&fact)));
    let begun = all(&mut state, s(5));
    assert_eq!(begun.len(), 1);
    // While it is under way, one needs it younger still.
    state.ask(&item("b"), asks(one(&question), s(6)), s(6));
    assert_eq!(all(&mut state, s(6)), []);
    state.ended(&begun[0], Ok(8), s(7));
    assert_eq!(all(&mut state, s(7)).len(), 1);
}

#[test]
fn what_no_plan_names_is_forgotten_whatever_state_it_is_in() {
    let mut state = State::default();
    let (known, under_way, waiting) = (hello(1, 1), hello(2, 1), hello(2, 4));
    let others = [hello(2, 2), hello(2, 3)];
    state.ask(&item("a"), asks(&[known.clone(), under_way.clone()], s(0)), s(0));
    let begun = all(&mut state, s(0));
    let of = |question: &Hello| begun.iter().find(|begun| begun.question == *question).unwrap().clone();
    state.ended(&of(&known), Ok(1), s(1));
    state.ask(&item("b"), asks(&[others[0].clone(), others[1].clone(), waiting.clone()], s(0)), s(1));
    let more = all(&mut state, s(1));
    assert_eq!(more.len(), PER_HOST - 1, "the host has no more places");
    state.ask(&item("a"), vec![], s(2));
    state.ask(&item("b"), asks(&[others[0].clone()], s(0)), s(2));
    assert_eq!(state.facts.get(&known), None);
    assert_eq!(state.ended(&of(&under_way), Ok(1), s(3)), [] as [Key; 0]);
    assert_eq!(state.facts.get(&under_way), None);
    assert_eq!(all(&mut state, s(3)), [], "nobody wants to know the rest any more");
    state.ended(&more[0], Ok(1), s(4));
    state.ask(&item("b"), vec![], s(5));
    assert_eq!(format!("{state:?}").matches("Hello").count(), 0, "{state:?}");
    assert_eq!(format!("{state:?}").matches("10.0.0.1").count(), 0, "no host is remembered: {state:?}");
}

#[test]
fn a_slow_host_is_asked_again_with_patience_and_takes_the_places_of_the_slow_only() {
    let mut state = State::default();
    for port in 1..=400 {
        state.ask(&item(&port.to_string()), asks(&[hello(port, 1)], s(0)), s(0));
    }
    let begun = all(&mut state, s(0));
    assert_eq!((begun.len(), begun.iter().all(|one| one.attempt == Attempt::Quick)), (SHARE, true));
    for one in &begun {
        assert_eq!(state.ended(one, error(AskFault::Slow), s(1)), [] as [Key; 0], "not a failure yet");
    }
    let next = all(&mut state, s(1));
    let patient = next.iter().filter(|one| one.attempt == Attempt::Patient).count();
    assert_eq!((patient, next.len()), (PATIENT_SHARE, SHARE), "the quick have the rest of the places");
    // What a host answers in time makes it quick again; what it does not is a failure that people are told.
    let mut of = next.iter().filter(|one| one.attempt == Attempt::Patient);
    let (good, bad) = (of.next().unwrap(), of.next().unwrap());
    assert_eq!(state.ended(bad, error(AskFault::TimedOut), s(2)).len(), 1);
    assert_eq!(state.facts.get(&bad.question).map(|fact| fact.failures), Some(1));
    assert_eq!(state.ended(good, Ok(1), s(2)).len(), 1);
    state.ask(&item(&good.question.port.to_string()), asks(one(&good.question), s(3)), s(3));
    state.ask(&item(&bad.question.port.to_string()), asks(one(&bad.question), s(3)), s(3));
    for one in next.iter().filter(|one| *one != good && *one != bad) {
        state.ended(one, Ok(1), s(3));
    }
    let mut rest = Vec::new();
    loop {
        let begun = all(&mut state, s(3));
        if begun.is_empty() {
            break;
        }
        for one in begun {
            state.ended(&one, Ok(1), s(3));
            rest.push((one.question, one.attempt));
        }
    }
    let attempt = |question: &Hello| rest.iter().find(|(other, _)| other == question).map(|(_, attempt)| *attempt);
    assert_eq!(attempt(&good.question), Some(Attempt::Quick));
    assert_eq!(attempt(&bad.question), Some(Attempt::Patient));
}

#[test]
fn a_host_that_fails_again_and_again_is_left_alone_and_then_tried_once() {
    let mut state = State::default();
    let questions: Vec<_> = (0..4).map(|number| hello(1, number)).collect();
    let mut now = s(0);
    for _ in 0..BREAKS {
        state.ask(&item("a"), asks(&questions[..1], now), now);
        let begun = all(&mut state, now);
        now += s(1);
        state.ended(&begun[0], error(AskFault::Unreachable), now);
    }
    assert_eq!(state.facts.get(&questions[0]).map(|fact| fact.failures), Some(BREAKS));
    let mut paused = Vec::new();
    for _ in 0..6 {
        let before = now;
        now += s(1);
        state.ask(&item("a"), asks(&questions, now), now);
        assert_eq!(all(&mut state, now), [], "left alone");
        let due = state.due().unwrap();
        paused.push((due - before).as_secs());
        now = due;
        let begun = all(&mut state, now);
        assert_eq!(begun.len(), 1, "one trial");
        state.ended(&begun[0], error(AskFault::Unreachable), now);
    }
    assert_eq!(paused, [30, 60, 120, 240, 300, 300]);
    now = state.due().unwrap();
    let begun = all(&mut state, now);
    state.ended(&begun[0], Ok(1), now);
    assert_eq!((all(&mut state, now).len(), state.due()), (PER_HOST, None), "well again");
}

/// What this process lacks is told to whoever asked, and is no failure of a host: it is neither left alone nor slow because of it.
#[test]
fn a_host_that_was_not_asked_has_not_failed() {
    let mut state = State::default();
    let question = hello(1, 1);
    let mut now = s(0);
    for _ in 0..2 * BREAKS {
        state.ask(&item("a"), asks(one(&question), now), now);
        let begun = all(&mut state, now);
        assert_eq!((begun.len(), begun[0].attempt), (1, Attempt::Quick), "{now:?}");
        now += s(10);
        assert_eq!(state.ended(&begun[0], error(AskFault::NotAsked), now), [item("a")]);
        let fact = state.facts.get(&question).unwrap();
        assert_eq!((fact.value.is_err(), fact.failures, state.due()), (true, 0, None));
    }
    state.ask(&item("a"), asks(one(&question), now), now);
    let begun = all(&mut state, now);
    state.ended(&begun[0], error(AskFault::Unreachable), now);
    assert_eq!(state.facts.get(&question).unwrap().failures, 1);
    now += s(1);
    state.ask(&item("a"), asks(one(&question), now), now);
    let begun = all(&mut state, now);
    state.ended(&begun[0], error(AskFault::NotAsked), now);
    assert_eq!(state.facts.get(&question).unwrap().failures, 1, "nor is it well again");
}

#[test]
fn namespaces_have_turns() {
    let mut state = State::default();
    for port in 1..=1000 {
        let question = Hello { namespace: "flood", port, number: 1 };
        state.ask(&Key::new("flood", &port.to_string()), asks(one(&question), s(0)), s(0));
    }
    let begun = all(&mut state, s(0));
    assert_eq!(begun.len(), SHARE);
    for port in 2001..=2010 {
        state.ask(&item(&port.to_string()), asks(&[hello(port, 1)], s(0)), s(0));
    }
    let next = all(&mut state, s(0));
    assert!(next.len() == 10 && next.iter().all(|one| one.question.namespace == "team"), "{next:?}");
    state.ended(&begun[0], Ok(1), s(1));
    assert_eq!(all(&mut state, s(1)).len(), 1);
}

/// Any sequence of asks, ends and times: no place is lost or taken twice, and what is wanted is asked in the end.
#[test]
fn every_question_that_is_wanted_is_asked_and_every_place_comes_back() {
    use proptest::prelude::*;
    proptest!(ProptestConfig::with_cases(200), |(steps in proptest::collection::vec((0u8..4, 0u16..6, 0u32..5, 0u8..6), 1..200))| {
        let mut state: State<Hello> = State::default();
        let mut under_way: Vec<Begun<Hello>> = Vec::new();
        let mut wanted: BTreeMap<u16, Vec<Hello>> = BTreeMap::new();
        let mut now = s(0);
        for (what, port, number, how) in steps {
            now += Duration::from_millis(700);
            match what {
                0 => {
                    let questions: Vec<_> = (0..number).map(|number| hello(port, number)).collect();
                    state.ask(&item(&port.to_string()), asks(&questions, if how == 0 { now } else { s(0) }), now);
                    wanted.insert(port, questions);
                }
                1 | 2 if !under_way.is_empty() => {
                    let one = under_way.swap_remove(usize::from(how) % under_way.len());
                    let value = match how {
                        0 => error(AskFault::Slow),
                        1 => error(AskFault::Unreachable),
                        2 => error(AskFault::TimedOut),
                        _ => Ok(1),
                    };
                    state.ended(&one, value, now);
                }
                _ => under_way.extend(all(&mut state, now)),
            }
            let (running, _) = state.load();
            prop_assert_eq!(running, under_way.len());
            for port in 0..6 {
                let of_host = under_way.iter().filter(|one| one.question.port == port).count();
                prop_assert!(of_host <= PER_HOST);
            }
        }
        // From now on everybody answers.
        for _ in 0..1000 {
            for one in std::mem::take(&mut under_way) {
                state.ended(&one, Ok(1), now);
            }
            under_way = all(&mut state, now);
            if under_way.is_empty() {
                match state.due() {
                    Some(due) => now = now.max(due),
                    None => break,
                }
            }
        }
        prop_assert_eq!(state.load(), (0, 0));
        for question in wanted.values().flatten() {
            let good = state.facts.get(question).is_some_and(|fact| fact.value.is_ok());
            let failed_before = state.facts.get(question).is_some_and(|fact| fact.value.is_err());
            prop_assert!(good || failed_before, "{question:?} was never answered");
        }
        for (port, _) in std::mem::take(&mut wanted) {
            state.ask(&item(&port.to_string()), vec![], now);
        }
        let left = format!("{state:?}");
        prop_assert!(!left.contains("Hello") && !left.contains("10.0.0.1"), "{left}");
    });
}

/// Answers what it is told to; the questions that were asked, and how many at once.
#[derive(Default, Clone)]
struct Peer {
    asked: Arc<Mutex<Vec<(Hello, Attempt)>>>,
}

impl Adapter<Hello> for Peer {
    async fn ask(&self, question: Hello, attempt: Attempt) -> Result<u32, AskError> {
        self.asked.lock().push((question.clone(), attempt));
        match question.number {
            0 => std::future::pending().await,
            1 => panic!("a defect"),
            2 if attempt == Attempt::Quick => error(AskFault::Slow),
            number => Ok(number * 10),
        }
    }
}

fn lane(peer: &Peer) -> (Lane<Hello>, mpsc::UnboundedReceiver<Item>) {
    let (woken, items) = mpsc::unbounded_channel();
    let base = tokio::time::Instant::now();
    (Lane::start(Name::new("asks"), Arc::new(peer.clone()), base, woken, ControllerMetrics::default()), items)
}

fn facts(lane: &Lane<Hello>, name: &str, question: &Hello) -> Option<Fact<u32>> {
    lane.plan(&item(name), s(0), |facts| (facts.get(question).cloned(), asks(std::slice::from_ref(question), s(0))))
}

#[tokio::test(start_paused = true)]
async fn answers_wake_their_items_and_a_defect_is_the_failure_of_one_question() {
    let peer = Peer::default();
    let (lane, mut items) = lane(&peer);
    let (hangs, broken, slow, good) = (hello(1, 0), hello(2, 1), hello(3, 2), hello(4, 3));
    for (name, question) in [("hangs", &hangs), ("broken", &broken), ("slow", &slow), ("good", &good)] {
        assert_eq!(facts(&lane, name, question), None);
    }
    let mut woken: Vec<_> = Vec::new();
    for _ in 0..3 {
        woken.push(items.recv().await.unwrap().key.name.to_string());
    }
    woken.sort();
    assert_eq!(woken, ["broken", "good", "slow"]);
    assert_eq!(facts(&lane, "good", &good).map(|fact| fact.value), Some(Ok(30)));
    assert_eq!(facts(&lane, "slow", &slow).map(|fact| fact.value), Some(Ok(20)));
    let fault = facts(&lane, "broken", &broken).and_then(|fact| fact.value.err()).map(|error| error.fault);
    assert_eq!(fault, Some(AskFault::Unusable));
    let twice = peer.asked.lock().iter().filter(|(question, _)| *question == slow).count();
    assert_eq!(twice, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_and_known_goes_with_the_term() {
    let peer = Peer::default();
    let (lane, mut items) = lane(&peer);
    let (hangs, good) = (hello(1, 0), hello(4, 3));
    facts(&lane, "hangs", &hangs);
    facts(&lane, "good", &good);
    items.recv().await.unwrap();
    lane.forget();
    assert_eq!(facts(&lane, "good", &good), None);
    items.recv().await.unwrap();
    assert_eq!(facts(&lane, "good", &good).map(|fact| fact.value), Some(Ok(30)));
    // The one that hung is nobody's: it is asked again only when a plan names it again.
    let times = |question: &Hello| peer.asked.lock().iter().filter(|(other, _)| other == question).count();
    assert_eq!((times(&hangs), times(&good)), (1, 2));
}
