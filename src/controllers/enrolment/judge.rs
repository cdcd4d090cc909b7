//! What is to be written on one workload, if anything; pure.
//!
//! ```text
//! an AgentRuntime governs it ─► label, hash, marker      (first, and when the type changes: at once)
//! its user labelled it       ─► label and hash on its template ([`super::labelled`])
//! ... or its template        ─► a hash, once a change of configuration must roll it
//! the Go operator enrolled it─► taken over as it stands, with its hash
//! neither, and ours stands   ─► ours is taken away
//!                                a new hash alone waits for its turn (wave)
//! ```
//!
//! In: the workload, who governs it, the snapshot. Out: a [`Judgement`]. Promises: nothing is concluded from an
//! AgentRuntime's absence while AgentRuntimes cannot be read; nothing is written before the snapshot knows the
//! AgentRuntime, so that what the webhook stamps is what is written here; a user's type label is never overwritten;
//! Pods that the webhook would refuse are not rolled. What stands in their way and is kept of a template (names, counts, the network) is judged here;
//! ports, volumes, users, commands and annotations of others are not kept, and judged of the whole object before it is written ([`super::whole`]).

use std::time::Duration;

use super::fields::{Fields, value};
use super::labelled;
use super::pods::Tally;
use super::wave::{self, Turn};
use crate::admission::inject::{Needs, needs};
use crate::admission::verdict::Denial;
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::config::agent_runtime::{AgentRuntimeInput, out_of_conflict};
use crate::config::schema::OnUpgrade;
use crate::config::snapshot::Snapshot;
use crate::config::view::NamespaceView;
use crate::controllers::enrolment::memory::Context;
use crate::controllers::enrolment::note::Note;
use crate::controllers::enrolment::plan::NAME;
use crate::controllers::scaffold::plan::Item;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::{RuntimeRef, WorkloadRef};
use crate::store::{Kind, Over, Place};

/// How long namespace ConfigMaps are waited for before an enrolment goes on without them and says so (case 40).
pub(super) const CONFIG_MAPS: Duration = Duration::from_secs(2);

/// How many of those that take long are named to each one that waits.
const SLOW_NAMED: usize = 3;

/// One workload in its surroundings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The item's context.
    pub(super) cx: Context<'a>,
    /// The workload.
    pub(super) workload: WorkloadRef<'a>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// The hash that its Pods should carry; `None` when that is not known, or nothing of ours.
    pub(super) wanted: Option<String>,
    /// What stands and is ours.
    pub(super) standing: Fields,
    /// What is to be done.
    pub(super) step: Step,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Nothing.
    Settled,
    /// These fields are applied.
    Apply {
        /// Which.
        fields: Fields,
        /// They roll the workload in a wave.
        wave: bool,
    },
    /// Everything of ours is taken away.
    Release,
    /// Nothing yet.
    Wait(Wait),
    /// Nothing, until a person has changed something.
    Refused {
        /// Why.
        reason: Reason,
        /// The facts, and what to do.
        message: String,
    },
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// Reading AgentRuntimes, or the snapshot.
    Configuration,
    /// The dedicated ServiceAccount.
    ServiceAccount(String),
    /// Some of the namespace's ConfigMaps.
    ConfigMaps,
    /// A person: a ConfigMap cannot be read, and what it said before is not known.
    Unread,
    /// Every replica that serves reviews having read the settings: it would make the new Pods by the old ones.
    Spread,
    /// One of those that roll.
    Turn {
        /// How many may roll at once.
        budget: usize,
        /// Those of the same namespace that have rolled for long, as `kubectl` names them.
        slow: Vec<String>,
        /// How many have in other namespaces.
        slow_elsewhere: usize,
    },
    /// A person: so many rollouts failed.
    Halted(usize),
    /// A person: `rollout.onUpgrade` is manual.
    Manual,
}

