//! The parts of a plan as they go into the Pod: tree, encoded text, and what is recorded about them.
//!
//! In: typed containers and volumes. Out: [`Parts`], in the plan's order. The parts of one Pod are those of the next,
//! and making their trees, texts and digests was half of a review: the last few are remembered, per thread.
//! Promise: a part is found by everything it is made of, so what is remembered changes no answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::digest;
use super::plan::{Container, InjectionPlan, Volume};
use super::status::Record;
use crate::admission::patch::Part;

/// Containers that a thread remembers, volumes, and texts: those of a few namespaces.
const REMEMBERED: usize = 64;
/// Longest serialised form that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

/// What parts were made of, and what was made.
type Known<T> = VecDeque<(T, Arc<Rendered>)>;

thread_local! {
    static CONTAINERS: RefCell<Known<Container<'static>>> = const { RefCell::new(VecDeque::new()) };
    static TEXTS: RefCell<VecDeque<Arc<Part>>> = const { RefCell::new(VecDeque::new()) };
    static VOLUMES: RefCell<Known<Volume<'static>>> = const { RefCell::new(VecDeque::new()) };
}

/// The text as a part, such as the value of an annotation.
pub(super) fn text(text: &str) -> Arc<Part> {
    TEXTS.with_borrow_mut(|last| {
        if let Some(known) = last.iter().find(|known| known.value.as_str() == Some(text)) {
            return Arc::clone(known);
        }
        let part = Arc::new(Part::new(text.into()));
        if text.len() <= REMEMBERED_BYTES {
            last.truncate(REMEMBERED - 1);
            last.push_front(Arc::clone(&part));
        }
        part
    })
}

/// A part with what is recorded about it.
#[derive(Debug, PartialEq)]
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
    pub(super) init: Vec<Arc<Rendered>>,
    /// Regular containers.
    pub(super) containers: Vec<Arc<Rendered>>,
    /// Volumes, as many as the plan has.
    pub(super) volumes: Vec<Arc<Rendered>>,
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

fn container(container: &Container<'_>) -> Arc<Rendered> {
    CONTAINERS.with_borrow_mut(|last| {
        if let Some((_, rendered)) = last.iter().find(|(known, _)| known == container) {
            return Arc::clone(rendered);
        }
        let (part, digest, form) = made(container);
        let record = Record {
            name: container.name.to_owned(),
            digest,
            image: container.image.clone().into_owned(),
            resources: digest::of_part(&container.resources),
        };
        let rendered = Arc::new(Rendered { part, record });
        if form <= REMEMBERED_BYTES {
            remember(last, container.clone().into_owned(), &rendered);
        }
        rendered
    })
}

fn volume(volume: &Volume<'_>) -> Arc<Rendered> {
    VOLUMES.with_borrow_mut(|last| {
        if let Some((_, rendered)) = last.iter().find(|(known, _)| known == volume) {
            return Arc::clone(rendered);
        }
        let (part, digest, form) = made(&volume.value());
        let record = Record { name: volume.name.to_owned(), digest, ..Record::default() };
        let rendered = Arc::new(Rendered { part, record });
        // The name of a Secret is the Pod's word, and may be as long as the Pod.
        if form <= REMEMBERED_BYTES {
            remember(last, volume.to_owned(), &rendered);
        }
        rendered
    })
}

fn remember<T>(last: &mut Known<T>, of: T, rendered: &Arc<Rendered>) {
    last.truncate(REMEMBERED - 1);
    last.push_front((of, Arc::clone(rendered)));
}

/// The part, its digest, and how long its serialised form is, in bytes.
fn made(part: &impl Serialize) -> (Arc<Part>, String, usize) {
    let value = serde_json::to_value(part).expect("parts have text keys and no failing serialiser");
    let (digest, form) = digest::with_form(part, |form| (digest::of_form(form), form.len()));
    (Arc::new(Part::new(value)), digest, form)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use crate::admission::inject::plan::{EnvVar, SecurityContext, Source};

    fn numbered(number: usize, resources: &Value) -> Container<'_> {
        Container {
            name: "envoy-proxy",
            image: Cow::Owned("i".repeat(if number == 5 { 9_000 } else { 70 })),
            image_pull_policy: Cow::Borrowed("Always"),
            command: vec![],
            args: vec![],
            ports: vec![],
            env: vec![EnvVar::literal("NUMBER", number.to_string())],
            resources: Cow::Borrowed(resources),
            restart_policy: None,
            startup_probe: None,
            security_context: SecurityContext::unprivileged(None, None),
            volume_mounts: vec![],
            listens_on: None,
        }
    }

    #[test]
    fn a_part_is_the_same_the_first_time_and_again_whatever_came_between() {
        let resources = json!({"limits": {"cpu": "1"}});
        for round in 0..3 {
            for number in 0..REMEMBERED + 9 {
                let of = numbered(number, &resources);
                let rendered = container(&of);
                assert_eq!(rendered.part.value, serde_json::to_value(&of).unwrap(), "round {round}");
                assert_eq!(*rendered.part, Part::new(rendered.part.value.clone()));
                assert_eq!(rendered.record.digest, digest::of_part(&of));
                assert_eq!(rendered.record.image, of.image);
                assert_eq!(rendered.record.resources, digest::of_part(&resources));

                let long = "\"text\"\n".repeat(if number == 5 { 2_000 } else { number });
                assert_eq!(*text(&long), Part::new(long.into()), "round {round}");

                let name = Cow::Owned(format!("secret-{}", "s".repeat(if number == 5 { 9_000 } else { number })));
                let of = Volume { name: "credentials", source: Source::Credentials(name) };
                let rendered = volume(&of);
                assert_eq!(rendered.part.value, of.value(), "round {round}");
                assert_eq!(rendered.record.digest, digest::of_part(&of.value()));
            }
        }
        CONTAINERS.with_borrow(|last| {
            assert!(last.len() == REMEMBERED && last.iter().all(|(known, _)| known.image.len() == 70));
        });
        VOLUMES.with_borrow(|last| {
            let short = |part: &Arc<Rendered>| serde_json::to_vec(part.value()).unwrap().len() <= REMEMBERED_BYTES;
            assert!(last.len() == REMEMBERED && last.iter().all(|(_, part)| short(part)));
        });
        TEXTS.with_borrow(|last| {
            let short = |part: &Arc<Part>| part.value.as_str().is_some_and(|text| text.len() <= REMEMBERED_BYTES);
            assert!(last.len() == REMEMBERED && last.iter().all(short));
        });
    }
}
