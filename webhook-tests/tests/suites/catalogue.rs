//! The verified catalogue on a real API server: signed cards that the controllers judge, tokens that the API server judges, and callers of several namespaces
//! at every replica.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use drawbridge::cli::render::{FailureMode, Install, rbac};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::dial::{self, Trust};
use webhook_tests::patience::patience;
use webhook_tests::svid::{Authority, signed};
use webhook_tests::{ControlPlane, Installation, Installing, Options, TestNamespace, installation, programs};

use crate::card_bundles::{CARD, DOMAIN, agent, believed, put};

const CATALOGUE: &str = "/.well-known/ai-catalog.json";
const OURS: &str = "drawbridge-catalogue";

/// A token of ServiceAccount `default` of a namespace, for that audience.
async fn token(ns: &TestNamespace, audience: &str) -> Result<String> {
    let audiences = vec![audience.to_owned()];
    let request = TokenRequest {
        spec: TokenRequestSpec { audiences, expiration_seconds: Some(3600), ..TokenRequestSpec::default() },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = ns.api();
    let answer = accounts.create_token_request("default", &PostParams::default(), &request).await?;
    Ok(answer.status.context("a TokenRequest without status")?.token)
}

/// What callers are told to believe: the authority that the API server believes, too.
async fn trust(cp: &ControlPlane) -> Result<Trust> {
    let all: Api<ValidatingWebhookConfiguration> = Api::all(cp.client().await?);
    let found = all.get("drawbridge").await?;
    let bundle = found.webhooks.iter().flatten().find_map(|hook| hook.client_config.ca_bundle.clone());
    Trust::new("drawbridge-webhook.kagenti-system.svc", &bundle.context("a bundle")?.0)
}

/// The replicas, and what they have to prove.
struct Replicas<'i> {
    installation: &'i Installation,
    trust: Trust,
}

