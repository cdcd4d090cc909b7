//! The judge: what it excuses, and that it excuses nothing else.

use super::*;

const ONE: u16 = 1001;
const TWO: u16 = 1002;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn loss(port: u16, at: Instant, how: How) -> Loss {
    Loss { backend: address(port), at, how }
}

/// 20 s in which instance one was killed in second 8 and back in second 9; nothing was lost.
fn quiet(failure_mode: FailureMode) -> (Evidence, Instant) {
    let begun = Instant::now();
    let second = |number| begun + Duration::from_secs(number);
    let kill = Kill { backend: address(ONE), from: second(8), until: second(9), known: Duration::from_millis(60) };
    let stored = (0..1000).map(|number| (format!("load-{number}"), Fate::Protected)).collect();
    let evidence = Evidence {
        failure_mode,
        took: Duration::from_secs(20),
        kills: vec![kill],
        losses: Vec::new(),
        unserved: 0,
        rejected: 0.0,
        open: 0.0,
        open_rounds: BTreeMap::new(),
        tally: Tally { stored, ..Tally::default() },
        dialled: Dialled { calls: 150, bundles: (0..5).map(|n| vec![n]).collect(), failures: Vec::new(), late: 0 },
        dial_losses: Vec::new(),
        dial_unserved: 0,
    };
    (evidence, begun + Duration::from_millis(8100))
}

fn objection(evidence: Evidence) -> String {
    evidence.judge().map_or_else(|error| format!("{error:#}"), |report| format!("it holds: {report}"))
}

#[test]
fn a_quiet_trial_holds_in_both_modes() {
    for mode in [FailureMode::Fail, FailureMode::Gate] {
        let (evidence, _) = quiet(mode);
        assert!(evidence.judge().is_ok());
    }
}

#[test]
fn what_was_in_flight_on_the_killed_instance_is_excused_and_one_call_more_is_not() {
    let (mut evidence, at) = quiet(FailureMode::Fail);
    evidence.losses = vec![loss(ONE, at, How::Refused), loss(ONE, at, How::Unanswered)];
    evidence.tally.refused = vec!["failed calling webhook".to_owned(); 2];
    evidence.rejected = 2.0;
    evidence.tally.refused.push("failed calling webhook".to_owned());
    evidence.rejected += 1.0;
    assert!(objection(evidence).contains("beyond the 2 calls in flight"));

    let (mut evidence, at) = quiet(FailureMode::Fail);
    evidence.losses = vec![loss(ONE, at, How::Refused), loss(ONE, at, How::Unanswered)];
    evidence.tally.refused = vec!["failed calling webhook".to_owned(); 2];
    evidence.rejected = 2.0;
    let text = objection(evidence);
    assert!(text.starts_with("it holds: ") && text.contains("1 connections without their answer, 1 refused"), "{text}");
}

#[test]
fn a_loss_elsewhere_or_at_another_time_fails_the_trial_though_no_call_failed() {
    for wrong in
        [|at| loss(TWO, at, How::Unanswered), |at: Instant| loss(ONE, at - Duration::from_secs(2), How::Refused)]
    {
        let (mut evidence, at) = quiet(FailureMode::Fail);
        evidence.losses = vec![wrong(at)];
        assert!(objection(evidence).contains("nobody had killed"));
        let (mut evidence, at) = quiet(FailureMode::Gate);
        evidence.dial_losses = vec![wrong(at)];
        assert!(objection(evidence).contains("nobody had killed"));
    }
}

/// A trial under `gate` in which one call failed in `round`, and the Pod became `fate`.
fn one_open(round: u32, fate: Fate) -> Evidence {
    let (mut evidence, at) = quiet(FailureMode::Gate);
    evidence.losses = vec![loss(ONE, at, How::Unanswered)];
    evidence.open = 1.0;
    evidence.open_rounds.insert("load-7".to_owned(), BTreeSet::from([round]));
    evidence.tally.stored.insert("load-7".to_owned(), fate);
    evidence
}

#[test]
fn a_call_let_pass_in_the_first_round_gates_and_one_in_the_second_does_not() {
    assert!(one_open(0, Fate::Gated).judge().is_ok());
    assert!(one_open(1, Fate::Protected).judge().is_ok());
    for (round, fate) in [(0, Fate::Protected), (0, Fate::Stuck), (1, Fate::Gated), (1, Fate::Stuck)] {
        assert!(objection(one_open(round, fate)).contains("load-7 is"), "{round} {fate:?}");
    }
    for round in [0, 1] {
        assert!(objection(one_open(round, Fate::Unprotected)).contains("free to run"));
    }
    let (mut evidence, _) = quiet(FailureMode::Gate);
    evidence.tally.stored.insert("load-7".to_owned(), Fate::Gated);
    assert!(objection(evidence).contains("load-7 is Gated"), "gated though every call was answered");
}

#[test]
fn counts_of_the_api_server_and_its_audit_log_must_agree() {
    let mut evidence = one_open(0, Fate::Gated);
    evidence.open = 2.0;
    assert!(objection(evidence).contains("by the audit log"));
    let mut evidence = one_open(0, Fate::Gated);
    evidence.losses.clear();
    assert!(objection(evidence).contains("beyond the 0 calls in flight"));
}

#[test]
fn a_new_connection_fails_only_with_the_instance_and_never_for_its_certificate() {
    let (mut evidence, at) = quiet(FailureMode::Fail);
    evidence.dialled.failures = vec!["connection reset".to_owned()];
    assert!(objection(evidence).contains("new connections"));
    for (failure, holds) in [("connection reset", true), ("invalid peer certificate: UnknownIssuer", false)] {
        let (mut evidence, _) = quiet(FailureMode::Fail);
        evidence.dial_losses = vec![loss(ONE, at, How::Refused)];
        evidence.kills[0].from = at - Duration::from_secs(1);
        evidence.kills[0].until = at + Duration::from_secs(1);
        evidence.dialled.failures = vec![failure.to_owned()];
        assert_eq!(evidence.judge().is_ok(), holds, "{failure}");
    }
}
