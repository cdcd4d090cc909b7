//! AuthBridge sidecars into a Pod at CREATE.
//!
//! ```text
//! raw Pod ─► pod (view) ─► decide (filters, sidecars) ─► effective (layers) ─► modes (plan) ─► render (operations)
//!                │                                                                               │
//!                └── status annotation ─► strip (the Pod as it was before us) ── repair ─────────┘
//! ```
//!
//! Promise: the patch applies, a second call gives an empty patch, and what we do not know survives byte for byte.

mod agent_env;
mod assess;
mod bypass;
mod containers;
mod context;
mod credentials;
mod decide;
mod digest;
mod edit;
mod effective;
#[cfg(test)]
pub(in crate::admission) mod fixtures;
mod governor;
mod identity;
mod itself;
mod modes;
mod narrate;
mod native;
mod open_paths;
mod parts;
mod plan;
mod pod;
pub mod port_list;
mod ports;
mod probes;
mod refuse;
mod render;
mod repair;
mod requested;
mod runtime_config;
mod service_account;
mod signing;
mod status;
mod strip;
mod template;
mod token;
mod told;
mod trust;
mod volumes;
mod workload_name;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use super::explanation::Explanation;
use super::patch::{self, PatchOperation};
use super::verdict::{Denial, Verdict, Warning};
use crate::api::agent_kagenti_dev::agent_runtime::Effective as EffectiveConfiguration;
use crate::api::json::{self, Unwanted};
use crate::api::place::mapping;
use crate::api::review::{Raw, Request};
use crate::config::snapshot::Snapshot;
use crate::config::view::{NamespaceView, Ownership};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};
use assess::{Decided, Source, assess};
use context::Context;
use decide::Subject;
use parts::Parts;
use plan::InjectionPlan;
use pod::{Misshapen, PodView};
use status::Status;

pub use identity::{RunsAs, runs_as};
pub(super) use template::{explain_namespace, review_namespace, review_workload};

/// What a workload's Pods will ask for, so that controllers make it ahead of them, and what they will
/// be injected with, so that a change of it can roll them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Its Pods will be injected (or refused while something is wrong): the namespace needs its ConfigMaps.
    pub enrolled: bool,
    /// The dedicated ServiceAccount that must exist; `None` when the Pods keep theirs.
    pub service_account: Option<String>,
    /// The ServiceAccount under which its Pods sign their card; `None` when they do not.
    pub signs_as: Option<String>,
    /// They sign it anew by themselves whenever their SVID is renewed.
    pub signs_anew: bool,
    /// The stamp the webhook puts on the Pods, 64 hexadecimal digits; `None` when they get none, because they stay as they are
    /// or would be refused.
    pub config_hash: Option<String>,
    /// Why: [`Reason::Injected`], the reason for which nothing is added, or the reason of the refusal.
    pub reason: Reason,
    /// Why its Pods would be refused.
    pub refused: Option<Box<Denial>>,
}

impl Needs {
    fn nothing(reason: Reason) -> Self {
        Self {
            enrolled: false,
            service_account: None,
            signs_as: None,
            signs_anew: false,
            config_hash: None,
            reason,
            refused: None,
        }
    }
}

/// What Pods of that template will need in that namespace; `template` is `{metadata, spec}`, with the labels its Pods will have.
#[must_use]
pub fn needs(namespace: &str, workload: &Workload, template: &Value, snapshot: &Snapshot) -> Needs {
    let workload = &*workload_name::of_template(workload, template);
    let received = Received::of_template(template, workload, known(namespace, snapshot));
    let Ok(received) = received else { return Needs::nothing(Reason::Undecodable) };
    let Ok(pod) = received.before() else { return Needs::nothing(Reason::Undecodable) };
    match assess(Subject::new(pod, namespace, snapshot), Source::Template(workload)) {
        Decided::Skip(reason, ..) => Needs::nothing(reason),
        Decided::Inject(decided) => {
            let (cx, plan) = *decided;
            let signs = cx.effective.sidecars.signer.inject;
            Needs {
                enrolled: true,
                signs_as: signs.then(|| identity::planned(&cx, &plan).account),
                signs_anew: cx.effective.signer_stays,
                service_account: plan.service_account,
                config_hash: Some(plan.config_hash),
                ..Needs::nothing(Reason::Injected)
            }
        }
        Decided::Deny(refused) => Needs {
            enrolled: true,
            service_account: (refused.denial.reason == Reason::ServiceAccountConflict)
                .then(|| workload.service_account().to_owned()),
            refused: Some(refused.denial.clone()),
            ..Needs::nothing(refused.denial.reason)
        },
    }
}

