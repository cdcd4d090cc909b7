//! What to do about the signature of one AgentCard's workload.
//!
//! In: the card, its workload, and how its signature stands. Out: the Pod template changed and the Event, a place in the queue, or nothing.
//! Promises: a restart under way keeps its place among what rolls, for an hour at most, also for another leader and whatever the workload's annotations
//! say; a rollout of somebody else's that failed stops none; what waits for its turn until it may come too late is said; what cannot roll is left
//! alone, and said where a person has to do it; what signs anew by itself is never restarted, and said when it has not.

use std::time::Duration;

use serde_json::json;

use super::due::{Due, Known, SPREAD, due, end, is_late, second, text};
use crate::admission::inject::needs;
use crate::controllers::looks;
use crate::controllers::resign::memory::{Context, Plan, Resign};
use crate::controllers::resign::note::Note;
use crate::controllers::scaffold::budget::{Turn, budget, turn};
use crate::controllers::scaffold::plan::{Item, Name, Op, Report, Row};
use crate::controllers::scaffold::signing::{Signing, Stands};
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::resign::Cause;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::{CardRef, WorkloadRef};
use crate::store::{CardTarget, Key, Kind, Store, TemplateSeen};

/// The controller's name.
pub const NAME: Name = Name::new("resign");

/// The controller's row. Its items are AgentCards.
pub const ROW: Row<Resign> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// Longest time between two looks: how a signature stands changes without bringing us back.
const AGAIN: Duration = Duration::from_secs(60);
/// For so long nobody may vouch for a signature before that has consequences: SPIRE publishes an authority later than it signs by it.
const PATIENCE: Duration = Duration::from_secs(300);
/// A restart that is not over after so many seconds keeps its place no longer.
const KEEPS: i64 = 3_600;
/// The same on the clock of plans.
const KEPT: Duration = Duration::from_secs(3_600);
/// What says that it was restarted later than so many seconds from now was not written by us: our clocks do not differ by more.
const AHEAD: i64 = 60;
/// The same for what was under way when this term began, while nobody has judged its card: twice the longest period of a card.
const UNJUDGED: Duration = Duration::from_secs(600);

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::AgentCard => vec![key.clone()],
        Kind::Deployment | Kind::StatefulSet => {
            let target = kind.workload().map(|kind| CardTarget::of_workload(kind, name));
            let cards = target.iter().flat_map(|target| store.agent_cards_of(namespace, target));
            cards.map(|card| Key::new(namespace, card.name)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.agent_cards(namespace).map(|card| Key::new(namespace, card.name)).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    if !cx.facts.platform.cards().restarts || cx.facts.snapshot.namespace(namespace).is_none() {
        return Plan::nothing();
    }
    let found =
        cx.store.agent_card(namespace, name).and_then(|card| Some((workload_of(cx.store, namespace, &card)?, card)));
    let Some((workload, card)) = found else { return Plan::nothing() };
    let Some(template) = workload.seen.template.as_ref() else { return Plan::nothing() };
    let signs = signs(&cx, &workload, template);
    if signs == Signs::Never {
        return Plan::nothing();
    }
    let before = cx.note().copied().unwrap_or_default();
    let mut note = Note { resigned: before.resigned.filter(|_| !came_to_nothing(&cx)), ..Note::default() };
    let is_rolling = rolls(&workload) && !workload.seen.rollout.is_complete();
    let trigger = template.annotations.get(keys::ANNOTATION_RESIGN_TRIGGER);
    // Whoever led before may have begun it. Since when it rolls is read off no annotation: a workload's owner may write the same again and again.
    note.rolls = (trigger.is_some() && is_rolling).then(|| before.rolls.unwrap_or(cx.now));
    let keeps = |most: Duration| note.rolls.is_some_and(|since| cx.now.saturating_sub(since) < most);
    let Some(signing) = looks::signing(cx.memory, cx.key) else {
        // The time by which that is told comes with the first judgement.
        note.rolling = keeps(UNJUDGED);
        return Plan { again: Some(AGAIN), note, ..Plan::nothing() };
    };
    note.awaiting = (signing.stands == Stands::Lost).then(|| before.awaiting.unwrap_or(cx.now));
    let now = signing.read.saturating_add(seconds(cx.now.saturating_sub(signing.at)));
    let triggered = trigger.and_then(second).filter(|then| *then <= now.saturating_add(AHEAD));
    let is_recent = triggered.is_some_and(|then| now.saturating_sub(then) < KEEPS);
    if is_recent && is_rolling && keeps(KEPT) {
        return Plan { again: Some(AGAIN), note: Note { rolling: true, ..note }, ..Plan::nothing() };
    }
    // What somebody takes back at once, such as a tool that owns the template, is not written again and again.
    let remembered = note.resigned.map(|at| now.saturating_sub(seconds(cx.now.saturating_sub(at))));
    let cards = cx.facts.platform.cards();
    let known = Known {
        now,
        stands: signing.stands,
        bundle: &signing.bundle,
        tolerance: cards.tolerance,
        grace: cards.restart_grace,
        restarted: triggered.max(remembered),
        handled: template.annotations.get(keys::ANNOTATION_RESIGN_EXPIRY),
        lost_under: workload.seen.annotations.get(keys::ANNOTATION_BUNDLE_HASH),
        spread: spread(workload.uid),
    };
    match due(&known) {
        Due::Never => Plan { again: Some(AGAIN), note, ..Plan::nothing() },
        Due::At(second) => {
            let wait = u64::try_from(second.saturating_sub(now)).map_or(AGAIN, Duration::from_secs);
            Plan { again: Some(wait.clamp(Duration::from_secs(1), AGAIN)), note, ..Plan::nothing() }
        }
        Due::Now(_) if note.awaiting.is_some_and(|since| cx.now.saturating_sub(since) < PATIENCE) => {
            Plan { again: Some(AGAIN), note, ..Plan::nothing() }
        }
        Due::Now(cause) => {
            let awaited = note.awaiting.map_or(0, |since| seconds(cx.now.saturating_sub(since)));
            let late = is_late(&known, awaited);
            now_due(&cx, (&card, &workload), (signing, now, signs), (cause, late), note)
        }
    }
}

/// A restart is due; `late`: it may come too late if it waits on.
fn now_due(
    cx: &Context<'_>,
    (card, workload): (&CardRef<'_>, &WorkloadRef<'_>),
    (signing, now, signs): (&Signing, i64, Signs),
    (cause, late): (Cause, bool),
    note: Note,
) -> Plan {
    let later = |ops, note| Plan { ops, again: Some(AGAIN), note };
    let (kind, name) = (workload.seen.kind.as_str(), workload.name);
    let report = |reason, message| {
        let (about, uid) = (cx.key.clone(), card.uid.to_owned());
        Op::Report(Report { kind: Kind::AgentCard, about, uid, reason, message, since: String::new() })
    };
    let end = end(signing.stands, cause);
    let why = match (cause, &end) {
        (Cause::LeafExpires, Some(end)) => format!("the certificate that signed the card ends at {end}"),
        (Cause::AuthorityExpires, Some(end)) => {
            format!("the authority that vouches for the card's signature ends at {end}")
        }
        _ => "no authority of the trust bundle vouches for the card's signature any more".to_owned(),
    };
    if signs == Signs::Anew {
        let message = format!(
            "{why}, and the Pods of {kind} {name}, which sign anew by themselves (sidecar {signer}), have not: kubectl -n {namespace} logs \
             {short}/{name} -c {signer} says why; a restart would not help",
            signer = keys::CONTAINER_SIGNER,
            namespace = cx.key.namespace,
            short = kind.to_lowercase(),
        );
        return later(vec![report(Reason::ResignNotPossible, message)], note);
    }
    if workload.seen.rollout.on_delete {
        let message = format!(
            "{why}, and {kind} {name} replaces its Pods only when they are deleted (updateStrategy OnDelete): delete them, so that they sign anew"
        );
        return later(vec![report(Reason::ResignNotPossible, message)], note);
    }
    if !rolls(workload) {
        return later(Vec::new(), note);
    }
    if !has_turn(cx) {
        let waits = || report(Reason::ResignNotPossible, format!("{why}: {}", waiting(cx, workload)));
        // Who rolls is not known a moment after a start.
        let told = (late && cx.memory.surveyed).then(waits);
        return later(told.into_iter().collect(), Note { waits: true, ..note });
    }
    let mut of_template = json!({keys::ANNOTATION_RESIGN_TRIGGER: text(now)});
    let mut of_workload = json!({keys::ANNOTATION_RESIGN_CAUSE: cause.as_str()});
    if let Some(end) = end {
        of_template[keys::ANNOTATION_RESIGN_EXPIRY] = end.into();
    }
    if signing.stands == Stands::Lost {
        of_workload[keys::ANNOTATION_BUNDLE_HASH] = (*signing.bundle).into();
    }
    let patch = json!({
        "metadata": {"uid": workload.uid, "resourceVersion": workload.version.to_string(), "annotations": of_workload},
        "spec": {"template": {"metadata": {"annotations": of_template}}},
    });
    let key = Key::new(&cx.key.namespace, name);
    let restart = Op::Merge { kind: workload.kind, key, patch };
    let told =
        report(Reason::ResignTriggered, format!("{why}: {kind} {name} is restarted, so that its Pods sign anew"));
    later(vec![restart, told], Note { rolling: true, rolls: Some(cx.now), resigned: Some(cx.now), ..note })
}

/// Whether it may be restarted now, beside what rolls. Rollouts that failed are anybody's, and what is restarted here runs what it has run before.
fn has_turn(cx: &Context<'_>) -> bool {
    let (memory, failed) = (cx.memory, 0);
    memory.surveyed && turn(budget(cx.store.enrolled_count()), memory.rolling_besides(&item(cx)), failed) == Turn::Now
}

/// What a restart waits for, in words.
fn waiting(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> String {
    let (kind, name) = (workload.seen.kind.as_str(), workload.name);
    let (rolling, most) = (cx.memory.rolling_besides(&item(cx)), budget(cx.store.enrolled_count()));
    format!(
        "{kind} {name} is to be restarted and waits for {rolling} rollouts that are under way; {most} may be at once, and its signature may count no more \
         before one of them is done. What to do: drawbridge status -A shows what rolls; end a rollout that hangs, or restart this one: kubectl -n \
         {namespace} rollout restart {short}/{name}",
        namespace = cx.key.namespace,
        short = kind.to_lowercase(),
    )
}

fn item(cx: &Context<'_>) -> Item {
    Item { controller: NAME, key: cx.key.clone() }
}

/// The last restart was not written, because somebody else wrote the workload meanwhile or nobody answered: it is still to be made.
fn came_to_nothing(cx: &Context<'_>) -> bool {
    let trouble = cx.memory.trouble(&item(cx));
    trouble.is_some_and(|trouble| trouble.refused.is_none() && matches!(trouble.op, Op::Merge { .. }))
}

/// The workload of a card that counts for it, of a kind whose template can be changed so that its Pods are made anew.
fn workload_of<'a>(store: &'a Store, namespace: &str, card: &CardRef<'_>) -> Option<WorkloadRef<'a>> {
    let target = card.seen.spec.target.as_ref()?;
    let kind =
        target.workload_kind().filter(|kind| matches!(kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet))?;
    let workload = store.workload(Kind::of_workload(kind)?, namespace, &target.name)?;
    let counts = trust::card_of(store, namespace, &workload).is_some_and(|counts| counts.uid == card.uid);
    (counts && !workload.seen.deleting).then_some(workload)
}

/// When the Pods of a workload sign their card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signs {
    /// Never, or whether they do is not known at the moment.
    Never,
    /// When they start.
    AtStart,
    /// Whenever their SVID is renewed, by a sidecar.
    Anew,
}

fn signs(cx: &Context<'_>, workload: &WorkloadRef<'_>, template: &TemplateSeen) -> Signs {
    let says = |key| template.annotations.get(key);
    if says(keys::ANNOTATION_RESIGN) == Some("true") {
        return Signs::AtStart;
    }
    if template.signs {
        return if template.signer_stays { Signs::Anew } else { Signs::AtStart };
    }
    match says(keys::ANNOTATION_SIGN) {
        Some("true") => Signs::AtStart,
        // Which Pods get the sidecar, admission says.
        Some(keys::SIGN_SIDECAR) => {
            let snapshot = &cx.facts.snapshot;
            let Some(template) = workload.governed_template(&snapshot.labels) else { return Signs::Never };
            let needs = needs(&cx.key.namespace, &workload.identity(), &template, snapshot);
            match needs.signs_as {
                Some(_) if needs.signs_anew => Signs::Anew,
                Some(_) => Signs::AtStart,
                None => Signs::Never,
            }
        }
        _ => Signs::Never,
    }
}

/// Its Pods are replaced as soon as its template changes.
fn rolls(workload: &WorkloadRef<'_>) -> bool {
    let rollout = &workload.seen.rollout;
    !rollout.paused && !rollout.on_delete && rollout.wanted > rollout.held
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The same number for the same workload, in every process.
fn spread(uid: &str) -> i64 {
    let sum = uid
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    i64::try_from(sum >> 54).unwrap_or_default() % SPREAD
}
