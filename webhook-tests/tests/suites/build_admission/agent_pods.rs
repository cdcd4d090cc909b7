//! G3 of docs/cases.md: what an Agent's Pod asks for beyond a plain agent's needs is taken from people who could create such a Pod, and
//! from nobody else. Every row of the product's table is tried on the API server's policy, which is written from it.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::secrets::ANNOTATIONS;
use drawbridge::workloads::agent::privileges::{PRIVILEGES, Privilege, Scope, Test};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use webhook_tests::{Objects, TestNamespace, wait_gone};

use super::people::{self, rule};
use super::{resource, team};

const POLICY: &str = "drawbridge-agent-pods";

/// An Agent whose Pod has these members.
fn agent(name: &str, pod: Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": name},
        "spec": {
            "imageSource": {"image": "ghcr.io/acme/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent", "image": "set by operator"}]}},
        },
    });
    json_patch::merge(&mut object["spec"]["podTemplateSpec"]["spec"], &pod);
    object
}

/// Somebody who may write Agents, and perhaps create `runs` (group and resource).
async fn person(ns: &TestNamespace, name: &str, runs: Option<(&str, &str)>) -> Result<Objects> {
    let mut rules = vec![rule("agent.kagenti.dev", "agents", &["get", "create", "update", "patch", "delete"])];
    rules.extend(runs.map(|(group, resource)| rule(group, resource, &["create"])));
    let probe = if runs.is_some() { json!({"hostNetwork": true}) } else { json!({}) };
    let person = people::person(ns, name, &rules, &agent("probe", probe)).await?;
    if runs.is_none() {
        people::refusal_begins(POLICY, &person, &agent("probe", json!({"hostNetwork": true}))).await?;
    }
    Ok(person)
}

