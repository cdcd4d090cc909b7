//! Laws: equal bytes for equal input, and values that never become structure.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::pipelines::fixtures::{composed, entry, parameters, request, steps, task_spec};
use crate::pipelines::request::{BuildRequest, Parameter};

const SPEC: &str = "
params: [{name: A}, {name: L, type: array}, {name: subfolder-path}, {name: BUILD_ARGS, type: array, default: []}]
workspaces: [{name: source}]
";

/// Texts that shells, YAML, JSON, templates and Tekton give a meaning.
fn hostile() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "$(params.image)",
        "$(tasks.a.results.b)",
        "$(",
        "`id`",
        "$HOME",
        "${x}",
        "\"",
        "'",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "--flag",
        "-",
        ";",
        "|",
        "&&",
        "{{.image}}",
        "{{",
        "}}",
        "[*]",
        "[\"a\"]",
        "{\"a\":\"b\"}",
        ": ",
        "- ",
        "#",
        "é",
        "\u{0}",
        "\u{7f}",
        "x",
        " ",
        "..",
        "/",
        "@",
        "null",
        "true",
        "010",
    ]);
    prop::collection::vec(parts, 0..6).prop_map(|parts| parts.concat())
}

/// The shape of a value: everything but the texts in it.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(_) => json!("text"),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), shape(member))).collect(),
        other => other.clone(),
    }
}

fn build(a: &str, l: &str, argument: &str) -> BuildRequest {
    let mut request = request(vec![entry("a", "one")]);
    request.parameters = parameters(&[("A", a), ("L", l)]);
    request.build_arguments = vec![Parameter::new("ARG", argument)];
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// A user's value is either refused by name, or arrives byte for byte where a harmless one would.
    #[test]
    fn values_never_become_structure(a in hostile(), argument in hostile()) {
        let spec = task_spec(SPEC);
        let steps = steps(&[("one", &spec)]);
        let plain = composed(&build("x", "x", "x"), &steps).unwrap();
        match composed(&build(&a, "x", &argument), &steps) {
            Ok(composition) => {
                prop_assert_eq!(shape(&composition.run), shape(&plain.run));
                prop_assert!(!a.contains("$(") && !argument.contains("$("));
                let params = crate::pipelines::fixtures::task_params(&composition.run, "a");
                prop_assert_eq!(&params["A"], &json!(a));
                prop_assert_eq!(&params["BUILD_ARGS"], &json!([format!("--build-arg=ARG={argument}")]));
            }
            Err(findings) => {
                prop_assert!(findings.content.is_empty(), "{:?}", findings);
                prop_assert!(findings.faults.iter().all(|fault| fault.path.starts_with("spec.pipeline.parameters[0]")
                    || fault.path.starts_with("spec.buildArgs[0]")), "{:?}", findings);
                prop_assert!(a.contains("$(") || a.contains('\0') || argument.contains("$(") || argument.contains(['\n', '\r', '\0']));
            }
        }
    }

    /// Source fields are refused by path or arrive byte for byte; never anything else.
    #[test]
    fn source_fields_are_data(text in hostile()) {
        let spec = task_spec(SPEC);
        let steps = steps(&[("one", &spec)]);
        for field in 0..4 {
            let mut request = build("x", "x", "x");
            let place = match field {
                0 => &mut request.source.repository,
                1 => &mut request.source.revision,
                2 => &mut request.source.subfolder,
                _ => &mut request.image.as_mut().unwrap().tag,
            };
            place.clone_from(&text);
            if let Ok(composition) = composed(&request, &steps) {
                prop_assert!(!text.contains("$(") && !text.starts_with('-') && !text.contains(['\n', '"', '\'', ';', '`', '\\']));
                prop_assert!(composition.run.to_string().contains(serde_json::to_string(&text).unwrap().trim_matches('"')));
            }
        }
    }

    /// Maps have no order: not in the request's identity, not in a TaskSpec, not in labels.
    #[test]
    fn the_order_of_maps_counts_nowhere(names in prop::collection::btree_set("[a-z]{1,8}", 1..6), seed in any::<u64>()) {
        let names: Vec<_> = names.into_iter().collect();
        let mut turned = names.clone();
        turned.rotate_left(usize::try_from(seed % names.len() as u64).unwrap());
        turned.reverse();
        let object = |names: &[String]| {
            let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":{{\"v\":\"{name}\"}}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let make = |names: &[String]| {
            let spec = format!("{}\nfuture: {}\n", task_spec("params: [{name: A, default: k}]"), object(names));
            let mut request = request(vec![entry("a", "one")]);
            request.identity = serde_json::from_str(&object(names)).unwrap();
            request.labels = names.iter().map(|name| (name.clone(), name.clone())).collect::<BTreeMap<_, _>>();
            let composition = composed(&request, &steps(&[("one", &spec)])).unwrap();
            let mut run = composition.run;
            // The hash of the ConfigMap's text is the hash of a text.
            run["metadata"]["annotations"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("step-hash."));
            (run.to_string(), composition.build_hash)
        };
        prop_assert_eq!(make(&names), make(&turned));
    }

    /// Any text is a TaskSpec or a list of faults, never a panic.
    #[test]
    fn any_text_is_read(text in ".{0,200}") {
        let _ = crate::pipelines::step::parse("ns/x", &text, false);
        let _ = crate::pipelines::template::parse("ns/x", &text);
        let _ = crate::pipelines::reference::in_text(&text);
    }
}
