//! The commands that README and the tasks print, run as they stand: page by page, in the order of each, by a shell, on a cluster on which the
//! product is installed.
//!
//! In: every line of a console block. Out: how it ended. Promises: each line of every page is run here, or stands in [`ELSEWHERE`] with the test
//! that runs it; none of these lists has an entry that no page needs.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;
use webhook_tests::patience::patience;
use webhook_tests::svid::Authority;
use webhook_tests::{ControlPlane, Installation, Installing, Options, https, pki, programs};

/// What is run elsewhere, by the beginning of its line: the test that runs it (or the target of make), and why it is not run here.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("make demo", "make demo", "it starts a cluster of its own"),
    ("make test", "make test", "it is what runs this"),
    (
        "docker build",
        "g12_the_image_is_empty_but_for_the_binary_and_its_user_is_not_root",
        "it needs a container engine",
    ),
    (
        "drawbridge uninstall --yes",
        "an_installation_that_runs_leaves_nothing_behind_and_workloads_as_they_were",
        "it ends the installation",
    ),
    (
        "drawbridge card sign --spiffe-socket",
        "what_is_signed_with_the_svid_of_the_workload_api_is_verified",
        "it needs SPIRE",
    ),
    (
        "kubectl logs deployment/weather-agent -c sign-agentcard",
        "a_pod_signs_its_card_when_it_starts_and_publishes_it_by_its_own_account",
        "no container runs here; the test reads what the program says",
    ),
    (
        "drawbridge status -n default -w",
        "following_prints_a_row_when_it_changes_and_when_it_goes",
        "it never ends by itself",
    ),
    (
        "kubectl get agentbuilds.beeai.dev -w",
        "case_z31_the_samples_become_agents_by_digest_in_both_groups",
        "it never ends by itself; the test follows the phases of such builds",
    ),
    (
        "drawbridge serve --roles controllers",
        "rulings_20_and_28_controllers_outside_of_the_cluster_wait_for_the_lease_of_the_operator_before",
        "the controllers run already",
    ),
    (
        "curl --cacert /var/run/catalogue/ca.crt",
        "callers_find_verified_agents_of_their_own_namespace_and_of_shared_ones_and_nobody_else_finds_any",
        "it is run in a Pod, and there is no catalogue here",
    ),
];

/// What may end with another code than 0, by the beginning of its line, and what of this cluster it finds.
const FINDS: &[(&str, i32, &str)] = &[
    ("drawbridge status", 1, "no container runs, so no card can be read, and a build waits for Tekton"),
    ("drawbridge doctor", 1, "there is neither Tekton nor Keycloak"),
    ("drawbridge explain agentcard/", 1, "the card cannot be read"),
    ("drawbridge validate -f manifests/samples", 1, "samples in the earlier spellings of KAOS are warned of"),
    ("drawbridge policy preview", 1, "the agent would be cut off"),
    ("drawbridge explain reach", 1, "the agent is cut off"),
    ("drawbridge graph --live", 4, "no container runs, so nobody answers the API server"),
    ("drawbridge build provenance", 1, "the build waits for Tekton, so it has made no image"),
    ("drawbridge quarantine", 1, "no network plugin enforces NetworkPolicies"),
    ("drawbridge quarantine --skill", 2, "no card names that skill"),
];

/// What has to be done before a line, by its beginning: the command, and why a reader need not do it.
const BEFORE: &[(&str, &str, &str)] = &[
    (
        "drawbridge card get weather-agent-deployment-card",
        "kubectl wait --for=create agentcard/weather-agent-deployment-card --timeout=1h",
        "a card is made a moment after its workload was enrolled, which a page before this one did",
    ),
    (
        "kubectl apply --server-side --force-conflicts -f drawbridge.yaml",
        "kubectl -n kagenti-system delete service drawbridge-webhook",
        "the Service of this test leads out of the cluster",
    ),
    (
        "kubectl -n team1 annotate agents.beeai.dev research-agent",
        "printf 'apiVersion: beeai.dev/v1\nkind: Agent\nmetadata: {name: research-agent, namespace: team1}\nspec: {image: example.com/agent:1}\n' \
         | kubectl apply -f -",
        "no build ends without Tekton, so none has made an Agent",
    ),
    (
        "kubectl -n team1 patch agents.beeai.beeai.dev research-agent",
        "uid=$(kubectl -n team1 get agents.beeai.dev research-agent -o jsonpath='{.metadata.uid}'); printf 'apiVersion: \
         beeai.beeai.dev/v1\nkind: Agent\nmetadata: {name: research-agent, namespace: team1, ownerReferences: [{apiVersion: \
         beeai.dev/v1, kind: Agent, name: research-agent, uid: %s}]}\nspec: {image: example.com/agent:1}\n' \"$uid\" | kubectl apply -f -",
        "the operator before, whose Agents have an owner, was never here",
    ),
    (
        "drawbridge migrate beeai --hand-over -n team1 -o json",
        "kubectl -n team1 delete agents.beeai.dev,agents.beeai.beeai.dev research-agent --ignore-not-found",
        "these Agents of two groups were made for the lines above alone, and one name in both cannot be handed over",
    ),
];

