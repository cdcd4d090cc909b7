//! What to do about one AgentCard.
//!
//! In: the card, its workload, Service and Pods, and the answers that are there. Out: the status, where it is another than the stored one, and
//! whom to ask next. Promises: one Pod is asked per period, in turn; nothing is asked of a workload that says that it cannot serve; an answer
//! of a Pod that is gone counts no more; what was asked by a person is asked once.

use std::time::Duration;

use super::question::CardQuestion;
use super::status::{Found, update};
use super::subject::{Hindrance, Subject, subject, wins};
use super::trust::{Judged, judged, silence, superseded, unaskable};
use super::turn::Turn;
use crate::controllers::scaffold::lane::{Ask, Facts};
use crate::controllers::scaffold::note::Note;
use crate::controllers::scaffold::plan::{Asked, AskingRow, Context, Controller, Item, Plan};
use crate::controllers::scaffold::world::{CardRef, World};
use crate::domain::period;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{CardTarget, Key, Kind};

/// The controller's row. Its items are AgentCards.
pub const ROW: AskingRow<CardQuestion> = AskingRow { controller: Controller::AgentCard, touched, of_namespace, plan };

/// The period of a card that names none, or none that can be read.
const PERIOD: Duration = Duration::from_secs(30);
/// Time until an agent is asked again that could not be, when its period is longer.
const AGAIN: Duration = Duration::from_secs(60);
/// Longest period of a card whose signatures are judged.
const JUDGED: Duration = Duration::from_secs(300);
/// Time between two questions that a person asks for.
const REFRESH: Duration = Duration::from_secs(5);
/// Shortest time until the next look.
const SOON: Duration = Duration::from_millis(100);

/// The kinds whose Pods may be those of a Service of their name.
const KINDS: [WorkloadKind; 4] =
    [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::Sandbox, WorkloadKind::DaemonSet];

fn keys_of(world: &World, namespace: &str, target: &CardTarget) -> Vec<Key> {
    world.agent_cards_of(namespace, target).map(|card| Key::new(namespace, card.name)).collect()
}

fn of_workload(world: &World, namespace: &str, kind: WorkloadKind, name: &str) -> Vec<Key> {
    keys_of(world, namespace, &CardTarget::of_workload(kind, name))
}

fn touched(world: &World, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::Namespace => of_namespace(world, name),
        // Of several cards of one workload one counts.
        Kind::AgentCard => match world.agent_card(namespace, name).and_then(|card| card.seen.spec.target.as_ref()) {
            Some(target) => keys_of(world, namespace, target),
            None => vec![key.clone()],
        },
        Kind::Service => KINDS.into_iter().flat_map(|kind| of_workload(world, namespace, kind, name)).collect(),
        Kind::Pod => {
            let controller = world.pod(namespace, name).and_then(|pod| pod.seen.controller.as_deref());
            let root = controller.and_then(|controller| world.root_of(namespace, controller));
            root.map(|root| of_workload(world, namespace, root.seen.kind, root.name)).unwrap_or_default()
        }
        kind => match (kind.workload(), world.workload(kind, namespace, name)) {
            (None, _) => Vec::new(),
            (Some(_), Some(workload)) if !workload.is_root() => {
                let root = workload.seen.controller.as_deref().and_then(|owner| world.root_of(namespace, owner));
                root.map(|root| of_workload(world, namespace, root.seen.kind, root.name)).unwrap_or_default()
            }
            (Some(kind), _) => of_workload(world, namespace, kind, name),
        },
    }
}

fn of_namespace(world: &World, namespace: &str) -> Vec<Key> {
    world.agent_cards(namespace).map(|card| Key::new(namespace, card.name)).collect()
}

fn plan(cx: Context<'_>, facts: &Facts<CardQuestion>) -> Asked<CardQuestion> {
    let nothing = (Plan::nothing(), Vec::new());
    let Some(card) = cx.world.agent_card(&cx.key.namespace, &cx.key.name) else { return nothing };
    // A namespace that is not served, or goes, is none of ours.
    let here =
        cx.world.namespace(&cx.key.namespace).is_some() && cx.facts.snapshot.namespace(&cx.key.namespace).is_some();
    if card.seen.deleting || !here {
        return nothing;
    }
    let same = card.seen.spec.target.iter().flat_map(|target| cx.world.agent_cards_of(&cx.key.namespace, target));
    if let Err(winner) = wins(&card, same) {
        let message = format!("AgentCard {winner} is of the same workload, and that one counts; delete one of them");
        let lost = superseded(&card, &message);
        let found = Found::Hindered { hindrance: Hindrance::new(Reason::DuplicateCard, message), lost };
        return (Plan::of(update(&cx, &card, &found)), Vec::new());
    }
    match subject(&cx, &card) {
        None => nothing,
        Some(Err(hindrance)) => (hindered(&cx, &card, hindrance), Vec::new()),
        Some(Ok(subject)) => of_subject(&cx, &card, &subject, facts),
    }
}

/// Nobody can be asked: what was believed is believed for as long as of an agent that does not answer.
fn hindered<'a>(cx: &Context<'_>, card: &CardRef<'a>, hindrance: Box<Hindrance<'a>>) -> Plan {
    let failing = before(cx).failing;
    let mut note = Note { failing, ..Note::default() };
    let (lost, again) = unaskable(cx, card, &hindrance.message, period_of(cx, card), &mut note);
    Plan { ops: update(cx, card, &Found::Hindered { hindrance, lost }), again, note }
}

