//! Who is meant: `NS/NAME`, `NS/KIND/NAME` or an address, and one port.
//!
//! In: words of a command line, and everybody there is. Out: Pods of the world, or an address; and the ports that are asked for. Promise: nothing is
//! guessed: a name that several kinds have is refused with the ways to say which.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::bail;
use serde_json::Value;

use super::population::{Population, Settled};
use crate::cli::survey::{Type, text};
use crate::domain::suggest::nearest;
use crate::domain::workload::WorkloadKind;
use crate::policy::address;
use crate::policy::pod::Pod;
use crate::policy::ports::{PortSet, Protocol};
use crate::policy::selector::Labels;

/// What people call a Service.
const SERVICE: &[&str] = &["service", "services", "svc"];

/// What a person wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Wanted {
    /// Who.
    pub(in crate::cli) whom: Whom,
    /// Which port.
    pub(in crate::cli) port: Option<Port>,
}

/// Who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Whom {
    /// An object.
    Object {
        /// Its namespace.
        namespace: String,
        /// Its kind, as it was written.
        kind: Option<String>,
        /// Its name.
        name: String,
    },
    /// An address that is no Pod's, or is taken as if it were none.
    Address(IpAddr),
}

/// Which port is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Port {
    /// Its number, or what it is called.
    pub(in crate::cli) which: Which,
    /// Its protocol; absent: TCP for a number, any for a name.
    pub(in crate::cli) protocol: Option<Protocol>,
}

/// Number or name of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Which {
    /// Its number.
    Number(u16),
    /// Its name.
    Name(String),
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.which, self.protocol) {
            (Which::Number(number), protocol) => write!(f, "{number}/{}", protocol.unwrap_or(Protocol::Tcp).as_str()),
            (Which::Name(name), Some(protocol)) => write!(f, "{name}/{}", protocol.as_str()),
            (Which::Name(name), None) => f.write_str(name),
        }
    }
}

impl Wanted {
    /// Reads `NS/NAME[:PORT]`, `NS/KIND/NAME[:PORT]`, `NAME[:PORT]` of that namespace, or an address with a port: `10.0.0.1:443`, `[fd00::1]:443`.
    ///
    /// # Errors
    /// What cannot be read, and how it is written.
    pub(in crate::cli) fn read(text: &str, namespace: &str) -> anyhow::Result<Self> {
        if let Some(address) = address::read(text) {
            return Ok(Self { whom: Whom::Address(address), port: None });
        }
        if let Some(bracketed) = text.strip_prefix('[') {
            let Some((address, rest)) = bracketed.split_once(']') else { bail!("{text}: the bracket is not closed") };
            let Some(address) = address::read(address) else { bail!("{text}: {address} is not an address") };
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(Port::read(port)?),
                None if rest.is_empty() => None,
                None => bail!("{text}: a port is written as [{address}]:443"),
            };
            return Ok(Self { whom: Whom::Address(address), port });
        }
        let (whom, port) = match text.split_once(':') {
            Some((whom, port)) => (whom, Some(Port::read(port)?)),
            None => (text, None),
        };
        if let Some(address) = address::read(whom) {
            return Ok(Self { whom: Whom::Address(address), port });
        }
        let parts: Vec<&str> = whom.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [name] => (namespace, None, name),
            [namespace, name] => (namespace, None, name),
            [namespace, kind, name] => (namespace, Some(kind.to_owned()), name),
            _ => bail!("{whom} is not NAMESPACE/NAME, NAMESPACE/KIND/NAME or an address"),
        };
        if namespace.is_empty() || name.is_empty() {
            bail!("{whom} is not NAMESPACE/NAME, NAMESPACE/KIND/NAME or an address");
        }
        if let Some(kind) = &kind
            && Type::of_word(kind).is_none()
            && !SERVICE.contains(&kind.as_str())
        {
            bail!("{kind} is not a type that makes Pods, nor a Service; write it as {namespace}/deployment/{name}");
        }
        Ok(Self { whom: Whom::Object { namespace: namespace.to_owned(), kind, name: name.to_owned() }, port })
    }

    /// The namespace of an object.
    pub(in crate::cli) fn namespace(&self) -> Option<&str> {
        match &self.whom {
            Whom::Object { namespace, .. } => Some(namespace),
            Whom::Address(_) => None,
        }
    }
}

