//! Everything that is wrong with an AgentBuild of BeeAI, in one answer.
//!
//! Out: faults for what the object itself must change; notes for what deserves attention, and for ConfigMaps of the platform that are missing
//! or wrong: those may still come, so the object is accepted and its build waits. An update that leaves the spec as it is, and an object on
//! its way out, are never refused. No message repeats the value of a variable that may hold a token.

use serde_json::Value;

use super::deploy::target;
use super::env::{self, Meaning, REGISTRY_TOKEN};
use super::{TEMPLATE, read, template, text};
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::check::source::{host, is_clean_path, is_ssh};
use crate::pipelines::compose::{self, Surroundings};
use crate::pipelines::request::FrontEnd;
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

/// What is wrong with an AgentBuild of that front end and what deserves attention; `old` is the stored object, `None` when it is created.
#[must_use]
pub fn validate(
    (object, old): (&Value, Option<&Value>),
    (front, namespace): (&FrontEnd, &str),
    view: &TemplatesView,
    settings: &Settings,
) -> Findings {
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    if deleting || old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Findings::default();
    }
    let mut findings = Findings::default();
    variables(object, settings, &mut findings);
    agent(object, &mut findings);
    repository(object, &mut findings);
    dockerfile(object, &mut findings);
    let request = read(object, (front, namespace), view, settings);
    let around = Surroundings { steps: view.steps(view.operator_namespace()), settings, accounts: None };
    let mut found = compose::examine(&request, around);
    // The entries of `spec.env` were judged there by their own places; so was the template.
    leave_entries(front, &mut found);
    if request.steps.is_empty() {
        found.faults.retain(|fault| !fault.path.starts_with(front.paths.steps));
        found.notes.retain(|note| note.path != front.paths.build_arguments);
        without_template(view).into_iter().for_each(|fault| findings.content(fault));
    }
    findings.extend(found);
    for fault in std::mem::take(&mut findings.content) {
        let text = format!("{}; the build fails until that is put right: {}", fault.sentence, fault.remedy);
        findings.note(Note::new(fault.reason, fault.path, text));
    }
    findings
}

/// Takes out what composition says of the entries of `spec.env`, of which it does not know the places nor which hold tokens, and which [`validate`]
/// has judged: review, status and `build explain` name them once and repeat no value. What a parameter lacks is said by composition alone.
pub fn leave_entries(front: &FrontEnd, found: &mut Findings) {
    let of_entries = |fault: &Fault| fault.path.starts_with(front.paths.build_arguments) && fault.parameter.is_none();
    found.faults.retain(|fault| !of_entries(fault));
}

/// Why the platform's template cannot be used.
#[must_use]
pub fn without_template(view: &TemplatesView) -> Vec<Fault> {
    let namespace = view.operator_namespace();
    match template(view).map(|entry| &entry.template) {
        Some(Ok(_)) => Vec::new(),
        Some(Err(faults)) => faults.clone(),
        None => {
            let path = format!("ConfigMap {namespace}/{}{TEMPLATE}", keys::PREFIX_TEMPLATE);
            let remedy = "apply what drawbridge render prints for this installation: it holds that ConfigMap";
            vec![Fault::new(Reason::TemplateMissing, path, "is not there", remedy)]
        }
    }
}

fn variables(object: &Value, settings: &Settings, findings: &mut Findings) {
    let all = env::entries(object);
    let last = env::last(all);
    for (index, entry) in all.iter().enumerate() {
        let (at, name) = (format!("spec.env[{index}]"), env::name(entry));
        if name.is_empty() {
            findings.fault(Fault::required(format!("{at}.name"), "name the variable"));
            continue;
        }
        if last.get(name) != Some(&index) {
            let text = format!("variable {name} occurs twice; the last one counts, so remove the others");
            findings.note(Note::new(Reason::ValueShadowed, format!("{at}.name"), text));
        }
        match env::meaning(entry) {
            Meaning::Token => token(entry, (&at, name), settings, findings),
            Meaning::Login => login(entry, &at, findings),
            Meaning::Argument => argument(entry, (&at, name), findings),
            Meaning::Ignored => {
                let text = format!(
                    "variable {name} refers to something that is not a credential of a build, and has no effect: what comes from \
                     elsewhere is never put into an image; give the agent the variable in spec.agent.env"
                );
                findings.note(Note::new(Reason::ParameterUnused, at, text));
            }
        }
    }
}