/// What a page leaves to its reader to fill in.
const PLACES: [&str; 3] = ["http://HOST:PORT", "https://HOST:PORT", "WORKLOAD"];

/// What the pages take for granted: namespaces of a team with an agent, and of another with a gateway.
const TEAMS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: team1}
---
apiVersion: v1
kind: Namespace
metadata: {name: team2}
---
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, namespace: team2}
spec:
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway}}
    spec: {containers: [{name: gateway, image: example.com/gateway:1}]}
";

/// The lines of the console blocks of a page that a shell is asked to run.
fn commands(page: &str) -> Vec<String> {
    // The fence that the block began with, if a block has begun.
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for line in page.lines() {
        let line = line.trim_start();
        if line.starts_with("```") {
            fence = if fence.is_some() { None } else { Some(line) };
            continue;
        }
        let inside = fence.is_some_and(|fence| ["```", "```console", "```sh"].contains(&fence));
        let line = line.trim_start_matches("$ ");
        let first = line.split_whitespace().next().unwrap_or_default();
        let is_command = first.chars().all(|c| c.is_ascii_lowercase()) && line.contains(' ');
        if inside && is_command {
            found.push(line.to_owned());
        }
    }
    found
}

/// README and the tasks, README first.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let tasks = std::fs::read_dir(root.join("docs/tasks"))?;
    let mut tasks = tasks.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    tasks.sort();
    tasks.insert(0, root.join("README.md"));
    Ok(tasks)
}

/// Where commands are run, and with what.
struct Stage {
    folder: tempfile::TempDir,
    path: String,
    kubeconfig: PathBuf,
    filled: [String; 3],
}

impl Stage {
    async fn set(cp: &ControlPlane, root: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // What a line writes, it writes into this folder; what it reads of the repository it finds by this link.
        std::os::unix::fs::symlink(root.join("manifests"), folder.path().join("manifests"))?;
        let authority = Authority::new("cluster.local")?;
        let (chain, key) = authority.svid("/ns/team1/sa/weather-agent")?;
        let of_tls = pki::Authority::new("people")?;
        let card = json!({
            "name": "weather_service", "description": "Tells the weather", "url": "http://weather-agent:8000", "version": "1.0.0",
            "protocolVersion": "0.3.0", "capabilities": {}, "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
            "skills": [{"id": "weather", "name": "Weather", "description": "Tells it", "tags": ["weather"]}],
        });
        let opening = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "more", "namespace": "team1"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}});
        let old = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "old"},
            "spec": {"mode": "Hosted", "serverConfig": {"model": "smollm2:135m"}}});
        for (name, text) in [
            ("svid.key", key),
            ("svid.pem", chain),
            ("bundle.pem", authority.pem()),
            ("ca.pem", of_tls.certificate()),
            ("card.json", card.to_string()),
            ("more.yaml", opening.to_string()),
            ("old.yaml", old.to_string()),
            ("values.yaml", "replicaCount: 1\n".to_owned()),
        ] {
            std::fs::write(folder.path().join(name), text)?;
        }
        let signed = folder.path().join("signed.json");
        let plain = serve(signed.clone(), None).await?;
        let pair = of_tls.server("localhost", &["127.0.0.1", "localhost"])?;
        let secret = serve(signed, Some(pair)).await?;
        let filled =
            [format!("http://{plain}"), format!("https://localhost:{}", secret.port()), "weather-agent".to_owned()];
        let folders = [programs::workspace("drawbridge")?, programs::control_plane("kubectl")?]
            .map(|program| program.parent().map_or_else(String::new, |place| place.display().to_string()));
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
        Ok(Self { folder, path, kubeconfig: cp.admin().kubeconfig().to_owned(), filled })
    }

    fn shell(&self, line: &str) -> Command {
        let line =
            PLACES.iter().zip(&self.filled).fold(line.to_owned(), |line, (place, with)| line.replace(place, with));
        let mut command = Command::new("bash");
        command.args(["-o", "pipefail", "-c", &line]).current_dir(self.folder.path()).kill_on_drop(true);
        command.env("PATH", &self.path).env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        command
    }

    async fn run(&self, line: &str) -> Result<Output> {
        Ok(tokio::time::timeout(patience(), self.shell(line).output()).await.context("it does not end")??)
    }
}

