//! The workload's own layers over the namespace's configuration: annotations, gates, labels, SPIRE, credentials.
//!
//! In: a [`Subject`]. Out: mode, sidecars and switches in force for this Pod, each with who decided, and the
//! warnings that came up. AgentRuntime, the strongest layer, joins here with the enrolment of existing workloads.

use super::decide::{self, DecidedBy, Decision, Decisions, Subject};
use crate::admission::verdict::Warning;
use crate::config::layers::{Field, Layer};
use crate::config::resolved::{NativeSidecars, Resolved, SpireSwitch};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// What is in force for one Pod.
#[derive(Debug)]
pub(super) struct Effective<'a> {
    /// The namespace's configuration below.
    pub(super) resolved: &'a Resolved,
    /// Which plan is built.
    pub(super) mode: Field<Mode>,
    /// The switch behind `native`.
    pub(super) native_switch: Field<NativeSidecars>,
    /// Sidecars are init containers with `restartPolicy: Always`.
    pub(super) native: bool,
    /// Per sidecar, after every layer.
    pub(super) sidecars: Decisions,
    /// Name of the Secret with operator-managed credentials.
    pub(super) credentials: Option<&'a str>,
    /// What came up.
    pub(super) warnings: Vec<Warning>,
}

/// The first API server that runs init containers with `restartPolicy: Always`.
const NATIVE_SINCE: (u32, u32) = (1, 29);

impl<'a> Effective<'a> {
    /// Lays the Pod's own layers over the namespace's.
    pub(super) fn of(subject: &Subject<'a>) -> Self {
        let resolved = subject.resolved();
        let mut warnings: Vec<Warning> =
            resolved.notices.iter().map(|notice| Warning::new(notice.reason, notice.text.as_str())).collect();
        unknown_labels(subject, &mut warnings);
        let mode = mode(subject, resolved, &mut warnings);
        let native_switch = native(subject, resolved, &mut warnings);
        let native =
            native_switch.value == NativeSidecars::Auto && subject.snapshot.view.server_version >= NATIVE_SINCE;
        let credentials =
            subject.pod.annotation(keys::ANNOTATION_CREDENTIALS).map(str::trim).filter(|name| !name.is_empty());
        let mut sidecars = decide::sidecars(subject.pod, &subject.snapshot.gates);
        if mode.value == Mode::ProxySidecar {
            proxy_mode(subject, &mut sidecars, &mut warnings);
        }
        spire(subject, resolved, &mut sidecars, &mut warnings);
        if credentials.is_some() && sidecars.registration.inject {
            sidecars.registration = Decision { inject: false, by: DecidedBy::Credentials };
            warnings.push(Warning::new(
                Reason::RegistrationSuperseded,
                format!(
                    "label {} asks for the registration sidecar and annotation {} names credentials that are managed \
                     for the Pod; the sidecar was left out. Remove one of the two",
                    keys::LABEL_CLIENT_REGISTRATION,
                    keys::ANNOTATION_CREDENTIALS
                ),
            ));
        }
        Self { resolved, mode, native_switch, native, sidecars, credentials, warnings }
    }

    /// SPIRE parts are injected.
    pub(super) fn spire(&self) -> bool {
        self.sidecars.spiffe.inject
    }
}

/// Labels of ours with the values that mean something.
const LABEL_VALUES: [(&str, &[&str]); 4] = [
    (keys::LABEL_INJECT, &[keys::INJECT_DISABLED, "enabled"]),
    (keys::LABEL_ENVOY_PROXY, &["true", "false"]),
    (keys::LABEL_SPIFFE_HELPER, &["true", "false"]),
    (keys::LABEL_CLIENT_REGISTRATION, &["true", "false"]),
];

fn unknown_labels(subject: &Subject<'_>, warnings: &mut Vec<Warning>) {
    for (label, values) in LABEL_VALUES {
        if let Some(value) = subject.pod.label(label).filter(|value| !values.contains(value)) {
            warnings.push(Warning::new(
                Reason::UnknownValue,
                format!("label {label} is \"{value}\", which means nothing; use one of {}", values.join(", ")),
            ));
        }
    }
}

