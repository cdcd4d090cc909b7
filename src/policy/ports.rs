//! Sets of ports: all ports of all three protocols that NetworkPolicies know, some, or none.
//!
//! Promise: a set has one form, so that two sets are equal when they hold the same ports.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a port is a port of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP, and what an absent protocol means.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Protocol; 3] = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];

    /// As the API spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        }
    }

    /// The protocol that the API spells so.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// First and last port there is.
const EVERY: (u16, u16) = (1, u16::MAX);

/// A set of ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortSet {
    /// By protocol, in the order of [`Protocol::ALL`]: ranges in ascending order, with a gap between any two.
    ranges: [Vec<(u16, u16)>; 3],
}

impl PortSet {
    /// No port.
    pub const NONE: Self = Self { ranges: [Vec::new(), Vec::new(), Vec::new()] };

    /// Every port of every protocol.
    #[must_use]
    pub fn all() -> Self {
        Self { ranges: [vec![EVERY], vec![EVERY], vec![EVERY]] }
    }

    /// Every port of one protocol.
    #[must_use]
    pub fn of_protocol(protocol: Protocol) -> Self {
        Self::range(protocol, EVERY.0, EVERY.1)
    }

    /// The ports from `first` to `last`; none when `last` is lower. Port 0 is no port.
    #[must_use]
    pub fn range(protocol: Protocol, first: u16, last: u16) -> Self {
        let mut set = Self::NONE;
        let first = first.max(EVERY.0);
        if first <= last {
            set.ranges[protocol as usize].push((first, last));
        }
        set
    }

    /// One port.
    #[must_use]
    pub fn one(protocol: Protocol, port: u16) -> Self {
        Self::range(protocol, port, port)
    }

    /// Whether there is no port in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.iter().all(Vec::is_empty)
    }

    /// Whether every port is in it.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ranges.iter().all(|ranges| ranges.as_slice() == [EVERY])
    }

    /// Whether the port is in it.
    #[must_use]
    pub fn contains(&self, protocol: Protocol, port: u16) -> bool {
        self.ranges[protocol as usize].iter().any(|&(first, last)| (first..=last).contains(&port))
    }

    /// Adds the ports of another set.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.ranges.iter_mut().zip(&other.ranges) {
            if !others.is_empty() && own.as_slice() != [EVERY] {
                own.extend(others);
                normalize(own);
            }
        }
    }

    /// The ports of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = Self::NONE;
        for ((out, one), two) in both.ranges.iter_mut().zip(&self.ranges).zip(&other.ranges) {
            let (mut at, mut of) = (0, 0);
            while let (Some(a), Some(b)) = (one.get(at), two.get(of)) {
                let (first, last) = (a.0.max(b.0), a.1.min(b.1));
                if first <= last {
                    out.push((first, last));
                }
                if a.1 < b.1 { at += 1 } else { of += 1 }
            }
        }
        both
    }

    /// The ports that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.and(&other.complement())
    }

    /// Whether every port of this set is in `other`.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.without(other).is_empty()
    }

    fn complement(&self) -> Self {
        let mut rest = Self::NONE;
        for (out, ranges) in rest.ranges.iter_mut().zip(&self.ranges) {
            let mut next = u32::from(EVERY.0);
            for &(first, last) in ranges {
                // Below `first`, which is a port, there is room for a port.
                if let (Ok(from), Some(to)) =
                    (u16::try_from(next), first.checked_sub(1).filter(|&to| u32::from(to) >= next))
                {
                    out.push((from, to));
                }
                next = u32::from(last) + 1;
            }
            if let Ok(from) = u16::try_from(next) {
                out.push((from, EVERY.1));
            }
        }
        rest
    }

    /// Its parts, such as `80/TCP`, `8000-8010/TCP`, `*/UDP`; `*` alone for every port of every protocol.
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        if self.is_all() {
            return vec!["*".to_owned()];
        }
        let mut parts = Vec::new();
        for protocol in Protocol::ALL {
            let name = protocol.as_str();
            parts.extend(self.ranges[protocol as usize].iter().map(|&range| match range {
                EVERY => format!("*/{name}"),
                (first, last) if first == last => format!("{first}/{name}"),
                (first, last) => format!("{first}-{last}/{name}"),
            }));
        }
        parts
    }
}

/// Puts ranges in order and joins those that touch.
fn normalize(ranges: &mut Vec<(u16, u16)>) {
    ranges.sort_unstable();
    let mut kept: usize = 0;
    for at in 1..ranges.len() {
        let (first, last) = ranges[at];
        if u32::from(first) <= u32::from(ranges[kept].1) + 1 {
            ranges[kept].1 = ranges[kept].1.max(last);
        } else {
            kept += 1;
            ranges[kept] = (first, last);
        }
    }
    ranges.truncate(kept + 1);
}

impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            parts if parts.is_empty() => f.write_str("no port"),
            _ if self.is_all() => f.write_str("every port"),
            parts => f.write_str(&parts.join(", ")),
        }
    }
}

impl Serialize for PortSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parts().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[(Protocol, u16, u16)]) -> PortSet {
        let mut set = PortSet::NONE;
        for &(protocol, first, last) in ranges {
            set.add(&PortSet::range(protocol, first, last));
        }
        set
    }

    #[test]
    fn sets_read_as_people_write_ports() {
        use Protocol::{Sctp, Tcp, Udp};
        for (ranges, wanted) in [
            (&[][..], "no port"),
            (&[(Tcp, 80, 80)], "80/TCP"),
            (&[(Tcp, 80, 80), (Tcp, 81, 90), (Udp, 53, 53)], "80-90/TCP, 53/UDP"),
            (&[(Tcp, 1, 65535), (Sctp, 7, 7)], "*/TCP, 7/SCTP"),
            (&[(Tcp, 0, 65535), (Udp, 0, 65535), (Sctp, 1, 65535)], "every port"),
            (&[(Tcp, 9, 8), (Udp, 0, 0)], "no port"),
        ] {
            assert_eq!(set(ranges).to_string(), wanted);
        }
    }

    fn some() -> impl Strategy<Value = PortSet> {
        let edge = prop_oneof![0..20_u16, 65_520..=65_535_u16];
        let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Sctp)];
        proptest::collection::vec((protocol, edge.clone(), edge), 0..6).prop_map(|ranges| set(&ranges))
    }

    proptest! {
        #[test]
        fn sets_are_sets(one in some(), two in some()) {
            let mut sum = one.clone();
            sum.add(&two);
            let (both, rest) = (one.and(&two), one.without(&two));
            for protocol in Protocol::ALL {
                for port in (0..24).chain(65_515..=65_535) {
                    let (a, b) = (one.contains(protocol, port), two.contains(protocol, port));
                    prop_assert_eq!(sum.contains(protocol, port), a || b);
                    prop_assert_eq!(both.contains(protocol, port), a && b);
                    prop_assert_eq!(rest.contains(protocol, port), a && !b);
                }
            }
            prop_assert_eq!(both.is_within(&one), true);
            prop_assert_eq!(one.is_within(&two), one.without(&two).is_empty());
            let mut again = rest;
            again.add(&both);
            prop_assert_eq!(again, one, "one form");
        }
    }
}
