//! Values of the keys below `cards` that say what agents reach: JSON in, typed value or a sentence out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::walk::{Problem, Step};
use super::{builds, read};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::config::trust::{CardPeer, PeerWhom, VerifiedPeers};
use crate::domain::suggest::nearest;
use crate::domain::trust::TrustLevel;

type Read<T> = Result<T, Problem>;

/// Peers that one list may have: each is a rule of every agent's policy.
const MOST: usize = 32;
/// Members of a peer.
const MEMBERS: [&str; 5] = ["service", "namespace", "podLabels", "cidr", "ports"];

pub(super) fn level(value: &Value) -> Read<TrustLevel> {
    let name = read::word(value)?;
    TrustLevel::named(&name).ok_or_else(|| none_of(&name, &TrustLevel::ALL.map(TrustLevel::as_str)))
}

pub(super) fn some_level(value: &Value) -> Read<Option<TrustLevel>> {
    level(value).map(Some)
}

pub(super) fn verified_peers(value: &Value) -> Read<VerifiedPeers> {
    let name = read::word(value)?;
    VerifiedPeers::named(&name).ok_or_else(|| none_of(&name, &VerifiedPeers::ALL.map(VerifiedPeers::as_str)))
}

fn none_of(name: &str, known: &[&str]) -> Problem {
    let near = nearest(name, known.iter().copied()).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("{name:?} is none of {}{near}", known.join(", ")).into()
}

/// Who talks with agents: a list of peers.
pub(super) fn peers(value: &Value) -> Read<Vec<CardPeer>> {
    let Some(items) = value.as_array() else {
        return Err(format!("a list of peers is expected, {} was found", kind(value)).into());
    };
    if items.len() > MOST {
        return Err(format!("{} peers are more than the {MOST} that there may be", items.len()).into());
    }
    let one = |(index, item): (usize, &Value)| peer(item).map_err(|problem| problem.below(Step::Entry(index)));
    items.iter().enumerate().map(one).collect()
}

fn peer(item: &Value) -> Read<CardPeer> {
    let Some(members) = item.as_object() else {
        return Err(format!("a mapping is expected, {} was found", kind(item)).into());
    };
    if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(Problem::new(vec![Step::Key(unknown.clone())], format!("is none of {}", MEMBERS.join(", "))));
    }
    let at = |name: &str, read: Read<PeerWhom>| read.map_err(|problem| problem.below(Step::Key(name.to_owned())));
    let whom = match (members.get("service"), members.get("namespace"), members.get("cidr")) {
        (Some(service), None, None) => at("service", self::service(service))?,
        (None, Some(namespace), None) => {
            let labels = members.get("podLabels").map(labels).transpose();
            let labels = labels.map_err(|problem| problem.below(Step::Key("podLabels".to_owned())))?;
            at("namespace", pods(namespace, labels.unwrap_or_default()))?
        }
        (None, None, Some(cidr)) => at("cidr", block(cidr))?,
        _ => {
            return Err(
                "one of service (namespace/name), namespace (with podLabels, or all its Pods) and cidr is expected"
                    .to_owned()
                    .into(),
            );
        }
    };
    if members.contains_key("podLabels") && !matches!(whom, PeerWhom::Pods { .. }) {
        let message = "goes with namespace alone".to_owned();
        return Err(Problem::new(vec![Step::Key("podLabels".to_owned())], message));
    }
    let ports = members.get("ports").map(ports).transpose();
    let ports = ports.map_err(|problem| problem.below(Step::Key("ports".to_owned())))?;
    Ok(CardPeer { whom, ports: ports.unwrap_or_default() })
}

fn service(value: &Value) -> Read<PeerWhom> {
    let text = read::word(value)?;
    let parts = text.split_once('/').filter(|(namespace, name)| syntax::is_label(namespace) && syntax::is_label(name));
    let (namespace, name) =
        parts.ok_or_else(|| Problem::from(format!("{text:?} is not namespace/name of a Service")))?;
    Ok(PeerWhom::Service { namespace: namespace.to_owned(), name: name.to_owned() })
}

fn pods(namespace: &Value, labels: BTreeMap<String, String>) -> Read<PeerWhom> {
    let namespace = read::word(namespace)?;
    if syntax::is_label(&namespace) {
        Ok(PeerWhom::Pods { namespace, labels })
    } else {
        Err(format!("{namespace:?} is not the name of a namespace").into())
    }
}

