//! Every label, annotation, object, container, volume and port name, once.
//!
//! Contract names are those that users of the Go operators have in their manifests (docs/reference/keys.md). The prefix `kagenti.io` stands only
//! here, because upstream has since been renamed and both will be spoken.

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
/// Field manager under which the Go operator updated workloads.
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

/// Whether a label or annotation of a workload is one that enrolment reads or writes.
#[must_use]
pub fn is_ours(key: &str) -> bool {
    key.starts_with(PREFIX) || matches!(key, LABEL_APP_MANAGED_BY | ANNOTATION_SANDBOX_POD)
}

/// Whether an annotation of a workload itself is one that is read there.
#[must_use]
pub fn is_of_workload(key: &str) -> bool {
    is_ours(key) || key == ANNOTATION_BUNDLE_HASH
}

// AgentCards.

/// Beginning of the annotations and finalizers of AgentCards and their signing.
pub const PREFIX_CARD: &str = "agentcard.kagenti.dev/";
/// Name of the init container that signs an agent's card.
pub const CONTAINER_SIGNER: &str = "sign-agentcard";
/// Annotation of a Pod or Pod template: `true` has the card of its agent signed when a Pod starts, by [`CONTAINER_SIGNER`];
/// [`SIGN_SIDECAR`] has it signed anew by each renewal of the Pod's SVID besides.
pub const ANNOTATION_SIGN: &str = "agentcard.kagenti.dev/sign";
/// Value of [`ANNOTATION_SIGN`]: [`CONTAINER_SIGNER`] is a native sidecar, which stays.
pub const SIGN_SIDECAR: &str = "sidecar";
/// Annotation of a Pod or Pod template: `true` shows the signed card to its containers, as file [`KEY_SIGNED_CARD`] in [`PATH_SIGNED_CARD`].
pub const ANNOTATION_MOUNT_SIGNED: &str = "agentcard.kagenti.dev/mount-signed";
/// Annotation of a ConfigMap for a signed card that was made ahead of the signature, and holds none yet; the signer takes it off.
pub const ANNOTATION_AWAITS_SIGNATURE: &str = "agentcard.kagenti.dev/awaits-signature";
/// Where the signed card is written in a Pod.
pub const PATH_SIGNED_CARD: &str = "/app/.well-known";
/// End of the name of the ConfigMap that holds the card of a workload that is to be signed, behind the workload's name.
pub const SUFFIX_UNSIGNED_CARD: &str = "-card-unsigned";
/// Its key.
pub const KEY_UNSIGNED_CARD: &str = "agent.json";
/// Field manager of the signer, and `app.kubernetes.io/managed-by` of the ConfigMap that it makes itself.
pub const MANAGER_SIGNER: &str = "agentcard-signer";
/// Annotation of a Pod template: `true` says that its Pods sign their card when they start, without an init container of that name.
pub const ANNOTATION_RESIGN: &str = "agentcard.kagenti.dev/resign";
/// Annotation of a Pod template: when it was last restarted to have its card signed anew, RFC 3339.
pub const ANNOTATION_RESIGN_TRIGGER: &str = "agentcard.kagenti.dev/resign-trigger";
/// Annotation of a Pod template: the end of the certificate, or of its authority, for which that was done, RFC 3339.
pub const ANNOTATION_RESIGN_EXPIRY: &str = "agentcard.kagenti.dev/resign-leaf-expiry";
/// Annotation of a workload: why that was done ([`crate::domain::resign::Cause`]).
pub const ANNOTATION_RESIGN_CAUSE: &str = "agentcard.kagenti.dev/resign-cause";
/// Annotation of a workload: fingerprint of the authorities of which none vouched for its signature when it was last restarted for that.
pub const ANNOTATION_BUNDLE_HASH: &str = "agentcard.kagenti.dev/bundle-hash";
/// Annotation of an agent's workload: number or name of the port of its Service at which its card is asked for.
pub const ANNOTATION_CARD_PORT: &str = "kagenti.io/port";
/// What stands before a protocol's name in a label of a workload that speaks it.
pub const PREFIX_PROTOCOL: &str = "protocol.kagenti.io/";
/// Older labels of a workload whose value is the one protocol that it speaks, the newer one first.
pub const LABELS_PROTOCOL: [&str; 2] = ["kagenti.io/protocol", "kagenti.io/agent-protocol"];

