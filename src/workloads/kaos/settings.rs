//! What the platform decides about the kinds of KAOS.

use std::collections::BTreeSet;

use crate::api::kaos_tools::shape;
use crate::domain::keys;

/// Settings of the platform file's keys `kaos.*` and `images.kaos*`. The default is what stands without them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `images.kaosAgent`: runs Agents.
    pub image_agent: Option<String>,
    /// `images.kaosLitellm`: runs proxies.
    pub image_litellm: Option<String>,
    /// `images.kaosOllama`: runs hosted models.
    pub image_ollama: Option<String>,
    /// `images.kaosMcpServer`: runs tools that are text, in place of the registry's runtime.
    pub image_mcp_server: Option<String>,
    /// `images.kaosPython`: runs tools that are packages.
    pub image_python: Option<String>,
    /// `kaos.registryNamespace`: where the runtimes of tools are listed; `None` for our own.
    pub registry_namespace: Option<String>,
    /// `kaos.operatorNamespaces`: where else the original operator runs, so that its Lease is believed.
    pub operator_namespaces: BTreeSet<String>,
    /// `kaos.gateway.*`.
    pub gateway: Gateway,
    /// `kaos.telemetry.*`: what holds for everything that says nothing itself.
    pub telemetry: Telemetry,
    /// `kaos.logLevel`.
    pub log_level: LogLevel,
    /// `kaos.clusterDomain`.
    pub cluster_domain: String,
    /// `kaos.servicePort80`: Agents and MCPServers are reached on port 80 as well.
    pub service_port_80: bool,
    /// `kaos.restrictModelAPIs`: a ModelAPI is reached only by the Agents that name it, and by the gateway.
    pub restrict_model_apis: bool,
    /// `kaos.rollOnSecretChange`: Pods are made again when a Secret or ConfigMap that their environment refers to has changed.
    pub roll_on_secret_change: bool,
    /// `kaos.toolDiscovery`: each ready MCPServer is asked which tools it offers.
    pub tool_discovery: bool,
}

/// Through which Gateway routes lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Whether routes are made.
    pub enabled: bool,
    /// Name of the Gateway.
    pub name: String,
    /// Its namespace; `None` for our own.
    pub namespace: Option<String>,
    /// How long an Agent may take to answer.
    pub agent_timeout: String,
    /// How long a ModelAPI may.
    pub model_api_timeout: String,
    /// How long an MCPServer may.
    pub mcp_timeout: String,
}

/// Where traces go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether they go anywhere.
    pub enabled: bool,
    /// OTLP over gRPC; `None` when nobody said.
    pub endpoint: Option<String>,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the levels are what their names say")]
pub enum LogLevel {
    Trace,
    Debug,
    #[default]
    Info,
    Warning,
    Error,
}

impl LogLevel {
    /// All of them with their names.
    pub const ALL: [(&'static str, LogLevel); 5] = [
        ("TRACE", LogLevel::Trace),
        ("DEBUG", LogLevel::Debug),
        ("INFO", LogLevel::Info),
        ("WARNING", LogLevel::Warning),
        ("ERROR", LogLevel::Error),
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("INFO", |(name, _)| name)
    }

    /// What LiteLLM calls it, which has no TRACE.
    #[must_use]
    pub fn litellm(self) -> &'static str {
        if self == LogLevel::Trace { "DEBUG" } else { self.as_str() }
    }

    /// `OLLAMA_DEBUG`, where it is set.
    #[must_use]
    pub fn ollama(self) -> Option<&'static str> {
        match self {
            LogLevel::Trace => Some("2"),
            LogLevel::Debug => Some("1"),
            LogLevel::Info | LogLevel::Warning | LogLevel::Error => None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image_agent: None,
            image_litellm: None,
            image_ollama: None,
            image_mcp_server: None,
            image_python: None,
            registry_namespace: None,
            operator_namespaces: BTreeSet::new(),
            gateway: Gateway {
                enabled: false,
                name: "kaos-gateway".to_owned(),
                namespace: None,
                agent_timeout: "300s".to_owned(),
                model_api_timeout: "120s".to_owned(),
                mcp_timeout: "60s".to_owned(),
            },
            telemetry: Telemetry::default(),
            log_level: LogLevel::default(),
            cluster_domain: "cluster.local".to_owned(),
            service_port_80: false,
            restrict_model_apis: false,
            roll_on_secret_change: false,
            tool_discovery: false,
        }
    }
}

impl Settings {
    /// The namespaces in which the Lease of the original operator is believed, `own` being ours: where it is installed as a rule, where its
    /// runtimes are listed, and what `kaos.operatorNamespaces` names. Whoever may write Leases in one of them holds up the controllers.
    #[must_use]
    pub fn believed<'s>(&'s self, own: &'s str) -> BTreeSet<&'s str> {
        let named = self.operator_namespaces.iter().chain(&self.registry_namespace).map(String::as_str);
        named.chain([keys::KAOS_NAMESPACE, own]).collect()
    }
}

impl Telemetry {
    /// What holds for an object that says `own`: `None` when nothing is sent, else the endpoint, where there is one.
    #[must_use]
    pub fn effective<'t>(&'t self, own: Option<&'t shape::Telemetry>) -> Option<Option<&'t str>> {
        let global = self.endpoint.as_deref().filter(|_| self.enabled);
        let enabled = own.map_or(self.enabled, |own| own.enabled);
        enabled.then_some(own.and_then(|own| own.endpoint.as_deref()).or(global))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_of_the_operator_before_is_believed_where_the_platform_has_it() {
        let settings = Settings {
            registry_namespace: Some("tools".to_owned()),
            operator_namespaces: BTreeSet::from(["charts".to_owned()]),
            ..Settings::default()
        };
        assert_eq!(settings.believed("own"), BTreeSet::from(["charts", "kaos-system", "own", "tools"]));
        assert_eq!(Settings::default().believed("own"), BTreeSet::from(["kaos-system", "own"]));
    }

    #[test]
    fn cases_130_to_132_the_components_own_setting_comes_first() {
        let on = Telemetry { enabled: true, endpoint: Some("g".to_owned()) };
        let off = Telemetry::default();
        for (global, own, wanted) in [
            (&on, None, Some(Some("g"))),
            (&on, Some((true, None)), Some(Some("g"))),
            (&on, Some((true, Some("c"))), Some(Some("c"))),
            (&on, Some((false, None)), None),
            (&on, Some((false, Some("c"))), None),
            (&off, Some((true, Some("c"))), Some(Some("c"))),
            (&off, Some((true, None)), Some(None)),
            (&off, None, None),
        ] {
            let own = own.map(|(enabled, endpoint): (bool, Option<&str>)| shape::Telemetry {
                enabled,
                endpoint: endpoint.map(str::to_owned),
            });
            assert_eq!(global.effective(own.as_ref()), wanted, "{global:?} {own:?}");
        }
    }
}
