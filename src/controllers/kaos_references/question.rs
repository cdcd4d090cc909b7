//! What is asked of the API server, and what comes back: data.

use std::sync::Arc;

use crate::controllers::scaffold::lane::{Host, Question};
use crate::store::Kind;

/// What is answered of an object that there is not.
pub const ABSENT: &str = "absent";

/// In which version a Secret or ConfigMap is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionOf {
    /// [`Kind::Secret`] or [`Kind::ConfigMap`].
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Question for VersionOf {
    /// `uid/resourceVersion`, or [`ABSENT`].
    type Fact = Box<str>;

    fn host(&self) -> Host {
        Host::Here(self.namespace.clone())
    }

    fn namespace(&self) -> Arc<str> {
        self.namespace.clone()
    }
}
