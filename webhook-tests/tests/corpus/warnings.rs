//! The corpus through `validate` with the objects of the case's cluster: it gives every warning that the webhook gives, in its words.
//!
//! In: the cases about a Pod or a workload that is created and let in. Out: each warning of the webhook that `validate` lacks, and each that
//! only `validate` gives. Left out on purpose: the words about values of labels and annotations, which `validate` tells by the same code and with what was meant, and
//! errors.

use anyhow::Context as _;
use clap::Parser as _;
use drawbridge::api::review::Phase;
use drawbridge::cli::io::Io;
use drawbridge::cli::offline::workload::Subject;
use drawbridge::cli::{Cli, Exit};
use drawbridge::domain::reason::{Class, Reason};
use libtest_mimic::Trial;
use serde_json::Value;
use webhook_tests::corpus::Case;
use webhook_tests::corpus::answer::ask;

use super::verdict;

/// Warnings that `validate` gives with the line of the key and what was meant.
const OF_KEYS: &[Reason] = &[Reason::UnknownMode, Reason::UnknownValue, Reason::PortDropped];

pub(crate) fn trials(cases: Vec<Case>) -> Vec<Trial> {
    let asked = cases.into_iter().filter(is_asked);
    asked.map(|case| Trial::test(format!("warnings::{}", case.name), move || verdict(equal(&case)))).collect()
}

fn is_asked(case: &Case) -> bool {
    if case.expect.unreadable || case.expect.config_refused.is_some() || case.expect.denial.is_some() {
        return false;
    }
    let Ok(review) = serde_json::from_str::<Value>(&case.review) else { return false };
    let request = &review["request"];
    let whole = request["subResource"].as_str().unwrap_or_default().is_empty();
    let subject = Subject::of(&request["object"], "");
    let is_pod = request["kind"]["kind"] == "Pod";
    request["operation"] == "CREATE" && whole && subject.is_some() && is_pod == (case.fixture.phase() == Phase::Mutate)
}

/// Code and text of each warning, as the webhook gives it and as `validate` does.
fn equal(case: &Case) -> anyhow::Result<Vec<String>> {
    let review: Value = serde_json::from_str(&case.review)?;
    let (object, namespace) =
        (&review["request"]["object"], review["request"]["namespace"].as_str().unwrap_or_default());
    let webhook = ask(case, &case.review, &case.fixture.snapshot()?)?.warnings;
    let findings = findings(case, object, namespace)?;
    let reason_of = |code: &str| Reason::ALL.iter().copied().find(|reason| reason.code() == code);
    let is_told = |(code, text): &&(String, String)| {
        let by_code = || findings.iter().any(|(of, _)| of == code);
        let is_of_keys = OF_KEYS.iter().any(|reason| reason.code() == code);
        findings.iter().any(|(of, told)| of == code && told.ends_with(&**text))
            || (is_of_keys && by_code())
            // That Pods would be refused, `validate` gives as an error.
            || (reason_of(code).is_some_and(|reason| reason.class() == Class::Denied) && by_code())
    };
    let missing = webhook.iter().filter(|warning| !is_told(warning));
    let mut wrong: Vec<String> = missing.map(|(code, text)| format!("validate does not say {code}: {text}")).collect();
    if object["kind"] == "Pod" {
        let is_the_webhooks = |(code, told): &&(String, String)| {
            // Errors are compared where the other commands are.
            reason_of(code).is_none_or(|reason| reason.class() == Class::Denied || OF_KEYS.contains(&reason))
                || webhook.iter().any(|(of, text)| of == code && told.ends_with(&**text))
        };
        let alone = findings.iter().filter(|finding| !is_the_webhooks(finding));
        wrong.extend(alone.map(|(code, text)| format!("only validate says {code}: {text}")));
    }
    Ok(wrong)
}

/// Code and text of what `validate` finds.
fn findings(case: &Case, object: &Value, namespace: &str) -> anyhow::Result<Vec<(String, String)>> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> anyhow::Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_str().context("a path that is no text")?.to_owned())
    };
    let platform = file("config.yaml", &case.fixture.platform)?;
    let gates = file("feature-gates.yaml", &case.fixture.gates)?;
    let others: Vec<String> = case.fixture.objects.values().map(Value::to_string).collect();
    let cluster = file("cluster.yaml", &others.join("\n---\n"))?;
    let cluster_facts = &case.fixture.cluster;
    let version = cluster_facts["serverVersion"].as_str().context("serverVersion")?;
    let operator = cluster_facts["operatorNamespace"].as_str().context("operatorNamespace")?;
    let words = [
        "drawbridge",
        "validate",
        "--platform-file",
        &platform,
        "--feature-gates-path",
        &gates,
        "--server-version",
        version,
        "--operator-namespace",
        operator,
        "--cluster-objects",
        &cluster,
        "-n",
        namespace,
        "-o",
        "json",
        "-f",
        "-",
    ];
    let text = object.to_string();
    let (mut stdin, mut out, mut err) = (text.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let exit = Cli::try_parse_from(words)?.command.run(&mut io)?;
    anyhow::ensure!(matches!(exit, Exit::Ok | Exit::Findings), "validate ends with {exit:?}");
    let findings: Value = serde_json::from_slice(&out)?;
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    Ok(findings
        .as_array()
        .into_iter()
        .flatten()
        .map(|finding| (text(finding, "code"), text(finding, "text")))
        .collect())
}
