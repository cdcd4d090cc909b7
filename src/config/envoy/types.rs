//! The part of Envoy's v3 API that the bootstrap uses, one struct per message, fields named as in the API.

use serde::Serialize;

/// A message with its type, under a name: how Envoy's extensions are configured.
#[derive(Debug, Serialize)]
pub(super) struct Extension<T> {
    name: &'static str,
    typed_config: Any<T>,
}

#[derive(Debug, Serialize)]
struct Any<T> {
    #[serde(rename = "@type")]
    type_url: &'static str,
    #[serde(flatten)]
    message: T,
}

impl<T> Extension<T> {
    fn new(name: &'static str, type_url: &'static str, message: T) -> Self {
        Self { name, typed_config: Any { type_url, message } }
    }
}

/// A message without fields of ours.
#[derive(Debug, Serialize)]
pub(super) struct Empty {}

#[derive(Debug, Serialize)]
pub(super) struct Bootstrap {
    pub(super) admin: Admin,
    pub(super) static_resources: StaticResources,
}

#[derive(Debug, Serialize)]
pub(super) struct Admin {
    pub(super) address: Address,
}

#[derive(Debug, Serialize)]
pub(super) struct StaticResources {
    pub(super) listeners: Vec<Listener>,
    pub(super) clusters: Vec<Cluster>,
}

#[derive(Debug, Serialize)]
pub(super) struct Address {
    socket_address: SocketAddress,
}

#[derive(Debug, Serialize)]
struct SocketAddress {
    address: &'static str,
    port_value: u16,
}

