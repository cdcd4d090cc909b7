//! `drawbridge card sign`: a card, signed as its agent would.
//!
//! In: an SVID's key and chain, from files or from the SPIFFE agent of this machine, and a card. Out: the card on standard output, everything that it says as it was written, its own signatures renewed and those of
//! others kept. Promises: what is written is verified against what was signed before anything is printed; nothing of the key is
//! printed, whatever is wrong with it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::adapters::spiffe;
use crate::cli::Exit;
use crate::cli::cluster;
use crate::cli::io::Io;
use crate::crypto::{Card, Profile, Signature, Signer, limits};
use crate::domain::period;

mod in_pod;

#[cfg(test)]
mod tests;

/// Bytes of a file with a key, or with a chain.
const PEM_BYTES: usize = 64 << 10;

/// Arguments of `card sign`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The card, as JSON; `-` reads standard input.
    #[arg(required_unless_present = "in_pod")]
    card: Option<PathBuf>,
    /// Private key of the SVID: PKCS#8 in PEM.
    #[arg(long, value_name = "FILE", requires = "chain", required_unless_present_any = ["spiffe_socket", "in_pod"])]
    key: Option<PathBuf>,
    /// Certificates of the SVID in PEM, its own first; what issued it follows, up to but without the authority.
    #[arg(long, value_name = "FILE", requires = "key")]
    chain: Option<PathBuf>,
    /// Socket of the SPIFFE agent that gives the SVID, in place of --key and --chain: a path, or unix:///PATH as in SPIFFE_ENDPOINT_SOCKET.
    #[arg(long, value_name = "SOCKET", value_parser = socket, conflicts_with_all = ["key", "chain"])]
    spiffe_socket: Option<PathBuf>,
    /// How long the agent may take to give an SVID.
    // That a socket is required says nothing beside a key, with which the socket is at odds: clap then misses none.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = patience,
        default_value = "30s",
        requires = "spiffe_socket",
        conflicts_with_all = ["key", "chain"]
    )]
    timeout: Duration,
    /// What the signature covers; can be repeated. By default all that give different signatures.
    #[arg(long, value_name = "NAME", value_parser = profile)]
    profile: Vec<Profile>,
    /// Sign as the container of an agent does: socket, card, file and ConfigMap are named by SPIFFE_ENDPOINT_SOCKET, UNSIGNED_CARD_PATH,
    /// AGENT_CARD_PATH, SIGN_TIMEOUT, AGENT_NAME and POD_NAMESPACE.
    #[arg(long, conflicts_with_all = ["card", "key", "chain", "spiffe_socket", "timeout", "profile"])]
    in_pod: bool,
    /// With --in-pod: that there is no card to sign is no failure.
    #[arg(long, requires = "in_pod")]
    if_present: bool,
    /// With --in-pod: stay beside the agent, as its native sidecar, and sign anew whenever the SVID is renewed or the card changes.
    #[arg(long, requires = "in_pod")]
    stay: bool,
    /// With --in-pod: say by the exit code whether the one that stays has let the agent start: 0 when it has, else 1. For a startup probe.
    #[arg(long, requires = "in_pod", conflicts_with_all = ["stay", "if_present"])]
    has_started: bool,
}

fn socket(text: &str) -> Result<PathBuf, String> {
    spiffe::socket(text).ok_or_else(|| "a socket is a path or unix:///PATH".to_owned())
}

fn patience(text: &str) -> Result<Duration, String> {
    let read = period::parse(text).filter(|(negative, time)| !negative && !time.is_zero());
    read.map(|(_, time)| time).ok_or_else(|| format!("{text:?} is not a length of time, such as 30s"))
}

/// Whoever signs.
fn signer(args: &Args) -> anyhow::Result<Signer> {
    if let Some(socket) = &args.spiffe_socket {
        let named = || format!("--spiffe-socket {}", socket.display());
        let svid = cluster::block_on(async { Ok(spiffe::svid(socket, args.timeout).await?) }).with_context(named)?;
        return Signer::of_svid(&svid.key, &svid.chain).with_context(named);
    }
    let (Some(key), Some(chain)) = (&args.key, &args.chain) else {
        bail!("no signer is named: give --key FILE and --chain FILE, or --spiffe-socket SOCKET");
    };
    let named = || format!("--key {}, --chain {}", key.display(), chain.display());
    Signer::read(&pem(key)?, &pem(chain)?).with_context(named)
}

fn profile(text: &str) -> Result<Profile, String> {
    let known = || Profile::ALL.iter().map(|profile| profile.as_str()).collect::<Vec<_>>().join(", ");
    Profile::named(text).ok_or_else(|| format!("{text:?} is none of {}", known()))
}

/// Signs the card.
///
/// # Errors
/// When a file cannot be read, the key is not the certificate's, or the card is none.
pub(super) fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    if args.in_pod {
        let asked = match args {
            Args { has_started: true, .. } => in_pod::Asked::HasStarted,
            Args { stay: true, .. } => in_pod::Asked::Stay,
            _ => in_pod::Asked::Once,
        };
        return in_pod::run(asked, args.if_present, &|name| std::env::var(name).ok(), io);
    }
    // What clap requires it does not miss where something else is given that --in-pod conflicts with.
    let of_pods = [(args.stay, "--stay"), (args.if_present, "--if-present"), (args.has_started, "--has-started")];
    if let Some((_, flag)) = of_pods.iter().find(|(is_given, _)| *is_given) {
        bail!("{flag} needs --in-pod");
    }
    let signer = signer(args)?;
    let text = document(args.card.as_deref().context("no card is named; give a file, or - for standard input")?, io)?;
    let profiles = if args.profile.is_empty() { Profile::ALL } else { &args.profile };
    let signed = sign(&text, &signer, profiles)?;
    io.out.write_all(signed.text.as_bytes())?;
    let by: Vec<_> = signed.entries.iter().map(|entry| entry.profile.as_str()).collect();
    writeln!(io.err, "signed by {} ({}), key {}", signer.identity(), by.join(", "), signer.key_id())?;
    if !signed.has_skills {
        writeln!(io.err, "{SKELETON}")?;
    }
    Ok(Exit::Ok)
}

