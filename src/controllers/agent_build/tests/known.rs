//! Builds by content: which image needs no run, and everything that needs one all the same.

use serde_json::{Value, json};

use super::bench::{Bench, NAME, TEAM, build, digest};
use crate::controllers::scaffold::fixtures::step_map;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;

fn commit(letter: &str) -> String {
    letter.repeat(40)
}

fn maps(bench: &mut Bench, image: &str) {
    let silent = format!(
        "params: [{{name: revision}}, {{name: FLAVOUR, default: plain}}]\nsteps: [{{name: run, image: \"{image}\"}}]\n"
    );
    let tells = format!(
        "params: [{{name: image}}, {{name: BUILD_ARGS, type: array, default: []}}]\nresults: [{{name: IMAGE_URL}}, {{name: IMAGE_DIGEST}}]\n\
         steps: [{{name: build, image: \"i@{}\"}}]\n",
        digest("e")
    );
    bench.maps = vec![step_map("kagenti-system", "silent", &silent), step_map("kagenti-system", "tells", &tells)];
    bench.configure();
}

/// A build of that commit under that tag.
fn wants(object: &mut Value, letter: &str, tag: &str) {
    object["spec"]["source"]["sourceRevision"] = json!(commit(letter));
    object["spec"]["buildOutput"]["imageTag"] = json!(tag);
}

fn bench(by_content: bool) -> Bench {
    let mut object = build();
    wants(&mut object, "a", "v1");
    let mut bench = Bench::new(object);
    bench.decide(|settings| settings.by_content = by_content);
    maps(&mut bench, &format!("i@{}", digest("f")));
    bench.settle();
    bench
}

/// The run that is under way makes an image of that commit.
fn makes(bench: &mut Bench, letter: &str, tag: &str) {
    bench.task("clone", true, json!([{"name": "commit", "value": commit(letter)}]), json!({}));
    let url = format!("reg.io:5000/weather:{tag}");
    let results = json!([{"name": "IMAGE_URL", "value": url}, {"name": "IMAGE_DIGEST", "value": digest(letter)}]);
    bench.task("push", true, results, json!({}));
    bench.run_is("True", "Succeeded", "");
    // A second later than the one before.
    let (run, number) = (bench.run(), bench.names(Kind::PipelineRun).len());
    bench.edit(Kind::PipelineRun, &run, |run| {
        run["status"]["completionTime"] = json!(format!("2026-05-01T00:1{number}:00Z"))
    });
    bench.settle();
}

fn change(bench: &mut Bench, letter: &str, tag: &str) {
    bench.user(|build| wants(build, letter, tag));
    bench.settle();
}

fn runs(bench: &Bench) -> usize {
    bench
        .done
        .iter()
        .filter(|op| matches!(op, crate::controllers::scaffold::plan::Op::Ensure { kind: Kind::PipelineRun, .. }))
        .count()
}

/// First `a` as v1, then `b` as v2.
fn twice(by_content: bool) -> Bench {
    let mut bench = bench(by_content);
    makes(&mut bench, "a", "v1");
    change(&mut bench, "b", "v2");
    makes(&mut bench, "b", "v2");
    assert_eq!((bench.phase(), runs(&bench)), ("Succeeded".into(), 2));
    bench
}

#[test]
fn a_build_starts_at_every_change_unless_the_platform_says_otherwise() {
    let mut bench = twice(false);
    change(&mut bench, "a", "v1");
    assert_eq!((bench.phase(), runs(&bench)), ("Building".into(), 3));
}

#[test]
fn who_goes_back_to_what_was_built_gets_it_without_a_run_and_is_told_so() {
    let mut bench = twice(true);
    let made = bench.status()["earlier"][0].clone();
    let run = made["pipelineRun"].as_str().unwrap().to_owned();
    change(&mut bench, "a", "v1");
    let status = bench.status();
    assert_eq!((bench.phase(), runs(&bench)), ("Succeeded".into(), 2), "{status:#}");
    assert_eq!(status["builtImage"], json!(format!("reg.io:5000/weather@{}", digest("a"))));
    assert_eq!(
        (&status["builtImageTag"], &status["imageDigest"], &status["sourceCommit"]),
        (&json!("reg.io:5000/weather:v1"), &json!(digest("a")), &json!(commit("a")))
    );
    assert_eq!(bench.condition("BuildSucceeded"), ("True".into(), "ImageKnown".into()));
    assert_eq!(bench.condition("Ready"), ("True".into(), "ImageKnown".into()));
    assert_eq!(bench.condition("PipelineRunExists"), (String::new(), String::new()));
    assert!(bench.message().contains(&run) && bench.message().contains(NAME), "{}", bench.message());
    assert_eq!(bench.told(Reason::ImageKnown), 1);
    let record = &status["provenance"];
    assert_eq!(
        (&record["pipelineRun"], &record["knownFrom"]),
        (&json!(run), &json!(format!("agentbuilds.agent.kagenti.dev/{NAME}")))
    );
    assert_eq!((&record["buildHash"], &record["recipe"]), (&status["buildHash"], &made["recipe"]));
    assert_eq!(
        (bench.pass(3600), bench.message().contains(&run)),
        (0, true),
        "steady state, and nobody cleans up after no run"
    );
    bench.restart();
    assert_eq!(bench.pass(600), 0);
    // To and fro, without a run ever again; what is kept of the past does not grow.
    for (letter, tag) in [("b", "v2"), ("a", "v1"), ("b", "v2"), ("a", "v1"), ("b", "v2")] {
        change(&mut bench, letter, tag);
        assert_eq!((&bench.status()["imageDigest"], runs(&bench)), (&json!(digest(letter)), 2));
    }
    assert_eq!(bench.status()["earlier"].as_array().map(Vec::len), Some(4));
}

