//! Input nobody should send, through the API server: refused in words, or accepted with a warning while the object itself is right.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{TASK, TEMPLATE, accepted, own, own_template, refused, settled, step, team, template, with};

type Holds = Box<dyn Fn(&Result<DynamicObject, String>) -> bool>;

fn refuses(says: &'static str) -> Holds {
    Box::new(move |answer| answer.as_ref().is_err_and(|message| message.contains(says)))
}

#[tokio::test]
async fn templates_that_cannot_be_used_are_named_with_what_is_wrong() -> Result<()> {
    let ns = team().await?;
    ns.accepts(&step("own-step", TASK)).await?;
    let table = [
        ("steps: []", "not JSON"),
        ("[]", "not a JSON object"),
        (r#"{"name": "t"}"#, "steps"),
        (r#"{"name": "t", "steps": []}"#, "at least one step"),
        (r#"{"name": "t", "steps": [{"name": "Only_One", "configMap": "own-step"}]}"#, "steps[0].name"),
        (r#"{"name": "t", "steps": [{"name": "a"}]}"#, "steps[0].configMap"),
        (r#"{"name": "t", "steps": [{"name": "a", "configMap": "own-step", "enabled": "no"}]}"#, "steps[0].enabled"),
        (
            r#"{"name": "t", "steps": [{"name": "a", "configMap": "own-step", "whenExpressions": [{"input": "x", "operator": "eq", "values": ["y"]}]}]}"#,
            "operator",
        ),
    ];
    for (text, says) in table {
        ns.apply(&template("dev", text).to_string()).await?;
        settled(&ns, &own(&ns, "a", json!({})), refuses(says)).await?;
    }
    Ok(())
}

/// What only the ConfigMaps have to put right is a warning: they may still come.
#[tokio::test]
async fn step_config_maps_that_are_missing_or_wrong_are_warned_of() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let table = [
        ("steps:\n  - name: a\n    image: b\n    script: c\n    resources: {}\n", "computeResources"),
        (
            "volumes:\n  - name: v\n    hostPath: {path: /}\nsteps:\n  - name: a\n    image: b\n    script: c\n",
            "hostPath",
        ),
        ("steps:\n  - name: a\n    image: b\n    script: c\n    securityContext: {privileged: true}\n", "privileged"),
        (
            "steps:\n  - name: a\n    image: b\n    script: c\n    volumeMounts: [{name: v, mountPath: /workspace/source}]\nvolumes: [{name: v, emptyDir: {}}]\nworkspaces: [{name: source}]\n",
            "/workspace/source",
        ),
        ("steps: [\n", "task-spec.yaml"),
        ("params: [{name: needed}]\nsteps:\n  - name: a\n    image: b\n    script: c\n", "needed"),
    ];
    for (text, says) in table {
        ns.apply(&step("own-step", text).to_string()).await?;
        let object = own(&ns, "a", json!({}));
        let begun = std::time::Instant::now();
        loop {
            let answer = ns.create(&object, true).await?;
            let told = answer.warnings.join("\n")
                + &answer.result.as_ref().err().map_or(String::new(), |status| status.message.clone());
            if told.contains(says) {
                break;
            }
            ensure!(begun.elapsed() < webhook_tests::patience::patience(), "{says}: {told}");
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    }
    let missing = r#"{"name": "t", "steps": [{"name": "a", "configMap": "not-there"}]}"#;
    ns.apply(&template("dev", missing).to_string()).await?;
    settled(&ns, &own(&ns, "a", json!({})), |answer| {
        answer.as_ref().is_ok_and(|object| object.data["spec"]["pipeline"]["steps"][0]["configMap"] == "not-there")
    })
    .await?;
    let (_, warnings) = accepted(&ns, "6.5", &own(&ns, "a", json!({}))).await?;
    ensure!(
        warnings.iter().any(|text| text.starts_with("StepMissing: ") && text.contains("not-there")),
        "{warnings:?}"
    );
    let unknown = r#"{"name": "t", "steps": [{"name": "a", "configMap": "own-step", "defaultParameters": [{"name": "needed", "value": "{{.nothing}}"}]}]}"#;
    ns.apply(&template("dev", unknown).to_string()).await?;
    let object = own(&ns, "a", json!({}));
    let begun = std::time::Instant::now();
    loop {
        let answer = ns.create(&object, true).await?;
        let told = answer.warnings.join("\n")
            + &answer.result.as_ref().err().map_or(String::new(), |status| status.message.clone());
        if told.contains("PlaceholderUnknown") {
            break;
        }
        ensure!(begun.elapsed() < webhook_tests::patience::patience(), "{told}");
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    ns.apply(&template("dev", TEMPLATE).to_string()).await?;
    Ok(())
}

/// G4: values are data. What Tekton or a tool could take for something else is refused, the rest arrives as it is.
#[tokio::test]
async fn g4_parameters_and_sources_that_try_to_be_more_than_data() -> Result<()> {
    let ns = team().await?;
    let source = |key: &str, value: &str| with("a", json!({"source": {key: value}}));
    for url in [
        "ext::sh -c touch% /tmp/x",
        "file:///etc/passwd",
        "http://github.com/a/b.git",
        "--upload-pack=x",
        "https://host/a b",
        "https://host/$(id)",
        "https://host/a\"b",
        "https://host/`id`",
        "https://host/a\nb",
    ] {
        refused(&ns, "G4", &source("sourceRepository", url), &["spec.source.sourceRepository "]).await?;
    }
    for revision in ["-x", "a..b", "a b", "a\"b", "$(x)", "a\nb"] {
        refused(&ns, "G4", &source("sourceRevision", revision), &["spec.source.sourceRevision "]).await?;
    }
    let parameter = |value: &str| with("a", json!({"pipeline": {"parameters": [{"name": "a", "value": value}]}}));
    for value in ["$(context.pipelineRun.name)", "$(params.x)", "x$(tasks.a.results.b)"] {
        refused(&ns, "G4", &parameter(value), &["spec.pipeline.parameters[0].value "]).await?;
    }
    for value in ["--flag", "a\"b'c", "a;b|c&d", "line\nline", "`id`", "$HOME"] {
        let (stored, _) = accepted(&ns, "G4", &parameter(value)).await?;
        assert_eq!(stored.data["spec"]["pipeline"]["parameters"][0]["value"], value, "as it is");
    }
    let registry = |value: &str| with("a", json!({"buildOutput": {"imageRegistry": value}}));
    for value in ["host@evil", "host/../x", "https://host", "host:port", "", "-host"] {
        refused(&ns, "G4", &registry(value), &["spec.buildOutput.imageRegistry "]).await?;
    }
    let arguments = |name: &str, value: &str| with("a", json!({"buildArgs": [{"name": name, "value": value}]}));
    refused(&ns, "6.5", &arguments("A-B", "x"), &["spec.buildArgs[0].name "]).await?;
    refused(&ns, "6.5", &arguments("A", "x\ny"), &["spec.buildArgs[0].value "]).await?;
    Ok(())
}

#[tokio::test]
async fn size_is_refused_in_few_words() -> Result<()> {
    let ns = team().await?;
    let steps: Vec<Value> =
        (0..1000).map(|n| json!({"name": format!("s{n}"), "configMap": "github-clone-step"})).collect();
    let message =
        refused(&ns, "1,000 steps", &with("a", json!({"pipeline": {"steps": steps}})), &["spec.pipeline.steps"])
            .await?;
    ensure!(message.len() < 8192, "{} bytes", message.len());
    let long = "x".repeat(1 << 20);
    let value = with("a", json!({"pipeline": {"parameters": [{"name": "a", "value": long}]}}));
    let message = refused(&ns, "1 MiB", &value, &["spec.pipeline.parameters[0].value"]).await?;
    ensure!(message.len() < 4096, "{} bytes", message.len());
    Ok(())
}

#[tokio::test]
async fn shapes_that_the_schema_refuses_are_all_named_at_once() -> Result<()> {
    let ns = team().await?;
    let object = with(
        "a",
        json!({
            "mode": "staging",
            "source": "x",
            "buildOutput": {"imageTag": null},
            "pipeline": {"steps": [{"name": "a"}, {"configMap": "b"}]},
        }),
    );
    let paths = [
        "spec.mode",
        "spec.source",
        "spec.buildOutput.imageTag",
        "spec.pipeline.steps[0].configMap",
        "spec.pipeline.steps[1].name",
    ];
    refused(&ns, "a value of another type", &object, &paths).await?;
    Ok(())
}
