//! Which case of KAOS, which place where a reconciler of theirs goes wrong (`regression`) and which ruling has a test, by number.
//!
//! A test says what it holds by the beginning of its name: `case_36_…`, `cases_27_to_31_and_regression_3_…`, `ruling_22_…`. [`NAMED`] adds
//! numbers to tests whose names have others. What a ruling took the place of is in [`OVERRIDDEN`], and what nobody holds, with the reason, in
//! [`OPEN`]. The tests of KAOS's folders and these lists name every number exactly once or more, and no number that there is not.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use super::faults;

/// Folders and files whose tests are about KAOS.
const PLACES: &[&str] = &[
    "src/api/kaos_tools",
    "src/workloads/kaos",
    "src/controllers/agent/kaos",
    "src/controllers/kaos_references",
    "src/controllers/tool_discovery",
    "src/adapters/tools",
    "src/controllers/trust/tests/kaos.rs",
    "src/admission/validate/kaos",
    "webhook-tests/tests/suites/kaos",
    "webhook-tests/tests/suites/build_admission/kaos.rs",
    "webhook-tests/tests/peers/kaos.rs",
];

/// Cases that there are: 142 to 144 are about kinds that are not asked for.
const CASES: std::ops::RangeInclusive<u32> = 1..=141;
/// Places where a reconciler of theirs goes wrong.
const REGRESSIONS: std::ops::RangeInclusive<u32> = 1..=42;
/// Rulings.
const RULINGS: std::ops::RangeInclusive<u32> = 1..=28;

/// What tests hold besides what their names say.
const NAMED: &[(&str, u32, &str)] = &[
    ("case", 4, "cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up"),
    ("case", 22, "cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up"),
    ("case", 42, "cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up"),
    ("case", 43, "cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up"),
    ("case", 64, "cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up"),
    ("case", 65, "case_66_who_is_not_exposed_has_no_service"),
    ("case", 137, "d4_d5_two_replicas_never_write_at_once_whatever_their_clocks_say"),
    ("regression", 9, "cases_70_to_72_the_hash_follows_the_pods_spec_and_nothing_else"),
    ("regression", 28, "cases_77_to_85_a_pod_spec_adds_and_never_replaces_what_it_does_not_name"),
    ("regression", 29, "cases_1_2_6_8_and_regressions_30_31_33_absent_texts_make_no_variable"),
    ("regression", 34, "cases_09_to_12_the_loop_of_every_spelling"),
    ("regression", 39, "cases_13_14_58_to_60_tools_and_peers_in_the_order_of_their_bytes_each_once"),
    ("ruling", 1, "answers_15_kinds_have_categories_short_names_of_their_own_and_the_column_that_matters"),
    ("ruling", 2, "ruling_06_both_spellings_are_stored_and_what_is_wrong_is_refused_at_once"),
    ("ruling", 3, "what_was_migrated_means_the_same_and_has_no_old_spelling"),
    ("ruling", 4, "cases_46_and_49_a_model_that_is_not_offered_is_refused_until_it_is"),
    ("ruling", 8, "cases_33_to_37_and_45_peers_never_hold_back_and_are_found_when_they_come"),
    ("ruling", 15, "case_80_the_operators_container_stays_the_first"),
    ("ruling", 16, "cases_122_to_124_127_and_128_routes_come_with_gateway_api"),
    ("ruling", 19, "cases_134_and_135_what_goes_waits_for_nothing_and_only_our_finalizer_is_taken"),
    ("ruling", 23, "ruling_22_a_labelled_agent_is_enrolled_in_one_rollout"),
    ("ruling", 25, "the_path_of_kaos_is_asked_for_where_nothing_is_at_the_others"),
];

/// Cases and places that a ruling took the place of, or that say themselves that they are no test.
const OVERRIDDEN: &[(&str, u32, &str)] = &[
    ("case", 23, "a dependency that is not there is Waiting, never Failed (D3)"),
    ("case", 24, "it is woken by watch, not asked every 5 s (D3)"),
    ("case", 138, "our own ports"),
    ("regression", 2, "a comment"),
    ("regression", 8, "a comment"),
    ("regression", 15, "a comment"),
    ("regression", 32, "harmless"),
];

