//! `drawbridge card verify`: one assurance a line, and whether it holds.
//!
//! In: a card, a trust bundle, who should have signed, the time. Out: a line for each of transport, signature, chain, identity, profile and
//! freshness. Promise: the verdict is that of [`crate::crypto`], by which the operator goes, too; nobody is asked but the agent whose URL is given. Exit code 1 as soon as the
//! card is not verified, or not signed by whom was asked for.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::Serialize;

use super::url::{Came, Url};
use crate::cli::io::{self, Io, Tone};
use crate::cli::{Exit, Format};
use crate::crypto::{
    Binding, BundleFault, Class, EntryReason, Freshness, Good, NotVerified, Policy, SpiffeId, Trust, TrustBundle,
    TrustDomain, Verdict, Wanted, bind, limits, verify_bytes,
};
use crate::server::clock;

#[cfg(test)]
mod tests;

/// Arguments of `card verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The card, as JSON: a file, `-` for standard input, or where an agent serves it (http://HOST:PORT or https://HOST:PORT, with or without a path).
    #[arg(value_name = "FILE|URL")]
    from: String,
    /// Authorities in PEM that vouch for the server of an https:// URL, instead of those of this system.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Trust bundle: PEM, a SPIFFE bundle, a JWK Set, or a map of key sets by trust domain.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Trust domain that has to have signed; also whose the bundle is, where it does not say so itself.
    #[arg(long, value_name = "NAME", value_parser = trust_domain)]
    trust_domain: Option<TrustDomain>,
    /// SPIFFE ID that has to have signed.
    #[arg(long, value_name = "ID", value_parser = spiffe_id)]
    spiffe_id: Option<SpiffeId>,
    /// Judge as if it were this time (RFC 3339), instead of now.
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

fn trust_domain(text: &str) -> Result<TrustDomain, String> {
    TrustDomain::configured(text).map_err(|fault| fault.to_string())
}

fn spiffe_id(text: &str) -> Result<SpiffeId, String> {
    SpiffeId::read(text).map_err(|fault| fault.to_string())
}

/// Whether an assurance holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    /// It does.
    Ok,
    /// It does not.
    Failed,
    /// Nobody can say, or nobody asked.
    NotJudged,
}

/// What a card can be relied on for, in the order in which it is printed.
const ASSURANCES: [&str; 6] = ["transport", "signature", "chain", "identity", "profile", "freshness"];

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Assurance {
    name: &'static str,
    state: State,
    text: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    verified: bool,
    reason: &'static str,
    assurances: Vec<Assurance>,
}

/// Judges the card.
///
/// # Errors
/// When the card or the bundle cannot be read, or the bundle is none.
pub(super) fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let url = Url::read(&args.from)?;
    if args.ca.is_some() && !url.as_ref().is_some_and(Url::is_tls) {
        bail!("--ca says who vouches for the server of an https:// URL, and {} is none", args.from);
    }
    let (card, transport) = match url {
        None => (
            bytes(Path::new(&args.from), limits::CARD_BYTES, io)?,
            (State::NotJudged, "the card was read from a file".to_owned()),
        ),
        Some(url) => match url.fetched(args.ca.as_deref())? {
            Came::Plain(card, text) => (card, (State::NotJudged, text)),
            Came::Vouched(card, text) => (card, (State::Ok, text)),
            Came::NotBelieved(text) => return printed(&not_asked(text), args.output, io),
        },
    };
    let wanted = Wanted {
        domain: args.trust_domain.clone().or_else(|| args.spiffe_id.as_ref().map(|id| id.trust_domain().clone())),
        workload: args.spiffe_id.clone(),
    };
    let bundle = match &args.bundle {
        None => None,
        Some(path) => {
            let text = bytes(path, limits::BUNDLE_BYTES, io)?;
            // Whose it is, is what the bundle says; who should have signed is asked only where it says nothing.
            let read = match TrustBundle::read(&text, args.trust_domain.as_ref()) {
                Err(BundleFault::TrustDomainUnknown) if wanted.domain.is_some() => {
                    TrustBundle::read(&text, wanted.domain.as_ref())
                }
                read => read,
            };
            let hint = "--trust-domain says whose it is, where its certificates do not";
            Some(read.with_context(|| format!("trust bundle {} ({hint})", path.display()))?)
        }
    };
    let now = match args.at {
        Some(at) => at.as_second(),
        None => i64::try_from(clock::now().duration_since(UNIX_EPOCH)?.as_secs())?,
    };
    let trust = bundle.as_ref().map_or(Trust::NeverLoaded, |bundle| Trust::Loaded { bundle, read_at: now });
    let verdict = verify_bytes(&card, trust, &Policy::default(), now);
    let report = report(&verdict, &wanted, transport);
    printed(&report, args.output, io)
}

fn printed(report: &Report, output: Format, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let tones: Vec<_> = report.assurances.iter().map(|one| shown(one.state, io)).collect();
    io::print(output, report, io.out, |out| {
        for (one, state) in report.assurances.iter().zip(&tones) {
            writeln!(out, "{:<10} {state}  {}", one.name, io::shown(&one.text))?;
        }
        Ok(())
    })?;
    Ok(if report.verified { Exit::Ok } else { Exit::Findings })
}

