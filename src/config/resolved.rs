//! The configuration in force in one namespace, every field with its provenance.
//!
//! Resolved once per change of the platform file or the namespace, not per review; the workload's own layers
//! (Pod annotations, AgentRuntime) are laid over it in `admission`.

use serde::Serialize;
use serde_json::{Value, json};

use super::layers::Field;
use super::schema::keys::{KEYS, Shown};
use crate::domain::mode::Mode;
pub use crate::domain::otlp::TraceProtocol;

/// When SPIRE parts are injected (docs/deviations.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpireSwitch {
    /// When CSIDriver `csi.spiffe.io` exists.
    Auto,
    /// Always; without the driver the Pod waits, and a warning says so.
    Required,
    /// Never.
    Disabled,
}

/// Whether sidecars are init containers with `restartPolicy: Always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NativeSidecars {
    /// When the API server is 1.29 or later.
    Auto,
    /// Regular containers, upstream's shape.
    Disabled,
}

/// What a workload may keep out of the proxy of what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InboundExclusions {
    /// Ports, by annotation, and the paths of its probes.
    Any,
    /// Nothing.
    None,
}

/// Images; `None` where no layer names one (there are no built-in images).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each field is the platform file's key of the same name")]
pub struct Images {
    pub envoy_proxy: Field<Option<String>>,
    pub authbridge_light: Field<Option<String>>,
    pub proxy_init: Field<Option<String>>,
    pub spiffe_helper: Field<Option<String>>,
    pub client_registration: Field<Option<String>>,
    pub authbridge: Field<Option<String>>,
    pub card_signer: Field<Option<String>>,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: Field<String>,
}

/// Ports and user of the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proxy {
    /// Envoy's outbound listener (15123).
    pub port: Field<u16>,
    /// Envoy's inbound listener (15124).
    pub inbound_port: Field<u16>,
    /// Envoy's admin port (9901).
    pub admin_port: Field<u16>,
    /// UID and GID of the proxy (1337).
    pub uid: Field<i64>,
    /// Whether a workload may keep what it receives out of the proxy.
    pub inbound_exclusions: Field<InboundExclusions>,
}

/// ResourceRequirements as JSON, by the platform file's key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "each field is the platform file's key of the same name")]
pub struct Resources {
    pub envoy_proxy: Field<Value>,
    pub proxy_init: Field<Value>,
    pub spiffe_helper: Field<Value>,
    pub client_registration: Field<Value>,
    pub authbridge: Field<Value>,
    pub card_signer: Field<Value>,
}

/// Defaults of the token exchange, used where ConfigMap `authbridge-config` has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// `tokenUrl`: stands in for `TOKEN_URL`; empty when unset.
    pub token_url: Field<String>,
    /// `defaultAudience`: stands in for `TARGET_AUDIENCE`; empty when unset.
    pub default_audience: Field<String>,
    /// `defaultScopes`: stands in for `TARGET_SCOPES`; `None` when nobody set it.
    pub default_scopes: Field<Option<Vec<String>>>,
}

/// Tracing of the agent: becomes `OTEL_*` on user containers when an endpoint is set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// OTLP endpoint, as written: what [`crate::domain::otlp::url_of_settings`] takes for an address.
    pub endpoint: Field<Option<String>>,
    /// Transport.
    pub protocol: Field<Option<TraceProtocol>>,
    /// 0.0 to 1.0.
    pub sampling_ratio: Field<Option<f64>>,
}

/// Everything a namespace's Pods are injected with, before the workload's own layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// Which plan is built.
    pub mode: Field<Mode>,
    /// Images and pull policy.
    pub images: Images,
    /// Ports and user.
    pub proxy: Proxy,
    /// Requests and limits.
    pub resources: Resources,
    /// SPIFFE trust domain, shown in `explain` (default `cluster.local`).
    pub trust_domain: Field<String>,
    /// SPIRE switch.
    pub spire: Field<SpireSwitch>,
    /// Native sidecar switch.
    pub native_sidecars: Field<NativeSidecars>,
    /// Token exchange defaults.
    pub token_exchange: TokenExchange,
    /// Tracing.
    pub trace: Trace,
    /// Base of the runtime YAML: `authbridge-runtime-config`'s `config.yaml`, as parsed, `{}` when absent.
    pub runtime_base: Value,
    /// Facts the resolver noticed (unknown mode, key not allowed, unreadable ConfigMap), one per occurrence.
    #[serde(skip)]
    pub notices: Vec<Notice>,
    /// A ConfigMap cannot be read, and this process does not know what it said before: Pods may run with that.
    #[serde(skip)]
    pub unread: bool,
    /// A ConfigMap has not been read yet: what holds here is not known.
    #[serde(skip)]
    pub pending: bool,
    /// A ConfigMap that is over a bound, where nobody knows what it said before: what holds here cannot be known until it is smaller.
    #[serde(skip)]
    pub unknown: Option<Unknown>,
}