/// What no test holds, and why.
const OPEN: &[(&str, u32, &str)] = &[];

/// The names of functions in KAOS's places.
fn tests() -> BTreeSet<String> {
    struct Names(BTreeSet<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.0.insert(item.sig.ident.to_string());
            syn::visit::visit_item_fn(self, item);
        }
    }
    let mut paths = Vec::new();
    for place in PLACES {
        let path = faults::root().join(place);
        assert!(path.exists(), "{place}");
        if path.is_dir() { faults::files(&path, ".rs", &mut paths) } else { paths.push(path) }
    }
    let mut names = Names(BTreeSet::new());
    for path in paths {
        names.visit_file(&syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap());
    }
    names.0
}

/// The numbers that a name says, by what they are numbers of.
fn numbers(name: &str) -> Vec<(&'static str, u32)> {
    let (mut found, mut of, mut last, mut range) = (Vec::new(), None, 0, false);
    for word in name.split('_') {
        let kind = ["case", "regression", "ruling"]
            .into_iter()
            .find(|kind| word == *kind || word.strip_suffix('s') == Some(kind));
        match (kind, of, word.parse::<u32>()) {
            (Some(kind), ..) => (of, last, range) = (Some(kind), 0, false),
            (None, Some(kind), Ok(number)) => {
                let from = if range { last + 1 } else { number };
                found.extend((from..=number).map(|number| (kind, number)));
                (last, range) = (number, false);
            }
            (None, Some(_), Err(_)) if word == "to" && last > 0 => range = true,
            (None, Some(_), Err(_)) if word == "and" => {}
            // What stands behind the numbers are words.
            (None, ..) => break,
        }
    }
    found
}

#[test]
fn a_name_says_its_numbers() {
    assert_eq!(
        numbers("cases_20_25_to_27_and_regressions_1_to_3_and_ruling_9_a_60"),
        [
            ("case", 20),
            ("case", 25),
            ("case", 26),
            ("case", 27),
            ("regression", 1),
            ("regression", 2),
            ("regression", 3),
            ("ruling", 9)
        ]
    );
    assert_eq!(numbers("what_is_case_3"), []);
}

#[test]
fn every_case_place_and_ruling_has_a_test_or_a_reason() {
    let tests = tests();
    let all = faults::tests();
    let mut held: BTreeMap<(&str, u32), Vec<&str>> = BTreeMap::new();
    for name in &tests {
        for number in numbers(name) {
            held.entry(number).or_default().push(name);
        }
    }
    for (kind, number, name) in NAMED {
        assert!(tests.contains(*name) || all.contains(*name), "{kind} {number}: there is no {name}");
        held.entry((kind, *number)).or_default().push(name);
    }
    let wanted = |kind: &'static str, numbers: std::ops::RangeInclusive<u32>| numbers.map(move |number| (kind, number));
    let wanted: BTreeSet<_> =
        wanted("case", CASES).chain(wanted("regression", REGRESSIONS)).chain(wanted("ruling", RULINGS)).collect();
    let told = || OVERRIDDEN.iter().chain(OPEN);
    let known: BTreeSet<_> = held.keys().copied().chain(told().map(|(kind, number, _)| (*kind, *number))).collect();
    assert_eq!(wanted.difference(&known).collect::<Vec<_>>(), Vec::<&(&str, u32)>::new(), "no test, and no reason");
    assert_eq!(known.difference(&wanted).collect::<Vec<_>>(), Vec::<&(&str, u32)>::new(), "there is no such number");
    let both: Vec<_> = OPEN.iter().filter(|(kind, number, _)| held.contains_key(&(*kind, *number))).collect();
    assert!(both.is_empty(), "a test has come: {both:?}");
    assert!(told().all(|(.., why)| !why.is_empty()));
}
