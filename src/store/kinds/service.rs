//! Services: whose they are, where they lead, and what an Agent's controller has applied to its own.

use std::net::IpAddr;

use serde_json::Value;

use super::What;
use super::claim::ClaimSeen;
use super::workload::Pairs;
use crate::domain::keys;
use crate::store::decode::Bounded;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Over, Selection, UsedBy};

/// Services.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::all(page::LARGE, UsedBy::Controllers)],
    bounded: true,
    ..Descriptor::built_in(
        "",
        "services",
        "Service",
        Decode::Bounded(|object| Some(What::Service(Box::new(service(object))))),
    )
};

/// A Service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceSeen {
    /// Whose it is.
    pub claim: ClaimSeen,
    /// `spec.ports`, at most [`PORTS`].
    pub ports: Box<[ServicePort]>,
    /// Where its name leads.
    pub leads: Leads,
    /// The family of addresses by which it leads there first; `None` where it names none.
    pub family: Option<IpFamily>,
    /// `spec.selector`; `None` of one that selects nothing, or by more labels than [`LABELS`].
    pub selector: Option<Pairs>,
    /// The port of its own at which an agent's card is asked for (annotation `kagenti.io/port`); `None` where that is no port's number.
    pub card_port: Option<u16>,
}

impl ServiceSeen {
    /// The same without what was applied, for which there is no room.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { claim: self.claim.slim(over), ..self.clone() }
    }
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// The first of `spec.ipFamilies`: what the address of the Service is of, or the first that its name has.
    fn of(spec: &Value) -> Option<Self> {
        match spec.get("ipFamilies")?.get(0)?.as_str()? {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    /// Whether an address is of it.
    #[must_use]
    pub const fn has(self, address: IpAddr) -> bool {
        matches!((self, address), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// Where the name of a Service leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leads {
    /// To an address of its own, behind which its ports lead on to those of Pods.
    #[default]
    Address,
    /// To the Pods themselves (`clusterIP: None`): whoever asks for a port of the Service calls that port of a Pod.
    Pods,
    /// To another name (`type: ExternalName`), whatever its selector and ports say.
    Elsewhere,
}

impl Leads {
    fn of(spec: &Value) -> Self {
        let is = |key: &str, value: &str| spec.get(key).is_some_and(|found| found == value);
        match (is("type", "ExternalName"), is("clusterIP", "None")) {
            (true, _) => Self::Elsewhere,
            (false, true) => Self::Pods,
            (false, false) => Self::Address,
        }
    }
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; empty where it has none.
    pub name: Box<str>,
    /// The port that clients ask for.
    pub port: u16,
    /// Where that leads in a Pod.
    pub target: TargetPort,
    /// The protocol that it takes.
    pub protocol: PortProtocol,
}

impl ServicePort {
    /// Whether that is TCP.
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        self.protocol == PortProtocol::Tcp
    }
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PortProtocol {
    /// TCP: also of a port that says nothing.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl PortProtocol {
    /// Its name, as Kubernetes writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// What a port says; `None` of a name that Kubernetes does not have.
    fn of(said: Option<&Value>) -> Option<Self> {
        let Some(said) = said.filter(|said| !said.is_null()) else { return Some(Self::default()) };
        [Self::Tcp, Self::Udp, Self::Sctp].into_iter().find(|one| said == one.as_str())
    }
}

/// Where a port of a Service leads in a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPort {
    /// To that port.
    Number(u16),
    /// To the port that a container of the Pod names so.
    Name(Box<str>),
}

/// Ports that are kept of one Service.
pub const PORTS: usize = 16;
/// Labels that a selector is kept with.
pub const LABELS: usize = 16;
/// Bytes of a port's name that are kept: more than Kubernetes takes.
const PORT_NAME: usize = 63;

fn port(port: &Value) -> Option<ServicePort> {
    let text = |key: &str| port.get(key).and_then(Value::as_str).filter(|text| text.len() <= PORT_NAME);
    let number = |key: &str| port.get(key).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
    let own = number("port")?;
    // What is not said is the Service's own port.
    let target = match text("targetPort") {
        Some(name) => TargetPort::Name(name.into()),
        None => TargetPort::Number(number("targetPort").filter(|number| *number > 0).unwrap_or(own)),
    };
    let protocol = PortProtocol::of(port.get("protocol"))?;
    Some(ServicePort { name: text("name").unwrap_or_default().into(), port: own, target, protocol })
}

fn ports(spec: &Value) -> Box<[ServicePort]> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(port).take(PORTS).collect()
}

/// The selector: a part of one would select more.
fn selector(spec: &Value) -> Option<Pairs> {
    let labels = spec.get("selector")?.as_object().filter(|labels| !labels.is_empty() && labels.len() <= LABELS)?;
    let labels: Option<_> = labels.iter().map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    Some(Pairs::of_texts(Vec::into_iter(labels?)))
}

fn service(object: Bounded) -> ServiceSeen {
    let claim = ClaimSeen::of(&object.metadata);
    let card_port = object.metadata.annotation(keys::ANNOTATION_CARD_PORT).and_then(|port| port.parse::<u16>().ok());
    let card_port = card_port.filter(|port| *port > 0);
    // One that is larger than anybody's leads nowhere: a part of it would be another.
    let spec = object.spec.map(|spec| spec.into_value().unwrap_or_default());
    let (ports, selector) = spec.as_ref().map(|spec| (ports(spec), selector(spec))).unwrap_or_default();
    let leads = spec.as_ref().map(Leads::of).unwrap_or_default();
    let family = spec.as_ref().and_then(IpFamily::of);
    ServiceSeen { claim, ports, leads, family, selector, card_port }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_port_of_a_card_is_kept_where_it_is_the_number_of_one() {
        let seen = |annotations: Value| {
            let object = json!({"metadata": {"name": "w", "annotations": annotations}, "spec": {}});
            service(serde_json::from_str(&object.to_string()).unwrap())
        };
        for (said, wanted) in [
            ("8000", Some(8000)),
            ("65535", Some(65_535)),
            ("0", None),
            ("65536", None),
            ("-1", None),
            ("http", None),
            ("80,81", None),
            ("", None),
        ] {
            assert_eq!(seen(json!({"kagenti.io/port": said})).card_port, wanted, "{said}");
        }
        assert_eq!(seen(json!({"other": "8000"})), ServiceSeen::default(), "no other annotation is kept");
        assert_eq!(seen(json!(null)), ServiceSeen::default());
    }
}
