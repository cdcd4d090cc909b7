//! The regression gate: how many instructions a review takes, and composing a run, case by case, against the numbers kept in the tree.
//!
//! Counted by valgrind, so that a busy machine changes nothing. Each case is run with a few reviews and with more; the
//! difference is what reviews cost, without the start of the process. valgrind's machine has no SHA instructions: the
//! digests weigh more here than they take.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;

use crate::cases::Case;

/// The numbers in force, beside this package's manifest.
const FILE: &str = "instructions.txt";
/// How far a count may be from the number in force, in percent.
const TOLERANCE: u64 = 5;
/// Reviews of the two runs.
const FEW: u64 = 10;
const MORE: u64 = 60;

/// Counts every case; true when all are within the tolerance, or when `refresh` wrote them down.
///
/// # Errors
/// When valgrind cannot be run, or a case does not answer what it is about.
pub fn gate(refresh: bool) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        writeln!(
            out,
            "instructions: valgrind is not installed, so nothing is counted (Debian: apt-get install valgrind)"
        )?;
        return Ok(true);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let counts = Case::value_variants().iter().map(|case| Ok((name(*case), count(*case)?)));
    let counts: BTreeMap<String, u64> = counts.collect::<Result<_>>()?;
    if refresh {
        let lines: String = counts.iter().map(|(case, count)| format!("{case} {count}\n")).collect();
        std::fs::write(&path, lines).with_context(|| path.display().to_string())?;
        writeln!(out, "instructions: written to {}", path.display())?;
        return Ok(true);
    }
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut all_hold = true;
    for (case, count) in counts {
        let number = text.lines().find_map(|line| line.split_once(' ').filter(|(known, _)| *known == case));
        let number = number.and_then(|(_, number)| number.parse::<u64>().ok());
        let known = number.with_context(|| format!("{} has no number for {case}", path.display()))?;
        let (share, holds) = judge(count, known);
        all_hold &= holds;
        let verdict = if holds { "ok" } else { "NOT WITHIN 5 %" };
        writeln!(out, "instructions: {case:<9}{count:>9} each, {known:>9} in force, {share:+.1} %  {verdict}")?;
    }
    if !all_hold {
        writeln!(
            out,
            "instructions: find out what became dearer (valgrind --tool=callgrind target/counts/counts run CASE 100); where \
             the change is wanted, or a gain is to be kept, write the new numbers: make instructions REFRESH=1"
        )?;
    }
    Ok(all_hold)
}

/// The difference in percent, and whether it is within the tolerance.
#[expect(clippy::cast_precision_loss, reason = "counts of millions")]
fn judge(count: u64, known: u64) -> (f64, bool) {
    let share = (count as f64 / known as f64 - 1.0) * 100.0;
    (share, count.abs_diff(known) * 100 <= known * TOLERANCE)
}

fn name(case: Case) -> String {
    case.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Instructions of one review.
fn count(case: Case) -> Result<u64> {
    let [few, more] = [FEW, MORE].map(|times| collected(case, times));
    Ok((more? - few?) / (MORE - FEW))
}

/// Instructions of a process that decides `case` `times` times.
fn collected(case: Case, times: u64) -> Result<u64> {
    let log = tempfile::NamedTempFile::new()?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--log-file={}", log.path().display()))
        .arg(std::env::current_exe()?)
        .args(["run", &name(case), &times.to_string()])
        .output()?;
    ensure!(run.status.success(), "{case:?}: {}", String::from_utf8_lossy(&run.stderr));
    let text = std::fs::read_to_string(log.path())?;
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = line.with_context(|| format!("valgrind counted nothing:\n{text}"))?;
    number.trim().parse().context("a count of valgrind's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_either_way() {
        assert!(judge(105, 100).1);
        assert!(judge(95, 100).1);
        assert!(!judge(106, 100).1);
        assert!(!judge(94, 100).1, "a gain is to be kept");
    }

    #[test]
    fn every_case_has_a_number_in_force() {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE)).unwrap();
        for case in Case::value_variants() {
            assert!(text.lines().any(|line| line.starts_with(&format!("{} ", name(*case)))), "{case:?}");
        }
    }
}
