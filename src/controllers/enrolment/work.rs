//! One existing workload: what is written on it, what is remembered of it, and what becomes of its Pods; pure.
//!
//! In: the workload in its surroundings. Out: operations, when to look again, and the note for later plans. Promises: a write that is
//! refused is not sent again at once; Pods are replaced one at a time, and not again while that makes nothing better.

use std::time::Duration;

use serde_json::{Value, json};

use super::adopt::disown;
use super::contest::{self, Contest};
use super::fields::Fields;
use super::judge::{CONFIG_MAPS, Judgement, Step, Subject, Wait, judge, may_pass, remedy};
use super::labelled;
use super::plan::SOON;
use super::pods::Tally;
use super::sandbox::{self, Restart};
use super::wave::{self, Rolling};
use super::{status, verdict, whole};
use crate::config::schema::Repair;
use crate::controllers::enrolment::note::{Eviction, Note};
use crate::controllers::looks;
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{Key, Kind, Rollout};

/// How long a short wait may last before people are told of it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often what waits for others is looked at again, should nobody wake it.
const LATER: Duration = Duration::from_secs(30);
/// How long a refused write is not tried again, unless the object changes.
const REFUSED: Duration = Duration::from_secs(60);
/// The same when it does.
const REFUSED_CHANGED: Duration = Duration::from_secs(5);
/// Failures in a row that people are told of (case 51).
const FAILURES: u32 = 5;
/// Pause between two evictions.
const EVICTION: Duration = Duration::from_secs(2);

/// What there is to do about an existing workload.
pub(super) struct Work {
    /// What was found.
    pub(super) judgement: Option<Judgement>,
    /// What is to be written, in order.
    pub(super) ops: Vec<Op>,
    /// What people are told about it, once nothing is to be written.
    pub(super) news: Vec<Op>,
    /// When it is to be looked at again.
    pub(super) again: Option<Duration>,
    /// What later plans are told.
    pub(super) note: Note,
    /// Nothing of an AgentRuntime's enrolment stands on it, or none of it can be taken away.
    pub(super) is_released: bool,
    /// It waits for something that comes in a moment: not worth a status.
    pub(super) is_quiet: bool,
    /// A write has failed repeatedly.
    pub(super) trouble: Option<String>,
    /// What its namespace lacks, although it was to be made.
    pub(super) lacking: Option<String>,
    /// A restart made nothing better.
    pub(super) in_vain: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            judgement: None,
            ops: Vec::new(),
            news: Vec::new(),
            again: None,
            note: Note::default(),
            is_released: true,
            is_quiet: false,
            trouble: None,
            lacking: None,
            in_vain: false,
        }
    }
}

impl Work {
    /// What there is to do about that workload now.
    pub(super) fn on(subject: Subject<'_>) -> Self {
        let mut judgement = judge(&subject);
        let standing = &judgement.standing;
        // What a label on the workload keeps there is nobody else's to wait for.
        let kept = subject.label_type().is_some();
        let is_released = !if kept { standing.is_of_runtime() } else { standing.is_enrolment() };
        let mut work = Self { is_released, ..Self::default() };
        let known = subject.note().cloned().unwrap_or_default();
        work.note.settled = known.settled;
        let trouble = subject.cx.memory.trouble(&subject.item());
        let mut left = None;
        match contest::look_back(&subject, &judgement, trouble.is_some()) {
            Contest::None(taken) => work.note.taken = taken,
            Contest::Left(taken, message, rest) => {
                work.note.taken = Some(taken);
                work.again = Some(rest);
                judgement.step = Step::Refused { reason: Reason::FieldsContested, message };
            }
            Contest::Marked(taken, rest) => {
                work.note.taken = Some(taken);
                left = Some(rest);
            }
        }
        let write = write_of(&subject, &judgement, left.is_some());
        let sends = !write.is_empty();
        let same = trouble.is_some_and(|trouble| write.contains(&trouble.op));
        let pause = if same { REFUSED } else { REFUSED_CHANGED };
        // That Pods would be refused says nothing of taking away what stands.
        let is_of_pods = |op: &Op| judgement.step == Step::Release && matches!(op, Op::Apply { check: Some(_), .. });
        let refused = trouble.filter(|trouble| trouble.refused.is_some() && !is_of_pods(&trouble.op));
        let refused = refused.filter(|trouble| subject.cx.now.saturating_sub(trouble.at) < pause);
        if let (Some((reason, message)), false) =
            (refused.and_then(|trouble| Some((trouble.refused?, trouble.message.clone()))), !sends)
        {
            // What stands for ever because it cannot be taken away must not hold the AgentRuntime's deletion up.
            work.is_released |= judgement.step == Step::Release && !may_pass(reason, &message);
            judgement.step = Step::Refused { reason, message: format!("{message}. {}", remedy(reason)) };
            work.again = Some(pause);
        } else {
            work.ops = write;
        }
        work.look_around(&subject, &mut judgement, known.held);
        let sends = work.bring_back(&subject, &judgement, trouble) || sends;
        work.trouble = trouble
            .filter(|trouble| sends && trouble.refused.is_none() && trouble.times >= FAILURES)
            .map(|trouble| trouble.message.clone());
        work.hold(&subject, &judgement);
        if let Some(rest) = left {
            work.look_within(rest);
        }
        work.leave(&subject, &judgement, known.leaves);
        work.enter(&subject, &judgement);
        work.clock(&subject, &judgement, known.rolls);
        work.news.extend(labelled_news(&subject, &judgement, work.trouble.as_deref()));
        work.judgement = Some(judgement);
        work
    }

