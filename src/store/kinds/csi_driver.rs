//! CSIDriver `csi.spiffe.io`: only its existence counts.

use super::What;
use crate::domain::keys;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// CSIDrivers.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    namespaced: false,
    selections: &[Selection::named(keys::CSI_DRIVER_SPIFFE, page::SMALL, UsedBy::Every)],
    ..Descriptor::built_in("storage.k8s.io", "csidrivers", "CSIDriver", Decode::Common(|_, _| Some(What::CsiDriver)))
};
