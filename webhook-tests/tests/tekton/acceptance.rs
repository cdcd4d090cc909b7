//! Whatever webhook and composition accept, real Tekton accepts.

use drawbridge::build::agent_build::MODES;
use webhook_tests::{ControlPlane, Tekton};

use crate::builds::{Platform, build};

#[tokio::test]
async fn every_mode_is_accepted_as_shipped() {
    Tekton::shared().await.unwrap();
    let ns = ControlPlane::shared().await.unwrap().namespace("accepted").await.unwrap();
    let platform = Platform::shipped();
    for mode in MODES {
        let composition = platform.accepted(&build(ns.name(), &format!("weather-{mode}"), mode));
        let answer = ns.create(&composition.run, true).await.unwrap();
        assert!(answer.result.is_ok(), "{mode}: {}", answer.result.unwrap_err().message);
        assert_eq!(answer.warnings, Vec::<String>::new(), "{mode}");
    }
}
