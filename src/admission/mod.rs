//! One review in, one verdict out: the pure function the server, the command line and the tests share.
//!
//! `evaluate` looks the request up in a table (phase, operation, group, kind) and runs the row's handler. It performs
//! no I/O, reads no clock and never awaits; a fact that the snapshot lacks is a reason, not a look-up.
//! Promises: no panic for any JSON; equal inputs give equal answers; every operation of an answer applies to the
//! object as received; and an answer's patch, applied, gives an object on which the next patch is empty (for objects
//! that can be stored: containers of one name twice, which the API server refuses after us, may get a further patch).

mod complete;
mod custom;
pub mod explanation;
pub mod inject;
mod namesakes;
pub mod patch;
mod validate;
pub mod verdict;

use crate::api::agent_kagenti_dev;
use crate::api::review::{Operation, Phase, Request};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use explanation::Explanation;
use verdict::Verdict;

/// One row of the registration table: what we answer, and who answers it.
struct Handler {
    phase: Phase,
    operations: &'static [Operation],
    group: &'static str,
    kind: &'static str,
    run: fn(&Request<'_>, &Snapshot) -> Verdict,
    explain: fn(&Request<'_>, &Snapshot, &Verdict) -> Explanation,
}

/// A row of the warn-only review of what makes Pods.
const fn workload(group: &'static str, kind: &'static str) -> Handler {
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group,
        kind,
        run: inject::review_workload,
        explain: inject::explain_workload,
    }
}

/// The row of the Agents of a group of BeeAI.
const fn beeai_agent(group: &'static str) -> Handler {
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group,
        kind: "Agent",
        run: validate::review_beeai_agent,
        explain: validate::explain_beeai_agent,
    }
}

/// The row of a kind of KAOS.
const fn kaos(kind: &'static str) -> Handler {
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group: keys::GROUP_KAOS,
        kind,
        run: validate::review_kaos,
        explain: validate::explain_kaos,
    }
}

/// The row of the AgentBuilds of a group of BeeAI.
const fn beeai_build(group: &'static str) -> Handler {
    Handler {
        kind: "AgentBuild",
        run: validate::review_beeai_build,
        explain: validate::explain_beeai_build,
        ..beeai_agent(group)
    }
}

/// Everything we act on; what is not here is allowed with [`Reason::NotRegistered`].
const HANDLERS: &[Handler] = &[
    Handler {
        phase: Phase::Mutate,
        operations: &[Operation::Create],
        group: "",
        kind: "Pod",
        run: inject::review_pod,
        explain: inject::explain_pod,
    },
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group: agent_kagenti_dev::GROUP,
        kind: "AgentRuntime",
        run: validate::review_agent_runtime,
        explain: validate::explain_agent_runtime,
    },
    Handler {
        phase: Phase::Mutate,
        operations: &[Operation::Create, Operation::Update],
        group: agent_kagenti_dev::GROUP,
        kind: "AgentBuild",
        run: complete::complete_agent_build,
        explain: complete::explain_agent_build,
    },
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group: agent_kagenti_dev::GROUP,
        kind: "AgentBuild",
        run: validate::review_agent_build,
        explain: validate::explain_agent_build,
    },
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group: agent_kagenti_dev::GROUP,
        kind: "Agent",
        run: validate::review_agent,
        explain: validate::explain_agent,
    },
    Handler {
        phase: Phase::Validate,
        operations: &[Operation::Create, Operation::Update],
        group: agent_kagenti_dev::GROUP,
        kind: "AgentCard",
        run: validate::review_agent_card,
        explain: validate::explain_agent_card,
    },
    beeai_agent(keys::GROUP_BEEAI),
    beeai_agent(keys::GROUP_BEEAI_COMPAT),
    kaos("Agent"),
    kaos("ModelAPI"),
    kaos("MCPServer"),
    beeai_build(keys::GROUP_BEEAI),
    beeai_build(keys::GROUP_BEEAI_COMPAT),
    workload("apps", "Deployment"),
    workload("apps", "StatefulSet"),
    workload("apps", "DaemonSet"),
    workload("apps", "ReplicaSet"),
    workload("batch", "Job"),
    workload("batch", "CronJob"),
    Handler { run: inject::review_namespace, explain: inject::explain_namespace, ..workload("", "Namespace") },
];

fn handler(request: &Request<'_>) -> Option<&'static Handler> {
    let is_subresource = request.sub_resource.as_deref().is_some_and(|name| !name.is_empty());
    HANDLERS.iter().find(|row| {
        !is_subresource
            && row.phase == request.phase
            && row.operations.contains(&request.operation)
            && row.group == request.kind.group
            && row.kind == request.kind.kind
    })
}

/// Decides one admission request from the facts in the snapshot.
#[must_use]
pub fn evaluate(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    handler(request).map_or_else(|| Verdict::skipped(Reason::NotRegistered), |row| (row.run)(request, snapshot))
}

/// The same decision, and the tree behind it.
#[must_use]
pub fn explain(request: &Request<'_>, snapshot: &Snapshot) -> (Verdict, Explanation) {
    match handler(request) {
        Some(row) => {
            let verdict = (row.run)(request, snapshot);
            let tree = (row.explain)(request, snapshot, &verdict);
            (verdict, tree)
        }
        None => {
            let verdict = Verdict::skipped(Reason::NotRegistered);
            let tree = Explanation::of(&format!("{} {}", request.kind.kind, request.namespace()), &verdict);
            (verdict, tree)
        }
    }
}
