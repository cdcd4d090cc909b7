//! How deep an object is that is read; pure.
//!
//! In: the JSON of an object. Out: the object, of which what lies too deep is null. Promises: an API server takes objects that are some thousand levels deep,
//! wherever a definition lets people write what they like, and no decoder of ours goes through more than 127: what nobody can read is no reason to read
//! nothing of the others of its kind; lists, watches and answers read the same text alike, and however deep it is, that costs by its length alone.

use serde::de::DeserializeOwned;

/// Levels of lists and mappings that are read of one object. No kind has a third of them; what decodes needs some for itself.
const LEVELS: usize = 100;

/// One object from its JSON text. Of one that is deeper than a decoder goes, each list and mapping below a hundred levels counts as null.
///
/// # Errors
/// When the text is no such object, whatever its depth.
pub fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match cut(text) {
        Some(cut) => serde_json::from_str(&cut),
        None => Err(error),
    })
}

/// The same object with null in place of each list and mapping that lies deeper; nothing, where none does. `text` is JSON.
fn cut(text: &str) -> Option<String> {
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
    use crate::store::{Kind, change_of};

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

    /// The API server answers a write with the whole object, and whoever writes its fields may have put there what they like.
    #[test]
    fn an_answer_of_an_object_that_is_too_deep_is_read_and_what_is_wrong_in_another_way_is_not() {
        let object = |spec: &str| {
            format!(
                "{{\"metadata\":{{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\"}},\"spec\":{{\"image\":\"x\",\"more\":{spec}}}}}"
            )
        };
        // `spec` and the object itself are the first two of the levels.
        let kept = format!("{}null{}", "[".repeat(LEVELS - 2), "]".repeat(LEVELS - 2));
        for levels in [LEVELS + 100, 5_000] {
            let text = object(&deep(levels));
            assert!(serde_json::from_str::<Value>(&text).is_err(), "no decoder goes that deep");
            let change = change_of(Kind::Agent, &text).unwrap();
            assert_eq!((change.version, &*change.key.name), (7, "a"));
            assert_eq!(change, change_of(Kind::Agent, &object(&kept)).unwrap(), "{levels}");
        }
        // What a decoder goes through is read as it is.
        let whole: Value = read(&deep(127)).unwrap();
        assert_eq!(whole.to_string(), deep(127));
        assert!(read::<Value>(&deep(300)[..500]).is_err(), "half a text");
        assert!(read::<Vec<u8>>(&deep(300)).is_err(), "something else");
    }
}
