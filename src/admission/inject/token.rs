//! The API token in a container of ours, ahead of the API server.
//!
//! In: the Pod as received. Out: the mount that the containers we put into it get. The API server's ServiceAccount
//! plugin mounts its token into every container; it ran before us, so that our containers lack it, and runs once more
//! after us. What it then adds is a change, and for a change it calls every webhook again: each Pod cost two reviews.
//! Promise: the Pod that is stored is the same with this and without. Assumes what the plugin assumes: its volume is
//! the first named `kube-api-access-…`, and a container that mounts anything at the token's path gets none.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pod::{PodView, items, text};
use crate::admission::patch::{self, Operation, Part, PointerBuf};

/// Where the ServiceAccount plugin mounts its token.
pub(super) const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How the names of the plugin's volumes begin.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// The mount of the plugin's token, when every container of the Pod has got it or something else in its place.
pub(super) fn mount(pod: PodView<'_>) -> Option<Arc<Part>> {
    if pod.spec("automountServiceAccountToken") == Some(&Value::Bool(false)) {
        return None;
    }
    let mut volumes = pod.list("volumes").iter().map(|volume| text(volume, "name"));
    let volume = volumes.find(|name| name.starts_with(TOKEN_VOLUME))?;
    pod.all_containers()
        .all(|(_, _, container)| has_mount(container))
        .then(|| Arc::new(Part::new(json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}))))
}

/// Whether the container mounts something at the token's path.
fn has_mount(container: &Value) -> bool {
    items(container, "volumeMounts").iter().any(|one| text(one, "mountPath") == TOKEN_PATH)
}

/// Whether the mount is that of the plugin's token.
pub(super) fn is_plugins(mount: &Value) -> bool {
    text(mount, "mountPath") == TOKEN_PATH && text(mount, "name").starts_with(TOKEN_VOLUME)
}

/// Gives the container at `at`, which the patch has just put there as `rendered`, the mount behind its own, unless it has one there.
pub(super) fn operation(at: &PointerBuf, rendered: &Value, mount: &Arc<Part>) -> Option<Operation> {
    let at = at.with_trailing_token("volumeMounts");
    if has_mount(rendered) {
        return None;
    }
    Some(if rendered.get("volumeMounts").is_some_and(Value::is_array) {
        patch::add_part(at.with_trailing_token("-"), mount)
    } else {
        patch::add_parts(at, vec![Arc::clone(mount)])
    })
}
