//! Manifests that people pipe through the command line. In: any text. Laws: cutting loses nothing; a document that can be read says on which of
//! its lines its nodes stand, and is the same value when it is written again; `inject` leaves what it does not change byte for byte, and injecting
//! twice gives the same bytes as once; a text that cannot be read is refused and nothing is printed of it.
#![no_main]

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::yaml::stream::{self, Segment};
use drawbridge::cli::yaml::{emit, tree};
use drawbridge::cli::{Cli, Exit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = drawbridge_fuzz::text(data);
    let segments = stream::split(text);
    let joined: String = segments
        .iter()
        .map(|segment| match segment {
            Segment::Document { text, .. } | Segment::Marker(text) => *text,
        })
        .collect();
    assert_eq!(joined, text, "cutting loses something");
    for segment in &segments {
        if let Segment::Document { text, lines_before } = segment {
            document(text, *lines_before, joined.lines().count());
        }
    }
    injected(text);
});

fn document(text: &str, lines_before: u64, lines: usize) {
    assert!(usize::try_from(lines_before).is_ok_and(|before| before <= lines));
    match tree::parse(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(None) => {}
        Ok(Some(node)) => {
            let value = node.to_json();
            for written in [emit::document(&value, Some(&node)), emit::document(&value, None)] {
                let again = tree::parse(&written).unwrap_or_else(|error| panic!("{error} in {written:?}"));
                assert_eq!(
                    again.map(|node| node.to_json()).unwrap_or_default(),
                    value,
                    "written differently: {written:?}"
                );
            }
            let json = emit::json_document(&value, Some(&node), text);
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
            // Read as what it is written for reads it, to which 1e2 and 100 are one number.
            assert_eq!(tree::parse(&json).ok().flatten().map(|node| node.to_json()), Some(value), "{json}");
        }
    }
}

/// Output and success of `drawbridge COMMAND -f -`.
fn run(command: &str, input: &str) -> (String, bool) {
    let parsed = Cli::try_parse_from(["drawbridge", command, "-f", "-"]).expect("the arguments are right");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut stdin = input.as_bytes();
    let result = parsed.command.run(&mut Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false });
    let succeeded = matches!(result, Ok(Exit::Ok | Exit::Findings));
    (String::from_utf8(out).expect("what is printed is text"), succeeded)
}

fn injected(text: &str) {
    let (once, succeeded) = run("inject", text);
    if !succeeded {
        assert_eq!(once, "", "printed in spite of a refusal");
        return;
    }
    let (twice, succeeded) = run("inject", &once);
    assert!(succeeded, "what was printed cannot be read: {once:?}");
    assert_eq!(once, twice, "injecting twice");
    let (out, succeeded) = run("uninject", &once);
    assert!(succeeded, "what was printed cannot be read: {once:?}");
    assert_eq!(run("uninject", &out), (out.clone(), true), "taking out twice");
}
