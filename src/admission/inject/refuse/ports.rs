//! Ports that the proxy's image takes and cannot share.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::admission::inject::context::Context;
use crate::admission::inject::edit::Edit;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::pod::{items, text};
use crate::admission::inject::ports::tcp_port;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Envoy's listeners, and what every AuthBridge image listens on.
fn taken(plan: &InjectionPlan<'_>) -> BTreeSet<u16> {
    let fixed = plan
        .all_containers()
        .filter(|container| [keys::CONTAINER_ENVOY, keys::CONTAINER_AUTHBRIDGE].contains(&container.name))
        .flat_map(|container| container.ports.iter().map(|port| port.container_port));
    let images = plan.all_containers().filter(|c| c.listens_on.is_some()).flat_map(|_| keys::AUTHBRIDGE_PORTS);
    fixed.chain(images).collect()
}

/// All containers of a Pod share one network: two cannot listen on one port.
pub(super) fn collision(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let taken = taken(plan);
    cx.subject.pod.all_containers().find_map(|(list, index, container)| {
        let (entry, port) = items(container, "ports")
            .iter()
            .enumerate()
            .find_map(|(entry, value)| tcp_port(value).filter(|port| taken.contains(port)).map(|port| (entry, port)))?;
        let denial = Denial::new(
            Reason::PortCollision,
            422,
            format!("port {port} is one the proxy listens on, and containers of a Pod share their ports"),
            "let the application listen on another port, for instance 8000",
        );
        Some(denial.at(format!("spec.{list}[{index}].ports[{entry}].containerPort"), port.to_string()))
    })
}

/// Where the proxy of mode proxy-sidecar receives, nobody who runs beside it may listen: it would not start, or be gone round.
pub(super) fn taken_over(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let proxy = plan.all_containers().find(|container| container.name == keys::CONTAINER_AUTHBRIDGE_PROXY)?;
    let port = proxy.listens_on?;
    let agent = plan.edits.iter().find(|edit| matches!(edit, Edit::Port { .. })).map(Edit::container);
    cx.subject.pod.lasting().filter(|(_, _, container)| Some(text(container, "name")) != agent).find_map(
        |(list, index, container)| {
            let entry = items(container, "ports").iter().position(|value| tcp_port(value) == Some(port))?;
            let (why, remedy) = match agent {
                Some(agent) => (
                    format!("the proxy takes port {port} over from container {agent}"),
                    "let one of the two containers listen on another port",
                ),
                None => (
                    format!("the proxy receives on port {port}, because no other container declares a TCP port"),
                    "declare the agent's port under spec.containers[].ports",
                ),
            };
            let denial = Denial::new(
                Reason::PortCollision,
                422,
                format!("{why}, and containers of a Pod share their ports"),
                remedy,
            );
            Some(denial.at(format!("spec.{list}[{index}].ports[{entry}].containerPort"), port.to_string()))
        },
    )
}

/// A port name that moves to the proxy must not be one the proxy has.
pub(super) fn port_names(_: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    plan.all_containers().find_map(|container| {
        let mut seen = BTreeSet::new();
        let name = container.ports.iter().filter_map(|port| port.name.as_deref()).find(|name| !seen.insert(*name))?;
        let denial = Denial::new(
            Reason::PortCollision,
            422,
            format!("the agent's port is named {name}, which is the name of a port of the proxy"),
            "give the port another name, for instance http",
        );
        Some(denial.at("spec.containers[].ports[].name", name))
    })
}

/// The agent's port keeps its name, which goes to the proxy: a Service that names it must not be led to another container of that name, round
/// the proxy. Kubernetes takes the first that has the name, of the regular containers, then of the sidecars among the init containers.
pub(super) fn name_elsewhere(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let (agent, port, name) = plan.edits.iter().find_map(|edit| match edit {
        Edit::Port { container, from, moved, .. } => Some((&**container, *from, moved.get("name")?.as_str()?)),
        _ => None,
    })?;
    let (list, index, entry, other) = cx.subject.pod.lasting().find_map(|(list, index, container)| {
        let named = |value: &Value| text(value, "name") == name && tcp_port(value).is_some();
        let entry = items(container, "ports").iter().position(named)?;
        let other = text(container, "name");
        (other != agent).then_some((list, index, entry, other))
    })?;
    let denial = Denial::new(
        Reason::PortCollision,
        422,
        format!(
            "container {other} has a port of the name {name}, too: the proxy takes port {port} over from container {agent}, and a Service with \
             targetPort {name} would lead to {other}, round the proxy"
        ),
        "give one of the two ports another name",
    );
    Some(denial.at(format!("spec.{list}[{index}].ports[{entry}].name"), name))
}
