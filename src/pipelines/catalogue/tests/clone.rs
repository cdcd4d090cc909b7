//! `github-clone-step`, with `git` for real over a stub of ssh.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use super::place::{Place, script};

/// A repository with two commits, a tag and a branch; served by `git` itself behind a stub of ssh.
fn repository(place: &Place) -> (String, Vec<String>) {
    let work = place.path("work");
    std::fs::create_dir(&work).unwrap();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@example.com",
                "-c",
                "init.defaultBranch=main",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .current_dir(&work)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q", "."]);
    std::fs::write(work.join("one"), "1").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    let first = git(&["rev-parse", "HEAD"]);
    git(&["tag", "v1.0.0"]);
    git(&["checkout", "-q", "-b", "feature/x"]);
    std::fs::write(work.join("two"), "2").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "two"]);
    let second = git(&["rev-parse", "HEAD"]);
    git(&["checkout", "-q", "main"]);
    (format!("ssh://git@code.example{}", work.display()), vec![first, second])
}

/// What runs the remote command here instead of there.
const SSH: &str = "for one in \"$@\"; do last=$one; done; exec sh -c \"$last\"";

fn cloning() -> (Place, Vec<String>) {
    let place = Place::new().stub("ssh", SSH);
    let (url, commits) = repository(&place);
    let place = place
        .with("URL", &url)
        .with("DEPTH", "1")
        .with("REPO_USER", "")
        .with("REVISION", "main")
        .file("auth/ssh-privatekey", "canary-key")
        .file("auth/known_hosts", "code.example ssh-ed25519 AAAA");
    (place.with("AUTH_BOUND", "true"), commits)
}

#[test]
fn branches_tags_and_commits_are_checked_out() {
    let text = script("github-clone-step", "clone");
    for (revision, commit, file) in [
        ("main", 0, "one"),
        ("v1.0.0", 0, "one"),
        ("feature/x", 1, "two"),
        ("<second>", 1, "two"),
        ("<short>", 1, "two"),
    ] {
        let (place, commits) = cloning();
        let revision = match revision {
            "<second>" => commits[1].clone(),
            "<short>" => commits[1][..10].to_owned(),
            other => other.to_owned(),
        };
        let place = place
            .with("REVISION", &revision)
            .with("ARTIFACTS_BOUND", "true")
            .file("source/stale/x", "")
            .file("artifacts/image-digest", "stale");
        place.ran(&text, &[]);
        assert_eq!(place.out("COMMIT"), commits[commit], "{revision}");
        assert!(place.path("source").join(file).exists());
        assert!(
            !place.path("source/stale").exists() && !place.path("artifacts/image-digest").exists(),
            "nothing of an earlier run"
        );
        assert!(place.out("URL").starts_with("ssh://code.example/"), "{}", place.out("URL"));
        let log = place.log("ssh");
        assert!(log.contains("StrictHostKeyChecking=yes") && log.contains("IdentitiesOnly=yes"), "{log}");
        let (key, known) = (place.path("scratch/key"), place.path("auth/known_hosts"));
        assert!(log.contains(&format!("-i\n{}\n", key.display())), "{log}");
        assert!(log.contains(&format!("UserKnownHostsFile={}\n", known.display())), "{log}");
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(
            (std::fs::read_to_string(&key).unwrap().trim_end(), mode & 0o077),
            ("canary-key", 0),
            "ssh reads it"
        );
        let config = std::fs::read_to_string(place.path("source/.git/config")).unwrap();
        assert!(!config.contains("canary-key") && !log.contains("canary-key"));
    }
}

