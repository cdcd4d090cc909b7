//! Places in JSON objects, made where they are missing.

use serde_json::{Map, Value};

/// The mapping at a path of an object; what is missing on the way is made. `None` where something else stands there, in a manifest
/// or on its way to a review: those may hold anything.
pub fn mapping<'v, 'p>(
    object: &'v mut Value,
    path: impl IntoIterator<Item = &'p str>,
) -> Option<&'v mut Map<String, Value>> {
    path.into_iter().try_fold(object.as_object_mut()?, |place, step| {
        let below = place.entry(step).or_insert(Value::Null);
        if below.is_null() {
            *below = Value::Object(Map::new());
        }
        below.as_object_mut()
    })
}
