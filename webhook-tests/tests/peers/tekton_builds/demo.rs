//! `make demo WITH=tekton` shows what it says.

use webhook_tests::programs;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_a_build_from_refusal_to_agent() {
    let demo = programs::workspace("demo").unwrap();
    let ran = tokio::process::Command::new(demo).args(["--once", "--with", "tekton"]).output().await.unwrap();
    let (said, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}\n{errors}");
    for line in [
        "spec.source.sourceRevision",
        "spec.buildOutput.imageTag",
        "No container runs here: kwok plays the kubelet",
        "builtImage is the digest that the task wrote: registry.cr-system.svc.cluster.local:5000/weather-service@sha256:",
        "envoy-proxy",
        "the Agent runs\n  ghcr.io/acme/research-agent@sha256:",
        "Failed/NoImage",
    ] {
        assert!(said.contains(line), "no {line} in:\n{said}");
    }
}
