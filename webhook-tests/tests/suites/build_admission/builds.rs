//! An AgentBuild that is created: B1, B2, B7 to B31.

use anyhow::{Result, ensure};
use drawbridge::domain::keys;
use serde_json::{Value, json};

use super::{
    TEMPLATE, accepted, annotation, config_map, minimal, origin, own, refused, settled, step_names, team, template,
    with,
};

fn custom(steps: Value) -> Value {
    json!({"pipeline": {"steps": steps}})
}

fn clone_step() -> Value {
    json!([{"name": "clone", "configMap": "github-clone-step"}])
}

#[tokio::test]
async fn cases_b1_and_b2_the_smallest_build_is_completed_and_nothing_derived_is_written() -> Result<()> {
    let ns = team().await?;
    let stored = ns.accepts(&minimal("weather")).await?;
    let spec = &stored.data["spec"];
    assert_eq!(spec["mode"], "dev");
    assert_eq!(spec["source"]["sourceRevision"], "main");
    assert_eq!(spec["pipeline"]["namespace"], "kagenti-system");
    let names = ["github-clone", "folder-verification", "dockerfile-check", "buildah-build", "buildpack-step"];
    assert_eq!(step_names(&stored), names, "{spec}");
    ensure!(spec["pipeline"]["steps"][3]["whenExpressions"][0]["operator"] == "in", "{spec}");
    ensure!(spec["pipeline"]["steps"].as_array().unwrap().iter().any(|step| step.get("parameters").is_some()));
    assert_eq!(origin(&stored), "template/dev");
    let from = annotation(&stored, keys::ANNOTATION_PIPELINE_TEMPLATE);
    let hash = from.strip_prefix("kagenti-system/pipeline-template-dev@").unwrap();
    ensure!(hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{from}");
    assert_eq!(spec["pipeline"].get("parameters"), None, "B2");
    assert_eq!(stored.metadata.generation, Some(1));
    Ok(())
}

#[tokio::test]
async fn cases_b7_to_b9_steps_of_ones_own() -> Result<()> {
    let ns = team().await?;
    let (stored, _) = accepted(&ns, "B7", &with("a", custom(clone_step()))).await?;
    assert_eq!(stored.data["spec"]["pipeline"]["steps"], clone_step(), "B7: exactly as given");
    assert_eq!(origin(&stored), "user");
    let mut claims = with("a", custom(clone_step()));
    claims["metadata"]["annotations"] = json!({keys::ANNOTATION_PIPELINE_ORIGIN: "template/prod"});
    let (stored, _) = accepted(&ns, "B8", &claims).await?;
    assert_eq!(origin(&stored), "user", "B8");
    claims["spec"]["mode"] = json!("prod");
    refused(&ns, "B8", &claims, &["spec.pipeline.steps "]).await?;
    let mut own = with("a", custom(clone_step()));
    own["spec"]["mode"] = json!("prod");
    refused(&ns, "B9", &own, &["spec.pipeline.steps must not be given in mode prod", "vagentbuild.kb.io"]).await?;
    Ok(())
}

#[tokio::test]
async fn cases_b10_to_b18_modes_templates_and_what_they_need() -> Result<()> {
    let ns = team().await?;
    let parameter = |name: &str, value: &str| json!({"pipeline": {"parameters": [{"name": name, "value": value}]}});
    let prod = |mut members: Value| {
        members["mode"] = json!("prod");
        with("a", members)
    };
    for name in ["FAIL_ON", "push-image"] {
        refused(&ns, "B10", &prod(parameter(name, "x")), &["spec.pipeline.parameters[0]", name]).await?;
    }
    let elsewhere = json!({"pipeline": {"namespace": ns.name()}});
    refused(&ns, "B11", &prod(elsewhere.clone()), &["spec.pipeline.namespace "]).await?;
    refused(&ns, "B12", &with("a", json!({"mode": "custom"})), &["spec.pipeline.steps "]).await?;
    refused(&ns, "B13", &with("a", json!({"mode": "staging"})), &["spec.mode", "buildpack-dev"]).await?;
    let template_name = format!("{}/pipeline-template-dev", ns.name());
    let message = refused(&ns, "B14", &with("a", elsewhere), &["dev", &template_name, "not found"]).await?;
    ensure!(message.contains("vagentbuild.kb.io"), "the validating webhook says it: {message}");
    let status = ns.rejects(&own(&ns, "a", json!({}))).await?;
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"), "B14");
    refused(&ns, "B16", &with("a", json!({"buildOutput": null})), &["image"]).await?;
    let mut image = parameter("image", "r.example/x:1");
    image["buildOutput"] = Value::Null;
    accepted(&ns, "B17", &with("a", image)).await?;
    accepted(&ns, "B18", &with("a", json!({"source": {"sourceSubfolder": null}}))).await?;
    Ok(())
}

#[tokio::test]
async fn case_b15_a_template_that_is_none_is_named() -> Result<()> {
    let ns = team().await?;
    let name = format!("{}/pipeline-template-dev", ns.name());
    ns.apply(&config_map("pipeline-template-dev", json!({}), "other.json", "{}").to_string()).await?;
    let says = |text: &'static str| {
        let name = name.clone();
        move |answer: &Result<_, String>| {
            answer.as_ref().is_err_and(|message| message.contains(&name) && message.contains(text))
        }
    };
    settled(&ns, &own(&ns, "a", json!({})), says("template.json")).await?;
    ns.apply(&template("dev", "{\"name\": ").to_string()).await?;
    settled(&ns, &own(&ns, "a", json!({})), says("not JSON")).await?;
    ns.apply(&template("dev", TEMPLATE).to_string()).await?;
    settled(&ns, &own(&ns, "a", json!({})), Result::is_ok).await?;
    Ok(())
}

