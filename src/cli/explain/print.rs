//! The tree for people.

use std::io::{Result, Write};

use super::Told;
use crate::admission::explanation::Explanation;
use crate::cli::io::{shown, shown_lines};

/// A text of several lines by its first; `-o yaml` has all of it.
fn first(text: &str) -> String {
    let mut lines = text.lines();
    match (lines.next().unwrap_or_default(), lines.count()) {
        (first, 0) => shown(first),
        (first, more) => format!("{} … {more} more lines", shown(first)),
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
        let (subject, sentence) = (shown(&tree.subject), shown(&tree.sentence));
        writeln!(out, "{subject}: {} ({}): {sentence}", self.outcome(tree), tree.reason)?;
        if let Some(workload) = &tree.workload {
            writeln!(out, "├─ workload {}", shown(workload))?;
        }
        if let Some(denial) = &tree.denial {
            // A refusal of several faults has a line for each.
            writeln!(out, "├─ {}", self.paint(31, &shown_lines(denial, "│  ")))?;
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
        let says = |passed| if passed { "passed" } else { "decided" };
        let lines = tree
            .filters
            .iter()
            .map(|filter| shown(&format!("{}: {} ({})", filter.name, filter.seen, says(filter.passed))));
        branch(out, "gates, in the order in which they are asked", &lines.collect::<Vec<_>>())
    }

    fn sidecars(out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        let says = |injected| if injected { "yes" } else { "no" };
        let lines = tree.sidecars.iter();
        let lines = lines.map(|sidecar| format!("{}: {} ({})", sidecar.name, says(sidecar.injected), sidecar.layer));
        branch(out, "sidecars", &lines.collect::<Vec<_>>())
    }

    fn fields(&self, out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        let lines = tree.fields.iter().map(|field| {
            let shadowed: String = field
                .shadowed
                .iter()
                .map(|shadowed| shown(&format!("; shadows {} [{}]", shadowed.value, shadowed.layer)))
                .collect();
            let layer = self.paint(2, &format!("[{}]", shown(&field.layer)));
            format!("{} = {}  {layer}{shadowed}", shown(&field.name), shown(&field.value))
        });
        branch(out, "configuration, and who set it", &lines.collect::<Vec<_>>())
    }

    fn parts(out: &mut dyn Write, tree: &Explanation) -> Result<()> {
        let parts = tree.parts.iter().map(|part| {
            let detail = if part.detail.is_empty() { String::new() } else { format!(" ({})", first(&part.detail)) };
            format!("{} {}{detail}", part.kind, shown(&part.name))
        });
        branch(out, "added to the Pod", &parts.chain(tree.edits.iter().map(|edit| shown(edit))).collect::<Vec<_>>())
    }

    fn list(out: &mut dyn Write, title: &str, lines: &[String]) -> Result<()> {
        branch(out, title, &lines.iter().map(|line| shown(line)).collect::<Vec<_>>())
    }

    /// What decides, before and after: the reason first, one line each; of the Pod only how much of it changes.
    fn what_if(&self, out: &mut dyn Write, told: &Told) -> Result<()> {
        let Some(difference) = &told.what_if else { return Ok(()) };
        let before = format!("{} ({})", told.explanation.outcome, told.explanation.reason);
        if before == difference.outcome && difference.changes.is_empty() {
            return writeln!(out, "what if: nothing would change, it stays {before}");
        }
        let decision = if before == difference.outcome {
            format!("it stays {before}")
        } else {
            format!("{before} → {}", difference.outcome)
        };
        writeln!(out, "what if: {decision}")?;
        let mut lines = Vec::new();
        let (mut more, mut less, mut other) = (0, 0, 0);
        for change in &difference.changes {
            match (decided(&change.path), &change.before, &change.after) {
                (Some(what), before, after) => {
                    let word = |text: &Option<String>| match text.as_deref() {
                        None => "nothing".to_owned(),
                        Some("true") if what.starts_with("sidecar ") => "yes".to_owned(),
                        Some("false") if what.starts_with("sidecar ") => "no".to_owned(),
                        Some(text) => first(text),
                    };
                    lines.push(format!("{}: {} → {}", shown(&what), word(before), word(after)));
                }
                (None, None, _) => more += usize::from(change.path.starts_with("parts.")),
                (None, _, None) => less += usize::from(change.path.starts_with("parts.")),
                (None, _, _) => other += usize::from(change.path.starts_with("parts.")),
            }
        }
        if more + less + other > 0 {
            let counts = format!("{more} lines more, {less} less, {other} others");
            lines.push(format!("what is added to the Pod: {counts} (-o yaml has all of them)"));
        }
        let last = lines.len().saturating_sub(1);
        lines.iter().enumerate().try_for_each(|(place, line)| writeln!(out, "   {} {line}", twig(place == last)))
    }
}

/// What a path of the difference is called where it is a decision; `None` for everything else.
fn decided(path: &str) -> Option<String> {
    if path == "workload" {
        return Some("workload".to_owned());
    }
    if let Some(name) = path.strip_prefix("sidecars.").and_then(|rest| rest.strip_suffix(".injected")) {
        return Some(format!("sidecar {name}"));
    }
    let name = path.strip_prefix("fields.")?.strip_suffix(".value")?;
    (!name.contains(".shadowed.")).then(|| name.to_owned())
}

fn twig(is_last: bool) -> &'static str {
    if is_last { "└─" } else { "├─" }
}

