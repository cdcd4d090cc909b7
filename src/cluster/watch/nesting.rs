//! How deep an object is that is read; pure.
//!
//! In: the JSON of an object. Out: the same without what lies too deep. Promise: an API server takes objects that are some thousand levels deep, wherever a
//! definition lets people write what they like, and no decoder of ours goes through more than 127: what nobody can read is no reason to read nothing of the
//! others of its kind.

/// Levels of lists and mappings that are read of one object. No kind has a third of them; what decodes needs some for itself.
const LEVELS: usize = 100;

/// The same object with null in place of each list and mapping that lies deeper; nothing, where none does. `text` is JSON.
pub(super) fn cut(text: &str) -> Option<String> {
    let (mut kept, mut from) = (String::new(), 0);
    let (mut level, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                level += 1;
                if level == LEVELS + 1 {
                    kept.push_str(&text[from..at]);
                    kept.push_str("null");
                }
            }
            b'}' | b']' => {
                if level == LEVELS + 1 {
                    from = at + 1;
                }
                level = level.saturating_sub(1);
            }
            _ => {}
        }
    }
    if from == 0 {
        return None;
    }
    kept.push_str(&text[from..]);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deep(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn what_lies_too_deep_is_null_and_everything_else_stays() {
        assert_eq!(cut(&deep(LEVELS)), None);
        let cut_off = format!("{}null{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
        assert_eq!(cut(&deep(LEVELS + 1)).as_deref(), Some(&*cut_off));
        assert_eq!(cut(&deep(5_000)).as_deref(), Some(&*cut_off));
        // Brackets in texts are none, and what stands behind it is read.
        let brackets = "[{\\\"é\\\\".repeat(200);
        let object = format!(
            "{{ \"a\\\"[\": \"{brackets}\", \"deep\": {}, \"z\": [{{\"b\": {}}}, 2] }}",
            deep(LEVELS),
            deep(LEVELS + 30)
        );
        let read: Value = serde_json::from_str(&cut(&object).unwrap()).unwrap();
        assert_eq!((&read["a\"["], &read["z"][1]), (&json!("[{\"é\\".repeat(200)), &json!(2)));
        let mut at = (&read["deep"], 0);
        while let Some(below) = at.0.get(0) {
            at = (below, at.1 + 1);
        }
        assert_eq!(at, (&Value::Null, LEVELS - 1));
        assert_eq!(cut(&json!({"a": [[], {}], "b": brackets}).to_string()), None);
    }
}