/// The configuration in force for Pods of that template, for the status of its AgentRuntime; `None` when they stay as they are
/// before any configuration is asked.
#[must_use]
pub fn in_force(
    namespace: &str,
    workload: &Workload,
    template: &Value,
    snapshot: &Snapshot,
) -> Option<EffectiveConfiguration> {
    let received = Received::of_template(template, workload, known(namespace, snapshot)).ok()?;
    let pod = received.before().ok()?;
    match assess(Subject::new(pod, namespace, snapshot), Source::Template(workload)) {
        Decided::Skip(_, effective, _) => Some(effective?.for_status(None)),
        Decided::Deny(refused) => Some(refused.effective?.for_status(None)),
        Decided::Inject(decided) => {
            let (cx, plan) = *decided;
            let id = cx.spiffe_id(&plan);
            Some(cx.effective.for_status(id))
        }
    }
}

/// The template with the label its Pods will carry once they are enrolled: the type of the AgentRuntime that governs the workload,
/// unless the template says its own (never over a user's).
#[must_use]
pub fn governed_template<'t>(
    namespace: &str,
    workload: &Workload,
    template: &'t Value,
    snapshot: &Snapshot,
) -> Cow<'t, Value> {
    let governor = snapshot.namespace(namespace).and_then(|view| view.governors.winner(workload.kind, &workload.name));
    let Some(agent_type) = governor.and_then(|governor| governor.says.agent_type) else {
        return Cow::Borrowed(template);
    };
    let says_its_own = template
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(keys::LABEL_TYPE))
        .is_some_and(|label| !label.is_null());
    if says_its_own {
        return Cow::Borrowed(template);
    }
    let mut governed = template.clone();
    let Some(labels) = mapping(&mut governed, ["metadata", "labels"]) else { return Cow::Borrowed(template) };
    labels.insert(keys::LABEL_TYPE.to_owned(), agent_type.as_str().into());
    Cow::Owned(governed)
}

/// The operations that take out everything the status annotation says we added; empty when it says nothing.
#[must_use]
pub fn uninject(pod: &Value) -> Vec<PatchOperation> {
    match PodView::new(pod) {
        Ok(view) => Status::read(view).map_or_else(Vec::new, |status| patch::plain(&strip::operations(view, &status))),
        Err(_) => Vec::new(),
    }
}

/// The operations that make of a Pod what the webhook judges of it: the Pod as it was before us. `sent`: it is as somebody sends it, a manifest or
/// one made of a template, so that its status annotation comes with it; of a Pod that is stored its `metadata.managedFields` tell.
#[must_use]
pub fn taken_back(pod: &Value, sent: bool, namespace: &str, snapshot: &Snapshot) -> Vec<PatchOperation> {
    let Ok(view) = PodView::new(pod) else { return Vec::new() };
    let known = known(namespace, snapshot);
    recorded(view, sent, |account| is_ours(known, account))
        .map_or_else(Vec::new, |status| patch::plain(&strip::operations(view, &status)))
}

/// What a status annotation records, as far as it counts; see [`Status::distrust`] for `dedicated`.
fn recorded(view: PodView<'_>, sent: bool, dedicated: impl Fn(&str) -> bool) -> Option<Status<'static>> {
    let mut status = Status::read(view)?;
    status.brought |= sent;
    status.distrust(view, dedicated);
    Some(status)
}

/// Whether a ServiceAccount of that name is there and is one that we give to Pods.
fn is_ours(known: &NamespaceView, account: &str) -> bool {
    known.service_accounts.get(account) == Some(&Ownership::Ours)
}

/// What is known of a namespace.
fn known<'s>(namespace: &str, snapshot: &'s Snapshot) -> &'s NamespaceView {
    snapshot.namespace(namespace).unwrap_or(&snapshot.fresh)
}

/// An object as received, what its status annotation records, and as it was before us.
struct Received<'v> {
    view: PodView<'v>,
    status: Option<Status<'static>>,
    before: Cow<'v, Value>,
    managed: Option<&'v Value>,
}

impl<'v> Received<'v> {
    /// A Pod that somebody sends; `managed` is its `metadata.managedFields`, where `value` is without them.
    fn of_pod(value: &'v Value, managed: Option<&'v Value>, known: &NamespaceView) -> Result<Self, Box<Denial>> {
        let view = PodView::new(value).map_err(not_a_pod)?.noted(managed);
        let status = recorded(view, false, |account| is_ours(known, account));
        Self::with(value, view, status, managed)
    }

    /// The template of a workload. Its Pods are sent with the annotation that stands there, so that it never is an answer of ours. The account that
    /// such Pods are given is made before them: until it is there, the record of it is that of a template that was copied from one of them.
    fn of_template(value: &'v Value, workload: &Workload, known: &NamespaceView) -> Result<Self, Box<Denial>> {
        let view = PodView::new(value).map_err(not_a_pod)?;
        let is_to_be_made =
            |account: &str| account == workload.service_account() && !known.service_accounts.contains_key(account);
        let status = recorded(view, true, |account| is_ours(known, account) || is_to_be_made(account));
        Self::with(value, view, status, None)
    }

