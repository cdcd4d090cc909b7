//! From a Pod as it was before us to a decision: skip, refuse, or a finished plan.
//!
//! The one sequence behind the webhook, the warn-only review of templates, `needs` and `explain`.

use super::agent_env;
use super::bypass;
use super::context::Context;
use super::credentials;
use super::decide::{self, Subject};
use super::digest;
use super::effective::{self, Effective};
use super::governor;
use super::modes::{self, Shape};
use super::native;
use super::plan::InjectionPlan;
use super::refuse;
use super::runtime_config;
use super::service_account::{self, Demand};
use super::signing;
use super::volumes;
use super::workload_name::{self, UnknownJob};
use crate::admission::verdict::{Denial, Warning};
use crate::config::resolved::Unknown;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'w> {
    /// A Pod that is being created.
    Pod,
    /// The template of a workload; its Pods come later, and what they need is being made.
    Template(&'w Workload),
}

/// A refusal with what was known by then.
#[derive(Debug)]
pub(super) struct Refused<'a> {
    /// Why.
    pub(super) denial: Box<Denial>,
    /// What was in force.
    pub(super) effective: Option<Effective<'a>>,
    /// The workload, when it was known.
    pub(super) workload: Option<Workload>,
}

/// The decision about one Pod.
#[derive(Debug)]
pub(super) enum Decided<'a> {
    /// Nothing is added.
    Skip(Reason, Option<Box<Effective<'a>>>, Vec<Warning>),
    /// The Pod is refused.
    Deny(Box<Refused<'a>>),
    /// These parts are added.
    Inject(Box<(Context<'a>, InjectionPlan<'a>)>),
}

/// Decides.
pub(super) fn assess<'a>(subject: Subject<'a>, source: Source<'_>) -> Decided<'a> {
    if let Some(filter) = decide::stopped(&subject) {
        // A Pod that is left alone stays unprotected: what its namespace says must be known, not guessed.
        let is_guess = filter.reason == Reason::NamespaceNotEnrolled && subject.is_new_here();
        if is_guess && matches!(source, Source::Pod) {
            let denial = namespace_pending(&subject);
            return Decided::Deny(Box::new(Refused { denial, effective: None, workload: None }));
        }
        // Of one that must be switched on, a value that was meant to.
        let required = filter.reason == Reason::NamespaceNotEnrolled;
        let unread = required.then(|| effective::unread_switch(&subject)).flatten();
        return Decided::Skip(filter.reason, None, unread.into_iter().collect());
    }
    // What its namespace says must be known, not guessed; a template's Pods come later.
    if subject.view().resolved.pending && matches!(source, Source::Pod) {
        let denial = config_pending(&subject);
        return Decided::Deny(Box::new(Refused { denial, effective: None, workload: None }));
    }
    if let Some(unknown) = &subject.view().resolved.unknown {
        let denial = config_unknown(&subject, unknown);
        return Decided::Deny(Box::new(Refused { denial, effective: None, workload: None }));
    }
    let workload = match source {
        Source::Template(workload) => Ok(workload.clone()),
        Source::Pod => workload_name::workload(subject.pod, subject.view()),
    };
    let governor = match &workload {
        Ok(workload) => governor::of(&subject, workload),
        // Only its CronJob tells which AgentRuntime governs the Pod.
        Err(job) if subject.view().governors.any(WorkloadKind::CronJob) => {
            let denial = owner_pending(&subject, job);
            return Decided::Deny(Box::new(Refused { denial, effective: None, workload: None }));
        }
        Err(_) => None,
    };
    if let Some((governor, over)) = governor.and_then(|governor| Some((governor, governor.says.over?))) {
        let place = format!("AgentRuntime {}/{}", subject.namespace, governor.name);
        let denial = config_unknown(&subject, &Unknown { place, bound: over.sentence().to_owned() });
        return Decided::Deny(Box::new(Refused { denial, effective: None, workload: None }));
    }
    let effective = Effective::of(&subject, governor);
    let build = match modes::shape(effective.mode.value, &subject.snapshot.gates) {
        Shape::Untouched(reason) => {
            let unseen = bypass::unseen_waypoint(&subject, effective.mode.value);
            return Decided::Skip(reason, Some(Box::new(effective)), unseen.into_iter().collect());
        }
        Shape::Build(build) => build,
    };
    let sidecars = &effective.sidecars;
    let wanted = sidecars.envoy.inject || sidecars.spiffe.inject || sidecars.registration.inject;
    if !wanted && effective.mode.value != Mode::ProxySidecar {
        let left_out = bypass::left_out(&effective);
        return Decided::Skip(Reason::NothingToInject, Some(Box::new(effective)), left_out.into_iter().collect());
    }
    let deny =
        |denial, effective, workload| Decided::Deny(Box::new(Refused { denial, effective: Some(effective), workload }));
    if let Err(denial) = refuse::before(&subject) {
        return deny(denial, effective, None);
    }
    let workload = match workload {
        Ok(workload) => workload,
        Err(job) => return deny(owner_pending(&subject, &job), effective, None),
    };
    let cx = Context { subject, effective, workload };
    let mut plan = InjectionPlan::default();
    match build(&cx, &mut plan).and_then(|()| complete(&cx, &mut plan, source)) {
        Err(denial) => deny(denial, cx.effective, Some(cx.workload)),
        Ok(()) if plan.is_empty() => {
            Decided::Skip(Reason::NothingToInject, Some(Box::new(cx.effective)), plan.warnings)
        }
        Ok(()) => Decided::Inject(Box::new((cx, plan))),
    }
}

fn namespace_pending(subject: &Subject<'_>) -> Box<Denial> {
    Box::new(
        Denial::new(
            Reason::NamespacePending,
            409,
            format!(
                "namespace {} has not been read yet, and only namespaces labelled {}=true are served (requireNamespaceLabel)",
                subject.namespace,
                keys::LABEL_NAMESPACE_ENABLED
            ),
            "nothing, the controller of the Pod tries again by itself; create a Pod that nobody controls again in a moment",
        )
        .at("metadata.namespace", subject.namespace),
    )
}

fn config_pending(subject: &Subject<'_>) -> Box<Denial> {
    Box::new(
        Denial::new(
            Reason::ConfigPending,
            409,
            format!("the ConfigMaps of namespace {} have not been read yet", subject.namespace),
            "nothing, the controller of the Pod tries again by itself; create a Pod that nobody controls again in a moment; if this \
             stays, the namespace's ConfigMaps change faster than they can be read",
        )
        .at("metadata.namespace", subject.namespace),
    )
}

/// Sidecars without their namespace's own settings might let through what it forbids.
fn config_unknown(subject: &Subject<'_>, unknown: &Unknown) -> Box<Denial> {
    Box::new(
        Denial::new(
            Reason::ConfigUnknown,
            422,
            format!("{} {}, and what it said before is not known", unknown.place, unknown.bound),
            "make it smaller, or delete what is not needed; then create the Pod again (what controls a Pod does that by itself)",
        )
        .at("metadata.namespace", subject.namespace),
    )
}

fn owner_pending(subject: &Subject<'_>, job: &UnknownJob) -> Box<Denial> {
    Box::new(
        Denial::new(
            Reason::OwnerPending,
            409,
            format!("Job {}/{} (uid {}) owns the Pod and is not known yet", subject.namespace, job.name, job.uid),
            "nothing, the Job's controller tries again by itself",
        )
        .at("metadata.ownerReferences", format!("Job {}", job.name)),
    )
}

/// What every mode has in common.
fn complete<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>, source: Source<'_>) -> Result<(), Box<Denial>> {
    if plan.is_empty() {
        return Ok(());
    }
    let pod = cx.subject.pod;
    agent_env::trace(pod, &cx.effective.trace, plan);
    if cx.effective.credentials.is_some() {
        credentials::mount_in_user_containers(pod, plan);
    }
    let spire = cx.effective.spire();
    plan.fs_group = spire && pod.security_context("fsGroup").is_none();
    signing::add(cx, plan)?;
    if cx.effective.native {
        native::arrange(pod, plan);
    }
    volumes::fill(cx, plan);
    notice(cx, plan);
    refuse::after(cx, plan)?;
    plan.config_hash = digest::of_configuration(cx, plan);
    plan.volumes.retain(|ours| !pod.list("volumes").iter().any(|theirs| super::pod::text(theirs, "name") == ours.name));
    match service_account::demand(pod.service_account(), spire, &cx.workload) {
        Demand::None => {}
        Demand::Kept => plan.warnings.push(service_account::kept(&cx.workload)),
        Demand::Dedicated(name) => {
            service_account::check(cx, &name).or_else(|denial| match source {
                Source::Template(_) if denial.reason == Reason::ServiceAccountPending => Ok(()),
                _ => Err(denial),
            })?;
            plan.service_account = Some(name);
        }
    }
    refuse::finished(cx, plan)
}

