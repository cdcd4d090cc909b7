//! The scripts, under a real shell; tools are stubs that record their arguments.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::place::{Place, script};
use super::shipped;
use crate::pipelines::fixtures::OPERATOR;

#[test]
fn every_script_is_one_that_a_shell_reads() {
    let mut seen = 0;
    for (name, entry) in shipped().steps(OPERATOR) {
        let spec = &entry.step.as_ref().unwrap().task_spec;
        let steps = spec["steps"].as_array().unwrap();
        for text in steps.iter().filter_map(|step| step.get("script").and_then(Value::as_str)) {
            let place = Place::new().file("script", text);
            let output = Command::new("sh").arg("-n").arg(place.path("script")).output().unwrap();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            seen += 1;
        }
    }
    assert!(seen >= 12, "{seen}");
}

#[test]
fn the_subfolder_lies_inside() {
    let text = script("check-subfolder-step", "check");
    let place = Place::new().file("source/a b/'q;touch x'/f", "");
    for folder in [".", "a b", "a b/'q;touch x'", "$(touch x)/.."] {
        let place =
            Place::new().with("SUBFOLDER", folder).file("source/a b/'q;touch x'/f", "").file("source/$(touch x)/f", "");
        place.ran(&text, &[]);
        assert!(!place.path("x").exists() && !place.path("source/x").exists(), "{folder}");
    }
    symlink("/tmp", place.path("source/out")).unwrap();
    for folder in ["missing", "..", "out", "a b/../..", "a b/'q;touch x'/f"] {
        let place = Place { root: tempfile::tempdir().unwrap(), env: place.env.clone() }.with("SUBFOLDER", folder);
        assert!(place.failed(&text, &[]).contains("subfolder:"), "{folder}");
    }
}

