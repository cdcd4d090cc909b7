//! Objects of several groups that are run under one name, on a real control plane: whoever applies one that wants the Deployment of another is
//! told so at once, at creation and when either of the two changes, by a webhook that knows of the others nothing but their names.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{Objects, TestNamespace};

use crate::agents::stage::shared;

const MARK: &str = "NameConflict: ";

/// An object of that kind, of which nothing else is said; `more` changes what is run.
fn object(kind: &str, name: &str, more: bool) -> Value {
    let image = if more { "example.com/weather:v2" } else { "example.com/weather:v1" };
    let (api_version, kind, spec) = match kind {
        "kagenti" => ("agent.kagenti.dev/v1alpha1", "Agent", {
            let containers = json!([{"name": "agent"}]);
            json!({"imageSource": {"image": image}, "podTemplateSpec": {"spec": {"containers": containers}}})
        }),
        "beeai" => ("beeai.dev/v1", "Agent", json!({"image": image})),
        "kaos" => ("kaos.tools/v1alpha1", "Agent", json!({"modelAPI": "m", "model": image})),
        "ModelAPI" => ("kaos.tools/v1alpha1", "ModelAPI", json!({"mode": "Hosted", "hostedConfig": {"model": image}})),
        _ => ("kaos.tools/v1alpha1", "MCPServer", json!({"runtime": "python-string", "params": image})),
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The warnings about its name that whoever applies an object gets, which is not stored; `is_told`: until there is one.
pub(crate) async fn warned(ns: &TestNamespace, object: &Value, is_told: bool) -> Result<Vec<String>> {
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    let waiting = async {
        loop {
            tick.tick().await;
            let answer = ns.apply_one(object, true).await?;
            ensure!(answer.result.is_ok(), "a warning refuses nothing: {:?}", answer.result);
            let of_names: Vec<_> = answer.warnings.into_iter().filter(|text| text.starts_with(MARK)).collect();
            if of_names.is_empty() != is_told {
                return Ok(of_names);
            }
        }
    };
    // The webhook learns of objects by watches of its own, and nothing but its answers shows how far it is.
    let waited = tokio::time::timeout(patience(), waiting).await;
    waited
        .with_context(|| format!("{} {}: warned of, or not: {is_told}", object["kind"], object["metadata"]["name"]))?
}

#[tokio::test]
async fn whoever_takes_the_name_of_another_that_is_run_is_warned_when_it_is_applied() -> Result<()> {
    let cp = shared().await?;
    let (ns, elsewhere) = (cp.namespace("one-name").await?, cp.namespace("one-name-elsewhere").await?);
    let pairs = [
        (("kagenti", "agent-a"), ("kaos", "a")),
        (("kaos", "b"), ("beeai", "agent-b")),
        (("beeai", "agent-c"), ("kagenti", "agent-c")),
        (("ModelAPI", "d"), ("kagenti", "modelapi-d")),
        (("beeai", "mcpserver-e"), ("MCPServer", "e")),
    ];
    for ((first, its), (second, name)) in pairs {
        let (one, other) = (object(first, its, false), object(second, name, false));
        ns.accepts(&one).await?;
        let whose = |object: &Value, name: &str| {
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            format!("{} {name} of {}", text("kind"), text("apiVersion"))
        };
        let told = warned(&ns, &other, true).await?;
        ensure!(told.len() == 1 && told[0].contains(&whose(&one, its)), "{told:?}");
        ensure!(told[0].contains(&format!("of namespace {}", ns.name())), "{told:?}");
        ensure!(warned(&elsewhere, &other, false).await?.is_empty());
        // It is made all the same, and told again of when either changes.
        ns.accepts(&other).await?;
        let told = warned(&ns, &object(first, its, true), true).await?;
        ensure!(told.len() == 1 && told[0].contains(&whose(&other, name)), "{told:?}");
        let told = warned(&ns, &object(second, name, true), true).await?;
        ensure!(told.len() == 1 && told[0].contains(&whose(&one, its)), "{told:?}");
        // Once the other is gone, nobody is warned any more.
        Objects::delete(&ns, &other).await?;
        warned(&ns, &object(first, its, true), false).await?;
    }
    Ok(())
}