/// Warnings about the finished plan.
fn notice(cx: &Context<'_>, plan: &mut InjectionPlan<'_>) {
    let reads_issuer = plan.all_containers().flat_map(|c| &c.env).any(|variable| variable.name == "ISSUER")
        || (plan.runtime_config.is_some() && !runtime_config::has_pipeline(&cx.effective.resolved.runtime_base));
    if reads_issuer && cx.config("ISSUER").is_none_or(str::is_empty) {
        plan.warnings.push(Warning::new(
            Reason::IssuerMissing,
            format!(
                "ConfigMap {}/{} has no key ISSUER, so tokens cannot be validated; set it to the public URL of the realm",
                cx.subject.namespace,
                keys::CONFIG_MAP_AUTHBRIDGE
            ),
        ));
    }
    if cx.effective.sidecars.registration.inject {
        unregistered(cx, plan);
    }
    bypass::warnings(cx, plan);
    let brought = cx.subject.pod.annotation(keys::ANNOTATION_RUNTIME_CONFIG);
    if brought.is_some() && brought != plan.runtime_config.as_deref() {
        plan.warnings.push(Warning::new(
            Reason::LabelIgnored,
            format!(
                "annotation {} is written by Drawbridge and was replaced; change ConfigMap {} instead",
                keys::ANNOTATION_RUNTIME_CONFIG,
                keys::CONFIG_MAP_RUNTIME
            ),
        ));
    }
}

/// What registration cannot do without (5.4): a reference that nothing fills holds its container up, and says so nowhere but
/// in the Pod's own status.
fn unregistered(cx: &Context<'_>, plan: &mut InjectionPlan<'_>) {
    for (key, meaning) in [("KEYCLOAK_URL", "Keycloak's base URL"), ("KEYCLOAK_REALM", "the name of the realm")] {
        if cx.config(key).is_some_and(|value| !value.is_empty()) {
            continue;
        }
        let waiting = plan
            .all_containers()
            .find(|container| container.env.iter().any(|variable| variable.name == key && variable.is_waited_for()));
        let effect = match waiting.filter(|_| cx.config(key).is_none()) {
            Some(container) => format!("container {} does not start", container.name),
            None => "no client can be registered".to_owned(),
        };
        plan.warnings.push(Warning::new(
            Reason::RegistrationIncomplete,
            format!(
                "ConfigMap {}/{} has no value for key {key}, so {effect}; set it to {meaning}",
                cx.subject.namespace,
                keys::CONFIG_MAP_AUTHBRIDGE
            ),
        ));
    }
}
