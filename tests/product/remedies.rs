//! No remedy has somebody apply a shipped manifest over an installation that may be another one: it has the shipped settings, names, images and
//! policies, and would take a person's own away.
//!
//! In: the source of `src/` without tests and comments, and the remedies of `docs/troubleshooting.md`. Out: each line that names such a file.

use std::path::Path;

use super::faults::{files, root};

/// What has settings of an installation in it, and commands that print the shipped ones straight into a cluster.
const SHIPPED: [&str; 6] = [
    "manifests/install",
    "manifests/webhooks",
    "manifests/deploy",
    "manifests/rbac",
    "manifests/beeai-compat",
    "drawbridge render |",
];
/// Who may name them: the command for an installation that is known to be the shipped one, and the head of a manifest.
const KNOWS: [(&str, &str); 3] = [
    ("src/cli/render/webhooks.rs", "manifests/webhooks/fail.yaml"),
    ("src/cli/render/webhooks.rs", "manifests/webhooks/gate.yaml"),
    ("src/cli/render/mod.rs", "manifests/beeai-compat.yaml"),
];

/// Lines of code before the tests of a file.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

fn named(line: &str) -> Option<&'static str> {
    SHIPPED.into_iter().find(|shipped| line.contains(shipped))
}

#[test]
fn no_remedy_names_a_shipped_manifest_that_would_undo_another_installation() {
    let mut paths = Vec::new();
    files(&root().join("src"), ".rs", &mut paths);
    let (mut wrong, mut known) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| !is_test(path)) {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        for line in code(&text).filter(|line| named(line).is_some()) {
            if KNOWS.iter().any(|(file, words)| *file == name && line.contains(words)) {
                known += 1;
            } else {
                wrong.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "say what `drawbridge render` prints for this installation:\n{}", wrong.join("\n"));
    assert_eq!(known, KNOWS.len(), "KNOWS has a row that nobody needs");
}

#[test]
fn no_remedy_of_the_troubleshooting_page_does_either() {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (mut remedies, mut wrong) = (0, Vec::new());
    for line in page.lines().filter(|line| line.starts_with("- **Remedy.** ")) {
        remedies += 1;
        let says_why = line.contains("are for an installation in `kagenti-system`");
        wrong.extend(named(line).filter(|_| !says_why).map(|_| line));
    }
    assert!(remedies > 100, "only {remedies} remedies found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn such_lines_are_found() {
    assert_eq!(named("kubectl apply -f manifests/install.yaml"), Some("manifests/install"));
    assert_eq!(named("apply the manifests again: drawbridge render | kubectl apply -f -"), Some("drawbridge render |"));
    assert_eq!(named("kubectl apply -f manifests/crds/agents.kaos.tools.yaml"), None);
    let lines: Vec<_> =
        code("/// manifests/install.yaml\nlet a = 1;\n#[cfg(test)]\nmod tests {\n  manifests/install\n").collect();
    assert_eq!(lines, ["let a = 1;"]);
    assert!(is_test(Path::new("src/cli/status/tests/rows.rs")) && !is_test(Path::new("src/server/testing.rs")));
}
