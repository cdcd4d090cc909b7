//! Where a command reads and writes, so that a test can stand in for a terminal.

use std::io::{IsTerminal, Read, Write};

use serde::Serialize;

use super::Format;
use super::yaml::emit;

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
