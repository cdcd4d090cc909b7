//! What becomes of a Deployment that an earlier operator made for an object of KAOS (rulings 20 and 21).
//!
//! In: the Deployment, what is wanted of it, what its status said of that before. Out: whether it is left as it is, written, or has to be read
//! first, since nothing of a template is kept of what is watched. Promises: pure; one that means what is wanted stays byte for byte, whatever
//! of Drawbridge or the platform's log level changes; it is written once something counts, or once its user has changed what is wanted of
//! it; each is read once for each template that is wanted, and not again while nothing changes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::status::TAKEOVER;
use crate::api::kaos_tools::read;
use crate::api::kaos_tools::shape::Runtime;
use crate::controllers::agent::claim::{Claim, Claims};
use crate::controllers::agent::face::{Leaves, Left};
use crate::controllers::agent::note::Compared;
use crate::controllers::agent::subject::Subject;
use crate::controllers::agent::turns::Inherits;
use crate::controllers::agent::wanted::Wanted;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::answers::LARGEST;
use crate::domain::printable::cut;
use crate::domain::reason::Reason;
use crate::workloads::kaos::names::{ANNOTATION_CONFIG, Role, STATUS_TAKEOVER};
use crate::workloads::kaos::takeover::{Asker, Row, differences};

/// Most paths that are told of what counts.
const PATHS: usize = 8;
/// Bytes of one of them, or of a line, in the status: variables of any name stand in them.
const LINE: usize = 512;

/// Whether the Deployment was made by an earlier operator for this very object, and never written by us.
pub(super) fn is_before_us(subject: &Subject<'_>) -> bool {
    let never_written = subject.own_deployment().is_some_and(|own| own.applied.is_none() && own.fields.is_none());
    never_written && matches!(Claims::of(subject).deployment, Claim::Ours(_))
}

/// Whether it is to roll, though nobody has changed the object: then it takes its turn among all that roll.
pub(super) fn inherits(subject: &Subject<'_>) -> Inherits {
    // A status that was written while the first write of a change was refused says the present generation; the marks are of the one that was left.
    let told = subject.seen.status.get("observedGeneration").and_then(Value::as_i64);
    let left = marked(subject).and_then(|marked| marked.generation);
    let is_unchanged = told.into_iter().chain(left).all(|known| known == subject.seen.generation);
    if is_before_us(subject) && is_unchanged { Inherits::Waits } else { Inherits::No }
}

/// What becomes of it.
pub(super) fn left(subject: &Subject<'_>, wanted: &Wanted) -> Left {
    if !is_before_us(subject) {
        return Left::default();
    }
    let Some(compared) = compared(subject, wanted) else { return Left { how: Leaves::Unread, compared: None } };
    let counts = !compared.counts.is_empty() || is_changed(subject, wanted);
    let how = if counts { Leaves::Written } else { Leaves::AsItIs };
    Left { how, compared: Some(compared) }
}

/// How it differs; `None` while it is not known.
fn compared(subject: &Subject<'_>, wanted: &Wanted) -> Option<Compared> {
    let deployment = subject.deployment?;
    let generation = deployment.seen.rollout.generation;
    let known = subject.note().and_then(|note| note.compared.as_ref());
    let known = known.filter(|known| *known.wanted == *wanted.deployment.digest && known.generation == generation);
    if let Some(known) = known {
        return Some(known.clone());
    }
    let answers = &subject.cx.memory.answers;
    let fact = answers.template_fact(&subject.made, (deployment.uid, generation))?;
    let of = |counts: Vec<String>, later: Vec<String>| Compared {
        wanted: wanted.deployment.digest.as_str().into(),
        generation,
        counts: counts.into(),
        later: later.into(),
    };
    let live = fact.spec.as_deref().and_then(|spec| serde_json::from_str::<Value>(spec).ok());
    let look = subject.look.as_deref()?;
    let (Some(live), Some(composed)) = (live, &look.composed) else {
        let large = format!("a template of more than {} KiB is not compared", LARGEST >> 10);
        return Some(of(Vec::new(), vec![large]));
    };
    let package = match (look.role, read::mcp_server(&subject.object).value.runtime) {
        (Role::McpServer, Runtime::Package(package)) => Some(package),
        _ => None,
    };
    let asker = Asker { role: look.role, object: &subject.object, composed, package: package.as_deref() };
    let found = differences(&live, wanted.template(), &asker);
    let later = found.lines();
    Some(of(found.counts, later))
}

