//! What a plan found out about its build, for later plans; data.

use std::time::Duration;

use crate::controllers::scaffold::login::Login;

/// What a plan found out about its item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// Since when it has been held back.
    pub held: Option<Duration>,
    /// The login of its registry that could not be made last, and when that was tried: what else fails meanwhile makes nobody forget it.
    pub login: Option<(Box<Login>, Duration)>,
    /// What is known of its run besides what the watch shows.
    pub read: Option<Read>,
    /// A status that was written was not kept: when, and which members were lost of it (none is named where all were).
    pub unkept: Option<(Duration, Vec<String>)>,
}

/// That a run was read by its name: a watch shows those that carry the label of builds, and whoever takes it off hides one that runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The run.
    pub run: String,
    /// In which version it was known then; 0 where it was not.
    pub version: u64,
    /// When it was read last, or first known in that version.
    pub at: Duration,
    /// No watch showed it once.
    pub lost: bool,
}

impl Note {
    /// That it has been held back since then.
    #[must_use]
    pub fn held(since: Option<Duration>) -> Self {
        Self { held: since, ..Self::default() }
    }
}