/// Whether a label of an agent's workload is one that is read there.
#[must_use]
pub fn is_of_agent(key: &str) -> bool {
    is_ours(key) || key.starts_with(PREFIX_PROTOCOL) || key == LABEL_APP_NAME
}

// Trust.

/// Beginning of the labels and annotations of agents and their trust.
pub const PREFIX_AGENT: &str = "agent.kagenti.dev/";
/// Namespace label: how far trust is enforced ([`crate::domain::trust::TrustLevel`]).
pub const LABEL_TRUST: &str = "agent.kagenti.dev/trust";
/// Namespace label: whether callers of other namespaces find its verified agents in the catalogue ([`SHARED`]).
pub const LABEL_CATALOGUE: &str = "agent.kagenti.dev/catalogue";
/// The only value of [`LABEL_CATALOGUE`] that says so.
pub const SHARED: &str = "shared";
/// Whom the tokens of callers of the catalogue have to be for.
pub const AUDIENCE_CATALOGUE: &str = "drawbridge-catalogue";
/// Where the catalogue is answered.
pub const PATH_CATALOGUE: &str = "/.well-known/ai-catalog.json";
/// Port of the webhook's Service that leads to the catalogue.
pub const PORT_CATALOGUE: u16 = 8443;
/// Pod label: `true` while the agent's card proves who it is. Ours alone; NetworkPolicies select by it.
pub const LABEL_VERIFIED: &str = "agent.kagenti.dev/signature-verified";
/// The only value of [`LABEL_VERIFIED`].
pub const VERIFIED: &str = "true";
/// NetworkPolicy that cuts off whom nothing else opens; one in each namespace that enforces.
pub const DEFAULT_DENY: &str = "drawbridge-default-deny";
/// NetworkPolicy that cuts off whoever is in quarantine, both ways; only there while somebody is.
pub const QUARANTINE_POLICY: &str = "drawbridge-quarantine";
/// Namespace annotation: who of it is in quarantine ([`crate::domain::quarantine::Quarantine`]).
pub const ANNOTATION_QUARANTINE: &str = "agent.kagenti.dev/quarantine";
/// Namespace annotation: why, as JSON; for people and for `release --skill`.
pub const ANNOTATION_QUARANTINE_RECORD: &str = "agent.kagenti.dev/quarantine-record";
/// Pod label: it is in quarantine, and as whom. Ours alone; NetworkPolicies select by it.
pub const LABEL_QUARANTINED: &str = "agent.kagenti.dev/quarantined";
/// End of the name of an agent's NetworkPolicy, behind the name of its workload.
pub const SUFFIX_SIGNATURE_POLICY: &str = "-signature-policy";
/// Beginning of the name of the ClusterNetworkPolicy that stands beside [`DEFAULT_DENY`] of a namespace.
pub const PREFIX_CLUSTER_DENY: &str = "drawbridge-deny-";
/// Beginning of the name of the one beside [`QUARANTINE_POLICY`].
pub const PREFIX_CLUSTER_QUARANTINE: &str = "drawbridge-quarantine-";
/// Label of NetworkPolicies: whose they are; upstream's readers select by it.
pub const LABEL_POLICY_MANAGED_BY: &str = "managed-by";
/// Label of an agent's NetworkPolicy: the AgentCard.
pub const LABEL_POLICY_CARD: &str = "kagenti.dev/agentcard";
/// Label of an agent's NetworkPolicy: what it is for.
pub const LABEL_POLICY_TYPE: &str = "kagenti.dev/policy-type";
/// Value of [`LABEL_POLICY_TYPE`].
pub const POLICY_TYPE: &str = "signature-verification";
/// Annotation of an agent's NetworkPolicy that opens only what is declared: which declaration made which of its rules, as JSON.
pub const ANNOTATION_DECLARED: &str = "agent.kagenti.dev/declared";
/// Label that every namespace has, with its name.
pub const LABEL_NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