fn mode(subject: &Subject<'_>, resolved: &Resolved, warnings: &mut Vec<Warning>) -> Field<Mode> {
    let below = resolved.mode.clone();
    let Some(text) = subject.pod.annotation(keys::ANNOTATION_MODE).filter(|text| !text.is_empty()) else {
        return below;
    };
    let Some(mode) = Mode::parse(text) else {
        let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
        warnings.push(Warning::new(
            Reason::UnknownMode,
            format!(
                "annotation {} is \"{text}\", which is no mode; {} is used. Modes: {}",
                keys::ANNOTATION_MODE,
                below.value.as_str(),
                known.join(", ")
            ),
        ));
        return below;
    };
    if below.layer != Layer::BuiltIn && below.value != mode {
        warnings.push(Warning::new(
            Reason::ValueShadowed,
            format!(
                "mode {} from {} is overridden by annotation {}: {text}",
                below.value.as_str(),
                below.layer,
                keys::ANNOTATION_MODE
            ),
        ));
    }
    below.over(Layer::PodAnnotation, mode, |mode| mode.as_str().to_owned())
}

fn native(subject: &Subject<'_>, resolved: &Resolved, warnings: &mut Vec<Warning>) -> Field<NativeSidecars> {
    let below = resolved.native_sidecars.clone();
    let value = match subject.pod.annotation(keys::ANNOTATION_NATIVE_SIDECARS) {
        None => return below,
        Some("auto") => NativeSidecars::Auto,
        Some("disabled") => NativeSidecars::Disabled,
        Some(other) => {
            warnings.push(Warning::new(
                Reason::UnknownValue,
                format!(
                    "annotation {} is \"{other}\", which means nothing; use auto or disabled",
                    keys::ANNOTATION_NATIVE_SIDECARS
                ),
            ));
            return below;
        }
    };
    below.over(Layer::PodAnnotation, value, |value| value.as_str().to_owned())
}

/// Mode proxy-sidecar brings its own proxy, which neither gate nor label of Envoy switches off (spec 11, B8).
fn proxy_mode(subject: &Subject<'_>, sidecars: &mut Decisions, warnings: &mut Vec<Warning>) {
    if sidecars.envoy.by == DecidedBy::WorkloadLabel {
        warnings.push(Warning::new(
            Reason::LabelIgnored,
            format!(
                "label {} has no effect in mode proxy-sidecar; label {}: {} opts the Pod out",
                keys::LABEL_ENVOY_PROXY,
                keys::LABEL_INJECT,
                keys::INJECT_DISABLED
            ),
        ));
    }
    for annotation in [keys::ANNOTATION_OUTBOUND_EXCLUDE, keys::ANNOTATION_INBOUND_EXCLUDE] {
        if subject.pod.annotation(annotation).is_some() {
            warnings.push(Warning::new(
                Reason::LabelIgnored,
                format!("annotation {annotation} has no effect in mode proxy-sidecar, which redirects no ports"),
            ));
        }
    }
    sidecars.envoy = Decision { inject: false, by: DecidedBy::Mode };
    sidecars.proxy_init = sidecars.envoy;
}

fn spire(subject: &Subject<'_>, resolved: &Resolved, sidecars: &mut Decisions, warnings: &mut Vec<Warning>) {
    if !sidecars.spiffe.inject {
        return;
    }
    match (resolved.spire.value, subject.snapshot.view.spiffe_driver) {
        (SpireSwitch::Disabled, _) => sidecars.spiffe = Decision { inject: false, by: DecidedBy::Spire },
        (SpireSwitch::Auto, false) => {
            sidecars.spiffe = Decision { inject: false, by: DecidedBy::Spire };
            warnings.push(Warning::new(
                Reason::SpireUnavailable,
                format!(
                    "CSI driver {} is absent, so the Pod gets no SPIFFE identity; install SPIRE, or set spire: disabled",
                    keys::CSI_DRIVER_SPIFFE
                ),
            ));
        }
        (SpireSwitch::Required, false) => warnings.push(Warning::new(
            Reason::SpireDriverMissing,
            format!(
                "SPIRE is required and CSI driver {} is absent; the Pod waits until it is installed",
                keys::CSI_DRIVER_SPIFFE
            ),
        )),
        (SpireSwitch::Auto | SpireSwitch::Required, true) => {}
    }
}
