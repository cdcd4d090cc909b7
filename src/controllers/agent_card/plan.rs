//! What to do about one AgentCard.
//!
//! In: the card, its workload, Service and Pods, and the answers that are there. Out: the status, where it is another than the stored one, and
//! whom to ask next. Promises: one Pod is asked per period, in turn; nothing is asked of a workload that says that it cannot serve; an answer
//! of a Pod that is gone counts no more; what was asked by a person is asked once.

use std::time::Duration;

use serde_json::Value;

use super::question::{CardQuestion, Fetched};
use super::signed::{awaits_authority, is_unread};
use super::status::{Found, Reach, update};
use super::subject::{Hindrance, Subject, subject, wins};
use super::trust::{Conclusion, Judged, Source, is_past, is_settling, judged, no_longer, outdated, silence, unaskable};
use super::turn::Turn;
use crate::controllers::agent_card::memory::{Asked, Cards, Context, Plan};
use crate::controllers::agent_card::note::Note;
use crate::controllers::looks;
use crate::controllers::scaffold::lane::{Ask, Fact, Facts};
use crate::controllers::scaffold::plan::{AskingRow, Name};
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::period;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::CardRef;
use crate::store::{CardTarget, Key, Kind, Store};

/// The controller's name.
pub const NAME: Name = looks::AGENT_CARD;

/// The controller's row. Its items are AgentCards.
pub const ROW: AskingRow<CardQuestion, Cards> =
    AskingRow { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

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
const KINDS: [WorkloadKind; 4] = trust::KINDS;

fn keys_of(store: &Store, namespace: &str, target: &CardTarget) -> Vec<Key> {
    store.agent_cards_of(namespace, target).map(|card| Key::new(namespace, card.name)).collect()
}

fn of_workload(store: &Store, namespace: &str, kind: WorkloadKind, name: &str) -> Vec<Key> {
    keys_of(store, namespace, &CardTarget::of_workload(kind, name))
}

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::Namespace => of_namespace(store, name),
        // Of several cards of one workload one counts.
        Kind::AgentCard => match store.agent_card(namespace, name).and_then(|card| card.seen.spec.target.as_ref()) {
            Some(target) => keys_of(store, namespace, target),
            None => vec![key.clone()],
        },
        Kind::SignedCard => {
            let workload = name.strip_suffix(keys::SUFFIX_SIGNED_CARD).unwrap_or_default();
            KINDS.into_iter().flat_map(|kind| of_workload(store, namespace, kind, workload)).collect()
        }
        // It may open who is cut off.
        Kind::NetworkPolicy => {
            let is_ours = store.network_policy(namespace, name).is_some_and(|policy| policy.seen.is_ours());
            let is_of_agent = is_ours && name.ends_with(keys::SUFFIX_SIGNATURE_POLICY);
            if is_of_agent { Vec::new() } else { of_namespace(store, namespace) }
        }
        Kind::Service => KINDS.into_iter().flat_map(|kind| of_workload(store, namespace, kind, name)).collect(),
        Kind::Pod => {
            let controller = store.pod(namespace, name).and_then(|pod| pod.seen.controller.as_deref());
            let root = controller.and_then(|controller| store.root_of(namespace, controller));
            root.map(|root| of_workload(store, namespace, root.seen.kind, root.name)).unwrap_or_default()
        }
        kind => match (kind.workload(), store.workload(kind, namespace, name)) {
            (None, _) => Vec::new(),
            (Some(_), Some(workload)) if !workload.is_root() => {
                let root = workload.seen.controller.as_deref().and_then(|owner| store.root_of(namespace, owner));
                root.map(|root| of_workload(store, namespace, root.seen.kind, root.name)).unwrap_or_default()
            }
            (Some(kind), _) => of_workload(store, namespace, kind, name),
        },
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.agent_cards(namespace).map(|card| Key::new(namespace, card.name)).collect()
}

fn plan(cx: Context<'_>, facts: &Facts<CardQuestion>) -> Asked {
    let nothing = (Plan::nothing(), Vec::new());
    let Some(card) = cx.store.agent_card(&cx.key.namespace, &cx.key.name) else { return nothing };
    // A namespace that is not served, or goes, is none of ours.
    let here =
        cx.store.namespace(&cx.key.namespace).is_some() && cx.facts.snapshot.namespace(&cx.key.namespace).is_some();
    if card.seen.deleting || !here {
        return nothing;
    }
    if let Some(over) = card.seen.over.filter(|_| card.seen.is_one_too_many()) {
        let message = format!(
            "this AgentCard {}: its agent is not asked for its card and counts as unverified. Delete AgentCards that are not needed",
            over.sentence()
        );
        let lost = no_longer(&card, Reason::WorkloadError, &message);
        let found = Found::Hindered { hindrance: Hindrance::new(Reason::WorkloadError, message), lost };
        return (Plan::of(update(&cx, &card, &found, None)), Vec::new());
    }
    let same = card.seen.spec.target.iter().flat_map(|target| cx.store.agent_cards_of(&cx.key.namespace, target));
    if let Err(winner) = wins(&card, same) {
        let message = format!("AgentCard {winner} is of the same workload, and that one counts; delete one of them");
        let lost = no_longer(&card, Reason::DuplicateCard, &message);
        let found = Found::Hindered { hindrance: Hindrance::new(Reason::DuplicateCard, message), lost };
        return (Plan::of(update(&cx, &card, &found, None)), Vec::new());
    }
    match subject(&cx, &card) {
        None => nothing,
        Some(Err(hindrance)) => (hindered(&cx, &card, hindrance), Vec::new()),
        Some(Ok(subject)) => of_subject(&cx, &card, &subject, facts),
    }
}

