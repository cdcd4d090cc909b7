//! The kinds of BeeAI, of both groups.

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
/// Value of [`LABEL_APP_MANAGED_BY`](super::LABEL_APP_MANAGED_BY) on such an Agent.
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
/// Policy by which no BeeAI Agent is made for a build in a namespace that holds none.
pub const POLICY_OWN_BEEAI_KEPT_NEW: &str = "drawbridge-own-beeai-kept-new";
/// The same for the group of the original operator.
pub const POLICY_OWN_BEEAI_COMPAT_KEPT_NEW: &str = "drawbridge-own-beeai-compat-kept-new";
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
