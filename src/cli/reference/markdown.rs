//! The tables as Markdown, and the page of `docs/reference/` where each stands.

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::keys::{ROWS, Values};
use crate::api::kaos_tools::read::Alias;
use crate::cli::Cli;
use crate::cli::render::policies;
use crate::cli::status::shape::FIELDS;
use crate::cli::validate::OfFiles;
use crate::config::resolved::Resolved;
use crate::config::schema::keys::KEYS;
use crate::domain::reason::Reason;
use crate::domain::written::WRITTEN;
use crate::pipelines::catalogue::IMAGES;
use crate::workloads::kaos::contract::{Place, Present, Row, Users};

/// A generated section.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Name in the markers `<!-- begin NAME -->` and `<!-- end NAME -->`.
    pub name: &'static str,
    /// The page of `docs/reference/` that has the markers, without its ending.
    pub page: &'static str,
    /// Its text, without the markers.
    pub text: fn() -> String,
}

/// Every generated section.
pub const SECTIONS: &[Section] = &[
    Section { name: "flags", page: "commands", text: flags },
    Section { name: "keys", page: "keys", text: keys },
    Section { name: "written", page: "written", text: written },
    Section { name: "gates", page: "gates", text: gates },
    Section { name: "platform", page: "platform", text: platform },
    Section { name: "reasons", page: "reasons", text: reasons },
    Section { name: "findings", page: "findings", text: findings },
    Section { name: "metrics", page: "metrics", text: metrics },
    Section { name: "status", page: "status", text: status },
    Section { name: "build-images", page: "build-images", text: build_images },
    Section { name: "own-accounts", page: "own-accounts", text: own_accounts },
    Section { name: "kaos-spellings", page: "kaos-spellings", text: kaos_spellings },
    Section { name: "kaos-environment", page: "kaos-environment", text: kaos_environment },
];

/// The text of page `name` of `docs/reference/` with its generated sections in place. Pages without any stay as they are.
///
/// # Errors
/// The name of the first section of that page whose markers are missing.
pub fn refreshed(name: &str, page: &str) -> Result<String, &'static str> {
    let mut text = page.to_owned();
    for section in SECTIONS.iter().filter(|section| section.page == name) {
        let (begin, end) = (format!("<!-- begin {} -->\n", section.name), format!("<!-- end {} -->", section.name));
        let start = text.find(&begin).ok_or(section.name)? + begin.len();
        let stop = start + text[start..].find(&end).ok_or(section.name)?;
        text.replace_range(start..stop, &(section.text)());
    }
    Ok(text)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&head.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    out.push_str(&line(&vec!["---".to_owned(); head.len()]));
    for row in rows {
        out.push_str(&line(&row.iter().map(|text| cell(text)).collect::<Vec<_>>()));
    }
    out
}

/// The shape of `status -o json`.
fn status() -> String {
    let rows =
        FIELDS.iter().map(|(path, kind, meaning)| vec![format!("`{path}`"), (*kind).to_owned(), (*meaning).to_owned()]);
    table(&["member", "type", "meaning"], rows)
}

/// Every spelling that KAOS had before, and what it means today.
fn kaos_spellings() -> String {
    let row = |alias: &Alias| {
        let row = alias.row();
        vec![row.kind.to_owned(), format!("`{}`", row.old), row.new.to_owned(), row.note.to_owned()]
    };
    table(
        &["kind", "as it was, below `spec`", "what it means today", "which counts, and what else is to be known"],
        Alias::ALL.iter().map(row),
    )
}

/// Every variable that the operator writes into a container of KAOS.
fn kaos_environment() -> String {
    let of = |place: Place| {
        let row = |row: &&Row| {
            let from: Vec<_> = row.from.iter().map(|from| from.words(place)).collect();
            let present = match row.present {
                Present::Always => "always",
                Present::When(text) => text,
            };
            let users = if row.users == Users::May { "yes" } else { "" };
            let meaning = format!("{} ({})", row.meaning, row.form.words());
            vec![format!("`{}`", row.name.shown()), meaning, from.join(", or "), present.to_owned(), users.to_owned()]
        };
        let head = [
            "variable",
            "what it says",
            "where it comes from",
            "when it is there",
            "what a user writes takes its place",
        ];
        format!("\n## `{}`: {}\n\n{}", place.name(), place.container(), table(&head, place.rows().iter().map(row)))
    };
    Place::ALL.map(of).concat()
}