/// Nobody can be asked: what was believed is believed for as long as of an agent that does not answer.
fn hindered<'a>(cx: &Context<'_>, card: &CardRef<'a>, hindrance: Box<Hindrance<'a>>) -> Plan {
    let Note { awaiting, failing, unanswered, unasked, open, first, leaf, .. } = before(cx);
    let mut note = Note { awaiting, failing, unanswered, unasked, open, first, leaf, ..Note::default() };
    let why = (hindrance.reason, &*hindrance.message);
    let (lost, again) = match hindrance.workload.as_ref().and_then(|workload| outdated(card, workload, why)) {
        Some(lost) => (lost, None),
        None => unaskable(cx, card, &hindrance.message, period_of(cx, card), &mut note),
    };
    Plan { ops: update(cx, card, &Found::Hindered { hindrance, lost }, None), again, note }
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
    if cards.bundle.any() || cards.proof.is_some() { period.min(JUDGED) } else { period }
}

fn of_subject(cx: &Context<'_>, card: &CardRef<'_>, subject: &Subject<'_>, facts: &Facts<CardQuestion>) -> Asked {
    let period = period_of(cx, card);
    let turn = Turn::at(cx.now, card.uid, period);
    let question = whose_turn(subject, facts, turn);
    let last = question.and_then(|question| facts.get(question));
    let mut note = noted(cx, card, last.map(|fact| fact.asked));
    let wished = note.refresh.as_ref().is_some_and(|(_, wanted)| *wanted <= cx.now);
    let first = *note.first.get_or_insert_with(|| first_look(cx, card, subject, facts, turn));
    if cx.now < first && !wished {
        return (Plan { again: Some((first - cx.now).max(SOON)), note, ..Plan::nothing() }, Vec::new());
    }
    let ask = question.map(|question| due(cx, question, turn.since, facts, &note));
    let signed = subject.signed.as_ref().map(|signed| {
        // Its content is another when its version is: it is read again for the time and the authorities, soon where only these are missing.
        let soon = is_settling(card) || awaits_authority(facts, signed);
        let period = if soon { period } else { period.max(JUDGED) };
        due(cx, signed, Turn::at(cx.now, card.uid, period).since, facts, &note)
    });
    let answered = [&ask, &signed].into_iter().flatten().any(|ask| {
        let wanted = note.refresh.as_ref().map(|(_, wanted)| *wanted);
        facts.fresh(ask).is_some_and(|fact| wanted.is_some_and(|wanted| wanted <= fact.asked && wanted <= cx.now))
    });
    let handled = note.refresh.as_ref().filter(|_| answered).map(|(value, _)| value.clone());
    let unread = signed.as_ref().is_some_and(|signed| facts.get(&signed.question).is_none());
    let ops = if unread && is_unread(cx.now, &mut note) {
        // Whether it counts decides about everything else.
        Vec::new()
    } else {
        let past = is_past(cx, subject, facts, period, &mut note);
        let Conclusion { judged, drift } = judged(cx, card, (subject, period), facts, &mut note);
        let counts = |found: &Judged| !past || found.source == Source::ConfigMap || found.is_refused();
        let found = match judged.filter(counts) {
            Some(found) => {
                note.failing = None;
                Some(of_card(subject, found, reach(subject, facts, question), handled))
            }
            None => failed(cx, card, subject, Silence { facts, question, period, past, handled }, &mut note),
        };
        found.map(|found| update(cx, card, &found, drift.as_ref())).unwrap_or_default()
    };
    // What others of its Pods said last is kept while they can be asked.
    let others = subject.asked.iter().filter(|other| Some(*other) != question && facts.get(other).is_some());
    let others = others.map(|other| Ask { question: other.clone(), since: Duration::ZERO });
    let next = next_look(cx, turn, last, &note);
    let asks = ask.into_iter().chain(signed).chain(others).collect();
    (Plan { ops, again: Some(next), note }, asks)
}

/// Who is asked: one Pod per period, in turn; at once the first of a revision of which nothing is known yet.
fn whose_turn<'s>(subject: &'s Subject<'_>, facts: &Facts<CardQuestion>, turn: Turn) -> Option<&'s CardQuestion> {
    let known = |question: &&CardQuestion| facts.get(question).is_some();
    let is_new = subject.asked.iter().any(|one| known(&one))
        && !subject.asked.iter().take(subject.newest).any(|one| known(&one));
    if is_new {
        return subject.asked.first();
    }
    let pods = u64::try_from(subject.asked.len()).unwrap_or(u64::MAX).max(1);
    subject.asked.get(usize::try_from(turn.number % pods).unwrap_or_default())
}

