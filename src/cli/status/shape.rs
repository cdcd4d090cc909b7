//! The documented shape of `drawbridge status -o json`: docs/reference/status.md is made from it, and a test compares it with
//! what is printed. Members are added, never renamed or removed.

/// Path, type and meaning of one member.
pub type Field = (&'static str, &'static str, &'static str);

/// Every member, in the order in which it is printed.
pub const FIELDS: &[Field] = &[
    (
        "installation[]",
        "string",
        "what is missing of the installation itself (webhook configurations, policies), and the command that puts it back; one of them makes \
         the exit code 1",
    ),
    ("workloads[].namespace", "string", "namespace of the workload"),
    (
        "workloads[].kind",
        "string",
        "kind of the workload, such as Deployment; AgentRuntime for one that points at nothing that can be enrolled, or whose deletion \
         waits until what it wrote is taken off",
    ),
    ("workloads[].name", "string", "name of the workload"),
    ("workloads[].type", "agent, tool or null", "what it is enrolled as; null when that cannot be told"),
    ("workloads[].mode", "string or null", "injection mode in force; null when nothing is injected"),
    ("workloads[].modeSetBy", "string or null", "the layer that set the mode, in the words of `explain`"),
    (
        "workloads[].enrolledBy.by",
        "AgentRuntime, label or workloadLabel",
        "what enrols it: an AgentRuntime, the label of its Pod template, or the label on itself",
    ),
    ("workloads[].enrolledBy.agentRuntime", "string or null", "name of the AgentRuntime that governs it"),
    (
        "workloads[].enrolledBy.duplicates[]",
        "string",
        "names of AgentRuntimes that point at it, too, and do not count because they are younger",
    ),
    ("workloads[].pods.total", "number", "its Pods that are neither finished nor being deleted"),
    ("workloads[].pods.running", "number", "those that run"),
    ("workloads[].pods.injected", "number", "those with sidecars"),
    ("workloads[].pods.unprotected", "number", "those without, that would get them if they were made now"),
    ("workloads[].pods.outdated", "number", "those with sidecars of another configuration than they would get now"),
    ("workloads[].pods.gated", "number", "those that wait behind the scheduling gate"),
    (
        "workloads[].protected",
        "true, false or null",
        "every Pod that runs has the sidecars that it would get now, and Pods that are wanted are there; null while Pods are being replaced",
    ),
    (
        "workloads[].drift",
        "none, unprotected, gated or outdated",
        "how its Pods differ from what they would be if they were made now; the worst that holds",
    ),
    (
        "workloads[].rollout.state",
        "complete, progressing, paused, onDelete, stalled or none",
        "how far its own controller is; none for kinds without rollouts",
    ),
    ("workloads[].rollout.updated", "number", "Pods of the present template"),
    ("workloads[].rollout.desired", "number", "Pods that are wanted"),
    ("workloads[].rollout.held", "number", "those that the partition of a StatefulSet keeps from being replaced"),
    ("workloads[].decision", "injected, skipped, denied or unknown", "what becomes of a Pod that is made now"),
    (
        "workloads[].ready",
        "true, false or null",
        "condition Ready of the AgentRuntime; null without one, or when it is Unknown",
    ),
    (
        "workloads[].reason",
        "string",
        "reason code: of what keeps its Pods from being there, of condition Ready when that is False, else of the decision",
    ),
    ("workloads[].message", "string", "the reason in words"),
    (
        "workloads[].cause",
        "string or null",
        "why Pods are not there or do not run, and what to do, as far as the cluster says it",
    ),
    ("workloads[].attention", "boolean", "a person should act; one of them makes the exit code 1"),
    (
        "workloads[].watched",
        "boolean",
        "the operator watches its namespace; otherwise nothing is injected there and nobody acts on its AgentRuntime",
    ),
    ("builds[].namespace", "string", "namespace of the AgentBuild"),
    ("builds[].kind", "AgentBuild", "what a line of `--watch` is about, as with workloads"),
    ("builds[].name", "string", "name of the AgentBuild"),
    ("builds[].mode", "string", "its mode"),
    ("builds[].phase", "Pending, Building, Succeeded or Failed", "how far it is"),
    ("builds[].image", "string or null", "the image that was built last"),
    ("builds[].run", "string or null", "name of its last PipelineRun"),
    ("builds[].message", "string", "what its status says"),
    (
        "builds[].attention",
        "boolean",
        "a person should act: it failed, or nobody watches its namespace and nobody has begun it",
    ),
    ("builds[].watched", "boolean", "the operator watches its namespace"),
    ("cards[].namespace", "string", "namespace of the AgentCard"),
    ("cards[].kind", "AgentCard", "as with workloads"),
    ("cards[].name", "string", "name of the AgentCard"),
    ("cards[].agent", "string or null", "name that the agent gives itself"),
    ("cards[].protocol", "string or null", "protocol that it speaks"),
    ("cards[].target", "string or null", "kind and name of the workload that it is of"),
    ("cards[].url", "string or null", "where it is reached inside the cluster"),
    ("cards[].skills[].id", "string", "id of a skill, as the agent says"),
    ("cards[].skills[].name", "string", "name of the skill, as the agent says"),
    ("cards[].skills[].tags[]", "string", "words to find the skill by, as the agent says"),
    ("cards[].synced", "true, false or null", "condition Synced: the card could be read"),
    ("cards[].verified", "true, false or null", "condition Verified: it is signed by whom it has to be"),
    ("cards[].bound", "true, false or null", "condition Bound: the signer is the identity that the workload runs as"),
    ("cards[].reason", "string or null", "reason code of the first of these that is False; null when none is"),
    ("cards[].message", "string or null", "the reason in words"),
    (
        "cards[].attention",
        "boolean",
        "a person should act: one of them is False, and not for a reason that ends by itself",
    ),
    (
        "trust[].namespace",
        "string",
        "a namespace in which something follows from what cards prove, or something of it is left",
    ),
    ("trust[].kind", "Namespace", "as with workloads"),
    ("trust[].level", "off, audit, enforced or enforced-all", "how far trust is enforced there"),
    ("trust[].cutsOff", "boolean", "NetworkPolicy drawbridge-default-deny is there"),
    ("trust[].open", "number", "agents whose NetworkPolicy opens them, because their card is verified"),
    ("trust[].cutOff", "number", "agents whose NetworkPolicy lets them reach only what they need to become verified"),
    (
        "trust[].attention",
        "boolean",
        "a person should act: what cuts off is not there and should be, or the other way round",
    ),
    ("notes[]", "string", "what could not be read: then the exit code is 4"),
];
