//! The shape of `status.card`: what is published of an agent's own card, and how large that may be.
//!
//! In: a card. Out: its schema, and whether it can be stored whole. Promise: what [`fits`] breaks no bound of [`schema`]; members that stand
//! in no schema are dropped by the API server, as by every reader of the field.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Bytes of JSON that a card may take here.
pub const CARD_BYTES: usize = 64 * 1024;

/// Items of any list, and members of any map with free names, that a card may have here.
pub const CARD_ITEMS: usize = 1024;

/// What a member holds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A text.
    Text,
    /// True, false or absent.
    Flag,
    /// Texts.
    Texts,
    /// An object with known members.
    Record(&'static [Member]),
    /// Objects with known members.
    Records(&'static [Member]),
    /// An object whose members' names are free.
    Map(&'static Shape),
    /// An object with free names, in a list.
    Maps(&'static Shape),
    /// An object with anything in it.
    Free,
}

use Shape::{Flag, Free, Maps, Record, Records, Text, Texts};

/// A member: its name, what it holds, and what `kubectl explain` says of it.
pub(super) type Member = (&'static str, Shape, &'static str);

pub(super) const CARD: &[Member] = &[
    ("name", Text, "Name that the agent gives itself."),
    ("description", Text, "What the agent does."),
    ("version", Text, "Version of the agent."),
    ("protocolVersion", Text, "Version of A2A that the agent speaks."),
    ("url", Text, "Where the agent is reached inside the cluster."),
    ("preferredTransport", Text, "Transport at url."),
    ("additionalInterfaces", Records(ADDITIONAL_INTERFACE), "Further interfaces, as served."),
    ("supportedInterfaces", Records(INTERFACE), "Interfaces, as served by agents of A2A 1.x."),
    ("documentationUrl", Text, "Documentation of the agent."),
    ("iconUrl", Text, "Icon of the agent."),
    ("provider", Record(PROVIDER), "Who provides the agent."),
    ("capabilities", Record(CAPABILITIES), "What the agent can do beyond answering."),
    ("defaultInputModes", Texts, "Media types that the agent takes."),
    ("defaultOutputModes", Texts, "Media types that the agent gives."),
    ("skills", Records(SKILL), "What the agent can be asked for."),
    ("security", Maps(&Texts), "What a caller has to authenticate with: one of these."),
    ("securityRequirements", Records(REQUIREMENT), "What a caller has to authenticate with, as in A2A 1.x."),
    ("securitySchemes", Shape::Map(&Free), "Ways in which a caller authenticates, by name."),
    ("supportsAuthenticatedExtendedCard", Flag, "Whether callers who authenticate get a longer card."),
    ("signatures", Records(SIGNATURE), "Signatures as served; they are of the card as served, not of this copy."),
];
const ADDITIONAL_INTERFACE: &[Member] =
    &[("url", Text, "Address, as served."), ("transport", Text, "Transport at that address.")];
const INTERFACE: &[Member] = &[
    ("url", Text, "Address, as served."),
    ("protocolBinding", Text, "Transport at that address."),
    ("protocolVersion", Text, "Version of A2A at that address."),
    ("tenant", Text, "Tenant that a caller names."),
];
const PROVIDER: &[Member] = &[("organization", Text, "Name of the provider."), ("url", Text, "Site of the provider.")];
const CAPABILITIES: &[Member] = &[
    ("streaming", Flag, "Whether it streams answers."),
    ("pushNotifications", Flag, "Whether it calls back."),
    ("stateTransitionHistory", Flag, "Whether it tells the states of a task."),
    ("extendedAgentCard", Flag, "Whether callers who authenticate get a longer card."),
    ("extensions", Records(EXTENSION), "Extensions of A2A that it speaks."),
];
const EXTENSION: &[Member] = &[
    ("uri", Text, "Which extension."),
    ("description", Text, "What the agent does with it."),
    ("required", Flag, "Whether a caller has to speak it."),
    ("params", Free, "Parameters of the extension."),
];
const SKILL: &[Member] = &[
    ("id", Text, "Id of the skill."),
    ("name", Text, "Name of the skill."),
    ("description", Text, "What it does."),
    ("tags", Texts, "Words to find it by."),
    ("examples", Texts, "What a caller might say."),
    ("inputModes", Texts, "Media types that it takes."),
    ("outputModes", Texts, "Media types that it gives."),
    ("parameters", Records(PARAMETER), "Parameters that it takes."),
    ("security", Maps(&Texts), "What a caller has to authenticate with."),
    ("securityRequirements", Records(REQUIREMENT), "What a caller has to authenticate with, as in A2A 1.x."),
];
const PARAMETER: &[Member] = &[
    ("name", Text, "Name of the parameter."),
    ("type", Text, "Its type."),
    ("description", Text, "What it is."),
    ("default", Text, "Its value when none is given."),
    ("required", Flag, "Whether it has to be given."),
];
const REQUIREMENT: &[Member] =
    &[("schemes", Shape::Map(&Record(&[("list", Texts, "Scopes.")])), "Schemes that are needed together.")];
const SIGNATURE: &[Member] = &[
    ("protected", Text, "Protected header of the signature."),
    ("signature", Text, "The signature."),
    (
        "header",
        Record(&[("timestamp", Text, "When it was signed, as its maker says.")]),
        "Header of the signature that the signature does not cover.",
    ),
];

/// The schema of `status.card`.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    let mut schema = of(Record(CARD));
    schema["description"] = json!(
        "The card as it was read last: at most 64 KiB, its url replaced by the one inside the cluster; of one that is larger \
         name, version and the ids of its skills."
    );
    Schema::try_from(schema).expect("an object is a schema")
}

fn of(shape: Shape) -> Value {
    let list = |items: Value| json!({"type": "array", "maxItems": CARD_ITEMS, "items": items});
    let map = |values: Value| json!({"type": "object", "maxProperties": CARD_ITEMS, "additionalProperties": values});
    match shape {
        Text => json!({"type": "string", "maxLength": CARD_BYTES}),
        Flag => json!({"type": "boolean"}),
        Texts => list(of(Text)),
        Record(members) => {
            let described = |&(name, shape, description): &Member| {
                let mut schema = of(shape);
                schema["description"] = json!(description);
                (name.to_owned(), schema)
            };
            json!({"type": "object", "properties": members.iter().map(described).collect::<Map<_, _>>()})
        }
        Records(members) => list(of(Record(members))),
        Shape::Map(values) => map(of(*values)),
        Maps(values) => list(map(of(*values))),
        Free => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    }
}

/// Whether a card can be stored whole.
#[must_use]
pub fn fits(card: &Value) -> bool {
    is_within(card, CARD_BYTES) && counts(card)
}

/// Whether a value takes no more bytes of JSON than that.
#[must_use]
pub fn is_within(value: &Value, bytes: usize) -> bool {
    serde_json::to_writer(&mut Room(bytes), value).is_ok()
}

/// Whether no list and no object has more than there may be.
fn counts(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.len() <= CARD_ITEMS && items.iter().all(counts),
        Value::Object(members) => members.len() <= CARD_ITEMS && members.values().all(counts),
        _ => true,
    }
}

/// Takes as many bytes as are left.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