// Builds.

/// API group of Agent and AgentBuild.
pub const GROUP_AGENT: &str = "agent.kagenti.dev";
/// Label of Kubernetes' recommended set: on what runs an Agent, the Agent's name; its selector.
pub const LABEL_APP_NAME: &str = "app.kubernetes.io/name";
/// Label of Kubernetes' recommended set: what an object belongs to.
pub const LABEL_PART_OF: &str = "app.kubernetes.io/part-of";
/// Value of [`LABEL_PART_OF`] on PipelineRuns and claims; upstream's readers select by it.
pub const PART_OF_OPERATOR: &str = "kagenti-operator";
/// Label of Kubernetes' recommended set: on PipelineRuns and claims the build's name, on templates
/// [`COMPONENT_TEMPLATE`].
pub const LABEL_COMPONENT: &str = "app.kubernetes.io/component";
/// Value of [`LABEL_COMPONENT`] on template ConfigMaps.
pub const COMPONENT_TEMPLATE: &str = "pipeline-template";
/// Label of template ConfigMaps: their mode.
pub const LABEL_TEMPLATE_MODE: &str = "component.kagenti.ai/mode";
/// Label of ConfigMaps that hold a step; outside the operator's namespace nothing else is read as one.
pub const LABEL_STEP: &str = "kagenti.operator.dev/tekton";
/// Value of [`LABEL_STEP`].
pub const LABEL_STEP_VALUE: &str = "step";
/// Label of PipelineRuns and claims: the AgentBuild.
pub const LABEL_AGENT_BUILD: &str = "agent.kagenti.dev/agentbuild";
/// Label of PipelineRuns and claims: the AgentBuild's mode.
pub const LABEL_BUILD_MODE: &str = "agent.kagenti.dev/mode";
/// Label of ServiceAccounts that builds may use; `true`.
pub const LABEL_BUILD_ACCOUNT: &str = "agent.kagenti.dev/build-account";
/// Annotation of an AgentBuild, written by the webhook only: `template/<mode>` or `user`.
pub const ANNOTATION_PIPELINE_ORIGIN: &str = "agent.kagenti.dev/pipeline-origin";
/// Value of [`ANNOTATION_PIPELINE_ORIGIN`]: the steps are the user's own.
pub const ORIGIN_USER: &str = "user";
/// What stands before the mode in [`ANNOTATION_PIPELINE_ORIGIN`].
pub const ORIGIN_TEMPLATE_PREFIX: &str = "template/";
/// Annotation of an AgentBuild, written by the webhook only: which template, in which state.
pub const ANNOTATION_PIPELINE_TEMPLATE: &str = "agent.kagenti.dev/pipeline-template";
/// Annotation of an AgentBuild, written by the webhook only: what its own step and template ConfigMaps were when it was reviewed.
pub const ANNOTATION_STEP_HASHES: &str = "agent.kagenti.dev/step-hashes";
/// Annotation of an AgentBuild: any change of its value starts a build.
pub const ANNOTATION_REBUILD: &str = "agent.kagenti.dev/rebuild";
/// Annotation of an AgentBuild: a value other than the one handled last takes the template's steps anew.
pub const ANNOTATION_REFRESH_TEMPLATE: &str = "agent.kagenti.dev/refresh-template";
/// Annotation of an AgentBuild, written by the webhook only: the value of [`ANNOTATION_REFRESH_TEMPLATE`] handled last.
pub const ANNOTATION_REFRESH_HANDLED: &str = "agent.kagenti.dev/refresh-template-handled";
/// Annotation of an Agent: with `true` somebody else decides how many Pods there are.
pub const ANNOTATION_REPLICAS_EXTERNAL: &str = "agent.kagenti.dev/replicas-managed-externally";
/// Annotation of a PipelineRun: identity of the inputs it was composed from.
pub const ANNOTATION_BUILD_HASH: &str = "agent.kagenti.dev/build-hash";
/// Annotation of a PipelineRun: which attempt at those inputs.
pub const ANNOTATION_ATTEMPT: &str = "agent.kagenti.dev/attempt";
/// Annotation of a PipelineRun: digest of everything that decides its image but the commit.
pub const ANNOTATION_RECIPE: &str = "agent.kagenti.dev/recipe";
/// What stands before a step's name in the annotation of a PipelineRun with the hash of that step's ConfigMap.
pub const PREFIX_STEP_HASH: &str = "step-hash.agent.kagenti.dev/";
/// Domains whose labels and annotations a build may not put on its run, and so on the Pods of the run: they would
/// enrol, own or steer them.
pub const RESERVED_BUILD_DOMAINS: [&str; 5] =
    ["agent.kagenti.dev", "beeai.dev", "kagenti.io", "tekton.dev", "step-hash.agent.kagenti.dev"];
