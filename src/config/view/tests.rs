//! Projection of a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{NamespaceView, PodSecurity, namespace_view};
use crate::config::bounds::TEXT;
use crate::config::defaults::config_map_data;
use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
use crate::config::schema::Platform;
use crate::domain::keys::NAMESPACE_CONFIG_MAPS;
use crate::domain::reason::Reason;
use crate::store::decode::wire::binary::Binary;

fn with_data(name: &str, data: &[(&str, &str)]) -> NamespaceInputs {
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config_maps = BTreeMap::from([(name.to_owned(), ConfigMapInput { data, ..ConfigMapInput::default() })]);
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
    let names = |inputs| view(&inputs).mounted.into_keys().collect::<Vec<_>>();
    let mounted = ["authproxy-routes", "envoy-config", "spiffe-helper-config"];
    assert_eq!(names(with_data("authbridge-config", &[("ISSUER", "x")])), mounted);
    assert_eq!(names(NamespaceInputs::default()), mounted);
}

#[test]
fn environment_values_are_kept_and_absence_is_not_emptiness() {
    let present = view(&with_data("authbridge-config", &[("ISSUER", "x")]));
    assert_eq!(present.authbridge_config.as_ref().map(|data| data["ISSUER"].as_str()), Some("x"));
    assert_eq!(view(&with_data("authbridge-config", &[])).authbridge_config, Some(Arc::default()));
}

#[test]
fn what_the_controller_will_write_counts_before_it_is_written() {
    let fresh = view(&NamespaceInputs::default());
    let made = |name| config_map_data(name, &Platform::built_in()).unwrap();
    assert_eq!(fresh.authbridge_config.as_deref(), Some(&made("authbridge-config")));
    let mut written = NamespaceInputs::default();
    for name in NAMESPACE_CONFIG_MAPS {
        let config_map = ConfigMapInput { kept: true, data: made(name), ..ConfigMapInput::default() };
        written.config_maps.insert(name.to_owned(), config_map);
    }
    assert_eq!(view(&written), fresh, "nothing changes when the controller has been there");
    written.config_maps.values_mut().for_each(|config_map| config_map.data.clear());
    assert_eq!(view(&written), fresh, "ours and out of date: the content it will have counts");
    written.config_maps.values_mut().for_each(|config_map| config_map.kept = false);
    assert_eq!(view(&written).authbridge_config, Some(Arc::default()), "a person's counts as it is");
}

#[test]
fn templates_and_ports_of_the_namespace_reach_what_is_made() {
    let template = with_data("envoy-config", &[("envoy.yaml", "mine")]).config_maps;
    let platform = Platform::built_in().with_templates(&template, None);
    let of = |platform: &Platform, inputs: &NamespaceInputs| namespace_view(platform, "team1", inputs, None).mounted;
    let nothing = NamespaceInputs::default();
    let mine = view(&with_data("envoy-config", &[("envoy.yaml", "mine")])).mounted;
    assert_eq!(of(&platform, &nothing), mine);
    let text = "namespaceOverrides: [proxy]";
    let platform = Platform::parse(text, "config.yaml").unwrap();
    let mut ports = with_data("defaults", &[("config.yaml", "proxy: {adminPort: 9999}")]);
    ports.config_maps.get_mut("defaults").unwrap().is_defaults = true;
    let (own, others) = (of(&platform, &ports), of(&platform, &nothing));
    assert_ne!(own["envoy-config"], others["envoy-config"]);
    assert_eq!(own["authproxy-routes"], others["authproxy-routes"]);
}

