//! Clones over TLS: `git http-backend` behind a server whose certificate only our own authority vouches for, and which
//! wants a name and a password.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use webhook_tests::pki::Authority;

use super::clone::{Run, refers, repository};

const USER: &str = "octo";
const PASSWORD: &str = "canary-p4ss'w\"ord$(id)";

/// What a server does with a request that carries the credential.
enum Behaviour {
    /// Serves the repositories below a folder.
    Serve(PathBuf),
    /// Sends the client to another server.
    Redirect(u16),
    /// The same, but asks for the credential first, and sends away whoever brings it.
    RedirectAfter(u16),
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
        Behaviour::RedirectAfter(_) if told.is_empty() => {
            (401, "www-authenticate", "Basic realm=\"agents\"".to_owned())
        }
        Behaviour::Redirect(port) | Behaviour::RedirectAfter(port) => {
            (302, "location", format!("https://localhost:{port}{}", request.uri()))
        }
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
    let server = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    for trusted in [None, Some(&other)] {
        let run =
            Run::new(&server.url("https://"), "main", trusted).with(&[("username", USER), ("password", PASSWORD)], "");
        let output = run.output().await;
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("certificate") && told.contains("cannot be fetched"), "{told}");
        assert_eq!(*server.seen.lock(), Vec::<String>::new());
        run.keeps_nothing_of("canary", &output);
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
    run.keeps_nothing_of("canary", &output);
}

/// Nor does one that asks for the password first, and gets it; whoever is told of it is the repository's own host.
#[tokio::test(flavor = "multi_thread")]
async fn mend_06_a_redirect_behind_the_password_takes_none_along() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    let server = Server::start(&authority, Behaviour::RedirectAfter(elsewhere.port)).await;
    let run = Run::new(&server.url("https://"), "main", Some(&authority))
        .with(&[("username", USER), ("password", PASSWORD)], "");
    let output = run.output().await;
    assert!(!output.status.success());
    assert!(server.saw_password(), "the repository's own host was given it");
    let seen = elsewhere.seen.lock().clone();
    assert!(seen.iter().all(String::is_empty), "the other host was told something: {seen:?}");
    run.keeps_nothing_of("canary", &output);
}

/// What a repository refers to is cloned without the credential of the repository, unless it is on the same host.
#[tokio::test(flavor = "multi_thread")]
async fn mend_06_a_submodule_elsewhere_gets_no_password() {
    let root = tempfile::tempdir().unwrap();
    repository(root.path());
    let authority = Authority::new("git").unwrap();
    let elsewhere = Server::start(&authority, Behaviour::Serve(root.path().to_owned())).await;
    for (at, gets) in [(Some(elsewhere.port), false), (None, true)] {
        let of = tempfile::tempdir().unwrap();
        let server = Server::start(&authority, Behaviour::Serve(of.path().to_owned())).await;
        repository(of.path());
        let url = at.map_or_else(|| server.url("https://"), |_| elsewhere.url("https://"));
        refers(of.path(), &url);
        let run = Run::new(&server.url("https://"), "refers", Some(&authority))
            .with(&[("username", USER), ("password", PASSWORD)], "")
            .set("SUBMODULES", "true");
        let output = run.output().await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), gets, "{told}");
        assert!(server.saw_password());
        assert_eq!(run.read("source/part/one"), if gets { "1" } else { "" });
        run.keeps_nothing_of("canary", &output);
    }
    assert!(!elsewhere.seen.lock().is_empty(), "it was asked");
    assert!(elsewhere.seen.lock().iter().all(String::is_empty), "{:?}", elsewhere.seen.lock());
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
