//! Parameters that steer the run and are never passed to tasks.

use super::layers::{Given, Layers};
use super::{Layer, Traced};
use crate::api::findings::{Fault, Findings};
use crate::api::syntax;
use crate::domain::quantity::quantity;
use crate::domain::reason::Reason;

const REMEDY: &str = "give the build a parameter of that name, or correct the template";

/// Shortest and longest time a run may take, in seconds.
const TIMEOUT: std::ops::RangeInclusive<f64> = 60.0..=86_400.0;

/// Timeout of the run.
pub const TIMEOUT_NAME: &str = "pipeline-timeout";
/// Size of the claim.
pub const SIZE_NAME: &str = "workspace-size";
/// Storage class of the claim.
pub const STORAGE_CLASS_NAME: &str = "workspace-storage-class";
/// ServiceAccount of the run's Pods.
pub const ACCOUNT_NAME: &str = "service-account";
/// The Secret with the signing key: passed on, and bound as a workspace.
pub const SIGNING_SECRET: &str = "signing-secret";

/// One control parameter: what a value of it must be.
struct Control {
    name: &'static str,
    fits: fn(&str) -> bool,
    wanted: &'static str,
}

const CONTROLS: [Control; 4] = [
    Control {
        name: TIMEOUT_NAME,
        fits: |text| syntax::duration_seconds(text).is_some_and(|seconds| TIMEOUT.contains(&seconds)),
        wanted: "a duration from 1m to 24h, such as 45m or 1h30m",
    },
    Control {
        name: SIZE_NAME,
        fits: |text| quantity(text).is_some_and(|amount| amount >= 1.0),
        wanted: "a quantity of bytes, such as 1Gi",
    },
    Control { name: STORAGE_CLASS_NAME, fits: syntax::is_subdomain, wanted: "the name of a StorageClass" },
    Control { name: ACCOUNT_NAME, fits: syntax::is_subdomain, wanted: "the name of a ServiceAccount" },
];

/// Whether a parameter steers the run.
#[must_use]
pub fn is_control(name: &str) -> bool {
    CONTROLS.iter().any(|control| control.name == name)
}

/// What a value of this parameter must be, when this one is not.
#[must_use]
pub fn wanted(name: &str, value: &str) -> Option<&'static str> {
    if name == SIGNING_SECRET {
        return (!syntax::is_subdomain(value)).then_some("the name of a Secret");
    }
    let control = CONTROLS.iter().find(|control| control.name == name)?;
    (!(control.fits)(value)).then_some(control.wanted)
}

/// What steers the run, and where each came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Controls {
    /// Timeout of the run, as written.
    pub timeout: Option<String>,
    /// Size of the claim.
    pub size: Option<String>,
    /// Storage class of the claim.
    pub storage_class: Option<String>,
    /// ServiceAccount of the run's Pods.
    pub account: Option<String>,
    /// Their history.
    pub traced: Vec<Traced>,
}

/// The control parameters: the user's over the template's. One of the template that cannot be used is a fault of its
/// content: the run would go on without it, and nobody would know.
#[must_use]
pub fn controls(layers: &Layers<'_>, findings: &mut Findings) -> Controls {
    let mut controls = Controls::default();
    for control in &CONTROLS {
        let of_template = layers.strongest_of_run(control.name).filter(|given| given.layer == Layer::TemplateGlobal);
        if let Some(fault) = of_template.and_then(|given| unusable(control, &given)) {
            findings.content(fault);
        }
        let Some(traced) = layers.of_run(control.name) else { continue };
        let value = traced.origin.value.as_str().filter(|value| (control.fits)(value)).map(str::to_owned);
        match control.name {
            TIMEOUT_NAME => controls.timeout = value,
            SIZE_NAME => controls.size = value,
            STORAGE_CLASS_NAME => controls.storage_class = value,
            _ => controls.account = value,
        }
        controls.traced.push(traced);
    }
    controls
}

/// Why a template's value of a control parameter cannot be used.
fn unusable(control: &Control, given: &Given) -> Option<Fault> {
    let fault = |reason, sentence: String| Fault::new(reason, given.path.clone(), sentence, REMEDY);
    match &given.text {
        Err(sentence) => Some(fault(Reason::PlaceholderUnknown, sentence.clone())),
        Ok(text) if (control.fits)(text) => None,
        Ok(text) => {
            let sentence = format!("of {} is not {}", control.name, control.wanted);
            Some(fault(Reason::TemplateInvalid, sentence).seeing(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn what_control_parameters_may_be() {
        for (name, value) in [
            ("pipeline-timeout", "1m"),
            ("pipeline-timeout", "24h"),
            ("workspace-size", "5Gi"),
            ("workspace-storage-class", "fast.io"),
            ("service-account", "builder"),
            ("signing-secret", "key"),
            ("anything", "--x"),
        ] {
            assert_eq!(wanted(name, value), None, "{name}={value}");
        }
        for (name, value) in [
            ("pipeline-timeout", "59s"),
            ("pipeline-timeout", "25h"),
            ("pipeline-timeout", "20"),
            ("workspace-size", "0"),
            ("workspace-size", "-1Gi"),
            ("workspace-size", "big"),
            ("workspace-storage-class", "-x"),
            ("service-account", ""),
            ("signing-secret", "../x"),
        ] {
            assert!(wanted(name, value).is_some(), "{name}={value}");
        }
    }
}