/// The period of a card, within its bounds.
fn period_of(cx: &Context<'_>, card: &CardRef<'_>) -> Duration {
    let wanted = match card.seen.spec.sync_period.as_deref().and_then(period::parse) {
        None => PERIOD,
        Some((negative, length)) => {
            if negative {
                Duration::ZERO
            } else {
                length
            }
        }
    };
    let cards = cx.facts.platform.cards();
    let period = cards.period(wanted);
    // An SVID that has expired, or authorities that have changed, are noticed within that.
    if cards.bundle.any() { period.min(JUDGED) } else { period }
}

fn of_subject(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    subject: &Subject<'_>,
    facts: &Facts<CardQuestion>,
) -> Asked<CardQuestion> {
    let period = period_of(cx, card);
    let turn = Turn::at(cx.now, card.uid, period);
    let pods = u64::try_from(subject.asked.len()).unwrap_or(u64::MAX).max(1);
    let whose = usize::try_from(turn.number % pods).unwrap_or_default();
    let Some(question) = subject.asked.get(whose) else { return (Plan::nothing(), Vec::new()) };
    let last = facts.get(question);
    let mut note = noted(cx, card, last.map(|fact| fact.asked));
    let mut since = turn.since;
    if let Some(failed) = last.filter(|fact| fact.value.is_err() && cx.now >= fact.at + AGAIN) {
        since = since.max(failed.at + AGAIN);
    }
    if let Some((_, wanted)) = note.refresh.as_ref().filter(|(_, wanted)| *wanted <= cx.now) {
        since = since.max(*wanted);
    }
    let ask = Ask { question: question.clone(), since };
    let fresh = facts.fresh(&ask);
    let handled = note.refresh.as_ref().filter(|(_, wanted)| fresh.is_some_and(|fact| fact.asked >= *wanted));
    let handled = handled.map(|(value, _)| value.clone());
    let found = match judged(cx, card, subject, facts, &mut note) {
        Some(found) => {
            note.failing = None;
            Some(of_card(subject, found, handled))
        }
        None => failed(cx, card, subject, Silence { facts, question, period, handled }, &mut note),
    };
    let ops = found.map(|found| update(cx, card, &found)).unwrap_or_default();
    // What others of its Pods said last is kept while they can be asked.
    let others = subject.asked.iter().filter(|other| *other != question && facts.get(other).is_some());
    let others = others.map(|other| Ask { question: other.clone(), since: Duration::ZERO });
    let mut asks: Vec<_> = others.collect();
    asks.insert(0, ask);
    let mut next = turn.next;
    if let Some(failed) = last.filter(|fact| fact.value.is_err() && fact.at + AGAIN > cx.now) {
        next = next.min(failed.at + AGAIN);
    }
    if let Some((_, wanted)) = note.refresh.as_ref().filter(|(_, wanted)| *wanted > cx.now) {
        next = next.min(*wanted);
    }
    let again = Some(next.saturating_sub(cx.now).max(SOON));
    (Plan { ops, again, note }, asks)
}

/// What the plan before has left.
fn before(cx: &Context<'_>) -> Note {
    let item = Item { controller: Controller::AgentCard, key: cx.key.clone() };
    cx.world.memory.of(&item).cloned().unwrap_or_default()
}

/// What a person asked for and nobody has answered yet.
fn noted(cx: &Context<'_>, card: &CardRef<'_>, last: Option<Duration>) -> Note {
    let before = before(cx);
    let handled = card.seen.status.get("handledRefresh").and_then(|value| value.as_str());
    let wanted = card.seen.refresh.as_deref().filter(|value| !value.is_empty());
    let wanted = wanted.map(super::status::refresh_of).filter(|value| handled != Some(&**value));
    let refresh = wanted.map(|value| match before.refresh {
        Some((known, at)) if *known == *value => (known, at),
        _ => (value.into(), last.map_or(cx.now, |last| cx.now.max(last + REFRESH))),
    });
    let Note { settling, awaiting, failing, .. } = before;
    Note { refresh, settling, awaiting, failing, ..Note::default() }
}

fn of_card<'a>(subject: &Subject<'a>, found: Judged, handled: Option<Box<str>>) -> Found<'a> {
    let (workload, protocol) = (subject.workload, subject.protocol.clone());
    let Judged { judgement, published, covered } = found;
    Found::Card { workload, protocol, published, covered, judgement: Box::new(judgement), handled }
}

/// Nobody has answered.
struct Silence<'q> {
    facts: &'q Facts<CardQuestion>,
    /// Whose turn it is.
    question: &'q CardQuestion,
    period: Duration,
    handled: Option<Box<str>>,
}

/// Why nobody has answered; nothing where somebody has, or the one whose turn it is was not asked yet.
fn failed<'a>(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    subject: &Subject<'a>,
    silent: Silence<'_>,
    note: &mut Note,
) -> Option<Found<'a>> {
    let Silence { facts, question, period, handled } = silent;
    let answers = |other: &CardQuestion| facts.get(other).is_some_and(|fact| fact.value.is_ok());
    if subject.asked.iter().any(answers) {
        return None;
    }
    let fact = facts.get(question)?;
    let error = fact.value.as_ref().err()?.clone();
    let lost = silence(cx, card, fact.failures, period, note);
    Some(Found::Failed { workload: subject.workload, protocol: subject.protocol.clone(), error, lost, handled })
}
