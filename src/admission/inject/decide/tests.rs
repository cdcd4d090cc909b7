use super::*;
use crate::admission::inject::fixtures;

fn decisions(labels: &[(&str, &str)], gates: Gates) -> Decisions {
    let mut pod = fixtures::pod();
    for (key, value) in labels {
        pod["metadata"]["labels"][*key] = (*value).into();
    }
    sidecars(PodView::new(&pod).unwrap(), &gates)
}

fn is(decision: Decision, inject: bool, by: DecidedBy) {
    assert_eq!(decision, Decision { inject, by });
}

#[test]
fn case_021_gate_envoy_proxy_false_takes_proxy_init_along() {
    let seen = decisions(&[], Gates { envoy_proxy: false, ..Gates::default() });
    is(seen.envoy, false, DecidedBy::FeatureGate);
    is(seen.proxy_init, false, DecidedBy::FeatureGate);
}

#[test]
fn case_022_label_envoy_false_leaves_the_helper() {
    let seen = decisions(&[(keys::LABEL_ENVOY_PROXY, "false")], Gates::default());
    is(seen.envoy, false, DecidedBy::WorkloadLabel);
    is(seen.proxy_init, false, DecidedBy::WorkloadLabel);
    is(seen.spiffe, true, DecidedBy::Default);
}

#[test]
fn case_023_a_gate_beats_its_label() {
    let all = [
        (keys::LABEL_ENVOY_PROXY, "true"),
        (keys::LABEL_SPIFFE_HELPER, "true"),
        (keys::LABEL_CLIENT_REGISTRATION, "true"),
    ];
    let off = Gates { envoy_proxy: false, spiffe_helper: false, client_registration: false, ..Gates::default() };
    let seen = decisions(&all, off);
    for decision in [seen.envoy, seen.spiffe, seen.registration] {
        is(decision, false, DecidedBy::FeatureGate);
    }
}

#[test]
fn case_024_registration_is_asked_for_by_true_alone() {
    for value in ["false", "True", "1"] {
        let seen = decisions(&[(keys::LABEL_CLIENT_REGISTRATION, value)], Gates::default());
        is(seen.registration, false, DecidedBy::Default);
    }
    is(decisions(&[], Gates::default()).registration, false, DecidedBy::Default);
}

#[test]
fn case_025_all_labels_true() {
    let all = [
        (keys::LABEL_ENVOY_PROXY, "true"),
        (keys::LABEL_SPIFFE_HELPER, "true"),
        (keys::LABEL_CLIENT_REGISTRATION, "true"),
    ];
    let seen = decisions(&all, Gates::default());
    for decision in [seen.envoy, seen.proxy_init, seen.spiffe, seen.registration] {
        assert!(decision.inject);
    }
}
