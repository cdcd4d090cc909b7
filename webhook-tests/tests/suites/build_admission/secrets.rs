//! A Secret that an Agent or AgentBuild refers to is taken from people who may have it, name by name, and from nobody else; tried on the
//! policies of a real API server, whose limits on what an expression may cost are part of what is promised.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::secrets::ANNOTATIONS;
use drawbridge::api::secrets::{OF_ANNOTATIONS, OF_CONTAINER, OF_POD};
use drawbridge::domain::keys;
use serde_json::{Value, json};
use webhook_tests::{Objects, TestNamespace};

use super::people::{self, rule};
use super::{minimal, team, with};

const AGENTS: &str = "drawbridge-agent-secrets";
const BUILDS: &str = "drawbridge-build-secrets";
/// The most that are asked for by name.
const MOST: usize = 24;

fn agent(name: &str, pod: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": name},
        "spec": {
            "imageSource": {"image": "ghcr.io/acme/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent", "image": "set by operator"}]}},
        },
    });
    json_patch::merge(&mut object["spec"]["podTemplateSpec"]["spec"], pod);
    object
}

fn named(number: usize) -> String {
    format!("s{number:02}")
}

/// An Agent with so many Secrets as volumes.
fn mounting(name: &str, count: usize) -> Value {
    let volumes: Vec<_> =
        (0..count).map(|number| json!({"name": named(number), "secret": {"secretName": named(number)}})).collect();
    agent(name, &json!({"volumes": volumes}))
}

