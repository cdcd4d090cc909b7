//! Platform file and gates file: read at start, followed by content while the process lives.
//!
//! In: two paths. Out: [`Settings`] on a watch channel. Promises: at start a file that cannot be read or has faults is
//! refused, naming file, line and field, and a missing one means the built-in defaults; later a file that is broken,
//! unreadable or gone leaves the last good settings in force, counted and logged once per content. Content is compared,
//! not time stamps or links, because the kubelet swaps a symbolic link that no watch on the file sees.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use crate::config::gates::Gates;
use crate::config::resolved::Notice;
use crate::config::schema::{Platform, SchemaError};

/// Larger files are refused; a ConfigMap cannot be larger.
const LARGEST: u64 = 1024 * 1024;

/// What the files say.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The platform file.
    pub platform: Platform,
    /// The gates file.
    pub gates: Gates,
}

/// Where the files are; `None` means that none is used.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The platform file.
    pub platform: Option<PathBuf>,
    /// The gates file.
    pub gates: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It exists and cannot be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It has faults.
    #[error(transparent)]
    Faults(#[from] SchemaError),
}

/// Counters of reloading. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ConfigMetrics {
    reloads: Counter,
    failures: Counter,
    stale: Gauge,
}

impl ConfigMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("drawbridge_config_reloads", "Changed settings put in force", self.reloads.clone());
        registry.register(
            "drawbridge_config_reload_failures",
            "Changed settings files that were refused",
            self.failures.clone(),
        );
        let help = "1 while a settings file cannot be used and its last good content is in force";
        registry.register("drawbridge_config_stale", help, self.stale.clone());
    }
}

/// One file: what it said last, and what of it is in force.
#[derive(Debug)]
struct Followed<T> {
    path: Option<PathBuf>,
    seen: Content,
    good: T,
    stale: bool,
    parse: Parse<T>,
    lacks: Lacks<T>,
}

/// From text and file name to a value, and what a person should hear about it.
type Parse<T> = fn(&str, &str) -> Result<(T, Vec<Notice>), SchemaError>;

/// Keys without which nothing can be done, and that a value does not have: no start with one of them, and a change that takes
/// one away is refused.
type Lacks<T> = fn(&T) -> Vec<&'static str>;

/// A file as read; `Ok(None)` = not there, or not used.
type Content = Result<Option<String>, Failure>;

/// A failure to read, comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    kind: io::ErrorKind,
    text: String,
}

/// Follows the files; made by [`load`].
#[derive(Debug)]
pub struct ConfigWatch {
    platform: Followed<Platform>,
    gates: Followed<Gates>,
    settings: watch::Sender<Arc<Settings>>,
    metrics: ConfigMetrics,
}

/// Reads both files once.
///
/// # Errors
/// When one exists and cannot be read, or has faults.
pub async fn load(
    files: Files,
    metrics: ConfigMetrics,
) -> Result<(watch::Receiver<Arc<Settings>>, ConfigWatch), ConfigError> {
    let parse: Parse<Platform> = |text, file| {
        let platform = Platform::parse(text, file)?;
        let warnings = platform.warnings().to_vec();
        Ok((platform, warnings))
    };
    let platform = Followed::start(files.platform, Platform::built_in(), parse, Platform::missing_images);
    let gates = Followed::start(files.gates, Gates::default(), Gates::parse, |_| Vec::new());
    let (platform, gates) = (platform.await?, gates.await?);
    let settings = Settings { platform: platform.good.clone(), gates: gates.good };
    let (sender, receiver) = watch::channel(Arc::new(settings));
    Ok((receiver, ConfigWatch { platform, gates, settings: sender, metrics }))
}

impl ConfigWatch {
    /// Follows the files for ever; reads them once in `period`.
    pub async fn run(mut self, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            self.look().await;
        }
    }

    /// Reads the files and puts what changed in force; each file stands for itself.
    async fn look(&mut self) {
        let changes = [self.platform.look().await, self.gates.look().await];
        let refused = changes.iter().filter(|change| **change == Change::Refused).count();
        self.metrics.failures.inc_by(refused as u64);
        self.metrics.stale.set(i64::from(self.platform.stale || self.gates.stale));
        if changes.contains(&Change::Taken) {
            self.metrics.reloads.inc();
            let settings = Settings { platform: self.platform.good.clone(), gates: self.gates.good };
            self.settings.send_replace(Arc::new(settings));
        }
    }
}

/// What a look at one file found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    Taken,
    Refused,
}

