//! Rights, least first: what the code says it asks for, split by role.
//!
//! In: `controllers::rbac` and the certificate's needs. Out: ServiceAccounts, Roles and bindings. Promise:
//! no wildcard, no Secret of another namespace, nothing that could raise rights (docs/cases.md G9, held by a test).

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role as NamespacedRole, RoleBinding, RoleRef, Subject,
};
use serde_json::Value;

use super::kinds::{self, Kinds};
use super::platform::KEY_PLATFORM;
use super::{FailureMode, Install, metadata, object};
use crate::config::cards::BundleConfigMap;
use crate::config::schema::Platform;
use crate::controllers::rbac::ASKS;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;
use crate::store::{Descriptor, Kind, KindOrigin, UsedBy};

/// Which process asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `serve --roles webhook`: reads.
    Webhook,
    /// `serve --roles controllers`: writes while it holds the Lease, and makes the certificate authority at first start.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// Who has it.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// API group, empty for core.
    pub group: &'static str,
    /// Resource of that group.
    pub resource: &'static str,
    /// The only object name it is for; none for any.
    pub name: Option<&'static str>,
    /// What may be done.
    pub verbs: &'static [&'static str],
}

const SECRETS: (&str, &str) = ("", "secrets");
const MUTATING: (&str, &str) = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations");
const VALIDATING: (&str, &str) = ("admissionregistration.k8s.io", "validatingwebhookconfigurations");

/// What certificates need (`server::certs`): everyone reads the authority and who trusts it; controllers make, change
/// and publish it.
fn certificates() -> Vec<Right> {
    let secret = |role, name, verbs| {
        let (group, resource) = SECRETS;
        Right { role, scope: Scope::Own, group, resource, name, verbs }
    };
    let configuration = |role, (group, resource), verbs| {
        let name = Some(keys::WEBHOOK_CONFIGURATION);
        Right { role, scope: Scope::Cluster, group, resource, name, verbs }
    };
    let (read, authority) = (&["get", "list", "watch"], Some(keys::SECRET_AUTHORITY));
    let (webhook, controllers) = (Role::Webhook, Role::Controllers);
    vec![
        secret(webhook, authority, read),
        configuration(webhook, MUTATING, read),
        configuration(webhook, VALIDATING, read),
        secret(controllers, authority, &["get", "list", "watch", "update"]),
        secret(controllers, None, &["create"]),
        configuration(controllers, MUTATING, &["get", "list", "watch", "patch"]),
        configuration(controllers, VALIDATING, &["get", "list", "watch", "patch"]),
    ]
}

/// What every process looks after: whether the policies of the manifests are there. By one list of each kind, because a watch by name
/// would be two connections for each of them; they hold nothing that is secret. Nobody writes them. Those of mode gate are looked after by
/// the controllers alone, which run it.
fn guards(mode: FailureMode) -> Vec<Right> {
    let right = |role: Role, kind: Guard| Right {
        role,
        scope: Scope::Cluster,
        group: "admissionregistration.k8s.io",
        resource: kind.plural(),
        name: None,
        verbs: &["list", "watch"],
    };
    let looks =
        move |role: Role, kind: &Guard| !kind.is_mutating() || (mode == FailureMode::Gate && role == Role::Controllers);
    // The webhook configurations are read by name, with what certificates need.
    let of = |role: Role| {
        let looked_at = Guard::ALL.into_iter().filter(move |kind| !kind.is_webhook() && looks(role, kind));
        looked_at.map(move |kind| right(role, kind))
    };
    Role::ALL.into_iter().flat_map(of).collect()
}

/// Everything the code asks for in that failure mode of an installation alone.
#[must_use]
pub fn rights(mode: FailureMode) -> Vec<Right> {
    all_rights(mode).filter(|right| !is_compat(right.group)).collect()
}

/// What it asks for where the manifest of the compatible group was applied, too.
#[must_use]
pub fn compat_rights(mode: FailureMode) -> Vec<Right> {
    all_rights(mode).filter(|right| is_compat(right.group)).collect()
}

/// Whether the kinds of that group come with a manifest of their own.
fn is_compat(group: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.group() == group && kind.descriptor().origin == KindOrigin::Compat)
}

