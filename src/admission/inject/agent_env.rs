//! Variables for the user's own containers: the proxy's address (5.9) and tracing (design, precedence).
//!
//! A variable that a container sets itself is never touched; for the proxy a warning says so.

use serde_json::Value;

use super::edit::{Edit, env_entry};
use super::plan::InjectionPlan;
use super::pod::{PodView, text};
use crate::admission::verdict::Warning;
use crate::config::resolved::{Trace, TraceProtocol};
use crate::domain::reason::Reason;

/// Hosts that are never called through the proxy. No cluster suffixes: they would send agent-to-tool calls around
/// token exchange.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

fn add(container: &Value, name: &str, value: &str) -> Edit {
    Edit::Env {
        container: text(container, "name").to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        was: None,
    }
}

/// Sends the calls of every user container through the forward proxy.
pub(super) fn proxy(pod: PodView<'_>, forward: u16, plan: &mut InjectionPlan<'_>) {
    let address = format!("http://127.0.0.1:{forward}");
    let variables = [
        ("HTTP_PROXY", address.as_str()),
        ("HTTPS_PROXY", &address),
        ("NO_PROXY", NO_PROXY),
        ("http_proxy", &address),
        ("https_proxy", &address),
        ("no_proxy", NO_PROXY),
    ];
    for container in pod.list("containers") {
        let (kept, missing): (Vec<_>, Vec<_>) =
            variables.iter().partition(|(name, _)| env_entry(container, name).is_some());
        plan.edits.extend(missing.into_iter().map(|(name, value)| add(container, name, value)));
        if !kept.is_empty() {
            let names: Vec<_> = kept.into_iter().map(|(name, _)| name).collect();
            plan.warnings.push(Warning::new(
                Reason::ProxyEnvironmentKept,
                format!(
                    "container {} sets {}, which was kept; its calls may go around the proxy",
                    text(container, "name"),
                    names.join(", ")
                ),
            ));
        }
    }
}

/// Tells every user container where its traces go, as far as it does not say so itself.
pub(super) fn trace(pod: PodView<'_>, trace: &Trace, plan: &mut InjectionPlan<'_>) {
    let ratio = trace.sampling_ratio.value.map(|ratio| ratio.to_string());
    let groups: [&[(&str, Option<&str>)]; 3] = [
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", trace.endpoint.value.as_deref())],
        &[(
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            trace.protocol.value.map(|protocol| match protocol {
                TraceProtocol::Grpc => "grpc",
                TraceProtocol::Http => "http/protobuf",
            }),
        )],
        // A sampler and its argument belong together: who sets one of them means both.
        &[
            ("OTEL_TRACES_SAMPLER", ratio.as_ref().map(|_| "parentbased_traceidratio")),
            ("OTEL_TRACES_SAMPLER_ARG", ratio.as_deref()),
        ],
    ];
    for container in pod.list("containers") {
        for group in groups.iter().filter(|group| group.iter().all(|(name, _)| env_entry(container, name).is_none())) {
            plan.edits.extend(group.iter().filter_map(|(name, value)| Some(add(container, name, (*value)?))));
        }
    }
}
