//! What is read, and what is refused with which line.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use serde_json::{Value, json};

use super::{MAX_BYTES, parse};

fn read(text: &str) -> Value {
    parse(text).unwrap_or_else(|error| unreachable!("{text:?}: line {}: {error}", error.line)).to_json()
}

fn refused(text: &str) -> (usize, String) {
    let error = parse(text).expect_err(text);
    (error.line, error.message)
}

#[test]
fn scalars_follow_the_core_schema() {
    let cases = [
        ("yes", json!("yes")),
        ("n", json!("n")),
        ("on", json!("on")),
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("tRue", json!("tRue")),
        ("~", Value::Null),
        ("", Value::Null),
        ("0755", json!(755)),
        ("0o755", json!(493)),
        ("0x1F", json!(31)),
        ("0b11", json!("0b11")),
        ("1_000", json!("1_000")),
        ("-17", json!(-17)),
        ("+17", json!(17)),
        ("9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("0.5", json!(0.5)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1.", json!(1.0)),
        (".", json!(".")),
        ("1e", json!("1e")),
        ("1.2.3", json!("1.2.3")),
        ("12:30:45", json!("12:30:45")),
        ("2026-11-21", json!("2026-11-21")),
        ("\"15123\"", json!("15123")),
        ("!!str 15123", json!("15123")),
        ("!!int \"15123\"", json!(15123)),
        ("! 7", json!("7")),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn keys_are_their_spelling() {
    assert_eq!(read("n: 1\n8080: 2\ntrue: 3\n~: 4"), json!({"n": 1, "8080": 2, "true": 3, "~": 4}));
}

#[test]
fn aliases_are_expanded() {
    assert_eq!(read("a: &x {k: [1]}\nb: *x"), json!({"a": {"k": [1]}, "b": {"k": [1]}}));
}

#[test]
fn lines_are_those_of_the_text() {
    let node = parse("# c\na: 1\nb:\n  c: [1,\n      2]\n").unwrap();
    let super::Content::Map(entries) = &node.content else { unreachable!("a mapping was written") };
    assert_eq!(entries[1].line, 3);
    let super::Content::Map(inner) = &entries[1].value.content else { unreachable!("a mapping was written") };
    assert_eq!((inner[0].line, inner[0].value.line), (4, 4));
}

#[test]
fn what_cannot_be_kept_is_refused_with_its_line() {
    let cases = [
        ("a: 1\nb: 18446744073709551616", 2, "does not fit 64 bits"),
        ("a: .inf", 1, "no JSON form"),
        ("a: 1e999", 1, "no JSON form"),
        ("a: 1\nb: 2\na: 3", 3, "key \"a\" occurs twice"),
        ("a: {x: 1,\n  x: 2}", 2, "key \"x\" occurs twice"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("base: &b {x: 1}\nc:\n  <<: *b", 3, "merge keys"),
        ("a: !custom 1", 1, "tag !custom"),
        ("a: !!binary aGk=", 1, "core schema"),
        ("a: !!int x", 1, "not a value of tag"),
        ("? [a, b]\n: 1", 1, "a key must be a string"),
        ("a: *nobody", 1, "anchor"),
        ("a: &a [*a]", 1, "contains it"),
        ("a: \"\nb", 2, ""),
        ("a:\n\t- b", 2, ""),
        ("a\0b", 1, "NUL"),
        ("x: 1\ny: \u{0}", 2, "NUL"),
    ];
    for (text, line, part) in cases {
        let (at, message) = refused(text);
        assert_eq!(at, line, "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn bombs_are_refused_quickly() {
    let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let previous = level - 1;
        let list = vec![format!("*a{previous}"); 10].join(",");
        laughs.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert!(refused(&laughs).1.contains("more than"));
    assert!(refused(&"[".repeat(100_000)).1.len() < 300);
    assert!(refused(&"- ".repeat(5_000)).1.len() < 300);
    assert!(refused(&format!("{}1{}", "[".repeat(65), "]".repeat(65))).1.contains("nested deeper"));
    assert!(parse(&format!("{}1{}", "[".repeat(64), "]".repeat(64))).is_ok());
    assert!(refused(&"a".repeat(MAX_BYTES + 1)).1.contains("bytes"));
    assert!(parse(&"a".repeat(MAX_BYTES)).is_ok());
    assert!(refused(&"- a\n".repeat(200_000)).1.contains("more than"));
    let long = "x".repeat(MAX_BYTES / 2);
    assert!(refused(&format!("a: &a {long}\nb: [{}]", "*a,".repeat(1000))).1.contains("more than"));
    let anchors: String = (0..60).map(|level| format!("&a{level} [")).collect();
    assert!(refused(&format!("{anchors}{long}{}", "]".repeat(60))).1.contains("more than"));
}

#[test]
fn comments_cost_nothing() {
    assert_eq!(read(&format!("{}a: 1\n{}", "# c\n".repeat(5_000), "  # d\n".repeat(5_000))), json!({"a": 1}));
}

#[test]
fn deep_aliases_do_not_get_round_the_depth_limit() {
    let chain: String = (1..40).map(|level| format!("a{level}: &a{level} [[*a{}]]\n", level - 1)).collect();
    assert!(refused(&format!("a0: &a0 []\n{chain}")).1.contains("nested deeper"));
}

proptest::proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn never_panics_on_yamlish_text(text in "[-a-c0-9:&*!<>{}\\[\\],\"'|?# \n\t.~]{0,120}") {
        let _ = parse(&text);
    }

    #[test]
    fn integers_survive(value in proptest::prelude::any::<i64>()) {
        proptest::prop_assert_eq!(read(&value.to_string()), json!(value));
    }
}
