//! The warn-only review of what makes Pods: the same decision, taken about its template.
//!
//! Never refuses, never changes: the decision becomes warnings, because what a Pod's review says never reaches the
//! person who applies a Deployment.

use serde_json::Value;

use super::assess::{Decided, Source, assess};
use super::decide::Subject;
use super::itself::{self, Asked};
use super::pod::text;
use super::workload_name;
use super::{Received, known, narrate, object, once, trust};
use crate::admission::explanation::Explanation;
use crate::admission::verdict::{Verdict, Warning};
use crate::api::review::Request;
use crate::config::misplaced::{self, Misplaced, Named};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::namespace_switch;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};

/// Where each kind keeps its template.
const TEMPLATES: [(&str, &[&str]); 6] = [
    ("Deployment", &["spec", "template"]),
    ("StatefulSet", &["spec", "template"]),
    ("DaemonSet", &["spec", "template"]),
    ("ReplicaSet", &["spec", "template"]),
    ("Job", &["spec", "template"]),
    ("CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// The template inside an object of that kind.
fn template<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    let (_, path) = TEMPLATES.iter().find(|(known, _)| *known == kind)?;
    path.iter().try_fold(object, |value, key| value.get(*key))
}

/// The workload that is reviewed: a Job that a CronJob made answers for the CronJob. What its Pods will belong to, [`workload_name::of_template`]
/// tells.
fn workload(request: &Request<'_>, object: &Value) -> Workload {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let name = [text(metadata, "name"), text(metadata, "generateName").trim_end_matches('-')]
        .into_iter()
        .find(|name| !name.is_empty())
        .or(request.name.as_deref())
        .unwrap_or("");
    let kind = WorkloadKind::from_group_kind(&request.kind.group, &request.kind.kind).unwrap_or(WorkloadKind::Unknown);
    let own = Workload { kind, name: name.to_owned() };
    if kind != WorkloadKind::Job {
        return own;
    }
    super::pod::items(metadata, "ownerReferences")
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)) && text(owner, "kind") == "CronJob")
        .filter(|owner| text(owner, "apiVersion").starts_with("batch/"))
        .map_or(own, |owner| Workload { kind: WorkloadKind::CronJob, name: text(owner, "name").to_owned() })
}

/// The review of one workload.
pub(in crate::admission) fn review_workload(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let Ok(value) = object(request.object.as_ref()) else { return Verdict::skipped(Reason::Undecodable) };
    let is_going = value.get("metadata").is_some_and(|metadata| metadata.get("deletionTimestamp").is_some());
    let Some(template) = template(&value, &request.kind.kind).filter(|_| !is_going) else {
        return Verdict::skipped(Reason::NothingToInject);
    };
    let workload = workload(request, &value);
    let asked = itself::asked(request, &workload, (&value, template), snapshot);
    let template = asked.as_ref().and_then(|asked| asked.template.as_ref()).unwrap_or(template);
    let of_pods = workload_name::of_template(&workload, template);
    let received = Received::of_template(template, &of_pods, known(request.namespace(), snapshot));
    let Ok(received) = received else { return Verdict::skipped(Reason::Undecodable) };
    let Ok(pod) = received.before() else { return Verdict::skipped(Reason::Undecodable) };
    let whose = format!("Pods of {} {}/{}", of_pods.kind.as_str(), request.namespace(), of_pods.name);
    let subject = Subject::new(pod, request.namespace(), snapshot);
    let (reason, sentence, found, more) = match assess(subject, Source::Template(&of_pods)) {
        Decided::Skip(reason, effective, more) => {
            let sentence = match &asked {
                Some(Asked { words: Some((_, words)), .. }) => Some(format!("{whose} stay as they are: {words}")),
                _ => untouched(&whose, reason, &told(request, &workload, (&value, template))),
            };
            let reason = asked.as_ref().and_then(|asked| asked.words.as_ref()).map_or(reason, |(reason, _)| *reason);
            (reason, sentence, effective.map(|effective| effective.warnings).unwrap_or_default(), more)
        }
        Decided::Deny(refused) => {
            let found = refused.effective.map(|effective| effective.warnings).unwrap_or_default();
            let sentence =
                format!("{whose} will be refused: {}. What to do: {}", refused.denial.sentence, refused.denial.remedy);
            (refused.denial.reason, Some(sentence), found, Vec::new())
        }
        Decided::Inject(decided) => {
            let (cx, plan) = *decided;
            let parts: Vec<&str> = plan.all_containers().map(|container| container.name).collect();
            let account = plan.service_account.map_or_else(String::new, |name| format!("; ServiceAccount {name}"));
            let mode = &cx.effective.mode;
            let by_label = asked.as_ref().map_or("", |_| itself::rolls(workload.kind));
            let sentence = format!(
                "{whose} get {} (mode {}, {}{account}){by_label}",
                parts.join(", "),
                mode.value.as_str(),
                mode.layer
            );
            (Reason::Injected, Some(sentence), cx.effective.warnings, plan.warnings)
        }
    };
    let mut verdict = Verdict::skipped(reason);
    // A warning is for what somebody may want to change; what goes well stands in the audit log. That Pods roll once is told.
    let decision = match sentence {
        Some(sentence) if reason == Reason::Injected && asked.is_none() => {
            verdict.audit.push(("decision", sentence));
            Vec::new()
        }
        sentence => sentence.map(|sentence| Warning::new(reason, sentence)).into_iter().collect(),
    };
    let mut warnings = if found.is_empty() && more.is_empty() { decision } else { once(decision, once(found, more)) };
    warnings.extend(trust::of_template(received.view, (&whose, workload.kind), subject.view()));
    Verdict { warnings, ..verdict }
}

