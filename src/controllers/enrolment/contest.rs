//! Somebody else who takes back what we apply: another operator, or a tool that puts its own copy of the workload back; pure.
//!
//! In: what is to be applied, and what is remembered of earlier tries. Out: whether to try once more, and when. Promises: what is taken back each
//! time is said, and no two writers fight at the speed of the API server. A fight over a hash, in which every blow replaces the Pods, ends after a
//! few and is tried again after a while, since whoever it was may be gone. A label is put back however often it is taken, after pauses that grow:
//! without it Pods are unprotected.

use std::time::Duration;

use super::adopt::disown;
use super::judge::{Judgement, Step, Subject};
use crate::controllers::enrolment::note::Taken;
use crate::domain::keys;
use crate::store::Place;

/// So many times the same is applied again within [`WINDOW`], at once ...
pub(super) const MOST: u32 = 3;
/// ... and then, where the hash alone is taken back, not until so long after the last time.
const WINDOW: Duration = Duration::from_secs(600);
/// Where more is taken back, the first pause after that, ...
const FIRST: Duration = Duration::from_secs(1);
/// ... and the longest.
const LONGEST: Duration = Duration::from_secs(60);
/// The field over which alone a fight ends.
const HASH: (Place, &str) = (Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH);

/// What came of looking back.
pub(super) enum Contest {
    /// Nobody is in the way; what later plans are told.
    None(Option<Taken>),
    /// It is left for now: what is said, and when it is tried again.
    Left(Taken, String, Duration),
    /// Everything stands, and the Go operator puts its own marks back each time: they are left for now, and when they are looked at again.
    Marked(Taken, Duration),
}

/// Looks back before the step is carried out. `failed`: the last write came to nothing, so that nobody had anything to take back.
pub(super) fn look_back(subject: &Subject<'_>, judgement: &Judgement, failed: bool) -> Contest {
    // What we take away ourselves is nobody's blow, and an enrolment that comes after it another one.
    if judgement.step == Step::Release {
        return Contest::None(None);
    }
    let known = subject.note().and_then(|note| note.taken.clone());
    // Over a hash alone nobody fights: while Pods are replaced nothing is written, and then they have the stamp that counts.
    if subject.workload.winner.is_none() && subject.label_type().is_none() {
        return Contest::None(known);
    }
    let uid = subject.workload.uid;
    let (fields, lost) = match &judgement.step {
        Step::Apply { fields, .. } => (fields.number(uid), fields.lost(&judgement.standing).collect::<Vec<_>>()),
        // What is written then is the taking over alone.
        Step::Settled if is_marked(subject) => {
            (known.as_ref().map_or_else(|| judgement.standing.number(uid), |taken| taken.fields), Vec::new())
        }
        _ => return Contest::None(known),
    };
    let now = subject.cx.now;
    let (times, at, failed) = match &known {
        Some(taken) if taken.fields == fields => (taken.times, taken.at, failed || taken.void),
        _ => return Contest::None(Some(Taken { fields, times: 0, at: now, void: false })),
    };
    let settled = judgement.step == Step::Settled;
    // What stands and is wanted no more was taken by nobody.
    if lost.is_empty() && !settled {
        return Contest::None(known);
    }
    let waited = now.saturating_sub(at);
    let pause = if lost.iter().all(|field| *field == HASH) { WINDOW } else { pause(times) };
    let times = match () {
        () if waited >= WINDOW => 0,
        () if failed => times,
        () if times >= MOST && waited < pause => {
            let (left, rest) = (Taken { fields, times, at, void: false }, pause.saturating_sub(waited));
            return if settled {
                Contest::Marked(left, rest)
            } else {
                Contest::Left(left, message(subject, &lost), rest)
            };
        }
        () => times.saturating_add(1),
    };
    Contest::None(Some(Taken { fields, times, at: now, void: false }))
}

/// Whether the Go operator's marks are to be taken off a workload that an AgentRuntime governs.
fn is_marked(subject: &Subject<'_>) -> bool {
    subject.workload.winner.is_some() && disown(subject.namespace(), &subject.workload).is_some()
}

/// The pause after so many times.
fn pause(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.saturating_sub(MOST).min(20)).min(LONGEST)
}

/// What is said about a fight over these fields.
fn message(subject: &Subject<'_>, lost: &[(Place, &str)]) -> String {
    let (workload, namespace) = (&subject.workload, subject.namespace());
    let (kind, name, plural) = (workload.kind.as_str(), workload.name, workload.kind.plural());
    let who = if workload.seen.upstream.is_some() { "the Go operator, by its field manager" } else { "somebody else" };
    let show = format!("kubectl -n {namespace} get {plural} {name} -o yaml --show-managed-fields");
    if lost.iter().all(|field| *field == HASH) {
        return format!(
            "annotation {} of its Pod template is changed back by {who} each time it is written, and every change replaces the Pods of \
             {kind} {name}; it is left for now, and written again in 10 minutes. Stop the other one, or take the annotation out of what it \
             applies. Who it is: {show}",
            keys::ANNOTATION_CONFIG_HASH,
        );
    }
    let is_of_template = |place: &Place| matches!(place, Place::TemplateLabels | Place::TemplateAnnotations);
    let rolls = lost.iter().any(|(place, _)| is_of_template(place));
    let replaces = if rolls { ", and every change replaces its Pods" } else { "" };
    let fields: Vec<String> = lost.iter().map(named).collect();
    format!(
        "{kind} {name} loses what Drawbridge writes there ({}) to {who} each time it is written{replaces}; it is written again after \
         pauses of at most {} seconds. Stop the other one, or have it leave these fields as they are. Who it is: {show}",
        fields.join(", "),
        LONGEST.as_secs(),
    )
}

/// A field in words.
fn named((place, key): &(Place, &str)) -> String {
    match place {
        Place::Labels => format!("label {key}"),
        Place::Annotations => format!("annotation {key}"),
        Place::TemplateLabels => format!("label {key} of its Pod template"),
        Place::TemplateAnnotations => format!("annotation {key} of its Pod template"),
    }
}
