//! `manifests/` is what `drawbridge render` makes, file by file (design §5).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use drawbridge::cli::render;
use drawbridge::domain::keys;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn generated() -> Vec<(&'static str, String)> {
    render::tree(keys::OPERATOR_NAMESPACE, concat!("drawbridge:", env!("CARGO_PKG_VERSION")))
}

#[test]
fn the_committed_manifests_are_what_the_code_renders() {
    for (path, text) in generated() {
        let committed = std::fs::read_to_string(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(committed, text, "{path} is out of date: run `make manifests`");
    }
}

#[test]
fn nothing_else_lies_in_the_generated_folders() {
    let known: BTreeSet<String> = generated().into_iter().map(|(path, _)| path.to_owned()).collect();
    for room in ["crds", "rbac", "webhooks", "deploy", "monitoring"] {
        for entry in std::fs::read_dir(folder().join(room)).unwrap() {
            let path = format!("{room}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(known.contains(&path), "{path} is no longer rendered: delete it");
        }
    }
}
