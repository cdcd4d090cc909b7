//! From what is known of the cluster to what policies are made from; pure.
//!
//! In: the EndpointSlice of the API server, Services, the platform file, and what holds in the namespace. Out: [`Facts`]. Promises: a Service that is
//! not known, or that selects nothing, opens nothing; a name outside of the cluster neither, because NetworkPolicies know no names; nor does an address
//! that nodes use for themselves, whoever writes it. In the tier of administrators a namespace's own word opens no way out of it ([`of_platform`]).

use std::collections::{BTreeMap, BTreeSet};

use super::declared::card_peer;
use crate::api::routes::Host;
use crate::config::layers::Layer;
use crate::config::trust::{CardPeer, PeerWhom, VerifiedPeers};
use crate::controllers::network_policy::memory::Context;
use crate::policy::desired::{self, Facts, Peer, Port, PortName, Whom};
use crate::store::{Leads, ServicePort, Store, TargetPort};

/// Services of the cluster's DNS, as distributions name them.
const DNS: [(&str, &str); 3] =
    [("kube-system", "kube-dns"), ("kube-system", "coredns"), ("openshift-dns", "dns-default")];
/// Where a DNS cache of each node answers (`k8s.io` addon `nodelocaldns`).
const NODE_LOCAL: &str = "169.254.20.10/32";

/// What policies are made from.
pub(super) struct Made {
    pub(super) facts: Facts,
    /// A Service is among it: those may change without bringing us back.
    pub(super) services: bool,
    /// How many of whom the workload reaches besides have no room.
    left: usize,
}

impl Made {
    /// What has no room, in sentences without a full stop.
    pub(super) fn left(&self) -> Vec<String> {
        let sentence =
            |count: usize| format!("{count} of whom its Agent of KAOS names: one policy has no room for so many");
        Some(self.left).filter(|count| *count > 0).map(sentence).into_iter().collect()
    }
}

/// What the NetworkPolicies of a namespace are made from.
///
/// `besides`: whom the workload of which a policy is made reaches besides what every one of its namespace does, as far as one policy has room.
pub(super) fn facts(cx: &Context<'_>, namespace: &str, besides: &[CardPeer]) -> Made {
    let known = besides.iter().filter_map(|one| peer(cx.store, one));
    let (known, left) = desired::fitting(known);
    Made { left, ..made(cx, &needed(cx, namespace, |_| true), (besides, known)) }
}

/// The same by the platform's word alone, but for `besides`.
pub(super) fn of_platform(cx: &Context<'_>, namespace: &str, besides: &[CardPeer]) -> Facts {
    let known = besides.iter().filter_map(|one| peer(cx.store, one)).collect();
    let needed = needed(cx, namespace, |layer| *layer <= Layer::PlatformFile);
    made(cx, &needed, (besides, known)).facts
}

/// `known` are those of `besides` that are opened.
fn made(cx: &Context<'_>, needed: &[CardPeer], (besides, known): (&[CardPeer], Vec<Peer>)) -> Made {
    let trust = cx.facts.platform.cards().trust;
    let named = || trust.egress.iter().chain(needed);
    let is_service = |peer: &CardPeer| matches!(peer.whom, PeerWhom::Service { .. });
    // Who is reached by a name has it resolved; one that is not there needs none.
    let names = named().chain(besides).any(|one| is_service(one) && peer(cx.store, one).is_some());
    let services = trust.dns || named().chain(besides).chain(&trust.ingress).any(is_service);
    let facts = Facts {
        operators: BTreeSet::from([cx.store.operator_namespace().to_owned()]),
        api_server: cx.store.api_server(),
        egress: named().filter_map(|one| peer(cx.store, one)).chain(known).collect(),
        dns: if trust.dns || names { dns(cx.store) } else { Vec::new() },
        ingress: trust.ingress.iter().filter_map(|one| peer(cx.store, one)).collect(),
        verified: match trust.verified_peers {
            // Not asked for where only what is declared is open.
            VerifiedPeers::Namespace | VerifiedPeers::Declared => desired::VerifiedPeers::Namespace,
            VerifiedPeers::Enabled => desired::VerifiedPeers::Enabled,
            VerifiedPeers::All => desired::VerifiedPeers::All,
        },
        served: cx.store.served().iter().map(ToString::to_string).collect(),
    };
    Made { facts, services, left: 0 }
}

/// What an injected Pod needs to become ready: the identity provider, and where its traces go; `counts` says whose word does.
fn needed(cx: &Context<'_>, namespace: &str, counts: fn(&Layer) -> bool) -> Vec<CardPeer> {
    let resolved = cx.facts.snapshot.namespace(namespace).map(|view| &view.resolved);
    let traces = resolved.map(|resolved| &resolved.trace.endpoint).filter(|field| counts(&field.layer));
    let tokens = resolved.map(|resolved| &resolved.token_exchange.token_url).filter(|field| counts(&field.layer));
    let traces = traces.and_then(|field| field.value.as_deref());
    let tokens = tokens.map(|field| field.value.as_str());
    let keycloak = cx.facts.platform.keycloak().url.as_str();
    [Some(keycloak), tokens, traces].into_iter().flatten().filter_map(|url| of_url(url, namespace)).collect()
}

/// Whom a URL leads to, for whoever looks it up in that namespace: a Service of the cluster, or an address that is no node's own.
pub(super) fn of_url(url: &str, namespace: &str) -> Option<CardPeer> {
    let host = Host::of_url(url).ok().flatten()?;
    Some(card_peer(&host, namespace))
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
    let service = store.service(namespace, name).filter(|service| service.seen.leads != Leads::Elsewhere)?;
    let is_meant = |number: u16| wanted.is_empty() || wanted.contains(&number);
    // Behind the name of a headless one are the Pods, so they are called at the port that is asked for: the Service's own, or the one at which they listen.
    let is_headless = service.seen.leads == Leads::Pods;
    let led_to = |port: &ServicePort| {
        let itself = (is_headless && is_meant(port.port)).then(|| port_of(port, &TargetPort::Number(port.port)));
        let listens = is_headless && matches!(port.target, TargetPort::Number(number) if is_meant(number));
        let target = (listens || is_meant(port.port)).then(|| port_of(port, &port.target));
        itself.into_iter().chain(target)
    };
    let labels: BTreeMap<_, _> =
        service.seen.selector.as_ref()?.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let ports: BTreeSet<Port> = service.seen.ports.iter().flat_map(led_to).collect();
    // No port that it leads to is meant: with none, all would be open.
    (!ports.is_empty()).then_some(())?;
    let whom = Whom::Pods { namespace: namespace.to_owned(), labels };
    Some(Peer { whom, ports: ports.into_iter().collect() })
}

fn port_of(port: &ServicePort, target: &TargetPort) -> Port {
    let name = match target {
        TargetPort::Number(number) => PortName::Number(*number),
        TargetPort::Name(name) => PortName::Name(name.to_string()),
    };
    Port { protocol: port.protocol.as_str(), port: name }
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

    /// Addresses at which a node tells who may do what in its cloud are opened by nobody's URL.
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
            ("collector:4317", service("team", "collector", 4317)),
            ("https://login.example.com/x", None),
            ("http://localhost:8080", None),
            ("http://169.254.169.254", None),
            ("http://[fe80::1]:8080/x", None),
            ("http://[::ffff:169.254.169.254]/latest", None),
            ("", None),
        ] {
            assert_eq!(of_url(url, "team"), wanted, "{url}");
        }
    }
}
