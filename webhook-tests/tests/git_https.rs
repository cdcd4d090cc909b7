//! `github-clone-step` against a real Git server over TLS: `git` itself speaks to `git http-backend` behind a server
//! whose certificate only our own authority vouches for, and which wants a name and a password (E1, E2, E3 of 19.5, as
//! far as they need no kubelet).
//!
//! E3's ssh layout is not among them. A machine that runs these suites has Rust, Go, a C compiler, make and Python with
//! pip (README); neither `sshd` nor `ssh` is on that list, git brings neither along, and a test that is skipped where
//! they are missing would prove nothing there. So that layout runs in `build::catalogue`'s tests: git for real, a stub in
//! the place of `ssh`, which records the key, the known_hosts and the strictness that it is called with.
//!
//! In: the script of the shipped step, in a shell, with the environment that Tekton would give it. Out: a checked-out
//! tree. The password must reach the server and nothing else.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::build::catalogue::{Values, config_maps};
use drawbridge::domain::keys;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use webhook_tests::pki::Authority;

const USER: &str = "octo";
const PASSWORD: &str = "canary-p4ss'w\"ord$(id)";

/// What a server does with a request that carries the credential.
enum Behaviour {
    /// Serves the repositories below a folder.
    Serve(PathBuf),
    /// Sends the client to another server.
    Redirect(u16),
}

/// A TLS server on a free port.
struct Server {
    port: u16,
    /// The `Authorization` header of every request, in order; empty where there was none.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(authority: &Authority, behaviour: Behaviour) -> Self {
        webhook_tests::install_crypto();
        let pair = authority.server("localhost", &["localhost"]).unwrap();
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (behaviour, log) = (Arc::new(behaviour), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, behaviour, log) = (acceptor.clone(), Arc::clone(&behaviour), Arc::clone(&log));
                tokio::spawn(async move {
                    // A client that does not trust the certificate ends the handshake, as it should.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request| {
                        let (behaviour, log) = (Arc::clone(&behaviour), Arc::clone(&log));
                        async move { Ok::<_, Infallible>(answer(request, &behaviour, &log).await) }
                    });
                    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { port, seen }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}localhost:{}/agents.git", self.port)
    }

    fn saw_password(&self) -> bool {
        let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
        self.seen.lock().contains(&expected)
    }
}

async fn answer(request: Request<Incoming>, behaviour: &Behaviour, log: &Mutex<Vec<String>>) -> Response<Full<Bytes>> {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let told = header("authorization");
    log.lock().push(told.clone());
    let (status, name, value) = match behaviour {
        Behaviour::Redirect(port) => (302, "location", format!("https://localhost:{port}{}", request.uri())),
        Behaviour::Serve(_) if told.is_empty() => (401, "www-authenticate", "Basic realm=\"agents\"".to_owned()),
        Behaviour::Serve(root) => {
            let mut environment = BTreeMap::from([
                ("GIT_PROJECT_ROOT", root.display().to_string()),
                ("GIT_HTTP_EXPORT_ALL", "1".to_owned()),
                ("PATH_INFO", request.uri().path().to_owned()),
                ("QUERY_STRING", request.uri().query().unwrap_or_default().to_owned()),
                ("REQUEST_METHOD", request.method().to_string()),
                ("CONTENT_TYPE", header("content-type")),
                ("REMOTE_USER", USER.to_owned()),
                ("HTTP_GIT_PROTOCOL", header("git-protocol")),
                ("HTTP_CONTENT_ENCODING", header("content-encoding")),
            ]);
            environment.retain(|_, value| !value.is_empty());
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            return backend(&environment, &body).await;
        }
    };
    Response::builder().status(status).header(name, value).body(Full::default()).unwrap()
}

/// One CGI call of `git http-backend`.
async fn backend(environment: &BTreeMap<&str, String>, body: &[u8]) -> Response<Full<Bytes>> {
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(body).await.unwrap();
    drop(pipe);
    let output = child.wait_with_output().await.unwrap().stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("a CGI answer has a header");
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value[..3].parse::<u16>().unwrap()),
            _ => response.header(name, value),
        };
    }
    response.body(Full::from(output[end + 4..].to_vec())).unwrap()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
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
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// `agents.git` with two commits, a tag and a branch; the ids of the commits.
fn repository(root: &Path) -> [String; 2] {
    let work = root.join("work");
    std::fs::create_dir(&work).unwrap();
    git(&work, &["init", "-q", "."]);
    std::fs::write(work.join("one"), "1").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "one"]);
    git(&work, &["tag", "v1.0.0"]);
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "-q", "-b", "feature/x"]);
    std::fs::write(work.join("two"), "2").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "two"]);
    let second = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "-q", "main"]);
    git(root, &["clone", "-q", "--bare", "work", "agents.git"]);
    [first, second]
}