    /// Those that leave by a change of the settings count among those that roll, too: nothing on them says so any more. One that exceeded its
    /// deadline is its user's matter, and keeps no place: others would have to go on with their sidecars for it.
    fn leave(&mut self, subject: &Subject<'_>, judgement: &Judgement, leaves: bool) {
        let seen = subject.workload.seen;
        let begins = judgement.step == Step::Release && labelled::is_of_fleet(subject, &judgement.standing);
        let is_under_way = !seen.rollout.is_complete() && !wave::has_failed(seen);
        let goes_on = leaves && judgement.standing.is_empty() && is_under_way;
        self.note.leaves = wave::rolls_by_itself(seen) && (begins || goes_on);
        self.note.rolling |= self.note.leaves;
    }

    /// The note of this plan, and what follows from Pods.
    fn look_around(&mut self, subject: &Subject<'_>, judgement: &mut Judgement, held: Option<Duration>) {
        let (seen, now) = (subject.workload.seen, subject.cx.now);
        let rolling = wave::rolling(seen);
        let failed = rolling == Rolling::Failed && judgement.standing.hash() == judgement.wanted.as_deref();
        // What the status says from before it saw the template is about that rollout, unless this one was known to fail.
        let stale = failed && !wave::has_failed(seen) && !subject.note().is_some_and(|note| note.failed);
        self.note.failed = failed && !stale;
        self.note.rolling =
            rolling == Rolling::Yes || stale || matches!(judgement.step, Step::Apply { wave: true, .. });
        match &judgement.step {
            Step::Wait(Wait::Configuration | Wait::ServiceAccount(_) | Wait::ConfigMaps) => {
                let since = held.unwrap_or(now);
                self.note.held = Some(since);
                self.is_quiet = now.saturating_sub(since) < PATIENCE;
                let waited = now.saturating_sub(since);
                let given_up = CONFIG_MAPS.saturating_sub(waited).max(SOON);
                self.again = Some(match &judgement.step {
                    _ if self.is_quiet => SOON,
                    Step::Wait(Wait::ConfigMaps) => given_up,
                    _ => LATER,
                });
            }
            Step::Wait(Wait::Spread | Wait::Turn { .. } | Wait::Halted(_)) => {
                self.note.waits = true;
                // The status that says so hides that it was edited.
                self.note.edited = subject.is_edited();
                self.again = Some(LATER);
            }
            // Written under this configuration of the fleet: what changes from now on is this workload's own.
            Step::Apply { fields, .. } if fields.hash() == judgement.wanted.as_deref() => {
                self.note.settled = Some(subject.cx.memory.epoch);
            }
            Step::Settled => {
                self.note.settled = Some(subject.cx.memory.epoch);
                self.note.evicted = subject.note().and_then(|note| note.evicted.clone());
                let Some(tally) = judgement.wanted.as_deref().map(|wanted| subject.tally(wanted)) else { return };
                self.restart(subject, &tally, judgement, held);
                self.drift(subject, &tally, judgement);
                self.look_away(subject, held);
                self.lack(subject, judgement.wanted.as_deref().unwrap_or(keys::HASH_OF_NOTHING));
            }
            _ => {}
        }
    }

