//! The configuration in force in one namespace, every field with its provenance.
//!
//! Resolved once per change of the platform file or the namespace, not per review; the workload's own layers
//! (Pod annotations, AgentRuntime) are laid over it in `admission`.

use serde_json::Value;

use super::layers::Field;
use crate::domain::mode::Mode;

/// When SPIRE parts are injected (design, deviations table, SPIRE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpireSwitch {
    /// When CSIDriver `csi.spiffe.io` exists.
    Auto,
    /// Always; without the driver the Pod waits, and a warning says so.
    Required,
    /// Never.
    Disabled,
}

/// Whether sidecars are init containers with `restartPolicy: Always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeSidecars {
    /// When the API server is 1.29 or later.
    Auto,
    /// Regular containers, upstream's shape.
    Disabled,
}

/// `http` or `grpc`, as users write it (`spec/agentruntime.md`, `trace.protocol`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceProtocol {
    /// `grpc`.
    Grpc,
    /// `http`, written to Pods as `http/protobuf`.
    Http,
}

/// Images; `None` where no layer names one (there are no built-in images).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is the platform file's key of the same name")]
pub struct Images {
    pub envoy_proxy: Field<Option<String>>,
    pub authbridge_light: Field<Option<String>>,
    pub proxy_init: Field<Option<String>>,
    pub spiffe_helper: Field<Option<String>>,
    pub client_registration: Field<Option<String>>,
    pub authbridge: Field<Option<String>>,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: Field<String>,
}

/// Ports and user of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Envoy's outbound listener (15123).
    pub port: Field<u16>,
    /// Envoy's inbound listener (15124).
    pub inbound_port: Field<u16>,
    /// Envoy's admin port (9901).
    pub admin_port: Field<u16>,
    /// UID and GID of the proxy (1337).
    pub uid: Field<i64>,
}

/// ResourceRequirements as JSON, by the platform file's key.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each field is the platform file's key of the same name")]
pub struct Resources {
    pub envoy_proxy: Field<Value>,
    pub proxy_init: Field<Value>,
    pub spiffe_helper: Field<Value>,
    pub client_registration: Field<Value>,
    pub authbridge: Field<Value>,
}

/// Defaults of the token exchange, used where ConfigMap `authbridge-config` has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenExchange {
    /// `tokenUrl`: stands in for `TOKEN_URL`; empty when unset.
    pub token_url: Field<String>,
    /// `defaultAudience`: stands in for `TARGET_AUDIENCE`; empty when unset.
    pub default_audience: Field<String>,
    /// `defaultScopes`: stands in for `TARGET_SCOPES`; `None` when nobody set it.
    pub default_scopes: Field<Option<Vec<String>>>,
}

/// Tracing of the agent: becomes `OTEL_*` on user containers when an endpoint is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// OTLP endpoint.
    pub endpoint: Field<Option<String>>,
    /// Transport.
    pub protocol: Field<Option<TraceProtocol>>,
    /// 0.0 to 1.0.
    pub sampling_ratio: Field<Option<f64>>,
}

/// Everything a namespace's Pods are injected with, before the workload's own layers.
#[derive(Debug, Clone, PartialEq)]
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
    pub notices: Vec<Notice>,
}

/// Something a person should hear about, found while resolving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which warning.
    pub reason: crate::domain::reason::Reason,
    /// The facts: what, where, what is used instead.
    pub text: String,
}
