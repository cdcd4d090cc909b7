//! One Agent: what is written for it, in which order, and what is said about it.
//!
//! In: the store's view of an Agent and of what has its name, the snapshot. Out: operations, in an order in which the
//! first failure leaves nothing half done: finalizer before anything that outlives the Agent, account and Service before
//! the Deployment whose Pods need them. Promises: nothing is sent that stands already; what somebody else takes back
//! every time is given up and said; what Pods read at their start is written when their template is; deletion waits for
//! nothing.

use std::time::Duration;

use serde_json::json;

use super::claim::{Claim, Claims};
use super::face::{Face, KAGENTI, Leaves};
use super::image::Image;
use super::mark;
use super::status::Verdict;
use super::subject::Subject;
use super::turns::{Turn, goes_on, is_marked, turn};
use super::wanted::{Own, Standing, Wanted};
use crate::api::findings::{Fault, Findings};
use crate::controllers::agent::memory::{Agents, Context, Plan};
use crate::controllers::agent::note::Note;
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{Name, Op, Report, Row, UNMADE};
use crate::domain::bounds::{LARGEST_KAOS, LARGEST_TEXT};
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{ClaimSeen, Key, Kind, OwnerReference, Store, WrittenBefore};

/// How often something short is looked at again.
const SOON: Duration = Duration::from_millis(100);
/// How often what waits for others is looked at again, should nobody wake it.
const LATER: Duration = Duration::from_secs(60);
/// How long a refused write is not tried again, unless something else is wanted.
const REFUSED: Duration = Duration::from_secs(300);
/// How long a Secret that does not consent is not asked again, unless something else is wanted: nobody tells when it does.
const UNUSABLE: Duration = Duration::from_secs(30);
/// How long what could not be read is not read again.
const UNREAD: Duration = Duration::from_secs(5);
/// Failures in a row that people are told of.
const FAILURES: u32 = 5;
/// The same of refusals by policies that have not heard of what they look for: it is said on the object, and nobody is called.
const UNHEARD: u32 = 3;

/// So many times in a row what was to be made was there already, and none of those that are watched: it is in the way. Within these tries, some
/// seconds, a watch that is late has delivered what we made ourselves.
pub(in crate::controllers::agent) const IN_THE_WAY: u32 = 8;

/// The controller's name.
pub const NAME: Name = Name::new("agent");

/// The controller's row. Its items are Agents.
pub const ROW: Row<Agents> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    match kind {
        Kind::AgentBuild => {
            let Key { namespace, name } = key;
            store.agents_of_build(namespace, name).map(|agent| Key::new(namespace, agent.name)).collect()
        }
        kind => concerned(store, (kind, key), &KAGENTI),
    }
}

/// The Agents of that face that a change of an object may concern.
pub(in crate::controllers::agent) fn concerned(store: &Store, (kind, key): (Kind, &Key), face: &Face) -> Vec<Key> {
    let Key { namespace, name } = key;
    let of_name = |name: &str| store.custom(face.kind, namespace, name).map(|agent| Key::new(namespace, agent.name));
    match kind {
        kind if kind == face.kind => vec![key.clone()],
        Kind::Deployment | Kind::Service | Kind::ServiceAccount => of_name(name).into_iter().collect(),
        Kind::AgentRuntime => {
            let runtime = store.agent_runtime(namespace, name);
            let target = runtime.and_then(|runtime| runtime.seen.target.clone());
            let target = target.filter(|target| target.kind == WorkloadKind::Deployment);
            target.and_then(|target| of_name(&target.name)).into_iter().collect()
        }
        Kind::Namespace => all(store, name, face),
        _ => Vec::new(),
    }
}

/// The Agents of that face in a namespace.
pub(in crate::controllers::agent) fn all(store: &Store, namespace: &str, face: &Face) -> Vec<Key> {
    store.customs(face.kind, namespace).map(|agent| Key::new(namespace, agent.name)).collect()
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    all(store, namespace, &KAGENTI)
}

