//! Laws of the resolver, on random layers.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Field, Layer, lay};
use crate::api::yaml;
use crate::config::resolved::Resolved;
use crate::config::schema::{Settings, walk};

/// Keys whose layers replace each other, with values that are told apart.
const SAMPLES: [(&str, [&str; 3]); 6] = [
    ("mode", ["envoy-sidecar", "proxy-sidecar", "waypoint"]),
    ("spiffe.trustDomain", ["a.example", "b.example", "c.example"]),
    ("proxy.uid", ["2001", "2002", "2003"]),
    ("trace.samplingRatio", ["0.1", "0.2", "0.3"]),
    ("tokenExchange.defaultScopes", ["[a]", "[a, b]", "[]"]),
    ("images.envoyProxy", ["x:1", "x:2", "x:3"]),
];

/// Which sample each key takes in one layer.
type Choices = Vec<Option<usize>>;

fn choices() -> impl Strategy<Value = Choices> {
    prop::collection::vec(prop::option::of(0..3_usize), SAMPLES.len())
}

fn settings(choices: &Choices, reversed: bool) -> Settings {
    let mut lines: Vec<String> = SAMPLES
        .iter()
        .zip(choices)
        .filter_map(|((path, samples), choice)| Some((path, samples[(*choice)?])))
        .map(|(path, sample)| match path.split_once('.') {
            Some((above, below)) => format!("{above}: {{{below}: {sample}}}\n"),
            None => format!("{path}: {sample}\n"),
        })
        .collect();
    if reversed {
        lines.reverse();
    }
    let walked = walk(&yaml::parse(&lines.concat()).unwrap());
    assert!(walked.faults.is_empty(), "{:?}", walked.faults);
    walked.settings
}

fn layer(index: usize) -> Layer {
    Layer::NamespaceDefaults(Arc::from(format!("layer-{index}")))
}

fn laid(stack: &[Choices], reversed: bool) -> Resolved {
    let mut resolved = Resolved::built_in();
    for (index, choices) in stack.iter().enumerate() {
        lay(&mut resolved, &layer(index), &settings(choices, reversed));
    }
    resolved
}

proptest! {
    #[test]
    fn provenance_names_the_strongest_layer_that_set_the_value(stack in prop::collection::vec(choices(), 0..5)) {
        let resolved = laid(&stack, false);
        for (number, (path, samples)) in SAMPLES.iter().enumerate() {
            let setters: Vec<usize> = (0..stack.len()).filter(|index| stack[*index][number].is_some()).collect();
            let shown = resolved.fields().find(|field| field.path == *path).unwrap();
            let Some((strongest, weaker)) = setters.split_last() else {
                prop_assert_eq!(shown.layer, &Layer::BuiltIn);
                prop_assert!(shown.shadowed.is_empty());
                continue;
            };
            prop_assert_eq!(shown.layer, &layer(*strongest));
            prop_assert_eq!(shown.value.as_str(), samples[stack[*strongest][number].unwrap()]);
            let shadowed: Vec<_> = shown.shadowed.iter().map(|value| value.layer.clone()).collect();
            prop_assert_eq!(shadowed, weaker.iter().map(|index| layer(*index)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_of_keys_in_a_layer_does_not_matter(stack in prop::collection::vec(choices(), 0..4)) {
        prop_assert_eq!(laid(&stack, false), laid(&stack, true));
    }

    #[test]
    fn layers_that_set_different_keys_commute(first in choices(), second in choices()) {
        let second: Choices =
            first.iter().zip(second).map(|(first, second)| second.filter(|_| first.is_none())).collect();
        let (mut there, mut back) = (Resolved::built_in(), Resolved::built_in());
        for resolved_in_order in [(&mut there, [(0, &first), (1, &second)]), (&mut back, [(1, &second), (0, &first)])] {
            let (resolved, order) = resolved_in_order;
            for (index, choices) in order {
                lay(resolved, &layer(index), &settings(choices, false));
            }
        }
        prop_assert_eq!(there, back);
    }
}

#[test]
fn the_built_in_value_is_never_listed_as_shadowed() {
    let field =
        Field::built_in(1).over(Layer::PlatformFile, 2, i32::to_string).over(Layer::PodAnnotation, 3, i32::to_string);
    assert_eq!(field.value, 3);
    assert_eq!(field.shadowed.len(), 1);
    assert_eq!((&field.shadowed[0].layer, field.shadowed[0].value.as_str()), (&Layer::PlatformFile, "2"));
}

#[test]
fn layers_are_ordered_by_strength() {
    let order = [
        Layer::BuiltIn,
        Layer::PlatformFile,
        Layer::RuntimeTemplate,
        Layer::NamespaceRuntimeConfig,
        Layer::NamespaceDefaults("a".into()),
        Layer::NamespaceDefaults("b".into()),
        Layer::PodAnnotation,
        Layer::AgentRuntime("a".into()),
    ];
    assert!(order.is_sorted());
}

#[test]
fn a_resolved_configuration_serialises_with_its_provenance() {
    let mut resolved = Resolved::built_in();
    lay(&mut resolved, &Layer::PlatformFile, &settings(&vec![Some(1); SAMPLES.len()], false));
    let value: Value = serde_json::to_value(&resolved).unwrap();
    assert_eq!(value["mode"], json!({"value": "proxy-sidecar", "layer": "platform file", "shadowed": []}));
    assert_eq!(value["proxy"]["inboundPort"]["value"], json!(15124));
}