impl Port {
    fn read(text: &str) -> anyhow::Result<Self> {
        let (which, protocol) = match text.split_once('/') {
            Some((which, protocol)) => match Protocol::of(&protocol.to_uppercase()) {
                Some(protocol) => (which, Some(protocol)),
                None => bail!("{protocol} is not a protocol: TCP, UDP or SCTP"),
            },
            None => (text, None),
        };
        let is_number = !which.is_empty() && which.bytes().all(|byte| byte.is_ascii_digit());
        let which = match which.parse::<u16>() {
            Ok(number) if number > 0 => Which::Number(number),
            _ if is_number || which.is_empty() => bail!("{which:?} is not a port: a number from 1 to 65535, or a name"),
            _ => Which::Name(which.to_owned()),
        };
        Ok(Self { which, protocol })
    }

    /// The ports of a Pod that are meant; none when it calls none so.
    fn of(&self, pod: &Pod) -> PortSet {
        match &self.which {
            Which::Number(number) => PortSet::one(self.protocol.unwrap_or(Protocol::Tcp), *number),
            Which::Name(name) => {
                let mut set = PortSet::NONE;
                for protocol in Protocol::ALL.into_iter().filter(|&one| self.protocol.is_none_or(|own| own == one)) {
                    set.add(&pod.named(name, protocol));
                }
                set
            }
        }
    }
}

/// Who was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Found {
    /// Pods of the world, and the ports of each that are asked for; `None` for whatever is reached.
    Pods {
        /// Namespace, kind and name of what they are of.
        of: (String, String, String),
        /// Their places in the world.
        pods: Vec<(usize, Option<PortSet>)>,
    },
    /// An address, and the ports that are asked for.
    Address(IpAddr, Option<PortSet>),
}

/// Finds what is wanted; `None` when nothing of that name is there.
///
/// # Errors
/// When the name is that of several, or the port means nothing there.
pub(in crate::cli) fn find(
    wanted: &Wanted,
    settled: &Settled,
    population: &Population,
) -> anyhow::Result<Option<Found>> {
    let (namespace, kind, name) = match &wanted.whom {
        Whom::Address(address) => {
            let ports = match &wanted.port {
                None => None,
                Some(Port { which: Which::Number(number), protocol }) => {
                    Some(PortSet::one(protocol.unwrap_or(Protocol::Tcp), *number))
                }
                Some(Port { which: Which::Name(name), .. }) => {
                    bail!("an address has no port called {name}; name its number")
                }
            };
            return Ok(Some(Found::Address(*address, ports)));
        }
        Whom::Object { namespace, kind, name } => (namespace, kind.as_deref(), name),
    };
    if kind.is_some_and(|kind| SERVICE.contains(&kind)) {
        return of_service(wanted, (namespace, name), settled, population);
    }
    let wanted_kind = kind.and_then(Type::of_word).map(|known| known.kind);
    let mut kinds: BTreeSet<WorkloadKind> = BTreeSet::new();
    let here = settled
        .world
        .pods()
        .iter()
        .zip(&settled.members)
        .enumerate()
        .filter(|(_, (pod, _))| pod.namespace == *namespace);
    for (_, (pod, member)) in here.clone() {
        if member.workload.name == *name {
            kinds.insert(member.workload.kind);
        }
        if pod.name == *name && !member.is_template {
            kinds.insert(WorkloadKind::Pod);
        }
    }
    let kind = match wanted_kind {
        Some(kind) if kinds.contains(&kind) => kind,
        Some(_) => return Ok(None),
        None => match kinds.iter().collect::<Vec<_>>()[..] {
            [] => return of_service(wanted, (namespace, name), settled, population),
            [kind] => *kind,
            _ => {
                let ways: Vec<_> =
                    kinds.iter().map(|kind| format!("{namespace}/{}/{name}", kind.as_str().to_lowercase())).collect();
                bail!("{namespace}/{name} is the name of several; say which: {}", ways.join(", "))
            }
        },
    };
    let is_meant = |pod: &Pod, workload: &crate::domain::workload::Workload, is_template: bool| {
        let by_owner = workload.kind == kind && workload.name == *name;
        by_owner || (kind == WorkloadKind::Pod && pod.name == *name && !is_template)
    };
    let pods = here.filter(|(_, (pod, member))| is_meant(pod, &member.workload, member.is_template));
    let pods: Vec<_> = pods.map(|(at, (pod, _))| (at, wanted.port.as_ref().map(|port| port.of(pod)))).collect();
    known_there(wanted, &pods)?;
    Ok(Some(Found::Pods { of: (namespace.clone(), kind.as_str().to_owned(), name.clone()), pods }))
}

