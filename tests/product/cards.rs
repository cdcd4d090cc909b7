//! Which tests hold the numbered cases of AgentCards, of what equals the original and of what is better (`docs/cases.md` says where such numbers stand).
//!
//! A test says which cases it holds by beginning its name with them: `case_049_…`, `cases_016_to_019_…`, `case_032_033_034_…`. Other
//! specifications have numbers of their own, so only tests in [`ROOMS`] count. [`OVERRIDDEN`] is what a ruling has replaced, and by what;
//! [`ELSEWHERE`] what no test holds as a whole, and what is no part of AgentCards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::faults;

/// Where tests of AgentCards and of the trust in them are.
const ROOMS: &[&str] = &[
    "src/adapters",
    "src/admission/validate/agent_card",
    "src/api/agent_kagenti_dev/agent_card",
    "src/cli/card",
    "src/cli/uninstall",
    "src/config/schema/tests/cards.rs",
    "src/controllers/agent_card",
    "src/controllers/card_sync",
    "src/controllers/enrolment/tests/cards.rs",
    "src/controllers/network_policy",
    "src/controllers/resign",
    "src/controllers/trust",
    "src/controllers/trust_label",
    "src/crypto",
    "src/policy",
    "src/server/trust_bundles",
    "tests/product/cards.rs",
    "webhook-tests/tests/suites/agent_cards.rs",
    "webhook-tests/tests/suites/trust",
];

/// Numbers of the whole list.
const LAST: u32 = 160;

/// What holds instead of a case, by a decision of ours. A test may bear the number all the same: it holds
/// what stands here.
const OVERRIDDEN: &[(u32, &str)] = &[
    (9, "duplicates are judged from what is in memory, so no call can fail"),
    (31, "there is no finalizer: nothing on the workload needs cleaning, and the first look fetches"),
    (40, "a port named a2a or http comes before the first one"),
    (50, "the signed ConfigMap counts only if it verifies, and Pods are asked beside it, since drift must be told"),
    (51, "a ConfigMap that cannot be read counts for nothing; what is served counts"),
    (61, "nothing is written on the workload, so nothing of ours can trigger anything"),
    (62, "nothing is written on the workload that would have to leave it with the card"),
    (109, "while no bundle was ever loaded what was concluded stays, and nothing new is verified"),
    (117, "a trust domain on a card counts only where the platform file names it"),
    (122, "the trust label stands on running Pods and never on a template"),
    (124, "annotations on the workload are never read, whoever wrote them"),
    (127, "without a bundle ever loaded existing policies stay and new ones are restrictive"),
    (128, "peers are the operator's namespace, and an absent binding counts as {}"),
    (129, "peers are the operator's namespace, and the API server is open at its ports alone"),
    (
        149,
        "that the bundle gets another authority restarts nobody; an expired one counts no longer although it stays in it",
    ),
    (152, "a Sandbox gets the label on its Pods"),
];

/// Cases whose number no test's name bears, and why: held in parts, or what is no part of this (Sigstore).
const ELSEWHERE: &[(u32, u32, &str)] = &[
    (
        143,
        143,
        "its parts stand in tests of card sign --in-pod: half a name names no ConfigMap, and a refused write is an error; \
         that the file is there and the program ends well all the same takes a SPIFFE agent",
    ),
    (158, 160, "Sigstore is not read"),
];

