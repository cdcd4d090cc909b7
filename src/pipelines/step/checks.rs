//! What Tekton's admission refuses of a TaskSpec, and what only the platform may ask for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Faults, items, text};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::domain::keys::KEY_TASK_SPEC;
use crate::pipelines::reference;

/// Most Tekton steps of one task: each is a container of one Pod.
const MAX_TEKTON_STEPS: usize = 64;
/// Longest name of a container, in bytes.
const LONGEST_NAME: usize = 63;

/// The members of one object, and those that an earlier API had: with what to do about them.
pub(super) struct Shape {
    pub(super) known: &'static [&'static str],
    gone: &'static [(&'static str, &'static str)],
}

/// Members that v1beta1's containers had and v1's have not.
const GONE: &[(&str, &str)] = &[
    ("resources", "v1 calls it computeResources"),
    ("ports", "remove it"),
    ("livenessProbe", "remove it"),
    ("readinessProbe", "remove it"),
    ("startupProbe", "remove it"),
    ("lifecycle", "remove it"),
    ("terminationMessagePath", "remove it"),
    ("terminationMessagePolicy", "remove it"),
    ("stdin", "remove it"),
    ("stdinOnce", "remove it"),
    ("tty", "remove it"),
];

const TASK: Shape = Shape {
    known: &[
        "params",
        "displayName",
        "description",
        "steps",
        "volumes",
        "stepTemplate",
        "sidecars",
        "workspaces",
        "results",
    ],
    gone: &[
        ("resources", "v1 has no task resources; use params, results and workspaces"),
        ("inputs", "v1 has no inputs; use params and workspaces"),
        ("outputs", "v1 has no outputs; use results and workspaces"),
        ("apiVersion", "write only what stands under spec of the Task"),
        ("kind", "write only what stands under spec of the Task"),
        ("metadata", "write only what stands under spec of the Task"),
        ("spec", "write only what stands under spec of the Task"),
    ],
};

const STEP: Shape = Shape {
    known: &[
        "name",
        "displayName",
        "image",
        "command",
        "args",
        "workingDir",
        "envFrom",
        "env",
        "computeResources",
        "volumeMounts",
        "volumeDevices",
        "imagePullPolicy",
        "securityContext",
        "script",
        "timeout",
        "workspaces",
        "onError",
        "stdoutConfig",
        "stderrConfig",
        "ref",
        "params",
        "results",
        "when",
    ],
    gone: GONE,
};

const STEP_TEMPLATE: Shape = Shape {
    known: &[
        "image",
        "command",
        "args",
        "workingDir",
        "envFrom",
        "env",
        "computeResources",
        "volumeMounts",
        "volumeDevices",
        "imagePullPolicy",
        "securityContext",
    ],
    gone: GONE,
};

/// [`super::types`] reads what a container may have from the members of a sidecar, which has them all.
pub(super) const SIDECAR: Shape = Shape {
    known: &[
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "ports",
        "envFrom",
        "env",
        "computeResources",
        "volumeMounts",
        "volumeDevices",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
        "script",
        "workspaces",
        "restartPolicy",
    ],
    gone: &[("resources", "v1 calls it computeResources")],
};

/// A volume: its name, and where its files come from.
pub(super) const VOLUME: Shape = Shape {
    known: &[
        "name",
        "hostPath",
        "emptyDir",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "secret",
        "nfs",
        "iscsi",
        "glusterfs",
        "persistentVolumeClaim",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "downwardAPI",
        "fc",
        "azureFile",
        "configMap",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "projected",
        "portworxVolume",
        "scaleIO",
        "storageos",
        "csi",
        "ephemeral",
        "image",
    ],
    gone: &[],
};

/// What a container may do.
const SECURITY_CONTEXT: Shape = Shape {
    known: &[
        "capabilities",
        "privileged",
        "seLinuxOptions",
        "windowsOptions",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "readOnlyRootFilesystem",
        "allowPrivilegeEscalation",
        "procMount",
        "seccompProfile",
        "appArmorProfile",
    ],
    gone: &[],
};

/// All checks that need nothing but the TaskSpec.
pub(super) fn check(task_spec: &Value, trusted: bool, faults: &mut Faults) {
    shape(task_spec, &TASK, "", faults);
    let template = task_spec.get("stepTemplate").filter(|template| !template.is_null());
    if let Some(template) = template {
        shape(template, &STEP_TEMPLATE, "stepTemplate", faults);
        privilege(template, "stepTemplate", trusted, faults);
    }
    steps(task_spec, template, trusted, faults);
    let mut containers = BTreeSet::new();
    for (index, sidecar) in items(task_spec, "sidecars", "", faults).iter().enumerate() {
        let at = format!("sidecars[{index}]");
        if !shape(sidecar, &SIDECAR, &at, faults) {
            continue;
        }
        privilege(sidecar, &at, trusted, faults);
        if text(sidecar, "image").is_empty() {
            faults.add(&format!("{at}.image"), "is required", "name the image");
        }
        sidecar_name(text(sidecar, "name"), &format!("{at}.name"), &mut containers, faults);
        script_or_command(sidecar, &at, faults);
    }
}

