//! The command line: clap types and wiring, one file per subcommand.
//!
//! In: arguments, standard input, files, and for some commands a cluster. Out: text or JSON or YAML on standard output, reports on
//! standard error, and one of five exit codes ([`Exit`]). Every command is a function of its arguments and an
//! [`io::Io`], so that tests call what people call.

pub mod alerts;
pub mod build;
pub mod card;
pub mod cluster;
pub mod completion;
pub mod doctor;
pub mod explain;
pub mod given;
pub mod graph;
pub mod inject;
pub mod io;
pub mod migrate;
pub mod offline;
pub mod policy;
pub mod quarantine;
pub mod reference;
pub mod render;
pub(in crate::cli) mod scope;
pub mod serve;
pub mod status;
pub mod survey;
pub(in crate::cli) mod tool_names;
pub mod uninstall;
pub mod validate;
pub mod version;
pub mod yaml;

use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use io::Io;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nothing to complain about.
    Ok = 0,
    /// The command worked and found something a person should act on.
    Findings = 1,
    /// The arguments or the input could not be used.
    Usage = 2,
    /// The cluster did not answer.
    Unreachable = 3,
    /// The command worked and found nothing of the kind, and something that its answer rests on could not be seen.
    Partial = 4,
}

impl Exit {
    /// The same, where something could not be seen: what was found stays found, and that nothing is wrong nobody can say.
    #[must_use]
    pub fn with_unseen(self) -> Self {
        if self == Exit::Ok { Exit::Partial } else { self }
    }
}

/// The cluster could not be asked; ends the command with [`Exit::Unreachable`].
#[derive(Debug, thiserror::Error)]
#[error("cluster unreachable: {what}. What to do: {remedy}")]
pub struct Unreachable {
    /// What was tried, where, and what came of it.
    what: String,
    /// What a person does next.
    remedy: String,
}

impl Unreachable {
    /// What was tried, and what to do next.
    #[must_use]
    pub fn new(what: String, remedy: &str) -> Self {
        Self { what, remedy: remedy.to_owned() }
    }

    /// The same, for a command that has another way.
    #[must_use]
    pub fn or(self, way: &str) -> Self {
        Self { remedy: format!("{}; or {way}", self.remedy), ..self }
    }
}

/// What was asked about may not be seen, so nothing can be said; ends the command with [`Exit::Partial`].
#[derive(Debug, thiserror::Error)]
#[error("{0}. What to do: ask as somebody who may read it, or have ClusterRole drawbridge-diagnosis bound to you")]
pub struct Unseen(pub String);

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// For both.
    Yaml,
}

/// Turns Kubernetes workloads into governed AI agents: admission webhook, controllers, and the tools around them.
#[derive(Debug, Parser)]
#[command(
    name = "drawbridge",
    version,
    max_term_width = 120,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands, in the order of the help text.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator: answer admission reviews, and make what injected Pods need.
    Serve(Box<serve::Args>),
    /// Add the sidecars to manifests, offline. Of a document that changes the comments ahead of it are kept, and none within it.
    Inject(inject::Args),
    /// Take the sidecars out of manifests again, offline. Comments are kept as by inject.
    Uninject(inject::UninjectArgs),
    /// Show a decision as a tree, and what would change it.
    Explain(explain::Args),
    /// Say what the webhook would say about manifests, offline, with file and line.
    Validate(validate::Args),
    /// Show every enrolled workload, and whether its Pods are what they should be.
    Status(status::Args),
    /// Start, cancel, read and understand the builds of AgentBuilds.
    Build(build::Args),
    /// Judge agent cards: by whom one is signed, and whether it still says what was signed.
    Card(card::Args),
    /// Draw how KAOS's agents, model APIs and tool servers are wired, and what of it is not ready.
    Graph(graph::Args),
    /// Say what NetworkPolicies of ours would cut and open, before they are there.
    Policy(policy::Args),
    /// Cut agents off from everybody, and let no Pod of theirs be made, until they are released.
    Quarantine(quarantine::Args),
    /// End a quarantine: what was before it holds again.
    Release(quarantine::ReleaseArgs),
    /// Check an installation on a cluster.
    Doctor(doctor::Args),
    /// Write what was made for an earlier operator as it is spelled today, offline.
    Migrate(migrate::Args),
    /// Print the install manifests.
    Render(render::Args),
    /// Print the alert rules.
    Alerts(alerts::Args),
    /// Take everything of Drawbridge out of a cluster; without --yes, say what that would be.
    Uninstall(uninstall::Args),
    /// Print a completion script for a shell.
    Completion(completion::Args),
    /// Print the version.
    Version(version::Args),
}

