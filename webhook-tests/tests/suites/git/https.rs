//! Clones over TLS: `git http-backend` behind a server whose certificate only our own authority vouches for, and which
//! wants a name and a password.

use webhook_tests::git_server::{Behaviour, Server};
use webhook_tests::pki::Authority;

use super::clone::{Run, refers, repository};

const USER: &str = "octo";
const PASSWORD: &str = "canary-p4ss'w\"ord$(id)";

/// E1, E2: with and without `https://`, by branch, tag and commit; E3: each layout of 14.2.
#[tokio::test(flavor = "multi_thread")]
async fn private_repositories_are_cloned_over_tls() {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = repository(root.path());
    let authority = Authority::new("git").unwrap();
    for (scheme, revision, commit) in [
        ("https://", "main", &first),
        ("", "v1.0.0", &first),
        ("", "feature/x", &second),
        ("https://", &second, &second),
    ] {
        for (files, user) in [
            (&[("username", USER), ("password", PASSWORD)][..], ""),
            (&[("user", USER), ("token", PASSWORD)], ""),
            (&[("token", PASSWORD)], USER),
        ] {
            let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
            let run = Run::new(&server.url(scheme), revision, Some(&authority)).with(files, user);
            let output = run.output().await;
            assert!(output.status.success(), "{scheme} {revision}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(&run.read("COMMIT"), commit, "{revision}");
            assert_eq!(run.read("URL"), server.url("https://"));
            assert_eq!(run.read("source/one"), "1");
            assert!(server.saw(USER, PASSWORD));
            run.keeps_nothing_of("canary", &output);
        }
    }
}

/// Verification is on: without our authority the server is nobody, and is told nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_authority_is_not_trusted() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let (authority, other) = (Authority::new("git").unwrap(), Authority::new("other").unwrap());
    let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
    for trusted in [None, Some(&other)] {
        let run =
            Run::new(&server.url("https://"), "main", trusted).with(&[("username", USER), ("password", PASSWORD)], "");
        let output = run.output().await;
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("certificate") && told.contains("cannot be fetched"), "{told}");
        assert_eq!(server.seen(), Vec::<String>::new());
        run.keeps_nothing_of("canary", &output);
    }
}

/// A server that sends the clone elsewhere does not get the password sent there.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_takes_no_password_along() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
    let server = Server::start(&authority, Behaviour::Redirect(elsewhere.port())).await.unwrap();
    let run = Run::new(&server.url("https://"), "main", Some(&authority))
        .with(&[("username", USER), ("password", PASSWORD)], "");
    let output = run.output().await;
    assert!(!output.status.success());
    assert!(!elsewhere.seen().is_empty(), "the redirect was followed");
    assert!(!elsewhere.saw(USER, PASSWORD), "{:?}", elsewhere.seen());
    run.keeps_nothing_of("canary", &output);
}

/// Nor does one that asks for the password first, and gets it; whoever is told of it is the repository's own host.
#[tokio::test(flavor = "multi_thread")]
async fn mend_06_a_redirect_behind_the_password_takes_none_along() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
    let server = Server::start(&authority, Behaviour::RedirectAfter(elsewhere.port())).await.unwrap();
    let run = Run::new(&server.url("https://"), "main", Some(&authority))
        .with(&[("username", USER), ("password", PASSWORD)], "");
    let output = run.output().await;
    assert!(!output.status.success());
    assert!(server.saw(USER, PASSWORD), "the repository's own host was given it");
    let seen = elsewhere.seen();
    assert!(seen.iter().all(String::is_empty), "the other host was told something: {seen:?}");
    run.keeps_nothing_of("canary", &output);
}

/// What a repository refers to is cloned without the credential of the repository, unless it is on the same host.
#[tokio::test(flavor = "multi_thread")]
async fn mend_06_a_submodule_elsewhere_gets_no_password() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
    for (at, gets) in [(Some(elsewhere.port()), false), (None, true)] {
        let of = tempfile::tempdir().unwrap();
        let server = Server::start(&authority, Behaviour::Serve(of.path().to_owned())).await.unwrap();
        repository(of.path());
        let url = at.map_or_else(|| server.url("https://"), |_| elsewhere.url("https://"));
        refers(of.path(), &url);
        let run = Run::new(&server.url("https://"), "refers", Some(&authority))
            .with(&[("username", USER), ("password", PASSWORD)], "")
            .set("SUBMODULES", "true");
        let output = run.output().await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), gets, "{told}");
        assert!(server.saw(USER, PASSWORD));
        assert_eq!(run.read("source/part/one"), if gets { "1" } else { "" });
        run.keeps_nothing_of("canary", &output);
    }
    assert!(!elsewhere.seen().is_empty(), "it was asked");
    assert!(elsewhere.seen().iter().all(String::is_empty), "{:?}", elsewhere.seen());
}

/// A public repository needs no Secret, and wrong credentials fail at once instead of asking anybody.
#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_nobody_is_asked() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await.unwrap();
    let output = Run::new(&server.url(""), "main", Some(&authority)).output().await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be fetched"));
}
