//! Builds by content: an image that is known already needs no run.
//!
//! In: a build that is about to start, what its run would be made of, the records of the builds of its namespace. Out: the state that takes the
//! image over, `None` where a run is needed. Promises: only where the platform says so; only a whole commit, and only steps whose images are all
//! named by digest, are content; whoever asks for a build gets a run; an image counts where our own record says that the same recipe made it of
//! the same commit, in the same place, and where no later record says that its tag is another image by now.

use serde_json::Value;

use super::image::is_digest;
use super::provenance;
use super::start::attempt;
use super::status::{Phase, READY, State};
use super::subject::Subject;
use crate::api::agent_kagenti_dev::provenance::{BEFORE, INPUTS, MADE, Provenance};
use crate::controllers::scaffold::plan::NOW;
use crate::domain::reason::Reason;
use crate::pipelines::compose::Composition;
use crate::store::{Kept, Kind};

/// The kinds whose records count.
const KINDS: [Kind; 3] = [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild];

/// A record, and whose it is.
struct Known<'a> {
    record: Value,
    kind: Kind,
    build: &'a str,
}

impl Known<'_> {
    fn text(&self, member: &str) -> &str {
        self.record.get(member).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The state of a build whose image is known.
pub(super) fn state(subject: &Subject<'_>, composition: &Composition) -> Option<State> {
    let inputs = &composition.inputs;
    let commit = inputs.revision.as_deref().filter(|revision| is_commit(revision))?;
    let is_content = subject.builds().settings.pipelines.by_content && !subject.request.gated && composition.pinned;
    // An attempt that is claimed may have its run, though it is not seen yet.
    if !is_content || subject.is_claimed() || is_asked_for(subject) {
        return None;
    }
    let output = subject.request.image.as_ref()?;
    let (place, tag) = (format!("{}/{}@", output.registry, output.image), output.reference());
    let mut of_tag: Vec<Known<'_>> = records(subject, &tag).filter(|known| known.text("imageTag") == tag).collect();
    of_tag.sort_by(|a, b| a.text("ended").cmp(b.text("ended")));
    let last = of_tag.last()?.text("digest").to_owned();
    let is_it = |known: &Known<'_>| {
        let digest = known.text("digest");
        let image = known.text("image").strip_prefix(&*place);
        digest == last
            && is_digest(digest)
            && image == Some(digest)
            && known.text("commit") == commit
            && inputs.recipe.as_deref() == Some(known.text("recipe"))
    };
    let known = of_tag.into_iter().rev().find(is_it)?;
    Some(taken(subject, &known))
}

/// A commit in full, as Git names it.
fn is_commit(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64)
        && revision.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether somebody asks for a build of whatever there is, and has had none since.
fn is_asked_for(subject: &Subject<'_>) -> bool {
    let had = subject.build.seen.record(MADE).map(Kept::value);
    let had = had.as_ref().and_then(|record| record.get("rebuild")?.as_str());
    provenance::wish(subject).is_some_and(|wish| Some(&*wish) != had)
}

/// The records of the namespace's builds that have this text in them. Those of a namespace may be many and long: what does not hold the text is
/// not read.
fn records<'a>(subject: &Subject<'a>, text: &str) -> impl Iterator<Item = Known<'a>> {
    let (store, namespace) = (subject.cx.store, subject.namespace());
    let written = Value::from(text).to_string();
    KINDS.into_iter().flat_map(move |kind| store.customs(kind, namespace).map(move |build| (kind, build))).flat_map(
        move |(kind, build)| {
            let has = |member: &str| build.seen.record(member).is_some_and(|kept| kept.text().contains(&*written));
            let all = if has(MADE) || has(BEFORE) { provenance::recorded(&build) } else { Vec::new() };
            let name: &'a str = build.name;
            all.into_iter().map(move |record| Known { record, kind, build: name })
        },
    )
}

fn taken(subject: &Subject<'_>, known: &Known<'_>) -> State {
    let text = |member: &str| Value::from(known.text(member));
    let (image, run) = (known.text("image"), known.text("pipelineRun"));
    let message = format!(
        "no run was needed: PipelineRun {run} of AgentBuild {} of {} made {image} of this very commit by the same steps; \
         drawbridge build run builds it all the same",
        known.build,
        known.kind.group()
    );
    let attempt = attempt(subject);
    let record = Provenance {
        build_hash: Some(subject.hash.clone()),
        attempt: i32::try_from(attempt).ok(),
        rebuild: provenance::wish(subject),
        known_from: Some(format!("{}.{}/{}", known.kind.plural(), known.kind.group(), known.build)),
        ..serde_json::from_value(known.record.clone()).unwrap_or_default()
    };
    let mut state = State::new(Phase::Succeeded, Reason::ImageKnown, message.clone())
        .with("buildHash", subject.hash.clone())
        .with("attempts", attempt)
        .with("pipelineRunName", Value::Null)
        .with("builtImage", image)
        .with("builtImageTag", text("imageTag"))
        .with("imageDigest", text("digest"))
        .with("sourceCommit", text("commit"))
        .with(subject.face.words.began, NOW)
        .with("completionTime", NOW)
        .with("tasks", Value::Null)
        .with(INPUTS, Value::Null)
        .with("handledCancel", subject.cancel().map_or(Value::Null, Value::from))
        .telling(READY, Reason::ImageKnown, message);
    state.members.extend(provenance::members(subject, &record));
    state.ready = Some(format!("{image} is ready"));
    state.gone = true;
    state
}
