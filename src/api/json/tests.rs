//! The tree is the one that serde_json makes, for whatever is sent.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const POD: &Unwanted = &Unwanted {
    members: &["status"],
    within: &[
        (
            "metadata",
            &Unwanted {
                members: &["managedFields"],
                kept: Some("managedFields"),
                mark: Some("marked"),
                ..Unwanted::NOTHING
            },
        ),
        (
            "list",
            &Unwanted {
                members: &["image"],
                within: &[("env", &Unwanted { named: Some(&["A", "B"]), ..Unwanted::NOTHING })],
                unless_marked: true,
                ..Unwanted::NOTHING
            },
        ),
    ],
    ..Unwanted::NOTHING
};

#[test]
fn the_kept_member_is_that_of_the_tree() {
    let kept = |text: &'static str| Reader::new(text).tree(POD).unwrap().kept;
    assert_eq!(kept(r#"{"metadata":{"managedFields": [{"a": 1}] ,"x":1}}"#), Some(r#"[{"a": 1}]"#));
    assert_eq!(kept(r#"{"metadata":{"managedFields":[1],"managedFields":[2]}}"#), Some("[2]"));
    assert_eq!(kept(r#"{"metadata":{"managedFields":[1]},"metadata":{}}"#), None);
    assert_eq!(kept(r#"{"metadata":{"managedFields":[1]},"metadata":null}"#), None);
    assert_eq!(kept(r#"{"managedFields":[1],"spec":{"managedFields":[2]}}"#), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        "[ -~]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("([a-z]{0,12}|.{0,4})", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_reads_as_serde_json_reads_it(value in any_json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(tree(&text, ALL_WANTED).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
            prop_assert_eq!(Reader::new(&text).skip(), Some(text.as_str()));
        }
    }

    #[test]
    fn any_text_is_refused_as_serde_json_refuses_it(text in r#"[\[\]{}",:0-9a-fnrtu\\ .eE+-]{0,24}"#) {
        let (ours, theirs) = (tree(&text, ALL_WANTED), serde_json::from_str::<Value>(&text));
        prop_assert_eq!(ours.map_err(|error| error.to_string()), theirs.map_err(|error| error.to_string()));
    }
}

#[test]
fn faults_are_those_of_serde_json() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for text in [
        "",
        " ",
        "nul",
        "tru",
        "01",
        "-",
        "+1",
        "1.",
        "1e",
        "1.5e3",
        "-0",
        "18446744073709551616",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "[1] 2",
        "{\"a\":1,\"a\":2}",
        "\u{feff}1",
        "\"é\\u00e9\"",
        &deep,
    ] {
        let (ours, theirs) = (tree(text, ALL_WANTED), serde_json::from_str::<Value>(text));
        assert_eq!(ours.map_err(|error| error.to_string()), theirs.map_err(|error| error.to_string()), "{text}");
    }
}

#[test]
fn what_is_unwanted_is_left_out_at_its_place_only() {
    let text = r#"{"metadata":{"managedFields":[{"a":"}\"]"}],"name":"p"},"spec":{"status":1,"managedFields":[]},"status":{}}"#;
    let expected = json!({"metadata": {"name": "p"}, "spec": {"status": 1, "managedFields": []}});
    assert_eq!(tree(text, POD).unwrap(), expected);
    let list = r#"[{"metadata":{"managedFields":1}},{"status":"x"}]"#;
    assert_eq!(tree(list, POD).unwrap(), json!([{"metadata": {}}, {}]));
}

#[test]
fn objects_of_other_names_are_left_empty_unless_the_document_is_marked() {
    let read = |text: &'static str| Reader::new(text).tree(POD).map(|tree| tree.value);
    let list = r#"[{"image":"i","env":[{"name":"A","value":"1"},{"name":"C","value":{"x":"}"}},{"value":"2","name":"C"},{},3]}]"#;
    let whole: Value = serde_json::from_str(list).unwrap();
    let trimmed = json!([{"env": [{"name": "A", "value": "1"}, {}, {"value": "2", "name": "C"}, {}, 3]}]);
    assert_eq!(
        tree(&format!(r#"{{"list":{list},"env":{list}}}"#), POD).unwrap(),
        json!({"list": trimmed, "env": whole})
    );
    let marked = format!(r#"{{"metadata":{{"marked":null}},"list":{list}}}"#);
    assert_eq!(tree(&marked, POD).unwrap(), json!({"metadata": {"marked": null}, "list": whole}));
    // Whoever is marked too late, or named twice, is left to serde_json.
    assert_eq!(read(r#"{"list":[],"metadata":{"marked":1}}"#), None);
    assert_eq!(read(r#"{"list":[{"env":[{"name":"C","name":"A"}]}]}"#), None);
    assert_eq!(read(r#"{"list":[{"env":[{"name":"C" 1}]}]}"#), None);
    assert_eq!(
        read(r#"{"list":[{"env":[{"name":"\u0041"},{"name":1}]}]}"#),
        Some(json!({"list": [{"env": [{"name": "A"}, {"name": 1}]}]}))
    );
}

#[test]
fn passing_over_needs_no_stack_and_sees_stray_bytes() {
    let deep = format!("{}{}", "[{\"a\":".repeat(500_000), "1") + &"}]".repeat(500_000);
    assert_eq!(Reader::new(&deep).skip().map(str::len), Some(deep.len()));
    for text in ["[1,\u{0}]", "{\"a\u{1}\":1}", "[x]", "[1", "\"a", "\"a\\", "", "#", "}"] {
        assert_eq!(Reader::new(text).skip(), None, "{text:?}");
    }
    for text in ["1", "-1.5e3", "true", "null", "\"a\\\"b\"", "[]", "{ }"] {
        assert_eq!(Reader::new(text).skip(), Some(text));
    }
}
