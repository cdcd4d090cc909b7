//! `routes.yaml` of ConfigMap `authproxy-routes`: whom the agents of a namespace call.
//!
//! In: the text, which a tenant writes. Out: [`Routes`]: the places that its entries name, and a sentence for each entry that names none. Promises: no
//! more than [`LARGEST`] bytes are read and no more than [`MOST`] places kept; an entry that cannot be read hides no other; the order of the entries means nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use serde_json::Value;

use crate::api::{syntax, yaml};
use crate::domain::printable::printable;

/// Bytes of a text that are read: with more, nothing is.
pub const LARGEST: usize = 16 * 1024;
/// Places that are kept; those behind them, in their order, are not.
pub const MOST: usize = 64;
/// Bytes of an entry that a sentence shows.
const SHOWN: usize = 80;
/// Entries that name no place which are told one by one.
const TOLD: usize = 8;

/// What the text says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    /// The places that hosts name, each once, in an order of their own.
    pub hosts: Box<[Host]>,
    /// The places at which tokens are exchanged, each once.
    pub tokens: Box<[Host]>,
    /// What is not read, and why, in sentences without a full stop.
    pub left: Box<[Box<str>]>,
}

/// A place that a host names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// Who.
    pub whom: Whom,
    /// The port; where none is written, whichever the place has.
    pub port: Option<u16>,
}

/// Who is at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// A Service of the cluster.
    Service {
        /// Its namespace; `None` is that of the ConfigMap.
        namespace: Option<Box<str>>,
        /// Its name.
        name: Box<str>,
    },
    /// An address.
    Address(IpAddr),
}

impl Routes {
    /// Reads the text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        if text.len() > LARGEST {
            return Self::unread(format!("has {} bytes, more than the {LARGEST} that are read", text.len()));
        }
        let document = match yaml::parse(text) {
            Ok(document) => document.to_json(),
            Err(error) => {
                return Self::unread(format!("line {}: {}", error.line, printable(&error.message, 2 * SHOWN)));
            }
        };
        let entries = match document {
            Value::Null => return Self::default(),
            Value::Array(entries) => entries,
            other => return Self::unread(format!("a list of routes is expected, {} was found", yaml::kind(&other))),
        };
        let (mut hosts, mut tokens, mut left) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (at, entry) in entries.iter().enumerate() {
            for (of, found) in [(&mut hosts, named(at, entry)), (&mut tokens, token(at, entry))] {
                match found {
                    Ok(host) => of.extend(host),
                    Err(why) => {
                        left.insert(why);
                    }
                }
            }
        }
        let over = (hosts.len() + tokens.len()).saturating_sub(MOST);
        let mut left = told(left);
        if over > 0 {
            left.push(format!("it names {over} places more than the {MOST} that are read").into());
        }
        let hosts: Box<[Host]> = hosts.into_iter().take(MOST).collect();
        let tokens = tokens.into_iter().take(MOST - hosts.len()).collect();
        Self { hosts, tokens, left: left.into() }
    }

    fn unread(why: String) -> Self {
        let told: Box<str> = format!("nothing of it is read: {why}").into();
        Self { left: Box::new([told]), ..Self::default() }
    }

    /// Whether it names no place, and has nothing that is not read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The place that an entry names, or why it names none.
fn named(at: usize, entry: &Value) -> Result<Option<Host>, String> {
    let written = entry.get("host").ok_or_else(|| format!("entry {at} has no host"))?;
    let text = written.as_str().ok_or_else(|| format!("host of entry {at} is {}, and no text", yaml::kind(written)))?;
    host(text).map_err(|why| format!("route {} {}", printable(text, SHOWN), why.sentence()))
}

/// The place at which the tokens of an entry are exchanged, or why that is none.
fn token(at: usize, entry: &Value) -> Result<Option<Host>, String> {
    let Some(url) = entry.get("token_url").and_then(Value::as_str).filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    // Nothing of the URL is shown: a password may stand in it.
    Host::of_url(url).map_err(|why| format!("the host in token_url of entry {at} {}", why.sentence()))
}

/// The first sentences, and how many there are behind them.
fn told(left: BTreeSet<String>) -> Vec<Box<str>> {
    let more = left.len().saturating_sub(TOLD);
    let mut told: Vec<Box<str>> = left.into_iter().take(TOLD).map(Into::into).collect();
    if more > 0 {
        told.push(format!("{more} more of its entries name no place either").into());
    }
    told
}

