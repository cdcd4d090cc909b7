//! Agents and AgentBuilds of `agent.kagenti.dev`, their pipelines and runs.

use super::{FINALIZER, FINALIZER_BEEAI, FINALIZER_KAOS_AGENT, FINALIZER_MCP_SERVER, FINALIZER_MODEL_API};

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
