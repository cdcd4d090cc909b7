//! What the ConfigMaps of an agent namespace hold when the operator's namespace has no template for them.
//!
//! In: the name of the ConfigMap and the platform file. Out: its data. Promise: only values that are known are
//! written; a key nobody can know (`ISSUER` without `keycloak.publicUrl`) is absent, so that a person sees it missing
//! instead of wrong.

use std::collections::BTreeMap;

use super::envoy;
use super::resolved::Resolved;
use super::schema::{Keycloak, Platform};
use crate::domain::keys::{
    CONFIG_MAP_AUTHBRIDGE, CONFIG_MAP_ENVOY, CONFIG_MAP_ROUTES, CONFIG_MAP_SPIFFE_HELPER, KEY_ENVOY, KEY_ROUTES,
    KEY_SPIFFE_HELPER,
};

/// Data of the ConfigMap `name` in a namespace that sets nothing itself; `None` for a name that is not ours to make.
#[must_use]
pub fn config_map_data(name: &str, platform: &Platform) -> Option<BTreeMap<String, String>> {
    config_map_data_in(name, platform, platform.resolved())
}

/// Data of the ConfigMap `name` in a namespace whose configuration is `resolved` (it may have its own ports).
#[must_use]
pub fn config_map_data_in(name: &str, platform: &Platform, resolved: &Resolved) -> Option<BTreeMap<String, String>> {
    let one = |key: &str, text: String| Some(BTreeMap::from([(key.to_owned(), text)]));
    match name {
        CONFIG_MAP_AUTHBRIDGE => Some(environment(platform.keycloak())),
        CONFIG_MAP_SPIFFE_HELPER => one(KEY_SPIFFE_HELPER, helper_conf(platform.keycloak().issuer().as_deref())),
        CONFIG_MAP_ENVOY => one(KEY_ENVOY, format!("{:#}\n", envoy::bootstrap(&resolved.proxy))),
        CONFIG_MAP_ROUTES => one(KEY_ROUTES, "[]\n".to_owned()),
        _ => None,
    }
}

/// Environment of the sidecars, as the platform's chart fills it.
fn environment(keycloak: &Keycloak) -> BTreeMap<String, String> {
    let mut data = BTreeMap::from([
        ("KEYCLOAK_URL".to_owned(), keycloak.url.clone()),
        ("KEYCLOAK_REALM".to_owned(), keycloak.realm.clone()),
        ("CLIENT_AUTH_TYPE".to_owned(), "client-secret".to_owned()),
        ("SPIFFE_IDP_ALIAS".to_owned(), "spire-spiffe".to_owned()),
    ]);
    if let Some(issuer) = keycloak.issuer() {
        for key in ["ISSUER", "EXPECTED_AUDIENCE", "JWT_AUDIENCE"] {
            data.insert(key.to_owned(), issuer.clone());
        }
    }
    data
}

/// Configuration of spiffe-helper. A JWT-SVID is only asked for when its audience is known; the key's mode is why the
/// sidecars share a group.
fn helper_conf(audience: Option<&str>) -> String {
    let mut lines = vec![
        r#"agent_address = "/spiffe-workload-api/spire-agent.sock""#.to_owned(),
        r#"cmd = """#.to_owned(),
        r#"cmd_args = """#.to_owned(),
        r#"svid_file_name = "/opt/svid.pem""#.to_owned(),
        r#"svid_key_file_name = "/opt/svid_key.pem""#.to_owned(),
        r#"svid_bundle_file_name = "/opt/svid_bundle.pem""#.to_owned(),
        "cert_file_mode = 0644".to_owned(),
        "key_file_mode = 0640".to_owned(),
    ];
    if let Some(audience) = audience {
        let audience = quoted(audience);
        lines.push(format!(r#"jwt_svids = [{{jwt_audience={audience}, jwt_svid_file_name="/opt/jwt_svid.token"}}]"#));
        lines.push("jwt_svid_file_mode = 0644".to_owned());
    }
    lines.push("include_federated_domains = true".to_owned());
    lines.push(String::new());
    lines.join("\n")
}

/// An HCL string: quotes, backslashes and interpolation are taken literally.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "$${");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
