//! A workload whose user put the type label on the workload itself: what an AgentRuntime of that type and without settings would
//! write, but for the label, which is there; pure.
//!
//! ```text
//! nothing of ours stands   ─► label and hash of the template: one rollout, so many at once in a namespace
//! an AgentRuntime's stands ─► what was only its is taken away, at once: the template stays, nothing rolls
//! the label is gone        ─► everything of ours is taken away, at once
//! such labels do not count any more (the platform's key) ─► the same, in turns
//! ```
//!
//! Promises: where nothing would be injected nothing is rolled for it; the deletion of an AgentRuntime waits for no turn.

use super::fields::Fields;
use super::judge::{self, Found, Step, Subject, Wait};
use super::wave::{self, Turn};
use crate::config::enrolment::WorkloadLabels;
use crate::domain::keys;
use crate::store::Kind;

/// What is to be written on a workload whose own label says that type.
pub(super) fn judge(subject: &Subject<'_>, agent_type: &str, standing: &Fields) -> Found {
    // An AgentRuntime that cannot be read may govern it.
    if subject.view(None).is_none() || !subject.cx.store.is_certain(Kind::AgentRuntime) {
        return judge::wait(Wait::Configuration);
    }
    let Some(needs) = subject.needs() else { return judge::wait(Wait::Configuration) };
    if let Some(refused) = &needs.refused {
        let step = if standing.is_of_runtime() { Step::Release } else { judge::refuse(subject, refused) };
        return Found { wanted: None, step };
    }
    let hash = needs.config_hash.unwrap_or_else(|| keys::HASH_OF_NOTHING.to_owned());
    let fields = Fields::labelled(agent_type, &hash);
    let step = match () {
        () if fields.clone().rolled_for(standing.rolled()) == *standing => Step::Settled,
        () if hash == keys::HASH_OF_NOTHING && standing.is_empty() => Step::Settled,
        () if hash == keys::HASH_OF_NOTHING && standing.is_of_runtime() => Step::Release,
        () if standing.is_of_runtime() => Step::Apply { fields: fields.in_place_of(standing), wave: false },
        () if standing.differs_by_hash_only(&fields) => judge::rehash(subject, &hash, fields),
        () if standing.label_template() => Step::Apply { fields, wave: false },
        () => match judge::first(subject, needs.service_account.as_deref()) {
            Some(waits) => Step::Wait(waits),
            None if !wave::rolls(subject.workload.seen) => Step::Apply { fields, wave: false },
            None => enter(subject, &hash, fields),
        },
    };
    Found { wanted: Some(hash), step }
}

/// The first rollout. What a person has just labelled waits for what was labelled in the same namespace before, so that nobody holds
/// others up; what the settings enrol waits for its place in the fleet.
fn enter(subject: &Subject<'_>, hash: &str, fields: Fields) -> Step {
    let labels = &subject.cx.facts.snapshot.labels;
    if !subject.workload.seen.type_label.as_deref().is_some_and(|label| labels.is_new(label)) {
        return judge::in_turn(subject, hash, fields);
    }
    let memory = subject.cx.memory;
    if memory.surveyed && memory.entering_besides(&subject.item()) < wave::ENTRIES {
        return Step::Apply { fields: fields.rolled_for(Some(&wave::entry(hash))), wave: false };
    }
    Step::Wait(Wait::Turn { budget: wave::ENTRIES, slow: Vec::new(), slow_elsewhere: 0 })
}

/// How what stands is taken away: at once, unless the settings have taken it from every workload that such a label enrolled.
pub(super) fn release(subject: &Subject<'_>, standing: &Fields) -> Step {
    if !is_of_fleet(subject, standing) || !wave::rolls_by_itself(subject.workload.seen) {
        return Step::Release;
    }
    match subject.turn() {
        // Rollouts that failed are no reason to go on injecting.
        Some(Turn::Now | Turn::Halted { .. }) => Step::Release,
        Some(Turn::Later) | None => subject.turn_later(),
    }
}

/// Whether a label that is still there enrolled it, and the settings have ended that.
pub(super) fn is_of_fleet(subject: &Subject<'_>, standing: &Fields) -> bool {
    let ignored = subject.cx.facts.snapshot.labels == WorkloadLabels::Ignored;
    ignored && subject.workload.may_ask() && standing.label_template() && !standing.is_of_runtime()
}
