//! `spec.models` of a ModelAPI as people write it in YAML: what amounts become on their way through the API server, and that a file is told the same.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use webhook_tests::{programs, wait_for};

use super::{objects, ready};
use crate::agents::stage::shared;

/// Amounts as texts and as whole numbers; one text has a zero at its end, and one more digits than a fraction in binary holds.
const GOOD: &str = r#"
apiVersion: kaos.tools/v1alpha1
kind: ModelAPI
metadata:
  name: priced
spec:
  mode: Proxy
  models:
  - name: fast
    model: gpt-4o-mini
    provider: openai
    fallbacks: [slow]
    budget:
      limit: "2.50"
      period: 1d
    pricePerMillionTokens:
      input: "0.150001"
      output: 1
  - name: slow
    provider: anthropic
    budget:
      limit: 10
      period: 1mo
"#;

/// Each amount, by its path, and as its line stands in the object above.
const AMOUNTS: [(&str, &str, &str); 4] = [
    ("spec.models[0].budget.limit", "limit: \"2.50\"", "limit: 2.50"),
    ("spec.models[0].pricePerMillionTokens.input", "input: \"0.150001\"", "input: 0.150001"),
    ("spec.models[0].pricePerMillionTokens.output", "output: 1", "output: 1.5"),
    ("spec.models[1].budget.limit", "limit: 10", "limit: 1e-1"),
];

/// `drawbridge validate` of a file: exit code, and what it prints.
async fn validated(text: &str) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(["validate", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("a standard input")?.write_all(text.as_bytes()).await?;
    let output = child.wait_with_output().await?;
    let both = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&both).into_owned()))
}

#[tokio::test]
async fn amounts_are_kept_as_they_are_written_and_an_unquoted_fraction_is_refused_by_its_path() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-models").await?;
    let apply = async |text: &str| cp.kubectl(cp.admin(), &["apply", "-n", ns.name(), "-f", "-"], text).await;
    let answer = apply(GOOD).await?;
    ensure!(answer.success, "{}", answer.stderr);
    let (code, said) = validated(GOOD).await?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let stored = wait_for(&objects(&ns, "ModelAPI"), "priced", ready).await?;
    assert_eq!(
        stored.data["spec"]["models"],
        json!([
            {"name": "fast", "model": "gpt-4o-mini", "provider": "openai", "fallbacks": ["slow"],
                "budget": {"limit": "2.50", "period": "1d"},
                "pricePerMillionTokens": {"input": "0.150001", "output": 1}},
            {"name": "slow", "provider": "anthropic", "budget": {"limit": 10, "period": "1mo"}},
        ])
    );
    let file = ns.api::<ConfigMap>().get("litellm-config-priced").await?.data.unwrap_or_default();
    let file = file.into_values().collect::<String>();
    for line in [
        "    max_budget: 2.500000\n    budget_duration: \"1d\"\n",
        "    input_cost_per_token: 0.000000150001\n    output_cost_per_token: 0.000001000000\n",
        "    max_budget: 10.000000\n    budget_duration: \"1mo\"\n",
    ] {
        ensure!(file.contains(line), "{line} is not in {file}");
    }

    // A fraction without quotes is a number in binary before anybody of us sees it.
    for (path, whole, fraction) in AMOUNTS {
        let text = GOOD.replacen(whole, fraction, 1).replace("name: priced", "name: fraction");
        ensure!(text.contains(fraction), "{fraction}");
        let refused = apply(&text).await?;
        ensure!(!refused.success && refused.stderr.contains(path), "{path}: {}", refused.stderr);
        let (code, said) = validated(&text).await?;
        ensure!(code == Some(1) && said.contains(path), "{path}: {code:?}: {said}");
        for said in [refused.stderr, said] {
            let names_another = AMOUNTS.iter().any(|(other, ..)| *other != path && said.contains(other));
            ensure!(!names_another, "{path} alone: {said}");
        }
    }
    let gone: Option<Value> = objects(&ns, "ModelAPI").get_opt("fraction").await?.map(|object| object.data);
    ensure!(gone.is_none(), "{gone:?}");
    Ok(())
}
