//! The closed set of reason codes.
//!
//! One word travels everywhere: metric label, admission warning, audit annotation, Event, condition, log field,
//! command line output and docs/reference/reasons.md. A new reason is a row of the table below.

/// What a reason stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The object was allowed, with our parts in it.
    Injected,
    /// The object was allowed untouched.
    Skipped,
    /// The object was refused.
    Denied,
    /// The object was allowed, and something deserves a person's attention.
    Warning,
    /// How things stand, in conditions and Events; nothing is wrong.
    State,
}

impl Class {
    /// The word used in tables and metric labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Injected => "injected",
            Class::Skipped => "skipped",
            Class::Denied => "denied",
            Class::Warning => "warning",
            Class::State => "state",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident, $class:ident, $sentence:literal;)*) => {
        /// Why something was decided.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* #[doc = $sentence] $name,)* }

        impl Reason {
            /// Every reason, in documentation order.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The code, as written in metrics, conditions and Events.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }

            /// What this reason stands for.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Reason::$name => Class::$class,)* }
            }

            /// One sentence for people, without the facts of the single case.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Reason::$name => $sentence,)* }
            }
        }
    };
}

reasons! {
    Injected, Injected, "the AuthBridge sidecars were added";
    AlreadyInjected, Skipped, "the Pod has every sidecar already, unchanged";
    Removed, Injected, "sidecars of an earlier injection were taken out of the Pod, because they no longer apply";
    NothingToRemove, Skipped, "the object carries nothing that Drawbridge added";
    NotRegistered, Skipped, "Drawbridge does not act on this kind, operation or subresource";
    NoTypeLabel, Skipped, "label kagenti.io/type is neither agent nor tool";
    GlobalDisabled, Skipped, "feature gate globalEnabled is false";
    ToolsDisabled, Skipped, "the Pod is a tool and feature gate injectTools is false";
    OptedOut, Skipped, "label kagenti.io/inject is disabled";
    NamespaceOptedOut, Skipped, "the namespace carries kagenti-enabled=false";
    NamespaceNotEnrolled, Skipped, "requireNamespaceLabel is on and the namespace does not carry kagenti-enabled=true";
    NamespaceNotWatched, Skipped, "the operator watches other namespaces only: nothing is injected or reconciled here";
    SystemNamespace, Skipped, "the namespace belongs to Kubernetes or to Drawbridge itself";
    MirrorPod, Skipped, "the Pod mirrors a static Pod, which admission cannot change";
    NoContainers, Skipped, "the Pod has no containers; the API server will refuse it";
    NothingToInject, Skipped, "every sidecar is switched off by a gate or a label";
    ModeWaypoint, Skipped, "mode waypoint adds nothing to the Pod";
    Accepted, Skipped, "the object is in order";
    Completed, Injected, "the AgentBuild was completed from the template of its environment";
    AlreadyComplete, Skipped, "the AgentBuild leaves nothing open that a template or a default would fill";
    BeingDeleted, Skipped, "the object is being deleted and is not judged any more";
    SpecUnchanged, Skipped, "nothing that is judged has changed";
    BadReview, Denied, "the admission review could not be read";
    Undecodable, Denied, "the object could not be read";
    HostNetwork, Denied, "the Pod uses the node's network, where redirection rules would change the node";
    WindowsPod, Denied, "the sidecars exist for Linux only";
    TooManyContainers, Denied, "the Pod has more containers than the note about its sidecars has room for";
    ContainerNameCollision, Denied, "a container of the Pod has the name of one of Drawbridge's sidecars";
    VolumeCollision, Denied, "a volume of the Pod has the name of a volume of the sidecars, and another source";
    NoFreePort, Denied, "no port is left for the proxy";
    PortCollision, Denied, "a container of the Pod listens on a port that the sidecar needs";
    PortFixed, Denied, "mode proxy-sidecar moves the agent to another port, and the agent cannot be told";
    ProxyUidInUse, Denied, "a container of the Pod runs as the proxy's user and would bypass it";
    PodSecurityForbids, Denied, "the namespace's Pod Security level rejects what would be injected";
    RuntimeConfigTooLarge, Denied, "the runtime configuration is larger than 64 KiB";
    AnnotationsTooLarge, Denied, "the annotations of the Pod, with those that go with its sidecars, are larger than Kubernetes takes";
    PodResourcesExceeded, Denied, "the Pod's own requests or limits have no room for what would be injected";
    ImageMissing, Denied, "the platform file names no image for a sidecar that is needed";
    ModeNotAvailable, Denied, "the AgentRuntime names a mode that does not exist";
    DuplicateTarget, Denied, "another AgentRuntime governs the workload; the oldest one does";
    DuplicateCard, Denied, "another AgentCard is of the same workload; that one counts";
    UnsupportedTarget, Denied, "the AgentRuntime points at a kind that cannot be enrolled";
    InvalidSpec, Denied, "a field of the object has a value that means nothing";
    ServiceAccountPending, Denied, "the workload's ServiceAccount does not exist yet; Drawbridge makes it, and what makes the Pod tries again within seconds";
    ServiceAccountConflict, Denied, "a ServiceAccount of the workload's name exists, and Drawbridge did not make it";
    NamespacePending, Denied, "the webhook has not heard of the namespace yet; what makes the Pod tries again within seconds";
    ConfigPending, Denied, "the webhook has not read the namespace's ConfigMaps yet; what makes the Pod tries again within seconds";
    ConfigUnknown, Denied, "an object that the answer depends on (a ConfigMap, Role, RoleBinding or NetworkPolicy of the namespace, or the AgentRuntime of the workload) is over a bound of count or size, and what it says is not known";
    NetworkPolicyPending, Denied, "the NetworkPolicy that cuts off unproven agents does not exist yet; Drawbridge makes it, and what makes the Pod tries again within seconds";
    OwnerPending, Denied, "the webhook has not heard of the Job that owns the Pod yet; the Job makes the Pod again within seconds";
    FieldRequired, Denied, "a field that is needed is absent or empty";
    FieldInvalid, Denied, "a field has a value that is not allowed";
    FieldUnknown, Denied, "the Pod template has a field that the cluster's API server does not know";
    DuplicateName, Denied, "two entries of a list have one name";
    CredentialInText, Denied, "a field that everybody may read contains a credential";
    TemplateMissing, Denied, "there is no pipeline template for the mode";
    TemplateInvalid, Denied, "the pipeline template cannot be used";
    StepMissing, Denied, "the ConfigMap of a step does not exist";
    StepInvalid, Denied, "the ConfigMap of a step cannot be used";
    StepDrift, Denied, "the ConfigMap of a step has changed since the build was reviewed";
    ParameterMissing, Denied, "a parameter that is needed has no value";
    ParameterLocked, Denied, "the template or the pipeline of the mode does not let builds set this parameter";
    SpellingConflict, Denied, "two spellings of one field say different things";
    PlaceholderUnknown, Denied, "a placeholder of the template names nothing that has a value";
    ReferenceInvalid, Denied, "a reference $(...) names something that is not there when it is read";
    WorkspaceUnknown, Denied, "a step needs a workspace that nothing fills";
    GatedMode, Denied, "modes preprod and prod take steps and settings from the platform's template only";
    RunTooLarge, Denied, "the composed run is larger than what can be stored";
    LockdownViolated, Denied, "the Agent asks for rights that the platform's lock-down does not grant";
    NotReady, Denied, "this replica has not read the cluster yet";
    DeadlineExceeded, Denied, "the answer could not be given in the time the API server allows";
    Overloaded, Denied, "too many reviews are waiting";
    InternalError, Denied, "Drawbridge failed to decide because of a defect of its own";
    UnknownMode, Warning, "the mode does not exist; the default mode is used";
    UnknownValue, Warning, "a label or annotation has a value that means nothing";
    PortDropped, Warning, "an entry of a port list is not a port and was left out";
    SpireUnavailable, Warning, "CSI driver csi.spiffe.io is absent; the SPIRE parts were left out";
    SpireDriverMissing, Warning, "SPIRE is required and CSI driver csi.spiffe.io is absent; the Pod will wait for it";
    RegistrationSuperseded, Warning, "credentials are managed for the Pod; the registration sidecar was left out";
    IssuerMissing, Warning, "ConfigMap authbridge-config has no key ISSUER; tokens cannot be validated";
    RegistrationIncomplete, Warning, "ConfigMap authbridge-config lacks a key that client registration needs";
    ServiceAccountKept, Warning, "the Pod keeps its ServiceAccount, because nobody makes one for its owner";
    ProxyEnvironmentKept, Warning, "a container sets a proxy variable of its own, which was kept";
    TraceEndpointInvalid, Warning, "an address for traces is no URL, so that nothing would arrive there";
    SharedDataMounted, Warning, "a container of the Pod mounts shared-data and so sees the agent's credentials";
    NoDeclaredPort, Warning, "no container declares a port; the proxy has nothing to protect";
    PrivilegedPort, Warning, "the proxy takes over a port below 1024, which not every container runtime lets it bind";
    ProbeBehindToken, Warning, "a probe or hook of the Pod asks for something that the proxy does not let through without a token";
    ProbeAlwaysSucceeds, Warning, "a tcpSocket probe reaches the proxy instead of its container, and so always succeeds";
    TrustLabelIgnored, Warning, "the trust label of a template means nothing; Drawbridge puts it on Pods of verified agents itself";
    SignsAtStart, Warning, "the card is to be signed by a sidecar, and an init container signs it when the Pod starts instead, because the Pod cannot have one";
    LabelIgnored, Warning, "a label or annotation has no effect here";
    ValueShadowed, Warning, "a value was set in one place and overridden in another";
    NamespaceConfigUnreadable, Warning, "a ConfigMap of the namespace could not be read; its last good value is used, if there is one";
    ConfigOverBound, Warning, "a ConfigMap of the namespace is over a bound of count or size and is not read; what it said before is used (where that is not known, Pods are refused: ConfigUnknown)";
    CombinedIncomplete, Warning, "feature gate combinedSidecar is on and a label or gate switches the Envoy proxy off, so nothing intercepts traffic";
    ProxyBypassable, Warning, "a container of the Pod may go around the proxy: change the network rules, become its user, or reach its process";
    NotIntercepted, Warning, "traffic of this Pod is not intercepted, because its proxy is switched off, or nothing names the waypoint that would do it";
    OverrideNotAllowed, Warning, "a key of a namespace ConfigMap is not among namespaceOverrides and was ignored";
    GatedWithoutController, Warning, "the Pod was created while no webhook answered and nobody makes it again; it waits behind the gate";
    TargetFound, State, "the workload that an AgentRuntime points at exists";
    ConfigResolved, State, "every layer of the configuration could be read";
    Configured, State, "the workload carries the label, the hash and the marker of its enrolment";
    EnrolmentPending, State, "the workload is about to be enrolled";
    RolloutPending, State, "the workload waits until others have rolled to the new configuration";
    RolloutProgressing, State, "Pods are being replaced";
    RolloutComplete, State, "no Pods are left to be replaced";
    RolloutManual, State, "the fleet's configuration has changed and rollout.onUpgrade is manual; people roll it";
    RolloutPaused, State, "the workload is paused; its Pods are replaced once it is resumed";
    RolloutOnDelete, State, "the workload replaces its Pods only when they are deleted";
    PodsCurrent, State, "every Pod runs with the present configuration";
    Protected, State, "every Pod of the workload that runs has the sidecars of its configuration";
    NoReplicasWanted, State, "the workload wants no Pods at present";
    SandboxRestarted, State, "the Sandbox was restarted, so that its Pod is made with the present configuration";
    ConfigWarning, Warning, "part of the configuration could not be read or means nothing; the rest is in force";
    LabelConflict, Warning, "the workload's label kagenti.io/type is somebody else's and has another value";
    ImmutableSelector, Warning, "the workload's selector forbids the label kagenti.io/type";
    ConfigApplyError, Warning, "the API server refuses what enrolment writes on the workload";
    NotPermitted, Warning, "Drawbridge lacks a right; drawbridge doctor shows which";
    RolloutHalted, Warning, "workloads that were rolled to the new configuration failed, so no more are rolled";
    ProgressDeadlineExceeded, Warning, "the workload's new Pods did not become available in time";
    UnprotectedPods, Warning, "Pods of an enrolled workload run without the sidecars";
    OutdatedPods, Warning, "Pods of an enrolled workload run with another configuration than the present one";
    PodsGated, Warning, "Pods wait behind the scheduling gate, because no webhook answered when they were made or because their template carries the gate";
    PodsMissing, Warning, "Pods that the workload wants do not exist";
    PodsNotRunning, Warning, "Pods of the workload exist and none of them runs";
    QuotaExceeded, Warning, "a ResourceQuota of the namespace has no room for the workload's Pods";
    LimitRangeRefused, Warning, "a LimitRange of the namespace does not allow what the workload's Pods ask for";
    Unschedulable, Warning, "no node takes a Pod of the workload";
    ForeignGate, Warning, "a Pod of the workload waits behind a scheduling gate that is not Drawbridge's";
    ImagePullFailed, Warning, "an image of a Pod of the workload cannot be pulled";
    TargetKindAbsent, Warning, "the API server does not serve the kind that an AgentRuntime points at";
    TargetUnreadable, Warning, "the kind that an AgentRuntime points at cannot be read at present";
    TargetNotFound, Warning, "the workload that an AgentRuntime points at does not exist";
    UnknownField, Warning, "the API server left out a field that the kind does not have";
    TypeMismatch, Warning, "the Pod's label kagenti.io/type differs from the AgentRuntime's type; the label decides";
    KeyWithoutEffect, Warning, "a configuration key has no effect: nothing reads it, or the key that it says more about is not set";
    CertificateExpiring, Warning, "a certificate of the webhook is about to expire and was not renewed in time";
    AuthorityRepaired, Warning, "the certificate authority's Secret was damaged and has been put back";
    AuthorityRefused, Warning, "the certificate authority's Secret is somebody else's and cannot be used";
    BundleOverwritten, Warning, "somebody else took Drawbridge's certificate authority out of a webhook configuration";
    BundleUnpublished, Warning, "Drawbridge's certificate authority could not be written into a webhook configuration";
    WebhookMissing, Warning, "a webhook configuration that the manifests install is gone, so that the API server does not ask Drawbridge";
    PolicyMissing, Warning, "an admission policy that the manifests install, or its binding, is gone";
    ParameterUnused, Warning, "no step of the pipeline declares this parameter";
    DerivedOverridden, Warning, "a parameter replaces a value that another field of the object gives";
    MovingReference, Warning, "a revision or tag can mean something else tomorrow";
    StepsKept, Warning, "the steps of a template became the build's own, and follow the template no more";
    GuardMissing, Warning, "a step reads the result of a step that may be skipped, and would then be skipped silently";
    MetadataDropped, Warning, "a label or annotation is not passed on, because its domain is reserved";
    SpellingAmbiguous, Warning, "a value without quotes means different things to different readers of YAML";
    RegistrySecretAbsent, Warning, "a step expects a registry Secret and the build names none";
    LockdownRelaxed, Warning, "the Agent gives up a part of the lock-down";
    PortUnmatched, Warning, "a port of the Service leads to no declared port of the Agent's Pods";
    ImageAvailable, State, "the image that an Agent runs is known";
    ImageResolved, State, "the image of an Agent was taken from its AgentBuild";
    ImageNotReady, State, "an Agent waits for its image, and nothing runs yet";
    WaitingForBuild, Warning, "an Agent waits for its AgentBuild";
    BuildNotFound, Warning, "the AgentBuild that an Agent names does not exist";
    BuildPending, State, "the AgentBuild has not begun";
    BuildInProgress, State, "the run of the AgentBuild has not ended";
    BuildFailed, Warning, "the AgentBuild failed";
    BuildHasNoImage, Warning, "the AgentBuild that an Agent names ended without an image";
    DeploymentReady, State, "every wanted Pod of an Agent runs the wanted template";
    DeploymentNotReady, State, "Pods of an Agent do not exist yet";
    ScaledToZero, State, "an Agent wants no Pods";
    DeploymentExists, State, "the Deployment of an Agent exists and reports no conditions yet";
    MinimumReplicasAvailable, State, "enough Pods of an Agent are available";
    MinimumReplicasUnavailable, State, "too few Pods of an Agent are available";
    AllPodsScheduled, State, "no Pod of an Agent is unavailable";
    PodsUnscheduled, State, "Pods of an Agent are unavailable";
    UserOverride, State, "fields of the Agent relax its lock-down";
    LockdownPending, State, "what an earlier operator made for the Agent runs on as it is, and is locked down when the Agent changes or asks for it";
    DeploymentCreated, State, "the Deployment of an Agent was made";
    DeploymentUpdated, State, "the Deployment of an Agent was changed";
    ServiceCreated, State, "the Service of an Agent was made";
    NameConflict, Warning, "an object of the name that is needed exists and is somebody else's";
    ReplicaFailure, Warning, "Pods of the workload are refused by the API server";
    DeploymentFailed, Warning, "the Deployment of an Agent makes no progress";
    FieldsContested, Warning, "somebody else writes the fields that Drawbridge applies, each time they are applied";
    BuildStarted, State, "the run of an AgentBuild exists";
    BuildCompleted, State, "the run of an AgentBuild ended well";
    BuildSucceeded, State, "an AgentBuild has made its image";
    BuildReady, State, "the image of an AgentBuild can be used";
    ImageKnown, State, "an AgentBuild needed no run: its image is known from the same inputs";
    BuildNotReady, State, "an AgentBuild has made no image from its present spec yet";
    BuildCancelled, State, "an AgentBuild was cancelled as its annotation asks";
    PipelineRunPending, State, "the run of an AgentBuild is about to be created";
    WorkspaceTerminating, State, "the workspace of the run before is being deleted; the new run follows once it is gone";
    PipelineRunFound, State, "the run of an AgentBuild exists";
    TektonServed, State, "the API server serves Tekton's kinds";
    TemplateResolved, State, "the steps of an AgentBuild come from this template";
    CleanupCompleted, State, "what a successful build left was removed";
    CleanupFailed, Warning, "what a successful build left cannot be removed; it is tried again";
    PipelineRunNotFound, Warning, "the run of an AgentBuild is gone";
    TektonAbsent, Warning, "the API server does not serve Tekton's kinds; builds wait until it does";
    TektonUnreachable, Warning, "runs cannot be created at present; builds wait until they can";
    ValidationFailed, Warning, "an AgentBuild cannot start as it is";
    PrerequisitesMissing, Warning, "something that a build needs is missing or unusable; it starts once that is corrected";
    SecretNotUsable, Warning, "a Secret that may be used only with its own annotation does not have that annotation; nothing is written until it does";
    LoginRefused, Warning, "the Secret with a build's login of a registry was refused by the API server";
    AgentCreated, State, "the Agent that an AgentBuild keeps was made";
    AgentUpdated, State, "the Agent that an AgentBuild keeps was changed";
    AgentReady, State, "the Agent that an AgentBuild keeps runs its image";
    AgentNotReady, State, "the Agent that an AgentBuild keeps does not run its image yet";
    AgentExists, Warning, "an Agent of the name that an AgentBuild keeps exists and is somebody else's";
    CreateFailed, Warning, "the Agent that an AgentBuild keeps cannot be written at present; it is tried again";
    SecretNotAllowed, Warning, "a Secret that the Agent of an AgentBuild would mount may not be used by it";
    CompositionFailed, Warning, "the run of an AgentBuild cannot be composed";
    TemplateDrift, Warning, "the template of a gated mode, or a tenant's own, is not the one that the build was completed from";
    RunRefused, Warning, "the composed run, or its workspace, was refused by the API server or by Tekton";
    RunInvalid, Warning, "Tekton took the run and then found that it cannot be run";
    RunEndedUnknown, Warning, "the run ended without saying how";
    Cancelled, Warning, "the build was cancelled";
    BuildTimedOut, Warning, "the run, or a task of it, took longer than it may";
    StepFailed, Warning, "a step of the build ended with another code than 0";
    StepOutOfMemory, Warning, "a step of the build needed more memory than it may use";
    StepImagePullFailed, Warning, "the image of a step cannot be pulled";
    TaskPodFailed, Warning, "the Pod of a task could not be made, or was taken away";
    GateSkipped, Warning, "a task of the build was neither run nor skipped by its own condition";
    NoImage, Warning, "the run ended well and no task that succeeded reported which image it made";
    SyncSucceeded, State, "the card that the agent serves is the one that is shown";
    ReadyToServe, State, "the agent can serve, and its card is shown";
    Answered, State, "the agent answers where its card is asked for";
    WorkloadNotReady, State, "the workload says that it cannot serve yet; its card is asked for once it can";
    WorkloadNotFound, Warning, "the workload that an AgentCard points at does not exist";
    NotAgentWorkload, Warning, "the workload that an AgentCard points at does not carry kagenti.io/type=agent";
    WorkloadError, Warning, "an AgentCard names no workload of a kind that is read";
    AgentNotFound, Warning, "whether a card is signed by its agent cannot be said, because there is no such agent";
    NoProtocol, Warning, "the workload of an AgentCard does not say which protocol it speaks";
    ServiceNotFound, Warning, "the workload of an AgentCard has no Service of its name with a port for TCP";
    FetchFailed, Warning, "the card of an agent could not be read; the last one that could be stays shown";
    NoReadyPod, Warning, "no Pod of the workload can be asked for its card: none is Ready with the label kagenti.io/type=agent and a network of its own";
    AgentUnreachable, Warning, "no connection to the agent's port came about, or it broke";
    AnswerTooLate, Warning, "the agent did not answer in time";
    AnswerTooLarge, Warning, "the agent answered with more than is read";
    AnswerRefused, Warning, "the agent answered with another HTTP status than 200, or with a redirect, which is not followed";
    AnswerUnreadable, Warning, "the agent answered with something that is no HTTP, or is compressed";
    CardInvalid, Warning, "what the agent serves is not a card";
    AddressRefused, Warning, "the agent's Pod has an address that Drawbridge never connects to";
    MeshRefused, Warning, "the agent's port takes connections and speaks no plain HTTP, as behind a mesh that insists on mTLS";
    BlockedBySidecar, Warning, "the agent's own sidecar does not let the question for its card through";
    CardContentChanged, Warning, "an agent serves another card than before";
    CardTruncated, Warning, "the card of an agent is too large to be shown; its name, version and the ids of its skills are";
    UrlMismatch, Warning, "the card of an agent names a host that is not the agent's Service";
    UnexpectedImage, Warning, "the run made an image outside the repository that the build names";
    NoDigest, Warning, "the pipeline reported no digest; the image is known by its tag only";
    OldSpelling, Warning, "a field of an earlier version of KAOS was read as what it means today; drawbridge migrate kaos prints the \
        present one";
    ModelUnchecked, Warning, "whether the ModelAPI offers the model of an Agent is not checked, since one of them says it in an old spelling";
    DefaultModel, Warning, "nothing says which model is meant, and the default of that spelling is used";
    FieldUnused, Warning, "a field has no effect beside the others of the object";
    BuildUnknown, Warning, "the AgentBuild that is to give the image does not exist yet";
    SignatureValid, State, "a signature of the agent's card is good, and the trust bundle vouches for who made it";
    SignatureInvalid, Warning, "no signature of the agent's card is good, so nobody vouches for what the card says";
    SignatureInvalidAudit, Warning, "no signature of the agent's card is good; in audit mode nothing follows from it";
    TrustBundleUnavailable, Warning, "no trust bundle was ever readable, so nothing can be said of signatures";
    NotVerified, Warning, "signatures of cards are not judged: no trust bundle is configured";
    Bound, State, "the agent's card is signed by the identity that its workload runs as";
    NotBound, Warning, "the agent's card is not signed by the identity that its workload runs as";
    IdentityUnknown, Warning, "what the workload runs as is not known at the moment";
    SignatureVerified, State, "the agent's card is signed, and by the identity that its workload runs as";
    #[expect(non_camel_case_types, reason = "the word of the Go operator, which dashboards look for")]
    mTLSVerified, State, "the agent has proved over TLS who it is, and it is whom its workload runs as";
    FallbackToHTTP, Warning, "agents are to prove over TLS who they are, and this one's Service has no port for it: it was asked over plain HTTP";
    Settling, State, "a card that was not good is good again; it counts with the next good answer";
    FetchSuspended, Warning, "many trusted agents fail to answer at once, which points at the network: none of them loses its trust because of it, for an hour at most";
    UntrustableKind, Warning, "no card of a workload of that kind is read, so it is never trusted, and stays cut off where trust is enforced";
    TrustUnavailable, Warning, "a namespace enforces trust, and no trust bundle could be read by which an agent would become verified";
    Quarantined, Warning, "agents of a namespace are in quarantine: nobody reaches them, they reach nobody, and no Pod of theirs is made";
    PolicyOverridden, Warning, "a NetworkPolicy of somebody else opens an agent that is cut off";
    NotReadyBehindDeny, Warning, "an agent that is cut off does not become ready; perhaps it waits for somebody whom it does not reach";
    LeftEnforcement, Warning, "a workload that was an agent is none any more, so nothing cuts its Pods off";
    ResignTriggered, State, "a workload is restarted so that its card is signed anew before the signature counts no more";
    ResignNotPossible, Warning, "the signature of a card will count no more, and the Pods that sign it are not replaced by themselves";
    AgentOpened, State, "an agent is verified, and its NetworkPolicy opens it";
    AgentCutOff, Warning, "an agent is not verified any more, and its NetworkPolicy cuts it off";
    DeclaredNotOpened, Warning, "some of what an agent declares opens nobody: it names no place that a NetworkPolicy can open, or one policy has no room for it";
    DependencyMissing, Warning, "an object that an Agent of KAOS names does not exist";
    DependencyNotReady, State, "an object that an Agent of KAOS names is not ready";
    DependenciesReady, State, "every object that an Agent of KAOS names is ready";
    ModelNotOffered, Warning, "the ModelAPI does not offer the model that the Agent asks for";
    GatewayApiAbsent, Warning, "routes are wanted, and the API server does not serve HTTPRoutes";
    RoutePending, State, "no Gateway has said yet whether it takes the route";
    RouteAccepted, State, "a Gateway takes the route";
    RouteRefused, Warning, "the route could not be written, or its Gateway does not take it";
    ProxyOpen, Warning, "a proxy has no master key: every Pod that reaches it can spend the provider's key";
    ProxyClosed, State, "a proxy requires its master key";
    ToolsNotListed, Warning, "an MCPServer did not say which tools it offers; the list that it gave last is kept";
    ToolsTruncated, Warning, "an MCPServer offers more tools than are listed";
    TakeoverPending, State, "what an earlier operator made runs on as it is until something else is wanted of it";
    AwaitsSignature, State, "the ConfigMap for an agent's signed card was made ahead of its signature, and no Pod of the workload has signed yet";
    CardDrift, Warning, "the ConfigMap with an agent's signed card is not what counts, or the agent serves another card than it";
    CallerRefused, Warning, "whoever asked for the catalogue of verified agents showed no token of a ServiceAccount for it";
    CardNotListed, Warning, "no verified card of that name is in a namespace that the caller sees";
    BadQuery, Warning, "what was asked of the catalogue of verified agents cannot be read";
    PodsNotLabelled, Warning, "the Pods of the workload do not carry kagenti.io/type=agent, so none of them is asked for its card";
    SharedServiceAccount, Warning, "other workloads run under the agent's ServiceAccount, so each of them can sign for the others";
}