/// What stands before the mode in the name of a template ConfigMap.
pub const PREFIX_TEMPLATE: &str = "pipeline-template-";
/// Key of a template ConfigMap.
pub const KEY_TEMPLATE: &str = "template.json";
/// Key of a step ConfigMap.
pub const KEY_TASK_SPEC: &str = "task-spec.yaml";
/// Workspace of a run: the claim.
pub const WORKSPACE_SHARED: &str = "shared-workspace";
/// Workspace of a task: the checked-out source.
pub const WORKSPACE_SOURCE: &str = "source";
/// Workspace of a task: what one task leaves for another.
pub const WORKSPACE_ARTIFACTS: &str = "artifacts";
/// Workspace of a task: credentials for the repository.
pub const WORKSPACE_GIT_AUTH: &str = "git-auth";
/// Workspace of a task: credentials for the registry, as `config.json`.
pub const WORKSPACE_REGISTRY_AUTH: &str = "registry-auth";
/// Workspace of a task: the key that signs images.
pub const WORKSPACE_SIGNING_KEY: &str = "signing-key";
/// Workspace of a task: certificate authorities of the platform's own repositories and registries, as `ca.crt`.
pub const WORKSPACE_TRUST_BUNDLE: &str = "trust-bundle";
/// The one task that may bind [`WORKSPACE_SIGNING_KEY`].
pub const TASK_SIGN: &str = "sign";
/// Group that all Pods of a run share on the claim.
pub const BUILD_FS_GROUP: i64 = 65532;
/// Finalizer of Agents and AgentBuilds.
pub const FINALIZER_AGENT: &str = "agent.kagenti.dev/finalizer";
/// Finalizer of AgentCards.
pub const FINALIZER_CARD: &str = "agentcard.kagenti.dev/finalizer";
/// Finalizer that the Go operator puts on AgentCards while it enforces network policies.
pub const FINALIZER_CARD_POLICY: &str = "agentcard.kagenti.dev/network-policy";
/// Every finalizer that is ours to take off.
pub const FINALIZERS: [&str; 8] = [
    FINALIZER,
    FINALIZER_AGENT,
    FINALIZER_CARD,
    FINALIZER_CARD_POLICY,
    FINALIZER_BEEAI,
    FINALIZER_KAOS_AGENT,
    FINALIZER_MODEL_API,
    FINALIZER_MCP_SERVER,
];
/// End of the name of the ConfigMap that holds the signed card of a workload, behind the workload's name.
pub const SUFFIX_SIGNED_CARD: &str = "-card-signed";
/// Its key there.
pub const KEY_SIGNED_CARD: &str = "agent-card.json";
/// Annotation of an AgentCard: a value other than the one handled last has the card read at once; recorded in `status.handledRefresh`.
pub const ANNOTATION_CARD_REFRESH: &str = "agentcard.kagenti.dev/refresh";
/// Annotation that `kubectl apply` keeps the object in; never read, never copied.
pub const ANNOTATION_LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Label of TaskRuns and of their Pods: the PipelineRun.
pub const LABEL_PIPELINE_RUN: &str = "tekton.dev/pipelineRun";
/// Label of TaskRuns and of their Pods: the task.
pub const LABEL_PIPELINE_TASK: &str = "tekton.dev/pipelineTask";
/// Annotation of an AgentBuild: a value other than the one handled last cancels the build that runs or waits; recorded
/// in `status.handledCancel`, never removed.
pub const ANNOTATION_CANCEL: &str = "agent.kagenti.dev/cancel";
/// Annotation of a Secret with credentials for repositories: the only hosts they may be used for, separated by commas.
pub const ANNOTATION_GIT_HOSTS: &str = "agent.kagenti.dev/git-hosts";
/// Annotation of a Secret with credentials for a registry: the only registries they may be used for, separated by commas.
pub const ANNOTATION_REGISTRY_HOSTS: &str = "agent.kagenti.dev/registry-hosts";
/// Annotation of a Secret: what may use it though whoever asks has no right to it ([`USABLE_BY`]), separated by commas.
pub const ANNOTATION_USABLE_BY: &str = "agent.kagenti.dev/usable-by";
/// What [`ANNOTATION_USABLE_BY`] may list: AgentBuilds, Agents.
pub const USABLE_BY: [&str; 2] = ["builds", "agents"];
/// Annotation of an Agent or AgentBuild: the Secrets it refers to that are used by their own consent, separated by commas. The webhook
/// adds those that a template of the platform brings.
pub const ANNOTATION_SECRETS_BY_CONSENT: &str = "agent.kagenti.dev/secrets-by-consent";

