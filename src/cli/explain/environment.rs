//! `drawbridge explain environment`: the environment that containers of KAOS find, as a JSON schema.
//!
//! In: nothing, or which container. Out: the schema of docs/reference/kaos-environment.json, or one of its definitions.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::cli::Exit;
use crate::cli::io::Io;
use crate::workloads::kaos::contract::{Place, schema};

/// Arguments of `explain environment`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the definition of this container alone, as a schema of its own.
    #[arg(value_enum)]
    pub container: Option<Container>,
}

/// A container whose environment the operator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container(Place);

impl ValueEnum for Container {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Container; Place::ALL.len()] = [
            Container(Place::ALL[0]),
            Container(Place::ALL[1]),
            Container(Place::ALL[2]),
            Container(Place::ALL[3]),
            Container(Place::ALL[4]),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.container()))
    }
}

/// The schema, as it is printed and published.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", schema::schema())
}

/// Prints it.
///
/// # Errors
/// When standard output is closed.
pub(super) fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    match args.container {
        None => write!(io.out, "{}", text())?,
        Some(Container(place)) => {
            let mut said = json!({"$schema": schema::schema()["$schema"]});
            if let (Some(said), Value::Object(definition)) = (said.as_object_mut(), schema::definition(place)) {
                said.extend(definition);
            }
            writeln!(io.out, "{said:#}")?;
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn said(words: &[&str]) -> Value {
        let (mut out, mut err, mut stdin) = (Vec::new(), Vec::new(), &b""[..]);
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let words = ["drawbridge", "explain", "environment"].iter().chain(words);
        let cli = crate::cli::Cli::try_parse_from(words).unwrap();
        assert_eq!(cli.command.run(&mut io).unwrap(), Exit::Ok);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_whole_contract_and_each_container_alone_are_schemas() {
        let whole = said(&[]);
        for place in Place::ALL {
            let alone = said(&[place.name()]);
            assert_eq!(
                (&alone["$schema"], &alone["properties"]),
                (&whole["$schema"], &whole["$defs"][place.name()]["properties"])
            );
        }
    }
}
