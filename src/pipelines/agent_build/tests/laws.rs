//! Laws over generated objects: completing is idempotent and minimal, reviewing never panics, and what a review accepts
//! without a word about ConfigMaps composes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::reason::Class;
use crate::pipelines::agent_build::{MODES, read};
use crate::pipelines::compose::{Surroundings, compose};

/// Texts that are right somewhere and wrong elsewhere.
fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "main",
        "v1.2.3",
        "a",
        "a/b",
        "../x",
        "/x",
        "--x",
        "a;b",
        "$(id)",
        "$(tasks.clone.results.commit)",
        "$(params.image)",
        "github.com/a/b",
        "https://github.com/a/b",
        "https://u:t@h/r",
        "git@h:p",
        "ext::x",
        "ghcr.io/acme",
        "r:5000",
        "latest",
        "20m",
        "1Gi",
        "a\nb",
        "{{.image}}",
        "{{",
        "'",
        "\"",
        "\\",
        "é",
        "\u{0}",
        "github-clone-step",
        "check-subfolder-step",
        "missing",
    ])
    .prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "image",
        "repo-url",
        "revision",
        "subfolder-path",
        "pipeline-timeout",
        "workspace-size",
        "service-account",
        "DOCKERFILE",
        "candidate-image",
        "FAIL_ON",
        "test-command",
        "signing-secret",
        "FOO",
        "a.b",
        "1a",
        "",
        "BUILD_ARGS",
        "depth",
    ])
    .prop_map(str::to_owned)
}

fn parameters() -> impl Strategy<Value = Value> {
    let one = (name(), text()).prop_map(|(name, value)| json!({"name": name, "value": value}));
    prop::collection::vec(one, 0..4).prop_map(Value::from)
}

fn steps() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["clone", "b", "c", "B_ad", ""]);
    let maps = prop::sample::select(vec![
        "github-clone-step",
        "check-subfolder-step",
        "image-reference-step",
        "gone",
        "sign-step",
    ]);
    let one = (names, maps, parameters(), prop::option::of(any::<bool>()), prop::option::of(text())).prop_map(
        |(name, map, parameters, enabled, when)| {
            let mut step = json!({"name": name, "configMap": map, "parameters": parameters});
            if let Some(enabled) = enabled {
                step["enabled"] = json!(enabled);
            }
            if let Some(input) = when {
                step["whenExpressions"] = json!([{"input": input, "operator": "in", "values": ["x"]}]);
            }
            step
        },
    );
    prop_oneof![Just(Value::Null), prop::collection::vec(one, 0..4).prop_map(Value::from)]
}

fn object() -> impl Strategy<Value = Value> {
    let source = (text(), prop::option::of(text()), prop::option::of(text()), prop::option::of(text()));
    let output = prop::option::of((text(), text(), text()));
    let mode = prop::sample::select(MODES.to_vec());
    (source, output, mode, parameters(), steps(), prop::option::weighted(0.3, text())).prop_map(
        |((repository, revision, subfolder, secret), output, mode, parameters, steps, label)| {
            let mut object = minimal();
            // Half of what is generated leaves the good value of the minimal object.
            let members = json!({
                "source": {
                    "sourceRepository": if repository.len() % 2 == 0 { json!(repository) } else { minimal()["spec"]["source"]["sourceRepository"].clone() },
                    "sourceRevision": revision, "sourceSubfolder": subfolder,
                    "sourceCredentials": secret.map(|name| json!({"name": name})),
                },
                "mode": mode,
                "pipeline": {"parameters": parameters, "steps": steps},
                "labels": label.map(|value| json!({"team": value})),
            });
            json_patch::merge(&mut object, &json!({"spec": members}));
            if let Some((registry, image, tag)) = output {
                object["spec"]["buildOutput"] = json!({"imageRegistry": registry, "image": image, "imageTag": tag});
            }
            object
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_a_review_accepts_composes(object in object(), next in object()) {
        let (view, settings) = (shipped(), Settings::new(OPERATOR));
        // `completed` asserts that a second call is empty; on an update, too.
        let stored = completed(&object, None, &view);
        let updated = completed(&next, Some(&stored), &view);
        for object in [&stored, &updated] {
            let change = Change { namespace: TEAM, object, old: None };
            let findings = validate(&change, &view, &settings);
            let (request, _) = read(object, TEAM, &view, 1);
            let around = Surroundings { steps: view.steps(OPERATOR), settings: &settings, accounts: None };
            let composed = compose(&request, around);
            // A note with the reason of a refusal is one about ConfigMaps: the build will fail of it.
            let waits = findings.notes.iter().any(|note| note.reason.class() == Class::Denied);
            if findings.faults.is_empty() && !waits {
                prop_assert!(composed.is_ok(), "{object}: {composed:?}");
            }
            if findings.faults.is_empty() && waits {
                prop_assert!(composed.is_err(), "{object}");
            }
        }
    }
}
