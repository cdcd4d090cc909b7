//! The contract as a JSON schema (draft 2020-12): one definition for each container.
//!
//! What a schema cannot say stands in members of ours, which validators pass over: `x-from`, `x-present`, `x-user-may-set`.

use serde_json::{Map, Value, json};

use super::{Form, Name, Place, Present, Row, Users};
use crate::workloads::kaos::names::{PORT, PORT_OLLAMA, Role};

/// A name that an object of Kubernetes may have, without dots.
const OBJECT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
/// The same in upper case, hyphens as underscores.
const OBJECT_UPPER: &str = "[A-Z0-9]([_A-Z0-9]*[A-Z0-9])?";

/// The schema.
#[must_use]
pub fn schema() -> Value {
    let definitions = Place::ALL.map(|place| (place.name().to_owned(), definition(place)));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:drawbridge:kaos:environment:v1alpha1",
        "title": "Environment of what runs Agents, ModelAPIs and MCPServers of kaos.tools/v1alpha1",
        "description": "Each definition below $defs is about one container. Variables that people write themselves stand beside these, so \
                        others are allowed. x-from: the field, or key of the platform file, that a variable comes from. x-present: when \
                        it is there. x-user-may-set: whether an entry that a person writes under that name takes its place; its value \
                        has to have the same form, or what runs cannot read it.",
        "$defs": Map::from_iter(definitions),
    })
}

/// The definition of one container's environment.
#[must_use]
pub fn definition(place: Place) -> Value {
    let (mut properties, mut patterns, mut required) = (Map::new(), Map::new(), Vec::new());
    for row in place.rows() {
        let said = property(row, place);
        match row.name {
            Name::Fixed(name) | Name::Registered(name) => {
                properties.insert(name.to_owned(), said);
                if row.present == Present::Always {
                    required.push(name);
                }
            }
            Name::AsWritten(before, after) => {
                patterns.insert(format!("^{before}{OBJECT}{after}$"), said);
            }
            Name::UpperCase(before, after) => {
                patterns.insert(format!("^{before}{OBJECT_UPPER}{after}$"), said);
            }
        }
    }
    let mut definition = json!({
        "description": format!("Environment of {}.", place.container()),
        "type": "object",
        "properties": properties,
        "additionalProperties": {"type": "string"},
    });
    if !patterns.is_empty() {
        definition["patternProperties"] = Value::Object(patterns);
    }
    if !required.is_empty() {
        definition["required"] = json!(required);
    }
    definition
}

fn property(row: &Row, place: Place) -> Value {
    let present = match row.present {
        Present::Always => "always".to_owned(),
        Present::When(text) => format!("when {text}"),
    };
    let mut said = json!({
        "type": "string",
        "description": row.meaning,
        "x-from": row.from.iter().map(|from| from.words(place)).collect::<Vec<_>>(),
        "x-present": present,
        "x-user-may-set": row.users == Users::May,
    });
    match row.form {
        Form::Text => {}
        Form::OneOf(values) => said["enum"] = json!(values),
        Form::Number => said["pattern"] = json!("^[0-9]+$"),
        Form::Flag => said["pattern"] = json!("^(true|false)$"),
        Form::Object => said["pattern"] = json!(format!("^{OBJECT}$")),
        Form::Objects => said["pattern"] = json!(format!("^{OBJECT}(,{OBJECT})*$")),
        Form::Endpoint(role) => said["pattern"] = json!(endpoint(role)),
    }
    said
}

/// As [`Role::endpoint`] writes it.
fn endpoint(role: Role) -> String {
    let port = match role {
        Role::ModelApi => format!("({PORT}|{PORT_OLLAMA})"),
        Role::Agent | Role::McpServer => PORT.to_string(),
    };
    format!(r"^http://{}{OBJECT}\.{OBJECT}\.svc\.[-a-z0-9.]+:{port}$", role.prefix())
}
