//! The workload's own layers over the namespace's configuration: annotations, gates, labels, SPIRE, credentials.
//!
//! In: a [`Subject`] and the AgentRuntime that governs its workload. Out: mode, sidecars and switches in force for this Pod, each with who decided, and the
//! warnings that came up; and what a status shows of it. Precedence: AgentRuntime, Pod annotation, namespace (design). Promise: what a status shows
//! has a bound, whatever a namespace writes.

use std::borrow::Cow;

use super::decide::{self, DecidedBy, Decision, Decisions, Subject};
use super::governor;
use super::signing;
use crate::admission::explanation::{FieldLine, ShadowedLine};
use crate::admission::verdict::Warning;
use crate::api::agent_kagenti_dev::agent_runtime::{
    Effective as EffectiveConfiguration, EffectiveValue, ShadowedValue,
};
use crate::config::agent_runtime::Governor;
use crate::config::layers::{Field, Layer, Shadowed};
use crate::config::otlp;
use crate::config::resolved::{NativeSidecars, Resolved, SpireSwitch, Trace};
use crate::config::schema::Show;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::namespace_switch;
use crate::domain::printable::cut;
use crate::domain::reason::Reason;

/// What is in force for one Pod.
#[derive(Debug)]
pub(super) struct Effective<'a> {
    /// The namespace's configuration below.
    pub(super) resolved: &'a Resolved,
    /// Tracing of the user's containers.
    pub(super) trace: Cow<'a, Trace>,
    /// Trust domain of the SPIFFE id.
    pub(super) trust_domain: Cow<'a, Field<String>>,
    /// Which plan is built.
    pub(super) mode: Field<Mode>,
    /// The switch behind `native`.
    pub(super) native_switch: Field<NativeSidecars>,
    /// Sidecars are init containers with `restartPolicy: Always`.
    pub(super) native: bool,
    /// Per sidecar, after every layer.
    pub(super) sidecars: Decisions,
    /// `sign-agentcard`, where it is injected, is a native sidecar that signs the card anew.
    pub(super) signer_stays: bool,
    /// Name of the Secret with operator-managed credentials.
    pub(super) credentials: Option<&'a str>,
    /// What came up.
    pub(super) warnings: Vec<Warning>,
}

/// The first API server that runs init containers with `restartPolicy: Always`.
const NATIVE_SINCE: (u32, u32) = (1, 29);

