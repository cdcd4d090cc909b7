//! Secrets: read by name where they are used, never watched, never kept.

use crate::store::{Decode, Descriptor};

/// Secrets.
pub(super) const DESCRIPTOR: Descriptor = Descriptor::built_in("", "secrets", "Secret", Decode::Written);
