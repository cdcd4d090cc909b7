//! The rendered admission policies, as the API server's own check of types reads them, and while it cannot look up what they compare with.
//!
//! The controller that checks is left out of other control planes: it takes as much of the processor as all the rest of
//! kube-controller-manager. It has its one control plane here.

use anyhow::{Context as _, Result};
use drawbridge::cli::render::{self, FailureMode, Install};
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, Options, Process, wait_until};

const CONTROLLERS: &str =
    "--controllers=serviceaccount-controller,node-lifecycle-controller,validatingadmissionpolicy-status-controller";

/// A fault that the check must find.
const WRONG: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: wrong}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: "object.spec.replica > 1"}]
"#;

#[tokio::test]
async fn the_check_of_types_finds_nothing_in_any_policy_that_is_rendered() -> Result<()> {
    let args = [(Process::ControllerManager, vec![CONTROLLERS.to_owned()])].into();
    let cp = ControlPlane::start(Options { args, ..Options::default() }).await?;
    let objects = cp.objects().await?;
    let manifests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests");
    for file in ["install.yaml", "beeai-compat.yaml"] {
        let text = std::fs::read_to_string(manifests.join(file)).with_context(|| file.to_owned())?;
        objects.apply(&text).await.with_context(|| file.to_owned())?;
    }
    objects.apply(WRONG).await.context("a policy with a fault")?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cp.client().await?);
    let is_checked = |policy: &ValidatingAdmissionPolicy| {
        let status = policy.status.as_ref();
        status.is_some_and(|status| {
            status.type_checking.is_some() && status.observed_generation == policy.metadata.generation
        })
    };
    let checked =
        wait_until(&policies, watcher::Config::default(), |all| all.len() > 20 && all.values().all(is_checked)).await?;
    let warnings: Vec<String> = checked
        .iter()
        .flat_map(|policy| {
            let name = policy.metadata.name.as_deref().unwrap_or_default();
            let checking = policy.status.as_ref().and_then(|status| status.type_checking.as_ref());
            let warnings = checking.and_then(|checking| checking.expression_warnings.as_ref());
            warnings.into_iter().flatten().map(move |one| format!("{name}: {}: {}", one.field_ref, one.warning))
        })
        .collect();
    let (witness, ours): (Vec<_>, Vec<_>) = warnings.iter().partition(|one| one.starts_with("wrong: "));
    assert_eq!(ours, Vec::<&String>::new());
    assert!(!witness.is_empty(), "the check finds what is wrong");
    Ok(())
}

/// How long an API server does not know a kind depends on when it looked last. Here it never does, since no kind of ours is defined.
#[tokio::test]
async fn an_installation_is_taken_and_taken_again_while_the_api_server_has_not_looked_up_its_kinds() -> Result<()> {
    let cp = ControlPlane::start(Options { scheduling: false, ..Options::default() }).await?;
    let objects = cp.objects().await?;
    let install = Install::new(FailureMode::Gate, keys::OPERATOR_NAMESPACE, "drawbridge.invalid/drawbridge:test");
    let all = render::parts(&install).into_iter().flat_map(|part| part.objects);
    let installed: Vec<Value> = all.filter(|object| object["kind"] != "CustomResourceDefinition").collect();
    for object in &installed {
        objects.apply(&object.to_string()).await.with_context(|| format!("{}", object["metadata"]))?;
    }

    let labels = json!({keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE});
    let made = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "made", "labels": labels}, "spec": {"ports": [{"port": 80}]}});
    let refused = async {
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
        loop {
            tick.tick().await;
            if let Err(status) = objects.create(&made, true).await?.result
                && status.message.contains("failed to find resource referenced by paramKind")
            {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(patience(), refused).await.context("the policies are in force, and cannot be asked")??;

    let runs = |object: &&Value| object["kind"] == "Deployment" || object["kind"] == "Service";
    for object in installed.iter().filter(runs) {
        let mut changed = object.clone();
        changed["metadata"]["annotations"] = json!({"example.com/changed": "true"});
        objects.apply(&changed.to_string()).await.with_context(|| format!("{}", object["metadata"]))?;
        objects.delete(object).await?;
        objects.apply(&object.to_string()).await.with_context(|| format!("{}", object["metadata"]))?;
    }
    assert_eq!(installed.iter().filter(runs).count(), 3);
    Ok(())
}
