//! What each voice says of one object, in the same words.
//!
//! In: an object and the cluster of a case. Out: [`Said`]. A part that a voice does not speak of is absent, and the reason why it does not
//! stands where it is left out.

use anyhow::Context as _;
use clap::Parser as _;
use drawbridge::cli::Cli;
use drawbridge::cli::io::Io;
use drawbridge::domain::reason::{Class, Reason};
use serde_json::Value;
use webhook_tests::corpus::answer::Answer;
use webhook_tests::corpus::fixture::Fixture;

use super::cluster::Clusters;
use super::workload::Workload;

/// Objects in the cluster of a case.
pub(super) struct Question<'a> {
    pub(super) fixture: &'a Fixture,
    pub(super) objects: &'a [Value],
    pub(super) namespace: &'a str,
}

/// What was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// `injected`, `skipped` or `denied`.
    pub(super) outcome: Option<String>,
    /// Reason code; empty where there is none to tell.
    pub(super) reason: String,
    /// The whole refusal.
    pub(super) denial: Option<String>,
    /// Reason codes of the warnings, sorted.
    pub(super) warnings: Option<Vec<String>>,
}

impl Said {
    /// The webhook's own answer.
    pub(super) fn of_webhook(answer: &Answer) -> Self {
        let reason = Reason::ALL.iter().find(|reason| reason.code() == answer.reason);
        Self {
            outcome: reason.map(|reason| reason.class().as_str().to_owned()),
            reason: answer.reason.clone(),
            denial: answer.denial.as_ref().map(|(_, text)| text.clone()),
            warnings: Some(sorted(answer.warnings.iter().map(|(code, _)| code.clone()))),
        }
    }

    /// How `other` differs in what it speaks of.
    pub(super) fn differences(&self, other: &Said, what: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        if other.outcome.as_ref().is_some_and(|outcome| Some(outcome) != self.outcome.as_ref()) {
            wrong.push(format!(
                "{what}: {:?} ({}), the webhook: {:?} ({})",
                other.outcome, other.reason, self.outcome, self.reason
            ));
        } else if !other.reason.is_empty() && other.reason != self.reason {
            wrong.push(format!("{what}: reason {}, the webhook's is {}", other.reason, self.reason));
        }
        if other.denial.as_ref().is_some_and(|text| Some(text) != self.denial.as_ref()) {
            wrong.push(format!("{what}: refuses with {:?}, the webhook with {:?}", other.denial, self.denial));
        }
        if other.warnings.as_ref().is_some_and(|codes| Some(codes) != self.warnings.as_ref()) {
            wrong.push(format!("{what}: warns of {:?}, the webhook of {:?}", other.warnings, self.warnings));
        }
        wrong
    }
}

fn sorted(codes: impl Iterator<Item = String>) -> Vec<String> {
    let mut codes: Vec<String> = codes.collect();
    codes.sort();
    codes
}

/// `explain -f`, of each object.
pub(super) fn explain(question: &Question<'_>) -> anyhow::Result<Vec<Said>> {
    let told: Value = serde_json::from_str(&run("explain", question)?.out)?;
    let of_each = question.last(told.as_array().map(Vec::as_slice).unwrap_or_default())?.iter().map(|told| Said {
        outcome: told["outcome"].as_str().map(str::to_owned),
        reason: told["reason"].as_str().unwrap_or_default().to_owned(),
        denial: told["denial"].as_str().map(str::to_owned),
        warnings: Some(codes(&told["warnings"])),
    });
    Ok(of_each.collect())
}

