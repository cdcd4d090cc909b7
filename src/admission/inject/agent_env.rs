//! Variables for the user's own containers: the proxy's address (5.9) and tracing (design, precedence).
//!
//! A variable that a container sets itself is never touched, whatever it sets beside it; for the proxy a warning says so.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::edit::{Edit, env_entry};
use super::plan::InjectionPlan;
use super::pod::{PodView, text};
use super::requested::Requested;
use crate::admission::verdict::Warning;
use crate::config::resolved::{Trace, TraceProtocol};
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Hosts that are never called through the proxy. No cluster suffixes: they would send agent-to-tool calls around
/// token exchange.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

fn add(container: &Value, name: &str, value: &str) -> Edit {
    debug_assert!(keys::AGENT_VARIABLES.contains(&name), "{name}: of others the review does not see what a Pod sets");
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

/// The variables of tracing with the values they get; `None` where nobody says. A rate of 0 is a value.
fn variables(trace: &Trace) -> [(&'static str, Option<Cow<'_, str>>); 4] {
    let protocol = trace.protocol.value.map(|protocol| match protocol {
        TraceProtocol::Grpc => "grpc",
        TraceProtocol::Http => "http/protobuf",
    });
    let ratio = trace.sampling_ratio.value;
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", trace.endpoint.value.as_deref().map(Cow::Borrowed)),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.map(Cow::Borrowed)),
        ("OTEL_TRACES_SAMPLER", ratio.map(|_| Cow::Borrowed("parentbased_traceidratio"))),
        ("OTEL_TRACES_SAMPLER_ARG", ratio.map(|ratio| Cow::Owned(ratio.to_string()))),
    ]
}

/// Those that run as long as the agent does; what runs once before it starts is left alone.
fn lasting(pod: PodView<'_>) -> impl Iterator<Item = &Value> {
    pod.lasting().map(|(_, _, container)| container)
}

/// Tells every user container where its traces go, each variable that it does not set itself.
pub(super) fn trace(pod: PodView<'_>, trace: &Trace, plan: &mut InjectionPlan<'_>) {
    for (name, value) in variables(trace) {
        let Some(value) = value else { continue };
        let missing = lasting(pod).filter(|container| env_entry(container, name).is_none());
        plan.edits.extend(missing.map(|container| add(container, name, &value)));
    }
}

/// The variables that reach a container as the requester asked for it, with their values.
pub(super) fn asked<'t>(pod: PodView<'_>, trace: &'t Trace) -> BTreeMap<&'static str, Cow<'t, str>> {
    let mut wanted: BTreeMap<_, _> =
        variables(trace).into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if !wanted.is_empty() {
        let requested = Requested::of(pod);
        wanted.retain(|name, _| lasting(pod).any(|container| requested.lacks(container, name)));
    }
    wanted
}
