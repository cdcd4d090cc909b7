//! The operations of an answer as JSON.
//!
//! In: operations. Out: the bytes that serde_json writes. Promise: equal operations, equal bytes, whatever came before.
//! The sidecars of one Pod are those of the next, and writing them was a tenth of a review: the last few lists and
//! objects that were added to a spec are remembered with their bytes, per thread, and copied when they come again.

use std::cell::RefCell;
use std::collections::VecDeque;

use json_patch::AddOperation;
use serde_json::Value;

use crate::admission::patch::PatchOperation;

/// Bytes of the patch that injects all sidecars, and some more.
const ORDINARY: usize = 12 * 1024;
/// Values that a thread remembers.
const REMEMBERED: usize = 32;
/// Longest text that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 16 * 1024;

thread_local! {
    static LAST: RefCell<VecDeque<(Value, Vec<u8>)>> = const { RefCell::new(VecDeque::new()) };
}

/// `operations` as a JSON list.
///
/// # Errors
/// When one cannot be serialised, which does not happen.
pub(super) fn bytes(operations: &[PatchOperation]) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(ORDINARY);
    out.push(b'[');
    for (index, operation) in operations.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match operation {
            PatchOperation::Add(AddOperation { path, value }) if repeats(path.as_str(), value) => {
                out.extend_from_slice(br#"{"op":"add","path":"#);
                serde_json::to_writer(&mut out, path.as_str())?;
                out.extend_from_slice(br#","value":"#);
                LAST.with_borrow_mut(|last| remembered(last, value, &mut out))?;
                out.push(b'}');
            }
            other => serde_json::to_writer(&mut out, other)?,
        }
    }
    out.push(b']');
    Ok(out)
}

/// Whether another Pod is likely to get the same: its annotations name it, its spec's parts do not.
fn repeats(path: &str, value: &Value) -> bool {
    path.starts_with("/spec/") && (value.is_object() || value.is_array())
}

/// Writes `value`, from memory where it is there.
fn remembered(last: &mut VecDeque<(Value, Vec<u8>)>, value: &Value, out: &mut Vec<u8>) -> serde_json::Result<()> {
    if let Some((_, text)) = last.iter().find(|(known, _)| known == value) {
        out.extend_from_slice(text);
        return Ok(());
    }
    let begin = out.len();
    serde_json::to_writer(&mut *out, value)?;
    let text = &out[begin..];
    if text.len() <= REMEMBERED_BYTES {
        last.truncate(REMEMBERED - 1);
        last.push_front((value.clone(), text.to_vec()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::patch::{add, pointer, relocate, remove, replace};

    #[test]
    fn the_bytes_are_those_of_serde_json_the_first_time_and_again() {
        let container =
            |number: usize| json!({"name": "envoy-proxy", "env": [{"name": "N", "value": number.to_string()}]});
        for round in 0..3 {
            for number in 0..REMEMBERED + 9 {
                let operations = [
                    add(pointer(["spec", "initContainers"]), json!([container(number), container(number + 1)])),
                    add(pointer(["spec", "containers", "-"]), container(number)),
                    add(pointer(["spec", "securityContext", "fsGroup"]), 0),
                    add(pointer(["metadata", "annotations", "a/b~c"]), "x\"y"),
                    replace(pointer(["spec", "volumes", "0"]), json!({"name": "v"})),
                    relocate(pointer(["spec", "containers", "0"]), pointer(["spec", "containers", "1"])),
                    remove(pointer(["spec", "schedulingGates"])),
                    add(pointer(["spec", "long"]), json!(["x".repeat(number * 1024)])),
                ];
                let text = String::from_utf8(bytes(&operations).unwrap()).unwrap();
                assert_eq!(text, serde_json::to_string(&operations).unwrap(), "round {round}");
            }
        }
        assert_eq!(bytes(&[]).unwrap(), b"[]");
    }
}
