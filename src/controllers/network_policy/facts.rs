//! From what is known of the cluster to what policies are made from; pure.
//!
//! In: EndpointSlices of the API server, Services, and the platform file. Out: [`Facts`]. Promise: a Service that is not known, or that selects
//! nothing, opens nothing; a name outside of the cluster neither, because NetworkPolicies know no names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::config::trust::{CardPeer, PeerWhom, VerifiedPeers};
use crate::controllers::network_policy::memory::Context;
use crate::policy::desired::{self, Facts, Peer, Port, PortName, Whom};
use crate::store::{ServicePort, Store, TargetPort};

/// Services of the cluster's DNS, as distributions name them.
const DNS: [(&str, &str); 3] =
    [("kube-system", "kube-dns"), ("kube-system", "coredns"), ("openshift-dns", "dns-default")];
/// Where a DNS cache of each node answers (`k8s.io` addon `nodelocaldns`).
const NODE_LOCAL: &str = "169.254.20.10/32";

/// What the policies of a namespace are made from, and whether a Service is among it: those may change without bringing us back.
///
/// `besides`: whom the workload of which a policy is made reaches besides what every one of its namespace does.
pub(super) fn facts(cx: &Context<'_>, namespace: &str, besides: Vec<CardPeer>) -> (Facts, bool) {
    let trust = cx.facts.platform.cards().trust;
    let needed = needed(cx, namespace);
    let mut egress: Vec<CardPeer> = trust.egress;
    egress.extend(needed);
    egress.extend(besides);
    let is_service = |peer: &CardPeer| matches!(peer.whom, PeerWhom::Service { .. });
    let by_name = |peers: &[CardPeer]| peers.iter().any(is_service);
    // Who is reached by a name has it resolved; one that is not there needs none.
    let names = egress.iter().any(|one| is_service(one) && peer(cx.store, one).is_some());
    let services = by_name(&egress) || by_name(&trust.ingress) || trust.dns;
    let facts = Facts {
        operators: BTreeSet::from([cx.store.operator_namespace().to_owned()]),
        api_server: cx.store.api_server(),
        egress: egress.iter().filter_map(|one| peer(cx.store, one)).collect(),
        dns: if trust.dns || names { dns(cx.store) } else { Vec::new() },
        ingress: trust.ingress.iter().filter_map(|one| peer(cx.store, one)).collect(),
        verified: match trust.verified_peers {
            // Not asked for where only what is declared is open.
            VerifiedPeers::Namespace | VerifiedPeers::Declared => desired::VerifiedPeers::Namespace,
            VerifiedPeers::Enabled => desired::VerifiedPeers::Enabled,
            VerifiedPeers::All => desired::VerifiedPeers::All,
        },
    };
    (facts, services)
}

/// What an injected Pod needs to become ready: the identity provider, and where its traces go.
fn needed(cx: &Context<'_>, namespace: &str) -> Vec<CardPeer> {
    let resolved = cx.facts.snapshot.namespace(namespace).map(|view| &view.resolved);
    let traces = resolved.and_then(|resolved| resolved.trace.endpoint.value.as_deref());
    let tokens = resolved.map(|resolved| resolved.token_exchange.token_url.value.as_str());
    let keycloak = cx.facts.platform.keycloak().url.as_str();
    [Some(keycloak), tokens, traces].into_iter().flatten().filter_map(of_url).collect()
}

/// Whom a URL leads to: a Service of the cluster, or an address.
pub(super) fn of_url(url: &str) -> Option<CardPeer> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let port = port.map_or(Some(default), |port| port.parse().ok())?;
    let whom = match host.parse::<IpAddr>() {
        Ok(address) => PeerWhom::Block(desired::block(address)),
        Err(_) => {
            let mut parts = host.split('.');
            let (name, namespace) = (parts.next()?, parts.next()?);
            // `name.namespace` and `name.namespace.svc…`; anything else is a name of the world outside.
            parts.next().is_none_or(|kind| kind == "svc").then_some(())?;
            PeerWhom::Service { namespace: namespace.to_owned(), name: name.to_owned() }
        }
    };
    Some(CardPeer { whom, ports: vec![port] })
}

/// Whom that means, as far as it is known.
pub(super) fn peer(store: &Store, peer: &CardPeer) -> Option<Peer> {
    let ports = || peer.ports.iter().copied().map(Port::tcp).collect();
    match &peer.whom {
        PeerWhom::Block(cidr) => Some(Peer { whom: Whom::Block(cidr.clone()), ports: ports() }),
        PeerWhom::Pods { namespace, labels } => {
            Some(Peer { whom: Whom::Pods { namespace: namespace.clone(), labels: labels.clone() }, ports: ports() })
        }
        PeerWhom::Service { namespace, name } => service(store, (namespace, name), &peer.ports),
    }
}

/// The Pods of a Service at the ports that it leads to: those of `wanted`, or all.
fn service(store: &Store, (namespace, name): (&str, &str), wanted: &[u16]) -> Option<Peer> {
    let service = store.service(namespace, name)?;
    let labels: BTreeMap<_, _> =
        service.seen.selector.as_ref()?.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let ports: BTreeSet<Port> = service
        .seen
        .ports
        .iter()
        .filter(|port| wanted.is_empty() || wanted.contains(&port.port))
        .map(port_of)
        .collect();
    // No port that it leads to is meant: with none, all would be open.
    (!ports.is_empty()).then_some(())?;
    let whom = Whom::Pods { namespace: namespace.to_owned(), labels };
    Some(Peer { whom, ports: ports.into_iter().collect() })
}

fn port_of(port: &ServicePort) -> Port {
    let name = match &port.target {
        TargetPort::Number(number) => PortName::Number(*number),
        TargetPort::Name(name) => PortName::Name(name.to_string()),
    };
    Port { protocol: if port.is_tcp { "TCP" } else { "UDP" }, port: name }
}

/// Where names are resolved.
pub(super) fn dns(store: &Store) -> Vec<Peer> {
    let both = ["TCP", "UDP"].map(|protocol| Port { protocol, port: PortName::Number(53) });
    let mut peers: Vec<_> = DNS.into_iter().filter_map(|of| service(store, of, &[])).collect();
    peers.push(Peer { whom: Whom::Block(NODE_LOCAL.to_owned()), ports: both.into() });
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_to_a_service_or_an_address_or_outside() {
        let service = |namespace: &str, name: &str, port| {
            Some(CardPeer {
                whom: PeerWhom::Service { namespace: namespace.into(), name: name.into() },
                ports: vec![port],
            })
        };
        let block = |cidr: &str, port| Some(CardPeer { whom: PeerWhom::Block(cidr.into()), ports: vec![port] });
        for (url, wanted) in [
            ("http://keycloak-service.keycloak.svc:8080", service("keycloak", "keycloak-service", 8080)),
            ("https://k.iam.svc.cluster.local/realms/x", service("iam", "k", 443)),
            ("otel.observability:4317", service("observability", "otel", 4317)),
            ("http://u:p@10.1.2.3:8080/x", block("10.1.2.3/32", 8080)),
            ("http://[fd00::1]:8080", block("fd00::1/128", 8080)),
            ("http://[::ffff:10.0.0.1]", block("10.0.0.1/32", 80)),
            ("https://login.example.com/x", None),
            ("http://localhost:8080", None),
            ("", None),
        ] {
            assert_eq!(of_url(url), wanted, "{url}");
        }
    }
}
