//! Agent cards by the seed, as text: good ones in every spelling that JSON allows, and such as have one oddity.

/// What is odd about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oddity {
    /// A member stands twice in one object.
    Duplicate,
    /// A member's name in other letters: `Name`.
    OtherCase,
    /// A member's name as protocol buffers have it: `supported_interfaces`.
    ProtoName,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that no double holds.
    OverDouble,
    /// A whole number of which doubles have several.
    BigInteger,
    /// Nested deeper than cards are read.
    Deep,
    /// Null for a known member, or among the elements of one.
    Null,
    /// Another type for a known member.
    WrongType,
    /// What A2A 0.3 says with members that 1.x has not.
    Legacy,
    /// Not only one object: something behind it, or something else.
    NotOneObject,
}

pub(crate) const ODDITIES: [Oddity; 11] = [
    Oddity::Duplicate,
    Oddity::OtherCase,
    Oddity::ProtoName,
    Oddity::LoneSurrogate,
    Oddity::OverDouble,
    Oddity::BigInteger,
    Oddity::Deep,
    Oddity::Null,
    Oddity::WrongType,
    Oddity::Legacy,
    Oddity::NotOneObject,
];

/// A document in one line.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) oddity: Option<Oddity>,
}

/// Numbers that look like chance and are none.
pub(crate) struct Choice(u64);

impl Choice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one<'v, T: ?Sized>(&mut self, of: &[&'v T]) -> &'v T {
        of[self.below(of.len())]
    }

    fn is(&mut self, in_hundred: usize) -> bool {
        self.below(100) < in_hundred
    }
}

