//! `authbridge-proxy`: reverse and forward proxy of mode proxy-sidecar (5.9).

use std::borrow::Cow;

use super::{RUNTIME_CONFIG_ARGS, image};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, Mount, Port, SecurityContext};
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The user of the proxy's image.
const UID: i64 = 1001;

/// The container with these ports; the first is the one that tells that it listens.
pub(in crate::admission::inject) fn container<'a>(
    cx: &Context<'a>,
    ports: Vec<Port>,
) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let mut volume_mounts = vec![
        cx.shared_mount(Mount::writable),
        Mount::read_only(keys::VOLUME_RUNTIME_CONFIG, "/etc/authbridge"),
        Mount::read_only(keys::VOLUME_ROUTES, "/etc/authproxy"),
    ];
    if cx.effective.spire() {
        volume_mounts.push(Mount::writable(keys::VOLUME_SVID, keys::PATH_SVID));
    }
    Ok(Container {
        name: keys::CONTAINER_AUTHBRIDGE_PROXY,
        image: image(&resolved.images.authbridge_light, "authbridgeLight")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec![],
        args: RUNTIME_CONFIG_ARGS.map(Cow::Borrowed).into(),
        listens_on: ports.first().map(|port| port.container_port),
        ports,
        env: vec![],
        resources: Cow::Borrowed(&resolved.resources.envoy_proxy.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext::unprivileged(Some(UID), None),
        volume_mounts,
    })
}