impl<'a> Subject<'a> {
    pub(super) fn namespace(&self) -> &'a str {
        &self.cx.key.namespace
    }

    pub(super) fn item(&self) -> Item {
        Item { controller: NAME, key: self.cx.key.clone() }
    }

    /// The note of the last plan.
    pub(super) fn note(&self) -> Option<&'a Note> {
        self.cx.note()
    }

    /// Whether its AgentRuntime was edited since a controller last said anything about it: all that is known of what was changed
    /// while none led. What a person changes on one workload is no upgrade of the fleet.
    pub(super) fn is_edited(&self) -> bool {
        let generation = |winner: &RuntimeRef<'_>| {
            let status = winner.seen.status.value();
            status.get("observedGeneration").is_some_and(|told| *told != winner.seen.generation)
        };
        self.workload.winner.as_ref().is_some_and(generation) || self.note().is_some_and(|note| note.edited)
    }

    /// Whether there is a place among those that roll; `None` while it is not known who does.
    pub(super) fn turn(&self) -> Option<Turn> {
        let memory = self.cx.memory;
        let budget = wave::budget(self.cx.store.enrolled_count());
        let turn = || wave::turn(budget, memory.rolling_besides(&self.item()), memory.failed());
        memory.surveyed.then(turn)
    }

    /// Waiting for those that roll, with what is known of those that take long.
    pub(super) fn turn_later(&self) -> Step {
        let budget = wave::budget(self.cx.store.enrolled_count());
        let all = self.cx.memory.slow().map(|item| &item.key);
        let (here, elsewhere): (Vec<_>, Vec<_>) = all.partition(|key| *key.namespace == *self.namespace());
        let slow = here.iter().take(SLOW_NAMED).map(|key| key.name.to_string()).collect::<Vec<_>>();
        Step::Wait(Wait::Turn { budget, slow_elsewhere: elsewhere.len() + here.len() - slow.len(), slow })
    }

    /// The type that the label on the workload itself gives its Pods, where that counts.
    pub(super) fn label_type(&self) -> Option<AgentType> {
        self.workload.label_type(&self.cx.facts.snapshot.labels)
    }

    /// The Pods against the hash they should carry.
    pub(super) fn tally(&self, wanted: &str) -> Tally<'a> {
        let mut tally = Tally::of(self.cx.store.pods_of(self.namespace(), &self.workload), wanted);
        if !self.cx.facts.is_settled() {
            // Pods of the meantime carry what admission decides now, and nothing is to be done about them yet.
            let now = self.needs_in(&self.cx.facts.snapshot).and_then(|needs| needs.config_hash);
            tally.accept(now.as_deref());
        }
        // The others count no Pods by template.
        let counts = [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
        if wanted != keys::HASH_OF_NOTHING && counts.contains(&self.workload.seen.kind) {
            tally.count_unlabelled(self.workload.seen.rollout);
        }
        tally
    }

    /// The namespace in the snapshot, once that knows what governs the workload.
    pub(super) fn view(&self, winner: Option<&AgentRuntimeInput>) -> Option<&'a NamespaceView> {
        let view = self.cx.facts.snapshot.namespace(self.namespace())?;
        let known = view.governors.winner(self.workload.seen.kind, self.workload.name);
        let same = match (known, winner) {
            (None, None) => true,
            (Some(known), Some(winner)) => known.says.same_settings(winner) && known.says.uid == winner.uid,
            _ => false,
        };
        same.then_some(view)
    }

    /// ConfigMaps that are made for the Pods of every namespace but our own, and that this one lacks.
    pub(super) fn lacking(&self) -> Vec<&'static str> {
        let (store, namespace) = (self.cx.store, self.namespace());
        let missing = |name: &&str| store.config_map(namespace, name).is_none();
        let own = namespace == store.operator_namespace();
        if own { Vec::new() } else { keys::NAMESPACE_CONFIG_MAPS.into_iter().filter(missing).collect() }
    }

    /// What counts for the hash.
    pub(super) fn needs(&self) -> Option<Needs> {
        self.needs_in(&self.cx.facts.settled)
    }

    fn needs_in(&self, snapshot: &Snapshot) -> Option<Needs> {
        let template = self.workload.governed_template(&snapshot.labels)?;
        Some(needs(self.namespace(), &self.workload.identity(), &template, snapshot))
    }
}