/// A name of a port that no Pod has is a slip of the pen.
fn known_there(wanted: &Wanted, pods: &[(usize, Option<PortSet>)]) -> anyhow::Result<()> {
    if let Some(port) = &wanted.port
        && !pods.is_empty()
        && pods.iter().all(|(_, ports)| ports.as_ref().is_some_and(PortSet::is_empty))
    {
        bail!("no container there calls a port {port}; name its number, or one of the names in the Pods' containers");
    }
    Ok(())
}

fn of_service(
    wanted: &Wanted,
    (namespace, name): (&str, &str),
    settled: &Settled,
    population: &Population,
) -> anyhow::Result<Option<Found>> {
    let is_meant =
        |service: &&Value| text(service, "/metadata/namespace") == namespace && text(service, "/metadata/name") == name;
    let Some(service) = population.services.iter().find(is_meant) else { return Ok(None) };
    let selector: Labels = match service.pointer("/spec/selector").and_then(Value::as_object) {
        Some(labels) if !labels.is_empty() => {
            labels.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        }
        _ => bail!("Service {namespace}/{name} selects no Pods; name Pods, a workload or an address"),
    };
    let port = wanted.port.as_ref().map(|port| target_port(service, port)).transpose()?;
    let selected = settled.world.pods().iter().enumerate().filter(|(_, pod)| {
        pod.namespace == namespace && selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
    });
    let pods: Vec<_> = selected.map(|(at, pod)| (at, port.as_ref().map(|port| port.of(pod)))).collect();
    if pods.is_empty() {
        bail!("Service {namespace}/{name} selects no Pod that exists");
    }
    Ok(Some(Found::Pods { of: (namespace.to_owned(), "Service".to_owned(), name.to_owned()), pods }))
}

/// The port of the Pods behind a port of a Service.
fn target_port(service: &Value, port: &Port) -> anyhow::Result<Port> {
    let protocol = |entry: &Value| entry["protocol"].as_str().and_then(Protocol::of).unwrap_or(Protocol::Tcp);
    let entries: Vec<&Value> = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten().collect();
    let is_meant = |entry: &&&Value| {
        let named = match &port.which {
            Which::Number(number) => entry["port"].as_u64() == Some(u64::from(*number)),
            Which::Name(name) => entry["name"].as_str() == Some(name),
        };
        named && port.protocol.is_none_or(|own| own == protocol(entry))
    };
    let Some(entry) = entries.iter().find(is_meant) else {
        let known: Vec<_> =
            entries.iter().map(|entry| format!("{}/{}", entry["port"], protocol(entry).as_str())).collect();
        bail!("Service {} has no port {port}; it has {}", text(service, "/metadata/name"), known.join(", "));
    };
    let which = match &entry["targetPort"] {
        Value::String(name) => Which::Name(name.clone()),
        Value::Number(number) => {
            Which::Number(number.as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or_default())
        }
        _ => Which::Number(entry["port"].as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or_default()),
    };
    Ok(Port { which, protocol: Some(protocol(entry)) })
}

/// What to say of a name that is not there.
pub(in crate::cli) fn absent(wanted: &Wanted, settled: &Settled) -> String {
    let Whom::Object { namespace, kind, name } = &wanted.whom else { return "this address does not exist".to_owned() };
    let kind = kind.as_deref().unwrap_or("Pod, workload or Service");
    let here: BTreeSet<&str> = settled
        .world
        .pods()
        .iter()
        .zip(&settled.members)
        .filter(|(pod, _)| pod.namespace == *namespace)
        .flat_map(|(pod, member)| [pod.name.as_str(), member.workload.name.as_str()])
        .collect();
    match nearest(name, here.iter().copied()) {
        Some(near) => format!("no {kind} is called {namespace}/{name}; did you mean {namespace}/{near}?"),
        None if here.is_empty() => format!("no {kind} is called {namespace}/{name}; namespace {namespace} has no Pods"),
        None => format!("no {kind} is called {namespace}/{name}"),
    }
}
