//! The corpus told by five voices: whatever a case comes to, the webhook, `explain -f`, `inject -f`, `validate` and `status` say the same of it.
//!
//! In: the cases that ask for a new Pod, for an AgentRuntime, or for what is run under a name of its own, with their clusters. Commands are asked for the Pod, and for the workload whose
//! controller sends it. Out: every difference in the outcome, its reason, its words, its warnings and the patch. The commands
//! run in this process, on files that hold the case's cluster; `status` asks a server that holds it ([`cluster`]).
//!
//! What a command leaves out on purpose stands in [`spoken`], each with its reason; there is no list of cases.

mod cluster;
mod spoken;
mod workload;

use std::sync::Arc;

use anyhow::Context as _;
use drawbridge::admission::inject::uninject;
use drawbridge::api::review::Phase;
use drawbridge::config::namesakes;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge::domain::reason::{Class, Reason};
use drawbridge::store::Kind;
use libtest_mimic::Trial;
use serde_json::Value;
use webhook_tests::corpus::Case;
use webhook_tests::corpus::answer::{Answer, ask};
use webhook_tests::corpus::matching::{differences, strict};

use super::verdict;
use cluster::Clusters;
use spoken::{Question, Said};

/// What the webhook waits for of a Pod, and a controller makes of itself: commands that read files take it to be there.
const OF_POD: &[Reason] = &[Reason::NetworkPolicyPending];
/// The same of a workload, which a controller looks at before there are Pods.
const OF_WORKLOAD: &[Reason] = &[Reason::NetworkPolicyPending, Reason::ServiceAccountPending];

pub(crate) fn trials(cases: Vec<Case>) -> Vec<Trial> {
    let clusters = Arc::new(Clusters::start().map_err(|error| format!("{error:#}")));
    let asked = cases.into_iter().filter(is_asked);
    asked
        .map(|case| {
            let clusters = Arc::clone(&clusters);
            Trial::test(format!("voices::{}", case.name), move || match clusters.as_ref() {
                Ok(clusters) => verdict(agree(&case, clusters)),
                Err(error) => Err(error.as_str().into()),
            })
        })
        .collect()
}

/// Whether a case is about a new Pod, or about an AgentRuntime that is applied: of these alone all commands speak.
fn is_asked(case: &Case) -> bool {
    if case.expect.unreadable || case.expect.config_refused.is_some() {
        return false;
    }
    let Ok(review) = serde_json::from_str::<Value>(&case.review) else { return false };
    let request = &review["request"];
    let is_new = request["operation"] == "CREATE" && request["object"].is_object();
    let whole = request["subResource"].as_str().unwrap_or_default().is_empty();
    let is_it = match case.fixture.phase() {
        Phase::Mutate => request["kind"]["kind"] == "Pod",
        Phase::Validate => request["kind"]["kind"] == "AgentRuntime" || is_named(request),
    };
    is_new && whole && is_it
}

/// Whether an object is run under a name of its own, which another one may want.
fn is_named(request: &Value) -> bool {
    let of = |member: &str| request["kind"][member].as_str().unwrap_or_default();
    Kind::of(of("group"), of("kind")).is_some_and(|kind| namesakes::KINDS.contains(&kind))
}

/// Every way in which the voices differ.
fn agree(case: &Case, clusters: &Clusters) -> anyhow::Result<Vec<String>> {
    let review: Value = serde_json::from_str(&case.review)?;
    let asked = Asked {
        case,
        snapshot: case.fixture.snapshot()?,
        namespace: review["request"]["namespace"].as_str().unwrap_or_default().to_owned(),
    };
    let object = review["request"]["object"].clone();
    match case.fixture.phase() {
        Phase::Mutate => asked.pod(object, clusters),
        Phase::Validate if is_named(&review["request"]) => asked.named(object),
        Phase::Validate => asked.agent_runtime(object),
    }
}

/// A case, and what the webhook knows.
struct Asked<'c> {
    case: &'c Case,
    snapshot: Snapshot,
    namespace: String,
}

