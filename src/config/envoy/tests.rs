//! The direction rule and the ports, read from the rendered value.

use serde_json::{Value, json};

use super::bootstrap;
use crate::config::layers::Field;
use crate::config::resolved::Resolved;

fn filters(listener: &Value) -> &Vec<Value> {
    listener["filter_chains"]
        .as_array()
        .and_then(|chains| chains.last())
        .and_then(|chain| chain["filters"][0]["typed_config"]["http_filters"].as_array())
        .expect("the last chain speaks HTTP")
}

#[test]
fn case_080_the_listener_sets_the_direction_before_ext_proc_and_removes_what_a_client_sent() {
    let value = bootstrap(&Resolved::built_in().proxy);
    for (listener, direction) in
        value["static_resources"]["listeners"].as_array().into_iter().flatten().zip(["outbound", "inbound"])
    {
        let filters = filters(listener);
        let names: Vec<_> = filters.iter().filter_map(|filter| filter["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "envoy.filters.http.header_mutation",
                "envoy.filters.http.ext_proc",
                "envoy.filters.http.header_mutation",
                "envoy.filters.http.router"
            ]
        );
        let before = &filters[0]["typed_config"]["mutations"]["request_mutations"];
        assert_eq!(
            *before,
            json!([
                {"remove": "x-authbridge-direction"},
                {"append": {
                    "header": {"key": "x-authbridge-direction", "value": direction},
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }},
            ])
        );
        let after = &filters[2]["typed_config"]["mutations"]["request_mutations"];
        assert_eq!(*after, json!([{"remove": "x-authbridge-direction"}]));
        assert_eq!(filters[1]["typed_config"]["failure_mode_allow"], json!(false));
    }
}

#[test]
fn ports_are_the_platforms() {
    let mut proxy = Resolved::built_in().proxy;
    proxy.port = Field::built_in(16001);
    proxy.inbound_port = Field::built_in(16002);
    proxy.admin_port = Field::built_in(9902);
    let value = bootstrap(&proxy);
    let port =
        |pointer: &str| value.pointer(pointer).and_then(|address| address["socket_address"]["port_value"].as_u64());
    assert_eq!(port("/static_resources/listeners/0/address"), Some(16001));
    assert_eq!(port("/static_resources/listeners/1/address"), Some(16002));
    assert_eq!(port("/admin/address"), Some(9902));
    assert_eq!(value["admin"]["address"]["socket_address"]["address"], json!("127.0.0.1"));
}

#[test]
fn outbound_tls_is_passed_on_untouched() {
    let value = bootstrap(&Resolved::built_in().proxy);
    let outbound = &value["static_resources"]["listeners"][0];
    assert_eq!(outbound["listener_filters"][1]["name"], json!("envoy.filters.listener.tls_inspector"));
    assert_eq!(outbound["filter_chains"][0]["filter_chain_match"], json!({"transport_protocol": "tls"}));
    assert_eq!(outbound["filter_chains"][0]["filters"][0]["name"], json!("envoy.filters.network.tcp_proxy"));
}
