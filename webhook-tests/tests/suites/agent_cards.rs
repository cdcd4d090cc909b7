//! AgentCards on a real API server: they come and go with their workloads, and what nobody but their maker may do to them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Mark, Options, TestNamespace, installation, programs, trial, wait_for,
    wait_gone, wait_served, wait_until,
};

/// User of the processes that write.
const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";

/// A Deployment that says it is an agent which speaks A2A; nothing is injected into its Pods, of which there are none.
fn agent(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "kagenti.io/inject": "disabled"}},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1"}]},
            },
        },
    })
}

/// A card of a Deployment.
fn card(name: &str, workload: &str, metadata: Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "metadata": {"name": name},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}},
    });
    json_patch::merge(&mut object["metadata"], &metadata);
    object
}

fn cards(ns: &TestNamespace) -> Api<AgentCard> {
    ns.api()
}

fn uid(card: &AgentCard) -> &str {
    card.metadata.uid.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn cases_014_and_028_a_workload_gets_a_card_that_comes_back_and_goes_with_it() -> Result<()> {
    let ns = installation::shared().await?.namespace("cards").await?;
    let workload = ns.accepts(&agent("weather")).await?;
    let name = "weather-deployment-card";
    let made = wait_for(&cards(&ns), name, |_| true).await?;
    let owner = made.owner_references().first().context("an owner")?.clone();
    assert_eq!((owner.kind.as_str(), owner.controller), ("Deployment", Some(true)));
    assert_eq!(Some(&owner.uid), workload.metadata.uid.as_ref());
    assert_eq!(made.labels()["app.kubernetes.io/managed-by"], "drawbridge");
    let spec = serde_json::to_value(&made.spec)?;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"});
    assert_eq!(
        spec,
        json!({"syncPeriod": "30s", "targetRef": target, "identityBinding": {"strict": false}}),
        "with the defaults of the schema"
    );

    cards(&ns).delete(name, &DeleteParams::default()).await?;
    wait_for(&cards(&ns), name, |card| uid(card) != uid(&made)).await?;

    ns.api::<Deployment>().delete("weather", &DeleteParams::background()).await?;
    wait_gone(&cards(&ns), name).await
}

#[tokio::test]
async fn cases_005_012_022_and_027_a_card_that_a_person_made_takes_the_place_of_ours() -> Result<()> {
    let ns = installation::shared().await?.namespace("manual").await?;
    ns.accepts(&agent("w")).await?;
    let name = "w-deployment-card";
    wait_for(&cards(&ns), name, |_| true).await?;
    let mine = ns.accepts(&card("mine", "w", json!({}))).await?;
    wait_gone(&cards(&ns), name).await?;
    let now = cards(&ns).get("mine").await?;
    assert_eq!((now.uid(), now.owner_references().len()), (mine.uid(), 0), "nobody but its maker owns it");
    refused(&ns, &card("second", "w", json!({})), "an AgentCard already targets Deployment w in namespace").await?;
    cards(&ns).delete("mine", &DeleteParams::default()).await?;
    wait_for(&cards(&ns), name, |card| !card.owner_references().is_empty()).await?;

    // Under the very name that ours would have, it is a person's all the same.
    let theirs = ns.accepts(&card("x-deployment-card", "x", json!({}))).await?;
    ns.accepts(&agent("x")).await?;
    ns.accepts(&agent("later")).await?;
    wait_for(&cards(&ns), "later-deployment-card", |_| true).await?;
    is_as_made(&ns, &theirs).await
}

/// But for its status a card is as its maker left it.
async fn is_as_made(ns: &TestNamespace, made: &DynamicObject) -> Result<()> {
    let now = cards(ns).get(&made.name_any()).await?;
    let (before, after) = (&made.metadata, &now.metadata);
    assert_eq!((before.generation, &before.labels, &before.uid), (after.generation, &after.labels, &after.uid));
    assert_eq!((&before.owner_references, &before.finalizers), (&after.owner_references, &after.finalizers));
    Ok(())
}

/// Waits until the webhook refuses a card in those words: it learns of others a moment after they were made.
async fn refused(ns: &TestNamespace, object: &Value, words: &str) -> Result<()> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let card: AgentCard = serde_json::from_value(object.clone())?;
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    let waiting = async {
        loop {
            tick.tick().await;
            match cards(ns).create(&dry, &card).await {
                Err(kube::Error::Api(status)) if status.message.contains(words) => return anyhow::Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    tokio::time::timeout(patience(), waiting).await.with_context(|| format!("nobody says {words:?}"))?
}

#[tokio::test]
async fn cases_001_to_004_what_the_schema_fills_in_and_what_is_refused() -> Result<()> {
    let ns = installation::shared().await?.namespace("schema").await?;
    let stored = ns.accepts(&card("c", "nowhere", json!({}))).await?;
    assert_eq!(stored.data["spec"]["syncPeriod"], "30s");
    for (what, patch) in [
        ("spec.targetRef.name", json!({"targetRef": {"name": ""}})),
        ("spec.identityBinding.trustDomain", json!({"identityBinding": {"trustDomain": "-bad"}})),
        ("spec.identityBinding.trustDomain", json!({"identityBinding": {"trustDomain": "a/b"}})),
        ("spec.targetRef is required", json!({"targetRef": null})),
        ("spec.syncPeriod is not a time", json!({"syncPeriod": "soon"})),
    ] {
        let mut object = card("other", "elsewhere", json!({}));
        json_patch::merge(&mut object["spec"], &patch);
        let status = ns.rejects(&object).await?;
        ensure!(status.message.contains(what), "{what}: {}", status.message);
        let answer = cards(&ns).patch("c", &PatchParams::default(), &Patch::Merge(&json!({"spec": patch}))).await;
        ensure!(answer.is_err_and(|error| error.to_string().contains(what)), "{what}");
    }
    Ok(())
}

#[tokio::test]
async fn cases_025_026_and_138_what_the_go_operator_made_is_taken_over_and_lets_go() -> Result<()> {
    let ns = installation::shared().await?.namespace("takeover").await?;
    let theirs = json!({"labels": {"app.kubernetes.io/managed-by": "kagenti-operator"},
        "finalizers": ["agentcard.kagenti.dev/finalizer", "agentcard.kagenti.dev/network-policy"]});
    let name = "w-deployment-card";
    let before = ns.accepts(&card(name, "w", theirs)).await?;
    ns.accepts(&agent("w")).await?;
    let owned = |card: &AgentCard| !card.owner_references().is_empty();
    let after = wait_for(&cards(&ns), name, owned).await?;
    assert_eq!((after.uid(), after.finalizers().len()), (before.uid(), 2), "where it is, and as it is");
    assert_eq!(after.labels()["app.kubernetes.io/managed-by"], "drawbridge");
    ns.api::<Deployment>().delete("w", &DeleteParams::background()).await?;
    wait_gone(&cards(&ns), name).await?;

    // One of the name that is of something else is told, and stays as it is.
    let taken = ns.accepts(&card("x-deployment-card", "elsewhere", json!({}))).await?;
    ns.accepts(&agent("x")).await?;
    let told = |event: &Event| event.reason.as_deref() == Some("NameConflict");
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(told)).await?;
    is_as_made(&ns, &taken).await
}

/// What a stolen token of the controllers is worth where cards are concerned.
#[tokio::test]
async fn the_controllers_account_writes_no_card_but_those_of_workloads() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("stolen").await?;
    ns.accepts(&card("mine", "w", json!({"annotations": {"a": "b"}}))).await?;
    let thief = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let theirs: Api<AgentCard> = Api::namespaced(thief, ns.name());
    let refused = |answer: kube::Result<()>, what: &str| match answer {
        Err(kube::Error::Api(status)) if status.message.contains("drawbridge-own-") => Ok(()),
        other => anyhow::bail!("{what}: {other:?}"),
    };
    let unowned =
        serde_json::from_value(card("new", "w", json!({"labels": {"app.kubernetes.io/managed-by": "drawbridge"}})))?;
    refused(theirs.create(&PostParams::default(), &unowned).await.map(drop), "a card that nobody owns")?;
    for (what, patch) in [
        ("a spec", json!({"spec": {"syncPeriod": "1h"}})),
        ("an annotation", json!({"metadata": {"annotations": {"a": "c"}}})),
        ("a label", json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "drawbridge"}}})),
        ("a finalizer", json!({"metadata": {"finalizers": ["example.com/held"]}})),
        (
            "an owner",
            json!({"metadata": {"ownerReferences":
            [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}}),
        ),
    ] {
        let answer = theirs.patch("mine", &PatchParams::default(), &Patch::Merge(&patch)).await;
        refused(answer.map(drop), what)?;
    }
    refused(theirs.delete("mine", &DeleteParams::default()).await.map(drop), "a deletion")?;
    Ok(())
}

