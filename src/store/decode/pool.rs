//! Equal parts of many objects, kept once.
//!
//! In: changes as they are decoded. Out: the same changes, with what was seen before shared: the namespace; of Pods the owner,
//! the hash, the type, the account and the ports; the reduced specs of templates. Promise: only memory changes, never a value.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use crate::store::{Change, OwnerReference, PodPort, What};

/// Entries that are kept before the first look for those that nobody uses any more.
const LEAST: usize = 64;

/// What was seen before.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Shared<str>,
    owners: Shared<OwnerReference>,
    ports: Shared<[PodPort]>,
}

impl Pool {
    /// Replaces parts of `change` by equal ones that are known.
    pub fn share(&mut self, change: &mut Change) {
        self.texts.share(&mut change.key.namespace);
        let Some(observed) = change.now.as_mut().and_then(Arc::get_mut) else { return };
        match &mut observed.what {
            What::Pod(seen) => {
                seen.controller.iter_mut().for_each(|owner| self.owners.share(owner));
                seen.hash.iter_mut().for_each(|hash| self.texts.share(hash));
                self.texts.share(&mut seen.agent_type);
                if let Some(endpoint) = &mut seen.endpoint {
                    endpoint.account.iter_mut().for_each(|account| self.texts.share(account));
                    self.ports.share(&mut endpoint.ports);
                }
            }
            What::Workload(seen) => {
                seen.template.iter_mut().for_each(|template| self.texts.share(&mut template.spec));
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Shared<T: ?Sized> {
    known: HashSet<Arc<T>>,
    limit: usize,
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), limit: LEAST }
    }
}

impl<T: ?Sized + Eq + Hash> Shared<T> {
    fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.known.get(value) {
            *value = Arc::clone(known);
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.limit = LEAST.max(2 * self.known.len());
        }
        self.known.insert(Arc::clone(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_unused_ones_not_for_long() {
        let mut shared = Shared::<str>::default();
        let (mut a, mut b): (Arc<str>, Arc<str>) = ("x".into(), "x".into());
        shared.share(&mut a);
        shared.share(&mut b);
        assert!(Arc::ptr_eq(&a, &b));
        for number in 0..10_000 {
            shared.share(&mut Arc::from(number.to_string()));
        }
        assert!(shared.known.len() <= 2 * LEAST, "{}", shared.known.len());
        let mut c: Arc<str> = "x".into();
        shared.share(&mut c);
        assert!(Arc::ptr_eq(&a, &c), "what is in use stays");
    }
}