/// What of it stands in the status, while it is left as it is.
struct Marked<'v> {
    generation: Option<i64>,
    template: &'v str,
    configuration: &'v str,
}

fn marked<'v>(subject: &'v Subject<'_>) -> Option<Marked<'v>> {
    let stored = subject.seen.status.get(STATUS_TAKEOVER)?;
    let text = |key: &str| stored.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(Marked {
        generation: stored.get("generation").and_then(Value::as_i64),
        template: text("template"),
        configuration: text("configuration"),
    })
}

fn short(digest: &str) -> String {
    digest.chars().take(16).collect()
}

fn configuration(wanted: &Wanted) -> &str {
    let annotations = wanted.template().pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(ANNOTATION_CONFIG)?.as_str()).unwrap_or_default()
}

/// Whether something else is wanted since it was first left: its user has changed the object and with it the template, or what Pods mount
/// is another text.
fn is_changed(subject: &Subject<'_>, wanted: &Wanted) -> bool {
    marked(subject).is_some_and(|marked| {
        let by_user = marked.generation.is_some_and(|generation| generation != subject.seen.generation);
        (by_user && marked.template != short(&wanted.deployment.digest))
            || marked.configuration != configuration(wanted)
    })
}

/// The condition; `None` where nothing was made by an earlier operator.
pub(super) fn condition(subject: &Subject<'_>, wanted: &Wanted) -> Option<Condition> {
    let left = left(subject, wanted);
    let name = &subject.made.name;
    let text = match (left.how, left.compared) {
        (Leaves::Unread, _) => {
            let list = subject.seen.status.get("conditions").unwrap_or(&Value::Null);
            conditions::stored(list, TAKEOVER)?.get("message")?.as_str()?.to_owned()
        }
        (_, None) => return None,
        (Leaves::Written, Some(compared)) if compared.counts.is_empty() => format!(
            "Deployment {name} was made by the KAOS operator and was left as it is; what is wanted of it has changed since. Its Pods are replaced once \
             that is written"
        ),
        (Leaves::Written, Some(compared)) => {
            let more = compared.counts.len().saturating_sub(PATHS);
            let mut paths = compared.counts.iter().take(PATHS).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 {
                paths.push_str(&format!(" and {more} more"));
            }
            format!(
                "Deployment {name} was made by the KAOS operator and differs from what is wanted at {paths}. Its Pods are replaced in their turn"
            )
        }
        (Leaves::AsItIs, Some(compared)) => {
            let open = compared.later.iter().any(|line| line.starts_with(Row::Open.words()));
            let ends = if open {
                ". Until then, a Pod of it that is restarted with a current LiteLLM does not start"
            } else {
                ""
            };
            let besides = if compared.later.is_empty() {
                String::new()
            } else {
                format!("; that also changes: {}", compared.later.join("; "))
            };
            format!(
                "Deployment {name} was made by the KAOS operator and does what is wanted, so Drawbridge leaves it as it is. Its Pods are replaced \
                 when what is wanted of it changes{besides}{ends}"
            )
        }
    };
    Some(Condition::new(TAKEOVER, true, Reason::TakeoverPending, text))
}

/// What the status keeps of it beside the condition.
pub(super) fn field(subject: &Subject<'_>, wanted: &Wanted) -> Option<Value> {
    let left = left(subject, wanted);
    let Some(compared) = left.compared else {
        let kept = || subject.seen.status.get(STATUS_TAKEOVER).cloned();
        return if left.how == Leaves::Unread { kept() } else { None };
    };
    let changes: Arc<[String]> = if compared.counts.is_empty() { compared.later } else { compared.counts };
    let mut field = Map::new();
    // A change that could not be written yet, or waits for its turn, is not forgotten: what was left first stays the measure until it is.
    let present = subject.seen.generation;
    let now = (present, short(&compared.wanted), configuration(wanted));
    let then = marked(subject).filter(|_| is_changed(subject, wanted));
    let (generation, template, configuration) =
        then.map_or(now, |then| (then.generation.unwrap_or(present), then.template.to_owned(), then.configuration));
    field.insert("generation".to_owned(), generation.into());
    field.insert("template".to_owned(), template.into());
    if !configuration.is_empty() {
        field.insert("configuration".to_owned(), configuration.into());
    }
    if !changes.is_empty() {
        let lines: Vec<_> = changes.iter().take(2 * PATHS).map(|line| cut(line.clone(), LINE)).collect();
        field.insert("changes".to_owned(), json!(lines));
    }
    Some(Value::Object(field))
}
