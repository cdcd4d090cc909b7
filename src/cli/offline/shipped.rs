//! The templates and steps that come with the program.
//!
//! In: the operator's namespace. Out: what was read of every ConfigMap of the catalogue that stands there as it is shipped, by name. Promise:
//! a process reads them once for each namespace it is asked about, which for a command is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::pipelines::catalogue::{self, Values};
use crate::pipelines::templates::{Entry, read};

/// Names of ConfigMaps, and what was read of each.
type Shipped = Arc<[(String, Option<Entry>)]>;

/// What was read so far, by namespace.
static READ: Mutex<BTreeMap<String, Shipped>> = Mutex::new(BTreeMap::new());

/// The catalogue as an operator in that namespace reads it.
pub(super) fn shipped(namespace: &str) -> Shipped {
    let mut known = READ.lock();
    let entries = known.entry(namespace.to_owned()).or_insert_with(|| {
        let config_maps = catalogue::config_maps(namespace, &Values::default());
        config_maps.into_iter().map(|one| (one.name.clone(), read(&one, namespace))).collect()
    });
    Arc::clone(entries)
}