/// What to do about a write that the API server refuses.
pub(super) fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::NotPermitted => "drawbridge doctor shows which right is missing",
        Reason::ImmutableSelector => {
            "A selector cannot be changed: delete the workload and create it with a selector that allows label kagenti.io/type"
        }
        Reason::LabelConflict => {
            "Take the label out of what that field manager applies, or change spec.type to its value; where the workload's \
             selector has the label, only the latter is possible, or making the workload anew"
        }
        Reason::ConfigApplyError => {
            "Let field manager drawbridge/enrolment pass there, or repair the workload; it is tried again every minute"
        }
        // Its Pods would be refused.
        _ => "Nothing is written before that, so its Pods stay as they are; it is looked at again every minute",
    }
}

/// Whether a refusal may end without a change to what was to be written: rights are given, and rules of admission lifted. The words
/// are the API server's, of policies and of webhooks.
pub(super) fn may_pass(reason: Reason, message: &str) -> bool {
    reason == Reason::NotPermitted || message.contains("denied request") || message.contains("denied the request")
}

/// What is to be written on the workload.
pub(super) fn judge(subject: &Subject<'_>) -> Judgement {
    let standing = Fields::standing(subject.workload.seen);
    let found = match (&subject.workload.winner, subject.label_type()) {
        (Some(winner), _) => governed(subject, winner, &standing),
        (None, Some(agent_type)) => labelled::judge(subject, agent_type.as_str(), &standing),
        (None, None) => ungoverned(subject, &standing),
    };
    let Found { wanted, step } = found;
    Judgement { wanted, standing, step }
}

/// A judgement in the making.
pub(super) struct Found {
    /// As in [`Judgement`].
    pub(super) wanted: Option<String>,
    /// As in [`Judgement`].
    pub(super) step: Step,
}

impl From<Step> for Found {
    fn from(step: Step) -> Self {
        Self { wanted: None, step }
    }
}

pub(super) fn wait(what: Wait) -> Found {
    Step::Wait(what).into()
}

fn governed(subject: &Subject<'_>, winner: &RuntimeRef<'_>, standing: &Fields) -> Found {
    if let Some(over) = winner.seen.over {
        let (reason, message) = over_bound(&subject.workload, winner, over);
        return Step::Refused { reason, message }.into();
    }
    let says = AgentRuntimeInput { uid: winner.uid.into(), ..AgentRuntimeInput::of_spec(&winner.seen.spec) };
    let blocking =
        says.faults.iter().find(|fault| says.agent_type.is_none() || fault.reason == Reason::ModeNotAvailable);
    let Some(agent_type) = says.agent_type.filter(|_| blocking.is_none()) else {
        let (reason, message) = blocking.map_or((Reason::InvalidSpec, String::new()), |fault| {
            (fault.reason, format!("{}: {:?}: {}", fault.field, fault.seen, fault.message))
        });
        return Step::Refused { reason, message }.into();
    };
    if let Some(refused) = label_of_others(subject, winner, agent_type.as_str()) {
        return refused.into();
    }
    if subject.view(Some(&says)).is_none() {
        return wait(Wait::Configuration);
    }
    let Some(needs) = subject.needs() else { return wait(Wait::Configuration) };
    if let Some(refused) = needs.refused {
        return refuse(subject, &refused).into();
    }
    let hash = needs.config_hash.unwrap_or_else(|| keys::HASH_OF_NOTHING.to_owned());
    if let Some(theirs) = inherited(subject, agent_type.as_str(), standing) {
        let fields = Fields::enrolled(agent_type.as_str(), theirs, marks(subject));
        return Found { wanted: Some(hash), step: Step::Apply { fields, wave: false } };
    }
    let fields = Fields::enrolled(agent_type.as_str(), &hash, marks(subject));
    let step = match () {
        () if fields.clone().rolled_for(standing.rolled()) == *standing => Step::Settled,
        () if standing.differs_by_hash_only(&fields) => rehash(subject, &hash, fields),
        // Pods that nothing is injected into ask for nothing.
        () if hash == keys::HASH_OF_NOTHING => Step::Apply { fields, wave: false },
        () => match first(subject, needs.service_account.as_deref()) {
            Some(waits) => Step::Wait(waits),
            None => Step::Apply { fields: fields.in_place_of(standing), wave: false },
        },
    };
    Found { wanted: Some(hash), step }
}

