//! What the tasks see, send and leave behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::domain::keys;
use drawbridge::pipelines::beeai_build::login::{RegistryLogin, login};
use drawbridge::pipelines::beeai_build::{front, read, validate};
use drawbridge::pipelines::catalogue::{Values, config_maps};
use drawbridge::pipelines::compose::{Surroundings, compose};
use drawbridge::pipelines::settings::Settings;
use drawbridge::pipelines::templates::TemplatesView;
use serde_json::{Value, json};
use tempfile::TempDir;
use webhook_tests::git_server::{Behaviour, Server, basic};
use webhook_tests::pki::Authority;

use super::pod::{Ended, Files, Pods, tools};
use super::registry::{Registry, config};

/// The original project's AgentBuild.
const SAMPLE: &str = include_str!("../../../../manifests/samples/beeai-agentbuild.yaml");
const BUILD: &str = "my-beeai-agent-build-v1";
const TOKEN: &str = "ghp_canary0123456789";
/// A line of a password file: the build's name, and that token, hashed with bcrypt.
const LINE: &str = "my-beeai-agent-build-v1:$2y$05$abcdefghijklmnopqrstuuWprfqiQQNHtGrvwOfw92YgaiWf0JWm6";
/// The Secret with the token, and the ConfigMap with the authority of the servers.
const SECRET: &str = "github-token-secret";
const TRUST: &str = "corporate-ca";
const IMAGE: &str = "agents/hello-world-agent";

/// A build that looks around.
const DOCKERFILE: &str = r#"FROM scratch
ARG PIP_INDEX
ARG FROM_SECRET
COPY busybox look /
RUN ["/busybox", "sh", "/look"]
CMD ["/busybox", "sh"]
"#;

/// What foreign code can see: variables and arguments of every process, every mount, every file, and the places of the other tasks.
const LOOK: &str = r"
echo seen: index=$PIP_INDEX secret=$FROM_SECRET
/busybox env
for one in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do echo $one:; /busybox tr '\0' '\n' < $one; done
/busybox cat /proc/mounts
/busybox find / -xdev
for one in /workspace /tekton /scratch /proc/1/root/workspace /proc/1/cwd/workspace; do
  /busybox find $one 2> /dev/null
  /busybox cat $one/git-auth/token $one/registry-auth/config.json 2> /dev/null
done
echo seen: all
";

/// Servers, a repository and the settings of a platform that knows them.
struct House {
    tools: std::path::PathBuf,
    authority: Authority,
    git: Server,
    settings: Settings,
    _repository: TempDir,
}

impl House {
    async fn new() -> Result<Self> {
        let tools = tools()?;
        let authority = Authority::new("house")?;
        let root = tempfile::tempdir()?;
        repository(root.path(), &tools)?;
        let to = (String::from("x-access-token"), TOKEN.to_owned());
        let git = Server::start(&authority, Behaviour::ServeTo(root.path().to_owned(), to)).await?;
        let mut settings = Settings::new(keys::OPERATOR_NAMESPACE);
        settings.trust_bundle = Some(TRUST.to_owned());
        Ok(Self { tools, authority, git, settings, _repository: root })
    }

    /// The sample, with this house's repository and that registry, and `more` over it.
    fn build(&self, registry: &str, more: &Value) -> Result<Value> {
        let mut object: Value = serde_saphyr::from_str(SAMPLE)?;
        let here = json!({
            "metadata": {"namespace": "team1", "uid": "uid-of-the-build"},
            "spec": {"repoUrl": self.git.url("https://"), "imageRegistry": format!("{registry}/agents")},
        });
        json_patch::merge(&mut object, &here);
        json_patch::merge(&mut object, more);
        Ok(object)
    }

    /// The run that the operator makes of it, and the Secrets that it finds.
    fn pods(&self, object: &Value, secrets: &[(&str, Files)]) -> Result<Pods> {
        let operator = keys::OPERATOR_NAMESPACE;
        let view = TemplatesView::new(operator, false).with(config_maps(operator, &Values::default()));
        let whose = (front(keys::GROUP_BEEAI), "team1");
        let findings = validate((object, None), whose, &view, &self.settings);
        ensure!(findings.faults.is_empty(), "{:?}", findings.faults);
        let request = read(object, whose, &view, &self.settings);
        let around = Surroundings { steps: view.steps(operator), settings: &self.settings, accounts: None };
        let run = compose(&request, around).map_err(|findings| anyhow::anyhow!("{findings:?}"))?.run;
        let mut given: BTreeMap<String, Files> = BTreeMap::from([
            (SECRET.to_owned(), Files::from([("token".to_owned(), TOKEN.to_owned())])),
            (TRUST.to_owned(), Files::from([("ca.crt".to_owned(), self.authority.certificate())])),
        ]);
        // As the operator writes it: the review decided where it goes, and for whom.
        if let RegistryLogin::Made(login) = login(object, &self.settings) {
            given.insert(login.secret, config(&login.account, &login.user, TOKEN));
        }
        given.extend(secrets.iter().map(|(name, files)| ((*name).to_owned(), files.clone())));
        Pods::new(run, given)
    }
}