    fn with(
        value: &'v Value,
        view: PodView<'v>,
        status: Option<Status<'static>>,
        managed: Option<&'v Value>,
    ) -> Result<Self, Box<Denial>> {
        let before = match &status {
            None => Cow::Borrowed(value),
            Some(status) => {
                let mut before = value.clone();
                json_patch::patch(&mut before, &patch::plain(&strip::operations(view, status))).map_err(|error| {
                    Box::new(Denial::new(
                        Reason::InternalError,
                        500,
                        format!("Drawbridge's own parts could not be told from the Pod's: {error}"),
                        "report this as a defect of Drawbridge, with the Pod's manifest",
                    ))
                })?;
                Cow::Owned(before)
            }
        };
        Ok(Self { view, status, before, managed })
    }

    /// The object as it was before us.
    fn before(&self) -> Result<PodView<'_>, Misshapen> {
        match &self.before {
            Cow::Borrowed(_) => Ok(self.view),
            Cow::Owned(before) => {
                let earlier = self.status.as_ref().map(Status::earlier).unwrap_or_default();
                Ok(PodView::new(before)?.noted(self.managed).after(earlier))
            }
        }
    }
}

/// The object of a request as JSON.
fn object(raw: Option<&Raw<'_>>) -> Result<Value, Box<Denial>> {
    parsed(raw.ok_or_else(|| undecodable("the AdmissionReview has no object"))?.get(), json::ALL_WANTED)
}

fn parsed(text: &str, unread: &'static Unwanted) -> Result<Value, Box<Denial>> {
    json::tree(text, unread).map_err(|error| undecodable(&format!("the object is not readable JSON: {error}")))
}

/// A Pod as far as its review reads it.
struct PodRead<'r> {
    value: Cow<'r, Value>,
    /// Its `metadata.managedFields`, when they are not in `value`.
    managed: Option<Value>,
}

/// What of `metadata.managedFields` decides nothing where no variable is added: who set which field of the spec.
const NOTES_UNREAD: &Unwanted = &Unwanted {
    within: &[("fieldsV1", &Unwanted { members: &["f:spec", "f:status"], ..Unwanted::NOTHING })],
    ..Unwanted::NOTHING
};

/// The Pod of a request, without what its review has no use for. Who set which field is read only where it decides: when a
/// status annotation is there, and where variables are added that the requester may have set.
fn pod_of<'r>(request: &'r Request<'_>, snapshot: &Snapshot) -> Result<PodRead<'r>, Box<Denial>> {
    let raw = request.object.as_ref();
    let view = known(request.namespace(), snapshot);
    let Some(pod) = raw.and_then(Raw::pod).filter(|pod| !is_read_whole(&pod.tree, view)) else {
        return Ok(PodRead { value: Cow::Owned(object(raw)?), managed: None });
    };
    let traced = view.resolved.trace.says_something() || view.governors.trace();
    let annotations = pod.tree.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let injected = annotations.is_some_and(|annotations| annotations.get(keys::ANNOTATION_STATUS).is_some());
    let text = pod.managed_fields.filter(|_| traced || injected);
    let unread = if traced { json::ALL_WANTED } else { NOTES_UNREAD };
    let managed = text.map(|text| parsed(text, unread)).transpose()?;
    Ok(PodRead { value: Cow::Borrowed(&pod.tree), managed })
}

/// Whether what is passed over on the way through the envelope decides, too: the requests of the containers where the Pod has its own, and
/// their commands and variables where an agent is moved to another port.
fn is_read_whole(tree: &Value, view: &NamespaceView) -> bool {
    let is_rationed = tree.get("spec").and_then(|spec| spec.get("resources")).is_some_and(Value::is_object);
    let annotations = tree.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let asks = annotations.and_then(|annotations| annotations.get(keys::ANNOTATION_MODE)).and_then(Value::as_str);
    is_rationed
        || asks == Some(Mode::ProxySidecar.as_str())
        || view.resolved.mode.value == Mode::ProxySidecar
        || view.governors.takes_ports()
}

fn undecodable(sentence: &str) -> Box<Denial> {
    Box::new(Denial::new(Reason::Undecodable, 400, sentence, "send the object as `kubectl apply` would"))
}

fn not_a_pod(wrong: Misshapen) -> Box<Denial> {
    let sentence = format!("the object is no Pod: {} must be {}", wrong.field, wrong.expected);
    let mut denial = undecodable(&sentence).at(wrong.field, wrong.seen);
    denial.remedy = format!("write {} there", wrong.expected);
    Box::new(denial)
}

/// The review of one Pod.
pub(super) fn review_pod(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    try_review_pod(request, snapshot).unwrap_or_else(|denial| Verdict::denied(*denial))
}