#[test]
fn what_is_no_revision_or_repository_is_refused_before_git_sees_it() {
    let text = script("github-clone-step", "clone");
    for (name, value, told) in [
        ("REVISION", "--upload-pack=touch x", "not the name of a branch"),
        ("REVISION", "a:b", "not the name of a branch"),
        ("REVISION", "missing", "no such branch, tag or commit"),
        ("URL", "--upload-pack=x", "looks like an option"),
        ("URL", "", "is empty"),
        ("DEPTH", "1; touch x", "depth is not a number"),
    ] {
        let (place, _) = cloning();
        let place = place.with(name, value);
        assert!(place.failed(&text, &[]).contains(told), "{name}={value}: {}", place.failed(&text, &[]));
        assert!(!place.path("x").exists() && !place.path("source/x").exists());
    }
    for url in ["file:///etc", "ext::sh -c touch% x", "git://127.0.0.1:1/x"] {
        let (place, _) = cloning();
        let place = place.with("URL", url);
        place.failed(&text, &[]);
        assert!(!place.path("x").exists() && !place.path("source/x").exists(), "{url}");
    }
    let (place, _) = cloning();
    let place = place.with("ALLOW_UNKNOWN_HOSTS", "false");
    std::fs::remove_file(place.path("auth/known_hosts")).unwrap();
    assert!(place.failed(&text, &[]).contains("no known_hosts"));
    place.with("ALLOW_UNKNOWN_HOSTS", "true").ran(&text, &[]);
    let (place, _) = cloning();
    std::fs::remove_dir(place.path("source")).unwrap();
    symlink(place.path("out"), place.path("source")).unwrap();
    assert!(place.failed(&text, &[]).contains("symbolic link"));
}

/// 14.2: which Secret layouts give what, and to whom: git asks the helper, for the repository's host and for another.
#[test]
fn tokens_are_told_to_their_host_only() {
    let text = script("github-clone-step", "clone");
    let ask = "if [ \"$1\" = fetch ]; then
  for prompt in \"Username for 'https://code.example': \" \"Password for 'https://me@code.example': \" \"Password for 'https://me@evil.example': \" \"Username for 'http://code.example': \"; do
    \"$GIT_ASKPASS\" \"$prompt\" 2> /dev/null || printf '%s' refused
    echo
  done > answers
  exit 1
fi";
    let none: [(&str, &str); 0] = [];
    for (files, user, expected) in [
        (&[("username", "u"), ("password", "canary")][..], "", "u\ncanary\nrefused\nrefused\n"),
        (&[("user", "u"), ("token", "canary")], "", "u\ncanary\nrefused\nrefused\n"),
        (&[("token", "canary")], "", "x-access-token\ncanary\nrefused\nrefused\n"),
        (&[("token", "canary")], "octo", "octo\ncanary\nrefused\nrefused\n"),
        (&none, "", "none of"),
        (&[("username", "u")], "", "none of"),
    ] {
        let mut place =
            Place::new().stub("git", ask).with("URL", "code.example/a/b").with("DEPTH", "1").with("REVISION", "main");
        for (name, content) in files {
            place = place.file(&format!("auth/{name}"), content);
        }
        let place = place.with("AUTH_BOUND", "true").with("REPO_USER", user);
        let told = place.failed(&text, &[]);
        let answers = std::fs::read_to_string(place.path("source/answers")).unwrap_or_default();
        assert!(answers == expected || told.contains(expected), "{files:?}: {answers:?}, {told}");
        assert!(!place.log("git").contains("canary") && !told.contains("canary"));
    }
}

#[test]
fn further_authorities_are_added_to_the_known() {
    let text = script("github-clone-step", "clone");
    let place = Place::new().stub("git", "[ \"$1\" != fetch ] || { cp \"$GIT_SSL_CAINFO\" ../seen; exit 1; }");
    let trust = place.path("trust").display().to_string();
    let place = place.file("trust/ca.crt", "our authority\n").with("TRUST_BOUND", "true").with("TRUST", &trust);
    let place = place.with("URL", "code.example/a/b").with("DEPTH", "1").with("REVISION", "main").with("REPO_USER", "");
    place.failed(&text, &[]);
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    assert!(seen.ends_with("our authority\n"));
}

/// A scheme is the same in any case, and git knows it in small letters only.
#[test]
fn a_scheme_may_be_written_in_capitals() {
    let text = script("github-clone-step", "clone");
    let (place, commits) = cloning();
    let url = format!("SSH://git@code.example{}", place.path("work").display());
    let place = place.with("URL", &url);
    place.ran(&text, &[]);
    assert_eq!(place.out("COMMIT"), commits[0]);
    assert!(place.out("URL").starts_with("ssh://code.example/"), "{}", place.out("URL"));
}
