//! The object of ours on whose behalf others are made.

/// The object that asks for something, and owns what is made for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.uid`; empty while the API server has not given one.
    pub uid: String,
}
