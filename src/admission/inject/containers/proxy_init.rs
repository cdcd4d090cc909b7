//! `proxy-init`: installs the redirection rules and exits (5.3).

use std::borrow::Cow;

use super::image;
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Capabilities, Container, EnvVar, SecurityContext, ValueFrom};
use crate::admission::inject::port_list;
use crate::admission::verdict::{Denial, Warning};
use crate::config::resolved::InboundExclusions;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Keycloak's port, which always bypasses the proxy.
const ALWAYS_EXCLUDED: u16 = 8080;

/// The ports of an annotation; what is no port is left out and reported.
fn excluded(cx: &Context<'_>, annotation: &'static str, warnings: &mut Vec<Warning>) -> Vec<u16> {
    let Some(text) = cx.subject.pod.annotation(annotation) else { return Vec::new() };
    let list = port_list::parse(text);
    if !list.dropped.is_empty() {
        warnings.push(Warning::new(
            Reason::PortDropped,
            format!("annotation {annotation}: {} left out; ports are integers from 1 to 65535", list.dropped_text()),
        ));
    }
    list.ports
}

/// The annotation has no effect where the platform says so.
fn not_allowed(cx: &Context<'_>, warnings: &mut Vec<Warning>) {
    if cx.subject.pod.annotation(keys::ANNOTATION_INBOUND_EXCLUDE).is_some() {
        warnings.push(Warning::new(
            Reason::LabelIgnored,
            format!(
                "annotation {} has no effect, because {} sets proxy.inboundExclusions: none",
                keys::ANNOTATION_INBOUND_EXCLUDE,
                cx.effective.resolved.proxy.inbound_exclusions.layer
            ),
        ));
    }
}

/// The container, and what came up while reading the port lists.
pub(in crate::admission::inject) fn container<'a>(
    cx: &Context<'a>,
    warnings: &mut Vec<Warning>,
) -> Result<Container<'a>, Box<Denial>> {
    let resolved = cx.effective.resolved;
    let proxy = &resolved.proxy;
    let mut outbound = vec![ALWAYS_EXCLUDED];
    outbound.extend(
        excluded(cx, keys::ANNOTATION_OUTBOUND_EXCLUDE, warnings).into_iter().filter(|port| *port != ALWAYS_EXCLUDED),
    );
    let inbound = match proxy.inbound_exclusions.value {
        InboundExclusions::Any => excluded(cx, keys::ANNOTATION_INBOUND_EXCLUDE, warnings),
        InboundExclusions::None => {
            not_allowed(cx, warnings);
            Vec::new()
        }
    };
    let mut env = vec![
        EnvVar::literal("PROXY_PORT", proxy.port.value.to_string()),
        EnvVar::literal("INBOUND_PROXY_PORT", proxy.inbound_port.value.to_string()),
        EnvVar::literal("PROXY_UID", proxy.uid.value.to_string()),
        EnvVar::literal("OUTBOUND_PORTS_EXCLUDE", port_list::join(&outbound)),
        EnvVar::from("POD_IP", ValueFrom::Field { field_path: "status.podIP" }),
    ];
    if !inbound.is_empty() {
        env.push(EnvVar::literal("INBOUND_PORTS_EXCLUDE", port_list::join(&inbound)));
    }
    Ok(Container {
        name: keys::CONTAINER_PROXY_INIT,
        image: image(&resolved.images.proxy_init, "proxyInit")?,
        image_pull_policy: Cow::Borrowed(&resolved.images.pull_policy.value),
        command: vec![],
        args: vec![],
        ports: vec![],
        env,
        resources: Cow::Borrowed(&resolved.resources.proxy_init.value),
        restart_policy: None,
        startup_probe: None,
        security_context: SecurityContext {
            run_as_user: Some(0),
            run_as_non_root: false,
            privileged: Some(false),
            capabilities: Capabilities { add: &["NET_ADMIN", "NET_RAW"], ..Capabilities::default() },
            ..SecurityContext::default()
        },
        volume_mounts: vec![],
        listens_on: None,
    })
}
