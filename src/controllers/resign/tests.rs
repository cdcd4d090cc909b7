//! Restarts for a card's signature as tables, by the numbers of the cases of cards (docs/cases.md).
//!
//! Case 149 holds as corrected: the authorities' fingerprint is written down only where none of them vouches for the signature any more, and
//! that another authority joins them restarts nobody.

use std::time::Duration;

use serde_json::{Value, json};

use super::due::{Due, Known, due, horizon, second, text};
use super::memory::{Plan, Resign};
use super::plan::{NAME, ROW};
use crate::config::gates::Gates;
use crate::controllers::looks;
use crate::controllers::scaffold::fixtures::{Cluster, s, undeclared, workload};
use crate::controllers::scaffold::memory::Rollout;
use crate::controllers::scaffold::plan::{Item, Name, Op};
use crate::controllers::scaffold::signing::{Signing, Stands};
use crate::domain::reason::Reason;
use crate::domain::resign::Cause;
use crate::store::{Key, Kind};

/// 15 January 2027, 08:00.
const NOW: i64 = 1_800_000_000;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const CARD: &str = "w-deployment-card";

fn until(leaf: i64, authority: i64) -> Stands {
    Stands::Until { from: NOW, leaf, authority }
}

/// A certificate of an hour, an authority of a day, upstream's tolerance of none.
fn known(now: i64, stands: Stands) -> Known<'static> {
    Known {
        now,
        stands,
        bundle: "two",
        tolerance: Duration::ZERO,
        grace: Duration::from_secs(1_800),
        restarted: None,
        handled: None,
        lost_under: None,
        spread: 0,
    }
}

#[test]
fn case_146_a_certificate_that_is_about_to_end_restarts_its_workload() {
    let stands = until(NOW + HOUR, NOW + DAY);
    // A quarter of the hour: half of it would be a restart every half hour.
    assert_eq!(due(&known(NOW + HOUR - 901, stands)), Due::At(NOW + HOUR - 900));
    assert_eq!(due(&known(NOW + HOUR - 900, stands)), Due::Now(Cause::LeafExpires));
    // An old certificate counts for a day more, unless its authority ends before.
    let tolerant = Known { tolerance: Duration::from_secs(86_400), ..known(NOW + HOUR, stands) };
    assert_eq!(due(&tolerant), Due::At(NOW + DAY - 1_800));
    assert_eq!(due(&Known { now: NOW + DAY - 1_800, ..tolerant }), Due::Now(Cause::AuthorityExpires));
    assert_eq!(horizon(NOW + HOUR, NOW + 10 * DAY, Duration::from_secs(60)), (NOW + HOUR + 60, Cause::LeafExpires));
    // Nothing to gain from a certificate that counts for no time at all.
    assert_eq!(due(&known(NOW, until(NOW, NOW))), Due::Never);
}

#[test]
fn case_147_one_end_restarts_once() {
    let stands = until(NOW + HOUR, NOW + DAY);
    let end = text(NOW + HOUR);
    let handled = Known { handled: Some(&end), restarted: Some(NOW + HOUR - 900), ..known(NOW + HOUR - 900, stands) };
    for now in [NOW + HOUR - 900, NOW + HOUR, NOW + 2 * HOUR, NOW + DAY] {
        assert_eq!(due(&Known { now, ..handled }), Due::Never, "{now}");
    }
    // Every certificate of an authority that ends is one end.
    let end = text(NOW + DAY);
    let tolerance = Duration::from_secs(86_400);
    for leaf in [NOW + DAY - 60, NOW + DAY] {
        let stands = Stands::Until { from: NOW + 23 * HOUR, leaf, authority: NOW + DAY };
        let handled = Known { handled: Some(&end), tolerance, ..known(NOW + DAY - 30, stands) };
        assert_eq!(due(&handled), Due::Never, "{leaf}");
    }
}

#[test]
fn case_148_a_new_certificate_restarts_once_more_when_the_grace_is_over() {
    let before = text(NOW + HOUR);
    let stands = Stands::Until { from: NOW + HOUR, leaf: NOW + 2 * HOUR, authority: NOW + DAY };
    let at = |now, restarted| Known { handled: Some(&before), restarted: Some(restarted), ..known(now, stands) };
    let begins = NOW + 2 * HOUR - 900;
    assert_eq!(due(&at(begins, begins - 899)), Due::At(begins + 1));
    assert_eq!(due(&at(begins + 1, begins - 899)), Due::Now(Cause::LeafExpires));
}

