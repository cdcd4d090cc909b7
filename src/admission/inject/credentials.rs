//! Operator-managed client credentials (docs/deviations.md: credentials).
//!
//! Our containers see the Secret's two keys as a projected volume at `/shared`, so that rotation is seen. A user
//! container that mounts `shared-data` gets the two files as subPath mounts, which do not rotate, and a warning. Below a read-only mount the
//! files could not be made, and the container would not start: it gets the warning alone.

use serde_json::{Value, json};

use super::edit::Edit;
use super::plan::InjectionPlan;
use super::pod::{PodView, items, text};
use crate::admission::verdict::Warning;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// The files, in the order in which upstream mounts them.
const FILES: [(&str, &str); 2] =
    [(keys::PATH_CLIENT_SECRET, keys::FILE_CLIENT_SECRET), (keys::PATH_CLIENT_ID, keys::FILE_CLIENT_ID)];

/// The volume that shows that Secret.
pub(super) fn volume(name: &str, secret: &str) -> Value {
    let file = |name: &str| json!({"key": name, "path": name});
    json!({"name": name, "projected": {"sources": [{"secret": {
        "name": secret, "optional": false,
        "items": [file(keys::FILE_CLIENT_ID), file(keys::FILE_CLIENT_SECRET)]}}]}})
}

/// Whether a mount takes the files' folder and lets nothing be made there.
fn hides(mount: &Value) -> bool {
    let folder = format!("{}/", text(mount, "mountPath").trim_end_matches('/'));
    mount.get("readOnly").and_then(Value::as_bool) == Some(true)
        && FILES.iter().any(|(path, _)| path.starts_with(&folder))
}

/// The mounts of user containers that share `shared-data`.
pub(super) fn mount_in_user_containers(pod: PodView<'_>, plan: &mut InjectionPlan<'_>) {
    for container in pod.list("containers") {
        let mounts = items(container, "volumeMounts");
        if !mounts.iter().any(|mount| text(mount, "name") == keys::VOLUME_SHARED) {
            continue;
        }
        let name = text(container, "name");
        if let Some(place) = mounts.iter().find(|mount| hides(mount)).map(|mount| text(mount, "mountPath")) {
            plan.warnings.push(Warning::new(
                Reason::SharedDataMounted,
                format!(
                    "container {name} does not see the client credentials: it mounts {} read-only at {place}, where no file can be put; leave out \
                     readOnly if it needs them, else remove the mount",
                    keys::VOLUME_SHARED
                ),
            ));
            continue;
        }
        for (path, file) in FILES.iter().filter(|(path, _)| !mounts.iter().any(|m| text(m, "mountPath") == *path)) {
            plan.edits.push(Edit::Mount {
                container: name.to_owned(),
                volume: keys::VOLUME_CREDENTIALS.to_owned(),
                path: (*path).to_owned(),
                sub_path: (*file).to_owned(),
            });
        }
        plan.warnings.push(Warning::new(
            Reason::SharedDataMounted,
            format!(
                "container {name} mounts {}, so it sees the client credentials, and would not see them rotate; remove \
                 the mount unless the container needs them",
                keys::VOLUME_SHARED
            ),
        ));
    }
}