fn plan(cx: Context<'_>) -> Plan {
    planned(cx, &KAGENTI)
}

/// What to do about one Agent of that face.
pub(in crate::controllers::agent) fn planned(cx: Context<'_>, face: &'static Face) -> Plan {
    let Some(subject) = Subject::of(cx, face) else { return Plan::nothing() };
    let claims = Claims::of(&subject);
    if subject.seen.deleting {
        return Plan::of(ending(&subject, &claims));
    }
    if !(face.is_served)(&cx.facts.snapshot.builds.settings) {
        return Plan::nothing();
    }
    if subject.is_paused() {
        return Plan::nothing();
    }
    let namespace = &cx.key.namespace;
    if cx.store.namespace(namespace).is_none() || cx.facts.snapshot.namespace(namespace).is_none() {
        // Nothing can be made in a namespace that goes; one that the snapshot does not know yet brings us back.
        return Plan::nothing();
    }
    if !subject.seen.carries(face.finalizer) && subject.seen.over.is_none() {
        return Plan::of(vec![mark::with_mark(finalizer(&subject, true), &subject)]);
    }
    let findings = judged(&subject);
    let image = (face.image)(&subject, &claims);
    let may_write = findings.faults.is_empty() && !(face.keeps)(&subject, &claims);
    let mut verdict =
        Verdict { image: &image, findings: &findings, claims: &claims, stop: None, wanted: None, waits: false };
    let mut work = match image.runs.as_deref().filter(|_| may_write) {
        Some(runs) => match Wanted::of(&subject, runs, &claims) {
            Ok(wanted) => Work::of(&subject, &claims, wanted, &image),
            Err(_) => return Plan::later(SOON),
        },
        None => Work::default(),
    };
    work.introduce(&subject);
    verdict.stop = work.stop.take();
    verdict.wanted = work.wanted.as_ref();
    verdict.waits = work.note.waits;
    let writes = work.ops.iter().any(|op| !matches!(op, Op::Report(_)));
    // A route that could not be written is tried again after everything else, and holds up no word about the rest.
    let stuck = subject.trouble().is_some_and(|trouble| is_route(&trouble.op));
    let is_silent = |op: &Op| matches!(op, Op::Report(_)) || (stuck && is_route(op));
    let changes = work.ops.iter().any(|op| !is_silent(op));
    let quiet = verdict.stop.is_none() && changes;
    let mut plan = Plan { ops: Vec::new(), again: work.again, note: work.note };
    // What is about to be written changes what there is to say; a stop is said before it is tried again.
    if !quiet {
        plan.ops.extend((face.status)(&subject, &verdict));
    }
    if writes {
        plan.again = Some(SOON);
    }
    plan.ops.append(&mut work.ops);
    match &subject.look {
        Some(look) => {
            plan.note.wiring = look.wiring;
            plan.again = plan.again.into_iter().chain(look.hold).min();
        }
        None if plan.again.is_none() && image.reason != Reason::ImageAvailable => plan.again = Some(LATER),
        None => {}
    }
    plan
}

/// What is wrong with the Agent, should no webhook have judged it, and what relaxes its lock-down.
fn judged(subject: &Subject<'_>) -> Findings {
    if let Some(over) = subject.seen.over {
        return Findings { faults: vec![Fault::over_of(over, largest(subject.face.kind))], ..Findings::default() };
    }
    (subject.face.judge)(subject)
}

/// The most that is read of one object of that kind, in bytes.
fn largest(kind: Kind) -> usize {
    match kind {
        Kind::KaosAgent | Kind::ModelApi | Kind::McpServer => LARGEST_KAOS,
        _ => LARGEST_TEXT,
    }
}

/// Why nothing more is written for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers::agent) struct Stop {
    pub(in crate::controllers::agent) reason: Reason,
    pub(in crate::controllers::agent) message: String,
    /// Until a person has changed something.
    pub(in crate::controllers::agent) stalled: bool,
}