/// What is wrong with the labels of a workload that nothing enrols.
fn told(request: &Request<'_>, workload: &Workload, (object, template): (&Value, &Value)) -> Option<Misplaced> {
    let (kind, spelled) = (workload.kind, workload.kind.as_str());
    misplaced::of(Named { kind, spelled, namespace: request.namespace(), name: &workload.name }, object, Some(template))
}

/// Silence for what was never meant for us; a word where somebody may have expected injection.
fn untouched(whose: &str, reason: Reason, told: &Option<Misplaced>) -> Option<String> {
    match (reason, told) {
        (Reason::SystemNamespace | Reason::NoContainers, _) | (Reason::NoTypeLabel, None) => None,
        (Reason::NoTypeLabel, Some(told)) => Some(format!("{whose} stay as they are: {}", told.message)),
        (_, _) => Some(format!("{whose} stay as they are: {}", reason.sentence())),
    }
}

/// The review of a Namespace: it enrols nothing, and whoever labels one hears so; and whoever writes a switch that switches nothing.
pub(in crate::admission) fn review_namespace(request: &Request<'_>, _: &Snapshot) -> Verdict {
    let Ok(value) = object(request.object.as_ref()) else { return Verdict::skipped(Reason::Undecodable) };
    let is_going = value.get("metadata").is_some_and(|metadata| metadata.get("deletionTimestamp").is_some());
    if is_going {
        return Verdict::skipped(Reason::NothingToInject);
    }
    let metadata = value.get("metadata").unwrap_or(&Value::Null);
    let switch = metadata.get("labels").and_then(|labels| labels.get(keys::LABEL_NAMESPACE_ENABLED)?.as_str());
    let unread = namespace_switch::unread(text(metadata, "name"), switch);
    let told = misplaced::of_namespace(&value).map(|told| Warning::new(told.reason, told.message));
    let warnings: Vec<_> =
        told.into_iter().chain(unread.map(|told| Warning::new(Reason::UnknownValue, told))).collect();
    let reason = if warnings.is_empty() { Reason::NothingToInject } else { Reason::LabelIgnored };
    Verdict { warnings, ..Verdict::skipped(reason) }
}

/// The tree behind the review of a Namespace.
pub(in crate::admission) fn explain_namespace(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    Explanation::of(&format!("Namespace {}", request.name.as_deref().unwrap_or_default()), verdict)
}

/// The tree behind the review of a workload.
pub(in crate::admission) fn explain_workload(
    request: &Request<'_>,
    snapshot: &Snapshot,
    verdict: &Verdict,
) -> Explanation {
    let value = object(request.object.as_ref()).unwrap_or(Value::Null);
    let workload = workload(request, &value);
    let subject = format!("{} {}/{}", request.kind.kind, request.namespace(), workload.name);
    let tree = Explanation::of(&subject, verdict);
    let template = template(&value, &request.kind.kind);
    let asked = template.and_then(|template| itself::asked(request, &workload, (&value, template), snapshot));
    match asked.as_ref().and_then(|asked| asked.template.as_ref()).or(template) {
        Some(template) => {
            let of_pods = workload_name::of_template(&workload, template);
            narrate::tree(tree, template, request.namespace(), snapshot, Source::Template(&of_pods))
        }
        None => tree,
    }
}