impl Replicas<'_> {
    /// What every replica answers.
    async fn ask(&self, path: &str, token: Option<&str>) -> Result<Vec<(u16, String)>> {
        let mut answers = Vec::new();
        for replica in &self.installation.webhooks {
            answers.push(dial::get_as(replica.ports().catalogue.address(), &self.trust, path, token).await?);
        }
        Ok(answers)
    }

    /// Waits until every replica gives an answer that `holds`, and returns the first.
    async fn until(&self, path: &str, token: &str, holds: impl Fn(u16, &str) -> bool) -> Result<String> {
        let deadline = Instant::now() + patience();
        loop {
            let answers = self.ask(path, Some(token)).await;
            if let Ok(answers) = &answers
                && answers.iter().all(|(code, text)| holds(*code, text))
            {
                return Ok(answers[0].1.clone());
            }
            ensure!(Instant::now() < deadline, "{path}: {answers:?}\n{}", self.installation.webhooks[0].log());
            // Below what one caller may ask.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Waits until the first replica counts that.
    async fn count(&self, name: &str, labels: &[(&str, &str)], wanted: f64) -> Result<()> {
        let deadline = Instant::now() + patience();
        loop {
            let found = self.installation.webhooks[0].metrics().await?.sum(name, labels);
            if (found - wanted).abs() < 0.5 {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{name} is {found}, not {wanted}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Only tokens are asked about, one now and then. On a machine where few requests were made in all that time, more are made.
    async fn ask_rarely(&self, token: &str) -> Result<()> {
        let deadline = Instant::now() + patience();
        loop {
            let metrics = self.installation.webhooks[0].metrics().await?;
            let reviews = metrics.sum("drawbridge_catalogue_token_reviews_total", &[]);
            let requests = metrics.sum("drawbridge_catalogue_requests_total", &[]);
            if reviews >= 2.0 && reviews * 2.0 < requests {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{reviews} reviews for {requests} requests");
            self.until(CATALOGUE, token, |code, _| code == 200).await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Waits until a caller sees these cards and no others.
    async fn sees(&self, token: &str, query: &str, wanted: &[&TestNamespace]) -> Result<()> {
        let mut names: Vec<_> = wanted.iter().map(|ns| ns.name().to_owned()).collect();
        names.sort_unstable();
        self.until(&format!("{CATALOGUE}{query}"), token, |code, text| code == 200 && listed(text) == names)
            .await
            .map(drop)
    }
}

/// The namespaces of the lines of a page.
fn listed(page: &str) -> Vec<String> {
    let page: Value = serde_json::from_str(page).unwrap_or_default();
    let lines = page["entries"].as_array().into_iter().flatten();
    lines.map(|line| line["metadata"]["namespace"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn patch_namespace(cp: &ControlPlane, ns: &TestNamespace, metadata: Value) -> Result<()> {
    let all: Api<Namespace> = Api::all(cp.client().await?);
    all.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&json!({"metadata": metadata}))).await?;
    Ok(())
}

/// The card of a namespace is not verified any more.
async fn no_longer(cp: &ControlPlane, ns: &TestNamespace) -> Result<()> {
    let generation = ns.api::<AgentCard>().get(CARD).await?.metadata.generation;
    let condition = json!({"type": "Verified", "status": "False", "reason": "NotBound", "message": "as the test says",
        "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = json!({"status": {"trustedAccount": null, "conditions": [condition]}});
    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let cards: Api<AgentCard> = Api::namespaced(ours, ns.name());
    cards.patch_status(CARD, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Who has no token of that namespace for the catalogue is told nothing, whatever is asked for.
async fn strangers(
    replicas: &Replicas<'_>,
    (mine, ours, theirs): (&TestNamespace, &str, &str),
    paths: &[&str],
) -> Result<()> {
    let elsewhere = token(mine, "https://kubernetes.default.svc.cluster.local").await?;
    let (head, _) = ours.rsplit_once('.').context("a token")?;
    let forged = format!("{head}.{}", theirs.rsplit_once('.').context("a token")?.1);
    let tokens =
        [("none", None), ("another audience", Some(&*elsewhere)), ("forged", Some(&*forged)), ("no token", Some("x"))];
    for (what, token) in tokens {
        for path in paths {
            for (code, text) in replicas.ask(path, token).await? {
                ensure!(code == 401 && text.starts_with("CallerRefused: "), "{what} {path}: {code} {text}");
            }
        }
    }
    Ok(())
}

/// The rights are there by now, and the Service, which leads to the processes of a test, has no port for the catalogue.
async fn doctor_tells_what_is_missing(cp: &ControlPlane, installation: &Installation) -> Result<()> {
    let text = std::fs::read_to_string(installation.settings().join("config.yaml"))?;
    let files: Api<ConfigMap> = Api::namespaced(cp.client().await?, "kagenti-system");
    let patch = Patch::Merge(json!({"data": {"config.yaml": text}}));
    files.patch("kagenti-platform-config", &PatchParams::default(), &patch).await?;
    let mut command = tokio::process::Command::new(programs::workspace("drawbridge")?);
    let output = command.args(["doctor", "-o", "json", "--kubeconfig"]).arg(cp.admin().kubeconfig()).output().await?;
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let status = |name: &str| checks.iter().find(|check| check["name"] == name).map(|check| &check["status"]);
    assert_eq!(status("catalogue of verified agents"), Some(&json!("finding")), "{checks:#?}");
    assert_eq!(status("callers of the catalogue"), Some(&json!("ok")), "{checks:#?}");
    Ok(())
}

fn card(namespace: &str) -> String {
    format!("/agents/{namespace}/{CARD}/agent-card.json")
}

#[tokio::test]
async fn callers_find_verified_agents_of_their_own_namespace_and_of_shared_ones_and_nobody_else_finds_any() -> Result<()>
{
    let cp = installation::plane(Options::default()).await?;
    let (bundles, mine, shared) =
        (cp.namespace("bundles").await?, cp.namespace("mine").await?, cp.namespace("shared").await?);
    let (closed, tampered, bare) =
        (cp.namespace("closed").await?, cp.namespace("tampered").await?, cp.namespace("bare").await?);
    let authority = Authority::new(DOMAIN)?;
    put(&bundles, "bundle", "bundle", &authority.spiffe()).await?;
    let platform = |on: bool| {
        format!(
            "cards: {{audit: false, minimumPeriodSeconds: 5, catalogue: {{enabled: {on}}}, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: bundle, namespace: {}, key: bundle}}}}}}\n",
            bundles.name(),
        )
    };
    let installing = Installing { platform: platform(true), webhooks: 2, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let replicas = Replicas { installation: &installation, trust: trust(&cp).await? };
    let (ours, theirs) = (token(&mine, OURS).await?, token(&bare, OURS).await?);

    // Installed without --with-catalogue, nobody is answered, and is told why.
    replicas.until(CATALOGUE, &ours, |code, text| code == 503 && text.contains("--with-catalogue")).await?;
    let install = Install::new(FailureMode::Fail, "kagenti-system", "drawbridge.invalid/drawbridge:test");
    for object in rbac::catalogue(&install) {
        cp.objects().await?.apply(&object.to_string()).await?;
    }
    replicas.sees(&ours, "", &[]).await?;
    doctor_tells_what_is_missing(&cp, &installation).await?;

    // Verified agents, of which the first and the second are seen; and one whose card was changed after it was signed.
    for ns in [&mine, &shared, &closed] {
        agent(ns).await?;
        believed(ns, "1", &authority).await?;
    }
    agent(&tampered).await?;
    let signer = authority.signer(&format!("/ns/{}/sa/weather", tampered.name()))?;
    let served = json!({"name": "Weather", "version": "1", "url": "http://w:8000", "skills": [{"id": "echo"}]});
    let changed = signed(&served, &signer)?.replace("\"echo\"", "\"pay\"");
    put(&tampered, "w-card-signed", "agent-card.json", &changed).await?;
    for ns in [&shared, &tampered] {
        patch_namespace(&cp, ns, json!({"labels": {"agent.kagenti.dev/catalogue": "shared"}})).await?;
    }
    replicas.sees(&ours, "", &[&mine, &shared]).await?;
    replicas.sees(&ours, "?skill=echo", &[&mine, &shared]).await?;
    replicas.sees(&ours, "?skill=pay", &[]).await?;
    replicas.sees(&theirs, "", &[&shared]).await?;
    replicas.sees(&token(&closed, OURS).await?, "", &[&closed, &shared]).await?;
    let page = replicas.until(CATALOGUE, &ours, |code, _| code == 200).await?;
    let page: Value = serde_json::from_str(&page)?;
    let line = page["entries"]
        .as_array()
        .and_then(|lines| lines.iter().find(|line| line["metadata"]["namespace"] == shared.name()));
    let line = line.context("a line")?;
    assert_eq!(line["metadata"]["identity"], format!("spiffe://{DOMAIN}/ns/{}/sa/weather", shared.name()));
    let path =
        line["url"].as_str().and_then(|url| url.strip_prefix("https://drawbridge-webhook.kagenti-system.svc:8443"));
    assert_eq!(path, Some(card(shared.name()).as_str()));

    // The cards themselves; those that may not be seen are answered as one that does not exist.
    let answered = replicas.until(&card(shared.name()), &ours, |code, _| code == 200).await?;
    let answered: Value = serde_json::from_str(&answered)?;
    assert_eq!((&answered["name"], &answered["skills"][0]["id"]), (&json!("Weather"), &json!("echo")));
    let absent = replicas.until(&card("nowhere"), &ours, |code, _| code == 404).await?;
    for ns in [&closed, &tampered, &bare] {
        for answer in replicas.ask(&card(ns.name()), Some(&ours)).await? {
            assert_eq!(answer, (404, absent.clone()), "{}", ns.name());
        }
    }

    strangers(&replicas, (&mine, &ours, &theirs), &[CATALOGUE, &card(shared.name()), &card("nowhere")]).await?;

    // Nobody shares any longer; somebody is put into quarantine; somebody is verified no longer.
    patch_namespace(&cp, &shared, json!({"labels": {"agent.kagenti.dev/catalogue": null}})).await?;
    replicas.sees(&theirs, "", &[]).await?;
    patch_namespace(&cp, &shared, json!({"labels": {"agent.kagenti.dev/catalogue": "shared"}})).await?;
    replicas.sees(&theirs, "", &[&shared]).await?;
    patch_namespace(&cp, &shared, json!({"annotations": {"agent.kagenti.dev/quarantine": "w"}})).await?;
    replicas.sees(&theirs, "", &[]).await?;
    patch_namespace(&cp, &shared, json!({"annotations": {"agent.kagenti.dev/quarantine": null}})).await?;
    replicas.sees(&theirs, "", &[&shared]).await?;
    // Written as the card's controller writes it, while none runs that would judge anew.
    installation.controllers[0].kill().await;
    no_longer(&cp, &shared).await?;
    replicas.sees(&theirs, "", &[]).await?;
    replicas.until(&card(shared.name()), &theirs, |code, _| code == 404).await?;
    replicas.sees(&ours, "", &[&mine]).await?;

    replicas.ask_rarely(&ours).await?;
    replicas.count("drawbridge_catalogue_cards", &[("state", "Listed")], 2.0).await.context("mine and closed")?;

    // The switch is followed while the process runs, and nothing is kept behind it.
    let (file, new) = (installation.settings().join("config.yaml"), installation.settings().join("new"));
    let text = std::fs::read_to_string(&file)?;
    std::fs::write(&new, text.replace("{enabled: true}", "{enabled: false}"))?;
    std::fs::rename(&new, &file)?;
    replicas.until(CATALOGUE, &ours, |code, text| code == 404 && text.contains("cards.catalogue.enabled")).await?;
    replicas.count("drawbridge_catalogue_bytes", &[], 0.0).await?;
    std::fs::write(&new, text)?;
    std::fs::rename(&new, &file)?;
    replicas.sees(&ours, "", &[&mine]).await
}
