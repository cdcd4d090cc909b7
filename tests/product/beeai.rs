//! Which test holds which conformance case of BeeAI's kinds: Z1 to Z48, against the tests of this repository.
//!
//! A test whose name begins with `case_z` bears the numbers that follow. Rows of which something else holds here say what, and name the tests of
//! that. What no test can show here is said beside the row: there is no container engine, so a kubelet's pull is nobody's.

use std::collections::{BTreeMap, BTreeSet};

use super::faults;

/// A case: its number, what is shown, and by which tests; a text is what holds in its place, or what is left out.
type Row = (u32, &'static [&'static str], &'static str);

const SAMPLES: &str = "case_z31_the_samples_become_agents_by_digest_in_both_groups";
const FIRST: &str = "case_z01_the_sample_becomes_a_deployment_and_a_service";
const PUSHED: &str = "case_z13_the_sample_is_cloned_built_and_pushed_with_its_token";
const COMPOSED: &str = "case_z25_the_run_has_four_tasks_and_each_credential_one_of_them";
const TEKTON: &str = "case_z32_a_build_becomes_an_agent_by_digest_on_real_tekton";
const FAILS: &str = "case_z29_a_failure_names_its_task_and_a_build_of_another_group_runs_beside_it";
const CLEANED: &str = "case_z38_z40_and_z44_ended_builds_are_left_alone_and_cleaned_up_when_asked";
const EITHER: &str = "case_z31_z32_z46_a_build_of_either_group_becomes_an_agent_by_digest";
const TOKENS: &str = "case_z15_the_source_token_wins_and_none_is_needed";
const WAITS: &str = "case_z18_and_z19_a_missing_key_is_named_and_the_build_follows";
const LATE: &str = "case_z45_and_z47_definitions_come_later_and_other_namespaces_are_left_alone";
const LOGIN: &str = "case_z22_and_z23_the_login_is_looked_at_again_every_five_minutes";
const RUNS: &str = "case_z21_and_z30_without_a_login_the_push_is_anonymous_and_tls_is_verified_unless_it_is_said";
const CANARY: &str = "g2_g10_case_f7_no_credential_of_a_build_is_ever_repeated_nor_a_parameter_in_a_log";
const CONTAINER: &str = "case_z01_and_z02_the_sample_is_a_deployment_and_a_service_with_its_environment_in_order";