/// What an AgentRuntime is told of which nothing is read: what was written for it before stays as it is.
fn over_bound(workload: &WorkloadRef<'_>, runtime: &RuntimeRef<'_>, over: Over) -> (Reason, String) {
    let message = format!(
        "AgentRuntime {} {}; nothing is changed on {} {}, and its new Pods are refused. Delete AgentRuntimes that are not needed",
        runtime.name,
        over.sentence(),
        workload.kind.as_str(),
        workload.name,
    );
    (Reason::ConfigUnknown, message)
}

/// Nothing is written that would lead to Pods that the webhook refuses.
pub(super) fn refuse(subject: &Subject<'_>, refused: &Denial) -> Step {
    Step::Refused { reason: refused.reason, message: would_be_refused(subject.workload.name, refused) }
}

/// What is said of a workload whose Pods the webhook would refuse, without a full stop.
pub(super) fn would_be_refused(name: &str, refused: &Denial) -> String {
    format!("Pods of {name} would be refused: {}. {}", refused.sentence, refused.remedy)
}

/// The hash that the Go operator left on a template that it had enrolled as we would. Taken over as it stands, the workload does
/// not roll, and the way from that hash to ours is a change like any other: it waits for its turn, or not a fleet would be left
/// running when the operators are exchanged.
fn inherited<'a>(subject: &Subject<'a>, agent_type: &str, standing: &Fields) -> Option<&'a str> {
    let seen = subject.workload.seen;
    let (_, theirs) = seen.upstream.as_ref()?;
    let label = (Place::TemplateLabels, keys::LABEL_TYPE);
    let hash = (Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH);
    let owned = [label, hash].iter().all(|(place, key)| theirs.owns(*place, key));
    let is_as_ours = owned && value(seen, label.0, label.1) == Some(agent_type);
    value(seen, hash.0, hash.1).filter(|_| is_as_ours && standing.is_empty() && wave::rolls(seen))
}

/// Whether the marker is ours to write: the user may have a value of his own there.
fn marks(subject: &Subject<'_>) -> bool {
    subject.workload.seen.labels.get(keys::LABEL_MANAGED_BY).is_none_or(|value| value == keys::MANAGED_BY_DRAWBRIDGE)
}

/// A type label with another value that is not ours.
fn label_of_others(subject: &Subject<'_>, winner: &RuntimeRef<'_>, agent_type: &str) -> Option<Step> {
    let WorkloadRef { kind, name, seen, .. } = &subject.workload;
    let places = [(Place::Labels, "label"), (Place::TemplateLabels, "label of the Pod template")];
    places.into_iter().find_map(|(place, called)| {
        let found = value(seen, place, keys::LABEL_TYPE).filter(|found| *found != agent_type)?;
        (!seen.enrolment_owns(place, keys::LABEL_TYPE)).then(|| Step::Refused {
            reason: Reason::LabelConflict,
            message: format!(
                "{} {name} carries {called} {}={found}, written by somebody else, and AgentRuntime {} says type {agent_type}. {}",
                kind.as_str(),
                keys::LABEL_TYPE,
                winner.name,
                out_of_conflict(found, place == Place::TemplateLabels && seen.selects_type),
            ),
        })
    })
}

