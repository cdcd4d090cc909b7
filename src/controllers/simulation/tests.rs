//! What has to hold of every seed, and the two faults that have to be found.

use super::*;

#[test]
fn one_seed_gives_one_trace() {
    for seed in 0..2 {
        let (one, other) = (run(seed, Fault::None, true), run(seed, Fault::None, true));
        assert!(one.trace.len() > 50, "seed {seed} does little: {:#?}", one.trace);
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!(one.cluster, other.cluster, "seed {seed}");
    }
    assert_ne!(run(0, Fault::None, true).trace, run(1, Fault::None, true).trace, "the seed decides");
}

/// What is wrong with a run; nothing when it ends as `quiet` does.
fn found(seed: u64, fault: Fault, quiet: &Ended) -> Option<String> {
    let ended = run(seed, fault, true);
    if let Some(wrong) = ended.wrong.first() {
        let before = ended.trace.len().min(400);
        return Some(format!("seed {seed}: {wrong}\n{}", ended.trace[..before].join("\n")));
    }
    let mut names = quiet.cluster.keys().chain(ended.cluster.keys());
    let name = names.find(|name| ended.cluster.get(*name) != quiet.cluster.get(*name))?;
    let of = |cluster: &BTreeMap<String, Value>| cluster.get(name).map(Value::to_string).unwrap_or_default();
    Some(format!("seed {seed}: {name} is\n{}\nand not\n{}", of(&ended.cluster), of(&quiet.cluster)))
}

/// The seeds of one quarter: four tests share the two hundred, so that they run beside each other.
fn come_to_one_end(seeds: std::ops::Range<u64>) {
    let quiet = run(0, Fault::None, false);
    assert!(quiet.wrong.is_empty() && quiet.cluster.len() > 6, "{:#?}", quiet.cluster);
    let wrong: Vec<String> = seeds.filter_map(|seed| found(seed, Fault::None, &quiet)).collect();
    assert!(wrong.is_empty(), "{} of them: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn seeds_0_to_49_come_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(0..50);
}

#[test]
fn seeds_50_to_99_come_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(50..100);
}

#[test]
fn seeds_100_to_149_come_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(100..150);
}

#[test]
fn seeds_150_to_199_come_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(150..200);
}

#[test]
fn two_faults_that_are_built_in_are_found() {
    let quiet = run(0, Fault::None, false);
    for fault in [Fault::AbsenceBeforeTheList, Fault::NewerVersionWins] {
        let first = (0..200).find(|seed| found(*seed, fault, &quiet).is_some());
        assert!(first.is_some(), "{fault:?} is found by none of 200 seeds");
        println!("{fault:?} is found by seed {}", first.unwrap());
    }
}
