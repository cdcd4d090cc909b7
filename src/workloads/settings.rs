//! What the platform decides about the workloads of all agents.

/// How an Agent's lock-down is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lockdown {
    /// What a user relaxes stays, with a warning.
    #[default]
    Default,
    /// What relaxes it is refused.
    Enforce,
}

/// What happens to a Deployment that the original BeeAI operator made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Takeover {
    /// It runs on as it is until its Agent changes or asks.
    #[default]
    Keep,
    /// It is locked down, a few at a time.
    Lockdown,
}

/// Settings of the platform, as admission and the controllers of agents read them. The default is what stands without a platform file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How the lock-down of agents is kept.
    pub lockdown: Lockdown,
    /// Whether an Agent of BeeAI may ask for profile `baseline`.
    pub beeai_baseline: bool,
    /// What happens to the Deployments of the original BeeAI operator.
    pub beeai_takeover: Takeover,
    /// Whether kinds of BeeAI are acted on at all.
    pub beeai: bool,
    /// Whether the cluster assigns users and groups itself.
    pub openshift: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lockdown: Lockdown::Default,
            beeai_baseline: false,
            beeai_takeover: Takeover::Keep,
            beeai: true,
            openshift: false,
        }
    }
}
