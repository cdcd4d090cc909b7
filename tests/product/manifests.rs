//! `manifests/` is what `drawbridge render` makes, file by file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drawbridge::cli::render;
use drawbridge::domain::keys;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn generated() -> Vec<(String, String)> {
    let files = render::tree(keys::OPERATOR_NAMESPACE, concat!("drawbridge:", env!("CARGO_PKG_VERSION")));
    files.into_iter().map(|(path, text)| (path.into_owned(), text)).collect()
}

#[test]
fn the_committed_manifests_are_what_the_code_renders() {
    for (path, text) in generated() {
        let committed = std::fs::read_to_string(folder().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let differs = committed.lines().zip(text.lines()).position(|(was, is)| was != is);
        assert!(
            committed == text,
            "{path} is out of date from line {:?}: run `make manifests`",
            differs.map(|at| at + 1)
        );
    }
}

/// The API server shows a match condition of a policy no Namespace: one that names it fails for every object, and with `failurePolicy: Fail` refuses it.
#[test]
fn no_match_condition_names_the_namespace() {
    let mut conditions = 0;
    for (path, text) in generated() {
        for document in text.split("\n---") {
            let Some((_, rest)) = document.split_once("\n  matchConditions:\n") else { continue };
            let of_it: Vec<_> =
                rest.lines().take_while(|line| line.starts_with("  -") || line.starts_with("    ")).collect();
            assert!(!of_it.iter().any(|line| line.contains("namespaceObject")), "{path}: {of_it:#?}");
            conditions += of_it.len();
        }
    }
    assert!(conditions > 10, "only {conditions} lines");
}

#[test]
fn nothing_else_lies_in_the_generated_folders() {
    let known: BTreeSet<String> = generated().into_iter().map(|(path, _)| path).collect();
    for room in ["crds", "rbac", "webhooks", "deploy", "monitoring"] {
        for entry in std::fs::read_dir(folder().join(room)).unwrap() {
            let path = format!("{room}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(known.contains(&path), "{path} is no longer rendered: delete it");
        }
    }
}

/// The target of the static binary is added to one toolchain; another one that rustup fetched for the file would lack it.
#[test]
fn the_image_is_built_by_the_toolchain_that_the_workspace_pins() {
    let read = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let pinned = read("rust-toolchain.toml");
    let channel = pinned.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"').to_owned();
    let base = format!("FROM rust:{channel}-");
    assert!(
        read("Dockerfile").lines().any(|line| line.starts_with(&base)),
        "the Dockerfile begins with another toolchain than {channel}"
    );
}

/// One Dockerfile for both: the target follows the machine that builds, and nothing in it or in the manifests names a processor.
#[test]
fn answers_17_the_image_is_built_for_the_processor_that_builds_it() {
    let read = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let file = read("Dockerfile");
    let steps = || file.lines().filter(|line| !line.trim_start().starts_with('#'));
    let target = "$(uname -m)-unknown-linux-musl";
    assert_eq!(
        steps().filter(|line| line.contains(target)).count(),
        2,
        "the target that is added is the one that is built"
    );
    for named in ["x86_64", "amd64", "aarch64", "arm64", "--platform"] {
        assert!(!steps().any(|line| line.contains(named)), "a step of the Dockerfile names {named}");
        let of_manifests = generated().into_iter().find(|(_, text)| text.contains(named));
        assert_eq!(of_manifests.map(|(path, _)| path), None, "{named}");
    }
    assert!(file.contains("--platform linux/amd64,linux/arm64"), "the command for both is not told");
}
