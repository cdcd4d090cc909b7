//! The merge of a Pod's spec, held against Kubernetes' own: what a peer answered to 2,500 pairs is stored
//! as digests, so that no Go is needed to compare. `peers/strategicmerge` is the peer: with the path of its program in
//! `DRAWBRIDGE_STRATEGIC_MERGE` it answers anew, every difference is shown, and with `DRAWBRIDGE_REFRESH=1` the digests are stored.

mod pairs;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use drawbridge::api::digest::of_json;
use drawbridge::workloads::kaos::merge::merge;
use serde_json::{Value, json};

const PAIRS: usize = 2_500;
const SEED: u64 = 20_260_131;
const STORED: &str = "tests/suites/strategic_merge/answers.txt";

fn made() -> Vec<(Value, Value)> {
    let mut choice = pairs::Choice::of(SEED);
    (0..PAIRS).map(|_| pairs::pair(&mut choice)).collect()
}

/// One line a pair: a part of the digest of what was merged, or a dash where it cannot be.
fn line(answer: &Value) -> String {
    if answer.is_null() { "-".to_owned() } else { of_json(answer)[..12].to_owned() }
}

fn ours((base, patch): &(Value, Value)) -> Value {
    merge(base, patch).unwrap_or_default()
}

fn peer(program: &str, pairs: &[(Value, Value)]) -> Vec<Value> {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut sent = child.stdin.take().unwrap();
    let lines: String =
        pairs.iter().map(|(base, patch)| format!("{}\n", json!({"base": base, "patch": patch}))).collect();
    let writer = std::thread::spawn(move || sent.write_all(lines.as_bytes()));
    let answer = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_merge_is_kubernetes_own() {
    let pairs = made();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(STORED);
    if let Ok(program) = std::env::var("DRAWBRIDGE_STRATEGIC_MERGE") {
        let theirs = peer(&program, &pairs);
        assert_eq!(theirs.len(), pairs.len());
        for (pair, theirs) in pairs.iter().zip(&theirs) {
            assert_eq!(&ours(pair), theirs, "base {} patch {}", pair.0, pair.1);
        }
        if std::env::var("DRAWBRIDGE_REFRESH").is_ok() {
            let text: String = theirs.iter().map(|answer| format!("{}\n", line(answer))).collect();
            std::fs::write(&stored, text).unwrap();
        }
    }
    let stored = std::fs::read_to_string(&stored).unwrap();
    let stored: Vec<_> = stored.lines().collect();
    assert_eq!(stored.len(), PAIRS);
    let merged = stored.iter().filter(|line| **line != "-").count();
    assert!(merged > 1_500 && merged < PAIRS, "{merged} of them can be merged");
    for (at, (pair, stored)) in pairs.iter().zip(stored).enumerate() {
        assert_eq!(line(&ours(pair)), stored, "pair {at}: base {} patch {}", pair.0, pair.1);
    }
}
