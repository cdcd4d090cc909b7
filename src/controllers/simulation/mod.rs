//! Three replicas, their Lease, watches and loops, and the API server in one thread: a seed decides what happens, and when.
//!
//! In: a seed, and perhaps a fault that is built in. Out: what was written, in order, and what the cluster is in the end. While it lasts,
//! replicas are killed and frozen, answers and requests are lost or late, watches break and expire, the Lease is deleted, the server is put
//! back to an older state, and users change their minds. Then it is quiet, and everything has to come to one end: that of a cluster to which
//! nothing ever happened. Held besides, at every write: once another term has written, an earlier one never does; and what somebody
//! enrolled is never taken back while its AgentRuntime is there.
//!
//! Of the product take part: the candidacy, the rules of watches on versions and lists, the loop, and the plans of four controllers. What awaits
//! around them is played here. Assumed: a backup is never made in the moment in which nobody holds the Lease, between two processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod random;
mod replica;
mod server;
mod story;
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use drawbridge_cluster::cluster::lease::machine::{self as lease, Effect, Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::Value;

use super::scaffold::apply::{ApplyError, Learned};
use super::scaffold::plan::Op;
use super::scaffold::queue::Ending;
use super::scaffold::run::machine::{Input, Ticket};
use crate::domain::keys;
use crate::store::{Key, Kind};
use random::Random;
use replica::{Replica, TEAM, WATCHED};
use server::Server;
use story::Act;

/// What is built in to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing.
    None,
    /// A process takes what it has not listed to be absent.
    AbsenceBeforeTheList,
    /// What is known at a newer version is kept, whatever a new list says.
    NewerVersionWins,
}

/// Who writes: replica, process and term.
type Writer = (usize, u32, u64);

/// What happens next.
enum Event {
    Story(Act),
    Start(usize),
    Timer(u64),
    LeaseSeen,
    LeaseLands(u64, Box<Write>),
    LeaseRead(u64),
    LeaseAnswer(u64, Box<lease::Input>),
    Watch(Kind),
    Turn,
    Send(Ticket),
    Lands(Ticket, Writer, Box<Op>),
    Answer(Ticket, Box<Result<Learned, ApplyError>>),
}

/// Of the process of a replica; what is on its way to the server arrives without it.
type To = (usize, u32);

/// How it ended.
#[derive(Debug)]
struct Ended {
    trace: Vec<String>,
    /// The cluster, without what tells of its past.
    cluster: BTreeMap<String, Value>,
    /// What must not happen and did.
    wrong: Vec<String>,
}

/// Everything.
struct Simulation {
    seed: u64,
    random: Random,
    fault: Fault,
    now: Duration,
    number: u64,
    events: BTreeMap<(Duration, u64), (To, Event)>,
    server: Server,
    replicas: Vec<Replica>,
    writers: Vec<Writer>,
    trace: Vec<String>,
    wrong: Vec<String>,
}

const REPLICAS: usize = 3;

/// Runs one to its end.
fn run(seed: u64, fault: Fault, disturbed: bool) -> Ended {
    let mut simulation = Simulation {
        seed,
        random: Random::of(seed),
        fault,
        now: Duration::ZERO,
        number: 0,
        events: BTreeMap::new(),
        server: Server::default(),
        replicas: Vec::new(),
        writers: Vec::new(),
        trace: Vec::new(),
        wrong: Vec::new(),
    };
    for number in 0..REPLICAS {
        simulation.replicas.push(Replica::start((number, 0), seed ^ number as u64, fault));
    }
    for (at, act) in story::of(&mut simulation.random, disturbed) {
        simulation.at(at, (0, 0), Event::Story(act));
    }
    for number in 0..REPLICAS {
        simulation.at(Duration::from_millis(10), (number, 0), Event::Start(number));
    }
    simulation.play();
    let cluster = story::without_past(&simulation.server);
    Ended { trace: simulation.trace, cluster, wrong: simulation.wrong }
}

