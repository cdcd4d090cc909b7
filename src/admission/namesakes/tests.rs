use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::inject::fixtures;
use crate::admission::verdict::Verdict;
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use crate::store::Kind;

const EVERY: [Kind; 6] = crate::config::namesakes::KINDS;

/// An object that nothing else is wrong with.
fn object(kind: Kind, name: &str) -> Value {
    let spec = match kind {
        Kind::Agent => json!({
            "imageSource": {"image": "example.com/a:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
        }),
        Kind::KaosAgent => json!({"modelAPI": "m", "model": "gpt"}),
        Kind::ModelApi => json!({"mode": "Hosted", "hostedConfig": {"model": "smollm2:135m"}}),
        Kind::McpServer => json!({"runtime": "python-string", "params": "x"}),
        _ => json!({"image": "example.com/a:v1"}),
    };
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": {"name": name, "namespace": "team1"}, "spec": spec})
}

fn reviewed(kind: Kind, object: &Value, old: Option<&Value>, snapshot: &Snapshot) -> Verdict {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
    let (object, old) = (raw(object), old.map(raw));
    crate::admission::evaluate(
        &Request {
            phase: Phase::Validate,
            uid: "review".into(),
            kind: GroupVersionKind {
                group: kind.group().into(),
                version: kind.version().into(),
                kind: kind.as_str().into(),
            },
            sub_resource: None,
            name: None,
            namespace: Some("team1".into()),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            dry_run: None,
            object: Some((&*object).into()),
            old_object: old.as_deref().map(Into::into),
        },
        snapshot,
    )
}

fn knowing(all: &[(Kind, &str)], settings: impl FnOnce(&mut Snapshot)) -> Snapshot {
    let named = |view: &mut crate::config::view::NamespaceView| {
        for (kind, name) in all {
            view.named.set(*kind, &Arc::from(*name), true);
        }
    };
    let mut snapshot = fixtures::snapshot_with(|_| {}, named);
    settings(&mut snapshot);
    snapshot
}

fn told(verdict: &Verdict) -> Vec<&str> {
    assert!(verdict.allowed(), "{verdict:?}");
    let all = verdict.warnings.iter().filter(|warning| warning.reason == Reason::NameConflict);
    all.map(|warning| &*warning.text).collect()
}

/// The name of an object of that kind that is run as `agent-x`, if any is.
fn name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::KaosAgent => Some("x"),
        Kind::ModelApi | Kind::McpServer => None,
        _ => Some("agent-x"),
    }
}

#[test]
fn whoever_wants_the_deployment_of_another_is_told_so_at_creation_and_when_it_changes() {
    let run: Vec<_> = EVERY.into_iter().filter_map(|kind| Some((kind, name(kind)?))).collect();
    for (first, its) in &run {
        let snapshot = knowing(&[(*first, *its)], |_| {});
        for (kind, name) in &run {
            let object = object(*kind, name);
            let mut changed = object.clone();
            changed["metadata"]["labels"] = json!({"a": "b"});
            let marks = reviewed(*kind, &changed, Some(&object), &snapshot);
            assert_eq!(told(&marks), [""; 0], "{kind:?}: nothing of what is run has changed");
            changed["spec"]["replicas"] = json!(2);
            for verdict in
                [reviewed(*kind, &object, None, &snapshot), reviewed(*kind, &changed, Some(&object), &snapshot)]
            {
                let told = told(&verdict);
                assert_eq!(told.len(), usize::from(kind != first), "{kind:?} beside {first:?}: {told:?}");
                for text in told {
                    for part in [
                        "metadata.name: Deployment agent-x of namespace team1",
                        &format!("Agent {its} of {}", first.api_version()),
                        &format!("kubectl -n team1 delete agents.{} {its}", first.group()),
                        "Ready=False/NameConflict",
                    ] {
                        assert!(text.contains(part), "{part} is missing in: {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn model_apis_and_mcp_servers_are_told_of_agents_that_are_called_like_what_runs_them_and_the_other_way_round() {
    for (kind, made) in [(Kind::ModelApi, "modelapi-x"), (Kind::McpServer, "mcpserver-x")] {
        for other in [Kind::Agent, Kind::BeeaiAgent, Kind::BeeaiCompatAgent] {
            let snapshot = knowing(&[(other, made), (kind, "x")], |_| {});
            assert_eq!(told(&reviewed(kind, &object(kind, "x"), None, &snapshot)).len(), 1, "{kind:?}, {other:?}");
            let verdict = reviewed(other, &object(other, made), None, &snapshot);
            let text = told(&verdict).concat();
            assert!(text.contains(&format!("{} x of kaos.tools/v1alpha1", kind.as_str())), "{text}");
        }
    }
}

#[test]
fn nobody_is_told_of_another_namespace_of_itself_or_of_agents_that_the_platform_does_not_run() {
    let agent = object(Kind::Agent, "agent-x");
    let elsewhere = knowing(&[], |_| {});
    assert_eq!(told(&reviewed(Kind::Agent, &agent, None, &elsewhere)), [""; 0]);
    let off = knowing(&[(Kind::Agent, "agent-x"), (Kind::BeeaiAgent, "agent-x")], |snapshot| {
        Arc::make_mut(&mut snapshot.builds).settings.workloads.beeai = false;
    });
    assert_eq!(told(&reviewed(Kind::Agent, &agent, None, &off)), [""; 0]);
    assert_eq!(told(&reviewed(Kind::BeeaiAgent, &object(Kind::BeeaiAgent, "agent-x"), None, &off)), [""; 0]);
}