impl Address {
    pub(super) fn new(address: &'static str, port_value: u16) -> Self {
        Self { socket_address: SocketAddress { address, port_value } }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Listener {
    pub(super) name: &'static str,
    pub(super) traffic_direction: &'static str,
    pub(super) address: Address,
    pub(super) listener_filters: Vec<Extension<Empty>>,
    pub(super) filter_chains: Vec<FilterChain>,
}

#[derive(Debug, Serialize)]
pub(super) struct FilterChain {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filter_chain_match: Option<FilterChainMatch>,
    pub(super) filters: Vec<NetworkFilter>,
}

#[derive(Debug, Serialize)]
pub(super) struct FilterChainMatch {
    pub(super) transport_protocol: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum NetworkFilter {
    Tcp(Extension<TcpProxy>),
    Http(Box<Extension<HttpConnectionManager>>),
}

#[derive(Debug, Serialize)]
pub(super) struct TcpProxy {
    pub(super) stat_prefix: &'static str,
    pub(super) cluster: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct HttpConnectionManager {
    pub(super) stat_prefix: &'static str,
    pub(super) codec_type: &'static str,
    pub(super) route_config: RouteConfiguration,
    pub(super) http_filters: Vec<HttpFilter>,
}

#[derive(Debug, Serialize)]
pub(super) struct RouteConfiguration {
    pub(super) name: &'static str,
    pub(super) virtual_hosts: [VirtualHost; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct VirtualHost {
    pub(super) name: &'static str,
    pub(super) domains: [&'static str; 1],
    pub(super) routes: [Route; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct Route {
    #[serde(rename = "match")]
    pub(super) matching: RouteMatch,
    pub(super) route: RouteAction,
}

#[derive(Debug, Serialize)]
pub(super) struct RouteMatch {
    pub(super) prefix: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RouteAction {
    pub(super) cluster: &'static str,
    pub(super) timeout: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum HttpFilter {
    HeaderMutation(Extension<HeaderMutation>),
    ExtProc(Extension<ExternalProcessor>),
    Router(Extension<Empty>),
}

#[derive(Debug, Serialize)]
pub(super) struct HeaderMutation {
    pub(super) mutations: Mutations,
}

#[derive(Debug, Serialize)]
pub(super) struct Mutations {
    pub(super) request_mutations: Vec<Mutation>,
}

/// One step; steps run in order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mutation {
    /// Removes every value of the header, whatever its case.
    Remove(&'static str),
    Append(HeaderValueOption),
}

#[derive(Debug, Serialize)]
pub(super) struct HeaderValueOption {
    pub(super) header: HeaderValue,
    pub(super) append_action: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct HeaderValue {
    pub(super) key: &'static str,
    pub(super) value: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct ExternalProcessor {
    pub(super) grpc_service: GrpcService,
    pub(super) message_timeout: &'static str,
    pub(super) failure_mode_allow: bool,
    pub(super) allow_mode_override: bool,
    pub(super) processing_mode: ProcessingMode,
}

#[derive(Debug, Serialize)]
pub(super) struct GrpcService {
    pub(super) envoy_grpc: EnvoyGrpc,
    pub(super) timeout: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct EnvoyGrpc {
    pub(super) cluster_name: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct ProcessingMode {
    pub(super) request_header_mode: &'static str,
    pub(super) response_header_mode: &'static str,
    pub(super) request_body_mode: &'static str,
    pub(super) response_body_mode: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Cluster {
    pub(super) name: &'static str,
    #[serde(rename = "type")]
    pub(super) discovery: &'static str,
    pub(super) connect_timeout: &'static str,
    pub(super) lb_policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) original_dst_lb_config: Option<OriginalDstLbConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) typed_extension_protocol_options: Option<ProtocolOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) load_assignment: Option<LoadAssignment>,
}

#[derive(Debug, Serialize)]
pub(super) struct OriginalDstLbConfig {
    pub(super) use_http_header: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ProtocolOptions {
    #[serde(rename = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions")]
    http: Any<ExplicitHttp2>,
}

#[derive(Debug, Serialize)]
struct ExplicitHttp2 {
    explicit_http_config: Http2,
}

#[derive(Debug, Serialize)]
struct Http2 {
    http2_protocol_options: Empty,
}

#[derive(Debug, Serialize)]
pub(super) struct LoadAssignment {
    pub(super) cluster_name: &'static str,
    pub(super) endpoints: [LocalityEndpoints; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct LocalityEndpoints {
    pub(super) lb_endpoints: [LbEndpoint; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct LbEndpoint {
    pub(super) endpoint: Endpoint,
}

#[derive(Debug, Serialize)]
pub(super) struct Endpoint {
    pub(super) address: Address,
}

macro_rules! extension {
    ($function:ident, $type:ty, $name:literal, $message:literal) => {
        pub(super) fn $function(message: $type) -> Extension<$type> {
            Extension::new($name, concat!("type.googleapis.com/envoy.extensions.filters.", $message), message)
        }
    };
}

extension!(original_dst, Empty, "envoy.filters.listener.original_dst", "listener.original_dst.v3.OriginalDst");
extension!(tls_inspector, Empty, "envoy.filters.listener.tls_inspector", "listener.tls_inspector.v3.TlsInspector");
extension!(tcp_proxy, TcpProxy, "envoy.filters.network.tcp_proxy", "network.tcp_proxy.v3.TcpProxy");
extension!(
    connection_manager,
    HttpConnectionManager,
    "envoy.filters.network.http_connection_manager",
    "network.http_connection_manager.v3.HttpConnectionManager"
);
extension!(
    header_mutation,
    HeaderMutation,
    "envoy.filters.http.header_mutation",
    "http.header_mutation.v3.HeaderMutation"
);
extension!(ext_proc, ExternalProcessor, "envoy.filters.http.ext_proc", "http.ext_proc.v3.ExternalProcessor");
extension!(router, Empty, "envoy.filters.http.router", "http.router.v3.Router");

/// HTTP/2 towards a cluster.
pub(super) fn http2() -> ProtocolOptions {
    ProtocolOptions {
        http: Any {
            type_url: "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            message: ExplicitHttp2 { explicit_http_config: Http2 { http2_protocol_options: Empty {} } },
        },
    }
}
