//! The tree for people.

use std::io::{Result, Write};

use super::Told;
use crate::admission::explanation::Explanation;

/// A text of several lines by its first; `-o yaml` has all of it.
fn first(text: &str) -> String {
    let mut lines = text.lines();
    match (lines.next().unwrap_or_default(), lines.count()) {
        (first, 0) => first.to_owned(),
        (first, more) => format!("{first} … {more} more lines"),
    }
}

/// Colour for terminals.
pub(super) struct Painter {
    pub(super) colour: bool,
}

impl Painter {
    fn paint(&self, code: u8, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn outcome(&self, tree: &Explanation) -> String {
        let code = match tree.outcome.as_str() {
            "injected" => 32,
            "denied" => 31,
            _ => 33,
        };
        self.paint(code, &tree.outcome)
    }

    /// Writes one answer.
    pub(super) fn tree(&self, out: &mut dyn Write, told: &Told) -> Result<()> {
        let tree = &told.explanation;
        writeln!(out, "{}: {} ({}): {}", tree.subject, self.outcome(tree), tree.reason, tree.sentence)?;
        if let Some(workload) = &tree.workload {
            writeln!(out, "├─ workload {workload}")?;
        }
        if let Some(denial) = &tree.denial {
            writeln!(out, "├─ {}", self.paint(31, denial))?;
        }
        Self::filters(out, tree)?;
        Self::sidecars(out, tree)?;
        self.fields(out, tree)?;
        Self::parts(out, tree)?;
        Self::list(out, "warnings", &tree.warnings)?;
        Self::list(out, "notes", &told.notes)?;
        let kinds: Vec<_> = told.patch.operations.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let summary = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        writeln!(out, "└─ patch: {summary}")?;
        self.what_if(out, told)
    }

    fn filters(out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        writeln!(out, "├─ gates, in the order in which they are asked")?;
        for filter in &tree.filters {
            let says = if filter.passed { "passed" } else { "decided" };
            writeln!(out, "│  ├─ {}: {} ({says})", filter.name, filter.seen)?;
        }
        Ok(())
    }

    fn sidecars(out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        if tree.sidecars.is_empty() {
            return Ok(());
        }
        writeln!(out, "├─ sidecars")?;
        for sidecar in &tree.sidecars {
            let says = if sidecar.injected { "yes" } else { "no" };
            writeln!(out, "│  ├─ {}: {says} ({})", sidecar.name, sidecar.layer)?;
        }
        Ok(())
    }

    fn fields(&self, out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        if tree.fields.is_empty() {
            return Ok(());
        }
        writeln!(out, "├─ configuration, and who set it")?;
        for field in &tree.fields {
            writeln!(out, "│  ├─ {} = {}  {}", field.name, field.value, self.paint(2, &format!("[{}]", field.layer)))?;
            for shadowed in &field.shadowed {
                writeln!(out, "│  │  └─ shadows {} [{}]", shadowed.value, shadowed.layer)?;
            }
        }
        Ok(())
    }

    fn parts(out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        if tree.parts.is_empty() && tree.edits.is_empty() {
            return Ok(());
        }
        writeln!(out, "├─ added to the Pod")?;
        for part in &tree.parts {
            let detail = if part.detail.is_empty() { String::new() } else { format!(" ({})", first(&part.detail)) };
            writeln!(out, "│  ├─ {} {}{detail}", part.kind, part.name)?;
        }
        for edit in &tree.edits {
            writeln!(out, "│  ├─ {edit}")?;
        }
        Ok(())
    }

    fn list(out: &mut dyn Write, title: &str, lines: &[String]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "├─ {title}")?;
        lines.iter().try_for_each(|line| writeln!(out, "│  ├─ {line}"))
    }

    fn what_if(&self, out: &mut dyn Write, told: &Told) -> Result<()> {
        let Some(difference) = &told.what_if else { return Ok(()) };
        writeln!(out, "what if: {}", difference.outcome)?;
        if difference.changes.is_empty() {
            return writeln!(out, "   nothing would change");
        }
        for change in &difference.changes {
            let (before, after) = (change.before.as_deref().map(first), change.after.as_deref().map(first));
            match (before, after) {
                (Some(before), Some(after)) => writeln!(out, "   ~ {}: {before} → {after}", change.path)?,
                (None, Some(after)) => writeln!(out, "   {} {}: {after}", self.paint(32, "+"), change.path)?,
                (Some(before), None) => writeln!(out, "   {} {}: {before}", self.paint(31, "-"), change.path)?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
