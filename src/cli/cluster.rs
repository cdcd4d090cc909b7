//! A cluster, for the tools.
//!
//! In: the kubeconfig a person uses with kubectl. Out: objects as JSON. Promises: nothing is written, except through [`Cluster::dry_run`], which the API
//! server does not store, and through [`change`], which only `uninstall`, `migrate`, `build`, `quarantine` and `release` call; a cluster that does not answer is told
//! apart ([`Unreachable`]) from one that refuses.

pub mod change;
pub mod log;
pub mod through;
pub mod watch;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::Value;

use super::io::shown;
use super::{Exit, Unreachable};
use crate::domain::userinfo::without_userinfo;
use crate::store::decode::nesting;

/// Longest wait for a connection and for an answer.
const DEADLINE: Duration = Duration::from_secs(15);
/// Objects of one page of a list: what the API server's own clients ask for.
const PAGE: usize = 500;
/// What to do where nobody answers as an API server does.
const REMEDY: &str = "see that this is the cluster you mean (--context, --kubeconfig) and that kubectl reaches it";
/// What an API server answers to whoever has no right to what is asked for.
const FORBIDDEN: u16 = 403;

/// Which cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig file; default is KUBECONFIG, then ~/.kube/config, then the Pod's ServiceAccount.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// What says where the cluster is cannot be used; ends the command with [`Exit::Usage`], since no cluster was asked.
#[derive(Debug, thiserror::Error)]
#[error("no usable kubeconfig: {what}. What to do: {remedy}")]
pub struct Unusable {
    /// Which file, and what is wrong with it.
    what: String,
    /// What a person does next.
    remedy: String,
}

impl Unusable {
    /// The same, for a command that has another way.
    #[must_use]
    pub fn or(self, way: &str) -> Self {
        Self { remedy: format!("{}; or {way}", self.remedy), ..self }
    }
}

/// What is wrong with a kubeconfig, without anything that stands in it but names: it holds credentials, and whoever reads YAML shows an excerpt.
fn fault(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => {
                format!("it is not the YAML of a kubeconfig at line {}, column {}", place.line(), place.column())
            }
            None => "it is not the YAML of a kubeconfig".to_owned(),
        },
        KubeconfigError::ReadConfig(error, _) => format!("it cannot be read: {error}"),
        other => shown(other.to_string().lines().next().unwrap_or_default()),
    }
}

/// The kubeconfig that kubectl would read.
fn usual() -> Result<Kubeconfig, KubeconfigError> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    of_several(&named)?.map_or_else(Kubeconfig::read, Ok)
}

/// The files of a list that are there, as one: kubectl passes over those that are not, and where none is, whoever reads them says so.
fn of_several(named: &OsStr) -> Result<Option<Kubeconfig>, KubeconfigError> {
    let files: Vec<PathBuf> = std::env::split_paths(named).filter(|file| file.exists()).collect();
    if files.is_empty() {
        return Ok(None);
    }
    files.iter().try_fold(Kubeconfig::default(), |all, file| all.merge(Kubeconfig::read_from(file)?)).map(Some)
}

/// A cluster that was reached.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    /// Its address, for messages.
    server: String,
    /// Namespace of the context.
    pub namespace: String,
    /// Something that was asked for may not be seen.
    partial: Arc<AtomicBool>,
}

/// What a request gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The object.
    Object(Value),
    /// There is none.
    Absent,
    /// The API server refuses: code and message.
    Refused(u16, String),
}

impl Answer {
    /// The object, when there is one.
    #[must_use]
    pub fn object(self) -> Option<Value> {
        match self {
            Answer::Object(value) => Some(value),
            _ => None,
        }
    }
}

/// Runs an async command to its end on this thread.
///
/// # Errors
/// Those of the command.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for requests")?
        .block_on(future)
}

