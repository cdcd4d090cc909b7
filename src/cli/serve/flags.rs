//! The flags of `serve`, by concern; each is parsed into a type at the edge.
//!
//! Names are upstream's where the meaning is; what upstream had and this version does
//! not is refused by name in [`super::refused`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::times::TimeArgs;
use crate::api::syntax;
use crate::cli::cluster::ClusterArgs;
use crate::cli::render::kinds::Kinds;
use crate::cli::render::{FailureMode, Install};
use crate::domain::keys;
use crate::server::telemetry::log;

/// A socket address as Go writes it: `:8081` means every address of the host, of both families: a Pod of an IPv6 cluster has no
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
        full.parse().map(Address).map_err(|_| format!("{text} is not an address; use IP:PORT or :PORT"))
    }
}

/// Where metrics are served: on the port of the probes, on one of their own, or not at all (`0`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAddress {
    /// `0`.
    Off,
    /// `probes`.
    WithProbes,
    /// An address.
    Own(SocketAddr),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "0" => Ok(MetricsAddress::Off),
            "probes" => Ok(MetricsAddress::WithProbes),
            other => Address::from_str(other).map(|address| MetricsAddress::Own(address.0)),
        }
    }
}

/// A length of time: `250ms`, `10s`, `168h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|span| Duration::try_from(span).ok())
            .map(Span)
            .ok_or_else(|| format!("{text} is not a length of time; use for example 250ms, 10s or 168h"))
    }
}

impl Span {
    /// In milliseconds.
    #[must_use]
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Shortest and longest life of a certificate of ours: one that has ended by the time it is made serves nobody, and the last
/// year that a certificate can name is 9999.
const LIVES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(100 * 365 * 86_400);

/// The life of a certificate.
fn life(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if LIVES.contains(&span.0) {
        Ok(span)
    } else {
        Err(format!("{text} is not how long a certificate can be valid; use 1s to 876000h"))
    }
}

/// The operator's own namespace; a variable that is set to nothing says nothing.
fn own_namespace(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(keys::OPERATOR_NAMESPACE.to_owned()),
        name if syntax::is_label(name) => Ok(name.to_owned()),
        other => Err(format!("{other:?} is not the name of a namespace")),
    }
}

/// Namespaces, separated by commas; none means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces(pub Vec<String>);

impl FromStr for Namespaces {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !syntax::is_label(name) {
                return Err(format!("{name:?} is not the name of a namespace"));
            }
            if names.iter().all(|known| known != name) {
                names.push(name.to_owned());
            }
        }
        Ok(Self(names))
    }
}

/// What this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Answers admission reviews.
    Webhook,
    /// Makes ahead what injected Pods need, while it holds the Lease.
    Controllers,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

impl From<LogFormat> for log::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => log::Format::Json,
            LogFormat::Text => log::Format::Text,
        }
    }
}

/// Arguments of `serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What this process does; ENABLE_WEBHOOKS=false takes webhook away.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "webhook,controllers")]
    pub roles: Vec<Role>,
    /// The operator's own namespace.
    #[arg(
        long,
        env = "POD_NAMESPACE",
        default_value = keys::OPERATOR_NAMESPACE,
        value_name = "NAME",
        value_parser = own_namespace
    )]
    pub namespace: String,
    /// Namespaces that are served, separated by commas; none means all.
    #[arg(long, env = "NAMESPACES2WATCH", default_value = "", hide_default_value = true, value_name = "NAMES")]
    pub watch_namespaces: Namespaces,
    /// What happens to enrolled Pods while no replica answers, as installed: decides whether the controllers free Pods
    /// that wait behind the scheduling gate.
    #[arg(long, value_enum, default_value_t)]
    pub failure_mode: FailureMode,
    /// Which kinds are served, as installed by `render --kinds`: others are not watched, and count as kinds without objects.
    #[arg(long, value_enum, default_value_t)]
    pub kinds: Kinds,
    /// Sockets.
    #[command(flatten, next_help_heading = "Sockets")]
    pub sockets: SocketArgs,
    /// Certificates.
    #[command(flatten, next_help_heading = "Certificates")]
    pub certificates: CertificateArgs,
    /// Settings files.
    #[command(flatten, next_help_heading = "Settings files")]
    pub settings: SettingsArgs,
    /// Times.
    #[command(flatten, next_help_heading = "Times")]
    pub times: TimeArgs,
    /// Time between SIGTERM and the end of accepting connections, while endpoints are being taken away.
    #[arg(long, default_value = "5s", value_name = "TIME", help_heading = "Process")]
    pub drain_delay: Span,
    /// error, warn, info, debug, trace, or a list like drawbridge=debug,info.
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "LEVEL", help_heading = "Process")]
    pub log_level: String,
    /// How log lines look.
    #[arg(long, value_enum, default_value = "json", help_heading = "Process")]
    pub log_format: LogFormat,
    /// Which cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    pub cluster: ClusterArgs,
}