/// The script of the shipped step.
fn script() -> String {
    let maps = config_maps("anywhere", &Values::default());
    let map = maps.iter().find(|map| map.name == "github-clone-step").unwrap();
    let spec: Value = serde_saphyr::from_str(&map.data[keys::KEY_TASK_SPEC]).unwrap();
    spec["steps"][0]["script"].as_str().unwrap().to_owned()
}

/// A place where the step runs once.
struct Run {
    folder: TempDir,
    environment: BTreeMap<String, String>,
}

impl Run {
    fn new(url: &str, revision: &str, authority: Option<&Authority>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        for (name, value) in [
            ("URL", url),
            ("REVISION", revision),
            ("DEPTH", "1"),
            ("SUBMODULES", "false"),
            ("REPO_USER", ""),
            ("ARTIFACTS_BOUND", "false"),
            ("ALLOW_UNKNOWN_HOSTS", "false"),
            ("AUTH_BOUND", "false"),
            ("TRUST_BOUND", "false"),
        ] {
            environment.insert(name.to_owned(), value.to_owned());
        }
        for (name, below) in [
            ("HOME", "home"),
            ("SOURCE", "source"),
            ("ARTIFACTS", "artifacts"),
            ("SCRATCH", "scratch"),
            ("AUTH", "auth"),
            ("TRUST", "trust"),
        ] {
            let path = folder.path().join(below);
            std::fs::create_dir(&path).unwrap();
            environment.insert(name.to_owned(), path.display().to_string());
        }
        for name in ["COMMIT", "URL"] {
            environment.insert(format!("OUT_{name}"), folder.path().join(name).display().to_string());
        }
        if let Some(authority) = authority {
            std::fs::write(folder.path().join("trust/ca.crt"), authority.certificate()).unwrap();
            environment.insert("TRUST_BOUND".to_owned(), "true".to_owned());
        }
        Self { folder, environment }
    }

    /// With a Secret of these keys.
    fn with(mut self, files: &[(&str, &str)], user: &str) -> Self {
        for (name, content) in files {
            std::fs::write(self.folder.path().join("auth").join(name), content).unwrap();
        }
        self.environment.insert("AUTH_BOUND".to_owned(), "true".to_owned());
        self.environment.insert("REPO_USER".to_owned(), user.to_owned());
        self
    }

    async fn output(&self) -> Output {
        let file = self.folder.path().join("script");
        std::fs::write(&file, script()).unwrap();
        tokio::process::Command::new("sh").arg(file).env_clear().envs(&self.environment).output().await.unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Nothing that outlives the step holds the password.
    fn keeps_no_password(&self, output: &Output) {
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains("canary"));
        }
        for below in ["source", "home", "artifacts"] {
            let found =
                Command::new("grep").args(["-r", "-l", "canary"]).arg(self.folder.path().join(below)).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&found.stdout), "");
        }
    }
}

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
            let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
            let run = Run::new(&server.url(scheme), revision, Some(&authority)).with(files, user);
            let output = run.output().await;
            assert!(output.status.success(), "{scheme} {revision}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(&run.read("COMMIT"), commit, "{revision}");
            assert_eq!(run.read("URL"), server.url("https://"));
            assert_eq!(run.read("source/one"), "1");
            assert!(server.saw_password());
            run.keeps_no_password(&output);
        }
    }
}

/// Verification is on: without our authority the server is nobody, and is told nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_authority_is_not_trusted() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let (authority, other) = (Authority::new("git").unwrap(), Authority::new("other").unwrap());
    let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    for trusted in [None, Some(&other)] {
        let run =
            Run::new(&server.url("https://"), "main", trusted).with(&[("username", USER), ("password", PASSWORD)], "");
        let output = run.output().await;
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("certificate") && told.contains("cannot be fetched"), "{told}");
        assert_eq!(*server.seen.lock(), Vec::<String>::new());
        run.keeps_no_password(&output);
    }
}

/// A server that sends the clone elsewhere does not get the password sent there.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_takes_no_password_along() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    let server = Server::start(&authority, Behaviour::Redirect(elsewhere.port)).await;
    let run = Run::new(&server.url("https://"), "main", Some(&authority))
        .with(&[("username", USER), ("password", PASSWORD)], "");
    let output = run.output().await;
    assert!(!output.status.success());
    assert!(!elsewhere.seen.lock().is_empty(), "the redirect was followed");
    assert!(!elsewhere.saw_password(), "{:?}", elsewhere.seen.lock());
    run.keeps_no_password(&output);
}

/// A public repository needs no Secret, and wrong credentials fail at once instead of asking anybody.
#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_nobody_is_asked() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    let output = Run::new(&server.url(""), "main", Some(&authority)).output().await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be fetched"));
}