/// Where no run was needed, nobody made a workspace; but the run before, which failed, has left its own.
#[test]
fn what_a_failed_attempt_left_goes_with_a_success_that_needed_no_run() {
    for (cleans_up, left) in [(true, 0), (false, 1)] {
        let mut bench = twice(true);
        change(&mut bench, "c", "v3");
        bench.run_is("False", "Failed", "it broke");
        bench.user(|build| build["spec"]["cleanupAfterBuild"] = json!(cleans_up));
        bench.settle();
        assert_eq!((bench.phase(), bench.names(Kind::PersistentVolumeClaim).len()), ("Failed".into(), 1));
        change(&mut bench, "a", "v1");
        assert_eq!((bench.condition("BuildSucceeded").1, runs(&bench)), ("ImageKnown".into(), 3));
        assert_eq!(bench.names(Kind::PersistentVolumeClaim).len(), left, "{cleans_up}");
        assert!(bench.message().contains("no run was needed"), "{}", bench.message());
        assert_eq!(bench.pass(3600), 0, "steady state");
    }
}

/// What only says when and where it is built is another build of the same image.
#[test]
fn more_room_and_time_build_nothing_anew() {
    let mut bench = twice(true);
    bench.user(|build| {
        build["spec"]["pipeline"]["parameters"] =
            json!([{"name": "pipeline-timeout", "value": "45m"}, {"name": "workspace-size", "value": "9Gi"}]);
    });
    bench.settle();
    assert_eq!((bench.condition("BuildSucceeded").1, runs(&bench)), ("ImageKnown".into(), 2));
}

#[test]
fn whatever_else_differs_or_is_not_certain_is_built() {
    type Change = fn(&mut Bench);
    let cases: [(&str, Change); 11] = [
        ("a branch", |bench| bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("main"))),
        ("a short commit", |bench| bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("aaaaaaaa"))),
        ("capitals", |bench| bench.user(|build| wants(build, "A", "v1"))),
        ("another commit", |bench| bench.user(|build| wants(build, "c", "v1"))),
        ("an argument", |bench| {
            bench.user(|build| {
                wants(build, "a", "v1");
                build["spec"]["buildArgs"] = json!([{"name": "A", "value": "b"}]);
            });
        }),
        ("a parameter", |bench| {
            bench.user(|build| {
                wants(build, "a", "v1");
                build["spec"]["pipeline"]["parameters"] = json!([{"name": "FLAVOUR", "value": "other"}]);
            });
        }),
        ("another image", |bench| {
            bench.user(|build| {
                wants(build, "a", "v1");
                build["spec"]["buildOutput"]["image"] = json!("other");
            });
        }),
        ("a tag that was never pushed", |bench| bench.user(|build| wants(build, "a", "v3"))),
        ("a step that has changed", |bench| {
            maps(bench, &format!("i@{}", digest("d")));
            bench.user(|build| wants(build, "a", "v1"));
        }),
        ("a step by tag", |bench| {
            maps(bench, "i:1");
            bench.user(|build| wants(build, "a", "v1"));
        }),
        ("a wish to build", |bench| {
            bench.user(|build| {
                wants(build, "a", "v1");
                build["metadata"]["annotations"] = json!({keys::ANNOTATION_REBUILD: "now"});
            });
        }),
    ];
    for (what, change) in cases {
        let mut bench = twice(true);
        change(&mut bench);
        bench.settle();
        assert_eq!((bench.phase(), runs(&bench)), ("Building".into(), 3), "{what}: {}", bench.message());
    }
}

/// A tag that is another image by now would stay one without a run.
#[test]
fn a_tag_that_was_pushed_since_is_pushed_again() {
    let mut bench = bench(true);
    makes(&mut bench, "a", "v1");
    change(&mut bench, "b", "v1");
    makes(&mut bench, "b", "v1");
    change(&mut bench, "a", "v1");
    assert_eq!((bench.phase(), runs(&bench)), ("Building".into(), 3));
    makes(&mut bench, "a", "v1");
    change(&mut bench, "b", "v2");
    assert_eq!(runs(&bench), 4, "under that tag it never was");
    makes(&mut bench, "b", "v2");
    change(&mut bench, "a", "v1");
    assert_eq!(runs(&bench), 4);
}

