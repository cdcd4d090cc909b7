//! The publisher as a value: what comes in is a step, and what it asks for are effects; nothing here waits.
//!
//! In: what a source wants, our webhook configurations as they are seen, answers to patches, and the passing of time. Out: at most one patch
//! at a time, when to look again, and what others are to be told. What one configuration needs is decided by [`plan`]. Promises: the same
//! inputs at the same times give the same effects; who does not lead sends nothing; a patch that failed or came too
//! late is sent again after a pause that doubles, until one is stored or nothing is missing. Each kind has a pause of
//! its own: a rule that refuses one configuration may let the other pass.

use std::collections::BTreeSet;
use std::time::Duration;

use json_patch::Patch;

use super::objects::Kind;
use super::plan::{self, Configuration, Memory, Overwritten, Step};
use super::publication::Publication;
use crate::server::certs::root::Millis;
use crate::server::certs::trust::Observed;
use crate::server::certs::trust_bundle::Damaged;
use crate::server::certs::wanted::Wanted;

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// The longest pause after a patch that came too late: what is there now may be left alone.
const LAST_LATE: Duration = Duration::from_millis(3_200);
/// How long patches may fail before people are told.
const PERSISTENT: Duration = Duration::from_secs(5);
/// A moment of the wall clock is looked at once in this time: that clock may be set meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// Whether our webhook configurations are there; `None` until that was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Installed {
    /// The one that changes objects.
    pub mutating: Option<bool>,
    /// The one that judges them.
    pub validating: Option<bool>,
}

/// When a step is made, and whether this process may write then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// Since the process began; never goes back.
    pub(super) at: Duration,
    /// The wall clock.
    pub(super) wall: Millis,
    /// This process publishes.
    pub(super) leads: bool,
}

/// Something happened.
#[derive(Debug, Clone)]
pub(super) enum Input {
    /// What a source wants.
    Wanted(Wanted),
    /// A configuration as it is; `None`: there is none.
    Seen(Kind, Option<Configuration>),
    /// A term of ours began or ended.
    Turned,
    /// Our patch was stored like that.
    Written(Kind, Configuration),
    /// The configuration was another when our patch arrived; what was read then, unless something newer is known.
    Changed(Kind, Option<Option<Configuration>>),
    /// Our patch failed otherwise; in words.
    Failed(Kind, String),
    /// Time has passed.
    Time,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// Send this patch; its answer is an input.
    Send(Kind, Patch),
    /// Unless something happens before, [`Input::Time`] then.
    Wake(Duration),
    /// Whether the configurations are there has changed.
    Installed(Installed),
    /// What they hold has changed.
    Observed(Observed),
    /// How far publication is has changed.
    Publication(Publication),
    /// Whether everybody who calls us trusts us, and how many configurations somebody else keeps overwriting.
    State {
        /// Everybody does.
        trusted: bool,
        /// So many.
        contested: usize,
    },
    /// A section of a bundle cannot be read; told once.
    Damaged(Kind, String, Damaged),
    /// Somebody took our roots out; with the uid of the configuration.
    Overwritten(Kind, String, Overwritten),
    /// Our patch was stored.
    Published(Kind),
    /// It was not; why.
    NotPublished(Kind, String),
    /// It has not been for a while; with the uid of the configuration, where there is one, and why. Once until it is.
    StillNotPublished(Kind, Option<String>, String),
}

/// What is known of one kind.
#[derive(Debug, Default)]
struct State {
    read: bool,
    configuration: Option<Configuration>,
    memory: Memory,
    /// Not before then, and how long that pause is.
    retry: Option<(Duration, Duration)>,
    /// Since when no patch has been accepted, and whether people have been told.
    failing: Option<(Duration, bool)>,
}

impl State {
    /// Its next patch waits twice as long as the last one did, and no longer than `longest`.
    fn postpone(&mut self, at: Duration, longest: Duration) {
        let pause = self.retry.map_or(FIRST_RETRY, |(_, last)| (last * 2).min(longest));
        self.retry = Some((at + pause, pause));
    }

    /// What failed is over.
    fn recovered(&mut self) {
        (self.retry, self.failing) = (None, None);
    }
}

/// The publisher of one process.
#[derive(Debug, Default)]
pub(super) struct Machine {
    by_agreement: bool,
    wanted: Wanted,
    states: [State; 2],
    /// The answer to a patch is waited for.
    sent: bool,
    installed: Installed,
    observed: Observed,
    publication: Publication,
    state: Option<(bool, usize)>,
}

impl Machine {
    /// Nothing is known. `by_agreement`: configurations that ask cert-manager's injector for their bundle are left to it.
    pub(super) fn new(by_agreement: bool) -> Self {
        Self { by_agreement, ..Self::default() }
    }