/// Hostile agents (E), cards and signatures (F): what has to be true, and the tests that hold it.
const HOSTILE: &[(&str, &str, &[&str])] = &[
    (
        "E1",
        "nothing is asked but a Ready Pod of the workload, whatever a card or a redirect names",
        &[
            "addresses_that_no_pod_has_are_never_connected_to",
            "case_55_redirects_are_not_followed",
            "only_ready_pods_of_the_workload_with_a_network_of_their_own_are_asked",
            "urls_become_the_services_and_foreign_hosts_are_told",
        ],
    ),
    (
        "E2",
        "what has no end is left after a bounded number of bytes and a bounded time",
        &[
            "more_than_is_read_is_a_fault_and_never_a_part",
            "who_drips_is_left_when_the_time_is_over",
            "few_large_bodies_are_in_memory_at_once_and_small_ones_do_not_wait_for_them",
        ],
    ),
    (
        "E3",
        "what two readers could understand differently is refused, and what is shown moves no cursor",
        &["hostile_json_is_refused", "no_text_moves_a_cursor_or_hides", "case_79_depth_and_size_are_bounded"],
    ),
    (
        "E4",
        "a card that changes at every answer is written once, and trust does not flap",
        &[
            "cards_that_are_signed_anew_at_every_answer_are_written_once",
            "case_064_a_bad_signature_takes_the_trust_and_a_second_good_answer_gives_it_back",
        ],
    ),
    (
        "E5",
        "of what an agent answers in place of a card a few printable bytes are repeated",
        &["case_54_a_refusal_is_repeated_in_a_few_printable_bytes", "words_are_short_and_hold_nothing_that_was_sent"],
    ),
    ("E6", "who is slow holds up nobody", &["who_answers_at_once_waits_for_nobody_who_does_not"]),
    (
        "F1",
        "the algorithm is of a closed list and fits the key",
        &["cases_80_to_85_algorithms_and_keys", "cases_90_to_92_headers_are_read_strictly"],
    ),
    ("F2", "keys that a header names are not looked at", &["cases_90_to_92_headers_are_read_strictly"]),
    (
        "F3",
        "weak keys and signatures in another form are refused",
        &["cases_80_to_85_algorithms_and_keys", "cases_86_to_89_signatures_are_read_strictly"],
    ),
    (
        "F4",
        "a chain leads to an authority of the bundle, now",
        &[
            "cases_93_to_97_chains",
            "cases_102_and_103_time",
            "every_disagreement_with_openssl_is_explained_by_a_rule",
            "who_signs_with_the_svid_of_the_moment_never_loses_trust",
        ],
    ),
    ("F5", "a leaf is one of an SVID", &["cases_98_to_101_leaves"]),
    ("F6", "SPIFFE IDs are read strictly", &["case_100_spiffe_ids_are_read_strictly"]),
    (
        "F7",
        "any good signature is enough, and few are looked at",
        &[
            "cases_104_and_105_several_entries_and_their_encoding",
            "what_is_far_too_much_is_refused_before_it_is_looked_at",
        ],
    ),
    (
        "F8",
        "a signature covers what its profile says, and nothing else is shown",
        &[
            "members_by_profiles_covered_or_not_published",
            "rfc_8785_sections_3_2_2_and_3_2_3",
            "go_covers_what_the_profiles_of_kagenti_cover",
            "the_python_sdk_covers_what_its_profile_covers",
        ],
    ),
    (
        "F9",
        "the last good bundle counts until it is too old",
        &[
            "case_110_a_bundle_counts_until_its_maximum_age_from_when_it_was_last_readable",
            "cases_106_to_110_every_source_and_form_of_the_bundle_is_followed_and_the_last_good_one_counts",
        ],
    ),
    (
        "F10",
        "a good card of another agent, or of before, counts for nothing",
        &["cases_116_to_121_who_signed_is_held_against_whom_the_workload_runs_as", "an_older_signature_is_drift"],
    ),
];

/// The numbers that a test's name begins with.
fn numbers(name: &str) -> Vec<u32> {
    let Some(rest) = name.strip_prefix("cases_").or_else(|| name.strip_prefix("case_")) else { return Vec::new() };
    let (mut found, mut up_to): (Vec<u32>, bool) = (Vec::new(), false);
    for word in rest.split('_') {
        match (word, word.parse::<u32>()) {
            (_, Ok(number)) => {
                let first = if up_to { found.last().map_or(number, |last| last + 1) } else { number };
                found.extend(first..=number);
                up_to = false;
            }
            ("to", _) => up_to = true,
            ("and", _) => {}
            _ => break,
        }
    }
    found
}

