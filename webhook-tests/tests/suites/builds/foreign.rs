//! A definition of the original operator's group that is not ours and has no status subresource: the status is then a part of the object, and
//! still nobody says of what an image was made but the operator. Numbers are of no case; the attack is one that was thought of later.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use webhook_tests::{Access, ControlPlane, Installation, Installing, Options, TestNamespace};

use super::stage::{define, digest};
use crate::doctor::finds_with;

const KIND: &str = "agentbuilds.beeai.beeai.dev";
const POLICY: &str = "drawbridge-build-records";

/// The definition: any field, two versions, no subresource.
fn definition() -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": KIND},
        "spec": {
            "group": "beeai.beeai.dev", "scope": "Namespaced",
            "names": {"plural": "agentbuilds", "singular": "agentbuild", "kind": "AgentBuild", "listKind": "AgentBuildList"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

fn build(version: &str, name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": format!("beeai.beeai.dev/{version}"), "kind": "AgentBuild", "metadata": {"name": name},
        "spec": {"repoUrl": "github.com/acme/weather.git", "revision": "a".repeat(40), "imageRegistry": "registry.example.com",
            "image": "weather", "imageTag": "v1"},
        "status": status,
    })
}

/// What somebody says of an image.
fn record() -> Value {
    json!({"image": "registry.example.com/weather", "digest": digest(), "commit": "a".repeat(40), "run": "weather-1"})
}

/// Somebody who holds every right on these builds, there.
struct Planter<'t> {
    cp: &'t ControlPlane,
    ns: &'t TestNamespace,
    access: Access,
}

impl Planter<'_> {
    async fn tries(&self, args: &[&str], input: &Value) -> Result<webhook_tests::kubectl::Output> {
        let all: Vec<&str> = args.iter().copied().chain(["-n", self.ns.name()]).collect();
        self.cp.kubectl(&self.access, &all, &input.to_string()).await
    }

    async fn may(&self, args: &[&str], input: &Value) -> Result<()> {
        let answer = self.tries(args, input).await?;
        ensure!(answer.success, "{args:?} {input}: {}", answer.stderr);
        Ok(())
    }

    async fn may_not(&self, args: &[&str], input: &Value) -> Result<()> {
        let answer = self.tries(args, input).await?;
        ensure!(!answer.success && answer.stderr.contains(POLICY), "{args:?} {input}: {}", answer.stderr);
        Ok(())
    }
}

const CREATE: [&str; 3] = ["create", "-f", "-"];
const APPLY: [&str; 3] = ["apply", "-f", "-"];
const REPLACE: [&str; 3] = ["replace", "-f", "-"];

#[tokio::test]
async fn nobody_plants_a_record_where_a_foreign_definition_has_no_status_of_its_own() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let objects = cp.objects().await?;
    define(&objects, &definition()).await?;
    let ns = cp.namespace("foreign").await?;
    // What was there before the policies.
    let old = build("v1", "old", &json!({"phase": "Succeeded", "provenance": record()}));
    ns.accepts(&old).await?;
    let installing = Installing { platform: "builds:\n  byContent: true\n".to_owned(), ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    let rights = json!({"apiGroups": ["beeai.beeai.dev"], "resources": ["agentbuilds"], "verbs": ["*"]});
    let planter = Planter { cp: &cp, ns: &ns, access: cp.person(&ns, "planter", &[rights]).await? };

    // What says nothing of how an image was made is taken as ever.
    planter.may(&CREATE, &build("v1", "plain", &json!({"phase": "Pending"}))).await?;
    planter.may(&CREATE, &build("v2", "bare", &json!({}))).await?;
    for version in ["v1", "v2"] {
        let resource = format!("agentbuilds.{version}.beeai.beeai.dev");
        for (member, value) in [("provenance", record()), ("earlier", json!([record()])), ("inputs", record())] {
            let planted = json!({member: value});
            planter.may_not(&CREATE, &build(version, "new", &planted)).await?;
            planter.may_not(&["apply", "--server-side", "-f", "-"], &build(version, "new", &planted)).await?;
            planter.may_not(&REPLACE, &build(version, "plain", &planted)).await?;
            let patch = json!({"status": planted}).to_string();
            planter.may_not(&["patch", &resource, "plain", "--type=merge", "-p", &patch], &Value::Null).await?;
        }
        // Neither another one in place of one that is there, nor none.
        let mut other = record();
        other["digest"] = json!(format!("sha256:{}", "6".repeat(64)));
        for value in [other, Value::Null] {
            let patch = json!({"status": {"provenance": value}}).to_string();
            planter.may_not(&["patch", &resource, "old", "--type=merge", "-p", &patch], &Value::Null).await?;
        }
    }

    // The same once more, as it is stored, and with a change of anything else.
    let get = planter.tries(&["get", KIND, "old", "-o", "json"], &Value::Null).await?;
    let mut stored: Value = serde_json::from_str(&get.stdout)?;
    ensure!(stored["status"]["provenance"] == record(), "{stored}");
    planter.may(&APPLY, &stored).await?;
    stored["metadata"]["labels"] = json!({"team": "weather"});
    stored["metadata"].as_object_mut().into_iter().for_each(|metadata| drop(metadata.remove("resourceVersion")));
    stored["status"]["phase"] = json!("Failed");
    planter.may(&REPLACE, &stored).await?;
    planter.may(&["delete", KIND, "old"], &Value::Null).await?;

    // The installation says what such a definition means, and misses none that nobody installed.
    let name = format!("CustomResourceDefinition {KIND}");
    let visit = finds_with(&cp, &["-n", "default"], (&name, "version v1 lacks subresource status: ")).await?;
    ensure!(!visit.names().iter().any(|name| name.ends_with(" agents.beeai.beeai.dev")), "{:?}", visit.names());
    Ok(())
}