impl Simulation {
    fn at(&mut self, at: Duration, to: To, event: Event) {
        self.number += 1;
        self.events.insert((at.max(self.now), self.number), (to, event));
    }

    fn soon(&mut self, (from, to): (u64, u64), whom: To, event: Event) {
        let at = self.now + self.random.millis(from, to);
        self.at(at, whom, event);
    }

    fn play(&mut self) {
        while let Some(((at, _), (to, event))) = self.events.pop_first() {
            self.now = at;
            self.server.now = at;
            if at > story::END {
                return;
            }
            let in_process = !matches!(
                event,
                Event::Story(_) | Event::LeaseLands(..) | Event::LeaseRead(_) | Event::Lands(..) | Event::Start(_)
            );
            let replica = &self.replicas[to.0];
            if in_process && replica.incarnation != to.1 {
                continue;
            }
            if in_process && replica.frozen > at {
                self.at(replica.frozen, to, event);
                continue;
            }
            self.happen(to, event);
        }
    }

    fn happen(&mut self, to: To, event: Event) {
        match event {
            Event::Story(act) => self.act(act),
            Event::Start(number) => self.start((number, self.replicas[number].incarnation)),
            Event::Timer(timer) if self.replicas[to.0].timer == timer => self.candidate(to, lease::Input::Time),
            Event::LeaseSeen if self.replicas[to.0].request.is_some() => self.soon((5, 6), to, Event::LeaseSeen),
            Event::LeaseSeen => self.candidate(to, lease::Input::Seen(self.server.lease().map(Box::new))),
            Event::LeaseLands(request, write) => self.lease_lands(to, request, *write),
            Event::LeaseRead(request) => {
                let read = lease::Input::Read(Some(self.server.lease().map(Box::new)));
                self.at(self.now, to, Event::LeaseAnswer(request, Box::new(read)));
            }
            Event::LeaseAnswer(request, answer) if self.replicas[to.0].request == Some(request) => {
                self.replicas[to.0].request = None;
                self.candidate(to, *answer);
            }
            Event::Timer(_) | Event::LeaseAnswer(..) => {}
            Event::Watch(kind) => self.watch(to, kind),
            Event::Turn => self.turn(to),
            Event::Send(ticket) => self.send(to, ticket),
            Event::Lands(ticket, writer, op) => self.lands(to, (ticket, writer), &op),
            Event::Answer(ticket, result) => self.answer(to, ticket, *result),
        }
    }

    fn start(&mut self, to: To) {
        for kind in WATCHED {
            // Now and then the API server takes longer for a list than a Lease lasts.
            let late = self.random.chance(10);
            self.soon(if late { (4_000, 25_000) } else { (20, 900) }, to, Event::Watch(kind));
        }
        self.soon((20, 900), to, Event::LeaseSeen);
        self.candidate(to, lease::Input::Time);
    }

    /// One step of the candidacy.
    fn candidate(&mut self, to: To, input: lease::Input) {
        let effects = self.replicas[to.0].candidate.step(input, self.now);
        for effect in effects {
            let replica = &mut self.replicas[to.0];
            match effect {
                Effect::Write(write) => {
                    self.number += 1;
                    let request = self.number;
                    replica.request = Some(request);
                    let late = self.random.chance(5);
                    let patience = write.patience;
                    self.soon(if late { (2_000, 12_000) } else { (1, 60) }, to, Event::LeaseLands(request, write));
                    let lost = lease::Input::Failed("no answer".to_owned());
                    self.at(self.now + patience, to, Event::LeaseAnswer(request, Box::new(lost)));
                }
                Effect::Read { patience } => {
                    self.number += 1;
                    let request = self.number;
                    replica.request = Some(request);
                    self.soon((1, 60), to, Event::LeaseRead(request));
                    self.at(self.now + patience, to, Event::LeaseAnswer(request, Box::new(lease::Input::Read(None))));
                }
                Effect::Wake(at) => {
                    replica.timer += 1;
                    let timer = replica.timer;
                    self.at(at, to, Event::Timer(timer));
                }
                Effect::MayWrite(until) => replica.fence = until,
                Effect::Closed => replica.fence = Duration::ZERO,
                Effect::Term(term) => {
                    replica.term = term;
                    replica.step(Input::Term(term), self.now);
                    self.trace.push(format!("{:?} {to:?} term {term:?}", self.now));
                    self.ask_for_turn(to);
                }
                Effect::Deleted | Effect::NobodyLeads(_) | Effect::Complain(_) => {}
            }
        }
    }