/// `agents.git` with a Dockerfile that looks around, at its root and in folder `app`.
fn repository(root: &Path, tools: &Path) -> Result<()> {
    let work = root.join("work");
    std::fs::create_dir_all(work.join("app"))?;
    for folder in [work.clone(), work.join("app")] {
        std::fs::write(folder.join("Dockerfile"), DOCKERFILE)?;
        std::fs::write(folder.join("look"), LOOK)?;
        std::fs::copy(tools.join("bin/busybox"), folder.join("busybox"))?;
    }
    let git = |folder: &Path, arguments: &[&str]| -> Result<()> {
        let named = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        command.args(named).args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    git(&work, &["init", "-q", "-b", "main", "."])?;
    git(&work, &["add", "."])?;
    git(&work, &["commit", "-q", "-m", "one"])?;
    git(root, &["clone", "-q", "--bare", "work", "agents.git"])
}

/// The task ends well; gives what it said and did.
async fn runs(pods: &Pods, task: &str) -> Result<Ended> {
    let ended = pods.task(task).await?;
    ensure!(ended.success, "{task}: {}", ended.said);
    Ok(ended)
}

/// Every form in which a token could have got somewhere.
fn forms() -> Vec<String> {
    let pairs = [BUILD, "x-access-token", "octo"].map(|user| format!("{user}:{TOKEN}"));
    std::iter::once(TOKEN.to_owned())
        .chain(std::iter::once(STANDARD.encode(TOKEN)))
        .chain(pairs.iter().map(|pair| STANDARD.encode(pair)))
        .collect()
}

/// Z20, Z26: neither the claim nor any folder, argument, environment or line of any task holds the token.
fn nowhere(pods: &Pods) {
    for form in forms() {
        assert_eq!(pods.holds(&form), Vec::<String>::new(), "Z20: {form}");
    }
    // The search finds what is there.
    assert!(["agents.git", "hello-world-agent"].iter().any(|one| !pods.holds(one).is_empty()));
}

/// Z13, Z20, Z22, Z25, Z26, Z27, Z28: the original project's sample from its private repository to an image under its digest.
#[tokio::test(flavor = "multi_thread")]
async fn case_z13_the_sample_is_cloned_built_and_pushed_with_its_token() -> Result<()> {
    let mut house = House::new().await?;
    let registry = Registry::start(&house.tools, &house.authority, Some(LINE)).await?;
    house.settings.token_registries.insert(registry.host());
    let reference = |name: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "token"}}});
    let env = json!([
        reference("GITHUB_TOKEN"), {"name": "PIP_INDEX", "value": "internal"}, reference("FROM_SECRET"),
    ]);
    let object = house.build(&registry.host(), &json!({"spec": {"env": env}}))?;
    let pods = house.pods(&object, &[])?;
    assert_eq!(pods.tasks(), ["pull", "check-subfolder", "build", "push"], "Z25");

    let pull = runs(&pods, "pull").await?;
    assert!(house.git.saw("x-access-token", TOKEN), "Z13: the clone has the token");
    assert_eq!(pull.results["commit"].len(), 40);
    assert_eq!(pull.results["url"], house.git.url("https://"));
    ensure!(!pull.call("git", "fetch").is_empty(), "the shims write down");
    runs(&pods, "check-subfolder").await?;
    let build = runs(&pods, "build").await?;
    let called = build.call("buildah", "build");
    assert!(called.contains(&"--build-arg=PIP_INDEX=internal".to_owned()), "Z27: {called:?}");
    assert!(!called.iter().any(|one| one.contains("FROM_SECRET")), "Z28: {called:?}");
    let said = &build.said;
    assert!(said.contains("seen: index=internal secret=\n") && said.contains("\nseen: all"), "Z27, Z28: {said}");
    // Z26: what the foreign code saw is this output: the processes that there are, every mount, every file. The variables of none of them may
    // be read from a container of another user namespace.
    assert!(said.contains("/proc/1/cmdline:\n/bin/sh\n/tekton/scripts/step"), "it looked: {said}");
    assert!(said.contains("proc /proc proc ") && said.contains("\n/busybox\n"), "it looked: {said}");
    for hidden in ["git-auth", "registry-auth", ".dockerconfigjson", "AUTH"] {
        assert!(!said.contains(hidden), "Z26: {hidden} in {said}");
    }
    let (asked, authorization) = (registry.seen().len(), basic(BUILD, TOKEN));
    assert_eq!(asked, 0, "a build asks no registry for anything: {:?}", registry.seen());

    let push = runs(&pods, "push").await?;
    assert!(registry.seen().contains(&authorization), "Z22: a login that can be used: {:?}", registry.seen());
    let digest = registry.digest(IMAGE, "v1", &authorization).await?.context("the image is there")?;
    assert_eq!(push.results["IMAGE_DIGEST"], digest);
    assert_eq!(push.results["IMAGE_URL"], format!("{}/{IMAGE}:v1", registry.host()));
    assert_eq!(registry.digest(IMAGE, "v1", "").await?, None, "the registry wants the login");
    assert_eq!(registry.digest(IMAGE, &digest, &authorization).await?, Some(digest), "by digest");
    nowhere(&pods);
    Ok(())
}

