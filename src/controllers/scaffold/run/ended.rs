//! A plan is carried out, and what came of it goes into the memory and the queue.
//!
//! In: a plan, or the end of one. Out: writes, one after the other, and how it ended. Promises: the first that fails ends the
//! plan, and what was learned before counts; whatever ended, a panic included, its item goes back to the queue, unless its term
//! of leadership is over; a plan that sends again what was refused is not made again at once; an Event that comes to nothing again and again
//! keeps nothing else back; an operation that does not end is given up after [`LONGEST`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use tokio::time::timeout;

use super::machine::{Begun, Loop, Ticket};
use crate::api::refusal;
use crate::controllers::scaffold::apply::{ApplyError, Learned, apply, failed, unkept};
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Item, Op, Plan};
use crate::controllers::scaffold::queue::Ending;

/// When a write is tried again that came before the API server had looked up all definitions, which it does every half a minute.
const EARLY: Duration = Duration::from_secs(3);

/// When a plan is made anew whose status was not kept: its controller knows of it then.
const UNKEPT: Duration = Duration::from_secs(1);

/// When an Event is tried again, should nothing happen to its item, that came to nothing after everything else was done.
const UNTOLD: Duration = Duration::from_secs(300);

/// How long an operation may take with all its tries, which is more than they are given one by one. The fence ends a request that nobody begins to
/// answer; an answer that begins and does not end, as from an API server whose machine is gone, would keep a worker and its item for good.
const LONGEST: Duration = Duration::from_secs(120);

/// How a plan went: what was learned on the way, and the end: when to look again, and whether fields were applied; or
/// what failed.
pub(in crate::controllers) type Outcome = (Vec<Learned>, Result<(Ending, bool), (ApplyError, Op)>);

impl Loop {
    /// A plan ended, unless its term did before.
    pub(super) fn ended(&mut self, ticket: Ticket, outcome: Option<Outcome>, now: Duration) {
        let Some(begun) = self.under_way.remove(&ticket) else { return };
        let item = &begun.item;
        let Some((learned, result)) = outcome else {
            tracing::error!(
                controller = item.controller.as_str(),
                "a defect in Drawbridge: carrying out a plan panicked"
            );
            self.untell(&begun);
            return self.over(&begun, Ending::Failed(Duration::ZERO), now);
        };
        if let Some(row) = self.row_of(item) {
            learned.iter().for_each(|learned| row.answered(&item.key, learned, now));
            if let Err((_, op)) = &result {
                row.failed(&item.key, op);
            }
        }
        for learned in learned {
            match learned {
                Learned::Secret(key, fact) => self.memory.answers.secret(key, fact, now),
                Learned::Template(key, fact) => self.memory.answers.template(key, fact, now),
                // The keeper was told of what changed before, and the controller of what only it makes something of.
                Learned::Change(_)
                | Learned::Back(_)
                | Learned::Evicted
                | Learned::Blocked
                | Learned::Taken(..)
                | Learned::Unkept(_)
                | Learned::Nothing => {}
            }
        }
        let ending = match result {
            Ok((ending, applied)) => {
                self.memory.success(item, applied);
                if ending == Ending::Made
                    && let Some(row) = self.row_of(item)
                {
                    row.made(&item.key, now);
                }
                ending
            }
            Err((error, op)) => {
                self.untell(&begun);
                self.came_to_nothing(&begun, (error, op), now)
            }
        };
        self.over(&begun, ending, now);
    }

    /// The item of a plan goes back to the queue.
    fn over(&mut self, begun: &Begun, ending: Ending, now: Duration) {
        let Begun { item, at, .. } = begun;
        self.metrics.reconciled(item.controller, ending, now.saturating_sub(*at));
        self.queue.done(item, ending, now, (self.jitter)());
    }

    /// What a plan was to tell may not have got out: it is still to be told.
    fn untell(&mut self, begun: &Begun) {
        for told in &begun.tells {
            self.told.remove(told);
        }
    }

    /// An operation of a plan failed, and the rest was not carried out.
    fn came_to_nothing(&mut self, begun: &Begun, (error, op): (ApplyError, Op), now: Duration) -> Ending {
        let item = &begun.item;
        let controller = item.controller.as_str();
        match error {
            ApplyError::Refused { what, reason, brief, message } => {
                tracing::warn!(controller, what, reason = reason.code(), brief, "refused");
                // The plan knows of it then, and says so. One that sends something that is refused once more would do so as fast as it is answered.
                let is_refused = self.memory.trouble(item).is_some_and(|before| before.refused.is_some());
                self.memory.failure(item, now, (op, Some(reason), message));
                if is_refused { Ending::Failed(Duration::ZERO) } else { Ending::Done(Some(Duration::ZERO)) }
            }
            // Everything else is done. What is remembered of the failure stays, so that the next plan waits for no Event either.
            error if begun.tells_last && matches!(op, Op::Report(_)) => {
                tracing::warn!(controller, %error, cause = error.brief(), "the Event is not written, and holds nothing up");
                Ending::Done(begun.again.into_iter().chain([UNTOLD]).min())
            }
            // Nothing is wrong with the object, and there is nothing that anybody should do.
            error @ ApplyError::Early { .. } => {
                tracing::info!(controller, %error, "will be tried again in a moment");
                Ending::Done(Some(EARLY))
            }
            // It passes by itself, soon as a rule; what has not been heard of for long is no longer asked for as often.
            error @ ApplyError::Unheard { .. } => {
                tracing::info!(controller, %error, "will be tried again");
                self.memory.unheard(item, now, (op, error.to_string()));
                Ending::Failed(Duration::ZERO)
            }
            error => {
                tracing::warn!(controller, %error, cause = error.brief(), "will be tried again");
                let message = told(&error);
                if matches!(error, ApplyError::Conflict { .. }) {
                    self.memory.conflict(item, now, (op, message));
                    Ending::Conflict
                } else {
                    self.memory.failure(item, now, (op, None, message));
                    Ending::Failed(retry_after(&error))
                }
            }
        }
    }
}

