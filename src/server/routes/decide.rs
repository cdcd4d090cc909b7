//! One review: parse, decide, encode, count, log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::answer::Answer;
use super::body::Held;
use super::told::About;
use super::{Reviews, Route};
use crate::admission::verdict::{Denial, Outcome, Verdict, Warning};
use crate::api::review::{self, API_VERSION, Request};
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use crate::server::listener::quota::SMALL;
use crate::server::telemetry::lines::Reviewed;
use crate::server::telemetry::log;
use crate::server::telemetry::metrics::{Decision, ReasonValue};

/// Longest text from a request that goes into the log, in bytes; the longest names Kubernetes allows.
const LOGGED: usize = 253;

/// How often a review that is held looks for news.
const LOOKS_AGAIN: Duration = Duration::from_millis(20);

/// What an object with members takes as a tree, beside them.
const OBJECT: usize = 640;
/// What a member or an element takes, with what is allocated for it.
const MEMBER: usize = 192;
/// What a list takes besides: room for its first four elements, however few it has.
const LIST: usize = 144;
/// Levels that any reader of JSON here goes down.
const LEVELS: usize = 128;

/// A refusal that is not given yet, since it may be over in a moment.
struct Pending {
    reason: Reason,
    namespace: String,
}

/// A review whose body is complete.
pub(super) struct Review {
    pub(super) shared: Arc<Reviews>,
    pub(super) route: &'static Route,
    pub(super) body: Held,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
}

impl Review {
    /// Decides here and now. Never panics: a defect in the decision is an answer.
    pub(super) fn decide(&self) -> Answer {
        self.decide_unless(|_, _| false).unwrap_or_else(|_| self.refuse(Reason::InternalError))
    }

    /// The same; what is made at the same moment as its first Pod (the Job that owns it, the ServiceAccount that it runs as) gets a moment to
    /// become known, so that no Event warns of what is over before it is read.
    pub(super) async fn decide_soon(mut self) -> Answer {
        let shared = self.shared.clone();
        let mut pending =
            match self.decide_unless(|reason, namespace| shared.in_vain.patience(reason, namespace).is_some()) {
                Ok(answer) => return answer,
                Err(pending) => pending,
            };
        if let Some(_place) = shared.waiting.take(&pending.namespace) {
            loop {
                tokio::time::sleep(LOOKS_AGAIN).await;
                // The caller's patience is longer than ours, or there is no time left for a second look.
                let is_time = |patience| (self.arrived + patience).min(self.deadline - LOOKS_AGAIN) > Instant::now();
                if !shared.in_vain.patience(pending.reason, &pending.namespace).is_some_and(is_time) {
                    shared.in_vain.note(pending.reason, &pending.namespace);
                    break;
                }
                let newer = self.shared.snapshots.load().filter(|newer| !Arc::ptr_eq(newer, &self.snapshot));
                let Some(newer) = newer else { continue };
                self.snapshot = newer;
                let waits = |reason, namespace: &str| shared.in_vain.patience(reason, namespace).is_some_and(is_time);
                match self.decide_unless(waits) {
                    Ok(answer) => return answer,
                    Err(still) => pending = still,
                }
            }
        }
        self.decide()
    }

    /// An answer, unless the reason is one that is waited for in that namespace.
    fn decide_unless(&self, waits: impl Fn(Reason, &str) -> bool) -> Result<Answer, Pending> {
        if Instant::now() >= self.deadline {
            return Ok(self.refuse(Reason::DeadlineExceeded));
        }
        catch_unwind(AssertUnwindSafe(|| self.attempt(waits))).unwrap_or_else(|_| {
            self.shared.metrics.panics.inc();
            Ok(self.refuse(Reason::InternalError))
        })
    }

    /// Decides on a blocking thread; gives up waiting at the deadline.
    pub(super) async fn decide_elsewhere(self) -> Answer {
        let Ok(permit) = self.shared.large.clone().try_acquire_owned() else {
            return self.refuse(Reason::Overloaded);
        };
        let review = Arc::new(self);
        let work = tokio::task::spawn_blocking({
            let review = review.clone();
            move || {
                let answer = review.decide();
                drop(permit);
                answer
            }
        });
        match tokio::time::timeout_at(review.deadline, work).await {
            Ok(Ok(answer)) => answer,
            // The runtime is shutting down, or `decide` broke its promise.
            Ok(Err(_)) => review.refuse(Reason::InternalError),
            Err(_) => review.refuse(Reason::DeadlineExceeded),
        }
    }

    fn attempt(&self, waits: impl Fn(Reason, &str) -> bool) -> Result<Answer, Pending> {
        let account = self.body.charge().account();
        let tree = account.charge();
        if self.body.len() > SMALL {
            // Reading it makes the tree, so there has to be room before; and what a connection may hold depends on what it carried.
            if !account.is_proven() && review::uid(&self.body).is_some() {
                account.prove();
            }
            if tree.resize(tree_size(&self.body)).is_err() {
                return Ok(self.refuse(Reason::Overloaded));
            }
        }
        let request = match review::parse(&self.body, self.route.phase) {
            Ok(request) => request,
            Err(bad) => {
                // Without a uid there is no answer, and the API server does what the webhook's policy says.
                let is_advice = self.route.advises && bad.uid.is_some();
                let verdict =
                    if is_advice { unseen(Reason::BadReview) } else { refusal(Reason::BadReview, bad.to_string()) };
                return Ok(self.answered(bad.version, bad.uid.as_deref(), None, &verdict));
            }
        };
        account.prove();
        let verdict = (self.shared.evaluate)(&request, &self.snapshot);
        if waits(verdict.reason, request.namespace()) {
            return Err(Pending { reason: verdict.reason, namespace: request.namespace().to_owned() });
        }
        Ok(self.answered(API_VERSION, Some(&request.uid), Some(&request), &verdict))
    }

