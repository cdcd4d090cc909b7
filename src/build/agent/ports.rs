//! Ports of the Service, and whether anything answers behind them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{agent_container, list, text};
use crate::build::fault::{Fault, Findings, Note};
use crate::build::syntax;
use crate::domain::reason::Reason;

/// Port of the agent's container when neither it nor the Service names one.
pub(super) const DEFAULT_CONTAINER_PORT: i64 = 8000;

pub(super) fn check(object: &Value, findings: &mut Findings) {
    let ports = list(object, "/spec/servicePorts");
    let mut names = BTreeSet::new();
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
                Fault::new(Reason::DuplicateName, format!("{at}.name"), "is there twice", "rename one of the ports");
            findings.fault(fault.seeing(name));
        }
        number(port.get("port"), true, &format!("{at}.port"), findings);
        if let Some(target) = port.get("targetPort").filter(|target| target.is_number()) {
            number(Some(target), false, &format!("{at}.targetPort"), findings);
        }
        unmatched(object, port, &at, findings);
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

/// The ports of the agent's container: as declared, or the one that it is given.
fn container_ports(object: &Value) -> Vec<(String, i64)> {
    let declared = agent_container(object).map_or(&[][..], |(_, container)| list(container, "/ports"));
    if !declared.is_empty() {
        let one = |port: &Value| Some((text(port, "name").to_owned(), port.get("containerPort")?.as_i64()?));
        return declared.iter().filter_map(one).collect();
    }
    let ports = list(object, "/spec/servicePorts");
    let target = ports.iter().find_map(|port| port.get("targetPort")?.as_i64());
    vec![("http".to_owned(), target.unwrap_or(DEFAULT_CONTAINER_PORT))]
}

fn unmatched(object: &Value, port: &Value, at: &str, findings: &mut Findings) {
    let known = container_ports(object);
    let target = port.get("targetPort").filter(|target| !target.is_null()).or_else(|| port.get("port"));
    let Some(target) = target else { return };
    let answers = match target {
        Value::String(name) => known.iter().any(|(known, _)| known == name),
        other => known.iter().any(|(_, number)| Some(*number) == other.as_i64()),
    };
    if !answers {
        let there: Vec<_> = known.iter().map(|(name, number)| format!("{name} {number}").trim().to_owned()).collect();
        let text =
            format!("leads to {target}, and the agent's container has {}; nothing will answer", there.join(", "));
        findings.note(Note::new(Reason::PortUnmatched, format!("{at}.targetPort"), text));
    }
}
