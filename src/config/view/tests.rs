//! Projection of a namespace.

use std::collections::BTreeMap;

use super::{NamespaceView, PodSecurity, namespace_view};
use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
use crate::config::schema::Platform;

fn with_data(name: &str, data: &[(&str, &str)]) -> NamespaceInputs {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config_maps = BTreeMap::from([(name.to_owned(), ConfigMapInput { is_defaults: false, data })]);
    NamespaceInputs { config_maps, ..NamespaceInputs::default() }
}

fn view(inputs: &NamespaceInputs) -> NamespaceView {
    namespace_view(&Platform::built_in(), "team1", inputs, None)
}

#[test]
fn digests_exist_for_mounted_config_maps_only_and_follow_the_data() {
    let digest = |data: &[(&str, &str)]| view(&with_data("envoy-config", data)).mounted["envoy-config"].clone();
    assert_eq!(digest(&[("envoy.yaml", "a")]).len(), 64);
    assert_ne!(digest(&[("envoy.yaml", "a")]), digest(&[("envoy.yaml", "b")]));
    assert_ne!(digest(&[("a", "bc")]), digest(&[("ab", "c")]));
    assert_eq!(digest(&[("a", "1"), ("b", "2")]), digest(&[("b", "2"), ("a", "1")]));
    assert!(view(&with_data("authbridge-config", &[("ISSUER", "x")])).mounted.is_empty());
    assert!(view(&NamespaceInputs::default()).mounted.is_empty());
}

#[test]
fn environment_values_are_kept_and_absence_is_not_emptiness() {
    let present = view(&with_data("authbridge-config", &[("ISSUER", "x")]));
    assert_eq!(present.authbridge_config.as_ref().map(|data| data["ISSUER"].as_str()), Some("x"));
    assert_eq!(view(&with_data("authbridge-config", &[])).authbridge_config, Some(BTreeMap::new()));
    assert_eq!(view(&NamespaceInputs::default()).authbridge_config, None);
}

#[test]
fn labels_are_read_by_value() {
    for (label, level) in [
        (Some("baseline"), PodSecurity::Baseline),
        (Some("restricted"), PodSecurity::Restricted),
        (Some("privileged"), PodSecurity::Privileged),
        (Some("Restricted"), PodSecurity::Privileged),
        (None, PodSecurity::Privileged),
    ] {
        let labels = label.map(|value| ("pod-security.kubernetes.io/enforce".to_owned(), value.to_owned()));
        let inputs = NamespaceInputs { labels: labels.into_iter().collect(), ..NamespaceInputs::default() };
        assert_eq!(view(&inputs).pod_security, level, "{label:?}");
    }
    let labels = BTreeMap::from([("kagenti-enabled".to_owned(), "false".to_owned())]);
    let inputs = NamespaceInputs { labels, ..NamespaceInputs::default() };
    assert_eq!(view(&inputs).enabled_label.as_deref(), Some("false"));
}

#[test]
fn a_namespace_without_layers_shares_the_platforms_configuration() {
    let platform = Platform::built_in();
    let view = namespace_view(&platform, "team1", &NamespaceInputs::default(), None);
    assert!(std::sync::Arc::ptr_eq(&view.resolved, platform.resolved()));
}
