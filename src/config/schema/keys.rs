//! Every key of the platform file, one row each: where it stands, what it must be, what it changes.
//!
//! The keys are those that the Go operator reads, and ours (docs/reference/platform.md).

use serde_json::Value;

use super::platform::ProcessSettings;
use super::walk::Problem;
use super::{builds, cards, kaos, quantity, read, show::Show, trust};
use crate::config::layers::{Field, Layer, Shadowed};
use crate::config::resolved::Resolved;

/// One key.
pub struct Key {
    /// Path from the top, dots between names.
    pub path: &'static str,
    /// What it is for, for the generated reference.
    pub help: &'static str,
    pub(super) check: fn(&Value) -> Result<(), Problem>,
    pub(super) effect: Effect,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a key changes.
pub(super) enum Effect {
    /// A field of [`Resolved`]; a namespace may set it when `namespaceOverrides` allows.
    Field { lay: fn(&mut Resolved, &Layer, &Value), show: fn(&Resolved) -> Shown<'_> },
    /// The process as a whole; only the platform file sets it.
    Process(fn(&mut ProcessSettings, &Value)),
    /// Nothing: an upstream version knew it. Everything below it is accepted.
    Retired,
}

/// A resolved field, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Shown<'a> {
    /// Path of its key in the platform file.
    pub path: &'static str,
    /// The value in force.
    pub value: String,
    /// Who set it.
    pub layer: &'a Layer,
    /// Values it shadows, weakest first.
    pub shadowed: &'a [Shadowed],
}

impl Key {
    /// Whether an earlier operator knew this key and nothing consumes it.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        matches!(self.effect, Effect::Retired)
    }

    /// Whether a namespace may set it when the platform file allows.
    #[must_use]
    pub fn is_overridable(&self) -> bool {
        matches!(self.effect, Effect::Field { .. })
    }

    /// Lays `value` over the field this key stands for; nothing happens for keys of the process.
    pub(crate) fn lay(&self, resolved: &mut Resolved, layer: &Layer, value: &Value) {
        if let Effect::Field { lay, .. } = self.effect {
            lay(resolved, layer, value);
        }
    }

    /// What the key stands for in `resolved`; `None` for keys of the process.
    #[must_use]
    pub fn shown<'a>(&self, resolved: &'a Resolved) -> Option<Shown<'a>> {
        match self.effect {
            Effect::Field { show, .. } => Some(show(resolved)),
            _ => None,
        }
    }
}

/// The key at `path`.
#[must_use]
pub fn key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

fn replace<T: Clone + Show>(field: &mut Field<T>, layer: &Layer, value: T) {
    *field = field.clone().over(layer.clone(), value, T::show);
}

fn shown<'a, T: Show>(path: &'static str, field: &'a Field<T>) -> Shown<'a> {
    Shown { path, value: field.value.show(), layer: &field.layer, shadowed: &field.shadowed }
}

macro_rules! field {
    ($path:literal, $($field:ident).+, $read:path, $help:literal) => {
        Key {
            path: $path,
            help: $help,
            check: |value| $read(value).map(drop),
            effect: Effect::Field {
                lay: |resolved, layer, value| {
                    if let Ok(value) = $read(value) {
                        replace(&mut resolved.$($field).+, layer, value);
                    }
                },
                show: |resolved| shown($path, &resolved.$($field).+),
            },
        }
    };
}

macro_rules! resources {
    ($path:literal, $field:ident, $help:literal) => {
        Key {
            path: $path,
            help: $help,
            check: quantity::check_requirements,
            effect: Effect::Field {
                lay: |resolved, layer, value| {
                    let merged = quantity::merged(&resolved.resources.$field.value, value);
                    replace(&mut resolved.resources.$field, layer, merged);
                },
                show: |resolved| shown($path, &resolved.resources.$field),
            },
        }
    };
}

macro_rules! process {
    ($path:literal, $($field:ident).+, $read:path, $help:literal) => {
        Key {
            path: $path,
            help: $help,
            check: |value| $read(value).map(drop),
            effect: Effect::Process(|process, value| {
                if let Ok(value) = $read(value) {
                    process.$($field).+ = value;
                }
            }),
        }
    };
}

macro_rules! retired {
    ($path:literal, $help:literal) => {
        Key { path: $path, help: $help, check: |_| Ok(()), effect: Effect::Retired }
    };
}

