//! The corpus through `evaluate`, in process: each case, each case again on its own result, each case with fields of
//! a later Pod API. `CORPUS_REFRESH=1` rewrites the golden files that differ.

use std::sync::Arc;

use drawbridge::domain::keys::{ANNOTATION_STATUS, SCHEDULING_GATE};
use drawbridge::domain::reason::Reason;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use webhook_tests::corpus::answer::{Answer, ask};
use webhook_tests::corpus::expect::{missing_words, refreshed};
use webhook_tests::corpus::matching::{differences, strict};
use webhook_tests::corpus::reinvoke::{defaulted, with_future_fields, without_future_fields};
use webhook_tests::corpus::{Case, REFRESH};

use super::verdict;

pub(crate) fn trials(cases: Vec<Case>) -> Vec<Trial> {
    cases.into_iter().flat_map(of_case).collect()
}

/// What is run of one case: itself, and where it has a Pod, its properties.
fn of_case(case: Case) -> Vec<Trial> {
    let case = Arc::new(case);
    let mut trials = Vec::new();
    let mut add = |name: &str, run: fn(&Case) -> anyhow::Result<Vec<String>>| {
        let case = Arc::clone(&case);
        trials.push(Trial::test(format!("evaluate::{}{name}", case.name), move || verdict(run(&case))));
    };
    add("", decided);
    if case.expect.config_refused.is_none() && !case.expect.unreadable && case.expect.denial.is_none() {
        add("::again", again);
        add("::future_fields", future_fields);
        if !case.expect.warn_only && case.expect.reason.as_deref() != Some(Reason::NotRegistered.code()) {
            add("::gated", gated);
        }
    }
    trials
}

fn decided(case: &Case) -> anyhow::Result<Vec<String>> {
    let snapshot = match (case.fixture.snapshot(), &case.expect.config_refused) {
        (Ok(_), Some(_)) => return Ok(vec!["the configuration was accepted, expected a refusal".to_owned()]),
        (Err(error), Some(says)) => {
            return Ok(missing_words(says, &format!("{error:#}"), "refusal of the configuration"));
        }
        (snapshot, None) => snapshot?,
    };
    let answer = match ask(case, &case.review, &snapshot) {
        Ok(_) if case.expect.unreadable => {
            return Ok(vec!["the review was read, expected that it is refused".to_owned()]);
        }
        Err(_) if case.expect.unreadable => return Ok(Vec::new()),
        answer => answer?,
    };
    let object = case.object.clone().unwrap_or_default();
    let wrong = case.expect.judge(&answer, &object)?;
    if std::env::var_os(REFRESH).is_some() {
        refresh(case, &answer, &object)?;
    }
    Ok(wrong)
}

fn refresh(case: &Case, answer: &Answer, object: &Value) -> anyhow::Result<()> {
    if let Some(old) = &case.expect.golden {
        let golden = refreshed(old, &answer.applied(object)?);
        std::fs::write(case.golden(), serde_saphyr::to_string(&golden)?)?;
    }
    Ok(())
}

/// The result is a fixpoint: as it is, and as the API server would show it to a second call.
fn again(case: &Case) -> anyhow::Result<Vec<String>> {
    let snapshot = case.fixture.snapshot()?;
    let object = case.object.clone().unwrap_or_default();
    let first = ask(case, &case.review, &snapshot)?;
    let result = first.applied(&object)?;
    let mut wrong = Vec::new();
    for (what, seen) in [("as it is", result.clone()), ("with defaults", defaulted(&result))] {
        if seen["kind"] != "Pod" || (what == "with defaults" && first.patch.is_none()) {
            continue;
        }
        let second = ask(case, &case.fixture.request.review("second", &seen), &snapshot)?;
        let expected = if case.expect.injects() { "AlreadyInjected" } else { first.reason.as_str() };
        if second.reason != expected {
            wrong.push(format!("second call, {what}: reason {}, expected {expected}", second.reason));
        }
        if let Some(patch) = &second.patch {
            wrong.push(format!("second call, {what}: patch {}", serde_json::to_string(patch)?));
        }
        if let Some((code, text)) = &second.denial {
            wrong.push(format!("second call, {what}: refused with {code}: {text}"));
        }
    }
    Ok(wrong)
}

/// Every answer that lets a Pod in takes our scheduling gate away, and nothing else changes by it.
fn gated(case: &Case) -> anyhow::Result<Vec<String>> {
    let snapshot = case.fixture.snapshot()?;
    let object = case.object.clone().unwrap_or_default();
    let mut gated = object.clone();
    let gate = json!({"name": SCHEDULING_GATE});
    match gated["spec"].get_mut("schedulingGates").and_then(Value::as_array_mut) {
        Some(gates) if gates.contains(&gate) => return Ok(Vec::new()),
        Some(gates) => gates.push(gate),
        None => gated["spec"]["schedulingGates"] = json!([gate]),
    }
    let answer = ask(case, &case.fixture.request.review(&case.name, &gated), &snapshot)?;
    let mut result = answer.applied(&gated)?;
    if result.pointer("/spec/schedulingGates") == Some(&json!([]))
        && let Some(spec) = result["spec"].as_object_mut()
    {
        spec.remove("schedulingGates");
    }
    let plain = ask(case, &case.review, &snapshot)?.applied(&object)?;
    Ok(differences(&plain, &result, "", strict))
}

/// Fields that nobody knows change nothing, and are still there.
fn future_fields(case: &Case) -> anyhow::Result<Vec<String>> {
    let snapshot = case.fixture.snapshot()?;
    let object = case.object.clone().unwrap_or_default();
    let mut plain = ask(case, &case.review, &snapshot)?.applied(&object)?;
    let (marked, count) = with_future_fields(&object);
    let answer = ask(case, &case.fixture.request.review(&case.name, &marked), &snapshot)?;
    let (rest, left) = without_future_fields(&answer.applied(&marked)?);
    let mut wrong = Vec::new();
    if left != count {
        wrong.push(format!("{left} of {count} unknown fields are left"));
    }
    // The record of what we changed may hold the user's value, unknown members included.
    if let Some(record) = plain.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(ANNOTATION_STATUS)) {
        *record = json!("$present");
    }
    wrong.extend(differences(&plain, &rest, "", strict));
    Ok(wrong)
}
