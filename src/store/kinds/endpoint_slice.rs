//! EndpointSlice `default/kubernetes`: where the API server is.
//!
//! No other is kept: what a tenant's slice says of an address proves nothing, wherever it is and whichever Service it names. The API server writes
//! this one and no second, whichever family its addresses are of (so its endpoint reconciler, up to 1.36).

use std::net::IpAddr;

use serde_json::Value;

use super::{Kind, What};
use crate::store::decode::wire::Raw;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// EndpointSlices, of the API server.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection {
        keep: |key, _| &*key.namespace == NAMESPACE && &*key.name == NAME,
        ..Selection::labelled(LABEL, page::SMALL, UsedBy::Controllers)
    }],
    ..Descriptor::built_in("discovery.k8s.io", "endpointslices", "EndpointSlice", Decode::Common(project))
};

/// Namespace of the API server's Service.
pub const NAMESPACE: &str = "default";
/// Name of the slice that the API server writes.
pub const NAME: &str = "kubernetes";
/// Selects the slices of that Service.
const LABEL: &str = "kubernetes.io/service-name=kubernetes";
/// Addresses that are kept, and ports: more API servers than there are, and few enough that a NetworkPolicy which names them all is one that is read.
const MOST: (usize, usize) = (64, 16);
/// Ports with their addresses that a policy names, in all.
pub const PLACES: usize = 64;

/// Where the API server is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointSliceSeen {
    /// Addresses of its endpoints, those that are not ready included: a policy that forgot one would cut off whoever talks to it.
    pub addresses: Box<[IpAddr]>,
    /// TCP ports.
    pub ports: Box<[u16]>,
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    let items = |list: Option<Value>| list.and_then(|list| list.as_array().cloned()).unwrap_or_default();
    let texts = |one: &Value| one.get("addresses").and_then(Value::as_array).cloned().unwrap_or_default();
    let endpoints = items(raw.endpoints);
    let addresses = endpoints.iter().flat_map(texts).filter_map(|text| text.as_str()?.parse().ok());
    let ports = items(raw.ports);
    let tcp = ports.iter().filter(|port| port.get("protocol").is_none_or(|protocol| protocol == "TCP"));
    let ports = tcp.filter_map(|port| u16::try_from(port.get("port")?.as_u64()?).ok());
    Some(What::EndpointSlice(EndpointSliceSeen {
        addresses: addresses.take(MOST.0).collect(),
        ports: ports.take(MOST.1).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    /// Whoever may write slices in `default` could else say where the API server is.
    #[test]
    fn only_the_slice_that_the_api_server_writes_is_kept() {
        let (keep, seen) = (DESCRIPTOR.selections[0].keep, What::EndpointSlice(EndpointSliceSeen::default()));
        for (namespace, name, kept) in [
            ("default", "kubernetes", true),
            ("default", "kubernetes-v6", false),
            ("default", "x", false),
            ("team", "kubernetes", false),
        ] {
            assert_eq!(keep(&Key::new(namespace, name), &seen), kept, "{namespace}/{name}");
        }
    }
}