impl ClusterArgs {
    /// The configuration of that cluster, as kube reads it; nothing is sent yet.
    ///
    /// # Errors
    /// [`Unusable`] when there is no usable configuration.
    pub async fn configuration(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if self.kubeconfig.is_none() && self.context.is_none() {
            // As Config::infer does, whose error tells what is wrong with the kubeconfig by its text alone.
            let config = async { Config::from_custom_kubeconfig(usual()?, &options).await };
            let mut config = match config.await {
                Ok(config) => config,
                Err(error) => Config::incluster().map_err(|account| self.unusable(&error, Some(&account)))?,
            };
            config.apply_debug_overrides();
            return Ok(config);
        }
        let file = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => usual(),
        };
        let file = file.map_err(|error| self.unusable(&error, None))?;
        let config = Config::from_custom_kubeconfig(file, &options).await;
        Ok(config.map_err(|error| self.unusable(&error, None))?)
    }

    /// What a person is told who has no usable kubeconfig, nor, where one was looked for, the account of a Pod.
    fn unusable(&self, error: &KubeconfigError, account: Option<&InClusterError>) -> Unusable {
        let file = match (error, &self.kubeconfig, std::env::var_os("KUBECONFIG").filter(|named| !named.is_empty())) {
            (KubeconfigError::ReadConfig(_, file), ..) | (_, Some(file), _) => file.display().to_string(),
            (_, None, Some(named)) => named.display().to_string(),
            (_, None, None) => "~/.kube/config".to_owned(),
        };
        let mut what = format!("{}: {}", shown(&file), fault(error));
        if let Some(account) = account {
            what += &format!("; nor is there the ServiceAccount of a Pod ({})", shown(&account.to_string()));
        }
        let remedy = "name one with --kubeconfig or KUBECONFIG, and one of its contexts with --context; kubectl config \
                      get-contexts lists them";
        Unusable { what, remedy: remedy.to_owned() }
    }

    /// A client for that cluster; nothing is sent yet.
    ///
    /// # Errors
    /// [`Unusable`] when there is no usable configuration, [`Unreachable`] when its certificates and credentials make no client.
    pub async fn connect(&self) -> anyhow::Result<Cluster> {
        self.connect_within(Some(DEADLINE)).await
    }

    /// A client for that cluster whose watches may be silent for long; nothing is sent yet.
    ///
    /// # Errors
    /// Those of [`ClusterArgs::connect`].
    pub async fn connect_to_follow(&self) -> anyhow::Result<Cluster> {
        self.connect_within(None).await
    }

    async fn connect_within(&self, read_timeout: Option<Duration>) -> anyhow::Result<Cluster> {
        let mut config = self.configuration().await?;
        config.connect_timeout = Some(DEADLINE);
        config.read_timeout = read_timeout;
        config.default_retry = false;
        let namespace = config.default_namespace.clone();
        let server = without_userinfo(config.cluster_url.to_string().trim_end_matches('/'));
        let client = Client::try_from(config).map_err(|error| {
            let what = format!("no client for {server} can be made: {}", chain(&error));
            Unreachable::new(what, "correct the certificates and credentials of the kubeconfig's context")
        })?;
        Ok(Cluster { client, server, namespace, partial: Arc::default() })
    }
}

