//! Which addresses are never connected to, whoever names them; pure.
//!
//! In: an address. Out: why it is refused. This is the second line: the first is that a question is about an address in `status.podIPs` of a Ready
//! Pod that is not on the node's network, which only a kubelet writes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says which addresses are refused.
///
/// A type and no setting, so that nothing that is configured can change it: the binary has [`PodAddresses`] and no other.
pub trait Addresses: Send + Sync + 'static {
    /// Why that address is not connected to; `None` when it is.
    fn refuses(&self, address: IpAddr) -> Option<Refused>;
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// 0.0.0.0/8 or `::`.
    Unspecified,
    /// This host itself.
    Loopback,
    /// 169.254.0.0/16 or `fe80::/10`; among them what clouds tell machines about themselves.
    LinkLocal,
    /// Where clouds tell machines about themselves, by another address.
    Metadata,
    /// Many at once.
    Multicast,
    /// Reserved, or everybody.
    Reserved,
}

impl Refused {
    /// In a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Refused::Unspecified => "an unspecified address",
            Refused::Loopback => "a loopback address",
            Refused::LinkLocal => "a link-local address",
            Refused::Metadata => "an address of a cloud's metadata service",
            Refused::Multicast => "a multicast address",
            Refused::Reserved => "a reserved address",
        }
    }
}

/// Addresses that a Pod of its own network can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodAddresses;

impl Addresses for PodAddresses {
    fn refuses(&self, address: IpAddr) -> Option<Refused> {
        match address {
            IpAddr::V4(address) => refuses_v4(address),
            IpAddr::V6(address) => refuses_v6(address),
        }
    }
}

/// Those of Alibaba and Oracle, and what Azure's machines ask for their certificates and extensions.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];
/// Those of Amazon and Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

fn refuses_v4(address: Ipv4Addr) -> Option<Refused> {
    match address.octets() {
        [0, ..] => Some(Refused::Unspecified),
        [127, ..] => Some(Refused::Loopback),
        [169, 254, ..] => Some(Refused::LinkLocal),
        _ if METADATA_V4.contains(&address) => Some(Refused::Metadata),
        [224..=239, ..] => Some(Refused::Multicast),
        [240..=255, ..] => Some(Refused::Reserved),
        _ => None,
    }
}

fn refuses_v6(address: Ipv6Addr) -> Option<Refused> {
    // An IPv4 address in IPv6 clothes is judged as what is connected to: mapped, compatible, NAT64, 6to4.
    if let Some(inner) = inner_v4(address) {
        return refuses_v4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Refused::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Refused::Loopback),
        [0xfe80..=0xfebf, ..] => Some(Refused::LinkLocal),
        [0xff00..=0xffff, ..] => Some(Refused::Multicast),
        _ if METADATA_V6.contains(&address) => Some(Refused::Metadata),
        _ => None,
    }
}

fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(pair(high, low)),
        [0x2002, high, low, ..] => Some(pair(high, low)),
        _ => None,
    }
}