/// Where the process listens.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct SocketArgs {
    /// Where admission reviews are answered (HTTPS).
    #[arg(long, default_value = ":9443", value_name = "ADDRESS")]
    pub webhook_bind_address: Address,
    /// Where the catalogue of verified agents is answered (HTTPS), once cards.catalogue.enabled of the platform file asks for it.
    #[arg(long, default_value = ":9444", value_name = "ADDRESS")]
    pub catalogue_bind_address: Address,
    /// Where /healthz and /readyz are answered (plain HTTP).
    #[arg(long, default_value = ":8081", value_name = "ADDRESS")]
    pub health_probe_bind_address: Address,
    /// Where /metrics is answered (plain HTTP): an address, `probes` for the port of the probes, or 0 for nowhere.
    #[arg(long, default_value = "probes", value_name = "ADDRESS")]
    pub metrics_bind_address: MetricsAddress,
}

/// Where the serving certificate comes from: by default an authority of our own.
#[derive(Debug, Clone, clap::Args)]
pub struct CertificateArgs {
    /// Folder of mounted certificate files; whoever provides them also provides caBundle.
    #[arg(long, value_name = "DIR", conflicts_with = "webhook_cert_secret")]
    pub webhook_cert_path: Option<PathBuf>,
    /// File name of the certificate chain in that folder.
    #[arg(long, default_value = "tls.crt", value_name = "NAME", requires = "webhook_cert_path")]
    pub webhook_cert_name: String,
    /// File name of the private key in that folder.
    #[arg(long, default_value = "tls.key", value_name = "NAME", requires = "webhook_cert_path")]
    pub webhook_cert_key: String,
    /// Secret of cert-manager (tls.crt, tls.key, ca.crt) in the operator's namespace.
    #[arg(long, value_name = "NAME")]
    pub webhook_cert_secret: Option<String>,
    /// File (PEM) with the authorities that callers of the webhook port need a client certificate of; read again when
    /// it changes. Without it no client certificate is asked for.
    #[arg(long, value_name = "FILE")]
    pub webhook_client_ca: Option<PathBuf>,
    /// Common name or DNS name that the client certificate must have; can be repeated, and none means any.
    #[arg(long, value_name = "NAME", requires = "webhook_client_ca")]
    pub webhook_client_name: Vec<String>,
    /// Life of a leaf of our own authority; renewed at two thirds.
    #[arg(long, default_value = "168h", value_name = "TIME", value_parser = life)]
    pub cert_lifetime: Span,
    /// Life of our own authority; replaced, with overlap, at two thirds.
    #[arg(long, default_value = "8760h", value_name = "TIME", value_parser = life)]
    pub ca_lifetime: Span,
}

/// Files that shape every decision.
#[derive(Debug, Clone, clap::Args)]
pub struct SettingsArgs {
    /// Platform file; it has to name the images of the sidecars, because none is built in: without them the process ends.
    #[arg(long, default_value = "/etc/kagenti/config.yaml", value_name = "FILE")]
    pub config_path: PathBuf,
    /// Feature gates file; missing means the defaults.
    #[arg(long, default_value = "/etc/kagenti/feature-gates/feature-gates.yaml", value_name = "FILE")]
    pub feature_gates_path: PathBuf,
}

impl Args {
    /// What was installed, as far as the flags tell.
    #[must_use]
    pub fn install(&self) -> Install {
        let install = Install::new(self.failure_mode, &*self.namespace, "");
        Install { namespaces: self.watch_namespaces.0.clone(), kinds: self.kinds, ..install }
    }

    /// Whether Pods may wait behind the scheduling gate, so that its policies are missed and its controller runs: never where nothing is injected,
    /// whatever `--failure-mode` says.
    #[must_use]
    pub fn gates(&self) -> bool {
        self.install().mode() == FailureMode::Gate
    }

