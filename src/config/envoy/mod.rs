//! The Envoy bootstrap of mode `envoy-sidecar`.
//!
//! In: the proxy's ports. Out: JSON, which is YAML, for ConfigMap `envoy-config`. Shape: variant H of
//! As docs/deviations.md has it ("direction of a request in Envoy"): the listener
//! decides. Before ext_proc every value of the direction header is removed and the listener's own is set; after
//! ext_proc it is removed again, so that it never leaves the Pod. Upstream added the header on one listener and left
//! what the client had sent (B5): ext_proc believes the first value. The seed's bypass of port 9093 is left out,
//! because it shows the sidecar's statistics to anybody.

mod types;

use serde_json::Value;

use super::resolved::Proxy;
use crate::domain::keys::{HEADER_DIRECTION, PORT_EXT_PROC};
use types::{
    Address, Admin, Bootstrap, Cluster, Empty, Endpoint, EnvoyGrpc, ExternalProcessor, FilterChain, FilterChainMatch,
    GrpcService, HeaderMutation, HeaderValue, HeaderValueOption, HttpConnectionManager, HttpFilter, LbEndpoint,
    Listener, LoadAssignment, LocalityEndpoints, Mutation, Mutations, NetworkFilter, OriginalDstLbConfig,
    ProcessingMode, Route, RouteAction, RouteConfiguration, RouteMatch, StaticResources, TcpProxy, VirtualHost,
};

const LOOPBACK: &str = "127.0.0.1";
const ANY_ADDRESS: &str = "0.0.0.0";
const ORIGINAL_DESTINATION: &str = "original_destination";
const EXT_PROC_CLUSTER: &str = "ext_proc_cluster";
/// How long a request may take; longer than any model is expected to think.
const REQUEST_TIMEOUT: &str = "300s";
/// How long ext_proc may take for one message: it may wait for Keycloak within the request's time.
const MESSAGE_TIMEOUT: &str = "310s";

/// The bootstrap for these ports.
#[must_use]
pub fn bootstrap(proxy: &Proxy) -> Value {
    let bootstrap = Bootstrap {
        admin: Admin { address: Address::new(LOOPBACK, proxy.admin_port.value) },
        static_resources: StaticResources {
            listeners: vec![outbound(proxy.port.value), inbound(proxy.inbound_port.value)],
            clusters: vec![original_destination(), ext_proc()],
        },
    };
    serde_json::to_value(bootstrap).expect("strings, numbers and lists of them always serialise")
}

/// What the agent sends: TLS passes untouched, plain HTTP goes through ext_proc.
fn outbound(port: u16) -> Listener {
    let passthrough = TcpProxy { stat_prefix: "outbound_tls_passthrough", cluster: ORIGINAL_DESTINATION };
    let names = Names { stat_prefix: "outbound_http", routes: "outbound_routes", virtual_host: "catch_all" };
    Listener {
        name: "outbound_listener",
        traffic_direction: "OUTBOUND",
        address: Address::new(ANY_ADDRESS, port),
        listener_filters: vec![types::original_dst(Empty {}), types::tls_inspector(Empty {})],
        filter_chains: vec![
            FilterChain {
                filter_chain_match: Some(FilterChainMatch { transport_protocol: "tls" }),
                filters: vec![NetworkFilter::Tcp(types::tcp_proxy(passthrough))],
            },
            FilterChain {
                filter_chain_match: Some(FilterChainMatch { transport_protocol: "raw_buffer" }),
                filters: vec![http("outbound", &names)],
            },
        ],
    }
}

/// What is sent to the agent.
fn inbound(port: u16) -> Listener {
    let names = Names { stat_prefix: "inbound_http", routes: "inbound_routes", virtual_host: "local_app" };
    Listener {
        name: "inbound_listener",
        traffic_direction: "INBOUND",
        address: Address::new(ANY_ADDRESS, port),
        listener_filters: vec![types::original_dst(Empty {})],
        filter_chains: vec![FilterChain { filter_chain_match: None, filters: vec![http("inbound", &names)] }],
    }
}

struct Names {
    stat_prefix: &'static str,
    routes: &'static str,
    virtual_host: &'static str,
}

fn http(direction: &'static str, names: &Names) -> NetworkFilter {
    let route = Route {
        matching: RouteMatch { prefix: "/" },
        route: RouteAction { cluster: ORIGINAL_DESTINATION, timeout: REQUEST_TIMEOUT },
    };
    let set = HeaderValueOption {
        header: HeaderValue { key: HEADER_DIRECTION, value: direction },
        append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
    };
    NetworkFilter::Http(Box::new(types::connection_manager(HttpConnectionManager {
        stat_prefix: names.stat_prefix,
        codec_type: "AUTO",
        route_config: RouteConfiguration {
            name: names.routes,
            virtual_hosts: [VirtualHost { name: names.virtual_host, domains: ["*"], routes: [route] }],
        },
        http_filters: vec![
            mutate(vec![Mutation::Remove(HEADER_DIRECTION), Mutation::Append(set)]),
            HttpFilter::ExtProc(types::ext_proc(processor())),
            mutate(vec![Mutation::Remove(HEADER_DIRECTION)]),
            HttpFilter::Router(types::router(Empty {})),
        ],
    })))
}

fn mutate(request_mutations: Vec<Mutation>) -> HttpFilter {
    HttpFilter::HeaderMutation(types::header_mutation(HeaderMutation { mutations: Mutations { request_mutations } }))
}

/// Fails closed: without an answer from ext_proc there is no request.
fn processor() -> ExternalProcessor {
    ExternalProcessor {
        grpc_service: GrpcService {
            envoy_grpc: EnvoyGrpc { cluster_name: EXT_PROC_CLUSTER },
            timeout: REQUEST_TIMEOUT,
        },
        message_timeout: MESSAGE_TIMEOUT,
        failure_mode_allow: false,
        allow_mode_override: true,
        processing_mode: ProcessingMode {
            request_header_mode: "SEND",
            response_header_mode: "SEND",
            request_body_mode: "NONE",
            response_body_mode: "NONE",
        },
    }
}

fn original_destination() -> Cluster {
    Cluster {
        name: ORIGINAL_DESTINATION,
        discovery: "ORIGINAL_DST",
        connect_timeout: "30s",
        lb_policy: "CLUSTER_PROVIDED",
        original_dst_lb_config: Some(OriginalDstLbConfig { use_http_header: false }),
        typed_extension_protocol_options: None,
        load_assignment: None,
    }
}

fn ext_proc() -> Cluster {
    let endpoint = Endpoint { address: Address::new(LOOPBACK, PORT_EXT_PROC) };
    Cluster {
        name: EXT_PROC_CLUSTER,
        discovery: "STATIC",
        connect_timeout: "5s",
        lb_policy: "ROUND_ROBIN",
        original_dst_lb_config: None,
        typed_extension_protocol_options: Some(types::http2()),
        load_assignment: Some(LoadAssignment {
            cluster_name: EXT_PROC_CLUSTER,
            endpoints: [LocalityEndpoints { lb_endpoints: [LbEndpoint { endpoint }] }],
        }),
    }
}

#[cfg(test)]
mod tests;