/// When an agent is asked for the first time in this term: at once, unless what is known of it is of the term before. All of these at once would be a
/// herd, so each waits for its own turn.
fn first_look(
    cx: &Context<'_>,
    card: &CardRef<'_>,
    subject: &Subject<'_>,
    facts: &Facts<CardQuestion>,
    turn: Turn,
) -> Duration {
    let status = &card.seen.status;
    let is_known = status.get("observedGeneration").and_then(Value::as_i64) == Some(card.seen.generation)
        && status.get("targetUID").and_then(Value::as_str) == Some(subject.workload.uid);
    let is_asked = subject.asked.iter().chain(&subject.signed).any(|question| facts.get(question).is_some());
    if is_known && !is_asked { turn.next } else { cx.now }
}

/// The question, and since when an answer is too old: the turn, a minute behind a failure, a person's wish.
fn due(
    cx: &Context<'_>,
    question: &CardQuestion,
    turn: Duration,
    facts: &Facts<CardQuestion>,
    note: &Note,
) -> Ask<CardQuestion> {
    let mut since = turn;
    if let Some(failed) = facts.get(question).filter(|fact| fact.value.is_err() && cx.now >= fact.at + AGAIN) {
        since = since.max(failed.at + AGAIN);
    }
    if let Some((_, wanted)) = note.refresh.as_ref().filter(|(_, wanted)| *wanted <= cx.now) {
        since = since.max(*wanted);
    }
    Ask { question: question.clone(), since }
}

/// Time until the next look.
fn next_look(cx: &Context<'_>, turn: Turn, last: Option<&Fact<Fetched>>, note: &Note) -> Duration {
    let mut next = turn.next;
    if let Some(failed) = last.filter(|fact| fact.value.is_err() && fact.at + AGAIN > cx.now) {
        next = next.min(failed.at + AGAIN);
    }
    if let Some((_, wanted)) = note.refresh.as_ref().filter(|(_, wanted)| *wanted > cx.now) {
        next = next.min(*wanted);
    }
    next.saturating_sub(cx.now).max(SOON)
}

/// Whether the agent answers.
fn reach(subject: &Subject<'_>, facts: &Facts<CardQuestion>, question: Option<&CardQuestion>) -> Reach {
    if subject.asked.iter().any(|one| facts.get(one).is_some_and(|fact| fact.value.is_ok())) {
        return Reach::Answers;
    }
    if let Some(hindrance) = &subject.hindrance {
        return Reach::Unready(hindrance.reason, hindrance.message.clone());
    }
    let failed = question.and_then(|question| facts.get(question)?.value.as_ref().err());
    failed.map_or(Reach::Open, |error| Reach::Fails(error.clone()))
}

/// What the plan before has left.
fn before(cx: &Context<'_>) -> Note {
    cx.note().cloned().unwrap_or_default()
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
    let Note { settling, awaiting, open, failing, unanswered, unasked, first, leaf, .. } = before;
    Note { refresh, settling, awaiting, open, failing, unanswered, unasked, first, leaf, ..Note::default() }
}

fn of_card<'a>(subject: &Subject<'a>, found: Judged, reach: Reach, handled: Option<Box<str>>) -> Found<'a> {
    let (workload, protocol) = (subject.workload, subject.protocol.clone());
    let Judged { judgement, published, covered, source } = found;
    let (judgement, unproved) = (Box::new(judgement), subject.unproved);
    Found::Card { workload, protocol, published, covered, source, reach, judgement, unproved, handled }
}

/// Nobody has answered.
struct Silence<'q> {
    facts: &'q Facts<CardQuestion>,
    /// Whose turn it is; none where no Pod can be asked.
    question: Option<&'q CardQuestion>,
    period: Duration,
    /// For so long that what was answered before counts no more.
    past: bool,
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
    let Silence { facts, question, period, past, handled } = silent;
    let answers = |other: &CardQuestion| facts.get(other).is_some_and(|fact| fact.value.is_ok());
    if !past && subject.asked.iter().any(answers) {
        return None;
    }
    if let Some(hindrance) = &subject.hindrance {
        let lost = outdated(card, &subject.workload, (hindrance.reason, &*hindrance.message));
        let lost = lost.unwrap_or_else(|| unaskable(cx, card, &hindrance.message, period, note).0);
        return Some(Found::Hindered { hindrance: hindrance.clone(), lost });
    }
    let fact = facts.get(question?)?;
    let error = fact.value.as_ref().err()?.clone();
    let lost = outdated(card, &subject.workload, (error.reason, &*error.message));
    let lost = lost.unwrap_or_else(|| silence(cx, card, fact, period, note));
    Some(Found::Failed { workload: subject.workload, protocol: subject.protocol.clone(), error, lost, handled })
}
