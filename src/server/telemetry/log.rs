//! Log lines on stderr, as text or JSON.
//!
//! Lines of reviews are written by [`super::lines`] when the format is JSON, and by tracing like all others when not.
//!
//! In: a level filter (`info`, `debug`, `drawbridge=trace,info`) and a format. Promises: a panic is one line with its
//! place and never its message, because messages of the standard library quote the data at hand; whatever the level,
//! libraries do not log answers of the API server, which quote what people wrote.

use std::panic::PanicHookInfo;
use std::sync::OnceLock;

use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::lines::{self, Lines, Reviewed};

/// The log of reviews, where it is JSON; one per process, like the log itself.
static REVIEWS: OnceLock<Lines> = OnceLock::new();

/// Modules that log whole answers of the API server (level debug, and objects that do not decode even as warnings): a
/// parameter's value in a refusal, a Secret. What is wrong with an answer is in our own lines, without its words.
const QUOTING: [&str; 2] = ["kube_client::client", "kube_runtime::watcher"];

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
    /// A word of it is no level: the filter would take it for the name of a module, and leave out everything else.
    #[error(
        "log level {0:?}: {1:?} is not a level; use off, error, warn, info, debug or trace, or a list like drawbridge=debug,info"
    )]
    Word(String, String),
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
    let filter = filter(level)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    let installed = match format {
        Format::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            discreet(lines.finish()).try_init()
        }
        Format::Text => discreet(lines.finish()).try_init(),
    };
    installed.map_err(|_| LogError::Twice)?;
    if format == Format::Json && REVIEWS.get().is_none() {
        // Nobody else sets it: the subscriber was installed just now, for the first and only time.
        let _ = REVIEWS.set(Lines::start(std::io::stderr())?);
    }
    std::panic::set_hook(Box::new(report_panic));
    Ok(())
}

/// What `level` lets through; nothing said is `info`.
fn filter(level: &str) -> Result<EnvFilter, LogError> {
    let level = if level.trim().is_empty() { "info" } else { level };
    let is_level = |word: &&str| word.contains(['=', '[', ':']) || word.parse::<LevelFilter>().is_ok();
    match level.split(',').map(str::trim).find(|word| !word.is_empty() && !is_level(word)) {
        Some(word) => Err(LogError::Word(level.to_owned(), word.to_owned())),
        None => EnvFilter::try_new(level).map_err(|error| LogError::Level(level.to_owned(), error)),
    }
}

/// The same log without what quotes answers.
fn discreet<S>(log: S) -> impl Subscriber + Send + Sync
where
    S: Subscriber + Send + Sync + for<'s> tracing_subscriber::registry::LookupSpan<'s>,
{
    log.with(filter_fn(|metadata: &Metadata<'_>| !QUOTING.contains(&metadata.target())))
}

/// Logs one review, when the level in force lets it.
pub fn reviewed(line: &Reviewed<'_>) {
    match REVIEWS.get() {
        Some(reviews) => {
            let is_wanted = match line.is_news {
                true => tracing::enabled!(target: lines::TARGET, tracing::Level::INFO),
                false => tracing::enabled!(target: lines::TARGET, tracing::Level::DEBUG),
            };
            if is_wanted {
                reviews.push(line);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Secret;
    use kube::client::Body;
    use kube::{Api, Client};
    use parking_lot::Mutex;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'w> MakeWriter<'w> for Kept {
        type Writer = Self;

        fn make_writer(&'w self) -> Self {
            self.clone()
        }
    }

    /// Reads a Secret, and is answered so.
    async fn asked(code: u16, answer: &'static str) {
        let server = tower::service_fn(move |_: Request<Body>| async move {
            Response::builder().status(code).body(Body::from(answer.as_bytes().to_vec()))
        });
        let secrets = Api::<Secret>::namespaced(Client::new(server, "default"), "default");
        assert!(secrets.get("s").await.is_err());
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_and_nothing_is_info() {
        for wrong in ["verbose", "warning", "drawbridge", "debug,hyper", "drawbridge=loud"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
        for (level, least) in
            [("", "info"), (" ", "info"), ("WARN", "warn"), ("off", "off"), ("drawbridge=debug,info", "debug")]
        {
            assert_eq!(filter(level).unwrap().max_level_hint(), Some(least.parse().unwrap()), "{level:?}");
        }
    }

    /// F7: with everything switched on, no library repeats a refusal or an object.
    #[tokio::test]
    async fn no_library_logs_what_the_api_server_answers() {
        let answers = [
            (422, r#"{"kind": "Status", "status": "Failure", "code": 422, "message": "not canary", "reason": "x"}"#),
            (500, "canary"),
            (200, r#"{"metadata": {"name": "s"}, "data": "canary"}"#),
        ];
        for quiet in [false, true] {
            let kept = Kept::default();
            let lines = tracing_subscriber::fmt().with_env_filter("trace").with_writer(kept.clone()).finish();
            let _guard = if quiet {
                tracing::subscriber::set_default(discreet(lines))
            } else {
                tracing::subscriber::set_default(lines)
            };
            for (code, answer) in answers {
                asked(code, answer).await;
            }
            tracing::info!(target: "drawbridge", "all is said");
            let text = String::from_utf8(kept.0.lock().clone()).unwrap();
            assert!(text.contains("all is said"), "{text}");
            let quoted = text.matches("canary").count();
            assert!(if quiet { quoted == 0 } else { quoted >= answers.len() }, "{quoted}: {text}");
        }
    }
}
