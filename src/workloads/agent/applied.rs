//! What no Deployment can be made of, however well its types fit: said at once, because the API server says it only when the
//! controller applies the Deployment.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{list, pod, text};
use crate::api::findings::{Fault, Findings};
use crate::api::syntax;
use crate::domain::reason::Reason;

const POD: &str = "spec.podTemplateSpec.spec";
/// What no init container has that ends.
const OF_RUNNING: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

pub(super) fn check(object: &Value, findings: &mut Findings) {
    let pod = pod(object);
    let restart = text(pod, "restartPolicy");
    if !["", "Always"].contains(&restart) {
        let sentence = "is not Always, and a Deployment's Pods run until they are taken away";
        let fault = Fault::invalid(format!("{POD}.restartPolicy"), sentence, "remove it, or use a Job");
        findings.fault(fault.seeing(restart));
    }
    if pod.get("activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null()) {
        let sentence = "limits how long a Pod may run, which a Deployment cannot";
        findings.fault(Fault::invalid(format!("{POD}.activeDeadlineSeconds"), sentence, "remove it, or use a Job"));
    }
    if !list(pod, "/ephemeralContainers").is_empty() {
        let sentence = "holds containers that are added to a Pod while it runs, and no template has any";
        let remedy = "remove it; kubectl debug adds one to a Pod";
        findings.fault(Fault::invalid(format!("{POD}.ephemeralContainers"), sentence, remedy));
    }
    once(pod, "volumes", (POD, "name"), findings);
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(pod, &format!("/{kind}")).iter().enumerate() {
            let at = format!("{POD}.{kind}[{index}]");
            once(container, "env", (&at, "name"), findings);
            once(container, "volumeMounts", (&at, "mountPath"), findings);
            ports(container, &at, findings);
            if kind == "initContainers" {
                initial(container, &at, findings);
            }
        }
    }
}

/// An init container ends before the others begin, unless it is a sidecar.
fn initial(container: &Value, at: &str, findings: &mut Findings) {
    if text(container, "restartPolicy") == "Always" {
        return;
    }
    let says = |member: &&str| container.get(*member).is_some_and(|value| !value.is_null());
    for member in OF_RUNNING.into_iter().filter(says) {
        let sentence = "is for containers that keep running, and an init container ends before the others begin";
        let remedy = "remove it, or write restartPolicy: Always if it is a sidecar";
        findings.fault(Fault::invalid(format!("{at}.{member}"), sentence, remedy));
    }
}

/// Server-side apply finds the items of a list by a key, which therefore stands once.
fn once(of: &Value, key: &str, (at, member): (&str, &str), findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, item) in list(of, &format!("/{key}")).iter().enumerate() {
        let value = text(item, member);
        if !value.is_empty() && !seen.insert(value) {
            twice(format!("{at}.{key}[{index}].{member}"), value, findings);
        }
    }
}

fn ports(container: &Value, at: &str, findings: &mut Findings) {
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let at = format!("{at}.ports[{index}]");
        let protocol = Some(text(port, "protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        if let Some(number) = port.get("containerPort").and_then(Value::as_i64)
            && !seen.insert((number, protocol))
        {
            twice(format!("{at}.containerPort"), &format!("{number}/{protocol}"), findings);
        }
        let name = text(port, "name");
        if !name.is_empty() && !syntax::is_port_name(name) {
            let fault =
                Fault::invalid(format!("{at}.name"), format!("is not {}", syntax::PORT_NAME), "rename the port");
            findings.fault(fault.seeing(name));
        } else if !name.is_empty() && !names.insert(name) {
            twice(format!("{at}.name"), name, findings);
        }
    }
}

fn twice(at: String, seen: &str, findings: &mut Findings) {
    let fault = Fault::new(Reason::DuplicateName, at, "occurs twice", "keep one of the entries");
    findings.fault(fault.seeing(seen));
}