/// JSON as it is written.
#[derive(Clone)]
enum Node {
    /// A text, number or word, as it stands.
    Raw(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

use Node::{List, Object, Raw};

/// Texts as they are written between quotation marks.
const TEXTS: [&str; 16] = [
    "",
    "weather",
    "Q&A <Agent>",
    "caf\u{e9} \u{2013} \u{1f30d}",
    "\\u00e9\\ud83c\\udf0d",
    "a\\u2028b\u{2029}c",
    "\\b\\f\\n\\r\\t\\u0000\\u001f",
    "\\\"\\\\\\/",
    "\u{7f}\u{80}\u{feff}",
    "http://w:8000/a?b=c&d=<e>",
    " space ",
    "\u{202e}txt",
    "\\u0041",
    "{}",
    "null",
    "0",
];
const NUMBERS: [&str; 22] = [
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1e3",
    "1E+3",
    "1e21",
    "1e20",
    "123456789.125",
    "1e-6",
    "1e-7",
    "0.1",
    "4.35",
    "5e-324",
    "1.7976931348623157e308",
    "9007199254740991",
    "-9007199254740991",
    "333333333.33333329",
    "0.000001",
    "2.5",
    "1e-400",
    "100",
];
/// Names of free members: beyond the surrogates the two orders differ.
const NAMES: [&str; 8] = ["a", "b", "A", "\u{e9}", "\u{1f30d}", "\u{ffee}", "x<y", ""];

fn text(choice: &mut Choice) -> Node {
    Raw(format!("\"{}\"", choice.one(&TEXTS)))
}

fn flag(choice: &mut Choice) -> Node {
    Raw(choice.one(&["true", "false"]).to_owned())
}

fn list(choice: &mut Choice, of: fn(&mut Choice) -> Node) -> Node {
    List((0..choice.below(4)).map(|_| of(choice)).collect())
}

/// Makes a node.
type Make = fn(&mut Choice) -> Node;

/// Any of these members, in any order.
fn some(choice: &mut Choice, members: &[(&str, Make)]) -> Vec<(String, Node)> {
    let mut found: Vec<(String, Node)> = Vec::new();
    for (name, of) in members {
        if choice.is(60) {
            let at = choice.below(found.len() + 1);
            let value = of(choice);
            found.insert(at, ((*name).to_owned(), value));
        }
    }
    found
}

fn texts(choice: &mut Choice) -> Node {
    list(choice, text)
}

fn free(choice: &mut Choice) -> Node {
    let mut names = NAMES.to_vec();
    let mut members = Vec::new();
    for _ in 0..choice.below(4) {
        let name = names.remove(choice.below(names.len()));
        members.push((name.to_owned(), any(choice, 3)));
    }
    Object(members)
}

fn any(choice: &mut Choice, depth: usize) -> Node {
    match choice.below(if depth == 0 { 4 } else { 6 }) {
        0 => text(choice),
        1 => flag(choice),
        2 => Raw("null".to_owned()),
        3 => Raw(choice.one(&NUMBERS).to_owned()),
        4 => List((0..choice.below(4)).map(|_| any(choice, depth - 1)).collect()),
        _ => {
            let members = [("a", 0), ("Z", 0), ("\u{1f30d}", 0), ("\u{ffee}", 0)];
            let kept: Vec<_> = members.iter().filter(|_| choice.is(50)).collect();
            Object(kept.into_iter().map(|(name, _)| ((*name).to_owned(), any(choice, depth - 1))).collect())
        }
    }
}

fn provider(choice: &mut Choice) -> Node {
    Object(some(choice, &[("organization", text), ("url", text), ("more", texts)]))
}

fn extension(choice: &mut Choice) -> Node {
    Object(some(choice, &[("uri", text), ("description", text), ("required", flag), ("params", free)]))
}

fn capabilities(choice: &mut Choice) -> Node {
    let extensions: fn(&mut Choice) -> Node = |choice| list(choice, extension);
    Object(some(
        choice,
        &[("streaming", flag), ("pushNotifications", flag), ("extensions", extensions), ("extendedAgentCard", flag)],
    ))
}

fn skill(choice: &mut Choice) -> Node {
    let parameter: fn(&mut Choice) -> Node = |choice| {
        Object(some(
            choice,
            &[("name", text), ("type", text), ("description", text), ("default", text), ("required", flag)],
        ))
    };
    let parameters: fn(&mut Choice) -> Node = |choice| List(vec![Object(Vec::new()); choice.below(3)]);
    let mut members = some(
        choice,
        &[
            ("id", text),
            ("name", text),
            ("description", text),
            ("tags", texts),
            ("examples", texts),
            ("inputModes", texts),
            ("outputModes", texts),
            ("parameters", parameters),
        ],
    );
    if choice.is(30) {
        members.retain(|(name, _)| name != "parameters");
        let one = parameter(choice);
        members.push(("parameters".to_owned(), List(vec![one])));
    }
    Object(members)
}

fn interface(choice: &mut Choice) -> Node {
    Object(some(choice, &[("url", text), ("protocolBinding", text), ("protocolVersion", text), ("tenant", text)]))
}

fn scheme(choice: &mut Choice) -> Node {
    let of: [(&str, &[(&str, Make)]); 4] = [
        ("apiKeySecurityScheme", &[("description", text), ("location", text), ("name", text)]),
        ("httpAuthSecurityScheme", &[("scheme", text), ("bearerFormat", text)]),
        ("openIdConnectSecurityScheme", &[("openIdConnectUrl", text)]),
        ("mtlsSecurityScheme", &[("description", text)]),
    ];
    let (name, members) = of[choice.below(of.len())];
    Object(vec![(name.to_owned(), Object(some(choice, members)))])
}

fn schemes(choice: &mut Choice) -> Node {
    Object(
        ["one", "two"]
            .iter()
            .filter(|_| choice.is(50))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|name| ((*name).to_owned(), scheme(choice)))
            .collect(),
    )
}

fn requirement(choice: &mut Choice) -> Node {
    let scopes = Object(vec![("list".to_owned(), texts(choice))]);
    Object(vec![("schemes".to_owned(), Object(vec![("one".to_owned(), scopes)]))])
}

/// A card in which both shapes may stand. It always names interfaces, so that nobody makes them of what 0.3 says.
fn card(choice: &mut Choice) -> Vec<(String, Node)> {
    let (skills, interfaces): (Make, Make) = (|choice| list(choice, skill), |choice| list(choice, interface));
    let requirements: fn(&mut Choice) -> Node = |choice| list(choice, requirement);
    let unknown: fn(&mut Choice) -> Node = |choice| any(choice, 2);
    let mut members = some(
        choice,
        &[
            ("name", text),
            ("description", text),
            ("version", text),
            ("url", text),
            ("protocolVersion", text),
            ("preferredTransport", text),
            ("documentationUrl", text),
            ("iconUrl", text),
            ("provider", provider),
            ("capabilities", capabilities),
            ("securitySchemes", schemes),
            ("securityRequirements", requirements),
            ("defaultInputModes", texts),
            ("defaultOutputModes", texts),
            ("skills", skills),
            ("unknown", unknown),
        ],
    );
    let interfaces = interfaces(choice);
    members.push(("supportedInterfaces".to_owned(), interfaces));
    members
}

/// Space that JSON allows, within one line.
fn space(choice: &mut Choice) -> &'static str {
    choice.one(&["", "", "", " ", "\t", " \r "])
}

fn write(node: &Node, choice: &mut Choice, out: &mut String) {
    match node {
        Raw(text) => out.push_str(text),
        List(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(space(choice));
                write(element, choice, out);
            }
            out.push(']');
        }
        Object(members) => {
            out.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&format!("{}\"{name}\"{}:", space(choice), space(choice)));
                write(member, choice, out);
            }
            out.push('}');
        }
    }
}