/// A server that answers everybody with that file, over TLS where there is a certificate.
async fn serve(file: PathBuf, pair: Option<pki::Pair>) -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let read = move || std::fs::read(&file).unwrap_or_default();
    let Some(pair) = pair else {
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let body = read();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let mut asked = [0; 4096];
                let _ = stream.read(&mut asked).await;
                let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
            }
        });
        return Ok(address);
    };
    tokio::spawn(https::serve(listener, https::acceptor(&pair)?, move |_| {
        let mut answer = Response::new(Full::new(Bytes::from(read())));
        *answer.status_mut() = StatusCode::OK;
        answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        async move { answer }
    }));
    Ok(address)
}

/// Runs the lines of all pages; what went wrong, and which entries of the lists were needed.
async fn run_all(stage: &Stage, root: &Path) -> Result<(usize, Vec<String>, BTreeSet<&'static str>)> {
    let (mut ran, mut wrong, mut needed) = (0, Vec::new(), BTreeSet::new());
    for page in pages(root)? {
        for line in commands(&std::fs::read_to_string(&page)?) {
            let begins = |beginning: &str| line.starts_with(beginning);
            if let Some((beginning, ..)) = ELSEWHERE.iter().find(|(beginning, ..)| begins(beginning)) {
                needed.insert(*beginning);
                continue;
            }
            // The first command of the installation was run before there was one.
            if line.starts_with(INSTALL) {
                continue;
            }
            ran += 1;
            for (beginning, before, _) in BEFORE.iter().filter(|(beginning, ..)| begins(beginning)) {
                needed.insert(*beginning);
                let done = stage.run(before).await?;
                ensure!(done.status.success(), "{before}: {done:?}");
            }
            let finds: Vec<_> = FINDS.iter().filter(|(beginning, ..)| begins(beginning)).collect();
            needed.extend(finds.iter().map(|(beginning, ..)| *beginning));
            let output = stage.run(&line).await.with_context(|| line.clone())?;
            let code = output.status.code();
            if code != Some(0) && !finds.iter().any(|(_, finds, _)| code == Some(*finds)) {
                wrong.push(format!(
                    "{}: {line}: {:?}\n{}{}",
                    page.display(),
                    output.status.code(),
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    Ok((ran, wrong, needed))
}

const INSTALL: &str = "kubectl apply -f manifests/install.yaml";

#[tokio::test]
async fn answers_24_every_command_that_readme_and_tasks_print_runs() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository")?;
    let stage = Stage::set(&cp, root).await?;
    let installed = stage.run(INSTALL).await?;
    ensure!(installed.status.success(), "{installed:?}");
    // Processes of this test take the place of what runs in its Pods, and their address that of its Service.
    let gone = "kubectl -n kagenti-system delete service --all";
    ensure!(stage.run(gone).await?.status.success());
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let made = cp.kubectl(cp.admin(), &["apply", "-f", "-"], TEAMS).await?;
    ensure!(made.success, "{made:?}");
    let sample = std::fs::read_to_string(root.join("manifests/samples/weather-agent-runtime.yaml"))?;
    let sample = sample.replace("namespace: default", "namespace: team1");
    let made = cp.kubectl(cp.admin(), &["apply", "-f", "-"], &sample).await?;
    ensure!(made.success, "{made:?}");

    let (ran, wrong, needed) = run_all(&stage, root).await?;
    ensure!(wrong.is_empty(), "{} of {ran} commands went wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
    let all = ELSEWHERE.iter().map(|(beginning, ..)| beginning);
    let all = all.chain(FINDS.iter().map(|(beginning, ..)| beginning));
    let all = all.chain(BEFORE.iter().map(|(beginning, ..)| beginning));
    let idle: Vec<_> = all.filter(|beginning| !needed.contains(*beginning)).collect();
    ensure!(idle.is_empty(), "no page prints these any more: {idle:?}");
    drop(installation);
    Ok(())
}

/// What is said to be run elsewhere is.
#[test]
fn answers_24_what_is_run_elsewhere_is_a_test_that_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = String::new();
    let mut folders = vec![root.join("tests"), root.join("webhook-tests/tests"), root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    for (line, place, _) in ELSEWHERE {
        let is_there = match place.strip_prefix("make ") {
            Some(target) => makefile.contains(&format!("\n{target}:")),
            None => sources.contains(&format!("fn {place}(")),
        };
        assert!(is_there, "{line}: there is no {place}");
    }
}
