use proptest::prelude::*;
use serde_json::{Value, json};

use super::stream::{Segment, leading_comments, split};
use super::{emit, tree};

fn documents(text: &str) -> Vec<(&str, u64)> {
    split(text)
        .into_iter()
        .filter_map(|segment| match segment {
            Segment::Document { text, lines_before } => Some((text, lines_before)),
            Segment::Marker(_) => None,
        })
        .collect()
}

fn joined(text: &str) -> String {
    split(text)
        .into_iter()
        .map(|segment| match segment {
            Segment::Document { text, .. } | Segment::Marker(text) => text,
        })
        .collect()
}

#[test]
fn a_stream_is_cut_at_markers_and_nowhere_else() {
    let text = "# head\n---\na: |\n  --- not a marker\nb: 1\n--- # second\nc: 2\n...\n--- {d: 3}\n";
    assert_eq!(
        documents(text),
        [("# head\n", 0), ("a: |\n  --- not a marker\nb: 1\n", 2), ("c: 2\n", 6), (" {d: 3}\n", 8)]
    );
    assert_eq!(joined(text), text);
}

#[test]
fn json_documents_may_follow_each_other() {
    let text = "{\"a\": 1}\n{\"b\": \"}{\"}\n";
    assert_eq!(documents(text), [("{\"a\": 1}", 0), ("\n{\"b\": \"}{\"}\n", 0)]);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_kept() {
    let text = "\u{feff}a: 1\r\n---\r\nb: 2\r\n";
    assert_eq!(joined(text), text);
    assert_eq!(documents(text).len(), 2);
}

#[test]
fn a_node_knows_its_line() {
    let node = tree::parse("# c\na:\n  b: [1, two]\n  c:\n  - x: true\n").unwrap().unwrap();
    assert_eq!(node.at(&["a", "b"]).unwrap().line, 3);
    assert_eq!(node.at(&["a", "c"]).unwrap().items()[0].get("x").unwrap().line, 5);
    assert_eq!(node.entries()[0].0.line, 2);
    assert_eq!(node.to_json(), json!({"a": {"b": [1, "two"], "c": [{"x": true}]}}));
}

#[test]
fn comments_alone_are_no_document() {
    assert_eq!(tree::parse("# nothing\n\n").unwrap(), None);
    assert_eq!(tree::parse("").unwrap(), None);
}

#[test]
fn an_error_names_the_line() {
    assert_eq!(tree::parse("a: 1\nb: [\n").unwrap_err().line, 2);
    assert_eq!(tree::parse("a: 1\na: 2\n").unwrap_err().line, 2);
}

#[test]
fn scalars_are_read_as_kubectl_reads_them() {
    let node = tree::parse("mode: 0644\non: yes\nquoted: \"0644\"\n").unwrap().unwrap();
    assert_eq!(node.to_json(), json!({"mode": 420, "true": true, "quoted": "0644"}));
}

/// What kubectl 1.32 makes of each.
#[test]
fn words_without_quotes_are_what_kubectl_takes_them_for() {
    for (text, value) in [
        ("[y, N, On, tRue, \"on\"]", json!([true, false, true, "tRue", "on"])),
        ("[~, null, nUll, \"\"]", json!([null, null, "nUll", ""])),
        (
            "[0o17, 017, 08, 0x1F, 0b11, 1_000, +5, -0, -0644, 1__0, _1, 0o8, 0x]",
            json!([15, 15, 8, 31, 3, 1000, 5, 0, -420, 10, "_1", "0o8", "0x"]),
        ),
        (
            "[1e3, .5, 5., 1.0, 1_0.5, 1e400, 1e, 1.10, +.5, -0.0, 1e18, 9007199254740993.0, 1e19]",
            json!([
                1000,
                0.5,
                5,
                1,
                10.5,
                "1e400",
                "1e",
                1.1,
                0.5,
                0,
                1_000_000_000_000_000_000_i64,
                9_007_199_254_740_992_i64,
                10_000_000_000_000_000_000_u64
            ]),
        ),
        ("[1:30, 12:30:45, 2001-01-01, =, .]", json!(["1:30", "12:30:45", "2001-01-01", "=", "."])),
        ("[18446744073709551615, -9223372036854775808]", json!([18_446_744_073_709_551_615_u64, i64::MIN])),
        ("{y: 1, 8080: 2, 010: 3, 1e3: 4, no: 5}", json!({"true": 1, "8080": 2, "8": 3, "1000": 4, "false": 5})),
        (
            "[!!str 12, !!int \"0x10\", !Ref 12, !!binary aGVsbG8=, !!bool \"yes\", !!null \"\"]",
            json!(["12", 16, "12", "hello", true, null]),
        ),
        (
            "{a: &a {x: 1, z: 2}, b: {<<: *a, x: 5}, c: {x: 5, <<: *a}, d: {<<: [{x: 3}, *a]}}",
            json!({"a": {"x": 1, "z": 2}, "b": {"x": 5, "z": 2}, "c": {"x": 1, "z": 2}, "d": {"x": 3, "z": 2}}),
        ),
    ] {
        assert_eq!(tree::parse(text).unwrap().unwrap().to_json(), value, "{text}");
    }
    for (text, says) in [
        (".inf", "no JSON form"),
        ("{~: 1}", "a key is missing"),
        ("{[a]: 1}", "a key must be text"),
        ("{<<: 5}", "a merge key"),
        ("&a [*a]", "contains it"),
        ("!!int abc", "is not a value of tag"),
        ("{\"a\": 1e400}", "1e400 is beyond"),
        ("{\"a\": 1, \"a\": 2}", "occurs twice"),
    ] {
        let error = tree::parse(text).unwrap_err().text;
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn what_did_not_change_keeps_its_digits() {
    let text = "mode: 0644\nbig: 123456789012345678901234567890\nflag: yes\n8080: 1e3\nnothing: ~\nfloat: 0.10\n";
    let node = tree::parse(text).unwrap().unwrap();
    assert_eq!(emit::document(&node.to_json(), Some(&node)), text);
    let mut changed = node.to_json();
    changed["mode"] = json!(7);
    assert!(emit::document(&changed, Some(&node)).starts_with("mode: 7\n"));
}

#[test]
fn json_keeps_its_order_its_digits_and_its_lines() {
    for text in [
        "{\"b\":1.0,\"a\":[1,{}],\"big\":123456789012345678901}",
        "{\n    \"b\": [\n        1E3,\n        {}\n    ],\n    \"a\": []\n}",
        "{\n\t\"b\": \"\\\"\"\n}",
    ] {
        let node = tree::parse(text).unwrap().unwrap();
        assert_eq!(emit::json_document(&node.to_json(), Some(&node), text), text);
    }
    let node = tree::parse("{\n\t\"a\": \"\\ud83d\\ude00\\/\",\n\t\"b\": [\n1]}").unwrap().unwrap();
    assert_eq!((node.get("a").unwrap().line, node.get("b").unwrap().items()[0].line), (2, 4));
    assert_eq!(node.to_json(), json!({"a": "\u{1f600}/", "b": [1]}));
    let whole = tree::parse("{\"a\": [1.0, 2E0, 1.5]}").unwrap().unwrap();
    assert_eq!(whole.to_json(), json!({"a": [1, 2, 1.5]}));
    let flow = "{a: yes, b: 0644}";
    let node = tree::parse(flow).unwrap().unwrap();
    assert_eq!(emit::json_document(&node.to_json(), Some(&node), flow), "{\"a\":true,\"b\":420}");
}

#[test]
fn large_documents_are_read_and_bombs_are_not() {
    let wide: String = (0..300_000).map(|number| format!("k{number}: v\n")).collect();
    assert_eq!(tree::parse(&wide).unwrap().unwrap().entries().len(), 300_000);
    let deep = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(tree::parse(&deep(300)).is_ok());
    let json = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(tree::parse(&json(300)).is_ok());
    for text in [deep(100_000), json(100_000)] {
        assert!(tree::parse(&text).unwrap_err().text.contains("nested deeper"));
    }
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(tree::parse(&bomb).unwrap_err().text.contains("aliases make the document larger"));
}

#[test]
fn directives_and_byte_order_marks_stand_ahead_of_documents_only() {
    let text = "a: 1\n---\n\u{feff}---\nb: 2\n...\n%YAML 1.1\n---\nc: |\n  x\n%no directive\n";
    assert_eq!(joined(text), text);
    assert_eq!(documents(text), [("a: 1\n", 0), ("b: 2\n", 3), ("c: |\n  x\n%no directive\n", 7)]);
}

#[test]
fn anchors_and_merges_are_resolved() {
    let node = tree::parse("a: &x {p: 1}\nb: *x\nc:\n  <<: *x\n  q: 2\n").unwrap().unwrap();
    assert_eq!(node.to_json(), json!({"a": {"p": 1}, "b": {"p": 1}, "c": {"p": 1, "q": 2}}));
}

#[test]
fn keys_keep_the_order_in_which_they_were_written() {
    let text = "kind: Pod\nspec:\n  containers:\n  - name: b\n    image: i\n  - name: a\n    args: [x]\n    image: j\n";
    let node = tree::parse(text).unwrap().unwrap();
    let mut value = node.to_json();
    value["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "new", "image": "k"}));
    assert_eq!(
        emit::document(&value, Some(&node)),
        "kind: Pod\nspec:\n  containers:\n  - name: b\n    image: i\n  - name: a\n    args:\n    - x\n    image: j\n  - name: new\n    image: k\n"
    );
}

#[test]
fn several_lines_become_a_block_and_doubtful_words_are_quoted() {
    let value = json!({
        "block": "a\nb: c\n", "kept": "a\n\n", "no-end": "a\nb", "odd": " a\nb", "yes": "yes", "n": "0o17",
        "time": "12:30", "date": "2001-01-01", "at": "2026-11-27T07:15:00Z", "empty": "", "size": "64Mi", "list": [], "map": {}, "nested": [[1], {"a": [2]}],
    });
    let text = emit::document(&value, None);
    assert!(text.contains("block: |\n  a\n  b: c\n"), "{text}");
    assert!(text.contains("size: 64Mi\n"), "{text}");
    assert!(text.contains("\"yes\": \"yes\"\n"), "{text}");
    assert!(text.contains("time: \"12:30\"\n"), "{text}");
    assert!(text.contains("at: \"2026-11-27T07:15:00Z\"\n"), "{text}");
    assert_eq!(tree::parse(&text).unwrap().unwrap().to_json(), value, "{text}");
}

#[test]
fn the_comments_a_document_begins_with_are_found() {
    assert_eq!(leading_comments("# a\n\n  # b\nc: 1 # d\n# e\n"), "# a\n\n  # b\n");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\n\t]{0,12}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        "(y|n|yes|No|on|OFF|null|~|0x1f|1e3|1_000|010|\\.inf|-|\\?|:|a: b|a #b|#a|\\*a|&a|!a|%a|@a|`a|\\{|\\[)"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z~\\-: #]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().filter(|(key, _)| key != "<<").collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_emitted_reads_back_the_same(value in any_value()) {
        let text = emit::document(&value, None);
        let read = tree::parse(&text).unwrap().map_or(Value::Null, |node| node.to_json());
        prop_assert_eq!(read, value, "{}", text);
    }

    #[test]
    fn cutting_changes_no_byte(text in "(\\PC|\n|---|\\.\\.\\.|\\{|\\}|\"){0,60}") {
        prop_assert_eq!(joined(&text), text);
    }
}