#[test]
fn case_149_another_authority_in_the_bundle_restarts_nobody() {
    let stands = until(NOW + HOUR, NOW + DAY);
    for bundle in ["two", "three"] {
        let known = Known { bundle, lost_under: Some("one"), ..known(NOW + HOUR - 901, stands) };
        assert_eq!(due(&known), Due::At(NOW + HOUR - 900), "{bundle}");
    }
}

#[test]
fn case_151_a_lost_authority_restarts_also_who_was_restarted_for_that_certificate() {
    let end = text(NOW + HOUR);
    let lost = Known { handled: Some(&end), ..known(NOW + HOUR, Stands::Lost) };
    assert_eq!(due(&lost), Due::Now(Cause::AuthorityLost));
    assert_eq!(due(&Known { restarted: Some(NOW + HOUR - 1), ..lost }), Due::At(NOW + HOUR - 1 + 1_800));
    // Once under the same authorities.
    assert_eq!(due(&Known { lost_under: Some("two"), ..lost }), Due::Never);
    assert_eq!(due(&Known { lost_under: Some("one"), ..lost }), Due::Now(Cause::AuthorityLost));
}

/// What ends at the same moment begins in the first half of the grace, and at different moments.
#[test]
fn restarts_are_spread() {
    let stands = until(NOW + 10 * HOUR, NOW + DAY);
    let begins = |spread| match due(&Known { spread, ..known(NOW, stands) }) {
        Due::At(second) => second - (NOW + 10 * HOUR),
        other => panic!("{other:?}"),
    };
    assert_eq!((begins(0), begins(512), begins(1_023)), (-1_800, -1_350, -901));
}

/// Two days of an authority that rotates every day, certificates of an hour, as SPIRE's: one restart per authority.
#[test]
fn case_150_two_days_of_rotation_take_one_restart_for_each_end() {
    let tolerance = Duration::from_secs(86_400);
    let (mut signed, mut handled, mut restarted, mut restarts) = (NOW, None::<String>, None, Vec::new());
    for now in (NOW..NOW + 2 * DAY).step_by(60) {
        // An authority of 24 h; the next one signs from the sixteenth hour on.
        let authority_of =
            |at: i64| NOW + (at - NOW + 8 * HOUR) / DAY * DAY + DAY + if at - NOW < 16 * HOUR { 0 } else { 8 * HOUR };
        let stands = Stands::Until { from: signed, leaf: signed + HOUR, authority: authority_of(signed) };
        let known = Known { tolerance, handled: handled.as_deref(), restarted, ..known(now, stands) };
        if let Due::Now(cause) = due(&known) {
            handled = super::due::end(stands, cause);
            (signed, restarted) = (now, Some(now));
            restarts.push((now - NOW) / HOUR);
        }
    }
    assert!((1..=2).contains(&restarts.len()), "{restarts:?}");
}

#[test]
fn times_are_written_as_they_are_read() {
    assert_eq!(text(NOW), "2027-01-15T08:00:00Z");
    assert_eq!((second("2027-01-15T08:00:00Z"), second("2027-01-15T09:00:00+01:00")), (Some(NOW), Some(NOW)));
    assert_eq!(second("yesterday"), None);
}

/// Deployment `w` that signs, its card, and how its signature stands.
struct Trial {
    cluster: Cluster,
    kind: Kind,
    object: Value,
}

impl Trial {
    fn with(platform: &str, kind: Kind, more: Value) -> Self {
        let mut cluster = Cluster::with(platform, Gates::default());
        let mut object = workload(
            kind,
            "w",
            json!({
                "metadata": {"generation": 1},
                "spec": {"replicas": 1, "template": {"spec": {"initContainers": [{"name": "sign-agentcard", "image": "s"}]}}},
                "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1},
            }),
        );
        json_patch::merge(&mut object, &more);
        cluster.see(kind, object.clone());
        let name = kind.workload().unwrap().as_str();
        let target = json!({"apiVersion": kind.api_version(), "kind": name, "name": "w"});
        cluster.see(
            Kind::AgentCard,
            json!({"metadata": {"name": CARD, "namespace": "team", "uid": "card-w", "resourceVersion": "30", "generation": 1},
                "spec": {"targetRef": target}}),
        );
        cluster.memory.surveyed = true;
        Self { cluster, kind, object }
    }

    fn new(more: Value) -> Self {
        Self::with("cards: {proactiveRestart: true, expiredSvidSeconds: 0}\n", Kind::Deployment, more)
    }