/// A wish counts until a run has fulfilled it, and not for ever.
#[test]
fn a_wish_to_build_is_fulfilled_by_a_run_and_then_over() {
    let mut bench = twice(true);
    let wish = |bench: &mut Bench, value: &str| {
        bench.user(|build| build["metadata"]["annotations"] = json!({keys::ANNOTATION_REBUILD: value}));
        bench.settle();
    };
    wish(&mut bench, "1");
    assert_eq!(runs(&bench), 3);
    bench.run_is("False", "Failed", "");
    bench.settle();
    change(&mut bench, "a", "v1");
    assert_eq!(runs(&bench), 4, "it failed, so it is not fulfilled");
    makes(&mut bench, "a", "v1");
    change(&mut bench, "b", "v2");
    assert_eq!((bench.condition("BuildSucceeded").1, runs(&bench)), ("ImageKnown".into(), 4));
    wish(&mut bench, "2");
    assert_eq!(runs(&bench), 5);
    // One that is too long for a record is known by its digest: it is fulfilled like any other, and another one is another.
    makes(&mut bench, "b", "v2");
    let long = "w".repeat(2_000);
    wish(&mut bench, &long);
    assert_eq!(runs(&bench), 6);
    makes(&mut bench, "b", "v2");
    change(&mut bench, "a", "v1");
    assert_eq!((bench.condition("BuildSucceeded").1, runs(&bench)), ("ImageKnown".into(), 6));
    wish(&mut bench, &format!("{long}x"));
    assert_eq!(runs(&bench), 7);
}

/// Another build of the namespace knows it, of whatever kind; one of another namespace does not; and a record that is none counts nowhere.
#[test]
fn the_records_of_the_namespace_count_and_no_others() {
    let made = {
        let mut bench = bench(true);
        makes(&mut bench, "a", "v1");
        bench.status()["provenance"].clone()
    };
    let other = |kind: Kind, namespace: &str, record: &Value| {
        let mut object = build();
        wants(&mut object, "a", "v1");
        let mut bench = Bench::new(object);
        bench.decide(|settings| settings.by_content = true);
        maps(&mut bench, &format!("i@{}", digest("f")));
        let mut theirs =
            json!({"metadata": {"name": "theirs", "namespace": namespace, "uid": "t"}, "spec": {}, "status": {}});
        theirs["apiVersion"] = json!(kind.api_version());
        theirs["status"]["provenance"] = record.clone();
        bench.put(kind, theirs);
        bench.settle();
        (bench.condition("BuildSucceeded").1, bench.message())
    };
    for kind in [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild] {
        let (reason, message) = other(kind, TEAM, &made);
        assert_eq!(reason, "ImageKnown", "{kind:?}: {message}");
        assert!(message.contains("AgentBuild theirs of") && message.contains(kind.group()), "{message}");
        assert_ne!(other(kind, "elsewhere", &made).0, "ImageKnown", "{kind:?}");
    }
    for (what, pointer, value) in [
        ("no recipe", "/recipe", Value::Null),
        ("another recipe", "/recipe", json!("r")),
        ("no digest", "/digest", json!("sha256:short")),
        ("another digest than the image's", "/digest", json!(digest("9"))),
        ("another place", "/image", json!(format!("evil.io/weather@{}", digest("a")))),
        ("a place that begins alike", "/image", json!(format!("reg.io:5000/weather-x@{}", digest("a")))),
        ("a text behind the digest", "/image", json!(format!("reg.io:5000/weather@{}x", digest("a")))),
        ("another commit", "/commit", json!(commit("b"))),
        ("another tag", "/imageTag", json!("reg.io:5000/weather:v9")),
    ] {
        let mut record = made.clone();
        *record.pointer_mut(pointer).unwrap() = value;
        assert_ne!(other(Kind::AgentBuild, TEAM, &record).0, "ImageKnown", "{what}");
    }
    for none in [json!("text"), json!([]), json!({}), json!({"earlier": {"a": 1}})] {
        assert_ne!(other(Kind::AgentBuild, TEAM, &none).0, "ImageKnown", "{none}");
    }
}

/// Gates are there to be passed, each time.
#[test]
fn a_pipeline_with_gates_always_runs() {
    for (mode, ends) in [("preprod", "BuildInProgress"), ("prod", "BuildInProgress"), ("dev", "ImageKnown")] {
        let mut object = build();
        wants(&mut object, "a", "v1");
        object["spec"]["mode"] = json!(mode);
        object["metadata"]["annotations"] = json!({"agent.kagenti.dev/pipeline-origin": format!("template/{mode}"),
            "agent.kagenti.dev/pipeline-template": format!("kagenti-system/pipeline-template-{mode}@abc")});
        let steps = object["spec"]["pipeline"]["steps"].clone();
        let mut bench = Bench::new(object);
        bench.decide(|settings| settings.by_content = true);
        maps(&mut bench, &format!("i@{}", digest("f")));
        bench.template(mode, &json!({"name": "t", "namespace": "kagenti-system", "steps": steps}));
        bench.settle();
        makes(&mut bench, "a", "v1");
        change(&mut bench, "b", "v2");
        makes(&mut bench, "b", "v2");
        change(&mut bench, "a", "v1");
        assert_eq!(bench.condition("BuildSucceeded").1, ends, "{mode}: {}", bench.message());
    }
}
