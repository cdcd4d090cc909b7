//! `envoy-proxy`: Envoy with the ext_proc server (5.2).

use std::borrow::Cow;

use super::{RUNTIME_CONFIG_ARGS, env, image};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, Mount, Port, SecurityContext};
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The ports of a container that runs Envoy.
pub(super) fn ports(cx: &Context<'_>) -> Vec<Port> {
    let proxy = &cx.effective.resolved.proxy;
    vec![
        Port::tcp(keys::PORT_NAME_ENVOY_OUTBOUND, proxy.port.value),
        Port::tcp(keys::PORT_NAME_ENVOY_INBOUND, proxy.inbound_port.value),
        Port::tcp(keys::PORT_NAME_ENVOY_ADMIN, proxy.admin_port.value),
        Port::tcp(keys::PORT_NAME_EXT_PROC, keys::PORT_EXT_PROC),
    ]
}

/// The container.
pub(in crate::admission::inject) fn container<'a>(cx: &Context<'a>) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let uid = resolved.proxy.uid.value;
    let mut volume_mounts = vec![
        Mount::read_only(keys::VOLUME_ENVOY, "/etc/envoy"),
        cx.shared_mount(Mount::read_only),
        Mount::read_only(keys::VOLUME_ROUTES, "/etc/authproxy"),
        Mount::read_only(keys::VOLUME_RUNTIME_CONFIG, "/etc/authbridge"),
    ];
    if cx.effective.spire() {
        volume_mounts.push(Mount::read_only(keys::VOLUME_SVID, keys::PATH_SVID));
    }
    Ok(Container {
        name: keys::CONTAINER_ENVOY,
        image: image(&resolved.images.envoy_proxy, "envoyProxy")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec![],
        args: RUNTIME_CONFIG_ARGS.map(Cow::Borrowed).into(),
        ports: ports(cx),
        env: env::proxy(cx),
        resources: Cow::Borrowed(&resolved.resources.envoy_proxy.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext::unprivileged(Some(uid), Some(uid)),
        volume_mounts,
        listens_on: Some(resolved.proxy.inbound_port.value),
    })
}
