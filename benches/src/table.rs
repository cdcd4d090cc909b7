//! The table: what must hold, what is aimed at, what was measured.

use std::fmt::Write as _;
use std::time::Duration;

/// One row.
#[derive(Debug, Clone)]
pub struct Row {
    /// What is measured.
    pub what: String,
    /// The largest value that is good enough (the smallest, for [`Row::at_least`]).
    pub must: f64,
    /// The same on a machine that is too slow for `must` whatever is measured, by what its bare peer took in the same run.
    pub here: Option<f64>,
    /// The value aimed at.
    pub aim: f64,
    /// The value measured.
    pub measured: f64,
    /// Behind every number: empty, ` µs`, ` MiB`.
    pub unit: &'static str,
    /// More is better.
    pub more_is_better: bool,
    /// How the value came about, for the reader.
    pub note: String,
}

impl Row {
    /// A row where less is better.
    #[must_use]
    pub fn at_most(what: impl Into<String>, (must, aim): (f64, f64), measured: f64, unit: &'static str) -> Self {
        Self { what: what.into(), must, aim, measured, here: None, unit, more_is_better: false, note: String::new() }
    }

    /// A row where more is better.
    #[must_use]
    pub fn at_least(what: impl Into<String>, limits: (f64, f64), measured: f64, unit: &'static str) -> Self {
        Self { more_is_better: true, ..Self::at_most(what, limits, measured, unit) }
    }

    /// The same row, with a word on how it came about.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The same row, of a number that is the machine's as much as ours: `here` is good enough where `must` asks for more.
    #[must_use]
    pub fn here(mut self, here: f64) -> Self {
        let laxer = if self.more_is_better { here < self.must } else { here > self.must };
        self.here = laxer.then_some(here);
        self
    }

    /// Whether the must is met, by what is good enough on this machine.
    #[must_use]
    pub fn ok(&self) -> bool {
        let must = self.here.unwrap_or(self.must);
        if self.more_is_better { self.measured >= must } else { self.measured <= must }
    }
}

/// A number with as many digits as say something.
fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The rows as a Markdown table.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut text = String::from("| what | must | aim | measured | ok | how |\n| --- | --- | --- | --- | --- | --- |\n");
    for row in rows {
        let sign = if row.more_is_better { "≥" } else { "≤" };
        let limit =
            |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{sign} {}{}", number(value), row.unit) };
        let here = row.here.map_or_else(String::new, |here| format!("; here {}", limit(here)));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {}{here} | {} | {}{} | {} | {} |",
            row.what,
            limit(row.must),
            limit(row.aim),
            number(row.measured),
            row.unit,
            if row.ok() { "yes" } else { "**no**" },
            row.note
        );
    }
    text
}

/// The middle value.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which `share` of the sorted `times` lie, in microseconds.
#[must_use]
pub fn quantile(times: &[Duration], share: f64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let index = (times.len() as f64 * share) as usize;
    times.get(index.min(times.len().saturating_sub(1))).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_must_is_seen_in_either_direction() {
        assert!(Row::at_most("cpu", (3.0, 2.2), 3.0, "").ok());
        assert!(!Row::at_most("cpu", (3.0, 2.2), 3.01, "").ok());
        assert!(Row::at_least("rate", (8000.0, 15000.0), 8000.0, "/s").ok());
        assert!(!Row::at_least("rate", (8000.0, 15000.0), 7999.0, "/s").ok());
        assert!(!Row::at_most("nothing measured", (1.0, 1.0), f64::NAN, "").ok());
    }

    /// A slow machine asks for less, never for more; and what is not measured is not met.
    #[test]
    fn a_slow_machine_has_a_must_of_its_own() {
        let p50 = |measured, here| Row::at_most("p50", (150.0, 100.0), measured, " µs").here(here);
        assert!(p50(300.0, 315.0).ok() && !p50(316.0, 315.0).ok() && !p50(151.0, 60.0).ok() && p50(149.0, 60.0).ok());
        assert!(!p50(300.0, f64::NAN).ok() && !p50(f64::NAN, 315.0).ok());
        let rate = |measured, here| Row::at_least("rate", (8000.0, 15000.0), measured, "/s").here(here);
        assert!(rate(3500.0, 3200.0).ok() && !rate(3100.0, 3200.0).ok() && !rate(7999.0, 20000.0).ok());
        let text = markdown(&[p50(300.0, 315.0), p50(300.0, 20.0)]);
        assert!(text.contains("| ≤ 150 µs; here ≤ 315 µs | ≤ 100 µs | 300 µs | yes |"), "{text}");
        assert!(text.contains("| ≤ 150 µs | ≤ 100 µs | 300 µs | **no** |"), "{text}");
    }

    #[test]
    fn rows_print_as_markdown() {
        let text = markdown(&[Row::at_most("p50", (150.0, 100.0), 87.25, " µs").noted("one connection")]);
        assert!(text.ends_with("| p50 | ≤ 150 µs | ≤ 100 µs | 87.2 µs | yes | one connection |\n"), "{text}");
    }

    #[test]
    fn medians_and_quantiles() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert!((quantile(&times, 0.99) - 100.0).abs() < 1e-9);
        assert!((quantile(&times, 0.5) - 51.0).abs() < 1e-9);
    }
}