/// Labels that Pods have to have, each with its value.
fn labels(value: &Value) -> Read<BTreeMap<String, String>> {
    builds::texts(value, |name, text| {
        if syntax::is_metadata_key(name) && syntax::is_label_value(text) {
            Ok(())
        } else {
            Err(format!("{name}={text} is not a label that Pods can have"))
        }
    })
}

/// A block as NetworkPolicies take it: one of IPv4 that is written within IPv6 is refused there, and from API server 1.36 on one that is written
/// with an address in its midst.
fn block(value: &Value) -> Read<PeerWhom> {
    let text = read::word(value)?;
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let (address, length) = (address.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (length <= most).then_some(())?;
        let canonical = address.to_canonical();
        let length = if canonical.is_ipv4() == address.is_ipv4() { length } else { length.checked_sub(96)? };
        Some(format!("{}/{length}", first_of(canonical, length.into())))
    });
    parsed.map(PeerWhom::Block).ok_or_else(|| format!("{text:?} is not a block of addresses such as 10.0.0.0/8").into())
}

/// The first address of the block of that length in which `address` is.
fn first_of(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or_default();
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

fn ports(value: &Value) -> Read<Vec<u16>> {
    let Some(items) = value.as_array() else {
        return Err(format!("a list of TCP ports is expected, {} was found", kind(value)).into());
    };
    if items.len() > MOST {
        return Err(format!("more than {MOST} ports").into());
    }
    let one = |(index, item): (usize, &Value)| {
        let port = item.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.ok_or_else(|| Problem::new(vec![Step::Entry(index)], format!("{item} is not a port")))
    };
    items.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_peer_is_a_service_pods_or_a_block() {
        let read = |value: Value| peers(&json!([value])).map(|mut all| all.remove(0));
        assert_eq!(
            read(json!({"service": "keycloak/keycloak-service"})),
            Ok(CardPeer {
                whom: PeerWhom::Service { namespace: "keycloak".into(), name: "keycloak-service".into() },
                ports: vec![]
            })
        );
        let pods = read(json!({"namespace": "ingress", "podLabels": {"app": "gateway"}, "ports": [8080]})).unwrap();
        assert_eq!(pods.ports, [8080]);
        for (written, wanted) in [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("10.1.0.0/16", "10.1.0.0/16"),
            ("fd00::/8", "fd00::/8"),
            ("10.1.2.3/16", "10.1.0.0/16"),
            ("10.1.2.3/32", "10.1.2.3/32"),
            ("192.168.7.9/31", "192.168.7.8/31"),
            ("1.2.3.4/0", "0.0.0.0/0"),
            ("::ffff:10.1.2.3/112", "10.1.0.0/16"),
            ("FD00:0:0:1::9/64", "fd00:0:0:1::/64"),
            ("fd00::9/128", "fd00::9/128"),
            ("fd00::9/0", "::/0"),
        ] {
            assert_eq!(read(json!({"cidr": written})).unwrap().whom, PeerWhom::Block(wanted.into()));
        }
        for wrong in [
            json!({}),
            json!({"service": "keycloak"}),
            json!({"service": "a/b", "cidr": "10.0.0.0/8"}),
            json!({"cidr": "10.0.0.0/33"}),
            json!({"cidr": "10.0.0.0"}),
            json!({"cidr": "::ffff:10.0.0.0/90"}),
            json!({"cidr": "10.0.0.0/8", "podLabels": {}}),
            json!({"namespace": "Not A Name"}),
            json!({"namespace": "a", "podLabels": {"a": 1}}),
            json!({"namespace": "a", "ports": [0]}),
            json!({"namespace": "a", "port": 80}),
            json!("a/b"),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_told_with_the_nearest() {
        assert_eq!(level(&json!("enforced-all")), Ok(TrustLevel::EnforcedAll));
        assert!(format!("{:?}", level(&json!("enforce"))).contains("did you mean enforced"));
        assert!(verified_peers(&json!("none")).is_err());
        assert!(format!("{:?}", verified_peers(&json!("declare"))).contains("did you mean declared"));
    }
}
