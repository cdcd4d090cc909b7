//! What is recorded of an image, and that nothing is recorded of it that was not so.

use serde_json::{Value, json};

use super::bench::{Bench, build, digest};
use crate::api::agent_kagenti_dev::provenance::{LARGEST, TEXT};
use crate::controllers::scaffold::fixtures::{s, step_map};
use crate::domain::keys;
use crate::store::Kind;

const BUILDS: &str = "params: [{name: DOCKERFILE, default: Dockerfile}, {name: BUILD_ARGS, type: array, default: []}]\n\
    results: [{name: IMAGE_URL}, {name: IMAGE_DIGEST}]\nsteps: [{name: build, image: buildah:1}]\n";

fn bench() -> Bench {
    let mut object = build();
    object["spec"]["buildArgs"] = json!([{"name": "PIP", "value": "internal"}]);
    let mut bench = Bench::new(object);
    bench.maps[1] = step_map("kagenti-system", "tells", BUILDS);
    bench.configure();
    bench.settle();
    bench
}

fn images(bench: &mut Bench, task: &str, ids: Value) {
    let name = format!("{}-{task}", bench.run());
    bench.edit(Kind::TaskRun, &name, |task| task["status"]["steps"] = ids);
}

#[test]
fn an_attempt_says_what_it_is_composed_of_and_its_image_what_it_was_made_of() {
    let mut bench = bench();
    let inputs = bench.status()["inputs"].clone();
    assert_eq!(
        (&inputs["repository"], &inputs["revision"], &inputs["attempt"]),
        (&json!("github.com/a/b"), &json!("v1.0.0"), &json!(1))
    );
    assert_eq!(inputs["steps"][1]["buildArguments"], json!(["PIP=internal"]));
    assert!(inputs.get("commit").is_none() && bench.status().get("provenance").is_none());
    bench.succeed("a");
    images(
        &mut bench,
        "push",
        json!([{"name": "build", "imageID": "docker-pullable://quay.io/buildah@sha256:7"}, {"name": "x", "imageID": "local"}]),
    );
    bench.settle();
    let status = bench.status();
    let made = &status["provenance"];
    assert!(status.get("inputs").is_none(), "they have become the record");
    assert_eq!(
        (&made["image"], &made["digest"], &made["commit"]),
        (&status["builtImage"], &json!(digest("a")), &json!("0123abc4"))
    );
    assert_eq!(
        (&made["buildHash"], &made["recipe"], &made["imageTag"]),
        (&status["buildHash"], &inputs["recipe"], &status["builtImageTag"])
    );
    let run = bench.run();
    assert_eq!((&made["pipelineRun"], &made["pipelineRunUid"]), (&json!(run), &json!(format!("pipelineruns-{run}"))));
    assert_eq!((&made["started"], &made["ended"]), (&json!("2026-05-01T00:00:01Z"), &json!("2026-05-01T00:10:00Z")));
    let push = &made["steps"][1];
    assert_eq!((&push["dockerfile"], &push["images"]), (&json!("Dockerfile"), &json!(["buildah:1"])));
    assert_eq!(push["ranImages"], json!(["quay.io/buildah@sha256:7"]), "what names no image by digest says nothing");
    assert_eq!(bench.pass(3600), 0);
    bench.restart();
    assert_eq!(bench.pass(600), 0, "a restart writes nothing");
}

/// What Agents run stays, and so does what is known of it.
#[test]
fn a_build_that_fails_afterwards_leaves_the_record_of_the_image() {
    let mut bench = bench();
    bench.succeed("a");
    bench.settle();
    let before = bench.status()["provenance"].clone();
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.status()["inputs"]["revision"], "v2.0.0");
    bench.run_is("False", "Failed", "");
    bench.settle();
    assert_eq!((&bench.status()["provenance"], bench.phase()), (&before, "Failed".into()));
    assert_eq!(bench.status()["inputs"]["revision"], "v2.0.0", "what failed is known, too");
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v3.0.0"));
    bench.settle();
    bench.succeed("b");
    bench.settle();
    let after = bench.status()["provenance"].clone();
    assert_eq!((&after["revision"], &after["digest"]), (&json!("v3.0.0"), &json!(digest("b"))));
}

