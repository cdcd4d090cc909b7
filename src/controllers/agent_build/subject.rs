//! One AgentBuild with what is wanted of it and what its status says was claimed.

use serde_json::Value;

use super::face::Face;
use crate::config::builds::Builds;
use crate::controllers::agent_build::memory::Context;
use crate::controllers::agent_build::note::Read;
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::Item;
use crate::pipelines::names;
use crate::pipelines::request::BuildRequest;
use crate::store::Kind;
use crate::store::objects::{CustomRef, RunRef};

/// One AgentBuild.
pub(super) struct Subject<'a> {
    pub(super) cx: Context<'a>,
    /// Which kind of AgentBuild it is.
    pub(super) face: &'static Face,
    pub(super) build: CustomRef<'a>,
    /// As the engine reads it.
    pub(super) object: Value,
    /// What it asks for, first attempt.
    pub(super) request: BuildRequest,
    /// Identity of the inputs that are wanted.
    pub(super) hash: String,
}

impl<'a> Subject<'a> {
    pub(super) fn new(cx: Context<'a>, face: &'static Face, build: CustomRef<'a>) -> Self {
        let namespace = &cx.key.namespace;
        let object = build.seen.object(namespace, build.name, build.uid);
        let request = (face.read)(&object, namespace, &cx.facts.snapshot.builds);
        let hash = names::build_hash(&request);
        Self { cx, face, build, object, request, hash }
    }

    pub(super) fn namespace(&self) -> &'a str {
        &self.cx.key.namespace
    }

    pub(super) fn builds(&self) -> &'a Builds {
        &self.cx.facts.snapshot.builds
    }

    /// Where the ConfigMaps of its steps are, as it is written.
    pub(super) fn steps_namespace(&self) -> &str {
        let written = self.object.pointer("/spec/pipeline/namespace").and_then(Value::as_str);
        written.unwrap_or(&self.request.steps_namespace)
    }

    /// The phase of the stored status.
    pub(super) fn phase(&self) -> &'a str {
        self.recorded(self.face.words.phase)
    }

    /// A text of the stored status.
    pub(super) fn recorded(&self, key: &str) -> &'a str {
        let status: &'a Value = &self.build.seen.status;
        status.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The attempt that the status names; 0 for none.
    pub(super) fn recorded_attempt(&self) -> u32 {
        let attempts = self.build.seen.status.get("attempts").and_then(Value::as_u64);
        attempts.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
    }

    /// The status names an attempt at what is wanted.
    pub(super) fn is_claimed(&self) -> bool {
        self.recorded("buildHash") == self.hash && self.recorded_attempt() > 0
    }

    /// The run that the status names, if it is this build's.
    pub(super) fn run(&self) -> Option<RunRef<'a>> {
        let run = self.cx.store.run(self.namespace(), self.recorded("pipelineRunName"))?;
        let owner = run.seen.controller.as_ref()?;
        (owner.uid == self.build.uid).then_some(run)
    }

    /// The runs of this build.
    pub(super) fn runs(&self) -> impl Iterator<Item = RunRef<'a>> {
        self.cx.store.runs_of(self.namespace(), self.build.uid)
    }

    /// A run of other inputs, or of another attempt, that has not ended. What is being deleted has not either: until it is gone, its tasks may go on.
    pub(super) fn other_active_run(&self) -> Option<RunRef<'a>> {
        self.runs().find(|run| run.seen.completed.is_none() && !run.seen.is_done())
    }

    /// The wish to cancel, acted on or not.
    pub(super) fn cancel(&self) -> Option<&'a str> {
        self.build.seen.annotations.get(self.face.front.annotation_cancel).map(String::as_str)
    }

    /// A wish to cancel that has not been acted on.
    pub(super) fn cancels(&self) -> bool {
        let handled = self.build.seen.status.get("handledCancel").and_then(Value::as_str);
        self.cancel().is_some_and(|wish| Some(wish) != handled)
    }

    /// The wish to build again, fulfilled or not.
    pub(super) fn rebuild(&self) -> Option<&'a str> {
        self.build.seen.annotations.get(self.face.front.annotation_rebuild).map(String::as_str)
    }

    /// `spec.cleanupAfterBuild`, with its default.
    pub(super) fn cleans_up(&self) -> bool {
        self.build.seen.spec.get("cleanupAfterBuild").and_then(Value::as_bool).unwrap_or(self.face.cleans_up)
    }

    fn item(&self) -> Item {
        Item { controller: self.face.controller, key: self.cx.key.clone() }
    }

    /// When the run of that name was read, and what was known of it then.
    pub(super) fn read_of(&self, run: &str) -> Option<&'a Read> {
        self.cx.note()?.read.as_ref().filter(|read| read.run == run)
    }

    /// Since when the build has been held back, as the last plan noted.
    pub(super) fn held(&self) -> Option<std::time::Duration> {
        self.cx.note().and_then(|note| note.held)
    }

    /// How many builds of the namespace are held back.
    pub(super) fn held_in_namespace(&self) -> usize {
        self.cx.own.memory.held_in(&self.cx.key.namespace)
    }

    /// What failed last.
    pub(super) fn trouble(&self) -> Option<&'a Trouble> {
        self.cx.memory.trouble(&self.item())
    }

    /// A kind of Tekton's that is not served, or cannot be read: which, and whether it is certainly absent.
    pub(super) fn tekton_lacks(&self) -> Option<(Kind, bool)> {
        use crate::store::Reach;
        let reach = |kind| match self.cx.store.reach(kind) {
            Reach::Listed => None,
            Reach::Absent => Some((kind, true)),
            Reach::Unknown => Some((kind, false)),
        };
        reach(Kind::PipelineRun).or_else(|| reach(Kind::TaskRun))
    }
}