/// A process that starts finds it so: what the one before it made from the template stays, and counts as it is, so that no hash changes.
#[test]
fn what_was_made_from_a_template_that_has_become_too_large_counts_as_it_is() {
    let own = |data: &[(&str, &str)]| with_data("envoy-config", data).config_maps;
    let mut copy = with_data("envoy-config", &[("envoy.yaml", "mine")]);
    copy.config_maps.get_mut("envoy-config").unwrap().kept = true;
    let view = |platform: &Platform| namespace_view(platform, "team1", &copy, None);
    let small = Platform::built_in().with_templates(&own(&[("envoy.yaml", "mine")]), None);
    let before = view(&small);
    assert!(!before.resolved.unread && before.resolved.notices.is_empty());
    let text = "x".repeat(TEXT);
    let large = own(&[("envoy.yaml", text.as_str())]);
    let unknown = BTreeMap::from([("envoy-config".to_owned(), ConfigMapInput::too_large())]);
    for template in [&large, &unknown] {
        let platform = Platform::built_in().with_templates(template, None);
        let after = view(&platform);
        assert_eq!(after.mounted, before.mounted);
        assert!(after.resolved.unread, "nothing rolls because of it");
        let told: Vec<_> = after.resolved.notices.iter().map(|notice| (notice.reason, &*notice.text)).collect();
        assert!(told.len() == 1 && told[0].0 == Reason::ConfigOverBound, "{told:?}");
        assert!(told[0].1.starts_with("ConfigMap envoy-config of the operator's namespace is larger than 64 KiB"));
        let nothing = namespace_view(&platform, "team1", &NamespaceInputs::default(), None).mounted;
        assert!(!nothing.contains_key("envoy-config") && nothing.len() == 2, "nothing is made from it: {nothing:?}");
        let ports = Platform::parse("namespaceOverrides: [proxy]", "f").unwrap().with_templates(template, None);
        let mut other = copy.clone();
        other.config_maps.extend(with_data("d", &[("config.yaml", "proxy: {adminPort: 9999}")]).config_maps);
        other.config_maps.get_mut("d").unwrap().is_defaults = true;
        assert_eq!(namespace_view(&ports, "team1", &other, None).mounted, before.mounted);
        // Whoever has seen what it said before knows it, and the others wait until it is small again.
        let seen = view(&Platform::built_in().with_templates(template, Some(&small)));
        assert_eq!((&seen.mounted, seen.resolved.unread, seen.resolved.notices.len()), (&before.mounted, false, 1));
        assert!(view(&Platform::built_in().with_templates(template, Some(&platform))).resolved.unread);
        let again = Platform::built_in().with_templates(&own(&[("envoy.yaml", "mine")]), Some(&platform));
        assert_eq!(view(&again), before);
    }
    // Of the environment no copy is read that we wrote.
    let environment = BTreeMap::from([("authbridge-config".to_owned(), ConfigMapInput::too_large())]);
    let platform = Platform::built_in().with_templates(&environment, None);
    let view = namespace_view(&platform, "team1", &NamespaceInputs::default(), None);
    assert!(view.authbridge_config.is_some_and(|data| !data.is_empty()) && view.resolved.unread);
}

/// kubectl puts a file there that is no UTF-8 text. Copied, it would be an empty ConfigMap in every namespace, with which no sidecar starts.
#[test]
fn a_template_whose_file_is_in_binary_data_changes_nothing_and_is_told() {
    let data = Binary::of(Some(&json!({"envoy.yaml": "//4="}))).entries().collect();
    let unreadable =
        BTreeMap::from([("envoy-config".to_owned(), ConfigMapInput { data, ..ConfigMapInput::default() })]);
    let good = with_data("envoy-config", &[("envoy.yaml", "mine")]);
    let mut copy = good.clone();
    copy.config_maps.get_mut("envoy-config").unwrap().kept = true;
    let view = |platform: &Platform| namespace_view(platform, "team1", &copy, None);
    let (built_in, before) = (Platform::built_in(), Platform::built_in().with_templates(&good.config_maps, None));
    let first = Platform::built_in().with_templates(&unreadable, None);
    for (last, serves, instead, unread) in [
        (None, &before, "what it said before is not known", true),
        (Some(&first), &before, "what it said before is not known", true),
        (Some(&before), &before, "its last good content is used", false),
        (Some(&built_in), &built_in, "nothing of it is used", false),
    ] {
        let platform = Platform::built_in().with_templates(&unreadable, last);
        let after = view(&platform);
        assert_eq!(after.mounted, view(serves).mounted, "{instead}");
        assert_eq!(after.resolved.unread, unread, "{instead}");
        let told: Vec<_> = after.resolved.notices.iter().map(|notice| (notice.reason, &*notice.text)).collect();
        assert!(told.len() == 1 && told[0].0 == Reason::NamespaceConfigUnreadable, "{told:?}");
        let place = "ConfigMap envoy-config of the operator's namespace has its keys in binaryData";
        assert!(told[0].1.starts_with(place) && told[0].1.contains(instead), "{told:?}");
        let again = Platform::built_in().with_templates(&good.config_maps, Some(&platform));
        assert_eq!(view(&again), view(&before), "repaired");
    }
    // An empty one says that there is to be nothing.
    let empty = Platform::built_in().with_templates(&with_data("envoy-config", &[]).config_maps, Some(&before));
    assert!(empty.resolved().notices.is_empty());
}

#[test]
fn labels_are_read_by_value() {
    for (label, level) in [
        (Some("baseline"), PodSecurity::Baseline),
        (Some("restricted"), PodSecurity::Restricted),
        (Some("privileged"), PodSecurity::Privileged),
        (Some("Baseline"), PodSecurity::Restricted),
        (Some(""), PodSecurity::Restricted),
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
