//! Which image an Agent runs, its AgentBuild's or its own: cases of agents (A; docs/cases.md) that plans decide.

use serde_json::{Value, json};

use super::bench::{Bench, TEAM, owns, running};
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::fixtures::s;
use crate::store::{Key, Kind};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

pub(super) fn from_build() -> Value {
    json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": "b"}}}})
}

fn succeeded(digest: &str) -> Value {
    json!({"phase": "Succeeded", "builtImage": format!("r.example/w@{digest}")})
}

/// An Agent that runs the image of AgentBuild `b`.
fn running_a_build() -> Bench {
    let mut bench = Bench::new();
    bench.build("b", succeeded(DIGEST));
    bench.agent("weather", from_build());
    bench.converge();
    bench.rolled_out("weather");
    bench.converge();
    bench
}

#[test]
fn case_a04_another_image_reaches_the_deployment_and_the_status_follows() {
    let mut bench = running();
    bench.edit(Kind::Agent, "weather", json!({"spec": {"imageSource": {"image": "ghcr.io/acme/weather:v2"}}}));
    assert_eq!(owns(&bench.converge()), [Kind::Deployment]);
    assert_eq!(bench.container("weather", 0)["image"], "ghcr.io/acme/weather:v2");
    assert_eq!(
        (bench.status("weather")["image"].as_str(), bench.phase("weather").as_str()),
        (Some("ghcr.io/acme/weather:v2"), "Deploying")
    );
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(bench.phase("weather"), "Ready");
    assert_eq!(bench.reasons().last(), Some(&"DeploymentUpdated"));
}

#[test]
fn case_a05_and_a06_an_agent_waits_for_its_build_and_goes_on_with_its_event() {
    let mut bench = Bench::new();
    bench.agent("weather", from_build());
    bench.converge();
    assert!(bench.find(Kind::Deployment, "weather").is_none());
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "ImageReady").as_str()),
        ("Pending", "False/BuildNotFound")
    );
    assert_eq!(bench.condition("weather", "Ready"), "False/ImageNotReady");
    assert_eq!(bench.plan("weather").ops, [], "no loop");
    assert_eq!(bench.plan("weather").again, Some(s(60)), "nor a poll every few seconds");
    for (status, reason) in [
        (json!({}), "BuildPending"),
        (json!({"phase": "Pending"}), "BuildPending"),
        (json!({"phase": "Building"}), "BuildInProgress"),
        (json!({"phase": "Failed", "message": "no such branch"}), "BuildFailed"),
        (json!({"phase": "Succeeded", "message": null}), "BuildHasNoImage"),
    ] {
        bench.build("b", status);
        bench.converge();
        assert_eq!(bench.condition("weather", "ImageReady"), format!("False/{reason}"));
        assert_eq!(bench.phase("weather"), "Pending");
        assert_eq!(reason == "BuildFailed", bench.message("weather", "ImageReady").contains("no such branch"));
    }
    let touched = bench.cluster.touched(ROW, Kind::AgentBuild, &Key::new(TEAM, "b"));
    assert_eq!(touched, [Key::new(TEAM, "weather")], "its event finds the Agent");
    bench.build("b", succeeded(DIGEST));
    bench.converge();
    assert_eq!(bench.container("weather", 0)["image"], format!("r.example/w@{DIGEST}"));
    assert_eq!(bench.condition("weather", "ImageReady"), "True/ImageAvailable");
    assert!(bench.reasons().contains(&"ImageResolved"));
    // Once per reason, not once per look.
    assert_eq!(bench.reasons().iter().filter(|reason| **reason == "WaitingForBuild").count(), 5);
}

#[test]
fn case_a07_to_a09_a_running_agent_keeps_its_image_until_the_next_one_is_there() {
    let mut bench = running_a_build();
    let before = bench.object(Kind::Deployment, "weather");
    for (status, reason) in [
        (json!({"phase": "Building"}), "BuildInProgress"),
        (
            json!({"phase": "Failed", "message": "test failed", "builtImage": format!("r.example/w@{DIGEST}")}),
            "BuildFailed",
        ),
    ] {
        bench.build("b", status);
        bench.converge();
        assert_eq!(bench.object(Kind::Deployment, "weather"), before, "{reason}");
        assert_eq!(bench.condition("weather", "Ready"), "True/DeploymentReady");
        assert_eq!(bench.condition("weather", "ImageReady"), format!("False/{reason}"));
    }
    assert!(bench.message("weather", "ImageReady").contains("test failed"));
    bench.build("b", succeeded(OTHER));
    assert_eq!(owns(&bench.converge()), [Kind::Deployment]);
    assert_eq!(bench.container("weather", 0)["image"], format!("r.example/w@{OTHER}"));
}

/// The image stays, every other edit arrives.
#[test]
fn after_its_build_is_deleted_an_agent_keeps_its_image_and_takes_every_other_edit() {
    let mut bench = running_a_build();
    bench.remove(Kind::AgentBuild, "b");
    // What somebody writes meanwhile is not the image that the Agent ran.
    let edit = json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "evil"}]}}}});
    bench.edit(Kind::Deployment, "weather", edit);
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 3}}));
    bench.converge();
    let deployment = bench.object(Kind::Deployment, "weather");
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(bench.container("weather", 0)["image"], format!("r.example/w@{DIGEST}"));
    assert_eq!(bench.condition("weather", "ImageReady"), "False/BuildNotFound");
}
