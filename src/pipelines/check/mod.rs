//! What is wrong with a request, as far as the object alone and its template tell: the same rules for a review and for a build that no webhook saw, and for every front end.

mod metadata;
pub(crate) use metadata::is_reserved;
mod output;
pub(in crate::pipelines) mod parameters;
pub mod source;
pub(in crate::pipelines) mod steps;

use super::params::Layers;
use super::request::BuildRequest;
use super::settings::Settings;
use crate::api::findings::Findings;

/// Longest name of an object that asks for builds: its runs, claims and labels are named after it.
pub const MAX_NAME: usize = 48;

/// Everything that is wrong with a request before its steps are looked at.
#[must_use]
pub fn request(request: &BuildRequest, layers: &Layers<'_>, settings: &Settings) -> Findings {
    let mut findings = Findings::default();
    metadata::name(request, &mut findings);
    source::check(request, settings.insecure_git, &mut findings);
    output::check(request, &mut findings);
    steps::check(request, &mut findings);
    parameters::check(request, layers, &mut findings);
    metadata::maps(request, &mut findings);
    findings
}

#[cfg(test)]
mod tests;