/// Who answered is not whom was asked: there is no card.
fn not_asked(text: String) -> Report {
    let rest = ASSURANCES[1..].iter().map(|name| (*name, State::NotJudged, "transport failed".to_owned()));
    let all = std::iter::once((ASSURANCES[0], State::Failed, text)).chain(rest);
    let assurances = all.map(|(name, state, text)| Assurance { name, state, text }).collect();
    Report { verified: false, reason: "TransportNotTrusted", assurances }
}

fn shown(state: State, io: &Io<'_>) -> String {
    match state {
        State::Ok => io.paint(Tone::Good, "ok        "),
        State::Failed => io.paint(Tone::Bad, "failed    "),
        State::NotJudged => io.paint(Tone::Faint, "not judged"),
    }
}

/// The bytes of a file, or of standard input; of one that is larger than anything that is read, one byte more than that.
fn bytes(path: &Path, most: usize, io: &mut Io<'_>) -> anyhow::Result<Vec<u8>> {
    let (mut found, most) = (Vec::new(), u64::try_from(most)?.saturating_add(1));
    if path == Path::new("-") {
        io.stdin.take(most).read_to_end(&mut found).context("standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
        file.take(most).read_to_end(&mut found).with_context(|| path.display().to_string())?;
    }
    Ok(found)
}

fn report(verdict: &Verdict, wanted: &Wanted, transport: (State, String)) -> Report {
    let (mut assurances, mut verified, mut reason) = (Vec::new(), false, verdict.reason());
    let mut say = |name: &'static str, state, text: String| assurances.push(Assurance { name, state, text });
    say("transport", transport.0, transport.1);
    match verdict {
        Verdict::Verified(found) => {
            let bound = bound(found.good(), wanted);
            let good = found.chosen(|good| bind(Some(&good.identity), wanted).is_bound());
            verified = bound.is_some() || wanted.domain.is_none();
            if !verified {
                reason = bind(good.map(|good| &good.identity), wanted).reason();
            }
            let told = good.into_iter().flat_map(|good| of_good(good, wanted));
            told.for_each(|(name, state, text)| say(name, state, text));
        }
        Verdict::NotVerified(why) => {
            let failed = failed(why);
            for name in &ASSURANCES[1..] {
                if failed.0.contains(name) {
                    say(name, State::Failed, why.to_string());
                } else {
                    say(name, State::NotJudged, format!("{} failed", failed.0.join(", ")));
                }
            }
        }
        Verdict::Unknown => {
            for name in &ASSURANCES[1..] {
                say(name, State::NotJudged, "no trust bundle was given: --bundle FILE".to_owned());
            }
        }
    }
    Report { verified, reason, assurances }
}

/// The signature by whom was asked for, the one that holds longest. Any is enough: neither the order of entries nor the life of others decides.
fn bound<'g>(good: &'g [Good], wanted: &Wanted) -> Option<&'g Good> {
    let bound = good.iter().filter(|good| bind(Some(&good.identity), wanted).is_bound());
    bound.max_by_key(|good| good.until)
}

fn of_good(good: &Good, wanted: &Wanted) -> [(&'static str, State, String); 5] {
    let key = good.key_id.as_deref().map_or_else(String::new, |id| {
        let differs = if good.key_id_differs { " (not that of its certificate; nobody vouches for it)" } else { "" };
        format!(", key {id:?}{differs}")
    });
    let identity = match bind(Some(&good.identity), wanted) {
        Binding::Bound(id) => (State::Ok, id.to_string()),
        Binding::NotBound(_) if wanted.domain.is_none() => {
            (State::Ok, format!("{} (--trust-domain or --spiffe-id says who should have signed)", good.identity))
        }
        Binding::NotBound(why) => (State::Failed, format!("{}: {why}", good.identity)),
    };
    let freshness = match good.freshness {
        Freshness::Current => format!("the certificate is valid until {}", time(good.leaf_until)),
        Freshness::Expired { since } => {
            format!("the certificate has expired, {}, and still counts until {}", time(since), time(good.until))
        }
    };
    [
        ("signature", State::Ok, format!("{} of entry {}{key}", good.algorithm.as_str(), good.entry)),
        ("chain", State::Ok, format!("authority {}, until {}", good.authority, time(good.authority_until))),
        ("identity", identity.0, identity.1),
        ("profile", State::Ok, format!("{}; members that it does not cover are unsigned", good.profile.as_str())),
        ("freshness", State::Ok, freshness),
    ]
}

/// The assurances that fail for that reason.
struct Failed(Vec<&'static str>);

fn failed(why: &NotVerified) -> Failed {
    let mut names: Vec<&'static str> = match why {
        NotVerified::Card(_) | NotVerified::NoSignatures => vec!["signature"],
        NotVerified::TrustBundleStale { .. } => vec!["chain"],
        NotVerified::Entries { entries, .. } => entries.iter().map(|entry| of_reason(entry.reason)).collect(),
    };
    names.sort_unstable();
    names.dedup();
    Failed(names)
}

fn of_reason(reason: EntryReason) -> &'static str {
    match reason {
        EntryReason::NoCanonicalForm => "profile",
        EntryReason::Expired | EntryReason::NotYetValid => "freshness",
        reason => match reason.class() {
            Class::SanInvalid => "identity",
            Class::ChainInvalid => "chain",
            Class::Ok | Class::ParseError | Class::JwsInvalid => "signature",
        },
    }
}

/// A second since 1970, for people.
fn time(second: i64) -> String {
    Timestamp::from_second(second).map_or_else(|_| format!("second {second}"), |at| at.to_string())
}