/// What has to be there before the first Pod is made.
pub(super) fn first(subject: &Subject<'_>, account: Option<&str>) -> Option<Wait> {
    let (store, namespace) = (subject.cx.store, subject.namespace());
    if let Some(account) = account
        && !store.service_account(namespace, account).is_some_and(|(seen, _, _)| seen.is_dedicated())
    {
        return Some(Wait::ServiceAccount(account.to_owned()));
    }
    let held = subject.note().and_then(|note| note.held);
    let waited = held.map_or(Duration::ZERO, |since| subject.cx.now.saturating_sub(since));
    (waited < CONFIG_MAPS && !subject.lacking().is_empty()).then_some(Wait::ConfigMaps)
}

/// A workload that no AgentRuntime governs.
fn ungoverned(subject: &Subject<'_>, standing: &Fields) -> Found {
    let seen = subject.workload.seen;
    let labelled = seen.template.as_ref().is_some_and(|template| template.agent_type().is_some());
    match () {
        () if standing.is_enrolment() || (!labelled && !standing.is_empty()) => {
            if subject.cx.store.is_certain(Kind::AgentRuntime) {
                labelled::release(subject, standing).into()
            } else {
                wait(Wait::Configuration)
            }
        }
        () if !labelled => Step::Settled.into(),
        () if subject.view(None).is_none() => wait(Wait::Configuration),
        () => match subject.needs().filter(|needs| needs.refused.is_none()) {
            Some(needs) => label_only(subject, standing, needs),
            None => Step::Settled.into(),
        },
    }
}

/// A workload that its user enrolled by the label: it gets a hash once a change must roll it, and not before.
fn label_only(subject: &Subject<'_>, standing: &Fields, needs: Needs) -> Found {
    let seen = subject.workload.seen;
    let hash = needs.config_hash.unwrap_or_else(|| keys::HASH_OF_NOTHING.to_owned());
    let stale = match standing.hash() {
        Some(known) => known != hash,
        None => {
            // A Sandbox has no rollout that could be under way.
            let over = seen.kind == WorkloadKind::Sandbox || seen.rollout.is_complete();
            over && !subject.tally(&hash).outdated.is_empty()
        }
    };
    // A CronJob's next Job is made with the present configuration anyway.
    let step = if stale && seen.kind != WorkloadKind::CronJob {
        rehash(subject, &hash, Fields::hash_only(&hash))
    } else {
        Step::Settled
    };
    Found { wanted: Some(hash), step }
}

/// A new hash on a workload that is enrolled already.
pub(super) fn rehash(subject: &Subject<'_>, hash: &str, fields: Fields) -> Step {
    let (seen, memory) = (subject.workload.seen, subject.cx.memory);
    // What a ConfigMap said before it became unreadable may be what the Pods run with (a read error never changes a hash).
    if subject.cx.facts.settled.namespace(subject.namespace()).is_some_and(|view| view.resolved.unread) {
        return Step::Wait(Wait::Unread);
    }
    if !wave::rolls(seen) {
        return Step::Apply { fields, wave: false };
    }
    // Somebody has rolled it already: the webhook has stamped every Pod with what is wanted.
    let tally = subject.tally(hash);
    if seen.rollout.is_complete() && tally.running() > 0 && tally.running() == tally.configured {
        return Step::Settled;
    }
    let local = subject.note().and_then(|note| note.settled) == Some(memory.epoch);
    if subject.cx.facts.platform.on_upgrade() == OnUpgrade::Manual && !local && !subject.is_edited() {
        return Step::Wait(Wait::Manual);
    }
    if subject.cx.facts.spreading && !local {
        return Step::Wait(Wait::Spread);
    }
    in_turn(subject, hash, fields)
}

/// Rolls it when there is a place among those that roll.
pub(super) fn in_turn(subject: &Subject<'_>, hash: &str, fields: Fields) -> Step {
    match subject.turn() {
        Some(Turn::Now) => Step::Apply { fields: fields.rolled_for(Some(hash)), wave: true },
        Some(Turn::Halted { failed }) => Step::Wait(Wait::Halted(failed)),
        Some(Turn::Later) | None => subject.turn_later(),
    }
}