impl Host {
    /// The place that a URL leads to, at its port or that of its scheme; `Ok(None)` is the Pod itself.
    ///
    /// # Errors
    /// When NetworkPolicies cannot open that place.
    pub fn of_url(url: &str) -> Result<Option<Self>, Why> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let written = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        Ok(host(written)?.map(|host| Self { port: host.port.or(Some(default)), ..host }))
    }
}

/// Why a host names no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It stands for several names.
    Pattern,
    /// It is outside of the cluster.
    Outside,
    /// It is an address of a node's own.
    NodesOwn,
    /// Its port is none.
    Port,
    /// It is no host.
    NoName,
}

impl Why {
    /// The rest of a sentence about it.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Why::Pattern => "is a pattern, and NetworkPolicies open places by their whole names",
            Why::Outside => "is a name outside of the cluster, which NetworkPolicies do not know",
            Why::NodesOwn => "is an address that nodes use for themselves",
            Why::Port => "has a port that is none",
            Why::NoName => "is no name of a host",
        }
    }
}

/// The place that a host names; `Ok(None)` is the Pod itself.
fn host(text: &str) -> Result<Option<Host>, Why> {
    if text.contains(['*', '?', '[', '{', '!', '\\']) && !text.starts_with('[') {
        return Err(Why::Pattern);
    }
    let (name, port) = split(text)?;
    if let Ok(address) = name.parse::<IpAddr>() {
        let whom = address_of(address.to_canonical())?;
        return Ok(whom.map(|whom| Host { whom, port }));
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name == "localhost" {
        return Ok(None);
    }
    let parts: Vec<&str> = name.split('.').collect();
    if !parts.iter().all(|part| syntax::is_label(part)) {
        return Err(Why::NoName);
    }
    let (namespace, name) = match parts[..] {
        [name] => (None, name),
        [name, namespace] | [name, namespace, "svc", ..] | [_, name, namespace, "svc", ..] => (Some(namespace), name),
        _ => return Err(Why::Outside),
    };
    Ok(Some(Host { whom: Whom::Service { namespace: namespace.map(Into::into), name: name.into() }, port }))
}

/// Name and port of a host.
fn split(text: &str) -> Result<(&str, Option<u16>), Why> {
    // An address of IPv6 without brackets has colons of its own.
    if text.parse::<IpAddr>().is_ok() {
        return Ok((text, None));
    }
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            // Other brackets than those of an address belong to a pattern.
            let (name, rest) =
                rest.split_once(']').filter(|(name, _)| name.parse::<IpAddr>().is_ok()).ok_or(Why::Pattern)?;
            let port = Some(rest).filter(|rest| !rest.is_empty());
            (name, port.map(|rest| rest.strip_prefix(':').ok_or(Why::NoName)).transpose()?)
        }
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let number = |port: &str| port.parse::<u16>().ok().filter(|port| *port > 0).ok_or(Why::Port);
    Ok((name, port.map(number).transpose()?))
}

