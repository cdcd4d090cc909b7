//! What a source asks the publisher for.

use super::root::{Fingerprint, RootCertificate};

/// The roots that callers must trust, as the source sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// All of them, in the order in which they are written.
    pub(super) roots: Vec<RootCertificate>,
    /// Those that what is being served depends on: none, where the source knows no authority of it. `None` while
    /// nothing is served.
    pub(super) serving: Option<Vec<Fingerprint>>,
}

impl Wanted {
    /// Adds a root unless it is there.
    pub(super) fn add(&mut self, certificate: &RootCertificate) {
        if !self.roots.contains(certificate) {
            self.roots.push(certificate.clone());
        }
    }
}