fn consenting(mut object: Value, names: &str) -> Value {
    object["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: names});
    object
}

/// Somebody who may write objects of our kind, with one more rule.
async fn person(ns: &TestNamespace, name: &str, kind: &str, more: Option<Value>, probe: &Value) -> Result<Objects> {
    let mut rules = vec![rule("agent.kagenti.dev", kind, &["get", "create", "update", "patch", "delete"])];
    rules.extend(more);
    people::person(ns, name, &rules, probe).await
}

/// The right to get these Secrets by name.
fn get(names: impl Iterator<Item = String>) -> Value {
    let names: Vec<_> = names.collect();
    json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": names})
}

/// What stands at `path` where it names the first Secret, with what the schema wants beside it.
fn standing(path: &[&str]) -> Value {
    match path {
        [] => json!(named(0)),
        ["*", rest @ ..] => {
            let mut item = standing(rest);
            if matches!(rest, ["projected" | "valueFrom", ..] | ["secret", "secretName"]) {
                item["name"] = json!("v");
            }
            json!([item])
        }
        [member, rest @ ..] => {
            let mut value = standing(rest);
            if *member == "secretKeyRef" {
                value["key"] = json!("k");
            }
            json!({ *member: value })
        }
    }
}

/// Agents that name the first Secret, one for each place where that takes no other right.
fn agents_naming() -> Vec<(String, Value)> {
    let path = |path: &str| standing(&path.split('/').collect::<Vec<_>>());
    let plain = OF_POD.iter().take(3);
    let mut all: Vec<_> = plain.map(|at| ((*at).to_owned(), agent("weather", &path(at)))).collect();
    for at in OF_CONTAINER {
        for list in ["containers", "initContainers"] {
            let mut container = json!({"name": "second", "image": "a/b:1"});
            json_patch::merge(&mut container, &path(at));
            let mut pod = json!({"containers": [{"name": "agent", "image": "set by operator"}]});
            pod[list] = json!([{"name": "agent-0", "image": "a/b:1"}, container]);
            all.push((format!("{list} {at}"), agent("weather", &pod)));
        }
    }
    for place in ANNOTATIONS {
        for key in OF_ANNOTATIONS {
            let member = json!({ *key: named(0) });
            let mut object = agent("weather", &json!({}));
            json_patch::merge(&mut object, &place.rsplit('/').fold(member, |inner, name| json!({name: inner})));
            all.push((format!("{place} {key}"), object));
        }
    }
    all
}

#[tokio::test]
async fn mend_06_every_secret_of_an_agent_takes_the_right_to_get_it() -> Result<()> {
    let ns = team().await?;
    let plain = agent("probe", &json!({}));
    let lacks = person(&ns, "lacks", "agents", None, &plain).await?;
    people::refusal_begins(AGENTS, &lacks, &mounting("probe", 1)).await?;
    let knows = person(&ns, "knows", "agents", Some(get((0..=MOST).map(named))), &mounting("probe", 1)).await?;
    let free = [
        ("all", rule("", "secrets", &["get"])),
        ("runs", rule("", "pods", &["create"])),
        ("deploys", rule("apps", "deployments", &["create"])),
    ];
    for (at, object) in agents_naming() {
        let message = people::refused_by(AGENTS, people::tried(&lacks, &object).await?).context(at.clone())?;
        ensure!(message.contains("Secret s00: an Agent may refer to it only"), "{at}: {message}");
        people::tried(&knows, &object).await?.context(at)?;
    }
    // The name at each place of the list is asked for, and named.
    let mut other = mounting("weather", MOST);
    other["spec"]["podTemplateSpec"]["spec"]["volumes"][MOST - 1]["secret"]["secretName"] = json!("theirs");
    let message = people::refused_by(AGENTS, people::tried(&knows, &other).await?)?;
    ensure!(message.contains("Secret theirs: "), "{message}");
    people::tried(&knows, &mounting("weather", MOST)).await??;
    let message = people::refused_by(AGENTS, people::tried(&knows, &mounting("weather", MOST + 1)).await?)?;
    ensure!(message.contains("more than 24 Secrets"), "{message}");
    for (name, right) in free {
        let person = person(&ns, name, "agents", Some(right), &mounting("probe", 2 * MOST)).await?;
        people::tried(&person, &other).await??;
    }
    Ok(())
}

/// However often it refers to them: what an expression may cost is not spent before the questions are asked.
#[tokio::test]
async fn mend_06_many_references_are_no_more_than_their_distinct_names() -> Result<()> {
    let ns = team().await?;
    let knows = person(&ns, "knows", "agents", Some(get((0..MOST).map(named))), &mounting("probe", 1)).await?;
    let env = |container: usize| -> Vec<_> {
        let variable = |number: usize| match number % 3 {
            0 => json!({"name": format!("PLAIN_{number}"), "value": "x"}),
            _ => json!({"name": format!("FROM_{number}"), "valueFrom": {"secretKeyRef": {
                "name": named((container + number) % MOST), "key": "k"}}}),
        };
        (0..45).map(variable).collect()
    };
    let containers: Vec<_> = (0..20)
        .map(|number| json!({"name": format!("agent-{number}"), "image": "a/b:1", "env": env(number)}))
        .collect();
    let object = agent("weather", &json!({"containers": containers}));
    people::tried(&knows, &object).await??;
    Ok(())
}

/// Who keeps the reference and changes what runs has the Secret.
#[tokio::test]
async fn mend_06_all_secrets_of_an_agent_are_asked_for_when_what_runs_changes() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", "agents", None, &agent("probe", &json!({}))).await?;
    people::refusal_begins(AGENTS, &lacks, &mounting("probe", 1)).await?;
    let knows = person(&ns, "knows", "agents", Some(get([named(0)].into_iter())), &mounting("probe", 1)).await?;
    ns.accepts(&mounting("granted", 1)).await?;
    let change = async |patch: &Value| people::patched(&lacks, "Agent", "granted", patch.clone()).await;
    let image = json!({"spec": {"imageSource": {"image": "ghcr.io/mallory/shell:v1"}}});
    for patch in [
        image.clone(),
        json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": "shell"}}}}),
        json!({"spec": {"annotations": {"a": "b"}}}),
        json!({"spec": {"podTemplateSpec": {"spec": {"containers": [
            {"name": "agent", "image": "set by operator", "command": ["sh"]}]}}}}),
    ] {
        people::refused_by(AGENTS, change(&patch).await).with_context(|| patch.to_string())?;
    }
    change(&json!({"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 3}})).await?;
    people::patched(&knows, "Agent", "granted", image).await?;
    change(&json!({"spec": {"podTemplateSpec": {"spec": {"volumes": null}}}})).await?;
    Ok(())
}

/// What is left to the Secret's own consent is not asked for here, and the list is part of what runs.
#[tokio::test]
async fn mend_06_what_is_left_to_consent_is_left_out_and_cannot_be_taken_back_without_the_right() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", "agents", None, &agent("probe", &json!({}))).await?;
    people::refusal_begins(AGENTS, &lacks, &mounting("probe", 1)).await?;
    let listed = |names: &str| json!({"metadata": {"annotations": {keys::ANNOTATION_SECRETS_BY_CONSENT: names}}});
    lacks.accepts(&consenting(mounting("weather", 2), "s01, s00")).await?;
    for names in [json!("s00"), json!(""), Value::Null] {
        let patch = json!({"metadata": {"annotations": {keys::ANNOTATION_SECRETS_BY_CONSENT: names}}});
        people::refused_by(AGENTS, people::patched(&lacks, "Agent", "weather", patch).await)?;
    }
    people::patched(&lacks, "Agent", "weather", listed("s00,s01,more")).await?;
    people::refused_by(AGENTS, people::tried(&lacks, &consenting(mounting("other", 2), "s00")).await?)?;
    Ok(())
}

#[tokio::test]
async fn mend_06_secrets_of_a_build_take_the_right_to_get_them() -> Result<()> {
    let ns = team().await?;
    let git = |name: &str| with(name, json!({"source": {"sourceCredentials": {"name": "s00"}}}));
    let parameter = |name: &str| json!({"pipeline": {"parameters": [{"name": name, "value": "s00"}]}});
    let lacks = person(&ns, "lacks", "agentbuilds", None, &minimal("probe")).await?;
    people::refusal_begins(BUILDS, &lacks, &git("probe")).await?;
    let knows = person(&ns, "knows", "agentbuilds", Some(get([named(0)].into_iter())), &git("probe")).await?;
    for object in [
        git("weather"),
        with("weather", json!({"buildOutput": {"imageRepoCredentials": {"name": "s00"}}})),
        with("weather", parameter("signing-secret")),
        with("weather", parameter("REGISTRY_SECRET")),
    ] {
        let message = people::refused_by(BUILDS, people::tried(&lacks, &object).await?)?;
        ensure!(message.contains("Secret s00: an AgentBuild may refer to it only"), "{message}");
        people::tried(&knows, &object).await?.with_context(|| object.to_string())?;
        people::tried(&lacks, &consenting(object, "s00")).await??;
    }
    let runs = rule("tekton.dev", "pipelineruns", &["create"]);
    person(&ns, "runs", "agentbuilds", Some(runs), &git("probe")).await?;

    ns.accepts(&git("granted")).await?;
    let change = async |patch: &Value| people::patched(&lacks, "AgentBuild", "granted", patch.clone()).await;
    for patch in [
        json!({"spec": {"source": {"sourceRepository": "evil.example/a.git"}}}),
        json!({"spec": {"source": {"sourceRevision": "v2"}}}),
        json!({"spec": {"buildOutput": {"imageRegistry": "evil.example"}}}),
        json!({"spec": {"buildArgs": [{"name": "A", "value": "b"}]}}),
        json!({"spec": {"mode": "dev-local"}}),
        json!({"spec": {"pipeline": {"parameters": [{"name": "workspace-size", "value": "2Gi"}]}}}),
    ] {
        people::refused_by(BUILDS, change(&patch).await).with_context(|| patch.to_string())?;
    }
    change(&json!({"metadata": {"labels": {"team": "a"}}, "spec": {"cleanupAfterBuild": false}})).await?;
    change(&json!({"spec": {"source": {"sourceCredentials": null}}})).await?;
    Ok(())
}
