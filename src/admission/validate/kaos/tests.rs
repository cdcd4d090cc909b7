//! What the reviews of the kinds of KAOS say: and cases of KAOS (docs/cases.md) that concern admission.

use serde_json::{Value, json};

use crate::admission::inject::fixtures;
use crate::admission::verdict::{Denial, Outcome, Verdict};
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::domain::reason::Reason;

fn object(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": "x", "namespace": "ns"}, "spec": spec})
}

fn asked<T>(object: &Value, old: Option<&Value>, call: impl FnOnce(&Request<'_>) -> T) -> T {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
    let text = |key: &str, default: &str| object[key].as_str().unwrap_or(default).to_owned();
    let (group, kind) = (text("apiVersion", "kaos.tools/v1alpha1"), text("kind", "Agent"));
    let group = group.split_once('/').unwrap().0.to_owned();
    let (object, old) = (raw(object), old.map(raw));
    call(&Request {
        phase: Phase::Validate,
        uid: "review".into(),
        kind: GroupVersionKind { group: group.into(), version: "v1alpha1".into(), kind: kind.into() },
        sub_resource: None,
        name: None,
        namespace: Some("ns".into()),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        dry_run: None,
        object: Some((&*object).into()),
        old_object: old.as_deref().map(Into::into),
    })
}

fn reviewed(object: &Value, old: Option<&Value>) -> Verdict {
    let snapshot = fixtures::snapshot_with(|_| {}, |_| {});
    asked(object, old, |request| crate::admission::evaluate(request, &snapshot))
}

fn refused(verdict: Verdict) -> Denial {
    match verdict.outcome {
        Outcome::Deny(denial) => denial,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn warned(verdict: &Verdict) -> Vec<(Reason, &str)> {
    assert!(verdict.allowed(), "{verdict:?}");
    verdict.warnings.iter().map(|warning| (warning.reason, &*warning.text)).collect()
}

#[test]
fn everything_that_is_wrong_is_in_one_refusal_with_paths() {
    let agent = object(
        "Agent",
        json!({
            "modelAPI": "m", "model": "a", "config": {"env": [{"name": "MODEL_NAME", "value": "b"}]}, "gatewayRoute": {"timeout": "soon"},
            "podSpec": {"containers": [{"name": "agent", "env": [{"name": "A"}, {"name": "A"}]}]},
        }),
    );
    let text = refused(reviewed(&agent, None)).to_string();
    for part in [
        "spec.gatewayRoute.timeout",
        "spec.podSpec.containers[0].env[1].name repeats that of spec.podSpec.containers[0].env[0]",
        "spec.model and spec.config.env[0] say different things",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    assert!(refused(reviewed(&object("MCPServer", json!({})), None)).to_string().contains("spec.runtime"), "case 114");
    let both = object("ModelAPI", json!({"mode": "Proxy", "proxyConfig": {"apiBase": "http://b", "model": "x"}}));
    assert!(refused(reviewed(&both, None)).to_string().contains("understood differently"));
    let large = object("MCPServer", json!({"runtime": "python-string", "params": "x".repeat(200 * 1024)}));
    assert!(refused(reviewed(&large, None)).to_string().contains("200 KiB"));
    let instructions = "x".repeat(100 * 1024);
    assert!(
        reviewed(&object("Agent", json!({"modelAPI": "m", "config": {"instructions": instructions}})), None).allowed()
    );
    let texts: Vec<_> = (0..5).map(|n| json!({"name": format!("A{n}"), "value": instructions})).collect();
    let much = object("Agent", json!({"modelAPI": "m", "container": {"env": texts}}));
    assert!(refused(reviewed(&much, None)).to_string().contains("at most 384 KiB"));
}

#[test]
fn neither_deletion_nor_finalizers_nor_what_was_wrong_before_is_held_up() {
    let broken = object("ModelAPI", json!({"mode": "Proxy"}));
    let mut finalized = broken.clone();
    finalized["metadata"]["finalizers"] = json!(["kaos.tools/modelapi-finalizer"]);
    assert_eq!(reviewed(&broken, Some(&finalized)).reason, Reason::SpecUnchanged);
    let mut going = object("ModelAPI", json!({"mode": "Proxy", "telemetry": {"enabled": true}}));
    going["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z");
    assert_eq!(reviewed(&going, Some(&finalized)).reason, Reason::BeingDeleted);
    let changed = object("ModelAPI", json!({"mode": "Proxy", "telemetry": {"enabled": true}}));
    let verdict = reviewed(&changed, Some(&broken));
    assert!(warned(&verdict).iter().any(|(_, text)| text.starts_with("spec.proxyConfig: ")), "{verdict:?}");
    let worse = object("ModelAPI", json!({"mode": "Proxy", "gatewayRoute": {"timeout": "x"}}));
    assert_eq!(refused(reviewed(&worse, Some(&broken))).faults.len(), 1, "only what is new");
}

#[test]
fn what_works_and_deserves_attention_is_a_warning() {
    let reasons = |kind: &str, spec: Value| {
        let verdict = reviewed(&object(kind, spec), None);
        warned(&verdict).into_iter().map(|(reason, text)| (reason, text.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(reasons("Agent", json!({"modelAPI": "m", "model": "x"})), []);
    let of_env = reasons("Agent", json!({"modelAPI": "m", "config": {"env": [{"name": "MODEL_NAME", "value": "x"}]}}));
    assert_eq!(
        of_env.iter().map(|(reason, _)| *reason).collect::<Vec<_>>(),
        [Reason::ModelUnchecked, Reason::OldSpelling]
    );
    assert!(of_env[0].1.contains("asks for x") && of_env[0].1.contains("ModelAPI m"), "{of_env:?}");
    assert!(of_env[1].1.contains("spec.config.env"), "{of_env:?}");
    let none = reasons("Agent", json!({"modelAPI": "m"}));
    assert!(none[0].1.contains("smollm2:135m") && none.len() == 1, "{none:?}");
    let typo = reasons(
        "Agent",
        json!({"modelAPI": "m", "model": "x", "podSpec": {"contaners": [], "containers": [{"name": "a", "imge": "b"}]}}),
    );
    let said: Vec<_> = typo.iter().map(|(_, text)| text.as_str()).collect();
    assert!(typo.iter().all(|(reason, _)| *reason == Reason::UnknownField) && said.len() == 2, "{said:?}");
    assert!(
        said.iter()
            .any(|text| text.starts_with("spec.podSpec.contaners: ") && text.ends_with("did you mean containers?")),
        "{said:?}"
    );
    assert!(said.iter().any(|text| text.starts_with("spec.podSpec.containers[0].imge: ")), "{said:?}");
    // Case 100: the controller holds it up; what is wrong may be put right on either side.
    let stranger = json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": {"fromString": "model_list: [{model_name: z}]"}}});
    assert!(reasons("ModelAPI", stranger)[0].1.contains("offers \"z\""));
}

#[test]
fn identity_is_group_and_name_and_any_json_gets_an_answer() {
    let snapshot = fixtures::snapshot_with(|_| {}, |_| {});
    let mut of_others = object("Agent", json!({}));
    of_others["apiVersion"] = json!("example.test/v1alpha1");
    let theirs = asked(&of_others, None, |request| crate::admission::evaluate(request, &snapshot).reason);
    assert_eq!(theirs, Reason::NotRegistered);
    for odd in [
        json!({"kind": "Agent"}),
        json!({"kind": "ModelAPI", "spec": []}),
        json!({"kind": "MCPServer", "metadata": [], "spec": 1}),
    ] {
        assert!(!reviewed(&odd, None).allowed(), "{odd}");
    }
    let tree = asked(&object("MCPServer", json!({"config": {"mcp": "p"}})), None, |request| {
        crate::admission::explain(request, &snapshot).1
    });
    assert_eq!((&*tree.fields[0].name, &*tree.fields[0].value), ("spec.config.mcp", "config.tools.fromPackage"));
}

/// Reading it takes time, and nothing of it would be kept.
#[test]
fn what_is_larger_than_what_is_kept_is_refused_for_that_alone() {
    let servers = vec!["a"; 120 * 1024];
    let large = object("Agent", json!({"modelAPI": "", "mcpServers": servers, "gatewayRoute": {"timeout": "soon"}}));
    let verdict = reviewed(&large, None);
    assert!(verdict.warnings.is_empty(), "{:?}", verdict.warnings.first());
    let denial = refused(verdict);
    assert_eq!(denial.faults.len(), 1, "{:?}", denial.faults);
    assert!(denial.faults[0].sentence.contains("at most 384 KiB are allowed"), "{}", denial.faults[0]);
}

/// Of more faults than are kept nobody knows which they were: none that was there before is held against an update.
#[test]
fn more_faults_than_are_named_hold_no_update_up_that_adds_none() {
    let agent = |faults: usize, more: Value| {
        let mut spec = json!({"modelAPI": "m", "model": "x", "mcpServers": vec![""; faults]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("Agent", spec)
    };
    let before = agent(300, json!({}));
    let text = refused(reviewed(&before, None)).to_string();
    assert!(text.ends_with("\nand 260 more"), "{text}");
    for now in [agent(300, json!({"replicas": 1})), agent(299, json!({})), agent(150, json!({}))] {
        let verdict = reviewed(&now, Some(&before));
        let said = warned(&verdict);
        assert!(said.len() <= 129 && said[0].1.contains("spec.mcpServers[0]"), "{said:?}");
    }
    let worse = refused(reviewed(&agent(300, json!({"gatewayRoute": {"timeout": "x"}})), Some(&before))).to_string();
    assert!(worse.contains("spec has 173 more faults than the 128 that are named"), "{worse}");
}
