//! Secrets and ConfigMaps that the environments of KAOS's objects refer to: once one has changed, the Pods are made again.
//!
//! In: the objects, and what each of what they refer to is in, asked by name. Out: an annotation on the Pod template of their Deployment, and
//! what was seen last in their status. Promises: nothing is watched, and of a Secret nothing but its metadata is read; each is asked for about
//! once a minute, at a second of its own; what is seen for the first time rolls nothing, and neither does a reference that was added or
//! taken away, whose Pods roll by themselves; who cannot be asked changes nothing; those of a namespace take turns.

pub mod memory;
pub mod plan;
pub mod question;
mod stands;

#[cfg(test)]
mod tests;