impl Cluster {
    /// Reads one path of the API, such as `/api/v1/namespaces/x`.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let request = http::Request::get(path).body(Vec::new()).context("request")?;
        self.send(request).await
    }

    /// The items of a list, read page by page; what may not be read is no item, and is noted. Of a kind that is not served there is none, whoever asks.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn list(&self, path: &str, notes: &mut Vec<String>) -> anyhow::Result<Vec<Value>> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut page = format!("{path}{joint}limit={PAGE}");
        loop {
            match self.get(&page).await? {
                Answer::Object(mut list) => {
                    let next = list.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or("").to_owned();
                    let (found, others) = items_of(&mut list);
                    items.extend(found);
                    if others > 0 {
                        self.has_not_seen_all();
                        notes.push(format!("{path}: {others} items of the list are no objects, and are left out"));
                    }
                    if next.is_empty() {
                        return Ok(items);
                    }
                    page = format!("{path}{joint}limit={PAGE}&continue={next}");
                }
                Answer::Absent => return Ok(items),
                // What the pages came from is compacted away: once more, in one piece.
                Answer::Refused(410, _) if page != path => {
                    items.clear();
                    page = path.to_owned();
                }
                Answer::Refused(code, message) => {
                    if code != FORBIDDEN || self.is_served(path).await {
                        self.unseen(path, code, &message, notes);
                    }
                    return Ok(items);
                }
            }
        }
    }

    /// Reads one path like [`Cluster::get`]; a refusal is noted. Of a kind that is not served there is none, whoever asks.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn read(&self, path: &str, notes: &mut Vec<String>) -> anyhow::Result<Answer> {
        let answer = self.get(path).await?;
        if let Answer::Refused(code, message) = &answer {
            if *code == FORBIDDEN && !self.is_served(path).await {
                return Ok(Answer::Absent);
            }
            self.unseen(path, *code, message, notes);
        }
        Ok(answer)
    }

    /// Notes what may not be seen.
    fn unseen(&self, path: &str, code: u16, message: &str, notes: &mut Vec<String>) {
        self.partial.store(true, Ordering::Relaxed);
        notes.push(format!("{path} could not be read ({code}: {message})"));
    }

    /// Whether the kind of a path may be served. An API server refuses whoever has no right to a kind before it looks whether there is one, and tells
    /// everybody who is logged in what it serves: with rights in one namespace alone, every kind that nobody has installed would count as hidden.
    async fn is_served(&self, path: &str) -> bool {
        let Some((version, plural)) = kind_of(path) else { return true };
        match self.get(version).await {
            Ok(Answer::Absent) => false,
            Ok(Answer::Object(all)) => {
                all["resources"].as_array().is_none_or(|all| all.iter().any(|one| one["name"] == plural))
            }
            Ok(Answer::Refused(..)) | Err(_) => true,
        }
    }

    /// Takes note that something may not be seen.
    pub fn has_not_seen_all(&self) {
        self.partial.store(true, Ordering::Relaxed);
    }

    /// How a command ends that ends with `exit` by what it has seen of what it asked for.
    #[must_use]
    pub fn seen_all_or_partial(&self, exit: Exit) -> Exit {
        if self.partial.load(Ordering::Relaxed) { exit.with_unseen() } else { exit }
    }

    /// Checks that a namespace exists which a person named.
    ///
    /// # Errors
    /// When it does not exist, or nobody answers.
    pub async fn expect_namespace(&self, name: &str, notes: &mut Vec<String>) -> anyhow::Result<()> {
        match self.get(&format!("/api/v1/namespaces/{name}")).await? {
            Answer::Object(_) => Ok(()),
            Answer::Absent => {
                anyhow::bail!("namespace {name} does not exist; kubectl get namespaces shows those that do")
            }
            Answer::Refused(code, message) => {
                self.partial.store(true, Ordering::Relaxed);
                notes.push(format!("namespace {name} does not exist, or you may not see it ({code}: {message})"));
                Ok(())
            }
        }
    }

    /// Sends an object with `dryRun=All`: admission runs, nothing is stored.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn dry_run(&self, path: &str, object: &Value) -> anyhow::Result<Answer> {
        self.post(&format!("{path}?dryRun=All"), object).await
    }

    /// Asks a question that is a POST, such as a SelfSubjectAccessReview.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn post(&self, path: &str, object: &Value) -> anyhow::Result<Answer> {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(object)?)
            .context("request")?;
        self.send(request).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> anyhow::Result<Answer> {
        let tried = format!("{} {}", request.method(), request.uri().path());
        let answer = self.client.request_text(request).await;
        // As controllers and the webhook read it: of an object that nobody can decode to its end the rest is told, and so are the others of its list.
        match answer.and_then(|text| nesting::read::<Value>(&text).map_err(kube::Error::SerdeError)) {
            Ok(value) if value.is_object() => Ok(Answer::Object(value)),
            Ok(_) => {
                let what = format!("{} answered {tried} with what is no object", self.server);
                Err(Unreachable::new(what, REMEDY).into())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Answer::Absent),
            Err(kube::Error::Api(status)) if status.code == 401 => {
                let what = format!("{} does not know who asks for {tried}: {}", self.server, status.message);
                Err(Unreachable::new(what, "log in again, or choose another context with --context").into())
            }
            Err(kube::Error::Api(status)) => Ok(Answer::Refused(status.code, status.message)),
            Err(error) => Err(self.silent(&tried, &error).into()),
        }
    }

    /// Nobody answered, or not in a way that a client understands.
    fn silent(&self, tried: &str, error: &kube::Error) -> Unreachable {
        let what = format!("{} gave no answer to {tried}: {}", self.server, chain(error));
        Unreachable::new(what, REMEDY)
    }

    /// Major and minor version of the API server.
    ///
    /// # Errors
    /// [`Unreachable`] when nobody answers.
    pub async fn version(&self) -> anyhow::Result<(u32, u32)> {
        let answer = self.get("/version").await?.object().unwrap_or_default();
        let number = |key: &str| {
            let digits: String = answer[key].as_str().unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        Ok((number("major"), number("minor")))
    }
}

/// The group and version that a path is of, as a path, and the plural of its kind; `None` of a path of the core group, which is always served.
fn kind_of(path: &str) -> Option<(&str, &str)> {
    const ROOT: &str = "/apis/";
    let path = path.split('?').next().unwrap_or(path);
    let mut words = path.strip_prefix(ROOT)?.split('/');
    let (group, version, first) = (words.next()?, words.next()?, words.next()?);
    let plural = match (first, words.next(), words.next()) {
        ("namespaces", Some(_), Some(plural)) => plural,
        (plural, ..) => plural,
    };
    Some((&path[..ROOT.len() + group.len() + 1 + version.len()], plural))
}

