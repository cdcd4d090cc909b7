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
}

impl Note {
    /// That it has been held back since then.
    #[must_use]
    pub fn held(since: Option<Duration>) -> Self {
        Self { held: since, ..Self::default() }
    }
}