/// What the object may say of a failure: the server's own words; of anything else what may be logged, since the client's words for it repeat
/// what it stumbled over.
fn told(error: &ApplyError) -> String {
    let ApplyError::Request { source, .. } = error else { return error.to_string() };
    match &**source {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => refusal::of_error(other),
    }
}

/// How long the server wants to be left alone.
fn retry_after(error: &ApplyError) -> Duration {
    let ApplyError::Request { source, .. } = error else { return Duration::ZERO };
    let kube::Error::Api(status) = &**source else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds).min(300))
}

pub(super) async fn carry_out(
    writer: &Client,
    (metrics, given_up): (&ControllerMetrics, &AtomicBool),
    item: &Item,
    plan: &Plan,
) -> Outcome {
    let mut learned = Vec::new();
    for (number, op) in plan.ops.iter().enumerate() {
        if given_up.load(Ordering::Acquire) {
            // Its end counts for nothing any more; what came of it so far does.
            return (learned, Ok((Ending::Done(None), false)));
        }
        let news = learned.iter().any(|one| matches!(one, Learned::Change(_)));
        let result = match timeout(LONGEST, apply(writer, item.controller, op, news)).await {
            Ok(result) => result,
            Err(elapsed) => Err(failed(op, kube::Error::Service(elapsed.into()))),
        };
        metrics.wrote(item.controller, op, &result);
        match result {
            Ok(one) => {
                let unkept = unkept(op, &one, &plan.ops[number + 1..]);
                learned.push(one);
                if let Some(members) = unkept {
                    learned.push(Learned::Unkept(members));
                    return (learned, Ok((Ending::Done(Some(UNKEPT)), false)));
                }
            }
            Err(error) => return (learned, Err((error, op.clone()))),
        }
    }
    let applied = plan.ops.iter().any(Op::settles);
    let ending = if plan.makes() { Ending::Made } else { Ending::Done(plan.again) };
    (learned, Ok((ending, applied)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use kube::core::Status;
    use serde_json::json;

    use super::super::machine::{Effect, Given, Input};
    use super::*;
    use crate::controllers::scaffold::fixtures::{Cluster, s};
    use crate::controllers::scaffold::plan::{Context, Name, Report, Row};
    use crate::domain::reason::Reason;
    use crate::store::{Key, Kind};

    const NAME: Name = Name::new("stubborn");

    fn look(key: &Key) -> Op {
        Op::Look { key: key.clone() }
    }

    fn report(key: &Key, message: &str) -> Op {
        Op::Report(Report {
            kind: Kind::Deployment,
            about: key.clone(),
            uid: key.name.to_string(),
            reason: Reason::NameConflict,
            message: message.to_owned(),
            since: String::new(),
        })
    }

    /// Tells something, reads something and tells something else, whatever became of that before.
    fn plan(cx: Context<'_>) -> Plan {
        Plan::of(vec![report(cx.key, "before"), look(cx.key), report(cx.key, "after")])
    }

    /// A loop that leads, with that one controller, whose items are these of namespace `team`.
    fn leading(cluster: &Cluster) -> Loop {
        let row: Row = Row {
            controller: NAME,
            touched: |_, _, _, _| Vec::new(),
            of_namespace: |_, namespace| {
                let names: &[&str] = if namespace == "team" { &["a", "b"] } else { &[] };
                names.iter().map(|name| Key::new(namespace, name)).collect()
            },
            plan,
        };
        let given = Given {
            metrics: ControllerMetrics::default(),
            jitter: Box::new(|| 0.5),
            clock: Box::new(|| Duration::ZERO),
        };
        let mut work = Loop::new(vec![row.runner()], given);
        work.listed(0);
        work.step(&cluster.store, Input::Term(Some(1)), s(0));
        work.step(&cluster.store, Input::Published(Some(Arc::new(cluster.facts.clone()))), s(0));
        work
    }

    /// The plans that are begun at that time, by the names of their items: of each operation whether it tells.
    fn begun(work: &mut Loop, cluster: &Cluster, now: u64) -> BTreeMap<String, Vec<bool>> {
        let effects = work.step(&cluster.store, Input::Turn, s(now));
        let begun = effects.into_iter().filter_map(|effect| match effect {
            Effect::Start(_, item, plan) => {
                let tells = plan.ops.iter().map(|op| matches!(op, Op::Report(_))).collect();
                Some((item.key.name.to_string(), tells))
            }
            Effect::GiveUp | Effect::More => None,
        });
        begun.collect()
    }

    fn refused() -> ApplyError {
        let (what, brief, message) = (String::new(), String::new(), "no".to_owned());
        ApplyError::Refused { what, reason: Reason::NameConflict, brief, message }
    }

    fn lost() -> ApplyError {
        ApplyError::Unbuildable { what: "w".to_owned() }
    }

    /// Everything that is under way ends well, but that operation of that item.
    fn end(work: &mut Loop, cluster: &Cluster, now: u64, fails: (&str, &Op, fn() -> ApplyError)) {
        let under_way: Vec<_> = work.under_way.iter().map(|(ticket, begun)| (*ticket, begun.item.clone())).collect();
        for (ticket, item) in under_way {
            let (name, op, error) = fails;
            let ended =
                if *item.key.name == *name { Err((error(), op.clone())) } else { Ok((Ending::Done(None), false)) };
            work.step(&cluster.store, Input::Ended(ticket, Some((Vec::new(), ended))), s(now));
        }
    }

    /// A controller that does not look at what was refused would send it as fast as it is answered, for whoever decides that it is.
    #[test]
    fn what_is_refused_again_is_planned_after_growing_pauses() {
        let cluster = Cluster::new();
        let mut work = leading(&cluster);
        let op = look(&Key::new("team", "a"));
        let mut made = Vec::new();
        for now in 0..16 {
            while begun(&mut work, &cluster, now).contains_key("a") {
                made.push(now);
                assert!(made.len() < 100, "{made:?}");
                end(&mut work, &cluster, now, ("a", &op, refused));
            }
        }
        assert_eq!(made, [0, 0, 1, 3, 7, 15], "once more at once, to say it");
    }

    /// What one item fails to write says nothing of what others have told; what it was to tell itself is not lost.
    #[test]
    fn what_did_not_get_out_is_told_again_and_nothing_else_is() {
        let cluster = Cluster::new();
        let errors: [fn() -> ApplyError; 2] = [lost, refused];
        for error in errors {
            let mut work = leading(&cluster);
            let first = begun(&mut work, &cluster, 0);
            assert_eq!(first["a"], [true, false, true]);
            assert_eq!(first["b"], [true, false, true]);
            end(&mut work, &cluster, 0, ("a", &look(&Key::new("team", "a")), error));
            for name in ["a", "b"] {
                let item = Item { controller: NAME, key: Key::new("team", name) };
                work.step(&cluster.store, Input::Answered(item), s(5));
            }
            let then = begun(&mut work, &cluster, 5);
            assert_eq!(then["a"], [true, false, true]);
            assert_eq!(then["b"], [false]);
        }
    }

    /// After three times it comes after everything else, and its failure brings nobody back for minutes.
    #[test]
    fn an_event_that_comes_to_nothing_again_and_again_comes_last() {
        let cluster = Cluster::new();
        let mut work = leading(&cluster);
        let op = report(&Key::new("team", "a"), "before");
        let mut orders = Vec::new();
        for now in [0, 2, 5, 10, 20, 320] {
            orders.push(begun(&mut work, &cluster, now).remove("a"));
            end(&mut work, &cluster, now, ("a", &op, lost));
        }
        let (as_planned, last) = (Some(vec![true, false, true]), Some(vec![false, true, true]));
        assert_eq!(orders, [as_planned.clone(), as_planned.clone(), as_planned, last.clone(), None, last]);
    }

    fn failed(source: kube::Error) -> ApplyError {
        ApplyError::Request { what: "patch Pod team/a".to_owned(), source: Box::new(source) }
    }

    /// An object says what the server said, and nothing of how the client keeps it.
    #[test]
    fn of_a_failure_the_servers_sentence_is_told_and_nothing_that_was_read() {
        let details = json!({"causes": [{"field": "spec.env", "message": "canary", "reason": "FieldValueInvalid"}]});
        let status = |message: &str| {
            let status =
                json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message, "details": details});
            kube::Error::Api(Box::new(serde_json::from_value::<Status>(status).unwrap()))
        };
        let unread = serde_json::from_str::<u8>("\"canary\"").unwrap_err();
        for (error, words) in [
            (failed(status("exceeded quota: q")), "exceeded quota: q"),
            (failed(status("")), "422 Invalid: spec.env (FieldValueInvalid)"),
            (failed(kube::Error::SerdeError(unread)), "an answer that cannot be read (Data error, line 1, column 8)"),
            (ApplyError::Conflict { what: "w".to_owned() }, "w: somebody else wrote in between"),
        ] {
            assert_eq!(told(&error), words);
        }
    }
}
