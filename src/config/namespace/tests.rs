//! What a namespace may say, what it may not, and what serves when it says nonsense.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::LastGood;
use crate::config::bounds::{Bound, TEXT};
use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
use crate::config::layers::Layer;
use crate::config::reading::{self, Known};
use crate::config::schema::Platform;
use crate::config::view::{NamespaceView, namespace_view};
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;
use crate::store::decode::wire::binary::Binary;
use crate::store::{Kind, What, change_of};

const RUNTIME: &str = "authbridge-runtime-config";

fn inputs(config_maps: &[(&str, &str)]) -> NamespaceInputs {
    let mut inputs = NamespaceInputs::default();
    for (name, text) in config_maps {
        let data = [("config.yaml".to_owned(), (*text).to_owned())].into();
        inputs.config_maps.insert(
            (*name).to_owned(),
            ConfigMapInput { is_defaults: *name != RUNTIME, kept: false, data, ..ConfigMapInput::default() },
        );
    }
    inputs
}

fn view(config_maps: &[(&str, &str)]) -> NamespaceView {
    namespace_view(&Platform::built_in(), "team1", &inputs(config_maps), None)
}

fn notices(view: &NamespaceView) -> Vec<(Reason, &str)> {
    view.resolved.notices.iter().map(|notice| (notice.reason, notice.text.as_str())).collect()
}

#[test]
fn defaults_lie_over_the_runtime_configuration_in_name_order() {
    let view = view(&[("b", "mode: waypoint"), ("a", "mode: envoy-sidecar"), (RUNTIME, "mode: proxy-sidecar")]);
    let mode = &view.resolved.mode;
    assert_eq!((mode.value, &mode.layer), (Mode::Waypoint, &Layer::NamespaceDefaults("b".into())));
    let shadowed: Vec<_> = mode.shadowed.iter().map(|s| (s.layer.clone(), s.value.as_str())).collect();
    assert_eq!(
        shadowed,
        [(Layer::NamespaceRuntimeConfig, "proxy-sidecar"), (Layer::NamespaceDefaults("a".into()), "envoy-sidecar")]
    );
    assert!(notices(&view).is_empty());
}

#[test]
fn only_the_mode_of_the_runtime_configuration_is_a_setting() {
    let text =
        "mode: proxy-sidecar\nproxy: {uid: 5}\nimages: {envoyProxy: evil}\nn: 1\nmask: 0755\nbig: 9007199254740993\n";
    let view = view(&[(RUNTIME, text)]);
    assert_eq!(view.resolved.proxy, Platform::built_in().resolved().proxy);
    assert_eq!(view.resolved.images.envoy_proxy.value, None);
    assert_eq!(
        view.resolved.runtime_base,
        json!({
            "mode": "proxy-sidecar", "proxy": {"uid": 5}, "images": {"envoyProxy": "evil"},
            "n": 1, "mask": 755, "big": 9_007_199_254_740_993_i64,
        })
    );
    assert!(notices(&view).is_empty());
}

#[test]
fn cases_081_to_084_the_base_is_kept_as_it_is() {
    assert_eq!(view(&[]).resolved.runtime_base, json!({}));
    for (text, base) in [
        ("", json!({})),
        ("{}", json!({})),
        ("pipeline: {inbound: {plugins: []}}\nextra: 1", json!({"pipeline": {"inbound": {"plugins": []}}, "extra": 1})),
        ("listener: {session_api_addr: ':9'}", json!({"listener": {"session_api_addr": ":9"}})),
        ("inbound: {issuer: x}\nbypass: [/a]", json!({"inbound": {"issuer": "x"}, "bypass": ["/a"]})),
        ("pipeline:", json!({"pipeline": null})),
    ] {
        assert_eq!(view(&[(RUNTIME, text)]).resolved.runtime_base, base, "{text}");
    }
}

#[test]
fn an_unknown_mode_is_the_default_mode_with_a_warning() {
    for (name, text) in [(RUNTIME, "mode: proxy-sidecart"), ("d", "mode: proxy-sidecart"), (RUNTIME, "mode: 3")] {
        let view = view(&[(name, text)]);
        assert_eq!(view.resolved.mode.value, Mode::EnvoySidecar);
        assert_eq!(view.resolved.mode.layer, Layer::BuiltIn);
        let seen = notices(&view);
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].0, Reason::UnknownMode);
        assert!(seen[0].1.starts_with(&format!("ConfigMap team1/{name}, key config.yaml")), "{}", seen[0].1);
    }
    // The other keys of that ConfigMap count all the same.
    let view = view(&[("d", "mode: lite\ntrace: {endpoint: 'http://otel'}")]);
    assert_eq!(view.resolved.trace.endpoint.value.as_deref(), Some("http://otel"));
}

