//! What is known of an image, where it is read, and what is said of the rest.

use serde_json::{Value, json};

use super::{of, table};
use crate::pipelines::request::{BEEAI, FrontEnd, KAGENTI};

const DIGEST: &str = "sha256:aaaa";
const IMAGE: &str = "reg/weather@sha256:aaaa";

/// A build whose image was recorded.
fn recorded() -> Value {
    json!({
        "metadata": {"name": "weather", "namespace": "team1", "uid": "u"},
        "spec": {"source": {"sourceRepository": "changed.example/since"}},
        "status": {
            "phase": "Succeeded", "builtImage": IMAGE, "buildHash": "h", "attempts": 1, "pipelineRunName": "weather-1",
            "provenance": {
                "buildHash": "h", "attempt": 1, "recipe": "r", "repository": "github.com/acme/weather", "revision": "main",
                "commit": "0123abc4", "subfolder": "a", "pipelineRun": "weather-1", "pipelineRunUid": "ru",
                "started": "2026-05-01T00:00:01Z", "ended": "2026-05-01T00:10:00Z", "image": IMAGE, "imageTag": "reg/weather:v1", "digest": DIGEST,
                "steps": [
                    {"name": "clone", "configMap": "kagenti-system/clone", "contentHash": "c".repeat(64), "images": ["git:1"], "ranImages": ["git@sha256:1"]},
                    {"name": "build", "images": ["buildah:1"], "dockerfile": "Dockerfile", "buildArguments": ["A=b"], "buildArgumentsOmitted": 2},
                    {"name": "buildpack", "dockerfile": "Never", "buildArguments": ["N=ever"], "skipped": true},
                ],
            },
        },
    })
}

fn run() -> Value {
    json!({
        "metadata": {"name": "weather-1", "uid": "ru", "annotations": {
            "agent.kagenti.dev/build-hash": "h", "beeai.dev/build-hash": "h", "agent.kagenti.dev/recipe": "of the run",
            "step-hash.agent.kagenti.dev/build": "d",
        }},
        "spec": {
            "params": [{"name": "repo-url", "value": "github.com/acme/weather"}, {"name": "revision", "value": "v1"}],
            "pipelineSpec": {"tasks": [{"name": "build", "taskSpec": {"steps": [{"image": "buildah:1"}]}}]},
        },
        "status": {"results": [{"name": "IMAGE_DIGEST", "value": format!("{DIGEST}\n")}], "startTime": "s", "completionTime": "c"},
    })
}

fn told(object: &Value, front: &FrontEnd, run: Option<&Value>, tasks: &[Value]) -> Value {
    serde_json::to_value(of((object, "agent.kagenti.dev", front), run, tasks)).unwrap()
}