    /// One step.
    pub(super) fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Wanted(wanted) => self.wanted = wanted,
            Input::Seen(kind, configuration) => self.see(kind, configuration, &mut effects),
            Input::Turned => self.states.iter_mut().for_each(|state| state.retry = None),
            Input::Written(kind, configuration) => {
                self.sent = false;
                self.states[kind as usize].recovered();
                effects.push(Effect::Published(kind));
                self.see(kind, Some(configuration), &mut effects);
            }
            Input::Changed(kind, read) => {
                self.sent = false;
                self.states[kind as usize].postpone(now.at, LAST_LATE);
                if let Some(configuration) = read {
                    self.see(kind, configuration, &mut effects);
                }
            }
            Input::Failed(kind, error) => {
                self.sent = false;
                // The fence stopped it where another process leads by now, and its turn it is.
                if now.leads {
                    self.failed(kind, error, now.at, &mut effects);
                }
            }
            Input::Time => {}
        }
        self.report(now.wall, &mut effects);
        if now.leads {
            self.publish(now, &mut effects);
        }
        effects
    }

    /// Takes in a configuration as it is now: what is watched or read is the truth.
    fn see(&mut self, kind: Kind, configuration: Option<Configuration>, effects: &mut Vec<Effect>) {
        let state = &mut self.states[kind as usize];
        let known = state.configuration.as_ref().map(|known| &known.damaged);
        let damaged = configuration.iter().flat_map(|new| &new.damaged);
        let news = damaged.filter(|section| known.is_none_or(|known| !known.contains(section)));
        effects.extend(news.map(|(entry, section)| Effect::Damaged(kind, entry.clone(), section.clone())));
        let is_there = Some(configuration.is_some());
        state.read = true;
        state.configuration = configuration;
        let installed = match kind {
            Kind::Mutating => &mut self.installed.mutating,
            Kind::Validating => &mut self.installed.validating,
        };
        if std::mem::replace(installed, is_there) != is_there {
            effects.push(Effect::Installed(self.installed));
        }
    }

    /// What the source, readiness and people are to be told of what is there.
    fn report(&mut self, wall: Millis, effects: &mut Vec<Effect>) {
        for kind in Kind::ALL {
            let state = &mut self.states[kind as usize];
            let Some(configuration) = &state.configuration else { continue };
            let lost = state.memory.observe(configuration, &self.wanted.roots, wall);
            effects.extend(lost.into_iter().map(|lost| Effect::Overwritten(kind, configuration.uid.clone(), lost)));
        }
        let observed = self.observation();
        if observed != self.observed {
            self.observed = observed.clone();
            effects.push(Effect::Observed(observed));
        }
        let publication = self.judge();
        let contested = self.states.iter().filter(|state| state.memory.contested()).count();
        // A configuration that is not there trusts nobody.
        let complete = self.states.iter().all(|state| state.configuration.is_some());
        let trusted = complete && publication.is_settled();
        if self.state.replace((trusted, contested)) != Some((trusted, contested)) {
            effects.push(Effect::State { trusted, contested });
        }
        if publication != self.publication {
            self.publication = publication.clone();
            effects.push(Effect::Publication(publication));
        }
    }

    /// Sends one patch when it is time for one.
    fn publish(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let mut send: Option<(Kind, Patch)> = None;
        let mut later: Option<Duration> = None;
        for kind in Kind::ALL {
            let state = &mut self.states[kind as usize];
            let step = match &state.configuration {
                Some(ours) if !(ours.published_by_other && self.by_agreement) => {
                    plan::step(ours, &self.wanted.roots, &state.memory, now.wall)
                }
                _ => Step::Keep,
            };
            let moment = match step {
                Step::Keep => {
                    if !self.sent {
                        // Nothing is missing, whoever wrote it: what failed is over, and is told again when it comes again.
                        state.recovered();
                    }
                    None
                }
                Step::Wait(moment) => {
                    let pause = Duration::from_millis(u64::try_from(moment - now.wall).unwrap_or(0));
                    Some(now.at + pause.min(LOOK))
                }
                Step::Send(patch) => {
                    let pause = state.retry.map(|(moment, _)| moment).filter(|moment| now.at < *moment);
                    if pause.is_none() {
                        send = send.or(Some((kind, patch)));
                    }
                    pause
                }
            };
            later = later.into_iter().chain(moment).min();
        }
        if self.sent {
            // Its answer is an input, and then it is looked at again.
            return;
        }
        match send {
            Some((kind, patch)) => {
                self.states[kind as usize].memory.sent(now.wall);
                self.sent = true;
                effects.push(Effect::Send(kind, patch));
            }
            None => effects.extend(later.map(Effect::Wake)),
        }
    }

    fn observation(&self) -> Observed {
        let configurations = self.states.iter().filter_map(|state| state.configuration.as_ref());
        let entries: Vec<_> = configurations.flat_map(|configuration| &configuration.entries).collect();
        Observed {
            synced: self.states.iter().all(|state| state.read),
            names: entries.iter().filter_map(|entry| entry.host.clone()).collect(),
            entries: entries
                .iter()
                .map(|entry| entry.roots.iter().map(|certificate| certificate.root.fingerprint).collect())
                .collect(),
        }
    }

    fn judge(&self) -> Publication {
        let serving = self.wanted.serving.as_ref().filter(|_| self.states.iter().all(|state| state.read));
        let Some(serving) = serving else { return Publication::Unknown };
        if serving.is_empty() {
            return Publication::ByOthers;
        }
        let serving: BTreeSet<_> = serving.iter().collect();
        let mut exists = false;
        for kind in Kind::ALL {
            let Some(configuration) = &self.states[kind as usize].configuration else { continue };
            exists = true;
            for entry in &configuration.entries {
                let held: BTreeSet<_> = entry.roots.iter().map(|certificate| &certificate.root.fingerprint).collect();
                if !serving.is_subset(&held) {
                    return Publication::Incomplete { kind: kind.words(), entry: entry.name.clone() };
                }
            }
        }
        if exists { Publication::Published } else { Publication::NoConfiguration }
    }

    /// People are told, once, when publishing has failed for a while.
    fn failed(&mut self, kind: Kind, error: String, at: Duration, effects: &mut Vec<Effect>) {
        let state = &mut self.states[kind as usize];
        state.postpone(at, LAST_RETRY);
        let (since, told) = state.failing.get_or_insert((at, false));
        let persists = !*told && at.saturating_sub(*since) >= PERSISTENT;
        *told |= persists;
        effects.push(Effect::NotPublished(kind, error.clone()));
        if persists {
            let uid = state.configuration.as_ref().map(|configuration| configuration.uid.clone());
            effects.push(Effect::StillNotPublished(kind, uid, error));
        }
    }
}
