//! Which faults of the list are held by a test, by id.
//!
//! A test says which fault it holds by beginning its name with the ids: `d2_d3_a_rolling_restart_…`. A case of the corpus says it in
//! its `spec`. [`HELD`] is what is in reach, [`OUT_OF_REACH`] what is not and why; the tests of this repository name exactly the
//! first. Letters: A requests, B transport, C certificates, D processes and the API server, G rights, secrets and supply; E and F,
//! agents and their cards, have a table of their own ([`super::cards`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Every fault that a test can meet, and what has to be true of it.
const HELD: &[(&str, &str)] = &[
    ("a1", "a body that is no review is answered without a panic, with its uid where that can be read"),
    ("a2", "a body larger than the cap, or of a length that is a lie, ends at the cap"),
    ("a3", "depth costs no stack"),
    ("a4", "many keys, containers and variables cost time in proportion"),
    ("a5", "other methods, paths, media types and encodings are refused"),
    ("a6", "reviews of other versions are answered in words that the caller can read"),
    ("a7", "equal reviews get equal bytes"),
    ("a8", "a dry run writes nothing, whichever webhook it reaches"),
    ("a9", "what was injected before, here or by others, is completed and not doubled"),
    ("a10", "operations, subresources and Pods that are not ours to change pass as they are"),
    ("a11", "a patch applies where lists and maps are missing or null, and keys are odd"),
    ("a12", "fields that we do not know survive byte for byte"),
    ("a13", "a reference to another namespace or another uid gives nothing"),
    ("a14", "a panic is an answer, and the next review is fine"),
    ("a15", "an answer comes before the caller gives up"),
    ("a16", "switched off means off from the next review on"),
    ("b1", "slow and silent clients end at deadlines of their own and slow nobody down"),
    ("b2", "connections outlive the silence of every client that we serve"),
    ("b3", "old protocols, weak suites and plain HTTP are refused"),
    ("b4", "client certificates are asked for, judged and their authority followed"),
    ("b5", "floods of HTTP/2 frames end the connection"),
    ("b6", "a process out of descriptors pauses and recovers"),
    ("b7", "requests that two readers could understand differently are refused"),
    ("b8", "no port shows what is not its own"),
    ("c1", "replicas that start at once agree on one authority"),
    ("c2", "rotation fails no call"),
    ("c3", "a pair of files that does not fit is never served"),
    ("c4", "a lost or damaged authority is put back or refused aloud"),
    ("c5", "certificates that come near their end are told of, and clocks may differ"),
    ("c6", "a second writer of the bundle is answered rarely"),
    ("c7", "no connection outlives its certificate"),
    ("d1", "a replica that leaves loses no review"),
    ("d2", "a killed or replaced replica costs what was in flight on it"),
    ("d3", "without any replica only enrolled Pods wait"),
    ("d4", "who no longer leads writes no more, even if it was frozen meanwhile"),
    ("d5", "clocks that differ make no second leader"),
    ("d6", "without the API server reviews are answered from what is known"),
    ("d7", "errors of the API server are tried again, later and not for ever at once"),
    ("d8", "a watch that breaks, lags or goes back ends in the truth"),
    ("d9", "conflicts converge in few writes"),
    ("d10", "an API server that is slow or full is asked rarely and caught up with"),
    ("d11", "kinds may be missing, come and go"),
    ("d12", "a missing right costs one feature"),
    ("d13", "what is deleted or belongs to others is neither made again nor taken over"),
    ("d14", "a refused write is told once with the server's reason"),
    ("d16", "many objects at once do not end the process"),
    ("d17", "files and tasks stay flat"),
    ("d18", "names at their limits fit and stay apart"),
    ("g1", "no reference leaves its namespace"),
    ("g2", "no value of a Secret is repeated anywhere"),
    ("g3", "a power in a Pod takes the right to create such a Pod"),
    ("g4", "what a build runs is what was reviewed, and values are data"),
    ("g5", "what a tenant can write about itself is no proof"),
    ("g6", "an object of our name that is not ours is left alone and named"),
    ("g7", "no agent's Pod runs before the NetworkPolicy that cuts it off, and an outage opens nothing"),
    ("g8", "a flood in one namespace leaves the others their turn"),
    ("g9", "our own rights have no wildcard and no way up"),
    ("g10", "secrets stand in no log line and no debug output"),
    ("g11", "every dependency is pinned by its checksum"),
    ("g12", "our own Pods run without rights, from an empty image"),
    ("g13", "none of our crates may have unsafe code"),
];

/// The others, and what stands in the way.
const OUT_OF_REACH: &[(&str, &str)] = &[("d15", "there is no release to come from or to go back to")];

pub(super) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

/// Names of functions that are tests.
#[derive(Default)]
struct Tests(Vec<String>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
        };
        if function.attrs.iter().any(is_test) {
            self.0.push(function.sig.ident.to_string());
        }
    }
}

