//! What one ConfigMap of a namespace says: the only place where a tenant's configuration is parsed.
//!
//! In: the text. Out: a [`Read`], which says the same under every platform file, so that a text is parsed once and not kept.
//! Promises: the cost depends on the text alone, which [`super::bounds`] bounds; equal texts give equal results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::bounds::{Bound, Limits, Sort, TEXT};
use super::content::digest;
use super::inputs::ConfigMapInput;
use super::namespace::{self, Good};
use crate::api::yaml::{self, Node};
use crate::domain::keys::{CONFIG_MAP_AUTHBRIDGE, CONFIG_MAP_RUNTIME, KEY_CONFIG, WATCHED_CONFIG_MAPS};
use crate::store::decode::wire::binary::{self, BINARY};

/// How many keys of a ConfigMap a notice lists.
pub(super) const KEYS_SHOWN: usize = 5;
/// Why settings under a key of `binaryData` cannot be read.
const IN_BINARY: &str = "it is a key of binaryData, which is not read (kubectl puts a file there that is no UTF-8 text); save the file as UTF-8 and \
                         make the ConfigMap from it anew";
/// What an entry of a list of settings or of a map of texts takes besides its texts, in bytes: estimated from above.
const NODE: usize = 128;

/// What a ConfigMap says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Read {
    /// Key `config.yaml`, where it is there: what it says, or line and reason why it cannot be read.
    pub config: Option<Result<Arc<Good>, (usize, String)>>,
    /// The first keys.
    pub keys: Box<[Box<str>]>,
    /// Its data, where that is read as it is: of `authbridge-config`.
    pub values: Arc<BTreeMap<String, String>>,
}

/// One ConfigMap of a namespace, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// Carries `kagenti.io/defaults=true`.
    pub is_defaults: bool,
    /// Ours and as we wrote it.
    pub kept: bool,
    /// Digest of the present content.
    pub digest: Arc<str>,
    /// What was read of it last; `None` before that.
    pub read: Option<Arc<Read>>,
    /// Why the present content is not read.
    pub over: Option<Bound>,
}

impl Known {
    /// Nothing of it has been read, and it will be.
    #[must_use]
    pub fn is_waited_for(&self, name: &str) -> bool {
        self.read.is_none() && self.over.is_none() && is_read(name, self.is_defaults, self.kept)
    }
}

/// Whether a ConfigMap of that name says anything that is read; of the others only the digest counts. What we wrote ourselves is known
/// without being read.
#[must_use]
pub fn is_read(name: &str, is_defaults: bool, kept: bool) -> bool {
    is_defaults || name == CONFIG_MAP_RUNTIME || (name == CONFIG_MAP_AUTHBRIDGE && !kept)
}

/// With which others a ConfigMap counts.
#[must_use]
pub fn sort(name: &str, is_defaults: bool) -> Sort {
    if is_defaults && !WATCHED_CONFIG_MAPS.contains(&name) { Sort::Defaults } else { Sort::Named }
}

/// Reads one ConfigMap: its `data`, joined by what counts of `binaryData`. Values of one that is `kept` are those that we wrote, and known without it.
#[must_use]
pub fn read(name: &str, (is_defaults, kept): (bool, bool), data: &BTreeMap<String, String>) -> Read {
    let document = if name == CONFIG_MAP_RUNTIME || is_defaults { document(data) } else { None };
    let config: Option<Result<Arc<Good>, (usize, String)>> = document.map(|document| {
        let document = document?;
        let good = if name == CONFIG_MAP_RUNTIME {
            Good::Runtime(namespace::runtime(&document)?)
        } else {
            namespace::defaults(&document)?
        };
        Ok(Arc::new(good))
    });
    let values = if name == CONFIG_MAP_AUTHBRIDGE && !kept { texts(data) } else { BTreeMap::new() };
    let keys = keys(data).take(KEYS_SHOWN).map(Into::into).collect();
    Read { config, keys, values: Arc::new(values) }
}

/// Key `config.yaml`, where it is there: what it holds, or line and reason why it cannot be read.
pub(super) fn document(data: &BTreeMap<String, String>) -> Option<Result<Node, (usize, String)>> {
    match data.get(KEY_CONFIG) {
        Some(text) => Some(yaml::parse(text).map_err(|error| (error.line, error.message))),
        None => binary::has(data, KEY_CONFIG).then(|| Err((1, IN_BINARY.to_owned()))),
    }
}

