//! Log lines on stderr, as text or JSON.
//!
//! Lines of reviews are written by [`super::lines`] when the format is JSON, and by tracing like all others when not.
//!
//! In: a level filter (`info`, `debug`, `drawbridge=trace,info`) and a format. Promises: a panic is one line with its
//! place and never its message, because messages of the standard library quote the data at hand.

use std::panic::PanicHookInfo;
use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use super::lines::{self, Lines, Reviewed};

/// The log of reviews, where it is JSON; one per process, like the log itself.
static REVIEWS: OnceLock<Lines> = OnceLock::new();

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// The log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is not one.
    #[error(
        "log level {0:?} cannot be read; use error, warn, info, debug or trace, or a list like drawbridge=debug,info"
    )]
    Level(String, #[source] ParseError),
    /// There is no thread for the lines of reviews.
    #[error("the machine gives no thread for the log")]
    Thread(#[from] std::io::Error),
    /// A subscriber was installed before.
    #[error("the log was set up twice")]
    Twice,
}

/// Sets the process's log up, and the hook that logs panics.
///
/// # Errors
/// When `level` is not a filter, or the log was set up before.
pub fn init(level: &str, format: Format) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(level).map_err(|error| LogError::Level(level.to_owned(), error))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    let installed = match format {
        Format::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
        Format::Text => lines.try_init(),
    };
    installed.map_err(|_| LogError::Twice)?;
    if format == Format::Json && REVIEWS.get().is_none() {
        // Nobody else sets it: the subscriber was installed just now, for the first and only time.
        let _ = REVIEWS.set(Lines::start(std::io::stderr())?);
    }
    std::panic::set_hook(Box::new(report_panic));
    Ok(())
}

/// Logs one review, when the level in force lets it.
pub fn reviewed(line: &Reviewed<'_>) {
    match REVIEWS.get() {
        Some(reviews) if tracing::enabled!(target: lines::TARGET, tracing::Level::INFO) => reviews.push(line),
        Some(_) => {}
        None => line.trace(),
    }
}

/// Writes the lines that still wait; to be called when the process is about to end.
pub fn finish() {
    if let Some(reviews) = REVIEWS.get() {
        reviews.finish();
    }
}

fn report_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    tracing::error!(place, thread = thread.name().unwrap_or(""), "panic: a defect in Drawbridge");
}