    /// The card was judged at second 100 of the plans' clock, which is that second.
    fn judged(mut self, stands: Stands, read: i64) -> Self {
        let item = Item { controller: looks::AGENT_CARD, key: Key::new("team", CARD) };
        let signing = Signing { stands, bundle: "two".into(), read, at: s(100) };
        self.cluster.memory.is_signed(&item, Some(signing));
        self
    }

    fn plan(&mut self, now: u64) -> Plan {
        let key = Key::new("team", CARD);
        let plan = self.cluster.plan_at(ROW, &key, s(now));
        assert_eq!(plan.ops.iter().flat_map(undeclared).collect::<Vec<_>>(), Vec::<String>::new());
        self.cluster.note::<Resign>(NAME, &key, plan.note);
        plan
    }

    /// The workload as the API server has it, once the plan is carried out: its rollout has begun.
    fn carried_out(&mut self, plan: &Plan) -> Vec<Reason> {
        let mut told = Vec::new();
        for op in &plan.ops {
            match op {
                Op::Merge { patch, .. } => {
                    json_patch::merge(&mut self.object, patch);
                    self.object["metadata"]["resourceVersion"] = json!("11");
                    self.object["metadata"]["generation"] = json!(2);
                    self.cluster.see(self.kind, self.object.clone());
                }
                Op::Report(report) => told.push(report.reason),
                other => panic!("{other:?}"),
            }
        }
        told
    }

    fn rolled_out(&mut self) {
        self.object["metadata"]["resourceVersion"] = json!("12");
        self.object["status"]["observedGeneration"] = json!(2);
        self.cluster.see(self.kind, self.object.clone());
    }

    fn of_template(&self, key: &str) -> &Value {
        &self.object["spec"]["template"]["metadata"]["annotations"][format!("agentcard.kagenti.dev/{key}")]
    }

    fn of_workload(&self, key: &str) -> &Value {
        &self.object["metadata"]["annotations"][format!("agentcard.kagenti.dev/{key}")]
    }
}

const ENDING: Stands = Stands::Until { from: NOW - HOUR, leaf: NOW, authority: NOW + DAY };

#[test]
fn case_146_the_template_says_when_and_for_what_and_it_is_told_once() {
    for kind in [Kind::Deployment, Kind::StatefulSet] {
        let platform = "cards: {proactiveRestart: true, expiredSvidSeconds: 0}\n";
        let mut trial = Trial::with(platform, kind, json!({})).judged(ENDING, NOW - 100);
        let plan = trial.plan(100);
        assert!(plan.note.rolling, "{plan:?}");
        assert_eq!(trial.carried_out(&plan), [Reason::ResignTriggered]);
        assert_eq!(trial.of_template("resign-trigger"), "2027-01-15T07:58:20Z");
        assert_eq!(trial.of_template("resign-leaf-expiry"), "2027-01-15T08:00:00Z");
        assert_eq!(
            (trial.of_workload("resign-cause"), trial.of_workload("bundle-hash")),
            (&json!("leaf-expires"), &Value::Null)
        );
        // It keeps its place until it is over, and then nothing more is done for that certificate.
        let plan = trial.plan(110);
        assert!(plan.ops.is_empty() && plan.note.rolling, "{plan:?}");
        trial.rolled_out();
        for now in [120, 5_000, 90_000] {
            let plan = trial.plan(now);
            assert!(plan.ops.is_empty() && !plan.note.rolling, "{now}: {plan:?}");
        }
    }
}

#[test]
fn case_150_a_healthy_signature_writes_nothing() {
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW - HOUR);
    let plan = trial.plan(100);
    assert_eq!((plan.ops.as_slice(), plan.again), (&[] as &[Op], Some(s(60))));
    // A minute before it is due, the next look is then.
    let plan = trial.plan(100 + 3_600 - 900 - 20);
    assert!(plan.ops.is_empty() && plan.again <= Some(s(60)), "{plan:?}");
}

#[test]
fn case_151_a_lost_authority_restarts_after_five_minutes_once_for_the_same_authorities() {
    let mut trial = Trial::new(json!({})).judged(Stands::Lost, NOW);
    assert_eq!(trial.plan(100).ops, [], "it may be published yet");
    assert_eq!(trial.plan(399).ops, []);
    let plan = trial.plan(400);
    assert_eq!(trial.carried_out(&plan), [Reason::ResignTriggered]);
    assert_eq!(
        (trial.of_workload("resign-cause"), trial.of_workload("bundle-hash")),
        (&json!("authority-lost"), &json!("two"))
    );
    assert_eq!(trial.of_template("resign-leaf-expiry"), &Value::Null);
    trial.rolled_out();
    for now in [500, 3_000, 50_000] {
        assert_eq!(trial.plan(now).ops, [], "{now}");
    }
}

