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

/// What the cluster is when nothing disturbs it: both workloads are enrolled.
fn undisturbed() -> Ended {
    let quiet = run(0, Fault::None, false);
    assert!(quiet.wrong.is_empty(), "{:?}", quiet.wrong);
    for name in ["web", "api"] {
        let workload = &quiet.cluster[&format!("{} {TEAM}/{name}", Kind::Deployment.as_str())];
        assert!(workload.to_string().contains(keys::ANNOTATION_CONFIG_HASH), "{name} is not enrolled: {workload}");
    }
    quiet
}

/// The seeds of one quarter of two hundred: four tests share them, so that they run beside each other. The first twelve of each, unless long
/// trials are asked for (`make test-long`).
fn come_to_one_end(first: u64) {
    let many = if std::env::var_os("DRAWBRIDGE_LONG").is_some() { 50 } else { 12 };
    let quiet = undisturbed();
    let wrong: Vec<String> = (first..first + many).filter_map(|seed| found(seed, Fault::None, &quiet)).collect();
    assert!(wrong.is_empty(), "{} of {many}: {}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_first_quarter_of_the_seeds_comes_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(0);
}

#[test]
fn the_second_quarter_of_the_seeds_comes_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(50);
}

#[test]
fn the_third_quarter_of_the_seeds_comes_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(100);
}

#[test]
fn the_fourth_quarter_of_the_seeds_comes_to_one_end_and_no_two_terms_write_at_once() {
    come_to_one_end(150);
}

#[test]
fn two_faults_that_are_built_in_are_found() {
    let quiet = undisturbed();
    for fault in [Fault::AbsenceBeforeTheList, Fault::NewerVersionWins] {
        let is_found = (0..200).any(|seed| found(seed, fault, &quiet).is_some());
        assert!(is_found, "{fault:?} is found by none of 200 seeds");
    }
}
