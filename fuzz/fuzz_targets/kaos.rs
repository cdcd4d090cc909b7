//! What objects of KAOS mean. In: JSON, an object of any of the three kinds and in any spelling. Laws: any JSON gets an answer, the same twice; what was
//! migrated means the same as before and is migrated no further; an object of which something is wrong comes back as it was.
#![no_main]

use drawbridge::api::kaos_tools::migrate::migrate;
use drawbridge::api::kaos_tools::read::{self, Looked};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(mut object) = serde_json::from_slice::<Value>(data) else { return };
    for kind in ["Agent", "ModelAPI", "MCPServer"] {
        if let Some(members) = object.as_object_mut() {
            members.insert("kind".to_owned(), Value::String(kind.to_owned()));
        }
        match kind {
            "Agent" => holds(&object, read::agent),
            "ModelAPI" => holds(&object, read::model_api),
            _ => holds(&object, read::mcp_server),
        }
    }
});

fn holds<T: PartialEq + std::fmt::Debug>(object: &Value, look: fn(&Value) -> Looked<T>) {
    let old = look(object);
    assert!(old == look(object), "one object means two things");
    if object.get("kind").is_none() {
        return;
    }
    let new = migrate(object);
    if !new.faults.is_empty() {
        assert_eq!(new.object, *object, "what is wrong comes back as it was");
        return;
    }
    let read = look(&new.object);
    assert!(read.faults.is_empty() && read.value == old.value, "what was migrated means something else");
    assert_eq!(migrate(&new.object).object, new.object, "once is enough");
}