// BeeAI.

/// API group of BeeAI's Agent.
pub const GROUP_BEEAI: &str = "beeai.dev";
/// The group that the original operator served; its definitions stand in a manifest of their own.
pub const GROUP_BEEAI_COMPAT: &str = "beeai.beeai.dev";
/// Finalizer of the kinds of both groups.
pub const FINALIZER_BEEAI: &str = "beeai.dev/finalizer";
/// Label of what runs a BeeAI Agent: the Agent; one half of its selector.
pub const LABEL_BEEAI_APP: &str = "app";
/// Label of what runs a BeeAI Agent, the other half of its selector.
pub const LABEL_BEEAI_CONTROLLER: &str = "controller";
/// Value of [`LABEL_BEEAI_CONTROLLER`]; selectors of running Deployments hold it.
pub const BEEAI_CONTROLLER: &str = "agent-operator";
/// Label of the Deployment and the Service of a BeeAI Agent: the group of that Agent.
pub const LABEL_BEEAI_GROUP: &str = "beeai.dev/group";
/// Annotation of an Agent: `true` while nothing is made or changed for it.
pub const ANNOTATION_PAUSED: &str = "agent.kagenti.dev/paused";
/// Annotation of an Agent that was given a running Deployment: the generation of the Agent up to which the Deployment stays as it is.
pub const ANNOTATION_HANDED_OVER: &str = "agent.kagenti.dev/handed-over";
/// Annotation of an Agent that was given a running Deployment: what the Agent was that had it before, as JSON, so that it can be given back.
pub const ANNOTATION_HANDED_OVER_FROM: &str = "agent.kagenti.dev/handed-over-from";
/// Annotation of a BeeAI Agent that is held still while what runs it gets another owner: [`HAND_OVER_BEGUN`], or the uid of the Agent that gives
/// it back.
pub const ANNOTATION_HAND_OVER: &str = "agent.kagenti.dev/hand-over";
/// Value of [`ANNOTATION_HAND_OVER`] on the way to the other Agent.
pub const HAND_OVER_BEGUN: &str = "begun";
/// Label of runs and claims of a BeeAI AgentBuild: that AgentBuild.
pub const LABEL_BEEAI_BUILD: &str = "beeai.dev/agentbuild";
/// Annotation of a BeeAI AgentBuild: a new value builds the same inputs again.
pub const ANNOTATION_BEEAI_REBUILD: &str = "beeai.dev/rebuild";
/// Annotation of a BeeAI AgentBuild: a value other than the one handled last cancels the build that runs or waits.
pub const ANNOTATION_BEEAI_CANCEL: &str = "beeai.dev/cancel";
/// Annotation of a run of a BeeAI AgentBuild: identity of its inputs.
pub const ANNOTATION_BEEAI_BUILD_HASH: &str = "beeai.dev/build-hash";
/// Annotation of a run of a BeeAI AgentBuild: the attempt.
pub const ANNOTATION_BEEAI_ATTEMPT: &str = "beeai.dev/attempt";
/// Annotation of an Agent that a BeeAI AgentBuild keeps: the uid of that AgentBuild. Who may write Agents may write it, too: it proves
/// nothing against its own namespace.
pub const ANNOTATION_CREATED_BY_UID: &str = "beeai.dev/created-by-uid";
/// Annotation of a login that was made from a token: uid and resourceVersion of the Secret with the token.
pub const ANNOTATION_SOURCE_VERSION: &str = "beeai.dev/source-version";
/// What stands after the name of a BeeAI AgentBuild in the name of the Secret with its login.
pub const SUFFIX_LOGIN: &str = "-docker";
/// Label of an Agent that a BeeAI AgentBuild keeps: the AgentBuild.
pub const LABEL_CREATED_BY: &str = "app.kubernetes.io/created-by";
/// Value of [`LABEL_APP_MANAGED_BY`] on such an Agent.
pub const BEEAI_BUILD_CONTROLLER: &str = "agent-build-controller";
/// Webhook entry that judges AgentBuilds of BeeAI.
pub const WEBHOOK_BEEAI_BUILD: &str = "vbeeaiagentbuild.kb.io";
/// Path of the webhook that judges AgentBuilds of BeeAI.
pub const PATH_BEEAI_BUILD: &str = "/validate-beeai-dev-v1-agentbuild";
/// Field manager of the controller of BeeAI AgentBuilds.
pub const MANAGER_BEEAI_BUILD: &str = "drawbridge/beeai-build";
/// The same for the group of the original operator.
pub const MANAGER_BEEAI_COMPAT_BUILD: &str = "drawbridge/beeai-compat-build";
/// Policy by which our own account makes no BeeAI Agent but one that a build keeps.
pub const POLICY_OWN_BEEAI_KEPT: &str = "drawbridge-own-beeai-agents";
/// Policy by which nothing is built for a BeeAI AgentBuild in a namespace that holds none.
pub const POLICY_OWN_BEEAI_BUILDS_NEW: &str = "drawbridge-own-beeai-builds-new";
/// The same for the group of the original operator.
pub const POLICY_OWN_BEEAI_COMPAT_BUILDS_NEW: &str = "drawbridge-own-beeai-compat-builds-new";
/// Annotation of a BeeAI Agent: how much of the lock-down applies, `restricted` or `baseline`.
pub const ANNOTATION_SECURITY_PROFILE: &str = "beeai.dev/security-profile";
/// Annotation of a BeeAI Agent: with [`LOCKDOWN_NOW`] a Deployment that was taken over is locked down at once.
pub const ANNOTATION_LOCKDOWN: &str = "beeai.dev/lockdown";
/// Value of [`ANNOTATION_LOCKDOWN`].
pub const LOCKDOWN_NOW: &str = "now";
/// Variable of a BeeAI Agent: the port it listens on.
pub const ENV_PORT: &str = "PORT";
/// Variable of a BeeAI Agent whose value names the Secret that its image is pulled with.
pub const ENV_IMAGE_REPO_SECRET: &str = "IMAGE_REPO_SECRET";
/// Field manager of the controller of BeeAI Agents.
pub const MANAGER_BEEAI_AGENT: &str = "drawbridge/beeai-agent";
/// The same for the group of the original operator.
pub const MANAGER_BEEAI_COMPAT_AGENT: &str = "drawbridge/beeai-compat-agent";
/// Webhook entry that judges Agents of BeeAI.
pub const WEBHOOK_BEEAI_AGENT: &str = "vbeeaiagent.kb.io";
/// Path of the webhook that judges Agents of BeeAI.
pub const PATH_BEEAI_AGENT: &str = "/validate-beeai-dev-v1-agent";
/// Policy by which nothing is made for a BeeAI Agent in a namespace that holds none.
pub const POLICY_OWN_BEEAI_AGENTS_NEW: &str = "drawbridge-own-beeai-agents-new";
/// The same for the group of the original operator.
pub const POLICY_OWN_BEEAI_COMPAT_AGENTS_NEW: &str = "drawbridge-own-beeai-compat-agents-new";

