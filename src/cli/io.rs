//! Where a command reads and writes, so that a test can stand in for a terminal.

use std::io::{IsTerminal, Read, Write};

use serde::Serialize;

use super::Format;
use super::yaml::emit;
use crate::domain::printable::is_unseen;

/// Standard input, output and error of one command.
pub struct Io<'a> {
    /// Read by `-f -`.
    pub stdin: &'a mut dyn Read,
    /// Results.
    pub out: &'a mut dyn Write,
    /// Reports and errors.
    pub err: &'a mut dyn Write,
    /// Escape sequences are welcome on `out`.
    pub colour: bool,
}

/// Calls with the process's own streams. Colour is for terminals only, and `NO_COLOR` is honoured.
pub fn with_standard<T>(call: impl FnOnce(&mut Io<'_>) -> T) -> T {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (mut stdin, mut out, mut err) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    call(&mut Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour })
}

/// What a piece of a table means, for those who see colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong.
    Bad,
    /// Beside the point.
    Faint,
}

impl Io<'_> {
    /// The text in the colour of its tone, or as it is where there is no terminal.
    #[must_use]
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => 32,
            Tone::Warn => 33,
            Tone::Bad => 31,
            Tone::Faint => 2,
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Words of others as a part of one line of text: what would end the line, move the cursor, hide or turn the direction of reading is written out.
/// Every printer for people calls it where names and values enter. What it gave stays as it is when it is called again.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_unseen(letter) => out.extend(letter.escape_unicode()),
            _ => out.push(letter),
        }
    }
    out
}

/// The same of a text that has line breaks of our own: each line below the first begins with `indent`, so that none can pass for a line of the
/// report.
#[must_use]
pub fn shown_lines(text: &str, indent: &str) -> String {
    text.split('\n').map(shown).collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// Writes a value for programs; `table` is called when it is for people.
///
/// # Errors
/// When the stream is closed.
pub fn print<T: Serialize>(
    format: Format,
    value: &T,
    to: &mut dyn Write,
    table: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    match format {
        Format::Table => table(to)?,
        Format::Json => writeln!(to, "{}", serde_json::to_string_pretty(value)?)?,
        Format::Yaml => write!(to, "{}", emit::document(&serde_json::to_value(value)?, None))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_on_their_line_and_letters_as_they_are() {
        for (text, wanted) in [
            ("a\nPod b: injected", "a\\nPod b: injected"),
            ("\u{1b}[31mred\r\t\0", "\\u{1b}[31mred\\r\\t\\u{0}"),
            ("\u{202e}a\u{2066}b\u{9b}", "\\u{202e}a\\u{2066}b\\u{9b}"),
            ("Wetter für 北京 🌦 \\n", "Wetter für 北京 🌦 \\n"),
        ] {
            assert_eq!(shown(text), wanted);
            assert_eq!(shown(&shown(text)), wanted, "once more changes nothing");
        }
        assert_eq!(shown_lines("two faults:\na\u{1b}\nb", "    "), "two faults:\n    a\\u{1b}\n    b");
    }
}
