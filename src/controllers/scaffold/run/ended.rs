//! A plan is carried out, and what came of it goes into the memory and the queue.
//!
//! In: a plan, or the end of one. Out: writes, one after the other, and how it ended. Promises: the first that fails ends the
//! plan, and what was learned before counts; whatever ended, a panic included, its item goes back to the queue, unless its term
//! of leadership is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;

use super::machine::{Begun, Loop, Ticket};
use crate::api::refusal;
use crate::controllers::scaffold::apply::{ApplyError, Learned, apply, unkept};
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Item, Op, Plan};
use crate::controllers::scaffold::queue::Ending;

/// When a write is tried again that came before the API server had looked up all definitions, which it does every half a minute.
const EARLY: Duration = Duration::from_secs(3);

/// When a plan is made anew whose status was not kept: its controller knows of it then.
const UNKEPT: Duration = Duration::from_secs(1);

/// How a plan went: what was learned on the way, and the end: when to look again, and whether fields were applied; or
/// what failed.
pub(in crate::controllers) type Outcome = (Vec<Learned>, Result<(Ending, bool), (ApplyError, Op)>);

impl Loop {
    /// A plan ended, unless its term did before.
    pub(super) fn ended(&mut self, ticket: Ticket, outcome: Option<Outcome>, now: Duration) {
        let Some(Begun { item, at: begun, .. }) = self.under_way.remove(&ticket) else { return };
        let Some((learned, result)) = outcome else {
            tracing::error!(
                controller = item.controller.as_str(),
                "a defect in Drawbridge: carrying out a plan panicked"
            );
            let ending = Ending::Failed(Duration::ZERO);
            self.metrics.reconciled(item.controller, ending, now.saturating_sub(begun));
            self.queue.done(&item, ending, now, (self.jitter)());
            return;
        };
        if let Some(row) = self.row_of(&item) {
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
                self.memory.success(&item, applied);
                if ending == Ending::Made
                    && let Some(row) = self.row_of(&item)
                {
                    row.made(&item.key, now);
                }
                ending
            }
            Err((ApplyError::Refused { what, reason, brief, message }, op)) => {
                tracing::warn!(controller = item.controller.as_str(), what, reason = reason.code(), brief, "refused");
                self.memory.failure(&item, now, (op, Some(reason), message));
                // The plan knows of it now, and says so.
                Ending::Done(Some(Duration::ZERO))
            }
            // Nothing is wrong with the object, and there is nothing that anybody should do.
            Err((error @ ApplyError::Early { .. }, _)) => {
                tracing::info!(controller = item.controller.as_str(), %error, "will be tried again in a moment");
                // A report that did not get out is still to be told.
                self.told.clear();
                Ending::Done(Some(EARLY))
            }
            // It passes by itself, soon as a rule; what has not been heard of for long is no longer asked for as often.
            Err((error @ ApplyError::Unheard { .. }, op)) => {
                tracing::info!(controller = item.controller.as_str(), %error, "will be tried again");
                self.memory.unheard(&item, now, (op, error.to_string()));
                self.told.clear();
                Ending::Failed(Duration::ZERO)
            }
            Err((error, op)) => {
                tracing::warn!(controller = item.controller.as_str(), %error, cause = error.brief(), "will be tried again");
                let message = told(&error);
                let conflict = matches!(error, ApplyError::Conflict { .. });
                if conflict {
                    self.memory.conflict(&item, now, (op, message));
                } else {
                    self.memory.failure(&item, now, (op, None, message));
                }
                // A report that did not get out is still to be told.
                self.told.clear();
                if conflict { Ending::Conflict } else { Ending::Failed(retry_after(&error)) }
            }
        };
        self.metrics.reconciled(item.controller, ending, now.saturating_sub(begun));
        self.queue.done(&item, ending, now, (self.jitter)());
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
        let result = apply(writer, item.controller, op, news).await;
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
    use kube::core::Status;
    use serde_json::json;

    use super::*;

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
