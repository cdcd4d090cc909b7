//! `authbridge`: Envoy, SPIFFE helper and registration in one container (gate `combinedSidecar`, 5.8).
//!
//! Unlike upstream's it also has `CLIENT_AUTH_TYPE`, `SPIFFE_IDP_ALIAS` and `JWT_AUDIENCE`, without which no client
//! could be registered for federated JWTs: one builder serves both shapes.

use std::borrow::Cow;

use super::{env, envoy, image};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, EnvVar, Mount, SecurityContext};
use crate::admission::verdict::Denial;
use crate::domain::keys;

/// The container.
pub(in crate::admission::inject) fn container<'a>(cx: &Context<'a>) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let (spire, registration) = (cx.effective.spire(), cx.effective.sidecars.registration.inject);
    let uid = resolved.proxy.uid.value;
    let switch = |name, on| EnvVar::literal(name, if on { "true" } else { "false" });
    let mut variables = vec![switch("SPIRE_ENABLED", spire), switch("CLIENT_REGISTRATION_ENABLED", registration)];
    variables.extend(env::proxy(cx));
    variables.extend(env::registration(cx));
    let mut volume_mounts = vec![
        Mount::read_only(keys::VOLUME_ENVOY, "/etc/envoy"),
        Mount::read_only(keys::VOLUME_ROUTES, "/etc/authproxy"),
        cx.shared_mount(Mount::writable),
    ];
    if spire {
        volume_mounts.extend([
            Mount::writable(keys::VOLUME_SVID, keys::PATH_SVID),
            Mount::read_only(keys::VOLUME_SPIFFE_HELPER, "/etc/spiffe-helper"),
            Mount::read_only(keys::VOLUME_SPIRE_SOCKET, "/spiffe-workload-api"),
        ]);
    }
    Ok(Container {
        name: keys::CONTAINER_AUTHBRIDGE,
        image: image(&resolved.images.authbridge, "authbridge")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec![],
        args: vec![],
        ports: envoy::ports(cx),
        env: variables,
        resources: Cow::Borrowed(&resolved.resources.authbridge.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext::unprivileged(Some(uid), Some(uid)),
        volume_mounts,
        listens_on: Some(resolved.proxy.inbound_port.value),
    })
}
