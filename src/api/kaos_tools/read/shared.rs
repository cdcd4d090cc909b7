//! What the three kinds share: name, container, telemetry, route and `podSpec`.

use serde_json::Value;

use super::env::Placed;
use super::place::{Found, Place};
use super::pod;
use super::spelling::Alias;
use crate::api::findings::shown;
use crate::api::kaos_tools::MOST_ITEMS;
use crate::api::kaos_tools::shape::{Container, KeyRef, Raw, Telemetry};
use crate::domain::reason::Reason;

/// Numbers without an upper bound of their own.
pub(super) const FROM_ZERO: (i64, i64) = (0, i32::MAX as i64);

/// The spec of an object, and a fault for a name that its Service cannot have.
pub(super) fn spec<'v>(object: &'v Value, (prefix, most): (&str, usize), found: &mut Found) -> Place<'v> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
    if !is_name(name, most) {
        let sentence = format!(
            "is not a name from which Service {prefix}<name> can be called: at most {most} of a-z, 0-9 and -, beginning and ending \
             with a letter or digit"
        );
        found.fault(crate::api::findings::Fault::invalid("metadata.name", sentence, "rename it").seeing(name));
    }
    let spec = Place::new(object.get("spec"), "spec");
    if !spec.is_there() {
        found.required("spec", "write what is wanted");
    }
    spec.is_mapping(found);
    spec
}

fn is_name(name: &str, most: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= most && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Warns of names that no object of that kind can have, such as one with a namespace: what they name is never there. Nothing is wrong with the object
/// for that, since peers that are not there are left out.
pub(super) fn refers(place: &Place<'_>, (kind, most): (&str, usize), found: &mut Found) {
    let one = |place: &Place<'_>, found: &mut Found| {
        let named = place.value.and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = named.filter(|name| !is_name(name, most)) else { return };
        let text = format!(
            "names {}, which is the name of no {kind}: it is one of this namespace, by its metadata.name alone, of at most {most} of a-z, 0-9 and -",
            shown(name)
        );
        found.note(Reason::FieldInvalid, &place.path, text);
    };
    match place.value {
        Some(Value::Array(items)) => items.iter().take(MOST_ITEMS).enumerate().for_each(|(index, item)| {
            one(&Place::new(Some(item), format!("{}[{index}]", place.path)), found);
        }),
        _ => one(place, found),
    }
}

/// The container, with resources of an old spelling.
pub(super) fn container(
    spec: &Place<'_>,
    old_resources: (&Place<'_>, Alias),
    env: Vec<Placed>,
    found: &mut Found,
) -> Container {
    let place = spec.mapping("container", found);
    let (new, (old, alias)) = (place.mapping("resources", found), old_resources);
    old.is_mapping(found);
    let resources = |place: &Place<'_>| place.value.filter(|value| value.is_object()).cloned();
    let resources = found.either((resources(&new), &new.path), (resources(old), &old.path), alias);
    Container {
        image: place.at("image").text(found),
        command: place.at("command").texts(found),
        args: place.at("args").texts(found),
        resources,
        env: env.into_iter().map(|placed| placed.variable).collect(),
    }
}

/// What an object says of its own telemetry.
pub(super) fn telemetry(place: &Place<'_>, found: &mut Found) -> Option<Telemetry> {
    if !place.is_mapping(found) {
        return None;
    }
    let (switch, address) = (place.at("enabled"), place.at("endpoint"));
    let (enabled, endpoint) = (switch.boolean(found).unwrap_or(false), address.text(found));
    if !enabled && endpoint.is_some() {
        let text = format!("has no effect while {} is not true", switch.path);
        found.note(Reason::FieldUnused, &address.path, text);
    }
    Some(Telemetry { enabled, endpoint })
}

/// The timeout of the route.
pub(super) fn timeout(spec: &Place<'_>, found: &mut Found) -> Option<String> {
    let place = spec.mapping("gatewayRoute", found).at("timeout");
    let text = place.any_text(found)?;
    if !is_duration(text) {
        let sentence =
            "is not a duration of Gateway API: one to four numbers of at most five digits, each with h, m, s or ms";
        found.fault(
            crate::api::findings::Fault::invalid(
                &place.path,
                sentence,
                "write for example 90s or 1m30s, and 0s for none",
            )
            .seeing(text),
        );
    }
    Some(text.to_owned())
}

/// `^([0-9]{1,5}(h|m|s|ms)){1,4}$`
pub(super) fn is_duration(text: &str) -> bool {
    let (mut rest, mut parts) = (text, 0);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest.get(digits..).unwrap_or("");
        let length = match unit.as_bytes() {
            [b'm', b's', ..] => 2,
            [b'h' | b'm' | b's', ..] => 1,
            _ => return false,
        };
        if !(1..=5).contains(&digits) {
            return false;
        }
        parts += 1;
        rest = &unit[length..];
    }
    (1..=4).contains(&parts)
}

/// `podSpec`, looked through.
pub(super) fn pod_spec(spec: &Place<'_>, found: &mut Found) -> Option<Raw> {
    let place = spec.at("podSpec");
    if !place.is_mapping(found) {
        return None;
    }
    pod::check(&place, found);
    place.value.cloned().map(Raw)
}

/// A reference to a key of a Secret or ConfigMap.
pub(super) fn key_ref(place: &Place<'_>, found: &mut Found) -> Option<KeyRef> {
    if !place.is_mapping(found) {
        return None;
    }
    let (name, key) = (place.at("name"), place.at("key"));
    let mut needed = |place: &Place<'_>, remedy: &str| {
        let text = place.text(found);
        if text.is_none() {
            found.required(&place.path, remedy);
        }
        text.unwrap_or_default()
    };
    let (name, key) = (needed(&name, "name it"), needed(&key, "name the key"));
    Some(KeyRef { name, key, optional: place.at("optional").boolean(found) })
}
