//! Publishing roots in our webhook configurations (design, "Certificates").
//!
//! In: the roots a source wants trusted; the MutatingWebhookConfiguration and ValidatingWebhookConfiguration of our
//! name, watched. Out: `caBundle` in each of their entries that calls our Service (or a URL), what they were observed
//! to hold, and whether everybody who calls us trusts what we serve.
//!
//! Every replica publishes, so that `--roles webhook` alone is complete. That is safe because of the rules in
//! [`plan`], and quiet because nothing is sent when nothing is missing: the replica that made the change writes, the
//! others see it done before their own turn comes.

pub mod plan;
mod publish;
mod read;

#[cfg(test)]
mod tests;

pub use publish::{Publication, Publisher};