    /// It is looked at again in that time, or earlier.
    fn look_within(&mut self, time: Duration) {
        self.again = Some(self.again.map_or(time, |again| again.min(time)));
    }

    /// A restart of ours that is under way goes on, whatever has become of the enrolment meanwhile: nobody else gives a Sandbox its replicas
    /// back. Whether that is written now. What is to be written on the Sandbox comes before it, unless that fails each time; and a write of the
    /// replicas that came to nothing holds nothing else up.
    fn bring_back(&mut self, subject: &Subject<'_>, judgement: &Judgement, trouble: Option<&Trouble>) -> bool {
        let fails = trouble.is_some_and(|trouble| trouble.times >= FAILURES);
        let is_stuck = fails && matches!(judgement.step, Step::Apply { .. });
        if !self.ops.is_empty() && !is_stuck {
            return false;
        }
        let failed = trouble.filter(|trouble| matches!(trouble.op, Op::Merge { kind: Kind::Sandbox, .. }));
        let waited = failed.map(|trouble| subject.cx.now.saturating_sub(trouble.at));
        match sandbox::under_way(subject) {
            Some(Restart::Back(_)) if waited.is_some_and(|waited| waited < REFUSED_CHANGED) => {
                self.look_within(REFUSED_CHANGED);
                false
            }
            Some(Restart::Back(ops)) => {
                drop(self.ops.splice(..0, ops));
                true
            }
            Some(Restart::Wait(time)) => {
                self.look_within(time);
                false
            }
            _ => false,
        }
    }

    /// What was put back after a pause may be taken again at once: people are told that it stands when it has stood for a moment.
    fn hold(&mut self, subject: &Subject<'_>, judgement: &Judgement) {
        let contested = self.note.taken.as_ref().filter(|taken| taken.times >= contest::MOST);
        let Some(taken) = contested.filter(|_| judgement.step == Step::Settled) else { return };
        let rest = PATIENCE.saturating_sub(subject.cx.now.saturating_sub(taken.at));
        if !rest.is_zero() {
            self.is_quiet = true;
            self.look_within(rest);
        }
    }

    /// Whether its Pods are replaced for the first time.
    fn enter(&mut self, subject: &Subject<'_>, judgement: &Judgement) {
        let begins = matches!(&judgement.step, Step::Apply { fields, .. } if wave::is_entry(fields.rolled()));
        self.note.enters = begins || wave::enters(subject.workload.seen);
    }

    /// Since when it rolls. What takes long keeps others waiting, and only Deployments say by themselves that they are stuck.
    fn clock(&mut self, subject: &Subject<'_>, judgement: &Judgement, since: Option<Duration>) {
        if !self.note.rolling && !self.note.enters {
            return;
        }
        let begins =
            matches!(&judgement.step, Step::Apply { fields, wave } if *wave || wave::is_entry(fields.rolled()));
        let (now, anew) = (subject.cx.now, begins);
        let since = since.filter(|_| !anew).unwrap_or(now);
        let rest = wave::SLOW.saturating_sub(now.saturating_sub(since));
        self.note.rolls = Some(since);
        self.note.slow = rest.is_zero() && self.note.rolling;
        self.note.enters &= !rest.is_zero();
        if !rest.is_zero() {
            self.again = Some(self.again.unwrap_or(rest).min(rest));
        }
    }