fn token(entry: &Value, (at, name): (&str, &str), settings: &Settings, findings: &mut Findings) {
    let Some(credential) = env::reference(entry) else {
        let sentence = format!(
            "must take {name} from a Secret by valueFrom.secretKeyRef with name and key: everybody who may read builds can read a value that \
             stands here"
        );
        let remedy = "put the token into a Secret and refer to its key; a token that has been sent is to be replaced";
        findings.fault(Fault::new(Reason::CredentialInText, at, sentence, remedy));
        return;
    };
    if entry.get("value").and_then(Value::as_str).is_some_and(|value| !value.is_empty()) {
        let sentence = format!("gives {name} a value beside the reference to a Secret");
        findings.fault(Fault::new(Reason::CredentialInText, at, sentence, "remove the value, and replace that token"));
    }
    if !syntax::is_subdomain(&credential.secret) {
        let sentence = "does not name a Secret";
        let path = format!("{at}.valueFrom.secretKeyRef.name");
        findings.fault(Fault::invalid(path, sentence, "name a Secret of the build's namespace"));
    }
    if name == REGISTRY_TOKEN && !settings.registry_secrets {
        let text = "this platform makes no login of a registry (beeai.registrySecrets is false), so the token has no effect; name a Secret of \
                    type kubernetes.io/dockerconfigjson by IMAGE_REPO_SECRET";
        findings.note(Note::new(Reason::ParameterUnused, at, text));
    }
}

fn login(entry: &Value, at: &str, findings: &mut Findings) {
    let value = entry.get("value").and_then(Value::as_str).unwrap_or("");
    if !value.is_empty() && !syntax::is_subdomain(value) {
        let sentence = "is not a name that a Secret can have, and IMAGE_REPO_SECRET names the Secret that images are pushed and pulled \
            with";
        let remedy = "name a Secret of this namespace of type kubernetes.io/dockerconfigjson, never a token";
        findings.fault(Fault::invalid(format!("{at}.value"), sentence, remedy));
    }
}

fn argument(entry: &Value, (at, name): (&str, &str), findings: &mut Findings) {
    /// Longest value: it reaches the tool as one argument, which the kernel limits.
    const MOST: usize = 64 * 1024;
    let value = entry.get("value").and_then(Value::as_str).unwrap_or("");
    if !syntax::is_variable(name) {
        let sentence = "is not the name of a build argument: a letter or _, then letters, digits and _";
        findings.fault(Fault::invalid(format!("{at}.name"), sentence, "correct the name").seeing(name));
    }
    if value.contains(['\n', '\r', '\0']) || value.contains("$(") {
        let sentence = "contains a line break or $(, which cannot be passed on";
        findings.fault(Fault::invalid(format!("{at}.value"), sentence, "remove it"));
    }
    if value.len() > MOST {
        let sentence = format!("has {} bytes; at most {MOST} can be passed on", value.len());
        findings.fault(Fault::invalid(format!("{at}.value"), sentence, "put the text into the repository"));
    }
}

fn agent(object: &Value, findings: &mut Findings) {
    let Some(name) = target(object) else {
        if object.pointer("/spec/agent").is_some_and(|agent| !agent.is_null()) {
            let text = "has no effect while spec.deployAfterBuild is not true";
            findings.note(Note::new(Reason::ParameterUnused, "spec.agent", text));
        }
        return;
    };
    if !syntax::is_service_name(name) {
        let sentence = "is not a name that an Agent's Service can have: a letter, then at most 62 of a-z, 0-9 and -, not ending in -";
        let remedy = "name the Agent, or rename the build whose name it gets";
        findings.fault(Fault::invalid("spec.agent.name", sentence, remedy).seeing(name));
    }
    let env = object.pointer("/spec/agent/env").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, entry) in env.iter().enumerate() {
        let at = format!("spec.agent.env[{index}]");
        let value = entry.get("value").and_then(Value::as_str);
        // As the Agent's own review judges it: what is there and empty is no number.
        let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
        match env::name(entry) {
            "" => findings.fault(Fault::required(format!("{at}.name"), "name the variable")),
            keys::ENV_PORT if value.is_some_and(|value| !is_port(value)) => {
                let sentence = "is not a port: variable PORT is a number from 1 to 65535";
                let remedy = "write the number that the agent listens on";
                findings.fault(Fault::invalid(format!("{at}.value"), sentence, remedy));
            }
            keys::ENV_IMAGE_REPO_SECRET => login(entry, &at, findings),
            _ => {}
        }
    }
}

/// A build of BeeAI has a token or nothing: there is no field for a key.
fn repository(object: &Value, findings: &mut Findings) {
    let url = text(object, "repoUrl");
    let host = host(url);
    if is_ssh(url) && syntax::is_host_and_port(host) && env::source_token(object).is_some() {
        let text = format!(
            "is read over SSH, where the Git token has no effect, and a build has no key for it: write https://{host}/ and the path"
        );
        findings.note(Note::new(Reason::ParameterUnused, "spec.repoUrl", text));
    }
}

fn dockerfile(object: &Value, findings: &mut Findings) {
    let file = text(object, "dockerfile");
    if !file.is_empty() && !is_clean_path(file) {
        let sentence = "is not the path of a file within the folder that is built";
        let remedy = "write a path from that folder, such as build/Dockerfile";
        findings.fault(Fault::invalid("spec.dockerfile", sentence, remedy).seeing(file));
    }
}
