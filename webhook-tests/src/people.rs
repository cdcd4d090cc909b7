//! People: users who hold the rights of one role in one namespace, and no others.

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::access::Access;
use crate::control_plane::ControlPlane;
use crate::namespace::TestNamespace;
use crate::patience::patience;

const GROUP: &str = "rbac.authorization.k8s.io";
/// Between two questions whether the API server goes by a Role.
const PAUSE: Duration = Duration::from_millis(10);

impl ControlPlane {
    /// User `name` with a Role of these `rules` in the namespace, of the same name, once the API server goes by it: it hears of a Role and of
    /// its binding a moment after each was stored, and refuses until then.
    ///
    /// # Errors
    /// When the Role is refused, or the API server does not go by it within [`patience`].
    pub async fn person(&self, ns: &TestNamespace, name: &str, rules: &[Value]) -> Result<Access> {
        let role =
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": rules});
        ns.apply(&role.to_string()).await?;
        self.bound(ns, name, ("Role", name), rules).await
    }

    /// User `name` with ClusterRole `role` in the namespace, once the API server goes by it.
    ///
    /// # Errors
    /// When there is no such role, or the API server does not go by it within [`patience`].
    pub async fn member(&self, ns: &TestNamespace, name: &str, role: &str) -> Result<Access> {
        let found = Api::<ClusterRole>::all(self.client().await?).get(role).await?;
        let rules = serde_json::to_value(found.rules.unwrap_or_default())?;
        let of_a_namespace = |rule: &&Value| rule.get("resources").is_some();
        let rules: Vec<Value> = rules.as_array().into_iter().flatten().filter(of_a_namespace).cloned().collect();
        ensure!(!rules.is_empty(), "ClusterRole {role} gives nothing");
        self.bound(ns, name, ("ClusterRole", role), &rules).await
    }

    async fn bound(&self, ns: &TestNamespace, name: &str, role: (&str, &str), rules: &[Value]) -> Result<Access> {
        let binding = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": name}],
        });
        ns.apply(&binding.to_string()).await?;
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
                ensure!(begun.elapsed() < patience(), "{name} has no right by {rule}");
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