fn printed(object: &Value, run: Option<&Value>) -> String {
    let mut out = Vec::new();
    table(&mut out, &of((object, "agent.kagenti.dev", &KAGENTI), run, &[])).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_recorded_fact_is_told_with_its_place_and_not_what_the_spec_says_today() {
    let told = told(&recorded(), &KAGENTI, Some(&run()), &[]);
    assert_eq!((&told["faults"], &told["since"]), (&json!([]), &json!("")));
    for (name, value) in [
        ("repository", json!("github.com/acme/weather")),
        ("commit", json!("0123abc4")),
        ("dockerfile", json!("Dockerfile")),
        ("buildArguments", json!(["A=b", "and 2 more, which were not recorded"])),
        ("recipe", json!("r")),
        ("attempt", json!(1)),
        ("ended", json!("2026-05-01T00:10:00Z")),
    ] {
        assert_eq!(told["facts"][name], json!({"value": value, "from": "status.provenance", "unknown": ""}), "{name}");
    }
    let images: Vec<_> = told["steps"].as_array().unwrap().iter().map(|step| step["images"].clone()).collect();
    assert_eq!(images[0], json!([{"image": "git@sha256:1", "byDigest": true}]));
    assert_eq!(images[1], json!([{"image": "buildah:1", "byDigest": false}]));
    let printed = printed(&recorded(), Some(&run()));
    for line in [
        "commit           0123abc4\n",
        "build arguments  A=b, and 2 more, which were not recorded\n",
        "  clone: ConfigMap kagenti-system/clone, content cccccccccccc\n      in git@sha256:1\n",
        "in buildah:1  (by name only: which image that was is not known)",
        "buildpack, skipped",
    ] {
        assert!(printed.contains(line), "{line:?} is missing in\n{printed}");
    }
    assert!(!printed.contains("Never") && !printed.contains("changed.example"), "{printed}");
}

/// What a build was told, and what stands in its status, stays on its line.
#[test]
fn no_value_passes_for_a_line_of_the_report() {
    let forged = "x\ncommit           forged\u{1b}[2J\u{202e}";
    for at in [
        "/provenance/repository",
        "/provenance/revision",
        "/provenance/image",
        "/pipelineRunName",
        "/provenance/steps/0/name",
        "/provenance/steps/0/configMap",
        "/provenance/steps/0/contentHash",
        "/provenance/steps/0/ranImages/0",
        "/provenance/steps/1/buildArguments/0",
        "/provenance/steps/1/dockerfile",
    ] {
        let mut object = recorded();
        object["status"]["buildHash"] = json!("h2");
        *object["status"].pointer_mut(at).unwrap() = json!(forged);
        let printed = printed(&object, None);
        assert!(!printed.contains("\ncommit           forged"), "{at}: {printed}");
        assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{at}: {printed}");
    }
}

#[test]
fn what_contradicts_the_record_is_a_finding() {
    let mut other = run();
    other["status"]["results"][0]["value"] = json!("sha256:bbbb");
    let faults = told(&recorded(), &KAGENTI, Some(&other), &[])["faults"].to_string();
    assert!(faults.contains("sha256:bbbb") && faults.contains(DIGEST), "{faults}");
    // A run of the same name that is another one says nothing.
    other["metadata"]["uid"] = json!("another");
    assert_eq!(told(&recorded(), &KAGENTI, Some(&other), &[])["faults"], json!([]));
    // A record of another image than the status names is none.
    let mut moved = recorded();
    moved["status"]["builtImage"] = json!("reg/weather@sha256:cccc");
    let told = told(&moved, &KAGENTI, None, &[]);
    assert!(told["faults"].to_string().contains("speaks of"), "{told:#}");
    assert_eq!((&told["facts"]["commit"]["value"], &told["steps"]), (&Value::Null, &json!([])));
}

#[test]
fn a_later_attempt_that_made_nothing_is_named_and_changes_nothing() {
    let mut later = recorded();
    later["status"]["buildHash"] = json!("h2");
    later["status"]["phase"] = json!("Failed");
    later["status"]["pipelineRunName"] = json!("weather-2");
    later["status"]["sourceCommit"] = json!("of another");
    let told = told(&later, &KAGENTI, Some(&run()), &[]);
    assert!(
        told["since"].as_str().is_some_and(|since| since.contains("weather-2") && since.contains("Failed")),
        "{told:#}"
    );
    assert_eq!(
        (&told["facts"]["commit"]["value"], &told["facts"]["pipelineRun"]["value"]),
        (&json!("0123abc4"), &json!("weather-1"))
    );
}

/// Builds of before: the status, and the run if it is of those inputs; the rest is said not to be known.
#[test]
fn without_a_record_only_what_the_status_and_its_run_say_is_known() {
    for (front, phase) in [(&KAGENTI, json!({"phase": "Succeeded"})), (&BEEAI, json!({"buildStatus": "Completed"}))] {
        let mut object = recorded();
        object["status"] = json!({"builtImage": IMAGE, "imageDigest": DIGEST, "buildHash": "h", "attempts": 2, "pipelineRunName": "weather-1"});
        json_patch::merge(&mut object["status"], &phase);
        let task = json!({"metadata": {"labels": {"tekton.dev/pipelineTask": "build"}},
            "status": {"steps": [{"imageID": "docker-pullable://quay.io/buildah@sha256:7"}]}});
        let known = told(&object, front, Some(&run()), std::slice::from_ref(&task));
        assert_eq!(
            (&known["facts"]["digest"]["from"], &known["facts"]["repository"]["from"]),
            (&json!("status"), &json!("PipelineRun"))
        );
        assert_eq!(
            (&known["facts"]["revision"]["value"], &known["facts"]["recipe"]["value"]),
            (&json!("v1"), &json!("of the run"))
        );
        assert_eq!((&known["steps"][0]["contentHash"], &known["stepsFrom"]), (&json!("d"), &json!("PipelineRun")));
        assert_eq!(known["steps"][0]["images"], json!([{"image": "quay.io/buildah@sha256:7", "byDigest": true}]));
        let why = known["facts"]["commit"]["unknown"].as_str().unwrap();
        assert!(why.contains("was not recorded"), "{why}");
        // The run of other inputs, and that of a build that has not succeeded, are others.
        let mut other = run();
        other["metadata"]["annotations"] = json!({});
        assert_eq!(told(&object, front, Some(&other), &[])["facts"]["repository"]["value"], Value::Null);
        json_patch::merge(&mut object["status"], &json!({"phase": "Failed", "buildStatus": "Failed"}));
        let failed = told(&object, front, Some(&run()), &[task]);
        assert_eq!((&failed["facts"]["digest"]["value"], &failed["steps"]), (&Value::Null, &json!([])), "{failed:#}");
        assert_eq!(failed["facts"]["image"]["value"], IMAGE);
    }
}

#[test]
fn a_build_without_an_image_says_so_and_invents_nothing() {
    for status in [json!({}), json!({"phase": "Building", "pipelineRunName": "weather-1", "sourceCommit": "x"})] {
        let object = json!({"metadata": {"name": "weather", "namespace": "team1"}, "status": status});
        let told = told(&object, &KAGENTI, Some(&run()), &[]);
        assert!(told["faults"].to_string().contains("no image yet"), "{told:#}");
        let facts = told["facts"].as_object().unwrap();
        assert!(
            facts.values().all(|fact| fact["value"].is_null() && fact["unknown"] == "no image was made"),
            "{told:#}"
        );
    }
}

/// Whoever writes a status by hand gets an answer all the same.
#[test]
fn a_record_of_another_shape_is_none() {
    for broken in [json!("text"), json!([1]), json!({"steps": "none"}), json!({"attempt": "one"})] {
        let mut object = recorded();
        object["status"]["provenance"] = broken;
        let told = told(&object, &KAGENTI, None, &[]);
        assert_eq!(told["facts"]["repository"]["value"], Value::Null, "{told:#}");
        assert!(printed(&object, None).contains("repository       not known"));
    }
}
