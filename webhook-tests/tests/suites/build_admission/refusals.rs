//! What `kubectl apply` says for typical mistakes (docs/reference/refusals.md, one row each) and for the samples:
//! printed from the control plane into docs/reference/refusals.md, and compared with it. `DRAWBRIDGE_REFRESH=1` writes it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use webhook_tests::TestNamespace;

use super::{control_plane, minimal, team};

const BEGIN: &str = "<!-- begin refusals -->\n";
const END: &str = "<!-- end refusals -->";

/// One mistake: what is written differently from the sample, and the object.
struct Mistake {
    what: &'static str,
    object: Value,
}

fn build(what: &'static str, members: Value) -> Mistake {
    let mut object = minimal("weather-build");
    json_patch::merge(&mut object, &json!({"spec": members}));
    Mistake { what, object }
}

fn agent(what: &'static str, members: Value) -> Mistake {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "Agent",
        "metadata": {"name": "weather"},
        "spec": {
            "imageSource": {"buildRef": {"name": "weather-build"}},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
        },
    });
    json_patch::merge(&mut object, &json!({"spec": members}));
    Mistake { what, object }
}

/// The rows of 6.6, in its order.
fn mistakes(ns: &TestNamespace) -> Vec<Mistake> {
    let step = |more: Value| {
        let mut step = json!({"name": "clone", "configMap": "github-clone-step"});
        json_patch::merge(&mut step, &more);
        step
    };
    let steps = |steps: Value| json!({"pipeline": {"steps": steps}});
    let when = |operator: &str, values: Value| {
        steps(json!([step(json!({"whenExpressions": [{"input": "a", "operator": operator, "values": values}]}))]))
    };
    let parameter = |value: &str| json!({"pipeline": {"parameters": [{"name": "image", "value": value}]}});
    let mut nothing = minimal("weather-build");
    nothing["spec"] = json!({});
    let mut own_steps = steps(json!([step(json!({}))]));
    own_steps["source"] = json!({"sourceRepository": null});
    vec![
        Mistake { what: "spec: {}", object: nothing },
        build("no source.sourceRepository", json!({"source": {"sourceRepository": null}})),
        build("no source.sourceRepository, with steps of one's own", own_steps),
        build("no source.sourceSubfolder", json!({"source": {"sourceSubfolder": null}})),
        build("no buildOutput and no parameter image", json!({"buildOutput": null})),
        build("no buildOutput.imageTag", json!({"buildOutput": {"imageTag": null}})),
        build("mode: staging", json!({"mode": "staging"})),
        build(
            "pipeline.namespace: team1, which has no template for the mode",
            json!({"pipeline": {"namespace": ns.name()}}),
        ),
        build("a step without configMap", steps(json!([step(json!({"configMap": null}))]))),
        build("operator: eq", when("eq", json!(["b"]))),
        build("values: [] in a when expression", when("in", json!([]))),
        build("step name Git_Clone", steps(json!([step(json!({"name": "Git_Clone"}))]))),
        build("two steps of one name", steps(json!([step(json!({})), step(json!({}))]))),
        build("value: \"$(FOO)\" in pipeline.parameters", parameter("$(FOO)")),
        build("a result in pipeline.parameters", parameter("$(tasks.clone.results.commit)")),
        build("sourceCredentials: {}", json!({"source": {"sourceCredentials": {}}})),
        build(
            "sourceCredentials that name a missing Secret",
            json!({"source": {"sourceCredentials": {"name": "not-there"}}}),
        ),
        build(
            "a token in sourceRepository",
            json!({"source": {"sourceRepository": "https://me:s3cret@github.com/kagenti/agent-examples.git"}}),
        ),
        agent("Agent: image and buildRef", json!({"imageSource": {"image": "ghcr.io/acme/weather:v1"}})),
        agent("Agent: no containers", json!({"podTemplateSpec": {"spec": {"containers": []}}})),
    ]
}

async fn said(ns: &TestNamespace, input: &str) -> Result<String> {
    let cp = control_plane().await?;
    let output = cp.kubectl(cp.admin(), &["-n", ns.name(), "apply", "--dry-run=server", "-f", "-"], input).await?;
    let text = format!("{}{}", output.stderr, output.stdout).replace(ns.name(), "team1");
    ensure!(!text.contains("s3cret"), "a credential is repeated: {text}");
    Ok(text.trim_end().to_owned())
}

#[tokio::test]
async fn the_reference_says_what_kubectl_apply_says() -> Result<()> {
    let ns = team().await?;
    let mut block = String::new();
    for Mistake { what, object } in mistakes(&ns) {
        let answer = said(&ns, &object.to_string()).await?;
        let right = answer.ends_with("created (server dry run)");
        ensure!(
            right == ["no source.sourceSubfolder", "sourceCredentials that name a missing Secret"].contains(&what),
            "{what}: {answer}"
        );
        block.push_str(&format!("**{what}**\n\n```text\n{answer}\n```\n\n"));
    }
    let path = webhook_tests::corpus::root().join("../../docs/reference/refusals.md");
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).context("refusals.md: no begin of refusals")?;
    let (now, after) = rest.split_once(END).context("refusals.md: no end of refusals")?;
    if std::env::var_os("DRAWBRIDGE_REFRESH").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{block}{END}{after}"))?;
        return Ok(());
    }
    ensure!(
        now == block,
        "the answers of docs/reference/refusals.md are out of date: run this test with DRAWBRIDGE_REFRESH=1. Now:\n{block}"
    );
    Ok(())
}

#[tokio::test]
async fn the_samples_are_accepted_without_a_word_of_warning() -> Result<()> {
    let ns = team().await?;
    let samples = webhook_tests::corpus::root().join("../../manifests/samples");
    for name in ["weather-agent-build.yaml", "weather-built-agent.yaml"] {
        let text = std::fs::read_to_string(samples.join(name)).with_context(|| name.to_owned())?;
        // Each test has a namespace of its own.
        let answer = said(&ns, &text.replace("namespace: default", &format!("namespace: {}", ns.name()))).await?;
        ensure!(
            answer.lines().all(|line| line.ends_with("created (server dry run)") || line.contains("BuildUnknown")),
            "{name}: {answer}"
        );
    }
    Ok(())
}