/// A letter of the list and a number.
fn is_id(word: &str) -> bool {
    let Some((letter, number)) = word.split_at_checked(1) else { return false };
    "abcdefg".contains(letter) && (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The ids that a test's name begins with.
fn ids_of_name(name: &str) -> Vec<String> {
    name.split('_').take_while(|word| is_id(word)).map(str::to_owned).collect()
}

/// The ids that follow the word `fault` in the `spec` of a case.
fn ids_of_case(text: &str) -> Vec<String> {
    let spec = text.lines().find(|line| line.starts_with("spec:")).unwrap_or_default();
    let after = spec.split("fault ").nth(1).unwrap_or_default().split(';').next().unwrap_or_default();
    let words = after.split(|character: char| !character.is_ascii_alphanumeric());
    words.map(str::to_ascii_lowercase).filter(|word| is_id(word)).collect()
}

/// The names of all tests.
pub(super) fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut sources = Vec::new();
    for folder in ["src", "tests", "webhook-tests/src", "webhook-tests/tests", "benches/src", "benches/counts/src"] {
        files(&root().join(folder), ".rs", &mut sources);
    }
    for path in sources {
        let mut tests = Tests::default();
        let text = std::fs::read_to_string(&path).unwrap();
        tests.visit_file(&syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        found.extend(tests.0);
    }
    found
}

/// Every id that a test names, with one that does.
fn named() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for test in tests() {
        found.extend(ids_of_name(&test).into_iter().map(|id| (id, test.clone())));
    }
    let mut cases = Vec::new();
    files(&root().join("webhook-tests/corpus"), "expect.yaml", &mut cases);
    for path in cases {
        let ids = ids_of_case(&std::fs::read_to_string(&path).unwrap());
        found.extend(ids.into_iter().map(|id| (id, path.display().to_string())));
    }
    found
}

#[test]
fn mend_16_every_fault_in_reach_is_named_by_a_test_and_no_other() {
    let named = named();
    let held: BTreeSet<&str> = HELD.iter().map(|(id, _)| *id).collect();
    assert_eq!(held.len(), HELD.len(), "an id stands twice");
    let missing: Vec<_> = HELD.iter().filter(|(id, _)| !named.contains_key(*id)).collect();
    assert!(missing.is_empty(), "no test is named after {missing:?}");
    let unknown: Vec<_> = named.iter().filter(|(id, _)| !held.contains(id.as_str())).collect();
    assert!(unknown.is_empty(), "these are not on the list of what is in reach: {unknown:?}");
    for (id, why) in OUT_OF_REACH {
        assert!(!held.contains(id) && !why.is_empty(), "{id} is in reach and is not");
    }
}

#[test]
fn the_list_leaves_no_number_out() {
    for (letter, last) in [("a", 16), ("b", 8), ("c", 7), ("d", 18), ("g", 13)] {
        let listed = HELD.iter().chain(OUT_OF_REACH).map(|(id, _)| *id);
        let numbers: BTreeSet<u32> = listed.filter_map(|id| id.strip_prefix(letter)?.parse().ok()).collect();
        assert!(numbers.iter().copied().eq(1..=last), "{letter}: {numbers:?}");
    }
}

#[test]
fn ids_are_read_from_the_beginning_of_a_name_and_from_a_case_s_spec() {
    assert_eq!(ids_of_name("d2_d3_a_rolling_restart"), ["d2", "d3"]);
    assert_eq!(ids_of_name("case_d04_a_foreign_run"), [""; 0]);
    assert_eq!(ids_of_name("a_body_of_d1_size"), [""; 0]);
    assert_eq!(ids_of_case("spec: 'fault A13, G5; part 5.1 A4'\nreason: x"), ["a13", "g5"]);
    assert_eq!(ids_of_case("spec: part 5.1 A4"), [""; 0]);
}

#[test]
fn g11_every_dependency_comes_from_the_registry_with_a_checksum() {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let Ok(text) = std::fs::read_to_string(root().join(lock)) else { continue };
        for package in text.split("[[package]]").skip(1) {
            let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            let ours = value("source").is_none();
            assert!(
                ours || value("source") == Some("\"registry+https://github.com/rust-lang/crates.io-index\""),
                "{package}"
            );
            assert!(ours || value("checksum").is_some_and(|sum| sum.len() == 66), "{package}");
        }
    }
}

#[test]
fn g12_the_image_is_empty_but_for_the_binary_and_its_user_is_not_root() {
    let text = std::fs::read_to_string(root().join("Dockerfile")).unwrap();
    let last = &text[text.rfind("\nFROM ").expect("an image") + 1..];
    let copied = last.lines().filter(|line| line.starts_with("COPY") || line.starts_with("ADD")).count();
    assert!(last.starts_with("FROM scratch\n") && copied == 1 && !last.contains("\nRUN"), "{last}");
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).expect("a user");
    assert!(user.split(':').all(|id| id.parse::<u32>().unwrap() > 0), "{user}");
}

/// The folders of a member: itself, or, with a star at its end, those in it that hold a crate.
fn folders(member: &str) -> Vec<PathBuf> {
    let Some(parent) = member.strip_suffix("/*") else { return vec![root().join(member)] };
    let all = std::fs::read_dir(root().join(parent)).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.join("Cargo.toml").exists()).collect()
}

#[test]
fn g13_unsafe_code_is_forbidden_in_every_crate_of_the_workspace() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let workspace = read("Cargo.toml");
    let lints = &workspace[workspace.find("[workspace.lints.rust]").expect("lints of the workspace")..];
    assert!(
        lints.lines().skip(1).take_while(|line| !line.starts_with('[')).any(|line| line == "unsafe_code = \"forbid\"")
    );
    let members = workspace.lines().find_map(|line| line.strip_prefix("members = ")).expect("members");
    let members = members.trim_matches(['[', ']']).split(", ").map(|name| name.trim_matches('"'));
    let folders: Vec<PathBuf> = members.flat_map(folders).collect();
    assert!(folders.len() > 8, "not every crate is looked at: {folders:?}");
    for folder in folders {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{} has lints of its own", folder.display());
    }
}
