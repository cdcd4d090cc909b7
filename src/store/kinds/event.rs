//! Events: written, never read.

use crate::store::{Decode, Descriptor};

/// Events.
pub(super) const DESCRIPTOR: Descriptor = Descriptor::built_in("", "events", "Event", Decode::Written);