/// The report of `inject -f` and the object that it writes, of each.
pub(super) fn inject(question: &Question<'_>) -> anyhow::Result<Vec<(Said, Value)>> {
    let ran = run("inject", question)?;
    let lines: Value = serde_json::from_str(&ran.err)?;
    let written: Vec<&str> = ran.out.split("\n---\n").collect();
    let lines = question.last(lines.as_array().map(Vec::as_slice).unwrap_or_default())?;
    let of_each = lines.iter().zip(question.last(&written)?).map(|(line, written)| {
        let outcome = line["outcome"].as_str().map(str::to_owned);
        let text = line["text"].as_str().map(str::to_owned);
        let said = Said {
            denial: text.filter(|_| outcome.as_deref() == Some(Class::Denied.as_str())),
            outcome,
            reason: line["reason"].as_str().unwrap_or_default().to_owned(),
            warnings: Some(codes(&line["warnings"])),
        };
        let object = serde_json::from_str(written);
        Ok((said, object.with_context(|| format!("inject writes no JSON for JSON: {written}"))?))
    });
    of_each.collect()
}

/// The first error that `validate` finds about each object. Its warnings are compared elsewhere: it leaves out those about what a cluster
/// has, and gives some a better word and a line. Of what is not refused it says nothing, so neither do we.
pub(super) fn validate(question: &Question<'_>) -> anyhow::Result<Vec<Said>> {
    let ran = run("validate", question)?;
    let findings: Value = serde_json::from_str(&ran.out)?;
    let errors = || findings.as_array().into_iter().flatten().filter(|finding| finding["severity"] == "error");
    let of_each = ran.places.iter().map(|line| match errors().find(|finding| finding["line"] == *line) {
        None => Said::default(),
        Some(one) => Said {
            outcome: Some(Class::Denied.as_str().to_owned()),
            reason: one["code"].as_str().unwrap_or_default().to_owned(),
            ..Said::default()
        },
    });
    Ok(of_each.collect())
}

/// Reasons of a row that say more than the decision's, which stands beside them: of a label with a word that means nothing, and of a ConfigMap
/// that is not read.
const NEARER: [Reason; 3] = [Reason::UnknownValue, Reason::NamespaceConfigUnreadable, Reason::ConfigOverBound];

/// The row of `status`. Workloads that are not enrolled have none, so they are skipped; of those that are, a row has no warnings.
pub(super) fn status(question: &Question<'_>, workload: &Workload, clusters: &Clusters) -> anyhow::Result<Said> {
    let held = clusters.hold(question.fixture, (&workload.object, question.namespace))?;
    let arguments = ["status", "-o", "json", "-n", question.namespace, "--kubeconfig", held.kubeconfig()?];
    let operator = held.operator_namespace();
    let ran = called(&[&arguments[..], &["--operator-namespace", operator]].concat(), "")?;
    let report: Value = serde_json::from_str(&ran.out).with_context(|| format!("status: {}{}", ran.out, ran.err))?;
    let rows = report["workloads"].as_array().into_iter().flatten();
    let row = rows.clone().find(|row| row["kind"] == workload.kind && row["name"] == workload.name.as_str());
    let Some(row) = row else {
        return Ok(Said { outcome: Some(Class::Skipped.as_str().to_owned()), ..Said::default() });
    };
    let outcome = row["decision"].as_str().map(str::to_owned);
    let denied = outcome.as_deref() == Some(Class::Denied.as_str());
    Ok(Said {
        denial: row["message"].as_str().map(str::to_owned).filter(|_| denied),
        outcome,
        reason: row["reason"]
            .as_str()
            .filter(|code| NEARER.iter().all(|nearer| nearer.code() != *code))
            .unwrap_or_default()
            .to_owned(),
        warnings: None,
    })
}

fn codes(warnings: &Value) -> Vec<String> {
    let texts = warnings.as_array().into_iter().flatten().filter_map(Value::as_str);
    sorted(texts.map(|text| text.split(": ").next().unwrap_or_default().to_owned()))
}

