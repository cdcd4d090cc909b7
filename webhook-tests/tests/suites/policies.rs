//! The rendered admission policies, as the API server's own check of types reads them.
//!
//! The controller that checks is left out of other control planes: it takes as much of the processor as all the rest of
//! kube-controller-manager. It has its one control plane here.

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;
use kube::runtime::watcher;
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
