//! From what a user asked for to what Tekton runs: one core for every front end.
//!
//! In: a [`request::BuildRequest`] (made from an AgentBuild of any API group), the pipeline templates and steps that
//! ConfigMaps hold ([`templates::TemplatesView`]), and what the platform adds. Out: one Tekton PipelineRun as a JSON
//! value, with the layer every parameter came from, and warnings; or everything that is wrong at once, each fault
//! with its path, the value seen and the remedy. Also the two admission halves of the kind: completing an AgentBuild
//! from its template, and the list of what is wrong with an AgentBuild.
//!
//! ```text
//! ConfigMaps ─► template, step ─► TemplatesView ┐
//! AgentBuild ─► BuildRequest ───────────────────┴─► check ─► params ─► compose ─► PipelineRun, claim, provenance
//! ```
//!
//! Promises: pure; equal inputs give equal bytes, whatever the order of maps; a TaskSpec is passed on as the JSON it
//! was, members nobody knows included; a user's value is data everywhere: it never becomes structure, a script or a
//! reference. No credential is ever read: Secrets are only named.

pub mod agent_build;
pub mod beeai_build;
pub mod catalogue;
pub mod check;
pub mod compose;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod names;
pub mod params;
pub mod reference;
pub mod request;
pub mod settings;
pub mod step;
pub mod template;
pub mod templates;
