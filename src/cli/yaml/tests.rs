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
    assert_eq!(node.to_json(), json!({"mode": 420, "on": true, "quoted": "0644"}));
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
        "time": "12:30", "date": "2001-01-01", "empty": "", "size": "64Mi", "list": [], "map": {}, "nested": [[1], {"a": [2]}],
    });
    let text = emit::document(&value, None);
    assert!(text.contains("block: |\n  a\n  b: c\n"), "{text}");
    assert!(text.contains("size: 64Mi\n"), "{text}");
    assert!(text.contains("\"yes\": \"yes\"\n"), "{text}");
    assert!(text.contains("time: \"12:30\"\n"), "{text}");
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