/// Every number that a test of [`ROOMS`] bears, with one that does.
fn held() -> BTreeMap<u32, String> {
    let mut sources = Vec::new();
    for room in ROOMS {
        let path = faults::root().join(room);
        if path.is_dir() { faults::files(&path, ".rs", &mut sources) } else { sources.push(path) }
    }
    let sources: BTreeSet<PathBuf> = sources.into_iter().collect();
    let mut held = BTreeMap::new();
    for path in sources {
        // By their lines: those of a property stand within a macro.
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let function = line.trim_start().trim_start_matches("async ").strip_prefix("fn ");
            let name = function.and_then(|rest| rest.split('(').next()).unwrap_or_default();
            held.extend(numbers(name).into_iter().map(|number| (number, name.to_owned())));
        }
    }
    held
}

#[test]
fn every_case_is_held_by_a_test_or_is_said_to_be_overridden() {
    let held = held();
    let overridden: BTreeSet<u32> = OVERRIDDEN.iter().map(|(number, _)| *number).collect();
    let elsewhere: BTreeSet<u32> = ELSEWHERE.iter().flat_map(|(first, last, _)| *first..=*last).collect();
    assert_eq!(overridden.len(), OVERRIDDEN.len(), "a number stands twice");
    assert!(OVERRIDDEN.iter().all(|(_, why)| !why.is_empty()) && ELSEWHERE.iter().all(|(.., why)| !why.is_empty()));
    let missing: Vec<u32> = (1..=LAST)
        .filter(|number| !held.contains_key(number) && !overridden.contains(number) && !elsewhere.contains(number))
        .collect();
    assert!(missing.is_empty(), "no test bears the numbers {missing:?}");
    let unknown: Vec<_> = held.iter().filter(|(number, _)| !(1..=LAST).contains(*number)).collect();
    assert!(unknown.is_empty(), "there are no such cases: {unknown:?}");
}

#[test]
fn every_hostile_case_is_held_by_tests_that_exist() {
    let tests = faults::tests();
    for (id, what, held_by) in HOSTILE {
        let missing: Vec<_> = held_by.iter().filter(|name| !tests.contains(**name)).collect();
        assert!(!held_by.is_empty() && missing.is_empty(), "{id}, {what}: there is no {missing:?}");
    }
    let ids: BTreeSet<&str> = HOSTILE.iter().map(|(id, ..)| *id).collect();
    let wanted = (1..=6).map(|number| format!("E{number}")).chain((1..=10).map(|number| format!("F{number}")));
    assert!(wanted.into_iter().all(|id| ids.contains(&*id)) && ids.len() == 16, "{ids:?}");
}

#[test]
fn numbers_are_read_from_the_beginning_of_a_name() {
    assert_eq!(numbers("cases_016_to_019_which_labels_make_a_card"), [16, 17, 18, 19]);
    assert_eq!(numbers("cases_025_026_and_138_what_the_go_operator_made"), [25, 26, 138]);
    assert_eq!(numbers("case_65_kat_1"), [65]);
    assert_eq!(numbers("a_card_of_case_12"), [0; 0]);
}

/// The webhook is not asked about deletions at all.
#[test]
fn case_013_nobody_objects_to_the_deletion_of_a_card() {
    let text = std::fs::read_to_string(faults::root().join("manifests/webhooks/fail.yaml")).unwrap();
    let (_, webhook) = text.split_once("name: vagentcard.kb.io").expect("the webhook of AgentCards is registered");
    let (_, rules) = webhook.split_once("operations:").unwrap();
    let operations: Vec<&str> = rules.lines().skip(1).map_while(|line| line.trim().strip_prefix("- ")).collect();
    assert_eq!(operations, ["CREATE", "UPDATE"]);
}
