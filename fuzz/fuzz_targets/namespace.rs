//! ConfigMaps of a namespace. In: texts, divided by lines of `%%`: the platform file (the built-in one when it is
//! refused), `authbridge-runtime-config`, and any number of ConfigMaps with defaults. Laws: no text makes a namespace
//! unservable; a view made again, with or without the one before, is the same; a ConfigMap that becomes unreadable
//! changes no value; a key that a namespace may not set keeps the platform's value.
#![no_main]

use std::collections::BTreeMap;

use drawbridge::config::inputs::{ConfigMapInput, NamespaceInputs};
use drawbridge::config::resolved::Resolved;
use drawbridge::config::schema::Platform;
use drawbridge::config::schema::keys::KEYS;
use drawbridge::config::view::namespace_view;
use drawbridge::domain::keys::{CONFIG_MAP_RUNTIME, KEY_CONFIG, SIDECAR_FIXED_PORTS};
use libfuzzer_sys::fuzz_target;

/// No YAML.
const BROKEN: &str = "{a: [";

fuzz_target!(|data: &[u8]| {
    let mut texts = drawbridge_fuzz::text(data).split("\n%%\n");
    let platform = texts.next().and_then(|text| Platform::parse(text, "file.yaml").ok());
    let platform = platform.unwrap_or_else(Platform::built_in);
    let mut inputs = NamespaceInputs::default();
    for (index, text) in texts.take(6).enumerate() {
        let (name, is_defaults) =
            if index == 0 { (CONFIG_MAP_RUNTIME.to_owned(), false) } else { (format!("defaults-{index}"), true) };
        let data = BTreeMap::from([(KEY_CONFIG.to_owned(), text.to_owned())]);
        inputs.config_maps.insert(name, ConfigMapInput { is_defaults, data, ..ConfigMapInput::default() });
    }

    let view = namespace_view(&platform, "team1", &inputs, None);
    servable(&platform, &view.resolved);
    assert_eq!(view.resolved, namespace_view(&platform, "team1", &inputs, None).resolved);
    assert_eq!(view.resolved, namespace_view(&platform, "team1", &inputs, Some(&view.last_good)).resolved);

    let mut broken = inputs.clone();
    for name in view.last_good.keys() {
        if let Some(config_map) = broken.config_maps.get_mut(name.as_ref()) {
            config_map.data.insert(KEY_CONFIG.to_owned(), BROKEN.to_owned());
        }
    }
    let during = namespace_view(&platform, "team1", &broken, Some(&view.last_good));
    assert_eq!(values(&view.resolved), values(&during.resolved), "an unreadable ConfigMap changes something");
    let afterwards = namespace_view(&platform, "team1", &inputs, Some(&during.last_good));
    assert_eq!(view.resolved, afterwards.resolved);
});

/// Everything but the notices.
fn values(resolved: &Resolved) -> Resolved {
    Resolved { notices: Vec::new(), ..resolved.clone() }
}

fn servable(platform: &Platform, resolved: &Resolved) {
    assert!(resolved.runtime_base.is_object());
    let ports = [resolved.proxy.port.value, resolved.proxy.inbound_port.value, resolved.proxy.admin_port.value];
    for (index, port) in ports.iter().enumerate() {
        assert!(*port >= 1024 && !ports[..index].contains(port) && !SIDECAR_FIXED_PORTS.contains(port), "{port}");
    }
    for key in KEYS.iter().filter(|key| key.is_overridable() && !platform.namespace_may_set(key.path)) {
        let value = |resolved| key.shown(resolved).map(|shown| shown.value);
        assert_eq!(value(resolved), value(platform.resolved()), "{} was set by a namespace", key.path);
    }
}