/// A title and what stands below it; nothing when that is nothing.
fn branch(out: &mut dyn Write, title: &str, lines: &[String]) -> Result<()> {
    let Some(last) = lines.len().checked_sub(1) else { return Ok(()) };
    writeln!(out, "├─ {title}")?;
    lines.iter().enumerate().try_for_each(|(place, line)| writeln!(out, "│  {} {line}", twig(place == last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::explain::PatchSummary;
    use crate::cli::explain::what_if::{Changed, Difference};

    #[test]
    fn what_a_manifest_says_stays_on_its_line() {
        let evil = "a\n├─ forged\u{1b}[2J\u{202e}";
        let explanation = Explanation {
            subject: evil.to_owned(),
            workload: Some(evil.to_owned()),
            outcome: "injected".to_owned(),
            reason: "Injected".to_owned(),
            edits: vec![evil.to_owned()],
            warnings: vec![evil.to_owned()],
            denial: Some("two faults:\none\ntwo".to_owned()),
            ..Explanation::default()
        };
        let told = Told {
            explanation,
            patch: PatchSummary::default(),
            refused: false,
            notes: vec![evil.to_owned()],
            what_if: None,
        };
        let mut out = Vec::new();
        Painter { colour: false }.tree(&mut out, &told).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("\n├─ forged"), "{text}");
        assert_eq!(text.matches("a\\n├─ forged\\u{1b}[2J\\u{202e}").count(), 5, "{text}");
        assert!(text.contains("├─ two faults:\n│  one\n│  two\n"), "{text}");
    }

    #[test]
    fn answers_12_a_change_is_told_by_what_decides_and_trees_end() {
        let change = |path: &str, before: Option<&str>, after: Option<&str>| Changed {
            path: path.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        };
        let difference = Difference {
            outcome: "skipped (OptedOut)".to_owned(),
            changes: vec![
                change("fields.mode.value", Some("envoy-sidecar"), Some("proxy-sidecar")),
                change("sidecars.envoy-proxy.injected", Some("true"), Some("false")),
                change("parts.container.envoy-proxy.env.A", Some("1"), None),
                change("parts.container.envoy-proxy.env.B", None, Some("1")),
                change("reason", Some("Injected"), Some("OptedOut")),
            ],
        };
        let explanation = Explanation {
            subject: "Pod a".to_owned(),
            outcome: "injected".to_owned(),
            reason: "Injected".to_owned(),
            edits: vec!["one".to_owned(), "two".to_owned()],
            ..Explanation::default()
        };
        let patch = PatchSummary::default();
        let told = Told { explanation, patch, refused: false, notes: Vec::new(), what_if: Some(difference) };
        let mut out = Vec::new();
        Painter { colour: false }.tree(&mut out, &told).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("├─ added to the Pod\n│  ├─ one\n│  └─ two\n"), "{text}");
        let told = text.split("what if: ").nth(1).unwrap();
        assert_eq!(
            told,
            "injected (Injected) → skipped (OptedOut)\n   ├─ mode: envoy-sidecar → proxy-sidecar\n   ├─ sidecar envoy-proxy: yes → no\n   \
             └─ what is added to the Pod: 1 lines more, 1 less, 0 others (-o yaml has all of them)\n"
        );
    }
}
