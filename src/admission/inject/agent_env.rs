//! Variables for the user's own containers: the proxy's address (5.9) and tracing.
//!
//! A variable that a container sets itself is never touched, whatever it sets beside it. Of the proxy's, a container that sets one
//! spelling gets the same in the other, so that it has one proxy whatever library asks; a warning says where its calls go.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::edit::{Edit, by_container, env_entry};
use super::plan::InjectionPlan;
use super::pod::{PodView, items, text};
use super::requested::Requested;
use crate::admission::verdict::Warning;
use crate::config::otlp;
use crate::config::resolved::{Trace, TraceProtocol};
use crate::domain::keys;
use crate::domain::reason::Reason;

/// How much of a value is shown.
const SHOWN: usize = 120;

fn add(container: &Value, name: &str, value: &str) -> Edit {
    given(container, name, Given::Text(value))
}

/// What a variable is to have.
#[derive(Clone, Copy)]
enum Given<'v> {
    Text(&'v str),
    /// A reference that the kubelet resolves.
    Reference(&'v Value),
}

fn given(container: &Value, name: &str, what: Given<'_>) -> Edit {
    debug_assert!(keys::AGENT_VARIABLES.contains(&name), "{name}: of others the review does not see what a Pod sets");
    let (value, from) = match what {
        Given::Text(text) => (text.to_owned(), None),
        Given::Reference(reference) => (String::new(), Some(reference.clone())),
    };
    Edit::Env { container: text(container, "name").to_owned(), name: name.to_owned(), value, from, was: None }
}

/// Hosts that are never called through the proxy. No cluster suffixes: they would send agent-to-tool calls around
/// token exchange.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

/// One setting: its two spellings, and which calls it is about.
struct Setting {
    spellings: [&'static str; 2],
    calls: &'static str,
}

const SETTINGS: [Setting; 3] = [
    Setting { spellings: ["HTTP_PROXY", "http_proxy"], calls: "http:// addresses" },
    Setting { spellings: ["HTTPS_PROXY", "https_proxy"], calls: "https:// addresses" },
    Setting { spellings: ["NO_PROXY", "no_proxy"], calls: "the hosts it lists" },
];

/// Sends the calls of every user container through the forward proxy; those of the user's own native sidecars where it `comes_first`: where it does
/// not, nobody would answer them at their start, and they might keep the proxy from ever starting.
pub(super) fn proxy(pod: PodView<'_>, forward: u16, comes_first: bool, plan: &mut InjectionPlan<'_>) {
    let address = format!("http://127.0.0.1:{forward}");
    let ours = [address.as_str(), &address, NO_PROXY];
    let sidecars = if comes_first { own_sidecars(pod) } else { Vec::new() };
    for container in pod.list("containers").iter().chain(sidecars) {
        for place in [0, 1] {
            for (setting, ours) in SETTINGS.iter().zip(ours) {
                let (name, other) = (setting.spellings[place], setting.spellings[1 - place]);
                if env_entry(container, name).is_none() {
                    let what = env_entry(container, other).map_or(Given::Text(ours), |(_, entry)| says(entry));
                    plan.edits.push(given(container, name, what));
                }
            }
        }
        let kept: Vec<String> =
            SETTINGS.iter().zip(ours).filter_map(|(setting, ours)| kept(container, setting, ours)).collect();
        if !kept.is_empty() {
            plan.warnings.push(Warning::new(
                Reason::ProxyEnvironmentKept,
                format!(
                    "container {}: {}. Nothing exchanges or checks tokens there; take the variable out to send these calls through \
                     the sidecar",
                    text(container, "name"),
                    kept.join("; ")
                ),
            ));
        }
    }
}

/// Init containers that stay and that the requester asked for. What another injector put in, such as the proxy of a mesh, finds its own way.
fn own_sidecars(pod: PodView<'_>) -> Vec<&Value> {
    let mut sidecars: Vec<_> =
        pod.lasting().filter(|(list, ..)| *list == "initContainers").map(|(_, _, container)| container).collect();
    if !sidecars.is_empty() {
        let requested = Requested::of(pod);
        sidecars.retain(|container| requested.asks_for(container));
    }
    sidecars
}

/// What an entry gives.
fn says(entry: &Value) -> Given<'_> {
    match entry.get("valueFrom").filter(|from| !from.is_null()) {
        Some(from) => Given::Reference(from),
        None => Given::Text(text(entry, "value")),
    }
}

/// What a container's own setting means for its calls; `None` where it has none, or the one that we would give it.
fn kept(container: &Value, setting: &Setting, ours: &str) -> Option<String> {
    let set: Vec<(&str, &Value)> =
        setting.spellings.iter().filter_map(|name| Some((*name, env_entry(container, name)?.1))).collect();
    if set.iter().all(|(_, entry)| matches!(says(entry), Given::Text(value) if value == ours)) {
        return None;
    }
    let names: Vec<&str> = set.iter().map(|(name, _)| *name).collect();
    let mut places: Vec<String> = set.iter().map(|(_, entry)| leads(entry, setting)).collect();
    places.dedup();
    let which = if set.len() == 1 { "which was kept and counts in upper and lower case" } else { "which were kept" };
    Some(format!("it sets {}, {which}, so its calls of {} {}", names.join(" and "), setting.calls, places.join(" or ")))
}

/// Where a setting leads.
fn leads(entry: &Value, setting: &Setting) -> String {
    let is_list = setting.spellings[0] == "NO_PROXY";
    match says(entry) {
        Given::Text("") if is_list => "are none: all calls go through a proxy".to_owned(),
        Given::Text(hosts) if is_list => format!("({}) go there without a proxy", cut(hosts)),
        Given::Text("") => "go there without a proxy".to_owned(),
        Given::Text(url) => format!("go to {}", cut(&without_credentials(url))),
        Given::Reference(from) if is_list => format!("({}) go there without a proxy", referred(from)),
        Given::Reference(from) => format!("go where {} says", referred(from)),
    }
}

/// A reference in words.
fn referred(from: &Value) -> String {
    let kinds = [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")];
    let named = kinds.iter().find_map(|(member, kind)| {
        let key = from.get(member)?;
        Some(format!("{kind} {}, key {}", text(key, "name"), text(key, "key")))
    });
    named.unwrap_or_else(|| "a field of the Pod".to_owned())
}

/// A URL less what stands before the host.
pub(super) fn without_credentials(url: &str) -> Cow<'_, str> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    match url[start..end].rfind('@') {
        Some(at) => Cow::Owned(format!("{}…{}", &url[..start], &url[start + at..])),
        None => Cow::Borrowed(url),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// Where traces go.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The variables of tracing with the values they get; `None` where nobody says. A rate of 0 is a value.
fn variables(trace: &Trace) -> [(&'static str, Option<Cow<'_, str>>); 4] {
    let protocol = trace.protocol.value.map(|protocol| match protocol {
        TraceProtocol::Grpc => "grpc",
        TraceProtocol::Http => "http/protobuf",
    });
    let ratio = trace.sampling_ratio.value;
    [
        (ENDPOINT, trace.endpoint.value.as_deref().and_then(otlp::url_of_settings)),
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
    plan.warnings.extend(lasting(pod).filter_map(unheard));
}

/// A container that gives itself an address at which no exporter finds anybody.
fn unheard(container: &Value) -> Option<Warning> {
    let (_, entry) = env_entry(container, ENDPOINT)?;
    let seen = text(entry, "value");
    let instead = match otlp::url(seen) {
        _ if seen.is_empty() => return None,
        Some(Cow::Borrowed(_)) => return None,
        Some(Cow::Owned(url)) => url,
        None => otlp::EXPECTED.to_owned(),
    };
    Some(Warning::new(
        Reason::TraceEndpointInvalid,
        format!(
            "container {} sets {ENDPOINT} to {}, which exporters do not take for a URL, so its spans are lost; write {instead}",
            text(container, "name"),
            cut(&without_credentials(seen))
        ),
    ))
}

/// What containers may give themselves by whole ConfigMaps and Secrets under the names of variables that are added, which count more. What stands in
/// those is not read here.
pub(super) fn hidden(pod: PodView<'_>, edits: &[Edit]) -> Vec<String> {
    let added = by_container(edits);
    let hidden = |container: &Value| {
        let container_name = text(container, "name");
        let sources = items(container, "envFrom");
        let names: Vec<&str> = added.get(container_name)?.iter().filter_map(|edit| edit.added()).collect();
        let gives = |source: &Value| names.iter().any(|name| name.starts_with(text(source, "prefix")));
        let sources: Vec<String> = sources.iter().filter(|source| gives(source)).map(whole).collect();
        let all = sources.join(", ");
        (!sources.is_empty()).then(|| {
            format!(
                "{container_name}: what envFrom ({}) may give under these names counts less than what is added; a variable that is to be kept belongs \
                 under env",
                cut(&all)
            )
        })
    };
    pod.lasting().filter_map(|(_, _, container)| hidden(container)).collect()
}

/// A source of `envFrom` in words.
fn whole(source: &Value) -> String {
    let kinds = [("secretRef", "Secret"), ("configMapRef", "ConfigMap")];
    let named = kinds.iter().find_map(|(member, kind)| Some(format!("{kind} {}", text(source.get(*member)?, "name"))));
    named.unwrap_or_else(|| "a source of another kind".to_owned())
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