#[test]
fn dockerfiles_are_found_by_name() {
    let text = script("check-dockerfile-step", "look");
    for (files, found, name) in [
        (&["Dockerfile", "Containerfile"][..], "true", "Dockerfile"),
        (&["Containerfile"][..], "true", "Containerfile"),
        (&["dockerfile", "Dockerfile.prod"][..], "false", ""),
    ] {
        let mut place = Place::new().with("SUBFOLDER", "a b");
        for file in files {
            place = place.file(&format!("source/a b/{file}"), "FROM scratch");
        }
        place.ran(&text, &[]);
        assert_eq!((place.out("FOUND").as_str(), place.out("NAME").as_str()), (found, name), "{files:?}");
    }
    let place = Place::new();
    symlink("/etc/passwd", place.path("source/Dockerfile")).unwrap();
    place.ran(&text, &[]);
    assert_eq!(place.out("FOUND"), "false", "a link is no regular file");
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn the_image_reference_is_what_the_build_left() {
    let text = script("image-reference-step", "read");
    for (url, reference) in [("r:5000/a/b:v1", "r:5000/a/b"), ("ghcr.io/a/b", "ghcr.io/a/b"), ("r:5000/a", "r:5000/a")]
    {
        let place = Place::new().file("artifacts/image-url", url).file("artifacts/image-digest", DIGEST);
        place.ran(&text, &[]);
        assert_eq!(place.out("REF"), format!("{reference}@{DIGEST}"));
        assert_eq!((place.out("URL").as_str(), place.out("DIGEST").as_str()), (url, DIGEST));
    }
    assert!(Place::new().failed(&text, &[]).contains("no build step"));
    for digest in
        ["sha256:12", "md5:x", &DIGEST.to_uppercase(), &format!("{DIGEST}0"), &DIGEST[7..], "sha256:$(touch x)"]
    {
        let place = Place::new().file("artifacts/image-url", "a").file("artifacts/image-digest", digest);
        assert!(place.failed(&text, &[]).contains("digest"), "{digest}");
    }
}

/// D17: the switch means what it says.
#[test]
fn buildah_builds_what_it_is_told() {
    let text = script("buildah-build-step", "build");
    let push = format!(
        "case \"$1\" in push) while [ \"$1\" != --digestfile ]; do shift; done; printf '{DIGEST}\\n' > \"$2\" ;; esac"
    );
    let place = || {
        Place::new()
            .stub("buildah", &push)
            .file("source/app/Dockerfile", "FROM scratch")
            .with("SUBFOLDER", "app")
            .with("DOCKERFILE", "Dockerfile")
            .with("IMAGE", "r:5000/a:v1")
            .with("PUSH_IMAGE", "")
            .with("AUTH_FILE", "/auth/config.json")
            .with("SKIP_TLS_VERIFY", "false")
    };
    let plain = place().with("ARTIFACTS_BOUND", "true");
    plain.ran(&text, &["--build-arg=A=two words; touch x"]);
    let log = plain.log("buildah");
    assert!(log.contains("--tls-verify=true\n") && !log.contains("--authfile"), "{log}");
    assert!(log.contains("\n--build-arg=A=two words; touch x\n"), "one argument: {log}");
    assert_eq!((plain.out("URL").as_str(), plain.out("DIGEST").as_str()), ("r:5000/a:v1", DIGEST));
    assert_eq!(std::fs::read_to_string(plain.path("artifacts/image-digest")).unwrap(), DIGEST);
    let candidate = place()
        .with("PUSH_IMAGE", "r:5000/a:v1-candidate-x")
        .with("SKIP_TLS_VERIFY", "true")
        .with("AUTH_BOUND", "true");
    candidate.ran(&text, &[]);
    let log = candidate.log("buildah");
    assert!(log.contains("--tls-verify=false\n") && log.contains("--authfile\n/auth/config.json\n"), "{log}");
    assert!(log.contains("docker://r:5000/a:v1-candidate-x\n") && !log.contains("docker://r:5000/a:v1\n"), "{log}");
    assert_eq!(candidate.out("URL"), "r:5000/a:v1-candidate-x");
    for argument in ["--volume=/:/host", "x", "--build-arg", "-f"] {
        assert!(place().failed(&text, &[argument]).contains("only --build-arg"), "{argument}");
    }
    assert!(place().with("DOCKERFILE", "../../../../etc/passwd").failed(&text, &[]).contains("leaves the subfolder"));
    assert!(place().with("SUBFOLDER", "../..").failed(&text, &[]).contains("leaves the source"));
}

#[test]
fn buildpacks_leave_the_source_alone_and_report_the_digest() {
    let (prepare, create, report) =
        (script("buildpack-step", "prepare"), script("buildpack-step", "create"), script("buildpack-step", "report"));
    let make = || {
        let place = Place::new()
            .file("source/app/main.py", "")
            .file("app/keep", "")
            .file("layers/keep", "")
            .stub("creator", "");
        let (app, layers, bin) = (place.path("app"), place.path("layers"), place.path("bin"));
        let text = |path: &Path| path.display().to_string();
        let place = place.with("APP", &text(&app)).with("LAYERS", &text(&layers)).with("LIFECYCLE", &text(&bin));
        place
            .with("SUBFOLDER", "app")
            .with("IMAGE", "r:5000/a:v1")
            .with("PUSH_IMAGE", "")
            .with("PYTHON_VERSION", "")
            .with("START_COMMAND", "")
            .with("SKIP_TLS_VERIFY", "false")
    };
    let place = make().with("PYTHON_VERSION", "3.13").with("START_COMMAND", "python -m app; $(touch x)");
    place.ran(&prepare, &[]);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(
        (read("app/.python-version").as_str(), read("app/Procfile").as_str()),
        ("3.13\n", "web: python -m app; $(touch x)\n")
    );
    assert!(!place.path("source/app/Procfile").exists() && !place.path("x").exists());
    assert!(make().with("START_COMMAND", "a\nworker: b").failed(&prepare, &[]).contains("more than one line"));
    let place = make();
    place.ran(&prepare, &[]);
    assert!(!place.path("app/Procfile").exists() && !place.path("app/.python-version").exists());
    place.ran(&create, &[]);
    assert!(!place.log("creator").contains("insecure") && place.log("creator").ends_with("r:5000/a:v1\n"));
    let place = make().with("SKIP_TLS_VERIFY", "true").with("PUSH_IMAGE", "r:5000/a:c");
    place.ran(&create, &[]);
    assert!(
        place.log("creator").contains("-insecure-registry=r:5000\n") && place.log("creator").ends_with("r:5000/a:c\n")
    );
    let place = make()
        .with("ARTIFACTS_BOUND", "true")
        .file("layers/report.toml", &format!("[image]\ntags = [\"x\"]\ndigest = \"{DIGEST}\"\n"));
    place.ran(&report, &[]);
    assert_eq!((place.out("DIGEST").as_str(), place.out("URL").as_str()), (DIGEST, "r:5000/a:v1"));
    assert_eq!(std::fs::read_to_string(place.path("artifacts/image-url")).unwrap(), "r:5000/a:v1");
    assert!(make().file("layers/report.toml", "[image]\n").failed(&report, &[]).contains("no digest"));
}

#[test]
fn promotion_moves_a_digest_and_nothing_else() {
    let text = script("promote-step", "promote");
    let place = || {
        let reference = format!("r:5000/a@{DIGEST}");
        Place::new()
            .stub("skopeo", "")
            .with("IMAGE", "r:5000/a:v1")
            .with("REF", &reference)
            .with("INSECURE", "false")
            .with("AUTH_FILE", "/c")
    };
    let plain = place();
    plain.ran(&text, &[]);
    assert_eq!(
        plain.log("skopeo"),
        format!("copy\n--all\n--preserve-digests\ndocker://r:5000/a@{DIGEST}\ndocker://r:5000/a:v1\n")
    );
    assert_eq!((plain.out("URL").as_str(), plain.out("DIGEST").as_str()), ("r:5000/a:v1", DIGEST));
    let insecure = place().with("INSECURE", "true").with("AUTH_BOUND", "true");
    insecure.ran(&text, &[]);
    assert!(
        insecure.log("skopeo").contains("--dest-tls-verify=false\n")
            && insecure.log("skopeo").contains("--authfile\n/c\n")
    );
    assert!(place().with("REF", "r:5000/a:v1").failed(&text, &[]).contains("digest"));
    let failing = place().stub("skopeo", "exit 1");
    failing.failed(&text, &[]);
    assert_eq!(failing.out("URL"), "", "nothing is reported that did not happen");
}

#[test]
fn evidence_is_one_json_document_whatever_the_values() {
    let text = script("policy-gate-step", "evidence");
    let place = |command: &str| {
        Place::new()
            .file("artifacts/image-config.json", r#"{"config": {"User": "1000"}}"#)
            .with("REF", "r/a@sha256:0")
            .with("REPOSITORY", "github.com/a/b")
            .with("REVISION", "v1.2.3")
            .with("COMMIT", "0123")
            .with("TEST_COMMAND", command)
            .with("POLICY", "package main")
    };
    for command in [
        "",
        "true",
        r#"x","forged":"y"#,
        r"back\slash \n \u0041",
        "two\nlines\ttab",
        "é",
        "$(touch x)`touch x`",
        "-n",
        "%s%d",
    ] {
        let place = place(command);
        place.ran(&text, &[]);
        let evidence = std::fs::read_to_string(place.path("artifacts/evidence.json")).unwrap();
        let evidence: Value = serde_json::from_str(&evidence).unwrap_or_else(|error| panic!("{error}: {evidence}"));
        assert_eq!(evidence.as_object().unwrap().len(), 4, "{evidence}");
        assert_eq!(evidence["testCommand"], command.replace(['\n', '\t'], ""));
        assert_eq!(evidence["image"]["config"]["User"], "1000");
        assert_eq!(evidence["source"]["revision"], "v1.2.3");
        assert!(!place.path("x").exists());
    }
    let inspect = script("policy-gate-step", "inspect");
    let place = place("x").stub("skopeo", "echo '{}'").with("INSECURE", "true").with("AUTH_FILE", "/c");
    place.ran(&inspect, &[]);
    assert_eq!(place.log("skopeo"), "inspect\n--config\n--tls-verify=false\ndocker://r/a@sha256:0\n");
}

#[test]
fn sources_bring_no_exceptions_of_their_own() {
    let text = script("secret-scan-step", "refuse-exceptions");
    Place::new().file("source/app/x", "").with("SUBFOLDER", "app").ran(&text, &[]);
    for file in ["source/.gitleaksignore", "source/app/.gitleaksignore"] {
        let place = Place::new().file("source/app/x", "").file(file, "").with("SUBFOLDER", "app");
        assert!(place.failed(&text, &[]).contains("exceptions"), "{file}");
    }
}

#[test]
fn the_smoke_test_waits_and_gives_up() {
    let text = script("smoke-test-step", "probe");
    let place = |then: &str| {
        Place::new()
            .stub("wget", then)
            .stub("sleep", "")
            .with("PORT", "8000")
            .with("PATH_OF_CARD", "/card")
            .with("LIMIT", "9")
            .with("EVERY", "3")
    };
    let card = "while [ \"$1\" != -O ]; do shift; done; echo '{}' > \"$2\"";
    let late = place(&format!("if [ -e tried ]; then {card}; else touch tried; exit 1; fi"));
    late.ran(&text, &[]);
    assert!(late.log("wget").contains("http://localhost:8000/card\n"));
    assert!(place("exit 1").failed(&text, &[]).contains("no card at :8000/card after 9s"));
    assert!(place(card).with("PORT", "80@evil").failed(&text, &[]).contains("numbers"));
    assert!(place(card).with("PATH_OF_CARD", "@evil/").failed(&text, &[]).contains("slash"));
}