/// What there is to write for an Agent whose image is known.
#[derive(Default)]
struct Work {
    ops: Vec<Op>,
    wanted: Option<Wanted>,
    stop: Option<Stop>,
    /// Fields that were applied and that somebody has taken since.
    contested: Vec<String>,
    note: Note,
    again: Option<Duration>,
}

impl Work {
    fn of(subject: &Subject<'_>, claims: &Claims<'_>, wanted: Wanted, image: &Image) -> Self {
        let mut work = Self::default();
        let mut conflicts =
            claims.conflicts((wanted.service.is_some(), subject.face.service_remedy), wanted.account.is_some());
        conflicts.extend(claims.mounted(subject, &wanted));
        if !conflicts.is_empty() {
            work.stop = Some(conflict(subject, &conflicts));
        }
        let blocked = conflicts.iter().any(|(kind, _)| *kind != Kind::Service);
        if !blocked {
            (work.note.rolling, work.note.failed) = goes_on(subject, &wanted);
            let left = (subject.face.leaves)(subject, &wanted);
            let leaves = left.how != Leaves::Written;
            work.note.compared = left.compared;
            let others = |last: bool| {
                let of = subject.others.iter().zip(&claims.others).filter_map(|(other, claim)| {
                    let own = wanted.others.iter().find(|own| own.kind == other.kind)?;
                    Some((Some(own), *claim, other.found.map(|(seen, _)| seen)))
                });
                of.filter(move |(own, ..)| own.is_some_and(|own| (own.kind == Kind::HttpRoute) == last))
            };
            let own = [
                (wanted.account.as_ref(), claims.account, account_claim(subject)),
                (wanted.service.as_ref(), claims.service, subject.service.map(|(seen, _)| &seen.claim)),
                (Some(&wanted.deployment).filter(|_| !leaves), claims.deployment, None),
            ];
            // What a Pod mounts before the Pod, a route once there is something to lead to.
            for (own, claim, seen) in others(false).chain(own).chain(others(true)) {
                let Some(own) = own else { continue };
                if stays((subject, claims), (&wanted, left.how), (own, claim, seen)) {
                    continue;
                }
                work.part(subject, (own, claim, seen), image);
            }
            if left.how == Leaves::Unread {
                work.read(subject);
            }
            work.superfluous(subject, claims, &wanted);
            work.remember(subject);
            work.asking(subject);
        }
        work.wanted = Some(wanted);
        work.held_back(subject);
        work
    }

