//! The members that the profiles know. `signatures` stands in none: it is never covered.

/// What a member holds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A string.
    Text,
    /// True, false or absent, which are three things.
    Flag,
    /// True; false is absent.
    Mark,
    /// Strings.
    Texts,
    /// An object of known members.
    Record(&'static [Field]),
    /// An object of which one member may be there.
    OneOf(&'static [Field]),
    /// Objects of known members.
    Records(&'static [Field]),
    /// An object whose members' names are free.
    Map(&'static Shape),
    /// An object with anything in it.
    Free,
}

/// A member: its name and what it holds.
pub(super) type Field = (&'static str, Shape);

/// How a document is read into a profile's model.
#[derive(Clone, Copy)]
pub(super) struct Schema {
    pub(super) fields: &'static [Field],
    /// Empty texts and lists are absent, and null in a list is an empty element: Go's typed model.
    pub(super) go: bool,
}

use Shape::{Flag, Free, Map, Mark, OneOf, Record, Records, Text, Texts};

pub(super) const KAGENTI: Schema = Schema {
    go: true,
    fields: &[
        ("name", Text),
        ("description", Text),
        ("version", Text),
        ("url", Text),
        ("documentationUrl", Text),
        ("iconUrl", Text),
        ("provider", Record(PROVIDER)),
        (
            "capabilities",
            Record(&[("streaming", Flag), ("pushNotifications", Flag), ("extensions", Records(EXTENSION))]),
        ),
        ("defaultInputModes", Texts),
        ("defaultOutputModes", Texts),
        ("skills", Records(SKILL)),
        ("supportsAuthenticatedExtendedCard", Flag),
    ],
};
const PROVIDER: &[Field] = &[("organization", Text), ("url", Text)];
const EXTENSION: &[Field] = &[("uri", Text), ("description", Text), ("required", Flag), ("params", Free)];
const SKILL: &[Field] = &[
    ("id", Text),
    ("name", Text),
    ("description", Text),
    ("tags", Texts),
    ("examples", Texts),
    ("inputModes", Texts),
    ("outputModes", Texts),
    ("parameters", Records(PARAMETER)),
];
const PARAMETER: &[Field] =
    &[("name", Text), ("type", Text), ("description", Text), ("default", Text), ("required", Flag)];

pub(super) const A2A_1: Schema = Schema {
    go: false,
    fields: &[
        ("name", Text),
        ("description", Text),
        ("supportedInterfaces", Records(INTERFACE)),
        ("provider", Record(PROVIDER)),
        ("version", Text),
        ("documentationUrl", Text),
        ("capabilities", Record(CAPABILITIES_1)),
        ("securitySchemes", Map(&OneOf(SECURITY_SCHEME))),
        ("securityRequirements", Records(SECURITY_REQUIREMENT)),
        ("defaultInputModes", Texts),
        ("defaultOutputModes", Texts),
        ("skills", Records(SKILL_1)),
        ("iconUrl", Text),
    ],
};
const INTERFACE: &[Field] = &[("url", Text), ("protocolBinding", Text), ("tenant", Text), ("protocolVersion", Text)];
const CAPABILITIES_1: &[Field] = &[
    ("streaming", Flag),
    ("pushNotifications", Flag),
    ("extensions", Records(EXTENSION_1)),
    ("extendedAgentCard", Flag),
];
const EXTENSION_1: &[Field] = &[("uri", Text), ("description", Text), ("required", Mark), ("params", Free)];
const SKILL_1: &[Field] = &[
    ("id", Text),
    ("name", Text),
    ("description", Text),
    ("tags", Texts),
    ("examples", Texts),
    ("inputModes", Texts),
    ("outputModes", Texts),
    ("securityRequirements", Records(SECURITY_REQUIREMENT)),
];
const SECURITY_REQUIREMENT: &[Field] = &[("schemes", Map(&Record(&[("list", Texts)])))];
const SECURITY_SCHEME: &[Field] = &[
    ("apiKeySecurityScheme", Record(&[("description", Text), ("location", Text), ("name", Text)])),
    ("httpAuthSecurityScheme", Record(&[("description", Text), ("scheme", Text), ("bearerFormat", Text)])),
    ("oauth2SecurityScheme", Record(&[("description", Text), ("flows", OneOf(FLOWS)), ("oauth2MetadataUrl", Text)])),
    ("openIdConnectSecurityScheme", Record(&[("description", Text), ("openIdConnectUrl", Text)])),
    ("mtlsSecurityScheme", Record(&[("description", Text)])),
];
const FLOWS: &[Field] = &[
    (
        "authorizationCode",
        Record(&[
            ("authorizationUrl", Text),
            ("tokenUrl", Text),
            ("refreshUrl", Text),
            ("scopes", Map(&Text)),
            ("pkceRequired", Mark),
        ]),
    ),
    ("clientCredentials", Record(TOKEN_FLOW)),
    ("implicit", Record(&[("authorizationUrl", Text), ("refreshUrl", Text), ("scopes", Map(&Text))])),
    ("password", Record(TOKEN_FLOW)),
    (
        "deviceCode",
        Record(&[("deviceAuthorizationUrl", Text), ("tokenUrl", Text), ("refreshUrl", Text), ("scopes", Map(&Text))]),
    ),
];
const TOKEN_FLOW: &[Field] = &[("tokenUrl", Text), ("refreshUrl", Text), ("scopes", Map(&Text))];