/// What each command that reads manifests warns of for that reason about the one object, in its words; `explain -f` speaks of the kinds of KAOS
/// alone.
pub(super) fn warned(question: &Question<'_>, reason: Reason) -> anyhow::Result<Vec<(&'static str, Vec<String>)>> {
    let mark = format!("{}: ", reason.code());
    let texts = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        all.filter_map(|text| text.strip_prefix(&mark)).map(str::to_owned).collect()
    };
    let object = question.objects.first().context("an object")?;
    let found = run("validate", question)?;
    let findings: Value = serde_json::from_str(&found.out)?;
    let line = found.places.first().context("a place")?;
    let is_told = |finding: &&Value| finding["line"] == *line && finding["code"] == reason.code();
    let validated = findings.as_array().into_iter().flatten().filter(is_told);
    let validated = validated.filter_map(|finding| finding["text"].as_str());
    // `validate` says first of which object it speaks.
    let validated: Vec<_> =
        validated.filter_map(|text| text.split_once(": ")).map(|(_, text)| text.to_owned()).collect();
    let injected: Value = serde_json::from_str(&run("inject", question)?.err)?;
    let of_it = injected.as_array().into_iter().flatten().find(|told| told["place"] == format!("-:{line}").as_str());
    let mut told =
        vec![("validate", validated), ("inject -f", of_it.map(|told| texts(&told["warnings"])).unwrap_or_default())];
    if object["apiVersion"].as_str().is_some_and(|version| version.starts_with("kaos.tools/")) {
        let explained: Value = serde_json::from_str(&run("explain", question)?.out)?;
        let last = explained.as_array().and_then(|all| all.last()).context("explain says nothing")?;
        told.push(("explain -f", texts(&last["notes"])));
    }
    Ok(told)
}

/// What a command printed.
struct Ran {
    out: String,
    err: String,
    /// The lines at which the objects stand in the input.
    places: Vec<u64>,
}

impl Question<'_> {
    /// Of what was said of the whole input, what was said of the objects, which stand at its end.
    fn last<'l, T>(&self, all: &'l [T]) -> anyhow::Result<&'l [T]> {
        let first = all.len().checked_sub(self.objects.len()).context("an object is not spoken of")?;
        Ok(&all[first..])
    }
}

/// Calls a command that reads manifests on the case's cluster with the objects behind it.
fn run(command: &str, question: &Question<'_>) -> anyhow::Result<Ran> {
    let Question { fixture, objects, namespace } = question;
    let folder = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> anyhow::Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_str().context("a path that is no text")?.to_owned())
    };
    let platform = file("config.yaml", &fixture.platform)?;
    let gates = file("feature-gates.yaml", &fixture.gates)?;
    let version = fixture.cluster["serverVersion"].as_str().context("serverVersion")?;
    let operator = fixture.cluster["operatorNamespace"].as_str().context("operatorNamespace")?;
    let others = fixture.objects.values().filter(|other| objects.iter().all(|object| !same(other, object)));
    let all: Vec<String> = others.chain(objects.iter()).map(Value::to_string).collect();
    // Each object is one line, and so is what divides it from the next.
    let first = all.len() - objects.len();
    let places = (first..all.len()).map(|index| 2 * index as u64 + 1).collect();
    let facts = ["--platform-file", &platform, "--feature-gates-path", &gates, "--server-version", version];
    let rest = ["--operator-namespace", operator, "-n", namespace, "-o", "json", "-f", "-"];
    let ran = called(&[&[command], &facts[..], &rest].concat(), &all.join("\n---\n"))?;
    Ok(Ran { places, ..ran })
}

/// Whether both are one object of the cluster.
fn same(one: &Value, other: &Value) -> bool {
    let of = |object: &Value| ["apiVersion", "kind", "metadata"].map(|member| object[member].clone());
    let ([version, kind, metadata], [other_version, other_kind, other_metadata]) = (of(one), of(other));
    !metadata["name"].is_null()
        && version == other_version
        && kind == other_kind
        && metadata["name"] == other_metadata["name"]
        && metadata["namespace"] == other_metadata["namespace"]
}

fn called(arguments: &[&str], input: &str) -> anyhow::Result<Ran> {
    let words = std::iter::once("drawbridge").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words)?;
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    cli.command.run(&mut io).with_context(|| (*arguments.first().unwrap_or(&"")).to_owned())?;
    Ok(Ran { out: String::from_utf8(out)?, err: String::from_utf8(err)?, places: Vec::new() })
}