    /// Somebody's annotation on a Deployment counts as a generation, which its controller has not seen for a moment: not worth
    /// saying that Pods are being replaced.
    fn look_away(&mut self, subject: &Subject<'_>, held: Option<Duration>) {
        let (rollout, now) = (subject.workload.seen.rollout, subject.cx.now);
        // Others do not say which generation they have seen.
        let says = [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
        if !says.contains(&subject.workload.seen.kind) {
            return;
        }
        let reason = match (Rollout { observed: rollout.generation, ..rollout }, rollout.deadline_exceeded) {
            (_, true) => Reason::ProgressDeadlineExceeded,
            (seen, false) if seen.is_complete() => Reason::RolloutComplete,
            _ => return,
        };
        let told = |winner| status::says_over(&winner, subject.workload.seen, reason);
        if !rollout.is_observed() && subject.workload.winner.is_some_and(told) {
            let since = held.unwrap_or(now);
            let waited = now.saturating_sub(since);
            self.note.held = Some(since);
            self.is_quiet = waited < PATIENCE;
            self.again = self.is_quiet.then(|| PATIENCE.saturating_sub(waited));
        }
    }

    /// ConfigMaps that have not come, for whatever reason the server gave: said, and looked at again until they have.
    fn lack(&mut self, subject: &Subject<'_>, wanted: &str) {
        let (cx, missing) = (&subject.cx, subject.lacking());
        if missing.is_empty() || wanted == keys::HASH_OF_NOTHING {
            return;
        }
        let since = subject.note().and_then(|note| note.lacks).unwrap_or(cx.now);
        self.note.lacks = Some(since);
        let waited = cx.now.saturating_sub(since);
        if waited < CONFIG_MAPS {
            self.again = Some(self.again.unwrap_or(LATER).min(CONFIG_MAPS.saturating_sub(waited)));
            return;
        }
        self.again = Some(self.again.unwrap_or(LATER).min(LATER));
        let why = looks::failure_of_config_maps(cx.memory, subject.namespace())
            .map(|trouble| format!(": {}", trouble.message))
            .unwrap_or_default();
        let list = missing.join(", ");
        self.lacking =
            Some(format!("ConfigMaps that its Pods refer to could not be made in this namespace ({list}){why}"));
    }

    fn restart(&mut self, subject: &Subject<'_>, tally: &Tally<'_>, judgement: &Judgement, held: Option<Duration>) {
        match sandbox::restart(subject, tally, judgement) {
            Restart::No => {
                let is_good = tally.configured > 0 && tally.configured == tally.running();
                if is_good && subject.workload.seen.kind == WorkloadKind::Sandbox {
                    self.note.evicted = None;
                }
            }
            Restart::Go(op) => {
                let (hash, rolled) = (judgement.standing.hash(), judgement.standing.rolled());
                self.note.rolling |= rolled.is_some() && rolled == hash;
                self.note.evicted =
                    Some(Eviction { youngest: tally.youngest().unwrap_or_default(), at: subject.cx.now });
                self.ops.push(op);
            }
            Restart::Back(ops) => self.ops.extend(ops),
            Restart::Wait(time) => {
                self.note.held = held.or(Some(subject.cx.now));
                self.again = Some(time);
            }
            Restart::Vain(time) => {
                self.in_vain = true;
                self.again = Some(time);
            }
        }
    }

    /// Pods that nothing will replace: reported, and evicted if that is wanted.
    fn drift(&mut self, subject: &Subject<'_>, tally: &Tally<'_>, judgement: &Judgement) {
        let (seen, cx) = (subject.workload.seen, &subject.cx);
        let over = match seen.kind {
            WorkloadKind::CronJob => false,
            WorkloadKind::Sandbox => self.in_vain || !sandbox::is_ours_to_restart(subject, judgement),
            _ => seen.rollout.is_complete(),
        };
        if !over {
            return;
        }
        (self.note.unprotected, self.note.outdated) =
            (tally.unprotected.len() + tally.unlabelled, tally.outdated.len());
        let Some((reason, message)) = verdict::drift(tally) else {
            self.note.evicted = None;
            return;
        };
        if subject.workload.winner.is_none() {
            self.news.push(report(subject, reason, message));
        }
        // What a partition holds is held by a person, and a Sandbox is restarted instead.
        let may = wave::rolls(seen) && seen.rollout.held == 0 && seen.kind != WorkloadKind::Sandbox;
        if cx.facts.platform.repair() != Repair::Evict || !may {
            return;
        }
        self.evict(subject, tally);
    }

    /// Evicts one Pod, so that its controller makes a better one. When those that were made since the last eviction are no
    /// better, nobody injects at present, and another eviction would only harm: it waits.
    fn evict(&mut self, subject: &Subject<'_>, tally: &Tally<'_>) {
        let cx = &subject.cx;
        if let Some(rest) = self.note.evicted.as_ref().and_then(|last| tally.in_vain(last, cx.now)) {
            self.again = Some(rest);
            return;
        }
        self.again = Some(EVICTION);
        let memory = &cx.own.memory;
        let recent = memory.evicted.is_some_and(|at| cx.now.saturating_sub(at) < EVICTION);
        if recent || memory.evicts_besides(cx.key) || memory.is_blocked(cx.key, cx.now) || tally.ending > 0 {
            return;
        }
        let oldest = tally.drifted().min_by_key(|pod| (&pod.seen.created, pod.name));
        self.ops.extend(
            oldest.map(|pod| Op::Evict { key: Key::new(subject.namespace(), pod.name), uid: pod.uid.to_owned() }),
        );
        // It counts once it was answered: what a budget forbids has replaced nothing.
        self.note.asked = tally.youngest().map(|youngest| Eviction { youngest, at: cx.now });
        self.note.evicting = oldest.is_some();
    }
}

/// Takes off what `kubectl rollout undo` has brought back from a ReplicaSet of the time of an enrolment: it is nobody's.
fn copy_left(subject: &Subject<'_>, standing: &Fields) -> Option<Op> {
    let workload = &subject.workload;
    let there = workload.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_some();
    if !there || !standing.is_empty() || workload.is_governed() || subject.label_type().is_some() {
        return None;
    }
    let annotations = json!({keys::ANNOTATION_ROLLED_FOR: Value::Null});
    let version = workload.version.to_string();
    let patch = json!({"metadata": {"uid": workload.uid, "resourceVersion": version, "annotations": annotations}});
    Some(Op::Merge { kind: workload.kind, key: Key::new(subject.namespace(), workload.name), patch })
}

/// What its user is told about a label, on the workload or on its template, that could not do what it is for: there is no AgentRuntime to say it.
fn labelled_news(subject: &Subject<'_>, judgement: &Judgement, trouble: Option<&str>) -> Option<Op> {
    let (is_labelled, is_rolled) = (subject.label_type().is_some(), judgement.wanted.is_some());
    if subject.workload.winner.is_some() || !(is_labelled || is_rolled) {
        return None;
    }
    let (reason, message) = match (&judgement.step, trouble) {
        (Step::Refused { reason, message }, _) => (*reason, message.clone()),
        (_, Some(trouble)) => (Reason::ConfigApplyError, trouble.to_owned()),
        _ => return None,
    };
    let message = if is_labelled && !judgement.standing.is_enrolment() {
        format!("label {} on the workload has no effect: {message}", keys::LABEL_TYPE)
    } else {
        let (kind, name) = (subject.workload.kind.as_str(), subject.workload.name);
        format!("{kind} {name} stays as it is, and is not rolled to the present configuration: {message}")
    };
    Some(report(subject, reason, message))
}

fn report(subject: &Subject<'_>, reason: Reason, message: String) -> Op {
    let about = Key::new(subject.namespace(), subject.workload.name);
    let (kind, uid) = (subject.workload.kind, subject.workload.uid.to_owned());
    Op::Report(Report { kind, about, uid, reason, message, since: String::new() })
}

/// The writes on the workload that follow from the judgement. `left`: what the Go operator puts back each time is left for now.
fn write_of(subject: &Subject<'_>, judgement: &Judgement, left: bool) -> Vec<Op> {
    let (workload, namespace) = (&subject.workload, subject.namespace());
    let apply = |fields: &Fields| Op::Apply {
        kind: workload.kind,
        key: Key::new(namespace, workload.name),
        body: fields.body(namespace, workload),
        seen: workload.version,
        check: whole::check(subject, judgement, fields),
    };
    let taken_over = || workload.winner.filter(|_| !left).and_then(|_| disown(namespace, workload)).into_iter();
    match &judgement.step {
        Step::Apply { fields, .. } => taken_over().chain([apply(fields)]).collect(),
        Step::Settled => taken_over().chain(copy_left(subject, &judgement.standing)).collect(),
        Step::Release => {
            let back = if sandbox::pending(subject) { sandbox::come_back(subject) } else { Vec::new() };
            let rest = disown(namespace, workload).into_iter().chain([apply(&Fields::default())]);
            back.into_iter().chain(rest).collect()
        }
        Step::Wait(_) | Step::Refused { .. } => Vec::new(),
    }
}
