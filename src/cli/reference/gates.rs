//! What each feature gate does, for the generated reference.
//!
//! In: the gates of [`Gates::named`]. Out: a sentence for each. Promise: every gate has one, and no other name does.

use crate::config::gates::Gates;

/// Every gate with what it does, in documentation order.
const MEANINGS: &[(&str, &str)] = &[
    ("globalEnabled", "`false`: nothing is injected anywhere"),
    ("envoyProxy", "`false` leaves out `envoy-proxy` and `proxy-init` (mode `envoy-sidecar`)"),
    ("spiffeHelper", "`false` leaves out what gives a Pod its identity from SPIRE, `spiffe-helper` included"),
    ("clientRegistration", "`false` leaves out `kagenti-client-registration`, also where a Pod asks for it"),
    ("injectTools", "`true`: Pods of type `tool` get sidecars, too"),
    (
        "perWorkloadConfigResolution",
        "`true`: values of ConfigMap `authbridge-config` stand in a Pod as they are when it is made; `false`: the kubelet reads them when its containers \
         start",
    ),
    (
        "combinedSidecar",
        "`true`: in mode `envoy-sidecar` one container `authbridge` does what else Envoy, the helper and the registration do",
    ),
];

/// Name, built-in value and meaning of every gate.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, bool, &'static str)> {
    Gates::default().named().into_iter().map(|(name, default)| (name, default, meaning(name)))
}

fn meaning(name: &str) -> &'static str {
    MEANINGS.iter().find(|(known, _)| *known == name).map_or("", |(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_has_a_meaning_and_no_other_name_does() {
        let names: Vec<&str> = rows().map(|(name, ..)| name).collect();
        assert_eq!(MEANINGS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
        assert!(rows().all(|(_, _, meaning)| !meaning.is_empty()));
    }
}