/// Everything the code asks for.
pub fn all_rights(mode: FailureMode) -> impl Iterator<Item = Right> {
    let asked = ASKS.iter().flat_map(move |ask| {
        let roles: &[Role] = match ask.asker {
            UsedBy::Every => &Role::ALL,
            UsedBy::Controllers => &[Role::Controllers],
            UsedBy::Gate if mode == FailureMode::Gate => &[Role::Controllers],
            UsedBy::Gate => &[],
        };
        roles.iter().map(move |role| Right {
            role: *role,
            scope: if ask.own_namespace { Scope::Own } else { Scope::Cluster },
            group: ask.group,
            resource: ask.resource,
            name: ask.name,
            verbs: ask.verbs,
        })
    });
    asked.chain(certificates()).chain(guards(mode))
}

/// Name of the roles that the catalogue of verified agents needs.
pub const CATALOGUE: &str = "drawbridge-catalogue";

/// What the catalogue of verified agents needs besides: the word of the API server on tokens, and the Lease that shows whether anybody judges cards.
#[must_use]
pub fn catalogue(install: &Install) -> Vec<Value> {
    let right =
        |scope, group, resource, name, verbs| Right { role: Role::Webhook, scope, group, resource, name, verbs };
    let rights = [
        right(Scope::Cluster, "authentication.k8s.io", "tokenreviews", None, &["create"] as &[&str]),
        right(Scope::Own, "coordination.k8s.io", "leases", Some(keys::LEASE), &["get"]),
    ];
    // The first has no namespace, wherever the operator serves.
    let everywhere = Install { namespaces: Vec::new(), ..install.clone() };
    bound(&everywhere, Role::Webhook, CATALOGUE, &rights)
}

/// ServiceAccount, roles and bindings of one process.
#[must_use]
pub fn objects(install: &Install, role: Role) -> Vec<Value> {
    let account = ServiceAccount {
        metadata: metadata(role.name(), Some(install.namespace.as_str())),
        ..ServiceAccount::default()
    };
    let mut objects = vec![object(&account)];
    let mut needed = rights(install.mode());
    if install.values.openshift {
        needed.extend(owners_enforced());
    }
    needed.retain(|right| install.kinds.needs(right));
    objects.extend(bound(install, role, role.name(), &needed));
    if role == Role::Controllers {
        let bundle = named_by(install).filter(|bundle| is_elsewhere(install, bundle));
        objects.extend(bundle.into_iter().flat_map(|bundle| trust_bundle(install, &bundle)));
    }
    objects
}

/// What it takes besides to change the owners of a ServiceAccount or of a build's login where the API server asks whoever changes owners for the right
/// to delete the object (admission plugin `OwnerReferencesPermissionEnforcement`, which OpenShift runs). The other kinds whose owners change are deleted
/// as well. Nobody deletes these: no operation is planned that would, so the right stands outside of the table, and policy `drawbridge-own-reach`, which
/// is made from that, refuses whatever uses it.
#[must_use]
pub fn owners_enforced() -> [Right; 2] {
    ["serviceaccounts", "secrets"].map(|resource| Right {
        role: Role::Controllers,
        scope: Scope::Cluster,
        group: "",
        resource,
        name: None,
        verbs: &["delete"],
    })
}

/// Name of the Role by which the controllers read a trust bundle that none of their other rights reaches.
pub const TRUST_BUNDLE: &str = "drawbridge-trust-bundle";
/// What is asked of its ConfigMap, which is followed by name (`server::trust_bundles`).
pub const TRUST_BUNDLE_VERBS: [&str; 3] = ["get", "list", "watch"];

/// The trust bundle's ConfigMap that the platform file of an installation names.
fn named_by(install: &Install) -> Option<BundleConfigMap> {
    // A file that cannot be understood names nothing: `render` refuses it before.
    let platform = Platform::parse(install.platform_file.as_deref()?, KEY_PLATFORM).ok()?;
    platform.cards().bundle.config_map
}

/// Whether a trust bundle lies where the controllers do not read every ConfigMap anyway.
fn is_elsewhere(install: &Install, bundle: &BundleConfigMap) -> bool {
    !install.namespaces.is_empty() && places(install).iter().all(|(namespace, _)| *namespace != bundle.namespace)
}

/// Role and binding by which the controllers read that one ConfigMap.
#[must_use]
pub fn trust_bundle(install: &Install, bundle: &BundleConfigMap) -> Vec<Value> {
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".to_owned()]),
        resource_names: Some(vec![bundle.name.clone()]),
        verbs: TRUST_BUNDLE_VERBS.map(str::to_owned).to_vec(),
        ..PolicyRule::default()
    };
    let named = || metadata(TRUST_BUNDLE, Some(&bundle.namespace));
    vec![
        object(&NamespacedRole { metadata: named(), rules: Some(vec![rule]) }),
        object(&RoleBinding {
            metadata: named(),
            role_ref: reference("Role", TRUST_BUNDLE),
            subjects: Some(vec![subject(install, Role::Controllers)]),
        }),
    ]
}