    /// One object: applied when it is not as it should be.
    fn part(
        &mut self,
        subject: &Subject<'_>,
        (own, claim, seen): (&Own, Claim<'_>, Option<&ClaimSeen>),
        image: &Image,
    ) {
        let applied = match own.kind {
            Kind::Deployment => subject.own_deployment().map(|own| (own.applied.as_deref(), own.fields.as_deref())),
            _ => seen.map(|seen| (seen.applied.as_deref(), seen.fields.as_deref())),
        };
        let standing = match claim {
            Claim::Ours(_) => own.standing(applied.unwrap_or_default()),
            _ => Standing::Other,
        };
        match &standing {
            Standing::Stands => return,
            Standing::Other => {}
            Standing::Drifted(lost) => {
                let lost: Vec<_> = lost.iter().map(|path| format!("{} {path}", own.kind.as_str())).collect();
                let text = lost.join(", ");
                self.contested.extend(lost);
                // It was applied a moment ago, and is lost again.
                let note = subject.note();
                let known = note.and_then(|note| note.contested.as_deref());
                let sent = note.is_some_and(|note| note.sent.contains(&*own.digest));
                if sent || known.is_some_and(|known| known.contains(&text)) {
                    return;
                }
            }
        }
        let Some(mut op) = own.apply(claim) else { return };
        if own.kind == Kind::Deployment {
            let turn = if standing == Standing::Other { turn(subject) } else { Turn::Own };
            match turn {
                // A place that it had stays its own until these Pods are there.
                Turn::Own => self.note.rolling |= subject.note().is_some_and(|note| note.rolling),
                Turn::Now => self.note.rolling = true,
                Turn::Later => {
                    self.note.waits = true;
                    return;
                }
            }
            // What is taken back from somebody is the rollout that it was.
            let again = standing != Standing::Other && is_marked(subject);
            if (turn == Turn::Now && subject.look.is_some()) || again {
                let present = subject.deployment.map_or(0, |deployment| deployment.seen.rollout.generation);
                own.takes_its_turn(&mut op, present.saturating_add(1));
            }
        }
        let before = match own.kind {
            Kind::Deployment => subject.own_deployment().and_then(|own| own.written_before),
            _ => seen.and_then(|seen| seen.written_before),
        };
        self.ops.extend(taken_over(subject, own, (claim, before)));
        self.ops.push(op);
        self.note.sent.push_str(&own.digest);
        self.ops.extend(told(subject, own.kind, claim, image));
    }

    /// What an earlier operator wrote is read before it is judged; soon again, should nothing have come of that.
    fn read(&mut self, subject: &Subject<'_>) {
        let now = subject.cx.now;
        let before = subject.note().and_then(|note| note.read).filter(|at| now.saturating_sub(*at) < UNREAD);
        self.note.read = Some(before.unwrap_or(now));
        match before {
            Some(at) => self.again = Some(UNREAD.saturating_sub(now.saturating_sub(at))),
            None => self.ops.push(Op::Template { key: subject.made.clone() }),
        }
    }

    /// A Service that is not wanted any more goes. An account stays with the Agent: Pods of before may run under it.
    fn superfluous(&mut self, subject: &Subject<'_>, claims: &Claims<'_>, wanted: &Wanted) {
        if let (None, Claim::Ours(uid)) = (&wanted.service, claims.service) {
            self.ops.push(delete((Kind::Service, &subject.made), uid));
        }
        for (other, claim) in subject.others.iter().zip(&claims.others) {
            let left = subject.look.as_ref().is_some_and(|look| look.is_left(other.kind));
            let is_wanted = left || wanted.others.iter().any(|own| own.kind == other.kind);
            if let (false, Claim::Ours(uid)) = (is_wanted, claim) {
                self.ops.push(delete((other.kind, &other.key), uid));
            }
        }
    }

    /// What is lost though it was applied is contested: it is said once, and not written again until it changes.
    fn remember(&mut self, subject: &Subject<'_>) {
        if self.contested.is_empty() {
            return;
        }
        let text = self.contested.join(", ");
        if self.ops.is_empty() {
            let message = format!(
                "{text}: written by somebody else each time it is applied; Drawbridge leaves it until the Agent changes. Find \
                 who writes it: kubectl -n {} get {} {} -o yaml --show-managed-fields",
                subject.cx.key.namespace,
                Kind::Deployment.plural(),
                subject.made.name,
            );
            self.ops.push(report(subject, Reason::FieldsContested, message));
        }
        self.note.contested = Some(text.into());
    }

    /// Before a Deployment is written, every Secret that the Agent leaves to its own consent is asked: the policy of the API server
    /// has left it out.
    fn asking(&mut self, subject: &Subject<'_>) {
        let writes = self.ops.iter().any(|op| matches!(op, Op::Own { kind: Kind::Deployment, .. }));
        let demands = if writes { subject.demands() } else { Vec::new() };
        if !demands.is_empty() {
            let namespace = subject.cx.key.namespace.to_string();
            self.ops.insert(0, Op::Consent { namespace, demands });
        }
    }

    /// What policies refuse where they know of no object of its kind waits until they know of one.
    fn introduce(&mut self, subject: &Subject<'_>) {
        if !self.ops.iter().any(mark::makes) {
            return;
        }
        self.note.marked = subject.note().and_then(|note| note.marked);
        if mark::is_known(subject) || mark::is_refused(subject) {
            return;
        }
        let mark::Introduction { ops, again, marked, stop } = mark::introduced(subject);
        (self.ops, self.again) = (ops, again);
        self.note.marked = Some(marked);
        // Nothing of what was to be written and read is.
        (self.note.sent, self.note.read) = (String::new(), None);
        let stands = self.wanted.as_ref().map(|wanted| goes_on(subject, wanted));
        (self.note.rolling, self.note.failed) = stands.unwrap_or_default();
        self.stop = stop.or(self.stop.take());
    }

    /// Leaves that write out for as long as one that was refused waits.
    fn later(&mut self, refused: &Op, since: Duration) {
        if since < REFUSED && self.ops.contains(refused) {
            self.ops.retain(|op| op != refused);
            self.again = self.again.into_iter().chain([REFUSED.saturating_sub(since)]).min();
        }
    }

    /// A write that was refused waits, and one that fails over and over is said.
    fn held_back(&mut self, subject: &Subject<'_>) {
        let Some(trouble) = subject.trouble().filter(|_| !self.ops.is_empty()) else { return };
        let since = subject.cx.now.saturating_sub(trouble.at);
        let is_wanted = !is_route(&trouble.op) && self.ops.iter().any(|op| is_same(op, &trouble.op));
        let in_the_way = in_the_way(subject, trouble).filter(|_| is_wanted);
        match trouble.refused {
            // A route that is refused stops nothing else; its condition says it. It is tried again: nobody tells once its cause is removed.
            Some(_) if is_route(&trouble.op) => self.later(&trouble.op, since),
            Some(reason) => {
                let pause = if reason == Reason::SecretNotUsable { UNUSABLE } else { REFUSED };
                if self.ops.contains(&trouble.op) && since < pause {
                    self.ops.clear();
                    self.note.sent.clear();
                    self.again = Some(pause.saturating_sub(since));
                    self.stop = Some(Stop { reason, message: trouble.message.clone(), stalled: true });
                }
            }
            None if trouble.unheard && trouble.times >= UNHEARD => {
                let message = "the API server does not let the Deployment be made yet: its policies look for the mark of Drawbridge in this \
                               namespace and have not heard of one. It is tried again by itself; while Drawbridge is being updated it is \
                               made once the new version leads. If this lasts: drawbridge doctor";
                self.stop =
                    Some(Stop { reason: Reason::DeploymentNotReady, message: message.to_owned(), stalled: false });
            }
            None if in_the_way.is_some() => self.stop = in_the_way,
            None if !trouble.unheard && trouble.times >= FAILURES && !is_route(&trouble.op) => {
                let message = format!("cannot be written and is tried again: {}", trouble.message);
                self.stop = Some(Stop { reason: Reason::DeploymentFailed, message, stalled: false });
            }
            None => {}
        }
    }
}

/// Whether a part stays as it was written last although something else is wanted of it: Pods read it at their start, and those that run are of a template
/// that waits for its turn or has to be read first. One that is started again meanwhile would read what its variables do not belong to. What others have
/// taken of it does not stay: it becomes what is wanted now, because nobody knows any more what was wanted before.
fn stays(
    (subject, claims): (&Subject<'_>, &Claims<'_>),
    (wanted, how): (&Wanted, Leaves),
    (own, claim, seen): (&Own, Claim<'_>, Option<&ClaimSeen>),
) -> bool {
    let is_read_at_start = own.kind == Kind::ConfigMap && matches!(claim, Claim::Ours(_));
    let deployment = subject.own_deployment().filter(|_| matches!(claims.deployment, Claim::Ours(_)));
    let (Some(seen), Some(deployment)) = (seen.filter(|_| is_read_at_start), deployment) else { return false };
    if own.is_applied(seen.applied.as_deref()) || wanted.deployment.is_applied(deployment.applied.as_deref()) {
        return false;
    }
    let is_whole = match seen.fields.as_deref() {
        Some(fields) => own.keeps("data", fields),
        // Of what an earlier operator wrote nothing was ours that could be taken.
        None => seen.applied.is_none() && deployment.applied.is_none(),
    };
    is_whole
        && match how {
            Leaves::Written => turn(subject) == Turn::Later,
            Leaves::Unread => true,
            Leaves::AsItIs => false,
        }
}

/// Whether an operation is about a route.
pub(in crate::controllers::agent) fn is_route(op: &Op) -> bool {
    let (Op::Own { kind, .. } | Op::Edit { kind, .. } | Op::Delete { kind, .. }) = op else { return false };
    *kind == Kind::HttpRoute
}

/// Whether two operations apply the same object, whatever they make of it.
fn is_same(one: &Op, other: &Op) -> bool {
    match (one, other) {
        (Op::Own { kind, key, .. }, Op::Own { kind: its, key: at, .. }) => (kind, key) == (its, at),
        _ => false,
    }
}

/// That an object has the name of one that was to be made, over and over, though none of those that are watched has it.
pub(in crate::controllers::agent) fn in_the_way(subject: &Subject<'_>, trouble: &Trouble) -> Option<Stop> {
    let Op::Own { kind, key, body } = &trouble.op else { return None };
    let unmade = body["metadata"]["resourceVersion"] == UNMADE;
    if !unmade || trouble.conflicts < IN_THE_WAY {
        return None;
    }
    let labels = body["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)));
    let message = format!(
        "{} {} of this namespace is there without all labels of what Drawbridge makes ({}), so it is left alone: delete or rename it, or give \
         this {} another name",
        kind.as_str(),
        key.name,
        labels.collect::<Vec<_>>().join(", "),
        subject.face.kind.as_str(),
    );
    Some(Stop { reason: Reason::NameConflict, message, stalled: true })
}

fn account_claim<'a>(subject: &Subject<'a>) -> Option<&'a ClaimSeen> {
    subject.account.and_then(|(seen, _)| seen.claim.as_deref())
}

fn conflict(subject: &Subject<'_>, conflicts: &[(Kind, &str)]) -> Stop {
    let name = &subject.made.name;
    let one = |(kind, remedy): &(Kind, &str)| {
        let other = subject.others.iter().find(|other| other.kind == *kind);
        let name = other.map_or(name, |other| &other.key.name);
        let whose = owner(subject, *kind).map_or_else(
            || format!("is not this {}'s", subject.face.kind.as_str()),
            |owner| format!("belongs to {} {} of {}", owner.kind, owner.name, owner.api_version),
        );
        format!("{} {name} of this namespace {whose} and is left alone: {remedy}", kind.as_str())
    };
    let message = conflicts.iter().map(one).collect::<Vec<_>>().join("; ");
    Stop { reason: Reason::NameConflict, message, stalled: true }
}

/// Who controls the object of that kind that has the Agent's name.
fn owner<'a>(subject: &Subject<'a>, kind: Kind) -> Option<&'a OwnerReference> {
    match kind {
        Kind::Deployment => subject.deployment?.seen.controller.as_deref(),
        Kind::Service => subject.service?.0.claim.controller.as_deref(),
        Kind::ServiceAccount => subject.account?.0.claim.as_ref()?.controller.as_deref(),
        kind => subject.others.iter().find(|other| other.kind == kind)?.found?.0.controller.as_deref(),
    }
}