fn try_review_pod(request: &Request<'_>, snapshot: &Snapshot) -> Result<Verdict, Box<Denial>> {
    let PodRead { value, managed } = pod_of(request, snapshot)?;
    let kind = pod::text(&value, "kind");
    if !matches!(kind, "" | "Pod") {
        return Err(Box::new(undecodable("the object is no Pod").at("kind", kind)));
    }
    let view = known(request.namespace(), snapshot);
    let received = Received::of_pod(&value, managed.as_ref(), view)?;
    if let Some(pending) = trust::pending(received.view, request.namespace(), view, snapshot) {
        return Err(pending);
    }
    let before = received.before().map_err(not_a_pod)?;
    let subject = Subject::new(before, request.namespace(), snapshot);
    let verdict = match assess(subject, Source::Pod) {
        Decided::Skip(reason, effective, warnings) => {
            let found = effective.map(|effective| effective.warnings).unwrap_or_default();
            Verdict { warnings: once(found, warnings), ..skip(reason, &received) }
        }
        Decided::Deny(refused) => {
            let more = command(request.namespace(), refused.workload.as_ref());
            let found = refused.effective.map(|effective| effective.warnings).unwrap_or_default();
            Verdict { warnings: once(found, Vec::new()), ..Verdict::denied(refused.denial.with_more(more)) }
        }
        Decided::Inject(decided) => {
            let (cx, plan) = *decided;
            inject(&received, before, cx, plan)
        }
    };
    Ok(trust::without_label(received.view, verdict))
}

/// Nothing is added: what an earlier call of ours added goes, and our scheduling gate.
fn skip(reason: Reason, received: &Received<'_>) -> Verdict {
    let hands_off = matches!(reason, Reason::SystemNamespace | Reason::MirrorPod);
    let (mut operations, reason) = match &received.status {
        Some(status) if !hands_off => (strip::operations(received.view, status), Reason::Removed),
        _ => (Vec::new(), reason),
    };
    render::scheduling_gate(received.view, &mut operations);
    Verdict::allowed_with(reason, operations)
}

/// The plan as an answer.
fn inject(received: &Received<'_>, before: PodView<'_>, cx: Context<'_>, plan: InjectionPlan<'_>) -> Verdict {
    let ours = Parts::of(&plan);
    let status = Status::of(&plan, &ours, cx.effective.mode.value, before);
    let nothing = Status::default();
    let recorded = received.status.as_ref().unwrap_or(&nothing);
    let operations = render::operations(received.view, recorded, (&plan, &ours), &status);
    let reason = if operations.is_empty() { Reason::AlreadyInjected } else { Reason::Injected };
    let parts: Vec<&str> = plan.all_containers().map(|container| container.name).collect();
    let mut verdict = Verdict::allowed_with(reason, operations);
    verdict.audit.extend([
        ("mode", cx.effective.mode.value.as_str().to_owned()),
        ("mode-layer", cx.effective.mode.layer.to_string()),
        ("workload", format!("{}/{}", cx.workload.kind.as_str(), cx.workload.name)),
        ("parts", parts.join(",")),
        ("config-hash", plan.config_hash),
    ]);
    verdict.warnings = once(cx.effective.warnings, plan.warnings);
    verdict
}

/// Both lists, each sentence once.
fn once(first: Vec<Warning>, second: Vec<Warning>) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::with_capacity(first.len() + second.len());
    for warning in first.into_iter().chain(second) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    all
}

/// The command that shows the decision in full.
fn command(namespace: &str, workload: Option<&Workload>) -> String {
    match workload {
        Some(Workload { kind, name }) if WorkloadKind::WITH_TEMPLATE.contains(kind) => {
            let kind = kind.as_str().to_lowercase();
            format!("kubectl get {kind} {name} -n {namespace} -o yaml | drawbridge explain -n {namespace} -f -")
        }
        _ => format!("drawbridge explain -n {namespace} -f <the manifest>"),
    }
}

/// The tree behind the review of a Pod.
pub(super) fn explain_pod(request: &Request<'_>, snapshot: &Snapshot, verdict: &Verdict) -> Explanation {
    let name = request.name.as_deref().filter(|name| !name.is_empty());
    let Ok(value) = object(request.object.as_ref()) else {
        return Explanation::of(&format!("Pod {}/{}", request.namespace(), name.unwrap_or("?")), verdict);
    };
    let metadata = |key| value.get("metadata").map_or("", |metadata| pod::text(metadata, key));
    let name = [name.unwrap_or(""), metadata("name"), metadata("generateName")]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or("?");
    let tree = Explanation::of(&format!("Pod {}/{name}", request.namespace()), verdict);
    narrate::tree(tree, &value, request.namespace(), snapshot, Source::Pod)
}

pub(super) use template::explain_workload;