const ROWS: &[Row] = &[
    (1, &[FIRST, CONTAINER, "case_z01_and_z11_an_agent_of_either_group_is_made_and_says_how_it_stands"], ""),
    (2, &[CONTAINER, FIRST], ""),
    (3, &["case_z03_a_literal_port_is_the_container_s_and_the_service_still_answers_on_8000"], ""),
    (4, &["case_z04_and_z05_a_pull_secret_is_there_when_a_literal_names_one", FIRST], ""),
    (5, &["case_z04_and_z05_a_pull_secret_is_there_when_a_literal_names_one"], "not shown: the kubelet's pull"),
    (6, &["case_z06_another_image_rolls_the_deployment", FIRST], ""),
    (7, &["case_z07_nothing_is_left_open", "what_the_original_operator_left_is_taken_over_and_let_go"], ""),
    (
        8,
        &[
            "case_z08_baseline_takes_the_platform_s_leave",
            "case_z08_baseline_is_refused_at_reconcile_too_unless_the_platform_allows_it",
        ],
        "overridden: platform key beeai.allowBaseline in place of the flag",
    ),
    (9, &["case_z09_what_is_somebody_elses_is_left_alone_and_outlives_the_agent"], ""),
    (
        10,
        &[
            "case_z10_agents_of_several_groups_and_one_name_do_not_fight",
            "case_z10_the_second_agent_of_a_name_says_whose_it_is",
            "case_z10_three_kinds_and_one_deployment",
        ],
        "overridden: and the Agent of KAOS",
    ),
    (11, &["case_z01_and_z11_an_agent_of_either_group_is_made_and_says_how_it_stands", FIRST], ""),
    (12, &["a_labelled_agent_is_enrolled_in_one_rollout_and_wrong_types_are_refused"], ""),
    (13, &[PUSHED, SAMPLES], "overridden: the sample has no deployAfterBuild; the fuller sample has"),
    (14, &[COMPOSED, TOKENS], ""),
    (15, &[TOKENS], ""),
    (16, &["case_z16_a_literal_token_is_refused_and_not_repeated"], ""),
    (17, &[TOKENS], ""),
    (18, &[WAITS, SAMPLES], ""),
    (19, &[WAITS, SAMPLES], "overridden: asked by name every 5 s for 2 min, then every 30 s; Secrets are not watched"),
    (20, &["case_z20_the_login_is_named_and_never_said", PUSHED, SAMPLES, CANARY], ""),
    (
        21,
        &[
            "case_z21_a_git_token_is_a_login_only_where_the_platform_trusts_the_host",
            "case_z21_a_login_reaches_the_registry_of_its_host_and_no_other",
            RUNS,
        ],
        "",
    ),
    (22, &["case_z22_the_login_is_one_entry_of_one_host", LOGIN, PUSHED, SAMPLES], ""),
    (23, &[LOGIN], "overridden: within 5 minutes and jitter; Secrets are not watched"),
    (24, &["case_z24_a_foreign_secret_of_the_logins_name_is_a_conflict"], ""),
    (
        25,
        &[
            COMPOSED,
            "case_z25_only_the_push_may_bind_a_login_and_it_has_no_source",
            "case_z25_the_samples_are_accepted_in_both_groups",
        ],
        "",
    ),
    (26, &[PUSHED], ""),
    (27, &["case_z27_arguments_reach_the_build_one_by_one_and_nothing_else_does", PUSHED], ""),
    (28, &["case_z28_what_refers_to_something_else_is_no_build_argument", PUSHED], ""),
    (29, &["case_z29_a_missing_subfolder_ends_the_build_before_anything_is_built", FAILS], ""),
    (
        30,
        &[
            "case_z30_only_a_registry_that_the_platform_lists_is_spoken_to_without_tls",
            "case_z30_tls_is_left_out_for_listed_registries_alone",
            RUNS,
        ],
        "",
    ),
    (31, &[EITHER, SAMPLES, TEKTON], ""),
    (32, &[EITHER, TEKTON, "case_z32_the_agent_that_is_kept_says_who_made_it"], ""),
    (33, &["case_z33_an_agent_that_could_not_be_made_is_made_later"], ""),
    (34, &["case_z34_an_unrelated_agent_is_untouched"], ""),
    (35, &["case_z35_and_z36_the_agent_follows_the_build_and_its_own_section"], ""),
    (
        36,
        &[
            "case_z35_and_z36_the_agent_follows_the_build_and_its_own_section",
            "case_z36_only_what_is_built_makes_another_build",
        ],
        "",
    ),
    (37, &["case_z37_the_agent_survives_the_build", SAMPLES], "not shown: the kubelet's pull"),
    (38, &[CLEANED, TEKTON], ""),
    (39, &[EITHER, FAILS], ""),
    (40, &[CLEANED, TEKTON], ""),
    (41, &[SAMPLES, "as_many_runs_are_kept_as_the_platform_says"], ""),
    (42, &[COMPOSED, TEKTON], ""),
    (43, &["case_z43_one_run_whatever_ends_the_process"], ""),
    (44, &[CLEANED, FAILS], ""),
    (45, &[LATE], ""),
    (
        46,
        &[EITHER, SAMPLES, "case_z46_the_group_of_the_original_operator_is_served_while_its_definition_is_there"],
        "overridden: the group is served while its definition is there; there is no option",
    ),
    (47, &[LATE], ""),
    (48, &["case_z48_builds_of_several_groups_and_one_name_have_names_of_their_own", FAILS], ""),
];

/// The numbers that the name of a test begins with: `case_z31_z32_z46_…`, `case_z03_and_z04_…`.
fn numbers(name: &str) -> BTreeSet<u32> {
    let Some(rest) = name.strip_prefix("case_") else { return BTreeSet::new() };
    let words = rest.split('_').map_while(|word| match word.strip_prefix('z') {
        Some(digits) => digits.parse().ok().map(Some),
        None => (word == "and").then_some(None),
    });
    words.flatten().collect()
}

#[test]
fn every_case_of_beeai_has_a_test_that_exists() {
    let tests = faults::tests();
    let rows: BTreeMap<u32, &Row> = ROWS.iter().map(|row| (row.0, row)).collect();
    assert!(rows.keys().copied().eq(1..=48) && ROWS.len() == 48, "{:?}", rows.keys());
    for (number, names, _) in ROWS {
        assert!(!names.is_empty(), "Z{number} has no test");
        let missing: Vec<_> = names.iter().filter(|name| !tests.contains(**name)).collect();
        assert!(missing.is_empty(), "Z{number}: there is no {missing:?}");
    }
    for name in &tests {
        for number in numbers(name) {
            let row = rows.get(&number).unwrap_or_else(|| panic!("{name}: there is no Z{number}"));
            assert!(row.1.contains(&name.as_str()), "Z{number}: its row does not name {name}");
        }
    }
    assert_eq!(numbers("case_z03_and_z04_x"), BTreeSet::from([3, 4]));
    assert_eq!(numbers("case_10_z3"), BTreeSet::new());
}