/// What people are told once an object was written.
fn told(subject: &Subject<'_>, kind: Kind, claim: Claim<'_>, image: &Image) -> Option<Op> {
    let name = &subject.made.name;
    let runs = image.runs.as_deref().unwrap_or_default();
    let (reason, message) = match (kind, claim) {
        (Kind::Deployment, Claim::Absent) => {
            (Reason::DeploymentCreated, format!("Deployment {name} was made, with image {runs}"))
        }
        (Kind::Deployment, _) => {
            let generation = subject.seen.generation;
            (Reason::DeploymentUpdated, format!("Deployment {name} follows generation {generation}, with image {runs}"))
        }
        (Kind::Service, Claim::Absent) => (Reason::ServiceCreated, format!("Service {name} was made")),
        _ => return None,
    };
    Some(report(subject, reason, message))
}

pub(in crate::controllers::agent) fn report(subject: &Subject<'_>, reason: Reason, message: String) -> Op {
    let (about, uid) = (subject.cx.key.clone(), subject.uid.to_owned());
    Op::Report(Report { kind: subject.face.kind, about, uid, reason, message, since: String::new() })
}

fn delete((kind, key): (Kind, &Key), uid: &str) -> Op {
    Op::Delete { kind, key: key.clone(), uid: uid.to_owned() }
}