#[test]
fn keys_that_are_not_allowed_are_left_out_and_named() {
    let text =
        "images: {envoyProxy: evil}\nmode: waypoint\nrequireNamespaceLabel: true\nobservability: {logLevel: x}\n";
    let view = view(&[("d", text)]);
    assert_eq!(view.resolved.images.envoy_proxy.value, None);
    assert_eq!(view.resolved.mode.value, Mode::Waypoint);
    let seen = notices(&view);
    assert_eq!(
        seen.iter().map(|(reason, _)| *reason).collect::<Vec<_>>(),
        [Reason::KeyWithoutEffect, Reason::OverrideNotAllowed, Reason::OverrideNotAllowed]
    );
    assert!(
        seen[1].1.starts_with("ConfigMap team1/d, key config.yaml, line 1: images.envoyProxy may not"),
        "{}",
        seen[1].1
    );
    assert!(seen[2].1.contains("line 3: requireNamespaceLabel belongs to the platform file"), "{}", seen[2].1);
}

#[test]
fn the_platform_file_decides_what_is_allowed() {
    let platform = Platform::parse("namespaceOverrides: [images.envoyProxy]", "f").unwrap();
    let inputs = inputs(&[("d", "images: {envoyProxy: own, proxyInit: own}"), (RUNTIME, "mode: waypoint")]);
    let view = namespace_view(&platform, "team1", &inputs, None);
    assert_eq!(view.resolved.images.envoy_proxy.value.as_deref(), Some("own"));
    assert_eq!(view.resolved.images.proxy_init.value, None);
    assert_eq!(view.resolved.mode.value, Mode::EnvoySidecar);
    assert_eq!(notices(&view).len(), 2);
}

#[test]
fn case_065_unreadable_text_changes_nothing_and_is_named() {
    for (text, line, part) in [
        ("mode: waypoint\n- a", 2, ""),
        ("- a", 1, "a list was found"),
        ("hello", 1, "a string was found"),
        ("mode: waypoint\nmode: waypoint", 2, "twice"),
        ("mode: waypoint\n---\na: 1", 2, "second document"),
        ("a: 123456789012345678901234567890", 1, "64 bits"),
        ("a: \0", 1, "NUL"),
    ] {
        for name in [RUNTIME, "d"] {
            let view = view(&[(name, text)]);
            assert_eq!(view.resolved.mode.value, Mode::EnvoySidecar, "{text}");
            assert_eq!(view.resolved.runtime_base, json!({}), "{text}");
            let seen = notices(&view);
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert_eq!(seen[0].0, Reason::NamespaceConfigUnreadable);
            let start = format!("ConfigMap team1/{name}, key config.yaml, line {line}: ");
            assert!(seen[0].1.starts_with(&start) && seen[0].1.contains(part), "{}", seen[0].1);
        }
    }
}

#[test]
fn the_last_good_content_serves_until_the_config_map_is_gone() {
    let platform = Platform::built_in();
    let next = |last: &NamespaceView, config_maps: &[(&str, &str)]| {
        namespace_view(&platform, "team1", &inputs(config_maps), Some(&last.last_good))
    };
    let good = view(&[(RUNTIME, "mode: waypoint\nx: 1"), ("d", "trace: {endpoint: 'http://otel'}")]);
    let broken = next(&good, &[(RUNTIME, "mode: ["), ("d", "trace: {endpoint: 3}")]);
    let still = next(&broken, &[(RUNTIME, "mode: ["), ("d", "unknownKey: 3")]);
    for view in [&broken, &still] {
        assert_eq!(view.resolved.mode, good.resolved.mode);
        assert_eq!(view.resolved.trace, good.resolved.trace);
        assert_eq!(view.resolved.runtime_base, good.resolved.runtime_base);
        let seen = notices(view);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.iter().all(|(_, text)| text.ends_with("its last good content is used")), "{seen:?}");
        assert!(!view.resolved.unread, "what it said is known");
    }
    let gone = next(&still, &[]);
    assert_eq!(gone.resolved, view(&[]).resolved);
    let back = next(&gone, &[(RUNTIME, "mode: [")]);
    assert_eq!(back.resolved.mode.layer, Layer::BuiltIn);
    let repaired = next(&still, &[(RUNTIME, "mode: proxy-sidecar")]);
    assert_eq!(repaired.resolved.mode.value, Mode::ProxySidecar);
    assert!(notices(&repaired).is_empty());
}

