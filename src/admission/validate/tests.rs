use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::known::{MAPPINGS, unknown_fields};
use crate::admission::inject::fixtures;
use crate::admission::verdict::{Denial, Outcome, Verdict};
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::config::agent_runtime::Governors;
use crate::config::inputs::AgentRuntimeInput;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;

fn agent_runtime(name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentRuntime",
        "metadata": {"name": name, "namespace": "team1", "uid": name, "creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}
    });
    json_patch::merge(&mut object, &more);
    object
}

fn target(more: Value) -> Value {
    json!({"spec": {"targetRef": more}})
}

/// A snapshot that knows these AgentRuntimes.
fn knowing(objects: &[Value]) -> Snapshot {
    let inputs: BTreeMap<Arc<str>, Arc<AgentRuntimeInput>> = objects
        .iter()
        .map(|object| {
            (Arc::from(object["metadata"]["name"].as_str().unwrap()), Arc::new(AgentRuntimeInput::of_object(object)))
        })
        .collect();
    fixtures::snapshot_with(|_| {}, |view| view.governors = Governors::of(&inputs))
}

fn reviewed(namespace: &str, object: &Value, old: Option<&Value>, snapshot: &Snapshot) -> Verdict {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
    let (object, old) = (raw(object), old.map(raw));
    let request = Request {
        phase: Phase::Validate,
        uid: "review".into(),
        kind: GroupVersionKind {
            group: "agent.kagenti.dev".into(),
            version: "v1alpha1".into(),
            kind: "AgentRuntime".into(),
        },
        sub_resource: None,
        name: None,
        namespace: Some(namespace.to_owned().into()),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        dry_run: None,
        object: Some((&*object).into()),
        old_object: old.as_deref().map(Into::into),
    };
    crate::admission::evaluate(&request, snapshot)
}

fn create(object: &Value, snapshot: &Snapshot) -> Verdict {
    reviewed("team1", object, None, snapshot)
}

fn update(old: &Value, object: &Value, snapshot: &Snapshot) -> Verdict {
    reviewed("team1", object, Some(old), snapshot)
}

fn refused(verdict: Verdict) -> Denial {
    match verdict.outcome {
        Outcome::Deny(denial) => denial,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn case_017_a_second_one_on_a_workload_is_refused_and_the_first_is_named() {
    let snapshot = knowing(&[agent_runtime("first", json!({}))]);
    let denial = refused(create(&agent_runtime("second", json!({})), &snapshot));
    assert_eq!((denial.reason, denial.code), (Reason::DuplicateTarget, 422));
    assert_eq!(denial.sentence, "an AgentRuntime already targets Deployment w in namespace team1: first");
    assert!(denial.to_string().contains("kubectl get agentruntime first -n team1"));
}

#[test]
fn case_018_another_kind_or_namespace_is_another_workload() {
    let snapshot = knowing(&[agent_runtime("first", json!({}))]);
    let other_kind = agent_runtime("second", target(json!({"kind": "StatefulSet"})));
    assert_eq!(create(&other_kind, &snapshot).reason, Reason::Accepted);
    let same = agent_runtime("second", json!({}));
    assert_eq!(reviewed("team2", &same, None, &snapshot).reason, Reason::Accepted);
}

#[test]
fn case_019_an_update_does_not_collide_with_itself() {
    let first = agent_runtime("first", json!({}));
    let changed = agent_runtime("first", json!({"spec": {"authBridgeMode": "proxy-sidecar"}}));
    assert_eq!(update(&first, &changed, &knowing(std::slice::from_ref(&first))).reason, Reason::Accepted);
    assert_eq!(
        create(&first, &knowing(std::slice::from_ref(&first))).reason,
        Reason::Accepted,
        "the watch may be ahead"
    );
}

#[test]
fn case_020_a_namespace_that_nobody_knows_is_no_reason_to_refuse() {
    // Ours lists nothing: what the snapshot does not know cannot be a duplicate, and the controller settles races.
    let snapshot = knowing(&[]);
    assert_eq!(reviewed("new", &agent_runtime("a", json!({})), None, &snapshot).reason, Reason::Accepted);
}

#[test]
fn case_021_neither_deletion_nor_finalizers_of_a_duplicate_are_held_up() {
    let (first, second) = (agent_runtime("first", json!({})), agent_runtime("second", json!({})));
    let snapshot = knowing(&[first, second.clone()]);
    let finalized = agent_runtime("second", json!({"metadata": {"finalizers": ["kagenti.io/cleanup"]}}));
    assert_eq!(update(&second, &finalized, &snapshot).reason, Reason::SpecUnchanged);
    let going = json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}, "spec": {"type": "odd"}});
    assert_eq!(update(&finalized, &agent_runtime("second", going), &snapshot).reason, Reason::BeingDeleted);
    let changed = agent_runtime("second", json!({"spec": {"authBridgeMode": "waypoint"}}));
    let verdict = update(&second, &changed, &snapshot);
    assert_eq!(verdict.reason, Reason::Accepted);
    assert!(verdict.warnings[0].to_string().starts_with("DuplicateTarget: "), "{:?}", verdict.warnings);
    let moved = agent_runtime("third", target(json!({"name": "elsewhere"})));
    assert_eq!(refused(update(&moved, &agent_runtime("third", json!({})), &snapshot)).reason, Reason::DuplicateTarget);
}

