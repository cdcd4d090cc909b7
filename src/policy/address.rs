//! Addresses of Pods and blocks of addresses.
//!
//! In: text, as the API server stores it. Out: addresses and blocks in one form: what is an IPv4 address in IPv6 clothes is that IPv4
//! address, a block begins at its first address. Promise: every text that the API server has ever taken as a block is read as it is read there
//! (leading zeros are decimal).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which of the two kinds of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, in the order in which they are shown.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// The family of an address that [`read`] made.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }
}

/// Reads an address.
#[must_use]
pub fn read(text: &str) -> Option<IpAddr> {
    let address = match text.contains(':') {
        true => IpAddr::V6(sloppy_v6(text)?),
        false => IpAddr::V4(sloppy_v4(text)?),
    };
    Some(address.to_canonical())
}

fn sloppy_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = decimal(parts.next()?)?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// A number in decimal digits, however many zeros stand before it.
fn decimal(digits: &str) -> Option<u8> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some(0),
        number => number.parse().ok(),
    }
}

fn sloppy_v6(text: &str) -> Option<Ipv6Addr> {
    let Some((head, dotted)) = text.rsplit_once(':').filter(|(_, tail)| tail.contains('.')) else {
        return groups(text).parse().ok();
    };
    let [a, b, c, d] = sloppy_v4(dotted)?.octets();
    format!("{}:{a:x}{b:02x}:{c:x}{d:02x}", groups(head)).parse().ok()
}

/// The groups of an IPv6 address without the zeros that stand before each: there may be more than a group has room for.
fn groups(text: &str) -> String {
    let short = |group: &str| match group.trim_start_matches('0') {
        "" if !group.is_empty() => "0".to_owned(),
        digits => digits.to_owned(),
    };
    text.split(':').map(short).collect::<Vec<_>>().join(":")
}

/// A block of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    first: IpAddr,
    length: u8,
}

impl Block {
    /// Reads `address/length`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let length = decimal(length)?;
        if !address.contains(':') {
            let address = sloppy_v4(address)?;
            return (length <= 32).then(|| Self::v4(address, length));
        }
        let address = sloppy_v6(address)?;
        if length > 128 {
            return None;
        }
        let first = Ipv6Addr::from(u128::from(address) & mask128(length));
        // With a shorter mask the mark of the mapping is masked away, too, and it is a block of IPv6 addresses like any other.
        Some(match first.to_ipv4_mapped().filter(|_| length >= 96) {
            Some(first) => Self::v4(first, length - 96),
            None => Self { first: IpAddr::V6(first), length },
        })
    }

    fn v4(address: Ipv4Addr, length: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask32(length))), length }
    }

    /// Every address of a family.
    #[must_use]
    pub fn all_of(family: Family) -> Self {
        match family {
            Family::V4 => Self::v4(Ipv4Addr::UNSPECIFIED, 0),
            Family::V6 => Self { first: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 0 },
        }
    }

    /// Its first address.
    #[must_use]
    pub fn first(self) -> IpAddr {
        self.first
    }

    /// Its last address.
    #[must_use]
    pub fn last(self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from(u32::from(first) | !mask32(self.length))),
            IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from(u128::from(first) | !mask128(self.length))),
        }
    }

    /// The family of its addresses.
    #[must_use]
    pub fn family(self) -> Family {
        Family::of(self.first)
    }

    /// Whether the address, as [`read`] makes it, is in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => u32::from(address) & mask32(self.length) == u32::from(first),
            (IpAddr::V6(first), IpAddr::V6(address)) => u128::from(address) & mask128(self.length) == u128::from(first),
            _ => false,
        }
    }

    /// Whether all of its addresses are in `other`.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        self.length >= other.length && other.contains(self.first)
    }
}

/// The address behind that one, unless it is the last of its family.
#[must_use]
pub fn next(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(one) => u32::from(one).checked_add(1).map(|one| IpAddr::V4(Ipv4Addr::from(one))),
        IpAddr::V6(one) => u128::from(one).checked_add(1).map(|one| IpAddr::V6(Ipv6Addr::from(one))),
    }
}

fn mask32(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

fn mask128(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form() {
        for (text, wanted) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.001", Some("10.0.0.1")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("::ffff:010.0.0.01", Some("10.0.0.1")),
            ("FD00::0001", Some("fd00::1")),
            ("0:0:0:0:000000:ffff:127.1.2.3", Some("127.1.2.3")),
            ("fd00:00000:0000001::0000001", Some("fd00:0:1::1")),
            ("fd00::10000", None),
            ("fd00::00010000", None),
            (":", None),
            (":::", None),
            ("10.0.0", None),
            ("10.0.0.0.1", None),
            ("10.0.0.256", None),
            ("10.0.0.+1", None),
            ("", None),
            ("::g", None),
        ] {
            assert_eq!(read(text).map(|address| address.to_string()).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn blocks_have_one_form() {
        for (text, wanted) in [
            ("10.0.0.5/24", Some("10.0.0.0/24")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("10.1.2.3/32", Some("10.1.2.3/32")),
            ("192.168.010.0/24", Some("192.168.10.0/24")),
            ("::ffff:10.0.0.1/128", Some("10.0.0.1/32")),
            ("::ffff:10.0.0.1/104", Some("10.0.0.0/8")),
            ("::ffff:10.0.0.1/95", Some("::fffe:0:0/95")),
            ("::/0", Some("::/0")),
            ("fd00::1/64", Some("fd00::/64")),
            ("0.0.0.0/0000", Some("0.0.0.0/0")),
            ("10.1.2.3/0000008", Some("10.0.0.0/8")),
            ("00000::/0", Some("::/0")),
            ("00000::000000.0.0.0/00000", Some("::/0")),
            ("fd00:000001::/0064", Some("fd00:1::/64")),
            ("10.0.0.0/00033", None),
            ("fd00::/00129", None),
            ("fd00::/256", None),
            ("10.0.0.0/33", None),
            ("fd00::/129", None),
            ("10.0.0.0", None),
            ("10.0.0.0/", None),
            ("10.0.0.0/+8", None),
            ("/8", None),
        ] {
            assert_eq!(Block::read(text).map(|block| block.to_string()).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn families_do_not_mix() {
        let block = |text| Block::read(text).unwrap();
        assert!(block("0.0.0.0/0").contains(read("10.0.0.1").unwrap()));
        assert!(block("0.0.0.0/0").contains(read("::ffff:10.0.0.1").unwrap()));
        assert!(!block("0.0.0.0/0").contains(read("fd00::1").unwrap()));
        assert!(!block("::/0").contains(read("10.0.0.1").unwrap()));
        assert!(!block("::/0").contains(read("::ffff:10.0.0.1").unwrap()));
        assert!(block("10.1.0.0/16").is_within(block("10.0.0.0/8")));
        assert!(!block("10.0.0.0/8").is_within(block("10.1.0.0/16")));
        assert!(!block("10.0.0.0/8").is_within(block("::/0")));
        assert!(block("10.0.0.0/8").contains(read("10.255.255.255").unwrap()));
        assert!(!block("10.0.0.0/8").contains(read("11.0.0.0").unwrap()));
    }
}