/// What is over a bound is not read. What it said before serves; where nobody knows that, neither is known what holds in the namespace.
#[test]
fn mend_02_what_is_over_a_bound_serves_as_it_was_and_is_unknown_where_it_was_not() {
    let platform = Platform::built_in();
    let large = format!("mode: waypoint # {}", "x".repeat(TEXT));
    let known = |name: &str, yaml: Option<&str>, over: Option<Bound>| {
        let data = yaml.map(|yaml| [("config.yaml".to_owned(), yaml.to_owned())].into());
        let read = data.map(|data| Arc::new(reading::read(name, (name != RUNTIME, false), &data)));
        BTreeMap::from([(Arc::from(name), Known { is_defaults: name != RUNTIME, read, over, ..Known::default() })])
    };
    for name in [RUNTIME, "d"] {
        // A process that starts, and one that saw it come.
        for last in [None, Some(LastGood::new())] {
            let view = namespace_view(&platform, "team1", &inputs(&[(name, &large)]), last.as_ref());
            let unknown = view.resolved.unknown.as_ref().unwrap();
            assert_eq!(unknown.place, format!("ConfigMap team1/{name}"));
            assert!(unknown.bound.contains("64 KiB") && view.resolved.unread, "{}", unknown.bound);
            assert!(notices(&view)[0].1.contains("Pods that need sidecars are refused"), "{:?}", notices(&view));
        }
        let small = view(&[(name, "mode: waypoint")]);
        let grown = namespace_view(&platform, "team1", &inputs(&[(name, &large)]), Some(&small.last_good));
        assert_eq!((&grown.resolved.unknown, &grown.resolved.mode), (&None, &small.resolved.mode));
        assert!(notices(&grown)[0].1.contains("what it said before is used"), "{:?}", notices(&grown));
        for (before, is_known) in [(Some("mode: waypoint"), true), (Some("mode: ["), false), (None, false)] {
            let maps = known(name, before, Some(Bound::Kept));
            let (resolved, _) = super::resolve(&platform, "team1", &maps, None);
            assert_eq!(resolved.unknown.is_none(), is_known, "{name}: {before:?}");
        }
    }
    let mounted = namespace_view(&platform, "team1", &inputs(&[("envoy-config", &large)]), None);
    let read = BTreeMap::from([(
        "envoy-config".to_owned(),
        ConfigMapInput {
            is_defaults: false,
            ..inputs(&[("envoy-config", &large)]).config_maps.remove("envoy-config").unwrap()
        },
    )]);
    let read =
        namespace_view(&platform, "team1", &NamespaceInputs { config_maps: read, ..NamespaceInputs::default() }, None);
    assert!(mounted.resolved.unknown.is_some(), "labelled, it is read");
    assert_eq!(
        (read.resolved.unknown.clone(), notices(&read).len()),
        (None, 0),
        "what is only mounted may be as large as it likes"
    );
}

/// Whether it is known what a ConfigMap said before it broke: what rolls Pods waits for a person only where it is not.
#[test]
fn what_was_looked_at_before_it_broke_is_known() {
    const BROKEN: &str = "unknownKey: 3";
    let platform = Platform::built_in();
    // What "d" or the runtime configuration held in each look, the first one at the start of the process.
    for (looks, unread) in [
        (&[Some(BROKEN)][..], &[true][..]),
        (&[Some(BROKEN), Some("mode: ["), Some("mode: waypoint"), Some(BROKEN)], &[true, true, false, false]),
        (&[None, Some(BROKEN), Some("mode: [")], &[false, false, false]),
        (&[Some(""), Some(BROKEN)], &[false, false]),
        (&[Some(BROKEN), None, Some(BROKEN)], &[true, false, false]),
    ] {
        for name in ["d", RUNTIME] {
            let broken = if name == RUNTIME { "mode: [" } else { BROKEN };
            let mut known = None;
            let mut told = Vec::new();
            for text in looks {
                let text = text.map(|text| if text == BROKEN { broken } else { text });
                let config_maps: Vec<_> = text.map(|text| (name, text)).into_iter().collect();
                let view = namespace_view(&platform, "team1", &inputs(&config_maps), known.as_ref());
                told.push(view.resolved.unread);
                known = Some(view.last_good);
            }
            assert_eq!(told, unread, "{name}: {looks:?}");
        }
    }
    // Another one that cannot be read does not hide what is known of the first, nor the other way round.
    let start = view(&[("a", BROKEN)]);
    let both = namespace_view(&platform, "team1", &inputs(&[("a", BROKEN), ("b", BROKEN)]), Some(&start.last_good));
    let second = namespace_view(&platform, "team1", &inputs(&[("b", BROKEN)]), Some(&both.last_good));
    assert_eq!((both.resolved.unread, second.resolved.unread), (true, false));
}