/// What is said of a card that says nothing of its agent.
const SKELETON: &str = "the card names no skill: sign what the agent really serves";

/// A card that was signed.
struct Signed {
    /// As it is written.
    text: String,
    /// The signatures that were added.
    entries: Vec<Signature>,
    /// It names a skill.
    has_skills: bool,
}

/// Signs the card in `text`, and verifies that what is written says what was signed.
fn sign(text: &[u8], signer: &Signer, profiles: &[Profile]) -> anyhow::Result<Signed> {
    let card = Card::read(text).context("nothing is signed")?;
    let entries = signer.sign(&card, profiles).context("nothing is signed")?;
    let mut members: Members = serde_json::from_slice(text).context("the card")?;
    let mut signatures = kept(&members, signer)?;
    let count = signatures.len() + entries.len();
    if count > limits::SIGNATURES {
        bail!("the card has {count} signatures then, and verifiers look at no more than {}", limits::SIGNATURES);
    }
    for entry in &entries {
        let entry = serde_json::json!({"protected": entry.protected, "signature": entry.signature});
        signatures.push(RawValue::from_string(entry.to_string())?);
    }
    members.0.retain(|(name, _)| name != "signatures");
    members.0.push(("signatures".to_owned(), serde_json::value::to_raw_value(&signatures)?));
    let signed = members.written()?;
    unchanged(&card, &signed)?;
    let has_skills = members.0.iter().any(|(name, value)| name == "skills" && value.get().len() > 2);
    Ok(Signed { text: signed, entries, has_skills })
}

/// The signatures of others, as they are written.
fn kept(members: &Members, signer: &Signer) -> anyhow::Result<Vec<Box<RawValue>>> {
    let Some((_, signatures)) = members.0.iter().find(|(name, _)| name == "signatures") else { return Ok(Vec::new()) };
    let all: Option<Vec<Box<RawValue>>> = serde_json::from_str(signatures.get()).context("signatures")?;
    let own = |entry: &RawValue| {
        let entry: Option<serde_json::Value> = serde_json::from_str(entry.get()).ok();
        entry.is_some_and(|entry| entry["protected"].as_str().is_some_and(|protected| signer.is_own(protected)))
    };
    Ok(all.unwrap_or_default().into_iter().filter(|entry| !own(entry)).collect())
}

/// What is printed says what was signed.
fn unchanged(card: &Card, signed: &str) -> anyhow::Result<()> {
    let again = Card::read(signed.as_bytes()).context("the signed card")?;
    for profile in Profile::ALL {
        if again.canonical(*profile) != card.canonical(*profile) {
            bail!("the card would change when it is written, so nothing is; report this as a defect of Drawbridge");
        }
    }
    Ok(())
}

/// Whether two cards are written alike but for their signatures.
fn says_the_same(one: &str, other: &str) -> bool {
    let unsigned = |text: &str| {
        let Members(members) = serde_json::from_str(text).ok()?;
        let unsigned = members.into_iter().filter(|(name, _)| name != "signatures");
        Some(unsigned.map(|(name, value)| (name, Box::<str>::from(value.get()))).collect::<Vec<_>>())
    };
    unsigned(one).is_some_and(|one| unsigned(other) == Some(one))
}

/// The members of an object in their order, each value as it is written.
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn written(&self) -> anyhow::Result<String> {
        let mut out = String::from("{");
        for (at, (name, value)) in self.0.iter().enumerate() {
            out.push_str(if at > 0 { ",\n  " } else { "\n  " });
            out.push_str(&serde_json::to_string(name)?);
            out.push_str(": ");
            out.push_str(value.get());
        }
        out.push_str("\n}\n");
        Ok(out)
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn document(path: &Path, io: &mut Io<'_>) -> anyhow::Result<Vec<u8>> {
    let (mut found, most) = (Vec::new(), limits::CARD_BYTES as u64 + 1);
    if path == Path::new("-") {
        io.stdin.take(most).read_to_end(&mut found).context("standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
        file.take(most).read_to_end(&mut found).with_context(|| path.display().to_string())?;
    }
    Ok(found)
}

/// A file that may hold a key: read into one place, which is overwritten when it is no longer needed.
fn pem(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let mut found = Zeroizing::new(vec![0; PEM_BYTES + 1]);
    let mut length = 0;
    let mut file = file.take(PEM_BYTES as u64 + 1);
    loop {
        match file.read(&mut found[length..]).with_context(|| path.display().to_string())? {
            0 => break,
            read => length += read,
        }
    }
    if length > PEM_BYTES {
        bail!(
            "{}: more than {PEM_BYTES} bytes, which no key and no chain of an SVID has; name another file",
            path.display()
        );
    }
    found.truncate(length);
    Ok(found)
}
