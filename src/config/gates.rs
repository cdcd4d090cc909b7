//! Feature gates (`spec/authbridge-webhook.md` 7.2): a file that sets every gate to false disables everything.

/// The gates of the classic profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// Kill switch.
    pub global_enabled: bool,
    /// Envoy and proxy-init.
    pub envoy_proxy: bool,
    /// SPIRE parts.
    pub spiffe_helper: bool,
    /// Registration sidecar.
    pub client_registration: bool,
    /// Inject Pods of type tool.
    pub inject_tools: bool,
    /// Literal environment values read at admission instead of references.
    pub per_workload_config_resolution: bool,
    /// One combined container in mode envoy-sidecar.
    pub combined_sidecar: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            global_enabled: true,
            envoy_proxy: true,
            spiffe_helper: true,
            client_registration: true,
            inject_tools: false,
            per_workload_config_resolution: false,
            combined_sidecar: false,
        }
    }
}