/// What whoever was there before us has written on an object of ours becomes ours before our first apply, so that what we do not write goes: an
/// apply leaves in place whatever another entry of managed fields owns as well. To take the entry away would not do: what has no owner stays, and an
/// object without any entry is given to `before-first-apply` by the API server.
fn taken_over(subject: &Subject<'_>, own: &Own, (claim, before): (Claim<'_>, Option<WrittenBefore>)) -> Option<Op> {
    let (Claim::Ours(uid), Some(before)) = (claim, before) else { return None };
    let entry = format!("/metadata/managedFields/{}", before.at);
    let (manager, operation) = before.by();
    let test = |path: String, value: &str| json!({"op": "test", "path": path, "value": value});
    let set = |path: String, value: &str| json!({"op": "replace", "path": path, "value": value});
    let operations = json!([
        test("/metadata/uid".to_owned(), uid),
        test(format!("{entry}/manager"), manager),
        test(format!("{entry}/operation"), operation),
        set(format!("{entry}/manager"), &subject.face.controller.manager()),
        set(format!("{entry}/operation"), "Apply"),
    ]);
    Some(Op::Edit { kind: own.kind, key: own.key.clone(), operations })
}

/// Adds our finalizer, or takes it away: metadata only, so that the spec stays as it was written.
fn finalizer(subject: &Subject<'_>, wanted: bool) -> Op {
    let uid = json!({"op": "test", "path": "/metadata/uid", "value": subject.uid});
    let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": subject.version.to_string()});
    let (names, finalizer) = (&subject.seen.finalizers, subject.face.finalizer);
    let at = names.iter().position(|name| &**name == finalizer);
    let operations = match (wanted, at) {
        (false, Some(at)) => {
            let path = format!("/metadata/finalizers/{at}");
            json!([uid, {"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}])
        }
        // That a list is not there cannot be tested.
        _ if names.is_empty() => {
            json!([uid, version, {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}])
        }
        _ => json!([uid, {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}]),
    };
    Op::Edit { kind: subject.face.kind, key: subject.cx.key.clone(), operations }
}

/// The Agent goes: what it controls goes first, unless somebody asked for it to stay. What cannot be deleted once, for want of a right or because
/// a policy forbids it, is left to the garbage collector, because the Agent owns it: its end waits for nobody.
fn ending(subject: &Subject<'_>, claims: &Claims<'_>) -> Vec<Op> {
    if !subject.seen.carries(subject.face.finalizer) {
        return Vec::new();
    }
    let orphans = subject.seen.finalizers.iter().any(|name| &**name == "orphan");
    let is_left = subject.trouble().is_some_and(|trouble| matches!(trouble.op, Op::Delete { .. }));
    let mut ops = Vec::new();
    // The account goes with the Agent: Pods that end may still need it.
    for (kind, claim) in [(Kind::Deployment, claims.deployment), (Kind::Service, claims.service)] {
        if let (Claim::Ours(uid), false) = (claim, orphans || is_left || subject.face.collected) {
            ops.push(delete((kind, &subject.made), uid));
        }
    }
    ops.push(finalizer(subject, false));
    ops
}
