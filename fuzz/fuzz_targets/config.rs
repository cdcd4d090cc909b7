//! Configuration files. In: any text, read as YAML, as platform file and as feature gates. Laws: equal text gives equal
//! values; a value written as JSON reads back as itself; a refusal names at least one fault, each on a line of the
//! text; what is accepted has ports that can all be listened on, and gives every ConfigMap of a namespace.
#![no_main]

use drawbridge::api::yaml::{self, Content, MAX_DEPTH, Node};
use drawbridge::config::defaults::config_map_data;
use drawbridge::config::gates::Gates;
use drawbridge::config::schema::{Platform, SchemaError};
use drawbridge::domain::keys::{NAMESPACE_CONFIG_MAPS, SIDECAR_FIXED_PORTS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = drawbridge_fuzz::text(data);
    let lines = text.split(['\n', '\r']).count();
    read(text, lines);
    platform(text, lines);
    gates(text, lines);
});

fn read(text: &str, lines: usize) {
    match yaml::parse(text) {
        Err(error) => {
            assert!((1..=lines + 1).contains(&error.line), "line {} of {lines}: {error}", error.line);
            assert!(!error.message.is_empty());
        }
        Ok(node) => {
            walk(&node, lines, 0);
            let value = node.to_json();
            // JSON may be larger than the text it came from, by expanded aliases; only then may it be refused.
            match yaml::parse(&value.to_string()) {
                Ok(again) => assert_eq!(again.to_json(), value, "JSON is YAML"),
                Err(error) => assert!(
                    text.contains('*') || value.to_string().chars().any(is_special),
                    "what was read cannot be read again: {error}\n{value}"
                ),
            }
        }
    }
}

/// Characters that JSON may hold as they are and YAML may not.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}') || c > '\u{ffff}'
}

fn walk(node: &Node, lines: usize, depth: usize) {
    assert!(depth <= MAX_DEPTH, "deeper than {MAX_DEPTH}");
    assert!((1..=lines + 1).contains(&node.line), "line {} of {lines}", node.line);
    match &node.content {
        Content::List(items) => items.iter().for_each(|item| walk(item, lines, depth + 1)),
        Content::Map(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                assert!(entries[..index].iter().all(|other| other.key != entry.key), "{:?} stands twice", entry.key);
                walk(&entry.value, lines, depth + 1);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
    }
}

fn helps(error: &SchemaError, lines: usize) {
    assert!(!error.faults.is_empty());
    assert!(error.faults.is_sorted(), "faults stand in the order of the text");
    for fault in &error.faults {
        assert!((1..=lines + 1).contains(&fault.line), "line {} of {lines}: {error}", fault.line);
        assert!(!fault.message.is_empty());
    }
    assert!(error.to_string().starts_with("file.yaml:"));
}

fn platform(text: &str, lines: usize) {
    let platform = match Platform::parse(text, "file.yaml") {
        Err(error) => return helps(&error, lines),
        Ok(platform) => platform,
    };
    let again = Platform::parse(text, "file.yaml").expect("equal text is read equally");
    assert_eq!(platform.resolved(), again.resolved());
    let proxy = &platform.resolved().proxy;
    let ports = [proxy.port.value, proxy.inbound_port.value, proxy.admin_port.value];
    for (index, port) in ports.iter().enumerate() {
        assert!(*port >= 1024, "port {port} would need rights that no sidecar has");
        assert!(!ports[..index].contains(port) && !SIDECAR_FIXED_PORTS.contains(port), "port {port} is taken");
    }
    assert_ne!(proxy.uid.value, 0, "traffic of root would not be redirected");
    for name in NAMESPACE_CONFIG_MAPS {
        assert!(config_map_data(name, &platform).is_some(), "{name}");
    }
}

fn gates(text: &str, lines: usize) {
    match Gates::parse(text, "file.yaml") {
        Err(error) => helps(&error, lines),
        Ok((gates, _)) => {
            let (again, _) = Gates::parse(text, "file.yaml").expect("equal text is read equally");
            assert_eq!(gates.named(), again.named());
            let written: Vec<String> = gates.named().iter().map(|(name, on)| format!("{name}: {on}")).collect();
            let (read, notices) = Gates::parse(&written.join("\n"), "file.yaml").expect("gates as we name them");
            assert_eq!(read.named(), gates.named());
            assert!(notices.is_empty());
        }
    }
}