#[test]
fn values_that_collide_with_others_leave_out_their_config_map() {
    let view = view(&[
        ("a", "trace: {endpoint: 'http://a'}\nresources:\n  envoyProxy: {limits: {cpu: 10m}}"),
        ("b", "trace: {protocol: grpc}"),
    ]);
    assert_eq!(view.resolved.trace.endpoint.value, None);
    assert!(view.resolved.trace.protocol.value.is_some());
    let seen = notices(&view);
    assert_eq!(seen.len(), 1);
    assert!(
        seen[0].1.starts_with("ConfigMap team1/a, key config.yaml, line 3: resources.envoyProxy: requests.cpu"),
        "{}",
        seen[0].1
    );
}

/// A request above its limit is a fault like any other: nothing changes because of it, and nothing rolls, not even in a process that never saw
/// what was said before.
#[test]
fn values_that_collide_change_nothing_where_it_is_known_what_was_said_before() {
    let platform = Platform::built_in();
    let next = |text: &str, last: Option<&LastGood>| namespace_view(&platform, "team1", &inputs(&[("d", text)]), last);
    let text = "mode: waypoint\nresources: {envoyProxy: {limits: {cpu: 1}}}";
    let collides = "mode: proxy-sidecar\nresources: {envoyProxy: {requests: {cpu: 2}, limits: {cpu: 1}}}";
    let good = next(text, None);
    let during = next(collides, Some(&good.last_good));
    let still = next("resources: {envoyProxy: {limits: {cpu: 1m}}}", Some(&during.last_good));
    let broken = next("mode: [", Some(&still.last_good));
    for view in [&during, &still, &broken] {
        assert_eq!((&view.resolved.mode, &view.resolved.resources), (&good.resolved.mode, &good.resolved.resources));
        let told = notices(view);
        assert!(told.len() == 1 && told[0].1.ends_with("; its last good content is used"), "{told:?}");
        assert!(!view.resolved.unread, "what it said is known");
    }
    let repaired = next("mode: proxy-sidecar", Some(&still.last_good));
    assert_eq!((repaired.resolved.mode.value, notices(&repaired).len()), (Mode::ProxySidecar, 0));
    // A process that starts, and one that saw it come.
    for (last, unread) in [(None, true), (Some(LastGood::new()), false)] {
        let first = next(collides, last.as_ref());
        let again = next(collides, Some(&first.last_good));
        for view in [first, again] {
            assert_eq!((&view.resolved.mode.layer, view.resolved.unread), (&Layer::BuiltIn, unread));
            assert!(notices(&view)[0].1.ends_with("; the whole ConfigMap is left out"), "{:?}", notices(&view));
        }
    }
    // The platform file changed, so that what was good collides, too; it serves again once the platform file is as before.
    let raised = Platform::parse("resources: {envoyProxy: {requests: {cpu: 1500m}, limits: {cpu: 2}}}", "f").unwrap();
    let left_out = namespace_view(&raised, "team1", &inputs(&[("d", text)]), Some(&good.last_good));
    assert_eq!((&left_out.resolved.mode.layer, left_out.resolved.unread), (&Layer::BuiltIn, false));
    assert_eq!(next(text, Some(&left_out.last_good)).resolved, good.resolved);
}

