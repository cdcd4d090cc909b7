//! Building and pushing by two tasks: the one that runs what the source says has no login, the one that has it runs nothing of the source.
//! The scripts run under a real shell; `buildah` and `skopeo` are stubs that record arguments and environment.

use std::os::unix::fs::symlink;

use serde_json::Value;

use super::place::{Place, script};
use super::shipped;
use crate::pipelines::fixtures::OPERATOR;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const IMAGE: &str = "ghcr.io/acme/agent:v1";

fn spec(step: &str) -> Value {
    shipped().steps(OPERATOR)[step].step.as_ref().unwrap().task_spec.clone()
}

fn workspaces(step: &str) -> Vec<String> {
    let spec = spec(step);
    let all = spec["workspaces"].as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn build() -> Place {
    let push = "case \"$1\" in push) path=${3#oci-archive:}; printf archive > \"${path%%:*}\" ;; esac; env > \"$HOME/environment\"";
    Place::new()
        .stub("buildah", push)
        .file("source/app/Dockerfile", "FROM scratch")
        .with("SUBFOLDER", "app")
        .with("DOCKERFILE", "Dockerfile")
        .with("IMAGE", IMAGE)
        .with("SKIP_TLS_VERIFY", "false")
}

fn push() -> Place {
    let told = format!("while [ \"$1\" != --digestfile ]; do shift; done; printf '{DIGEST}\\n' > \"$2\"");
    Place::new()
        .stub("skopeo", &told)
        .file("artifacts/image.tar", "archive")
        .file("auth/config.json", "{\"auths\": {\"ghcr.io\": {\"auth\": \"Y2FuYXJ5\"}}}")
        .with("IMAGE", IMAGE)
        .with("INSECURE", "false")
}

/// Z25, Z26: what may bind a login is the task's own declaration.
#[test]
fn case_z25_only_the_push_may_bind_a_login_and_it_has_no_source() {
    assert_eq!(workspaces("image-build-archive-step"), ["source", "artifacts", "trust-bundle"]);
    assert_eq!(workspaces("image-push-step"), ["artifacts", "registry-auth", "trust-bundle"]);
    let text = script("image-build-archive-step", "build");
    for word in ["auth", "docker://", "login"] {
        assert!(!text.contains(word), "the build knows of no {word}");
    }
    let mounted = spec("image-push-step")["workspaces"].as_array().unwrap().clone();
    assert!(mounted.iter().all(|one| one["readOnly"] == true), "it leaves nothing behind");
}

/// Z27, and the boundaries of the source.
#[test]
fn case_z27_arguments_reach_the_build_one_by_one_and_nothing_else_does() {
    let text = script("image-build-archive-step", "build");
    let place = build();
    place.ran(&text, &["--build-arg=PIP_INDEX=internal", "--build-arg=A=two words; touch x"]);
    let log = place.log("buildah");
    assert!(log.contains("\n--build-arg=PIP_INDEX=internal\n--build-arg=A=two words; touch x\n"), "{log}");
    assert!(log.contains("--tls-verify=true\n") && !log.contains("docker://") && !log.contains("auth"), "{log}");
    assert_eq!(std::fs::read_to_string(place.path("artifacts/image.tar")).unwrap(), "archive");
    assert!(!place.path("artifacts/image.tar.part").exists() && !place.path("x").exists());
    for argument in ["--volume=/:/host", "--secret=id=x,src=/proc/1/environ", "--build-arg", "x", "-f"] {
        assert!(build().failed(&text, &[argument]).contains("only --build-arg"), "{argument}");
    }
    assert!(build().with("DOCKERFILE", "../../../../etc/passwd").failed(&text, &[]).contains("leaves the subfolder"));
    assert!(build().with("SUBFOLDER", "../..").failed(&text, &[]).contains("leaves the source"));
    assert!(build().with("IMAGE", "--authfile=/x").failed(&text, &[]).contains("looks like an option"));
    let skipped = build().with("SKIP_TLS_VERIFY", "true");
    skipped.ran(&text, &[]);
    assert!(skipped.log("buildah").contains("--tls-verify=false\n"));
}

#[test]
fn a_build_that_fails_leaves_no_archive_of_an_earlier_one() {
    let text = script("image-build-archive-step", "build");
    let place = build().file("artifacts/image.tar", "of before").stub("buildah", "exit 1");
    place.failed(&text, &[]);
    assert!(!place.path("artifacts/image.tar").exists());
    let place = build().stub("buildah", "case \"$1\" in push) exit 1 ;; esac");
    place.failed(&text, &[]);
    assert!(!place.path("artifacts/image.tar").exists(), "half an archive is none");
}

/// Z20: the login is a file that is named, never an argument, a variable or a line of the log.
#[test]
fn case_z20_the_login_is_named_and_never_said() {
    let text = script("image-push-step", "push");
    let place = push().with("AUTH_BOUND", "true");
    let config = place.path("auth/config.json").display().to_string();
    let place = place.with("AUTH_FILE", &config);
    let said = place.ran(&text, &[]);
    let log = place.log("skopeo");
    assert!(log.contains(&format!("--dest-authfile\n{config}\n")) && !log.contains("--dest-tls-verify"), "{log}");
    assert!(log.ends_with(&format!("oci-archive:{}\ndocker://{IMAGE}\n", place.path("artifacts/image.tar").display())));
    assert!(!log.contains("Y2FuYXJ5") && !said.contains("Y2FuYXJ5") && !text.contains("set -x"));
    assert!(place.env.values().all(|value| !value.contains("Y2FuYXJ5")), "no variable holds it");
    assert_eq!((place.out("URL").as_str(), place.out("DIGEST").as_str()), (IMAGE, DIGEST));
}

/// Z21, Z30.
#[test]
fn case_z21_and_z30_without_a_login_the_push_is_anonymous_and_tls_is_verified_unless_it_is_said() {
    let text = script("image-push-step", "push");
    let place = push().file("home/.docker/config.json", "{\"auths\": {\"ghcr.io\": {\"auth\": \"Y2FuYXJ5\"}}}");
    place.ran(&text, &[]);
    let log = place.log("skopeo");
    assert!(log.contains("--dest-no-creds\n") && !log.contains("authfile"), "{log}");
    let insecure = push().with("INSECURE", "true");
    insecure.ran(&text, &[]);
    assert!(insecure.log("skopeo").contains("--dest-tls-verify=false\n"));
}

#[test]
fn nothing_is_told_that_did_not_happen_and_a_link_is_no_archive() {
    let text = script("image-push-step", "push");
    let failing = push().stub("skopeo", "exit 1");
    failing.failed(&text, &[]);
    assert_eq!((failing.out("URL"), failing.out("DIGEST")), (String::new(), String::new()));
    let silent = push().stub("skopeo", "while [ \"$1\" != --digestfile ]; do shift; done; : > \"$2\"");
    assert!(silent.failed(&text, &[]).contains("no digest"));
    assert_eq!(silent.out("URL"), "");
    assert!(push().with("IMAGE", "-x").failed(&text, &[]).contains("looks like an option"));
    let place = push();
    std::fs::remove_file(place.path("artifacts/image.tar")).unwrap();
    assert!(place.failed(&text, &[]).contains("left no image"));
    symlink(place.path("auth/config.json"), place.path("artifacts/image.tar")).unwrap();
    assert!(place.failed(&text, &[]).contains("left no image"), "a link could send the login itself");
    assert_eq!(place.log("skopeo"), "");
}