/// The account of a process, as a binding names it.
fn subject(install: &Install, role: Role) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: role.name().to_owned(),
        namespace: Some(install.namespace.clone()),
        ..Subject::default()
    }
}

/// What a binding gives.
fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: "rbac.authorization.k8s.io".to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

/// Roles of that name with the rights of a process among `rights`, and their bindings.
#[must_use]
pub fn bound(install: &Install, role: Role, name: &str, rights: &[Right]) -> Vec<Value> {
    let subject = subject(install, role);
    let mut objects = vec![
        object(&ClusterRole {
            metadata: metadata(name, None),
            rules: Some(rules(rights, |right| right.role == role && grounds(install, right) == [None])),
            ..ClusterRole::default()
        }),
        object(&ClusterRoleBinding {
            metadata: metadata(name, None),
            role_ref: reference("ClusterRole", name),
            subjects: Some(vec![subject.clone()]),
        }),
    ];
    for (namespace, _) in places(install) {
        let holds = |right: &Right| right.role == role && grounds(install, right).contains(&Some(namespace));
        let rules = Some(rules(rights, holds));
        objects.push(object(&NamespacedRole { metadata: metadata(name, Some(namespace)), rules }));
        objects.push(object(&RoleBinding {
            metadata: metadata(name, Some(namespace)),
            role_ref: reference("Role", name),
            subjects: Some(vec![subject.clone()]),
        }));
    }
    objects
}

/// The namespaces that Roles are made in, and whether all that lies in them is served: our own, and in namespaced scope the served ones.
fn places(install: &Install) -> Vec<(&str, bool)> {
    let own = install.namespace.as_str();
    let mut places = vec![(own, install.namespaces.iter().any(|name| name == own))];
    places.extend(install.namespaces.iter().map(String::as_str).filter(|name| *name != own).map(|name| (name, true)));
    places
}

/// Where a right is held: in the whole cluster (one `None`), or in the namespaces named.
#[must_use]
pub fn grounds<'i>(install: &'i Install, right: &Right) -> Vec<Option<&'i str>> {
    if everywhere(install, right) {
        return vec![None];
    }
    let held = places(install).into_iter().filter(|(namespace, served)| {
        let own = *namespace == install.namespace && (right.scope == Scope::Own || at_home(right));
        own || (*served && right.scope == Scope::Cluster)
    });
    held.map(|(namespace, _)| Some(namespace)).collect()
}

/// Whether a right is held in the whole cluster: in cluster scope, or because its kind has no namespace.
fn everywhere(install: &Install, right: &Right) -> bool {
    let is_its = |kind: &&Kind| kind.group() == right.group && kind.plural() == right.resource;
    let has_none = Kind::ALL.iter().find(is_its).is_some_and(|kind| !kind.is_namespaced());
    let others = [MUTATING.1, VALIDATING.1].into_iter().chain(Guard::ALL.map(Guard::plural));
    right.scope == Scope::Cluster
        && (install.namespaces.is_empty() || has_none || others.into_iter().any(|kind| kind == right.resource))
}

/// Whether a right is needed in our own namespace although that is not served: templates and steps, what parametrises policies, and Events about
/// our own objects.
fn at_home(right: &Right) -> bool {
    right.group.is_empty() && ["configmaps", "serviceaccounts", "events"].contains(&right.resource)
}