#[test]
fn resources_of_several_layers_merge_by_quantity() {
    let view = view(&[
        ("a", "resources: {envoyProxy: {limits: {cpu: 1, memory: 1Gi}}}"),
        ("b", "resources: {envoyProxy: {limits: {cpu: 2}}}"),
    ]);
    let resources = &view.resolved.resources.envoy_proxy;
    assert_eq!(
        resources.value,
        json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "50m", "memory": "64Mi"}})
    );
    assert_eq!(resources.layer, Layer::NamespaceDefaults("b".into()));
}

#[test]
fn config_maps_without_the_key_or_the_label_are_no_layer() {
    let mut without = inputs(&[("d", "mode: waypoint"), ("authbridge-config", "mode: waypoint")]);
    for config_map in without.config_maps.values_mut() {
        config_map.is_defaults = false;
    }
    let mut other_key = ConfigMapInput { is_defaults: true, ..ConfigMapInput::default() };
    other_key.data.insert("other.yaml".to_owned(), "mode: waypoint".to_owned());
    without.config_maps.insert("e".to_owned(), other_key);
    let view = namespace_view(&Platform::built_in(), "team1", &without, None);
    let mut resolved = (*view.resolved).clone();
    assert_eq!(std::mem::take(&mut resolved.notices).len(), 1, "the labelled one is told of");
    assert_eq!(resolved, **Platform::built_in().resolved());
}

#[test]
fn the_runtime_configuration_is_never_read_as_defaults() {
    let mut labelled = inputs(&[(RUNTIME, "mode: waypoint\npipeline: {}")]);
    for config_map in labelled.config_maps.values_mut() {
        config_map.is_defaults = true;
    }
    let view = namespace_view(&Platform::built_in(), "team1", &labelled, None);
    assert_eq!(view.resolved.mode.layer, Layer::NamespaceRuntimeConfig);
    assert!(notices(&view).is_empty());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_namespace_unservable(
        runtime in "[-a-e0-9:&*!\\[\\]{},.'\" \n]{0,60}",
        defaults in "(mode|trace|spiffe|resources)?:? ?[-a-z0-9:\\[\\]{},.'\" \n]{0,60}",
    ) {
        let view = view(&[(RUNTIME, &runtime), ("d", &defaults)]);
        proptest::prop_assert!(view.resolved.runtime_base.is_object());
        proptest::prop_assert!(crate::config::layers::conflicts(&view.resolved).is_empty());
    }
}

#[test]
fn a_labelled_config_map_without_the_key_is_told() {
    let with = |name: &str, keys: &[&str]| {
        let mut inputs = NamespaceInputs::default();
        let data = keys.iter().map(|key| ((*key).to_owned(), "mode: waypoint".to_owned())).collect();
        inputs.config_maps.insert(
            name.to_owned(),
            ConfigMapInput { is_defaults: true, kept: false, data, ..ConfigMapInput::default() },
        );
        namespace_view(&Platform::built_in(), "team1", &inputs, None)
    };
    let seen = with("team-defaults", &["config.yml", "mode"]);
    let told = notices(&seen);
    assert_eq!((told.len(), told[0].0), (1, Reason::NamespaceConfigUnreadable));
    for part in ["team1/team-defaults", "no key config.yaml", "config.yml, mode"] {
        assert!(told[0].1.contains(part), "{told:?}");
    }
    assert!(notices(&with("empty", &[]))[0].1.contains("no key at all"));
    // An earlier operator labels this one, whose keys are others.
    assert!(notices(&with("authbridge-config", &["KEYCLOAK_URL"])).is_empty());
    assert!(notices(&with(RUNTIME, &["config.yml"]))[0].1.contains("has no key config.yaml (it has config.yml)"));
    assert!(notices(&with(RUNTIME, &[])).is_empty(), "an empty one says nothing");
}

