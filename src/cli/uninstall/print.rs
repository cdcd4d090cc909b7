//! The plan and what came of it, for people.

use std::io::{Result, Write};

use super::Report;
use super::plan::{Kept, Phase, Plan};
use crate::cli::io::shown;

/// The plan, phase by phase; `notes` are about what could not be read.
pub(super) fn plan(out: &mut dyn Write, plan: &Plan, notes: &[String]) -> Result<()> {
    if plan.steps.is_empty() {
        let seen = if notes.is_empty() { "" } else { " that could be read" };
        writeln!(out, "nothing that Drawbridge made{seen} is left to take away")?;
    }
    for (number, phase) in
        Phase::ALL.into_iter().filter(|phase| plan.steps.iter().any(|step| step.phase == *phase)).enumerate()
    {
        writeln!(out, "{}. {}", number + 1, phase.sentence())?;
        for step in plan.steps.iter().filter(|step| step.phase == phase) {
            if step.effect == "deleted" {
                writeln!(out, "   - {}", shown(&step.object))?;
            } else {
                writeln!(out, "   - {}: {}", shown(&step.object), shown(&step.effect))?;
            }
        }
    }
    kept(out, "only once nothing needs it", &plan.later)?;
    kept(out, "stays", &plan.stays)
}

/// The plan without `--yes`; with it what came of the plan, which stands above already.
pub(super) fn report(out: &mut dyn Write, report: &Report) -> Result<()> {
    match (&report.done, &report.left) {
        (Some(done), Some(left)) => {
            let count = |outcome: &str| done.iter().filter(|done| done.outcome == outcome).count();
            writeln!(
                out,
                "\n{} steps done, {} were not needed any more, {} refused",
                count("done"),
                count("gone"),
                count("refused")
            )?;
            let (waits, undone): (Vec<Kept>, Vec<Kept>) = left.iter().cloned().partition(|left| left.planned);
            if undone.is_empty() && report.notes.is_empty() {
                writeln!(
                    out,
                    "the plan was carried out: everything was listed again, and nothing that Drawbridge made is left but what is named here and above"
                )?;
            }
            kept(out, "left undone", &undone)?;
            kept(out, "left until nothing needs it", &waits)?;
        }
        _ => {
            plan(out, &report.plan, &report.notes)?;
            if !report.plan.steps.is_empty() {
                writeln!(out, "\nnothing was changed; with --yes this plan is carried out, in this order")?;
            }
        }
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "note: {}; nothing can be said about it", shown(note)))
}

fn kept(out: &mut dyn Write, title: &str, all: &[Kept]) -> Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    all.iter().try_for_each(|one| writeln!(out, "   - {}: {}", shown(&one.object), shown(&one.why)))
}