#[test]
fn one_that_is_being_deleted_gives_its_workload_free() {
    let going = agent_runtime("first", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    assert_eq!(create(&agent_runtime("second", json!({})), &knowing(&[going])).reason, Reason::Accepted);
}

#[test]
fn what_cannot_be_used_is_refused_with_field_and_value() {
    let snapshot = knowing(&[]);
    for (more, reason, field) in [
        (target(json!({"kind": "Service"})), Reason::UnsupportedTarget, "spec.targetRef.kind"),
        (target(json!({"apiVersion": "extensions/v1beta1"})), Reason::UnsupportedTarget, "spec.targetRef.kind"),
        (target(json!({"name": ""})), Reason::InvalidSpec, "spec.targetRef.name"),
        (json!({"spec": {"targetRef": null}}), Reason::InvalidSpec, "spec.targetRef.apiVersion"),
        (json!({"spec": null}), Reason::InvalidSpec, "spec.type"),
        (json!({"spec": {"authBridgeMode": "lite"}}), Reason::ModeNotAvailable, "spec.authBridgeMode"),
        (json!({"spec": {"trace": {"sampling": {"rate": 2}}}}), Reason::InvalidSpec, "spec.trace.sampling.rate"),
    ] {
        let denial = refused(create(&agent_runtime("a", more.clone()), &snapshot));
        assert_eq!((denial.reason, denial.code, denial.field.as_deref()), (reason, 422, Some(field)), "{more}");
    }
    let several = json!({"spec": {"type": "service", "authBridgeMode": "lite"}});
    let text = refused(create(&agent_runtime("a", several), &snapshot)).to_string();
    assert!(text.starts_with("InvalidSpec: ") && text.contains("spec.authBridgeMode: no such mode"), "{text}");
}

/// The webhook is registered with policy Ignore: a refusal would stand where its failure would not.
#[test]
fn what_cannot_be_read_is_let_through_and_told() {
    for object in [json!(null), json!([]), json!("AgentRuntime"), json!(7)] {
        let old = agent_runtime("a", json!({}));
        for verdict in [create(&object, &knowing(&[])), update(&old, &object, &knowing(&[]))] {
            assert_eq!((&verdict.outcome, verdict.reason), (&Outcome::Allow, Reason::Undecodable), "{object}");
            let [warning] = &verdict.warnings[..] else { panic!("{verdict:?}") };
            assert!(warning.reason == Reason::Undecodable && warning.text.contains("drawbridge status"), "{warning}");
        }
    }
}

#[test]
fn an_update_is_not_refused_for_what_was_wrong_before() {
    let old = agent_runtime("a", json!({"spec": {"authBridgeMode": "lite"}}));
    let new = agent_runtime("a", json!({"spec": {"authBridgeMode": "lite", "type": "tool"}}));
    let verdict = update(&old, &new, &knowing(&[]));
    assert_eq!(verdict.reason, Reason::Accepted);
    assert!(verdict.warnings[0].to_string().starts_with("ModeNotAvailable: spec.authBridgeMode: "));
    let worse = agent_runtime("a", json!({"spec": {"authBridgeMode": "lite", "type": "service"}}));
    assert_eq!(refused(update(&old, &worse, &knowing(&[]))).reason, Reason::InvalidSpec);
}

#[test]
fn an_object_that_is_in_order_and_moves_nothing_says_so() {
    let mut snapshot = knowing(&[]);
    let codes = |object: &Value, snapshot: &Snapshot| {
        create(object, snapshot).warnings.iter().map(|warning| warning.reason).collect::<Vec<_>>()
    };
    let tool = agent_runtime("a", json!({"spec": {"type": "tool"}}));
    assert_eq!(codes(&tool, &snapshot), [Reason::ToolsDisabled]);
    assert_eq!(codes(&agent_runtime("a", json!({})), &snapshot), []);
    snapshot.require_namespace_label = true;
    assert_eq!(codes(&agent_runtime("a", json!({})), &snapshot), [Reason::NamespaceNotEnrolled]);
    snapshot.gates.global_enabled = false;
    assert_eq!(codes(&tool, &snapshot), [Reason::GlobalDisabled]);
}

#[test]
fn a_switch_of_the_namespace_that_switches_nothing_is_told() {
    for (value, told) in [("true", false), ("False", true), ("no", true)] {
        let snapshot = fixtures::snapshot_with(|_| {}, |view| view.enabled_label = Some(value.to_owned()));
        let verdict = create(&agent_runtime("a", json!({})), &snapshot);
        let codes: Vec<_> = verdict.warnings.iter().map(|warning| warning.reason).collect();
        assert_eq!((verdict.reason, codes.contains(&Reason::UnknownValue)), (Reason::Accepted, told), "{value}");
    }
}

#[test]
fn unknown_fields_are_named_with_what_was_probably_meant() {
    let spec =
        json!({"authbridgemode": "waypoint", "targetRef": {"namespace": "x"}, "trace": {"sampling": {"ratio": 1}}});
    let said: Vec<_> = unknown_fields(&spec).iter().map(ToString::to_string).collect();
    assert_eq!(
        said[0],
        "UnknownField: spec.authbridgemode is not a field of AgentRuntime and is left out; did you mean authBridgeMode?"
    );
    assert!(said[1].contains("spec.targetRef.namespace") && said[2].contains("spec.trace.sampling.ratio"), "{said:?}");
    let many: Value = (0..1000).map(|n| (format!("f{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(unknown_fields(&many).len(), 10);
}

#[test]
fn the_known_fields_are_those_of_the_schema() {
    fn walk(path: &str, schema: &Value, found: &mut Vec<(String, Vec<String>)>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        found.push((path.to_owned(), properties.keys().cloned().collect()));
        for (key, below) in properties {
            walk(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, below, found);
        }
    }
    let crd = serde_json::to_value(crate::api::agent_kagenti_dev::agent_runtime::crd()).unwrap();
    let mut found = Vec::new();
    walk("", crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap(), &mut found);
    let mut known: Vec<_> = MAPPINGS
        .iter()
        .map(|(path, members)| {
            let mut members: Vec<_> = members.iter().map(|member| (*member).to_owned()).collect();
            members.sort();
            ((*path).to_owned(), members)
        })
        .collect();
    known.sort();
    found.iter_mut().for_each(|(_, members)| members.sort());
    found.sort();
    assert_eq!(known, found);
}

#[test]
fn any_json_gets_an_answer() {
    let snapshot = knowing(&[agent_runtime("first", json!({}))]);
    let odd = [json!(null), json!([]), json!("x"), json!({"metadata": []}), json!({"spec": [], "metadata": 1})];
    for object in &odd {
        for old in [None, Some(&odd[0]), Some(&odd[4])] {
            let verdict = reviewed("team1", object, old, &snapshot);
            assert!(!verdict.reason.code().is_empty());
        }
    }
}

#[test]
fn explain_tells_who_governs() {
    let first = agent_runtime("first", json!({}));
    let snapshot = knowing(std::slice::from_ref(&first));
    let raw = serde_json::value::to_raw_value(&agent_runtime("second", json!({}))).unwrap();
    let request = Request {
        phase: Phase::Validate,
        uid: "u".into(),
        kind: GroupVersionKind {
            group: "agent.kagenti.dev".into(),
            version: "v1alpha1".into(),
            kind: "AgentRuntime".into(),
        },
        sub_resource: None,
        name: None,
        namespace: Some("team1".into()),
        operation: Operation::Create,
        dry_run: None,
        object: Some((&*raw).into()),
        old_object: None,
    };
    let (verdict, tree) = crate::admission::explain(&request, &snapshot);
    assert_eq!(verdict.reason, Reason::DuplicateTarget);
    assert_eq!((&*tree.subject, tree.workload.as_deref()), ("AgentRuntime team1/second", Some("Deployment/w")));
    assert_eq!(tree.fields[0].value, "first");
}

/// A step that has not been read yet is not missing: the build is refused for a moment, and what its spec does not concern is not.
#[test]
fn mend_01_a_build_waits_for_steps_that_have_not_been_read() {
    let build = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentBuild",
        "metadata": {"name": "b", "namespace": "team1"},
        "spec": {"mode": "dev", "pipeline": {"namespace": "team1"}},
    });
    let object = serde_json::value::to_raw_value(&build).unwrap();
    let ask = |phase, old: bool, waiting: &str| {
        let mut snapshot = fixtures::snapshot();
        let builds = Arc::make_mut(&mut snapshot.builds);
        builds.view.wait_for([Arc::from(waiting)].into());
        let request = Request {
            phase,
            uid: "review".into(),
            kind: GroupVersionKind {
                group: "agent.kagenti.dev".into(),
                version: "v1alpha1".into(),
                kind: "AgentBuild".into(),
            },
            sub_resource: None,
            name: None,
            namespace: Some("team1".to_owned().into()),
            operation: if old { Operation::Update } else { Operation::Create },
            dry_run: None,
            object: Some((&*object).into()),
            old_object: old.then(|| (&*object).into()),
        };
        crate::admission::evaluate(&request, &snapshot)
    };
    for phase in [Phase::Mutate, Phase::Validate] {
        assert_eq!(ask(phase, false, "team1").reason, Reason::ConfigPending, "{phase:?}");
        assert_ne!(ask(phase, false, "team2").reason, Reason::ConfigPending, "{phase:?}: another namespace");
        assert_ne!(ask(phase, true, "team1").reason, Reason::ConfigPending, "{phase:?}: nothing of the spec changes");
    }
}

#[test]
fn mend_02_what_is_larger_than_what_is_kept_of_one_object_is_refused() {
    for (kind, field) in [("Agent", "description"), ("AgentBuild", "mode")] {
        // In the spec, in an annotation, and in the copy that kubectl leaves, which nobody keeps.
        for (bytes, annotation, copy, refused) in [
            (60_000, 0, 0, false),
            (66_000, 0, 0, true),
            (60_000, 6_000, 0, true),
            (60_000, 100, 70_000, false),
            (10, 66_000, 0, true),
        ] {
            let text = |bytes: usize| "x".repeat(bytes);
            let annotations = json!({"a": text(annotation), keys::ANNOTATION_LAST_APPLIED: text(copy)});
            let object = json!({
                "apiVersion": "agent.kagenti.dev/v1alpha1",
                "kind": kind,
                "metadata": {"name": "b", "namespace": "team1", "annotations": annotations},
                "spec": {field: text(bytes)},
            });
            let object = serde_json::value::to_raw_value(&object).unwrap();
            let gvk =
                GroupVersionKind { group: "agent.kagenti.dev".into(), version: "v1alpha1".into(), kind: kind.into() };
            let request = Request {
                phase: Phase::Validate,
                uid: "review".into(),
                kind: gvk,
                sub_resource: None,
                name: None,
                namespace: Some("team1".to_owned().into()),
                operation: Operation::Create,
                dry_run: None,
                object: Some((&*object).into()),
                old_object: None,
            };
            let verdict = crate::admission::evaluate(&request, &fixtures::snapshot());
            let Outcome::Deny(denial) = &verdict.outcome else { panic!("{verdict:?}") };
            let named = denial.faults.iter().any(|fault| fault.path == "spec" && fault.sentence.contains("64 KiB"));
            assert_eq!(named, refused, "{kind} of {bytes}, {annotation} and {copy}");
            // What is refused for its size is not read any further: that would take the time that its writer wants it to take.
            assert!(!refused || denial.faults.len() == 1, "{kind}: {:?}", denial.faults);
            let says = |text: &str| denial.faults.iter().any(|fault| fault.sentence.contains(text));
            assert_eq!(
                says(&format!("most of which is spec.{field}")),
                refused && bytes >= 60_000,
                "{kind} of {bytes}"
            );
        }
    }
}

/// Whose Agent it is a build says once it has ended; that there is one is told when its name is given.
#[test]
fn a_build_of_beeai_hears_of_an_agent_of_the_name_that_it_keeps_one_under() {
    use crate::store::Kind;

    let ask = |kind: Kind, object: &Value, old: Option<&Value>, there: &[(Kind, &str)]| {
        let snapshot = fixtures::snapshot_with(
            |_| {},
            |view| {
                for (kind, name) in there {
                    view.named.set(*kind, &Arc::from(*name), true);
                }
            },
        );
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let (object, old) = (raw(object), old.map(raw));
        let request = Request {
            phase: Phase::Validate,
            uid: "review".into(),
            kind: GroupVersionKind { group: kind.group().into(), version: "v1".into(), kind: "AgentBuild".into() },
            sub_resource: None,
            name: None,
            namespace: Some("team1".to_owned().into()),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            dry_run: None,
            object: Some((&*object).into()),
            old_object: old.as_deref().map(Into::into),
        };
        let verdict = crate::admission::evaluate(&request, &snapshot);
        assert_eq!(verdict.reason, Reason::Accepted, "{verdict:?}");
        let told = verdict
            .warnings
            .into_iter()
            .filter(|one| [Reason::AgentExists, Reason::NameConflict].contains(&one.reason));
        told.map(|one| (one.reason, one.text.to_string())).collect::<Vec<_>>()
    };
    let build = |more: Value| {
        let mut spec = json!({
            "repoUrl": "github.com/a/b.git", "revision": "v1.0.0", "imageRegistry": "reg.example.com/acme", "image": "weather", "imageTag": "v1",
            "deployAfterBuild": true,
        });
        json_patch::merge(&mut spec, &more);
        json!({"metadata": {"name": "weather", "namespace": "team1"}, "spec": spec})
    };
    let (plain, elsewhere) = (build(json!({})), build(json!({"agent": {"name": "other"}})));
    let without = build(json!({"deployAfterBuild": false}));
    for (kind, agent) in [(Kind::BeeaiBuild, Kind::BeeaiAgent), (Kind::BeeaiCompatBuild, Kind::BeeaiCompatAgent)] {
        let there = [(agent, "weather")];
        for (object, old, hears) in [
            (&plain, None, true),
            (&plain, Some(&elsewhere), true),
            (&plain, Some(&without), true),
            (&elsewhere, None, false),
            (&without, None, false),
            (&build(json!({"revision": "v2.0.0"})), Some(&plain), false),
        ] {
            let told = ask(kind, object, old, &there);
            assert_eq!(told.len(), usize::from(hears), "{object} {told:?}");
            let command = format!("kubectl -n team1 get agents.{} weather", kind.group());
            assert!(
                told.iter().all(|(reason, text)| *reason == Reason::AgentExists && text.contains(&command)),
                "{told:?}"
            );
        }
        let told = ask(kind, &plain, None, &[(Kind::Agent, "weather"), (Kind::KaosAgent, "weather")]);
        assert!(told.len() == 1 && told[0].0 == Reason::NameConflict, "{told:?}");
        assert!(told[0].1.contains("kubectl -n team1 delete agents.agent.kagenti.dev weather"), "{told:?}");
    }
}

/// Z8: both groups are judged by one function, and no other group's function.
#[test]
fn agents_of_beeai_are_judged_in_both_groups_and_never_by_a_value() {
    let ask = |group: &str, object: &Value, old: Option<&Value>| {
        let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
        let (object, old) = (raw(object), old.map(raw));
        let request = Request {
            phase: Phase::Validate,
            uid: "review".into(),
            kind: GroupVersionKind { group: group.to_owned().into(), version: "v1".into(), kind: "Agent".into() },
            sub_resource: None,
            name: None,
            namespace: Some("team1".to_owned().into()),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            dry_run: None,
            object: Some((&*object).into()),
            old_object: old.as_deref().map(Into::into),
        };
        crate::admission::evaluate(&request, &fixtures::snapshot())
    };
    let agent = |annotations: Value, port: &str| {
        json!({
            "metadata": {"name": "weather", "namespace": "team1", "annotations": annotations},
            "spec": {"image": "ghcr.io/beeai/agents/weather:v1", "env": [{"name": "PORT", "value": port}]},
        })
    };
    let (plain, baseline) =
        (agent(json!({}), "9001"), agent(json!({"beeai.dev/security-profile": "baseline"}), "9001"));
    let broken = agent(json!({}), "canary");
    for group in ["beeai.dev", "beeai.beeai.dev"] {
        assert_eq!(ask(group, &plain, None).reason, Reason::Accepted, "{group}");
        for (object, old, path) in [
            (&broken, None, "spec.env[0].value"),
            (&baseline, None, "metadata.annotations[beeai.dev/security-profile]"),
            (&baseline, Some(&plain), "metadata.annotations[beeai.dev/security-profile]"),
        ] {
            let verdict = ask(group, object, old);
            let Outcome::Deny(denial) = &verdict.outcome else { panic!("{verdict:?}") };
            assert_eq!(denial.field.as_deref(), Some(path), "{group}");
            assert!(!denial.words().contains("canary"), "{}", denial.words());
        }
        // A finalizer comes and goes, whatever is wrong.
        assert_eq!(ask(group, &broken, Some(&broken)).reason, Reason::Accepted, "{group}");
    }
}
