//! The parts of a plan as they go into the Pod: tree, text, and what is recorded about them.
//!
//! In: typed containers and volumes. Out: [`Parts`], in the plan's order. The parts of one Pod are those of the next,
//! and making their trees, texts and digests was a third of a review: the last few are remembered, per thread.
//! Promise: a part is found by its whole serialised form, so what is remembered changes no answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::digest;
use super::plan::{Container, InjectionPlan, Volume};
use super::status::Record;
use crate::admission::patch::Part;

/// Parts that a thread remembers: those of a few namespaces.
const REMEMBERED: usize = 96;
/// Longest serialised form that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

/// A part that was made before.
struct Known {
    form: Box<[u8]>,
    part: Arc<Part>,
    digest: String,
}

thread_local! {
    static LAST: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

/// A part with what is recorded about it.
pub(super) struct Rendered {
    /// The part.
    pub(super) part: Arc<Part>,
    /// Its record in the new status.
    pub(super) record: Record,
}

impl Rendered {
    /// The part as a tree.
    pub(super) fn value(&self) -> &Value {
        &self.part.value
    }
}

/// Everything the plan puts into lists of the Pod.
#[derive(Default)]
pub(super) struct Parts {
    /// Init containers.
    pub(super) init: Vec<Rendered>,
    /// Regular containers.
    pub(super) containers: Vec<Rendered>,
    /// Volumes, as many as the plan has.
    pub(super) volumes: Vec<Rendered>,
}

impl Parts {
    /// The parts of this plan.
    pub(super) fn of(plan: &InjectionPlan<'_>) -> Self {
        Self {
            init: plan.init.iter().map(container).collect(),
            containers: plan.containers.iter().map(container).collect(),
            volumes: plan.volumes.iter().map(volume).collect(),
        }
    }
}

fn container(container: &Container<'_>) -> Rendered {
    let (part, digest) = made(container);
    let record = Record {
        name: container.name.to_owned(),
        digest,
        image: container.image.clone().into_owned(),
        resources: digest::of_part(container.resources),
    };
    Rendered { part, record }
}

fn volume(volume: &Volume) -> Rendered {
    let (part, digest) = made(&volume.value);
    Rendered { part, record: Record { name: volume.name.to_owned(), digest, ..Record::default() } }
}

/// The part and its digest, from memory where they are there.
fn made(part: &impl Serialize) -> (Arc<Part>, String) {
    digest::with_form(part, |form| LAST.with_borrow_mut(|last| remembered(last, form, part)))
}

fn remembered(last: &mut VecDeque<Known>, form: &[u8], part: &impl Serialize) -> (Arc<Part>, String) {
    if let Some(known) = last.iter().find(|known| *known.form == *form) {
        return (Arc::clone(&known.part), known.digest.clone());
    }
    let value = serde_json::to_value(part).expect("parts have text keys and no failing serialiser");
    let part = Arc::new(Part::new(value));
    let digest = digest::of_form(form);
    if form.len() <= REMEMBERED_BYTES {
        last.truncate(REMEMBERED - 1);
        last.push_front(Known { form: form.into(), part: Arc::clone(&part), digest: digest.clone() });
    }
    (part, digest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_is_the_same_the_first_time_and_again_whatever_came_between() {
        for round in 0..3 {
            for number in 0..REMEMBERED + 9 {
                let long = "i".repeat(if number == 5 { 9_000 } else { number * 70 });
                let part = json!({"name": "envoy-proxy", "image": long, "b": [{"a": number}]});
                let (made, digest) = made(&part);
                assert_eq!(*made, Part::new(part.clone()), "round {round}");
                assert_eq!(digest, digest::of_part(&part));
            }
        }
        LAST.with_borrow(|last| {
            assert!(last.len() == REMEMBERED && last.iter().all(|known| known.form.len() <= REMEMBERED_BYTES));
        });
    }
}