// KAOS.

/// API group of KAOS's Agent, ModelAPI and MCPServer.
pub const GROUP_KAOS: &str = "kaos.tools";
/// The group that they had before; read by `drawbridge migrate kaos` alone.
pub const GROUP_KAOS_BEFORE: &str = "ethical.institute";
/// Webhook entry that judges the kinds of KAOS.
pub const WEBHOOK_KAOS: &str = "vkaos.kb.io";
/// Path of the webhook that judges the kinds of KAOS.
pub const PATH_KAOS: &str = "/validate-kaos-tools-v1alpha1";
/// Finalizer of its Agents.
pub const FINALIZER_KAOS_AGENT: &str = "kaos.tools/agent-finalizer";
/// Finalizer of its ModelAPIs.
pub const FINALIZER_MODEL_API: &str = "kaos.tools/modelapi-finalizer";
/// Finalizer of its MCPServers.
pub const FINALIZER_MCP_SERVER: &str = "kaos.tools/mcpserver-finalizer";
/// Field manager of the controller of its Agents.
pub const MANAGER_KAOS_AGENT: &str = "drawbridge/kaos-agent";
/// Field manager of the controller of its ModelAPIs.
pub const MANAGER_MODEL_API: &str = "drawbridge/model-api";
/// Field manager of the controller of its MCPServers.
pub const MANAGER_MCP_SERVER: &str = "drawbridge/mcp-server";
/// ConfigMap that lists the runtimes of tool servers, in the namespace that the platform file names.
pub const CONFIG_MAP_MCP_RUNTIMES: &str = "kaos-mcp-runtimes";
/// Annotation of the Pod template of what runs an object of KAOS: digests of what its environment refers to, and in which version that was when
/// its Pods were last made again for it.
pub const ANNOTATION_KAOS_REFERENCES: &str = "kaos.tools/references";
/// Beginning of the names of what is made for an Agent of KAOS.
pub const PREFIX_KAOS_AGENT: &str = "agent-";
/// Beginning of the names of what is made for a ModelAPI of KAOS.
pub const PREFIX_MODEL_API: &str = "modelapi-";
/// Beginning of the names of what is made for an MCPServer of KAOS.
pub const PREFIX_MCP_SERVER: &str = "mcpserver-";
/// The Lease of the original operator of KAOS, in whichever namespace that runs.
pub const LEASE_KAOS_BEFORE: &str = "kaos-operator.kaos.tools";
/// The namespace that the original operator of KAOS had.
pub const KAOS_NAMESPACE: &str = "kaos-system";
/// Label of the Deployments and Services of KAOS: which kind they are made for.
pub const LABEL_KAOS_KIND: &str = "kaos.tools/kind";
/// Policy by which nothing is made for a KAOS Agent in a namespace that holds none.
pub const POLICY_OWN_KAOS_AGENTS_NEW: &str = "drawbridge-own-kaos-agents-new";
/// The same for ModelAPIs.
pub const POLICY_OWN_KAOS_MODEL_APIS_NEW: &str = "drawbridge-own-kaos-modelapis-new";
/// The same for MCPServers.
pub const POLICY_OWN_KAOS_MCP_SERVERS_NEW: &str = "drawbridge-own-kaos-mcpservers-new";