/// Tekton admits a sidecar of any name, and makes a Pod of it that Kubernetes refuses where the name is none of a container, or two have one.
fn sidecar_name(name: &str, at: &str, containers: &mut BTreeSet<String>, faults: &mut Faults) {
    if name == "tekton-log-results" {
        faults.add(at, "is reserved by Tekton", "choose another name");
        return;
    }
    // What a parameter puts there is not known here.
    if reference::mentions(name) {
        return;
    }
    let container = container_of(name);
    if !syntax::is_label(&container) {
        faults.seeing(at, format!("is not {}", syntax::LABEL), "rename the sidecar", name);
    } else if !containers.insert(container) {
        faults.seeing(at, "gives its container the name of another sidecar's", "rename one of the sidecars", name);
    }
}

/// The name of a sidecar's container, as Tekton makes it: a word before the name, no more than a name may have, and nothing at the end that no name
/// ends in. So a sidecar without a name has one.
fn container_of(sidecar: &str) -> String {
    let mut name = format!("sidecar-{sidecar}");
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    name.truncate(name.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()).len());
    name
}

/// True when it is an object; unknown members are left alone unless they are a known one misspelt.
pub(super) fn shape(value: &Value, shape: &Shape, at: &str, faults: &mut Faults) -> bool {
    let Some(members) = value.as_object() else {
        faults.add(at, format!("is not a mapping; {} was found", kind(value)), super::REMEDY);
        return false;
    };
    for key in members.keys() {
        let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        if let Some((_, remedy)) = shape.gone.iter().find(|(gone, _)| gone == key) {
            faults.add(&place, "is not a field of Tekton's v1 API, which refuses it as an unknown field", remedy);
        } else if let Some(known) = shape.known.iter().find(|known| is_taken_for(known, key)) {
            faults.add(&place, "is spelled in another case than Tekton's field", &format!("write {known}"));
        }
    }
    true
}

/// Whether Tekton's admission takes `key` for the field `known` though it is another: it reads as Go does, which ignores the case, also of the two
/// characters outside ASCII whose other case is a letter of ASCII.
fn is_taken_for(known: &str, key: &str) -> bool {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    known != key && known.chars().map(fold).eq(key.chars().map(fold))
}

fn steps(task_spec: &Value, template: Option<&Value>, trusted: bool, faults: &mut Faults) {
    let steps = items(task_spec, "steps", "", faults);
    if steps.is_empty() {
        faults.add(KEY_TASK_SPEC, "has no steps", "give the task at least one step");
    }
    if steps.len() > MAX_TEKTON_STEPS {
        let sentence = format!("has {} entries; at most {MAX_TEKTON_STEPS} fit one Pod", steps.len());
        faults.add("steps", sentence, "spread them over several ConfigMaps");
        return;
    }
    let mut names = BTreeSet::new();
    let shared_image = template.map_or("", |template| text(template, "image"));
    for (index, step) in steps.iter().enumerate() {
        let at = format!("steps[{index}]");
        if !shape(step, &STEP, &at, faults) {
            continue;
        }
        privilege(step, &at, trusted, faults);
        let name = text(step, "name");
        if !name.is_empty() && !syntax::is_label(name) {
            faults.seeing(&format!("{at}.name"), format!("is not {}", syntax::LABEL), "rename the step", name);
        }
        if !name.is_empty() && !names.insert(name) {
            faults.seeing(&format!("{at}.name"), "occurs twice", "rename one of the steps", name);
        }
        if step.get("ref").is_some_and(|action| !action.is_null()) {
            if !trusted {
                let sentence = "refers to a step action, whose content can change after the review";
                faults.add(&format!("{at}.ref"), sentence, "write the step out");
            }
            continue;
        }
        if text(step, "image").is_empty() && shared_image.is_empty() {
            faults.add(&format!("{at}.image"), "is required", "name the image");
        }
        script_or_command(step, &at, faults);
        if !text(step, "script").is_empty() && !has_command(step) && template.is_some_and(has_command) {
            let sentence = "stands together with command of the stepTemplate";
            faults.add(&format!("{at}.script"), sentence, "keep one of the two");
        }
    }
}

fn has_command(container: &Value) -> bool {
    container.get("command").and_then(Value::as_array).is_some_and(|command| !command.is_empty())
}

fn script_or_command(container: &Value, at: &str, faults: &mut Faults) {
    if !text(container, "script").is_empty() && has_command(container) {
        faults.add(&format!("{at}.script"), "stands together with command", "keep one of the two");
    }
}

fn privilege(container: &Value, at: &str, trusted: bool, faults: &mut Faults) {
    if let Some(context) = container.get("securityContext").filter(|context| context.is_object()) {
        shape(context, &SECURITY_CONTEXT, &format!("{at}.securityContext"), faults);
    }
    if !trusted && container.pointer("/securityContext/privileged").and_then(Value::as_bool) == Some(true) {
        let remedy = "remove it, or let the platform keep this step in its own namespace";
        faults.add(&format!("{at}.securityContext.privileged"), "is true", remedy);
    }
}
