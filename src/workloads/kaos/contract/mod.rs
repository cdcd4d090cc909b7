//! The environment that a container of KAOS finds: each variable that the operator writes, once, with what it looks like, where it comes from and
//! when it is there.
//!
//! In: nothing. Out: the rows that [`super::variables::Variables`] is written by, and the same as a JSON schema ([`schema::schema`]) for those
//! who build images. Promise: a variable without a row cannot be written, because the row is what is written by.

mod rows;
pub mod schema;

pub use rows::*;

use super::names::Role;

/// A container whose environment the operator writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// That of an Agent.
    #[default]
    Agent,
    /// LiteLLM, of a ModelAPI in mode Proxy.
    Proxy,
    /// Ollama, of a ModelAPI in mode Hosted.
    Hosted,
    /// The init containers that pull the model of a ModelAPI in mode Hosted.
    Pull,
    /// That of an MCPServer.
    Tools,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 5] = [Place::Agent, Place::Proxy, Place::Hosted, Place::Pull, Place::Tools];

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Place::Agent => "agent",
            Place::Proxy => "modelapi-proxy",
            Place::Hosted => "modelapi-hosted",
            Place::Pull => "modelapi-pull",
            Place::Tools => "mcpserver",
        }
    }

    /// Which container that is.
    #[must_use]
    pub const fn container(self) -> &'static str {
        match self {
            Place::Agent => "container agent of an Agent",
            Place::Proxy => "container model-api of a ModelAPI in mode Proxy, which runs LiteLLM",
            Place::Hosted => "container model-api of a ModelAPI in mode Hosted, which runs Ollama",
            Place::Pull => "init containers pull-server and pull-model of a ModelAPI in mode Hosted",
            Place::Tools => "container mcp-server of an MCPServer",
        }
    }

    /// The rows of its variables, in the order in which they are written.
    #[must_use]
    pub fn rows(self) -> &'static [&'static Row] {
        match self {
            Place::Agent => AGENT,
            Place::Proxy => PROXY,
            Place::Hosted => HOSTED,
            Place::Pull => PULL,
            Place::Tools => TOOLS,
        }
    }

    /// The row of a variable of that name.
    #[must_use]
    pub fn row(self, name: &str) -> Option<&'static Row> {
        self.rows().iter().copied().find(|row| row.name.is(name))
    }

    const fn telemetry(self) -> &'static str {
        match self {
            Place::Agent => "spec.config.telemetry",
            _ => "spec.telemetry",
        }
    }
}

/// One variable.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is called.
    pub name: Name,
    /// What its value looks like.
    pub form: Form,
    /// Where it comes from: the first unless the writer says another.
    pub from: &'static [Origin],
    /// When it is there.
    pub present: Present,
    /// Whether what the user writes under that name counts.
    pub users: Users,
    /// What it says to the process.
    pub meaning: &'static str,
}

/// How a variable is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Always so.
    Fixed(&'static str),
    /// A name of an object between two texts: as it is.
    AsWritten(&'static str, &'static str),
    /// The same in upper case, hyphens as underscores.
    UpperCase(&'static str, &'static str),
    /// As the registry of runtimes says (`paramsEnvVar`); so for the runtime that executes text.
    Registered(&'static str),
}

impl Name {
    /// Whether a variable of that name is meant.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        match self {
            Name::Fixed(own) | Name::Registered(own) => name == own,
            Name::AsWritten(before, after) | Name::UpperCase(before, after) => name
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .is_some_and(|middle| !middle.is_empty()),
        }
    }

    /// As a page prints it.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Name::Fixed(name) | Name::Registered(name) => name.to_owned(),
            Name::AsWritten(before, after) => format!("{before}<name>{after}"),
            Name::UpperCase(before, after) => format!("{before}<NAME>{after}"),
        }
    }

    /// Of an object.
    #[must_use]
    pub fn of(self, object: &str) -> String {
        match self {
            Name::Fixed(name) | Name::Registered(name) => name.to_owned(),
            Name::AsWritten(before, after) => format!("{before}{object}{after}"),
            Name::UpperCase(before, after) => {
                format!("{before}{}{after}", object.to_ascii_uppercase().replace('-', "_"))
            }
        }
    }
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// A whole number, at least 0.
    Number,
    /// `true` or `false`.
    Flag,
    /// Name of an object.
    Object,
    /// Names of objects, divided by commas.
    Objects,
    /// Base URL of an object of that kind in the cluster, without a slash at its end.
    Endpoint(Role),
    /// One of these.
    OneOf(&'static [&'static str]),
}

impl Form {
    /// In a word or two.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Form::Text => "text".to_owned(),
            Form::Number => "whole number".to_owned(),
            Form::Flag => "true or false".to_owned(),
            Form::Object => "name".to_owned(),
            Form::Objects => "names, divided by commas".to_owned(),
            Form::Endpoint(role) => format!("base URL of that {}", role.kind()),
            Form::OneOf(values) => values.join(", "),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A field of the object.
    Field(&'static str),
    /// The object's own telemetry.
    Telemetry,
    /// A key of the platform file.
    Platform(&'static str),
    /// That spelling of the object.
    Spelling(&'static str),
    /// Nobody decides it.
    BuiltIn(&'static str),
}

impl Origin {
    /// In words, for a container.
    #[must_use]
    pub fn words(self, place: Place) -> String {
        match self {
            Origin::Field(path) => path.to_owned(),
            Origin::Telemetry => place.telemetry().to_owned(),
            Origin::Platform(key) => format!("{key} of the platform file"),
            Origin::Spelling(name) => format!("spelling {name}"),
            Origin::BuiltIn(why) => format!("built in: {why}"),
        }
    }
}

/// When a variable is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// In every such container.
    Always,
    /// Where that holds.
    When(&'static str),
}

/// Whether a user's entry of that name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// It takes the place of the operator's.
    May,
    /// It is left out.
    MayNot,
}