    fn lease_lands(&mut self, to: To, request: u64, write: Write) {
        let Write { creates, acquires, mut lease, .. } = write;
        let millis = i64::try_from(self.now.as_millis()).unwrap_or_default();
        let now = jiff::Timestamp::from_millisecond(millis).ok().map(MicroTime);
        if let Some(spec) = &mut lease.spec {
            spec.acquire_time = if acquires { now.clone() } else { spec.acquire_time.clone() };
            spec.renew_time = now;
        }
        let answer = match self.server.put_lease(creates, lease) {
            Some(stored) => {
                self.lease_changed();
                lease::Input::Stored(Box::new(stored))
            }
            None => lease::Input::Conflict,
        };
        if !self.random.chance(5) {
            self.soon((1, 30), to, Event::LeaseAnswer(request, Box::new(answer)));
        }
    }

    fn lease_changed(&mut self) {
        for number in 0..REPLICAS {
            let to = (number, self.replicas[number].incarnation);
            self.soon((1, 400), to, Event::LeaseSeen);
        }
    }

    /// Every replica hears of what happened to a kind, sooner or later.
    fn tell(&mut self, kind: Kind) {
        for number in 0..REPLICAS {
            let to = (number, self.replicas[number].incarnation);
            let late = self.random.chance(5);
            self.soon(if late { (1_000, 9_000) } else { (1, 200) }, to, Event::Watch(kind));
        }
    }

    fn watch(&mut self, to: To, kind: Kind) {
        if self.replicas[to.0].watch(kind, &self.server, self.now) {
            self.soon((1, 120), to, Event::Watch(kind));
        }
        if self.replicas[to.0].lists(kind) {
            self.soon((1, 3_000), to, Event::Watch(kind));
        }
        self.ask_for_turn(to);
    }

    fn ask_for_turn(&mut self, to: To) {
        let at = self.now + Duration::from_millis(1);
        self.turn_at(to, at);
    }

    fn turn_at(&mut self, to: To, at: Duration) {
        let turn = &mut self.replicas[to.0].turn;
        if turn.is_none_or(|known| at < known) {
            *turn = Some(at);
            self.at(at, to, Event::Turn);
        }
    }

    fn turn(&mut self, to: To) {
        let replica = &mut self.replicas[to.0];
        replica.turn = None;
        let begun = replica.step(Input::Turn, self.now);
        let (more, due) = (replica.turn.take(), replica.work.lock().due());
        for ticket in begun {
            self.soon((1, 5), to, Event::Send(ticket));
        }
        let next = more.into_iter().chain(due).min();
        if let Some(at) = next {
            self.turn_at(to, at.max(self.now + Duration::from_millis(1)));
        }
    }

    /// The next operation of a plan leaves the process, unless the fence is closed.
    fn send(&mut self, to: To, ticket: Ticket) {
        let replica = &self.replicas[to.0];
        let Some(work) = replica.under_way.get(&ticket) else { return };
        let (op, term) = (work.plan.ops[work.next].clone(), replica.term.unwrap_or_default());
        let left = replica.fence.saturating_sub(self.now).min(Duration::from_secs(5));
        let slow = self.random.chance(8);
        let takes = if slow { self.random.millis(500, 9_000) } else { self.random.millis(1, 60) };
        if takes < left {
            self.at(self.now + takes, to, Event::Lands(ticket, (to.0, to.1, term), Box::new(op)));
        } else {
            self.at(self.now + left, to, Event::Answer(ticket, Box::new(Err(lost()))));
        }
    }

