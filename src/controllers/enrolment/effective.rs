//! `status.effective`: what is in force for one workload, and who set it; pure.
//!
//! In: the namespace's resolved configuration, the annotations of the template, the AgentRuntime. Out: mode, SPIFFE id,
//! the values that are set anywhere above the platform, and what could not be read. Promise: the same layers, laid by
//! the same table of keys, as the resolver's (design, Precedence).

use serde_json::{Map, Value, json};

use super::judge::Subject;
use crate::config::agent_runtime::{AgentRuntimeInput, ModeInput};
use crate::config::layers::Layer;
use crate::config::resolved::{Resolved, SpireSwitch};
use crate::config::schema::keys::{Shown, key};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// `status.effective` and notices about layers that could not be read; empty while the namespace is not known.
pub(super) fn of(subject: &Subject<'_>, account: Option<&str>) -> (Value, Vec<String>) {
    let snapshot = &subject.cx.facts.snapshot;
    let Some(view) = snapshot.namespace(subject.namespace()) else { return (json!({}), Vec::new()) };
    let mut resolved = (*view.resolved).clone();
    let mut notices: Vec<String> = view.resolved.notices.iter().map(|notice| notice.text.clone()).collect();
    annotations(subject, &mut resolved);
    if let Some(winner) = &subject.workload.winner {
        let says = AgentRuntimeInput::of_spec(&winner.seen.spec);
        let tolerated = says.faults.iter().filter(|fault| fault.reason == Reason::InvalidSpec);
        notices.extend(tolerated.map(|fault| format!("{}: {:?}: {}", fault.field, fault.seen, fault.message)));
        agent_runtime(winner.name, &says, &mut resolved);
    }
    let mut effective = Map::new();
    effective.insert("mode".to_owned(), resolved.mode.value.as_str().into());
    let spire = match resolved.spire.value {
        SpireSwitch::Disabled => false,
        SpireSwitch::Auto => snapshot.view.spiffe_driver,
        SpireSwitch::Required => true,
    };
    if spire && resolved.mode.value != Mode::Waypoint {
        let account =
            named_account(subject).or_else(|| account.map(str::to_owned)).unwrap_or_else(|| "default".to_owned());
        let id = format!("spiffe://{}/ns/{}/sa/{account}", resolved.trust_domain.value, subject.namespace());
        effective.insert("spiffeID".to_owned(), id.into());
    }
    let values: Vec<Value> =
        resolved.fields().filter(|shown| is_overriding(shown.layer)).map(|shown| value(&shown)).collect();
    if !values.is_empty() {
        effective.insert("values".to_owned(), Value::Array(values));
    }
    (Value::Object(effective), notices)
}

/// The ServiceAccount that the template names.
fn named_account(subject: &Subject<'_>) -> Option<String> {
    let template = subject.workload.governed_template()?;
    let name = |key: &str| template.get("spec")?.get(key)?.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    name("serviceAccountName").or_else(|| name("serviceAccount"))
}

fn is_overriding(layer: &Layer) -> bool {
    !matches!(layer, Layer::BuiltIn | Layer::PlatformFile | Layer::RuntimeTemplate)
}

fn value(shown: &Shown<'_>) -> Value {
    let mut value = json!({"field": shown.path, "value": shown.value, "from": shown.layer.to_string()});
    if !shown.shadowed.is_empty() {
        let entry = |one: &crate::config::layers::Shadowed| json!({"from": one.layer.to_string(), "value": one.value});
        value["shadowed"] = shown.shadowed.iter().map(entry).collect();
    }
    value
}

fn lay(resolved: &mut Resolved, layer: &Layer, path: &str, value: &Value) {
    if let Some(key) = key(path) {
        key.lay(resolved, layer, value);
    }
}

fn annotations(subject: &Subject<'_>, resolved: &mut Resolved) {
    let Some(template) = &subject.workload.seen.template else { return };
    for (annotation, path) in [(keys::ANNOTATION_MODE, "mode"), (keys::ANNOTATION_NATIVE_SIDECARS, "nativeSidecars")] {
        if let Some(text) = template.annotations.get(annotation) {
            lay(resolved, &Layer::PodAnnotation, path, &text.into());
        }
    }
}

fn agent_runtime(name: &std::sync::Arc<str>, says: &AgentRuntimeInput, resolved: &mut Resolved) {
    let layer = Layer::AgentRuntime(name.clone());
    let mode = match &says.mode {
        Some(ModeInput::Available(mode)) => Some(Value::from(mode.as_str())),
        Some(ModeInput::NotAvailable(_)) | None => None,
    };
    let trace = &says.trace;
    let values = [
        ("mode", mode),
        ("spiffe.trustDomain", says.trust_domain.as_deref().map(Value::from)),
        ("trace.endpoint", trace.endpoint.as_deref().map(Value::from)),
        ("trace.protocol", trace.protocol.map(|protocol| protocol.as_str().into())),
        ("trace.samplingRatio", trace.rate.map(Value::from)),
    ];
    for (path, value) in values {
        if let Some(value) = value {
            lay(resolved, &layer, path, &value);
        }
    }
}