impl<T> Followed<T> {
    async fn start(path: Option<PathBuf>, good: T, parse: Parse<T>, lacks: Lacks<T>) -> Result<Self, ConfigError> {
        let seen = content(path.as_deref()).await;
        let mut file = Self { path, seen, good, stale: false, parse, lacks };
        let Some(path) = file.path.clone() else { return Ok(file) };
        match &file.seen {
            Ok(Some(text)) => file.good = file.parsed(&path, text)?,
            Ok(None) => {
                tracing::info!(path = %path.display(), "there is no such file: the built-in defaults are in force");
            }
            Err(failure) => {
                let source = io::Error::new(failure.kind, failure.text.clone());
                return Err(ConfigError::Unreadable { path, source });
            }
        }
        Ok(file)
    }

    async fn look(&mut self) -> Change {
        let now = content(self.path.as_deref()).await;
        let Some(path) = self.path.clone().filter(|_| now != self.seen) else { return Change::Nothing };
        let parsed = match &now {
            Ok(Some(text)) => {
                let parsed = self.parsed(&path, text).map_err(|error| error.to_string());
                parsed.and_then(|value| self.whole(&path, value))
            }
            Ok(None) => Err(format!("{}: the file is gone", path.display())),
            Err(failure) => Err(format!("{}: cannot be read: {}", path.display(), failure.text)),
        };
        self.seen = now;
        self.stale = parsed.is_err();
        match parsed {
            Ok(good) => {
                tracing::info!(path = %path.display(), "the changed file is in force");
                self.good = good;
                Change::Taken
            }
            Err(reason) => {
                tracing::error!(reason, "the changed file is refused; its last good content stays in force");
                Change::Refused
            }
        }
    }

    /// `value`, unless it lacks what the one in force has and nothing can be done without.
    fn whole(&self, path: &Path, value: T) -> Result<T, String> {
        let had = (self.lacks)(&self.good);
        let gone: Vec<_> = (self.lacks)(&value).into_iter().filter(|key| !had.contains(key)).collect();
        if gone.is_empty() { Ok(value) } else { Err(format!("{}: {} is gone", path.display(), gone.join(", "))) }
    }

    fn parsed(&self, path: &Path, text: &str) -> Result<T, SchemaError> {
        let (value, notices) = (self.parse)(text, &path.display().to_string())?;
        for notice in notices {
            tracing::warn!(reason = notice.reason.code(), "{}", notice.text);
        }
        Ok(value)
    }
}

