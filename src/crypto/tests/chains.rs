//! Cases 80 to 113 of the specification, and hostile ones beside them: every signed card of `vectors/chains.json` has its verdict.

use super::{bundle, json, variant, words};
use crate::{Policy, Trust, verify_bytes};

fn case(case: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let text = |name: &str| case[name].as_str().unwrap();
    let wanted = case["expected"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let now = case["now"].as_i64().unwrap();
    let found = match bundle(text("bundle"), case["configured"].as_str()) {
        Err(fault) => vec![variant(&fault)],
        Ok(bundle) => {
            let policy = Policy { tolerance: case["tolerance"].as_i64().unwrap(), ..Policy::default() };
            let trust = Trust::Loaded { bundle: &bundle, read_at: now };
            words(&verify_bytes(text("card").as_bytes(), trust, &policy, now))
        }
    };
    (wanted, found)
}

/// Every case whose number is in `numbers` has the verdict that stands beside it, and there is one for each number.
fn all(numbers: &[u32]) {
    let fixture = json(include_str!("vectors/chains.json"));
    let mut wrong = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for vector in fixture["cases"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let number: u32 = name.split(' ').next().unwrap().parse().unwrap();
        if numbers.contains(&number) {
            seen.insert(number);
            let (wanted, found) = case(vector);
            if wanted != found {
                wrong.push(format!("{name}: {found:?}, not {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), numbers, "a number has no case");
}

#[test]
fn cases_80_to_85_algorithms_and_keys() {
    all(&[80, 81, 82, 83, 84, 85]);
}

#[test]
fn cases_86_to_89_signatures_are_read_strictly() {
    all(&[86, 87, 88, 89]);
}

#[test]
fn cases_90_to_92_headers_are_read_strictly() {
    all(&[90, 91, 92]);
}

#[test]
fn cases_93_to_97_chains() {
    all(&[93, 94, 95, 96, 97]);
}

#[test]
fn cases_98_to_101_leaves() {
    all(&[98, 99, 100, 101]);
}

#[test]
fn cases_102_and_103_time() {
    all(&[102, 103]);
}

#[test]
fn cases_104_and_105_several_entries_and_their_encoding() {
    all(&[104, 105]);
}

#[test]
fn cases_106_to_113_bundles() {
    all(&[106, 107, 108, 109, 111, 113]);
}
