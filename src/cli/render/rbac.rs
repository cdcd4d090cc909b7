//! Rights, least first: one table, split by role.
//!
//! In: the rows below. Out: ServiceAccounts, Roles and bindings. A row is what one piece of code asks for, with its reason;
//! no wildcard, no Secret of another namespace, nothing that could raise rights (`faults.md` G9, held by a test).

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role as NamespacedRole, RoleBinding, RoleRef, Subject,
};
use serde_json::Value;

use super::{Install, metadata, object};
use crate::domain::keys;

/// Which process asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `serve --roles webhook`: reads, and keeps its certificate authority.
    Webhook,
    /// `serve --roles controllers`: writes while it holds the Lease.
    Controllers,
}

impl Role {
    /// Both.
    pub const ALL: [Role; 2] = [Role::Webhook, Role::Controllers];

    /// Name of the ServiceAccount, the roles and the Deployment.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Webhook => "drawbridge-webhook",
            Role::Controllers => "drawbridge-controllers",
        }
    }

    /// Value of `serve --roles`.
    #[must_use]
    pub fn argument(self) -> &'static str {
        match self {
            Role::Webhook => "webhook",
            Role::Controllers => "controllers",
        }
    }
}

/// Where a right holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In every namespace, and for cluster-scoped objects.
    Cluster,
    /// In the operator's namespace only.
    Own,
}

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// Who has it.
    pub roles: &'static [Role],
    /// Where.
    pub scope: Scope,
    /// API group, empty for core.
    pub group: &'static str,
    /// Resources of that group.
    pub resources: &'static [&'static str],
    /// Object names it is limited to; empty for any.
    pub names: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
}

const BOTH: &[Role] = &Role::ALL;
const CONTROLLERS: &[Role] = &[Role::Controllers];
const WATCH: &[&str] = &["list", "watch"];
const READ: &[&str] = &["get", "list", "watch"];

/// Everything the code asks for.
pub const RIGHTS: &[Right] = &[
    // Facts of a review: labels and Pod Security level, layers of the configuration, identities, who owns a Job, SPIRE.
    Right { roles: BOTH, scope: Scope::Cluster, group: "", resources: &["namespaces"], names: &[], verbs: WATCH },
    Right { roles: BOTH, scope: Scope::Cluster, group: "", resources: &["configmaps"], names: &[], verbs: WATCH },
    Right { roles: BOTH, scope: Scope::Cluster, group: "", resources: &["serviceaccounts"], names: &[], verbs: WATCH },
    Right { roles: BOTH, scope: Scope::Cluster, group: "batch", resources: &["jobs"], names: &[], verbs: WATCH },
    Right {
        roles: BOTH,
        scope: Scope::Cluster,
        group: "storage.k8s.io",
        resources: &["csidrivers"],
        names: &[keys::CSI_DRIVER_SPIFFE],
        verbs: WATCH,
    },
    // The certificate authority, and whether its bundle is published.
    Right {
        roles: BOTH,
        scope: Scope::Own,
        group: "",
        resources: &["secrets"],
        names: &[keys::SECRET_AUTHORITY],
        verbs: &["get", "list", "watch", "update"],
    },
    Right { roles: BOTH, scope: Scope::Own, group: "", resources: &["secrets"], names: &[], verbs: &["create"] },
    Right {
        roles: BOTH,
        scope: Scope::Cluster,
        group: "admissionregistration.k8s.io",
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        names: &[keys::WEBHOOK_CONFIGURATION],
        verbs: READ,
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "admissionregistration.k8s.io",
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        names: &[keys::WEBHOOK_CONFIGURATION],
        verbs: &["patch"],
    },
    // One writer at a time.
    Right {
        roles: CONTROLLERS,
        scope: Scope::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[],
        verbs: &["create"],
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[keys::LEASE],
        verbs: &["get", "list", "watch", "update"],
    },
    // What injected Pods need, ahead of them.
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "",
        resources: &["configmaps", "serviceaccounts"],
        names: &[],
        verbs: &["create", "patch"],
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "apps",
        resources: &["deployments", "replicasets", "statefulsets", "daemonsets"],
        names: &[],
        verbs: WATCH,
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "apps",
        resources: &["replicasets", "statefulsets", "daemonsets"],
        names: &[],
        verbs: &["patch"],
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "batch",
        resources: &["cronjobs"],
        names: &[],
        verbs: WATCH,
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "batch",
        resources: &["jobs"],
        names: &[],
        verbs: &["patch"],
    },
    // Gated Pods: found, replaced, and the probe that says whether the webhook is back.
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "",
        resources: &["pods"],
        names: &[],
        verbs: &["list", "watch", "delete", "create"],
    },
    Right {
        roles: CONTROLLERS,
        scope: Scope::Cluster,
        group: "",
        resources: &["events"],
        names: &[],
        verbs: &["get", "create"],
    },
];

/// ServiceAccount, roles and bindings of one process.
#[must_use]
pub fn objects(install: &Install, role: Role) -> Vec<Value> {
    let own = Some(install.namespace.as_str());
    let name = role.name();
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(install.namespace.clone()),
        ..Subject::default()
    };
    let reference = |kind: &str| RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    vec![
        object(&ServiceAccount { metadata: metadata(name, own), ..ServiceAccount::default() }),
        object(&ClusterRole {
            metadata: metadata(name, None),
            rules: Some(rules(role, Scope::Cluster)),
            ..ClusterRole::default()
        }),
        object(&ClusterRoleBinding {
            metadata: metadata(name, None),
            role_ref: reference("ClusterRole"),
            subjects: Some(vec![subject.clone()]),
        }),
        object(&NamespacedRole { metadata: metadata(name, own), rules: Some(rules(role, Scope::Own)) }),
        object(&RoleBinding {
            metadata: metadata(name, own),
            role_ref: reference("Role"),
            subjects: Some(vec![subject]),
        }),
    ]
}

/// The rights of one process in one scope.
pub fn rights(role: Role, scope: Scope) -> impl Iterator<Item = &'static Right> {
    RIGHTS.iter().filter(move |right| right.scope == scope && right.roles.contains(&role))
}

fn rules(role: Role, scope: Scope) -> Vec<PolicyRule> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    rights(role, scope)
        .map(|right| PolicyRule {
            api_groups: Some(vec![right.group.to_owned()]),
            resources: Some(owned(right.resources)),
            resource_names: Some(owned(right.names)).filter(|names| !names.is_empty()),
            verbs: owned(right.verbs),
            ..PolicyRule::default()
        })
        .collect()
}
