//! Agents of BeeAI, of both groups, on the frame of [`super`].
//!
//! In: an Agent and everything of its name. Out: one Deployment and one Service, and its status. Promises: those of the frame; a Deployment
//! that an earlier operator made for the very Agent runs on as it is until the Agent changes or asks for it ([`pending`]), so that a switch of
//! operators breaks no agent that runs. A change counts whatever becomes of it at first: condition `LockdownPending` keeps the generation that
//! runs on until something else is written. Where the platform has all of them locked down, it says so until the new Pods run ([`locks`]).

mod status;

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::claim::{Claim, Claims};
use super::face::{Face, Left};
use super::image::Image;
use super::plan::{all, concerned, planned};
use super::subject::Subject;
use super::turns::Inherits;
use crate::api::secrets;
use crate::config::namesakes;
use crate::controllers::agent::memory::Agents;
use crate::controllers::conditions;
use crate::controllers::scaffold::plan::{Name, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;
use crate::workloads::beeai_agent::{validate, workload};
use crate::workloads::settings::Takeover;

/// The controller's name.
const NAME: Name = Name::new("beeai-agent");
/// The same of the group that the original operator served.
const COMPAT_NAME: Name = Name::new("beeai-compat-agent");

/// The row of the Agents of `beeai.dev`.
pub const ROW: Row<Agents> = Row {
    controller: NAME,
    touched: |store, _, kind, key| concerned(store, (kind, key), &BEEAI),
    of_namespace: |store, namespace| all(store, namespace, &BEEAI),
    plan: |cx| planned(cx, &BEEAI),
};

/// The row of the Agents of `beeai.beeai.dev`.
pub const COMPAT_ROW: Row<Agents> = Row {
    controller: COMPAT_NAME,
    touched: |store, _, kind, key| concerned(store, (kind, key), &COMPAT),
    of_namespace: |store, namespace| all(store, namespace, &COMPAT),
    plan: |cx| planned(cx, &COMPAT),
};

static BEEAI: Face = face(Kind::BeeaiAgent, NAME);
static COMPAT: Face = face(Kind::BeeaiCompatAgent, COMPAT_NAME);

const fn face(kind: Kind, controller: Name) -> Face {
    Face {
        kind,
        controller,
        prefix: namesakes::prefix(kind),
        others: &[],
        look: None,
        is_served: |settings| settings.workloads.beeai,
        finalizer: keys::FINALIZER_BEEAI,
        judge: |subject| validate(&subject.object, None, subject.settings()),
        image,
        request: |subject, _| workload(&subject.object, subject.face.kind.group()),
        secrets: secrets::of_beeai_agent,
        keeps: |subject, claims| kept(subject) && pending(subject, claims),
        inherits,
        status: status::update,
        leaves: |_, _| Left::default(),
        collected: false,
        service_remedy: "delete or rename it, or give the Agent another name",
    }
}

fn image(subject: &Subject<'_>, _: &Claims<'_>) -> Image {
    match subject.object.pointer("/spec/image").and_then(Value::as_str).filter(|image| !image.is_empty()) {
        Some(image) => Image {
            runs: Some(image.to_owned()),
            reason: Reason::ImageAvailable,
            message: format!("the Agent names image {image}"),
            build: None,
        },
        None => Image {
            runs: None,
            reason: Reason::InvalidSpec,
            message: "spec.image names no image".to_owned(),
            build: None,
        },
    }
}

/// Whether what an earlier operator made runs on as it is.
fn kept(subject: &Subject<'_>) -> bool {
    subject.settings().beeai_takeover == Takeover::Keep
}

/// Whether the Deployment is one that an earlier operator made for this very Agent and that has not been locked down.
fn pending(subject: &Subject<'_>, claims: &Claims<'_>) -> bool {
    matches!(claims.deployment, Claim::Ours(_)) && inherited(subject)
}

/// What the platform's wish to lock down everything makes of it.
fn inherits(subject: &Subject<'_>) -> Inherits {
    match () {
        () if kept(subject) => Inherits::No,
        () if inherited(subject) && said_of(subject).is_none() => Inherits::Unsaid,
        () if inherited(subject) => Inherits::Waits,
        () if locks(subject) => Inherits::Rolls,
        () => Inherits::No,
    }
}

/// Whether neither a Deployment of before us nor the Agent has changed since we saw them first: it was never applied by us, and the condition
/// that says so is of the Agent's present generation.
fn inherited(subject: &Subject<'_>) -> bool {
    is_untouched(subject)
        && !asks(subject)
        && said_of(subject).is_none_or(|generation| generation == subject.seen.generation)
}

/// Whether there is a Deployment, and it was never applied by us.
fn is_untouched(subject: &Subject<'_>) -> bool {
    subject.own_deployment().is_some_and(|own| own.applied.is_none() && own.fields.is_none())
}

/// Whether the platform has locked it down, and its new Pods do not all run yet. What its user has changed or asked for is his own.
fn locks(subject: &Subject<'_>) -> bool {
    let is_unchanged = said_of(subject) == Some(subject.seen.generation) && !asks(subject);
    let rolls = subject.deployment.is_some_and(|deployment| !deployment.seen.rollout.is_complete());
    !kept(subject) && is_unchanged && rolls && subject.own_deployment().is_some() && !is_untouched(subject)
}

/// Whether the Agent asks to be locked down.
fn asks(subject: &Subject<'_>) -> bool {
    subject.seen.annotations.get(keys::ANNOTATION_LOCKDOWN).is_some_and(|value| value == keys::LOCKDOWN_NOW)
}

/// The generation of which the Agent says that its Deployment is yet to be locked down.
fn said_of(subject: &Subject<'_>) -> Option<i64> {
    let list = subject.seen.status.get("conditions").unwrap_or(&Value::Null);
    conditions::stored(list, status::PENDING)?.get("observedGeneration")?.as_i64()
}
