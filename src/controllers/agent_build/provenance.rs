//! What the image of a build was made of, put together once its run has succeeded.
//!
//! In: what the status says the attempt was composed of, the run and its tasks. Out: the record. Promises: what nobody knows is left out;
//! what the status says counts only for the run that carries its recipe, and of steps that nobody reviewed as what they were; of what steps print, a commit that is one and the name of a
//! Dockerfile that is one of two get in, and nothing else.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::image::Built;
use super::subject::Subject;
use crate::api::agent_kagenti_dev::provenance::{BEFORE, EARLIER, INPUTS, MADE, Provenance, StepSource, TEXT};
use crate::api::digest;
use crate::pipelines::reference;
use crate::pipelines::request::BuildRequest;
use crate::store::Kept;
use crate::store::kinds::tekton::{RESULT_DOCKERFILE, TaskSeen};
use crate::store::objects::{CustomRef, RunRef, TaskRunRef};

/// The names that a Dockerfile has where the build does not say.
const DOCKERFILES: [&str; 2] = ["Dockerfile", "Containerfile"];

/// The record of the image that this run made.
pub(super) fn of(
    subject: &Subject<'_>,
    run: &RunRef<'_>,
    ran: &[(&TaskSeen, TaskRunRef<'_>)],
    (built, commit): (&Built, Option<&str>),
) -> Provenance {
    let inputs = inputs(subject, run).unwrap_or_default();
    let found = ran.iter().flat_map(|(_, child)| &child.seen.results);
    let mut found = found.filter(|one| &*one.name == RESULT_DOCKERFILE).map(|one| &*one.value);
    let found = found.rfind(|name| DOCKERFILES.contains(name));
    let step = |step: StepSource| {
        let child = ran.iter().find(|(of, _)| *of.name == *step.name).map(|(_, child)| child.seen);
        let dockerfile = match step.dockerfile {
            Some(text) if reference::mentions(&text) => found.map(str::to_owned),
            other => other,
        };
        StepSource {
            dockerfile: dockerfile.filter(|_| child.is_some()),
            ran_images: child.iter().flat_map(|child| child.images.iter()).map(|image| image.to_string()).collect(),
            skipped: child.is_none().then_some(true),
            ..step
        }
    };
    Provenance {
        build_hash: Some(subject.hash.clone()),
        attempt: i32::try_from(subject.recorded_attempt()).ok(),
        rebuild: wish(subject),
        commit: commit.map(str::to_owned),
        steps: inputs.steps.into_iter().map(step).collect(),
        pipeline_run: Some(run.name.to_string()),
        pipeline_run_uid: Some(run.uid.to_owned()),
        started: read(run.seen.started.as_deref()),
        ended: read(run.seen.completed.as_deref()),
        image: Some(built.image.clone()),
        image_tag: built.tag.clone(),
        digest: built.digest.clone(),
        ..inputs
    }
    .bounded()
}

/// The members of the status that hold this record and those before it.
pub(super) fn members(subject: &Subject<'_>, record: &Provenance) -> Map<String, Value> {
    let mut all = recorded(&subject.build);
    if let Some(last) = all.first_mut().and_then(Value::as_object_mut) {
        last.remove("steps");
    }
    all.truncate(EARLIER);
    let earlier = if all.is_empty() { Value::Null } else { Value::Array(all) };
    Map::from_iter([(MADE.to_owned(), json!(record)), (BEFORE.to_owned(), earlier)])
}

/// What a build says of the images that its runs made, the last first.
pub(super) fn recorded(build: &CustomRef<'_>) -> Vec<Value> {
    let last = build.seen.record(MADE).map(Kept::value);
    let before = match build.seen.record(BEFORE).map(Kept::value) {
        Some(Value::Array(before)) => before,
        _ => Vec::new(),
    };
    last.into_iter().chain(before).filter(|record| record.get("digest").is_some()).collect()
}

/// Steps whose ConfigMap was not there, or not known yet, when the build was reviewed are pinned to what it was made of before: the first content starts
/// by itself, and another one in its place is a change that somebody has to accept. The platform's own are never pinned.
pub(super) fn pin(subject: &Subject<'_>, request: &mut BuildRequest) {
    if request.steps_namespace == subject.builds().settings.pipelines.operator_namespace {
        return;
    }
    let names = request.steps.iter().map(|step| step.config_map.clone());
    let open: BTreeSet<_> = names.filter(|name| !name.is_empty() && !request.pinned_steps.contains_key(name)).collect();
    if open.is_empty() {
        return;
    }
    let records = [INPUTS, MADE].into_iter().filter_map(|member| subject.build.seen.record(member));
    let records = records.filter_map(|record| serde_json::from_value::<Provenance>(record.value()).ok());
    let steps: Vec<StepSource> = records.flat_map(|record| record.steps).collect();
    for name in open {
        let place = format!("{}/{name}", request.steps_namespace);
        let mut of_it = steps.iter().filter(|step| step.config_map.as_deref() == Some(&*place));
        if let Some(hash) = of_it.find_map(|step| step.content_hash.clone()) {
            request.pinned_steps.insert(name, hash);
        }
    }
}

/// The wish to build again, as a record has it: in place of one that is too long stands its digest.
pub(super) fn wish(subject: &Subject<'_>) -> Option<String> {
    let wish = subject.rebuild()?;
    Some(if wish.len() <= TEXT { wish.to_owned() } else { format!("sha256:{}", digest::of_bytes(wish.as_bytes())) })
}

/// A text of the run as the type that the record has for it; none where it is no such text.
fn read<T: DeserializeOwned>(text: Option<&str>) -> Option<T> {
    serde_json::from_value(Value::from(text?)).ok()
}

/// What the status says the attempt was composed of, if it is this run's.
fn inputs(subject: &Subject<'_>, run: &RunRef<'_>) -> Option<Provenance> {
    let inputs: Provenance = serde_json::from_value(subject.build.seen.record(INPUTS)?.value()).ok()?;
    let attempt = i32::try_from(subject.recorded_attempt()).ok();
    let is_this = inputs.build_hash.as_deref() == Some(&*subject.hash) && inputs.attempt == attempt;
    (is_this && inputs.recipe.is_some() && inputs.recipe.as_deref() == run.seen.recipe.as_deref()).then_some(inputs)
}
