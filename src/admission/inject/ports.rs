//! Port takeover of mode proxy-sidecar.
//!
//! The proxy takes the agent's first port and everything that leads to it: its number, name, hostPort and hostIP.
//! The agent moves to the next free port; the variable that tells it, its probes and hooks follow, and so do those of containers beside it
//! that ask for its port: the kubelet has no token for the proxy. Every port that an AuthBridge image may listen on is reserved, and every
//! container of the Pod is looked at, init containers included.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::edit::{self, Edit};
use super::plan::Port;
use super::pod::{Earlier, PodView, items, text};
use super::probes;
use super::told;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Where the proxy receives when nobody declares a port, and the first port tried for its forward listener.
const DEFAULT_PORT: u16 = 8000;
const FIRST_FORWARD_PORT: u16 = 8081;
/// Members of a container port that lead callers to it.
const LEADS_HERE: [&str; 3] = ["name", "hostPort", "hostIP"];

/// The layout of one Pod.
#[derive(Debug)]
pub(super) struct Takeover {
    /// Where the proxy receives: the agent's port.
    pub(super) reverse: u16,
    /// Where the agent listens now.
    pub(super) backend: u16,
    /// Where the proxy takes the agent's own calls.
    pub(super) forward: u16,
    /// The ports of the proxy's container.
    pub(super) ports: Vec<Port>,
    /// The changes to the agent's container.
    pub(super) edits: Vec<Edit>,
    /// Some container declares a port.
    pub(super) declared: bool,
}

/// The number of a TCP port entry.
pub(super) fn tcp_port(entry: &Value) -> Option<u16> {
    let number = entry.get("containerPort")?.as_u64().and_then(|number| u16::try_from(number).ok())?;
    (number > 0 && matches!(text(entry, "protocol"), "" | "TCP")).then_some(number)
}

fn is_reserved(port: u16) -> bool {
    port == keys::TRANSPARENT_PORT || keys::SIDECAR_FIXED_PORTS.contains(&port)
}

fn free(from: u32, used: &mut BTreeSet<u16>) -> Option<u16> {
    let port = (from..=u32::from(u16::MAX))
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| !is_reserved(*port) && !used.contains(port))?;
    used.insert(port);
    Some(port)
}

/// The first TCP port of the first regular container that declares one: container, index of the port, number. The agent of an
/// earlier call stays the agent, and where there was none nobody who came since becomes it.
fn app(pod: PodView<'_>) -> Option<(usize, usize, u16)> {
    let all = || pod.list("containers").iter().enumerate();
    let was_agent =
        |container: &Value| matches!(pod.earlier(), Earlier::Moved(name) if name == text(container, "name"));
    let was_there = |container: &Value| match pod.earlier() {
        Earlier::Portless(names) => names.iter().any(|name| name == text(container, "name")),
        Earlier::Nothing | Earlier::Moved(_) => true,
    };
    let earlier = all().filter(|(_, container)| was_agent(container));
    earlier.chain(all().filter(|(_, container)| was_there(container))).find_map(|(container_index, container)| {
        let (port_index, port) = items(container, "ports")
            .iter()
            .enumerate()
            .find_map(|(index, entry)| tcp_port(entry).map(|port| (index, port)))?;
        Some((container_index, port_index, port))
    })
}

