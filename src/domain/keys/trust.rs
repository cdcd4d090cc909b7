//! Trust: the switch, what cuts off and opens agents, quarantine, the catalogue.

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