impl<'a> Effective<'a> {
    /// Lays the Pod's own layers over the namespace's.
    pub(super) fn of(subject: &Subject<'a>, governor: Option<&Governor>) -> Self {
        let resolved = subject.resolved();
        let mut warnings: Vec<Warning> =
            resolved.notices.iter().map(|notice| Warning::new(notice.reason, notice.text.as_str())).collect();
        unknown_labels(subject, &mut warnings);
        warnings.extend(unread_switch(subject));
        let mut mode = mode(subject, resolved, &mut warnings);
        if let Some(governor) = governor {
            governor::notice(subject, governor, &mut warnings);
            mode = governor::mode(mode, governor, &mut warnings);
        }
        let trace = governor::trace(resolved, governor, &mut warnings);
        let trust_domain = governor::trust_domain(resolved, governor, &mut warnings);
        let native_switch = native(subject, resolved, &mut warnings);
        let native =
            native_switch.value == NativeSidecars::Auto && subject.snapshot.view.server_version >= NATIVE_SINCE;
        let credentials =
            subject.pod.annotation(keys::ANNOTATION_CREDENTIALS).map(str::trim).filter(|name| !name.is_empty());
        let mut sidecars = decide::sidecars(subject.pod, &subject.snapshot.gates);
        match mode.value {
            Mode::EnvoySidecar => envoy_mode(subject, &sidecars, &mut warnings),
            Mode::ProxySidecar => proxy_mode(subject, &mut sidecars, &mut warnings),
            // The proxy is a Deployment of its own: whatever gates and labels say, this Pod gets nothing.
            Mode::Waypoint => sidecars = Decisions::none(DecidedBy::Mode),
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
        sidecars.signer = signing::decide(subject, (mode.value, resolved), &sidecars, &mut warnings);
        let signer_stays = sidecars.signer.inject && signing::stays(subject, &native_switch, native, &mut warnings);
        Self {
            resolved,
            trace,
            trust_domain,
            mode,
            native_switch,
            native,
            sidecars,
            signer_stays,
            credentials,
            warnings,
        }
    }

    /// SPIRE parts are injected.
    pub(super) fn spire(&self) -> bool {
        self.sidecars.spiffe.inject
    }

    /// What the status of an AgentRuntime says: the mode, and the values that namespace, Pod template or AgentRuntime set, as far as there is
    /// room for them.
    pub(super) fn for_status(&self, spiffe_id: Option<String>) -> EffectiveConfiguration {
        let platform = [&Layer::BuiltIn, &Layer::PlatformFile, &Layer::RuntimeTemplate].map(ToString::to_string);
        EffectiveConfiguration {
            mode: Some(self.mode.value.as_str().to_owned()),
            spiffe_id,
            values: values(self.fields().into_iter().filter(|line| !platform.contains(&line.layer))),
        }
    }

    /// Every field with its provenance, the workload's own layers included: mode and nativeSidecars first, then in
    /// documentation order.
    pub(super) fn fields(&self) -> Vec<FieldLine> {
        let in_force = if self.native { "in force" } else { "not in force" };
        let native = |value: &NativeSidecars| format!("{} ({in_force})", value.as_str());
        let mut lines = vec![line("mode", &self.mode, Show::show), line("nativeSidecars", &self.native_switch, native)];
        lines.extend(self.resolved.fields().filter_map(|shown| match shown.path {
            "mode" | "nativeSidecars" => None,
            path @ "spiffe.trustDomain" => Some(line(path, &self.trust_domain, Show::show)),
            path @ "trace.endpoint" => {
                let as_used = |address: &Option<String>| address.as_deref().map_or_else(|| address.show(), otlp::shown);
                Some(line(path, &self.trace.endpoint, as_used))
            }
            path @ "trace.protocol" => Some(line(path, &self.trace.protocol, Show::show)),
            path @ "trace.samplingRatio" => Some(line(path, &self.trace.sampling_ratio, Show::show)),
            path => Some(FieldLine {
                name: path.to_owned(),
                value: shown.value,
                layer: shown.layer.to_string(),
                shadowed: lost(shown.shadowed),
            }),
        }));
        lines
    }
}

/// Bytes of one value in a status.
const VALUE: usize = 256;
/// Values of weaker layers that a status shows of one field: the strongest of them.
const SHADOWED: usize = 4;
/// Bytes of all values of a status with what they shadow, as JSON.
const VALUES: usize = 6 * 1024;

/// Fields as a status has room for them: texts cut, and without those that are too much beside the others. `explain` shows them whole.
fn values(lines: impl Iterator<Item = FieldLine>) -> Vec<EffectiveValue> {
    let shadowed = |lost: ShadowedLine| ShadowedValue { from: lost.layer, value: cut(lost.value, VALUE) };
    let value = |line: FieldLine| {
        let weaker = line.shadowed.len().saturating_sub(SHADOWED);
        EffectiveValue {
            field: line.name,
            value: cut(line.value, VALUE),
            from: line.layer,
            shadowed: line.shadowed.into_iter().skip(weaker).map(shadowed).collect(),
        }
    };
    let mut room = VALUES;
    let mut fits = |value: &EffectiveValue| {
        let size = serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
        let left = room.checked_sub(size);
        room = left.unwrap_or(room);
        left.is_some()
    };
    lines.map(value).filter(|value| fits(value)).collect()
}

fn line<T>(name: &str, field: &Field<T>, show: impl Fn(&T) -> String) -> FieldLine {
    FieldLine {
        name: name.to_owned(),
        value: show(&field.value),
        layer: field.layer.to_string(),
        shadowed: lost(&field.shadowed),
    }
}

fn lost(values: &[Shadowed]) -> Vec<ShadowedLine> {
    values.iter().map(|lost| ShadowedLine { layer: lost.layer.to_string(), value: lost.value.clone() }).collect()
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

/// The label of the namespace, where it was to switch something and does not.
pub(super) fn unread_switch(subject: &Subject<'_>) -> Option<Warning> {
    let told = namespace_switch::unread(subject.namespace, subject.view().enabled_label.as_deref())?;
    Some(Warning::new(Reason::UnknownValue, told))
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
                "annotation {} is \"{text}\", which is not a mode; {} is used. Modes: {}",
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

/// A label that asks for a sidecar which a gate switches off.
fn overruled(subject: &Subject<'_>, label: &str, decision: Decision, gate: &str, warnings: &mut Vec<Warning>) {
    if decision.by == DecidedBy::FeatureGate && subject.pod.label(label) == Some("true") {
        warnings.push(Warning::new(
            Reason::LabelIgnored,
            format!("label {label}: true has no effect, because feature gate {gate} is false"),
        ));
    }
}

fn overruled_helpers(subject: &Subject<'_>, sidecars: &Decisions, warnings: &mut Vec<Warning>) {
    overruled(subject, keys::LABEL_SPIFFE_HELPER, sidecars.spiffe, "spiffeHelper", warnings);
    overruled(subject, keys::LABEL_CLIENT_REGISTRATION, sidecars.registration, "clientRegistration", warnings);
}

/// Without proxy-init nothing is redirected, and so nothing excluded.
fn envoy_mode(subject: &Subject<'_>, sidecars: &Decisions, warnings: &mut Vec<Warning>) {
    overruled(subject, keys::LABEL_ENVOY_PROXY, sidecars.envoy, "envoyProxy", warnings);
    overruled_helpers(subject, sidecars, warnings);
    if sidecars.proxy_init.inject {
        return;
    }
    for annotation in [keys::ANNOTATION_OUTBOUND_EXCLUDE, keys::ANNOTATION_INBOUND_EXCLUDE] {
        if subject.pod.annotation(annotation).is_some() {
            warnings.push(Warning::new(
                Reason::LabelIgnored,
                format!(
                    "annotation {annotation} has no effect, because proxy-init, which reads it, is switched off by {}",
                    sidecars.proxy_init.by.as_str()
                ),
            ));
        }
    }
}

/// Mode proxy-sidecar brings its own proxy, which neither gate nor label of Envoy switches off.
fn proxy_mode(subject: &Subject<'_>, sidecars: &mut Decisions, warnings: &mut Vec<Warning>) {
    overruled_helpers(subject, sidecars, warnings);
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
        (SpireSwitch::Disabled, _) => {
            sidecars.spiffe = Decision { inject: false, by: DecidedBy::Spire };
            if subject.pod.label(keys::LABEL_SPIFFE_HELPER) == Some("true") {
                warnings.push(Warning::new(
                    Reason::LabelIgnored,
                    format!(
                        "label {}: true has no effect, because {} sets spire: disabled",
                        keys::LABEL_SPIFFE_HELPER,
                        resolved.spire.layer
                    ),
                ));
            }
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One character over and over: what is written out as JSON may be six times as long.
    fn text() -> impl Strategy<Value = String> {
        (any::<char>(), 0_usize..20_000).prop_map(|(letter, count)| letter.to_string().repeat(count))
    }

    fn line() -> impl Strategy<Value = FieldLine> {
        let layer = || "ConfigMap [a-z]{0,253}";
        let lost = (layer(), text()).prop_map(|(layer, value)| ShadowedLine { layer, value });
        let parts = ("[a-z]{1,20}", text(), layer(), proptest::collection::vec(lost, 0..16));
        parts.prop_map(|(name, value, layer, shadowed)| FieldLine { name, value, layer, shadowed })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// With more than is kept of one, a status would be taken for none, and written anew at each look.
        #[test]
        fn what_a_status_shows_has_a_bound_whatever_is_written(lines in proptest::collection::vec(line(), 0..24)) {
            let count = lines.len();
            let shown = values(lines.into_iter());
            let text = serde_json::to_string(&shown).unwrap();
            prop_assert!(text.len() <= VALUES + count + 2, "{}", text.len());
            for value in shown {
                let shadowed = value.shadowed.iter().map(|lost| lost.value.len());
                prop_assert!(shadowed.chain([value.value.len()]).all(|length| length <= VALUE));
                prop_assert!(value.shadowed.len() <= SHADOWED);
            }
        }
    }

    #[test]
    fn what_fits_is_shown_whole_and_of_what_is_shadowed_the_strongest() {
        let line = |name: &str, value: &str, shadowed: usize| FieldLine {
            name: name.to_owned(),
            value: value.to_owned(),
            layer: "ConfigMap z".to_owned(),
            shadowed: (0..shadowed)
                .map(|at| ShadowedLine { layer: format!("ConfigMap {at}"), value: at.to_string() })
                .collect(),
        };
        let shown = values([line("a", "x", 6), line("b", &"é".repeat(200), 0), line("c", "y", 0)].into_iter());
        let weaker: Vec<_> = shown[0].shadowed.iter().map(|lost| lost.value.as_str()).collect();
        assert_eq!((shown[0].value.as_str(), weaker), ("x", vec!["2", "3", "4", "5"]));
        assert!(shown[1].value.len() <= VALUE && shown[1].value.ends_with("é…"), "{}", shown[1].value);
        let many = (0..100).map(|at| line(&format!("f{at}"), &"x".repeat(300), 0));
        let shown = values(many.chain([line("last", "y", 0)]));
        assert!(shown.len() < 30, "{}", shown.len());
        assert_eq!(shown.first().map(|value| value.field.as_str()), Some("f0"), "in their order");
    }
}