impl Command {
    /// Runs it.
    ///
    /// # Errors
    /// When arguments, input or cluster cannot be used; [`Unreachable`] in the chain tells the cluster apart.
    pub fn run(self, io: &mut Io<'_>) -> anyhow::Result<Exit> {
        match self {
            Command::Serve(args) => serve::run(*args, io),
            Command::Inject(args) => inject::run(args, io),
            Command::Uninject(args) => inject::run_uninject(args, io),
            Command::Explain(args) => explain::run(args, io),
            Command::Validate(args) => validate::run(args, io),
            Command::Status(args) => status::run(args, io),
            Command::Build(args) => build::run(args, io),
            Command::Card(args) => card::run(args, io),
            Command::Graph(args) => graph::run(args, io),
            Command::Policy(args) => policy::run(args, io),
            Command::Quarantine(args) => quarantine::run(args, io),
            Command::Release(args) => quarantine::release(args, io),
            Command::Doctor(args) => doctor::run(args, io),
            Command::Migrate(args) => migrate::run(args, io),
            Command::Render(args) => render::run(args, io),
            Command::Alerts(args) => alerts::run(&args, io),
            Command::Uninstall(args) => uninstall::run(args, io),
            Command::Completion(args) => completion::run(&args, io),
            Command::Version(args) => version::run(&args, io),
        }
    }
}

/// Parses the arguments and runs the subcommand.
#[must_use]
pub fn main() -> ExitCode {
    let mut command = Cli::command();
    if started_by_kubectl() {
        command = command.bin_name("kubectl drawbridge");
    }
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let exit = match parsed {
        Ok(cli) => io::with_standard(|io| {
            let result = cli.command.run(io);
            conclude(result, io)
        }),
        Err(error) => {
            let asked_for = !error.use_stderr();
            // A closed pipe is the reader's decision; there is nobody left to tell.
            let _ = error.print();
            if let Some(sentence) = refused_flag(&error) {
                io::with_standard(|io| drop(writeln!(io.err, "\n{sentence}")));
            }
            if asked_for { Exit::Ok } else { Exit::Usage }
        }
    };
    ExitCode::from(exit as u8)
}

/// The exit code of a result; an error is printed with its whole chain.
pub fn conclude(result: anyhow::Result<Exit>, io: &mut Io<'_>) -> Exit {
    // What stays in a buffer is lost without a word when the disk is full.
    let written = result.and_then(|exit| io.out.flush().map(|()| exit).context("standard output"));
    match written {
        Ok(exit) => exit,
        Err(error) if error.chain().any(is_closed_pipe) => Exit::Ok,
        Err(error) => {
            // A cause may quote what a manifest or a server says.
            let text = io::shown_lines(&format!("{error:#}"), "  ");
            let _ = writeln!(io.err, "drawbridge: {text}");
            match () {
                () if error.chain().any(|cause| cause.is::<Unreachable>()) => Exit::Unreachable,
                () if error.chain().any(|cause| cause.is::<Unseen>()) => Exit::Partial,
                () => Exit::Usage,
            }
        }
    }
}

fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What stands in for a flag of the Go operators that this version does not have.
fn refused_flag(error: &clap::Error) -> Option<String> {
    let Some(clap::error::ContextValue::String(argument)) = error.get(clap::error::ContextKind::InvalidArg) else {
        return None;
    };
    serve::refused::sentence(argument).map(|sentence| format!("{argument}: {sentence}"))
}

/// kubectl runs a plugin under the name `kubectl-drawbridge`.
fn started_by_kubectl() -> bool {
    std::env::args_os().next().is_some_and(|path| {
        std::path::Path::new(&path).file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_arguments_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_wrong_is_told_though_not_everything_could_be_seen() {
        for (exit, with_unseen) in [
            (Exit::Ok, Exit::Partial),
            (Exit::Findings, Exit::Findings),
            (Exit::Usage, Exit::Usage),
            (Exit::Unreachable, Exit::Unreachable),
            (Exit::Partial, Exit::Partial),
        ] {
            assert_eq!(exit.with_unseen(), with_unseen, "{exit:?}");
        }
    }
}