/// B19 is overridden: an absent tag is the schema's to refuse, so the tag is empty here.
#[tokio::test]
async fn case_b19_one_refusal_lists_everything_with_its_path() -> Result<()> {
    let ns = team().await?;
    let twice =
        json!([{"name": "a", "configMap": "github-clone-step"}, {"name": "a", "configMap": "github-clone-step"}]);
    let mut members = custom(twice);
    members["buildOutput"] = json!({"imageTag": "", "imageRegistry": "Not A Registry"});
    let message = refused(&ns, "B19", &with("a", members.clone()), &[]).await?;
    let lines: Vec<_> = message.lines().skip(1).collect();
    for path in ["spec.buildOutput.imageTag ", "spec.buildOutput.imageRegistry ", "spec.pipeline.steps[1].name "] {
        ensure!(lines.iter().filter(|line| line.starts_with(path)).count() == 1, "{path}: {message}");
    }
    ensure!(lines.iter().all(|line| line.contains("What to do: ")), "{message}");
    members["buildOutput"]["imageTag"] = Value::Null;
    refused(&ns, "B19", &with("a", members), &["spec.buildOutput.imageTag: Required value"]).await?;
    Ok(())
}

#[tokio::test]
async fn cases_b20_to_b29_fields_that_cannot_be() -> Result<()> {
    let ns = team().await?;
    let source = |key: &str, value: &str| json!({"source": {key: value}});
    let parameters = |value: &str| json!({"pipeline": {"parameters": [{"name": "a", "value": value}]}});
    let steps = |first: Value, second: Value| custom(json!([first, second]));
    let one = |name: &str| json!({"name": name, "configMap": "github-clone-step"});
    let reads = |name: &str, of: &str| {
        json!({"name": name, "configMap": "github-clone-step",
            "parameters": [{"name": "revision", "value": format!("$(tasks.{of}.results.commit)")}]})
    };
    let off = json!({"name": "first", "configMap": "github-clone-step", "enabled": false});
    let when = json!({"name": "a", "configMap": "github-clone-step",
        "whenExpressions": [{"input": "x", "operator": "in", "values": []}]});
    let long = "a".repeat(64);
    let table = [
        ("B21", source("sourceSubfolder", "../x"), "spec.source.sourceSubfolder "),
        ("B21", source("sourceSubfolder", "/x"), "spec.source.sourceSubfolder "),
        ("B21", source("sourceSubfolder", "a;b"), "spec.source.sourceSubfolder "),
        ("B21", source("sourceSubfolder", "$(id)"), "spec.source.sourceSubfolder "),
        ("B22", source("sourceRevision", "--upload-pack=x"), "spec.source.sourceRevision "),
        ("B23", json!({"source": {"sourceCredentials": {}}}), "spec.source.sourceCredentials.name"),
        ("B24", steps(one("Git_Clone"), one("b")), "spec.pipeline.steps[0].name "),
        ("B24", steps(one("a"), one(&long)), "spec.pipeline.steps[1].name "),
        ("B24", steps(one("a"), one("a")), "spec.pipeline.steps[1].name "),
        ("B25", steps(when, one("b")), "spec.pipeline.steps[0].whenExpressions[0].values"),
        ("B26", parameters("$(tasks.a.results.b)"), "spec.pipeline.parameters[0].value "),
        ("B27", steps(reads("first", "later"), one("later")), "spec.pipeline.steps[0].parameters[0].value "),
        ("B28", steps(off, reads("second", "first")), "spec.pipeline.steps[1].parameters[0].value "),
    ];
    for (case, members, path) in table {
        refused(&ns, case, &with("a", members), &[path]).await?;
    }
    let token = source("sourceRepository", "https://user:tok4711@host/r.git");
    let message = refused(&ns, "B20", &with("a", token), &["spec.source.sourceRepository "]).await?;
    ensure!(!message.contains("tok4711"), "B20: the token is repeated: {message}");
    refused(&ns, "B29", &minimal(&"a".repeat(49)), &["metadata.name "]).await?;
    refused(&ns, "B29", &minimal("a.b"), &["metadata.name "]).await?;
    Ok(())
}

/// B30 is overridden: the API server prunes unknown keys before admission and warns itself.
#[tokio::test]
async fn cases_b30_and_b31_what_has_no_effect_is_warned_of() -> Result<()> {
    let ns = team().await?;
    let (stored, warnings) = accepted(&ns, "B30", &with("a", json!({"model": "prod"}))).await?;
    ensure!(warnings.iter().any(|text| text.contains("unknown field \"spec.model\"")), "{warnings:?}");
    assert_eq!(stored.data["spec"].get("model"), None);
    let unused = json!({"pipeline": {"parameters": [{"name": "FOO", "value": "bar"}]}});
    let (_, warnings) = accepted(&ns, "B31", &with("a", unused)).await?;
    ensure!(warnings.iter().any(|text| text.starts_with("ParameterUnused: ") && text.contains("FOO")), "{warnings:?}");
    let (_, warnings) = accepted(&ns, "6.5", &with("a", json!({"buildOutput": {"imageTag": "latest"}}))).await?;
    ensure!(warnings.iter().any(|text| text.starts_with("MovingReference: ")), "{warnings:?}");
    Ok(())
}