/// Every key, in documentation order.
pub const KEYS: &[Key] = &[
    field!("mode", mode, read::mode, "which sidecars are injected: envoy-sidecar, proxy-sidecar or waypoint"),
    field!("images.envoyProxy", images.envoy_proxy, read::some_word, "Envoy with the ext_proc server"),
    field!("images.authbridgeLight", images.authbridge_light, read::some_word, "proxy of mode proxy-sidecar"),
    field!("images.proxyInit", images.proxy_init, read::some_word, "installs the redirection rules"),
    field!("images.spiffeHelper", images.spiffe_helper, read::some_word, "fetches SVIDs"),
    field!("images.clientRegistration", images.client_registration, read::some_word, "registers the OAuth client"),
    field!("images.authbridge", images.authbridge, read::some_word, "combined sidecar, gate combinedSidecar"),
    field!(
        "images.cardSigner",
        images.card_signer,
        read::some_word,
        "signs the cards of agents that ask for it: Drawbridge's own image"
    ),
    process!("images.kaosAgent", kaos.image_agent, read::some_word, "runs Agents of KAOS"),
    process!("images.kaosLitellm", kaos.image_litellm, read::some_word, "runs proxies: ModelAPIs with mode Proxy"),
    process!("images.kaosOllama", kaos.image_ollama, read::some_word, "runs hosted models: ModelAPIs with mode Hosted"),
    process!(
        "images.kaosMcpServer",
        kaos.image_mcp_server,
        read::some_word,
        "runs tools that are text in an old spelling, by python -m mcptools.server; unset: the runtime python-string of the registry"
    ),
    process!("images.kaosPython", kaos.image_python, read::some_word, "runs tools that are Python packages"),
    field!("images.pullPolicy", images.pull_policy, read::pull_policy, "Always, IfNotPresent or Never"),
    field!("proxy.port", proxy.port, read::port, "Envoy's outbound listener"),
    field!("proxy.inboundProxyPort", proxy.inbound_port, read::port, "Envoy's inbound listener"),
    field!("proxy.adminPort", proxy.admin_port, read::port, "Envoy's admin port, on loopback"),
    field!("proxy.uid", proxy.uid, read::uid, "user and group of the proxy, exempt from redirection"),
    field!(
        "proxy.inboundExclusions",
        proxy.inbound_exclusions,
        read::inbound_exclusions,
        "any: workloads may keep inbound ports out of the proxy, and paths of their probes are open; none: neither"
    ),
    resources!("resources.envoyProxy", envoy_proxy, "requests and limits of envoy-proxy and authbridge-proxy"),
    resources!("resources.proxyInit", proxy_init, "requests and limits of proxy-init"),
    resources!("resources.spiffeHelper", spiffe_helper, "requests and limits of spiffe-helper"),
    resources!("resources.clientRegistration", client_registration, "requests and limits of the registration sidecar"),
    resources!("resources.authbridge", authbridge, "requests and limits of the combined sidecar"),
    resources!("resources.cardSigner", card_signer, "requests and limits of sign-agentcard"),
    field!("tokenExchange.tokenUrl", token_exchange.token_url, read::word_or_empty, "stands in for TOKEN_URL"),
    field!(
        "tokenExchange.defaultAudience",
        token_exchange.default_audience,
        read::word_or_empty,
        "stands in for TARGET_AUDIENCE"
    ),
    field!(
        "tokenExchange.defaultScopes",
        token_exchange.default_scopes,
        read::some_words,
        "stands in for TARGET_SCOPES"
    ),
    field!("spiffe.trustDomain", trust_domain, read::trust_domain, "trust domain of SPIFFE ids, shown by explain"),
    field!("spire", spire, read::spire, "SPIRE parts: auto (when the CSI driver exists), required or disabled"),
    field!(
        "nativeSidecars",
        native_sidecars,
        read::native_sidecars,
        "auto: init containers that keep running, from API server 1.29; disabled: regular containers"
    ),
    field!(
        "trace.endpoint",
        trace.endpoint,
        read::collector,
        "OTEL_EXPORTER_OTLP_ENDPOINT of user containers: a URL, or host:port, which becomes http://host:port"
    ),
    field!("trace.protocol", trace.protocol, read::trace_protocol, "grpc or http"),
    field!("trace.samplingRatio", trace.sampling_ratio, read::ratio, "share of traces that are kept, 0 to 1"),
    process!(
        "requireNamespaceLabel",
        require_namespace_label,
        read::boolean,
        "true: only namespaces labelled kagenti-enabled=true"
    ),
    process!(
        "namespaceOverrides",
        namespace_overrides,
        super::overrides::read,
        "keys (or their beginnings) that ConfigMaps labelled kagenti.io/defaults=true may set in their namespace"
    ),
    process!("keycloak.url", keycloak.url, read::url, "KEYCLOAK_URL of the ConfigMaps made for namespaces"),
    process!("keycloak.realm", keycloak.realm, read::word, "KEYCLOAK_REALM of the ConfigMaps made for namespaces"),
    process!(
        "keycloak.publicUrl",
        keycloak.public_url,
        read::some_url,
        "Keycloak's address as users log in at it: ISSUER and the audiences are made of it; without it they stay unset"
    ),
    process!(
        "rollout.onUpgrade",
        on_upgrade,
        read::on_upgrade,
        "auto: a change of this file or of the gates rolls the enrolled workloads it concerns, in waves; manual: it is \
         reported, and people roll them"
    ),
    process!(
        "rollout.delaySeconds",
        rollout_delay,
        read::seconds,
        "how long after a change of this file or of the gates, or a start of the controllers, the first wave begins: every \
         replica must have read it by then, and the kubelet takes up to 90 s to bring a changed ConfigMap to a Pod; 120 when unset"
    ),
    process!(
        "repair",
        repair,
        read::repair,
        "report: Pods that run unprotected or with an old configuration are reported; evict: they are also evicted, one \
         at a time, and not again for 5 minutes when what was made since is no better"
    ),
    process!(
        "enrolment.byWorkloadLabel",
        by_workload_label,
        read::some_boolean,
        "true: label kagenti.io/type on a Deployment, StatefulSet, DaemonSet, CronJob or Sandbox itself enrols it, as an \
         AgentRuntime would; false: such a label is for discovery alone; unset: it enrols unless it is older than this \
         installation, so that an upgrade rolls nobody"
    ),
    process!(
        "distribution",
        distribution,
        builds::distribution,
        "auto (openshift when the API server serves config.openshift.io/v1), kubernetes or openshift, where the cluster \
         assigns users and groups itself"
    ),
    process!(
        "agents.lockdown",
        builds.workloads.lockdown,
        builds::lockdown,
        "default: what an Agent relaxes is warned of; enforce: it is refused"
    ),
    process!(
        "beeai.allowBaseline",
        builds.workloads.beeai_baseline,
        read::boolean,
        "true: an Agent of beeai.dev may ask by annotation beeai.dev/security-profile: baseline to run as root and to write to its \
         own image"
    ),
    process!(
        "kaos.registryNamespace",
        kaos.registry_namespace,
        kaos::namespace,
        "where ConfigMap kaos-mcp-runtimes lists the runtimes of MCPServers; the namespace of Drawbridge when unset"
    ),
    process!(
        "kaos.operatorNamespaces",
        kaos.operator_namespaces,
        builds::namespaces,
        "namespaces in which Lease kaos-operator.kaos.tools of the Go operator counts, besides kaos-system, that of kaos.registryNamespace and \
         our own: while it is held there, the controllers of KAOS's kinds write nothing"
    ),
    process!(
        "kaos.gateway.enabled",
        kaos.gateway.enabled,
        read::boolean,
        "true: HTTPRoutes are made, where Gateway API is installed"
    ),
    process!(
        "kaos.gateway.name",
        kaos.gateway.name,
        kaos::gateway,
        "the Gateway that HTTPRoutes lead through; kaos-gateway when unset"
    ),
    process!(
        "kaos.gateway.namespace",
        kaos.gateway.namespace,
        kaos::namespace,
        "namespace of that Gateway; that of Drawbridge when unset"
    ),
    process!(
        "kaos.gateway.timeouts.agent",
        kaos.gateway.agent_timeout,
        kaos::timeout,
        "how long an Agent may take to answer that says nothing itself; 300s when unset, 0s for no limit"
    ),
    process!(
        "kaos.gateway.timeouts.modelAPI",
        kaos.gateway.model_api_timeout,
        kaos::timeout,
        "how long a ModelAPI may take to answer that says nothing itself; 120s when unset, 0s for no limit"
    ),
    process!(
        "kaos.gateway.timeouts.mcp",
        kaos.gateway.mcp_timeout,
        kaos::timeout,
        "how long an MCPServer may take to answer that says nothing itself; 60s when unset, 0s for no limit"
    ),
    process!(
        "kaos.telemetry.enabled",
        kaos.telemetry.enabled,
        read::boolean,
        "true: Agents, MCPServers and proxies that say nothing themselves send traces"
    ),
    process!(
        "kaos.telemetry.endpoint",
        kaos.telemetry.endpoint,
        read::some_word,
        "where traces are sent: an address that takes OTLP over gRPC"
    ),
    process!(
        "kaos.logLevel",
        kaos.log_level,
        kaos::log_level,
        "how much Agents and MCPServers of KAOS log: TRACE, DEBUG, INFO, WARNING or ERROR; INFO when unset"
    ),
    process!(
        "kaos.clusterDomain",
        kaos.cluster_domain,
        kaos::domain,
        "the domain that the addresses of Services end with; cluster.local when unset"
    ),
    process!(
        "kaos.servicePort80",
        kaos.service_port_80,
        read::boolean,
        "true: Agents and MCPServers are reached on port 80 as well, after port 8000"
    ),
    process!(
        "kaos.rollOnSecretChange",
        kaos.roll_on_secret_change,
        read::boolean,
        "true: Pods are made again, within about a minute, when a Secret or ConfigMap that their environment refers to has changed"
    ),
    process!(
        "kaos.toolDiscovery",
        kaos.tool_discovery,
        read::boolean,
        "true: each ready MCPServer is asked, about once in five minutes, which tools it offers; status.availableTools lists them"
    ),
    process!(
        "kaos.restrictModelAPIs",
        kaos.restrict_model_apis,
        read::boolean,
        "true: a ModelAPI is reached only by the Agents that name it, and from the Gateway's namespace (a NetworkPolicy each)"
    ),
    process!(
        "beeai.enabled",
        builds.workloads.beeai,
        read::boolean,
        "false: nothing is made or changed for Agents and AgentBuilds of BeeAI, and what was made stays; true when unset"
    ),
    process!(
        "beeai.takeover",
        builds.workloads.beeai_takeover,
        builds::takeover,
        "keep: a Deployment that the original BeeAI operator made runs on as it is until its Agent changes or carries annotation \
         beeai.dev/lockdown: now; lockdown: its Pods are made again, locked down, five Agents or a tenth of them at a time; keep when unset"
    ),
    process!(
        "beeai.tokenRegistries",
        builds.pipelines.token_registries,
        builds::registries,
        "registries, as host or host:port, to which the Git token of an AgentBuild of BeeAI may be sent as its login; ghcr.io when unset"
    ),
    process!(
        "beeai.registrySecrets",
        builds.pipelines.registry_secrets,
        read::boolean,
        "false: no Secret with the login of a registry is made from a token of an AgentBuild of BeeAI; true when unset"
    ),
    process!(
        "builds.insecureRegistries",
        builds.pipelines.insecure_registries,
        builds::registries,
        "registries, as host or host:port, to which builds of BeeAI push without TLS; registry.cr-system.svc.cluster.local:5000 when unset"
    ),
    process!(
        "builds.pipelineNamespaces",
        builds.pipelines.pipeline_namespaces,
        builds::namespaces,
        "namespaces whose templates and steps every AgentBuild may name, besides the operator's and its own"
    ),
    process!(
        "builds.insecureGit",
        builds.pipelines.insecure_git,
        read::boolean,
        "true: http:// repositories are allowed"
    ),
    process!(
        "builds.requireGitHosts",
        builds.pipelines.require_git_hosts,
        read::boolean,
        "true: a Secret with git credentials is used only when its annotation agent.kagenti.dev/git-hosts lists the host; \
         false: only a Secret that has the annotation is held to it"
    ),
    process!(
        "builds.privilegedSteps",
        builds.pipelines.privileged_steps,
        read::boolean,
        "true: steps outside the operator's namespace may be privileged and mount node paths"
    ),
    process!(
        "builds.trustBundle",
        builds.pipelines.trust_bundle,
        builds::config_map,
        "ConfigMap of the build's namespace with further certificate authorities under ca.crt, for git and registries"
    ),
    process!(
        "builds.environment",
        builds.pipelines.environment,
        builds::environment,
        "environment of build Pods, such as HTTPS_PROXY and NO_PROXY; never a credential"
    ),
    process!(
        "builds.nodeSelector",
        builds.pipelines.node_selector,
        builds::node_selector,
        "node selector of build Pods"
    ),
    process!("builds.tolerations", builds.pipelines.tolerations, builds::tolerations, "tolerations of build Pods"),
    process!(
        "builds.resources",
        builds.pipelines.resources,
        builds::resources,
        "requests and limits of each task of a build"
    ),
    process!(
        "builds.byContent",
        builds.pipelines.by_content,
        read::boolean,
        "true: an AgentBuild of a whole commit needs no run where a run of the same steps, arguments and builder images has made its image \
         already; false when unset"
    ),
    process!(
        "builds.history",
        builds.pipelines.history,
        builds::history,
        "PipelineRuns of a build that are kept: as many that succeeded, and as many that did not, 0 to 100, the last one \
         besides; 3 when unset"
    ),
    process!(
        "builds.lostRuns",
        builds.pipelines.lost_runs,
        builds::lost_runs,
        "PipelineRuns of one build that somebody may take away before they ended, 1 to 100: after the last of them the build \
         has failed instead of being tried again; 3 when unset"
    ),
    process!(
        "cards.trustDomains",
        cards.trust_domains,
        cards::trust_domains,
        "trust domains, besides spiffe.trustDomain of this file, that the identity of an agent may belong to: what an AgentCard or \
         an AgentRuntime names otherwise counts for nothing"
    ),
    process!(
        "cards.trustBundle.configMap.name",
        cards.config_map.name,
        builds::config_map,
        "ConfigMap with the authorities whose SVIDs sign agent cards, as SPIRE publishes it (PEM, SPIFFE bundle, JWK Set, or a map of \
         them by trust domain); without it and without a file no signature is judged"
    ),
    process!(
        "cards.trustBundle.configMap.namespace",
        cards.config_map.namespace,
        cards::namespace,
        "namespace of that ConfigMap; spire-system when unset"
    ),
    process!(
        "cards.trustBundle.configMap.key",
        cards.config_map.key,
        cards::key,
        "key of that ConfigMap; bundle.spiffe when unset"
    ),
    process!(
        "cards.trustBundle.file",
        cards.file,
        cards::file,
        "file with the authorities whose SVIDs sign agent cards, besides the ConfigMap or instead of it; read as often as this platform file"
    ),
    process!(
        "cards.trustBundle.trustDomain",
        cards.bundle_domain,
        cards::trust_domain,
        "trust domain of a bundle that does not name its own (PEM, JWK Set); unset: the one that the URIs of all its certificates name"
    ),
    process!(
        "cards.trustBundle.maxAgeSeconds",
        cards.bundle_age,
        cards::bundle_age,
        "how long authorities count after their source was last readable, 60 to 2678400; 86400 when unset"
    ),
    process!(
        "cards.profiles",
        cards.profiles,
        cards::profiles,
        "what a signature over a card may cover, in the order in which it is tried: kagenti-v2, kagenti-v1, a2a-sdk-1.x, all when unset"
    ),
    process!(
        "cards.audit",
        cards.audit,
        read::boolean,
        "true, when unset, too: a card whose signature is not good is reported and stays in sync; false: it is not in sync, and what it \
         says is not shown"
    ),
    process!(
        "cards.expiredSvidSeconds",
        cards.tolerance,
        cards::tolerance,
        "how long a signature counts after the SVID that made it has expired (agents sign when their Pod starts), 0 to 2678400; 86400 \
         when unset"
    ),
    process!(
        "cards.minimumPeriodSeconds",
        cards.least_period,
        cards::least_period,
        "the shortest time between two readings of the card of one agent, whatever its AgentCard asks for, 5 to 86400, and never more than 300 where \
         cards.trustBundle or cards.proof is set, since a verdict counts no longer; 5 when unset"
    ),
    process!(
        "cards.proactiveRestart",
        cards.restarts,
        read::boolean,
        "whether Deployments and StatefulSets that sign their card when their Pods start (init container sign-agentcard, or annotation \
         agentcard.kagenti.dev/resign: \"true\" of the Pod template) are restarted before the signature counts no more, in turn with other \
         rollouts; never those whose Pods sign anew by themselves (annotation agentcard.kagenti.dev/sign: sidecar); false when unset"
    ),
    process!(
        "cards.restartGraceSeconds",
        cards.restart_grace,
        cards::restart_grace,
        "how long before the end of a signature its workload is restarted, 60 to 86400, and never more than a quarter of the time that a signature counts; also the least time between \
         two such restarts of a workload; 1800 when unset"
    ),
    process!(
        "cards.proof.enabled",
        cards.proof,
        read::boolean,
        "whether agents whose Service has a port named agent-tls are asked there over TLS, and prove by their SVID who they are; needs \
         drawbridge render --with-spire; false when unset"
    ),
    process!(
        "cards.proof.socket",
        cards.socket,
        cards::socket,
        "socket of the SPIFFE agent that says who Drawbridge is; unix:///spiffe-workload-api/spire-agent.sock when unset"
    ),
    process!(
        "cards.catalogue.enabled",
        cards.catalogue,
        read::boolean,
        "whether every replica of the webhook answers which agents are verified, and their cards, to callers with a token of a ServiceAccount for \
         audience drawbridge-catalogue; needs drawbridge render --with-catalogue; false when unset"
    ),
    process!(
        "cards.trust",
        cards.trust.default,
        trust::some_level,
        "what follows from what cards prove, in namespaces without label agent.kagenti.dev/trust: off, audit (Pods of verified agents are \
         labelled), enforced (agents that are not verified reach only what they need to become so), enforced-all (the same for every Pod); \
         audit when unset and a trust bundle is set, else off"
    ),
    process!(
        "cards.trustFloor",
        cards.trust.floor,
        trust::level,
        "the least level of trust that a namespace may choose by label agent.kagenti.dev/trust; off when unset"
    ),
    process!(
        "cards.verifiedPeers",
        cards.trust.verified_peers,
        trust::verified_peers,
        "which verified agents reach a verified agent: those of its namespace, those of namespaces with kagenti-enabled: \"true\" (enabled), or \
         all; or those that name it, and it reaches only whom it names (declared); namespace when unset"
    ),
    process!(
        "cards.ingressPeers",
        cards.trust.ingress,
        trust::peers,
        "who else reaches verified agents, such as a gateway, a user interface or Prometheus: a list of peers, each with service \
         (namespace/name), or namespace and podLabels, or cidr; and ports"
    ),
    process!(
        "cards.restrictiveEgress",
        cards.trust.egress,
        trust::peers,
        "whom agents reach that are not verified, besides the API server and what their sidecars need to become ready: peers as above; one \
         named by service opens the cluster's DNS as well"
    ),
    process!(
        "cards.restrictiveDNS",
        cards.trust.dns,
        read::boolean,
        "whether agents that are not verified reach the cluster's DNS in any case; false when unset"
    ),
    retired!("images.authbridgeLite", "Drawbridge has no mode lite"),
    retired!("resources.authbridgeLite", "Drawbridge has no mode lite"),
    retired!("proxy.transparentPort", "Drawbridge has no transparent egress listener"),
    retired!("proxy.transparentInboundPort", "Drawbridge has no transparent inbound listener"),
    retired!("proxy.iptablesCmd", "proxy-init chooses the tool itself"),
    retired!("proxy.allowedEgressEnforcement", "Drawbridge has no egress enforcement of the proxy"),
    retired!("proxy.allowedInboundInterception", "Drawbridge has one way of interception for each mode"),
    retired!("spiffe.socketPath", "the path in the Pod is fixed: /spiffe-workload-api/spire-agent.sock"),
    retired!("spiffe.helperConfig", "edit ConfigMap spiffe-helper-config of the operator's namespace instead"),
    retired!("observability", "use trace, and the flags of the process"),
    retired!("sidecars", "use the feature gates, or the labels of the Pod"),
    retired!("ibac", "Drawbridge has no plugins of ibac"),
];

/// The resource requirements of every sidecar, by the path of their key.
pub(crate) fn requirements(resolved: &Resolved) -> [(&'static str, &Value); 6] {
    let resources = &resolved.resources;
    [
        ("resources.envoyProxy", &resources.envoy_proxy.value),
        ("resources.proxyInit", &resources.proxy_init.value),
        ("resources.spiffeHelper", &resources.spiffe_helper.value),
        ("resources.clientRegistration", &resources.client_registration.value),
        ("resources.authbridge", &resources.authbridge.value),
        ("resources.cardSigner", &resources.card_signer.value),
    ]
}

/// The first request above its limit.
pub(crate) fn requirements_conflict(requirements: &Value) -> Option<String> {
    quantity::conflict(requirements)
}