/// The keys, as people know them, those of `binaryData` among them.
pub(super) fn keys(data: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    data.keys().map(|key| key.strip_prefix(BINARY).unwrap_or(key)).filter(|key| !key.is_empty())
}

/// The data alone.
pub(super) fn texts(data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let texts = data.iter().filter(|(key, _)| !key.starts_with(BINARY));
    texts.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Read {
    /// About how many bytes it takes for as long as it is kept, what is merged from it included.
    #[must_use]
    pub fn weight(&self) -> usize {
        let config = match &self.config {
            Some(Ok(good)) => good.weight(),
            Some(Err((_, message))) => block(message.len()),
            None => 0,
        };
        let values: usize = self.values.iter().map(|(key, value)| NODE + block(key.len()) + block(value.len())).sum();
        let keys: usize = self.keys.iter().map(|key| size_of::<Box<str>>() + block(key.len())).sum();
        block(size_of::<Self>()) + config + values + keys
    }
}

impl Good {
    fn weight(&self) -> usize {
        match self {
            Good::Nothing | Good::Unknown => 0,
            // As it was read, and merged over the layers below.
            Good::Runtime(base) => block(size_of::<Self>()) + 2 * weight(base),
            Good::Defaults { settings, left_out } => {
                let settings: usize = settings.iter().map(|(_, setting)| NODE + 2 * weight(&setting.value)).sum();
                settings + left_out.iter().map(|notice| NODE + block(notice.text.len())).sum::<usize>()
            }
        }
    }
}

/// How many bytes an allocation of `bytes` takes, from above for every allocator that we run with: none hands out less than 32, all
/// have a few of their own, and sizes come in quarters of a power of two.
#[must_use]
pub fn block(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let with_header = (bytes + size_of::<usize>()).max(32);
    with_header.next_multiple_of(((1 << with_header.ilog2()) / 4).max(16))
}

/// How many bytes a value takes: every text is a block of its own, and so is every node of a mapping, which has room for eleven
/// entries; where there are more, nodes may be half empty, and nodes above them lead to them.
#[must_use]
pub fn weight(value: &Value) -> usize {
    size_of::<Value>() + heap(value)
}

fn heap(value: &Value) -> usize {
    match value {
        Value::String(text) => block(text.len()),
        Value::Array(items) => {
            let within = items.iter().map(heap).sum::<usize>();
            block(items.len() * size_of::<Value>()) + within
        }
        Value::Object(members) if !members.is_empty() => {
            const ENTRIES: usize = 11 * (size_of::<String>() + size_of::<Value>());
            let (leaf, above) = (block(ENTRIES + 16), block(ENTRIES + 16 + 12 * size_of::<usize>()));
            let leaves = if members.len() <= 11 { 1 } else { members.len().div_ceil(6) };
            let entries = members.iter().map(|(key, value)| block(key.len()) + heap(value)).sum::<usize>();
            leaf * leaves + above * (leaves - 1).div_ceil(5) + entries
        }
        _ => 0,
    }
}

/// Which ConfigMaps of one namespace are over a bound, oldest first: those that are not read have none.
fn over<'a>(by_age: &'a [(&'a String, &'a ConfigMapInput)]) -> impl Iterator<Item = Option<Bound>> {
    let counted = |(name, one): &(&'a String, &'a ConfigMapInput)| {
        let size = if one.is_without_text { TEXT + 1 } else { one.size() };
        is_read(name, one.is_defaults, one.kept).then(|| (sort(name, one.is_defaults), size))
    };
    Limits::AGENT.over(by_age.iter().map(counted))
}

/// The ConfigMaps of one namespace, read as they lie there. Who keeps none of them from one time to the next has no last good content
/// of what is over a bound.
#[must_use]
pub fn known(config_maps: &BTreeMap<String, ConfigMapInput>) -> BTreeMap<Arc<str>, Known> {
    let mut by_age: Vec<_> = config_maps.iter().collect();
    by_age.sort_by(|(a, one), (b, other)| (&one.created, a).cmp(&(&other.created, b)));
    let one = |((name, one), over): (&(&String, &ConfigMapInput), Option<Bound>)| {
        let read = over.is_none().then(|| Arc::new(read(name, (one.is_defaults, one.kept), &one.data)));
        // Of one without text not even that is known.
        let digest: Arc<str> = if one.is_without_text { Arc::default() } else { digest(&one.data).into() };
        (Arc::from(name.as_str()), Known { is_defaults: one.is_defaults, kept: one.kept, digest, read, over })
    };
    by_age.iter().zip(over(&by_age)).map(one).collect()
}
