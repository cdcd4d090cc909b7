//! The signer that stays as a table over time: each line is something that happens, and what is done then.

use std::sync::Arc;
use std::time::Duration;

use super::{LONGEST, Machine, Seen, Step, Work, pause};

/// 15 January 2027, 08:00: when the trials begin.
const CLOCK: i64 = 1_800_000_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// A signer and what a shell would have done for it.
struct Trial {
    machine: Machine,
    done: Vec<String>,
    fails: [bool; 2],
}

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

fn name(work: &Work) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("{} by {}", text(&work.card), text(&work.chain))
}

impl Trial {
    fn new(if_present: bool, publishes: bool) -> Self {
        Self { machine: Machine::new(PATIENCE, if_present, publishes, false), done: Vec::new(), fails: [false; 2] }
    }

    fn svid(mut self, name: &str, lives: i64) -> Self {
        self.machine.renewed(bytes(name), CLOCK + lives);
        self
    }

    fn card(mut self, text: &str) -> Self {
        self.machine.looked(Seen::Card(bytes(text)));
        self
    }

    fn absent(mut self) -> Self {
        self.machine.looked(Seen::Absent);
        self
    }

    fn failing(mut self, sign: bool, publish: bool) -> Self {
        self.fails = [sign, publish];
        self
    }

    /// Everything that is done at that second, and until when nothing is.
    fn at(&mut self, second: f64) -> (Vec<String>, Option<f64>) {
        let now = Duration::from_secs_f64(second);
        let clock = CLOCK + i64::try_from(now.as_secs()).unwrap();
        self.done.clear();
        for _ in 0..9 {
            match self.machine.step(now, clock) {
                Step::Sign(work) => {
                    self.done.push(format!("sign {}", name(&work)));
                    self.machine.signed(work, !self.fails[0], (now, now));
                }
                Step::Publish(work) => {
                    self.done.push(format!("publish {}", name(&work)));
                    self.machine.published(work, !self.fails[1], (now, now));
                }
                Step::Release => {
                    self.done.push("release".to_owned());
                    self.machine.released();
                }
                Step::GiveUp => {
                    self.done.push("give up".to_owned());
                    return (self.done.clone(), None);
                }
                Step::Wait(until) => return (self.done.clone(), until.map(|until| until.as_secs_f64())),
            }
        }
        panic!("no end: {:?}", self.done)
    }
}

#[test]
fn the_agent_starts_when_the_first_signature_stands_and_each_renewal_and_each_card_is_signed_once() {
    let mut trial = Trial::new(true, true).card("a");
    assert_eq!(trial.at(0.0), (vec![], Some(30.0)));
    let mut trial = trial.svid("one", 3_600);
    assert_eq!(trial.at(2.0), (["sign a by one", "publish a by one", "release"].map(str::to_owned).into(), None));
    // The agent says the same SVID again, as after a break of the call, and the card is looked at every few seconds.
    for second in [3.0, 500.0, 1_000.0] {
        trial = trial.svid("one", 3_600).card("a");
        assert_eq!(trial.at(second), (vec![], None), "{second}");
    }
    let mut trial = trial.svid("two", 5_400);
    assert_eq!(trial.at(1_800.0).0, ["sign a by two", "publish a by two"]);
    let mut trial = trial.card("b");
    assert_eq!(trial.at(1_900.0).0, ["sign b by two", "publish b by two"]);
    // A card that is taken away leaves what stands; the same one again is signed already.
    let mut trial = trial.absent();
    assert_eq!(trial.at(2_000.0), (vec![], None));
    let mut trial = trial.card("b");
    assert_eq!(trial.at(2_100.0), (vec![], None));
}

#[test]
fn without_a_card_the_agent_starts_where_that_is_no_failure_and_the_card_is_signed_when_it_is_there() {
    let mut trial = Trial::new(true, true).absent();
    assert_eq!(trial.at(0.0), (vec!["release".to_owned()], None));
    let mut trial = trial.svid("one", 3_600).card("a");
    assert_eq!(trial.at(90.0).0, ["sign a by one", "publish a by one"]);
    // Where it is one, it is waited for like everything else.
    let mut strict = Trial::new(false, true).absent().svid("one", 3_600);
    assert_eq!(strict.at(1.0), (vec![], Some(30.0)));
    assert_eq!(strict.at(30.0).0, ["give up"]);
    // That it cannot be read is not that there is none.
    assert_eq!(Trial::new(true, true).at(0.0), (vec![], Some(30.0)));
}

