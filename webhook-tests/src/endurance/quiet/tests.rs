//! The judgement, without a system.

use super::*;

fn quiet() -> Quiet {
    Quiet { length: Length::Time(Duration::from_secs(60)), times: 1, period: 25, lease: 8 }
}

fn silence(watches: usize, lists: usize) -> Silence {
    Silence {
        lasted: Duration::from_secs(60),
        watches: [("a".to_owned(), watches)].into(),
        lists: [("a".to_owned(), lists)].into(),
        renewals: 1,
        repairs: Vec::new(),
    }
}

#[test]
fn renewals_are_quiet_and_what_is_more_or_less_is_not() {
    let known = BTreeSet::from(["a".to_owned()]);
    let rows = [
        (2, 0, 0, true),
        (3, 0, 0, true),
        (4, 1, 1, true),
        (4, 1, 0, false),
        (4, 2, 2, true),
        (4, 3, 3, false),
        (5, 0, 0, false),
        (0, 0, 0, false),
    ];
    for (watches, lists, silent, holds) in rows {
        let judged = quiet().judge(&silence(watches, lists), silent, &known);
        assert_eq!(judged.is_ok(), holds, "{watches} watches, {lists} lists: {judged:?}");
    }
    let unled = Silence { renewals: 0, ..silence(3, 0) };
    assert!(quiet().judge(&unled, 0, &known).is_err());
    let blind = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert!(quiet().judge(&silence(3, 0), 0, &blind).is_err(), "one is not renewed at all");
}

#[test]
fn a_second_is_longer_where_writes_are_slower() {
    let repair =
        |took, write| Repair { what: "it", took: Duration::from_millis(took), write: Duration::from_millis(write) };
    assert!(repair(999, 1).is_soon() && !repair(1001, 1).is_soon());
    assert!(repair(4000, 100).is_soon() && !repair(6000, 100).is_soon());
}