/// An annotation may be as long as all of them together: the record has its digest, and asks for no other run than the text did.
#[test]
fn a_wish_that_is_too_long_for_a_record_stands_there_by_its_digest() {
    for (length, is_itself) in [(TEXT, true), (TEXT + 1, false), (60 * 1024, false)] {
        let wish = "w".repeat(length);
        let mut object = build();
        object["metadata"]["annotations"] = json!({keys::ANNOTATION_REBUILD: wish});
        let mut bench = Bench::new(object);
        bench.maps[1] = step_map("kagenti-system", "tells", BUILDS);
        bench.configure();
        bench.settle();
        bench.succeed("a");
        bench.settle();
        let made = bench.status()["provenance"].clone();
        let known = made["rebuild"].as_str().unwrap();
        assert_eq!((known == wish, known.starts_with("sha256:")), (is_itself, !is_itself), "{length}");
        assert!(known.len() <= TEXT && made.to_string().len() <= LARGEST, "{length}: {known}");
        assert_eq!(bench.pass(600), 0, "{length}: it is fulfilled");
    }
}

/// A run that exists already and was composed of something else, an upgrade in the middle, a status that somebody wrote: then only the run counts.
#[test]
fn what_the_status_says_counts_for_the_run_that_carries_its_recipe_alone() {
    for attack in [
        (|bench: &mut Bench| {
            let run = bench.run();
            bench.edit(Kind::PipelineRun, &run, |run| {
                run["metadata"]["annotations"]["agent.kagenti.dev/recipe"] = json!("another")
            });
        }) as fn(&mut Bench),
        |bench| {
            let run = bench.run();
            bench.edit(Kind::PipelineRun, &run, |run| {
                run["metadata"]["annotations"].as_object_mut().unwrap().remove("agent.kagenti.dev/recipe");
            });
        },
        |bench| {
            bench.edit(Kind::AgentBuild, super::bench::NAME, |build| {
                build["status"]["inputs"]["buildHash"] = json!("another")
            })
        },
        |bench| {
            bench.edit(Kind::AgentBuild, super::bench::NAME, |build| build["status"]["inputs"] = json!({"steps": 1}))
        },
    ] {
        let mut bench = bench();
        attack(&mut bench);
        bench.succeed("a");
        bench.settle();
        let made = bench.status()["provenance"].clone();
        assert_eq!((&made["digest"], &made["commit"]), (&json!(digest("a")), &json!("0123abc4")));
        assert!(
            made.get("recipe").is_none() && made.get("steps").is_none() && made.get("repository").is_none(),
            "{made:#}"
        );
    }
}

/// The Dockerfile that a step found: one of two names, whatever the step says.
#[test]
fn of_what_a_step_says_only_the_name_of_a_dockerfile_is_believed() {
    for (said, known) in [("Containerfile", json!("Containerfile")), ("s3cr3t", Value::Null), ("", Value::Null)] {
        let mut object = build();
        object["spec"]["pipeline"]["steps"] = json!([
            {"name": "clone", "configMap": "silent"}, {"name": "look", "configMap": "looks"},
            {"name": "push", "configMap": "tells", "parameters": [{"name": "DOCKERFILE", "value": "$(tasks.look.results.dockerfile-name)"}]},
            {"name": "other", "configMap": "tells", "whenExpressions": [{"input": "a", "operator": "in", "values": ["b"]}]},
        ]);
        let mut bench = Bench::new(object);
        bench.maps[1] = step_map("kagenti-system", "tells", BUILDS);
        bench.maps.push(step_map(
            "kagenti-system",
            "looks",
            "results: [{name: dockerfile-name}]\nsteps: [{name: run, image: i}]\n",
        ));
        bench.configure();
        bench.settle();
        bench.task("look", true, json!([{"name": "dockerfile-name", "value": said}]), json!({}));
        bench.succeed("a");
        let run = bench.run();
        bench.edit(Kind::PipelineRun, &run, |run| {
            run["status"]["skippedTasks"] = json!([{"name": "other", "reason": "When Expressions evaluated to false"}]);
        });
        bench.now += s(60);
        bench.settle();
        let made = bench.status()["provenance"].clone();
        let steps = made["steps"].as_array().unwrap_or_else(|| panic!("{:#}", bench.status()));
        assert_eq!(steps[2].get("dockerfile").cloned().unwrap_or_default(), known, "{said}");
        assert_eq!(
            (&steps[3]["skipped"], steps[3].get("dockerfile")),
            (&json!(true), None),
            "what did not run built nothing"
        );
        assert!(!bench.status().to_string().contains("s3cr3t"));
    }
}
