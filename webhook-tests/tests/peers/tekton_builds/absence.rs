//! Tekton comes, does not answer, and goes, while the operator runs (D-28).

use webhook_tests::tekton::Part;
use webhook_tests::{ControlPlane, Installation, Installing, Options, Tekton, TestNamespace};

use super::stage::{build, ended, reason, runs, wait};

/// Waits until a build says why it cannot start because of Tekton.
async fn lacking(ns: &TestNamespace, name: &str, why: &str) {
    let status = wait(ns, name, |status| reason(status, "TektonAvailable") == why).await;
    assert_eq!(status["phase"], "Pending", "{status:#}");
    assert_eq!(status.get("pipelineRunName"), None, "{status:#}");
}

/// D-28: the webhook of Tekton times out, is gone, and Tekton is removed.
#[tokio::test(flavor = "multi_thread")]
async fn case_d28_tekton_may_come_fail_and_go() {
    let cp = ControlPlane::start(Options::default()).await.unwrap();
    let installation = Installation::start(&cp, &Installing::default()).await.unwrap();
    let ns = cp.namespace("team").await.unwrap();
    ns.accepts(&build("early")).await.unwrap();
    lacking(&ns, "early", "TektonAbsent").await;

    let tekton = Tekton::start(&cp).await.unwrap();
    assert_eq!(ended(&ns, "early").await.0, "Succeeded", "it starts by itself once Tekton is there");

    tekton.pause(Part::Webhook);
    ns.accepts(&build("frozen")).await.unwrap();
    lacking(&ns, "frozen", "TektonUnreachable").await;
    tekton.resume(Part::Webhook);
    assert_eq!(ended(&ns, "frozen").await.0, "Succeeded");
    assert_eq!(runs(&ns, "frozen").await.len(), 1);

    tekton.entrance().close();
    ns.accepts(&build("unreached")).await.unwrap();
    lacking(&ns, "unreached", "TektonUnreachable").await;
    tekton.entrance().open();
    assert_eq!(ended(&ns, "unreached").await.0, "Succeeded");

    tekton.uninstall().await.unwrap();
    ns.accepts(&build("late")).await.unwrap();
    lacking(&ns, "late", "TektonAbsent").await;
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        assert_eq!(process.ended(), None);
        process.ready().await.unwrap();
    }
}