    /// The roles in force; upstream's environment variable still takes the webhooks away.
    #[must_use]
    pub fn roles_in_force(&self, enable_webhooks: Option<&str>) -> Vec<Role> {
        let off = enable_webhooks == Some("false");
        self.roles.iter().copied().filter(|role| !(off && *role == Role::Webhook)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::render::policies;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(flags: &[&str]) -> Result<Args, clap::Error> {
        Only::try_parse_from([&["serve"], flags].concat()).map(|only| only.args)
    }

    #[test]
    fn addresses_are_read_as_go_writes_them() {
        let args = parsed(&["--health-probe-bind-address=:18081", "--metrics-bind-address", "127.0.0.1:9"]).unwrap();
        assert_eq!(args.sockets.health_probe_bind_address.0.to_string(), "[::]:18081");
        assert_eq!(args.sockets.metrics_bind_address, MetricsAddress::Own(([127, 0, 0, 1], 9).into()));
        assert_eq!(parsed(&["--metrics-bind-address=0"]).unwrap().sockets.metrics_bind_address, MetricsAddress::Off);
        assert!(parsed(&["--health-probe-bind-address=8081"]).is_err());
    }

    #[test]
    fn roles_are_a_list_and_the_environment_takes_the_webhooks_away() {
        let args = parsed(&[]).unwrap();
        assert_eq!(args.roles_in_force(None), [Role::Webhook, Role::Controllers]);
        assert_eq!(args.roles_in_force(Some("true")), [Role::Webhook, Role::Controllers]);
        assert_eq!(args.roles_in_force(Some("false")), [Role::Controllers]);
        assert_eq!(parsed(&["--roles=webhook"]).unwrap().roles_in_force(None), [Role::Webhook]);
        assert!(parsed(&["--roles=scheduler"]).is_err());
    }

    /// `render` prints no gate there, so a process that is started by hand would miss it for ever, and watch what it may not read.
    #[test]
    fn a_process_of_kinds_that_are_not_injected_gates_nothing() {
        for (flags, gates) in [
            (&[][..], false),
            (&["--failure-mode=gate"], true),
            (&["--failure-mode=gate", "--kinds=all"], true),
            (&["--failure-mode=gate", "--kinds=kaos"], false),
            (&["--failure-mode=gate", "--kinds=beeai"], false),
            (&["--kinds=kaos"], false),
        ] {
            let args = parsed(flags).unwrap();
            let missed = policies::installed(args.install().mode()).iter().any(|(kind, _)| kind.is_mutating());
            assert_eq!((args.gates(), missed), (gates, gates), "{flags:?}");
        }
        let install = parsed(&["--namespace=own", "--watch-namespaces=a,b", "--kinds=kaos"]).unwrap().install();
        assert_eq!((&*install.namespace, install.kinds), ("own", Kinds::Kaos));
        assert_eq!(install.namespaces, ["a", "b"]);
    }

    #[test]
    fn one_source_of_certificates() {
        assert!(parsed(&["--webhook-cert-path=a", "--webhook-cert-secret=b"]).is_err());
        assert!(parsed(&["--webhook-cert-name=other.crt"]).is_err(), "a name without its folder does nothing");
        assert!(parsed(&["--webhook-client-name=kube-apiserver"]).is_err(), "nor one without an authority");
    }

    #[test]
    fn lengths_of_time_have_a_unit() {
        assert_eq!(parsed(&["--drain-delay=250ms"]).unwrap().drain_delay.0, Duration::from_millis(250));
        assert!(parsed(&["--drain-delay=5"]).is_err());
        assert!(parsed(&["--drain-delay=-5s"]).is_err());
    }

    /// With the first the webhook would never have a valid certificate; with the last the process ended in a panic.
    #[test]
    fn certificates_live_for_a_while_and_not_for_ever() {
        for flag in ["--cert-lifetime", "--ca-lifetime"] {
            for refused in ["0s", "999ms", "876001h", "87660000h", "99999999999h", "1"] {
                assert!(parsed(&[&format!("{flag}={refused}")]).is_err(), "{flag}={refused}");
            }
            for taken in ["1s", "720h", "876000h"] {
                assert!(parsed(&[&format!("{flag}={taken}")]).is_ok(), "{flag}={taken}");
            }
        }
    }

    #[test]
    fn the_operators_namespace_is_a_name_and_an_empty_variable_says_nothing() {
        assert_eq!(parsed(&["--namespace="]).unwrap().namespace, keys::OPERATOR_NAMESPACE);
        assert_eq!(parsed(&["--namespace=tenant-1"]).unwrap().namespace, "tenant-1");
        for wrong in ["Tenant", "a/b", "a.b", " "] {
            assert!(parsed(&[&format!("--namespace={wrong}")]).is_err(), "{wrong}");
        }
    }
}
