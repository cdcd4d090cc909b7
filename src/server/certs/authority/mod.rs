//! The self-managed certificate authority (docs/tasks/certificates.md).
//!
//! In: the Secret [`crate::domain::keys::SECRET_AUTHORITY`], what the webhook configurations hold, the clock. Out: a
//! leaf in the resolver, the roots to publish, and, when the plan says so, a change of the Secret.
//!
//! What happens to the Secret, and what we then do:
//!
//! | somebody … | we … |
//! | --- | --- |
//! | deletes it | create it again: the same authority, and a new one beside it that takes over by the ordinary rotation |
//! | damages it (label kept) | put back what we hold; holding nothing, found a new authority (`AuthorityRepaired`) |
//! | replaces it by a good authority | sign with that one, once every bundle holds it |
//! | replaces it by a bad one, without our label | use nothing of it and never write it (`AuthorityRefused`) |
//! | replaces it by one that is not valid yet | sign nothing with it while we serve another or nothing; ours is rotated at once, without our label it is told (`AuthorityRefused`) |
//! | has it expire while the API server is away | serve on, as long as the leaf is valid and after |
//!
//! In none of these a replica that has a valid pair in memory stops serving it.

pub mod content;
pub mod mint;
pub mod plan;
mod run;
mod store;

#[cfg(test)]
mod tests;

pub use plan::Lifetimes;
pub use run::{SelfManaged, SelfManagedConfig};
