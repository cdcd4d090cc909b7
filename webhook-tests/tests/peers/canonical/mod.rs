//! What a signature covers, held against who signs: Go's `encoding/json` for `kagenti-v1` and `kagenti-v2`, the published Python SDK for
//! `a2a-sdk-1.x`. Thousands of cards by the seed; where a peer says something else, [`RULES`] says why, and no rule stands there for nothing.

mod documents;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use drawbridge_crypto::{Card, Profile};
use serde_json::Value;

use documents::{Choice, Document, Oddity, document};

const CARDS: usize = 4_000;
const SEED: u64 = 20_261_124;

/// Who writes canonical forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Go,
    Sdk,
}

/// What differs between us and a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// It has a form and we have none: nothing that it signs is verified.
    OnlyTheirs,
    /// We have a form and it has none: it signs nothing that we would verify.
    OnlyOurs,
    /// Both have one, and they differ: what it signs is not verified.
    Another,
}

/// Where we differ from a peer, and by which rule. None of them makes us take a signature for more than its signer meant.
const RULES: &[(Peer, Oddity, Difference, &str)] = &[
    (
        Peer::Go,
        Oddity::Duplicate,
        Difference::OnlyTheirs,
        "a member that stands twice is read in two ways, so it is refused (case 78)",
    ),
    (
        Peer::Sdk,
        Oddity::Duplicate,
        Difference::OnlyTheirs,
        "a member that stands twice is read in two ways, so it is refused (case 78)",
    ),
    (
        Peer::Go,
        Oddity::OtherCase,
        Difference::Another,
        "names match exactly; Go takes other letters for the same member",
    ),
    (
        Peer::Go,
        Oddity::LoneSurrogate,
        Difference::OnlyTheirs,
        "half of a surrogate pair is no text; Go puts U+FFFD in its place",
    ),
    (Peer::Sdk, Oddity::ProtoName, Difference::Another, "names match exactly; protocol buffers know each by two names"),
    (Peer::Go, Oddity::Deep, Difference::OnlyTheirs, "what is nested deeper than 64 is refused (case 79)"),
    (
        Peer::Sdk,
        Oddity::Deep,
        Difference::OnlyOurs,
        "protocol buffers count every list twice and stop at 100; ours stop at 64",
    ),
    (Peer::Sdk, Oddity::Null, Difference::OnlyOurs, "null for a known member is its absence"),
    (
        Peer::Sdk,
        Oddity::WrongType,
        Difference::OnlyTheirs,
        "a list is no object; protocol buffers take an empty one for an empty object",
    ),
    (
        Peer::Sdk,
        Oddity::Legacy,
        Difference::Another,
        "what 0.3 says is covered by nobody's 1.x signature, so nothing is made of it",
    ),
];

fn installed(name: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name);
    let output = Command::new(&script).arg("--where").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn command(peer: Peer) -> Command {
    match peer {
        Peer::Go => Command::new(installed("install-canonical")),
        Peer::Sdk => {
            let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()));
            command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/canonical.py"));
            command.env("PYTHONPATH", installed("install-a2a")).env("PYTHONDONTWRITEBYTECODE", "1");
            command
        }
    }
}

fn answers(peer: Peer, documents: &[Document]) -> Vec<Value> {
    let mut child = command(peer).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut sent = child.stdin.take().unwrap();
    let lines: String = documents.iter().map(|document| format!("{}\n", document.text)).collect();
    let writer = std::thread::spawn(move || sent.write_all(lines.as_bytes()));
    let answer = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ours(document: &str, profile: Profile) -> Option<String> {
    let form = Card::read(document.as_bytes()).ok()?.canonical(profile).ok()?;
    Some(String::from_utf8(form).unwrap())
}

/// What `peer` and we differ in, by oddity, with the first document of each kind.
fn differences(peer: Peer, profiles: &[(Profile, &str)]) -> BTreeMap<(Option<Oddity>, Difference), (usize, String)> {
    let mut choice = Choice::of(SEED);
    let documents: Vec<_> = (0..CARDS).map(|_| document(&mut choice)).collect();
    let theirs = answers(peer, &documents);
    assert_eq!(theirs.len(), documents.len());
    let (mut found, mut equal) = (BTreeMap::new(), 0);
    for (document, theirs) in documents.iter().zip(&theirs) {
        for (profile, name) in profiles {
            // Of nothing at all the SDK writes null, and so signs it; there is nothing to publish under such a signature.
            let theirs = theirs[*name].as_str().filter(|form| *form != "null").map(str::to_owned);
            let ours = ours(&document.text, *profile);
            let difference = match (&ours, &theirs) {
                (None, None) => continue,
                (None, Some(_)) => Difference::OnlyTheirs,
                (Some(_), None) => Difference::OnlyOurs,
                (Some(ours), Some(theirs)) if ours != theirs => Difference::Another,
                _ => {
                    equal += 1;
                    continue;
                }
            };
            let told = || (0, format!("{}\nours:   {ours:?}\ntheirs: {theirs:?}", document.text));
            found.entry((document.oddity, difference)).or_insert_with(told).0 += 1;
        }
    }
    assert!(equal > CARDS * profiles.len() / 2, "only {equal} forms are equal");
    found
}

#[allow(clippy::print_stderr, reason = "the disagreements are a result, shown with --nocapture")]
fn held(peer: Peer, profiles: &[(Profile, &str)]) {
    let (found, mut unexplained) = (differences(peer, profiles), Vec::new());
    for ((oddity, difference), (count, first)) in &found {
        let rule = RULES.iter().find(|(of, odd, how, _)| *of == peer && Some(*odd) == *oddity && how == difference);
        let Some((.., why)) = rule else {
            unexplained.push(format!("{oddity:?}, {difference:?}, {count} times\n{first}"));
            continue;
        };
        eprintln!("{peer:?}, {oddity:?}, {difference:?}: {count} times: {why}");
    }
    assert!(unexplained.is_empty(), "{peer:?}: no rule says why\n{}", unexplained.join("\n"));
    let idle: Vec<_> =
        RULES.iter().filter(|(of, odd, how, _)| *of == peer && !found.contains_key(&(Some(*odd), *how))).collect();
    assert!(idle.is_empty(), "nothing differs by these any more: {idle:?}");
}

#[test]
fn go_covers_what_the_profiles_of_kagenti_cover() {
    held(Peer::Go, &[(Profile::KagentiV1, "v1"), (Profile::KagentiV2, "v2")]);
}

#[test]
fn the_python_sdk_covers_what_its_profile_covers() {
    held(Peer::Sdk, &[(Profile::A2aSdk1, "form")]);
}
