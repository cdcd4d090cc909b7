//! Name constraints (RFC 5280, 4.2.1.10). In: an authority's constraints and a certificate below it. Out: whether its names are allowed. URI, DNS and
//! IP constraints are applied; constraints of other kinds refuse the chain, since names that they would bind are not read here.

use x509_parser::extensions::{GeneralName, NameConstraints};

use super::Certificate;

/// What an authority may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraints {
    permitted: Vec<Tree>,
    excluded: Vec<Tree>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Uri(String),
    Host(String),
    /// Address and mask.
    Address(Vec<u8>, Vec<u8>),
    Other,
}

impl Constraints {
    pub(super) fn of(constraints: &NameConstraints<'_>) -> Self {
        let trees = |subtrees: &Option<Vec<_>>| {
            let subtrees: &[x509_parser::extensions::GeneralSubtree<'_>] = subtrees.as_deref().unwrap_or_default();
            subtrees.iter().map(|subtree| Tree::of(&subtree.base)).collect()
        };
        Self { permitted: trees(&constraints.permitted_subtrees), excluded: trees(&constraints.excluded_subtrees) }
    }

    /// Whether every name of `below` is allowed.
    pub(super) fn allow(&self, below: &Certificate) -> bool {
        if self.permitted.iter().chain(&self.excluded).any(|tree| *tree == Tree::Other) {
            return false;
        }
        let uris = below.uris.iter().all(|uri| {
            let host = host_of(uri);
            let within = |tree: &Tree| match tree {
                Tree::Uri(base) => Some(host.as_ref().map(|host| in_uri_tree(host, base))),
                _ => None,
            };
            self.allows(within)
        });
        let hosts = below.hosts.iter().all(|host| {
            let within = |tree: &Tree| match tree {
                // A wildcard stands for names on both sides of a border: not decided.
                Tree::Host(_) if host.contains('*') => Some(None),
                Tree::Host(base) => Some(Some(in_host_tree(host, base))),
                _ => None,
            };
            self.allows(within)
        });
        let addresses = below.addresses.iter().all(|address| {
            let within = |tree: &Tree| match tree {
                Tree::Address(base, mask) if base.len() == address.len() => {
                    let same =
                        address.iter().zip(base).zip(mask).all(|((one, other), mask)| one & mask == other & mask);
                    Some(Some(same))
                }
                Tree::Address(..) => Some(Some(false)),
                _ => None,
            };
            self.allows(within)
        });
        uris && hosts && addresses
    }

    /// `within` says of a tree: none when it is of another kind than the name; some none when it cannot be decided.
    fn allows(&self, within: impl Fn(&Tree) -> Option<Option<bool>>) -> bool {
        let excluded = self.excluded.iter().filter_map(&within).any(|inside| inside != Some(false));
        let mut permitted = self.permitted.iter().filter_map(&within).peekable();
        let bound = permitted.peek().is_some();
        !excluded && (!bound || permitted.any(|inside| inside == Some(true)))
    }
}

impl Tree {
    fn of(name: &GeneralName<'_>) -> Self {
        match name {
            GeneralName::URI(base) => Self::Uri(base.to_ascii_lowercase()),
            GeneralName::DNSName(base) => Self::Host(base.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) if matches!(bytes.len(), 8 | 32) => {
                let (address, mask) = bytes.split_at(bytes.len() / 2);
                Self::Address(address.to_vec(), mask.to_vec())
            }
            _ => Self::Other,
        }
    }
}

/// The host of a URI in lower case; none when it has none or it is an address.
fn host_of(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let last = host.rsplit('.').next().unwrap_or_default();
    let address = host.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit());
    (!host.is_empty() && !address).then(|| host.to_ascii_lowercase())
}

/// A URI tree is a host, or with a leading dot everything below it; an empty one is everything.
fn in_uri_tree(host: &str, base: &str) -> bool {
    if base.starts_with('.') {
        host.len() > base.len() && host.ends_with(base)
    } else {
        base.is_empty() || host == base
    }
}

/// A DNS tree is a host and everything below it; an empty one is everything.
fn in_host_tree(host: &str, base: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let base = base.strip_prefix('.').unwrap_or(base);
    base.is_empty() || host == base || host.strip_suffix(base).is_some_and(|rest| rest.ends_with('.'))
}