/// Z21, Z22: a Git token is no login of a registry that the platform does not trust with it; and a login goes to the host that it is for.
#[tokio::test(flavor = "multi_thread")]
async fn case_z21_a_login_reaches_the_registry_of_its_host_and_no_other() -> Result<()> {
    let house = House::new().await?;
    let elsewhere = Registry::start(&house.tools, &house.authority, None).await?;
    let object = house.build(&elsewhere.host(), &json!({}))?;
    assert_eq!(login(&object, &house.settings), RegistryLogin::None, "Z21: no login is made");
    let pods = house.pods(&object, &[])?;
    for task in ["pull", "check-subfolder", "build"] {
        runs(&pods, task).await?;
    }
    let push = runs(&pods, "push").await?;
    assert!(push.call("skopeo", "copy").contains(&"--dest-no-creds".to_owned()), "Z21: anonymous");
    assert!(elsewhere.digest(IMAGE, "v1", "").await?.is_some(), "Z21: pushed");
    let told: Vec<_> = elsewhere.seen().into_iter().filter(|one| !one.is_empty()).collect();
    assert_eq!(told, Vec::<String>::new(), "Z21: the push is anonymous");
    nowhere(&pods);

    // A Secret with a login of another host, by name: it is not shown to this one.
    let named = json!({"spec": {"env": [{"name": "IMAGE_REPO_SECRET", "value": "theirs"}]}});
    let private = Registry::start(&house.tools, &house.authority, Some(LINE)).await?;
    let theirs = [("theirs", config("ghcr.io", BUILD, TOKEN))];
    for (registry, pushes) in [(&elsewhere, true), (&private, false)] {
        let object = house.build(&registry.host(), &named)?;
        let again = house.pods(&object, &theirs)?;
        std::fs::copy(pods.path("claim/artifacts/image.tar"), again.path("claim/artifacts/image.tar"))?;
        let push = again.task("push").await?;
        assert_eq!(push.success, pushes, "{}", push.said);
        assert_eq!(push.results.contains_key("IMAGE_DIGEST"), pushes, "nothing is told that did not happen");
        // Whoever has no login for a host answers its question with an empty one.
        let none = basic("", "");
        let told: Vec<_> = registry.seen().into_iter().filter(|one| !one.is_empty() && *one != none).collect();
        assert_eq!(told, Vec::<String>::new(), "a login of ghcr.io");
        nowhere(&again);
    }
    ensure!(private.log().contains("401") || private.log().contains("unauthorized"), "it was asked: {}", private.log());
    Ok(())
}

/// Z29: the second task ends the build, and names the folder's absence.
#[tokio::test(flavor = "multi_thread")]
async fn case_z29_a_missing_subfolder_ends_the_build_before_anything_is_built() -> Result<()> {
    let house = House::new().await?;
    for (folder, told) in [("nowhere", Some("has no such folder")), ("app", None)] {
        let object = house.build("localhost:1", &json!({"spec": {"sourceSubfolder": folder}}))?;
        let pods = house.pods(&object, &[])?;
        runs(&pods, "pull").await?;
        let checked = pods.task("check-subfolder").await?;
        assert_eq!(checked.success, told.is_none(), "Z29: {}", checked.said);
        assert!(told.is_none_or(|told| checked.said.contains(told)), "Z29: {}", checked.said);
        assert!(!pods.path("check-subfolder/given").exists(), "it mounts no Secret");
        nowhere(&pods);
    }
    Ok(())
}

/// Z30: without TLS only where the platform lists the registry, and a certificate of nobody's is not taken.
#[tokio::test(flavor = "multi_thread")]
async fn case_z30_tls_is_left_out_for_listed_registries_alone() -> Result<()> {
    let mut house = House::new().await?;
    let registry = Registry::start(&house.tools, &house.authority, None).await?;
    let plain = registry.plain();
    let built = house.pods(&house.build(&plain, &json!({}))?, &[])?;
    for task in ["pull", "check-subfolder", "build"] {
        runs(&built, task).await?;
    }
    for (host, listed, trusted, pushes) in [
        (plain.clone(), false, true, false),
        (plain.clone(), true, true, true),
        (registry.host(), false, false, false),
        (registry.host(), false, true, true),
    ] {
        house.settings.trust_bundle = trusted.then(|| TRUST.to_owned());
        house.settings.insecure_registries = listed.then(|| host.clone()).into_iter().collect();
        let pods = house.pods(&house.build(&host, &json!({}))?, &[])?;
        std::fs::copy(built.path("claim/artifacts/image.tar"), pods.path("claim/artifacts/image.tar"))?;
        let push = pods.task("push").await?;
        assert_eq!(push.success, pushes, "Z30: {host}, listed: {listed}, trusted: {trusted}: {}", push.said);
        let without = push.call("skopeo", "copy").contains(&"--dest-tls-verify=false".to_owned());
        assert_eq!(without, listed, "Z30: {host}");
    }
    assert!(registry.digest(IMAGE, "v1", "").await?.is_some());
    Ok(())
}
