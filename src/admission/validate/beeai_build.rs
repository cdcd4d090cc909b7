//! The review of an AgentBuild of BeeAI, of either group: every fault in one answer, and never a value that may be a token.
//!
//! Promises: nothing that is being deleted and no update that leaves the spec alone is refused; nothing is filled in; the controller judges by
//! the same function, so that the operator is as safe without this webhook. That an Agent of the name is there already, or something else that
//! wants its Deployment, is a warning: either may go before the build has ended, and the build says it then, too.

use crate::admission::custom::{Objects, judged, too_large};
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::verdict::Verdict;
use crate::api::findings::Note;
use crate::api::review::Request;
use crate::config::namesakes;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::beeai_build::deploy::target;
use crate::pipelines::beeai_build::{front, template, validate};
use crate::store::Kind;

/// Where the name of the Agent stands.
const TARGET: &str = "spec.agent.name";

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    if let Some(refused) = too_large(request, &objects) {
        return refused;
    }
    let builds = &snapshot.builds;
    let whose = (front(&request.kind.group), request.namespace());
    let mut findings =
        validate((&objects.object, objects.old.as_ref()), whose, &builds.view, &builds.settings.pipelines);
    taken(request, &objects, snapshot).into_iter().for_each(|note| findings.note(note));
    judged(&objects.title(request), findings)
}

/// What is there already of the name that the build is to keep an Agent under, where that name is new to it.
fn taken(request: &Request<'_>, objects: &Objects, snapshot: &Snapshot) -> Vec<Note> {
    if !snapshot.builds.settings.workloads.beeai {
        return Vec::new();
    }
    let namespace = request.namespace();
    let before = objects.old.as_ref().and_then(target);
    let name = target(&objects.object).filter(|name| !name.is_empty() && before != Some(*name));
    let (Some(name), Some(view)) = (name, snapshot.namespace(namespace)) else { return Vec::new() };
    let kind = match &*request.kind.group {
        keys::GROUP_BEEAI_COMPAT => Kind::BeeaiCompatAgent,
        _ => Kind::BeeaiAgent,
    };
    let mut notes = Vec::new();
    if view.named.has(kind, name) {
        let text = format!(
            "Agent {name} is there already. This build changes it only where the Agent's annotation {} is the uid of this build; \
             otherwise it is left alone, and the build says Deployed=False/AgentExists. Give spec.agent.name another name, or look whose it is: \
             kubectl -n {namespace} get {}.{} {name} -o yaml",
            keys::ANNOTATION_CREATED_BY_UID,
            kind.plural(),
            kind.group()
        );
        notes.push(Note::new(Reason::AgentExists, TARGET, text));
    }
    let others = view.named.namesakes(kind, name).into_iter();
    notes.extend(others.map(|(other, its)| {
        Note::new(Reason::NameConflict, TARGET, wanted_by((kind, name), (other, &its), namespace))
    }));
    notes
}

fn wanted_by((kind, name): (Kind, &str), (other, its): (Kind, &str), namespace: &str) -> String {
    let (made, word, whose) = (namesakes::made(kind, name), other.as_str(), other.api_version());
    let (plural, group) = (other.plural(), other.group());
    format!(
        "Deployment {made} of namespace {namespace} is wanted by {word} {its} of {whose}, too: whichever has it first runs, and if that is the \
         other, the Agent of this build says Ready=False/NameConflict. Give spec.agent.name another name, or delete the other: \
         kubectl -n {namespace} delete {plural}.{group} {its}"
    )
}

/// The tree behind the decision: which template its steps come from.
pub(in crate::admission) fn explain(request: &Request<'_>, snapshot: &Snapshot, verdict: &Verdict) -> Explanation {
    let Ok(objects) = Objects::of(request) else { return Explanation::of("AgentBuild", verdict) };
    let mut tree = Explanation::of(&objects.title(request), verdict);
    tree.fields.push(FieldLine {
        name: "template".to_owned(),
        value: template(&snapshot.builds.view).map_or_else(|| "none".to_owned(), |entry| entry.title()),
        layer: "platform".to_owned(),
        shadowed: Vec::new(),
    });
    tree
}