    /// A refusal for a reason of our own, with the uid as far as the body gives it; where only advice was asked for, a warning.
    fn refuse(&self, reason: Reason) -> Answer {
        if reason != Reason::InternalError {
            self.shared.shed(if reason == Reason::Overloaded { "review_limit" } else { "deadline" });
        }
        let verdict = if self.route.advises { unseen(reason) } else { refusal(reason, reason.sentence().to_owned()) };
        self.answered(API_VERSION, review::uid(&self.body).as_deref(), None, &verdict)
    }

    fn answered(
        &self,
        version: &'static str,
        uid: Option<&str>,
        request: Option<&Request<'_>>,
        verdict: &Verdict,
    ) -> Answer {
        let encoded = uid.map(|uid| Answer::review(version, uid, verdict)).transpose();
        let answer = match (encoded, &verdict.outcome) {
            (Ok(Some(answer)), _) => answer,
            (Ok(None), Outcome::Deny(denial)) => {
                let http = StatusCode::from_u16(denial.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Answer::plain(http, verdict.reason, &denial.sentence)
            }
            (Ok(None), _) | (Err(_), _) => {
                let sentence = Reason::InternalError.sentence();
                Answer::plain(StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError, sentence)
            }
        };
        self.count(verdict);
        self.log(uid, request, verdict);
        answer
    }

    fn count(&self, verdict: &Verdict) {
        let metrics = &self.shared.metrics;
        metrics.decisions.get_or_create(&Decision { reason: ReasonValue(verdict.reason) }).inc();
        for warning in &verdict.warnings {
            metrics.warnings.get_or_create(&Decision { reason: ReasonValue(warning.reason) }).inc();
        }
    }

    fn log(&self, uid: Option<&str>, request: Option<&Request<'_>>, verdict: &Verdict) {
        let operations = match &verdict.outcome {
            Outcome::Patch(operations) => operations.len(),
            _ => 0,
        };
        let about = request.map(About::of).unwrap_or_default();
        let (namespace, kind) = request.map_or(("", ""), |request| (request.namespace(), &*request.kind.kind));
        let whose = if about.owner.is_empty() { &*about.name } else { &about.owner };
        let told = &self.shared.told;
        let is_news = told.is_news((namespace, whose), verdict.reason) || !verdict.allowed();
        log::reviewed(&Reviewed {
            is_news: is_news && told.has_room(cut(namespace)),
            webhook: self.route.path,
            uid: cut(uid.unwrap_or("")),
            namespace: cut(namespace),
            name: cut(&about.name),
            generate_name: cut(&about.generate_name),
            owner: cut(&about.owner),
            kind: cut(kind),
            dry_run: request.and_then(|request| request.dry_run).unwrap_or(false),
            allowed: verdict.allowed(),
            reason: verdict.reason.code(),
            warnings: verdict.warnings.len(),
            operations,
            micros: u64::try_from(self.arrived.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
    }
}

/// The most that `text` takes as a tree: seven bytes of it may become seven hundred.
fn tree_size(text: &[u8]) -> usize {
    /// Counts of so many bytes fit into one, so that the compiler counts many bytes at once.
    const PIECE: usize = 255;
    let (mut objects, mut lists, mut members) = (0, 0, 0);
    for piece in text.chunks(PIECE) {
        let (mut braces, mut brackets, mut commas) = (0_u8, 0_u8, 0_u8);
        for byte in piece {
            braces += u8::from(*byte == b'{');
            brackets += u8::from(*byte == b'[');
            commas += u8::from(*byte == b',');
        }
        objects += usize::from(braces);
        lists += usize::from(brackets);
        members += usize::from(commas);
    }
    // Between two commas a list can only begin within the one before it: what is deeper than anybody reads makes no tree.
    let lists = lists.min(LEVELS * (members + 1));
    text.len() + OBJECT * objects + LIST * lists + MEMBER * members
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOGGED)]
}

/// What an endpoint that only advises says of an object that it could not look at.
fn unseen(reason: Reason) -> Verdict {
    let text = format!(
        "Drawbridge could not look at this object ({}); it is stored all the same, and drawbridge status shows what becomes of it",
        reason.sentence()
    );
    Verdict { warnings: vec![Warning::new(reason, text)], ..Verdict::skipped(reason) }
}

fn refusal(reason: Reason, sentence: String) -> Verdict {
    let (code, remedy) = match reason {
        Reason::DeadlineExceeded => (504, "create the object again; if it repeats, look at Drawbridge's CPU limit"),
        Reason::Overloaded => (429, "create the object again in a moment"),
        Reason::InternalError => {
            (500, "create the object again; if it repeats, tell whoever runs Drawbridge, with the object and the time")
        }
        _ => (
            400,
            "register the webhook with admissionReviewVersions [\"v1\"], and let nothing between the API server and \
             Drawbridge change the body",
        ),
    };
    Verdict::denied(Denial::new(reason, code, sentence, remedy))
}
