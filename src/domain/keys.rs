//! Every label, annotation, object, container, volume and port name, once: here those of injection, enrolment and the installation itself, below
//! those of one room each.
//!
//! Contract names are those that users of the Go operators have in their manifests (docs/reference/keys.md). The prefix `kagenti.io` stands only
//! here, because upstream has since been renamed and both will be spoken.

mod beeai;
mod builds;
mod cards;
mod kaos;
mod trust;

pub use beeai::*;
pub use builds::*;
pub use cards::*;
pub use kaos::*;
pub use trust::*;

/// Prefix of the labels and annotations that users write.
pub const PREFIX: &str = "kagenti.io/";
/// Pod label: `agent` or `tool`; what enrols a Pod.
pub const LABEL_TYPE: &str = "kagenti.io/type";
/// Pod label: `disabled` opts the Pod out.
pub const LABEL_INJECT: &str = "kagenti.io/inject";
/// Value of [`LABEL_INJECT`] that opts out.
pub const INJECT_DISABLED: &str = "disabled";
/// Pod label: `false` leaves out envoy-proxy and proxy-init.
pub const LABEL_ENVOY_PROXY: &str = "kagenti.io/envoy-proxy-inject";
/// Pod label: `false` leaves out the SPIRE parts.
pub const LABEL_SPIFFE_HELPER: &str = "kagenti.io/spiffe-helper-inject";
/// Pod label: `true` asks for the registration sidecar.
pub const LABEL_CLIENT_REGISTRATION: &str = "kagenti.io/client-registration-inject";
/// Namespace label: `false` opts the namespace out; `true` is needed with `requireNamespaceLabel`.
pub const LABEL_NAMESPACE_ENABLED: &str = "kagenti-enabled";
/// Namespace label: the Pod Security level that is enforced.
pub const LABEL_POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";
/// Label of ConfigMaps whose `config.yaml` is a namespace layer of the configuration.
pub const LABEL_DEFAULTS: &str = "kagenti.io/defaults";
/// Ownership marker that upstream's readers expect on what the webhook needs.
pub const LABEL_MANAGED_BY: &str = "kagenti.io/managed-by";
/// Value of [`LABEL_MANAGED_BY`] on ServiceAccounts made for injected Pods.
pub const MANAGED_BY_WEBHOOK: &str = "webhook";
/// Ownership marker of Kubernetes' recommended labels.
pub const LABEL_APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL_APP_MANAGED_BY`] that we write.
pub const MANAGED_BY_DRAWBRIDGE: &str = "drawbridge";
/// Marks an object of a kind whose Agents, ModelAPIs or MCPServers own what we make: policies that ask whether a namespace holds one of its
/// kind look at those that carry it, and not at each of them.
pub const LABEL_POLICY_PARAMETER: &str = "agent.kagenti.dev/policy-parameter";
/// The only value of [`LABEL_POLICY_PARAMETER`].
pub const POLICY_PARAMETER: &str = "true";
/// Value of [`LABEL_APP_MANAGED_BY`] that the Go operator wrote; read as ours when owner and name agree.
pub const MANAGED_BY_UPSTREAM: &str = "kagenti-operator";
/// Label the Deployment and StatefulSet controllers put on Pods of one template.
pub const LABEL_POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Pod annotation: which mode; see [`crate::domain::mode::Mode`].
pub const ANNOTATION_MODE: &str = "kagenti.io/authbridge-mode";
/// Pod annotation: comma list of outbound ports that bypass the proxy.
pub const ANNOTATION_OUTBOUND_EXCLUDE: &str = "kagenti.io/outbound-ports-exclude";
/// Pod annotation: comma list of inbound ports that bypass the proxy.
pub const ANNOTATION_INBOUND_EXCLUDE: &str = "kagenti.io/inbound-ports-exclude";
/// Pod annotation: name of the Secret with operator-managed client credentials.
pub const ANNOTATION_CREDENTIALS: &str = "kagenti.io/keycloak-client-credentials-secret-name";
/// Template annotation: hash of everything that would change the injected result.
pub const ANNOTATION_CONFIG_HASH: &str = "kagenti.io/config-hash";
/// Pod annotation: what we injected, part by part, with a digest each (JSON). Ours, protected.
pub const ANNOTATION_STATUS: &str = "kagenti.io/authbridge-status";
/// Pod annotation: the runtime configuration (YAML), delivered by a downwardAPI volume. Ours, protected.
pub const ANNOTATION_RUNTIME_CONFIG: &str = "kagenti.io/authbridge-config";
/// Pod annotation: `auto` or `disabled`; overrides the platform's `nativeSidecars`.
pub const ANNOTATION_NATIVE_SIDECARS: &str = "kagenti.io/native-sidecars";
/// Annotation the API server puts on static Pods' mirrors.
pub const ANNOTATION_MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation of a ConfigMap that `render` or a controller wrote: digest of the data it was given last; a different digest
/// of the data in force means that a person edited it.
pub const ANNOTATION_CONTENT_DIGEST: &str = "kagenti.io/content-digest";
/// Annotation of a ReplicaSet, StatefulSet, DaemonSet or Job: the fact it was last told to try again for.
pub const ANNOTATION_RETRY: &str = "kagenti.io/retry-for";
/// Annotation of a Job that was suspended to replace Pods behind the scheduling gate; resumed and removed by us.
pub const ANNOTATION_SUSPENDED: &str = "kagenti.io/suspended-for-gate";
/// Annotation of a Sandbox: the Pod its controller has made for it; taken away so that it makes another one.
pub const ANNOTATION_SANDBOX_POD: &str = "agents.x-k8s.io/pod-name";
/// Annotation of an enrolled workload: the hash that a change of configuration rolled it to, for the waves.
pub const ANNOTATION_ROLLED_FOR: &str = "kagenti.io/rolled-for";
/// Annotation of a Sandbox whose Pod is being made again: `true`.
pub const ANNOTATION_RESTART_PENDING: &str = "kagenti.io/restart-pending";
/// Annotation beside [`ANNOTATION_RESTART_PENDING`]: the replicas before.
pub const ANNOTATION_RESTART_REPLICAS: &str = "kagenti.io/restart-replicas";
/// Value of [`ANNOTATION_CONFIG_HASH`] where nothing is injected: SHA-256 of `{}`.
pub const HASH_OF_NOTHING: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
/// Finalizer of AgentRuntimes.
pub const FINALIZER: &str = "kagenti.io/cleanup";
/// Field manager of what enrolment applies to workloads.
pub const MANAGER_ENROLMENT: &str = "drawbridge/enrolment";
/// Field manager of what the Agent's controller applies.
pub const MANAGER_AGENT: &str = "drawbridge/agent";
/// Field manager under which the Go operator updated workloads. That of every operator that gives it no other name is called the same: alone the
/// name says nothing.
pub const MANAGER_UPSTREAM: &str = "manager";
/// Scheduling gate that the MutatingAdmissionPolicy adds and every allowing answer removes.
pub const SCHEDULING_GATE: &str = "drawbridge/injection";

/// Container: Envoy with the ext_proc server.
pub const CONTAINER_ENVOY: &str = "envoy-proxy";
/// Init container: installs the redirection rules.
pub const CONTAINER_PROXY_INIT: &str = "proxy-init";
/// Container: fetches SVIDs.
pub const CONTAINER_SPIFFE_HELPER: &str = "spiffe-helper";
/// Container: registers the workload at Keycloak.
pub const CONTAINER_REGISTRATION: &str = "kagenti-client-registration";
/// Container: the reverse and forward proxy of mode proxy-sidecar.
pub const CONTAINER_AUTHBRIDGE_PROXY: &str = "authbridge-proxy";
/// Container: the combined sidecar behind gate `combinedSidecar`.
pub const CONTAINER_AUTHBRIDGE: &str = "authbridge";
/// Name of the container that gets an Agent's image; without one of this name it is the first.
pub const CONTAINER_AGENT: &str = "agent";
/// All container names that are ours.
pub const OUR_CONTAINERS: [&str; 6] = [
    CONTAINER_ENVOY,
    CONTAINER_PROXY_INIT,
    CONTAINER_SPIFFE_HELPER,
    CONTAINER_REGISTRATION,
    CONTAINER_AUTHBRIDGE_PROXY,
    CONTAINER_AUTHBRIDGE,
];

/// Whether a container of that name may be one that we added. The signer is not among [`OUR_CONTAINERS`]: people bring their own under its name.
#[must_use]
pub fn may_be_ours(container: &str) -> bool {
    OUR_CONTAINERS.contains(&container) || container == CONTAINER_SIGNER
}

/// Label of a Pod or Namespace: the waypoint that its traffic goes through (Istio's ambient mesh).
pub const LABEL_USE_WAYPOINT: &str = "istio.io/use-waypoint";
/// Annotation: the variable that tells the agent its port, in mode proxy-sidecar.
pub const ANNOTATION_PORT_VARIABLE: &str = "kagenti.io/port-variable";
/// Containers that traffic goes through.
pub const PROXY_CONTAINERS: [&str; 3] = [CONTAINER_ENVOY, CONTAINER_AUTHBRIDGE_PROXY, CONTAINER_AUTHBRIDGE];
/// Capabilities that lead a container around the proxy of its Pod, without their prefix.
pub const CAPABILITIES_AROUND_PROXY: [&str; 6] = ["NET_ADMIN", "ALL", "SETUID", "SYS_ADMIN", "BPF", "SYS_PTRACE"];

/// Volume: emptyDir shared by our containers.
pub const VOLUME_SHARED: &str = "shared-data";
/// Volume: the SPIRE CSI driver.
pub const VOLUME_SPIRE_SOCKET: &str = "spire-agent-socket";
/// Volume: helper.conf.
pub const VOLUME_SPIFFE_HELPER: &str = "spiffe-helper-config";
/// Volume: SVIDs.
pub const VOLUME_SVID: &str = "svid-output";
/// Volume: envoy.yaml.
pub const VOLUME_ENVOY: &str = "envoy-config";
/// Volume: routes.yaml.
pub const VOLUME_ROUTES: &str = "authproxy-routes";
/// Most containers of a Pod that is injected, init containers included. What we change in each is noted in
/// [`ANNOTATION_STATUS`] (at most some 2 KiB a container), and Kubernetes takes 256 KiB of annotations in all; answering
/// costs up to ten times the size of the question beyond that.
pub const CONTAINERS_MOST: usize = 100;
/// Every variable that may be set in a container of the user's, but for one that [`ANNOTATION_PORT_VARIABLE`] names. Of a Pod that is
/// reviewed for the first time, only variables of these names are read: one that joins must join here.
pub const AGENT_VARIABLES: [&str; 11] = [
    "PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
];
/// Volume: downwardAPI copy of [`ANNOTATION_RUNTIME_CONFIG`].
pub const VOLUME_RUNTIME_CONFIG: &str = "authbridge-runtime-config";
/// Volume: projected credentials Secret, in place of [`VOLUME_SHARED`] in our containers.
pub const VOLUME_CREDENTIALS: &str = "kagenti-credentials";
/// Volume: the card that the signer reads.
pub const VOLUME_UNSIGNED_CARD: &str = "unsigned-card";
/// Volume: the card that the signer writes.
pub const VOLUME_SIGNED_CARD: &str = "signed-card";
/// Volume: the signer's token for the API server.
pub const VOLUME_SIGNER_TOKEN: &str = "sign-agentcard-token";

/// All volume names that are ours.
pub const OUR_VOLUMES: [&str; 11] = [
    VOLUME_SHARED,
    VOLUME_SPIRE_SOCKET,
    VOLUME_SPIFFE_HELPER,
    VOLUME_SVID,
    VOLUME_ENVOY,
    VOLUME_ROUTES,
    VOLUME_RUNTIME_CONFIG,
    VOLUME_CREDENTIALS,
    VOLUME_UNSIGNED_CARD,
    VOLUME_SIGNED_CARD,
    VOLUME_SIGNER_TOKEN,
];

/// Where containers of ours see the client credentials.
pub const PATH_SHARED: &str = "/shared";
/// File of the client's id under [`PATH_SHARED`], and key of the credentials Secret.
pub const FILE_CLIENT_ID: &str = "client-id.txt";
/// File of the client's secret under [`PATH_SHARED`], and key of the credentials Secret.
pub const FILE_CLIENT_SECRET: &str = "client-secret.txt";
/// [`FILE_CLIENT_ID`] in full.
pub const PATH_CLIENT_ID: &str = "/shared/client-id.txt";
/// [`FILE_CLIENT_SECRET`] in full.
pub const PATH_CLIENT_SECRET: &str = "/shared/client-secret.txt";
/// Where containers of ours see SVIDs.
pub const PATH_SVID: &str = "/opt";

/// Port name: Envoy's outbound listener.
pub const PORT_NAME_ENVOY_OUTBOUND: &str = "envoy-outbound";
/// Port name: Envoy's inbound listener.
pub const PORT_NAME_ENVOY_INBOUND: &str = "envoy-inbound";
/// Port name: Envoy's admin interface.
pub const PORT_NAME_ENVOY_ADMIN: &str = "envoy-admin";
/// Port name: the ext_proc server.
pub const PORT_NAME_EXT_PROC: &str = "ext-proc";
/// Port name: where the proxy of mode proxy-sidecar receives.
pub const PORT_NAME_REVERSE_PROXY: &str = "reverse-proxy";
/// Port name: where the proxy of mode proxy-sidecar takes the agent's own calls.
pub const PORT_NAME_FORWARD_PROXY: &str = "forward-proxy";
/// Health, statistics and session ports, fixed in every AuthBridge image.
pub const AUTHBRIDGE_PORTS: [u16; 3] = [9091, 9093, 9094];
/// The transparent listener of some AuthBridge images.
pub const TRANSPARENT_PORT: u16 = 8082;

/// ConfigMap of environment values (`KEYCLOAK_URL`, `ISSUER`, …).
pub const CONFIG_MAP_AUTHBRIDGE: &str = "authbridge-config";
/// ConfigMap whose `config.yaml` is the base of the runtime configuration.
pub const CONFIG_MAP_RUNTIME: &str = "authbridge-runtime-config";
/// ConfigMap with `helper.conf`.
pub const CONFIG_MAP_SPIFFE_HELPER: &str = "spiffe-helper-config";
/// ConfigMap with `envoy.yaml`.
pub const CONFIG_MAP_ENVOY: &str = "envoy-config";
/// ConfigMap with `routes.yaml`.
pub const CONFIG_MAP_ROUTES: &str = "authproxy-routes";
/// Key of the platform ConfigMap, of [`CONFIG_MAP_RUNTIME`] and of namespace defaults: the YAML document.
pub const KEY_CONFIG: &str = "config.yaml";
/// Key of [`CONFIG_MAP_SPIFFE_HELPER`].
pub const KEY_SPIFFE_HELPER: &str = "helper.conf";
/// Key of [`CONFIG_MAP_ENVOY`].
pub const KEY_ENVOY: &str = "envoy.yaml";
/// Key of [`CONFIG_MAP_ROUTES`].
pub const KEY_ROUTES: &str = "routes.yaml";
/// The namespace ConfigMaps whose files are mounted into the Pod.
pub const MOUNTED_CONFIG_MAPS: [&str; 3] = [CONFIG_MAP_SPIFFE_HELPER, CONFIG_MAP_ENVOY, CONFIG_MAP_ROUTES];
/// Request header by which ext_proc learns the direction of a request; set by Envoy, never by a client.
pub const HEADER_DIRECTION: &str = "x-authbridge-direction";
/// Port of the ext_proc server in the Envoy container, on loopback.
pub const PORT_EXT_PROC: u16 = 9090;
/// Ports the AuthBridge binaries always listen on: ext_proc, and those of every image ([`AUTHBRIDGE_PORTS`]).
pub const SIDECAR_FIXED_PORTS: [u16; 4] =
    [PORT_EXT_PROC, AUTHBRIDGE_PORTS[0], AUTHBRIDGE_PORTS[1], AUTHBRIDGE_PORTS[2]];
/// The ConfigMaps a controller makes in every namespace with an enrolled workload.
pub const NAMESPACE_CONFIG_MAPS: [&str; 4] =
    [CONFIG_MAP_AUTHBRIDGE, CONFIG_MAP_SPIFFE_HELPER, CONFIG_MAP_ENVOY, CONFIG_MAP_ROUTES];
/// All fixed ConfigMap names that are watched by name.
pub const WATCHED_CONFIG_MAPS: [&str; 5] =
    [CONFIG_MAP_AUTHBRIDGE, CONFIG_MAP_RUNTIME, CONFIG_MAP_SPIFFE_HELPER, CONFIG_MAP_ENVOY, CONFIG_MAP_ROUTES];
/// Secret with the Keycloak administrator's credentials, in the agent namespace.
pub const SECRET_KEYCLOAK_ADMIN: &str = "keycloak-admin-secret";
/// Longest trust domain name (SPIFFE ID, 2.1).
pub const TRUST_DOMAIN_MAX: usize = 255;
/// CSI driver of SPIRE.
pub const CSI_DRIVER_SPIFFE: &str = "csi.spiffe.io";

/// Namespace of the operator unless `POD_NAMESPACE` says otherwise.
pub const OPERATOR_NAMESPACE: &str = "kagenti-system";
/// Namespaces the webhooks never see, besides the operator's own.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// The gate policy, its binding, and the ServiceAccount that parametrises it, which nothing runs under. Of built-in kinds a policy may take only those
/// as parameters that the API server watches from its start on: of others it stops hearing once no policy asks for them, and never begins again
/// (kubernetes/kubernetes#130887).
pub const GATE: &str = "drawbridge-gate";
/// On that ServiceAccount: the types of Pods that are gated, separated by commas.
pub const ANNOTATION_GATED_TYPES: &str = "kagenti.io/gated-types";
/// The ServiceAccount by which policy `drawbridge-trust-pods` knows where agents are cut off; nothing runs under it.
pub const ARMED: &str = "drawbridge-trust";
/// On that ServiceAccount: the uids of the namespaces in which agents are cut off, separated by commas.
pub const ANNOTATION_ARMED: &str = "agent.kagenti.dev/armed";
/// The same of those in which every Pod is.
pub const ANNOTATION_ARMED_ALL: &str = "agent.kagenti.dev/armed-all";
/// The ServiceAccounts that parametrise policies.
pub const PARAMETERS: [&str; 2] = [GATE, ARMED];
/// What is written on them.
pub const ANNOTATIONS_OF_PARAMETERS: [&str; 3] = [ANNOTATION_GATED_TYPES, ANNOTATION_ARMED, ANNOTATION_ARMED_ALL];
/// ConfigMap whose time of creation tells labels on workloads that were there before this installation from later ones.
pub const CONFIG_MAP_ENROLMENT: &str = "drawbridge-enrolment";
/// ConfigMap with the platform file, key `config.yaml`.
pub const CONFIG_MAP_PLATFORM: &str = "kagenti-platform-config";
/// ConfigMap with the feature gates, key `feature-gates.yaml`.
pub const CONFIG_MAP_GATES: &str = "kagenti-feature-gates";
/// Secret with the self-managed certificate authority.
pub const SECRET_AUTHORITY: &str = "drawbridge-webhook-ca";
/// Service in front of the webhook port.
pub const SERVICE_WEBHOOK: &str = "drawbridge-webhook";
/// Name of the Deployment of the processes with role controllers.
pub const DEPLOYMENT_CONTROLLERS: &str = "drawbridge-controllers";
/// Name of the Lease that decides which replica's controllers write.
pub const LEASE: &str = "drawbridge-controllers";
/// MutatingWebhookConfiguration and ValidatingWebhookConfiguration name.
pub const WEBHOOK_CONFIGURATION: &str = "drawbridge";
/// Policy that compares what is made for an Agent with that Agent.
pub const POLICY_OWN_AGENTS: &str = "drawbridge-own-agents";
/// Policy by which nothing is made for an Agent in a namespace that holds none.
pub const POLICY_OWN_AGENTS_NEW: &str = "drawbridge-own-agents-new";
/// Policy by which nothing is made for a build in a namespace that holds none.
pub const POLICY_OWN_BUILDS_NEW: &str = "drawbridge-own-builds-new";
/// Webhook entry that injects sidecars.
pub const WEBHOOK_INJECT: &str = "inject.kagenti.io";
/// Webhook entry that takes the trust label off new Pods that injection is not about.
pub const WEBHOOK_TRUST: &str = "trust.kagenti.io";
/// Warn-only webhook entry on workloads.
pub const WEBHOOK_EXPLAIN: &str = "explain.kagenti.io";
/// Webhook entry that judges AgentRuntimes.
pub const WEBHOOK_AGENT_RUNTIME: &str = "agentruntime.kagenti.io";
/// Webhook entry that completes AgentBuilds.
pub const WEBHOOK_COMPLETE_BUILD: &str = "magentbuild.kb.io";
/// Webhook entry that judges AgentBuilds.
pub const WEBHOOK_AGENT_BUILD: &str = "vagentbuild.kb.io";
/// Webhook entry that judges Agents.
pub const WEBHOOK_AGENT: &str = "vagent.kb.io";
/// Webhook entry that judges AgentCards.
pub const WEBHOOK_AGENT_CARD: &str = "vagentcard.kb.io";
/// Path of the webhook that judges AgentCards.
pub const PATH_AGENT_CARD: &str = "/validate-agent-kagenti-dev-v1alpha1-agentcard";
/// Path of the webhook that completes AgentBuilds.
pub const PATH_COMPLETE_BUILD: &str = "/mutate-agent-kagenti-dev-v1alpha1-agentbuild";
/// Path of the webhook that judges AgentBuilds.
pub const PATH_AGENT_BUILD: &str = "/validate-agent-kagenti-dev-v1alpha1-agentbuild";
/// Path of the webhook that judges Agents.
pub const PATH_AGENT: &str = "/validate-agent-kagenti-dev-v1alpha1-agent";
/// Path of the injecting webhook.
pub const PATH_INJECT: &str = "/mutate-workloads-authbridge";
/// Path of the webhook that judges AgentRuntimes.
pub const PATH_AGENT_RUNTIME: &str = "/validate-agent-kagenti-dev-v1alpha1-agentruntime";
/// Path of the warn-only webhook.
pub const PATH_EXPLAIN: &str = "/explain-workloads-authbridge";
/// Field manager of the certificate authority's Secret.
pub const MANAGER_AUTHORITY: &str = "drawbridge/authority";
/// Field manager of `caBundle` in webhook configurations.
pub const MANAGER_BUNDLE: &str = "drawbridge/bundle";
/// Who reports Events about certificates.
pub const MANAGER_CERTIFICATES: &str = "drawbridge/certificates";
/// Who reports Events about admission policies that are not there.
pub const MANAGER_POLICIES: &str = "drawbridge/policies";

/// The labels and annotations of that prefix that are read or written on workloads and their Pod templates. A workload may carry any number of others,
/// of any length: of those nothing is kept. One that joins must join here.
const OF_WORKLOADS: [&str; 22] = [
    LABEL_TYPE,
    LABEL_INJECT,
    LABEL_ENVOY_PROXY,
    LABEL_SPIFFE_HELPER,
    LABEL_CLIENT_REGISTRATION,
    LABEL_MANAGED_BY,
    LABELS_PROTOCOL[0],
    LABELS_PROTOCOL[1],
    ANNOTATION_MODE,
    ANNOTATION_OUTBOUND_EXCLUDE,
    ANNOTATION_INBOUND_EXCLUDE,
    ANNOTATION_CREDENTIALS,
    ANNOTATION_CONFIG_HASH,
    ANNOTATION_STATUS,
    ANNOTATION_NATIVE_SIDECARS,
    ANNOTATION_PORT_VARIABLE,
    ANNOTATION_CARD_PORT,
    ANNOTATION_RETRY,
    ANNOTATION_SUSPENDED,
    ANNOTATION_ROLLED_FOR,
    ANNOTATION_RESTART_PENDING,
    ANNOTATION_RESTART_REPLICAS,
];

/// Whether a label or annotation of a Pod template is one of the prefix that is read or written there.
#[must_use]
pub fn is_of_template(key: &str) -> bool {
    OF_WORKLOADS.contains(&key)
}

/// Whether a label or annotation of a workload is one that enrolment reads or writes.
#[must_use]
pub fn is_ours(key: &str) -> bool {
    OF_WORKLOADS.contains(&key) || matches!(key, LABEL_APP_MANAGED_BY | ANNOTATION_SANDBOX_POD)
}

/// Whether an annotation of a workload itself is one that is read there.
#[must_use]
pub fn is_of_workload(key: &str) -> bool {
    is_ours(key) || key == ANNOTATION_BUNDLE_HASH
}