/// Link-local addresses are those at which a node tells who may do what in its cloud; loopback is the Pod itself.
fn address_of(address: IpAddr) -> Result<Option<Whom>, Why> {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    match address {
        _ if address.is_loopback() => Ok(None),
        _ if is_link_local || address.is_unspecified() || address.is_multicast() => Err(Why::NodesOwn),
        address => Ok(Some(Whom::Address(address))),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.whom, self.port) {
            (Whom::Service { namespace: None, name }, _) => f.write_str(name),
            (Whom::Service { namespace: Some(namespace), name }, _) => write!(f, "{name}.{namespace}"),
            (Whom::Address(IpAddr::V6(address)), Some(_)) => write!(f, "[{address}]"),
            (Whom::Address(address), _) => write!(f, "{address}"),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        Routes::read(text).hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_host_names_a_service_an_address_or_no_place() {
        for (written, wanted) in [
            ("weather", Ok("weather")),
            ("Weather.team2.SVC.cluster.local.:8080", Ok("weather.team2:8080")),
            ("api.example", Ok("api.example")),
            ("db-0.db.team.svc.cluster.local", Ok("db.team")),
            ("10.1.2.3", Ok("10.1.2.3")),
            ("::ffff:10.1.2.3", Ok("10.1.2.3")),
            ("[fd00::1]:8443", Ok("[fd00::1]:8443")),
            ("fd00::1", Ok("fd00::1")),
            ("[fd00::1]", Ok("fd00::1")),
            ("localhost:1", Ok("")),
            ("127.0.0.1", Ok("")),
            ("*", Err(Why::Pattern)),
            ("*.team2.svc.cluster.local", Err(Why::Pattern)),
            ("{a,b}.team", Err(Why::Pattern)),
            ("[ab].team", Err(Why::Pattern)),
            ("[ab]", Err(Why::Pattern)),
            ("[::1", Err(Why::Pattern)),
            ("api.example.com", Err(Why::Outside)),
            ("1-2-3-4.team.pod.cluster.local", Err(Why::Outside)),
            ("169.254.169.254", Err(Why::NodesOwn)),
            ("fe80::1", Err(Why::NodesOwn)),
            ("0.0.0.0", Err(Why::NodesOwn)),
            ("weather:http", Err(Why::Port)),
            ("weather:0", Err(Why::Port)),
            ("weather:70000", Err(Why::Port)),
            ("http://weather/x", Err(Why::Port)),
            ("we ather", Err(Why::NoName)),
            ("", Err(Why::NoName)),
            ("10.0.0.0/8", Err(Why::NoName)),
        ] {
            let found = host(written).map(|host| host.map(|host| host.to_string()).unwrap_or_default());
            assert_eq!(found, wanted.map(str::to_owned), "{written}");
        }
    }

    #[test]
    fn a_url_names_the_place_of_its_host_at_its_port() {
        for (url, wanted) in [
            ("http://kc.iam.svc:8080/t?x#y", Ok("kc.iam:8080")),
            ("https://u:p@kc.iam", Ok("kc.iam:443")),
            ("otel:4317", Ok("otel:4317")),
            ("HTTPS://[fd00::1]/", Ok("[fd00::1]:443")),
            ("http://169.254.169.254/latest", Err(Why::NodesOwn)),
            ("https://login.example.com", Err(Why::Outside)),
            ("http://localhost:1", Ok("")),
            ("http://", Err(Why::NoName)),
        ] {
            let found = Host::of_url(url).map(|host| host.map(|host| host.to_string()).unwrap_or_default());
            assert_eq!(found, wanted.map(str::to_owned), "{url}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_hides_no_other() {
        let text = "- {host: b, token_url: 'http://kc.iam:8080/t'}\n- 7\n- {host: [x]}\n- {host: '*.x'}\n- {host: a, action: passthrough}\n- {host: b}\n";
        let found = Routes::read(text);
        assert_eq!(hosts(text), ["a", "b"]);
        assert_eq!(found.tokens.iter().map(ToString::to_string).collect::<Vec<_>>(), ["kc.iam:8080"]);
        let left: Vec<&str> = found.left.iter().map(|left| &**left).collect();
        assert_eq!(
            left,
            [
                "entry 1 has no host",
                "host of entry 2 is a list, and no text",
                "route *.x is a pattern, and NetworkPolicies open places by their whole names",
            ]
        );
    }

    #[test]
    fn what_is_no_list_or_too_large_names_nobody_and_is_said() {
        for (text, wanted) in [
            ("routes: [{host: a}]", "a list of routes is expected, a mapping was found"),
            ("- {host: a", "nothing of it is read: line"),
            (&format!("- {{host: a}}\n#{}", "x".repeat(LARGEST)), "more than the 16384"),
        ] {
            let found = Routes::read(text);
            assert!(found.hosts.is_empty() && found.left.len() == 1 && found.left[0].contains(wanted), "{found:?}");
        }
        assert!(Routes::read("").is_empty() && Routes::read("[]\n").is_empty());
    }

    #[test]
    fn no_more_places_are_kept_than_there_may_be_and_no_more_sentences() {
        let many: String = (0..MOST + 3).map(|at| format!("- host: a{at}\n")).collect();
        let found = Routes::read(&many);
        assert_eq!(found.hosts.len(), MOST);
        assert!(found.left[0].contains("names 3 places more"), "{:?}", found.left);
        let wrong: String = (0..TOLD + 5).map(|at| format!("- host: '*.a{at}'\n")).collect();
        let found = Routes::read(&wrong);
        assert!(found.left.len() == TOLD + 1 && found.left[TOLD].starts_with("5 more"), "{:?}", found.left);
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_and_the_order_means_nothing(
            mut entries in proptest::collection::vec("[a-z.:*\\[\\]0-9/%{} ]{0,24}", 0..12)
        ) {
            let text = |entries: &[String]| serde_json::to_string(&entries.iter().map(|host| serde_json::json!({"host": host})).collect::<Vec<_>>()).unwrap();
            let one = Routes::read(&text(&entries));
            entries.reverse();
            let other = Routes::read(&text(&entries));
            prop_assert_eq!(&one.hosts, &other.hosts);
            prop_assert!(one.hosts.len() <= MOST && one.left.len() <= TOLD + 2);
            for host in &one.hosts {
                prop_assert_eq!(super::host(&host.to_string()), Ok(Some(host.clone())), "written as it is read");
            }
        }
    }
}