fn nested(depth: usize) -> Node {
    (0..depth).fold(Raw("1".to_owned()), |inner, _| List(vec![inner]))
}

/// What is in `params` of an extension: the only place in which numbers are covered.
fn with_params(value: Node) -> (String, Node) {
    let extension = Object(vec![("params".to_owned(), Object(vec![("p".to_owned(), value)]))]);
    ("capabilities".to_owned(), Object(vec![("extensions".to_owned(), List(vec![extension]))]))
}

fn put(members: &mut Vec<(String, Node)>, (name, value): (String, Node)) {
    members.retain(|(known, _)| *known != name);
    members.push((name, value));
}

/// The card with that oddity, which takes the place of what stood there.
fn odd(members: &mut Vec<(String, Node)>, oddity: Oddity, choice: &mut Choice) {
    let raw = |text: &str| Raw(text.to_owned());
    let named = |name: &str, value: Node| (name.to_owned(), value);
    match oddity {
        Oddity::Duplicate => {
            put(members, named("name", raw("\"one\"")));
            members.push(named("name", raw("\"two\"")));
        }
        Oddity::OtherCase => {
            let name = choice.one(&["Name", "ICONURL", "Skills", "Version"]);
            members.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            let value =
                if name == "Skills" { List(vec![Object(vec![named("ID", raw("\"s\""))])]) } else { raw("\"x\"") };
            members.push(named(name, value));
        }
        Oddity::ProtoName => {
            let (camel, snake) = [("documentationUrl", "documentation_url"), ("iconUrl", "icon_url")][choice.below(2)];
            members.retain(|(known, _)| known != camel);
            members.push(named(snake, raw("\"x\"")));
        }
        Oddity::LoneSurrogate => {
            put(members, named("name", raw(choice.one(&["\"\\ud83c\"", "\"a\\udf0d\"", "\"\\ud83cx\""]))))
        }
        Oddity::OverDouble => put(members, with_params(raw(choice.one(&["1e400", "-1e309", "2e308"])))),
        Oddity::BigInteger => {
            put(members, with_params(raw(choice.one(&["9007199254740993", "12345678901234567890", "-1e17"]))));
        }
        Oddity::Deep => put(members, with_params(nested([60, 100, 120, 200][choice.below(4)]))),
        Oddity::Null => {
            let null = || raw("null");
            let at = [
                named("name", null()),
                named("skills", null()),
                named("capabilities", null()),
                named("skills", List(vec![null()])),
                named("defaultInputModes", List(vec![null(), raw("\"x\"")])),
                named("securitySchemes", null()),
                named("provider", null()),
            ];
            put(members, at[choice.below(at.len())].clone());
        }
        Oddity::WrongType => {
            let at = [
                named("name", raw("1")),
                named("skills", raw("\"x\"")),
                named("capabilities", List(Vec::new())),
                named("defaultInputModes", raw("\"x\"")),
                named("provider", raw("true")),
                named("capabilities", Object(vec![named("streaming", raw("\"true\""))])),
                named("skills", List(vec![Object(vec![named("tags", raw("\"x\""))])])),
            ];
            put(members, at[choice.below(at.len())].clone());
        }
        Oddity::Legacy => match choice.below(4) {
            0 => {
                members.retain(|(known, _)| known != "supportedInterfaces");
                put(members, named("url", raw("\"http://w\"")));
            }
            1 => put(members, named("supportsAuthenticatedExtendedCard", raw("true"))),
            2 => {
                members.retain(|(known, _)| known != "securityRequirements");
                let scopes = Object(vec![named("one", List(vec![raw("\"read\"")]))]);
                put(members, named("security", List(vec![scopes])));
            }
            _ => {
                let scheme = Object(vec![named("type", raw("\"http\"")), named("scheme", raw("\"bearer\""))]);
                put(members, named("securitySchemes", Object(vec![named("one", scheme)])));
            }
        },
        Oddity::NotOneObject => {}
    }
}

/// The next document.
pub(crate) fn document(choice: &mut Choice) -> Document {
    let mut members = card(choice);
    let oddity = choice.is(50).then(|| ODDITIES[choice.below(ODDITIES.len())]);
    if let Some(oddity) = oddity {
        odd(&mut members, oddity, choice);
    }
    let mut text = String::new();
    write(&Object(members), choice, &mut text);
    if oddity == Some(Oddity::NotOneObject) {
        text = match choice.below(4) {
            0 => format!("{text} {text}"),
            1 => format!("[{text}]"),
            2 => text[..text.len() - 1].to_owned(),
            _ => text.replacen(':', ":+", 1),
        };
    }
    Document { text, oddity }
}
