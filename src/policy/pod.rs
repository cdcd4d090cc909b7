//! A Pod as policies see it.
//!
//! In: a Pod's JSON, or a Pod template with the place it would run in. Out: labels, addresses, names of ports, and whether policies are about it at
//! all.

use std::net::IpAddr;

use serde_json::Value;

use crate::policy::address::{self, Family};
use crate::policy::ports::{PortSet, Protocol};
use crate::policy::selector::Labels;

/// Whether a Pod is one that policies are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Judged {
    /// It is.
    Yes,
    /// It has the node's network, where policies of Pods mean nothing certain.
    HostNetwork,
    /// It has ended.
    Finished,
}

/// A Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Its addresses, as [`address::read`] makes them; none while it has not started, or when it is a template.
    pub addresses: Vec<IpAddr>,
    /// What its containers call their ports, in order; the same name can stand for several.
    pub names: Vec<(String, Protocol, u16)>,
    /// Whether it is judged.
    pub judged: Judged,
}

impl Pod {
    /// Reads a Pod. What is missing or cannot be read is not there.
    #[must_use]
    pub fn read(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let mut pod = Self::template(object, text("/metadata/namespace"), text("/metadata/name"));
        let listed = object.pointer("/status/podIPs").and_then(Value::as_array).into_iter().flatten();
        let listed = listed.filter_map(|entry| entry.get("ip")?.as_str());
        let single = object.pointer("/status/podIP").and_then(Value::as_str);
        for address in listed.chain(single).filter_map(address::read) {
            if !pod.addresses.contains(&address) {
                pod.addresses.push(address);
            }
        }
        if matches!(text("/status/phase"), "Succeeded" | "Failed") {
            pod.judged = Judged::Finished;
        }
        pod
    }

    /// The Pod that a template makes, in that namespace, under that name.
    #[must_use]
    pub fn template(object: &Value, namespace: &str, name: &str) -> Self {
        let host = object.pointer("/spec/hostNetwork").and_then(Value::as_bool).unwrap_or_default();
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            labels: labels(object),
            addresses: Vec::new(),
            names: names(object),
            judged: if host { Judged::HostNetwork } else { Judged::Yes },
        }
    }

    /// The ports of that protocol that it calls so.
    #[must_use]
    pub fn named(&self, name: &str, protocol: Protocol) -> PortSet {
        let mut set = PortSet::NONE;
        for (_, _, port) in self.names.iter().filter(|(own, of, _)| own == name && *of == protocol) {
            set.add(&PortSet::one(protocol, *port));
        }
        set
    }

    /// Whether it has an address of that family.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.addresses.iter().any(|&address| Family::of(address) == family)
    }

    /// Namespace and name, as people write them.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// The labels of an object.
#[must_use]
pub fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Names of ports of containers, and of init containers that keep running.
fn names(object: &Value) -> Vec<(String, Protocol, u16)> {
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let sidecars = list("/spec/initContainers").filter(|container| container["restartPolicy"] == "Always");
    let ports = list("/spec/containers").chain(sidecars).filter_map(|container| container.get("ports")?.as_array());
    let read = |port: &Value| {
        let protocol = match port.get("protocol").and_then(Value::as_str) {
            None => Protocol::Tcp,
            Some(text) => Protocol::of(text)?,
        };
        let number = u16::try_from(port.get("containerPort")?.as_u64()?).ok()?;
        Some((port.get("name")?.as_str()?.to_owned(), protocol, number))
    };
    ports.flatten().filter_map(read).collect()
}
