//! Publishing roots in our webhook configurations.
//!
//! In: the roots a source wants trusted; the MutatingWebhookConfiguration and ValidatingWebhookConfiguration of our
//! name, watched. Out: `caBundle` in each of their entries that calls our Service (or a URL), what they were observed
//! to hold, and whether everybody who calls us trusts what we serve.
//!
//! The holder of the Lease publishes, through the fenced client; every other process observes, because it has to know
//! since when a root is in every bundle. A process with role webhook has no right to patch webhook configurations: who
//! has can have any request sent to himself. The rules in [`plan`] hold without the Lease too, so that neither a
//! replica with an old view nor an older version running beside this one can take away what somebody depends on.

mod covered;
mod machine;
mod objects;
pub mod plan;
mod publication;
mod publish;
mod read;

#[cfg(test)]
mod tests;

pub use covered::covered;
pub use machine::Installed;
pub use publication::Publication;
pub use publish::Publisher;
