//! AgentBuilds of BeeAI, of both groups, on the frame of [`super`].
//!
//! ```text
//! claimed, runs, judged: as any build
//! judged ─► login of the registry (read again now and then) ─► the Agent that is kept ─► clean-up
//! ```
//!
//! In: an AgentBuild, what Tekton made of it, the Agent of the name that it keeps. Out: operations. Promises: those of the frame; the Agent
//! runs the image by its digest and survives the build; one that this build has not made is never changed; of Secrets only names are known
//! here, and the login is written by the one operation that reads a token.

mod deploy;
mod inherited;
mod login;

#[cfg(test)]
mod tests;

use super::face::{Face, Words};
use super::plan::{all, concerned, planned};
use crate::api::secrets;
use crate::controllers::agent_build::memory::AgentBuilds;
use crate::controllers::scaffold::plan::{Name, Row};
use crate::domain::keys;
use crate::pipelines::beeai_build::{front, leave_entries, read, validate, without_template};
use crate::pipelines::request::{BEEAI, BEEAI_COMPAT, FrontEnd};
use crate::store::Kind;

pub(super) use login::wanted as login;

/// The controller's name.
const NAME: Name = Name::new("beeai-build");
/// The same of the group that the original operator served.
const COMPAT_NAME: Name = Name::new("beeai-compat-build");

/// The row of the AgentBuilds of `beeai.dev`.
pub const ROW: Row<AgentBuilds> = Row {
    controller: NAME,
    touched: |store, _, kind, key| {
        deploy::concerned(store, (kind, key), &BEEAI_FACE).unwrap_or_else(|| concerned(store, (kind, key), &BEEAI_FACE))
    },
    of_namespace: |store, namespace| all(store, namespace, &BEEAI_FACE),
    plan: |cx| planned(cx, &BEEAI_FACE),
};

/// The row of the AgentBuilds of `beeai.beeai.dev`.
pub const COMPAT_ROW: Row<AgentBuilds> = Row {
    controller: COMPAT_NAME,
    touched: |store, _, kind, key| {
        deploy::concerned(store, (kind, key), &COMPAT_FACE)
            .unwrap_or_else(|| concerned(store, (kind, key), &COMPAT_FACE))
    },
    of_namespace: |store, namespace| all(store, namespace, &COMPAT_FACE),
    plan: |cx| planned(cx, &COMPAT_FACE),
};

static BEEAI_FACE: Face = face(Kind::BeeaiBuild, NAME, &BEEAI);
static COMPAT_FACE: Face = face(Kind::BeeaiCompatBuild, COMPAT_NAME, &BEEAI_COMPAT);

const fn face(kind: Kind, controller: Name, of: &'static FrontEnd) -> Face {
    Face {
        kind,
        controller,
        is_served: |settings| settings.workloads.beeai,
        finalizer: keys::FINALIZER_BEEAI,
        front: of,
        words: Words {
            phase: "buildStatus",
            succeeded: "Completed",
            began: "startTime",
            git_secret: "git token",
            registry_secret: "IMAGE_REPO_SECRET",
            more_time: "let whoever runs Drawbridge raise pipeline-timeout in its ConfigMap pipeline-template-beeai",
        },
        cleans_up: false,
        read: match kind {
            Kind::BeeaiCompatBuild => |object, namespace, builds| {
                read(object, (front(keys::GROUP_BEEAI_COMPAT), namespace), &builds.view, &builds.settings.pipelines)
            },
            _ => |object, namespace, builds| {
                read(object, (front(keys::GROUP_BEEAI), namespace), &builds.view, &builds.settings.pipelines)
            },
        },
        judge: |subject| {
            let builds = subject.builds();
            let whose = (subject.face.front, subject.namespace());
            let found = validate((&subject.object, None), whose, &builds.view, &builds.settings.pipelines);
            found.faults.into_iter().chain(without_template(&builds.view)).collect()
        },
        leave: leave_entries,
        secrets: secrets::of_beeai_build,
        inherits: inherited::state,
        ready: deploy::ready,
        settled: deploy::settled,
    }
}
