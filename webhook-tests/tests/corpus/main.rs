//! The golden corpus, every case a test of its own, in six runs:
//!
//! | run | asks | needs |
//! | --- | --- | --- |
//! | `evaluate::` | `evaluate`, in process | nothing |
//! | `reinvoke::` | the same, after somebody else had the Pod | nothing |
//! | `voices::` | the commands for people, in process, whether they say what the webhook says | nothing |
//! | `router::` | the router, in process, over HTTP | nothing |
//! | `warnings::` | `validate`, in process, with the objects of the case's cluster | nothing |
//! | `apiserver::` | a real API server that calls the product's process | the control plane, the product's binary |
//!
//! `cargo test -p webhook-tests --test corpus evaluate::` runs one of them, `… case_034` one case in all of them, and
//! `… -- --skip apiserver::` what needs no process.

mod apiserver;
mod evaluate;
mod reinvoke;
mod router;
mod voices;
mod warnings;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use webhook_tests::corpus::{Case, load};

/// How many cases are at the API server at once: most of a case is waiting for it.
const AT_API_SERVER: usize = 8;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let pure = [
        ("evaluate", evaluate::trials as fn(Vec<Case>) -> Vec<Trial>),
        ("reinvoke", reinvoke::trials),
        ("router", router::trials),
        ("voices", voices::trials),
        ("warnings", warnings::trials),
    ];
    let cases = load().map_err(|error| format!("{error:#}"));
    let mut failed = false;
    for (run, trials) in pure {
        failed |= libtest_mimic::run(&arguments, named(run, &cases, trials)).has_failed();
    }
    arguments.test_threads = arguments.test_threads.or(Some(AT_API_SERVER));
    let world = apiserver::World::shared();
    failed |= libtest_mimic::run(&arguments, named("apiserver", &cases, |cases| apiserver::trials(&world, cases)))
        .has_failed();
    // Processes and folders go before this one ends.
    drop(world);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The trials that `of` makes of all cases; a corpus that cannot be read is a trial that fails.
fn named(run: &str, cases: &Result<Vec<Case>, String>, of: impl FnOnce(Vec<Case>) -> Vec<Trial>) -> Vec<Trial> {
    match cases {
        Ok(cases) => of(cases.clone()),
        Err(error) => {
            let failed = Failed::from(error.as_str());
            vec![Trial::test(format!("{run}::the corpus can be read"), move || Err(failed))]
        }
    }
}

/// What the differences that a case found mean for its trial.
fn verdict(result: anyhow::Result<Vec<String>>) -> Result<(), Failed> {
    match result {
        Ok(wrong) if wrong.is_empty() => Ok(()),
        Ok(wrong) => Err(format!("\n  {}", wrong.join("\n  ")).into()),
        Err(error) => Err(format!("{error:#}").into()),
    }
}