/// What stands before the name of the role that takes another one's rules in.
pub const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// What `status`, `explain`, `card` and `doctor` read, for people who look and change nothing. No Secrets; `doctor` besides asks what our
/// accounts may do, and creates a Pod with a dry run only for those who may create Pods.
///
/// The kinds of the compatible group are among it, installed or not: whoever has no right on a kind is told that it may not be read, also where
/// the API server does not serve it.
#[must_use]
pub fn diagnosis(kinds: Kinds) -> Value {
    const READ: &[&str] = &["get", "list", "watch"];
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources.iter().map(|one| (*one).to_owned()).collect()),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let mut rules = vec![
        rule("", &["namespaces", "pods", "configmaps", "serviceaccounts", "services", "events"], READ),
        rule("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"], READ),
        rule("batch", &["jobs", "cronjobs"], READ),
        rule("agents.x-k8s.io", &["sandboxes"], READ),
        rule("storage.k8s.io", &["csidrivers"], READ),
        rule("coordination.k8s.io", &["leases"], READ),
        rule("discovery.k8s.io", &["endpointslices"], READ),
        rule("policy", &["poddisruptionbudgets"], READ),
        rule("networking.k8s.io", &["networkpolicies"], READ),
        rule("policy.networking.k8s.io", &["clusternetworkpolicies"], READ),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], READ),
        rule("tekton.dev", &["pipelineruns", "taskruns"], READ),
        rule(kinds::GATEWAY, &["gateways", "httproutes"], READ),
        rule(
            "admissionregistration.k8s.io",
            &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            READ,
        ),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ];
    let policies: Vec<&str> = Guard::ALL.into_iter().filter(|kind| !kind.is_webhook()).map(Guard::plural).collect();
    rules.push(rule("admissionregistration.k8s.io", &policies, READ));
    let is_ours = |kind: &&Descriptor| matches!(kind.origin, KindOrigin::Ours | KindOrigin::Compat);
    let ours = Kind::ALL.iter().map(|kind| kind.descriptor()).filter(is_ours);
    rules.extend(ours.map(|kind| rule(kind.group, &[kind.plural], READ)));
    rules.retain(|rule| rule.api_groups.iter().flatten().all(|group| kinds.serves(group)));
    object(&ClusterRole {
        metadata: metadata("drawbridge-diagnosis", None),
        rules: Some(rules),
        ..ClusterRole::default()
    })
}

/// Roles for people on the kinds of ours of that origin, to be bound by whoever runs the cluster.
#[must_use]
pub fn people(origin: KindOrigin, kinds: Kinds) -> Vec<Value> {
    const VIEW: &[&str] = &["get", "list", "watch"];
    const EDIT: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const ADMIN: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    const SCALE: [&str; 3] = ["get", "update", "patch"];
    let rule = |kind: &Descriptor, resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![kind.group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let role = |label: &str, kind: &Descriptor, who: &str, verbs: &[&str]| {
        let mut rules = vec![rule(kind, kind.plural, verbs), rule(kind, &format!("{}/status", kind.plural), &["get"])];
        // A right of its own, which `kubectl scale` asks for; whoever may write the object sets the same number there.
        if scales(kind) {
            let verbs: Vec<&str> = verbs.iter().copied().filter(|verb| SCALE.contains(verb)).collect();
            rules.push(rule(kind, &format!("{}/scale", kind.plural), &verbs));
        }
        let mut metadata = metadata(&format!("{}-{who}-role", label.to_lowercase()), None);
        // `admin` has what `edit` has, and `edit` what `view` has: so two labels reach all three.
        let into = match who {
            "viewer" => Some("view"),
            "editor" => Some("edit"),
            _ => None,
        };
        let labels = metadata.labels.get_or_insert_default();
        labels.extend(into.map(|into| (format!("{AGGREGATE}{into}"), "true".to_owned())));
        object(&ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() })
    };
    let is_served = |kind: &Kind| kind.descriptor().origin == origin && kinds.serves(kind.group());
    let mut ours: Vec<Kind> = Kind::ALL.iter().copied().filter(is_served).collect();
    ours.sort_by_key(|kind| kind.label());
    ours.into_iter()
        .flat_map(|kind| {
            let of = |(who, verbs)| role(kind.label(), kind.descriptor(), who, verbs);
            [("admin", ADMIN), ("editor", EDIT), ("viewer", VIEW)].map(of)
        })
        .collect()
}

/// Whether objects of that kind have subresource `scale`.
fn scales(kind: &Descriptor) -> bool {
    let versions = kind.crd.map(|crd| crd().spec.versions).unwrap_or_default();
    versions.iter().any(|version| version.subresources.as_ref().is_some_and(|all| all.scale.is_some()))
}

fn rules(rights: &[Right], holds: impl Fn(&Right) -> bool) -> Vec<PolicyRule> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    rights
        .iter()
        .filter(|right| holds(right))
        .map(|right| PolicyRule {
            api_groups: Some(vec![right.group.to_owned()]),
            resources: Some(vec![right.resource.to_owned()]),
            resource_names: right.name.map(|name| vec![name.to_owned()]),
            verbs: owned(right.verbs),
            ..PolicyRule::default()
        })
        .collect()
}
