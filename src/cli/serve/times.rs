//! The flags of `serve` about how long things take; each is parsed into a type at the edge.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::flags::Span;
use crate::cluster::lease;
use crate::cluster::watch::Pace;

/// The client gives a connection up that is silent for 35 s: a watch has to be renewed before.
const PERIODS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(29);
const ABSENCES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);
const LEASES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);
const POLLS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(600);

/// How long things take.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct TimeArgs {
    /// How long one watch lasts until it is renewed, in whole seconds up to 29; with less than 4 s every renewal is a
    /// new list, because API servers confirm a watch in which nothing happens only 2 s before its end.
    #[arg(long, default_value = "25s", value_name = "TIME", value_parser = period)]
    pub watch_period: Span,
    /// For how long the API server has to answer 404 until a kind, and with it its objects, counts as gone.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = absence)]
    pub absence_proof: Span,
    /// How long the Lease lasts after its last renewal, in whole seconds: a killed leader is followed by then. It is renewed four
    /// times as often, and given up an eighth before its end. The same for every replica.
    #[arg(long, default_value = "8s", value_name = "TIME", value_parser = lease)]
    pub lease_duration: Span,
    /// How often the settings files are read.
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = poll)]
    pub config_poll: Span,
}

impl TimeArgs {
    /// Those of watches.
    #[must_use]
    pub fn pace(&self) -> Pace {
        Pace { period: self.watch_period.0, absence: self.absence_proof.0 }
    }

    /// Those of the election.
    #[must_use]
    pub fn lease(&self) -> lease::Times {
        lease::Times::of(self.lease_duration.0)
    }
}

fn period(text: &str) -> Result<Span, String> {
    whole(within(text, "period of a watch", &PERIODS)?, text)
}

fn absence(text: &str) -> Result<Span, String> {
    within(text, "proof", &ABSENCES)
}

fn lease(text: &str) -> Result<Span, String> {
    whole(within(text, "duration of a Lease", &LEASES)?, text)
}

fn poll(text: &str) -> Result<Span, String> {
    within(text, "time between two readings", &POLLS)
}

fn within(text: &str, what: &str, range: &RangeInclusive<Duration>) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if range.contains(&span.0) {
        Ok(span)
    } else {
        Err(format!("{text} is not a {what}; use {:?} to {:?}", range.start(), range.end()))
    }
}

/// The API takes no fractions of a second there.
fn whole(span: Span, text: &str) -> Result<Span, String> {
    if span.0.subsec_nanos() == 0 { Ok(span) } else { Err(format!("{text} is not a whole number of seconds")) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        times: TimeArgs,
    }

    fn parsed(flags: &[&str]) -> Result<TimeArgs, clap::Error> {
        Only::try_parse_from([&["serve"], flags].concat()).map(|only| only.times)
    }

    #[test]
    fn without_flags_everything_takes_as_long_as_the_parts_say() {
        let times = parsed(&[]).unwrap();
        assert_eq!(times.pace(), Pace::default());
        assert_eq!(times.lease(), lease::Times::default());
        assert_eq!(times.config_poll.0, Duration::from_secs(2));
    }

    #[test]
    fn times_that_nothing_could_work_with_are_refused() {
        for refused in [
            "--watch-period=0s",
            "--watch-period=30s",
            "--watch-period=1500ms",
            "--absence-proof=0s",
            "--absence-proof=1h",
            "--lease-duration=500ms",
            "--lease-duration=2500ms",
            "--config-poll=0s",
            "--config-poll=1",
        ] {
            assert!(parsed(&[refused]).is_err(), "{refused}");
        }
        let flags = ["--watch-period=4s", "--absence-proof=1s", "--lease-duration=2s", "--config-poll=100ms"];
        let times = parsed(&flags).unwrap();
        assert_eq!((times.pace().silence().as_secs(), times.pace().asking(false).as_millis()), (9, 1000));
        assert_eq!([false, true].map(|certain| Pace::default().asking(certain).as_secs()), [5, 15]);
        let lease = times.lease();
        assert_eq!((lease.renewal.as_millis(), lease.margin.as_millis()), (500, 250));
    }
}
