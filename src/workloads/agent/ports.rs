//! Ports of the Service, and whether anything answers behind them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read::default_ports;
use super::{agent_container, list, pod, text};
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::reason::Reason;

/// Port of the agent's container when neither it nor the Service names one.
pub(super) const DEFAULT_CONTAINER_PORT: i64 = 8000;
/// Protocol of a port that names none.
const TCP: &str = "TCP";

pub(super) fn check(object: &Value, findings: &mut Findings) {
    let defaults = default_ports();
    // The schema fills in the default, in a manifest nobody has.
    let written = object.pointer("/spec/servicePorts").filter(|ports| !ports.is_null());
    let ports = written.map_or(&*defaults, |_| list(object, "/spec/servicePorts"));
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.servicePorts[{index}]");
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            findings.fault(Fault::required(format!("{at}.name"), "name every port when there are several"));
        } else if !name.is_empty() && !syntax::is_label(name) {
            let fault = Fault::invalid(format!("{at}.name"), format!("is not {}", syntax::LABEL), "rename the port");
            findings.fault(fault.seeing(name));
        } else if !name.is_empty() && !names.insert(name) {
            let fault =
                Fault::new(Reason::DuplicateName, format!("{at}.name"), "occurs twice", "rename one of the ports");
            findings.fault(fault.seeing(name));
        }
        number(port.get("port"), true, &format!("{at}.port"), findings);
        if let Some(number) = port.get("port").and_then(Value::as_i64)
            && !numbers.insert((number, protocol(port)))
        {
            let sentence = format!("occurs twice with protocol {}, which no Service can have", protocol(port));
            let fault = Fault::new(Reason::DuplicateName, format!("{at}.port"), sentence, "change one of the ports");
            findings.fault(fault.seeing(&number.to_string()));
        }
        if let Some(target) = port.get("targetPort").filter(|target| target.is_number()) {
            number(Some(target), false, &format!("{at}.targetPort"), findings);
        }
        let misnamed = port.get("targetPort").and_then(Value::as_str).filter(|name| !syntax::is_port_name(name));
        if let Some(name) = misnamed {
            let sentence = format!("is not {}", syntax::PORT_NAME);
            let remedy = "name a port of a container, or write its number";
            findings.fault(Fault::invalid(format!("{at}.targetPort"), sentence, remedy).seeing(name));
        } else {
            unmatched(object, port, &at, findings);
        }
        of_a_cluster_ip(port, &at, findings);
    }
}

/// What the API server refuses of a Service inside the cluster.
fn of_a_cluster_ip(port: &Value, at: &str, findings: &mut Findings) {
    if !["TCP", "UDP", "SCTP"].contains(&protocol(port)) {
        let fault = Fault::invalid(format!("{at}.protocol"), "is none of TCP, UDP and SCTP", "write one of them");
        findings.fault(fault.seeing(protocol(port)));
    }
    if port.get("nodePort").and_then(Value::as_i64).is_some_and(|node| node != 0) {
        let sentence = "opens a port on every node, which the Service of an Agent does not: it is of type ClusterIP";
        let remedy = "remove it, and make a Service of your own for that";
        findings.fault(Fault::invalid(format!("{at}.nodePort"), sentence, remedy));
    }
}

fn number(port: Option<&Value>, needed: bool, at: &str, findings: &mut Findings) {
    match port {
        None | Some(Value::Null) if needed => findings.fault(Fault::required(at, "write a port from 1 to 65535")),
        None | Some(Value::Null) => {}
        Some(port) if port.as_u64().is_some_and(|port| (1..=65535).contains(&port)) => {}
        Some(port) => {
            let fault = Fault::invalid(at, "is not a port from 1 to 65535", "correct the number");
            findings.fault(fault.seeing(&port.to_string()));
        }
    }
}

/// A port that a container listens at: name, number, protocol.
type Listening<'v> = (&'v str, i64, &'v str);

/// The ports of the Pod: of every container and sidecar as declared, of the agent's the one that it is given otherwise.
fn pod_ports(object: &Value) -> Vec<Listening<'_>> {
    let agent = agent_container(object).map(|(index, _)| index);
    let given = || {
        let target = list(object, "/spec/servicePorts").iter().find_map(|port| port.get("targetPort")?.as_i64());
        ("http", target.unwrap_or(DEFAULT_CONTAINER_PORT), TCP)
    };
    // Without any container there is nothing to compare with, and that is the fault to speak of.
    let mut ports: Vec<Listening<'_>> = agent.is_none().then(given).into_iter().collect();
    for (index, container) in list(pod(object), "/containers").iter().enumerate() {
        let own = declared(container);
        if own.is_empty() && Some(index) == agent {
            ports.push(given());
        }
        ports.extend(own);
    }
    let sidecars = list(pod(object), "/initContainers").iter().filter(|one| text(one, "restartPolicy") == "Always");
    ports.extend(sidecars.flat_map(declared));
    ports
}

fn declared(container: &Value) -> Vec<Listening<'_>> {
    let one = |port| Some((text(port, "name"), port.get("containerPort")?.as_i64()?, protocol(port)));
    list(container, "/ports").iter().filter_map(one).collect()
}

/// Protocol of a port, with its default.
fn protocol(port: &Value) -> &str {
    Some(text(port, "protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or(TCP)
}

fn unmatched(object: &Value, port: &Value, at: &str, findings: &mut Findings) {
    let known = pod_ports(object);
    let target = port.get("targetPort").filter(|target| !target.is_null()).or_else(|| port.get("port"));
    let Some(target) = target else { return };
    let wanted = protocol(port);
    let answers = known.iter().filter(|(_, _, protocol)| *protocol == wanted).any(|(name, number, _)| match target {
        Value::String(target) => target == name,
        other => other.as_i64() == Some(*number),
    });
    if !answers {
        let there: Vec<_> =
            known.iter().map(|(name, number, protocol)| format!("{name} {number}/{protocol}")).collect();
        let there = there.iter().map(|port| port.trim()).collect::<Vec<_>>().join(", ");
        let text = format!("leads to {target} ({wanted}), and the Pod's containers have {there}; nothing will answer");
        findings.note(Note::new(Reason::PortUnmatched, format!("{at}.targetPort"), text));
    }
}
