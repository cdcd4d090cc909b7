//! The front end for Agent of `beeai.dev/v1` and `beeai.beeai.dev/v1`.
//!
//! In: the raw object of a review or a watch, and the platform's settings. Out: a request of the engine ([`workload`]), and every fault and
//! everything that deserves attention ([`validate`]). An update that leaves the spec and the profile as they are, and an object on its way
//! out, are never refused. No message repeats the value of a variable.

mod read;

pub use read::{profile, workload};

use std::collections::BTreeSet;

use serde_json::Value;

use super::agent::moving;
use super::request::LockdownProfile;
use super::settings::Settings;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Where the profile stands.
const PROFILE: &str = "metadata.annotations[beeai.dev/security-profile]";

/// What is wrong with an Agent and what deserves attention; `old` is the stored object, `None` when it is created.
#[must_use]
pub fn validate(object: &Value, old: Option<&Value>, settings: &Settings) -> Findings {
    let mut findings = Findings::default();
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    let same =
        |old: &Value| old.get("spec") == object.get("spec") && read::profile_text(old) == read::profile_text(object);
    if deleting || old.is_some_and(same) {
        return findings;
    }
    name(object, &mut findings);
    image(object, &mut findings);
    env(object, &mut findings);
    security(object, settings, &mut findings);
    findings
}

/// Deployment and Service have the Agent's name.
fn name(object: &Value, findings: &mut Findings) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
    if !syntax::is_service_name(name) {
        let sentence =
            "is not a name that a Service can have: a letter, then at most 62 of a-z, 0-9 and -, not ending in -";
        findings.fault(Fault::invalid("metadata.name", sentence, "rename the Agent").seeing(name));
    }
}

fn image(object: &Value, findings: &mut Findings) {
    const PATH: &str = "spec.image";
    let image = object.pointer("/spec/image").and_then(Value::as_str).unwrap_or("");
    if image.is_empty() {
        findings.fault(Fault::required(PATH, "name the image"));
    } else if !syntax::is_image_reference(image) {
        let remedy = "write registry/path:tag, all but the tag in lower case";
        findings.fault(Fault::invalid(PATH, syntax::no_image(image), remedy).seeing(image));
    } else {
        moving(PATH, image, findings);
    }
}

fn env(object: &Value, findings: &mut Findings) {
    let mut names = BTreeSet::new();
    for (index, entry) in read::env(object).iter().enumerate() {
        let at = format!("spec.env[{index}]");
        let name = entry.get("name").and_then(Value::as_str).unwrap_or("");
        if name.is_empty() {
            findings.fault(Fault::required(format!("{at}.name"), "name the variable"));
            continue;
        }
        if !names.insert(name) {
            let text = format!("variable {name} occurs twice; the last one counts, so remove the others");
            findings.note(Note::new(Reason::ValueShadowed, format!("{at}.name"), text));
        }
        let Some(value) = entry.get("value").and_then(Value::as_str) else { continue };
        let path = format!("{at}.value");
        if name == keys::ENV_PORT && read::port(value).is_none() {
            let sentence = "is not a port: variable PORT is a number from 1 to 65535";
            findings.fault(Fault::invalid(path, sentence, "write the number that the agent listens on"));
        } else if name == keys::ENV_IMAGE_REPO_SECRET && !value.is_empty() && !syntax::is_subdomain(value) {
            let sentence = "is not a name that a Secret can have, and IMAGE_REPO_SECRET names the Secret that the image is pulled with";
            let remedy = "name a Secret of this namespace of type kubernetes.io/dockerconfigjson, never a token";
            findings.fault(Fault::invalid(path, sentence, remedy));
        }
    }
}

fn security(object: &Value, settings: &Settings, findings: &mut Findings) {
    match read::profile(object) {
        None => {
            let seen = read::profile_text(object).unwrap_or_default();
            let fault =
                Fault::invalid(PROFILE, "is neither restricted nor baseline", "write one of them, or remove it");
            findings.fault(fault.seeing(seen));
        }
        // Nobody can ask for one that is open.
        Some(LockdownProfile::Restricted | LockdownProfile::Open) => {}
        Some(LockdownProfile::Baseline) if !settings.beeai_baseline => {
            let sentence = "asks for profile baseline, which this platform does not allow";
            let remedy = "remove it, or ask whoever runs Drawbridge to set beeai.allowBaseline";
            findings.fault(Fault::new(Reason::FieldInvalid, PROFILE, sentence, remedy));
        }
        Some(LockdownProfile::Baseline) => {
            let text = "the agent may run as root and write to its own image";
            findings.note(Note::new(Reason::LockdownRelaxed, PROFILE, text));
        }
    }
}

#[cfg(test)]
mod tests;
