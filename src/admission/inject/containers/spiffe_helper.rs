//! `spiffe-helper`: fetches SVIDs into a shared volume (5.4).

use std::borrow::Cow;

use super::image;
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, Mount, SecurityContext};
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The user of the helper's image.
const UID: i64 = 1001;

/// The container.
pub(in crate::admission::inject) fn container<'a>(cx: &Context<'a>) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    Ok(Container {
        name: keys::CONTAINER_SPIFFE_HELPER,
        image: image(&resolved.images.spiffe_helper, "spiffeHelper")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: ["/spiffe-helper", "-config=/etc/spiffe-helper/helper.conf", "run"].map(Cow::Borrowed).into(),
        args: vec![],
        ports: vec![],
        env: vec![],
        resources: Cow::Borrowed(&resolved.resources.spiffe_helper.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext::unprivileged(cx.user_of_image(UID), None),
        volume_mounts: vec![
            Mount::writable(keys::VOLUME_SPIFFE_HELPER, "/etc/spiffe-helper"),
            Mount::writable(keys::VOLUME_SPIRE_SOCKET, "/spiffe-workload-api"),
            Mount::writable(keys::VOLUME_SVID, keys::PATH_SVID),
            cx.shared_mount(Mount::writable),
        ],
        listens_on: None,
    })
}
