//! `drawbridge card sign --in-pod`: the program of init container `sign-agentcard`; with `--stay` ([`stay`]) that of the sidecar of the same name.
//!
//! In: the environment, as the Go operator's signer reads it; the card; the SVID that the SPIFFE agent of this node has for the Pod. Out: the signed
//! card as a file and, where AGENT_NAME and POD_NAMESPACE say whose it is, in ConfigMap `<AGENT_NAME>-card-signed`; one JSON object per line on
//! standard error. Promises: everything together ends within SIGN_TIMEOUT; the file is there whole or as before; that the ConfigMap cannot be
//! written is told and holds nobody up, since the file is signed; whatever is wrong, nothing of the key is printed.

mod publish;
mod stay;

#[cfg(test)]
mod tests;

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{SKELETON, document, patience, sign, socket};
use crate::adapters::spiffe;
use crate::cli::Exit;
use crate::cli::cluster;
use crate::cli::io::Io;
use crate::crypto::{Profile, Signer};
use crate::domain::keys;

/// Where the socket is when the environment does not say: the first that is there, else the first.
const SOCKETS: [&str; 2] = ["/run/spire/sockets/agent.sock", "/run/spire/agent-sockets/spire-agent.sock"];
const UNSIGNED: &str = "/etc/agentcard/agent.json";
const SIGNED: &str = "/app/.well-known/agent-card.json";
const TIMEOUT: &str = "30s";
/// What is said where no ConfigMap is named.
const NOBODYS: &str = "the signed card is not published, because AGENT_NAME and POD_NAMESPACE do not say whose it is";
/// Bytes of a line's text.
const SAID: usize = 1024;

/// The environment.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// What the environment says.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    socket: PathBuf,
    unsigned: PathBuf,
    signed: PathBuf,
    timeout: Duration,
    /// Namespace and name of the ConfigMap.
    config_map: Option<(String, String)>,
}

impl Settings {
    fn of(environment: Environment<'_>) -> anyhow::Result<Self> {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let path = |name: &str, otherwise: &str| PathBuf::from(set(name).unwrap_or_else(|| otherwise.to_owned()));
        let named = set("SPIFFE_ENDPOINT_SOCKET");
        let there = || SOCKETS.into_iter().find(|path| Path::new(path).exists()).unwrap_or(SOCKETS[0]).to_owned();
        let named = named.unwrap_or_else(there);
        let timeout = set("SIGN_TIMEOUT").unwrap_or_else(|| TIMEOUT.to_owned());
        let whose = set("POD_NAMESPACE").zip(set("AGENT_NAME"));
        Ok(Self {
            socket: socket(&named).map_err(anyhow::Error::msg).context("SPIFFE_ENDPOINT_SOCKET")?,
            unsigned: path("UNSIGNED_CARD_PATH", UNSIGNED),
            signed: path("AGENT_CARD_PATH", SIGNED),
            timeout: patience(&timeout).map_err(anyhow::Error::msg).context("SIGN_TIMEOUT")?,
            config_map: whose.map(|(namespace, name)| (namespace, format!("{name}{}", keys::SUFFIX_SIGNED_CARD))),
        })
    }
}

/// What the program is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To sign once.
    Once,
    /// To sign until the Pod ends.
    Stay,
    /// To say whether the one that stays has let the agent start.
    HasStarted,
}

/// Signs. How it ended is in the log as well: people see the log of an init container, and kubelet sees the exit code.
pub(super) fn run(
    asked: Asked,
    if_present: bool,
    environment: Environment<'_>,
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    let outcome = match asked {
        Asked::Once => steps(if_present, environment, io),
        Asked::Stay => {
            Settings::of(environment).and_then(|settings| cluster::block_on(stay::stay(&settings, if_present, io)))
        }
        Asked::HasStarted => {
            let has_started = stay::has_started(&Settings::of(environment)?);
            return Ok(if has_started { Exit::Ok } else { Exit::Findings });
        }
    };
    match outcome {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => {
            log(io, "error", "the card is not signed", &[("error", format!("{error:#}"))])?;
            Ok(Exit::Findings)
        }
    }
}

fn steps(if_present: bool, environment: Environment<'_>, io: &mut Io<'_>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let settings = Settings::of(environment)?;
    let shown = |path: &Path| path.display().to_string();
    let fields = [
        ("socket", shown(&settings.socket)),
        ("unsigned_path", shown(&settings.unsigned)),
        ("signed_path", shown(&settings.signed)),
    ];
    if if_present && is_absent(&settings.unsigned) {
        let why = "there is no card to sign, so the agent starts without a signed one; ConfigMap <workload>-card-unsigned holds it under key \
                   agent.json, and a restart signs it";
        return log(io, "warn", why, &fields);
    }
    log(io, "info", "signing the card", &fields)?;
    let text = document(&settings.unsigned, io)?;
    let left = || settings.timeout.saturating_sub(begun.elapsed());
    let named = || settings.socket.display().to_string();
    let svid = cluster::block_on(async { Ok(spiffe::svid(&settings.socket, left()).await?) }).with_context(named)?;
    let signer = Signer::of_svid(&svid.key, &svid.chain).with_context(named)?;
    drop(svid);
    let signed = sign(&text, &signer, Profile::ALL)?;
    write(&settings.signed, signed.text.as_bytes())?;
    let written = [
        ("spiffe_id", signer.identity().to_string()),
        ("key", signer.key_id()),
        ("output_path", shown(&settings.signed)),
    ];
    log(io, "info", "the card is signed", &written)?;
    if !signed.has_skills {
        log(io, "warn", SKELETON, &[])?;
    }
    let Some((namespace, name)) = &settings.config_map else {
        return log(io, "warn", NOBODYS, &[]);
    };
    let whose = ("configMap", format!("{namespace}/{name}"));
    match cluster::block_on(publish::publish((namespace, name), &signed.text, left(), if_present)) {
        Ok(()) => log(io, "info", "the signed card is published", &[whose]),
        Err(error) => log(io, "warn", "the signed card is not published", &[whose, ("error", format!("{error:#}"))]),
    }
}

/// Nothing is there: no file, or a ConfigMap without the key.
fn is_absent(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Writes the file in one step, readable to everybody: the agent runs as another user.
fn write(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("AGENT_CARD_PATH: {} is not a file", path.display());
    };
    let said = || format!("AGENT_CARD_PATH: {}", path.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).with_context(said)?;
    let fresh = folder.join(format!(".{}.new", name.to_string_lossy()));
    let options = &mut std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(&fresh).with_context(said)?;
    file.write_all(text).and_then(|()| file.sync_all()).with_context(said)?;
    std::fs::rename(&fresh, path).with_context(said)
}

/// One line.
fn log(io: &mut Io<'_>, level: &str, message: &str, fields: &[(&str, String)]) -> anyhow::Result<()> {
    let mut line = Map::new();
    line.insert("level".to_owned(), level.into());
    line.insert("msg".to_owned(), message.into());
    line.insert("ts".to_owned(), format!("{:.3}", Timestamp::now()).into());
    for (name, value) in fields {
        line.insert((*name).to_owned(), json!(crate::domain::printable::printable(value, SAID)));
    }
    Ok(writeln!(io.err, "{}", Value::Object(line))?)
}
