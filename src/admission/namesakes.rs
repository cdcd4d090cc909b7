//! What is said of an object whose Deployment another one of its namespace wants, too.
//!
//! In: an object of a kind that is run under a name of its own ([`namesakes`]). Out: a warning for each other. Promise: nothing is refused for
//! it, since the other may go, and whoever came second is told by its status, too.

use super::custom::Objects;
use crate::api::findings::Note;
use crate::api::review::Request;
use crate::config::namesakes;
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use crate::store::Kind;

const PATH: &str = "metadata.name";

/// The warnings, in the order of the kinds.
pub(super) fn notes(request: &Request<'_>, objects: &Objects, snapshot: &Snapshot) -> Vec<Note> {
    let (namespace, name) = (request.namespace(), objects.name(request));
    let kind = Kind::of(&request.kind.group, &request.kind.kind).filter(|kind| is_run(*kind, snapshot));
    let (Some(kind), Some(view)) = (kind, snapshot.namespace(namespace)) else { return Vec::new() };
    let others = view.named.namesakes(kind, name).into_iter().filter(|(other, _)| is_run(*other, snapshot));
    others
        .map(|(other, its)| Note::new(Reason::NameConflict, PATH, sentence((kind, name), (other, &its), namespace)))
        .collect()
}

/// Whether the platform has objects of that kind run.
fn is_run(kind: Kind, snapshot: &Snapshot) -> bool {
    let of_beeai = matches!(kind, Kind::BeeaiAgent | Kind::BeeaiCompatAgent);
    namesakes::KINDS.contains(&kind) && (!of_beeai || snapshot.builds.settings.workloads.beeai)
}

fn sentence((kind, name): (Kind, &str), (other, its): (Kind, &str), namespace: &str) -> String {
    let (made, word, whose) = (namesakes::made(kind, name), other.as_str(), other.api_version());
    let (plural, group) = (other.plural(), other.group());
    format!(
        "Deployment {made} of namespace {namespace} is wanted by {word} {its} of {whose}, too: whichever had it first runs, and the other does \
         not and says Ready=False/NameConflict. Give this {} another name, or delete the other: kubectl -n {namespace} delete {plural}.{group} {its}",
        kind.as_str()
    )
}

#[cfg(test)]
mod tests;
