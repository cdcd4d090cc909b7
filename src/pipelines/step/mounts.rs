//! Volumes, mounts and workspaces of a TaskSpec: what would clash with Tekton's own, or take the node's files.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{VOLUME, shape};
use super::{DeclaredWorkspace, Faults, items, text};
use crate::api::syntax;
use crate::domain::keys;
use crate::pipelines::reference;

/// Where workspaces are mounted unless they say otherwise.
const WORKSPACES: &str = "/workspace/";
/// Tekton's own folder; below it only its home may be mounted.
const TEKTON: &str = "/tekton/";
const TEKTON_HOME: &str = "/tekton/home";

/// The workspaces that composition can fill; any other must be optional.
const KNOWN_WORKSPACES: [&str; 6] = [
    keys::WORKSPACE_SOURCE,
    keys::WORKSPACE_ARTIFACTS,
    keys::WORKSPACE_GIT_AUTH,
    keys::WORKSPACE_REGISTRY_AUTH,
    keys::WORKSPACE_SIGNING_KEY,
    keys::WORKSPACE_TRUST_BUNDLE,
];

/// A path without doubled, trailing or dot segments, as a container runtime reads it.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

pub(super) fn check(task_spec: &Value, workspaces: &[DeclaredWorkspace], trusted: bool, faults: &mut Faults) {
    for (index, workspace) in workspaces.iter().enumerate() {
        if !workspace.optional && !workspace.name.is_empty() && !KNOWN_WORKSPACES.contains(&workspace.name.as_str()) {
            let sentence = format!("needs a workspace that nothing fills; known are {}", KNOWN_WORKSPACES.join(", "));
            let remedy = "use one of the known workspaces, or make it optional";
            faults.seeing(&format!("workspaces[{index}].name"), sentence, remedy, &workspace.name);
        }
    }
    let volumes = volumes(task_spec, trusted, faults);
    let mut taken = BTreeSet::new();
    for (index, workspace) in items(task_spec, "workspaces", "", faults).iter().enumerate() {
        let path = match text(workspace, "mountPath") {
            "" => format!("{WORKSPACES}{}", text(workspace, "name")),
            path => clean(path),
        };
        if !taken.insert(path.clone()) {
            let at = format!("workspaces[{index}].mountPath");
            faults.seeing(&at, "is a path at which another workspace is mounted", "mount it elsewhere", &path);
        }
    }
    taken.insert(format!("{WORKSPACES}{}", keys::WORKSPACE_SOURCE));
    let place = Place { volumes, taken };
    let shared = task_spec
        .get("stepTemplate")
        .map_or(&[][..], |template| items(template, "volumeMounts", "stepTemplate", faults));
    let shared_paths = place.mounts(shared, "stepTemplate", BTreeSet::new(), faults);
    for (list, below) in [("steps", shared_paths), ("sidecars", BTreeSet::new())] {
        for (index, container) in items(task_spec, list, "", faults).iter().enumerate() {
            let at = format!("{list}[{index}]");
            let mounts = items(container, "volumeMounts", &at, faults);
            place.mounts(mounts, &at, below.clone(), faults);
        }
    }
}

fn volumes(task_spec: &Value, trusted: bool, faults: &mut Faults) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, volume) in items(task_spec, "volumes", "", faults).iter().enumerate() {
        let (name, at) = (text(volume, "name"), format!("volumes[{index}]"));
        if !reference::mentions(name) && !syntax::is_label(name) {
            faults.seeing(&format!("{at}.name"), format!("is not {}", syntax::LABEL), "rename the volume", name);
        }
        if name.starts_with("tekton-internal-") {
            faults.seeing(
                &format!("{at}.name"),
                "begins like the names of Tekton's own volumes",
                "rename the volume",
                name,
            );
        }
        if !names.insert(name.to_owned()) {
            faults.seeing(&format!("{at}.name"), "occurs twice", "rename one of the volumes", name);
        }
        if volume.is_object() {
            shape(volume, &VOLUME, &at, faults);
        }
        if !trusted && volume.get("hostPath").is_some_and(|path| !path.is_null()) {
            let remedy = "use a workspace or an emptyDir, or let the platform keep this step in its own namespace";
            faults.add(&format!("{at}.hostPath"), "mounts files of the node", remedy);
        }
    }
    names
}

struct Place {
    volumes: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Place {
    /// Checks the mounts of one container, which has those of the step template `already`; gives all of its paths.
    fn mounts(&self, mounts: &[Value], at: &str, already: BTreeSet<String>, faults: &mut Faults) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        for (index, mount) in mounts.iter().enumerate() {
            let at = format!("{at}.volumeMounts[{index}]");
            let (name, path) = (text(mount, "name"), clean(text(mount, "mountPath")));
            if text(mount, "mountPath").is_empty() {
                faults.add(&format!("{at}.mountPath"), "is required", "say where the volume is mounted");
            }
            if name.starts_with("tekton-internal-") {
                faults.seeing(
                    &format!("{at}.name"),
                    "begins like the names of Tekton's own volumes",
                    "name another volume",
                    name,
                );
            }
            let mut clash = |sentence: &str, remedy: &str| {
                faults.seeing(&format!("{at}.mountPath"), sentence, remedy, &path);
            };
            if self.taken.contains(&path) {
                clash("is a path at which a workspace is mounted", "mount the volume elsewhere, or use the workspace");
            } else if format!("{path}/").starts_with(TEKTON)
                && !format!("{path}/").starts_with(&format!("{TEKTON_HOME}/"))
            {
                clash("lies in Tekton's own folder", "mount the volume elsewhere");
            } else if !paths.insert(path.clone()) {
                clash("is mounted twice in one container", "keep one of the mounts");
            }
            if !reference::mentions(name)
                && !self.volumes.contains(name)
                && !self.volumes.iter().any(|v| reference::mentions(v))
            {
                faults.seeing(&format!("{at}.name"), "is not a volume of the TaskSpec", "declare the volume", name);
            }
        }
        // A step's own mount replaces the template's at the same path.
        paths.extend(already);
        paths
    }
}
