//! The Lease by which the original operator of KAOS says that it writes; of every other Lease nothing is read here.

use serde_json::Value;

use super::What;
use crate::domain::keys;
use crate::store::decode::{Small, Whole};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// Leases of that name, in whichever namespace: which of them count is the settings' to say.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::named(keys::LEASE_KAOS_BEFORE, page::SMALL, UsedBy::Controllers)],
    ..Descriptor::built_in(
        "coordination.k8s.io",
        "leases",
        "Lease",
        Decode::Whole(|object| Some(What::Lease(LeaseSeen::of(&object)))),
    )
};

/// A Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseSeen {
    /// `spec.holderIdentity`; empty when it was released.
    pub holder: Box<str>,
    /// `spec.leaseDurationSeconds`.
    pub seconds: u32,
    /// `spec.renewTime` by its holder's clock: compared with others of the same Lease, never with ours.
    pub renewed: Box<str>,
}

/// Bytes that are kept of one text: more than any holder's name has, which may be as long as the API server takes it.
const LONGEST: usize = 512;

/// What holds of a Lease that does not say how long it lasts, and the longest that is believed, in seconds.
const SECONDS: (u32, u64) = (15, 3600);

impl LeaseSeen {
    fn of(object: &Whole) -> Self {
        let spec = object.spec.as_ref().and_then(Small::value);
        let text = |key: &str| {
            let text = spec.and_then(|spec| spec.get(key)?.as_str()).unwrap_or_default();
            text[..text.floor_char_boundary(LONGEST)].into()
        };
        let seconds = spec.and_then(|spec| spec.get("leaseDurationSeconds").and_then(Value::as_u64));
        let seconds = seconds.map_or(SECONDS.0, |seconds| u32::try_from(seconds.min(SECONDS.1)).unwrap_or(SECONDS.0));
        Self { holder: text("holderIdentity"), seconds, renewed: text("renewTime") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kind;
    use crate::store::decode::change_of;

    #[test]
    fn a_lease_says_who_holds_it_and_how_long() {
        let of = |spec: &str| {
            let text = format!(
                r#"{{"metadata": {{"name": "kaos-operator.kaos.tools", "namespace": "n", "uid": "u", "resourceVersion": "7"}}{spec}}}"#
            );
            change_of(Kind::Lease, &text).unwrap().now.unwrap().what.clone()
        };
        let held = of(r#", "spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 30, "renewTime": "t"}"#);
        assert_eq!(held, What::Lease(LeaseSeen { holder: "pod-1".into(), seconds: 30, renewed: "t".into() }));
        assert_eq!(of(""), What::Lease(LeaseSeen { holder: "".into(), seconds: 15, renewed: "".into() }));
        let endless = of(r#", "spec": {"holderIdentity": "x", "leaseDurationSeconds": 99999999999}"#);
        assert_eq!(endless, What::Lease(LeaseSeen { holder: "x".into(), seconds: 3600, renewed: "".into() }));
        let long = of(&format!(r#", "spec": {{"holderIdentity": "{}"}}"#, "é".repeat(100_000)));
        assert!(matches!(long, What::Lease(seen) if seen.holder.starts_with("é") && seen.holder.len() <= LONGEST));
    }
}
