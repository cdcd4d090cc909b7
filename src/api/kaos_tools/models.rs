//! Which models a ModelAPI offers, and whether one that is asked for is among them.

use super::shape::{Mode, ModelApi};

impl ModelApi {
    /// What it offers, in order: names, `*`, and `<provider>/*`. Empty where nothing is said, as by a configuration alone.
    #[must_use]
    pub fn offered(&self) -> Vec<&str> {
        match self.mode {
            Mode::Proxy => self.proxy.iter().flat_map(|proxy| &proxy.models).map(String::as_str).collect(),
            Mode::Hosted => self.hosted.iter().map(|hosted| hosted.model.as_str()).collect(),
        }
    }
}

/// Whether a model is among those: named exactly, or by `*`, or by `<provider>/*`. `gpt-*` is a name like any other.
#[must_use]
pub fn allows<S: AsRef<str>>(offered: &[S], model: &str) -> bool {
    offered.iter().map(AsRef::as_ref).any(|entry| {
        entry == "*"
            || entry == model
            || entry.strip_suffix('*').is_some_and(|head| head.ends_with('/') && model.starts_with(head))
    })
}