#[test]
fn case_152_kinds_that_do_not_roll_are_left_alone() {
    for kind in [Kind::Sandbox, Kind::DaemonSet] {
        let platform = "cards: {proactiveRestart: true, expiredSvidSeconds: 0}\n";
        let mut trial = Trial::with(platform, kind, json!({})).judged(ENDING, NOW);
        assert_eq!(trial.plan(100), Plan::nothing(), "{kind:?}");
    }
}

#[test]
fn nobody_is_restarted_who_does_not_sign_or_where_it_is_not_asked_for() {
    let unsigned = json!({"spec": {"template": {"spec": {"initContainers": null}}}});
    assert_eq!(Trial::new(unsigned.clone()).judged(ENDING, NOW).plan(100), Plan::nothing());
    let mut off = Trial::with("cards: {expiredSvidSeconds: 0}\n", Kind::Deployment, json!({})).judged(ENDING, NOW);
    assert_eq!(off.plan(100), Plan::nothing());
    let mut says_so = unsigned;
    says_so["spec"]["template"]["metadata"] = json!({"annotations": {"agentcard.kagenti.dev/resign": "true"}});
    assert_eq!(Trial::new(says_so).judged(ENDING, NOW).plan(100).ops.len(), 2);
    assert_eq!(Trial::new(json!({})).plan(100).ops, [], "nothing is known of its signature");
    let deleting = json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}});
    assert_eq!(Trial::new(deleting).judged(ENDING, NOW).plan(100), Plan::nothing());
}

/// `sign: sidecar`, in a template of that kind, and whatever is merged into the object besides.
fn anew(more: Value) -> Value {
    let mut object = json!({"spec": {"template": {
        "metadata": {"annotations": {"agentcard.kagenti.dev/sign": "sidecar"}},
        "spec": {"initContainers": null}}}});
    json_patch::merge(&mut object, &more);
    object
}

/// They are never restarted; where one has not signed anew although it was time, somebody is told.
#[test]
fn who_signs_anew_by_itself_is_left_alone_and_it_is_told_when_it_has_not() {
    let own = json!({"spec": {"template": {"spec": {"initContainers": [
        {"name": "sign-agentcard", "image": "s", "restartPolicy": "Always"}]}}}});
    for more in [anew(json!({})), own] {
        for stands in [until(NOW + HOUR, NOW + DAY), ENDING, Stands::Lost] {
            let mut trial = Trial::new(more.clone()).judged(stands, NOW - 100);
            for now in [100, 400, 1_000] {
                let plan = trial.plan(now);
                let is_late = stands != until(NOW + HOUR, NOW + DAY) && (stands != Stands::Lost || now > 100);
                assert_eq!(plan.ops.len(), usize::from(is_late), "{now}: {plan:?}");
                let told = trial.carried_out(&plan);
                assert!(told.iter().all(|reason| *reason == Reason::ResignNotPossible), "{told:?}");
                assert!(!plan.note.rolling && plan.note.resigned.is_none() && !plan.note.waits, "{plan:?}");
            }
            assert_eq!(trial.of_template("resign-trigger"), &Value::Null);
        }
    }
    let mut late = Trial::new(anew(json!({}))).judged(ENDING, NOW);
    let plan = late.plan(100);
    let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
    assert!(report.message.contains("kubectl -n team logs deployment/w -c sign-agentcard"), "{}", report.message);
}

/// The restart remains for those whose Pods cannot have the sidecar.
#[test]
fn who_asks_for_a_sidecar_and_cannot_have_it_is_restarted() {
    let annotated =
        |key: &str, value: &str| anew(json!({"spec": {"template": {"metadata": {"annotations": {key: value}}}}}));
    for (what, more, restarts) in [
        ("it is switched off", annotated("kagenti.io/native-sidecars", "disabled"), 2),
        ("it says that it has to be", annotated("agentcard.kagenti.dev/resign", "true"), 2),
        ("nothing is injected", annotated("kagenti.io/authbridge-mode", "waypoint"), 0),
        ("another value", annotated("agentcard.kagenti.dev/sign", "later"), 0),
    ] {
        let plan = Trial::new(more).judged(ENDING, NOW).plan(100);
        assert_eq!(plan.ops.len(), restarts, "{what}: {plan:?}");
    }
}

