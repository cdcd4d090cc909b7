//! The operations of an answer as they go out.
//!
//! In: operations. Out: the JSON that serde_json writes, but for blanks, in base64.

use crate::admission::patch::{Operation, Shared};
use crate::api::review::{Encoded, Encoder};

/// Letters of the patch that injects all sidecars, and some more.
const ORDINARY: usize = 16 * 1024;

/// `operations` as a JSON list.
///
/// # Errors
/// When one cannot be serialised, which does not happen.
pub(super) fn encoded(operations: &[Operation]) -> serde_json::Result<Encoded> {
    let mut out = Encoder::with_capacity(ORDINARY);
    out.text().push(b'[');
    for (index, operation) in operations.iter().enumerate() {
        if index > 0 {
            out.text().push(b',');
        }
        match operation {
            Operation::Plain(plain) => serde_json::to_writer(out.text(), plain)?,
            Operation::Add(path, shared) => put(&mut out, br#"{"op":"add","path":"#, path.as_str(), shared)?,
            Operation::Replace(path, shared) => put(&mut out, br#"{"op":"replace","path":"#, path.as_str(), shared)?,
        }
    }
    out.text().push(b']');
    Ok(out.finish())
}

fn put(out: &mut Encoder, begin: &[u8], path: &str, shared: &Shared) -> serde_json::Result<()> {
    out.text().extend_from_slice(begin);
    serde_json::to_writer(out.text(), path)?;
    out.text().extend_from_slice(br#","value":"#);
    match shared {
        Shared::One(part) => out.piece(&part.piece),
        Shared::List(parts) => {
            out.text().push(b'[');
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.text().push(b',');
                }
                out.piece(&part.piece);
            }
            out.text().push(b']');
        }
        Shared::Members(parts) => {
            out.text().push(b'{');
            for (index, (key, part)) in parts.iter().enumerate() {
                if index > 0 {
                    out.text().push(b',');
                }
                serde_json::to_writer(out.text(), key)?;
                out.text().push(b':');
                out.piece(&part.piece);
            }
            out.text().push(b'}');
        }
    }
    out.text().push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::patch::{
        Part, add, add_members, add_part, add_parts, pointer, relocate, remove, replace_part,
    };

    #[test]
    fn what_goes_out_is_what_serde_json_writes_with_parts_and_without() {
        let part = |number: usize| {
            let value = json!({"name": "envoy-\"proxy\"", "env": [{"name": "N", "value": number.to_string()}]});
            Arc::new(Part::new(value))
        };
        let operations = vec![
            add(pointer(["spec", "securityContext", "fsGroup"]), 0),
            add_part(pointer(["spec", "containers", "-"]), &part(1)),
            add(pointer(["metadata", "annotations", "a/b~c"]), "x\"y"),
            add_parts(pointer(["spec", "initContainers"]), vec![part(2), part(3)]),
            add_parts(pointer(["spec", "volumes"]), Vec::new()),
            add_members(pointer(["metadata", "labels"]), Vec::new()),
            add_members(pointer(["metadata", "annotations"]), vec![("a/\"b", part(5)), ("c", part(6))]),
            replace_part(pointer(["spec", "volumes", "a/b"]), &part(4)),
            relocate(pointer(["spec", "containers", "0"]), pointer(["spec", "containers", "1"])),
            remove(pointer(["spec", "schedulingGates"])),
        ];
        for operations in [operations.as_slice(), &[]] {
            let sent = STANDARD.decode(encoded(operations).unwrap().bytes()).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), serde_json::to_value(operations).unwrap());
        }
    }
}
