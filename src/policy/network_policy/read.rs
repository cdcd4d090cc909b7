//! A NetworkPolicy read from JSON.
//!
//! In: an object, or its text, as the API server stores it: lists that are null are absent, fields that nobody knows are passed over, defaults may
//! be missing as in a manifest. Out: the policy, or the one field that cannot be read. Promises: never a part of a policy; at most
//! [`MAX_TEXT`] bytes and [`MAX_PARTS`] parts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Addresses, Declarations, NetworkPolicy, Peer, Port, Rule, Which};
use crate::domain::printable::printable;
use crate::policy::address::Block;
use crate::policy::ports::Protocol;
use crate::policy::selector::{Requirement, Selector};

/// Bytes of a policy that are read at most: no API server stores more.
pub const MAX_TEXT: usize = 3 << 20;
/// Rules, peers, ports, exceptions and values of selectors that a policy may have in all.
pub const MAX_PARTS: usize = 50_000;
/// The kind, in messages.
const NAME: &str = "NetworkPolicy";
/// Bytes of a foreign word in a message.
const SHOWN: usize = 80;

/// Why a policy is not judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {policy}: {field}: {problem}")]
pub struct Fault {
    /// `NetworkPolicy` or `ClusterNetworkPolicy`.
    pub kind: &'static str,
    /// Namespace and name, as far as they are known.
    pub policy: String,
    /// The field, as kubectl writes its path.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A field and what is wrong with it.
pub(super) type Wrong = (String, String);

impl NetworkPolicy {
    /// Reads a policy; `namespace` is where it is applied when it does not say.
    ///
    /// # Errors
    /// The first field that cannot be read.
    pub fn read(object: &Value, namespace: &str) -> Result<Self, Fault> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let own = Some(text("/metadata/namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace);
        let name = text("/metadata/name");
        let read = Reader::default().policy(object, own, name);
        read.map_err(|wrong| faulty((NAME, &format!("{own}/{name}")), wrong))
    }

    /// Reads the text of a policy.
    ///
    /// # Errors
    /// When it is too long or no JSON, and as [`NetworkPolicy::read`].
    pub fn read_text(text: &str, namespace: &str) -> Result<Self, Fault> {
        let fault = |problem: String| faulty((NAME, "of that text"), (String::new(), problem));
        if text.len() > MAX_TEXT {
            return Err(fault(format!("longer than {MAX_TEXT} bytes")));
        }
        let object: Value = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
        Self::read(&object, namespace)
    }
}

/// What is wrong with the policy of that kind and title.
pub(super) fn faulty((kind, policy): (&'static str, &str), (field, problem): Wrong) -> Fault {
    Fault { kind, policy: printable(policy, 2 * SHOWN), field, problem }
}

/// Reads parts, and counts them.
#[derive(Default)]
pub(super) struct Reader {
    parts: usize,
}

impl Reader {
    fn policy(&mut self, object: &Value, namespace: &str, name: &str) -> Result<NetworkPolicy, Wrong> {
        if name.is_empty() {
            return Err(("metadata.name".to_owned(), "missing".to_owned()));
        }
        let spec = fields(object.get("spec"), "spec")?;
        let get = |key: &str| spec.and_then(|spec| spec.get(key));
        let selects = self.selector(get("podSelector"), "spec.podSelector")?.unwrap_or_default();
        let ingress = self.rules(get("ingress"), "spec.ingress", "from")?;
        let egress = self.rules(get("egress"), "spec.egress", "to")?;
        let types = entries(get("policyTypes"), "spec.policyTypes")?;
        let mut named = (types.is_empty(), types.is_empty() && !egress.is_empty());
        for (at, one) in types.iter().enumerate() {
            match one.as_str() {
                Some("Ingress") => named.0 = true,
                Some("Egress") => named.1 = true,
                _ => return Err((format!("spec.policyTypes[{at}]"), unknown(one, "Ingress or Egress"))),
            }
        }
        Ok(NetworkPolicy {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            selects,
            ingress: named.0.then_some(ingress),
            egress: named.1.then_some(egress),
            declared: Declarations::read(object, name),
        })
    }

    /// Counts what a policy has, so that none takes for ever.
    pub(super) fn count(&mut self, more: usize, field: &str) -> Result<(), Wrong> {
        self.parts = self.parts.saturating_add(more);
        if self.parts > MAX_PARTS {
            return Err((field.to_owned(), format!("the policy has more than {MAX_PARTS} parts")));
        }
        Ok(())
    }

    fn rules(&mut self, value: Option<&Value>, field: &str, peers: &str) -> Result<Vec<Rule>, Wrong> {
        let list = entries(value, field)?;
        self.count(list.len(), field)?;
        let mut rules = Vec::with_capacity(list.len());
        for (at, entry) in list.iter().enumerate() {
            let at = format!("{field}[{at}]");
            let rule = fields(Some(entry), &at)?;
            let get = |key: &str| rule.and_then(|rule| rule.get(key));
            rules.push(Rule {
                peers: self.each(get(peers), &format!("{at}.{peers}"), Self::peer)?,
                ports: self.each(get("ports"), &format!("{at}.ports"), |_, value, at| port(value, at))?,
            });
        }
        Ok(rules)
    }

    /// The entries of a list; an empty one is the same as none.
    fn each<T>(
        &mut self,
        value: Option<&Value>,
        field: &str,
        one: impl Fn(&mut Self, &Value, &str) -> Result<T, Wrong>,
    ) -> Result<Option<Vec<T>>, Wrong> {
        let list = entries(value, field)?;
        self.count(list.len(), field)?;
        let read: Result<Vec<T>, Wrong> =
            list.iter().enumerate().map(|(at, entry)| one(self, entry, &format!("{field}[{at}]"))).collect();
        Ok(Some(read?).filter(|list| !list.is_empty()))
    }

    fn peer(&mut self, value: &Value, at: &str) -> Result<Peer, Wrong> {
        let peer = fields(Some(value), at)?;
        let get = |key: &str| peer.and_then(|peer| peer.get(key)).filter(|value| !value.is_null());
        let pods = self.selector(get("podSelector"), &format!("{at}.podSelector"))?;
        let namespaces = self.selector(get("namespaceSelector"), &format!("{at}.namespaceSelector"))?;
        match (get("ipBlock"), namespaces, pods) {
            (None, None, Some(pods)) => Ok(Peer::Own(pods)),
            (None, Some(namespaces), pods) => Ok(Peer::In { namespaces, pods: pods.unwrap_or_default() }),
            (Some(block), None, None) => self.addresses(block, &format!("{at}.ipBlock")).map(Peer::Addresses),
            (None, None, None) => Err((at.to_owned(), "names nobody".to_owned())),
            (Some(_), ..) => Err((at.to_owned(), "has an ipBlock beside a selector".to_owned())),
        }
    }

    fn addresses(&mut self, value: &Value, at: &str) -> Result<Addresses, Wrong> {
        let block = |value: Option<&Value>, field: String| Self::block(value.unwrap_or(&Value::Null), &field);
        let within = fields(Some(value), at)?;
        let get = |key: &str| within.and_then(|within| within.get(key));
        let list = entries(get("except"), &format!("{at}.except"))?;
        self.count(list.len(), at)?;
        let except = list.iter().enumerate().map(|(i, one)| block(Some(one), format!("{at}.except[{i}]")));
        let mut except = except.collect::<Result<Vec<_>, _>>()?;
        except.sort_unstable();
        // Each comes before those within it.
        except.dedup_by(|one, before| one.is_within(*before));
        Ok(Addresses { block: block(get("cidr"), format!("{at}.cidr"))?, except })
    }

    /// A block of addresses.
    pub(super) fn block(value: &Value, field: &str) -> Result<Block, Wrong> {
        let read = value.as_str().and_then(Block::read);
        read.ok_or_else(|| (field.to_owned(), unknown(value, "a block of addresses")))
    }

    pub(super) fn selector(&mut self, value: Option<&Value>, at: &str) -> Result<Option<Selector>, Wrong> {
        let Some(selector) = fields(value, at)? else { return Ok(None) };
        let mut requirements = Vec::new();
        let labels = fields(selector.get("matchLabels"), &format!("{at}.matchLabels"))?;
        for (key, value) in labels.into_iter().flatten() {
            self.count(1, at)?;
            // A null is an empty value to the API server.
            let value = match value {
                Value::Null => "",
                value => value.as_str().ok_or_else(|| {
                    let key = printable(key, SHOWN);
                    (format!("{at}.matchLabels[{key}]"), unknown(value, "a text"))
                })?,
            };
            requirements.push(Requirement::In(key.clone(), BTreeSet::from([value.to_owned()])));
        }
        let expressions = format!("{at}.matchExpressions");
        for (i, entry) in entries(selector.get("matchExpressions"), &expressions)?.iter().enumerate() {
            requirements.push(self.expression(entry, &format!("{expressions}[{i}]"))?);
        }
        Ok(Some(Selector::new(requirements)))
    }

    fn expression(&mut self, entry: &Value, at: &str) -> Result<Requirement, Wrong> {
        let expression = fields(Some(entry), at)?;
        let get = |key: &str| expression.and_then(|expression| expression.get(key));
        let Some(key) = get("key").and_then(Value::as_str).filter(|key| !key.is_empty()) else {
            return Err((format!("{at}.key"), "missing".to_owned()));
        };
        let field = format!("{at}.values");
        let list = entries(get("values"), &field)?;
        self.count(1 + list.len(), at)?;
        let values = list.iter().enumerate().map(|(i, value)| {
            value.as_str().map(str::to_owned).ok_or_else(|| (format!("{field}[{i}]"), unknown(value, "a text")))
        });
        let values = values.collect::<Result<BTreeSet<_>, _>>()?;
        let operator = get("operator").unwrap_or(&Value::Null);
        match (operator.as_str(), values.is_empty()) {
            (Some("In"), false) => Ok(Requirement::In(key.to_owned(), values)),
            (Some("NotIn"), false) => Ok(Requirement::NotIn(key.to_owned(), values)),
            (Some("Exists"), true) => Ok(Requirement::Exists(key.to_owned())),
            (Some("DoesNotExist"), true) => Ok(Requirement::DoesNotExist(key.to_owned())),
            (Some("In" | "NotIn"), true) => Err((field, "missing".to_owned())),
            (Some("Exists" | "DoesNotExist"), false) => Err((field, "must not be there".to_owned())),
            _ => Err((format!("{at}.operator"), unknown(operator, "In, NotIn, Exists or DoesNotExist"))),
        }
    }
}

fn port(value: &Value, at: &str) -> Result<Port, Wrong> {
    let port = fields(Some(value), at)?;
    let get = |key: &str| port.and_then(|port| port.get(key)).filter(|value| !value.is_null());
    let protocol = match get("protocol") {
        None => Protocol::Tcp,
        Some(given) => given
            .as_str()
            .and_then(Protocol::of)
            .ok_or_else(|| (format!("{at}.protocol"), unknown(given, "TCP, UDP or SCTP")))?,
    };
    let number = |value: &Value, field: &str| {
        let number = value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|&number| number > 0);
        number.ok_or_else(|| (format!("{at}.{field}"), unknown(value, "a port")))
    };
    let which = match (get("port"), get("endPort")) {
        (None, None) => Which::Every,
        (None, Some(_)) => return Err((format!("{at}.endPort"), "stands without port".to_owned())),
        (Some(Value::String(_)), Some(_)) => {
            return Err((format!("{at}.endPort"), "stands with a named port".to_owned()));
        }
        (Some(Value::String(name)), None) if !name.is_empty() => Which::Named(name.clone()),
        (Some(first), None) => {
            let first = number(first, "port")?;
            Which::Range(first, first)
        }
        (Some(first), Some(last)) => {
            let (first, last) = (number(first, "port")?, number(last, "endPort")?);
            if last < first {
                return Err((format!("{at}.endPort"), "is below port".to_owned()));
            }
            Which::Range(first, last)
        }
    };
    Ok(Port { protocol, which })
}

/// The fields of an object; `None` when it is absent or null.
pub(super) fn fields<'v>(value: Option<&'v Value>, field: &str) -> Result<Option<&'v Map<String, Value>>, Wrong> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields)),
        Some(other) => Err((field.to_owned(), unknown(other, "an object"))),
    }
}

/// The entries of a list; none when it is absent or null.
pub(super) fn entries<'v>(value: Option<&'v Value>, field: &str) -> Result<&'v [Value], Wrong> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(other) => Err((field.to_owned(), unknown(other, "a list"))),
    }
}

pub(super) fn unknown(value: &Value, wanted: &str) -> String {
    match value {
        Value::Null => format!("missing; it is {wanted}"),
        Value::Array(_) | Value::Object(_) => format!("is not {wanted}"),
        value => format!("{} is not {wanted}", printable(&value.to_string(), SHOWN)),
    }
}