/// The layout, or the refusal that no port is left.
pub(super) fn takeover(pod: PodView<'_>) -> Result<Takeover, Box<Denial>> {
    let mut used: BTreeSet<u16> = pod
        .all_containers()
        .flat_map(|(_, _, container)| items(container, "ports"))
        .filter_map(|entry| u16::try_from(entry.get("containerPort")?.as_u64()?).ok())
        .collect();
    let app = app(pod);
    let reverse = app.map_or(DEFAULT_PORT, |(_, _, port)| port);
    used.insert(reverse);
    let no_port = |above: u16| {
        let field = app.map_or_else(
            || "spec.containers".to_owned(),
            |(container, port, _)| format!("spec.containers[{container}].ports[{port}].containerPort"),
        );
        Box::new(
            Denial::new(
                Reason::NoFreePort,
                500,
                format!("no port from {above} to 65535 is free for the agent or the proxy"),
                "declare a smaller port, for instance 8000, and let the application listen where its variable says, $PORT unless annotation \
                 kagenti.io/port-variable names another",
            )
            .at(field, reverse.to_string()),
        )
    };
    let backend = free(u32::from(reverse) + 1, &mut used).ok_or_else(|| no_port(reverse))?;
    let forward = free(u32::from(FIRST_FORWARD_PORT), &mut used).ok_or_else(|| no_port(FIRST_FORWARD_PORT))?;
    let mut ports = vec![Port::tcp(keys::PORT_NAME_REVERSE_PROXY, reverse)];
    let mut edits = Vec::new();
    if let Some((container_index, port_index, _)) = app {
        let container = &pod.list("containers")[container_index];
        let entry = &items(container, "ports")[port_index];
        lead_to_proxy(entry, reverse, &mut ports);
        let variable = told::variable(pod, container_index, reverse)?;
        edits = move_agent(container, port_index, (reverse, backend), variable);
        let beside = pod.lasting().filter(|(list, index, _)| (*list, *index) != ("containers", container_index));
        edits.extend(beside.flat_map(|(_, _, container)| probes::follow(container, reverse, backend)));
    }
    ports.push(Port::tcp(keys::PORT_NAME_FORWARD_PROXY, forward));
    Ok(Takeover { reverse, backend, forward, ports, edits, declared: app.is_some() })
}

/// The first entry of a regular container that means a TCP port and is none: its field, and what stands there.
pub(super) fn unusable(pod: PodView<'_>) -> Option<(String, String)> {
    pod.list("containers").iter().enumerate().find_map(|(container, value)| {
        let is_tcp = |entry: &Value| matches!(text(entry, "protocol"), "" | "TCP");
        let (port, entry) =
            items(value, "ports").iter().enumerate().find(|(_, entry)| is_tcp(entry) && tcp_port(entry).is_none())?;
        let seen = entry.get("containerPort").filter(|seen| !seen.is_null());
        let seen = seen.map_or_else(|| "absent".to_owned(), ToString::to_string);
        Some((format!("spec.containers[{container}].ports[{port}].containerPort"), seen))
    })
}

/// What the API server takes for absent.
fn is_unset(value: &Value) -> bool {
    value.is_null() || *value == "" || *value == 0
}

/// The members of a port entry that lead callers to it.
fn leads(entry: &Value) -> Map<String, Value> {
    LEADS_HERE
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), entry.get(key).filter(|value| !is_unset(value))?.clone())))
        .collect()
}

/// A second entry beside `reverse-proxy`, so that whoever used the port's name or host port reaches the proxy.
fn lead_to_proxy(entry: &Value, reverse: u16, ports: &mut Vec<Port>) {
    let leads = leads(entry);
    let name = Some(text(entry, "name")).filter(|name| !name.is_empty());
    let (host_port, host_ip) = (leads.get("hostPort").cloned(), leads.get("hostIP").cloned());
    if name == Some(keys::PORT_NAME_REVERSE_PROXY) {
        ports[0].host_port = host_port;
        ports[0].host_ip = host_ip;
    } else if !leads.is_empty() {
        let name = name.map(|name| Cow::Owned(name.to_owned()));
        ports.push(Port { name, container_port: reverse, protocol: "TCP", host_port, host_ip });
    }
}

/// The changes to the agent's container.
fn move_agent(container: &Value, port_index: usize, (from, to): (u16, u16), variable: &str) -> Vec<Edit> {
    let name = text(container, "name");
    let entry = &items(container, "ports")[port_index];
    let mut edits = vec![Edit::Port { container: name.to_owned(), index: port_index, from, to, moved: leads(entry) }];
    edits.extend(probes::follow(container, from, to));
    let was = edit::env_entry(container, variable).map(|(_, entry)| entry);
    if was.is_none_or(|entry| !edit::has_value(entry, &to.to_string())) {
        edits.push(Edit::Env {
            container: name.to_owned(),
            name: variable.to_owned(),
            value: to.to_string(),
            from: None,
            was: was.map(edit::given),
        });
    }
    edits
}