/// Values that ask for the privilege, and whether the member is there at all.
fn asking(test: Test) -> Vec<Option<Value>> {
    match test {
        Test::True => vec![Some(json!(true))],
        Test::False => vec![Some(json!(false))],
        Test::Zero => vec![Some(json!(0))],
        Test::NotZero => vec![Some(json!(8080))],
        Test::Is(text) => vec![Some(json!(text))],
        Test::NoneOf(_) | Test::Text => vec![Some(json!("something"))],
        Test::StartsWith(beginning) => vec![Some(json!(format!("{beginning}x")))],
        Test::AbsentOrStartsWith(beginning) => vec![None, Some(json!("")), Some(json!(format!("{beginning}x")))],
        Test::MembersBeyond(_) => vec![
            Some(json!({"name": "v", "nfs": {"server": "s", "path": "/"}})),
            Some(json!({"name": "v", "csi": {"driver": "d"}})),
            Some(json!({"name": "v", "iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0}})),
        ],
        Test::Present => vec![Some(json!({"name": "kernel.shm_rmid_forced", "value": "1"}))],
        Test::ListLacks(_) => vec![Some(json!(["NET_RAW"]))],
    }
}

/// The members of a Pod or a container in which `value` stands at `path`, with what the schema wants beside it.
fn standing(path: &[&str], value: Option<Value>) -> Value {
    match path {
        [] => value.unwrap_or_default(),
        ["*", rest @ ..] => {
            let mut item = standing(rest, value);
            if let Some(&("hostPath" | "projected" | "persistentVolumeClaim" | "ephemeral" | "resourceClaimName")) =
                rest.first()
            {
                item["name"] = json!("files");
            } else if rest.first() == Some(&"hostPort") {
                item["containerPort"] = json!(8080);
            } else if rest.first() == Some(&"key") {
                item["operator"] = json!("Exists");
            }
            json!([item])
        }
        [_] if value.is_none() => json!({}),
        // A field that Kubernetes does not know there would be refused before anybody asks for rights.
        ["hostPath"] => json!({ "hostPath": { "path": "/" } }),
        ["serviceAccountToken"] => json!({ "serviceAccountToken": { "path": "token" } }),
        ["nodeAffinity"] => json!({ "nodeAffinity": {} }),
        [member, rest @ ..] => {
            let mut inner = standing(rest, value);
            match *member {
                "dataSource" | "dataSourceRef" => inner["kind"] = json!("PersistentVolumeClaim"),
                "httpGet" | "tcpSocket" => inner["port"] = json!(8080),
                _ => {}
            }
            json!({ *member: inner })
        }
    }
}

/// Agents that ask for the privilege, at every place where it can be asked for.
fn agents_asking(privilege: &Privilege) -> Vec<Value> {
    let path: Vec<_> = privilege.path.split('/').collect();
    let mut agents = Vec::new();
    for value in asking(privilege.test) {
        match privilege.of {
            Scope::Pod => agents.push(agent("weather", standing(&path, value))),
            Scope::Container => {
                for kind in ["containers", "initContainers"] {
                    let mut last = json!({"name": "last", "image": "a/b:1"});
                    json_patch::merge(&mut last, &standing(&path, value.clone()));
                    if kind == "initContainers" {
                        // Of those that end, none has a probe.
                        last["restartPolicy"] = json!("Always");
                    }
                    let mut pod = json!({"containers": [{"name": "agent", "image": "set by operator"}]});
                    pod[kind] = json!([{"name": "agent-0", "image": "a/b:1"}, last]);
                    agents.push(agent("weather", pod));
                }
            }
            Scope::Annotations => {
                for place in ANNOTATIONS {
                    let member = json!({format!("{}agent", privilege.path): value});
                    let members = place.rsplit('/').fold(member, |inner, name| json!({name: inner}));
                    let mut object = agent("weather", json!({}));
                    json_patch::merge(&mut object, &members);
                    agents.push(object);
                }
            }
        }
    }
    agents
}

#[tokio::test]
async fn g3_every_power_takes_the_right_to_create_pods() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", None).await?;
    let has = person(&ns, "has", Some(("", "pods"))).await?;
    let deploys = person(&ns, "deploys", Some(("apps", "deployments"))).await?;
    for privilege in PRIVILEGES {
        for object in agents_asking(privilege) {
            let answer = people::tried(&lacks, &object).await?;
            if privilege.weight.needs_right() {
                let message = people::refused_by(POLICY, answer).with_context(|| object.to_string())?;
                let field = match privilege.of {
                    Scope::Annotations => privilege.path.to_owned(),
                    Scope::Pod | Scope::Container => privilege.path.replace("/*", "[]").replace('/', "."),
                };
                ensure!(message.contains(&field), "{message} does not name {field}");
            } else {
                answer.with_context(|| object.to_string())?;
            }
            people::tried(&has, &object).await?.with_context(|| object.to_string())?;
        }
    }
    people::tried(&deploys, &agent("weather", json!({"hostPID": true}))).await??;
    let two = agent("weather", json!({"hostPID": true, "nodeName": "n1"}));
    let message = people::refused_by(POLICY, people::tried(&lacks, &two).await?)?;
    ensure!(message.contains("what stands at hostPID, nodeName is more"), "{message}");
    Ok(())
}

/// What agents ask for every day is no power.
#[tokio::test]
async fn what_a_plain_agent_needs_takes_no_right() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", None).await?;
    for pod in [
        json!({}),
        json!({"automountServiceAccountToken": false, "hostNetwork": false, "shareProcessNamespace": false}),
        json!({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}),
        json!({"affinity": {"podAntiAffinity": {}}, "topologySpreadConstraints": []}),
        json!({"securityContext": {"runAsUser": 2000, "fsGroup": 3000, "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"}, "seLinuxOptions": {"level": "s0:c1,c2", "type": "container_t"}}}),
        json!({"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}},
                {"name": "both", "projected": {"sources": [{"downwardAPI": {}}, {"configMap": {"name": "c"}}]}},
                {"name": "room", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}}}}],
            "containers": [{"name": "agent", "image": "set by operator", "ports": [{"containerPort": 8000}],
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8000}},
                "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "procMount": "Default",
                    "readOnlyRootFilesystem": false, "runAsUser": 2000}}]}),
    ] {
        people::tried(&lacks, &agent("weather", pod.clone())).await?.with_context(|| pod.to_string())?;
    }
    Ok(())
}

