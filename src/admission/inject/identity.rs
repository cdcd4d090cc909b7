//! As whom the Pods of a workload run: trust domain, namespace, ServiceAccount. What `explain` shows, what the status of an AgentRuntime says and what
//! the signature of an agent's card is held against are this one answer.

use serde_json::Value;

use super::assess::{Decided, Source, assess};
use super::context::Context;
use super::decide::Subject;
use super::plan::InjectionPlan;
use super::pod::PodView;
use super::service_account::{self, Demand};
use super::{Received, effective::Effective, known};
use crate::config::snapshot::Snapshot;
use crate::domain::workload::Workload;

/// As whom Pods run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunsAs {
    /// Trust domain in force for them.
    pub trust_domain: String,
    /// Their namespace.
    pub namespace: String,
    /// Their ServiceAccount.
    pub account: String,
}

impl RunsAs {
    /// The SPIFFE id, as SPIRE gives it to a ServiceAccount.
    #[must_use]
    pub fn spiffe_id(&self) -> String {
        format!("spiffe://{}/ns/{}/sa/{}", self.trust_domain, self.namespace, self.account)
    }
}

/// The account that a Pod names, as Kubernetes reads it.
fn named(pod: PodView<'_>) -> String {
    match pod.service_account() {
        "" => "default".to_owned(),
        named => named.to_owned(),
    }
}

/// As whom a Pod runs that gets that plan.
pub(super) fn planned(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> RunsAs {
    RunsAs {
        trust_domain: cx.effective.trust_domain.value.clone(),
        namespace: cx.subject.namespace.to_owned(),
        account: plan.service_account.clone().unwrap_or_else(|| named(cx.subject.pod)),
    }
}

/// As whom Pods of that template run in that namespace; `template` is `{metadata, spec}`, with the labels its Pods will have. `None` while what the
/// namespace says is not known.
#[must_use]
pub fn runs_as(namespace: &str, workload: &Workload, template: &Value, snapshot: &Snapshot) -> Option<RunsAs> {
    let received = Received::of_template(template, workload, known(namespace, snapshot)).ok()?;
    let subject = Subject::new(received.before().ok()?, namespace, snapshot);
    let as_named = |effective: Option<&Effective<'_>>| {
        let domain =
            effective.map_or(&subject.resolved().trust_domain.value, |effective| &effective.trust_domain.value);
        RunsAs { trust_domain: domain.clone(), namespace: namespace.to_owned(), account: named(subject.pod) }
    };
    match assess(subject, Source::Template(workload)) {
        Decided::Inject(decided) => Some(planned(&decided.0, &decided.1)),
        Decided::Skip(_, effective, _) => Some(as_named(effective.as_deref())),
        // No Pod is made at the moment; those that run are what the next will be.
        Decided::Deny(refused) => {
            let effective = refused.effective.as_ref()?;
            let runs_as = as_named(Some(effective));
            match service_account::demand(subject.pod.service_account(), effective.spire(), workload) {
                Demand::Dedicated(account) => Some(RunsAs { account, ..runs_as }),
                Demand::None | Demand::Kept => Some(runs_as),
            }
        }
    }
}
