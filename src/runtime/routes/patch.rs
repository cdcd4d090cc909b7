//! The operations of an answer as JSON.
//!
//! In: operations, and the texts that are known of their values. Out: the bytes that serde_json writes.

use json_patch::{AddOperation, ReplaceOperation};

use crate::admission::patch::{PatchOperation, Written, WrittenText};

/// Bytes of the patch that injects all sidecars, and some more.
const ORDINARY: usize = 12 * 1024;

/// `operations` as a JSON list; `written` are texts of values in them, in their order.
///
/// # Errors
/// When one cannot be serialised, which does not happen.
pub(super) fn bytes(operations: &[PatchOperation], written: &[Written]) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(ORDINARY);
    let mut written = written.iter().peekable();
    out.push(b'[');
    for (index, operation) in operations.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let known = written.next_if(|written| written.operation == index);
        match (operation, known) {
            (PatchOperation::Add(AddOperation { path, .. }), Some(known)) => {
                with_text(&mut out, "add", path.as_str(), &known.text)?;
            }
            (PatchOperation::Replace(ReplaceOperation { path, .. }), Some(known)) => {
                with_text(&mut out, "replace", path.as_str(), &known.text)?;
            }
            (other, _) => serde_json::to_writer(&mut out, other)?,
        }
    }
    out.push(b']');
    Ok(out)
}

fn with_text(out: &mut Vec<u8>, op: &str, path: &str, text: &WrittenText) -> serde_json::Result<()> {
    out.extend_from_slice(br#"{"op":""#);
    out.extend_from_slice(op.as_bytes());
    out.extend_from_slice(br#"","path":"#);
    serde_json::to_writer(&mut *out, path)?;
    out.extend_from_slice(br#","value":"#);
    match text {
        WrittenText::One(part) => out.extend_from_slice(part.text.as_bytes()),
        WrittenText::List(parts) => {
            out.push(b'[');
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(part.text.as_bytes());
            }
            out.push(b']');
        }
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::admission::patch::{Operations, Part, add, pointer, relocate, remove};

    #[test]
    fn the_bytes_are_those_of_serde_json_with_known_texts_and_without() {
        let part = |number: usize| {
            let value = json!({"name": "envoy-\"proxy\"", "env": [{"name": "N", "value": number.to_string()}]});
            Arc::new(Part { text: value.to_string(), value })
        };
        let mut operations = Operations::default();
        operations.list.push(add(pointer(["spec", "securityContext", "fsGroup"]), 0));
        operations.add(pointer(["spec", "containers", "-"]), &part(1));
        operations.list.push(add(pointer(["metadata", "annotations", "a/b~c"]), "x\"y"));
        operations.add_list(pointer(["spec", "initContainers"]), vec![part(2), part(3)]);
        operations.add_list(pointer(["spec", "volumes"]), Vec::new());
        operations.replace(pointer(["spec", "volumes", "a/b"]), &part(4));
        operations.list.push(relocate(pointer(["spec", "containers", "0"]), pointer(["spec", "containers", "1"])));
        operations.list.push(remove(pointer(["spec", "schedulingGates"])));
        let expected = serde_json::to_string(&operations.list).unwrap();
        for written in [operations.written.as_slice(), &operations.written[1..], &[]] {
            assert_eq!(String::from_utf8(bytes(&operations.list, written).unwrap()).unwrap(), expected);
        }
        assert_eq!(bytes(&[], &[]).unwrap(), b"[]");
    }
}