async fn content(path: Option<&Path>) -> Content {
    let Some(path) = path else { return Ok(None) };
    // What a file says of its length is not what is read of it: it may grow meanwhile, and one without an end says that it is empty.
    let read = async {
        let (file, mut bytes) = (tokio::fs::File::open(path).await?, Vec::new());
        file.take(LARGEST + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {LARGEST} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
    };
    match read.await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure { kind: error.kind(), text: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mounted {
        folder: tempfile::TempDir,
        generation: u32,
    }

    impl Mounted {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), generation: 0 }
        }

        fn files(&self) -> Files {
            let at = |name: &str| Some(self.folder.path().join(name));
            Files { platform: at("config.yaml"), gates: at("gates.yaml") }
        }

        /// Publishes a set of files the way the kubelet does: a new folder, and `..data` swapped over to it.
        fn publish(&mut self, files: &[(&str, &str)]) {
            let root = self.folder.path();
            self.generation += 1;
            let version = root.join(format!("..{}", self.generation));
            std::fs::create_dir(&version).unwrap();
            for (name, text) in files {
                std::fs::write(version.join(name), text).unwrap();
                let link = root.join(name);
                if std::fs::symlink_metadata(&link).is_err() {
                    std::os::unix::fs::symlink(format!("..data/{name}"), link).unwrap();
                }
            }
            let swap = root.join("..swap");
            std::os::unix::fs::symlink(&version, &swap).unwrap();
            std::fs::rename(swap, root.join("..data")).unwrap();
        }
    }

    const REQUIRED: &str = "requireNamespaceLabel: true\n";
    const IMAGES: &str = "images: {envoyProxy: e, proxyInit: p, spiffeHelper: s, clientRegistration: c}\n";

    #[tokio::test]
    async fn files_that_are_missing_at_start_mean_the_defaults_and_are_taken_when_they_appear() {
        let mut mounted = Mounted::new();
        let (mut settings, mut watch) = load(mounted.files(), ConfigMetrics::default()).await.unwrap();
        assert!(!settings.borrow_and_update().platform.require_namespace_label());
        watch.look().await;
        assert!(!settings.has_changed().unwrap());
        mounted.publish(&[("config.yaml", REQUIRED), ("gates.yaml", "injectTools: true\n")]);
        watch.look().await;
        let now = settings.borrow_and_update().clone();
        assert!(now.platform.require_namespace_label() && now.gates.inject_tools);
    }

    #[tokio::test]
    async fn a_broken_file_is_refused_at_start_with_file_line_and_field() {
        let mut mounted = Mounted::new();
        mounted.publish(&[("config.yaml", "\nrequireNamespaceLabel: maybe\n")]);
        let error = load(mounted.files(), ConfigMetrics::default()).await.unwrap_err().to_string();
        assert!(error.contains("config.yaml:2") && error.contains("requireNamespaceLabel"), "{error}");
        let folder = mounted.folder.path().to_owned();
        let files = Files { platform: Some(folder.clone()), gates: None };
        let error = load(files, ConfigMetrics::default()).await.unwrap_err();
        assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
    }

    /// With it every enrolled Pod would be refused, and no process could start any more.
    #[tokio::test]
    async fn a_change_that_takes_an_image_away_is_refused_as_it_would_be_at_start() {
        let mut mounted = Mounted::new();
        mounted.publish(&[("config.yaml", IMAGES)]);
        let metrics = ConfigMetrics::default();
        let (mut settings, mut watch) = load(mounted.files(), metrics.clone()).await.unwrap();
        settings.mark_unchanged();
        mounted.publish(&[("config.yaml", &format!("{REQUIRED}{}", IMAGES.replace(", proxyInit: p", "")))]);
        watch.look().await;
        assert!(!settings.has_changed().unwrap());
        assert_eq!((metrics.failures.get(), metrics.stale.get()), (1, 1));
        mounted.publish(&[("config.yaml", &format!("{REQUIRED}{}", IMAGES.replace("proxyInit: p", "proxyInit: q")))]);
        watch.look().await;
        assert!(settings.borrow_and_update().platform.require_namespace_label());
        assert_eq!(metrics.stale.get(), 0);
    }

    /// Whatever length a file says that it has: one without an end, as a link to the wrong place gives it, has none.
    #[tokio::test]
    async fn a_file_is_read_up_to_its_bound_and_a_larger_one_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let most = usize::try_from(LARGEST).unwrap();
        for (bytes, is_read) in [(0, true), (most, true), (most + 1, false)] {
            std::fs::write(&path, vec![b' '; bytes]).unwrap();
            let read = content(Some(&path)).await;
            assert_eq!(read.as_ref().ok().map(|text| text.as_ref().map(String::len)), is_read.then_some(Some(bytes)));
            assert!(is_read || read.unwrap_err().text.contains("1048576 bytes"));
        }
        let endless = content(Some(Path::new("/dev/zero"))).await.unwrap_err();
        assert_eq!(endless.kind, io::ErrorKind::FileTooLarge);
    }

    #[tokio::test]
    async fn broken_or_gone_the_last_good_content_stays_and_the_other_file_is_still_followed() {
        let mut mounted = Mounted::new();
        mounted.publish(&[("config.yaml", REQUIRED), ("gates.yaml", "injectTools: false\n")]);
        let metrics = ConfigMetrics::default();
        let (mut settings, mut watch) = load(mounted.files(), metrics.clone()).await.unwrap();
        settings.mark_unchanged();

        mounted.publish(&[("config.yaml", "requireNamespaceLabel: [\n"), ("gates.yaml", "injectTools: true\n")]);
        watch.look().await;
        watch.look().await;
        assert_eq!((metrics.failures.get(), metrics.stale.get()), (1, 1), "counted once per content");
        let now = settings.borrow_and_update().clone();
        assert!(now.platform.require_namespace_label() && now.gates.inject_tools);

        mounted.publish(&[("gates.yaml", "injectTools: false\n")]);
        watch.look().await;
        let now = settings.borrow_and_update().clone();
        assert!(now.platform.require_namespace_label() && !now.gates.inject_tools, "gone: last good");
        assert_eq!((metrics.failures.get(), metrics.stale.get()), (2, 1));

        mounted.publish(&[("config.yaml", "requireNamespaceLabel: false\n"), ("gates.yaml", "{}\n")]);
        watch.look().await;
        assert!(!settings.borrow_and_update().platform.require_namespace_label());
        assert_eq!((metrics.reloads.get(), metrics.stale.get()), (3, 0));
    }
}
