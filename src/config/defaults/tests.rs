//! What is written, and what is left absent because nobody knows it.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use super::config_map_data;
use crate::api::yaml;
use crate::config::schema::Platform;
use crate::domain::keys::{CONFIG_MAP_AUTHBRIDGE, CONFIG_MAP_RUNTIME, NAMESPACE_CONFIG_MAPS};

fn platform(text: &str) -> Platform {
    Platform::parse(text, "config.yaml").unwrap()
}

#[test]
fn every_config_map_has_content_and_no_other_has() {
    for name in NAMESPACE_CONFIG_MAPS {
        assert!(!config_map_data(name, &Platform::built_in()).unwrap().is_empty(), "{name}");
    }
    for name in [CONFIG_MAP_RUNTIME, "other", ""] {
        assert_eq!(config_map_data(name, &Platform::built_in()), None, "{name}");
    }
}

#[test]
fn the_issuer_is_absent_until_the_public_url_is_known() {
    let unknown = config_map_data(CONFIG_MAP_AUTHBRIDGE, &Platform::built_in()).unwrap();
    assert!(!unknown.contains_key("ISSUER") && !unknown.contains_key("JWT_AUDIENCE"));
    assert!(unknown.values().all(|value| !value.is_empty()));
    let known = platform("keycloak: {publicUrl: 'https://kc.example/', realm: agents, url: 'http://kc:8080'}");
    let known = config_map_data(CONFIG_MAP_AUTHBRIDGE, &known).unwrap();
    for key in ["ISSUER", "EXPECTED_AUDIENCE", "JWT_AUDIENCE"] {
        assert_eq!(known[key], "https://kc.example/realms/agents", "{key}");
    }
    assert_eq!((known["KEYCLOAK_URL"].as_str(), known["KEYCLOAK_REALM"].as_str()), ("http://kc:8080", "agents"));
}

#[test]
fn the_helper_asks_for_a_token_only_for_a_known_audience() {
    let text = |platform: &Platform| config_map_data("spiffe-helper-config", platform).unwrap()["helper.conf"].clone();
    assert!(!text(&Platform::built_in()).contains("jwt_svids"));
    let known = text(&platform("keycloak: {publicUrl: 'https://kc.example'}"));
    assert!(
        known.contains(
            r#"jwt_svids = [{jwt_audience="https://kc.example/realms/kagenti", jwt_svid_file_name="/opt/jwt_svid.token"}]"#
        ),
        "{known}"
    );
}

#[test]
fn the_envoy_configuration_is_yaml_with_the_platforms_ports() {
    let data = config_map_data("envoy-config", &platform("proxy: {port: 16001}")).unwrap();
    let value = yaml::parse(&data["envoy.yaml"]).unwrap().to_json();
    let port = value.pointer("/static_resources/listeners/0/address/socket_address/port_value");
    assert_eq!(port.and_then(serde_json::Value::as_u64), Some(16001));
}

#[test]
fn routes_are_an_empty_list() {
    let data = config_map_data("authproxy-routes", &Platform::built_in()).unwrap();
    assert_eq!(yaml::parse(&data["routes.yaml"]).unwrap().to_json(), serde_json::json!([]));
}
