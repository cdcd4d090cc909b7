//! E3's ssh layout: `git` and `ssh` for real, against a server that knows one key ([`server`]).

mod server;
mod wire;

use std::process::Command;

use super::clone::{Run, refers, repository};
use server::{Key, Seen, Server};

/// What is missing fails the suite: a clone that is not tried proves nothing.
fn needs_ssh() {
    let there = Command::new("ssh").arg("-V").output();
    assert!(there.is_ok(), "no ssh on this machine (Debian: apt-get install openssh-client)");
}

/// The step with a Secret of ssh's layout.
fn run(server: &Server, revision: &str, key: &Key, known: Option<&str>) -> Run {
    let private = key.private();
    let known = known.map(|line| format!("[localhost]:{} {line}\n", server.port));
    let mut files = vec![("ssh-privatekey", &*private)];
    files.extend(known.as_deref().map(|known| ("known_hosts", known)));
    Run::new(&server.url(), revision, None).with(&files, "")
}

/// Nothing that outlives the step holds the key.
fn keeps_no_key(run: &Run, key: &Key, output: &std::process::Output) {
    let private = key.private();
    run.keeps_nothing_of(private.lines().nth(2).unwrap(), output);
}

/// E1, E2, E3: by branch, tag and commit.
#[tokio::test(flavor = "multi_thread")]
async fn case_e3_private_repositories_are_cloned_over_ssh() {
    needs_ssh();
    let root = tempfile::tempdir().unwrap();
    let [first, second] = repository(root.path());
    for (revision, commit) in [("main", &first), ("v1.0.0", &first), ("feature/x", &second), (&*second, &second)] {
        let (host, key) = (Key::generate(), Key::generate());
        let line = host.line();
        let server = Server::start(host, &key, root.path()).await;
        let run = run(&server, revision, &key, Some(&line));
        let output = run.output().await;
        assert!(output.status.success(), "{revision}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(&run.read("COMMIT"), commit, "{revision}");
        assert_eq!(run.read("URL"), format!("ssh://localhost:{}/agents.git", server.port));
        assert_eq!(run.read("source/one"), "1");
        let seen = server.seen();
        let command = Seen::Ran("git-upload-pack '/agents.git'".to_owned());
        assert_eq!(seen[..3], [Seen::Trusted, Seen::Entered("git".to_owned()), command], "{seen:?}");
        assert!(!seen.iter().any(|one| matches!(one, Seen::Refused(_))), "{seen:?}");
        keeps_no_key(&run, &key, &output);
    }
}

/// A host with another key than `known_hosts` has learns nothing: not even who wants in.
#[tokio::test(flavor = "multi_thread")]
async fn another_hosts_key_ends_the_clone() {
    needs_ssh();
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let key = Key::generate();
    let server = Server::start(Key::generate(), &key, root.path()).await;
    let run = run(&server, "main", &key, Some(&Key::generate().line()));
    let output = run.output().await;
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("Host key verification failed") && told.contains("cannot be fetched"), "{told}");
    assert_eq!(server.seen(), []);
    keeps_no_key(&run, &key, &output);
}

/// A key that the server does not know fails at once, and nobody is asked for a password.
#[tokio::test(flavor = "multi_thread")]
async fn another_key_is_refused() {
    needs_ssh();
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let (host, key) = (Key::generate(), Key::generate());
    let line = host.line();
    let server = Server::start(host, &Key::generate(), root.path()).await;
    let run = run(&server, "main", &key, Some(&line));
    let output = run.output().await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be fetched"));
    let seen = server.seen();
    assert_eq!(seen[..2], [Seen::Trusted, Seen::Refused("git".to_owned())], "{seen:?}");
    assert!(!seen.iter().any(|one| matches!(one, Seen::Entered(_) | Seen::Ran(_))), "{seen:?}");
    keeps_no_key(&run, &key, &output);
}

/// Without `known_hosts` there is a clone only where the platform says so.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_hosts_are_a_decision_of_the_platform() {
    needs_ssh();
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let key = Key::generate();
    let server = Server::start(Key::generate(), &key, root.path()).await;
    let output = run(&server, "main", &key, None).output().await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no known_hosts"));
    assert_eq!(server.seen(), []);
    let allowed = run(&server, "main", &key, None).set("ALLOW_UNKNOWN_HOSTS", "true");
    let output = allowed.output().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(allowed.read("source/one"), "1");
}

/// What a repository refers to is on another host: nobody there is shown the key, known host or not.
#[tokio::test(flavor = "multi_thread")]
async fn mend_06_a_submodule_elsewhere_is_shown_no_key() {
    needs_ssh();
    let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    repository(root.path());
    repository(other.path());
    let (host, second, key) = (Key::generate(), Key::generate(), Key::generate());
    let (line, second_line) = (host.line(), second.line());
    let elsewhere = Server::start(second, &key, other.path()).await;
    refers(root.path(), &format!("ssh://git@127.0.0.1:{}/agents.git", elsewhere.port));
    let server = Server::start(host, &key, root.path()).await;
    let known = format!("[localhost]:{} {line}\n[127.0.0.1]:{} {second_line}\n", server.port, elsewhere.port);
    let private = key.private();
    let run = Run::new(&server.url(), "refers", None)
        .with(&[("ssh-privatekey", &*private), ("known_hosts", &*known)], "")
        .set("SUBMODULES", "true");
    let output = run.output().await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("no key for another host"), "{told}");
    assert_eq!(server.seen()[0], Seen::Trusted, "the repository itself was cloned");
    assert_eq!(elsewhere.seen(), []);
    keeps_no_key(&run, &key, &output);
}