#[test]
fn who_has_no_first_signature_in_time_gives_up_and_later_nobody_does() {
    let mut none = Trial::new(true, true).card("a");
    assert_eq!((none.at(29.9).0, none.at(30.0).0), (vec![], vec!["give up".to_owned()]));
    let mut unsigned = Trial::new(true, true).card("torn").svid("one", 3_600).failing(true, false);
    assert_eq!(unsigned.at(0.0).0, ["sign torn by one"]);
    assert_eq!(unsigned.at(30.0).0, ["sign torn by one", "give up"]);
    // An SVID that has ended signs nothing, and the agent goes on.
    let mut later = Trial::new(true, true).card("a").svid("one", 60);
    later.at(0.0);
    let mut later = later.card("b");
    for second in [60.0, 90.0, 10_000.0] {
        assert_eq!(later.at(second), (vec![], None), "{second}");
    }
    // A process that was started anew in a Pod whose agent runs holds nobody and gives nothing up.
    let again = Machine::new(PATIENCE, true, true, true);
    assert_eq!(again.step(PATIENCE * 10, CLOCK), Step::Wait(None));
}

#[test]
fn the_agent_waits_ten_seconds_for_the_publication_and_what_failed_is_tried_again_ever_more_seldom() {
    let mut trial = Trial::new(true, true).card("a").svid("one", 3_600).failing(false, true);
    assert_eq!(trial.at(1.0), (["sign a by one", "publish a by one"].map(str::to_owned).into(), Some(1.5)));
    assert_eq!(trial.at(1.4).0, [] as [String; 0]);
    let (mut second, mut attempts, mut released) = (1.5, Vec::new(), None);
    while second < 1_000.0 {
        let (done, until) = trial.at(second);
        attempts.extend(done.iter().filter(|done| done.starts_with("publish")).map(|_| second));
        released = released.or(done.contains(&"release".to_owned()).then_some(second));
        second = until.unwrap();
    }
    assert_eq!(released, Some(11.0));
    let between: Vec<f64> = attempts.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(between.windows(2).all(|two| two[1] >= two[0]), "{between:?}");
    assert_eq!(between.last(), Some(&LONGEST.as_secs_f64()));
    // What is others by then is tried at once, and what was good in the end is over.
    let mut trial = trial.svid("two", 3_600);
    assert_eq!(trial.at(1_000.5).0, ["sign a by two", "publish a by two"]);
    let mut trial = trial.failing(false, false);
    assert_eq!(trial.at(1_001.5), (vec!["publish a by two".to_owned()], None));
}

#[test]
fn who_is_not_told_where_publishes_nothing() {
    let mut trial = Trial::new(false, false).card("a").svid("one", 3_600);
    assert_eq!(trial.at(0.0), (["sign a by one", "release"].map(str::to_owned).into(), None));
}

#[test]
fn pauses_double_up_to_the_longest_however_many_failures_there_were() {
    let seconds = |failures| pause(failures, LONGEST).as_secs_f64();
    assert_eq!([1, 2, 3, 4, 7, 8, 9].map(seconds), [0.5, 1.0, 2.0, 4.0, 32.0, 60.0, 60.0]);
    assert_eq!((seconds(0), seconds(u32::MAX)), (0.5, 60.0));
}

/// Whatever happens in whatever order: nothing is signed or published twice for the same, and nothing before what it is made of.
#[test]
fn in_any_order_the_same_is_signed_once() {
    // Each number is a story; its digits to the base of six are what happens, a second apart.
    for story in 0..6_u32.pow(6) {
        let (mut trial, mut done) = (Trial::new(true, true), Vec::new());
        let mut rest = story;
        for second in 0..6_u32 {
            trial = match rest % 6 {
                0 => trial.svid("one", 1_000),
                1 => trial.svid("two", 1_000),
                2 => trial.card("a"),
                3 => trial.card("b"),
                4 => trial.absent(),
                _ => trial.svid("old", 1),
            };
            rest /= 6;
            let steps = trial.at(f64::from(second)).0;
            assert!(steps.iter().filter(|step| step.starts_with("sign")).count() < 2, "{story}: {steps:?}");
            done.extend(steps);
        }
        assert!(done.iter().filter(|step| *step == "release").count() < 2, "{story}: {done:?}");
        for pair in done.windows(2) {
            assert!(pair[0] != pair[1], "{story}: {done:?}");
            if let Some(what) = pair[1].strip_prefix("publish ") {
                assert_eq!(pair[0].strip_prefix("sign "), Some(what), "{story}: {done:?}");
            }
        }
    }
}