/// The items of a list, taken out, and how many of them are no objects; items of a list do not say what they are, so that is added.
fn items_of(list: &mut Value) -> (Vec<Value>, usize) {
    let kind = list["kind"].as_str().unwrap_or("").trim_end_matches("List").to_owned();
    let version = list["apiVersion"].clone();
    let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else { return (Vec::new(), 0) };
    let all = items.len();
    let named = items.into_iter().filter_map(|mut item| {
        let members = item.as_object_mut()?;
        members.insert("kind".to_owned(), Value::String(kind.clone()));
        members.insert("apiVersion".to_owned(), version.clone());
        Some(item)
    });
    let named: Vec<Value> = named.collect();
    let others = all - named.len();
    (named, others)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// A cluster that is none, for tests of what commands make of its answers.
#[cfg(test)]
pub(in crate::cli) mod fake {
    use std::sync::Arc;

    use kube::{Client, Config};
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::Cluster;

    /// Code and body of an answer.
    pub(in crate::cli) type Said = (u16, Value);

    /// That it may not be seen.
    pub(in crate::cli) fn refused() -> Said {
        status(403)
    }

    /// That there is none.
    pub(in crate::cli) fn absent() -> Said {
        status(404)
    }

    /// A list.
    pub(in crate::cli) fn list(kind: &str, version: &str, items: &[Value]) -> Said {
        (200, json!({"kind": format!("{kind}List"), "apiVersion": version, "metadata": {}, "items": items}))
    }

    fn status(code: u16) -> Said {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "X", "code": code});
        (code, status)
    }

    /// A cluster that answers by the path it is asked for, without its query.
    pub(in crate::cli) async fn cluster(answer: impl Fn(&str) -> Said + Send + 'static) -> Cluster {
        // The client has TLS, whatever it is asked by.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    head.push(byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                // A connection that is closed ahead of what was sent is reset, and its answer may be lost.
                let length = |line: &str| -> Option<usize> {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                };
                let mut sent = vec![0_u8; head.lines().find_map(length).unwrap_or_default()];
                if stream.read_exact(&mut sent).await.is_err() {
                    continue;
                }
                let asked = head.split(' ').nth(1).and_then(|asked| asked.split('?').next()).unwrap_or_default();
                let (code, body) = answer(asked);
                let body = body.to_string();
                let answered = format!(
                    "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                // Whoever has gone needs no answer.
                let _ = stream.write_all(answered.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
        Cluster { client, server, namespace: "team".to_owned(), partial: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::conclude;
    use crate::cli::io::Io;

    /// With rights in one namespace alone a kind that nobody has installed was called hidden, and ended every command with 4.
    #[tokio::test]
    async fn a_kind_that_is_not_served_is_absent_to_whoever_has_no_right_to_it() {
        let cluster = fake::cluster(|path| match path {
            "/apis/kaos.tools/v1alpha1" => fake::absent(),
            "/apis/beeai.dev/v1" => (200, json!({"resources": [{"name": "agents"}, {"name": "agents/status"}]})),
            _ => fake::refused(),
        })
        .await;
        let mut notes = Vec::new();
        for path in [
            "/apis/kaos.tools/v1alpha1/namespaces/team/agents",
            "/apis/kaos.tools/v1alpha1/agents?labelSelector=a",
            "/apis/beeai.dev/v1/namespaces/team/agentbuilds",
            "/apis/beeai.dev/v1/agentbuilds",
        ] {
            assert_eq!(cluster.list(path, &mut notes).await.unwrap(), Vec::<Value>::new(), "{path}");
            assert_eq!(cluster.read(path, &mut notes).await.unwrap(), Answer::Absent, "{path}");
        }
        assert_eq!((notes.len(), cluster.seen_all_or_partial(Exit::Ok)), (0, Exit::Ok), "{notes:?}");
        for path in [
            "/apis/beeai.dev/v1/namespaces/team/agents/weather",
            "/apis/storage.k8s.io/v1/csidrivers",
            "/api/v1/namespaces/team/pods",
        ] {
            notes.clear();
            let answer = cluster.read(path, &mut notes).await.unwrap();
            assert_eq!(answer, Answer::Refused(403, "no".to_owned()), "{path}");
            assert_eq!(notes, [format!("{path} could not be read (403: no)")], "it stands in errors, too");
        }
        assert_eq!(cluster.seen_all_or_partial(Exit::Ok), Exit::Partial);
        assert_eq!(cluster.seen_all_or_partial(Exit::Findings), Exit::Findings, "what is wrong is wrong all the same");
    }

    /// An API server of others answers what it likes; a text among the items ended every command with a panic.
    #[tokio::test]
    async fn items_that_are_no_objects_are_left_out_and_told() {
        let cluster = fake::cluster(|_| {
            let pod = json!({"metadata": {"name": "p"}});
            fake::list("Pod", "v1", &[json!("text"), pod, json!(7), json!([]), Value::Null])
        })
        .await;
        let mut notes = Vec::new();
        let pods = cluster.list("/api/v1/pods", &mut notes).await.unwrap();
        assert_eq!(pods, [json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}})]);
        assert_eq!(notes, ["/api/v1/pods: 4 items of the list are no objects, and are left out"]);
        assert_eq!(cluster.seen_all_or_partial(Exit::Ok), Exit::Partial);
    }

    /// Whoever wrote a member into such an answer ended with a panic.
    #[tokio::test]
    async fn an_answer_that_is_no_object_is_none_of_an_api_server() {
        let cluster = fake::cluster(|path| (200, if path == "/list" { json!([]) } else { json!("text") })).await;
        for path in ["/list", "/text"] {
            let error = cluster.get(path).await.unwrap_err();
            assert!(error.is::<Unreachable>(), "{error:#}");
            assert!(error.to_string().contains(&format!("answered GET {path} with what is no object")), "{error:#}");
        }
    }

    #[test]
    fn a_path_tells_the_kind_that_it_is_about() {
        for (path, kind) in [
            ("/apis/apps/v1/deployments?limit=1", Some(("/apis/apps/v1", "deployments"))),
            ("/apis/apps/v1/namespaces/a/deployments/b", Some(("/apis/apps/v1", "deployments"))),
            ("/apis/g.io/v1/namespaces/a", Some(("/apis/g.io/v1", "namespaces"))),
            ("/apis/g.io/v1", None),
            ("/api/v1/namespaces/a/pods", None),
        ] {
            assert_eq!(kind_of(path), kind, "{path}");
        }
    }

    /// How a command ends that is given this kubeconfig, and what it says.
    fn told(file: &std::path::Path, context: Option<&str>) -> (Exit, String) {
        let args = ClusterArgs { kubeconfig: Some(file.to_owned()), context: context.map(str::to_owned) };
        let read = block_on(args.configuration()).map(|_| Exit::Ok);
        let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
        let exit = conclude(read, &mut Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false });
        (exit, String::from_utf8(err).unwrap())
    }

    #[test]
    fn what_is_wrong_with_a_kubeconfig_is_told_on_one_line_without_its_text_and_is_no_silent_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let cluster = "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\n";
        let sound = format!(
            "apiVersion: v1\nkind: Config\n{cluster}users: [{{name: u, user: {{token: s3cr3t}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
        );
        let open = file("open", "apiVersion: v1\nusers:\n- name: u\n  user: {token: s3cr3t\ncontexts: [\n");
        let list = file("list", "apiVersion: v1\nusers:\n- name: u\n  user: {token: [s3cr3t]}\n");
        let word = file("word", "apiVersion: v1\nusers: s3cr3t\n");
        for (path, words) in [(open, "line "), (list, "not the YAML"), (word, "not the YAML")] {
            let (exit, err) = told(&path, None);
            assert_eq!((exit, err.lines().count()), (Exit::Usage, 1), "{err}");
            assert!(!err.contains("s3cr3t") && err.contains(words), "{err}");
            assert!(err.contains(&path.display().to_string()), "{err}");
        }
        let (exit, err) = told(&folder.path().join("absent"), None);
        assert_eq!((exit, err.lines().count()), (Exit::Usage, 1), "{err}");
        assert!(err.contains("absent: it cannot be read: ") && err.contains("get-contexts"), "{err}");
        let sound = file("sound", &sound);
        let absent = folder.path().join("absent");
        let several = std::env::join_paths([&absent, &sound, &absent]).unwrap();
        assert_eq!(of_several(&several).unwrap().unwrap().current_context.as_deref(), Some("c"), "as kubectl reads it");
        assert!(of_several(absent.as_os_str()).unwrap().is_none() && of_several(OsStr::new("")).unwrap().is_none());
        assert_eq!(told(&sound, Some("c")).0, Exit::Ok);
        let (exit, err) = told(&sound, Some("other"));
        assert_eq!(exit, Exit::Usage, "{err}");
        assert!(err.contains("failed to load current context: other"), "{err}");
    }
}