    /// An operation arrives, whether or not whoever sent it is still there.
    fn lands(&mut self, to: To, (ticket, writer): (Ticket, Writer), op: &Op) {
        let (_, kind, _) = op.asks();
        if !matches!(op, Op::Report(_)) && self.writers.last() != Some(&writer) {
            if self.writers.contains(&writer) {
                self.wrong.push(format!("{:?}: {writer:?} writes after {:?} did", self.now, self.writers.last()));
            }
            self.writers.push(writer);
        }
        self.takes_back(writer, op);
        let log = self.server.log.len();
        let result = self.server.carry_out(op);
        let what = if result.is_ok() { "" } else { ", refused" };
        self.trace.push(format!("{:?} {writer:?} {}{what}", self.now, described(op)));
        if self.server.log.len() > log {
            self.tell(kind);
        }
        let result = if self.random.chance(5) { Err(lost()) } else { result };
        self.at(self.now, to, Event::Answer(ticket, Box::new(result)));
    }

    /// No enrolment is taken back while its AgentRuntime is there, and has been for a while.
    fn takes_back(&mut self, writer: Writer, op: &Op) {
        let Op::Apply { kind: Kind::Deployment, key, body, .. } = op else { return };
        let hash = format!("/spec/template/metadata/annotations/{}", keys::ANNOTATION_CONFIG_HASH.replace('/', "~1"));
        let points = |object: &&Value| object["spec"]["targetRef"]["name"] == *key.name;
        let runtime = self.server.of_kind(Kind::AgentRuntime).find(points);
        let named = runtime.and_then(|object| object["metadata"]["name"].as_str());
        let since = named.and_then(|name| self.server.since.get(&Key::new(TEAM, name)));
        let for_long = since.is_some_and(|since| self.now > *since + Duration::from_secs(40));
        if for_long && body.pointer(&hash).is_none() {
            self.wrong.push(format!("{:?}: {writer:?} takes back the enrolment of {}", self.now, key.name));
        }
    }

    fn answer(&mut self, to: To, ticket: Ticket, result: Result<Learned, ApplyError>) {
        let replica = &mut self.replicas[to.0];
        let Some(work) = replica.under_way.get_mut(&ticket) else { return };
        let outcome = match result {
            Ok(learned) => {
                work.learned.push(learned);
                work.next += 1;
                if work.next < work.plan.ops.len() {
                    return self.soon((1, 5), to, Event::Send(ticket));
                }
                let applied = work.plan.ops.iter().any(Op::settles);
                let ending = if work.plan.makes() { Ending::Made } else { Ending::Done(work.plan.again) };
                (std::mem::take(&mut work.learned), Ok((ending, applied)))
            }
            Err(error) => (std::mem::take(&mut work.learned), Err((error, work.plan.ops[work.next].clone()))),
        };
        replica.under_way.remove(&ticket);
        replica.step(Input::Ended(ticket, Some(outcome)), self.now);
        self.ask_for_turn(to);
    }
}

/// What a request comes to whose answer never came.
fn lost() -> ApplyError {
    ApplyError::Unbuildable { what: "lost".to_owned() }
}

fn described(op: &Op) -> String {
    let (verb, kind, namespace) = op.asks();
    let name = match op {
        Op::Create { body, .. } => body["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        Op::Report(report) => report.reason.code().to_owned(),
        Op::Apply { key, .. } | Op::Merge { key, .. } | Op::Status { key, .. } => key.name.to_string(),
        Op::Edit { key, .. } | Op::Restate { key, .. } | Op::Delete { key, .. } => key.name.to_string(),
        _ => String::new(),
    };
    format!("{verb} {} {namespace}/{name} {}", kind.as_str(), op.subresource().unwrap_or_default())
}
