//! What goes on once something by which the API server's own policies go has gone astray: their list of namespaces was deleted, and a Namespace
//! carries a word that is no level.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone,
};

use super::quarantine::{QUARANTINE, command};
use super::*;

#[tokio::test]
async fn a_list_that_was_deleted_comes_back_and_a_word_of_before_holds_up_no_quarantine() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let _installation = Installation::start(&cp, &Installing::default()).await?;
    the_list_comes_back(&cp).await?;
    a_word_of_before_stands_in_nobodys_way(&cp).await
}

/// By hand, or by a tool that prunes what it does not know: without the list no agent's Pod begins where trust is enforced.
async fn the_list_comes_back(cp: &ControlPlane) -> Result<()> {
    let ns = cp.namespace_with("listed", &[(SWITCH, "enforced-all")]).await?;
    let uid = Api::<Namespace>::all(cp.client().await?).get(ns.name()).await?.uid().context("a uid")?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let lists = |one: &ServiceAccount| {
        [keys::ANNOTATION_ARMED, keys::ANNOTATION_ARMED_ALL]
            .iter()
            .all(|key| one.annotations().get(*key).is_some_and(|list| list.contains(&uid)))
    };
    let before = wait_for(&accounts, keys::ARMED, lists).await?.uid();
    accounts.delete(keys::ARMED, &DeleteParams::default()).await?;
    wait_for(&accounts, keys::ARMED, |one| one.uid() != before && lists(one)).await.context("it is made anew")?;
    ns.accepts(&agent("again")).await?;
    running(&ns, "again").await.map(drop)
}

/// It was written before there was a policy: who puts an agent into quarantine, or releases it, is not asked about it; the next word is judged.
async fn a_word_of_before_stands_in_nobodys_way(cp: &ControlPlane) -> Result<()> {
    let ns = cp.namespace("word").await?;
    ns.accepts(&agent("one")).await?;
    running(&ns, "one").await?;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    let switch = "drawbridge-trust-switch";
    let ValidatingAdmissionPolicyBinding { metadata, spec } = bindings.get(switch).await?;
    bindings.delete(switch, &DeleteParams::default()).await?;
    until_answered(cp, &ns, "enforce", true).await?;
    let metadata = ObjectMeta { name: metadata.name, labels: metadata.labels, ..ObjectMeta::default() };
    bindings.create(&PostParams::default(), &ValidatingAdmissionPolicyBinding { metadata, spec }).await?;
    until_answered(cp, &ns, "armed", false).await?;

    let (answer, code) = command(cp, &["quarantine", "agent/one", "-n", ns.name(), "--reason", "token leaked"]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    wait_for(&policies(&ns), QUARANTINE, |_| true).await?;
    let (answer, code) = command(cp, &["release", "agent/one", "-n", ns.name()]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    wait_gone(&policies(&ns), QUARANTINE).await
}

/// Writes that word as the Namespace's level until it is taken, or only tries it until it is refused: the API server hears of what became of a
/// policy a moment late.
async fn until_answered(cp: &ControlPlane, ns: &TestNamespace, word: &str, is_taken: bool) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    let params = PatchParams { dry_run: !is_taken, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"labels": {SWITCH: word}}}));
    let begun = Instant::now();
    loop {
        let answer = namespaces.patch(ns.name(), &params, &patch).await;
        if answer.is_ok() == is_taken {
            return Ok(());
        }
        let wanted = if is_taken { "taken" } else { "refused" };
        ensure!(begun.elapsed() < patience(), "level {word} was to be {wanted}: {answer:?}");
        sleep(Duration::from_millis(50)).await;
    }
}