/// What the API server's policies let our own accounts write.
fn own_accounts() -> String {
    let rows = policies::own_bounds().into_iter().map(|(name, says)| vec![format!("`{name}`"), says.join("; ")]);
    table(&["policy", "the controllers' account"], rows)
}

/// Every command with its flags.
fn flags() -> String {
    let mut out = String::new();
    flags_below(&Cli::command(), "drawbridge", &mut out);
    out.push('\n');
    out
}

/// The commands below a command, each followed by those below it.
fn flags_below(above: &Command, path: &str, out: &mut String) {
    for command in above.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let path = format!("{path} {}", command.get_name());
        out.push_str(&format!("\n## `{path}`\n\n{about}.\n"));
        let rows: Vec<_> = arguments(command).map(flag).collect();
        if !rows.is_empty() {
            out.push('\n');
            out.push_str(&table(&["flag", "default", "meaning"], rows));
        }
        flags_below(command, &path, out);
    }
}

fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
}

fn flag(arg: &Arg) -> Vec<String> {
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let choices: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let value = match (takes_value, choices.is_empty()) {
        (false, _) => String::new(),
        (true, true) => value,
        (true, false) => choices.join("|"),
    };
    let mut names: Vec<String> = arg.get_short().map(|short| format!("-{short}")).into_iter().collect();
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let name = if names.is_empty() { value.clone() } else { format!("{} {value}", names.join(", ")).trim().to_owned() };
    let default: Vec<_> = if takes_value {
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect()
    } else {
        Vec::new()
    };
    let default = if default.is_empty() { String::new() } else { format!("`{}`", default.join(",")) };
    vec![format!("`{name}`"), default, arg.get_help().map(ToString::to_string).unwrap_or_default()]
}

/// Every label and annotation.
fn keys() -> String {
    let rows = ROWS.iter().map(|row| {
        let values = match row.values {
            Values::OneOf(values) => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
            Values::Ports => "comma list of ports".to_owned(),
            Values::Any => "text".to_owned(),
        };
        vec![format!("`{}`", row.key), row.carrier.as_str().to_owned(), values, row.help.to_owned()]
    });
    table(&["key", "where", "values", "meaning"], rows)
}

/// Everything that is written on somebody else's object.
fn written() -> String {
    let rows = WRITTEN.iter().map(|row| {
        let what = format!("{} `{}`", row.at.as_str(), row.key);
        vec![row.on.as_str().to_owned(), what, row.when.to_owned(), row.by.to_owned(), row.off.as_str().to_owned()]
    });
    table(&["object", "what", "when", "by", "how it comes off"], rows)
}

/// Every image of the build steps.
fn build_images() -> String {
    let rows =
        IMAGES.iter().map(|(name, image, what)| vec![format!("`{name}`"), format!("`{image}`"), (*what).to_owned()]);
    table(&["name", "image", "what it is for"], rows)
}

/// Every feature gate.
fn gates() -> String {
    let rows = super::gates::rows()
        .map(|(name, default, meaning)| vec![format!("`{name}`"), default.to_string(), meaning.to_owned()]);
    table(&["gate", "default", "meaning"], rows)
}

/// Every key of the platform file.
fn platform() -> String {
    let built_in = Resolved::built_in();
    let rows = KEYS.iter().filter(|key| !key.is_retired()).map(|key| {
        let default = key.shown(&built_in).map(|shown| format!("`{}`", shown.value)).unwrap_or_default();
        let namespace = if key.is_overridable() { "yes" } else { "" };
        vec![format!("`{}`", key.path), default, namespace.to_owned(), key.help.to_owned()]
    });
    table(&["key", "built-in", "a namespace may be allowed to set it", "meaning"], rows)
}

/// Every reason code.
fn reasons() -> String {
    let rows = Reason::ALL.iter().map(|reason| {
        vec![format!("`{}`", reason.code()), reason.class().as_str().to_owned(), reason.sentence().to_owned()]
    });
    table(&["code", "class", "meaning"], rows)
}

/// The words of `validate` that are no reasons.
fn findings() -> String {
    let rows = OfFiles::ALL.iter().map(|word| vec![format!("`{}`", word.as_str()), word.sentence().to_owned()]);
    table(&["code", "meaning"], rows)
}

/// Every metric.
fn metrics() -> String {
    let rows = super::metrics::metrics().into_iter().map(|(name, help)| vec![format!("`{name}`"), help]);
    table(&["metric", "meaning"], rows)
}
