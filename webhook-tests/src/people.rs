//! People: users who hold rights of a Role in one namespace, and no others.

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::access::Access;
use crate::control_plane::ControlPlane;
use crate::namespace::TestNamespace;
use crate::objects::PATIENCE;

/// Between two questions whether the API server goes by a Role.
const PAUSE: Duration = Duration::from_millis(10);

impl ControlPlane {
    /// User `name` with a Role of these `rules` in the namespace, of the same name, once the API server goes by it: it hears of a Role and of
    /// its binding a moment after each was stored, and refuses until then.
    ///
    /// # Errors
    /// When the Role is refused, or the API server does not go by it within [`PATIENCE`].
    pub async fn person(&self, ns: &TestNamespace, name: &str, rules: &[Value]) -> Result<Access> {
        let group = "rbac.authorization.k8s.io";
        let version = format!("{group}/v1");
        let metadata = json!({"name": name});
        ns.accepts(&json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules})).await?;
        ns.accepts(&json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
        }))
        .await?;
        let access = self.user(name, &[])?;
        let reviews: Api<SelfSubjectAccessReview> = Api::all(access.client().await?);
        let begun = Instant::now();
        for rule in rules {
            let review = serde_json::from_value(json!({"spec": {"resourceAttributes": asked(ns.name(), rule)}}))?;
            let allowed = async || {
                let answer = reviews.create(&PostParams::default(), &review).await?;
                anyhow::Ok(answer.status.is_some_and(|status| status.allowed))
            };
            while !allowed().await? {
                ensure!(begun.elapsed() < PATIENCE, "{name} has no right by {rule}");
                sleep(PAUSE).await;
            }
        }
        Ok(access)
    }
}

/// The first request that a rule allows.
fn asked(namespace: &str, rule: &Value) -> Value {
    let first = |list: &str| rule[list][0].as_str().unwrap_or_default();
    let (resource, subresource) = first("resources").split_once('/').unwrap_or((first("resources"), ""));
    json!({"namespace": namespace, "group": first("apiGroups"), "resource": resource, "subresource": subresource,
        "verb": first("verbs"), "name": first("resourceNames")})
}