/// Which ConfigMap nothing can be known of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// `ConfigMap namespace/name`.
    pub place: String,
    /// The rest of the sentence: which bound it is over.
    pub bound: String,
}

/// Something a person should hear about, found while resolving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which warning.
    pub reason: crate::domain::reason::Reason,
    /// The facts: what, where, what is used instead.
    pub text: String,
}

impl Trace {
    /// Whether any member is set.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.endpoint.value.is_some() || self.protocol.value.is_some() || self.sampling_ratio.value.is_some()
    }
}

impl SpireSwitch {
    /// The value users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SpireSwitch::Auto => "auto",
            SpireSwitch::Required => "required",
            SpireSwitch::Disabled => "disabled",
        }
    }
}

impl InboundExclusions {
    /// The value users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            InboundExclusions::Any => "any",
            InboundExclusions::None => "none",
        }
    }
}

impl NativeSidecars {
    /// The value users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NativeSidecars::Auto => "auto",
            NativeSidecars::Disabled => "disabled",
        }
    }
}

impl Resolved {
    /// What is compiled in: upstream's classic defaults, without images.
    #[must_use]
    pub fn built_in() -> Self {
        let image = || Field::built_in(None);
        let resources = |requests: [&str; 2], limits: [&str; 2]| {
            Field::built_in(json!({
                "requests": {"cpu": requests[0], "memory": requests[1]},
                "limits": {"cpu": limits[0], "memory": limits[1]},
            }))
        };
        Self {
            mode: Field::built_in(Mode::EnvoySidecar),
            images: Images {
                envoy_proxy: image(),
                authbridge_light: image(),
                proxy_init: image(),
                spiffe_helper: image(),
                client_registration: image(),
                authbridge: image(),
                card_signer: image(),
                pull_policy: Field::built_in("IfNotPresent".to_owned()),
            },
            proxy: Proxy {
                port: Field::built_in(15123),
                inbound_port: Field::built_in(15124),
                admin_port: Field::built_in(9901),
                uid: Field::built_in(1337),
                inbound_exclusions: Field::built_in(InboundExclusions::Any),
            },
            resources: Resources {
                envoy_proxy: resources(["50m", "64Mi"], ["200m", "256Mi"]),
                proxy_init: resources(["10m", "10Mi"], ["10m", "10Mi"]),
                spiffe_helper: resources(["50m", "64Mi"], ["100m", "128Mi"]),
                client_registration: resources(["50m", "64Mi"], ["100m", "128Mi"]),
                authbridge: resources(["100m", "128Mi"], ["300m", "384Mi"]),
                card_signer: resources(["10m", "16Mi"], ["100m", "64Mi"]),
            },
            trust_domain: Field::built_in("cluster.local".to_owned()),
            spire: Field::built_in(SpireSwitch::Auto),
            native_sidecars: Field::built_in(NativeSidecars::Auto),
            token_exchange: TokenExchange {
                token_url: Field::built_in(String::new()),
                default_audience: Field::built_in(String::new()),
                default_scopes: Field::built_in(None),
            },
            trace: Trace {
                endpoint: Field::built_in(None),
                protocol: Field::built_in(None),
                sampling_ratio: Field::built_in(None),
            },
            runtime_base: json!({}),
            notices: Vec::new(),
            unread: false,
            pending: false,
            unknown: None,
        }
    }

    /// Every field with its provenance, in documentation order.
    pub fn fields(&self) -> impl Iterator<Item = Shown<'_>> {
        KEYS.iter().filter_map(|key| key.shown(self))
    }
}