/// Whoever may write an address may write a password in it; whoever reads a status, a warning or an Event is told neither.
#[test]
fn a_password_in_an_address_stands_in_no_notice_and_in_no_field() {
    let text = |user: &str| {
        let address = |place: &str| format!("http://{user}:canary@{place}");
        format!(
            "trace: {{endpoint: '{}'}}\ntokenExchange: {{tokenUrl: '{}', defaultAudience: '{}', defaultScopes: ['{}']}}\n",
            address("otel:4318"),
            address("idp/token"),
            address("idp"),
            address("scope"),
        )
    };
    let both = view(&[("a", &text("weaker")), ("b", &text("stronger"))]);
    let endpoint = both.resolved.trace.endpoint.value.as_deref();
    assert_eq!(endpoint, Some("http://stronger:canary@otel:4318"), "what Pods are told stays");
    let lines: Vec<String> = both.resolved.fields().map(|shown| format!("{shown:?}")).collect();
    assert!(lines.iter().all(|line| !line.contains("canary")), "{lines:#?}");
    let addresses = lines.iter().filter(|line| line.contains("http://…@")).count();
    assert_eq!((addresses, notices(&both).len()), (4, 0), "{lines:#?}");
    for text in [
        "trace: {endpoint: 'grpc://user:canary@otel:4317'}",
        "trace: {endpoint: 'http://user:canary x@otel:4317'}",
        "trace: {endpoint: 'http://user:canary/x@otel:4317'}",
        "tokenExchange: {tokenUrl: 'http://user:canary x@idp'}",
        "trace: {protocol: 'http://user:canary@otel:4317'}",
        "proxy: {uid: 'http://user:canary@idp'}",
        "spiffe: {trustDomain: 'https://user:canary@idp'}",
    ] {
        let view = view(&[("a", text)]);
        let seen = notices(&view);
        assert_eq!(seen.len(), 1, "{text}: {seen:?}");
        assert!(seen[0].1.contains('…') && !seen[0].1.contains("canary"), "{text}: {seen:?}");
    }
}

/// A file in UTF-16 that kubectl made a ConfigMap of: it is there, and its text is not. A file and an event take the same way.
#[test]
fn settings_in_binary_data_change_nothing_and_are_told() {
    let object = |name: &str, binary: &Value| {
        let labels = if name == RUNTIME { json!({}) } else { json!({"kagenti.io/defaults": "true"}) };
        json!({"metadata": {"name": name, "namespace": "team1", "labels": labels}, "data": {"a": "x"}, "binaryData": binary})
    };
    let of_file = |object: &Value| {
        let mut data: BTreeMap<_, _> = [("a".to_owned(), "x".to_owned())].into();
        data.extend(Binary::of(object.get("binaryData")).entries());
        data
    };
    for name in [RUNTIME, "d"] {
        let utf16 = object(name, &json!({"config.yaml": "//5tAG8A\n"}));
        let mut inputs = inputs(&[(name, "")]);
        inputs.config_maps.get_mut(name).unwrap().data = of_file(&utf16);
        let good = view(&[(name, "mode: waypoint")]);
        for (last, is_known) in [(None, false), (Some(&good.last_good), true)] {
            let view = namespace_view(&Platform::built_in(), "team1", &inputs, last);
            let told = notices(&view);
            assert!(told.len() == 1 && told[0].0 == Reason::NamespaceConfigUnreadable, "{told:?}");
            let says = format!("ConfigMap team1/{name}, key config.yaml, line 1: it is a key of binaryData");
            assert!(told[0].1.starts_with(&says), "{}", told[0].1);
            assert_eq!((view.resolved.unread, view.resolved.mode == good.resolved.mode), (!is_known, is_known));
        }
        // Another key is named like any other.
        let other = object(name, &json!({"config.yml": "//4="}));
        inputs.config_maps.get_mut(name).unwrap().data = of_file(&other);
        let view = namespace_view(&Platform::built_in(), "team1", &inputs, None);
        assert!(notices(&view)[0].1.contains("(it has a, config.yml)"), "{:?}", notices(&view));
    }
    // What is mounted counts as it is, whichever way it came.
    let digest = |value: &str| {
        let object = object("envoy-config", &json!({"envoy.bin": value}));
        let change = change_of(Kind::ConfigMap, &object.to_string()).unwrap();
        let Some(What::ConfigMap(seen)) = change.now.map(|now| now.what.clone()) else { panic!("a ConfigMap") };
        let input = ConfigMapInput { data: of_file(&object), ..ConfigMapInput::default() };
        let known = reading::known(&BTreeMap::from([("envoy-config".to_owned(), input)]));
        assert_eq!(known["envoy-config"].digest, seen.digest);
        assert_eq!(seen.data.keys().map(String::as_str).collect::<Vec<_>>(), ["a"]);
        seen.digest
    };
    assert_ne!(digest("AAE="), digest("AAI="));
    // Nobody takes a value from there.
    let values = reading::read("authbridge-config", (false, false), &of_file(&object("c", &json!({"b": ""})))).values;
    assert_eq!(values.keys().map(String::as_str).collect::<Vec<_>>(), ["a"]);
}
