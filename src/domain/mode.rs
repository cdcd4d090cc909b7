//! The names of the injection modes. What a mode injects is a plan builder in `admission::inject::modes`.

/// An injection mode of the classic profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Transparent redirection into Envoy with ext_proc; the default.
    EnvoySidecar,
    /// Reverse and forward proxy that takes the agent's port.
    ProxySidecar,
    /// Nothing in the Pod; the proxy is a Deployment managed elsewhere.
    Waypoint,
}

impl Mode {
    /// Every mode, in documentation order.
    pub const ALL: [Mode; 3] = [Mode::EnvoySidecar, Mode::ProxySidecar, Mode::Waypoint];

    /// The value users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::EnvoySidecar => "envoy-sidecar",
            Mode::ProxySidecar => "proxy-sidecar",
            Mode::Waypoint => "waypoint",
        }
    }

    /// The mode of that exact name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}