#[test]
fn what_is_paused_is_skipped_and_what_is_replaced_by_hand_is_told() {
    let mut paused = Trial::new(json!({"spec": {"paused": true}})).judged(ENDING, NOW);
    assert_eq!(paused.plan(100).ops, []);
    let by_hand = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
    let platform = "cards: {proactiveRestart: true, expiredSvidSeconds: 0}\n";
    let mut by_hand = Trial::with(platform, Kind::StatefulSet, by_hand).judged(ENDING, NOW);
    let plan = by_hand.plan(100);
    let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
    assert_eq!(report.reason, Reason::ResignNotPossible);
    assert!(
        report.message.contains("StatefulSet w replaces its Pods only when they are deleted"),
        "{}",
        report.message
    );
    let none =
        json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0}});
    assert_eq!(Trial::new(none).judged(ENDING, NOW).plan(100).ops, []);
}

#[test]
fn restarts_take_turns_with_every_other_rollout() {
    // It is due, and half of the grace is left.
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW - 451);
    for number in 0..5 {
        let item = Item { controller: Name::new("another"), key: Key::new("other", &number.to_string()) };
        trial.cluster.memory.takes_part(&item, Rollout { rolling: true, ..Rollout::default() });
    }
    let plan = trial.plan(100);
    assert!(plan.ops.is_empty() && plan.note.waits, "{plan:?}");
    let item = Item { controller: Name::new("another"), key: Key::new("other", "0") };
    let woken = trial.cluster.memory.takes_part(&item, Rollout::default());
    assert_eq!(woken, [Item { controller: NAME, key: Key::new("team", CARD) }]);
    assert_eq!(trial.plan(101).ops.len(), 2);
    trial.cluster.memory.surveyed = false;
    let mut new = Trial::new(json!({})).judged(ENDING, NOW);
    new.cluster.memory.surveyed = false;
    assert!(new.plan(100).note.waits, "who rolls is not known yet");
}

/// Rollouts that exceeded their deadline are anybody's: two of one namespace would else end the trust of all that sign when they start.
#[test]
fn rollouts_of_others_that_failed_stop_no_restart() {
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW);
    for number in 0..4 {
        let item = Item { controller: Name::new("another"), key: Key::new("other", &number.to_string()) };
        trial.cluster.memory.takes_part(&item, Rollout { failed: true, ..Rollout::default() });
    }
    let plan = trial.plan(100);
    assert_eq!(trial.carried_out(&plan), [Reason::ResignTriggered]);
}

#[test]
fn who_waits_for_a_turn_while_half_of_the_grace_goes_by_is_told_of() {
    for (stands, soon, late) in [(ENDING, 100, 101), (Stands::Lost, 100 + 899, 100 + 900)] {
        let mut trial = Trial::new(json!({})).judged(stands, NOW - 451);
        for number in 0..5 {
            let item = Item { controller: Name::new("another"), key: Key::new("other", &number.to_string()) };
            trial.cluster.memory.takes_part(&item, Rollout { rolling: true, ..Rollout::default() });
        }
        assert_eq!(trial.plan(100).ops, []);
        let plan = trial.plan(soon);
        assert!(plan.ops.is_empty() && plan.note.waits, "{stands:?}: {plan:?}");
        let plan = trial.plan(late);
        let [Op::Report(report)] = &plan.ops[..] else { panic!("{stands:?}: {plan:?}") };
        assert!(report.reason == Reason::ResignNotPossible && plan.note.waits, "{plan:?}");
        for wanted in ["waits for 5 rollouts", "5 may be at once", "kubectl -n team rollout restart deployment/w"] {
            assert!(report.message.contains(wanted), "{wanted}: {}", report.message);
        }
        // Nobody knows yet who rolls.
        trial.cluster.memory.surveyed = false;
        assert_eq!(trial.plan(late + 1).ops, []);
    }
}