/// Who writes cards in a namespace, besides whoever asks for it, since a mark.
async fn written(cp: &ControlPlane, ns: &TestNamespace, mark: Mark) -> Result<Vec<String>> {
    let requests = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    Ok(requests.filter(|request| request.resource == "agentcards").iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn at_rest_and_after_a_restart_no_card_is_written() -> Result<()> {
    let count = trial::size(40, 500);
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("rest").await?;
    for number in 0..count {
        ns.accepts(&agent(&format!("w-{number}"))).await?;
    }
    let all = |at_least: usize| move |known: &BTreeMap<String, AgentCard>| known.len() >= at_least;
    // A Deployment of no Pods is available, a moment after it was made: then all that fails is that it has no Service.
    let said = |card: &AgentCard| {
        let conditions = card.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|one| one.type_ == "Synced" && one.reason == "ServiceNotFound")
    };
    let all_said = move |known: &BTreeMap<String, AgentCard>| known.len() == count && known.values().all(said);
    wait_until(&cards(&ns), watcher::Config::default(), all_said).await?;
    let mark = cp.audit().mark()?;
    installation.restart_controllers().await?;
    ns.accepts(&agent("after")).await?;
    wait_until(&cards(&ns), watcher::Config::default(), all(count + 1)).await?;
    // What is made anew comes ahead of the backlog, what is put back behind it: of the last of the old ones.
    let mut last = cards(&ns).list(&Default::default()).await?.items;
    last.sort_by_key(|card| card.name_any());
    let last = last.pop().context("a card")?.name_any();
    cards(&ns).delete(&last, &DeleteParams::default()).await?;
    wait_until(&cards(&ns), watcher::Config::default(), all(count + 1)).await?;
    let written = written(&cp, &ns, mark).await?;
    let (new, made): (Vec<_>, Vec<_>) = written.iter().partition(|write| write.contains("/agentcards/"));
    let of_old = |write: &&&String| !write.contains("/after-deployment-card") && !write.contains(&format!("/{last}/"));
    assert_eq!(new.iter().filter(of_old).count(), 0, "{written:#?}");
    assert!(made.len() == 2 && made.iter().all(|write| write.contains(" create ")), "{written:#?}");
    Ok(())
}

/// A namespace of a cluster that knows AgentCards and in which nobody writes them.
async fn unattended(cp: &ControlPlane, name: &str) -> Result<TestNamespace> {
    const CRD: &str = "agentcards.agent.kagenti.dev";
    let file = webhook_tests::corpus::root().join("../../manifests/crds").join(format!("{CRD}.yaml"));
    let objects = cp.objects().await?;
    objects.apply(&std::fs::read_to_string(file)?).await?;
    wait_served(&objects, CRD).await?;
    cp.namespace(name).await
}

/// The API server as a client of ours sees it: columns as the quick start prints them.
#[tokio::test]
async fn kubectl_prints_the_columns_of_the_quick_start() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = unattended(cp, "columns").await?;
    let name = "weather-agent-deployment-card";
    let made = ns.accepts(&card(name, "weather-agent", json!({}))).await?;
    let status = json!({"status": {
        "protocol": "a2a", "skills": "get_weather",
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"},
        "card": {"name": "Weather Agent", "unknown": 1},
        "bindingStatus": {"bound": true},
        "conditions": [
            {"type": "Synced", "status": "True", "reason": "SyncSucceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Verified", "status": "True", "reason": "SignatureVerified", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }});
    cards(&ns).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    let row = table(&cp.client().await?, &ns).await?;
    let shown = |column: &str| row.get(column).map(Value::to_string).unwrap_or_default();
    let columns = ["Protocol", "Kind", "Target", "Agent", "Verified", "Bound", "Synced", "Skills"];
    let wanted = [
        r#""a2a""#,
        r#""Deployment""#,
        r#""weather-agent""#,
        r#""Weather Agent""#,
        r#""True""#,
        "true",
        r#""True""#,
        r#""get_weather""#,
    ];
    assert_eq!(columns.map(shown), wanted);
    let stored = cards(&ns).get(name).await?.status.and_then(|status| status.card);
    assert_eq!(
        (stored, made.metadata.generation),
        (Some(json!({"name": "Weather Agent"})), Some(1)),
        "what nobody knows is dropped"
    );
    Ok(())
}

/// What people are told by commands, also of a card that nobody has read yet.
#[tokio::test]
async fn people_see_cards_by_commands() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = unattended(cp, "people").await?;
    ns.accepts(&agent("cook")).await?;
    let name = "cook-deployment-card";
    ns.accepts(&card(name, "cook", json!({}))).await?;
    let (listed, code) = told(cp, &["card", "list", "-n", ns.name()]).await?;
    ensure!(code == Some(0) && listed.contains("Deployment/cook"), "{listed}");
    let (explained, code) = told(cp, &["explain", "agentcard/cook-deployment-card", "-n", ns.name()]).await?;
    for words in ["Deployment/cook exists", "0 of 0 are ready", "Service cook does not exist", "what would change it"] {
        ensure!(explained.contains(words), "{words}: {explained}");
    }
    assert_eq!(code, Some(1), "{explained}");

    let conditions = json!([{"type": "Synced", "status": "False", "reason": "FetchFailed", "message": "it answered 500",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = json!({"status": {"card": {"name": "Cook", "skills": [{"id": "cook", "tags": ["food"]}]}, "conditions": conditions}});
    cards(&ns).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    let (found, _) = told(cp, &["card", "list", "-A", "--skill", "food", "-o", "json"]).await?;
    let found: Value = serde_json::from_str(&found)?;
    let names: Vec<_> = found["cards"].as_array().context("cards")?.iter().map(|card| &card["agent"]).collect();
    assert_eq!(names, ["Cook"]);
    let (shown, _) = told(cp, &["card", "get", name, "-n", ns.name()]).await?;
    ensure!(shown.contains("False FetchFailed: it answered 500"), "{shown}");
    let (status, code) = told(cp, &["status", "-n", ns.name()]).await?;
    ensure!(status.contains("AgentCard/cook-deployment-card in") && code == Some(1), "{status}");
    Ok(())
}

/// What a command prints, and how it ends.
async fn told(cp: &ControlPlane, args: &[&str]) -> Result<(String, Option<i32>)> {
    let mut command = tokio::process::Command::new(programs::workspace("drawbridge")?);
    let output =
        command.args(args).arg("--kubeconfig").arg(cp.admin().kubeconfig()).kill_on_drop(true).output().await?;
    ensure!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok((String::from_utf8(output.stdout)?, output.status.code()))
}

/// The one card of a namespace as a table has it.
async fn table(client: &Client, ns: &TestNamespace) -> Result<BTreeMap<String, Value>> {
    let request = http::Request::get(format!("/apis/agent.kagenti.dev/v1alpha1/namespaces/{}/agentcards", ns.name()))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = client.request(request).await?;
    let names = table["columnDefinitions"].as_array().context("columns")?.iter().map(|column| &column["name"]);
    let cells = table["rows"][0]["cells"].as_array().context("cells")?.iter();
    Ok(names.zip(cells).map(|(name, cell)| (name.as_str().unwrap_or_default().to_owned(), cell.clone())).collect())
}