impl Asked<'_> {
    fn webhook(&self, object: &Value) -> anyhow::Result<Answer> {
        ask(self.case, &self.case.fixture.request.review(&self.case.name, object), &self.snapshot)
    }

    /// Of what else of its namespace wants the name under which an object is run, in the words of each. `status` has it from the object's own
    /// condition, which a controller writes.
    fn named(&self, object: Value) -> anyhow::Result<Vec<String>> {
        let answered = self.webhook(&object)?.warnings.into_iter();
        let of = answered.filter(|(code, _)| code == Reason::NameConflict.code()).map(|(_, text)| text);
        let webhook: Vec<_> = of.collect();
        let objects = [object];
        let told = spoken::warned(&self.question(&objects), Reason::NameConflict)?;
        let differ = told.into_iter().filter(|(_, texts)| *texts != webhook);
        Ok(differ.map(|(voice, texts)| format!("{voice}: {texts:?}, the webhook: {webhook:?}")).collect())
    }

    fn question<'q>(&'q self, objects: &'q [Value]) -> Question<'q> {
        Question { fixture: &self.case.fixture, objects, namespace: &self.namespace }
    }

    fn pod(&self, pod: Value, clusters: &Clusters) -> anyhow::Result<Vec<String>> {
        let answered = ask(self.case, &self.case.review, &self.snapshot)?;
        // A Pod that came through us before is explained as its controller sends it again.
        let mut before = pod.clone();
        json_patch::patch(&mut before, &uninject(&pod)).context("what was injected cannot be taken out")?;
        let again = Said::of_webhook(&self.webhook(&before)?);
        let Some(workload) = workload::of(&pod, (&self.case.fixture, &self.namespace)) else {
            return self.alone(("Pod", &answered, &again), &pod, OF_POD);
        };
        let sent = self.webhook(&workload.pod)?;
        let of_workload = Said::of_webhook(&sent);
        let (told, of_pod) = ((workload.kind, &sent, &of_workload), ("Pod", &answered, &again));
        let mut wrong = if self.waits_for(&of_workload, OF_WORKLOAD) {
            // Beside its workload the Pod would find what a controller makes for that.
            let mut wrong = self.alone(told, &workload.object, OF_WORKLOAD)?;
            wrong.extend(self.alone(of_pod, &pod, OF_POD)?);
            wrong
        } else {
            self.spoken_of(&[told, of_pod], &[workload.object.clone(), pod])?
        };
        let told = spoken::status(&self.question(&[]), &workload, clusters)?;
        wrong.extend(of_workload.differences(&told, &format!("{}, status", workload.kind)));
        Ok(wrong)
    }

    /// Of each object: what it is, the webhook's answer, and its answer to whom explains.
    fn spoken_of(&self, told: &[(&str, &Answer, &Said)], objects: &[Value]) -> anyhow::Result<Vec<String>> {
        let question = self.question(objects);
        let (explained, injected) = (spoken::explain(&question)?, spoken::inject(&question)?);
        let validated = spoken::validate(&question)?;
        let mut wrong = Vec::new();
        for (index, (what, answered, again)) in told.iter().enumerate() {
            let webhook = Said::of_webhook(answered);
            let (said, written) = &injected[index];
            wrong.extend(again.differences(&explained[index], &format!("{what}, explain -f")));
            wrong.extend(webhook.differences(said, &format!("{what}, inject -f")));
            wrong.extend(webhook.differences(&validated[index], &format!("{what}, validate")));
            let refused = validated[index].outcome.is_some();
            if refused == answered.allowed {
                wrong.push(format!(
                    "{what}, validate: finds an error: {refused}, the webhook lets it in: {}",
                    answered.allowed
                ));
            }
            if *what == "Pod" {
                let pod = &objects[index];
                let wanted = if answered.allowed { answered.applied(pod)? } else { pod.clone() };
                wrong.extend(differences(&wanted, written, "Pod, inject -f, the object: ", strict));
            }
        }
        Ok(wrong)
    }

    /// Whether the webhook waits for what controllers make, and nothing in the cluster stands in its place.
    fn waits_for(&self, said: &Said, made: &[Reason]) -> bool {
        let policy =
            |object: &Value| object["kind"] == "NetworkPolicy" && object["metadata"]["name"] == keys::DEFAULT_DENY;
        made.iter().find(|made| made.code() == said.reason).is_some_and(|made| {
            *made != Reason::NetworkPolicyPending || !self.case.fixture.objects.values().any(policy)
        })
    }

    /// Of one object; where the webhook waits, commands that read files take it to be there.
    fn alone(&self, told: (&str, &Answer, &Said), object: &Value, made: &[Reason]) -> anyhow::Result<Vec<String>> {
        let objects = std::slice::from_ref(object);
        if !self.waits_for(told.2, made) {
            return self.spoken_of(&[told], objects);
        }
        let question = self.question(objects);
        let injected = spoken::inject(&question)?.into_iter().map(|(said, _)| said);
        let said = spoken::explain(&question)?.into_iter().chain(injected).chain(spoken::validate(&question)?);
        let refused = said.filter(|said| said.reason == told.2.reason);
        Ok(refused.map(|said| format!("{}: {said:?}, although a controller makes it first", told.0)).collect())
    }

    /// An AgentRuntime that is refused is refused by all, for one reason.
    fn agent_runtime(&self, object: Value) -> anyhow::Result<Vec<String>> {
        let webhook = Said::of_webhook(&ask(self.case, &self.case.review, &self.snapshot)?);
        let objects = [object];
        let question = self.question(&objects);
        let injected = spoken::inject(&question)?.into_iter().map(|(said, _)| ("inject -f", said));
        let validated = spoken::validate(&question)?.into_iter().map(|said| ("validate", said));
        let denied = |said: &Said| said.outcome.as_deref() == Some(Class::Denied.as_str());
        let mut wrong = Vec::new();
        for (voice, said) in injected.chain(validated) {
            if denied(&said) != denied(&webhook) || (denied(&said) && said.reason != webhook.reason) {
                wrong.push(format!(
                    "AgentRuntime, {voice}: {:?} ({}), the webhook: {:?} ({})",
                    said.outcome, said.reason, webhook.outcome, webhook.reason
                ));
            }
        }
        Ok(wrong)
    }
}