/// Annotations of a template are its owner's: neither a time that is yet to come nor one that is written again and again keeps a place.
#[test]
fn no_annotation_keeps_a_place_among_what_rolls() {
    let at = |trigger: &str| {
        json!({"metadata": {"generation": 2}, "spec": {"template": {"metadata": {"annotations": {
            "agentcard.kagenti.dev/resign-trigger": trigger}}}}})
    };
    let healthy = Stands::Until { from: NOW - HOUR, leaf: NOW + DAY, authority: NOW + DAY };
    let mut future = Trial::new(at("2999-01-01T00:00:00Z")).judged(healthy, NOW);
    for now in [100, 4_000] {
        let plan = future.plan(now);
        assert!(!plan.note.rolling && plan.ops.is_empty(), "{now}: {plan:?}");
    }
    // Nor does it put off the restart that is due.
    let mut due = Trial::new(at("2999-01-01T00:00:00Z")).judged(ENDING, NOW);
    let plan = due.plan(100);
    assert_eq!(due.carried_out(&plan), [Reason::ResignTriggered]);
    // A clock that is a little behind is no forgery.
    let mut near = Trial::new(at(&text(NOW + 30))).judged(healthy, NOW);
    assert!(near.plan(100).note.rolling);

    let mut again = Trial::new(at(&text(NOW))).judged(healthy, NOW);
    for (now, rolling) in [(100, true), (3_000, true), (3_699, true), (3_700, false), (9_000, false)] {
        let annotations = &mut again.object["spec"]["template"]["metadata"]["annotations"];
        annotations["agentcard.kagenti.dev/resign-trigger"] = json!(text(NOW + i64::try_from(now).unwrap() - 100));
        again.object["metadata"]["resourceVersion"] = json!((now + 10).to_string());
        again.cluster.see(Kind::Deployment, again.object.clone());
        assert_eq!(again.plan(now).note.rolling, rolling, "{now}");
    }
}

/// A tool that owns the template takes the annotations back: that is no reason to restart again at once.
#[test]
fn annotations_that_are_taken_back_restart_nobody_within_the_grace() {
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW);
    let first = trial.object.clone();
    let plan = trial.plan(100);
    trial.carried_out(&plan);
    trial.object = first;
    trial.object["metadata"]["resourceVersion"] = json!("13");
    trial.cluster.see(Kind::Deployment, trial.object.clone());
    assert_eq!(trial.plan(150).ops, []);
    assert_eq!(trial.plan(100 + 899).ops, []);
    assert_eq!(trial.plan(100 + 900).ops.len(), 2);
}

/// Somebody else wrote the workload a moment before: within the grace there would be no other time.
#[test]
fn a_restart_that_was_not_written_is_made_at_once() {
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW);
    let item = Item { controller: NAME, key: Key::new("team", CARD) };
    let plan = trial.plan(100);
    trial.cluster.memory.failure(&item, s(100), (plan.ops[0].clone(), None, "somebody else wrote it".into()));
    let plan = trial.plan(101);
    assert_eq!(trial.carried_out(&plan), [Reason::ResignTriggered]);
    trial.cluster.memory.success(&item, true);
    trial.rolled_out();
    assert_eq!(trial.plan(102).ops, []);

    // What is refused would be refused again, and an Event that nobody heard is no restart.
    let mut refused = Trial::new(json!({})).judged(ENDING, NOW);
    let plan = refused.plan(100);
    let refusal = (plan.ops[0].clone(), Some(Reason::LabelConflict), "forbidden".into());
    refused.cluster.memory.failure(&item, s(100), refusal);
    assert_eq!(refused.plan(101).ops, []);
    refused.cluster.memory.failure(&item, s(100), (plan.ops[1].clone(), None, "nobody answered".into()));
    assert_eq!(refused.plan(102).ops, []);
}

/// The next leader knows what rolls before it has judged a card, or more than may would roll at once.
#[test]
fn a_restart_keeps_its_place_under_another_leader_that_has_not_judged_its_card() {
    let mut trial = Trial::new(json!({})).judged(ENDING, NOW);
    let plan = trial.plan(100);
    trial.carried_out(&plan);
    let workload = trial.object.clone();
    let new_term = || {
        let mut trial = Trial::new(json!({}));
        trial.object = workload.clone();
        trial.cluster.see(Kind::Deployment, workload.clone());
        trial
    };
    let mut next = new_term();
    for (now, rolling) in [(10, true), (609, true), (610, false)] {
        assert_eq!(next.plan(now).note.rolling, rolling, "{now}: it cannot keep its place for ever");
    }
    let mut next = new_term();
    assert!(next.plan(10).note.rolling);
    next.rolled_out();
    assert!(!next.plan(20).note.rolling, "it is over");
    // What rolls for another reason is none of ours.
    let mut other = Trial::new(json!({"metadata": {"generation": 2}}));
    assert!(!other.plan(10).note.rolling);
}