/// What the webhook notes on Pods is taken back from them: whoever could write it would have any ServiceAccount, and ports of the node.
#[tokio::test]
async fn g5_nobody_brings_the_note_of_what_was_injected() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", None).await?;
    let note =
        json!({"kagenti.io/authbridge-status": r#"{"version":1,"serviceAccount":{"now":"weather","was":"powerful"}}"#});
    for members in [json!({"annotations": note}), json!({"podTemplateSpec": {"metadata": {"annotations": note}}})] {
        let mut object = agent("weather", json!({}));
        json_patch::merge(&mut object["spec"], &members);
        let answer = people::tried(&lacks, &object).await?;
        let told = answer.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(told.contains("kagenti.io/authbridge-status") && told.contains("What to do: remove it"), "{told:?}");
    }
    Ok(())
}

/// A change is asked about when it is one of what runs: also of the image, which would run with what was granted to another.
#[tokio::test]
async fn changes_are_asked_about_when_they_change_what_runs() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", None).await?;
    ns.accepts(&agent("granted", json!({"hostNetwork": true}))).await?;
    lacks.accepts(&agent("plain", json!({}))).await?;
    let change = async |name: &str, patch: Value| people::patched(&lacks, "Agent", name, patch).await;

    let image = json!({"spec": {"imageSource": {"image": "ghcr.io/mallory/shell:v1"}}});
    people::refused_by(POLICY, change("granted", image.clone()).await)?;
    let build = json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": "shell"}}}});
    people::refused_by(POLICY, change("granted", build).await)?;
    let alias = json!({"spec": {"imageSource": null, "image": "ghcr.io/mallory/shell:v1"}});
    people::refused_by(POLICY, change("granted", alias).await)?;
    let environment = json!({"spec": {"podTemplateSpec": {"spec": {"containers": [
        {"name": "agent", "image": "set by operator", "command": ["sh"]}]}}}});
    people::refused_by(POLICY, change("granted", environment).await)?;
    let power = json!({"spec": {"podTemplateSpec": {"spec": {"hostNetwork": true}}}});
    people::refused_by(POLICY, change("plain", power).await)?;
    let key = "container.apparmor.security.beta.kubernetes.io/agent";
    people::refused_by(POLICY, change("plain", json!({"spec": {"annotations": {key: "unconfined"}}})).await)?;

    change("plain", image).await?;
    change("granted", json!({"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 3}})).await?;
    change("granted", json!({"spec": {"podTemplateSpec": {"spec": {"hostNetwork": null}}}})).await?;
    Ok(())
}

#[tokio::test]
async fn deletion_and_the_garbage_collector_need_no_more_right_than_before() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", None).await?;
    let agents = || kube::Api::<DynamicObject>::namespaced_with(ns.client(), ns.name(), &resource("Agent"));
    ns.accepts(&agent("first", json!({"hostNetwork": true}))).await?;
    people::api(&lacks, "Agent").delete("first", &DeleteParams::default()).await?;
    wait_gone(&agents(), "first").await?;
    let stored = ns.accepts(&agent("second", json!({"hostNetwork": true}))).await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dependent", "ownerReferences": [
        {"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "second", "uid": stored.metadata.uid,
            "blockOwnerDeletion": true}]}}))
        .await?;
    agents().delete("second", &DeleteParams::foreground()).await?;
    wait_gone(&agents(), "second").await?;
    wait_gone(&ns.api::<ConfigMap>(), "dependent").await?;
    Ok(())
}
