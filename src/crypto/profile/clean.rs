//! What each profile leaves out as empty, after projection.

use crate::json::{Members, Value};

fn is_empty_leaf(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        _ => false,
    }
}

/// Empty members go, through objects; lists are not entered.
pub(super) fn kagenti_v1(members: Members) -> Members {
    objects(members, &Some)
}

/// As v1, and lists lose empty texts, nulls and objects that are empty when pruned; other elements stay as they are.
pub(super) fn kagenti_v2(members: Members) -> Members {
    objects(members, &|value| match value {
        Value::List(list) => {
            let kept: Vec<_> = list.into_iter().filter_map(element_v2).collect();
            (!kept.is_empty()).then_some(Value::List(kept))
        }
        other => Some(other),
    })
}

fn element_v2(element: Value) -> Option<Value> {
    match element {
        Value::Object(members) => {
            let pruned = kagenti_v2(members);
            (!pruned.is_empty()).then_some(Value::Object(pruned))
        }
        Value::Text(text) => (!text.is_empty()).then_some(Value::Text(text)),
        Value::Null => None,
        other => Some(other),
    }
}

/// Prunes objects; `last` decides about every member that is no object.
fn objects(members: Members, last: &dyn Fn(Value) -> Option<Value>) -> Members {
    let member = |value: Value| match value {
        Value::Object(inner) => {
            let pruned = objects(inner, last);
            (!pruned.is_empty()).then_some(Value::Object(pruned))
        }
        value if is_empty_leaf(&value) => None,
        value => last(value),
    };
    members.into_iter().filter_map(|(name, value)| member(value).map(|value| (name, value))).collect()
}

/// Every empty text, list and object goes, and every null, everywhere.
pub(super) fn sdk(members: Members) -> Members {
    members.into_iter().filter_map(|(name, value)| sdk_value(value).map(|value| (name, value))).collect()
}

fn sdk_value(value: Value) -> Option<Value> {
    match value {
        Value::List(list) => {
            let kept: Vec<_> = list.into_iter().filter_map(sdk_value).collect();
            (!kept.is_empty()).then_some(Value::List(kept))
        }
        Value::Object(members) => {
            let kept = sdk(members);
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        value => (!is_empty_leaf(&value)).then_some(value),
    }
}
