//! What a card is called, and what of a workload's name goes on it.

use crate::domain::workload::WorkloadKind;
use crate::pipelines::names::{LABEL_LIMIT, NAME_LIMIT, fit};

/// The end of the name of a card that was made for a workload of that kind.
fn ending(kind: WorkloadKind) -> String {
    format!("-{}-card", kind.as_str().to_lowercase())
}

/// Name of the card that is made for a workload; of one whose name is too long its beginning and a hash.
#[must_use]
pub fn card_name(kind: WorkloadKind, workload: &str) -> String {
    fit(&format!("{workload}{}", ending(kind)), NAME_LIMIT)
}

/// The workload of that kind whose card would have that name; `None` where the name was shortened or is none of ours.
pub(super) fn workload_of(kind: WorkloadKind, card: &str) -> Option<&str> {
    card.strip_suffix(&*ending(kind)).filter(|workload| !workload.is_empty())
}

/// Value of a label that names a workload.
pub(super) fn label(workload: &str) -> String {
    fit(workload, LABEL_LIMIT)
}
