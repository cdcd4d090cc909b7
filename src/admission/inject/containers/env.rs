//! Environment values from ConfigMap `authbridge-config`.
//!
//! References that the kubelet resolves, or literals read at admission (gate `perWorkloadConfigResolution`).

use std::borrow::Cow;

use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{EnvVar, KeyRef, ValueFrom};
use crate::config::resolved::TokenExchange;
use crate::domain::keys;

/// What a missing key means to the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The variable is unset.
    Fine,
    /// The container waits.
    Waits,
    /// The container waits when the key is known to exist, and starts without it otherwise.
    WaitsWhenKnown,
}

/// The value the platform file has for a key that ConfigMap `authbridge-config` lacks.
fn stand_in<'a>(tokens: &'a TokenExchange, key: &str) -> Option<Cow<'a, str>> {
    let text = |value: &'a String| (!value.is_empty()).then_some(Cow::Borrowed(value.as_str()));
    match key {
        "TOKEN_URL" => text(&tokens.token_url.value),
        "TARGET_AUDIENCE" => text(&tokens.default_audience.value),
        "TARGET_SCOPES" => tokens
            .default_scopes
            .value
            .as_ref()
            .filter(|scopes| !scopes.is_empty())
            .map(|scopes| scopes.join(" ").into()),
        _ => None,
    }
}

/// Every variable whose value comes from `authbridge-config`.
pub(in crate::admission::inject) const FROM_CONFIG: [&str; 12] = [
    "KEYCLOAK_URL",
    "KEYCLOAK_REALM",
    "TOKEN_URL",
    "ISSUER",
    "EXPECTED_AUDIENCE",
    "TARGET_AUDIENCE",
    "TARGET_SCOPES",
    "DEFAULT_OUTBOUND_POLICY",
    "PLATFORM_CLIENT_IDS",
    "CLIENT_AUTH_TYPE",
    "SPIFFE_IDP_ALIAS",
    "JWT_AUDIENCE",
];

/// Every other variable of ours, in any container.
pub(in crate::admission::inject) const FIXED: [&str; 15] = [
    "CLIENT_ID_FILE",
    "CLIENT_SECRET_FILE",
    "ROUTES_CONFIG_PATH",
    "SPIRE_ENABLED",
    "CLIENT_REGISTRATION_ENABLED",
    "KEYCLOAK_ADMIN_USERNAME",
    "KEYCLOAK_ADMIN_PASSWORD",
    "CLIENT_NAME",
    "SECRET_FILE_PATH",
    "PROXY_PORT",
    "INBOUND_PROXY_PORT",
    "PROXY_UID",
    "OUTBOUND_PORTS_EXCLUDE",
    "INBOUND_PORTS_EXCLUDE",
    "POD_IP",
];

/// The value a key comes to: the namespace's, or the platform file's where the namespace has none.
pub(in crate::admission::inject) fn value<'c>(cx: &'c Context<'_>, key: &str) -> Option<Cow<'c, str>> {
    let known = cx.config(key).map(Cow::Borrowed);
    match known {
        Some(value) if !value.is_empty() => Some(value),
        known => stand_in(&cx.effective.resolved.token_exchange, key).or(known),
    }
}

/// The literal that the kubelet makes this text of: it expands `$(NAME)` in literals, and not in what it reads from a ConfigMap. Expanded, one
/// variable could be made to show another one that comes from a Secret.
fn verbatim<'v>(text: impl Into<Cow<'v, str>>) -> Cow<'v, str> {
    let text = text.into();
    if text.contains('$') { text.replace('$', "$$").into() } else { text }
}

/// The variable of the same name as the key.
pub(super) fn key<'a>(cx: &Context<'a>, key: &'static str, missing: Missing) -> EnvVar<'a> {
    let known = cx.config(key);
    if known.is_none_or(str::is_empty)
        && let Some(value) = stand_in(&cx.effective.resolved.token_exchange, key)
    {
        return EnvVar::literal(key, verbatim(value));
    }
    if cx.subject.snapshot.gates.per_workload_config_resolution {
        return EnvVar::literal(key, verbatim(known.unwrap_or("").to_owned()));
    }
    let optional = match missing {
        Missing::Fine => Some(true),
        Missing::Waits => None,
        Missing::WaitsWhenKnown => Some(known.is_none()),
    };
    EnvVar::from(key, ValueFrom::ConfigMap(KeyRef { name: keys::CONFIG_MAP_AUTHBRIDGE, key, optional }))
}

/// The eleven variables of the proxy (5.2).
pub(super) fn proxy<'a>(cx: &Context<'a>) -> Vec<EnvVar<'a>> {
    let optional = |name| key(cx, name, Missing::Fine);
    vec![
        optional("KEYCLOAK_URL"),
        optional("KEYCLOAK_REALM"),
        optional("TOKEN_URL"),
        key(cx, "ISSUER", Missing::WaitsWhenKnown),
        optional("EXPECTED_AUDIENCE"),
        optional("TARGET_AUDIENCE"),
        optional("TARGET_SCOPES"),
        EnvVar::literal("CLIENT_ID_FILE", keys::PATH_CLIENT_ID),
        EnvVar::literal("CLIENT_SECRET_FILE", keys::PATH_CLIENT_SECRET),
        EnvVar::literal("ROUTES_CONFIG_PATH", "/etc/authproxy/routes.yaml"),
        optional("DEFAULT_OUTBOUND_POLICY"),
    ]
}

/// A key of the Keycloak administrator's Secret, in every style a reference.
fn admin<'a>(key: &'static str) -> EnvVar<'a> {
    EnvVar::from(key, ValueFrom::Secret(KeyRef { name: keys::SECRET_KEYCLOAK_ADMIN, key, optional: None }))
}

/// What registration needs besides Keycloak's address (5.4, rows 4–11).
pub(super) fn registration<'a>(cx: &Context<'a>) -> Vec<EnvVar<'a>> {
    let optional = |name| key(cx, name, Missing::Fine);
    vec![
        admin("KEYCLOAK_ADMIN_USERNAME"),
        admin("KEYCLOAK_ADMIN_PASSWORD"),
        EnvVar::literal("CLIENT_NAME", format!("{}/{}", cx.subject.namespace, cx.workload.name)),
        EnvVar::literal("SECRET_FILE_PATH", keys::PATH_CLIENT_SECRET),
        optional("PLATFORM_CLIENT_IDS"),
        optional("CLIENT_AUTH_TYPE"),
        optional("SPIFFE_IDP_ALIAS"),
        optional("JWT_AUDIENCE"),
    ]
}
