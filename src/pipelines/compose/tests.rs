//! Cases of composition (C; docs/cases.md), by number, and the laws of composition.
//!
//! Elsewhere: C18 and C19 need Tekton; the half of C20 that is Tekton's own message too. C16 stands in `names`.

mod cases;
mod laws;
mod rulings;

use crate::api::findings::Findings;
use crate::domain::reason::Reason;

/// The reasons of all faults.
fn kinds(findings: &Findings) -> Vec<Reason> {
    findings.faults.iter().chain(&findings.content).map(|fault| fault.reason).collect()
}
